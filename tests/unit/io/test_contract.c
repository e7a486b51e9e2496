/* What io.h promises of files, names and clocks, over every backend. */
#include <string.h>

#include "fixture.h"
#include "io/base/error.h"

CONTRACT_TEST(io, reads_back_what_was_written)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    char data[10000];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (char)(i * 7 % 251);
    }
    fixture_write(fixture, file, 0, data, sizeof data);
    fixture_write(fixture, file, 4090, "overwritten", 11);
    memcpy(data + 4090, "overwritten", 11);
    cr_assert_eq(fixture_size(fixture, file), sizeof data);
    cr_assert(fixture_holds(fixture, file, 0, data, sizeof data));
    cr_assert(fixture_holds(fixture, file, 4095, data + 4095, 2));
    io->ops->close(io, file);
    file = fixture_open(fixture, "a", 0);
    cr_assert(fixture_holds(fixture, file, 0, data, sizeof data));
    io->ops->close(io, file);
}

CONTRACT_TEST(io, reads_less_only_at_the_end)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    char out[100];
    size_t size = 77;
    fixture_write(fixture, file, 0, "0123456789", 10);
    cr_assert_eq(io->ops->read(io, file, 4, out, sizeof out, &size, NULL), LAHAR_OK);
    cr_assert_eq(size, 6);
    cr_assert_eq(memcmp(out, "456789", 6), 0);
    cr_assert_eq(io->ops->read(io, file, 10, out, sizeof out, &size, NULL), LAHAR_OK);
    cr_assert_eq(size, 0);
    cr_assert_eq(io->ops->read(io, file, 5000, out, sizeof out, &size, NULL), LAHAR_OK);
    cr_assert_eq(size, 0);
    io->ops->close(io, file);
}

CONTRACT_TEST(io, reads_the_same_whatever_was_announced)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    io->ops->announce(io, file, 0, 4096); /* of an empty file */
    fixture_write(fixture, file, 0, "0123456789", 10);
    io->ops->announce(io, file, 2, 3);
    io->ops->announce(io, file, 5, UINT64_C(1) << 40);
    io->ops->announce(io, file, UINT64_MAX / 2, 4096);
    io->ops->announce(io, file, 0, 0);
    cr_assert(fixture_holds(fixture, file, 0, "0123456789", 10));
    cr_assert_eq(fixture_size(fixture, file), 10);
    io->ops->close(io, file);
}

CONTRACT_TEST(io, gives_zeros_for_a_gap)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    char expected[9001] = {0};
    expected[9000] = 'x';
    fixture_write(fixture, file, 9000, "x", 1);
    cr_assert(fixture_holds(fixture, file, 0, expected, sizeof expected));
    io->ops->close(io, file);
}

CONTRACT_TEST(io, truncates_and_extends_with_zeros)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    char data[6000];
    memset(data, 'x', sizeof data);
    fixture_write(fixture, file, 0, data, sizeof data);
    cr_assert_eq(io->ops->truncate(io, file, 5000, NULL), LAHAR_OK);
    cr_assert_eq(fixture_size(fixture, file), 5000);
    cr_assert_eq(io->ops->truncate(io, file, 6000, NULL), LAHAR_OK);
    memset(data + 5000, 0, 1000);
    cr_assert(fixture_holds(fixture, file, 0, data, sizeof data));
    io->ops->close(io, file);
}

CONTRACT_TEST(io, fills_a_file_with_zeros_to_exactly_its_size)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    enum {
        SIZE = 3 * 1024 * 1024 + 12345
    };
    char *zeros = calloc(1, SIZE);
    fixture_write(fixture, file, 100, "old content", 11);
    cr_assert_eq(io->ops->fill(io, file, SIZE, NULL), LAHAR_OK);
    cr_assert_eq(fixture_size(fixture, file), SIZE);
    cr_assert(fixture_holds(fixture, file, 0, zeros, SIZE));
    fixture_write(fixture, file, 100, "old content", 11);
    cr_assert_eq(io->ops->fill(io, file, 4096, NULL), LAHAR_OK);
    cr_assert_eq(fixture_size(fixture, file), 4096);
    cr_assert(fixture_holds(fixture, file, 0, zeros, 4096));
    free(zeros);
    io->ops->close(io, file);
}

