/* What a power loss leaves of the simulated disk. Each rule is checked over many seeds: what
 * must hold holds in all, and what may happen happens in some. */
#include <errno.h>
#include <string.h>

#include "fixture.h"
#include "io/base/error.h"

enum {
    SEED_COUNT = 300
};

/* A page of one letter. */
static const uint8_t *page_of(char letter)
{
    static uint8_t pages[4][4096];
    static unsigned next;
    uint8_t *page = pages[next++ % 4];
    memset(page, letter, sizeof *pages);
    return page;
}

/* Runs prepare on a fresh disk, loses power with each seed, and lets inspect look. */
static void over_seeds(void (*prepare)(struct fixture *), void (*inspect)(struct fixture *))
{
    for (uint64_t seed = 0; seed < SEED_COUNT; seed++) {
        struct fixture fixture;
        fixture_begin(&fixture, BACKEND_SIMULATED);
        cr_assert_eq(fixture.io->ops->sync_directory(fixture.io, ".", NULL), LAHAR_OK);
        prepare(&fixture);
        lahar_sim_disk_restart(fixture.disk, seed, true);
        inspect(&fixture);
        fixture_end(&fixture);
    }
}

static void sync_root(struct fixture *fixture)
{
    cr_assert_eq(fixture->io->ops->sync_directory(fixture->io, "root", NULL), LAHAR_OK);
}

static void sync_file(struct fixture *fixture, struct lahar_io_file *file)
{
    cr_assert_eq(fixture->io->ops->sync(fixture->io, file, NULL), LAHAR_OK);
}

/* A durable file of one page of 'o'. */
static struct lahar_io_file *durable_file(struct fixture *fixture, const char *name)
{
    struct lahar_io_file *file = fixture_open(fixture, name, 0);
    fixture_write(fixture, file, 0, page_of('o'), 4096);
    sync_file(fixture, file);
    sync_root(fixture);
    return file;
}

/* How many 512-byte sectors of the first page hold this letter. Every sector must be of one
 * letter. */
static unsigned sectors_with(struct fixture *fixture, const char *name, char letter)
{
    struct lahar_io_file *file = fixture_open(fixture, name, 0);
    uint8_t page[4096];
    size_t size = 0;
    unsigned count = 0;
    cr_assert_eq(fixture->io->ops->read(fixture->io, file, 0, page, sizeof page, &size, NULL),
                 LAHAR_OK);
    for (size_t sector = 0; sector < size / 512; sector++) {
        for (size_t i = 1; i < 512; i++) {
            cr_assert_eq(page[512 * sector + i], page[512 * sector]);
        }
        count += page[512 * sector] == letter ? 1 : 0;
    }
    fixture->io->ops->close(fixture->io, file);
    return count;
}

static unsigned outcomes[9];

static void overwrite_unsynced(struct fixture *fixture)
{
    struct lahar_io_file *file = durable_file(fixture, "a");
    fixture_write(fixture, file, 0, page_of('n'), 4096);
    fixture->io->ops->close(fixture->io, file);
}

static void count_new_sectors(struct fixture *fixture)
{
    const unsigned new_count = sectors_with(fixture, "a", 'n');
    cr_assert_eq(new_count + sectors_with(fixture, "a", 'o'), 8);
    outcomes[new_count]++;
}

Test(sim_crash, keeps_loses_or_tears_an_unsynced_write_by_sector)
{
    over_seeds(overwrite_unsynced, count_new_sectors);
    cr_assert_gt(outcomes[0], 0, "lost");
    cr_assert_gt(outcomes[8], 0, "kept");
    cr_assert_gt(SEED_COUNT - outcomes[0] - outcomes[8], 0, "torn");
}

static void overwrite_synced(struct fixture *fixture)
{
    struct lahar_io_file *file = durable_file(fixture, "a");
    fixture_write(fixture, file, 0, page_of('n'), 4096);
    sync_file(fixture, file);
    fixture->io->ops->close(fixture->io, file);
}

static void all_new(struct fixture *fixture)
{
    cr_assert_eq(sectors_with(fixture, "a", 'n'), 8);
}

Test(sim_crash, keeps_what_was_synced)
{
    over_seeds(overwrite_synced, all_new);
}

/* The durable write covers sectors 2 to 5 of two unsynced overwrites. */
static void overwrite_partly_durable(struct fixture *fixture)
{
    struct lahar_io_file *file = durable_file(fixture, "a");
    struct lahar_io_queue *queue = NULL;
    uint8_t data[2048];
    memset(data, 'd', sizeof data);
    fixture_write(fixture, file, 0, page_of('x'), 4096);
    cr_assert_eq(fixture->io->ops->queue_create(fixture->io, 1, &queue, NULL), LAHAR_OK);
    cr_assert_eq(
        fixture_run(fixture, queue, LAHAR_IO_OP_WRITE_DURABLE, file, 1024, data, sizeof data),
        2048);
    fixture->io->ops->queue_destroy(fixture->io, queue);
    fixture->io->ops->close(fixture->io, file);
}

