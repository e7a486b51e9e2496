/* The io_uring backend: queues by ring, everything else by plain system calls.
 *
 * Each queue is a ring of its own thread (SINGLE_ISSUER), with as many
 * completion entries as can ever be in flight, so that completions cannot overflow.
 * A read of an eventfd is kept armed on the ring: queue_wake writes to the
 * eventfd, which ends the wait in io_uring_enter. `is_woken` is set before that
 * write and looked at before each wait, so a wake is never lost; it is armed again
 * with the next system call. Operations are handed to the kernel by the wait that follows, one
 * system call for both, or by the second call of queue_reap that does not wait. Completions are
 * copied out of the ring into `done` before their entries are given back.
 *
 * SQPOLL, IOPOLL and linked requests are not used: the first two cost more than they
 * save on journals, and a short write would cancel the rest of a chain. Without
 * RWF_DSYNC (EOPNOTSUPP) a durable write becomes a write and then a sync, of which
 * the second is submitted when the first has completed. */
#include <errno.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "io/base/error.h"
#include "io/posix_file.h"

enum {
    /* Entries beyond the operations: the armed read, and requests that failed to be
     * submitted and were turned into NOPs. */
    SPARE_ENTRIES = 8,
    /* The kernel refuses a submission with EAGAIN or EBUSY for want of memory or of
     * room for completions; after so many pauses the operations are handed back. */
    SUBMIT_TRIES_MAX = 64,
    SUBMIT_PAUSE_NS = 1000000,
    ALONE_SIZE_MAX = 64 * 1024, /* bytes; larger writes are worth going on meanwhile */
    PROBE_SIZE = 4096,
    PROBE_OP_COUNT = 256
};

/* Waits are cut to this, so that sums of times cannot overflow. */
static const uint64_t wait_ns_max = UINT64_C(3600) * 1000000000;

/* What a completion belongs to, in the low bits of its user data; the rest is the
 * address of the operation. */
enum {
    TAG_OPERATION = 0,
    TAG_WRITE_BEFORE_SYNC = 1, /* first half of a durable write without RWF_DSYNC */
    TAG_SYNC_AFTER_WRITE = 2,  /* second half */
    TAG_NONE = 3,              /* NOP in place of a request that was never submitted */
    TAG_WAKE = 4,              /* the armed read */
    TAG_MASK = 7
};
_Static_assert(_Alignof(struct lahar_io_op) > TAG_MASK, "tags need the low bits of addresses");

/* Set-up flags from the best to the one that every kernel with rings has. */
struct ring_flavour {
    unsigned flags;
    const char *name;
};
static const struct ring_flavour ring_flavours[] = {
    {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
         IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
     "SINGLE_ISSUER|DEFER_TASKRUN|TASKRUN_FLAG|SUBMIT_ALL|CLAMP"},
    {IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
     "COOP_TASKRUN|TASKRUN_FLAG|SUBMIT_ALL"},
    {0, "no flags"},
};

struct uring_io {
    struct lahar_posix_io posix;
    struct lahar_io_ops ops;
    unsigned ring_flags; /* of the flavour that the probe found to work */
};

/* Touched by its owner alone, except for is_woken and wake_descriptor. */
struct lahar_io_queue {
    struct lahar_io *io;
    struct io_uring ring;
    pid_t owner_process; /* a forked child must not touch the ring */
    uint32_t depth;
    uint32_t in_flight;         /* accepted and not yet in done */
    uint32_t done_first;        /* index in done of the oldest */
    uint32_t done_count;        /* completed and not yet reaped */
    bool lacks_dsync;           /* the kernel refused RWF_DSYNC on some file */
    uint32_t held;              /* operations, or halves of them, not handed to the kernel yet */
    bool is_stale;              /* they were left by the last reaping */
    bool is_wake_armed;         /* a read of wake_descriptor is in the ring */
    uint64_t wake_value;        /* target of that read */
    int wake_descriptor;        /* eventfd */
    atomic_bool is_woken;       /* since the owner last looked */
    struct lahar_io_op *done[]; /* a ring of depth entries */
};

