/* Writes an event file and its table of contents under temporary names, and gives them
 * their own once both are on stable storage. */
#include <stdio.h>
#include <string.h>

#include "engine/segment/block_order.h"
#include "engine/segment/segment.h"
#include "engine/segment/segment_format.h"
#include "io/base/error.h"

enum {
    PATH_SIZE_MAX = 4096,
    WRITE_SIZE = 512 * 1024 /* bytes gathered before they are written */
};

struct lahar_segment_writer {
    struct lahar_io *io;
    lahar_allocator allocator;
    struct lahar_segment_writer_options options;
    struct lahar_block_order *order;

    /* Of the one who adds events; NULL and 0 where others put whole blocks. */
    struct lahar_block_slot *filling;
    uint32_t next_number; /* of blocks */
    uint64_t added_count;
    uint64_t last_id;

    /* Of the order's sink until all blocks are put. */
    struct lahar_segment_info info;
    struct lahar_io_file *file;
    struct lahar_buffer pending; /* not yet written */
    uint64_t written_bytes;
    uint64_t synced_bytes;      /* on the way, of a file that is copied */
    struct lahar_buffer blocks; /* struct lahar_block_info each */

    bool has_failed;
    bool has_events_file; /* the temporary names exist */
    bool has_toc_file;
    char *directory;
};

/* directory "/" name; false when that is too long. */
static bool join_path(const struct lahar_segment_writer *writer, const char *name,
                      char path_out[PATH_SIZE_MAX])
{
    const int size = snprintf(path_out, PATH_SIZE_MAX, "%s/%s", writer->directory, name);
    return size > 0 && size < PATH_SIZE_MAX;
}

static bool temporary_path(const struct lahar_segment_writer *writer, const char *suffix,
                           char path_out[PATH_SIZE_MAX])
{
    char name[LAHAR_FILE_NAME_SIZE];
    (void)snprintf(name, sizeof name, "%08llu%s.tmp", (unsigned long long)writer->info.number,
                   suffix);
    return join_path(writer, name, path_out);
}

static bool final_path(const struct lahar_segment_writer *writer, const char *suffix,
                       char path_out[PATH_SIZE_MAX])
{
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&writer->info, suffix, name);
    return join_path(writer, name, path_out);
}

static lahar_status open_file(struct lahar_segment_writer *writer, const char *suffix,
                              struct lahar_io_file **file_out, lahar_error *error)
{
    char path[PATH_SIZE_MAX];
    if (!temporary_path(writer, suffix, path)) {
        return lahar_fail(error, LAHAR_INVALID, "the path of an event file is too long");
    }
    /* What an earlier attempt of this number left behind is overwritten. */
    LAHAR_TRY(
        writer->io->ops->open(writer->io, path, LAHAR_IO_WRITE | LAHAR_IO_CREATE, file_out, error));
    return writer->io->ops->truncate(writer->io, *file_out, 0, error);
}

static lahar_status write_pending(struct lahar_segment_writer *writer, lahar_error *error)
{
    LAHAR_TRY(writer->io->ops->write(writer->io, writer->file, writer->written_bytes,
                                     writer->pending.data, writer->pending.size, error));
    writer->written_bytes += writer->pending.size;
    lahar_buffer_clear(&writer->pending);
    return LAHAR_OK;
}

static void add_to_info(struct lahar_segment_info *info, const struct lahar_block_info *block)
{
    const bool is_first = info->block_count == 0;
    info->first_id = is_first ? block->first_id : info->first_id;
    info->last_id = block->last_id;
    if (is_first || block->time_min_ns < info->time_min_ns) {
        info->time_min_ns = block->time_min_ns;
    }
    if (is_first || block->time_max_ns > info->time_max_ns) {
        info->time_max_ns = block->time_max_ns;
    }
    if (is_first || block->arrival_min_ns < info->arrival_min_ns) {
        info->arrival_min_ns = block->arrival_min_ns;
    }
    if (is_first || block->arrival_max_ns > info->arrival_max_ns) {
        info->arrival_max_ns = block->arrival_max_ns;
    }
    info->event_count += block->row_count;
    info->block_count++;
}

