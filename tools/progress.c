#include "tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t REDRAW_NS = UINT64_C(100000000);

uint64_t progress_clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void progress_begin(struct progress *progress)
{
    const char *terminal = getenv("TERM");
    *progress = (struct progress){
        .is_shown = isatty(STDERR_FILENO) == 1 && terminal != NULL && strcmp(terminal, "dumb") != 0,
        .started_ns = progress_clock_ns(),
    };
}

void progress_bytes(struct progress *progress, const char *what, uint64_t done, uint64_t total)
{
    if (!progress->is_shown) {
        return;
    }
    const uint64_t now_ns = progress_clock_ns();
    if (now_ns - progress->drawn_ns < REDRAW_NS) {
        return;
    }
    progress->drawn_ns = now_ns;
    progress->is_drawn = true;
    const double seconds = (double)(now_ns - progress->started_ns) / 1e9;
    const double rate = seconds > 0 ? (double)done / seconds / 1e6 : 0;
    if (total != 0) {
        (void)fprintf(stderr, "\r\033[K%s %.1f MB of %.1f MB, %.1f MB/s", what, (double)done / 1e6,
                      (double)total / 1e6, rate);
    } else {
        (void)fprintf(stderr, "\r\033[K%s %.1f MB, %.1f MB/s", what, (double)done / 1e6, rate);
    }
}

void progress_clear(struct progress *progress)
{
    if (progress->is_drawn) {
        (void)fputs("\r\033[K", stderr);
        progress->is_drawn = false;
        progress->drawn_ns = 0;
    }
}
