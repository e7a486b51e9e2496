/* Joining small event files: what is joined, and that no answer changes. */
#include "engine/rollover/join_choose.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

static void roll(struct store_fixture *fixture)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

static unsigned join_all(struct store_fixture *fixture)
{
    unsigned count = 0;
    while (lahar_store_step(fixture->store, LAHAR_WORK_JOIN)) {
        count++;
    }
    return count;
}

static lahar_stat stat_of(struct store_fixture *fixture)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    return stat;
}

static lahar_status count_name(void *context, const char *name, bool is_directory)
{
    (void)name;
    *(unsigned *)context += !is_directory;
    return LAHAR_OK;
}

/* Names in the directory of event files: three a file, and the copy of the names. */
static unsigned name_count(struct store_fixture *fixture)
{
    unsigned count = 0;
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store/events", count_name, &count, NULL),
                 LAHAR_OK);
    return count;
}

static uint64_t count_hits(struct store_fixture *fixture, const char *text)
{
    lahar_query *query = NULL;
    lahar_query_options options;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    lahar_query_options_init(&options);
    cr_assert_eq(lahar_query_open(fixture->store, text, strlen(text), &options, &query, &error),
                 LAHAR_OK, "%s", error.message);
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK, "%s", error.message);
    cr_assert_eq(result.shards_failed, 0);
    lahar_query_close(query);
    return result.total;
}

/* Everything against the list: both directions, by stream, from any id, by id, by term. */
static void check(struct store_fixture *fixture)
{
    lahar_scan_options options;
    check_get(fixture);
    for (unsigned direction = 0; direction < 2; direction++) {
        for (uint32_t stream = 0; stream < 3; stream++) {
            lahar_scan_options_init(&options);
            options.newest_first = direction == 1;
            options.stream = stream == 2 ? LAHAR_ANY_STREAM : stream;
            check_scan_of(fixture, &options, fixture->event_count);
            options.from_id = fixture->events[fixture->event_count / 3].id;
            options.to_id = fixture->events[fixture->event_count * 2 / 3].id;
            check_scan_of(fixture, &options, fixture->event_count);
        }
    }
    uint64_t errors = 0;
    for (size_t i = 0; i < fixture->event_count; i++) {
        errors += fixture->events[i].number % 3 == 0;
    }
    cr_assert_eq(count_hits(fixture, "level:ERROR"), errors);
    cr_assert_eq(count_hits(fixture, "number"), fixture->event_count);
    lahar_verify_options verify = {.struct_size = sizeof verify, .full = true};
    lahar_verify_result result = {.struct_size = sizeof result};
    lahar_error error = {0};
    cr_assert_eq(lahar_verify(fixture->store, &verify, &result, &error), LAHAR_OK, "%s",
                 error.message);
    cr_assert_eq(result.finding_count, 0);
}

/* Groups of two streams, of which the second is not in every one. */
static void make_groups(struct store_fixture *fixture, unsigned count)
{
    const uint32_t streams[] = {store_fixture_stream(fixture, 0), store_fixture_stream(fixture, 1)};
    for (unsigned i = 0; i < count; i++) {
        store_fixture_add(fixture, streams, i % 3 == 0 ? 1 : 2, 5 + i % 4);
        roll(fixture);
    }
}

