/* Opening and closing.
 *
 * A writer: lock, manifest, event files, journals; what the journals hold is durable
 * before the new session begins. The session begins with one change of the manifest
 * that ends the session before (its end is now known), begins the new one at the id
 * ceiling and reserves ids; only then do the journals accept appends (store_session.c).
 *
 * A reader takes no lock and may see the writer replace files between two of its looks:
 * it begins again when a file is gone, and when the manifest has moved on while it read the
 * journals, because what it missed there is then in event files. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/rollover/repair_parts.h"
#include "engine/rollover/resident_index.h"
#include "engine/rollover/retention.h"
#include "engine/rollover/rollover.h"
#include "engine/store/lost_events.h"
#include "engine/store/manifest_copy.h"
#include "engine/store/manifest_rebuild.h"
#include "engine/store/store_directory.h"
#include "engine/store/store_options.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

enum {
    READ_TRIES = 50, /* of a reader whose files change under it */
    READ_PAUSE_NS = 10 * 1000 * 1000
};
#define MANIFEST_GROWTH_DEFAULT (UINT64_C(1) << 20)
#define BATCH_SIZE_MAX          (UINT64_C(64) << 20)

/* --- pieces shared with the rest of the store ------------------------------------------------ */

lahar_status lahar_store_commit_manifest(lahar_store *store, const struct lahar_buffer *records,
                                         lahar_error *error)
{
    (void)pthread_mutex_lock(&store->manifest_lock);
    const lahar_status status = lahar_store_commit_locked(store, records, error);
    (void)pthread_mutex_unlock(&store->manifest_lock);
    return status;
}

lahar_status lahar_store_commit_locked(lahar_store *store, const struct lahar_buffer *records,
                                       lahar_error *error)
{
    const lahar_status status = lahar_manifest_commit(store->manifest, records, error);
    if (status == LAHAR_POISONED && store->journals != NULL) {
        lahar_journals_poison(store->journals, &store->manifest->poison);
    }
    return status;
}

struct lahar_segment_set *lahar_store_acquire_set(lahar_store *store)
{
    (void)pthread_mutex_lock(&store->set_lock);
    struct lahar_segment_set *set = store->set;
    lahar_segment_set_acquire(set);
    (void)pthread_mutex_unlock(&store->set_lock);
    return set;
}

void lahar_store_publish_set(lahar_store *store, struct lahar_segment_set *set)
{
    (void)pthread_mutex_lock(&store->set_lock);
    struct lahar_segment_set *before = store->set;
    store->set = set;
    (void)pthread_mutex_unlock(&store->set_lock);
    lahar_segment_set_release(before);
}

struct lahar_stored_place lahar_store_place(lahar_store *store, uint32_t volume)
{
    return (struct lahar_stored_place){.pool = store->pool,
                                       .directory = lahar_volume_path(store, volume),
                                       .is_unavailable = !store->volumes[volume].is_available,
                                       .catalog = store->catalog,
                                       .cache = store->cache,
                                       .shard_cache = &store->shard_cache,
                                       .allocator = &store->allocator};
}

/* --- making and freeing ------------------------------------------------------------------- */

static lahar_status join_path(lahar_store *store, const char *name, char **path_out,
                              lahar_error *error)
{
    const size_t size = strlen(store->directory) + strlen(name) + 2;
    char *path = lahar_allocate(&store->allocator, size);
    if (path == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a path");
    }
    (void)snprintf(path, size, "%s/%s", store->directory, name);
    *path_out = path;
    return LAHAR_OK;
}

static lahar_status make_paths(lahar_store *store, const char *directory, lahar_error *error)
{
    size_t size = strlen(directory);
    while (size > 1 && directory[size - 1] == '/') {
        size--;
    }
    store->directory = lahar_allocate(&store->allocator, size + 1);
    if (store->directory == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a path");
    }
    memcpy(store->directory, directory, size);
    store->directory[size] = '\0';
    LAHAR_TRY(join_path(store, "journal", &store->journal_directory, error));
    return join_path(store, "events", &store->events_directory, error);
}

