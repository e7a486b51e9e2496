#include "sample_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/row.h"

static const lahar_field_spec declared[] = {
    {"keyword", LAHAR_KEYWORD, false},
    {"text", LAHAR_TEXT, false},
    {"uuid", LAHAR_UUID, false},
    {"i64", LAHAR_I64, false},
    {"u64", LAHAR_U64, false},
    {"f64", LAHAR_F64, false},
    {"bool", LAHAR_BOOL, false},
    {"when", LAHAR_TIME, false},
    {"bytes", LAHAR_BYTES, false},
    {"uuids", LAHAR_LIST_UUID, false},
    {"keywords", LAHAR_LIST_KEYWORD, false},
    {"map", LAHAR_MAP, false},
};

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

void samples_create(struct samples *samples, uint64_t seed)
{
    memset(samples, 0, sizeof *samples);
    samples->state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    samples->next_id = 1;
    samples->now_ns = INT64_C(1700000000000000000);
    lahar_arena_init(&samples->arena, &lahar_allocator_libc, 0);
    require(lahar_schema_catalog_create(&lahar_allocator_libc, &samples->catalog, NULL) ==
            LAHAR_OK);
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "samples",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = declared,
                                    .field_count = sizeof declared / sizeof declared[0]};
    require(lahar_schema_add_stream(samples->catalog, &spec, &samples->stream, NULL) == LAHAR_OK);
}

void samples_destroy(struct samples *samples)
{
    lahar_arena_deinit(&samples->arena);
    lahar_schema_catalog_destroy(samples->catalog);
}

uint64_t samples_random(struct samples *samples, uint64_t below)
{
    samples->state ^= samples->state >> 12;
    samples->state ^= samples->state << 25;
    samples->state ^= samples->state >> 27;
    const uint64_t v = samples->state * UINT64_C(0x2545f4914f6cdd1d);
    return below == 0 ? v : (v >> 11) % below;
}

uint32_t samples_field(const struct samples *samples, const char *name)
{
    uint32_t field = 0;
    require(lahar_schema_find_field(samples->catalog, name, strlen(name), &field));
    return field;
}

lahar_bytes samples_bytes(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

static void *allocate(struct samples *samples, size_t size)
{
    void *memory = lahar_arena_allocate(&samples->arena, size + 1);
    require(memory != NULL);
    return memory;
}

static void print_uuid(const uint8_t uuid[16], char text[37])
{
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            text[at++] = '-';
        }
        (void)snprintf(text + at, 3, "%02x", uuid[i]);
        at += 2;
    }
}

/* One of a few families of texts: repeated words, numbers, uuids, noise, nothing. */
static lahar_bytes random_bytes(struct samples *samples, unsigned family)
{
    static const char *const words[] = {"alpha", "beta", "gamma", "a somewhat longer word", "x"};
    char *text = NULL;
    switch (family) {
    case 0:
        return samples_bytes(words[samples_random(samples, 5)]);
    case 1: {
        text = allocate(samples, 24);
        const int size =
            snprintf(text, 24, "%llu", (unsigned long long)samples_random(samples, 1000000000));
        return (lahar_bytes){text, (size_t)size};
    }
    case 2: {
        uint8_t uuid[16];
        text = allocate(samples, 40);
        for (size_t i = 0; i < sizeof uuid; i++) {
            uuid[i] = (uint8_t)(samples_random(samples, 3) == 0 ? 7 : samples_random(samples, 256));
        }
        print_uuid(uuid, text);
        return (lahar_bytes){text, 36};
    }
    case 3: {
        const size_t size = samples_random(samples, 200);
        text = allocate(samples, size);
        for (size_t i = 0; i < size; i++) {
            text[i] = (char)samples_random(samples, 256);
        }
        return (lahar_bytes){text, size};
    }
    default:
        return (lahar_bytes){NULL, 0};
    }
}

static lahar_uuid random_uuid(struct samples *samples)
{
    lahar_uuid uuid;
    const uint64_t high = samples_random(samples, 50);
    const uint64_t low = high * UINT64_C(0x9e3779b97f4a7c15);
    memcpy(uuid.bytes, &high, 8);
    memcpy(uuid.bytes + 8, &low, 8);
    return uuid;
}

