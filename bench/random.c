#include "bench/random.h"

void random_zipf_init(struct random_zipf *zipf, uint32_t rank_count)
{
    double total = 0;
    double sum = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        total += 1.0 / (rank + 1);
    }
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        sum += 1.0 / (rank + 1);
        zipf->limits[rank] = (uint32_t)(sum / total * UINT32_MAX);
    }
    zipf->limits[rank_count - 1] = UINT32_MAX;
    zipf->rank_count = rank_count;
}

uint32_t random_zipf_draw(const struct random_zipf *zipf, struct random_source *source)
{
    const uint32_t drawn = (uint32_t)(random_next(source) >> 32);
    uint32_t low = 0;
    uint32_t high = zipf->rank_count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (zipf->limits[middle] < drawn) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
