#include "engine/segment/column_encode.h"

#include <stdlib.h>
#include <string.h>

#include "engine/segment/hex_digits.h"
#include "engine/segment/number_encode.h"
#include "engine/segment/uuid_text.h"

enum {
    SOURCE_COUNT_MAX = 8,
    SECTION_SHARED_MIN = 24,      /* smaller ones are not worth a look */
    SECTION_REMEMBERED_MAX = 128, /* sections that later ones are compared with */
    HEX_SIZE_MIN = 8,
    HEX_SIZE_MAX = 254
};

#define CODE_NONE UINT32_MAX

void lahar_column_encoder_init(struct lahar_column_encoder *encoder,
                               const lahar_allocator *allocator)
{
    encoder->allocator = allocator;
    encoder->has_failed = false;
    for (uint32_t i = 0; i < LAHAR_GROUP_COUNT; i++) {
        lahar_buffer_init(&encoder->groups[i], allocator);
    }
    lahar_buffer_init(&encoder->long_texts, allocator);
    lahar_buffer_init(&encoder->sections, allocator);
    lahar_buffer_init(&encoder->map, allocator);
    lahar_buffer_init(&encoder->numbers, allocator);
    lahar_buffer_init(&encoder->order, allocator);
}

void lahar_column_encoder_deinit(struct lahar_column_encoder *encoder)
{
    for (uint32_t i = 0; i < LAHAR_GROUP_COUNT; i++) {
        lahar_buffer_deinit(&encoder->groups[i]);
    }
    lahar_buffer_deinit(&encoder->long_texts);
    lahar_buffer_deinit(&encoder->sections);
    lahar_buffer_deinit(&encoder->map);
    lahar_buffer_deinit(&encoder->numbers);
    lahar_buffer_deinit(&encoder->order);
}

/* --- sections ------------------------------------------------------------------- */

/* Ends the section that was appended to a group since start. One with the bytes of an
 * earlier section is taken back and stands where that one does. */
static struct lahar_section end_section(struct lahar_column_encoder *encoder,
                                        enum lahar_block_group group, size_t start)
{
    struct lahar_buffer *buffer = &encoder->groups[group];
    struct lahar_section section = {group, (uint32_t)start, (uint32_t)(buffer->size - start)};
    if (section.size < SECTION_SHARED_MIN || buffer->has_failed) {
        return section;
    }
    const size_t count = encoder->sections.size / sizeof section;
    const struct lahar_section *known =
        (const struct lahar_section *)(const void *)encoder->sections.data;
    for (size_t i = 0; i < count; i++) {
        if (known[i].size == section.size &&
            memcmp(encoder->groups[known[i].group].data + known[i].offset, buffer->data + start,
                   section.size) == 0) {
            buffer->size = start;
            return known[i];
        }
    }
    if (count < SECTION_REMEMBERED_MAX) {
        lahar_buffer_put(&encoder->sections, &section, sizeof section);
    }
    return section;
}

/* --- codes ---------------------------------------------------------------------- */

static uint32_t *reserve_map(struct lahar_column_encoder *encoder, uint32_t count)
{
    lahar_buffer_clear(&encoder->map);
    if (!lahar_buffer_reserve(&encoder->map, (size_t)count * sizeof(uint32_t))) {
        return NULL;
    }
    memset(encoder->map.data, 0xff, (size_t)count * sizeof(uint32_t));
    return (uint32_t *)(void *)encoder->map.data;
}

/* Whether equal codes in source mean equal codes in column; *stored_out: codes that
 * mapping would store. */
static bool depends_on(const struct lahar_column *column, const struct lahar_column *source,
                       uint32_t *map, uint32_t *stored_out)
{
    const uint32_t *codes = lahar_column_codes(column);
    const uint32_t *rows = lahar_column_rows(column);
    const uint32_t *source_codes = lahar_column_codes(source);
    uint32_t stored = 0;
    for (uint32_t slot = 0; slot < column->slot_count; slot++) {
        uint32_t *mapped = &map[source_codes[rows[slot]]];
        if (*mapped == CODE_NONE) {
            *mapped = codes[slot];
            stored++;
        } else if (*mapped != codes[slot]) {
            return false;
        }
    }
    *stored_out = stored;
    return true;
}

