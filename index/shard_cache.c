/* Pages of shards; see shard_cache.h.
 *
 * The pin count decides who may touch the page: fetch_add on a slot whose ABSENT bit is clear makes
 * it readable until the matching fetch_sub; eviction is the exchange of "0 pins" for ABSENT, after
 * which nobody can come to hold the page, and its memory may go. Installing writes the page and
 * then clears ABSENT by subtraction, so that the additions of readers who came too early and are
 * about to take themselves back are kept. */
#include "index/shard_cache.h"

#include "io/base/error.h"

#define ABSENT UINT32_C(0x80000000)

void lahar_shard_cache_init(struct lahar_shard_cache *cache, uint64_t limit_bytes)
{
    *cache = (struct lahar_shard_cache){.limit_bytes = limit_bytes};
    (void)pthread_mutex_init(&cache->mutex, NULL); /* with default attributes it cannot fail */
}

void lahar_shard_cache_deinit(struct lahar_shard_cache *cache)
{
    LAHAR_ASSERT(cache->page_count == 0);
    (void)pthread_mutex_destroy(&cache->mutex);
}

/* --- pages ------------------------------------------------------------------------- */

struct lahar_cached_page *lahar_cached_page_create(const lahar_allocator *allocator, size_t size)
{
    struct lahar_cached_page *page = lahar_allocate(allocator, sizeof *page + size);
    if (page != NULL) {
        *page = (struct lahar_cached_page){.allocator = allocator, .size = size};
    }
    return page;
}

void lahar_cached_page_destroy(struct lahar_cached_page *page)
{
    if (page != NULL) {
        lahar_release(page->allocator, page);
    }
}

static size_t bytes_of(const struct lahar_cached_page *page)
{
    return sizeof *page + page->size;
}

/* With the lock held: behind the hand, which comes there last. */
static void link_page(struct lahar_shard_cache *cache, struct lahar_cached_page *page)
{
    if (cache->hand == NULL) {
        page->previous = page->next = page;
        cache->hand = page;
    } else {
        page->next = cache->hand;
        page->previous = cache->hand->previous;
        page->previous->next = page;
        page->next->previous = page;
    }
    cache->page_count++;
    cache->resident_bytes += bytes_of(page);
}

/* With the lock held, when no reader can come to the page any more. */
static void free_page(struct lahar_shard_cache *cache, struct lahar_cached_page *page)
{
    if (cache->hand == page) {
        cache->hand = page->next == page ? NULL : page->next;
    }
    page->previous->next = page->next;
    page->next->previous = page->previous;
    cache->page_count--;
    cache->resident_bytes -= bytes_of(page);
    page->slot->page = NULL;
    lahar_cached_page_destroy(page);
}

/* --- pins -------------------------------------------------------------------------- */

void lahar_page_slot_init(struct lahar_page_slot *slot)
{
    atomic_init(&slot->pins, ABSENT);
    atomic_init(&slot->is_used, 0);
    slot->page = NULL;
}

bool lahar_page_slot_try_pin(struct lahar_page_slot *slot)
{
    /* Acquire pairs with the release in install: the page is seen as written there. */
    if ((atomic_fetch_add_explicit(&slot->pins, 1, memory_order_acquire) & ABSENT) == 0) {
        if (atomic_load_explicit(&slot->is_used, memory_order_relaxed) == 0) {
            atomic_store_explicit(&slot->is_used, 1, memory_order_relaxed);
        }
        return true;
    }
    atomic_fetch_sub_explicit(&slot->pins, 1, memory_order_relaxed);
    return false;
}

void lahar_page_slot_unpin(struct lahar_page_slot *slot)
{
    /* Release pairs with the acquire in try_evict. */
    atomic_fetch_sub_explicit(&slot->pins, 1, memory_order_release);
}

static bool try_evict(struct lahar_page_slot *slot)
{
    uint32_t unpinned = 0;
    /* Acquire pairs with the release of the last reader: its reads come before the free. */
    return atomic_exchange_explicit(&slot->is_used, 0, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&slot->pins, &unpinned, ABSENT,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* With the lock held: evicts pages that nobody reads, those first that were not read lately, until
 * size more bytes fit in. */
static void make_room(struct lahar_shard_cache *cache, uint64_t size)
{
    /* Twice round: the first time may only find that every page was read lately. */
    for (uint64_t tries = 2 * cache->page_count;
         tries > 0 && cache->hand != NULL && cache->resident_bytes + size > cache->limit_bytes;
         tries--) {
        struct lahar_cached_page *page = cache->hand;
        if (try_evict(page->slot)) {
            free_page(cache, page);
        } else {
            cache->hand = page->next;
        }
    }
}

void lahar_shard_cache_install(struct lahar_shard_cache *cache, struct lahar_page_slot *slot,
                               struct lahar_cached_page *page)
{
    (void)pthread_mutex_lock(&cache->mutex);
    if (lahar_page_slot_try_pin(slot)) {
        lahar_cached_page_destroy(page);
    } else {
        make_room(cache, bytes_of(page));
        page->slot = slot;
        slot->page = page;
        link_page(cache, page);
        atomic_store_explicit(&slot->is_used, 1, memory_order_relaxed);
        /* ABSENT goes and one pin comes. Release publishes the page. */
        atomic_fetch_sub_explicit(&slot->pins, ABSENT - 1, memory_order_release);
    }
    (void)pthread_mutex_unlock(&cache->mutex);
}

void lahar_shard_cache_drop(struct lahar_shard_cache *cache, struct lahar_page_slot *slots,
                            uint32_t slot_count)
{
    (void)pthread_mutex_lock(&cache->mutex);
    for (uint32_t i = 0; i < slot_count; i++) {
        if (slots[i].page != NULL) {
            free_page(cache, slots[i].page);
        }
    }
    (void)pthread_mutex_unlock(&cache->mutex);
}

/* --- limits ------------------------------------------------------------------------ */

void lahar_shard_cache_limit(struct lahar_shard_cache *cache, uint64_t limit_bytes)
{
    (void)pthread_mutex_lock(&cache->mutex);
    cache->limit_bytes = limit_bytes;
    make_room(cache, 0);
    (void)pthread_mutex_unlock(&cache->mutex);
}

uint64_t lahar_shard_cache_room(struct lahar_shard_cache *cache)
{
    (void)pthread_mutex_lock(&cache->mutex);
    const uint64_t bytes = cache->limit_bytes;
    (void)pthread_mutex_unlock(&cache->mutex);
    return bytes;
}

uint64_t lahar_shard_cache_bytes(struct lahar_shard_cache *cache)
{
    (void)pthread_mutex_lock(&cache->mutex);
    const uint64_t bytes = cache->resident_bytes;
    (void)pthread_mutex_unlock(&cache->mutex);
    return bytes;
}

uint64_t lahar_shard_cache_bytes_of(struct lahar_shard_cache *cache,
                                    const struct lahar_page_slot *slots, uint32_t slot_count)
{
    uint64_t bytes = 0;
    (void)pthread_mutex_lock(&cache->mutex);
    for (uint32_t i = 0; i < slot_count; i++) {
        bytes += slots[i].page == NULL ? 0 : bytes_of(slots[i].page);
    }
    (void)pthread_mutex_unlock(&cache->mutex);
    return bytes;
}
