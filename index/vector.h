/* Growing arrays of fixed-size items. */
#ifndef LAHAR_INDEX_VECTOR_H
#define LAHAR_INDEX_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"

/* The array moved to where it holds at least needed items, at least twice as many as before; NULL
 * when memory is refused, and then items is still valid. */
static inline void *lahar_vector_grow(const lahar_allocator *allocator, void *items,
                                      size_t *capacity, size_t needed, size_t item_size)
{
    size_t wanted = *capacity < 16 ? 16 : *capacity;
    while (wanted < needed || wanted == *capacity) {
        if (wanted > SIZE_MAX / 2) {
            return NULL;
        }
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / item_size) {
        return NULL;
    }
    void *grown = lahar_reallocate(allocator, items, wanted * item_size);
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}

#endif
