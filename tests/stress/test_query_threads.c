/* Queries by several threads over a store that is appended to and rolled over meanwhile: counts,
 * facets, histograms and orders of events that are there do not depend on the number of threads,
 * and a query can be cancelled, watched, listed and let expire from outside. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/store/store_internal.h"
#include "lahar/lahar.h"
#include "scratch.h"

enum {
    FILES = 12,
    FILE_EVENTS = 3000,
    ASKERS = 3,
    ROUNDS = 25
};

struct shared {
    lahar_store *store;
    uint32_t stream;
    uint32_t host;
    uint64_t end_id; /* behind the events that are there from the beginning */
    atomic_bool is_over;
    _Atomic unsigned passed;
    _Atomic unsigned failed;
};

static void expect(struct shared *shared, bool condition, const char *what)
{
    (void)atomic_fetch_add(condition ? &shared->passed : &shared->failed, 1);
    if (!condition) {
        printf("FAIL %s\n", what);
    }
}

/* Event number i: host h<i % 7>, a message that names i % 10. */
static bool append(struct shared *shared, unsigned first, unsigned count)
{
    lahar_batch *batch = NULL;
    bool ok = lahar_batch_create(shared->store, &batch, NULL) == LAHAR_OK;
    for (unsigned i = first; i < first + count && ok; i++) {
        char host[16];
        char message[64];
        const int host_size = snprintf(host, sizeof host, "h%u", i % 7);
        const int message_size =
            snprintf(message, sizeof message, "request %u took n%u ms", i, i % 10);
        const lahar_value values[] = {
            {.field = LAHAR_FIELD_MESSAGE,
             .type = LAHAR_TEXT,
             .as.bytes = {message, (size_t)message_size}},
            {.field = shared->host, .type = LAHAR_KEYWORD, .as.bytes = {host, (size_t)host_size}}};
        const lahar_event event = {.stream = shared->stream,
                                   .time_ns = (int64_t)i * 1000000,
                                   .values = values,
                                   .value_count = 2};
        ok = lahar_batch_add(batch, &event, NULL) == LAHAR_OK;
    }
    ok = ok && lahar_batch_commit(batch, NULL, NULL, NULL) == LAHAR_OK;
    lahar_batch_destroy(batch);
    return ok;
}

