/* What the steps from a row to finished files cost, one thread, nothing written: rows, blocks,
 * shards, over events of W1, W2 or a file of lines, beside general compressors on the rows.
 *
 *   bench_pipeline [W1|W2|FILE] [events] [all|row|peers|block|index] [compression level]
 *
 * Of a FILE all lines are taken, over and over until there are so many events; 0: once. index
 * fills and compresses the blocks that it indexes too. Times are of this thread's
 * processor time, so that they bear a loaded machine; docs/benchmarks.md says how to read them. */
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef LAHAR_BENCH_ZSTD
#include <zstd.h>
#endif

#include "bench/text.h"
#include "bench/workload_w1.h"
#include "bench/workload_w2.h"
#include "engine/event/row.h"
#include "engine/rollover/rollover_index.h"
#include "engine/segment/block_format.h"
#include "engine/segment/block_reader.h"
#include "engine/segment/block_writer.h"

enum {
    W1_FIELD_COUNT = 14,
    DEFAULT_EVENT_COUNT = 200000,
    CHUNK_COUNT = 1000, /* events decoded at a time */
    BATCH_COUNT = 100,  /* events committed at a time, and so of one arrival */
    SEED = 42
};

static const struct {
    const char *name;
    lahar_type type;
} w1_fields[W1_FIELD_COUNT] = {
    {"type", LAHAR_KEYWORD},
    {"lineage_start", LAHAR_TIME},
    {"component", LAHAR_KEYWORD},
    {"component_type", LAHAR_KEYWORD},
    {"uuid", LAHAR_UUID},
    {"size", LAHAR_U64},
    {"claim.container", LAHAR_KEYWORD},
    {"claim.section", LAHAR_KEYWORD},
    {"claim.id", LAHAR_KEYWORD},
    {"claim.offset", LAHAR_U64},
    {"claim.size", LAHAR_U64},
    {"attributes", LAHAR_MAP},
    {"transit_uri", LAHAR_KEYWORD},
    {"previous_attributes", LAHAR_MAP},
};

/* The events as rows, and what reads them. */
struct bench {
    struct lahar_schema_catalog *catalog;
    uint32_t stream;
    struct lahar_buffer rows;
    uint64_t event_count;
    uint32_t level; /* of compression */
};

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "bench_pipeline: %s failed\n", what);
        exit(1);
    }
}

static double thread_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- events ------------------------------------------------------------------------- */

static size_t set_w1_values(const struct workload_w1_event *event, const uint32_t *fields,
                            char component[36], lahar_value *values)
{
    for (size_t i = 0; i < W1_FIELD_COUNT; i++) {
        values[i] = (lahar_value){.field = fields[i], .type = w1_fields[i].type};
    }
    (void)text_uuid(component, event->component.bytes);
    values[0].as.bytes = event->type;
    values[1].as.time_ns = event->lineage_start_ms * 1000000;
    values[2].as.bytes = (lahar_bytes){.data = component, .size = 36};
    values[3].as.bytes = event->component_type;
    values[4].as.uuid = event->uuid;
    values[5].as.u64 = event->size;
    values[6].as.bytes = event->claim_container;
    values[7].as.bytes = event->claim_section;
    values[8].as.bytes = event->claim_id;
    values[9].as.u64 = event->claim_offset;
    values[10].as.u64 = event->size;
    values[11].as.map.items = event->updated;
    values[11].as.map.count = WORKLOAD_W1_UPDATED;
    size_t count = 12;
    if (event->transit_uri.size > 0) {
        values[12].as.bytes = event->transit_uri;
        count++;
    }
    if (event->previous_count > 0) {
        const lahar_value previous = values[13];
        values[count] = previous;
        values[count].as.map.items = event->previous;
        values[count++].as.map.count = event->previous_count;
    }
    return count;
}

