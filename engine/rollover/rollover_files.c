/* Writing the files of one stream of a group.
 *
 * Each row is decoded once, into the columns of a block; the shard is built from those columns,
 * so that a value that repeats is looked up once a block. Where threads are allowed and the
 * part is large, a second thread indexes, compresses and writes a block while this one fills the
 * next. Files have temporary names until they are whole and synced. */
#include "engine/rollover/rollover_files.h"

#include <stdio.h>

#include "engine/event/row.h"
#include "engine/rollover/feed_keeper.h"
#include "engine/rollover/rollover.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    /* Parts below this are written by one thread: starting another costs more. */
    PARALLEL_RAW_BYTES_MIN = 1024 * 1024
};

static lahar_status add_batch(const struct lahar_resident_batch *batch, uint32_t stream,
                              struct lahar_segment_writer *writer, lahar_error *error)
{
    const uint8_t *row = batch->rows;
    size_t left = batch->rows_size;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const uint32_t size = lahar_row_size(row, left);
        if (size == 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "the row of event %llu is cut short",
                              (unsigned long long)(batch->first_id + i));
        }
        if (lahar_row_stream(row) == stream) {
            const struct lahar_row_event event = {.id = batch->first_id + i,
                                                  .arrival_ns = batch->arrival_ns,
                                                  .row = row,
                                                  .size = size};
            LAHAR_TRY(lahar_segment_writer_add_row(writer, &event, error));
        }
        row += size;
        left -= size;
    }
    return LAHAR_OK;
}

/* Adds the part's events in id order. */
static lahar_status add_part(lahar_store *store, const struct lahar_rollover_group_range *range,
                             const struct lahar_rollover_part *part,
                             struct lahar_segment_writer *writer, lahar_error *error)
{
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
        status = add_batch(&range->batches[i], part->stream, writer, error);
    }
    return status;
}

/* --- the shard ---------------------------------------------------------------------- */

/* "<directory>/<name of info><suffix>" */
static lahar_status file_path(const lahar_store *store, const struct lahar_manifest_file *file,
                              const char *suffix, char path_out[LAHAR_MANIFEST_PATH_SIZE],
                              lahar_error *error)
{
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&file->info, suffix, name);
    const int length = snprintf(path_out, LAHAR_MANIFEST_PATH_SIZE, "%s/%s",
                                lahar_volume_path(store, file->directory), name);
    if (length < 0 || length >= LAHAR_MANIFEST_PATH_SIZE) {
        return lahar_fail(error, LAHAR_INVALID, "the path of %s is too long", name);
    }
    return LAHAR_OK;
}

lahar_status lahar_rollover_write_file(lahar_store *store, const struct lahar_manifest_file *file,
                                       const char *suffix, const struct lahar_buffer *bytes,
                                       lahar_error *error)
{
    struct lahar_io *io = store->io;
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char temporary[LAHAR_FILE_NAME_SIZE];
    char temporary_path[LAHAR_MANIFEST_PATH_SIZE];
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", suffix);
    LAHAR_TRY(file_path(store, file, suffix, path, error));
    LAHAR_TRY(file_path(store, file, temporary, temporary_path, error));
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
    }
    return status;
}

lahar_status lahar_rollover_write_shard(lahar_store *store, const struct lahar_buffer *bytes,
                                        struct lahar_manifest_file *file, lahar_error *error)
{
    LAHAR_TRY(lahar_rollover_write_file(store, file, ".shard", bytes, error));
    file->has_shard = true;
    file->shard_bytes = bytes->size;
    file->shard_checksum = lahar_crc32c(0, bytes->data, bytes->size);
    return LAHAR_OK;
}

/* --- the event file ------------------------------------------------------------------- */

static lahar_status index_block(void *context, const struct lahar_block_columns *columns,
                                lahar_error *error)
{
    return lahar_index_feed_add(context, columns, error);
}

/* Writes the event file, from whose blocks the feed learns. */
static lahar_status write_events(lahar_store *store, const struct lahar_rollover_group_range *range,
                                 const struct lahar_rollover_part *part,
                                 struct lahar_index_feed *feed, struct lahar_manifest_file *file,
                                 lahar_error *error)
{
    const struct lahar_segment_writer_options options = {
        .compression_level = lahar_rollover_level(store->rollover, range->bytes),
        .number = atomic_fetch_add_explicit(&store->next_file_number, 1, memory_order_relaxed),
        .stream = part->stream,
        .group_first_id = range->first_id,
        .group_end_id = range->end_id,
        .group_file_count = range->part_count,
        .use_thread = store->config.start_threads && part->raw_bytes >= PARALLEL_RAW_BYTES_MIN,
        .observe_block = index_block,
        .observe_context = feed};
    struct lahar_segment_writer *writer = NULL;
    LAHAR_TRY(lahar_segment_writer_create(store->io, lahar_volume_path(store, file->directory),
                                          store->catalog, &options, &store->allocator, &writer,
                                          error));
    lahar_status status = add_part(store, range, part, writer, error);
    if (status == LAHAR_OK) {
        status = lahar_segment_writer_finish(writer, &file->info, error);
    }
    lahar_segment_writer_destroy(writer);
    return status;
}

lahar_status lahar_rollover_sum_toc(lahar_store *store, struct lahar_manifest_file *file,
                                    lahar_error *error)
{
    struct lahar_io *io = store->io;
    char path[LAHAR_MANIFEST_PATH_SIZE];
    LAHAR_TRY(file_path(store, file, ".toc", path, error));
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
    *file_out = (struct lahar_manifest_file){.directory = lahar_volume_choose(store)};
    struct lahar_buffer shard;
    lahar_buffer_init(&shard, &store->allocator);
    struct lahar_index_feed *feed = NULL;
    lahar_status status =
        lahar_feed_keeper_take(lahar_rollover_feeds(store->rollover), store->catalog, part->stream,
                               &store->allocator, &feed, error);
    if (status == LAHAR_OK) {
        status = write_events(store, range, part, feed, file_out, error);
    }
    const bool has_events = status == LAHAR_OK;
    if (status == LAHAR_OK) {
        status = lahar_index_feed_finish(feed, &shard, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_rollover_sum_toc(store, file_out, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_rollover_write_shard(store, &shard, file_out, error);
    }
    if (status != LAHAR_OK && has_events) {
        lahar_rollover_remove_part(store, file_out);
    }
    if (status == LAHAR_OK) {
        lahar_feed_keeper_give(lahar_rollover_feeds(store->rollover), feed,
                               store->io->ops->monotonic_ns(store->io));
    } else {
        lahar_index_feed_destroy(feed);
    }
    lahar_volume_note_failure(store, file_out->directory, status);
    lahar_buffer_deinit(&shard);
    return status;
}

void lahar_rollover_remove_part(lahar_store *store, const struct lahar_manifest_file *file)
{
    lahar_stored_file_unlink(store->io, lahar_volume_path(store, file->directory), &file->info);
}
