/* Bump allocation out of chunks that are chained and released together.
 *
 * Only the first chunk of the chain is filled. A piece larger than what is
 * left there starts another chunk; a piece larger than a whole chunk gets one of
 * its own behind the first, so that the rest of the first is not wasted.
 * One thread at a time. */
#include "io/base/arena.h"

#include <stdint.h>
#include <string.h>

enum {
    DEFAULT_CHUNK_SIZE = 64 * 1024,
    PIECE_ALIGNMENT = 16
};

struct lahar_arena_chunk {
    struct lahar_arena_chunk *next;
    size_t capacity; /* bytes at data */
    size_t used;     /* bytes of data handed out */
    _Alignas(PIECE_ALIGNMENT) uint8_t data[];
};

static void release_chain(struct lahar_arena *arena, struct lahar_arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct lahar_arena_chunk *next = chunk->next;
        lahar_release(arena->allocator, chunk);
        chunk = next;
    }
}

/* An empty chunk with room for size bytes: a spare one that fits, else a new one. */
static struct lahar_arena_chunk *obtain_chunk(struct lahar_arena *arena, size_t size)
{
    for (struct lahar_arena_chunk **link = &arena->spare; *link != NULL; link = &(*link)->next) {
        struct lahar_arena_chunk *chunk = *link;
        if (chunk->capacity >= size) {
            *link = chunk->next;
            return chunk;
        }
    }
    const size_t capacity = size > arena->chunk_size ? size : arena->chunk_size;
    size_t total = 0;
    if (__builtin_add_overflow(capacity, sizeof(struct lahar_arena_chunk), &total)) {
        return NULL;
    }
    struct lahar_arena_chunk *chunk = lahar_allocate(arena->allocator, total);
    if (chunk != NULL) {
        chunk->capacity = capacity;
        chunk->used = 0;
    }
    return chunk;
}

void lahar_arena_init(struct lahar_arena *arena, const lahar_allocator *allocator,
                      size_t chunk_size)
{
    *arena = (struct lahar_arena){
        .chunk_size = chunk_size == 0 ? DEFAULT_CHUNK_SIZE : chunk_size,
        .allocator = allocator,
    };
}

void lahar_arena_deinit(struct lahar_arena *arena)
{
    release_chain(arena, arena->chunks);
    release_chain(arena, arena->spare);
    arena->chunks = NULL;
    arena->spare = NULL;
    arena->used_bytes = 0;
}

void lahar_arena_reset(struct lahar_arena *arena)
{
    while (arena->chunks != NULL) {
        struct lahar_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        chunk->used = 0;
        chunk->next = arena->spare;
        arena->spare = chunk;
    }
    arena->used_bytes = 0;
}

void *lahar_arena_allocate(struct lahar_arena *arena, size_t size)
{
    if (size > SIZE_MAX - PIECE_ALIGNMENT) {
        return NULL;
    }
    /* An empty piece still has an address of its own. */
    const size_t padded = size == 0
                              ? (size_t)PIECE_ALIGNMENT
                              : (size + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    struct lahar_arena_chunk *chunk = arena->chunks;
    if (chunk == NULL || chunk->capacity - chunk->used < padded) {
        chunk = obtain_chunk(arena, padded);
        if (chunk == NULL) {
            return NULL;
        }
        if (padded > arena->chunk_size && arena->chunks != NULL) {
            chunk->next = arena->chunks->next;
            arena->chunks->next = chunk;
        } else {
            chunk->next = arena->chunks;
            arena->chunks = chunk;
        }
    }
    void *piece = chunk->data + chunk->used;
    chunk->used += padded;
    arena->used_bytes += padded;
    return piece;
}

void *lahar_arena_copy(struct lahar_arena *arena, const void *data, size_t size)
{
    void *copy = lahar_arena_allocate(arena, size);
    if (copy != NULL && size != 0) {
        memcpy(copy, data, size);
    }
    return copy;
}
