/* Journal files whose header is damaged, was never written whole, or says nothing. */
#include <stdio.h>

#include "engine/journal/segment_file.h"
#include "journal_fixture.h"

enum {
    ROW = 300,
    COUNT = 10
};

static const char file_one[] = FIXTURE_DIRECTORY "/00000000000000000001.journal";
static const struct lahar_journal_session open_session = {1, 1, 0};

static lahar_status read_whole(struct fixture *f, const char *path, uint8_t *data, size_t capacity,
                               size_t *size_out)
{
    struct lahar_io_file *file = NULL;
    const lahar_status status = f->io->ops->open(f->io, path, LAHAR_IO_READ, &file, NULL);
    if (status == LAHAR_OK) {
        cr_assert_eq(f->io->ops->read(f->io, file, 0, data, capacity, size_out, NULL), LAHAR_OK);
    }
    f->io->ops->close(f->io, file);
    return status;
}

/* A killed store with one file that holds COUNT events. *bytes_out: the file. */
static void set_up(struct fixture *f, uint64_t session, uint8_t **bytes_out, size_t *size_out)
{
    fixture_create(f, 1);
    f->options.memory_bytes = 2 << 20;
    f->options.session = session;
    fixture_open(f, NULL);
    for (int i = 0; i < COUNT; i++) {
        uint64_t id = 0;
        cr_assert_eq(fixture_append(f, 0, ROW, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &id),
                     LAHAR_OK);
    }
    fixture_crash(f, 1, true);
    *bytes_out = malloc(4 << 20);
    cr_assert_eq(read_whole(f, file_one, *bytes_out, 4 << 20, size_out), LAHAR_OK);
}

static void put(struct fixture *f, const uint8_t *bytes, size_t size)
{
    cr_assert_eq(lahar_sim_disk_write_file(f->disk, file_one, bytes, size, NULL), LAHAR_OK);
}

static void expect_all(struct fixture *f, uint64_t session)
{
    const struct lahar_journal_session sessions[] = {{session, 1, 0}};
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(f, sessions, 1, 1, &recovery), LAHAR_OK, "%s", f->error.message);
    cr_assert_eq(recovery.batch_count, COUNT, "%zu of %d batches", recovery.batch_count, COUNT);
    cr_assert_eq(recovery.damaged_files, 0);
    fixture_check_rows(recovery.batches, recovery.batch_count, 1);
    /* The file is kept as long as it is needed, and not used for anything else. */
    f->options.session = session + 1;
    f->options.next_id = 100;
    fixture_open(f, &recovery);
    lahar_journals_destroy(f->journals);
    f->journals = NULL;
    cr_assert_eq(fixture_recover(f, sessions, 1, 1, &recovery), LAHAR_OK);
    cr_assert_eq(recovery.batch_count, COUNT);
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
}

Test(recovery_header, that_is_damaged_costs_nothing)
{
    struct fixture f;
    size_t size = 0;
    uint8_t *bytes = NULL;
    set_up(&f, 3, &bytes, &size);
    uint8_t header[LAHAR_JOURNAL_HEADER_SIZE];
    memcpy(header, bytes, sizeof header);
    for (size_t bit = 0; bit < 52 * 8; bit += 3) {
        if (bit / 8 == 8 || bit / 8 == 9) {
            continue; /* the version: a later one is refused as such */
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        put(&f, bytes, size);
        expect_all(&f, 3);
        memcpy(bytes, header, sizeof header);
    }
    bytes[LAHAR_JOURNAL_HEADER_SIZE - 1] ^= 4;
    put(&f, bytes, size);
    expect_all(&f, 3);
    memset(bytes, 0, sizeof header);
    put(&f, bytes, size);
    expect_all(&f, 3);
    memset(bytes, 0xa5, sizeof header);
    put(&f, bytes, size);
    expect_all(&f, 3);
    free(bytes);
    fixture_destroy(&f);
}

static void expect_nothing(struct fixture *f, uint64_t damaged_files)
{
    struct lahar_journal_recovery recovery;
    cr_assert_eq(fixture_recover(f, &open_session, 1, 1, &recovery), LAHAR_OK, "%s",
                 f->error.message);
    cr_assert_eq(recovery.batch_count, 0);
    cr_assert_eq(recovery.damaged_files, damaged_files);
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
}

Test(recovery_header, that_is_gone_sets_aside_what_nobody_can_tell)
{
    struct fixture f;
    size_t size = 0;
    uint8_t *bytes = NULL;
    uint8_t *found = malloc(4 << 20);
    set_up(&f, 1, &bytes, &size);
    memset(bytes, 0, LAHAR_JOURNAL_HEADER_SIZE);
    f.options.store_id++; /* its frames are of another store now */
    for (unsigned round = 1; round <= 2; round++) {
        char path[128];
        size_t found_size = 0;
        bytes[size - 1] = (uint8_t)round;
        put(&f, bytes, size);
        expect_nothing(&f, 1);
        cr_assert_eq(read_whole(&f, file_one, found, 4 << 20, &found_size), LAHAR_NOT_FOUND);
        expect_nothing(&f, 0);
        (void)snprintf(path, sizeof path, "%s.%u.damaged", file_one, round);
        cr_assert_eq(read_whole(&f, path, found, 4 << 20, &found_size), LAHAR_OK);
        cr_assert_eq(found_size, size);
        cr_assert_eq(memcmp(found, bytes, size), 0);
    }
    /* The journals leave them alone. */
    fixture_open(&f, NULL);
    cr_assert_eq(lahar_journals_stop(f.journals, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    for (unsigned round = 1; round <= 2; round++) {
        char path[128];
        size_t found_size = 0;
        (void)snprintf(path, sizeof path, "%s.%u.damaged", file_one, round);
        cr_assert_eq(read_whole(&f, path, found, 4 << 20, &found_size), LAHAR_OK);
    }
    free(found);
    free(bytes);
    fixture_destroy(&f);
}

Test(recovery_header, that_was_never_written_whole_is_of_an_empty_file)
{
    struct fixture f;
    size_t size = 0;
    uint8_t *bytes = NULL;
    set_up(&f, 1, &bytes, &size);
    uint8_t header[LAHAR_JOURNAL_HEADER_SIZE];
    memcpy(header, bytes, sizeof header);
    memset(bytes, 0, size);
    for (size_t sectors = 0; sectors < LAHAR_JOURNAL_HEADER_SIZE / 512; sectors++) {
        memcpy(bytes, header, sectors * 512);
        put(&f, bytes, size);
        expect_nothing(&f, 0);
    }
    for (size_t short_size = 0; short_size <= LAHAR_JOURNAL_HEADER_SIZE; short_size += 512) {
        put(&f, bytes, short_size);
        expect_nothing(&f, 0);
    }
    /* Of a file that was used before, by a session that is forgotten: the new use had begun. */
    memset(bytes + LAHAR_JOURNAL_HEADER_SIZE, 0x11, 5000);
    memcpy(bytes, header, 512);
    put(&f, bytes, size);
    expect_nothing(&f, 0);
    free(bytes);
    fixture_destroy(&f);
}
