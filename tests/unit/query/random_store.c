/* Random events. The generator is seeded, so a failure repeats. */
#include "random_store.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rollover/resident_index.h"
#include "engine/store/store_state.h"

#define SECOND      INT64_C(1000000000)
#define BASE_TIME   (INT64_C(1420502400) * SECOND) /* 2015-01-06 */
#define TEXT_BYTES  4096
#define GIANT_BYTES 1000000

uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

uint32_t random_pick(uint64_t *state, uint32_t count)
{
    return (uint32_t)(random_next(state) >> 33) % count;
}

static uint32_t pick(uint64_t *state, uint32_t count)
{
    return random_pick(state, count);
}

const char *const random_words[RANDOM_WORDS] = {
    "error",
    "Timeout",
    "connection",
    "10.0.0.7",
    "user_1",
    "caf\xc3\xa9",
    "STRASSE",
    "\xe6\x97\xa5\xe6\x9c\xac",
    "x",
    "\xf0\x9f\x94\xa5",
    "77ms",
    "disk",
    "full",
    "retry",
    "\xd0\x9f\xd1\x80",
    "e\xcc\x81t",
    "\xff\xfe",
    "\x1b[31mred\x1b[0m",
};
const char *const random_joints[RANDOM_JOINTS] = {" ", " ", " ", ", ", ": ", "-", "/", "", "="};
static const char *const hosts[] = {"web-01", "WEB-01", "web-02", "db.example", "", "Web"};
static const char *const levels[] = {"ERROR", "error", "Warn", "INFO", "DEBUG"};
static const char *const keys[] = {"status", "mime.type", "tenant", "my key"};
static const char *const attribute_values[] = {
    "200", "404", "00123", "", "text/plain", "9007199254740993", "-1.5", "Text here"};
static const char *const types[] = {"SEND", "RECEIVE", "DROP", "FORK"};

#define COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static lahar_bytes bytes_of(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

static void create_stream(lahar_store *store, const lahar_stream_spec *spec, uint32_t *stream)
{
    lahar_error error = {0};
    const lahar_status status = lahar_stream_create(store, spec, stream, &error);
    cr_assert(status == LAHAR_OK || status == LAHAR_EXISTS, "%s", error.message);
}

void random_store_open(struct random_store *random, const char *directory, uint64_t seed)
{
    random_store_open_with(random, directory, seed, NULL);
}

void random_store_open_with(struct random_store *random, const char *directory, uint64_t seed,
                            const lahar_allocator *allocator)
{
    static const lahar_field_spec fields[] = {
        {"host", LAHAR_KEYWORD, false}, {"count", LAHAR_I64, false},
        {"ratio", LAHAR_F64, false},    {"ok", LAHAR_BOOL, false},
        {"when", LAHAR_TIME, false},    {"tags", LAHAR_LIST_KEYWORD, false},
        {"blob", LAHAR_BYTES, false},   {"big", LAHAR_U64, false},
        {"note", LAHAR_TEXT, true},     {"labels", LAHAR_MAP, false},
    };
    /* Half of the stores have no field that is kept out of the index. */
    const bool has_note = seed % 2 == 0;
    lahar_options options;
    lahar_error error = {0};
    lahar_options_init(&options);
    options.backend = LAHAR_BACKEND_PWRITE;
    options.memory_limit_bytes = 64 << 20;
    options.allocator = allocator;
    /* Events in memory are indexed by slices of a few batches, but for the newest; in one store in
     * eight they are all scanned. Of some stores, files are looked into in small parts. */
    const struct lahar_store_config config = {.start_threads = true,
                                              .query_part_size = seed % 3 == 2 ? 0 : 16,
                                              .slice_event_max = seed % 8 == 3 ? 0 : 40};
    cr_assert_eq(lahar_store_open_config(directory, &options, &config, LAHAR_WAIT_FOREVER,
                                         &random->store, &error),
                 LAHAR_OK, "%s", error.message);
    random->state = seed * 0x9e3779b97f4a7c15 + 1;
    create_stream(random->store,
                  &(lahar_stream_spec){.struct_size = sizeof(lahar_stream_spec),
                                       .name = "log",
                                       .schema = LAHAR_SCHEMA_LOG,
                                       .fields = fields,
                                       .field_count = has_note ? 10 : 8},
                  &random->log);
    create_stream(random->store,
                  &(lahar_stream_spec){.struct_size = sizeof(lahar_stream_spec),
                                       .name = "provenance",
                                       .schema = LAHAR_SCHEMA_PROVENANCE},
                  &random->provenance);
}

