/* Applying the records that are about event files; part of engine/store/manifest_state.c.
 * Payloads come from disk and are not trusted. */
#ifndef LAHAR_STORE_MANIFEST_FILES_H
#define LAHAR_STORE_MANIFEST_FILES_H

#include "engine/store/manifest.h"
#include "io/base/bytes.h"

lahar_status lahar_manifest_apply_file(struct lahar_manifest_state *state,
                                       struct lahar_reader *payload, lahar_error *error);
lahar_status lahar_manifest_apply_remove(struct lahar_manifest_state *state,
                                         struct lahar_reader *payload, lahar_error *error);
lahar_status lahar_manifest_apply_replace(struct lahar_manifest_state *state,
                                          struct lahar_reader *payload, lahar_error *error);

#endif
