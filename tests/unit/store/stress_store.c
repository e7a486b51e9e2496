/* A store on a real disk with all its threads: producers append while groups roll over
 * all the time, readers check that every snapshot holds each event of each producer exactly
 * once and in order, and a reading store is opened beside the writer. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    PRODUCERS = 4,
    BATCHES = 400,
    BATCH_EVENTS = 25,
    READERS = 2
};

static lahar_store *store;
static uint32_t stream_of[PRODUCERS];
static atomic_uint producers_left;
static atomic_uint failures;

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0                                                                         \
                 : (void)(atomic_fetch_add(&failures, 1),                                          \
                          fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition)))

static void *produce(void *context)
{
    const uint32_t producer = (uint32_t)(size_t)context;
    lahar_batch *batch = NULL;
    lahar_error error = {0};
    CHECK(lahar_batch_create(store, &batch, &error) == LAHAR_OK);
    uint64_t count = 0;
    uint64_t last_id = 0;
    for (unsigned i = 0; i < BATCHES; i++) {
        for (unsigned k = 0; k < BATCH_EVENTS; k++) {
            char text[96];
            const int size = snprintf(text, sizeof text, "%llu of producer %u",
                                      (unsigned long long)count++, producer);
            const lahar_value value = {
                .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {text, (size_t)size}};
            const lahar_event event = {.stream = stream_of[producer],
                                       .time_ns = LAHAR_TIME_OF_ARRIVAL,
                                       .values = &value,
                                       .value_count = 1};
            CHECK(lahar_batch_add(batch, &event, &error) == LAHAR_OK);
        }
        const lahar_append_options options = {
            sizeof options, i % 50 == 7 ? LAHAR_DURABILITY_COMMIT : LAHAR_DURABILITY_INTERVAL,
            LAHAR_WAIT_FOREVER};
        uint64_t id = 0;
        CHECK(lahar_batch_commit(batch, &options, &id, &error) == LAHAR_OK);
        CHECK(id > last_id);
        last_id = id + BATCH_EVENTS - 1;
    }
    lahar_batch_destroy(batch);
    atomic_fetch_sub(&producers_left, 1);
    return NULL;
}

/* Every producer's events are numbered from 0 without a gap in a scan. */
static uint64_t check_scan(lahar_store *of)
{
    lahar_cursor *cursor = NULL;
    lahar_error error = {0};
    lahar_status status = lahar_scan(of, NULL, &cursor, &error);
    CHECK(status == LAHAR_OK);
    if (status != LAHAR_OK) {
        return 0;
    }
    uint64_t next[PRODUCERS] = {0};
    uint64_t last_id = 0;
    uint64_t count = 0;
    const lahar_event *event = NULL;
    while ((status = lahar_cursor_next(cursor, &event, &error)) == LAHAR_OK) {
        char text[96] = "";
        CHECK(event->id > last_id);
        last_id = event->id;
        CHECK(event->stream < PRODUCERS && event->value_count == 1);
        memcpy(text, event->values[0].as.bytes.data, event->values[0].as.bytes.size);
        if (strtoull(text, NULL, 10) != next[event->stream]++) {
            CHECK(false && "an event is missing or there twice");
            break;
        }
        count++;
    }
    CHECK(status == LAHAR_NOT_FOUND);
    lahar_cursor_close(cursor);
    return count;
}

static void *read_all(void *context)
{
    (void)context;
    uint64_t before = 0;
    while (atomic_load(&producers_left) != 0) {
        const uint64_t count = check_scan(store);
        CHECK(count >= before);
        before = count;
    }
    return NULL;
}

static void *open_beside(void *context)
{
    lahar_options options;
    lahar_options_init(&options);
    options.read_only = true;
    options.memory_limit_bytes = 64 << 20;
    while (atomic_load(&producers_left) != 0) {
        lahar_store *reader = NULL;
        lahar_error error = {0};
        const lahar_status status = lahar_store_open(context, &options, 0, &reader, &error);
        if (status != LAHAR_OK) {
            CHECK(false && "a reading store could not be opened");
            (void)fprintf(stderr, "%s\n", error.message);
            break;
        }
        (void)check_scan(reader);
        CHECK(lahar_store_close(reader, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK);
    }
    return NULL;
}

static void run(const char *path, lahar_backend backend)
{
    lahar_options options;
    lahar_options_init(&options);
    options.backend = backend;
    options.memory_limit_bytes = 64 << 20;
    options.group_size_bytes = 200000;
    options.sync_interval_ms = 20;
    lahar_error error = {0};
    lahar_status status = lahar_store_open(path, &options, 0, &store, &error);
    CHECK(status == LAHAR_OK);
    if (status != LAHAR_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return;
    }
    for (unsigned i = 0; i < PRODUCERS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", i);
        const lahar_stream_spec spec = {
            .struct_size = sizeof spec, .name = name, .schema = LAHAR_SCHEMA_LOG};
        CHECK(lahar_stream_create(store, &spec, &stream_of[i], &error) == LAHAR_OK);
    }
    pthread_t threads[PRODUCERS + READERS + 1];
    atomic_store(&producers_left, PRODUCERS);
    size_t count = 0;
    for (size_t i = 0; i < PRODUCERS; i++) {
        CHECK(pthread_create(&threads[count++], NULL, produce, (void *)i) == 0);
    }
    for (size_t i = 0; i < READERS; i++) {
        CHECK(pthread_create(&threads[count++], NULL, read_all, NULL) == 0);
    }
    char copy[SCRATCH_PATH_SIZE + 16];
    (void)snprintf(copy, sizeof copy, "%s", path);
    CHECK(pthread_create(&threads[count++], NULL, open_beside, copy) == 0);
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    const uint64_t total = (uint64_t)PRODUCERS * BATCHES * BATCH_EVENTS;
    CHECK(check_scan(store) == total);
    CHECK(lahar_rollover(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK);
    CHECK(check_scan(store) == total);
    lahar_stat stat = {.struct_size = sizeof stat};
    CHECK(lahar_stat_get(store, &stat, &error) == LAHAR_OK);
    CHECK(stat.rollovers > 3 && stat.rollover_failures == 0 && stat.event_count == total);
    CHECK(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK);
    CHECK(lahar_store_open(path, &options, 0, &store, &error) == LAHAR_OK);
    CHECK(check_scan(store) == total);
    CHECK(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK);
}

int main(void)
{
    unsigned passed = 0;
    unsigned failed = 0;
    static const lahar_backend backends[] = {LAHAR_BACKEND_PWRITE, LAHAR_BACKEND_AUTO};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        char scratch[SCRATCH_PATH_SIZE];
        char path[SCRATCH_PATH_SIZE + 16];
        scratch_create(scratch);
        (void)snprintf(path, sizeof path, "%s/store", scratch);
        atomic_store(&failures, 0);
        run(path, backends[i]);
        if (atomic_load(&failures) == 0) {
            passed++;
            scratch_remove(scratch);
        } else {
            failed++;
        }
    }
    (void)printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
