/* What went wrong in other indexes, as tests: docs/search_scenarios.md lists all of them and where
 * each is tested. Every table is asked in memory and again from files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lahar/lahar.h"
#include "scratch.h"

#define SECOND INT64_C(1000000000)

static char directory[SCRATCH_PATH_SIZE];
static lahar_store *store;
static uint32_t stream;
static lahar_batch *batch;

static void setup(void)
{
    static const lahar_field_spec fields[] = {{"host", LAHAR_KEYWORD, false},
                                              {"big", LAHAR_U64, false}};
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "log",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = fields,
                                    .field_count = 2};
    lahar_options options;
    lahar_error error = {0};
    scratch_create(directory);
    lahar_options_init(&options);
    options.backend = LAHAR_BACKEND_PWRITE;
    options.memory_limit_bytes = 64 << 20;
    cr_assert_eq(lahar_store_open(directory, &options, 0, &store, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(lahar_stream_create(store, &spec, &stream, &error), LAHAR_OK);
    cr_assert_eq(lahar_batch_create(store, &batch, &error), LAHAR_OK);
}

static void teardown(void)
{
    lahar_batch_destroy(batch);
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    scratch_remove(directory);
}

TestSuite(scenarios, .init = setup, .fini = teardown);

static lahar_bytes text_of(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

/* An event with a message, a host and the attribute "filename"; NULL leaves one out. */
static void append_at(int64_t time_ns, const char *message, const char *host, const char *filename)
{
    lahar_value values[3];
    lahar_pair pair;
    lahar_event event = {.stream = stream, .time_ns = time_ns, .values = values};
    lahar_error error = {0};
    uint32_t host_field = 0;
    cr_assert_eq(lahar_field_id(store, "host", &host_field, NULL), LAHAR_OK);
    if (message != NULL) {
        values[event.value_count++] = (lahar_value){
            .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = text_of(message)};
    }
    if (host != NULL) {
        values[event.value_count++] =
            (lahar_value){.field = host_field, .type = LAHAR_KEYWORD, .as.bytes = text_of(host)};
    }
    if (filename != NULL) {
        pair = (lahar_pair){text_of("filename"), text_of(filename), false};
        values[event.value_count++] =
            (lahar_value){.field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {&pair, 1}};
    }
    cr_assert_eq(lahar_batch_add(batch, &event, &error), LAHAR_OK, "%s", error.message);
    cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, &error), LAHAR_OK, "%s", error.message);
}

static void append(const char *message, const char *host, const char *filename)
{
    append_at(LAHAR_TIME_OF_ARRIVAL, message, host, filename);
}

static void roll(void)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_rollover(store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s", error.message);
}

static lahar_query_result count(const char *text, const lahar_query_options *given)
{
    lahar_query *query = NULL;
    lahar_query_options options;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    lahar_query_options_init(&options);
    if (given != NULL) {
        options = *given;
    }
    options.count = LAHAR_COUNT_ONLY;
    cr_assert_eq(lahar_query_open(store, text, strlen(text), &options, &query, &error), LAHAR_OK,
                 "%.80s: %s", text, error.message);
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK, "%.80s: %s", text,
                 error.message);
    lahar_query_close(query);
    return result;
}

struct expectation {
    const char *text;
    uint64_t total;
};

/* In memory, and from files. */
static void expect_all(const struct expectation *expectations, size_t size)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < size; i++) {
            const uint64_t total = count(expectations[i].text, NULL).total;
            cr_expect_eq(total, expectations[i].total, "%.80s: %llu, not %llu, %s",
                         expectations[i].text, (unsigned long long)total,
                         (unsigned long long)expectations[i].total,
                         round == 0 ? "in memory" : "from files");
        }
        roll();
    }
}

#define EXPECT_ALL(table) expect_all(table, sizeof(table) / sizeof((table)[0]))

/* name, operator and value, in quotation marks. */
static char *quoted(const char *before, const char *value, size_t size)
{
    char *text = malloc(strlen(before) + size + 3);
    cr_assert_not_null(text);
    (void)sprintf(text, "%s\"%.*s\"", before, (int)size, value);
    return text;
}

/* --- values and terms ----------------------------------------------------------------- */

