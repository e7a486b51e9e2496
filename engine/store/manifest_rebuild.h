/* Making the manifest again from what is left: event files, journals, the valid beginning of
 * a damaged manifest, the copy of its names. */
#ifndef LAHAR_STORE_MANIFEST_REBUILD_H
#define LAHAR_STORE_MANIFEST_REBUILD_H

#include "engine/store/store_state.h"

/* Writes a manifest with a number above all that are there, durable; with the writer's lock held
 * and before anything else is read. What could not be kept is reported through the log. */
lahar_status lahar_manifest_rebuild(lahar_store *store, lahar_error *error);

#endif
