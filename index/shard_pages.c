/* Pages of one shard; see shard_pages.h. */
#include "index/shard_pages.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    OWN_CACHE_BYTES = 1 << 20
};

uint32_t lahar_shard_page_checksum(uint64_t page, const void *data, size_t size)
{
    /* The number goes first, so that a page in the wrong place is found out. */
    return lahar_crc32c(lahar_crc32c(0, &page, sizeof page), data, size);
}

lahar_status lahar_shard_pages_init(struct lahar_shard_pages *pages,
                                    const struct lahar_shard_source *source, uint64_t body_size,
                                    const uint8_t *checksums, const lahar_allocator *allocator,
                                    lahar_error *error)
{
    const uint64_t count = (body_size + LAHAR_SHARD_PAGE_SIZE - 1) / LAHAR_SHARD_PAGE_SIZE;
    LAHAR_ASSERT(count < UINT32_MAX);
    *pages = (struct lahar_shard_pages){.source = *source,
                                        .body_size = body_size,
                                        .page_count = (uint32_t)count,
                                        .checksums = checksums,
                                        .allocator = allocator,
                                        .cache = source->cache};
    if (source->memory != NULL) {
        pages->page_count = 0;
    }
    pages->slots =
        lahar_allocate_zeroed(allocator, (size_t)pages->page_count + 1, sizeof *pages->slots);
    if (pages->slots == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the pages of a shard");
    }
    for (uint32_t i = 0; i < pages->page_count; i++) {
        lahar_page_slot_init(&pages->slots[i]);
    }
    if (pages->cache == NULL) {
        lahar_shard_cache_init(&pages->own_cache, OWN_CACHE_BYTES);
        pages->cache = &pages->own_cache;
    }
    return LAHAR_OK;
}

void lahar_shard_pages_deinit(struct lahar_shard_pages *pages)
{
    if (pages->slots == NULL) {
        return;
    }
    lahar_shard_cache_drop(pages->cache, pages->slots, pages->page_count);
    if (pages->cache == &pages->own_cache) {
        lahar_shard_cache_deinit(&pages->own_cache);
    }
    lahar_release(pages->allocator, pages->slots);
    pages->slots = NULL;
}

uint64_t lahar_shard_pages_memory(struct lahar_shard_pages *pages)
{
    return lahar_shard_cache_bytes_of(pages->cache, pages->slots, pages->page_count) +
           (uint64_t)pages->page_count * sizeof *pages->slots;
}

static size_t page_size(const struct lahar_shard_pages *pages, uint32_t page)
{
    const uint64_t left = pages->body_size - (uint64_t)page * LAHAR_SHARD_PAGE_SIZE;
    return left < LAHAR_SHARD_PAGE_SIZE ? (size_t)left : (size_t)LAHAR_SHARD_PAGE_SIZE;
}

/* A page that holds nothing yet, its slack zeroed; NULL when the memory is refused. */
static struct lahar_cached_page *create_page(struct lahar_shard_pages *pages, size_t size)
{
    struct lahar_cached_page *page =
        lahar_cached_page_create(pages->allocator, size + LAHAR_BITPACK_SLACK);
    if (page != NULL) {
        memset(page->data + size, 0, LAHAR_BITPACK_SLACK);
    }
    return page;
}

static lahar_status check_page(const struct lahar_shard_pages *pages, uint32_t page,
                               const uint8_t *data, size_t size, lahar_error *error)
{
    const uint32_t expected = lahar_load_u32(pages->checksums + (size_t)page * 4);
    const uint32_t found = lahar_shard_page_checksum(page, data, size);
    return found == expected
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_CORRUPT,
                            "page %u of an index shard has checksum %08x, expected %08x", page,
                            found, expected);
}

static lahar_status fetch_page(struct lahar_shard_pages *pages, uint32_t number,
                               struct lahar_cached_page *page, lahar_error *error)
{
    const size_t size = page_size(pages, number);
    LAHAR_TRY(pages->source.fetch(pages->source.context, (uint64_t)number * LAHAR_SHARD_PAGE_SIZE,
                                  page->data, size, error));
    return check_page(pages, number, page->data, size, error);
}

