/* Events out of records. NiFi keeps no uuid and no size of the FlowFile: both follow from what it
 * does keep, as in its own reader. Fields that a schema lacks are absent in the event, those it has
 * besides are passed over. */
#include "engine/provenance/nifi_event.h"

#include <string.h>

#include "io/base/error.h"

static const int64_t NS_A_MS = 1000000;

static lahar_status corrupt(lahar_error *error, const char *what)
{
    return lahar_fail(error, LAHAR_CORRUPT, "its %s is out of range", what);
}

lahar_status lahar_nifi_head_of(const struct lahar_nifi_value *record,
                                struct lahar_nifi_head *head_out, lahar_error *error)
{
    const struct lahar_nifi_value *first_id = lahar_nifi_find(record, "First Event ID");
    const struct lahar_nifi_value *base = lahar_nifi_find(record, "Timestamp Offset");
    if (first_id == NULL || base == NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "its head lacks the first id or the time");
    }
    *head_out = (struct lahar_nifi_head){
        .first_id = first_id->number,
        .base_ms = base->number,
        .components = lahar_nifi_find(record, "Component Identifiers"),
        .component_types = lahar_nifi_find(record, "Component Types"),
        .queues = lahar_nifi_find(record, "Queue Identifiers"),
        .event_types = lahar_nifi_find(record, "Event Types"),
    };
    return LAHAR_OK;
}

static lahar_bytes bytes_of(const struct lahar_nifi_value *record, const char *name)
{
    const struct lahar_nifi_value *value = lahar_nifi_find(record, name);
    return value == NULL ? (lahar_bytes){NULL, 0} : value->bytes;
}

static bool name_at(const struct lahar_nifi_value *names, int64_t number, lahar_bytes *name_out)
{
    if (names == NULL || number < 0 || number >= names->count) {
        return false;
    }
    *name_out = names->items[number].bytes;
    return true;
}

/* A name that is given, given by its number, or not at all. */
static lahar_status take_name(const struct lahar_nifi_value *record, const char *name,
                              const struct lahar_nifi_value *names, lahar_bytes *name_out,
                              lahar_error *error)
{
    const struct lahar_nifi_value *value = lahar_nifi_find(record, name);
    *name_out = (lahar_bytes){NULL, 0};
    if (value == NULL || lahar_nifi_is_named(value->field, "No Value")) {
        return LAHAR_OK;
    }
    if (value->count == 0) {
        *name_out = value->bytes;
        return LAHAR_OK;
    }
    if (!lahar_nifi_is_named(value->field, "Lookup Value")) {
        *name_out = value->items[0].bytes;
        return LAHAR_OK;
    }
    return name_at(names, value->items[0].number, name_out) ? LAHAR_OK : corrupt(error, name);
}

/* Milliseconds from the file's time on. */
static lahar_status take_time(const struct lahar_nifi_value *record, const char *name,
                              int64_t base_ms, int64_t *time_ns_out, lahar_error *error)
{
    const struct lahar_nifi_value *value = lahar_nifi_find(record, name);
    int64_t ms = 0;
    int64_t ns = 0;
    if (value == NULL) {
        return LAHAR_OK;
    }
    if (__builtin_add_overflow(base_ms, value->number, &ms) ||
        __builtin_mul_overflow(ms, NS_A_MS, &ns)) {
        return corrupt(error, name);
    }
    *time_ns_out = ns;
    return LAHAR_OK;
}

static lahar_status take_times(const struct lahar_nifi_value *record,
                               const struct lahar_nifi_head *head, lahar_prov_event *event,
                               lahar_error *error)
{
    const struct lahar_nifi_value *duration = lahar_nifi_find(record, "Event Duration");
    LAHAR_TRY(take_time(record, "Event Time", head->base_ms, &event->time_ns, error));
    LAHAR_TRY(take_time(record, "FlowFile Entry Date", head->base_ms, &event->entry_ns, error));
    LAHAR_TRY(
        take_time(record, "Lineage Start Date", head->base_ms, &event->lineage_start_ns, error));
    if (duration == NULL || duration->number < 0) {
        return LAHAR_OK; /* -1: not measured */
    }
    event->has_duration = true;
    return __builtin_mul_overflow(duration->number, NS_A_MS, &event->duration_ns)
               ? corrupt(error, "Event Duration")
               : LAHAR_OK;
}

static lahar_claim claim_of(const struct lahar_nifi_value *value)
{
    const struct lahar_nifi_value *offset = lahar_nifi_find(value, "Content Claim Offset");
    const struct lahar_nifi_value *size = lahar_nifi_find(value, "Content Claim Size");
    return (lahar_claim){
        .container = bytes_of(value, "Content Claim Container"),
        .section = bytes_of(value, "Content Claim Section"),
        .id = bytes_of(value, "Content Claim Identifier"),
        .has_offset = offset != NULL && offset->number >= 0,
        .offset = offset != NULL && offset->number >= 0 ? (uint64_t)offset->number : 0,
        .has_size = size != NULL && size->number >= 0,
        .size = size != NULL && size->number >= 0 ? (uint64_t)size->number : 0,
    };
}

