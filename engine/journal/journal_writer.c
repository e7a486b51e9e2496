/* The writer of one journal: finds what is published, puts it into the file, makes it
 * durable when somebody waits or the time has come, and prepares the next chunk.
 *
 * Everything is a step by the one thread that owns the journal (journal_owner.c), which does not
 * block but in a write that a waiting producer drives itself. What is in
 * flight never changes: a write takes whole pages below the published end straight
 * from the image, and what is small, or ends within a page, is copied to a bounce buffer
 * first. The next write starts with the page that the last one left unfinished, so two writes
 * in flight never touch the same page.
 *
 * When somebody waits (urgent), writes are durable ones, provided that all below them in the
 * chunk is durable or will be; what was written without that is synced first. */
#include "engine/journal/journals.h"

#include <string.h>

#include "io/base/error.h"

enum {
    PAGE = LAHAR_IO_ALIGNMENT,
    WRITE_MAX = 1024 * 1024,
    JUMBO_WRITE_MAX = 4 * 1024 * 1024,
    LAZY_BYTES = 256 * 1024,        /* this much is written at once even if nobody waits */
    WRITE_MAX_BESIDE = 256 * 1024,  /* ... while commits are used, which wait for it */
    COMMIT_CHUNKS = 4,              /* left to the first journal while commits are used */
    BACKLOG_BYTES = 2 * 1024 * 1024 /* of all journals, while commits are used */
};

/* How long less is collected when nobody waits. */
static const uint64_t lazy_ns = 2000000;
/* The number of active journals changes at most this often. */
static const uint64_t grow_interval_ns = 20000000;
static const uint64_t none_interval_ns = 1000000000;

static uint32_t page_down(uint32_t bytes)
{
    return bytes & ~(uint32_t)(PAGE - 1);
}

static uint32_t page_up(uint32_t bytes)
{
    return page_down(bytes + PAGE - 1);
}

/* --- life ------------------------------------------------------------------------------- */

