/* Inflating groups and decoding columns of a block when they are first used. */
#include <string.h>

#include "engine/segment/block_reader.h"
#include "engine/segment/number_encode.h"
#include "engine/segment/uuid_text.h"
#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    DECIMAL_SIZE_MAX = 20,
    PADDED_SIZE_MAX = 18
};

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

static uint32_t code_width(enum lahar_codes_encoding encoding)
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

static uint32_t load_code(const uint8_t *planes, uint32_t count, uint32_t width, uint32_t i)
{
    uint32_t code = 0;
    for (uint32_t plane = 0; plane < width; plane++) {
        code |= (uint32_t)planes[(size_t)plane * count + i] << (8 * plane);
    }
    return code;
}

static lahar_status decode_plain_codes(struct lahar_block *block, uint32_t number, uint32_t *codes,
                                       lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    const uint32_t width = code_width(column->codes_encoding);
    const uint32_t count = column->slot_count;
    if (column->codes_range.size != (uint64_t)width * count) {
        return fail_column(error, number);
    }
    const uint8_t *planes = block->image + column->codes_range.offset;
    uint32_t largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        codes[i] = load_code(planes, count, width, i);
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
    const uint32_t width = code_width(column->codes_encoding);
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
                                   : load_code(planes, stored_count, width, next);
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
    uint8_t digits[DECIMAL_SIZE_MAX];
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
        lahar_arena_allocate(&block->arena, (size_t)column->entry_count * DECIMAL_SIZE_MAX);
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
    if (size == 0 || size > PADDED_SIZE_MAX) {
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
    static const char digits[] = "0123456789abcdef";
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
    for (uint64_t i = 0; i < byte_count; i++) {
        text[2 * i] = (uint8_t)digits[section[1 + i] >> 4];
        text[2 * i + 1] = (uint8_t)digits[section[1 + i] & 15];
    }
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

/* --- scopes ------------------------------------------------------------------------- */

/* The node where the path of a slot of the scope ends. */
static uint32_t node_of(const struct lahar_block_column *shape, uint32_t slot)
{
    return (uint32_t)shape->numbers[lahar_block_code(shape, slot)];
}

static bool are_shapes_valid(const struct lahar_block_column *shape,
                             const struct lahar_block_scope *scope, uint64_t raw_size)
{
    for (uint32_t i = 0; i < shape->entry_count; i++) {
        if (shape->numbers[i] >= scope->node_count) {
            return false;
        }
    }
    /* Every element of a row takes bytes of it, which bounds the walks over all rows. */
    uint64_t depth = 0;
    for (uint32_t slot = 0; slot < shape->slot_count; slot++) {
        depth += scope->nodes[node_of(shape, slot)].depth;
    }
    return depth <= raw_size;
}

/* Counts the slots of every element: those that end at a node, and at nodes below. */
static lahar_status count_slots(struct lahar_block *block, struct lahar_block_scope *scope,
                                const struct lahar_block_column *shape, lahar_error *error)
{
    uint32_t *counts = lahar_allocate_zeroed(block->allocator, scope->node_count, sizeof counts[0]);
    if (counts == NULL) {
        return fail_memory(error);
    }
    for (uint32_t slot = 0; slot < shape->slot_count; slot++) {
        counts[node_of(shape, slot)]++;
    }
    for (uint32_t i = 0; i < scope->element_count; i++) {
        scope->elements[i].filled = 0;
    }
    for (uint32_t i = scope->node_count - 1; i > 0; i--) {
        const struct lahar_block_node *node = &scope->nodes[i];
        struct lahar_block_element *element = &scope->elements[node->label / 2];
        if ((node->label & 1) == 0 || element->is_unnamed) {
            element->filled += counts[i];
        }
        counts[node->parent] += counts[i];
    }
    lahar_release(block->allocator, counts);
    return LAHAR_OK;
}

/* Compares with what the columns have and makes room for rows where they are needed. */
static lahar_status prepare_rows(struct lahar_block *block, struct lahar_block_scope *scope,
                                 bool *has_rows_out, lahar_error *error)
{
    for (uint32_t i = 0; i < scope->element_count; i++) {
        struct lahar_block_element *element = &scope->elements[i];
        const uint32_t count = element->filled;
        if (count != block->columns[element->column].slot_count ||
            (element->is_unnamed && count != block->columns[element->second].slot_count)) {
            return lahar_fail(error, LAHAR_CORRUPT, "columns and shapes of a block disagree");
        }
        element->filled = 0;
        if (count == block->header.row_count && !element->has_occurrences) {
            continue;
        }
        element->rows = lahar_arena_allocate(&block->arena, (size_t)count * sizeof(uint32_t) + 1);
        if (element->rows == NULL) {
            return fail_memory(error);
        }
        *has_rows_out = true;
    }
    return LAHAR_OK;
}

static void fill_rows(struct lahar_block_scope *scope, const struct lahar_block_column *shape)
{
    const uint32_t *owner_rows = scope->owner == NULL ? NULL : scope->owner->rows;
    for (uint32_t slot = 0; slot < shape->slot_count; slot++) {
        const uint32_t row = owner_rows == NULL ? slot : owner_rows[slot];
        for (uint32_t i = node_of(shape, slot); i != 0; i = scope->nodes[i].parent) {
            const struct lahar_block_node *node = &scope->nodes[i];
            struct lahar_block_element *element = &scope->elements[node->label / 2];
            if (element->rows != NULL && ((node->label & 1) == 0 || element->is_unnamed)) {
                element->rows[element->filled++] = row;
            }
        }
    }
}

/* Where the items of each list begin. */
static lahar_status find_starts(struct lahar_block *block, struct lahar_block_element *element,
                                lahar_error *error)
{
    LAHAR_TRY(lahar_block_decode_column(block, element->column, element->rows, error));
    const struct lahar_block_column *counts = &block->columns[element->column];
    const uint32_t item_count = block->columns[element->second].slot_count;
    element->starts =
        lahar_arena_allocate(&block->arena, ((size_t)counts->slot_count + 1) * sizeof(uint32_t));
    if (element->starts == NULL) {
        return fail_memory(error);
    }
    uint64_t start = 0;
    for (uint32_t slot = 0; slot < counts->slot_count; slot++) {
        element->starts[slot] = (uint32_t)start;
        const uint64_t count = counts->numbers[lahar_block_code(counts, slot)];
        if (count > item_count - start) {
            return fail_column(error, element->column);
        }
        start += count;
    }
    element->starts[counts->slot_count] = (uint32_t)start;
    return start == item_count ? LAHAR_OK : fail_column(error, element->column);
}

static lahar_status decode_scope(struct lahar_block *block, uint32_t number, lahar_error *error);

static lahar_status find_rows(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_scope *scope = &block->scopes[number];
    if (number != 0) {
        LAHAR_TRY(decode_scope(block, 0, error));
    }
    const uint32_t *rows = scope->owner == NULL ? NULL : scope->owner->rows;
    LAHAR_TRY(lahar_block_decode_column(block, scope->shape_column, rows, error));
    const struct lahar_block_column *shape = &block->columns[scope->shape_column];
    if (!are_shapes_valid(shape, scope, block->header.raw_size)) {
        return lahar_fail(error, LAHAR_CORRUPT, "the shapes of a block are damaged");
    }
    bool has_rows = false;
    LAHAR_TRY(count_slots(block, scope, shape, error));
    LAHAR_TRY(prepare_rows(block, scope, &has_rows, error));
    if (has_rows) {
        fill_rows(scope, shape);
    }
    for (uint32_t i = 0; number == 0 && i < scope->element_count; i++) {
        struct lahar_block_element *element = &scope->elements[i];
        if (element->type == LAHAR_LIST_UUID || element->type == LAHAR_LIST_KEYWORD) {
            LAHAR_TRY(find_starts(block, element, error));
        }
    }
    return LAHAR_OK;
}

/* With the mutex held. The scope of a map rests on scope 0. */
static lahar_status decode_scope(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_scope *scope = &block->scopes[number];
    if (atomic_load_explicit(&scope->is_ready, memory_order_relaxed)) {
        return LAHAR_OK;
    }
    if (scope->is_damaged) {
        return lahar_fail(error, LAHAR_CORRUPT, "the shapes of a block are damaged");
    }
    const lahar_status status = find_rows(block, number, error);
    if (status == LAHAR_OK) {
        atomic_store_explicit(&scope->is_ready, true, memory_order_release);
    }
    scope->is_damaged = status == LAHAR_CORRUPT;
    return status;
}

lahar_status lahar_block_need_scope(struct lahar_block *block, uint32_t scope, lahar_error *error)
{
    if (atomic_load_explicit(&block->scopes[scope].is_ready, memory_order_acquire)) {
        return LAHAR_OK;
    }
    pthread_mutex_lock(&block->mutex);
    const lahar_status status = decode_scope(block, scope, error);
    pthread_mutex_unlock(&block->mutex);
    return status;
}
