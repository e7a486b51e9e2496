/* Event ids of the documents of a shard: rising, mostly consecutive. Resident while the
 * shard is open. */
#ifndef LAHAR_INDEX_ID_TABLE_H
#define LAHAR_INDEX_ID_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/buffer.h"

/* A run of consecutive ids. */
struct lahar_id_run {
    uint64_t first_id;
    uint32_t first_ordinal;
};

/* Writes the ids as runs or, when they interleave with those of other streams, as packed gaps,
 * whichever is smaller. */
void lahar_id_table_write(struct lahar_buffer *out, const struct lahar_id_run *runs,
                          size_t run_count, uint32_t document_count);

/* A parsed table; points into the bytes it was read from. */
struct lahar_id_table {
    bool is_blocks;
    uint32_t document_count;
    uint32_t entry_count;
    const uint8_t *entries; /* (u32, u64) a run or a block */
    const uint8_t *gaps;    /* blocks: packed gaps */
    uint64_t gaps_size;
};

/* False when the bytes are malformed; takes the reader past the table. slack: readable bytes
 * behind the reader's end must be at least LAHAR_BITPACK_SLACK. */
bool lahar_id_table_read(struct lahar_reader *reader, uint32_t document_count,
                         struct lahar_id_table *table);
/* ordinal < document_count */
uint64_t lahar_id_table_id(const struct lahar_id_table *table, uint32_t ordinal);
/* Behind the last document of a run of consecutive ids that begins with ordinal; perhaps not the
 * longest such run. */
uint32_t lahar_id_table_run_end(const struct lahar_id_table *table, uint32_t ordinal);
/* The first ordinal whose id is >= id; document_count when there is none. */
uint32_t lahar_id_table_ordinal(const struct lahar_id_table *table, uint64_t id);

#endif
