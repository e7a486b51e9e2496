/* The fields of an event that a test, or all tests of a query, look at: no other column of a block
 * has to be inflated to decide them. */
#ifndef LAHAR_QUERY_NEEDED_FIELDS_H
#define LAHAR_QUERY_NEEDED_FIELDS_H

#include "engine/query/bind.h"

enum {
    LAHAR_NEEDED_FIELDS_MAX = 24
};

struct lahar_needed_fields {
    bool is_all; /* too many, or not known */
    uint32_t count;
    uint32_t items[LAHAR_NEEDED_FIELDS_MAX];
};

/* In events of a stream; NULL: of any. The tree must be bound. */
void lahar_needed_fields_of(const struct lahar_query_node *node, const struct lahar_stream *stream,
                            struct lahar_needed_fields *needed_out);
void lahar_needed_fields_of_test(const struct lahar_test *test, const struct lahar_stream *stream,
                                 struct lahar_needed_fields *needed_out);

#endif
