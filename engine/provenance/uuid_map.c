#include "engine/provenance/uuid_map.h"

#include <string.h>
#include <xxhash.h>

void lahar_uuid_map_init(struct lahar_uuid_map *map, const lahar_allocator *allocator)
{
    *map = (struct lahar_uuid_map){.allocator = allocator};
}

void lahar_uuid_map_deinit(struct lahar_uuid_map *map)
{
    lahar_release(map->allocator, map->entries);
    lahar_release(map->allocator, map->slots);
    *map = (struct lahar_uuid_map){.allocator = map->allocator};
}

/* The slot of the uuid, or the free one where it belongs. */
static uint32_t find_slot(const struct lahar_uuid_map *map, const lahar_uuid *uuid)
{
    const uint32_t mask = map->slot_count - 1;
    uint32_t slot = (uint32_t)XXH3_64bits(uuid->bytes, sizeof uuid->bytes) & mask;
    while (map->slots[slot] != 0 && memcmp(map->entries[map->slots[slot] - 1].uuid.bytes,
                                           uuid->bytes, sizeof uuid->bytes) != 0) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

struct lahar_uuid_entry *lahar_uuid_map_find(const struct lahar_uuid_map *map,
                                             const lahar_uuid *uuid)
{
    if (map->slot_count == 0) {
        return NULL;
    }
    const uint32_t place = map->slots[find_slot(map, uuid)];
    return place == 0 ? NULL : &map->entries[place - 1];
}

static bool grow(struct lahar_uuid_map *map)
{
    const uint32_t capacity = map->capacity == 0 ? 32 : map->capacity * 2;
    struct lahar_uuid_entry *entries =
        lahar_reallocate(map->allocator, map->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    map->entries = entries;
    uint32_t *slots = lahar_allocate_zeroed(map->allocator, (size_t)capacity * 2, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    lahar_release(map->allocator, map->slots);
    map->slots = slots;
    map->slot_count = capacity * 2;
    map->capacity = capacity;
    for (uint32_t i = 0; i < map->count; i++) {
        map->slots[find_slot(map, &map->entries[i].uuid)] = i + 1;
    }
    return true;
}

struct lahar_uuid_entry *lahar_uuid_map_add(struct lahar_uuid_map *map, const lahar_uuid *uuid)
{
    struct lahar_uuid_entry *found = lahar_uuid_map_find(map, uuid);
    if (found != NULL) {
        return found;
    }
    if (map->count == map->capacity && (map->capacity >= UINT32_MAX / 4 || !grow(map))) {
        return NULL;
    }
    map->slots[find_slot(map, uuid)] = map->count + 1;
    found = &map->entries[map->count++];
    *found = (struct lahar_uuid_entry){
        .uuid = *uuid, .last = LAHAR_NO_NODE, .flowfile = LAHAR_NO_NODE, .creator = LAHAR_NO_NODE};
    return found;
}
