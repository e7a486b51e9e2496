/* Rolling one group.
 *
 * Order, and the crash that each step survives (docs/recovery.md):
 *   1. event file, toc and shard of every stream, synced under temporary names, renamed;
 *      before the next step the manifest knows none of them and the journals have all
 *   2. sync of the directory: the names are durable before anything refers to them
 *   3. one change of the manifest: files, offsets, rolled id; from here on the files
 *      are the truth for the ids below
 *   4. the new set of files for readers, then the journals forget; an instant between
 *      the two shows the events in both, and snapshots take them from the files */
#include "engine/rollover/rollover_group.h"

#include "engine/event/row.h"
#include "engine/rollover/retention.h"
#include "engine/rollover/rollover_files.h"
#include "io/base/error.h"

#define VIEW_WAIT_NS UINT64_C(1000000000)

enum {
    FETCH_COUNT = 8 /* batches whose rows are fetched side by side */
};

/* Everything of one attempt; owned by lahar_rollover_group. */
struct attempt {
    lahar_store *store;
    struct lahar_rollover_group_range range;
    uint64_t *stream_masks;
    struct lahar_rollover_part *parts; /* by order of stream */
    uint32_t stream_count;             /* parts whose runs are to be released */
    struct lahar_manifest_file *entries;
    struct lahar_stored_file **files;
    uint32_t file_count; /* entries and files made so far */
    struct lahar_offset_table offsets;
    lahar_error *error;
};

/* The group: whole batches from the rolled id on, until one of its limits is reached. */
static void choose_batches(struct attempt *attempt, const struct lahar_resident_view *view,
                           uint64_t cut_id)
{
    const lahar_store *store = attempt->store;
    struct lahar_rollover_group_range *range = &attempt->range;
    const uint64_t event_max = store->config.group_event_max == 0 ? LAHAR_SHARD_DOCUMENTS_MAX
                                                                  : store->config.group_event_max;
    size_t first = 0;
    while (first < view->batch_count && view->batches[first].first_id < range->first_id) {
        first++;
    }
    uint64_t bytes = 0;
    uint64_t events = 0;
    size_t end = first;
    while (end < view->batch_count && view->batches[end].first_id < cut_id) {
        const struct lahar_resident_batch *batch = &view->batches[end];
        if (end > first &&
            (bytes >= store->group_size_bytes || events >= store->options.group_event_count ||
             events + batch->event_count > event_max)) {
            break;
        }
        bytes += batch->rows_size;
        events += batch->event_count;
        end++;
    }
    range->batches = view->batch_count == 0 ? NULL : view->batches + first;
    range->batch_count = end - first;
    range->bytes = bytes;
    const bool is_cut_short = end < view->batch_count && view->batches[end].first_id < cut_id;
    range->end_id = is_cut_short ? view->batches[end].first_id : cut_id;
}

/* Goes over the heads of the rows of some batches side by side: the size of each row leads to the
 * next, and one by one every step would wait for memory. */
static void fetch_rows(const struct lahar_resident_batch *batches, size_t count)
{
    const uint8_t *rows[FETCH_COUNT];
    size_t left[FETCH_COUNT];
    for (size_t k = 0; k < count; k++) {
        rows[k] = batches[k].rows;
        left[k] = batches[k].rows_size;
    }
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (size_t k = 0; k < count; k++) {
            const uint32_t size = lahar_row_size(rows[k], left[k]);
            rows[k] += size;
            __builtin_prefetch(rows[k]);
            left[k] = size == 0 ? 0 : left[k] - size;
            goes_on = goes_on || left[k] != 0;
        }
    }
}

/* Adds a row to the block that is being filled with rows of the part, or begins the next one. */
static bool note_row(struct lahar_rollover_part *part, const struct lahar_rollover_run *start,
                     uint32_t size)
{
    const size_t end = part->runs.size;
    if (end == 0 || part->run_bytes + size > LAHAR_BLOCK_RAW_SIZE) {
        part->run_bytes = 0;
        lahar_buffer_put(&part->runs, start, sizeof *start);
    } else {
        struct lahar_rollover_run *runs = (struct lahar_rollover_run *)(void *)part->runs.data;
        runs[end / sizeof runs[0] - 1].row_count++;
    }
    part->run_bytes += size;
    part->event_count++;
    part->raw_bytes += size;
    return !part->runs.has_failed;
}

