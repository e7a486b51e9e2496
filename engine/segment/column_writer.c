#include "engine/segment/column_writer.h"

#include <string.h>

enum {
    CELL_COUNT_MIN = 128,
    TABLE_SIZE_MIN = 16,
    /* What a column keeps between blocks; a jumbo event must not stay in memory. */
    BUFFER_KEPT_MAX = 2 * 1024 * 1024,
    /* A column without repeats is filled without looking for so many blocks. */
    PLAIN_BLOCK_COUNT = 15,
    /* Where another column tells of repeats, one in so many may be missed: deflate finds them
     * cheaply, and their codes need no bytes any more. */
    FOLLOWED_REPEAT_SHARE = 4,
    LESSON_SLOT_COUNT = 32 /* a block with fewer slots teaches nothing */
};

void lahar_column_init(struct lahar_column *column, enum lahar_column_kind kind,
                       const lahar_allocator *allocator)
{
    *column = (struct lahar_column){.kind = kind, .allocator = allocator, .is_hashed = true};
    column->size_min = UINT32_MAX;
    column->last_row = UINT32_MAX;
    column->is_in_order = true;
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
    lahar_release(column->allocator, column->cells);
    column->table = NULL;
    column->cells = NULL;
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
    const bool has_no_repeats =
        column->entry_count >= places - places / (source == NULL ? 32 : FOLLOWED_REPEAT_SHARE);
    const bool had_lesson = !column->is_hashed;
    column->followed = source != NULL && source->is_field && column->takes_cells ? source : NULL;
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
    column->is_mirror = column->followed != NULL && !column->is_hashed;
    column->slot_count = 0;
    column->entry_count = 0;
    column->size_min = UINT32_MAX;
    column->size_max = 0;
    column->last_code = 0;
    column->last_row = UINT32_MAX;
    column->has_repeat_in_row = false;
    column->is_in_order = true;
    column->followed_slots = 0;
    column->followed_codes = 0;
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
    uint64_t a = 0;
    uint64_t b = 0;
    if (size > 16) {
        /* The last sixteen overlap those before, so that no bytes are left. */
        const uint8_t *last = data + size - 16;
        hash = mix(lahar_load_u64(data) ^ hash, lahar_load_u64(data + 8));
        for (data += 16; data < last; data += 16) {
            hash = mix(lahar_load_u64(data) ^ hash, lahar_load_u64(data + 8));
        }
        a = lahar_load_u64(last);
        b = lahar_load_u64(last + 8);
    } else if (size >= 8) {
        a = lahar_load_u64(data);
        b = lahar_load_u64(data + size - 8);
    } else if (size >= 4) {
        a = lahar_load_u32(data);
        b = lahar_load_u32(data + size - 4);
    } else if (size > 0) {
        a = (uint64_t)data[0] | (uint64_t)data[size / 2] << 8 | (uint64_t)data[size - 1] << 16;
    }
    hash = mix(a ^ hash, b);
    return (uint32_t)(hash ^ hash >> 32);
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

bool lahar_column_reserve_slots(struct lahar_column *column, uint32_t count)
{
    const size_t size = (size_t)column->slot_count * sizeof(uint32_t);
    column->codes.size = size;
    column->rows.size = size;
    return lahar_buffer_reserve(&column->codes, (size_t)count * sizeof(uint32_t)) &&
           lahar_buffer_reserve(&column->rows, (size_t)count * sizeof(uint32_t));
}

bool lahar_column_grow_cells(struct lahar_column *column)
{
    if (column->cell_capacity > UINT32_MAX / 2) {
        return false;
    }
    const uint32_t capacity =
        column->cell_capacity == 0 ? (uint32_t)CELL_COUNT_MIN : column->cell_capacity * 2;
    struct lahar_cell *cells =
        lahar_reallocate(column->allocator, column->cells, (size_t)capacity * sizeof cells[0]);
    if (cells == NULL) {
        return false;
    }
    column->cells = cells;
    column->cell_capacity = capacity;
    return true;
}

/* Takes the value at data as a new entry. */
static ALWAYS_INLINE bool put_entry(struct lahar_column *column, const void *data, size_t size)
{
    if (!lahar_buffer_reserve(&column->data, size)) {
        return false;
    }
    if (size != 0) {
        (void)lahar_copy_short(column->data.data + column->data.size, data, size);
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

bool lahar_column_find_bytes(struct lahar_column *column, const void *data, size_t size,
                             uint32_t *code_out)
{
    if (!column->is_hashed) {
        *code_out = column->entry_count;
        return put_entry(column, data, size);
    }
    if (column->entry_count != 0 &&
        lahar_column_entry_equals(column, column->last_code, data, size)) {
        *code_out = column->last_code;
        return true;
    }
    const uint32_t hash = hash_bytes(data, size);
    if (column->table_size != 0) {
        const uint32_t *hashes = (const uint32_t *)(const void *)column->hashes.data;
        for (uint32_t at = hash & column->table_mask; column->table[at] != 0;
             at = (at + 1) & column->table_mask) {
            const uint32_t entry = column->table[at] - 1;
            if (hashes[entry] == hash && lahar_column_entry_equals(column, entry, data, size)) {
                *code_out = entry;
                return true;
            }
        }
    }
    *code_out = column->entry_count;
    return put_hashed_entry(column, hash, data, size);
}

bool lahar_column_find_fixed(struct lahar_column *column, const uint8_t *data, size_t size,
                             uint32_t *code_out)
{
    if (!column->is_hashed) {
        *code_out = column->entry_count;
        return put_entry(column, data, size);
    }
    if (column->entry_count != 0 &&
        lahar_column_fixed_equals(column->data.data + (size_t)column->last_code * size, data,
                                  size)) {
        *code_out = column->last_code;
        return true;
    }
    const uint64_t mixed = mix(lahar_load_u64(data), size > 8 ? lahar_load_u64(data + 8) : 0);
    const uint32_t hash = (uint32_t)(mixed ^ mixed >> 32);
    if (column->table_size != 0) {
        for (uint32_t at = hash & column->table_mask; column->table[at] != 0;
             at = (at + 1) & column->table_mask) {
            const uint32_t entry = column->table[at] - 1;
            if (lahar_column_fixed_equals(column->data.data + (size_t)entry * size, data, size)) {
                *code_out = entry;
                return true;
            }
        }
    }
    *code_out = column->entry_count;
    return put_hashed_entry(column, hash, data, size);
}

/* Where a column of bytes looks for repeats; until an entry is added. */
struct lookup {
    const uint32_t *table;
    const uint32_t *hashes;
    const uint32_t *ends;
    const uint8_t *data;
    uint32_t mask;
};

static inline struct lookup lookup_of(const struct lahar_column *column)
{
    return (struct lookup){.table = column->table,
                           .hashes = (const uint32_t *)(const void *)column->hashes.data,
                           .ends = lahar_column_ends(column),
                           .data = column->data.data,
                           .mask = column->table_mask};
}

static ALWAYS_INLINE bool entry_is(const struct lookup *lookup, uint32_t entry, const uint8_t *data,
                                   uint32_t size)
{
    const uint32_t start = entry == 0 ? 0 : lookup->ends[entry - 1];
    return lookup->ends[entry] - start == size &&
           (size == 0 || lahar_bytes_equal(lookup->data + start, data, size));
}

/* The code of a value + 1, 0 when there is none yet. */
static ALWAYS_INLINE uint32_t look_up(const struct lookup *lookup, uint32_t hash,
                                      const uint8_t *data, uint32_t size)
{
    uint32_t at = hash & lookup->mask;
    while (lookup->table[at] != 0 && !(lookup->hashes[lookup->table[at] - 1] == hash &&
                                       entry_is(lookup, lookup->table[at] - 1, data, size))) {
        at = (at + 1) & lookup->mask;
    }
    return lookup->table[at];
}

static bool find_bytes_cells(struct lahar_column *column, const uint32_t *numbers, uint32_t count,
                             uint32_t *codes_out)
{
    const struct lahar_cell *cells = column->cells;
    if (!grow_table(column)) {
        return false;
    }
    struct lookup lookup = lookup_of(column);
    uint32_t code = column->last_code;
    for (uint32_t k = 0; k < count; k++) {
        const struct lahar_cell *cell = &cells[numbers == NULL ? k : numbers[k]];
        if (column->entry_count == 0 || !entry_is(&lookup, code, cell->data, cell->size)) {
            const uint32_t hash = hash_bytes(cell->data, cell->size);
            const uint32_t found = look_up(&lookup, hash, cell->data, cell->size);
            code = found == 0 ? column->entry_count : found - 1;
            if (found == 0) {
                if (!put_hashed_entry(column, hash, cell->data, cell->size)) {
                    return false;
                }
                lookup = lookup_of(column);
            }
        }
        codes_out[k] = code;
    }
    column->last_code = code;
    return true;
}

bool lahar_column_find_cells(struct lahar_column *column, const uint32_t *numbers, uint32_t count,
                             uint32_t *codes_out)
{
    if (column->kind == LAHAR_COLUMN_BYTES) {
        return find_bytes_cells(column, numbers, count, codes_out);
    }
    const size_t size = column->kind == LAHAR_COLUMN_UUID ? sizeof(lahar_uuid) : sizeof(uint64_t);
    for (uint32_t k = 0; k < count; k++) {
        const struct lahar_cell *cell = &column->cells[numbers == NULL ? k : numbers[k]];
        if (!lahar_column_find_fixed(column, cell->data, size, &codes_out[k])) {
            return false;
        }
        column->last_code = codes_out[k];
    }
    return true;
}

bool lahar_column_add_bytes(struct lahar_column *column, uint32_t row, const void *data,
                            size_t size)
{
    uint32_t code = 0;
    return lahar_column_find_bytes(column, data, size, &code) &&
           lahar_column_add_code(column, row, code);
}

bool lahar_column_add_uuid(struct lahar_column *column, uint32_t row, const lahar_uuid *uuid)
{
    uint32_t code = 0;
    return lahar_column_find_fixed(column, uuid->bytes, sizeof uuid->bytes, &code) &&
           lahar_column_add_code(column, row, code);
}

bool lahar_column_add_int(struct lahar_column *column, uint32_t row, uint64_t value)
{
    uint32_t code = 0;
    if (!column->is_hashed) {
        return lahar_column_add_plain_int(column, row, value);
    }
    return lahar_column_find_fixed(column, (const uint8_t *)&value, sizeof value, &code) &&
           lahar_column_add_code(column, row, code);
}

bool lahar_column_add_known(struct lahar_column *column, uint32_t row, uint64_t value,
                            uint32_t *memo)
{
    if (*memo == 0) {
        if (!put_entry(column, &value, sizeof value)) {
            return false;
        }
        *memo = column->entry_count;
    }
    return lahar_column_add_code(column, row, *memo - 1);
}
