/* Reading records one after another: what stands between them, records that fail, and delivery
 * with the bytes around them. What is a record is said by the kind of the format. */
#include <stdio.h>
#include <string.h>

#include "engine/format/scan.h"
#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

void lahar_rows_fail(struct lahar_rows *rows, const char *failure, size_t failure_at)
{
    rows->state = LAHAR_ROWS_LINE;
    rows->failure = failure;
    rows->failure_at = failure_at;
    rows->end = rows->start;
}

size_t lahar_rows_line_size(struct lahar_rows *rows, const uint8_t *data, size_t size, bool is_last,
                            size_t size_max)
{
    const uint8_t *newline =
        rows->end >= size ? NULL : memchr(data + rows->end, '\n', size - rows->end);
    if (newline != NULL) {
        return (size_t)(newline - data) - rows->start;
    }
    rows->end = size;
    if (is_last || size - rows->start > size_max) {
        return size - rows->start;
    }
    return SIZE_MAX;
}

static uint64_t line_of(const struct lahar_text_reader *reader, const struct lahar_rows *rows,
                        const uint8_t *data)
{
    return reader->line + lahar_count_newlines(data, rows->start);
}

/* The state LINE, for a record that has failed: reports it once its line is there, and consumes the
 * line. */
static lahar_status fail_line(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                              bool is_last, size_t *consumed_out, lahar_error *error)
{
    struct lahar_rows *rows = &reader->rows;
    const size_t size_max = reader->options.record_size_max;
    const size_t line_size = lahar_rows_line_size(rows, data, size, is_last, size_max);
    char message[160];
    *consumed_out = 0;
    if (line_size == SIZE_MAX) {
        return LAHAR_OK;
    }
    lahar_bytes bytes = {data + rows->start, line_size};
    if (line_size > size_max || rows->failure_at > size_max) {
        (void)snprintf(message, sizeof message, "record is longer than %zu bytes", size_max);
        bytes = line_size > size_max ? (lahar_bytes){0} : bytes;
    } else {
        (void)snprintf(message, sizeof message, "%s, at byte %zu of the record", rows->failure,
                       rows->failure_at);
    }
    const lahar_status status = lahar_text_reader_report(
        reader, line_of(reader, rows, data), reader->offset + rows->start, bytes, message, error);
    *consumed_out = rows->start + line_size;
    if (status == LAHAR_OK) {
        /* Any LF is passed over with the rest of a line that is too long. */
        *rows = (struct lahar_rows){.state = LAHAR_ROWS_SKIP};
    }
    return status;
}

static size_t skip(struct lahar_rows *rows, const uint8_t *data, size_t size)
{
    const uint8_t *newline = size == 0 ? NULL : memchr(data, '\n', size);
    if (newline == NULL) {
        return size;
    }
    *rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    return (size_t)(newline - data) + 1;
}

/* What stands behind the record, as flags where they can say it. */
static void set_suffix(struct lahar_framing *framing, const uint8_t *suffix, size_t size)
{
    if (size == 0) {
        framing->flags |= LAHAR_FRAMING_NO_LF;
    } else if (size == 2 && memcmp(suffix, "\r\n", 2) == 0) {
        framing->flags |= LAHAR_FRAMING_CR;
    } else if (size != 1 || *suffix != '\n') {
        framing->flags |= LAHAR_FRAMING_SUFFIX;
        framing->suffix = (lahar_bytes){suffix, size};
    }
}

lahar_status lahar_rows_deliver(struct lahar_text_reader *reader, const uint8_t *data,
                                lahar_error *error)
{
    const struct lahar_rows *rows = &reader->rows;
    struct lahar_framing framing = {0};
    if (reader->options.keep_raw) {
        const lahar_bytes raw = {data + rows->start, rows->end - rows->start};
        if (!lahar_record_add_bytes(&reader->record, LAHAR_FIELD_RAW_RECORD, LAHAR_TEXT, raw)) {
            return lahar_text_reader_no_memory(error);
        }
        if (reader->has_bom) {
            framing.flags |= LAHAR_FRAMING_BOM;
            reader->has_bom = false;
        }
        if (rows->start != 0) {
            framing.flags |= LAHAR_FRAMING_PREFIX;
            framing.prefix = (lahar_bytes){data, rows->start};
        }
        set_suffix(&framing, data + rows->end, rows->gap - rows->end);
    }
    return lahar_text_reader_deliver(reader, &framing, reader->offset + rows->start, error);
}

