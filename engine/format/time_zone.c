/* TZif files; see time_zone.h. Times behind the last change of a file follow the rule at its end,
 * as POSIX writes TZ. Everything in a file is checked before it is used. */
#include "engine/format/time_zone.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "io/base/error.h"
#include "io/io.h"

#define ZONE_DIRECTORY "/usr/share/zoneinfo"
#define DAY_S          INT64_C(86400)

enum {
    NAME_SIZE_MAX = 64,
    FILE_SIZE_MAX = 1 << 20,
    HEADER_SIZE = 44,
    CHANGES_MAX = 10000,
    RULE_SIZE_MAX = 128,
    OFFSET_MAX = 26 * 3600 /* RFC 8536 */
};

/* A day on which the clock is changed each year. */
struct change_day {
    enum {
        DAY_JULIAN, /* 1 .. 365, no leap day */
        DAY_NUMBER, /* 0 .. 365 */
        DAY_WEEKDAY /* the week-th weekday of the month */
    } kind;
    int day;
    int month;
    int week; /* 5: the last */
    int weekday;
    int64_t time_s; /* local */
};

struct lahar_time_zone {
    const lahar_allocator *allocator;
    int64_t *changes; /* owned; instants in seconds, rising */
    int32_t *offsets; /* owned; from that change on */
    size_t change_count;
    int32_t first_offset;
    bool has_rule; /* behind the last change */
    bool has_summer;
    int32_t standard_offset;
    int32_t summer_offset;
    struct change_day begin; /* of summer time */
    struct change_day end;
};

/* --- the calendar ------------------------------------------------------------------- */

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days from 1970-01-01 to the first of January. */
static int64_t days_to_year(int64_t year)
{
    const int64_t y = year - 1;
    return 365 * (year - 1970) + (divide(y, 4) - divide(y, 100) + divide(y, 400)) - 477;
}

static int64_t year_of(int64_t instant_s)
{
    const int64_t day = divide(instant_s, DAY_S);
    int64_t year = 1970 + divide(day * 400, 146097);
    while (days_to_year(year) > day) {
        year--;
    }
    while (days_to_year(year + 1) <= day) {
        year++;
    }
    return year;
}

/* The day of a change in a year, from 1970-01-01. */
static int64_t day_of(const struct change_day *change, int64_t year)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int64_t first = days_to_year(year);
    if (change->kind == DAY_NUMBER) {
        return first + change->day;
    }
    if (change->kind == DAY_JULIAN) {
        return first + change->day - 1 + (is_leap(year) && change->day >= 60);
    }
    int64_t month_first = first;
    for (int month = 1; month < change->month; month++) {
        month_first += lengths[month - 1] + (month == 2 && is_leap(year));
    }
    const int length = lengths[change->month - 1] + (change->month == 2 && is_leap(year));
    /* 1970-01-01 was a Thursday, day 4 of a week from Sunday. */
    const int64_t weekday = ((month_first + 4) % 7 + 7) % 7;
    int64_t day = (change->weekday - weekday + 7) % 7 + (change->week - 1) * INT64_C(7);
    while (day >= length) {
        day -= 7;
    }
    return month_first + day;
}

/* --- the rule at the end ------------------------------------------------------------- */

struct scanner {
    const char *next; /* of a terminated text */
};

static bool take(struct scanner *scanner, char c)
{
    const bool is_there = *scanner->next == c;
    scanner->next += is_there;
    return is_there;
}

static bool take_number(struct scanner *scanner, int most, int *number_out)
{
    int number = 0;
    int digits = 0;
    for (; *scanner->next >= '0' && *scanner->next <= '9' && digits < 4; digits++) {
        number = number * 10 + (*scanner->next++ - '0');
    }
    *number_out = number;
    return digits != 0 && number <= most;
}

