/* A copy of what the manifest alone knows: names and streams, limits, what retention has
 * dropped, lower bounds of the rolled id and the ceiling. It lies among the event files as
 * names-<n>, in the manifest's own format, and is read only when the manifest is lost. */
#ifndef LAHAR_STORE_MANIFEST_COPY_H
#define LAHAR_STORE_MANIFEST_COPY_H

#include "engine/store/manifest.h"

/* Writes a newer copy, durable under its name, and removes the older ones. */
lahar_status lahar_manifest_copy_write(const struct lahar_manifest *manifest,
                                       const char *events_directory, lahar_error *error);
/* The same unless there is a copy with the same names. */
lahar_status lahar_manifest_copy_refresh(const struct lahar_manifest *manifest,
                                         const char *events_directory, lahar_error *error);
/* Applies the newest readable copy to a state that holds nothing yet. LAHAR_NOT_FOUND. */
lahar_status lahar_manifest_copy_read(struct lahar_io *io, const char *events_directory,
                                      uint64_t store_id, const lahar_allocator *allocator,
                                      struct lahar_manifest_state *state, lahar_error *error);

/* Whether a file of that name is a copy. */
bool lahar_manifest_copy_parse_name(const char *name, uint64_t *number_out);

#endif