Test(join, changes_no_answer)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    make_groups(&fixture, 30);
    const uint32_t before = stat_of(&fixture).event_file_count;
    check(&fixture);
    store_fixture_close(&fixture);
    fixture.config.join_file_count = 0;
    store_fixture_open(&fixture);
    cr_assert_gt(join_all(&fixture), 0);
    const uint32_t after = stat_of(&fixture).event_file_count;
    cr_assert_geq(before, 50);
    cr_assert_leq(after, 4);
    cr_assert_eq(name_count(&fixture), 3 * after + 1);
    check(&fixture);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    cr_assert_eq(stat_of(&fixture).event_file_count, after);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(join, keeps_few_files_while_rollover_goes_on)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 2);
    fixture.config.join_file_count = 0;
    store_fixture_open(&fixture);
    uint32_t most = 0;
    for (unsigned i = 0; i < 60; i++) {
        make_groups(&fixture, 3);
        (void)join_all(&fixture);
        const uint32_t count = stat_of(&fixture).event_file_count;
        most = count > most ? count : most;
    }
    cr_assert_leq(most, 2 * 3 * 5); /* three of a size at most, five sizes, two streams */
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(join, leaves_running_cursors_their_files)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 3);
    fixture.config.join_file_count = 8;
    fixture.options.open_file_max = 1;
    store_fixture_open(&fixture);
    make_groups(&fixture, 3);
    const size_t count = fixture.event_count;
    const unsigned names = name_count(&fixture);
    lahar_cursor *cursor = NULL;
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    cr_assert_eq(lahar_scan(fixture.store, &options, &cursor, NULL), LAHAR_OK);
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
    check_event(event, &fixture.events[0]);
    make_groups(&fixture, 6);
    (void)join_all(&fixture);
    cr_assert_leq(stat_of(&fixture).event_file_count, 8);
    check(&fixture);
    cr_assert_geq(name_count(&fixture), names); /* the cursor's files have not gone */
    for (size_t i = 1; i < count; i++) {
        cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
        check_event(event, &fixture.events[i]);
    }
    lahar_cursor_close(cursor);
    cr_assert_eq(name_count(&fixture), 3 * stat_of(&fixture).event_file_count + 1);
    store_fixture_deinit(&fixture);
}

Test(join, passes_by_what_it_cannot_read)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 4);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    for (unsigned i = 0; i < 9; i++) {
        store_fixture_add(&fixture, &stream, 1, 10);
        roll(&fixture);
    }
    char path[160];
    char name[LAHAR_FILE_NAME_SIZE];
    struct lahar_segment_set *set = lahar_store_acquire_set(fixture.store);
    lahar_segment_file_name(&set->readable[4]->entry.info, ".events", name);
    lahar_segment_set_release(set);
    (void)snprintf(path, sizeof path, "store/events/%s", name);
    store_fixture_close(&fixture);
    struct lahar_io_file *file = NULL;
    cr_assert_eq(fixture.io->ops->open(fixture.io, path, LAHAR_IO_WRITE, &file, NULL), LAHAR_OK);
    cr_assert_eq(fixture.io->ops->write(fixture.io, file, 300, "damage", 6, NULL), LAHAR_OK);
    fixture.io->ops->close(fixture.io, file);
    fixture.config.join_file_count = 0;
    store_fixture_open(&fixture);
    for (unsigned i = 0; i < 3; i++) {
        (void)join_all(&fixture);
        lahar_sim_disk_advance(fixture.disk, 60 * SECOND);
    }
    cr_assert_eq(stat_of(&fixture).event_file_count, 3); /* before it, itself, behind it */
    lahar_cursor *cursor = NULL;
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    cr_assert_eq(lahar_scan(fixture.store, &options, &cursor, NULL), LAHAR_OK);
    for (size_t i = 0; i < fixture.event_count; i += 10) {
        const lahar_event *event = NULL;
        if (i == 40) {
            cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_CORRUPT);
            continue;
        }
        for (size_t k = i; k < i + 10; k++) {
            cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
            check_event(event, &fixture.events[k]);
        }
    }
    lahar_cursor_close(cursor);
    store_fixture_deinit(&fixture);
}

