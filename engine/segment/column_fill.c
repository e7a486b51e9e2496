#include "engine/segment/column_fill.h"

#include <string.h>

/* The cells of one call, parted. */
struct parting {
    uint32_t *codes;  /* by cell; where the column's codes will be */
    uint32_t *firsts; /* cells whose followed value is met first */
    uint32_t *others;
    uint32_t *found; /* by first cell: its code, in columns that look for repeats */
    uint32_t first_count;
    uint32_t other_count;
};

/* Bytes of a value, 0: it has a size of its own. */
static inline uint32_t width_of(const struct lahar_column *column)
{
    switch (column->kind) {
    case LAHAR_COLUMN_UUID:
        return sizeof(lahar_uuid);
    case LAHAR_COLUMN_INT:
        return sizeof(uint64_t);
    case LAHAR_COLUMN_BYTES:
        break;
    }
    return 0;
}

static inline bool find(struct lahar_column *column, const struct lahar_cell *cell,
                        uint32_t *code_out)
{
    return column->kind == LAHAR_COLUMN_BYTES
               ? lahar_column_find_bytes(column, cell->data, cell->size, code_out)
               : lahar_column_find_fixed(column, cell->data, width_of(column), code_out);
}

static inline bool holds(const struct lahar_column *column, uint32_t code,
                         const struct lahar_cell *cell, uint32_t width)
{
    return width == 0 ? lahar_column_entry_equals(column, code, cell->data, cell->size)
                      : lahar_column_fixed_equals(column->data.data + (size_t)code * width,
                                                  cell->data, width);
}

/* --- appending -------------------------------------------------------------------------- */

/* Copies in steps of the slack that cells have behind them. */
static inline void copy_cell(uint8_t *to, const struct lahar_cell *cell)
{
    memcpy(to, cell->data, LAHAR_CELL_SLACK);
    for (uint32_t at = LAHAR_CELL_SLACK; at < cell->size; at += LAHAR_CELL_SLACK) {
        memcpy(to + at, cell->data + at, LAHAR_CELL_SLACK);
    }
}

static bool append_bytes(struct lahar_column *column, const uint32_t *numbers, uint32_t count)
{
    size_t total = LAHAR_CELL_SLACK;
    for (uint32_t i = 0; i < count; i++) {
        total += column->cells[numbers[i]].size;
    }
    if (!lahar_buffer_reserve(&column->data, total) ||
        !lahar_buffer_reserve(&column->ends, (size_t)count * sizeof(uint32_t))) {
        return false;
    }
    uint8_t *data = column->data.data;
    uint8_t *ends = column->ends.data + column->ends.size;
    size_t at = column->data.size;
    uint32_t size_min = column->size_min;
    uint32_t size_max = column->size_max;
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_cell *cell = &column->cells[numbers[i]];
        copy_cell(data + at, cell);
        at += cell->size;
        lahar_store_u32(ends + (size_t)i * sizeof(uint32_t), (uint32_t)at);
        size_min = cell->size < size_min ? cell->size : size_min;
        size_max = cell->size > size_max ? cell->size : size_max;
    }
    column->data.size = at;
    column->ends.size += (size_t)count * sizeof(uint32_t);
    column->size_min = size_min;
    column->size_max = size_max;
    column->entry_count += count;
    return true;
}

static bool append_fixed(struct lahar_column *column, const uint32_t *numbers, uint32_t count,
                         uint32_t width)
{
    const size_t size = (size_t)count * width;
    if (!lahar_buffer_reserve(&column->data, size)) {
        return false;
    }
    uint8_t *to = column->data.data + column->data.size;
    if (width == sizeof(uint64_t)) {
        for (uint32_t i = 0; i < count; i++) {
            lahar_store_u64(to + (size_t)i * 8, lahar_load_u64(column->cells[numbers[i]].data));
        }
    } else {
        for (uint32_t i = 0; i < count; i++) {
            memcpy(to + (size_t)i * sizeof(lahar_uuid), column->cells[numbers[i]].data,
                   sizeof(lahar_uuid));
        }
    }
    column->data.size += size;
    column->entry_count += count;
    return true;
}

/* Makes entries of the values of some cells without looking for repeats. */
static bool append(struct lahar_column *column, const uint32_t *numbers, uint32_t count)
{
    const uint32_t width = width_of(column);
    return width == 0 ? append_bytes(column, numbers, count)
                      : append_fixed(column, numbers, count, width);
}

