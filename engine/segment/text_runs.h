/* Which bytes of a text belong to runs of ASCII letters, digits, '_' and inner hyphens, and which
 * are digits: a bit a byte, so that a run is found by counting bits instead of looking at bytes. */
#ifndef LAHAR_SEGMENT_TEXT_RUNS_H
#define LAHAR_SEGMENT_TEXT_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lahar_text_runs {
    uint64_t *digits; /* 64 bytes of the text a word, and a word of zeros behind */
    uint64_t *runs;
};

/* Words that each of the arrays has for a text. */
static inline size_t lahar_text_runs_words(size_t size)
{
    return size / 64 + 2;
}

/* Fills both. The text can be read up to 15 bytes further than its size. */
void lahar_text_runs_find(const struct lahar_text_runs *runs, const uint8_t *text, size_t size);

/* The same for keywords, of which runs are those of lower-case hexadecimal digits, three at
 * least: numbers and hashes inside names and paths. */
void lahar_text_runs_find_numbers(const struct lahar_text_runs *runs, const uint8_t *text,
                                  size_t size);

/* The first bit from i on that is set, or the end of size bits. */
static inline uint32_t lahar_bits_next(const uint64_t *bits, uint32_t size, uint32_t i)
{
    uint32_t word = i / 64;
    uint64_t left = bits[word] >> (i % 64) << (i % 64);
    while (left == 0) {
        if (++word * 64 >= size) {
            return size;
        }
        left = bits[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(left);
}

/* The first bit from i on that is clear; the bits end with one. */
static inline uint32_t lahar_bits_next_clear(const uint64_t *bits, uint32_t i)
{
    uint32_t word = i / 64;
    uint64_t left = ~bits[word] >> (i % 64) << (i % 64);
    while (left == 0) {
        left = ~bits[++word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(left);
}

/* The place behind the last clear bit before i, at least limit. */
static inline uint32_t lahar_bits_start(const uint64_t *bits, uint32_t limit, uint32_t i)
{
    while (i > limit) {
        const uint32_t word = (i - 1) / 64;
        const uint32_t shift = 63 - (i - 1) % 64;
        const uint64_t clear = ~bits[word] << shift;
        if (clear != 0) {
            const uint32_t distance = (uint32_t)__builtin_clzll(clear);
            return i - distance > limit ? i - distance : limit;
        }
        i = word * 64;
    }
    return limit;
}

#endif
