/* Parsing and writing times; see time_text.h. Calendar arithmetic is in days since
 * 1970-01-01 of the proleptic Gregorian calendar, sums in 128 bits, so that nothing
 * wraps before the result is clamped. No locale, no time zone database. */
#include "engine/format/time_text.h"

#include <string.h>

static const int64_t ns_per_second = 1000000000;
static const int64_t seconds_per_day = 86400;

/* Holds any year's nanoseconds. */
__extension__ typedef __int128 wide;

struct cursor {
    const uint8_t *p;
    const uint8_t *end;
};

struct moment {
    unsigned year, month, day; /* month and day from 1 */
    unsigned hour, minute, second;
    int64_t fraction_ns;
    int64_t offset_seconds; /* of the zone, east positive */
};

/* Days from 1970-01-01 to the date: years are counted from March, so that the leap
 * day is the last of its year; 400 years have 146,097 days. */
static int64_t days_of_date(unsigned year, unsigned month, unsigned day)
{
    const int64_t y = (int64_t)year - (month <= 2);
    const int64_t era = (y >= 0 ? y : y - 399) / 400;
    const int64_t year_of_era = y - era * 400;
    const int64_t month_from_march = (month + 9) % 12;
    const int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static unsigned days_in_month(unsigned year, unsigned month)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && is_leap ? 29 : days[month - 1];
}

static int64_t clamp_ns(wide ns)
{
    /* INT64_MIN itself stands for the time of arrival. */
    if (ns < (wide)INT64_MIN + 1) {
        return INT64_MIN + 1;
    }
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static bool take_byte(struct cursor *c, uint8_t byte)
{
    if (c->p == c->end || *c->p != byte) {
        return false;
    }
    c->p++;
    return true;
}

/* Exactly count digits. */
static bool take_digits(struct cursor *c, unsigned count, unsigned *value_out)
{
    unsigned value = 0;
    for (unsigned i = 0; i < count; i++) {
        if (c->p == c->end || (uint8_t)(*c->p - '0') > 9) {
            return false;
        }
        value = value * 10 + (unsigned)(*c->p++ - '0');
    }
    *value_out = value;
    return true;
}

/* One digit, two digits, or a space and a digit. */
static bool take_day(struct cursor *c, unsigned *day_out)
{
    const bool is_padded = take_byte(c, ' ');
    if (!take_digits(c, 1, day_out)) {
        return false;
    }
    unsigned second;
    if (!is_padded && take_digits(c, 1, &second)) {
        *day_out = *day_out * 10 + second;
    }
    return true;
}

static bool take_fraction(struct cursor *c, int64_t *fraction_ns_out)
{
    *fraction_ns_out = 0;
    if (c->p == c->end || (*c->p != '.' && *c->p != ',')) {
        return true;
    }
    c->p++;
    int64_t scale = ns_per_second;
    const uint8_t *start = c->p;
    while (c->p < c->end && (uint8_t)(*c->p - '0') <= 9) {
        scale /= 10;
        *fraction_ns_out += (*c->p++ - '0') * scale;
    }
    return c->p > start;
}

/* hh:mm:ss and a fraction. */
static bool take_clock(struct cursor *c, struct moment *m)
{
    return take_digits(c, 2, &m->hour) && take_byte(c, ':') && take_digits(c, 2, &m->minute) &&
           take_byte(c, ':') && take_digits(c, 2, &m->second) && take_fraction(c, &m->fraction_ns);
}

/* Z, z, +hh:mm, +hhmm, +hh, or nothing, which is UTC. */
static bool take_zone(struct cursor *c, struct moment *m)
{
    m->offset_seconds = 0;
    if (c->p == c->end || take_byte(c, 'Z') || take_byte(c, 'z')) {
        return true;
    }
    const bool is_west = take_byte(c, '-');
    unsigned hours;
    unsigned minutes = 0;
    if ((!is_west && !take_byte(c, '+')) || !take_digits(c, 2, &hours)) {
        return false;
    }
    const bool has_colon = take_byte(c, ':');
    if ((has_colon || c->p != c->end) && !take_digits(c, 2, &minutes)) {
        return false;
    }
    if (hours > 23 || minutes > 59) {
        return false;
    }
    m->offset_seconds = (int64_t)(hours * 3600 + minutes * 60) * (is_west ? -1 : 1);
    return true;
}

/* "Jan" .. "Dec". */
static bool take_month(struct cursor *c, unsigned *month_out)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (unsigned i = 0; i < 12 && c->end - c->p >= 3; i++) {
        if (memcmp(c->p, names + i * 3, 3) == 0) {
            c->p += 3;
            *month_out = i + 1;
            return true;
        }
    }
    return false;
}