Test(scenarios, find_a_filename_of_sixty_thousand_characters)
{
    char *name = malloc(60001);
    memset(name, 'n', 60000);
    memcpy(name, "begin", 5);
    memcpy(name + 30000, "middle", 6);
    memcpy(name + 59997, "end", 4);
    append("long", NULL, name);
    append("short", NULL, "begin.txt");
    char *whole = quoted("filename=", name, 60000);
    char *folded = quoted("filename:", name, 60000);
    char *most = quoted("filename=", name, 59999);
    const struct expectation table[] = {{whole, 1},
                                        {folded, 1},
                                        {most, 0},
                                        {"filename:begin*", 2},
                                        {"filename:*end", 1},
                                        {"filename~middle", 1},
                                        {"filename:*", 2},
                                        {"NOT filename:*", 0},
                                        {"long", 1}};
    EXPECT_ALL(table);
    free(whole);
    free(folded);
    free(most);
    free(name);
}

/* Of characters of 1 to 4 bytes, around the length at which the index cuts terms. */
Test(scenarios, find_values_of_any_character_at_any_length)
{
    static const char *const characters[] = {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x94\xa5"};
    enum {
        LENGTHS = 12
    };
    char *queries[4 * LENGTHS * 2];
    size_t query_count = 0;
    struct expectation table[4 * LENGTHS * 2];
    for (size_t c = 0; c < 4; c++) {
        const size_t width = strlen(characters[c]);
        for (size_t i = 0; i < LENGTHS; i++) {
            /* Bytes 249 .. 261, as far as whole characters go. */
            const size_t count_of = (249 + i) / width;
            char value[300];
            size_t size = 0;
            for (size_t j = 0; j < count_of; j++) {
                size += (size_t)sprintf(value + size, "%s", characters[c]);
            }
            size += (size_t)sprintf(value + size, "z%zuc%zu", i, c);
            append("x", value, NULL);
            for (int exact = 0; exact < 2; exact++) {
                char *text = quoted(exact ? "host=" : "host:", value, size);
                queries[query_count] = text;
                table[query_count++] = (struct expectation){text, 1};
            }
        }
    }
    EXPECT_ALL(table);
    for (size_t i = 0; i < query_count; i++) {
        free(queries[i]);
    }
}

Test(scenarios, find_tokens_of_any_length)
{
    static const size_t lengths[] = {39, 40, 41, 100, 101, 254, 255, 256, 257, 300, 5000};
    enum {
        COUNT = sizeof lengths / sizeof lengths[0]
    };
    char *queries[COUNT];
    struct expectation table[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        char *message = malloc(lengths[i] + 32);
        memset(message, 'q', lengths[i]);
        (void)sprintf(message + lengths[i], " number %zu", i);
        append(message, NULL, NULL);
        queries[i] = quoted("message:", message, lengths[i]);
        table[i] = (struct expectation){queries[i], 1};
        free(message);
    }
    EXPECT_ALL(table);
    for (size_t i = 0; i < COUNT; i++) {
        free(queries[i]);
    }
}

Test(scenarios, keep_empty_missing_and_null_apart)
{
    static const struct expectation table[] = {
        {"host=\"\"", 1},     {"host:*", 2},     {"NOT host:*", 2},     {"host!=x", 1},
        {"filename=\"\"", 1}, {"filename:*", 1}, {"NOT filename:*", 3}, {"host:x", 1}};
    uint32_t host = 0;
    append("empty", "", NULL);
    append("given", "x", NULL);
    append("attribute", NULL, "");
    cr_assert_eq(lahar_field_id(store, "host", &host, NULL), LAHAR_OK);
    const lahar_value null = {.field = host, .type = LAHAR_KEYWORD, .is_null = true};
    const lahar_event event = {
        .stream = stream, .time_ns = LAHAR_TIME_OF_ARRIVAL, .values = &null, .value_count = 1};
    cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_OK);
    cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, NULL), LAHAR_OK);
    EXPECT_ALL(table);
}

Test(scenarios, compare_decimals_as_they_are_written)
{
    static const struct expectation table[] = {
        {"filename>12.02 filename<13", 1},
        {"filename<12.04 filename>12", 1},
        {"filename=12.03", 1},
        {"filename:[12.03..12.03]", 1},
        {"filename:[1.0002..1.0002]", 1},
        {"filename<1.00020000001 filename>1.0001", 1},
        {"filename:[123..123]", 0},
        {"filename=00123", 1},
        {"filename>9007199254740992", 1},
        {"filename:[9007199254740993..9007199254740993]", 1}};
    append("a", NULL, "12.03");
    append("b", NULL, "1.0002");
    append("c", NULL, "00123");
    append("d", NULL, "9007199254740993");
    EXPECT_ALL(table);
}

/* --- case and Unicode -------------------------------------------------------------------- */

