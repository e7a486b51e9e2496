/* Event files in several directories: where they go, and what becomes of a store when one
 * of the directories is full, fails, is not there or is another's. */
#include "engine/store/store_state.h"
#include "store_fixture.h"

#define SECOND UINT64_C(1000000000)

/* What the disk under each path pretends to be. */
struct disk_view {
    const char *path; /* beginning of the paths concerned */
    uint64_t free_bytes;
    int refuses; /* errno of whoever creates a file there; 0: none */
};
static struct disk_view views[3];
static const struct lahar_io_ops *real_ops;

static const struct disk_view *view_of(const char *path)
{
    for (size_t i = 0; i < 3; i++) {
        if (views[i].path != NULL && strncmp(path, views[i].path, strlen(views[i].path)) == 0) {
            return &views[i];
        }
    }
    return NULL;
}

static lahar_status tell_space(struct lahar_io *io, const char *path,
                               struct lahar_io_space *space_out, lahar_error *error)
{
    const struct disk_view *view = view_of(path);
    if (view == NULL) {
        return real_ops->space(io, path, space_out, error);
    }
    *space_out = (struct lahar_io_space){1000000, view->free_bytes};
    return LAHAR_OK;
}

static lahar_status open_or_refuse(struct lahar_io *io, const char *path, unsigned flags,
                                   struct lahar_io_file **file_out, lahar_error *error)
{
    const struct disk_view *view = view_of(path);
    if (view != NULL && view->refuses != 0 && (flags & LAHAR_IO_CREATE) != 0) {
        if (error != NULL) {
            error->status = view->refuses == 28 ? LAHAR_NO_SPACE : LAHAR_IO;
            error->sys_errno = view->refuses;
        }
        return view->refuses == 28 ? LAHAR_NO_SPACE : LAHAR_IO;
    }
    return real_ops->open(io, path, flags, file_out, error);
}

static const lahar_volume_spec two[] = {{"one", "d1"}, {"two", "d2"}};

static void set_up(struct store_fixture *fixture, struct lahar_io_ops *ops, uint64_t seed)
{
    store_fixture_init(fixture, seed);
    real_ops = fixture->io->ops;
    *ops = *real_ops;
    ops->space = tell_space;
    ops->open = open_or_refuse;
    fixture->io->ops = ops;
    views[0] = (struct disk_view){"store/events", 100, 0};
    views[1] = (struct disk_view){"d1", 300, 0};
    views[2] = (struct disk_view){"d2", 200, 0};
    fixture->options.volumes = two;
    fixture->options.volume_count = 2;
    store_fixture_open(fixture);
    fixture->options.volume_count = 0; /* they are remembered */
}

static void tear_down(struct store_fixture *fixture)
{
    lahar_store_abandon(fixture->store);
    fixture->store = NULL;
    fixture->io->ops = real_ops;
    store_fixture_deinit(fixture);
}

