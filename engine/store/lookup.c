/* Events by id. An id below the rolled id belongs to one group of event files; which of
 * its streams has it is asked of the shards, whose ordinal tables are in memory,
 * before a block is inflated. */
#include <string.h>

#include "engine/store/cursor.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

struct lahar_lookup {
    lahar_store *store;
    struct lahar_snapshot *snapshot;
    struct lahar_block *block; /* of the last event */
    struct lahar_batch_walk walk;
    uint64_t *ids;
    size_t id_count;
    size_t next;            /* of ids */
    const uint32_t *fields; /* NULL: all */
    size_t field_count;
};

lahar_status lahar_lookup_create(lahar_store *store, struct lahar_snapshot *snapshot,
                                 const uint64_t *ids, size_t id_count,
                                 struct lahar_lookup **lookup_out, lahar_error *error)
{
    struct lahar_lookup *lookup = lahar_allocate_zeroed(&store->allocator, 1, sizeof *lookup);
    if (lookup == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a look-up");
    }
    lookup->store = store;
    lookup->snapshot = snapshot;
    lookup->walk.snapshot = snapshot;
    lookup->id_count = id_count;
    lookup->ids = lahar_allocate_zeroed(&store->allocator, id_count + 1, sizeof *ids);
    if (lookup->ids == NULL) {
        lahar_lookup_destroy(lookup);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to look up %zu events", id_count);
    }
    if (id_count != 0) {
        memcpy(lookup->ids, ids, id_count * sizeof *ids);
    }
    *lookup_out = lookup;
    return LAHAR_OK;
}

void lahar_lookup_limit_fields(struct lahar_lookup *lookup, const uint32_t *fields,
                               size_t field_count)
{
    lookup->fields = fields;
    lookup->field_count = field_count;
}

void lahar_lookup_destroy(struct lahar_lookup *lookup)
{
    if (lookup == NULL) {
        return;
    }
    lahar_block_release(lookup->block);
    lahar_batch_walk_deinit(&lookup->walk, &lookup->store->allocator);
    lahar_release(&lookup->store->allocator, lookup->ids);
    lahar_release(&lookup->store->allocator, lookup);
}

static lahar_status read_resident(struct lahar_lookup *lookup, uint64_t id,
                                  struct lahar_arena *arena, lahar_event *event_out,
                                  lahar_error *error)
{
    const size_t batch = lahar_snapshot_find_batch(lookup->snapshot, id);
    if (batch == lahar_snapshot_batch_count(lookup->snapshot)) {
        return LAHAR_NOT_FOUND;
    }
    const struct lahar_resident_batch *rows = lahar_snapshot_batch(lookup->snapshot, batch);
    if (id < rows->first_id || id - rows->first_id >= rows->event_count) {
        return LAHAR_NOT_FOUND;
    }
    LAHAR_TRY(lahar_batch_walk_enter(&lookup->walk, batch, &lookup->store->allocator, error));
    return lahar_batch_walk_read(&lookup->walk, (uint32_t)(id - rows->first_id), arena, event_out,
                                 error);
}

/* Whether the file may hold the id, from memory alone. */
static bool may_hold(const struct lahar_snapshot_segment *file, uint64_t id)
{
    const struct lahar_segment_info *info = lahar_segment_describe(file->segment);
    if (id < info->first_id || id > info->last_id) {
        return false;
    }
    if (file->shard == NULL) {
        return true;
    }
    const uint32_t ordinal = lahar_shard_ordinal(file->shard, id);
    return ordinal < lahar_shard_document_count(file->shard) &&
           lahar_shard_id(file->shard, ordinal) == id;
}

static lahar_status read_file(struct lahar_lookup *lookup,
                              const struct lahar_snapshot_segment *file, uint64_t id,
                              struct lahar_arena *arena, lahar_event *event_out, lahar_error *error)
{
    const uint32_t block = lahar_segment_find_block(file->segment, id);
    if (block >= lahar_segment_describe(file->segment)->block_count ||
        lahar_segment_block_info(file->segment, block)->first_id > id) {
        return LAHAR_NOT_FOUND;
    }
    lahar_block_release(lookup->block);
    lookup->block = NULL;
    LAHAR_TRY(lahar_segment_load(file->segment, block, &lookup->block, error));
    const uint32_t row = lahar_block_find(lookup->block, id);
    if (row >= lahar_block_row_count(lookup->block) || lahar_block_id(lookup->block, row) != id) {
        return LAHAR_NOT_FOUND;
    }
    return lahar_block_read_fields(lookup->block, row, lookup->fields, lookup->field_count, arena,
                                   event_out, error);
}

/* An id that no readable file has may have been in one that is lost. */
static lahar_status check_lost(const struct lahar_lookup *lookup, uint64_t id, lahar_error *error)
{
    const size_t count = lahar_snapshot_lost_count(lookup->snapshot);
    for (size_t i = 0; i < count; i++) {
        const struct lahar_segment_info *info = lahar_snapshot_lost(lookup->snapshot, i);
        if (id >= info->first_id && id <= info->last_id) {
            return lahar_fail(error, LAHAR_CORRUPT,
                              "event %llu may be in event file %llu, which cannot be read",
                              (unsigned long long)id, (unsigned long long)info->number);
        }
    }
    return LAHAR_NOT_FOUND;
}

static lahar_status read_stored(struct lahar_lookup *lookup, uint64_t id, struct lahar_arena *arena,
                                lahar_event *event_out, lahar_error *error)
{
    size_t low = 0;
    size_t high = lahar_snapshot_segment_count(lookup->snapshot);
    /* The first file that begins above the id. */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct lahar_snapshot_segment *file =
            lahar_snapshot_segment(lookup->snapshot, middle);
        if (lahar_segment_describe(file->segment)->first_id <= id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low-- > 0 && lahar_snapshot_reach(lookup->snapshot, low) >= id) {
        const struct lahar_snapshot_segment *file = lahar_snapshot_segment(lookup->snapshot, low);
        if (may_hold(file, id)) {
            const lahar_status status = read_file(lookup, file, id, arena, event_out, error);
            if (status != LAHAR_NOT_FOUND) {
                return status;
            }
        }
    }
    return check_lost(lookup, id, error);
}

lahar_status lahar_lookup_next(struct lahar_lookup *lookup, struct lahar_arena *arena,
                               lahar_event *event_out, lahar_error *error)
{
    while (lookup->next < lookup->id_count) {
        const uint64_t id = lookup->ids[lookup->next++];
        lahar_status status = LAHAR_NOT_FOUND;
        if (id < lahar_snapshot_end(lookup->snapshot)) {
            status = read_resident(lookup, id, arena, event_out, error);
            if (status == LAHAR_NOT_FOUND) {
                status = read_stored(lookup, id, arena, event_out, error);
            }
        }
        if (status != LAHAR_NOT_FOUND) {
            return status;
        }
    }
    return LAHAR_NOT_FOUND;
}
