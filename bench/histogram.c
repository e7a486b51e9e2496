#include "bench/histogram.h"

/* Below 64 each value has its bucket; above, the power of two chooses a group of
 * 64 and the next six bits the bucket in it. */
static uint32_t bucket_of(uint64_t value)
{
    if (value < (UINT64_C(1) << HISTOGRAM_STEP_BITS)) {
        return (uint32_t)value;
    }
    const uint32_t shift = 63 - (uint32_t)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
    return (shift << HISTOGRAM_STEP_BITS) + (uint32_t)(value >> shift);
}

static uint64_t last_of_bucket(uint32_t bucket)
{
    const uint32_t group = bucket >> HISTOGRAM_STEP_BITS;
    if (group <= 1) {
        return bucket;
    }
    const uint32_t shift = group - 1;
    const uint64_t first = (uint64_t)(bucket - (shift << HISTOGRAM_STEP_BITS)) << shift;
    return first + ((UINT64_C(1) << shift) - 1);
}

void histogram_record(struct histogram *histogram, uint64_t value)
{
    histogram->count++;
    histogram->buckets[bucket_of(value)]++;
    if (value > histogram->max) {
        histogram->max = value;
    }
}

void histogram_add(struct histogram *histogram, const struct histogram *other)
{
    histogram->count += other->count;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (other->buckets[i] != 0) {
            histogram->buckets[i] += other->buckets[i];
        }
    }
    if (other->max > histogram->max) {
        histogram->max = other->max;
    }
}

void histogram_move(struct histogram *histogram, struct histogram *other)
{
    if (other->count == 0) {
        return;
    }
    histogram_add(histogram, other);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (other->buckets[i] != 0) {
            other->buckets[i] = 0;
        }
    }
    other->count = 0;
    other->max = 0;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    const double wanted = share * (double)histogram->count;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted) {
            const uint64_t value = last_of_bucket(i);
            return value < histogram->max ? value : histogram->max;
        }
    }
    return histogram->max;
}