void random_store_close(struct random_store *random)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_store_close(random->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

/* --- events --------------------------------------------------------------------- */

/* The memory an event's values point to. */
struct scratch {
    lahar_value values[24];
    size_t count;
    char text[3][TEXT_BYTES];
    size_t text_count;
    lahar_pair pairs[3][6];
    size_t map_count;
    lahar_bytes items[4];
    lahar_uuid uuids[2][3];
    size_t uuid_list_count;
};

static lahar_value *add(struct scratch *scratch, lahar_store *store, const char *name,
                        lahar_type type)
{
    uint32_t field = 0;
    if (lahar_field_id(store, name, &field, NULL) != LAHAR_OK) {
        return NULL;
    }
    lahar_value *value = &scratch->values[scratch->count++];
    *value = (lahar_value){.field = field, .type = type};
    return value;
}

static lahar_bytes random_text(struct scratch *scratch, uint64_t *state)
{
    char *text = scratch->text[scratch->text_count++];
    size_t size = 0;
    const uint32_t count = pick(state, 40) == 0 ? 120 : pick(state, 7);
    for (uint32_t i = 0; i < count; i++) {
        size += (size_t)snprintf(text + size, TEXT_BYTES - size, "%s%s",
                                 random_words[pick(state, RANDOM_WORDS)],
                                 random_joints[pick(state, RANDOM_JOINTS)]);
    }
    return (lahar_bytes){text, size};
}

static void add_map(struct scratch *scratch, struct random_store *random, const char *name)
{
    uint64_t *state = &random->state;
    lahar_value *value = add(scratch, random->store, name, LAHAR_MAP);
    if (value == NULL) {
        return;
    }
    lahar_pair *pairs = scratch->pairs[scratch->map_count++];
    const uint32_t count = pick(state, 6);
    for (uint32_t i = 0; i < count; i++) {
        pairs[i] = (lahar_pair){bytes_of(keys[pick(state, COUNT_OF(keys))]),
                                bytes_of(attribute_values[pick(state, COUNT_OF(attribute_values))]),
                                pick(state, 8) == 0};
    }
    value->as.map.items = pairs;
    value->as.map.count = count;
}

static lahar_uuid random_uuid(uint64_t *state)
{
    return (lahar_uuid){{0x8f, 0x3a, (uint8_t)pick(state, 24)}};
}

static void add_uuids(struct scratch *scratch, struct random_store *random, const char *name)
{
    lahar_value *value = add(scratch, random->store, name, LAHAR_LIST_UUID);
    lahar_uuid *items = scratch->uuids[scratch->uuid_list_count++];
    const uint32_t count = pick(&random->state, 4);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = random_uuid(&random->state);
    }
    value->as.uuids.items = items;
    value->as.uuids.count = count;
}

static void fill_log(struct scratch *scratch, struct random_store *random)
{
    static const double ratios[] = {0.0, -0.0, 1.5, -2.25, 1e300};
    uint64_t *state = &random->state;
    lahar_store *store = random->store;
    lahar_value *value = NULL;
    if (pick(state, 10) != 0) {
        value = add(scratch, store, "message", LAHAR_TEXT);
        value->as.bytes = random_text(scratch, state);
    }
    if (pick(state, 4) != 0) {
        value = add(scratch, store, "level", LAHAR_KEYWORD);
        value->as.bytes = bytes_of(levels[pick(state, COUNT_OF(levels))]);
        value->is_null = pick(state, 12) == 0;
    }
    if (pick(state, 3) != 0) {
        value = add(scratch, store, "host", LAHAR_KEYWORD);
        value->as.bytes = pick(state, 30) == 0 ? random_text(scratch, state)
                                               : bytes_of(hosts[pick(state, COUNT_OF(hosts))]);
    }
    if (pick(state, 3) != 0) {
        value = add(scratch, store, "count", LAHAR_I64);
        value->as.i64 = pick(state, 9) == 0 ? INT64_MIN : (int64_t)pick(state, 20) - 10;
        value = add(scratch, store, "ratio", LAHAR_F64);
        value->as.f64 = pick(state, 8) == 0 ? (double)NAN : ratios[pick(state, COUNT_OF(ratios))];
        value = add(scratch, store, "ok", LAHAR_BOOL);
        value->as.boolean = pick(state, 2) == 0;
        value = add(scratch, store, "when", LAHAR_TIME);
        value->as.time_ns = BASE_TIME + pick(state, 40) * 3600 * SECOND;
        value = add(scratch, store, "big", LAHAR_U64);
        value->as.u64 = pick(state, 3) == 0 ? UINT64_MAX - pick(state, 2) : pick(state, 10);
        value = add(scratch, store, "blob", LAHAR_BYTES);
        value->as.bytes = bytes_of(random_words[pick(state, RANDOM_WORDS)]);
    }
    if (pick(state, 3) == 0) {
        value = add(scratch, store, "tags", LAHAR_LIST_KEYWORD);
        const uint32_t count = pick(state, 4);
        for (uint32_t i = 0; i < count; i++) {
            scratch->items[i] = bytes_of(random_words[pick(state, RANDOM_WORDS)]);
        }
        value->as.keywords.items = scratch->items;
        value->as.keywords.count = count;
    }
    if (pick(state, 6) == 0) {
        value = add(scratch, store, "note", LAHAR_TEXT);
        if (value != NULL) {
            value->as.bytes = random_text(scratch, state);
        }
        add_map(scratch, random, "labels");
    }
    add_map(scratch, random, "attributes");
}

