/* Single values of columns; see column_point.h. */
#include "engine/segment/column_point.h"

#include <string.h>

#include "engine/segment/hex_digits.h"
#include "engine/segment/number_encode.h"
#include "engine/segment/uuid_text.h"
#include "io/base/bytes.h"
#include "io/base/error.h"

static lahar_status fail_column(lahar_error *error, uint32_t column)
{
    return lahar_fail(error, LAHAR_CORRUPT, "column %u is damaged", column);
}

bool lahar_block_has_code_points(const struct lahar_block_column *column)
{
    return column->codes_encoding < LAHAR_CODES_MAPPED_IDENTITY;
}

lahar_status lahar_block_code_at(struct lahar_block *block, uint32_t number, uint32_t slot,
                                 uint32_t *entry_out, lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    LAHAR_ASSERT(slot < column->slot_count);
    if (column->codes_encoding <= LAHAR_CODES_IDENTITY) {
        *entry_out = column->codes_encoding == LAHAR_CODES_CONSTANT ? 0 : slot;
        return LAHAR_OK;
    }
    const uint32_t width = lahar_code_width(column->codes_encoding);
    if (!lahar_block_has_code_points(column) ||
        column->codes_range.size != (uint64_t)width * column->slot_count) {
        return fail_column(error, number);
    }
    LAHAR_TRY(lahar_block_need_bytes(block, column->codes_range, error));
    *entry_out =
        lahar_code_load(block->image + column->codes_range.offset, column->slot_count, width, slot);
    return *entry_out < column->entry_count ? LAHAR_OK : fail_column(error, number);
}

/* --- ranks of mapped codes --------------------------------------------------------------- */

enum {
    /* Bits of a rank found last: the source, the slot + 1, and how many codes came before. */
    RANK_BITS = 22
};

/* Most mapped columns of a block have a slot a row and the same source, so that what was found for
 * one holds for the next. */
static bool find_last_rank(const struct lahar_block *block, uint32_t source, uint32_t slot,
                           uint32_t *count_out)
{
    const uint64_t mask = (UINT64_C(1) << RANK_BITS) - 1;
    /* One word, whole or not there: no other memory depends on it. */
    const uint64_t rank = atomic_load_explicit(&block->last_rank, memory_order_relaxed);
    *count_out = (uint32_t)(rank & mask);
    return rank >> (2 * RANK_BITS) == source && (rank >> RANK_BITS & mask) == (uint64_t)slot + 1;
}

static void keep_last_rank(struct lahar_block *block, uint32_t source, uint32_t slot,
                           uint32_t count)
{
    if (slot + 1 < 1U << RANK_BITS && source < 1U << (64 - 2 * RANK_BITS)) {
        atomic_store_explicit(&block->last_rank,
                              (uint64_t)source << (2 * RANK_BITS) |
                                  ((uint64_t)slot + 1) << RANK_BITS | count,
                              memory_order_relaxed);
    }
}

/* How many codes of the source come for the first time in the slots before the first one with the
 * slot's code. */
static lahar_status count_codes_before(struct lahar_block *block, uint32_t number,
                                       const uint32_t *rows, uint32_t slot,
                                       struct lahar_arena *arena, uint32_t *count_out,
                                       lahar_error *error)
{
    const struct lahar_block_column *source = &block->columns[number];
    const uint32_t width = lahar_code_width(source->codes_encoding);
    const uint32_t row = rows == NULL ? slot : rows[slot];
    uint32_t wanted = 0;
    if (row >= source->slot_count || !lahar_block_has_code_points(source)) {
        return fail_column(error, number);
    }
    LAHAR_TRY(lahar_block_code_at(block, number, row, &wanted, error));
    if (width == 0) {
        *count_out = source->codes_encoding == LAHAR_CODES_CONSTANT ? 0 : slot;
        return LAHAR_OK;
    }
    if (rows == NULL && find_last_rank(block, number, slot, count_out)) {
        return LAHAR_OK;
    }
    uint64_t *seen = lahar_arena_allocate(arena, (source->entry_count / 64 + 1) * sizeof seen[0]);
    if (seen == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read a value of a block");
    }
    memset(seen, 0, (source->entry_count / 64 + 1) * sizeof seen[0]);
    const uint8_t *planes = block->image + source->codes_range.offset;
    uint32_t count = 0;
    for (uint32_t i = 0; i < slot; i++) {
        const uint32_t at = rows == NULL ? i : rows[i];
        const uint32_t code = lahar_code_load(planes, source->slot_count, width, at);
        if (code == wanted) {
            break;
        }
        if (code >= source->entry_count) {
            return fail_column(error, number);
        }
        count += (seen[code / 64] >> (code % 64) & 1) == 0;
        seen[code / 64] |= UINT64_C(1) << (code % 64);
    }
    *count_out = count;
    if (rows == NULL) {
        keep_last_rank(block, number, slot, count);
    }
    return LAHAR_OK;
}

