/* The events of a lineage, generation by generation: those that name the FlowFiles wanted, then
 * those that name their parents and children, as far as the options ask. Each generation is one
 * question to the source; nothing recurses. */
#include <string.h>

#include "engine/provenance/identity.h"
#include "engine/provenance/lineage.h"
#include "engine/provenance/lineage_source.h"
#include "engine/query/literal.h"
#include "io/base/error.h"

/* Events by id, to find those that are there already. */
struct event_table {
    uint32_t *slots; /* owned: event number + 1 */
    size_t slot_count;
};

struct collector {
    struct lahar_lineage *lineage;
    struct lahar_lineage_source source;
    struct event_table table;
    struct lahar_id_list ids;
    struct lahar_batch_walk walk; /* over events in memory; keeps the rows of its last batch */
    uint32_t first;               /* FlowFile of this generation */
    bool is_full;                 /* an event found no room below the limit */
};

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a lineage");
}

/* --- FlowFiles -------------------------------------------------------------------------------- */

static lahar_status want(struct lahar_lineage *lineage, const lahar_uuid *uuid, lahar_bytes name,
                         int32_t generation, lahar_error *error)
{
    struct lahar_uuid_entry *entry = lahar_uuid_map_add(&lineage->flowfiles, uuid);
    if (entry == NULL) {
        return no_memory(error);
    }
    if (!entry->is_wanted) {
        void *copy = lahar_arena_copy(&lineage->arena, name.data, name.size);
        if (copy == NULL && name.size != 0) {
            return no_memory(error);
        }
        entry->name = (lahar_bytes){copy, name.size};
        entry->generation = generation;
        entry->is_wanted = true;
    }
    return LAHAR_OK;
}

static lahar_status want_all(struct lahar_lineage *lineage, const lahar_uuid *uuids,
                             const lahar_bytes *names, size_t count, int32_t generation,
                             lahar_error *error)
{
    for (size_t i = 0; i < count; i++) {
        LAHAR_TRY(want(lineage, &uuids[i], names[i], generation, error));
    }
    return LAHAR_OK;
}

/* --- events ------------------------------------------------------------------------------------
 */

static size_t find_slot(const struct collector *collector, uint64_t id)
{
    const struct event_table *table = &collector->table;
    const size_t mask = table->slot_count - 1;
    size_t slot = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;
    while (table->slots[slot] != 0 && collector->lineage->events[table->slots[slot] - 1].id != id) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static lahar_status grow_events(struct collector *collector, lahar_error *error)
{
    struct lahar_lineage *lineage = collector->lineage;
    const lahar_allocator *allocator = lineage->provenance->allocator;
    const size_t capacity = lineage->event_capacity == 0 ? 64 : lineage->event_capacity * 2;
    struct lahar_lineage_event *events =
        lahar_reallocate(allocator, lineage->events, capacity * sizeof *events);
    if (events == NULL) {
        return no_memory(error);
    }
    lineage->events = events;
    lineage->event_capacity = capacity;
    uint32_t *slots = lahar_allocate_zeroed(allocator, capacity * 2, sizeof *slots);
    if (slots == NULL) {
        return no_memory(error);
    }
    lahar_release(allocator, collector->table.slots);
    collector->table = (struct event_table){slots, capacity * 2};
    for (size_t i = 0; i < lineage->event_count; i++) {
        slots[find_slot(collector, events[i].id)] = (uint32_t)i + 1;
    }
    return LAHAR_OK;
}

/* Copies what the graph needs of an event, which goes away. */
static lahar_status copy_strings(struct lahar_lineage *lineage, struct lahar_lineage_event *event,
                                 lahar_error *error)
{
    lahar_lineage_node *node = &event->node;
    lahar_bytes *const strings[] = {
        &node->type,           &node->uuid,        &node->component,   &node->component_type,
        &node->component_name, &node->transit_uri, &node->relationship};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        if (strings[i]->data != NULL && strings[i]->size != 0) {
            strings[i]->data =
                lahar_arena_copy(&lineage->arena, strings[i]->data, strings[i]->size);
            if (strings[i]->data == NULL) {
                return no_memory(error);
            }
        } else if (strings[i]->data != NULL) {
            strings[i]->data = "";
        }
    }
    return LAHAR_OK;
}

