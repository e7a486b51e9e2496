/* Values, JSONCompactEachRow, CustomSeparated and Template: a record is a sequence of cells, and a
 * cell fills the field of its column's name. The record's own bytes are always kept, so that the
 * file comes back. */
#include <stdio.h>
#include <string.h>

#include "engine/format/table_shape.h"
#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

enum {
    RETRY_AT_ONCE_SIZE = 512, /* an unfinished record below this is looked at with each line */
    TEMPLATE_COLUMNS_MAX = 256
};

/* --- setting up ---------------------------------------------------------------------- */

/* ${name:rule} at *at; moves behind it. False: it is none. */
static bool read_placeholder(lahar_bytes row, size_t *at, lahar_bytes *name_out,
                             enum lahar_escaping *escaping_out)
{
    const char *p = row.data;
    const char *end = memchr(p + *at, '}', row.size - *at);
    const size_t start = *at + 2;
    if (end == NULL) {
        return false;
    }
    const size_t stop = (size_t)(end - p);
    const char *colon = memchr(p + start, ':', stop - start);
    *escaping_out = LAHAR_ESCAPING_ESCAPED;
    *name_out = (lahar_bytes){p + start, stop - start};
    *at = stop + 1;
    if (colon == NULL) {
        return true;
    }
    name_out->size = (size_t)(colon - p) - start;
    const lahar_bytes rule = {colon + 1, (size_t)(end - colon) - 1};
    return lahar_escaping_find(rule, escaping_out);
}

static lahar_status read_template(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_cell_rows *rows = &reader->of.cells;
    struct lahar_cell_grammar *grammar = &rows->grammar;
    const lahar_bytes row = reader->format.template_row;
    const char *p = row.data;
    size_t literal = 0;
    if (row.size == 0) {
        return lahar_fail(error, LAHAR_INVALID,
                          "the format Template needs the setting format_template_row");
    }
    grammar->parts = lahar_allocate_zeroed(reader->options.allocator, TEMPLATE_COLUMNS_MAX,
                                           sizeof *grammar->parts);
    rows->columns = lahar_allocate_zeroed(reader->options.allocator, TEMPLATE_COLUMNS_MAX,
                                          sizeof *rows->columns);
    if (grammar->parts == NULL || rows->columns == NULL) {
        return lahar_text_reader_no_memory(error);
    }
    for (size_t at = 0; at + 1 < row.size;) {
        if (p[at] != '$' || p[at + 1] != '{') {
            at++;
            continue;
        }
        const size_t start = at;
        struct lahar_cell_part *part = &grammar->parts[grammar->part_count];
        if (grammar->part_count == TEMPLATE_COLUMNS_MAX ||
            !read_placeholder(row, &at, &rows->columns[grammar->part_count], &part->escaping)) {
            return lahar_fail(error, LAHAR_INVALID,
                              "format_template_row: no ${column:rule} at byte %zu, or too many",
                              start);
        }
        part->before = (lahar_bytes){p + literal, start - literal};
        grammar->part_count++;
        literal = at;
    }
    rows->column_count = grammar->part_count;
    grammar->row_after = (lahar_bytes){p + literal, row.size - literal};
    if (grammar->part_count == 0) {
        return lahar_fail(error, LAHAR_INVALID, "format_template_row names no ${column:rule}");
    }
    return LAHAR_OK;
}

