/* Batches and streams: staging, limits, refusals, offsets. */
#include "failing_allocator.h"
#include "store_fixture.h"

Test(store_batch, refuses_what_is_too_big_and_stays_as_it_was)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    /* 64 MiB of memory: half for writing, a quarter of that for one batch. */
    const size_t limit = 8 << 20;
    char *text = malloc(limit);
    memset(text, 'x', limit);
    lahar_value value = {
        .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {text, limit - 100}};
    const lahar_event event = {.stream = stream, .values = &value, .value_count = 1};
    cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_OK);
    const size_t size = lahar_batch_size(batch);
    cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_TOO_BIG);
    const lahar_bytes large = {text, 200};
    cr_assert_eq(lahar_batch_add_offset(batch, large, large, large, NULL), LAHAR_TOO_BIG);
    cr_assert_eq(lahar_batch_size(batch), size);
    cr_assert_eq(lahar_batch_event_count(batch), 1);
    uint64_t id = 0;
    cr_assert_eq(lahar_batch_commit(batch, NULL, &id, NULL), LAHAR_OK);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_cursor *cursor = NULL;
    const lahar_event *found = NULL;
    cr_assert_eq(lahar_get(fixture.store, &id, 1, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &found, NULL), LAHAR_OK);
    cr_assert_eq(found->values[0].as.bytes.size, limit - 100);
    cr_assert_eq(memcmp(found->values[0].as.bytes.data, text, limit - 100), 0);
    lahar_cursor_close(cursor);
    lahar_batch_destroy(batch);
    free(text);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_batch, refuses_unknown_streams_and_nonsense_options)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    lahar_event event = {.stream = 5};
    cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_batch_event_count(batch), 0);
    uint64_t id = 7;
    cr_assert_eq(lahar_batch_commit(batch, NULL, &id, NULL), LAHAR_OK);
    cr_assert_eq(id, 0);
    event.stream = stream;
    cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_OK);
    lahar_append_options options = {sizeof options, (lahar_durability)12, 0};
    cr_assert_eq(lahar_batch_commit(batch, &options, &id, NULL), LAHAR_INVALID);
    options.struct_size = 1;
    cr_assert_eq(lahar_batch_commit(batch, &options, &id, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_append(batch, &event, NULL, &id, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_batch_event_count(batch), 1);
    lahar_batch_clear(batch);
    cr_assert_eq(lahar_append(batch, &event, NULL, &id, NULL), LAHAR_OK);
    cr_assert_eq(id, 1);
    lahar_batch_destroy(batch);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_batch, keeps_a_single_event_that_was_not_appended)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    const lahar_event event = {.stream = store_fixture_stream(&fixture, 0)};
    const lahar_append_options wrong = {sizeof wrong, (lahar_durability)12, 0};
    uint64_t id = 7;
    cr_assert_eq(lahar_append(batch, &event, &wrong, &id, NULL), LAHAR_INVALID);
    cr_assert_eq(id, 0);
    cr_assert_eq(lahar_batch_event_count(batch), 1);
    cr_assert_eq(lahar_append(batch, &event, NULL, &id, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_batch_event_count(batch), 1);
    cr_assert_eq(lahar_batch_commit(batch, NULL, &id, NULL), LAHAR_OK);
    cr_assert_eq(id, 1);
    cr_assert_eq(lahar_batch_event_count(batch), 0);
    lahar_batch_destroy(batch);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_batch, allocates_nothing_once_warm)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    struct failing_allocator allocator;
    failing_allocator_init(&allocator, UINT64_MAX);
    fixture.options.allocator = &allocator.allocator;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    uint64_t before = 0;
    for (unsigned i = 0; i < 200; i++) {
        if (i == 100) {
            before = allocator.request_count;
        }
        cr_assert_eq(
            store_fixture_append(&fixture, batch, &stream, 1, 10, LAHAR_DURABILITY_INTERVAL),
            LAHAR_OK);
    }
    cr_assert_eq(allocator.request_count, before);
    lahar_batch_destroy(batch);
    store_fixture_close(&fixture);
    cr_assert_eq(allocator.live_count, 0);
    store_fixture_deinit(&fixture);
}

static lahar_status write_offset(void *context, lahar_bytes key, lahar_bytes value)
{
    char *text = context;
    (void)snprintf(text + strlen(text), 100, "%.*s=%.*s ", (int)key.size, (const char *)key.data,
                   (int)value.size, (const char *)value.data);
    return LAHAR_OK;
}

static void check_offsets(struct store_fixture *fixture, const char *source, const char *expected)
{
    char text[400] = "";
    cr_assert_eq(lahar_offset_visit(fixture->store, (lahar_bytes){source, strlen(source)},
                                    write_offset, text, NULL),
                 LAHAR_OK);
    cr_assert_str_eq(text, expected);
}

static void set_offset(lahar_batch *batch, const char *source, const char *key, const char *value)
{
    cr_assert_eq(lahar_batch_add_offset(batch, (lahar_bytes){source, strlen(source)},
                                        (lahar_bytes){key, strlen(key)},
                                        (lahar_bytes){value, strlen(value)}, NULL),
                 LAHAR_OK);
}

