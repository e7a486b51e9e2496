/* What one query may allocate. Everything that a query holds of its own comes from here, so that
 * a query that needs too much fails and the store goes on. Any thread. */
#ifndef LAHAR_QUERY_QUERY_MEMORY_H
#define LAHAR_QUERY_QUERY_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"

struct lahar_query_memory {
    lahar_allocator allocator; /* hands out what is counted; its context is this struct */
    const lahar_allocator *outer;
    uint64_t limit_bytes;
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t peak_bytes;
    atomic_bool was_refused; /* by the limit, not by outer */
};

/* memory must stay where it is. */
void lahar_query_memory_init(struct lahar_query_memory *memory, const lahar_allocator *outer,
                             uint64_t limit_bytes);

#endif