/* --- following ----------------------------------------------------------------------------- */

/* Makes guesses reach all codes of the followed column. */
static bool grow_guesses(struct lahar_column *column)
{
    struct lahar_buffer *guesses = &column->guesses;
    const size_t size = (size_t)column->followed->entry_count * sizeof(uint32_t);
    if (size <= guesses->size) {
        return true;
    }
    if (!lahar_buffer_reserve(guesses, size - guesses->size)) {
        return false;
    }
    memset(guesses->data + guesses->size, 0xff, size - guesses->size);
    guesses->size = size;
    return true;
}

/* Whether slots of the followed column are the rows of the block. */
static bool can_follow(const struct lahar_column *column, uint32_t row_count)
{
    const struct lahar_column *followed = column->followed;
    return followed != NULL && followed->slot_count == row_count && !followed->has_repeat_in_row;
}

/* Gives each cell the code that is guessed of it; those that come first are taken to be entries to
 * come, in their order. */
static void part(struct lahar_column *column, struct parting *parting)
{
    const uint32_t *followed_codes = lahar_column_codes(column->followed);
    const struct lahar_cell *cells = column->cells;
    const uint32_t count = column->cell_count;
    const uint32_t base = column->entry_count;
    uint32_t *guesses = (uint32_t *)(void *)column->guesses.data;
    uint32_t *codes = parting->codes;
    uint32_t *firsts = parting->firsts;
    uint32_t *others = parting->others;
    uint32_t first_count = 0;
    uint32_t other_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *guess = &guesses[followed_codes[cells[i].row]];
        const bool is_first = *guess == LAHAR_GUESS_NONE;
        const uint32_t code = is_first ? base + first_count : *guess;
        *guess = code;
        codes[i] = code;
        firsts[first_count] = i;
        others[other_count] = i;
        first_count += is_first;
        other_count += !is_first;
    }
    parting->first_count = first_count;
    parting->other_count = other_count;
}

/* Writes down the guesses that were the followed column's own codes so far. */
static bool end_mirror(struct lahar_column *column)
{
    column->is_mirror = false;
    if (!grow_guesses(column)) {
        return false;
    }
    uint32_t *guesses = (uint32_t *)(void *)column->guesses.data;
    for (uint32_t code = 0; code < column->entry_count; code++) {
        guesses[code] = code;
    }
    return true;
}

/* Whether the cells stand in the rows of the newest slots of the followed column, all of them. */
static bool is_beside_followed(const struct lahar_column *column)
{
    const struct lahar_column *followed = column->followed;
    if (column->slot_count + column->cell_count != followed->slot_count || !followed->is_in_order) {
        return false;
    }
    const uint32_t *rows = lahar_column_rows(followed) + column->slot_count;
    uint32_t difference = 0;
    for (uint32_t i = 0; i < column->cell_count; i++) {
        difference |= column->cells[i].row ^ rows[i];
    }
    return difference == 0;
}

/* What part does, of a mirror: each code that is new in the followed column brings an entry. */
static void part_mirror(struct lahar_column *column, struct parting *parting)
{
    const uint32_t *followed_codes = lahar_column_codes(column->followed) + column->slot_count;
    const uint32_t count = column->cell_count;
    const uint32_t base = column->entry_count;
    uint32_t *firsts = parting->firsts;
    uint32_t *others = parting->others;
    uint32_t first_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_first = followed_codes[i] == base + first_count;
        firsts[first_count] = i;
        others[i - first_count] = i;
        first_count += is_first;
    }
    memcpy(parting->codes, followed_codes, count * sizeof followed_codes[0]);
    parting->first_count = first_count;
    parting->other_count = count - first_count;
}

/* Looks the first values up; those that are there already get their codes in place of the
 * expected ones. */
static bool find_firsts(struct lahar_column *column, const struct parting *parting)
{
    const uint32_t base = column->entry_count;
    bool is_as_expected = true;
    if (!lahar_column_find_cells(column, parting->firsts, parting->first_count, parting->found)) {
        return false;
    }
    for (uint32_t k = 0; k < parting->first_count; k++) {
        is_as_expected = is_as_expected && parting->found[k] == base + k;
    }
    if (is_as_expected) {
        return true;
    }
    const uint32_t *followed_codes = lahar_column_codes(column->followed);
    uint32_t *guesses = (uint32_t *)(void *)column->guesses.data;
    for (uint32_t i = 0; i < column->cell_count; i++) {
        const uint32_t code = parting->codes[i];
        parting->codes[i] = code >= base ? parting->found[code - base] : code;
    }
    for (uint32_t k = 0; k < parting->first_count; k++) {
        guesses[followed_codes[column->cells[parting->firsts[k]].row]] = parting->found[k];
    }
    return true;
}

