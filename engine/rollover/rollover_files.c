/* Writing the files of one stream of a group.
 *
 * Each row is decoded once, into the columns of a block; the shard is built from those columns,
 * so that a value that repeats is looked up once a block. Threads of the crew make blocks at the
 * same time, each of a run of the part's rows, the next one when a thread is free; the index takes
 * them in their order. Files have temporary names until they are whole and synced. */
#include "engine/rollover/rollover_files.h"

#include <stdio.h>

#include "engine/event/row.h"
#include "engine/rollover/crew.h"
#include "engine/rollover/feed_keeper.h"
#include "engine/rollover/rollover.h"
#include "engine/rollover/shard_build.h"
#include "engine/segment/block_order.h"
#include "engine/segment/segment_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    /* Parts below this are written by the calling thread: to wake others costs more. */
    PARALLEL_RAW_BYTES_MIN = 1024 * 1024
};

struct part_writing {
    lahar_store *store;
    const struct lahar_rollover_group_range *range;
    const struct lahar_rollover_part *part;
    struct lahar_block_order *order;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    uint32_t next_run;   /* which is the number of its block too */
    lahar_status status; /* of the first failure */
    lahar_error error;
};

/* --- filling a block --------------------------------------------------------------------- */

/* Where a row of the group begins. */
struct row_place {
    size_t batch;    /* of the group's batches */
    uint32_t offset; /* in its rows */
    uint32_t event;  /* of the batch */
};

/* The row at the place; NULL behind the last batch. A batch without rows of the stream is passed
 * over. */
static const uint8_t *row_at(const struct part_writing *writing, struct row_place *place,
                             size_t *left_out)
{
    const struct lahar_rollover_group_range *range = writing->range;
    const uint64_t bit = UINT64_C(1) << (writing->part->stream % 64);
    while (place->batch < range->batch_count &&
           (place->event == range->batches[place->batch].event_count ||
            (range->stream_masks[place->batch] & bit) == 0)) {
        *place = (struct row_place){.batch = place->batch + 1};
    }
    if (place->batch == range->batch_count) {
        return NULL;
    }
    const struct lahar_resident_batch *batch = &range->batches[place->batch];
    *left_out = batch->rows_size - place->offset;
    return batch->rows + place->offset;
}

static lahar_status fail_short(const struct part_writing *writing, lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "rows of events %llu..%llu are cut short",
                      (unsigned long long)writing->range->first_id,
                      (unsigned long long)writing->range->end_id - 1);
}

static lahar_status fill_block(const struct part_writing *writing,
                               const struct lahar_rollover_run *run,
                               struct lahar_block_writer *writer, lahar_error *error)
{
    struct row_place place = {run->batch, run->offset, run->event};
    const uint8_t *row = NULL;
    size_t left = 0;
    for (uint32_t added = 0; added < run->row_count;) {
        row = row_at(writing, &place, &left);
        const uint32_t size = row == NULL ? 0 : lahar_row_size(row, left);
        if (size == 0) {
            return fail_short(writing, error);
        }
        if (lahar_row_stream(row) == writing->part->stream) {
            const struct lahar_resident_batch *batch = &writing->range->batches[place.batch];
            const struct lahar_row_event event = {.id = batch->first_id + place.event,
                                                  .arrival_ns = batch->arrival_ns,
                                                  .row = row,
                                                  .size = size};
            LAHAR_TRY(lahar_block_writer_add_row(writer, &event, error));
            added++;
        }
        place.offset += size;
        place.event++;
    }
    return LAHAR_OK;
}

static lahar_status make_block(struct part_writing *writing, uint32_t number, lahar_error *error)
{
    const struct lahar_rollover_run *runs =
        (const struct lahar_rollover_run *)(const void *)writing->part->runs.data;
    struct lahar_block_slot *slot = NULL;
    lahar_status status = lahar_block_order_take(writing->order, &slot, error);
    if (status == LAHAR_OK) {
        status = fill_block(writing, &runs[number], lahar_block_slot_writer(slot), error);
    }
    if (status == LAHAR_OK) {
        return lahar_block_order_put(writing->order, number, slot, error);
    }
    lahar_block_order_fail(writing->order, slot, status, error);
    return status;
}

static void note_failure(struct part_writing *writing, lahar_status status,
                         const lahar_error *error)
{
    (void)pthread_mutex_lock(&writing->lock);
    if (writing->status == LAHAR_OK) {
        writing->status = status;
        writing->error = *error;
    }
    (void)pthread_mutex_unlock(&writing->lock);
}

