/* Rollover: limits of groups, failures, what ends up in the index. */
#include "../store/store_fixture.h"
#include "engine/rollover/rollover.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"

static lahar_stat stat_of(struct store_fixture *fixture)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    return stat;
}

static void step_all(struct store_fixture *fixture, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        for (uint32_t work = 0; work < LAHAR_WORK_COUNT; work++) {
            (void)lahar_store_step(fixture->store, work);
        }
    }
}

Test(rollover, begins_by_itself_at_a_count)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.options.group_event_count = 100;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 99);
    step_all(&fixture, 50);
    cr_assert_eq(stat_of(&fixture).rollovers, 0);
    store_fixture_add(&fixture, &stream, 1, 1);
    step_all(&fixture, 50);
    cr_assert_eq(stat_of(&fixture).rollovers, 1);
    cr_assert_eq(stat_of(&fixture).resident_bytes, 0);
    check_scan(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(rollover, begins_by_itself_at_a_size)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.options.group_size_bytes = 20000;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 100);
    step_all(&fixture, 50);
    cr_assert_eq(stat_of(&fixture).rollovers, 0);
    store_fixture_add(&fixture, &stream, 1, 400);
    step_all(&fixture, 50);
    cr_assert_eq(stat_of(&fixture).rollovers, 1);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(rollover, begins_by_itself_at_an_age)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.options.group_age_max_ms = 5000;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 1);
    step_all(&fixture, 10);
    lahar_sim_disk_advance(fixture.disk, UINT64_C(4500000000));
    /* A wall clock that jumps is no age. */
    lahar_sim_disk_set_realtime(fixture.disk, INT64_C(4000000000000000000));
    step_all(&fixture, 10);
    cr_assert_eq(stat_of(&fixture).rollovers, 0);
    lahar_sim_disk_advance(fixture.disk, UINT64_C(600000000));
    step_all(&fixture, 50);
    cr_assert_eq(stat_of(&fixture).rollovers, 1);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(rollover, compresses_as_hard_as_the_backlog_allows)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.options.group_size_bytes = 40000;
    store_fixture_open(&fixture);
    struct lahar_rollover *rollover = fixture.store->rollover;
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    cr_assert_eq(lahar_rollover_level(rollover, 0), 6);
    while (stat_of(&fixture).resident_bytes <= 10000) {
        store_fixture_add(&fixture, &stream, 1, 10);
    }
    const uint64_t resident_bytes = stat_of(&fixture).resident_bytes;
    /* What is being rolled is no backlog; a quarter of a group behind it is none yet. */
    cr_assert_eq(lahar_rollover_level(rollover, resident_bytes), 6);
    cr_assert_eq(lahar_rollover_level(rollover, resident_bytes - 10000), 6);
    cr_assert_eq(lahar_rollover_level(rollover, resident_bytes - 10001), 1);
    store_fixture_close(&fixture);
    fixture.options.compression_level = 9;
    store_fixture_open(&fixture);
    cr_assert_eq(lahar_rollover_level(fixture.store->rollover, 0), 9);
    store_fixture_close(&fixture);
    fixture.options.no_compression = true;
    store_fixture_open(&fixture);
    cr_assert_eq(lahar_rollover_level(fixture.store->rollover, 0), 0);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(rollover, splits_what_is_more_than_a_group)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    fixture.config.group_event_max = 40;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    for (unsigned i = 0; i < 20; i++) {
        store_fixture_add(&fixture, &stream, 1, 15);
    }
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    /* Two batches of 15 fit, three do not. */
    cr_assert_eq(stat_of(&fixture).rollovers, 10);
    cr_assert_eq(stat_of(&fixture).event_file_count, 10);
    check_scan(&fixture);
    check_get(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(rollover, of_many_streams_makes_a_file_for_each)
{
    enum {
        STREAMS = 150
    };
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    uint32_t streams[STREAMS];
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i] = store_fixture_stream(&fixture, i);
    }
    for (unsigned i = 0; i < 10; i++) {
        store_fixture_add(&fixture, streams, STREAMS, 77);
    }
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    cr_assert_eq(stat_of(&fixture).event_file_count, STREAMS);
    check_scan(&fixture);
    check_get(&fixture);
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    options.newest_first = true;
    check_scan_of(&fixture, &options, fixture.event_count);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    check_scan(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

struct count {
    unsigned temporary;
    unsigned files;
};

static lahar_status count_file(void *context, const char *name, bool is_directory)
{
    struct count *count = context;
    (void)is_directory;
    count->files += strncmp(name, "names-", 6) != 0; /* a copy of the names is always there */
    count->temporary += strstr(name, ".tmp") != NULL;
    return LAHAR_OK;
}

static struct count count_files(struct store_fixture *fixture)
{
    struct count count = {0};
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store/events", count_file, &count, NULL),
                 LAHAR_OK);
    return count;
}

