/* A store with random events and random queries over the same small vocabulary, so that
 * queries find something. */
#ifndef LAHAR_TESTS_QUERY_RANDOM_STORE_H
#define LAHAR_TESTS_QUERY_RANDOM_STORE_H

#include <stdint.h>

#include "io/base/buffer.h"
#include "lahar/append.h"
#include "lahar/store.h"

struct random_store {
    lahar_store *store;
    uint32_t log;
    uint32_t provenance;
    uint64_t state; /* of the generator */
};

uint64_t random_next(uint64_t *state);
void random_store_open(struct random_store *random, const char *directory, uint64_t seed);
/* The same with an allocator of the caller's. */
void random_store_open_with(struct random_store *random, const char *directory, uint64_t seed,
                            const lahar_allocator *allocator);
/* Appends count events in batches of random size. */
void random_store_append(struct random_store *random, uint32_t count);
void random_store_close(struct random_store *random);
/* Writes a query of at most depth levels. */
void random_query(struct lahar_buffer *out, uint64_t *state, int depth);

#endif
