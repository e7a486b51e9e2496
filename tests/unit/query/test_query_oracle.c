/* Random queries through the public interface against plain evaluation: hits, order, pages,
 * totals, facets and histograms, over random events in memory, in files, in both, after
 * reopening, in joined files, and with values of a megabyte.
 *
 * Some 2,000 queries are asked each time the tests run; LAHAR_QUERY_ROUNDS asks that many times as
 * many, of other stores. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "oracle.h"
#include "random_query.h"
#include "random_store.h"
#include "scratch.h"

static const char *const facet_names[][3] = {
    {"host", "host", ""},       {"level", "level", ""},
    {"tags", "tags", ""},       {"count", "count", ""},
    {"big", "big", ""},         {"ok", "ok", ""},
    {"uuid", "uuid", ""},       {"parents", "parents", ""},
    {"size", "size", ""},       {"prev.status", "previous_attributes", "status"},
    {"details", "details", ""},
};
enum {
    FACET_COUNT = sizeof facet_names / sizeof facet_names[0]
};

/* One query, and what it must give. */
struct question {
    struct oracle *oracle;
    const char *text;
    const uint64_t *set;
    lahar_order order;
    uint32_t expected[ORACLE_EVENTS_MAX]; /* indexes of events, in order */
    uint32_t expected_count;
    uint64_t *state;
};

static lahar_query *open_query(const struct question *question, const lahar_query_options *options)
{
    lahar_query *query = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_query_open(question->oracle->store, question->text, strlen(question->text),
                                  options, &query, &error),
                 LAHAR_OK, "%s: %s", question->text, error.message);
    return query;
}

/* Mostly one, since starting a thread takes longer than most of these queries. */
static uint32_t some_threads(const struct question *question)
{
    const uint32_t choice = random_pick(question->state, 12);
    return choice < 10 ? 1 : choice - 8;
}

/* Reads events, the first of which is expected at position begin; returns the position behind the
 * last. */
static uint32_t read_from(const struct question *question, lahar_query *query, uint32_t begin,
                          const char *what)
{
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_status status = LAHAR_OK;
    uint32_t at = begin;
    while ((status = lahar_query_next(query, &event, &error)) == LAHAR_OK) {
        cr_assert_lt(at, question->expected_count, "%s: %s: more than %u events", question->text,
                     what, question->expected_count);
        const lahar_event *expected = &question->oracle->events[question->expected[at]];
        cr_assert_eq(event->id, expected->id, "%s: %s: event %u is %llu, not %llu", question->text,
                     what, at, (unsigned long long)event->id, (unsigned long long)expected->id);
        cr_assert_eq(event->time_ns, expected->time_ns);
        at++;
    }
    cr_assert_eq(status, LAHAR_NOT_FOUND, "%s: %s", question->text, error.message);
    return at;
}

static lahar_query_result result_of(const struct question *question, lahar_query *query)
{
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK, "%s: %s", question->text,
                 error.message);
    cr_assert_not(result.is_partial);
    cr_assert_eq(result.shards_failed, 0, "%s: %u shards failed", question->text,
                 result.shards_failed);
    return result;
}

static void check_all(const struct question *question)
{
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.order = question->order;
    options.threads = some_threads(question);
    lahar_query *query = open_query(question, &options);
    cr_assert_eq(read_from(question, query, 0, "all"), question->expected_count,
                 "%s: too few events", question->text);
    const lahar_query_result result = result_of(question, query);
    cr_assert_eq(result.total, question->expected_count, "%s: total %llu, not %u", question->text,
                 (unsigned long long)result.total, question->expected_count);
    cr_assert_eq(result.relation, LAHAR_RELATION_EXACT);
    lahar_query_close(query);
}

static void check_limit(const struct question *question)
{
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.order = question->order;
    options.limit = 1 + random_pick(question->state, 20);
    options.threads = some_threads(question);
    lahar_query *query = open_query(question, &options);
    const uint32_t count = options.limit < question->expected_count ? (uint32_t)options.limit
                                                                    : question->expected_count;
    cr_assert_eq(read_from(question, query, 0, "limited"), count, "%s: limited", question->text);
    cr_assert_eq(result_of(question, query).total, question->expected_count, "%s: limited total",
                 question->text);
    lahar_query_close(query);
}