lahar_status lahar_journal_init(struct lahar_journals *journals, uint32_t number,
                                lahar_error *error)
{
    struct lahar_journal *journal = &journals->journals[number];
    journal->journals = journals;
    journal->number = number;
    journal->ring = &journals->rings[number];
    journal->writer = &journals->writers[number % journals->writer_count];
    journal->sync.journal = journal;
    journal->sync.role = LAHAR_WRITE_SYNC;
    journal->jumbo.journal = journal;
    journal->jumbo.role = LAHAR_WRITE_JUMBO;
    (void)pthread_mutex_init(&journal->mutex, NULL);
    for (int i = 0; i < LAHAR_JOURNAL_WRITES; i++) {
        struct lahar_write *write = &journal->writes[i];
        write->journal = journal;
        write->role = LAHAR_WRITE_CHAIN;
        write->bounce_allocation =
            lahar_allocate(journals->allocator, LAHAR_JOURNAL_BOUNCE_SIZE + PAGE);
        if (write->bounce_allocation == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the buffers of a journal");
        }
        write->bounce =
            (uint8_t *)(((uintptr_t)write->bounce_allocation + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    }
    return LAHAR_OK;
}

static void release_chunks(struct lahar_journals *journals, struct lahar_chunk *chunk)
{
    while (chunk != NULL) {
        struct lahar_chunk *next = chunk->next;
        if (atomic_fetch_sub(&chunk->file->regions_held, 1) == 1) {
            lahar_segment_file_close(&journals->files, chunk->file);
        }
        lahar_chunk_put(&journals->chunks, chunk);
        chunk = next;
    }
}

void lahar_journal_deinit(struct lahar_journal *journal)
{
    struct lahar_journals *journals = journal->journals;
    if (journals == NULL) {
        return;
    }
    struct lahar_segment_file *file = journal->file;
    if (file != NULL) {
        const uint32_t left = file->region_count - file->region_used;
        if (left != 0 && atomic_fetch_sub(&file->regions_held, left) == left) {
            lahar_segment_file_close(&journals->files, file);
        }
    }
    release_chunks(journals, journal->oldest);
    release_chunks(journals, journal->jumbos);
    for (int i = 0; i < LAHAR_JOURNAL_WRITES; i++) {
        lahar_release(journals->allocator, journal->writes[i].bounce_allocation);
    }
    (void)pthread_mutex_destroy(&journal->mutex);
}

/* --- finding what is published -------------------------------------------------------- */

static bool scan_chunk(struct lahar_chunk *chunk)
{
    const uint32_t start = chunk->scanned;
    uint32_t batches = 0;
    while (chunk->scanned < chunk->capacity) {
        if (chunk->capacity - chunk->scanned < LAHAR_FRAME_HEADER_SIZE) {
            chunk->scanned = chunk->capacity;
            break;
        }
        /* Pairs with the exchange of the size word: the frame behind it is complete. */
        const uint32_t size =
            atomic_load_explicit(lahar_ring_size_word(chunk, chunk->scanned), memory_order_seq_cst);
        if (size == 0) {
            break;
        }
        struct lahar_frame frame;
        lahar_frame_load(chunk->image + chunk->scanned, &frame);
        if (frame.kind == LAHAR_FRAME_PAD) {
            chunk->used = chunk->scanned + LAHAR_FRAME_HEADER_SIZE;
            chunk->scanned = chunk->capacity;
        } else {
            batches += frame.kind == LAHAR_FRAME_BATCH;
            chunk->scanned += size;
            chunk->used = chunk->scanned;
        }
    }
    if (batches != 0) {
        (void)atomic_fetch_add_explicit(&chunk->scanned_batches, batches, memory_order_release);
    }
    return chunk->scanned != start;
}

bool lahar_journal_scan(struct lahar_journal *journal)
{
    bool has_found = false;
    while (journal->scanning != NULL) {
        has_found |= scan_chunk(journal->scanning);
        if (journal->scanning->scanned < journal->scanning->capacity ||
            journal->scanning->next == NULL) {
            break;
        }
        journal->scanning = journal->scanning->next;
    }
    return has_found;
}

/* --- making durable ---------------------------------------------------------------------- */

static uint64_t sync_interval(const struct lahar_journals *journals)
{
    const bool is_none = journals->durability == LAHAR_DURABILITY_NONE &&
                         !atomic_load_explicit(&journals->is_interval_used, memory_order_relaxed);
    return is_none && journals->interval_ns < none_interval_ns ? none_interval_ns
                                                               : journals->interval_ns;
}

static bool has_plain_write(const struct lahar_journal *journal)
{
    for (int i = 0; i < LAHAR_JOURNAL_WRITES; i++) {
        if (journal->writes[i].is_in_use && journal->writes[i].op.kind == LAHAR_IO_OP_WRITE) {
            return true;
        }
    }
    return false;
}

/* The oldest chunk with written bytes that no sync in flight covers. */
static struct lahar_chunk *find_unsynced(const struct lahar_journal *journal)
{
    struct lahar_chunk *chunk = journal->oldest;
    while (chunk != NULL && chunk->synced_ahead >= chunk->written) {
        chunk = chunk->next;
    }
    return chunk;
}

static bool submit_sync(struct lahar_journal *journal, uint64_t now_ns)
{
    struct lahar_chunk *chunk = find_unsynced(journal);
    if (journal->sync.is_in_use || chunk == NULL) {
        return false;
    }
    if (lahar_journals_is_urgent(journal->journals)) {
        if (has_plain_write(journal)) {
            return false; /* its bytes shall be among those synced */
        }
    } else if (now_ns - chunk->unsynced_since_ns < sync_interval(journal->journals)) {
        return false;
    }
    struct lahar_write *sync = &journal->sync;
    for (struct lahar_chunk *c = chunk; c != NULL; c = c->next) {
        if (c->file == chunk->file && c->synced_ahead < c->written) {
            c->sync_target = c->written;
            c->synced_ahead = c->written;
        }
    }
    sync->chunk = chunk;
    sync->attempts = 0;
    sync->is_in_use = true;
    sync->op =
        (struct lahar_io_op){.kind = LAHAR_IO_OP_SYNC, .file = chunk->file->file, .context = sync};
    lahar_journal_submit(sync);
    return true;
}

/* --- writing ------------------------------------------------------------------------------- */

static struct lahar_chunk *find_unsubmitted(const struct lahar_journal *journal)
{
    struct lahar_chunk *chunk = journal->oldest;
    while (chunk != NULL && chunk->submitted >= chunk->used) {
        chunk = chunk->next;
    }
    return chunk;
}

/* Whether the page that the next write of the chunk starts with is in flight. */
static bool is_page_in_flight(const struct lahar_journal *journal, const struct lahar_chunk *chunk)
{
    for (int i = 0; i < LAHAR_JOURNAL_WRITES; i++) {
        const struct lahar_write *write = &journal->writes[i];
        if (write->is_in_use && write->chunk == chunk &&
            write->page_end > page_down(chunk->submitted)) {
            return true;
        }
    }
    return false;
}

/* Whether to write now what is pending in the chunk, or to let more come. */
static bool is_due(struct lahar_journal *journal, const struct lahar_chunk *chunk, uint64_t now_ns)
{
    if (!journal->journals->has_threads || lahar_journals_is_urgent(journal->journals) ||
        chunk->used - chunk->submitted >= LAZY_BYTES || chunk->scanned == chunk->capacity) {
        return true;
    }
    if (journal->pending_since_ns == 0) {
        journal->pending_since_ns = now_ns;
    }
    return now_ns - journal->pending_since_ns >= lazy_ns;
}

/* Fills in what of the chunk the write takes. */
static void choose_bytes(struct lahar_write *write, struct lahar_chunk *chunk)
{
    const uint32_t limit =
        lahar_journals_expects_commits(write->journal->journals) ? WRITE_MAX_BESIDE : WRITE_MAX;
    write->chunk = chunk;
    write->page_start = page_down(chunk->submitted);
    const uint32_t size = page_up(chunk->used) - write->page_start;
    if (size <= LAHAR_JOURNAL_BOUNCE_SIZE) {
        const uint32_t bytes = chunk->used - write->page_start;
        memcpy(write->bounce, chunk->image + write->page_start, bytes);
        memset(write->bounce + bytes, 0, size - bytes);
        write->end = chunk->used;
        write->page_end = write->page_start + size;
        write->op.data = write->bounce;
    } else {
        const uint32_t whole = page_down(chunk->used);
        write->end = whole - write->page_start > limit ? write->page_start + limit : whole;
        write->page_end = write->end;
        write->op.data = chunk->image + write->page_start;
    }
    write->op.size = write->page_end - write->page_start;
    write->op.offset = chunk->file_offset + write->page_start;
    write->op.file = chunk->file->file;
    chunk->submitted = write->end;
}

static void grow_active(struct lahar_journals *journals, uint64_t now_ns)
{
    uint32_t active = atomic_load_explicit(&journals->active, memory_order_relaxed);
    const uint32_t usable = lahar_journals_usable(journals);
    if (active >= usable ||
        now_ns - atomic_load_explicit(&journals->active_changed_ns, memory_order_relaxed) <
            grow_interval_ns) {
        return;
    }
    atomic_store_explicit(&journals->active_changed_ns, now_ns, memory_order_relaxed);
    const uint32_t more = 2 * active < usable ? 2 * active : usable;
    if (atomic_compare_exchange_strong(&journals->active, &active, more)) {
        /* The writers of the new ones prepare their first chunks. */
        lahar_journals_call_all(journals, LAHAR_ATTENTION_SPACE);
    }
}

/* More journals when this one falls behind. */
static void grow_for_backlog(struct lahar_journal *journal, const struct lahar_chunk *chunk,
                             uint64_t now_ns)
{
    struct lahar_journals *journals = journal->journals;
    const uint64_t claimed = lahar_ring_position(&journals->ring_set, journal->ring);
    if (claimed - (chunk->base + chunk->submitted) >= journals->chunks.chunk_size / 2) {
        grow_active(journals, now_ns);
    }
}

/* More journals when commits have to wait for a write in flight to end before theirs begins. */
static void grow_for_waiters(struct lahar_journals *journals, uint64_t now_ns)
{
    if (lahar_journals_for_waiters(journals) >
        atomic_load_explicit(&journals->active, memory_order_relaxed)) {
        grow_active(journals, now_ns);
    }
}

/* Takes the next write and fills it in. */
static struct lahar_write *begin_write(struct lahar_journal *journal, struct lahar_chunk *chunk,
                                       bool is_durable)
{
    struct lahar_write *write =
        &journal->writes[(journal->first_write + journal->write_count) % LAHAR_JOURNAL_WRITES];
    journal->write_count++;
    journal->pending_since_ns = 0;
    write->is_in_use = true;
    write->is_done = false;
    write->attempts = 0;
    choose_bytes(write, chunk);
    if (chunk->synced_ahead < write->page_start ||
        atomic_load_explicit(&journal->journals->lacks_dsync, memory_order_relaxed)) {
        is_durable = false;
    }
    write->op.kind = is_durable ? LAHAR_IO_OP_WRITE_DURABLE : LAHAR_IO_OP_WRITE;
#ifdef LAHAR_PLANTED_BUGS
    if (journal->journals->planted_bugs & LAHAR_JOURNAL_BUG_ACK_BEFORE_SYNC) {
        write->op.kind = LAHAR_IO_OP_WRITE;
    }
#endif
    write->op.context = write;
    if (is_durable) {
        chunk->synced_ahead = write->end;
    }
    return write;
}

/* Whether what is pending in the chunk is one small durable write with nothing before it. */
static bool is_small_and_next(const struct lahar_journal *journal, const struct lahar_chunk *chunk)
{
    const struct lahar_journals *journals = journal->journals;
    return journal->write_count == 0 && !journal->sync.is_in_use &&
           find_unsynced(journal) == NULL &&
           page_up(chunk->used) - page_down(chunk->submitted) <= LAHAR_JOURNAL_BOUNCE_SIZE &&
           !atomic_load_explicit(&journals->lacks_dsync, memory_order_relaxed);
}

/* Whether threads that wait for one another will write this themselves. */
static bool is_left_to_group(struct lahar_journal *journal, const struct lahar_chunk *chunk)
{
    struct lahar_journals *journals = journal->journals;
    return lahar_commit_group_is_forming(journals) && is_small_and_next(journal, chunk) &&
           atomic_load_explicit(&journals->durable_wait.request_count, memory_order_relaxed) == 0 &&
           lahar_journals_find_sole(journals) == journal;
}

static bool submit_write(struct lahar_journal *journal, uint64_t now_ns)
{
    struct lahar_journals *journals = journal->journals;
    struct lahar_chunk *chunk = find_unsubmitted(journal);
    if (chunk == NULL) {
        journal->pending_since_ns = 0;
        return false;
    }
    const bool is_urgent = lahar_journals_is_urgent(journals);
    if (journal->write_count == LAHAR_JOURNAL_WRITES || is_page_in_flight(journal, chunk)) {
        if (is_urgent) {
            grow_for_waiters(journals, now_ns);
        }
        return false;
    }
    if (!is_due(journal, chunk, now_ns)) {
        return false;
    }
    if (is_urgent && (find_unsynced(journal) != NULL || has_plain_write(journal))) {
        return false; /* the sync that waits for these comes first */
    }
    if (is_urgent && is_left_to_group(journal, chunk)) {
        return false;
    }
    grow_for_backlog(journal, chunk, now_ns);
    /* Beside commits a load writes durably too: what waits to be synced would hold them up. */
    struct lahar_write *write =
        begin_write(journal, chunk, is_urgent || lahar_journals_expects_commits(journals));
    lahar_journal_submit(write);
    return true;
}

enum lahar_lead lahar_journal_drive(struct lahar_journal *journal)
{
    struct lahar_journals *journals = journal->journals;
    struct lahar_io *io = journals->io;
    (void)lahar_journal_scan(journal);
    struct lahar_chunk *chunk = find_unsubmitted(journal);
    if (chunk == NULL && journal->write_count == 0 && find_unsynced(journal) == NULL) {
        return LAHAR_LEAD_NOTHING;
    }
    if (chunk == NULL || !is_small_and_next(journal, chunk) ||
        atomic_load_explicit(&journals->state, memory_order_acquire) >= LAHAR_JOURNALS_POISONED) {
        return LAHAR_LEAD_REFUSED;
    }
    struct lahar_write *write = begin_write(journal, chunk, true);
    write->is_driven = true;
    io->ops->execute(io, &write->op);
    lahar_journal_complete(write, io->ops->monotonic_ns(io));
    write->is_driven = false;
    return LAHAR_LEAD_WROTE;
}

/* --- jumbo batches: written in pieces, then synced ------------------------------------------ */

static bool step_jumbo(struct lahar_journal *journal)
{
    struct lahar_write *write = &journal->jumbo;
    if (write->is_in_use) {
        return false;
    }
    (void)pthread_mutex_lock(&journal->mutex);
    struct lahar_chunk *chunk = journal->jumbos;
    (void)pthread_mutex_unlock(&journal->mutex);
    if (chunk == NULL ||
        atomic_load_explicit(lahar_ring_size_word(chunk, 0), memory_order_seq_cst) == 0) {
        return false;
    }
    atomic_store_explicit(&chunk->scanned_batches, 1, memory_order_release);
    write->chunk = chunk;
    write->attempts = 0;
    write->is_in_use = true;
    write->page_start = chunk->written;
    const uint32_t left = chunk->capacity - chunk->written;
    write->page_end = chunk->written + (left > JUMBO_WRITE_MAX ? JUMBO_WRITE_MAX : left);
    write->end = write->page_end;
    write->op = (struct lahar_io_op){
        .kind = left == 0 ? LAHAR_IO_OP_SYNC : LAHAR_IO_OP_WRITE,
        .file = chunk->file->file,
        .data = chunk->image + write->page_start,
        .offset = chunk->file_offset + write->page_start,
        .size = write->page_end - write->page_start,
        .context = write,
    };
    lahar_journal_submit(write);
    return true;
}

/* --- preparing chunks ------------------------------------------------------------------------ */

/* How much may wait to be written in one journal while threads wait for stable storage: a commit
 * waits for what is below it in all journals. */
static uint64_t backlog_max(const struct lahar_journals *journals)
{
    const uint64_t share = BACKLOG_BYTES / lahar_journals_usable(journals);
    const uint64_t least = journals->chunks.chunk_size / 2;
    return share > least ? share : least;
}

/* Bytes claimed and not yet written. */
static uint64_t backlog(const struct lahar_journal *journal)
{
    const struct lahar_chunk *chunk = journal->oldest;
    while (chunk != NULL && chunk->next != NULL && chunk->written == chunk->used &&
           chunk->scanned == chunk->capacity) {
        chunk = chunk->next;
    }
    return chunk == NULL ? 0
                         : lahar_ring_position(&journal->journals->ring_set, journal->ring) -
                               (chunk->base + chunk->written);
}

/* Whether producers will need one more chunk soon. */
static bool wants_chunk(const struct lahar_journal *journal)
{
    const struct lahar_journals *journals = journal->journals;
    const struct lahar_chunk *newest = journal->newest;
    if (newest == NULL) {
        return journal->number < atomic_load_explicit(&journals->active, memory_order_acquire);
    }
    const uint64_t word = atomic_load_explicit(&journal->ring->claim, memory_order_acquire);
    if (lahar_ring_number(word) != newest->number) {
        return false; /* the newest has not been opened yet */
    }
    /* The slot of the new chunk must not belong to one that producers may still look up. */
    if (newest->number + 1 - journal->scanning->number >= LAHAR_RING_SLOTS) {
        return false;
    }
    if (lahar_journals_expects_commits(journals) && backlog(journal) > backlog_max(journals)) {
        return false;
    }
    /* A store that has written little stays small. */
    return newest->number > 1 ||
           lahar_ring_claimed(&journals->ring_set, word) > newest->capacity / 8;
}

static void request_file(struct lahar_journal *journal)
{
    struct lahar_journals *journals = journal->journals;
    if (!journal->wants_file) {
        journal->wants_file = true;
        (void)atomic_fetch_add_explicit(&journals->files_wanted, 1, memory_order_seq_cst);
    }
    if (journals->has_threads) {
        lahar_gate_signal(&journals->file_gate);
    } else {
        (void)lahar_journals_prepare_file(journals);
    }
}

static bool take_region(struct lahar_journal *journal)
{
    struct lahar_journals *journals = journal->journals;
    if (journal->file == NULL) {
        journal->file = lahar_segment_pool_take(&journals->files);
        if (journal->file == NULL) {
            request_file(journal);
            journal->file = lahar_segment_pool_take(&journals->files);
        }
        if (journal->file != NULL && journal->wants_file) {
            journal->wants_file = false;
            (void)atomic_fetch_sub_explicit(&journals->files_wanted, 1, memory_order_seq_cst);
        }
    }
    return journal->file != NULL;
}

static bool prepare(struct lahar_journal *journal)
{
    struct lahar_journals *journals = journal->journals;
    if (!wants_chunk(journal) || !take_region(journal)) {
        return false;
    }
    const bool leaves_reserve = journal->number != 0 && lahar_journals_expects_commits(journals);
    struct lahar_chunk *chunk =
        lahar_chunk_take(&journals->chunks, leaves_reserve ? COMMIT_CHUNKS : 0);
    if (chunk == NULL) {
        return false;
    }
    struct lahar_segment_file *file = journal->file;
    chunk->journal = journal->number;
    chunk->number = journal->newest == NULL ? 1 : journal->newest->number + 1;
    chunk->base = (uint64_t)(chunk->number - 1) * chunk->capacity;
    chunk->file = file;
    chunk->file_offset =
        LAHAR_JOURNAL_HEADER_SIZE + (uint64_t)file->region_used * file->region_size;
    chunk->seed = file->seed;
    file->region_used++;
    if (file->region_used == file->region_count) {
        journal->file = NULL;
        if (journals->has_threads) {
            request_file(journal);
        }
    }
    if (journal->newest == NULL) {
        journal->oldest = chunk;
        journal->scanning = chunk;
    } else {
        journal->newest->next = chunk;
    }
    journal->newest = chunk;
    atomic_store_explicit(&journal->ring->slots[chunk->number % LAHAR_RING_SLOTS], chunk,
                          memory_order_release);
    atomic_store_explicit(&journal->ring->prepared, chunk->number, memory_order_seq_cst);
    lahar_gate_signal(&journals->space);
    return true;
}

bool lahar_journal_needs_writer(const struct lahar_journal *journal)
{
    return find_unsubmitted(journal) != NULL || journal->write_count != 0 || wants_chunk(journal);
}

/* --- the step ----------------------------------------------------------------------------- */

/* Operations that met a full disk or a refusing queue. */
static bool retry_held(struct lahar_journal *journal, uint64_t now_ns)
{
    if (now_ns < journal->retry_ns) {
        return false;
    }
    journal->retry_ns = 0;
    bool has_tried = false;
    for (uint32_t i = 0; i < journal->write_count; i++) {
        struct lahar_write *write =
            &journal->writes[(journal->first_write + i) % LAHAR_JOURNAL_WRITES];
        if (write->is_in_use && !write->is_in_flight && !write->is_done) {
            lahar_journal_submit(write);
            has_tried = true;
        }
    }
    struct lahar_write *others[] = {&journal->sync, &journal->jumbo};
    for (int i = 0; i < 2; i++) {
        if (others[i]->is_in_use && !others[i]->is_in_flight) {
            lahar_journal_submit(others[i]);
            has_tried = true;
        }
    }
    return has_tried;
}

bool lahar_journal_step(struct lahar_journal *journal, uint64_t now_ns)
{
    const uint32_t state = atomic_load_explicit(&journal->journals->state, memory_order_acquire);
    bool has_done = lahar_journal_scan(journal);
    if (state == LAHAR_JOURNALS_POISONED) {
        return has_done;
    }
    has_done |= retry_held(journal, now_ns);
    has_done |= prepare(journal);
    has_done |= submit_sync(journal, now_ns);
    while (submit_write(journal, now_ns)) {
        has_done = true;
    }
    has_done |= step_jumbo(journal);
    /* A chunk may have been finished long before its successor came. */
    has_done |= lahar_journal_advance(journal);
    return has_done;
}

enum lahar_attention lahar_journal_attention(const struct lahar_journal *journal)
{
    const struct lahar_chunk *chunk = find_unsubmitted(journal);
    if (journal->write_count == LAHAR_JOURNAL_WRITES ||
        is_page_in_flight(journal,
                          chunk == NULL && journal->scanning != NULL ? journal->scanning : chunk)) {
        return LAHAR_ATTENTION_SPACE;
    }
    return chunk != NULL ? LAHAR_ATTENTION_WAIT : LAHAR_ATTENTION_ANY;
}

uint64_t lahar_journal_next_ns(const struct lahar_journal *journal)
{
    uint64_t next_ns = UINT64_MAX;
    if (atomic_load_explicit(&journal->journals->state, memory_order_acquire) ==
        LAHAR_JOURNALS_POISONED) {
        return next_ns; /* what was due never gets done */
    }
    if (journal->retry_ns != 0) {
        next_ns = journal->retry_ns;
    }
    if (journal->pending_since_ns != 0 && journal->pending_since_ns + lazy_ns < next_ns) {
        next_ns = journal->pending_since_ns + lazy_ns;
    }
    const struct lahar_chunk *chunk = find_unsynced(journal);
    if (chunk != NULL && !journal->sync.is_in_use) {
        const uint64_t due_ns = chunk->unsynced_since_ns + sync_interval(journal->journals);
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}
