/* Look-ups that no single term answers: every term of a field of a shard that satisfies a test, or
 * of which a piece of a needle is part. */
#ifndef LAHAR_QUERY_TERM_BOUNDS_H
#define LAHAR_QUERY_TERM_BOUNDS_H

#include "engine/query/shard_query.h"

/* Where in a term a piece must lie, or what the term must satisfy. */
enum lahar_term_place {
    LAHAR_PLACE_WHOLE_VALUE, /* the value satisfies the test */
    LAHAR_PLACE_VALUE_TEXT,  /* the value, read as text, satisfies the test */
    LAHAR_PLACE_TOKEN,       /* the token satisfies the pattern of the test */
    LAHAR_PLACE_PREFIX,
    LAHAR_PLACE_SUFFIX,
    LAHAR_PLACE_INFIX
};

/* piece: folded; of the last three places. bounds_out is NONE on entry. Several threads take a part
 * of a large dictionary each. */
lahar_status lahar_term_bounds(const struct lahar_shard_query *query, uint32_t field,
                               const struct lahar_test *test, enum lahar_term_place place,
                               lahar_bytes piece, struct lahar_bounds *bounds_out,
                               lahar_error *error);

/* Whether the bytes are whole characters, so that text around them is folded, and read as tokens,
 * alike. */
bool lahar_is_whole_utf8(lahar_bytes bytes);

#endif
