/* Times by named format and by directives. Expected values are from the calendar (date -u). */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/format/time_pattern.h"
#include "engine/format/time_zone.h"

static const int64_t second = 1000000000;

static bool parse_at(const char *format, const char *zone, unsigned year, int64_t reference_ns,
                     const char *text, int64_t *time_ns_out)
{
    struct lahar_time_pattern pattern;
    lahar_error error = {0};
    cr_assert_eq(lahar_time_pattern_init(&pattern, format, zone, year, reference_ns, &error),
                 LAHAR_OK, "%s", error.message);
    return lahar_time_pattern_parse(&pattern, (lahar_bytes){text, strlen(text)}, time_ns_out);
}

static bool parse(const char *format, const char *text, int64_t *time_ns_out)
{
    return parse_at(format, NULL, 0, 0, text, time_ns_out);
}

#define EXPECT_TIME(format, text, expected_ns)                                                     \
    do {                                                                                           \
        int64_t time_ns = 0;                                                                       \
        cr_expect(parse((format), (text), &time_ns), "%s: %s", (format), (text));                  \
        cr_expect_eq(time_ns, (expected_ns), "%s: %s is %lld", (format), (text),                   \
                     (long long)time_ns);                                                          \
    } while (0)

#define EXPECT_NO_TIME(format, text)                                                               \
    do {                                                                                           \
        int64_t time_ns = 0;                                                                       \
        cr_expect_not(parse((format), (text), &time_ns), "%s: %s", (format), (text));              \
    } while (0)

Test(time_pattern, reads_named_formats_and_nothing_else)
{
    EXPECT_TIME("clf", "18/May/2015:11:05:24 +0000", 1431947124 * second);
    EXPECT_TIME("clf", "18/May/2015:13:05:24 +0200", 1431947124 * second);
    EXPECT_NO_TIME("clf", "2015-05-18T11:05:24Z");
    EXPECT_TIME("rfc3339", "2016-12-19 16:31:50,123", 1482165110 * second + 123000000);
    EXPECT_NO_TIME("rfc3339", "1482165110");
    EXPECT_TIME("epoch_s", "1482165110.5", 1482165110 * second + 500000000);
    EXPECT_TIME("epoch_ms", "1482165110", 1482165110 * INT64_C(1000000));
    EXPECT_TIME("epoch_us", "-1", -1000);
    EXPECT_TIME("epoch_ns", "1482165110123456789", INT64_C(1482165110123456789));
    EXPECT_NO_TIME("epoch_s", "");
    EXPECT_NO_TIME("epoch_s", "12x");
    EXPECT_TIME("any", "1482165110", 1482165110 * second);
    EXPECT_NO_TIME("syslog", "Dec 19 16:31:50");
}

Test(time_pattern, reads_directives)
{
    const int64_t t = 1482165110 * second; /* 2016-12-19T16:31:50Z */
    EXPECT_TIME("%Y-%m-%dT%H:%M:%S", "2016-12-19T16:31:50", t);
    EXPECT_TIME("%F %T.%f", "2016-12-19 16:31:50.25", t + 250000000);
    EXPECT_TIME("%y%m%d %H%M%S", "161219 163150", t);
    EXPECT_TIME("%y/%m/%d %H:%M:%S", "16/12/19 16:31:50", t);
    EXPECT_TIME("%Y%m%d-%H:%M:%S:%L", "20161219-16:31:50:7", t + 7000000);
    EXPECT_TIME("%a %b %d %H:%M:%S %Y", "Mon Dec 19 16:31:50 2016", t);
    EXPECT_TIME("%A, %d %B %Y %I:%M:%S %p", "Monday, 19 December 2016 04:31:50 PM", t);
    EXPECT_TIME("%F %I:%M %p", "2016-12-19 12:00 am", t - (16 * 3600 + 31 * 60 + 50) * second);
    EXPECT_TIME("%F %T %z", "2016-12-19 17:31:50 +01:00", t);
    EXPECT_TIME("%F %T%z|%%", "2016-12-19 14:31:50-0200|%", t);
    EXPECT_TIME("%F %T %Z", "2016-12-19 16:31:50 GMT", t);
    EXPECT_TIME("%s", "1482165110.000000001", t + 1);
    EXPECT_TIME("%d.%m.%y", "1.1.70", 0);
    EXPECT_TIME("%d.%m.%y", "1.1.69", -365 * 86400 * second);
    EXPECT_TIME("%F%t%R", "2016-12-19 \t 16:31", t - 50 * second);
    EXPECT_NO_TIME("%F", "2016-12-19 ");
    EXPECT_NO_TIME("%F", "2016-02-30");
    EXPECT_NO_TIME("%F %T %Z", "2016-12-19 16:31:50 CET");
    EXPECT_NO_TIME("%I:%M %F", "13:00 2016-12-19");
    EXPECT_NO_TIME("%F", "");
    EXPECT_NO_TIME("%F %T", "2016-12-19T16:31:50");
}

Test(time_pattern, takes_the_zone_given_where_the_text_has_none)
{
    int64_t time_ns = 0;
    cr_expect(parse_at("%F %T", "+05:30", 0, 0, "1970-01-01 05:30:01", &time_ns));
    cr_expect_eq(time_ns, second);
    cr_expect(parse_at(NULL, "-0100", 0, 0, "1970-01-01T00:00:00", &time_ns));
    cr_expect_eq(time_ns, 3600 * second);
    cr_expect(parse_at(NULL, "-01", 0, 0, "1970-01-01T00:00:00Z", &time_ns));
    cr_expect_eq(time_ns, 0);
}