static lahar_status copy_names(struct lahar_lineage *lineage, const lahar_bytes *from, size_t count,
                               const lahar_bytes **names_out, const lahar_uuid **uuids_out,
                               lahar_error *error)
{
    bool is_canonical = false;
    lahar_bytes *names = lahar_arena_allocate(&lineage->arena, count * sizeof *names + 1);
    if (names == NULL) {
        return no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        names[i].size = from[i].size;
        names[i].data = lahar_arena_copy(&lineage->arena, from[i].data, from[i].size);
        if (names[i].data == NULL && names[i].size != 0) {
            return no_memory(error);
        }
    }
    *names_out = names;
    return lahar_prov_identify_all(names, count, &lineage->arena, uuids_out, &is_canonical, error);
}

static lahar_status fill_event(struct lahar_lineage *lineage, const lahar_event *raw,
                               struct lahar_arena *scratch, struct lahar_lineage_event *event_out,
                               lahar_error *error)
{
    lahar_prov_event event;
    LAHAR_TRY(lahar_prov_decode(&lineage->provenance->fields, raw, scratch, &event, error));
    const bool is_hidden = !lahar_prov_may_see(lineage->provenance, raw);
    *event_out = (struct lahar_lineage_event){
        .id = event.id,
        .time_ns = event.time_ns,
        .type = is_hidden ? LAHAR_PROV_UNKNOWN : event.type,
        .is_hidden = is_hidden,
        .has_uuid = event.uuid.data != NULL,
        .node = {.is_event = true,
                 .is_hidden = is_hidden,
                 .id = event.id,
                 .time_ns = event.time_ns,
                 .type = event.type_name,
                 .uuid = event.uuid,
                 .component = event.component},
    };
    if (event_out->has_uuid) {
        (void)lahar_prov_identify(event.uuid, &event_out->uuid);
    }
    if (is_hidden) {
        event_out->node.type = (lahar_bytes){"UNKNOWN", 7};
        return copy_strings(lineage, event_out, error);
    }
    event_out->node.component_type = event.component_type;
    event_out->node.component_name = event.component_name;
    event_out->node.transit_uri = event.transit_uri;
    event_out->node.relationship = event.relationship;
    event_out->parent_count = event.parent_count;
    event_out->child_count = event.child_count;
    LAHAR_TRY(copy_strings(lineage, event_out, error));
    LAHAR_TRY(copy_names(lineage, event.parents, event.parent_count, &event_out->parent_names,
                         &event_out->parents, error));
    return copy_names(lineage, event.children, event.child_count, &event_out->child_names,
                      &event_out->children, error);
}

static bool is_wanted(const struct lahar_uuid_map *map, const lahar_uuid *uuid)
{
    const struct lahar_uuid_entry *entry = lahar_uuid_map_find(map, uuid);
    return entry != NULL && entry->is_wanted;
}

static bool is_not_wanted(void *context, const lahar_uuid *uuid)
{
    const struct lahar_uuid_map *map = context;
    return !is_wanted(map, uuid);
}

