/* Opening, stopping and destroying the journal set; its health and statistics. */
#include "engine/journal/journals.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/journal/recovery_memory.h"
#include "io/base/error.h"

enum {
    WINDOW_MIN = 1 << 12,
    WINDOW_MAX = 1 << 20,
    WINDOW_BYTES_PER_ID = 1024, /* of memory: the link buffer is about 2 % of it */
    /* Commits that share a write. Fewer journals with larger writes are better than more
     * writes in flight, at which the commits of all wait for the slowest. */
    WAITERS_PER_JOURNAL = 64,
    JOURNALS_BESIDE = 2,     /* while commits are used: one for them, one for a load */
    COMMITS_REMEMBERED = 10, /* looks at the number of active journals: seconds */
    LOG_LINE_SIZE = 512,
    MESSAGE_INTERVAL_MS_MAX = 60000
};

static const uint64_t memory_min_bytes = UINT64_C(1) << 20;
static const uint64_t batch_max_bytes = UINT64_C(64) << 20;

/* --- shared ------------------------------------------------------------------------------- */

bool lahar_journals_is_urgent(const struct lahar_journals *journals)
{
    return atomic_load_explicit(&journals->wanted_id, memory_order_seq_cst) >
           atomic_load_explicit(&journals->catalog.durable_id, memory_order_seq_cst);
}

uint32_t lahar_journals_for_waiters(const struct lahar_journals *journals)
{
    const uint32_t count = atomic_load_explicit(&journals->durable_waiters, memory_order_relaxed) /
                           WAITERS_PER_JOURNAL;
    return count < 1 ? 1 : count < journals->writer_count ? count : journals->writer_count;
}

void lahar_journals_note_commit(struct lahar_journals *journals)
{
    if (atomic_load_explicit(&journals->commits_recent, memory_order_relaxed) !=
        COMMITS_REMEMBERED) {
        atomic_store_explicit(&journals->commits_recent, COMMITS_REMEMBERED, memory_order_relaxed);
    }
}

bool lahar_journals_expects_commits(const struct lahar_journals *journals)
{
    return atomic_load_explicit(&journals->commits_recent, memory_order_relaxed) != 0;
}

uint32_t lahar_journals_usable(const struct lahar_journals *journals)
{
    const uint32_t most = journals->journal_count;
    if (!lahar_journals_expects_commits(journals)) {
        return most;
    }
    const uint32_t waiters = lahar_journals_for_waiters(journals);
    const uint32_t enough = waiters > JOURNALS_BESIDE ? waiters : JOURNALS_BESIDE;
    return enough < most ? enough : most;
}

bool lahar_journals_is_write_full(const struct lahar_journals *journals)
{
    return atomic_load_explicit(&journals->journals_full, memory_order_seq_cst) != 0;
}

bool lahar_journals_is_full(const struct lahar_journals *journals)
{
    return lahar_journals_is_write_full(journals) ||
           atomic_load_explicit(&journals->is_file_short, memory_order_seq_cst) ||
           atomic_load_explicit(&journals->is_held, memory_order_seq_cst);
}

void lahar_journals_hold(struct lahar_journals *journals, bool is_held)
{
    atomic_store_explicit(&journals->is_held, is_held, memory_order_seq_cst);
}

void lahar_journals_call_all(struct lahar_journals *journals, enum lahar_attention least)
{
    for (uint32_t j = 0; j < journals->journal_count; j++) {
        lahar_ring_call(&journals->ring_set, j, least);
    }
}

void lahar_journals_raise_wanted(struct lahar_journals *journals, uint64_t id)
{
    uint64_t wanted = atomic_load_explicit(&journals->wanted_id, memory_order_seq_cst);
    while (wanted < id &&
           !atomic_compare_exchange_weak_explicit(&journals->wanted_id, &wanted, id,
                                                  memory_order_seq_cst, memory_order_seq_cst)) {
    }
}

uint64_t lahar_journals_end_of(const struct lahar_journals *journals, uint64_t wait_ns)
{
    if (wait_ns == LAHAR_NO_WAIT || wait_ns == LAHAR_WAIT_FOREVER) {
        return wait_ns;
    }
    const uint64_t now_ns = journals->io->ops->monotonic_ns(journals->io);
    return wait_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + wait_ns;
}

