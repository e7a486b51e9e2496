/* JSONEachRow: JSON objects one after another, by lines or not, with or without
 * commas between them and an array around them. Each object is an event; so is a line
 * that is another JSON value. What fails costs its first line: reading goes on
 * behind the next LF. */
#include <stdio.h>

#include "engine/format/scan.h"
#include "engine/format/text_reader_internal.h"
#include "engine/provenance/nifi_json.h"

/* Passes over what may stand between records, up to limit: white space, the NUL bytes of a
 * hole, one comma, the brackets of an enclosing array. An array encloses when its first
 * element is an object. */
enum lahar_gap lahar_json_gap(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                              size_t limit, bool is_last, size_t *at)
{
    struct lahar_json_rows *json = &reader->of.json;
    for (; *at < limit; (*at)++) {
        const uint8_t c = data[*at];
        if (lahar_json_is_space(c) || c == 0) {
            continue;
        }
        if (c == '{') {
            return LAHAR_GAP_RECORD;
        }
        if (c == ',' && json->allows_comma) {
            json->allows_comma = false;
        } else if (c == ']' && json->is_in_array) {
            json->is_in_array = false;
            json->allows_comma = true;
        } else if (c == '[') {
            size_t next = *at + 1;
            while (next < size && lahar_json_is_space(data[next])) {
                next++;
            }
            if (next == size && !is_last) {
                return LAHAR_GAP_OPEN;
            }
            if (next == size || data[next] != '{') {
                return LAHAR_GAP_LINE;
            }
            json->is_in_array = true;
            json->allows_comma = false;
        } else {
            return LAHAR_GAP_LINE;
        }
    }
    return LAHAR_GAP_OPEN;
}

void lahar_json_begin(struct lahar_text_reader *reader, enum lahar_gap found)
{
    struct lahar_json_rows *json = &reader->of.json;
    json->is_value = found != LAHAR_GAP_RECORD;
    json->allows_comma = true;
    lahar_json_parser_reset(&json->parser);
}

/* JSONStringsEachRow: the values of the object are strings. */
static bool has_only_strings(struct lahar_text_reader *reader)
{
    const struct lahar_json_parser *parser = &reader->of.json.parser;
    for (size_t i = 1; i < parser->token_count; i++) {
        const uint8_t kind = parser->tokens[i].kind;
        if (kind != LAHAR_JSON_KEY && kind != LAHAR_JSON_STRING && kind != LAHAR_JSON_NULL) {
            (void)snprintf(reader->document->failure, sizeof reader->document->failure,
                           "a value is not a string");
            return false;
        }
    }
    return true;
}

static lahar_status map_object(struct lahar_text_reader *reader, const uint8_t *text)
{
    const lahar_format format = reader->options.format;
    if (format == LAHAR_FORMAT_NIFI_JSON) {
        const lahar_status status =
            lahar_nifi_map(&reader->provenance, text, &reader->of.json.parser, &reader->record);
        if (status == LAHAR_INVALID) {
            (void)snprintf(reader->document->failure, sizeof reader->document->failure,
                           "a provenance event needs an \"eventType\"");
        }
        return status;
    }
    if (format == LAHAR_FORMAT_JSON_STRINGS && !has_only_strings(reader)) {
        return LAHAR_INVALID;
    }
    lahar_record_reset(&reader->record);
    return lahar_document_map(reader->document, text, &reader->of.json.parser, &reader->fields,
                              &reader->record, lahar_json_plan_to_learn(reader));
}

/* Another value than an object: its text is the message. */
static lahar_status map_value(struct lahar_text_reader *reader, const uint8_t *text, size_t size)
{
    struct lahar_record *record = &reader->record;
    if (lahar_stream_find_field(reader->fields.stream, LAHAR_FIELD_MESSAGE) == NULL) {
        (void)snprintf(reader->document->failure, sizeof reader->document->failure,
                       "not a JSON object, and the stream has no field \"message\"");
        return LAHAR_INVALID;
    }
    lahar_record_reset(record);
    lahar_buffer_put_u8(&record->shape, LAHAR_SHAPE_JSON_TEXT);
    return lahar_record_add_bytes(record, LAHAR_FIELD_MESSAGE, LAHAR_TEXT,
                                  (lahar_bytes){text, size})
               ? LAHAR_OK
               : LAHAR_NO_MEMORY;
}

lahar_status lahar_json_take(struct lahar_text_reader *reader, const uint8_t *data,
                             lahar_error *error)
{
    const struct lahar_json_rows *json = &reader->of.json;
    const struct lahar_rows *rows = &reader->rows;
    const uint8_t *text = data + rows->start;
    const bool is_text = json->is_value || reader->options.format == LAHAR_FORMAT_JSON_AS_STRING;
    const lahar_status status =
        is_text ? map_value(reader, text, rows->end - rows->start) : map_object(reader, text);
    if (status == LAHAR_INVALID) {
        return lahar_rows_report(reader, data, reader->document->failure, error);
    }
    if (status != LAHAR_OK) {
        return lahar_text_reader_no_memory(error);
    }
    return lahar_rows_deliver(reader, data, error);
}

enum lahar_parsed lahar_json_inside(struct lahar_text_reader *reader, const uint8_t *data,
                                    size_t size, bool is_last)
{
    struct lahar_json_parser *parser = &reader->of.json.parser;
    struct lahar_rows *rows = &reader->rows;
    const size_t start = rows->start;
    switch (lahar_json_parse(parser, data + start, size - start, is_last)) {
    case LAHAR_JSON_DONE:
        rows->end = start + parser->position;
        rows->gap = rows->end;
        return LAHAR_PARSED_WHOLE;
    case LAHAR_JSON_MORE:
        return LAHAR_PARSED_MORE;
    case LAHAR_JSON_BAD:
        lahar_rows_fail(rows, parser->failure, parser->position);
        return LAHAR_PARSED_BAD;
    default:
        return LAHAR_PARSED_NO_MEMORY;
    }
}

enum lahar_parsed lahar_json_line(struct lahar_text_reader *reader, const uint8_t *data,
                                  size_t size, bool is_last)
{
    struct lahar_json_parser *parser = &reader->of.json.parser;
    struct lahar_rows *rows = &reader->rows;
    const size_t size_max = reader->options.record_size_max;
    size_t line_size = lahar_rows_line_size(rows, data, size, is_last, size_max);
    if (line_size == SIZE_MAX) {
        return LAHAR_PARSED_MORE;
    }
    const uint8_t *text = data + rows->start;
    while (line_size != 0 && line_size <= size_max && lahar_json_is_space(text[line_size - 1])) {
        line_size--;
    }
    if (line_size > size_max) {
        lahar_rows_fail(rows, "", SIZE_MAX);
        return LAHAR_PARSED_BAD;
    }
    switch (lahar_json_check(parser, text, line_size)) {
    case LAHAR_JSON_DONE:
        rows->end = rows->start + line_size;
        rows->gap = rows->end;
        return LAHAR_PARSED_WHOLE;
    case LAHAR_JSON_NO_MEMORY:
        return LAHAR_PARSED_NO_MEMORY;
    default:
        lahar_rows_fail(rows, parser->failure, parser->position);
        return LAHAR_PARSED_BAD;
    }
}
