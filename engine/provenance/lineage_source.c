#include "engine/provenance/lineage_source.h"

#include "engine/provenance/lineage_shards.h"
#include "engine/store/lost_events.h"
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
                                       struct lahar_provenance *provenance,
                                       struct lahar_snapshot *snapshot, bool uses_table,
                                       const atomic_bool *is_cancelled, atomic_uint *percent,
                                       lahar_error *error)
{
    *source = (struct lahar_lineage_source){.provenance = provenance,
                                            .snapshot = snapshot,
                                            .uses_table = uses_table,
                                            .is_cancelled = is_cancelled,
                                            .percent = percent};
    const size_t count = lahar_snapshot_segment_count(source->snapshot);
    source->sets = lahar_allocate_zeroed(provenance->allocator, count + 1, sizeof *source->sets);
    if (source->sets == NULL) {
        return no_memory(error);
    }
    for (size_t i = 0; i < lahar_snapshot_lost_count(source->snapshot); i++) {
        const struct lahar_segment_info *info = lahar_snapshot_lost(source->snapshot, i);
        if (info->stream == provenance->stream || info->stream == LAHAR_ANY_STREAM) {
            (void)lahar_lost_events_fail(info, &source->damage);
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
    lahar_release(allocator, source->references.items);
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

static bool take_name(void *context, const lahar_uuid *uuid)
{
    struct reading *reading = context;
    const struct lahar_uuid_entry *entry = lahar_uuid_map_find(reading->wanted, uuid);
    if (entry == NULL || entry < reading->wanted->entries + reading->first) {
        return true;
    }
    reading->status = lahar_id_list_add(reading->list, reading->source->provenance->allocator,
                                        reading->id, reading->error);
    return false;
}

/* Notes the event for this question, or its names for all that will come. */
static lahar_status take_event(struct reading *reading, const lahar_event *event)
{
    struct lahar_lineage_source *source = reading->source;
    if (reading->wanted == NULL) {
        return lahar_name_references_add(&source->references, source->provenance->allocator,
                                         &source->provenance->fields, event, reading->error);
    }
    reading->id = event->id;
    (void)lahar_prov_each_name(&source->provenance->fields, event, take_name, reading);
    return reading->status;
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
            status = take_event(reading, &event);
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

/* Files without a shard. */
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
    return LAHAR_OK;
}

static lahar_status ask_files_without_shard(struct lahar_lineage_source *source,
                                            const struct lahar_uuid_map *wanted, uint32_t first,
                                            struct lahar_id_list *list, lahar_error *error)
{
    struct reading reading = {.source = source, .error = error};
    if (!source->uses_table) {
        reading.wanted = wanted;
        reading.first = first;
        reading.list = list;
        return read_through(&reading, error);
    }
    if (!source->has_table) {
        LAHAR_TRY(read_through(&reading, error));
        lahar_name_references_sort(&source->references);
        source->has_table = true;
    }
    for (uint32_t i = first; i < wanted->count; i++) {
        LAHAR_TRY(lahar_name_references_find(&source->references, &wanted->entries[i].uuid,
                                             UINT64_MAX, source->provenance->allocator, list,
                                             error));
    }
    return LAHAR_OK;
}

static lahar_status ask_memory(struct lahar_lineage_source *source,
                               const struct lahar_uuid_map *wanted, uint32_t first,
                               struct lahar_id_list *list, lahar_error *error)
{
    const struct lahar_snapshot *snapshot = source->snapshot;
    struct reading reading = {
        .source = source, .wanted = wanted, .first = first, .list = list, .error = error};
    uint64_t missing_end = 0;
    lahar_error damage = {.status = LAHAR_OK};
    LAHAR_TRY(lahar_resident_names_find(source->provenance, snapshot, wanted, first,
                                        source->is_cancelled, list, &missing_end, &damage, error));
    if (damage.status != LAHAR_OK) {
        note_damage(source, &damage);
    }
    const uint64_t begin = lahar_snapshot_batch_count(snapshot) == 0
                               ? missing_end
                               : lahar_snapshot_batch(snapshot, 0)->first_id;
    return begin < missing_end ? read_range(&reading, begin, missing_end, error) : LAHAR_OK;
}

/* Files whose shards failed for this question. */
static lahar_status read_failed(struct lahar_lineage_source *source,
                                const struct lahar_shard_asking *asking, struct lahar_id_list *list,
                                lahar_error *error)
{
    struct reading reading = {.source = source,
                              .wanted = asking->wanted,
                              .first = asking->first,
                              .list = list,
                              .error = error};
    for (size_t i = 0; i < lahar_snapshot_segment_count(source->snapshot); i++) {
        if (lahar_shard_asking_must_read(asking, i)) {
            const struct lahar_segment_info *info =
                lahar_segment_describe(lahar_snapshot_segment(source->snapshot, i)->segment);
            LAHAR_TRY(read_range(&reading, info->first_id, info->last_id + 1, error));
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_lineage_source_find(struct lahar_lineage_source *source,
                                       const struct lahar_uuid_map *wanted, uint32_t first,
                                       struct lahar_id_list *list, lahar_error *error)
{
    struct lahar_shard_asking asking;
    LAHAR_TRY(check(source, error));
    LAHAR_TRY(lahar_shard_asking_begin(&asking, source, wanted, first, error));
    lahar_status status = ask_memory(source, wanted, first, list, error);
    if (status == LAHAR_OK) {
        status = ask_files_without_shard(source, wanted, first, list, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_asking_end(&asking, list, error);
    } else {
        lahar_shard_asking_stop(&asking);
    }
    if (status == LAHAR_OK) {
        status = read_failed(source, &asking, list, error);
    }
    lahar_shard_asking_deinit(&asking);
    return status;
}
