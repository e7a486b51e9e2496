/* Workload W2: the log lines of a service, about 180 bytes each.
 *
 * Eight loggers, ten messages and 300 hosts by Zipf, 64 threads, a request id of
 * 64 random bits. "timeout" stands on about 5 % of the lines, the error code
 * "E7F3A91C" on one line in 200,000. Line i is a pure function of (seed, i). */
#ifndef LAHAR_BENCH_WORKLOAD_W2_H
#define LAHAR_BENCH_WORKLOAD_W2_H

#include <stddef.h>
#include <stdint.h>

#include "bench/random.h"

enum {
    WORKLOAD_W2_LINE_SIZE_MAX = 512
};

struct workload_w2_line {
    int64_t time_ms; /* since the epoch */
    const char *level;
    uint32_t thread;
    const char *logger;
    uint64_t request;
    uint32_t host;
    const char *message;
    uint32_t item; /* the number behind the message */
    uint32_t duration_ms;
    uint32_t status; /* as of HTTP */
    uint32_t bytes;
    const char *code; /* "" on nearly every line */
};

struct workload_w2 {
    uint64_t seed;
    struct random_zipf loggers;
    struct random_zipf messages;
    struct random_zipf hosts;
};

void workload_w2_init(struct workload_w2 *workload, uint64_t seed);
void workload_w2_line(const struct workload_w2 *workload, uint64_t index,
                      struct workload_w2_line *line_out);

#define WORKLOAD_W2_CSV_HEADER "time,level,thread,logger,request,host,text,duration,status,bytes\n"

/* All write at most WORKLOAD_W2_LINE_SIZE_MAX bytes, the newline included, and
 * return how many. */
size_t workload_w2_text(const struct workload_w2_line *line, char *out);
size_t workload_w2_json(const struct workload_w2_line *line, char *out);
/* A record below WORKLOAD_W2_CSV_HEADER, of which the text is quoted and has a comma. */
size_t workload_w2_csv(const struct workload_w2_line *line, char *out);

#endif
