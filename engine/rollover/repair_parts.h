/* Making tables of contents and shards again that are lost or damaged.
 *
 * Both hold nothing that the event file does not. A new one takes the place of the old by name and
 * then in the manifest, under the same file number; a crash in between leaves one that the
 * manifest does not agree with, and the repair to be done again. Only while a store is being
 * opened, before its threads are started. */
#ifndef LAHAR_ROLLOVER_REPAIR_PARTS_H
#define LAHAR_ROLLOVER_REPAIR_PARTS_H

#include "engine/store/store_state.h"

/* Reads every table and every shard whole. What cannot be made again, because the event file is
 * damaged itself, is reported and left. LAHAR_NO_MEMORY, LAHAR_IO, LAHAR_NO_SPACE, LAHAR_POISONED.
 */
lahar_status lahar_repair_parts(lahar_store *store, lahar_error *error);

#endif
