/* A lineage computation: its events, its FlowFiles, and the graph made of them. */
#ifndef LAHAR_PROVENANCE_LINEAGE_H
#define LAHAR_PROVENANCE_LINEAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/provenance/handle.h"
#include "engine/provenance/uuid_map.h"
#include "io/base/buffer.h"

/* One event of the graph. Lists and strings are in the computation's arena. */
struct lahar_lineage_event {
    uint64_t id;
    int64_t time_ns;
    lahar_prov_type type; /* UNKNOWN: also of one that may not be seen */
    bool is_hidden;
    bool has_uuid;
    lahar_uuid uuid;
    lahar_lineage_node node;
    const lahar_uuid *parents;
    size_t parent_count;
    const lahar_uuid *children;
    size_t child_count;
    const lahar_bytes *parent_names; /* as many */
    const lahar_bytes *child_names;
};

struct lahar_lineage {
    struct lahar_provenance *provenance;
    lahar_lineage_options options;
    struct lahar_arena arena;
    struct lahar_snapshot *snapshot; /* taken by start; released when the computation has ended */

    /* Owned by the thread until is_finished. */
    struct lahar_lineage_event *events; /* owned */
    size_t event_count;
    size_t event_capacity;
    struct lahar_uuid_map flowfiles;
    lahar_lineage_node *nodes; /* owned */
    size_t node_count;
    size_t node_capacity;
    lahar_lineage_edge *edges; /* owned */
    size_t edge_count;
    size_t edge_capacity;
    bool is_truncated;
    char problem[160]; /* empty: none */
    lahar_status status;
    lahar_error error;
    struct lahar_buffer text;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool is_finished; /* guarded by lock */
    atomic_bool is_cancelled;
    atomic_uint percent;
    atomic_uint_least64_t found_count;
};

/* Whether events of the type have children and parents that can be followed. */
static inline bool lahar_prov_spawns(lahar_prov_type type)
{
    return type == LAHAR_PROV_FORK || type == LAHAR_PROV_JOIN || type == LAHAR_PROV_CLONE ||
           type == LAHAR_PROV_REPLAY;
}

/* Finds events and FlowFiles. */
lahar_status lahar_lineage_collect(struct lahar_lineage *lineage, lahar_error *error);
/* Makes nodes and edges of them. */
lahar_status lahar_lineage_build(struct lahar_lineage *lineage, lahar_error *error);

/* Append the graph to text, in one format each. */
void lahar_lineage_put_tree(const struct lahar_lineage *lineage, struct lahar_buffer *text);
void lahar_lineage_put_json(const struct lahar_lineage *lineage, struct lahar_buffer *text);
void lahar_lineage_put_dot(const struct lahar_lineage *lineage, struct lahar_buffer *text);
void lahar_lineage_put_mermaid(const struct lahar_lineage *lineage, struct lahar_buffer *text);
void lahar_lineage_put_prov_json(const struct lahar_lineage *lineage, struct lahar_buffer *text);

#endif
