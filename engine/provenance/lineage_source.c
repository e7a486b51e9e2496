#include "engine/provenance/lineage_source.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/event/flowfile.h"
#include "io/base/error.h"

enum {
    CANCEL_CHECK_EVENTS = 1024 /* read between two looks at the flag */
};

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a lineage");
}

static lahar_status check(const struct lahar_lineage_source *source, lahar_error *error)
{
    return atomic_load_explicit(source->is_cancelled, memory_order_relaxed)
               ? lahar_fail(error, LAHAR_CANCELLED, "the lineage was cancelled")
               : LAHAR_OK;
}

/* Damage costs what it hides, not the rest. */
static void note_damage(struct lahar_lineage_source *source, const lahar_error *damage)
{
    if (source->damage.status == LAHAR_OK) {
        source->damage = *damage;
    }
}

lahar_status lahar_lineage_source_init(struct lahar_lineage_source *source,
                                       struct lahar_provenance *provenance, bool uses_table,
                                       const atomic_bool *is_cancelled, atomic_uint *percent,
                                       lahar_error *error)
{
    *source = (struct lahar_lineage_source){.provenance = provenance,
                                            .uses_table = uses_table,
                                            .is_cancelled = is_cancelled,
                                            .percent = percent};
    LAHAR_TRY(lahar_snapshot_take(provenance->store, &source->snapshot, error));
    const size_t count = lahar_snapshot_segment_count(source->snapshot);
    source->sets = lahar_allocate_zeroed(provenance->allocator, count + 1, sizeof *source->sets);
    if (source->sets == NULL) {
        lahar_snapshot_release(source->snapshot);
        return no_memory(error);
    }
    for (size_t i = 0; i < lahar_snapshot_lost_count(source->snapshot); i++) {
        const struct lahar_segment_info *info = lahar_snapshot_lost(source->snapshot, i);
        if (info->stream == provenance->stream) {
            (void)lahar_fail(&source->damage, LAHAR_CORRUPT,
                             "the file of events %llu to %llu cannot be read",
                             (unsigned long long)info->first_id, (unsigned long long)info->last_id);
        }
    }
    return LAHAR_OK;
}