static void add_group(struct store_fixture *fixture)
{
    const uint32_t stream = store_fixture_stream(fixture, 0);
    store_fixture_add(fixture, &stream, 1, 10);
    lahar_error error = {0};
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

static lahar_volume_info info_of(struct store_fixture *fixture, uint32_t volume)
{
    lahar_volume_info info = {.struct_size = sizeof info};
    cr_assert_eq(lahar_volume_info_get(fixture->store, volume, &info, NULL), LAHAR_OK);
    return info;
}

static void expect_files(struct store_fixture *fixture, uint32_t own, uint32_t one, uint32_t other)
{
    cr_assert_eq(info_of(fixture, 0).file_count, own);
    cr_assert_eq(info_of(fixture, 1).file_count, one);
    cr_assert_eq(info_of(fixture, 2).file_count, other);
}

/* One group in each of them: "one", "two", the store's own. */
static void fill_all(struct store_fixture *fixture)
{
    add_group(fixture);
    views[1].free_bytes = 50;
    add_group(fixture);
    views[2].free_bytes = 60;
    add_group(fixture);
    expect_files(fixture, 1, 1, 1);
}

static void check_all(struct store_fixture *fixture)
{
    check_scan(fixture);
    check_get(fixture);
    lahar_verify_result result = {.struct_size = sizeof result};
    const lahar_verify_options options = {.struct_size = sizeof options, .full = true};
    cr_assert_eq(lahar_verify(fixture->store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, 0);
}

Test(volumes, take_files_by_free_space_and_are_remembered)
{
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    set_up(&fixture, &ops, 1);
    fill_all(&fixture);
    check_all(&fixture);
    const lahar_volume_info info = info_of(&fixture, 2);
    cr_assert_str_eq(info.name, "two");
    cr_assert_str_eq(info.path, "d2");
    cr_assert(info.is_available);
    cr_assert_eq(info.capacity_bytes, 1000000);
    cr_assert_eq(info.free_bytes, 60);
    cr_assert_gt(info.file_bytes, 0);
    lahar_volume_info none = {.struct_size = sizeof none};
    cr_assert_eq(lahar_volume_info_get(fixture.store, 3, &none, NULL), LAHAR_NOT_FOUND);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    expect_files(&fixture, 1, 1, 1);
    check_all(&fixture);
    store_fixture_close(&fixture);
    fixture.options.read_only = true;
    store_fixture_open(&fixture);
    check_all(&fixture);
    tear_down(&fixture);
}

Test(volumes, that_are_full_or_fail_do_not_stop_the_others)
{
    static const int refusals[] = {28, 5}; /* ENOSPC, EIO */
    for (size_t i = 0; i < 2; i++) {
        struct store_fixture fixture;
        struct lahar_io_ops ops;
        set_up(&fixture, &ops, 2);
        views[1].refuses = refusals[i]; /* where most space is free */
        const uint32_t stream = store_fixture_stream(&fixture, 0);
        for (unsigned n = 0; n < 3; n++) {
            store_fixture_add(&fixture, &stream, 1, 10);
            /* The attempt that meets the failure is made again elsewhere. */
            lahar_status status = lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL);
            if (status != LAHAR_OK) {
                cr_assert_eq(n, 0);
                status = lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL);
            }
            cr_assert_eq(status, LAHAR_OK);
        }
        expect_files(&fixture, 0, 0, 3);
        check_all(&fixture);
        views[1].refuses = 0;
        lahar_sim_disk_advance(fixture.disk, 60 * SECOND);
        add_group(&fixture);
        expect_files(&fixture, 0, 1, 3); /* it is tried again */
        check_all(&fixture);
        tear_down(&fixture);
    }
}

/* The group in volume "one" cannot be read; the others can. */
static void expect_one_lost(struct store_fixture *fixture)
{
    cr_assert_not(info_of(fixture, 1).is_available);
    cr_assert_eq(info_of(fixture, 1).file_count, 1);
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_scan(fixture->store, NULL, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_CORRUPT);
    cr_assert_not_null(strstr(error.message, "events 1 to 10"), "%s", error.message);
    for (size_t i = 10; i < fixture->event_count; i++) {
        cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
        check_event(event, &fixture->events[i]);
    }
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_NOT_FOUND);
    lahar_cursor_close(cursor);
    const uint64_t id = 5;
    cr_assert_eq(lahar_get(fixture->store, &id, 1, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_CORRUPT);
    lahar_cursor_close(cursor);
}

Test(volumes, that_are_missing_or_foreign_cost_their_events_until_they_are_back)
{
    for (unsigned is_foreign = 0; is_foreign < 2; is_foreign++) {
        struct store_fixture fixture;
        struct lahar_io_ops ops;
        set_up(&fixture, &ops, 3);
        fill_all(&fixture);
        store_fixture_close(&fixture);
        /* As when the disk is not mounted, or another one is: the marker is not there, or wrong. */
        if (is_foreign == 0) {
            cr_assert_eq(real_ops->rename(fixture.io, "d1/LAHAR-VOLUME", "d1/away", NULL),
                         LAHAR_OK);
        } else {
            cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, "d1/LAHAR-VOLUME", 130, NULL),
                         LAHAR_OK);
        }
        store_fixture_open(&fixture);
        expect_one_lost(&fixture);
        add_group(&fixture);
        expect_one_lost(&fixture);
        store_fixture_close(&fixture);
        fixture.options.read_only = true;
        store_fixture_open(&fixture);
        expect_one_lost(&fixture);
        store_fixture_close(&fixture);
        fixture.options.read_only = false;
        if (is_foreign == 0) {
            cr_assert_eq(real_ops->rename(fixture.io, "d1/away", "d1/LAHAR-VOLUME", NULL),
                         LAHAR_OK);
        } else {
            cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, "d1/LAHAR-VOLUME", 130, NULL),
                         LAHAR_OK);
        }
        store_fixture_open(&fixture);
        check_all(&fixture);
        tear_down(&fixture);
    }
}

