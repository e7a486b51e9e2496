/* Page cache of one shard.
 *
 * A slot a page, for as long as the shard is open. The pin count decides who may touch
 * data: fetch_add on a slot whose ABSENT bit is clear makes data readable until the
 * matching fetch_sub; eviction is the exchange of "0 pins" for ABSENT, after which nobody can
 * come to hold the page, and its memory may go. Installing writes data and then
 * clears ABSENT by subtraction, so that the additions of readers who came too early and
 * are about to take themselves back are kept. */
#include "index/shard_pages.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

#define ABSENT UINT32_C(0x80000000)

enum {
    /* Pages kept by default: 1 MiB. */
    RESIDENT_PAGES = 64
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
    LAHAR_ASSERT(count < ABSENT);
    *pages = (struct lahar_shard_pages){.source = *source,
                                        .body_size = body_size,
                                        .page_count = (uint32_t)count,
                                        .checksums = checksums,
                                        .allocator = allocator,
                                        .resident_limit = RESIDENT_PAGES};
    if (source->memory != NULL) {
        pages->page_count = 0;
    }
    pages->slots =
        lahar_allocate_zeroed(allocator, (size_t)pages->page_count + 1, sizeof *pages->slots);
    if (pages->slots == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the pages of a shard");
    }
    for (uint32_t i = 0; i < pages->page_count; i++) {
        atomic_init(&pages->slots[i].pins, ABSENT);
    }
    if (pthread_mutex_init(&pages->mutex, NULL) != 0) {
        lahar_release(allocator, pages->slots);
        pages->slots = NULL;
        return lahar_fail(error, LAHAR_NO_MEMORY, "cannot create a mutex for a shard");
    }
    return LAHAR_OK;
}

void lahar_shard_pages_deinit(struct lahar_shard_pages *pages)
{
    if (pages->slots == NULL) {
        return;
    }
    for (uint32_t i = 0; i < pages->page_count; i++) {
        lahar_release(pages->allocator, pages->slots[i].data);
    }
    lahar_release(pages->allocator, pages->slots);
    pages->slots = NULL;
    pthread_mutex_destroy(&pages->mutex);
}

/* Frees one unpinned page, preferring those not read since the hand last passed; false when there
 * is none. Under the mutex. */
static bool evict_one(struct lahar_shard_pages *pages)
{
    for (uint64_t tries = 0; tries < 2 * (uint64_t)pages->page_count; tries++) {
        struct lahar_page_slot *slot = &pages->slots[pages->clock_hand];
        pages->clock_hand = pages->clock_hand + 1 == pages->page_count ? 0 : pages->clock_hand + 1;
        if ((atomic_load_explicit(&slot->pins, memory_order_relaxed) & ABSENT) != 0) {
            continue;
        }
        if (atomic_exchange_explicit(&slot->is_used, 0, memory_order_relaxed) != 0) {
            continue;
        }
        uint32_t unpinned = 0;
        /* Acquire pairs with the release of the last reader: its reads come before the free. */
        if (atomic_compare_exchange_strong_explicit(&slot->pins, &unpinned, ABSENT,
                                                    memory_order_acquire, memory_order_relaxed)) {
            lahar_release(pages->allocator, slot->data);
            slot->data = NULL;
            pages->resident_count--;
            return true;
        }
    }
    return false;
}

void lahar_shard_pages_limit(struct lahar_shard_pages *pages, uint64_t page_count)
{
    pthread_mutex_lock(&pages->mutex);
    pages->resident_limit = page_count == 0           ? 1
                            : page_count < UINT32_MAX ? (uint32_t)page_count
                                                      : UINT32_MAX;
    while (pages->resident_count > pages->resident_limit && evict_one(pages)) {
    }
    pthread_mutex_unlock(&pages->mutex);
}

uint64_t lahar_shard_pages_memory(struct lahar_shard_pages *pages)
{
    pthread_mutex_lock(&pages->mutex);
    const uint64_t resident = pages->resident_count;
    pthread_mutex_unlock(&pages->mutex);
    return resident * (LAHAR_SHARD_PAGE_SIZE + LAHAR_BITPACK_SLACK) +
           (uint64_t)pages->page_count * sizeof *pages->slots;
}

