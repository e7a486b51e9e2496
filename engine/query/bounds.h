/* What an index can say about a query: documents that surely match, and those that may. The
 * truth lies between the two; what is in between is decided on the event. Keeping both ends is
 * what makes NOT right: the complement of "may" is "must", and the other way round. */
#ifndef LAHAR_QUERY_BOUNDS_H
#define LAHAR_QUERY_BOUNDS_H

#include "index/docset.h"

enum lahar_bounds_shape {
    LAHAR_BOUNDS_NONE,    /* nothing matches */
    LAHAR_BOUNDS_EVERY,   /* everything matches */
    LAHAR_BOUNDS_UNKNOWN, /* everything may, nothing must */
    LAHAR_BOUNDS_SOME     /* what the sets say */
};

struct lahar_bounds {
    enum lahar_bounds_shape shape;
    /* SOME: */
    bool is_exact; /* must equals may and is not held */
    bool has_must; /* false while not exact: nothing must */
    struct lahar_docset may;
    struct lahar_docset must; /* a subset of may */
};

void lahar_bounds_deinit(struct lahar_bounds *bounds);
/* Makes empty bounds of a shape that has no sets. */
void lahar_bounds_set(struct lahar_bounds *bounds, enum lahar_bounds_shape shape);
/* Gives up knowing what must match. */
void lahar_bounds_loosen(struct lahar_bounds *bounds);

/* into becomes its combination with other, which is used up, also on failure. */
lahar_status lahar_bounds_and(struct lahar_bounds *into, struct lahar_bounds *other,
                              lahar_error *error);
lahar_status lahar_bounds_or(struct lahar_bounds *into, struct lahar_bounds *other,
                             lahar_error *error);
lahar_status lahar_bounds_not(struct lahar_bounds *bounds, lahar_error *error);

#endif
