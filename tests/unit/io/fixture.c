/* Setting up a backend, and short forms of its calls that fail the test. */
#include "fixture.h"

#include <string.h>

#include "io/base/error.h"

void fixture_begin(struct fixture *fixture, enum backend_kind kind)
{
    lahar_error error = {0};
    *fixture = (struct fixture){0};
    lahar_status status = LAHAR_OK;
    if (kind == BACKEND_SIMULATED) {
        (void)snprintf(fixture->root, sizeof fixture->root, "root");
        cr_assert_eq(lahar_sim_disk_create(&lahar_allocator_libc, 1, &fixture->disk, &error),
                     LAHAR_OK);
        status = lahar_sim_disk_io(fixture->disk, &fixture->io, &error);
        cr_assert_eq(fixture->io->ops->make_directory(fixture->io, "root", &error), LAHAR_OK);
    } else {
        scratch_create(fixture->root);
        status = kind == BACKEND_URING
                     ? lahar_io_uring_create(&lahar_allocator_libc, &fixture->io, &error)
                     : lahar_io_pwrite_create(&lahar_allocator_libc, &fixture->io, &error);
    }
    if (status == LAHAR_UNSUPPORTED) {
        scratch_remove(fixture->root);
        cr_skip("%s", error.message);
    }
    cr_assert_eq(status, LAHAR_OK, "%s", error.message);
}

void fixture_end(struct fixture *fixture)
{
    fixture->io->ops->destroy(fixture->io);
    if (fixture->disk != NULL) {
        lahar_sim_disk_destroy(fixture->disk);
    } else {
        scratch_remove(fixture->root);
    }
}

const char *fixture_path(struct fixture *fixture, const char *name)
{
    static char paths[8][2 * SCRATCH_PATH_SIZE];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof *paths, "%s/%s", fixture->root, name);
    return path;
}

struct lahar_io_file *fixture_open(struct fixture *fixture, const char *name, unsigned more_flags)
{
    lahar_error error = {0};
    struct lahar_io_file *file = NULL;
    const lahar_status status = fixture->io->ops->open(
        fixture->io, fixture_path(fixture, name),
        LAHAR_IO_READ | LAHAR_IO_WRITE | LAHAR_IO_CREATE | more_flags, &file, &error);
    cr_assert_eq(status, LAHAR_OK, "%s", error.message);
    return file;
}

void fixture_write(struct fixture *fixture, struct lahar_io_file *file, uint64_t offset,
                   const void *data, size_t size)
{
    lahar_error error = {0};
    cr_assert_eq(fixture->io->ops->write(fixture->io, file, offset, data, size, &error), LAHAR_OK,
                 "%s", error.message);
}

bool fixture_holds(struct fixture *fixture, struct lahar_io_file *file, uint64_t offset,
                   const void *data, size_t size)
{
    lahar_error error = {0};
    size_t read_size = 0;
    uint8_t *found = malloc(size + 1);
    cr_assert_not_null(found);
    cr_assert_eq(fixture->io->ops->read(fixture->io, file, offset, found, size, &read_size, &error),
                 LAHAR_OK, "%s", error.message);
    const bool holds = read_size == size && memcmp(found, data, size) == 0;
    free(found);
    return holds;
}

uint64_t fixture_size(struct fixture *fixture, struct lahar_io_file *file)
{
    lahar_error error = {0};
    uint64_t size = 0;
    cr_assert_eq(fixture->io->ops->size(fixture->io, file, &size, &error), LAHAR_OK, "%s",
                 error.message);
    return size;
}

bool fixture_exists(struct fixture *fixture, const char *name)
{
    struct lahar_io_file *file = NULL;
    const lahar_status status = fixture->io->ops->open(fixture->io, fixture_path(fixture, name),
                                                       LAHAR_IO_READ, &file, NULL);
    fixture->io->ops->close(fixture->io, file);
    cr_assert(status == LAHAR_OK || status == LAHAR_NOT_FOUND);
    return status == LAHAR_OK;
}

int32_t fixture_run(struct fixture *fixture, struct lahar_io_queue *queue,
                    enum lahar_io_op_kind kind, struct lahar_io_file *file, uint64_t offset,
                    void *data, uint32_t size)
{
    lahar_error error = {0};
    struct lahar_io_op op = {
        .kind = kind, .file = file, .data = data, .offset = offset, .size = size, .result = -1};
    struct lahar_io_op *submitted = &op;
    struct lahar_io_op *done = NULL;
    cr_assert_eq(fixture->io->ops->queue_submit(fixture->io, queue, &submitted, 1, &error),
                 LAHAR_OK, "%s", error.message);
    while (fixture->io->ops->queue_reap(fixture->io, queue, &done, 1, UINT64_C(1000000000)) == 0) {
    }
    cr_assert_eq(done, &op);
    return op.result;
}
