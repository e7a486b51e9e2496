/* One column of a block being filled: a dictionary of distinct values and, for each
 * slot, the number of its value. Most columns get their values as cells, which column_fill.h takes
 * in many at a time; the others get them one by one.
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
#include "engine/segment/bytes_equal.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

/* A value that waits to be taken into a column. What is behind its bytes can be read up to
 * LAHAR_CELL_SLACK bytes further. */
struct lahar_cell {
    const uint8_t *data;
    uint32_t size;
    uint32_t row;
};

enum {
    LAHAR_CELL_SLACK = 32
};

/* Sections of a column that are not worth compressing (density.h). */
struct lahar_column_density {
    bool are_codes;
    bool are_entries;
    bool is_text; /* of entries stored as they are */
};

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
    bool takes_cells;     /* its values come as cells */
    bool is_hashed;       /* looks for repeats in this block */
    bool is_in_order;     /* entries are numbered by first occurrence */
    uint8_t plain_blocks; /* blocks still to be taken without looking */
    struct lahar_column_density dense;
    /* The column on which this one depends in the block that has been encoded: rows with equal
     * codes there have equal ones here. NULL: none is known. */
    const struct lahar_column *source;
    /* The column whose value in a row told this one's in the last block, or NULL, and
     * by code of that column what was seen here. A guess only: it is compared. */
    const struct lahar_column *followed;
    struct lahar_buffer guesses; /* u32: code, or LAHAR_GUESS_NONE */
    /* So far each slot has had the code that its row has in the followed column, which guesses
     * would only repeat. */
    bool is_mirror;
    uint32_t followed_slots;  /* slots of this block of which the guess was right or the first */
    uint32_t followed_codes;  /* codes of the followed column that these slots met */
    struct lahar_cell *cells; /* waiting */
    uint32_t cell_count;
    uint32_t cell_capacity;
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

/* Adds a slot that holds a number which the caller tells apart by itself: *memo is 0 at first, and
 * the column's until the next block. */
bool lahar_column_add_known(struct lahar_column *column, uint32_t row, uint64_t value,
                            uint32_t *memo);

/* The code of a value, made when it is new or repeats are not looked for. */
bool lahar_column_find_bytes(struct lahar_column *column, const void *data, size_t size,
                             uint32_t *code_out);
/* The same for a value of 8 or 16 bytes. */
bool lahar_column_find_fixed(struct lahar_column *column, const uint8_t *data, size_t size,
                             uint32_t *code_out);
/* The same for many cells of a column that looks for repeats: those with the given numbers, or the
 * first ones where numbers is NULL, in that order. */
bool lahar_column_find_cells(struct lahar_column *column, const uint32_t *numbers, uint32_t count,
                             uint32_t *codes_out);
/* Makes room for so many more cells, or slots; false when memory is refused. */
bool lahar_column_grow_cells(struct lahar_column *column);
bool lahar_column_reserve_slots(struct lahar_column *column, uint32_t count);

/* Leaves a value to be taken in; false when memory is refused. */
static inline bool lahar_column_put_cell(struct lahar_column *column, uint32_t row,
                                         const uint8_t *data, size_t size)
{
    if (column->cell_count == column->cell_capacity && !lahar_column_grow_cells(column)) {
        return false;
    }
    column->cells[column->cell_count++] = (struct lahar_cell){data, (uint32_t)size, row};
    return true;
}

/* Adds a slot that holds an entry known to be the value. */
static inline bool lahar_column_add_code(struct lahar_column *column, uint32_t row, uint32_t code)
{
    const size_t at = (size_t)column->slot_count * sizeof(uint32_t);
    if ((column->codes.capacity - at < sizeof(uint32_t) ||
         column->rows.capacity - at < sizeof(uint32_t)) &&
        !lahar_column_reserve_slots(column, 1)) {
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

/* Adds a slot of a column of numbers without looking for repeats: for ids and times. */
static inline bool lahar_column_add_plain_int(struct lahar_column *column, uint32_t row,
                                              uint64_t value)
{
    if (!lahar_buffer_reserve(&column->data, sizeof value)) {
        return false;
    }
    lahar_store_u64(column->data.data + column->data.size, value);
    column->data.size += sizeof value;
    return lahar_column_add_code(column, row, column->entry_count++);
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

/* Whether an entry of a column of bytes is the value. */
static inline bool lahar_column_entry_equals(const struct lahar_column *column, uint32_t entry,
                                             const void *data, size_t size)
{
    const uint32_t *ends = lahar_column_ends(column);
    const uint32_t start = entry == 0 ? 0 : ends[entry - 1];
    return ends[entry] - start == size &&
           (size == 0 || lahar_bytes_equal(column->data.data + start, data, size));
}

/* The same for values of 8 or 16 bytes. */
static inline bool lahar_column_fixed_equals(const uint8_t *a, const uint8_t *b, size_t size)
{
    return ((lahar_load_u64(a) ^ lahar_load_u64(b)) |
            (lahar_load_u64(a + size - 8) ^ lahar_load_u64(b + size - 8))) == 0;
}

#endif
