/* Open addressing with half of the hash in the slot, so that a probe touches a term only when it
 * almost surely is the one. Terms and their bytes lie in two arrays; nothing is
 * allocated a term. */
#include "index/term_table.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "index/vector.h"

enum {
    SLOTS_AT_FIRST = 4096
};

void lahar_term_table_init(struct lahar_term_table *table, const lahar_allocator *allocator)
{
    *table = (struct lahar_term_table){.allocator = allocator};
    lahar_buffer_init(&table->keys, allocator);
}

void lahar_term_table_deinit(struct lahar_term_table *table)
{
    lahar_release(table->allocator, table->slots);
    lahar_release(table->allocator, table->terms);
    lahar_buffer_deinit(&table->keys);
    lahar_term_table_init(table, table->allocator);
}

void lahar_term_table_clear(struct lahar_term_table *table)
{
    if (table->slots != NULL) {
        memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    }
    table->term_count = 0;
    lahar_buffer_clear(&table->keys);
}

static uint64_t hash_key(uint32_t field, const struct lahar_term_key *key)
{
    const uint64_t seed = ((uint64_t)field << 8 | key->flags) * UINT64_C(0x9e3779b97f4a7c15);
    return XXH3_64bits_withSeed(key->data, (size_t)key->size + key->long_size, seed);
}

/* The slot number comes from the upper half, which the slot keeps, so that growing needs no
 * key. */
static size_t slot_of(const struct lahar_term_table *table, uint64_t hash)
{
    const uint64_t spread = (hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(spread >> 20) & (table->slot_count - 1);
}

static bool grow_slots(struct lahar_term_table *table)
{
    const size_t old_count = table->slot_count;
    uint64_t *old = table->slots;
    const size_t count = old_count == 0 ? SLOTS_AT_FIRST : old_count * 2;
    uint64_t *slots = lahar_allocate_zeroed(table->allocator, count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    table->slots = slots;
    table->slot_count = count;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i] != 0) {
            size_t to = slot_of(table, old[i]);
            while (slots[to] != 0) {
                to = (to + 1) & (count - 1);
            }
            slots[to] = old[i];
        }
    }
    lahar_release(table->allocator, old);
    return true;
}

static bool add_new(struct lahar_term_table *table, size_t slot, uint64_t hash, uint32_t field,
                    const struct lahar_term_key *key)
{
    if (table->term_count == table->term_capacity) {
        struct lahar_term *grown =
            lahar_vector_grow(table->allocator, table->terms, &table->term_capacity,
                              table->term_count + 1, sizeof *table->terms);
        if (grown == NULL) {
            return false;
        }
        table->terms = grown;
    }
    const uint64_t at = table->keys.size;
    lahar_buffer_put(&table->keys, key->data, (size_t)key->size + key->long_size);
    if (table->keys.has_failed) {
        return false;
    }
    table->terms[table->term_count] = (struct lahar_term){.key = at,
                                                          .field = field,
                                                          .last_document = UINT32_MAX,
                                                          .size = key->size,
                                                          .long_size = key->long_size,
                                                          .flags = key->flags};
    table->slots[slot] = (hash & UINT64_C(0xffffffff00000000)) | (uint64_t)(table->term_count + 1);
    table->term_count++;
    return true;
}

bool lahar_term_table_add(struct lahar_term_table *table, uint32_t field,
                          const struct lahar_term_key *key, uint32_t *term_out)
{
    if (table->term_count * 4 >= table->slot_count * 3 && !grow_slots(table)) {
        return false;
    }
    const uint64_t hash = hash_key(field, key);
    const size_t size = (size_t)key->size + key->long_size;
    size_t slot = slot_of(table, hash);
    for (; table->slots[slot] != 0; slot = (slot + 1) & (table->slot_count - 1)) {
        if (table->slots[slot] >> 32 != hash >> 32) {
            continue;
        }
        const uint32_t number = (uint32_t)table->slots[slot] - 1;
        const struct lahar_term *term = &table->terms[number];
        if (term->field == field && term->size == key->size && term->long_size == key->long_size &&
            term->flags == key->flags &&
            memcmp(lahar_term_bytes(table, term), key->data, size) == 0) {
            *term_out = number;
            return true;
        }
    }
    if (table->term_count >= UINT32_MAX - 1) {
        return false;
    }
    *term_out = (uint32_t)table->term_count;
    return add_new(table, slot, hash, field, key);
}
