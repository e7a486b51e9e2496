/* Faults, limits, determinism and copies of the simulated disk. */
#include <errno.h>
#include <string.h>

#include "failing_allocator.h"
#include "fixture.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

struct scene {
    struct fixture fixture;
    struct lahar_io *io;
    struct lahar_io_file *file;
    struct lahar_io_queue *queue;
};

static void begin(struct scene *scene, unsigned more_flags)
{
    fixture_begin(&scene->fixture, BACKEND_SIMULATED);
    scene->io = scene->fixture.io;
    scene->file = fixture_open(&scene->fixture, "file", more_flags);
    cr_assert_eq(scene->io->ops->queue_create(scene->io, 8, &scene->queue, NULL), LAHAR_OK);
}

static void end(struct scene *scene)
{
    scene->io->ops->queue_destroy(scene->io, scene->queue);
    scene->io->ops->close(scene->io, scene->file);
    fixture_end(&scene->fixture);
}

/* Arms a fault for the next count operations. */
static void arm(struct scene *scene, enum lahar_sim_fault fault, uint64_t count, const char *part)
{
    struct lahar_sim_disk *disk = scene->fixture.disk;
    lahar_sim_disk_fault(disk, fault, lahar_sim_disk_operations(disk), count, part);
}

static uint64_t strikes(struct scene *scene)
{
    return lahar_sim_disk_fault_count(scene->fixture.disk);
}

Test(sim_fault, strikes_the_operations_it_is_armed_for)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_io *io = scene.io;
    struct lahar_sim_disk *disk = scene.fixture.disk;
    lahar_sim_disk_fault(disk, LAHAR_SIM_FAULT_EIO, lahar_sim_disk_operations(disk) + 1, 2, NULL);
    cr_assert_eq(io->ops->write(io, scene.file, 0, "a", 1, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->write(io, scene.file, 0, "b", 1, NULL), LAHAR_IO);
    cr_assert(fixture_holds(&scene.fixture, scene.file, 0, "a", 1));
    cr_assert_eq(io->ops->sync(io, scene.file, NULL), LAHAR_IO);
    cr_assert_eq(io->ops->sync(io, scene.file, NULL), LAHAR_OK);
    cr_assert_eq(strikes(&scene), 2);
    end(&scene);
}

Test(sim_fault, strikes_only_paths_that_hold_the_part)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_io *io = scene.io;
    struct lahar_io_file *other = fixture_open(&scene.fixture, "other", 0);
    arm(&scene, LAHAR_SIM_FAULT_EIO, UINT64_MAX, "oth");
    cr_assert_eq(io->ops->write(io, scene.file, 0, "a", 1, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->write(io, other, 0, "a", 1, NULL), LAHAR_IO);
    cr_assert_eq(io->ops->write(io, other, 0, "a", 1, NULL), LAHAR_IO);
    cr_assert_eq(strikes(&scene), 2);
    io->ops->close(io, other);
    end(&scene);
}

