/* Sets against arrays of booleans: every operation, at sizes around the word. */
#include <criterion/criterion.h>
#include <string.h>

#include "failing_allocator.h"
#include "index/docset.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

static const uint32_t sizes[] = {0, 1, 63, 64, 65, 127, 128, 129, 1000, 4097};

enum {
    SIZE_COUNT = sizeof sizes / sizeof sizes[0],
    UNIVERSE_MAX = 4097
};

static struct lahar_docset create(uint32_t universe)
{
    struct lahar_docset set;
    cr_assert_eq(lahar_docset_init(&set, universe, &lahar_allocator_libc, NULL), LAHAR_OK);
    return set;
}

static void fill_randomly(struct lahar_docset *set, bool *oracle, uint64_t *random)
{
    for (uint32_t i = 0; i < set->universe; i++) {
        oracle[i] = random_below(random, 3) == 0;
        if (oracle[i]) {
            lahar_docset_add(set, i);
        }
    }
}

static void expect_equal(const struct lahar_docset *set, const bool *oracle)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < set->universe; i++) {
        cr_assert_eq(lahar_docset_has(set, i), oracle[i], "document %u of %u", i, set->universe);
        count += oracle[i];
    }
    cr_assert_eq(lahar_docset_count(set), count);
    cr_assert_not(lahar_docset_has(set, set->universe));
}

Test(docset, combines_as_booleans_do)
{
    uint64_t random = 7;
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        for (int operation = 0; operation < 5; operation++) {
            bool a[UNIVERSE_MAX] = {false};
            bool b[UNIVERSE_MAX] = {false};
            struct lahar_docset x = create(sizes[s]);
            struct lahar_docset y = create(sizes[s]);
            fill_randomly(&x, a, &random);
            fill_randomly(&y, b, &random);
            switch (operation) {
            case 0:
                lahar_docset_and(&x, &y);
                break;
            case 1:
                lahar_docset_or(&x, &y);
                break;
            case 2:
                lahar_docset_and_not(&x, &y);
                break;
            case 3:
                lahar_docset_invert(&x);
                break;
            default:
                lahar_docset_clear(&x);
                break;
            }
            for (uint32_t i = 0; i < sizes[s]; i++) {
                const bool expected[] = {a[i] && b[i], a[i] || b[i], a[i] && !b[i], !a[i], false};
                a[i] = expected[operation];
            }
            expect_equal(&x, a);
            expect_equal(&y, b);
            lahar_docset_deinit(&x);
            lahar_docset_deinit(&y);
        }
    }
}

Test(docset, adds_ranges_and_fills)
{
    uint64_t random = 11;
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        for (int round = 0; round < 50; round++) {
            bool oracle[UNIVERSE_MAX] = {false};
            struct lahar_docset set = create(sizes[s]);
            const uint32_t first = (uint32_t)random_below(&random, (uint64_t)sizes[s] + 1);
            const uint32_t end =
                first + (uint32_t)random_below(&random, (uint64_t)sizes[s] - first + 1);
            lahar_docset_add_range(&set, first, end);
            for (uint32_t i = first; i < end; i++) {
                oracle[i] = true;
            }
            expect_equal(&set, oracle);
            lahar_docset_fill(&set);
            cr_assert_eq(lahar_docset_count(&set), sizes[s]);
            lahar_docset_deinit(&set);
        }
    }
}

Test(docset, finds_neighbours_in_both_directions)
{
    uint64_t random = 13;
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        bool oracle[UNIVERSE_MAX] = {false};
        struct lahar_docset set = create(sizes[s]);
        for (uint32_t i = 0; i < sizes[s] / 40; i++) {
            const uint32_t document = (uint32_t)random_below(&random, sizes[s]);
            oracle[document] = true;
            lahar_docset_add(&set, document);
        }
        uint32_t next = sizes[s];
        for (uint32_t i = sizes[s]; i-- > 0;) {
            next = oracle[i] ? i : next;
            cr_assert_eq(lahar_docset_next(&set, i), next);
        }
        uint32_t previous = UINT32_MAX;
        for (uint32_t i = 0; i < sizes[s]; i++) {
            previous = oracle[i] ? i : previous;
            cr_assert_eq(lahar_docset_previous(&set, i), previous);
        }
        cr_assert_eq(lahar_docset_next(&set, sizes[s]), sizes[s]);
        cr_assert_eq(lahar_docset_previous(&set, UINT32_MAX), previous);
        lahar_docset_deinit(&set);
    }
}

/* What is computed within a window is right there, whatever stood outside, and clipping leaves just
 * that. */
Test(docset, computes_within_a_window)
{
    uint64_t random = 17;
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        for (unsigned round = 0; round < 200; round++) {
            const uint32_t size = sizes[s];
            bool a[UNIVERSE_MAX] = {false};
            bool b[UNIVERSE_MAX] = {false};
            uint32_t first = (uint32_t)random_below(&random, size + 1);
            uint32_t end = (uint32_t)random_below(&random, size + 1);
            struct lahar_docset x = create(size);
            struct lahar_docset y;
            lahar_docset_narrow(&x, 0, (uint32_t)random_below(&random, 2) == 0 ? size : end);
            lahar_docset_narrow(&x, first, end);
            cr_assert(x.first <= x.end && x.end <= size);
            cr_assert(first >= end || (x.first <= first && x.end >= end));
            cr_assert_eq(lahar_docset_init_like(&y, &x, NULL), LAHAR_OK);
            cr_assert(y.first == x.first && y.end == x.end);
            fill_randomly(&x, a, &random);
            fill_randomly(&y, b, &random);
            const unsigned operation = round % 5;
            if (operation == 0) {
                lahar_docset_invert(&x);
            } else if (operation == 1) {
                lahar_docset_fill(&x);
            } else if (operation == 2) {
                lahar_docset_and(&x, &y);
            } else if (operation == 3) {
                lahar_docset_invert(&y);
                lahar_docset_or(&x, &y);
            } else {
                lahar_docset_invert(&x);
                lahar_docset_and_not(&x, &y);
            }
            for (uint32_t i = 0; i < size; i++) {
                const bool results[] = {!a[i], true, a[i] && b[i], a[i] || !b[i], !a[i] && !b[i]};
                a[i] = i >= first && i < end && results[operation];
            }
            lahar_docset_clip(&x, first, end);
            expect_equal(&x, a);
            lahar_docset_deinit(&x);
            lahar_docset_deinit(&y);
        }
    }
}

Test(docset, reports_refused_memory)
{
    struct failing_allocator failing;
    failing_allocator_init(&failing, 0);
    struct lahar_docset set;
    lahar_error error = {.status = LAHAR_OK};
    cr_assert_eq(lahar_docset_init(&set, 100, &failing.allocator, &error), LAHAR_NO_MEMORY);
    cr_assert_eq(error.status, LAHAR_NO_MEMORY);
    lahar_docset_deinit(&set);
}
