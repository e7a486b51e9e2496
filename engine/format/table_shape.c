/* Writing rows back; see table_shape.h. The shape is read from disk and not trusted. */
#include "engine/format/table_shape.h"

#include <stdio.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/format/pair_cursor.h"
#include "engine/format/value_text.h"
#include "io/base/error.h"

lahar_bytes lahar_column_name(size_t index, char storage[LAHAR_COLUMN_NAME_SIZE])
{
    const int size = snprintf(storage, LAHAR_COLUMN_NAME_SIZE, "column%zu", index + 1);
    return (lahar_bytes){storage, (size_t)size};
}

static bool read_head(struct lahar_reader *reader, bool *is_tsv_out, lahar_bytes *header_out)
{
    const uint8_t kind = lahar_read_u8(reader);
    const uint64_t size = lahar_read_varint(reader);
    header_out->data = lahar_read_bytes(reader, size);
    header_out->size = reader->failed ? 0 : (size_t)size;
    *is_tsv_out = kind == LAHAR_SHAPE_TSV;
    return !reader->failed && (kind == LAHAR_SHAPE_CSV || kind == LAHAR_SHAPE_TSV);
}

bool lahar_table_shape_header(lahar_bytes shape, lahar_bytes *header_out)
{
    struct lahar_reader reader = lahar_reader_of(shape.data, shape.size);
    bool is_tsv;
    return read_head(&reader, &is_tsv, header_out);
}

size_t lahar_table_header_start(const uint8_t *data, size_t size)
{
    size_t at = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < size && (data[at] == 0 || data[at] == '\n' ||
                         (data[at] == '\r' && at + 1 < size && data[at + 1] == '\n'))) {
        at++;
    }
    return at;
}

/* A row being written. */
struct row {
    const lahar_event *event;
    const struct lahar_table_parser *names; /* the header's fields */
    const uint8_t *names_text;
    struct lahar_arena *arena;
    struct lahar_buffer *out;
    struct lahar_pair_cursor pairs;
    struct lahar_reader exceptions;
    uint64_t exception; /* field of the next exception, UINT64_MAX for none */
    bool is_tsv;
    bool is_out_of_memory;
};

static void next_exception(struct row *row)
{
    row->exception =
        lahar_reader_left(&row->exceptions) == 0 ? UINT64_MAX : lahar_read_varint(&row->exceptions);
}

static bool name_of(struct row *row, size_t index, char storage[LAHAR_COLUMN_NAME_SIZE],
                    lahar_bytes *name_out)
{
    bool is_null;
    if (index >= row->names->field_count) {
        *name_out = lahar_column_name(index, storage);
        return true;
    }
    if (!lahar_table_value(row->names, row->names_text, index, row->arena, name_out, &is_null)) {
        row->is_out_of_memory = true;
        return false;
    }
    return true;
}

static void put_null(struct row *row)
{
    if (row->is_tsv) {
        lahar_buffer_put(row->out, "\\N", 2);
    }
}

static bool put_declared(struct row *row, uint32_t field)
{
    const lahar_value *value = lahar_event_find(row->event, field);
    uint8_t storage[64];
    struct lahar_buffer text = {.data = storage, .capacity = sizeof storage};
    lahar_value item = {.type = LAHAR_UUID};
    if (value == NULL || value->is_null) {
        put_null(row);
        return value != NULL;
    }
    switch (value->type) {
    case LAHAR_MAP:
        return false;
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        lahar_table_put_value(row->out, row->is_tsv, value->as.bytes);
        return true;
    case LAHAR_LIST_KEYWORD:
        if (value->as.keywords.count != 1) {
            return false;
        }
        lahar_table_put_value(row->out, row->is_tsv, value->as.keywords.items[0]);
        return true;
    case LAHAR_LIST_UUID:
        if (value->as.uuids.count != 1) {
            return false;
        }
        item.as.uuid = value->as.uuids.items[0];
        value = &item;
        break;
    default:
        break;
    }
    lahar_value_put_text(&text, value);
    lahar_table_put_value(row->out, row->is_tsv, (lahar_bytes){storage, text.size});
    return true;
}

