/* Fuzzes the text formats. The first byte chooses format and options, the rest is the
 * file. Held to: events do not depend on how the file is cut; lines come back byte
 * for byte, other formats without failing records do under keep_raw; and a value-exact export,
 * read again, gives the same export; JSON output is JSON. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/format/export.h"
#include "engine/format/json.h"
#include "engine/format/text_reader.h"
#include "engine/format/utf8.h"

struct run {
    struct lahar_schema_catalog *catalog;
    struct lahar_text_reader_options options;
    struct lahar_buffer rows;
    uint64_t error_count;
};

static void require(bool holds)
{
    if (!holds) {
        __builtin_trap();
    }
}

static lahar_status emit(void *context, const lahar_event *event, uint64_t offset,
                         lahar_error *error)
{
    struct run *run = context;
    (void)offset;
    return lahar_row_encode(&run->rows, run->catalog, event, error);
}

/* One catalogue for all inputs: making one costs more than reading a small file. */
static struct lahar_schema_catalog *shared_catalog(void)
{
    static struct lahar_schema_catalog *catalog;
    static const lahar_field_spec fields[] = {
        {"i", LAHAR_I64, false},     {"f", LAHAR_F64, false},    {"t", LAHAR_TIME, false},
        {"k", LAHAR_KEYWORD, false}, {"a.b", LAHAR_TEXT, false}, {"l", LAHAR_LIST_KEYWORD, false},
        {"m", LAHAR_MAP, false}};
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "s",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = fields,
                                    .field_count = sizeof fields / sizeof fields[0]};
    uint32_t stream = 0;
    if (catalog == NULL) {
        require(lahar_schema_catalog_create(&lahar_allocator_libc, &catalog, NULL) == LAHAR_OK);
        require(lahar_schema_add_stream(catalog, &spec, &stream, NULL) == LAHAR_OK);
    }
    return catalog;
}

static void init(struct run *run, uint8_t choice)
{
    memset(run, 0, sizeof *run);
    run->catalog = shared_catalog();
    lahar_buffer_init(&run->rows, &lahar_allocator_libc);
    require(lahar_buffer_reserve(&run->rows, 4096));
    run->options = (struct lahar_text_reader_options){
        .allocator = &lahar_allocator_libc,
        .catalog = run->catalog,
        .stream = 0,
        .format = (lahar_format)(LAHAR_FORMAT_LINE + (choice & 3)),
        .keep_raw = (choice & 4) != 0,
        .errors_as_events = (choice & 8) != 0,
        .allow_ragged = (choice & 16) != 0,
        .time_field = (choice & 32) != 0 ? "t" : NULL,
        .record_size_max = (choice & 64) != 0 ? 100 : 1 << 20,
        .emit = emit,
        .emit_context = run,
    };
}

static void read_file(struct run *run, const uint8_t *data, size_t size, size_t piece)
{
    struct lahar_text_reader *reader = NULL;
    lahar_buffer_clear(&run->rows);
    require(lahar_text_reader_create(&run->options, &reader, NULL) == LAHAR_OK);
    for (size_t at = 0; at < size; at += piece) {
        const size_t left = size - at;
        require(lahar_text_reader_write(reader, data + at, left < piece ? left : piece, NULL) ==
                LAHAR_OK);
    }
    require(lahar_text_reader_finish(reader, NULL) == LAHAR_OK);
    run->error_count = lahar_text_reader_error_count(reader);
    require(lahar_text_reader_offset(reader) == size);
    lahar_text_reader_destroy(reader);
}

/* One JSON value in valid UTF-8. */
static void require_json(struct lahar_json_parser *parser, lahar_bytes json)
{
    const uint8_t *p = json.data;
    const uint8_t *end = p + json.size;
    require(lahar_json_check(parser, p, json.size) == LAHAR_JSON_DONE);
    while (p < end) {
        const size_t size = lahar_utf8_sequence(p, end);
        require(size != 0);
        p += size;
    }
}

/* What all rows give when written back; what they give as JSON must be JSON. */
static void write_back(struct run *run, struct lahar_buffer *out)
{
    struct lahar_export *export_ = NULL;
    struct lahar_json_parser parser;
    struct lahar_arena arena;
    lahar_json_parser_init(&parser, &lahar_allocator_libc);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_buffer_clear(out);
    require(lahar_export_create(&lahar_allocator_libc, run->catalog, &export_, NULL) == LAHAR_OK);
    for (size_t at = 0; at < run->rows.size;) {
        const uint32_t size = lahar_row_size(run->rows.data + at, run->rows.size - at);
        lahar_event event;
        lahar_bytes bytes;
        lahar_arena_reset(&arena);
        require(lahar_row_decode(run->rows.data + at, size, &arena, &event, NULL) == LAHAR_OK);
        require(lahar_export_raw(export_, &event, &bytes, NULL) == LAHAR_OK);
        lahar_buffer_put(out, bytes.data, bytes.size);
        require(lahar_export_json(export_, &event, &bytes, NULL) == LAHAR_OK);
        require_json(&parser, bytes);
        at += size;
    }
    lahar_export_close(export_);
    lahar_json_parser_deinit(&parser);
    lahar_arena_deinit(&arena);
}

static bool is_same(const struct lahar_buffer *a, const void *data, size_t size)
{
    return a->size == size && (size == 0 || memcmp(a->data, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct run whole;
    struct run parts;
    struct lahar_buffer out;
    struct lahar_buffer again;
    const uint8_t choice = data[0];
    const uint8_t *file = data + 1;
    const size_t file_size = size - 1;
    init(&whole, choice);
    init(&parts, choice);
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_buffer_init(&again, &lahar_allocator_libc);
    read_file(&whole, file, file_size, size);
    read_file(&parts, file, file_size, (size_t)(choice >> 4) % 5 + 1);
    require(whole.error_count == parts.error_count);
    require(is_same(&whole.rows, parts.rows.data, parts.rows.size));
    write_back(&whole, &out);
    const bool is_clean = whole.error_count == 0 && whole.rows.size != 0 &&
                          whole.options.record_size_max > file_size * 8;
    if (is_clean && (whole.options.format == LAHAR_FORMAT_LINE || whole.options.keep_raw)) {
        require(is_same(&out, file, file_size));
    } else if (is_clean) {
        read_file(&parts, out.data, out.size, 1000);
        require(parts.error_count == 0);
        write_back(&parts, &again);
        require(is_same(&again, out.data, out.size));
    }
    lahar_buffer_deinit(&out);
    lahar_buffer_deinit(&again);
    lahar_buffer_deinit(&whole.rows);
    lahar_buffer_deinit(&parts.rows);
    return 0;
}
