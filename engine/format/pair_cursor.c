/* Taking pairs by name; see pair_cursor.h. */
#include "engine/format/pair_cursor.h"

#include <string.h>

bool lahar_pair_cursor_init(struct lahar_pair_cursor *cursor, const lahar_value *map,
                            struct lahar_arena *arena)
{
    *cursor = (struct lahar_pair_cursor){0};
    if (map == NULL || map->is_null || map->as.map.count == 0) {
        return true;
    }
    cursor->taken = lahar_arena_allocate(arena, map->as.map.count);
    if (cursor->taken == NULL) {
        return false;
    }
    memset(cursor->taken, 0, map->as.map.count);
    cursor->pairs = map->as.map.items;
    cursor->count = map->as.map.count;
    return true;
}

static bool is_match(const struct lahar_pair_cursor *cursor, size_t index, lahar_bytes name)
{
    const lahar_bytes key = cursor->pairs[index].key;
    return cursor->taken[index] == 0 && key.size == name.size &&
           (name.size == 0 || memcmp(key.data, name.data, name.size) == 0);
}

const lahar_pair *lahar_pair_take(struct lahar_pair_cursor *cursor, lahar_bytes name)
{
    size_t index = cursor->next;
    if (index >= cursor->count || !is_match(cursor, index, name)) {
        index = 0;
        while (index < cursor->count && !is_match(cursor, index, name)) {
            index++;
        }
        if (index == cursor->count) {
            return NULL;
        }
    }
    cursor->taken[index] = 1;
    cursor->next = index + 1;
    return &cursor->pairs[index];
}
