/* Queries through the public interface: pages, options, errors, limits, explain. What random
 * queries find is compared in test_query_oracle.c. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/query/match.h"
#include "engine/store/snapshot.h"
#include "io/base/error.h"
#include "lahar/query.h"
#include "lahar/read.h"
#include "random_store.h"
#include "scratch.h"

struct found {
    uint64_t id;
    int64_t time_ns;
};

struct founds {
    struct found *items;
    size_t count;
};

/* --- the oracle ----------------------------------------------------------------- */

/* Every event of the store below end_id that the query matches, in order of id. */
static struct founds evaluate(lahar_store *store, const char *text, size_t size, uint64_t end_id)
{
    const struct lahar_schema_catalog *catalog = lahar_store_catalog(store);
    struct founds founds = {calloc(20000, sizeof(struct found)), 0};
    struct lahar_arena arena;
    struct lahar_query_node *root = NULL;
    struct lahar_matcher matcher;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_scan_options options;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_matcher_init(&matcher, catalog, &lahar_allocator_libc);
    lahar_scan_options_init(&options);
    options.to_id = end_id;
    cr_assert_eq(lahar_query_parse(text, size, &arena, &root, &error), LAHAR_OK);
    struct lahar_io *io = lahar_store_io(store);
    const struct lahar_bind_context context = {
        .catalog = catalog, .arena = &arena, .now_ns = io->ops->realtime_ns(io)};
    cr_assert_eq(lahar_query_bind(root, &context, &error), LAHAR_OK);
    cr_assert_eq(lahar_scan(store, &options, &cursor, &error), LAHAR_OK);
    lahar_status status = LAHAR_OK;
    while ((status = lahar_cursor_next(cursor, &event, &error)) == LAHAR_OK) {
        bool matches = false;
        cr_assert_eq(lahar_match(&matcher, root, event, &matches, &error), LAHAR_OK);
        if (matches) {
            founds.items[founds.count++] = (struct found){event->id, event->time_ns};
        }
    }
    cr_assert_eq(status, LAHAR_NOT_FOUND, "%s", error.message);
    lahar_cursor_close(cursor);
    lahar_matcher_deinit(&matcher);
    lahar_query_unbind(root);
    lahar_arena_deinit(&arena);
    return founds;
}

static int by_id_down(const void *a, const void *b)
{
    const uint64_t x = ((const struct found *)a)->id;
    const uint64_t y = ((const struct found *)b)->id;
    return (x < y) - (x > y);
}

static int by_id_up(const void *a, const void *b)
{
    return -by_id_down(a, b);
}

static int by_time_up(const void *a, const void *b)
{
    const int64_t x = ((const struct found *)a)->time_ns;
    const int64_t y = ((const struct found *)b)->time_ns;
    return x != y ? (x > y) - (x < y) : by_id_up(a, b);
}

static int by_time_down(const void *a, const void *b)
{
    return -by_time_up(a, b);
}

static void sort(struct founds *founds, lahar_order order)
{
    static int (*const compare[])(const void *, const void *) = {by_id_down, by_id_up, by_time_down,
                                                                 by_time_up};
    qsort(founds->items, founds->count, sizeof *founds->items, compare[order]);
}

/* --- running ---------------------------------------------------------------------- */

static void read_all(lahar_query *query, struct founds *founds, const char *text)
{
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_status status = LAHAR_OK;
    while ((status = lahar_query_next(query, &event, &error)) == LAHAR_OK) {
        cr_assert_lt(founds->count, 20000);
        founds->items[founds->count++] = (struct found){event->id, event->time_ns};
    }
    cr_assert_eq(status, LAHAR_NOT_FOUND, "%s: %s", text, error.message);
}

static void expect_same(const struct founds *got, const struct founds *expected, size_t limit,
                        const char *text, const char *what)
{
    const size_t count = limit != 0 && limit < expected->count ? limit : expected->count;
    cr_assert_eq(got->count, count, "%s: %s: %zu events, not %zu", text, what, got->count, count);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(got->items[i].id, expected->items[i].id, "%s: %s: event %zu is %llu, not %llu",
                     text, what, i, (unsigned long long)got->items[i].id,
                     (unsigned long long)expected->items[i].id);
    }
}