CONTRACT_TEST(io, reserves_a_file_that_reads_as_zeros_and_takes_writes)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    enum {
        SIZE = 3 * 1024 * 1024 + 12345
    };
    char *expected = calloc(1, SIZE);
    fixture_write(fixture, file, 100, "old content", 11);
    cr_assert_eq(io->ops->reserve(io, file, SIZE, NULL), LAHAR_OK);
    cr_assert_eq(fixture_size(fixture, file), SIZE);
    /* What was there may stay: callers reserve files that are new. */
    fixture_write(fixture, file, 100, expected, 11);
    cr_assert(fixture_holds(fixture, file, 0, expected, SIZE));
    memcpy(expected + 2000000, "in the midst", 12);
    fixture_write(fixture, file, 2000000, "in the midst", 12);
    cr_assert_eq(io->ops->sync(io, file, NULL), LAHAR_OK);
    cr_assert_eq(fixture_size(fixture, file), SIZE);
    cr_assert(fixture_holds(fixture, file, 0, expected, SIZE));
    cr_assert_eq(io->ops->reserve(io, file, 0, NULL), LAHAR_OK);
    cr_assert_eq(fixture_size(fixture, file), 0);
    free(expected);
    io->ops->close(io, file);
}

CONTRACT_TEST(io, moves_aligned_data_past_the_page_cache)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", LAHAR_IO_DIRECT);
    uint8_t *data = aligned_alloc(LAHAR_IO_ALIGNMENT, 16384);
    uint8_t *found = aligned_alloc(LAHAR_IO_ALIGNMENT, 16384);
    size_t size = 0;
    memset(data, 0x5a, 16384);
    cr_assert_eq(io->ops->fill(io, file, 16384, NULL), LAHAR_OK);
    fixture_write(fixture, file, 4096, data, 8192);
    cr_assert_eq(io->ops->sync(io, file, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->read(io, file, 4096, found, 16384 - 4096, &size, NULL), LAHAR_OK);
    cr_assert_eq(size, 12288);
    cr_assert_eq(memcmp(found, data, 8192), 0);
    cr_assert_eq(found[8192], 0);
    cr_assert_eq(io->ops->read(io, file, 8192, found, 16384, &size, NULL), LAHAR_OK);
    cr_assert_eq(size, 8192, "ends at the end of the file");
    free(data);
    free(found);
    io->ops->close(io, file);
}

CONTRACT_TEST(io, refuses_a_name_that_is_taken_or_absent)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", LAHAR_IO_EXCLUSIVE);
    struct lahar_io_file *other = file;
    lahar_error error = {0};
    cr_assert_eq(io->ops->open(io, fixture_path(fixture, "a"),
                               LAHAR_IO_WRITE | LAHAR_IO_CREATE | LAHAR_IO_EXCLUSIVE, &other,
                               &error),
                 LAHAR_EXISTS);
    cr_assert_null(other);
    cr_assert_not_null(strstr(error.message, "/a"));
    lahar_error_clear(&error);
    cr_assert_eq(io->ops->open(io, fixture_path(fixture, "b"), LAHAR_IO_READ, &other, &error),
                 LAHAR_NOT_FOUND);
    cr_assert_eq(io->ops->open(io, fixture_path(fixture, "no/b"), LAHAR_IO_WRITE | LAHAR_IO_CREATE,
                               &other, NULL),
                 LAHAR_NOT_FOUND);
    cr_assert_eq(io->ops->unlink(io, fixture_path(fixture, "b"), NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(io->ops->rename(io, fixture_path(fixture, "b"), fixture_path(fixture, "c"), NULL),
                 LAHAR_NOT_FOUND);
    io->ops->close(io, file);
    io->ops->close(io, NULL);
}

CONTRACT_TEST(io, refuses_access_that_was_not_asked_for)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    fixture_write(fixture, file, 0, "abc", 3);
    io->ops->close(io, file);
    char out[3];
    size_t size = 0;
    cr_assert_eq(io->ops->open(io, fixture_path(fixture, "a"), LAHAR_IO_READ, &file, NULL),
                 LAHAR_OK);
    cr_assert_eq(io->ops->write(io, file, 0, "x", 1, NULL), LAHAR_IO);
    cr_assert(fixture_holds(fixture, file, 0, "abc", 3));
    io->ops->close(io, file);
    cr_assert_eq(io->ops->open(io, fixture_path(fixture, "a"), LAHAR_IO_WRITE, &file, NULL),
                 LAHAR_OK);
    cr_assert_eq(io->ops->read(io, file, 0, out, 3, &size, NULL), LAHAR_IO);
    io->ops->close(io, file);
}

struct listing {
    struct fixture *fixture;
    unsigned files;
    unsigned directories;
    bool stop;
    bool remove;
};

