/* Names and their numbers: 0, 1, 2 ... in order of arrival, for good.
 *
 * A table only grows. One thread at a time adds; any number of threads look up
 * meanwhile without a lock. Names live in chunks that never move, and a hash
 * table that has become too small is replaced, the old one kept until the end
 * because a reader may still be inside it. A name and its number are published by
 * a release store of the slot and of the count, in this order of need: the name
 * first, then the slot, then the count. */
#ifndef LAHAR_EVENT_NAME_TABLE_H
#define LAHAR_EVENT_NAME_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"

enum {
    LAHAR_NAME_CHUNK_SIZE = 256, /* names in a chunk */
    LAHAR_NAME_CHUNK_COUNT = 256
};

struct lahar_name_chunk;
struct lahar_name_slots;

struct lahar_name_table {
    const lahar_allocator *allocator;
    uint32_t count_max; /* at most LAHAR_NAME_CHUNK_SIZE * LAHAR_NAME_CHUNK_COUNT */
    _Atomic uint32_t count;
    _Atomic(struct lahar_name_slots *) slots; /* newest; it links to older ones */
    _Atomic(struct lahar_name_chunk *) chunks[LAHAR_NAME_CHUNK_COUNT];
};

/* Nothing is allocated before the first name. */
void lahar_name_table_init(struct lahar_name_table *table, const lahar_allocator *allocator,
                           uint32_t count_max);
void lahar_name_table_deinit(struct lahar_name_table *table);

bool lahar_name_table_find(const struct lahar_name_table *table, const char *name, size_t name_size,
                           uint32_t *number_out);

/* Adds a name that is not there; the copy is terminated. LAHAR_BUSY: the
 * table is full. LAHAR_NO_MEMORY. The table is unchanged on failure. */
lahar_status lahar_name_table_add(struct lahar_name_table *table, const char *name,
                                  size_t name_size, uint32_t *number_out);

/* NULL for a number not handed out; valid as long as the table. */
const char *lahar_name_table_get(const struct lahar_name_table *table, uint32_t number);

static inline uint32_t lahar_name_table_count(const struct lahar_name_table *table)
{
    return atomic_load_explicit(&table->count, memory_order_acquire);
}

#endif
