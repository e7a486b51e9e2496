#include "engine/segment/column_writer.h"

#include <string.h>

#include "engine/segment/bytes_equal.h"

enum {
    TABLE_SIZE_MIN = 16,
    /* What a column keeps between blocks; a jumbo event must not stay in memory. */
    BUFFER_KEPT_MAX = 2 * 1024 * 1024,
    /* A column without repeats is filled without looking for so many blocks. */
    PLAIN_BLOCK_COUNT = 15,
    LESSON_SLOT_COUNT = 128 /* a block with fewer slots teaches nothing */
};

void lahar_column_init(struct lahar_column *column, enum lahar_column_kind kind,
                       const lahar_allocator *allocator)
{
    *column = (struct lahar_column){.kind = kind, .allocator = allocator, .is_hashed = true};
    column->size_min = UINT32_MAX;
    column->last_row = UINT32_MAX;
    lahar_buffer_init(&column->codes, allocator);
    lahar_buffer_init(&column->rows, allocator);
    lahar_buffer_init(&column->ends, allocator);
    lahar_buffer_init(&column->data, allocator);
    lahar_buffer_init(&column->hashes, allocator);
    lahar_buffer_init(&column->guesses, allocator);
}

void lahar_column_deinit(struct lahar_column *column)
{
    lahar_buffer_deinit(&column->codes);
    lahar_buffer_deinit(&column->rows);
    lahar_buffer_deinit(&column->ends);
    lahar_buffer_deinit(&column->data);
    lahar_buffer_deinit(&column->hashes);
    lahar_buffer_deinit(&column->guesses);
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

void lahar_column_learn(struct lahar_column *column, const struct lahar_column *source,
                        uint32_t source_codes)
{
    column->source = source;
    if (column->slot_count < LESSON_SLOT_COUNT) {
        return;
    }
    /* Values that are new whenever the source's is need no look either. */
    const uint32_t places = source == NULL ? column->slot_count : source_codes;
    const bool has_no_repeats = column->entry_count >= places - places / 32;
    const bool had_lesson = !column->is_hashed;
    column->followed = source != NULL && source->is_field ? source : NULL;
    if (!has_no_repeats || (source != NULL && column->followed == NULL)) {
        column->plain_blocks = 0;
    } else if (had_lesson) {
        column->plain_blocks--;
    } else {
        column->plain_blocks = PLAIN_BLOCK_COUNT;
    }
}

void lahar_column_clear(struct lahar_column *column)
{
    if (column->slot_count == 0) {
        return;
    }
    column->is_hashed = column->plain_blocks == 0;
    column->slot_count = 0;
    column->entry_count = 0;
    column->size_min = UINT32_MAX;
    column->size_max = 0;
    column->last_code = 0;
    column->last_row = UINT32_MAX;
    column->has_repeat_in_row = false;
    column->source = NULL;
    clear_buffer(&column->codes, column->allocator);
    clear_buffer(&column->rows, column->allocator);
    clear_buffer(&column->ends, column->allocator);
    clear_buffer(&column->data, column->allocator);
    clear_buffer(&column->hashes, column->allocator);
    clear_buffer(&column->guesses, column->allocator);
    if (column->table_size * sizeof column->table[0] > BUFFER_KEPT_MAX) {
        lahar_release(column->allocator, column->table);
        column->table = NULL;
        column->table_size = 0;
    } else if (column->table != NULL) {
        memset(column->table, 0, column->table_size * sizeof column->table[0]);
    }
}

/* What a value costs is mostly calls between these, which are too many for the compiler's taste. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

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

static ALWAYS_INLINE bool entry_equals(const struct lahar_column *column, uint32_t entry,
                                       const uint8_t *data, size_t size)
{
    const uint32_t *ends = lahar_column_ends(column);
    const uint32_t start = entry == 0 ? 0 : ends[entry - 1];
    return ends[entry] - start == size &&
           (size == 0 || lahar_bytes_equal(column->data.data + start, data, size));
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

bool lahar_column_grow_slots(struct lahar_column *column)
{
    const size_t size = (size_t)column->slot_count * sizeof(uint32_t);
    column->codes.size = size;
    column->rows.size = size;
    return lahar_buffer_reserve(&column->codes, sizeof(uint32_t)) &&
           lahar_buffer_reserve(&column->rows, sizeof(uint32_t));
}

/* Copies without a call for the sizes that most values have. */
static inline void copy_bytes(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size > 32) {
        memcpy(to, from, size);
    } else if (size >= 16) {
        memcpy(to, from, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        memcpy(to, from, 4);
        memcpy(to + size - 4, from + size - 4, 4);
    } else if (size != 0) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
}

/* Takes the value at data as a new entry. */
static ALWAYS_INLINE bool put_entry(struct lahar_column *column, const void *data, size_t size)
{
    if (!lahar_buffer_reserve(&column->data, size)) {
        return false;
    }
    if (size != 0) {
        copy_bytes(column->data.data + column->data.size, data, size);
        column->data.size += size;
    }
    if (column->kind == LAHAR_COLUMN_BYTES) {
        if (!lahar_buffer_reserve(&column->ends, sizeof(uint32_t))) {
            return false;
        }
        lahar_store_u32(column->ends.data + column->ends.size, (uint32_t)column->data.size);
        column->ends.size += sizeof(uint32_t);
        column->size_min = size < column->size_min ? (uint32_t)size : column->size_min;
        column->size_max = size > column->size_max ? (uint32_t)size : column->size_max;
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

/* What the followed column's value in this row has brought before. */
static ALWAYS_INLINE uint32_t guess(const struct lahar_column *column, uint32_t row)
{
    if (column->followed == NULL || column->followed->last_row != row) {
        return LAHAR_GUESS_NONE;
    }
    const size_t at = column->followed->last_code * sizeof(uint32_t);
    return at < column->guesses.size ? lahar_load_u32(column->guesses.data + at) : LAHAR_GUESS_NONE;
}

/* Makes guesses reach the place of a code of the followed column. */
static bool grow_guesses(struct lahar_column *column, size_t place)
{
    struct lahar_buffer *guesses = &column->guesses;
    if (!lahar_buffer_reserve(guesses, place + sizeof(uint32_t) - guesses->size)) {
        return false;
    }
    memset(guesses->data + guesses->size, 0xff, guesses->capacity - guesses->size);
    guesses->size = guesses->capacity / sizeof(uint32_t) * sizeof(uint32_t);
    return true;
}

/* Adds a slot that holds code, to be guessed where the followed column repeats. */
static ALWAYS_INLINE bool put_guessable_slot(struct lahar_column *column, uint32_t row,
                                             uint32_t code)
{
    if (column->followed != NULL && column->followed->last_row == row) {
        const size_t at = column->followed->last_code * sizeof(uint32_t);
        if (at >= column->guesses.size && !grow_guesses(column, at)) {
            return false;
        }
        lahar_store_u32(column->guesses.data + at, code);
    }
    return lahar_column_add_code(column, row, code);
}

bool lahar_column_add_bytes(struct lahar_column *column, uint32_t row, const void *data,
                            size_t size)
{
    const uint32_t guessed = guess(column, row);
    if (guessed != LAHAR_GUESS_NONE && entry_equals(column, guessed, data, size)) {
        return lahar_column_add_code(column, row, guessed);
    }
    if (!column->is_hashed) {
        return put_entry(column, data, size) &&
               put_guessable_slot(column, row, column->entry_count - 1);
    }
    if (column->slot_count != 0 && entry_equals(column, column->last_code, data, size)) {
        return put_guessable_slot(column, row, column->last_code);
    }
    const uint32_t hash = hash_bytes(data, size);
    if (column->table_size != 0) {
        const uint32_t *hashes = (const uint32_t *)(const void *)column->hashes.data;
        for (uint32_t at = hash & column->table_mask; column->table[at] != 0;
             at = (at + 1) & column->table_mask) {
            const uint32_t entry = column->table[at] - 1;
            if (hashes[entry] == hash && entry_equals(column, entry, data, size)) {
                return put_guessable_slot(column, row, entry);
            }
        }
    }
    return put_hashed_entry(column, hash, data, size) &&
           put_guessable_slot(column, row, column->entry_count - 1);
}

static inline bool fixed_equals(const uint8_t *a, const uint8_t *b, size_t size)
{
    return ((lahar_load_u64(a) ^ lahar_load_u64(b)) |
            (lahar_load_u64(a + size - 8) ^ lahar_load_u64(b + size - 8))) == 0;
}

/* A value of a fixed number of bytes, 8 or 16. */
static inline bool add_fixed(struct lahar_column *column, uint32_t row, const uint8_t *data,
                             size_t size)
{
    const uint32_t guessed = guess(column, row);
    if (guessed != LAHAR_GUESS_NONE &&
        fixed_equals(column->data.data + (size_t)guessed * size, data, size)) {
        return lahar_column_add_code(column, row, guessed);
    }
    if (!column->is_hashed) {
        return put_entry(column, data, size) &&
               put_guessable_slot(column, row, column->entry_count - 1);
    }
    const uint64_t mixed = mix(lahar_load_u64(data), size > 8 ? lahar_load_u64(data + 8) : 0);
    const uint32_t hash = (uint32_t)(mixed ^ mixed >> 32);
    if (column->table_size != 0) {
        for (uint32_t at = hash & column->table_mask; column->table[at] != 0;
             at = (at + 1) & column->table_mask) {
            const uint32_t entry = column->table[at] - 1;
            if (fixed_equals(column->data.data + (size_t)entry * size, data, size)) {
                return put_guessable_slot(column, row, entry);
            }
        }
    }
    return put_hashed_entry(column, hash, data, size) &&
           put_guessable_slot(column, row, column->entry_count - 1);
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
           lahar_column_add_code(column, row, column->entry_count - 1);
}
