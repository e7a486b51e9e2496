/* The manifest as a log: changes survive, torn ones do not, damage is told from both. */
#include <criterion/criterion.h>

#include "failing_allocator.h"
#include "manifest_fixture.h"

static struct lahar_manifest *open_manifest(struct manifest_fixture *fixture, uint64_t growth_bytes)
{
    struct lahar_manifest *manifest = NULL;
    lahar_error error = {0};
    cr_assert_eq(fixture_open(fixture, growth_bytes, &manifest, &error), LAHAR_OK, "%s",
                 error.message);
    return manifest;
}

Test(manifest, starts_with_nothing)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    struct lahar_manifest *manifest = NULL;
    cr_assert_eq(fixture_open(&fixture, 1 << 20, &manifest, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    manifest = open_manifest(&fixture, 1 << 20);
    cr_assert_eq(manifest->state.ceiling, 1);
    cr_assert_eq(manifest->state.rolled_id, 1);
    cr_assert_eq(manifest->state.file_count, 0);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

static void put_everything(struct lahar_buffer *records)
{
    const lahar_field_spec fields[] = {{"job", LAHAR_KEYWORD, true}, {"size", LAHAR_U64, false}};
    lahar_manifest_put_field(records, 0, "message");
    const struct lahar_manifest_stream stream = {
        .name = "logs", .schema = LAHAR_SCHEMA_LOG, .fields = fields, .field_count = 2};
    lahar_manifest_put_stream(records, 0, &stream);
    lahar_manifest_put_session_begin(records, 1, 1);
    lahar_manifest_put_ceiling(records, 5000);
    const struct lahar_manifest_file file = {.info = {.first_id = 3,
                                                      .last_id = 99,
                                                      .number = 12,
                                                      .stream = 0,
                                                      .block_count = 4,
                                                      .event_count = 90,
                                                      .time_min_ns = -5,
                                                      .time_max_ns = 6,
                                                      .arrival_min_ns = 7,
                                                      .arrival_max_ns = 8,
                                                      .raw_bytes = 1000,
                                                      .file_bytes = 200,
                                                      .toc_bytes = 30,
                                                      .group_first_id = 1,
                                                      .group_end_id = 100,
                                                      .group_file_count = 1},
                                             .shard_bytes = 77,
                                             .shard_checksum = 0xdeadbeef,
                                             .toc_checksum = 0xcafef00d,
                                             .has_shard = true};
    lahar_manifest_put_file(records, &file);
    lahar_manifest_put_rolled(records, 100);
    struct lahar_offset_table offsets;
    lahar_offset_table_init(&offsets, true, &lahar_allocator_libc);
    const struct lahar_offset_record record = {{"src", 3}, {"key", 3}, {"value", 5}};
    cr_assert_eq(lahar_offset_table_set(&offsets, &record, NULL), LAHAR_OK);
    lahar_manifest_put_offsets(records, &offsets);
    lahar_offset_table_deinit(&offsets);
}

static void check_everything(const struct lahar_manifest_state *state)
{
    cr_assert_eq(state->field_count, 1);
    cr_assert_str_eq(state->streams[0].name, "logs");
    cr_assert_eq(state->streams[0].field_count, 2);
    cr_assert_str_eq(state->streams[0].fields[1].name, "size");
    cr_assert_eq(state->streams[0].fields[1].type, LAHAR_U64);
    cr_assert(state->streams[0].fields[0].not_indexed);
    cr_assert_not(state->streams[0].fields[1].not_indexed);
    cr_assert_eq(state->session_count, 1);
    cr_assert_eq(state->ceiling, 5000);
    cr_assert_eq(state->rolled_id, 100);
    cr_assert_eq(state->file_count, 1);
    const struct lahar_manifest_file *file = &state->files[0];
    cr_assert_eq(file->info.first_id, 3);
    cr_assert_eq(file->info.last_id, 99);
    cr_assert_eq(file->info.number, 12);
    cr_assert_eq(file->info.block_count, 4);
    cr_assert_eq(file->info.event_count, 90);
    cr_assert_eq(file->info.time_min_ns, -5);
    cr_assert_eq(file->info.time_max_ns, 6);
    cr_assert_eq(file->info.arrival_min_ns, 7);
    cr_assert_eq(file->info.arrival_max_ns, 8);
    cr_assert_eq(file->info.raw_bytes, 1000);
    cr_assert_eq(file->info.file_bytes, 200);
    cr_assert_eq(file->info.toc_bytes, 30);
    cr_assert_eq(file->info.group_first_id, 1);
    cr_assert_eq(file->info.group_end_id, 100);
    cr_assert_eq(file->info.group_file_count, 1);
    cr_assert_eq(file->shard_bytes, 77);
    cr_assert_eq(file->shard_checksum, 0xdeadbeef);
    cr_assert_eq(file->toc_checksum, 0xcafef00d);
    cr_assert(file->has_shard);
    cr_assert_eq(state->next_file_number, 13);
    cr_assert_eq(state->offsets.count, 1);
    cr_assert_arr_eq(state->offsets.records[0].value.data, "value", 5);
}

static struct lahar_manifest_file file_of(uint64_t number, uint32_t stream, uint64_t first_id,
                                          uint64_t end_id)
{
    return (struct lahar_manifest_file){.info = {.first_id = first_id,
                                                 .last_id = end_id - 1,
                                                 .number = number,
                                                 .stream = stream,
                                                 .block_count = 1,
                                                 .event_count = end_id - first_id,
                                                 .raw_bytes = 10 * (end_id - first_id),
                                                 .file_bytes = 400,
                                                 .toc_bytes = 268,
                                                 .group_first_id = first_id,
                                                 .group_end_id = end_id,
                                                 .group_file_count = 1}};
}

/* Applies a replacement to files 1, 2, 3 of stream 0, ids 1..9, 10..19, 20..29, beside file 4 of
 * stream 1, ids 10..19. */
static lahar_status replace(struct lahar_manifest_state *state, const uint64_t *removed,
                            uint32_t removed_count, const struct lahar_manifest_file *added,
                            uint32_t added_count)
{
    struct lahar_buffer records;
    lahar_buffer_init(&records, &lahar_allocator_libc);
    lahar_manifest_state_init(state, &lahar_allocator_libc);
    for (uint32_t i = 0; i < 2; i++) {
        const struct lahar_manifest_stream stream = {.name = i == 0 ? "a" : "b",
                                                     .schema = LAHAR_SCHEMA_LOG};
        lahar_manifest_put_stream(&records, i, &stream);
    }
    const struct lahar_manifest_file files[] = {file_of(1, 0, 1, 10), file_of(2, 0, 10, 20),
                                                file_of(3, 0, 20, 30), file_of(4, 1, 10, 20)};
    for (size_t i = 0; i < 4; i++) {
        lahar_manifest_put_file(&records, &files[i]);
    }
    lahar_manifest_put_replace(&records, removed, removed_count, added, added_count);
    const lahar_status status = lahar_manifest_state_apply(state, records.data, records.size, NULL);
    lahar_buffer_deinit(&records);
    return status;
}

Test(manifest, replaces_files_by_one_that_holds_the_same)
{
    struct lahar_manifest_state state;
    const uint64_t removed[] = {1, 2};
    const struct lahar_manifest_file joined = file_of(5, 0, 1, 20);
    cr_assert_eq(replace(&state, removed, 2, &joined, 1), LAHAR_OK);
    cr_assert_eq(state.file_count, 3);
    cr_assert_eq(state.files[0].info.number, 5);
    cr_assert_eq(state.files[1].info.number, 4);
    cr_assert_eq(state.files[2].info.number, 3);
    cr_assert_eq(state.next_file_number, 6);
    lahar_manifest_state_deinit(&state);
}

Test(manifest, replaces_a_shard_under_its_files_number)
{
    struct lahar_manifest_state state;
    const uint64_t removed[] = {2};
    struct lahar_manifest_file same = file_of(2, 0, 10, 20);
    same.has_shard = true;
    same.shard_bytes = 99;
    cr_assert_eq(replace(&state, removed, 1, &same, 1), LAHAR_OK);
    cr_assert_eq(state.file_count, 4);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(state.files[i].shard_bytes, state.files[i].info.number == 2 ? 99 : 0);
    }
    lahar_manifest_state_deinit(&state);
}

Test(manifest, refuses_replacements_that_lose_or_invent_events)
{
    const uint64_t two[] = {1, 2};
    const uint64_t unknown[] = {1, 9};
    const uint64_t mixed[] = {2, 4};
    const uint64_t gap[] = {1, 3};
    struct lahar_manifest_file fewer = file_of(5, 0, 1, 20);
    fewer.info.event_count--;
    struct lahar_manifest_file smaller = file_of(5, 0, 1, 20);
    smaller.info.raw_bytes--;
    struct lahar_manifest_file around = file_of(5, 0, 1, 30);
    around.info.event_count = 19;
    around.info.raw_bytes = 190;
    const struct lahar_manifest_file right = file_of(5, 0, 1, 20);
    const struct lahar_manifest_file longer = file_of(5, 0, 1, 21);
    const struct lahar_manifest_file other = file_of(5, 1, 1, 20);
    const struct {
        const uint64_t *removed;
        const struct lahar_manifest_file *added;
        uint32_t added_count;
    } cases[] = {{two, &fewer, 1},     {two, &smaller, 1}, {two, &longer, 1}, {two, &other, 1},
                 {unknown, &right, 1}, {mixed, &right, 1}, {gap, &around, 1}, {two, NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lahar_manifest_state state;
        cr_assert_eq(replace(&state, cases[i].removed, 2, cases[i].added, cases[i].added_count),
                     LAHAR_CORRUPT, "case %zu", i);
        lahar_manifest_state_deinit(&state);
    }
}

Test(manifest, keeps_every_kind_of_record_through_reopening_and_snapshots)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    struct lahar_manifest *manifest = open_manifest(&fixture, 1);
    struct lahar_buffer records;
    lahar_buffer_init(&records, &lahar_allocator_libc);
    put_everything(&records);
    cr_assert_eq(lahar_manifest_commit(manifest, &records, NULL), LAHAR_OK);
    lahar_buffer_deinit(&records);
    check_everything(&manifest->state);
    lahar_manifest_close(manifest);

    manifest = open_manifest(&fixture, 1);
    check_everything(&manifest->state);
    /* The log is longer than the first, empty snapshot, so this change replaces the file. */
    cr_assert_eq(fixture_commit_ceiling(manifest, 5000), LAHAR_OK);
    cr_assert_eq(manifest->number, 2);
    check_everything(&manifest->state);
    lahar_manifest_close(manifest);

    size_t size = 0;
    cr_assert_null(fixture_read(&fixture, "store/manifest-1", &size));
    manifest = open_manifest(&fixture, 1 << 20);
    cr_assert_eq(manifest->number, 2);
    check_everything(&manifest->state);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

Test(manifest, stays_small_under_many_changes)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    struct lahar_manifest *manifest = open_manifest(&fixture, 4096);
    for (uint64_t i = 2; i < 2000; i++) {
        cr_assert_eq(fixture_commit_ceiling(manifest, i), LAHAR_OK);
        cr_assert_leq(manifest->size_bytes, 4096 + 200);
    }
    cr_assert_gt(manifest->number, 5);
    lahar_manifest_close(manifest);
    manifest = open_manifest(&fixture, 4096);
    cr_assert_eq(manifest->state.ceiling, 1999);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

/* A file of three changes behind the snapshot, and where the last one begins. */
static uint8_t *three_changes(struct manifest_fixture *fixture, size_t *size_out,
                              size_t *last_begin_out)
{
    cr_assert_eq(fixture_create(fixture), LAHAR_OK);
    struct lahar_manifest *manifest = open_manifest(fixture, 1 << 20);
    cr_assert_eq(fixture_commit_ceiling(manifest, 10), LAHAR_OK);
    cr_assert_eq(fixture_commit_ceiling(manifest, 20), LAHAR_OK);
    *last_begin_out = (size_t)manifest->size_bytes;
    cr_assert_eq(fixture_commit_ceiling(manifest, 30), LAHAR_OK);
    lahar_manifest_close(manifest);
    return fixture_read(fixture, "store/manifest-1", size_out);
}

Test(manifest, cuts_a_torn_tail_wherever_it_is_torn)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    size_t size = 0;
    size_t last_begin = 0;
    uint8_t *data = three_changes(&fixture, &size, &last_begin);
    for (size_t cut = last_begin; cut < size; cut++) {
        cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, "store/manifest-1", data, cut, NULL),
                     LAHAR_OK);
        struct lahar_manifest *manifest = open_manifest(&fixture, 1 << 20);
        cr_assert_eq(manifest->state.ceiling, 20, "cut at %zu", cut);
        cr_assert_eq(fixture_commit_ceiling(manifest, 40), LAHAR_OK);
        lahar_manifest_close(manifest);
        manifest = open_manifest(&fixture, 1 << 20);
        cr_assert_eq(manifest->state.ceiling, 40);
        lahar_manifest_close(manifest);
    }
    free(data);
    fixture_deinit(&fixture);
}

