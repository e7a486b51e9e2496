/* JSONEachRow: JSON objects one after another, by lines or not, with or without
 * commas between them and an array around them. Each object is an event; so is a line
 * that is another JSON value. What fails costs its first line: reading goes on
 * behind the next LF. */
#include <stdio.h>

#include "engine/format/scan.h"
#include "engine/format/text_reader_internal.h"
#include "engine/provenance/nifi_json.h"

enum gap_result {
    GAP_OPEN,   /* the input ends in it */
    GAP_OBJECT, /* an object begins at *at */
    GAP_LINE    /* something else does */
};

/* Passes over what may stand between records, up to limit: white space, the NUL bytes of a
 * hole, one comma, the brackets of an enclosing array. An array encloses when its first
 * element is an object. */
static enum gap_result scan_gap(struct lahar_json_rows *json, const uint8_t *data, size_t size,
                                size_t limit, bool is_last, size_t *at)
{
    for (; *at < limit; (*at)++) {
        const uint8_t c = data[*at];
        if (lahar_json_is_space(c) || c == 0) {
            continue;
        }
        if (c == '{') {
            return GAP_OBJECT;
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
                return GAP_OPEN;
            }
            if (next == size || data[next] != '{') {
                return GAP_LINE;
            }
            json->is_in_array = true;
            json->allows_comma = false;
        } else {
            return GAP_LINE;
        }
    }
    return GAP_OPEN;
}

/* A record begins at start. */
static void begin(struct lahar_json_rows *json, enum gap_result found, size_t start)
{
    json->rows = (struct lahar_rows){
        .state = found == GAP_OBJECT ? LAHAR_ROWS_RECORD : LAHAR_ROWS_LINE,
        .start = start,
        .end = start,
    };
    json->is_value = found != GAP_OBJECT;
    json->allows_comma = true;
    lahar_json_parser_reset(&json->parser);
}

static size_t between(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                      bool is_last)
{
    struct lahar_json_rows *json = &reader->of.json;
    const bool keep_raw = reader->options.keep_raw;
    const size_t limit = lahar_rows_gap_limit(reader, 0, size);
    size_t at = json->rows.start;
    const enum gap_result found = scan_gap(json, data, size, limit, is_last, &at);
    if (found != GAP_OPEN) {
        /* Under keep_raw the gap is given back with the record that follows. */
        const size_t kept = keep_raw ? at : 0;
        begin(json, found, kept);
        return at - kept;
    }
    const bool is_kept = keep_raw && !is_last && at < reader->options.record_size_max;
    json->rows.start = is_kept ? at : 0;
    return is_kept ? 0 : at;
}

