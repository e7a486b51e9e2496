/* Results in order of event time.
 *
 * Times are not in order of id, so each pass collects the best results behind the position in a
 * heap of bounded size for each worker, and they are handed out one by one; a query without limit
 * makes as many passes as it needs. Units and blocks are visited by their own best time, so that
 * those which cannot beat the worst result of any full heap are never read. What is found does not
 * depend on the number of workers: the heaps together hold every result that belongs to the best.
 */
#include <stdlib.h>

#include "engine/query/query_state.h"
#include "engine/query/workers.h"
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

/* What one worker has found in a pass. */
struct heap {
    struct lahar_query_hit *hits; /* owned */
    size_t count;
    size_t capacity;
    bool is_latest;
    struct pass *pass;
    uint32_t damaged_unit; /* UINT32_MAX: no damage was met */
    lahar_error damage;    /* in the first unit that had some */
};

/* What the workers of a pass share. */
struct pass {
    /* The worst time of the heap that is full of the best ones: results beyond it are of no use to
     * anyone. Ranked, so that it only ever falls. */
    _Atomic int64_t bound;
};

/* Times in an order in which the lowest is the best. */
static int64_t rank_of(int64_t time_ns, bool is_latest)
{
    return is_latest ? ~time_ns : time_ns;
}

static void sift_up(struct heap *heap, size_t i)
{
    struct lahar_query_hit *hits = heap->hits;
    const struct lahar_query_hit hit = hits[i];
    while (i > 0 && compare_hits(&hits[(i - 1) / 2], &hit, heap->is_latest) < 0) {
        hits[i] = hits[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    hits[i] = hit;
}

static void sift_down(struct heap *heap)
{
    struct lahar_query_hit *hits = heap->hits;
    const struct lahar_query_hit hit = hits[0];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count &&
            compare_hits(&hits[child], &hits[child + 1], heap->is_latest) < 0) {
            child++;
        }
        if (compare_hits(&hit, &hits[child], heap->is_latest) >= 0) {
            break;
        }
        hits[i] = hits[child];
        i = child;
    }
    hits[i] = hit;
}

static bool is_full(const struct heap *heap)
{
    return heap->count == heap->capacity;
}

static bool beats_worst(const struct heap *heap, const struct lahar_query_hit *hit)
{
    return !is_full(heap) || compare_hits(hit, &heap->hits[0], heap->is_latest) < 0;
}