/* --- requests --- */

static void set_tagged(struct io_uring_sqe *sqe, const struct lahar_io_op *op, unsigned tag)
{
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)op | tag);
}

static void prepare(const struct lahar_io_queue *queue, struct io_uring_sqe *sqe,
                    const struct lahar_io_op *op)
{
    const int descriptor = op->file->descriptor;
    unsigned tag = TAG_OPERATION;
    switch (op->kind) {
    case LAHAR_IO_OP_WRITE:
        io_uring_prep_write(sqe, descriptor, op->data, op->size, op->offset);
        break;
    case LAHAR_IO_OP_WRITE_DURABLE:
        io_uring_prep_write(sqe, descriptor, op->data, op->size, op->offset);
        if (queue->lacks_dsync) {
            tag = TAG_WRITE_BEFORE_SYNC;
        } else {
            sqe->rw_flags = RWF_DSYNC;
        }
        break;
    case LAHAR_IO_OP_SYNC:
        io_uring_prep_fsync(sqe, descriptor, IORING_FSYNC_DATASYNC);
        break;
    case LAHAR_IO_OP_READ:
        io_uring_prep_read(sqe, descriptor, op->data, op->size, op->offset);
        break;
    }
    set_tagged(sqe, op, tag);
}

/* Puts the read of the eventfd into the submission ring; it goes with the next call. */
static void arm_wake(struct lahar_io_queue *queue)
{
    struct io_uring_sqe *sqe = queue->is_wake_armed ? NULL : io_uring_get_sqe(&queue->ring);
    if (sqe != NULL) {
        io_uring_prep_read(sqe, queue->wake_descriptor, &queue->wake_value,
                           sizeof queue->wake_value, 0);
        io_uring_sqe_set_data64(sqe, TAG_WAKE);
        queue->is_wake_armed = true;
    }
}

/* --- completions --- */

static void finish(struct lahar_io_queue *queue, struct lahar_io_op *op, int32_t result)
{
    op->result = result;
    queue->done[(queue->done_first + queue->done_count) % queue->depth] = op;
    queue->done_count++;
    queue->in_flight--;
}

/* Starts the next half of a durable write. The operation's former entry is free. */
static void follow_up(struct lahar_io_queue *queue, struct lahar_io_op *op, unsigned tag)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&queue->ring);
    if (sqe == NULL) {
        finish(queue, op, -EAGAIN);
        return;
    }
    if (tag == TAG_SYNC_AFTER_WRITE) {
        io_uring_prep_fsync(sqe, op->file->descriptor, IORING_FSYNC_DATASYNC);
    } else {
        io_uring_prep_write(sqe, op->file->descriptor, op->data, op->size, op->offset);
    }
    set_tagged(sqe, op, tag);
    queue->held++;
}

static void complete(struct lahar_io_queue *queue, uint64_t user_data, int32_t result)
{
    struct lahar_io_op *op = (struct lahar_io_op *)(uintptr_t)(user_data & ~(uint64_t)TAG_MASK);
    switch (user_data & TAG_MASK) {
    case TAG_OPERATION:
        if (op->kind == LAHAR_IO_OP_WRITE_DURABLE && result < 0 && lahar_io_lacks_dsync(-result)) {
            queue->lacks_dsync = true;
            follow_up(queue, op, TAG_WRITE_BEFORE_SYNC);
        } else {
            finish(queue, op, result);
        }
        break;
    case TAG_WRITE_BEFORE_SYNC:
        if (result > 0) {
            op->result = result;
            follow_up(queue, op, TAG_SYNC_AFTER_WRITE);
        } else {
            finish(queue, op, result);
        }
        break;
    case TAG_SYNC_AFTER_WRITE:
        finish(queue, op, result < 0 ? result : op->result);
        break;
    case TAG_WAKE:
        queue->is_wake_armed = false;
        break;
    default:
        break;
    }
}