static lahar_status map_object(struct lahar_text_reader *reader, const uint8_t *text)
{
    if (reader->options.format == LAHAR_FORMAT_NIFI_JSON) {
        const lahar_status status =
            lahar_nifi_map(&reader->provenance, text, &reader->of.json.parser, &reader->record);
        if (status == LAHAR_INVALID) {
            (void)snprintf(reader->document->failure, sizeof reader->document->failure,
                           "a provenance event needs an \"eventType\"");
        }
        return status;
    }
    lahar_record_reset(&reader->record);
    return lahar_document_map(reader->document, text, &reader->of.json.parser, &reader->fields,
                              &reader->record);
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

/* Delivers, or reports, the record start .. end. */
static lahar_status take_record(struct lahar_text_reader *reader, const uint8_t *data,
                                lahar_error *error)
{
    struct lahar_json_rows *json = &reader->of.json;
    const struct lahar_rows *rows = &json->rows;
    const uint8_t *text = data + rows->start;
    const lahar_status status = json->is_value ? map_value(reader, text, rows->end - rows->start)
                                               : map_object(reader, text);
    if (status == LAHAR_INVALID) {
        return lahar_rows_report(reader, rows, data, reader->document->failure, error);
    }
    if (status != LAHAR_OK) {
        return lahar_text_reader_no_memory(error);
    }
    return lahar_rows_deliver(reader, rows, data, error);
}

/* The record is whole: delivered now, or once what follows it is known. */
static lahar_status complete(struct lahar_text_reader *reader, const uint8_t *data, size_t end,
                             size_t *consumed_out, lahar_error *error)
{
    struct lahar_rows *rows = &reader->of.json.rows;
    rows->end = end;
    rows->gap = end;
    if (reader->options.keep_raw) {
        rows->state = LAHAR_ROWS_COMPLETE;
        return LAHAR_OK;
    }
    const lahar_status status = take_record(reader, data, error);
    *consumed_out = end;
    *rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    return status;
}

static lahar_status inside_object(struct lahar_text_reader *reader, const uint8_t *data,
                                  size_t size, bool is_last, size_t *consumed_out,
                                  lahar_error *error)
{
    struct lahar_json_rows *json = &reader->of.json;
    const size_t start = json->rows.start;
    const size_t size_max = reader->options.record_size_max;
    switch (lahar_json_parse(&json->parser, data + start, size - start, is_last)) {
    case LAHAR_JSON_DONE:
        if (json->parser.position > size_max) {
            lahar_rows_fail(&json->rows, "", SIZE_MAX);
            return LAHAR_OK;
        }
        return complete(reader, data, start + json->parser.position, consumed_out, error);
    case LAHAR_JSON_MORE:
        if (size - start > size_max) {
            lahar_rows_fail(&json->rows, "", SIZE_MAX);
        }
        return LAHAR_OK;
    case LAHAR_JSON_BAD:
        lahar_rows_fail(&json->rows, json->parser.failure, json->parser.position);
        return LAHAR_OK;
    default:
        return lahar_text_reader_no_memory(error);
    }
}

/* A line that does not begin with an object: one JSON value, or a failure. */
static lahar_status inside_line(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                bool is_last, size_t *consumed_out, lahar_error *error)
{
    struct lahar_json_rows *json = &reader->of.json;
    struct lahar_rows *rows = &json->rows;
    const size_t size_max = reader->options.record_size_max;
    if (rows->failure == NULL) {
        size_t line_size = lahar_rows_line_size(rows, data, size, is_last, size_max);
        if (line_size == SIZE_MAX) {
            return LAHAR_OK;
        }
        const uint8_t *text = data + rows->start;
        while (line_size != 0 && line_size <= size_max &&
               lahar_json_is_space(text[line_size - 1])) {
            line_size--;
        }
        if (line_size > size_max) {
            lahar_rows_fail(rows, "", SIZE_MAX);
        } else {
            switch (lahar_json_check(&json->parser, text, line_size)) {
            case LAHAR_JSON_DONE:
                return complete(reader, data, rows->start + line_size, consumed_out, error);
            case LAHAR_JSON_NO_MEMORY:
                return lahar_text_reader_no_memory(error);
            default:
                lahar_rows_fail(rows, json->parser.failure, json->parser.position);
                break;
            }
        }
    }
    return lahar_rows_fail_line(reader, rows, data, size, is_last, consumed_out, error);
}

/* keep_raw: delivers once the next record begins or the file ends. */
static lahar_status behind_record(struct lahar_text_reader *reader, const uint8_t *data,
                                  size_t size, bool is_last, size_t *consumed_out,
                                  lahar_error *error)
{
    struct lahar_json_rows *json = &reader->of.json;
    size_t at = json->rows.gap;
    const size_t limit = lahar_rows_gap_limit(reader, json->rows.end, size);
    const enum gap_result found = scan_gap(json, data, size, limit, is_last, &at);
    json->rows.gap = at;
    if (found == GAP_OPEN && !is_last && at - json->rows.end < reader->options.record_size_max) {
        return LAHAR_OK;
    }
    const lahar_status status = take_record(reader, data, error);
    *consumed_out = at;
    if (found == GAP_OPEN) {
        json->rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    } else {
        begin(json, found, 0);
    }
    return status;
}

lahar_status lahar_json_rows_consume(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, bool is_last, size_t *consumed_out,
                                     lahar_error *error)
{
    struct lahar_rows *rows = &reader->of.json.rows;
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
            status = inside_object(reader, p, left, is_last, &count, error);
            break;
        case LAHAR_ROWS_LINE:
            status = inside_line(reader, p, left, is_last, &count, error);
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
