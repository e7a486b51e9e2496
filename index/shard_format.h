/* Constants shared by the writer and the reader of shards. Layout and reasons:
 * docs/format/shard.md. */
#ifndef LAHAR_INDEX_SHARD_FORMAT_H
#define LAHAR_INDEX_SHARD_FORMAT_H

#include <stdint.h>

#define LAHAR_SHARD_MAGIC "LAHARIDX"

enum {
    LAHAR_SHARD_VERSION = 1,
    LAHAR_SHARD_HEADER_SIZE = 32,
    LAHAR_SHARD_TRAILER_SIZE = 64,
    /* Bytes that one checksum covers and that are fetched at a time. Larger makes the
     * table of checksums smaller, smaller makes a cold look-up cheaper. */
    LAHAR_SHARD_PAGE_SIZE = 16384,
    /* Opening fetches this much of the end at once, which holds trailer and directory of most. */
    LAHAR_SHARD_OPEN_SIZE = 65536,
    /* Bytes of a term, folded and exact alike, before it is cut and marked. */
    LAHAR_SHARD_TERM_SIZE_MAX = 255,
    /* Terms of a dictionary block. Larger makes the sparse top smaller, smaller makes a
     * look-up decode less. */
    LAHAR_SHARD_BLOCK_TERMS = 64,
    LAHAR_SHARD_TOP_ENTRY_SIZE = 16,
    LAHAR_SHARD_LIST_BLOCK = 128,    /* documents of a posting block */
    LAHAR_SHARD_SKIP_SIZE = 8,       /* bytes of a posting block's skip entry */
    LAHAR_SHARD_COLUMN_BLOCK = 1024, /* documents of a column block */
    LAHAR_SHARD_ZONE_SIZE = 24,
    LAHAR_SHARD_EXTRA_SIZE = 12,
    LAHAR_SHARD_ID_BLOCK = 128,   /* documents of a block of ids */
    LAHAR_SHARD_GROUP_BLOCK = 64, /* groups of a block of their table */
    LAHAR_SHARD_UUID_SIZE = 16
};

/* A reference to documents: (value << 1) for one document, (value << 2 | 1) for a list
 * at that offset, and the special values (code << 2 | 3). */
enum lahar_shard_special {
    LAHAR_SPECIAL_ALL = 0,    /* every document */
    LAHAR_SPECIAL_NONE = 1,   /* no document; presence of a field only */
    LAHAR_SPECIAL_FLAGGED = 2 /* dictionary only: LAHAR_SPECIAL_FLAGGED + term flags follows */
};

enum lahar_term_flag {
    LAHAR_TERM_FOLDED_CUT = 1, /* the folded value is longer than the folded term */
    LAHAR_TERM_EXACT_CUT = 2,  /* the value is longer than the exact term */
    LAHAR_TERM_EXACT_CASE = 4, /* the exact form follows as one bit a byte: upper case */
    LAHAR_TERM_EXACT_FULL = 8  /* the exact form follows whole */
};

/* Kinds of posting lists: the low three bits of a list's first varint; 6 and 7 are reserved. */
enum {
    LAHAR_LIST_KIND_BITS = 3
};
enum lahar_list_kind {
    LAHAR_LIST_SHORT = 0,
    LAHAR_LIST_BLOCKS = 1,
    LAHAR_LIST_BITSET = 2,
    LAHAR_LIST_COMPLEMENT = 3,
    LAHAR_LIST_GROUP = 4, /* the documents of one group */
    LAHAR_LIST_GROUPS = 5 /* a list of groups */
};

/* A skip entry: base document in bits 0..27, width in 28..33, offset in 34..63. */
enum {
    LAHAR_SKIP_BASE_BITS = 28,
    LAHAR_SKIP_WIDTH_BITS = 6,
    LAHAR_SKIP_BITSET = 63 /* the width that says bitset */
};

enum lahar_column_kind {
    LAHAR_COLUMN_FULL = 0,     /* one value for each document of the block */
    LAHAR_COLUMN_BITMAP = 1,   /* 128 bytes say which documents have one */
    LAHAR_COLUMN_POSITIONS = 2 /* a u16 a value says which document */
};

enum lahar_id_kind {
    LAHAR_ID_RUNS = 0,  /* (first ordinal, first id) of each run of consecutive ids */
    LAHAR_ID_BLOCKS = 1 /* packed gaps */
};

#endif
