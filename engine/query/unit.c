/* Units: which documents of one file, or of one run of batches, match. */
#include "engine/query/unit.h"

#include "engine/event/row.h"
#include "io/base/error.h"
#include "lahar/read.h"

/* --- opening ------------------------------------------------------------------- */

/* Stands for a row that is not there because its batch ends before it, though it passed its
 * checksum: a row that says so when it is decoded. */
static const uint8_t damaged_row[18] = {[0] = 18, [16] = 0xff, [17] = 0xff};

/* Puts the places of a batch's rows from rows on. */
static void locate_batch(const struct lahar_resident_batch *batch, uint32_t index,
                         struct lahar_unit_row *rows)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const uint32_t size = lahar_row_size(batch->rows + offset, batch->rows_size - offset);
        rows[i] = (struct lahar_unit_row){size == 0 ? damaged_row : batch->rows + offset, index};
        offset += size;
    }
}

static lahar_status locate_rows(struct lahar_unit *unit, struct lahar_unit_context *context,
                                lahar_error *error)
{
    struct lahar_unit_row *rows =
        lahar_allocate(context->allocator, unit->event_count * sizeof *rows);
    if (rows == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %u rows", unit->event_count);
    }
    uint32_t count = 0;
    for (size_t i = unit->first_batch; i < unit->end_batch; i++) {
        const struct lahar_resident_batch *batch = lahar_snapshot_batch(context->snapshot, i);
        locate_batch(batch, (uint32_t)i, rows + count);
        count += batch->event_count;
    }
    unit->rows = rows;
    return LAHAR_OK;
}

/* An empty set of what is being opened. */
static lahar_status init_set(const struct lahar_unit *unit, struct lahar_docset *set,
                             const lahar_allocator *allocator, lahar_error *error)
{
    LAHAR_TRY(lahar_docset_init(set, unit->event_count, allocator, error));
    lahar_docset_narrow(set, unit->first_document, unit->end_document);
    return LAHAR_OK;
}

static lahar_status fill(const struct lahar_unit *unit, struct lahar_docset *set,
                         const lahar_allocator *allocator, lahar_error *error)
{
    LAHAR_TRY(init_set(unit, set, allocator, error));
    lahar_docset_fill(set);
    return LAHAR_OK;
}

/* Turns bounds, which are used up, into the sets of the unit. */
static lahar_status take_bounds(struct lahar_unit *unit, struct lahar_bounds *bounds,
                                const lahar_allocator *allocator, lahar_error *error)
{
    if (bounds->shape == LAHAR_BOUNDS_SOME) {
        unit->may = bounds->may;
        if (bounds->has_must) {
            unit->unverified = bounds->must;
            unit->has_unverified = true;
            lahar_docset_invert(&unit->unverified);
            lahar_docset_and(&unit->unverified, &unit->may);
        } else if (!bounds->is_exact) {
            const lahar_status status = fill(unit, &unit->unverified, allocator, error);
            if (status != LAHAR_OK) {
                lahar_docset_deinit(&unit->may);
                return status;
            }
            unit->has_unverified = true;
            lahar_docset_and(&unit->unverified, &unit->may);
        }
        return LAHAR_OK;
    }
    LAHAR_TRY(init_set(unit, &unit->may, allocator, error));
    if (bounds->shape == LAHAR_BOUNDS_NONE) {
        return LAHAR_OK;
    }
    lahar_docset_fill(&unit->may);
    if (bounds->shape == LAHAR_BOUNDS_UNKNOWN) {
        const lahar_status status = fill(unit, &unit->unverified, allocator, error);
        if (status != LAHAR_OK) {
            lahar_docset_deinit(&unit->may);
            return status;
        }
        unit->has_unverified = true;
    }
    return LAHAR_OK;
}

