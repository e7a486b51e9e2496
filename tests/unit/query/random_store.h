/* A store with random events over a small vocabulary, so that queries find something: disorder,
 * duplicates, missing fields, letters outside ASCII, empty values, clocks that are wrong. */
#ifndef LAHAR_TESTS_QUERY_RANDOM_STORE_H
#define LAHAR_TESTS_QUERY_RANDOM_STORE_H

#include <stdint.h>

#include "io/base/buffer.h"
#include "lahar/append.h"
#include "lahar/store.h"

enum {
    RANDOM_WORDS = 18,
    RANDOM_JOINTS = 9
};

/* What texts are made of. */
extern const char *const random_words[RANDOM_WORDS];
extern const char *const random_joints[RANDOM_JOINTS];

struct random_store {
    lahar_store *store;
    uint32_t log;
    uint32_t provenance;
    uint32_t event_count; /* appended */
    uint64_t state;       /* of the generator */
};

uint64_t random_next(uint64_t *state);
/* Below count. */
uint32_t random_pick(uint64_t *state, uint32_t count);

void random_store_open(struct random_store *random, const char *directory, uint64_t seed);
/* The same with an allocator of the caller's. */
void random_store_open_with(struct random_store *random, const char *directory, uint64_t seed,
                            const lahar_allocator *allocator);
/* Appends count events in batches of random size. */
void random_store_append(struct random_store *random, uint32_t count);
/* Appends three events with a value of a megabyte each: a text, a keyword, an attribute. */
void random_store_append_giants(struct random_store *random);
void random_store_close(struct random_store *random);

#endif
