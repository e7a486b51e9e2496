/* Plain evaluation over events held in memory; see oracle.h. */
#include "oracle.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/store/snapshot.h"
#include "io/base/error.h"

/* --- events ----------------------------------------------------------------------- */

static lahar_bytes copy_bytes(struct oracle *oracle, lahar_bytes bytes)
{
    return (lahar_bytes){lahar_arena_copy(&oracle->arena, bytes.data, bytes.size), bytes.size};
}

static void copy_value(struct oracle *oracle, lahar_value *value)
{
    if (value->is_null) {
        return;
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        value->as.bytes = copy_bytes(oracle, value->as.bytes);
        return;
    case LAHAR_LIST_UUID:
        value->as.uuids.items =
            lahar_arena_copy(&oracle->arena, value->as.uuids.items,
                             value->as.uuids.count * sizeof *value->as.uuids.items);
        return;
    case LAHAR_LIST_KEYWORD: {
        const size_t count = value->as.keywords.count;
        lahar_bytes *items =
            lahar_arena_copy(&oracle->arena, value->as.keywords.items, count * sizeof *items);
        for (size_t i = 0; i < count; i++) {
            items[i] = copy_bytes(oracle, items[i]);
        }
        value->as.keywords.items = items;
        return;
    }
    case LAHAR_MAP: {
        const size_t count = value->as.map.count;
        lahar_pair *items =
            lahar_arena_copy(&oracle->arena, value->as.map.items, count * sizeof *items);
        for (size_t i = 0; i < count; i++) {
            items[i].key = copy_bytes(oracle, items[i].key);
            items[i].value = copy_bytes(oracle, items[i].value);
        }
        value->as.map.items = items;
        return;
    }
    default:
        return;
    }
}

static void evaluate_leaf(void *context, const char *text, size_t size, uint64_t *set);

void oracle_open(struct oracle *oracle, lahar_store *store, uint64_t end_id)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_scan_options options;
    memset(oracle, 0, sizeof *oracle);
    oracle->store = store;
    lahar_arena_init(&oracle->arena, &lahar_allocator_libc, 65536);
    lahar_arena_init(&oracle->leaf_arena, &lahar_allocator_libc, 65536);
    lahar_matcher_init(&oracle->matcher, lahar_store_catalog(store), &lahar_allocator_libc);
    oracle->events = calloc(ORACLE_EVENTS_MAX, sizeof *oracle->events);
    cr_assert_not_null(oracle->events);
    lahar_scan_options_init(&options);
    options.to_id = end_id;
    cr_assert_eq(lahar_scan(store, &options, &cursor, &error), LAHAR_OK, "%s", error.message);
    lahar_status status = LAHAR_OK;
    while ((status = lahar_cursor_next(cursor, &event, &error)) == LAHAR_OK) {
        cr_assert_lt(oracle->event_count, ORACLE_EVENTS_MAX);
        lahar_event *copy = &oracle->events[oracle->event_count++];
        *copy = *event;
        lahar_value *values = lahar_arena_copy(&oracle->arena, event->values,
                                               event->value_count * sizeof *event->values);
        for (size_t i = 0; i < event->value_count; i++) {
            copy_value(oracle, &values[i]);
        }
        copy->values = values;
    }
    cr_assert_eq(status, LAHAR_NOT_FOUND, "%s", error.message);
    lahar_cursor_close(cursor);
    oracle->word_count = (oracle->event_count + 63) / 64;
    oracle->random = (struct random_leaves){evaluate_leaf, oracle, oracle->word_count};
}

void oracle_close(struct oracle *oracle)
{
    for (uint32_t i = 0; i < oracle->facet_count; i++) {
        free(oracle->facets[i].values);
        free(oracle->facets[i].numbers);
    }
    lahar_matcher_deinit(&oracle->matcher);
    lahar_arena_deinit(&oracle->leaf_arena);
    lahar_arena_deinit(&oracle->arena);
    free(oracle->events);
}

/* --- leaves ----------------------------------------------------------------------- */

