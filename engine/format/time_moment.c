/* Pieces of times; see time_moment.h. Calendar arithmetic is in days since 1970-01-01 of the
 * proleptic Gregorian calendar, sums in 128 bits, so that nothing wraps before the result is
 * clamped. */
#include "engine/format/time_moment.h"

#include <string.h>

#include "engine/format/time_zone.h"

static const int64_t ns_per_second = 1000000000;
static const int64_t seconds_per_day = 86400;

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

int64_t lahar_time_clamp(lahar_wide_ns ns)
{
    /* INT64_MIN itself stands for the time of arrival. */
    if (ns < (lahar_wide_ns)INT64_MIN + 1) {
        return INT64_MIN + 1;
    }
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

bool lahar_take_byte(struct lahar_time_cursor *c, uint8_t byte)
{
    if (c->p == c->end || *c->p != byte) {
        return false;
    }
    c->p++;
    return true;
}

bool lahar_take_digits(struct lahar_time_cursor *c, unsigned count, unsigned *value_out)
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

bool lahar_take_fraction(struct lahar_time_cursor *c, int64_t *fraction_ns_out)
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

bool lahar_take_zone(struct lahar_time_cursor *c, struct lahar_moment *m)
{
    if (c->p == c->end) {
        return true;
    }
    if (lahar_take_byte(c, 'Z') || lahar_take_byte(c, 'z')) {
        m->offset_seconds = 0;
        m->zone = NULL;
        return true;
    }
    const bool is_west = lahar_take_byte(c, '-');
    unsigned hours;
    unsigned minutes = 0;
    if ((!is_west && !lahar_take_byte(c, '+')) || !lahar_take_digits(c, 2, &hours)) {
        return false;
    }
    const bool has_colon = lahar_take_byte(c, ':');
    if ((has_colon || c->p != c->end) && !lahar_take_digits(c, 2, &minutes)) {
        return false;
    }
    if (hours > 23 || minutes > 59) {
        return false;
    }
    m->offset_seconds = (int64_t)(hours * 3600 + minutes * 60) * (is_west ? -1 : 1);
    m->zone = NULL;
    return true;
}

bool lahar_take_month(struct lahar_time_cursor *c, unsigned *month_out)
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

bool lahar_take_weekday(struct lahar_time_cursor *c)
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

bool lahar_moment_to_ns(const struct lahar_moment *m, int64_t *time_ns_out)
{
    if (m->month < 1 || m->month > 12 || m->day < 1 || m->day > days_in_month(m->year, m->month) ||
        m->hour > 23 || m->minute > 59 || m->second > 60) {
        return false;
    }
    const int64_t local = days_of_date(m->year, m->month, m->day) * seconds_per_day +
                          (int64_t)(m->hour * 3600 + m->minute * 60 + m->second);
    const int64_t seconds =
        m->zone == NULL ? local - m->offset_seconds : lahar_time_zone_instant(m->zone, local);
    if (m->second == 60 && seconds % seconds_per_day != 0) {
        return false;
    }
    *time_ns_out = lahar_time_clamp((lahar_wide_ns)seconds * ns_per_second + m->fraction_ns);
    return true;
}
