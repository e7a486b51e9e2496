/* Lower-case hexadecimal digits, two a byte, eight or sixteen at a time in one register. */
#ifndef LAHAR_SEGMENT_HEX_DIGITS_H
#define LAHAR_SEGMENT_HEX_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "io/base/bytes.h"

/* One in each byte. */
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

/* The same of sixteen digits, given as two times eight, and of eight bytes; false when any of them
 * is no lower-case digit. */
static inline bool lahar_hex_parse_sixteen(uint64_t first, uint64_t second, uint64_t *bytes_out)
{
#ifdef __SSE2__
    const __m128i digits = _mm_set_epi64x((int64_t)second, (int64_t)first);
    const __m128i decimals = _mm_sub_epi8(digits, _mm_set1_epi8('0'));
    const __m128i letters = _mm_sub_epi8(digits, _mm_set1_epi8('a'));
    const __m128i are_decimals = _mm_cmpeq_epi8(_mm_min_epu8(decimals, _mm_set1_epi8(9)), decimals);
    const __m128i are_letters = _mm_cmpeq_epi8(_mm_min_epu8(letters, _mm_set1_epi8(5)), letters);
    const __m128i values =
        _mm_or_si128(_mm_and_si128(are_decimals, decimals),
                     _mm_and_si128(are_letters, _mm_add_epi8(letters, _mm_set1_epi8(10))));
    const __m128i pairs = _mm_and_si128(
        _mm_or_si128(_mm_slli_epi16(values, 4), _mm_srli_epi16(values, 8)), _mm_set1_epi16(0xff));
    *bytes_out = (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs));
    return _mm_movemask_epi8(_mm_or_si128(are_decimals, are_letters)) == 0xffff;
#else
    uint32_t low = 0;
    uint32_t high = 0;
    const uint64_t wrong =
        lahar_hex_parse_eight(first, &low) | lahar_hex_parse_eight(second, &high);
    *bytes_out = low | (uint64_t)high << 32;
    return wrong == 0;
#endif
}

/* The digits of four bytes, the lowest first. */
static inline uint64_t lahar_hex_print_eight(uint32_t bytes)
{
    const uint64_t fours = (bytes | (uint64_t)bytes << 16) & UINT64_C(0x0000ffff0000ffff);
    const uint64_t pairs = (fours | fours << 8) & UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t values =
        (pairs >> 4 & UINT64_C(0x000f000f000f000f)) | (pairs & UINT64_C(0x000f000f000f000f)) << 8;
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
    uint64_t eight = 0;
    uint32_t bytes = 0;
    size_t i = 0;
    for (; size - i >= 8; i += 8) {
        wrong |= !lahar_hex_parse_sixteen(lahar_load_u64(digits + 2 * i),
                                          lahar_load_u64(digits + 2 * i + 8), &eight);
        lahar_store_u64(to + i, eight);
    }
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