static bool try_pin(struct lahar_page_slot *slot)
{
    /* Acquire pairs with the release in install: data is seen as written there. */
    if ((atomic_fetch_add_explicit(&slot->pins, 1, memory_order_acquire) & ABSENT) == 0) {
        if (atomic_load_explicit(&slot->is_used, memory_order_relaxed) == 0) {
            atomic_store_explicit(&slot->is_used, 1, memory_order_relaxed);
        }
        return true;
    }
    atomic_fetch_sub_explicit(&slot->pins, 1, memory_order_relaxed);
    return false;
}

/* Makes data, which it takes over, the page of the slot, unless another thread was
 * faster; the page is pinned for the caller either way. */
static void install(struct lahar_shard_pages *pages, struct lahar_page_slot *slot, uint8_t *data)
{
    pthread_mutex_lock(&pages->mutex);
    if (try_pin(slot)) {
        lahar_release(pages->allocator, data);
    } else {
        while (pages->resident_count >= pages->resident_limit && evict_one(pages)) {
        }
        slot->data = data;
        pages->resident_count++;
        atomic_store_explicit(&slot->is_used, 1, memory_order_relaxed);
        /* ABSENT goes and one pin comes. Release publishes data. */
        atomic_fetch_sub_explicit(&slot->pins, ABSENT - 1, memory_order_release);
    }
    pthread_mutex_unlock(&pages->mutex);
}

static size_t page_size(const struct lahar_shard_pages *pages, uint32_t page)
{
    const uint64_t left = pages->body_size - (uint64_t)page * LAHAR_SHARD_PAGE_SIZE;
    return left < LAHAR_SHARD_PAGE_SIZE ? (size_t)left : (size_t)LAHAR_SHARD_PAGE_SIZE;
}

/* Memory for a page, its slack zeroed; NULL when it is refused. */
static uint8_t *allocate_page(struct lahar_shard_pages *pages, size_t size)
{
    uint8_t *data = lahar_allocate(pages->allocator, size + LAHAR_BITPACK_SLACK);
    if (data != NULL) {
        memset(data + size, 0, LAHAR_BITPACK_SLACK);
    }
    return data;
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

static lahar_status pin_page(struct lahar_shard_pages *pages, uint32_t page,
                             struct lahar_page_slot **slot_out, lahar_error *error)
{
    struct lahar_page_slot *slot = &pages->slots[page];
    if (!try_pin(slot)) {
        const size_t size = page_size(pages, page);
        uint8_t *data = allocate_page(pages, size);
        if (data == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a page of a shard");
        }
        lahar_status status = pages->source.fetch(
            pages->source.context, (uint64_t)page * LAHAR_SHARD_PAGE_SIZE, data, size, error);
        if (status == LAHAR_OK) {
            status = check_page(pages, page, data, size, error);
        }
        if (status != LAHAR_OK) {
            lahar_release(pages->allocator, data);
            return status;
        }
        install(pages, slot, data);
    }
    *slot_out = slot;
    return LAHAR_OK;
}

static void unpin(struct lahar_page_slot *slot)
{
    atomic_fetch_sub_explicit(&slot->pins, 1, memory_order_release);
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
        uint8_t *copy = allocate_page(pages, page_bytes);
        if (copy == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a page of a shard");
        }
        memcpy(copy, data + (at - data_at), page_bytes);
        install(pages, &pages->slots[page], copy);
        unpin(&pages->slots[page]);
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
        memcpy(p, slot->data + within, piece);
        unpin(slot);
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
        view->data = view->pinned->data + within;
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
        unpin(view->pinned);
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
    pthread_mutex_lock(&pages->mutex);
    const uint64_t kept = (uint64_t)pages->resident_limit * LAHAR_SHARD_PAGE_SIZE;
    pthread_mutex_unlock(&pages->mutex);
    return pages->source.memory != NULL || size <= kept / 2;
}
