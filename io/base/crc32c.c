/* CRC-32C on the processor's own instruction where it has one.
 *
 * The crc32 instruction takes one operand a cycle but delivers its result three
 * cycles later, so three neighbouring stretches are summed at once. Their sums are
 * joined by carry-less multiplication: appending n bytes to a stretch multiplies
 * its sum by x^(8n), and crc32 of a 64-bit product with K adds a factor x^33,
 * hence K = x^(8n - 33) modulo the polynomial. Other processors go by table,
 * eight bytes a step. No state; any thread. */
#include "io/base/crc32c.h"

#include "io/base/bytes.h"
#include "io/base/crc32c_table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* One byte at a time, over an already inverted sum. */
static uint32_t step_bytes(uint32_t crc, const uint8_t *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        crc = (crc >> 8) ^ crc32c_table[0][(crc ^ p[i]) & 0xff];
    }
    return crc;
}

uint32_t lahar_crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        const uint32_t low = lahar_load_u32(p) ^ crc;
        const uint32_t high = lahar_load_u32(p + 4);
        crc = crc32c_table[7][low & 0xff] ^ crc32c_table[6][(low >> 8) & 0xff] ^
              crc32c_table[5][(low >> 16) & 0xff] ^ crc32c_table[4][low >> 24] ^
              crc32c_table[3][high & 0xff] ^ crc32c_table[2][(high >> 8) & 0xff] ^
              crc32c_table[1][(high >> 16) & 0xff] ^ crc32c_table[0][high >> 24];
    }
    return ~step_bytes(crc, p, size);
}

#if defined(__x86_64__)

/* Bytes of one of the three stretches. Larger amortises the joining better;
 * the smaller ones take what the larger leave. */
enum {
    LARGE_STRETCH = 2048,
    SMALL_STRETCH = 256,
    TINY_STRETCH = 64 /* a row of some hundred bytes is summed by these */
};

/* x^(8n - 33) modulo the polynomial, reflected, for n of one and two stretches. */
static const uint64_t large_shift_one = 0xa51b6135;
static const uint64_t large_shift_two = 0x82f89c77;
static const uint64_t small_shift_one = 0xb9e02b86;
static const uint64_t small_shift_two = 0xdd7e3b0c;
static const uint64_t tiny_shift_one = 0x9e4addf8;
static const uint64_t tiny_shift_two = 0x0d3b6092;

__attribute__((target("sse4.2,pclmul"))) static uint64_t multiply(uint64_t a, uint64_t b)
{
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a), _mm_cvtsi64_si128((long long)b), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Sums three stretches of size bytes, a multiple of 8, that follow each other at p. */
__attribute__((target("sse4.2,pclmul"))) static inline uint64_t
step_stretches(uint64_t crc, const uint8_t *p, size_t size, uint64_t shift_one, uint64_t shift_two)
{
    uint64_t first = crc;
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < size; i += 8) {
        first = _mm_crc32_u64(first, lahar_load_u64(p + i));
        second = _mm_crc32_u64(second, lahar_load_u64(p + size + i));
        third = _mm_crc32_u64(third, lahar_load_u64(p + 2 * size + i));
    }
    const uint64_t joined = multiply(first, shift_two) ^ multiply(second, shift_one);
    return _mm_crc32_u64(0, joined) ^ third;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc32c_sse42(uint32_t crc,
                                                                      const void *data, size_t size)
{
    const uint8_t *p = data;
    uint64_t sum = (uint32_t)~crc;
    for (; size >= 3 * LARGE_STRETCH; size -= 3 * LARGE_STRETCH, p += 3 * LARGE_STRETCH) {
        sum = step_stretches(sum, p, LARGE_STRETCH, large_shift_one, large_shift_two);
    }
    for (; size >= 3 * SMALL_STRETCH; size -= 3 * SMALL_STRETCH, p += 3 * SMALL_STRETCH) {
        sum = step_stretches(sum, p, SMALL_STRETCH, small_shift_one, small_shift_two);
    }
    for (; size >= 3 * TINY_STRETCH; size -= 3 * TINY_STRETCH, p += 3 * TINY_STRETCH) {
        sum = step_stretches(sum, p, TINY_STRETCH, tiny_shift_one, tiny_shift_two);
    }
    for (; size >= 8; size -= 8, p += 8) {
        sum = _mm_crc32_u64(sum, lahar_load_u64(p));
    }
    uint32_t rest = (uint32_t)sum;
    for (; size > 0; size--, p++) {
        rest = _mm_crc32_u8(rest, *p);
    }
    return ~rest;
}

#endif

uint32_t lahar_crc32c(uint32_t crc, const void *data, size_t size)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
        return crc32c_sse42(crc, data, size);
    }
#endif
    return lahar_crc32c_portable(crc, data, size);
}