static lahar_status count_entry(void *context, const char *name, bool is_directory)
{
    struct listing *listing = context;
    cr_assert(strcmp(name, "one") == 0 || strcmp(name, "two") == 0 || strcmp(name, "sub") == 0,
              "%s", name);
    cr_assert_eq(is_directory, strcmp(name, "sub") == 0);
    listing->directories += is_directory ? 1 : 0;
    listing->files += is_directory ? 0 : 1;
    if (listing->remove && !is_directory) {
        struct lahar_io *io = listing->fixture->io;
        cr_assert_eq(io->ops->unlink(io, fixture_path(listing->fixture, name), NULL), LAHAR_OK);
    }
    return listing->stop ? LAHAR_CANCELLED : LAHAR_OK;
}

CONTRACT_TEST(io, lists_a_directory_and_lets_the_visitor_act)
{
    struct lahar_io *io = fixture->io;
    io->ops->close(io, fixture_open(fixture, "one", 0));
    io->ops->close(io, fixture_open(fixture, "two", 0));
    cr_assert_eq(io->ops->make_directory(io, fixture_path(fixture, "sub"), NULL), LAHAR_OK);
    cr_assert_eq(io->ops->make_directory(io, fixture_path(fixture, "sub"), NULL), LAHAR_EXISTS);
    io->ops->close(io, fixture_open(fixture, "sub/deep", 0));
    struct listing listing = {.fixture = fixture};
    cr_assert_eq(io->ops->list(io, fixture->root, count_entry, &listing, NULL), LAHAR_OK);
    cr_assert_eq(listing.files, 2);
    cr_assert_eq(listing.directories, 1);
    listing = (struct listing){.fixture = fixture, .stop = true};
    cr_assert_eq(io->ops->list(io, fixture->root, count_entry, &listing, NULL), LAHAR_CANCELLED);
    cr_assert_eq(listing.files + listing.directories, 1);
    listing = (struct listing){.fixture = fixture, .remove = true};
    cr_assert_eq(io->ops->list(io, fixture->root, count_entry, &listing, NULL), LAHAR_OK);
    cr_assert_not(fixture_exists(fixture, "one"));
    cr_assert_not(fixture_exists(fixture, "two"));
    cr_assert(fixture_exists(fixture, "sub/deep"));
    cr_assert_eq(io->ops->list(io, fixture_path(fixture, "no"), count_entry, &listing, NULL),
                 LAHAR_NOT_FOUND);
}

CONTRACT_TEST(io, renames_over_another_file_that_stays_readable_while_open)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *old = fixture_open(fixture, "current", 0);
    struct lahar_io_file *new = fixture_open(fixture, "next", 0);
    fixture_write(fixture, old, 0, "old", 3);
    fixture_write(fixture, new, 0, "new", 3);
    cr_assert_eq(
        io->ops->rename(io, fixture_path(fixture, "next"), fixture_path(fixture, "current"), NULL),
        LAHAR_OK);
    cr_assert_eq(io->ops->sync_directory(io, fixture->root, NULL), LAHAR_OK);
    cr_assert_not(fixture_exists(fixture, "next"));
    cr_assert(fixture_holds(fixture, old, 0, "old", 3));
    struct lahar_io_file *current = fixture_open(fixture, "current", 0);
    cr_assert(fixture_holds(fixture, current, 0, "new", 3));
    cr_assert_eq(io->ops->unlink(io, fixture_path(fixture, "current"), NULL), LAHAR_OK);
    cr_assert(fixture_holds(fixture, new, 0, "new", 3));
    cr_assert_not(fixture_exists(fixture, "current"));
    io->ops->close(io, old);
    io->ops->close(io, new);
    io->ops->close(io, current);
}

CONTRACT_TEST(io, locks_a_file_against_a_second_opening)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *first = fixture_open(fixture, "lock", 0);
    struct lahar_io_file *second = fixture_open(fixture, "lock", 0);
    cr_assert_eq(io->ops->lock(io, first, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->lock(io, first, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->lock(io, second, NULL), LAHAR_LOCKED);
    io->ops->close(io, first);
    cr_assert_eq(io->ops->lock(io, second, NULL), LAHAR_OK);
    io->ops->close(io, second);
}

CONTRACT_TEST(io, tells_the_space_of_the_file_system)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_space space;
    cr_assert_eq(io->ops->space(io, fixture->root, &space, NULL), LAHAR_OK);
    cr_assert_gt(space.capacity_bytes, 1 << 20);
    cr_assert_leq(space.free_bytes, space.capacity_bytes);
}

CONTRACT_TEST(io, has_clocks_that_go_on)
{
    struct lahar_io *io = fixture->io;
    uint64_t before_ns = io->ops->monotonic_ns(io);
    for (int i = 0; i < 1000; i++) {
        const uint64_t now_ns = io->ops->monotonic_ns(io);
        cr_assert_geq(now_ns, before_ns);
        before_ns = now_ns;
    }
    cr_assert_gt(io->ops->realtime_ns(io), INT64_C(1600000000) * 1000000000);
}
