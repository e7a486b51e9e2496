/* Simulated disk: queues.
 *
 * Queued operations are executed at reap, in an order drawn from the disk's
 * seed; until then the memory that they point to is not looked at. A sync may so
 * be executed before a write that was submitted earlier, as in a real ring.
 * Guarded by the disk's mutex. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "io/base/error.h"
#include "io/sim_internal.h"

enum {
    /* What a thread really sleeps when nothing is in flight, so that threads on a
     * simulated disk do not spin. */
    IDLE_SLEEP_NS = 100000
};

struct lahar_io_queue {
    struct lahar_io_queue *next; /* in disk->queues */
    uint64_t epoch;              /* of its creation; of an earlier one, nothing is executed */
    bool is_woken;
    pthread_cond_t woken;
    uint32_t depth;
    uint32_t count; /* in flight */
    struct lahar_io_op *in_flight[];
};

lahar_status lahar_sim_queue_create(struct lahar_io *io, uint32_t depth,
                                    struct lahar_io_queue **queue_out, lahar_error *error)
{
    *queue_out = NULL;
    LAHAR_ASSERT(depth > 0);
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    struct lahar_io_queue *queue = lahar_allocate_zeroed(
        disk->allocator, 1, sizeof *queue + (size_t)depth * sizeof *queue->in_flight);
    if (queue == NULL) {
        lahar_sim_unlock(disk);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an I/O queue");
    }
    (void)pthread_cond_init(&queue->woken, NULL);
    queue->depth = depth;
    queue->epoch = disk->epoch;
    queue->next = disk->queues;
    disk->queues = queue;
    *queue_out = queue;
    lahar_sim_unlock(disk);
    return LAHAR_OK;
}

void lahar_sim_queue_destroy(struct lahar_io *io, struct lahar_io_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    struct lahar_io_queue **link = &disk->queues;
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    lahar_sim_unlock(disk);
    (void)pthread_cond_destroy(&queue->woken);
    lahar_release(disk->allocator, queue);
}

lahar_status lahar_sim_queue_submit(struct lahar_io *io, struct lahar_io_queue *queue,
                                    struct lahar_io_op **ops, uint32_t count, lahar_error *error)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    if (count > queue->depth - queue->count) {
        lahar_sim_unlock(disk);
        return lahar_fail(error, LAHAR_BUSY, "the I/O queue holds at most %u operations",
                          queue->depth);
    }
    if (lahar_sim_refuses(disk)) {
        lahar_sim_unlock(disk);
        return lahar_fail(error, LAHAR_BUSY, "the I/O queue takes nothing (simulated)");
    }
    memcpy(queue->in_flight + queue->count, ops, count * sizeof(struct lahar_io_op *));
    queue->count += count;
    lahar_sim_unlock(disk);
    return LAHAR_OK;
}

void lahar_sim_queues_settle(struct lahar_sim_disk *disk)
{
    for (struct lahar_io_queue *queue = disk->queues; queue != NULL; queue = queue->next) {
        for (uint32_t i = 0; i < queue->count && queue->epoch == disk->epoch; i++) {
            struct lahar_io_op *op = queue->in_flight[i];
            if ((op->kind == LAHAR_IO_OP_WRITE || op->kind == LAHAR_IO_OP_WRITE_DURABLE) &&
                !lahar_sim_file_is_stale(disk, op->file) &&
                (op->file->flags & LAHAR_IO_WRITE) != 0 &&
                sim_random_below(&disk->random, 2) == 0) {
                (void)lahar_sim_file_write(disk, op->file, op->offset, op->data, op->size);
            }
        }
    }
}

/* A transfer shorter than asked, from the lengths that break naive arithmetic. */
static uint32_t shorten(struct lahar_sim_disk *disk, const struct lahar_io_op *op)
{
    static const uint32_t lengths[] = {1, 511, 512, 513, 4095, 4096, 4097};
    const uint64_t draw = sim_random_below(&disk->random, sizeof lengths / sizeof *lengths + 2);
    uint32_t size = draw < sizeof lengths / sizeof *lengths ? lengths[draw] : op->size - 1;
    if (draw == sizeof lengths / sizeof *lengths) {
        size = (uint32_t)sim_random_below(&disk->random, op->size);
    }
    if (size >= op->size) {
        size = op->size - 1;
    }
    if ((op->file->flags & LAHAR_IO_DIRECT) != 0) {
        size = size < SIM_SECTOR_SIZE ? SIM_SECTOR_SIZE : size - size % SIM_SECTOR_SIZE;
    }
    return size == 0 ? 1 : size;
}

