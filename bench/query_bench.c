/* Queries in one process: the targets on W1, and plain timings of expressions.
 *
 *   query_bench w1 DIRECTORY [EVENTS]
 *   query_bench join DIRECTORY
 *   query_bench count DIRECTORY RUNS EXPRESSION...
 *
 * w1 opens the store in DIRECTORY, makes one of EVENTS events (200,000 unless given) first when
 * there is none, and prints a line for each target: the median of at least 101 runs, which opens,
 * asks and closes a query each time. Targets are for 20 million events. "uncached" runs drop the
 * event files from the kernel's cache and open the store anew.
 *
 * A store that was filled at full speed has many small event files, since joining waits for
 * rollover. join opens it and waits until they are joined, so that w1 sees what it comes to within
 * a minute of rest.
 *
 * count prints one JSON line an expression: the number of matches and the median. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/load_event.h"
#include "bench/workload_w1.h"
#include "lahar/lahar.h"

enum {
    RUNS = 101,
    EVENTS_DEFAULT = 200000,
    SHARDS_AT_LEAST = 50,
    BATCH_EVENTS = 500,
    SEED = 1,
    EXPRESSION_SIZE = 512
};

struct bench {
    const char *directory;
    lahar_store *store;
    uint64_t event_count;
    uint32_t file_count;
    struct load_event_maker maker;
    unsigned missed;
};

struct question {
    const char *expression;
    lahar_query_options options;
    const char *facet; /* a facet of it is asked for, NULL: events and total */
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void fail(const char *what, const lahar_error *error)
{
    (void)fprintf(stderr, "query_bench: %s: %s\n", what, error->message);
    exit(1);
}

/* --- the store ---------------------------------------------------------------------- */

static void open_store(struct bench *bench, bool read_only)
{
    lahar_options options;
    lahar_error error = {.status = LAHAR_OK};
    lahar_options_init(&options);
    options.read_only = read_only;
    if (bench->event_count < 5000000) {
        options.group_event_count = bench->event_count / SHARDS_AT_LEAST + 1;
    }
    if (lahar_store_open(bench->directory, &options, LAHAR_NO_WAIT, &bench->store, &error) !=
        LAHAR_OK) {
        fail(bench->directory, &error);
    }
}

