/* CSV and TSV: the first record names the columns, or the reader does, every other one is an
 * event. Blank lines are passed over, except in a table of one column, where they are
 * empty values. What fails to parse costs its first line, a row that does not fit costs
 * the row. */
#include <stdio.h>
#include <string.h>

#include "engine/format/columns.h"
#include "engine/format/scan.h"
#include "engine/format/table_shape.h"
#include "engine/format/text_reader_internal.h"
#include "engine/format/time_text.h"
#include "io/base/error.h"

/* A format without a header has the one that would say the same. */
static lahar_status make_header(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_table_rows *table = &reader->of.table;
    struct lahar_buffer names;
    lahar_bytes *columns = NULL;
    size_t count = 0;
    lahar_buffer_init(&names, reader->options.allocator);
    lahar_status status = lahar_column_list(reader, &names, &columns, &count, error);
    for (size_t i = 0; i < count && status == LAHAR_OK; i++) {
        if (i != 0) {
            lahar_buffer_put_u8(&table->header, table->parser.style.delimiter);
        }
        lahar_table_put_value(&table->header, &table->parser.style, columns[i]);
    }
    lahar_release(reader->options.allocator, columns);
    lahar_buffer_deinit(&names);
    lahar_buffer_put_u8(&table->header, '\n');
    if (status == LAHAR_OK && table->header.has_failed) {
        status = lahar_text_reader_no_memory(error);
    }
    LAHAR_TRY(status);
    table->has_header = true;
    return count == 0 || lahar_table_parse(&table->header_parser, table->header.data,
                                           table->header.size, true) == LAHAR_TABLE_DONE
               ? LAHAR_OK
               : lahar_text_reader_no_memory(error);
}

lahar_status lahar_table_rows_init(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_table_rows *table = &reader->of.table;
    const struct lahar_format_options *format = &reader->format;
    const lahar_allocator *allocator = reader->options.allocator;
    const bool is_tsv = lahar_format_is_tsv(reader->options.format);
    struct lahar_table_style style = lahar_table_style_of(is_tsv);
    if (!is_tsv) {
        style.delimiter = format->csv_delimiter;
        style.has_single_quotes = format->csv_single_quotes;
        style.has_double_quotes = format->csv_double_quotes;
    }
    lahar_table_parser_init(&table->parser, allocator, &style);
    lahar_table_parser_init(&table->header_parser, allocator, &style);
    lahar_buffer_init(&table->header, allocator);
    lahar_arena_init(&table->arena, allocator, 0);
    table->null_text = is_tsv ? format->tsv_null : format->csv_null;
    table->trims = !is_tsv && format->csv_trim;
    table->empty_is_null = is_tsv ? format->tsv_empty_as_default : format->csv_empty_as_default;
    table->is_plain =
        lahar_format_has_header(reader->options.format) && style.delimiter == (is_tsv ? '\t' : ',');
    if (lahar_format_has_header(reader->options.format)) {
        return LAHAR_OK;
    }
    return make_header(reader, error);
}

void lahar_table_rows_deinit(struct lahar_text_reader *reader)
{
    struct lahar_table_rows *table = &reader->of.table;
    lahar_table_parser_deinit(&table->parser);
    lahar_table_parser_deinit(&table->header_parser);
    lahar_buffer_deinit(&table->header);
    lahar_arena_deinit(&table->arena);
    lahar_release(reader->options.allocator, table->columns);
}

/* Passes over blank lines and the NUL bytes of a hole. */
enum lahar_gap lahar_table_gap(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                               size_t limit, bool is_last, size_t *at)
{
    const struct lahar_table_rows *table = &reader->of.table;
    const bool are_blanks_rows = table->has_header && table->header_parser.field_count == 1;
    for (; *at < limit; (*at)++) {
        const uint8_t c = data[*at];
        if (c == 0 || (c == '\n' && !are_blanks_rows)) {
            continue;
        }
        if (c != '\r' || are_blanks_rows) {
            return LAHAR_GAP_RECORD;
        }
        if (*at + 1 == size) {
            return is_last ? LAHAR_GAP_RECORD : LAHAR_GAP_OPEN;
        }
        if (data[*at + 1] != '\n') {
            return LAHAR_GAP_RECORD;
        }
    }
    return LAHAR_GAP_OPEN;
}