/* Whether a column that has so many slots is worth mapping when so many codes remain. */
static bool is_worth_mapping(const struct lahar_column *column, uint32_t stored)
{
    return stored <= column->slot_count - column->slot_count / 8;
}

/* Whether all values of the column were told by another one's while it was filled. */
static bool is_follower(const struct lahar_column *column)
{
    return column->followed != NULL && column->followed_slots == column->slot_count;
}

/* The source that the column was found to depend on while it was filled, or CODE_NONE. */
static uint32_t find_followed(const struct lahar_column *column,
                              const struct lahar_placed_column *const *sources, uint32_t count)
{
    if (is_follower(column) && is_worth_mapping(column, column->followed_codes)) {
        for (uint32_t k = 0; k < count; k++) {
            if (sources[k]->column == column->followed) {
                return k;
            }
        }
    }
    return CODE_NONE;
}

static bool is_source(const struct lahar_column *column, uint32_t row_count)
{
    return column->is_mapped_allowed && !column->has_repeat_in_row &&
           column->slot_count == row_count && column->entry_count > 1 &&
           column->entry_count < column->slot_count;
}

static int compare_entry_counts(const void *a, const void *b)
{
    const struct lahar_placed_column *left = *(struct lahar_placed_column *const *)a;
    const struct lahar_placed_column *right = *(struct lahar_placed_column *const *)b;
    const uint32_t l = left->column->entry_count;
    const uint32_t r = right->column->entry_count;
    if (l != r) {
        return (l < r) - (l > r);
    }
    /* A column before those that were filled by following it. */
    const bool is_left_follower = is_follower(left->column);
    const bool is_right_follower = is_follower(right->column);
    if (is_left_follower != is_right_follower) {
        return is_left_follower - is_right_follower;
    }
    /* A field before a key, since keys can learn to follow it. */
    const bool is_left_field = left->column->is_field;
    const bool is_right_field = right->column->is_field;
    return is_left_field != is_right_field ? is_right_field - is_left_field
                                           : (left > right) - (left < right);
}

/* Finds the columns that others determine, from the one with most entries down. */
static bool choose_sources(struct lahar_column_encoder *encoder,
                           struct lahar_placed_column *columns, uint32_t count, uint32_t row_count)
{
    lahar_buffer_clear(&encoder->order);
    if (!lahar_buffer_reserve(&encoder->order, count * sizeof(struct lahar_placed_column *))) {
        return false;
    }
    struct lahar_placed_column **order = (void *)encoder->order.data;
    uint32_t order_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_column *column = columns[i].column;
        columns[i].source = CODE_NONE;
        if (column->is_mapped_allowed && column->entry_count > 1 &&
            column->entry_count < column->slot_count) {
            order[order_count++] = &columns[i];
        }
    }
    qsort(order, order_count, sizeof order[0], compare_entry_counts);
    const struct lahar_placed_column *sources[SOURCE_COUNT_MAX];
    uint32_t source_count = 0;
    for (uint32_t i = 0; i < order_count; i++) {
        const struct lahar_column *column = order[i]->column;
        const uint32_t first = find_followed(column, sources, source_count);
        if (first != CODE_NONE) {
            order[i]->source = (uint32_t)(sources[first] - columns);
            order[i]->stored_codes = column->followed_codes;
            continue;
        }
        for (uint32_t k = source_count; k-- > 0;) {
            const struct lahar_column *source = sources[k]->column;
            uint32_t *map = reserve_map(encoder, source->entry_count);
            uint32_t stored = 0;
            if (map == NULL) {
                return false;
            }
            if (depends_on(column, source, map, &stored) && is_worth_mapping(column, stored)) {
                order[i]->source = (uint32_t)(sources[k] - columns);
                order[i]->stored_codes = stored;
                break;
            }
        }
        if (order[i]->source == CODE_NONE && source_count < SOURCE_COUNT_MAX &&
            is_source(column, row_count)) {
            sources[source_count++] = order[i];
        }
    }
    return true;
}