Test(time_pattern, takes_the_year_given_or_the_last_that_is_not_in_the_future)
{
    const int64_t now = 1482165110 * second; /* 2016-12-19T16:31:50Z */
    int64_t time_ns = 0;
    cr_expect(parse_at("syslog", NULL, 2020, now, "Mar 29 08:09:23", &time_ns));
    cr_expect_eq(time_ns, 1585469363 * second);
    cr_expect(parse_at("syslog", NULL, 0, now, "Dec 19 16:31:51", &time_ns));
    cr_expect_eq(time_ns, now + second, "clocks differ a little");
    cr_expect(parse_at("syslog", NULL, 0, now, "Dec 21 00:00:00", &time_ns));
    cr_expect_eq(time_ns, 1450656000 * second, "of 2015");
    cr_expect(parse_at("syslog", NULL, 0, 1514764800 * second, "Feb 29 00:00:00", &time_ns));
    cr_expect_eq(time_ns, 1456704000 * second, "2018-01-01 looks back to 2016");
    cr_expect(parse_at("syslog", NULL, 0, 1514764800 * second, "Jan  1 00:00:00", &time_ns));
    cr_expect_eq(time_ns, 1514764800 * second);
    cr_expect_not(parse_at("syslog", NULL, 2019, now, "Feb 29 00:00:00", &time_ns));
    cr_expect_not(parse_at("syslog", NULL, 0, now, "Feb 30 00:00:00", &time_ns));
}

Test(time_pattern, refuses_what_it_does_not_know)
{
    struct lahar_time_pattern pattern;
    cr_expect_eq(lahar_time_pattern_init(&pattern, "%", NULL, 0, 0, NULL), LAHAR_INVALID);
    cr_expect_eq(lahar_time_pattern_init(&pattern, "%q", NULL, 0, 0, NULL), LAHAR_INVALID);
    cr_expect_eq(lahar_time_pattern_init(&pattern, "plain", NULL, 0, 0, NULL), LAHAR_INVALID);
    cr_expect_eq(lahar_time_pattern_init(&pattern, NULL, "Mars/Olympus", 0, 0, NULL),
                 LAHAR_INVALID);
    cr_expect_eq(lahar_time_pattern_init(&pattern, NULL, "", 0, 0, NULL), LAHAR_INVALID);
    cr_expect_eq(lahar_time_pattern_init(&pattern, NULL, NULL, 10000, 0, NULL), LAHAR_INVALID);
}

/* Berlin's rule alone, as a compiled file (RFC 8536, version 2) without changes. */
static struct lahar_time_zone *make_berlin(void)
{
    static const char rule[] = "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
    uint8_t block[44 + 6 + 4] = "TZif2";
    uint8_t file[2 * sizeof block + sizeof rule];
    struct lahar_time_zone *zone = NULL;
    lahar_error error = {0};
    block[39] = 1; /* types: one, of 3,600 s, whose name is CET */
    block[43] = 4;
    block[46] = 0x0e;
    block[47] = 0x10;
    memcpy(block + 50, "CET", 4);
    memcpy(file, block, sizeof block);
    memcpy(file + sizeof block, block, sizeof block);
    memcpy(file + 2 * sizeof block, rule, sizeof rule - 1);
    cr_assert_eq(lahar_time_zone_parse(file, 2 * sizeof block + sizeof rule - 1,
                                       &lahar_allocator_libc, &zone, &error),
                 LAHAR_OK, "%s", error.message);
    return zone;
}

Test(time_pattern, takes_local_times_of_a_zone_with_summer_time)
{
    static const struct {
        const char *format;
        const char *text;
        int64_t seconds;
    } cases[] = {
        {NULL, "2024-01-15 12:00:00", 1705316400},           /* 11:00 UTC */
        {NULL, "2024-07-15T12:00:00", 1721037600},           /* 10:00 UTC */
        {NULL, "2024-07-15T12:00:00Z", 1721044800},          /* names its own */
        {NULL, "2024-07-15T12:00:00+05:00", 1721026800},     /* the same */
        {NULL, "Mon, 15 Jul 2024 12:00:00 GMT", 1721044800}, /* the same */
        {NULL, "Mon Jul 15 12:00:00 2024", 1721037600},
        {NULL, "1721037600", 1721037600},
        {"rfc3339", "2024-07-15 12:00:00", 1721037600},
        {"%d.%m.%Y %H:%M", "15.07.2024 12:00", 1721037600},
        {"%d.%m.%Y %H:%M %z", "15.07.2024 12:00 +0000", 1721044800},
        {"%d.%m.%Y %H:%M %Z", "15.07.2024 12:00 UTC", 1721044800},
        {"syslog", "Jul 15 12:00:00", 1721037600},
        /* Twice there: the first; and passed over: as if the clock had been set later. */
        {NULL, "2024-10-27 02:30:00", 1729989000},
        {NULL, "2024-10-27 03:30:00", 1729996200},
        {NULL, "2024-03-31 02:30:00", 1711848600},
        {NULL, "2024-03-31 03:30:00", 1711848600},
    };
    struct lahar_time_zone *zone = make_berlin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lahar_time_pattern pattern;
        int64_t time_ns = 0;
        cr_assert_eq(lahar_time_pattern_init(&pattern, cases[i].format, NULL, 2024, 0, NULL),
                     LAHAR_OK);
        pattern.zone = zone;
        cr_expect(lahar_time_pattern_parse(
                      &pattern, (lahar_bytes){cases[i].text, strlen(cases[i].text)}, &time_ns),
                  "%s", cases[i].text);
        cr_expect_eq(time_ns, cases[i].seconds * 1000000000, "%s: %lld", cases[i].text,
                     (long long)(time_ns / 1000000000));
    }
    lahar_time_zone_destroy(zone);
}