/* The sink of the order. */
static lahar_status take_block(void *context, const struct lahar_buffer *image,
                               struct lahar_block_info *block, uint64_t raw_size,
                               lahar_error *error)
{
    struct lahar_segment_writer *writer = context;
    if (writer->info.event_count + block->row_count > UINT32_MAX) {
        return lahar_fail(error, LAHAR_TOO_BIG, "an event file holds at most %u events",
                          UINT32_MAX);
    }
    block->offset = writer->written_bytes + writer->pending.size;
    block->first_ordinal = (uint32_t)writer->info.event_count;
    lahar_buffer_put(&writer->pending, image->data, image->size);
    lahar_buffer_put(&writer->blocks, block, sizeof *block);
    if (writer->blocks.has_failed || writer->pending.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write an event file");
    }
    writer->info.raw_bytes += raw_size;
    add_to_info(&writer->info, block);
    return writer->pending.size < WRITE_SIZE ? LAHAR_OK : write_pending(writer, error);
}

lahar_status lahar_segment_writer_create(struct lahar_io *io, const char *directory,
                                         const struct lahar_schema_catalog *catalog,
                                         const struct lahar_segment_writer_options *options,
                                         const lahar_allocator *allocator,
                                         struct lahar_segment_writer **writer_out,
                                         lahar_error *error)
{
    const struct lahar_stream *stream = lahar_schema_stream(catalog, options->stream);
    if (stream == NULL || options->compression_level > 12) {
        return lahar_fail(error, LAHAR_INVALID,
                          "an event file needs a stream and a level up to 12");
    }
    const size_t directory_size = strlen(directory) + 1;
    struct lahar_segment_writer *writer = lahar_allocate_zeroed(allocator, 1, sizeof *writer);
    char *directory_copy = lahar_allocate(allocator, directory_size);
    if (writer == NULL || directory_copy == NULL) {
        lahar_release(allocator, writer);
        lahar_release(allocator, directory_copy);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write an event file");
    }
    memcpy(directory_copy, directory, directory_size);
    writer->io = io;
    writer->allocator = *allocator;
    writer->directory = directory_copy;
    writer->info.number = options->number;
    writer->info.stream = options->stream;
    writer->info.group_first_id = options->group_first_id;
    writer->info.group_end_id = options->group_end_id;
    writer->info.group_file_count = options->group_file_count;
    lahar_buffer_init(&writer->pending, &writer->allocator);
    lahar_buffer_init(&writer->blocks, &writer->allocator);
    writer->options = *options;
    const struct lahar_block_order_options order_options = {
        .stream = stream,
        .compression_level = options->compression_level,
        .observe = options->observe_block,
        .observe_context = options->observe_context,
        .sink = take_block,
        .sink_context = writer};
    lahar_status status =
        lahar_block_order_create(&order_options, &writer->allocator, &writer->order, error);
    if (status == LAHAR_OK) {
        writer->has_events_file = true;
        status = open_file(writer, LAHAR_EVENTS_SUFFIX, &writer->file, error);
    }
    if (status != LAHAR_OK) {
        lahar_segment_writer_destroy(writer);
        return status;
    }
    uint8_t header[LAHAR_EVENTS_HEADER_SIZE];
    lahar_events_header_write(header, &writer->info);
    lahar_buffer_put(&writer->pending, header, sizeof header);
    *writer_out = writer;
    return LAHAR_OK;
}