Test(sim_fault, runs_out_of_space_where_space_is_needed)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_io *io = scene.io;
    struct lahar_io_file *other = NULL;
    char data[] = "a";
    fixture_write(&scene.fixture, scene.file, 0, "a", 1);
    arm(&scene, LAHAR_SIM_FAULT_ENOSPC, UINT64_MAX, NULL);
    cr_assert_eq(io->ops->write(io, scene.file, 0, "a", 1, NULL), LAHAR_NO_SPACE);
    cr_assert_eq(io->ops->fill(io, scene.file, 4096, NULL), LAHAR_NO_SPACE);
    cr_assert_eq(io->ops->reserve(io, scene.file, 4096, NULL), LAHAR_NO_SPACE);
    cr_assert_eq(io->ops->open(io, "root/new", LAHAR_IO_WRITE | LAHAR_IO_CREATE, &other, NULL),
                 LAHAR_NO_SPACE);
    cr_assert_eq(io->ops->make_directory(io, "root/d", NULL), LAHAR_NO_SPACE);
    cr_assert_eq(
        fixture_run(&scene.fixture, scene.queue, LAHAR_IO_OP_WRITE, scene.file, 0, data, 1),
        -ENOSPC);
    cr_assert_eq(strikes(&scene), 6);
    cr_assert_eq(io->ops->sync(io, scene.file, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->truncate(io, scene.file, 0, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->unlink(io, "root/file", NULL), LAHAR_OK);
    cr_assert_eq(strikes(&scene), 6);
    end(&scene);
}

Test(sim_fault, shortens_queued_transfers)
{
    struct scene scene;
    begin(&scene, 0);
    static uint8_t data[20000];
    static uint8_t found[20000];
    bool sizes[20000] = {false};
    unsigned distinct = 0;
    memset(data, 'x', sizeof data);
    fixture_write(&scene.fixture, scene.file, 0, data, sizeof data);
    arm(&scene, LAHAR_SIM_FAULT_SHORT, UINT64_MAX, NULL);
    for (int i = 0; i < 200; i++) {
        const int32_t moved = fixture_run(&scene.fixture, scene.queue,
                                          i % 2 == 0 ? LAHAR_IO_OP_WRITE : LAHAR_IO_OP_READ,
                                          scene.file, 0, i % 2 == 0 ? data : found, sizeof data);
        cr_assert_gt(moved, 0);
        cr_assert_lt(moved, (int32_t)sizeof data);
        distinct += sizes[moved] ? 0 : 1;
        sizes[moved] = true;
    }
    cr_assert_eq(strikes(&scene), 200);
    cr_assert_gt(distinct, 6);
    cr_assert(sizes[1] && sizes[511] && sizes[4096] && sizes[sizeof data - 1]);
    end(&scene);
}

Test(sim_fault, shortens_direct_transfers_to_whole_sectors)
{
    struct scene scene;
    begin(&scene, LAHAR_IO_DIRECT);
    uint8_t *data = aligned_alloc(4096, 16384);
    memset(data, 'x', 16384);
    cr_assert_eq(scene.io->ops->write(scene.io, scene.file, 512, data, 4096, NULL), LAHAR_IO);
    cr_assert_eq(scene.io->ops->write(scene.io, scene.file, 0, data + 1, 4096, NULL), LAHAR_IO);
    cr_assert_eq(
        fixture_run(&scene.fixture, scene.queue, LAHAR_IO_OP_WRITE, scene.file, 0, data, 100),
        -EINVAL);
    arm(&scene, LAHAR_SIM_FAULT_SHORT, UINT64_MAX, NULL);
    for (int i = 0; i < 50; i++) {
        const int32_t moved =
            fixture_run(&scene.fixture, scene.queue, LAHAR_IO_OP_WRITE, scene.file, 0, data, 16384);
        cr_assert_gt(moved, 0);
        cr_assert_lt(moved, 16384);
        cr_assert_eq(moved % 512, 0);
    }
    cr_assert_eq(strikes(&scene), 50);
    free(data);
    end(&scene);
}

Test(sim_fault, interrupts_queued_operations)
{
    struct scene scene;
    begin(&scene, 0);
    unsigned interrupted = 0;
    unsigned again = 0;
    char data[] = "a";
    arm(&scene, LAHAR_SIM_FAULT_EINTR, 100, NULL);
    for (int i = 0; i < 100; i++) {
        const int32_t result =
            fixture_run(&scene.fixture, scene.queue,
                        i % 2 == 0 ? LAHAR_IO_OP_WRITE : LAHAR_IO_OP_SYNC, scene.file, 0, data, 1);
        interrupted += result == -EINTR ? 1 : 0;
        again += result == -EAGAIN ? 1 : 0;
    }
    cr_assert_eq(interrupted + again, 100);
    cr_assert_gt(interrupted, 20);
    cr_assert_gt(again, 20);
    cr_assert_eq(strikes(&scene), 100);
    cr_assert_eq(fixture_size(&scene.fixture, scene.file), 0);
    cr_assert_eq(scene.io->ops->write(scene.io, scene.file, 0, "a", 1, NULL), LAHAR_OK);
    end(&scene);
}

Test(sim_fault, fails_reads)
{
    struct scene scene;
    begin(&scene, 0);
    char data[2];
    size_t size = 0;
    fixture_write(&scene.fixture, scene.file, 0, "ab", 2);
    arm(&scene, LAHAR_SIM_FAULT_READ, 2, NULL);
    cr_assert_eq(scene.io->ops->sync(scene.io, scene.file, NULL), LAHAR_OK);
    cr_assert_eq(scene.io->ops->read(scene.io, scene.file, 0, data, 2, &size, NULL), LAHAR_IO);
    cr_assert_eq(size, 0);
    cr_assert_eq(fixture_run(&scene.fixture, scene.queue, LAHAR_IO_OP_READ, scene.file, 0, data, 2),
                 -EIO);
    cr_assert(fixture_holds(&scene.fixture, scene.file, 0, "ab", 2));
    cr_assert_eq(strikes(&scene), 2);
    end(&scene);
}

/* As Linux file systems do: the error is reported once, readers go on seeing the data, the
 * next sync succeeds, and the disk never had it. */
Test(sim_fault, loses_data_in_a_failed_sync_and_then_succeeds)
{
    for (int kind = 0; kind < 3; kind++) {
        struct scene scene;
        begin(&scene, 0);
        struct lahar_io *io = scene.io;
        char old[] = "old";
        char new[] = "new";
        fixture_write(&scene.fixture, scene.file, 0, old, 3);
        cr_assert_eq(io->ops->sync(io, scene.file, NULL), LAHAR_OK);
        cr_assert_eq(io->ops->sync_directory(io, "root", NULL), LAHAR_OK);
        cr_assert_eq(io->ops->sync_directory(io, ".", NULL), LAHAR_OK);
        if (kind == 0) {
            fixture_write(&scene.fixture, scene.file, 0, new, 3);
            arm(&scene, LAHAR_SIM_FAULT_SYNC_LOST, 1, NULL);
            cr_assert_eq(io->ops->sync(io, scene.file, NULL), LAHAR_IO);
        } else if (kind == 1) {
            fixture_write(&scene.fixture, scene.file, 0, new, 3);
            arm(&scene, LAHAR_SIM_FAULT_SYNC_LOST, 1, NULL);
            cr_assert_eq(
                fixture_run(&scene.fixture, scene.queue, LAHAR_IO_OP_SYNC, scene.file, 0, NULL, 0),
                -EIO);
        } else {
            arm(&scene, LAHAR_SIM_FAULT_SYNC_LOST, 1, NULL);
            cr_assert_eq(fixture_run(&scene.fixture, scene.queue, LAHAR_IO_OP_WRITE_DURABLE,
                                     scene.file, 0, new, 3),
                         -EIO);
        }
        cr_assert_eq(strikes(&scene), 1);
        cr_assert(fixture_holds(&scene.fixture, scene.file, 0, new, 3));
        cr_assert_eq(io->ops->sync(io, scene.file, NULL), LAHAR_OK);
        lahar_sim_disk_restart(scene.fixture.disk, 5, true);
        struct lahar_io_file *file = fixture_open(&scene.fixture, "file", 0);
        cr_assert(fixture_holds(&scene.fixture, file, 0, old, 3));
        io->ops->close(io, file);
        end(&scene);
    }
}

Test(sim_fault, fills_up_at_its_capacity_and_recovers)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_io *io = scene.io;
    static uint8_t data[16384];
    struct lahar_io_space space;
    lahar_sim_disk_capacity(scene.fixture.disk, 10000);
    cr_assert_eq(
        fixture_run(&scene.fixture, scene.queue, LAHAR_IO_OP_WRITE, scene.file, 0, data, 16384),
        9728, "whole sectors");
    cr_assert_eq(io->ops->write(io, scene.file, 9728, data, 1000, NULL), LAHAR_NO_SPACE);
    cr_assert_eq(io->ops->write(io, scene.file, 0, data, 9000, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->fill(io, scene.file, 10001, NULL), LAHAR_NO_SPACE);
    cr_assert_eq(io->ops->space(io, "root", &space, NULL), LAHAR_OK);
    cr_assert_eq(space.capacity_bytes, 10000);
    cr_assert_eq(space.free_bytes, 272);
    cr_assert_eq(io->ops->truncate(io, scene.file, 1000, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->write(io, scene.file, 1000, data, 9000, NULL), LAHAR_OK);
    end(&scene);
}

/* A seeded run of mixed operations; returns a checksum of everything that it observed. */
static uint32_t run_script(const lahar_allocator *allocator, uint64_t seed)
{
    struct lahar_sim_disk *disk = NULL;
    struct fixture fixture = {.root = "root"};
    struct lahar_io_queue *queue = NULL;
    static uint8_t data[8][4096];
    uint32_t seen = 0;
    cr_assert_eq(lahar_sim_disk_create(allocator, seed, &disk, NULL), LAHAR_OK);
    cr_assert_eq(lahar_sim_disk_io(disk, &fixture.io, NULL), LAHAR_OK);
    struct lahar_io *io = fixture.io;
    cr_assert_eq(io->ops->make_directory(io, "root", NULL), LAHAR_OK);
    cr_assert_eq(io->ops->sync_directory(io, ".", NULL), LAHAR_OK);
    struct lahar_io_file *file = fixture_open(&fixture, "file", 0);
    cr_assert_eq(io->ops->sync_directory(io, "root", NULL), LAHAR_OK);
    cr_assert_eq(io->ops->queue_create(io, 8, &queue, NULL), LAHAR_OK);
    lahar_sim_disk_fault(disk, LAHAR_SIM_FAULT_SHORT, 20, UINT64_MAX, NULL);
    struct lahar_io_op ops[8];
    struct lahar_io_op *batch[8];
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < 8; i++) {
            memset(data[i], (int)(round * 8 + i), sizeof data[i]);
            ops[i] = (struct lahar_io_op){.kind = i == 5   ? LAHAR_IO_OP_SYNC
                                                  : i == 3 ? LAHAR_IO_OP_WRITE_DURABLE
                                                           : LAHAR_IO_OP_WRITE,
                                          .file = file,
                                          .data = data[i],
                                          .offset = (uint64_t)i * 3000,
                                          .size = 4096};
            batch[i] = &ops[i];
        }
        cr_assert_eq(io->ops->queue_submit(io, queue, batch, 8, NULL), LAHAR_OK);
        for (uint32_t reaped = 0; reaped < 8;) {
            struct lahar_io_op *done[8];
            const uint32_t n = io->ops->queue_reap(io, queue, done, 8, 1000);
            for (uint32_t i = 0; i < n; i++) {
                const int32_t observed[2] = {(int32_t)(done[i] - ops), done[i]->result};
                seen = lahar_crc32c(seen, observed, sizeof observed);
            }
            reaped += n;
        }
    }
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
    lahar_sim_disk_restart(disk, seed * 31, true);
    file = fixture_open(&fixture, "file", 0);
    static uint8_t found[40000];
    size_t size = 0;
    cr_assert_eq(io->ops->read(io, file, 0, found, sizeof found, &size, NULL), LAHAR_OK);
    seen = lahar_crc32c(seen, found, size);
    const uint64_t clock_ns = io->ops->monotonic_ns(io);
    seen = lahar_crc32c(seen, &clock_ns, sizeof clock_ns);
    io->ops->close(io, file);
    io->ops->destroy(io);
    lahar_sim_disk_destroy(disk);
    return seen;
}

