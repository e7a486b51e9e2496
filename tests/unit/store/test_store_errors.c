/* A store over a disk that fails: it refuses to write, reads go on, and opening it again recovers.
 */
#include <errno.h>

#include "store_fixture.h"

static lahar_status append_one(struct store_fixture *fixture, uint32_t stream,
                               lahar_durability durability)
{
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture->store, &batch, NULL), LAHAR_OK);
    const lahar_status status = store_fixture_append(fixture, batch, &stream, 1, 1, durability);
    lahar_batch_destroy(batch);
    return status;
}

static void arm(struct store_fixture *fixture, enum lahar_sim_fault fault, uint64_t count,
                const char *path_part)
{
    lahar_sim_disk_fault(fixture->disk, fault, lahar_sim_disk_operations(fixture->disk), count,
                         path_part);
}

/* One rolled group, some events in journals. */
static uint32_t make_store(struct store_fixture *fixture)
{
    store_fixture_init(fixture, 1);
    store_fixture_open(fixture);
    const uint32_t stream = store_fixture_stream(fixture, 0);
    store_fixture_add(fixture, &stream, 1, 500);
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_add(fixture, &stream, 1, 20);
    cr_assert_eq(lahar_sync(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    return stream;
}

/* Reads everything although nothing can be written; then opens the store again, which holds the
 * first count of the events. */
static void check_poisoned(struct store_fixture *fixture, uint32_t stream, size_t count)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.poisoned, LAHAR_POISONED);
    check_scan(fixture);
    check_get(fixture);
    const uint64_t operations = lahar_sim_disk_operations(fixture->disk);
    lahar_sim_disk_fault(fixture->disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    lahar_batch *batch = NULL;
    lahar_error error = {0};
    const lahar_event event = {.stream = stream};
    cr_assert_eq(lahar_batch_create(fixture->store, &batch, NULL), LAHAR_OK);
    cr_assert_eq(lahar_append(batch, &event, NULL, NULL, &error), LAHAR_POISONED);
    cr_assert_eq(error.sys_errno, EIO, "the first error is kept: %s", error.message);
    lahar_batch_destroy(batch);
    cr_assert_eq(lahar_sim_disk_operations(fixture->disk), operations);
    cr_assert_eq(lahar_store_close(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_POISONED);
    fixture->store = NULL;
    fixture->event_count = count;
    store_fixture_open(fixture);
    check_scan(fixture);
    cr_assert_eq(append_one(fixture, stream, LAHAR_DURABILITY_COMMIT), LAHAR_OK);
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    check_scan(fixture);
    store_fixture_deinit(fixture);
}

Test(store_errors, of_a_journal_poison_reads_go_on_and_reopening_recovers)
{
    struct store_fixture fixture;
    const uint32_t stream = make_store(&fixture);
    const size_t before = fixture.event_count;
    arm(&fixture, LAHAR_SIM_FAULT_EIO, 1, ".journal");
    cr_assert_eq(append_one(&fixture, stream, LAHAR_DURABILITY_COMMIT), LAHAR_POISONED);
    cr_assert_eq(fixture.event_count, before + 1, "it has its id, and is visible");
    cr_assert_eq(lahar_sim_disk_fault_count(fixture.disk), 1);
    check_poisoned(&fixture, stream, before);
}

Test(store_errors, of_the_manifest_poison_reads_go_on_and_reopening_recovers)
{
    struct store_fixture fixture;
    const uint32_t stream = make_store(&fixture);
    arm(&fixture, LAHAR_SIM_FAULT_SYNC_LOST, 2, "manifest");
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "more", .schema = LAHAR_SCHEMA_LOG};
    cr_assert_eq(lahar_stream_create(fixture.store, &spec, NULL, NULL), LAHAR_POISONED);
    cr_assert_eq(lahar_sim_disk_fault_count(fixture.disk), 1, "a sync is not tried again");
    check_poisoned(&fixture, stream, fixture.event_count);
}

/* Reading an event file fails once: that read alone. */
Test(store_errors, of_reading_an_event_file_cost_that_read)
{
    struct store_fixture fixture;
    (void)make_store(&fixture);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_READ, 0, 1, ".events");
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_get(fixture.store, &fixture.events[3].id, 1, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_IO, "%s", error.message);
    lahar_cursor_close(cursor);
    cr_assert_eq(lahar_sim_disk_fault_count(fixture.disk), 1);
    check_scan(&fixture);
    check_get(&fixture);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.poisoned, LAHAR_OK);
    store_fixture_deinit(&fixture);
}

/* What cannot be read now may be readable later: nothing is taken for lost. */
Test(store_errors, of_reading_a_journal_fail_the_opening_and_change_nothing)
{
    struct store_fixture fixture;
    (void)make_store(&fixture);
    store_fixture_crash(&fixture, 1, true);
    for (uint64_t failing = 1; failing < 4; failing++) {
        lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_READ, 0, failing, ".journal");
        lahar_error error = {0};
        cr_assert_eq(store_fixture_try_open(&fixture, &error), LAHAR_IO, "%s", error.message);
        cr_assert_gt(lahar_sim_disk_fault_count(fixture.disk), 0);
    }
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    store_fixture_open(&fixture);
    check_scan(&fixture);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.lost_ids, 0);
    store_fixture_deinit(&fixture);
}