lahar_status lahar_cell_rows_init(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_cell_rows *rows = &reader->of.cells;
    const struct lahar_format_options *format = &reader->format;
    const lahar_allocator *allocator = reader->options.allocator;
    lahar_json_parser_init(&rows->json, allocator);
    lahar_buffer_init(&rows->names, allocator);
    rows->cells.allocator = allocator;
    rows->grammar.format = reader->options.format;
    switch (reader->options.format) {
    case LAHAR_FORMAT_TEMPLATE:
        rows->grammar.row_between = format->template_between;
        return read_template(reader, error);
    case LAHAR_FORMAT_CUSTOM:
        rows->grammar.row_before = format->custom_row_before;
        rows->grammar.row_after = format->custom_row_after;
        rows->grammar.row_between = format->custom_row_between;
        rows->grammar.result_before = format->custom_result_before;
        rows->grammar.result_after = format->custom_result_after;
        rows->grammar.field_delimiter = format->custom_field_delimiter;
        rows->grammar.escaping = format->custom_escaping;
        if (rows->grammar.row_after.size == 0) {
            /* Something has to end a row: what stands between two of them does it too. */
            rows->grammar.row_after = format->custom_row_between;
            rows->grammar.row_between = (lahar_bytes){0};
        }
        break;
    default:
        break;
    }
    return lahar_column_list(reader, &rows->names, &rows->columns, &rows->column_count, error);
}

void lahar_cell_rows_deinit(struct lahar_text_reader *reader)
{
    struct lahar_cell_rows *rows = &reader->of.cells;
    const lahar_allocator *allocator = reader->options.allocator;
    lahar_json_parser_deinit(&rows->json);
    lahar_buffer_deinit(&rows->names);
    lahar_release(allocator, rows->columns);
    lahar_release(allocator, rows->grammar.parts);
    lahar_release(allocator, rows->cells.cells);
}

/* --- between records ------------------------------------------------------------------ */

/* Whether literal stands at *at, which is moved behind it; *is_open_out: the input ends in it. */
static bool pass(lahar_bytes literal, const uint8_t *data, size_t size, size_t *at,
                 bool *is_open_out)
{
    const size_t left = size - *at;
    const size_t compared = left < literal.size ? left : literal.size;
    if (literal.size == 0 || (compared != 0 && memcmp(data + *at, literal.data, compared) != 0)) {
        return false;
    }
    if (compared < literal.size) {
        *is_open_out = true;
        return false;
    }
    *at += literal.size;
    return true;
}

/* CustomSeparated and Template: blank lines, NUL bytes, and what stands before the first row,
 * between rows and behind the last. */
static enum lahar_gap delimited_gap(struct lahar_text_reader *reader, const uint8_t *data,
                                    size_t size, size_t limit, bool is_last, size_t *at)
{
    struct lahar_cell_rows *rows = &reader->of.cells;
    const struct lahar_cell_grammar *grammar = &rows->grammar;
    while (*at < limit) {
        bool is_open = false;
        if (!rows->has_begun && pass(grammar->result_before, data, size, at, &is_open)) {
            rows->has_begun = true;
            continue;
        }
        if (rows->has_begun && (pass(grammar->row_between, data, size, at, &is_open) ||
                                pass(grammar->result_after, data, size, at, &is_open))) {
            continue;
        }
        if (is_open && !is_last) {
            return LAHAR_GAP_OPEN;
        }
        if (data[*at] == 0 || data[*at] == '\n') {
            (*at)++;
            continue;
        }
        rows->has_begun = true;
        return LAHAR_GAP_RECORD;
    }
    return LAHAR_GAP_OPEN;
}

enum lahar_gap lahar_cells_gap(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                               size_t limit, bool is_last, size_t *at)
{
    const lahar_format format = reader->options.format;
    if (format == LAHAR_FORMAT_CUSTOM || format == LAHAR_FORMAT_TEMPLATE) {
        return delimited_gap(reader, data, size, limit, is_last, at);
    }
    const uint8_t opening = format == LAHAR_FORMAT_VALUES ? '(' : '[';
    for (; *at < limit; (*at)++) {
        const uint8_t c = data[*at];
        if (c == opening) {
            return LAHAR_GAP_RECORD;
        }
        if (!lahar_json_is_space(c) && c != ',' && c != ';' && c != 0) {
            return LAHAR_GAP_LINE;
        }
    }
    return LAHAR_GAP_OPEN;
}

/* --- records ------------------------------------------------------------------------------ */

