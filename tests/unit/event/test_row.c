/* Rows: against bytes written by hand, and against bytes that lie. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/row.h"
#include "failing_allocator.h"

struct fixture {
    struct lahar_schema_catalog *catalog;
    struct lahar_buffer row;
    struct lahar_arena arena;
    uint32_t first; /* id of the first declared field */
};

/* Field ids first + 0 ... in this order. */
static const lahar_field_spec declared[] = {
    {"k", LAHAR_KEYWORD, false},       {"u", LAHAR_UUID, false}, {"i", LAHAR_I64, false},
    {"f", LAHAR_F64, false},           {"b", LAHAR_BOOL, false}, {"us", LAHAR_LIST_UUID, false},
    {"ks", LAHAR_LIST_KEYWORD, false}, {"m", LAHAR_MAP, false},  {"t", LAHAR_TIME, false},
};

static void set_up(struct fixture *fixture)
{
    cr_assert_eq(lahar_schema_catalog_create(&lahar_allocator_libc, &fixture->catalog, NULL),
                 LAHAR_OK);
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "s",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = declared,
                                    .field_count = sizeof declared / sizeof declared[0]};
    uint32_t stream = 0;
    cr_assert_eq(lahar_schema_add_stream(fixture->catalog, &spec, &stream, NULL), LAHAR_OK);
    cr_assert(lahar_schema_find_field(fixture->catalog, "k", 1, &fixture->first));
    lahar_buffer_init(&fixture->row, &lahar_allocator_libc);
    lahar_arena_init(&fixture->arena, &lahar_allocator_libc, 0);
}

static void tear_down(struct fixture *fixture)
{
    lahar_buffer_deinit(&fixture->row);
    lahar_arena_deinit(&fixture->arena);
    lahar_schema_catalog_destroy(fixture->catalog);
}

static lahar_status encode(struct fixture *fixture, const lahar_value *values, size_t count,
                           lahar_error *error)
{
    const lahar_event event = {
        .time_ns = 0x0102030405060708, .stream = 0, .values = values, .value_count = count};
    return lahar_row_encode(&fixture->row, fixture->catalog, &event, error);
}

static lahar_status decode(struct fixture *fixture, lahar_event *event_out)
{
    return lahar_row_decode(fixture->row.data, fixture->row.size, &fixture->arena, event_out, NULL);
}

static lahar_bytes text(const char *s)
{
    return (lahar_bytes){s, strlen(s)};
}

/* Fields are numbered from 10 on: the declared ones follow the built-in names. */
static const char expected_row[] = "\x51\0\0\0"
                                   "\0\0\0\0"
                                   "\x08\x07\x06\x05\x04\x03\x02\x01"
                                   "\x07\0"
                                   "\x0a\0"
                                   "\x01"
                                   "\x03"
                                   "hey"
                                   "\x0b\0"
                                   "\x03"
                                   "\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
                                   "\x0c\0"
                                   "\x04"
                                   "\xfe\xff\xff\xff\xff\xff\xff\xff"
                                   "\x0e\0"
                                   "\x07"
                                   "\x01"
                                   "\x10\0"
                                   "\x0b"
                                   "\x02"
                                   "\x01"
                                   "x"
                                   "\0"
                                   "\x11\0"
                                   "\x0c"
                                   "\x02"
                                   "\x01"
                                   "a"
                                   "\x03"
                                   "bc"
                                   "\x01"
                                   "d"
                                   "\0"
                                   "\x12\0"
                                   "\x88";