/* The size of a FlowFile is that of its claim; without content it is empty. */
static void take_claims(const struct lahar_nifi_value *record, lahar_prov_event *event)
{
    const struct lahar_nifi_value *previous = lahar_nifi_find(record, "Previous Content Claim");
    const struct lahar_nifi_value *current = lahar_nifi_find(record, "Content Claim");
    if (previous != NULL) {
        event->previous_claim = claim_of(previous);
        event->has_previous_size = event->previous_claim.has_size;
        event->previous_size = event->previous_claim.size;
    }
    if (current == NULL) {
        return;
    }
    event->has_size = true;
    if (lahar_nifi_is_named(current->field, "Unchanged")) {
        event->claim = event->previous_claim;
    } else if (lahar_nifi_is_named(current->field, "Explicit Value") && current->count != 0) {
        event->claim = claim_of(&current->items[0]);
    }
    event->size = event->claim.size;
}

static lahar_status take_pairs(const struct lahar_nifi_value *record, const char *name,
                               struct lahar_arena *arena, const lahar_pair **pairs_out,
                               size_t *count_out, lahar_error *error)
{
    const struct lahar_nifi_value *map = lahar_nifi_find(record, name);
    if (map == NULL || map->count == 0) {
        return LAHAR_OK;
    }
    lahar_pair *pairs = lahar_arena_allocate(arena, map->count / 2 * sizeof *pairs);
    if (pairs == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the attributes of an event");
    }
    for (uint32_t i = 0; i < map->count / 2; i++) {
        const struct lahar_nifi_value *value = &map->items[2 * i + 1];
        pairs[i] = (lahar_pair){
            .key = map->items[2 * i].bytes, .value = value->bytes, .is_null = value->is_absent};
    }
    *pairs_out = pairs;
    *count_out = map->count / 2;
    return LAHAR_OK;
}

static lahar_status take_names(const struct lahar_nifi_value *record, const char *name,
                               struct lahar_arena *arena, const lahar_bytes **names_out,
                               size_t *count_out, lahar_error *error)
{
    const struct lahar_nifi_value *list = lahar_nifi_find(record, name);
    if (list == NULL || list->count == 0) {
        return LAHAR_OK;
    }
    lahar_bytes *names = lahar_arena_allocate(arena, list->count * sizeof *names);
    if (names == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the FlowFiles of an event");
    }
    for (uint32_t i = 0; i < list->count; i++) {
        names[i] = list->items[i].bytes;
    }
    *names_out = names;
    *count_out = list->count;
    return LAHAR_OK;
}

static lahar_bytes attribute_of(const lahar_pair *pairs, size_t count, const char *key)
{
    const size_t size = strlen(key);
    for (size_t i = 0; i < count; i++) {
        if (!pairs[i].is_null && pairs[i].key.size == size &&
            memcmp(pairs[i].key.data, key, size) == 0) {
            return pairs[i].value;
        }
    }
    return (lahar_bytes){NULL, 0};
}

/* The FlowFile that an event is about: the one it comes from, the one that was joined, or the one
 * that its attributes name. */
static lahar_bytes uuid_of(const lahar_prov_event *event)
{
    switch (event->type) {
    case LAHAR_PROV_FORK:
    case LAHAR_PROV_CLONE:
    case LAHAR_PROV_REPLAY:
        if (event->parent_count != 0) {
            return event->parents[0];
        }
        break;
    case LAHAR_PROV_JOIN:
        if (event->child_count != 0) {
            return event->children[0];
        }
        break;
    default:
        break;
    }
    const lahar_bytes uuid = attribute_of(event->updated, event->updated_count, "uuid");
    return uuid.data != NULL ? uuid : attribute_of(event->previous, event->previous_count, "uuid");
}

lahar_status lahar_nifi_event_of(const struct lahar_nifi_value *record,
                                 const struct lahar_nifi_head *head, struct lahar_arena *arena,
                                 lahar_prov_event *event_out, lahar_error *error)
{
    lahar_prov_event *event = event_out;
    const struct lahar_nifi_value *type = lahar_nifi_find(record, "Event Type");
    lahar_bytes type_name = {NULL, 0};
    lahar_prov_event_init(event);
    if (type == NULL || !name_at(head->event_types, type->number, &type_name)) {
        return corrupt(error, "Event Type");
    }
    event->type = lahar_prov_type_find(type_name);
    LAHAR_TRY(take_name(record, "Component ID", head->components, &event->component, error));
    LAHAR_TRY(
        take_name(record, "Component Type", head->component_types, &event->component_type, error));
    LAHAR_TRY(
        take_name(record, "Source Queue Identifier", head->queues, &event->source_queue, error));
    LAHAR_TRY(take_times(record, head, event, error));
    LAHAR_TRY(take_pairs(record, "Previous Attributes", arena, &event->previous,
                         &event->previous_count, error));
    LAHAR_TRY(take_pairs(record, "Updated Attributes", arena, &event->updated,
                         &event->updated_count, error));
    LAHAR_TRY(
        take_names(record, "Parent UUIDs", arena, &event->parents, &event->parent_count, error));
    LAHAR_TRY(
        take_names(record, "Child UUIDs", arena, &event->children, &event->child_count, error));
    take_claims(record, event);
    event->details = bytes_of(record, "Event Details");
    event->transit_uri = bytes_of(record, "Transit URI");
    event->source_system = bytes_of(record, "Source System FlowFile Identifier");
    event->alternate_id = bytes_of(record, "Alternate Identifier");
    event->relationship = bytes_of(record, "Relationship");
    event->uuid = uuid_of(event);
    return LAHAR_OK;
}
