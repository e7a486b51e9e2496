/* FlowFiles met by a lineage computation, by their 16 bytes. Entries are numbered in order of
 * arrival and keep their numbers. */
#ifndef LAHAR_PROVENANCE_UUID_MAP_H
#define LAHAR_PROVENANCE_UUID_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/event.h"

#define LAHAR_NO_NODE UINT32_MAX

struct lahar_uuid_entry {
    lahar_uuid uuid;
    lahar_bytes name;   /* as events write it; in the computation's arena */
    int32_t generation; /* of those wanted: negative towards ancestors */
    uint32_t last;      /* graph: node that the next event of it is linked from */
    uint32_t flowfile;  /* graph: its own node */
    uint32_t creator;   /* graph: the event that made it last */
    bool is_wanted;     /* events that name it belong to the graph */
    bool has_origin;    /* some event of the graph tells how it came to be */
};

struct lahar_uuid_map {
    struct lahar_uuid_entry *entries; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* owned: entry number + 1; 0: free */
    uint32_t slot_count;
    const lahar_allocator *allocator;
};

void lahar_uuid_map_init(struct lahar_uuid_map *map, const lahar_allocator *allocator);
void lahar_uuid_map_deinit(struct lahar_uuid_map *map);

/* NULL when it is not there. Valid until the next call of add. */
struct lahar_uuid_entry *lahar_uuid_map_find(const struct lahar_uuid_map *map,
                                             const lahar_uuid *uuid);
/* The entry, made if need be; NULL when memory is refused. */
struct lahar_uuid_entry *lahar_uuid_map_add(struct lahar_uuid_map *map, const lahar_uuid *uuid);

#endif
