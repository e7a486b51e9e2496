/* Facets and histograms against counting by hand over the events that a query returns: in memory,
 * in files, in both, by one thread and by several. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/query/tally.h"
#include "failing_allocator.h"
#include "io/base/error.h"
#include "lahar/lahar.h"
#include "random_store.h"
#include "scratch.h"

enum {
    VALUES_MAX = 4096
};

struct counted {
    char *value;
    size_t size;
    uint64_t count;
};

struct oracle {
    struct counted items[VALUES_MAX];
    size_t count;
    uint64_t event_count;
};

static void count_value(struct oracle *oracle, lahar_bytes value)
{
    for (size_t i = 0; i < oracle->count; i++) {
        struct counted *item = &oracle->items[i];
        if (item->size == value.size &&
            (value.size == 0 || memcmp(item->value, value.data, value.size) == 0)) {
            item->count++;
            return;
        }
    }
    cr_assert_lt(oracle->count, VALUES_MAX);
    struct counted *item = &oracle->items[oracle->count++];
    *item = (struct counted){malloc(value.size + 1), value.size, 1};
    if (value.size != 0) {
        memcpy(item->value, value.data, value.size);
    }
}

/* The same value twice in one event counts once. */
static void count_items(struct oracle *oracle, const lahar_bytes *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i; j++) {
            is_new = is_new && (items[i].size != items[j].size ||
                                memcmp(items[i].data, items[j].data, items[i].size) != 0);
        }
        if (is_new) {
            count_value(oracle, items[i]);
        }
    }
}

static lahar_bytes put_uuid(const lahar_uuid *uuid, char *text)
{
    size_t size = 0;
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        size += (size_t)sprintf(text + size, "%s%02x",
                                i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid->bytes[i]);
    }
    return (lahar_bytes){text, size};
}

static void count_event(struct oracle *oracle, const lahar_event *event, uint32_t field,
                        const char *key)
{
    oracle->event_count++;
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        lahar_bytes items[16];
        size_t count = 0;
        char text[16][40];
        if (value->field != field || value->is_null) {
            continue;
        }
        if (value->type == LAHAR_KEYWORD || value->type == LAHAR_TEXT) {
            items[count++] = value->as.bytes;
        } else if (value->type == LAHAR_LIST_KEYWORD) {
            count = value->as.keywords.count;
            memcpy(items, value->as.keywords.items, count * sizeof *items);
        } else if (value->type == LAHAR_I64) {
            items[count++] =
                (lahar_bytes){text[0], (size_t)snprintf(text[0], sizeof text[0], "%lld",
                                                        (long long)value->as.i64)};
        } else if (value->type == LAHAR_U64) {
            items[count++] =
                (lahar_bytes){text[0], (size_t)snprintf(text[0], sizeof text[0], "%llu",
                                                        (unsigned long long)value->as.u64)};
        } else if (value->type == LAHAR_UUID) {
            items[count++] = put_uuid(&value->as.uuid, text[0]);
        } else if (value->type == LAHAR_LIST_UUID) {
            for (; count < value->as.uuids.count && count < 16; count++) {
                items[count] = put_uuid(&value->as.uuids.items[count], text[count]);
            }
        } else if (value->type == LAHAR_MAP) {
            for (size_t j = 0; j < value->as.map.count; j++) {
                const lahar_pair *pair = &value->as.map.items[j];
                if (!pair->is_null && pair->key.size == strlen(key) &&
                    memcmp(pair->key.data, key, pair->key.size) == 0) {
                    items[count++] = pair->value;
                }
            }
        }
        count_items(oracle, items, count);
    }
}

static lahar_query *open_query(lahar_store *store, const char *text, uint32_t threads)
{
    lahar_query *query = NULL;
    lahar_query_options options;
    lahar_error error = {0};
    lahar_query_options_init(&options);
    options.threads = threads;
    cr_assert_eq(lahar_query_open(store, text, strlen(text), &options, &query, &error), LAHAR_OK,
                 "%s: %s", text, error.message);
    return query;
}

