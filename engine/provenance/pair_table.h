/* Attributes by key, each key once: of pairs with the same key the last one given stands, in the
 * place of the first. Linear in the number of pairs, however many there are. */
#ifndef LAHAR_PROVENANCE_PAIR_TABLE_H
#define LAHAR_PROVENANCE_PAIR_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/arena.h"
#include "lahar/event.h"

/* All of it is in the arena that it was set up with. */
struct lahar_pair_table {
    lahar_pair *pairs; /* in order of first appearance, removed ones (null) included */
    size_t count;
    uint32_t *slots; /* pair number + 1; 0: free */
    size_t mask;
};

/* Room for so many pairs at most. False when memory is refused. */
bool lahar_pair_table_init(struct lahar_pair_table *table, size_t most, struct lahar_arena *arena);
/* Takes pairs, strings and all by reference. */
void lahar_pair_table_put(struct lahar_pair_table *table, const lahar_pair *pairs, size_t count);
/* NULL when there is none of the key or it is removed. */
const lahar_pair *lahar_pair_table_find(const struct lahar_pair_table *table, lahar_bytes key);

#endif
