/* Filters of uuids: every uuid of a shard passes, few others do, and what that costs in bytes read.
 * Sizes and rates are those of docs/format/shard.md and of the arithmetic of Bloom filters. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard_merge.h"
#include "io/base/allocator.h"
#include "io/base/bytes.h"
#include "shard_fixture.h"

enum {
    PAGE = 16384,
    OPEN_MAX = 65536,
    ABSENT = 20000, /* uuids asked for that are not there */
    NEAR_AT = 52,   /* in the trailer */
    FAR_AT = 56
};

/* Uuids of a shard are even numbers, others odd. Counters differ in their last bytes alone, as
 * uuids made of time and node do. */
static lahar_uuid make_uuid(uint64_t number, bool is_counter)
{
    lahar_uuid uuid = {{0}};
    uint64_t state = number * 2 + 3;
    for (int i = 0; i < 16; i++) {
        uuid.bytes[i] = is_counter ? (uint8_t)(i < 8 ? 0x55 : number >> (8 * (15 - i)))
                                   : (uint8_t)random_next(&state);
    }
    return uuid;
}

struct maker {
    uint64_t first; /* id of the first document, and number of its uuid */
    uint32_t count;
    bool is_counter;
    bool has_copy; /* a second field with the same uuids */
};

static void build(const struct maker *maker, struct lahar_buffer *out)
{
    struct lahar_shard_builder *builder = NULL;
    uint32_t fields[3] = {0, 0, 0};
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    lahar_shard_builder_field(builder, "uuid", 4, LAHAR_CLASS_UUID, &fields[0], NULL);
    lahar_shard_builder_field(builder, "parent", 6, LAHAR_CLASS_UUID, &fields[1], NULL);
    lahar_shard_builder_field(builder, "copy", 4, LAHAR_CLASS_UUID, &fields[2], NULL);
    for (uint32_t i = 0; i < maker->count; i++) {
        const lahar_uuid uuid = make_uuid((maker->first + i) * 2, maker->is_counter);
        cr_assert_eq(lahar_shard_builder_document(builder, maker->first + i, (int64_t)i, NULL),
                     LAHAR_OK);
        /* The last ones are in the other field alone. */
        lahar_shard_builder_uuid(builder, fields[i + 10 < maker->count ? 0 : 1], &uuid, NULL);
        if (maker->has_copy && i + 10 < maker->count) {
            lahar_shard_builder_uuid(builder, fields[2], &uuid, NULL);
        }
    }
    lahar_buffer_init(out, &lahar_allocator_libc);
    cr_assert_eq(lahar_shard_builder_finish(builder, out, NULL), LAHAR_OK);
    lahar_shard_builder_destroy(builder);
}

static struct lahar_shard *open_shard(struct memory_source *memory,
                                      const struct lahar_buffer *bytes)
{
    struct lahar_shard *shard = NULL;
    *memory = (struct memory_source){.data = bytes->data, .size = bytes->size};
    const struct lahar_shard_source source = memory_source(memory);
    cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL), LAHAR_OK);
    return shard;
}

static bool may_hold(struct lahar_shard *shard, const lahar_uuid *uuid)
{
    bool may = false;
    cr_assert_eq(lahar_shard_may_hold_uuid(shard, uuid, &may, NULL), LAHAR_OK);
    return may;
}

static void expect_all(struct lahar_shard *shard, const struct maker *maker)
{
    for (uint32_t i = 0; i < maker->count; i++) {
        const lahar_uuid uuid = make_uuid((maker->first + i) * 2, maker->is_counter);
        cr_assert(may_hold(shard, &uuid), "uuid %u", i);
    }
}

/* How many of the absent pass. */
static uint32_t count_passing(struct lahar_shard *shard, const struct maker *maker)
{
    uint32_t passing = 0;
    for (uint32_t i = 0; i < ABSENT; i++) {
        const lahar_uuid uuid = make_uuid((maker->first + i) * 2 + 1, maker->is_counter);
        passing += may_hold(shard, &uuid);
    }
    return passing;
}

