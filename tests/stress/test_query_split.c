/* One large file searched by several threads: its dictionary and its blocks are worked on in
 * pieces. Counts are those of a look at every line, whatever the number of threads; blocks that
 * cannot be read cost their own events; a query can be cancelled in the middle. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    LINES = 40000,
    LINE_SIZE = 224,
    BATCH = 2000,
    THREADS_MAX = 4
};

static char lines[LINES][LINE_SIZE];
static unsigned passed;
static unsigned failed;

static void expect(bool condition, const char *what)
{
    passed += condition;
    failed += !condition;
    if (!condition) {
        printf("FAIL %s\n", what);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static void make_lines(void)
{
    uint64_t state = 77;
    for (unsigned i = 0; i < LINES; i++) {
        const uint64_t random = next_random(&state);
        (void)snprintf(lines[i], LINE_SIZE,
                       "2026-01-02 %02u:%02u:%02u worker-%02u req=%016llx host=node-%03u took %u "
                       "ms and %u rows of %llu left%s, nothing more to be said about it here",
                       i / 3600 % 24, i / 60 % 60, i % 60, (unsigned)(random % 64),
                       (unsigned long long)next_random(&state), (unsigned)(random % 300),
                       (unsigned)(random / 64 % 900), (unsigned)(random / 777 % 1000),
                       (unsigned long long)(random % 100000), random % 5000 == 0 ? " rarely" : "");
    }
}

static lahar_store *make_store(const char *directory)
{
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    lahar_options options;
    lahar_store *store = NULL;
    lahar_batch *batch = NULL;
    uint32_t stream = 0;
    lahar_options_init(&options);
    bool ok = lahar_store_open(directory, &options, LAHAR_NO_WAIT, &store, NULL) == LAHAR_OK &&
              lahar_stream_create(store, &spec, &stream, NULL) == LAHAR_OK &&
              lahar_batch_create(store, &batch, NULL) == LAHAR_OK;
    for (unsigned i = 0; i < LINES && ok; i++) {
        const lahar_value value = {.field = LAHAR_FIELD_MESSAGE,
                                   .type = LAHAR_TEXT,
                                   .as.bytes = {lines[i], strlen(lines[i])}};
        const lahar_event event = {
            .stream = stream, .time_ns = (int64_t)i * 1000000, .values = &value, .value_count = 1};
        ok = lahar_batch_add(batch, &event, NULL) == LAHAR_OK &&
             (i % BATCH != BATCH - 1 || lahar_batch_commit(batch, NULL, NULL, NULL) == LAHAR_OK);
    }
    lahar_batch_destroy(batch);
    ok = ok && lahar_rollover(store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK;
    expect(ok, "store");
    return store;
}

static lahar_status count(lahar_store *store, const char *expression, uint32_t threads,
                          lahar_query_result *result)
{
    lahar_query_options options;
    lahar_query *query = NULL;
    *result = (lahar_query_result){.struct_size = sizeof *result};
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_ONLY;
    options.threads = threads;
    lahar_status status =
        lahar_query_open(store, expression, strlen(expression), &options, &query, NULL);
    if (status == LAHAR_OK) {
        status = lahar_query_result_get(query, result, NULL);
    }
    lahar_query_close(query);
    return status;
}

/* Lines from first on, short of end, that hold the text. */
static uint64_t count_lines(const char *text, unsigned first, unsigned end)
{
    uint64_t found = 0;
    for (unsigned i = first; i < end; i++) {
        found += strstr(lines[i], text) != NULL;
    }
    return found;
}

