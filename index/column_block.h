/* One block of a column as it stands in a shard. */
#ifndef LAHAR_INDEX_COLUMN_BLOCK_H
#define LAHAR_INDEX_COLUMN_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/shard_format.h"

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

#endif
