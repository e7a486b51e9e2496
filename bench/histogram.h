/* Latencies in buckets of at most 1/64 of their value: three significant digits
 * nearly, over the whole range of 64 bits, in 30 KB. One thread a histogram; add
 * them up afterwards. */
#ifndef LAHAR_BENCH_HISTOGRAM_H
#define LAHAR_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_STEP_BITS = 6, /* 64 buckets for each power of two */
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS
};

struct histogram {
    uint64_t count;
    uint64_t max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_record(struct histogram *histogram, uint64_t value);
void histogram_add(struct histogram *histogram, const struct histogram *other);

/* Adds other and empties it; pages of it that were never written stay untouched. */
void histogram_move(struct histogram *histogram, struct histogram *other);

/* The value that a share of all values (0 .. 1) does not exceed, rounded up to
 * the end of its bucket; 0 when nothing was recorded. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
