/* A job over the settled events of every unit: what facets and histograms share. */
#ifndef LAHAR_QUERY_GROUP_UNITS_H
#define LAHAR_QUERY_GROUP_UNITS_H

#include "engine/query/workers.h"

/* Looks at a unit that is open and settled: its matches are unit->may. share: the worker's. */
typedef lahar_status (*lahar_group_unit)(struct lahar_query_worker *worker, void *share,
                                         struct lahar_unit *unit, lahar_error *error);

/* shares: one of share_size bytes for each of lahar_query_worker_count workers. */
lahar_status lahar_query_group(struct lahar_query *query, lahar_group_unit group, void *shares,
                               size_t share_size, lahar_error *error);

/* Reads the events of a set of the unit one by one, as far as fields of them are needed. A block
 * that cannot be read is left out, and the answer is partial. */
lahar_status lahar_group_events(struct lahar_query_worker *worker, struct lahar_unit *unit,
                                const struct lahar_docset *set,
                                const struct lahar_needed_fields *needed,
                                lahar_status (*take)(void *context, const lahar_event *event,
                                                     lahar_error *error),
                                void *context, lahar_error *error);

#endif
