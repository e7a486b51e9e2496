/* Times by pattern; see time_pattern.h. Patterns are checked once and interpreted for each text,
 * as strptime does, but without a locale. */
#include "engine/format/time_pattern.h"

#include <string.h>

#include "engine/format/time_moment.h"
#include "engine/format/time_text.h"
#include "io/base/error.h"

static const char DIRECTIVES[] = "YymdebBhaAHIMSfLpzZsFTR%nt";

/* What the directives of one text have said. */
struct parts {
    struct lahar_moment moment;
    const struct lahar_time_pattern *pattern;
    bool has_year;
    bool has_epoch;
    int64_t epoch_ns;
    bool is_12_hour;
    bool is_afternoon;
};

static bool is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') <= 9;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* 1 .. count digits, spaces before them allowed. */
static bool take_number(struct lahar_time_cursor *c, unsigned count, unsigned *value_out)
{
    while (c->p < c->end && *c->p == ' ') {
        c->p++;
    }
    const uint8_t *start = c->p;
    *value_out = 0;
    while (c->p < c->end && (size_t)(c->p - start) < count && is_digit(*c->p)) {
        *value_out = *value_out * 10 + (unsigned)(*c->p++ - '0');
    }
    return c->p > start;
}

/* Digits behind a decimal point, which the pattern itself names. */
static bool take_fraction_digits(struct lahar_time_cursor *c, int64_t *fraction_ns_out)
{
    int64_t scale = 1000000000;
    const uint8_t *start = c->p;
    *fraction_ns_out = 0;
    while (c->p < c->end && is_digit(*c->p)) {
        scale /= 10;
        *fraction_ns_out += (*c->p++ - '0') * scale;
    }
    return c->p > start;
}

/* The rest of a name of which the first three letters have been taken. */
static void take_letters(struct lahar_time_cursor *c)
{
    while (c->p < c->end && ((*c->p >= 'a' && *c->p <= 'z') || (*c->p >= 'A' && *c->p <= 'Z'))) {
        c->p++;
    }
}

static bool take_half_of_day(struct lahar_time_cursor *c, struct parts *parts)
{
    if (c->end - c->p < 2 || (c->p[1] | 0x20) != 'm') {
        return false;
    }
    const uint8_t half = c->p[0] | 0x20;
    parts->is_afternoon = half == 'p';
    c->p += 2;
    return half == 'a' || half == 'p';
}

/* UTC, GMT and Z alone have a meaning that does not depend on a place. */
static bool take_zone_name(struct lahar_time_cursor *c, struct parts *parts)
{
    const uint8_t *start = c->p;
    take_letters(c);
    const size_t size = (size_t)(c->p - start);
    parts->moment.offset_seconds = 0;
    parts->moment.zone = NULL;
    return (size == 3 && (memcmp(start, "UTC", 3) == 0 || memcmp(start, "GMT", 3) == 0)) ||
           (size == 1 && (*start | 0x20) == 'z');
}

/* An offset ends where its digits do, other text may follow. */
static bool take_offset(struct lahar_time_cursor *c, struct parts *parts)
{
    const uint8_t *p = c->p;
    if (p < c->end && (*p | 0x20) != 'z') {
        p++;
        while (p < c->end && (is_digit(*p) || (*p == ':' && p - c->p == 3))) {
            p++;
        }
    } else if (p < c->end) {
        p++;
    }
    struct lahar_time_cursor offset = {c->p, p};
    c->p = p;
    return offset.p < offset.end && lahar_take_zone(&offset, &parts->moment) &&
           offset.p == offset.end;
}

static bool take_epoch(struct lahar_time_cursor *c, struct parts *parts)
{
    const uint8_t *start = c->p;
    (void)lahar_take_byte(c, '-');
    while (c->p < c->end && (is_digit(*c->p) || *c->p == '.')) {
        c->p++;
    }
    parts->has_epoch = true;
    return lahar_time_parse_epoch_in((lahar_bytes){start, (size_t)(c->p - start)}, 9,
                                     &parts->epoch_ns);
}

static bool take_all(struct lahar_time_cursor *c, const char *directives, struct parts *parts);

static bool take_date_part(struct lahar_time_cursor *c, char directive, struct parts *parts)
{
    struct lahar_moment *m = &parts->moment;
    switch (directive) {
    case 'Y':
        parts->has_year = true;
        return lahar_take_digits(c, 4, &m->year);
    case 'y':
        parts->has_year = true;
        if (!lahar_take_digits(c, 2, &m->year)) {
            return false;
        }
        m->year += m->year < 69 ? 2000 : 1900;
        return true;
    case 'm':
        return take_number(c, 2, &m->month);
    case 'd':
    case 'e':
        return take_number(c, 2, &m->day);
    case 'b':
    case 'B':
    case 'h':
        if (!lahar_take_month(c, &m->month)) {
            return false;
        }
        take_letters(c);
        return true;
    case 'a':
    case 'A':
        if (!lahar_take_weekday(c)) {
            return false;
        }
        take_letters(c);
        return true;
    default:
        return take_all(c, "%Y-%m-%d", parts);
    }
}

