/* Which way of making a small write durable is the quicker one here: a durable write (RWF_DSYNC),
 * or a write and an fdatasync. Measured at opening, on the first page of a file that nobody uses
 * yet and that is all zeros behind its header, or stale: zeros are written.
 *
 * A durable write is one call, and a thread that waits can make it by itself; the other way is
 * taken only where it is clearly quicker or the only one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/journal/journals.h"
#include "io/base/error.h"

enum {
    PAGE = LAHAR_IO_ALIGNMENT,
    ROUNDS = 3
};

static const uint64_t patience_ns = 20000000; /* no further round after this */

struct timing {
    uint64_t best_ns;
    int32_t failure; /* errno */
};

static void run(struct lahar_io *io, struct lahar_io_file *file, void *page, bool is_durable,
                struct timing *timing)
{
    struct lahar_io_op op = {
        .kind = is_durable ? LAHAR_IO_OP_WRITE_DURABLE : LAHAR_IO_OP_WRITE,
        .file = file,
        .data = page,
        .offset = LAHAR_JOURNAL_HEADER_SIZE,
        .size = PAGE,
    };
    const uint64_t start_ns = io->ops->monotonic_ns(io);
    io->ops->execute(io, &op);
    if (!is_durable && op.result == PAGE) {
        op.kind = LAHAR_IO_OP_SYNC;
        io->ops->execute(io, &op);
    }
    const uint64_t took_ns = io->ops->monotonic_ns(io) - start_ns;
    if (op.result < 0) {
        timing->failure = -op.result;
    } else if (took_ns < timing->best_ns) {
        timing->best_ns = took_ns;
    }
}

void lahar_journals_calibrate(struct lahar_journals *journals)
{
    struct lahar_io *io = journals->io;
    struct lahar_segment_file *file = journals->files.ready;
    char *reason = journals->sync_reason;
    const size_t reason_size = sizeof journals->sync_reason;
    uint8_t *memory = file == NULL || !journals->has_threads
                          ? NULL
                          : lahar_allocate_zeroed(journals->allocator, 2, PAGE);
    if (memory == NULL) {
        (void)snprintf(reason, reason_size, "not measured");
        return;
    }
    void *page = (void *)(((uintptr_t)memory + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    struct timing dsync = {.best_ns = UINT64_MAX};
    struct timing separate = {.best_ns = UINT64_MAX};
    const uint64_t start_ns = io->ops->monotonic_ns(io);
    int rounds = 0;
    for (; rounds < ROUNDS && dsync.failure == 0 && separate.failure == 0 &&
           (rounds == 0 || io->ops->monotonic_ns(io) - start_ns < patience_ns);
         rounds++) {
        run(io, file->file, page, true, &dsync);
        run(io, file->file, page, false, &separate);
    }
    lahar_release(journals->allocator, memory);
    bool lacks_dsync = false;
    if (dsync.failure != 0 && separate.failure == 0 && lahar_io_lacks_dsync(dsync.failure)) {
        lacks_dsync = true;
        (void)snprintf(reason, reason_size, "there is no RWF_DSYNC");
    } else if (dsync.failure != 0 || separate.failure != 0) {
        /* What is wrong with the device is for the first real write to say. */
        (void)snprintf(reason, reason_size, "not measured");
    } else {
        /* On a busy machine a single round says little. */
        lacks_dsync = rounds == ROUNDS && 2 * separate.best_ns < dsync.best_ns;
        (void)snprintf(reason, reason_size,
                       "dsync %" PRIu64 " us, write and fdatasync %" PRIu64 " us",
                       dsync.best_ns / 1000, separate.best_ns / 1000);
    }
    atomic_store_explicit(&journals->lacks_dsync, lacks_dsync, memory_order_relaxed);
}
