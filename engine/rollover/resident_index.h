/* The index of events that are not in event files yet.
 *
 * Batches in memory are indexed by slices of about 8 MiB as they come: a slice has one shard in
 * memory for each stream with events in it. A query asks the shards and reads only what it
 * needs of the rows, which stay in the journals' memory; what is behind the last slice it scans.
 * The group that rollover is at work on is covered like the open one.
 *
 * Slices cost the processor about what rollover's own index costs, so they are built only
 * while they are worth it: when queries have come lately, or the load is light.
 * A slice whose events are all in event files is dropped; queries that hold it keep it.
 *
 * One thread builds at a time, any thread acquires. Lack of memory leaves events to be scanned. */
#ifndef LAHAR_ROLLOVER_RESIDENT_INDEX_H
#define LAHAR_ROLLOVER_RESIDENT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/journal/alarm.h"
#include "index/shard.h"
#include "io/base/buffer.h"
#include "lahar/store.h"

/* One stream's part of a slice. */
struct lahar_resident_shard {
    uint32_t stream;
    struct lahar_buffer bytes; /* what shard reads */
    struct lahar_shard *shard;
};

/* Immutable; shared by the sets that list it. */
struct lahar_resident_slice {
    uint64_t first_id; /* of whole batches */
    uint64_t end_id;
    struct lahar_resident_shard *shards;
    size_t shard_count;
    uint64_t memory_bytes;
    uint32_t references; /* guarded by the index's mutex */
};

/* The slices at one time, in order of id, without gaps or overlap between them. */
struct lahar_resident_slices {
    struct lahar_resident_index *index;
    uint32_t references; /* guarded by the index's mutex */
    size_t count;
    struct lahar_resident_slice *slices[];
};

struct lahar_resident_index;

lahar_status lahar_resident_index_create(lahar_store *store,
                                         struct lahar_resident_index **index_out,
                                         lahar_error *error);
/* Every acquired set has been released. NULL is allowed. */
void lahar_resident_index_destroy(struct lahar_resident_index *index);

/* Drops what is rolled over and builds at most one slice; returns whether it built one. Does
 * nothing while another thread is at it. *rest_out: what the next step has to wait for, be it only
 * so that building takes no more than its part of the processor. */
bool lahar_resident_index_step(struct lahar_resident_index *index, struct lahar_rest *rest_out);

/* A query came, and more are likely to. Snapshots taken for other ends, statistics among them, are
 * no reason to build slices. Any thread. */
void lahar_resident_index_expect_queries(struct lahar_resident_index *index);

/* The slices of now; never NULL. */
struct lahar_resident_slices *lahar_resident_index_acquire(struct lahar_resident_index *index);
void lahar_resident_slices_release(struct lahar_resident_slices *slices); /* NULL is allowed */

#endif