/* Puts codes as byte planes, as many as width says. */
static void put_codes(struct lahar_buffer *buffer, const uint32_t *codes, uint32_t count,
                      uint32_t width)
{
    const size_t size = (size_t)count * width;
    if (!lahar_buffer_reserve(buffer, size)) {
        return;
    }
    uint8_t *to = buffer->data + buffer->size;
    for (uint32_t plane = 0; plane < width; plane++) {
        for (uint32_t i = 0; i < count; i++) {
            to[i] = (uint8_t)(codes[i] >> (8 * plane));
        }
        to += count;
    }
    buffer->size += size;
}

/* Gathers, in map, the codes that a mapped column stores. NULL when memory is refused. */
static const uint32_t *gather_mapped(struct lahar_column_encoder *encoder,
                                     const struct lahar_column *column,
                                     const struct lahar_column *source, uint32_t *count_out,
                                     bool *is_identity_out)
{
    uint32_t *map = reserve_map(encoder, source->entry_count * 2);
    if (map == NULL) {
        return NULL;
    }
    uint32_t *stored = map + source->entry_count;
    const uint32_t *codes = lahar_column_codes(column);
    const uint32_t *rows = lahar_column_rows(column);
    const uint32_t *source_codes = lahar_column_codes(source);
    uint32_t count = 0;
    bool is_identity = true;
    for (uint32_t slot = 0; slot < column->slot_count; slot++) {
        uint32_t *mapped = &map[source_codes[rows[slot]]];
        if (*mapped == CODE_NONE) {
            *mapped = codes[slot];
            is_identity = is_identity && codes[slot] == count;
            stored[count++] = codes[slot];
        }
    }
    *count_out = count;
    *is_identity_out = is_identity;
    return stored;
}

static bool encode_codes(struct lahar_column_encoder *encoder, struct lahar_placed_column *placed,
                         const struct lahar_placed_column *columns)
{
    const struct lahar_column *column = placed->column;
    const enum lahar_block_group group =
        column->dense.are_codes ? LAHAR_GROUP_DENSE : placed->group;
    struct lahar_buffer *buffer = &encoder->groups[group];
    const size_t start = buffer->size;
    placed->codes = (struct lahar_section){group, (uint32_t)start, 0};
    if (column->entry_count <= 1) {
        placed->codes_encoding = LAHAR_CODES_CONSTANT;
        return true;
    }
    if (column->entry_count == column->slot_count && column->is_in_order) {
        placed->codes_encoding = LAHAR_CODES_IDENTITY;
        return true;
    }
    /* As many codes of the source as entries, so each new one brings a new entry. */
    if (placed->source != CODE_NONE && placed->stored_codes == column->entry_count &&
        column->is_in_order) {
        placed->codes_encoding = LAHAR_CODES_MAPPED_IDENTITY;
        return true;
    }
    const uint32_t width = column->entry_count <= 256 ? 1 : column->entry_count <= 65536 ? 2 : 4;
    const uint32_t kind = width == 4 ? 2 : width - 1;
    if (placed->source == CODE_NONE) {
        placed->codes_encoding = LAHAR_CODES_U8 + kind;
        put_codes(buffer, lahar_column_codes(column), column->slot_count, width);
    } else {
        uint32_t count = 0;
        bool is_identity = false;
        const uint32_t *stored =
            gather_mapped(encoder, column, columns[placed->source].column, &count, &is_identity);
        if (stored == NULL) {
            return false;
        }
        if (is_identity) {
            placed->codes_encoding = LAHAR_CODES_MAPPED_IDENTITY;
            return true;
        }
        placed->codes_encoding = LAHAR_CODES_MAPPED_U8 + kind;
        put_codes(buffer, stored, count, width);
    }
    placed->codes = end_section(encoder, group, start);
    return !buffer->has_failed;
}

/* --- entries -------------------------------------------------------------------- */

static enum lahar_block_group entries_group(const struct lahar_placed_column *placed)
{
    return placed->column->dense.are_entries ? LAHAR_GROUP_DENSE : placed->group;
}

