/* Open addressing over (hash, offset, size) of pieces; equality is decided on the bytes. */
#include "index/blob_table.h"

#include <string.h>
#include <xxhash.h>

void lahar_blob_table_init(struct lahar_blob_table *table, const lahar_allocator *allocator)
{
    *table = (struct lahar_blob_table){.allocator = allocator};
}

void lahar_blob_table_deinit(struct lahar_blob_table *table)
{
    if (table->slots != NULL) {
        lahar_release(table->allocator, table->slots);
    }
    lahar_blob_table_init(table, table->allocator);
}

void lahar_blob_table_clear(struct lahar_blob_table *table)
{
    if (table->slots != NULL) {
        memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    }
    table->used_count = 0;
}

static void grow(struct lahar_blob_table *table)
{
    const size_t count = table->slot_count == 0 ? 1024 : table->slot_count * 2;
    struct lahar_blob_slot *slots = lahar_allocate_zeroed(table->allocator, count, sizeof *slots);
    if (slots == NULL) {
        return;
    }
    for (size_t i = 0; i < table->slot_count; i++) {
        if (table->slots[i].offset != 0) {
            size_t to = table->slots[i].hash & (count - 1);
            while (slots[to].offset != 0) {
                to = (to + 1) & (count - 1);
            }
            slots[to] = table->slots[i];
        }
    }
    if (table->slots != NULL) {
        lahar_release(table->allocator, table->slots);
    }
    table->slots = slots;
    table->slot_count = count;
}

uint64_t lahar_blob_intern(struct lahar_blob_table *table, struct lahar_buffer *out, size_t base,
                           size_t start, uint64_t alignment)
{
    const uint64_t offset = start - base;
    const size_t size = out->size - start;
    if (out->has_failed || size > UINT32_MAX) {
        return offset;
    }
    if (table->used_count * 4 >= table->slot_count * 3) {
        grow(table);
        if (table->used_count * 4 >= table->slot_count * 3) {
            return offset;
        }
    }
    const uint32_t hash = (uint32_t)XXH3_64bits(out->data + start, size);
    size_t i = hash & (table->slot_count - 1);
    for (; table->slots[i].offset != 0; i = (i + 1) & (table->slot_count - 1)) {
        const struct lahar_blob_slot *slot = &table->slots[i];
        if (slot->hash == hash && slot->size == size && slot->offset % alignment == 0 &&
            memcmp(out->data + base + slot->offset, out->data + start, size) == 0) {
            out->size = start;
            return slot->offset;
        }
    }
    table->slots[i] = (struct lahar_blob_slot){offset, hash, (uint32_t)size};
    table->used_count++;
    return offset;
}
