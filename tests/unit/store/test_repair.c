/* Repair: the manifest is lost or damaged, and what the files and journals hold is all there. */
#include "tests/unit/store/store_fixture.h"

struct manifest_name {
    char name[64];
    char path[128];
};

static lahar_status note_manifest(void *context, const char *name, bool is_directory)
{
    struct manifest_name *found = context;
    if (!is_directory && strncmp(name, "manifest-", 9) == 0) {
        (void)snprintf(found->name, sizeof found->name, "store/%.48s", name);
    }
    return LAHAR_OK;
}

static struct manifest_name find_manifest(struct store_fixture *fixture)
{
    struct manifest_name found = {.name = ""};
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store", note_manifest, &found, NULL),
                 LAHAR_OK);
    return found;
}

static void lose_manifest(struct store_fixture *fixture)
{
    const struct manifest_name found = find_manifest(fixture);
    cr_assert_eq(fixture->io->ops->unlink(fixture->io, found.name, NULL), LAHAR_OK);
}

/* Two streams in three rollovers, and twenty events in the journals. */
static void make_store(struct store_fixture *fixture, uint32_t streams[2])
{
    store_fixture_open(fixture);
    streams[0] = store_fixture_stream(fixture, 0);
    streams[1] = store_fixture_stream(fixture, 1);
    for (unsigned i = 0; i < 3; i++) {
        store_fixture_add(fixture, streams, 2, 20);
        cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    }
    store_fixture_add(fixture, streams, 2, 20);
}

/* The same in a fixture of its own, closed. */
static void make_closed_store(struct store_fixture *fixture, uint64_t seed, uint32_t streams[2])
{
    store_fixture_init(fixture, seed);
    make_store(fixture, streams);
    store_fixture_close(fixture);
}

/* Refused without repair, whole with it, and an ordinary store from then on. */
static void check_repair(struct store_fixture *fixture, const uint32_t streams[2])
{
    lahar_error error = {0};
    uint32_t stream = 99;
    const uint64_t last_id = fixture->events[fixture->event_count - 1].id;
    cr_assert_eq(store_fixture_try_open(fixture, &error), LAHAR_CORRUPT);
    fixture->options.repair = true;
    store_fixture_open(fixture);
    check_scan(fixture);
    check_get(fixture);
    cr_assert_eq(lahar_stream_find(fixture->store, "s1", &stream, NULL), LAHAR_OK);
    cr_assert_eq(stream, streams[1]);
    fixture->options.repair = false;
    store_fixture_add(fixture, streams, 2, 10);
    cr_assert_gt(fixture->events[fixture->event_count - 10].id, last_id);
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    check_scan(fixture);
    store_fixture_close(fixture);
    store_fixture_open(fixture);
    check_scan(fixture);
    lahar_verify_result result = {.struct_size = sizeof result};
    const lahar_verify_options options = {.struct_size = sizeof options, .full = true};
    cr_assert_eq(lahar_verify(fixture->store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, 0);
}

Test(repair, of_a_lost_manifest_keeps_everything)
{
    for (int ends_in_crash = 0; ends_in_crash < 2; ends_in_crash++) {
        struct store_fixture fixture;
        uint32_t streams[2];
        store_fixture_init(&fixture, 1);
        make_store(&fixture, streams);
        if (ends_in_crash) {
            cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
            store_fixture_crash(&fixture, 2, true);
        } else {
            store_fixture_close(&fixture);
        }
        lose_manifest(&fixture);
        check_repair(&fixture, streams);
        store_fixture_deinit(&fixture);
    }
}

Test(repair, of_a_damaged_manifest_keeps_everything)
{
    for (uint64_t byte = 20; byte < 400; byte += 90) {
        struct store_fixture fixture;
        uint32_t streams[2];
        make_closed_store(&fixture, 3, streams);
        const struct manifest_name found = find_manifest(&fixture);
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, found.name, byte * 8, NULL), LAHAR_OK);
        check_repair(&fixture, streams);
        store_fixture_deinit(&fixture);
    }
}

Test(repair, rolls_a_group_again_whose_files_are_incomplete)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_closed_store(&fixture, 4, streams);
    lose_manifest(&fixture);
    /* One of two event files of the third rollover, whose frames the journals still have. */
    char path[128];
    const uint64_t first_id = fixture.events[40].id;
    (void)snprintf(path, sizeof path, "store/events/%020llu-%020llu.%08u.events",
                   (unsigned long long)first_id, (unsigned long long)first_id + 18, 5u);
    cr_assert_eq(fixture.io->ops->unlink(fixture.io, path, NULL), LAHAR_OK, "%s", path);
    check_repair(&fixture, streams);
    store_fixture_deinit(&fixture);
}

Test(repair, leaves_dropped_what_retention_dropped)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    lahar_error error = {0};
    store_fixture_init(&fixture, 5);
    make_store(&fixture, streams);
    const lahar_retention none = {sizeof none, 1, 0};
    cr_assert_eq(lahar_retention_set(fixture.store, LAHAR_ANY_STREAM, &none, &error), LAHAR_OK);
    const lahar_retention all = {sizeof all, 0, 0};
    cr_assert_eq(lahar_retention_set(fixture.store, LAHAR_ANY_STREAM, &all, &error), LAHAR_OK);
    memmove(fixture.events, fixture.events + 60, 20 * sizeof *fixture.events);
    fixture.event_count = 20;
    check_scan(&fixture);
    store_fixture_close(&fixture);
    lose_manifest(&fixture);
    check_repair(&fixture, streams);
    store_fixture_deinit(&fixture);
}

