/* Constants of the block format, which docs/format/events.md specifies, and the
 * fixed header of a block.
 *
 * A block is a header, a table of groups, and the stored bytes of the groups. The
 * groups, inflated and put end to end, are the block's image. A column owns two
 * sections of the image: its entries, which are its values in order of first
 * occurrence, and its codes, which say for each slot which entry it holds. A slot is
 * one place that a value can stand in: a row of a field that every row has, one
 * occurrence of a key in a map, one item of a list. */
#ifndef LAHAR_SEGMENT_BLOCK_FORMAT_H
#define LAHAR_SEGMENT_BLOCK_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "lahar/status.h"

enum {
    LAHAR_BLOCK_MAGIC = 0x4b42484c, /* "LHBK" */
    LAHAR_BLOCK_VERSION = 1,
    LAHAR_BLOCK_HEADER_SIZE = 128,
    LAHAR_BLOCK_GROUP_SIZE = 16, /* one entry of the group table */
    LAHAR_BLOCK_GROUP_COUNT_MAX = 65536,
    LAHAR_BLOCK_COLUMN_COUNT_MAX = 1 << 20,
    /* A column's text beyond this is cut into groups of its own, at entry ends. */
    LAHAR_BLOCK_PIECE_SIZE = 96 * 1024,
    /* Bound of deflate's expansion, rounded up. */
    LAHAR_BLOCK_EXPANSION_MAX = 1100,
    /* Keys of one map field that have a column of their own in a block. */
    LAHAR_BLOCK_KEY_COUNT_MAX = 1024,
    /* Required feature of a block: it has encodings of entries from 3 on. */
    LAHAR_BLOCK_HAS_TEMPLATES = 1,
    LAHAR_BLOCK_FEATURES = LAHAR_BLOCK_HAS_TEMPLATES,
    /* Stands in a template where a variable goes. */
    LAHAR_TEMPLATE_GAP = 0x11
};

enum lahar_block_codec {
    LAHAR_CODEC_NONE = 0,
    LAHAR_CODEC_DEFLATE = 1
};

enum lahar_column_kind {
    LAHAR_COLUMN_BYTES = 1,
    LAHAR_COLUMN_UUID = 2,
    LAHAR_COLUMN_INT = 3 /* 64 bits, also the bits of an f64 */
};

/* How slots name entries. A mapped column depends on another one, the source, that
 * has a slot in every row and is not mapped itself: slots whose rows have the same code in the
 * source have the same code here, and only the first of them is stored. */
enum lahar_codes_encoding {
    LAHAR_CODES_CONSTANT = 0, /* one entry */
    LAHAR_CODES_IDENTITY = 1, /* slot i holds entry i */
    LAHAR_CODES_U8 = 2,
    LAHAR_CODES_U16 = 3,             /* low bytes of all, then high bytes of all */
    LAHAR_CODES_U32 = 4,             /* four byte planes */
    LAHAR_CODES_MAPPED_IDENTITY = 5, /* each new code of the source brings the next entry */
    LAHAR_CODES_MAPPED_U8 = 6,
    LAHAR_CODES_MAPPED_U16 = 7,
    LAHAR_CODES_MAPPED_U32 = 8,
    LAHAR_CODES_COUNT = 9
};

enum lahar_entries_encoding {
    LAHAR_ENTRIES_RAW = 0,       /* bytes: sizes, then bytes; uuid: 16 bytes each; int: as INT */
    LAHAR_ENTRIES_UUID_TEXT = 1, /* bytes: canonical lower-case uuids, 16 bytes each */
    LAHAR_ENTRIES_DECIMAL = 2,   /* bytes: decimal numbers, stored as INT */
    LAHAR_ENTRIES_TEMPLATES = 3, /* bytes: templates and variables, in columns of their own */
    LAHAR_ENTRIES_PADDED = 4,    /* bytes: decimal numbers of the same size, zeros in front */
    LAHAR_ENTRIES_HEX = 5,       /* bytes: lower-case hexadecimal of the same even size */
    LAHAR_ENTRIES_COUNT = 6
};

struct lahar_block_header {
    uint32_t flags;
    uint32_t size; /* of the whole block */
    uint8_t codec;
    uint8_t cipher;
    uint32_t key_id;
    uint32_t row_count;
    uint32_t stream;
    uint64_t first_id;
    uint64_t last_id;
    uint64_t raw_size; /* bytes of rows */
    int64_t time_min_ns;
    int64_t time_max_ns;
    int64_t arrival_min_ns;
    int64_t arrival_max_ns;
    uint32_t group_count;
    uint32_t image_size;
    uint32_t structure_size; /* the last bytes of the image */
};

/* Writes the header at to; table is the group table that follows it on disk and is
 * covered by the header's checksum. */
void lahar_block_header_write(uint8_t to[LAHAR_BLOCK_HEADER_SIZE],
                              const struct lahar_block_header *header, const uint8_t *table);

/* Reads and checks what does not need the rest of the block: magic, version,
 * features. LAHAR_CORRUPT, LAHAR_UNSUPPORTED. */
lahar_status lahar_block_header_read(const uint8_t *data, size_t size,
                                     struct lahar_block_header *header_out, lahar_error *error);

/* Checks the checksum over header and group table; size is at least that of both. */
lahar_status lahar_block_header_check(const uint8_t *data, const struct lahar_block_header *header,
                                      lahar_error *error);

#endif