Test(scenarios, define_wildcards_in_either_case)
{
    static const struct expectation table[] = {
        {"host:VIEW*", 2},    {"host:view*", 2},     {"host=VIEW*", 1},
        {"host=view*", 1},    {"host:*MASTER", 2},   {"host=*Master", 0},
        {"message:VIEW*", 2}, {"message:*aster", 2}, {"view*", 2}};
    append("VIEWmaster is here", "VIEWMASTER", NULL);
    append("the viewMASTER", "viewmaster", NULL);
    EXPECT_ALL(table);
}

Test(scenarios, fold_letters_outside_ascii)
{
    static const struct expectation table[] = {
        /* The final sigma is a sigma; Cyrillic; the dotted I of Turkish stays. */
        {"host:\xce\xa3\xce\x91\xce\xa3", 1},
        {"message:\xcf\x83\xce\xb1\xcf\x83", 1},
        {"host:\xd0\x9c\xd0\x98\xd0\xa0", 1},
        {"host:\xd0\xbc\xd0\xb8\xd1\x80", 1},
        {"host:\"\xc4\xb0stanbul\"", 1},
        {"host:istanbul", 0},
        {"host=\"\xc4\xb0stanbul\"", 1},
        /* Bytes that are not UTF-8 are kept and found. */
        {"host=\"a\\xff\\xfeb\"", 1},
        {"host~\"\\xfe\"", 1},
        {"message:after", 1}};
    append("\xcf\x83\xce\xb1\xcf\x82", "\xcf\x83\xce\xb1\xcf\x82", NULL);
    append("", "\xd0\x9c\xd0\xb8\xd1\x80", NULL);
    append("", "\xc4\xb0stanbul", NULL);
    append("before \xff after",
           "a\xff\xfe"
           "b",
           NULL);
    EXPECT_ALL(table);
}

/* Nothing is normalised. */
Test(scenarios, keep_composed_and_decomposed_letters_apart)
{
    static const struct expectation table[] = {{"filename=\"caf\xc3\xa9.txt\"", 1},
                                               {"filename:\"caf\xc3\xa9.txt\"", 1},
                                               {"filename=\"cafe\xcc\x81.txt\"", 1},
                                               {"filename:\"CAFE\xcc\x81.TXT\"", 1},
                                               {"filename:caf*", 2}};
    append("composed", NULL, "caf\xc3\xa9.txt");
    append("decomposed", NULL, "cafe\xcc\x81.txt");
    EXPECT_ALL(table);
}

Test(scenarios, find_ideographs_beside_letters)
{
    static const struct expectation table[] = {{"message:\xe6\x97\xa5", 2},
                                               {"message:\xe6\x97\xa5\xe6\x9c\xac", 2},
                                               {"message:\xe6\x9c\xac\xe6\x97\xa5", 0},
                                               {"message:error", 1},
                                               {"message~\"r\xe6\x97\xa5\"", 1},
                                               {"\xe6\x9c\xac", 2}};
    append("error\xe6\x97\xa5\xe6\x9c\xac"
           "42",
           NULL, NULL);
    append("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", NULL, NULL);
    EXPECT_ALL(table);
}

Test(scenarios, find_parts_of_names_and_short_needles)
{
    static const struct expectation table[] = {
        {"node", 1},         {"host:node*", 1}, {"host~ode-17", 1},
        {"host:node-17", 0}, {"message~q", 1},  {"message~zq", 1},
        {"message~Z", 1},    {"host~7", 1},     {"message~\"zq z\"", 0}};
    append("zq", "node-17.example", NULL);
    append("other", NULL, NULL);
    EXPECT_ALL(table);
}

/* --- cost: what can be answered by the index reads no event ------------------------------ */

Test(scenarios, read_no_event_where_the_index_knows)
{
    static const char *const texts[] = {
        "message:77ms.",  "message:1.",     "message:1a",       "message~absent",    "message~bsen",
        "absent",         "host:*nothing*", "HOST:web-1",       "host=web-1",        "host:WEB-1",
        "NOT host:web-2", "filename:*zz*",  "filename:/z{3}q/", "host:(web-1 web-2)"};
    for (int i = 0; i < 300; i++) {
        char host[16];
        char message[64];
        char name[32];
        (void)snprintf(host, sizeof host, "web-%d", i % 5);
        (void)snprintf(message, sizeof message, "took 77ms. step 1. of 1a number %d", i);
        (void)snprintf(name, sizeof name, "report-%d.csv", i);
        append(message, host, name);
    }
    roll();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const lahar_query_result result = count(texts[i], NULL);
        cr_expect_eq(result.scanned_events, 0, "%s: %llu events were read", texts[i],
                     (unsigned long long)result.scanned_events);
    }
    cr_expect_eq(count("message:77ms.", NULL).total, 300);
    cr_expect_eq(count("host:WEB-1", NULL).total, 60);
    /* However many values a wildcard stands for. */
    cr_expect_eq(count("filename:*report*", NULL).total, 300);
    cr_expect_eq(count("filename:*report*", NULL).scanned_events, 0);
}

