/* Attributes as they took effect, before, and where both differ: in queries, facets and get,
 * against what a few lines compute from the two maps. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "prov_store.h"

enum {
    EVENTS = 240,
    KEYS = 3,
    VALUES = 4
};

/* What attribute k of event n was and became. A digit is a value, '.' absent, 'x' removed. */
struct state {
    char before;
    char update;
};

static struct state state_of(unsigned n, unsigned k)
{
    static const char befores[] = ".0123x"; /* null before: absent */
    static const char updates[] = ".0123x";
    const unsigned mixed = (n * 7919 + k * 104729 + 13) * 2654435761U >> 8;
    return (struct state){befores[mixed % 6], updates[mixed / 6 % 6]};
}

static char effective_of(struct state state)
{
    const char before = state.before == 'x' ? '.' : state.before;
    return state.update == '.' ? before : state.update == 'x' ? '.' : state.update;
}

static bool is_changed(struct state state)
{
    const char before = state.before == 'x' ? '.' : state.before;
    return state.update != '.' && effective_of(state) != before;
}

static size_t fill_pairs(unsigned n, bool is_update, lahar_pair *pairs)
{
    static const char *const keys[KEYS] = {"a", "b", "c"};
    static const char *const values[VALUES] = {"v0", "v1", "v2", "v3"};
    size_t count = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        const unsigned k = is_update ? KEYS - 1 - i : i; /* in another order */
        const struct state state = state_of(n, k);
        const char value = is_update ? state.update : state.before;
        if (value != '.') {
            pairs[count++] =
                (lahar_pair){.key = bytes_of(keys[k]),
                             .value = value == 'x' ? bytes_of(NULL) : bytes_of(values[value - '0']),
                             .is_null = value == 'x'};
        }
    }
    return count;
}

static void put_all(struct prov_store *prov, unsigned from, unsigned to)
{
    for (unsigned n = from; n < to; n++) {
        lahar_pair previous[KEYS];
        lahar_pair updated[KEYS];
        lahar_prov_event event = make_event(LAHAR_PROV_ROUTE, "u", n, NULL, NULL);
        event.previous = previous;
        event.previous_count = fill_pairs(n, false, previous);
        event.updated = updated;
        event.updated_count = fill_pairs(n, true, updated);
        cr_assert_eq(put_event(prov, &event), n + 1);
    }
}

static uint64_t count_if(unsigned k, char kind, char value)
{
    uint64_t count = 0;
    for (unsigned n = 0; n < EVENTS; n++) {
        const struct state state = state_of(n, k);
        count += kind == 'e'   ? effective_of(state) == value
                 : kind == 'p' ? state.before == value
                               : is_changed(state);
    }
    return count;
}

static void expect_facet(lahar_query *query, unsigned k, const char *prefix, char kind)
{
    char name[16];
    lahar_facet facet = {.struct_size = sizeof facet};
    lahar_error error = {.status = LAHAR_OK};
    (void)snprintf(name, sizeof name, "%s%c", prefix, 'a' + (char)k);
    cr_assert_eq(lahar_query_facet(query, name, 0, &facet, &error), LAHAR_OK, "%s", error.message);
    cr_assert_eq(facet.event_count, EVENTS);
    size_t expected = 0;
    for (char value = '0'; value < '0' + VALUES; value++) {
        expected += count_if(k, kind, value) != 0;
    }
    cr_assert_eq(facet.value_count, expected, "%s", name);
    for (size_t i = 0; i < facet.value_count; i++) {
        const char *text = facet.values[i].value.data;
        cr_assert_eq(facet.values[i].value.size, 2);
        cr_assert_eq(facet.values[i].count, count_if(k, kind, text[1]), "%s v%c", name, text[1]);
    }
}

