/* Formats of lines: the line is the message, and what it holds beside its text fills fields. Lines
 * may be joined: a record goes from one line that begins one to the next. And RawBLOB, of which the
 * whole file is the line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/scan.h"
#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

static struct lahar_framing framing_of(const struct lahar_text_reader *reader,
                                       const struct lahar_line *line)
{
    return (struct lahar_framing){.flags =
                                      (uint8_t)((reader->has_bom ? LAHAR_FRAMING_BOM : 0) |
                                                (line->has_cr ? LAHAR_FRAMING_CR : 0) |
                                                (line->has_lf ? 0 : LAHAR_FRAMING_NO_LF) |
                                                (line->nul_count != 0 ? LAHAR_FRAMING_NUL : 0)),
                                  .nul_count = line->nul_count};
}

lahar_status lahar_line_rows_init(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_line_rows *rows = &reader->of.lines;
    const lahar_bytes start = reader->format.multiline_start;
    rows->joins = start.size != 0 || reader->options.format == LAHAR_FORMAT_NIFI_LOG;
    if (start.size != 0) {
        LAHAR_TRY(lahar_regex_compile(start, LAHAR_REGEX_BYTES, reader->options.allocator,
                                      &rows->start, error));
    }
    return reader->options.format == LAHAR_FORMAT_REGEXP ? lahar_regexp_init(reader, error)
                                                         : LAHAR_OK;
}

void lahar_line_rows_deinit(struct lahar_text_reader *reader)
{
    struct lahar_line_rows *rows = &reader->of.lines;
    lahar_regex_destroy(rows->regex);
    lahar_regex_destroy(rows->start);
    lahar_regex_scratch_deinit(&rows->scratch);
    lahar_regex_scratch_deinit(&rows->start_scratch);
}

/* --- one line -------------------------------------------------------------------------- */

static lahar_status map_line(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    switch (reader->options.format) {
    case LAHAR_FORMAT_REGEXP:
        return lahar_regexp_map(reader, line, message);
    case LAHAR_FORMAT_TSKV:
        return lahar_tskv_map(reader, line, message);
    case LAHAR_FORMAT_LOGFMT:
        return lahar_logfmt_map(reader, line, message);
    case LAHAR_FORMAT_ACCESS_LOG:
        return lahar_access_map(reader, line, message);
    case LAHAR_FORMAT_SYSLOG_3164:
    case LAHAR_FORMAT_SYSLOG_5424:
        return lahar_syslog_map(reader, line, message);
    case LAHAR_FORMAT_NIFI_LOG:
        return lahar_nifi_log_map(reader, line, message);
    default:
        return LAHAR_OK;
    }
}

/* The line is the message, or is kept beside one that is a part of it. */
static bool keep_line(struct lahar_text_reader *reader, lahar_bytes line)
{
    struct lahar_record *record = &reader->record;
    const bool is_message =
        lahar_stream_find_field(reader->fields.stream, LAHAR_FIELD_MESSAGE) != NULL &&
        (reader->kind != LAHAR_KIND_FIELDS || !lahar_record_has(record, LAHAR_FIELD_MESSAGE));
    return lahar_record_add_bytes(record, is_message ? LAHAR_FIELD_MESSAGE : LAHAR_FIELD_RAW_RECORD,
                                  LAHAR_TEXT, line);
}

static lahar_status deliver(struct lahar_text_reader *reader, const struct lahar_line *line,
                            lahar_error *error)
{
    const lahar_bytes text = {line->text, line->size};
    struct lahar_framing framing = framing_of(reader, line);
    lahar_record_reset(&reader->record);
    if (reader->kind == LAHAR_KIND_FIELDS) {
        char message[LAHAR_LINE_MESSAGE_SIZE];
        const bool is_blank = line->size == 0 && reader->options.format != LAHAR_FORMAT_REGEXP;
        const lahar_status status = is_blank ? LAHAR_EXISTS : map_line(reader, text, message);
        switch (status) {
        case LAHAR_OK:
            break;
        case LAHAR_EXISTS:
            return LAHAR_OK;
        case LAHAR_INVALID:
            return lahar_text_reader_report(reader, reader->line, reader->offset, text, message,
                                            error);
        default:
            return lahar_text_reader_no_memory(error);
        }
    }
    return keep_line(reader, text)
               ? lahar_text_reader_deliver(reader, &framing, reader->offset, error)
               : lahar_text_reader_no_memory(error);
}

static lahar_status report_too_long(struct lahar_text_reader *reader, const struct lahar_line *line,
                                    lahar_error *error)
{
    char message[96];
    (void)snprintf(message, sizeof message, "line of %" PRIu64 " bytes is longer than %zu",
                   line->full_size, reader->options.record_size_max);
    return lahar_text_reader_report(reader, reader->line, reader->offset, (lahar_bytes){0}, message,
                                    error);
}

static lahar_status take(struct lahar_text_reader *reader, const struct lahar_line *line,
                         bool is_too_long, uint64_t newline_count, lahar_error *error)
{
    const lahar_status status =
        is_too_long ? report_too_long(reader, line, error) : deliver(reader, line, error);
    if (status == LAHAR_OK) {
        reader->offset += line->full_size + (reader->has_bom ? 3 : 0);
        reader->line += newline_count;
        reader->has_bom = false;
    }
    return status;
}

/* --- joined lines ---------------------------------------------------------------------- */

