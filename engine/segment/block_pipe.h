/* Two block writers taking turns: while one is filled, the block of the other is finished by a
 * second thread, "lahar-blocks".
 *
 * The one who fills makes all calls; the sink runs on the second thread, for one block at a
 * time in their order, or within the calls where there is no such thread. The first failure of
 * the sink is what every later call returns. */
#ifndef LAHAR_SEGMENT_BLOCK_PIPE_H
#define LAHAR_SEGMENT_BLOCK_PIPE_H

#include "engine/segment/block_writer.h"

struct lahar_block_pipe;

/* Finishes a block that has been encoded: must call lahar_block_writer_compress. */
typedef lahar_status (*lahar_block_sink)(void *context, struct lahar_block_writer *writer,
                                         lahar_error *error);

/* Without use_thread, or where a thread cannot be had, the sink runs within the calls. */
lahar_status lahar_block_pipe_create(const struct lahar_stream *stream, uint32_t compression_level,
                                     bool use_thread, lahar_block_sink sink, void *context,
                                     const lahar_allocator *allocator,
                                     struct lahar_block_pipe **pipe_out, lahar_error *error);
/* Waits for the sink. NULL is allowed. */
void lahar_block_pipe_destroy(struct lahar_block_pipe *pipe);

/* The writer to fill now. */
struct lahar_block_writer *lahar_block_pipe_writer(const struct lahar_block_pipe *pipe);
/* Hands the filled block, which has an event at least, to the sink. */
lahar_status lahar_block_pipe_submit(struct lahar_block_pipe *pipe, lahar_error *error);
/* Waits until the sink has taken all blocks. */
lahar_status lahar_block_pipe_drain(struct lahar_block_pipe *pipe, lahar_error *error);

#endif