/* Moves what the kernel has completed into done. */
static void harvest(struct lahar_io_queue *queue)
{
    struct io_uring_cqe *cqe = NULL;
    /* Enters the kernel only if it has completions to deliver (TASKRUN_FLAG). */
    while (io_uring_peek_cqe(&queue->ring, &cqe) == 0 && cqe != NULL) {
        const uint64_t user_data = cqe->user_data;
        const int32_t result = cqe->res;
        io_uring_cqe_seen(&queue->ring, cqe);
        complete(queue, user_data, result);
    }
}

static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = SUBMIT_PAUSE_NS};
    (void)nanosleep(&pause, NULL);
}

/* Counts a call that hands over operations; one that only waits is none of theirs. */
static void count_enter(struct lahar_io_queue *queue)
{
    if (queue->held != 0) {
        lahar_io_count_enter(queue->io);
        queue->held = 0;
    }
}

/* Hands over everything in the submission ring, also what the kernel takes only in
 * parts. 0, or -errno when it refused for good and `io_uring_sq_ready` are left. */
static int submit_all(struct lahar_io_queue *queue)
{
    unsigned tries = 0;
    while (io_uring_sq_ready(&queue->ring) > 0) {
        count_enter(queue);
        const int submitted = io_uring_submit(&queue->ring);
        if (submitted > 0) {
            tries = 0;
            continue;
        }
        if (submitted != 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) {
            return submitted;
        }
        if (++tries > SUBMIT_TRIES_MAX) {
            return submitted == 0 ? -EAGAIN : submitted;
        }
        /* Completions that wait to be taken are the usual reason of a refusal. */
        const uint32_t before = queue->done_count;
        harvest(queue);
        if (queue->done_count == before) {
            pause_briefly();
        }
    }
    return 0;
}

/* Takes back what the kernel refused: the entries remain in the ring as requests
 * that do nothing, and their operations complete with the error. */
static void retract(struct lahar_io_queue *queue, int failure)
{
    const struct io_uring_sq *sq = &queue->ring.sq;
    const unsigned left = io_uring_sq_ready(&queue->ring);
    for (unsigned i = 0; i < left; i++) {
        struct io_uring_sqe *sqe = &sq->sqes[(sq->sqe_tail - left + i) & sq->ring_mask];
        const uint64_t user_data = sqe->user_data;
        const unsigned tag = (unsigned)(user_data & TAG_MASK);
        io_uring_prep_nop(sqe);
        io_uring_sqe_set_data64(sqe, TAG_NONE);
        if (tag == TAG_WAKE) {
            queue->is_wake_armed = false;
        } else if (tag != TAG_NONE) {
            finish(queue, (struct lahar_io_op *)(uintptr_t)(user_data & ~(uint64_t)TAG_MASK),
                   failure);
        }
    }
}

static void submit_or_retract(struct lahar_io_queue *queue)
{
    queue->is_stale = false;
    const int failure = submit_all(queue);
    if (failure != 0) {
        retract(queue, failure);
    }
}

/* --- queues --- */

static lahar_status queue_create(struct lahar_io *io, uint32_t depth,
                                 struct lahar_io_queue **queue_out, lahar_error *error)
{
    const struct uring_io *uring = (const struct uring_io *)io;
    const lahar_allocator *allocator = uring->posix.allocator;
    *queue_out = NULL;
    LAHAR_ASSERT(depth > 0);
    struct lahar_io_queue *queue =
        lahar_allocate_zeroed(allocator, 1, sizeof *queue + (size_t)depth * sizeof *queue->done);
    if (queue == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an I/O queue");
    }
    queue->io = io;
    queue->depth = depth;
    queue->owner_process = getpid();
    atomic_init(&queue->is_woken, false);
    queue->wake_descriptor = eventfd(0, EFD_CLOEXEC);
    if (queue->wake_descriptor < 0) {
        const int sys_errno = errno;
        lahar_release(allocator, queue);
        return lahar_fail_errno(error, sys_errno, "cannot create an eventfd");
    }
    int failure = io_uring_queue_init(depth + SPARE_ENTRIES, &queue->ring, uring->ring_flags);
    if (failure == 0 && queue->ring.sq.ring_entries < depth + SPARE_ENTRIES) {
        io_uring_queue_exit(&queue->ring);
        failure = -EINVAL;
    }
    if (failure != 0) {
        (void)close(queue->wake_descriptor);
        lahar_release(allocator, queue);
        return lahar_fail_errno(error, -failure, "cannot create a ring of %u entries", depth);
    }
    /* A child that copied the mapping could corrupt the parent's ring. */
    (void)io_uring_ring_dontfork(&queue->ring);
    arm_wake(queue);
    *queue_out = queue;
    return LAHAR_OK;
}