static bool take_clock_part(struct lahar_time_cursor *c, char directive, struct parts *parts)
{
    struct lahar_moment *m = &parts->moment;
    unsigned milliseconds = 0;
    switch (directive) {
    case 'H':
        return take_number(c, 2, &m->hour);
    case 'I':
        parts->is_12_hour = true;
        return take_number(c, 2, &m->hour) && m->hour >= 1 && m->hour <= 12;
    case 'p':
        return take_half_of_day(c, parts);
    case 'M':
        return take_number(c, 2, &m->minute);
    case 'S':
        return take_number(c, 2, &m->second);
    case 'f':
        return take_fraction_digits(c, &m->fraction_ns);
    case 'L':
        if (!take_number(c, 3, &milliseconds)) {
            return false;
        }
        m->fraction_ns = (int64_t)milliseconds * 1000000;
        return true;
    case 'z':
        return take_offset(c, parts);
    case 'Z':
        return take_zone_name(c, parts);
    case 's':
        return take_epoch(c, parts);
    case 'T':
        return take_all(c, "%H:%M:%S", parts);
    default:
        return take_all(c, "%H:%M", parts);
    }
}

static bool take_all(struct lahar_time_cursor *c, const char *directives, struct parts *parts)
{
    for (const char *p = directives; *p != '\0'; p++) {
        const bool is_directive = *p == '%';
        p += is_directive;
        if (is_space((uint8_t)*p) || (is_directive && (*p == 'n' || *p == 't'))) {
            const uint8_t *start = c->p;
            while (c->p < c->end && is_space(*c->p)) {
                c->p++;
            }
            if (c->p == start) {
                return false;
            }
        } else if (!is_directive || *p == '%') {
            if (!lahar_take_byte(c, (uint8_t)*p)) {
                return false;
            }
        } else if (strchr("YymdebBhaAF", *p) != NULL ? !take_date_part(c, *p, parts)
                                                     : !take_clock_part(c, *p, parts)) {
            return false;
        }
    }
    return true;
}

/* The last year in which the moment exists and does not lie more than a day ahead. */
static bool guess_year(struct parts *parts, int64_t *time_ns_out)
{
    static const int64_t day_ns = INT64_C(86400000000000);
    static const int64_t year_ns = INT64_C(31556952) * 1000000000;
    const int64_t reference_ns = parts->pattern->reference_ns;
    struct lahar_moment *m = &parts->moment;
    if (reference_ns <= 0) {
        return false;
    }
    m->year = 1970 + (unsigned)(reference_ns / year_ns) + 1;
    /* A 29 February may be eight years back. */
    for (unsigned tries = 0; tries < 10; tries++, m->year--) {
        if (lahar_moment_to_ns(m, time_ns_out) && *time_ns_out - day_ns <= reference_ns) {
            return true;
        }
    }
    return false;
}

static bool parse_directives(const struct lahar_time_pattern *pattern, lahar_bytes text,
                             int64_t *time_ns_out)
{
    const uint8_t *p = text.data;
    struct lahar_time_cursor c = {p, text.size == 0 ? p : p + text.size};
    struct parts parts = {.pattern = pattern,
                          .moment = {.month = 1,
                                     .day = 1,
                                     .year = pattern->year,
                                     .offset_seconds = pattern->offset_seconds,
                                     .zone = pattern->zone}};
    if (text.size == 0 || !take_all(&c, pattern->directives, &parts) || c.p != c.end) {
        return false;
    }
    if (parts.has_epoch) {
        *time_ns_out = parts.epoch_ns;
        return true;
    }
    if (parts.is_12_hour) {
        parts.moment.hour = parts.moment.hour % 12 + (parts.is_afternoon ? 12 : 0);
    }
    if (!parts.has_year && pattern->year == 0) {
        return guess_year(&parts, time_ns_out);
    }
    return lahar_moment_to_ns(&parts.moment, time_ns_out);
}

