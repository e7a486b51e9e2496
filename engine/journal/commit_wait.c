/* Waiting for stable storage, and the commits that share a write.
 *
 * On a small load the threads that wait write for one another: one of them leads, that is, writes
 * what all have published with one durable write in its own thread and wakes the others with one
 * system call. No writer is woken, and nobody hops twice.
 *
 * Who leads follows from a group of arrivals. Threads that were woken by a write are expected
 * back: the group is complete when as many have arrived since the last led write began as waited
 * when it ended, and the thread that completes it leads. So N threads in a closed loop settle at
 * one write for all N instead of two halves that wait for each other's write. A thread alone always
 * completes its group. When those that are expected stay away, the first arrival of the group,
 * which sleeps for a fraction of a write's time only, leads without them, and what waited then is
 * what is expected next.
 *
 * Nobody waits for ever: a thread publishes before it arrives, and whoever leads begins a new group
 * before it looks at what is published. So an arrival is either seen by the write that ended its
 * group, or counted in the next one. The first arrival of a group keeps its time until the group
 * has ended; if its own wait ends earlier, it ends the group and calls the writer for the others.
 * What a led write leaves (a full bounce buffer, a chunk to prepare) goes to the writer as well. A
 * writer that comes across a small write for which a group is forming leaves it alone.
 *
 * The writer is called at once when more than one journal is behind, and by those who cannot be
 * held up by a write of their own. */
#include "engine/journal/journals.h"
#include "io/base/error.h"

enum {
    GROUP_MAX = 64, /* arrivals that are worth waiting for */
    SMOOTHING = 8   /* writes */
};

/* A write that a waiting thread carries out by itself cannot be given up: only those who have
 * this much time do so. */
static const uint64_t patience_ns = 1000000000;
static const uint64_t grace_min_ns = 30000;
static const uint64_t grace_max_ns = 1000000;

/* One thread's wait. */
struct waiting {
    struct lahar_journals *journals;
    struct lahar_durable_gate *gate;
    uint64_t id;
    uint64_t end_ns;
    uint32_t arrival; /* number in its group; 0: has not arrived */
    uint32_t group;   /* number of that group */
};

/* What has to be durable for whoever waits for id: all below this, as far as it exists. */
static uint64_t above(const struct lahar_journals *journals, uint64_t id)
{
    const uint64_t next_id = lahar_journals_next_id(journals);
    return id < next_id ? id + 1 : next_id;
}

/* LAHAR_BUSY: not yet. What is claimed has its place in a file already: only writes that find no
 * space keep it from becoming durable, not a file or ids that are wanted for later appends. */
static lahar_status check_durable(struct lahar_journals *journals, uint64_t id, lahar_error *error)
{
    if (lahar_journals_durable_id(journals) > id) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_journals_health(journals, error));
    if (lahar_journals_is_write_full(journals)) {
        return lahar_fail(error, LAHAR_NO_SPACE, "the journals wait for disk space");
    }
    return LAHAR_BUSY;
}

/* --- groups ------------------------------------------------------------------------------- */

static uint32_t number_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t arrivals_of(uint64_t word)
{
    return (uint32_t)word;
}

/* Ends the group if it still is number; returns how many had arrived in it. */
static uint32_t end_group(struct lahar_commit_group *group, uint64_t word, uint32_t number)
{
    while (number_of(word) == number) {
        /* Pairs with arrive: whoever is counted out here has published before. */
        if (atomic_compare_exchange_weak_explicit(&group->word, &word, (uint64_t)(number + 1) << 32,
                                                  memory_order_seq_cst, memory_order_seq_cst)) {
            return arrivals_of(word);
        }
    }
    return 0;
}

void lahar_commit_group_end(struct lahar_journals *journals)
{
    const uint64_t word = atomic_load_explicit(&journals->group.word, memory_order_seq_cst);
    (void)end_group(&journals->group, word, number_of(word));
}

bool lahar_commit_group_is_forming(const struct lahar_journals *journals)
{
    return arrivals_of(atomic_load_explicit(&journals->group.word, memory_order_seq_cst)) != 0;
}

void lahar_commit_group_expect(struct lahar_journals *journals)
{
    const uint32_t waiters = atomic_load_explicit(&journals->durable_waiters, memory_order_relaxed);
    atomic_store_explicit(&journals->group.target, waiters < GROUP_MAX ? waiters : GROUP_MAX,
                          memory_order_relaxed);
}

