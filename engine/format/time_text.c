/* Parsing and writing times; see time_text.h. No locale, no time zone database. */
#include "engine/format/time_text.h"

#include <string.h>

#include "engine/format/time_moment.h"

static const int64_t ns_per_second = 1000000000;
static const int64_t seconds_per_day = 86400;

/* One digit, two digits, or a space and a digit. */
static bool take_day(struct lahar_time_cursor *c, unsigned *day_out)
{
    const bool is_padded = lahar_take_byte(c, ' ');
    if (!lahar_take_digits(c, 1, day_out)) {
        return false;
    }
    unsigned second;
    if (!is_padded && lahar_take_digits(c, 1, &second)) {
        *day_out = *day_out * 10 + second;
    }
    return true;
}

/* hh:mm:ss and a fraction. */
static bool take_clock(struct lahar_time_cursor *c, struct lahar_moment *m)
{
    return lahar_take_digits(c, 2, &m->hour) && lahar_take_byte(c, ':') &&
           lahar_take_digits(c, 2, &m->minute) && lahar_take_byte(c, ':') &&
           lahar_take_digits(c, 2, &m->second) && lahar_take_fraction(c, &m->fraction_ns);
}

/* 2024-05-01T00:00:00.5+02:00 */
static bool parse_rfc3339(struct lahar_time_cursor c, struct lahar_moment *m)
{
    if (!lahar_take_digits(&c, 4, &m->year) || !lahar_take_byte(&c, '-') ||
        !lahar_take_digits(&c, 2, &m->month) || !lahar_take_byte(&c, '-') ||
        !lahar_take_digits(&c, 2, &m->day)) {
        return false;
    }
    if (!lahar_take_byte(&c, 'T') && !lahar_take_byte(&c, 't') && !lahar_take_byte(&c, ' ')) {
        return false;
    }
    if (!take_clock(&c, m)) {
        return false;
    }
    if (c.end - c.p > 1 && *c.p == ' ') {
        c.p++;
    }
    return lahar_take_zone(&c, m) && c.p == c.end;
}

/* 01/May/2024:00:00:00 +0000 */
static bool parse_clf(struct lahar_time_cursor c, struct lahar_moment *m)
{
    return lahar_take_digits(&c, 2, &m->day) && lahar_take_byte(&c, '/') &&
           lahar_take_month(&c, &m->month) && lahar_take_byte(&c, '/') &&
           lahar_take_digits(&c, 4, &m->year) && lahar_take_byte(&c, ':') && take_clock(&c, m) &&
           lahar_take_byte(&c, ' ') && c.p < c.end && lahar_take_zone(&c, m) && c.p == c.end;
}

/* Wed, 01 May 2024 00:00:00 GMT */
static bool parse_rfc1123(struct lahar_time_cursor c, struct lahar_moment *m)
{
    if (!lahar_take_weekday(&c) || !lahar_take_byte(&c, ',') || !lahar_take_byte(&c, ' ') ||
        !take_day(&c, &m->day) || !lahar_take_byte(&c, ' ') || !lahar_take_month(&c, &m->month) ||
        !lahar_take_byte(&c, ' ') || !lahar_take_digits(&c, 4, &m->year) ||
        !lahar_take_byte(&c, ' ') || !take_clock(&c, m) || !lahar_take_byte(&c, ' ')) {
        return false;
    }
    if (c.end - c.p == 3 && (memcmp(c.p, "GMT", 3) == 0 || memcmp(c.p, "UTC", 3) == 0)) {
        m->offset_seconds = 0;
        m->zone = NULL;
        return true;
    }
    return c.p < c.end && lahar_take_zone(&c, m) && c.p == c.end;
}

/* Wed May  1 00:00:00.123456 2024 */
static bool parse_asctime(struct lahar_time_cursor c, struct lahar_moment *m)
{
    return lahar_take_weekday(&c) && lahar_take_byte(&c, ' ') && lahar_take_month(&c, &m->month) &&
           lahar_take_byte(&c, ' ') && take_day(&c, &m->day) && lahar_take_byte(&c, ' ') &&
           take_clock(&c, m) && lahar_take_byte(&c, ' ') && lahar_take_digits(&c, 4, &m->year) &&
           c.p == c.end;
}

static bool parse_text(lahar_bytes text, int64_t offset_seconds, const struct lahar_time_zone *zone,
                       bool any, int64_t *time_ns_out)
{
    const uint8_t *p = text.data;
    if (text.size < 19) {
        return false;
    }
    const struct lahar_time_cursor c = {p, p + text.size};
    struct lahar_moment m = {.offset_seconds = offset_seconds, .zone = zone};
    const bool is_parsed =
        parse_rfc3339(c, &m) ||
        (any && (parse_clf(c, &m) || parse_rfc1123(c, &m) || parse_asctime(c, &m)));
    return is_parsed && lahar_moment_to_ns(&m, time_ns_out);
}