static lahar_status choose_backend(lahar_store *store, lahar_error *error)
{
    if (store->config.io != NULL) {
        store->io = store->config.io;
        return LAHAR_OK;
    }
    const lahar_backend backend = store->options.backend;
    lahar_error refusal = {0};
    lahar_status status = LAHAR_OK;
    if (backend != LAHAR_BACKEND_PWRITE) {
        status = lahar_io_uring_create(&store->allocator, &store->io, &refusal);
        if (status != LAHAR_OK && backend == LAHAR_BACKEND_URING) {
            if (error != NULL && error->status == LAHAR_OK) {
                *error = refusal;
            }
            return status;
        }
    }
    if (store->io == NULL) {
        LAHAR_TRY(lahar_io_pwrite_create(&store->allocator, &store->io, error));
        if (refusal.status != LAHAR_OK) {
            /* At most the reason's beginning fits. */
            (void)snprintf(store->io->reason, sizeof store->io->reason, "no io_uring: %.100s",
                           refusal.message);
            lahar_store_log(store, LAHAR_LOG_INFO, "%s", store->io->reason);
        }
    }
    store->owns_io = true;
    return LAHAR_OK;
}

static void divide_memory(lahar_store *store)
{
    lahar_options *options = &store->options;
    if (options->memory_limit_bytes == 0) {
        options->memory_limit_bytes = lahar_options_default_memory(store->io);
    }
    /* Half for journals and resident groups, an eighth for blocks, a sixteenth for pages of shards
     * and, at most, another for shards in memory (resident_index.c); the rest is for queries, and
     * for rollover, whose index builder grows with the group. */
    const uint64_t limit_bytes = options->memory_limit_bytes;
    store->write_memory_bytes = limit_bytes / 2;
    store->block_cache_bytes = limit_bytes / 8;
    lahar_shard_cache_limit(&store->shard_cache, limit_bytes / 16);
    store->queries.budget.limit_bytes = limit_bytes / 4;
    const uint64_t quarter = store->write_memory_bytes / 4;
    store->batch_size_max = (size_t)(quarter < BATCH_SIZE_MAX ? quarter : BATCH_SIZE_MAX);
    store->group_size_bytes =
        options->group_size_bytes < quarter ? options->group_size_bytes : quarter;
}

static void init_locks(lahar_store *store)
{
    (void)pthread_mutex_init(&store->layout_lock, NULL);
    (void)pthread_mutex_init(&store->manifest_lock, NULL);
    (void)pthread_mutex_init(&store->set_lock, NULL);
    (void)pthread_mutex_init(&store->thread_lock, NULL);
    (void)pthread_rwlock_init(&store->source_lock, NULL);
    for (int kind = 0; kind < LAHAR_THREAD_COUNT; kind++) {
        lahar_gate_init(&store->threads[kind].alarm.gate);
    }
}

/* What is read from the directory; a reader may do it several times. */
static void release_contents(lahar_store *store)
{
    lahar_rollover_destroy(store->rollover);
    store->rollover = NULL;
    lahar_resident_index_destroy(store->resident_index);
    store->resident_index = NULL;
    if (store->journals != NULL) {
        lahar_journals_destroy(store->journals);
        store->journals = NULL;
    }
    lahar_journal_recovery_deinit(&store->recovery, &store->allocator);
    store->recovery = (struct lahar_journal_recovery){0};
    lahar_lost_events_release(store);
    lahar_segment_set_release(store->set);
    store->set = NULL;
    if (store->cache != NULL) {
        lahar_block_cache_destroy(store->cache);
        store->cache = NULL;
    }
    lahar_file_pool_destroy(store->pool);
    store->pool = NULL;
    lahar_volumes_close(store);
    if (store->catalog != NULL) {
        lahar_schema_catalog_destroy(store->catalog);
        store->catalog = NULL;
    }
    lahar_manifest_close(store->manifest);
    store->manifest = NULL;
}

static void release_memory(lahar_store *store)
{
    const lahar_allocator allocator = store->allocator;
    lahar_release(&allocator, store->directory);
    lahar_release(&allocator, store->journal_directory);
    lahar_release(&allocator, store->events_directory);
    lahar_release(&allocator, store);
}

