/* A hash table of counts; see tally.h. At most half of the slots are taken. */
#include "engine/query/tally.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "io/base/error.h"

enum {
    SLOTS_MIN = 64
};

void lahar_tally_init(struct lahar_tally *tally, const lahar_allocator *allocator)
{
    *tally = (struct lahar_tally){.allocator = allocator};
    lahar_arena_init(&tally->arena, allocator, 16384);
}

void lahar_tally_deinit(struct lahar_tally *tally)
{
    lahar_release(tally->allocator, tally->entries);
    lahar_release(tally->allocator, tally->slots);
    lahar_arena_deinit(&tally->arena);
}

static bool grow(struct lahar_tally *tally)
{
    const size_t slot_count = tally->slot_count == 0 ? (size_t)SLOTS_MIN : tally->slot_count * 2;
    if (slot_count / 2 > UINT32_MAX - 1) {
        return false;
    }
    struct lahar_tally_entry *entries =
        lahar_reallocate(tally->allocator, tally->entries, slot_count / 2 * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    tally->entries = entries;
    tally->entry_capacity = slot_count / 2;
    uint32_t *slots = lahar_allocate_zeroed(tally->allocator, slot_count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < tally->entry_count; i++) {
        size_t slot = entries[i].hash & (slot_count - 1);
        while (slots[slot] != 0) {
            slot = (slot + 1) & (slot_count - 1);
        }
        slots[slot] = (uint32_t)i + 1;
    }
    lahar_release(tally->allocator, tally->slots);
    tally->slots = slots;
    tally->slot_count = slot_count;
    return true;
}

static bool is_key(const struct lahar_tally_entry *entry, uint64_t hash, lahar_bytes key)
{
    return entry->hash == hash && entry->key.size == key.size &&
           (key.size == 0 || memcmp(entry->key.data, key.data, key.size) == 0);
}

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to count distinct values");
}

lahar_status lahar_tally_add(struct lahar_tally *tally, lahar_bytes key, uint64_t count,
                             uint64_t stamp, bool *is_added_out, lahar_error *error)
{
    const uint64_t hash = XXH3_64bits(key.data, key.size);
    if (tally->entry_count == tally->entry_capacity && !grow(tally)) {
        return no_memory(error);
    }
    size_t slot = hash & (tally->slot_count - 1);
    while (tally->slots[slot] != 0 && !is_key(&tally->entries[tally->slots[slot] - 1], hash, key)) {
        slot = (slot + 1) & (tally->slot_count - 1);
    }
    if (tally->slots[slot] == 0) {
        void *copy = lahar_arena_copy(&tally->arena, key.data, key.size);
        if (copy == NULL) {
            return no_memory(error);
        }
        tally->entries[tally->entry_count++] =
            (struct lahar_tally_entry){.key = {copy, key.size}, .hash = hash};
        tally->slots[slot] = (uint32_t)tally->entry_count;
    }
    struct lahar_tally_entry *entry = &tally->entries[tally->slots[slot] - 1];
    const bool is_new = stamp == 0 || entry->stamp != stamp;
    entry->stamp = stamp;
    entry->count += is_new ? count : 0;
    if (is_added_out != NULL) {
        *is_added_out = is_new;
    }
    return LAHAR_OK;
}

static int compare(const void *a, const void *b)
{
    const struct lahar_tally_entry *x = a;
    const struct lahar_tally_entry *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    const size_t size = x->key.size < y->key.size ? x->key.size : y->key.size;
    const int order = size == 0 ? 0 : memcmp(x->key.data, y->key.data, size);
    return order != 0 ? order : (x->key.size > y->key.size) - (x->key.size < y->key.size);
}

/* Restores a heap whose worst entry is on top, below place i. */
static void sift_down(struct lahar_tally_entry *heap, size_t count, size_t i)
{
    const struct lahar_tally_entry entry = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && compare(&heap[child + 1], &heap[child]) > 0) {
            child++;
        }
        if (compare(&entry, &heap[child]) >= 0) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = entry;
}

void lahar_tally_sort(struct lahar_tally *tally, size_t most)
{
    struct lahar_tally_entry *entries = tally->entries;
    const size_t count = most < tally->entry_count ? most : tally->entry_count;
    if (count == 0) {
        return;
    }
    if (count < tally->entry_count) {
        for (size_t i = count / 2; i-- > 0;) {
            sift_down(entries, count, i);
        }
        for (size_t i = count; i < tally->entry_count; i++) {
            if (compare(&entries[i], &entries[0]) < 0) {
                const struct lahar_tally_entry worst = entries[0];
                entries[0] = entries[i];
                entries[i] = worst;
                sift_down(entries, count, 0);
            }
        }
    }
    qsort(entries, count, sizeof *entries, compare);
}
