/* Results in order of event time.
 *
 * Times are not in order of id, so each pass collects the best results behind the position in a
 * heap of bounded size, and they are handed out one by one; a query without limit makes as many
 * passes as it needs. Units and blocks are visited by their own best time, so that those which
 * cannot beat the heap's worst result are never read. */
#include <stdlib.h>

#include "engine/query/query_state.h"
#include "io/base/error.h"

enum {
    /* Results a pass collects at most, 24 bytes each: more means fewer passes. */
    PASS_HITS = 65536
};

static bool is_latest_first(const struct lahar_query *query)
{
    return query->options.order == LAHAR_ORDER_LATEST_TIME;
}

/* < 0: a comes before b in the results. */
static int compare_hits(const struct lahar_query_hit *a, const struct lahar_query_hit *b,
                        bool is_latest)
{
    const int order = a->time_ns != b->time_ns ? (a->time_ns < b->time_ns ? -1 : 1)
                                               : (a->id > b->id) - (a->id < b->id);
    return is_latest ? -order : order;
}

static int compare_for_qsort(const void *a, const void *b, void *is_latest)
{
    return compare_hits(a, b, *(const bool *)is_latest);
}

/* --- the heap: the worst hit on top --------------------------------------------- */

static void sift_up(struct lahar_query *query, size_t i)
{
    struct lahar_query_hit *hits = query->hits;
    const struct lahar_query_hit hit = hits[i];
    while (i > 0 && compare_hits(&hits[(i - 1) / 2], &hit, is_latest_first(query)) < 0) {
        hits[i] = hits[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    hits[i] = hit;
}

static void sift_down(struct lahar_query *query)
{
    struct lahar_query_hit *hits = query->hits;
    const struct lahar_query_hit hit = hits[0];
    const bool is_latest = is_latest_first(query);
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= query->hit_count) {
            break;
        }
        if (child + 1 < query->hit_count &&
            compare_hits(&hits[child], &hits[child + 1], is_latest) < 0) {
            child++;
        }
        if (compare_hits(&hit, &hits[child], is_latest) >= 0) {
            break;
        }
        hits[i] = hits[child];
        i = child;
    }
    hits[i] = hit;
}

static bool is_full(const struct lahar_query *query)
{
    return query->hit_count == query->hit_capacity;
}

static bool beats_worst(const struct lahar_query *query, const struct lahar_query_hit *hit)
{
    return !is_full(query) || compare_hits(hit, &query->hits[0], is_latest_first(query)) < 0;
}

static void add_hit(struct lahar_query *query, const struct lahar_query_hit *hit)
{
    if (is_full(query)) {
        query->hits[0] = *hit;
        sift_down(query);
    } else {
        query->hits[query->hit_count] = *hit;
        sift_up(query, query->hit_count++);
    }
}

/* Whether times of this range may hold a result that is behind the position and beats the
 * worst hit. */
static bool may_beat(const struct lahar_query *query, int64_t min_ns, int64_t max_ns)
{
    const struct lahar_query_position *position = &query->position;
    const bool is_latest = is_latest_first(query);
    if (position->is_set && (is_latest ? min_ns > position->time_ns : max_ns < position->time_ns)) {
        return false;
    }
    return !is_full(query) ||
           (is_latest ? max_ns >= query->hits[0].time_ns : min_ns <= query->hits[0].time_ns);
}

/* --- a pass ----------------------------------------------------------------------- */

/* Damage met in a pass does not end it; the first is reported once the pass is over. */
static void note_damage(struct lahar_query *query, struct lahar_unit *unit, uint32_t document,
                        const lahar_error *reason)
{
    if (query->damage.status == LAHAR_OK) {
        query->damage = *reason;
    }
    lahar_unit_drop_range(unit, &query->context, document);
}

/* Offers the candidates among documents [first, end), which share one block. */
static lahar_status offer(struct lahar_query *query, struct lahar_unit *unit, uint32_t first,
                          uint32_t end, lahar_error *error)
{
    struct lahar_unit_context *context = &query->context;
    LAHAR_TRY(lahar_query_check(query, error));
    uint32_t looked_at = 0;
    for (uint32_t d = lahar_docset_next(&unit->may, first); d < end && d < unit->may.universe;
         d = lahar_docset_next(&unit->may, d + 1)) {
        struct lahar_query_hit hit = {.unit = (uint32_t)(unit - query->units), .document = d};
        bool matches = false;
        lahar_error reason = {0};
        if ((++looked_at & 1023) == 0) {
            LAHAR_TRY(lahar_query_check(query, error));
        }
        lahar_status status = lahar_unit_time(unit, context, d, &hit.time_ns, &reason);
        if (status == LAHAR_OK) {
            status = lahar_unit_id(unit, context, d, &hit.id, &reason);
        }
        if (status == LAHAR_OK) {
            if (!lahar_query_is_behind(query, hit.time_ns, hit.id) || !beats_worst(query, &hit)) {
                continue;
            }
            status = lahar_unit_verify(unit, context, d, &matches, &reason);
        }
        if (status == LAHAR_CORRUPT) {
            note_damage(query, unit, d, &reason);
        } else if (status != LAHAR_OK) {
            if (error != NULL) {
                *error = reason;
            }
            return status;
        } else if (matches) {
            add_hit(query, &hit);
        }
    }
    return LAHAR_OK;
}