Test(sim_disk, gives_the_same_run_for_the_same_seed)
{
    uint32_t first = 0;
    unsigned different = 0;
    for (uint64_t seed = 1; seed < 20; seed++) {
        const uint32_t seen = run_script(&lahar_allocator_libc, seed);
        cr_assert_eq(run_script(&lahar_allocator_libc, seed), seen);
        different += seen != first ? 1 : 0;
        first = seen;
    }
    cr_assert_geq(different, 18);
}

Test(sim_disk, releases_all_its_memory)
{
    struct failing_allocator memory;
    failing_allocator_init(&memory, UINT64_MAX);
    (void)run_script(&memory.allocator, 7);
    cr_assert_eq(memory.live_count, 0);
}

/* Each refused allocation is an error of one call, and the disk stays usable. */
Test(sim_disk, survives_each_refusal_of_memory)
{
    uint64_t fail_at = 0;
    struct failing_allocator memory;
    do {
        failing_allocator_init(&memory, fail_at++);
        struct lahar_sim_disk *disk = NULL;
        struct lahar_sim_disk *copy = NULL;
        struct lahar_io *io = NULL;
        struct lahar_io_file *file = NULL;
        lahar_status status = lahar_sim_disk_create(&memory.allocator, 1, &disk, NULL);
        status = status == LAHAR_OK ? lahar_sim_disk_io(disk, &io, NULL) : status;
        status = status == LAHAR_OK ? io->ops->make_directory(io, "d", NULL) : status;
        status = status == LAHAR_OK
                     ? io->ops->open(io, "d/a", LAHAR_IO_WRITE | LAHAR_IO_CREATE, &file, NULL)
                     : status;
        status = status == LAHAR_OK ? io->ops->write(io, file, 100, "abc", 3, NULL) : status;
        status = status == LAHAR_OK ? io->ops->rename(io, "d/a", "d/b", NULL) : status;
        status = status == LAHAR_OK ? lahar_sim_disk_clone(disk, &copy, NULL) : status;
        status = status == LAHAR_OK ? io->ops->sync(io, file, NULL) : status;
        status = status == LAHAR_OK ? io->ops->write(io, file, 0, "abc", 3, NULL) : status;
        status = status == LAHAR_OK ? io->ops->sync(io, file, NULL) : status;
        cr_assert_eq(status, memory.refused_count == 0 ? LAHAR_OK : LAHAR_NO_MEMORY);
        if (disk != NULL) {
            lahar_sim_disk_restart(disk, 1, true);
        }
        if (io != NULL) {
            io->ops->close(io, file);
            io->ops->destroy(io);
        }
        lahar_sim_disk_destroy(copy);
        lahar_sim_disk_destroy(disk);
        cr_assert_eq(memory.live_count, 0);
    } while (memory.refused_count > 0);
    cr_assert_gt(fail_at, 15);
}