static struct lahar_shard_query shard_query_of(const struct lahar_unit *unit,
                                               const struct lahar_unit_context *context)
{
    return (struct lahar_shard_query){.shard = unit->shard,
                                      .segment = unit->segment,
                                      .stream = lahar_schema_stream(context->catalog, unit->stream),
                                      .matcher = context->matcher,
                                      .end = unit->event_count,
                                      .query = context->query,
                                      .worker = context->worker,
                                      .allocator = context->allocator};
}

lahar_status lahar_unit_count(struct lahar_unit *unit, struct lahar_unit_context *context,
                              uint64_t *count_out, lahar_error *error)
{
    const struct lahar_shard_query query = shard_query_of(unit, context);
    const struct lahar_query_prune *prune = &context->prune;
    lahar_error reason = {0};
    *count_out = 0;
    if (unit->shard == NULL || unit->segment == NULL || query.stream == NULL ||
        context->authorize != NULL || unit->first_id < prune->first_id ||
        unit->last_id >= prune->end_id ||
        lahar_shard_document_count(unit->shard) != unit->event_count) {
        return LAHAR_UNSUPPORTED;
    }
    const lahar_status status =
        lahar_shard_query_count(&query, context->filter, count_out, &reason);
    if (status == LAHAR_CORRUPT || status == LAHAR_IO) {
        return LAHAR_UNSUPPORTED; /* opening the unit meets it again and deals with it */
    }
    if (status != LAHAR_OK && status != LAHAR_UNSUPPORTED && error != NULL) {
        *error = reason;
    }
    return status;
}

lahar_status lahar_unit_candidates(struct lahar_unit *unit, struct lahar_unit_context *context,
                                   const struct lahar_query_node *node, uint64_t *count_out,
                                   lahar_error *error)
{
    const struct lahar_shard_query query = shard_query_of(unit, context);
    struct lahar_bounds bounds = {.shape = LAHAR_BOUNDS_UNKNOWN};
    lahar_error reason = {0};
    *count_out = unit->event_count;
    if (unit->shard == NULL || query.stream == NULL) {
        return LAHAR_OK;
    }
    const lahar_status status = lahar_shard_query_run(&query, node, &bounds, &reason);
    if (status == LAHAR_CORRUPT || status == LAHAR_IO) {
        return LAHAR_OK;
    }
    if (status != LAHAR_OK) {
        return lahar_fail(error, status, "%s", reason.message);
    }
    if (bounds.shape == LAHAR_BOUNDS_NONE) {
        *count_out = 0;
    } else if (bounds.shape == LAHAR_BOUNDS_SOME) {
        *count_out = lahar_docset_count(&bounds.may);
    }
    lahar_bounds_deinit(&bounds);
    return LAHAR_OK;
}

static lahar_status ask_shard(struct lahar_unit *unit, struct lahar_unit_context *context,
                              struct lahar_bounds *bounds_out, lahar_error *error)
{
    lahar_error reason = {0};
    struct lahar_shard_query query = shard_query_of(unit, context);
    query.first = unit->first_document;
    query.end = unit->end_document;
    *bounds_out = (struct lahar_bounds){.shape = LAHAR_BOUNDS_UNKNOWN};
    if (unit->shard == NULL) {
        return LAHAR_OK;
    }
    if (query.stream == NULL || lahar_shard_document_count(unit->shard) != unit->event_count) {
        context->shards_failed++;
        unit->shard = NULL;
        return LAHAR_OK;
    }
    const lahar_status status = lahar_shard_query_run(&query, context->filter, bounds_out, &reason);
    if (status == LAHAR_CORRUPT || status == LAHAR_IO) {
        /* The file still has everything. */
        context->shards_failed++;
        unit->shard = NULL;
        *bounds_out = (struct lahar_bounds){.shape = LAHAR_BOUNDS_UNKNOWN};
        return LAHAR_OK;
    }
    if (status != LAHAR_OK && error != NULL) {
        *error = reason;
    }
    return status;
}

/* Takes out what lies outside the part that is open, and outside the ids asked for, as far as
 * ordinals are known. */