static lahar_status pin_page(struct lahar_shard_pages *pages, uint32_t number,
                             struct lahar_page_slot **slot_out, lahar_error *error)
{
    struct lahar_page_slot *slot = &pages->slots[number];
    if (!lahar_page_slot_try_pin(slot)) {
        struct lahar_cached_page *page = create_page(pages, page_size(pages, number));
        if (page == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a page of a shard");
        }
        const lahar_status status = fetch_page(pages, number, page, error);
        if (status != LAHAR_OK) {
            lahar_cached_page_destroy(page);
            return status;
        }
        lahar_shard_cache_install(pages->cache, slot, page);
    }
    *slot_out = slot;
    return LAHAR_OK;
}

void lahar_shard_pages_announce(struct lahar_shard_pages *pages, uint64_t offset)
{
    if (pages->source.announce == NULL || pages->source.memory != NULL ||
        offset >= pages->body_size) {
        return;
    }
    const uint32_t number = (uint32_t)(offset / LAHAR_SHARD_PAGE_SIZE);
    struct lahar_page_slot *slot = &pages->slots[number];
    if (lahar_page_slot_try_pin(slot)) {
        lahar_page_slot_unpin(slot);
    } else {
        pages->source.announce(pages->source.context, (uint64_t)number * LAHAR_SHARD_PAGE_SIZE,
                               page_size(pages, number));
    }
}

lahar_status lahar_shard_pages_offer(struct lahar_shard_pages *pages, uint64_t offset,
                                     const uint8_t *data, size_t size, lahar_error *error)
{
    const uint64_t data_at = pages->source.size - size;
    for (uint64_t page = offset / LAHAR_SHARD_PAGE_SIZE; page < pages->page_count; page++) {
        const uint64_t at = page * LAHAR_SHARD_PAGE_SIZE;
        const size_t page_bytes = page_size(pages, (uint32_t)page);
        if (at < data_at || lahar_shard_page_checksum(page, data + (at - data_at), page_bytes) !=
                                lahar_load_u32(pages->checksums + (size_t)page * 4)) {
            continue;
        }
        struct lahar_cached_page *copy = create_page(pages, page_bytes);
        if (copy == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a page of a shard");
        }
        memcpy(copy->data, data + (at - data_at), page_bytes);
        lahar_shard_cache_install(pages->cache, &pages->slots[page], copy);
        lahar_page_slot_unpin(&pages->slots[page]);
    }
    return LAHAR_OK;
}

static bool is_inside(const struct lahar_shard_pages *pages, uint64_t offset, uint64_t size)
{
    return offset <= pages->body_size && size <= pages->body_size - offset;
}

lahar_status lahar_shard_pages_copy(struct lahar_shard_pages *pages, uint64_t offset, void *to,
                                    size_t size, lahar_error *error)
{
    if (!is_inside(pages, offset, size)) {
        return lahar_fail(error, LAHAR_CORRUPT, "an index shard refers beyond its end");
    }
    if (pages->source.memory != NULL) {
        memcpy(to, pages->source.memory + offset, size);
        return LAHAR_OK;
    }
    uint8_t *p = to;
    while (size > 0) {
        struct lahar_page_slot *slot = NULL;
        LAHAR_TRY(pin_page(pages, (uint32_t)(offset / LAHAR_SHARD_PAGE_SIZE), &slot, error));
        const size_t within = (size_t)(offset % LAHAR_SHARD_PAGE_SIZE);
        const size_t rest = LAHAR_SHARD_PAGE_SIZE - within;
        const size_t piece = size < rest ? size : rest;
        memcpy(p, slot->page->data + within, piece);
        lahar_page_slot_unpin(slot);
        p += piece;
        offset += piece;
        size -= piece;
    }
    return LAHAR_OK;
}

lahar_status lahar_page_view_open(struct lahar_shard_pages *pages, uint64_t offset, uint64_t size,
                                  struct lahar_page_view *view, lahar_error *error)
{
    *view = (struct lahar_page_view){.data = NULL};
    if (!is_inside(pages, offset, size)) {
        return lahar_fail(error, LAHAR_CORRUPT, "an index shard refers beyond its end");
    }
    static const uint8_t nothing[LAHAR_BITPACK_SLACK];
    if (size == 0) {
        view->data = nothing;
        return LAHAR_OK;
    }
    if (pages->source.memory != NULL) {
        /* Directory and trailer behind the body are more than the slack. */
        view->data = pages->source.memory + offset;
        return LAHAR_OK;
    }
    const uint64_t within = offset % LAHAR_SHARD_PAGE_SIZE;
    if (within + size <= LAHAR_SHARD_PAGE_SIZE) {
        LAHAR_TRY(
            pin_page(pages, (uint32_t)(offset / LAHAR_SHARD_PAGE_SIZE), &view->pinned, error));
        view->data = view->pinned->page->data + within;
        return LAHAR_OK;
    }
    uint8_t *copy = lahar_allocate(pages->allocator, (size_t)size + LAHAR_BITPACK_SLACK);
    if (copy == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %llu bytes of a shard",
                          (unsigned long long)size);
    }
    const lahar_status status = lahar_shard_pages_copy(pages, offset, copy, (size_t)size, error);
    if (status != LAHAR_OK) {
        lahar_release(pages->allocator, copy);
        return status;
    }
    memset(copy + size, 0, LAHAR_BITPACK_SLACK);
    view->copy = copy;
    view->data = copy;
    return LAHAR_OK;
}

