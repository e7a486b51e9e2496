/* open_group_bench: queries over events that are in memory alone, while more of them come.
 *
 *   open_group_bench DIRECTORY [EVENTS [EVENTS_A_SECOND]]
 *
 * A thread appends W1 events, EVENTS (200,000 unless given) as fast as it can and then so many a
 * second (20,000); groups are made large enough that nothing is rolled over. Meanwhile the caller
 * counts `type=RECEIVE AND size>=1KiB` and reads the newest ten of `component_type:*Merge*`, in
 * turn. DIRECTORY must not exist and is left behind. Percentiles of the time from opening to
 * closing a query, by number of events in memory: while the load comes at full speed, and behind
 * it. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/histogram.h"
#include "bench/load_event.h"
#include "lahar/lahar.h"

enum {
    EVENTS_DEFAULT = 200000,
    RATE_DEFAULT = 20000,
    BATCH_EVENTS = 500,
    CATCHING_UP = 100, /* queries behind the load at full speed, while the index catches up */
    QUERIES = 1000,    /* behind those */
    SEED = 3
};

struct bench {
    lahar_store *store;
    struct load_event_maker maker;
    uint64_t event_count; /* at full speed */
    uint64_t rate;        /* events a second behind them */
    atomic_uint_least64_t appended;
    atomic_bool must_stop;
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void check(lahar_status status, const char *what, const lahar_error *error)
{
    if (status != LAHAR_OK) {
        (void)fprintf(stderr, "open_group_bench: %s: %s\n", what, error->message);
        exit(1);
    }
}

static void *append(void *context)
{
    struct bench *bench = context;
    lahar_error error = {.status = LAHAR_OK};
    lahar_batch *batch = NULL;
    check(lahar_batch_create(bench->store, &batch, &error), "batch", &error);
    uint64_t slow_since_ns = 0;
    for (uint64_t index = 0; !atomic_load(&bench->must_stop); index += BATCH_EVENTS) {
        for (uint64_t i = 0; i < BATCH_EVENTS; i++) {
            lahar_event event;
            load_event_make(&bench->maker, index + i, &event);
            check(lahar_batch_add(batch, &event, &error), "add", &error);
        }
        check(lahar_batch_commit(batch, NULL, NULL, &error), "commit", &error);
        atomic_store(&bench->appended, index + BATCH_EVENTS);
        if (index < bench->event_count) {
            continue;
        }
        const uint64_t now_ns = clock_ns();
        slow_since_ns = slow_since_ns == 0 ? now_ns : slow_since_ns;
        const uint64_t due_ns =
            slow_since_ns + (index - bench->event_count) * UINT64_C(1000000000) / bench->rate;
        if (due_ns > now_ns) {
            const uint64_t wait_ns = due_ns - now_ns;
            const struct timespec wait = {(time_t)(wait_ns / UINT64_C(1000000000)),
                                          (long)(wait_ns % UINT64_C(1000000000))};
            (void)nanosleep(&wait, NULL);
        }
    }
    lahar_batch_destroy(batch);
    return NULL;
}

/* The time of one query. */
static uint64_t ask(struct bench *bench, unsigned number, uint64_t *scanned_out)
{
    static const char *const expressions[] = {"type=RECEIVE AND size>=1KiB",
                                              "component_type:*Merge*"};
    lahar_error error = {.status = LAHAR_OK};
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_query_options_init(&options);
    options.count = number % 2 == 0 ? LAHAR_COUNT_ONLY : LAHAR_COUNT_NONE;
    options.limit = number % 2 == 0 ? 0 : 10;
    const char *expression = expressions[number % 2];
    const uint64_t start_ns = clock_ns();
    check(lahar_query_open(bench->store, expression, strlen(expression), &options, &query, &error),
          "query", &error);
    const lahar_event *event = NULL;
    lahar_status status = LAHAR_OK;
    while (options.limit != 0 && (status = lahar_query_next(query, &event, &error)) == LAHAR_OK) {
    }
    check(status == LAHAR_NOT_FOUND ? LAHAR_OK : status, "query", &error);
    check(lahar_query_result_get(query, &result, &error), "query", &error);
    *scanned_out = result.scanned_events;
    lahar_query_close(query);
    return clock_ns() - start_ns;
}

/* Queries while the load was the same. */
struct phase {
    const char *name;
    struct histogram times_ns;
    uint64_t scanned;     /* events, by all queries */
    uint64_t event_count; /* in memory at its end */
};

static void report(const struct phase *phase)
{
    const struct histogram *times_ns = &phase->times_ns;
    if (times_ns->count == 0) {
        return;
    }
    (void)printf("%-12s %6" PRIu64 " queries, %8" PRIu64 " events in memory at the end, %8.0f "
                 "scanned a query: p50 %8.3f ms  p99 %8.3f ms  max %8.3f ms\n",
                 phase->name, times_ns->count, phase->event_count,
                 (double)phase->scanned / (double)times_ns->count,
                 (double)histogram_quantile(times_ns, 0.5) / 1e6,
                 (double)histogram_quantile(times_ns, 0.99) / 1e6, (double)times_ns->max / 1e6);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2) {
        (void)fprintf(stderr, "usage: open_group_bench DIRECTORY [EVENTS [EVENTS_A_SECOND]]\n");
        return 2;
    }
    static struct bench bench;
    static struct phase phases[3] = {
        {.name = "at speed"}, {.name = "catching up"}, {.name = "steady"}};
    lahar_error error = {.status = LAHAR_OK};
    lahar_options options;
    bench.event_count = argument_count > 2 ? strtoull(arguments[2], NULL, 10) : EVENTS_DEFAULT;
    bench.rate = argument_count > 3 ? strtoull(arguments[3], NULL, 10) : RATE_DEFAULT;
    lahar_options_init(&options);
    options.memory_limit_bytes = UINT64_C(8) << 30;
    options.group_size_bytes = UINT64_C(1) << 40;
    options.group_event_count = UINT64_MAX;
    options.group_age_ms = UINT32_MAX;
    options.group_age_max_ms = UINT32_MAX;
    check(lahar_store_open(arguments[1], &options, LAHAR_WAIT_FOREVER, &bench.store, &error),
          "open", &error);
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "provenance", .schema = LAHAR_SCHEMA_PROVENANCE};
    uint32_t stream = 0;
    check(lahar_stream_create(bench.store, &spec, &stream, &error), "stream", &error);
    check(load_event_maker_init(&bench.maker, LOAD_W1, SEED, bench.store, stream, &error), "maker",
          &error);
    pthread_t appender;
    if (pthread_create(&appender, NULL, append, &bench) != 0) {
        return 1;
    }
    for (unsigned i = 0; phases[2].times_ns.count < QUERIES; i++) {
        const bool is_behind = atomic_load(&bench.appended) >= bench.event_count;
        struct phase *phase = &phases[!is_behind                               ? 0
                                      : phases[1].times_ns.count < CATCHING_UP ? 1
                                                                               : 2];
        uint64_t scanned = 0;
        histogram_record(&phase->times_ns, ask(&bench, i, &scanned));
        phase->scanned += scanned;
        phase->event_count = atomic_load(&bench.appended);
        const struct timespec pause = {0, 5000000};
        (void)nanosleep(&pause, NULL);
    }
    atomic_store(&bench.must_stop, true);
    (void)pthread_join(appender, NULL);
    for (size_t i = 0; i < 3; i++) {
        report(&phases[i]);
    }
    load_event_maker_deinit(&bench.maker);
    /* Not rolled over at the end: closing writes what is in memory to the journals alone. */
    check(lahar_store_close(bench.store, LAHAR_WAIT_FOREVER, &error), "close", &error);
    return 0;
}
