/* Retention: dropping the oldest event files beyond the limits of their stream and of the
 * store.
 *
 * A step looks at the manifest's list of files and at the age clock, and drops what is due:
 * one change of the manifest, then the new set for readers, then the files. A crash behind
 * the change leaves files that no manifest names, which the next opening removes.
 * Queries that run keep the files open. Files are dropped whole and oldest first, so what a
 * stream has lost is always everything below one id. */
#ifndef LAHAR_ROLLOVER_RETENTION_H
#define LAHAR_ROLLOVER_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/store/store_state.h"

/* One step; returns whether it dropped anything. The retention thread only. */
bool lahar_retention_step(lahar_store *store);
/* What the next step has to wait for besides new files, after one that did nothing. */
void lahar_retention_rest(lahar_store *store, struct lahar_rest *rest_out);

/* Whether the files exceed a limit of bytes and a step could help: rollover then waits,
 * so that the excess stays below one group. Any thread. */
bool lahar_retention_is_over(lahar_store *store);

/* With the manifest lock held: the age stamp of a file with this last id. */
uint64_t lahar_retention_stamp(lahar_store *store, uint64_t last_id);

/* With the manifest lock held: puts the clock record that every change carries along. */
void lahar_retention_put_clock(lahar_store *store, struct lahar_buffer *records);

/* The longest a group may stay open so that age limits hold to a twentieth; UINT64_MAX
 * without such a limit. Any thread. */
uint64_t lahar_retention_group_age_ns(lahar_store *store);

/* After opening and after every change of the limits, with the manifest lock held. */
void lahar_retention_note_limits(lahar_store *store);

#endif
