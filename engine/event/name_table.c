#include "engine/event/name_table.h"

#include <string.h>
#include <xxhash.h>

#include "io/base/error.h"

/* One name, its terminator behind it. */
struct name {
    uint32_t size; /* bytes, without the terminator */
    char text[];
};

struct lahar_name_chunk {
    _Atomic(struct name *) names[LAHAR_NAME_CHUNK_SIZE];
};

/* Open addressing, at most half full; a slot is a number + 1, 0 when free. */
struct lahar_name_slots {
    struct lahar_name_slots *older; /* owned */
    uint32_t mask;
    _Atomic uint32_t items[];
};

enum {
    SLOTS_COUNT_MIN = 64
};

void lahar_name_table_init(struct lahar_name_table *table, const lahar_allocator *allocator,
                           uint32_t count_max)
{
    LAHAR_ASSERT(count_max <= LAHAR_NAME_CHUNK_SIZE * LAHAR_NAME_CHUNK_COUNT);
    table->allocator = allocator;
    table->count_max = count_max;
    atomic_init(&table->count, 0);
    atomic_init(&table->slots, NULL);
    for (uint32_t i = 0; i < LAHAR_NAME_CHUNK_COUNT; i++) {
        atomic_init(&table->chunks[i], NULL);
    }
}

void lahar_name_table_deinit(struct lahar_name_table *table)
{
    for (uint32_t i = 0; i < LAHAR_NAME_CHUNK_COUNT; i++) {
        struct lahar_name_chunk *chunk =
            atomic_load_explicit(&table->chunks[i], memory_order_relaxed);
        if (chunk == NULL) {
            continue;
        }
        for (uint32_t k = 0; k < LAHAR_NAME_CHUNK_SIZE; k++) {
            lahar_release(table->allocator,
                          atomic_load_explicit(&chunk->names[k], memory_order_relaxed));
        }
        lahar_release(table->allocator, chunk);
    }
    struct lahar_name_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    while (slots != NULL) {
        struct lahar_name_slots *older = slots->older;
        lahar_release(table->allocator, slots);
        slots = older;
    }
}

/* A number that was read from a slot or lies below the count has its name. */
static const struct name *name_of(const struct lahar_name_table *table, uint32_t number)
{
    const struct lahar_name_chunk *chunk =
        atomic_load_explicit(&table->chunks[number / LAHAR_NAME_CHUNK_SIZE], memory_order_acquire);
    return atomic_load_explicit(&chunk->names[number % LAHAR_NAME_CHUNK_SIZE],
                                memory_order_acquire);
}

bool lahar_name_table_find(const struct lahar_name_table *table, const char *name, size_t name_size,
                           uint32_t *number_out)
{
    const struct lahar_name_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_acquire);
    if (slots == NULL) {
        return false;
    }
    for (uint32_t at = (uint32_t)XXH3_64bits(name, name_size) & slots->mask;;
         at = (at + 1) & slots->mask) {
        const uint32_t item = atomic_load_explicit(&slots->items[at], memory_order_acquire);
        if (item == 0) {
            return false;
        }
        const struct name *candidate = name_of(table, item - 1);
        if (candidate->size == name_size && memcmp(candidate->text, name, name_size) == 0) {
            *number_out = item - 1;
            return true;
        }
    }
}

static void slots_insert(struct lahar_name_slots *slots, const struct name *name, uint32_t number)
{
    uint32_t at = (uint32_t)XXH3_64bits(name->text, name->size) & slots->mask;
    while (atomic_load_explicit(&slots->items[at], memory_order_relaxed) != 0) {
        at = (at + 1) & slots->mask;
    }
    atomic_store_explicit(&slots->items[at], number + 1, memory_order_release);
}

/* Sees to it that one more name leaves the hash table at most half full. */
static bool grow_slots(struct lahar_name_table *table, uint32_t count)
{
    struct lahar_name_slots *older = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (older != NULL && (uint64_t)count * 2 <= older->mask) {
        return true;
    }
    const uint32_t size = older == NULL ? SLOTS_COUNT_MIN : (older->mask + 1) * 2;
    struct lahar_name_slots *slots =
        lahar_allocate(table->allocator, sizeof *slots + size * sizeof slots->items[0]);
    if (slots == NULL) {
        return false;
    }
    slots->older = older;
    slots->mask = size - 1;
    for (uint32_t i = 0; i < size; i++) {
        atomic_init(&slots->items[i], 0);
    }
    for (uint32_t number = 0; number < count; number++) {
        slots_insert(slots, name_of(table, number), number);
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return true;
}

static struct lahar_name_chunk *chunk_for(struct lahar_name_table *table, uint32_t number)
{
    _Atomic(struct lahar_name_chunk *) *place = &table->chunks[number / LAHAR_NAME_CHUNK_SIZE];
    struct lahar_name_chunk *chunk = atomic_load_explicit(place, memory_order_relaxed);
    if (chunk == NULL) {
        chunk = lahar_allocate(table->allocator, sizeof *chunk);
        if (chunk == NULL) {
            return NULL;
        }
        for (uint32_t i = 0; i < LAHAR_NAME_CHUNK_SIZE; i++) {
            atomic_init(&chunk->names[i], NULL);
        }
        atomic_store_explicit(place, chunk, memory_order_release);
    }
    return chunk;
}

lahar_status lahar_name_table_add(struct lahar_name_table *table, const char *name,
                                  size_t name_size, uint32_t *number_out)
{
    const uint32_t number = atomic_load_explicit(&table->count, memory_order_relaxed);
    if (number >= table->count_max) {
        return LAHAR_BUSY;
    }
    struct lahar_name_chunk *chunk = chunk_for(table, number);
    if (chunk == NULL || !grow_slots(table, number)) {
        return LAHAR_NO_MEMORY;
    }
    struct name *copy = lahar_allocate(table->allocator, sizeof *copy + name_size + 1);
    if (copy == NULL) {
        return LAHAR_NO_MEMORY;
    }
    copy->size = (uint32_t)name_size;
    memcpy(copy->text, name, name_size);
    copy->text[name_size] = '\0';
    atomic_store_explicit(&chunk->names[number % LAHAR_NAME_CHUNK_SIZE], copy,
                          memory_order_release);
    slots_insert(atomic_load_explicit(&table->slots, memory_order_relaxed), copy, number);
    atomic_store_explicit(&table->count, number + 1, memory_order_release);
    *number_out = number;
    return LAHAR_OK;
}

const char *lahar_name_table_get(const struct lahar_name_table *table, uint32_t number)
{
    return number < lahar_name_table_count(table) ? name_of(table, number)->text : NULL;
}
