/* Line framing; see lines.h. A line that lies in one piece of input is never
 * copied. What is buffered by the caller stays below size_max: the NUL bytes of a
 * hole and the bytes of a line that is too long are consumed as they come. */
#include "engine/format/lines.h"

#include <string.h>

#include "engine/format/scan.h"

static void advance(const uint8_t **data, size_t *size, size_t count)
{
    *data += count;
    *size -= count;
}

/* The rest of a line that is too long: up to its LF or as far as there is input. */
static enum lahar_line_result skip_line(struct lahar_line_splitter *splitter, const uint8_t **data,
                                        size_t *size, bool is_last, struct lahar_line *line_out)
{
    const uint8_t *newline = *size == 0 ? NULL : memchr(*data, '\n', *size);
    const size_t count = newline == NULL ? *size : (size_t)(newline - *data) + 1;
    splitter->is_skipping = true;
    splitter->skipped += count;
    advance(data, size, count);
    if (newline == NULL && !is_last) {
        return LAHAR_LINE_MORE;
    }
    *line_out = (struct lahar_line){.full_size = splitter->skipped + splitter->nul_count,
                                    .nul_count = splitter->nul_count,
                                    .has_lf = newline != NULL};
    *splitter = (struct lahar_line_splitter){0};
    return LAHAR_LINE_TOO_LONG;
}

enum lahar_line_result lahar_line_next(struct lahar_line_splitter *splitter, const uint8_t **data,
                                       size_t *size, bool is_last, size_t size_max,
                                       struct lahar_line *line_out)
{
    if (splitter->is_skipping) {
        return skip_line(splitter, data, size, is_last, line_out);
    }
    if (*size != 0 && **data == 0 && splitter->scanned == 0) {
        const size_t run = (size_t)(lahar_scan_nul_run(*data, *data + *size) - *data);
        splitter->nul_count += run;
        advance(data, size, run);
    }
    const uint8_t *start = *data;
    const uint8_t *newline = *size == splitter->scanned ? NULL
                                                        : memchr(start + splitter->scanned, '\n',
                                                                 *size - splitter->scanned);
    size_t text_size = newline == NULL ? *size : (size_t)(newline - start);
    const bool has_cr = newline != NULL && text_size != 0 && start[text_size - 1] == '\r';
    text_size -= has_cr;
    /* Without its LF the last byte may still turn out to be a CR that is stripped. */
    if (text_size > size_max + (newline == NULL && !is_last)) {
        return skip_line(splitter, data, size, is_last, line_out);
    }
    if (newline == NULL) {
        if (!is_last) {
            splitter->scanned = *size;
            return LAHAR_LINE_MORE;
        }
        if (*size == 0 && splitter->nul_count == 0) {
            return LAHAR_LINE_MORE;
        }
    }
    *line_out = (struct lahar_line){
        .text = start,
        .size = text_size,
        .nul_count = splitter->nul_count,
        .full_size = splitter->nul_count + text_size + has_cr + (newline != NULL),
        .has_cr = has_cr,
        .has_lf = newline != NULL,
    };
    advance(data, size, text_size + has_cr + (newline != NULL));
    splitter->scanned = 0;
    splitter->nul_count = 0;
    return LAHAR_LINE_FOUND;
}
