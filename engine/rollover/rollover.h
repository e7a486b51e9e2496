/* Rollover: turning a closed group of resident batches into event files and shards.
 *
 * One step decides, waits or rolls one group; only the rollover thread (or whoever
 * drives a store without threads) takes steps. A group is the batches from the rolled
 * id up to a cut, which is always a batch boundary. What becomes durable when is in
 * docs/recovery.md. */
#ifndef LAHAR_ROLLOVER_ROLLOVER_H
#define LAHAR_ROLLOVER_ROLLOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/journal/alarm.h"
#include "lahar/store.h"

struct lahar_rollover;
struct lahar_crew;
struct lahar_feed_keeper; /* engine/rollover/feed_keeper.h */

lahar_status lahar_rollover_create(lahar_store *store, struct lahar_rollover **rollover_out,
                                   lahar_error *error);
void lahar_rollover_destroy(struct lahar_rollover *rollover); /* NULL is allowed */

/* One step; returns whether it did anything. Without threads it never waits. */
bool lahar_rollover_step(struct lahar_rollover *rollover);
/* What the next step has to wait for, after one that did nothing; the same thread only. */
void lahar_rollover_rest(struct lahar_rollover *rollover, struct lahar_rest *rest_out);

/* Rolls everything that is below the next id now, and waits for it. The status of an
 * attempt that failed meanwhile, LAHAR_TIMEOUT, LAHAR_CLOSED. Any thread. */
lahar_status lahar_rollover_request(struct lahar_rollover *rollover, uint64_t deadline_ns,
                                    lahar_error *error);

/* Ends the threads that it computes with; no step is taken any more. */
void lahar_rollover_stop(struct lahar_rollover *rollover); /* NULL is allowed */

/* The threads that it computes with (engine/rollover/crew.h); rollover's thread only. */
struct lahar_crew *lahar_rollover_crew(struct lahar_rollover *rollover);
/* The feeds kept from group to group; rollover's thread only. */
struct lahar_feed_keeper *lahar_rollover_feeds(struct lahar_rollover *rollover);

/* The level of compression for a part of a group of so many bytes: what the store's options say,
 * else one that follows the backlog. Somebody's waiting for the rollover is backlog too. */
uint32_t lahar_rollover_level(struct lahar_rollover *rollover, uint64_t group_bytes);

struct lahar_rollover_stat {
    uint64_t rolled_id;
    uint64_t rollovers;
    uint64_t failures;
};
void lahar_rollover_stat_get(struct lahar_rollover *rollover, struct lahar_rollover_stat *stat_out);

#endif
