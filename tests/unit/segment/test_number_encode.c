/* Runs of numbers: against bytes written by hand, and there and back. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/segment/hex_digits.h"
#include "engine/segment/number_encode.h"
#include "engine/segment/uuid_text.h"

static void check(const uint64_t *values, uint32_t count)
{
    struct lahar_buffer buffer;
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    lahar_numbers_encode(&buffer, values, count);
    uint64_t *back = malloc(count * sizeof *back);
    cr_assert(lahar_numbers_decode(buffer.data, buffer.size, back, count));
    cr_assert_arr_eq(back, values, count * sizeof *back);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = ~values[i];
        cr_assert(lahar_numbers_at(buffer.data, buffer.size, count, i, &value));
        cr_assert_eq(value, values[i]);
    }
    if (buffer.size > 0) {
        cr_assert_not(lahar_numbers_decode(buffer.data, buffer.size - 1, back, count));
    }
    free(back);
    lahar_buffer_deinit(&buffer);
}

Test(number_encode, divides_out_a_common_power_of_a_thousand)
{
    const uint64_t values[] = {5000, 6000, 9000, 8000};
    /* deltas, thousands, base 5000 as zigzag 10000, then 0 +1 +3 -1 */
    const uint8_t expected[] = {0, 1, 0x90, 0x4e, 0, 2, 6, 1};
    struct lahar_buffer buffer;
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    lahar_numbers_encode(&buffer, values, 4);
    /* One byte either way: then a fixed width from the smallest number is taken. */
    const uint8_t fixed[] = {1, 1, 0x90, 0x4e, 0, 1, 4, 3};
    cr_assert_eq(buffer.size, sizeof fixed);
    cr_assert(memcmp(buffer.data, fixed, sizeof fixed) == 0);
    uint64_t back[4];
    cr_assert(lahar_numbers_decode(expected, sizeof expected, back, 4));
    cr_assert_arr_eq(back, values, sizeof values);
    lahar_buffer_deinit(&buffer);
}

Test(number_encode, keeps_corners)
{
    const uint64_t corners[] = {0, UINT64_MAX, INT64_MAX,          (uint64_t)INT64_MIN,
                                1, 1000000000, (uint64_t)-1000000, UINT64_MAX - 1};
    check(corners, 8);
    for (uint32_t i = 0; i < 8; i++) {
        check(&corners[i], 1);
        for (uint32_t k = 0; k < 8; k++) {
            const uint64_t pair[] = {corners[i], corners[k]};
            check(pair, 2);
        }
    }
}

Test(number_encode, keeps_random_runs)
{
    uint64_t state = 7;
    uint64_t values[300];
    for (uint32_t round = 0; round < 2000; round++) {
        const uint32_t count = 1 + (uint32_t)(state >> 33) % 300;
        const uint64_t scale = round % 4 == 0 ? 1000000 : round % 4 == 1 ? 1000000000 : 1;
        const uint32_t shift = round % 64;
        for (uint32_t i = 0; i < count; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            values[i] = (state >> shift) * scale + (round % 3 == 0 ? i * 1000 : 0);
        }
        check(values, count);
    }
}

Test(number_encode, refuses_bytes_that_lie)
{
    uint64_t values[4];
    const uint8_t wide[] = {9, 0, 0, 1, 2, 3};
    const uint8_t scaled[] = {1, 4, 0, 1, 2, 3, 4};
    const uint8_t longer[] = {1, 0, 0, 1, 2, 3, 4, 5};
    cr_assert_not(lahar_numbers_decode(wide, sizeof wide, values, 4));
    cr_assert_not(lahar_numbers_decode(scaled, sizeof scaled, values, 4));
    cr_assert_not(lahar_numbers_decode(longer, sizeof longer, values, 4));
    cr_assert_not(lahar_numbers_decode(NULL, 0, values, 4));
}

Test(uuid_text, takes_the_canonical_form_only)
{
    uint8_t uuid[16];
    uint8_t text[LAHAR_UUID_TEXT_SIZE];
    const char *canonical = "00112233-4455-6677-8899-aabbccddeeff";
    cr_assert(lahar_uuid_text_parse((const uint8_t *)canonical, uuid));
    for (uint32_t i = 0; i < 16; i++) {
        cr_assert_eq(uuid[i], i * 0x11);
    }
    lahar_uuid_text_print(uuid, text);
    cr_assert(memcmp(text, canonical, sizeof text) == 0);
    /* Any other byte anywhere either gives another uuid that prints as it was read, or
     * is refused. */
    for (uint32_t at = 0; at < LAHAR_UUID_TEXT_SIZE; at++) {
        for (uint32_t v = 0; v < 256; v++) {
            uint8_t changed[LAHAR_UUID_TEXT_SIZE];
            memcpy(changed, canonical, sizeof changed);
            changed[at] = (uint8_t)v;
            if (lahar_uuid_text_parse(changed, uuid)) {
                lahar_uuid_text_print(uuid, text);
                cr_assert(memcmp(text, changed, sizeof text) == 0);
            }
        }
    }
    cr_assert_not(
        lahar_uuid_text_parse((const uint8_t *)"00112233-4455-6677-8899-AABBCCDDEEFF", uuid));
}

Test(hex_digits, are_lower_case_ones_and_nothing_else)
{
    for (size_t size = 1; size <= 21; size++) {
        uint8_t bytes[21];
        uint8_t digits[42];
        uint8_t back[21];
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (uint8_t)(size * 83 + i * 29);
        }
        lahar_hex_print(bytes, size, digits);
        for (size_t at = 0; at < 2 * size; at++) {
            const uint8_t was = digits[at];
            for (uint32_t v = 0; v < 256; v++) {
                digits[at] = (uint8_t)v;
                const bool is_digit = (v >= '0' && v <= '9') || (v >= 'a' && v <= 'f');
                cr_assert_eq(lahar_hex_parse(digits, size, back), is_digit, "%zu of %zu: %u", at,
                             size, v);
                if (is_digit) {
                    uint8_t printed[42];
                    lahar_hex_print(back, size, printed);
                    cr_assert(memcmp(printed, digits, 2 * size) == 0);
                }
            }
            digits[at] = was;
        }
    }
}

Test(number_encode, takes_planes_when_differences_begin_well_and_end_badly)
{
    enum {
        COUNT = 3000
    };
    static uint64_t values[COUNT];
    uint64_t state = 99;
    for (uint32_t turn = 0; turn < COUNT; turn += 37) {
        for (uint32_t i = 0; i < COUNT; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            values[i] = i < turn ? 70000 + i : 70000 + (state >> 48);
        }
        check(values, COUNT);
        struct lahar_buffer buffer;
        lahar_buffer_init(&buffer, &lahar_allocator_libc);
        lahar_numbers_encode(&buffer, values, COUNT);
        /* Never more than the planes of the widest value. */
        cr_assert_leq(buffer.size, 3 * COUNT + 8, "turn %u: %zu bytes", turn, buffer.size);
        lahar_buffer_deinit(&buffer);
    }
}
