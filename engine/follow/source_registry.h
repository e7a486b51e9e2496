/* Sources in the store: definitions and cursors are offset records, so that they are
 * committed with the events that they speak of, and a definition goes together with its
 * cursors. Offset sources that begin with "lahar." are Lahar's own:
 *
 *   "lahar.sources"      key: the source's name; value: its definition
 *                        key "": the number that the next source gets
 *   "lahar.source.N"     key: 8 bytes, a generation; value: its cursor
 *                        key "state": generations that may have been used
 *
 * A commit of a follower and a change by hand exclude each other by the store's source
 * lock and epoch: what changes a source raises the epoch, and a follower whose epoch is old
 * throws its block away and loads the sources again. */
#ifndef LAHAR_FOLLOW_SOURCE_REGISTRY_H
#define LAHAR_FOLLOW_SOURCE_REGISTRY_H

#include "engine/follow/source_settings.h"
#include "lahar/append.h"

#define LAHAR_SOURCES_KEY      "lahar.sources"
#define LAHAR_SOURCE_STATE_KEY "state"

/* The offset source under which a source's cursors are. */
void lahar_source_cursors_key(uint64_t source, char key_out[32]);

/* The definition called name, in the arena. LAHAR_NOT_FOUND. */
lahar_status lahar_source_find(lahar_store *store, const char *name, struct lahar_arena *arena,
                               struct lahar_source_definition *definition_out, lahar_error *error);

/* Commits a follower's batch, if no source has been changed since epoch; else LAHAR_CANCELLED
 * and the batch is kept. */
lahar_status lahar_source_commit(lahar_store *store, lahar_batch *batch,
                                 lahar_durability durability, uint64_t epoch);
/* The same; *first_id_out: as of lahar_batch_commit. Waits at most a second for memory. */
lahar_status lahar_source_commit_at(lahar_store *store, lahar_batch *batch,
                                    lahar_durability durability, uint64_t epoch,
                                    uint64_t *first_id_out, lahar_error *error);

#endif
