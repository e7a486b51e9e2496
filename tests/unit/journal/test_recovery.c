/* Recovery from whatever a crash or a bad disk leaves: tails, holes, stale files, damage. */
#include <stdio.h>

#include "engine/journal/segment_file.h"
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

/* Reads file number one whole; the caller frees. */
static uint8_t *read_file(struct fixture *f, uint64_t number, uint64_t *size_out)
{
    char name[LAHAR_JOURNAL_NAME_SIZE];
    char path[128];
    lahar_journal_file_name(number, name);
    (void)snprintf(path, sizeof path, FIXTURE_DIRECTORY "/%s", name);
    struct lahar_io_file *file = NULL;
    cr_assert_eq(f->io->ops->open(f->io, path, LAHAR_IO_READ, &file, &f->error), LAHAR_OK, "%s",
                 f->error.message);
    cr_assert_eq(f->io->ops->size(f->io, file, size_out, NULL), LAHAR_OK);
    uint8_t *bytes = malloc(*size_out + 1);
    cr_assert_not_null(bytes);
    size_t read = 0;
    cr_assert_eq(f->io->ops->read(f->io, file, 0, bytes, *size_out, &read, NULL), LAHAR_OK);
    cr_assert_eq(read, *size_out);
    f->io->ops->close(f->io, file);
    return bytes;
}

static void write_file(struct fixture *f, uint64_t number, const uint8_t *bytes, uint64_t size)
{
    char name[LAHAR_JOURNAL_NAME_SIZE];
    char path[128];
    lahar_journal_file_name(number, name);
    (void)snprintf(path, sizeof path, FIXTURE_DIRECTORY "/%s", name);
    cr_assert_eq(lahar_sim_disk_write_file(f->disk, path, bytes, size, &f->error), LAHAR_OK, "%s",
                 f->error.message);
}

static void check_recovered(struct lahar_journal_recovery *recovery, uint64_t first_id,
                            uint64_t end_id)
{
    cr_assert_eq(recovery->batch_count, end_id - first_id, "%zu batches", recovery->batch_count);
    cr_assert_eq(recovery->end_id, end_id == first_id ? 0 : end_id);
    cr_assert_eq(recovery->event_count, end_id - first_id);
    fixture_check_rows(recovery->batches, recovery->batch_count, first_id);
    lahar_journal_recovery_deinit(recovery, &lahar_allocator_libc);
}

/* Frames of 300-byte rows are 360 bytes long; the region begins at 4096. */
static uint64_t frames_below(uint64_t file_offset)
{
    return file_offset <= 4096 ? 0 : (file_offset - 4096) / 360;
}

Test(recovery, cuts_a_torn_tail_at_every_sector)
{
    struct fixture f;
    fixture_create(&f, 1);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    uint64_t size = 0;
    uint8_t *whole = read_file(&f, 1, &size);
    uint8_t *cut = malloc(size);
    cr_assert_not_null(cut);
    for (uint64_t at = 4096; at <= 4096 + 61 * 360; at += 512) {
        for (int garbage = 0; garbage < 2; garbage++) {
            memcpy(cut, whole, size);
            memset(cut + at, garbage ? 0xa5 : 0, size - at);
            write_file(&f, 1, cut, size);
            struct lahar_journal_recovery recovery;
            cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK, "%s",
                         f.error.message);
            const uint64_t kept = frames_below(at) < 60 ? frames_below(at) : 60;
            check_recovered(&recovery, 1, 1 + kept);
        }
    }
    free(cut);
    free(whole);
    fixture_destroy(&f);
}

Test(recovery, cuts_a_file_that_ends_early)
{
    struct fixture f;
    fixture_create(&f, 2);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    uint64_t size = 0;
    uint8_t *whole = read_file(&f, 1, &size);
    static const uint64_t lengths[] = {0,          1,          511,        4095, 4096,     4097,
                                       4096 + 359, 4096 + 360, 4096 + 361, 8192, 16384 + 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        write_file(&f, 1, whole, lengths[i]);
        struct lahar_journal_recovery recovery;
        cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK, "%s",
                     f.error.message);
        check_recovered(&recovery, 1, 1 + frames_below(lengths[i]));
    }
    free(whole);
    fixture_destroy(&f);
}