/* A fault at operation n of a join; returns whether it struck. */
static bool join_with_fault(enum lahar_sim_fault fault, uint64_t n)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, n);
    fixture.config.join_file_count = UINT32_MAX;
    store_fixture_open(&fixture);
    make_groups(&fixture, 6);
    store_fixture_close(&fixture);
    fixture.config.join_file_count = 0;
    store_fixture_open(&fixture);
    lahar_sim_disk_fault(fixture.disk, fault, lahar_sim_disk_operations(fixture.disk) + n, 1, NULL);
    (void)join_all(&fixture);
    const bool has_struck = lahar_sim_disk_fault_count(fixture.disk) != 0;
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    check(&fixture);
    if (stat_of(&fixture).poisoned != LAHAR_OK) {
        cr_assert_eq(lahar_store_close(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_POISONED);
        fixture.store = NULL;
        store_fixture_open(&fixture);
    } else {
        /* A name that cannot be removed is left to the next opening. */
        const unsigned named = 3 * stat_of(&fixture).event_file_count + 1;
        cr_assert_leq(name_count(&fixture), named + (fault == LAHAR_SIM_FAULT_EIO),
                      "fault %d at %lu leaves a file behind", (int)fault, (unsigned long)n);
        lahar_sim_disk_advance(fixture.disk, 60 * SECOND);
    }
    (void)join_all(&fixture);
    cr_assert_leq(stat_of(&fixture).event_file_count, 4, "fault at %lu", (unsigned long)n);
    check(&fixture);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    cr_assert_eq(name_count(&fixture), 3 * stat_of(&fixture).event_file_count + 1);
    check(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
    return has_struck;
}

/* Whatever fails, the parts stay until the whole is there, nothing else is left, and it is tried
 * again: a file that could not be written is no reason to doubt the parts. */
Test(join, throws_its_files_away_when_a_write_fails_and_tries_again)
{
    static const enum lahar_sim_fault faults[] = {LAHAR_SIM_FAULT_ENOSPC, LAHAR_SIM_FAULT_EIO};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        uint64_t n = 0;
        while (join_with_fault(faults[i], n)) {
            n++;
            cr_assert_lt(n, 200);
        }
        cr_assert_gt(n, 10);
    }
}

Test(join, of_files_survives_the_loss_of_the_manifest)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 5);
    fixture.config.join_file_count = 0;
    store_fixture_open(&fixture);
    make_groups(&fixture, 15);
    (void)join_all(&fixture);
    cr_assert_leq(stat_of(&fixture).event_file_count, 10);
    store_fixture_close(&fixture);
    for (unsigned i = 1; i < 4; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "store/manifest-%u", i);
        (void)fixture.io->ops->unlink(fixture.io, path, NULL);
    }
    fixture.options.repair = true;
    store_fixture_open(&fixture);
    check(&fixture);
    make_groups(&fixture, 2);
    check(&fixture);
    store_fixture_deinit(&fixture);
}

Test(join, takes_the_joined_file_where_its_parts_are_still_there)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 6);
    store_fixture_open(&fixture);
    make_groups(&fixture, 7);
    /* A cursor holds the parts; the process ends before it lets go of them. */
    fixture.config.join_file_count = 0;
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    lahar_cursor *cursor = NULL;
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    cr_assert_eq(lahar_scan(fixture.store, &options, &cursor, NULL), LAHAR_OK);
    cr_assert_gt(join_all(&fixture), 0);
    lahar_sim_disk_crash_at(fixture.disk, 0);
    lahar_cursor_close(cursor);
    store_fixture_crash(&fixture, 7, false);
    cr_assert_gt(name_count(&fixture), 20);
    (void)fixture.io->ops->unlink(fixture.io, "store/manifest-1", NULL);
    fixture.options.repair = true;
    store_fixture_open(&fixture);
    check(&fixture);
    cr_assert_eq(name_count(&fixture), 3 * stat_of(&fixture).event_file_count + 1);
    store_fixture_deinit(&fixture);
}

/* --- choosing ---------------------------------------------------------------------------- */

struct choice {
    struct lahar_manifest_state state;
    struct lahar_manifest_stream stream;
    struct lahar_manifest_file files[64];
};

