/* Numbers, times and uuids of queries against values worked out by hand (times with date -d). */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "engine/query/literal.h"
#include "index/shard.h"

#define NS INT64_C(1000000000)

static struct lahar_number parsed(const char *text)
{
    struct lahar_number number = {LAHAR_NUMBER_F64, {.f64 = (double)NAN}};
    cr_assert(lahar_number_parse(text, strlen(text), 1, &number), "%s", text);
    return number;
}

static struct lahar_number i64(int64_t v)
{
    return (struct lahar_number){LAHAR_NUMBER_I64, {.i64 = v}};
}

static struct lahar_number u64(uint64_t v)
{
    return (struct lahar_number){LAHAR_NUMBER_U64, {.u64 = v}};
}

static struct lahar_number f64(double v)
{
    return (struct lahar_number){LAHAR_NUMBER_F64, {.f64 = v}};
}

static void expect_number(const char *text, struct lahar_number expected)
{
    const struct lahar_number number = parsed(text);
    cr_expect_eq(lahar_number_compare(number, expected), 0, "%s", text);
}

Test(literal, reads_numbers_and_units)
{
    expect_number("0", i64(0));
    expect_number("-3", i64(-3));
    expect_number("+3", i64(3));
    expect_number("1.5", f64(1.5));
    expect_number("1e3", i64(1000));
    expect_number("2.5E-1", f64(0.25));
    expect_number(".5", f64(0.5));
    expect_number("9223372036854775807", i64(INT64_MAX));
    expect_number("-9223372036854775808", i64(INT64_MIN));
    expect_number("9223372036854775808", u64((uint64_t)INT64_MAX + 1));
    expect_number("18446744073709551615", u64(UINT64_MAX));
    expect_number("18446744073709551616", f64(0x1p64));
    expect_number("20KiB", i64(20480));
    expect_number("10MB", i64(10000000));
    expect_number("1.5KiB", i64(1536));
    expect_number("0.5B", f64(0.5));
    expect_number("9007199254740993B", i64(9007199254740993));
    expect_number("1.5h", i64(5400 * NS));
    expect_number("250ms", i64(250000000));
    expect_number("3us", i64(3000));
    expect_number("3\xc2\xb5s", i64(3000));
    expect_number("2d", i64(2 * 86400 * NS));
    expect_number("1w", i64(604800 * NS));
}

Test(literal, refuses_what_is_not_a_number)
{
    static const char *const wrong[] = {"",   "-",   "a",  "1x",   "1..2", "0x10",
                                        "1e", "1 ",  " 1", "1e5s", "inf",  "nan",
                                        ".",  "--1", "1.", "1,5",  "1KIB"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct lahar_number number;
        cr_expect_not(lahar_number_parse(wrong[i], strlen(wrong[i]), 1, &number), "%s", wrong[i]);
    }
}

