/* Sharing of equal pieces of a shard under construction: posting lists and column
 * blocks that are byte for byte the same are stored once. Events of one object carry the
 * same attributes, so that many of its terms have the same documents. */
#ifndef LAHAR_INDEX_BLOB_TABLE_H
#define LAHAR_INDEX_BLOB_TABLE_H

#include <stdint.h>

#include "io/base/buffer.h"

struct lahar_blob_slot {
    uint64_t offset; /* from the start of the shard; 0: the slot is free */
    uint32_t hash;
    uint32_t size;
};

struct lahar_blob_table {
    struct lahar_blob_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used_count;
    const lahar_allocator *allocator;
};

void lahar_blob_table_init(struct lahar_blob_table *table, const lahar_allocator *allocator);
void lahar_blob_table_deinit(struct lahar_blob_table *table);
void lahar_blob_table_clear(struct lahar_blob_table *table);

/* out holds a shard from byte base on, and behind byte start a piece that was just appended.
 * Returns the offset of that piece in the shard; when an equal one is there already, at a multiple
 * of alignment, takes the new one back. Memory that is refused costs sharing only. */
uint64_t lahar_blob_intern(struct lahar_blob_table *table, struct lahar_buffer *out, size_t base,
                           size_t start, uint64_t alignment);

#endif
