/* Decoded blocks kept within a number of bytes, shared by all event files of a store.
 *
 * Sharded by key, each shard a table and a list by last use under one mutex, held
 * for a look-up only, never while reading or inflating. The cache holds one reference of each
 * block; a block that is evicted while in use lives until its last user lets go. */
#ifndef LAHAR_SEGMENT_BLOCK_CACHE_H
#define LAHAR_SEGMENT_BLOCK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/segment/segment.h"

/* The block of that file, with a reference for the caller; NULL when not there. */
struct lahar_block *lahar_block_cache_get(struct lahar_block_cache *cache, uint64_t file_number,
                                          uint32_t block_number);

/* Whether the block is not there, and would be kept if it were put. Not a use of it. */
bool lahar_block_cache_lacks(struct lahar_block_cache *cache, uint64_t file_number,
                             uint32_t block_number, uint64_t size);

/* Keeps the block with a reference of its own, unless it is larger than a shard may be, memory is
 * refused, or another thread was first. */
void lahar_block_cache_put(struct lahar_block_cache *cache, uint64_t file_number,
                           uint32_t block_number, struct lahar_block *block);

/* Lets go of every block of a file. */
void lahar_block_cache_drop(struct lahar_block_cache *cache, uint64_t file_number,
                            uint32_t block_count);

#endif