Test(literal, takes_stored_text_as_a_number_only_in_canonical_form)
{
    static const char *const right[] = {"0", "-1", "10", "12.03", "1.0002", "1.50", "-0.5", "1e3"};
    static const char *const wrong[] = {"",
                                        "00123",
                                        "+1",
                                        "-0",
                                        "1.",
                                        ".5",
                                        "01.5",
                                        "1KiB",
                                        " 1",
                                        "1 ",
                                        "0x1",
                                        "1e999",
                                        "18446744073709551616"};
    struct lahar_number number;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        cr_expect(lahar_number_of_value(right[i], strlen(right[i]), &number), "%s", right[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_expect_not(lahar_number_of_value(wrong[i], strlen(wrong[i]), &number), "%s", wrong[i]);
    }
}

Test(literal, compares_integers_and_floats_without_rounding)
{
    cr_expect_eq(lahar_number_compare(i64(9007199254740993), f64(9007199254740992.0)), 1);
    cr_expect_eq(lahar_number_compare(f64(9007199254740992.0), i64(9007199254740993)), -1);
    cr_expect_eq(lahar_number_compare(u64(UINT64_MAX), f64(0x1p64)), -1);
    cr_expect_eq(lahar_number_compare(u64(UINT64_MAX), i64(-1)), 1);
    cr_expect_eq(lahar_number_compare(i64(INT64_MAX), f64(0x1p63)), -1);
    cr_expect_eq(lahar_number_compare(i64(INT64_MIN), f64(-0x1p63)), 0);
    cr_expect_eq(lahar_number_compare(i64(1), f64(1.5)), -1);
    cr_expect_eq(lahar_number_compare(i64(-1), f64(-1.5)), 1);
    cr_expect_eq(lahar_number_compare(f64(-0.0), i64(0)), 0);
    cr_expect_eq(lahar_number_compare(i64(1), f64((double)NAN)), LAHAR_UNORDERED);
    cr_expect_eq(lahar_number_compare(i64(1), f64((double)INFINITY)), -1);
    cr_expect_eq(lahar_number_compare(f64(-(double)INFINITY), i64(INT64_MIN)), -1);
}

static void expect_range(enum lahar_column column, const struct lahar_test_range *range,
                         uint64_t low, uint64_t high)
{
    uint64_t got_low = 0;
    uint64_t got_high = 0;
    cr_expect(lahar_column_numbers(column, range, &got_low, &got_high));
    cr_expect_eq(got_low, low);
    cr_expect_eq(got_high, high);
}

Test(literal, turns_bounds_into_ranges_of_a_column)
{
    struct lahar_test_range range = {.has_low = true, .low = f64(1.5)};
    expect_range(LAHAR_COLUMN_I64, &range, lahar_number_from_i64(2),
                 lahar_number_from_i64(INT64_MAX));
    expect_range(LAHAR_COLUMN_U64, &range, lahar_number_from_u64(2),
                 lahar_number_from_u64(UINT64_MAX));
    range = (struct lahar_test_range){.has_low = true,
                                      .has_high = true,
                                      .low_is_inclusive = true,
                                      .high_is_inclusive = true,
                                      .low = i64(-2),
                                      .high = i64(5)};
    expect_range(LAHAR_COLUMN_I64, &range, lahar_number_from_i64(-2), lahar_number_from_i64(5));
    expect_range(LAHAR_COLUMN_U64, &range, 0, lahar_number_from_u64(5));
    expect_range(LAHAR_COLUMN_F64, &range, lahar_number_from_f64(-2), lahar_number_from_f64(5));
    range.low_is_inclusive = range.high_is_inclusive = false;
    expect_range(LAHAR_COLUMN_I64, &range, lahar_number_from_i64(-1), lahar_number_from_i64(4));
    expect_range(LAHAR_COLUMN_F64, &range, lahar_number_from_f64(-0x1.fffffffffffffp0),
                 lahar_number_from_f64(0x1.3ffffffffffffp2));
    range.high_is_inclusive = true;
    range.low = range.high = i64(5);
    uint64_t low = 0;
    uint64_t high = 0;
    cr_expect_not(lahar_column_numbers(LAHAR_COLUMN_I64, &range, &low, &high));
    range = (struct lahar_test_range){.has_high = true, .high = i64(0)};
    cr_expect_not(lahar_column_numbers(LAHAR_COLUMN_U64, &range, &low, &high));
    range = (struct lahar_test_range){.has_low = true, .low = u64(UINT64_MAX)};
    cr_expect_not(lahar_column_numbers(LAHAR_COLUMN_I64, &range, &low, &high));
    cr_expect_not(lahar_column_numbers(LAHAR_COLUMN_U64, &range, &low, &high));
}

static void expect_time(const char *text, int64_t first_ns, int64_t last_ns)
{
    struct lahar_interval interval = {0, 0};
    const char *reason = "";
    cr_assert(lahar_query_time_parse(text, strlen(text), 1000 * NS, NULL, &interval, &reason),
              "%s: %s", text, reason);
    cr_expect_eq(interval.first_ns, first_ns, "%s: %" PRId64, text, interval.first_ns);
    cr_expect_eq(interval.last_ns, last_ns, "%s: %" PRId64, text, interval.last_ns);
}

Test(literal, reads_times_exactly)
{
    expect_time("1970-01-01T00:00:00Z", 0, 0);
    expect_time("2015-01-06T10:00:05Z", 1420538405 * NS, 1420538405 * NS);
    expect_time("2015-01-06T10:00:05.123456789Z", 1420538405 * NS + 123456789,
                1420538405 * NS + 123456789);
    expect_time("2015-01-06t10:00:05.5+01:30", 1420533005 * NS + 500000000,
                1420533005 * NS + 500000000);
    expect_time("2015-01-06 10:00:05-0800", 1420567205 * NS, 1420567205 * NS);
    expect_time("1969-12-31T23:59:59.999999999Z", -1, -1);
    expect_time("2000-02-29T00:00:00Z", 951782400 * NS, 951782400 * NS);
    expect_time("1677-09-22T00:00:00Z", -9223286400 * NS, -9223286400 * NS);
}

Test(literal, takes_a_truncated_date_as_what_it_covers)
{
    expect_time("2015-01-06", 1420502400 * NS, 1420588800 * NS - 1);
    expect_time("2015-02", 1422748800 * NS, 1425168000 * NS - 1);
    expect_time("2016-02", 1454284800 * NS, 1456790400 * NS - 1);
    expect_time("2015-12", 1448928000 * NS, 1451606400 * NS - 1);
    expect_time("2015-01-06T10", 1420538400 * NS, 1420542000 * NS - 1);
    expect_time("2015-01-06T10:30", 1420540200 * NS, 1420540260 * NS - 1);
    expect_time("2015-01-06T10:30+02:00", 1420533000 * NS, 1420533060 * NS - 1);
}

Test(literal, reads_epochs_and_distances_from_now)
{
    expect_time("@1420538400s", 1420538400 * NS, 1420538400 * NS);
    expect_time("@1420538400123ms", 1420538400123 * INT64_C(1000000),
                1420538400123 * INT64_C(1000000));
    expect_time("@-1ns", -1, -1);
    expect_time("@1.5s", 1500000000, 1500000000);
    expect_time("now", 1000 * NS, 1000 * NS);
    expect_time("now-1h", -2600 * NS, -2600 * NS);
    expect_time("now+1.5s", 1001 * NS + 500000000, 1001 * NS + 500000000);
    expect_time("now-1m30s", 910 * NS, 910 * NS);
    expect_time("now-1000000w", INT64_MIN, INT64_MIN);
}

Test(literal, refuses_wrong_times)
{
    static const char *const wrong[] = {"",
                                        "2015",
                                        "1420538400",
                                        "2015-13",
                                        "2015-02-29",
                                        "2015-00-01",
                                        "2015-01-06T24:00:00Z",
                                        "2015-01-06T10:60",
                                        "2015-1-6",
                                        "2015-01-06T",
                                        "2015-01-06T10:00:05.",
                                        "2015-01-06T10:00:05.1234567890Z",
                                        "nowhere",
                                        "now-",
                                        "now-5",
                                        "now-5KiB",
                                        "@1420538400",
                                        "@1KiB",
                                        "1600-01-01",
                                        "2300-01-01",
                                        "2015-01-06T10:00:05+25:00",
                                        "2015-01-06Z1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct lahar_interval interval;
        const char *reason = NULL;
        cr_expect_not(
            lahar_query_time_parse(wrong[i], strlen(wrong[i]), 0, NULL, &interval, &reason), "%s",
            wrong[i]);
        cr_expect_not_null(reason);
    }
}

Test(literal, reads_uuids_in_every_spelling)
{
    static const char *const spellings[] = {
        "8f3a61c0-0102-0304-0506-0708090a0b0c", "8F3A61C0-0102-0304-0506-0708090A0B0C",
        "8f3a61c00102030405060708090a0b0c", "{8f3a61c0-0102-0304-0506-0708090a0b0c}",
        "{8F3A61C00102030405060708090A0B0C}"};
    static const uint8_t bytes[16] = {0x8f, 0x3a, 0x61, 0xc0, 1, 2,  3,  4,
                                      5,    6,    7,    8,    9, 10, 11, 12};
    lahar_uuid uuid;
    for (size_t i = 0; i < 5; i++) {
        memset(&uuid, 0, sizeof uuid);
        cr_expect(lahar_query_uuid_parse(spellings[i], strlen(spellings[i]), &uuid));
        cr_expect_eq(memcmp(uuid.bytes, bytes, 16), 0, "%s", spellings[i]);
    }
    char text[LAHAR_UUID_TEXT_SIZE];
    lahar_query_uuid_format(&uuid, text);
    cr_expect_eq(memcmp(text, spellings[0], sizeof text), 0);
    cr_expect_not(lahar_query_uuid_parse("8f3a61c0", 8, &uuid));
    cr_expect_not(lahar_query_uuid_parse("8f3a61c0-0102-0304-0506-0708090a0b0g", 36, &uuid));
    cr_expect_not(lahar_query_uuid_parse("8f3a61c00-102-0304-0506-0708090a0b0c", 36, &uuid));
}
