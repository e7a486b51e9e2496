#include "tools/time_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

enum {
    DAY_SECONDS = 86400
};

int64_t time_text_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar: whole 400-year
 * cycles, with the year beginning in March so that the leap day is its last. */
static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
    const int64_t shifted_year = month <= 2 ? year - 1 : year;
    const int64_t cycle = (shifted_year >= 0 ? shifted_year : shifted_year - 399) / 400;
    const int64_t year_of_cycle = shifted_year - cycle * 400;
    const int64_t month_from_march = (month + 9) % 12;
    const int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    return cycle * 146097 + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 +
           day_of_year - 719468;
}

/* Writes the time without its fraction and returns where the text ends. */
static char *put_seconds(int64_t time_ns, char out[TIME_TEXT_SIZE], int64_t *fraction_ns_out)
{
    int64_t seconds = time_ns / SECOND_NS;
    int64_t fraction_ns = time_ns % SECOND_NS;
    if (fraction_ns < 0) {
        fraction_ns += SECOND_NS;
        seconds--;
    }
    *fraction_ns_out = fraction_ns;
    const time_t clock = (time_t)seconds;
    struct tm parts;
    /* int64 nanoseconds reach from 1677 to 2262, so that gmtime_r cannot fail. */
    (void)gmtime_r(&clock, &parts);
    return out + strftime(out, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
}

void time_text_exact(int64_t time_ns, char out[TIME_TEXT_SIZE])
{
    int64_t fraction_ns = 0;
    char *at = put_seconds(time_ns, out, &fraction_ns);
    (void)snprintf(at, (size_t)(TIME_TEXT_SIZE - (at - out)), ".%09dZ", (int)fraction_ns);
}

void time_text_short(int64_t time_ns, char out[TIME_TEXT_SIZE])
{
    int64_t fraction_ns = 0;
    char *at = put_seconds(time_ns, out, &fraction_ns);
    const size_t room = (size_t)(TIME_TEXT_SIZE - (at - out));
    if (fraction_ns % 1000000 == 0) {
        (void)snprintf(at, room, ".%03dZ", (int)(fraction_ns / 1000000));
    } else if (fraction_ns % 1000 == 0) {
        (void)snprintf(at, room, ".%06dZ", (int)(fraction_ns / 1000));
    } else {
        (void)snprintf(at, room, ".%09dZ", (int)fraction_ns);
    }
}

/* Exactly count digits. */
static bool take_digits(const char **at, int count, int64_t *number_out)
{
    int64_t number = 0;
    for (int i = 0; i < count; i++) {
        const char digit = (*at)[i];
        if (digit < '0' || digit > '9') {
            return false;
        }
        number = number * 10 + (digit - '0');
    }
    *at += count;
    *number_out = number;
    return true;
}

static bool take_mark(const char **at, char mark)
{
    if (**at != mark) {
        return false;
    }
    (*at)++;
    return true;
}

static bool take_fraction(const char **at, int64_t *fraction_ns_out)
{
    int64_t unit_ns = SECOND_NS / 10;
    const char *start = *at;
    *fraction_ns_out = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        *fraction_ns_out += (**at - '0') * unit_ns;
        unit_ns /= 10;
    }
    return *at > start && *at - start <= 9;
}