static void check_counts(lahar_store *store)
{
    char infix[8];
    char tail[24];
    (void)snprintf(infix, sizeof infix, "%.5s", strstr(lines[12345], "req=") + 8);
    (void)snprintf(tail, sizeof tail, "%.3s host=node", strstr(lines[23456], "req=") + 17);
    const struct {
        const char *front;
        const char *text;
        const char *back;
    } cases[] = {{"message~=\"", infix, "\""},
                 {"message~=\"", tail, "\""},
                 {"message~=\"", "7", "\""},
                 {"message~=\"", "rows of 99", "\""},
                 {"message:\"", "77 ms and", "\""},
                 {"message:\"", "left rarely", "\""},
                 {"message:/", " left rarely", "[,]/"},
                 {"", "rarely", ""},
                 {"message~=\"", "no such thing", "\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expression[128];
        char needle[64];
        /* A phrase begins at a token. */
        (void)snprintf(needle, sizeof needle, "%s%s", i == 4 ? " " : "", cases[i].text);
        const uint64_t expected = count_lines(needle, 0, LINES);
        (void)snprintf(expression, sizeof expression, "%s%s%s", cases[i].front, cases[i].text,
                       cases[i].back);
        for (uint32_t threads = 0; threads <= THREADS_MAX; threads++) {
            lahar_query_result result;
            expect(count(store, expression, threads, &result) == LAHAR_OK &&
                       result.total == expected && result.relation == LAHAR_RELATION_EXACT &&
                       !result.is_partial,
                   expression);
        }
    }
}

/* Listing opens the large file by itself, outside any counting. */
static void check_listing(lahar_store *store)
{
    lahar_query_options options;
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    char expression[64];
    const char *infix = strstr(lines[31000], "req=") + 7;
    (void)snprintf(expression, sizeof expression, "message~=\"%.9s\"", infix);
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_NONE;
    options.threads = 3;
    expect(lahar_query_open(store, expression, strlen(expression), &options, &query, NULL) ==
               LAHAR_OK,
           "open");
    expect(lahar_query_next(query, &event, NULL) == LAHAR_OK && event->id == 31001, "the line");
    expect(lahar_query_next(query, &event, NULL) == LAHAR_NOT_FOUND, "no other line");
    lahar_query_close(query);
}

struct watch {
    lahar_query *query;
    unsigned delay_us;
};

static void *cancel(void *argument)
{
    const struct watch *watch = argument;
    (void)usleep(watch->delay_us);
    lahar_query_cancel(watch->query);
    return NULL;
}

static void check_cancel(lahar_store *store)
{
    static const char expression[] = "message:/w.*r.*q.*t.*ms a.*e$/";
    for (unsigned round = 0; round < 12; round++) {
        lahar_query_options options;
        struct watch watch = {.delay_us = round * 150};
        pthread_t thread;
        lahar_query_result result = {.struct_size = sizeof result};
        lahar_query_options_init(&options);
        options.count = LAHAR_COUNT_ONLY;
        options.threads = 1 + round % THREADS_MAX;
        expect(lahar_query_open(store, expression, sizeof expression - 1, &options, &watch.query,
                                NULL) == LAHAR_OK,
               "open");
        if (pthread_create(&thread, NULL, cancel, &watch) != 0) {
            abort();
        }
        const lahar_status status = lahar_query_result_get(watch.query, &result, NULL);
        (void)pthread_join(thread, NULL);
        expect(status == LAHAR_OK || status == LAHAR_CANCELLED, "status when cancelled");
        expect(status != LAHAR_CANCELLED || result.relation != LAHAR_RELATION_EXACT,
               "relation when cancelled");
        lahar_query_close(watch.query);
    }
}

/* Changes a byte in the middle of each file of events. */
static void damage(const char *directory)
{
    char path[SCRATCH_PATH_SIZE + 300];
    (void)snprintf(path, sizeof path, "%s/events", directory);
    DIR *entries = opendir(path);
    for (struct dirent *entry = NULL; entries != NULL && (entry = readdir(entries)) != NULL;) {
        const char *suffix = strrchr(entry->d_name, '.');
        if (suffix == NULL || strcmp(suffix, ".events") != 0) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/events/%s", directory, entry->d_name);
        const int file = open(path, O_RDWR | O_CLOEXEC);
        const off_t middle = lseek(file, 0, SEEK_END) / 2;
        uint8_t byte = 0;
        expect(pread(file, &byte, 1, middle) == 1, "read");
        byte ^= 0x55;
        expect(pwrite(file, &byte, 1, middle) == 1, "damage");
        (void)close(file);
    }
    (void)closedir(entries);
}

/* A lost block costs its own lines. */
static void check_damage(const char *directory)
{
    lahar_options options;
    lahar_store *store = NULL;
    lahar_options_init(&options);
    options.read_only = true;
    expect(lahar_store_open(directory, &options, LAHAR_NO_WAIT, &store, NULL) == LAHAR_OK,
           "reopen");
    uint64_t totals[THREADS_MAX + 1];
    const uint64_t all = count_lines(" 77 ms and", 0, LINES);
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        lahar_query_result result;
        expect(count(store, "message:\"77 ms and\"", threads, &result) == LAHAR_OK &&
                   result.is_partial,
               "partial");
        totals[threads] = result.total;
        expect(result.total < all && result.total > all / 3, "all but a block of each file");
        expect(totals[threads] == totals[1], "the same whatever the number of threads");
    }
    expect(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "close");
}

int main(void)
{
    char directory[SCRATCH_PATH_SIZE];
    scratch_create(directory);
    make_lines();
    lahar_store *store = make_store(directory);
    check_counts(store);
    check_listing(store);
    check_cancel(store);
    expect(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "close");
    damage(directory);
    check_damage(directory);
    scratch_remove(directory);
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
