#include "engine/rollover/feed_keeper.h"

#include <string.h>

#define KEPT_NS UINT64_C(5000000000)

static struct lahar_index_feed *remove_at(struct lahar_feed_keeper *keeper, uint32_t index)
{
    struct lahar_index_feed *feed = keeper->kept[index].feed;
    keeper->count--;
    memmove(&keeper->kept[index], &keeper->kept[index + 1],
            (keeper->count - index) * sizeof keeper->kept[0]);
    return feed;
}

lahar_status lahar_feed_keeper_take(struct lahar_feed_keeper *keeper,
                                    const struct lahar_schema_catalog *catalog, uint32_t stream,
                                    const lahar_allocator *allocator,
                                    struct lahar_index_feed **feed_out, lahar_error *error)
{
    /* A stream that has changed since is another object. */
    const struct lahar_stream *wanted = lahar_schema_stream(catalog, stream);
    for (uint32_t i = 0; i < keeper->count; i++) {
        if (keeper->kept[i].stream == wanted) {
            *feed_out = remove_at(keeper, i);
            return LAHAR_OK;
        }
    }
    return lahar_index_feed_create(catalog, stream, allocator, feed_out, error);
}

void lahar_feed_keeper_give(struct lahar_feed_keeper *keeper, struct lahar_index_feed *feed,
                            uint64_t now_ns)
{
    if (keeper->count == LAHAR_FEED_KEEPER_COUNT) {
        lahar_index_feed_destroy(remove_at(keeper, 0));
    }
    keeper->kept[keeper->count++] =
        (struct lahar_kept_feed){feed, lahar_index_feed_stream(feed), now_ns};
}

void lahar_feed_keeper_trim(struct lahar_feed_keeper *keeper, uint64_t now_ns)
{
    while (keeper->count > 0 && now_ns - keeper->kept[0].given_ns >= KEPT_NS) {
        lahar_index_feed_destroy(remove_at(keeper, 0));
    }
}

uint64_t lahar_feed_keeper_trim_ns(const struct lahar_feed_keeper *keeper)
{
    return keeper->count == 0 ? UINT64_MAX : keeper->kept[0].given_ns + KEPT_NS;
}

void lahar_feed_keeper_deinit(struct lahar_feed_keeper *keeper)
{
    while (keeper->count > 0) {
        lahar_index_feed_destroy(remove_at(keeper, keeper->count - 1));
    }
}
