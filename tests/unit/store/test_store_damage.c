/* Damage costs what it hit and is named; the rest of the store goes on. */
#include "engine/store/store_state.h"
#include "store_fixture.h"

enum {
    EVENTS = 30000
};

/* Two streams, one rolled group of several blocks a stream, closed. */
static void make_rolled_store(struct store_fixture *fixture, uint32_t streams[2])
{
    store_fixture_init(fixture, 1);
    store_fixture_open(fixture);
    streams[0] = store_fixture_stream(fixture, 0);
    streams[1] = store_fixture_stream(fixture, 1);
    for (unsigned i = 0; i < EVENTS / 1000; i++) {
        store_fixture_add(fixture, streams, 2, 1000);
    }
    cr_assert_eq(lahar_rollover(fixture->store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_close(fixture);
}

struct search {
    const char *suffix;
    char *path;
    size_t path_size;
    unsigned skip;
};

static lahar_status match_name(void *context, const char *name, bool is_directory)
{
    struct search *search = context;
    const size_t size = strlen(name);
    const size_t suffix_size = strlen(search->suffix);
    if (!is_directory && size > suffix_size &&
        strcmp(name + size - suffix_size, search->suffix) == 0 && search->skip-- == 0) {
        (void)snprintf(search->path, search->path_size, "store/events/%s", name);
    }
    return LAHAR_OK;
}

static void find_file(struct store_fixture *fixture, const char *suffix, char path_out[160])
{
    path_out[0] = '\0';
    struct search search = {suffix, path_out, 160, 0};
    cr_assert_eq(fixture->io->ops->list(fixture->io, "store/events", match_name, &search, NULL),
                 LAHAR_OK);
    cr_assert(path_out[0] != '\0');
}

struct findings {
    unsigned count;
    char last_file[160];
    uint64_t first_id;
    uint64_t last_id;
};

static void note_finding(void *context, const lahar_finding *finding)
{
    struct findings *findings = context;
    findings->count++;
    (void)snprintf(findings->last_file, sizeof findings->last_file, "store/%s", finding->file);
    findings->first_id = finding->first_id;
    findings->last_id = finding->last_id;
}

static void verify(struct store_fixture *fixture, bool full, struct findings *findings_out)
{
    *findings_out = (struct findings){0};
    const lahar_verify_options options = {.struct_size = sizeof options,
                                          .full = full,
                                          .on_finding = note_finding,
                                          .context = findings_out};
    lahar_verify_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_verify(fixture->store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, findings_out->count);
}

Test(store_damage, of_a_block_costs_its_events_alone)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_rolled_store(&fixture, streams);
    char path[160];
    find_file(&fixture, ".events", path);
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, 8 * 500, NULL), LAHAR_OK);
    store_fixture_open(&fixture);
    struct findings findings;
    verify(&fixture, false, &findings);
    cr_assert_eq(findings.count, 1);
    cr_assert_str_eq(findings.last_file, path);
    cr_assert(findings.first_id != 0 && findings.last_id >= findings.first_id);

    for (unsigned backwards = 0; backwards < 2; backwards++) {
        lahar_scan_options options;
        lahar_scan_options_init(&options);
        options.newest_first = backwards == 1;
        lahar_cursor *cursor = NULL;
        cr_assert_eq(lahar_scan(fixture.store, &options, &cursor, NULL), LAHAR_OK);
        size_t corrupt = 0;
        size_t missing = 0;
        for (size_t i = 0; i < fixture.event_count; i++) {
            const struct expected_event *expected =
                &fixture.events[backwards == 1 ? fixture.event_count - 1 - i : i];
            if (expected->stream == streams[0] && expected->id >= findings.first_id &&
                expected->id <= findings.last_id) {
                missing++;
                continue;
            }
            const lahar_event *event = NULL;
            lahar_status status = lahar_cursor_next(cursor, &event, NULL);
            if (status == LAHAR_CORRUPT) {
                corrupt++;
                status = lahar_cursor_next(cursor, &event, NULL);
            }
            cr_assert_eq(status, LAHAR_OK);
            check_event(event, expected);
        }
        cr_assert_eq(corrupt, 1);
        cr_assert_gt(missing, 1000);
        lahar_cursor_close(cursor);
    }
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_get(fixture.store, &findings.first_id, 1, &cursor, NULL), LAHAR_OK);
    cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_CORRUPT);
    lahar_cursor_close(cursor);
    lahar_stat stat = {.struct_size = sizeof stat};
    cr_assert_eq(lahar_stat_get(fixture.store, &stat, NULL), LAHAR_OK);
    cr_assert_eq(stat.corrupt_blocks, 3);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

