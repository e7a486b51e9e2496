/* How the times of one source are written: a named format or a pattern of directives, with what
 * such texts leave out, the zone and the year. docs/formats.md lists both. */
#ifndef LAHAR_FORMAT_TIME_PATTERN_H
#define LAHAR_FORMAT_TIME_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "lahar/event.h"
#include "lahar/status.h"

struct lahar_time_pattern {
    enum lahar_time_style {
        LAHAR_TIME_STYLE_ANY, /* whatever lahar_time_parse understands */
        LAHAR_TIME_STYLE_RFC3339,
        LAHAR_TIME_STYLE_EPOCH,
        LAHAR_TIME_STYLE_DIRECTIVES
    } style;
    unsigned epoch_scale; /* a unit has 10^epoch_scale ns */
    const char *directives;
    int64_t offset_seconds;             /* of a text without a zone, east of UTC */
    const struct lahar_time_zone *zone; /* in place of it, set by the caller; or NULL */
    unsigned year;                      /* of a text without one; 0: see reference_ns */
    int64_t reference_ns; /* such a text is of the last year that does not put it more than a
                             day behind this time; 0: it is no time */
};

/* format, zone: NULL for any and for UTC; format must outlive the pattern. LAHAR_INVALID: one
 * of them is not understood. */
lahar_status lahar_time_pattern_init(struct lahar_time_pattern *pattern, const char *format,
                                     const char *zone, unsigned year, int64_t reference_ns,
                                     lahar_error *error);

/* Whether zone is one that init takes: UTC, GMT or an offset. */
bool lahar_time_pattern_is_fixed_zone(const char *zone);

/* The whole text must fit. */
bool lahar_time_pattern_parse(const struct lahar_time_pattern *pattern, lahar_bytes text,
                              int64_t *time_ns_out);

#endif