/* Completes the armed read, so that the kernel no longer holds the address of wake_value. */
static void disarm_wake(struct lahar_io_queue *queue)
{
    const uint64_t one = 1;
    if (write(queue->wake_descriptor, &one, sizeof one) != (ssize_t)sizeof one) {
        return;
    }
    for (unsigned tries = 0; queue->is_wake_armed && tries < SUBMIT_TRIES_MAX; tries++) {
        struct __kernel_timespec pause = {.tv_nsec = SUBMIT_PAUSE_NS};
        struct io_uring_cqe *cqe = NULL;
        const int outcome = io_uring_submit_and_wait_timeout(&queue->ring, &cqe, 1, &pause, NULL);
        if (outcome < 0 && outcome != -ETIME && outcome != -EINTR) {
            break;
        }
        harvest(queue);
    }
}

static void queue_destroy(struct lahar_io *io, struct lahar_io_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    if (queue->owner_process == getpid()) {
        disarm_wake(queue);
        io_uring_queue_exit(&queue->ring);
    } else {
        /* The ring's memory was not inherited; its addresses may hold something else. */
        (void)close(queue->ring.ring_fd);
    }
    (void)close(queue->wake_descriptor);
    lahar_release(((struct uring_io *)io)->posix.allocator, queue);
}

/* Carries out a small durable write in the calling thread when nothing else is in flight:
 * the kernel completes it without a worker of its own, and one call does for two. */
static bool execute_alone(struct lahar_io *io, struct lahar_io_queue *queue, struct lahar_io_op *op)
{
    if (op->kind != LAHAR_IO_OP_WRITE_DURABLE || op->size > ALONE_SIZE_MAX ||
        queue->in_flight != 0 || queue->lacks_dsync) {
        return false;
    }
    io->ops->execute(io, op);
    if (op->result < 0 && lahar_io_lacks_dsync(-op->result)) {
        return false;
    }
    queue->in_flight++;
    finish(queue, op, op->result);
    return true;
}

static lahar_status queue_submit(struct lahar_io *io, struct lahar_io_queue *queue,
                                 struct lahar_io_op **ops, uint32_t count, lahar_error *error)
{
    if (count > queue->depth - queue->in_flight - queue->done_count) {
        return lahar_fail(error, LAHAR_BUSY, "the I/O queue holds at most %u operations",
                          queue->depth);
    }
    if (count == 1 && execute_alone(io, queue, ops[0])) {
        return LAHAR_OK;
    }
    if (io_uring_sq_space_left(&queue->ring) < count) {
        /* Requests turned into NOPs are in the way. */
        submit_or_retract(queue);
        if (io_uring_sq_space_left(&queue->ring) < count) {
            return lahar_fail(error, LAHAR_BUSY, "the kernel does not take I/O requests");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&queue->ring);
        LAHAR_ASSERT(sqe != NULL);
        prepare(queue, sqe, ops[i]);
    }
    queue->in_flight += count;
    queue->held += count;
    return LAHAR_OK;
}

