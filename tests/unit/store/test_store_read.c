/* Reading by id: the same answers before and after rollover, reopening and crashes. */
#include "store_fixture.h"

static void check_directions_and_ranges(struct store_fixture *fixture, const uint32_t *streams,
                                        size_t stream_count)
{
    const uint64_t low = fixture->events[fixture->event_count / 3].id;
    const uint64_t high = fixture->events[2 * fixture->event_count / 3].id;
    for (unsigned variant = 0; variant < 16; variant++) {
        lahar_scan_options options;
        lahar_scan_options_init(&options);
        options.newest_first = (variant & 1) != 0;
        options.from_id = (variant & 2) != 0 ? low : 0;
        options.to_id = (variant & 4) != 0 ? high : 0;
        if ((variant & 8) != 0) {
            options.stream = streams[variant % stream_count];
        }
        check_scan_of(fixture, &options, fixture->event_count);
    }
}

static void check_all(struct store_fixture *fixture, const uint32_t *streams, size_t stream_count)
{
    check_get(fixture);
    check_directions_and_ranges(fixture, streams, stream_count);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.event_count, fixture->event_count);
}

Test(store_read, answers_alike_at_every_stage)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 7);
    store_fixture_open(&fixture);
    const uint32_t streams[] = {store_fixture_stream(&fixture, 0),
                                store_fixture_stream(&fixture, 1),
                                store_fixture_stream(&fixture, 2)};
    for (unsigned i = 0; i < 20; i++) {
        store_fixture_add(&fixture, streams, 3, 1 + i * 13 % 40);
    }
    check_all(&fixture, streams, 3);

    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.event_file_count, 3);
    cr_assert_eq(stat.rollovers, 1);
    cr_assert_eq(stat.rolled_id, stat.next_id);
    check_all(&fixture, streams, 3);

    for (unsigned i = 0; i < 10; i++) {
        store_fixture_add(&fixture, streams, 2, 1 + i * 7 % 30);
    }
    check_all(&fixture, streams, 3);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    check_all(&fixture, streams, 3);

    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_add(&fixture, streams, 3, 50);
    check_all(&fixture, streams, 3);
    cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_crash(&fixture, 99, true);
    store_fixture_open(&fixture);
    check_all(&fixture, streams, 3);
    store_fixture_add(&fixture, streams, 3, 5);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    check_all(&fixture, streams, 3);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_read, of_several_blocks_merges_interleaved_streams)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 8);
    store_fixture_open(&fixture);
    const uint32_t streams[] = {store_fixture_stream(&fixture, 0),
                                store_fixture_stream(&fixture, 1)};
    /* About 75 bytes an event, so some 3 MiB: two blocks and more a stream. */
    for (unsigned i = 0; i < 40; i++) {
        store_fixture_add(&fixture, streams, 2, 1000);
    }
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    check_all(&fixture, streams, 2);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_read, keeps_its_snapshot_while_the_store_moves_on)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 9);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 100);
    const size_t count = fixture.event_count;
    lahar_cursor *cursor = NULL;
    cr_assert_eq(lahar_scan(fixture.store, NULL, &cursor, NULL), LAHAR_OK);
    store_fixture_add(&fixture, &stream, 1, 100);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_add(&fixture, &stream, 1, 100);
    for (size_t i = 0; i < count; i++) {
        const lahar_event *event = NULL;
        cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
        check_event(event, &fixture.events[i]);
    }
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_NOT_FOUND);
    lahar_cursor_close(cursor);
    check_scan(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_read, passes_over_ids_that_do_not_exist)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 10);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 3);
    const uint64_t ids[] = {0, 3, 4, UINT64_MAX, 1, 1};
    lahar_cursor *cursor = NULL;
    cr_assert_eq(lahar_get(fixture.store, ids, 6, &cursor, NULL), LAHAR_OK);
    const uint64_t expected[] = {3, 1, 1};
    for (size_t i = 0; i < 3; i++) {
        const lahar_event *event = NULL;
        cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
        cr_assert_eq(event->id, expected[i]);
    }
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_NOT_FOUND);
    lahar_cursor_close(cursor);
    cr_assert_eq(lahar_get(fixture.store, NULL, 0, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_NOT_FOUND);
    lahar_cursor_close(cursor);
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    options.stream = 77;
    cr_assert_eq(lahar_scan(fixture.store, &options, &cursor, NULL), LAHAR_INVALID);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_read, says_which_events_are_durable)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 11);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 1);
    const uint64_t id = fixture.events[0].id;
    cr_assert_leq(lahar_durable_id(fixture.store), id);
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_get(fixture.store, &id, 1, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
    cr_assert_not(event->is_durable);
    lahar_cursor_close(cursor);
    cr_assert_eq(lahar_durable_wait(fixture.store, id, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    cr_assert_gt(lahar_durable_id(fixture.store), id);
    cr_assert_eq(lahar_get(fixture.store, &id, 1, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
    cr_assert(event->is_durable);
    lahar_cursor_close(cursor);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_read, takes_an_events_time_from_its_arrival_where_asked)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 12);
    lahar_sim_disk_set_realtime(fixture.disk, 5000000000);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    uint64_t id = 0;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    const lahar_value level = {
        .field = LAHAR_FIELD_LEVEL, .type = LAHAR_KEYWORD, .as.bytes = {"INFO", 4}};
    const lahar_event event = {
        .stream = stream, .time_ns = LAHAR_TIME_OF_ARRIVAL, .values = &level, .value_count = 1};
    cr_assert_eq(lahar_append(batch, &event, NULL, &id, NULL), LAHAR_OK);
    lahar_batch_destroy(batch);
    int64_t resident_time_ns = 0;
    for (unsigned round = 0; round < 2; round++) {
        lahar_cursor *cursor = NULL;
        const lahar_event *found = NULL;
        cr_assert_eq(lahar_get(fixture.store, &id, 1, &cursor, NULL), LAHAR_OK);
        lahar_error error = {0};
        cr_assert_eq(lahar_cursor_next(cursor, &found, &error), LAHAR_OK, "round %u: %s", round,
                     error.message);
        cr_assert_eq(found->time_ns, found->arrival_ns);
        cr_assert(found->time_ns >= 5000000000 && found->time_ns < 6000000000);
        cr_assert(round == 0 || found->time_ns == resident_time_ns);
        resident_time_ns = found->time_ns;
        lahar_cursor_close(cursor);
        cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    }
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_read, of_events_without_values)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 13);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    uint64_t id = 0;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    const lahar_event event = {.stream = stream, .time_ns = 4};
    cr_assert_eq(lahar_append(batch, &event, NULL, &id, NULL), LAHAR_OK);
    lahar_batch_destroy(batch);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    lahar_cursor *cursor = NULL;
    const lahar_event *found = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_get(fixture.store, &id, 1, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &found, &error), LAHAR_OK, "%s", error.message);
    cr_assert_eq(found->value_count, 0);
    cr_assert_eq(found->time_ns, 4);
    lahar_cursor_close(cursor);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

