/* Writing the files of one stream of a group.
 *
 * The event file and the shard are made from the same batches, independently of each
 * other: where threads are allowed and the part is large, the shard is built by a
 * second thread, "lahar-index", while this one compresses. Files have temporary names
 * until they are whole and synced. */
#include "engine/rollover/rollover_files.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "engine/event/row.h"
#include "engine/rollover/rollover_index.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    /* Parts below this are indexed by the same thread: starting one costs more. */
    PARALLEL_RAW_BYTES_MIN = 1024 * 1024
};

typedef lahar_status (*event_visitor)(void *context, const lahar_event *event, uint32_t row_size,
                                      lahar_error *error);

static lahar_status visit_batch(const struct lahar_resident_batch *batch, uint32_t stream,
                                struct lahar_arena *arena, event_visitor visit, void *context,
                                lahar_error *error)
{
    const uint8_t *row = batch->rows;
    size_t left = batch->rows_size;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const uint32_t size = lahar_row_size(row, left);
        if (size == 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "the row of event %llu is cut short",
                              (unsigned long long)(batch->first_id + i));
        }
        if (lahar_load_u32(row + 4) == stream) {
            lahar_event event;
            lahar_arena_reset(arena);
            LAHAR_TRY(lahar_row_decode(row, size, arena, &event, error));
            event.id = batch->first_id + i;
            event.arrival_ns = batch->arrival_ns;
            event.is_durable = true;
            if (event.time_ns == LAHAR_TIME_OF_ARRIVAL) {
                event.time_ns = batch->arrival_ns;
            }
            LAHAR_TRY(visit(context, &event, size, error));
        }
        row += size;
        left -= size;
    }
    return LAHAR_OK;
}

/* Visits the part's events in id order. */
static lahar_status visit_part(lahar_store *store, const struct lahar_rollover_group_range *range,
                               const struct lahar_rollover_part *part, event_visitor visit,
                               void *context, lahar_error *error)
{
    struct lahar_arena arena;
    lahar_arena_init(&arena, &store->allocator, 0);
    const uint64_t mask = UINT64_C(1) << (part->stream % 64);
    lahar_status status = LAHAR_OK;
    for (size_t i = part->first_batch; status == LAHAR_OK && i <= part->last_batch; i++) {
        if ((range->stream_masks[i] & mask) == 0) {
            continue;
        }
        if (store->config.start_threads && lahar_store_is_stopping(store)) {
            status = lahar_fail(error, LAHAR_CANCELLED, "the store is closing");
            break;
        }
        status = visit_batch(&range->batches[i], part->stream, &arena, visit, context, error);
    }
    lahar_arena_deinit(&arena);
    return status;
}

/* --- the shard ---------------------------------------------------------------------- */

/* Building the shard of a part in memory; all of a task is its thread's until it is joined. */
struct shard_task {
    lahar_store *store;
    const struct lahar_rollover_group_range *range;
    const struct lahar_rollover_part *part;
    struct lahar_buffer bytes;
    lahar_status status;
    lahar_error error;
};

static lahar_status feed_event(void *context, const lahar_event *event, uint32_t row_size,
                               lahar_error *error)
{
    (void)row_size;
    return lahar_index_feed_add(context, event, error);
}

static void *build_shard(void *context)
{
    struct shard_task *task = context;
    lahar_store *store = task->store;
    struct lahar_index_feed *feed = NULL;
    lahar_status status = lahar_index_feed_create(store->catalog, task->part->stream,
                                                  &store->allocator, &feed, &task->error);
    if (status == LAHAR_OK) {
        status = visit_part(store, task->range, task->part, feed_event, feed, &task->error);
    }
    if (status == LAHAR_OK) {
        status = lahar_index_feed_finish(feed, &task->bytes, &task->error);
    }
    if (status == LAHAR_OK && task->bytes.has_failed) {
        status = lahar_fail(&task->error, LAHAR_NO_MEMORY, "no memory for a shard");
    }
    lahar_index_feed_destroy(feed);
    task->status = status;
    return NULL;
}

static bool start_index_thread(struct shard_task *task, pthread_t *thread_out)
{
    if (!task->store->config.start_threads || task->part->raw_bytes < PARALLEL_RAW_BYTES_MIN) {
        return false;
    }
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_started = pthread_create(thread_out, NULL, build_shard, task) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (is_started) {
        (void)pthread_setname_np(*thread_out, "lahar-index");
    }
    return is_started;
}

