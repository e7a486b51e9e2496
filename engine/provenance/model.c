#include "engine/provenance/model.h"

#include <string.h>

#include "engine/event/row.h"
#include "engine/provenance/identity.h"
#include "engine/provenance/pair_table.h"
#include "io/base/error.h"

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a provenance event");
}

/* --- encoding --------------------------------------------------------------------------- */

static lahar_value *add(struct lahar_prov_values *values, const struct lahar_prov_fields *fields,
                        enum lahar_prov_field field)
{
    lahar_value *value = &values->items[values->count++];
    *value = (lahar_value){.field = fields->ids[field], .type = lahar_prov_field_type(field)};
    return value;
}

static void add_bytes(struct lahar_prov_values *values, const struct lahar_prov_fields *fields,
                      enum lahar_prov_field field, lahar_bytes bytes)
{
    if (bytes.data != NULL) {
        add(values, fields, field)->as.bytes = bytes;
    }
}

static void add_u64(struct lahar_prov_values *values, const struct lahar_prov_fields *fields,
                    enum lahar_prov_field field, bool is_given, uint64_t number)
{
    if (is_given) {
        add(values, fields, field)->as.u64 = number;
    }
}

static void add_time(struct lahar_prov_values *values, const struct lahar_prov_fields *fields,
                     enum lahar_prov_field field, int64_t time_ns)
{
    if (time_ns != LAHAR_PROV_NO_TIME) {
        add(values, fields, field)->as.time_ns = time_ns;
    }
}

static void add_claim(struct lahar_prov_values *values, const struct lahar_prov_fields *fields,
                      enum lahar_prov_field container, const lahar_claim *claim)
{
    const enum lahar_prov_field offset =
        container + (LAHAR_PROV_FIELD_CLAIM_OFFSET - LAHAR_PROV_FIELD_CLAIM_CONTAINER);
    add_bytes(values, fields, container, claim->container);
    add_bytes(values, fields, container + 1, claim->section);
    add_bytes(values, fields, container + 2, claim->id);
    add_u64(values, fields, offset, claim->has_offset, claim->offset);
    add_u64(values, fields, offset + 1, claim->has_size, claim->size);
}

static void add_pairs(struct lahar_prov_values *values, uint32_t field, const lahar_pair *pairs,
                      size_t count)
{
    if (count != 0) {
        values->items[values->count++] =
            (lahar_value){.field = field, .type = LAHAR_MAP, .as.map = {pairs, count}};
    }
}

lahar_status lahar_prov_identify_all(const lahar_bytes *names, size_t count,
                                     struct lahar_arena *arena, const lahar_uuid **uuids_out,
                                     bool *is_canonical_out, lahar_error *error)
{
    lahar_uuid *uuids = lahar_arena_allocate(arena, count * sizeof *uuids + 1);
    if (uuids == NULL) {
        return no_memory(error);
    }
    *is_canonical_out = true;
    for (size_t i = 0; i < count; i++) {
        if (!lahar_prov_identify(names[i], &uuids[i])) {
            *is_canonical_out = false;
        }
    }
    *uuids_out = uuids;
    return LAHAR_OK;
}

static lahar_status add_names(struct lahar_prov_values *values,
                              const struct lahar_prov_fields *fields,
                              enum lahar_prov_field uuid_field, const lahar_bytes *names,
                              size_t count, struct lahar_arena *arena, lahar_error *error)
{
    bool is_canonical = false;
    const lahar_uuid *uuids = NULL;
    if (count == 0) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_prov_identify_all(names, count, arena, &uuids, &is_canonical, error));
    lahar_value *value = add(values, fields, uuid_field);
    value->as.uuids.items = uuids;
    value->as.uuids.count = count;
    if (!is_canonical) {
        value = add(values, fields, uuid_field + 1);
        value->as.keywords.items = names;
        value->as.keywords.count = count;
    }
    return LAHAR_OK;
}

