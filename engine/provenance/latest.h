/* Which events each component wrote last: those of the last batch in which it took part.
 *
 * A batch is recognised by its arrival, which its events share. The table follows the store: it
 * starts with the newest events when it is first asked, and reads on from there. */
#ifndef LAHAR_PROVENANCE_LATEST_H
#define LAHAR_PROVENANCE_LATEST_H

#include "io/base/allocator.h"
#include "lahar/provenance.h"

enum {
    LAHAR_LATEST_WINDOW = 10000,   /* ids read back at the start */
    LAHAR_LATEST_COMPONENTS = 4096 /* remembered; others are looked up in the store */
};

struct lahar_latest_entry {
    uint8_t *component; /* owned; NULL: the slot is free */
    size_t component_size;
    int64_t arrival_ns;
    uint64_t *ids; /* owned, rising */
    size_t id_count;
    size_t id_capacity;
};

struct lahar_latest {
    struct lahar_latest_entry *entries; /* open addressing, twice as many slots as components */
    size_t count;
    uint64_t next_id; /* events below it are in the table */
};

void lahar_latest_deinit(struct lahar_latest *latest, const lahar_allocator *allocator);

#endif
