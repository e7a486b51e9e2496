/* Comparing short runs of bytes of equal size without a call: most values and keys
 * have up to 32 bytes, and comparing them is most of the work of a dictionary. */
#ifndef LAHAR_SEGMENT_BYTES_EQUAL_H
#define LAHAR_SEGMENT_BYTES_EQUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "io/base/bytes.h"

static inline bool lahar_bytes_equal(const void *left, const void *right, size_t size)
{
    const uint8_t *a = left;
    const uint8_t *b = right;
    if (size > 32) {
        return memcmp(a, b, size) == 0;
    }
    if (size >= 8) {
        uint64_t difference = lahar_load_u64(a) ^ lahar_load_u64(b);
        difference |= lahar_load_u64(a + size - 8) ^ lahar_load_u64(b + size - 8);
        if (size > 16) {
            difference |= lahar_load_u64(a + 8) ^ lahar_load_u64(b + 8);
            difference |= lahar_load_u64(a + size - 16) ^ lahar_load_u64(b + size - 16);
        }
        return difference == 0;
    }
    if (size >= 4) {
        return ((lahar_load_u32(a) ^ lahar_load_u32(b)) |
                (lahar_load_u32(a + size - 4) ^ lahar_load_u32(b + size - 4))) == 0;
    }
    return size == 0 || (a[0] == b[0] && a[size / 2] == b[size / 2] && a[size - 1] == b[size - 1]);
}

#endif
