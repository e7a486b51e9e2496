/* Sorting the terms of one field by (folded, exact) bytes. */
#ifndef LAHAR_INDEX_TERM_SORT_H
#define LAHAR_INDEX_TERM_SORT_H

#include <stddef.h>
#include <stdint.h>

struct lahar_term_item {
    uint64_t prefix; /* eight bytes of folded from some depth on, big-endian */
    const uint8_t *folded;
    const uint8_t *exact;
    uint32_t term;
    uint16_t folded_size;
    uint16_t exact_size;
    uint8_t flags; /* enum lahar_term_flag: the two of cutting */
};

/* scratch has room for count items. Items that are equal but for their cutting flags are ordered by
 * these. */
void lahar_term_sort(struct lahar_term_item *items, struct lahar_term_item *scratch, size_t count);

/* Order of two terms: < 0, 0, > 0. */
int lahar_term_compare(const struct lahar_term_item *a, const struct lahar_term_item *b);

#endif
