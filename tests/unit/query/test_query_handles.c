/* Handles of queries: their list, their limit, what expires, what is stopped. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "random_store.h"
#include "scratch.h"

static char directory[SCRATCH_PATH_SIZE];
static struct random_store random_store;

static void setup(void)
{
    scratch_create(directory);
    random_store_open(&random_store, directory, 21);
}

static void teardown(void)
{
    random_store_close(&random_store);
    scratch_remove(directory);
}

TestSuite(query_handles, .init = setup, .fini = teardown);

static lahar_query *open_query(const char *text, const lahar_query_options *options)
{
    lahar_query *query = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_query_open(random_store.store, text, strlen(text), options, &query, &error),
                 LAHAR_OK, "%s: %s", text, error.message);
    return query;
}

static void roll(void)
{
    cr_assert_eq(lahar_rollover(random_store.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

Test(query_handles, are_listed_with_what_they_do)
{
    lahar_query_info infos[4];
    lahar_stat stat = {.struct_size = sizeof stat};
    const lahar_event *event = NULL;
    random_store_append(&random_store, 50);
    const int64_t before_ns = (int64_t)time(NULL) * 1000000000;
    cr_assert_eq(lahar_query_list(random_store.store, infos, 4), 0);
    lahar_query *first = open_query("level:error", NULL);
    lahar_query *second = open_query("*", NULL);
    cr_assert_neq(lahar_query_id(first), lahar_query_id(second));
    while (lahar_query_next(second, &event, NULL) == LAHAR_OK) {
    }
    cr_assert_eq(lahar_query_list(random_store.store, infos, 4), 2);
    cr_expect_eq(infos[0].id, lahar_query_id(first));
    cr_expect_eq(infos[1].id, lahar_query_id(second));
    cr_expect_str_eq(infos[0].expression, "level:error");
    cr_expect_str_eq(infos[1].expression, "*");
    cr_expect_geq(infos[0].submitted_ns, before_ns);
    cr_expect_leq(infos[0].submitted_ns, infos[1].submitted_ns);
    cr_expect_eq(infos[0].percent, 0);
    cr_expect_eq(infos[1].percent, 100);
    cr_expect_not(infos[0].is_busy);
    cr_expect_not(infos[0].is_expired);
    cr_expect_eq(infos[0].expires_in_ns, LAHAR_WAIT_FOREVER);
    cr_expect_gt(infos[0].memory_bytes, 0);
    cr_expect_eq(infos[0].error.status, LAHAR_OK);
    cr_assert_eq(lahar_stat_get(random_store.store, &stat, NULL), LAHAR_OK);
    cr_expect_eq(stat.open_queries, 2);
    /* More than fit are counted. */
    cr_expect_eq(lahar_query_list(random_store.store, infos, 1), 2);
    const uint64_t id = lahar_query_id(first);
    lahar_query_close(first);
    cr_assert_eq(lahar_query_list(random_store.store, infos, 4), 1);
    cr_expect_eq(infos[0].id, lahar_query_id(second));
    cr_expect_eq(lahar_query_cancel_id(random_store.store, id), LAHAR_NOT_FOUND);
    lahar_query_close(second);
    cr_assert_eq(lahar_query_list(random_store.store, infos, 4), 0);
}

Test(query_handles, are_cancelled_by_id_and_keep_their_error)
{
    lahar_query_info info;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    random_store_append(&random_store, 20);
    lahar_query *query = open_query("*", NULL);
    cr_assert_eq(lahar_query_next(query, &event, NULL), LAHAR_OK);
    cr_assert_eq(lahar_query_cancel_id(random_store.store, lahar_query_id(query)), LAHAR_OK);
    cr_assert_eq(lahar_query_next(query, &event, &error), LAHAR_CANCELLED);
    cr_assert_eq(lahar_query_list(random_store.store, &info, 1), 1);
    cr_expect_eq(info.error.status, LAHAR_CANCELLED);
    cr_expect_str_eq(info.error.message, error.message);
    lahar_query_close(query);
}

