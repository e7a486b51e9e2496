/* Totals. A unit's total is a population count once nothing in it is open. */
#include "engine/query/query_state.h"
#include "engine/query/workers.h"
#include "io/base/error.h"

bool lahar_query_wants_count(const struct lahar_query *query)
{
    switch (query->options.count) {
    case LAHAR_COUNT_EXACT:
    case LAHAR_COUNT_ONLY:
        return true;
    case LAHAR_COUNT_AT_LEAST:
        return atomic_load_explicit(&query->counted, memory_order_relaxed) <
               query->options.count_limit;
    default:
        return false;
    }
}

void lahar_query_fix_total(struct lahar_query *query, struct lahar_unit *unit, uint64_t total)
{
    if (!unit->is_counted) {
        unit->total = total;
        unit->is_counted = true;
        (void)atomic_fetch_add_explicit(&query->counted, total, memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&query->settled_count, unit->event_count,
                                        memory_order_relaxed);
    }
}

/* A unit that results are being taken from stays open. */
static lahar_status count_unit(struct lahar_query_worker *worker, struct lahar_unit *unit,
                               lahar_error *error)
{
    const bool was_open = unit->is_open;
    uint64_t total = 0;
    LAHAR_TRY(lahar_query_check(worker->query, error));
    if (!was_open) {
        const lahar_status counted = lahar_unit_count(unit, &worker->context, &total, error);
        if (counted == LAHAR_OK) {
            lahar_query_fix_total(worker->query, unit, total);
        }
        if (counted != LAHAR_UNSUPPORTED) {
            return counted;
        }
    }
    lahar_status status = lahar_unit_open_rest(unit, &worker->context, error);
    if (status == LAHAR_OK) {
        status = lahar_query_settle(worker->query, &worker->context, unit, error);
    }
    if (!was_open) {
        lahar_unit_close(unit);
    }
    lahar_unit_drop_block(unit);
    return status;
}

static lahar_status count_units(struct lahar_query *query, lahar_error *error)
{
    struct lahar_query_job job = {.work = count_unit, .goes_on = lahar_query_wants_count};
    uint32_t *units = lahar_allocate(query->allocator, (query->unit_count + 1) * sizeof *units);
    if (units == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to count");
    }
    for (uint32_t i = 0; i < query->unit_count; i++) {
        if (!query->units[i].is_counted) {
            units[job.unit_count++] = i;
        }
    }
    if (query->options.count != LAHAR_COUNT_AT_LEAST) {
        lahar_query_order_by_size(query, units, job.unit_count);
    }
    job.units = units;
    const lahar_status status = lahar_query_run_job(query, &job, error);
    lahar_release(query->allocator, units);
    return status;
}

/* The sum over counted units in their order. Where counting stops at a limit, it stops there,
 * however many units other threads have counted beyond. */
static uint64_t sum_units(const struct lahar_query *query, bool *is_complete_out)
{
    uint64_t total = 0;
    *is_complete_out = false;
    for (uint32_t i = 0; i < query->unit_count; i++) {
        if (!query->units[i].is_counted) {
            return atomic_load_explicit(&query->counted, memory_order_relaxed);
        }
        total += query->units[i].total;
        if (query->options.count == LAHAR_COUNT_AT_LEAST && total >= query->options.count_limit &&
            i + 1 < query->unit_count) {
            return total;
        }
    }
    *is_complete_out = true;
    return total;
}

lahar_status lahar_query_count(struct lahar_query *query, uint64_t *total_out,
                               lahar_relation *relation_out, lahar_error *error)
{
    lahar_status status = LAHAR_OK;
    if (lahar_query_wants_count(query)) {
        status = count_units(query, error);
    }
    bool is_complete = false;
    *total_out = sum_units(query, &is_complete);
    if (*total_out < query->returned) {
        *total_out = query->returned;
    }
    *relation_out = is_complete                                    ? LAHAR_RELATION_EXACT
                    : query->options.count == LAHAR_COUNT_AT_LEAST ? LAHAR_RELATION_AT_LEAST
                                                                   : LAHAR_RELATION_UNKNOWN;
    return status;
}
