/* Lower-case hexadecimal digits, two a byte, eight at a time in one register. */
#ifndef LAHAR_SEGMENT_HEX_DIGITS_H
#define LAHAR_SEGMENT_HEX_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/bytes.h"

#define LAHAR_HEX_ONES UINT64_C(0x0101010101010101)

/* Puts the four bytes that eight digits stand for into *bytes_out, the first lowest; not 0 when
 * any of them is no lower-case digit. digits: as loaded from memory. */
static inline uint64_t lahar_hex_parse_eight(uint64_t digits, uint32_t *bytes_out)
{
    /* Of 'a' .. 'f', 0x61 .. 0x66, bit 6 is set, and nine are added to the low half. */
    const uint64_t letters = digits >> 6 & LAHAR_HEX_ONES;
    const uint64_t values = (digits & 15 * LAHAR_HEX_ONES) + 9 * letters;
    const uint64_t printed = values + 0x30 * LAHAR_HEX_ONES + 0x27 * letters;
    /* Exactly letters stand for ten or more, and nothing for sixteen or more. */
    const uint64_t are_letters = (values + 6 * LAHAR_HEX_ONES) >> 4 & LAHAR_HEX_ONES;
    const uint64_t pairs = (values << 4 | values >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t fours = (pairs | pairs >> 8) & UINT64_C(0x0000ffff0000ffff);
    *bytes_out = (uint32_t)(fours | fours >> 16);
    return (digits ^ printed) | (letters ^ are_letters) | (values & 16 * LAHAR_HEX_ONES);
}

/* The digits of four bytes, the lowest first. */
static inline uint64_t lahar_hex_print_eight(uint32_t bytes)
{
    const uint64_t fours = (bytes | (uint64_t)bytes << 16) & UINT64_C(0x0000ffff0000ffff);
    const uint64_t pairs = (fours | fours << 8) & UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t values = (pairs >> 4 & UINT64_C(0x000f000f000f000f)) |
                            (pairs & UINT64_C(0x000f000f000f000f)) << 8;
    const uint64_t letters = (values + 6 * LAHAR_HEX_ONES) >> 4 & LAHAR_HEX_ONES;
    return values + 0x30 * LAHAR_HEX_ONES + 0x27 * letters;
}

/* Two digits a byte, size bytes. */
static inline void lahar_hex_print(const uint8_t *bytes, size_t size, uint8_t *to)
{
    size_t i = 0;
    for (; size - i >= 4; i += 4) {
        lahar_store_u64(to + 2 * i, lahar_hex_print_eight(lahar_load_u32(bytes + i)));
    }
    for (; i < size; i++) {
        const uint64_t digits = lahar_hex_print_eight(bytes[i]);
        to[2 * i] = (uint8_t)digits;
        to[2 * i + 1] = (uint8_t)(digits >> 8);
    }
}

/* size bytes from twice as many digits; false when one of those is none. */
static inline bool lahar_hex_parse(const uint8_t *digits, size_t size, uint8_t *to)
{
    uint64_t wrong = 0;
    uint32_t bytes = 0;
    size_t i = 0;
    for (; size - i >= 4; i += 4) {
        wrong |= lahar_hex_parse_eight(lahar_load_u64(digits + 2 * i), &bytes);
        lahar_store_u32(to + i, bytes);
    }
    for (; i < size; i++) {
        const uint64_t pair = 0x3030303030300000 | lahar_load_u16(digits + 2 * i);
        wrong |= lahar_hex_parse_eight(pair, &bytes);
        to[i] = (uint8_t)bytes;
    }
    return wrong == 0;
}

#endif
