/* The fields of a block being filled, and the keys of its maps: for each, a column
 * and the shapes that say which rows have it.
 *
 * An event is taken apart when it comes: each value becomes a cell of its column, whose bytes lie
 * in the stage, a copy of the rows. Some hundred events later each column takes its cells at once
 * (lahar_scope_writer_fill), so that one column at a time is in the near cache and what is decided
 * for one value holds for the next.
 *
 * Columns are kept from block to block, so that their memory and what was learned
 * about them is reused; a block stores only those that have slots. One thread. */
#ifndef LAHAR_SEGMENT_SCOPE_WRITER_H
#define LAHAR_SEGMENT_SCOPE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/event/schema.h"
#include "engine/segment/column_writer.h"
#include "engine/segment/shape_writer.h"
#include "engine/segment/text_split.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

struct lahar_map_scope;

/* A field, or a key of a map. */
struct lahar_element {
    struct lahar_column column;     /* values; of a list its item counts, of a map its shapes */
    struct lahar_column second;     /* items of a list; values of a map's unnamed keys */
    struct lahar_map_scope *map;    /* of a map field, owned */
    struct lahar_text_split *split; /* of texts, and of keywords once it may be of use; owned */
    bool is_split;                  /* this block's texts are in it */
    uint8_t *key;                   /* of a map's element, owned; NULL for the unnamed ones */
    uint32_t key_size;
    uint32_t key_hash;
    uint32_t field;
    lahar_type type;
    bool has_second;
    bool is_used;         /* occurs in this block, perhaps only as null */
    uint32_t written;     /* its number in this block's structure */
    uint32_t last_row;    /* the row of its last slot, + 1; for occurrence */
    uint32_t occurrences; /* its slots in that row */
};

struct lahar_map_scope {
    struct lahar_shapes shapes;
    struct lahar_element **elements; /* [0]: keys beyond those that get a column */
    uint32_t count;
    uint32_t capacity;
    uint32_t *table; /* element by key, 0 when free */
    uint32_t table_size;
    const lahar_allocator *allocator;
};

/* What cells point to, with their slack behind. It never moves while there are cells. */
struct lahar_row_stage {
    uint8_t *data;
    size_t size;
    size_t capacity;
    uint32_t row_count; /* rows with cells */
    uint32_t row_end;   /* the row behind them */
};

struct lahar_scope_writer {
    const struct lahar_stream *stream;
    struct lahar_shapes shapes; /* memo: of the entry in shape, + 1 */
    /* Fields in the order of rows, which need not be that of the stream; memo: node of shapes + 1.
     */
    struct lahar_shapes orders;
    struct lahar_row_stage stage;
    struct lahar_buffer labels;      /* u32: those of a path being sorted */
    struct lahar_buffer scratch;     /* of filling */
    struct lahar_column shape;       /* the node of each row */
    struct lahar_element **elements; /* by ordinal of the stream's fields; NULL until used */
    const lahar_allocator *allocator;
};

lahar_status lahar_scope_writer_init(struct lahar_scope_writer *scope,
                                     const struct lahar_stream *stream,
                                     const lahar_allocator *allocator);
void lahar_scope_writer_deinit(struct lahar_scope_writer *scope);
/* Readies the scope for a block; false when memory is refused. */
bool lahar_scope_writer_clear(struct lahar_scope_writer *scope);
/* Takes the values of an event, sorted by field. LAHAR_INVALID when one does not fit the
 * stream; after any failure the scope is good for nothing but deinit. */
lahar_status lahar_scope_writer_add(struct lahar_scope_writer *scope, uint32_t row,
                                    const lahar_event *event, lahar_error *error);
/* Takes the values of a row of bytes, which may be any: LAHAR_CORRUPT, LAHAR_INVALID as above. */
lahar_status lahar_scope_writer_add_row(struct lahar_scope_writer *scope, uint32_t row,
                                        const uint8_t *data, size_t size, lahar_error *error);
/* Moves what waits in the stage into the columns; false when memory is refused. */
bool lahar_scope_writer_fill(struct lahar_scope_writer *scope);

/* Gives the element, which has none, what splits its texts; false when memory is refused. */
bool lahar_element_make_split(struct lahar_element *element, const lahar_allocator *allocator);

/* --- between the files of the scope --- */

/* The element of a field by its ordinal, made on first use; NULL when memory is refused. */
struct lahar_element *lahar_scope_element(struct lahar_scope_writer *scope, uint32_t ordinal);
/* The map of an element, made on first use; NULL when memory is refused. */
struct lahar_map_scope *lahar_element_map(struct lahar_element *element,
                                          const lahar_allocator *allocator);
/* The element of a key, made when there is room for it, else 0, that of keys without columns.
 * False when memory is refused. */
bool lahar_map_find_key(struct lahar_map_scope *map, lahar_bytes key, uint32_t *element_out);

#endif