Test(scenarios, expand_wildcards_to_any_number_of_values)
{
    static const struct expectation table[] = {
        {"host:*a*", 3000}, {"host:a*", 3000}, {"host=a?1*", 300}, {"NOT host:*a*", 0}};
    for (int i = 0; i < 3000; i++) {
        char host[16];
        (void)snprintf(host, sizeof host, "ab%d%d", i % 10, i);
        append(NULL, host, NULL);
    }
    EXPECT_ALL(table);
}

/* --- time ------------------------------------------------------------------------------- */

Test(scenarios, keep_bounds_of_time_to_the_nanosecond)
{
    static const struct expectation table[] = {
        {"time>=2024-05-17T10:00:00.000000001Z", 2},
        {"time>2024-05-17T10:00:00.000000001Z", 1},
        {"time<2024-05-17T10:00:00.000000001Z", 1},
        {"time<=2024-05-17T10:00:00.000000001Z", 2},
        {"time:2024-05-17T10:00:00.000000001Z", 1},
        {"time:[2024-05-17T10:00:00.000000000Z..2024-05-17T10:00:00.000000001Z)", 1},
        {"time:[2024-05-17T10:00:00.000000000Z..2024-05-17T10:00:00.000000001Z]", 2},
        {"time:@1715940000000000001ns", 1},
        {"time>@1715940000s", 2}};
    for (int64_t i = 0; i < 3; i++) {
        append_at(INT64_C(1715940000) * SECOND + i, "x", NULL, NULL);
    }
    EXPECT_ALL(table);
}

Test(scenarios, count_back_from_the_end_of_the_query)
{
    lahar_query_options options;
    lahar_query_options_init(&options);
    for (int64_t minute = 0; minute < 60; minute++) {
        append_at((INT64_C(1715940000) + minute * 60) * SECOND, "x", NULL, NULL);
    }
    options.to_ns = (INT64_C(1715940000) + 30 * 60) * SECOND;
    for (int round = 0; round < 2; round++) {
        cr_expect_eq(count("last:5m", &options).total, 5);
        cr_expect_eq(count("time>=now-10m", &options).total, 10);
        cr_expect_eq(count("last:5m", NULL).total, 0);
        roll();
    }
}

Test(scenarios, pass_over_files_though_a_clock_was_wrong)
{
    static const int64_t wrong[] = {0, INT64_C(4102444800) * SECOND};
    for (int64_t i = 0; i < 200; i++) {
        append_at((INT64_C(1715940000) + i) * SECOND, "x", NULL, NULL);
    }
    for (size_t i = 0; i < 2; i++) {
        append_at(wrong[i], "x", NULL, NULL);
    }
    roll();
    cr_expect_eq(count("time:2019-03", NULL).shards_pruned, 1);
    cr_expect_eq(count("time:[2050-01-01..2060-01-01)", NULL).shards_pruned, 1);
    cr_expect_eq(count("time:1970-01-01", NULL).total, 1);
    cr_expect_eq(count("time:[2099-12-31..2100-01-02)", NULL).total, 1);
    cr_expect_eq(count("time:2024-05-17", NULL).total, 200);
    cr_expect_eq(count("time>=2024-05-17", NULL).total, 201);
}

/* --- pages ------------------------------------------------------------------------------- */

Test(scenarios, give_every_event_once_though_all_have_one_time)
{
    enum {
        EVENTS = 10000
    };
    static bool seen[EVENTS + 1];
    for (int i = 0; i < EVENTS; i++) {
        const lahar_value value = {
            .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = text_of("x")};
        const lahar_event event = {
            .stream = stream, .time_ns = 12345, .values = &value, .value_count = 1};
        cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_OK);
        if (i % 100 == 99) {
            cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, NULL), LAHAR_OK);
        }
        if (i == EVENTS / 3 || i == EVENTS / 2) {
            roll();
        }
    }
    for (int order = 0; order < 4; order++) {
        char token[200] = "";
        uint64_t given = 0;
        uint64_t previous = 0;
        memset(seen, 0, sizeof seen);
        for (bool is_more = true; is_more;) {
            lahar_query_options options;
            lahar_query *query = NULL;
            const lahar_event *event = NULL;
            lahar_query_options_init(&options);
            options.order = (lahar_order)order;
            options.limit = 777;
            options.ids_only = true;
            options.count = LAHAR_COUNT_NONE;
            options.resume = token[0] == '\0' ? NULL : token;
            cr_assert_eq(lahar_query_open(store, "x", 1, &options, &query, NULL), LAHAR_OK);
            uint64_t page = 0;
            while (lahar_query_next(query, &event, NULL) == LAHAR_OK) {
                cr_assert_leq(event->id, EVENTS);
                cr_assert_not(seen[event->id]);
                cr_assert(given == 0 ||
                          (order % 2 == 0 ? event->id < previous : event->id > previous));
                seen[event->id] = true;
                previous = event->id;
                page++;
                given++;
            }
            (void)snprintf(token, sizeof token, "%s", lahar_query_resume_token(query));
            lahar_query_close(query);
            is_more = page == 777;
        }
        cr_expect_eq(given, EVENTS, "order %d: %llu events", order, (unsigned long long)given);
    }
}