/* Batches first_id .. end_id - 1, of one event each, but for those of the lost range. */
static void check_recovered_around(struct lahar_journal_recovery *recovery, uint64_t first_id,
                                   uint64_t end_id, struct lahar_lost_range lost)
{
    const uint64_t behind = end_id - lost.end_id;
    cr_assert_eq(recovery->lost_count, 1);
    cr_assert_eq(recovery->lost[0].first_id, lost.first_id);
    cr_assert_eq(recovery->lost[0].end_id, lost.end_id);
    cr_assert_eq(recovery->end_id, end_id);
    cr_assert_eq(recovery->batch_count, lost.first_id - first_id + behind);
    cr_assert_eq(recovery->event_count, recovery->batch_count);
    const size_t before = (size_t)(lost.first_id - first_id);
    fixture_check_rows(recovery->batches, before, first_id);
    fixture_check_rows(recovery->batches + before, (size_t)behind, lost.end_id);
    lahar_journal_recovery_deinit(recovery, &lahar_allocator_libc);
}

/* Each batch states the durable id before it, so the damage of all but the last ones shows. */
Test(recovery, loses_a_damaged_batch_alone)
{
    struct fixture f;
    fixture_create(&f, 3);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    uint64_t size = 0;
    uint8_t *bytes = read_file(&f, 1, &size);
    for (uint64_t frame = 0; frame < 58; frame++) {
        bytes[4096 + frame * 360 + 100] ^= 1;
        write_file(&f, 1, bytes, size);
        for (int again = 0; again < 2; again++) {
            struct lahar_journal_recovery recovery;
            cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK, "%s",
                         f.error.message);
            check_recovered_around(&recovery, 1, 61,
                                   (struct lahar_lost_range){frame + 1, frame + 2});
        }
        bytes[4096 + frame * 360 + 100] ^= 1;
    }
    free(bytes);
    fixture_destroy(&f);
}

Test(recovery, loses_a_damaged_stretch_and_what_rolled_of_it_is_not_lost)
{
    struct fixture f;
    fixture_create(&f, 3);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    uint64_t size = 0;
    uint8_t *bytes = read_file(&f, 1, &size);
    memset(bytes + 4096 + 20 * 360, 0, 10 * 360);
    write_file(&f, 1, bytes, size);
    static const uint64_t rolled[] = {1, 10, 21, 25, 30};
    for (size_t i = 0; i < sizeof rolled / sizeof *rolled; i++) {
        struct lahar_journal_recovery recovery;
        cr_assert_eq(fixture_recover(&f, &open_session, 1, rolled[i], &recovery), LAHAR_OK);
        const uint64_t first_id = rolled[i];
        const uint64_t lost_id = rolled[i] < 21 ? 21 : rolled[i];
        check_recovered_around(&recovery, first_id, 61, (struct lahar_lost_range){lost_id, 31});
    }
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &open_session, 1, 31, &recovery), LAHAR_OK);
    cr_assert_eq(recovery.lost_count, 0);
    check_recovered(&recovery, 31, 61);
    free(bytes);
    fixture_destroy(&f);
}

/* A file of that name was copied within the directory: each frame is there twice. */
Test(recovery, takes_a_batch_once_that_a_copied_file_has_too)
{
    struct fixture f;
    fixture_create(&f, 3);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    uint64_t size = 0;
    uint8_t *bytes = read_file(&f, 1, &size);
    write_file(&f, 900, bytes, size);
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK, "%s",
                 f.error.message);
    cr_assert_eq(recovery.lost_count, 0);
    check_recovered(&recovery, 1, 61);
    free(bytes);
    fixture_destroy(&f);
}

