#include "engine/provenance/resident_names.h"

#include <string.h>

#include "engine/provenance/handle.h"
#include "engine/store/cursor.h"
#include "io/base/error.h"

enum {
    CANCEL_CHECK_EVENTS = 1024 /* read between two looks at the flag */
};

void lahar_resident_names_init(struct lahar_resident_names *names)
{
    *names = (struct lahar_resident_names){.run_count = 0};
    LAHAR_ASSERT(pthread_mutex_init(&names->lock, NULL) == 0);
}

void lahar_resident_names_deinit(struct lahar_resident_names *names,
                                 const lahar_allocator *allocator)
{
    for (size_t i = 0; i < names->run_count; i++) {
        lahar_release(allocator, names->runs[i].list.items);
    }
    (void)pthread_mutex_destroy(&names->lock);
}

/* --- runs ------------------------------------------------------------------------------------- */

/* Where the table ends: events at and behind it are not in it. */
static uint64_t end_of(const struct lahar_resident_names *names)
{
    return names->run_count == 0 ? 0 : names->runs[names->run_count - 1].end_id;
}

/* Forgets the runs whose events all lie below. */
static void drop_below(struct lahar_resident_names *names, const lahar_allocator *allocator,
                       uint64_t id)
{
    size_t dropped = 0;
    while (dropped < names->run_count && names->runs[dropped].end_id <= id) {
        lahar_release(allocator, names->runs[dropped++].list.items);
    }
    names->run_count -= dropped;
    memmove(names->runs, names->runs + dropped, names->run_count * sizeof names->runs[0]);
}

/* Two sorted lists into one. */
static void merge_lists(const struct lahar_name_references *a,
                        const struct lahar_name_references *b, struct lahar_name_references *merged)
{
    size_t i = 0;
    size_t j = 0;
    while (i < a->count || j < b->count) {
        const bool takes_a =
            j == b->count || (i < a->count && a->items[i].hash <= b->items[j].hash);
        merged->items[merged->count++] = takes_a ? a->items[i++] : b->items[j++];
    }
}

/* Joins the last two runs; ids of the first are lower, so that equal names stay in order. */
static lahar_status join_last(struct lahar_resident_names *names, const lahar_allocator *allocator,
                              lahar_error *error)
{
    struct lahar_name_run *left = &names->runs[names->run_count - 2];
    struct lahar_name_run *right = left + 1;
    struct lahar_name_references merged = {.items = NULL};
    LAHAR_TRY(lahar_name_references_reserve(&merged, allocator,
                                            left->list.count + right->list.count + 1, error));
    merge_lists(&left->list, &right->list, &merged);
    lahar_release(allocator, left->list.items);
    lahar_release(allocator, right->list.items);
    left->list = merged;
    left->end_id = right->end_id;
    names->run_count--;
    return LAHAR_OK;
}

