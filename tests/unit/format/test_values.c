/* Typed values and times as text, against values computed by hand or by the C library. */
#include <math.h>
#include <time.h>

#include "engine/format/time_text.h"
#include "engine/format/value_text.h"
#include "text_fixture.h"

static bool parse_time(const char *text, int64_t *time_ns_out)
{
    return lahar_time_parse((lahar_bytes){text, strlen(text)}, time_ns_out);
}

static void expect_time(const char *text, int64_t expected)
{
    int64_t time_ns = 0;
    cr_assert(parse_time(text, &time_ns), "%s", text);
    cr_assert_eq(time_ns, expected, "%s: %lld", text, (long long)time_ns);
}

Test(time_text, understands_zones_fractions_and_separators)
{
    const int64_t may_ns = 1714521600000000000;
    expect_time("2024-05-01T00:00:00Z", may_ns);
    expect_time("2024-05-01t00:00:00z", may_ns);
    expect_time("2024-05-01 00:00:00", may_ns);
    expect_time("2024-05-01T05:30:00+05:30", may_ns);
    expect_time("2024-04-30T16:00:00-0800", may_ns);
    expect_time("2024-05-01T02:00:00+02", may_ns);
    expect_time("2024-05-01 00:00:00,123", may_ns + 123000000);
    expect_time("2024-05-01T00:00:00.123456789012Z", may_ns + 123456789);
    expect_time("1969-12-31T23:59:59.999Z", -1000000);
    expect_time("01/May/2024:02:00:00 +0200", may_ns);
    expect_time("Wed, 01 May 2024 00:00:00 GMT", may_ns);
    expect_time("Wed May  1 00:00:00.5 2024", may_ns + 500000000);
    expect_time("2016-12-31T23:59:60.5Z", 1483228800500000000);
    expect_time("9999-12-31T23:59:59Z", INT64_MAX);
    expect_time("2262-04-11T23:47:16.854775808Z", INT64_MAX);
    expect_time("0001-01-01T00:00:00Z", INT64_MIN + 1);
}

Test(time_text, refuses_what_is_no_time)
{
    static const char *const bad[] = {"",
                                      "yesterday",
                                      "2024-05-01",
                                      "2024-13-01T00:00:00Z",
                                      "2023-02-29T00:00:00Z",
                                      "2024-05-01T24:00:00Z",
                                      "2024-05-01T11:31:60Z",
                                      "2024-05-01T00:00:00+24:00",
                                      "2024-05-01T00:00:00.Z",
                                      "2024-05-01T00:00:00Zx",
                                      "2024-05-01T00:00:00 ",
                                      "1e",
                                      ".5",
                                      "5.",
                                      "--5",
                                      "1.2.3",
                                      "0x10",
                                      "+5",
                                      "01/Mai/2024:00:00:00 +0000",
                                      "2024-5-01T00:00:00Z"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t time_ns;
        cr_assert_not(parse_time(bad[i], &time_ns), "%s", bad[i]);
    }
}

Test(time_text, tells_the_unit_of_an_epoch_number_by_its_size)
{
    const int64_t may_ns = 1714521600000000000;
    expect_time("1714521600", may_ns);
    expect_time("1714521600123", may_ns + 123000000);
    expect_time("1714521600123456", may_ns + 123456000);
    expect_time("1714521600123456789", may_ns + 123456789);
    expect_time("1714521600.123456789999", may_ns + 123456789);
    expect_time("1588205199.82437", 1588205199824370000);
    expect_time("1.7145216e9", may_ns);
    expect_time("17145216000e-1", may_ns);
    expect_time("0", 0);
    expect_time("-0.5", -500000000);
    expect_time("99999999999", INT64_MAX);
    expect_time("100000000000", 100000000000000000);
    expect_time("0.000000001", 1);
    expect_time("1e300", INT64_MAX);
    expect_time("-1e300", INT64_MIN + 1);
    expect_time("1e-300", 0);
    expect_time("00000000000000000000001", 1000000000);
}

Test(time_text, agrees_with_the_calendar_of_the_c_library)
{
    uint64_t state = 88172645463325252;
    for (int i = 0; i < 20000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const int64_t time_ns = (int64_t)state;
        const time_t seconds = (time_t)(time_ns / 1000000000 - (time_ns % 1000000000 < 0));
        struct tm tm;
        char expected[64];
        char text[LAHAR_TIME_TEXT_SIZE_MAX + 1];
        cr_assert_not_null(gmtime_r(&seconds, &tm));
        (void)snprintf(
            expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ", tm.tm_year + 1900,
            tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
            (long long)(time_ns - (int64_t)((__extension__(__int128) seconds) * 1000000000)));
        text[lahar_time_format(time_ns, 9, text)] = 0;
        cr_assert_str_eq(text, expected);
        expect_time(text, time_ns);
    }
}

static bool parse_f64(const char *text, double *value_out, bool *is_canonical_out)
{
    lahar_value value = {.type = LAHAR_F64};
    const bool is_parsed =
        lahar_value_parse((lahar_bytes){text, strlen(text)}, &value, is_canonical_out);
    *value_out = value.as.f64;
    return is_parsed;
}