static void check_contained(const char *suffix, uint64_t byte)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_rolled_store(&fixture, streams);
    char path[160];
    find_file(&fixture, suffix, path);
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, 8 * byte + 3, NULL), LAHAR_OK);
    store_fixture_open(&fixture);
    check_scan(&fixture);
    check_get(&fixture);
    struct findings findings;
    verify(&fixture, false, &findings);
    cr_assert_geq(findings.count, 1);
    cr_assert_str_eq(findings.last_file, path);
    store_fixture_close(&fixture);
    cr_assert_eq(fixture.io->ops->unlink(fixture.io, path, NULL), LAHAR_OK);
    store_fixture_open(&fixture);
    check_scan(&fixture);
    check_get(&fixture);
    verify(&fixture, false, &findings);
    cr_assert_eq(findings.count, 1);
    cr_assert_str_eq(findings.last_file, path);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_damage, of_a_table_of_contents_costs_nothing)
{
    check_contained(".toc", 30);
}

Test(store_damage, of_a_shard_costs_nothing_but_time)
{
    check_contained(".shard", 1000);
}

Test(store_damage, of_any_byte_around_the_blocks_is_found_by_verify_and_costs_nothing)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_rolled_store(&fixture, streams);
    char path[160];
    find_file(&fixture, ".events", path);
    struct lahar_io_file *file = NULL;
    uint64_t size = 0;
    cr_assert_eq(fixture.io->ops->open(fixture.io, path, LAHAR_IO_READ, &file, NULL), LAHAR_OK);
    cr_assert_eq(fixture.io->ops->size(fixture.io, file, &size, NULL), LAHAR_OK);
    fixture.io->ops->close(fixture.io, file);
    store_fixture_open(&fixture);
    struct findings findings;
    /* A header of 64 bytes and a footer of 192; a few bytes of each part of both. */
    for (uint64_t i = 0; i < 64 + 192; i += 5) {
        const uint64_t bit = 8 * (i < 64 ? i : size - 256 + i) + i % 8;
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, bit, NULL), LAHAR_OK);
        verify(&fixture, false, &findings);
        cr_assert_eq(findings.count, 1, "byte %llu", (unsigned long long)i);
        cr_assert_str_eq(findings.last_file, path);
        cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, bit, NULL), LAHAR_OK);
    }
    verify(&fixture, false, &findings);
    cr_assert_eq(findings.count, 0);
    const uint64_t last_bit = 8 * size - 1;
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, path, last_bit, NULL), LAHAR_OK);
    check_scan(&fixture);
    check_get(&fixture);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_damage, of_a_missing_event_file_is_never_a_silent_answer)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_rolled_store(&fixture, streams);
    char path[160];
    find_file(&fixture, ".events", path);
    cr_assert_eq(fixture.io->ops->unlink(fixture.io, path, NULL), LAHAR_OK);
    store_fixture_open(&fixture);
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_scan(fixture.store, NULL, &cursor, NULL), LAHAR_OK);
    size_t corrupt = 0;
    size_t found = 0;
    for (;;) {
        const lahar_status status = lahar_cursor_next(cursor, &event, NULL);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        corrupt += status == LAHAR_CORRUPT;
        found += status == LAHAR_OK;
    }
    cr_assert_eq(corrupt, 1);
    cr_assert_eq(found, EVENTS / 2);
    lahar_cursor_close(cursor);
    struct findings findings;
    verify(&fixture, true, &findings);
    cr_assert_eq(findings.count, 1);
    cr_assert_str_eq(findings.last_file, path);
    /* The other stream is whole, and the store takes new events. */
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    options.stream = streams[1];
    check_scan_of(&fixture, &options, fixture.event_count);
    store_fixture_add(&fixture, streams, 2, 10);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

