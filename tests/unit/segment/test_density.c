/* What is kept out of compression: what deflate cannot shrink, judged beside deflate itself. */
#include <criterion/criterion.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/segment/block_reader.h"
#include "engine/segment/block_writer.h"
#include "engine/segment/density.h"
#include "sample_events.h"

enum {
    SIZE = 6000
};

static uint8_t data[SIZE];
static uint64_t state = 1;

static uint8_t random_byte(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint8_t)(state >> 56);
}

/* Bytes that deflate makes of so many. */
static size_t deflated_size(size_t size)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(1);
    uint8_t *out = malloc(2 * SIZE);
    cr_assert(compressor != NULL && out != NULL);
    const size_t compressed = libdeflate_deflate_compress(compressor, data, size, out, 2 * SIZE);
    free(out);
    libdeflate_free_compressor(compressor);
    return compressed;
}

Test(density, is_of_random_bytes_of_any_number)
{
    for (size_t size = 256; size <= SIZE; size += 97) {
        for (size_t i = 0; i < size; i++) {
            data[i] = random_byte();
        }
        cr_assert(lahar_density_is_dense(data, size), "%zu bytes", size);
    }
    cr_assert_not(lahar_density_is_dense(data, 255));
}

Test(density, is_not_of_anything_that_deflate_shrinks_by_a_tenth)
{
    for (uint32_t kind = 0; kind < 400; kind++) {
        const size_t size = 256 + (size_t)random_byte() * 22;
        const uint32_t letters = 1 + random_byte();
        const size_t period = 1 + random_byte() * (size_t)8;
        for (size_t i = 0; i < size; i++) {
            switch (kind % 5) {
            case 0: /* few different bytes */
                data[i] = (uint8_t)(random_byte() % letters);
                break;
            case 1: /* sequences that come again */
                data[i] = i < period ? random_byte() : data[i - period];
                break;
            case 2: /* a counter, a byte of which is each value once in 256 */
                data[i] = (uint8_t)(i * letters);
                break;
            case 3: /* a plane of high bytes behind one of low bytes */
                data[i] = i < size / 2 ? random_byte() : (uint8_t)(random_byte() % 4);
                break;
            default: /* some values more frequent than others */
                data[i] = random_byte() < letters / 2 ? 7 : random_byte();
            }
        }
        if (deflated_size(size) < size - size / 10) {
            cr_assert_not(lahar_density_is_dense(data, size), "kind %u, %zu bytes, period %zu",
                          kind % 5, size, period);
        }
        if (lahar_density_is_dense(data, size)) {
            cr_assert_geq(deflated_size(size), size - size / 10);
        }
    }
}

/* Blocks whose values turn from random to alike and back: read back whole, and small again. */
Test(density, follows_what_the_values_become)
{
    enum {
        ROWS = 400,
        VALUE_SIZE = 512
    };
    static uint8_t values[ROWS][VALUE_SIZE];
    struct samples samples;
    struct lahar_block_writer *writer = NULL;
    samples_create(&samples, 3);
    const struct lahar_stream *stream = lahar_schema_stream(samples.catalog, samples.stream);
    cr_assert_eq(lahar_block_writer_create(stream, 1, &lahar_allocator_libc, &writer, NULL),
                 LAHAR_OK);
    for (uint32_t number = 0; number < 5 * LAHAR_DENSITY_BLOCK_COUNT; number++) {
        const bool is_random = number / (2 * LAHAR_DENSITY_BLOCK_COUNT) % 2 == 0;
        for (uint32_t row = 0; row < ROWS; row++) {
            for (uint32_t i = 0; i < VALUE_SIZE; i++) {
                /* Deflate would save a byte in 27 of these, so that what is left alone shows. */
                values[row][i] =
                    is_random ? (uint8_t)(random_byte() * 13 / 16) : (uint8_t)(i % 7 + row % 3);
            }
            lahar_value value = {.field = samples_field(&samples, "bytes"), .type = LAHAR_BYTES};
            value.as.bytes = (lahar_bytes){values[row], VALUE_SIZE};
            const lahar_event event = samples_event(&samples, &value, 1);
            cr_assert_eq(lahar_block_writer_add(writer, &event, VALUE_SIZE + 32, NULL), LAHAR_OK);
        }
        struct lahar_buffer out;
        struct lahar_block_info info;
        struct lahar_block *block = NULL;
        struct lahar_arena arena;
        lahar_buffer_init(&out, &lahar_allocator_libc);
        lahar_arena_init(&arena, &lahar_allocator_libc, 0);
        cr_assert_eq(lahar_block_writer_finish(writer, &out, &info, NULL), LAHAR_OK);
        cr_assert_eq(
            lahar_block_create(out.data, out.size, stream, &lahar_allocator_libc, &block, NULL),
            LAHAR_OK);
        for (uint32_t row = 0; row < ROWS; row++) {
            lahar_event event;
            cr_assert_eq(lahar_block_read(block, row, &arena, &event, NULL), LAHAR_OK);
            cr_assert_eq(event.values[0].as.bytes.size, VALUE_SIZE);
            cr_assert(memcmp(event.values[0].as.bytes.data, values[row], VALUE_SIZE) == 0);
            lahar_arena_reset(&arena);
        }
        lahar_arena_deinit(&arena);
        lahar_block_release(block);
        /* The last block before the values turn has long been judged by its own kind. */
        if (number % (2 * LAHAR_DENSITY_BLOCK_COUNT) == 2 * LAHAR_DENSITY_BLOCK_COUNT - 1) {
            cr_assert(is_random ? info.size > ROWS * VALUE_SIZE
                                : info.size < ROWS * VALUE_SIZE / 20,
                      "block %u: %u bytes", number, info.size);
        }
    }
    lahar_block_writer_destroy(writer);
    samples_destroy(&samples);
}
