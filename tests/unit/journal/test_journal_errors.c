/* A disk that is full, fails, transfers less than asked or is interrupted: every row of the table
 * in docs/durability.md. */
#include <errno.h>

#include "journal_fixture.h"

enum {
    ROW = 300
};

static const struct lahar_journal_session open_session = {1, 1, 0};

static void append_many(struct fixture *f, uint32_t count, lahar_durability durability)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t id = 0;
        cr_assert_eq(fixture_append(f, 0, ROW, durability, LAHAR_WAIT_FOREVER, &id), LAHAR_OK, "%s",
                     f->error.message);
    }
}

static void arm(struct fixture *f, enum lahar_sim_fault fault, uint64_t count)
{
    lahar_sim_disk_fault(f->disk, fault, lahar_sim_disk_operations(f->disk), count, ".journal");
}

/* Durable events without a commit, beside which everything would be written durably. */
static void append_without_commits(struct fixture *f, uint32_t count)
{
    append_many(f, count, LAHAR_DURABILITY_INTERVAL);
    for (int i = 0; i < 10 && lahar_journals_durable_id(f->journals) <= count; i++) {
        lahar_sim_disk_advance(f->disk, UINT64_C(101) * 1000000);
        fixture_step_all(f);
    }
    cr_assert_eq(lahar_journals_durable_id(f->journals), count + 1);
}

static void check_view(struct fixture *f, uint64_t end_id)
{
    struct lahar_resident_view view;
    cr_assert_eq(lahar_journals_view(f->journals, LAHAR_NO_WAIT, &view, NULL), LAHAR_OK);
    cr_assert_eq(view.end_id, end_id);
    fixture_check_rows(view.batches, view.batch_count, 1);
    lahar_journals_unview(f->journals, &view);
}

static void check_after_power_loss(struct fixture *f, uint64_t end_id)
{
    fixture_crash(f, 5, true);
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(f, &open_session, 1, 1, &recovery), LAHAR_OK, "%s",
                 f->error.message);
    cr_assert_eq(recovery.end_id, end_id);
    fixture_check_rows(recovery.batches, recovery.batch_count, 1);
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
}