static bool put_attribute(struct row *row, size_t index)
{
    char storage[LAHAR_COLUMN_NAME_SIZE];
    lahar_bytes name;
    if (!name_of(row, index, storage, &name)) {
        return false;
    }
    const lahar_pair *pair = lahar_pair_take(&row->pairs, name);
    if (pair == NULL) {
        return false;
    }
    if (pair->is_null) {
        put_null(row);
    } else {
        lahar_table_put_value(row->out, row->is_tsv, pair->value);
    }
    return true;
}

static bool put_field(struct row *row, size_t index, uint64_t where)
{
    if (index != 0) {
        lahar_buffer_put_u8(row->out, row->is_tsv ? '\t' : ',');
    }
    if (row->exception != index) {
        return where == 0 ? put_attribute(row, index) : put_declared(row, (uint32_t)(where - 1));
    }
    const uint64_t size = lahar_read_varint(&row->exceptions);
    const uint8_t *text = lahar_read_bytes(&row->exceptions, size);
    if (text == NULL) {
        return false;
    }
    lahar_table_put_value(row->out, row->is_tsv, (lahar_bytes){text, (size_t)size});
    next_exception(row);
    return true;
}

/* The fields, whose places are read from shape; exceptions begin behind them. */
static bool put_fields(struct row *row, struct lahar_reader *shape)
{
    const uint64_t count = lahar_read_varint(shape);
    struct lahar_reader places = *shape;
    for (uint64_t i = 0; i < count && !shape->failed; i++) {
        (void)lahar_read_varint(shape);
    }
    if (shape->failed) {
        return false;
    }
    row->exceptions = *shape;
    next_exception(row);
    const size_t row_start = row->out->size;
    for (size_t i = 0; i < count; i++) {
        if (!put_field(row, i, lahar_read_varint(&places))) {
            return false;
        }
    }
    /* A row of one empty field must not be taken for a blank line. */
    if (row->out->size == row_start && !row->is_tsv) {
        lahar_buffer_put(row->out, "\"\"", 2);
    }
    return row->exception == UINT64_MAX && !row->exceptions.failed;
}

lahar_status lahar_table_shape_write(const lahar_event *event, lahar_bytes shape,
                                     struct lahar_table_parser *parser, struct lahar_arena *arena,
                                     struct lahar_buffer *out, lahar_error *error)
{
    struct lahar_reader reader = lahar_reader_of(shape.data, shape.size);
    struct row row = {.event = event, .names = parser, .arena = arena, .out = out};
    lahar_bytes header;
    bool is_sound = read_head(&reader, &row.is_tsv, &header) && header.size <= UINT32_MAX;
    if (is_sound) {
        const size_t start = lahar_table_header_start(header.data, header.size);
        row.names_text = (const uint8_t *)header.data + start;
        parser->is_tsv = row.is_tsv;
        lahar_table_parser_reset(parser);
        const enum lahar_table_result result =
            start == header.size
                ? LAHAR_TABLE_BAD
                : lahar_table_parse(parser, row.names_text, header.size - start, true);
        row.is_out_of_memory =
            result == LAHAR_TABLE_NO_MEMORY ||
            !lahar_pair_cursor_init(&row.pairs, lahar_event_find(event, LAHAR_FIELD_ATTRIBUTES),
                                    arena);
        is_sound = result == LAHAR_TABLE_DONE && !row.is_out_of_memory && put_fields(&row, &reader);
        if (parser->has_cr) {
            lahar_buffer_put_u8(out, '\r');
        }
        lahar_buffer_put_u8(out, '\n');
    }
    if (row.is_out_of_memory || out->has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a row");
    }
    return is_sound ? LAHAR_OK
                    : lahar_fail(error, LAHAR_CORRUPT,
                                 "event %llu: _shape is damaged or does not fit the values",
                                 (unsigned long long)event->id);
}
