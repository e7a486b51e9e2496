/* Finding marks; see marks.h. The last, shorter block is looked at in a copy. */
#include "engine/format/marks.h"

#include <string.h>

#include "io/base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void mark_portable(const uint8_t *data, size_t block_count, const struct lahar_mark_set *set,
                          uint64_t *bits_out)
{
    uint8_t is_marked[256] = {0};
    memset(is_marked, 1, set->below);
    for (size_t i = 0; i < sizeof set->bytes; i++) {
        is_marked[set->bytes[i]] = 1;
    }
    for (size_t block = 0; block < block_count; block++, data += LAHAR_MARKS_BLOCK_SIZE) {
        uint64_t bits = 0;
        for (unsigned i = 0; i < LAHAR_MARKS_BLOCK_SIZE; i++) {
            bits |= (uint64_t)is_marked[data[i]] << i;
        }
        bits_out[block] = bits;
    }
}

#if defined(__x86_64__)
static void mark_sse2(const uint8_t *data, size_t block_count, const struct lahar_mark_set *set,
                      uint64_t *bits_out)
{
    const __m128i a = _mm_set1_epi8((char)set->bytes[0]);
    const __m128i b = _mm_set1_epi8((char)set->bytes[1]);
    const __m128i c = _mm_set1_epi8((char)set->bytes[2]);
    const __m128i d = _mm_set1_epi8((char)set->bytes[3]);
    const __m128i below = _mm_set1_epi8((char)set->below);
    const __m128i zero = _mm_setzero_si128();
    for (size_t block = 0; block < block_count; block++) {
        uint64_t bits = 0;
        for (unsigned i = 0; i < LAHAR_MARKS_BLOCK_SIZE; i += 16, data += 16) {
            const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)data);
            const __m128i ab = _mm_or_si128(_mm_cmpeq_epi8(x, a), _mm_cmpeq_epi8(x, b));
            const __m128i cd = _mm_or_si128(_mm_cmpeq_epi8(x, c), _mm_cmpeq_epi8(x, d));
            /* What is not below the limit stays when it is taken away. */
            const __m128i is_above = _mm_cmpeq_epi8(_mm_subs_epu8(below, x), zero);
            const unsigned found = (unsigned)_mm_movemask_epi8(_mm_or_si128(ab, cd)) |
                                   ((unsigned)_mm_movemask_epi8(is_above) ^ 0xffffu);
            bits |= (uint64_t)found << i;
        }
        bits_out[block] = bits;
    }
}

__attribute__((target("avx2"))) static void mark_avx2(const uint8_t *data, size_t block_count,
                                                      const struct lahar_mark_set *set,
                                                      uint64_t *bits_out)
{
    const __m256i a = _mm256_set1_epi8((char)set->bytes[0]);
    const __m256i b = _mm256_set1_epi8((char)set->bytes[1]);
    const __m256i c = _mm256_set1_epi8((char)set->bytes[2]);
    const __m256i d = _mm256_set1_epi8((char)set->bytes[3]);
    const __m256i below = _mm256_set1_epi8((char)set->below);
    const __m256i zero = _mm256_setzero_si256();
    for (size_t block = 0; block < block_count; block++) {
        uint64_t bits = 0;
        for (unsigned i = 0; i < LAHAR_MARKS_BLOCK_SIZE; i += 32, data += 32) {
            const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)data);
            const __m256i ab = _mm256_or_si256(_mm256_cmpeq_epi8(x, a), _mm256_cmpeq_epi8(x, b));
            const __m256i cd = _mm256_or_si256(_mm256_cmpeq_epi8(x, c), _mm256_cmpeq_epi8(x, d));
            const __m256i is_above = _mm256_cmpeq_epi8(_mm256_subs_epu8(below, x), zero);
            const uint32_t found = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(ab, cd)) |
                                   ~(uint32_t)_mm256_movemask_epi8(is_above);
            bits |= (uint64_t)found << i;
        }
        bits_out[block] = bits;
    }
}
#endif

static lahar_mark_function *function_of(enum lahar_simd level)
{
#if defined(__x86_64__)
    if ((level == LAHAR_SIMD_BEST || level == LAHAR_SIMD_AVX2) && __builtin_cpu_supports("avx2")) {
        return mark_avx2;
    }
    return level == LAHAR_SIMD_PORTABLE ? mark_portable : mark_sse2;
#else
    (void)level;
    return mark_portable;
#endif
}

void lahar_marks_init(struct lahar_marks *marks, const struct lahar_mark_set *set,
                      enum lahar_simd level)
{
    marks->mark = function_of(level);
    marks->set = *set;
    lahar_marks_forget(marks);
}

void lahar_marks_look(struct lahar_marks *marks, const uint8_t *data, const uint8_t *end)
{
    const size_t left = (size_t)(end - data);
    const size_t size = left < LAHAR_MARKS_WINDOW_SIZE ? left : LAHAR_MARKS_WINDOW_SIZE;
    const size_t block_count = size / LAHAR_MARKS_BLOCK_SIZE;
    const size_t rest = size % LAHAR_MARKS_BLOCK_SIZE;
    LAHAR_ASSERT(data < end);
    marks->start = data;
    marks->end = data + size;
    marks->mark(data, block_count, &marks->set, marks->bits);
    marks->bits[block_count] = 0;
    if (rest != 0) {
        uint8_t copy[LAHAR_MARKS_BLOCK_SIZE] = {0};
        memcpy(copy, data + block_count * LAHAR_MARKS_BLOCK_SIZE, rest);
        marks->mark(copy, 1, &marks->set, &marks->bits[block_count]);
        marks->bits[block_count] &= (UINT64_C(1) << rest) - 1;
    }
}