static uint64_t random_number(struct samples *samples)
{
    static const uint64_t corners[] = {0,
                                       1,
                                       UINT64_MAX,
                                       INT64_MAX,
                                       (uint64_t)INT64_MIN,
                                       UINT64_C(0x7ff8000000000001),
                                       UINT64_C(0xfff0000000000000)};
    switch (samples_random(samples, 4)) {
    case 0:
        return corners[samples_random(samples, 7)];
    case 1:
        return samples_random(samples, 1000);
    case 2:
        return samples_random(samples, 0);
    default:
        return (uint64_t)samples->now_ns;
    }
}

static void fill_map(struct samples *samples, lahar_value *value)
{
    static const char *const keys[] = {"uuid", "filename", "path", "k", "", "size", "odd"};
    const size_t count = samples_random(samples, 9);
    lahar_pair *pairs = allocate(samples, count * sizeof *pairs);
    for (size_t i = 0; i < count; i++) {
        const size_t key = samples_random(samples, 7);
        pairs[i].key = samples_bytes(keys[key]);
        pairs[i].is_null = samples_random(samples, 8) == 0;
        pairs[i].value =
            pairs[i].is_null ? (lahar_bytes){NULL, 0} : random_bytes(samples, (unsigned)key % 5);
    }
    value->as.map.items = pairs;
    value->as.map.count = count;
}

static void fill_value(struct samples *samples, lahar_value *value)
{
    switch (value->type) {
    case LAHAR_KEYWORD:
        value->as.bytes = random_bytes(samples, (unsigned)samples_random(samples, 2));
        return;
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        value->as.bytes = random_bytes(samples, (unsigned)samples_random(samples, 5));
        return;
    case LAHAR_UUID:
        value->as.uuid = random_uuid(samples);
        return;
    case LAHAR_BOOL:
        value->as.boolean = samples_random(samples, 2) == 1;
        return;
    case LAHAR_LIST_UUID: {
        const size_t count = samples_random(samples, 4);
        lahar_uuid *items = allocate(samples, count * sizeof *items);
        for (size_t i = 0; i < count; i++) {
            items[i] = random_uuid(samples);
        }
        value->as.uuids.items = items;
        value->as.uuids.count = count;
        return;
    }
    case LAHAR_LIST_KEYWORD: {
        const size_t count = samples_random(samples, 4);
        lahar_bytes *items = allocate(samples, count * sizeof *items);
        for (size_t i = 0; i < count; i++) {
            items[i] = random_bytes(samples, (unsigned)samples_random(samples, 5));
        }
        value->as.keywords.items = items;
        value->as.keywords.count = count;
        return;
    }
    case LAHAR_MAP:
        fill_map(samples, value);
        return;
    default:
        value->as.u64 = random_number(samples);
        return;
    }
}

lahar_event samples_next(struct samples *samples, unsigned detail)
{
    const struct lahar_stream *stream = lahar_schema_stream(samples->catalog, samples->stream);
    lahar_value *values = allocate(samples, stream->field_count * sizeof *values);
    size_t count = 0;
    for (uint32_t i = 0; i < stream->field_count; i++) {
        if (samples_random(samples, detail == 0 ? 16 : 3) == 0) {
            continue;
        }
        lahar_value *value = &values[count++];
        memset(value, 0, sizeof *value);
        value->field = stream->fields[i].field;
        value->type = stream->fields[i].type;
        value->is_null = samples_random(samples, detail == 0 ? 64 : 6) == 0;
        if (!value->is_null) {
            fill_value(samples, value);
        }
    }
    samples->now_ns += (int64_t)samples_random(samples, 5) * 1000000;
    const lahar_event event = {
        .id = samples->next_id,
        .time_ns = samples_random(samples, 50) == 0 ? (int64_t)samples_random(samples, 0)
                                                    : samples->now_ns,
        .arrival_ns = samples->now_ns,
        .stream = samples->stream,
        .is_durable = true,
        .values = values,
        .value_count = count,
    };
    samples->next_id += 1 + (samples_random(samples, 10) == 0 ? samples_random(samples, 1000) : 0);
    return event;
}