/* The disk is full at each operation of a rollover in turn. */
Test(rollover, throws_its_files_away_when_space_runs_out_and_tries_again)
{
    bool has_struck = true;
    for (uint64_t n = 0; has_struck; n++) {
        struct store_fixture fixture;
        store_fixture_init(&fixture, n);
        store_fixture_open(&fixture);
        const uint32_t streams[] = {store_fixture_stream(&fixture, 0),
                                    store_fixture_stream(&fixture, 1)};
        store_fixture_add(&fixture, streams, 2, 50);
        cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_ENOSPC,
                             lahar_sim_disk_operations(fixture.disk) + n, 1, NULL);
        const lahar_status status = lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL);
        has_struck = lahar_sim_disk_fault_count(fixture.disk) != 0;
        lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
        cr_assert(status == LAHAR_OK || (has_struck && status == LAHAR_NO_SPACE), "fault at %lu",
                  (unsigned long)n);
        check_scan(&fixture);
        if (status != LAHAR_OK) {
            cr_assert_eq(count_files(&fixture).files, 0, "fault at %lu", (unsigned long)n);
            cr_assert_eq(stat_of(&fixture).rollover_failures, 1);
            cr_assert_eq(stat_of(&fixture).poisoned, LAHAR_OK);
        }
        store_fixture_add(&fixture, streams, 2, 5);
        cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        check_scan(&fixture);
        cr_assert_eq(count_files(&fixture).temporary, 0);
        store_fixture_close(&fixture);
        store_fixture_open(&fixture);
        check_scan(&fixture);
        store_fixture_close(&fixture);
        store_fixture_deinit(&fixture);
        cr_assert_lt(n, 200);
    }
}

/* The same with a device that fails. */
Test(rollover, survives_a_failing_device_without_losing_an_event)
{
    bool has_struck = true;
    for (uint64_t n = 0; has_struck; n++) {
        struct store_fixture fixture;
        store_fixture_init(&fixture, n);
        store_fixture_open(&fixture);
        const uint32_t stream = store_fixture_stream(&fixture, 0);
        store_fixture_add(&fixture, &stream, 1, 50);
        cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_EIO,
                             lahar_sim_disk_operations(fixture.disk) + n, 1, NULL);
        const lahar_status status = lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL);
        has_struck = lahar_sim_disk_fault_count(fixture.disk) != 0;
        lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
        check_scan(&fixture);
        if (status == LAHAR_POISONED) {
            lahar_batch *batch = NULL;
            cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
            const size_t before = fixture.event_count;
            cr_assert_eq(
                store_fixture_append(&fixture, batch, &stream, 1, 1, LAHAR_DURABILITY_INTERVAL),
                LAHAR_POISONED);
            cr_assert_eq(fixture.event_count, before);
            lahar_batch_destroy(batch);
            cr_assert_eq(lahar_store_close(fixture.store, LAHAR_WAIT_FOREVER, NULL),
                         LAHAR_POISONED);
            fixture.store = NULL;
        } else {
            cr_assert(status == LAHAR_OK || status == LAHAR_IO, "%d", (int)status);
            store_fixture_close(&fixture);
        }
        store_fixture_open(&fixture);
        check_scan(&fixture);
        store_fixture_close(&fixture);
        store_fixture_deinit(&fixture);
        cr_assert_lt(n, 200);
    }
}

/* Documents of the only shard that a look-up finds. */
static uint64_t count_keyword(struct lahar_shard *shard, const char *field, const char *value)
{
    uint32_t number = 0;
    if (!lahar_shard_find_field(shard, field, strlen(field), LAHAR_CLASS_KEYWORD, &number)) {
        return UINT64_MAX;
    }
    struct lahar_docset set;
    bool is_exact = true;
    cr_assert_eq(
        lahar_docset_init(&set, lahar_shard_document_count(shard), &lahar_allocator_libc, NULL),
        LAHAR_OK);
    cr_assert_eq(value == NULL ? lahar_shard_present(shard, number, &set, NULL)
                               : lahar_shard_keyword(shard, number, value, strlen(value), false,
                                                     &set, &is_exact, NULL),
                 LAHAR_OK);
    const uint64_t count = lahar_docset_count(&set);
    lahar_docset_deinit(&set);
    return count;
}