static void set_up_choice(struct choice *choice, const uint64_t *sizes, size_t count)
{
    memset(choice, 0, sizeof *choice);
    choice->state.streams = &choice->stream;
    choice->state.stream_count = 1;
    choice->state.files = choice->files;
    choice->state.file_count = count;
    for (size_t i = 0; i < count; i++) {
        choice->files[i].info.number = i + 1;
        choice->files[i].info.event_count = 1;
        choice->files[i].info.file_bytes = sizes[i];
        choice->files[i].age_stamp_ns = (i + 1) * HOUR;
    }
}

static void expect_run(const struct choice *choice, uint64_t first, uint64_t last)
{
    const struct lahar_join_limits limits = {.files_min = 4, .event_max = 1000};
    struct lahar_join_run run;
    cr_assert_eq(lahar_join_choose(&choice->state, &limits, &lahar_allocator_libc, &run, NULL),
                 LAHAR_OK);
    if (first == 0) {
        cr_assert_eq(run.count, 0);
        return;
    }
    cr_assert_eq(run.count, last - first + 1, "%zu files", run.count);
    cr_assert_eq(run.files[0].info.number, first);
    cr_assert_eq(run.files[run.count - 1].info.number, last);
}

#define SIZES(...)                                                                                 \
    (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

Test(join_choose, waits_for_enough_files_and_at_least_doubles_the_largest)
{
    struct choice choice;
    set_up_choice(&choice, SIZES(10, 10, 10));
    expect_run(&choice, 0, 0);
    set_up_choice(&choice, SIZES(10, 10, 10, 10));
    expect_run(&choice, 1, 4);
    set_up_choice(&choice, SIZES(1000, 10, 10, 10));
    expect_run(&choice, 0, 0);
    set_up_choice(&choice, SIZES(1000, 10, 10, 10, 10));
    expect_run(&choice, 2, 5);
    set_up_choice(&choice, SIZES(160, 40, 40, 40, 10, 10, 10, 10));
    expect_run(&choice, 1, 8);
    set_up_choice(&choice, SIZES(10, 10, 10, 10, 1000));
    expect_run(&choice, 1, 4);
}

Test(join_choose, stays_within_a_twentieth_of_the_bytes)
{
    struct choice choice;
    set_up_choice(&choice, SIZES(10, 10, 10, 10, 10, 10));
    choice.stream.retention.max_bytes = 20 * 45;
    expect_run(&choice, 3, 6);
    choice.state.retention.max_bytes = 20 * 35;
    expect_run(&choice, 0, 0);
    choice.state.retention.max_bytes = 19;
    expect_run(&choice, 0, 0);
}

Test(join_choose, cuts_time_into_twentieths_of_the_age_limit)
{
    struct choice choice;
    /* Stamps of 1 to 8 hours in twentieths of 3 hours: two files, three, three. */
    set_up_choice(&choice, SIZES(500, 10, 10, 10, 10, 10, 10, 10));
    choice.stream.retention.max_age_ns = 60 * HOUR;
    expect_run(&choice, 1, 2); /* that twentieth is over: whatever their sizes */
    choice.files[0].info.file_bytes = UINT64_C(1) << 40;
    expect_run(&choice, 3, 5);
    choice.files[3].info.file_bytes = UINT64_C(1) << 40;
    expect_run(&choice, 0, 0); /* the last twentieth is not over, and three are too few */
}

Test(join_choose, leaves_alone_what_is_refused)
{
    struct choice choice;
    set_up_choice(&choice, SIZES(10, 10, 10, 10, 10, 10));
    const uint64_t refused[] = {2};
    const struct lahar_join_limits limits = {
        .files_min = 4, .event_max = 1000, .refused = refused, .refused_count = 1};
    struct lahar_join_run run;
    cr_assert_eq(lahar_join_choose(&choice.state, &limits, &lahar_allocator_libc, &run, NULL),
                 LAHAR_OK);
    cr_assert_eq(run.count, 4);
    cr_assert_eq(run.files[0].info.number, 3);
}

/* --- disk use ---------------------------------------------------------------------------- */

struct disk_use {
    struct lahar_io *io;
    uint64_t bytes;
};

static lahar_status add_size(void *context, const char *name, bool is_directory)
{
    struct disk_use *use = context;
    char path[160];
    struct lahar_io_file *file = NULL;
    uint64_t size = 0;
    (void)snprintf(path, sizeof path, "store/events/%.100s", name);
    if (!is_directory && strncmp(name, "names-", 6) != 0 &&
        use->io->ops->open(use->io, path, LAHAR_IO_READ, &file, NULL) == LAHAR_OK) {
        (void)use->io->ops->size(use->io, file, &size, NULL);
        use->io->ops->close(use->io, file);
    }
    use->bytes += size;
    return LAHAR_OK;
}

/* Bytes of all files among the event files, named in the manifest or not. */
static uint64_t disk_use(struct store_fixture *fixture)
{
    struct disk_use use = {fixture->io, 0};
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store/events", add_size, &use, NULL),
                 LAHAR_OK);
    return use.bytes;
}

