/* Finding keys that are given twice: a table of the hashes seen. That of small
 * objects lies on the stack; that of large ones uses a hash that hostile keys do not
 * easily meet. */
#include "engine/format/document_keys.h"

#include <string.h>

#include <xxhash.h>

#include "engine/format/field_map.h"

enum {
    SMALL_KEY_COUNT = 48,
    SMALL_SLOT_COUNT = 128
};

lahar_bytes lahar_json_token_unescape(const uint8_t *text, const struct lahar_json_token *token,
                                      struct lahar_arena *arena, bool *is_lossy_out)
{
    uint8_t *resolved = lahar_arena_allocate(arena, token->size);
    if (resolved == NULL) {
        return (lahar_bytes){0};
    }
    return (lahar_bytes){
        resolved, lahar_json_unescape(text + token->offset, token->size, resolved, is_lossy_out)};
}

static bool equals(lahar_bytes a, lahar_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Drops the earlier of two keys when they are the same. */
static bool drop_if_same(const uint8_t *text, struct lahar_json_token *earlier, lahar_bytes name,
                         struct lahar_arena *arena, bool *is_same_out)
{
    bool is_lossy;
    const lahar_bytes other = lahar_json_token_text(text, earlier, arena, &is_lossy);
    if (other.data == NULL) {
        return false;
    }
    *is_same_out = equals(other, name);
    if (*is_same_out) {
        earlier->flags |= LAHAR_JSON_DROPPED;
    }
    return true;
}

static bool mark_in_table(const uint8_t *text, struct lahar_json_token *tokens, uint32_t object,
                          size_t key_count, struct lahar_arena *arena)
{
    size_t slot_count = 128;
    while (slot_count < key_count * 2) {
        slot_count *= 2;
    }
    uint32_t *slots = lahar_arena_allocate(arena, slot_count * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    memset(slots, 0, slot_count * sizeof *slots);
    const uint32_t end = tokens[object].end;
    for (uint32_t key = object + 1; key < end; key = tokens[key + 1].end) {
        bool is_lossy;
        const lahar_bytes name = lahar_json_token_text(text, &tokens[key], arena, &is_lossy);
        if (name.data == NULL) {
            return false;
        }
        const uint64_t hash = XXH3_64bits(name.data, name.size);
        tokens[key].end = lahar_name_hash(name.data, name.size);
        size_t slot = (size_t)hash & (slot_count - 1);
        bool is_same = false;
        for (; slots[slot] != 0; slot = (slot + 1) & (slot_count - 1)) {
            struct lahar_json_token *earlier = &tokens[slots[slot]];
            if (earlier->end == tokens[key].end &&
                !drop_if_same(text, earlier, name, arena, &is_same)) {
                return false;
            }
            if (is_same) {
                break;
            }
        }
        slots[slot] = key;
    }
    return true;
}

bool lahar_json_mark_duplicates(const uint8_t *text, struct lahar_json_token *tokens,
                                uint32_t object, struct lahar_arena *arena)
{
    uint8_t slots[SMALL_SLOT_COUNT] = {0}; /* index in keys + 1 */
    uint32_t keys[SMALL_KEY_COUNT];
    uint8_t count = 0;
    const uint32_t end = tokens[object].end;
    for (uint32_t key = object + 1; key < end; key = tokens[key + 1].end) {
        if (count == SMALL_KEY_COUNT) {
            size_t total = 0;
            for (uint32_t k = object + 1; k < end; k = tokens[k + 1].end) {
                total++;
            }
            return mark_in_table(text, tokens, object, total, arena);
        }
        bool is_lossy;
        const lahar_bytes name = lahar_json_token_text(text, &tokens[key], arena, &is_lossy);
        if (name.data == NULL) {
            return false;
        }
        const uint32_t hash = lahar_name_hash(name.data, name.size);
        size_t slot = hash % SMALL_SLOT_COUNT;
        bool is_same = false;
        for (; slots[slot] != 0; slot = (slot + 1) % SMALL_SLOT_COUNT) {
            struct lahar_json_token *earlier = &tokens[keys[slots[slot] - 1]];
            if (earlier->end == hash && !drop_if_same(text, earlier, name, arena, &is_same)) {
                return false;
            }
            if (is_same) {
                break;
            }
        }
        tokens[key].end = hash;
        keys[count++] = key;
        slots[slot] = count;
    }
    return true;
}