static uint64_t count_number(struct lahar_shard *shard, const char *field, uint64_t number)
{
    uint32_t column = 0;
    cr_assert(lahar_shard_find_field(shard, field, strlen(field), LAHAR_CLASS_NUMBER, &column));
    struct lahar_docset set;
    cr_assert_eq(
        lahar_docset_init(&set, lahar_shard_document_count(shard), &lahar_allocator_libc, NULL),
        LAHAR_OK);
    cr_assert_eq(lahar_shard_number(shard, column, number, number, &set, NULL), LAHAR_OK);
    const uint64_t count = lahar_docset_count(&set);
    lahar_docset_deinit(&set);
    return count;
}

static uint32_t field_of(struct store_fixture *fixture, const char *name)
{
    uint32_t field = 0;
    cr_assert_eq(lahar_field_id(fixture->store, name, &field, NULL), LAHAR_OK);
    return field;
}

static const lahar_uuid sample_uuid = {{0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

/* One event with a value of each type, rolled over. */
static void append_typed_event(struct store_fixture *fixture)
{
    const lahar_field_spec fields[] = {
        {"kind", LAHAR_KEYWORD, false},    {"secret", LAHAR_KEYWORD, true},
        {"owner", LAHAR_UUID, false},      {"delta", LAHAR_I64, false},
        {"ratio", LAHAR_F64, false},       {"flag", LAHAR_BOOL, false},
        {"at", LAHAR_TIME, false},         {"tags", LAHAR_LIST_KEYWORD, false},
        {"links", LAHAR_LIST_UUID, false}, {"blob", LAHAR_BYTES, false},
        {"old", LAHAR_KEYWORD, false}};
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "typed",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = fields,
                                    .field_count = sizeof fields / sizeof *fields};
    uint32_t stream = 0;
    cr_assert_eq(lahar_stream_create(fixture->store, &spec, &stream, NULL), LAHAR_OK);
    const lahar_bytes tags[] = {{"red", 3}, {"", 0}};
    const lahar_pair pairs[] = {{{"path", 4}, {"/tmp", 4}, false},
                                {{"gone", 4}, {NULL, 0}, true},
                                {{"path", 4}, {"/var", 4}, false}};
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {"Hello World", 11}},
        {.field = LAHAR_FIELD_ATTRIBUTES, .type = LAHAR_MAP, .as.map = {pairs, 3}},
        {.field = field_of(fixture, "kind"), .type = LAHAR_KEYWORD, .as.bytes = {"big", 3}},
        {.field = field_of(fixture, "secret"), .type = LAHAR_KEYWORD, .as.bytes = {"x", 1}},
        {.field = field_of(fixture, "owner"), .type = LAHAR_UUID, .as.uuid = sample_uuid},
        {.field = field_of(fixture, "delta"), .type = LAHAR_I64, .as.i64 = -3},
        {.field = field_of(fixture, "ratio"), .type = LAHAR_F64, .as.f64 = -0.5},
        {.field = field_of(fixture, "flag"), .type = LAHAR_BOOL, .as.boolean = true},
        {.field = field_of(fixture, "at"), .type = LAHAR_TIME, .as.time_ns = 42},
        {.field = field_of(fixture, "tags"), .type = LAHAR_LIST_KEYWORD, .as.keywords = {tags, 2}},
        {.field = field_of(fixture, "links"),
         .type = LAHAR_LIST_UUID,
         .as.uuids = {&sample_uuid, 1}},
        {.field = field_of(fixture, "blob"), .type = LAHAR_BYTES, .as.bytes = {"zz", 2}},
        {.field = field_of(fixture, "old"), .type = LAHAR_KEYWORD, .is_null = true},
        {.field = LAHAR_FIELD_FRAMING, .type = LAHAR_BYTES, .as.bytes = {"\r", 1}}};
    const lahar_event event = {.stream = stream,
                               .time_ns = 77,
                               .values = values,
                               .value_count = sizeof values / sizeof *values};
    lahar_batch *batch = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_batch_create(fixture->store, &batch, NULL), LAHAR_OK);
    cr_assert_eq(lahar_append(batch, &event, NULL, NULL, &error), LAHAR_OK, "%s", error.message);
    lahar_batch_destroy(batch);
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

