/* Sessions on full disks: what is tried again, how often, and under which lock. */
#include <errno.h>

#include "engine/journal/journal.h"
#include "engine/rollover/retention.h"
#include "engine/store/store_state.h"
#include "store_fixture.h"

#define MS UINT64_C(1000000)

static const struct lahar_io_ops *real_ops;
static lahar_store *watched; /* its clock must be read under its lock */
static unsigned clock_reads;
static unsigned unlocked_reads;
static unsigned complaints;
static unsigned good_news;

/* The wall clock is read for the age clock; in the calls that are watched for nothing else. */
static int64_t read_realtime(struct lahar_io *io)
{
    if (watched != NULL) {
        clock_reads++;
        if (pthread_mutex_trylock(&watched->manifest_lock) == 0) {
            (void)pthread_mutex_unlock(&watched->manifest_lock);
            unlocked_reads++;
        }
    }
    return real_ops->realtime_ns(io);
}

static void count_lines(void *context, lahar_log_level level, const char *line)
{
    (void)context;
    complaints += level == LAHAR_LOG_WARNING && strstr(line, "reserving ids") != NULL;
    good_news += level == LAHAR_LOG_INFO && strstr(line, "reserved") != NULL;
}

static void be_full(struct store_fixture *fixture, bool is_full)
{
    lahar_sim_disk_fault(fixture->disk, is_full ? LAHAR_SIM_FAULT_ENOSPC : LAHAR_SIM_FAULT_NONE,
                         lahar_sim_disk_operations(fixture->disk), UINT64_MAX / 2, "manifest");
}

Test(store_session, reads_the_age_clock_under_the_lock_of_the_manifest)
{
    struct store_fixture fixture;
    struct lahar_io_ops ops;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    store_fixture_close(&fixture);
    be_full(&fixture, true);
    real_ops = fixture.io->ops;
    ops = *real_ops;
    ops.realtime_ns = read_realtime;
    fixture.io->ops = &ops;
    store_fixture_open(&fixture);
    cr_assert(atomic_load(&fixture.store->is_session_pending));
    be_full(&fixture, false);
    lahar_sim_disk_advance(fixture.disk, 1000 * MS);
    watched = fixture.store;
    (void)lahar_store_step(fixture.store, LAHAR_WORK_CEILING); /* begins the session */
    cr_assert_not(atomic_load(&fixture.store->is_session_pending));
    cr_assert_eq(clock_reads, 1);
    const lahar_retention limits = {sizeof limits, 1 << 20, 0};
    cr_assert_eq(lahar_retention_set(fixture.store, LAHAR_ANY_STREAM, &limits, NULL), LAHAR_OK);
    lahar_sim_disk_advance(fixture.disk, 3600000 * MS);
    (void)lahar_store_step(fixture.store, LAHAR_WORK_RETENTION);
    store_fixture_close(&fixture);
    watched = NULL;
    cr_assert_gt(clock_reads, 2);
    cr_assert_eq(unlocked_reads, 0, "%u of %u times without the lock", unlocked_reads, clock_reads);
    fixture.io->ops = real_ops;
    store_fixture_deinit(&fixture);
}

static void ignore(void *context, uint64_t id, lahar_status status)
{
    (void)context;
    (void)id;
    (void)status;
}

Test(store_session, knows_no_event_of_the_largest_id)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 3);
    store_fixture_open(&fixture);
    cr_assert_eq(lahar_durable_wait(fixture.store, UINT64_MAX, LAHAR_NO_WAIT, NULL), LAHAR_INVALID);
    cr_assert_eq(lahar_durable_notify(fixture.store, UINT64_MAX, ignore, NULL, NULL),
                 LAHAR_INVALID);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_session, complains_once_of_a_full_disk_and_does_not_hammer_it)
{
    struct store_fixture fixture;
    uint64_t id = 0;
    store_fixture_init(&fixture, 2);
    fixture.options.log = count_lines;
    fixture.config.id_reserve = 100;
    store_fixture_open(&fixture);
    uint32_t stream = store_fixture_stream(&fixture, 0);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
    for (unsigned round = 1; round <= 2; round++) {
        be_full(&fixture, true);
        for (unsigned i = 0; i < 8; i++) {
            cr_assert_eq(
                store_fixture_append(&fixture, batch, &stream, 1, 10, LAHAR_DURABILITY_INTERVAL),
                LAHAR_OK);
        }
        /* As the thread does it: every 50 ms for ten seconds. */
        for (unsigned i = 0; i < 200; i++) {
            cr_assert_not(lahar_store_step(fixture.store, LAHAR_WORK_CEILING));
            lahar_sim_disk_advance(fixture.disk, 50 * MS);
        }
        const uint64_t tries = lahar_sim_disk_fault_count(fixture.disk);
        cr_assert(tries >= 5 && tries <= 40, "%llu tries", (unsigned long long)tries);
        cr_assert_eq(complaints, round, "%u complaints", complaints);
        cr_assert_eq(good_news, round - 1);
        be_full(&fixture, false);
        lahar_sim_disk_advance(fixture.disk, 1000 * MS);
        cr_assert(lahar_store_step(fixture.store, LAHAR_WORK_CEILING));
        cr_assert_eq(good_news, round);
    }
    id = fixture.events[fixture.event_count - 1].id;
    cr_assert_gt(id, 100);
    lahar_batch_destroy(batch);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}