Test(uuid_filter, lets_all_uuids_of_the_shard_pass_and_few_others)
{
    static const struct maker makers[] = {
        {.first = 1, .count = 16},
        {.first = 50, .count = 1000},
        {.first = 7, .count = 1000, .is_counter = true},
        {.first = 9, .count = 30000},
        {.first = 3, .count = 30000, .is_counter = true},
        {.first = 2, .count = 60000},
        {.first = 5, .count = 100000},
        {.first = 1, .count = 100000, .is_counter = true},
    };
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        struct lahar_buffer bytes;
        struct memory_source memory;
        build(&makers[i], &bytes);
        struct lahar_shard *shard = open_shard(&memory, &bytes);
        cr_assert_leq(memory.fetched_bytes, OPEN_MAX);
        expect_all(shard, &makers[i]);
        /* Twelve bits a uuid let 1 in 200 pass at best, blocks of 512 bits a little more; of 16
         * uuids there is one block, which may be 2 in 5 full. */
        cr_expect_leq(count_passing(shard, &makers[i]), ABSENT * 15 / 1000, "%u uuids",
                      makers[i].count);
        cr_assert_eq(lahar_shard_verify(shard, NULL), LAHAR_OK);
        lahar_shard_close(shard);
        lahar_buffer_deinit(&bytes);
    }
}

/* What lies in the opening read is not read again; of larger filters one page is, once. */
Test(uuid_filter, answers_from_what_opening_has_read)
{
    static const struct maker small = {.first = 1, .count = 30000};
    static const struct maker large = {.first = 1, .count = 100000};
    struct lahar_buffer bytes;
    struct memory_source memory;
    build(&small, &bytes);
    struct lahar_shard *shard = open_shard(&memory, &bytes);
    cr_assert_eq(lahar_load_u32(bytes.data + bytes.size - 64 + FAR_AT), 0);
    uint64_t fetched = memory.fetched_bytes;
    (void)count_passing(shard, &small);
    cr_assert_eq(memory.fetched_bytes, fetched);
    lahar_shard_close(shard);
    lahar_buffer_deinit(&bytes);

    build(&large, &bytes);
    cr_assert_eq(lahar_load_u32(bytes.data + bytes.size - 64 + NEAR_AT) >> 3, 3 * PAGE / 64);
    cr_assert_gt(lahar_load_u32(bytes.data + bytes.size - 64 + FAR_AT) >> 3, 0);
    uint32_t reading = 0;
    for (uint32_t i = 0; i < 500; i++) {
        shard = open_shard(&memory, &bytes);
        cr_assert_leq(memory.fetched_bytes, OPEN_MAX);
        fetched = memory.fetched_bytes;
        const lahar_uuid uuid = make_uuid((uint64_t)i * 2 + 1, false);
        (void)may_hold(shard, &uuid);
        cr_assert_leq(memory.fetched_bytes - fetched, PAGE);
        reading += memory.fetched_bytes != fetched;
        lahar_shard_close(shard);
    }
    /* 3.9 bits a uuid: one in seven passes the near layer. */
    cr_assert_lt(reading, 500 / 4);
    lahar_buffer_deinit(&bytes);
}