bool lahar_time_is_canonical(lahar_bytes text, int64_t time_ns, unsigned *fraction_digits_out)
{
    const uint8_t *p = text.data;
    const size_t size = text.size;
    if (size < 20 || size > 30 || p[4] != '-' || p[7] != '-' || p[10] != 'T' || p[13] != ':' ||
        p[16] != ':' || p[size - 1] != 'Z' || (size > 20 && p[19] != '.')) {
        return false;
    }
    *fraction_digits_out = size > 20 ? (unsigned)size - 21 : 0;
    /* A leap second is stored as the next one, a time beyond the limits as the limit. */
    return p[17] != '6' && time_ns != INT64_MAX && time_ns != INT64_MIN + 1;
}

bool lahar_time_parse_zoned(lahar_bytes text, int64_t offset_seconds,
                            const struct lahar_time_zone *zone, int64_t *time_ns_out)
{
    const uint8_t *p = text.data;
    if (text.size >= 19 && p[4] == '-' &&
        parse_text(text, offset_seconds, zone, true, time_ns_out)) {
        return true;
    }
    return lahar_time_parse_epoch(text, time_ns_out) ||
           parse_text(text, offset_seconds, zone, true, time_ns_out);
}

bool lahar_time_parse_rfc3339(lahar_bytes text, int64_t offset_seconds,
                              const struct lahar_time_zone *zone, int64_t *time_ns_out)
{
    return parse_text(text, offset_seconds, zone, false, time_ns_out);
}

bool lahar_time_parse(lahar_bytes text, int64_t *time_ns_out)
{
    return lahar_time_parse_zoned(text, 0, NULL, time_ns_out);
}

/* The significant digits of a decimal number and where its point stands. */
struct decimal {
    uint8_t digits[48];
    int digit_count;
    int point; /* value = 0.digits * 10^point */
    bool is_negative;
};

static bool take_exponent(struct lahar_time_cursor *c, int *exponent_out)
{
    *exponent_out = 0;
    if (c->p == c->end || (*c->p | 0x20) != 'e') {
        return true;
    }
    c->p++;
    const bool is_negative = lahar_take_byte(c, '-');
    if (!is_negative) {
        (void)lahar_take_byte(c, '+');
    }
    const uint8_t *start = c->p;
    while (c->p < c->end && (uint8_t)(*c->p - '0') <= 9 && *exponent_out < 10000) {
        *exponent_out = *exponent_out * 10 + (*c->p++ - '0');
    }
    *exponent_out = is_negative ? -*exponent_out : *exponent_out;
    return c->p > start;
}

/* Digits beyond the 48th are cut off: they lie below any nanosecond. */
static bool take_decimal(struct lahar_time_cursor *c, struct decimal *d)
{
    bool has_point = false;
    bool has_digit = false;
    *d = (struct decimal){.is_negative = lahar_take_byte(c, '-')};
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

static bool take_epoch(lahar_bytes text, struct decimal *d)
{
    const uint8_t *p = text.data;
    struct lahar_time_cursor c = {p, text.size == 0 ? p : p + text.size};
    return text.size != 0 && take_decimal(&c, d) && c.p == c.end;
}

/* The number times 10^scale nanoseconds. */
static int64_t scale_epoch(const struct decimal *d, int scale)
{
    const int wanted = d->point + scale; /* digits of the result */
    lahar_wide_ns ns = 0;
    if (d->digit_count != 0 && wanted > 20) {
        ns = (lahar_wide_ns)INT64_MAX + 1;
    } else {
        for (int i = 0; i < wanted && d->digit_count != 0; i++) {
            ns = ns * 10 + (i < d->digit_count ? d->digits[i] : 0);
        }
    }
    return lahar_time_clamp(d->is_negative ? -ns : ns);
}

bool lahar_time_parse_epoch(lahar_bytes text, int64_t *time_ns_out)
{
    struct decimal d;
    if (!take_epoch(text, &d)) {
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
    *time_ns_out = scale_epoch(&d, scale);
    return true;
}

bool lahar_time_parse_epoch_in(lahar_bytes text, unsigned scale, int64_t *time_ns_out)
{
    struct decimal d;
    if (!take_epoch(text, &d)) {
        return false;
    }
    *time_ns_out = scale_epoch(&d, (int)scale);
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
