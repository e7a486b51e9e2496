/* Turns the columns of a finished block into sections of its image. */
#ifndef LAHAR_SEGMENT_COLUMN_ENCODE_H
#define LAHAR_SEGMENT_COLUMN_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/segment/column_writer.h"
#include "engine/segment/text_split.h"
#include "io/base/buffer.h"

enum {
    LAHAR_DECIMAL_SIZE_MAX = 18 /* digits that fit an int64 */
};

/* Column groups, by what reads them together. */
enum lahar_block_group {
    LAHAR_GROUP_HEAD = 0,       /* ids and times */
    LAHAR_GROUP_LISTING = 1,    /* what a listing shows: short fields with few values */
    LAHAR_GROUP_DENSE = 2,      /* uuids and the like: not compressed, there is nothing to gain */
    LAHAR_GROUP_FIELDS = 3,     /* other fields */
    LAHAR_GROUP_ATTRIBUTES = 4, /* keys of maps */
    LAHAR_GROUP_TEXT = 5,
    LAHAR_GROUP_COUNT = 6
};

/* A run of bytes in a group. */
struct lahar_section {
    uint32_t group; /* LAHAR_GROUP_COUNT + n: the n-th long text */
    uint32_t offset;
    uint32_t size;
};

/* A column placed in a block. */
struct lahar_placed_column {
    struct lahar_column *column;
    enum lahar_block_group group;
    enum lahar_codes_encoding codes_encoding;
    enum lahar_entries_encoding entries_encoding;
    uint32_t source;       /* index of the column that mapped codes depend on */
    uint32_t stored_codes; /* of a mapped column */
    struct lahar_section codes;
    struct lahar_section entries;
    struct lahar_section text;            /* BYTES stored RAW: the bytes of all entries */
    const struct lahar_text_split *split; /* holds the entries, in columns placed elsewhere */
    uint32_t variable_count;              /* of split */
    bool is_variable;                     /* of texts */
};

/* Memory reused from block to block. */
struct lahar_column_encoder {
    struct lahar_buffer groups[LAHAR_GROUP_COUNT];
    struct lahar_buffer long_texts; /* struct lahar_column *, whose data is stored by itself */
    struct lahar_buffer sections;   /* known sections, to share equal ones */
    struct lahar_buffer map;        /* u32 by code of a source */
    struct lahar_buffer numbers;    /* u64 */
    struct lahar_buffer order;      /* struct lahar_placed_column * */
    bool has_templates;             /* an encoding from LAHAR_ENTRIES_TEMPLATES on was chosen */
    bool has_failed; /* memory was refused for something that is cleared between columns */
    const lahar_allocator *allocator;
};

void lahar_column_encoder_init(struct lahar_column_encoder *encoder,
                               const lahar_allocator *allocator);
void lahar_column_encoder_deinit(struct lahar_column_encoder *encoder);

/* Chooses encodings and fills the groups; false when memory is refused. row_count:
 * of the block. */
bool lahar_column_encoder_run(struct lahar_column_encoder *encoder,
                              struct lahar_placed_column *columns, uint32_t count,
                              uint32_t row_count);

static inline uint32_t
lahar_column_encoder_long_text_count(const struct lahar_column_encoder *encoder)
{
    return (uint32_t)(encoder->long_texts.size / sizeof(struct lahar_column *));
}

static inline const struct lahar_column *
lahar_column_encoder_long_text(const struct lahar_column_encoder *encoder, uint32_t n)
{
    struct lahar_column *const *texts =
        (struct lahar_column *const *)(void *)encoder->long_texts.data;
    return texts[n];
}

#endif
