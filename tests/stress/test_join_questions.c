/* Joins and questions: while somebody asks, small files stay as they are; once nobody does, they
 * are joined.
 *
 * Between two questions passes more time than a join that has begun would pause for, and less
 * than one waits for before it begins; where this machine took longer, nothing is concluded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    FILES = 12,
    ASKING_MS = 3000,
    STEP_MS = 350,
    CONCLUSIVE_MS = 900,
    PATIENCE_MS = 30000
};

static unsigned passed;
static unsigned failed;
static uint64_t asked_ms;
static uint64_t longest_ms; /* between two questions */

static void check(bool is_right, const char *what)
{
    passed += is_right;
    failed += !is_right;
    if (!is_right) {
        (void)printf("FAIL %s\n", what);
    }
}

static void require(lahar_status status, const lahar_error *error)
{
    if (status != LAHAR_OK) {
        (void)printf("FAIL %s\n0 passed, 1 failed, 0 skipped\n", error->message);
        exit(1);
    }
}

static void nap(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Expects so many events. */
static void ask(lahar_store *store, uint64_t count)
{
    lahar_query *query = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    const uint64_t gap_ms = asked_ms == 0 ? 0 : now_ms() - asked_ms;
    longest_ms = gap_ms > longest_ms ? gap_ms : longest_ms;
    require(lahar_query_open(store, "message:hello", 13, NULL, &query, &error), &error);
    require(lahar_query_result_get(query, &result, &error), &error);
    check(result.total == count, "every event is found");
    lahar_query_close(query);
    asked_ms = now_ms();
}

static uint32_t file_count(lahar_store *store)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    lahar_error error = {0};
    require(lahar_stat_get(store, &stat, &error), &error);
    return stat.event_file_count;
}

/* Each event into a file of its own. */
static void make_files(lahar_store *store)
{
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    lahar_error error = {0};
    lahar_batch *batch = NULL;
    uint32_t stream = 0;
    require(lahar_stream_create(store, &spec, &stream, &error), &error);
    require(lahar_batch_create(store, &batch, &error), &error);
    for (unsigned i = 0; i < FILES; i++) {
        const lahar_value value = {
            .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {"hello", 5}};
        const lahar_event event = {
            .stream = stream, .time_ns = i, .values = &value, .value_count = 1};
        require(lahar_batch_add(batch, &event, &error), &error);
        require(lahar_batch_commit(batch, NULL, NULL, &error), &error);
        ask(store, i + 1);
        require(lahar_rollover(store, LAHAR_WAIT_FOREVER, &error), &error);
    }
    lahar_batch_destroy(batch);
}

int main(void)
{
    char directory[SCRATCH_PATH_SIZE];
    char path[SCRATCH_PATH_SIZE + 8];
    lahar_store *store = NULL;
    lahar_options options;
    lahar_error error = {0};
    scratch_create(directory);
    (void)snprintf(path, sizeof path, "%s/store", directory);
    lahar_options_init(&options);
    require(lahar_store_open(path, &options, LAHAR_NO_WAIT, &store, &error), &error);
    make_files(store);
    for (unsigned ms = 0; ms < ASKING_MS; ms += STEP_MS) {
        ask(store, FILES);
        nap(STEP_MS);
    }
    const uint32_t left = file_count(store);
    check(left == FILES || longest_ms >= CONCLUSIVE_MS, "nothing is joined while somebody asks");
    unsigned waited_ms = 0;
    while (file_count(store) >= FILES && waited_ms < PATIENCE_MS) {
        nap(STEP_MS);
        waited_ms += STEP_MS;
    }
    check(file_count(store) < FILES, "files are joined once nobody does");
    ask(store, FILES);
    require(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error), &error);
    scratch_remove(directory);
    (void)printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
