/* An allocator that keeps large blocks when they are released and hands them out again.
 *
 * The memory of a large block that libc has returned to the kernel costs a page fault for each
 * page when it comes back, which is more than most uses of the memory; work that is done over and
 * over with arrays of about the same sizes keeps them here. Small blocks pass through. At most
 * limit_bytes are kept; beyond that the block kept longest is given up. One thread at a time. */
#ifndef LAHAR_BASE_RECYCLER_H
#define LAHAR_BASE_RECYCLER_H

#include <stdint.h>

#include "io/base/allocator.h"

enum {
    LAHAR_RECYCLER_BLOCK_COUNT = 64
};

struct lahar_recycler {
    lahar_allocator allocator; /* what users are handed */
    const lahar_allocator *source;
    uint64_t limit_bytes;
    uint64_t kept_bytes;
    struct lahar_recycled_block {
        void *memory;
        size_t size;                      /* bytes that can be used */
    } blocks[LAHAR_RECYCLER_BLOCK_COUNT]; /* the one kept longest first */
    uint32_t block_count;
};

/* The recycler must not be moved while its allocator is in use. */
void lahar_recycler_init(struct lahar_recycler *recycler, const lahar_allocator *source,
                         uint64_t limit_bytes);
/* Gives up what is kept. Blocks that are still in use are not known here. */
void lahar_recycler_deinit(struct lahar_recycler *recycler);

#endif