bool lahar_journal_is_behind(const struct lahar_journal *journal)
{
    return lahar_ring_position(&journal->journals->ring_set, journal->ring) >
           atomic_load_explicit(&journal->ring->durable, memory_order_acquire);
}

void lahar_journals_want(struct lahar_journals *journals, uint64_t id)
{
    lahar_journals_raise_wanted(journals, id);
    for (uint32_t j = 0; j < journals->journal_count; j++) {
        if (lahar_journal_is_behind(&journals->journals[j])) {
            lahar_journal_call_owner(&journals->journals[j]);
        }
    }
}

void lahar_journals_log(struct lahar_journals *journals, lahar_log_level level, const char *format,
                        ...)
{
    if (journals->log == NULL) {
        return;
    }
    char line[LOG_LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= 0) {
        journals->log(journals->log_context, level, line);
    }
}

void lahar_journals_poison(struct lahar_journals *journals, const lahar_error *error)
{
    (void)pthread_mutex_lock(&journals->mutex);
    const bool is_first = journals->error.status == LAHAR_OK;
    if (is_first) {
        journals->error = *error;
        atomic_store_explicit(&journals->state, LAHAR_JOURNALS_POISONED, memory_order_seq_cst);
    }
    (void)pthread_mutex_unlock(&journals->mutex);
    if (is_first) {
        lahar_journals_log(journals, LAHAR_LOG_ERROR, "journals poisoned: %s", error->message);
        lahar_durable_wait_wake_all(&journals->durable_wait);
        lahar_gate_signal(&journals->space);
    }
}

lahar_status lahar_journals_health(struct lahar_journals *journals, lahar_error *error)
{
    if (atomic_load_explicit(&journals->state, memory_order_acquire) < LAHAR_JOURNALS_POISONED) {
        return LAHAR_OK;
    }
    (void)pthread_mutex_lock(&journals->mutex);
    const lahar_error cause = journals->error;
    (void)pthread_mutex_unlock(&journals->mutex);
    if (cause.status == LAHAR_OK) {
        return lahar_fail(error, LAHAR_CLOSED, "the journals are stopped");
    }
    const lahar_status status =
        lahar_fail(error, LAHAR_POISONED, "writes are refused: %s", cause.message);
    if (error != NULL) {
        error->sys_errno = cause.sys_errno;
    }
    return status;
}

/* --- opening ------------------------------------------------------------------------------- */

static void wake_writer(void *context, uint32_t journal)
{
    struct lahar_journals *journals = context;
    struct lahar_writer *writer = journals->journals[journal].writer;
    if (journals->has_threads) {
        journals->io->ops->queue_wake(journals->io, writer->queue);
    }
}

static void durable_rose(void *context, uint64_t from_id, uint64_t to_id)
{
    struct lahar_journals *journals = context;
    lahar_commit_group_expect(journals);
    lahar_durable_wait_rose(&journals->durable_wait, from_id, to_id,
                            atomic_load_explicit(&journals->durable_waiters, memory_order_relaxed));
}

static void walked(void *context)
{
    struct lahar_journals *journals = context;
    lahar_gate_signal(&journals->space);
}

static uint64_t window_of(uint64_t memory_bytes)
{
    uint64_t window = WINDOW_MIN;
    while (window < WINDOW_MAX && 2 * window * WINDOW_BYTES_PER_ID <= memory_bytes) {
        window *= 2;
    }
    return window;
}

struct lahar_name_scan {
    uint64_t first_number; /* above every number in use */
};

static lahar_status visit_name(void *context, const char *name, bool is_directory)
{
    struct lahar_name_scan *scan = context;
    uint64_t number;
    if (!is_directory && strlen(name) < LAHAR_JOURNAL_NAME_SIZE &&
        lahar_journal_file_number(name, &number) && number >= scan->first_number) {
        scan->first_number = number + 1;
    }
    return LAHAR_OK;
}

