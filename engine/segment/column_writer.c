#include "engine/segment/column_writer.h"

#include <string.h>

enum {
    TABLE_SIZE_MIN = 16,
    /* What a column keeps between blocks; a jumbo event must not stay in memory. */
    BUFFER_KEPT_MAX = 2 * 1024 * 1024,
    /* A column without repeats is filled without looking for so many blocks. */
    PLAIN_BLOCK_COUNT = 15
};

void lahar_column_init(struct lahar_column *column, enum lahar_column_kind kind,
                       const lahar_allocator *allocator)
{
    *column = (struct lahar_column){.kind = kind, .allocator = allocator, .is_hashed = true};
    column->size_min = UINT32_MAX;
    lahar_buffer_init(&column->codes, allocator);
    lahar_buffer_init(&column->rows, allocator);
    lahar_buffer_init(&column->ends, allocator);
    lahar_buffer_init(&column->data, allocator);
    lahar_buffer_init(&column->hashes, allocator);
}

void lahar_column_deinit(struct lahar_column *column)
{
    lahar_buffer_deinit(&column->codes);
    lahar_buffer_deinit(&column->rows);
    lahar_buffer_deinit(&column->ends);
    lahar_buffer_deinit(&column->data);
    lahar_buffer_deinit(&column->hashes);
    lahar_release(column->allocator, column->table);
    column->table = NULL;
}

static void clear_buffer(struct lahar_buffer *buffer, const lahar_allocator *allocator)
{
    if (buffer->capacity > BUFFER_KEPT_MAX) {
        lahar_buffer_deinit(buffer);
        lahar_buffer_init(buffer, allocator);
    } else {
        lahar_buffer_clear(buffer);
    }
}

void lahar_column_clear(struct lahar_column *column)
{
    if (column->slot_count == 0) {
        return;
    }
    if (column->is_hashed) {
        const bool has_no_repeats =
            column->slot_count >= 256 &&
            column->entry_count >= column->slot_count - column->slot_count / 64;
        column->plain_blocks = has_no_repeats ? PLAIN_BLOCK_COUNT : 0;
    } else if (column->plain_blocks > 0) {
        column->plain_blocks--;
    }
    column->is_hashed = column->plain_blocks == 0;
    column->slot_count = 0;
    column->entry_count = 0;
    column->size_min = UINT32_MAX;
    column->size_max = 0;
    column->last_code = 0;
    column->has_repeat_in_row = false;
    clear_buffer(&column->codes, column->allocator);
    clear_buffer(&column->rows, column->allocator);
    clear_buffer(&column->ends, column->allocator);
    clear_buffer(&column->data, column->allocator);
    clear_buffer(&column->hashes, column->allocator);
    if (column->table_size * sizeof column->table[0] > BUFFER_KEPT_MAX) {
        lahar_release(column->allocator, column->table);
        column->table = NULL;
        column->table_size = 0;
    } else if (column->table != NULL) {
        memset(column->table, 0, column->table_size * sizeof column->table[0]);
    }
}

/* --- the dictionary ------------------------------------------------------------ */

__extension__ typedef unsigned __int128 uint128;

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    const uint128 product =
        (uint128)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Spreads values over the table of one block; neither stored nor compared elsewhere. */
static inline uint32_t hash_bytes(const uint8_t *data, size_t size)
{
    uint64_t hash = size;
    size_t left = size;
    while (left > 16) {
        hash = mix(lahar_load_u64(data) ^ hash, lahar_load_u64(data + 8));
        data += 16;
        left -= 16;
    }
    uint64_t a = 0;
    uint64_t b = 0;
    if (left >= 8) {
        a = lahar_load_u64(data);
        b = lahar_load_u64(data + left - 8);
    } else if (left >= 4) {
        a = lahar_load_u32(data);
        b = lahar_load_u32(data + left - 4);
    } else if (left > 0) {
        a = (uint64_t)data[0] | (uint64_t)data[left / 2] << 8 | (uint64_t)data[left - 1] << 16;
    }
    hash = mix(a ^ hash, b);
    return (uint32_t)(hash ^ hash >> 32);
}

static inline bool bytes_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    if (size >= 8 && size <= 16) {
        return ((lahar_load_u64(a) ^ lahar_load_u64(b)) |
                (lahar_load_u64(a + size - 8) ^ lahar_load_u64(b + size - 8))) == 0;
    }
    return size == 0 || memcmp(a, b, size) == 0;
}

static inline bool entry_equals(const struct lahar_column *column, uint32_t entry,
                                const uint8_t *data, size_t size)
{
    const uint32_t *ends = lahar_column_ends(column);
    const uint32_t start = entry == 0 ? 0 : ends[entry - 1];
    return ends[entry] - start == size && bytes_equal(column->data.data + start, data, size);
}