Test(store_damage, verify_of_a_sound_store_finds_nothing_and_counts_everything)
{
    struct store_fixture fixture;
    uint32_t streams[2];
    make_rolled_store(&fixture, streams);
    store_fixture_open(&fixture);
    store_fixture_add(&fixture, streams, 2, 10);
    const lahar_verify_options options = {.struct_size = sizeof options, .full = true};
    lahar_verify_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_verify(fixture.store, &options, &result, NULL), LAHAR_OK);
    cr_assert_eq(result.finding_count, 0);
    cr_assert_eq(result.event_count, EVENTS + 10);
    /* Identity, manifest, and three files of each of two streams. */
    cr_assert_eq(result.file_count, 8);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}

/* The manifest's last record rots away after the journals were recycled: the event files
 * that it named are then unnamed, and the only copy. */
Test(store_damage, of_the_manifests_tail_does_not_remove_the_only_copy)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 1);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    store_fixture_add(&fixture, &stream, 1, 100);
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    store_fixture_crash(&fixture, 1, false);
    struct lahar_io *io = fixture.io;
    struct lahar_io_file *file = NULL;
    uint64_t size = 0;
    cr_assert_eq(io->ops->open(io, "store/manifest-1", LAHAR_IO_READ, &file, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->size(io, file, &size, NULL), LAHAR_OK);
    io->ops->close(io, file);
    cr_assert_eq(lahar_sim_disk_flip_bit(fixture.disk, "store/manifest-1", (size - 1) * 8, NULL),
                 LAHAR_OK);
    /* Either the journals still had the events, or the opening says what is wrong; the
     * event file must be there in both cases. */
    const lahar_status status = store_fixture_try_open(&fixture, NULL);
    if (status == LAHAR_OK) {
        check_scan(&fixture);
        lahar_store_abandon(fixture.store);
        fixture.store = NULL;
    } else {
        cr_assert_eq(status, LAHAR_CORRUPT);
        char path[160];
        find_file(&fixture, ".events", path);
    }
    store_fixture_deinit(&fixture);
}

Test(store_damage, of_a_file_under_a_running_query_or_scan_is_reported)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 77);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    for (unsigned i = 0; i < 2; i++) {
        store_fixture_add(&fixture, &stream, 1, 30);
        cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    }
    store_fixture_close(&fixture);
    store_fixture_open(&fixture);
    lahar_query *query = NULL;
    lahar_cursor *cursor = NULL;
    lahar_error error = {0};
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_query_open(fixture.store, "number", 6, NULL, &query, NULL), LAHAR_OK);
    cr_assert_eq(lahar_scan(fixture.store, NULL, &cursor, NULL), LAHAR_OK);
    /* The older of the two files becomes empty while both are held. */
    char path[128];
    char name[LAHAR_FILE_NAME_SIZE];
    struct lahar_segment_set *set = lahar_store_acquire_set(fixture.store);
    lahar_segment_file_name(&set->readable[0]->entry.info, ".events", name);
    lahar_segment_set_release(set);
    (void)snprintf(path, sizeof path, "store/events/%s", name);
    cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, path, "", 0, NULL), LAHAR_OK);
    unsigned found = 0;
    unsigned reported = 0;
    lahar_status status = LAHAR_OK;
    while ((status = lahar_query_next(query, &event, &error)) != LAHAR_NOT_FOUND) {
        cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT);
        found += status == LAHAR_OK;
        reported += status == LAHAR_CORRUPT && strstr(error.message, "1..30") != NULL;
        error = (lahar_error){0};
    }
    cr_assert_eq(found, 30);
    cr_assert_geq(reported, 1);
    lahar_query_result result = {.struct_size = sizeof result};
    const lahar_status counted = lahar_query_result_get(query, &result, NULL);
    cr_assert(counted == LAHAR_CORRUPT || result.is_partial || result.total == 60);
    lahar_query_close(query);
    cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_CORRUPT);
    cr_assert_not_null(strstr(error.message, "1..30"), "%s", error.message);
    for (size_t i = 30; i < 60; i++) {
        cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
        check_event(event, &fixture.events[i]);
    }
    lahar_cursor_close(cursor);
    store_fixture_deinit(&fixture);
}
