/* The seam between Lahar and its storage: files, directories and the clock.
 *
 * Three implementations stand behind it: io_uring (io/uring_backend.c), plain
 * system calls (io/pwrite_backend.c) and a simulated disk (io/sim_disk.c) that
 * crashes, tears, reorders and fails on demand. Nothing outside io/ opens a
 * file or reads a clock.
 *
 * Paths are relative to the working directory or absolute, '/'-separated,
 * terminated. Every call that fails fills error with the path and errno.
 * Synchronous calls may be made from any thread; a queue belongs to the one
 * thread that created it. EINTR, EAGAIN and short transfers are retried
 * behind this seam by the synchronous calls; operations, queued or executed, hand
 * back what happened and leave the decision to the caller. */
#ifndef LAHAR_IO_IO_H
#define LAHAR_IO_IO_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/status.h"

struct lahar_io;
struct lahar_io_file;  /* an open file */
struct lahar_io_queue; /* operations in flight, of one thread */

/* Alignment of address, offset and size for files opened with
 * LAHAR_IO_DIRECT. 4096 covers every device with 512 or 4096 byte sectors. */
enum {
    LAHAR_IO_ALIGNMENT = 4096
};

enum lahar_io_open_flags {
    LAHAR_IO_READ = 1,
    LAHAR_IO_WRITE = 2,
    LAHAR_IO_CREATE = 4,
    LAHAR_IO_EXCLUSIVE = 8, /* with CREATE: LAHAR_EXISTS if the name is taken */
    LAHAR_IO_DIRECT = 16    /* bypass the page cache where the file system allows; see is_direct */
};

enum lahar_io_op_kind {
    LAHAR_IO_OP_WRITE = 1,
    LAHAR_IO_OP_WRITE_DURABLE = 2, /* completes when the data is on stable storage (RWF_DSYNC) */
    LAHAR_IO_OP_SYNC = 3,          /* fdatasync */
    LAHAR_IO_OP_READ = 4
};

/* One queued operation. Owned by the caller; it and the memory at data must
 * stay as they are from submit until the operation is reaped. */
struct lahar_io_op {
    enum lahar_io_op_kind kind;
    struct lahar_io_file *file;
    void *data;      /* WRITE: only read */
    uint64_t offset; /* bytes from the start of the file */
    uint32_t size;   /* bytes */
    int32_t result;  /* set at completion: bytes transferred, or -errno */
    void *context;   /* the caller's */
};

struct lahar_io_space {
    uint64_t capacity_bytes;
    uint64_t free_bytes;
};

/* Called by list for each entry but "." and "..". */
typedef lahar_status (*lahar_io_visitor)(void *context, const char *name, bool is_directory);

struct lahar_io_ops {
    /* --- files --- */
    lahar_status (*open)(struct lahar_io *io, const char *path, unsigned flags,
                         struct lahar_io_file **file_out, lahar_error *error);
    /* Never fails: what must be durable was synced before. NULL is allowed. */
    void (*close)(struct lahar_io *io, struct lahar_io_file *file);
    bool (*is_direct)(struct lahar_io *io, struct lahar_io_file *file);
    lahar_status (*size)(struct lahar_io *io, struct lahar_io_file *file, uint64_t *size_out,
                         lahar_error *error);
    /* Reads up to size bytes; *read_out is smaller only at the end of the file. */
    lahar_status (*read)(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                         void *data, size_t size, size_t *read_out, lahar_error *error);
    /* Says that these bytes are going to be read, so that several reads that follow wait together
     * and not one after the other. A hint: it waits for nothing and cannot fail. */
    void (*announce)(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                     uint64_t size);
    /* Writes all of it; not durable before sync. */
    lahar_status (*write)(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                          const void *data, size_t size, lahar_error *error);
    /* fdatasync: data, and the size where it changed. Never called twice for the
     * same data after a failure. */
    lahar_status (*sync)(struct lahar_io *io, struct lahar_io_file *file, lahar_error *error);
    /* Gives the file this size, every byte of it written (not only allocated)
     * with zeros, so that later writes change no metadata. Not synced. */
    lahar_status (*fill)(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                         lahar_error *error);
    /* The same of an empty file without writing: the space is reserved, every byte reads as 0, and
     * the first write to a place changes metadata. Much quicker than fill where the file system can
     * do so, fill itself where it cannot. Not synced. */
    lahar_status (*reserve)(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                            lahar_error *error);
    lahar_status (*truncate)(struct lahar_io *io, struct lahar_io_file *file, uint64_t size,
                             lahar_error *error);
    /* Takes the exclusive lock of an open file, which ends with close or the
     * process. LAHAR_LOCKED when another holds it. */
    lahar_status (*lock)(struct lahar_io *io, struct lahar_io_file *file, lahar_error *error);