bool lahar_time_pattern_parse(const struct lahar_time_pattern *pattern, lahar_bytes text,
                              int64_t *time_ns_out)
{
    switch (pattern->style) {
    case LAHAR_TIME_STYLE_ANY:
        return lahar_time_parse_zoned(text, pattern->offset_seconds, pattern->zone, time_ns_out);
    case LAHAR_TIME_STYLE_RFC3339:
        return lahar_time_parse_rfc3339(text, pattern->offset_seconds, pattern->zone, time_ns_out);
    case LAHAR_TIME_STYLE_EPOCH:
        return lahar_time_parse_epoch_in(text, pattern->epoch_scale, time_ns_out);
    case LAHAR_TIME_STYLE_DIRECTIVES:
        return parse_directives(pattern, text, time_ns_out);
    }
    return false;
}

/* --- what the user asks for ---------------------------------------------------------- */

static lahar_status check_directives(const char *format, lahar_error *error)
{
    bool has_directive = false;
    for (const char *p = format; *p != '\0'; p++) {
        if (*p != '%') {
            continue;
        }
        p++;
        if (*p == '\0' || strchr(DIRECTIVES, *p) == NULL) {
            return lahar_fail(error, LAHAR_INVALID, "time format \"%s\": unknown directive %%%.1s",
                              format, p);
        }
        has_directive = has_directive || *p != '%';
    }
    return has_directive ? LAHAR_OK
                         : lahar_fail(error, LAHAR_INVALID,
                                      "time format \"%s\" is neither a known name nor a pattern; "
                                      "known are any, rfc3339, clf, syslog, epoch_s, epoch_ms, "
                                      "epoch_us and epoch_ns",
                                      format);
}

static lahar_status take_format(struct lahar_time_pattern *pattern, const char *format,
                                lahar_error *error)
{
    static const struct {
        const char *name;
        enum lahar_time_style style;
        unsigned epoch_scale;
        const char *directives;
    } styles[] = {
        {"any", LAHAR_TIME_STYLE_ANY, 0, NULL},
        {"rfc3339", LAHAR_TIME_STYLE_RFC3339, 0, NULL},
        {"epoch_s", LAHAR_TIME_STYLE_EPOCH, 9, NULL},
        {"epoch_ms", LAHAR_TIME_STYLE_EPOCH, 6, NULL},
        {"epoch_us", LAHAR_TIME_STYLE_EPOCH, 3, NULL},
        {"epoch_ns", LAHAR_TIME_STYLE_EPOCH, 0, NULL},
        {"clf", LAHAR_TIME_STYLE_DIRECTIVES, 0, "%d/%b/%Y:%H:%M:%S %z"},
        {"syslog", LAHAR_TIME_STYLE_DIRECTIVES, 0, "%b %e %H:%M:%S"},
    };
    for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++) {
        if (strcmp(format, styles[i].name) == 0) {
            pattern->style = styles[i].style;
            pattern->epoch_scale = styles[i].epoch_scale;
            pattern->directives = styles[i].directives;
            return LAHAR_OK;
        }
    }
    pattern->style = LAHAR_TIME_STYLE_DIRECTIVES;
    pattern->directives = format;
    return check_directives(format, error);
}

static bool read_fixed_zone(const char *zone, struct lahar_moment *moment_out)
{
    struct lahar_time_cursor c = {(const uint8_t *)zone, (const uint8_t *)zone + strlen(zone)};
    *moment_out = (struct lahar_moment){0};
    return strcmp(zone, "UTC") == 0 || strcmp(zone, "GMT") == 0 ||
           (c.p != c.end && lahar_take_zone(&c, moment_out) && c.p == c.end);
}

bool lahar_time_pattern_is_fixed_zone(const char *zone)
{
    struct lahar_moment moment;
    return read_fixed_zone(zone, &moment);
}

static lahar_status take_zone(struct lahar_time_pattern *pattern, const char *zone,
                              lahar_error *error)
{
    struct lahar_moment moment;
    if (!read_fixed_zone(zone, &moment)) {
        return lahar_fail(error, LAHAR_INVALID,
                          "time zone \"%s\" is neither UTC nor an offset as +02:00", zone);
    }
    pattern->offset_seconds = moment.offset_seconds;
    return LAHAR_OK;
}

lahar_status lahar_time_pattern_init(struct lahar_time_pattern *pattern, const char *format,
                                     const char *zone, unsigned year, int64_t reference_ns,
                                     lahar_error *error)
{
    *pattern = (struct lahar_time_pattern){
        .style = LAHAR_TIME_STYLE_ANY, .year = year, .reference_ns = reference_ns};
    if (year > 9999) {
        return lahar_fail(error, LAHAR_INVALID, "year %u is not 1 .. 9999", year);
    }
    if (format != NULL) {
        LAHAR_TRY(take_format(pattern, format, error));
    }
    return zone == NULL ? LAHAR_OK : take_zone(pattern, zone, error);
}
