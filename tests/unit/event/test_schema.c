/* The catalog of names and streams. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/event/schema.h"
#include "failing_allocator.h"

static struct lahar_schema_catalog *create(void)
{
    struct lahar_schema_catalog *catalog = NULL;
    cr_assert_eq(lahar_schema_catalog_create(&lahar_allocator_libc, &catalog, NULL), LAHAR_OK);
    return catalog;
}

static lahar_status add(struct lahar_schema_catalog *catalog, const char *name,
                        const lahar_field_spec *fields, size_t field_count, uint32_t *stream_out,
                        lahar_error *error)
{
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = name,
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = fields,
                                    .field_count = field_count};
    return lahar_schema_add_stream(catalog, &spec, stream_out, error);
}

Test(schema, has_the_built_in_names_from_the_start)
{
    static const char *const names[] = {
        "message",     "level",  "attributes", "_filename", "_offset",
        "_raw_record", "_error", "_framing",   "_shape",    "previous_attributes"};
    struct lahar_schema_catalog *catalog = create();
    cr_assert_eq(lahar_schema_field_count(catalog), 10);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t field = 99;
        cr_assert_str_eq(lahar_schema_field_name(catalog, i), names[i]);
        cr_assert(lahar_schema_find_field(catalog, names[i], strlen(names[i]), &field));
        cr_assert_eq(field, i);
    }
    cr_assert_null(lahar_schema_field_name(catalog, 10));
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, gives_a_log_stream_its_fields)
{
    struct lahar_schema_catalog *catalog = create();
    uint32_t number = 99;
    cr_assert_eq(add(catalog, "logs", NULL, 0, &number, NULL), LAHAR_OK);
    cr_assert_eq(number, 0);
    const struct lahar_stream *stream = lahar_schema_stream(catalog, 0);
    cr_assert_str_eq(stream->name, "logs");
    cr_assert_eq(stream->field_count, 9);
    const struct lahar_stream_field *framing = lahar_stream_find_field(stream, LAHAR_FIELD_FRAMING);
    cr_assert(framing->is_hidden && !framing->is_indexed && framing->type == LAHAR_BYTES);
    const struct lahar_stream_field *message = lahar_stream_find_field(stream, LAHAR_FIELD_MESSAGE);
    cr_assert(!message->is_hidden && message->is_indexed && message->type == LAHAR_TEXT);
    cr_assert_null(lahar_stream_find_field(stream, LAHAR_FIELD_PREVIOUS));
    cr_assert_eq(lahar_schema_find_stream(catalog, "logs", 4), stream);
    cr_assert_null(lahar_schema_find_stream(catalog, "log", 3));
    cr_assert_null(lahar_schema_stream(catalog, 1));
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, gives_a_provenance_stream_its_fields)
{
    static const struct {
        const char *name;
        lahar_type type;
    } expected[] = {{"type", LAHAR_KEYWORD},
                    {"lineage_start", LAHAR_TIME},
                    {"duration", LAHAR_I64},
                    {"details", LAHAR_TEXT},
                    {"component", LAHAR_KEYWORD},
                    {"uuid", LAHAR_UUID},
                    {"size", LAHAR_U64},
                    {"parents", LAHAR_LIST_UUID},
                    {"children", LAHAR_LIST_UUID},
                    {"claim.container", LAHAR_KEYWORD},
                    {"claim.offset", LAHAR_U64},
                    {"prev_claim.id", LAHAR_KEYWORD},
                    {"prev_claim.size", LAHAR_U64},
                    {"attributes", LAHAR_MAP},
                    {"previous_attributes", LAHAR_MAP}};
    struct lahar_schema_catalog *catalog = create();
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "p", .schema = LAHAR_SCHEMA_PROVENANCE};
    uint32_t number = 0;
    cr_assert_eq(lahar_schema_add_stream(catalog, &spec, &number, NULL), LAHAR_OK);
    const struct lahar_stream *stream = lahar_schema_stream(catalog, number);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        uint32_t field = 0;
        cr_assert(
            lahar_schema_find_field(catalog, expected[i].name, strlen(expected[i].name), &field));
        const struct lahar_stream_field *found = lahar_stream_find_field(stream, field);
        cr_assert_not_null(found, "%s", expected[i].name);
        cr_assert_eq(found->type, expected[i].type, "%s", expected[i].name);
    }
    for (uint32_t i = 1; i < stream->field_count; i++) {
        cr_assert_lt(stream->fields[i - 1].field, stream->fields[i].field);
    }
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, shares_names_between_streams)
{
    struct lahar_schema_catalog *catalog = create();
    const lahar_field_spec as_number = {"count", LAHAR_U64, true};
    const lahar_field_spec as_text = {"count", LAHAR_TEXT, false};
    uint32_t a = 0;
    uint32_t b = 0;
    cr_assert_eq(add(catalog, "a", &as_number, 1, &a, NULL), LAHAR_OK);
    cr_assert_eq(add(catalog, "b", &as_text, 1, &b, NULL), LAHAR_OK);
    cr_assert_eq(lahar_schema_field_count(catalog), 11);
    const struct lahar_stream_field *number =
        lahar_stream_find_field(lahar_schema_stream(catalog, a), 10);
    const struct lahar_stream_field *text =
        lahar_stream_find_field(lahar_schema_stream(catalog, b), 10);
    cr_assert(number->type == LAHAR_U64 && !number->is_indexed);
    cr_assert(text->type == LAHAR_TEXT && text->is_indexed);
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, says_that_a_stream_exists)
{
    struct lahar_schema_catalog *catalog = create();
    uint32_t number = 99;
    cr_assert_eq(add(catalog, "a", NULL, 0, &number, NULL), LAHAR_OK);
    cr_assert_eq(add(catalog, "b", NULL, 0, &number, NULL), LAHAR_OK);
    lahar_error error = {0};
    cr_assert_eq(add(catalog, "a", NULL, 0, &number, &error), LAHAR_EXISTS);
    cr_assert_eq(number, 0);
    cr_assert_str_eq(error.message, "there is a stream \"a\" already");
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, refuses_bad_stream_names)
{
    char long_name[257];
    memset(long_name, 'x', 256);
    long_name[256] = '\0';
    const char *const bad[] = {"", ".a", "-a", "a b", "a/b", "\xc3\xa9", long_name, "a\n"};
    struct lahar_schema_catalog *catalog = create();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lahar_error error = {0};
        uint32_t number = 0;
        cr_assert_eq(add(catalog, bad[i], NULL, 0, &number, &error), LAHAR_INVALID, "%s", bad[i]);
        cr_assert_neq(error.message[0], '\0');
    }
    uint32_t number = 0;
    long_name[255] = '\0';
    cr_assert_eq(add(catalog, long_name, NULL, 0, &number, NULL), LAHAR_OK);
    cr_assert_eq(add(catalog, "A_z-0.9", NULL, 0, &number, NULL), LAHAR_OK);
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, refuses_bad_fields)
{
    static const lahar_field_spec bad[] = {{"", LAHAR_TEXT, false},
                                           {"a\tb", LAHAR_TEXT, false},
                                           {"\xff", LAHAR_TEXT, false},
                                           {"\xc0\xaf", LAHAR_TEXT, false},
                                           {"\xed\xa0\x80", LAHAR_TEXT, false},
                                           {"\xe2\x82", LAHAR_TEXT, false},
                                           {"id", LAHAR_U64, false},
                                           {"time", LAHAR_TIME, false},
                                           {"arrival", LAHAR_TIME, false},
                                           {"stream", LAHAR_KEYWORD, false},
                                           {"attr.x", LAHAR_TEXT, false},
                                           {"prev.x", LAHAR_TEXT, false},
                                           {"message", LAHAR_U64, false},
                                           {"previous_attributes", LAHAR_TEXT, false},
                                           {"x", (lahar_type)0, false},
                                           {"x", (lahar_type)13, false},
                                           {NULL, LAHAR_TEXT, false}};
    struct lahar_schema_catalog *catalog = create();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lahar_error error = {0};
        uint32_t number = 0;
        cr_assert_eq(add(catalog, "s", &bad[i], 1, &number, &error), LAHAR_INVALID, "field %zu", i);
        cr_assert_neq(error.message[0], '\0');
    }
    const lahar_field_spec twice[] = {{"x", LAHAR_TEXT, false}, {"x", LAHAR_TEXT, false}};
    uint32_t number = 0;
    cr_assert_eq(add(catalog, "s", twice, 2, &number, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_schema_stream_count(catalog), 0);
    const lahar_field_spec good[] = {{"\xe2\x82\xac uro", LAHAR_TEXT, false},
                                     {"message", LAHAR_TEXT, true}};
    cr_assert_eq(add(catalog, "s", good, 2, &number, NULL), LAHAR_OK);
    cr_assert_not(lahar_stream_find_field(lahar_schema_stream(catalog, number), 0)->is_indexed);
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, holds_as_many_names_as_promised)
{
    struct lahar_schema_catalog *catalog = create();
    char name[32];
    uint32_t field = 0;
    for (uint32_t i = 10; i < LAHAR_FIELD_COUNT_MAX; i++) {
        const int size = snprintf(name, sizeof name, "field-%u", i);
        cr_assert_eq(lahar_schema_intern(catalog, name, (size_t)size, &field, NULL), LAHAR_OK);
        cr_assert_eq(field, i);
    }
    lahar_error error = {0};
    cr_assert_eq(lahar_schema_intern(catalog, "one more", 8, &field, &error), LAHAR_BUSY);
    cr_assert_str_eq(error.message, "a store has at most 65535 field names");
    for (uint32_t i = 10; i < LAHAR_FIELD_COUNT_MAX; i += 1009) {
        const int size = snprintf(name, sizeof name, "field-%u", i);
        cr_assert(lahar_schema_find_field(catalog, name, (size_t)size, &field));
        cr_assert_eq(field, i);
        cr_assert_str_eq(lahar_schema_field_name(catalog, i), name);
    }
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, holds_as_many_streams_as_promised)
{
    struct lahar_schema_catalog *catalog = create();
    uint32_t number = 0;
    char name[32];
    for (uint32_t i = 0; i < LAHAR_STREAM_COUNT_MAX; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        cr_assert_eq(add(catalog, name, NULL, 0, &number, NULL), LAHAR_OK);
        cr_assert_eq(number, i);
    }
    cr_assert_eq(add(catalog, "more", NULL, 0, &number, NULL), LAHAR_BUSY);
    cr_assert_eq(lahar_schema_stream_count(catalog), (uint32_t)LAHAR_STREAM_COUNT_MAX);
    lahar_schema_catalog_destroy(catalog);
}

Test(schema, survives_every_refused_allocation)
{
    const lahar_field_spec field = {"count", LAHAR_U64, false};
    for (uint64_t n = 0; n < 100; n++) {
        struct failing_allocator failing;
        failing_allocator_init(&failing, n);
        struct lahar_schema_catalog *catalog = NULL;
        lahar_status status = lahar_schema_catalog_create(&failing.allocator, &catalog, NULL);
        uint32_t number = 0;
        if (status == LAHAR_OK) {
            status = add(catalog, "s", &field, 1, &number, NULL);
            if (status == LAHAR_NO_MEMORY) {
                cr_assert_eq(lahar_schema_stream_count(catalog), 0);
                cr_assert_eq(add(catalog, "s", &field, 1, &number, NULL), LAHAR_OK);
            }
            lahar_schema_catalog_destroy(catalog);
        }
        cr_assert_eq(failing.live_count, 0);
        cr_assert_eq(status, failing.refused_count == 0 ? LAHAR_OK : LAHAR_NO_MEMORY);
        if (failing.refused_count == 0) {
            cr_assert_gt(n, 10);
            return;
        }
    }
    cr_assert_fail("no run without a refusal");
}