/* Reads an event that was found and keeps it, unless it lies outside or names nothing wanted. */
static lahar_status keep_event(struct collector *collector, const lahar_event *raw,
                               struct lahar_arena *scratch, lahar_error *error)
{
    struct lahar_lineage *lineage = collector->lineage;
    if (raw->stream != lineage->provenance->stream || raw->time_ns < lineage->options.from_ns ||
        (lineage->options.to_ns != INT64_MAX && raw->time_ns >= lineage->options.to_ns) ||
        lahar_prov_each_name(&lineage->provenance->fields, raw, is_not_wanted,
                             &lineage->flowfiles)) {
        return LAHAR_OK;
    }
    if (lineage->event_count >= lineage->options.event_max) {
        collector->is_full = true;
        return LAHAR_OK;
    }
    if (lineage->event_count == lineage->event_capacity) {
        LAHAR_TRY(grow_events(collector, error));
    }
    LAHAR_TRY(fill_event(lineage, raw, scratch, &lineage->events[lineage->event_count], error));
    const size_t slot = find_slot(collector, raw->id);
    collector->table.slots[slot] = (uint32_t)++lineage->event_count;
    atomic_store_explicit(&lineage->found_count, lineage->event_count, memory_order_relaxed);
    return LAHAR_OK;
}

/* Keeps an event that is in memory. */
static lahar_status keep_resident(struct collector *collector, uint64_t id,
                                  struct lahar_arena *scratch, lahar_error *error)
{
    const struct lahar_snapshot *snapshot = collector->source.snapshot;
    const size_t number = lahar_snapshot_find_batch(snapshot, id);
    lahar_event event;
    if (number == lahar_snapshot_batch_count(snapshot)) {
        return LAHAR_OK;
    }
    const struct lahar_resident_batch *batch = lahar_snapshot_batch(snapshot, number);
    if (id < batch->first_id || id - batch->first_id >= batch->event_count) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_batch_walk_enter(&collector->walk, number,
                                     collector->lineage->provenance->allocator, error));
    lahar_arena_reset(scratch);
    LAHAR_TRY(lahar_batch_walk_read(&collector->walk, (uint32_t)(id - batch->first_id), scratch,
                                    &event, error));
    return keep_event(collector, &event, scratch, error);
}

static lahar_status check_cancelled(const struct collector *collector, lahar_error *error)
{
    return atomic_load_explicit(&collector->lineage->is_cancelled, memory_order_relaxed)
               ? lahar_fail(error, LAHAR_CANCELLED, "the lineage was cancelled")
               : LAHAR_OK;
}

static bool is_there(const struct collector *collector, uint64_t id)
{
    return collector->table.slot_count != 0 &&
           collector->table.slots[find_slot(collector, id)] != 0;
}

/* What a graph shows of an event: without the attributes, most of a block need not be inflated. */
static const enum lahar_prov_field SHOWN_FIELDS[] = {
    LAHAR_PROV_FIELD_TYPE,           LAHAR_PROV_FIELD_UUID,           LAHAR_PROV_FIELD_ENTITY_ID,
    LAHAR_PROV_FIELD_PARENTS,        LAHAR_PROV_FIELD_PARENT_IDS,     LAHAR_PROV_FIELD_CHILDREN,
    LAHAR_PROV_FIELD_CHILD_IDS,      LAHAR_PROV_FIELD_SOURCE_SYSTEM,  LAHAR_PROV_FIELD_COMPONENT,
    LAHAR_PROV_FIELD_COMPONENT_TYPE, LAHAR_PROV_FIELD_COMPONENT_NAME, LAHAR_PROV_FIELD_TRANSIT_URI,
    LAHAR_PROV_FIELD_RELATIONSHIP,
};