static void clip(struct lahar_unit *unit, const struct lahar_unit_context *context)
{
    const struct lahar_query_prune *prune = &context->prune;
    const struct lahar_shard *ids = unit->slice != NULL ? unit->slice : unit->shard;
    uint64_t first_id = prune->first_id;
    uint64_t end_id = prune->end_id;
    uint32_t first = unit->first_document;
    uint32_t end = unit->end_document;
    if (unit->slice != NULL) {
        first_id = unit->first_id > first_id ? unit->first_id : first_id;
        end_id = unit->last_id < end_id ? unit->last_id + 1 : end_id;
    }
    if (unit->slice != NULL ||
        (ids != NULL && (unit->first_id < first_id || unit->last_id >= end_id))) {
        const uint32_t begin_of_ids = lahar_shard_ordinal(ids, first_id);
        const uint32_t end_of_ids = lahar_shard_ordinal(ids, end_id);
        first = begin_of_ids > first ? begin_of_ids : first;
        end = end_of_ids < end ? end_of_ids : end;
    }
    lahar_docset_clip(&unit->may, first, end);
    if (unit->has_unverified) {
        lahar_docset_clip(&unit->unverified, first, end);
    }
}

/* What the host may hide is looked at event by event, whatever the shard knows. */
static lahar_status distrust_all(struct lahar_unit *unit, const struct lahar_unit_context *context,
                                 lahar_error *error)
{
    if (!unit->has_unverified) {
        LAHAR_TRY(fill(unit, &unit->unverified, context->allocator, error));
        unit->has_unverified = true;
    }
    lahar_docset_fill(&unit->unverified);
    lahar_docset_and(&unit->unverified, &unit->may);
    return LAHAR_OK;
}

lahar_status lahar_unit_open(struct lahar_unit *unit, struct lahar_unit_context *context,
                             lahar_error *error)
{
    return lahar_unit_open_part(unit, context, 0, unit->event_count, error);
}

lahar_status lahar_unit_open_rest(struct lahar_unit *unit, struct lahar_unit_context *context,
                                  lahar_error *error)
{
    if (unit->is_open && unit->first_document == 0 && unit->end_document == unit->event_count) {
        return LAHAR_OK;
    }
    lahar_unit_close(unit);
    return lahar_unit_open(unit, context, error);
}

lahar_status lahar_unit_open_part(struct lahar_unit *unit, struct lahar_unit_context *context,
                                  uint32_t first, uint32_t end, lahar_error *error)
{
    struct lahar_bounds bounds = {.shape = LAHAR_BOUNDS_UNKNOWN};
    LAHAR_ASSERT(!unit->is_open && end <= unit->event_count);
    unit->first_document = first;
    unit->end_document = end;
    unit->has_unverified = false;
    unit->lost_count = 0;
    if (unit->segment == NULL && unit->slice == NULL && unit->rows == NULL) {
        LAHAR_TRY(locate_rows(unit, context, error));
    } else if (unit->segment != NULL || unit->slice != NULL) {
        LAHAR_TRY(ask_shard(unit, context, &bounds, error));
    }
    const lahar_status status = take_bounds(unit, &bounds, context->allocator, error);
    if (status != LAHAR_OK) {
        return status;
    }
    unit->is_open = true;
    if (context->authorize != NULL) {
        unit->needed = (struct lahar_needed_fields){.is_all = true}; /* the host sees it all */
    } else {
        lahar_needed_fields_of(context->filter, lahar_schema_stream(context->catalog, unit->stream),
                               &unit->needed);
    }
    const lahar_status distrusted =
        context->authorize == NULL ? LAHAR_OK : distrust_all(unit, context, error);
    if (distrusted != LAHAR_OK) {
        lahar_unit_close(unit); /* who asks again must not find it open and trusting */
        return distrusted;
    }
    clip(unit, context);
    return LAHAR_OK;
}

