/* What journals lost: found at opening, recorded in the manifest with the next session, and told
 * by every answer that it could concern.
 *
 * A lost range is fixed while the store is open. It is forgotten at an opening when retention has
 * dropped everything of every stream below its end. */
#ifndef LAHAR_STORE_LOST_EVENTS_H
#define LAHAR_STORE_LOST_EVENTS_H

#include "engine/segment/segment.h"
#include "io/base/buffer.h"
#include "lahar/store.h"

struct lahar_manifest_state;

/* Gathers the lost ranges of the manifest and of the recovery into store->lost. LAHAR_CORRUPT:
 * the files of a rollover that the manifest does not name are all there and hold them, so that
 * nothing is lost once they are named, which repair does. */
lahar_status lahar_lost_events_gather(lahar_store *store, lahar_error *error);
void lahar_lost_events_release(lahar_store *store);
/* Appends records of the ranges that the manifest does not have yet; returns how many. */
size_t lahar_lost_events_put_new(const lahar_store *store, struct lahar_buffer *records);
void lahar_lost_events_log(const lahar_store *store);
/* Says in error what info, of lahar_snapshot_lost, stands for. */
lahar_status lahar_lost_events_fail(const struct lahar_segment_info *info, lahar_error *error);
/* Whether retention has dropped everything below id, of every stream there is. */
bool lahar_lost_events_is_dropped(const struct lahar_manifest_state *state, uint64_t id);

#endif