static void *keep_appending(void *argument)
{
    struct shared *shared = argument;
    for (unsigned i = 0; !atomic_load(&shared->is_over); i++) {
        expect(shared, append(shared, i * 100, 100), "append");
        if (i % 20 == 19) {
            expect(shared, lahar_rollover(shared->store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK,
                   "rollover");
        }
        (void)usleep(1000);
    }
    return NULL;
}

static uint64_t count(struct shared *shared, const char *expression, uint32_t threads)
{
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_ONLY;
    options.threads = threads;
    if (lahar_query_open(shared->store, expression, strlen(expression), &options, &query, NULL) !=
            LAHAR_OK ||
        lahar_query_result_get(query, &result, NULL) != LAHAR_OK) {
        result.total = UINT64_MAX;
    }
    expect(shared, query != NULL && lahar_query_progress(query) == 100, "progress at the end");
    lahar_query_close(query);
    return result.total;
}

/* Of the first FILES * FILE_EVENTS events. */
static uint64_t count_of(unsigned modulus, unsigned rest)
{
    const unsigned events = FILES * FILE_EVENTS;
    return events / modulus + (rest < events % modulus);
}

/* Facets of the events there are, by a field of the index and by one that has to be read. */
static void check_facet(struct shared *shared, uint32_t threads)
{
    char expression[64];
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_facet facet = {.struct_size = sizeof facet};
    const lahar_histogram_bucket *buckets = NULL;
    size_t bucket_count = 0;
    lahar_query_options_init(&options);
    options.threads = threads;
    (void)snprintf(expression, sizeof expression, "id<%llu", (unsigned long long)shared->end_id);
    if (lahar_query_open(shared->store, expression, strlen(expression), &options, &query, NULL) !=
        LAHAR_OK) {
        expect(shared, false, "open for a facet");
        return;
    }
    expect(shared,
           lahar_query_facet(query, "host", 0, &facet, NULL) == LAHAR_OK &&
               facet.distinct_count == 7 && facet.event_count == FILES * FILE_EVENTS,
           "facet");
    for (size_t i = 0; i < facet.value_count; i++) {
        const char *host = facet.values[i].value.data;
        expect(shared, facet.values[i].count == count_of(7, (unsigned)(host[1] - '0')),
               "count of a value");
    }
    expect(shared,
           lahar_query_facet(query, "message", 5, &facet, NULL) == LAHAR_OK &&
               facet.value_count == 5 && facet.distinct_count == FILES * FILE_EVENTS,
           "facet of a text");
    uint64_t total = 0;
    const lahar_status status =
        lahar_query_histogram(query, INT64_C(1000000000), &buckets, &bucket_count, NULL);
    for (size_t i = 0; i < bucket_count; i++) {
        total += buckets[i].count;
    }
    expect(shared,
           status == LAHAR_OK && bucket_count == FILES * FILE_EVENTS / 1000 &&
               total == FILES * FILE_EVENTS,
           "histogram");
    lahar_query_close(query);
}

/* The newest events of a phrase, in each order: event i is the one at i ms. */
static void check_orders(struct shared *shared, uint32_t threads)
{
    char expression[96];
    const unsigned last = FILES * FILE_EVENTS;
    (void)snprintf(expression, sizeof expression, "id<%llu message:\"took n3 ms\"",
                   (unsigned long long)shared->end_id);
    for (int order = 0; order < 4; order++) {
        lahar_query_options options;
        lahar_query *query = NULL;
        const lahar_event *event = NULL;
        lahar_query_options_init(&options);
        options.order = (lahar_order)order;
        options.threads = threads;
        options.limit = 300;
        bool is_right = lahar_query_open(shared->store, expression, strlen(expression), &options,
                                         &query, NULL) == LAHAR_OK;
        const bool is_falling = order == LAHAR_ORDER_NEWEST || order == LAHAR_ORDER_LATEST_TIME;
        for (unsigned i = 0; i < 300 && is_right; i++) {
            const int64_t number = is_falling ? last - 7 - 10 * (int64_t)i : 3 + 10 * (int64_t)i;
            is_right = lahar_query_next(query, &event, NULL) == LAHAR_OK &&
                       event->time_ns == number * 1000000;
        }
        is_right = is_right && lahar_query_next(query, &event, NULL) == LAHAR_NOT_FOUND;
        expect(shared, is_right, "order");
        lahar_query_close(query);
    }
}

/* Lists and cancels by id what others have open, and lets own queries expire. */
static void *watch_handles(void *argument)
{
    struct shared *shared = argument;
    while (!atomic_load(&shared->is_over)) {
        lahar_query_info infos[8];
        lahar_query_options options;
        lahar_query *query = NULL;
        const size_t count = lahar_query_list(shared->store, infos, 8);
        for (size_t i = 0; i < count && i < 8; i++) {
            expect(shared, infos[i].percent <= 100 && (i == 0 || infos[i].id > infos[i - 1].id),
                   "listed query");
        }
        lahar_query_options_init(&options);
        options.expire_ns = 1000000;
        const lahar_event *event = NULL;
        if (lahar_query_open(shared->store, "*", 1, &options, &query, NULL) == LAHAR_OK) {
            const uint64_t id = lahar_query_id(query);
            (void)usleep(1500);
            const lahar_status status = lahar_query_next(query, &event, NULL);
            expect(shared, status == LAHAR_OK || status == LAHAR_CLOSED, "expiring query");
            expect(shared, lahar_query_cancel_id(shared->store, id) == LAHAR_OK, "cancel by id");
            lahar_query_close(query);
        }
        (void)usleep(500);
    }
    return NULL;
}

static void *ask(void *argument)
{
    struct shared *shared = argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        char expression[128];
        const unsigned n = round % 7;
        if (round % 12 == 0) {
            check_facet(shared, 1 + round % 4);
            check_orders(shared, 1 + round % 3);
        }
        (void)snprintf(expression, sizeof expression, "id<%llu host:h%u",
                       (unsigned long long)shared->end_id, n);
        expect(shared, count(shared, expression, 1 + round % 5) == count_of(7, n), "keyword");
        (void)snprintf(expression, sizeof expression, "id<%llu message:/took n%u/",
                       (unsigned long long)shared->end_id, n);
        expect(shared, count(shared, expression, 1 + round % 5) == count_of(10, n), "expression");
        (void)snprintf(expression, sizeof expression, "id<%llu message:\"took n%u ms\"",
                       (unsigned long long)shared->end_id, n);
        expect(shared, count(shared, expression, 0) == count_of(10, n), "phrase");
    }
    return NULL;
}

