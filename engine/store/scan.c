/* Events in id order: through the event files, then the resident batches; newest first, the
 * other way round.
 *
 * Files hold one stream each and their ids interleave, so those whose ranges have been
 * reached are merged by a heap. A file waits in the heap under the nearest id that its next
 * block can have and loads the block only when that comes up, so many streams hold few
 * blocks at a time. */
#include "engine/store/cursor.h"
#include "engine/store/lost_events.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

/* One file that is being read. */
struct source {
    const struct lahar_snapshot_segment *file; /* NULL: a lost file or range */
    const struct lahar_segment_info *info;
    uint32_t block;             /* the next to be read, counted from the file's beginning */
    uint32_t row;               /* within loaded */
    struct lahar_block *loaded; /* NULL: not yet */
    uint64_t id;                /* of the row, or the nearest that block can have */
};

struct lahar_scan {
    lahar_store *store;
    const struct lahar_snapshot *snapshot;
    uint64_t from_id; /* inclusive */
    uint64_t to_id;   /* exclusive */
    uint32_t stream;
    bool newest_first;

    struct source *sources; /* a heap */
    size_t source_count;
    size_t source_capacity;
    size_t segment;   /* forwards the next file that was not opened, backwards one above it */
    bool has_next;    /* there is one */
    uint64_t next_id; /* that it may have, or one behind it */
    bool is_row_read; /* the first source's row was handed out by the last call */

    struct lahar_batch_walk walk;
    size_t batch; /* the next; backwards one above it */
    uint32_t row; /* within the batch entered; backwards one above it */
    bool is_entered;
};

static bool wants(const struct lahar_scan *scan, const struct lahar_segment_info *info)
{
    return (scan->stream == LAHAR_ANY_STREAM || scan->stream == info->stream ||
            info->stream == LAHAR_ANY_STREAM) &&
           info->last_id >= scan->from_id && info->first_id < scan->to_id;
}

void lahar_scan_destroy(struct lahar_scan *scan)
{
    if (scan == NULL) {
        return;
    }
    for (size_t i = 0; i < scan->source_count; i++) {
        lahar_block_release(scan->sources[i].loaded);
    }
    lahar_batch_walk_deinit(&scan->walk, &scan->store->allocator);
    lahar_release(&scan->store->allocator, scan->sources);
    lahar_release(&scan->store->allocator, scan);
}

/* --- the heap ------------------------------------------------------------------------------ */

static bool comes_before(const struct lahar_scan *scan, const struct source *a,
                         const struct source *b)
{
    return scan->newest_first ? a->id > b->id : a->id < b->id;
}

static void swap_sources(struct source *a, struct source *b)
{
    const struct source kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_down(struct lahar_scan *scan)
{
    size_t at = 0;
    for (;;) {
        size_t first = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < scan->source_count;
             child++) {
            if (comes_before(scan, &scan->sources[child], &scan->sources[first])) {
                first = child;
            }
        }
        if (first == at) {
            return;
        }
        swap_sources(&scan->sources[at], &scan->sources[first]);
        at = first;
    }
}