void lahar_unit_close(struct lahar_unit *unit)
{
    if (unit->is_open) {
        lahar_docset_deinit(&unit->may);
        if (unit->has_unverified) {
            lahar_docset_deinit(&unit->unverified);
        }
        unit->is_open = false;
        unit->has_unverified = false;
    }
}

void lahar_unit_drop_block(struct lahar_unit *unit)
{
    lahar_block_release(unit->block);
    unit->block = NULL;
}

void lahar_unit_deinit(struct lahar_unit *unit, const lahar_allocator *allocator)
{
    lahar_unit_close(unit);
    lahar_unit_drop_block(unit);
    lahar_release(allocator, unit->rows);
    unit->rows = NULL;
}

/* --- reading -------------------------------------------------------------------- */

static lahar_status load_block(struct lahar_unit *unit, struct lahar_unit_context *context,
                               uint32_t document, uint32_t *row_out, lahar_error *error)
{
    const uint32_t index = lahar_segment_find_ordinal(unit->segment, document);
    const struct lahar_block_info *info = lahar_segment_block_info(unit->segment, index);
    *row_out = document - info->first_ordinal;
    if (unit->block == NULL || unit->block_index != index) {
        lahar_unit_drop_block(unit);
        const lahar_status status = lahar_segment_load(unit->segment, index, &unit->block, error);
        if (status != LAHAR_OK) {
            unit->block = NULL;
            return status;
        }
        unit->block_index = index;
        context->scanned_bytes += info->size;
    }
    if (*row_out >= lahar_block_row_count(unit->block)) {
        return lahar_fail(error, LAHAR_CORRUPT, "the block of events %llu to %llu has %u rows",
                          (unsigned long long)info->first_id, (unsigned long long)info->last_id,
                          lahar_block_row_count(unit->block));
    }
    return LAHAR_OK;
}

static uint64_t resident_id(const struct lahar_unit *unit, const struct lahar_unit_context *context,
                            uint32_t document)
{
    if (unit->slice != NULL) {
        return lahar_shard_id(unit->slice, document);
    }
    const uint32_t index = unit->rows[document].batch;
    uint32_t first = document;
    const struct lahar_resident_batch *batch = lahar_snapshot_batch(context->snapshot, index);
    /* Rows of a batch stand together: its first is at most event_count - 1 back. */
    uint32_t low = document >= batch->event_count ? document - batch->event_count + 1 : 0;
    while (low < first) {
        const uint32_t middle = low + (first - low) / 2;
        if (unit->rows[middle].batch == index) {
            first = middle;
        } else {
            low = middle + 1;
        }
    }
    return batch->first_id + (document - first);
}

/* Where the row of a document of a slice is: the rows of its batch are looked for together, since
 * results that follow one another are mostly of one batch. */
static lahar_status slice_row(struct lahar_unit *unit, const struct lahar_unit_context *context,
                              uint32_t document, const struct lahar_unit_row **row_out,
                              lahar_error *error)
{
    const uint64_t id = lahar_shard_id(unit->slice, document);
    const size_t index = lahar_snapshot_find_batch(context->snapshot, id);
    if (index == lahar_snapshot_batch_count(context->snapshot)) {
        return lahar_fail(error, LAHAR_CORRUPT, "event %llu is not in memory",
                          (unsigned long long)id);
    }
    const struct lahar_resident_batch *batch = lahar_snapshot_batch(context->snapshot, index);
    if (unit->rows == NULL || unit->row_batch != index) {
        if (batch->event_count > unit->row_capacity) {
            struct lahar_unit_row *rows =
                lahar_allocate(context->allocator, batch->event_count * sizeof *rows);
            if (rows == NULL) {
                return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %u rows",
                                  batch->event_count);
            }
            lahar_release(context->allocator, unit->rows);
            unit->rows = rows;
            unit->row_capacity = batch->event_count;
        }
        locate_batch(batch, (uint32_t)index, unit->rows);
        unit->row_batch = index;
    }
    if (id < batch->first_id) {
        return lahar_fail(error, LAHAR_CORRUPT, "event %llu is not in memory",
                          (unsigned long long)id);
    }
    *row_out = &unit->rows[id - batch->first_id];
    return LAHAR_OK;
}

