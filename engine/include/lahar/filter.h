/* Queries made by calls instead of text: nothing has to be quoted or escaped. The same tests, the
 * same meaning (docs/query.md), the same results.
 *
 *     lahar_filter *filter = NULL;
 *     if (lahar_filter_create(store, &filter, &error) != LAHAR_OK) { ... }
 *     const lahar_clause *both[] = {
 *         lahar_filter_test(filter, "type", LAHAR_FILTER_EQUAL, "RECEIVE", 7),
 *         lahar_filter_test(filter, "filename", LAHAR_FILTER_LIKE, "*abc*", 5)};
 *     status = lahar_filter_open(filter, lahar_filter_and(filter, both, 2), &options, &query,
 * &error); lahar_filter_destroy(filter);
 *
 * A call that fails returns NULL, clauses made of NULL are NULL, and lahar_filter_open tells the
 * first failure: only its status has to be looked at. One thread at a time a filter. */
#ifndef LAHAR_FILTER_H
#define LAHAR_FILTER_H

#include "lahar/query.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lahar_filter lahar_filter;
typedef struct lahar_clause lahar_clause; /* of one filter, until that is destroyed */

LAHAR_API LAHAR_NODISCARD lahar_status lahar_filter_create(lahar_store *store,
                                                           lahar_filter **filter_out,
                                                           lahar_error *error);
/* Queries that it opened go on. NULL is allowed. */
LAHAR_API void lahar_filter_destroy(lahar_filter *filter);

typedef enum lahar_filter_op {
    LAHAR_FILTER_MATCH = 0,          /* ':' case ignored: a keyword whole, tokens of a text */
    LAHAR_FILTER_EQUAL = 1,          /* '=' byte for byte */
    LAHAR_FILTER_NOT_EQUAL = 2,      /* '!=' present, and no element is equal */
    LAHAR_FILTER_CONTAINS = 3,       /* '~' case ignored */
    LAHAR_FILTER_CONTAINS_EXACT = 4, /* '~=' */
    LAHAR_FILTER_LIKE = 5,           /* ':' with wildcards: '*' any bytes, '?' one character */
    LAHAR_FILTER_LIKE_EXACT = 6,     /* '=' with wildcards */
    LAHAR_FILTER_REGEX = 7,          /* holds a match of the regular expression */
    LAHAR_FILTER_REGEX_ANY_CASE = 8
} lahar_filter_op;

/* name as in an expression, but of any bytes; NULL: every text and keyword value, which NOT_EQUAL,
 * EQUAL and LIKE_EXACT do not have. value: any bytes. */
LAHAR_API const lahar_clause *lahar_filter_test(lahar_filter *filter, const char *name,
                                                lahar_filter_op op, const void *value,
                                                size_t value_size);
LAHAR_API const lahar_clause *lahar_filter_present(lahar_filter *filter, const char *name);

/* Ends as in an expression: "10MiB", "2015-01-06", "now-1h"; NULL: open. */
typedef struct lahar_filter_range {
    const char *low;
    const char *high;
    bool low_is_exclusive;
    bool high_is_exclusive;
} lahar_filter_range;
LAHAR_API const lahar_clause *lahar_filter_between(lahar_filter *filter, const char *name,
                                                   const lahar_filter_range *range);
/* A field of times in [from_ns, to_ns); INT64_MIN and INT64_MAX: open. "time" is event time. */
LAHAR_API const lahar_clause *lahar_filter_times(lahar_filter *filter, const char *name,
                                                 int64_t from_ns, int64_t to_ns);

LAHAR_API const lahar_clause *lahar_filter_all(lahar_filter *filter); /* every event */
/* Of no clause, AND is every event and OR none. A clause may be used several times. */
LAHAR_API const lahar_clause *lahar_filter_and(lahar_filter *filter,
                                               const lahar_clause *const *clauses, size_t count);
LAHAR_API const lahar_clause *lahar_filter_or(lahar_filter *filter,
                                              const lahar_clause *const *clauses, size_t count);
LAHAR_API const lahar_clause *lahar_filter_not(lahar_filter *filter, const lahar_clause *clause);

/* As lahar_query_open. LAHAR_INVALID: a call was wrong, or clauses nest more than 200 deep;
 * LAHAR_TOO_BIG: more than 262,144 clauses, those used twice counted twice. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_filter_open(lahar_filter *filter,
                                                         const lahar_clause *clause,
                                                         const lahar_query_options *options,
                                                         lahar_query **query_out,
                                                         lahar_error *error);

/* The clause as an expression; owned by the filter until its next text. NULL when there is no
 * memory or the clause is none. Only where a pattern holds blanks or quotation marks, the text
 * cannot be read back. */
LAHAR_API const char *lahar_filter_text(lahar_filter *filter, const lahar_clause *clause);

#ifdef __cplusplus
}
#endif
#endif
