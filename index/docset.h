/* Sets of document ordinals of one shard, 0 .. universe - 1.
 *
 * A set may be wanted of a window of the documents only. Whoever fills it may then leave out what
 * lies outside, or put it in: members there say nothing, until they are clipped. What is computed
 * from sets of one window, or of windows within it, is right in the narrowest of them.
 *
 * A set knows which of its words were ever written. The others count as zero and are neither
 * cleared nor looked at, so that a set of a few documents among millions costs next to nothing. */
#ifndef LAHAR_INDEX_DOCSET_H
#define LAHAR_INDEX_DOCSET_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/status.h"

struct lahar_docset {
    uint64_t *words;   /* bit d of word d / 64; only words [low_word, high_word) have a meaning */
    uint32_t universe; /* bits beyond it are zero */
    uint32_t low_word;
    uint32_t high_word; /* equal to low_word: no member */
    uint32_t first;     /* of the window, a multiple of 64; the universe unless it is narrowed */
    uint32_t end;       /* behind its last document, a multiple of 64 or the universe */
    const lahar_allocator *allocator;
};

lahar_status lahar_docset_init(struct lahar_docset *set, uint32_t universe,
                               const lahar_allocator *allocator, lahar_error *error);
/* The same universe and window. */
lahar_status lahar_docset_init_like(struct lahar_docset *set, const struct lahar_docset *other,
                                    lahar_error *error);
void lahar_docset_deinit(struct lahar_docset *set);
/* Narrows the window of an empty set to what it and first .. end - 1 have in common, rounded to
 * whole words. */
void lahar_docset_narrow(struct lahar_docset *set, uint32_t first, uint32_t end);
/* Takes out what lies outside first .. end - 1. */
void lahar_docset_clip(struct lahar_docset *set, uint32_t first, uint32_t end);
/* Gives the words of documents first .. end - 1 a meaning, for who writes into them. end must not
 * lie beyond the universe. */
void lahar_docset_touch(struct lahar_docset *set, uint32_t first, uint32_t end);
void lahar_docset_add(struct lahar_docset *set, uint32_t document);
void lahar_docset_add_range(struct lahar_docset *set, uint32_t first, uint32_t end);
bool lahar_docset_has(const struct lahar_docset *set, uint32_t document);
/* With all of the window. */
void lahar_docset_fill(struct lahar_docset *set);
void lahar_docset_clear(struct lahar_docset *set);
void lahar_docset_and(struct lahar_docset *set, const struct lahar_docset *other);
void lahar_docset_or(struct lahar_docset *set, const struct lahar_docset *other);
void lahar_docset_and_not(struct lahar_docset *set, const struct lahar_docset *other);
/* In the window. */
void lahar_docset_invert(struct lahar_docset *set);
/* Adds a document that is known to lie in the universe; for loops. */
static inline void lahar_docset_put(struct lahar_docset *set, uint32_t document)
{
    const uint32_t word = document / 64;
    if (word - set->low_word >= set->high_word - set->low_word) {
        lahar_docset_touch(set, document, document + 1);
    }
    set->words[word] |= UINT64_C(1) << (document % 64);
}

/* Members of both. */
uint64_t lahar_docset_count_both(const struct lahar_docset *set, const struct lahar_docset *other);
uint64_t lahar_docset_count(const struct lahar_docset *set);
/* The first member at or above from; universe when there is none. */
uint32_t lahar_docset_next(const struct lahar_docset *set, uint32_t from);
/* The last member at or below from; UINT32_MAX when there is none. */
uint32_t lahar_docset_previous(const struct lahar_docset *set, uint32_t from);

#endif