void lahar_page_view_close(struct lahar_shard_pages *pages, struct lahar_page_view *view)
{
    if (view->pinned != NULL) {
        lahar_page_slot_unpin(view->pinned);
    }
    if (view->copy != NULL) {
        lahar_release(pages->allocator, view->copy);
    }
    *view = (struct lahar_page_view){.data = NULL};
}

/* --- windows ------------------------------------------------------------------------ */

static lahar_status fill_window(struct lahar_shard_pages *pages, struct lahar_page_window *window,
                                uint64_t offset, uint64_t size, uint64_t limit, lahar_error *error)
{
    const uint64_t begin = offset / LAHAR_SHARD_PAGE_SIZE * LAHAR_SHARD_PAGE_SIZE;
    const uint64_t wanted = offset + size > limit ? offset + size : limit;
    uint64_t end =
        (wanted + LAHAR_SHARD_PAGE_SIZE - 1) / LAHAR_SHARD_PAGE_SIZE * LAHAR_SHARD_PAGE_SIZE;
    end = end < pages->body_size ? end : pages->body_size;
    end = end - begin < LAHAR_PAGE_WINDOW_SIZE ? end : begin + LAHAR_PAGE_WINDOW_SIZE;
    if (window->data == NULL) {
        window->data =
            lahar_allocate(pages->allocator, LAHAR_PAGE_WINDOW_SIZE + LAHAR_BITPACK_SLACK);
        if (window->data == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for pages of a shard");
        }
    }
    window->begin = window->end = 0;
    const size_t fetched = (size_t)(end - begin);
    LAHAR_TRY(pages->source.fetch(pages->source.context, begin, window->data, fetched, error));
    for (size_t at = 0; at < fetched; at += LAHAR_SHARD_PAGE_SIZE) {
        const size_t left = fetched - at;
        LAHAR_TRY(
            check_page(pages, (uint32_t)((begin + at) / LAHAR_SHARD_PAGE_SIZE), window->data + at,
                       left < LAHAR_SHARD_PAGE_SIZE ? left : (size_t)LAHAR_SHARD_PAGE_SIZE, error));
    }
    memset(window->data + fetched, 0, LAHAR_BITPACK_SLACK);
    window->begin = begin;
    window->end = end;
    return LAHAR_OK;
}

lahar_status lahar_page_window_read(struct lahar_shard_pages *pages,
                                    struct lahar_page_window *window, uint64_t offset,
                                    uint64_t size, uint64_t limit, const uint8_t **data_out,
                                    lahar_error *error)
{
    LAHAR_ASSERT(size <= LAHAR_PAGE_WINDOW_SIZE - LAHAR_SHARD_PAGE_SIZE);
    if (!is_inside(pages, offset, size)) {
        return lahar_fail(error, LAHAR_CORRUPT, "an index shard refers beyond its end");
    }
    if (pages->source.memory != NULL) {
        *data_out = pages->source.memory + offset;
        return LAHAR_OK;
    }
    if (offset < window->begin || offset + size > window->end) {
        LAHAR_TRY(fill_window(pages, window, offset, size, limit, error));
    }
    *data_out = window->data + (offset - window->begin);
    return LAHAR_OK;
}

void lahar_page_window_close(struct lahar_shard_pages *pages, struct lahar_page_window *window)
{
    lahar_release(pages->allocator, window->data);
    *window = (struct lahar_page_window){.data = NULL};
}

bool lahar_shard_pages_keep(struct lahar_shard_pages *pages, uint64_t size)
{
    return pages->source.memory != NULL || size <= lahar_shard_cache_room(pages->cache) / 8;
}
