/* get_bench: how long one event by its id takes.
 *
 *   get_bench STORE [COUNT]
 *
 * STORE holds events in event files, as lahar-load leaves it; it is only read. Two lines: ids drawn
 * from the whole store with a block cache too small for it, so that nearly every get reads a block
 * from the page cache and inflates what it needs of it; and ids of a few blocks that are in the
 * block cache. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/histogram.h"
#include "lahar/lahar.h"

enum {
    SMALL_MEMORY = 32 * 1024 * 1024, /* an eighth of it caches blocks */
    HOT_IDS = 64
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double processor_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return 1e6 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static bool get(lahar_store *store, uint64_t id, lahar_error *error)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_status status = lahar_get(store, &id, 1, &cursor, error);
    if (status == LAHAR_OK) {
        status = lahar_cursor_next(cursor, &event, error);
        lahar_cursor_close(cursor);
    }
    return status == LAHAR_OK || status == LAHAR_NOT_FOUND;
}

/* Times gets of ids that the function chooses and prints a line. */
static bool measure(const char *what, const char *directory, uint64_t memory_bytes, uint64_t count,
                    uint64_t hot_ids, double promise_us)
{
    struct histogram latencies_ns = {0};
    lahar_options options;
    lahar_stat before = {.struct_size = sizeof before};
    lahar_stat after = {.struct_size = sizeof after};
    lahar_error error = {.status = LAHAR_OK};
    lahar_store *store = NULL;
    uint64_t random = 1;
    double start_us = 0;
    lahar_options_init(&options);
    options.read_only = true;
    options.memory_limit_bytes = memory_bytes;
    bool is_ok = lahar_store_open(directory, &options, 0, &store, &error) == LAHAR_OK &&
                 lahar_stat_get(store, &before, &error) == LAHAR_OK;
    const uint64_t end_id = is_ok ? before.rolled_id : 2;
    const uint64_t first_hot = end_id > 2 * hot_ids ? end_id / 2 : 1;
    for (uint64_t i = 0; is_ok && i < count + count / 10 + hot_ids; i++) {
        const uint64_t id =
            hot_ids == 0 ? 1 + draw(&random, end_id - 1) : first_hot + draw(&random, hot_ids);
        if (i == count / 10 + hot_ids) { /* what came before warmed the caches */
            is_ok = lahar_stat_get(store, &before, &error) == LAHAR_OK;
            start_us = processor_us();
        }
        const uint64_t start_ns = clock_ns();
        is_ok = is_ok && get(store, id, &error);
        if (i >= count / 10 + hot_ids) {
            histogram_record(&latencies_ns, clock_ns() - start_ns);
        }
    }
    is_ok = is_ok && lahar_stat_get(store, &after, &error) == LAHAR_OK;
    if (!is_ok) {
        (void)fprintf(stderr, "get_bench: %s\n", error.message);
    } else {
        const double p50_us = (double)histogram_quantile(&latencies_ns, 0.5) / 1000;
        (void)printf("%s: p50 %.1f us, p99 %.1f us, %.1f us of processor time, %" PRIu64
                     " hits and %" PRIu64 " misses of the block cache (p50 <= %.0f us: %s)\n",
                     what, p50_us, (double)histogram_quantile(&latencies_ns, 0.99) / 1000,
                     (processor_us() - start_us) / (double)count,
                     after.cache_hits - before.cache_hits, after.cache_misses - before.cache_misses,
                     promise_us, p50_us <= promise_us ? "met" : "not met");
    }
    (void)lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL);
    return is_ok;
}

int main(int argument_count, char **arguments)
{
    const uint64_t count = argument_count > 2 ? strtoull(arguments[2], NULL, 10) : 20000;
    if (argument_count < 2 || count == 0) {
        (void)fprintf(stderr, "usage: get_bench STORE [COUNT]\n");
        return 2;
    }
    return measure("from the page cache", arguments[1], SMALL_MEMORY, count, 0, 500) &&
                   measure("from the block cache", arguments[1], UINT64_C(1) << 30, 10 * count,
                           HOT_IDS, 5)
               ? 0
               : 1;
}
