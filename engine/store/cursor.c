/* Cursors of the public interface, and the walk over resident batches. */
#include "engine/store/cursor.h"

#include "engine/event/row.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

struct lahar_cursor {
    lahar_store *store;
    struct lahar_snapshot *snapshot;
    struct lahar_arena arena; /* of the present event */
    lahar_event event;
    struct lahar_scan *scan;     /* this one */
    struct lahar_lookup *lookup; /* or this one */
    lahar_authorize authorize;   /* NULL: everything may be seen */
    void *authorize_context;
};

/* --- resident batches ------------------------------------------------------------------ */

void lahar_batch_walk_deinit(struct lahar_batch_walk *walk, const lahar_allocator *allocator)
{
    lahar_release(allocator, walk->offsets);
    walk->offsets = NULL;
}

lahar_status lahar_batch_walk_enter(struct lahar_batch_walk *walk, size_t batch,
                                    const lahar_allocator *allocator, lahar_error *error)
{
    if (walk->has_offsets && walk->batch == batch) {
        return LAHAR_OK;
    }
    const struct lahar_resident_batch *rows = lahar_snapshot_batch(walk->snapshot, batch);
    walk->has_offsets = false;
    if (rows->event_count > walk->capacity) {
        uint32_t *larger =
            lahar_reallocate(allocator, walk->offsets, rows->event_count * sizeof *larger);
        if (larger == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to walk a batch of %u events",
                              rows->event_count);
        }
        walk->offsets = larger;
        walk->capacity = rows->event_count;
    }
    uint32_t offset = 0;
    for (uint32_t i = 0; i < rows->event_count; i++) {
        const uint32_t size = lahar_row_size(rows->rows + offset, rows->rows_size - offset);
        if (size == 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "events %llu to %llu: a row is cut short",
                              (unsigned long long)(rows->first_id + i),
                              (unsigned long long)(rows->first_id + rows->event_count - 1));
        }
        walk->offsets[i] = offset;
        offset += size;
    }
    walk->batch = batch;
    walk->has_offsets = true;
    return LAHAR_OK;
}

static const uint8_t *find_row(const struct lahar_batch_walk *walk, uint32_t row)
{
    return lahar_snapshot_batch(walk->snapshot, walk->batch)->rows + walk->offsets[row];
}

uint32_t lahar_batch_walk_stream(const struct lahar_batch_walk *walk, uint32_t row)
{
    return lahar_load_u32(find_row(walk, row) + 4);
}

lahar_status lahar_batch_walk_read(const struct lahar_batch_walk *walk, uint32_t row,
                                   struct lahar_arena *arena, lahar_event *event_out,
                                   lahar_error *error)
{
    const struct lahar_resident_batch *batch = lahar_snapshot_batch(walk->snapshot, walk->batch);
    const uint8_t *bytes = find_row(walk, row);
    const uint64_t id = batch->first_id + row;
    const lahar_status status =
        lahar_row_decode(bytes, lahar_load_u32(bytes), arena, event_out, error);
    if (status != LAHAR_OK) {
        lahar_error_context(error, "event %llu", (unsigned long long)id);
        return status;
    }
    event_out->id = id;
    event_out->arrival_ns = batch->arrival_ns;
    event_out->is_durable = id < lahar_snapshot_durable(walk->snapshot);
    if (event_out->time_ns == LAHAR_TIME_OF_ARRIVAL) {
        event_out->time_ns = batch->arrival_ns;
    }
    return LAHAR_OK;
}

/* --- the public interface ---------------------------------------------------------------- */

static lahar_status cursor_create(lahar_store *store, lahar_cursor **cursor_out, lahar_error *error)
{
    lahar_cursor *cursor = lahar_allocate_zeroed(&store->allocator, 1, sizeof *cursor);
    if (cursor == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a cursor");
    }
    cursor->store = store;
    lahar_arena_init(&cursor->arena, &store->allocator, 0);
    lahar_store_note_question(store);
    const lahar_status status = lahar_snapshot_take(store, &cursor->snapshot, error);
    if (status != LAHAR_OK) {
        lahar_cursor_close(cursor);
        return status;
    }
    *cursor_out = cursor;
    return LAHAR_OK;
}