Test(sim_disk, copies_files_and_pending_state_with_a_future_of_their_own)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_io *io = scene.io;
    unsigned lost = 0;
    unsigned kept = 0;
    cr_assert_eq(io->ops->sync_directory(io, ".", NULL), LAHAR_OK);
    cr_assert_eq(io->ops->sync_directory(io, "root", NULL), LAHAR_OK);
    fixture_write(&scene.fixture, scene.file, 0, "synced", 6);
    cr_assert_eq(io->ops->sync(io, scene.file, NULL), LAHAR_OK);
    fixture_write(&scene.fixture, scene.file, 0, "SYNCED", 6);
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fixture copy = {.root = "root"};
        cr_assert_eq(lahar_sim_disk_clone(scene.fixture.disk, &copy.disk, NULL), LAHAR_OK);
        cr_assert_eq(lahar_sim_disk_io(copy.disk, &copy.io, NULL), LAHAR_OK);
        cr_assert_eq(lahar_sim_disk_operations(copy.disk),
                     lahar_sim_disk_operations(scene.fixture.disk));
        lahar_sim_disk_restart(copy.disk, seed, true);
        struct lahar_io_file *file = fixture_open(&copy, "file", 0);
        const bool is_lost = fixture_holds(&copy, file, 0, "synced", 6);
        cr_assert(is_lost || fixture_holds(&copy, file, 0, "SYNCED", 6));
        lost += is_lost ? 1 : 0;
        kept += is_lost ? 0 : 1;
        fixture_write(&copy, file, 0, "copy's", 6);
        copy.io->ops->close(copy.io, file);
        copy.io->ops->destroy(copy.io);
        lahar_sim_disk_destroy(copy.disk);
    }
    cr_assert_gt(lost, 10);
    cr_assert_gt(kept, 10);
    cr_assert(fixture_holds(&scene.fixture, scene.file, 0, "SYNCED", 6));
    end(&scene);
}