static void release_store(lahar_store *store)
{
    release_contents(store);
    if (store->io != NULL) {
        store->io->ops->close(store->io, store->lock_file);
    }
    if (store->owns_io) {
        store->io->ops->destroy(store->io);
    }
    lahar_query_registry_deinit(&store->queries);
    lahar_shard_cache_deinit(&store->shard_cache);
    (void)pthread_rwlock_destroy(&store->source_lock);
    (void)pthread_mutex_destroy(&store->thread_lock);
    (void)pthread_mutex_destroy(&store->set_lock);
    (void)pthread_mutex_destroy(&store->manifest_lock);
    (void)pthread_mutex_destroy(&store->layout_lock);
    release_memory(store);
}

/* --- reading what is there ---------------------------------------------------------------- */

static lahar_status open_files(lahar_store *store, lahar_error *error)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    struct lahar_stored_file **files =
        lahar_allocate_zeroed(&store->allocator, state->file_count + 1, sizeof(void *));
    if (files == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu event files",
                          state->file_count);
    }
    lahar_status status = LAHAR_OK;
    size_t count = 0;
    for (; status == LAHAR_OK && count < state->file_count; count++) {
        const struct lahar_stored_place place =
            lahar_store_place(store, state->files[count].directory);
        status = lahar_stored_file_open(&place, &state->files[count], &files[count], error);
    }
    if (status == LAHAR_OK) {
        const struct lahar_segment_set_change change = {
            .added = files, .added_count = count, .rolled_id = state->rolled_id};
        status = lahar_segment_set_create(NULL, &change, &store->allocator, &store->set, error);
    }
    for (size_t i = 0; i < count; i++) {
        lahar_stored_file_release(files[i]);
    }
    lahar_release(&store->allocator, files);
    return status;
}

static void report_damage(const lahar_store *store)
{
    lahar_lost_events_log(store);
    const struct lahar_segment_set *set = store->set;
    for (size_t i = 0; i < set->lost_count; i++) {
        const struct lahar_segment_info *info = &set->lost[i]->entry.info;
        lahar_store_log(store, LAHAR_LOG_ERROR,
                        "event file %llu cannot be read (%s): events %llu to %llu are lost",
                        (unsigned long long)info->number,
                        lahar_status_name(set->lost[i]->segment_status),
                        (unsigned long long)info->first_id, (unsigned long long)info->last_id);
    }
    for (size_t i = 0; i < set->count; i++) {
        if (set->readable[i]->shard == NULL) {
            lahar_store_log(store, LAHAR_LOG_WARNING,
                            "shard %llu cannot be read (%s): its events are searched by scanning",
                            (unsigned long long)set->readable[i]->entry.info.number,
                            lahar_status_name(set->readable[i]->shard_status));
        }
    }
}

static bool needs_repair(const lahar_store *store, lahar_status status)
{
    return store->options.repair && !store->options.read_only &&
           (status == LAHAR_NOT_FOUND || status == LAHAR_CORRUPT);
}

static lahar_status read_contents(lahar_store *store, lahar_error *error)
{
    const bool read_only = store->options.read_only;
    const uint64_t growth_bytes = store->config.manifest_growth_bytes == 0
                                      ? MANIFEST_GROWTH_DEFAULT
                                      : store->config.manifest_growth_bytes;
    LAHAR_TRY(lahar_identity_read(store->io, store->directory, &store->identity, error));
    lahar_status status = LAHAR_OK;
    for (unsigned tries = 1;; tries++) {
        lahar_error cause = {0};
        status =
            lahar_manifest_open(store->io, store->directory, store->identity.store_id, read_only,
                                growth_bytes, &store->allocator, &store->manifest, &cause);
        if (status == LAHAR_OK || tries == 2 || !needs_repair(store, status)) {
            if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
                *error = cause;
            }
            break;
        }
        lahar_store_log(store, LAHAR_LOG_WARNING, "repairing: %s", cause.message);
        LAHAR_TRY(lahar_manifest_rebuild(store, error));
    }
    if (status != LAHAR_OK) {
        return status == LAHAR_NOT_FOUND && !read_only ? LAHAR_CORRUPT : status;
    }
    const struct lahar_manifest_state *state = &store->manifest->state;
    LAHAR_TRY(lahar_schema_catalog_create(&store->allocator, &store->catalog, error));
    LAHAR_TRY(lahar_manifest_state_catalog(state, store->catalog, error));
    LAHAR_TRY(lahar_block_cache_create(&store->allocator, store->block_cache_bytes, &store->cache,
                                       error));
    LAHAR_TRY(lahar_volumes_open(store, state, error));
    /* The writer may remove files under a reader, which then could not open them again. */
    LAHAR_TRY(lahar_file_pool_create(store->io, read_only ? 0 : store->options.open_file_max,
                                     &store->allocator, &store->pool, error));
    LAHAR_TRY(open_files(store, error));
