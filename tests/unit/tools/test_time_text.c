/* Times as text, against values found with date(1) and by hand. */
#include <criterion/criterion.h>

#include "tools/time_text.h"

#define SECOND_NS INT64_C(1000000000)

static const int64_t NOW_NS = INT64_C(1715938200) * SECOND_NS; /* 2024-05-17T09:30:00Z */

static void expect_time(const char *text, int64_t seconds, int64_t fraction_ns)
{
    int64_t time_ns = 0;
    cr_assert(time_text_parse(text, NOW_NS, &time_ns), "%s is a time", text);
    cr_assert_eq(time_ns, seconds * SECOND_NS + fraction_ns, "%s gave %lld", text,
                 (long long)time_ns);
}

static void expect_no_time(const char *text)
{
    int64_t time_ns = 0;
    cr_assert_not(time_text_parse(text, NOW_NS, &time_ns), "%s is no time", text);
}

Test(time_text, reads_dates_and_times)
{
    expect_time("2024-05-17T09:30:00Z", 1715938200, 0);
    expect_time("2024-05-17 09:30:00", 1715938200, 0);
    expect_time("2024-05-17t09:30z", 1715938200, 0);
    expect_time("2024-05-17", 1715904000, 0);
    expect_time("2024-05", 1714521600, 0);
    expect_time("2024", 1704067200, 0);
    expect_time("2024-02-29T23:59:59.999999999Z", 1709251199, 999999999);
    expect_time("1969-12-31T23:59:59.5Z", -1, 500000000);
    expect_time("1970-01-01T00:00:00Z", 0, 0);
    expect_time("2000-03-01", 951868800, 0);
}

Test(time_text, reads_zones)
{
    expect_time("2024-05-17T11:30:00+02:00", 1715938200, 0);
    expect_time("2024-05-17T04:00:00-0530", 1715938200, 0);
}

Test(time_text, reads_times_relative_to_now)
{
    expect_time("now", 1715938200, 0);
    expect_time("now-1h", 1715938200 - 3600, 0);
    expect_time("now-1h30m", 1715938200 - 5400, 0);
    expect_time("@1715938200", 1715938200, 0);
    expect_time("@1.25", 1, 250000000);
}

Test(time_text, refuses_what_is_no_time)
{
    static const char *const WRONG[] = {"",
                                        "yesterday",
                                        "2024-13-01",
                                        "2024-02-30",
                                        "2023-02-29",
                                        "2024-5-17",
                                        "2024-05-17T",
                                        "2024-05-17T25:00:00Z",
                                        "now-",
                                        "now-1",
                                        "now+1h",
                                        "2024-05-17T09:30:00.Z",
                                        "@",
                                        "@x",
                                        "2024-05-17T09:30:00X",
                                        "2024-05-17T09:30:00.1234567890Z",
                                        "9999-01-01",
                                        "@99999999999999999999"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        expect_no_time(WRONG[i]);
    }
}

Test(time_text, adds_units_up)
{
    uint64_t duration_ns = 0;
    cr_assert(time_text_parse_duration("1w2d3h4m5s6ms7us8ns", &duration_ns));
    cr_assert_eq(duration_ns, UINT64_C(788645006007008));
    cr_assert_not(time_text_parse_duration("5", &duration_ns));
    cr_assert_not(time_text_parse_duration("h", &duration_ns));
    cr_assert_not(time_text_parse_duration("1y", &duration_ns));
    cr_assert_not(time_text_parse_duration("99999999999w", &duration_ns));
}

Test(time_text, writes_nanoseconds_and_only_what_is_needed)
{
    char text[TIME_TEXT_SIZE];
    time_text_exact(INT64_C(1715938200) * SECOND_NS + 5, text);
    cr_assert_str_eq(text, "2024-05-17T09:30:00.000000005Z");
    time_text_exact(-1, text);
    cr_assert_str_eq(text, "1969-12-31T23:59:59.999999999Z");
    time_text_short(INT64_C(1715938200) * SECOND_NS, text);
    cr_assert_str_eq(text, "2024-05-17T09:30:00.000Z");
    time_text_short(INT64_C(1715938200) * SECOND_NS + 1500000, text);
    cr_assert_str_eq(text, "2024-05-17T09:30:00.001500Z");
    time_text_exact(INT64_MIN, text);
    cr_assert_str_eq(text, "1677-09-21T00:12:43.145224192Z");
    time_text_exact(INT64_MAX, text);
    cr_assert_str_eq(text, "2262-04-11T23:47:16.854775807Z");
}