lahar_status lahar_rows_report(struct lahar_text_reader *reader, const uint8_t *data,
                               const char *message, lahar_error *error)
{
    const struct lahar_rows *rows = &reader->rows;
    const lahar_bytes bytes = {data + rows->start, rows->end - rows->start};
    return lahar_text_reader_report(reader, line_of(reader, rows, data),
                                    reader->offset + rows->start, bytes, message, error);
}

/* --- one record after another -------------------------------------------------------- */

static enum lahar_gap scan_gap(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                               size_t limit, bool is_last, size_t *at)
{
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        return lahar_json_gap(reader, data, size, limit, is_last, at);
    case LAHAR_KIND_TABLE:
        return lahar_table_gap(reader, data, size, limit, is_last, at);
    default:
        return lahar_cells_gap(reader, data, size, limit, is_last, at);
    }
}

static void begin(struct lahar_text_reader *reader, enum lahar_gap found, size_t start)
{
    reader->rows = (struct lahar_rows){
        .state = found == LAHAR_GAP_RECORD ? LAHAR_ROWS_RECORD : LAHAR_ROWS_LINE,
        .start = start,
        .end = start,
    };
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        lahar_json_begin(reader, found);
        break;
    case LAHAR_KIND_TABLE:
        lahar_table_parser_reset(&reader->of.table.parser);
        break;
    default:
        reader->of.cells.retry_at = 0;
        break;
    }
}

static bool is_before_header(const struct lahar_text_reader *reader)
{
    return reader->kind == LAHAR_KIND_TABLE && !reader->of.table.has_header;
}

/* Under keep_raw what separates records is kept up to record_size_max bytes at a time, wherever
 * the input ends: how far a gap that begins at start may be looked at. */
static size_t gap_limit(const struct lahar_text_reader *reader, size_t start, size_t size)
{
    const size_t size_max = reader->options.record_size_max;
    return size - start > size_max ? start + size_max : size;
}

static size_t between(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                      bool is_last)
{
    /* What stands before a header is part of it; under keep_raw what stands before a record is
     * given back with it. */
    const bool keeps_gap = reader->options.keep_raw || is_before_header(reader);
    const size_t limit = keeps_gap ? gap_limit(reader, 0, size) : size;
    size_t at = reader->rows.start;
    const enum lahar_gap found = scan_gap(reader, data, size, limit, is_last, &at);
    if (found != LAHAR_GAP_OPEN) {
        const size_t kept = keeps_gap ? at : 0;
        begin(reader, found, kept);
        return at - kept;
    }
    const bool is_kept = keeps_gap && !is_last && at < reader->options.record_size_max;
    reader->rows.start = is_kept ? at : 0;
    return is_kept ? 0 : at;
}

static lahar_status take(struct lahar_text_reader *reader, const uint8_t *data, lahar_error *error)
{
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        return lahar_json_take(reader, data, error);
    case LAHAR_KIND_TABLE:
        return lahar_table_take(reader, data, error);
    default:
        return lahar_cells_take(reader, data, error);
    }
}

/* The record is whole: delivered now, or under keep_raw once what follows it is known. */
static lahar_status complete(struct lahar_text_reader *reader, const uint8_t *data,
                             size_t *consumed_out, lahar_error *error)
{
    const size_t behind = reader->rows.gap;
    lahar_status status;
    if (is_before_header(reader)) {
        status = lahar_table_take_header(reader, data, behind, error);
    } else if (reader->options.keep_raw) {
        reader->rows.state = LAHAR_ROWS_COMPLETE;
        return LAHAR_OK;
    } else {
        status = take(reader, data, error);
    }
    *consumed_out = behind;
    reader->rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    return status;
}

