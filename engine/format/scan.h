/* Finding the next byte that matters to a tokenizer, 16 bytes at a time where the
 * machine has SSE2 (every x86-64), else byte by byte. Nothing is read at or beyond end. */
#ifndef LAHAR_FORMAT_SCAN_H
#define LAHAR_FORMAT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>

static inline __m128i lahar_scan_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline int lahar_scan_first(unsigned mask)
{
    return __builtin_ctz(mask);
}
#endif

/* The first quote, backslash or control character; end when there is none. */
static inline const uint8_t *lahar_scan_json_string(const uint8_t *p, const uint8_t *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i control = _mm_set1_epi8(0x1f);
    while (end - p >= 16) {
        const __m128i x = lahar_scan_load(p);
        const __m128i special =
            _mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash));
        const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, control), x);
        const unsigned mask = (unsigned)_mm_movemask_epi8(_mm_or_si128(special, low));
        if (mask != 0) {
            return p + lahar_scan_first(mask);
        }
        p += 16;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) {
        p++;
    }
    return p;
}

/* The first byte that is not plain ASCII inside a JSON string: quote, backslash,
 * control character or anything from 0x80 on; end when there is none. */
static inline const uint8_t *lahar_scan_json_ascii(const uint8_t *p, const uint8_t *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        const __m128i x = lahar_scan_load(p);
        const __m128i special =
            _mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash));
        /* Signed: what is below a space is a control character or has its top bit set. */
        const __m128i outside = _mm_cmplt_epi8(x, space);
        const unsigned mask = (unsigned)_mm_movemask_epi8(_mm_or_si128(special, outside));
        if (mask != 0) {
            return p + lahar_scan_first(mask);
        }
        p += 16;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20 && *p < 0x80) {
        p++;
    }
    return p;
}

/* The first of three bytes, which may be equal; end when there is none. */
static inline const uint8_t *lahar_scan_any(const uint8_t *p, const uint8_t *end, uint8_t a,
                                            uint8_t b, uint8_t c)
{
#if defined(__SSE2__)
    const __m128i va = _mm_set1_epi8((char)a);
    const __m128i vb = _mm_set1_epi8((char)b);
    const __m128i vc = _mm_set1_epi8((char)c);
    while (end - p >= 16) {
        const __m128i x = lahar_scan_load(p);
        const __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, va), _mm_cmpeq_epi8(x, vb)),
                                         _mm_cmpeq_epi8(x, vc));
        const unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask != 0) {
            return p + lahar_scan_first(mask);
        }
        p += 16;
    }
#endif
    while (p < end && *p != a && *p != b && *p != c) {
        p++;
    }
    return p;
}

/* The first byte that is not NUL; end when there is none. */
static inline const uint8_t *lahar_scan_nul_run(const uint8_t *p, const uint8_t *end)
{
#if defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    while (end - p >= 16) {
        const unsigned mask =
            (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(lahar_scan_load(p), zero)) ^ 0xffffu;
        if (mask != 0) {
            return p + lahar_scan_first(mask);
        }
        p += 16;
    }
#endif
    while (p < end && *p == 0) {
        p++;
    }
    return p;
}

static inline uint64_t lahar_count_newlines(const uint8_t *p, size_t size)
{
    const uint8_t *end = size == 0 ? p : p + size;
    uint64_t count = 0;
#if defined(__SSE2__)
    const __m128i newline = _mm_set1_epi8('\n');
    while (end - p >= 16) {
        /* Each byte counts its own column, at most 255 times. */
        __m128i columns = _mm_setzero_si128();
        for (int i = 0; i < 255 && end - p >= 16; i++, p += 16) {
            columns = _mm_sub_epi8(columns, _mm_cmpeq_epi8(lahar_scan_load(p), newline));
        }
        const __m128i sums = _mm_sad_epu8(columns, _mm_setzero_si128());
        count += (uint64_t)_mm_cvtsi128_si64(sums) +
                 (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
    }
#endif
    while (p < end) {
        count += *p++ == '\n';
    }
    return count;
}

#endif
