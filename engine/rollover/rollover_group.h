/* One group into event files, shards and one change of the manifest. */
#ifndef LAHAR_ROLLOVER_ROLLOVER_GROUP_H
#define LAHAR_ROLLOVER_ROLLOVER_GROUP_H

#include <stdint.h>

#include "engine/store/store_state.h"

/* Rolls batches from the store's rolled id on, at most up to cut_id (everything below it
 * is published and durable), at most about a group's size. *rolled_id_out: the rolled
 * id afterwards; it is cut_id when nothing is left below that. On failure nothing
 * has changed and nothing is left behind, unless the store is poisoned. LAHAR_CANCELLED
 * when the store is stopping. Rollover's thread only. */
lahar_status lahar_rollover_group(lahar_store *store, uint64_t cut_id, uint64_t *rolled_id_out,
                                  lahar_error *error);

#endif