Test(manifest, tells_damage_from_a_torn_tail)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    size_t size = 0;
    size_t last_begin = 0;
    uint8_t *data = three_changes(&fixture, &size, &last_begin);
    for (size_t at = 0; at < size; at++) {
        data[at] ^= 0x10;
        cr_assert_eq(lahar_sim_disk_write_file(fixture.disk, "store/manifest-1", data, size, NULL),
                     LAHAR_OK);
        data[at] ^= 0x10;
        struct lahar_manifest *manifest = NULL;
        const lahar_status status = fixture_open(&fixture, 1 << 20, &manifest, NULL);
        if (at >= last_begin) {
            cr_assert_eq(status, LAHAR_OK, "byte %zu", at);
            cr_assert_eq(manifest->state.ceiling, 20);
        } else {
            /* A version that is not known cannot be told from damage to its number. */
            cr_assert(status == LAHAR_CORRUPT || (at < 12 && status == LAHAR_UNSUPPORTED),
                      "byte %zu", at);
        }
        lahar_manifest_close(manifest);
    }
    free(data);
    fixture_deinit(&fixture);
}

Test(manifest, reports_where_it_was_damaged_after_opening)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    size_t size = 0;
    size_t last_begin = 0;
    free(three_changes(&fixture, &size, &last_begin));
    struct lahar_manifest *manifest = open_manifest(&fixture, 1 << 20);
    uint64_t offset = 0;
    cr_assert_eq(lahar_manifest_verify(manifest, &offset, NULL), LAHAR_OK);
    cr_assert_eq(
        lahar_sim_disk_flip_bit(fixture.disk, "store/manifest-1", (last_begin + 20) * 8 + 1, NULL),
        LAHAR_OK);
    cr_assert_eq(lahar_manifest_verify(manifest, &offset, NULL), LAHAR_CORRUPT);
    cr_assert_eq(offset, last_begin);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

