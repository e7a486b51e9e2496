/* Events by id, in the order asked for. Where several are asked for, the block of each is found
 * first, from tables in memory, and a block stays until the last of its ids has been read, so
 * that it is read and inflated once. An id below the rolled id belongs to one group of event files;
 * which of its streams has it is asked of the shards, whose ordinal tables are in memory, before a
 * block is inflated. */
#include <stdlib.h>
#include <string.h>

#include "engine/store/cursor.h"
#include "engine/store/lost_events.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

enum {
    ANNOUNCED_BLOCKS = 8 /* that are on their way while one is read */
};

#define NO_PLACE       UINT32_MAX
#define HELD_BYTES_MAX (UINT64_C(64) << 20) /* of stored blocks that wait for further ids */

/* A block that holds some of the ids. */
struct place {
    uint32_t file; /* of the snapshot's */
    uint32_t block;
    uint32_t uses; /* ids not read yet */
    struct lahar_block *loaded;
};

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

    /* Where several ids are asked for, from the first read of an event file on. */
    struct place *places; /* by file and block */
    size_t place_count;
    uint32_t *place_of; /* by id; NO_PLACE: not known beforehand */
    uint64_t held_bytes;
    size_t announced; /* places before this one */
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
    for (size_t i = 0; i < lookup->place_count; i++) {
        lahar_block_release(lookup->places[i].loaded);
    }
    lahar_release(&lookup->store->allocator, lookup->places);
    lahar_release(&lookup->store->allocator, lookup->place_of);
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

/* --- places ---------------------------------------------------------------------------- */

/* The first file that begins above the id. */
static size_t find_end(const struct lahar_lookup *lookup, uint64_t id)
{
    size_t low = 0;
    size_t high = lahar_snapshot_segment_count(lookup->snapshot);
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
    return low;
}

/* Finds the block of an id where a shard vouches for it. */
static bool find_place(const struct lahar_lookup *lookup, uint64_t id, struct place *place_out)
{
    size_t at = find_end(lookup, id);
    while (at-- > 0 && lahar_snapshot_reach(lookup->snapshot, at) >= id) {
        const struct lahar_snapshot_segment *file = lahar_snapshot_segment(lookup->snapshot, at);
        if (file->shard == NULL || !may_hold(file, id)) {
            continue;
        }
        const uint32_t block = lahar_segment_find_block(file->segment, id);
        *place_out = (struct place){.file = (uint32_t)at, .block = block};
        return block < lahar_segment_describe(file->segment)->block_count;
    }
    return false;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;
    if (left->file != right->file) {
        return left->file < right->file ? -1 : 1;
    }
    return left->block < right->block ? -1 : left->block > right->block;
}

/* Sorts the places, makes equal ones one, and says for each id which is its. */
static void merge_places(struct lahar_lookup *lookup)
{
    struct place *places = lookup->places;
    size_t kept = 0;
    qsort(places, lookup->place_count, sizeof *places, compare_places);
    for (size_t i = 0; i < lookup->place_count; i++) {
        if (kept == 0 || compare_places(&places[kept - 1], &places[i]) != 0) {
            places[kept++] = places[i];
        }
    }
    lookup->place_count = kept;
    for (size_t i = 0; i < lookup->id_count; i++) {
        struct place wanted;
        lookup->place_of[i] = NO_PLACE;
        if (find_place(lookup, lookup->ids[i], &wanted)) {
            struct place *place = bsearch(&wanted, places, kept, sizeof *places, compare_places);
            LAHAR_ASSERT(place != NULL);
            place->uses++;
            lookup->place_of[i] = (uint32_t)(place - places);
        }
    }
}

/* Without memory for it every id is looked up by itself. */
static void find_places(struct lahar_lookup *lookup)
{
    const lahar_allocator *allocator = &lookup->store->allocator;
    if (lookup->id_count < 2 || lookup->id_count >= NO_PLACE || lookup->place_of != NULL) {
        return;
    }
    lookup->places = lahar_allocate_zeroed(allocator, lookup->id_count, sizeof *lookup->places);
    lookup->place_of = lahar_allocate_zeroed(allocator, lookup->id_count, sizeof *lookup->place_of);
    if (lookup->places == NULL || lookup->place_of == NULL) {
        lahar_release(allocator, lookup->places);
        lahar_release(allocator, lookup->place_of);
        lookup->places = NULL;
        lookup->place_of = NULL;
        return;
    }
    for (size_t i = 0; i < lookup->id_count; i++) {
        lookup->place_count +=
            find_place(lookup, lookup->ids[i], &lookup->places[lookup->place_count]);
    }
    if (lookup->place_count != 0) {
        merge_places(lookup);
    } else {
        for (size_t i = 0; i < lookup->id_count; i++) {
            lookup->place_of[i] = NO_PLACE;
        }
    }
}