/* Waits in the kernel until something completes, a wake or the time is over. */
static void wait_for_completion(struct lahar_io_queue *queue, uint64_t wait_ns)
{
    const uint64_t end_ns = lahar_posix_monotonic_ns() + wait_ns;
    uint64_t left_ns = wait_ns;
    while (queue->done_count == 0) {
        /* Pairs with the exchange in queue_wake. */
        if (atomic_exchange_explicit(&queue->is_woken, false, memory_order_acq_rel)) {
            return;
        }
        arm_wake(queue);
        struct __kernel_timespec timeout = {(long long)(left_ns / 1000000000),
                                            (long long)(left_ns % 1000000000)};
        struct io_uring_cqe *cqe = NULL;
        count_enter(queue);
        const int outcome = io_uring_submit_and_wait_timeout(&queue->ring, &cqe, 1, &timeout, NULL);
        harvest(queue);
        if (outcome < 0 && outcome != -ETIME && outcome != -EINTR) {
            pause_briefly();
            submit_or_retract(queue);
        }
        const uint64_t now_ns = lahar_posix_monotonic_ns();
        if (queue->done_count == 0 && now_ns >= end_ns) {
            (void)atomic_exchange_explicit(&queue->is_woken, false, memory_order_acq_rel);
            return;
        }
        left_ns = now_ns < end_ns ? end_ns - now_ns : 0;
    }
}

static uint32_t queue_reap(struct lahar_io *io, struct lahar_io_queue *queue,
                           struct lahar_io_op **done, uint32_t capacity, uint64_t wait_ns)
{
    (void)io;
    harvest(queue);
    if (queue->done_count == 0 && wait_ns > 0) {
        wait_for_completion(queue, wait_ns < wait_ns_max ? wait_ns : wait_ns_max);
    }
    if (queue->in_flight > 0 && io_uring_sq_ready(&queue->ring) > 0) {
        if (queue->is_stale) {
            submit_or_retract(queue);
        } else {
            queue->is_stale = true; /* a wait may follow that takes them along */
        }
    }
    uint32_t reaped = 0;
    for (; reaped < capacity && queue->done_count > 0; reaped++) {
        done[reaped] = queue->done[queue->done_first];
        queue->done_first = (queue->done_first + 1) % queue->depth;
        queue->done_count--;
    }
    return reaped;
}

static void queue_wake(struct lahar_io *io, struct lahar_io_queue *queue)
{
    /* Whoever sets the flag writes; later callers find it set and are covered. */
    if (!atomic_exchange_explicit(&queue->is_woken, true, memory_order_acq_rel)) {
        (void)atomic_fetch_add_explicit(&io->wake_count, 1, memory_order_relaxed);
        const uint64_t one = 1;
        ssize_t written = 0;
        do {
            written = write(queue->wake_descriptor, &one, sizeof one);
        } while (written < 0 && errno == EINTR);
    }
}

/* --- probe --- */

/* Writes a page durably through the ring and reads it back. 0 or -errno. */
static int probe_transfer(struct io_uring *ring, int descriptor, uint8_t *out, uint8_t *in)
{
    for (int step = 0; step < 2; step++) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
        if (sqe == NULL) {
            return -EAGAIN;
        }
        if (step == 0) {
            io_uring_prep_write(sqe, descriptor, out, PROBE_SIZE, 0);
        } else {
            io_uring_prep_read(sqe, descriptor, in, PROBE_SIZE, 0);
        }
        io_uring_sqe_set_data64(sqe, (__u64)step);
        struct __kernel_timespec limit = {.tv_sec = 5};
        struct io_uring_cqe *cqe = NULL;
        int outcome = io_uring_submit_and_wait_timeout(ring, &cqe, 1, &limit, NULL);
        while (outcome == -EINTR) {
            outcome = io_uring_wait_cqe_timeout(ring, &cqe, &limit);
        }
        if (outcome < 0) {
            return outcome;
        }
        if (cqe == NULL || cqe->user_data != (uint64_t)step) {
            return -EPROTO;
        }
        const int32_t result = cqe->res;
        io_uring_cqe_seen(ring, cqe);
        if (result != PROBE_SIZE) {
            return result < 0 ? result : -EIO;
        }
    }
    return memcmp(out, in, PROBE_SIZE) == 0 ? 0 : -EIO;
}

