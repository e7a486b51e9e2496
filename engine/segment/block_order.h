/* Blocks that several threads make come out in the order of their numbers.
 *
 * A thread takes a slot, fills the writer in it, and puts it under the block's number; numbers are
 * 0, 1, ... in the order of ids, and each of them is put, or the order is told of a failure.
 * Columns are laid out and compressed by all at once; observer and sink are called for one block
 * at a time, in order, by the thread that put it. The first failure is what every later put and
 * all that wait return. Any thread, but for creating and destroying. */
#ifndef LAHAR_SEGMENT_BLOCK_ORDER_H
#define LAHAR_SEGMENT_BLOCK_ORDER_H

#include "engine/segment/block_writer.h"

struct lahar_block_order;
struct lahar_block_slot;

struct lahar_block_order_options {
    const struct lahar_stream *stream;
    uint32_t compression_level;
    /* Sees the columns of every block; NULL: nobody does. */
    lahar_status (*observe)(void *context, const struct lahar_block_columns *columns,
                            lahar_error *error);
    void *observe_context;
    /* Takes the bytes of a block. Its offset and first ordinal are for the sink to set. */
    lahar_status (*sink)(void *context, const struct lahar_buffer *image,
                         struct lahar_block_info *info, uint64_t raw_size, lahar_error *error);
    void *sink_context;
};

lahar_status lahar_block_order_create(const struct lahar_block_order_options *options,
                                      const lahar_allocator *allocator,
                                      struct lahar_block_order **order_out, lahar_error *error);
/* No slot is taken any more. NULL is allowed. */
void lahar_block_order_destroy(struct lahar_block_order *order);

/* A slot with nothing in it. */
lahar_status lahar_block_order_take(struct lahar_block_order *order,
                                    struct lahar_block_slot **slot_out, lahar_error *error);
struct lahar_block_writer *lahar_block_slot_writer(struct lahar_block_slot *slot);
/* Takes the slot back, which holds at least one event, also on failure. */
lahar_status lahar_block_order_put(struct lahar_block_order *order, uint32_t number,
                                   struct lahar_block_slot *slot, lahar_error *error);
/* A block cannot be put. slot: taken back; NULL is allowed. */
void lahar_block_order_fail(struct lahar_block_order *order, struct lahar_block_slot *slot,
                            lahar_status status, const lahar_error *error);

#endif
