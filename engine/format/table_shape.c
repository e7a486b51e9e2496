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

static bool read_head(struct lahar_reader *reader, struct lahar_table_style *style_out,
                      bool *is_bare_out, lahar_bytes *header_out)
{
    const uint8_t kind = lahar_read_u8(reader);
    *style_out = lahar_table_style_of(kind == LAHAR_SHAPE_TSV);
    *is_bare_out = false;
    if (kind == LAHAR_SHAPE_TABLE) {
        const uint8_t flags = lahar_read_u8(reader);
        *style_out = lahar_table_style_of((flags & LAHAR_TABLE_SHAPE_TSV) != 0);
        *is_bare_out = (flags & LAHAR_TABLE_SHAPE_BARE) != 0;
        style_out->delimiter = lahar_read_u8(reader);
    }
    const uint64_t size = lahar_read_varint(reader);
    header_out->data = lahar_read_bytes(reader, size);
    header_out->size = reader->failed ? 0 : (size_t)size;
    return !reader->failed && lahar_table_shape_is(kind);
}

bool lahar_table_shape_header(lahar_bytes shape, lahar_bytes *header_out)
{
    struct lahar_reader reader = lahar_reader_of(shape.data, shape.size);
    struct lahar_table_style style;
    bool is_bare;
    const bool is_row = read_head(&reader, &style, &is_bare, header_out);
    if (is_bare) {
        *header_out = (lahar_bytes){0};
    }
    return is_row;
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
    struct lahar_table_style style;
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
    if (index >= row->names->field_count) {
        *name_out = lahar_column_name(index, storage);
        return true;
    }
    if (!lahar_table_value(row->names, row->names_text, index, row->arena, name_out)) {
        row->is_out_of_memory = true;
        return false;
    }
    return true;
}

static void put_null(struct row *row)
{
    lahar_buffer_put(row->out, "\\N", 2);
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
        lahar_table_put_value(row->out, &row->style, value->as.bytes);
        return true;
    case LAHAR_LIST_KEYWORD:
        if (value->as.keywords.count != 1) {
            return false;
        }
        lahar_table_put_value(row->out, &row->style, value->as.keywords.items[0]);
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
    lahar_table_put_value(row->out, &row->style, (lahar_bytes){storage, text.size});
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
        lahar_table_put_value(row->out, &row->style, pair->value);
    }
    return true;
}

/* The attribute whose text stands among the exceptions. */
static bool pass_attribute(struct row *row, size_t index)
{
    char storage[LAHAR_COLUMN_NAME_SIZE];
    lahar_bytes name;
    return name_of(row, index, storage, &name) && lahar_pair_take(&row->pairs, name) != NULL;
}

static bool put_field(struct row *row, size_t index, uint64_t where)
{
    if (index != 0) {
        lahar_buffer_put_u8(row->out, row->style.delimiter);
    }
    if (row->exception != index) {
        return where == 0 ? put_attribute(row, index) : put_declared(row, (uint32_t)(where - 1));
    }
    const uint64_t size = lahar_read_varint(&row->exceptions);
    const uint8_t *text = lahar_read_bytes(&row->exceptions, size);
    if (text == NULL || (where == 0 && !pass_attribute(row, index))) {
        return false;
    }
    lahar_table_put_value(row->out, &row->style, (lahar_bytes){text, (size_t)size});
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
    if (row->out->size == row_start && !row->style.is_tsv) {
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
    bool is_bare;
    bool is_sound = read_head(&reader, &row.style, &is_bare, &header) && header.size <= UINT32_MAX;
    if (is_sound) {
        const size_t start = lahar_table_header_start(header.data, header.size);
        row.names_text = (const uint8_t *)header.data + start;
        parser->style = row.style;
        lahar_table_parser_reset(parser);
        parser->has_cr = false;
        const enum lahar_table_result result =
            start == header.size
                ? (is_bare ? LAHAR_TABLE_DONE : LAHAR_TABLE_BAD)
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