Test(journal_errors, a_full_disk_fails_a_commit_and_everything_recovers_when_space_returns)
{
    struct fixture f;
    fixture_create(&f, 1);
    fixture_open(&f, NULL);
    append_many(&f, 10, LAHAR_DURABILITY_COMMIT);
    arm(&f, LAHAR_SIM_FAULT_ENOSPC, 1000);
    uint64_t id = 0;
    cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                 LAHAR_NO_SPACE);
    cr_assert_eq(id, 11, "it was appended");
    cr_assert_gt(lahar_sim_disk_fault_count(f.disk), 0);
    cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK, "a full disk never poisons");
    cr_assert_eq(lahar_journals_wait(f.journals, 11, LAHAR_WAIT_FOREVER, NULL), LAHAR_NO_SPACE);
    check_view(&f, 12);
    /* Without waiting for the disk, appends go on while memory lasts. */
    append_many(&f, 5, LAHAR_DURABILITY_NONE);
    lahar_sim_disk_fault(f.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    lahar_sim_disk_advance(f.disk, UINT64_C(200) * 1000000);
    fixture_step_all(&f);
    cr_assert_eq(lahar_journals_wait(f.journals, 16, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK, "%s",
                 f.error.message);
    append_many(&f, 5, LAHAR_DURABILITY_COMMIT);
    check_view(&f, 22);
    check_after_power_loss(&f, 22);
    fixture_destroy(&f);
}

Test(journal_errors, a_disk_without_room_for_a_file_holds_appends_back)
{
    struct fixture f;
    fixture_create(&f, 2);
    f.options.memory_bytes = 2 << 20; /* chunks of 64 KiB, 16 a file of 1 MiB */
    fixture_open(&f, NULL);
    arm(&f, LAHAR_SIM_FAULT_ENOSPC, 100000);
    uint64_t id = 0;
    lahar_status status = LAHAR_OK;
    uint64_t appended = 0;
    while (status == LAHAR_OK && appended < 100000) {
        status = fixture_append(&f, 0, ROW, LAHAR_DURABILITY_NONE, UINT64_C(1000000000), &id);
        appended += status == LAHAR_OK;
    }
    cr_assert_eq(status, LAHAR_NO_SPACE, "%s", f.error.message);
    cr_assert_eq(id, 0);
    cr_assert_eq(lahar_journals_next_id(f.journals), appended + 1);
    lahar_sim_disk_fault(f.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    for (int i = 0; i < 3; i++) {
        lahar_sim_disk_advance(f.disk, UINT64_C(200) * 1000000);
        fixture_step_all(&f);
    }
    cr_assert_eq(lahar_journals_wait(f.journals, appended, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK,
                 "%s", f.error.message);
    lahar_journals_forget(f.journals, appended / 2);
    cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                 LAHAR_OK, "%s", f.error.message);
    cr_assert_eq(id, appended + 1);
    fixture_destroy(&f);
}

Test(journal_errors, what_has_its_place_in_a_file_becomes_durable_without_room_for_another_file)
{
    struct fixture f;
    fixture_create(&f, 8);
    f.options.memory_bytes = 2 << 20; /* chunks of 64 KiB, 16 a file of 1 MiB */
    f.options.journal_count = 1;
    fixture_open(&f, NULL);
    lahar_sim_disk_capacity(f.disk, 0); /* files keep what they have, and none grows */
    uint64_t id = 0;
    uint64_t appended = 0;
    lahar_status status = LAHAR_OK;
    while (appended < 10000) {
        status = fixture_append(&f, 0, ROW, LAHAR_DURABILITY_COMMIT, UINT64_C(1000000000), &id);
        if (status != LAHAR_OK) {
            break;
        }
        appended++;
    }
    cr_assert_eq(status, LAHAR_NO_SPACE);
    cr_assert_eq(id, 0, "event %" PRIu64 " was appended, and could have become durable", id);
    /* A frame is a row and a header of at most 128 bytes. */
    cr_assert_gt(appended * (ROW + 128), 1 << 20, "only %" PRIu64 " appends went", appended);
    cr_assert_eq(lahar_journals_durable_id(f.journals), appended + 1);
    /* Nothing is given up when the journals are stopped. */
    cr_assert_eq(lahar_journals_stop(f.journals, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK, "%s",
                 f.error.message);
    check_after_power_loss(&f, appended + 1);
    fixture_destroy(&f);
}

static void count_poisoned(void *context, uint64_t id, lahar_status status)
{
    uint32_t *count = context;
    (void)id;
    *count += status == LAHAR_POISONED;
}

/* in_flight: operations that the disk had when it failed, and may still carry out. */
static void check_poisoned(struct fixture *f, uint64_t end_id, uint64_t in_flight)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_journals_health(f->journals, &error), LAHAR_POISONED);
    cr_assert_neq(error.sys_errno, 0);
    const uint64_t operations = lahar_sim_disk_operations(f->disk);
    lahar_sim_disk_fault(f->disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    for (int i = 0; i < 10; i++) {
        lahar_sim_disk_advance(f->disk, UINT64_C(1000000000));
        fixture_step_all(f);
    }
    cr_assert_leq(lahar_sim_disk_operations(f->disk), operations + in_flight,
                  "something was written or synced after the failure: %s", error.message);
    uint64_t id = 1;
    cr_assert_eq(fixture_append(f, 0, ROW, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &id),
                 LAHAR_POISONED);
    cr_assert_eq(id, 0);
    cr_assert_eq(lahar_journals_wait(f->journals, end_id - 1, LAHAR_WAIT_FOREVER, NULL),
                 LAHAR_POISONED);
    check_view(f, end_id);
    cr_assert_eq(lahar_journals_stop(f->journals, LAHAR_WAIT_FOREVER, NULL), LAHAR_POISONED);
}

Test(journal_errors, a_failed_durable_write_poisons_at_once)
{
    struct fixture f;
    fixture_create(&f, 3);
    fixture_open(&f, NULL);
    append_many(&f, 10, LAHAR_DURABILITY_COMMIT);
    uint32_t poisoned = 0;
    cr_assert_eq(lahar_journals_notify(f.journals, 11, count_poisoned, &poisoned, NULL), LAHAR_OK);
    arm(&f, LAHAR_SIM_FAULT_EIO, 1);
    uint64_t id = 0;
    cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                 LAHAR_POISONED);
    cr_assert_eq(id, 11);
    check_poisoned(&f, 12, 0);
    cr_assert_eq(poisoned, 1);
    fixture_destroy(&f);
}

Test(journal_errors, a_failed_sync_is_never_tried_again)
{
    struct fixture f;
    fixture_create(&f, 4);
    fixture_open(&f, NULL);
    append_without_commits(&f, 10);
    append_many(&f, 10, LAHAR_DURABILITY_INTERVAL);
    fixture_step_all(&f);
    /* The sync fails, the data is lost, and another sync would succeed. */
    arm(&f, LAHAR_SIM_FAULT_SYNC_LOST, 1);
    for (int i = 0; i < 10 && lahar_sim_disk_fault_count(f.disk) == 0; i++) {
        lahar_sim_disk_advance(f.disk, UINT64_C(101) * 1000000);
        fixture_step_all(&f);
    }
    cr_assert_eq(lahar_sim_disk_fault_count(f.disk), 1);
    cr_assert_eq(lahar_journals_durable_id(f.journals), 11);
    check_poisoned(&f, 21, 0);
    fixture_destroy(&f);
}

static void run_storm(uint64_t seed, enum lahar_sim_fault fault)
{
    struct fixture f;
    fixture_create(&f, seed);
    fixture_open(&f, NULL);
    uint64_t end_id = 1;
    uint64_t struck = 0;
    for (int round = 0; round < 30; round++) {
        arm(&f, fault, 20);
        append_many(&f, 40, LAHAR_DURABILITY_NONE);
        append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
        struck += lahar_sim_disk_fault_count(f.disk);
        end_id += 43;
    }
    cr_assert_gt(struck, 100, "the storm was none: %" PRIu64, struck);
    cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK);
    check_view(&f, end_id);
    lahar_sim_disk_fault(f.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    check_after_power_loss(&f, end_id);
    fixture_destroy(&f);
}

Test(journal_errors, short_transfers_lose_nothing)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run_storm(seed, LAHAR_SIM_FAULT_SHORT);
    }
}