/* --- how often a block is read ------------------------------------------------------------- */

static const struct lahar_io_ops *uncounted_ops;
static unsigned read_count;

static lahar_status count_reads(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                                void *data, size_t size, size_t *read_out, lahar_error *error)
{
    read_count++;
    return uncounted_ops->read(io, file, offset, data, size, read_out, error);
}

Test(store_read, of_many_ids_loads_each_block_once_whatever_their_order)
{
    enum {
        EVENTS = 120000,
        STEP = 7001 /* events between two ids that are asked for one after the other */
    };
    struct store_fixture fixture;
    store_fixture_init(&fixture, 5);
    fixture.options.memory_limit_bytes = 32 << 20; /* caches about two of the blocks */
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    for (unsigned i = 0; i < EVENTS / 1000; i++) {
        store_fixture_add(&fixture, &stream, 1, 1000);
    }
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    uncounted_ops = fixture.io->ops;
    struct lahar_io_ops ops = *uncounted_ops;
    ops.read = count_reads;
    fixture.io->ops = &ops;
    static uint64_t ids[2000];
    static size_t numbers[2000];
    for (size_t i = 0; i < 2000; i++) {
        numbers[i] = i * STEP % EVENTS;
        ids[i] = fixture.events[numbers[i]].id;
    }
    lahar_cursor *cursor = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_get(fixture.store, ids, 2000, &cursor, &error), LAHAR_OK);
    for (size_t i = 0; i < 2000; i++) {
        const lahar_event *event = NULL;
        cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_OK, "%s", error.message);
        check_event(event, &fixture.events[numbers[i]]);
    }
    lahar_cursor_close(cursor);
    fixture.io->ops = uncounted_ops;
    cr_assert_geq(read_count, 5);
    cr_assert_leq(read_count, 24, "%u reads", read_count); /* rows of about 90 bytes, of 1 MiB */
    store_fixture_deinit(&fixture);
}