#ifdef LAHAR_PLANTED_BUGS
    store->recovery.planted_bugs = store->config.planted_bugs & LAHAR_PLANTED_JOURNAL_MASK;
#endif
    LAHAR_TRY(lahar_journal_recover(store->io, store->journal_directory, store->identity.store_id,
                                    state->sessions, state->session_count, state->rolled_id,
                                    read_only, &store->allocator, &store->recovery, error));
    return lahar_lost_events_gather(store, error);
}

/* Whether the manifest still says what it said when reading began: then no journal file that it
 * left to us has been recycled since. */
static bool is_current(const lahar_store *store)
{
    struct lahar_manifest *again = NULL;
    if (lahar_manifest_open(store->io, store->directory, store->identity.store_id, true,
                            MANIFEST_GROWTH_DEFAULT, &store->allocator, &again, NULL) != LAHAR_OK) {
        return false;
    }
    const bool is_same = again->state.rolled_id == store->manifest->state.rolled_id;
    lahar_manifest_close(again);
    return is_same;
}

static bool has_missing_file(const lahar_store *store)
{
    for (size_t i = 0; i < store->set->lost_count; i++) {
        if (store->set->lost[i]->segment_status == LAHAR_NOT_FOUND) {
            return true;
        }
    }
    return false;
}

/* Whether what was read belongs together. A file that stays missing is damage, and journals may
 * go on being recycled; but what seems lost with one that was recycled while it was read is not. */
static bool is_settled(const lahar_store *store, bool is_last)
{
    const bool may_be_stale = !is_last || store->recovery.lost_count != 0;
    return (is_last || !has_missing_file(store)) && (!may_be_stale || is_current(store));
}

static lahar_status open_reader(lahar_store *store, lahar_error *error)
{
    LAHAR_TRY(lahar_store_check_directory(store, error));
    for (unsigned tries = 1;; tries++) {
        lahar_error cause = {0};
        lahar_status status = read_contents(store, &cause);
        const bool is_last = tries == READ_TRIES;
        if (status == LAHAR_OK && is_settled(store, is_last)) {
            break;
        }
        if (status == LAHAR_OK && is_last) {
            status = lahar_fail(&cause, LAHAR_BUSY,
                                "the writer recycles journals faster than they are read");
        }
        const bool may_pass =
            status == LAHAR_OK || status == LAHAR_NOT_FOUND || status == LAHAR_CORRUPT;
        if (is_last || !may_pass) {
            if (error != NULL && error->status == LAHAR_OK) {
                *error = cause;
            }
            return status == LAHAR_NOT_FOUND ? LAHAR_CORRUPT : status;
        }
        release_contents(store);
        if (store->config.start_threads) {
            (void)nanosleep(&(struct timespec){.tv_nsec = READ_PAUSE_NS}, NULL);
        }
    }
    store->recovered_events = store->recovery.event_count;
    report_damage(store);
    return LAHAR_OK;
}

/* --- opening for writing -------------------------------------------------------------------- */

/* The arrival time of the newest event in event files. */
static int64_t newest_arrival_ns(const struct lahar_manifest_state *state)
{
    int64_t newest_ns = INT64_MIN;
    for (size_t i = 0; i < state->file_count; i++) {
        const int64_t arrival_ns = state->files[i].info.arrival_max_ns;
        newest_ns = arrival_ns > newest_ns ? arrival_ns : newest_ns;
    }
    return newest_ns;
}

