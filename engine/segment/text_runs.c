#include "engine/segment/text_runs.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bits of 16 bytes. */
struct classes {
    uint32_t digits;
    uint32_t words; /* letters, digits and '_' */
    uint32_t hyphens;
    uint32_t hexadecimals; /* digits and 'a' .. 'f' */
};

#ifdef __SSE2__

/* Bytes whose distance from first is below count, as a mask. */
static inline __m128i in_range(__m128i bytes, char first, char count)
{
    const __m128i distance = _mm_sub_epi8(bytes, _mm_set1_epi8(first));
    const __m128i last = _mm_set1_epi8((char)(count - 1));
    return _mm_cmpeq_epi8(_mm_min_epu8(distance, last), distance);
}

static inline struct classes classify(const uint8_t *text)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    const __m128i digits = in_range(bytes, '0', 10);
    const __m128i letters = in_range(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 26);
    const __m128i lines = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('_'));
    const __m128i words = _mm_or_si128(_mm_or_si128(digits, letters), lines);
    return (struct classes){
        .digits = (uint32_t)_mm_movemask_epi8(digits),
        .words = (uint32_t)_mm_movemask_epi8(words),
        .hyphens = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'))),
        .hexadecimals = (uint32_t)_mm_movemask_epi8(_mm_or_si128(digits, in_range(bytes, 'a', 6))),
    };
}

#else

static inline struct classes classify(const uint8_t *text)
{
    struct classes classes = {0};
    for (uint32_t i = 0; i < 16; i++) {
        const uint32_t is_digit = (uint8_t)(text[i] - '0') < 10;
        const uint32_t is_letter = (uint8_t)((text[i] | 0x20) - 'a') < 26;
        classes.digits |= is_digit << i;
        classes.words |= (is_digit | is_letter | (text[i] == '_')) << i;
        classes.hyphens |= (uint32_t)(text[i] == '-') << i;
        classes.hexadecimals |= (is_digit | ((uint8_t)(text[i] - 'a') < 6)) << i;
    }
    return classes;
}

#endif

/* The bits of bytes in the word that begins at start which lie in the text. */
static inline uint64_t bits_inside(size_t size, size_t start)
{
    const size_t left = size - start;
    return left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
}

void lahar_text_runs_find(const struct lahar_text_runs *runs, const uint8_t *text, size_t size)
{
    const size_t word_count = lahar_text_runs_words(size);
    uint64_t before = 0;          /* the last word's words */
    uint64_t pending_hyphens = 0; /* of the last word */
    for (size_t word = 0; word < word_count; word++) {
        uint64_t digits = 0;
        uint64_t words = 0;
        uint64_t hyphens = 0;
        for (size_t part = 0; part < 4 && word * 64 + part * 16 < size; part++) {
            const struct classes classes = classify(text + word * 64 + part * 16);
            digits |= (uint64_t)classes.digits << (part * 16);
            words |= (uint64_t)classes.words << (part * 16);
            hyphens |= (uint64_t)classes.hyphens << (part * 16);
        }
        if (size / 64 == word) {
            const uint64_t inside = bits_inside(size, word * 64);
            digits &= inside;
            words &= inside;
            hyphens &= inside;
        }
        /* An inner hyphen has a word's byte on both sides, perhaps in the neighbouring word. */
        if (word > 0) {
            runs->runs[word - 1] |= pending_hyphens & (words << 63);
        }
        const uint64_t open = hyphens & (words << 1 | before >> 63);
        runs->digits[word] = digits;
        runs->runs[word] = words | (open & words >> 1);
        pending_hyphens = open & (UINT64_C(1) << 63);
        before = words;
    }
}

void lahar_text_runs_find_numbers(const struct lahar_text_runs *runs, const uint8_t *text,
                                  size_t size)
{
    const size_t word_count = lahar_text_runs_words(size);
    for (size_t word = 0; word < word_count; word++) {
        const size_t start = word * 64;
        uint64_t digits = 0;
        uint64_t bits = 0;
        for (size_t part = 0; part < 4 && start + part * 16 < size; part++) {
            const struct classes classes = classify(text + start + part * 16);
            digits |= (uint64_t)classes.digits << (part * 16);
            bits |= (uint64_t)classes.hexadecimals << (part * 16);
        }
        bits &= start < size ? bits_inside(size, start) : 0;
        /* The first places of three in a row, and from these the three. A run that reaches across
         * words is taken for two. */
        bits &= bits >> 1 & bits >> 2;
        bits |= bits << 1 | bits << 2;
        runs->runs[word] = bits;
        runs->digits[word] = digits & bits;
    }
}
