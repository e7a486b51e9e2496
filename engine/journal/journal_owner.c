/* Who steps a journal: its writer, or a producer that waits for stable storage and carries out
 * the write itself instead of waking the writer and being woken by it.
 *
 * The word `owner` is changed by read-modify-writes only, all of them sequentially consistent:
 *   writer    0 -> WRITER, kept while operations are in flight; if a producer has the journal,
 *             WANTED is added, and the producer wakes the writer when it lets go
 *   producer  0 -> PRODUCER for one write; if another producer has the journal, CALLED is added
 *             behind the publication of the batch
 * A producer that lets go takes CALLED back first and looks at what is published after that, so
 * that a batch is seen by the owner that was called for it. It does not write what it finds so
 * late, but wakes the writer. A writer is called by ring.attention, whether it has the journal or
 * nobody. */
#include "engine/journal/journals.h"

static const uint32_t held = LAHAR_OWNER_WRITER | LAHAR_OWNER_PRODUCER;

/* Replaces the word if it is still *word; otherwise reads it again. */
static bool change(struct lahar_journal *journal, uint32_t *word, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(&journal->owner, word, to, memory_order_seq_cst,
                                                   memory_order_seq_cst);
}

bool lahar_journal_own(struct lahar_journal *journal)
{
    uint32_t word = atomic_load_explicit(&journal->owner, memory_order_seq_cst);
    for (;;) {
        if ((word & LAHAR_OWNER_WRITER) != 0) {
            return true;
        }
        if ((word & held) == 0 && change(journal, &word, LAHAR_OWNER_WRITER)) {
            return true;
        }
        if ((word & LAHAR_OWNER_PRODUCER) != 0 &&
            change(journal, &word, word | LAHAR_OWNER_WANTED)) {
            return false;
        }
    }
}

void lahar_journal_disown(struct lahar_journal *journal)
{
    if (journal->write_count == 0 && !journal->sync.is_in_use && !journal->jumbo.is_in_use) {
        (void)atomic_exchange_explicit(&journal->owner, 0, memory_order_seq_cst);
    }
}

/* Lets go of a journal that a producer has. Returns whether the writer asked for it. */
static bool let_go(struct lahar_journal *journal)
{
    bool is_wanted = false;
    uint32_t word = LAHAR_OWNER_PRODUCER;
    while (!change(journal, &word, 0)) {
        word =
            atomic_exchange_explicit(&journal->owner, LAHAR_OWNER_PRODUCER, memory_order_seq_cst);
        is_wanted |= (word & LAHAR_OWNER_WANTED) != 0;
        (void)lahar_journal_scan(journal);
        is_wanted |= lahar_journal_needs_writer(journal);
        word = LAHAR_OWNER_PRODUCER;
    }
    return is_wanted;
}

enum lahar_lead lahar_journal_lead(struct lahar_journal *journal)
{
    struct lahar_journals *journals = journal->journals;
    uint32_t word = atomic_load_explicit(&journal->owner, memory_order_seq_cst);
    do {
        if ((word & held) != 0) {
            return (word & LAHAR_OWNER_PRODUCER) != 0 ? LAHAR_LEAD_HELD : LAHAR_LEAD_REFUSED;
        }
    } while (!change(journal, &word, LAHAR_OWNER_PRODUCER));
    lahar_commit_group_end(journals);
    const enum lahar_lead outcome = lahar_journal_drive(journal);
    const bool needs_writer = lahar_journal_needs_writer(journal);
    if (let_go(journal) || needs_writer) {
        journals->ring_set.wake(journals, journal->number);
    }
    if (outcome == LAHAR_LEAD_WROTE) {
        lahar_catalog_walk(&journals->catalog);
    }
    return outcome;
}

bool lahar_journal_is_held(const struct lahar_journal *journal)
{
    return (atomic_load_explicit(&journal->owner, memory_order_seq_cst) & held) != 0;
}

void lahar_journal_call_owner(struct lahar_journal *journal)
{
    uint32_t word = atomic_load_explicit(&journal->owner, memory_order_seq_cst);
    while ((word & LAHAR_OWNER_PRODUCER) != 0) {
        if (change(journal, &word, word | LAHAR_OWNER_CALLED)) {
            return;
        }
    }
    lahar_ring_call(&journal->journals->ring_set, journal->number, LAHAR_ATTENTION_WAIT);
}