void oracle_evaluate(struct oracle *oracle, const char *text, size_t size, uint64_t *set)
{
    struct lahar_arena arena;
    struct lahar_query_node *root = NULL;
    lahar_error error = {0};
    const struct lahar_schema_catalog *catalog = lahar_store_catalog(oracle->store);
    struct lahar_io *io = lahar_store_io(oracle->store);
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    const struct lahar_bind_context context = {
        .catalog = catalog, .arena = &arena, .now_ns = io->ops->realtime_ns(io)};
    cr_assert_eq(lahar_query_parse(text, size, &arena, &root, &error), LAHAR_OK, "%s: %s", text,
                 error.message);
    cr_assert_eq(lahar_query_bind(root, &context, &error), LAHAR_OK, "%s: %s", text, error.message);
    memset(set, 0, oracle->word_count * sizeof *set);
    for (uint32_t i = 0; i < oracle->event_count; i++) {
        bool matches = false;
        cr_assert_eq(lahar_match(&oracle->matcher, root, &oracle->events[i], &matches, &error),
                     LAHAR_OK, "%s: %s", text, error.message);
        set[i / 64] |= (uint64_t)matches << i % 64;
    }
    lahar_query_unbind(root);
    lahar_arena_deinit(&arena);
}

/* Remembers what it found: the leaf that was last at its place is forgotten. */
static void evaluate_leaf(void *context, const char *text, size_t size, uint64_t *set)
{
    struct oracle *oracle = context;
    const size_t bytes = oracle->word_count * sizeof *set;
    struct oracle_leaf *leaf = &oracle->leaves[XXH3_64bits(text, size) % ORACLE_LEAVES];
    if (leaf->set == NULL || leaf->text.size != size || memcmp(leaf->text.data, text, size) != 0) {
        oracle_evaluate(oracle, text, size, set);
        leaf->text = (lahar_bytes){lahar_arena_copy(&oracle->leaf_arena, text, size), size};
        leaf->set = lahar_arena_copy(&oracle->leaf_arena, set, bytes);
        cr_assert_not_null(leaf->set);
    }
    memcpy(set, leaf->set, bytes);
}

/* --- order ------------------------------------------------------------------------ */

static const lahar_event *sorted_events; /* of the call in progress, for qsort */

static int by_time(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    const int64_t s = sorted_events[x].time_ns;
    const int64_t t = sorted_events[y].time_ns;
    return s != t ? (s > t) - (s < t) : (x > y) - (x < y);
}

uint32_t oracle_order(const struct oracle *oracle, const uint64_t *set, lahar_order order,
                      uint32_t *indexes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < oracle->event_count; i++) {
        if (set[i / 64] >> i % 64 & 1) {
            indexes[count++] = i;
        }
    }
    if (order == LAHAR_ORDER_LATEST_TIME || order == LAHAR_ORDER_EARLIEST_TIME) {
        sorted_events = oracle->events;
        qsort(indexes, count, sizeof *indexes, by_time);
    }
    if (order == LAHAR_ORDER_NEWEST || order == LAHAR_ORDER_LATEST_TIME) {
        for (uint32_t i = 0; i < count / 2; i++) {
            const uint32_t other = indexes[i];
            indexes[i] = indexes[count - 1 - i];
            indexes[count - 1 - i] = other;
        }
    }
    return count;
}

/* --- facets ----------------------------------------------------------------------- */

/* Adds a value to the event's, unless the event has it already. */
static void take(struct oracle_facet *facet, uint32_t begin, lahar_bytes value)
{
    uint32_t number = 0;
    while (number < facet->value_count &&
           (facet->values[number].size != value.size ||
            (value.size != 0 && memcmp(facet->values[number].data, value.data, value.size) != 0))) {
        number++;
    }
    if (number == facet->value_count) {
        facet->values = realloc(facet->values, (number + 1) * sizeof *facet->values);
        cr_assert_not_null(facet->values);
        facet->values[facet->value_count++] = value;
    }
    for (uint32_t i = begin; i < facet->number_count; i++) {
        if (facet->numbers[i] == number) {
            return;
        }
    }
    facet->numbers = realloc(facet->numbers, (facet->number_count + 1) * sizeof *facet->numbers);
    cr_assert_not_null(facet->numbers);
    facet->numbers[facet->number_count++] = number;
}