/* Of many shards the pages are on their way together when the first of them is waited for. */
Test(uuid_filter, announces_exactly_the_page_that_it_will_read)
{
    static const struct maker large = {.first = 1, .count = 100000};
    struct lahar_buffer bytes;
    struct memory_source memory;
    build(&large, &bytes);
    uint32_t reading = 0;
    for (uint32_t i = 0; i < 500; i++) {
        struct lahar_shard *shard = open_shard(&memory, &bytes);
        const uint64_t fetches = memory.fetch_count;
        const lahar_uuid uuid = make_uuid(i, false); /* there and not there by turns */
        lahar_shard_announce_may_hold(shard, &uuid);
        cr_assert_eq(memory.fetch_count, fetches);
        const bool may = may_hold(shard, &uuid);
        cr_assert_eq(memory.announce_count, memory.fetch_count - fetches);
        cr_assert(memory.announce_count == 0 || memory.announced_at == memory.fetched_at);
        reading += memory.announce_count != 0;
        lahar_shard_announce_may_hold(shard, &uuid); /* the page is there */
        cr_assert_eq(memory.announce_count, memory.fetch_count - fetches);
        if (may) {
            uint32_t field = 0;
            struct lahar_docset set;
            const uint64_t before = memory.announce_count;
            const uint64_t fetched = memory.fetch_count;
            cr_assert(lahar_shard_find_field(shard, "uuid", 4, LAHAR_CLASS_UUID, &field));
            lahar_shard_announce_uuid(shard, field, &uuid);
            cr_assert_eq(memory.announce_count, before + 1);
            cr_assert_eq(memory.fetch_count, fetched);
            cr_assert_eq(lahar_docset_init(&set, large.count, &lahar_allocator_libc, NULL),
                         LAHAR_OK);
            cr_assert_eq(lahar_shard_uuid(shard, field, &uuid, &set, NULL), LAHAR_OK);
            lahar_docset_deinit(&set);
            lahar_shard_announce_uuid(shard, field, &uuid);
            cr_assert_eq(memory.announce_count, before + 1);
        }
        lahar_shard_close(shard);
    }
    cr_assert_geq(reading, 250); /* all that are there */
    lahar_buffer_deinit(&bytes);
}

Test(uuid_filter, counts_uuids_of_two_fields_once)
{
    struct maker maker = {.first = 1, .count = 5000};
    struct lahar_buffer bytes[2];
    build(&maker, &bytes[0]);
    maker.has_copy = true;
    build(&maker, &bytes[1]);
    for (size_t at = NEAR_AT; at <= FAR_AT; at += 4) {
        cr_assert_eq(lahar_load_u32(bytes[0].data + bytes[0].size - 64 + at),
                     lahar_load_u32(bytes[1].data + bytes[1].size - 64 + at));
    }
    lahar_buffer_deinit(&bytes[0]);
    lahar_buffer_deinit(&bytes[1]);
}

static lahar_status take(void *context, const void *data, size_t size, lahar_error *error)
{
    struct lahar_buffer *out = context;
    (void)error;
    lahar_buffer_put(out, data, size);
    return out->has_failed ? LAHAR_NO_MEMORY : LAHAR_OK;
}

Test(uuid_filter, is_made_anew_when_shards_are_merged)
{
    static const struct maker makers[] = {{.first = 1, .count = 40000},
                                          {.first = 40001, .count = 40000, .has_copy = true}};
    static const struct maker whole = {.first = 1, .count = 80000};
    struct lahar_buffer bytes[2];
    struct lahar_buffer merged;
    struct memory_source memories[3];
    struct lahar_shard *inputs[2];
    lahar_buffer_init(&merged, &lahar_allocator_libc);
    for (size_t i = 0; i < 2; i++) {
        build(&makers[i], &bytes[i]);
        inputs[i] = open_shard(&memories[i], &bytes[i]);
    }
    const struct lahar_shard_merge merge = {.inputs = inputs,
                                            .input_count = 2,
                                            .sink = {.write = take, .context = &merged},
                                            .allocator = &lahar_allocator_libc};
    cr_assert_eq(lahar_shard_merge(&merge, NULL), LAHAR_OK);
    struct lahar_shard *shard = open_shard(&memories[2], &merged);
    cr_assert_leq(memories[2].fetched_bytes, OPEN_MAX);
    expect_all(shard, &makers[0]);
    expect_all(shard, &makers[1]);
    cr_assert_leq(count_passing(shard, &(struct maker){.first = 80001, .count = 1}),
                  ABSENT * 15 / 1000);
    cr_assert_leq(count_passing(shard, &whole), ABSENT * 15 / 1000);
    cr_assert_eq(lahar_shard_verify(shard, NULL), LAHAR_OK);
    lahar_shard_close(shard);
    for (size_t i = 0; i < 2; i++) {
        lahar_shard_close(inputs[i]);
        lahar_buffer_deinit(&bytes[i]);
    }
    lahar_buffer_deinit(&merged);
}