static void durable_middle(struct fixture *fixture)
{
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    uint8_t data[2048];
    memset(data, 'd', sizeof data);
    cr_assert(fixture_holds(fixture, file, 1024, data, sizeof data));
    fixture->io->ops->close(fixture->io, file);
    outcomes[sectors_with(fixture, "a", 'x')]++;
}

Test(sim_crash, keeps_a_durable_write_and_not_its_neighbours)
{
    over_seeds(overwrite_partly_durable, durable_middle);
    cr_assert_gt(outcomes[0], 0, "the unsynced rest can be lost");
    cr_assert_gt(outcomes[4], 0, "or kept");
}

static void append_unsynced(struct fixture *fixture)
{
    struct lahar_io_file *file = durable_file(fixture, "a");
    fixture_write(fixture, file, 4096, page_of('n'), 4096);
    fixture->io->ops->close(fixture->io, file);
}

static void old_or_new_size(struct fixture *fixture)
{
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    const uint64_t size = fixture_size(fixture, file);
    cr_assert(size == 4096 || size == 8192);
    outcomes[size / 4096]++;
    cr_assert(fixture_holds(fixture, file, 0, page_of('o'), 4096));
    /* What was cut off by the crash does not come back. */
    uint8_t zeros[4096] = {0};
    if (size == 4096) {
        cr_assert_eq(fixture->io->ops->truncate(fixture->io, file, 8192, NULL), LAHAR_OK);
        cr_assert(fixture_holds(fixture, file, 4096, zeros, 4096));
    }
    fixture->io->ops->close(fixture->io, file);
}

Test(sim_crash, may_lose_an_unsynced_size)
{
    over_seeds(append_unsynced, old_or_new_size);
    cr_assert_gt(outcomes[1], 0);
    cr_assert_gt(outcomes[2], 0);
}

static void create_unsynced(struct fixture *fixture)
{
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    fixture_write(fixture, file, 0, page_of('n'), 4096);
    sync_file(fixture, file);
    fixture->io->ops->close(fixture->io, file);
}

static void whole_or_absent(struct fixture *fixture)
{
    const bool exists = fixture_exists(fixture, "a");
    outcomes[exists ? 1 : 0]++;
    cr_assert(!exists || sectors_with(fixture, "a", 'n') == 8);
}

Test(sim_crash, may_lose_a_name_whose_directory_was_not_synced)
{
    over_seeds(create_unsynced, whole_or_absent);
    cr_assert_gt(outcomes[0], 0);
    cr_assert_gt(outcomes[1], 0);
}

static void replace_unsynced(struct fixture *fixture)
{
    struct lahar_io *io = fixture->io;
    io->ops->close(io, durable_file(fixture, "a"));
    create_unsynced(fixture);
    struct lahar_io_file *file = fixture_open(fixture, "next", 0);
    fixture_write(fixture, file, 0, page_of('r'), 4096);
    sync_file(fixture, file);
    sync_root(fixture);
    io->ops->close(io, file);
    cr_assert_eq(io->ops->rename(io, "root/next", "root/a", NULL), LAHAR_OK);
}

static void either_file_whole(struct fixture *fixture)
{
    const bool is_new = sectors_with(fixture, "a", 'r') == 8;
    cr_assert(is_new || sectors_with(fixture, "a", 'n') == 8);
    cr_assert_eq(fixture_exists(fixture, "next"), !is_new, "exactly one name leads to it");
    outcomes[is_new ? 1 : 0]++;
}

Test(sim_crash, leaves_the_old_or_the_new_name_after_a_rename)
{
    over_seeds(replace_unsynced, either_file_whole);
    cr_assert_gt(outcomes[0], 0);
    cr_assert_gt(outcomes[1], 0);
}

static void replace_synced(struct fixture *fixture)
{
    replace_unsynced(fixture);
    sync_root(fixture);
}

static void only_the_new(struct fixture *fixture)
{
    cr_assert_eq(sectors_with(fixture, "a", 'r'), 8);
    cr_assert_not(fixture_exists(fixture, "next"));
}

Test(sim_crash, keeps_a_rename_once_the_directory_is_synced)
{
    over_seeds(replace_synced, only_the_new);
}