static const struct lahar_io_ops *plain_ops;
static struct store_fixture *measured;
static uint64_t most_bytes;

static void measure(void)
{
    const uint64_t bytes = disk_use(measured);
    most_bytes = bytes > most_bytes ? bytes : most_bytes;
}

/* Rollover and joining sync the directory when all of their files are there and nothing has been
 * removed yet. */
static lahar_status sync_and_measure(struct lahar_io *io, const char *path, lahar_error *error)
{
    measure();
    return plain_ops->sync_directory(io, path, error);
}

Test(join, and_retention_keep_the_disk_within_the_limit_a_group_and_a_merge)
{
    enum {
        GROUP_EVENTS = 8,
        GROUPS = 300,
        LIMIT = 150000
    };
    struct store_fixture fixture;
    store_fixture_init(&fixture, 11);
    fixture.config.join_file_count = 4;
    fixture.options.group_event_count = GROUP_EVENTS;
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    const lahar_retention limits = {sizeof limits, LIMIT, 0};
    cr_assert_eq(lahar_retention_set(fixture.store, LAHAR_ANY_STREAM, &limits, NULL), LAHAR_OK);
    measured = &fixture;
    plain_ops = fixture.io->ops;
    struct lahar_io_ops ops = *plain_ops;
    ops.sync_directory = sync_and_measure;
    fixture.io->ops = &ops;
    uint64_t group_bytes = 0;
    unsigned joins = 0;
    for (unsigned i = 0; i < GROUPS; i++) {
        store_fixture_add(&fixture, &stream, 1, GROUP_EVENTS);
        cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        for (unsigned k = 0; k < 6; k++) {
            (void)lahar_store_step(fixture.store, LAHAR_WORK_ROLLOVER);
            measure();
            (void)lahar_store_step(fixture.store, LAHAR_WORK_RETENTION);
            joins += lahar_store_step(fixture.store, LAHAR_WORK_JOIN);
            measure();
        }
        group_bytes = i == 0 ? disk_use(&fixture) : group_bytes;
    }
    fixture.io->ops = plain_ops;
    cr_assert_gt(joins, 10);
    cr_assert_gt(stat_of(&fixture).dropped_events, 0);
    /* Groups are alike; a joined file is at most a twentieth of the limit. */
    cr_assert_leq(most_bytes, LIMIT + group_bytes + group_bytes / 8 + LIMIT / 20,
                  "%lu bytes, groups of %lu", (unsigned long)most_bytes,
                  (unsigned long)group_bytes);
    cr_assert_gt(most_bytes, LIMIT * 9 / 10);
    store_fixture_deinit(&fixture);
}

/* --- large files -------------------------------------------------------------------------- */

