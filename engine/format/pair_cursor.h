/* Taking the pairs of a map field by name, each once, in the order in which they
 * were put: first the pair behind the last one taken, which it is as long as the store keeps
 * the order of pairs, then the first of that name that was not taken. */
#ifndef LAHAR_FORMAT_PAIR_CURSOR_H
#define LAHAR_FORMAT_PAIR_CURSOR_H

#include "io/base/arena.h"
#include "lahar/event.h"

struct lahar_pair_cursor {
    const lahar_pair *pairs; /* of the event */
    size_t count;
    size_t next;
    uint8_t *taken; /* in the arena: one byte a pair */
};

/* map: a value of type MAP, or NULL for no pairs. False when memory is refused. */
bool lahar_pair_cursor_init(struct lahar_pair_cursor *cursor, const lahar_value *map,
                            struct lahar_arena *arena);

/* NULL when no pair of that name is left. */
const lahar_pair *lahar_pair_take(struct lahar_pair_cursor *cursor, lahar_bytes name);

#endif