/* Keeps events of files, ids rising. What cannot be read is noted as damage. */
static lahar_status read_files(struct collector *collector, const struct lahar_id_list *ids,
                               struct lahar_arena *scratch, lahar_error *error)
{
    const struct lahar_provenance *provenance = collector->lineage->provenance;
    struct lahar_lookup *lookup = NULL;
    lahar_event event;
    lahar_status status = lahar_lookup_create(provenance->store, collector->source.snapshot,
                                              ids->ids, ids->count, &lookup, error);
    /* Authorization looks at whole events. */
    uint32_t shown[sizeof SHOWN_FIELDS / sizeof SHOWN_FIELDS[0]];
    for (size_t i = 0; i < sizeof SHOWN_FIELDS / sizeof SHOWN_FIELDS[0]; i++) {
        shown[i] = provenance->fields.ids[SHOWN_FIELDS[i]];
    }
    if (status == LAHAR_OK && provenance->options.authorize == NULL) {
        lahar_lookup_limit_fields(lookup, shown, sizeof shown / sizeof shown[0]);
    }
    while (status == LAHAR_OK && !collector->is_full) {
        lahar_error reason = {.status = LAHAR_OK};
        lahar_arena_reset(scratch);
        status = lahar_lookup_next(lookup, scratch, &event, &reason);
        if (status == LAHAR_CORRUPT) {
            if (collector->source.damage.status == LAHAR_OK) {
                collector->source.damage = reason;
            }
            status = LAHAR_OK;
        } else if (status == LAHAR_OK) {
            status = keep_event(collector, &event, scratch, error);
        } else if (status != LAHAR_NOT_FOUND) {
            status = lahar_fail(error, status, "%s", reason.message);
        }
        if (status == LAHAR_OK) {
            status = check_cancelled(collector, error);
        }
    }
    lahar_lookup_destroy(lookup);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

/* Of the ids found those that are not there yet are read, in their order: those of files lie below
 * those in memory. */
static lahar_status read_new(struct collector *collector, lahar_error *error)
{
    struct lahar_provenance *provenance = collector->lineage->provenance;
    const struct lahar_snapshot *snapshot = collector->source.snapshot;
    const uint64_t resident_id = lahar_snapshot_batch_count(snapshot) == 0
                                     ? UINT64_MAX
                                     : lahar_snapshot_batch(snapshot, 0)->first_id;
    const struct lahar_id_list *ids = &collector->ids;
    struct lahar_id_list fresh = {.ids = NULL};
    struct lahar_arena scratch;
    lahar_status status = LAHAR_OK;
    size_t i = 0;
    lahar_arena_init(&scratch, provenance->allocator, 0);
    for (; i < ids->count && ids->ids[i] < resident_id && status == LAHAR_OK; i++) {
        if (!is_there(collector, ids->ids[i])) {
            status = lahar_id_list_add(&fresh, provenance->allocator, ids->ids[i], error);
        }
    }
    if (status == LAHAR_OK && fresh.count != 0) {
        status = read_files(collector, &fresh, &scratch, error);
    }
    for (; i < ids->count && status == LAHAR_OK && !collector->is_full; i++) {
        status = check_cancelled(collector, error);
        if (status == LAHAR_OK && !is_there(collector, ids->ids[i])) {
            status = keep_resident(collector, ids->ids[i], &scratch, error);
        }
    }
    lahar_release(provenance->allocator, fresh.ids);
    lahar_arena_deinit(&scratch);
    return status;
}

/* --- generations
 * ---------------------------------------------------------------------------------- */

/* The entry of a FlowFile of this generation, NULL for others. */
static const struct lahar_uuid_entry *current(const struct collector *collector,
                                              const lahar_uuid *uuid)
{
    const struct lahar_uuid_map *map = &collector->lineage->flowfiles;
    const struct lahar_uuid_entry *entry = lahar_uuid_map_find(map, uuid);
    return entry != NULL && entry >= map->entries + collector->first ? entry : NULL;
}

/* The FlowFile of this generation among uuids that is followed in the direction, its generation in
 * *generation_out. */
static bool find_followed(const struct collector *collector, const lahar_uuid *uuids, size_t count,
                          bool towards_parents, uint32_t known_count, int32_t *generation_out)
{
    const struct lahar_uuid_map *map = &collector->lineage->flowfiles;
    for (size_t i = 0; i < count; i++) {
        const struct lahar_uuid_entry *entry = current(collector, &uuids[i]);
        if (entry != NULL && entry < map->entries + known_count &&
            (towards_parents ? entry->generation <= 0 : entry->generation >= 0)) {
            *generation_out = entry->generation;
            return true;
        }
    }
    return false;
}

static bool has_unknown(const struct lahar_lineage *lineage, const lahar_uuid *uuids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&lineage->flowfiles, &uuids[i])) {
            return true;
        }
    }
    return false;
}

