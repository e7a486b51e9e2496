/* Bump allocation: many small pieces, all released together. */
#ifndef LAHAR_BASE_ARENA_H
#define LAHAR_BASE_ARENA_H

#include <stddef.h>

#include "io/base/allocator.h"

struct lahar_arena {
    struct lahar_arena_chunk *chunks; /* in use; the first is the one being filled */
    struct lahar_arena_chunk *spare;  /* empty, kept by reset */
    size_t chunk_size;
    size_t used_bytes; /* handed out since the last reset */
    const lahar_allocator *allocator;
};

/* chunk_size: bytes asked of the allocator at a time; 0 takes 64 KiB. */
void lahar_arena_init(struct lahar_arena *arena, const lahar_allocator *allocator,
                      size_t chunk_size);
void lahar_arena_deinit(struct lahar_arena *arena);
/* Forgets every piece and keeps the memory for the next ones. */
void lahar_arena_reset(struct lahar_arena *arena);
/* Aligned to 16 bytes, not cleared; NULL when memory is refused. */
void *lahar_arena_allocate(struct lahar_arena *arena, size_t size);
/* A copy of size bytes; NULL when memory is refused. */
void *lahar_arena_copy(struct lahar_arena *arena, const void *data, size_t size);

#endif