static lahar_query_result result_of(lahar_query *query, const char *text)
{
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK, "%s: %s", text,
                 error.message);
    cr_assert_not(result.is_partial);
    cr_assert_eq(result.shards_failed, 0, "%s: %u shards failed", text, result.shards_failed);
    return result;
}

static lahar_query *open_query(lahar_store *store, const char *text,
                               const lahar_query_options *options)
{
    lahar_query *query = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_query_open(store, text, strlen(text), options, &query, &error), LAHAR_OK,
                 "%s: %s", text, error.message);
    return query;
}

static void roll(struct random_store *random)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_rollover(random->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

/* --- tests ------------------------------------------------------------------------- */

Test(query, keeps_its_pages_while_events_are_appended_and_rolled)
{
    char directory[SCRATCH_PATH_SIZE];
    static const char text[] = "level:error OR stream:provenance";
    struct random_store random;
    scratch_create(directory);
    random_store_open(&random, directory, 9);
    random_store_append(&random, 400);
    for (int order = 0; order < 4; order++) {
        struct founds got = {calloc(20000, sizeof(struct found)), 0};
        lahar_query_options options;
        char token[200] = "";
        uint64_t end_id = 0;
        lahar_query_options_init(&options);
        options.order = (lahar_order)order;
        options.limit = 37;
        for (int page = 0;; page++) {
            const size_t before = got.count;
            options.resume = page == 0 ? NULL : token;
            lahar_query *query = open_query(random.store, text, &options);
            read_all(query, &got, text);
            const lahar_query_result result = result_of(query, text);
            end_id = page == 0 ? result.snapshot_id : end_id;
            cr_assert_eq(result.snapshot_id, end_id);
            (void)snprintf(token, sizeof token, "%s", lahar_query_resume_token(query));
            lahar_query_close(query);
            if (got.count == before) {
                break;
            }
            random_store_append(&random, 20);
            if (page % 3 == 1) {
                roll(&random);
            }
        }
        struct founds expected = evaluate(random.store, text, sizeof text - 1, end_id);
        sort(&expected, options.order);
        expect_same(&got, &expected, 0, text, "pages");
        free(expected.items);
        free(got.items);
    }
    random_store_close(&random);
    scratch_remove(directory);
}

Test(query, narrows_by_its_options)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    scratch_create(directory);
    random_store_open(&random, directory, 11);
    random_store_append(&random, 300);
    roll(&random);
    random_store_append(&random, 100);
    static const char same[] =
        "stream=provenance time:[2015-01-06T00:30:00Z..2015-01-06T01:00:00Z) type:SEND";
    struct founds expected = evaluate(random.store, same, sizeof same - 1, 0);
    struct founds got = {calloc(20000, sizeof(struct found)), 0};
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.stream = random.provenance;
    options.from_ns = INT64_C(1420504200) * 1000000000;
    options.to_ns = INT64_C(1420506000) * 1000000000;
    lahar_query *query = open_query(random.store, "type:SEND", &options);
    read_all(query, &got, same);
    sort(&expected, LAHAR_ORDER_NEWEST);
    cr_assert_gt(expected.count, 0);
    expect_same(&got, &expected, 0, same, "options");
    cr_assert_eq(result_of(query, same).total, expected.count);
    cr_expect_eq(result_of(query, same).shards_pruned, 1);
    lahar_query_close(query);
    /* Nothing lies in an empty interval. */
    options.to_ns = options.from_ns;
    query = open_query(random.store, "*", &options);
    cr_expect_eq(result_of(query, "*").total, 0);
    lahar_query_close(query);
    free(got.items);
    free(expected.items);
    random_store_close(&random);
    scratch_remove(directory);
}

