/* CRC-32C against published vectors and a bit-by-bit division. */
#include <criterion/criterion.h>

#include "io/base/crc32c.h"

/* The definition: polynomial division, one bit at a time. */
static uint32_t divide(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? UINT32_C(0x82f63b78) : 0);
        }
    }
    return ~crc;
}

static void fill(uint8_t *data, size_t size)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = (uint8_t)(state >> 24);
    }
}

Test(crc32c, gives_the_vectors_of_rfc_3720)
{
    uint8_t data[32];
    cr_assert_eq(lahar_crc32c(0, "123456789", 9), 0xe3069283);
    cr_assert_eq(lahar_crc32c(0, "", 0), 0);
    memset(data, 0, sizeof data);
    cr_assert_eq(lahar_crc32c(0, data, sizeof data), 0x8a9136aa);
    memset(data, 0xff, sizeof data);
    cr_assert_eq(lahar_crc32c(0, data, sizeof data), 0x62a8ab43);
    for (uint8_t i = 0; i < sizeof data; i++) {
        data[i] = i;
    }
    cr_assert_eq(lahar_crc32c(0, data, sizeof data), 0x46dd794e);
    for (uint8_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(31 - i);
    }
    cr_assert_eq(lahar_crc32c(0, data, sizeof data), 0x113fdb5c);
}

Test(crc32c, agrees_with_the_definition_at_every_length_and_alignment)
{
    static uint8_t data[1600];
    fill(data, sizeof data);
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t size = 0; size < 1200; size++) {
            const uint32_t expected = divide(0xdeadbeef, data + shift, size);
            cr_assert_eq(lahar_crc32c(0xdeadbeef, data + shift, size), expected, "%zu at %zu", size,
                         shift);
            cr_assert_eq(lahar_crc32c_portable(0xdeadbeef, data + shift, size), expected,
                         "%zu at %zu by table", size, shift);
        }
    }
}

/* Long stretches are summed three at a time: around each multiple of them. */
Test(crc32c, agrees_with_the_definition_around_the_lengths_of_its_stretches)
{
    static uint8_t data[40000];
    fill(data, sizeof data);
    for (size_t base = 768; base < 20000; base += 768) {
        for (size_t size = base - 2; size <= base + 2; size++) {
            cr_assert_eq(lahar_crc32c(1, data + 3, size), divide(1, data + 3, size), "%zu", size);
        }
    }
    for (size_t size = 6144 - 9; size <= 6144 + 9; size++) {
        cr_assert_eq(lahar_crc32c(0, data, size), divide(0, data, size), "%zu", size);
        cr_assert_eq(lahar_crc32c(0, data, 2 * size), divide(0, data, 2 * size), "%zu", 2 * size);
    }
}

Test(crc32c, can_be_summed_in_pieces)
{
    static uint8_t data[10000];
    fill(data, sizeof data);
    const uint32_t whole = divide(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut += 37) {
        const uint32_t head = lahar_crc32c(0, data, cut);
        cr_assert_eq(lahar_crc32c(head, data + cut, sizeof data - cut), whole);
    }
}