static lahar_status start_journals(lahar_store *store, lahar_error *error)
{
    const struct lahar_journals_options options = {
        .io = store->io,
        .directory = store->journal_directory,
        .allocator = &store->allocator,
        .log = store->options.log,
        .log_context = store->options.log_context,
        .store_id = store->identity.store_id,
        .session = store->session,
        .next_id = store->session_first_id,
        .journal_count = store->options.journal_count,
        .memory_bytes = store->write_memory_bytes,
        .durability = store->options.durability,
        .sync_interval_ms = store->options.sync_interval_ms,
        .start_threads = store->config.start_threads,
        .arrival_floor_ns = newest_arrival_ns(&store->manifest->state),
#ifdef LAHAR_PLANTED_BUGS
        .planted_bugs = store->config.planted_bugs & LAHAR_PLANTED_JOURNAL_MASK,
#endif
    };
    LAHAR_TRY(lahar_journals_open(&options, &store->recovery, &store->journals, error));
    lahar_journals_set_ceiling(store->journals,
                               atomic_load_explicit(&store->ceiling, memory_order_relaxed));
    lahar_journals_hold(store->journals,
                        atomic_load_explicit(&store->is_session_pending, memory_order_relaxed));
    return LAHAR_OK;
}

/* What the options added becomes part of the store. */
static lahar_status note_volumes(lahar_store *store, lahar_error *error)
{
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    lahar_status status = LAHAR_OK;
    if (lahar_volumes_put_new(store, &records) != 0) {
        status = lahar_store_commit_manifest(store, &records, error);
        if (status == LAHAR_OK) {
            status = lahar_manifest_copy_write(store->manifest, store->events_directory, error);
        }
    }
    lahar_buffer_deinit(&records);
    return status;
}

static lahar_status open_writer(lahar_store *store, uint64_t deadline_ns, lahar_error *error)
{
    LAHAR_TRY(lahar_store_enter_directory(store, deadline_ns, error));
    lahar_error cause = {0};
    lahar_status status = read_contents(store, &cause);
    if (needs_repair(store, status) && store->manifest != NULL) {
        /* The manifest can be read, the journals contradict it. */
        lahar_store_log(store, LAHAR_LOG_WARNING, "repairing: %s", cause.message);
        release_contents(store);
        LAHAR_TRY(lahar_manifest_rebuild(store, error));
        cause = (lahar_error){0};
        status = read_contents(store, &cause);
    }
    if (status != LAHAR_OK) {
        if (error != NULL && error->status == LAHAR_OK) {
            *error = cause;
        }
        return status;
    }
    report_damage(store);
    if (store->recovery.damaged_files != 0) {
        lahar_store_log(store, LAHAR_LOG_ERROR,
                        "%llu journal files have a damaged header and hold what cannot be told: "
                        "kept as *.damaged",
                        (unsigned long long)store->recovery.damaged_files);
    }
    if (store->recovery.dropped_batches != 0) {
        lahar_store_log(store, LAHAR_LOG_WARNING,
                        "%llu batches behind a hole in the journals were never acknowledged as "
                        "durable: dropped",
                        (unsigned long long)store->recovery.dropped_batches);
    }
    LAHAR_TRY(note_volumes(store, error));
    LAHAR_TRY(lahar_store_remove_unnamed(store, &store->recovery, error));
    lahar_error copying = {0};
    if (lahar_manifest_copy_refresh(store->manifest, store->events_directory, &copying) !=
        LAHAR_OK) {
        lahar_store_log(store, LAHAR_LOG_WARNING, "copy of the names: %s", copying.message);
    }
    store->recovered_events = store->recovery.event_count;
    if (store->options.repair) {
        LAHAR_TRY(lahar_repair_parts(store, error));
    }
    LAHAR_TRY(lahar_store_prepare_session(store, error));
    LAHAR_TRY(start_journals(store, error));
    LAHAR_TRY(lahar_rollover_create(store, &store->rollover, error));
    LAHAR_TRY(lahar_resident_index_create(store, &store->resident_index, error));
    lahar_retention_note_limits(store);
    return lahar_store_start_threads(store, error);
}

