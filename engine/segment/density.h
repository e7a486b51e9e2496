/* Which sections of columns deflate cannot make smaller: low bytes of numbers, hashes, encrypted
 * content. Deflating them costs most of all bytes and gains nothing, so a column that had such a
 * section keeps it out of the compressed groups (LAHAR_GROUP_DENSE) until it is looked at again,
 * which one block in LAHAR_DENSITY_BLOCK_COUNT is for.
 *
 * A section is judged by the entropy of its bytes and by how many sequences of four come again:
 * what deflate lives on. The judgement changes time and size only; any reader takes either. */
#ifndef LAHAR_SEGMENT_DENSITY_H
#define LAHAR_SEGMENT_DENSITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/segment/column_encode.h"

enum {
    LAHAR_DENSITY_BLOCK_COUNT = 32,
    LAHAR_DENSITY_RAW_SIZE_MIN = 128 * 1024 /* smaller blocks teach nothing */
};

/* Before a block is encoded that is to be looked at: all columns are taken for compressible. */
void lahar_density_forget(struct lahar_placed_column *columns, uint32_t count);

/* After it was encoded: notes in the columns which of their sections are dense. */
void lahar_density_learn(const struct lahar_column_encoder *encoder,
                         struct lahar_placed_column *columns, uint32_t count);

/* Whether deflate would save less than one byte in sixteen of so many. */
bool lahar_density_is_dense(const uint8_t *data, size_t size);

#endif