enum lahar_parsed lahar_cells_inside(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, bool is_last)
{
    struct lahar_cell_rows *cells = &reader->of.cells;
    struct lahar_rows *rows = &reader->rows;
    const size_t left = size - rows->start;
    if (!is_last && left < cells->retry_at) {
        return LAHAR_PARSED_MORE;
    }
    switch (lahar_cells_parse(&cells->grammar, &cells->json, &cells->cells, data + rows->start,
                              left, is_last)) {
    case LAHAR_CELLS_WHOLE: {
        const lahar_bytes after = cells->grammar.row_after;
        const bool ends_line = reader->options.format == LAHAR_FORMAT_CUSTOM && after.size == 1 &&
                               *(const uint8_t *)after.data == '\n';
        rows->gap = rows->start + cells->cells.size;
        rows->end = rows->gap;
        /* A row that a line end ends is kept without it, as any line is. */
        if (ends_line && rows->end != rows->start && data[rows->end - 1] == '\n') {
            rows->end--;
        }
        return LAHAR_PARSED_WHOLE;
    }
    case LAHAR_CELLS_MORE:
        /* Looked at again once it has grown by an eighth: a record of many lines costs no more
         * than ten times its size. */
        cells->retry_at = left < RETRY_AT_ONCE_SIZE ? 0 : left + left / 8;
        return LAHAR_PARSED_MORE;
    case LAHAR_CELLS_BAD:
        lahar_rows_fail(rows, cells->cells.failure, cells->cells.failure_at);
        return LAHAR_PARSED_BAD;
    default:
        return LAHAR_PARSED_NO_MEMORY;
    }
}

static bool name_of(struct lahar_text_reader *reader, const struct lahar_cell *cell,
                    lahar_bytes *name_out)
{
    const struct lahar_cell_rows *rows = &reader->of.cells;
    if (cell->column < rows->column_count) {
        *name_out = rows->columns[cell->column];
        return true;
    }
    char storage[LAHAR_COLUMN_NAME_SIZE];
    const lahar_bytes name = lahar_column_name(cell->column, storage);
    *name_out =
        (lahar_bytes){lahar_arena_copy(&reader->record.arena, storage, name.size), name.size};
    return name_out->data != NULL;
}

static lahar_status put_cells(struct lahar_text_reader *reader, const uint8_t *text, char *message)
{
    const struct lahar_cell_rows *rows = &reader->of.cells;
    const struct lahar_cell_list *list = &rows->cells;
    if (rows->column_count != 0 && list->count != rows->column_count &&
        !reader->options.allow_ragged) {
        (void)snprintf(message, LAHAR_LINE_MESSAGE_SIZE, "row has %zu values for %zu columns",
                       list->count, rows->column_count);
        return LAHAR_INVALID;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct lahar_cell *cell = &list->cells[i];
        lahar_bytes name;
        lahar_bytes value;
        bool is_null;
        if (cell->escaping == LAHAR_ESCAPING_NONE ||
            (reader->options.format == LAHAR_FORMAT_TEMPLATE &&
             rows->columns[cell->column].size == 0)) {
            continue;
        }
        if (!name_of(reader, cell, &name) ||
            !lahar_cell_value(cell->escaping, (lahar_bytes){text + cell->offset, cell->size},
                              cell->escaping == LAHAR_ESCAPING_CSV ? reader->format.csv_null
                                                                   : reader->format.tsv_null,
                              &reader->record.arena, &value, &is_null)) {
            return LAHAR_NO_MEMORY;
        }
        const lahar_status status =
            lahar_text_reader_put_or_say(reader, name, value, is_null, message);
        if (status != LAHAR_OK) {
            return status;
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_cells_take(struct lahar_text_reader *reader, const uint8_t *data,
                              lahar_error *error)
{
    char message[LAHAR_LINE_MESSAGE_SIZE];
    lahar_record_reset(&reader->record);
    const lahar_status status = put_cells(reader, data + reader->rows.start, message);
    if (status == LAHAR_INVALID) {
        return lahar_rows_report(reader, data, message, error);
    }
    if (status != LAHAR_OK) {
        return lahar_text_reader_no_memory(error);
    }
    return lahar_rows_deliver(reader, data, error);
}
