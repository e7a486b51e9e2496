/* Index feeds between groups: what they hold in memory is worth more than their making, since fresh
 * memory costs a page fault for every page. A feed that has not been used for some seconds is
 * given up. Rollover's thread only. */
#ifndef LAHAR_ROLLOVER_FEED_KEEPER_H
#define LAHAR_ROLLOVER_FEED_KEEPER_H

#include "engine/rollover/rollover_index.h"

enum {
    LAHAR_FEED_KEEPER_COUNT = 4
};

struct lahar_feed_keeper {
    struct lahar_kept_feed {
        struct lahar_index_feed *feed;
        const struct lahar_stream *stream;
        uint64_t given_ns;           /* monotonic */
    } kept[LAHAR_FEED_KEEPER_COUNT]; /* the one given back last comes last */
    uint32_t count;
};

/* A feed for the stream, empty: one that was kept, or a new one. The caller's until it is given
 * back or destroyed. */
lahar_status lahar_feed_keeper_take(struct lahar_feed_keeper *keeper,
                                    const struct lahar_schema_catalog *catalog, uint32_t stream,
                                    const lahar_allocator *allocator,
                                    struct lahar_index_feed **feed_out, lahar_error *error);
/* Keeps a feed that has been finished. */
void lahar_feed_keeper_give(struct lahar_feed_keeper *keeper, struct lahar_index_feed *feed,
                            uint64_t now_ns);
/* Gives up the feeds that have not been used for some time. */
void lahar_feed_keeper_trim(struct lahar_feed_keeper *keeper, uint64_t now_ns);
/* When that has something to do, monotonic; UINT64_MAX: never. */
uint64_t lahar_feed_keeper_trim_ns(const struct lahar_feed_keeper *keeper);
void lahar_feed_keeper_deinit(struct lahar_feed_keeper *keeper);

#endif