Test(query_handles, let_go_of_everything_when_they_expire)
{
    lahar_query_options options;
    lahar_query_info info;
    lahar_stat stat = {.struct_size = sizeof stat};
    const lahar_event *event = NULL;
    lahar_facet facet = {.struct_size = sizeof facet};
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    char token[200];
    random_store_append(&random_store, 100);
    lahar_query_options_init(&options);
    options.expire_ns = 400000000;
    lahar_query *query = open_query("*", &options);
    lahar_query *lasting = open_query("*", NULL);
    for (int i = 0; i < 8; i++) {
        /* Used often enough, it stays. */
        (void)usleep(5000);
        cr_assert_eq(lahar_query_next(query, &event, &error), LAHAR_OK, "%s", error.message);
    }
    cr_assert_eq(lahar_query_list(random_store.store, &info, 1), 2);
    cr_expect_leq(info.expires_in_ns, options.expire_ns);
    (void)usleep(450000);
    cr_assert_eq(lahar_query_list(random_store.store, &info, 1), 2);
    cr_expect(info.is_expired);
    cr_expect_leq(info.memory_bytes, 64);
    cr_assert_eq(lahar_query_next(query, &event, &error), LAHAR_CLOSED);
    cr_expect_not_null(strstr(error.message, "expired"), "%s", error.message);
    cr_expect_eq(lahar_query_result_get(query, &result, NULL), LAHAR_CLOSED);
    cr_expect_eq(lahar_query_facet(query, "level", 0, &facet, NULL), LAHAR_CLOSED);
    (void)lahar_query_explain(query);
    cr_assert_eq(lahar_stat_get(random_store.store, &stat, NULL), LAHAR_OK);
    cr_expect_eq(stat.expired_queries, 1);
    cr_expect_eq(stat.open_queries, 1);
    cr_assert_eq(lahar_query_next(lasting, &event, NULL), LAHAR_OK);
    lahar_query_close(lasting);
    /* The place is known still: another query goes on there. */
    (void)snprintf(token, sizeof token, "%s", lahar_query_resume_token(query));
    lahar_query_close(query);
    options.resume = token;
    query = open_query("*", &options);
    cr_assert_eq(lahar_query_next(query, &event, NULL), LAHAR_OK);
    cr_expect_eq(event->id, 92);
    lahar_query_close(query);
}

Test(query_handles, give_ids_without_reading_events)
{
    random_store_append(&random_store, 100);
    roll();
    random_store_append(&random_store, 40);
    for (int order = 0; order < 4; order++) {
        const lahar_event *event = NULL;
        const lahar_event *bare = NULL;
        lahar_query_result result = {.struct_size = sizeof result};
        lahar_query_options options;
        lahar_query_options_init(&options);
        options.order = (lahar_order)order;
        lahar_query *whole = open_query("level:error", &options);
        options.ids_only = true;
        lahar_query *ids = open_query("level:error", &options);
        while (lahar_query_next(whole, &event, NULL) == LAHAR_OK) {
            cr_assert_eq(lahar_query_next(ids, &bare, NULL), LAHAR_OK);
            cr_expect_eq(bare->id, event->id);
            cr_expect_eq(bare->stream, event->stream);
            cr_expect_eq(bare->is_durable, event->is_durable);
            cr_expect_eq(bare->value_count, 0);
            cr_expect(order < 2 || bare->time_ns == event->time_ns);
        }
        cr_expect_eq(lahar_query_next(ids, &bare, NULL), LAHAR_NOT_FOUND);
        cr_assert_eq(lahar_query_result_get(ids, &result, NULL), LAHAR_OK);
        /* Those in memory alone are looked at, and those of them that are indexed are not. */
        cr_expect_leq(result.scanned_events, 40);
        lahar_query_close(whole);
        lahar_query_close(ids);
    }
}

/* --- stopping --------------------------------------------------------------------- */

/* Values of a megabyte, which take seconds to look through. */
static void append_much(void)
{
    for (int i = 0; i < 3; i++) {
        random_store_append_giants(&random_store);
    }
    roll();
    random_store_append(&random_store, 200);
}

static lahar_status take_all(lahar_query *query, lahar_error *error)
{
    const lahar_event *event = NULL;
    lahar_status status = LAHAR_OK;
    while ((status = lahar_query_next(query, &event, error)) == LAHAR_OK) {
    }
    return status;
}

static const char slow_expression[] = "message:/(e.*r){3}.*[q-t]+z{2}qq/ OR host:/(e.*r){3}zqz/ "
                                      "OR status:/(e.*r){3}zqz/";

static void expect_stopped(lahar_status status, lahar_status wanted, uint64_t begin_ns,
                           uint64_t most_ns, const char *what)
{
    const uint64_t took_ns = clock_ns() - begin_ns;
    cr_expect_eq(status, wanted, "%s: status %d", what, (int)status);
    cr_expect_lt(took_ns, most_ns, "%s: took %llu ms", what, (unsigned long long)took_ns / 1000000);
}