    /* --- names --- */
    lahar_status (*rename)(struct lahar_io *io, const char *from, const char *to,
                           lahar_error *error);
    lahar_status (*unlink)(struct lahar_io *io, const char *path, lahar_error *error);
    lahar_status (*make_directory)(struct lahar_io *io, const char *path, lahar_error *error);
    lahar_status (*list)(struct lahar_io *io, const char *path, lahar_io_visitor visit,
                         void *context, lahar_error *error);
    /* Makes creations, renames and unlinks in the directory durable. */
    lahar_status (*sync_directory)(struct lahar_io *io, const char *path, lahar_error *error);
    lahar_status (*space)(struct lahar_io *io, const char *path, struct lahar_io_space *space_out,
                          lahar_error *error);

    /* --- queues --- */
    /* depth: most operations in flight. Must be called by the thread that uses it. */
    lahar_status (*queue_create)(struct lahar_io *io, uint32_t depth,
                                 struct lahar_io_queue **queue_out, lahar_error *error);
    /* All operations must have been reaped. NULL is allowed. */
    void (*queue_destroy)(struct lahar_io *io, struct lahar_io_queue *queue);
    /* Takes count operations, which start at the latest with the next queue_reap that waits, or the
     * second one that does not. Either all are accepted, or the status says why none was. */
    lahar_status (*queue_submit)(struct lahar_io *io, struct lahar_io_queue *queue,
                                 struct lahar_io_op **ops, uint32_t count, lahar_error *error);
    /* Hands back up to capacity completed operations. With wait_ns > 0 and none
     * complete, waits that long for a completion or for queue_wake, whichever
     * comes first; with UINT64_MAX for either, though it may end for no reason. Returns the
     * number of operations. */
    uint32_t (*queue_reap)(struct lahar_io *io, struct lahar_io_queue *queue,
                           struct lahar_io_op **done, uint32_t capacity, uint64_t wait_ns);
    /* Any thread: ends the wait of the owner, or its next one. */
    void (*queue_wake)(struct lahar_io *io, struct lahar_io_queue *queue);

    /* Carries out one operation in the calling thread, which may be any, and sets its result, as
     * a queue would: nothing is retried. */
    void (*execute)(struct lahar_io *io, struct lahar_io_op *op);

    /* --- clock --- */
    int64_t (*realtime_ns)(struct lahar_io *io);   /* since the epoch, may jump */
    uint64_t (*monotonic_ns)(struct lahar_io *io); /* never falls */

    void (*destroy)(struct lahar_io *io);
};

/* Base of every backend; embedded as its first member. */
struct lahar_io {
    const struct lahar_io_ops *ops;
    const char *name; /* "io_uring", "pwrite", "simulated" */
    char reason[128]; /* flags in use, or why a better backend is not */
    /* System calls that started operations of queues, or executed one. */
    _Atomic uint64_t enter_count;
    _Atomic uint64_t wake_count; /* system calls of queue_wake */
};

static inline void lahar_io_count_enter(struct lahar_io *io)
{
    (void)atomic_fetch_add_explicit(&io->enter_count, 1, memory_order_relaxed);
}

/* Processors that this process may run on, at least 1. Asks the kernel each time. */
uint32_t lahar_io_processor_count(void);

/* Whether a durable write that failed so may still be a plain write and a sync: the file system
 * does not know RWF_DSYNC, the kernel does not know the call, or a filter forbids it. */
static inline bool lahar_io_lacks_dsync(int sys_errno)
{
    return sys_errno == EOPNOTSUPP || sys_errno == EINVAL || sys_errno == ENOSYS ||
           sys_errno == EPERM;
}

/* Plain system calls. Fails only for want of memory. */
lahar_status lahar_io_pwrite_create(const lahar_allocator *allocator, struct lahar_io **io_out,
                                    lahar_error *error);

/* io_uring for the queues, plain calls for the rest. Probes by creating a ring and
 * writing through it; LAHAR_UNSUPPORTED with the reason when the kernel, seccomp or
 * a limit forbids. */
lahar_status lahar_io_uring_create(const lahar_allocator *allocator, struct lahar_io **io_out,
                                   lahar_error *error);

#endif
