/* Single values of a block's columns, read where they lie in the image: nothing is decoded that
 * other slots need, and nothing is kept. Any thread; as little trusted as the rest of a block. */
#ifndef LAHAR_SEGMENT_COLUMN_POINT_H
#define LAHAR_SEGMENT_COLUMN_POINT_H

#include "engine/segment/block_reader.h"

enum {
    LAHAR_DECIMAL_SIZE_MAX = 20, /* digits of a number of 64 bits */
    LAHAR_PADDED_SIZE_MAX = 18   /* digits of numbers with zeros in front */
};

/* Bytes of a stored code; 0: none is stored. */
static inline uint32_t lahar_code_width(enum lahar_codes_encoding encoding)
{
    switch (encoding) {
    case LAHAR_CODES_U8:
    case LAHAR_CODES_MAPPED_U8:
        return 1;
    case LAHAR_CODES_U16:
    case LAHAR_CODES_MAPPED_U16:
        return 2;
    case LAHAR_CODES_U32:
    case LAHAR_CODES_MAPPED_U32:
        return 4;
    default:
        return 0;
    }
}

/* Code i of count in byte planes. */
static inline uint32_t lahar_code_load(const uint8_t *planes, uint32_t count, uint32_t width,
                                       uint32_t i)
{
    uint32_t code = 0;
    for (uint32_t plane = 0; plane < width; plane++) {
        code |= (uint32_t)planes[(size_t)plane * count + i] << (8 * plane);
    }
    return code;
}

/* Whether codes are told slot by slot, which mapped ones are not. */
bool lahar_block_has_code_points(const struct lahar_block_column *column);
/* The entry that a slot below the count of slots holds. */
lahar_status lahar_block_code_at(struct lahar_block *block, uint32_t column, uint32_t slot,
                                 uint32_t *entry_out, lahar_error *error);
/* The same of any column; rows: of the element that the column belongs to. A mapped code is found
 * by looking at the source's codes up to the slot, which takes scratch memory of the arena. */
lahar_status lahar_block_slot_entry(struct lahar_block *block, uint32_t column,
                                    const uint32_t *rows, uint32_t slot, struct lahar_arena *arena,
                                    uint32_t *entry_out, lahar_error *error);
/* An entry, below the count of entries, of a column of bytes that is not made of templates: in
 * the image or in the arena. */
lahar_status lahar_block_entry_at(struct lahar_block *block, uint32_t column, uint32_t entry,
                                  struct lahar_arena *arena, lahar_bytes *bytes_out,
                                  lahar_error *error);

/* The same of a column of numbers, and of one of uuids. */
lahar_status lahar_block_number_at(struct lahar_block *block, uint32_t column, uint32_t entry,
                                   uint64_t *number_out, lahar_error *error);
lahar_status lahar_block_uuid_at(struct lahar_block *block, uint32_t column, uint32_t entry,
                                 lahar_uuid *uuid_out, lahar_error *error);

#endif
