/* Which events in memory name a FlowFile: a table that a handle keeps beside the resident batches.
 *
 * It follows the store: whoever asks first reads the batches that it has not seen, once, so that a
 * question costs what was appended since the last one and not what is resident. Sorted runs are
 * merged as they grow, and dropped when their events are in files. A snapshot that reaches further
 * back than the table reads what is missing through by itself. */
#ifndef LAHAR_PROVENANCE_RESIDENT_NAMES_H
#define LAHAR_PROVENANCE_RESIDENT_NAMES_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/provenance/name_references.h"
#include "engine/provenance/uuid_map.h"
#include "engine/store/snapshot.h"

enum {
    LAHAR_NAME_RUNS_MAX = 64 /* each has more than twice as many references as the next */
};

struct lahar_name_run {
    struct lahar_name_references list; /* sorted */
    uint64_t first_id;
    uint64_t end_id;
};

struct lahar_resident_names {
    pthread_mutex_t lock; /* guards the rest */
    struct lahar_name_run runs[LAHAR_NAME_RUNS_MAX];
    size_t run_count;
    lahar_error damage; /* of batches that could not be read */
};

void lahar_resident_names_init(struct lahar_resident_names *names);
void lahar_resident_names_deinit(struct lahar_resident_names *names,
                                 const lahar_allocator *allocator);

struct lahar_provenance;

/* Appends the ids of the snapshot's resident events that name any FlowFile of the map from entry
 * first on. *missing_end_out: events below it, from the first resident one on, were not asked.
 * *damage_out: the first batch that could not be read, status LAHAR_OK: none. */
lahar_status lahar_resident_names_find(struct lahar_provenance *provenance,
                                       const struct lahar_snapshot *snapshot,
                                       const struct lahar_uuid_map *wanted, uint32_t first,
                                       const atomic_bool *is_cancelled, struct lahar_id_list *list,
                                       uint64_t *missing_end_out, lahar_error *damage_out,
                                       lahar_error *error);

#endif