Test(store_batch, remembers_how_far_sources_are_consumed)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    check_offsets(&fixture, "a", "");
    set_offset(batch, "a", "f2", "20");
    set_offset(batch, "a", "f1", "10");
    set_offset(batch, "b", "f1", "99");
    check_offsets(&fixture, "a", "");
    cr_assert_eq(store_fixture_append(&fixture, batch, &stream, 1, 3, LAHAR_DURABILITY_INTERVAL),
                 LAHAR_OK);
    check_offsets(&fixture, "a", "f1=10 f2=20 ");
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    check_offsets(&fixture, "a", "f1=10 f2=20 ");
    /* Without events; replaces one, forgets one, adds one. */
    set_offset(batch, "a", "f1", "11");
    set_offset(batch, "a", "f2", "");
    set_offset(batch, "a", "f3", "30");
    cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, NULL), LAHAR_OK);
    check_offsets(&fixture, "a", "f1=11 f3=30 ");
    lahar_batch_destroy(batch);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    check_offsets(&fixture, "a", "f1=11 f3=30 ");
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    check_offsets(&fixture, "a", "f1=11 f3=30 ");
    store_fixture_close(&fixture);
    fixture.options.read_only = true;
    store_fixture_open(&fixture);
    check_offsets(&fixture, "a", "f1=11 f3=30 ");
    check_offsets(&fixture, "b", "f1=99 ");
    check_offsets(&fixture, "c", "");
    check_scan(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_streams, keep_their_numbers_fields_and_counts)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const lahar_field_spec fields[] = {{"job", LAHAR_KEYWORD, true}, {"size", LAHAR_U64, false}};
    lahar_stream_spec spec = {.struct_size = sizeof spec,
                              .name = "jobs",
                              .schema = LAHAR_SCHEMA_LOG,
                              .fields = fields,
                              .field_count = 2};
    uint32_t stream = 9;
    lahar_error error = {0};
    cr_assert_eq(lahar_stream_create(fixture.store, &spec, &stream, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(stream, 0);
    cr_assert_eq(lahar_stream_create(fixture.store, &spec, &stream, NULL), LAHAR_EXISTS);
    cr_assert_eq(stream, 0);
    spec.name = ".bad";
    cr_assert_eq(lahar_stream_create(fixture.store, &spec, &stream, NULL), LAHAR_INVALID);
    const lahar_field_spec twice[] = {{"only_here", LAHAR_U64, false},
                                      {"only_here", LAHAR_U64, false}};
    spec.name = "bad";
    spec.fields = twice;
    cr_assert_eq(lahar_stream_create(fixture.store, &spec, &stream, NULL), LAHAR_INVALID);
    uint32_t field = 0;
    cr_assert_eq(lahar_field_id(fixture.store, "only_here", &field, NULL), LAHAR_NOT_FOUND);
    spec = (lahar_stream_spec){
        .struct_size = sizeof spec, .name = "flow", .schema = LAHAR_SCHEMA_PROVENANCE};
    cr_assert_eq(lahar_stream_create(fixture.store, &spec, &stream, NULL), LAHAR_OK);
    cr_assert_eq(stream, 1);
    uint32_t job = 0;
    cr_assert_eq(lahar_field_id(fixture.store, "job", &job, NULL), LAHAR_OK);
    const uint32_t jobs = 0;
    store_fixture_add(&fixture, &jobs, 1, 5);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_add(&fixture, &jobs, 1, 4);
    cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_crash(&fixture, 3, false);
    store_fixture_open(&fixture);
    cr_assert_eq(lahar_stream_find(fixture.store, "flow", &stream, NULL), LAHAR_OK);
    cr_assert_eq(stream, 1);
    cr_assert_eq(lahar_stream_find(fixture.store, "gone", &stream, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_field_id(fixture.store, "job", &field, NULL), LAHAR_OK);
    cr_assert_eq(field, job);
    cr_assert_str_eq(lahar_field_name(fixture.store, job), "job");
    cr_assert_null(lahar_field_name(fixture.store, 60000));
    cr_assert_str_eq(lahar_stream_name(fixture.store, 1), "flow");
    cr_assert_null(lahar_stream_name(fixture.store, 2));
    lahar_stream_info info;
    cr_assert_eq(lahar_stream_info_get(fixture.store, 0, &info, NULL), LAHAR_OK);
    cr_assert_str_eq(info.name, "jobs");
    cr_assert_eq(info.schema, LAHAR_SCHEMA_LOG);
    cr_assert_eq(info.event_count, 9);
    cr_assert_eq(info.first_id, fixture.events[0].id);
    cr_assert_eq(info.last_id, fixture.events[8].id);
    bool has_job = false;
    for (size_t i = 0; i < info.field_count; i++) {
        lahar_field_info found;
        cr_assert_eq(lahar_stream_field(fixture.store, 0, i, &found, NULL), LAHAR_OK);
        if (found.field == job) {
            has_job = true;
            cr_assert(found.not_indexed);
            cr_assert_eq(found.type, LAHAR_KEYWORD);
        }
    }
    cr_assert(has_job);
    lahar_field_info beyond;
    cr_assert_eq(lahar_stream_field(fixture.store, 0, info.field_count, &beyond, NULL),
                 LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_stream_info_get(fixture.store, 2, &info, NULL), LAHAR_NOT_FOUND);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}