Test(manifest, goes_on_when_space_returns)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    struct lahar_manifest *manifest = open_manifest(&fixture, 1 << 20);
    cr_assert_eq(fixture_commit_ceiling(manifest, 10), LAHAR_OK);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_ENOSPC,
                         lahar_sim_disk_operations(fixture.disk), 1, "manifest");
    cr_assert_eq(fixture_commit_ceiling(manifest, 20), LAHAR_NO_SPACE);
    cr_assert_eq(lahar_sim_disk_fault_count(fixture.disk), 1);
    cr_assert_eq(manifest->state.ceiling, 10);
    cr_assert_eq(fixture_commit_ceiling(manifest, 30), LAHAR_OK);
    lahar_manifest_close(manifest);
    manifest = open_manifest(&fixture, 1 << 20);
    cr_assert_eq(manifest->state.ceiling, 30);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

Test(manifest, is_poisoned_by_a_change_that_is_on_disk_and_cannot_be_applied)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    struct lahar_manifest *manifest = open_manifest(&fixture, 1 << 20);
    struct lahar_buffer records;
    const struct lahar_age_reading later = {.age_ns = 100, .wall_ns = 1};
    const struct lahar_age_reading earlier = {.age_ns = 99, .wall_ns = 1};
    lahar_buffer_init(&records, &lahar_allocator_libc);
    lahar_manifest_put_clock(&records, &later);
    cr_assert_eq(lahar_manifest_commit(manifest, &records, NULL), LAHAR_OK);
    lahar_buffer_deinit(&records);
    lahar_buffer_init(&records, &lahar_allocator_libc);
    lahar_manifest_put_clock(&records, &earlier);
    lahar_error error = {0};
    cr_assert_eq(lahar_manifest_commit(manifest, &records, &error), LAHAR_POISONED);
    cr_assert_not_null(strstr(error.message, "age clock"), "%s", error.message);
    lahar_buffer_deinit(&records);
    cr_assert_eq(fixture_commit_ceiling(manifest, 10), LAHAR_POISONED);
    cr_assert_eq(manifest->state.clock.age_ns, 100);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