static void unlink_unsynced(struct fixture *fixture)
{
    struct lahar_io *io = fixture->io;
    io->ops->close(io, durable_file(fixture, "a"));
    cr_assert_eq(io->ops->unlink(io, "root/a", NULL), LAHAR_OK);
    cr_assert_not(fixture_exists(fixture, "a"));
}

static void back_or_gone(struct fixture *fixture)
{
    const bool exists = fixture_exists(fixture, "a");
    outcomes[exists ? 1 : 0]++;
    cr_assert(!exists || sectors_with(fixture, "a", 'o') == 8);
}

Test(sim_crash, may_bring_back_an_unlinked_file_with_its_content)
{
    over_seeds(unlink_unsynced, back_or_gone);
    cr_assert_gt(outcomes[0], 0);
    cr_assert_gt(outcomes[1], 0);
}

static void unlink_synced(struct fixture *fixture)
{
    unlink_unsynced(fixture);
    sync_root(fixture);
}

static void gone(struct fixture *fixture)
{
    cr_assert_not(fixture_exists(fixture, "a"));
}

Test(sim_crash, does_not_bring_back_a_file_whose_unlink_was_synced)
{
    over_seeds(unlink_synced, gone);
}

static void directory_unsynced(struct fixture *fixture)
{
    struct lahar_io *io = fixture->io;
    cr_assert_eq(io->ops->make_directory(io, "root/sub", NULL), LAHAR_OK);
    struct lahar_io_file *file = fixture_open(fixture, "sub/a", 0);
    fixture_write(fixture, file, 0, page_of('n'), 4096);
    sync_file(fixture, file);
    io->ops->close(io, file);
    cr_assert_eq(io->ops->sync_directory(io, "root/sub", NULL), LAHAR_OK);
}

static void with_or_without_directory(struct fixture *fixture)
{
    const bool exists = fixture_exists(fixture, "sub/a");
    const lahar_status made = fixture->io->ops->make_directory(fixture->io, "root/sub", NULL);
    cr_assert_eq(made, exists ? LAHAR_EXISTS : LAHAR_OK);
    cr_assert(!exists || sectors_with(fixture, "sub/a", 'n') == 8);
    outcomes[exists ? 1 : 0]++;
}

Test(sim_crash, loses_the_files_of_a_directory_that_it_loses)
{
    over_seeds(directory_unsynced, with_or_without_directory);
    cr_assert_gt(outcomes[0], 0);
    cr_assert_gt(outcomes[1], 0);
}

/* Recycling: cut to nothing, fill again, durable writes over pending zeros. */
static void recycle(struct fixture *fixture)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = durable_file(fixture, "a");
    struct lahar_io_queue *queue = NULL;
    uint8_t data[512];
    memset(data, 'd', sizeof data);
    cr_assert_eq(io->ops->fill(io, file, 8 * 4096, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->queue_create(io, 1, &queue, NULL), LAHAR_OK);
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_WRITE_DURABLE, file, 512, data, 512), 512);
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
}

static void recycled(struct fixture *fixture)
{
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    cr_assert_eq(fixture_size(fixture, file), 8 * 4096, "a durable write makes the size durable");
    fixture->io->ops->close(fixture->io, file);
    cr_assert_eq(sectors_with(fixture, "a", 'd'), 1);
    const unsigned old_count = sectors_with(fixture, "a", 'o');
    cr_assert_eq(old_count + sectors_with(fixture, "a", '\0'), 7);
    outcomes[old_count]++;
}

Test(sim_crash, may_show_old_content_under_unsynced_zeros)
{
    over_seeds(recycle, recycled);
    cr_assert_gt(outcomes[0], 0);
    cr_assert_gt(outcomes[7], 0);
}

Test(sim_crash, loses_nothing_when_only_the_process_dies)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fixture fixture;
        fixture_begin(&fixture, BACKEND_SIMULATED);
        create_unsynced(&fixture);
        overwrite_unsynced(&fixture);
        lahar_sim_disk_restart(fixture.disk, seed, false);
        cr_assert_eq(sectors_with(&fixture, "a", 'n'), 8);
        fixture_end(&fixture);
    }
}