/* What needs no memory, no file and no thread. */
static void set_up(struct lahar_journals *journals, const struct lahar_journals_options *options)
{
    journals->io = options->io;
    journals->log = options->log;
    journals->log_context = options->log_context;
    journals->durability = options->durability == LAHAR_DURABILITY_STORE ? LAHAR_DURABILITY_INTERVAL
                                                                         : options->durability;
    const uint32_t interval_ms = options->sync_interval_ms == 0 ? 100 : options->sync_interval_ms;
    journals->interval_ns =
        UINT64_C(1000000) *
        (interval_ms < MESSAGE_INTERVAL_MS_MAX ? interval_ms : MESSAGE_INTERVAL_MS_MAX);
    journals->has_threads = options->start_threads;
    const uint64_t memory =
        options->memory_bytes < memory_min_bytes ? memory_min_bytes : options->memory_bytes;
    lahar_chunk_pool_init(&journals->chunks, journals->allocator, memory);
    const uint64_t chunk_count = memory / journals->chunks.chunk_size;
    uint32_t count = options->journal_count < 1                     ? 1
                     : options->journal_count > LAHAR_JOURNAL_COUNT ? LAHAR_JOURNAL_COUNT
                                                                    : options->journal_count;
    if (count > chunk_count / 4) {
        count = (uint32_t)(chunk_count / 4);
    }
    journals->journal_count = count;
    const uint32_t processors = journals->has_threads ? lahar_io_processor_count() : 1;
    journals->writer_count = processors < count ? processors : count;
    journals->batch_limit_bytes = memory / 4 < batch_max_bytes ? memory / 4 : batch_max_bytes;
    journals->first_id = options->next_id;
    atomic_init(&journals->active, 1);
    lahar_gate_init(&journals->space);
    lahar_gate_init(&journals->file_gate);
    lahar_gate_init(&journals->started);
    (void)pthread_mutex_init(&journals->mutex, NULL);
    (void)pthread_mutex_init(&journals->alone, NULL);
    lahar_durable_wait_init(&journals->durable_wait, journals->allocator);
#ifdef LAHAR_PLANTED_BUGS
    journals->planted_bugs = options->planted_bugs;
    journals->ring_set.planted_bugs = options->planted_bugs;
#endif
}

static lahar_status set_up_files(struct lahar_journals *journals,
                                 const struct lahar_journals_options *options,
                                 const struct lahar_journal_recovery *recovery, lahar_error *error)
{
    struct lahar_name_scan scan = {1};
    const lahar_status listed =
        journals->io->ops->list(journals->io, journals->directory, visit_name, &scan, error);
    lahar_segment_pool_init(&journals->files, journals->io, journals->directory,
                            journals->allocator, options->store_id, options->session,
                            journals->chunks.chunk_size, scan.first_number);
#ifdef LAHAR_PLANTED_BUGS
    journals->files.skips_directory_sync =
        (options->planted_bugs & LAHAR_JOURNAL_BUG_NO_DIRECTORY_SYNC) != 0;
#endif
    LAHAR_TRY(listed);
    const struct lahar_recovery_memory *memory = recovery == NULL ? NULL : recovery->memory;
    for (size_t i = 0; memory != NULL && i < memory->file_count; i++) {
        const struct lahar_recovered_file *file = &memory->files[i];
        LAHAR_TRY(lahar_segment_pool_add_found(&journals->files, file->number, file->size_bytes,
                                               file->is_whole, file->end_id, error));
    }
    lahar_segment_pool_forget(&journals->files, 0);
    return LAHAR_OK;
}

static void set_up_rings(struct lahar_journals *journals, uint64_t next_id)
{
    struct lahar_ring_set *set = &journals->ring_set;
    set->io = journals->io;
    set->links = &journals->catalog.links;
    set->chunk_size = journals->chunks.chunk_size;
    set->half_window = (journals->catalog.links.mask + 1) / 2;
    set->walked_id = &journals->catalog.published_id;
    set->durable_id = &journals->catalog.durable_id;
    set->wake = wake_writer;
    set->context = journals;
    set->rings = journals->rings;
    lahar_ring_set_init(set, next_id, UINT64_MAX);
    for (uint32_t j = 0; j < LAHAR_JOURNAL_COUNT; j++) {
        journals->catalog.journal_durable[j] = &journals->rings[j].durable;
    }
    journals->catalog.durable_rose = durable_rose;
    journals->catalog.walked = walked;
    journals->catalog.context = journals;
}

