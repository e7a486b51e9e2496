#include "engine/provenance/name_references.h"

#include <stdlib.h>
#include <xxhash.h>

#include "engine/event/flowfile.h"
#include "io/base/error.h"

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a lineage");
}

/* --- ids -------------------------------------------------------------------------------------- */

lahar_status lahar_id_list_add(struct lahar_id_list *list, const lahar_allocator *allocator,
                               uint64_t id, lahar_error *error)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        uint64_t *ids = lahar_reallocate(allocator, list->ids, capacity * sizeof *ids);
        if (ids == NULL) {
            return no_memory(error);
        }
        list->ids = ids;
        list->capacity = capacity;
    }
    list->ids[list->count++] = id;
    return LAHAR_OK;
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

void lahar_id_list_sort(struct lahar_id_list *list)
{
    size_t kept = 0;
    if (list->count == 0) {
        return;
    }
    qsort(list->ids, list->count, sizeof *list->ids, compare_ids);
    for (size_t i = 1; i < list->count; i++) {
        if (list->ids[i] != list->ids[kept]) {
            list->ids[++kept] = list->ids[i];
        }
    }
    list->count = kept + 1;
}

/* --- names of an event ---------------------------------------------------------------------- */

bool lahar_prov_each_name(const struct lahar_prov_fields *fields, const lahar_event *event,
                          bool (*visit)(void *context, const lahar_uuid *uuid), void *context)
{
    static const enum lahar_prov_field lists[] = {LAHAR_PROV_FIELD_PARENTS,
                                                  LAHAR_PROV_FIELD_CHILDREN};
    const lahar_value *value = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_UUID);
    lahar_uuid source;
    if (value != NULL && !visit(context, &value->as.uuid)) {
        return false;
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        value = lahar_prov_value(fields, event, lists[i]);
        for (size_t j = 0; value != NULL && j < value->as.uuids.count; j++) {
            if (!visit(context, &value->as.uuids.items[j])) {
                return false;
            }
        }
    }
    value = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_SOURCE_SYSTEM);
    return value == NULL || !lahar_source_system_uuid(value->as.bytes, &source) ||
           visit(context, &source);
}

/* --- references ----------------------------------------------------------------------------- */

static uint64_t hash_of(const lahar_uuid *uuid)
{
    return XXH3_64bits(uuid->bytes, sizeof uuid->bytes);
}

lahar_status lahar_name_references_reserve(struct lahar_name_references *references,
                                           const lahar_allocator *allocator, size_t more,
                                           lahar_error *error)
{
    if (references->capacity - references->count >= more) {
        return LAHAR_OK;
    }
    size_t capacity = references->capacity == 0 ? 256 : references->capacity * 2;
    if (capacity - references->count < more) {
        capacity = references->count + more;
    }
    struct lahar_name_reference *items =
        lahar_reallocate(allocator, references->items, capacity * sizeof *items);
    if (items == NULL) {
        return no_memory(error);
    }
    references->items = items;
    references->capacity = capacity;
    return LAHAR_OK;
}

struct adding {
    struct lahar_name_references *references;
    const lahar_allocator *allocator;
    uint64_t id;
    lahar_status status;
    lahar_error *error;
};

static bool add_name(void *context, const lahar_uuid *uuid)
{
    struct adding *adding = context;
    struct lahar_name_references *references = adding->references;
    adding->status = lahar_name_references_reserve(references, adding->allocator, 1, adding->error);
    if (adding->status == LAHAR_OK) {
        references->items[references->count++] =
            (struct lahar_name_reference){hash_of(uuid), adding->id};
    }
    return adding->status == LAHAR_OK;
}

lahar_status lahar_name_references_add(struct lahar_name_references *references,
                                       const lahar_allocator *allocator,
                                       const struct lahar_prov_fields *fields,
                                       const lahar_event *event, lahar_error *error)
{
    struct adding adding = {references, allocator, event->id, LAHAR_OK, error};
    (void)lahar_prov_each_name(fields, event, add_name, &adding);
    return adding.status;
}

static int compare_references(const void *a, const void *b)
{
    const struct lahar_name_reference *left = a;
    const struct lahar_name_reference *right = b;
    if (left->hash != right->hash) {
        return left->hash < right->hash ? -1 : 1;
    }
    return left->id < right->id ? -1 : left->id > right->id;
}

void lahar_name_references_sort(struct lahar_name_references *references)
{
    if (references->count != 0) {
        qsort(references->items, references->count, sizeof *references->items, compare_references);
    }
}

lahar_status lahar_name_references_find(const struct lahar_name_references *references,
                                        const lahar_uuid *uuid, uint64_t end_id,
                                        const lahar_allocator *allocator,
                                        struct lahar_id_list *list, lahar_error *error)
{
    const uint64_t hash = hash_of(uuid);
    size_t low = 0;
    size_t high = references->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (references->items[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < references->count && references->items[low].hash == hash &&
           references->items[low].id < end_id;
         low++) {
        LAHAR_TRY(lahar_id_list_add(list, allocator, references->items[low].id, error));
    }
    return LAHAR_OK;
}
