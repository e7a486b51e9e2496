/* The pages of an open shard: fetched when first needed, checked against their checksum
 * once per fetch, kept in a cache (shard_cache.h). Thread-safe. */
#ifndef LAHAR_INDEX_SHARD_PAGES_H
#define LAHAR_INDEX_SHARD_PAGES_H

#include <stdint.h>

#include "index/shard.h"
#include "index/shard_cache.h"

enum {
    LAHAR_PAGE_WINDOW_SIZE = 8 * 16384
};

struct lahar_shard_pages {
    struct lahar_shard_source source;
    uint64_t body_size; /* bytes covered by pages, from the start of the shard */
    uint32_t page_count;
    const uint8_t *checksums; /* u32 a page; owned by the shard */
    struct lahar_page_slot *slots;
    const lahar_allocator *allocator;
    struct lahar_shard_cache *cache;
    struct lahar_shard_cache own_cache; /* where the source names none */
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
uint64_t lahar_shard_pages_memory(struct lahar_shard_pages *pages);

/* LAHAR_CORRUPT also when the range leaves the body. On failure there is nothing to release. */
lahar_status lahar_page_view_open(struct lahar_shard_pages *pages, uint64_t offset, uint64_t size,
                                  struct lahar_page_view *view, lahar_error *error);
void lahar_page_view_close(struct lahar_shard_pages *pages, struct lahar_page_view *view);

/* Says that the page of this byte is going to be looked at: if it is not kept it is fetched
 * meanwhile. A hint, for bytes beyond the body too. */
void lahar_shard_pages_announce(struct lahar_shard_pages *pages, uint64_t offset);

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
/* Whether so many bytes can be read again and again without being fetched again: a part of the
 * cache, which others use too. */
bool lahar_shard_pages_keep(struct lahar_shard_pages *pages, uint64_t size);

uint32_t lahar_shard_page_checksum(uint64_t page, const void *data, size_t size);

#endif
