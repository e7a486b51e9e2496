/* Time zones by name: how local times and instants belong together, from the compiled files of the
 * IANA database (TZif, RFC 8536) in /usr/share/zoneinfo. Immutable once made; any thread. The
 * process's own zone is neither looked at nor changed. */
#ifndef LAHAR_FORMAT_TIME_ZONE_H
#define LAHAR_FORMAT_TIME_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/status.h"

struct lahar_io;
struct lahar_time_zone;

/* name: "UTC", an offset as "+02:00", or a name of the database as "Europe/Berlin". LAHAR_INVALID:
 * it is none; LAHAR_CORRUPT: the file is damaged; LAHAR_IO. */
lahar_status lahar_time_zone_open(struct lahar_io *io, const char *name,
                                  const lahar_allocator *allocator,
                                  struct lahar_time_zone **zone_out, lahar_error *error);
/* The same from the bytes of a file. */
lahar_status lahar_time_zone_parse(const uint8_t *data, size_t size,
                                   const lahar_allocator *allocator,
                                   struct lahar_time_zone **zone_out, lahar_error *error);
void lahar_time_zone_destroy(struct lahar_time_zone *zone); /* NULL is allowed */

/* Seconds east of UTC at an instant, in seconds since the epoch. */
int64_t lahar_time_zone_offset(const struct lahar_time_zone *zone, int64_t instant_s);
/* The instant of a local time, which is given as if it were UTC. Of a time that comes twice the
 * first; a time that is passed over counts as if the clock had been changed after it. NULL: UTC. */
int64_t lahar_time_zone_instant(const struct lahar_time_zone *zone, int64_t local_s);

#endif