static void arrive(struct waiting *waiting)
{
    if (waiting->arrival == 0) {
        const uint64_t word =
            atomic_fetch_add_explicit(&waiting->journals->group.word, 1, memory_order_seq_cst);
        waiting->arrival = 1 + arrivals_of(word);
        waiting->group = number_of(word);
    }
}

static bool keeps_time(const struct waiting *waiting)
{
    return waiting->arrival == 1;
}

static bool completes_group(const struct waiting *waiting)
{
    const struct lahar_commit_group *group = &waiting->journals->group;
    return waiting->arrival >= atomic_load_explicit(&group->target, memory_order_relaxed);
}

/* The wait of a thread ends. If it kept the time of a group that is still open, nobody does now. */
static void depart(const struct waiting *waiting)
{
    struct lahar_journals *journals = waiting->journals;
    if (keeps_time(waiting)) {
        const uint64_t word = atomic_load_explicit(&journals->group.word, memory_order_seq_cst);
        /* Also when nobody else had arrived: the writer may have left a write to this thread. */
        if (end_group(&journals->group, word, waiting->group) != 0) {
            lahar_journals_want(journals, lahar_journals_next_id(journals));
        }
    }
}

/* How long the first arrival waits for those that are expected. */
static uint64_t grace_of(const struct lahar_journals *journals)
{
    const uint64_t half_ns =
        atomic_load_explicit(&journals->group.write_ns, memory_order_relaxed) / 2;
    return half_ns < grace_min_ns ? grace_min_ns : half_ns > grace_max_ns ? grace_max_ns : half_ns;
}

struct lahar_journal *lahar_journals_find_sole(struct lahar_journals *journals)
{
    struct lahar_journal *sole = NULL;
    for (uint32_t j = 0; j < journals->journal_count; j++) {
        if (lahar_journal_is_behind(&journals->journals[j])) {
            if (sole != NULL) {
                return NULL;
            }
            sole = &journals->journals[j];
        }
    }
    return sole;
}

static enum lahar_lead lead(struct waiting *waiting, struct lahar_journal *journal)
{
    struct lahar_journals *journals = waiting->journals;
    struct lahar_commit_group *group = &journals->group;
    const uint64_t start_ns = journals->io->ops->monotonic_ns(journals->io);
    const enum lahar_lead outcome = lahar_journal_lead(journal);
    if (outcome == LAHAR_LEAD_WROTE) {
        const uint64_t took_ns = journals->io->ops->monotonic_ns(journals->io) - start_ns;
        const uint64_t before_ns = atomic_load_explicit(&group->write_ns, memory_order_relaxed);
        atomic_store_explicit(
            &group->write_ns,
            before_ns == 0 ? took_ns : before_ns - before_ns / SMOOTHING + took_ns / SMOOTHING,
            memory_order_relaxed);
    }
    if (outcome == LAHAR_LEAD_WROTE || outcome == LAHAR_LEAD_NOTHING) {
        waiting->arrival = 0; /* its group has ended; something may have been in the way */
    }
    return outcome;
}

/* --- one thread's wait -------------------------------------------------------------------- */

/* Sleeps at most until end_ns; who keeps the time of its group wakes earlier. Returns whether it
 * slept as long as the group gets. */
static bool sleep_in_group(struct waiting *waiting, uint32_t ticket, bool is_held)
{
    const struct lahar_journals *journals = waiting->journals;
    uint64_t end_ns = waiting->end_ns;
    if (keeps_time(waiting)) {
        uint64_t grace_end_ns = journals->io->ops->monotonic_ns(journals->io) + grace_of(journals);
        if (is_held) {
            grace_end_ns += atomic_load_explicit(&journals->group.write_ns, memory_order_relaxed);
        }
        end_ns = grace_end_ns < end_ns ? grace_end_ns : end_ns;
    }
    return lahar_gate_sleep_for(&waiting->gate->gate, ticket, lahar_durable_wait_bit(waiting->id),
                                end_ns) &&
           keeps_time(waiting);
}

