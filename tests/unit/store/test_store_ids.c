/* Ids are never handed out twice, whatever has become of the events that had them. */
#include "store_fixture.h"

static lahar_status note_newest(void *context, const char *name, bool is_directory)
{
    char *newest = context;
    const size_t size = strlen(name);
    if (!is_directory && size > 7 && strcmp(name + size - 7, ".events") == 0 &&
        strcmp(name, newest) > 0) {
        (void)snprintf(newest, 128, "%s", name);
    }
    return LAHAR_OK;
}

/* Makes the newest event file unreadable. */
static void ruin_newest(struct store_fixture *fixture)
{
    char newest[128] = "";
    char path[160];
    struct lahar_io_file *file = NULL;
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store/events", note_newest, newest, NULL),
                 LAHAR_OK);
    (void)snprintf(path, sizeof path, "store/events/%s", newest);
    cr_assert_eq(fixture->io->ops->open(fixture->io, path, LAHAR_IO_WRITE, &file, NULL), LAHAR_OK);
    cr_assert_eq(fixture->io->ops->truncate(fixture->io, file, 10, NULL), LAHAR_OK);
    fixture->io->ops->close(fixture->io, file);
    const size_t size = strlen(path);
    memcpy(path + size - 7, ".toc", 5);
    (void)fixture->io->ops->unlink(fixture->io, path, NULL);
}

static void lose_manifest(struct store_fixture *fixture)
{
    for (unsigned i = 1; i < 5; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "store/manifest-%u", i);
        (void)fixture->io->ops->unlink(fixture->io, path, NULL);
    }
}

static void fill(struct store_fixture *fixture, uint32_t *stream_out)
{
    store_fixture_open(fixture);
    *stream_out = store_fixture_stream(fixture, 0);
    for (unsigned i = 0; i < 3; i++) {
        store_fixture_add(fixture, stream_out, 1, 10);
        cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    }
}

/* The next event's id lies above all that were handed out. */
static void expect_above(struct store_fixture *fixture, uint32_t stream, uint64_t highest_id)
{
    store_fixture_add(fixture, &stream, 1, 1);
    cr_assert_gt(fixture->events[fixture->event_count - 1].id, highest_id);
}

Test(store_ids, rise_above_a_tail_that_was_cut)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct store_fixture fixture;
        uint32_t stream = 0;
        lahar_batch *batch = NULL;
        store_fixture_init(&fixture, seed);
        fill(&fixture, &stream);
        uint64_t highest_id = 0;
        for (unsigned crash = 0; crash < 4; crash++) {
            cr_assert_eq(lahar_batch_create(fixture.store, &batch, NULL), LAHAR_OK);
            for (unsigned i = 0; i < 5; i++) {
                cr_assert_eq(
                    store_fixture_append(&fixture, batch, &stream, 1, 7, LAHAR_DURABILITY_NONE),
                    LAHAR_OK);
                const uint64_t id = fixture.events[fixture.event_count - 1].id;
                cr_assert_gt(fixture.events[fixture.event_count - 7].id, highest_id);
                highest_id = id;
            }
            lahar_batch_destroy(batch);
            store_fixture_crash(&fixture, seed * 5 + crash, true);
            store_fixture_open(&fixture);
        }
        expect_above(&fixture, stream, highest_id);
        store_fixture_deinit(&fixture);
    }
}

Test(store_ids, rise_above_a_newest_file_that_cannot_be_read)
{
    for (unsigned is_lost = 0; is_lost < 2; is_lost++) {
        struct store_fixture fixture;
        uint32_t stream = 0;
        store_fixture_init(&fixture, 31 + is_lost);
        fill(&fixture, &stream);
        const uint64_t highest_id = fixture.events[fixture.event_count - 1].id;
        store_fixture_close(&fixture);
        ruin_newest(&fixture);
        if (is_lost != 0) {
            lose_manifest(&fixture);
            fixture.options.repair = true;
        }
        store_fixture_open(&fixture);
        expect_above(&fixture, stream, highest_id);
        store_fixture_deinit(&fixture);
    }
}

Test(store_ids, rise_above_what_retention_dropped)
{
    for (unsigned is_lost = 0; is_lost < 2; is_lost++) {
        struct store_fixture fixture;
        uint32_t stream = 0;
        store_fixture_init(&fixture, 41 + is_lost);
        fill(&fixture, &stream);
        const uint64_t highest_id = fixture.events[fixture.event_count - 1].id;
        const lahar_retention limits = {.struct_size = sizeof limits, .max_bytes = 1};
        cr_assert_eq(lahar_retention_set(fixture.store, LAHAR_ANY_STREAM, &limits, NULL), LAHAR_OK);
        lahar_stat stat = {.struct_size = sizeof stat};
        cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
        cr_assert_eq(stat.event_file_count, 0);
        if (is_lost == 0) {
            store_fixture_crash(&fixture, 3, true);
        } else {
            store_fixture_close(&fixture);
            lose_manifest(&fixture);
            fixture.options.repair = true;
        }
        store_fixture_open(&fixture);
        expect_above(&fixture, stream, highest_id);
        store_fixture_deinit(&fixture);
    }
}
