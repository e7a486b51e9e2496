/* Results in order of id.
 *
 * Files of different streams may overlap in ids, so the walk merges: it keeps the units open
 * whose ids may come next, each with its next result as head, and takes the best head. A unit is
 * opened only when its ids come up, so a limit ends the work early; a large one in parts, the first
 * one small, since its end may be all that is wanted. Where results are rare, the next units are
 * opened, and their candidates decided, by several threads. */
#include "engine/query/query_state.h"
#include "engine/query/workers.h"
#include "io/base/error.h"

enum {
    READ_AHEAD_FROM = 2, /* units that are walked before others are opened ahead */
    READ_AHEAD_MAX = 16, /* units */
    /* Every part of a unit is so many times larger than the one before it, since what a filter
     * costs need not depend on how many documents are asked about. */
    PART_GROWTH = 4
};

static bool is_newest_first(const struct lahar_query *query)
{
    return query->options.order == LAHAR_ORDER_NEWEST;
}

static bool comes_before(const struct lahar_query *query, uint64_t a, uint64_t b)
{
    return is_newest_first(query) ? a > b : a < b;
}

/* The next document from the cursor on; false when none is left. */
static bool next_document(const struct lahar_query *query, const struct lahar_unit *unit,
                          uint32_t *document_out)
{
    if (unit->is_done) {
        return false;
    }
    if (is_newest_first(query)) {
        *document_out = lahar_docset_previous(&unit->may, unit->cursor);
        return *document_out != UINT32_MAX;
    }
    *document_out = lahar_docset_next(&unit->may, unit->cursor);
    return *document_out < unit->may.universe;
}

static void step(const struct lahar_query *query, struct lahar_unit *unit, uint32_t document)
{
    if (is_newest_first(query)) {
        unit->is_done = document == 0;
        unit->cursor = document == 0 ? 0 : document - 1;
    } else {
        unit->is_done = document + 1 >= unit->event_count;
        unit->cursor = document + 1;
    }
}

/* Opens the documents from the cursor on, or the first of them where all need not be known. */
static lahar_status open_from_cursor(struct lahar_query *query, struct lahar_unit *unit,
                                     lahar_error *error)
{
    const uint32_t count = unit->event_count;
    const uint64_t size =
        unit->part_size == 0 ? query->first_part_size : (uint64_t)unit->part_size * PART_GROWTH;
    if (query->options.limit == 0 || lahar_query_wants_count(query) || unit->segment == NULL ||
        unit->shard == NULL || unit->is_done || size * PART_GROWTH > count) {
        unit->part_size = 0;
        return lahar_unit_open(unit, &query->context, error);
    }
    unit->part_size = (uint32_t)size;
    if (is_newest_first(query)) {
        const uint32_t end = unit->cursor + 1;
        return lahar_unit_open_part(unit, &query->context, end > size ? end - (uint32_t)size : 0,
                                    end, error);
    }
    const uint64_t end = unit->cursor + size;
    return lahar_unit_open_part(unit, &query->context, unit->cursor,
                                end < count ? (uint32_t)end : count, error);
}

/* Goes on behind the part of the unit that is open; false when that was the last one. */
static bool leave_part(const struct lahar_query *query, struct lahar_unit *unit)
{
    const bool is_last = is_newest_first(query) ? unit->first_document == 0
                                                : unit->end_document == unit->event_count;
    if (is_last || unit->is_done) {
        return false;
    }
    /* A block that could not be read may have reached beyond the part. */
    if (is_newest_first(query)) {
        const uint32_t last = unit->first_document - 1;
        unit->cursor = unit->cursor < last ? unit->cursor : last;
    } else {
        unit->cursor = unit->cursor > unit->end_document ? unit->cursor : unit->end_document;
    }
    lahar_unit_close(unit);
    return true;
}

/* Takes out the block of a document that cannot be read, and goes on behind it. */
static void pass_block(struct lahar_query *query, struct lahar_unit *unit, uint32_t document)
{
    uint32_t first = 0;
    uint32_t end = 0;
    lahar_unit_drop_range(unit, &query->context, document);
    lahar_unit_block_range(unit, document, &first, &end);
    step(query, unit, is_newest_first(query) ? first : end - 1);
}