static lahar_status move_file(void *context, const char *name, bool is_directory)
{
    struct lahar_io *io = context;
    char from[128];
    char to[128];
    (void)is_directory;
    (void)snprintf(from, sizeof from, "d1/%.100s", name);
    (void)snprintf(to, sizeof to, "moved/%.100s", name);
    return real_ops->rename(io, from, to, NULL);
}

Test(volumes, can_be_moved)
{
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    set_up(&fixture, &ops, 4);
    fill_all(&fixture);
    store_fixture_close(&fixture);
    cr_assert_eq(real_ops->make_directory(fixture.io, "moved", NULL), LAHAR_OK);
    cr_assert_eq(real_ops->list(fixture.io, "d1", move_file, fixture.io, NULL), LAHAR_OK);
    const lahar_volume_spec moved[] = {{"one", "moved"}};
    fixture.options.volumes = moved;
    fixture.options.volume_count = 1;
    store_fixture_open(&fixture);
    check_all(&fixture);
    store_fixture_close(&fixture);
    fixture.options.volume_count = 0;
    store_fixture_open(&fixture);
    cr_assert_str_eq(info_of(&fixture, 1).path, "moved");
    check_all(&fixture);
    tear_down(&fixture);
}

Test(volumes, are_not_taken_from_another_store)
{
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    set_up(&fixture, &ops, 5);
    store_fixture_close(&fixture);
    lahar_error error = {0};
    lahar_sim_disk_advance(fixture.disk, SECOND);
    fixture.options.volume_count = 2;
    fixture.config.io = fixture.io;
    cr_assert_eq(lahar_store_open_config("other", &fixture.options, &fixture.config, LAHAR_NO_WAIT,
                                         &fixture.store, &error),
                 LAHAR_EXISTS);
    cr_assert_not_null(strstr(error.message, "another store"), "%s", error.message);
    tear_down(&fixture);
}

Test(volumes, are_found_again_when_the_manifest_is_lost)
{
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    set_up(&fixture, &ops, 6);
    fill_all(&fixture);
    store_fixture_close(&fixture);
    cr_assert_eq(real_ops->unlink(fixture.io, "store/manifest-1", NULL), LAHAR_OK);
    fixture.options.repair = true;
    store_fixture_open(&fixture);
    expect_files(&fixture, 1, 1, 1);
    check_all(&fixture);
    tear_down(&fixture);
}

Test(volumes, are_swept_of_files_that_the_manifest_does_not_name)
{
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    set_up(&fixture, &ops, 7);
    fill_all(&fixture);
    store_fixture_close(&fixture);
    static const char name[] = "d1/00000000000000000001-00000000000000000010.00000099.events";
    cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, name, "x", 1, NULL), LAHAR_OK);
    store_fixture_open(&fixture);
    struct lahar_io_file *file = NULL;
    cr_assert_eq(real_ops->open(fixture.io, name, LAHAR_IO_READ, &file, NULL), LAHAR_NOT_FOUND);
    check_all(&fixture);
    tear_down(&fixture);
}

static bool has_file(struct store_fixture *fixture, const char *directory, const char *name)
{
    char path[256];
    struct lahar_io_file *file = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    const lahar_status status = real_ops->open(fixture->io, path, LAHAR_IO_READ, &file, NULL);
    real_ops->close(fixture->io, file);
    return status == LAHAR_OK;
}

