/* LineAsString: every line becomes an event with the line as its message. And the reading of lines
 * for the formats that are made of them. */
#include <inttypes.h>
#include <stdio.h>

#include "engine/format/text_reader_internal.h"

struct lahar_framing lahar_line_framing(const struct lahar_text_reader *reader,
                                        const struct lahar_line *line)
{
    return (struct lahar_framing){.flags =
                                      (uint8_t)((reader->has_bom ? LAHAR_FRAMING_BOM : 0) |
                                                (line->has_cr ? LAHAR_FRAMING_CR : 0) |
                                                (line->has_lf ? 0 : LAHAR_FRAMING_NO_LF) |
                                                (line->nul_count != 0 ? LAHAR_FRAMING_NUL : 0)),
                                  .nul_count = line->nul_count};
}

static lahar_status deliver_line(struct lahar_text_reader *reader, const struct lahar_line *line,
                                 lahar_error *error)
{
    struct lahar_framing framing = lahar_line_framing(reader, line);
    lahar_record_reset(&reader->record);
    if (!lahar_record_add_bytes(&reader->record, LAHAR_FIELD_MESSAGE, LAHAR_TEXT,
                                (lahar_bytes){line->text, line->size})) {
        return lahar_text_reader_no_memory(error);
    }
    return lahar_text_reader_deliver(reader, &framing, reader->offset, error);
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

lahar_status lahar_lines_each(struct lahar_text_reader *reader,
                              struct lahar_line_splitter *splitter, lahar_line_deliver deliver,
                              const uint8_t *data, size_t size, bool is_last, size_t *consumed_out,
                              lahar_error *error)
{
    const uint8_t *p = data;
    size_t left = size;
    for (;;) {
        struct lahar_line line;
        const enum lahar_line_result result =
            lahar_line_next(splitter, &p, &left, is_last, reader->options.record_size_max, &line);
        *consumed_out = size - left;
        if (result == LAHAR_LINE_MORE) {
            return LAHAR_OK;
        }
        const lahar_status status = result == LAHAR_LINE_FOUND
                                        ? deliver(reader, &line, error)
                                        : report_too_long(reader, &line, error);
        if (status != LAHAR_OK) {
            return status;
        }
        reader->offset += line.full_size + (reader->has_bom ? 3 : 0);
        reader->line += line.has_lf;
        reader->has_bom = false;
    }
}

lahar_status lahar_lines_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                 bool is_last, size_t *consumed_out, lahar_error *error)
{
    return lahar_lines_each(reader, &reader->of.lines, deliver_line, data, size, is_last,
                            consumed_out, error);
}
