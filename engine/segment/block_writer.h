/* Makes blocks: takes events in id order, hands back the bytes of a block.
 *
 * One thread. After a failure of add or finish the writer is good for nothing but
 * destroy. */
#ifndef LAHAR_SEGMENT_BLOCK_WRITER_H
#define LAHAR_SEGMENT_BLOCK_WRITER_H

#include "engine/segment/scope_writer.h"
#include "engine/segment/segment.h"

struct lahar_block_writer;
struct lahar_row_event;

/* compression_level 0: groups are stored as they are. */
lahar_status lahar_block_writer_create(const struct lahar_stream *stream,
                                       uint32_t compression_level, const lahar_allocator *allocator,
                                       struct lahar_block_writer **writer_out, lahar_error *error);
void lahar_block_writer_destroy(struct lahar_block_writer *writer); /* NULL is allowed */

lahar_status lahar_block_writer_add(struct lahar_block_writer *writer, const lahar_event *event,
                                    uint32_t row_size, lahar_error *error);
/* The same for an event in the form of a row, of any bytes: LAHAR_CORRUPT. They are copied. */
lahar_status lahar_block_writer_add_row(struct lahar_block_writer *writer,
                                        const struct lahar_row_event *event, lahar_error *error);
uint32_t lahar_block_writer_row_count(const struct lahar_block_writer *writer);
uint64_t lahar_block_writer_raw_size(const struct lahar_block_writer *writer);

/* The columns of the block being filled; valid until the next one is begun. */
struct lahar_block_columns {
    const struct lahar_scope_writer *scope;
    const uint64_t *ids; /* by row */
    const int64_t *times;
    uint32_t row_count;
};
struct lahar_block_columns lahar_block_writer_columns(const struct lahar_block_writer *writer);

/* Finishing has two steps, so that another thread can take the second: encode chooses how columns
 * are stored and lays them out; compress appends the block to out and starts the next one. In
 * between the columns may be read. info_out->offset and first_ordinal are the
 * caller's. The block has at least one event. */
lahar_status lahar_block_writer_encode(struct lahar_block_writer *writer, lahar_error *error);
lahar_status lahar_block_writer_compress(struct lahar_block_writer *writer,
                                         struct lahar_buffer *out,
                                         struct lahar_block_info *info_out, lahar_error *error);
/* Both. */
lahar_status lahar_block_writer_finish(struct lahar_block_writer *writer, struct lahar_buffer *out,
                                       struct lahar_block_info *info_out, lahar_error *error);

#endif
