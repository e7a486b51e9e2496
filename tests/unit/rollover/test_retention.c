/* Retention on a simulated disk and clock: what is dropped, when, and what never is.
 *
 * The expectation is computed from the list of what was appended and from when it was rolled, not
 * from the store. */
#include "tests/unit/store/store_fixture.h"

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)

/* Counts what the library reports. */
struct reports {
    unsigned drops;
    unsigned long long first_id;
    unsigned long long last_id;
};

static void note_report(void *context, lahar_log_level level, const char *message)
{
    struct reports *reports = context;
    unsigned long long events = 0;
    char stream[32];
    (void)level;
    if (sscanf(message, "retention dropped %llu events of stream \"%31[^\"]\", %llu to %llu",
               &events, stream, &reports->first_id, &reports->last_id) == 4) {
        reports->drops++;
    }
}

static void set_limits(struct store_fixture *fixture, uint32_t stream, uint64_t max_bytes,
                       uint64_t max_age_ns)
{
    const lahar_retention limits = {sizeof limits, max_bytes, max_age_ns};
    lahar_error error = {0};
    cr_assert_eq(lahar_retention_set(fixture->store, stream, &limits, &error), LAHAR_OK, "%s",
                 error.message);
}

static void enforce(struct store_fixture *fixture)
{
    while (lahar_store_step(fixture->store, LAHAR_WORK_RETENTION)) {
    }
}

static void roll(struct store_fixture *fixture)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

static lahar_stat stat_of(struct store_fixture *fixture)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    return stat;
}

/* Takes the first count events of a stream (or of all) off the list of what should be there. */
static void forget(struct store_fixture *fixture, uint32_t stream, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < fixture->event_count; i++) {
        if (count > 0 && (stream == LAHAR_ANY_STREAM || fixture->events[i].stream == stream)) {
            count--;
        } else {
            fixture->events[kept++] = fixture->events[i];
        }
    }
    fixture->event_count = kept;
}

static void check(struct store_fixture *fixture)
{
    check_scan(fixture);
    check_get(fixture);
    cr_assert_eq(stat_of(fixture).event_count, fixture->event_count);
}

/* Five groups of 10 events of one stream, an hour apart. */
static uint32_t make_groups(struct store_fixture *fixture)
{
    store_fixture_open(fixture);
    const uint32_t stream = store_fixture_stream(fixture, 0);
    for (unsigned i = 0; i < 5; i++) {
        store_fixture_add(fixture, &stream, 1, 10);
        roll(fixture);
        lahar_sim_disk_advance(fixture->disk, HOUR);
    }
    return stream;
}

struct file_count {
    const char *suffix;
    unsigned count;
};

static lahar_status count_file(void *context, const char *name, bool is_directory)
{
    struct file_count *count = context;
    count->count += !is_directory && strstr(name, count->suffix) != NULL;
    return LAHAR_OK;
}

static unsigned count_files(struct store_fixture *fixture, const char *suffix)
{
    struct file_count count = {suffix, 0};
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store/events", count_file, &count, NULL),
                 LAHAR_OK);
    return count.count;
}

Test(retention, drops_the_oldest_files_beyond_the_bytes_of_a_stream)
{
    struct store_fixture fixture;
    struct reports reports = {0};
    store_fixture_init(&fixture, 1);
    fixture.options.log = note_report;
    fixture.options.log_context = &reports;
    const uint32_t stream = make_groups(&fixture);
    const lahar_stat before = stat_of(&fixture);
    const uint64_t bytes = before.event_file_bytes + before.index_bytes;
    /* Room for between two and three of five equal files. */
    set_limits(&fixture, stream, bytes / 2, 0);
    enforce(&fixture);
    forget(&fixture, stream, 30);
    check(&fixture);
    cr_assert_eq(reports.drops, 3);
    cr_assert_eq(reports.last_id, fixture.events[0].id - 1);
    cr_assert_eq(count_files(&fixture, ".events"), 2);
    cr_assert_eq(count_files(&fixture, ".toc"), 2);
    cr_assert_eq(count_files(&fixture, ".shard"), 2);
    const lahar_stat after = stat_of(&fixture);
    cr_assert_eq(after.dropped_events, 30);
    cr_assert_eq(after.dropped_files, 3);
    cr_assert_eq(after.dropped_bytes + after.event_file_bytes + after.index_bytes, bytes);
    cr_assert_leq(after.event_file_bytes + after.index_bytes, bytes / 2);
    store_fixture_deinit(&fixture);
}

