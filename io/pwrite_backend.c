/* The backend of plain system calls.
 *
 * A queued operation is executed by the owner inside queue_submit and its result
 * is kept until queue_reap, so nothing is ever in flight in the kernel and a
 * wait can end only by queue_wake or by time. `is_woken` is set before the
 * waiter is signalled and cleared only by the waiter: a wake that comes while the
 * owner is not waiting ends its next wait.
 * The queue belongs to its owner's thread except for the wake fields. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "io/base/error.h"
#include "io/posix_file.h"

struct pwrite_io {
    struct lahar_posix_io posix;
    struct lahar_io_ops ops;
};

struct lahar_io_queue {
    /* --- owner --- */
    uint32_t depth;
    uint32_t first;   /* index in done of the oldest completed operation */
    uint32_t count;   /* completed and not yet reaped, <= depth */
    bool lacks_dsync; /* the kernel refused RWF_DSYNC */
    /* --- any thread --- */
    atomic_bool is_woken;
    pthread_mutex_t mutex; /* orders is_woken with the wait of the owner */
    pthread_cond_t woken;
    struct lahar_io_op *done[]; /* owner; a ring of depth entries */
};

/* Where there are no durable writes, a write and then a sync. */
static void execute(struct lahar_io *io, struct lahar_io_queue *queue, struct lahar_io_op *op)
{
    if (op->kind != LAHAR_IO_OP_WRITE_DURABLE) {
        io->ops->execute(io, op);
        return;
    }
    if (!queue->lacks_dsync) {
        io->ops->execute(io, op);
        if (op->result >= 0 || !lahar_io_lacks_dsync(-op->result)) {
            return;
        }
    }
    op->kind = LAHAR_IO_OP_WRITE;
    io->ops->execute(io, op);
    op->kind = LAHAR_IO_OP_WRITE_DURABLE;
    queue->lacks_dsync = queue->lacks_dsync || op->result > 0;
    if (op->result > 0 && fdatasync(op->file->descriptor) != 0) {
        op->result = -errno;
    }
}

static lahar_status queue_create(struct lahar_io *io, uint32_t depth,
                                 struct lahar_io_queue **queue_out, lahar_error *error)
{
    const lahar_allocator *allocator = ((struct pwrite_io *)io)->posix.allocator;
    *queue_out = NULL;
    LAHAR_ASSERT(depth > 0);
    struct lahar_io_queue *queue =
        lahar_allocate_zeroed(allocator, 1, sizeof *queue + (size_t)depth * sizeof *queue->done);
    if (queue == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an I/O queue");
    }
    queue->depth = depth;
    atomic_init(&queue->is_woken, false);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&queue->woken, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&queue->mutex, NULL);
    *queue_out = queue;
    return LAHAR_OK;
}

static void queue_destroy(struct lahar_io *io, struct lahar_io_queue *queue)
{
    if (queue != NULL) {
        (void)pthread_cond_destroy(&queue->woken);
        (void)pthread_mutex_destroy(&queue->mutex);
        lahar_release(((struct pwrite_io *)io)->posix.allocator, queue);
    }
}

static lahar_status queue_submit(struct lahar_io *io, struct lahar_io_queue *queue,
                                 struct lahar_io_op **ops, uint32_t count, lahar_error *error)
{
    if (count > queue->depth - queue->count) {
        return lahar_fail(error, LAHAR_BUSY, "the I/O queue holds at most %u operations",
                          queue->depth);
    }
    for (uint32_t i = 0; i < count; i++) {
        execute(io, queue, ops[i]);
        queue->done[(queue->first + queue->count) % queue->depth] = ops[i];
        queue->count++;
    }
    return LAHAR_OK;
}

/* Sleeps until a wake, which it consumes, or until the time is over. */
static void wait_for_wake(struct lahar_io_queue *queue, uint64_t wait_ns)
{
    const uint64_t now_ns = lahar_posix_monotonic_ns();
    const uint64_t end_ns =
        wait_ns > (uint64_t)INT64_MAX - now_ns ? (uint64_t)INT64_MAX : now_ns + wait_ns;
    const struct timespec end = {(time_t)(end_ns / 1000000000), (long)(end_ns % 1000000000)};
    (void)pthread_mutex_lock(&queue->mutex);
    int outcome = 0;
    /* Pairs with the exchange in queue_wake: what was published before the wake is seen. */
    while (!atomic_exchange_explicit(&queue->is_woken, false, memory_order_acq_rel) &&
           outcome != ETIMEDOUT) {
        outcome = pthread_cond_timedwait(&queue->woken, &queue->mutex, &end);
    }
    (void)pthread_mutex_unlock(&queue->mutex);
}

static uint32_t queue_reap(struct lahar_io *io, struct lahar_io_queue *queue,
                           struct lahar_io_op **done, uint32_t capacity, uint64_t wait_ns)
{
    (void)io;
    if (queue->count == 0 && wait_ns > 0) {
        wait_for_wake(queue, wait_ns);
    }
    uint32_t reaped = 0;
    for (; reaped < capacity && queue->count > 0; reaped++) {
        done[reaped] = queue->done[queue->first];
        queue->first = (queue->first + 1) % queue->depth;
        queue->count--;
    }
    return reaped;
}

static void queue_wake(struct lahar_io *io, struct lahar_io_queue *queue)
{
    /* Whoever sets the flag signals; later callers find it set and are covered. */
    if (!atomic_exchange_explicit(&queue->is_woken, true, memory_order_acq_rel)) {
        (void)atomic_fetch_add_explicit(&io->wake_count, 1, memory_order_relaxed);
        (void)pthread_mutex_lock(&queue->mutex);
        (void)pthread_cond_signal(&queue->woken);
        (void)pthread_mutex_unlock(&queue->mutex);
    }
}

static void destroy(struct lahar_io *io)
{
    lahar_release(((struct pwrite_io *)io)->posix.allocator, io);
}

lahar_status lahar_io_pwrite_create(const lahar_allocator *allocator, struct lahar_io **io_out,
                                    lahar_error *error)
{
    *io_out = NULL;
    struct pwrite_io *io = lahar_allocate_zeroed(allocator, 1, sizeof *io);
    if (io == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the I/O backend");
    }
    lahar_posix_file_ops(&io->ops);
    io->ops.queue_create = queue_create;
    io->ops.queue_destroy = queue_destroy;
    io->ops.queue_submit = queue_submit;
    io->ops.queue_reap = queue_reap;
    io->ops.queue_wake = queue_wake;
    io->ops.destroy = destroy;
    io->posix.base.ops = &io->ops;
    io->posix.base.name = "pwrite";
    io->posix.allocator = allocator;
    *io_out = &io->posix.base;
    return LAHAR_OK;
}