Test(repair, sets_an_unreadable_event_file_aside_and_a_foreign_name_too)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_closed_store(&fixture, 6, streams);
    lose_manifest(&fixture);
    static const char junk[] = "not an event file";
    cr_assert_eq(lahar_sim_disk_write_file(
                     fixture.disk,
                     "store/events/00000000000000000001-00000000000000000002.00000099.events", junk,
                     sizeof junk, NULL),
                 LAHAR_OK);
    check_repair(&fixture, streams);
    struct lahar_io_file *file = NULL;
    cr_assert_eq(
        fixture.io->ops->open(
            fixture.io,
            "store/events/00000000000000000001-00000000000000000002.00000099.events.damaged",
            LAHAR_IO_READ, &file, NULL),
        LAHAR_OK);
    fixture.io->ops->close(fixture.io, file);
    store_fixture_deinit(&fixture);
}

/* --- tables and shards ------------------------------------------------------------------ */

static lahar_status note_suffix(void *context, const char *name, bool is_directory)
{
    struct manifest_name *found = context;
    const size_t size = strlen(name);
    const size_t end_size = strlen(found->name);
    /* found->name is the suffix until a name is found, which is longer. */
    if (!is_directory && found->name[0] == '.' && size > end_size &&
        strcmp(name + size - end_size, found->name) == 0) {
        (void)snprintf(found->path, sizeof found->path, "store/events/%.100s", name);
        found->name[0] = '\0';
    }
    return LAHAR_OK;
}

static void find_file(struct store_fixture *fixture, const char *suffix, char path_out[128])
{
    struct manifest_name found = {.name = ""};
    (void)snprintf(found.name, sizeof found.name, "%s", suffix);
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store/events", note_suffix, &found, NULL),
                 LAHAR_OK);
    (void)snprintf(path_out, 128, "%s", found.path);
}

static void expect_sound(struct store_fixture *fixture)
{
    lahar_verify_result result = {.struct_size = sizeof result};
    const lahar_verify_options options = {.struct_size = sizeof options, .full = true};
    cr_assert_eq(lahar_verify(fixture->store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, 0);
    lahar_query *query = NULL;
    lahar_query_result count = {.struct_size = sizeof count};
    cr_assert_eq(lahar_query_open(fixture->store, "level:ERROR", 11, NULL, &query, NULL), LAHAR_OK);
    cr_assert_eq(lahar_query_result_get(query, &count, NULL), LAHAR_OK);
    lahar_query_close(query);
    uint64_t errors = 0;
    for (size_t i = 0; i < fixture->event_count; i++) {
        errors += fixture->events[i].number % 3 == 0;
    }
    cr_assert_eq(count.total, errors);
    cr_assert_eq(count.shards_failed, 0);
    check_scan(fixture);
}

Test(repair, makes_lost_and_damaged_tables_and_shards_again)
{
    static const char *const suffixes[] = {".toc", ".shard"};
    for (unsigned damage = 0; damage < 3; damage++) {
        for (size_t i = 0; i < 2; i++) {
            struct store_fixture fixture;
            uint32_t streams[2];
            char path[128];
            make_closed_store(&fixture, 21, streams);
            find_file(&fixture, suffixes[i], path);
            struct lahar_io_file *file = NULL;
            if (damage == 0) {
                cr_assert_eq(fixture.io->ops->unlink(fixture.io, path, NULL), LAHAR_OK);
            } else {
                cr_assert_eq(fixture.io->ops->open(fixture.io, path, LAHAR_IO_WRITE, &file, NULL),
                             LAHAR_OK);
                cr_assert_eq(damage == 1
                                 ? fixture.io->ops->write(fixture.io, file, 150, "rotten", 6, NULL)
                                 : fixture.io->ops->truncate(fixture.io, file, 100, NULL),
                             LAHAR_OK);
                fixture.io->ops->close(fixture.io, file);
            }
            fixture.options.repair = true;
            store_fixture_open(&fixture);
            expect_sound(&fixture);
            store_fixture_close(&fixture);
            fixture.options.repair = false;
            store_fixture_open(&fixture);
            expect_sound(&fixture);
            store_fixture_deinit(&fixture);
        }
    }
}

Test(repair, changes_nothing_of_a_sound_store)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_closed_store(&fixture, 22, streams);
    store_fixture_open(&fixture);
    store_fixture_close(&fixture);
    uint64_t before = lahar_sim_disk_operations(fixture.disk);
    store_fixture_open(&fixture);
    const uint64_t plain = lahar_sim_disk_operations(fixture.disk) - before;
    store_fixture_close(&fixture);
    fixture.options.repair = true;
    before = lahar_sim_disk_operations(fixture.disk);
    store_fixture_open(&fixture);
    cr_assert_eq(lahar_sim_disk_operations(fixture.disk) - before, plain);
    expect_sound(&fixture);
    store_fixture_deinit(&fixture);
}
