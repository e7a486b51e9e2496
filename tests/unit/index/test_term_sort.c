/* The order of terms, beside that of qsort by the same comparison. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "index/term_sort.h"

enum {
    COUNT_MAX = 6000,
    TERM_SIZE = 255
};

static uint8_t bytes[COUNT_MAX][TERM_SIZE + 1];
static struct lahar_term_item items[COUNT_MAX];
static struct lahar_term_item expected[COUNT_MAX];
static struct lahar_term_item scratch[COUNT_MAX];
static uint64_t state = 5;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((state >> 33) % below);
}

static int compare(const void *a, const void *b)
{
    return lahar_term_compare(a, b);
}

/* Terms of one kind; returns the size of the one at number. */
static size_t make(uint32_t kind, uint32_t number, uint8_t *to)
{
    size_t size = 0;
    switch (kind) {
    case 0: /* random bytes, as uuids are */
        for (size = 0; size < 16; size++) {
            to[size] = (uint8_t)draw(256);
        }
        return size;
    case 1: /* digits, behind what all have in common */
        memcpy(to, "part-00", 7);
        for (size = 7; size < 7 + 12; size++) {
            to[size] = (uint8_t) "0123456789abcdef"[draw(16)];
        }
        return size;
    case 2: /* each the next one's beginning, but for one letter */
        memset(to, 'a', TERM_SIZE);
        size = number % TERM_SIZE;
        to[size] = 'b';
        return size + 1;
    case 3: /* few letters, zeros too, any size, many that come twice */
        for (size = 0; size < number % 11; size++) {
            to[size] = (uint8_t)draw(3);
        }
        return size;
    case 4: /* most alike for long, some of every first byte */
        memset(to, 'x', 100);
        to[0] = draw(3) == 0 ? (uint8_t)draw(256) : 'x';
        to[draw(100)] = (uint8_t)draw(256);
        return 1 + draw(100);
    default: /* a counter */
        for (size = 0; size < 8; size++) {
            to[size] = (uint8_t)((uint64_t)number >> (8 * (7 - size)));
        }
        return size;
    }
}

Test(term_sort, is_that_of_comparing)
{
    static const uint32_t counts[] = {0, 1, 2, 23, 24, 25, 300, COUNT_MAX};
    for (uint32_t kind = 0; kind < 6; kind++) {
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            const uint32_t count = counts[k];
            for (uint32_t i = 0; i < count; i++) {
                const size_t size = make(kind, i, bytes[i]);
                items[i] = (struct lahar_term_item){
                    .folded = bytes[i],
                    .exact = bytes[i],
                    .term = i,
                    .folded_size = (uint16_t)size,
                    .exact_size = (uint16_t)(size - (size > 1 && draw(9) == 0)),
                    .flags = (uint8_t)(draw(5) == 0)};
            }
            /* In any order, not that of making. */
            for (uint32_t i = count; i > 1; i--) {
                const uint32_t other = draw(i);
                const struct lahar_term_item item = items[i - 1];
                items[i - 1] = items[other];
                items[other] = item;
            }
            memcpy(expected, items, count * sizeof items[0]);
            if (count != 0) {
                qsort(expected, count, sizeof expected[0], compare);
            }
            lahar_term_sort(items, scratch, count);
            for (uint32_t i = 0; i < count; i++) {
                cr_assert_eq(lahar_term_compare(&items[i], &expected[i]), 0,
                             "kind %u, %u terms: place %u", kind, count, i);
            }
        }
    }
}
