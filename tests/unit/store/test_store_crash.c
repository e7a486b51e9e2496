/* Power failures at every disk operation of a store's life.
 *
 * One seeded scenario - open, streams, batches with offsets under all durabilities,
 * rollovers, a closing, a second session - is run again and again; each run loses power one
 * operation later. Afterwards the store is opened (losing power once more on the way, for some) and
 * compared with what was appended: an exact prefix, nothing acknowledged as durable missing, ids
 * never reused, offsets as of the last batch found. */
#include "store_fixture.h"

enum {
    STREAMS = 2
};

/* What a run knows when the power fails. */
struct run {
    struct store_fixture fixture;
    size_t durable_count;   /* events of the list that were acknowledged as durable */
    size_t batch_ends[400]; /* events of the list up to and with each batch */
    size_t batch_count;
    uint64_t highest_id; /* handed out */
    bool has_streams;
};

static void append_batch(struct run *run, lahar_batch *batch, const uint32_t *streams, size_t count,
                         lahar_durability durability)
{
    struct store_fixture *fixture = &run->fixture;
    char number[16];
    (void)snprintf(number, sizeof number, "%zu", run->batch_count + 1);
    if (lahar_batch_add_offset(batch, (lahar_bytes){"src", 3}, (lahar_bytes){"pos", 3},
                               (lahar_bytes){number, strlen(number)}, NULL) != LAHAR_OK) {
        return;
    }
    const size_t before = fixture->event_count;
    const lahar_status status =
        store_fixture_append(fixture, batch, streams, STREAMS, count, durability);
    if (fixture->event_count != before) {
        run->batch_ends[run->batch_count++] = fixture->event_count;
        run->highest_id = fixture->events[fixture->event_count - 1].id;
    }
    if (status == LAHAR_OK && durability == LAHAR_DURABILITY_COMMIT) {
        run->durable_count = fixture->event_count;
    }
}

/* One session; returns false when it met the power failure. */
static bool live(struct run *run, unsigned session)
{
    struct store_fixture *fixture = &run->fixture;
    lahar_batch *batch = NULL;
    uint32_t streams[STREAMS] = {0};
    if (store_fixture_try_open(fixture, NULL) != LAHAR_OK) {
        return false;
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "s%u", i);
        const lahar_stream_spec spec = {
            .struct_size = sizeof spec, .name = name, .schema = LAHAR_SCHEMA_LOG};
        const lahar_status status = lahar_stream_create(fixture->store, &spec, &streams[i], NULL);
        if (status != LAHAR_OK && status != LAHAR_EXISTS) {
            return false;
        }
    }
    if (lahar_batch_create(fixture->store, &batch, NULL) != LAHAR_OK) {
        return false;
    }
    static const lahar_durability durabilities[] = {LAHAR_DURABILITY_NONE, LAHAR_DURABILITY_COMMIT,
                                                    LAHAR_DURABILITY_INTERVAL};
    for (unsigned i = 0; i < 12; i++) {
        append_batch(run, batch, streams, 1 + (i * 5 + session) % 7, durabilities[i % 3]);
        if (i % 5 == 4 && lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK) {
            run->durable_count = fixture->event_count;
        }
        if (i % 4 == 3) {
            for (uint32_t work = 0; work < LAHAR_WORK_COUNT; work++) {
                (void)lahar_store_step(fixture->store, work);
            }
        }
    }
    lahar_batch_destroy(batch);
    if (session == 0) {
        if (lahar_store_close(fixture->store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK) {
            run->durable_count = fixture->event_count;
        }
        fixture->store = NULL;
    }
    return !lahar_sim_disk_has_crashed(fixture->disk);
}

static lahar_status read_number(void *context, lahar_bytes key, lahar_bytes value)
{
    char text[16] = "";
    (void)key;
    memcpy(text, value.data, value.size < sizeof text ? value.size : sizeof text - 1);
    *(size_t *)context = (size_t)strtoul(text, NULL, 10);
    return LAHAR_OK;
}

