/* A journal loses what was durable: that alone is lost, it is recorded, counted and reported by
 * every answer, and the store goes on. */
#include "engine/journal/segment_file.h"
#include "store_fixture.h"

enum {
    EVENTS = 60,
    FRAME_KIND = 45 /* docs/format/journal.md */
};

/* Bytes of the damaged journal file, and its path. */
struct journal_file {
    char path[64];
    uint8_t *bytes;
    size_t size;
};

/* Where in the file the batch frame of the event with that id begins, and its size. */
static size_t find_frame(const struct journal_file *file, uint64_t id, uint32_t *size_out)
{
    for (size_t at = LAHAR_JOURNAL_HEADER_SIZE; at + 56 <= file->size;) {
        uint32_t size;
        uint64_t first_id;
        memcpy(&size, file->bytes + at, 4);
        memcpy(&first_id, file->bytes + at + 8, 8);
        if (size == 0 || size > file->size - at) {
            break;
        }
        if (first_id == id && file->bytes[at + FRAME_KIND] == 1) {
            *size_out = size;
            return at;
        }
        at += size;
    }
    return 0;
}

static bool load_file(struct store_fixture *fixture, uint64_t number, struct journal_file *file_out)
{
    char name[LAHAR_JOURNAL_NAME_SIZE];
    struct lahar_io_file *file = NULL;
    uint64_t size = 0;
    struct lahar_io *io = fixture->io;
    lahar_journal_file_name(number, name);
    (void)snprintf(file_out->path, sizeof file_out->path, "store/journal/%s", name);
    if (io->ops->open(io, file_out->path, LAHAR_IO_READ, &file, NULL) != LAHAR_OK) {
        return false;
    }
    cr_assert_eq(io->ops->size(io, file, &size, NULL), LAHAR_OK);
    file_out->bytes = malloc(size + 1);
    cr_assert_eq(io->ops->read(io, file, 0, file_out->bytes, size, &file_out->size, NULL),
                 LAHAR_OK);
    io->ops->close(io, file);
    return true;
}

/* The file that holds the event. */
static void find_file(struct store_fixture *fixture, uint64_t id, struct journal_file *file_out)
{
    for (uint64_t number = 1; number < 20; number++) {
        uint32_t size = 0;
        if (load_file(fixture, number, file_out)) {
            if (find_frame(file_out, id, &size) != 0) {
                return;
            }
            free(file_out->bytes);
        }
    }
    cr_assert(false, "no journal file holds event %lu", (unsigned long)id);
}

enum damage {
    DAMAGE_BIT,
    DAMAGE_ZEROES,
    DAMAGE_MISDIRECTED, /* another frame's bytes */
    DAMAGE_HEADER,      /* of the file, which costs nothing, besides */
    DAMAGE_CUT_FILE,
    DAMAGE_COUNT
};

/* Damages the journals so that event 20 is lost, perhaps others with it. */
static void damage(struct store_fixture *fixture, enum damage kind)
{
    struct journal_file file;
    uint32_t size = 0;
    uint32_t other_size = 0;
    find_file(fixture, 20, &file);
    const size_t at = find_frame(&file, 20, &size);
    const size_t other = find_frame(&file, 19, &other_size);
    switch (kind) {
    case DAMAGE_BIT:
        file.bytes[at + 70] ^= 4;
        break;
    case DAMAGE_ZEROES:
        memset(file.bytes + at, 0, size);
        break;
    case DAMAGE_MISDIRECTED:
        memcpy(file.bytes + at, file.bytes + other, size < other_size ? size : other_size);
        break;
    case DAMAGE_HEADER:
        memset(file.bytes, 0x5a, 512);
        file.bytes[at + 70] ^= 4;
        break;
    default:
        file.size = at + 8;
        break;
    }
    cr_assert_eq(lahar_sim_disk_write_file(fixture->disk, file.path, file.bytes, file.size, NULL),
                 LAHAR_OK);
    free(file.bytes);
}

/* EVENTS events, one a batch, durable one after the other; then the process dies, or the store
 * is closed: nothing but the end of its session tells that the last ones were durable. */
static void make_store(struct store_fixture *fixture, uint64_t seed, bool is_closed)
{
    store_fixture_init(fixture, seed);
    store_fixture_open(fixture);
    const uint32_t stream = store_fixture_stream(fixture, 0);
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture->store, &batch, NULL), LAHAR_OK);
    for (unsigned i = 0; i < EVENTS; i++) {
        cr_assert_eq(store_fixture_append(fixture, batch, &stream, 1, 1, LAHAR_DURABILITY_COMMIT),
                     LAHAR_OK);
    }
    lahar_batch_destroy(batch);
    if (is_closed) {
        store_fixture_close(fixture);
    } else {
        store_fixture_crash(fixture, seed, true);
    }
}

