/* Building the shard of an event file from the file alone: for joined files, and where a shard
 * was lost. The result is what rollover would have made. */
#ifndef LAHAR_ROLLOVER_SHARD_BUILD_H
#define LAHAR_ROLLOVER_SHARD_BUILD_H

#include "engine/segment/segment.h"

/* Appends the shard to out. LAHAR_CORRUPT when a block cannot be read: a shard that lacks
 * events would be a silent wrong answer. */
lahar_status lahar_shard_build(const struct lahar_schema_catalog *catalog,
                               struct lahar_segment *segment, const lahar_allocator *allocator,
                               struct lahar_buffer *out, lahar_error *error);

#endif