Test(recovery, drops_what_follows_a_hole_that_nobody_was_promised)
{
    struct fixture f;
    fixture_create(&f, 4);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_NONE);
    fixture_step_all(&f);
    fixture_crash(&f, 1, false);
    uint64_t size = 0;
    uint8_t *bytes = read_file(&f, 1, &size);
    bytes[4096 + 20 * 360 + 100] ^= 1;
    write_file(&f, 1, bytes, size);
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK, "%s",
                 f.error.message);
    cr_assert_eq(recovery.dropped_batches, 39);
    check_recovered(&recovery, 1, 21);
    free(bytes);
    fixture_destroy(&f);
}

Test(recovery, notices_damage_to_the_last_batch_of_a_closed_store)
{
    struct fixture f;
    fixture_create(&f, 5);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_NONE);
    cr_assert_eq(lahar_journals_stop(f.journals, LAHAR_WAIT_FOREVER, &f.error), LAHAR_OK);
    fixture_crash(&f, 1, true);
    uint64_t size = 0;
    uint8_t *bytes = read_file(&f, 1, &size);
    bytes[4096 + 59 * 360 + 100] ^= 1;
    write_file(&f, 1, bytes, size);
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK);
    check_recovered_around(&recovery, 1, 61, (struct lahar_lost_range){60, 61});
    free(bytes);
    fixture_destroy(&f);
}

Test(recovery, ignores_what_is_rolled)
{
    struct fixture f;
    fixture_create(&f, 6);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    struct lahar_journal_recovery recovery;
    static const uint64_t rolled[] = {1, 2, 30, 60, 61};
    for (size_t i = 0; i < sizeof rolled / sizeof *rolled; i++) {
        cr_assert_eq(fixture_recover(&f, &open_session, 1, rolled[i], &recovery), LAHAR_OK);
        check_recovered(&recovery, rolled[i], 61);
    }
    fixture_destroy(&f);
}

/* Opens the next session over what recovery found. */
static void reopen(struct fixture *f, const struct lahar_journal_session *sessions, size_t count,
                   uint64_t rolled_id, uint64_t next_id)
{
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(f, sessions, count, rolled_id, &recovery), LAHAR_OK, "%s",
                 f->error.message);
    f->options.session++;
    f->options.next_id = next_id;
    fixture_open(f, &recovery);
    cr_assert_null(recovery.memory);
}

Test(recovery, joins_two_sessions_with_a_gap_between_their_ids)
{
    struct fixture f;
    fixture_create(&f, 7);
    fixture_open(&f, NULL);
    append_many(&f, 30, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    reopen(&f, &open_session, 1, 1, 1000);
    append_many(&f, 20, LAHAR_DURABILITY_COMMIT);
    struct lahar_resident_view view;
    cr_assert_eq(lahar_journals_view(f.journals, LAHAR_NO_WAIT, &view, NULL), LAHAR_OK);
    cr_assert_eq(view.batch_count, 50);
    fixture_check_rows(view.batches, 30, 1);
    fixture_check_rows(view.batches + 30, 20, 1000);
    lahar_journals_unview(f.journals, &view);
    fixture_crash(&f, 2, true);
    const struct lahar_journal_session sessions[] = {{1, 1, 31}, {2, 1000, 0}};
    struct lahar_journal_recovery recovery;
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(fixture_recover(&f, sessions, 2, 1, &recovery), LAHAR_OK, "%s",
                     f.error.message);
        cr_assert_eq(recovery.batch_count, 50);
        cr_assert_eq(recovery.end_id, 1020);
        fixture_check_rows(recovery.batches, 30, 1);
        fixture_check_rows(recovery.batches + 30, 20, 1000);
        lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    }
    const struct lahar_journal_session longer[] = {{1, 1, 32}, {2, 1000, 0}};
    cr_assert_eq(fixture_recover(&f, longer, 2, 1, &recovery), LAHAR_OK);
    cr_assert_eq(recovery.lost_count, 1, "a closed session lacks its last event");
    cr_assert_eq(recovery.lost[0].first_id, 31);
    cr_assert_eq(recovery.lost[0].end_id, 32);
    cr_assert_eq(recovery.batch_count, 50);
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    const struct lahar_journal_session shorter[] = {{1, 1, 25}, {2, 1000, 0}};
    cr_assert_eq(fixture_recover(&f, shorter, 2, 1, &recovery), LAHAR_OK);
    cr_assert_eq(recovery.batch_count, 44, "what lies behind a session's end was cut before");
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    cr_assert_eq(fixture_recover(&f, sessions + 1, 1, 1000, &recovery), LAHAR_OK);
    check_recovered(&recovery, 1000, 1020);
    fixture_destroy(&f);
}