struct lost {
    uint64_t first_id; /* 0: nothing reported */
    uint64_t last_id;
    unsigned reports;
};

static void note_lost(void *context, const lahar_finding *finding)
{
    struct lost *lost = context;
    cr_assert_str_eq(finding->file, "journal");
    lost->reports++;
    lost->first_id = finding->first_id;
    lost->last_id = finding->last_id;
}

static struct lost verify(struct store_fixture *fixture)
{
    struct lost lost = {0};
    const lahar_verify_options options = {
        .struct_size = sizeof options, .full = true, .on_finding = note_lost, .context = &lost};
    lahar_verify_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_verify(fixture->store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, lost.reports);
    return lost;
}

static bool is_lost(const struct lost *lost, uint64_t id)
{
    return lost->first_id <= id && id <= lost->last_id;
}

/* Every event is there or lost, scans and queries say so once, gets of lost ids always. */
static void check_contained(struct store_fixture *fixture, const struct lost *lost)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        lahar_scan_options options;
        lahar_scan_options_init(&options);
        options.newest_first = kind == 1;
        lahar_cursor *cursor = NULL;
        lahar_query *query = NULL;
        lahar_query_options query_options;
        lahar_query_options_init(&query_options);
        query_options.limit = 0;
        query_options.order = LAHAR_ORDER_OLDEST;
        cr_assert_eq(lahar_scan(fixture->store, &options, &cursor, NULL), LAHAR_OK);
        cr_assert_eq(lahar_query_open(fixture->store, "number", 6, &query_options, &query, NULL),
                     LAHAR_OK);
        unsigned reports = 0;
        for (size_t i = 0; i < fixture->event_count; i++) {
            const struct expected_event *expected =
                &fixture->events[kind == 1 ? fixture->event_count - 1 - i : i];
            if (is_lost(lost, expected->id)) {
                continue;
            }
            const lahar_event *event = NULL;
            lahar_error error = {0};
            lahar_status status = LAHAR_CORRUPT;
            for (unsigned tries = 0; tries < 2 && status == LAHAR_CORRUPT; tries++) {
                status = kind == 2 ? lahar_query_next(query, &event, &error)
                                   : lahar_cursor_next(cursor, &event, &error);
                reports += status == LAHAR_CORRUPT;
            }
            cr_assert_eq(status, LAHAR_OK, "event %zu: %s", i, error.message);
            check_event(event, expected);
        }
        const lahar_event *event = NULL;
        lahar_status status = LAHAR_CORRUPT;
        for (unsigned tries = 0; tries < 2 && status == LAHAR_CORRUPT; tries++) {
            status = kind == 2 ? lahar_query_next(query, &event, NULL)
                               : lahar_cursor_next(cursor, &event, NULL);
            reports += status == LAHAR_CORRUPT;
        }
        cr_assert_eq(status, LAHAR_NOT_FOUND);
        cr_assert_eq(reports, 1, "%u reports", reports);
        lahar_cursor_close(cursor);
        lahar_query_result result = {.struct_size = sizeof result};
        cr_assert_eq(lahar_query_result_get(query, &result, NULL), LAHAR_OK);
        cr_assert(result.is_partial);
        lahar_query_close(query);
    }
    for (uint64_t id = lost->first_id; id <= lost->last_id; id++) {
        lahar_cursor *cursor = NULL;
        const lahar_event *event = NULL;
        lahar_error error = {0};
        cr_assert_eq(lahar_get(fixture->store, &id, 1, &cursor, NULL), LAHAR_OK);
        cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_CORRUPT);
        cr_assert_not_null(strstr(error.message, "lost"));
        lahar_cursor_close(cursor);
    }
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture->store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.lost_ranges, 1);
    cr_assert_eq(stat.lost_ids, lost->last_id - lost->first_id + 1);
    cr_assert_eq(stat.event_count, fixture->event_count - stat.lost_ids);
}

static struct lost check_damage(struct store_fixture *fixture, enum damage kind)
{
    const struct lost lost = verify(fixture);
    cr_assert_eq(lost.reports, 1);
    cr_assert(is_lost(&lost, 20));
    cr_assert(kind == DAMAGE_CUT_FILE || (lost.first_id == 20 && lost.last_id == 20));
    check_contained(fixture, &lost);
    return lost;
}