Test(row, has_the_bytes_of_the_specification)
{
    struct fixture fixture;
    set_up(&fixture);
    const uint32_t field = fixture.first;
    cr_assert_eq(field, 10);
    const lahar_uuid uuid = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
    const lahar_bytes keywords[] = {text("x"), text("")};
    const lahar_pair pairs[] = {{text("a"), text("bc"), false}, {text("d"), {NULL, 0}, true}};
    lahar_value values[] = {{.field = field, .type = LAHAR_KEYWORD},
                            {.field = field + 1u, .type = LAHAR_UUID},
                            {.field = field + 2u, .type = LAHAR_I64},
                            {.field = field + 4u, .type = LAHAR_BOOL},
                            {.field = field + 6u, .type = LAHAR_LIST_KEYWORD},
                            {.field = field + 7u, .type = LAHAR_MAP},
                            {.field = field + 8u, .type = LAHAR_TIME, .is_null = true}};
    values[0].as.bytes = text("hey");
    values[1].as.uuid = uuid;
    values[2].as.i64 = -2;
    values[3].as.boolean = true;
    values[4].as.keywords.items = keywords;
    values[4].as.keywords.count = 2;
    values[5].as.map.items = pairs;
    values[5].as.map.count = 2;
    cr_assert_eq(encode(&fixture, values, 7, NULL), LAHAR_OK);
    cr_assert_eq(fixture.row.size, 81);
    cr_assert_eq(sizeof expected_row, 81 + 1);
    cr_assert(memcmp(fixture.row.data, expected_row, 81) == 0);
    tear_down(&fixture);
}

Test(row, comes_back_sorted_by_field)
{
    struct fixture fixture;
    set_up(&fixture);
    lahar_value values[] = {{.field = fixture.first + 2, .type = LAHAR_I64},
                            {.field = fixture.first, .type = LAHAR_KEYWORD},
                            {.field = LAHAR_FIELD_OFFSET, .type = LAHAR_U64}};
    values[0].as.i64 = INT64_MIN;
    values[1].as.bytes = text("");
    values[2].as.u64 = UINT64_MAX;
    cr_assert_eq(encode(&fixture, values, 3, NULL), LAHAR_OK);
    lahar_event event;
    cr_assert_eq(decode(&fixture, &event), LAHAR_OK);
    cr_assert_eq(event.time_ns, 0x0102030405060708);
    cr_assert_eq(event.value_count, 3);
    cr_assert_eq(event.values[0].field, (uint32_t)LAHAR_FIELD_OFFSET);
    cr_assert_eq(event.values[0].as.u64, UINT64_MAX);
    cr_assert_eq(event.values[1].as.bytes.size, 0);
    cr_assert_eq(event.values[2].as.i64, INT64_MIN);
    cr_assert_eq(lahar_event_find(&event, fixture.first), &event.values[1]);
    cr_assert_null(lahar_event_find(&event, fixture.first + 1));
    tear_down(&fixture);
}

Test(row, refuses_what_the_stream_does_not_declare)
{
    struct fixture fixture;
    set_up(&fixture);
    lahar_error error = {0};
    const lahar_value undeclared = {.field = LAHAR_FIELD_PREVIOUS, .type = LAHAR_MAP};
    cr_assert_eq(encode(&fixture, &undeclared, 1, &error), LAHAR_INVALID);
    cr_assert_str_eq(error.message, "stream \"s\" does not declare field \"previous_attributes\"");
    error = (lahar_error){0};
    const lahar_value unknown = {.field = 4000000000u, .type = LAHAR_MAP};
    cr_assert_eq(encode(&fixture, &unknown, 1, &error), LAHAR_INVALID);
    cr_assert_str_eq(error.message, "stream \"s\": field 4000000000 is unknown");
    error = (lahar_error){0};
    const lahar_value mistyped = {.field = fixture.first, .type = LAHAR_TEXT};
    cr_assert_eq(encode(&fixture, &mistyped, 1, &error), LAHAR_INVALID);
    cr_assert_str_eq(error.message, "stream \"s\": field \"k\" has type 1, the value type 2");
    const lahar_event event = {.stream = 1};
    cr_assert_eq(lahar_row_encode(&fixture.row, fixture.catalog, &event, NULL), LAHAR_INVALID);
    cr_assert_eq(fixture.row.size, 0);
    tear_down(&fixture);
}

Test(row, refuses_a_field_given_twice)
{
    struct fixture fixture;
    set_up(&fixture);
    const lahar_value values[] = {{.field = fixture.first, .type = LAHAR_KEYWORD},
                                  {.field = fixture.first + 2, .type = LAHAR_I64},
                                  {.field = fixture.first, .type = LAHAR_KEYWORD, .is_null = true}};
    lahar_error error = {0};
    cr_assert_eq(encode(&fixture, values, 3, &error), LAHAR_INVALID);
    cr_assert_str_eq(error.message, "stream \"s\": field \"k\" is given twice");
    tear_down(&fixture);
}

