/* What one query may allocate. Everything that a query holds of its own comes from here, so that
 * a query that needs too much fails and the store goes on. Any thread. */
#ifndef LAHAR_QUERY_QUERY_MEMORY_H
#define LAHAR_QUERY_QUERY_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"

/* What all open queries of a store may hold together. */
struct lahar_query_budget {
    uint64_t limit_bytes;
    /* A count, which orders nothing: relaxed throughout. */
    _Atomic uint64_t used_bytes;
};

enum lahar_query_refusal {
    LAHAR_QUERY_NOT_REFUSED = 0,
    LAHAR_QUERY_REFUSED_ITS_OWN,   /* beyond what the query may hold */
    LAHAR_QUERY_REFUSED_ALL_OTHERS /* beyond what all may hold together */
};

struct lahar_query_memory {
    lahar_allocator allocator; /* hands out what is counted; its context is this struct */
    const lahar_allocator *outer;
    struct lahar_query_budget *budget;
    uint64_t limit_bytes; /* of this query */
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t peak_bytes;
    atomic_int refusal; /* enum lahar_query_refusal: the latest by a limit, not by outer */
};

/* The query may hold all of the budget, until its limit is set lower. memory and budget must stay
 * where they are. */
void lahar_query_memory_init(struct lahar_query_memory *memory, const lahar_allocator *outer,
                             struct lahar_query_budget *budget);

#endif