/* Counts the group's events by stream, and parts those of each into blocks. */
static lahar_status find_parts(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    struct lahar_rollover_group_range *range = &attempt->range;
    const uint32_t stream_count = lahar_schema_stream_count(store->catalog);
    attempt->parts =
        lahar_allocate_zeroed(&store->allocator, (size_t)stream_count + 1, sizeof *attempt->parts);
    attempt->stream_masks =
        lahar_allocate_zeroed(&store->allocator, range->batch_count + 1, sizeof(uint64_t));
    if (attempt->parts == NULL || attempt->stream_masks == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to roll over %zu batches",
                          range->batch_count);
    }
    range->stream_masks = attempt->stream_masks;
    for (uint32_t stream = 0; stream < stream_count; stream++) {
        lahar_buffer_init(&attempt->parts[stream].runs, &store->allocator);
    }
    attempt->stream_count = stream_count;
    for (size_t i = 0; i < range->batch_count; i++) {
        const struct lahar_resident_batch *batch = &range->batches[i];
        const uint8_t *row = batch->rows;
        size_t left = batch->rows_size;
        if (i % FETCH_COUNT == 0) {
            const size_t ahead = range->batch_count - i;
            fetch_rows(batch, ahead < FETCH_COUNT ? ahead : (size_t)FETCH_COUNT);
        }
        for (uint32_t k = 0; k < batch->event_count; k++) {
            const uint32_t size = lahar_row_size(row, left);
            const uint32_t stream = size == 0 ? UINT32_MAX : lahar_row_stream(row);
            if (stream >= stream_count) {
                return lahar_fail(error, LAHAR_CORRUPT, "the row of event %llu is damaged",
                                  (unsigned long long)(batch->first_id + k));
            }
            const struct lahar_rollover_run start = {i, (uint32_t)(row - batch->rows), k, 1};
            if (!note_row(&attempt->parts[stream], &start, size)) {
                return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to roll over %zu batches",
                                  range->batch_count);
            }
            attempt->stream_masks[i] |= UINT64_C(1) << (stream % 64);
            row += size;
            left -= size;
        }
    }
    for (uint32_t stream = 0; stream < stream_count; stream++) {
        if (attempt->parts[stream].event_count != 0) {
            const struct lahar_rollover_part part = attempt->parts[stream];
            lahar_buffer_init(&attempt->parts[stream].runs, &store->allocator);
            attempt->parts[range->part_count] = part;
            attempt->parts[range->part_count++].stream = stream;
        }
    }
    return LAHAR_OK;
}

static lahar_status note_offset(void *context, const struct lahar_journal_offset *offset)
{
    struct attempt *attempt = context;
    const struct lahar_offset_record record = {offset->source, offset->key, offset->value};
    return lahar_offset_table_set(&attempt->offsets, &record, attempt->error);
}

/* Each directory that a file was placed in, once. */
static lahar_status sync_directories(const struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    uint64_t seen = 0; /* a bit a volume, of which there are at most 64 */
    for (uint32_t i = 0; i < attempt->file_count; i++) {
        const uint64_t bit = UINT64_C(1) << attempt->entries[i].directory;
        if ((seen & bit) == 0) {
            seen |= bit;
            LAHAR_TRY(store->io->ops->sync_directory(
                store->io, lahar_volume_path(store, attempt->entries[i].directory), error));
        }
    }
    return LAHAR_OK;
}

/* Writes the files of every part and opens them for reading: a file that cannot be
 * read back must not replace the journals. */
static lahar_status write_files(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    const uint32_t part_count = attempt->range.part_count;
    attempt->entries =
        lahar_allocate_zeroed(&store->allocator, (size_t)part_count + 1, sizeof *attempt->entries);
    attempt->files =
        lahar_allocate_zeroed(&store->allocator, (size_t)part_count + 1, sizeof *attempt->files);
    if (attempt->entries == NULL || attempt->files == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to roll over %u streams", part_count);
    }
    for (uint32_t i = 0; i < part_count; i++) {
        struct lahar_manifest_file *entry = &attempt->entries[i];
        LAHAR_TRY(
            lahar_rollover_write_part(store, &attempt->range, &attempt->parts[i], entry, error));
        attempt->file_count++;
        const struct lahar_stored_place place = lahar_store_place(store, entry->directory);
        LAHAR_TRY(lahar_stored_file_open(&place, entry, &attempt->files[i], error));
        const struct lahar_stored_file *file = attempt->files[i];
        if (file->segment == NULL || file->shard == NULL) {
            return lahar_fail(
                error, file->segment == NULL ? file->segment_status : file->shard_status,
                "event file %llu cannot be read back", (unsigned long long)entry->info.number);
        }
    }
#ifdef LAHAR_PLANTED_BUGS
    if ((store->config.planted_bugs & LAHAR_PLANTED_ROLLOVER_NO_DIRECTORY_SYNC) != 0) {
        return LAHAR_OK;
    }
#endif
    return sync_directories(attempt, error);
}