Test(row, takes_an_event_of_the_largest_size_and_no_larger)
{
    struct fixture fixture;
    set_up(&fixture);
    lahar_buffer_put_u8(&fixture.row, 42);
    /* header, field and type, four bytes of size */
    const size_t largest = LAHAR_EVENT_SIZE_MAX - LAHAR_ROW_HEADER_SIZE - 3 - 4;
    char *bytes = calloc(1, largest + 1);
    lahar_value value = {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
    value.as.bytes = (lahar_bytes){bytes, largest + 1};
    cr_assert_eq(encode(&fixture, &value, 1, NULL), LAHAR_TOO_BIG);
    cr_assert_eq(fixture.row.size, 1);
    value.as.bytes.size = SIZE_MAX;
    cr_assert_eq(encode(&fixture, &value, 1, NULL), LAHAR_TOO_BIG);
    value.as.bytes.size = largest;
    cr_assert_eq(encode(&fixture, &value, 1, NULL), LAHAR_OK);
    cr_assert_eq(fixture.row.size, 1 + (size_t)LAHAR_EVENT_SIZE_MAX);
    cr_assert_eq(fixture.row.data[0], 42);
    free(bytes);
    tear_down(&fixture);
}

Test(row, copies_values_of_every_size)
{
    struct fixture fixture;
    set_up(&fixture);
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 151);
    }
    for (size_t size = 0; size < sizeof bytes; size++) {
        /* A copy of its own, so that reading beyond its end would be seen. */
        uint8_t *copy = malloc(size);
        memcpy(copy, bytes, size);
        lahar_value value = {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
        value.as.bytes = (lahar_bytes){copy, size};
        lahar_buffer_clear(&fixture.row);
        cr_assert_eq(encode(&fixture, &value, 1, NULL), LAHAR_OK);
        cr_assert_eq(fixture.row.size, 18 + 3 + (size < 128 ? 1u : 2u) + size);
        cr_assert_arr_eq(fixture.row.data + fixture.row.size - size, bytes, size);
        free(copy);
    }
    tear_down(&fixture);
}

Test(row, leaves_the_buffer_unchanged_when_memory_is_refused)
{
    struct fixture fixture;
    set_up(&fixture);
    char bytes[3000] = {0};
    const lahar_pair pair = {text("key"), {bytes, sizeof bytes}, false};
    lahar_value values[2] = {{.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT},
                             {.field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP}};
    values[0].as.bytes = (lahar_bytes){bytes, sizeof bytes};
    values[1].as.map.items = &pair;
    values[1].as.map.count = 1;
    const lahar_event event = {.values = values, .value_count = 2};
    for (uint64_t n = 0;; n++) {
        struct failing_allocator failing;
        failing_allocator_init(&failing, n);
        struct lahar_buffer row;
        lahar_buffer_init(&row, &failing.allocator);
        const lahar_status status = lahar_row_encode(&row, fixture.catalog, &event, NULL);
        cr_assert_eq(row.size, status == LAHAR_OK ? 18u + 3 + 2 + 3000 + 3 + 1 + 4 + 2 + 3000 : 0u);
        cr_assert_not(row.has_failed);
        lahar_buffer_deinit(&row);
        cr_assert_eq(failing.live_count, 0);
        if (failing.refused_count == 0) {
            cr_assert_eq(status, LAHAR_OK);
            cr_assert_gt(n, 0);
            break;
        }
        cr_assert_eq(status, LAHAR_NO_MEMORY);
    }
    tear_down(&fixture);
}