static void sift_up(struct lahar_scan *scan)
{
    size_t at = scan->source_count - 1;
    while (at > 0 && comes_before(scan, &scan->sources[at], &scan->sources[(at - 1) / 2])) {
        swap_sources(&scan->sources[at], &scan->sources[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void remove_first(struct lahar_scan *scan)
{
    lahar_block_release(scan->sources[0].loaded);
    scan->sources[0] = scan->sources[--scan->source_count];
    sift_down(scan);
}

static lahar_status add_source(struct lahar_scan *scan, const struct source *source,
                               lahar_error *error)
{
    if (scan->source_count == scan->source_capacity) {
        const size_t capacity = scan->source_capacity == 0 ? 8 : 2 * scan->source_capacity;
        struct source *larger =
            lahar_reallocate(&scan->store->allocator, scan->sources, capacity * sizeof *larger);
        if (larger == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to merge %zu files", capacity);
        }
        scan->sources = larger;
        scan->source_capacity = capacity;
    }
    scan->sources[scan->source_count++] = *source;
    sift_up(scan);
    return LAHAR_OK;
}

/* --- the files -------------------------------------------------------------------------- */

/* Sets the id under which a source waits for its block. False when no block is left that can
 * hold ids of the range. */
static bool await_block(const struct lahar_scan *scan, struct source *source)
{
    if (source->block >= source->info->block_count) {
        return false;
    }
    const struct lahar_block_info *block =
        lahar_segment_block_info(source->file->segment, source->block);
    if (scan->newest_first) {
        source->id = block->last_id < scan->to_id ? block->last_id : scan->to_id - 1;
        return block->last_id >= scan->from_id;
    }
    source->id = block->first_id > scan->from_id ? block->first_id : scan->from_id;
    return block->first_id < scan->to_id;
}

static lahar_status open_source(struct lahar_scan *scan, const struct lahar_snapshot_segment *file,
                                lahar_error *error)
{
    struct source source = {.file = file, .info = lahar_segment_describe(file->segment)};
    if (scan->newest_first) {
        source.block = lahar_segment_find_block(file->segment, scan->to_id - 1);
        if (source.block == source.info->block_count && source.block != 0) {
            source.block--;
        } else if (source.block != 0 &&
                   lahar_segment_block_info(file->segment, source.block)->first_id >= scan->to_id) {
            source.block--;
        }
    } else {
        source.block = lahar_segment_find_block(file->segment, scan->from_id);
    }
    return await_block(scan, &source) ? add_source(scan, &source, error) : LAHAR_OK;
}

/* The next file, in the scan's direction, among the readable ones that it wants. */
static const struct lahar_snapshot_segment *peek_file(struct lahar_scan *scan)
{
    const size_t count = lahar_snapshot_segment_count(scan->snapshot);
    while (scan->newest_first ? scan->segment > 0 : scan->segment < count) {
        const struct lahar_snapshot_segment *file = lahar_snapshot_segment(
            scan->snapshot, scan->newest_first ? scan->segment - 1 : scan->segment);
        if (wants(scan, lahar_segment_describe(file->segment))) {
            return file;
        }
        scan->segment = scan->newest_first ? scan->segment - 1 : scan->segment + 1;
    }
    return NULL;
}

/* Remembers from which id on the next file may have to be opened. */
static void note_next(struct lahar_scan *scan)
{
    const struct lahar_snapshot_segment *file = peek_file(scan);
    scan->has_next = file != NULL;
    if (file != NULL) {
        scan->next_id = scan->newest_first ? lahar_snapshot_reach(scan->snapshot, scan->segment - 1)
                                           : lahar_segment_describe(file->segment)->first_id;
    }
}

/* Opens every file that may have an id before the first source's, and at least one when there is no
 * source. Those behind them in the list begin (end) later, since files are listed by first id. */
static lahar_status open_due(struct lahar_scan *scan, lahar_error *error)
{
    while (scan->has_next && (scan->source_count == 0 ||
                              (scan->newest_first ? scan->next_id >= scan->sources[0].id
                                                  : scan->next_id <= scan->sources[0].id))) {
        const struct lahar_snapshot_segment *file = peek_file(scan);
        if (file != NULL) {
            LAHAR_TRY(open_source(scan, file, error));
            scan->segment = scan->newest_first ? scan->segment - 1 : scan->segment + 1;
        }
        note_next(scan);
    }
    return LAHAR_OK;
}

/* Lost files take part from the beginning: each is reported when its ids come up. */
static lahar_status add_lost(struct lahar_scan *scan, lahar_error *error)
{
    const size_t count = lahar_snapshot_lost_count(scan->snapshot);
    for (size_t i = 0; i < count; i++) {
        const struct lahar_segment_info *info = lahar_snapshot_lost(scan->snapshot, i);
        if (wants(scan, info)) {
            const uint64_t first_id =
                info->first_id < scan->from_id ? scan->from_id : info->first_id;
            const uint64_t last_id = info->last_id < scan->to_id ? info->last_id : scan->to_id - 1;
            const struct source source = {.info = info,
                                          .id = scan->newest_first ? last_id : first_id};
            LAHAR_TRY(add_source(scan, &source, error));
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_scan_create(lahar_store *store, struct lahar_snapshot *snapshot,
                               const lahar_scan_options *options, struct lahar_scan **scan_out,
                               lahar_error *error)
{
    struct lahar_scan *scan = lahar_allocate_zeroed(&store->allocator, 1, sizeof *scan);
    if (scan == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a scan");
    }
    scan->store = store;
    scan->snapshot = snapshot;
    scan->walk.snapshot = snapshot;
    scan->stream = options->stream;
    scan->newest_first = options->newest_first;
    scan->from_id = options->from_id;
    scan->to_id = lahar_snapshot_end(snapshot);
    if (options->to_id != 0 && options->to_id < scan->to_id) {
        scan->to_id = options->to_id;
    }
    if (scan->newest_first) {
        scan->segment = lahar_snapshot_segment_count(snapshot);
        scan->batch = lahar_snapshot_batch_count(snapshot);
    } else {
        scan->batch = lahar_snapshot_find_batch(snapshot, scan->from_id);
    }
    note_next(scan);
    const lahar_status status = add_lost(scan, error);
    if (status != LAHAR_OK) {
        lahar_scan_destroy(scan);
        return status;
    }
    *scan_out = scan;
    return LAHAR_OK;
}

/* Moves the first source to its next block, or out of the heap. */
static void leave_block(struct lahar_scan *scan)
{
    struct source *source = &scan->sources[0];
    lahar_block_release(source->loaded);
    source->loaded = NULL;
    if (scan->newest_first && source->block == 0) {
        remove_first(scan);
        return;
    }
    source->block = scan->newest_first ? source->block - 1 : source->block + 1;
    if (await_block(scan, source)) {
        sift_down(scan);
    } else {
        remove_first(scan);
    }
}

/* Loads the block of the first source and goes to its first row in the range. */
static lahar_status load_block(struct lahar_scan *scan, lahar_error *error)
{
    struct source *source = &scan->sources[0];
    const lahar_status status =
        lahar_segment_load(source->file->segment, source->block, &source->loaded, error);
    if (status != LAHAR_OK) {
        source->loaded = NULL;
        leave_block(scan);
        return status;
    }
    const uint32_t count = lahar_block_row_count(source->loaded);
    uint32_t row = 0;
    if (scan->newest_first) {
        row = lahar_block_find(source->loaded, scan->to_id);
        if (row == 0) {
            leave_block(scan);
            return LAHAR_OK;
        }
        row--;
    } else {
        row = lahar_block_find(source->loaded, scan->from_id);
        if (row >= count) {
            leave_block(scan);
            return LAHAR_OK;
        }
    }
    source->row = row;
    source->id = lahar_block_id(source->loaded, row);
    sift_down(scan);
    return LAHAR_OK;
}

/* Moves the first source behind the row just read. */
static void leave_row(struct lahar_scan *scan)
{
    struct source *source = &scan->sources[0];
    const bool is_last = scan->newest_first
                             ? source->row == 0
                             : source->row + 1 >= lahar_block_row_count(source->loaded);
    if (is_last) {
        leave_block(scan);
        return;
    }
    source->row = scan->newest_first ? source->row - 1 : source->row + 1;
    source->id = lahar_block_id(source->loaded, source->row);
    sift_down(scan);
}

static lahar_status next_stored(struct lahar_scan *scan, struct lahar_arena *arena,
                                lahar_event *event_out, lahar_error *error)
{
    if (scan->is_row_read) {
        scan->is_row_read = false;
        leave_row(scan);
    }
    for (;;) {
        LAHAR_TRY(open_due(scan, error));
        if (scan->source_count == 0) {
            return LAHAR_NOT_FOUND;
        }
        struct source *source = &scan->sources[0];
        if (source->file == NULL) {
            const struct lahar_segment_info *info = source->info;
            remove_first(scan);
            return lahar_lost_events_fail(info, error);
        }
        if (source->loaded == NULL) {
            LAHAR_TRY(load_block(scan, error));
            continue;
        }
        if (source->id < scan->from_id || source->id >= scan->to_id) {
            remove_first(scan);
            continue;
        }
        const lahar_status status =
            lahar_block_read(source->loaded, source->row, arena, event_out, error);
        if (status == LAHAR_OK) {
            /* The event points into its block, so only the next call leaves the row. */
            scan->is_row_read = true;
            return LAHAR_OK;
        }
        leave_block(scan);
        return status;
    }
}

/* --- resident batches ------------------------------------------------------------------------- */

/* Enters the next batch; LAHAR_NOT_FOUND when none is left in the range. */
static lahar_status enter_batch(struct lahar_scan *scan, lahar_error *error)
{
    const size_t count = lahar_snapshot_batch_count(scan->snapshot);
    if (scan->newest_first ? scan->batch == 0 : scan->batch >= count) {
        return LAHAR_NOT_FOUND;
    }
    const size_t batch = scan->newest_first ? --scan->batch : scan->batch++;
    const struct lahar_resident_batch *rows = lahar_snapshot_batch(scan->snapshot, batch);
    LAHAR_TRY(lahar_batch_walk_enter(&scan->walk, batch, &scan->store->allocator, error));
    scan->row = scan->newest_first ? rows->event_count : 0;
    scan->is_entered = true;
    return LAHAR_OK;
}

static lahar_status next_resident(struct lahar_scan *scan, struct lahar_arena *arena,
                                  lahar_event *event_out, lahar_error *error)
{
    for (;;) {
        if (!scan->is_entered) {
            LAHAR_TRY(enter_batch(scan, error));
        }
        const struct lahar_resident_batch *batch =
            lahar_snapshot_batch(scan->snapshot, scan->walk.batch);
        if (scan->newest_first ? scan->row == 0 : scan->row >= batch->event_count) {
            scan->is_entered = false;
            continue;
        }
        const uint32_t row = scan->newest_first ? --scan->row : scan->row++;
        const uint64_t id = batch->first_id + row;
        if (id < scan->from_id || id >= scan->to_id) {
            const bool is_past = scan->newest_first ? id < scan->from_id : id >= scan->to_id;
            if (is_past) {
                scan->batch = scan->newest_first ? 0 : lahar_snapshot_batch_count(scan->snapshot);
                scan->is_entered = false;
            }
            continue;
        }
        if (scan->stream != LAHAR_ANY_STREAM &&
            lahar_batch_walk_stream(&scan->walk, row) != scan->stream) {
            continue;
        }
        return lahar_batch_walk_read(&scan->walk, row, arena, event_out, error);
    }
}

lahar_status lahar_scan_next(struct lahar_scan *scan, struct lahar_arena *arena,
                             lahar_event *event_out, lahar_error *error)
{
    if (scan->from_id >= scan->to_id) {
        return LAHAR_NOT_FOUND;
    }
    lahar_status status = scan->newest_first ? next_resident(scan, arena, event_out, error)
                                             : next_stored(scan, arena, event_out, error);
    if (status == LAHAR_NOT_FOUND) {
        status = scan->newest_first ? next_stored(scan, arena, event_out, error)
                                    : next_resident(scan, arena, event_out, error);
    }
    return status;
}