/* Whether the kernel knows the requests that queues make. 0 or -errno. */
static int probe_opcodes(struct io_uring *ring, const lahar_allocator *allocator)
{
    static const int opcodes[] = {IORING_OP_NOP, IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC};
    struct io_uring_probe *probe = lahar_allocate_zeroed(
        allocator, 1, sizeof *probe + PROBE_OP_COUNT * sizeof(struct io_uring_probe_op));
    if (probe == NULL) {
        return -ENOMEM;
    }
    int outcome = io_uring_register_probe(ring, probe, PROBE_OP_COUNT);
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes && outcome >= 0; i++) {
        outcome = io_uring_opcode_supported(probe, opcodes[i]) != 0 ? outcome : -EOPNOTSUPP;
    }
    lahar_release(allocator, probe);
    return outcome < 0 ? outcome : 0;
}

static int probe_ring(struct io_uring *ring, const lahar_allocator *allocator)
{
    const unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;
    if ((ring->features & needed) != needed) {
        return -EOPNOTSUPP;
    }
    int outcome = probe_opcodes(ring, allocator);
    uint8_t *memory = outcome == 0 ? lahar_allocate_zeroed(allocator, 2, PROBE_SIZE) : NULL;
    if (memory == NULL) {
        return outcome != 0 ? outcome : -ENOMEM;
    }
    memset(memory, 0xa5, PROBE_SIZE);
    const int descriptor = memfd_create("lahar-probe", MFD_CLOEXEC);
    if (descriptor < 0) {
        outcome = -errno;
    } else {
        outcome = probe_transfer(ring, descriptor, memory, memory + PROBE_SIZE);
        (void)close(descriptor);
    }
    lahar_release(allocator, memory);
    return outcome;
}

/* Finds the best flavour that works. */
static lahar_status probe(struct uring_io *io, lahar_error *error)
{
    int outcome = -ENOSYS;
    for (size_t i = 0; i < sizeof ring_flavours / sizeof *ring_flavours && outcome != -ENOMEM;
         i++) {
        struct io_uring ring;
        outcome = io_uring_queue_init(SPARE_ENTRIES, &ring, ring_flavours[i].flags);
        if (outcome != 0) {
            continue;
        }
        outcome = probe_ring(&ring, io->posix.allocator);
        io_uring_queue_exit(&ring);
        if (outcome == 0) {
            io->ring_flags = ring_flavours[i].flags;
            (void)snprintf(io->posix.base.reason, sizeof io->posix.base.reason, "%s",
                           ring_flavours[i].name);
            return LAHAR_OK;
        }
    }
    if (outcome == -ENOMEM) {
        return lahar_fail_errno(error, ENOMEM, "no memory for an I/O ring");
    }
    (void)lahar_fail_errno(error, -outcome, "io_uring cannot be used");
    if (error != NULL && error->status != LAHAR_OK) {
        error->status = LAHAR_UNSUPPORTED;
    }
    return LAHAR_UNSUPPORTED;
}

static void destroy(struct lahar_io *io)
{
    lahar_release(((struct uring_io *)io)->posix.allocator, io);
}

lahar_status lahar_io_uring_create(const lahar_allocator *allocator, struct lahar_io **io_out,
                                   lahar_error *error)
{
    *io_out = NULL;
    struct uring_io *io = lahar_allocate_zeroed(allocator, 1, sizeof *io);
    if (io == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the I/O backend");
    }
    io->posix.allocator = allocator;
    const lahar_status status = probe(io, error);
    if (status != LAHAR_OK) {
        lahar_release(allocator, io);
        return status;
    }
    lahar_posix_file_ops(&io->ops);
    io->ops.queue_create = queue_create;
    io->ops.queue_destroy = queue_destroy;
    io->ops.queue_submit = queue_submit;
    io->ops.queue_reap = queue_reap;
    io->ops.queue_wake = queue_wake;
    io->ops.destroy = destroy;
    io->posix.base.ops = &io->ops;
    io->posix.base.name = "io_uring";
    *io_out = &io->posix.base;
    return LAHAR_OK;
}
