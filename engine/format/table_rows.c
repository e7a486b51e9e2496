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
    const struct lahar_mark_set set = lahar_table_marks(&style);
    lahar_marks_init(&reader->marks, &set, reader->options.simd);
    lahar_table_parser_init(&table->parser, allocator, &style);
    lahar_table_parser_init(&table->header_parser, allocator, &style);
    lahar_buffer_init(&table->header, allocator);
    lahar_buffer_init(&table->shape_head, allocator);
    lahar_buffer_init(&table->exceptions, allocator);
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
    lahar_buffer_deinit(&table->shape_head);
    lahar_buffer_deinit(&table->exceptions);
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
    table->mapped_version = 0;
    return lahar_table_parse(&table->header_parser, table->header.data + start,
                             table->header.size - start, true) == LAHAR_TABLE_DONE
               ? LAHAR_OK
               : lahar_text_reader_no_memory(error);
}

lahar_status lahar_table_take(struct lahar_text_reader *reader, const uint8_t *data,
                              lahar_error *error)
{
    char message[LAHAR_TABLE_MESSAGE_SIZE];
    const lahar_status status = lahar_table_map_row(reader, data + reader->rows.start, message);
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

lahar_status lahar_table_run(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                             bool by_lines, size_t *consumed_out, lahar_error *error)
{
    struct lahar_table_parser *parser = &reader->of.table.parser;
    const uint8_t *end = data + size;
    struct lahar_framing framing = {0};
    char message[LAHAR_TABLE_MESSAGE_SIZE];
    *consumed_out = 0;
    if (!reader->of.table.has_header || reader->options.keep_raw) {
        return LAHAR_OK;
    }
    while (data < end && *data != 0 && *data != '\n' && *data != '\r' &&
           lahar_table_scan(parser, &reader->marks, data, end) &&
           parser->position <= reader->options.record_size_max &&
           !(by_lines && parser->has_inner_lf)) {
        const lahar_status status = lahar_table_map_row(reader, data, message);
        if (status == LAHAR_INVALID) {
            break;
        }
        if (status != LAHAR_OK) {
            return lahar_text_reader_no_memory(error);
        }
        LAHAR_TRY(lahar_text_reader_deliver(reader, &framing, reader->offset, error));
        const size_t row_size = parser->position;
        if (parser->has_inner_lf) {
            lahar_text_reader_advance(reader, data, row_size);
        } else {
            reader->offset += row_size;
            reader->line++;
        }
        *consumed_out += row_size;
        data += row_size;
    }
    return LAHAR_OK;
}
