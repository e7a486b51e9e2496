/* The sorted terms of KEYWORD and TEXT fields.
 *
 * The terms of a field lie in blocks of 64, front-coded, with a sparse top of one entry a block:
 * eight bytes of the block's first term behind what all terms of the field have in
 * common, and the offset of the block. A folded lookup and an exact one read the same blocks, since
 * terms are sorted by folded form first. */
#ifndef LAHAR_INDEX_DICTIONARY_H
#define LAHAR_INDEX_DICTIONARY_H

#include "index/shard_format.h"
#include "index/shard_pages.h"
#include "index/term_sort.h"
#include "io/base/buffer.h"

/* Where the dictionary of a field is. */
struct lahar_dictionary {
    uint64_t term_count;
    uint64_t top;    /* offset of the top */
    uint64_t end;    /* offset behind the last block */
    uint64_t common; /* leading bytes that all folded terms share */
};

/* --- writing --- */

/* Appends blocks to one buffer and top entries to another, whose offsets of blocks are
 * relative to the first buffer's start. */
struct lahar_dictionary_writer {
    struct lahar_buffer *blocks;
    struct lahar_buffer *top;
    uint64_t term_count;
    size_t common;
    struct lahar_term_item previous;
    size_t previous_shared;
};

void lahar_dictionary_writer_init(struct lahar_dictionary_writer *writer,
                                  struct lahar_buffer *blocks, struct lahar_buffer *top,
                                  size_t common);
/* In order; reference: of its documents. */
void lahar_dictionary_put(struct lahar_dictionary_writer *writer,
                          const struct lahar_term_item *item, uint64_t reference);

/* --- reading --- */

/* A term as decoded. */
struct lahar_dictionary_entry {
    /* Slack behind lets a suffix be copied in steps. */
    uint8_t folded[LAHAR_SHARD_TERM_SIZE_MAX + 1 + 16];
    uint8_t exact_bytes[LAHAR_SHARD_TERM_SIZE_MAX + 1];
    size_t folded_size;
    const uint8_t *exact; /* folded or exact_bytes */
    size_t exact_size;
    uint8_t flags; /* enum lahar_term_flag */
    uint64_t reference;
};

/* A walk over the terms of a field. */
struct lahar_dictionary_cursor {
    struct lahar_shard_pages *pages;
    struct lahar_dictionary dictionary;
    uint64_t next_term;
    uint64_t block_end;              /* the number of the first term behind the block in view */
    size_t shared;                   /* of the entry decoded last */
    struct lahar_page_view view;     /* the block */
    uint64_t view_size;              /* bytes of the block */
    struct lahar_page_view top_view; /* top entries [top_begin, top_end) */
    uint64_t top_begin;
    uint64_t top_end;
    struct lahar_reader reader;
    struct lahar_dictionary_entry entry;
};

/* Before the first term; close in any case. */
void lahar_dictionary_begin(struct lahar_dictionary_cursor *cursor, struct lahar_shard_pages *pages,
                            const struct lahar_dictionary *dictionary);
void lahar_dictionary_close(struct lahar_dictionary_cursor *cursor);
/* Decodes the next term into cursor->entry; LAHAR_NOT_FOUND at the end, which sets no error. */
lahar_status lahar_dictionary_next(struct lahar_dictionary_cursor *cursor, lahar_error *error);
/* Goes to the first block that can hold folded, or to the end when none can; the walk from there
 * meets it before any greater term. */
lahar_status lahar_dictionary_seek(struct lahar_dictionary_cursor *cursor, const uint8_t *folded,
                                   size_t size, lahar_error *error);
/* Goes to the first term that is not less than folded and decodes it into cursor->entry; terms
 * before it are passed over without being written out. *order_out: 0 if it is that term, in one of
 * its spellings, 1 if it is greater. LAHAR_NOT_FOUND when all are less, which sets no error. */
lahar_status lahar_dictionary_reach(struct lahar_dictionary_cursor *cursor, const uint8_t *folded,
                                    size_t size, int *order_out, lahar_error *error);

/* How many blocks there are, where one lies in the shard, and the walk going on with its first
 * term. block: below the count. */
uint64_t lahar_dictionary_block_count(const struct lahar_dictionary *dictionary);
lahar_status lahar_dictionary_block_range(struct lahar_dictionary_cursor *cursor, uint64_t block,
                                          uint64_t *begin_out, uint64_t *end_out,
                                          lahar_error *error);
void lahar_dictionary_go(struct lahar_dictionary_cursor *cursor, uint64_t block);

/* Eight bytes of a term from depth on, big-endian, padded with zeros. */
uint64_t lahar_dictionary_prefix(const uint8_t *term, size_t size, size_t depth);

#endif
