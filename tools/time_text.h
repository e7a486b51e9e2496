/* Times as people write and read them, in UTC. */
#ifndef LAHAR_TOOLS_TIME_TEXT_H
#define LAHAR_TOOLS_TIME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TIME_TEXT_SIZE = 48 /* holds any time written below, terminated */
};

/* "2024-05-17T09:30:00.000000000Z". */
void time_text_exact(int64_t time_ns, char out[TIME_TEXT_SIZE]);

/* The same with only as many digits of the second, in threes, as it has. */
void time_text_short(int64_t time_ns, char out[TIME_TEXT_SIZE]);

/* An RFC 3339 time (zone optional: UTC), a date (its midnight), a month or a
 * year; "now", "now-1h30m"; "@" and seconds since the epoch. */
bool time_text_parse(const char *text, int64_t now_ns, int64_t *time_ns_out);

/* Numbers with units, added up: "90s", "1h30m", "7d". Units: ns us ms s m h d w. */
bool time_text_parse_duration(const char *text, uint64_t *duration_ns_out);

/* CLOCK_REALTIME. */
int64_t time_text_now_ns(void);

#endif