Test(query, refuses_tokens_of_other_queries_and_damaged_ones)
{
    char directory[SCRATCH_PATH_SIZE];
    char token[200];
    struct random_store random;
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_error error = {0};
    scratch_create(directory);
    random_store_open(&random, directory, 13);
    random_store_append(&random, 20);
    lahar_query_options_init(&options);
    query = open_query(random.store, "level:*", &options);
    (void)snprintf(token, sizeof token, "%s", lahar_query_resume_token(query));
    lahar_query_close(query);
    options.resume = token;
    cr_expect_eq(lahar_query_open(random.store, "host:*", 6, &options, &query, &error),
                 LAHAR_INVALID);
    cr_expect_null(query);
    options.order = LAHAR_ORDER_OLDEST;
    cr_expect_eq(lahar_query_open(random.store, "level:*", 7, &options, &query, &error),
                 LAHAR_INVALID);
    options.order = LAHAR_ORDER_NEWEST;
    options.resume = "1.zz";
    cr_expect_eq(lahar_query_open(random.store, "level:*", 7, &options, &query, &error),
                 LAHAR_INVALID);
    options.resume = "";
    cr_expect_eq(lahar_query_open(random.store, "level:*", 7, &options, &query, &error),
                 LAHAR_INVALID);
    random_store_close(&random);
    scratch_remove(directory);
}

Test(query, reports_errors_with_their_place_and_stops_when_told)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    lahar_query_options options;
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    scratch_create(directory);
    random_store_open(&random, directory, 15);
    random_store_append(&random, 20);
    cr_expect_eq(lahar_query_open(random.store, "a (b", 4, NULL, &query, &error), LAHAR_INVALID);
    cr_expect_eq(error.offset, 2);
    cr_expect_eq(lahar_query_open(random.store, "big>x", 5, NULL, &query, &error), LAHAR_INVALID);
    cr_expect_eq(error.offset, 4);
    lahar_query_options_init(&options);
    options.stream = 99;
    cr_expect_eq(lahar_query_open(random.store, "*", 1, &options, &query, &error), LAHAR_INVALID);
    query = open_query(random.store, "*", NULL);
    cr_expect_eq(lahar_query_next(query, &event, &error), LAHAR_OK);
    lahar_query_cancel(query);
    cr_expect_eq(lahar_query_next(query, &event, &error), LAHAR_CANCELLED);
    lahar_query_close(query);
    lahar_query_options_init(&options);
    options.deadline_ns = 1;
    query = open_query(random.store, "*", &options);
    cr_expect_eq(lahar_query_next(query, &event, &error), LAHAR_TIMEOUT);
    lahar_query_close(query);
    lahar_query_close(NULL);
    random_store_close(&random);
    scratch_remove(directory);
}

Test(query, fails_when_it_needs_more_memory_than_it_may_have)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    scratch_create(directory);
    random_store_open(&random, directory, 19);
    random_store_append(&random, 2000);
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_ONLY;
    options.memory_limit_bytes = 1000;
    cr_expect_eq(lahar_query_open(random.store, "*", 1, &options, &query, &error), LAHAR_NO_MEMORY);
    cr_expect_str_eq(error.message, "the query needs more than its 1000 bytes of memory");
    lahar_error_clear(&error);
    options.memory_limit_bytes = 20000;
    query = open_query(random.store, "*", &options);
    cr_expect_eq(lahar_query_result_get(query, &result, &error), LAHAR_NO_MEMORY);
    cr_expect_str_eq(error.message, "the query needs more than its 20000 bytes of memory");
    lahar_query_close(query);
    options.memory_limit_bytes = 1000000;
    query = open_query(random.store, "*", &options);
    cr_expect_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK);
    cr_expect_eq(result.total, 2000);
    cr_expect_gt(result.memory_peak_bytes, 20000);
    cr_expect_leq(result.memory_peak_bytes, 1000000);
    lahar_query_close(query);
    random_store_close(&random);
    scratch_remove(directory);
}

/* Of events 1 to 50. */
static unsigned long long count_in_file(lahar_store *store, const char *test)
{
    char text[64];
    lahar_query_options options;
    lahar_query_result result = {.struct_size = sizeof result};
    (void)snprintf(text, sizeof text, "id<51 %s", test);
    lahar_query_options_init(&options);
    options.count = LAHAR_COUNT_ONLY;
    lahar_query *query = open_query(store, text, &options);
    cr_assert_eq(lahar_query_result_get(query, &result, NULL), LAHAR_OK);
    lahar_query_close(query);
    return result.total;
}