lahar_status lahar_block_slot_entry(struct lahar_block *block, uint32_t number,
                                    const uint32_t *rows, uint32_t slot, struct lahar_arena *arena,
                                    uint32_t *entry_out, lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    if (lahar_block_has_code_points(column)) {
        return lahar_block_code_at(block, number, slot, entry_out, error);
    }
    const uint32_t width = lahar_code_width(column->codes_encoding);
    const uint32_t stored_count =
        width == 0 ? column->entry_count : column->codes_range.size / width;
    uint32_t index = 0;
    LAHAR_ASSERT(slot < column->slot_count);
    LAHAR_TRY(count_codes_before(block, column->source, rows, slot, arena, &index, error));
    if (index >= stored_count || (width != 0 && column->codes_range.size % width != 0)) {
        return fail_column(error, number);
    }
    LAHAR_TRY(lahar_block_need_bytes(block, column->codes_range, error));
    *entry_out = width == 0 ? index
                            : lahar_code_load(block->image + column->codes_range.offset,
                                              stored_count, width, index);
    return *entry_out < column->entry_count ? LAHAR_OK : fail_column(error, number);
}

/* Sizes stand in front, one for all or one each. */
static lahar_status raw_at(struct lahar_block *block, uint32_t number, uint32_t entry,
                           lahar_bytes *bytes_out, lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    struct lahar_reader reader =
        lahar_reader_of(block->image + column->entries_range.offset, column->entries_range.size);
    const bool is_same = lahar_read_u8(&reader) == 1;
    uint64_t size = lahar_read_varint(&reader);
    uint64_t start = 0;
    if (is_same) {
        start = size <= column->text_range.size ? size * entry : UINT64_MAX;
    }
    for (uint32_t i = 0; i < entry && !is_same; i++) {
        start += size;
        size = lahar_read_varint(&reader);
        if (size > column->text_range.size) {
            return fail_column(error, number);
        }
    }
    if (reader.failed || size > column->text_range.size || start > column->text_range.size - size) {
        return fail_column(error, number);
    }
    const struct lahar_byte_range range = {column->text_range.offset + (uint32_t)start,
                                           (uint32_t)size};
    LAHAR_TRY(lahar_block_need_bytes(block, range, error));
    *bytes_out = (lahar_bytes){block->image + range.offset, (size_t)size};
    return LAHAR_OK;
}

/* Values of a fixed size in the section, behind a byte that says so where has_size. */
static const uint8_t *fixed_at(const struct lahar_block *block,
                               const struct lahar_block_column *column, uint32_t entry,
                               uint32_t head_size, uint32_t size)
{
    return column->entries_range.size == (uint64_t)size * column->entry_count + head_size
               ? block->image + column->entries_range.offset + head_size + (size_t)entry * size
               : NULL;
}

/* Decimal digits, at least size of them. */
static lahar_bytes print_decimal(uint64_t number, uint32_t size, uint8_t *to)
{
    uint8_t *p = to + LAHAR_DECIMAL_SIZE_MAX;
    do {
        *--p = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number != 0 || (size_t)(to + LAHAR_DECIMAL_SIZE_MAX - p) < size);
    return (lahar_bytes){p, (size_t)(to + LAHAR_DECIMAL_SIZE_MAX - p)};
}

