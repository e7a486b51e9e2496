/* Shards in memory for tests: a source over bytes that can be told to fail, a generator of
 * numbers with a seed, and a builder that fails the test on any error. */
#ifndef SHARD_FIXTURE_H
#define SHARD_FIXTURE_H

#include <stdatomic.h>

#include "index/shard.h"

struct memory_source {
    const uint8_t *data;
    uint64_t size;
    uint64_t fetched_bytes;
    uint64_t fetch_count;
    uint64_t fetched_at; /* of the last fetch */
    uint64_t announce_count;
    uint64_t announced_at; /* of the last one */
    uint64_t fail_at;      /* the number of the fetch that fails, from 1; 0: none */
};

struct lahar_shard_source memory_source(struct memory_source *memory);

/* xorshift64*; state must not be 0. */
uint64_t random_next(uint64_t *state);
/* 0 .. limit - 1 */
uint64_t random_below(uint64_t *state, uint64_t limit);

/* Writes new checksums of pages, directory and trailer, so that damage reaches the
 * decoders. */
void reseal(uint8_t *shard, size_t size);

#endif
