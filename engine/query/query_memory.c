/* Counted allocation; see query_memory.h. Each piece has its size in front. */
#include "engine/query/query_memory.h"

enum {
    HEADER_SIZE = 16 /* keeps the alignment of the outer allocator */
};

/* Adds size to a count that must not exceed the limit; 0: it would. Else what the count is now. */
static uint64_t count_up(_Atomic uint64_t *count, uint64_t size, uint64_t limit)
{
    const uint64_t used = atomic_fetch_add_explicit(count, size, memory_order_relaxed) + size;
    if (used > limit || used < size) {
        (void)atomic_fetch_sub_explicit(count, size, memory_order_relaxed);
        return 0;
    }
    return used;
}

static bool take(struct lahar_query_memory *memory, uint64_t size)
{
    const uint64_t used = count_up(&memory->used_bytes, size, memory->limit_bytes);
    if (used == 0) {
        atomic_store_explicit(&memory->refusal, LAHAR_QUERY_REFUSED_ITS_OWN, memory_order_relaxed);
        return false;
    }
    struct lahar_query_budget *budget = memory->budget;
    if (count_up(&budget->used_bytes, size, budget->limit_bytes) == 0) {
        (void)atomic_fetch_sub_explicit(&memory->used_bytes, size, memory_order_relaxed);
        atomic_store_explicit(&memory->refusal, LAHAR_QUERY_REFUSED_ALL_OTHERS,
                              memory_order_relaxed);
        return false;
    }
    uint64_t peak = atomic_load_explicit(&memory->peak_bytes, memory_order_relaxed);
    while (used > peak &&
           !atomic_compare_exchange_weak_explicit(&memory->peak_bytes, &peak, used,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return true;
}

static void give_back(struct lahar_query_memory *memory, uint64_t size)
{
    (void)atomic_fetch_sub_explicit(&memory->used_bytes, size, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&memory->budget->used_bytes, size, memory_order_relaxed);
}

static void *allocate(void *context, size_t size)
{
    struct lahar_query_memory *memory = context;
    if (size > SIZE_MAX - HEADER_SIZE || !take(memory, size + HEADER_SIZE)) {
        return NULL;
    }
    uint8_t *piece = lahar_allocate(memory->outer, size + HEADER_SIZE);
    if (piece == NULL) {
        give_back(memory, size + HEADER_SIZE);
        return NULL;
    }
    *(size_t *)(void *)piece = size;
    return piece + HEADER_SIZE;
}

static void release(void *context, void *data)
{
    struct lahar_query_memory *memory = context;
    if (data != NULL) {
        uint8_t *piece = (uint8_t *)data - HEADER_SIZE;
        give_back(memory, *(size_t *)(void *)piece + HEADER_SIZE);
        lahar_release(memory->outer, piece);
    }
}

static void *resize(void *context, void *data, size_t size)
{
    struct lahar_query_memory *memory = context;
    if (data == NULL) {
        return allocate(context, size);
    }
    uint8_t *piece = (uint8_t *)data - HEADER_SIZE;
    const size_t old_size = *(size_t *)(void *)piece;
    if (size > SIZE_MAX - HEADER_SIZE || (size > old_size && !take(memory, size - old_size))) {
        return NULL;
    }
    uint8_t *moved = lahar_reallocate(memory->outer, piece, size + HEADER_SIZE);
    if (moved == NULL) {
        give_back(memory, size > old_size ? size - old_size : 0);
        return NULL;
    }
    give_back(memory, size < old_size ? old_size - size : 0);
    *(size_t *)(void *)moved = size;
    return moved + HEADER_SIZE;
}

void lahar_query_memory_init(struct lahar_query_memory *memory, const lahar_allocator *outer,
                             struct lahar_query_budget *budget)
{
    memory->allocator = (lahar_allocator){allocate, resize, release, memory};
    memory->outer = outer;
    memory->budget = budget;
    memory->limit_bytes = budget->limit_bytes;
    atomic_init(&memory->used_bytes, 0);
    atomic_init(&memory->peak_bytes, 0);
    atomic_init(&memory->refusal, LAHAR_QUERY_NOT_REFUSED);
}