/* Wants what an event tells of the generations before and behind. known_count: FlowFiles there
 * were when the generation began, so that what it adds is not followed yet. */
static lahar_status follow(struct collector *collector, uint32_t number, uint32_t known_count,
                           lahar_error *error)
{
    struct lahar_lineage *lineage = collector->lineage;
    const struct lahar_lineage_event *event = &lineage->events[number];
    const uint32_t up = lineage->options.ancestor_depth;
    const uint32_t down = lineage->options.descendant_depth;
    const bool is_join = event->type == LAHAR_PROV_JOIN;
    int32_t generation = 0;
    if (!lahar_prov_spawns(event->type)) {
        return LAHAR_OK;
    }
    if (up != 0 && (find_followed(collector, event->children, event->child_count, true, known_count,
                                  &generation) ||
                    (is_join && event->has_uuid &&
                     find_followed(collector, &event->uuid, 1, true, known_count, &generation)))) {
        if ((uint32_t)-generation < up) {
            LAHAR_TRY(want_all(lineage, event->parents, event->parent_names, event->parent_count,
                               generation - 1, error));
        } else if (has_unknown(lineage, event->parents, event->parent_count)) {
            lineage->is_truncated = true;
        }
    }
    if (down != 0 &&
        (find_followed(collector, event->parents, event->parent_count, false, known_count,
                       &generation) ||
         (!is_join && event->has_uuid &&
          find_followed(collector, &event->uuid, 1, false, known_count, &generation)))) {
        if ((uint32_t)generation < down) {
            LAHAR_TRY(want_all(lineage, event->children, event->child_names, event->child_count,
                               generation + 1, error));
        } else if (has_unknown(lineage, event->children, event->child_count)) {
            lineage->is_truncated = true;
        }
    }
    return LAHAR_OK;
}

static lahar_status collect_generation(struct collector *collector, lahar_error *error)
{
    struct lahar_lineage *lineage = collector->lineage;
    const uint32_t known_count = lineage->flowfiles.count;
    collector->ids.count = 0;
    LAHAR_TRY(lahar_lineage_source_find(&collector->source, &lineage->flowfiles, collector->first,
                                        &collector->ids, error));
    lahar_id_list_sort(&collector->ids);
    LAHAR_TRY(read_new(collector, error));
    for (size_t i = 0; i < collector->ids.count && collector->table.slot_count != 0; i++) {
        const uint32_t place = collector->table.slots[find_slot(collector, collector->ids.ids[i])];
        if (place != 0) {
            LAHAR_TRY(follow(collector, place - 1, known_count, error));
        }
    }
    collector->first = known_count;
    return LAHAR_OK;
}

/* --- the start
 * ------------------------------------------------------------------------------------ */

static lahar_status want_expansion(struct collector *collector, const lahar_prov_event *event,
                                   lahar_error *error)
{
    struct lahar_lineage *lineage = collector->lineage;
    const bool is_parents = lineage->options.kind == LAHAR_LINEAGE_EXPAND_PARENTS;
    const lahar_bytes *names = is_parents ? event->parents : event->children;
    const size_t count = is_parents ? event->parent_count : event->child_count;
    const lahar_uuid *uuids = NULL;
    bool is_canonical = false;
    if (!lahar_prov_spawns(event->type)) {
        return lahar_fail(error, LAHAR_INVALID, "an event of type %.*s cannot be expanded",
                          (int)event->type_name.size, (const char *)event->type_name.data);
    }
    LAHAR_TRY(lahar_prov_identify_all(names, count, &lineage->arena, &uuids, &is_canonical, error));
    return want_all(lineage, uuids, names, count, 0, error);
}