Test(manifest, is_poisoned_by_a_failed_sync_and_keeps_the_first_error)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    struct lahar_manifest *manifest = open_manifest(&fixture, 1 << 20);
    cr_assert_eq(fixture_commit_ceiling(manifest, 10), LAHAR_OK);
    lahar_sim_disk_fault(fixture.disk, LAHAR_SIM_FAULT_SYNC_LOST,
                         lahar_sim_disk_operations(fixture.disk), 2, "manifest");
    cr_assert_eq(fixture_commit_ceiling(manifest, 20), LAHAR_POISONED);
    cr_assert_eq(lahar_sim_disk_fault_count(fixture.disk), 1);
    cr_assert_eq(manifest->poison.status, LAHAR_IO);
    /* The device would take it now; it must not be asked. */
    const uint64_t before = lahar_sim_disk_operations(fixture.disk);
    cr_assert_eq(fixture_commit_ceiling(manifest, 30), LAHAR_POISONED);
    cr_assert_eq(lahar_sim_disk_operations(fixture.disk), before);
    lahar_manifest_close(manifest);
    fixture_deinit(&fixture);
}

/* Every change raises the ceiling by one, so what is found says how many survived.
 * Returns the number of acknowledged changes. */
static uint64_t commit_until_crash(struct manifest_fixture *fixture, uint64_t count)
{
    struct lahar_manifest *manifest = NULL;
    uint64_t acknowledged = 0;
    if (fixture_create(fixture) != LAHAR_OK ||
        fixture_open(fixture, 150, &manifest, NULL) != LAHAR_OK) {
        return 0;
    }
    for (uint64_t i = 1; i <= count; i++) {
        if (fixture_commit_ceiling(manifest, 1 + i) != LAHAR_OK) {
            break;
        }
        acknowledged = i;
    }
    lahar_manifest_close(manifest);
    return acknowledged;
}