/* A row to damage: every kind of value in it. */
static void encode_everything(struct fixture *fixture)
{
    const lahar_uuid uuids[2] = {{{1}}, {{2}}};
    const lahar_bytes keywords[] = {text("one"), text("two"), text("")};
    const lahar_pair pairs[] = {{text("a"), text("bc"), false}, {text("d"), {NULL, 0}, true}};
    lahar_value values[] = {{.field = fixture->first, .type = LAHAR_KEYWORD},
                            {.field = fixture->first + 1, .type = LAHAR_UUID},
                            {.field = fixture->first + 3, .type = LAHAR_F64},
                            {.field = fixture->first + 4, .type = LAHAR_BOOL},
                            {.field = fixture->first + 5, .type = LAHAR_LIST_UUID},
                            {.field = fixture->first + 6, .type = LAHAR_LIST_KEYWORD},
                            {.field = fixture->first + 7, .type = LAHAR_MAP}};
    values[0].as.bytes = text("hello");
    values[1].as.uuid = uuids[0];
    values[4].as.uuids.items = uuids;
    values[4].as.uuids.count = 2;
    values[5].as.keywords.items = keywords;
    values[5].as.keywords.count = 3;
    values[6].as.map.items = pairs;
    values[6].as.map.count = 2;
    cr_assert_eq(encode(fixture, values, 7, NULL), LAHAR_OK);
}

Test(row, is_refused_when_cut_short_anywhere)
{
    struct fixture fixture;
    set_up(&fixture);
    encode_everything(&fixture);
    for (size_t size = 0; size < fixture.row.size; size++) {
        uint8_t *copy = malloc(size);
        memcpy(copy, fixture.row.data, size);
        lahar_event event;
        cr_assert_eq(lahar_row_decode(copy, size, &fixture.arena, &event, NULL), LAHAR_CORRUPT);
        /* Also when the size inside is made to agree. */
        if (size >= LAHAR_ROW_HEADER_SIZE) {
            lahar_store_u32(copy, (uint32_t)size);
            cr_assert_eq(lahar_row_decode(copy, size, &fixture.arena, &event, NULL), LAHAR_CORRUPT);
        }
        free(copy);
    }
    tear_down(&fixture);
}

Test(row, survives_any_byte_being_any_other)
{
    struct fixture fixture;
    set_up(&fixture);
    encode_everything(&fixture);
    uint8_t *copy = malloc(fixture.row.size);
    size_t refused = 0;
    for (size_t at = 4; at < fixture.row.size; at++) {
        for (unsigned v = 0; v < 256; v++) {
            memcpy(copy, fixture.row.data, fixture.row.size);
            copy[at] = (uint8_t)v;
            lahar_event event;
            const lahar_status status =
                lahar_row_decode(copy, fixture.row.size, &fixture.arena, &event, NULL);
            cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT);
            refused += status == LAHAR_CORRUPT;
            lahar_arena_reset(&fixture.arena);
        }
    }
    cr_assert_gt(refused, 1000);
    free(copy);
    tear_down(&fixture);
}

Test(row, does_not_believe_counts)
{
    struct fixture fixture;
    set_up(&fixture);
    /* A list of 2^60 uuids in a row of 30 bytes. */
    uint8_t row[31] = {31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0, 10};
    (void)lahar_put_varint(row + 21, UINT64_C(1) << 60);
    lahar_event event;
    cr_assert_eq(lahar_row_decode(row, sizeof row, &fixture.arena, &event, NULL), LAHAR_CORRUPT);
    cr_assert_lt(fixture.arena.used_bytes, 4096);
    tear_down(&fixture);
}

Test(row, is_refused_with_a_field_twice)
{
    struct fixture fixture;
    set_up(&fixture);
    uint8_t row[] = {27, 0, 0, 0, 0, 0, 0,    0, 0, 0,    0, 0, 0,   0,
                     0,  0, 3, 0, 5, 0, 0x81, 4, 0, 0x81, 6, 0, 0x81};
    lahar_event event;
    cr_assert_eq(lahar_row_decode(row, sizeof row, &fixture.arena, &event, NULL), LAHAR_OK);
    cr_assert_eq(event.values[0].field, 4);
    row[24] = 5;
    cr_assert_eq(lahar_row_decode(row, sizeof row, &fixture.arena, &event, NULL), LAHAR_CORRUPT);
    tear_down(&fixture);
}
