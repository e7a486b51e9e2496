/* Totals. A unit's total is a population count once nothing in it is open. */
#include "engine/query/query_state.h"
#include "io/base/error.h"

bool lahar_query_wants_count(const struct lahar_query *query)
{
    switch (query->options.count) {
    case LAHAR_COUNT_EXACT:
    case LAHAR_COUNT_ONLY:
        return true;
    case LAHAR_COUNT_AT_LEAST:
        return query->counted < query->options.count_limit;
    default:
        return false;
    }
}

lahar_status lahar_query_settle(struct lahar_query *query, struct lahar_unit *unit,
                                lahar_error *error)
{
    uint32_t looked_at = 0;
    if (unit->has_unverified) {
        uint32_t document = lahar_docset_next(&unit->unverified, 0);
        while (document < unit->unverified.universe) {
            if ((++looked_at & 1023) == 0) {
                LAHAR_TRY(lahar_query_check(query, error));
            }
            bool matches = false;
            const lahar_status status =
                lahar_unit_verify(unit, &query->context, document, &matches, error);
            if (status == LAHAR_CORRUPT) {
                lahar_error_clear(error);
                lahar_unit_drop_range(unit, &query->context, document);
            } else if (status != LAHAR_OK) {
                return status;
            }
            document = lahar_docset_next(&unit->unverified, document);
        }
    }
    unit->total = lahar_unit_sum(unit);
    unit->is_counted = true;
    query->counted += unit->total;
    return LAHAR_OK;
}

static lahar_status count_unit(struct lahar_query *query, struct lahar_unit *unit,
                               lahar_error *error)
{
    const bool was_open = unit->is_open;
    LAHAR_TRY(lahar_query_check(query, error));
    if (!was_open) {
        LAHAR_TRY(lahar_unit_open(unit, &query->context, error));
    }
    const lahar_status status = lahar_query_settle(query, unit, error);
    if (!was_open) {
        lahar_unit_close(unit);
        lahar_unit_drop_block(unit);
    }
    return status;
}

lahar_status lahar_query_count(struct lahar_query *query, uint64_t *total_out,
                               lahar_relation *relation_out, lahar_error *error)
{
    lahar_status status = LAHAR_OK;
    bool is_complete = true;
    for (uint32_t i = 0; i < query->unit_count && status == LAHAR_OK; i++) {
        struct lahar_unit *unit = &query->units[i];
        if (unit->is_counted) {
            continue;
        }
        if (lahar_query_wants_count(query)) {
            status = count_unit(query, unit, error);
        }
        is_complete = is_complete && unit->is_counted;
    }
    *total_out = query->counted;
    if (*total_out < query->returned) {
        *total_out = query->returned;
    }
    *relation_out = is_complete                                    ? LAHAR_RELATION_EXACT
                    : query->options.count == LAHAR_COUNT_AT_LEAST ? LAHAR_RELATION_AT_LEAST
                                                                   : LAHAR_RELATION_UNKNOWN;
    return status;
}
