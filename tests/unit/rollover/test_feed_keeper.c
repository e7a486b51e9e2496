#include <criterion/criterion.h>

#include "engine/rollover/feed_keeper.h"

static struct lahar_schema_catalog *catalog;
static uint32_t streams[6];

static void set_up(void)
{
    static const char *const names[6] = {"a", "b", "c", "d", "e", "f"};
    cr_assert_eq(lahar_schema_catalog_create(&lahar_allocator_libc, &catalog, NULL), LAHAR_OK);
    for (int i = 0; i < 6; i++) {
        const lahar_stream_spec spec = {
            .struct_size = sizeof spec, .name = names[i], .schema = LAHAR_SCHEMA_LOG};
        cr_assert_eq(lahar_schema_add_stream(catalog, &spec, &streams[i], NULL), LAHAR_OK);
    }
}

static void tear_down(void)
{
    lahar_schema_catalog_destroy(catalog);
}

static struct lahar_index_feed *take(struct lahar_feed_keeper *keeper, int stream)
{
    struct lahar_index_feed *feed = NULL;
    cr_assert_eq(lahar_feed_keeper_take(keeper, catalog, streams[stream], &lahar_allocator_libc,
                                        &feed, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_index_feed_stream(feed), lahar_schema_stream(catalog, streams[stream]));
    return feed;
}

Test(feed_keeper, hands_a_feed_to_its_own_stream_again, .init = set_up, .fini = tear_down)
{
    struct lahar_feed_keeper keeper = {.count = 0};
    struct lahar_index_feed *feed = take(&keeper, 0);
    lahar_feed_keeper_give(&keeper, feed, 10);
    struct lahar_index_feed *other = take(&keeper, 1);
    cr_assert_neq(other, feed);
    cr_assert_eq(take(&keeper, 0), feed);
    cr_assert_eq(keeper.count, 0);
    lahar_index_feed_destroy(feed);
    lahar_index_feed_destroy(other);
    lahar_feed_keeper_deinit(&keeper);
}

Test(feed_keeper, keeps_the_last_four, .init = set_up, .fini = tear_down)
{
    struct lahar_feed_keeper keeper = {.count = 0};
    struct lahar_index_feed *feeds[6];
    for (int i = 0; i < 6; i++) {
        feeds[i] = take(&keeper, i);
    }
    for (int i = 0; i < 6; i++) {
        lahar_feed_keeper_give(&keeper, feeds[i], (uint64_t)i);
    }
    cr_assert_eq(keeper.count, 4);
    for (int i = 2; i < 6; i++) {
        cr_assert_eq(keeper.kept[i - 2].feed, feeds[i]);
    }
    lahar_feed_keeper_deinit(&keeper);
    cr_assert_eq(keeper.count, 0);
}

Test(feed_keeper, gives_up_what_is_not_used, .init = set_up, .fini = tear_down)
{
    struct lahar_feed_keeper keeper = {.count = 0};
    struct lahar_index_feed *first = take(&keeper, 0);
    struct lahar_index_feed *second = take(&keeper, 1);
    lahar_feed_keeper_give(&keeper, first, 1000000000);
    lahar_feed_keeper_give(&keeper, second, 3000000000);
    lahar_feed_keeper_trim(&keeper, 5999999999);
    cr_assert_eq(keeper.count, 2);
    lahar_feed_keeper_trim(&keeper, 6000000000);
    cr_assert_eq(keeper.count, 1);
    cr_assert_eq(keeper.kept[0].feed, second);
    lahar_feed_keeper_trim(&keeper, 8000000000);
    cr_assert_eq(keeper.count, 0);
}

Test(feed_keeper, makes_another_feed_for_a_stream_that_changed, .init = set_up, .fini = tear_down)
{
    struct lahar_feed_keeper keeper = {.count = 0};
    struct lahar_index_feed *feed = take(&keeper, 0);
    lahar_feed_keeper_give(&keeper, feed, 0);
    /* As if the stream's object had been replaced by a new one. */
    keeper.kept[0].stream = lahar_schema_stream(catalog, streams[1]);
    struct lahar_index_feed *fresh = take(&keeper, 0);
    cr_assert_neq(fresh, feed);
    lahar_index_feed_destroy(fresh);
    lahar_feed_keeper_deinit(&keeper);
}
