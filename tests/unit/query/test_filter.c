/* Queries made by calls: each clause against the expression that says the same, in text and in what
 * it finds. */
#include <criterion/criterion.h>
#include <string.h>

#include "failing_allocator.h"
#include "lahar/lahar.h"
#include "random_store.h"
#include "scratch.h"

static char directory[SCRATCH_PATH_SIZE];
static struct random_store random_store;
static lahar_filter *filter;

static void setup(void)
{
    scratch_create(directory);
    random_store_open(&random_store, directory, 31);
    random_store_append(&random_store, 150);
    cr_assert_eq(lahar_rollover(random_store.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    random_store_append(&random_store, 100);
    cr_assert_eq(lahar_filter_create(random_store.store, &filter, NULL), LAHAR_OK);
}

static void teardown(void)
{
    lahar_filter_destroy(filter);
    random_store_close(&random_store);
    scratch_remove(directory);
}

TestSuite(filter, .init = setup, .fini = teardown);

static const lahar_clause *test(const char *name, lahar_filter_op op, const char *value)
{
    return lahar_filter_test(filter, name, op, value, strlen(value));
}

static uint64_t take_total(lahar_query *query)
{
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK, "%s", error.message);
    lahar_query_close(query);
    return result.total;
}

/* The clause prints as the expression and finds what the expression finds. */
static void expect_clause(const lahar_clause *clause, const char *expression)
{
    lahar_query *query = NULL;
    lahar_error error = {0};
    const char *text = lahar_filter_text(filter, clause);
    cr_assert_not_null(text, "%s", expression);
    cr_expect_str_eq(text, expression);
    cr_assert_eq(lahar_filter_open(filter, clause, NULL, &query, &error), LAHAR_OK, "%s: %s",
                 expression, error.message);
    const uint64_t total = take_total(query);
    cr_assert_eq(
        lahar_query_open(random_store.store, expression, strlen(expression), NULL, &query, &error),
        LAHAR_OK, "%s: %s", expression, error.message);
    const uint64_t expected = take_total(query);
    cr_expect_eq(total, expected, "%s: %llu, not %llu", expression, (unsigned long long)total,
                 (unsigned long long)expected);
}

Test(filter, says_what_expressions_say)
{
    expect_clause(lahar_filter_all(filter), "*");
    expect_clause(test("level", LAHAR_FILTER_MATCH, "ERROR"), "level:ERROR");
    expect_clause(test("level", LAHAR_FILTER_EQUAL, "error"), "level=error");
    expect_clause(test("level", LAHAR_FILTER_NOT_EQUAL, "error"), "level!=error");
    expect_clause(test("message", LAHAR_FILTER_CONTAINS, "isk f"), "message~\"isk f\"");
    expect_clause(test("message", LAHAR_FILTER_CONTAINS_EXACT, "Time"), "message~=Time");
    expect_clause(test("host", LAHAR_FILTER_LIKE, "WEB-*"), "host:WEB-*");
    expect_clause(test("host", LAHAR_FILTER_LIKE_EXACT, "web-0?"), "host=web-0?");
    expect_clause(test("host", LAHAR_FILTER_LIKE, "*"), "host:*");
    expect_clause(test("host", LAHAR_FILTER_LIKE, "Web"), "host:Web");
    expect_clause(test("host", LAHAR_FILTER_REGEX, "^web-0[12]$"), "host~/^web-0[12]$/");
    expect_clause(test("host", LAHAR_FILTER_REGEX_ANY_CASE, "a/b|WEB"), "host~/a\\/b|WEB/i");
    expect_clause(lahar_filter_present(filter, "attr.status"), "attr.status:*");
    expect_clause(test("my key", LAHAR_FILTER_EQUAL, "Text here"), "\"my key\"=\"Text here\"");
    expect_clause(test("attr.tenant", LAHAR_FILTER_EQUAL, ""), "attr.tenant=\"\"");
    expect_clause(test("uuid", LAHAR_FILTER_LIKE, "8f3a0*"), "uuid:8f3a0*");
    /* Without a name. */
    expect_clause(test(NULL, LAHAR_FILTER_MATCH, "connection timeout"), "\"connection timeout\"");
    expect_clause(test(NULL, LAHAR_FILTER_CONTAINS, "nnec"), "~\"nnec\"");
    expect_clause(test(NULL, LAHAR_FILTER_LIKE, "tex*"), "tex*");
    expect_clause(test(NULL, LAHAR_FILTER_REGEX, "t[ai]m"), "~/t[ai]m/");
}

/* No byte of a value is looked at as part of the language. */
Test(filter, needs_no_quotation)
{
    expect_clause(test("host", LAHAR_FILTER_MATCH, "web-* OR"), "host:\"web-* OR\"");
    expect_clause(test(NULL, LAHAR_FILTER_MATCH, "NOT"), "\"NOT\"");
    expect_clause(test("host", LAHAR_FILTER_EQUAL, "a\"b\\c\n"), "host=\"a\\\"b\\\\c\\n\"");
    expect_clause(lahar_filter_test(filter, "host", LAHAR_FILTER_EQUAL, "a\0b", 3),
                  "host=\"a\\x00b\"");
    expect_clause(test("x y:z", LAHAR_FILTER_EQUAL, "v"), "\"x y:z\"=v");
    /* Patterns may hold blanks, which no expression can: found, not to be read back. */
    lahar_query *query = NULL;
    const lahar_clause *pattern = test("attr.mime.type", LAHAR_FILTER_LIKE, "*xt HE*");
    cr_assert_eq(lahar_filter_open(filter, pattern, NULL, &query, NULL), LAHAR_OK);
    const uint64_t total = take_total(query);
    static const char same[] = "attr.mime.type~\"xt he\"";
    cr_assert_eq(lahar_query_open(random_store.store, same, sizeof same - 1, NULL, &query, NULL),
                 LAHAR_OK);
    cr_expect_eq(total, take_total(query));
    cr_expect_gt(total, 0);
}

Test(filter, takes_ranges_and_times)
{
    expect_clause(
        lahar_filter_between(filter, "count", &(lahar_filter_range){.low = "-3", .high = "5"}),
        "count:[-3..5]");
    expect_clause(lahar_filter_between(
                      filter, "count",
                      &(lahar_filter_range){.low = "-3", .high = "5", .high_is_exclusive = true}),
                  "count:[-3..5)");
    expect_clause(lahar_filter_between(
                      filter, "count",
                      &(lahar_filter_range){.low = "-3", .high = "5", .low_is_exclusive = true}),
                  "count>-3 AND count<=5");
    expect_clause(lahar_filter_between(filter, "size", &(lahar_filter_range){.low = "1KiB"}),
                  "size>=1KiB");
    expect_clause(lahar_filter_between(
                      filter, "time",
                      &(lahar_filter_range){.high = "2015-01-06T02", .high_is_exclusive = true}),
                  "time<2015-01-06T02");
    expect_clause(lahar_filter_times(filter, "time", INT64_C(1420502400000000000),
                                     INT64_C(1420506000000000000)),
                  "time:[@1420502400000000000ns..@1420506000000000000ns)");
    expect_clause(lahar_filter_times(filter, "time", INT64_MIN, -1), "time<@-1ns");
    expect_clause(lahar_filter_times(filter, "time", INT64_MIN + 1, INT64_MAX),
                  "time>=@-9223372036854775807ns");
    expect_clause(lahar_filter_times(filter, "time", INT64_MIN, INT64_MAX), "time:*");
}

Test(filter, joins_clauses_and_shares_them)
{
    const lahar_clause *error = test("level", LAHAR_FILTER_MATCH, "error");
    const lahar_clause *web = test("host", LAHAR_FILTER_LIKE, "web*");
    const lahar_clause *two[] = {error, web};
    const lahar_clause *both = lahar_filter_and(filter, two, 2);
    const lahar_clause *either = lahar_filter_or(filter, two, 2);
    expect_clause(both, "level:error AND host:web*");
    expect_clause(either, "level:error OR host:web*");
    expect_clause(lahar_filter_not(filter, both), "NOT (level:error AND host:web*)");
    const lahar_clause *mixed[] = {both, either, lahar_filter_not(filter, error), both};
    expect_clause(lahar_filter_and(filter, mixed, 4),
                  "level:error AND host:web* AND (level:error OR host:web*) AND NOT level:error "
                  "AND level:error AND host:web*");
    /* What was joined is as it was. */
    expect_clause(error, "level:error");
    expect_clause(either, "level:error OR host:web*");
    expect_clause(lahar_filter_and(filter, two, 1), "level:error");
    expect_clause(lahar_filter_and(filter, NULL, 0), "*");
    expect_clause(lahar_filter_or(filter, NULL, 0), "NOT *");
    /* A long chain does not nest. */
    const lahar_clause *chain = error;
    for (int i = 0; i < 1000; i++) {
        const lahar_clause *next[] = {chain, web};
        chain = lahar_filter_or(filter, next, 2);
    }
    lahar_query *query = NULL;
    cr_assert_eq(lahar_filter_open(filter, chain, NULL, &query, NULL), LAHAR_OK);
    lahar_query *same = NULL;
    cr_assert_eq(lahar_filter_open(filter, either, NULL, &same, NULL), LAHAR_OK);
    cr_expect_eq(take_total(query), take_total(same));
}

Test(filter, tells_the_first_failure)
{
    lahar_query *query = NULL;
    lahar_error error = {0};
    cr_expect_eq(lahar_filter_open(filter, NULL, NULL, &query, &error), LAHAR_INVALID);
    /* A value that the field cannot have is found when the query is opened. */
    const lahar_clause *wrong = test("time", LAHAR_FILTER_MATCH, "soon");
    cr_assert_not_null(wrong);
    cr_expect_eq(lahar_filter_open(filter, wrong, NULL, &query, &error), LAHAR_INVALID);
    cr_expect_null(query);
    cr_expect_null(test(NULL, LAHAR_FILTER_EQUAL, "x"));
    cr_expect_null(lahar_filter_not(filter, NULL));
    cr_expect_null(lahar_filter_between(filter, "count", &(lahar_filter_range){.low = NULL}));
    const lahar_clause *good = test("level", LAHAR_FILTER_MATCH, "error");
    const lahar_clause *with_none[] = {good, NULL};
    cr_expect_null(lahar_filter_and(filter, with_none, 2));
    cr_expect_null(lahar_filter_text(filter, NULL));
    cr_expect_eq(lahar_filter_open(filter, good, NULL, &query, &error), LAHAR_INVALID);
    cr_expect_str_eq(error.message, "this operator needs the name of a field");
}

Test(filter, bounds_depth_and_size)
{
    lahar_query *query = NULL;
    lahar_error error = {0};
    const lahar_clause *clause = test("level", LAHAR_FILTER_MATCH, "error");
    for (int i = 0; i < 200; i++) {
        clause = lahar_filter_not(filter, clause);
    }
    cr_assert_eq(lahar_filter_open(filter, clause, NULL, &query, &error), LAHAR_OK, "%s",
                 error.message);
    lahar_query_close(query);
    clause = lahar_filter_not(filter, clause);
    cr_expect_eq(lahar_filter_open(filter, clause, NULL, &query, &error), LAHAR_INVALID);
    cr_expect_null(lahar_filter_text(filter, clause));
    /* Clauses used twice at each of many levels. */
    clause = test("level", LAHAR_FILTER_MATCH, "error");
    for (int i = 0; i < 60; i++) {
        const lahar_clause *twice[] = {clause, lahar_filter_not(filter, clause)};
        clause =
            i % 2 == 0 ? lahar_filter_or(filter, twice, 2) : lahar_filter_and(filter, twice, 2);
    }
    const lahar_status status = lahar_filter_open(filter, clause, NULL, &query, &error);
    cr_expect(status == LAHAR_TOO_BIG || status == LAHAR_NO_MEMORY, "%d", (int)status);
}
