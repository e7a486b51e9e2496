/* The meaning of a query: whether an event matches. The index answers the same questions from
 * its own structures and is checked against this. */
#ifndef LAHAR_QUERY_MATCH_H
#define LAHAR_QUERY_MATCH_H

#include "engine/query/bind.h"

/* Scratch memory of one thread; grows to the largest value seen. */
struct lahar_matcher {
    const struct lahar_schema_catalog *catalog;
    struct lahar_tokenizer tokenizer;
    struct lahar_buffer scratch;
    struct lahar_regex_scratch regex;
    bool has_failed;                 /* an allocation was refused since the last answer */
    const struct lahar_test *costly; /* a regular expression that gave up since then */
};

void lahar_matcher_init(struct lahar_matcher *matcher, const struct lahar_schema_catalog *catalog,
                        const lahar_allocator *allocator);
void lahar_matcher_deinit(struct lahar_matcher *matcher);

/* The tree must be bound. On failure the answer is not to be used: LAHAR_NO_MEMORY, or
 * LAHAR_INVALID when a regular expression takes too many steps. */
lahar_status lahar_match(struct lahar_matcher *matcher, const struct lahar_query_node *node,
                         const lahar_event *event, bool *matches_out, lahar_error *error);

/* Whether one keyword, one text, or one folded token of a text satisfies the test. NOT_EQUAL is
 * answered as EQUAL: the caller inverts it over all values of a field. A refused allocation
 * or a regular
 * expression that gives up answers false, which lahar_matcher_check tells. */
bool lahar_match_keyword(struct lahar_matcher *matcher, const struct lahar_test *test,
                         const void *value, size_t size);
bool lahar_match_text(struct lahar_matcher *matcher, const struct lahar_test *test,
                      const void *text, size_t size);
bool lahar_match_token(const struct lahar_test *test, const void *term, size_t size);
/* Whether the answers since the last call were right; LAHAR_NO_MEMORY, LAHAR_INVALID. */
lahar_status lahar_matcher_check(struct lahar_matcher *matcher, lahar_error *error);

/* Whether terms without a field look into values of this name. */
bool lahar_is_searched_anywhere(const char *name, size_t size);

/* '*' is any run of bytes, '?' any one character. */
bool lahar_glob(const void *pattern, size_t pattern_size, const void *text, size_t size);

#endif