static void check_uuids(struct lahar_shard *shard)
{
    static const char *const uuid_fields[] = {"owner", "links"};
    for (size_t i = 0; i < 2; i++) {
        uint32_t field = 0;
        struct lahar_docset set;
        cr_assert(lahar_shard_find_field(shard, uuid_fields[i], 5, LAHAR_CLASS_UUID, &field));
        cr_assert_eq(lahar_docset_init(&set, 1, &lahar_allocator_libc, NULL), LAHAR_OK);
        cr_assert_eq(lahar_shard_uuid(shard, field, &sample_uuid, &set, NULL), LAHAR_OK);
        cr_assert_eq(lahar_docset_count(&set), 1);
        lahar_docset_deinit(&set);
    }
}

Test(rollover, indexes_each_type_as_documented)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    append_typed_event(&fixture);
    struct lahar_snapshot *snapshot = NULL;
    cr_assert_eq(lahar_snapshot_take(fixture.store, &snapshot, NULL), LAHAR_OK);
    cr_assert_eq(lahar_snapshot_segment_count(snapshot), 1);
    struct lahar_shard *shard = lahar_snapshot_segment(snapshot, 0)->shard;
    cr_assert_eq(lahar_shard_document_count(shard), 1);
    int64_t min_ns = 0;
    int64_t max_ns = 0;
    lahar_shard_time_range(shard, &min_ns, &max_ns);
    cr_assert_eq(min_ns, 77);
    cr_assert_eq(count_keyword(shard, "kind", "big"), 1);
    cr_assert_eq(count_keyword(shard, "kind", "BIG"), 0);
    cr_assert_eq(count_keyword(shard, "attr.path", "/tmp"), 1);
    cr_assert_eq(count_keyword(shard, "attr.path", "/var"), 1);
    cr_assert_eq(count_keyword(shard, "attr.gone", NULL), UINT64_MAX);
    cr_assert_eq(count_keyword(shard, "tags", "red"), 1);
    cr_assert_eq(count_keyword(shard, "tags", ""), 1);
    cr_assert_eq(count_keyword(shard, "secret", NULL), UINT64_MAX);
    cr_assert_eq(count_keyword(shard, "old", NULL), UINT64_MAX);
    cr_assert_eq(count_keyword(shard, "blob", NULL), UINT64_MAX);
    cr_assert_eq(count_number(shard, "delta", lahar_number_from_i64(-3)), 1);
    cr_assert_eq(count_number(shard, "ratio", lahar_number_from_f64(-0.5)), 1);
    cr_assert_eq(count_number(shard, "flag", 1), 1);
    cr_assert_eq(count_number(shard, "at", lahar_number_from_i64(42)), 1);
    check_uuids(shard);
    uint64_t tokens = 0;
    uint32_t message = 0;
    cr_assert(lahar_shard_find_field(shard, "message", 7, LAHAR_CLASS_TEXT, &message));
    cr_assert_eq(lahar_shard_token_count(shard, message, "world", 5, &tokens, NULL), LAHAR_OK);
    cr_assert_eq(tokens, 1);
    lahar_snapshot_release(snapshot);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(rollover, never_uses_a_file_number_twice)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 5);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_close(&fixture);
    /* What a rollover that was not finished may leave. */
    cr_assert_eq(
        lahar_sim_disk_write_file(fixture.disk, "store/events/00000041.events.tmp", "x", 1, NULL),
        LAHAR_OK);
    store_fixture_open(&fixture);
    cr_assert_eq(count_files(&fixture).temporary, 0);
    store_fixture_add(&fixture, &stream, 1, 5);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    struct lahar_snapshot *snapshot = NULL;
    cr_assert_eq(lahar_snapshot_take(fixture.store, &snapshot, NULL), LAHAR_OK);
    cr_assert_eq(lahar_segment_describe(lahar_snapshot_segment(snapshot, 0)->segment)->number, 1);
    cr_assert_eq(lahar_segment_describe(lahar_snapshot_segment(snapshot, 1)->segment)->number, 42);
    lahar_snapshot_release(snapshot);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}