Test(volumes, are_swept_of_unfinished_files_and_of_nobody_elses)
{
    static const char *const own[] = {
        "00000077.events.tmp",
        "00000077.toc.tmp",
        "00000078.shard.tmp",
        "123456789.events.tmp",
        "00000000000000000001-00000000000000000010.00000079.toc.tmp",
        "00000000000000000001-00000000000000000010.00000079.shard.tmp",
        "names-12.tmp",
        "LAHAR-VOLUME.tmp",
    };
    static const char *const foreign[] = {
        "notes.tmp",
        ".tmp",
        "12345678.tmp",
        "2026.events.tmp",
        "00000077.csv.tmp",
        "a00000077.events.tmp",
        "names-.tmp",
        "names-a.tmp",
        "LAHAR-VOLUME2.tmp",
        "00000077.events.tmp.tmp",
        "1-2.tmp",
        "00000000000000000001-00000000000000000010.00000079.tmp",
        "names-1.tmp.orig",
        ("a very long name of a temporary file of some other program, longer "
         "than all own names.00000001.events.tmp"),
    };
    static const char *const directories[] = {"store/events", "d1", "d2"};
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    set_up(&fixture, &ops, 9);
    fill_all(&fixture);
    store_fixture_close(&fixture);
    for (size_t d = 0; d < 3; d++) {
        char path[256];
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
            (void)snprintf(path, sizeof path, "%s/%s", directories[d], own[i]);
            cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, path, "x", 1, NULL), LAHAR_OK);
        }
        for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
            (void)snprintf(path, sizeof path, "%s/%s", directories[d], foreign[i]);
            cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, path, "x", 1, NULL), LAHAR_OK);
        }
    }
    store_fixture_open(&fixture);
    for (size_t d = 0; d < 3; d++) {
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
            cr_expect_not(has_file(&fixture, directories[d], own[i]), "%s/%s was left",
                          directories[d], own[i]);
        }
        for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
            cr_expect(has_file(&fixture, directories[d], foreign[i]), "%s/%s was removed",
                      directories[d], foreign[i]);
        }
    }
    check_all(&fixture);
    /* Numbers of unfinished files are not used again. */
    cr_assert_geq(atomic_load(&fixture.store->next_file_number), 123456790);
    tear_down(&fixture);
}

static unsigned finding_count;
static char finding_files[8][128];

static void note_finding(void *context, const lahar_finding *finding)
{
    (void)context;
    (void)snprintf(finding_files[finding_count % 8], sizeof finding_files[0], "%s", finding->file);
    finding_count++;
}

static lahar_status flip_toc(void *context, const char *name, bool is_directory)
{
    char path[128];
    (void)snprintf(path, sizeof path, "d1/%.100s", name);
    return is_directory || strstr(name, ".toc") == NULL
               ? LAHAR_OK
               : lahar_sim_disk_flip_bit(context, path, 8 * 60, NULL);
}

Test(volumes, are_named_by_what_verification_finds_in_them)
{
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    set_up(&fixture, &ops, 10);
    fill_all(&fixture);
    cr_assert_eq(real_ops->list(fixture.io, "d1", flip_toc, fixture.disk, NULL), LAHAR_OK);
    lahar_verify_result result = {.struct_size = sizeof result};
    const lahar_verify_options options = {
        .struct_size = sizeof options, .full = true, .on_finding = note_finding};
    cr_assert_eq(lahar_verify(fixture.store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, 1);
    cr_assert_eq(finding_count, 1);
    cr_assert_eq(strncmp(finding_files[0], "d1/0000", 7), 0, "%s", finding_files[0]);
    cr_assert_not_null(strstr(finding_files[0], ".toc"));
    /* It is the name of a file. */
    struct lahar_io_file *file = NULL;
    cr_assert_eq(real_ops->open(fixture.io, finding_files[0], LAHAR_IO_READ, &file, NULL),
                 LAHAR_OK);
    real_ops->close(fixture.io, file);
    tear_down(&fixture);
}

/* --- the reserve of free space -------------------------------------------------------------- */

Test(volumes, with_too_little_free_space_make_rollover_wait)
{
    struct lahar_io_ops ops;
    struct store_fixture fixture;
    store_fixture_init(&fixture, 8);
    real_ops = fixture.io->ops;
    ops = *real_ops;
    ops.space = tell_space;
    ops.open = open_or_refuse;
    fixture.io->ops = &ops;
    memset(views, 0, sizeof views);
    views[0] = (struct disk_view){"store/events", 5000, 0};
    fixture.options.free_space_min = 1000;
    store_fixture_open(&fixture);
    for (unsigned i = 0; i < 3; i++) {
        add_group(&fixture);
    }
    views[0].free_bytes = 999;
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 10);
    cr_assert_eq(lahar_rollover(fixture.store, 0, NULL), LAHAR_TIMEOUT);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.event_file_count, 3); /* without a limit nothing is dropped */
    check_scan(&fixture);
    /* With one the oldest go, one at a time. */
    const lahar_retention limits = {sizeof limits, 1 << 20, 0};
    cr_assert_eq(lahar_retention_set(fixture.store, LAHAR_ANY_STREAM, &limits, NULL), LAHAR_OK);
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_lt(stat.event_file_count, 3);
    views[0].free_bytes = 5000;
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    tear_down(&fixture);
}
