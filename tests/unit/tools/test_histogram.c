/* Quantiles against a sorted array, and the promise about bucket widths. */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "bench/histogram.h"
#include "bench/random.h"

static int compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

Test(histogram, is_within_a_64th_of_the_exact_quantile)
{
    enum {
        VALUES = 20000
    };
    static const double SHARES[] = {0.01, 0.5, 0.9, 0.99, 0.999, 1.0};
    struct histogram *histogram = calloc(1, sizeof *histogram);
    uint64_t *values = calloc(VALUES, sizeof *values);
    struct random_source random = random_source_at(11, 0, 0);
    cr_assert_not_null(histogram);
    cr_assert_not_null(values);
    for (int i = 0; i < VALUES; i++) {
        values[i] = random_next(&random) >> (random_next(&random) % 63);
        histogram_record(histogram, values[i]);
    }
    qsort(values, VALUES, sizeof *values, compare);
    for (size_t i = 0; i < sizeof SHARES / sizeof SHARES[0]; i++) {
        const size_t rank = (size_t)(SHARES[i] * VALUES) - 1;
        const uint64_t exact = values[rank];
        const uint64_t found = histogram_quantile(histogram, SHARES[i]);
        cr_assert(found >= exact && found - exact <= exact / 64, "share %g: %llu for %llu",
                  SHARES[i], (unsigned long long)found, (unsigned long long)exact);
    }
    cr_assert_eq(histogram->max, values[VALUES - 1]);
    free(values);
    free(histogram);
}

Test(histogram, keeps_the_ends_of_its_range_apart)
{
    struct histogram *histogram = calloc(1, sizeof *histogram);
    cr_assert_not_null(histogram);
    cr_assert_eq(histogram_quantile(histogram, 0.5), 0);
    histogram_record(histogram, 0);
    histogram_record(histogram, UINT64_MAX);
    cr_assert_eq(histogram_quantile(histogram, 0.5), 0);
    cr_assert_eq(histogram_quantile(histogram, 1.0), UINT64_MAX);
    free(histogram);
}

Test(histogram, adds_up)
{
    struct histogram *both = calloc(2, sizeof *both);
    cr_assert_not_null(both);
    histogram_record(&both[0], 5);
    histogram_record(&both[1], 63);
    histogram_add(&both[0], &both[1]);
    cr_assert_eq(both[0].count, 2);
    cr_assert_eq(both[0].max, 63);
    cr_assert_eq(histogram_quantile(&both[0], 0.5), 5);
    free(both);
}
