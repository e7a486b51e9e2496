/* From events to a graph, by NiFi's rules: events of a FlowFile form a chain in order of (time,
 * id); what creates a FlowFile is linked to its node, and the chain goes on from there; FORK,
 * JOIN, CLONE and REPLAY end the chains of their parents in themselves. Where generations were
 * followed, FlowFiles without an origin get a node of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/provenance/lineage.h"
#include "io/base/error.h"

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a lineage graph");
}

static int compare_events(const void *a, const void *b)
{
    const struct lahar_lineage_event *left = a;
    const struct lahar_lineage_event *right = b;
    if (left->time_ns != right->time_ns) {
        return left->time_ns < right->time_ns ? -1 : 1;
    }
    return left->id < right->id ? -1 : left->id > right->id;
}

static lahar_status add_node(struct lahar_lineage *lineage, const lahar_lineage_node *node,
                             uint32_t *number_out, lahar_error *error)
{
    if (lineage->node_count == lineage->node_capacity) {
        const size_t capacity = lineage->node_capacity == 0 ? 64 : lineage->node_capacity * 2;
        lahar_lineage_node *nodes = lahar_reallocate(lineage->provenance->allocator, lineage->nodes,
                                                     capacity * sizeof *nodes);
        if (nodes == NULL) {
            return no_memory(error);
        }
        lineage->nodes = nodes;
        lineage->node_capacity = capacity;
    }
    *number_out = (uint32_t)lineage->node_count;
    lineage->nodes[lineage->node_count++] = *node;
    return LAHAR_OK;
}

static lahar_status add_edge(struct lahar_lineage *lineage, uint32_t from, uint32_t to,
                             lahar_bytes uuid, lahar_error *error)
{
    if (lineage->edge_count == lineage->edge_capacity) {
        const size_t capacity = lineage->edge_capacity == 0 ? 64 : lineage->edge_capacity * 2;
        lahar_lineage_edge *edges = lahar_reallocate(lineage->provenance->allocator, lineage->edges,
                                                     capacity * sizeof *edges);
        if (edges == NULL) {
            return no_memory(error);
        }
        lineage->edges = edges;
        lineage->edge_capacity = capacity;
    }
    lineage->edges[lineage->edge_count++] = (lahar_lineage_edge){from, to, uuid};
    return LAHAR_OK;
}

static bool follows_generations(const struct lahar_lineage *lineage)
{
    return lineage->options.ancestor_depth != 0 || lineage->options.descendant_depth != 0;
}

/* The entry of a FlowFile that an event names. */
static struct lahar_uuid_entry *enter(struct lahar_lineage *lineage, const lahar_uuid *uuid,
                                      lahar_bytes name)
{
    struct lahar_uuid_entry *entry = lahar_uuid_map_add(&lineage->flowfiles, uuid);
    if (entry != NULL && entry->name.data == NULL) {
        entry->name = name;
    }
    return entry;
}

static lahar_status add_flowfile(struct lahar_lineage *lineage, struct lahar_uuid_entry *entry,
                                 int64_t time_ns, lahar_error *error)
{
    const lahar_lineage_node node = {.generation = entry->generation,
                                     .time_ns = time_ns,
                                     .uuid = entry->name,
                                     .has_no_origin = !entry->has_origin};
    return add_node(lineage, &node, &entry->flowfile, error);
}

/* The node that the next event of the FlowFile is linked from; LAHAR_NO_NODE: none. */
static lahar_status find_last(struct lahar_lineage *lineage, struct lahar_uuid_entry *entry,
                              int64_t time_ns, uint32_t *last_out, lahar_error *error)
{
    if (entry->last == LAHAR_NO_NODE && entry->is_wanted && !entry->has_origin &&
        follows_generations(lineage)) {
        LAHAR_TRY(add_flowfile(lineage, entry, time_ns, error));
        entry->last = entry->flowfile;
    }
    *last_out = entry->last;
    return LAHAR_OK;
}

/* An event makes a FlowFile. A second one that claims so contradicts the first. */
static lahar_status create_flowfile(struct lahar_lineage *lineage, uint32_t event,
                                    struct lahar_uuid_entry *entry, lahar_error *error)
{
    if (entry->creator == event) {
        return LAHAR_OK; /* the event names it twice */
    }
    if (entry->flowfile == LAHAR_NO_NODE) {
        LAHAR_TRY(add_flowfile(lineage, entry, lineage->events[event].time_ns, error));
    } else if (lineage->problem[0] == '\0') {
        (void)snprintf(lineage->problem, sizeof lineage->problem,
                       "multiple events claim to have generated the FlowFile %.*s",
                       entry->name.size < 64 ? (int)entry->name.size : 64,
                       (const char *)entry->name.data);
    }
    LAHAR_TRY(add_edge(lineage, event, entry->flowfile, entry->name, error));
    entry->last = entry->flowfile;
    entry->creator = event;
    return LAHAR_OK;
}