static void take_printed(struct oracle *oracle, struct oracle_facet *facet, uint32_t begin,
                         const lahar_value *value)
{
    char text[64];
    int size = 0;
    if (value->type == LAHAR_I64) {
        size = snprintf(text, sizeof text, "%" PRId64, value->as.i64);
    } else if (value->type == LAHAR_U64) {
        size = snprintf(text, sizeof text, "%" PRIu64, value->as.u64);
    } else if (value->type == LAHAR_BOOL) {
        size = snprintf(text, sizeof text, "%s", value->as.boolean ? "true" : "false");
    } else if (value->type == LAHAR_UUID) {
        for (int i = 0; i < 16; i++) {
            size +=
                snprintf(text + size, sizeof text - (size_t)size, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", value->as.uuid.bytes[i]);
        }
    } else {
        cr_assert_fail("no text of type %d", (int)value->type);
    }
    take(facet, begin, copy_bytes(oracle, (lahar_bytes){text, (size_t)size}));
}

static void take_value(struct oracle *oracle, struct oracle_facet *facet, uint32_t begin,
                       const lahar_value *value, const char *key)
{
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
        take(facet, begin, value->as.bytes);
        return;
    case LAHAR_LIST_KEYWORD:
        for (size_t i = 0; i < value->as.keywords.count; i++) {
            take(facet, begin, value->as.keywords.items[i]);
        }
        return;
    case LAHAR_LIST_UUID:
        for (size_t i = 0; i < value->as.uuids.count; i++) {
            take_printed(oracle, facet, begin,
                         &(lahar_value){.type = LAHAR_UUID, .as.uuid = value->as.uuids.items[i]});
        }
        return;
    case LAHAR_MAP:
        for (size_t i = 0; i < value->as.map.count; i++) {
            const lahar_pair *pair = &value->as.map.items[i];
            if (!pair->is_null && pair->key.size == strlen(key) &&
                memcmp(pair->key.data, key, pair->key.size) == 0) {
                take(facet, begin, pair->value);
            }
        }
        return;
    default:
        take_printed(oracle, facet, begin, value);
    }
}

void oracle_add_facet(struct oracle *oracle, const char *name, const char *field_name,
                      const char *key)
{
    uint32_t field = 0;
    struct oracle_facet *facet = &oracle->facets[oracle->facet_count++];
    cr_assert_leq(oracle->facet_count, ORACLE_FACETS_MAX);
    cr_assert_eq(lahar_field_id(oracle->store, field_name, &field, NULL), LAHAR_OK);
    facet->name = name;
    for (uint32_t i = 0; i < oracle->event_count; i++) {
        const lahar_event *event = &oracle->events[i];
        const uint32_t begin = facet->number_count;
        for (size_t j = 0; j < event->value_count; j++) {
            if (event->values[j].field == field && !event->values[j].is_null) {
                take_value(oracle, facet, begin, &event->values[j], key);
            }
        }
        facet->ends[i] = facet->number_count;
    }
}

static int by_count(const void *a, const void *b)
{
    const struct oracle_count *x = a;
    const struct oracle_count *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    const size_t size = x->value.size < y->value.size ? x->value.size : y->value.size;
    const int order = size == 0 ? 0 : memcmp(x->value.data, y->value.data, size);
    return order != 0 ? order : (x->value.size > y->value.size) - (x->value.size < y->value.size);
}

uint32_t oracle_count(const struct oracle *oracle, uint32_t index, const uint64_t *set,
                      struct oracle_count **counts_out)
{
    const struct oracle_facet *facet = &oracle->facets[index];
    struct oracle_count *counts = calloc(facet->value_count + 1, sizeof *counts);
    cr_assert_not_null(counts);
    for (uint32_t i = 0; i < facet->value_count; i++) {
        counts[i].value = facet->values[i];
    }
    for (uint32_t i = 0; i < oracle->event_count; i++) {
        const uint32_t begin = i == 0 ? 0 : facet->ends[i - 1];
        for (uint32_t j = begin; j < facet->ends[i] && (set[i / 64] >> i % 64 & 1); j++) {
            counts[facet->numbers[j]].count++;
        }
    }
    qsort(counts, facet->value_count, sizeof *counts, by_count);
    uint32_t count = facet->value_count;
    while (count != 0 && counts[count - 1].count == 0) {
        count--;
    }
    *counts_out = counts;
    return count;
}
