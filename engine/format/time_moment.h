/* Pieces that texts of times are made of, and what they add up to. */
#ifndef LAHAR_FORMAT_TIME_MOMENT_H
#define LAHAR_FORMAT_TIME_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Holds any year's nanoseconds. */
__extension__ typedef __int128 lahar_wide_ns;

struct lahar_time_zone;

struct lahar_time_cursor {
    const uint8_t *p;
    const uint8_t *end;
};

struct lahar_moment {
    unsigned year, month, day; /* month and day from 1 */
    unsigned hour, minute, second;
    int64_t fraction_ns;
    int64_t offset_seconds; /* of the zone, east positive */
    /* Of a time that names no zone, in place of the offset; NULL: none. Taking a zone clears it. */
    const struct lahar_time_zone *zone;
};

/* A take function moves the cursor behind what it has taken. On false the cursor is of no
 * further use. */
bool lahar_take_byte(struct lahar_time_cursor *c, uint8_t byte);
/* Exactly count digits. */
bool lahar_take_digits(struct lahar_time_cursor *c, unsigned count, unsigned *value_out);
/* '.' or ',' and digits, or nothing; those below a nanosecond are cut off. */
bool lahar_take_fraction(struct lahar_time_cursor *c, int64_t *fraction_ns_out);
/* Z, z, +hh:mm, +hhmm, +hh, or nothing, which leaves the zone as it is. */
bool lahar_take_zone(struct lahar_time_cursor *c, struct lahar_moment *m);
/* "Jan" .. "Dec". */
bool lahar_take_month(struct lahar_time_cursor *c, unsigned *month_out);
/* "Mon" .. "Sun"; whether it is the right one is not looked at. */
bool lahar_take_weekday(struct lahar_time_cursor *c);

/* Checks the ranges. A leap second exists only at 23:59:60 UTC, and becomes the first second of
 * the next day. */
bool lahar_moment_to_ns(const struct lahar_moment *m, int64_t *time_ns_out);

/* The nearest time that can be stored. */
int64_t lahar_time_clamp(lahar_wide_ns ns);

#endif