lahar_status lahar_store_open_config(const char *directory, const lahar_options *options,
                                     const struct lahar_store_config *config, uint64_t deadline_ns,
                                     lahar_store **store_out, lahar_error *error)
{
    *store_out = NULL;
    lahar_options resolved;
    if (directory == NULL || directory[0] == '\0') {
        return lahar_fail(error, LAHAR_INVALID, "the store's directory has no name");
    }
    LAHAR_TRY(lahar_options_resolve(options, &resolved, error));
    const lahar_allocator *allocator =
        resolved.allocator == NULL ? &lahar_allocator_libc : resolved.allocator;
    lahar_store *store = lahar_allocate_zeroed(allocator, 1, sizeof *store);
    if (store == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a store");
    }
    store->allocator = *allocator;
    store->options = resolved;
    store->options.allocator = &store->allocator;
    store->config = *config;
    store->owner = getpid();
    init_locks(store);
    lahar_shard_cache_init(&store->shard_cache, 0);
    lahar_query_registry_init(&store->queries, resolved.query_count_max);
    lahar_status status = make_paths(store, directory, error);
    if (status == LAHAR_OK) {
        status = choose_backend(store, error);
    }
    if (status == LAHAR_OK) {
        divide_memory(store);
        status =
            resolved.read_only ? open_reader(store, error) : open_writer(store, deadline_ns, error);
    }
    if (status != LAHAR_OK) {
        release_store(store);
        return status;
    }
    *store_out = store;
    return LAHAR_OK;
}

lahar_status lahar_store_open_with(const char *directory, const lahar_options *options,
                                   struct lahar_io *io, bool start_threads, uint64_t deadline_ns,
                                   lahar_store **store_out, lahar_error *error)
{
    const struct lahar_store_config config = {.io = io, .start_threads = start_threads};
    return lahar_store_open_config(directory, options, &config, deadline_ns, store_out, error);
}

lahar_status lahar_store_open(const char *directory, const lahar_options *options,
                              uint64_t deadline_ns, lahar_store **store_out, lahar_error *error)
{
    return lahar_store_open_with(directory, options, NULL, true, deadline_ns, store_out, error);
}

/* --- closing ----------------------------------------------------------------------------- */

/* What is appended may still become durable, so the store is not given up. */
static bool leaves_open(lahar_status status)
{
    return status == LAHAR_TIMEOUT || status == LAHAR_NO_SPACE;
}

/* Everything is durable by now; without room for the end of the session, recovery finds it. */
static lahar_status end_session(lahar_store *store, lahar_error *error)
{
    lahar_error cause = {0};
    const lahar_status status = lahar_store_end_session(store, &cause);
    if (status == LAHAR_NO_SPACE) {
        lahar_store_log(store, LAHAR_LOG_WARNING, "ending the session: %s", cause.message);
        return LAHAR_OK;
    }
    if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
        *error = cause;
    }
    return status;
}

/* The threads are the last to stop, so that a store that stays open has them all. */
static lahar_status close_writer(lahar_store *store, uint64_t deadline_ns, lahar_error *error)
{
    const uint64_t start_ns = store->io->ops->monotonic_ns(store->io);
    lahar_status status = lahar_journals_health(store->journals, error);
    if (status == LAHAR_OK) {
        /* Nothing has been stopped yet: the store stays as it is. */
        status = lahar_sync(store, deadline_ns, error);
        if (leaves_open(status)) {
            return status;
        }
    }
    const uint64_t spent_ns = store->io->ops->monotonic_ns(store->io) - start_ns;
    const uint64_t left_ns = deadline_ns == LAHAR_WAIT_FOREVER ? LAHAR_WAIT_FOREVER
                             : deadline_ns > spent_ns          ? deadline_ns - spent_ns
                                                               : LAHAR_NO_WAIT;
    const lahar_status stopped = lahar_journals_stop(store->journals, left_ns, error);
    if (leaves_open(stopped)) {
        return stopped;
    }
    lahar_store_stop_threads(store);
    if (status == LAHAR_OK) {
        status = stopped;
    }
    if (status == LAHAR_OK) {
        status = end_session(store, error);
    }
    return status;
}

lahar_status lahar_store_close(lahar_store *store, uint64_t deadline_ns, lahar_error *error)
{
    if (store == NULL) {
        return LAHAR_OK;
    }
    if (store->owner != getpid()) {
        /* A forked child has none of the threads, and any lock may have been held at the
         * fork: files, rings and journals stay as they are until it ends. */
        release_memory(store);
        return LAHAR_OK;
    }
    lahar_status status = LAHAR_OK;
    if (store->journals != NULL) {
        status = close_writer(store, deadline_ns, error);
        if (leaves_open(status)) {
            return status;
        }
    }
    release_store(store);
    return status;
}

void lahar_store_abandon(lahar_store *store)
{
    if (store == NULL) {
        return;
    }
    lahar_store_stop_threads(store);
    release_store(store);
}
