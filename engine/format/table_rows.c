/* CSVWithNames and TSVWithNames: the first record names the columns, every other one
 * is an event. Blank lines are passed over, except in a table of one column, where they are
 * empty values. What fails to parse costs its first line, a row that does not fit costs
 * the row. */
#include <stdio.h>
#include <string.h>

#include "engine/format/scan.h"
#include "engine/format/table_shape.h"
#include "engine/format/text_reader_internal.h"
#include "engine/format/time_text.h"

/* Passes over blank lines and the NUL bytes of a hole, up to limit. False when no record
 * begins before it. */
static bool scan_gap(const struct lahar_table_rows *table, const uint8_t *data, size_t size,
                     size_t limit, bool is_last, size_t *at)
{
    const bool are_blanks_rows = table->has_header && table->header_parser.field_count == 1;
    for (; *at < limit; (*at)++) {
        const uint8_t c = data[*at];
        if (c == 0 || (c == '\n' && !are_blanks_rows)) {
            continue;
        }
        if (c != '\r' || are_blanks_rows) {
            return true;
        }
        if (*at + 1 == size) {
            return is_last;
        }
        if (data[*at + 1] != '\n') {
            return true;
        }
    }
    return false;
}

static void begin(struct lahar_table_rows *table, size_t start)
{
    table->rows = (struct lahar_rows){.state = LAHAR_ROWS_RECORD, .start = start, .end = start};
    lahar_table_parser_reset(&table->parser);
}

static size_t between(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                      bool is_last)
{
    struct lahar_table_rows *table = &reader->of.table;
    /* What stands before the header is part of it; under keep_raw what stands before a row is
     * given back with it. */
    const bool keeps_gap = reader->options.keep_raw || !table->has_header;
    const size_t limit = keeps_gap ? lahar_rows_gap_limit(reader, 0, size) : size;
    size_t at = table->rows.start;
    if (scan_gap(table, data, size, limit, is_last, &at)) {
        const size_t kept = keeps_gap ? at : 0;
        begin(table, kept);
        return at - kept;
    }
    const bool is_kept = keeps_gap && !is_last && at < reader->options.record_size_max;
    table->rows.start = is_kept ? at : 0;
    return is_kept ? 0 : at;
}

/* The record is the header: kept, and parsed once more where it is kept. */
static lahar_status take_header(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                lahar_error *error)
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
};

static bool read_cell(struct lahar_text_reader *reader, const uint8_t *text, size_t index,
                      struct cell *cell_out)
{
    struct lahar_table_rows *table = &reader->of.table;
    struct lahar_arena *arena = &reader->record.arena;
    if (!lahar_table_value(&table->parser, text, index, arena, &cell_out->value,
                           &cell_out->is_null)) {
        return false;
    }
    if (index < table->header_parser.field_count) {
        bool is_null;
        return lahar_table_value(&table->header_parser, table->header.data + table->header_start,
                                 index, arena, &cell_out->name, &is_null);
    }
    char storage[LAHAR_COLUMN_NAME_SIZE];
    const lahar_bytes name = lahar_column_name(index, storage);
    cell_out->name = (lahar_bytes){lahar_arena_copy(arena, storage, name.size), name.size};
    return cell_out->name.data != NULL;
}

static bool is_text_type(lahar_type type)
{
    return type == LAHAR_KEYWORD || type == LAHAR_TEXT || type == LAHAR_BYTES;
}

/* Into the declared field. CSV cannot write null, so an empty cell of a type that has no empty
 * value is null. */
static enum lahar_record_put put_declared(struct lahar_text_reader *reader,
                                          const struct lahar_field_entry *entry,
                                          const struct cell *cell)
{
    const bool is_null = cell->is_null || (cell->value.size == 0 && !is_text_type(entry->type) &&
                                           reader->options.format == LAHAR_FORMAT_CSV);
    if (is_null) {
        return lahar_record_put_null(&reader->record, entry) ? LAHAR_PUT_EXACT
                                                             : LAHAR_PUT_NO_MEMORY;
    }
    return lahar_record_put_text(&reader->record, entry, cell->value);
}

static lahar_status put_cell(struct lahar_text_reader *reader, size_t index,
                             const struct cell *cell, struct lahar_buffer *exceptions)
{
    struct lahar_record *record = &reader->record;
    const struct lahar_field_entry *entry =
        lahar_field_map_find(&reader->fields, cell->name.data, cell->name.size);
    if (entry != NULL && entry->is_time) {
        lahar_record_take_time(record, cell->value);
    }
    if (entry == NULL || !entry->is_declared || entry->type == LAHAR_MAP ||
        lahar_record_has(record, entry->field)) {
        lahar_buffer_put_varint(&record->shape, 0);
        return lahar_record_add_pair(record, 0, cell->name, cell->value, cell->is_null)
                   ? LAHAR_OK
                   : LAHAR_NO_MEMORY;
    }
    lahar_buffer_put_varint(&record->shape, (uint64_t)entry->field + 1);
    switch (put_declared(reader, entry, cell)) {
    case LAHAR_PUT_EXACT:
        return LAHAR_OK;
    case LAHAR_PUT_INEXACT:
        lahar_buffer_put_varint(exceptions, index);
        lahar_buffer_put_sized(exceptions, cell->value.data, cell->value.size);
        return LAHAR_OK;
    case LAHAR_PUT_REFUSED:
        return LAHAR_INVALID;
    default:
        return LAHAR_NO_MEMORY;
    }
}

