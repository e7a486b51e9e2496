#include "engine/rollover/shard_build.h"

#include "engine/rollover/rollover_index.h"
#include "engine/segment/block_writer.h"
#include "io/base/arena.h"
#include "io/base/error.h"

#define PIECE_BYTES_DEFAULT (UINT64_C(64) << 20)

/* The shard of some blocks. */
struct piece {
    struct lahar_buffer bytes;
    struct lahar_shard *shard; /* over these bytes */
};

/* What is needed block after block. */
struct build {
    const struct lahar_shard_build *asked;
    struct lahar_index_feed *feed;     /* of the piece that is being indexed */
    struct lahar_block_writer *writer; /* makes columns of a block's events once more */
    struct lahar_buffer stored;        /* of the writer, thrown away */
    struct lahar_arena arena;
    struct piece pieces[LAHAR_SHARD_MERGE_MAX];
    size_t piece_count;
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

/* Indexes blocks first .. end - 1. */
static lahar_status index_blocks(struct build *build, uint32_t first, uint32_t end,
                                 lahar_error *error)
{
    struct lahar_segment *segment = build->asked->segment;
    for (uint32_t i = first; i < end; i++) {
        struct lahar_block *block = NULL;
        if (build->asked->is_cancelled != NULL &&
            build->asked->is_cancelled(build->asked->cancel_context)) {
            return lahar_fail(error, LAHAR_CANCELLED, "the index of an event file was given up");
        }
        LAHAR_TRY(lahar_segment_check(segment, i, &block, error));
        const lahar_status status = add_block(build, block, error);
        lahar_block_release(block);
        LAHAR_TRY(status);
    }
    return LAHAR_OK;
}

static lahar_status add_piece(struct build *build, uint32_t first, uint32_t end, lahar_error *error)
{
    const struct lahar_shard_build *asked = build->asked;
    struct piece *piece = &build->pieces[build->piece_count++];
    lahar_buffer_init(&piece->bytes, asked->allocator);
    piece->shard = NULL;
    LAHAR_TRY(lahar_index_feed_create(asked->catalog,
                                      lahar_segment_describe(asked->segment)->stream,
                                      asked->allocator, &build->feed, error));
    lahar_status status = index_blocks(build, first, end, error);
    if (status == LAHAR_OK) {
        status = lahar_index_feed_finish(build->feed, &piece->bytes, error);
    }
    lahar_index_feed_destroy(build->feed);
    build->feed = NULL;
    LAHAR_TRY(status);
    const struct lahar_shard_source source = {.size = piece->bytes.size,
                                              .memory = piece->bytes.data};
    return lahar_shard_open(&source, asked->allocator, &piece->shard, error);
}

/* Cuts the blocks into pieces of about the same number of bytes. */
static lahar_status add_pieces(struct build *build, lahar_error *error)
{
    const struct lahar_segment_info *info = lahar_segment_describe(build->asked->segment);
    const uint64_t wanted =
        build->asked->piece_bytes == 0 ? PIECE_BYTES_DEFAULT : build->asked->piece_bytes;
    const uint64_t least = info->raw_bytes / LAHAR_SHARD_MERGE_MAX + 1;
    const uint64_t piece_bytes = wanted > least ? wanted : least;
    const uint64_t pieces = info->raw_bytes / piece_bytes + 1;
    const uint32_t blocks = (uint32_t)((info->block_count + pieces - 1) / pieces);
    for (uint32_t first = 0; first < info->block_count; first += blocks) {
        const uint32_t left = info->block_count - first;
        LAHAR_TRY(add_piece(build, first, first + (left < blocks ? left : blocks), error));
    }
    return LAHAR_OK;
}

static lahar_status hand_over(struct build *build, lahar_error *error)
{
    const struct lahar_shard_build *asked = build->asked;
    if (build->piece_count == 1) {
        const struct lahar_buffer *bytes = &build->pieces[0].bytes;
        return asked->sink.write(asked->sink.context, bytes->data, bytes->size, error);
    }
    struct lahar_shard *inputs[LAHAR_SHARD_MERGE_MAX];
    for (size_t i = 0; i < build->piece_count; i++) {
        inputs[i] = build->pieces[i].shard;
    }
    const struct lahar_shard_merge merge = {.inputs = inputs,
                                            .input_count = build->piece_count,
                                            .sink = asked->sink,
                                            .is_cancelled = asked->is_cancelled,
                                            .cancel_context = asked->cancel_context,
                                            .allocator = asked->allocator};
    return lahar_shard_merge(&merge, error);
}

lahar_status lahar_shard_build(const struct lahar_shard_build *asked, lahar_error *error)
{
    const uint32_t stream_id = lahar_segment_describe(asked->segment)->stream;
    const struct lahar_stream *stream = lahar_schema_stream(asked->catalog, stream_id);
    if (stream == NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "there is no stream %u", stream_id);
    }
    struct build build = {.asked = asked};
    lahar_buffer_init(&build.stored, asked->allocator);
    lahar_arena_init(&build.arena, asked->allocator, 0);
    lahar_status status =
        lahar_block_writer_create(stream, 0, asked->allocator, &build.writer, error);
    if (status == LAHAR_OK) {
        status = add_pieces(&build, error);
    }
    if (status == LAHAR_OK) {
        status = hand_over(&build, error);
    }
    for (size_t i = 0; i < build.piece_count; i++) {
        lahar_shard_close(build.pieces[i].shard);
        lahar_buffer_deinit(&build.pieces[i].bytes);
    }
    lahar_block_writer_destroy(build.writer);
    lahar_arena_deinit(&build.arena);
    lahar_buffer_deinit(&build.stored);
    return status;
}