/* "CEST" or "<+03>". */
static bool take_name(struct scanner *scanner)
{
    const char *begin = scanner->next;
    if (*begin == '<') {
        scanner->next = strchr(begin, '>');
        if (scanner->next == NULL) {
            scanner->next = begin;
            return false;
        }
        scanner->next++;
        return true;
    }
    while ((*scanner->next | 0x20) >= 'a' && (*scanner->next | 0x20) <= 'z') {
        scanner->next++;
    }
    return scanner->next - begin >= 3;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(struct scanner *scanner, int hour_max, int64_t *time_out)
{
    int hour = 0;
    int minute = 0;
    int second = 0;
    const bool is_negative = *scanner->next == '-';
    scanner->next += *scanner->next == '-' || *scanner->next == '+';
    if (!take_number(scanner, hour_max, &hour)) {
        return false;
    }
    if (*scanner->next == ':') {
        scanner->next++;
        if (!take_number(scanner, 59, &minute)) {
            return false;
        }
        if (*scanner->next == ':') {
            scanner->next++;
            if (!take_number(scanner, 59, &second)) {
                return false;
            }
        }
    }
    const int64_t time_s = hour * INT64_C(3600) + minute * INT64_C(60) + second;
    *time_out = is_negative ? -time_s : time_s;
    return true;
}

static bool take_day(struct scanner *scanner, struct change_day *day)
{
    *day = (struct change_day){.kind = DAY_NUMBER, .time_s = 7200};
    bool is_right = true;
    if (*scanner->next == 'M') {
        scanner->next++;
        day->kind = DAY_WEEKDAY;
        is_right = take_number(scanner, 12, &day->month) && day->month >= 1 && take(scanner, '.') &&
                   take_number(scanner, 5, &day->week) && day->week >= 1 && take(scanner, '.') &&
                   take_number(scanner, 6, &day->weekday);
    } else if (*scanner->next == 'J') {
        scanner->next++;
        day->kind = DAY_JULIAN;
        is_right = take_number(scanner, 365, &day->day) && day->day >= 1;
    } else {
        is_right = take_number(scanner, 365, &day->day);
    }
    if (is_right && *scanner->next == '/') {
        scanner->next++;
        is_right = take_time(scanner, 167, &day->time_s);
    }
    return is_right;
}

/* "CET-1CEST,M3.5.0,M10.5.0/3"; offsets are west of UTC. */
static bool parse_rule(struct lahar_time_zone *zone, const char *text)
{
    struct scanner scanner = {text};
    int64_t west_s = 0;
    if (*text == '\0') {
        return true;
    }
    if (!take_name(&scanner) || !take_time(&scanner, 24, &west_s)) {
        return false;
    }
    zone->has_rule = true;
    zone->standard_offset = (int32_t)-west_s;
    if (*scanner.next == '\0') {
        return true;
    }
    west_s -= 3600;
    if (!take_name(&scanner) || (*scanner.next != ',' && !take_time(&scanner, 24, &west_s))) {
        return false;
    }
    zone->has_summer = true;
    zone->summer_offset = (int32_t)-west_s;
    return take(&scanner, ',') && take_day(&scanner, &zone->begin) && take(&scanner, ',') &&
           take_day(&scanner, &zone->end) && *scanner.next == '\0';
}

/* --- files --------------------------------------------------------------------------- */

struct counts {
    uint32_t utc, standard, leap, time, type, text;
};

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t load_be64(const uint8_t *p)
{
    return (int64_t)((uint64_t)load_be32(p) << 32 | load_be32(p + 4));
}

/* The header at *p, which is moved behind it; false when it is none or its block cannot be there.
 */
static bool take_header(const uint8_t **p, const uint8_t *end, size_t time_size,
                        struct counts *counts, uint8_t *version_out)
{
    const uint8_t *h = *p;
    if ((size_t)(end - h) < HEADER_SIZE || memcmp(h, "TZif", 4) != 0) {
        return false;
    }
    *version_out = h[4];
    *counts = (struct counts){load_be32(h + 20), load_be32(h + 24), load_be32(h + 28),
                              load_be32(h + 32), load_be32(h + 36), load_be32(h + 40)};
    *p = h + HEADER_SIZE;
    const uint64_t size = (uint64_t)counts->time * (time_size + 1) + (uint64_t)counts->type * 6 +
                          counts->text + (uint64_t)counts->leap * (time_size + 4) +
                          counts->standard + counts->utc;
    return size <= (uint64_t)(end - *p);
}

static size_t block_size(const struct counts *counts, size_t time_size)
{
    return counts->time * (time_size + 1) + (size_t)counts->type * 6 + counts->text +
           counts->leap * (time_size + 4) + counts->standard + counts->utc;
}

static lahar_status damaged(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "the time zone's file is damaged");
}