Test(sim_disk, damages_and_places_files_for_tests)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_sim_disk *disk = scene.fixture.disk;
    const uint64_t count = lahar_sim_disk_operations(disk);
    fixture_write(&scene.fixture, scene.file, 0, "aaaa", 4);
    cr_assert_eq(scene.io->ops->sync(scene.io, scene.file, NULL), LAHAR_OK);
    cr_assert_eq(lahar_sim_disk_flip_bit(disk, "root/file", 8 * 2 + 1, NULL), LAHAR_OK);
    cr_assert(fixture_holds(&scene.fixture, scene.file, 0, "aaca", 4));
    cr_assert_eq(lahar_sim_disk_flip_bit(disk, "root/no", 0, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_sim_disk_write_file(disk, "root/made", "made", 4, NULL), LAHAR_OK);
    cr_assert_eq(lahar_sim_disk_write_file(disk, "root/file", "xy", 2, NULL), LAHAR_OK);
    cr_assert_eq(lahar_sim_disk_write_file(disk, "no/made", "made", 4, NULL), LAHAR_NOT_FOUND);
    cr_assert_eq(lahar_sim_disk_operations(disk), count + 2);
    cr_assert_eq(fixture_size(&scene.fixture, scene.file), 2);
    cr_assert_eq(scene.io->ops->sync_directory(scene.io, ".", NULL), LAHAR_OK);
    lahar_sim_disk_restart(disk, 3, true);
    struct lahar_io_file *file = fixture_open(&scene.fixture, "made", 0);
    cr_assert(fixture_holds(&scene.fixture, file, 0, "made", 4));
    scene.io->ops->close(scene.io, file);
    end(&scene);
}

