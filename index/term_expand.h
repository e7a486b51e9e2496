/* The folded terms of a dictionary block written out one behind the other, so that bytes can be
 * looked for in all of them at once. */
#ifndef LAHAR_INDEX_TERM_EXPAND_H
#define LAHAR_INDEX_TERM_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "index/shard_format.h"
#include "lahar/event.h"

struct lahar_expanded_terms {
    size_t size;
    bool has_cut; /* some term stands for longer values */
    /* The term in work, each written over what it does not share with the one before; with room for
     * a step too many. Defined from the start, since more is copied of it than is there. */
    uint8_t term[LAHAR_SHARD_TERM_SIZE_MAX + 1 + 32];
    /* Each term is followed by a zero byte; slack behind lets terms be copied in steps. */
    uint8_t text[LAHAR_SHARD_BLOCK_TERMS * (LAHAR_SHARD_TERM_SIZE_MAX + 1) + 48];
};

/* Writes out count terms, of each what it does not share with the one before it and the context
 * bytes in front of that: all that a needle of one byte more can lie in without lying in the term
 * before as well. False when the block is malformed. */
bool lahar_terms_expand(struct lahar_expanded_terms *terms, const uint8_t *block, size_t size,
                        uint32_t count, size_t context);
/* Whether the bytes, at least one, stand somewhere in the text. */
bool lahar_terms_hold(const struct lahar_expanded_terms *terms, lahar_bytes needle);

#endif