Test(retention, of_one_stream_leaves_the_others_alone)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 2);
    store_fixture_open(&fixture);
    const uint32_t streams[] = {store_fixture_stream(&fixture, 0),
                                store_fixture_stream(&fixture, 1)};
    for (unsigned i = 0; i < 3; i++) {
        store_fixture_add(&fixture, streams, 2, 20);
        roll(&fixture);
    }
    set_limits(&fixture, streams[0], 1, 0);
    enforce(&fixture);
    forget(&fixture, streams[0], 30);
    check(&fixture);
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    options.stream = streams[0];
    check_scan_of(&fixture, &options, fixture.event_count);
    store_fixture_deinit(&fixture);
}

Test(retention, of_the_store_drops_the_oldest_of_any_stream)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 3);
    store_fixture_open(&fixture);
    const uint32_t streams[] = {store_fixture_stream(&fixture, 0),
                                store_fixture_stream(&fixture, 1)};
    for (unsigned i = 0; i < 4; i++) {
        store_fixture_add(&fixture, &streams[i % 2], 1, 10);
        roll(&fixture);
    }
    const lahar_stat before = stat_of(&fixture);
    set_limits(&fixture, LAHAR_ANY_STREAM, (before.event_file_bytes + before.index_bytes) * 5 / 8,
               0);
    enforce(&fixture);
    forget(&fixture, LAHAR_ANY_STREAM, 20);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(retention, drops_files_once_their_newest_event_is_too_old)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 4);
    const uint32_t stream = make_groups(&fixture); /* rolled 5, 4, 3, 2 and 1 hours ago */
    set_limits(&fixture, stream, 0, 10 * HOUR);
    enforce(&fixture);
    check(&fixture);
    lahar_sim_disk_advance(fixture.disk, 5 * HOUR - 60 * SECOND);
    enforce(&fixture);
    check(&fixture); /* a minute short of it */
    lahar_sim_disk_advance(fixture.disk, 2 * 60 * SECOND);
    enforce(&fixture);
    forget(&fixture, stream, 10);
    check(&fixture);
    lahar_sim_disk_advance(fixture.disk, 2 * HOUR);
    enforce(&fixture);
    forget(&fixture, stream, 20);
    check(&fixture);
    /* A limit that is raised holds from now on. */
    set_limits(&fixture, stream, 0, 100 * HOUR);
    lahar_sim_disk_advance(fixture.disk, 10 * HOUR);
    enforce(&fixture);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(retention, is_not_deceived_by_a_clock_that_is_wrong_for_an_hour)
{
    const int64_t wrong[] = {0, INT64_C(4102444800) * 1000000000, -1}; /* 1970, 2100, a year off */
    for (size_t i = 0; i < 3; i++) {
        for (int is_reopened = 0; is_reopened < (i < 2 ? 2 : 1); is_reopened++) {
            struct store_fixture fixture;
            store_fixture_init(&fixture, 5);
            const uint32_t stream = make_groups(&fixture);
            const int64_t right_ns = fixture.io->ops->realtime_ns(fixture.io);
            set_limits(&fixture, stream, 0, 2 * DAY);
            lahar_sim_disk_set_realtime(
                fixture.disk, wrong[i] == -1 ? right_ns + (int64_t)(365 * DAY) : wrong[i]);
            enforce(&fixture);
            check(&fixture);
            store_fixture_add(&fixture, &stream, 1, 10);
            roll(&fixture);
            if (is_reopened) {
                store_fixture_close(&fixture);
                store_fixture_open(&fixture);
            }
            lahar_sim_disk_advance(fixture.disk, HOUR);
            enforce(&fixture);
            check(&fixture);
            lahar_sim_disk_set_realtime(fixture.disk, right_ns + (int64_t)HOUR);
            enforce(&fixture);
            store_fixture_close(&fixture);
            store_fixture_open(&fixture);
            enforce(&fixture);
            check(&fixture);
            /* And keeps nothing for ever: two days later all is gone, and a third is kept. */
            lahar_sim_disk_advance(fixture.disk, 2 * DAY + HOUR);
            store_fixture_add(&fixture, &stream, 1, 10);
            roll(&fixture);
            enforce(&fixture);
            forget(&fixture, stream, 60);
            check(&fixture);
            store_fixture_deinit(&fixture);
        }
    }
}

Test(retention, counts_the_time_for_which_a_store_was_closed)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 6);
    const uint32_t stream = make_groups(&fixture);
    store_fixture_add(&fixture, &stream, 1, 10); /* stays in the journals */
    set_limits(&fixture, stream, 0, 30 * DAY);
    store_fixture_close(&fixture);
    lahar_sim_disk_advance(fixture.disk, 29 * DAY);
    store_fixture_open(&fixture);
    enforce(&fixture);
    check(&fixture);
    store_fixture_close(&fixture);
    lahar_sim_disk_advance(fixture.disk, 1 * DAY + HOUR);
    store_fixture_open(&fixture);
    enforce(&fixture);
    forget(&fixture, stream, 50);
    check(&fixture);
    roll(&fixture);
    enforce(&fixture); /* what the journals held is as old */
    forget(&fixture, stream, 10);
    check(&fixture);
    cr_assert_eq(stat_of(&fixture).dropped_events, 60);
    store_fixture_deinit(&fixture);
}