struct block_place {
    int64_t best_ns; /* negated for latest first, so that the lowest is the best */
    uint32_t block;
};

static int compare_places(const void *a, const void *b)
{
    const struct block_place *x = a;
    const struct block_place *y = b;
    return (x->best_ns > y->best_ns) - (x->best_ns < y->best_ns);
}

/* The blocks of a file, those with the best times first. */
static lahar_status offer_blocks(struct lahar_query *query, struct lahar_unit *unit,
                                 lahar_error *error)
{
    const uint32_t count = lahar_segment_describe(unit->segment)->block_count;
    struct block_place *places =
        lahar_allocate(query->allocator, (count + (size_t)1) * sizeof *places);
    if (places == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to order %u blocks", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_block_info *info = lahar_segment_block_info(unit->segment, i);
        places[i] = (struct block_place){
            is_latest_first(query) ? ~info->time_max_ns : info->time_min_ns, i};
    }
    qsort(places, count, sizeof *places, compare_places);
    lahar_status status = LAHAR_OK;
    for (uint32_t i = 0; i < count && status == LAHAR_OK; i++) {
        const struct lahar_block_info *info =
            lahar_segment_block_info(unit->segment, places[i].block);
        if (may_beat(query, info->time_min_ns, info->time_max_ns)) {
            status = offer(query, unit, info->first_ordinal, info->first_ordinal + info->row_count,
                           error);
        }
    }
    lahar_release(query->allocator, places);
    return status;
}

static lahar_status visit(struct lahar_query *query, struct lahar_unit *unit, lahar_error *error)
{
    const bool was_open = unit->is_open;
    if (!was_open) {
        LAHAR_TRY(lahar_unit_open(unit, &query->context, error));
    }
    lahar_status status = unit->segment == NULL ? offer(query, unit, 0, unit->event_count, error)
                                                : offer_blocks(query, unit, error);
    const bool is_settled = !unit->has_unverified ||
                            lahar_docset_next(&unit->unverified, 0) == unit->unverified.universe;
    if (status == LAHAR_OK && is_settled && !unit->is_counted && lahar_query_wants_count(query)) {
        status = lahar_query_settle(query, &query->context, unit, error);
    }
    lahar_unit_close(unit);
    lahar_unit_drop_block(unit);
    return status;
}

static lahar_status reserve_hits(struct lahar_query *query, lahar_error *error)
{
    const uint64_t limit = query->options.limit;
    const uint64_t left = limit == 0 ? PASS_HITS : limit - query->returned;
    const size_t capacity = left < PASS_HITS ? (size_t)left : PASS_HITS;
    if (query->hits == NULL || capacity > query->hit_capacity) {
        lahar_release(query->allocator, query->hits);
        query->hits = lahar_allocate(query->allocator, capacity * sizeof *query->hits);
        if (query->hits == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu results", capacity);
        }
    }
    query->hit_capacity = capacity;
    return LAHAR_OK;
}

/* Collects the results behind the position, in order. */
static lahar_status run_pass(struct lahar_query *query, lahar_error *error)
{
    LAHAR_TRY(reserve_hits(query, error));
    query->hit_count = 0;
    query->hit_next = 0;
    for (uint32_t i = 0; i < query->unit_count; i++) {
        struct lahar_unit *unit = &query->units[i];
        if (!may_beat(query, unit->time_min_ns, unit->time_max_ns)) {
            continue;
        }
        const lahar_status status = visit(query, unit, error);
        if (status != LAHAR_OK) {
            query->hit_count = 0;
            return status;
        }
    }
    bool is_latest = is_latest_first(query);
    qsort_r(query->hits, query->hit_count, sizeof *query->hits, compare_for_qsort, &is_latest);
    query->is_last_pass = !is_full(query);
    return LAHAR_OK;
}

lahar_status lahar_query_take_hit(struct lahar_query *query, const lahar_event **event_out,
                                  lahar_error *error)
{
    if (query->hit_next == query->hit_count) {
        if (query->is_last_pass) {
            return LAHAR_NOT_FOUND;
        }
        LAHAR_TRY(run_pass(query, error));
    }
    if (query->damage.status != LAHAR_OK) {
        const lahar_status status = query->damage.status;
        if (error != NULL) {
            *error = query->damage;
        }
        query->damage.status = LAHAR_OK;
        return status;
    }
    if (query->hit_next == query->hit_count) {
        return LAHAR_NOT_FOUND;
    }
    const struct lahar_query_hit *hit = &query->hits[query->hit_next];
    struct lahar_unit *unit = &query->units[hit->unit];
    if (query->reading != NULL && query->reading != unit) {
        lahar_unit_drop_block(query->reading);
    }
    query->reading = unit;
    lahar_arena_reset(&query->event_arena);
    const lahar_status status = lahar_unit_read(unit, &query->context, hit->document,
                                                &query->event_arena, &query->event, error);
    if (status == LAHAR_OK || status == LAHAR_CORRUPT) {
        query->hit_next++;
    }
    query->context.is_partial = query->context.is_partial || status == LAHAR_CORRUPT;
    if (status == LAHAR_OK) {
        *event_out = &query->event;
    }
    return status;
}
