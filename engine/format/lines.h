/* Line framing: bytes of a file into lines.
 *
 * A line is what lies between two LF, or between the last LF and the end of the
 * file; empty ones count. NUL bytes before the text of a line (the hole that
 * copy-and-truncate leaves) and one CR before its LF are not part of the text,
 * but are counted, so that the line can be written back. A CR elsewhere is data.
 *
 * The splitter reads from memory of the caller's: bytes that it does not consume must
 * be given again, with more behind them, at the next call. */
#ifndef LAHAR_FORMAT_LINES_H
#define LAHAR_FORMAT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lahar_line {
    const uint8_t *text; /* in the input */
    size_t size;         /* bytes of text */
    uint64_t nul_count;  /* NUL bytes stripped before the text */
    uint64_t full_size;  /* bytes of the whole line with NUL, CR and LF */
    bool has_cr;
    bool has_lf;
};

/* All zero at the start of a file. */
struct lahar_line_splitter {
    size_t scanned;     /* unconsumed bytes known to hold no LF */
    uint64_t nul_count; /* NUL bytes consumed at the start of the line */
    uint64_t skipped;   /* bytes of a line that is too long, consumed so far */
    bool is_skipping;   /* inside a line that is too long */
};

enum lahar_line_result {
    LAHAR_LINE_FOUND,
    LAHAR_LINE_MORE,    /* the input ends inside a line, or at the end of the last */
    LAHAR_LINE_TOO_LONG /* line->full_size bytes were passed over */
};

/* Takes one line from *data, *size and advances them. is_last: no more bytes will
 * follow. size_max bounds the text. */
enum lahar_line_result lahar_line_next(struct lahar_line_splitter *splitter, const uint8_t **data,
                                       size_t *size, bool is_last, size_t size_max,
                                       struct lahar_line *line_out);

#endif
