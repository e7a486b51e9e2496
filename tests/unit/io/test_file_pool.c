/* Pools of files: how many descriptors they hold, and that reads do not notice. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "io/file_pool.h"

enum {
    FILE_COUNT = 6
};

/* File n holds the byte '0' + n. */
static void make_files(struct fixture *fixture)
{
    for (unsigned i = 0; i < FILE_COUNT; i++) {
        char name[8];
        const char content = (char)('0' + i);
        (void)snprintf(name, sizeof name, "f%u", i);
        struct lahar_io_file *file = fixture_open(fixture, name, 0);
        fixture_write(fixture, file, 0, &content, 1);
        fixture->io->ops->close(fixture->io, file);
    }
}

static struct lahar_file_pool *make_pool(struct fixture *fixture, uint32_t limit,
                                         struct lahar_pooled_file *files[FILE_COUNT])
{
    struct lahar_file_pool *pool = NULL;
    cr_assert_eq(lahar_file_pool_create(fixture->io, limit, &lahar_allocator_libc, &pool, NULL),
                 LAHAR_OK);
    for (unsigned i = 0; i < FILE_COUNT; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "f%u", i);
        cr_assert_eq(
            lahar_pooled_file_open(pool, fixture_path(fixture, "."), name, &files[i], NULL),
            LAHAR_OK);
    }
    return pool;
}

static void check_content(struct lahar_pooled_file *file, unsigned number)
{
    char content = 0;
    size_t read = 0;
    cr_assert_eq(lahar_pooled_file_read(file, 0, &content, 1, &read, NULL), LAHAR_OK);
    cr_assert_eq(read, 1);
    cr_assert_eq(content, '0' + (char)number);
}

static void close_all(struct lahar_file_pool *pool, struct lahar_pooled_file *files[FILE_COUNT])
{
    for (unsigned i = 0; i < FILE_COUNT; i++) {
        lahar_pooled_file_close(files[i]);
    }
    cr_assert_eq(lahar_file_pool_open_count(pool), 0);
    lahar_file_pool_destroy(pool);
}

CONTRACT_TEST(file_pool, holds_no_more_descriptors_than_its_limit)
{
    struct lahar_pooled_file *files[FILE_COUNT];
    make_files(fixture);
    struct lahar_file_pool *pool = make_pool(fixture, 2, files);
    cr_assert_eq(lahar_file_pool_open_count(pool), 2);
    for (unsigned i = 0; i < 40; i++) {
        check_content(files[i * 7 % FILE_COUNT], i * 7 % FILE_COUNT);
        cr_assert_leq(lahar_file_pool_open_count(pool), 2);
    }
    close_all(pool, files);
}

CONTRACT_TEST(file_pool, closes_what_was_used_longest_ago)
{
    struct lahar_pooled_file *files[FILE_COUNT];
    make_files(fixture);
    struct lahar_file_pool *pool = make_pool(fixture, 2, files);
    check_content(files[0], 0);
    check_content(files[1], 1);
    check_content(files[0], 0);
    check_content(files[2], 2); /* instead of file 1 */
    for (unsigned i = 0; i < FILE_COUNT; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "f%u", i);
        cr_assert_eq(fixture->io->ops->unlink(fixture->io, fixture_path(fixture, name), NULL),
                     LAHAR_OK);
    }
    char content = 0;
    size_t read = 0;
    check_content(files[0], 0);
    check_content(files[2], 2);
    cr_assert_eq(lahar_pooled_file_read(files[1], 0, &content, 1, &read, NULL), LAHAR_NOT_FOUND);
    close_all(pool, files);
}

CONTRACT_TEST(file_pool, never_closes_a_file_in_use)
{
    struct lahar_pooled_file *files[FILE_COUNT];
    make_files(fixture);
    struct lahar_file_pool *pool = make_pool(fixture, 1, files);
    struct lahar_io_file *opened[3];
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(lahar_pooled_file_use(files[i], &opened[i], NULL), LAHAR_OK);
    }
    cr_assert_eq(lahar_file_pool_open_count(pool), 3);
    for (unsigned i = 0; i < 3; i++) {
        const char content = (char)('0' + i);
        cr_assert(fixture_holds(fixture, opened[i], 0, &content, 1));
    }
    for (unsigned i = 0; i < 3; i++) {
        lahar_pooled_file_leave(files[i]);
    }
    cr_assert_eq(lahar_file_pool_open_count(pool), 1);
    close_all(pool, files);
}

CONTRACT_TEST(file_pool, without_a_limit_reads_files_whose_names_are_gone)
{
    struct lahar_pooled_file *files[FILE_COUNT];
    make_files(fixture);
    struct lahar_file_pool *pool = make_pool(fixture, 0, files);
    cr_assert_eq(lahar_file_pool_open_count(pool), FILE_COUNT);
    cr_assert_eq(fixture->io->ops->unlink(fixture->io, fixture_path(fixture, "f3"), NULL),
                 LAHAR_OK);
    check_content(files[3], 3);
    close_all(pool, files);
}