/* Keeps runs few: each has more than twice as many references as the next. */
static lahar_status join_runs(struct lahar_resident_names *names, const lahar_allocator *allocator,
                              lahar_error *error)
{
    while (names->run_count >= 2 && names->runs[names->run_count - 2].list.count <=
                                        2 * names->runs[names->run_count - 1].list.count) {
        LAHAR_TRY(join_last(names, allocator, error));
    }
    return LAHAR_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static lahar_status read_batch(struct lahar_provenance *provenance, struct lahar_batch_walk *walk,
                               size_t number, struct lahar_arena *arena, struct lahar_name_run *run,
                               lahar_error *error)
{
    const struct lahar_resident_batch *batch = lahar_snapshot_batch(walk->snapshot, number);
    LAHAR_TRY(lahar_batch_walk_enter(walk, number, provenance->allocator, error));
    for (uint32_t row = 0; row < batch->event_count; row++) {
        lahar_event event;
        if (lahar_batch_walk_stream(walk, row) != provenance->stream) {
            continue;
        }
        lahar_arena_reset(arena);
        LAHAR_TRY(lahar_batch_walk_read(walk, row, arena, &event, error));
        LAHAR_TRY(lahar_name_references_add(&run->list, provenance->allocator, &provenance->fields,
                                            &event, error));
    }
    return LAHAR_OK;
}

/* Reads the batches of the snapshot that the table has not seen into a run of its own. */
static lahar_status read_run(struct lahar_provenance *provenance,
                             const struct lahar_snapshot *snapshot, const atomic_bool *is_cancelled,
                             struct lahar_name_run *run, lahar_error *error)
{
    struct lahar_batch_walk walk = {.snapshot = snapshot};
    struct lahar_arena arena;
    lahar_status status = LAHAR_OK;
    uint64_t read_count = 0;
    lahar_arena_init(&arena, provenance->allocator, 0);
    for (size_t i = lahar_snapshot_find_batch(snapshot, run->first_id);
         i < lahar_snapshot_batch_count(snapshot) && status == LAHAR_OK; i++) {
        lahar_error reason = {.status = LAHAR_OK};
        status = read_batch(provenance, &walk, i, &arena, run, &reason);
        if (status == LAHAR_CORRUPT) {
            provenance->names.damage = reason;
            status = LAHAR_OK;
        } else if (status != LAHAR_OK) {
            status = lahar_fail(error, status, "%s", reason.message);
        }
        read_count += lahar_snapshot_batch(snapshot, i)->event_count;
        if (status == LAHAR_OK && read_count >= CANCEL_CHECK_EVENTS) {
            read_count = 0;
            if (atomic_load_explicit(is_cancelled, memory_order_relaxed)) {
                status = lahar_fail(error, LAHAR_CANCELLED, "the lineage was cancelled");
            }
        }
    }
    lahar_batch_walk_deinit(&walk, provenance->allocator);
    lahar_arena_deinit(&arena);
    lahar_name_references_sort(&run->list);
    return status;
}

static lahar_status catch_up(struct lahar_provenance *provenance,
                             const struct lahar_snapshot *snapshot, const atomic_bool *is_cancelled,
                             lahar_error *error)
{
    struct lahar_resident_names *names = &provenance->names;
    const uint64_t begin = lahar_snapshot_batch(snapshot, 0)->first_id;
    drop_below(names, provenance->allocator, begin);
    struct lahar_name_run run = {.first_id = end_of(names) > begin ? end_of(names) : begin,
                                 .end_id = lahar_snapshot_end(snapshot)};
    if (run.first_id >= run.end_id) {
        return LAHAR_OK;
    }
    if (names->run_count == 0) {
        names->damage = (lahar_error){.status = LAHAR_OK};
    }
    /* Runs that could not be joined for want of memory are joined before there are more. */
    LAHAR_TRY(join_runs(names, provenance->allocator, error));
    lahar_status status = read_run(provenance, snapshot, is_cancelled, &run, error);
    if (status == LAHAR_OK) {
        names->runs[names->run_count++] = run;
        return join_runs(names, provenance->allocator, error);
    }
    lahar_release(provenance->allocator, run.list.items);
    return status;
}

lahar_status lahar_resident_names_find(struct lahar_provenance *provenance,
                                       const struct lahar_snapshot *snapshot,
                                       const struct lahar_uuid_map *wanted, uint32_t first,
                                       const atomic_bool *is_cancelled, struct lahar_id_list *list,
                                       uint64_t *missing_end_out, lahar_error *damage_out,
                                       lahar_error *error)
{
    struct lahar_resident_names *names = &provenance->names;
    const uint64_t end_id = lahar_snapshot_end(snapshot);
    *missing_end_out = 0;
    *damage_out = (lahar_error){.status = LAHAR_OK};
    if (lahar_snapshot_batch_count(snapshot) == 0) {
        return LAHAR_OK;
    }
    (void)pthread_mutex_lock(&names->lock);
    lahar_status status = catch_up(provenance, snapshot, is_cancelled, error);
    if (status == LAHAR_OK) {
        *damage_out = names->damage;
        *missing_end_out = names->run_count == 0 || names->runs[0].first_id > end_id
                               ? end_id
                               : names->runs[0].first_id;
    }
    for (size_t i = 0; i < names->run_count; i++) {
        for (uint32_t j = first; j < wanted->count && status == LAHAR_OK; j++) {
            status = lahar_name_references_find(&names->runs[i].list, &wanted->entries[j].uuid,
                                                end_id, provenance->allocator, list, error);
        }
    }
    (void)pthread_mutex_unlock(&names->lock);
    return status;
}
