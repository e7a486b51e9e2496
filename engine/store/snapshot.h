/* What one read sees: the events below end_id as they stood when it was taken.
 * Holds references to memory and files until released, whatever rollover, merge
 * and retention do meanwhile. */
#ifndef LAHAR_STORE_SNAPSHOT_H
#define LAHAR_STORE_SNAPSHOT_H

#include <stdint.h>

#include "engine/segment/segment.h"
#include "index/shard.h"
#include "lahar/store.h"

struct lahar_query_registry;
struct lahar_snapshot;
struct lahar_resident_slices; /* engine/rollover/resident_index.h */

/* A published batch in memory. Rows follow one another at rows. */
struct lahar_resident_batch {
    uint64_t first_id;
    uint32_t event_count;
    uint32_t rows_size; /* bytes */
    const uint8_t *rows;
    int64_t arrival_ns; /* rises from batch to batch */
};

/* An event file with its shard. */
struct lahar_snapshot_segment {
    struct lahar_segment *segment;
    struct lahar_shard *shard; /* NULL: damaged or missing, the file is scanned */
};

/* LAHAR_BUSY when events below the end stay unpublished beyond 1 s. */
lahar_status lahar_snapshot_take(lahar_store *store, struct lahar_snapshot **snapshot_out,
                                 lahar_error *error);
void lahar_snapshot_release(struct lahar_snapshot *snapshot); /* NULL is allowed */

/* Every visible event has an id below this. */
uint64_t lahar_snapshot_end(const struct lahar_snapshot *snapshot);
uint64_t lahar_snapshot_durable(const struct lahar_snapshot *snapshot);
/* Files in order of first id; their id ranges may interleave between streams,
 * and lie below every resident batch. */
size_t lahar_snapshot_segment_count(const struct lahar_snapshot *snapshot);
const struct lahar_snapshot_segment *lahar_snapshot_segment(const struct lahar_snapshot *snapshot,
                                                            size_t index);
/* The largest id in the files up to and including that one. */
uint64_t lahar_snapshot_reach(const struct lahar_snapshot *snapshot, size_t index);
/* Event files that are part of the snapshot and cannot be read at all, and then, with the stream
 * LAHAR_ANY_STREAM, ranges of ids that journals lost: their events are lost, not absent, and an
 * answer about their ids says so (LAHAR_CORRUPT, lahar_lost_events_fail). Each in order of
 * first id. */
size_t lahar_snapshot_lost_count(const struct lahar_snapshot *snapshot);
const struct lahar_segment_info *lahar_snapshot_lost(const struct lahar_snapshot *snapshot,
                                                     size_t index);
/* Batches in order of id. */
size_t lahar_snapshot_batch_count(const struct lahar_snapshot *snapshot);
const struct lahar_resident_batch *lahar_snapshot_batch(const struct lahar_snapshot *snapshot,
                                                        size_t index);
/* Shards in memory over some of the batches, in order of id; they may reach beyond the batches at
 * either end. NULL: there are none. */
const struct lahar_resident_slices *lahar_snapshot_slices(const struct lahar_snapshot *snapshot);
/* The first batch whose last id is >= id; batch_count when there is none. */
size_t lahar_snapshot_find_batch(const struct lahar_snapshot *snapshot, uint64_t id);

const struct lahar_schema_catalog *lahar_store_catalog(const lahar_store *store);
const lahar_allocator *lahar_store_allocator(const lahar_store *store);
struct lahar_io *lahar_store_io(const lahar_store *store);
/* The open queries. */
struct lahar_query_registry *lahar_store_queries(lahar_store *store);
/* Notes that somebody asks, for work in the background that can wait. */
void lahar_store_note_question(lahar_store *store);
/* Events of a large file that a query that wants few looks into first. */
uint32_t lahar_store_query_part_size(const lahar_store *store);

#endif