Test(sim_crash, fails_everything_from_the_crash_to_the_restart)
{
    struct fixture fixture;
    fixture_begin(&fixture, BACKEND_SIMULATED);
    struct lahar_io *io = fixture.io;
    struct lahar_io_file *file = durable_file(&fixture, "a");
    struct lahar_io_file *other = NULL;
    struct lahar_io_queue *queue = NULL;
    struct lahar_io_space space;
    uint64_t size = 0;
    size_t read_size = 0;
    uint8_t data[512] = {0};
    cr_assert_eq(io->ops->lock(io, file, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->queue_create(io, 1, &queue, NULL), LAHAR_OK);
    const uint64_t count = lahar_sim_disk_operations(fixture.disk);
    lahar_sim_disk_crash_at(fixture.disk, count + 1);
    cr_assert_eq(io->ops->write(io, file, 0, "first", 5, NULL), LAHAR_OK);
    cr_assert_not(lahar_sim_disk_has_crashed(fixture.disk));
    lahar_error error = {0};
    cr_assert_eq(io->ops->write(io, file, 0, "second", 6, &error), LAHAR_IO);
    cr_assert_eq(error.sys_errno, EIO);
    cr_assert(lahar_sim_disk_has_crashed(fixture.disk));
    cr_assert_eq(lahar_sim_disk_operations(fixture.disk), count + 1);
    cr_assert_eq(io->ops->sync(io, file, NULL), LAHAR_IO);
    cr_assert_eq(io->ops->read(io, file, 0, data, 5, &read_size, NULL), LAHAR_IO);
    cr_assert_eq(io->ops->size(io, file, &size, NULL), LAHAR_IO);
    cr_assert_eq(io->ops->open(io, "root/b", LAHAR_IO_WRITE | LAHAR_IO_CREATE, &other, NULL),
                 LAHAR_IO);
    cr_assert_eq(io->ops->open(io, "root/a", LAHAR_IO_WRITE, &other, NULL), LAHAR_IO);
    cr_assert_eq(io->ops->rename(io, "root/a", "root/b", NULL), LAHAR_IO);
    cr_assert_eq(io->ops->unlink(io, "root/a", NULL), LAHAR_IO);
    cr_assert_eq(io->ops->make_directory(io, "root/d", NULL), LAHAR_IO);
    cr_assert_eq(io->ops->sync_directory(io, "root", NULL), LAHAR_IO);
    cr_assert_eq(io->ops->space(io, "root", &space, NULL), LAHAR_IO);
    cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_WRITE, file, 0, data, 512), -EIO);
    lahar_sim_disk_restart(fixture.disk, 1, false);
    cr_assert_eq(io->ops->sync(io, file, NULL), LAHAR_IO, "a handle of the dead process");
    cr_assert_eq(fixture_run(&fixture, queue, LAHAR_IO_OP_SYNC, file, 0, NULL, 0), -EIO);
    other = fixture_open(&fixture, "a", 0);
    cr_assert_eq(io->ops->lock(io, other, NULL), LAHAR_OK, "its lock is gone");
    cr_assert(fixture_holds(&fixture, other, 0, "firsto", 6));
    io->ops->close(io, other);
    io->ops->close(io, file);
    io->ops->queue_destroy(io, queue);
    fixture_end(&fixture);
}

/* A write that was submitted and not reaped may have happened, and its data is that of the
 * crash, not of the submission. */
Test(sim_crash, lets_a_write_in_flight_happen_or_not)
{
    unsigned happened = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct lahar_sim_disk *disk = NULL;
        struct fixture fixture = {.root = "root"};
        cr_assert_eq(lahar_sim_disk_create(&lahar_allocator_libc, seed, &disk, NULL), LAHAR_OK);
        cr_assert_eq(lahar_sim_disk_io(disk, &fixture.io, NULL), LAHAR_OK);
        struct lahar_io *io = fixture.io;
        cr_assert_eq(io->ops->make_directory(io, "root", NULL), LAHAR_OK);
        struct lahar_io_file *file = durable_file(&fixture, "a");
        struct lahar_io_queue *queue = NULL;
        uint8_t data[4096];
        memset(data, 's', sizeof data);
        struct lahar_io_op op = {
            .kind = LAHAR_IO_OP_WRITE, .file = file, .data = data, .size = sizeof data};
        struct lahar_io_op *submitted = &op;
        cr_assert_eq(io->ops->queue_create(io, 1, &queue, NULL), LAHAR_OK);
        cr_assert_eq(io->ops->queue_submit(io, queue, &submitted, 1, NULL), LAHAR_OK);
        memset(data, 'c', sizeof data);
        lahar_sim_disk_restart(disk, seed, false);
        cr_assert_eq(sectors_with(&fixture, "a", 's'), 0);
        const unsigned changed = sectors_with(&fixture, "a", 'c');
        cr_assert(changed == 0 || changed == 8);
        happened += changed == 8 ? 1 : 0;
        while (io->ops->queue_reap(io, queue, &submitted, 1, 1) == 0) {
        }
        cr_assert_eq(op.result, -EIO);
        io->ops->queue_destroy(io, queue);
        io->ops->close(io, file);
        io->ops->destroy(io);
        lahar_sim_disk_destroy(disk);
    }
    cr_assert_gt(happened, 20);
    cr_assert_lt(happened, 80);
}