/* Compares the others with what was guessed, and finds those of which the guess was wrong. */
static bool check_others(struct lahar_column *column, const struct parting *parting)
{
    const uint32_t width = width_of(column);
    uint32_t wrong_count = 0;
    for (uint32_t k = 0; k < parting->other_count; k++) {
        const uint32_t number = parting->others[k];
        const struct lahar_cell *cell = &column->cells[number];
        if (holds(column, parting->codes[number], cell, width)) {
            continue;
        }
        uint32_t *code = &parting->codes[number];
        if ((column->is_mirror && !end_mirror(column)) || !find(column, cell, code)) {
            return false;
        }
        lahar_store_u32(column->guesses.data +
                            (size_t)lahar_column_codes(column->followed)[cell->row] *
                                sizeof(uint32_t),
                        *code);
        /* The entry, if it is new, stands behind those of later cells. */
        column->is_in_order = false;
        wrong_count++;
    }
    column->followed_slots += column->cell_count - wrong_count;
    column->followed_codes += parting->first_count;
    return true;
}

static bool follow(struct lahar_column *column, struct parting *parting)
{
    if (column->is_mirror && !is_beside_followed(column) && !end_mirror(column)) {
        return false;
    }
    if (column->is_mirror) {
        part_mirror(column, parting);
    } else if (grow_guesses(column)) {
        part(column, parting);
    } else {
        return false;
    }
    return (column->is_hashed ? find_firsts(column, parting)
                              : append(column, parting->firsts, parting->first_count)) &&
           check_others(column, parting);
}

/* --- the whole ------------------------------------------------------------------------------ */

static bool append_all(struct lahar_column *column, const struct parting *parting)
{
    for (uint32_t i = 0; i < column->cell_count; i++) {
        parting->firsts[i] = i;
        parting->codes[i] = column->entry_count + i;
    }
    return append(column, parting->firsts, column->cell_count);
}

/* Writes down the rows of the slots to come. */
static void add_rows(struct lahar_column *column)
{
    const uint32_t count = column->cell_count;
    const struct lahar_cell *cells = column->cells;
    uint32_t *rows = (uint32_t *)(void *)column->rows.data + column->slot_count;
    uint32_t before = column->last_row;
    bool has_repeat = false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t row = cells[i].row;
        rows[i] = row;
        has_repeat |= row == before;
        before = row;
    }
    column->has_repeat_in_row |= has_repeat;
    column->last_row = before;
}

/* Adds the slots, whose codes are in place. */
static void add_slots(struct lahar_column *column, const uint32_t *codes)
{
    const uint32_t count = column->cell_count;
    if (column->is_mirror) {
        const uint32_t *rows = lahar_column_rows(column->followed) + column->slot_count;
        memcpy((uint32_t *)(void *)column->rows.data + column->slot_count, rows,
               count * sizeof rows[0]);
        column->last_row = rows[count - 1];
    } else {
        add_rows(column);
    }
    column->last_code = codes[count - 1];
    column->slot_count += count;
    column->cell_count = 0;
}

bool lahar_column_fill(struct lahar_column *column, uint32_t row_count,
                       struct lahar_buffer *scratch)
{
    const uint32_t count = column->cell_count;
    if (count == 0) {
        return true;
    }
    lahar_buffer_clear(scratch);
    if (!lahar_column_reserve_slots(column, count) ||
        !lahar_buffer_reserve(scratch, 3 * ((size_t)count + 1) * sizeof(uint32_t))) {
        return false;
    }
    uint32_t *numbers = (uint32_t *)(void *)scratch->data;
    struct parting parting = {
        .codes = (uint32_t *)(void *)column->codes.data + column->slot_count,
        .firsts = numbers,
        .others = numbers + count + 1,
        .found = numbers + 2 * ((size_t)count + 1),
    };
    bool is_filled = false;
    if (can_follow(column, row_count)) {
        is_filled = follow(column, &parting);
    } else {
        column->is_mirror = false;
        is_filled = column->is_hashed ? lahar_column_find_cells(column, NULL, count, parting.codes)
                                      : append_all(column, &parting);
    }
    if (is_filled) {
        add_slots(column, parting.codes);
    }
    return is_filled;
}