void lahar_segment_writer_destroy(struct lahar_segment_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    char path[PATH_SIZE_MAX];
    if (writer->filling != NULL) {
        lahar_block_order_fail(writer->order, writer->filling, LAHAR_CANCELLED, NULL);
    }
    lahar_block_order_destroy(writer->order);
    writer->io->ops->close(writer->io, writer->file);
    /* Best effort: what stays is removed when the store is opened. */
    if (writer->has_events_file && temporary_path(writer, LAHAR_EVENTS_SUFFIX, path)) {
        (void)writer->io->ops->unlink(writer->io, path, NULL);
    }
    if (writer->has_toc_file && temporary_path(writer, LAHAR_TOC_SUFFIX, path)) {
        (void)writer->io->ops->unlink(writer->io, path, NULL);
    }
    lahar_buffer_deinit(&writer->pending);
    lahar_buffer_deinit(&writer->blocks);
    const lahar_allocator allocator = writer->allocator;
    lahar_release(&allocator, writer->directory);
    lahar_release(&allocator, writer);
}

struct lahar_block_order *lahar_segment_writer_order(struct lahar_segment_writer *writer)
{
    return writer->order;
}

static lahar_status put_filled(struct lahar_segment_writer *writer, lahar_error *error)
{
    struct lahar_block_slot *slot = writer->filling;
    writer->filling = NULL;
    return lahar_block_order_put(writer->order, writer->next_number++, slot, error);
}

static lahar_status add_event(struct lahar_segment_writer *writer, const lahar_event *event,
                              uint32_t row_size, lahar_error *error)
{
    if (event->id <= writer->last_id && writer->last_id != 0) {
        return lahar_fail(error, LAHAR_INVALID, "event %llu follows event %llu",
                          (unsigned long long)event->id, (unsigned long long)writer->last_id);
    }
    if (writer->filling != NULL &&
        lahar_block_writer_raw_size(lahar_block_slot_writer(writer->filling)) + row_size >
            LAHAR_BLOCK_RAW_SIZE) {
        LAHAR_TRY(put_filled(writer, error));
    }
    if (writer->filling == NULL) {
        LAHAR_TRY(lahar_block_order_take(writer->order, &writer->filling, error));
    }
    LAHAR_TRY(
        lahar_block_writer_add(lahar_block_slot_writer(writer->filling), event, row_size, error));
    writer->added_count++;
    writer->last_id = event->id;
    return LAHAR_OK;
}

lahar_status lahar_segment_writer_add(struct lahar_segment_writer *writer, const lahar_event *event,
                                      uint32_t row_size, lahar_error *error)
{
    if (writer->has_failed) {
        return lahar_fail(error, LAHAR_INVALID, "writing this event file has failed before");
    }
    const lahar_status status = add_event(writer, event, row_size, error);
    writer->has_failed = status != LAHAR_OK;
    return status;
}

/* Copying goes as fast as the page cache takes it: without this the commits of journals would wait
 * for hundreds of megabytes when the file is synced. */
static lahar_status sync_step(struct lahar_segment_writer *writer, lahar_error *error)
{
    if (writer->written_bytes - writer->synced_bytes < LAHAR_FILE_SYNC_STEP) {
        return LAHAR_OK;
    }
    writer->synced_bytes = writer->written_bytes;
    return writer->io->ops->sync(writer->io, writer->file, error);
}

lahar_status lahar_segment_writer_copy(struct lahar_segment_writer *writer,
                                       struct lahar_segment *from, lahar_error *error)
{
    const struct lahar_segment_info *info = lahar_segment_describe(from);
    if (writer->has_failed || writer->added_count != 0 || info->stream != writer->info.stream ||
        (writer->info.block_count != 0 && info->first_id <= writer->info.last_id) ||
        info->block_count > UINT32_MAX - writer->info.block_count ||
        info->event_count > UINT32_MAX - writer->info.event_count) {
        return lahar_fail(error, LAHAR_INVALID, "event file %llu cannot be added to %llu",
                          (unsigned long long)info->number,
                          (unsigned long long)writer->info.number);
    }
    writer->has_failed = true;
    for (uint32_t i = 0; i < info->block_count; i++) {
        struct lahar_block_info block = *lahar_segment_block_info(from, i);
        block.offset = writer->written_bytes + writer->pending.size;
        block.first_ordinal = (uint32_t)writer->info.event_count;
        LAHAR_TRY(lahar_segment_read_stored(from, i, &writer->pending, error));
        lahar_buffer_put(&writer->blocks, &block, sizeof block);
        if (writer->blocks.has_failed) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write an event file");
        }
        add_to_info(&writer->info, &block);
        if (writer->pending.size >= WRITE_SIZE) {
            LAHAR_TRY(write_pending(writer, error));
            LAHAR_TRY(sync_step(writer, error));
        }
    }
    writer->info.raw_bytes += info->raw_bytes;
    writer->has_failed = false;
    return LAHAR_OK;
}

