/* Shards built from an event file alone, in one piece and in several: the answers are those of the
 * shard that rollover made. */
#include "engine/rollover/shard_build.h"

#include "engine/store/store_state.h"
#include "index/shard.h"
#include "io/base/error.h"
#include "tests/unit/store/store_fixture.h"

enum {
    EVENTS = 40000 /* several blocks */
};

static lahar_status put(void *context, const void *data, size_t size, lahar_error *error)
{
    (void)error;
    lahar_buffer_put(context, data, size);
    return LAHAR_OK;
}

/* Gives up at the nth block. */
static bool give_up(void *context)
{
    return (*(unsigned *)context)-- == 0;
}

static lahar_status refuse(void *context, const void *data, size_t size, lahar_error *error)
{
    (void)context;
    (void)data;
    (void)size;
    return lahar_fail(error, LAHAR_NO_SPACE, "no more");
}

struct counts {
    uint64_t terms;
    uint64_t hash; /* of terms and counts, in order */
};

static lahar_status add_count(void *context, const uint8_t *term, size_t size, bool is_cut,
                              uint64_t count, lahar_error *error)
{
    struct counts *counts = context;
    (void)error;
    counts->terms++;
    for (size_t i = 0; i < size; i++) {
        counts->hash = (counts->hash ^ term[i]) * UINT64_C(0x100000001b3);
    }
    counts->hash = (counts->hash ^ (count << 1) ^ is_cut) * UINT64_C(0x100000001b3);
    return LAHAR_OK;
}

static struct counts count_terms(struct lahar_shard *shard, const char *name)
{
    struct counts counts = {0};
    uint32_t field = 0;
    cr_assert(lahar_shard_find_field(shard, name, strlen(name), LAHAR_CLASS_KEYWORD, &field), "%s",
              name);
    cr_assert_eq(lahar_shard_term_counts(shard, field, NULL, add_count, &counts, NULL), LAHAR_OK);
    return counts;
}

static void expect_same(struct lahar_shard *made, struct lahar_shard *rolled)
{
    cr_assert_eq(lahar_shard_verify(made, NULL), LAHAR_OK);
    cr_assert_eq(lahar_shard_document_count(made), lahar_shard_document_count(rolled));
    for (uint32_t i = 0; i < lahar_shard_document_count(made); i += 7) {
        cr_assert_eq(lahar_shard_id(made, i), lahar_shard_id(rolled, i));
    }
    const struct counts a = count_terms(made, "level");
    const struct counts b = count_terms(rolled, "level");
    cr_assert_gt(a.terms, 1);
    cr_assert_eq(a.terms, b.terms);
    cr_assert_eq(a.hash, b.hash);
    for (uint32_t number = 0; number < EVENTS; number += 997) {
        char token[16];
        uint64_t found[2] = {0, 0};
        struct lahar_shard *shards[] = {made, rolled};
        (void)snprintf(token, sizeof token, "%u", number);
        for (unsigned k = 0; k < 2; k++) {
            uint32_t field = 0;
            cr_assert(lahar_shard_find_field(shards[k], "message", 7, LAHAR_CLASS_TEXT, &field));
            cr_assert_eq(
                lahar_shard_token_count(shards[k], field, token, strlen(token), &found[k], NULL),
                LAHAR_OK);
        }
        cr_assert_gt(found[0], 0, "number %u", number);
        cr_assert_eq(found[0], found[1]);
    }
}

Test(shard_build, in_pieces_answers_like_the_shard_of_a_rollover)
{
    struct store_fixture fixture;
    store_fixture_init(&fixture, 3);
    store_fixture_open(&fixture);
    const uint32_t stream = store_fixture_stream(&fixture, 0);
    for (unsigned i = 0; i < EVENTS / 1000; i++) {
        store_fixture_add(&fixture, &stream, 1, 1000);
    }
    cr_assert_eq(lahar_rollover(fixture.store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
    struct lahar_segment_set *set = lahar_store_acquire_set(fixture.store);
    cr_assert_eq(set->count, 1);
    struct lahar_segment *segment = set->readable[0]->segment;
    const struct lahar_segment_info *info = lahar_segment_describe(segment);
    cr_assert_geq(info->block_count, 3);
    /* One piece; one a block; some of several blocks and a rest. */
    const uint64_t sizes[] = {0, 1, info->raw_bytes / 2 + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct lahar_buffer bytes;
        struct lahar_shard *shard = NULL;
        lahar_error error = {0};
        lahar_buffer_init(&bytes, &lahar_allocator_libc);
        struct lahar_shard_build build = {.catalog = fixture.store->catalog,
                                          .segment = segment,
                                          .piece_bytes = sizes[i],
                                          .sink = {put, &bytes},
                                          .allocator = &lahar_allocator_libc};
        cr_assert_eq(lahar_shard_build(&build, &error), LAHAR_OK, "%s", error.message);
        const struct lahar_shard_source source = {.size = bytes.size, .memory = bytes.data};
        cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL), LAHAR_OK);
        expect_same(shard, set->readable[0]->shard);
        lahar_shard_close(shard);
        lahar_buffer_deinit(&bytes);
        build.sink.write = refuse;
        cr_assert_eq(lahar_shard_build(&build, &error), LAHAR_NO_SPACE);
        for (unsigned blocks = 0; blocks < 3; blocks++) {
            unsigned left = blocks;
            build.is_cancelled = give_up;
            build.cancel_context = &left;
            cr_assert_eq(lahar_shard_build(&build, &error), LAHAR_CANCELLED);
        }
    }
    lahar_segment_set_release(set);
    store_fixture_close(&fixture);
    store_fixture_deinit(&fixture);
}