static uint64_t unsynced_bytes;
static uint64_t most_unsynced_bytes;
static unsigned syncs;
static unsigned failing_sync; /* 0: none */

static lahar_status write_and_count(struct lahar_io *io, struct lahar_io_file *file,
                                    uint64_t offset, const void *data, size_t size,
                                    lahar_error *error)
{
    unsynced_bytes += size;
    most_unsynced_bytes =
        unsynced_bytes > most_unsynced_bytes ? unsynced_bytes : most_unsynced_bytes;
    return plain_ops->write(io, file, offset, data, size, error);
}

static lahar_status sync_and_count(struct lahar_io *io, struct lahar_io_file *file,
                                   lahar_error *error)
{
    unsynced_bytes = 0;
    if (++syncs == failing_sync) {
        return lahar_fail(error, LAHAR_NO_SPACE, "planted");
    }
    return plain_ops->sync(io, file, error);
}

/* A group of some megabytes that nothing makes smaller. */
static void roll_large_group(struct store_fixture *fixture, uint32_t stream, uint64_t seed)
{
    enum {
        COUNT = 48,
        SIZE = 128 * 1024
    };
    static char texts[COUNT][SIZE];
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+ ";
    lahar_batch *batch = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_batch_create(fixture->store, &batch, &error), LAHAR_OK);
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < SIZE; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            texts[i][k] = letters[seed >> 58];
        }
        const lahar_value value = {
            .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {texts[i], SIZE}};
        const lahar_event event = {
            .stream = stream, .time_ns = 1000, .values = &value, .value_count = 1};
        cr_assert_eq(lahar_batch_add(batch, &event, &error), LAHAR_OK, "%s", error.message);
    }
    cr_assert_eq(lahar_batch_commit(batch, NULL, NULL, &error), LAHAR_OK, "%s", error.message);
    lahar_batch_destroy(batch);
    roll(fixture);
}

/* Commits wait for what is being synced: never more than a step of a file that is written in the
 * background. And wherever such a sync fails, the parts stay. */
Test(join, syncs_large_files_step_by_step)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 12);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    for (uint64_t i = 0; i < 3; i++) {
        roll_large_group(&fixture, stream, i);
    }
    store_fixture_close(&fixture);
    fixture.config.join_file_count = 2;
    plain_ops = fixture.io->ops;
    struct lahar_io_ops ops = *plain_ops;
    ops.write = write_and_count;
    ops.sync = sync_and_count;
    unsigned tries = 0;
    bool is_joined = false;
    while (!is_joined) {
        store_fixture_open(&fixture);
        unsynced_bytes = 0;
        most_unsynced_bytes = 0;
        syncs = 0;
        failing_sync = ++tries;
        fixture.io->ops = &ops;
        (void)lahar_store_step(fixture.store, LAHAR_WORK_JOIN);
        fixture.io->ops = plain_ops;
        is_joined = stat_of(&fixture).event_file_count < 3;
        cr_assert(is_joined == (syncs < failing_sync), "sync %u", failing_sync);
        cr_assert_eq(stat_of(&fixture).event_count, 3 * 48);
        /* What is there is read whole, and nothing else is left. */
        lahar_verify_options verify = {.struct_size = sizeof verify, .full = true};
        lahar_verify_result result = {.struct_size = sizeof result};
        cr_assert_eq(lahar_verify(fixture.store, &verify, &result, NULL), LAHAR_OK);
        cr_assert_eq(result.finding_count, 0);
        cr_assert_eq(name_count(&fixture), 3 * stat_of(&fixture).event_file_count + 1);
        store_fixture_close(&fixture);
        cr_assert_lt(tries, 100);
    }
    cr_assert_gt(syncs, 4);
    cr_assert_leq(most_unsynced_bytes, 2 * (uint64_t)LAHAR_FILE_SYNC_STEP, "%lu bytes",
                  (unsigned long)most_unsynced_bytes);
    store_fixture_deinit(&fixture);
}
