/* Random numbers that are a pure function of (seed, domain, counter), so that
 * any event of a workload can be made again without the ones before it. */
#ifndef LAHAR_BENCH_RANDOM_H
#define LAHAR_BENCH_RANDOM_H

#include <stdint.h>

enum {
    RANDOM_ZIPF_RANKS_MAX = 512
};

struct random_source {
    uint64_t state;
};

/* The finalizer of splitmix64: every input bit reaches every output bit. */
static inline uint64_t random_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* domain keeps the draws for one purpose apart from those for another. */
static inline struct random_source random_source_at(uint64_t seed, uint32_t domain,
                                                    uint64_t counter)
{
    const uint64_t key = random_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * (domain + UINT64_C(1)));
    return (struct random_source){.state = random_mix(key ^ random_mix(counter + key))};
}

static inline uint64_t random_next(struct random_source *source)
{
    source->state += UINT64_C(0x9e3779b97f4a7c15);
    return random_mix(source->state);
}

/* Uniform in 0 .. bound - 1; the bias of bound / 2^32 does not matter here. */
static inline uint32_t random_below(struct random_source *source, uint32_t bound)
{
    return (uint32_t)(((random_next(source) >> 32) * bound) >> 32);
}

/* Zipf with exponent 1: rank k is drawn with weight 1 / (k + 1). */
struct random_zipf {
    uint32_t rank_count;
    uint32_t limits[RANDOM_ZIPF_RANKS_MAX]; /* upper end of each rank, of 2^32 */
};

/* rank_count: 1 .. RANDOM_ZIPF_RANKS_MAX. */
void random_zipf_init(struct random_zipf *zipf, uint32_t rank_count);
uint32_t random_zipf_draw(const struct random_zipf *zipf, struct random_source *source);

#endif