lahar_status lahar_prov_encode(const struct lahar_prov_fields *fields,
                               const lahar_prov_event *event, struct lahar_arena *arena,
                               struct lahar_prov_values *values_out, lahar_error *error)
{
    const char *type = lahar_prov_type_name(event->type);
    lahar_uuid uuid;
    values_out->count = 0;
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_TYPE, (lahar_bytes){type, strlen(type)});
    add_time(values_out, fields, LAHAR_PROV_FIELD_LINEAGE_START, event->lineage_start_ns);
    add_time(values_out, fields, LAHAR_PROV_FIELD_ENTRY_TIME, event->entry_ns);
    if (event->has_duration) {
        add(values_out, fields, LAHAR_PROV_FIELD_DURATION)->as.i64 = event->duration_ns;
    }
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_DETAILS, event->details);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_COMPONENT, event->component);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_COMPONENT_TYPE, event->component_type);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_COMPONENT_NAME, event->component_name);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_PROCESS_GROUP, event->process_group);
    if (event->uuid.data != NULL) {
        if (!lahar_prov_identify(event->uuid, &uuid)) {
            add_bytes(values_out, fields, LAHAR_PROV_FIELD_ENTITY_ID, event->uuid);
        }
        add(values_out, fields, LAHAR_PROV_FIELD_UUID)->as.uuid = uuid;
    }
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_ENTITY_TYPE, event->entity_type);
    add_u64(values_out, fields, LAHAR_PROV_FIELD_SIZE, event->has_size, event->size);
    add_u64(values_out, fields, LAHAR_PROV_FIELD_PREVIOUS_SIZE, event->has_previous_size,
            event->previous_size);
    LAHAR_TRY(add_names(values_out, fields, LAHAR_PROV_FIELD_PARENTS, event->parents,
                        event->parent_count, arena, error));
    LAHAR_TRY(add_names(values_out, fields, LAHAR_PROV_FIELD_CHILDREN, event->children,
                        event->child_count, arena, error));
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_TRANSIT_URI, event->transit_uri);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_SOURCE_SYSTEM, event->source_system);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_ALTERNATE_ID, event->alternate_id);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_RELATIONSHIP, event->relationship);
    add_bytes(values_out, fields, LAHAR_PROV_FIELD_SOURCE_QUEUE, event->source_queue);
    add_claim(values_out, fields, LAHAR_PROV_FIELD_CLAIM_CONTAINER, &event->claim);
    add_claim(values_out, fields, LAHAR_PROV_FIELD_PREVIOUS_CLAIM_CONTAINER,
              &event->previous_claim);
    add_pairs(values_out, LAHAR_FIELD_ATTRIBUTES, event->updated, event->updated_count);
    add_pairs(values_out, LAHAR_FIELD_PREVIOUS, event->previous, event->previous_count);
    return LAHAR_OK;
}

/* --- decoding --------------------------------------------------------------------------- */

static const char nothing[1];

static lahar_bytes get_bytes(const struct lahar_prov_fields *fields, const lahar_event *event,
                             enum lahar_prov_field field)
{
    const lahar_value *value = lahar_prov_value(fields, event, field);
    if (value == NULL) {
        return (lahar_bytes){NULL, 0};
    }
    /* Present and empty is not absent. */
    return value->as.bytes.data == NULL ? (lahar_bytes){nothing, 0} : value->as.bytes;
}

static bool get_u64(const struct lahar_prov_fields *fields, const lahar_event *event,
                    enum lahar_prov_field field, uint64_t *number_out)
{
    const lahar_value *value = lahar_prov_value(fields, event, field);
    *number_out = value == NULL ? 0 : value->as.u64;
    return value != NULL;
}

static int64_t get_time(const struct lahar_prov_fields *fields, const lahar_event *event,
                        enum lahar_prov_field field)
{
    const lahar_value *value = lahar_prov_value(fields, event, field);
    return value == NULL ? LAHAR_PROV_NO_TIME : value->as.time_ns;
}

static void get_claim(const struct lahar_prov_fields *fields, const lahar_event *event,
                      enum lahar_prov_field container, lahar_claim *claim_out)
{
    claim_out->container = get_bytes(fields, event, container);
    claim_out->section = get_bytes(fields, event, container + 1);
    claim_out->id = get_bytes(fields, event, container + 2);
    claim_out->has_offset = get_u64(fields, event, container + 3, &claim_out->offset);
    claim_out->has_size = get_u64(fields, event, container + 4, &claim_out->size);
}

static const lahar_pair *get_pairs(const lahar_event *event, uint32_t field, size_t *count_out)
{
    const lahar_value *value = lahar_event_find(event, field);
    const bool is_map = value != NULL && !value->is_null && value->type == LAHAR_MAP;
    *count_out = is_map ? value->as.map.count : 0;
    return is_map ? value->as.map.items : NULL;
}

/* The texts of uuids, one piece of memory for all. */
static lahar_status format_names(const lahar_uuid *uuids, size_t count, struct lahar_arena *arena,
                                 const lahar_bytes **names_out, lahar_error *error)
{
    lahar_bytes *names = lahar_arena_allocate(arena, count * sizeof *names + 1);
    char *texts = lahar_arena_allocate(arena, count * LAHAR_PROV_UUID_TEXT_SIZE + 1);
    if (names == NULL || texts == NULL) {
        return no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        char *text = texts + i * LAHAR_PROV_UUID_TEXT_SIZE;
        lahar_prov_uuid_format(&uuids[i], text);
        names[i] = (lahar_bytes){text, LAHAR_PROV_UUID_TEXT_SIZE};
    }
    *names_out = names;
    return LAHAR_OK;
}

static lahar_status get_names(const struct lahar_prov_fields *fields, const lahar_event *event,
                              enum lahar_prov_field uuid_field, struct lahar_arena *arena,
                              const lahar_bytes **names_out, size_t *count_out, lahar_error *error)
{
    const lahar_value *uuids = lahar_prov_value(fields, event, uuid_field);
    const lahar_value *texts = lahar_prov_value(fields, event, uuid_field + 1);
    *names_out = NULL;
    *count_out = 0;
    if (texts != NULL) {
        *names_out = texts->as.keywords.items;
        *count_out = texts->as.keywords.count;
    } else if (uuids != NULL) {
        *count_out = uuids->as.uuids.count;
        return format_names(uuids->as.uuids.items, uuids->as.uuids.count, arena, names_out, error);
    }
    return LAHAR_OK;
}