struct watch {
    lahar_query *query;
    bool is_right;
};

/* Watches a query until it has begun, and cancels it. */
static void *cancel(void *argument)
{
    struct watch *watch = argument;
    unsigned before = 0;
    watch->is_right = true;
    for (unsigned i = 0; i < 200 && before == 0; i++) {
        const unsigned now = lahar_query_progress(watch->query);
        watch->is_right = watch->is_right && now >= before && now <= 100;
        before = now;
        (void)usleep(100);
    }
    lahar_query_cancel(watch->query);
    return NULL;
}

static void check_cancel(struct shared *shared)
{
    static const char expression[] = "message:/r.*q.*t.*n[0-9] ms$/";
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_ONLY;
    options.threads = 3;
    for (unsigned round = 0; round < 10; round++) {
        struct watch watch = {0};
        pthread_t thread;
        lahar_query_result result = {.struct_size = sizeof result};
        expect(shared,
               lahar_query_open(shared->store, expression, sizeof expression - 1, &options,
                                &watch.query, NULL) == LAHAR_OK,
               "open");
        if (pthread_create(&thread, NULL, cancel, &watch) != 0) {
            abort();
        }
        const lahar_status status = lahar_query_result_get(watch.query, &result, NULL);
        (void)pthread_join(thread, NULL);
        expect(shared, status == LAHAR_OK || status == LAHAR_CANCELLED, "status when cancelled");
        expect(shared, watch.is_right, "progress");
        expect(shared, status != LAHAR_CANCELLED || result.relation != LAHAR_RELATION_EXACT,
               "relation when cancelled");
        lahar_query_close(watch.query);
    }
}

static bool prepare(struct shared *shared, const char *directory)
{
    const lahar_field_spec fields[] = {{.name = "host", .type = LAHAR_KEYWORD}};
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "log",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = fields,
                                    .field_count = 1};
    lahar_options options;
    lahar_options_init(&options);
    options.memory_limit_bytes = 64 << 20;
    /* What comes meanwhile is indexed in memory, a few batches at a time. */
    const struct lahar_store_config config = {.start_threads = true, .slice_event_max = 300};
    bool ok = lahar_store_open_config(directory, &options, &config, 0, &shared->store, NULL) ==
                  LAHAR_OK &&
              lahar_stream_create(shared->store, &spec, &shared->stream, NULL) == LAHAR_OK &&
              lahar_field_id(shared->store, "host", &shared->host, NULL) == LAHAR_OK;
    for (unsigned file = 0; file < FILES && ok; file++) {
        ok = append(shared, file * FILE_EVENTS, FILE_EVENTS) &&
             (file + 1 == FILES ||
              lahar_rollover(shared->store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK);
    }
    shared->end_id = FILES * FILE_EVENTS + 1;
    return ok;
}

int main(void)
{
    struct shared shared = {0};
    char directory[SCRATCH_PATH_SIZE];
    pthread_t appender;
    pthread_t watcher;
    pthread_t askers[ASKERS];
    scratch_create(directory);
    if (!prepare(&shared, directory)) {
        printf("0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    if (pthread_create(&appender, NULL, keep_appending, &shared) != 0 ||
        pthread_create(&watcher, NULL, watch_handles, &shared) != 0) {
        abort();
    }
    for (unsigned i = 0; i < ASKERS; i++) {
        if (pthread_create(&askers[i], NULL, ask, &shared) != 0) {
            abort();
        }
    }
    check_cancel(&shared);
    for (unsigned i = 0; i < ASKERS; i++) {
        (void)pthread_join(askers[i], NULL);
    }
    atomic_store(&shared.is_over, true);
    (void)pthread_join(appender, NULL);
    (void)pthread_join(watcher, NULL);
    expect(&shared, lahar_store_close(shared.store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "close");
    scratch_remove(directory);
    printf("%u passed, %u failed, 0 skipped\n", atomic_load(&shared.passed),
           atomic_load(&shared.failed));
    return atomic_load(&shared.failed) == 0 ? 0 : 1;
}