static void close_store(struct bench *bench)
{
    lahar_error error = {.status = LAHAR_OK};
    if (lahar_store_close(bench->store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        fail("close", &error);
    }
    bench->store = NULL;
}

static void start_maker(struct bench *bench, uint32_t stream)
{
    lahar_error error = {.status = LAHAR_OK};
    if (load_event_maker_init(&bench->maker, LOAD_W1, SEED, bench->store, stream, &error) !=
        LAHAR_OK) {
        fail("workload", &error);
    }
}

static void make_store(struct bench *bench)
{
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "w1", .schema = LAHAR_SCHEMA_PROVENANCE};
    lahar_error error = {.status = LAHAR_OK};
    lahar_batch *batch = NULL;
    uint32_t stream = 0;
    open_store(bench, false);
    if (lahar_stream_create(bench->store, &spec, &stream, &error) != LAHAR_OK ||
        lahar_batch_create(bench->store, &batch, &error) != LAHAR_OK) {
        fail("stream", &error);
    }
    start_maker(bench, stream);
    const uint64_t group =
        bench->event_count < 5000000 ? bench->event_count / SHARDS_AT_LEAST + 1 : UINT64_MAX;
    for (uint64_t i = 0; i < bench->event_count; i++) {
        lahar_event event;
        load_event_make(&bench->maker, i, &event);
        lahar_status status = lahar_batch_add(batch, &event, &error);
        if (status == LAHAR_OK && (i % BATCH_EVENTS == BATCH_EVENTS - 1 ||
                                   i + 1 == bench->event_count || i % group == group - 1)) {
            status = lahar_batch_commit(batch, NULL, NULL, &error);
        }
        if (status == LAHAR_OK && i % group == group - 1) {
            status = lahar_rollover(bench->store, LAHAR_WAIT_FOREVER, &error);
        }
        if (status != LAHAR_OK) {
            fail("append", &error);
        }
    }
    lahar_batch_destroy(batch);
    if (lahar_rollover(bench->store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        fail("rollover", &error);
    }
    load_event_maker_deinit(&bench->maker);
    close_store(bench);
}

/* Takes the event files out of the kernel's cache. */
static void forget_files(const char *directory)
{
    DIR *entries = opendir(directory);
    for (struct dirent *entry = NULL; entries != NULL && (entry = readdir(entries)) != NULL;) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            forget_files(path);
        } else if (strstr(entry->d_name, ".events") != NULL) {
            const int file = open(path, O_RDONLY | O_CLOEXEC);
            (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
            (void)close(file);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
}

/* --- asking ------------------------------------------------------------------------- */

/* Returns the time taken; total_out: events given, or counted where none are asked for. */
static uint64_t ask(const struct bench *bench, const struct question *question, uint64_t *total_out)
{
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_query_result result = {.struct_size = sizeof result};
    uint64_t event_count = 0;
    const uint64_t start_ns = clock_ns();
    lahar_status status =
        lahar_query_open(bench->store, question->expression, strlen(question->expression),
                         &question->options, &query, &error);
    if (status == LAHAR_OK && question->facet != NULL) {
        lahar_facet facet = {.struct_size = sizeof facet};
        status = lahar_query_facet(query, question->facet, 10, &facet, &error);
        event_count = facet.distinct_count;
    } else if (status == LAHAR_OK) {
        while ((status = lahar_query_next(query, &event, &error)) == LAHAR_OK) {
            event_count++;
        }
        status =
            status == LAHAR_NOT_FOUND ? lahar_query_result_get(query, &result, &error) : status;
    }
    lahar_query_close(query);
    const uint64_t took_ns = clock_ns() - start_ns;
    if (status != LAHAR_OK) {
        fail(question->expression, &error);
    }
    *total_out = question->options.count == LAHAR_COUNT_ONLY ? result.total : event_count;
    return took_ns;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t median_of(uint64_t *times_ns, size_t count)
{
    qsort(times_ns, count, sizeof *times_ns, compare);
    return times_ns[count / 2];
}

static void print_figure(struct bench *bench, const char *name, double figure, const char *unit,
                         double target, bool is_least, uint64_t total)
{
    const bool is_met = is_least ? figure >= target : figure <= target;
    if (target == 0) {
        printf("%-44s figure %10.2f %s, %" PRIu64 " found\n", name, figure, unit, total);
        return;
    }
    bench->missed += !is_met;
    printf("target %-37s figure %10.2f %s, %s %.2f (%s), %" PRIu64 " found\n", name, figure, unit,
           is_least ? "at least" : "at most", target, is_met ? "met" : "not met", total);
    (void)fflush(stdout);
}

/* Asks expression n for run n, each once before. target_us 0: none. */
static void measure(struct bench *bench, const char *name, double target_us,
                    const struct question *questions, size_t question_count, size_t runs,
                    bool is_uncached)
{
    uint64_t times_ns[1001];
    uint64_t total = 0;
    for (size_t i = 0; i < question_count && !is_uncached; i++) {
        (void)ask(bench, &questions[i], &total);
    }
    for (size_t i = 0; i < runs; i++) {
        if (is_uncached) {
            close_store(bench);
            forget_files(bench->directory);
            open_store(bench, true);
        }
        times_ns[i] = ask(bench, &questions[i % question_count], &total);
    }
    print_figure(bench, name, (double)median_of(times_ns, runs) / 1e3, "us", target_us, false,
                 total);
}

static struct question question_of(const char *expression, lahar_count count, uint64_t limit,
                                   bool ids_only)
{
    struct question question = {.expression = expression};
    lahar_query_options_init(&question.options);
    question.options.count = count;
    question.options.limit = limit;
    question.options.ids_only = ids_only;
    return question;
}

static void measure_one(struct bench *bench, const char *name, double target_us,
                        struct question question, size_t runs, bool is_uncached)
{
    measure(bench, name, target_us, &question, 1, runs, is_uncached);
}

/* --- the targets -------------------------------------------------------------------- */

struct texts {
    char uuids[RUNS][EXPRESSION_SIZE];
    char filenames[RUNS][EXPRESSION_SIZE];
    char component[EXPRESSION_SIZE];
    char suffix[EXPRESSION_SIZE];
    int64_t middle_ns;
};

/* name and the uuid. */
static void put_uuid(char out[EXPRESSION_SIZE], const char *name, const lahar_uuid *uuid)
{
    int size = snprintf(out, EXPRESSION_SIZE, "%s", name);
    for (int i = 0; i < 16; i++) {
        size += snprintf(out + size, EXPRESSION_SIZE - (size_t)size, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid->bytes[i]);
    }
}

/* Values of events all over the store. */
static void choose(struct bench *bench, struct texts *texts)
{
    struct workload_w1_event event;
    uint32_t counts[WORKLOAD_W1_COMPONENTS] = {0};
    lahar_uuid components[WORKLOAD_W1_COMPONENTS];
    uint32_t component_count = 0;
    for (uint64_t i = 0; i < RUNS; i++) {
        workload_w1_event(bench->maker.w1, bench->event_count / RUNS * i, &event);
        put_uuid(texts->uuids[i], "uuid:", &event.uuid);
        for (int j = 0; j < WORKLOAD_W1_UPDATED; j++) {
            const lahar_pair *pair = &event.updated[j];
            if (pair->key.size == 8 && memcmp(pair->key.data, "filename", 8) == 0) {
                (void)snprintf(texts->filenames[i], EXPRESSION_SIZE, "filename:\"%.*s\"",
                               (int)pair->value.size, (const char *)pair->value.data);
                (void)snprintf(texts->suffix, EXPRESSION_SIZE, "filename:*%.*s",
                               (int)(pair->value.size < 12 ? pair->value.size : 12),
                               (const char *)pair->value.data + pair->value.size -
                                   (pair->value.size < 12 ? pair->value.size : 12));
            }
        }
        texts->middle_ns = i == RUNS / 2 ? event.time_ms * 1000000 : texts->middle_ns;
    }
    for (uint64_t i = 0; i < 2000; i++) {
        workload_w1_event(bench->maker.w1, i, &event);
        uint32_t j = 0;
        while (j < component_count &&
               memcmp(&components[j], &event.component, sizeof event.component) != 0) {
            j++;
        }
        if (j == component_count) {
            components[component_count++] = event.component;
        }
        counts[j]++;
    }
    uint32_t most = 0;
    for (uint32_t j = 1; j < component_count; j++) {
        most = counts[j] > counts[most] ? j : most;
    }
    put_uuid(texts->component, "component:", &components[most]);
}

static void measure_look_ups(struct bench *bench, const struct texts *texts)
{
    struct question questions[RUNS];
    for (size_t i = 0; i < RUNS; i++) {
        questions[i] = question_of(texts->uuids[i], LAHAR_COUNT_EXACT, 0, true);
    }
    measure(bench, "ids of a uuid", 30, questions, RUNS, RUNS, false);
    for (size_t i = 0; i < RUNS; i++) {
        questions[i] = question_of(texts->filenames[i], LAHAR_COUNT_EXACT, 0, true);
    }
    measure(bench, "ids of a rare filename", 50, questions, RUNS, RUNS, false);
    for (size_t i = 0; i < RUNS; i++) {
        questions[i] = question_of(texts->uuids[i], LAHAR_COUNT_EXACT, 0, false);
    }
    measure(bench, "events of a uuid, cached", 50, questions, 1, RUNS, false);
    measure(bench, "events of a uuid, uncached", 2000, questions, RUNS, RUNS, true);
}

static void measure_common(struct bench *bench, const struct texts *texts)
{
    measure_one(bench, "count of a component", 100,
                question_of(texts->component, LAHAR_COUNT_ONLY, 0, true), RUNS, false);
    measure_one(bench, "newest 100 ids of a component", 1000,
                question_of(texts->component, LAHAR_COUNT_NONE, 100, true), RUNS, false);
    measure_one(bench, "newest 100 events of a component, uncached", 20000,
                question_of(texts->component, LAHAR_COUNT_NONE, 100, false), RUNS, true);
    struct question window = question_of("type=RECEIVE", LAHAR_COUNT_EXACT, 100, true);
    window.options.from_ns = texts->middle_ns;
    window.options.to_ns = texts->middle_ns + INT64_C(60000000000);
    measure_one(bench, "type and 60 s, 100 ids and total", 300, window, RUNS, false);
    measure_one(
        bench, "count of two terms", 20000,
        question_of("type=RECEIVE component_type:RouteOnContent", LAHAR_COUNT_ONLY, 0, true), RUNS,
        false);
    measure_one(bench, "count of filename:*suffix", 150000,
                question_of(texts->suffix, LAHAR_COUNT_ONLY, 0, true), RUNS, false);
}

/* What has no target. */
static void measure_others(struct bench *bench)
{
    static const char *const facets[][2] = {{"type=RECEIVE", "filename"},
                                            {"*", "uuid"},
                                            {"*", "size"},
                                            {"component_type:RouteOnContent", "type"}};
    measure_one(bench, "count of RECEIVE without a field", 0,
                question_of("RECEIVE", LAHAR_COUNT_ONLY, 0, true), 11, false);
    struct question latest =
        question_of("component_type:RouteOnContent", LAHAR_COUNT_NONE, 100, true);
    latest.options.order = LAHAR_ORDER_LATEST_TIME;
    measure_one(bench, "latest 100 ids by event time", 0, latest, 11, false);
    for (size_t i = 0; i < sizeof facets / sizeof facets[0]; i++) {
        char name[128];
        struct question question = question_of(facets[i][0], LAHAR_COUNT_EXACT, 0, true);
        question.facet = facets[i][1];
        (void)snprintf(name, sizeof name, "facet %s of %s", facets[i][1], facets[i][0]);
        measure_one(bench, name, 0, question, 5, false);
    }
}

static uint64_t processor_ns(clockid_t clock)
{
    struct timespec used;
    (void)clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

/* One thread and two by turns, over all files. On a machine that does other things too, the
 * processor time tells whether the threads stand in each other's way, and that of the busier one
 * how long two that nothing else disturbs would take. */
static void measure_threads(struct bench *bench)
{
    enum {
        TURNS = 11
    };
    uint64_t times_ns[2][TURNS];
    uint64_t used_ns[2] = {0, 0};
    uint64_t busier_ns = 0;
    uint64_t total = 0;
    struct question question = question_of("filename:/[a-f]{3}9[0-4]/", LAHAR_COUNT_ONLY, 0, true);
    for (size_t i = 0; i < (size_t)2 * TURNS; i++) {
        const uint64_t before_ns = processor_ns(CLOCK_PROCESS_CPUTIME_ID);
        const uint64_t own_before_ns = processor_ns(CLOCK_THREAD_CPUTIME_ID);
        question.options.threads = 1 + (uint32_t)(i % 2);
        times_ns[i % 2][i / 2] = ask(bench, &question, &total);
        const uint64_t all_ns = processor_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
        const uint64_t own_ns = processor_ns(CLOCK_THREAD_CPUTIME_ID) - own_before_ns;
        used_ns[i % 2] += all_ns;
        if (i % 2 == 1) {
            busier_ns += own_ns > all_ns - own_ns ? own_ns : all_ns - own_ns;
        }
    }
    /* Of few files the last ones leave a thread without work. */
    print_figure(bench, "two threads against one, scan of every shard",
                 (double)median_of(times_ns[0], TURNS) / (double)median_of(times_ns[1], TURNS), "x",
                 bench->file_count < SHARDS_AT_LEAST ? 0 : 1.7, true, total);
    print_figure(bench, "  processor time, two threads against one",
                 (double)used_ns[1] / (double)used_ns[0], "x", 0, false, total);
    print_figure(bench, "  one thread against the busier of two",
                 (double)used_ns[0] / (double)busier_ns, "x", 0, true, total);
}

static int run_w1(const char *directory, uint64_t event_count)
{
    static struct texts texts;
    struct bench bench = {.directory = directory, .event_count = event_count};
    lahar_stat stat = {.struct_size = sizeof stat};
    lahar_error error = {.status = LAHAR_OK};
    if (access(directory, F_OK) != 0) {
        make_store(&bench);
    }
    open_store(&bench, true);
    if (lahar_stat_get(bench.store, &stat, &error) != LAHAR_OK) {
        fail("stat", &error);
    }
    bench.event_count = stat.event_count;
    bench.file_count = stat.event_file_count;
    printf("W1, %" PRIu64 " events in %u files\n", stat.event_count, stat.event_file_count);
    start_maker(&bench, 0);
    choose(&bench, &texts);
    measure_look_ups(&bench, &texts);
    measure_common(&bench, &texts);
    measure_threads(&bench);
    measure_others(&bench);
    load_event_maker_deinit(&bench.maker);
    close_store(&bench);
    printf("%u targets not met\n", bench.missed);
    return bench.missed == 0 ? 0 : 1;
}

static int run_join(const char *directory)
{
    enum {
        PAUSE_MS = 100,
        QUIET_MS = 15000 /* longer than the longest join takes */
    };
    struct bench bench = {.directory = directory, .event_count = UINT64_MAX};
    lahar_error error = {.status = LAHAR_OK};
    const uint64_t start_ns = clock_ns();
    uint64_t changed_ns = start_ns;
    uint32_t file_count = 0;
    open_store(&bench, false);
    while (clock_ns() - changed_ns < QUIET_MS * UINT64_C(1000000)) {
        const struct timespec pause = {0, PAUSE_MS * 1000000L};
        lahar_stat stat = {.struct_size = sizeof stat};
        if (lahar_stat_get(bench.store, &stat, &error) != LAHAR_OK) {
            fail("stat", &error);
        }
        if (stat.event_file_count != file_count) {
            file_count = stat.event_file_count;
            changed_ns = clock_ns();
        }
        (void)nanosleep(&pause, NULL);
    }
    close_store(&bench);
    printf("%u files after %.1f s\n", file_count, (double)(changed_ns - start_ns) / 1e9);
    return 0;
}

static int run_count(const char *directory, size_t runs, char **expressions, int count)
{
    struct bench bench = {.directory = directory, .event_count = UINT64_MAX};
    uint64_t times_ns[1001];
    open_store(&bench, true);
    for (int i = 0; i < count; i++) {
        const struct question question = question_of(expressions[i], LAHAR_COUNT_ONLY, 0, true);
        uint64_t total = 0;
        for (size_t j = 0; j < runs && j < sizeof times_ns / sizeof times_ns[0]; j++) {
            times_ns[j] = ask(&bench, &question, &total);
        }
        printf("{\"total\": %" PRIu64 ", \"median_us\": %.1f}\n", total,
               (double)median_of(times_ns, runs) / 1e3);
    }
    close_store(&bench);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "w1") == 0) {
        return run_w1(argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)EVENTS_DEFAULT);
    }
    if (argc == 3 && strcmp(argv[1], "join") == 0) {
        return run_join(argv[2]);
    }
    const size_t runs = argc >= 5 ? strtoul(argv[3], NULL, 10) : 0;
    if (argc < 5 || strcmp(argv[1], "count") != 0 || runs == 0 || runs > 1001) {
        (void)fprintf(stderr, "usage: query_bench w1 DIRECTORY [EVENTS]\n"
                              "       query_bench join DIRECTORY\n"
                              "       query_bench count DIRECTORY RUNS EXPRESSION...\n");
        return 2;
    }
    return run_count(argv[2], runs, argv + 4, argc - 4);
}