Test(retention, counts_the_time_after_a_crash_too)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 7);
    const uint32_t stream = make_groups(&fixture);
    set_limits(&fixture, stream, 0, 30 * DAY);
    lahar_sim_disk_advance(fixture.disk, 10 * DAY);
    store_fixture_crash(&fixture, 1, true);
    lahar_sim_disk_advance(fixture.disk, 19 * DAY);
    store_fixture_open(&fixture);
    enforce(&fixture);
    check(&fixture);
    lahar_sim_disk_advance(fixture.disk, 2 * DAY);
    enforce(&fixture);
    forget(&fixture, stream, 50);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(retention, hands_out_no_id_again_when_it_emptied_the_store)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 8);
    const uint32_t stream = make_groups(&fixture);
    const uint64_t last_id = fixture.events[fixture.event_count - 1].id;
    set_limits(&fixture, LAHAR_ANY_STREAM, 1, 0);
    enforce(&fixture);
    forget(&fixture, stream, 50);
    check(&fixture);
    cr_assert_eq(count_files(&fixture, "."), 0);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    check(&fixture);
    lahar_retention limits = {.struct_size = sizeof limits};
    cr_assert_eq(lahar_retention_get(fixture.store, LAHAR_ANY_STREAM, &limits, NULL), LAHAR_OK);
    cr_assert_eq(limits.max_bytes, 1);
    store_fixture_add(&fixture, &stream, 1, 1);
    cr_assert_gt(fixture.events[0].id, last_id);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(retention, leaves_to_a_cursor_what_it_holds)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 9);
    const uint32_t stream = make_groups(&fixture);
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_scan(fixture.store, NULL, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
    set_limits(&fixture, stream, 1, 0);
    enforce(&fixture);
    for (size_t i = 1; i < fixture.event_count; i++) {
        cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
        check_event(event, &fixture.events[i]);
    }
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_NOT_FOUND);
    lahar_cursor_close(cursor);
    forget(&fixture, stream, 50);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(retention, keeps_the_files_within_the_limit_and_one_group_while_events_come)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 10);
    fixture.options.group_event_count = 50;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 50);
    roll(&fixture);
    const lahar_stat one = stat_of(&fixture);
    const uint64_t group = one.event_file_bytes + one.index_bytes;
    set_limits(&fixture, LAHAR_ANY_STREAM, 4 * group, 0);
    for (unsigned i = 0; i < 40; i++) {
        store_fixture_add(&fixture, &stream, 1, 50);
        lahar_store_step(fixture.store, LAHAR_WORK_ROLLOVER);
        cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        /* Rollover alone, as fast as it can: it must wait for retention by itself. */
        for (unsigned k = 0; k < 5; k++) {
            (void)lahar_store_step(fixture.store, LAHAR_WORK_ROLLOVER);
        }
        const lahar_stat stat = stat_of(&fixture);
        cr_assert_leq(stat.event_file_bytes + stat.index_bytes, 5 * group + group / 4);
    }
    enforce(&fixture);
    const lahar_stat stat = stat_of(&fixture);
    cr_assert_leq(stat.event_file_bytes + stat.index_bytes, 4 * group);
    cr_assert_gt(stat.dropped_files, 20);
    forget(&fixture, stream, stat.dropped_events);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(retention, tries_again_when_the_manifest_had_no_room)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 11);
    const uint32_t stream = make_groups(&fixture);
    set_limits(&fixture, stream, 0, 10 * HOUR);
    lahar_sim_disk_advance(fixture.disk, 11 * HOUR);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_ENOSPC,
                         lahar_sim_disk_operations(fixture.disk), 1, "manifest");
    enforce(&fixture);
    cr_assert_eq(lahar_sim_disk_fault_count(fixture.disk), 1);
    check(&fixture);
    enforce(&fixture);
    check(&fixture); /* not at once */
    lahar_sim_disk_advance(fixture.disk, 2 * SECOND);
    enforce(&fixture);
    forget(&fixture, stream, 50);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(retention, refuses_what_it_does_not_know)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 12);
    const uint32_t stream = make_groups(&fixture);
    lahar_retention limits = {.struct_size = sizeof limits, .max_bytes = 1};
    cr_assert_eq(lahar_retention_set(fixture.store, stream + 1, &limits, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_retention_get(fixture.store, stream + 1, &limits, NULL), LAHAR_NOT_FOUND);
    limits.struct_size = 8;
    cr_assert_eq(lahar_retention_set(fixture.store, stream, &limits, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_retention_get(fixture.store, stream, &limits, NULL), LAHAR_INVALID);
    enforce(&fixture);
    check(&fixture);
    store_fixture_deinit(&fixture);
}
