/* Going through the matches of all units; see group_units.h. */
#include "engine/query/group_units.h"

#include "io/base/error.h"

/* What to do, and the worker's part in it. */
struct group_share {
    lahar_group_unit group;
    void *share;
};

static lahar_status work(struct lahar_query_worker *worker, struct lahar_unit *unit,
                         lahar_error *error)
{
    const struct group_share *own = worker->share;
    const bool was_open = unit->is_open;
    LAHAR_TRY(lahar_query_check(worker->query, error));
    lahar_status status = lahar_unit_open_rest(unit, &worker->context, error);
    if (status == LAHAR_OK) {
        status = lahar_query_settle(worker->query, &worker->context, unit, error);
    }
    if (status == LAHAR_OK) {
        status = own->group(worker, own->share, unit, error);
    }
    if (!was_open) {
        lahar_unit_close(unit);
    }
    lahar_unit_drop_block(unit);
    return status;
}

lahar_status lahar_query_group(struct lahar_query *query, lahar_group_unit group, void *shares,
                               size_t share_size, lahar_error *error)
{
    const uint32_t workers = lahar_query_worker_count(query);
    const lahar_allocator *allocator = query->allocator;
    struct lahar_query_job job = {
        .work = work, .unit_count = query->unit_count, .share_size = sizeof(struct group_share)};
    struct group_share *own = lahar_allocate(allocator, workers * sizeof *own);
    uint32_t *units = lahar_allocate(allocator, ((size_t)query->unit_count + 1) * sizeof *units);
    lahar_status status = LAHAR_OK;
    if (own == NULL || units == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory to group events");
        goto cleanup;
    }
    for (uint32_t i = 0; i < workers; i++) {
        own[i] = (struct group_share){group, (uint8_t *)shares + i * share_size};
    }
    for (uint32_t i = 0; i < query->unit_count; i++) {
        units[i] = i;
    }
    lahar_query_order_by_size(query, units, query->unit_count);
    job.shares = own;
    job.units = units;
    status = lahar_query_run_job(query, &job, error);
cleanup:
    lahar_release(allocator, units);
    lahar_release(allocator, own);
    return status;
}

lahar_status lahar_group_events(struct lahar_query_worker *worker, struct lahar_unit *unit,
                                const struct lahar_docset *set,
                                const struct lahar_needed_fields *needed,
                                lahar_status (*take)(void *context, const lahar_event *event,
                                                     lahar_error *error),
                                void *context, lahar_error *error)
{
    struct lahar_unit_context *own = &worker->context;
    uint32_t d = lahar_docset_next(set, 0);
    while (d < set->universe) {
        lahar_event event;
        lahar_error reason = {0};
        LAHAR_TRY(lahar_query_check(worker->query, error));
        lahar_arena_reset(&own->arena);
        const lahar_status status =
            lahar_unit_read_fields(unit, own, d, needed, &own->arena, &event, &reason);
        if (status == LAHAR_CORRUPT) {
            uint32_t first = 0;
            uint32_t end = 0;
            lahar_unit_block_range(unit, d, &first, &end);
            own->is_partial = true;
            d = lahar_docset_next(set, end > d ? end : d + 1);
            continue;
        }
        if (status != LAHAR_OK) {
            if (error != NULL) {
                *error = reason;
            }
            return status;
        }
        own->scanned_events++;
        LAHAR_TRY(take(context, &event, error));
        d = lahar_docset_next(set, d + 1);
    }
    return LAHAR_OK;
}
