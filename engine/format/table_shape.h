/* The shape of a row: the header of its table, and what the fields do not give back. It is 'C' or
 * 'T', CSV or TSV with their own delimiter and a header in the file, or 'D', a byte of flags and
 * the delimiter. Then:
 *
 *   varint size, bytes                 the header record, its line end included
 *   varint count                       fields of the row
 *   varint a field                     0: it is the next attribute of the column's name, else
 *                                      1 + the declared field
 *   (varint field, varint size, bytes) of every field whose value, written canonically, is not what
 *                                      the row held */
#ifndef LAHAR_FORMAT_TABLE_SHAPE_H
#define LAHAR_FORMAT_TABLE_SHAPE_H

#include "engine/format/table.h"
#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

enum {
    LAHAR_SHAPE_CSV = 'C',
    LAHAR_SHAPE_TSV = 'T',
    LAHAR_SHAPE_TABLE = 'D'
};

/* Flags of LAHAR_SHAPE_TABLE. */
enum {
    LAHAR_TABLE_SHAPE_TSV = 1,
    LAHAR_TABLE_SHAPE_BARE = 2 /* the file has no header: it only names the columns */
};

enum {
    LAHAR_COLUMN_NAME_SIZE = 32
};

/* The name of a field beyond the header's: "column" and its number from 1. */
lahar_bytes lahar_column_name(size_t index, char storage[LAHAR_COLUMN_NAME_SIZE]);

/* Whether kind is the first byte of the shape of a row. */
static inline bool lahar_table_shape_is(uint8_t kind)
{
    return kind == LAHAR_SHAPE_CSV || kind == LAHAR_SHAPE_TSV || kind == LAHAR_SHAPE_TABLE;
}

/* Whether shape is one of a row; *header_out is the header record that stands in the file, empty
 * when there is none. */
bool lahar_table_shape_header(lahar_bytes shape, lahar_bytes *header_out);

/* Where the first record that is not a blank line begins, behind a byte order mark. */
size_t lahar_table_header_start(const uint8_t *data, size_t size);

/* Appends the row with the line end of its header. parser is scratch. LAHAR_CORRUPT when
 * the shape is damaged or asks for values that the event does not have. */
lahar_status lahar_table_shape_write(const lahar_event *event, lahar_bytes shape,
                                     struct lahar_table_parser *parser, struct lahar_arena *arena,
                                     struct lahar_buffer *out, lahar_error *error);

#endif
