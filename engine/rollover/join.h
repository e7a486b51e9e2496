/* Joining small event files: fewer, larger files for the same events.
 *
 * Adjacent files of one stream become one, by copying their blocks and merging their shards,
 * so that every event file goes on having one shard whose ordinals are its own. A joined file
 * replaces its parts in one change of the manifest (lahar_manifest_put_replace); the parts' names
 * go once no reader holds them. A crash before the change leaves a file that no manifest names, one
 * behind it leaves the parts: the next opening removes either.
 *
 * Failure model: a failure leaves everything as it was; the next attempt waits. */
#ifndef LAHAR_ROLLOVER_JOIN_H
#define LAHAR_ROLLOVER_JOIN_H

#include <stdbool.h>

#include "engine/store/store_state.h"

/* One step: joins at most one run of files; returns whether it did. One thread at a time. */
bool lahar_join_step(lahar_store *store);
/* What the next step has to wait for besides new files, after one that did nothing. */
void lahar_join_rest(lahar_store *store, struct lahar_rest *rest_out);

#endif
