/* Times of queries: RFC 3339, dates cut short, distances from now, epochs. */
#include "engine/query/literal.h"

#include <string.h>

#include "engine/format/time_zone.h"

__extension__ typedef __int128 wide;

enum {
    NS_PER_SECOND = 1000000000
};

static const char *const shape = "expected a time: 2015-01-06, 2015-01-06T10:00:05.25Z, now-1h or "
                                 "@1420538400s";

struct scanner {
    const char *next;
    const char *end;
    const struct lahar_time_zone *zone; /* of what names none; NULL: UTC */
};

static bool take(struct scanner *scanner, char c)
{
    if (scanner->next < scanner->end && *scanner->next == c) {
        scanner->next++;
        return true;
    }
    return false;
}

/* Exactly count digits. */
static bool take_number(struct scanner *scanner, int count, int *number_out)
{
    *number_out = 0;
    if (scanner->end - scanner->next < count) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        const char c = *scanner->next++;
        if (c < '0' || c > '9') {
            return false;
        }
        *number_out = *number_out * 10 + (c - '0');
    }
    return true;
}

static bool is_leap_year(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap_year(year));
}

/* Days from 1970-01-01 to the first of a month, in the proleptic Gregorian calendar. Years are
 * counted from March, so that the leap day is the last of its year. */
static int64_t days_of_month(int year, int month)
{
    const int64_t y = month <= 2 ? year - 1 : year;
    const int64_t from_march = month > 2 ? month - 3 : month + 9;
    const int64_t leap_days = y / 4 - y / 100 + y / 400;
    return y * 365 + leap_days + (153 * from_march + 2) / 5 - 719468;
}

/* The instant of a local time. */
static wide instant_of(const struct scanner *scanner, wide local_ns)
{
    const wide second = NS_PER_SECOND;
    const int64_t local_s = (int64_t)(local_ns / second - (local_ns % second < 0));
    return lahar_time_zone_instant(scanner->zone, local_s) * second + (local_ns - local_s * second);
}

static bool clamp(wide first_ns, wide end_ns, struct lahar_interval *interval_out,
                  const char **reason_out)
{
    if (first_ns < INT64_MIN || end_ns - 1 > INT64_MAX) {
        *reason_out = "the time is outside the years 1677 to 2262";
        return false;
    }
    *interval_out = (struct lahar_interval){(int64_t)first_ns, (int64_t)(end_ns - 1)};
    return true;
}

/* What lies between two local times: a day on which the clock is changed has 23 or 25 hours. */
static bool clamp_local(const struct scanner *scanner, wide first_ns, wide end_ns,
                        struct lahar_interval *interval_out, const char **reason_out)
{
    return clamp(instant_of(scanner, first_ns), instant_of(scanner, end_ns), interval_out,
                 reason_out);
}

