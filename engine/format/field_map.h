/* From the names that records use to the fields of one stream. */
#ifndef LAHAR_FORMAT_FIELD_MAP_H
#define LAHAR_FORMAT_FIELD_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/event/schema.h"
#include "io/base/allocator.h"
#include "io/base/bytes.h"
#include "lahar/event.h"

struct lahar_columns;

struct lahar_field_entry {
    const char *name; /* owned by the catalogue or the caller */
    uint32_t name_size;
    uint32_t hash;
    uint32_t field;
    lahar_type type;
    bool is_declared; /* else only the time field */
    bool is_time;     /* the event's time is taken from it */
};

struct lahar_field_map {
    struct lahar_field_entry *entries; /* owned; sorted by nothing */
    uint16_t *slots;                   /* owned; index + 1, 0 is free; open addressing */
    uint32_t entry_count;
    uint32_t slot_mask;
    uint32_t version; /* 1 and more: how many times it was built, for who keeps entries */
    bool has_dotted;  /* some name has a dot: names of nested values are worth looking up */
    const struct lahar_stream *stream; /* of which it was made */
    const lahar_allocator *allocator;
};

/* Cheap and good enough for names: size, first and last eight bytes. Not for
 * tables that hostile input can fill. */
static inline uint32_t lahar_name_hash(const void *name, size_t size)
{
    const uint8_t *p = name;
    uint64_t a = 0;
    uint64_t b = 0;
    if (size >= 8) {
        a = lahar_load_u64(p);
        b = lahar_load_u64(p + size - 8);
    } else if (size >= 4) {
        a = lahar_load_u32(p);
        b = lahar_load_u32(p + size - 4);
    } else if (size > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[size / 2] << 8 | p[size - 1];
    }
    const uint64_t mixed = (a ^ (b << 31 | b >> 33) ^ size) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32);
}

/* Collects the declared fields that a record may fill by name: neither what ingest
 * itself fills ("_...") nor the attributes of a log stream, of which the parts have names of their
 * own. Nor what is MATERIALIZED
 * among columns (may be NULL). is_bare: none of them. time_field may be NULL. The map starts zeroed
 * or built before. */
lahar_status lahar_field_map_build(struct lahar_field_map *map, const lahar_allocator *allocator,
                                   const struct lahar_schema_catalog *catalog,
                                   const struct lahar_stream *stream,
                                   const struct lahar_columns *columns, bool is_bare,
                                   const char *time_field, lahar_error *error);
void lahar_field_map_deinit(struct lahar_field_map *map);

/* NULL when the stream has no such field. hash: of the name. */
static inline const struct lahar_field_entry *
lahar_field_map_find_hashed(const struct lahar_field_map *map, const void *name, size_t size,
                            uint32_t hash)
{
    for (uint32_t slot = hash & map->slot_mask;; slot = (slot + 1) & map->slot_mask) {
        if (map->slots[slot] == 0) {
            return NULL;
        }
        const struct lahar_field_entry *entry = &map->entries[map->slots[slot] - 1];
        if (entry->hash == hash && entry->name_size == size &&
            memcmp(entry->name, name, size) == 0) {
            return entry;
        }
    }
}

static inline const struct lahar_field_entry *
lahar_field_map_find(const struct lahar_field_map *map, const void *name, size_t size)
{
    return lahar_field_map_find_hashed(map, name, size, lahar_name_hash(name, size));
}

#endif