void lahar_cursor_close(lahar_cursor *cursor)
{
    if (cursor == NULL) {
        return;
    }
    lahar_scan_destroy(cursor->scan);
    lahar_lookup_destroy(cursor->lookup);
    lahar_snapshot_release(cursor->snapshot);
    lahar_arena_deinit(&cursor->arena);
    lahar_release(&cursor->store->allocator, cursor);
}

lahar_status lahar_get(lahar_store *store, const uint64_t *ids, size_t id_count,
                       lahar_cursor **cursor_out, lahar_error *error)
{
    *cursor_out = NULL;
    lahar_cursor *cursor = NULL;
    LAHAR_TRY(cursor_create(store, &cursor, error));
    const lahar_status status =
        lahar_lookup_create(store, cursor->snapshot, ids, id_count, &cursor->lookup, error);
    if (status != LAHAR_OK) {
        lahar_cursor_close(cursor);
        return status;
    }
    *cursor_out = cursor;
    return LAHAR_OK;
}

void lahar_scan_options_init(lahar_scan_options *options)
{
    *options = (lahar_scan_options){.struct_size = sizeof *options, .stream = LAHAR_ANY_STREAM};
}

lahar_status lahar_scan(lahar_store *store, const lahar_scan_options *options,
                        lahar_cursor **cursor_out, lahar_error *error)
{
    *cursor_out = NULL;
    lahar_scan_options everything;
    lahar_scan_options_init(&everything);
    if (options == NULL) {
        options = &everything;
    }
    if (options->struct_size < sizeof *options) {
        return lahar_fail(error, LAHAR_INVALID, "scan options: struct_size is %zu",
                          options->struct_size);
    }
    if (options->stream != LAHAR_ANY_STREAM &&
        lahar_schema_stream(store->catalog, options->stream) == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "there is no stream %u", options->stream);
    }
    lahar_cursor *cursor = NULL;
    LAHAR_TRY(cursor_create(store, &cursor, error));
    const lahar_status status =
        lahar_scan_create(store, cursor->snapshot, options, &cursor->scan, error);
    if (status != LAHAR_OK) {
        lahar_cursor_close(cursor);
        return status;
    }
    cursor->authorize = options->authorize;
    cursor->authorize_context = options->authorize_context;
    *cursor_out = cursor;
    return LAHAR_OK;
}

/* The next event that may be seen. */
static lahar_status next_visible(lahar_cursor *cursor, lahar_error *error)
{
    lahar_status status = LAHAR_OK;
    do {
        lahar_arena_reset(&cursor->arena);
        status = cursor->scan != NULL
                     ? lahar_scan_next(cursor->scan, &cursor->arena, &cursor->event, error)
                     : lahar_lookup_next(cursor->lookup, &cursor->arena, &cursor->event, error);
    } while (status == LAHAR_OK && cursor->authorize != NULL &&
             !cursor->authorize(cursor->authorize_context, &cursor->event));
    return status;
}

lahar_status lahar_cursor_next(lahar_cursor *cursor, const lahar_event **event_out,
                               lahar_error *error)
{
    *event_out = NULL;
    const lahar_status status = next_visible(cursor, error);
    if (status == LAHAR_OK) {
        *event_out = &cursor->event;
    } else if (status == LAHAR_CORRUPT) {
        atomic_fetch_add_explicit(&cursor->store->corrupt_blocks, 1, memory_order_relaxed);
    } else if (status == LAHAR_NOT_FOUND) {
        return lahar_fail(error, status, "the cursor has ended");
    }
    return status;
}
