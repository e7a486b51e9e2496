/* What it costs to have many shards open: bytes read and memory held. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "index/shard_cache.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

enum {
    SHARD_COUNT = 1000,
    DOCUMENTS = 30000,
    READ_MAX = 64 * 1024,   /* bytes to open one */
    HELD_MAX = 64 * 1024,   /* bytes of one that is open and was not asked */
    PAGES_OF_A_LOOK_UP = 8, /* of 16 KiB */
    CACHE_BYTES = 8 << 20   /* for the pages of all */
};

/* Sanitizers hold memory of their own for every piece. */
#if defined(__SANITIZE_ADDRESS__)
#define RESIDENT_IS_MEANINGFUL 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RESIDENT_IS_MEANINGFUL 0
#endif
#endif
#ifndef RESIDENT_IS_MEANINGFUL
#define RESIDENT_IS_MEANINGFUL 1
#endif

/* Resident memory of this process, in bytes. */
static uint64_t resident_bytes(void)
{
    unsigned long all = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%lu %lu", &all, &resident), 2);
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static lahar_uuid make_uuid(uint64_t number)
{
    lahar_uuid uuid;
    uint64_t random = number + 1;
    for (int i = 0; i < 16; i++) {
        uuid.bytes[i] = (uint8_t)random_next(&random);
    }
    return uuid;
}

static void build(struct lahar_buffer *out)
{
    struct lahar_shard_builder *builder = NULL;
    uint32_t name = 0;
    uint32_t uuids = 0;
    uint32_t size = 0;
    cr_assert_eq(lahar_shard_builder_create(&lahar_allocator_libc, &builder, NULL), LAHAR_OK);
    lahar_shard_builder_field(builder, "name", 4, LAHAR_CLASS_KEYWORD, &name, NULL);
    lahar_shard_builder_field(builder, "uuid", 4, LAHAR_CLASS_UUID, &uuids, NULL);
    lahar_shard_builder_field(builder, "size", 4, LAHAR_CLASS_NUMBER, &size, NULL);
    for (uint64_t i = 0; i < DOCUMENTS; i++) {
        char value[64];
        const int length = snprintf(value, sizeof value, "file-%016llx.dat",
                                    (unsigned long long)(i * UINT64_C(0x9e3779b97f4a7c15)));
        const lahar_uuid uuid = make_uuid(i);
        cr_assert_eq(lahar_shard_builder_document(builder, i + 1, (int64_t)i * 1000000, NULL),
                     LAHAR_OK);
        lahar_shard_builder_keyword(builder, name, value, (size_t)length, NULL);
        lahar_shard_builder_uuid(builder, uuids, &uuid, NULL);
        lahar_shard_builder_number(builder, size, i * i % 99991, NULL);
    }
    lahar_buffer_init(out, &lahar_allocator_libc);
    cr_assert_eq(lahar_shard_builder_finish(builder, out, NULL), LAHAR_OK);
    lahar_shard_builder_destroy(builder);
}

/* A thousand files would have the same bytes, so one stands for all: what counts is what is read
 * of each and what each holds. */
Test(shard_open, of_a_thousand_shards_reads_and_holds_little)
{
    static struct memory_source memories[SHARD_COUNT];
    static struct lahar_shard *shards[SHARD_COUNT];
    struct lahar_buffer bytes;
    struct lahar_shard_cache cache;
    build(&bytes);
    lahar_shard_cache_init(&cache, CACHE_BYTES);
    cr_assert_gt(bytes.size, 10 * READ_MAX, "a shard of %zu bytes shows nothing", bytes.size);
    const uint64_t before = resident_bytes();
    uint64_t held = 0;
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        memories[i] = (struct memory_source){.data = bytes.data, .size = bytes.size};
        struct lahar_shard_source source = memory_source(&memories[i]);
        source.cache = &cache;
        cr_assert_eq(lahar_shard_open(&source, &lahar_allocator_libc, &shards[i], NULL), LAHAR_OK);
        cr_assert_leq(memories[i].fetched_bytes, READ_MAX);
        held += lahar_shard_memory(shards[i]);
    }
    cr_assert_leq(held, (uint64_t)SHARD_COUNT * HELD_MAX);
    if (RESIDENT_IS_MEANINGFUL) {
        cr_assert_leq(resident_bytes() - before, (uint64_t)SHARD_COUNT * HELD_MAX);
    }
    struct lahar_docset set;
    uint32_t field = 0;
    cr_assert_eq(lahar_docset_init(&set, DOCUMENTS, &lahar_allocator_libc, NULL), LAHAR_OK);
    cr_assert(lahar_shard_find_field(shards[0], "uuid", 4, LAHAR_CLASS_UUID, &field));
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        const lahar_uuid uuid = make_uuid(i * 7 % DOCUMENTS);
        cr_assert_eq(lahar_shard_uuid(shards[i], field, &uuid, &set, NULL), LAHAR_OK);
        cr_assert_leq(memories[i].fetched_bytes, READ_MAX + PAGES_OF_A_LOOK_UP * 16384);
    }
    cr_assert_eq(lahar_docset_count(&set), SHARD_COUNT);
    cr_assert_leq(lahar_shard_cache_bytes(&cache), CACHE_BYTES);
    if (RESIDENT_IS_MEANINGFUL) {
        cr_assert_leq(resident_bytes() - before, (uint64_t)SHARD_COUNT * HELD_MAX + CACHE_BYTES);
        cr_assert_lt(resident_bytes() - before, SHARD_COUNT * bytes.size / 4);
    }
    lahar_docset_deinit(&set);
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        lahar_shard_close(shards[i]);
    }
    cr_assert_eq(lahar_shard_cache_bytes(&cache), 0);
    lahar_shard_cache_deinit(&cache);
    lahar_buffer_deinit(&bytes);
}