static void make_w1(struct bench *bench)
{
    uint32_t fields[W1_FIELD_COUNT];
    for (size_t i = 0; i < W1_FIELD_COUNT; i++) {
        require(lahar_schema_find_field(bench->catalog, w1_fields[i].name,
                                        strlen(w1_fields[i].name), &fields[i]),
                "finding a field");
    }
    struct workload_w1 *workload = workload_w1_create(SEED);
    require(workload != NULL, "allocation");
    char component[36];
    lahar_value values[W1_FIELD_COUNT];
    for (uint64_t i = 0; i < bench->event_count; i++) {
        struct workload_w1_event made;
        workload_w1_event(workload, i, &made);
        const lahar_event event = {.stream = bench->stream,
                                   .time_ns = made.time_ms * 1000000,
                                   .values = values,
                                   .value_count = set_w1_values(&made, fields, component, values)};
        require(lahar_row_encode(&bench->rows, bench->catalog, &event, NULL) == LAHAR_OK, "a row");
    }
    workload_w1_destroy(workload);
}

static void make_w2(struct bench *bench)
{
    static struct workload_w2 workload;
    workload_w2_init(&workload, SEED);
    char text[WORKLOAD_W2_LINE_SIZE_MAX];
    for (uint64_t i = 0; i < bench->event_count; i++) {
        struct workload_w2_line line;
        workload_w2_line(&workload, i, &line);
        lahar_value value = {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
        value.as.bytes = (lahar_bytes){text, workload_w2_text(&line, text) - 1};
        const lahar_event event = {.stream = bench->stream,
                                   .time_ns = line.time_ms * 1000000,
                                   .values = &value,
                                   .value_count = 1};
        require(lahar_row_encode(&bench->rows, bench->catalog, &event, NULL) == LAHAR_OK, "a row");
    }
}

/* Takes the lines of a file, at most 1 GiB, for events of a second each. */
static void make_lines(struct bench *bench, const char *path)
{
    FILE *file = fopen(path, "rb");
    require(file != NULL && fseek(file, 0, SEEK_END) == 0, "opening the file");
    const long end = ftell(file);
    require(end > 0 && end <= 1L << 30, "the size of the file");
    const size_t size = (size_t)end;
    char *text = malloc(size);
    rewind(file);
    require(text != NULL && fread(text, 1, size, file) == size, "reading the file");
    (void)fclose(file);
    const uint64_t wanted = bench->event_count;
    bench->event_count = 0;
    for (size_t at = 0; at < size || bench->event_count < wanted;) {
        at = at == size ? 0 : at;
        const char *newline = memchr(text + at, '\n', size - at);
        const size_t line_end = newline == NULL ? size : (size_t)(newline - text);
        lahar_value value = {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
        value.as.bytes = (lahar_bytes){text + at, line_end - at};
        const lahar_event event = {.stream = bench->stream,
                                   .time_ns = (int64_t)++bench->event_count * 1000000000,
                                   .values = &value,
                                   .value_count = 1};
        require(lahar_row_encode(&bench->rows, bench->catalog, &event, NULL) == LAHAR_OK, "a row");
        at = newline == NULL ? size : line_end + 1;
    }
    free(text);
}

/* --- steps -------------------------------------------------------------------------- */

/* Goes over the rows, which arrive BATCH_COUNT at a time. */
struct walk {
    const struct bench *bench;
    size_t at;
    uint64_t next_id;
    int64_t arrival_ns;
};

static bool next_row(struct walk *walk, struct lahar_row_event *event_out)
{
    const struct lahar_buffer *rows = &walk->bench->rows;
    if (walk->at == rows->size) {
        return false;
    }
    const uint8_t *row = rows->data + walk->at;
    const uint32_t size = lahar_row_size(row, rows->size - walk->at);
    if (walk->next_id % BATCH_COUNT == 0) {
        walk->arrival_ns = lahar_row_time(row);
    }
    *event_out = (struct lahar_row_event){
        .id = ++walk->next_id, .arrival_ns = walk->arrival_ns, .row = row, .size = size};
    walk->at += size;
    return true;
}

static void report(const struct bench *bench, const char *step, double seconds, uint64_t bytes)
{
    const double events = (double)bench->event_count;
    (void)printf("%-15s %8.0f ns/event %8.1f MB/s", step, seconds / events * 1e9,
                 (double)bench->rows.size / seconds / 1e6);
    if (bytes != 0) {
        (void)printf(" %8.2f B/event  ratio %.2f", (double)bytes / events,
                     (double)bench->rows.size / (double)bytes);
    }
    (void)printf("\n");
}

static void run_rows(const struct bench *bench)
{
    static lahar_event events[CHUNK_COUNT];
    struct walk walk = {.bench = bench};
    struct lahar_arena arena;
    struct lahar_buffer again;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_buffer_init(&again, &lahar_allocator_libc);
    double decode_seconds = 0;
    double encode_seconds = 0;
    size_t count = CHUNK_COUNT;
    while (count == CHUNK_COUNT) {
        const double start = thread_seconds();
        struct lahar_row_event row;
        lahar_arena_reset(&arena);
        for (count = 0; count < CHUNK_COUNT && next_row(&walk, &row); count++) {
            require(lahar_row_decode(row.row, row.size, &arena, &events[count], NULL) == LAHAR_OK,
                    "decoding");
        }
        const double middle = thread_seconds();
        lahar_buffer_clear(&again);
        for (size_t i = 0; i < count; i++) {
            require(lahar_row_encode(&again, bench->catalog, &events[i], NULL) == LAHAR_OK,
                    "a row");
        }
        decode_seconds += middle - start;
        encode_seconds += thread_seconds() - middle;
    }
    lahar_buffer_deinit(&again);
    lahar_arena_deinit(&arena);
    report(bench, "row decode", decode_seconds, 0);
    report(bench, "row encode", encode_seconds, 0);
}

/* Compresses size bytes at data into out, which has room for what out_size says; 0: failed. */
typedef size_t (*compress_rows)(void *state, const void *data, size_t size, void *out,
                                size_t out_size);

static size_t compress_deflate(void *state, const void *data, size_t size, void *out,
                               size_t out_size)
{
    return libdeflate_deflate_compress(state, data, size, out, out_size);
}

/* What a general compressor makes of the rows, in pieces as large as the rows of a block. */
static void run_peer(const struct bench *bench, const char *name, compress_rows compress,
                     void *state)
{
    const size_t out_size = (size_t)LAHAR_BLOCK_RAW_SIZE * 2;
    void *out = malloc(out_size);
    require(out != NULL && state != NULL, "allocation");
    uint64_t bytes = 0;
    const double start = thread_seconds();
    for (size_t at = 0; at < bench->rows.size;) {
        const size_t left = bench->rows.size - at;
        const size_t size = left < LAHAR_BLOCK_RAW_SIZE ? left : (size_t)LAHAR_BLOCK_RAW_SIZE;
        const size_t compressed = compress(state, bench->rows.data + at, size, out, out_size);
        require(compressed != 0, "compressing rows");
        bytes += compressed;
        at += size;
    }
    report(bench, name, thread_seconds() - start, bytes);
    free(out);
}

#ifdef LAHAR_BENCH_ZSTD
struct zstd {
    ZSTD_CCtx *context;
    int level;
};

static size_t compress_zstd(void *state, const void *data, size_t size, void *out, size_t out_size)
{
    const struct zstd *zstd = state;
    const size_t compressed =
        ZSTD_compressCCtx(zstd->context, out, out_size, data, size, zstd->level);
    return ZSTD_isError(compressed) ? 0 : compressed;
}
#endif

static void run_peers(const struct bench *bench)
{
    struct libdeflate_compressor *deflate = libdeflate_alloc_compressor(1);
    run_peer(bench, "rows, deflate 1", compress_deflate, deflate);
    libdeflate_free_compressor(deflate);
#ifdef LAHAR_BENCH_ZSTD
    struct zstd zstd = {ZSTD_createCCtx(), 1};
    require(zstd.context != NULL, "allocation");
    run_peer(bench, "rows, zstd 1", compress_zstd, &zstd);
    zstd.level = 3;
    run_peer(bench, "rows, zstd 3", compress_zstd, &zstd);
    (void)ZSTD_freeCCtx(zstd.context);
#endif
}

/* Processor time by step. */
struct times {
    double fill;
    double encode;
    double compress;
    double feed;
    double finish;
    double read;
    uint64_t block_bytes;
    uint64_t shard_bytes;
};

/* What the steps run on, reused from one group of events to the next as in a store. */
struct pipeline {
    struct lahar_block_writer *writer;
    struct lahar_index_feed *feed;
    struct lahar_buffer blocks; /* of a group, end to end */
    struct lahar_buffer shard;
};

/* Opens a block and reads all of its events. */
static void read_block(const struct bench *bench, const uint8_t *stored, size_t size,
                       struct lahar_arena *arena)
{
    const struct lahar_stream *stream = lahar_schema_stream(bench->catalog, bench->stream);
    uint8_t *owned = malloc(size); /* by the block */
    require(owned != NULL, "allocation");
    memcpy(owned, stored, size);
    struct lahar_block *block = NULL;
    lahar_event event;
    require(lahar_block_create(owned, size, stream, &lahar_allocator_libc, &block, NULL) ==
                LAHAR_OK,
            "opening a block");
    for (uint32_t row = 0; row < lahar_block_row_count(block); row++) {
        lahar_arena_reset(arena);
        require(lahar_block_read(block, row, arena, &event, NULL) == LAHAR_OK, "reading");
    }
    lahar_block_release(block);
}

/* Reads all blocks of a group. */
static double read_blocks(const struct bench *bench, const struct pipeline *pipeline)
{
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    const struct lahar_buffer *blocks = &pipeline->blocks;
    const double start = thread_seconds();
    for (size_t at = 0; at < blocks->size;) {
        struct lahar_block_header header;
        require(lahar_block_header_read(blocks->data + at, blocks->size - at, &header, NULL) ==
                    LAHAR_OK,
                "the header of a block");
        read_block(bench, blocks->data + at, header.size, &arena);
        at += header.size;
    }
    const double seconds = thread_seconds() - start;
    lahar_arena_deinit(&arena);
    return seconds;
}

static void finish_block(struct pipeline *pipeline, bool with_index, struct times *times)
{
    const double start = thread_seconds();
    require(lahar_block_writer_encode(pipeline->writer, NULL) == LAHAR_OK, "encoding");
    const double encoded = thread_seconds();
    const struct lahar_block_columns columns = lahar_block_writer_columns(pipeline->writer);
    require(!with_index || lahar_index_feed_add(pipeline->feed, &columns, NULL) == LAHAR_OK,
            "indexing");
    const double indexed = thread_seconds();
    struct lahar_block_info info;
    require(lahar_block_writer_compress(pipeline->writer, &pipeline->blocks, &info, NULL) ==
                LAHAR_OK,
            "compressing");
    times->encode += encoded - start;
    times->feed += indexed - encoded;
    times->compress += thread_seconds() - indexed;
}

/* Decodes rows into blocks, and does with each what the steps say. */
static struct times run_group(const struct bench *bench, struct pipeline *pipeline, bool with_index)
{
    struct times times = {0};
    struct walk walk = {.bench = bench};
    struct lahar_row_event event;
    lahar_buffer_clear(&pipeline->blocks);
    const double start = thread_seconds();
    bool has_event = next_row(&walk, &event);
    while (has_event) {
        require(lahar_block_writer_add_row(pipeline->writer, &event, NULL) == LAHAR_OK, "a block");
        has_event = next_row(&walk, &event);
        if (!has_event ||
            lahar_block_writer_raw_size(pipeline->writer) + event.size > LAHAR_BLOCK_RAW_SIZE) {
            finish_block(pipeline, with_index, &times);
        }
    }
    const double filled = thread_seconds();
    times.fill = filled - start - times.encode - times.feed - times.compress;
    times.block_bytes = pipeline->blocks.size;
    lahar_buffer_clear(&pipeline->shard);
    require(!with_index ||
                lahar_index_feed_finish(pipeline->feed, &pipeline->shard, NULL) == LAHAR_OK,
            "a shard");
    times.finish = thread_seconds() - filled;
    times.shard_bytes = pipeline->shard.size;
    return times;
}

/* Two groups of the same events: the second finds the memory that the first has left. */
static void run_blocks(const struct bench *bench, bool with_block, bool with_index)
{
    struct pipeline pipeline = {0};
    require(lahar_block_writer_create(lahar_schema_stream(bench->catalog, bench->stream),
                                      bench->level, &lahar_allocator_libc, &pipeline.writer,
                                      NULL) == LAHAR_OK,
            "a block writer");
    require(lahar_index_feed_create(bench->catalog, bench->stream, &lahar_allocator_libc,
                                    &pipeline.feed, NULL) == LAHAR_OK,
            "an index");
    lahar_buffer_init(&pipeline.blocks, &lahar_allocator_libc);
    lahar_buffer_init(&pipeline.shard, &lahar_allocator_libc);
    (void)run_group(bench, &pipeline, with_index);
    struct times times = run_group(bench, &pipeline, with_index);
    times.read = with_block ? read_blocks(bench, &pipeline) : 0;
    report(bench, "decode + fill", times.fill, 0);
    report(bench, "encode", times.encode, 0);
    report(bench, "compress", times.compress, 0);
    if (with_block) {
        report(bench, "block, in all", times.fill + times.encode + times.compress,
               times.block_bytes);
        report(bench, "block read", times.read, 0);
    }
    if (with_index) {
        report(bench, "index feed", times.feed, 0);
        report(bench, "index finish", times.finish, 0);
        report(bench, "index, in all", times.feed + times.finish, times.shard_bytes);
    }
    lahar_buffer_deinit(&pipeline.blocks);
    lahar_buffer_deinit(&pipeline.shard);
    lahar_block_writer_destroy(pipeline.writer);
    lahar_index_feed_destroy(pipeline.feed);
}

int main(int count, char **arguments)
{
    const char *workload = count > 1 ? arguments[1] : "W1";
    const bool is_w1 = strcmp(workload, "W1") == 0;
    const char *step = count > 3 ? arguments[3] : "all";
    const bool is_all = strcmp(step, "all") == 0;
    struct bench bench = {.event_count =
                              count > 2 ? strtoull(arguments[2], NULL, 10) : DEFAULT_EVENT_COUNT,
                          .level = count > 4 ? (uint32_t)strtoul(arguments[4], NULL, 10) : 1};
    require(lahar_schema_catalog_create(&lahar_allocator_libc, &bench.catalog, NULL) == LAHAR_OK,
            "a catalog");
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "bench",
                                    .schema = is_w1 ? LAHAR_SCHEMA_PROVENANCE : LAHAR_SCHEMA_LOG};
    require(lahar_schema_add_stream(bench.catalog, &spec, &bench.stream, NULL) == LAHAR_OK,
            "a stream");
    lahar_buffer_init(&bench.rows, &lahar_allocator_libc);
    if (is_w1) {
        make_w1(&bench);
    } else if (strcmp(workload, "W2") == 0) {
        make_w2(&bench);
    } else {
        make_lines(&bench, workload);
    }
    (void)printf("%s, %llu events, %.1f bytes each\n", workload,
                 (unsigned long long)bench.event_count,
                 (double)bench.rows.size / (double)bench.event_count);
    if (is_all || strcmp(step, "row") == 0) {
        run_rows(&bench);
    }
    if (is_all || strcmp(step, "peers") == 0) {
        run_peers(&bench);
    }
    if (strcmp(step, "block") == 0) {
        run_blocks(&bench, true, false);
    }
    if (is_all || strcmp(step, "index") == 0) {
        run_blocks(&bench, is_all, true);
    }
    lahar_buffer_deinit(&bench.rows);
    lahar_schema_catalog_destroy(bench.catalog);
    return 0;
}