lahar_status lahar_block_entry_at(struct lahar_block *block, uint32_t number, uint32_t entry,
                                  struct lahar_arena *arena, lahar_bytes *bytes_out,
                                  lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    LAHAR_ASSERT(entry < column->entry_count && column->kind == LAHAR_COLUMN_BYTES);
    LAHAR_TRY(lahar_block_need_bytes(block, column->entries_range, error));
    const uint8_t *section = block->image + column->entries_range.offset;
    const uint32_t size = column->entries_range.size == 0 ? 0 : section[0];
    const uint8_t *found = NULL;
    uint8_t *text = NULL;
    uint64_t value = 0;
    bool is_sound = true;
    switch (column->entries_encoding) {
    case LAHAR_ENTRIES_RAW:
        return raw_at(block, number, entry, bytes_out, error);
    case LAHAR_ENTRIES_UUID_TEXT:
        found = fixed_at(block, column, entry, 0, sizeof(lahar_uuid));
        text = lahar_arena_allocate(arena, LAHAR_UUID_TEXT_SIZE);
        if (text != NULL && found != NULL) {
            lahar_uuid_text_print(found, text);
        }
        *bytes_out = (lahar_bytes){text, LAHAR_UUID_TEXT_SIZE};
        is_sound = found != NULL;
        break;
    case LAHAR_ENTRIES_HEX:
        found = fixed_at(block, column, entry, 1, size);
        text = lahar_arena_allocate(arena, (size_t)size * 2 + 1);
        if (text != NULL && found != NULL) {
            lahar_hex_print(found, size, text);
        }
        *bytes_out = (lahar_bytes){text, (size_t)size * 2};
        is_sound = found != NULL && size != 0;
        break;
    case LAHAR_ENTRIES_DECIMAL:
    case LAHAR_ENTRIES_PADDED: {
        const bool is_padded = column->entries_encoding == LAHAR_ENTRIES_PADDED;
        const uint32_t head = is_padded && column->entries_range.size != 0 ? 1 : 0;
        is_sound = lahar_numbers_at(section + head, column->entries_range.size - head,
                                    column->entry_count, entry, &value) &&
                   (!is_padded || (size != 0 && size <= LAHAR_PADDED_SIZE_MAX));
        text = lahar_arena_allocate(arena, LAHAR_DECIMAL_SIZE_MAX);
        if (text != NULL && is_sound) {
            *bytes_out = print_decimal(value, is_padded ? size : 1, text);
            is_sound = !is_padded || bytes_out->size == size;
        }
        break;
    }
    default:
        is_sound = false;
    }
    if (text == NULL && is_sound) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read a value of a block");
    }
    return is_sound ? LAHAR_OK : fail_column(error, number);
}

lahar_status lahar_block_number_at(struct lahar_block *block, uint32_t number, uint32_t entry,
                                   uint64_t *number_out, lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    LAHAR_ASSERT(entry < column->entry_count && column->kind == LAHAR_COLUMN_INT);
    LAHAR_TRY(lahar_block_need_bytes(block, column->entries_range, error));
    return lahar_numbers_at(block->image + column->entries_range.offset, column->entries_range.size,
                            column->entry_count, entry, number_out)
               ? LAHAR_OK
               : fail_column(error, number);
}

lahar_status lahar_block_uuid_at(struct lahar_block *block, uint32_t number, uint32_t entry,
                                 lahar_uuid *uuid_out, lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    LAHAR_ASSERT(entry < column->entry_count && column->kind == LAHAR_COLUMN_UUID);
    LAHAR_TRY(lahar_block_need_bytes(block, column->entries_range, error));
    const uint8_t *found = fixed_at(block, column, entry, 0, sizeof *uuid_out);
    if (found == NULL) {
        return fail_column(error, number);
    }
    memcpy(uuid_out, found, sizeof *uuid_out);
    return LAHAR_OK;
}