/* A block of 8-byte times. */
static lahar_status take_changes(struct lahar_time_zone *zone, const uint8_t *block,
                                 const struct counts *counts, lahar_error *error)
{
    const uint8_t *types = block + (size_t)counts->time * 8;
    const uint8_t *offsets = types + counts->time;
    if (counts->type == 0 || counts->time > CHANGES_MAX || counts->leap != 0) {
        return damaged(error);
    }
    zone->changes = lahar_allocate(zone->allocator, (counts->time + 1) * sizeof *zone->changes);
    zone->offsets = lahar_allocate(zone->allocator, (counts->time + 1) * sizeof *zone->offsets);
    if (zone->changes == NULL || zone->offsets == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a time zone");
    }
    zone->first_offset = (int32_t)load_be32(offsets);
    for (uint32_t i = 0; i < counts->time; i++) {
        if (types[i] >= counts->type) {
            return damaged(error);
        }
        zone->changes[i] = load_be64(block + (size_t)i * 8);
        zone->offsets[i] = (int32_t)load_be32(offsets + (size_t)types[i] * 6);
        if (zone->offsets[i] < -OFFSET_MAX || zone->offsets[i] > OFFSET_MAX ||
            (i != 0 && zone->changes[i] <= zone->changes[i - 1])) {
            return damaged(error);
        }
    }
    zone->change_count = counts->time;
    return zone->first_offset < -OFFSET_MAX || zone->first_offset > OFFSET_MAX ? damaged(error)
                                                                               : LAHAR_OK;
}

static lahar_status parse(struct lahar_time_zone *zone, const uint8_t *data, size_t size,
                          lahar_error *error)
{
    const uint8_t *p = data;
    const uint8_t *end = data + size;
    struct counts counts;
    uint8_t version = 0;
    char rule[RULE_SIZE_MAX];
    if (!take_header(&p, end, 4, &counts, &version) || version < '2') {
        return damaged(error);
    }
    p += block_size(&counts, 4);
    if (!take_header(&p, end, 8, &counts, &version)) {
        return damaged(error);
    }
    LAHAR_TRY(take_changes(zone, p, &counts, error));
    p += block_size(&counts, 8);
    const uint8_t *rule_end = end - p > 1 ? memchr(p + 1, '\n', (size_t)(end - p) - 1) : NULL;
    if (rule_end == NULL || *p != '\n' || (size_t)(rule_end - p) > sizeof rule) {
        return damaged(error);
    }
    const size_t rule_size = (size_t)(rule_end - p) - 1;
    memcpy(rule, p + 1, rule_size);
    rule[rule_size] = '\0';
    return parse_rule(zone, rule) ? LAHAR_OK : damaged(error);
}

static struct lahar_time_zone *make(const lahar_allocator *allocator, lahar_error *error)
{
    struct lahar_time_zone *zone = lahar_allocate_zeroed(allocator, 1, sizeof *zone);
    if (zone == NULL) {
        (void)lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a time zone");
        return NULL;
    }
    zone->allocator = allocator;
    return zone;
}

lahar_status lahar_time_zone_parse(const uint8_t *data, size_t size,
                                   const lahar_allocator *allocator,
                                   struct lahar_time_zone **zone_out, lahar_error *error)
{
    *zone_out = NULL;
    struct lahar_time_zone *zone = make(allocator, error);
    if (zone == NULL) {
        return LAHAR_NO_MEMORY;
    }
    const lahar_status status = parse(zone, data, size, error);
    if (status != LAHAR_OK) {
        lahar_time_zone_destroy(zone);
        return status;
    }
    *zone_out = zone;
    return LAHAR_OK;
}

void lahar_time_zone_destroy(struct lahar_time_zone *zone)
{
    if (zone != NULL) {
        lahar_release(zone->allocator, zone->changes);
        lahar_release(zone->allocator, zone->offsets);
        lahar_release(zone->allocator, zone);
    }
}

/* Names that stay below the directory. */
static bool is_name(const char *name)
{
    const size_t size = strlen(name);
    for (size_t i = 0; i < size; i++) {
        const char c = name[i];
        const bool is_word = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9') ||
                             c == '_' || c == '-' || c == '+';
        if (!is_word && (c != '/' || i == 0 || name[i - 1] == '/')) {
            return false;
        }
    }
    return size != 0 && size <= NAME_SIZE_MAX && name[size - 1] != '/';
}

/* "UTC", "Z", "+02:00", "-0330". */
static bool parse_offset(const char *name, int32_t *offset_out)
{
    *offset_out = 0;
    if (strcmp(name, "UTC") == 0 || strcmp(name, "Z") == 0) {
        return true;
    }
    struct scanner scanner = {name + 1};
    int hour = 0;
    int minute = 0;
    if (name[0] != '+' && name[0] != '-') {
        return false;
    }
    const size_t digits = strspn(scanner.next, "0123456789");
    if (digits == 4) {
        const int number = (scanner.next[0] - '0') * 1000 + (scanner.next[1] - '0') * 100 +
                           (scanner.next[2] - '0') * 10 + (scanner.next[3] - '0');
        hour = number / 100;
        minute = number % 100;
        scanner.next += 4;
    } else if (digits != 2 || !take_number(&scanner, 23, &hour) ||
               (*scanner.next != '\0' &&
                (!take(&scanner, ':') || strspn(scanner.next, "0123456789") != 2 ||
                 !take_number(&scanner, 59, &minute)))) {
        return false;
    }
    const int32_t offset = (hour * 60 + minute) * 60;
    *offset_out = name[0] == '-' ? -offset : offset;
    return hour <= 23 && minute <= 59 && *scanner.next == '\0';
}