static enum lahar_parsed parse(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                               bool is_last)
{
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        return reader->rows.state == LAHAR_ROWS_LINE
                   ? lahar_json_line(reader, data, size, is_last)
                   : lahar_json_inside(reader, data, size, is_last);
    case LAHAR_KIND_TABLE:
        return lahar_table_inside(reader, data, size, is_last);
    default:
        return lahar_cells_inside(reader, data, size, is_last);
    }
}

static lahar_status inside(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                           bool is_last, size_t *consumed_out, lahar_error *error)
{
    const size_t size_max = reader->options.record_size_max;
    struct lahar_rows *rows = &reader->rows;
    switch (parse(reader, data, size, is_last)) {
    case LAHAR_PARSED_WHOLE:
        if (rows->gap - rows->start > size_max) {
            lahar_rows_fail(rows, "", SIZE_MAX);
            return LAHAR_OK;
        }
        return complete(reader, data, consumed_out, error);
    case LAHAR_PARSED_MORE:
        if (size - rows->start > size_max) {
            lahar_rows_fail(rows, "", SIZE_MAX);
        }
        return LAHAR_OK;
    case LAHAR_PARSED_BAD:
        return LAHAR_OK;
    default:
        return lahar_text_reader_no_memory(error);
    }
}

/* keep_raw: delivers once the next record begins or the file ends. */
static lahar_status behind_record(struct lahar_text_reader *reader, const uint8_t *data,
                                  size_t size, bool is_last, size_t *consumed_out,
                                  lahar_error *error)
{
    struct lahar_rows *rows = &reader->rows;
    size_t at = rows->gap;
    const size_t limit = gap_limit(reader, rows->end, size);
    const enum lahar_gap found = scan_gap(reader, data, size, limit, is_last, &at);
    rows->gap = at;
    if (found == LAHAR_GAP_OPEN && !is_last && at - rows->end < reader->options.record_size_max) {
        return LAHAR_OK;
    }
    const lahar_status status = take(reader, data, error);
    *consumed_out = at;
    if (found == LAHAR_GAP_OPEN) {
        *rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    } else {
        begin(reader, found, 0);
    }
    return status;
}

lahar_status lahar_rows_run(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                            bool by_lines, size_t *consumed_out, lahar_error *error)
{
    *consumed_out = 0;
    if (reader->rows.state != LAHAR_ROWS_BETWEEN || reader->rows.start != 0 || size == 0 ||
        reader->options.simd == LAHAR_SIMD_OFF) {
        return LAHAR_OK;
    }
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        return lahar_json_run(reader, data, size, by_lines, consumed_out, error);
    case LAHAR_KIND_TABLE:
        return lahar_table_run(reader, data, size, by_lines, consumed_out, error);
    default:
        return LAHAR_OK;
    }
}

lahar_status lahar_rows_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                bool is_last, size_t *consumed_out, lahar_error *error)
{
    struct lahar_rows *rows = &reader->rows;
    size_t done = 0;
    for (;;) {
        size_t run = 0;
        if (!is_last) {
            LAHAR_TRY(lahar_rows_run(reader, data + done, size - done, false, &run, error));
        }
        done += run;
        *consumed_out = done;
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
            status = inside(reader, p, left, is_last, &count, error);
            break;
        case LAHAR_ROWS_LINE:
            if (reader->kind == LAHAR_KIND_JSON && rows->failure == NULL) {
                status = inside(reader, p, left, is_last, &count, error);
            }
            if (status == LAHAR_OK && rows->state == LAHAR_ROWS_LINE && rows->failure != NULL) {
                status = fail_line(reader, p, left, is_last, &count, error);
            }
            break;
        case LAHAR_ROWS_COMPLETE:
            status = behind_record(reader, p, left, is_last, &count, error);
            break;
        case LAHAR_ROWS_SKIP:
            count = skip(rows, p, left);
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