Test(sim_disk, keeps_a_clock_of_its_own)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_io *io = scene.io;
    struct lahar_sim_disk *disk = scene.fixture.disk;
    const uint64_t before_ns = io->ops->monotonic_ns(io);
    const int64_t realtime_ns = io->ops->realtime_ns(io);
    fixture_write(&scene.fixture, scene.file, 0, "a", 1);
    cr_assert_eq(io->ops->monotonic_ns(io) - before_ns, 1000);
    cr_assert_eq(io->ops->realtime_ns(io) - realtime_ns, 1000);
    lahar_sim_disk_advance(disk, 5000);
    cr_assert_eq(io->ops->monotonic_ns(io) - before_ns, 6000);
    lahar_sim_disk_set_realtime(disk, 42);
    cr_assert_eq(io->ops->realtime_ns(io), 42);
    cr_assert_eq(io->ops->monotonic_ns(io) - before_ns, 6000);
    end(&scene);
}

Test(sim_disk, reads_paths_as_text)
{
    struct scene scene;
    begin(&scene, 0);
    struct lahar_io *io = scene.io;
    struct lahar_io_file *file = NULL;
    fixture_write(&scene.fixture, scene.file, 0, "a", 1);
    cr_assert_eq(io->ops->open(io, "./root//./file", LAHAR_IO_READ, &file, NULL), LAHAR_OK);
    cr_assert(fixture_holds(&scene.fixture, file, 0, "a", 1));
    io->ops->close(io, file);
    cr_assert_neq(io->ops->open(io, "root/../root/file", LAHAR_IO_READ, &file, NULL), LAHAR_OK);
    cr_assert_null(file);
    end(&scene);
}