static bool begins_record(struct lahar_text_reader *reader, const uint8_t *text, size_t size)
{
    struct lahar_line_rows *rows = &reader->of.lines;
    if (rows->start == NULL) {
        return lahar_nifi_log_is_start(text, size);
    }
    return lahar_regex_match(rows->start, &rows->start_scratch, text, size) == LAHAR_REGEX_MATCH;
}

/* The joined lines as one. */
static lahar_status take_joined(struct lahar_text_reader *reader, const uint8_t *text, size_t size,
                                lahar_error *error)
{
    struct lahar_line_rows *rows = &reader->of.lines;
    const size_t nul_count = (size_t)(lahar_scan_nul_run(text, text + size) - text);
    const bool has_lf = size > nul_count && text[size - 1] == '\n';
    const bool has_cr = has_lf && size > nul_count + 1 && text[size - 2] == '\r';
    const struct lahar_line line = {
        .text = text + nul_count,
        .size = size - nul_count - has_lf - has_cr,
        .nul_count = nul_count,
        .full_size = size,
        .has_cr = has_cr,
        .has_lf = has_lf,
    };
    const uint64_t newline_count = rows->line_count - !has_lf;
    rows->joined = 0;
    rows->line_count = 0;
    return take(reader, &line, false, newline_count, error);
}

/* Where the next line at *at ends; SIZE_MAX when that is not known yet. */
static size_t line_end(struct lahar_line_splitter *splitter, const uint8_t *data, size_t size,
                       size_t at, bool is_last)
{
    const size_t from = splitter->scanned > at ? splitter->scanned : at;
    const uint8_t *newline = from >= size ? NULL : memchr(data + from, '\n', size - from);
    if (newline != NULL) {
        return (size_t)(newline - data) + 1;
    }
    splitter->scanned = size;
    return is_last && at < size ? size : SIZE_MAX;
}

static lahar_status join_lines(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                               bool is_last, size_t *consumed_out, lahar_error *error)
{
    struct lahar_line_rows *rows = &reader->of.lines;
    const size_t size_max = reader->options.record_size_max;
    size_t done = 0;
    for (;;) {
        const uint8_t *p = data + done;
        size_t left = size - done;
        const bool is_alone = rows->joined == 0;
        const size_t end = rows->splitter.is_skipping
                               ? SIZE_MAX
                               : line_end(&rows->splitter, p, left, rows->joined, is_last);
        const size_t next = end == SIZE_MAX ? left : end;
        lahar_status status = LAHAR_OK;
        if (rows->splitter.is_skipping || (is_alone && next > size_max + 2)) {
            struct lahar_line line;
            rows->splitter.scanned = 0;
            const enum lahar_line_result result =
                lahar_line_next(&rows->splitter, &p, &left, is_last, size_max, &line);
            *consumed_out = size - left;
            done = size - left;
            if (result == LAHAR_LINE_MORE) {
                return LAHAR_OK;
            }
            status = take(reader, &line, result == LAHAR_LINE_TOO_LONG, line.has_lf, error);
        } else if (!is_alone && (next > size_max || (end == SIZE_MAX && is_last) ||
                                 rows->line_count >= reader->format.multiline_lines_max ||
                                 (end != SIZE_MAX &&
                                  begins_record(reader, p + rows->joined, end - rows->joined)))) {
            const size_t joined = rows->joined;
            status = take_joined(reader, p, joined, error);
            rows->splitter.scanned -=
                rows->splitter.scanned < joined ? rows->splitter.scanned : joined;
            done += joined;
        } else if (end == SIZE_MAX) {
            return LAHAR_OK;
        } else {
            rows->joined = end;
            rows->line_count++;
        }
        if (status != LAHAR_OK) {
            return status;
        }
        *consumed_out = done;
    }
}

/* --- reading ------------------------------------------------------------------------------ */

lahar_status lahar_lines_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                 bool is_last, size_t *consumed_out, lahar_error *error)
{
    const uint8_t *p = data;
    size_t left = size;
    if (reader->of.lines.joins) {
        return join_lines(reader, data, size, is_last, consumed_out, error);
    }
    for (;;) {
        struct lahar_line line;
        const enum lahar_line_result result = lahar_line_next(
            &reader->of.lines.splitter, &p, &left, is_last, reader->options.record_size_max, &line);
        *consumed_out = size - left;
        if (result == LAHAR_LINE_MORE) {
            return LAHAR_OK;
        }
        LAHAR_TRY(take(reader, &line, result == LAHAR_LINE_TOO_LONG, line.has_lf, error));
    }
}

lahar_status lahar_blob_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                bool is_last, size_t *consumed_out, lahar_error *error)
{
    struct lahar_line_splitter *splitter = &reader->of.lines.splitter;
    const bool is_too_long = splitter->is_skipping || size > reader->options.record_size_max;
    *consumed_out = 0;
    if (is_too_long) {
        splitter->is_skipping = true;
        splitter->skipped += size;
        *consumed_out = size;
    }
    if (!is_last || (size == 0 && splitter->skipped == 0)) {
        return LAHAR_OK;
    }
    const struct lahar_line line = {
        .text = data, .size = size, .full_size = is_too_long ? splitter->skipped : size};
    *consumed_out = size;
    *splitter = (struct lahar_line_splitter){0};
    return take(reader, &line, is_too_long, is_too_long ? 0 : lahar_count_newlines(data, size),
                error);
}
