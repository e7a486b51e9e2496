/* A block in memory, inflated as far as it was asked for.
 *
 * The image is one piece of memory; groups are inflated into their places when a
 * column that lies in them is first used, and columns are decoded likewise, under
 * the block's mutex and published by a release store. Ids and times are decoded at
 * loading. Nothing in a block is trusted: every offset, count and code is checked when it is
 * decoded, and a read that meets damage is LAHAR_CORRUPT. */
#ifndef LAHAR_SEGMENT_BLOCK_READER_H
#define LAHAR_SEGMENT_BLOCK_READER_H

#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/segment/block_format.h"
#include "engine/segment/segment.h"

struct lahar_block_group_entry {
    uint32_t stored_offset; /* in the stored bytes */
    uint32_t stored_size;
    uint32_t raw_offset; /* in the image */
    uint32_t raw_size;
    uint32_t codec;
    uint32_t checksum; /* of the stored bytes */
    _Atomic bool is_ready;
};

struct lahar_byte_range {
    uint32_t offset; /* in the image */
    uint32_t size;
};

struct lahar_text_plan; /* engine/segment/text_plan.h */

struct lahar_block_column {
    enum lahar_column_kind kind;
    enum lahar_codes_encoding codes_encoding;
    enum lahar_entries_encoding entries_encoding;
    uint32_t slot_count;
    uint32_t entry_count;
    uint32_t source;
    struct lahar_byte_range codes_range;
    struct lahar_byte_range entries_range;
    struct lahar_byte_range text_range;
    uint32_t templates;      /* of entries in templates: their column, followed by */
    uint32_t variable_count; /* so many columns of variables */
    _Atomic(const struct lahar_text_plan *) plan; /* of texts read singly; NULL: none yet */
    _Atomic uint32_t single_reads;
    bool is_part;          /* of texts: templates or a variable; decoded with them only */
    bool is_item;          /* slots are items of lists: no row of their own */
    bool is_damaged;       /* decoding failed once and is not tried again */
    _Atomic bool is_ready; /* what follows is decoded */
    bool is_text_lazy;     /* the text spans groups: inflated entry by entry */
    uint32_t *codes;       /* by slot; NULL: constant or identity */
    const uint8_t *bytes;  /* BYTES and UUID: entries end to end, in the image or owned */
    uint32_t *ends;        /* BYTES of varying size: end of each entry in bytes */
    uint32_t fixed_size;   /* of every entry, where ends is NULL */
    uint64_t *numbers;     /* INT: entries */
};

/* A field or a key, where it finds its values, and in which rows it has them. */
struct lahar_block_element {
    uint32_t field;
    lahar_type type;
    lahar_bytes key; /* of a map's element, in the image */
    bool is_unnamed; /* a map's keys without columns: key and value columns */
    uint32_t column;
    uint32_t second;      /* items of a list, values of unnamed keys */
    uint32_t map;         /* scope of a map, 0: none */
    uint32_t *rows;       /* row of each slot; NULL: slot = row */
    uint32_t *starts;     /* of a list: first item of each slot, and the end */
    bool has_occurrences; /* may have more than one slot in a row */
    uint32_t filled;      /* counts while rows are being found */
};

struct lahar_block_node {
    uint32_t parent;
    uint32_t label; /* element * 2 + is_null */
    uint32_t occurrence;
    uint32_t depth;
    uint32_t counted; /* itself or the next node towards the root whose element needs its rows */
};

/* Scope 0 holds the fields, the others the keys of one map field each. */
struct lahar_block_scope {
    struct lahar_block_element *elements;
    uint32_t element_count;
    struct lahar_block_node *nodes;
    uint32_t node_count;
    uint32_t shape_column;
    struct lahar_block_element *owner; /* the map field, NULL for scope 0 */
    bool is_damaged;
    _Atomic bool is_ready; /* rows and starts are there, the shape column is decoded */
};

struct lahar_block {
    _Atomic uint32_t reference_count;
    const lahar_allocator *allocator;     /* outlives the block */
    struct lahar_block *self;             /* for reads, which may inflate behind a const pointer */
    char file_name[LAHAR_FILE_NAME_SIZE]; /* named in errors */
    struct lahar_block_header header;
    uint64_t charge; /* bytes it is taken to hold */
    /* Rows read: the first few are read value by value, without decoding columns. */
    _Atomic uint32_t rows_read;
    _Atomic uint64_t last_rank; /* column_point.c */
    pthread_mutex_t mutex;
    uint8_t *stored; /* the block's bytes, owned */
    uint8_t *image;  /* owned */
    struct lahar_block_group_entry *groups;
    struct lahar_block_column *columns;
    uint32_t column_count;
    struct lahar_block_scope *scopes;
    uint32_t scope_count;
    const uint64_t *ids; /* by row, as are the next two */
    const uint64_t *times;
    const uint64_t *arrivals;
    struct lahar_arena arena; /* scopes, elements, nodes; columns' arrays */
};

/* Takes over stored, which is released also on failure. stream: NULL skips the check
 * of fields against it. */
lahar_status lahar_block_create(uint8_t *stored, size_t size, const struct lahar_stream *stream,
                                const lahar_allocator *allocator, struct lahar_block **block_out,
                                lahar_error *error);
void lahar_block_destroy(struct lahar_block *block);

/* Inflates and decodes everything, rebuilds every event once, and compares with what
 * the header says. */
lahar_status lahar_block_check_all(struct lahar_block *block, lahar_error *error);

/* Parses the structure at the end of the image into columns and scopes. */
lahar_status lahar_block_parse(struct lahar_block *block, const struct lahar_stream *stream,
                               lahar_error *error);

/* --- decoding on demand; any thread -------------------------------------------- */

/* Makes bytes of the image be there. */
lahar_status lahar_block_need_bytes(struct lahar_block *block, struct lahar_byte_range range,
                                    lahar_error *error);
/* rows: of the element that the column belongs to. */
lahar_status lahar_block_need_column(struct lahar_block *block, uint32_t column,
                                     const uint32_t *rows, lahar_error *error);
lahar_status lahar_block_need_scope(struct lahar_block *block, uint32_t scope, lahar_error *error);

/* The three below are called with the mutex held. */
lahar_status lahar_block_decode_column(struct lahar_block *block, uint32_t number,
                                       const uint32_t *rows, lahar_error *error);
lahar_status lahar_block_inflate(struct lahar_block *block, struct lahar_byte_range range,
                                 lahar_error *error);
/* Puts the texts of a column together from templates and variables. */
lahar_status lahar_block_join_texts(struct lahar_block *block, uint32_t number, lahar_error *error);

/* The entry that a slot of a decoded column holds. */
static inline uint32_t lahar_block_code(const struct lahar_block_column *column, uint32_t slot)
{
    if (column->codes != NULL) {
        return column->codes[slot];
    }
    return column->codes_encoding == LAHAR_CODES_CONSTANT ? 0 : slot;
}

#endif