void lahar_lineage_source_deinit(struct lahar_lineage_source *source)
{
    const lahar_allocator *allocator = source->provenance->allocator;
    for (size_t i = 0; i < lahar_snapshot_segment_count(source->snapshot); i++) {
        if (source->sets[i].words != NULL) {
            lahar_docset_deinit(&source->sets[i]);
        }
    }
    lahar_release(allocator, source->sets);
    lahar_release(allocator, source->references);
    lahar_snapshot_release(source->snapshot);
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

/* --- names of an event ---------------------------------------------------------------------------
 */

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

/* --- reading through
 * ------------------------------------------------------------------------------ */

/* What is done with the names of one event while reading through. */
struct reading {
    struct lahar_lineage_source *source;
    const struct lahar_uuid_map *wanted; /* NULL: all names into the table */
    uint32_t first;                      /* entry of wanted */
    struct lahar_id_list *list;
    uint64_t id; /* of the event */
    lahar_status status;
    lahar_error *error;
};

static uint64_t hash_of(const lahar_uuid *uuid)
{
    return XXH3_64bits(uuid->bytes, sizeof uuid->bytes);
}

static lahar_status add_reference(struct lahar_lineage_source *source, uint64_t hash, uint64_t id,
                                  lahar_error *error)
{
    if (source->reference_count == source->reference_capacity) {
        const size_t capacity =
            source->reference_capacity == 0 ? 1024 : source->reference_capacity * 2;
        struct lahar_name_reference *larger = lahar_reallocate(
            source->provenance->allocator, source->references, capacity * sizeof *larger);
        if (larger == NULL) {
            return no_memory(error);
        }
        source->references = larger;
        source->reference_capacity = capacity;
    }
    source->references[source->reference_count++] = (struct lahar_name_reference){hash, id};
    return LAHAR_OK;
}

static bool take_name(void *context, const lahar_uuid *uuid)
{
    struct reading *reading = context;
    if (reading->wanted == NULL) {
        reading->status =
            add_reference(reading->source, hash_of(uuid), reading->id, reading->error);
        return reading->status == LAHAR_OK;
    }
    const struct lahar_uuid_entry *entry = lahar_uuid_map_find(reading->wanted, uuid);
    if (entry == NULL || entry < reading->wanted->entries + reading->first) {
        return true;
    }
    reading->status = lahar_id_list_add(reading->list, reading->source->provenance->allocator,
                                        reading->id, reading->error);
    return false;
}

static lahar_status read_range(struct reading *reading, uint64_t from_id, uint64_t to_id,
                               lahar_error *error)
{
    struct lahar_lineage_source *source = reading->source;
    struct lahar_provenance *provenance = source->provenance;
    lahar_scan_options options;
    struct lahar_scan *scan = NULL;
    struct lahar_arena arena;
    lahar_event event;
    uint64_t read_count = 0;
    lahar_scan_options_init(&options);
    options.from_id = from_id;
    options.to_id = to_id;
    options.stream = provenance->stream;
    lahar_arena_init(&arena, provenance->allocator, 0);
    lahar_status status =
        lahar_scan_create(provenance->store, source->snapshot, &options, &scan, error);
    while (status == LAHAR_OK) {
        lahar_error damage = {.status = LAHAR_OK};
        lahar_arena_reset(&arena);
        status = lahar_scan_next(scan, &arena, &event, &damage);
        if (status == LAHAR_CORRUPT || status == LAHAR_IO) {
            note_damage(source, &damage);
            status = status == LAHAR_CORRUPT ? LAHAR_OK : LAHAR_NOT_FOUND;
            continue;
        }
        if (status == LAHAR_OK) {
            reading->id = event.id;
            (void)lahar_prov_each_name(&provenance->fields, &event, take_name, reading);
            status = reading->status;
        } else if (status != LAHAR_NOT_FOUND && error != NULL) {
            *error = damage;
        }
        if (status == LAHAR_OK && ++read_count % CANCEL_CHECK_EVENTS == 0) {
            status = check(source, error);
        }
    }
    lahar_scan_destroy(scan);
    lahar_arena_deinit(&arena);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

/* Files without a shard and what is in memory. */
static lahar_status read_through(struct reading *reading, lahar_error *error)
{
    const struct lahar_snapshot *snapshot = reading->source->snapshot;
    for (size_t i = 0; i < lahar_snapshot_segment_count(snapshot); i++) {
        const struct lahar_snapshot_segment *segment = lahar_snapshot_segment(snapshot, i);
        const struct lahar_segment_info *info = lahar_segment_describe(segment->segment);
        if (info->stream == reading->source->provenance->stream && segment->shard == NULL) {
            LAHAR_TRY(read_range(reading, info->first_id, info->last_id + 1, error));
        }
    }
    if (lahar_snapshot_batch_count(snapshot) == 0) {
        return LAHAR_OK;
    }
    return read_range(reading, lahar_snapshot_batch(snapshot, 0)->first_id,
                      lahar_snapshot_end(snapshot), error);
}

static int compare_references(const void *a, const void *b)
{
    const struct lahar_name_reference *left = a;
    const struct lahar_name_reference *right = b;
    return left->hash < right->hash ? -1 : left->hash > right->hash;
}

static lahar_status build_table(struct lahar_lineage_source *source, lahar_error *error)
{
    struct reading reading = {.source = source, .error = error};
    LAHAR_TRY(read_through(&reading, error));
    if (source->reference_count != 0) {
        qsort(source->references, source->reference_count, sizeof *source->references,
              compare_references);
    }
    source->has_table = true;
    return LAHAR_OK;
}

static lahar_status look_up_table(struct lahar_lineage_source *source, const lahar_uuid *uuid,
                                  struct lahar_id_list *list, lahar_error *error)
{
    const uint64_t hash = hash_of(uuid);
    size_t low = 0;
    size_t high = source->reference_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (source->references[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < source->reference_count && source->references[low].hash == hash; low++) {
        LAHAR_TRY(lahar_id_list_add(list, source->provenance->allocator, source->references[low].id,
                                    error));
    }
    return LAHAR_OK;
}

/* --- shards -------------------------------------------------------------------------------------
 */

static lahar_status ask_shard(struct lahar_lineage_source *source, size_t index,
                              const struct lahar_uuid_map *wanted, uint32_t first,
                              struct lahar_id_list *list, lahar_error *error)
{
    static const char *const names[] = {"uuid", "parents", "children", "source_system"};
    const struct lahar_snapshot_segment *segment = lahar_snapshot_segment(source->snapshot, index);
    const lahar_allocator *allocator = source->provenance->allocator;
    struct lahar_docset *set = &source->sets[index];
    if (set->words == NULL) {
        LAHAR_TRY(
            lahar_docset_init(set, lahar_shard_document_count(segment->shard), allocator, error));
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint32_t field = 0;
        if (!lahar_shard_find_field(segment->shard, names[i], strlen(names[i]), LAHAR_CLASS_UUID,
                                    &field)) {
            continue;
        }
        for (uint32_t j = first; j < wanted->count; j++) {
            LAHAR_TRY(
                lahar_shard_uuid(segment->shard, field, &wanted->entries[j].uuid, set, error));
        }
    }
    bool is_empty = true;
    for (uint32_t d = lahar_docset_next(set, 0); d < set->universe;
         d = lahar_docset_next(set, d + 1)) {
        is_empty = false;
        LAHAR_TRY(lahar_id_list_add(list, allocator, lahar_shard_id(segment->shard, d), error));
    }
    if (!is_empty) {
        lahar_docset_clear(set);
    }
    return LAHAR_OK;
}

/* A shard that fails is passed by: its file is read through for this question. */
static lahar_status ask_segment(struct lahar_lineage_source *source, size_t index,
                                const struct lahar_uuid_map *wanted, uint32_t first,
                                struct lahar_id_list *list, lahar_error *error)
{
    const struct lahar_snapshot_segment *segment = lahar_snapshot_segment(source->snapshot, index);
    const struct lahar_segment_info *info = lahar_segment_describe(segment->segment);
    lahar_error reason = {.status = LAHAR_OK};
    if (info->stream != source->provenance->stream || segment->shard == NULL) {
        return LAHAR_OK;
    }
    lahar_status status = ask_shard(source, index, wanted, first, list, &reason);
    if (status == LAHAR_CORRUPT || status == LAHAR_IO) {
        struct reading reading = {
            .source = source, .wanted = wanted, .first = first, .list = list, .error = error};
        lahar_docset_clear(&source->sets[index]);
        return read_range(&reading, info->first_id, info->last_id + 1, error);
    }
    return status == LAHAR_OK ? LAHAR_OK : lahar_fail(error, status, "%s", reason.message);
}

lahar_status lahar_lineage_source_find(struct lahar_lineage_source *source,
                                       const struct lahar_uuid_map *wanted, uint32_t first,
                                       struct lahar_id_list *list, lahar_error *error)
{
    const size_t count = lahar_snapshot_segment_count(source->snapshot);
    for (size_t i = 0; i < count; i++) {
        LAHAR_TRY(check(source, error));
        LAHAR_TRY(ask_segment(source, i, wanted, first, list, error));
        if (first == 0) {
            atomic_store_explicit(source->percent, (unsigned)(99 * (i + 1) / (count + 1)),
                                  memory_order_relaxed);
        }
    }
    if (!source->uses_table) {
        struct reading reading = {
            .source = source, .wanted = wanted, .first = first, .list = list, .error = error};
        return read_through(&reading, error);
    }
    if (!source->has_table) {
        LAHAR_TRY(build_table(source, error));
    }
    for (uint32_t i = first; i < wanted->count; i++) {
        LAHAR_TRY(look_up_table(source, &wanted->entries[i].uuid, list, error));
    }
    return LAHAR_OK;
}
