/* Feeding the columns of blocks to a shard builder: which field is indexed how.
 *
 *   keyword, list<keyword>            keyword, by value
 *   text                              text, by token
 *   uuid, list<uuid>                  uuid
 *   i64 u64 f64 bool time             number; bool as 0 and 1
 *   map                               keyword fields "attr.<key>", of previous_attributes
 *                                     "prev.<key>"
 *   bytes                             not at all
 *
 * A null value and a null attribute are not in the index: field:* finds events where the
 * field has a value, be it empty. Hidden fields and fields taken out of the index
 * are passed over. */
#ifndef LAHAR_ROLLOVER_ROLLOVER_INDEX_H
#define LAHAR_ROLLOVER_ROLLOVER_INDEX_H

#include "engine/event/schema.h"
#include "engine/segment/block_writer.h"
#include "index/shard.h"
#include "io/base/buffer.h"

struct lahar_index_feed; /* one thread at a time */

lahar_status lahar_index_feed_create(const struct lahar_schema_catalog *catalog, uint32_t stream,
                                     const lahar_allocator *allocator,
                                     struct lahar_index_feed **feed_out, lahar_error *error);
void lahar_index_feed_destroy(struct lahar_index_feed *feed); /* NULL is allowed */
const struct lahar_stream *lahar_index_feed_stream(const struct lahar_index_feed *feed);
/* The next block's events. A value is looked up once for all of its places in the block. */
lahar_status lahar_index_feed_add(struct lahar_index_feed *feed,
                                  const struct lahar_block_columns *block, lahar_error *error);
/* Appends the finished shard to out and readies the feed for the next one, with the memory that it
 * has, whatever the status. */
lahar_status lahar_index_feed_finish(struct lahar_index_feed *feed, struct lahar_buffer *out,
                                     lahar_error *error);

#endif