static void fill_provenance(struct scratch *scratch, struct random_store *random)
{
    uint64_t *state = &random->state;
    lahar_value *value = add(scratch, random->store, "type", LAHAR_KEYWORD);
    value->as.bytes = bytes_of(types[pick(state, COUNT_OF(types))]);
    value = add(scratch, random->store, "uuid", LAHAR_UUID);
    value->as.uuid = random_uuid(state);
    value = add(scratch, random->store, "size", LAHAR_U64);
    value->as.u64 = pick(state, 2000);
    value = add(scratch, random->store, "details", LAHAR_TEXT);
    value->as.bytes = random_text(scratch, state);
    if (pick(state, 3) == 0) {
        add_uuids(scratch, random, "parents");
        add_uuids(scratch, random, "children");
    }
    add_map(scratch, random, "attributes");
    if (pick(state, 3) == 0) {
        add_map(scratch, random, "previous_attributes");
    }
}

/* Mostly rising, with stragglers, repeated times, times of arrival, and clocks that are wrong by
 * years or by everything. */
static int64_t random_time(struct random_store *random, uint32_t number)
{
    static const int64_t wrong[] = {0,         -1,        INT64_MIN + 1,
                                    INT64_MAX, 999999999, BASE_TIME + 400 * 86400 * SECOND};
    uint64_t *state = &random->state;
    const uint32_t choice = pick(state, 40);
    if (choice < 2) {
        return LAHAR_TIME_OF_ARRIVAL;
    }
    if (choice == 2) {
        return wrong[pick(state, COUNT_OF(wrong))];
    }
    return BASE_TIME + (int64_t)(number / 4) * 60 * SECOND - (int64_t)pick(state, 3) * 600 * SECOND;
}

static void add_event(struct random_store *random, lahar_batch *batch, const lahar_event *event)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_batch_add(batch, event, &error), LAHAR_OK, "%s", error.message);
    random->event_count++;
}

static void commit(lahar_batch *batch)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, &error), LAHAR_OK, "%s", error.message);
}

void random_store_append(struct random_store *random, uint32_t count)
{
    lahar_batch *batch = NULL;
    uint32_t left = 0;
    cr_assert_eq(lahar_batch_create(random->store, &batch, NULL), LAHAR_OK);
    for (uint32_t i = 0; i < count; i++) {
        static struct scratch scratch;
        scratch.count = scratch.text_count = scratch.map_count = scratch.uuid_list_count = 0;
        const bool is_log = pick(&random->state, 3) != 0;
        if (is_log) {
            fill_log(&scratch, random);
        } else {
            fill_provenance(&scratch, random);
        }
        const lahar_event event = {.stream = is_log ? random->log : random->provenance,
                                   .time_ns = random_time(random, i),
                                   .values = scratch.values,
                                   .value_count = scratch.count};
        add_event(random, batch, &event);
        if (i + 1 < count && pick(&random->state, 25) == 0) {
            add_event(random, batch, &event); /* the same once more */
            i++;
        }
        if (left == 0) {
            commit(batch);
            left = pick(&random->state, 20);
        } else {
            left--;
        }
    }
    commit(batch);
    lahar_batch_destroy(batch);
    struct lahar_rest rest;
    while (lahar_resident_index_step(random->store->resident_index, &rest)) {
    }
}

void random_store_append_giants(struct random_store *random)
{
    static struct scratch scratch;
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(random->store, &batch, NULL), LAHAR_OK);
    char *giant = malloc(GIANT_BYTES + TEXT_BYTES);
    cr_assert_not_null(giant);
    for (uint32_t i = 0; i < 3; i++) {
        scratch.count = scratch.text_count = scratch.map_count = scratch.uuid_list_count = 0;
        size_t size = 0;
        while (size < GIANT_BYTES) {
            size += (size_t)snprintf(giant + size, 64, "%s%s",
                                     random_words[pick(&random->state, RANDOM_WORDS)],
                                     random_joints[pick(&random->state, RANDOM_JOINTS)]);
        }
        lahar_value *value = add(&scratch, random->store, i == 0 ? "message" : "host",
                                 i == 0 ? LAHAR_TEXT : LAHAR_KEYWORD);
        value->as.bytes = (lahar_bytes){giant, i == 2 ? 300 : size};
        if (i == 2) {
            add_map(&scratch, random, "attributes");
            scratch.pairs[0][0] = (lahar_pair){bytes_of("status"), {giant, size}, false};
            scratch.values[1].as.map.count = 1;
        }
        const lahar_event event = {.stream = random->log,
                                   .time_ns = random_time(random, 7),
                                   .values = scratch.values,
                                   .value_count = scratch.count};
        add_event(random, batch, &event);
        commit(batch);
    }
    free(giant);
    lahar_batch_destroy(batch);
}
