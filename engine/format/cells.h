/* Records made of cells, each written by an escaping rule, with delimiters of any bytes around
 * them: what CustomSeparated, Template, Values and JSONCompactEachRow have in common.
 *
 * A record is parsed from its start on; where the input ends inside it nothing is remembered,
 * the caller comes again with more. Cells are places in the record, so that it may move. */
#ifndef LAHAR_FORMAT_CELLS_H
#define LAHAR_FORMAT_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/format_settings.h"
#include "engine/format/json.h"
#include "io/base/allocator.h"
#include "io/base/arena.h"
#include "lahar/event.h"

struct lahar_cell {
    uint32_t offset; /* of its text with quotes, from the record's start */
    uint32_t size;
    uint32_t column;
    enum lahar_escaping escaping;
};

struct lahar_cell_list {
    struct lahar_cell *cells; /* owned */
    size_t count;
    size_t capacity;
    const lahar_allocator *allocator;
    const char *failure; /* after LAHAR_CELLS_BAD: static text */
    size_t failure_at;
    size_t size; /* of the whole record with its delimiters */
};

/* One part of a template's row: literal text, then a cell. */
struct lahar_cell_part {
    lahar_bytes before;
    enum lahar_escaping escaping;
};

struct lahar_cell_grammar {
    lahar_format format; /* one of the four */
    lahar_bytes row_before;
    lahar_bytes row_after; /* of a template what stands behind the last cell */
    lahar_bytes row_between;
    lahar_bytes result_before;
    lahar_bytes result_after;
    lahar_bytes field_delimiter;
    enum lahar_escaping escaping;
    struct lahar_cell_part *parts; /* TEMPLATE: owned */
    size_t part_count;
};

enum lahar_cells_result {
    LAHAR_CELLS_WHOLE,
    LAHAR_CELLS_MORE,
    LAHAR_CELLS_BAD,
    LAHAR_CELLS_NO_MEMORY
};

/* Parses the record at data. */
enum lahar_cells_result lahar_cells_parse(const struct lahar_cell_grammar *grammar,
                                          struct lahar_json_parser *json,
                                          struct lahar_cell_list *list, const uint8_t *data,
                                          size_t size, bool is_last);

/* The value of a cell's text, in it or in the arena. False when memory is refused. */
bool lahar_cell_value(enum lahar_escaping escaping, lahar_bytes text, lahar_bytes null_text,
                      struct lahar_arena *arena, lahar_bytes *value_out, bool *is_null_out);

#endif
