/* The cache: hits, its limit, blocks in use while evicted. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/segment/block_cache.h"
#include "engine/segment/block_reader.h"
#include "engine/segment/block_writer.h"
#include "sample_events.h"

static struct lahar_block *make_block(struct samples *samples, uint32_t event_count)
{
    struct lahar_block_writer *writer = NULL;
    const struct lahar_stream *stream = lahar_schema_stream(samples->catalog, samples->stream);
    cr_assert_eq(lahar_block_writer_create(stream, 1, &lahar_allocator_libc, &writer, NULL),
                 LAHAR_OK);
    for (uint32_t i = 0; i < event_count; i++) {
        const lahar_event event = samples_next(samples, 1);
        cr_assert_eq(
            lahar_block_writer_add(writer, &event, samples_row_size(samples, &event), NULL),
            LAHAR_OK);
    }
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    struct lahar_block_info info;
    cr_assert_eq(lahar_block_writer_finish(writer, &out, &info, NULL), LAHAR_OK);
    lahar_block_writer_destroy(writer);
    struct lahar_block *block = NULL;
    cr_assert_eq(
        lahar_block_create(out.data, out.size, stream, &lahar_allocator_libc, &block, NULL),
        LAHAR_OK);
    return block;
}

static void expect_stat(struct lahar_block_cache *cache, uint64_t hits, uint64_t misses,
                        uint64_t bytes)
{
    uint64_t found[3];
    lahar_block_cache_stat(cache, &found[0], &found[1], &found[2]);
    cr_assert_eq(found[0], hits);
    cr_assert_eq(found[1], misses);
    cr_assert_eq(found[2], bytes);
}

Test(block_cache, keeps_the_blocks_used_last_within_its_limit)
{
    struct samples samples;
    samples_create(&samples, 1);
    struct lahar_block *blocks[4];
    uint64_t largest = 0;
    for (uint32_t i = 0; i < 4; i++) {
        blocks[i] = make_block(&samples, 100);
        largest = blocks[i]->charge > largest ? blocks[i]->charge : largest;
    }
    struct lahar_block_cache *cache = NULL;
    cr_assert_eq(lahar_block_cache_create(&lahar_allocator_libc, 3 * largest, &cache, NULL),
                 LAHAR_OK);
    for (uint32_t i = 0; i < 3; i++) {
        lahar_block_cache_put(cache, 9, i, blocks[i]);
    }
    expect_stat(cache, 0, 0, blocks[0]->charge + blocks[1]->charge + blocks[2]->charge);
    struct lahar_block *found = lahar_block_cache_get(cache, 9, 0);
    cr_assert_eq(found, blocks[0]);
    lahar_block_release(found);
    cr_assert_null(lahar_block_cache_get(cache, 8, 0));
    /* Block 1 is the one not used for longest. */
    lahar_block_cache_put(cache, 9, 3, blocks[3]);
    cr_assert_null(lahar_block_cache_get(cache, 9, 1));
    expect_stat(cache, 1, 2, blocks[0]->charge + blocks[2]->charge + blocks[3]->charge);
    /* Evicted, and still good for the one who holds it. */
    lahar_event event;
    struct lahar_arena arena;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    cr_assert_eq(lahar_block_read(blocks[1], 99, &arena, &event, NULL), LAHAR_OK);
    lahar_arena_deinit(&arena);
    /* Put again by a thread that read it at the same time: nothing changes. */
    lahar_block_cache_put(cache, 9, 3, blocks[3]);
    expect_stat(cache, 1, 2, blocks[0]->charge + blocks[2]->charge + blocks[3]->charge);
    lahar_block_cache_drop(cache, 9, 4);
    expect_stat(cache, 1, 2, 0);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(atomic_load(&blocks[i]->reference_count), 1);
        lahar_block_release(blocks[i]);
    }
    lahar_block_cache_destroy(cache);
    samples_destroy(&samples);
}

Test(block_cache, does_not_keep_a_block_above_its_limit)
{
    struct samples samples;
    samples_create(&samples, 2);
    struct lahar_block *block = make_block(&samples, 100);
    struct lahar_block_cache *cache = NULL;
    cr_assert_eq(lahar_block_cache_create(&lahar_allocator_libc, block->charge - 1, &cache, NULL),
                 LAHAR_OK);
    lahar_block_cache_put(cache, 1, 1, block);
    expect_stat(cache, 0, 0, 0);
    lahar_block_release(block);
    lahar_block_cache_destroy(cache);
    samples_destroy(&samples);
}
