#include "engine/segment/block_cache.h"

#include <pthread.h>
#include <string.h>

#include "engine/segment/block_reader.h"
#include "io/base/error.h"

enum {
    SHARD_COUNT_MAX = 16,
    SHARD_SIZE_MIN = 8 * 1024 * 1024, /* bytes; fewer shards below */
    BUCKET_COUNT = 256,               /* a shard */
    DECODED_SIZE = 16                 /* times the stored size, about */
};

struct item {
    uint64_t file_number;
    uint32_t block_number;
    struct lahar_block *block; /* one reference */
    struct item *next;         /* in the bucket */
    struct item *newer;        /* in order of use */
    struct item *older;
};

struct shard {
    pthread_mutex_t mutex;
    struct item *buckets[BUCKET_COUNT];
    struct item *newest;
    struct item *oldest;
    uint64_t bytes;
    uint64_t hits;
    uint64_t misses;
};

struct lahar_block_cache {
    lahar_allocator allocator;
    uint64_t shard_limit_bytes;
    uint32_t shard_count;
    struct shard shards[];
};

lahar_status lahar_block_cache_create(const lahar_allocator *allocator, uint64_t limit_bytes,
                                      struct lahar_block_cache **cache_out, lahar_error *error)
{
    const uint64_t fitting = limit_bytes / SHARD_SIZE_MIN;
    const uint32_t shard_count = fitting < 1                 ? 1
                                 : fitting > SHARD_COUNT_MAX ? SHARD_COUNT_MAX
                                                             : (uint32_t)fitting;
    struct lahar_block_cache *cache =
        lahar_allocate_zeroed(allocator, 1, sizeof *cache + shard_count * sizeof cache->shards[0]);
    if (cache == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the block cache");
    }
    cache->allocator = *allocator;
    cache->shard_limit_bytes = limit_bytes / shard_count;
    for (; cache->shard_count < shard_count; cache->shard_count++) {
        if (pthread_mutex_init(&cache->shards[cache->shard_count].mutex, NULL) != 0) {
            lahar_block_cache_destroy(cache);
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the block cache");
        }
    }
    *cache_out = cache;
    return LAHAR_OK;
}

void lahar_block_cache_destroy(struct lahar_block_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (uint32_t i = 0; i < cache->shard_count; i++) {
        struct item *item = cache->shards[i].newest;
        while (item != NULL) {
            struct item *older = item->older;
            lahar_block_release(item->block);
            lahar_release(&cache->allocator, item);
            item = older;
        }
        (void)pthread_mutex_destroy(&cache->shards[i].mutex);
    }
    const lahar_allocator allocator = cache->allocator;
    lahar_release(&allocator, cache);
}

void lahar_block_cache_stat(struct lahar_block_cache *cache, uint64_t *hits_out,
                            uint64_t *misses_out, uint64_t *bytes_out)
{
    *hits_out = *misses_out = *bytes_out = 0;
    for (uint32_t i = 0; i < cache->shard_count; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->mutex);
        *hits_out += shard->hits;
        *misses_out += shard->misses;
        *bytes_out += shard->bytes;
        pthread_mutex_unlock(&shard->mutex);
    }
}

static uint64_t hash_key(uint64_t file_number, uint32_t block_number)
{
    const uint64_t mixed = (file_number * UINT64_C(0x9e3779b97f4a7c15)) ^
                           (block_number * UINT64_C(0xd6e8feb86659fd93));
    return mixed ^ mixed >> 29;
}

static struct shard *shard_of(struct lahar_block_cache *cache, uint64_t hash)
{
    return &cache->shards[(hash >> 32) % cache->shard_count];
}

/* The link that points to the item, or the one at the end of its bucket. */
static struct item **find_link(struct shard *shard, uint64_t hash, uint64_t file_number,
                               uint32_t block_number)
{
    struct item **link = &shard->buckets[hash % BUCKET_COUNT];
    while (*link != NULL &&
           ((*link)->file_number != file_number || (*link)->block_number != block_number)) {
        link = &(*link)->next;
    }
    return link;
}

static void unlink_use(struct shard *shard, struct item *item)
{
    *(item->newer == NULL ? &shard->newest : &item->newer->older) = item->older;
    *(item->older == NULL ? &shard->oldest : &item->older->newer) = item->newer;
}