Test(manifest, keeps_acknowledged_changes_whatever_the_instant_of_a_crash)
{
    enum {
        CHANGES = 24
    };
    uint64_t operations = UINT64_MAX;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        for (uint64_t n = 0; n < operations; n++) {
            struct manifest_fixture fixture;
            fixture_init(&fixture, seed);
            lahar_sim_disk_crash_at(fixture.disk, lahar_sim_disk_operations(fixture.disk) + n);
            const uint64_t acknowledged = commit_until_crash(&fixture, CHANGES);
            const bool has_crashed = lahar_sim_disk_has_crashed(fixture.disk);
            if (!has_crashed) {
                operations = n;
            }
            fixture.io->ops->destroy(fixture.io);
            lahar_sim_disk_restart(fixture.disk, seed * 1000 + n, true);
            cr_assert_eq(lahar_sim_disk_io(fixture.disk, &fixture.io, NULL), LAHAR_OK);
            struct lahar_manifest *manifest = NULL;
            lahar_error error = {0};
            const lahar_status status = fixture_open(&fixture, 150, &manifest, &error);
            if (status == LAHAR_OK) {
                const uint64_t found = manifest->state.ceiling - 1;
                cr_assert(found >= acknowledged && found <= acknowledged + 1,
                          "seed %lu crash %lu: %lu found, %lu acknowledged", (unsigned long)seed,
                          (unsigned long)n, (unsigned long)found, (unsigned long)acknowledged);
                lahar_manifest_close(manifest);
            } else {
                cr_assert(status == LAHAR_NOT_FOUND && acknowledged == 0, "seed %lu crash %lu: %s",
                          (unsigned long)seed, (unsigned long)n, error.message);
            }
            fixture_deinit(&fixture);
        }
    }
    cr_assert_gt(operations, 2 * CHANGES);
}

