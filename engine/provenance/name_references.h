/* Lists that lineages are found with: event ids, and which event names which FlowFile. */
#ifndef LAHAR_PROVENANCE_NAME_REFERENCES_H
#define LAHAR_PROVENANCE_NAME_REFERENCES_H

#include "engine/provenance/fields.h"
#include "io/base/allocator.h"
#include "lahar/event.h"
#include "lahar/status.h"

/* A growing list of event ids. */
struct lahar_id_list {
    uint64_t *ids; /* owned */
    size_t count;
    size_t capacity;
};

lahar_status lahar_id_list_add(struct lahar_id_list *list, const lahar_allocator *allocator,
                               uint64_t id, lahar_error *error);
/* Puts the ids in order, each once. */
void lahar_id_list_sort(struct lahar_id_list *list);

struct lahar_name_reference {
    uint64_t hash; /* of the uuid: what is found may name another FlowFile */
    uint64_t id;
};

struct lahar_name_references {
    struct lahar_name_reference *items; /* owned */
    size_t count;
    size_t capacity;
};

/* Makes room for more. */
lahar_status lahar_name_references_reserve(struct lahar_name_references *references,
                                           const lahar_allocator *allocator, size_t more,
                                           lahar_error *error);
/* Adds every name of an event. */
lahar_status lahar_name_references_add(struct lahar_name_references *references,
                                       const lahar_allocator *allocator,
                                       const struct lahar_prov_fields *fields,
                                       const lahar_event *event, lahar_error *error);
void lahar_name_references_sort(struct lahar_name_references *references);
/* Appends the ids below end_id of those that may name the uuid. */
lahar_status lahar_name_references_find(const struct lahar_name_references *references,
                                        const lahar_uuid *uuid, uint64_t end_id,
                                        const lahar_allocator *allocator,
                                        struct lahar_id_list *list, lahar_error *error);

/* Calls visit for each FlowFile that the event names: its own, parents, children, the source
 * system's. Stops when visit returns false, and returns that. */
bool lahar_prov_each_name(const struct lahar_prov_fields *fields, const lahar_event *event,
                          bool (*visit)(void *context, const lahar_uuid *uuid), void *context);

#endif
