/* Makes blocks: takes events in id order, hands back the bytes of a block.
 *
 * One thread. After a failure of add or finish the writer is good for nothing but
 * destroy. */
#ifndef LAHAR_SEGMENT_BLOCK_WRITER_H
#define LAHAR_SEGMENT_BLOCK_WRITER_H

#include "engine/segment/segment.h"

struct lahar_block_writer;

/* compression_level 0: groups are stored as they are. */
lahar_status lahar_block_writer_create(const struct lahar_stream *stream,
                                       uint32_t compression_level, const lahar_allocator *allocator,
                                       struct lahar_block_writer **writer_out, lahar_error *error);
void lahar_block_writer_destroy(struct lahar_block_writer *writer); /* NULL is allowed */

lahar_status lahar_block_writer_add(struct lahar_block_writer *writer, const lahar_event *event,
                                    uint32_t row_size, lahar_error *error);
uint32_t lahar_block_writer_row_count(const struct lahar_block_writer *writer);
uint64_t lahar_block_writer_raw_size(const struct lahar_block_writer *writer);

/* Appends the block to out and starts the next one; info_out->offset and
 * first_ordinal are the caller's. The block has at least one event. */
lahar_status lahar_block_writer_finish(struct lahar_block_writer *writer, struct lahar_buffer *out,
                                       struct lahar_block_info *info_out, lahar_error *error);

#endif
