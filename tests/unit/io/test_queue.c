/* What io.h promises of queues, over every backend. */
#include <errno.h>
#include <string.h>

#include "fixture.h"
#include "io/base/error.h"

static struct lahar_io_queue *create_queue(struct fixture *fixture, uint32_t depth)
{
    lahar_error error = {0};
    struct lahar_io_queue *queue = NULL;
    cr_assert_eq(fixture->io->ops->queue_create(fixture->io, depth, &queue, &error), LAHAR_OK, "%s",
                 error.message);
    return queue;
}

CONTRACT_TEST(queue, executes_each_kind_of_operation)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    struct lahar_io_queue *queue = create_queue(fixture, 4);
    char plain[] = "plain write";
    char durable[] = "durable write";
    char out[40] = {0};
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_WRITE, file, 0, plain, 11), 11);
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_WRITE_DURABLE, file, 11, durable, 13), 13);
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_SYNC, file, 0, NULL, 0), 0);
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_READ, file, 6, out, 40), 18);
    cr_assert_eq(memcmp(out, "writedurable write", 18), 0);
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_READ, file, 24, out, 40), 0);
    io->ops->queue_destroy(io, queue);
    io->ops->queue_destroy(io, NULL);
    io->ops->close(io, file);
}

CONTRACT_TEST(queue, hands_back_errors_as_negative_errno)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    io->ops->close(io, file);
    cr_assert_eq(io->ops->open(io, fixture_path(fixture, "a"), LAHAR_IO_READ, &file, NULL),
                 LAHAR_OK);
    struct lahar_io_queue *queue = create_queue(fixture, 4);
    char data[] = "x";
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_WRITE, file, 0, data, 1), -EBADF);
    cr_assert_eq(fixture_run(fixture, queue, LAHAR_IO_OP_WRITE_DURABLE, file, 0, data, 1), -EBADF);
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
}

enum {
    DEPTH = 16,
    BLOCK = 4096,
    BLOCK_COUNT = 400
};

/* Keeps the queue full until every block is written; every operation must come back once. */
CONTRACT_TEST(queue, gives_back_every_operation_exactly_once)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    struct lahar_io_queue *queue = create_queue(fixture, DEPTH);
    static uint8_t blocks[BLOCK_COUNT][BLOCK];
    static struct lahar_io_op ops[BLOCK_COUNT];
    static unsigned seen[BLOCK_COUNT];
    uint32_t submitted = 0;
    uint32_t reaped = 0;
    while (reaped < BLOCK_COUNT) {
        struct lahar_io_op *batch[DEPTH];
        uint32_t count = 0;
        while (submitted < BLOCK_COUNT && submitted - reaped < DEPTH) {
            memset(blocks[submitted], (int)(submitted % 255) + 1, BLOCK);
            ops[submitted] = (struct lahar_io_op){
                .kind = submitted % 3 == 0 ? LAHAR_IO_OP_WRITE_DURABLE : LAHAR_IO_OP_WRITE,
                .file = file,
                .data = blocks[submitted],
                .offset = (uint64_t)submitted * BLOCK,
                .size = BLOCK,
                .context = &seen[submitted],
            };
            batch[count++] = &ops[submitted++];
        }
        cr_assert_eq(io->ops->queue_submit(io, queue, batch, count, NULL), LAHAR_OK);
        struct lahar_io_op *done[7];
        const uint32_t n = io->ops->queue_reap(io, queue, done, 7, UINT64_C(5000000000));
        for (uint32_t i = 0; i < n; i++) {
            cr_assert_eq(done[i]->result, BLOCK);
            (*(unsigned *)done[i]->context)++;
        }
        reaped += n;
    }
    for (uint32_t i = 0; i < BLOCK_COUNT; i++) {
        cr_assert_eq(seen[i], 1);
        cr_assert(fixture_holds(fixture, file, (uint64_t)i * BLOCK, blocks[i], BLOCK));
    }
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
}

CONTRACT_TEST(queue, refuses_more_than_its_depth_and_accepts_again_after_reaping)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    struct lahar_io_queue *queue = create_queue(fixture, 2);
    char data[] = "x";
    struct lahar_io_op ops[3];
    struct lahar_io_op *batch[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = (struct lahar_io_op){.kind = LAHAR_IO_OP_WRITE,
                                      .file = file,
                                      .data = data,
                                      .offset = (uint64_t)i,
                                      .size = 1};
        batch[i] = &ops[i];
    }
    cr_assert_eq(io->ops->queue_submit(io, queue, batch, 3, NULL), LAHAR_BUSY);
    cr_assert_eq(fixture_size(fixture, file), 0, "nothing of a refused batch is done");
    cr_assert_eq(io->ops->queue_submit(io, queue, batch, 2, NULL), LAHAR_OK);
    cr_assert_eq(io->ops->queue_submit(io, queue, batch + 2, 1, NULL), LAHAR_BUSY);
    struct lahar_io_op *done[3];
    for (uint32_t reaped = 0; reaped < 2;) {
        reaped += io->ops->queue_reap(io, queue, done, 3, UINT64_C(1000000000));
    }
    cr_assert_eq(io->ops->queue_submit(io, queue, batch + 2, 1, NULL), LAHAR_OK);
    while (io->ops->queue_reap(io, queue, done, 3, UINT64_C(1000000000)) == 0) {
    }
    cr_assert_eq(done[0], &ops[2]);
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
}

CONTRACT_TEST(queue, waits_as_long_as_asked_when_nothing_happens)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_queue *queue = create_queue(fixture, 2);
    struct lahar_io_op *done[2];
    const uint64_t before_ns = io->ops->monotonic_ns(io);
    cr_assert_eq(io->ops->queue_reap(io, queue, done, 2, 0), 0);
    cr_assert_eq(io->ops->queue_reap(io, queue, done, 2, 20000000), 0);
    cr_assert_geq(io->ops->monotonic_ns(io) - before_ns, 20000000);
    io->ops->queue_destroy(io, queue);
}

CONTRACT_TEST(queue, ends_the_next_wait_when_it_was_woken_before)
{
    struct lahar_io *io = fixture->io;
    struct lahar_io_file *file = fixture_open(fixture, "a", 0);
    struct lahar_io_queue *queue = create_queue(fixture, 2);
    struct lahar_io_op *done[2];
    char data[] = "x";
    const uint64_t long_ns = UINT64_C(20000000000);
    const uint64_t before_ns = io->ops->monotonic_ns(io);
    for (int i = 0; i < 50; i++) {
        io->ops->queue_wake(io, queue);
        io->ops->queue_wake(io, queue);
        cr_assert_eq(io->ops->queue_reap(io, queue, done, 2, long_ns), 0);
        /* Also when completions are taken, without waiting, before the wait. */
        struct lahar_io_op op = {.kind = LAHAR_IO_OP_WRITE, .file = file, .data = data, .size = 1};
        struct lahar_io_op *submitted = &op;
        cr_assert_eq(io->ops->queue_submit(io, queue, &submitted, 1, NULL), LAHAR_OK);
        io->ops->queue_wake(io, queue);
        while (io->ops->queue_reap(io, queue, done, 2, 0) == 0) {
        }
        cr_assert_eq(io->ops->queue_reap(io, queue, done, 2, long_ns), 0);
    }
    cr_assert_lt(io->ops->monotonic_ns(io) - before_ns, long_ns);
    io->ops->queue_destroy(io, queue);
    io->ops->close(io, file);
}
