/* Which events name a FlowFile, over one snapshot.
 *
 * Event files answer from their shards, events in memory from the handle's table of their names.
 * Files whose shard is damaged are read through: once for each question, or, when many questions
 * will come, once into a table of all names in them. Answers may hold ids of events that do not
 * name the FlowFile: callers look at the event. */
#ifndef LAHAR_PROVENANCE_LINEAGE_SOURCE_H
#define LAHAR_PROVENANCE_LINEAGE_SOURCE_H

#include <stdatomic.h>

#include "engine/provenance/handle.h"
#include "engine/provenance/name_references.h"
#include "engine/provenance/uuid_map.h"
#include "engine/store/cursor.h"

struct lahar_lineage_source {
    struct lahar_provenance *provenance;
    struct lahar_snapshot *snapshot;
    const atomic_bool *is_cancelled;
    atomic_uint *percent;      /* of the first question's files */
    struct lahar_docset *sets; /* one a segment; universe 0: not made yet */
    bool uses_table;
    bool has_table;
    struct lahar_name_references references; /* owned: the table, of files without a shard */
    lahar_error damage;                      /* the first thing that could not be read */
};

/* The snapshot stays with the caller. On failure nothing is to be released. */
lahar_status lahar_lineage_source_init(struct lahar_lineage_source *source,
                                       struct lahar_provenance *provenance,
                                       struct lahar_snapshot *snapshot, bool uses_table,
                                       const atomic_bool *is_cancelled, atomic_uint *percent,
                                       lahar_error *error);
void lahar_lineage_source_deinit(struct lahar_lineage_source *source);

/* Appends the ids of events that name any FlowFile of the map from entry first on. */
lahar_status lahar_lineage_source_find(struct lahar_lineage_source *source,
                                       const struct lahar_uuid_map *wanted, uint32_t first,
                                       struct lahar_id_list *list, lahar_error *error);

#endif
