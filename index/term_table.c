/* Open addressing with half of the hash in the slot, so that a probe touches a record only when it
 * almost surely is the one. A record holds a term's bytes behind what is compared first; all lie in
 * one buffer, and nothing is allocated a term. */
#include "index/term_table.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "index/vector.h"

enum {
    SLOTS_AT_FIRST = 4096,
    /* 128 KiB: events repeat the values of those shortly before them, and a look into the
     * whole table mostly waits for main memory. */
    RECENT_COUNT = 16384
};

_Static_assert(offsetof(struct lahar_term, bytes) == 13, "bytes follow the flags");

void lahar_term_table_init(struct lahar_term_table *table, const lahar_allocator *allocator)
{
    *table = (struct lahar_term_table){.allocator = allocator};
    lahar_buffer_init(&table->records, allocator);
}

void lahar_term_table_deinit(struct lahar_term_table *table)
{
    lahar_release(table->allocator, table->slots);
    lahar_release(table->allocator, table->recent);
    lahar_release(table->allocator, table->states);
    lahar_buffer_deinit(&table->records);
    lahar_term_table_init(table, table->allocator);
}

void lahar_term_table_clear(struct lahar_term_table *table)
{
    if (table->slots != NULL) {
        memset(table->slots, 0, table->slot_count * sizeof *table->slots);
        memset(table->recent, 0, RECENT_COUNT * sizeof *table->recent);
    }
    table->term_count = 0;
    lahar_buffer_clear(&table->records);
}

uint64_t lahar_term_hash(uint32_t field, const struct lahar_term_key *key)
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
    if (table->recent == NULL) {
        table->recent =
            lahar_allocate_zeroed(table->allocator, RECENT_COUNT, sizeof *table->recent);
        if (table->recent == NULL) {
            return false;
        }
    }
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
    if (table->term_count == table->state_capacity) {
        struct lahar_term_state *grown =
            lahar_vector_grow(table->allocator, table->states, &table->state_capacity,
                              table->term_count + 1, sizeof *table->states);
        if (grown == NULL) {
            return false;
        }
        table->states = grown;
    }
    const size_t bytes_size = (size_t)key->size + key->long_size;
    const size_t size = (offsetof(struct lahar_term, bytes) + bytes_size + 7) / 8 * 8;
    const uint64_t place = table->records.size / 8;
    if (place >= UINT32_MAX - 1 || !lahar_buffer_reserve(&table->records, size)) {
        return false;
    }
    struct lahar_term term = {.number = (uint32_t)table->term_count,
                              .field = field,
                              .size = key->size,
                              .long_size = key->long_size,
                              .flags = key->flags};
    uint8_t *record = table->records.data + table->records.size;
    memcpy(record, &term, offsetof(struct lahar_term, bytes));
    if (bytes_size != 0) {
        memcpy(record + offsetof(struct lahar_term, bytes), key->data, bytes_size);
    }
    table->records.size += size;
    table->states[table->term_count++] = (struct lahar_term_state){.last_document = UINT32_MAX};
    table->slots[slot] = (hash & UINT64_C(0xffffffff00000000)) | (place + 1);
    return true;
}

/* Whether a slot is that of the term. */
static bool is_term(const struct lahar_term_table *table, uint64_t slot, uint64_t hash,
                    uint32_t field, const struct lahar_term_key *key)
{
    if (slot == 0 || slot >> 32 != hash >> 32) {
        return false;
    }
    const struct lahar_term *term = lahar_term_at(table, (uint32_t)slot - 1);
    return term->field == field && term->size == key->size && term->long_size == key->long_size &&
           term->flags == key->flags &&
           memcmp(term->bytes, key->data, (size_t)key->size + key->long_size) == 0;
}

void lahar_term_table_prefetch(const struct lahar_term_table *table, uint64_t hash)
{
    if (table->slots != NULL) {
        __builtin_prefetch(&table->slots[slot_of(table, hash)]);
        __builtin_prefetch(&table->recent[hash & (RECENT_COUNT - 1)]);
    }
}

bool lahar_term_table_add(struct lahar_term_table *table, uint32_t field,
                          const struct lahar_term_key *key, uint32_t *place_out)
{
    return lahar_term_table_add_hashed(table, lahar_term_hash(field, key), field, key, place_out);
}

bool lahar_term_table_add_hashed(struct lahar_term_table *table, uint64_t hash, uint32_t field,
                                 const struct lahar_term_key *key, uint32_t *place_out)
{
    if (table->term_count * 4 >= table->slot_count * 3 && !grow_slots(table)) {
        return false;
    }
    uint64_t *recent = &table->recent[hash & (RECENT_COUNT - 1)];
    if (is_term(table, *recent, hash, field, key)) {
        *place_out = (uint32_t)*recent - 1;
        return true;
    }
    size_t slot = slot_of(table, hash);
    for (; table->slots[slot] != 0; slot = (slot + 1) & (table->slot_count - 1)) {
        if (is_term(table, table->slots[slot], hash, field, key)) {
            *recent = table->slots[slot];
            *place_out = (uint32_t)*recent - 1;
            return true;
        }
    }
    *place_out = (uint32_t)(table->records.size / 8);
    if (!add_new(table, slot, hash, field, key)) {
        return false;
    }
    *recent = table->slots[slot];
    return true;
}
