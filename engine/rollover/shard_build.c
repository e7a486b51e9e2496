#include "engine/rollover/shard_build.h"

#include "engine/rollover/rollover_index.h"
#include "engine/segment/block_writer.h"
#include "io/base/arena.h"
#include "io/base/error.h"

/* What is needed block after block. */
struct build {
    struct lahar_segment *segment;
    struct lahar_index_feed *feed;
    struct lahar_block_writer *writer; /* makes columns of a block's events once more */
    struct lahar_buffer stored;        /* of the writer, thrown away */
    struct lahar_arena arena;
};

static lahar_status add_block(struct build *build, const struct lahar_block *block,
                              lahar_error *error)
{
    const uint32_t count = lahar_block_row_count(block);
    for (uint32_t row = 0; row < count; row++) {
        lahar_event event;
        lahar_arena_reset(&build->arena);
        LAHAR_TRY(lahar_block_read(block, row, &build->arena, &event, error));
        LAHAR_TRY(lahar_block_writer_add(build->writer, &event, 0, error));
    }
    LAHAR_TRY(lahar_block_writer_encode(build->writer, error));
    const struct lahar_block_columns columns = lahar_block_writer_columns(build->writer);
    LAHAR_TRY(lahar_index_feed_add(build->feed, &columns, error));
    struct lahar_block_info info;
    lahar_buffer_clear(&build->stored);
    return lahar_block_writer_compress(build->writer, &build->stored, &info, error);
}

static lahar_status add_blocks(struct build *build, lahar_error *error)
{
    const uint32_t count = lahar_segment_describe(build->segment)->block_count;
    for (uint32_t i = 0; i < count; i++) {
        struct lahar_block *block = NULL;
        LAHAR_TRY(lahar_segment_check(build->segment, i, &block, error));
        const lahar_status status = add_block(build, block, error);
        lahar_block_release(block);
        LAHAR_TRY(status);
    }
    return LAHAR_OK;
}

lahar_status lahar_shard_build(const struct lahar_schema_catalog *catalog,
                               struct lahar_segment *segment, const lahar_allocator *allocator,
                               struct lahar_buffer *out, lahar_error *error)
{
    const uint32_t stream_id = lahar_segment_describe(segment)->stream;
    const struct lahar_stream *stream = lahar_schema_stream(catalog, stream_id);
    if (stream == NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "there is no stream %u", stream_id);
    }
    struct build build = {.segment = segment};
    lahar_buffer_init(&build.stored, allocator);
    lahar_arena_init(&build.arena, allocator, 0);
    lahar_status status =
        lahar_index_feed_create(catalog, stream_id, allocator, &build.feed, error);
    if (status == LAHAR_OK) {
        status = lahar_block_writer_create(stream, 0, allocator, &build.writer, error);
    }
    if (status == LAHAR_OK) {
        status = add_blocks(&build, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_index_feed_finish(build.feed, out, error);
    }
    lahar_block_writer_destroy(build.writer);
    lahar_index_feed_destroy(build.feed);
    lahar_arena_deinit(&build.arena);
    lahar_buffer_deinit(&build.stored);
    return status;
}