Test(recovery, never_takes_stale_frames_of_a_recycled_file)
{
    struct fixture f;
    fixture_create(&f, 8);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    /* All of it is rolled: the file is given a new header and nothing else. */
    reopen(&f, &open_session, 1, 61, 1);
    uint64_t size = 0;
    uint8_t *bytes = read_file(&f, 1, &size);
    struct lahar_journal_header header;
    cr_assert_eq(lahar_journal_header_decode(bytes, &header, NULL), LAHAR_OK);
    cr_assert_eq(header.session, 2, "the file was not reused");
    cr_assert_eq(bytes[4096 + 44], 1, "the old frames are gone");
    free(bytes);
    append_many(&f, 10, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 2, true);
    /* Both sessions claim the ids from 1 on, so a stale frame would be taken. */
    const struct lahar_journal_session sessions[] = {{2, 1, 0}};
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, sessions, 1, 1, &recovery), LAHAR_OK);
    check_recovered(&recovery, 1, 11);
    const struct lahar_journal_session old[] = {{1, 1, 0}};
    cr_assert_eq(fixture_recover(&f, old, 1, 1, &recovery), LAHAR_OK);
    check_recovered(&recovery, 1, 1);
    fixture_destroy(&f);
}

Test(recovery, leaves_files_of_another_store_alone)
{
    struct fixture f;
    fixture_create(&f, 9);
    fixture_open(&f, NULL);
    append_many(&f, 5, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    f.options.store_id++;
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(&f, &open_session, 1, 1, &recovery), LAHAR_OK);
    cr_assert_eq(recovery.batch_count, 0);
    fixture_open(&f, &recovery);
    fixture_step_all(&f);
    uint64_t size = 0;
    uint8_t *bytes = read_file(&f, 1, &size);
    struct lahar_journal_header header;
    cr_assert_eq(lahar_journal_header_decode(bytes, &header, NULL), LAHAR_OK);
    cr_assert_eq(header.store_id, f.options.store_id - 1);
    free(bytes);
    fixture_destroy(&f);
}

