/* Events made beforehand, so that what is measured is the store and not the generator.
 *
 * A pack holds copies of consecutive events of a workload and hands them out in turn. Each time
 * round, times move on by the length of the pack, and FlowFile uuids, file names and request ids
 * become others, at the cost of a few dozen bytes an event; everything else repeats. So blocks
 * compress as they do with fresh events as long as a pack is longer than a block. One thread. */
#ifndef LAHAR_TOOLS_LOAD_PACK_H
#define LAHAR_TOOLS_LOAD_PACK_H

#include "bench/load_event.h"

struct load_pack;

/* Makes count events from first_index on. NULL: no memory. */
struct load_pack *load_pack_create(struct load_event_maker *maker, uint64_t first_index,
                                   uint64_t count);
void load_pack_destroy(struct load_pack *pack); /* NULL is allowed */

uint64_t load_pack_count(const struct load_pack *pack);

/* Readies the next count events, at most as many as the pack holds, and returns the place of the
 * first; those behind the end are at the beginning. */
uint64_t load_pack_turn(struct load_pack *pack, uint64_t count);

/* The event at a place (modulo the pack's length) that the last turn readied. */
const lahar_event *load_pack_event(const struct load_pack *pack, uint64_t place);

#endif
