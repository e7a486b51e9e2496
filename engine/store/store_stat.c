/* Statistics: gathered from the rooms that count. */
#include <stdio.h>
#include <string.h>

#include "engine/rollover/rollover.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

/* A walk over the journal directory. */
struct journal_sizes {
    const lahar_store *store;
    uint64_t bytes;
};

static void take_journals(lahar_store *store, lahar_stat *stat)
{
    struct lahar_journals_stat journals;
    struct lahar_rollover_stat rollover;
    lahar_journals_stat_get(store->journals, &journals);
    lahar_rollover_stat_get(store->rollover, &rollover);
    stat->next_id = journals.next_id;
    stat->durable_id = journals.durable_id;
    stat->appended_events = journals.appended_events;
    stat->appended_bytes = journals.appended_bytes;
    stat->resident_bytes = journals.resident_bytes;
    stat->journal_bytes = journals.file_bytes;
    stat->journals_active = journals.active;
    stat->journal_writes = journals.writes;
    stat->journal_write_bytes = journals.write_bytes;
    stat->journal_syncs = journals.syncs;
    stat->io_submits = journals.submits;
    stat->writer_wakes = journals.wakes;
    stat->writer_sleeps = journals.sleeps;
    stat->rollovers = rollover.rollovers;
    stat->rollover_failures = rollover.failures;
    memcpy(stat->sync_mode, journals.sync_mode, sizeof stat->sync_mode);
    memcpy(stat->sync_reason, journals.sync_reason, sizeof stat->sync_reason);
    stat->poisoned = lahar_journals_health(store->journals, NULL);
}

/* Without journals of one's own: the size of the files that lie there. */
static lahar_status add_file_size(void *context, const char *name, bool is_directory)
{
    struct journal_sizes *sizes = context;
    const lahar_store *store = sizes->store;
    char path[LAHAR_MANIFEST_PATH_SIZE];
    struct lahar_io_file *file = NULL;
    uint64_t size = 0;
    const int length = snprintf(path, sizeof path, "%s/%s", store->journal_directory, name);
    /* The writer may have removed the file since it was listed. */
    if (!is_directory && length > 0 && (size_t)length < sizeof path &&
        store->io->ops->open(store->io, path, LAHAR_IO_READ, &file, NULL) == LAHAR_OK) {
        if (store->io->ops->size(store->io, file, &size, NULL) == LAHAR_OK) {
            sizes->bytes += size;
        }
        store->io->ops->close(store->io, file);
    }
    return LAHAR_OK;
}

static lahar_status take_reader(const lahar_store *store, lahar_stat *stat, lahar_error *error)
{
    struct journal_sizes sizes = {store, 0};
    LAHAR_TRY(
        store->io->ops->list(store->io, store->journal_directory, add_file_size, &sizes, error));
    stat->journal_bytes = sizes.bytes;
    stat->resident_bytes = store->recovery.bytes;
    return LAHAR_OK;
}

static void take_snapshot(const struct lahar_snapshot *snapshot, lahar_stat *stat)
{
    const size_t segment_count = lahar_snapshot_segment_count(snapshot);
    for (size_t i = 0; i < segment_count; i++) {
        stat->event_count +=
            lahar_segment_describe(lahar_snapshot_segment(snapshot, i)->segment)->event_count;
    }
    const size_t batch_count = lahar_snapshot_batch_count(snapshot);
    for (size_t i = 0; i < batch_count; i++) {
        stat->event_count += lahar_snapshot_batch(snapshot, i)->event_count;
    }
}

static void take_files(lahar_store *store, lahar_stat *stat)
{
    struct lahar_segment_set *set = lahar_store_acquire_set(store);
    for (size_t i = 0; i < set->count; i++) {
        const struct lahar_manifest_file *entry = &set->readable[i]->entry;
        stat->event_file_bytes += entry->info.file_bytes + entry->info.toc_bytes;
        stat->event_raw_bytes += entry->info.raw_bytes;
        stat->index_bytes += entry->shard_bytes;
    }
    stat->event_file_count = (uint32_t)(set->count + set->lost_count);
    stat->rolled_id = set->rolled_id;
    lahar_segment_set_release(set);
}

static void take_dropped(lahar_store *store, lahar_stat *stat)
{
    (void)pthread_mutex_lock(&store->manifest_lock);
    const struct lahar_manifest_state *state = &store->manifest->state;
    for (size_t i = 0; i < state->stream_count; i++) {
        const struct lahar_manifest_retention *retention = &state->streams[i].retention;
        stat->dropped_events += retention->dropped_events;
        stat->dropped_bytes += retention->dropped_bytes;
        stat->dropped_files += (uint32_t)retention->dropped_files;
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
}

static void take_queries(lahar_store *store, lahar_stat *stat)
{
    struct lahar_query_registry *registry = &store->queries;
    (void)pthread_mutex_lock(&registry->mutex);
    stat->open_queries = registry->open_count;
    stat->refused_queries = registry->refused_count;
    stat->expired_queries = registry->expired_count;
    (void)pthread_mutex_unlock(&registry->mutex);
    stat->query_bytes = atomic_load_explicit(&registry->budget.used_bytes, memory_order_relaxed);
}

lahar_status lahar_stat_get(lahar_store *store, lahar_stat *stat_out, lahar_error *error)
{
    const size_t size = stat_out->struct_size;
    if (size < sizeof(size_t) || size > 4096) {
        return lahar_fail(error, LAHAR_INVALID, "stat: struct_size is %zu", size);
    }
    lahar_stat stat = {.struct_size = size};
    struct lahar_snapshot *snapshot = NULL;
    LAHAR_TRY(lahar_snapshot_take(store, &snapshot, error));
    take_snapshot(snapshot, &stat);
    stat.next_id = lahar_snapshot_end(snapshot);
    stat.durable_id = lahar_snapshot_durable(snapshot);
    lahar_snapshot_release(snapshot);
    if (store->journals != NULL) {
        take_journals(store, &stat);
    } else {
        LAHAR_TRY(take_reader(store, &stat, error));
    }
    take_files(store, &stat);
    take_dropped(store, &stat);
    take_queries(store, &stat);
    lahar_block_cache_stat(store->cache, &stat.cache_hits, &stat.cache_misses,
                           &stat.block_cache_bytes);
    stat.index_cache_bytes = lahar_shard_cache_bytes(&store->shard_cache);
    stat.memory_limit_bytes = store->options.memory_limit_bytes;
    for (size_t i = 0; i < store->lost.count; i++) {
        stat.lost_ids += store->lost.ranges[i].end_id - store->lost.ranges[i].first_id;
    }
    stat.lost_ranges = (uint32_t)store->lost.count;
    stat.stream_count = lahar_schema_stream_count(store->catalog);
    stat.recovered_events = store->recovered_events;
    stat.corrupt_blocks = atomic_load_explicit(&store->corrupt_blocks, memory_order_relaxed);
    (void)snprintf(stat.backend, sizeof stat.backend, "%s", store->io->name);
    (void)snprintf(stat.backend_reason, sizeof stat.backend_reason, "%s", store->io->reason);
    memcpy(stat_out, &stat, size < sizeof stat ? size : sizeof stat);
    return LAHAR_OK;
}
