/* The values that facets count: those that a test of the same name looks at. */
#ifndef LAHAR_QUERY_FACET_VALUES_H
#define LAHAR_QUERY_FACET_VALUES_H

#include "engine/query/bind.h"
#include "io/base/buffer.h"

struct lahar_facet_sink {
    lahar_status (*take)(void *context, lahar_bytes text, lahar_error *error);
    void *context;
    struct lahar_buffer *scratch; /* text of values that are none */
    const struct lahar_schema_catalog *catalog;
};

/* Whether facets can be had of the name: not of ids, times, and names of changed attributes. */
bool lahar_facet_is_possible(const struct lahar_test *test);

/* Passes the text of each value of the event to the sink; a value may come more than once. Of
 * maps the values of their keys alone are looked at. */
lahar_status lahar_facet_values(const struct lahar_test *test, const lahar_event *event,
                                const struct lahar_facet_sink *sink, lahar_error *error);

#endif