Test(query_handles, stop_at_their_deadline_wherever_they_are)
{
    lahar_query_options options;
    lahar_error error = {0};
    append_much();
    for (int order = 0; order < 4; order++) {
        lahar_query_options_init(&options);
        options.order = (lahar_order)order;
        options.threads = 1 + (uint32_t)order % 2;
        options.deadline_ns = 1000000;
        lahar_query *query = open_query(slow_expression, &options);
        const uint64_t begin_ns = clock_ns();
        const lahar_status status = take_all(query, &error);
        /* One value may be in work at the deadline, in each thread. */
        expect_stopped(status, LAHAR_TIMEOUT, begin_ns, UINT64_C(8000000000), "events");
        lahar_query_close(query);
    }
    lahar_query_options_init(&options);
    options.deadline_ns = 1000000;
    lahar_query *query = open_query(slow_expression, &options);
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_facet facet = {.struct_size = sizeof facet};
    const lahar_histogram_bucket *buckets = NULL;
    size_t count = 0;
    uint64_t begin_ns = clock_ns();
    expect_stopped(lahar_query_result_get(query, &result, NULL), LAHAR_TIMEOUT, begin_ns,
                   UINT64_C(8000000000), "count");
    cr_expect_neq(result.relation, LAHAR_RELATION_EXACT);
    begin_ns = clock_ns();
    expect_stopped(lahar_query_facet(query, "message", 0, &facet, NULL), LAHAR_TIMEOUT, begin_ns,
                   UINT64_C(8000000000), "facet");
    begin_ns = clock_ns();
    expect_stopped(lahar_query_histogram(query, 1000000000, &buckets, &count, NULL), LAHAR_TIMEOUT,
                   begin_ns, UINT64_C(8000000000), "histogram");
    lahar_query_close(query);
}

struct cancelling {
    lahar_query *query;
    unsigned after_us;
};

static void *cancel_soon(void *argument)
{
    const struct cancelling *cancelling = argument;
    (void)usleep(cancelling->after_us);
    lahar_query_cancel(cancelling->query);
    return NULL;
}

/* A busy machine may run the whole query before the other thread: tried until it does not. */
Test(query_handles, stop_when_they_are_cancelled_in_a_count_or_a_facet)
{
    append_much();
    for (int kind = 0; kind < 2; kind++) {
        lahar_status status = LAHAR_OK;
        for (unsigned attempt = 0; attempt < 100 && status == LAHAR_OK; attempt++) {
            pthread_t thread;
            lahar_query_result result = {.struct_size = sizeof result};
            lahar_facet facet = {.struct_size = sizeof facet};
            struct cancelling cancelling = {open_query(slow_expression, NULL), attempt % 10 * 300};
            cr_assert_eq(pthread_create(&thread, NULL, cancel_soon, &cancelling), 0);
            const uint64_t begin_ns = clock_ns();
            status = kind == 0 ? lahar_query_result_get(cancelling.query, &result, NULL)
                               : lahar_query_facet(cancelling.query, "host", 0, &facet, NULL);
            if (status != LAHAR_OK) {
                expect_stopped(status, LAHAR_CANCELLED, begin_ns, UINT64_C(8000000000), "cancel");
            }
            (void)pthread_join(thread, NULL);
            lahar_query_close(cancelling.query);
        }
        cr_expect_eq(status, LAHAR_CANCELLED);
    }
}

Test(query_limit, refuses_more_queries_than_may_be_open, .init = NULL, .fini = NULL)
{
    char own_directory[SCRATCH_PATH_SIZE];
    lahar_options options;
    lahar_store *store = NULL;
    lahar_query *queries[4] = {NULL};
    lahar_stat stat = {.struct_size = sizeof stat};
    lahar_error error = {0};
    scratch_create(own_directory);
    lahar_options_init(&options);
    options.query_count_max = 3;
    options.backend = LAHAR_BACKEND_PWRITE;
    cr_assert_eq(lahar_store_open(own_directory, &options, 0, &store, &error), LAHAR_OK);
    lahar_query_options asked;
    lahar_query_options_init(&asked);
    asked.expire_ns = 400000000;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lahar_query_open(store, "*", 1, i == 0 ? &asked : NULL, &queries[i], &error),
                     LAHAR_OK);
    }
    cr_assert_eq(lahar_query_open(store, "*", 1, NULL, &queries[3], &error), LAHAR_BUSY);
    cr_assert_null(queries[3]);
    cr_assert_eq(lahar_stat_get(store, &stat, NULL), LAHAR_OK);
    cr_expect_eq(stat.open_queries, 3);
    cr_expect_eq(stat.refused_queries, 1);
    /* One that has expired makes room, as does one that is closed. A wrong one takes none. */
    (void)usleep(450000);
    cr_assert_eq(lahar_query_open(store, "(", 1, NULL, &queries[3], &error), LAHAR_INVALID);
    cr_assert_eq(lahar_query_open(store, "*", 1, NULL, &queries[3], &error), LAHAR_OK);
    lahar_query_close(queries[0]);
    cr_assert_eq(lahar_query_open(store, "*", 1, NULL, &queries[0], &error), LAHAR_BUSY);
    lahar_query_close(queries[1]);
    cr_assert_eq(lahar_query_open(store, "*", 1, NULL, &queries[1], &error), LAHAR_OK);
    lahar_query_close(queries[1]);
    lahar_query_close(queries[2]);
    lahar_query_close(queries[3]);
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(own_directory);
}