/* "Z", "+02:00", or nothing. */
static bool take_zone(const char **at, int64_t *offset_seconds_out)
{
    int64_t hours = 0;
    int64_t minutes = 0;
    *offset_seconds_out = 0;
    if (**at == '\0' || take_mark(at, 'Z') || take_mark(at, 'z')) {
        return true;
    }
    const bool is_west = **at == '-';
    if (!take_mark(at, '+') && !take_mark(at, '-')) {
        return false;
    }
    if (!take_digits(at, 2, &hours)) {
        return false;
    }
    (void)take_mark(at, ':');
    if (!take_digits(at, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *offset_seconds_out = (hours * 60 + minutes) * (is_west ? -60 : 60);
    return true;
}

static bool take_clock(const char **at, int64_t *seconds_out, int64_t *fraction_ns_out)
{
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    *fraction_ns_out = 0;
    if (!take_digits(at, 2, &hour) || !take_mark(at, ':') || !take_digits(at, 2, &minute)) {
        return false;
    }
    if (take_mark(at, ':') && !take_digits(at, 2, &second)) {
        return false;
    }
    if (take_mark(at, '.') && !take_fraction(at, fraction_ns_out)) {
        return false;
    }
    *seconds_out = hour * 3600 + minute * 60 + second;
    return hour <= 23 && minute <= 59 && second <= 60;
}

static bool date_exists(int64_t year, int64_t month, int64_t day)
{
    if (month < 1 || month > 12 || day < 1) {
        return false;
    }
    const int64_t next =
        month == 12 ? days_of_date(year + 1, 1, 1) : days_of_date(year, month + 1, 1);
    return day <= next - days_of_date(year, month, 1);
}

static bool parse_calendar(const char *text, int64_t *time_ns_out)
{
    const char *at = text;
    int64_t year = 0;
    int64_t month = 1;
    int64_t day = 1;
    int64_t seconds = 0;
    int64_t fraction_ns = 0;
    int64_t offset_seconds = 0;
    if (!take_digits(&at, 4, &year)) {
        return false;
    }
    if (take_mark(&at, '-')) {
        if (!take_digits(&at, 2, &month)) {
            return false;
        }
        if (take_mark(&at, '-')) {
            if (!take_digits(&at, 2, &day)) {
                return false;
            }
            if ((take_mark(&at, 'T') || take_mark(&at, 't') || take_mark(&at, ' ')) &&
                (!take_clock(&at, &seconds, &fraction_ns) || !take_zone(&at, &offset_seconds))) {
                return false;
            }
        }
    }
    if (*at != '\0' || !date_exists(year, month, day)) {
        return false;
    }
    seconds += days_of_date(year, month, day) * DAY_SECONDS - offset_seconds;
    return !__builtin_mul_overflow(seconds, SECOND_NS, time_ns_out) &&
           !__builtin_add_overflow(*time_ns_out, fraction_ns, time_ns_out);
}

static bool parse_epoch(const char *text, int64_t *time_ns_out)
{
    const char *at = text;
    int64_t seconds = 0;
    int64_t fraction_ns = 0;
    if (*at < '0' || *at > '9') {
        return false;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(seconds, 10, &seconds) ||
            __builtin_add_overflow(seconds, *at - '0', &seconds)) {
            return false;
        }
    }
    if (take_mark(&at, '.') && !take_fraction(&at, &fraction_ns)) {
        return false;
    }
    return *at == '\0' && !__builtin_mul_overflow(seconds, SECOND_NS, time_ns_out) &&
           !__builtin_add_overflow(*time_ns_out, fraction_ns, time_ns_out);
}

bool time_text_parse(const char *text, int64_t now_ns, int64_t *time_ns_out)
{
    if (text[0] == '@') {
        return parse_epoch(text + 1, time_ns_out);
    }
    if (strncmp(text, "now", 3) != 0) {
        return parse_calendar(text, time_ns_out);
    }
    uint64_t ago_ns = 0;
    if (text[3] != '\0' && (text[3] != '-' || !time_text_parse_duration(text + 4, &ago_ns))) {
        return false;
    }
    return ago_ns <= INT64_MAX && !__builtin_sub_overflow(now_ns, (int64_t)ago_ns, time_ns_out);
}

bool time_text_parse_duration(const char *text, uint64_t *duration_ns_out)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } UNITS[] = {
        {"ns", 1},
        {"us", 1000},
        {"ms", 1000000},
        {"s", UINT64_C(1000000000)},
        {"m", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
        {"d", UINT64_C(86400000000000)},
        {"w", UINT64_C(604800000000000)},
    };
    uint64_t total_ns = 0;
    const char *at = text;
    do {
        uint64_t number = 0;
        if (*at < '0' || *at > '9') {
            return false;
        }
        for (; *at >= '0' && *at <= '9'; at++) {
            if (__builtin_mul_overflow(number, 10, &number) ||
                __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number)) {
                return false;
            }
        }
        const size_t unit_size = strspn(at, "nusmhdw");
        size_t unit = 0;
        while (unit < sizeof UNITS / sizeof UNITS[0] &&
               (strlen(UNITS[unit].name) != unit_size ||
                strncmp(UNITS[unit].name, at, unit_size) != 0)) {
            unit++;
        }
        if (unit == sizeof UNITS / sizeof UNITS[0] ||
            __builtin_mul_overflow(number, UNITS[unit].ns, &number) ||
            __builtin_add_overflow(total_ns, number, &total_ns)) {
            return false;
        }
        at += unit_size;
    } while (*at != '\0');
    *duration_ns_out = total_ns;
    return true;
}