static int32_t execute_read(struct lahar_sim_disk *disk, struct lahar_io_op *op)
{
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    const unsigned transfer = op->size > 1 ? SIM_CONCERN_TRANSFER : 0;
    const int failure = lahar_sim_file_begin(
        disk, op->file, LAHAR_IO_READ, SIM_CONCERN_READ | SIM_CONCERN_QUEUED | transfer, &fault);
    if (failure != 0) {
        return -failure;
    }
    if (lahar_sim_file_is_misaligned(op->file, op->offset, op->data, op->size)) {
        return -EINVAL;
    }
    if (fault == LAHAR_SIM_FAULT_NOTHING) {
        return 0;
    }
    const uint32_t size = fault == LAHAR_SIM_FAULT_SHORT ? shorten(disk, op) : op->size;
    return (int32_t)lahar_sim_file_read(op->file, op->offset, op->data, size);
}

static int32_t execute_write(struct lahar_sim_disk *disk, struct lahar_io_op *op)
{
    const bool is_durable = op->kind == LAHAR_IO_OP_WRITE_DURABLE;
    struct sim_inode *inode = op->file->inode;
    enum lahar_sim_fault fault = LAHAR_SIM_FAULT_NONE;
    unsigned concerns = SIM_CONCERN_QUEUED | SIM_CONCERN_SPACE;
    concerns |= op->size > 1 ? SIM_CONCERN_TRANSFER : 0;
    concerns |= is_durable ? SIM_CONCERN_SYNC : 0;
    const int failure = lahar_sim_file_begin(disk, op->file, LAHAR_IO_WRITE, concerns, &fault);
    if (failure != 0 && fault != LAHAR_SIM_FAULT_SYNC_LOST) {
        return -failure;
    }
    if (lahar_sim_file_is_misaligned(op->file, op->offset, op->data, op->size)) {
        return -EINVAL;
    }
    if (fault == LAHAR_SIM_FAULT_NOTHING) {
        return 0;
    }
    const uint32_t first = inode->pending_count;
    const uint32_t size = fault == LAHAR_SIM_FAULT_SHORT ? shorten(disk, op) : op->size;
    int32_t moved = lahar_sim_file_write(disk, op->file, op->offset, op->data, size);
    if (fault == LAHAR_SIM_FAULT_SYNC_LOST) {
        lahar_sim_content_lose(inode, first);
        return -EIO;
    }
    if (moved > 0 && is_durable) {
        const int sync_failure = lahar_sim_content_sync_from(inode, first);
        moved = sync_failure != 0 ? -sync_failure : moved;
    }
    return moved;
}

static int32_t perform(struct lahar_sim_disk *disk, struct lahar_io_op *op)
{
    switch (op->kind) {
    case LAHAR_IO_OP_READ:
        return execute_read(disk, op);
    case LAHAR_IO_OP_WRITE:
    case LAHAR_IO_OP_WRITE_DURABLE:
        return execute_write(disk, op);
    case LAHAR_IO_OP_SYNC:
        return -lahar_sim_file_sync(disk, op->file, SIM_CONCERN_SYNC | SIM_CONCERN_QUEUED);
    }
    return -EINVAL;
}

void lahar_sim_execute(struct lahar_io *io, struct lahar_io_op *op)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    op->result = perform(disk, op);
    lahar_sim_unlock(disk);
}

/* Ends a wait with nothing in flight: a wake, or the simulated time is over. A wait without end
 * may end for no reason, as the interface allows, and takes no time. */
static void idle(struct lahar_sim_disk *disk, struct lahar_io_queue *queue, uint64_t wait_ns)
{
    if (!queue->is_woken) {
        struct timespec end;
        (void)clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += wait_ns < IDLE_SLEEP_NS ? (long)wait_ns : (long)IDLE_SLEEP_NS;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&queue->woken, &disk->mutex, &end);
    }
    if (!queue->is_woken && wait_ns != UINT64_MAX) {
        disk->monotonic_ns += wait_ns;
    }
    queue->is_woken = false;
}

uint32_t lahar_sim_queue_reap(struct lahar_io *io, struct lahar_io_queue *queue,
                              struct lahar_io_op **done, uint32_t capacity, uint64_t wait_ns)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    uint32_t limit = queue->count < capacity ? queue->count : capacity;
    if (queue->count == 0 && wait_ns > 0) {
        idle(disk, queue, wait_ns);
    } else if (limit > 0) {
        /* Some are ready: none only for those who do not wait. */
        const uint64_t least = wait_ns > 0 ? 1 : 0;
        limit = (uint32_t)(least + sim_random_below(&disk->random, limit + 1 - least));
    }
    for (uint32_t i = 0; i < limit; i++) {
        const uint64_t pick = sim_random_below(&disk->random, queue->count);
        struct lahar_io_op *op = queue->in_flight[pick];
        op->result = perform(disk, op);
        queue->in_flight[pick] = queue->in_flight[--queue->count];
        done[i] = op;
    }
    lahar_sim_unlock(disk);
    return limit;
}

void lahar_sim_queue_wake(struct lahar_io *io, struct lahar_io_queue *queue)
{
    struct lahar_sim_disk *disk = lahar_sim_lock(io);
    queue->is_woken = true;
    (void)pthread_cond_signal(&queue->woken);
    lahar_sim_unlock(disk);
}