/* --- retention ---------------------------------------------------------------------------- */

static void append_many(int64_t first_s, int events, const char *host)
{
    for (int i = 0; i < events; i++) {
        append_at((first_s + i) * SECOND, "some words that take room", host, NULL);
    }
    roll();
}

Test(scenarios, let_running_queries_keep_what_retention_drops)
{
    lahar_query *before[2] = {NULL};
    const lahar_event *event = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    const lahar_retention retention = {.struct_size = sizeof retention, .max_bytes = 1};
    append_many(1000, 200, "old");
    append_many(2000, 100, "new");
    for (int i = 0; i < 2; i++) {
        lahar_query_options options;
        lahar_query_options_init(&options);
        options.order = i == 0 ? LAHAR_ORDER_OLDEST : LAHAR_ORDER_LATEST_TIME;
        cr_assert_eq(lahar_query_open(store, "words", 5, &options, &before[i], NULL), LAHAR_OK);
        cr_assert_eq(lahar_query_next(before[i], &event, NULL), LAHAR_OK);
    }
    char token[200];
    (void)snprintf(token, sizeof token, "%s", lahar_query_resume_token(before[0]));
    cr_assert_eq(lahar_retention_set(store, stream, &retention, NULL), LAHAR_OK);
    /* Gone for those who ask now, in totals, facets and histograms alike. */
    cr_assert_eq(count("*", NULL).total, 0);
    append_many(1000, 50, "again");
    cr_assert_eq(lahar_retention_set(store, stream,
                                     &(lahar_retention){.struct_size = sizeof retention}, NULL),
                 LAHAR_OK);
    append_many(1100, 30, "again");
    const uint64_t left = count("words", NULL).total;
    cr_expect_eq(count("host:again", NULL).total, left);
    cr_expect_geq(left, 30);
    lahar_query *now = NULL;
    lahar_facet facet = {.struct_size = sizeof facet};
    const lahar_histogram_bucket *buckets = NULL;
    size_t bucket_count = 0;
    uint64_t bucketed = 0;
    cr_assert_eq(lahar_query_open(store, "*", 1, NULL, &now, NULL), LAHAR_OK);
    cr_assert_eq(lahar_query_facet(now, "host", 0, &facet, NULL), LAHAR_OK);
    cr_assert_eq(facet.value_count, 1);
    cr_expect_eq(facet.values[0].count, left);
    cr_assert_eq(lahar_query_histogram(now, 10 * SECOND, &buckets, &bucket_count, NULL), LAHAR_OK);
    for (size_t i = 0; i < bucket_count; i++) {
        bucketed += buckets[i].count;
    }
    cr_expect_eq(bucketed, left);
    lahar_query_close(now);
    /* Those who asked before have all that there was. */
    for (int i = 0; i < 2; i++) {
        uint64_t given = 1;
        while (lahar_query_next(before[i], &event, NULL) == LAHAR_OK) {
            given++;
        }
        cr_expect_eq(given, 300, "query %d: %llu events", i, (unsigned long long)given);
        cr_assert_eq(lahar_query_result_get(before[i], &result, NULL), LAHAR_OK);
        cr_expect_eq(result.total, 300);
        cr_expect_not(result.is_partial);
        lahar_query_close(before[i]);
    }
    /* A page that is asked for later has what is left of the first page's snapshot: nothing. */
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.order = LAHAR_ORDER_OLDEST;
    options.resume = token;
    lahar_query *later = NULL;
    cr_assert_eq(lahar_query_open(store, "words", 5, &options, &later, NULL), LAHAR_OK);
    cr_expect_eq(lahar_query_next(later, &event, NULL), LAHAR_NOT_FOUND);
    lahar_query_close(later);
}
