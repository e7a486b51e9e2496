/* Building the shard of an event file from the file alone: for joined files, and where a shard
 * was lost.
 *
 * A large file is indexed in pieces, whose shards are then merged as those of joined files are, so
 * that memory is needed for one piece and the shards of all of them. The answers are those of the
 * shard that rollover would have made. */
#ifndef LAHAR_ROLLOVER_SHARD_BUILD_H
#define LAHAR_ROLLOVER_SHARD_BUILD_H

#include "engine/segment/segment.h"
#include "index/shard_merge.h"

struct lahar_shard_build {
    const struct lahar_schema_catalog *catalog;
    struct lahar_segment *segment;
    uint64_t piece_bytes; /* of events; 0: 64 MiB. More where there would be too many pieces */
    struct lahar_shard_sink sink;
    /* Asked before each block; true ends it with LAHAR_CANCELLED. NULL: never. */
    bool (*is_cancelled)(void *context);
    void *cancel_context;
    const lahar_allocator *allocator;
};

/* Hands the shard to the sink. LAHAR_CORRUPT when a block cannot be read: a shard that lacks
 * events would be a silent wrong answer. */
lahar_status lahar_shard_build(const struct lahar_shard_build *build, lahar_error *error);

#endif