static int compare(const void *a, const void *b)
{
    const struct counted *x = a;
    const struct counted *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    const size_t size = x->size < y->size ? x->size : y->size;
    const int order = memcmp(x->value, y->value, size);
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static void check_facet(lahar_store *store, const char *text, const char *name,
                        const char *field_name, const char *key, uint32_t threads)
{
    static struct oracle oracle;
    uint32_t field = 0;
    const lahar_event *event = NULL;
    lahar_facet facet = {.struct_size = sizeof facet};
    lahar_error error = {0};
    memset(&oracle, 0, sizeof oracle);
    cr_assert_eq(lahar_field_id(store, field_name, &field, NULL), LAHAR_OK);
    lahar_query *query = open_query(store, text, threads);
    while (lahar_query_next(query, &event, NULL) == LAHAR_OK) {
        count_event(&oracle, event, field, key);
    }
    qsort(oracle.items, oracle.count, sizeof *oracle.items, compare);
    /* Also in the midst of the results. */
    lahar_query_close(query);
    query = open_query(store, text, threads);
    for (unsigned i = 0; i < threads; i++) {
        (void)!lahar_query_next(query, &event, NULL);
    }
    cr_assert_eq(lahar_query_facet(query, name, 0, &facet, &error), LAHAR_OK, "%s", error.message);
    cr_assert_eq(facet.event_count, oracle.event_count, "%s by %s", text, name);
    cr_assert_eq(facet.distinct_count, oracle.count, "%s by %s: %zu, not %zu", text, name,
                 (size_t)facet.distinct_count, oracle.count);
    for (size_t i = 0; i < oracle.count; i++) {
        cr_assert_eq(facet.values[i].count, oracle.items[i].count);
        cr_assert_eq(facet.values[i].value.size, oracle.items[i].size);
        cr_assert_eq(
            memcmp(facet.values[i].value.data, oracle.items[i].value, oracle.items[i].size), 0);
        free(oracle.items[i].value);
    }
    cr_assert_eq(lahar_query_facet(query, name, 2, &facet, NULL), LAHAR_OK);
    cr_assert_eq(facet.value_count, oracle.count < 2 ? oracle.count : 2);
    lahar_query_close(query);
}

static void check_histogram(lahar_store *store, const char *text, int64_t width_ns,
                            uint32_t threads)
{
    const lahar_event *event = NULL;
    const lahar_histogram_bucket *buckets = NULL;
    size_t count = 0;
    lahar_error error = {0};
    lahar_query *query = open_query(store, text, threads);
    cr_assert_eq(lahar_query_histogram(query, width_ns, &buckets, &count, &error), LAHAR_OK, "%s",
                 error.message);
    uint64_t *counts = calloc(count + 1, sizeof *counts);
    while (lahar_query_next(query, &event, NULL) == LAHAR_OK) {
        size_t i = 0;
        while (i < count &&
               (uint64_t)event->time_ns - (uint64_t)buckets[i].start_ns >= (uint64_t)width_ns) {
            i++;
        }
        cr_assert_lt(i, count);
        cr_assert_geq(event->time_ns, buckets[i].start_ns);
        counts[i]++;
    }
    for (size_t i = 0; i < count; i++) {
        cr_assert(buckets[i].start_ns % width_ns == 0 || buckets[i].start_ns == INT64_MIN);
        cr_assert_eq(buckets[i].count, counts[i]);
        cr_assert_gt(counts[i], 0);
        cr_assert(i == 0 || buckets[i].start_ns > buckets[i - 1].start_ns);
    }
    free(counts);
    lahar_query_close(query);
}

static void check_all(lahar_store *store)
{
    static const char *const queries[] = {"*",
                                          "level:error",
                                          "message:/disk|full/",
                                          "stream:log",
                                          "count>0 OR error",
                                          "NOT host:web-01",
                                          "absent:nope",
                                          "id>900"};
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        const uint32_t threads = (uint32_t)i % 4;
        check_facet(store, queries[i], "host", "host", "", threads);
        check_facet(store, queries[i], "level", "level", "", threads);
        check_facet(store, queries[i], "tags", "tags", "", threads);
        check_facet(store, queries[i], "count", "count", "", threads);
        check_facet(store, queries[i], "big", "big", "", threads);
        check_facet(store, queries[i], "size", "size", "", threads);
        check_facet(store, queries[i], "uuid", "uuid", "", threads);
        check_facet(store, queries[i], "parents", "parents", "", threads);
        check_facet(store, queries[i], "message", "message", "", threads);
        check_facet(store, queries[i], "prev.status", "previous_attributes", "status", threads);
        check_histogram(store, queries[i], INT64_C(3600000000000), threads);
        check_histogram(store, queries[i], INT64_C(7000000001), threads);
    }
    check_facet(store, "stream:log", "attr.status", "attributes", "status", 1);
    check_facet(store, "stream:log", "tenant", "attributes", "tenant", 2);
}

Test(facet, counts_as_by_hand_in_memory_and_in_files)
{
    for (uint64_t seed = 30; seed < 32; seed++) {
        char directory[SCRATCH_PATH_SIZE];
        struct random_store random;
        scratch_create(directory);
        random_store_open(&random, directory, seed);
        for (int i = 0; i < 3; i++) {
            random_store_append(&random, 400);
            if (i == 0) {
                check_all(random.store);
            }
            cr_assert_eq(lahar_rollover(random.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        }
        check_all(random.store);
        random_store_append(&random, 100);
        check_all(random.store);
        random_store_close(&random);
        scratch_remove(directory);
    }
}

static lahar_bytes bytes(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

static void expect_text(lahar_bytes text, const char *expected)
{
    cr_expect_eq(text.size, strlen(expected), "%.*s", (int)text.size, (const char *)text.data);
    cr_expect(text.size == 0 || memcmp(text.data, expected, text.size) == 0, "%.*s", (int)text.size,
              (const char *)text.data);
}

static void append_values(lahar_store *store, uint32_t stream, const char *const *texts,
                          size_t count)
{
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(store, &batch, NULL), LAHAR_OK);
    for (size_t i = 0; i < count; i++) {
        const lahar_pair pair = {bytes("n"), bytes(texts[i]), false};
        const lahar_value value = {
            .field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {&pair, 1}};
        const lahar_event event = {.stream = stream, .values = &value, .value_count = 1};
        cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_OK);
    }
    cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, NULL), LAHAR_OK);
    lahar_batch_destroy(batch);
}