static lahar_status resident_row(struct lahar_unit *unit, const struct lahar_unit_context *context,
                                 uint32_t document, const struct lahar_unit_row **row_out,
                                 lahar_error *error)
{
    if (unit->slice != NULL) {
        return slice_row(unit, context, document, row_out, error);
    }
    *row_out = &unit->rows[document];
    return LAHAR_OK;
}

static int64_t row_time(const struct lahar_unit_context *context, const struct lahar_unit_row *row)
{
    const int64_t time_ns = (int64_t)lahar_load_u64(row->row + 8);
    return time_ns != LAHAR_TIME_OF_ARRIVAL
               ? time_ns
               : lahar_snapshot_batch(context->snapshot, row->batch)->arrival_ns;
}

static lahar_status read_resident(struct lahar_unit *unit, const struct lahar_unit_context *context,
                                  uint32_t document, struct lahar_arena *arena,
                                  lahar_event *event_out, lahar_error *error)
{
    const struct lahar_unit_row *row = NULL;
    LAHAR_TRY(resident_row(unit, context, document, &row, error));
    LAHAR_TRY(lahar_row_decode(row->row, lahar_load_u32(row->row), arena, event_out, error));
    event_out->id = resident_id(unit, context, document);
    event_out->arrival_ns = lahar_snapshot_batch(context->snapshot, row->batch)->arrival_ns;
    if (event_out->time_ns == LAHAR_TIME_OF_ARRIVAL) {
        event_out->time_ns = event_out->arrival_ns;
    }
    event_out->is_durable = event_out->id < lahar_snapshot_durable(context->snapshot);
    return LAHAR_OK;
}

lahar_status lahar_unit_read(struct lahar_unit *unit, struct lahar_unit_context *context,
                             uint32_t document, struct lahar_arena *arena, lahar_event *event_out,
                             lahar_error *error)
{
    uint32_t row = 0;
    if (unit->segment == NULL) {
        return read_resident(unit, context, document, arena, event_out, error);
    }
    LAHAR_TRY(load_block(unit, context, document, &row, error));
    return lahar_block_read(unit->block, row, arena, event_out, error);
}

lahar_status lahar_unit_read_fields(struct lahar_unit *unit, struct lahar_unit_context *context,
                                    uint32_t document, const struct lahar_needed_fields *needed,
                                    struct lahar_arena *arena, lahar_event *event_out,
                                    lahar_error *error)
{
    uint32_t row = 0;
    if (unit->segment == NULL || needed->is_all) {
        return lahar_unit_read(unit, context, document, arena, event_out, error);
    }
    LAHAR_TRY(load_block(unit, context, document, &row, error));
    return lahar_block_read_fields(unit->block, row, needed->items, needed->count, arena, event_out,
                                   error);
}

lahar_status lahar_unit_id(struct lahar_unit *unit, struct lahar_unit_context *context,
                           uint32_t document, uint64_t *id_out, lahar_error *error)
{
    uint32_t row = 0;
    if (unit->segment == NULL) {
        *id_out = resident_id(unit, context, document);
        return LAHAR_OK;
    }
    if (unit->shard != NULL) {
        *id_out = lahar_shard_id(unit->shard, document);
        return LAHAR_OK;
    }
    LAHAR_TRY(load_block(unit, context, document, &row, error));
    *id_out = lahar_block_id(unit->block, row);
    return LAHAR_OK;
}

lahar_status lahar_unit_time(struct lahar_unit *unit, struct lahar_unit_context *context,
                             uint32_t document, int64_t *time_out, lahar_error *error)
{
    uint32_t row = 0;
    if (unit->segment == NULL) {
        const struct lahar_unit_row *resident = NULL;
        LAHAR_TRY(resident_row(unit, context, document, &resident, error));
        *time_out = row_time(context, resident);
        return LAHAR_OK;
    }
    LAHAR_TRY(load_block(unit, context, document, &row, error));
    *time_out = lahar_block_time(unit->block, row);
    return LAHAR_OK;
}