/* A piece of the crew's: one block. */
static bool make_next_block(void *context)
{
    struct part_writing *writing = context;
    lahar_store *store = writing->store;
    const size_t run_count = writing->part->runs.size / sizeof(struct lahar_rollover_run);
    uint32_t number = 0;
    lahar_error error = {0};
    const bool is_stopping = store->config.start_threads && lahar_store_is_stopping(store);
    (void)pthread_mutex_lock(&writing->lock);
    const bool has_next = writing->status == LAHAR_OK && writing->next_run < run_count;
    if (has_next) {
        number = writing->next_run++;
    }
    (void)pthread_mutex_unlock(&writing->lock);
    if (!has_next) {
        return false;
    }
    const lahar_status status = is_stopping
                                    ? lahar_fail(&error, LAHAR_CANCELLED, "the store is closing")
                                    : make_block(writing, number, &error);
    if (status != LAHAR_OK) {
        note_failure(writing, status, &error);
    }
    return status == LAHAR_OK;
}

/* Adds the part's events in id order. */
static lahar_status add_part(lahar_store *store, const struct lahar_rollover_group_range *range,
                             const struct lahar_rollover_part *part,
                             struct lahar_segment_writer *writer, lahar_error *error)
{
    struct part_writing writing = {
        .store = store, .range = range, .part = part, .order = lahar_segment_writer_order(writer)};
    (void)pthread_mutex_init(&writing.lock, NULL);
    if (part->raw_bytes < PARALLEL_RAW_BYTES_MIN) {
        while (make_next_block(&writing)) {
        }
    } else {
        lahar_crew_run(lahar_rollover_crew(store->rollover), make_next_block, &writing);
    }
    (void)pthread_mutex_destroy(&writing.lock);
    if (writing.status != LAHAR_OK && error != NULL) {
        *error = writing.error;
    }
    return writing.status;
}

/* --- the shard ---------------------------------------------------------------------- */

static lahar_status write_bytes(struct lahar_file_writing *writing, lahar_store *store,
                                const struct lahar_manifest_file *file, const char *suffix,
                                const struct lahar_buffer *bytes, lahar_error *error)
{
    LAHAR_TRY(lahar_file_writing_begin(writing, store, file, suffix, error));
    const lahar_status status = lahar_file_writing_put(writing, bytes->data, bytes->size, error);
    if (status != LAHAR_OK) {
        lahar_file_writing_drop(writing);
        return status;
    }
    return lahar_file_writing_finish(writing, error);
}

lahar_status lahar_rollover_write_file(lahar_store *store, const struct lahar_manifest_file *file,
                                       const char *suffix, const struct lahar_buffer *bytes,
                                       lahar_error *error)
{
    struct lahar_file_writing writing;
    return write_bytes(&writing, store, file, suffix, bytes, error);
}

void lahar_rollover_note_shard(struct lahar_manifest_file *file,
                               const struct lahar_file_writing *writing)
{
    file->has_shard = true;
    file->shard_bytes = writing->size;
    file->shard_checksum = writing->checksum;
}

lahar_status lahar_rollover_write_shard(lahar_store *store, const struct lahar_buffer *bytes,
                                        struct lahar_manifest_file *file, lahar_error *error)
{
    struct lahar_file_writing writing;
    LAHAR_TRY(write_bytes(&writing, store, file, LAHAR_SHARD_SUFFIX, bytes, error));
    lahar_rollover_note_shard(file, &writing);
    return LAHAR_OK;
}

lahar_status lahar_rollover_put_shard(void *context, const void *data, size_t size,
                                      lahar_error *error)
{
    return lahar_file_writing_put(context, data, size, error);
}

lahar_status lahar_rollover_rebuild_shard(lahar_store *store, struct lahar_segment *segment,
                                          struct lahar_manifest_file *file,
                                          bool (*is_cancelled)(void *context), void *cancel_context,
                                          lahar_error *error)
{
    struct lahar_file_writing writing;
    LAHAR_TRY(lahar_file_writing_begin(&writing, store, file, LAHAR_SHARD_SUFFIX, error));
    const struct lahar_shard_build build = {.catalog = store->catalog,
                                            .segment = segment,
                                            .sink = {lahar_rollover_put_shard, &writing},
                                            .is_cancelled = is_cancelled,
                                            .cancel_context = cancel_context,
                                            .allocator = &store->allocator};
    const lahar_status status = lahar_shard_build(&build, error);
    if (status != LAHAR_OK) {
        lahar_file_writing_drop(&writing);
        return status;
    }
    LAHAR_TRY(lahar_file_writing_finish(&writing, error));
    lahar_rollover_note_shard(file, &writing);
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
    LAHAR_TRY(lahar_file_path(store, file, LAHAR_TOC_SUFFIX, path, error));
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

/* What turns a fed index into a shard. */
struct finishing {
    struct lahar_index_feed *feed;
    struct lahar_buffer *shard;
    lahar_status status;
    lahar_error *error;
};

static void finish_shard(void *context)
{
    struct finishing *finishing = context;
    finishing->status =
        lahar_index_feed_finish(finishing->feed, finishing->shard, finishing->error);
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
        struct finishing finishing = {feed, &shard, LAHAR_OK, error};
        lahar_crew_run_whole(lahar_rollover_crew(store->rollover), finish_shard, &finishing);
        status = finishing.status;
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
