/* Which events name a FlowFile, over one snapshot.
 *
 * Event files answer from their shards. What has no shard (events in memory, files whose shard is
 * damaged) is read through: once for each question, or, when many questions will come, once into a
 * table of all names in it. Answers may hold ids of events that do not name the FlowFile: callers
 * look at the event. */
#ifndef LAHAR_PROVENANCE_LINEAGE_SOURCE_H
#define LAHAR_PROVENANCE_LINEAGE_SOURCE_H

#include <stdatomic.h>

#include "engine/provenance/handle.h"
#include "engine/provenance/uuid_map.h"
#include "engine/store/cursor.h"

/* A growing list of event ids. */
struct lahar_id_list {
    uint64_t *ids; /* owned */
    size_t count;
    size_t capacity;
};

struct lahar_name_reference {
    uint64_t hash; /* of the uuid */
    uint64_t id;
};

struct lahar_lineage_source {
    struct lahar_provenance *provenance;
    struct lahar_snapshot *snapshot;
    const atomic_bool *is_cancelled;
    atomic_uint *percent;      /* of the first question's files */
    struct lahar_docset *sets; /* one a segment; universe 0: not made yet */
    bool uses_table;
    bool has_table;
    struct lahar_name_reference *references; /* owned, by hash */
    size_t reference_count;
    size_t reference_capacity;
    lahar_error damage; /* the first thing that could not be read */
};

/* Takes the snapshot. On failure nothing is to be released. */
lahar_status lahar_lineage_source_init(struct lahar_lineage_source *source,
                                       struct lahar_provenance *provenance, bool uses_table,
                                       const atomic_bool *is_cancelled, atomic_uint *percent,
                                       lahar_error *error);
void lahar_lineage_source_deinit(struct lahar_lineage_source *source);

/* Appends the ids of events that name any FlowFile of the map from entry first on. */
lahar_status lahar_lineage_source_find(struct lahar_lineage_source *source,
                                       const struct lahar_uuid_map *wanted, uint32_t first,
                                       struct lahar_id_list *list, lahar_error *error);

lahar_status lahar_id_list_add(struct lahar_id_list *list, const lahar_allocator *allocator,
                               uint64_t id, lahar_error *error);
/* Puts the ids in order, each once. */
void lahar_id_list_sort(struct lahar_id_list *list);

/* Calls visit for each FlowFile that the event names: its own, parents, children, the source
 * system's. Stops when visit returns false, and returns that. */
bool lahar_prov_each_name(const struct lahar_prov_fields *fields, const lahar_event *event,
                          bool (*visit)(void *context, const lahar_uuid *uuid), void *context);

#endif
