/* One line of progress on standard error, drawn over itself ten times a second,
 * and only when that is a terminal. */
#ifndef LAHAR_TOOLS_PROGRESS_H
#define LAHAR_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_shown;
    bool is_drawn; /* there is a line to be cleared */
    uint64_t started_ns;
    uint64_t drawn_ns; /* when last */
};

void progress_begin(struct progress *progress);

/* "WHAT 12.3 MB of 45.6 MB, 7.8 MB/s"; total 0: not known. */
void progress_bytes(struct progress *progress, const char *what, uint64_t done, uint64_t total);

/* Clears the line: before other output to the terminal, and at the end. */
void progress_clear(struct progress *progress);

/* CLOCK_MONOTONIC. */
uint64_t progress_clock_ns(void);

#endif
