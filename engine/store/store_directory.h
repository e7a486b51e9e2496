/* The directory of a store: what is in it, the writer's lock, creation, removal of
 * what no manifest names. */
#ifndef LAHAR_STORE_STORE_DIRECTORY_H
#define LAHAR_STORE_STORE_DIRECTORY_H

#include "engine/store/store_state.h"

/* Makes the directory a store if it is not one yet, and takes the writer's lock, waiting
 * up to deadline_ns. On LAHAR_OK the identity file is there. LAHAR_NOT_FOUND,
 * LAHAR_NOT_A_STORE, LAHAR_LOCKED. */
lahar_status lahar_store_enter_directory(lahar_store *store, uint64_t deadline_ns,
                                         lahar_error *error);
/* The same for reading: LAHAR_NOT_FOUND or LAHAR_NOT_A_STORE unless it is a store. */
lahar_status lahar_store_check_directory(lahar_store *store, lahar_error *error);

/* Removes temporary files of this program's names, superseded manifests, and event files and shards
 * that the manifest does not name, and puts next_file_number above every number seen. An unnamed
 * event file whose events are neither in a named file nor in the recovered batches is kept and
 * reported: its record in the manifest must have been lost. */
lahar_status lahar_store_remove_unnamed(lahar_store *store,
                                        const struct lahar_journal_recovery *recovery,
                                        lahar_error *error);

#endif
