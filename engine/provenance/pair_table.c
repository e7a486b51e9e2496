#include "engine/provenance/pair_table.h"

#include <string.h>
#include <xxhash.h>

#include "engine/provenance/model.h"

bool lahar_pair_table_init(struct lahar_pair_table *table, size_t most, struct lahar_arena *arena)
{
    size_t slot_count = 16;
    *table = (struct lahar_pair_table){.pairs = NULL};
    if (most > UINT32_MAX / 4) {
        return false;
    }
    while (slot_count < 2 * most) {
        slot_count *= 2;
    }
    table->pairs = lahar_arena_allocate(arena, most * sizeof *table->pairs + 1);
    table->slots = lahar_arena_allocate(arena, slot_count * sizeof *table->slots);
    if (table->pairs == NULL || table->slots == NULL) {
        return false;
    }
    memset(table->slots, 0, slot_count * sizeof *table->slots);
    table->mask = slot_count - 1;
    return true;
}

/* The slot of the key, or the free one where it belongs. */
static size_t find_slot(const struct lahar_pair_table *table, lahar_bytes key)
{
    size_t slot = (size_t)XXH3_64bits(key.data, key.size) & table->mask;
    while (table->slots[slot] != 0 &&
           !lahar_bytes_equal(table->pairs[table->slots[slot] - 1].key, key)) {
        slot = (slot + 1) & table->mask;
    }
    return slot;
}

void lahar_pair_table_put(struct lahar_pair_table *table, const lahar_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t slot = find_slot(table, pairs[i].key);
        if (table->slots[slot] == 0) {
            table->slots[slot] = (uint32_t)++table->count;
        }
        table->pairs[table->slots[slot] - 1] = pairs[i];
    }
}

const lahar_pair *lahar_pair_table_find(const struct lahar_pair_table *table, lahar_bytes key)
{
    const uint32_t place = table->slots[find_slot(table, key)];
    return place == 0 || table->pairs[place - 1].is_null ? NULL : &table->pairs[place - 1];
}