/* What an event starts from. */
static lahar_status want_of_event(struct collector *collector, lahar_error *error)
{
    struct lahar_lineage *lineage = collector->lineage;
    struct lahar_provenance *provenance = lineage->provenance;
    const uint64_t id = lineage->options.id;
    struct lahar_lookup *lookup = NULL;
    struct lahar_arena scratch;
    lahar_event raw;
    lahar_prov_event event;
    lahar_uuid uuid;
    lahar_arena_init(&scratch, provenance->allocator, 4096);
    lahar_status status =
        lahar_lookup_create(provenance->store, collector->source.snapshot, &id, 1, &lookup, error);
    if (status == LAHAR_OK) {
        status = lahar_lookup_next(lookup, &scratch, &raw, error);
        if (status == LAHAR_NOT_FOUND || (status == LAHAR_OK && raw.stream != provenance->stream)) {
            status = lahar_fail(error, LAHAR_NOT_FOUND, "could not find event %llu",
                                (unsigned long long)id);
        }
    }
    if (status == LAHAR_OK && !lahar_prov_may_see(provenance, &raw)) {
        status =
            lahar_fail(error, LAHAR_DENIED, "event %llu may not be seen", (unsigned long long)id);
    }
    if (status == LAHAR_OK) {
        status = lahar_prov_decode(&provenance->fields, &raw, &scratch, &event, error);
    }
    if (status == LAHAR_OK && lineage->options.kind != LAHAR_LINEAGE_EVENT) {
        status = want_expansion(collector, &event, error);
    } else if (status == LAHAR_OK && event.uuid.data != NULL) {
        (void)lahar_prov_identify(event.uuid, &uuid);
        status = want(lineage, &uuid, event.uuid, 0, error);
    }
    lahar_lookup_destroy(lookup);
    lahar_arena_deinit(&scratch);
    return status;
}

static lahar_status want_start(struct collector *collector, lahar_error *error)
{
    struct lahar_lineage *lineage = collector->lineage;
    lahar_uuid uuid;
    if (lineage->options.kind != LAHAR_LINEAGE_FLOWFILE) {
        return want_of_event(collector, error);
    }
    char text[LAHAR_PROV_UUID_TEXT_SIZE];
    lahar_bytes name = lineage->options.uuid;
    if (!lahar_prov_identify(name, &uuid) && lahar_query_uuid_parse(name.data, name.size, &uuid)) {
        lahar_prov_uuid_format(&uuid, text);
        name = (lahar_bytes){text, sizeof text};
    }
    return want(lineage, &uuid, name, 0, error);
}

lahar_status lahar_lineage_collect(struct lahar_lineage *lineage, lahar_error *error)
{
    struct collector collector = {.lineage = lineage};
    const lahar_allocator *allocator = lineage->provenance->allocator;
    const bool is_deep =
        lineage->options.ancestor_depth != 0 || lineage->options.descendant_depth != 0;
    LAHAR_TRY(lahar_lineage_source_init(&collector.source, lineage->provenance, lineage->snapshot,
                                        is_deep, &lineage->is_cancelled, &lineage->percent, error));
    collector.walk.snapshot = collector.source.snapshot;
    lahar_status status = want_start(&collector, error);
    while (status == LAHAR_OK && collector.first < lineage->flowfiles.count && !collector.is_full) {
        status = collect_generation(&collector, error);
    }
    lineage->is_truncated = lineage->is_truncated || collector.is_full;
    if (status == LAHAR_OK && collector.source.damage.status != LAHAR_OK) {
        status = lahar_fail(error, LAHAR_CORRUPT, "%s", collector.source.damage.message);
    }
    lahar_batch_walk_deinit(&collector.walk, allocator);
    lahar_lineage_source_deinit(&collector.source);
    lahar_release(allocator, collector.table.slots);
    lahar_release(allocator, collector.ids.ids);
    return status;
}
