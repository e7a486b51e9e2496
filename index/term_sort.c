/* Sorting by up to eight bytes at a time: a radix sort of the first bytes of the prefixes settles
 * nearly all, the few that tie are sorted again from behind what they have in common. Depth is
 * bounded by the size of a term (255 bytes, at least one a level). */
#include "index/term_sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Below this many items insertion is faster than counting bytes. */
    INSERTION_COUNT = 24,
    PREFIX_SIZE = 8,
    PLACES_AN_ITEM = 8 /* with so many, one item in eight still has to be told from another */
};

static int compare_bytes(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    const size_t size = a_size < b_size ? a_size : b_size;
    const int order = size == 0 ? 0 : memcmp(a, b, size);
    if (order != 0) {
        return order;
    }
    return (a_size > b_size) - (a_size < b_size);
}

int lahar_term_compare(const struct lahar_term_item *a, const struct lahar_term_item *b)
{
    int order = compare_bytes(a->folded, a->folded_size, b->folded, b->folded_size);
    if (order == 0) {
        order = compare_bytes(a->exact, a->exact_size, b->exact, b->exact_size);
    }
    return order != 0 ? order : (a->flags > b->flags) - (a->flags < b->flags);
}

static uint64_t load_prefix(const struct lahar_term_item *item, size_t depth)
{
    uint64_t prefix = 0;
    const size_t left = item->folded_size > depth ? item->folded_size - depth : 0;
    if (left >= PREFIX_SIZE) {
        memcpy(&prefix, item->folded + depth, PREFIX_SIZE);
    } else if (left != 0) {
        memcpy(&prefix, item->folded + depth, left);
    }
    return __builtin_bswap64(prefix);
}

static int compare_prefixed(const struct lahar_term_item *a, const struct lahar_term_item *b)
{
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix ? -1 : 1;
    }
    return lahar_term_compare(a, b);
}

static void insertion_sort(struct lahar_term_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct lahar_term_item item = items[i];
        size_t to = i;
        while (to > 0 && compare_prefixed(&item, &items[to - 1]) < 0) {
            items[to] = items[to - 1];
            to--;
        }
        items[to] = item;
    }
}

/* How often each value of the prefix's byte at shift comes; returns how many different ones there
 * are. */
static size_t count_bytes(const struct lahar_term_item *items, size_t count, unsigned shift,
                          uint32_t counts[256])
{
    memset(counts, 0, 256 * sizeof counts[0]);
    for (size_t i = 0; i < count; i++) {
        counts[items[i].prefix >> shift & 0xff]++;
    }
    size_t different = 0;
    for (size_t i = 0; i < 256; i++) {
        different += counts[i] != 0;
    }
    return different;
}

/* Moves items into the order of the byte at shift, keeping that of items that agree in it. */
static void distribute(const struct lahar_term_item *from, struct lahar_term_item *to, size_t count,
                       unsigned shift, const uint32_t counts[256])
{
    uint32_t starts[256];
    uint32_t start = 0;
    for (size_t i = 0; i < 256; i++) {
        starts[i] = start;
        start += counts[i];
    }
    for (size_t i = 0; i < count; i++) {
        to[starts[from[i].prefix >> shift & 0xff]++] = from[i];
    }
}

/* By the first bytes of the prefix, as many as tell most items apart, lowest first, passing over
 * bytes that all items share. Returns the bits of these bytes. */
static uint64_t radix_sort(struct lahar_term_item *items, struct lahar_term_item *scratch,
                           size_t count)
{
    uint32_t counts[PREFIX_SIZE][256];
    unsigned shifts[PREFIX_SIZE];
    uint64_t all_and = UINT64_MAX;
    uint64_t all_or = 0;
    for (size_t i = 0; i < count; i++) {
        all_and &= items[i].prefix;
        all_or |= items[i].prefix;
    }
    size_t passes = 0;
    uint64_t places = 1; /* that the items could have by these bytes */
    uint64_t sorted = 0;
    for (unsigned shift = 64; shift > 0 && places < (uint64_t)count * PLACES_AN_ITEM;) {
        shift -= 8;
        sorted |= UINT64_C(0xff) << shift;
        if (((all_and ^ all_or) >> shift & 0xff) != 0) {
            places *= count_bytes(items, count, shift, counts[passes]);
            shifts[passes++] = shift;
        }
    }
    struct lahar_term_item *from = items;
    struct lahar_term_item *to = scratch;
    while (passes > 0) {
        passes--;
        distribute(from, to, count, shifts[passes], counts[passes]);
        struct lahar_term_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) {
        memcpy(items, from, count * sizeof *items);
    }
    return sorted;
}

/* Bytes from depth on that all items have in common. */
static size_t common_size(const struct lahar_term_item *items, size_t count, size_t depth)
{
    size_t common = items[0].folded_size > depth ? items[0].folded_size - depth : 0;
    for (size_t i = 1; i < count && common > 0; i++) {
        const size_t left = items[i].folded_size > depth ? items[i].folded_size - depth : 0;
        common = left < common ? left : common;
        size_t same = 0;
        while (same < common && items[0].folded[depth + same] == items[i].folded[depth + same]) {
            same++;
        }
        common = same;
    }
    return common;
}

static int compare_items(const void *a, const void *b)
{
    return lahar_term_compare(a, b);
}

/* Moves the items that end at depth to the front, where they belong, and sorts them: they
 * are one folded value in several spellings. Returns how many. */
static size_t settle_ended(struct lahar_term_item *items, size_t count, size_t depth)
{
    size_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].folded_size <= depth) {
            const struct lahar_term_item item = items[i];
            items[i] = items[ended];
            items[ended++] = item;
        }
    }
    if (ended > 1) {
        qsort(items, ended, sizeof *items, compare_items);
    }
    return ended;
}

/* Sorts items that agree in all bytes before depth. Ends because a group that is sorted again
 * has at least one more byte in common. */
static void sort_from(struct lahar_term_item *items, struct lahar_term_item *scratch, size_t count,
                      size_t depth)
{
    if (count >= INSERTION_COUNT) {
        depth += common_size(items, count, depth);
        const size_t ended = settle_ended(items, count, depth);
        items += ended;
        count -= ended;
    }
    for (size_t i = 0; i < count; i++) {
        items[i].prefix = load_prefix(&items[i], depth);
    }
    if (count < INSERTION_COUNT) {
        insertion_sort(items, count);
        return;
    }
    const uint64_t sorted = radix_sort(items, scratch, count);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && ((items[end].prefix ^ items[i].prefix) & sorted) == 0) {
            end++;
        }
        if (end - i >= INSERTION_COUNT) {
            sort_from(items + i, scratch, end - i, depth);
        } else {
            insertion_sort(items + i, end - i);
        }
        i = end;
    }
}

void lahar_term_sort(struct lahar_term_item *items, struct lahar_term_item *scratch, size_t count)
{
    sort_from(items, scratch, count, 0);
}
