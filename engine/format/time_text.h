/* Points in time as text. docs/formats.md lists what is understood. */
#ifndef LAHAR_FORMAT_TIME_TEXT_H
#define LAHAR_FORMAT_TIME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lahar/event.h"

enum {
    LAHAR_TIME_TEXT_SIZE_MAX = 40
};

struct lahar_time_zone;

/* Understands RFC 3339 and its usual variations, CLF, RFC 1123, asctime, and
 * epoch numbers whose unit follows from their size. Text without a zone is UTC. Times that int64
 * nanoseconds cannot hold become the nearest that they can. False: not a time. */
bool lahar_time_parse(lahar_bytes text, int64_t *time_ns_out);
/* The same; text without a zone is in one offset_seconds east of UTC, or in zone unless that is
 * NULL. */
bool lahar_time_parse_zoned(lahar_bytes text, int64_t offset_seconds,
                            const struct lahar_time_zone *zone, int64_t *time_ns_out);
/* RFC 3339 and its variations alone. */
bool lahar_time_parse_rfc3339(lahar_bytes text, int64_t offset_seconds,
                              const struct lahar_time_zone *zone, int64_t *time_ns_out);

/* An epoch number: below 10^11 seconds, below 10^14 milliseconds, below 10^17
 * microseconds, else nanoseconds; a fraction and an exponent are allowed, digits
 * below a nanosecond are cut off. */
bool lahar_time_parse_epoch(lahar_bytes text, int64_t *time_ns_out);
/* An epoch number in units of 10^scale nanoseconds. */
bool lahar_time_parse_epoch_in(lahar_bytes text, unsigned scale, int64_t *time_ns_out);

/* Whether text, which was understood as time_ns, is what lahar_time_format writes for it, and with
 * how many digits. It may say no of the first and the last time that can be stored. */
bool lahar_time_is_canonical(lahar_bytes text, int64_t time_ns, unsigned *fraction_digits_out);

/* YYYY-MM-DDThh:mm:ss[.f]Z with fraction_digits digits (0 .. 9), not terminated.
 * Returns the bytes written. What the digits do not hold is cut off. */
size_t lahar_time_format(int64_t time_ns, unsigned fraction_digits,
                         char out[LAHAR_TIME_TEXT_SIZE_MAX]);

#endif