Test(facet, adds_numbers_up_exactly)
{
    static const char *const texts[] = {"9007199254740993",    "-7", "x", "", "9007199254740993",
                                        "18446744073709551615"};
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    scratch_create(directory);
    random_store_open(&random, directory, 33);
    append_values(random.store, random.log, texts, 6);
    for (int state = 0; state < 2; state++) {
        lahar_facet facet = {.struct_size = sizeof facet};
        lahar_query *query = open_query(random.store, "*", 0);
        cr_assert_eq(lahar_query_facet(query, "n", 0, &facet, NULL), LAHAR_OK);
        cr_expect_eq(facet.event_count, 6);
        cr_expect_eq(facet.distinct_count, 5);
        cr_expect_eq(facet.number_count, 4);
        expect_text(facet.minimum, "-7");
        expect_text(facet.maximum, "18446744073709551615");
        expect_text(facet.sum, "18464758472219033594");
        cr_expect_eq(facet.values[0].count, 2);
        cr_assert_eq(lahar_query_facet(query, "nothing", 0, &facet, NULL), LAHAR_OK);
        cr_expect_eq(facet.number_count, 0);
        cr_expect_eq(facet.sum.size, 0);
        cr_expect_eq(facet.distinct_count, 0);
        lahar_query_close(query);
        cr_assert_eq(lahar_rollover(random.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    }
    append_values(random.store, random.log, (const char *const[]){"0.5"}, 1);
    lahar_facet facet = {.struct_size = sizeof facet};
    lahar_query *query = open_query(random.store, "n<10", 0);
    cr_assert_eq(lahar_query_facet(query, "n", 0, &facet, NULL), LAHAR_OK);
    expect_text(facet.sum, "-6.5");
    expect_text(facet.maximum, "0.5");
    lahar_query_close(query);
    random_store_close(&random);
    scratch_remove(directory);
}

Test(facet, refuses_what_it_cannot_group)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    lahar_facet facet = {.struct_size = sizeof facet};
    const lahar_histogram_bucket *buckets = NULL;
    size_t count = 0;
    lahar_error error = {0};
    scratch_create(directory);
    random_store_open(&random, directory, 34);
    random_store_append(&random, 10);
    lahar_query *query = open_query(random.store, "*", 0);
    cr_expect_eq(lahar_query_facet(query, "id", 0, &facet, &error), LAHAR_INVALID);
    cr_expect_eq(lahar_query_facet(query, "time", 0, &facet, &error), LAHAR_INVALID);
    cr_expect_eq(lahar_query_histogram(query, 0, &buckets, &count, &error), LAHAR_INVALID);
    cr_expect_eq(lahar_query_facet(query, "stream", 0, &facet, &error), LAHAR_OK);
    cr_expect_leq(facet.distinct_count, 2);
    lahar_query_close(query);
    random_store_close(&random);
    scratch_remove(directory);
}

Test(facet, table_counts_and_survives_refused_memory)
{
    for (uint64_t refused = 0;; refused++) {
        struct failing_allocator failing;
        struct lahar_tally tally;
        lahar_status status = LAHAR_OK;
        failing_allocator_init(&failing, refused);
        lahar_tally_init(&tally, &failing.allocator);
        for (unsigned i = 0; i < 600 && status == LAHAR_OK; i++) {
            char text[16];
            const int size = snprintf(text, sizeof text, "%u", i % 200);
            status = lahar_tally_add(&tally, (lahar_bytes){text, (size_t)size}, 1 + (i % 200 == 7),
                                     0, NULL, NULL);
        }
        if (failing.refused_count == 0) {
            cr_assert_eq(tally.entry_count, 200);
            lahar_tally_sort(&tally, tally.entry_count);
            cr_assert_eq(tally.entries[0].count, 6);
            cr_assert_eq(memcmp(tally.entries[0].key.data, "7", 1), 0);
            cr_assert_eq(tally.entries[1].count, 3);
            cr_assert_eq(memcmp(tally.entries[1].key.data, "0", 1), 0);
        } else {
            cr_assert_eq(status, LAHAR_NO_MEMORY);
        }
        lahar_tally_deinit(&tally);
        cr_assert_eq(failing.live_count, 0);
        if (failing.refused_count == 0) {
            break;
        }
    }
}
