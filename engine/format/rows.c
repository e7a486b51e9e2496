/* What JSON rows and table rows share: failing lines, and delivery of records with
 * the bytes around them. */
#include <stdio.h>
#include <string.h>

#include "engine/format/scan.h"
#include "engine/format/text_reader_internal.h"

size_t lahar_rows_gap_limit(const struct lahar_text_reader *reader, size_t start, size_t size)
{
    const size_t size_max = reader->options.record_size_max;
    return size - start > size_max ? start + size_max : size;
}

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

lahar_status lahar_rows_fail_line(struct lahar_text_reader *reader, struct lahar_rows *rows,
                                  const uint8_t *data, size_t size, bool is_last,
                                  size_t *consumed_out, lahar_error *error)
{
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

size_t lahar_rows_skip(struct lahar_rows *rows, const uint8_t *data, size_t size)
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

lahar_status lahar_rows_deliver(struct lahar_text_reader *reader, const struct lahar_rows *rows,
                                const uint8_t *data, lahar_error *error)
{
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

lahar_status lahar_rows_report(struct lahar_text_reader *reader, const struct lahar_rows *rows,
                               const uint8_t *data, const char *message, lahar_error *error)
{
    const lahar_bytes bytes = {data + rows->start, rows->end - rows->start};
    return lahar_text_reader_report(reader, line_of(reader, rows, data),
                                    reader->offset + rows->start, bytes, message, error);
}
