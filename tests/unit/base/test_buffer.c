/* The growable buffer: what is put comes out as bytes, and a refusal of memory is remembered. */
#include <criterion/criterion.h>

#include "failing_allocator.h"
#include "io/base/buffer.h"

Test(buffer, lays_integers_out_in_little_endian)
{
    static const uint8_t expected[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04,
                                       0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 0x09,
                                       0x08, 0xac, 0x02, 0x03, 'a',  'b',  'c'};
    struct lahar_buffer buffer;
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    lahar_buffer_put_u8(&buffer, 0x01);
    lahar_buffer_put_u16(&buffer, 0x0203);
    lahar_buffer_put_u32(&buffer, 0x04050607);
    lahar_buffer_put_u64(&buffer, UINT64_C(0x08090a0b0c0d0e0f));
    lahar_buffer_put_varint(&buffer, 300);
    lahar_buffer_put_sized(&buffer, "abc", 3);
    cr_assert_eq(buffer.size, sizeof expected);
    cr_assert_eq(memcmp(buffer.data, expected, sizeof expected), 0);
    cr_assert_not(buffer.has_failed);
    lahar_buffer_deinit(&buffer);
}

Test(buffer, keeps_its_bytes_while_it_grows)
{
    struct lahar_buffer buffer;
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    for (uint32_t i = 0; i < 100000; i++) {
        lahar_buffer_put_u32(&buffer, i);
    }
    cr_assert_eq(buffer.size, 400000);
    for (uint32_t i = 0; i < 100000; i++) {
        cr_assert_eq(lahar_load_u32(buffer.data + 4 * (size_t)i), i);
    }
    lahar_buffer_deinit(&buffer);
}

Test(buffer, remembers_a_refusal_at_any_growth)
{
    uint64_t refusals = 0;
    for (uint64_t fail_at = 0; fail_at < 8; fail_at++) {
        struct failing_allocator memory;
        failing_allocator_init(&memory, fail_at);
        struct lahar_buffer buffer;
        lahar_buffer_init(&buffer, &memory.allocator);
        for (int i = 0; i < 500; i++) {
            lahar_buffer_put_sized(&buffer, "abcdef", 6);
        }
        cr_assert_eq(buffer.has_failed, memory.refused_count > 0);
        refusals += memory.refused_count;
        lahar_buffer_clear(&buffer);
        cr_assert_not(buffer.has_failed);
        lahar_buffer_deinit(&buffer);
        cr_assert_eq(memory.live_count, 0);
    }
    cr_assert_gt(refusals, 3);
}

Test(buffer, refuses_a_size_that_overflows)
{
    struct lahar_buffer buffer;
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    lahar_buffer_put_u8(&buffer, 1);
    cr_assert_not(lahar_buffer_reserve(&buffer, SIZE_MAX));
    cr_assert(buffer.has_failed);
    lahar_buffer_deinit(&buffer);
}
