/* Varints and the bounds-checked reader against bytes made by hand. */
#include <criterion/criterion.h>

#include "io/base/bytes.h"

struct varint_case {
    uint64_t value;
    size_t size;
    uint8_t bytes[10];
};

static const struct varint_case varints[] = {
    {0, 1, {0x00}},
    {1, 1, {0x01}},
    {127, 1, {0x7f}},
    {128, 2, {0x80, 0x01}},
    {300, 2, {0xac, 0x02}},
    {16383, 2, {0xff, 0x7f}},
    {16384, 3, {0x80, 0x80, 0x01}},
    {UINT32_MAX, 5, {0xff, 0xff, 0xff, 0xff, 0x0f}},
    {UINT64_C(1) << 63, 10, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}},
    {UINT64_MAX, 10, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}},
};

Test(bytes, writes_and_reads_varints_as_leb128)
{
    for (size_t i = 0; i < sizeof varints / sizeof *varints; i++) {
        const struct varint_case *c = &varints[i];
        uint8_t out[LAHAR_VARINT_SIZE_MAX];
        const size_t size = (size_t)(lahar_put_varint(out, c->value) - out);
        cr_assert_eq(size, c->size);
        cr_assert_eq(lahar_varint_size(c->value), c->size);
        cr_assert_eq(memcmp(out, c->bytes, size), 0);
        struct lahar_reader reader = lahar_reader_of(c->bytes, c->size);
        cr_assert_eq(lahar_read_varint(&reader), c->value);
        cr_assert_not(reader.failed);
        cr_assert_eq(lahar_reader_left(&reader), 0);
    }
}

Test(bytes, refuses_a_varint_cut_short)
{
    for (size_t i = 0; i < sizeof varints / sizeof *varints; i++) {
        for (size_t size = 0; size < varints[i].size; size++) {
            struct lahar_reader reader = lahar_reader_of(varints[i].bytes, size);
            cr_assert_eq(lahar_read_varint(&reader), 0);
            cr_assert(reader.failed);
        }
    }
}

Test(bytes, refuses_varints_beyond_sixty_four_bits)
{
    static const uint8_t hostile[][11] = {
        /* Bit 64 set in the tenth byte. */
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00},
        {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x00},
        /* An eleventh byte. */
        {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct lahar_reader reader = lahar_reader_of(hostile[i], sizeof hostile[i]);
        cr_assert_eq(lahar_read_varint(&reader), 0);
        cr_assert(reader.failed);
        cr_assert_eq(lahar_read_u8(&reader), 0, "a failed reader gives zeros");
    }
}

Test(bytes, reads_little_endian_and_stops_at_the_end)
{
    static const uint8_t data[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                   0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10};
    struct lahar_reader reader = lahar_reader_of(data, sizeof data);
    cr_assert_eq(lahar_read_u8(&reader), 0x01);
    cr_assert_eq(lahar_read_u16(&reader), 0x0302);
    cr_assert_eq(lahar_read_u32(&reader), 0x07060504);
    cr_assert_eq(lahar_read_u64(&reader), UINT64_C(0x0f0e0d0c0b0a0908));
    cr_assert_eq(lahar_reader_left(&reader), 1);
    cr_assert_eq(lahar_read_u16(&reader), 0);
    cr_assert(reader.failed);
    cr_assert_eq(lahar_read_u8(&reader), 0, "nothing is read after a failure");
}

Test(bytes, refuses_a_length_beyond_the_address_space)
{
    static const uint8_t data[4] = {1, 2, 3, 4};
    struct lahar_reader reader = lahar_reader_of(data, sizeof data);
    cr_assert_null(lahar_read_bytes(&reader, UINT64_MAX));
    cr_assert(reader.failed);
    struct lahar_reader empty = lahar_reader_of(NULL, 0);
    (void)lahar_read_bytes(&empty, 0);
    cr_assert_not(empty.failed);
}

Test(bytes, folds_signs_by_zigzag)
{
    static const struct {
        int64_t plain;
        uint64_t folded;
    } cases[] = {
        {0, 0}, {-1, 1}, {1, 2}, {-2, 3}, {INT64_MAX, UINT64_MAX - 1}, {INT64_MIN, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(lahar_zigzag(cases[i].plain), cases[i].folded);
        cr_assert_eq(lahar_unzigzag(cases[i].folded), cases[i].plain);
    }
}