static int compare_fields(const void *a, const void *b)
{
    const lahar_value *left = a;
    const lahar_value *right = b;
    return (left->field > right->field) - (left->field < right->field);
}

lahar_event samples_event(struct samples *samples, const lahar_value *values, size_t count)
{
    lahar_value *copy = allocate(samples, count * sizeof *copy);
    if (count != 0) {
        memcpy(copy, values, count * sizeof *copy);
        qsort(copy, count, sizeof *copy, compare_fields);
    }
    samples->now_ns += 1000;
    return (lahar_event){.id = samples->next_id++,
                         .time_ns = samples->now_ns,
                         .arrival_ns = samples->now_ns,
                         .stream = samples->stream,
                         .is_durable = true,
                         .values = copy,
                         .value_count = count};
}

uint32_t samples_row_size(const struct samples *samples, const lahar_event *event)
{
    struct lahar_buffer row;
    lahar_buffer_init(&row, &lahar_allocator_libc);
    require(lahar_row_encode(&row, samples->catalog, event, NULL) == LAHAR_OK);
    const uint32_t size = (uint32_t)row.size;
    lahar_buffer_deinit(&row);
    return size;
}

static bool bytes_equal(const lahar_bytes *left, const lahar_bytes *right)
{
    return left->size == right->size &&
           (left->size == 0 || memcmp(left->data, right->data, left->size) == 0);
}

static bool maps_equal(const lahar_value *left, const lahar_value *right)
{
    if (left->as.map.count != right->as.map.count) {
        return false;
    }
    for (size_t i = 0; i < left->as.map.count; i++) {
        const lahar_pair *l = &left->as.map.items[i];
        const lahar_pair *r = &right->as.map.items[i];
        if (!bytes_equal(&l->key, &r->key) || l->is_null != r->is_null ||
            (!l->is_null && !bytes_equal(&l->value, &r->value))) {
            return false;
        }
    }
    return true;
}

static bool keywords_equal(const lahar_value *left, const lahar_value *right)
{
    if (left->as.keywords.count != right->as.keywords.count) {
        return false;
    }
    for (size_t i = 0; i < left->as.keywords.count; i++) {
        if (!bytes_equal(&left->as.keywords.items[i], &right->as.keywords.items[i])) {
            return false;
        }
    }
    return true;
}

static bool values_equal(const lahar_value *left, const lahar_value *right)
{
    if (left->field != right->field || left->type != right->type ||
        left->is_null != right->is_null) {
        return false;
    }
    if (left->is_null) {
        return true;
    }
    switch (left->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return bytes_equal(&left->as.bytes, &right->as.bytes);
    case LAHAR_UUID:
        return memcmp(&left->as.uuid, &right->as.uuid, 16) == 0;
    case LAHAR_BOOL:
        return left->as.boolean == right->as.boolean;
    case LAHAR_LIST_UUID:
        return left->as.uuids.count == right->as.uuids.count &&
               (left->as.uuids.count == 0 ||
                memcmp(left->as.uuids.items, right->as.uuids.items,
                       left->as.uuids.count * sizeof(lahar_uuid)) == 0);
    case LAHAR_LIST_KEYWORD:
        return keywords_equal(left, right);
    case LAHAR_MAP:
        return maps_equal(left, right);
    default:
        return left->as.u64 == right->as.u64;
    }
}

const char *samples_difference(const lahar_event *left, const lahar_event *right)
{
    if (left->id != right->id) {
        return "id";
    }
    if (left->time_ns != right->time_ns) {
        return "time";
    }
    if (left->arrival_ns != right->arrival_ns) {
        return "arrival";
    }
    if (left->stream != right->stream) {
        return "stream";
    }
    if (left->is_durable != right->is_durable) {
        return "durable";
    }
    if (left->value_count != right->value_count) {
        return "count of values";
    }
    for (size_t i = 0; i < left->value_count; i++) {
        if (!values_equal(&left->values[i], &right->values[i])) {
            return "value";
        }
    }
    return NULL;
}
