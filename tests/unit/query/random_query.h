/* Random queries over the vocabulary of random_store.h. While one is written, the events that it
 * matches are found by its structure: those of its leaves are asked for and joined. */
#ifndef LAHAR_TESTS_QUERY_RANDOM_QUERY_H
#define LAHAR_TESTS_QUERY_RANDOM_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "io/base/buffer.h"

enum {
    RANDOM_SET_WORDS = 64 /* of a set of events, one bit each */
};

struct random_leaves {
    /* Writes the set of events that match the text of a leaf. */
    void (*evaluate)(void *context, const char *text, size_t size, uint64_t *set);
    void *context;
    size_t word_count; /* of each set; at most RANDOM_SET_WORDS */
};

/* Writes a query of at most depth levels. leaves NULL: set is not written. */
void random_query(struct lahar_buffer *out, uint64_t *state, int depth,
                  const struct random_leaves *leaves, uint64_t *set);

#endif
