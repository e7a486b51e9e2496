/* Each block begins with its size, so that whoever releases it need not know. */
#include "io/base/recycler.h"

#include <string.h>

enum {
    HEADER_SIZE = 16, /* keeps the alignment of what the source returns */
    LARGE_SIZE = 64 * 1024,
    /* A kept block serves requests of down to one such part of its size. */
    WASTE_FACTOR = 2
};

static size_t *size_of(void *memory)
{
    return (size_t *)(void *)((uint8_t *)memory - HEADER_SIZE);
}

static void *from_source(struct lahar_recycler *recycler, void *memory, size_t size)
{
    if (size > SIZE_MAX - HEADER_SIZE) {
        return NULL;
    }
    uint8_t *block =
        lahar_reallocate(recycler->source, memory == NULL ? NULL : (uint8_t *)memory - HEADER_SIZE,
                         size + HEADER_SIZE);
    if (block == NULL) {
        return NULL;
    }
    memcpy(block, &size, sizeof size);
    return block + HEADER_SIZE;
}

static void to_source(struct lahar_recycler *recycler, void *memory)
{
    lahar_release(recycler->source, (uint8_t *)memory - HEADER_SIZE);
}

/* Takes a kept block out of the list. */
static void *take(struct lahar_recycler *recycler, uint32_t index)
{
    void *memory = recycler->blocks[index].memory;
    recycler->kept_bytes -= recycler->blocks[index].size;
    recycler->block_count--;
    memmove(&recycler->blocks[index], &recycler->blocks[index + 1],
            (recycler->block_count - index) * sizeof recycler->blocks[0]);
    return memory;
}

/* The smallest kept block that fits; NULL when there is none. */
static void *find(struct lahar_recycler *recycler, size_t size)
{
    uint32_t best = recycler->block_count;
    for (uint32_t i = 0; size >= LARGE_SIZE && i < recycler->block_count; i++) {
        const size_t kept = recycler->blocks[i].size;
        if (kept >= size && kept / WASTE_FACTOR <= size &&
            (best == recycler->block_count || kept < recycler->blocks[best].size)) {
            best = i;
        }
    }
    return best == recycler->block_count ? NULL : take(recycler, best);
}

static void *recycler_allocate(void *context, size_t size)
{
    struct lahar_recycler *recycler = context;
    void *memory = find(recycler, size);
    return memory != NULL ? memory : from_source(recycler, NULL, size);
}

static void recycler_release(void *context, void *memory)
{
    struct lahar_recycler *recycler = context;
    if (memory == NULL) {
        return;
    }
    const size_t size = *size_of(memory);
    if (size < LARGE_SIZE || size > recycler->limit_bytes) {
        to_source(recycler, memory);
        return;
    }
    while (recycler->block_count == LAHAR_RECYCLER_BLOCK_COUNT ||
           recycler->kept_bytes > recycler->limit_bytes - size) {
        to_source(recycler, take(recycler, 0));
    }
    recycler->blocks[recycler->block_count++] = (struct lahar_recycled_block){memory, size};
    recycler->kept_bytes += size;
}

static void *recycler_resize(void *context, void *memory, size_t size)
{
    struct lahar_recycler *recycler = context;
    if (memory == NULL) {
        return recycler_allocate(context, size);
    }
    const size_t old_size = *size_of(memory);
    if (size <= old_size && size >= old_size / WASTE_FACTOR) {
        return memory;
    }
    void *other = find(recycler, size);
    if (other == NULL) {
        return from_source(recycler, memory, size);
    }
    memcpy(other, memory, old_size < size ? old_size : size);
    recycler_release(context, memory);
    return other;
}

void lahar_recycler_init(struct lahar_recycler *recycler, const lahar_allocator *source,
                         uint64_t limit_bytes)
{
    *recycler = (struct lahar_recycler){
        .allocator = {recycler_allocate, recycler_resize, recycler_release, recycler},
        .source = source,
        .limit_bytes = limit_bytes};
}

void lahar_recycler_deinit(struct lahar_recycler *recycler)
{
    while (recycler->block_count > 0) {
        to_source(recycler, take(recycler, recycler->block_count - 1));
    }
}