static size_t count_events(struct store_fixture *fixture)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    return (size_t)stat.event_count;
}

/* Compares the store with the run and cuts the run's list to what is there. */
static void check_prefix(struct run *run)
{
    struct store_fixture *fixture = &run->fixture;
    const size_t found = count_events(fixture);
    cr_assert(found >= run->durable_count && found <= fixture->event_count,
              "%zu events found, %zu durable, %zu appended", found, run->durable_count,
              fixture->event_count);
    size_t batches = 0;
    while (batches < run->batch_count && run->batch_ends[batches] <= found) {
        batches++;
    }
    cr_assert_eq(batches == 0 ? 0 : run->batch_ends[batches - 1], found, "half a batch");
    size_t offset = 0;
    cr_assert_eq(
        lahar_offset_visit(fixture->store, (lahar_bytes){"src", 3}, read_number, &offset, NULL),
        LAHAR_OK);
    cr_assert_eq(offset, batches, "offset %zu after %zu batches", offset, batches);
    fixture->event_count = found;
    check_scan(fixture);
    check_get(fixture);
}

static void check_verify(struct store_fixture *fixture)
{
    const lahar_verify_options options = {.struct_size = sizeof options, .full = true};
    lahar_verify_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_verify(fixture->store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, 0);
    cr_assert_eq(result.event_count, fixture->event_count);
}

static void check_after_crash(struct run *run, uint64_t seed)
{
    struct store_fixture *fixture = &run->fixture;
    /* Recovery may be interrupted too, and is simply run again. */
    for (uint64_t again = seed % 4; again > 0; again--) {
        lahar_sim_disk_crash_at(fixture->disk,
                                lahar_sim_disk_operations(fixture->disk) + seed % 23 + again);
        (void)store_fixture_try_open(fixture, NULL);
        store_fixture_crash(fixture, seed * 31 + again, true);
    }
    lahar_error error = {0};
    cr_assert_eq(store_fixture_try_open(fixture, &error), LAHAR_OK, "%s", error.message);
    check_prefix(run);
    const uint32_t stream = store_fixture_stream(fixture, 0);
    store_fixture_add(fixture, &stream, 1, 3);
    const uint64_t id = fixture->events[fixture->event_count - 3].id;
    cr_assert_gt(id, run->highest_id, "id %lu was handed out before", (unsigned long)id);
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    check_scan(fixture);
    check_verify(fixture);
    store_fixture_close(fixture);
    store_fixture_open(fixture);
    check_scan(fixture);
    store_fixture_close(fixture);
}

/* Returns false once the scenario is over before the power fails. */
static bool crash_at(uint64_t n, uint64_t seed, bool power_loss)
{
    struct run *run = calloc(1, sizeof *run);
    store_fixture_init(&run->fixture, seed);
    run->fixture.config.id_reserve = 64;
    run->fixture.config.manifest_growth_bytes = 600;
#ifdef LAHAR_PLANTED_BUGS
    /* Set by hand, to see that the test finds the bug. */
    const char *bugs = getenv("LAHAR_TEST_PLANTED_BUGS");
    run->fixture.config.planted_bugs = bugs == NULL ? 0 : (unsigned)strtoul(bugs, NULL, 0);
#endif
    lahar_sim_disk_crash_at(run->fixture.disk, n);
    const bool is_over = live(run, 0) && live(run, 1);
    store_fixture_crash(&run->fixture, seed * 7919 + n, power_loss);
    check_after_crash(run, seed + n);
    store_fixture_deinit(&run->fixture);
    free(run);
    return !is_over;
}

Test(store_crash, leaves_a_prefix_whatever_the_instant_of_a_power_failure)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t n = 0;
        while (crash_at(n, seed, true)) {
            n++;
        }
        cr_assert_gt(n, 100);
    }
}

Test(store_crash, of_the_process_alone_leaves_what_was_written)
{
    uint64_t n = 0;
    while (crash_at(n, 3, false)) {
        n += 3;
    }
    cr_assert_gt(n, 100);
}