static lahar_status finish_events(struct lahar_segment_writer *writer, lahar_error *error)
{
    if (writer->filling != NULL) {
        LAHAR_TRY(put_filled(writer, error));
    }
    if (writer->info.block_count == 0) {
        return lahar_fail(error, LAHAR_INVALID, "an event file without events");
    }
    writer->info.file_bytes =
        writer->written_bytes + writer->pending.size + LAHAR_EVENTS_FOOTER_SIZE;
    writer->info.toc_bytes = lahar_toc_size(writer->info.block_count);
    uint8_t footer[LAHAR_EVENTS_FOOTER_SIZE];
    lahar_events_footer_write(footer, &writer->info);
    lahar_buffer_put(&writer->pending, footer, sizeof footer);
    if (writer->pending.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write an event file");
    }
    LAHAR_TRY(write_pending(writer, error));
    return writer->io->ops->sync(writer->io, writer->file, error);
}

static lahar_status write_toc(struct lahar_segment_writer *writer, lahar_error *error)
{
    struct lahar_io *io = writer->io;
    lahar_toc_write(&writer->pending, &writer->info, (const void *)writer->blocks.data);
    if (writer->pending.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write a table of contents");
    }
    struct lahar_io_file *file = NULL;
    writer->has_toc_file = true;
    lahar_status status = open_file(writer, LAHAR_TOC_SUFFIX, &file, error);
    if (status == LAHAR_OK) {
        status = io->ops->write(io, file, 0, writer->pending.data, writer->pending.size, error);
    }
    if (status == LAHAR_OK) {
        status = io->ops->sync(io, file, error);
    }
    io->ops->close(io, file);
    return status;
}

/* Both names or none. */
static lahar_status give_names(struct lahar_segment_writer *writer, lahar_error *error)
{
    struct lahar_io *io = writer->io;
    char from[PATH_SIZE_MAX];
    char events_path[PATH_SIZE_MAX];
    char toc_path[PATH_SIZE_MAX];
    if (!temporary_path(writer, LAHAR_TOC_SUFFIX, from) ||
        !final_path(writer, LAHAR_EVENTS_SUFFIX, events_path) ||
        !final_path(writer, LAHAR_TOC_SUFFIX, toc_path)) {
        return lahar_fail(error, LAHAR_INVALID, "the path of an event file is too long");
    }
    LAHAR_TRY(io->ops->rename(io, from, toc_path, error));
    writer->has_toc_file = false;
    (void)temporary_path(writer, LAHAR_EVENTS_SUFFIX, from);
    const lahar_status status = io->ops->rename(io, from, events_path, error);
    if (status != LAHAR_OK) {
        (void)io->ops->unlink(io, toc_path, NULL);
        return status;
    }
    writer->has_events_file = false;
    return LAHAR_OK;
}

lahar_status lahar_segment_writer_finish(struct lahar_segment_writer *writer,
                                         struct lahar_segment_info *info_out, lahar_error *error)
{
    if (writer->has_failed) {
        return lahar_fail(error, LAHAR_INVALID, "writing this event file has failed before");
    }
    writer->has_failed = true;
    LAHAR_TRY(finish_events(writer, error));
    writer->io->ops->close(writer->io, writer->file);
    writer->file = NULL;
    LAHAR_TRY(write_toc(writer, error));
    LAHAR_TRY(give_names(writer, error));
    *info_out = writer->info;
    return LAHAR_OK;
}
