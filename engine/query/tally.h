/* Counts of distinct byte strings. One thread at a time. */
#ifndef LAHAR_QUERY_TALLY_H
#define LAHAR_QUERY_TALLY_H

#include "io/base/arena.h"
#include "lahar/event.h"
#include "lahar/status.h"

struct lahar_tally_entry {
    lahar_bytes key; /* in the tally's arena */
    uint64_t hash;
    uint64_t count;
    uint64_t stamp; /* of lahar_tally_add */
};

struct lahar_tally {
    struct lahar_tally_entry *entries; /* owned; in order of first use */
    size_t entry_count;
    size_t entry_capacity;
    uint32_t *slots; /* owned; number + 1, 0 is free; open addressing */
    size_t slot_count;
    struct lahar_arena arena;
    const lahar_allocator *allocator;
};

void lahar_tally_init(struct lahar_tally *tally, const lahar_allocator *allocator);
void lahar_tally_deinit(struct lahar_tally *tally);

/* Adds count to the key's, unless it was added last under the same stamp; stamp 0 always adds.
 * is_added_out: whether it was; may be NULL. */
lahar_status lahar_tally_add(struct lahar_tally *tally, lahar_bytes key, uint64_t count,
                             uint64_t stamp, bool *is_added_out, lahar_error *error);

/* Puts the first most entries in order by count, the highest first, then by key; the others come
 * behind them in no order. No key can be added any more. */
void lahar_tally_sort(struct lahar_tally *tally, size_t most);

#endif