static void put_shape_head(struct lahar_text_reader *reader)
{
    const struct lahar_table_rows *table = &reader->of.table;
    struct lahar_buffer *shape = &reader->record.shape;
    lahar_buffer_put_u8(shape, table->parser.is_tsv ? LAHAR_SHAPE_TSV : LAHAR_SHAPE_CSV);
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
    if (field_count != column_count && !reader->options.allow_ragged) {
        (void)snprintf(message, 200, "row has %zu fields, the header has %zu", field_count,
                       column_count);
        return LAHAR_INVALID;
    }
    lahar_record_reset(record);
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

static lahar_status take_row(struct lahar_text_reader *reader, const uint8_t *data,
                             lahar_error *error)
{
    const struct lahar_rows *rows = &reader->of.table.rows;
    char message[200];
    const lahar_status status = map_row(reader, data + rows->start, message);
    if (status == LAHAR_INVALID) {
        return lahar_rows_report(reader, rows, data, message, error);
    }
    if (status != LAHAR_OK) {
        return lahar_text_reader_no_memory(error);
    }
    return lahar_rows_deliver(reader, rows, data, error);
}

/* The record has been parsed: header or row. */
static lahar_status complete(struct lahar_text_reader *reader, const uint8_t *data,
                             size_t *consumed_out, lahar_error *error)
{
    struct lahar_table_rows *table = &reader->of.table;
    struct lahar_rows *rows = &table->rows;
    const size_t behind = rows->start + table->parser.position;
    lahar_status status;
    if (!table->has_header) {
        status = take_header(reader, data, behind, error);
    } else {
        rows->gap = behind;
        rows->end = behind;
        if (table->parser.has_lf) {
            rows->end -= 1 + (size_t)table->parser.has_cr;
        }
        if (reader->options.keep_raw) {
            rows->state = LAHAR_ROWS_COMPLETE;
            return LAHAR_OK;
        }
        status = take_row(reader, data, error);
    }
    *consumed_out = behind;
    *rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    return status;
}

static lahar_status inside_record(struct lahar_text_reader *reader, const uint8_t *data,
                                  size_t size, bool is_last, size_t *consumed_out,
                                  lahar_error *error)
{
    struct lahar_table_rows *table = &reader->of.table;
    const size_t start = table->rows.start;
    const size_t size_max = reader->options.record_size_max;
    switch (lahar_table_parse(&table->parser, data + start, size - start, is_last)) {
    case LAHAR_TABLE_DONE:
        if (table->parser.position > size_max) {
            lahar_rows_fail(&table->rows, "", SIZE_MAX);
            return LAHAR_OK;
        }
        return complete(reader, data, consumed_out, error);
    case LAHAR_TABLE_MORE:
        if (size - start > size_max) {
            lahar_rows_fail(&table->rows, "", SIZE_MAX);
        }
        return LAHAR_OK;
    case LAHAR_TABLE_BAD:
        lahar_rows_fail(&table->rows, table->parser.failure, table->parser.scanned);
        return LAHAR_OK;
    default:
        return lahar_text_reader_no_memory(error);
    }
}

/* keep_raw: delivers once the next row begins or the file ends. */
static lahar_status behind_record(struct lahar_text_reader *reader, const uint8_t *data,
                                  size_t size, bool is_last, size_t *consumed_out,
                                  lahar_error *error)
{
    struct lahar_table_rows *table = &reader->of.table;
    size_t at = table->rows.gap;
    const size_t limit = lahar_rows_gap_limit(reader, table->rows.end, size);
    const bool is_found = scan_gap(table, data, size, limit, is_last, &at);
    table->rows.gap = at;
    if (!is_found && !is_last && at - table->rows.end < reader->options.record_size_max) {
        return LAHAR_OK;
    }
    const lahar_status status = take_row(reader, data, error);
    *consumed_out = at;
    table->rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    return status;
}

lahar_status lahar_table_rows_consume(struct lahar_text_reader *reader, const uint8_t *data,
                                      size_t size, bool is_last, size_t *consumed_out,
                                      lahar_error *error)
{
    struct lahar_rows *rows = &reader->of.table.rows;
    size_t done = 0;
    for (;;) {
        const uint8_t *p = data + done;
        const size_t left = size - done;
        const enum lahar_rows_state before = rows->state;
        size_t count = 0;
        lahar_status status = LAHAR_OK;
        switch (before) {
        case LAHAR_ROWS_BETWEEN:
            count = between(reader, p, left, is_last);
            break;
        case LAHAR_ROWS_RECORD:
            status = inside_record(reader, p, left, is_last, &count, error);
            break;
        case LAHAR_ROWS_LINE:
            status = lahar_rows_fail_line(reader, rows, p, left, is_last, &count, error);
            break;
        case LAHAR_ROWS_COMPLETE:
            status = behind_record(reader, p, left, is_last, &count, error);
            break;
        case LAHAR_ROWS_SKIP:
            count = lahar_rows_skip(rows, p, left);
            break;
        }
        if (status != LAHAR_OK) {
            return status;
        }
        lahar_text_reader_advance(reader, p, count);
        done += count;
        *consumed_out = done;
        if (count == 0 && rows->state == before) {
            return LAHAR_OK;
        }
    }
}