static void link_newest(struct shard *shard, struct item *item)
{
    item->newer = NULL;
    item->older = shard->newest;
    *(shard->newest == NULL ? &shard->oldest : &shard->newest->newer) = item;
    shard->newest = item;
}

struct lahar_block *lahar_block_cache_get(struct lahar_block_cache *cache, uint64_t file_number,
                                          uint32_t block_number)
{
    const uint64_t hash = hash_key(file_number, block_number);
    struct shard *shard = shard_of(cache, hash);
    struct lahar_block *block = NULL;
    pthread_mutex_lock(&shard->mutex);
    struct item *item = *find_link(shard, hash, file_number, block_number);
    if (item == NULL) {
        shard->misses++;
    } else {
        shard->hits++;
        unlink_use(shard, item);
        link_newest(shard, item);
        block = item->block;
        (void)atomic_fetch_add_explicit(&block->reference_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&shard->mutex);
    return block;
}

bool lahar_block_cache_lacks(struct lahar_block_cache *cache, uint64_t file_number,
                             uint32_t block_number, uint64_t size)
{
    const uint64_t hash = hash_key(file_number, block_number);
    struct shard *shard = shard_of(cache, hash);
    if (size * DECODED_SIZE > cache->shard_limit_bytes) {
        return false;
    }
    pthread_mutex_lock(&shard->mutex);
    const bool is_absent = *find_link(shard, hash, file_number, block_number) == NULL;
    pthread_mutex_unlock(&shard->mutex);
    return is_absent;
}

/* Takes an item out; the caller releases it, outside the mutex where it can. */
static struct item *take_out(struct shard *shard, struct item **link)
{
    struct item *item = *link;
    *link = item->next;
    unlink_use(shard, item);
    shard->bytes -= item->block->charge;
    return item;
}

static void release_items(struct lahar_block_cache *cache, struct item *items)
{
    while (items != NULL) {
        struct item *next = items->next;
        lahar_block_release(items->block);
        lahar_release(&cache->allocator, items);
        items = next;
    }
}

void lahar_block_cache_put(struct lahar_block_cache *cache, uint64_t file_number,
                           uint32_t block_number, struct lahar_block *block)
{
    if (block->charge > cache->shard_limit_bytes) {
        return;
    }
    struct item *item = lahar_allocate(&cache->allocator, sizeof *item);
    if (item == NULL) {
        return;
    }
    *item = (struct item){.file_number = file_number, .block_number = block_number, .block = block};
    const uint64_t hash = hash_key(file_number, block_number);
    struct shard *shard = shard_of(cache, hash);
    struct item *evicted = NULL;
    pthread_mutex_lock(&shard->mutex);
    if (*find_link(shard, hash, file_number, block_number) != NULL) {
        pthread_mutex_unlock(&shard->mutex);
        lahar_release(&cache->allocator, item);
        return;
    }
    while (shard->bytes + block->charge > cache->shard_limit_bytes) {
        const struct item *oldest = shard->oldest;
        struct item **link = find_link(shard, hash_key(oldest->file_number, oldest->block_number),
                                       oldest->file_number, oldest->block_number);
        struct item *taken = take_out(shard, link);
        taken->next = evicted;
        evicted = taken;
    }
    (void)atomic_fetch_add_explicit(&block->reference_count, 1, memory_order_relaxed);
    struct item **bucket = &shard->buckets[hash % BUCKET_COUNT];
    item->next = *bucket;
    *bucket = item;
    link_newest(shard, item);
    shard->bytes += block->charge;
    pthread_mutex_unlock(&shard->mutex);
    release_items(cache, evicted);
}

void lahar_block_cache_drop(struct lahar_block_cache *cache, uint64_t file_number,
                            uint32_t block_count)
{
    for (uint32_t block_number = 0; block_number < block_count; block_number++) {
        const uint64_t hash = hash_key(file_number, block_number);
        struct shard *shard = shard_of(cache, hash);
        pthread_mutex_lock(&shard->mutex);
        struct item **link = find_link(shard, hash, file_number, block_number);
        struct item *item = *link == NULL ? NULL : take_out(shard, link);
        pthread_mutex_unlock(&shard->mutex);
        if (item != NULL) {
            item->next = NULL;
            release_items(cache, item);
        }
    }
}