static void check_pages(const struct question *question)
{
    lahar_query_options options;
    char token[200] = "";
    uint32_t at = 0;
    lahar_query_options_init(&options);
    options.order = question->order;
    options.limit = 1 + random_pick(question->state, question->expected_count / 3 + 5);
    options.count = LAHAR_COUNT_NONE;
    for (;;) {
        options.resume = token[0] == '\0' ? NULL : token;
        lahar_query *query = open_query(question, &options);
        const uint32_t end = read_from(question, query, at, "paged");
        (void)snprintf(token, sizeof token, "%s", lahar_query_resume_token(query));
        lahar_query_close(query);
        if (end - at < options.limit) {
            cr_assert_eq(end, question->expected_count, "%s: %u events by pages, not %u",
                         question->text, end, question->expected_count);
            return;
        }
        at = end;
    }
}

static void check_counts(const struct question *question)
{
    const lahar_event *event = NULL;
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_ONLY;
    options.threads = some_threads(question);
    lahar_query *query = open_query(question, &options);
    cr_assert_eq(lahar_query_next(query, &event, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(result_of(question, query).total, question->expected_count, "%s: counted only",
                 question->text);
    cr_assert_eq(lahar_query_progress(query), 100);
    lahar_query_close(query);

    options.count = LAHAR_COUNT_AT_LEAST;
    options.count_limit = question->expected_count / 2;
    options.limit = 1;
    query = open_query(question, &options);
    const lahar_query_result result = result_of(question, query);
    cr_assert_geq(result.total, options.count_limit);
    cr_assert_leq(result.total, question->expected_count);
    cr_assert(result.relation == LAHAR_RELATION_AT_LEAST ||
              result.total == question->expected_count);
    lahar_query_close(query);
}

static void check_facet(const struct question *question, uint32_t index)
{
    struct oracle_count *counts = NULL;
    lahar_facet facet = {.struct_size = sizeof facet};
    lahar_error error = {0};
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.threads = some_threads(question);
    const size_t limit = random_pick(question->state, 2) == 0 ? 0 : 1 + index;
    lahar_query *query = open_query(question, &options);
    const char *name = question->oracle->facets[index].name;
    cr_assert_eq(lahar_query_facet(query, name, limit, &facet, &error), LAHAR_OK, "%s by %s: %s",
                 question->text, name, error.message);
    const uint32_t count = oracle_count(question->oracle, index, question->set, &counts);
    cr_assert_eq(facet.event_count, question->expected_count, "%s by %s", question->text, name);
    cr_assert_eq(facet.distinct_count, count, "%s by %s: %llu values, not %u", question->text, name,
                 (unsigned long long)facet.distinct_count, count);
    cr_assert_eq(facet.value_count, limit == 0 || limit > count ? count : limit);
    for (size_t i = 0; i < facet.value_count; i++) {
        cr_assert_eq(facet.values[i].count, counts[i].count, "%s by %s: value %zu", question->text,
                     name, i);
        cr_assert_eq(facet.values[i].value.size, counts[i].value.size, "%s by %s: value %zu",
                     question->text, name, i);
        cr_assert(counts[i].value.size == 0 ||
                  memcmp(facet.values[i].value.data, counts[i].value.data, counts[i].value.size) ==
                      0);
    }
    free(counts);
    lahar_query_close(query);
}

static void check_histogram(const struct question *question)
{
    static const int64_t widths[] = {INT64_C(3600000000000), INT64_C(7000000001),
                                     INT64_C(86400000000000) * 365};
    const int64_t width_ns = widths[random_pick(question->state, 3)];
    const lahar_histogram_bucket *buckets = NULL;
    size_t count = 0;
    lahar_error error = {0};
    lahar_query *query = open_query(question, NULL);
    cr_assert_eq(lahar_query_histogram(query, width_ns, &buckets, &count, &error), LAHAR_OK,
                 "%s: %s", question->text, error.message);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t expected = 0;
        for (uint32_t j = 0; j < question->expected_count; j++) {
            const int64_t time_ns = question->oracle->events[question->expected[j]].time_ns;
            /* Ends of buckets may lie beyond the last time there is. */
            expected += time_ns >= buckets[i].start_ns &&
                        (uint64_t)time_ns - (uint64_t)buckets[i].start_ns < (uint64_t)width_ns;
        }
        cr_assert_eq(buckets[i].count, expected, "%s: bucket %zu has %llu, not %llu",
                     question->text, i, (unsigned long long)buckets[i].count,
                     (unsigned long long)expected);
        cr_assert(i == 0 || buckets[i].start_ns > buckets[i - 1].start_ns);
        cr_assert_gt(buckets[i].count, 0);
        total += expected;
    }
    cr_assert_eq(total, question->expected_count, "%s: the buckets hold %llu events, not %u",
                 question->text, (unsigned long long)total, question->expected_count);
    lahar_query_close(query);
}

static void check_queries(struct random_store *random, uint32_t count)
{
    static struct oracle oracle;
    static struct question question;
    struct lahar_buffer text;
    uint64_t set[RANDOM_SET_WORDS];
    lahar_buffer_init(&text, &lahar_allocator_libc);
    oracle_open(&oracle, random->store, 0);
    for (uint32_t i = 0; i < FACET_COUNT; i++) {
        oracle_add_facet(&oracle, facet_names[i][0], facet_names[i][1], facet_names[i][2]);
    }
    for (uint32_t i = 0; i < count; i++) {
        lahar_buffer_clear(&text);
        random_query(&text, &random->state, (int)(i % 4), &oracle.random, set);
        lahar_buffer_put_u8(&text, '\0');
        question = (struct question){.oracle = &oracle,
                                     .text = (const char *)text.data,
                                     .set = set,
                                     .order = (lahar_order)random_pick(&random->state, 4),
                                     .state = &random->state};
        question.expected_count = oracle_order(&oracle, set, question.order, question.expected);
        check_all(&question);
        check_limit(&question);
        check_pages(&question);
        check_counts(&question);
        check_facet(&question, i % FACET_COUNT);
        check_histogram(&question);
    }
    oracle_close(&oracle);
    lahar_buffer_deinit(&text);
}

static void roll(struct random_store *random)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_rollover(random->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

static uint64_t round_count(void)
{
    const char *text = getenv("LAHAR_QUERY_ROUNDS");
    return text == NULL ? 1 : strtoull(text, NULL, 10);
}

/* --- tests ------------------------------------------------------------------------- */

Test(query_oracle, agrees_in_memory)
{
    for (uint64_t round = 0; round < round_count(); round++) {
        char directory[SCRATCH_PATH_SIZE];
        struct random_store random;
        scratch_create(directory);
        random_store_open(&random, directory, round * 100 + 1);
        random_store_append(&random, 300);
        check_queries(&random, 482);
        random_store_close(&random);
        scratch_remove(directory);
    }
}

Test(query_oracle, agrees_in_files)
{
    for (uint64_t seed = 2; seed < 2 + 2 * round_count(); seed++) {
        char directory[SCRATCH_PATH_SIZE];
        struct random_store random;
        scratch_create(directory);
        random_store_open(&random, directory, seed);
        for (int i = 0; i < 3; i++) {
            random_store_append(&random, 120);
            roll(&random);
        }
        check_queries(&random, 380);
        random_store_close(&random);
        scratch_remove(directory);
    }
}

Test(query_oracle, agrees_in_files_and_memory_and_after_reopening)
{
    for (uint64_t round = 0; round < round_count(); round++) {
        char directory[SCRATCH_PATH_SIZE];
        struct random_store random;
        scratch_create(directory);
        random_store_open(&random, directory, round * 100 + 5);
        random_store_append(&random, 200);
        roll(&random);
        random_store_append(&random, 150);
        check_queries(&random, 200);
        random_store_close(&random);
        random_store_open(&random, directory, round * 100 + 7);
        check_queries(&random, 150);
        random_store_append(&random, 60);
        check_queries(&random, 200);
        random_store_close(&random);
        scratch_remove(directory);
    }
}

static uint32_t file_count(lahar_store *store)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(store, &stat, NULL), LAHAR_OK);
    return stat.event_file_count;
}