/* Finds the next result of the part of a unit that is open. LAHAR_NOT_FOUND: there is none. A
 * failure leaves the unit so that the next call goes on behind what failed. */
static lahar_status find_in_part(struct lahar_query *query, struct lahar_unit *unit,
                                 lahar_error *error)
{
    struct lahar_unit_context *context = &query->context;
    uint32_t document = 0;
    while (next_document(query, unit, &document)) {
        LAHAR_TRY(lahar_query_check(query, error));
        uint64_t id = 0;
        bool matches = false;
        lahar_status status = lahar_unit_id(unit, context, document, &id, error);
        if (status == LAHAR_OK && !lahar_query_is_behind(query, 0, id)) {
            step(query, unit, document);
            continue;
        }
        if (status == LAHAR_OK) {
            status = lahar_unit_verify(unit, context, document, &matches, error);
        }
        if (status == LAHAR_CORRUPT) {
            pass_block(query, unit, document);
            return status;
        }
        if (status != LAHAR_OK) {
            return status;
        }
        step(query, unit, document);
        if (matches) {
            unit->has_head = true;
            unit->head = document;
            unit->head_id = id;
            return LAHAR_OK;
        }
    }
    return LAHAR_NOT_FOUND;
}

/* The same of the whole unit. */
static lahar_status find_head(struct lahar_query *query, struct lahar_unit *unit,
                              lahar_error *error)
{
    lahar_status status = LAHAR_NOT_FOUND;
    do {
        if (!unit->is_open) {
            LAHAR_TRY(open_from_cursor(query, unit, error));
        }
        status = find_in_part(query, unit, error);
    } while (status == LAHAR_NOT_FOUND && leave_part(query, unit));
    return status;
}

static void place_cursor(const struct lahar_query *query, struct lahar_unit *unit)
{
    const uint32_t count = unit->event_count;
    unit->part_size = 0;
    unit->is_done = count == 0;
    unit->cursor = is_newest_first(query) && count != 0 ? count - 1 : 0;
    if (!query->position.is_set || unit->shard == NULL || count == 0) {
        return;
    }
    const uint64_t id = query->position.id;
    if (is_newest_first(query)) {
        const uint32_t beyond = lahar_shard_ordinal(unit->shard, id);
        unit->is_done = beyond == 0;
        unit->cursor = beyond == 0 ? 0 : beyond - 1;
    } else {
        unit->cursor = id == UINT64_MAX ? count : lahar_shard_ordinal(unit->shard, id + 1);
        unit->is_done = unit->cursor >= count;
    }
}

/* Takes an exhausted unit out, its total fixed while its sets are at hand. */
static lahar_status retire(struct lahar_query *query, uint32_t index, lahar_error *error)
{
    struct lahar_unit *unit = &query->units[query->active[index]];
    if (lahar_query_wants_count(query)) {
        LAHAR_TRY(lahar_query_settle(query, &query->context, unit, error));
    } else if (!unit->is_counted) {
        (void)atomic_fetch_add_explicit(&query->settled_count, unit->event_count,
                                        memory_order_relaxed);
    }
    lahar_unit_close(unit);
    lahar_unit_drop_block(unit);
    query->active[index] = query->active[--query->active_count];
    return LAHAR_OK;
}

/* Gives every active unit its head, or retires it. */
static lahar_status find_heads(struct lahar_query *query, lahar_error *error)
{
    uint32_t i = 0;
    while (i < query->active_count) {
        struct lahar_unit *unit = &query->units[query->active[i]];
        if (unit->has_head) {
            i++;
            continue;
        }
        const lahar_status status = find_head(query, unit, error);
        if (status == LAHAR_NOT_FOUND) {
            LAHAR_TRY(retire(query, i, error));
        } else if (status != LAHAR_OK) {
            return status;
        }
    }
    return LAHAR_OK;
}

static struct lahar_unit *best_head(const struct lahar_query *query)
{
    struct lahar_unit *best = NULL;
    for (uint32_t i = 0; i < query->active_count; i++) {
        struct lahar_unit *unit = &query->units[query->active[i]];
        if (best == NULL || comes_before(query, unit->head_id, best->head_id)) {
            best = unit;
        }
    }
    return best;
}

