/* Inflating groups and decoding columns of a block when they are first used. */
#include <string.h>

#include "engine/segment/block_reader.h"
#include "engine/segment/column_point.h"
#include "engine/segment/hex_digits.h"
#include "engine/segment/number_encode.h"
#include "engine/segment/uuid_text.h"
#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

#define CODE_NONE UINT32_MAX

static lahar_status fail_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to inflate a block");
}

static lahar_status fail_column(lahar_error *error, uint32_t column)
{
    return lahar_fail(error, LAHAR_CORRUPT, "column %u is damaged", column);
}

/* --- groups ---------------------------------------------------------------------- */

/* The group that holds a byte of the image. */
static uint32_t find_group(const struct lahar_block *block, uint32_t offset)
{
    uint32_t low = 0;
    uint32_t high = block->header.group_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (block->groups[middle].raw_offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static lahar_status inflate_group(struct lahar_block *block, struct lahar_block_group_entry *group,
                                  lahar_error *error)
{
    const uint8_t *stored = block->stored + group->stored_offset;
    uint8_t *to = block->image + group->raw_offset;
    if (lahar_crc32c(0, stored, group->stored_size) != group->checksum) {
        return lahar_fail(error, LAHAR_CORRUPT, "a column group fails its checksum");
    }
    if (group->codec == LAHAR_CODEC_NONE) {
        memcpy(to, stored, group->raw_size);
    } else {
        struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
        if (decompressor == NULL) {
            return fail_memory(error);
        }
        const enum libdeflate_result result = libdeflate_deflate_decompress(
            decompressor, stored, group->stored_size, to, group->raw_size, NULL);
        libdeflate_free_decompressor(decompressor);
        if (result != LIBDEFLATE_SUCCESS) {
            return lahar_fail(error, LAHAR_CORRUPT, "a column group does not inflate");
        }
    }
    atomic_store_explicit(&group->is_ready, true, memory_order_release);
    return LAHAR_OK;
}

/* With the mutex held. */
lahar_status lahar_block_inflate(struct lahar_block *block, struct lahar_byte_range range,
                                 lahar_error *error)
{
    if (range.size == 0) {
        return LAHAR_OK;
    }
    const uint32_t last = find_group(block, range.offset + range.size - 1);
    for (uint32_t i = find_group(block, range.offset); i <= last; i++) {
        if (!atomic_load_explicit(&block->groups[i].is_ready, memory_order_relaxed)) {
            LAHAR_TRY(inflate_group(block, &block->groups[i], error));
        }
    }
    return LAHAR_OK;
}

static bool is_inflated(const struct lahar_block *block, struct lahar_byte_range range)
{
    if (range.size == 0) {
        return true;
    }
    const uint32_t last = find_group(block, range.offset + range.size - 1);
    for (uint32_t i = find_group(block, range.offset); i <= last; i++) {
        if (!atomic_load_explicit(&block->groups[i].is_ready, memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

lahar_status lahar_block_need_bytes(struct lahar_block *block, struct lahar_byte_range range,
                                    lahar_error *error)
{
    if (is_inflated(block, range)) {
        return LAHAR_OK;
    }
    pthread_mutex_lock(&block->mutex);
    const lahar_status status = lahar_block_inflate(block, range, error);
    pthread_mutex_unlock(&block->mutex);
    return status;
}

/* --- codes ------------------------------------------------------------------------- */

static lahar_status decode_plain_codes(struct lahar_block *block, uint32_t number, uint32_t *codes,
                                       lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    const uint32_t width = lahar_code_width(column->codes_encoding);
    const uint32_t count = column->slot_count;
    if (column->codes_range.size != (uint64_t)width * count) {
        return fail_column(error, number);
    }
    const uint8_t *planes = block->image + column->codes_range.offset;
    uint32_t largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        codes[i] = lahar_code_load(planes, count, width, i);
        largest = codes[i] > largest ? codes[i] : largest;
    }
    return largest < column->entry_count ? LAHAR_OK : fail_column(error, number);
}

/* Gives each slot the code that the first slot with the same source code was given. */
static lahar_status decode_mapped_codes(struct lahar_block *block, uint32_t number,
                                        const uint32_t *rows, uint32_t *codes, lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    LAHAR_TRY(lahar_block_decode_column(block, column->source, NULL, error));
    const struct lahar_block_column *source = &block->columns[column->source];
    const uint32_t width = lahar_code_width(column->codes_encoding);
    const uint32_t stored_count =
        width == 0 ? column->entry_count : column->codes_range.size / width;
    if (rows == NULL && column->slot_count > block->header.row_count) {
        return fail_column(error, number);
    }
    if (width != 0 && column->codes_range.size % width != 0) {
        return fail_column(error, number);
    }
    uint32_t *map = lahar_allocate(block->allocator, (size_t)source->entry_count * sizeof map[0]);
    if (map == NULL) {
        return fail_memory(error);
    }
    memset(map, 0xff, (size_t)source->entry_count * sizeof map[0]);
    const uint8_t *planes = block->image + column->codes_range.offset;
    uint32_t next = 0;
    bool is_damaged = false;
    for (uint32_t slot = 0; slot < column->slot_count && !is_damaged; slot++) {
        uint32_t *mapped = &map[lahar_block_code(source, rows == NULL ? slot : rows[slot])];
        if (*mapped == CODE_NONE) {
            is_damaged = next == stored_count;
            *mapped = is_damaged   ? 0
                      : width == 0 ? next
                                   : lahar_code_load(planes, stored_count, width, next);
            is_damaged = is_damaged || *mapped >= column->entry_count;
            next++;
        }
        codes[slot] = *mapped;
    }
    lahar_release(block->allocator, map);
    return is_damaged || next != stored_count ? fail_column(error, number) : LAHAR_OK;
}

static lahar_status decode_codes(struct lahar_block *block, uint32_t number, const uint32_t *rows,
                                 lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    if (column->codes_encoding <= LAHAR_CODES_IDENTITY) {
        return LAHAR_OK;
    }
    uint32_t *codes =
        lahar_arena_allocate(&block->arena, (size_t)column->slot_count * sizeof codes[0]);
    if (codes == NULL) {
        return fail_memory(error);
    }
    LAHAR_TRY(lahar_block_inflate(block, column->codes_range, error));
    if (column->codes_encoding >= LAHAR_CODES_MAPPED_IDENTITY) {
        LAHAR_TRY(decode_mapped_codes(block, number, rows, codes, error));
    } else {
        LAHAR_TRY(decode_plain_codes(block, number, codes, error));
    }
    column->codes = codes;
    return LAHAR_OK;
}

/* --- entries ------------------------------------------------------------------------ */

static lahar_status decode_numbers(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    column->numbers =
        lahar_arena_allocate(&block->arena, (size_t)column->entry_count * sizeof(uint64_t));
    if (column->numbers == NULL) {
        return fail_memory(error);
    }
    return lahar_numbers_decode(block->image + column->entries_range.offset,
                                column->entries_range.size, column->numbers, column->entry_count)
               ? LAHAR_OK
               : fail_column(error, number);
}

static lahar_status decode_uuid_text(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    if (column->entries_range.size != (uint64_t)column->entry_count * sizeof(lahar_uuid)) {
        return fail_column(error, number);
    }
    uint8_t *text =
        lahar_arena_allocate(&block->arena, (size_t)column->entry_count * LAHAR_UUID_TEXT_SIZE);
    if (text == NULL) {
        return fail_memory(error);
    }
    const uint8_t *uuids = block->image + column->entries_range.offset;
    for (uint32_t i = 0; i < column->entry_count; i++) {
        lahar_uuid_text_print(uuids + (size_t)i * sizeof(lahar_uuid),
                              text + (size_t)i * LAHAR_UUID_TEXT_SIZE);
    }
    column->bytes = text;
    column->fixed_size = LAHAR_UUID_TEXT_SIZE;
    return LAHAR_OK;
}

static uint32_t print_decimal(uint64_t value, uint8_t *to)
{
    uint8_t digits[LAHAR_DECIMAL_SIZE_MAX];
    uint32_t count = 0;
    do {
        digits[count++] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (uint32_t i = 0; i < count; i++) {
        to[i] = digits[count - 1 - i];
    }
    return count;
}

static lahar_status decode_decimals(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    LAHAR_TRY(decode_numbers(block, number, error));
    uint8_t *text =
        lahar_arena_allocate(&block->arena, (size_t)column->entry_count * LAHAR_DECIMAL_SIZE_MAX);
    uint32_t *ends =
        lahar_arena_allocate(&block->arena, (size_t)column->entry_count * sizeof ends[0]);
    if (text == NULL || ends == NULL) {
        return fail_memory(error);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < column->entry_count; i++) {
        at += print_decimal(column->numbers[i], text + at);
        ends[i] = at;
    }
    column->bytes = text;
    column->ends = ends;
    return LAHAR_OK;
}

/* Decimal numbers of the same size, with zeros in front. */
static lahar_status decode_padded(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    const uint8_t *section = block->image + column->entries_range.offset;
    const uint32_t size = column->entries_range.size == 0 ? 0 : section[0];
    if (size == 0 || size > LAHAR_PADDED_SIZE_MAX) {
        return fail_column(error, number);
    }
    uint64_t *numbers =
        lahar_arena_allocate(&block->arena, (size_t)column->entry_count * sizeof(uint64_t));
    uint8_t *text = lahar_arena_allocate(&block->arena, (size_t)column->entry_count * size);
    if (numbers == NULL || text == NULL) {
        return fail_memory(error);
    }
    if (!lahar_numbers_decode(section + 1, column->entries_range.size - 1, numbers,
                              column->entry_count)) {
        return fail_column(error, number);
    }
    for (uint32_t i = 0; i < column->entry_count; i++) {
        uint64_t value = numbers[i];
        for (uint32_t k = size; k-- > 0; value /= 10) {
            text[(size_t)i * size + k] = (uint8_t)('0' + value % 10);
        }
        if (value != 0) {
            return fail_column(error, number);
        }
    }
    column->bytes = text;
    column->fixed_size = size;
    return LAHAR_OK;
}

/* Hexadecimal digits of the same number, two a byte. */
static lahar_status decode_hex(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    const uint8_t *section = block->image + column->entries_range.offset;
    const uint32_t size = column->entries_range.size == 0 ? 0 : section[0];
    const uint64_t byte_count = (uint64_t)column->entry_count * size;
    if (size == 0 || column->entries_range.size != byte_count + 1) {
        return fail_column(error, number);
    }
    uint8_t *text = lahar_arena_allocate(&block->arena, (size_t)byte_count * 2);
    if (text == NULL) {
        return fail_memory(error);
    }
    lahar_hex_print(section + 1, (size_t)byte_count, text);
    column->bytes = text;
    column->fixed_size = size * 2;
    return LAHAR_OK;
}

static lahar_status decode_raw_bytes(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    struct lahar_reader reader =
        lahar_reader_of(block->image + column->entries_range.offset, column->entries_range.size);
    const uint64_t text_size = column->text_range.size;
    const bool is_same = lahar_read_u8(&reader) == 1;
    uint64_t end = 0;
    if (is_same) {
        const uint64_t size = lahar_read_varint(&reader);
        if (size > text_size) {
            return fail_column(error, number);
        }
        column->fixed_size = (uint32_t)size;
        end = size * column->entry_count;
    } else {
        column->ends =
            lahar_arena_allocate(&block->arena, (size_t)column->entry_count * sizeof(uint32_t));
        if (column->ends == NULL) {
            return fail_memory(error);
        }
        for (uint32_t i = 0; i < column->entry_count; i++) {
            const uint64_t size = lahar_read_varint(&reader);
            if (size > text_size - end) {
                return fail_column(error, number);
            }
            end += size;
            column->ends[i] = (uint32_t)end;
        }
    }
    if (reader.failed || lahar_reader_left(&reader) != 0 || end != text_size) {
        return fail_column(error, number);
    }
    column->bytes = block->image + column->text_range.offset;
    if (text_size == 0 ||
        find_group(block, column->text_range.offset) ==
            find_group(block, column->text_range.offset + column->text_range.size - 1)) {
        return lahar_block_inflate(block, column->text_range, error);
    }
    column->is_text_lazy = true;
    return LAHAR_OK;
}

static lahar_status decode_entries(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    if (column->entry_count == 0) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_block_inflate(block, column->entries_range, error));
    switch (column->kind) {
    case LAHAR_COLUMN_INT:
        return decode_numbers(block, number, error);
    case LAHAR_COLUMN_UUID:
        column->bytes = block->image + column->entries_range.offset;
        column->fixed_size = sizeof(lahar_uuid);
        return column->entries_range.size == (uint64_t)column->entry_count * sizeof(lahar_uuid)
                   ? LAHAR_OK
                   : fail_column(error, number);
    case LAHAR_COLUMN_BYTES:
        break;
    }
    switch (column->entries_encoding) {
    case LAHAR_ENTRIES_UUID_TEXT:
        return decode_uuid_text(block, number, error);
    case LAHAR_ENTRIES_DECIMAL:
        return decode_decimals(block, number, error);
    case LAHAR_ENTRIES_TEMPLATES:
        return lahar_block_join_texts(block, number, error);
    case LAHAR_ENTRIES_PADDED:
        return decode_padded(block, number, error);
    case LAHAR_ENTRIES_HEX:
        return decode_hex(block, number, error);
    default:
        return decode_raw_bytes(block, number, error);
    }
}

/* With the mutex held. A source is not mapped, so this recurses once at most. */
lahar_status lahar_block_decode_column(struct lahar_block *block, uint32_t number,
                                       const uint32_t *rows, lahar_error *error)
{
    struct lahar_block_column *column = &block->columns[number];
    if (atomic_load_explicit(&column->is_ready, memory_order_relaxed)) {
        return LAHAR_OK;
    }
    if (column->is_damaged) {
        return fail_column(error, number);
    }
    lahar_status status = decode_codes(block, number, rows, error);
    if (status == LAHAR_OK) {
        status = decode_entries(block, number, error);
    }
    if (status == LAHAR_OK) {
        atomic_store_explicit(&column->is_ready, true, memory_order_release);
    }
    column->is_damaged = status == LAHAR_CORRUPT;
    return status;
}

lahar_status lahar_block_need_column(struct lahar_block *block, uint32_t column,
                                     const uint32_t *rows, lahar_error *error)
{
    if (atomic_load_explicit(&block->columns[column].is_ready, memory_order_acquire)) {
        return LAHAR_OK;
    }
    pthread_mutex_lock(&block->mutex);
    const lahar_status status = lahar_block_decode_column(block, column, rows, error);
    pthread_mutex_unlock(&block->mutex);
    return status;
}