static struct {
    const struct lahar_io_file *file;
    uint64_t offset;
} announced[64];
static unsigned announce_count;
static unsigned announced_read_count; /* reads of what had been announced */
static unsigned furthest;             /* most that were announced and not read yet */

static void note_announced(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                           uint64_t size)
{
    if (announce_count < 64) {
        announced[announce_count].file = file;
        announced[announce_count++].offset = offset;
    }
    const unsigned ahead = announce_count - announced_read_count;
    furthest = ahead > furthest ? ahead : furthest;
    uncounted_ops->announce(io, file, offset, size);
}

static lahar_status note_read(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                              void *data, size_t size, size_t *read_out, lahar_error *error)
{
    for (unsigned i = 0; i < announce_count; i++) {
        announced_read_count += announced[i].file == file && announced[i].offset == offset;
    }
    return count_reads(io, file, offset, data, size, read_out, error);
}

static void get_all(struct store_fixture *fixture, const uint64_t *ids, size_t count)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    read_count = announce_count = announced_read_count = furthest = 0;
    cr_assert_eq(lahar_get(fixture->store, ids, count, &cursor, &error), LAHAR_OK);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_OK, "%s", error.message);
        cr_assert_eq(event->id, ids[i]);
    }
    lahar_cursor_close(cursor);
}

Test(store_read, of_many_ids_announces_the_blocks_that_come_next)
{
    enum {
        EVENTS = 200000,
        IDS = 100
    };
    struct store_fixture fixture;
    store_fixture_init(&fixture, 5);
    fixture.options.memory_limit_bytes = 256 << 20; /* caches more than three of the blocks */
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    for (unsigned i = 0; i < EVENTS / 1000; i++) {
        store_fixture_add(&fixture, &stream, 1, 1000);
    }
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    uncounted_ops = fixture.io->ops;
    struct lahar_io_ops ops = *uncounted_ops;
    ops.read = note_read;
    ops.announce = note_announced;
    fixture.io->ops = &ops;
    static uint64_t ids[IDS];
    for (size_t i = 0; i < IDS; i++) {
        ids[i] = fixture.events[i * (EVENTS / IDS)].id;
    }
    get_all(&fixture, ids, IDS);
    cr_assert_gt(read_count, 9); /* blocks */
    cr_assert_eq(announce_count, read_count - 1, "%u announced, %u read", announce_count,
                 read_count); /* all but the first */
    cr_assert_eq(announced_read_count, announce_count, "%u of %u", announced_read_count,
                 announce_count);
    cr_assert_eq(furthest, 8 + 1, "%u", furthest); /* and the one that is read next */
    /* What the cache has is not announced; one event has nothing behind it. */
    get_all(&fixture, ids, IDS / 5);
    get_all(&fixture, ids, IDS / 5);
    cr_assert_eq(read_count, 0);
    cr_assert_eq(announce_count, 0);
    get_all(&fixture, ids, 1);
    cr_assert_eq(announce_count, 0);
    fixture.io->ops = uncounted_ops;
    store_fixture_deinit(&fixture);
}
