/* The fields of a block being filled, and the keys of its maps: for each, a column
 * and the shapes that say which rows have it.
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
    struct lahar_text_split *split; /* of a text field, owned */
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

struct lahar_scope_writer {
    const struct lahar_stream *stream;
    struct lahar_shapes shapes;
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

#endif