/* Into memory of the file's size. */
static lahar_status read_all(struct lahar_io *io, struct lahar_io_file *file,
                             const lahar_allocator *allocator, uint8_t **data_out, size_t *size_out,
                             lahar_error *error)
{
    uint64_t size = 0;
    LAHAR_TRY(io->ops->size(io, file, &size, error));
    if (size > FILE_SIZE_MAX) {
        return lahar_fail(error, LAHAR_CORRUPT, "a time zone of %llu bytes",
                          (unsigned long long)size);
    }
    *data_out = lahar_allocate(allocator, (size_t)size + 1);
    if (*data_out == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a time zone");
    }
    return io->ops->read(io, file, 0, *data_out, (size_t)size, size_out, error);
}

static lahar_status read_file(struct lahar_io *io, const char *name,
                              const lahar_allocator *allocator, uint8_t **data_out,
                              size_t *size_out, lahar_error *error)
{
    char path[sizeof ZONE_DIRECTORY + 1 + NAME_SIZE_MAX];
    struct lahar_io_file *file = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", ZONE_DIRECTORY, name);
    lahar_status status = io->ops->open(io, path, LAHAR_IO_READ, &file, NULL);
    if (status != LAHAR_OK) {
        return lahar_fail(error, LAHAR_INVALID, "there is no time zone \"%s\" in " ZONE_DIRECTORY,
                          name);
    }
    status = read_all(io, file, allocator, data_out, size_out, error);
    io->ops->close(io, file);
    return status;
}

lahar_status lahar_time_zone_open(struct lahar_io *io, const char *name,
                                  const lahar_allocator *allocator,
                                  struct lahar_time_zone **zone_out, lahar_error *error)
{
    int32_t offset = 0;
    *zone_out = NULL;
    if (parse_offset(name, &offset)) {
        *zone_out = make(allocator, error);
        if (*zone_out == NULL) {
            return LAHAR_NO_MEMORY;
        }
        (*zone_out)->first_offset = offset;
        return LAHAR_OK;
    }
    if (!is_name(name)) {
        return lahar_fail(error, LAHAR_INVALID,
                          "expected a time zone: UTC, +02:00 or Europe/Berlin");
    }
    uint8_t *data = NULL;
    size_t size = 0;
    lahar_status status = read_file(io, name, allocator, &data, &size, error);
    if (status == LAHAR_OK) {
        status = lahar_time_zone_parse(data, size, allocator, zone_out, error);
    }
    lahar_release(allocator, data);
    return status;
}

/* --- times --------------------------------------------------------------------------- */

static int64_t rule_offset(const struct lahar_time_zone *zone, int64_t instant_s)
{
    if (!zone->has_summer) {
        return zone->standard_offset;
    }
    const int64_t year = year_of(instant_s + zone->standard_offset);
    const int64_t begin =
        day_of(&zone->begin, year) * DAY_S + zone->begin.time_s - zone->standard_offset;
    const int64_t end = day_of(&zone->end, year) * DAY_S + zone->end.time_s - zone->summer_offset;
    /* South of the equator summer goes over the new year. */
    const bool is_summer =
        begin < end ? instant_s >= begin && instant_s < end : instant_s >= begin || instant_s < end;
    return is_summer ? zone->summer_offset : zone->standard_offset;
}

int64_t lahar_time_zone_offset(const struct lahar_time_zone *zone, int64_t instant_s)
{
    size_t low = 0;
    size_t high = zone->change_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (zone->changes[middle] <= instant_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == zone->change_count && zone->has_rule) {
        return rule_offset(zone, instant_s);
    }
    return low == 0 ? zone->first_offset : zone->offsets[low - 1];
}

int64_t lahar_time_zone_instant(const struct lahar_time_zone *zone, int64_t local_s)
{
    if (zone == NULL) {
        return local_s;
    }
    /* Changes lie more than two days apart. */
    const int64_t before = lahar_time_zone_offset(zone, local_s - DAY_S);
    const int64_t behind = lahar_time_zone_offset(zone, local_s + DAY_S);
    const int64_t first = local_s - before;
    if (before == behind || lahar_time_zone_offset(zone, first) == before) {
        return first;
    }
    const int64_t second = local_s - behind;
    return lahar_time_zone_offset(zone, second) == behind ? second : first;
}