Test(recovery, for_reading_only_writes_nothing)
{
    struct fixture f;
    fixture_create(&f, 10);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    append_many(&f, 5, LAHAR_DURABILITY_NONE);
    fixture_step_all(&f);
    const uint64_t operations = lahar_sim_disk_operations(f.disk);
    struct lahar_journal_recovery recovery = {0};
    cr_assert_eq(lahar_journal_recover(f.io, FIXTURE_DIRECTORY, f.options.store_id, &open_session,
                                       1, 1, true, &lahar_allocator_libc, &recovery, &f.error),
                 LAHAR_OK, "%s", f.error.message);
    check_recovered(&recovery, 1, 66);
    cr_assert_eq(lahar_sim_disk_operations(f.disk), operations);
    fixture_destroy(&f);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Rows of any ids, in order; every id below those of the last batch is there or lost. */
static void check_accounted(const struct lahar_journal_recovery *recovery)
{
    uint64_t expected = 1;
    size_t lost = 0;
    for (size_t i = 0; i < recovery->batch_count; i++) {
        const uint64_t first_id = recovery->batches[i].first_id;
        if (lost < recovery->lost_count && recovery->lost[lost].first_id == expected) {
            expected = recovery->lost[lost++].end_id;
        }
        cr_assert_eq(first_id, expected);
        fixture_check_rows(&recovery->batches[i], 1, first_id);
        expected = first_id + 1;
    }
    if (lost < recovery->lost_count) {
        cr_assert_eq(recovery->lost[lost].first_id, expected);
        expected = recovery->lost[lost++].end_id;
    }
    cr_assert_eq(lost, recovery->lost_count);
    cr_assert_eq(recovery->end_id, expected == 1 ? 0 : expected);
}

Test(recovery, gives_true_rows_and_accounts_for_the_others_whatever_the_damage)
{
    struct fixture f;
    fixture_create(&f, 11);
    f.options.memory_bytes = 1 << 20; /* regions of 64 KiB */
    fixture_open(&f, NULL);
    append_many(&f, 100, LAHAR_DURABILITY_COMMIT);
    append_many(&f, 50, LAHAR_DURABILITY_NONE);
    fixture_step_all(&f);
    fixture_crash(&f, 1, false);
    uint64_t size = 0;
    uint8_t *whole = read_file(&f, 1, &size);
    uint8_t *bytes = malloc(size);
    cr_assert_not_null(bytes);
    uint64_t random = 88172645463325252;
    uint32_t damaged = 0;
    for (int round = 0; round < 400; round++) {
        memcpy(bytes, whole, size);
        const uint64_t at = next_random(&random) % (4096 + 151 * 360);
        switch (next_random(&random) % 4) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << next_random(&random) % 8);
            break;
        case 1:
            memset(bytes + at, 0, 1 + next_random(&random) % 5000);
            break;
        case 2: /* one part over another, as a misdirected write */
            memmove(bytes + at, bytes + 4096 + next_random(&random) % 50000, 720);
            break;
        default: /* a size or a count that lies */
            memset(bytes + 4096 + at % 150 * 360 + next_random(&random) % 44, 0xff, 4);
            break;
        }
        write_file(&f, 1, bytes, size);
        struct lahar_journal_recovery recovery;
        const lahar_status status = fixture_recover(&f, &open_session, 1, 1, &recovery);
        cr_assert(status == LAHAR_OK || status == LAHAR_UNSUPPORTED, "%s", f.error.message);
        if (status == LAHAR_OK) {
            check_accounted(&recovery);
            damaged += recovery.lost_count != 0;
        }
        lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
    }
    cr_assert_gt(damaged, 100);
    free(bytes);
    free(whole);
    fixture_destroy(&f);
}

/* An allocator that refuses the nth allocation and all later ones. */
static uint64_t allocations_left;

static void *limited_allocate(void *context, size_t size)
{
    (void)context;
    return allocations_left == 0 ? NULL : (allocations_left--, malloc(size));
}

static void *limited_resize(void *context, void *memory, size_t size)
{
    (void)context;
    return allocations_left == 0 ? NULL : (allocations_left--, realloc(memory, size));
}

static void limited_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

Test(recovery, survives_the_refusal_of_any_allocation)
{
    const lahar_allocator limited = {limited_allocate, limited_resize, limited_release, NULL};
    struct fixture f;
    fixture_create(&f, 12);
    fixture_open(&f, NULL);
    append_many(&f, 60, LAHAR_DURABILITY_COMMIT);
    fixture_crash(&f, 1, true);
    lahar_status status = LAHAR_NO_MEMORY;
    for (uint64_t n = 0; n < 100 && status != LAHAR_OK; n++) {
        allocations_left = n;
        struct lahar_journal_recovery recovery = {0};
        status = lahar_journal_recover(f.io, FIXTURE_DIRECTORY, f.options.store_id, &open_session,
                                       1, 1, false, &limited, &recovery, NULL);
        cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY);
        cr_assert(status == LAHAR_OK || recovery.memory == NULL);
        cr_assert(status != LAHAR_OK || recovery.batch_count == 60);
        lahar_journal_recovery_deinit(&recovery, &limited);
    }
    cr_assert_eq(status, LAHAR_OK);
    fixture_destroy(&f);
}