Test(manifest, survives_every_refused_allocation)
{
    struct manifest_fixture fixture;
    fixture_init(&fixture, 1);
    cr_assert_eq(fixture_create(&fixture), LAHAR_OK);
    struct lahar_manifest *manifest = open_manifest(&fixture, 1 << 20);
    struct lahar_buffer records;
    lahar_buffer_init(&records, &lahar_allocator_libc);
    put_everything(&records);
    cr_assert_eq(lahar_manifest_commit(manifest, &records, NULL), LAHAR_OK);
    lahar_buffer_deinit(&records);
    lahar_manifest_close(manifest);

    bool has_succeeded = false;
    for (size_t n = 0; !has_succeeded; n++) {
        struct failing_allocator scarce;
        failing_allocator_init(&scarce, n);
        scarce.fails_on = true;
        lahar_error error = {0};
        const lahar_status status =
            lahar_manifest_open(fixture.io, "store", FIXTURE_STORE_ID, false, 1 << 20,
                                &scarce.allocator, &manifest, &error);
        has_succeeded = status == LAHAR_OK;
        cr_assert(has_succeeded || (status == LAHAR_NO_MEMORY && manifest == NULL),
                  "allocation %zu: %s", n, error.message);
        if (has_succeeded) {
            cr_assert_gt(n, 5);
            check_everything(&manifest->state);
            lahar_manifest_close(manifest);
        }
        cr_assert_eq(scarce.live_count, 0);
    }
    fixture_deinit(&fixture);
}

Test(manifest, names_are_numbers_without_leading_zeros)
{
    uint64_t number = 0;
    char name[LAHAR_MANIFEST_NAME_SIZE];
    lahar_manifest_name(UINT64_MAX, name);
    cr_assert_str_eq(name, "manifest-18446744073709551615");
    cr_assert(lahar_manifest_parse_name("manifest-17", &number));
    cr_assert_eq(number, 17);
    cr_assert_not(lahar_manifest_parse_name("manifest-017", &number));
    cr_assert_not(lahar_manifest_parse_name("manifest-", &number));
    cr_assert_not(lahar_manifest_parse_name("manifest-1.tmp", &number));
    cr_assert_not(lahar_manifest_parse_name("manifest-99999999999999999999", &number));
    cr_assert_not(lahar_manifest_parse_name("MANIFEST-1", &number));
}