static const char *f64_text(double value, char out[64])
{
    struct lahar_buffer buffer = {.data = (uint8_t *)out, .capacity = 63};
    lahar_f64_put_text(&buffer, value);
    out[buffer.size] = 0;
    return out;
}

Test(value_text, writes_doubles_shortest)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.0, "0"},
                 {-0.0, "-0"},
                 {1.0, "1"},
                 {0.1, "0.1"},
                 {-2.5, "-2.5"},
                 {1e21, "1e+21"},
                 {1e20, "100000000000000000000"},
                 {1e-7, "0.0000001"},
                 {1.5e-8, "1.5e-8"},
                 {5e-324, "5e-324"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"},
                 {0.30000000000000004, "0.30000000000000004"},
                 {123456.789, "123456.789"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        cr_assert_str_eq(f64_text(cases[i].value, text), cases[i].text);
    }
}

Test(value_text, knows_canonical_doubles_without_writing_them)
{
    /* Whatever is called canonical must be what is written, and the other way round. */
    static const char *const texts[] = {"0",
                                        "-0",
                                        "0.0",
                                        "1",
                                        "1.0",
                                        "1.50",
                                        "1.5",
                                        "007",
                                        "0.1",
                                        "0.0000001",
                                        "0.00000001",
                                        "1e3",
                                        "123456789012345",
                                        "1234567890123456789",
                                        "0.000123",
                                        "-12.25",
                                        "100",
                                        "00.5",
                                        "1e400",
                                        "999999999999999",
                                        "0.3",
                                        "0.100000000000000005",
                                        "4503599627370497.5",
                                        "-7"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double value;
        bool is_canonical;
        char text[64];
        cr_assert(parse_f64(texts[i], &value, &is_canonical), "%s", texts[i]);
        cr_assert_eq(value, strtod(texts[i], NULL), "%s", texts[i]);
        cr_assert_eq(is_canonical, strcmp(f64_text(value, text), texts[i]) == 0, "%s %s", texts[i],
                     text);
    }
}

Test(value_text, reads_doubles_as_the_c_library_does)
{
    uint64_t state = 42;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        char text[64];
        char again[64];
        const double divisors[] = {1e1, 1e3, 1e6, 1e10, 1e15, 1e17, 1e18, 1e19};
        (void)snprintf(text, sizeof text, "%.*f", (int)(state >> 55 & 7),
                       (double)(int64_t)state / divisors[state >> 61]);
        double value;
        bool is_canonical;
        cr_assert(parse_f64(text, &value, &is_canonical));
        cr_assert_eq(value, strtod(text, NULL), "%s", text);
        cr_assert_eq(is_canonical, strcmp(f64_text(value, again), text) == 0, "%s %s", text, again);
        cr_assert_eq(strtod(again, NULL), value);
    }
}

Test(value_text, bounds_integers)
{
    static const struct {
        lahar_type type;
        const char *text;
        bool is_good;
        bool is_canonical;
    } cases[] = {{LAHAR_I64, "9223372036854775807", true, true},
                 {LAHAR_I64, "9223372036854775808", false, false},
                 {LAHAR_I64, "-9223372036854775808", true, true},
                 {LAHAR_I64, "-9223372036854775809", false, false},
                 {LAHAR_I64, "+1", true, false},
                 {LAHAR_I64, "-0", true, false},
                 {LAHAR_I64, "01", true, false},
                 {LAHAR_I64, "", false, false},
                 {LAHAR_I64, "-", false, false},
                 {LAHAR_I64, "1 ", false, false},
                 {LAHAR_U64, "18446744073709551615", true, true},
                 {LAHAR_U64, "18446744073709551616", false, false},
                 {LAHAR_U64, "-1", false, false},
                 {LAHAR_BOOL, "true", true, true},
                 {LAHAR_BOOL, "0", true, false},
                 {LAHAR_BOOL, "TRUE", false, false},
                 {LAHAR_F64, "nan", true, true},
                 {LAHAR_F64, "infinity", false, false},
                 {LAHAR_F64, "0x1p3", false, false},
                 {LAHAR_F64, "", false, false},
                 {LAHAR_UUID, "00112233-4455-6677-8899-aabbccddeef", false, false},
                 {LAHAR_UUID, "00112233-4455-6677-8899-aabbccddeegg", false, false},
                 {LAHAR_MAP, "x", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lahar_value value = {.type = cases[i].type};
        bool is_canonical = false;
        const char *text = cases[i].text;
        const bool is_good =
            lahar_value_parse((lahar_bytes){text, strlen(text)}, &value, &is_canonical);
        cr_assert_eq(is_good, cases[i].is_good, "%s", text);
        cr_assert(!is_good || is_canonical == cases[i].is_canonical, "%s", text);
    }
}

Test(value_text, writes_base64)
{
    static const char *const cases[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lahar_buffer buffer;
        lahar_buffer_init(&buffer, &lahar_allocator_libc);
        lahar_base64_put(&buffer, (lahar_bytes){cases[i][0], strlen(cases[i][0])});
        cr_assert_eq(buffer.size, strlen(cases[i][1]));
        cr_assert_arr_eq(buffer.data == NULL ? (const uint8_t *)"" : buffer.data, cases[i][1],
                         buffer.size);
        lahar_buffer_deinit(&buffer);
    }
}