/* "Mon" .. "Sun"; whether it is the right one is not looked at. */
static bool take_weekday(struct cursor *c)
{
    static const char names[] = "MonTueWedThuFriSatSun";
    for (unsigned i = 0; i < 7 && c->end - c->p >= 3; i++) {
        if (memcmp(c->p, names + i * 3, 3) == 0) {
            c->p += 3;
            return true;
        }
    }
    return false;
}

/* 2024-05-01T00:00:00.5+02:00 */
static bool parse_rfc3339(struct cursor c, struct moment *m)
{
    if (!take_digits(&c, 4, &m->year) || !take_byte(&c, '-') || !take_digits(&c, 2, &m->month) ||
        !take_byte(&c, '-') || !take_digits(&c, 2, &m->day)) {
        return false;
    }
    if (!take_byte(&c, 'T') && !take_byte(&c, 't') && !take_byte(&c, ' ')) {
        return false;
    }
    if (!take_clock(&c, m)) {
        return false;
    }
    if (c.end - c.p > 1 && *c.p == ' ') {
        c.p++;
    }
    return take_zone(&c, m) && c.p == c.end;
}

/* 01/May/2024:00:00:00 +0000 */
static bool parse_clf(struct cursor c, struct moment *m)
{
    return take_digits(&c, 2, &m->day) && take_byte(&c, '/') && take_month(&c, &m->month) &&
           take_byte(&c, '/') && take_digits(&c, 4, &m->year) && take_byte(&c, ':') &&
           take_clock(&c, m) && take_byte(&c, ' ') && c.p < c.end && take_zone(&c, m) &&
           c.p == c.end;
}

/* Wed, 01 May 2024 00:00:00 GMT */
static bool parse_rfc1123(struct cursor c, struct moment *m)
{
    if (!take_weekday(&c) || !take_byte(&c, ',') || !take_byte(&c, ' ') || !take_day(&c, &m->day) ||
        !take_byte(&c, ' ') || !take_month(&c, &m->month) || !take_byte(&c, ' ') ||
        !take_digits(&c, 4, &m->year) || !take_byte(&c, ' ') || !take_clock(&c, m) ||
        !take_byte(&c, ' ')) {
        return false;
    }
    if (c.end - c.p == 3 && (memcmp(c.p, "GMT", 3) == 0 || memcmp(c.p, "UTC", 3) == 0)) {
        m->offset_seconds = 0;
        return true;
    }
    return c.p < c.end && take_zone(&c, m) && c.p == c.end;
}

/* Wed May  1 00:00:00.123456 2024 */
static bool parse_asctime(struct cursor c, struct moment *m)
{
    m->offset_seconds = 0;
    return take_weekday(&c) && take_byte(&c, ' ') && take_month(&c, &m->month) &&
           take_byte(&c, ' ') && take_day(&c, &m->day) && take_byte(&c, ' ') && take_clock(&c, m) &&
           take_byte(&c, ' ') && take_digits(&c, 4, &m->year) && c.p == c.end;
}

/* Checks the ranges. A leap second exists only at 23:59:60 UTC, and becomes the
 * first second of the next day. */
static bool moment_to_ns(const struct moment *m, int64_t *time_ns_out)
{
    if (m->month < 1 || m->month > 12 || m->day < 1 || m->day > days_in_month(m->year, m->month) ||
        m->hour > 23 || m->minute > 59 || m->second > 60) {
        return false;
    }
    const int64_t seconds = days_of_date(m->year, m->month, m->day) * seconds_per_day +
                            (int64_t)(m->hour * 3600 + m->minute * 60 + m->second) -
                            m->offset_seconds;
    if (m->second == 60 && seconds % seconds_per_day != 0) {
        return false;
    }
    *time_ns_out = clamp_ns((wide)seconds * ns_per_second + m->fraction_ns);
    return true;
}

bool lahar_time_parse(lahar_bytes text, int64_t *time_ns_out)
{
    if (lahar_time_parse_epoch(text, time_ns_out)) {
        return true;
    }
    if (text.size < 19) {
        return false;
    }
    const uint8_t *p = text.data;
    const struct cursor c = {p, p + text.size};
    struct moment m = {0};
    const bool is_parsed =
        parse_rfc3339(c, &m) || parse_clf(c, &m) || parse_rfc1123(c, &m) || parse_asctime(c, &m);
    return is_parsed && moment_to_ns(&m, time_ns_out);
}

/* The significant digits of a decimal number and where its point stands. */
struct decimal {
    uint8_t digits[48];
    int digit_count;
    int point; /* value = 0.digits * 10^point */
    bool is_negative;
};