Test(store_lost, is_what_a_damaged_journal_held_and_nothing_else)
{
    for (unsigned kind = 0; kind < DAMAGE_COUNT; kind++) {
        struct store_fixture fixture;
        make_store(&fixture, kind + 1, kind >= DAMAGE_HEADER);
        damage(&fixture, kind);
        /* A reader sees it and records nothing. */
        const uint64_t operations = lahar_sim_disk_operations(fixture.disk);
        fixture.options.read_only = true;
        store_fixture_open(&fixture);
        const struct lost seen = check_damage(&fixture, kind);
        store_fixture_close(&fixture);
        cr_assert_eq(lahar_sim_disk_operations(fixture.disk), operations);
        fixture.options.read_only = false;
        store_fixture_open(&fixture);
        const struct lost lost = check_damage(&fixture, kind);
        cr_assert_eq(lost.first_id, seen.first_id);
        cr_assert_eq(lost.last_id, seen.last_id);
        /* Ids go on above all that were ever handed out, lost ones included. */
        const uint32_t stream = store_fixture_stream(&fixture, 0);
        store_fixture_add(&fixture, &stream, 1, 7);
        cr_assert_gt(fixture.events[EVENTS].id, fixture.events[EVENTS - 1].id);
        check_contained(&fixture, &lost);
        /* So it stays: after a crash, in event files, in a store closed and opened. */
        cr_assert_eq(lahar_sync(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        store_fixture_crash(&fixture, 77, true);
        store_fixture_open(&fixture);
        check_contained(&fixture, &lost);
        cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
        check_contained(&fixture, &lost);
        store_fixture_close(&fixture);
        store_fixture_open(&fixture);
        check_contained(&fixture, &lost);
        store_fixture_deinit(&fixture);
    }
}

Test(store_lost, survives_a_crash_at_every_operation_of_the_recovery)
{
    unsigned crashes = 0;
    bool has_crashed = true;
    for (uint64_t point = 0; has_crashed; point++) {
        struct store_fixture fixture;
        make_store(&fixture, 9, false);
        damage(&fixture, DAMAGE_BIT);
        lahar_sim_disk_crash_at(fixture.disk, lahar_sim_disk_operations(fixture.disk) + point);
        lahar_error error = {0};
        (void)store_fixture_try_open(&fixture, &error);
        has_crashed = lahar_sim_disk_has_crashed(fixture.disk);
        crashes += has_crashed;
        lahar_sim_disk_crash_at(fixture.disk, UINT64_MAX);
        store_fixture_crash(&fixture, point + 1, true);
        store_fixture_open(&fixture);
        (void)check_damage(&fixture, DAMAGE_BIT);
        store_fixture_deinit(&fixture);
    }
    cr_assert_gt(crashes, 10);
}

Test(store_lost, is_still_known_after_a_repair_without_a_manifest)
{
    struct store_fixture fixture;
    make_store(&fixture, 11, false);
    damage(&fixture, DAMAGE_BIT);
    store_fixture_open(&fixture);
    const struct lost lost = check_damage(&fixture, DAMAGE_BIT);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_close(&fixture);
    for (unsigned number = 1; number < 4; number++) {
        char path[64];
        (void)snprintf(path, sizeof path, "store/manifest-%u", number);
        (void)fixture.io->ops->unlink(fixture.io, path, NULL);
    }
    fixture.options.repair = true;
    store_fixture_open(&fixture);
    check_contained(&fixture, &lost);
    store_fixture_deinit(&fixture);
}

/* The disk is full at the opening that finds the damage: it is told at once and recorded when
 * there is space again. */
Test(store_lost, is_told_before_there_is_space_to_record_it)
{
    struct store_fixture fixture;
    make_store(&fixture, 12, false);
    damage(&fixture, DAMAGE_BIT);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_ENOSPC, 0, UINT64_MAX, NULL);
    store_fixture_open(&fixture);
    const struct lost lost = check_damage(&fixture, DAMAGE_BIT);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    lahar_sim_disk_advance(fixture.disk, UINT64_C(1000000000));
    for (uint32_t work = 0; work < LAHAR_WORK_COUNT; work++) {
        (void)lahar_store_step(fixture.store, work);
    }
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 3);
    check_contained(&fixture, &lost);
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    check_contained(&fixture, &lost);
    store_fixture_deinit(&fixture);
}