/* "<directory>/<name of info><suffix>" */
static lahar_status file_path(const lahar_store *store, const struct lahar_segment_info *info,
                              const char *suffix, char path_out[LAHAR_MANIFEST_PATH_SIZE],
                              lahar_error *error)
{
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(info, suffix, name);
    const int length =
        snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s", store->events_directory, name);
    if (length < 0 || length >= LAHAR_MANIFEST_PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    return LAHAR_OK;
}

static lahar_status write_shard(lahar_store *store, const struct lahar_buffer *bytes,
                                struct lahar_manifest_file *file, lahar_error *error)
{
    struct lahar_io *io = store->io;
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char temporary_path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(file_path(store, &file->info, ".shard", path, error));
    LAHAR_TRY(file_path(store, &file->info, ".shard.tmp", temporary_path, error));
    struct lahar_io_file *out = NULL;
    LAHAR_TRY(io->ops->open(io, temporary_path,
                            LAHAR_IO_WRITE | LAHAR_IO_CREATE | LAHAR_IO_EXCLUSIVE, &out, error));
    lahar_status status = io->ops->write(io, out, 0, bytes->data, bytes->size, error);
    if (status == LAHAR_OK) {
        status = io->ops->sync(io, out, error);
    }
    io->ops->close(io, out);
    if (status == LAHAR_OK) {
        status = io->ops->rename(io, temporary_path, path, error);
    }
    if (status != LAHAR_OK) {
        (void)io->ops->unlink(io, temporary_path, NULL);
        return status;
    }
    file->has_shard = true;
    file->shard_bytes = bytes->size;
    file->shard_checksum = lahar_crc32c(0, bytes->data, bytes->size);
    return LAHAR_OK;
}

/* --- the event file ------------------------------------------------------------------- */

static lahar_status write_event(void *context, const lahar_event *event, uint32_t row_size,
                                lahar_error *error)
{
    return lahar_segment_writer_add(context, event, row_size, error);
}

static lahar_status write_events(lahar_store *store, const struct lahar_rollover_group_range *range,
                                 const struct lahar_rollover_part *part,
                                 struct lahar_segment_info *info_out, lahar_error *error)
{
    const struct lahar_segment_writer_options options = {
        .compression_level = store->options.no_compression ? 0 : store->options.compression_level,
        .number = atomic_fetch_add_explicit(&store->next_file_number, 1, memory_order_relaxed),
        .stream = part->stream,
        .group_first_id = range->first_id,
        .group_end_id = range->end_id,
        .group_file_count = range->part_count};
    struct lahar_segment_writer *writer = NULL;
    LAHAR_TRY(lahar_segment_writer_create(store->io, store->events_directory, store->catalog,
                                          &options, &store->allocator, &writer, error));
    lahar_status status = visit_part(store, range, part, write_event, writer, error);
    if (status == LAHAR_OK) {
        status = lahar_segment_writer_finish(writer, info_out, error);
    }
    lahar_segment_writer_destroy(writer);
    return status;
}

/* The checksum of the table of contents, for the manifest. */
static lahar_status sum_toc(lahar_store *store, struct lahar_manifest_file *file,
                            lahar_error *error)
{
    struct lahar_io *io = store->io;
    char path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(file_path(store, &file->info, ".toc", path, error));
    uint8_t *data = lahar_allocate(&store->allocator, (size_t)file->info.toc_bytes + 1);
    if (data == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to check a table of contents");
    }
    struct lahar_io_file *toc = NULL;
    size_t size = 0;
    lahar_status status = io->ops->open(io, path, LAHAR_IO_READ, &toc, error);
    if (status == LAHAR_OK) {
        status = io->ops->read(io, toc, 0, data, (size_t)file->info.toc_bytes + 1, &size, error);
    }
    io->ops->close(io, toc);
    if (status == LAHAR_OK && size != file->info.toc_bytes) {
        status = lahar_fail(error, LAHAR_CORRUPT, "%s has %zu bytes, not %llu", path, size,
                            (unsigned long long)file->info.toc_bytes);
    }
    if (status == LAHAR_OK) {
        file->toc_checksum = lahar_crc32c(0, data, size);
    }
    lahar_release(&store->allocator, data);
    return status;
}

lahar_status lahar_rollover_write_part(lahar_store *store,
                                       const struct lahar_rollover_group_range *range,
                                       const struct lahar_rollover_part *part,
                                       struct lahar_manifest_file *file_out, lahar_error *error)
{
    *file_out = (struct lahar_manifest_file){0};
    struct shard_task task = {.store = store, .range = range, .part = part};
    lahar_buffer_init(&task.bytes, &store->allocator);
    pthread_t thread;
    const bool has_thread = start_index_thread(&task, &thread);
    lahar_status status = write_events(store, range, part, &file_out->info, error);
    const bool has_events = status == LAHAR_OK;
    if (has_thread) {
        (void)pthread_join(thread, NULL);
    } else if (has_events) {
        (void)build_shard(&task);
    }
    if (has_events && task.status != LAHAR_OK) {
        status = task.status;
        if (error != NULL && error->status == LAHAR_OK) {
            *error = task.error;
        }
    }
    if (status == LAHAR_OK) {
        status = sum_toc(store, file_out, error);
    }
    if (status == LAHAR_OK) {
        status = write_shard(store, &task.bytes, file_out, error);
    }
    if (status != LAHAR_OK && has_events) {
        lahar_rollover_remove_part(store, file_out);
    }
    lahar_buffer_deinit(&task.bytes);
    return status;
}

void lahar_rollover_remove_part(lahar_store *store, const struct lahar_manifest_file *file)
{
    static const char *const suffixes[] = {".shard", ".toc", ".events"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[LAHAR_MANIFEST_PATH_SIZE];
        /* What cannot be removed now is removed by the next opening. */
        if (file_path(store, &file->info, suffixes[i], path, NULL) == LAHAR_OK) {
            (void)store->io->ops->unlink(store->io, path, NULL);
        }
    }
}
