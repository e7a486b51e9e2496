#include "engine/event/flowfile.h"

#include <string.h>

#include "engine/format/value_text.h"

static bool same_bytes(lahar_bytes a, lahar_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool lahar_map_has_key(const lahar_value *map, lahar_bytes key, size_t hint)
{
    if (map == NULL) {
        return false;
    }
    const lahar_pair *pairs = map->as.map.items;
    const size_t count = map->as.map.count;
    if (hint < count && same_bytes(pairs[hint].key, key)) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (same_bytes(pairs[i].key, key)) {
            return true;
        }
    }
    return false;
}

bool lahar_previous_is_effective(const lahar_value *previous, size_t index,
                                 const lahar_value *updated)
{
    const lahar_pair *pair = &previous->as.map.items[index];
    return !pair->is_null && !lahar_map_has_key(updated, pair->key, index);
}

bool lahar_updated_differs(const lahar_value *updated, size_t index, const lahar_value *previous)
{
    const lahar_pair *pair = &updated->as.map.items[index];
    bool was_there = false;
    for (size_t i = 0; previous != NULL && i < previous->as.map.count; i++) {
        const lahar_pair *before = &previous->as.map.items[i];
        if (before->is_null || !same_bytes(before->key, pair->key)) {
            continue;
        }
        was_there = true;
        if (!pair->is_null && same_bytes(before->value, pair->value)) {
            return false;
        }
    }
    return was_there || !pair->is_null;
}

bool lahar_source_system_uuid(lahar_bytes identifier, lahar_uuid *uuid_out)
{
    const char *text = identifier.data;
    bool is_canonical = false;
    size_t start = identifier.size;
    while (start > 0 && text[start - 1] != ':') {
        start--;
    }
    return start < identifier.size &&
           lahar_uuid_parse((lahar_bytes){text + start, identifier.size - start}, uuid_out,
                            &is_canonical);
}
