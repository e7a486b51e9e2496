/* The pool keeps returned chunks for the next use: their pages are already there. */
#include "engine/journal/chunk.h"

#include <string.h>

#include "io/base/populate.h"
#include "io/io.h"

enum {
    /* A pool of at least this many chunks lets every journal have its own. */
    CHUNKS_IN_POOL = 64
};

void lahar_chunk_pool_init(struct lahar_chunk_pool *pool, const lahar_allocator *allocator,
                           uint64_t limit_bytes)
{
    pool->allocator = allocator;
    pool->limit_bytes = limit_bytes;
    pool->chunk_size = LAHAR_CHUNK_SIZE_MAX;
    while (pool->chunk_size > LAHAR_CHUNK_SIZE_MIN &&
           limit_bytes / pool->chunk_size < CHUNKS_IN_POOL) {
        pool->chunk_size /= 2;
    }
    atomic_init(&pool->used_bytes, 0);
    (void)pthread_mutex_init(&pool->mutex, NULL);
    pool->free_chunks = NULL;
}

static void destroy(struct lahar_chunk_pool *pool, struct lahar_chunk *chunk)
{
    lahar_release(pool->allocator, chunk->allocation);
    lahar_release(pool->allocator, chunk);
}

/* Must be called with the mutex held or by the only user. */
static void empty(struct lahar_chunk_pool *pool)
{
    while (pool->free_chunks != NULL) {
        struct lahar_chunk *chunk = pool->free_chunks;
        pool->free_chunks = chunk->next;
        destroy(pool, chunk);
    }
}

void lahar_chunk_pool_deinit(struct lahar_chunk_pool *pool)
{
    empty(pool);
    (void)pthread_mutex_destroy(&pool->mutex);
}

static struct lahar_chunk *create(struct lahar_chunk_pool *pool, uint32_t capacity)
{
    struct lahar_chunk *chunk = lahar_allocate_zeroed(pool->allocator, 1, sizeof *chunk);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->allocation = lahar_allocate(pool->allocator, (size_t)capacity + LAHAR_IO_ALIGNMENT);
    if (chunk->allocation == NULL) {
        lahar_release(pool->allocator, chunk);
        return NULL;
    }
    const uintptr_t mask = LAHAR_IO_ALIGNMENT - 1;
    chunk->image = (uint8_t *)(((uintptr_t)chunk->allocation + mask) & ~mask);
    chunk->capacity = capacity;
    lahar_populate(chunk->image, capacity);
    return chunk;
}

/* Makes a chunk as good as new but for its memory. */
static void reset(struct lahar_chunk *chunk)
{
    uint8_t *image = chunk->image;
    void *allocation = chunk->allocation;
    const uint32_t capacity = chunk->capacity;
    memset(chunk, 0, sizeof *chunk);
    chunk->image = image;
    chunk->allocation = allocation;
    chunk->capacity = capacity;
    memset(image, 0, capacity);
}

static bool reserve(struct lahar_chunk_pool *pool, uint64_t bytes, uint64_t left_bytes)
{
    const uint64_t used =
        atomic_fetch_add_explicit(&pool->used_bytes, bytes, memory_order_relaxed) + bytes;
    if (used + left_bytes > pool->limit_bytes) {
        lahar_chunk_pool_discharge(pool, bytes);
        return false;
    }
    return true;
}

struct lahar_chunk *lahar_chunk_take(struct lahar_chunk_pool *pool, uint32_t left_count)
{
    if (!reserve(pool, pool->chunk_size, (uint64_t)left_count * pool->chunk_size)) {
        return NULL;
    }
    (void)pthread_mutex_lock(&pool->mutex);
    struct lahar_chunk *chunk = pool->free_chunks;
    if (chunk != NULL) {
        pool->free_chunks = chunk->next;
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    if (chunk == NULL) {
        chunk = create(pool, pool->chunk_size);
    }
    if (chunk == NULL) {
        lahar_chunk_pool_discharge(pool, pool->chunk_size);
        return NULL;
    }
    reset(chunk);
    return chunk;
}

struct lahar_chunk *lahar_chunk_take_jumbo(struct lahar_chunk_pool *pool, uint32_t capacity)
{
    if (!reserve(pool, capacity, 0)) {
        return NULL;
    }
    /* Free chunks are not counted as used: give their memory back first. */
    (void)pthread_mutex_lock(&pool->mutex);
    empty(pool);
    (void)pthread_mutex_unlock(&pool->mutex);
    struct lahar_chunk *chunk = create(pool, capacity);
    if (chunk == NULL) {
        lahar_chunk_pool_discharge(pool, capacity);
        return NULL;
    }
    reset(chunk);
    chunk->is_jumbo = true;
    return chunk;
}

void lahar_chunk_put(struct lahar_chunk_pool *pool, struct lahar_chunk *chunk)
{
    lahar_chunk_pool_discharge(pool, chunk->capacity);
    if (chunk->is_jumbo) {
        destroy(pool, chunk);
        return;
    }
    (void)pthread_mutex_lock(&pool->mutex);
    chunk->next = pool->free_chunks;
    pool->free_chunks = chunk;
    (void)pthread_mutex_unlock(&pool->mutex);
}

bool lahar_chunk_pool_has_room(const struct lahar_chunk_pool *pool)
{
    return atomic_load_explicit(&pool->used_bytes, memory_order_relaxed) + pool->chunk_size <=
           pool->limit_bytes;
}

void lahar_chunk_pool_charge(struct lahar_chunk_pool *pool, uint64_t bytes)
{
    (void)atomic_fetch_add_explicit(&pool->used_bytes, bytes, memory_order_relaxed);
}

void lahar_chunk_pool_discharge(struct lahar_chunk_pool *pool, uint64_t bytes)
{
    (void)atomic_fetch_sub_explicit(&pool->used_bytes, bytes, memory_order_relaxed);
}