static bool grow_table(struct lahar_column *column)
{
    if (column->table_size != 0 && (column->entry_count + 1) * 2 <= column->table_size) {
        return true;
    }
    const uint32_t size = column->table_size == 0 ? TABLE_SIZE_MIN : column->table_size * 2;
    uint32_t *table = lahar_allocate_zeroed(column->allocator, size, sizeof table[0]);
    if (table == NULL) {
        return false;
    }
    const uint32_t *hashes = (const uint32_t *)(const void *)column->hashes.data;
    for (uint32_t entry = 0; entry < column->entry_count; entry++) {
        uint32_t at = hashes[entry] & (size - 1);
        while (table[at] != 0) {
            at = (at + 1) & (size - 1);
        }
        table[at] = entry + 1;
    }
    lahar_release(column->allocator, column->table);
    column->table = table;
    column->table_size = size;
    column->table_mask = size - 1;
    return true;
}

static inline bool put_slot(struct lahar_column *column, uint32_t row, uint32_t code)
{
    lahar_buffer_put_u32(&column->codes, code);
    lahar_buffer_put_u32(&column->rows, row);
    if (column->codes.has_failed || column->rows.has_failed) {
        return false;
    }
    if (column->slot_count != 0) {
        column->has_repeat_in_row |= lahar_column_rows(column)[column->slot_count - 1] == row;
    }
    column->slot_count++;
    column->last_code = code;
    return true;
}

/* Takes the value at data as a new entry. */
static inline bool put_entry(struct lahar_column *column, const void *data, size_t size)
{
    lahar_buffer_put(&column->data, data, size);
    if (column->kind == LAHAR_COLUMN_BYTES) {
        lahar_buffer_put_u32(&column->ends, (uint32_t)column->data.size);
        column->size_min = size < column->size_min ? (uint32_t)size : column->size_min;
        column->size_max = size > column->size_max ? (uint32_t)size : column->size_max;
    }
    if (column->data.has_failed || column->ends.has_failed) {
        return false;
    }
    column->entry_count++;
    return true;
}

static bool put_hashed_entry(struct lahar_column *column, uint32_t hash, const void *data,
                             size_t size)
{
    if (!grow_table(column)) {
        return false;
    }
    lahar_buffer_put_u32(&column->hashes, hash);
    if (column->hashes.has_failed || !put_entry(column, data, size)) {
        return false;
    }
    uint32_t at = hash & column->table_mask;
    while (column->table[at] != 0) {
        at = (at + 1) & column->table_mask;
    }
    column->table[at] = column->entry_count;
    return true;
}

bool lahar_column_add_bytes(struct lahar_column *column, uint32_t row, const void *data,
                            size_t size)
{
    if (!column->is_hashed) {
        return put_entry(column, data, size) && put_slot(column, row, column->entry_count - 1);
    }
    if (column->slot_count != 0 && entry_equals(column, column->last_code, data, size)) {
        return put_slot(column, row, column->last_code);
    }
    const uint32_t hash = hash_bytes(data, size);
    if (column->table_size != 0) {
        const uint32_t *hashes = (const uint32_t *)(const void *)column->hashes.data;
        for (uint32_t at = hash & column->table_mask; column->table[at] != 0;
             at = (at + 1) & column->table_mask) {
            const uint32_t entry = column->table[at] - 1;
            if (hashes[entry] == hash && entry_equals(column, entry, data, size)) {
                return put_slot(column, row, entry);
            }
        }
    }
    return put_hashed_entry(column, hash, data, size) &&
           put_slot(column, row, column->entry_count - 1);
}

/* A value of a fixed number of bytes, 8 or 16. */
static inline bool add_fixed(struct lahar_column *column, uint32_t row, const uint8_t *data,
                             size_t size)
{
    if (!column->is_hashed) {
        return put_entry(column, data, size) && put_slot(column, row, column->entry_count - 1);
    }
    const uint64_t mixed = mix(lahar_load_u64(data), size > 8 ? lahar_load_u64(data + 8) : 0);
    const uint32_t hash = (uint32_t)(mixed ^ mixed >> 32);
    if (column->table_size != 0) {
        for (uint32_t at = hash & column->table_mask; column->table[at] != 0;
             at = (at + 1) & column->table_mask) {
            const uint32_t entry = column->table[at] - 1;
            if (memcmp(column->data.data + (size_t)entry * size, data, size) == 0) {
                return put_slot(column, row, entry);
            }
        }
    }
    return put_hashed_entry(column, hash, data, size) &&
           put_slot(column, row, column->entry_count - 1);
}

bool lahar_column_add_uuid(struct lahar_column *column, uint32_t row, const lahar_uuid *uuid)
{
    return add_fixed(column, row, uuid->bytes, sizeof uuid->bytes);
}

bool lahar_column_add_int(struct lahar_column *column, uint32_t row, uint64_t value)
{
    return add_fixed(column, row, (const uint8_t *)&value, sizeof value);
}

bool lahar_column_add_plain_int(struct lahar_column *column, uint32_t row, uint64_t value)
{
    return put_entry(column, &value, sizeof value) &&
           put_slot(column, row, column->entry_count - 1);
}