/* Takes part in a group if the thread has time for it. */
static enum lahar_lead join(struct waiting *waiting, bool is_overdue, uint64_t now_ns)
{
    struct lahar_journals *journals = waiting->journals;
    if (waiting->end_ns != LAHAR_WAIT_FOREVER && waiting->end_ns <= now_ns + patience_ns) {
        return LAHAR_LEAD_REFUSED;
    }
    struct lahar_journal *sole = lahar_journals_find_sole(journals);
    if (sole == NULL) {
        return LAHAR_LEAD_REFUSED;
    }
    arrive(waiting);
    if (!is_overdue && !completes_group(waiting)) {
        return lahar_journal_is_held(sole) ? LAHAR_LEAD_HELD : LAHAR_LEAD_NOTHING;
    }
    const enum lahar_lead outcome = lead(waiting, sole);
    if (outcome == LAHAR_LEAD_NOTHING) {
        arrive(waiting);
    }
    return outcome;
}

/* One look and, if there is time, one write, one sleep or one round of steps. LAHAR_BUSY: not
 * yet. *is_overdue: the group has had its time. */
static lahar_status wait_once(struct waiting *waiting, bool *is_overdue, lahar_error *error)
{
    struct lahar_journals *journals = waiting->journals;
    const uint64_t end_ns = waiting->end_ns;
    const bool is_timed = end_ns != LAHAR_WAIT_FOREVER && end_ns != LAHAR_NO_WAIT;
    const uint64_t now_ns = is_timed ? journals->io->ops->monotonic_ns(journals->io) : 0;
    const uint32_t ticket = lahar_gate_enter(&waiting->gate->gate);
    lahar_journals_raise_wanted(journals, above(journals, waiting->id));
    lahar_status status = check_durable(journals, waiting->id, error);
    const enum lahar_lead outcome =
        status == LAHAR_BUSY ? join(waiting, *is_overdue, now_ns) : LAHAR_LEAD_REFUSED;
    if (status != LAHAR_OK && outcome == LAHAR_LEAD_REFUSED) {
        lahar_journals_want(journals, above(journals, waiting->id));
    }
    if (status == LAHAR_BUSY && outcome != LAHAR_LEAD_WROTE) {
        if (now_ns >= end_ns) {
            status = lahar_fail(error, LAHAR_TIMEOUT, "id %llu is not durable yet",
                                (unsigned long long)waiting->id);
        } else if (journals->has_threads) {
            *is_overdue = sleep_in_group(waiting, ticket, outcome == LAHAR_LEAD_HELD);
        } else if (!lahar_journals_run(journals)) {
            status = lahar_fail(error, LAHAR_TIMEOUT, "no step can make id %llu durable",
                                (unsigned long long)waiting->id);
        }
    }
    lahar_gate_leave(&waiting->gate->gate);
    return status;
}

lahar_status lahar_journals_wait(struct lahar_journals *journals, uint64_t id, uint64_t deadline_ns,
                                 lahar_error *error)
{
    lahar_status status = check_durable(journals, id, error);
    if (status == LAHAR_OK) {
        return LAHAR_OK;
    }
    if (status != LAHAR_BUSY) {
        lahar_journals_want(journals, above(journals, id));
        return status;
    }
    struct waiting waiting = {
        .journals = journals,
        .gate = lahar_durable_wait_gate(&journals->durable_wait, id),
        .id = id,
        .end_ns = lahar_journals_end_of(journals, deadline_ns),
    };
    bool is_overdue = false;
    (void)atomic_fetch_add_explicit(&journals->durable_waiters, 1, memory_order_relaxed);
    do {
        status = wait_once(&waiting, &is_overdue, error);
    } while (status == LAHAR_BUSY);
    (void)atomic_fetch_sub_explicit(&journals->durable_waiters, 1, memory_order_relaxed);
    lahar_durable_wait_help(waiting.gate);
    depart(&waiting);
    return status;
}

lahar_status lahar_journals_notify(struct lahar_journals *journals, uint64_t id,
                                   lahar_durable_callback callback, void *context,
                                   lahar_error *error)
{
    if (id == UINT64_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "no event has the id %llu", (unsigned long long)id);
    }
    LAHAR_TRY(lahar_durable_wait_add(&journals->durable_wait, id, callback, context, error));
    lahar_journals_want(journals, above(journals, id));
    /* What rose before the request was added did not see it. */
    if (lahar_journals_durable_id(journals) > id ||
        atomic_load_explicit(&journals->state, memory_order_seq_cst) >= LAHAR_JOURNALS_POISONED) {
        lahar_gate_signal(&journals->durable_wait.changed);
    }
    return LAHAR_OK;
}