static void expect_counts(struct prov_store *prov, unsigned k)
{
    char expression[32];
    for (char value = '0'; value < '0' + VALUES; value++) {
        (void)snprintf(expression, sizeof expression, "attr.%c=v%c", 'a' + (char)k, value);
        cr_assert_eq(count_of(prov, expression), count_if(k, 'e', value), "%s", expression);
        (void)snprintf(expression, sizeof expression, "prev.%c=v%c", 'a' + (char)k, value);
        cr_assert_eq(count_of(prov, expression), count_if(k, 'p', value), "%s", expression);
    }
    (void)snprintf(expression, sizeof expression, "attr.%c:*", 'a' + (char)k);
    cr_assert_eq(count_of(prov, expression), EVENTS - count_if(k, 'e', '.'), "%s", expression);
    (void)snprintf(expression, sizeof expression, "changed:%c", 'a' + (char)k);
    cr_assert_eq(count_of(prov, expression), count_if(k, 'c', 0), "%s", expression);
}

/* Events whose attribute a is v1 in effect, hour by hour. */
static void expect_histogram(struct prov_store *prov)
{
    static const char expression[] = "attr.a=v1";
    lahar_query_options options;
    lahar_query *query = NULL;
    const lahar_histogram_bucket *buckets = NULL;
    size_t bucket_count = 0;
    uint64_t sum = 0;
    lahar_query_options_init(&options);
    cr_assert_eq(
        lahar_query_open(prov->store, expression, sizeof expression - 1, &options, &query, NULL),
        LAHAR_OK);
    cr_assert_eq(lahar_query_histogram(query, 10 * 1000000, &buckets, &bucket_count, NULL),
                 LAHAR_OK);
    for (size_t i = 0; i < bucket_count; i++) {
        uint64_t expected = 0;
        const unsigned from = (unsigned)(buckets[i].start_ns / 1000000);
        for (unsigned n = from; n < from + 10 && n < EVENTS; n++) {
            expected += effective_of(state_of(n, 0)) == '1';
        }
        cr_assert_eq(buckets[i].count, expected);
        sum += expected;
    }
    cr_assert_eq(sum, count_if(0, 'e', '1'));
    lahar_query_close(query);
}

static void expect_records(struct prov_store *prov)
{
    for (unsigned n = 0; n < EVENTS; n++) {
        lahar_prov_record *record = NULL;
        size_t count = 0;
        size_t expected = 0;
        cr_assert_eq(lahar_prov_get(prov->provenance, n + 1, &record, NULL), LAHAR_OK);
        const lahar_pair *pairs = lahar_prov_record_effective(record, &count);
        for (unsigned k = 0; k < KEYS; k++) {
            const char value = effective_of(state_of(n, k));
            size_t i = 0;
            while (i < count && *(const char *)pairs[i].key.data != 'a' + (char)k) {
                i++;
            }
            cr_assert_eq(i < count, value != '.');
            cr_assert(value == '.' || ((const char *)pairs[i].value.data)[1] == value);
            expected += value != '.';
        }
        cr_assert_eq(count, expected, "each key once");
        lahar_prov_record_close(record);
    }
}

static void expect_all(struct prov_store *prov)
{
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_options_init(&options);
    cr_assert_eq(lahar_query_open(prov->store, "*", 1, &options, &query, NULL), LAHAR_OK);
    for (unsigned k = 0; k < KEYS; k++) {
        expect_facet(query, k, "attr.", 'e');
        expect_facet(query, k, "prev.", 'p');
        expect_counts(prov, k);
    }
    lahar_query_close(query);
    expect_histogram(prov);
    expect_records(prov);
}

Test(attributes, are_searched_and_counted_as_they_took_effect)
{
    struct prov_store prov;
    prov_store_open(&prov, NULL);
    put_all(&prov, 0, EVENTS / 2);
    prov_store_rollover(&prov);
    put_all(&prov, EVENTS / 2, EVENTS);
    expect_all(&prov);
    prov_store_rollover(&prov);
    expect_all(&prov);
    prov_store_reopen(&prov);
    expect_all(&prov);
    prov_store_close(&prov);
}