static lahar_status get_flowfile(const struct lahar_prov_fields *fields, const lahar_event *event,
                                 struct lahar_arena *arena, lahar_prov_event *event_out,
                                 lahar_error *error)
{
    const lahar_value *uuid = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_UUID);
    const lahar_bytes *name = &event_out->uuid;
    event_out->uuid = get_bytes(fields, event, LAHAR_PROV_FIELD_ENTITY_ID);
    if (event_out->uuid.data == NULL && uuid != NULL) {
        LAHAR_TRY(format_names(&uuid->as.uuid, 1, arena, &name, error));
        LAHAR_ASSERT(name != NULL);
        event_out->uuid = *name;
    }
    LAHAR_TRY(get_names(fields, event, LAHAR_PROV_FIELD_PARENTS, arena, &event_out->parents,
                        &event_out->parent_count, error));
    return get_names(fields, event, LAHAR_PROV_FIELD_CHILDREN, arena, &event_out->children,
                     &event_out->child_count, error);
}

lahar_status lahar_prov_decode(const struct lahar_prov_fields *fields, const lahar_event *event,
                               struct lahar_arena *arena, lahar_prov_event *event_out,
                               lahar_error *error)
{
    const lahar_value *duration = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_DURATION);
    lahar_prov_event_init(event_out);
    event_out->id = event->id;
    event_out->time_ns = event->time_ns;
    event_out->arrival_ns = event->arrival_ns;
    event_out->type_name = get_bytes(fields, event, LAHAR_PROV_FIELD_TYPE);
    event_out->type = lahar_prov_type_find(event_out->type_name);
    event_out->component = get_bytes(fields, event, LAHAR_PROV_FIELD_COMPONENT);
    event_out->component_type = get_bytes(fields, event, LAHAR_PROV_FIELD_COMPONENT_TYPE);
    event_out->component_name = get_bytes(fields, event, LAHAR_PROV_FIELD_COMPONENT_NAME);
    event_out->process_group = get_bytes(fields, event, LAHAR_PROV_FIELD_PROCESS_GROUP);
    event_out->entity_type = get_bytes(fields, event, LAHAR_PROV_FIELD_ENTITY_TYPE);
    event_out->has_size = get_u64(fields, event, LAHAR_PROV_FIELD_SIZE, &event_out->size);
    event_out->has_previous_size =
        get_u64(fields, event, LAHAR_PROV_FIELD_PREVIOUS_SIZE, &event_out->previous_size);
    event_out->has_duration = duration != NULL;
    event_out->duration_ns = duration == NULL ? 0 : duration->as.i64;
    event_out->entry_ns = get_time(fields, event, LAHAR_PROV_FIELD_ENTRY_TIME);
    event_out->lineage_start_ns = get_time(fields, event, LAHAR_PROV_FIELD_LINEAGE_START);
    event_out->previous = get_pairs(event, LAHAR_FIELD_PREVIOUS, &event_out->previous_count);
    event_out->updated = get_pairs(event, LAHAR_FIELD_ATTRIBUTES, &event_out->updated_count);
    get_claim(fields, event, LAHAR_PROV_FIELD_CLAIM_CONTAINER, &event_out->claim);
    get_claim(fields, event, LAHAR_PROV_FIELD_PREVIOUS_CLAIM_CONTAINER, &event_out->previous_claim);
    event_out->source_queue = get_bytes(fields, event, LAHAR_PROV_FIELD_SOURCE_QUEUE);
    event_out->transit_uri = get_bytes(fields, event, LAHAR_PROV_FIELD_TRANSIT_URI);
    event_out->source_system = get_bytes(fields, event, LAHAR_PROV_FIELD_SOURCE_SYSTEM);
    event_out->alternate_id = get_bytes(fields, event, LAHAR_PROV_FIELD_ALTERNATE_ID);
    event_out->relationship = get_bytes(fields, event, LAHAR_PROV_FIELD_RELATIONSHIP);
    event_out->details = get_bytes(fields, event, LAHAR_PROV_FIELD_DETAILS);
    return get_flowfile(fields, event, arena, event_out, error);
}

/* --- attributes ----------------------------------------------------------------------------- */

lahar_status lahar_prov_overlay(const lahar_pair *previous, size_t previous_count,
                                const lahar_pair *updated, size_t updated_count,
                                struct lahar_arena *arena, const lahar_pair **pairs_out,
                                size_t *count_out, lahar_error *error)
{
    struct lahar_pair_table table;
    size_t count = 0;
    if (!lahar_pair_table_init(&table, previous_count + updated_count, arena)) {
        return no_memory(error);
    }
    lahar_pair_table_put(&table, previous, previous_count);
    lahar_pair_table_put(&table, updated, updated_count);
    for (size_t i = 0; i < table.count; i++) {
        if (!table.pairs[i].is_null) {
            table.pairs[count++] = table.pairs[i];
        }
    }
    *pairs_out = table.pairs;
    *count_out = count;
    return LAHAR_OK;
}