/* Every entry is 36 bytes and a canonical uuid: appends them as 16 bytes each. */
static bool try_uuid_text(struct lahar_column_encoder *encoder, const struct lahar_column *column,
                          struct lahar_section *section_out)
{
    if (column->size_min != LAHAR_UUID_TEXT_SIZE || column->size_max != LAHAR_UUID_TEXT_SIZE) {
        return false;
    }
    struct lahar_buffer *buffer = &encoder->groups[LAHAR_GROUP_DENSE];
    const size_t start = buffer->size;
    const size_t size = (size_t)column->entry_count * sizeof(lahar_uuid);
    if (!lahar_buffer_reserve(buffer, size)) {
        return false;
    }
    for (uint32_t i = 0; i < column->entry_count; i++) {
        if (!lahar_uuid_text_parse(column->data.data + (size_t)i * LAHAR_UUID_TEXT_SIZE,
                                   buffer->data + start + i * sizeof(lahar_uuid))) {
            return false;
        }
    }
    buffer->size += size;
    *section_out = end_section(encoder, LAHAR_GROUP_DENSE, start);
    return true;
}

/* The number that eight decimal digits stand for, the first lowest in text; *wrong is or-ed with
 * something if one of them is none. */
static inline uint64_t parse_eight_digits(uint64_t text, uint64_t *wrong)
{
    const uint64_t zeros = 0x30 * LAHAR_HEX_ONES;
    const uint64_t digits = text ^ zeros; /* above 9 for anything but a digit */
    *wrong |= (digits | (digits + 6 * LAHAR_HEX_ONES)) & 0xf0 * LAHAR_HEX_ONES;
    const uint64_t pairs = (digits * 10 + (digits >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t fours = (pairs * 100 + (pairs >> 16)) & UINT64_C(0x0000ffff0000ffff);
    return (fours * 10000 + (fours >> 32)) & UINT32_MAX;
}

/* Goes on with a number by so many digits; what is behind them can be read up to
 * LAHAR_CELL_SLACK. False when one of them is none. */
static inline bool parse_digits(const uint8_t *data, uint32_t size, uint64_t *value)
{
    uint64_t wrong = 0;
    uint32_t i = 0;
    for (; size - i >= 8; i += 8) {
        *value = *value * 100000000 + parse_eight_digits(lahar_load_u64(data + i), &wrong);
    }
    if (i < size) {
        static const uint64_t powers[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
        /* The rest as the last of eight digits, with zeros in front. */
        const uint32_t bits = 8 * (size - i);
        const uint64_t digits =
            lahar_load_u64(data + i) << (64 - bits) | (0x30 * LAHAR_HEX_ONES) >> bits;
        *value = *value * powers[size - i] + parse_eight_digits(digits, &wrong);
    }
    return wrong == 0;
}

static bool parse_decimal(const uint8_t *data, uint32_t size, uint64_t *value_out)
{
    if (size == 0 || size > LAHAR_DECIMAL_SIZE_MAX || (data[0] == '0' && size > 1)) {
        return false;
    }
    *value_out = 0;
    return parse_digits(data, size, value_out);
}

/* Room for a number an entry, and slack behind the digits of the column; NULL when memory is
 * refused. */
static uint64_t *reserve_numbers(struct lahar_column_encoder *encoder, struct lahar_column *column)
{
    lahar_buffer_clear(&encoder->numbers);
    if (!lahar_buffer_reserve(&encoder->numbers, (size_t)column->entry_count * sizeof(uint64_t)) ||
        !lahar_buffer_reserve(&column->data, LAHAR_CELL_SLACK)) {
        encoder->has_failed = true;
        return NULL;
    }
    return (uint64_t *)(void *)encoder->numbers.data;
}

/* Appends numbers, and what comes before them, as the column's entries. */
static void put_numbers(struct lahar_column_encoder *encoder, struct lahar_placed_column *placed,
                        lahar_bytes head, const uint64_t *numbers)
{
    const enum lahar_block_group group = entries_group(placed);
    struct lahar_buffer *buffer = &encoder->groups[group];
    const size_t start = buffer->size;
    lahar_buffer_put(buffer, head.data, head.size);
    lahar_numbers_encode(buffer, numbers, placed->column->entry_count);
    placed->entries = end_section(encoder, group, start);
}

/* Every entry is a decimal number as it would be printed: appends them as numbers. */
static bool try_decimal(struct lahar_column_encoder *encoder, struct lahar_placed_column *placed)
{
    struct lahar_column *column = placed->column;
    if (column->size_min == 0 || column->size_max > LAHAR_DECIMAL_SIZE_MAX) {
        return false;
    }
    uint64_t *numbers = reserve_numbers(encoder, column);
    if (numbers == NULL) {
        return false;
    }
    const uint32_t *ends = lahar_column_ends(column);
    uint32_t start = 0;
    for (uint32_t i = 0; i < column->entry_count; i++) {
        if (!parse_decimal(column->data.data + start, ends[i] - start, &numbers[i])) {
            return false;
        }
        start = ends[i];
    }
    put_numbers(encoder, placed, (lahar_bytes){"", 0}, numbers);
    return true;
}

/* Every entry has the same number of digits: appends that number and the values. */
static bool try_padded(struct lahar_column_encoder *encoder, struct lahar_placed_column *placed)
{
    struct lahar_column *column = placed->column;
    const uint32_t size = column->size_min;
    if (size == 0 || size != column->size_max || size > LAHAR_DECIMAL_SIZE_MAX) {
        return false;
    }
    uint64_t *numbers = reserve_numbers(encoder, column);
    if (numbers == NULL) {
        return false;
    }
    const uint8_t *digits = column->data.data;
    for (uint32_t i = 0; i < column->entry_count; i++, digits += size) {
        numbers[i] = 0;
        if (!parse_digits(digits, size, &numbers[i])) {
            return false;
        }
    }
    const uint8_t head = (uint8_t)size;
    put_numbers(encoder, placed, (lahar_bytes){&head, 1}, numbers);
    return true;
}

/* Every entry has the same even number of hexadecimal digits: appends half of that number and the
 * bytes. */
static bool try_hex(struct lahar_column_encoder *encoder, struct lahar_placed_column *placed)
{
    const struct lahar_column *column = placed->column;
    const uint32_t size = column->size_min;
    if (size < HEX_SIZE_MIN || size % 2 != 0 || size != column->size_max || size > HEX_SIZE_MAX) {
        return false;
    }
    /* The first entry tells nearly always that there is no need to look at the others. */
    uint8_t first[HEX_SIZE_MAX / 2];
    if (!lahar_hex_parse(column->data.data, size / 2, first)) {
        return false;
    }
    const enum lahar_block_group group = entries_group(placed);
    struct lahar_buffer *buffer = &encoder->groups[group];
    const size_t start = buffer->size;
    const size_t count = column->data.size / 2;
    if (!lahar_buffer_reserve(buffer, count + 1)) {
        return false;
    }
    buffer->data[start] = (uint8_t)(size / 2);
    if (!lahar_hex_parse(column->data.data, count, buffer->data + start + 1)) {
        return false;
    }
    buffer->size += count + 1;
    placed->entries = end_section(encoder, group, start);
    return true;
}

/* Sizes: u8 1 and one varint when all are the same, else u8 0 and a varint each. */
static void put_sizes(struct lahar_buffer *buffer, const struct lahar_column *column)
{
    const bool is_same = column->size_min == column->size_max;
    lahar_buffer_put_u8(buffer, is_same ? 1 : 0);
    if (is_same) {
        lahar_buffer_put_varint(buffer, column->size_min);
        return;
    }
    const uint32_t *ends = lahar_column_ends(column);
    uint32_t start = 0;
    for (uint32_t i = 0; i < column->entry_count; i++) {
        lahar_buffer_put_varint(buffer, ends[i] - start);
        start = ends[i];
    }
}

static void encode_raw_bytes(struct lahar_column_encoder *encoder,
                             struct lahar_placed_column *placed)
{
    struct lahar_column *column = placed->column;
    struct lahar_buffer *buffer = &encoder->groups[placed->group];
    size_t start = buffer->size;
    put_sizes(buffer, column);
    placed->entries = end_section(encoder, placed->group, start);
    if (column->data.size > LAHAR_BLOCK_PIECE_SIZE) {
        placed->text = (struct lahar_section){LAHAR_GROUP_COUNT +
                                                  lahar_column_encoder_long_text_count(encoder),
                                              0, (uint32_t)column->data.size};
        lahar_buffer_put(&encoder->long_texts, &column, sizeof column);
        return;
    }
    const enum lahar_block_group group = column->dense.is_text ? LAHAR_GROUP_DENSE : placed->group;
    buffer = &encoder->groups[group];
    start = buffer->size;
    lahar_buffer_put(buffer, column->data.data, column->data.size);
    placed->text = end_section(encoder, group, start);
}

static void encode_entries(struct lahar_column_encoder *encoder, struct lahar_placed_column *placed)
{
    struct lahar_column *column = placed->column;
    struct lahar_buffer *buffer = &encoder->groups[placed->group];
    size_t start = buffer->size;
    placed->entries_encoding = LAHAR_ENTRIES_RAW;
    placed->entries = (struct lahar_section){placed->group, (uint32_t)start, 0};
    placed->text = placed->entries;
    if (column->entry_count == 0) {
        return;
    }
    if (placed->split != NULL) {
        placed->entries_encoding = LAHAR_ENTRIES_TEMPLATES;
        lahar_text_split_put_gaps(placed->split, buffer);
        placed->entries = end_section(encoder, placed->group, start);
        encoder->has_templates = true;
        return;
    }
    switch (column->kind) {
    case LAHAR_COLUMN_INT:
        put_numbers(encoder, placed, (lahar_bytes){"", 0},
                    (const uint64_t *)(const void *)column->data.data);
        return;
    case LAHAR_COLUMN_UUID:
        buffer = &encoder->groups[LAHAR_GROUP_DENSE];
        start = buffer->size;
        lahar_buffer_put(buffer, column->data.data, column->data.size);
        placed->entries = end_section(encoder, LAHAR_GROUP_DENSE, start);
        return;
    case LAHAR_COLUMN_BYTES:
        if (try_uuid_text(encoder, column, &placed->entries)) {
            placed->entries_encoding = LAHAR_ENTRIES_UUID_TEXT;
        } else if (try_decimal(encoder, placed)) {
            placed->entries_encoding = LAHAR_ENTRIES_DECIMAL;
        } else if (placed->is_variable && try_padded(encoder, placed)) {
            placed->entries_encoding = LAHAR_ENTRIES_PADDED;
            encoder->has_templates = true;
        } else if (try_hex(encoder, placed)) {
            placed->entries_encoding = LAHAR_ENTRIES_HEX;
            encoder->has_templates = true;
        } else {
            encode_raw_bytes(encoder, placed);
        }
        return;
    }
}

bool lahar_column_encoder_run(struct lahar_column_encoder *encoder,
                              struct lahar_placed_column *columns, uint32_t count,
                              uint32_t row_count)
{
    for (uint32_t i = 0; i < LAHAR_GROUP_COUNT; i++) {
        lahar_buffer_clear(&encoder->groups[i]);
    }
    lahar_buffer_clear(&encoder->long_texts);
    lahar_buffer_clear(&encoder->sections);
    encoder->has_templates = false;
    if (!choose_sources(encoder, columns, count, row_count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!encode_codes(encoder, &columns[i], columns)) {
            return false;
        }
        encode_entries(encoder, &columns[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_placed_column *placed = &columns[i];
        lahar_column_learn(placed->column,
                           placed->source == CODE_NONE ? NULL : columns[placed->source].column,
                           placed->stored_codes);
    }
    bool has_failed =
        encoder->long_texts.has_failed || encoder->sections.has_failed || encoder->has_failed;
    for (uint32_t i = 0; i < LAHAR_GROUP_COUNT; i++) {
        has_failed = has_failed || encoder->groups[i].has_failed;
    }
    return !has_failed;
}