/* Kept, and parsed once more where it is kept. */
lahar_status lahar_table_take_header(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, lahar_error *error)
{
    struct lahar_table_rows *table = &reader->of.table;
    if (reader->has_bom) {
        lahar_buffer_put(&table->header, "\xef\xbb\xbf", 3);
        reader->has_bom = false;
    }
    lahar_buffer_put(&table->header, data, size);
    if (table->header.has_failed) {
        return lahar_text_reader_no_memory(error);
    }
    const size_t start = lahar_table_header_start(table->header.data, table->header.size);
    lahar_table_parser_reset(&table->header_parser);
    table->header_start = start;
    table->has_header = true;
    table->mapped = NULL;
    return lahar_table_parse(&table->header_parser, table->header.data + start,
                             table->header.size - start, true) == LAHAR_TABLE_DONE
               ? LAHAR_OK
               : lahar_text_reader_no_memory(error);
}

/* One field of a row on its way into the record. */
struct cell {
    lahar_bytes name;
    lahar_bytes value;
    bool is_null;
    bool is_odd;      /* written otherwise than its value would be */
    bool has_default; /* the field has a DEFAULT */
    const struct lahar_field_entry *entry;
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static lahar_bytes trim(lahar_bytes value)
{
    const uint8_t *p = value.data;
    size_t size = value.size;
    while (size != 0 && is_space(p[size - 1])) {
        size--;
    }
    while (size != 0 && is_space(*p)) {
        p++;
        size--;
    }
    return (lahar_bytes){p, size};
}

/* Whether the cell's text, as it stands in the file, is that of null. */
static void find_null(const struct lahar_table_rows *table, const uint8_t *text, size_t index,
                      struct cell *cell)
{
    const struct lahar_table_field *field = &table->parser.fields[index];
    const lahar_bytes null_text = table->null_text;
    const lahar_bytes whole = table->trims && !field->is_quoted
                                  ? trim((lahar_bytes){text + field->offset, field->size})
                                  : (lahar_bytes){text + field->offset, field->size};
    if (field->is_quoted || whole.size != null_text.size ||
        (whole.size != 0 && memcmp(whole.data, null_text.data, whole.size) != 0)) {
        return;
    }
    cell->is_null = true;
    cell->is_odd = null_text.size != 2 || memcmp(null_text.data, "\\N", 2) != 0;
}

static bool read_cell(struct lahar_text_reader *reader, const uint8_t *text, size_t index,
                      struct cell *cell_out)
{
    struct lahar_table_rows *table = &reader->of.table;
    struct lahar_arena *arena = &reader->record.arena;
    *cell_out = (struct cell){0};
    if (!lahar_table_value(&table->parser, text, index, arena, &cell_out->value)) {
        return false;
    }
    if (table->trims && !table->parser.fields[index].is_quoted) {
        cell_out->value = trim(cell_out->value);
    }
    find_null(table, text, index, cell_out);
    if (index < table->header_parser.field_count) {
        const struct lahar_table_column *column = &table->columns[index];
        cell_out->name = column->name;
        cell_out->entry = column->entry;
        cell_out->has_default = column->has_default;
        return true;
    }
    char storage[LAHAR_COLUMN_NAME_SIZE];
    const lahar_bytes name = lahar_column_name(index, storage);
    cell_out->name = (lahar_bytes){lahar_arena_copy(arena, storage, name.size), name.size};
    cell_out->entry = lahar_field_map_find(&reader->fields, storage, name.size);
    return cell_out->name.data != NULL;
}

/* Looks up what the header's columns stand for, once for many rows. */
static bool map_columns(struct lahar_text_reader *reader)
{
    struct lahar_table_rows *table = &reader->of.table;
    const size_t count = table->header_parser.field_count;
    if (table->mapped == reader->fields.entries) {
        return true;
    }
    struct lahar_table_column *columns =
        lahar_reallocate(reader->options.allocator, table->columns, (count + 1) * sizeof *columns);
    if (columns == NULL) {
        return false;
    }
    table->columns = columns;
    lahar_arena_reset(&table->arena);
    for (size_t i = 0; i < count; i++) {
        struct lahar_table_column *column = &columns[i];
        *column = (struct lahar_table_column){0};
        if (!lahar_table_value(&table->header_parser, table->header.data + table->header_start, i,
                               &table->arena, &column->name)) {
            return false;
        }
        column->entry = lahar_field_map_find(&reader->fields, column->name.data, column->name.size);
        column->has_default =
            column->entry != NULL && column->entry->is_declared &&
            lahar_columns_have_default(reader->options.columns, column->entry->field);
    }
    table->mapped = reader->fields.entries;
    return true;
}

static bool is_text_type(lahar_type type)
{
    return type == LAHAR_KEYWORD || type == LAHAR_TEXT || type == LAHAR_BYTES;
}

/* An empty cell of a type that has no empty value is null. */
static void find_empty(struct lahar_text_reader *reader, struct cell *cell)
{
    const struct lahar_field_entry *entry = cell->entry;
    if (cell->value.size == 0 && !cell->is_null && reader->of.table.empty_is_null &&
        entry != NULL && entry->is_declared && entry->type != LAHAR_MAP &&
        !is_text_type(entry->type) && !lahar_record_has(&reader->record, entry->field)) {
        cell->is_null = true;
        cell->is_odd = true;
    }
}

static void put_exception(struct lahar_buffer *exceptions, size_t index, lahar_bytes text)
{
    lahar_buffer_put_varint(exceptions, index);
    lahar_buffer_put_sized(exceptions, text.data, text.size);
}

static lahar_status put_cell(struct lahar_text_reader *reader, size_t index, struct cell *cell,
                             struct lahar_buffer *exceptions)
{
    struct lahar_record *record = &reader->record;
    find_empty(reader, cell);
    const size_t before = record->value_count;
    if (cell->is_null && cell->is_odd && cell->has_default && cell->value.size == 0) {
        /* As good as none; its place is among the shape's. */
        lahar_buffer_put_varint(&record->shape, (uint64_t)cell->entry->field + 1);
        put_exception(exceptions, index, cell->value);
        return LAHAR_OK;
    }
    const enum lahar_record_put put =
        lahar_text_reader_put_entry(reader, cell->entry, cell->name, cell->value, cell->is_null);
    switch (put) {
    case LAHAR_PUT_PAIR:
        lahar_buffer_put_varint(&record->shape, 0);
        break;
    case LAHAR_PUT_EXACT:
    case LAHAR_PUT_INEXACT:
        lahar_buffer_put_varint(&record->shape, (uint64_t)record->values[before].field + 1);
        break;
    case LAHAR_PUT_REFUSED:
        return LAHAR_INVALID;
    default:
        return LAHAR_NO_MEMORY;
    }
    if (put == LAHAR_PUT_INEXACT || cell->is_odd) {
        put_exception(exceptions, index, cell->value);
    }
    return LAHAR_OK;
}

static void put_shape_head(struct lahar_text_reader *reader)
{
    const struct lahar_table_rows *table = &reader->of.table;
    struct lahar_buffer *shape = &reader->record.shape;
    const bool is_tsv = table->parser.style.is_tsv;
    if (table->is_plain) {
        lahar_buffer_put_u8(shape, is_tsv ? LAHAR_SHAPE_TSV : LAHAR_SHAPE_CSV);
    } else {
        const bool has_header = lahar_format_has_header(reader->options.format);
        lahar_buffer_put_u8(shape, LAHAR_SHAPE_TABLE);
        lahar_buffer_put_u8(shape, (uint8_t)((is_tsv ? LAHAR_TABLE_SHAPE_TSV : 0) |
                                             (has_header ? 0 : LAHAR_TABLE_SHAPE_BARE)));
        lahar_buffer_put_u8(shape, table->parser.style.delimiter);
    }
    lahar_buffer_put_sized(shape, table->header.data, table->header.size);
    lahar_buffer_put_varint(shape, table->parser.field_count);
}

/* LAHAR_INVALID: the row does not fit, message says why. */
static lahar_status map_row(struct lahar_text_reader *reader, const uint8_t *text,
                            char message[200])
{
    struct lahar_table_rows *table = &reader->of.table;
    struct lahar_record *record = &reader->record;
    const size_t column_count = table->header_parser.field_count;
    const size_t field_count = table->parser.field_count;
    const bool is_free = column_count == 0 || reader->options.allow_ragged;
    if (field_count != column_count && !is_free) {
        (void)snprintf(message, 200, "row has %zu fields, the header has %zu", field_count,
                       column_count);
        return LAHAR_INVALID;
    }
    lahar_record_reset(record);
    if (!map_columns(reader)) {
        return LAHAR_NO_MEMORY;
    }
    put_shape_head(reader);
    /* Exceptions stand behind the places of all fields; they are rare. */
    struct lahar_buffer exceptions;
    lahar_buffer_init(&exceptions, reader->options.allocator);
    lahar_status status = LAHAR_OK;
    for (size_t i = 0; i < field_count && status == LAHAR_OK; i++) {
        struct cell cell;
        status = read_cell(reader, text, i, &cell) ? put_cell(reader, i, &cell, &exceptions)
                                                   : LAHAR_NO_MEMORY;
        if (status == LAHAR_INVALID) {
            const int shown = cell.value.size > 60 ? 60 : (int)cell.value.size;
            (void)snprintf(message, 200, "column %zu does not fit its declared field: %.*s", i + 1,
                           shown, shown == 0 ? "" : (const char *)cell.value.data);
        }
    }
    lahar_buffer_put(&record->shape, exceptions.data, exceptions.size);
    if (exceptions.has_failed || record->shape.has_failed) {
        status = LAHAR_NO_MEMORY;
    }
    lahar_buffer_deinit(&exceptions);
    return status;
}

lahar_status lahar_table_take(struct lahar_text_reader *reader, const uint8_t *data,
                              lahar_error *error)
{
    char message[200];
    const lahar_status status = map_row(reader, data + reader->rows.start, message);
    if (status == LAHAR_INVALID) {
        return lahar_rows_report(reader, data, message, error);
    }
    if (status != LAHAR_OK) {
        return lahar_text_reader_no_memory(error);
    }
    return lahar_rows_deliver(reader, data, error);
}

enum lahar_parsed lahar_table_inside(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, bool is_last)
{
    struct lahar_table_parser *parser = &reader->of.table.parser;
    struct lahar_rows *rows = &reader->rows;
    switch (lahar_table_parse(parser, data + rows->start, size - rows->start, is_last)) {
    case LAHAR_TABLE_DONE:
        rows->gap = rows->start + parser->position;
        rows->end = rows->gap - (parser->has_lf ? 1 + (size_t)parser->has_cr : 0);
        return LAHAR_PARSED_WHOLE;
    case LAHAR_TABLE_MORE:
        return LAHAR_PARSED_MORE;
    case LAHAR_TABLE_BAD:
        lahar_rows_fail(rows, parser->failure, parser->scanned);
        return LAHAR_PARSED_BAD;
    default:
        return LAHAR_PARSED_NO_MEMORY;
    }
}