/* Tells the others how good a result must be. */
static void lower_bound(const struct heap *heap)
{
    const int64_t rank = rank_of(heap->hits[0].time_ns, heap->is_latest);
    int64_t bound = atomic_load_explicit(&heap->pass->bound, memory_order_relaxed);
    while (rank < bound &&
           !atomic_compare_exchange_weak_explicit(&heap->pass->bound, &bound, rank,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void add_hit(struct heap *heap, const struct lahar_query_hit *hit)
{
    if (is_full(heap)) {
        heap->hits[0] = *hit;
        sift_down(heap);
    } else {
        heap->hits[heap->count] = *hit;
        sift_up(heap, heap->count++);
    }
    if (is_full(heap)) {
        lower_bound(heap);
    }
}

/* Whether times of this range may hold a result that is behind the position and of use. */
static bool may_beat(const struct lahar_query *query, const struct heap *heap, int64_t min_ns,
                     int64_t max_ns)
{
    const struct lahar_query_position *position = &query->position;
    const bool is_latest = heap->is_latest;
    if (position->is_set && (is_latest ? min_ns > position->time_ns : max_ns < position->time_ns)) {
        return false;
    }
    return rank_of(is_latest ? max_ns : min_ns, is_latest) <=
           atomic_load_explicit(&heap->pass->bound, memory_order_relaxed);
}

/* --- a pass ----------------------------------------------------------------------- */

/* Damage met in a pass does not end it; the first is reported once the pass is over. */
static void note_damage(struct lahar_query_worker *worker, struct lahar_unit *unit,
                        uint32_t document, const lahar_error *reason)
{
    struct heap *heap = worker->share;
    const uint32_t index = (uint32_t)(unit - worker->query->units);
    if (index < heap->damaged_unit) {
        heap->damaged_unit = index;
        heap->damage = *reason;
    }
    lahar_unit_drop_range(unit, &worker->context, document);
}

/* Offers the candidates among documents [first, end), which share one block. */
static lahar_status offer(struct lahar_query_worker *worker, struct lahar_unit *unit,
                          uint32_t first, uint32_t end, lahar_error *error)
{
    const struct lahar_query *query = worker->query;
    struct lahar_unit_context *context = &worker->context;
    struct heap *heap = worker->share;
    LAHAR_TRY(lahar_query_check(worker->query, error));
    for (uint32_t d = lahar_docset_next(&unit->may, first); d < end && d < unit->may.universe;
         d = lahar_docset_next(&unit->may, d + 1)) {
        struct lahar_query_hit hit = {.unit = (uint32_t)(unit - query->units), .document = d};
        bool matches = false;
        lahar_error reason = {0};
        LAHAR_TRY(lahar_query_check(worker->query, error));
        lahar_status status = lahar_unit_time(unit, context, d, &hit.time_ns, &reason);
        if (status == LAHAR_OK) {
            status = lahar_unit_id(unit, context, d, &hit.id, &reason);
        }
        if (status == LAHAR_OK) {
            if (!lahar_query_is_behind(query, hit.time_ns, hit.id) || !beats_worst(heap, &hit)) {
                continue;
            }
            status = lahar_unit_verify(unit, context, d, &matches, &reason);
        }
        if (status == LAHAR_CORRUPT) {
            note_damage(worker, unit, d, &reason);
        } else if (status != LAHAR_OK) {
            if (error != NULL) {
                *error = reason;
            }
            return status;
        } else if (matches) {
            add_hit(heap, &hit);
        }
    }
    return LAHAR_OK;
}

struct block_place {
    int64_t rank; /* of its best time */
    uint32_t block;
};

static int compare_places(const void *a, const void *b)
{
    const struct block_place *x = a;
    const struct block_place *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The blocks of a file, those with the best times first. */
static lahar_status offer_blocks(struct lahar_query_worker *worker, struct lahar_unit *unit,
                                 lahar_error *error)
{
    const lahar_allocator *allocator = worker->query->allocator;
    const struct heap *heap = worker->share;
    const uint32_t count = lahar_segment_describe(unit->segment)->block_count;
    struct block_place *places = lahar_allocate(allocator, (count + (size_t)1) * sizeof *places);
    if (places == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to order %u blocks", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_block_info *info = lahar_segment_block_info(unit->segment, i);
        const int64_t best_ns = heap->is_latest ? info->time_max_ns : info->time_min_ns;
        places[i] = (struct block_place){rank_of(best_ns, heap->is_latest), i};
    }
    qsort(places, count, sizeof *places, compare_places);
    lahar_status status = LAHAR_OK;
    for (uint32_t i = 0; i < count && status == LAHAR_OK; i++) {
        const struct lahar_block_info *info =
            lahar_segment_block_info(unit->segment, places[i].block);
        if (may_beat(worker->query, heap, info->time_min_ns, info->time_max_ns)) {
            status = offer(worker, unit, info->first_ordinal, info->first_ordinal + info->row_count,
                           error);
        }
    }
    lahar_release(allocator, places);
    return status;
}

static lahar_status visit(struct lahar_query_worker *worker, struct lahar_unit *unit,
                          lahar_error *error)
{
    struct lahar_query *query = worker->query;
    if (!may_beat(query, worker->share, unit->time_min_ns, unit->time_max_ns)) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_unit_open(unit, &worker->context, error));
    lahar_status status = unit->segment == NULL ? offer(worker, unit, 0, unit->event_count, error)
                                                : offer_blocks(worker, unit, error);
    const bool is_settled = !unit->has_unverified ||
                            lahar_docset_next(&unit->unverified, 0) == unit->unverified.universe;
    if (status == LAHAR_OK && is_settled && !unit->is_counted && lahar_query_wants_count(query)) {
        status = lahar_query_settle(query, &worker->context, unit, error);
    }
    lahar_unit_close(unit);
    lahar_unit_drop_block(unit);
    return status;
}

/* Most results that a pass can be asked for. */
static size_t pass_capacity(const struct lahar_query *query)
{
    const uint64_t limit = query->options.limit;
    const uint64_t left = limit == 0 ? PASS_HITS : limit - query->returned;
    return left < PASS_HITS ? (size_t)left : PASS_HITS;
}

/* Takes the best of what the workers have found, in order. */
static lahar_status take_best(struct lahar_query *query, struct heap *heaps, uint32_t worker_count,
                              lahar_error *error)
{
    const size_t capacity = pass_capacity(query);
    bool is_latest = is_latest_first(query);
    size_t count = 0;
    uint32_t damaged_unit = UINT32_MAX;
    for (uint32_t i = 0; i < worker_count; i++) {
        count += heaps[i].count;
        if (heaps[i].damaged_unit < damaged_unit) {
            damaged_unit = heaps[i].damaged_unit;
            query->damage = heaps[i].damage;
        }
    }
    lahar_release(query->allocator, query->hits);
    query->hits = lahar_allocate(query->allocator, (count + 1) * sizeof *query->hits);
    if (query->hits == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu results", count);
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        for (size_t j = 0; j < heaps[i].count; j++) {
            query->hits[query->hit_count++] = heaps[i].hits[j];
        }
    }
    qsort_r(query->hits, count, sizeof *query->hits, compare_for_qsort, &is_latest);
    query->hit_count = count < capacity ? count : capacity;
    query->is_last_pass = count < capacity;
    return LAHAR_OK;
}

/* Collects the results behind the position. */
static lahar_status run_pass(struct lahar_query *query, lahar_error *error)
{
    const lahar_allocator *allocator = query->allocator;
    const uint32_t worker_count = lahar_query_worker_count(query);
    struct pass pass;
    struct lahar_query_job job = {
        .work = visit, .unit_count = query->unit_count, .share_size = sizeof(struct heap)};
    struct heap *heaps = lahar_allocate_zeroed(allocator, worker_count, sizeof *heaps);
    uint32_t *units = lahar_allocate(allocator, ((size_t)query->unit_count + 1) * sizeof *units);
    lahar_status status = LAHAR_OK;
    query->hit_count = 0;
    query->hit_next = 0;
    atomic_init(&pass.bound, INT64_MAX);
    if (heaps == NULL || units == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to order results");
        goto cleanup;
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        heaps[i] = (struct heap){.capacity = pass_capacity(query),
                                 .is_latest = is_latest_first(query),
                                 .pass = &pass,
                                 .damaged_unit = UINT32_MAX};
        heaps[i].hits = lahar_allocate(allocator, heaps[i].capacity * sizeof *heaps[i].hits);
        if (heaps[i].hits == NULL) {
            status =
                lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu results", heaps[i].capacity);
            goto cleanup;
        }
    }
    for (uint32_t i = 0; i < query->unit_count; i++) {
        units[i] = i;
    }
    job.shares = heaps;
    job.units = units;
    status = lahar_query_run_job(query, &job, error);
    if (status == LAHAR_OK) {
        status = take_best(query, heaps, worker_count, error);
    }
cleanup:
    for (uint32_t i = 0; heaps != NULL && i < worker_count; i++) {
        lahar_release(allocator, heaps[i].hits);
    }
    lahar_release(allocator, heaps);
    lahar_release(allocator, units);
    return status;
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
    const lahar_status status = lahar_query_read_event(query, unit, hit->document, error);
    query->event.time_ns = status == LAHAR_OK ? hit->time_ns : 0;
    if (status == LAHAR_OK || status == LAHAR_CORRUPT) {
        query->hit_next++;
    }
    query->context.is_partial = query->context.is_partial || status == LAHAR_CORRUPT;
    if (status == LAHAR_OK) {
        *event_out = &query->event;
    }
    return status;
}