/* "Z", "+hh:mm", "-hhmm": seconds east of UTC, and the zone is that; or nothing. */
static bool take_zone(struct scanner *scanner, int *offset_out)
{
    *offset_out = 0;
    if (scanner->next == scanner->end) {
        return true;
    }
    scanner->zone = NULL;
    if (take(scanner, 'Z') || take(scanner, 'z')) {
        return true;
    }
    const bool is_west = *scanner->next == '-';
    int hours = 0;
    int minutes = 0;
    if (!take(scanner, '+') && !take(scanner, '-')) {
        return false;
    }
    if (!take_number(scanner, 2, &hours)) {
        return false;
    }
    (void)take(scanner, ':');
    if (!take_number(scanner, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *offset_out = (hours * 60 + minutes) * 60 * (is_west ? -1 : 1);
    return true;
}

static bool take_fraction(struct scanner *scanner, int64_t *ns_out)
{
    int64_t unit = NS_PER_SECOND;
    const char *start = scanner->next;
    *ns_out = 0;
    while (scanner->next < scanner->end && *scanner->next >= '0' && *scanner->next <= '9') {
        unit /= 10;
        if (unit == 0) {
            return false;
        }
        *ns_out += (*scanner->next++ - '0') * unit;
    }
    return scanner->next > start;
}

/* hh[:mm[:ss[.fraction]]][zone] behind the date that starts at day_ns. */
static bool parse_clock(struct scanner *scanner, wide day_ns, struct lahar_interval *interval_out,
                        const char **reason_out)
{
    int hour = 0;
    int minute = 0;
    int second = 0;
    int offset = 0;
    int64_t fraction_ns = 0;
    wide span_ns = (wide)3600 * NS_PER_SECOND;
    bool is_right = take_number(scanner, 2, &hour);
    if (is_right && take(scanner, ':')) {
        is_right = take_number(scanner, 2, &minute);
        span_ns = (wide)60 * NS_PER_SECOND;
        if (is_right && take(scanner, ':')) {
            is_right = take_number(scanner, 2, &second);
            span_ns = 1;
            if (is_right && take(scanner, '.')) {
                is_right = take_fraction(scanner, &fraction_ns);
            }
        }
    }
    is_right = is_right && take_zone(scanner, &offset) && scanner->next == scanner->end;
    /* A leap second counts as the second after it, as clocks that have none count it. */
    if (!is_right || hour > 23 || minute > 59 || second > 60) {
        *reason_out = shape;
        return false;
    }
    const int64_t seconds = (int64_t)hour * 3600 + minute * 60 + second - offset;
    const wide first_ns = day_ns + (wide)seconds * NS_PER_SECOND + fraction_ns;
    if (span_ns == 1) {
        const wide instant_ns = instant_of(scanner, first_ns);
        return clamp(instant_ns, instant_ns + 1, interval_out, reason_out);
    }
    return clamp_local(scanner, first_ns, first_ns + span_ns, interval_out, reason_out);
}

static bool parse_date(struct scanner *scanner, struct lahar_interval *interval_out,
                       const char **reason_out)
{
    int year = 0;
    int month = 0;
    int day = 0;
    *reason_out = shape;
    if (!take_number(scanner, 4, &year) || !take(scanner, '-') ||
        !take_number(scanner, 2, &month) || month < 1 || month > 12) {
        return false;
    }
    const wide day_ns = (wide)86400 * NS_PER_SECOND;
    const wide month_start = days_of_month(year, month) * day_ns;
    const int days = days_in_month(year, month);
    if (scanner->next == scanner->end) {
        return clamp_local(scanner, month_start, month_start + days * day_ns, interval_out,
                           reason_out);
    }
    if (!take(scanner, '-') || !take_number(scanner, 2, &day) || day < 1 || day > days) {
        return false;
    }
    const wide start = month_start + (day - 1) * day_ns;
    if (scanner->next == scanner->end) {
        return clamp_local(scanner, start, start + day_ns, interval_out, reason_out);
    }
    if (!take(scanner, 'T') && !take(scanner, 't') && !take(scanner, ' ')) {
        return false;
    }
    return parse_clock(scanner, start, interval_out, reason_out);
}

/* Adds a whole number of nanoseconds; beyond 64 bits it only has to stay far away. */
static bool take_whole_ns(struct lahar_number number, wide *ns)
{
    switch (number.kind) {
    case LAHAR_NUMBER_I64:
        *ns += number.as.i64;
        return true;
    case LAHAR_NUMBER_U64:
        *ns += number.as.u64;
        return true;
    default:
        *ns += (wide)1 << 65;
        return number.as.f64 >= 0x1p63;
    }
}

/* One or several numbers with units of time ("1h30m"), in ns. */
static bool parse_duration(const char *text, size_t size, wide *ns_out)
{
    *ns_out = 0;
    size_t at = 0;
    while (at < size) {
        size_t end = at;
        while (end < size && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) {
            end++;
        }
        if (end == at) {
            return false;
        }
        while (end < size && !((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) {
            end++;
        }
        struct lahar_number per_ns;
        struct lahar_number per_s;
        /* A size is the same in both units: not a duration. */
        if (!lahar_number_parse(text + at, end - at, 1, &per_ns) ||
            !lahar_number_parse(text + at, end - at, NS_PER_SECOND, &per_s) ||
            !take_whole_ns(per_ns, ns_out) ||
            (lahar_number_compare(per_ns, per_s) == 0 && *ns_out != 0)) {
            return false;
        }
        at = end;
    }
    return size != 0;
}

static bool parse_epoch(const char *text, size_t size, struct lahar_interval *interval_out,
                        const char **reason_out)
{
    wide ns = 0;
    const bool is_negative = size != 0 && text[0] == '-';
    *reason_out = "an epoch needs its unit: @1420538400s, ms, us or ns";
    if (!parse_duration(text + is_negative, size - is_negative, &ns)) {
        return false;
    }
    ns = is_negative ? -ns : ns;
    return clamp(ns, ns + 1, interval_out, reason_out);
}

bool lahar_query_time_parse(const void *text, size_t size, int64_t now_ns,
                            const struct lahar_time_zone *zone, struct lahar_interval *interval_out,
                            const char **reason_out)
{
    const char *p = text;
    if (size >= 3 && memcmp(p, "now", 3) == 0) {
        wide distance = 0;
        *reason_out = "behind 'now' stands a distance such as -15m, -1.5h or +1d";
        if (size > 3 &&
            ((p[3] != '-' && p[3] != '+') || !parse_duration(p + 4, size - 4, &distance))) {
            return false;
        }
        const wide ns = (wide)now_ns + (size > 3 && p[3] == '-' ? -distance : distance);
        /* A distance beyond the first or last time there is means that time. */
        const int64_t point = ns < INT64_MIN ? INT64_MIN : ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
        *interval_out = (struct lahar_interval){point, point};
        return true;
    }
    if (size >= 1 && p[0] == '@') {
        return parse_epoch(p + 1, size - 1, interval_out, reason_out);
    }
    struct scanner scanner = {p, p + size, zone};
    return parse_date(&scanner, interval_out, reason_out);
}
