/* What open shards keep of the pages that they have read: all shards of one cache together, up to
 * one limit of bytes.
 *
 * Thread-safe: a page that is there is pinned by one atomic addition, without a lock; the lock is
 * taken to install a page and to evict others. Eviction goes round over the pages of all shards,
 * so that a shard that is not read any more gives way to those that are. */
#ifndef LAHAR_INDEX_SHARD_CACHE_H
#define LAHAR_INDEX_SHARD_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"

/* A page that has been read. In a ring with all others of its cache. */
struct lahar_cached_page {
    struct lahar_cached_page *previous;
    struct lahar_cached_page *next;
    struct lahar_page_slot *slot;
    const lahar_allocator *allocator;
    size_t size; /* of data */
    uint8_t data[];
};

/* The place of a page in its shard, for as long as that is open. */
struct lahar_page_slot {
    /* Readers that hold the page; the top bit says that there is no page. */
    _Atomic uint32_t pins;
    _Atomic uint32_t is_used;       /* read since the clock hand last passed; orders nothing */
    struct lahar_cached_page *page; /* valid while pinned */
};

struct lahar_shard_cache {
    pthread_mutex_t mutex;
    /* Guarded by mutex: */
    uint64_t limit_bytes; /* exceeded only while all pages are pinned */
    uint64_t resident_bytes;
    uint64_t page_count;
    struct lahar_cached_page *hand; /* where to look next; NULL: no page */
};

/* The cache must stay where it is, and outlive the shards that use it. */
void lahar_shard_cache_init(struct lahar_shard_cache *cache, uint64_t limit_bytes);
void lahar_shard_cache_deinit(struct lahar_shard_cache *cache);
/* Evicts what is too much. */
void lahar_shard_cache_limit(struct lahar_shard_cache *cache, uint64_t limit_bytes);
/* The limit. */
uint64_t lahar_shard_cache_room(struct lahar_shard_cache *cache);
/* Bytes that the pages take now. */
uint64_t lahar_shard_cache_bytes(struct lahar_shard_cache *cache);

/* --- for the pages of a shard ------------------------------------------------------------ */

void lahar_page_slot_init(struct lahar_page_slot *slot);
/* Memory for a page of size bytes; NULL when it is refused. */
struct lahar_cached_page *lahar_cached_page_create(const lahar_allocator *allocator, size_t size);
void lahar_cached_page_destroy(struct lahar_cached_page *page);

/* False: there is no page. Else it may be read until it is unpinned. */
bool lahar_page_slot_try_pin(struct lahar_page_slot *slot);
void lahar_page_slot_unpin(struct lahar_page_slot *slot);
/* Makes page, which it takes over, the page of the slot, unless another thread was faster; the
 * slot is pinned for the caller either way. */
void lahar_shard_cache_install(struct lahar_shard_cache *cache, struct lahar_page_slot *slot,
                               struct lahar_cached_page *page);
/* Frees the pages of slots that nobody reads any more, and the bytes that they took. */
void lahar_shard_cache_drop(struct lahar_shard_cache *cache, struct lahar_page_slot *slots,
                            uint32_t slot_count);
/* Bytes that the pages of these slots take. */
uint64_t lahar_shard_cache_bytes_of(struct lahar_shard_cache *cache,
                                    const struct lahar_page_slot *slots, uint32_t slot_count);

#endif