/* Small files are joined and their shards merged in the background. */
Test(query_oracle, agrees_on_joined_files)
{
    for (uint64_t round = 0; round < round_count(); round++) {
        char directory[SCRATCH_PATH_SIZE];
        struct random_store random;
        scratch_create(directory);
        random_store_open(&random, directory, round * 100 + 11);
        for (int i = 0; i < 6; i++) {
            random_store_append(&random, 50);
            roll(&random);
        }
        for (int i = 0; i < 2000 && file_count(random.store) > 8; i++) {
            (void)usleep(5000);
        }
        cr_assert_leq(file_count(random.store), 8, "nothing was joined");
        check_queries(&random, 200);
        random_store_close(&random);
        scratch_remove(directory);
    }
}

Test(query_oracle, agrees_on_values_of_a_megabyte)
{
    /* Each of these queries takes as long as twenty others. */
    for (uint64_t round = 0; round < round_count(); round += 5) {
        char directory[SCRATCH_PATH_SIZE];
        struct random_store random;
        scratch_create(directory);
        random_store_open(&random, directory, round * 100 + 9);
        random_store_append(&random, 60);
        random_store_append_giants(&random);
        if (round % 10 == 0) {
            roll(&random);
        }
        random_store_append(&random, 40);
        check_queries(&random, 40);
        random_store_close(&random);
        scratch_remove(directory);
    }
}
