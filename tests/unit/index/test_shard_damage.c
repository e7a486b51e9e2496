/* Shards that are damaged, cut short or fail to be read, and memory that runs out: an error
 * each time, never a crash, an endless loop or, where checksums hold the line, a wrong answer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_allocator.h"
#include "io/base/allocator.h"
#include "shard_fixture.h"

enum {
    DOCUMENTS = 300
};

/* A shard with every class of field and every kind of list. */
static lahar_status build(const lahar_allocator *allocator, struct lahar_buffer *out)
{
    struct lahar_shard_builder *builder = NULL;
    lahar_status status = lahar_shard_builder_create(allocator, &builder, NULL);
    uint64_t random = 4;
    uint32_t k = 0;
    uint32_t t = 0;
    uint32_t u = 0;
    uint32_t n = 0;
    uint32_t g = 0;
    if (status == LAHAR_OK) {
        status = lahar_shard_builder_field(builder, "g", 1, LAHAR_CLASS_NUMBER, &g, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_builder_field(builder, "key", 3, LAHAR_CLASS_KEYWORD, &k, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_builder_field(builder, "text", 4, LAHAR_CLASS_TEXT, &t, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_builder_field(builder, "uuid", 4, LAHAR_CLASS_UUID, &u, NULL);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_builder_field(builder, "n", 1, LAHAR_CLASS_NUMBER, &n, NULL);
    }
    for (uint64_t i = 0; i < DOCUMENTS && status == LAHAR_OK; i++) {
        char value[320];
        const uint64_t r = random_below(&random, 50);
        snprintf(value, sizeof value, "Value-%llu tok%llu %s", (unsigned long long)r,
                 (unsigned long long)random_below(&random, 2), i % 200 == 0 ? "" : "most");
        status = lahar_shard_builder_document(builder, i * (i % 7 + 1), (int64_t)(i * 1000), NULL);
        /* Ids must rise: products of a changing factor do not always. */
        if (status == LAHAR_INVALID) {
            status = LAHAR_OK;
            continue;
        }
        if (status == LAHAR_OK) {
            status = lahar_shard_builder_keyword(builder, k, value, 9, NULL);
        }
        if (status == LAHAR_OK) {
            status = lahar_shard_builder_text(builder, t, value, strlen(value), NULL);
        }
        memset(value, 'L', sizeof value);
        if (status == LAHAR_OK && i % 50 == 0) {
            status = lahar_shard_builder_keyword(builder, k, value, sizeof value, NULL);
        }
        lahar_uuid uuid = {{0}};
        memcpy(uuid.bytes, &r, sizeof r);
        if (status == LAHAR_OK) {
            status = lahar_shard_builder_uuid(builder, u, &uuid, NULL);
        }
        /* The same for all events of a uuid: a column of groups. */
        if (status == LAHAR_OK) {
            status = lahar_shard_builder_number(builder, g, r * 3, NULL);
        }
        if (status == LAHAR_OK && i % 3 == 0) {
            status = lahar_shard_builder_number(builder, n, r * 17, NULL);
        }
        if (status == LAHAR_OK && i % 90 == 0) {
            status = lahar_shard_builder_number(builder, n, r * 19, NULL);
        }
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_builder_finish(builder, out, NULL);
    }
    lahar_shard_builder_destroy(builder);
    return status;
}

static bool accept_all(void *context, const uint8_t *term, size_t size, bool is_cut)
{
    uint64_t *sum = context;
    for (size_t i = 0; i < size; i++) {
        *sum += term[i] * (is_cut ? 3U : 1U);
    }
    return true;
}

/* Uses everything of a shard; the status of the first failure. */
static lahar_status exercise(const uint8_t *data, size_t size, const lahar_allocator *allocator,
                             uint64_t fail_at, uint64_t *digest)
{
    struct memory_source memory = {.data = data, .size = size, .fail_at = fail_at};
    const struct lahar_shard_source source = memory_source(&memory);
    struct lahar_shard *shard = NULL;
    struct lahar_docset set;
    lahar_status status = lahar_shard_open(&source, allocator, &shard, NULL);
    if (status != LAHAR_OK) {
        return status;
    }
    const uint32_t documents = lahar_shard_document_count(shard);
    if (documents > 1000000) {
        /* Damage behind a valid seal can claim many; a set of them is the caller's business. */
        lahar_shard_close(shard);
        return LAHAR_CORRUPT;
    }
    status = lahar_docset_init(&set, documents, allocator, NULL);
    for (uint32_t i = 0; i < documents && status == LAHAR_OK; i += 13) {
        *digest += lahar_shard_id(shard, i) + lahar_shard_ordinal(shard, i * 3);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_time(shard, 5000, 200000, &set, NULL);
    }
    for (uint32_t f = 0; f < lahar_shard_field_count(shard) && status == LAHAR_OK; f++) {
        enum lahar_field_class field_class;
        bool exact = true;
        const lahar_uuid uuid = {{7}};
        lahar_shard_field(shard, f, &field_class);
        status = lahar_shard_present(shard, f, &set, NULL);
        if (status == LAHAR_OK && field_class == LAHAR_CLASS_KEYWORD) {
            status = lahar_shard_keyword(shard, f, "Value-7 t", 9, true, &set, &exact, NULL);
        }
        if (status == LAHAR_OK && field_class == LAHAR_CLASS_TEXT) {
            status = lahar_shard_token(shard, f, "most", 4, &set, &exact, NULL);
        }
        if (status == LAHAR_OK &&
            (field_class == LAHAR_CLASS_KEYWORD || field_class == LAHAR_CLASS_TEXT)) {
            status = lahar_shard_terms(shard, f, accept_all, digest, &set, &exact, NULL);
        }
        if (status == LAHAR_OK && field_class == LAHAR_CLASS_UUID) {
            status = lahar_shard_uuid(shard, f, &uuid, &set, NULL);
        }
        if (status == LAHAR_OK && field_class == LAHAR_CLASS_NUMBER) {
            status = lahar_shard_number(shard, f, 100, 500, &set, NULL);
        }
        *digest = *digest * 31 + lahar_docset_count(&set);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_verify(shard, NULL);
    }
    lahar_docset_deinit(&set);
    lahar_shard_close(shard);
    return status;
}

static struct lahar_buffer whole_shard(void)
{
    struct lahar_buffer bytes;
    lahar_buffer_init(&bytes, &lahar_allocator_libc);
    cr_assert_eq(build(&lahar_allocator_libc, &bytes), LAHAR_OK);
    return bytes;
}

Test(shard_damage, is_found_wherever_a_bit_flips)
{
    struct lahar_buffer bytes = whole_shard();
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        uint64_t digest = 0;
        bytes.data[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        const lahar_status status =
            exercise(bytes.data, bytes.size, &lahar_allocator_libc, 0, &digest);
        cr_assert_eq(status, LAHAR_CORRUPT, "bit %zu of byte %zu", bit % 8, bit / 8);
        bytes.data[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        /* Every bit of the first and last bytes, one of each byte between. */
        if (bit > 512 && bit + 2048 < bytes.size * 8) {
            bit += 8;
        }
    }
    lahar_buffer_deinit(&bytes);
}

/* With right checksums over wrong bytes the decoders stand alone. */
Test(shard_damage, behind_valid_checksums_is_survived)
{
    struct lahar_buffer bytes = whole_shard();
    uint8_t *copy = malloc(bytes.size);
    uint64_t random = 8;
    unsigned corrupt_count = 0;
    for (int round = 0; round < 30000; round++) {
        memcpy(copy, bytes.data, bytes.size);
        const uint64_t count = 1 + random_below(&random, 3);
        for (uint64_t i = 0; i < count; i++) {
            /* Half of the damage goes to the directory, which is smaller than the rest. */
            const uint64_t body = lahar_load_u64(copy + bytes.size - 48);
            const uint64_t at = random_below(&random, 2) == 0 || body >= bytes.size
                                    ? random_below(&random, bytes.size)
                                    : body + random_below(&random, bytes.size - body);
            copy[at] = random_below(&random, 4) == 0 ? 0xff : (uint8_t)random_next(&random);
        }
        reseal(copy, bytes.size);
        uint64_t digest = 0;
        corrupt_count += exercise(copy, bytes.size, &lahar_allocator_libc, 0, &digest) != LAHAR_OK;
    }
    cr_assert_gt(corrupt_count, 3000);
    free(copy);
    lahar_buffer_deinit(&bytes);
}

Test(shard_damage, by_cutting_is_found_at_every_length)
{
    struct lahar_buffer bytes = whole_shard();
    for (size_t size = 0; size < bytes.size; size += size < 200 ? 1 : 37) {
        uint64_t digest = 0;
        uint8_t *cut = malloc(size == 0 ? 1 : size);
        memcpy(cut, bytes.data, size);
        cr_assert_eq(exercise(cut, size, &lahar_allocator_libc, 0, &digest), LAHAR_CORRUPT);
        free(cut);
    }
    lahar_buffer_deinit(&bytes);
}

Test(shard_damage, of_another_format_is_told_apart)
{
    struct lahar_buffer bytes = whole_shard();
    uint64_t digest = 0;
    bytes.data[bytes.size - 64 + 8] = 2;
    reseal(bytes.data, bytes.size);
    cr_assert_eq(exercise(bytes.data, bytes.size, &lahar_allocator_libc, 0, &digest),
                 LAHAR_UNSUPPORTED);
    lahar_buffer_deinit(&bytes);
}

Test(shard_damage, passes_failures_of_the_source_on)
{
    struct lahar_buffer bytes = whole_shard();
    uint64_t expected = 0;
    cr_assert_eq(exercise(bytes.data, bytes.size, &lahar_allocator_libc, 0, &expected), LAHAR_OK);
    lahar_status status = LAHAR_IO;
    uint64_t fetch = 1;
    for (; status != LAHAR_OK; fetch++) {
        uint64_t digest = 0;
        status = exercise(bytes.data, bytes.size, &lahar_allocator_libc, fetch, &digest);
        cr_assert(status == LAHAR_IO || (status == LAHAR_OK && digest == expected));
    }
    cr_assert_gt(fetch, 2);
    lahar_buffer_deinit(&bytes);
}

Test(shard_damage, does_not_come_from_refused_memory_in_reading)
{
    struct lahar_buffer bytes = whole_shard();
    uint64_t expected = 0;
    cr_assert_eq(exercise(bytes.data, bytes.size, &lahar_allocator_libc, 0, &expected), LAHAR_OK);
    lahar_status status = LAHAR_NO_MEMORY;
    for (uint64_t fail_at = 0; status != LAHAR_OK; fail_at++) {
        struct failing_allocator failing;
        uint64_t digest = 0;
        failing_allocator_init(&failing, fail_at);
        status = exercise(bytes.data, bytes.size, &failing.allocator, 0, &digest);
        cr_assert_eq(failing.live_count, 0);
        cr_assert(status == LAHAR_NO_MEMORY || (status == LAHAR_OK && digest == expected));
    }
    lahar_buffer_deinit(&bytes);
}

Test(shard_damage, does_not_come_from_refused_memory_in_building)
{
    struct lahar_buffer bytes = whole_shard();
    for (int fails_on = 0; fails_on < 2; fails_on++) {
        for (uint64_t fail_at = 0;; fail_at++) {
            struct failing_allocator failing;
            struct lahar_buffer out;
            failing_allocator_init(&failing, fail_at);
            failing.fails_on = fails_on != 0;
            lahar_buffer_init(&out, &failing.allocator);
            const lahar_status status = build(&failing.allocator, &out);
            const uint64_t refused = failing.refused_count;
            if (status == LAHAR_OK) {
                /* A refusal that only costs sharing or a complement still gives a sound shard. */
                uint64_t digest = 0;
                cr_assert_eq(exercise(out.data, out.size, &lahar_allocator_libc, 0, &digest),
                             LAHAR_OK);
                cr_assert(refused > 0 ||
                          (out.size == bytes.size && memcmp(out.data, bytes.data, out.size) == 0));
            } else {
                cr_assert_eq(status, LAHAR_NO_MEMORY);
                cr_assert_eq(out.size, 0);
            }
            lahar_buffer_deinit(&out);
            cr_assert_eq(failing.live_count, 0);
            if (refused == 0) {
                break;
            }
        }
    }
    lahar_buffer_deinit(&bytes);
}