static bool take_exponent(struct cursor *c, int *exponent_out)
{
    *exponent_out = 0;
    if (c->p == c->end || (*c->p | 0x20) != 'e') {
        return true;
    }
    c->p++;
    const bool is_negative = take_byte(c, '-');
    if (!is_negative) {
        (void)take_byte(c, '+');
    }
    const uint8_t *start = c->p;
    while (c->p < c->end && (uint8_t)(*c->p - '0') <= 9 && *exponent_out < 10000) {
        *exponent_out = *exponent_out * 10 + (*c->p++ - '0');
    }
    *exponent_out = is_negative ? -*exponent_out : *exponent_out;
    return c->p > start;
}

/* Digits beyond the 48th are cut off: they lie below any nanosecond. */
static bool take_decimal(struct cursor *c, struct decimal *d)
{
    bool has_point = false;
    bool has_digit = false;
    *d = (struct decimal){.is_negative = take_byte(c, '-')};
    for (; c->p < c->end; c->p++) {
        if (*c->p == '.' && !has_point && has_digit) {
            has_point = true;
            continue;
        }
        const uint8_t digit = (uint8_t)(*c->p - '0');
        if (digit > 9) {
            break;
        }
        has_digit = true;
        if (d->digit_count == 0 && digit == 0) {
            d->point -= has_point;
            continue;
        }
        d->point += !has_point && d->point < 10000;
        if (d->digit_count < (int)sizeof d->digits) {
            d->digits[d->digit_count++] = digit;
        }
    }
    int exponent;
    if (!has_digit || c->p[-1] == '.' || !take_exponent(c, &exponent)) {
        return false;
    }
    d->point += exponent;
    return true;
}

bool lahar_time_parse_epoch(lahar_bytes text, int64_t *time_ns_out)
{
    const uint8_t *p = text.data;
    struct cursor c = {p, text.size == 0 ? p : p + text.size};
    struct decimal d;
    if (text.size == 0 || !take_decimal(&c, &d) || c.p != c.end) {
        return false;
    }
    /* point digits stand before the decimal point: 11 digits are below 10^11. */
    int scale = 0;
    if (d.point <= 11) {
        scale = 9;
    } else if (d.point <= 14) {
        scale = 6;
    } else if (d.point <= 17) {
        scale = 3;
    }
    const int wanted = d.point + scale; /* digits of the result */
    wide ns = 0;
    if (d.digit_count != 0 && wanted > 20) {
        ns = (wide)INT64_MAX + 1;
    } else {
        for (int i = 0; i < wanted && d.digit_count != 0; i++) {
            ns = ns * 10 + (i < d.digit_count ? d.digits[i] : 0);
        }
    }
    *time_ns_out = clamp_ns(d.is_negative ? -ns : ns);
    return true;
}

static char *put_digits(char *out, uint64_t value, unsigned count)
{
    for (unsigned i = count; i > 0; i--) {
        out[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

size_t lahar_time_format(int64_t time_ns, unsigned fraction_digits,
                         char out[LAHAR_TIME_TEXT_SIZE_MAX])
{
    int64_t seconds = time_ns / ns_per_second;
    int64_t fraction = time_ns % ns_per_second;
    if (fraction < 0) {
        fraction += ns_per_second;
        seconds--;
    }
    int64_t days = seconds / seconds_per_day;
    int64_t clock = seconds % seconds_per_day;
    if (clock < 0) {
        clock += seconds_per_day;
        days--;
    }
    /* The inverse of days_of_date; int64 nanoseconds only reach 1677 .. 2262. */
    const int64_t shifted = days + 719468;
    const int64_t era = shifted / 146097;
    const int64_t day_of_era = shifted % 146097;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month_from_march = (5 * day_of_year + 2) / 153;
    const int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    char *q = put_digits(out, (uint64_t)(year_of_era + era * 400 + (month <= 2)), 4);
    *q++ = '-';
    q = put_digits(q, (uint64_t)month, 2);
    *q++ = '-';
    q = put_digits(q, (uint64_t)day, 2);
    *q++ = 'T';
    q = put_digits(q, (uint64_t)(clock / 3600), 2);
    *q++ = ':';
    q = put_digits(q, (uint64_t)(clock / 60 % 60), 2);
    *q++ = ':';
    q = put_digits(q, (uint64_t)(clock % 60), 2);
    if (fraction_digits != 0) {
        *q++ = '.';
        char nanos[9];
        (void)put_digits(nanos, (uint64_t)fraction, 9);
        const unsigned count = fraction_digits > 9 ? 9 : fraction_digits;
        memcpy(q, nanos, count);
        q += count;
    }
    *q++ = 'Z';
    return (size_t)(q - out);
}
