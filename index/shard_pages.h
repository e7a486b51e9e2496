/* The pages of an open shard: fetched when first needed, checked against their checksum
 * once per fetch, kept up to a limit.
 *
 * Thread-safe: a page that is resident is pinned by one atomic addition, without a lock;
 * fetching runs outside the lock, installing and evicting under it. */
#ifndef LAHAR_INDEX_SHARD_PAGES_H
#define LAHAR_INDEX_SHARD_PAGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "index/shard.h"

enum {
    LAHAR_PAGE_WINDOW_SIZE = 8 * 16384
};

struct lahar_page_slot {
    /* Readers that hold the page; the top bit says that there is no page. */
    _Atomic uint32_t pins;
    _Atomic uint32_t is_used; /* read since the clock hand last passed */
    uint8_t *data;            /* valid while pinned */
};

struct lahar_shard_pages {
    struct lahar_shard_source source;
    uint64_t body_size; /* bytes covered by pages, from the start of the shard */
    uint32_t page_count;
    const uint8_t *checksums; /* u32 a page; owned by the shard */
    struct lahar_page_slot *slots;
    const lahar_allocator *allocator;
    pthread_mutex_t mutex;
    /* Guarded by mutex: */
    uint32_t resident_count;
    uint32_t resident_limit; /* pages; exceeded only while all are pinned */
    uint32_t clock_hand;
};

/* Bytes of the body, in place in a page or, across pages, copied. Followed by
 * LAHAR_BITPACK_SLACK readable bytes of no meaning. */
struct lahar_page_view {
    const uint8_t *data;
    struct lahar_page_slot *pinned;
    uint8_t *copy;
};

lahar_status lahar_shard_pages_init(struct lahar_shard_pages *pages,
                                    const struct lahar_shard_source *source, uint64_t body_size,
                                    const uint8_t *checksums, const lahar_allocator *allocator,
                                    lahar_error *error);
void lahar_shard_pages_deinit(struct lahar_shard_pages *pages);
/* At least one page is kept. Evicts what is too much. */
void lahar_shard_pages_limit(struct lahar_shard_pages *pages, uint64_t page_count);
uint64_t lahar_shard_pages_memory(struct lahar_shard_pages *pages);

/* LAHAR_CORRUPT also when the range leaves the body. On failure there is nothing to release. */
lahar_status lahar_page_view_open(struct lahar_shard_pages *pages, uint64_t offset, uint64_t size,
                                  struct lahar_page_view *view, lahar_error *error);
void lahar_page_view_close(struct lahar_shard_pages *pages, struct lahar_page_view *view);

/* Copies a range. */
lahar_status lahar_shard_pages_copy(struct lahar_shard_pages *pages, uint64_t offset, void *to,
                                    size_t size, lahar_error *error);

/* Keeps the whole pages from offset on that lie in what was fetched of the end of the shard: data,
 * the last size bytes. Pages that fail their checksum are left to be fetched again. */
lahar_status lahar_shard_pages_offer(struct lahar_shard_pages *pages, uint64_t offset,
                                     const uint8_t *data, size_t size, lahar_error *error);

/* A stretch of pages that one reader goes through in order, fetched many at a time past the pages
 * that are kept. Zeroed before first use; one thread. */
struct lahar_page_window {
    uint8_t *data; /* owned; NULL: none yet */
    uint64_t begin;
    uint64_t end; /* of the bytes in data, in the shard */
};
/* size bytes at offset, at most LAHAR_PAGE_WINDOW_SIZE less a page; good until the next call.
 * Behind them stand LAHAR_BITPACK_SLACK readable bytes. Nothing beyond limit is fetched but the
 * rest of its page. */
lahar_status lahar_page_window_read(struct lahar_shard_pages *pages,
                                    struct lahar_page_window *window, uint64_t offset,
                                    uint64_t size, uint64_t limit, const uint8_t **data_out,
                                    lahar_error *error);
void lahar_page_window_close(struct lahar_shard_pages *pages, struct lahar_page_window *window);
/* Whether so many bytes can be read again and again without being fetched again. */
bool lahar_shard_pages_keep(struct lahar_shard_pages *pages, uint64_t size);

uint32_t lahar_shard_page_checksum(uint64_t page, const void *data, size_t size);

#endif