/* The places right behind one that is to be read are likely to be next. */
static void announce_places(struct lahar_lookup *lookup, size_t place)
{
    size_t next = lookup->announced > place ? lookup->announced : place + 1;
    for (; next < lookup->place_count && next <= place + ANNOUNCED_BLOCKS; next++) {
        const struct place *ahead = &lookup->places[next];
        lahar_segment_announce(lahar_snapshot_segment(lookup->snapshot, ahead->file)->segment,
                               ahead->block);
        lookup->announced = next + 1;
    }
}

/* Makes the block of a place the lookup's own for this call, or a reference of the place's. */
static lahar_status enter_place(struct lahar_lookup *lookup, struct place *place,
                                struct lahar_block **block_out, lahar_error *error)
{
    const struct lahar_snapshot_segment *file =
        lahar_snapshot_segment(lookup->snapshot, place->file);
    const uint64_t size = lahar_segment_block_info(file->segment, place->block)->size;
    struct lahar_block *block = place->loaded;
    place->uses--;
    if (block == NULL) {
        announce_places(lookup, (size_t)(place - lookup->places));
        LAHAR_TRY(lahar_segment_load(file->segment, place->block, &block, error));
        if (place->uses != 0 && lookup->held_bytes + size <= HELD_BYTES_MAX) {
            place->loaded = block;
            lookup->held_bytes += size;
        } else {
            lookup->block = block;
        }
    } else if (place->uses == 0) {
        place->loaded = NULL;
        lookup->held_bytes -= size;
        lookup->block = block;
    }
    *block_out = block;
    return LAHAR_OK;
}

static lahar_status read_place(struct lahar_lookup *lookup, struct place *place, uint64_t id,
                               struct lahar_arena *arena, lahar_event *event_out,
                               lahar_error *error)
{
    struct lahar_block *block = NULL;
    lahar_block_release(lookup->block);
    lookup->block = NULL;
    LAHAR_TRY(enter_place(lookup, place, &block, error));
    const uint32_t row = lahar_block_find(block, id);
    if (row >= lahar_block_row_count(block) || lahar_block_id(block, row) != id) {
        return lahar_fail(error, LAHAR_CORRUPT, "event %llu is in the index and not in its block",
                          (unsigned long long)id);
    }
    return lahar_block_read_fields(block, row, lookup->fields, lookup->field_count, arena,
                                   event_out, error);
}

/* --- one id ------------------------------------------------------------------------------ */

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

/* An id that no readable file has may be among those that are lost. */
static lahar_status check_lost(const struct lahar_lookup *lookup, uint64_t id, lahar_error *error)
{
    const size_t count = lahar_snapshot_lost_count(lookup->snapshot);
    for (size_t i = 0; i < count; i++) {
        const struct lahar_segment_info *info = lahar_snapshot_lost(lookup->snapshot, i);
        if (id >= info->first_id && id <= info->last_id) {
            return lahar_lost_events_fail(info, error);
        }
    }
    return LAHAR_NOT_FOUND;
}

static lahar_status read_stored(struct lahar_lookup *lookup, uint64_t id, struct lahar_arena *arena,
                                lahar_event *event_out, lahar_error *error)
{
    size_t low = find_end(lookup, id);
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
                find_places(lookup);
                const uint32_t place =
                    lookup->place_of == NULL ? NO_PLACE : lookup->place_of[lookup->next - 1];
                status = place == NO_PLACE ? read_stored(lookup, id, arena, event_out, error)
                                           : read_place(lookup, &lookup->places[place], id, arena,
                                                        event_out, error);
            }
        }
        if (status != LAHAR_NOT_FOUND) {
            return status;
        }
    }
    return LAHAR_NOT_FOUND;
}
