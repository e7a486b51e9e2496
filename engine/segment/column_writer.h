/* One column of a block being filled: a dictionary of distinct values and, for each
 * slot, the number of its value.
 *
 * Entries are numbered by first occurrence. That two entries differ is not needed
 * for correctness, only for size, so a column that was found to have no repeats may
 * stop looking for them. A column lives as long as its writer and is cleared from
 * block to block. One thread. */
#ifndef LAHAR_SEGMENT_COLUMN_WRITER_H
#define LAHAR_SEGMENT_COLUMN_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/segment/block_format.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

struct lahar_column {
    enum lahar_column_kind kind;
    bool is_mapped_allowed; /* has at most one slot a row, or slots that know their rows */
    bool has_repeat_in_row; /* more than one slot in a row: no source for others */
    uint32_t slot_count;
    uint32_t entry_count;
    uint32_t size_min; /* of entries, bytes */
    uint32_t size_max;
    uint32_t last_code;         /* of the last slot */
    uint32_t last_row;          /* of the last slot, UINT32_MAX before the first */
    struct lahar_buffer codes;  /* u32 a slot; of this one and the next only data is of use */
    struct lahar_buffer rows;   /* u32 a slot: the event's row in the block */
    struct lahar_buffer ends;   /* BYTES: u32 an entry, end of its bytes in data */
    struct lahar_buffer data;   /* the entries: bytes, 16 bytes or u64 each */
    struct lahar_buffer hashes; /* u32 an entry, while is_hashed */
    uint32_t *table;            /* entry + 1 by hash, 0 when free; at most half full */
    uint32_t table_mask;
    uint32_t table_size;  /* slots allocated, 0: no table */
    bool is_field;        /* lives as long as the writer, so that others may follow it */
    bool is_hashed;       /* looks for repeats in this block */
    uint8_t plain_blocks; /* blocks still to be taken without looking */
    /* The column on which this one depends in the block that has been encoded: rows with equal
     * codes there have equal ones here. NULL: none is known. */
    const struct lahar_column *source;
    /* The column whose value in a row told this one's in the last block, or NULL, and
     * by code of that column what was seen here. A guess only: it is compared. */
    const struct lahar_column *followed;
    struct lahar_buffer guesses; /* u32: code, or LAHAR_GUESS_NONE */
    const lahar_allocator *allocator;
};

#define LAHAR_GUESS_NONE UINT32_MAX

void lahar_column_init(struct lahar_column *column, enum lahar_column_kind kind,
                       const lahar_allocator *allocator);
void lahar_column_deinit(struct lahar_column *column);
/* Readies the column for the next block. */
void lahar_column_clear(struct lahar_column *column);
/* Takes a lesson from a block for the next: source is the column that this one was
 * found to depend on, with source_codes different codes in its rows, or NULL. */
void lahar_column_learn(struct lahar_column *column, const struct lahar_column *source,
                        uint32_t source_codes);

/* Adds a slot in the given row; false when memory is refused. */
bool lahar_column_add_bytes(struct lahar_column *column, uint32_t row, const void *data,
                            size_t size);
bool lahar_column_add_uuid(struct lahar_column *column, uint32_t row, const lahar_uuid *uuid);
bool lahar_column_add_int(struct lahar_column *column, uint32_t row, uint64_t value);
/* Adds a slot without looking for repeats: for ids and times. */
bool lahar_column_add_plain_int(struct lahar_column *column, uint32_t row, uint64_t value);

/* Makes room for more slots; false when memory is refused. */
bool lahar_column_grow_slots(struct lahar_column *column);

/* Adds a slot that holds an entry known to be the value. */
static inline bool lahar_column_add_code(struct lahar_column *column, uint32_t row, uint32_t code)
{
    const size_t at = (size_t)column->slot_count * sizeof(uint32_t);
    if ((column->codes.capacity - at < sizeof(uint32_t) ||
         column->rows.capacity - at < sizeof(uint32_t)) &&
        !lahar_column_grow_slots(column)) {
        return false;
    }
    lahar_store_u32(column->codes.data + at, code);
    lahar_store_u32(column->rows.data + at, row);
    column->has_repeat_in_row |= row == column->last_row;
    column->last_row = row;
    column->last_code = code;
    column->slot_count++;
    return true;
}

static inline const uint32_t *lahar_column_codes(const struct lahar_column *column)
{
    return (const uint32_t *)(const void *)column->codes.data;
}

static inline const uint32_t *lahar_column_rows(const struct lahar_column *column)
{
    return (const uint32_t *)(const void *)column->rows.data;
}

static inline const uint32_t *lahar_column_ends(const struct lahar_column *column)
{
    return (const uint32_t *)(const void *)column->ends.data;
}

#endif
