/* One question to the shards of a snapshot. Those whose filters exclude all FlowFiles asked for are
 * passed over; where many are left, helpers ask some of them at the same time: cold shards cost a
 * wait for the disk each, and events in memory are read meanwhile. */
#ifndef LAHAR_PROVENANCE_LINEAGE_SHARDS_H
#define LAHAR_PROVENANCE_LINEAGE_SHARDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/provenance/lineage_source.h"

enum {
    LAHAR_SHARD_HELPERS = 4
};

struct lahar_shard_asker {
    struct lahar_shard_asking *asking;
    pthread_t thread;
    struct lahar_id_list list; /* owned: what it found */
    lahar_status status;
    lahar_error error;
};

struct lahar_shard_asking {
    struct lahar_lineage_source *source;
    const struct lahar_uuid_map *wanted; /* not changed until end has returned */
    uint32_t first;
    size_t *candidates; /* owned: numbers of the segments to be asked */
    size_t candidate_count;
    atomic_size_t next;       /* candidate to be asked next */
    atomic_size_t done_count; /* of candidates */
    atomic_bool is_stopped;
    atomic_bool *must_read; /* owned: by segment, its shard cannot be read */
    struct lahar_shard_asker askers[LAHAR_SHARD_HELPERS + 1]; /* the last one is the caller */
    size_t helper_count;
};

/* On failure nothing is to be ended. */
lahar_status lahar_shard_asking_begin(struct lahar_shard_asking *asking,
                                      struct lahar_lineage_source *source,
                                      const struct lahar_uuid_map *wanted, uint32_t first,
                                      lahar_error *error);
/* Asks what is left, waits for the helpers, appends what all found to list. */
lahar_status lahar_shard_asking_end(struct lahar_shard_asking *asking, struct lahar_id_list *list,
                                    lahar_error *error);
/* Instead, when the answer is not wanted any more. */
void lahar_shard_asking_stop(struct lahar_shard_asking *asking);
/* After end: whether the segment's file has to be read through. Then the asking is deinited. */
bool lahar_shard_asking_must_read(const struct lahar_shard_asking *asking, size_t segment);
void lahar_shard_asking_deinit(struct lahar_shard_asking *asking);

#endif