/* The chain of the event's own FlowFile. */
static lahar_status link_own(struct lahar_lineage *lineage, uint32_t number, lahar_error *error)
{
    const struct lahar_lineage_event *event = &lineage->events[number];
    uint32_t last = LAHAR_NO_NODE;
    if (!event->has_uuid) {
        return LAHAR_OK;
    }
    struct lahar_uuid_entry *entry = enter(lineage, &event->uuid, event->node.uuid);
    if (entry == NULL) {
        return no_memory(error);
    }
    LAHAR_TRY(find_last(lineage, entry, event->time_ns, &last, error));
    if (last != LAHAR_NO_NODE) {
        const bool is_spawn = event->type == LAHAR_PROV_JOIN || event->type == LAHAR_PROV_CLONE ||
                              event->type == LAHAR_PROV_REPLAY;
        LAHAR_TRY(add_edge(lineage, last, number,
                           is_spawn ? lineage->nodes[last].uuid : event->node.uuid, error));
    }
    entry->last = number;
    return LAHAR_OK;
}

static lahar_status link_children(struct lahar_lineage *lineage, uint32_t number,
                                  lahar_error *error)
{
    const struct lahar_lineage_event *event = &lineage->events[number];
    for (size_t i = 0; i < event->child_count; i++) {
        struct lahar_uuid_entry *entry =
            lahar_uuid_map_find(&lineage->flowfiles, &event->children[i]);
        if (entry != NULL && entry->is_wanted) {
            LAHAR_TRY(create_flowfile(lineage, number, entry, error));
        }
    }
    return LAHAR_OK;
}

static lahar_status link_parents(struct lahar_lineage *lineage, uint32_t number, lahar_error *error)
{
    const struct lahar_lineage_event *event = &lineage->events[number];
    for (size_t i = 0; i < event->parent_count; i++) {
        uint32_t last = LAHAR_NO_NODE;
        struct lahar_uuid_entry *entry = enter(lineage, &event->parents[i], event->parent_names[i]);
        if (entry == NULL) {
            return no_memory(error);
        }
        LAHAR_TRY(find_last(lineage, entry, event->time_ns, &last, error));
        if (last != LAHAR_NO_NODE && last != number) {
            LAHAR_TRY(add_edge(lineage, last, number, event->parent_names[i], error));
        }
        entry->last = number;
    }
    return LAHAR_OK;
}

static lahar_status link_event(struct lahar_lineage *lineage, uint32_t number, lahar_error *error)
{
    const struct lahar_lineage_event *event = &lineage->events[number];
    LAHAR_TRY(link_own(lineage, number, error));
    if (lahar_prov_spawns(event->type)) {
        LAHAR_TRY(link_children(lineage, number, error));
        return link_parents(lineage, number, error);
    }
    if ((event->type == LAHAR_PROV_RECEIVE || event->type == LAHAR_PROV_CREATE) &&
        event->has_uuid) {
        struct lahar_uuid_entry *entry = lahar_uuid_map_find(&lineage->flowfiles, &event->uuid);
        return create_flowfile(lineage, number, entry, error);
    }
    return LAHAR_OK;
}

/* Notes which FlowFiles some event creates, so that the others are known to have no origin. */
static void note_origins(struct lahar_lineage *lineage)
{
    for (size_t i = 0; i < lineage->event_count; i++) {
        const struct lahar_lineage_event *event = &lineage->events[i];
        struct lahar_uuid_entry *entry = NULL;
        if (event->has_uuid &&
            (event->type == LAHAR_PROV_RECEIVE || event->type == LAHAR_PROV_CREATE)) {
            entry = lahar_uuid_map_add(&lineage->flowfiles, &event->uuid);
            if (entry != NULL) {
                entry->has_origin = true;
            }
        }
        for (size_t j = 0; lahar_prov_spawns(event->type) && j < event->child_count; j++) {
            entry = lahar_uuid_map_find(&lineage->flowfiles, &event->children[j]);
            if (entry != NULL) {
                entry->has_origin = true;
            }
        }
    }
}

lahar_status lahar_lineage_build(struct lahar_lineage *lineage, lahar_error *error)
{
    if (lineage->event_count > UINT32_MAX / 4) {
        return lahar_fail(error, LAHAR_TOO_BIG, "a lineage of %zu events", lineage->event_count);
    }
    if (lineage->event_count != 0) {
        qsort(lineage->events, lineage->event_count, sizeof *lineage->events, compare_events);
    }
    note_origins(lineage);
    for (size_t i = 0; i < lineage->event_count; i++) {
        uint32_t number = 0;
        LAHAR_TRY(add_node(lineage, &lineage->events[i].node, &number, error));
    }
    for (size_t i = 0; i < lineage->event_count; i++) {
        LAHAR_TRY(link_event(lineage, (uint32_t)i, error));
    }
    for (uint32_t i = 0; follows_generations(lineage) && i < lineage->flowfiles.count; i++) {
        struct lahar_uuid_entry *entry = &lineage->flowfiles.entries[i];
        if (entry->is_wanted && entry->flowfile == LAHAR_NO_NODE) {
            LAHAR_TRY(add_flowfile(lineage, entry, LAHAR_PROV_NO_TIME, error));
        }
    }
    return LAHAR_OK;
}
