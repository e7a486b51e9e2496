/* One block of a column as it stands in a shard. */
#ifndef LAHAR_INDEX_COLUMN_BLOCK_H
#define LAHAR_INDEX_COLUMN_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/shard_format.h"
#include "io/base/buffer.h"

struct lahar_column_block {
    enum lahar_column_kind kind;
    unsigned width; /* bits of a packed number */
    size_t count;   /* values */
    uint64_t divisor;
    const uint8_t *presence;
    const uint8_t *packed; /* values less the minimum, divided */
};

/* document_count: documents of the block in the shard. False when it is malformed. */
bool lahar_column_block_parse(const uint8_t *data, size_t size, size_t document_count,
                              struct lahar_column_block *block);

/* The values of a block before they are packed, in order of document. */
struct lahar_column_slice {
    uint64_t values[LAHAR_SHARD_COLUMN_BLOCK];
    uint16_t positions[LAHAR_SHARD_COLUMN_BLOCK]; /* document within the block */
    size_t count;
    uint64_t min;
    uint64_t max;
};

void lahar_column_slice_begin(struct lahar_column_slice *slice);
/* There is room for one more. */
void lahar_column_slice_add(struct lahar_column_slice *slice, uint16_t position, uint64_t value);
/* Appends the block's data; the slice is not empty. document_count: documents of the block in the
 * shard. */
void lahar_column_slice_encode(const struct lahar_column_slice *slice, size_t document_count,
                               struct lahar_buffer *out);
/* Appends the zone of a block whose size bytes of data are at offset of the shard. */
void lahar_column_zone_put(struct lahar_buffer *zones, const struct lahar_column_slice *slice,
                           uint64_t offset, uint64_t size);

#endif
