/* Sets of document ordinals of one shard, 0 .. universe - 1. */
#ifndef LAHAR_INDEX_DOCSET_H
#define LAHAR_INDEX_DOCSET_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/status.h"

struct lahar_docset {
    uint64_t *words; /* bit d of word d / 64; bits beyond universe are zero */
    uint32_t universe;
    const lahar_allocator *allocator;
};

lahar_status lahar_docset_init(struct lahar_docset *set, uint32_t universe,
                               const lahar_allocator *allocator, lahar_error *error);
void lahar_docset_deinit(struct lahar_docset *set);
void lahar_docset_add(struct lahar_docset *set, uint32_t document);
void lahar_docset_add_range(struct lahar_docset *set, uint32_t first, uint32_t end);
bool lahar_docset_has(const struct lahar_docset *set, uint32_t document);
void lahar_docset_fill(struct lahar_docset *set);
void lahar_docset_clear(struct lahar_docset *set);
void lahar_docset_and(struct lahar_docset *set, const struct lahar_docset *other);
void lahar_docset_or(struct lahar_docset *set, const struct lahar_docset *other);
void lahar_docset_and_not(struct lahar_docset *set, const struct lahar_docset *other);
void lahar_docset_invert(struct lahar_docset *set);
/* Members of both. */
uint64_t lahar_docset_count_both(const struct lahar_docset *set, const struct lahar_docset *other);
uint64_t lahar_docset_count(const struct lahar_docset *set);
/* The first member at or above from; universe when there is none. */
uint32_t lahar_docset_next(const struct lahar_docset *set, uint32_t from);
/* The last member at or below from; UINT32_MAX when there is none. */
uint32_t lahar_docset_previous(const struct lahar_docset *set, uint32_t from);

#endif