/* Finds the uuid of document 7 in the shard. */
static lahar_status find(struct lahar_buffer *bytes, const struct maker *maker, uint64_t *count_out)
{
    struct memory_source memory = {.data = bytes->data, .size = bytes->size};
    const struct lahar_shard_source source = memory_source(&memory);
    struct lahar_shard *shard = NULL;
    struct lahar_docset set;
    uint32_t field = 0;
    const lahar_uuid uuid = make_uuid((maker->first + 7) * 2, maker->is_counter);
    lahar_status status = lahar_shard_open(&source, &lahar_allocator_libc, &shard, NULL);
    if (status != LAHAR_OK) {
        return status;
    }
    cr_assert_eq(lahar_docset_init(&set, maker->count, &lahar_allocator_libc, NULL), LAHAR_OK);
    cr_assert(lahar_shard_find_field(shard, "uuid", 4, LAHAR_CLASS_UUID, &field));
    status = lahar_shard_uuid(shard, field, &uuid, &set, NULL);
    *count_out = lahar_docset_count(&set);
    if (status == LAHAR_OK) {
        status = lahar_shard_verify(shard, NULL);
    }
    lahar_docset_deinit(&set);
    lahar_shard_close(shard);
    return status;
}

Test(uuid_filter, may_be_absent_and_is_refused_when_it_cannot_be_one)
{
    static const struct maker maker = {.first = 1, .count = 3000};
    static const struct {
        uint32_t near;
        uint32_t far;
        lahar_status expected;
    } cases[] = {
        {0, 0, LAHAR_OK},                           /* written before there were filters */
        {0, 5 << 3 | 1, LAHAR_CORRUPT},             /* a far layer alone */
        {7, 0, LAHAR_CORRUPT},                      /* probes of no blocks */
        {5 << 3, 0, LAHAR_CORRUPT},                 /* blocks without probes */
        {UINT32_MAX, 0, LAHAR_CORRUPT},             /* more than there are */
        {5 << 3 | 3, UINT32_MAX - 4, LAHAR_CORRUPT} /* likewise */
    };
    struct lahar_buffer bytes;
    build(&maker, &bytes);
    uint8_t *trailer = bytes.data + bytes.size - 64;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t count = 0;
        lahar_store_u32(trailer + NEAR_AT, cases[i].near);
        lahar_store_u32(trailer + FAR_AT, cases[i].far);
        reseal(bytes.data, bytes.size);
        cr_assert_eq(find(&bytes, &maker, &count), cases[i].expected, "case %zu", i);
        cr_assert_eq(count, cases[i].expected == LAHAR_OK ? 1 : 0);
    }
    lahar_buffer_deinit(&bytes);
}

/* Look-ups trust the filter, so what lacks a uuid has to be found by verifying. */
Test(uuid_filter, that_lacks_a_uuid_does_not_pass_verification)
{
    static const struct maker maker = {.first = 1, .count = 3000};
    struct lahar_buffer bytes;
    uint64_t count = 0;
    build(&maker, &bytes);
    cr_assert_eq(find(&bytes, &maker, &count), LAHAR_OK);
    const uint64_t body = lahar_load_u64(bytes.data + bytes.size - 64 + 16);
    memset(bytes.data + body - 640, 0, 640);
    reseal(bytes.data, bytes.size);
    cr_assert_eq(find(&bytes, &maker, &count), LAHAR_CORRUPT);
    lahar_buffer_deinit(&bytes);
}