/* --- deciding --------------------------------------------------------------------- */

static void remove_document(struct lahar_docset *set, uint32_t document)
{
    set->words[document / 64] &= ~(UINT64_C(1) << document % 64);
}

/* A resident row whose header alone shows that it cannot match need not be decoded. */
static bool is_excluded(const struct lahar_unit_context *context, const struct lahar_unit_row *row)
{
    if (row->row == damaged_row) {
        return false;
    }
    const int64_t time_ns = row_time(context, row);
    return time_ns < context->prune.time.first_ns || time_ns > context->prune.time.last_ns;
}

/* Asks the filter and the host about it. */
lahar_status lahar_unit_decide(struct lahar_unit *unit, struct lahar_unit_context *context,
                               uint32_t document, bool *matches_out, lahar_error *error)
{
    lahar_event event;
    *matches_out = false;
    context->scanned_events++;
    if (unit->segment == NULL) {
        const struct lahar_unit_row *row = NULL;
        LAHAR_TRY(resident_row(unit, context, document, &row, error));
        if (is_excluded(context, row)) {
            return LAHAR_OK;
        }
        context->scanned_bytes += lahar_load_u32(row->row);
    }
    lahar_arena_reset(&context->arena);
    LAHAR_TRY(lahar_unit_read_fields(unit, context, document, &unit->needed, &context->arena,
                                     &event, error));
    if (event.id < context->prune.first_id || event.id >= context->prune.end_id) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_match(context->matcher, context->filter, &event, matches_out, error));
    *matches_out = *matches_out && (context->authorize == NULL ||
                                    context->authorize(context->authorize_context, &event));
    return LAHAR_OK;
}

void lahar_unit_note(struct lahar_unit *unit, uint32_t document, bool matches)
{
    remove_document(&unit->unverified, document);
    if (!matches) {
        remove_document(&unit->may, document);
    }
}

lahar_status lahar_unit_verify(struct lahar_unit *unit, struct lahar_unit_context *context,
                               uint32_t document, bool *matches_out, lahar_error *error)
{
    *matches_out = true;
    if (!unit->has_unverified || !lahar_docset_has(&unit->unverified, document)) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_unit_decide(unit, context, document, matches_out, error));
    lahar_unit_note(unit, document, *matches_out);
    return LAHAR_OK;
}

void lahar_unit_block_range(const struct lahar_unit *unit, uint32_t document, uint32_t *first_out,
                            uint32_t *end_out)
{
    *first_out = document;
    *end_out = document + 1;
    if (unit->segment != NULL) {
        const struct lahar_block_info *info = lahar_segment_block_info(
            unit->segment, lahar_segment_find_ordinal(unit->segment, document));
        *first_out = info->first_ordinal;
        *end_out = info->first_ordinal + info->row_count;
    }
}

void lahar_unit_drop_range(struct lahar_unit *unit, struct lahar_unit_context *context,
                           uint32_t document)
{
    uint32_t first = 0;
    uint32_t end = 0;
    lahar_unit_block_range(unit, document, &first, &end);
    context->is_partial = true;
    for (uint32_t d = lahar_docset_next(&unit->may, first); d < end && d < unit->may.universe;
         d = lahar_docset_next(&unit->may, d + 1)) {
        const bool is_open = unit->has_unverified && lahar_docset_has(&unit->unverified, d);
        unit->lost_count += !is_open;
        remove_document(&unit->may, d);
        if (is_open) {
            remove_document(&unit->unverified, d);
        }
    }
}

uint64_t lahar_unit_sum(const struct lahar_unit *unit)
{
    return lahar_docset_count(&unit->may) + unit->lost_count;
}
