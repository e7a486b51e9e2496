/* Look-ups of one test in one field of a shard. */
#ifndef LAHAR_QUERY_SHARD_VALUE_H
#define LAHAR_QUERY_SHARD_VALUE_H

#include "engine/query/shard_query.h"

/* A look-up in progress: a set that is being filled. */
struct lahar_shard_lookup {
    struct lahar_docset set;
    bool is_exact;
};

lahar_status lahar_shard_lookup_begin(const struct lahar_shard_query *query,
                                      struct lahar_shard_lookup *lookup, lahar_error *error);
/* Hands the set over as bounds, or frees it when status is a failure, which is passed on. */
lahar_status lahar_shard_lookup_end(struct lahar_shard_lookup *lookup, lahar_status status,
                                    struct lahar_bounds *bounds_out);

/* The test in a field of that class; op stands for the test's own, so that NOT_EQUAL can be
 * asked as EQUAL and as PRESENT. bounds_out is NONE on entry. */
lahar_status lahar_shard_keyword_bounds(const struct lahar_shard_query *query, uint32_t field,
                                        const struct lahar_test *test, enum lahar_test_op op,
                                        struct lahar_bounds *bounds_out, lahar_error *error);
lahar_status lahar_shard_text_bounds(const struct lahar_shard_query *query, uint32_t field,
                                     const struct lahar_test *test, enum lahar_test_op op,
                                     struct lahar_bounds *bounds_out, lahar_error *error);
lahar_status lahar_shard_uuid_bounds(const struct lahar_shard_query *query, uint32_t field,
                                     const struct lahar_test *test, enum lahar_test_op op,
                                     struct lahar_bounds *bounds_out, lahar_error *error);
lahar_status lahar_shard_number_bounds(const struct lahar_shard_query *query, uint32_t field,
                                       lahar_type type, const struct lahar_test *test,
                                       enum lahar_test_op op, struct lahar_bounds *bounds_out,
                                       lahar_error *error);
/* The test on keywords read as texts, as terms without a field read them. */
lahar_status lahar_shard_words_bounds(const struct lahar_shard_query *query, uint32_t field,
                                      const struct lahar_test *test,
                                      struct lahar_bounds *bounds_out, lahar_error *error);

#endif