Test(journal_errors, interrupted_operations_lose_nothing)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run_storm(seed, LAHAR_SIM_FAULT_EINTR);
    }
}

Test(journal_errors, an_operation_that_never_gets_on_is_held_and_goes_on_when_it_can)
{
    struct fixture f;
    fixture_create(&f, 6);
    fixture_open(&f, NULL);
    append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
    arm(&f, LAHAR_SIM_FAULT_EINTR, UINT64_MAX / 2);
    uint64_t id = 0;
    cr_assert_eq(fixture_append(&f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                 LAHAR_TIMEOUT);
    cr_assert_eq(id, 4);
    const uint64_t tries = lahar_sim_disk_fault_count(f.disk);
    cr_assert_lt(tries, 100);
    fixture_step_all(&f);
    cr_assert_eq(lahar_sim_disk_fault_count(f.disk), tries, "it is tried again without a pause");
    /* For a minute: a few times a second. */
    for (int i = 0; i < 6000; i++) {
        lahar_sim_disk_advance(f.disk, UINT64_C(10) * 1000000);
        fixture_step_all(&f);
    }
    const uint64_t more = lahar_sim_disk_fault_count(f.disk) - tries;
    cr_assert(more > 100 && more < 2000, "%" PRIu64 " tries in a minute", more);
    cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK);
    check_view(&f, 5);
    lahar_sim_disk_fault(f.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    lahar_sim_disk_advance(f.disk, UINT64_C(200) * 1000000);
    fixture_step_all(&f);
    cr_assert_eq(lahar_journals_wait(f.journals, 4, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK, "%s",
                 f.error.message);
    append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
    check_after_power_loss(&f, 8);
    fixture_destroy(&f);
}

static void arm_errno(struct fixture *f, int sys_errno, uint64_t count)
{
    lahar_sim_disk_fault_errno(f->disk, sys_errno, lahar_sim_disk_operations(f->disk), count,
                               ".journal");
}

/* Three durable events before append_by. */
static void append_before(struct fixture *f, unsigned way)
{
    if (way == 2) {
        append_without_commits(f, 3);
    } else {
        append_many(f, 3, LAHAR_DURABILITY_COMMIT);
    }
}

/* The same by a commit that writes itself, by the writer's durable write, and by a plain one that a
 * sync follows. Returns the status of waiting for it. */
static lahar_status append_by(struct fixture *f, unsigned way, uint64_t *id_out)
{
    if (way == 0) {
        return fixture_append(f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, id_out);
    }
    const lahar_status status = fixture_append(
        f, 0, way == 1 ? 100000 : ROW, way == 1 ? LAHAR_DURABILITY_NONE : LAHAR_DURABILITY_INTERVAL,
        LAHAR_WAIT_FOREVER, id_out);
    if (status != LAHAR_OK) {
        return status;
    }
    if (way == 2) {
        lahar_sim_disk_advance(f->disk, UINT64_C(50) * 1000000);
        fixture_step_all(f);
    }
    return lahar_journals_wait(f->journals, *id_out, LAHAR_WAIT_FOREVER, &f->error);
}

Test(journal_errors, what_passes_by_itself_is_tried_again)
{
    static const int numbers[] = {EINTR, EAGAIN, ECANCELED};
    for (unsigned i = 0; i < 3 * (unsigned)(sizeof numbers / sizeof *numbers); i++) {
        struct fixture f;
        fixture_create(&f, i + 1);
        fixture_open(&f, NULL);
        append_before(&f, i % 3);
        arm_errno(&f, numbers[i / 3], 60);
        uint64_t id = 0;
        cr_assert_eq(append_by(&f, i % 3, &id), LAHAR_OK, "%s", f.error.message);
        cr_assert_eq(lahar_sim_disk_fault_count(f.disk), 60);
        check_after_power_loss(&f, 5);
        fixture_destroy(&f);
    }
}

Test(journal_errors, every_kind_of_no_space_waits_and_writing_goes_on_when_it_returns)
{
    static const int numbers[] = {ENOSPC, EDQUOT, EFBIG};
    for (unsigned i = 0; i < 3 * (unsigned)(sizeof numbers / sizeof *numbers); i++) {
        struct fixture f;
        fixture_create(&f, i + 1);
        fixture_open(&f, NULL);
        append_before(&f, i % 3);
        arm_errno(&f, numbers[i / 3], UINT64_MAX / 2);
        uint64_t id = 0;
        lahar_status status = append_by(&f, i % 3, &id);
        /* Of a sync it is a failure like any other; a write comes first. */
        cr_assert_eq(status, LAHAR_NO_SPACE, "%s", f.error.message);
        cr_assert_eq(id, 4);
        cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK);
        lahar_sim_disk_fault(f.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
        lahar_sim_disk_advance(f.disk, UINT64_C(200) * 1000000);
        fixture_step_all(&f);
        cr_assert_eq(lahar_journals_wait(f.journals, 4, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK,
                     "%s", f.error.message);
        check_after_power_loss(&f, 5);
        fixture_destroy(&f);
    }
}

Test(journal_errors, every_other_failure_poisons_reads_go_on_and_reopening_recovers)
{
    static const int numbers[] = {EIO, EROFS, ENODEV, ENXIO, EBADF, EFAULT, ENOMEM};
    for (unsigned i = 0; i < 3 * (unsigned)(sizeof numbers / sizeof *numbers); i++) {
        struct fixture f;
        fixture_create(&f, i + 1);
        fixture_open(&f, NULL);
        append_before(&f, i % 3);
        arm_errno(&f, numbers[i / 3], 1);
        uint64_t id = 0;
        cr_assert_eq(append_by(&f, i % 3, &id), LAHAR_POISONED);
        cr_assert_eq(lahar_sim_disk_fault_count(f.disk), 1);
        lahar_error error = {0};
        cr_assert_eq(lahar_journals_health(f.journals, &error), LAHAR_POISONED);
        cr_assert_eq(error.sys_errno, numbers[i / 3]);
        check_poisoned(&f, 5, i % 3 == 1);
        fixture_crash(&f, i + 1, true);
        struct lahar_journal_recovery recovery;
        cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK);
        cr_assert(recovery.end_id == 4 || recovery.end_id == 5);
        cr_assert_eq(recovery.lost_count, 0);
        fixture_check_rows(recovery.batches, recovery.batch_count, 1);
        f.options.session = 2;
        f.options.next_id = 100;
        fixture_open(&f, &recovery);
        append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
        cr_assert_eq(lahar_journals_durable_id(f.journals), 103);
        fixture_destroy(&f);
    }
}

Test(journal_errors, a_file_system_without_durable_writes_gets_syncs_instead)
{
    static const int numbers[] = {EINVAL, EOPNOTSUPP, ENOSYS, EPERM};
    for (unsigned i = 0; i < 2 * (unsigned)(sizeof numbers / sizeof *numbers); i++) {
        struct fixture f;
        fixture_create(&f, i + 1);
        fixture_open(&f, NULL);
        append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
        arm_errno(&f, numbers[i / 2], 1);
        uint64_t id = 0;
        cr_assert_eq(append_by(&f, i % 2, &id), LAHAR_OK, "%s", f.error.message);
        cr_assert_eq(lahar_sim_disk_fault_count(f.disk), 1);
        struct lahar_journals_stat before;
        struct lahar_journals_stat after;
        lahar_journals_stat_get(f.journals, &before);
        cr_assert_gt(before.syncs, 0);
        append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
        lahar_journals_stat_get(f.journals, &after);
        cr_assert_eq(after.syncs, before.syncs + 3);
        check_after_power_loss(&f, 8);
        fixture_destroy(&f);
    }
}

Test(journal_errors, durable_writes_that_there_are_none_of_are_noticed_at_opening)
{
    static const int numbers[] = {EINVAL, EOPNOTSUPP, ENOSYS, EPERM};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct fixture f;
        fixture_create(&f, i + 1);
        f.options.start_threads = true; /* without them nothing is measured */
        arm_errno(&f, numbers[i], 1);
        fixture_open(&f, NULL);
        cr_assert_eq(lahar_sim_disk_fault_count(f.disk), 1);
        struct lahar_journals_stat stat;
        lahar_journals_stat_get(f.journals, &stat);
        cr_assert_str_eq(stat.sync_mode, "fdatasync");
        cr_assert_not_null(strstr(stat.sync_reason, "RWF_DSYNC"), "%s", stat.sync_reason);
        append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
        check_after_power_loss(&f, 4);
        fixture_destroy(&f);
    }
}

Test(journal_errors, a_plain_write_that_is_invalid_poisons)
{
    struct fixture f;
    fixture_create(&f, 1);
    fixture_open(&f, NULL);
    append_before(&f, 2);
    arm_errno(&f, EINVAL, 1);
    uint64_t id = 0;
    cr_assert_eq(append_by(&f, 2, &id), LAHAR_POISONED);
    check_poisoned(&f, 5, 0);
    fixture_destroy(&f);
}

Test(journal_errors, a_transfer_of_nothing_is_tried_again_and_poisons_in_the_end)
{
    for (unsigned way = 0; way < 3; way++) {
        struct fixture f;
        fixture_create(&f, way + 1);
        fixture_open(&f, NULL);
        append_before(&f, way);
        arm(&f, LAHAR_SIM_FAULT_NOTHING, 60);
        uint64_t id = 0;
        cr_assert_eq(append_by(&f, way, &id), LAHAR_OK, "%s", f.error.message);
        cr_assert_eq(lahar_sim_disk_fault_count(f.disk), 60);
        arm(&f, LAHAR_SIM_FAULT_NOTHING, UINT64_MAX / 2);
        cr_assert_eq(append_by(&f, way, &id), LAHAR_POISONED);
        cr_assert_lt(lahar_sim_disk_fault_count(f.disk), 200);
        check_view(&f, 6);
        fixture_destroy(&f);
    }
}

Test(journal_errors, a_queue_that_takes_nothing_is_offered_it_again)
{
    struct fixture f;
    fixture_create(&f, 1);
    fixture_open(&f, NULL);
    append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
    arm(&f, LAHAR_SIM_FAULT_REFUSED, 50);
    append_many(&f, 20, LAHAR_DURABILITY_NONE);
    for (int i = 0; i < 200; i++) {
        lahar_sim_disk_advance(f.disk, UINT64_C(10) * 1000000);
        fixture_step_all(&f);
    }
    cr_assert_eq(lahar_journals_wait(f.journals, 23, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK, "%s",
                 f.error.message);
    cr_assert_eq(lahar_sim_disk_fault_count(f.disk), 50);
    check_after_power_loss(&f, 24);
    fixture_destroy(&f);
}

Test(journal_errors, a_jumbo_batch_waits_for_space_too)
{
    struct fixture f;
    fixture_create(&f, 7);
    fixture_open(&f, NULL);
    append_many(&f, 3, LAHAR_DURABILITY_COMMIT);
    lahar_sim_disk_capacity(f.disk, 3 << 20);
    uint64_t id = 0;
    cr_assert_eq(fixture_append(&f, 0, 3 << 20, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                 LAHAR_NO_SPACE);
    cr_assert_eq(lahar_journals_health(f.journals, NULL), LAHAR_OK);
    lahar_sim_disk_capacity(f.disk, UINT64_MAX);
    lahar_sim_disk_advance(f.disk, UINT64_C(200) * 1000000);
    fixture_step_all(&f);
    if (id == 0) {
        cr_assert_eq(
            fixture_append(&f, 0, 3 << 20, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
            LAHAR_OK);
    }
    cr_assert_eq(id, 4);
    cr_assert_eq(lahar_journals_wait(f.journals, 4, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK, "%s",
                 f.error.message);
    check_after_power_loss(&f, 5);
    fixture_destroy(&f);
}