static lahar_status commit(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    (void)pthread_mutex_lock(&store->manifest_lock);
    for (uint32_t i = 0; i < attempt->file_count; i++) {
        attempt->entries[i].age_stamp_ns =
            lahar_retention_stamp(store, attempt->entries[i].info.last_id);
        lahar_manifest_put_file(&records, &attempt->entries[i]);
    }
    lahar_manifest_put_offsets(&records, &attempt->offsets);
    lahar_manifest_put_file_number(
        &records, atomic_load_explicit(&store->next_file_number, memory_order_relaxed));
    lahar_manifest_put_rolled(&records, attempt->range.end_id);
    lahar_retention_put_clock(store, &records);
    const lahar_status status = lahar_store_commit_locked(store, &records, error);
    (void)pthread_mutex_unlock(&store->manifest_lock);
    lahar_buffer_deinit(&records);
    return status;
}

/* Names the files in the manifest and shows them to readers. */
static lahar_status publish(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    const struct lahar_segment_set_change change = {.added = attempt->files,
                                                    .added_count = attempt->file_count,
                                                    .rolled_id = attempt->range.end_id};
    struct lahar_segment_set *set = NULL;
    (void)pthread_mutex_lock(&store->layout_lock);
    struct lahar_segment_set *base = lahar_store_acquire_set(store);
    lahar_status status = lahar_segment_set_create(base, &change, &store->allocator, &set, error);
    if (status == LAHAR_OK) {
        status = commit(attempt, error);
    }
    if (status == LAHAR_OK) {
        lahar_store_publish_set(store, set);
    } else {
        lahar_segment_set_release(set);
    }
    (void)pthread_mutex_unlock(&store->layout_lock);
    lahar_segment_set_release(base);
    return status;
}

/* With the view pinned: writes, commits and publishes the chosen group. */
static lahar_status roll(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    LAHAR_TRY(find_parts(attempt, error));
    LAHAR_TRY(lahar_journals_offsets(store->journals, attempt->range.first_id,
                                     attempt->range.end_id, note_offset, attempt, error));
    lahar_status status = write_files(attempt, error);
    if (status == LAHAR_OK) {
        status = publish(attempt, error);
    }
    /* After a failure for good it is not known whether the manifest names the files. */
    for (uint32_t i = 0; status != LAHAR_OK && status != LAHAR_POISONED && i < attempt->file_count;
         i++) {
        lahar_rollover_remove_part(store, &attempt->entries[i]);
    }
    return status;
}

lahar_status lahar_rollover_group(lahar_store *store, uint64_t cut_id, uint64_t *rolled_id_out,
                                  lahar_error *error)
{
    lahar_error first_error = {0};
    struct attempt attempt = {.store = store, .error = &first_error};
    struct lahar_resident_view view = {0};
    lahar_offset_table_init(&attempt.offsets, true, &store->allocator);
    struct lahar_segment_set *set = lahar_store_acquire_set(store);
    attempt.range.first_id = set->rolled_id;
    lahar_segment_set_release(set);
    lahar_status status = lahar_journals_view(store->journals, VIEW_WAIT_NS, &view, &first_error);
    if (status == LAHAR_OK) {
        choose_batches(&attempt, &view, cut_id);
        status = roll(&attempt, &first_error);
        lahar_journals_unview(store->journals, &view);
    }
    if (status == LAHAR_OK) {
        lahar_journals_forget(store->journals, attempt.range.end_id);
        *rolled_id_out = attempt.range.end_id;
    } else if (error != NULL && error->status == LAHAR_OK) {
        *error = first_error;
    }
    for (uint32_t i = 0; i < attempt.file_count; i++) {
        lahar_stored_file_release(attempt.files[i]);
    }
    lahar_release(&store->allocator, attempt.files);
    lahar_release(&store->allocator, attempt.entries);
    for (uint32_t i = 0; i < attempt.stream_count; i++) {
        lahar_buffer_deinit(&attempt.parts[i].runs);
    }
    lahar_release(&store->allocator, attempt.parts);
    lahar_release(&store->allocator, attempt.stream_masks);
    lahar_offset_table_deinit(&attempt.offsets);
    return status;
}