static void expect_count(const char *text, const char *clause, unsigned long long count)
{
    char line[128];
    (void)snprintf(line, sizeof line, "%s, %llu of ", clause, count);
    cr_expect_not_null(strstr(text, line), "%s in %s", line, text);
}

/* In orders of time a query holds what it is going to show; many of them together, too much. */
Test(query, shares_its_memory_with_all_others)
{
    enum {
        QUERIES = 400
    };
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    lahar_query *queries[QUERIES] = {NULL};
    lahar_query_options options;
    lahar_stat stat = {.struct_size = sizeof stat};
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_status status = LAHAR_OK;
    uint32_t count = 0;
    scratch_create(directory);
    random_store_open(&random, directory, 20); /* 64 MiB, of which queries may hold 16 */
    random_store_append(&random, 3000);
    lahar_query_options_init(&options);
    options.order = LAHAR_ORDER_LATEST_TIME;
    while (count < QUERIES && status == LAHAR_OK) {
        queries[count] = open_query(random.store, "*", &options);
        status = lahar_query_next(queries[count], &event, &error);
        count += status == LAHAR_OK;
    }
    cr_assert_eq(status, LAHAR_NO_MEMORY, "%u queries", count);
    cr_assert_str_eq(error.message,
                     "the open queries need more than their 16777216 bytes of memory");
    cr_assert_geq(count, 50);
    cr_assert_eq(lahar_stat_get(random.store, &stat, &error), LAHAR_OK);
    cr_assert_leq(stat.query_bytes, 16 << 20);
    cr_assert_gt(stat.query_bytes, 8 << 20);
    /* What some let go of, another may have, even one that needs more than each of them. */
    for (uint32_t i = 0; i < count / 2; i++) {
        lahar_query_close(queries[i]);
        queries[i] = NULL;
    }
    lahar_error_clear(&error);
    cr_assert_eq(lahar_query_next(queries[count], &event, &error), LAHAR_OK, "%s", error.message);
    for (uint32_t i = 0; i <= count; i++) {
        lahar_query_close(queries[i]);
    }
    cr_assert_eq(lahar_stat_get(random.store, &stat, &error), LAHAR_OK);
    cr_assert_eq(stat.query_bytes, 0);
    random_store_close(&random);
    scratch_remove(directory);
}

Test(query, explains_how_it_answers)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    scratch_create(directory);
    random_store_open(&random, directory, 17);
    random_store_append(&random, 50);
    roll(&random);
    random_store_append(&random, 10);
    lahar_query *query =
        open_query(random.store, "message:error host~web uuid:8f3a* stream:log", NULL);
    const char *text = lahar_query_explain(query);
    cr_expect_not_null(
        strstr(text, "query: message:error AND host~web AND uuid:8f3a* AND stream:log\n"));
    /* The ten that are not indexed may all match. */
    expect_count(text, "  message:error: index (token)",
                 count_in_file(random.store, "message:error") + 10);
    expect_count(text, "  host~web: index (values compared one by one)",
                 count_in_file(random.store, "host~web") + 10);
    cr_expect_not_null(strstr(text, "to be read: 10 events, those of files in 0 blocks\n"));
    cr_expect_not_null(strstr(text, "shards: 2, 1 pruned, 0 failed\n"));
    cr_expect_not_null(strstr(text, "resident events: 10, 10 of them"));
    lahar_query_close(query);
    query = open_query(random.store, "message:\"disk full\" id<51", NULL);
    text = lahar_query_explain(query);
    cr_expect_not_null(strstr(text, "to be read: "));
    cr_expect_null(strstr(text, "to be read: 0 events"));
    cr_expect_not_null(strstr(text, "events, those of files in 1 blocks\n"));
    lahar_query_close(query);
    random_store_close(&random);
    scratch_remove(directory);
}
