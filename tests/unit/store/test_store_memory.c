/* Each allocation of a store's life is refused in turn: the caller learns it, nothing
 * leaks, nothing that was acknowledged is lost. */
#include "failing_allocator.h"
#include "store_fixture.h"

/* Appends, rolls over, appends, reads; stops at the first refusal. */
static lahar_status live(struct store_fixture *fixture)
{
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "s0", .schema = LAHAR_SCHEMA_LOG};
    uint32_t stream = 0;
    lahar_batch *batch = NULL;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    const lahar_value value = {
        .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {"some words", 10}};
    const lahar_event appended = {.time_ns = 5, .values = &value, .value_count = 1};
    lahar_status status = lahar_stream_create(fixture->store, &spec, &stream, &error);
    if (status == LAHAR_EXISTS) {
        status = LAHAR_OK;
    }
    for (unsigned i = 0; status == LAHAR_OK && i < 2; i++) {
        status = lahar_batch_create(fixture->store, &batch, &error);
        if (status == LAHAR_OK) {
            status = lahar_append(batch, &appended, NULL, NULL, &error);
        }
        lahar_batch_destroy(batch);
        batch = NULL;
        if (status == LAHAR_OK && i == 0) {
            status = lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, &error);
        }
    }
    if (status == LAHAR_OK) {
        status = lahar_scan(fixture->store, NULL, &cursor, &error);
    }
    while (status == LAHAR_OK) {
        status = lahar_cursor_next(cursor, &event, &error);
    }
    lahar_cursor_close(cursor);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

static uint64_t count_events(struct store_fixture *fixture)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    return stat.event_count;
}

static void refuse_in_turn(bool fails_on)
{
    bool has_refused = true;
    for (uint64_t n = 0; has_refused; n++) {
        struct store_fixture fixture;
        struct failing_allocator allocator;
        store_fixture_init(&fixture, 1);
        failing_allocator_init(&allocator, n);
        allocator.fails_on = fails_on;
        fixture.options.allocator = &allocator.allocator;
        lahar_status status = store_fixture_try_open(&fixture, NULL);
        if (status == LAHAR_OK) {
            status = live(&fixture);
            const lahar_status closed = lahar_store_close(fixture.store, LAHAR_WAIT_FOREVER, NULL);
            fixture.store = NULL;
            status = status == LAHAR_OK ? closed : status;
        }
        has_refused = allocator.refused_count != 0;
        cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY || status == LAHAR_POISONED ||
                      status == LAHAR_BUSY,
                  "allocation %lu: %s", (unsigned long)n, lahar_status_name(status));
        cr_assert(status == LAHAR_OK || has_refused);
        cr_assert_eq(allocator.live_count, 0, "allocation %lu: %ld pieces leak", (unsigned long)n,
                     (long)allocator.live_count);
        fixture.options.allocator = NULL;
        lahar_error error = {0};
        cr_assert_eq(store_fixture_try_open(&fixture, &error), LAHAR_OK, "allocation %lu: %s",
                     (unsigned long)n, error.message);
        const uint64_t before = count_events(&fixture);
        cr_assert(before == 2 || has_refused);
        cr_assert_eq(live(&fixture), LAHAR_OK);
        cr_assert_eq(count_events(&fixture), before + 2);
        store_fixture_close(&fixture);
        store_fixture_deinit(&fixture);
    }
}

Test(store_memory, survives_the_refusal_of_any_single_allocation)
{
    refuse_in_turn(false);
}

Test(store_memory, survives_memory_that_runs_out_for_good)
{
    refuse_in_turn(true);
}