/* Allocates the set on a cache line; the block it lies in is kept in front of it. */
static struct lahar_journals *allocate(const lahar_allocator *allocator)
{
    const size_t align = LAHAR_CACHE_LINE;
    uint8_t *block = lahar_allocate_zeroed(allocator, 1, sizeof(struct lahar_journals) + 2 * align);
    if (block == NULL) {
        return NULL;
    }
    const uintptr_t place = ((uintptr_t)block + sizeof(void *) + align - 1) & ~(align - 1);
    struct lahar_journals *journals = (struct lahar_journals *)place;
    memcpy((uint8_t *)place - sizeof(void *), &block, sizeof block);
    journals->allocator = allocator;
    return journals;
}

lahar_status lahar_journals_open(const struct lahar_journals_options *options,
                                 struct lahar_journal_recovery *recovery,
                                 struct lahar_journals **journals_out, lahar_error *error)
{
    *journals_out = NULL;
    if (options->next_id == 0) {
        return lahar_fail(error, LAHAR_INVALID, "ids begin at 1");
    }
    struct lahar_journals *journals = allocate(options->allocator);
    const size_t path_size = strlen(options->directory) + 1;
    if (journals == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the journals");
    }
    set_up(journals, options);
    lahar_status status = lahar_catalog_init(&journals->catalog, journals->allocator,
                                             &journals->chunks, &journals->files, options->next_id,
                                             window_of(journals->chunks.limit_bytes),
                                             options->arrival_floor_ns, error);
    set_up_rings(journals, options->next_id);
    journals->directory = lahar_allocate(journals->allocator, path_size);
    if (journals->directory == NULL) {
        lahar_segment_pool_init(&journals->files, journals->io, "", journals->allocator, 0, 0, 1,
                                1);
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the journals");
    } else {
        memcpy(journals->directory, options->directory, path_size);
        const lahar_status files = set_up_files(journals, options, recovery, error);
        status = status == LAHAR_OK ? files : status;
    }
    for (uint32_t j = 0; j < journals->journal_count && status == LAHAR_OK; j++) {
        journals->writers[j].journals = journals;
        journals->writers[j].number = j;
        status = lahar_journal_init(journals, j, error);
    }
    if (status == LAHAR_OK) {
        /* The first file is made here, so that a directory that cannot be written fails. A full
         * disk does not: the file is made when there is room. */
        lahar_error cause = {0};
        status = lahar_segment_pool_prepare(&journals->files, true, &cause);
        if (status == LAHAR_NO_SPACE) {
            atomic_store_explicit(&journals->is_file_short, true, memory_order_seq_cst);
            lahar_journals_log(journals, LAHAR_LOG_WARNING, "no journal file: %s", cause.message);
            status = LAHAR_OK;
        } else if (status != LAHAR_OK) {
            status = cause.status;
            if (error != NULL && error->status == LAHAR_OK) {
                *error = cause;
            }
        }
    }
    if (status == LAHAR_OK && recovery != NULL && recovery->memory != NULL) {
        status = lahar_catalog_adopt(&journals->catalog, recovery, error);
    }
    if (status == LAHAR_OK) {
        lahar_journals_calibrate(journals);
        /* A chunk is ready when this returns: an append need not wait for a writer. */
        (void)lahar_journal_step(&journals->journals[0],
                                 journals->io->ops->monotonic_ns(journals->io));
    }
    if (status == LAHAR_OK) {
        status = lahar_writers_start(journals, error);
    }
    if (status != LAHAR_OK) {
        journals->catalog.recovered = NULL; /* stays the caller's */
        lahar_journals_destroy(journals);
        return status;
    }
    if (recovery != NULL) {
        memset(recovery, 0, sizeof *recovery);
    }
    *journals_out = journals;
    return LAHAR_OK;
}

