/* The inside of lahar_ingest. */
#ifndef LAHAR_FORMAT_INGEST_H
#define LAHAR_FORMAT_INGEST_H

#include "engine/event/schema.h"
#include "lahar/ingest.h"

struct lahar_columns;
struct lahar_io;

/* Owns batch and what columns holds (may be NULL) once it has succeeded. io: the clock, to guess
 * the year of times without one, and time zones. */
lahar_status lahar_ingest_create(const lahar_allocator *allocator,
                                 const struct lahar_schema_catalog *catalog, lahar_batch *batch,
                                 const lahar_ingest_options *options, struct lahar_columns *columns,
                                 struct lahar_io *io, lahar_ingest **ingest_out,
                                 lahar_error *error);
/* The store that the batch is of: to wait for what was appended while the disk was full. */
void lahar_ingest_set_store(lahar_ingest *ingest, lahar_store *store);

#endif