/* Whether all of a unit lies before the position. */
static bool is_passed(const struct lahar_query *query, const struct lahar_unit *unit)
{
    return !lahar_query_is_behind(query, 0,
                                  is_newest_first(query) ? unit->first_id : unit->last_id);
}

/* Decides candidates of a unit that is not walked yet, as many as may be wanted of it. What cannot
 * be read is left to the walk, which reports it. */
static lahar_status look_ahead(struct lahar_query_worker *worker, struct lahar_unit *unit,
                               lahar_error *error)
{
    struct lahar_query *query = worker->query;
    const uint64_t limit = query->options.limit;
    const uint64_t wanted = limit == 0 ? UINT64_MAX : limit - query->returned;
    uint64_t found = 0;
    uint32_t document = 0;
    LAHAR_TRY(lahar_query_check(query, error));
    LAHAR_TRY(lahar_unit_open(unit, &worker->context, error));
    place_cursor(query, unit);
    while (unit->has_unverified && found < wanted && next_document(query, unit, &document)) {
        bool matches = false;
        lahar_error reason = {0};
        LAHAR_TRY(lahar_query_check(query, error));
        const lahar_status status =
            lahar_unit_verify(unit, &worker->context, document, &matches, &reason);
        if (status == LAHAR_CORRUPT) {
            break;
        }
        if (status != LAHAR_OK) {
            return lahar_fail(error, status, "%s", reason.message);
        }
        found += matches;
        step(query, unit, document);
    }
    lahar_unit_drop_block(unit);
    return LAHAR_OK;
}

/* Opens the units behind the next one by several threads, once the first units have shown that
 * results are rare. */
static lahar_status read_ahead(struct lahar_query *query, lahar_error *error)
{
    uint32_t units[READ_AHEAD_MAX];
    struct lahar_query_job job = {.work = look_ahead, .units = units};
    const uint32_t workers = lahar_query_worker_count(query);
    const uint32_t most = workers * 2 < READ_AHEAD_MAX ? workers * 2 : (uint32_t)READ_AHEAD_MAX;
    if (workers == 1 || query->next_unit < READ_AHEAD_FROM) {
        return LAHAR_OK;
    }
    for (uint32_t i = query->next_unit; i < query->unit_count && job.unit_count < most; i++) {
        if (!query->units[i].is_open) {
            units[job.unit_count++] = i;
        }
    }
    return lahar_query_run_job(query, &job, error);
}

/* Opens the next unit if it may hold something before best. */
static lahar_status activate(struct lahar_query *query, const struct lahar_unit *best,
                             bool *is_active_out, lahar_error *error)
{
    *is_active_out = false;
    while (query->next_unit < query->unit_count) {
        struct lahar_unit *unit = &query->units[query->next_unit];
        if (is_passed(query, unit)) {
            query->next_unit++;
            continue;
        }
        if (best != NULL && comes_before(query, best->head_id,
                                         is_newest_first(query) ? unit->last_id : unit->first_id)) {
            return LAHAR_OK;
        }
        if (!unit->is_open && best == NULL) {
            LAHAR_TRY(read_ahead(query, error));
        }
        place_cursor(query, unit);
        if (!unit->is_open) {
            LAHAR_TRY(open_from_cursor(query, unit, error));
        }
        unit->has_head = false;
        query->active[query->active_count++] = query->next_unit++;
        *is_active_out = true;
        return LAHAR_OK;
    }
    return LAHAR_OK;
}

lahar_status lahar_query_walk(struct lahar_query *query, const lahar_event **event_out,
                              lahar_error *error)
{
    struct lahar_unit *best = NULL;
    bool is_active = true;
    while (is_active) {
        LAHAR_TRY(find_heads(query, error));
        best = best_head(query);
        LAHAR_TRY(lahar_query_check(query, error));
        LAHAR_TRY(activate(query, best, &is_active, error));
    }
    if (best == NULL) {
        return LAHAR_NOT_FOUND;
    }
    lahar_query_read_results_ahead(query, best);
    const lahar_status status = lahar_query_read_event(query, best, best->head, error);
    best->has_head = false;
    if (status == LAHAR_CORRUPT) {
        pass_block(query, best, best->head);
        return status;
    }
    if (status != LAHAR_OK) {
        best->has_head = true;
        return status;
    }
    *event_out = &query->event;
    return LAHAR_OK;
}
