/* The link buffer: where the batch that begins with an id stands in memory.
 *
 * Slots are indexed by the first id of a batch modulo the window. The producer fills a
 * slot and stores its end id last; the walker, which knows the id that comes next, takes
 * the slot for valid if and only if its end lies above that id: an older occupant
 * ended at or below it, for ids are handed out once. So slots are never cleared.
 *
 * A producer may fill a slot only when its ids lie within a window above the walker's
 * position; lahar_ring_reserve sees to that before ids are claimed. */
#ifndef LAHAR_JOURNAL_LINK_BUFFER_H
#define LAHAR_JOURNAL_LINK_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/journal/chunk.h"

struct lahar_link_slot {
    _Atomic uint64_t end_id; /* stored last */
    struct lahar_chunk *chunk;
    uint32_t offset; /* of the frame in the chunk's image */
};

struct lahar_link_buffer {
    struct lahar_link_slot *slots;
    uint64_t mask; /* window - 1 */
};

static inline void lahar_link_publish(struct lahar_link_buffer *links, uint64_t first_id,
                                      uint64_t end_id, struct lahar_chunk *chunk, uint32_t offset)
{
    struct lahar_link_slot *slot = &links->slots[first_id & links->mask];
    slot->chunk = chunk;
    slot->offset = offset;
    /* Pairs with lahar_link_find: frame and slot are complete for whoever sees the end. */
    atomic_store_explicit(&slot->end_id, end_id, memory_order_release);
}

/* Whether the batch that begins with first_id is published. */
static inline bool lahar_link_find(struct lahar_link_buffer *links, uint64_t first_id,
                                   uint64_t *end_id_out, struct lahar_chunk **chunk_out,
                                   uint32_t *offset_out)
{
    struct lahar_link_slot *slot = &links->slots[first_id & links->mask];
    const uint64_t end_id = atomic_load_explicit(&slot->end_id, memory_order_acquire);
    if (end_id <= first_id) {
        return false;
    }
    *end_id_out = end_id;
    *chunk_out = slot->chunk;
    *offset_out = slot->offset;
    return true;
}

#endif
