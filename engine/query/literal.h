/* What the values of a query mean: numbers with units, times, uuids. Numbers are compared
 * exactly; an integer never becomes a double. */
#ifndef LAHAR_QUERY_LITERAL_H
#define LAHAR_QUERY_LITERAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lahar/event.h"

struct lahar_number {
    enum {
        LAHAR_NUMBER_I64,
        LAHAR_NUMBER_U64,
        LAHAR_NUMBER_F64
    } kind;
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
    } as;
};

/* -1, 0, 1; LAHAR_UNORDERED when one of them is not a number. */
enum {
    LAHAR_UNORDERED = 2
};
int lahar_number_compare(struct lahar_number a, struct lahar_number b);

/* A number as stored values are written: no leading zero or '+', no unit, at most 20 digits
 * before the point; "-0" is not one. */
bool lahar_number_of_value(const void *text, size_t size, struct lahar_number *number_out);

/* A number of a query: sign, decimals, exponent, and a unit: B, kB KB MB GB TB PB (1000), KiB
 * and its like (1024), ns us ms s m h d w. A duration is given in duration_unit_ns. */
bool lahar_number_parse(const void *text, size_t size, int64_t duration_unit_ns,
                        struct lahar_number *number_out);

/* A run of nanoseconds, both ends included: a point, or what a truncated date covers. */
struct lahar_interval {
    int64_t first_ns;
    int64_t last_ns;
};

struct lahar_time_zone;

/* RFC 3339, a truncated date, "now" with a distance, or '@' with an epoch and its unit. What names
 * no zone is in this one; NULL: UTC. reason_out is set on failure. */
bool lahar_query_time_parse(const void *text, size_t size, int64_t now_ns,
                            const struct lahar_time_zone *zone, struct lahar_interval *interval_out,
                            const char **reason_out);

/* 36 characters, 32 hexadecimal digits, or either in braces. */
bool lahar_query_uuid_parse(const void *text, size_t size, lahar_uuid *uuid_out);
enum {
    LAHAR_UUID_TEXT_SIZE = 36
};
void lahar_query_uuid_format(const lahar_uuid *uuid, char text_out[LAHAR_UUID_TEXT_SIZE]);

/* The numbers of a 64-bit type in their order, counted from 0; NaN is none of them. */
enum lahar_column {
    LAHAR_COLUMN_I64,
    LAHAR_COLUMN_U64,
    LAHAR_COLUMN_F64
};

/* Numbers between two ends, of which each may be open. No end is NaN. */
struct lahar_test_range {
    bool has_low;
    bool has_high;
    bool low_is_inclusive;
    bool high_is_inclusive;
    struct lahar_number low;
    struct lahar_number high;
};

bool lahar_number_in_range(const struct lahar_test_range *range, struct lahar_number number);

/* The numbers of the column that lie in the range, by rank (of a u64: the number itself), and
 * as lahar_number_from_i64 and its like map them; false when there are none. */
bool lahar_column_span(enum lahar_column column, const struct lahar_test_range *range,
                       uint64_t *first_out, uint64_t *last_out);
bool lahar_column_numbers(enum lahar_column column, const struct lahar_test_range *range,
                          uint64_t *low_out, uint64_t *high_out);

#endif