/* --- stopping ------------------------------------------------------------------------------- */

/* Leaves a frame that says that all ids were durable, so that the next recovery can tell
 * damage to the last batches from a torn tail. Its own loss does no harm. */
static void write_mark(struct lahar_journals *journals)
{
    struct lahar_ring_place place;
    for (uint32_t j = 0; j < journals->journal_count; j++) {
        if (lahar_ring_position(&journals->ring_set, &journals->rings[j]) != 0 &&
            lahar_ring_claim(&journals->ring_set, j, LAHAR_FRAME_HEADER_SIZE, &place)) {
            lahar_ring_publish_mark(&journals->ring_set, &place);
            return;
        }
    }
}

/* Whether everything claimed anywhere is on stable storage, frames without ids included. */
static bool is_all_durable(const struct lahar_journals *journals)
{
    for (uint32_t j = 0; j < journals->journal_count; j++) {
        if (lahar_ring_position(&journals->ring_set, &journals->rings[j]) >
            atomic_load_explicit(&journals->rings[j].durable, memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

/* Waits until no append is between its check and its publication. */
static lahar_status wait_for_appends(struct lahar_journals *journals, uint64_t end_ns,
                                     lahar_error *error)
{
    const struct timespec pause = {0, 100000};
    while (atomic_load_explicit(&journals->ring_set.reserved_id, memory_order_seq_cst) !=
           atomic_load_explicit(&journals->ring_set.next_id, memory_order_seq_cst)) {
        if (journals->io->ops->monotonic_ns(journals->io) >= end_ns) {
            return lahar_fail(error, LAHAR_TIMEOUT, "appends are still going on");
        }
        (void)nanosleep(&pause, NULL);
    }
    return LAHAR_OK;
}

lahar_status lahar_journals_stop(struct lahar_journals *journals, uint64_t deadline_ns,
                                 lahar_error *error)
{
    const uint64_t now_ns = journals->io->ops->monotonic_ns(journals->io);
    const uint64_t end_ns = deadline_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + deadline_ns;
    uint32_t state = LAHAR_JOURNALS_RUN;
    (void)atomic_compare_exchange_strong(&journals->state, &state, LAHAR_JOURNALS_CLOSING);
    lahar_gate_signal(&journals->space);
    lahar_status status = wait_for_appends(journals, end_ns, error);
    const uint64_t next_id = lahar_journals_next_id(journals);
    if (status == LAHAR_OK && lahar_journals_durable_id(journals) < next_id) {
        status = lahar_journals_wait(journals, next_id - 1, deadline_ns, error);
    } else if (status == LAHAR_OK) {
        status = lahar_journals_health(journals, error);
    }
    if (status == LAHAR_OK && next_id != journals->first_id) {
        write_mark(journals);
        /* One id above the last one: urgent until the mark is durable too. */
        lahar_journals_want(journals, next_id + 1);
        const struct timespec pause = {0, 100000};
        while (!is_all_durable(journals) &&
               atomic_load(&journals->state) == LAHAR_JOURNALS_CLOSING &&
               !lahar_journals_is_write_full(journals) &&
               journals->io->ops->monotonic_ns(journals->io) < end_ns) {
            if (!journals->has_threads) {
                if (!lahar_journals_run(journals)) {
                    break;
                }
            } else {
                (void)nanosleep(&pause, NULL);
            }
        }
    }
    if (status == LAHAR_TIMEOUT || status == LAHAR_NO_SPACE || status == LAHAR_BUSY) {
        state = LAHAR_JOURNALS_CLOSING;
        (void)atomic_compare_exchange_strong(&journals->state, &state, LAHAR_JOURNALS_RUN);
        return status;
    }
    lahar_writers_join(journals);
    if (status == LAHAR_OK) {
        lahar_segment_pool_trim(&journals->files);
    }
    state = LAHAR_JOURNALS_CLOSING;
    (void)atomic_compare_exchange_strong(&journals->state, &state, LAHAR_JOURNALS_STOPPED);
    return status;
}

void lahar_journals_destroy(struct lahar_journals *journals)
{
    if (journals == NULL) {
        return;
    }
    const lahar_allocator *allocator = journals->allocator;
    lahar_writers_join(journals);
    for (uint32_t w = 0; w < LAHAR_JOURNAL_COUNT; w++) {
        journals->io->ops->queue_destroy(journals->io, journals->writers[w].queue);
    }
    for (uint32_t j = 0; j < LAHAR_JOURNAL_COUNT; j++) {
        lahar_journal_deinit(&journals->journals[j]);
    }
    lahar_catalog_deinit(&journals->catalog);
    lahar_segment_pool_deinit(&journals->files);
    lahar_chunk_pool_deinit(&journals->chunks);
    lahar_durable_wait_deinit(&journals->durable_wait);
    (void)pthread_mutex_destroy(&journals->mutex);
    (void)pthread_mutex_destroy(&journals->alone);
    lahar_release(allocator, journals->directory);
    void *block;
    memcpy(&block, (uint8_t *)journals - sizeof(void *), sizeof block);
    lahar_release(allocator, block);
}

/* --- steps and statistics ----------------------------------------------------------------- */

bool lahar_journals_step(struct lahar_journals *journals, uint32_t journal)
{
    LAHAR_ASSERT(!journals->has_threads);
    struct lahar_writer *writer = &journals->writers[0];
    if (journal >= journals->journal_count ||
        atomic_load_explicit(&journals->must_exit, memory_order_relaxed)) {
        return false;
    }
    bool has_done = lahar_writer_reap(writer, 0);
    has_done |= lahar_journal_step(&journals->journals[journal],
                                   journals->io->ops->monotonic_ns(journals->io));
    lahar_catalog_walk(&journals->catalog);
    const lahar_status rest =
        atomic_load(&journals->state) == LAHAR_JOURNALS_POISONED ? LAHAR_POISONED : LAHAR_OK;
    has_done |= lahar_durable_wait_run(&journals->durable_wait, lahar_journals_durable_id(journals),
                                       rest) != 0;
    return has_done;
}

void lahar_journals_stat_get(struct lahar_journals *journals, struct lahar_journals_stat *stat_out)
{
    memset(stat_out, 0, sizeof *stat_out);
    lahar_catalog_stat(&journals->catalog, stat_out);
    stat_out->next_id = lahar_journals_next_id(journals);
    stat_out->durable_id = lahar_journals_durable_id(journals);
    stat_out->file_bytes = atomic_load_explicit(&journals->files.total_bytes, memory_order_relaxed);
    stat_out->appended_events = stat_out->next_id - journals->first_id;
    stat_out->writes = atomic_load_explicit(&journals->writes, memory_order_relaxed);
    stat_out->write_bytes = atomic_load_explicit(&journals->write_bytes, memory_order_relaxed);
    stat_out->syncs = atomic_load_explicit(&journals->syncs, memory_order_relaxed);
    stat_out->submits = atomic_load_explicit(&journals->io->enter_count, memory_order_relaxed);
    stat_out->wakes = atomic_load_explicit(&journals->io->wake_count, memory_order_relaxed);
    stat_out->sleeps = atomic_load_explicit(&journals->sleeps, memory_order_relaxed);
    stat_out->memory_bytes = journals->chunks.limit_bytes;
    stat_out->memory_used =
        atomic_load_explicit(&journals->chunks.used_bytes, memory_order_relaxed);
    stat_out->is_memory_short =
        atomic_load_explicit(&journals->memory_waiters, memory_order_relaxed) != 0 &&
        stat_out->memory_used > stat_out->memory_bytes / 2;
    stat_out->active = atomic_load_explicit(&journals->active, memory_order_relaxed);
    const bool lacks_dsync = atomic_load_explicit(&journals->lacks_dsync, memory_order_relaxed);
    (void)snprintf(stat_out->sync_mode, sizeof stat_out->sync_mode, "%s",
                   lacks_dsync ? "fdatasync" : "dsync");
    memcpy(stat_out->sync_reason, journals->sync_reason, sizeof stat_out->sync_reason);
}
