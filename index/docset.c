/* Bit sets of document ordinals.
 *
 * One bit a document, 64 to a word; bits at and beyond the universe stay zero, so that
 * counting and scanning need no special last word. Not synchronised: one thread
 * writes a set at a time. Only init can fail. */
#include "index/docset.h"

#include <string.h>

#include "io/base/error.h"

static size_t word_count(const struct lahar_docset *set)
{
    return ((size_t)set->universe + 63) / 64;
}

/* Bits at and above bit % 64; below: the bits under bit % 64. */
static uint64_t mask_from(uint32_t bit)
{
    return UINT64_MAX << (bit % 64);
}

static uint64_t mask_below(uint32_t bit)
{
    return ~mask_from(bit);
}

static void clear_beyond_universe(struct lahar_docset *set)
{
    if (set->universe % 64 != 0) {
        set->words[set->universe / 64] &= mask_below(set->universe);
    }
}

lahar_status lahar_docset_init(struct lahar_docset *set, uint32_t universe,
                               const lahar_allocator *allocator, lahar_error *error)
{
    *set = (struct lahar_docset){.universe = universe, .allocator = allocator};
    const size_t count = word_count(set);
    set->words = lahar_allocate_zeroed(allocator, count == 0 ? 1 : count, sizeof *set->words);
    if (set->words == NULL) {
        set->universe = 0;
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a set of %u documents", universe);
    }
    return LAHAR_OK;
}

void lahar_docset_deinit(struct lahar_docset *set)
{
    if (set->words != NULL) {
        lahar_release(set->allocator, set->words);
    }
    set->words = NULL;
    set->universe = 0;
}

void lahar_docset_add(struct lahar_docset *set, uint32_t document)
{
    LAHAR_ASSERT(document < set->universe);
    set->words[document / 64] |= UINT64_C(1) << (document % 64);
}

void lahar_docset_add_range(struct lahar_docset *set, uint32_t first, uint32_t end)
{
    LAHAR_ASSERT(end <= set->universe);
    if (first >= end) {
        return;
    }
    const size_t first_word = first / 64;
    const size_t last_word = (end - 1) / 64;
    const uint64_t head = mask_from(first);
    const uint64_t tail = UINT64_MAX >> (63 - (end - 1) % 64);
    if (first_word == last_word) {
        set->words[first_word] |= head & tail;
        return;
    }
    set->words[first_word] |= head;
    for (size_t i = first_word + 1; i < last_word; i++) {
        set->words[i] = UINT64_MAX;
    }
    set->words[last_word] |= tail;
}

bool lahar_docset_has(const struct lahar_docset *set, uint32_t document)
{
    return document < set->universe && ((set->words[document / 64] >> (document % 64)) & 1) != 0;
}

void lahar_docset_fill(struct lahar_docset *set)
{
    lahar_docset_add_range(set, 0, set->universe);
}

void lahar_docset_clear(struct lahar_docset *set)
{
    memset(set->words, 0, word_count(set) * sizeof *set->words);
}

void lahar_docset_and(struct lahar_docset *set, const struct lahar_docset *other)
{
    LAHAR_ASSERT(set->universe == other->universe);
    const size_t count = word_count(set);
    for (size_t i = 0; i < count; i++) {
        set->words[i] &= other->words[i];
    }
}

void lahar_docset_or(struct lahar_docset *set, const struct lahar_docset *other)
{
    LAHAR_ASSERT(set->universe == other->universe);
    const size_t count = word_count(set);
    for (size_t i = 0; i < count; i++) {
        set->words[i] |= other->words[i];
    }
}

void lahar_docset_and_not(struct lahar_docset *set, const struct lahar_docset *other)
{
    LAHAR_ASSERT(set->universe == other->universe);
    const size_t count = word_count(set);
    for (size_t i = 0; i < count; i++) {
        set->words[i] &= ~other->words[i];
    }
}

void lahar_docset_invert(struct lahar_docset *set)
{
    const size_t count = word_count(set);
    for (size_t i = 0; i < count; i++) {
        set->words[i] = ~set->words[i];
    }
    clear_beyond_universe(set);
}

/* Population count by halves, quarters and bytes: needs no instruction that
 * the oldest x86-64 lacks, and compilers vectorise it. */
static uint64_t count_bits(uint64_t word)
{
    word -= (word >> 1) & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + ((word >> 2) & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (word * UINT64_C(0x0101010101010101)) >> 56;
}

#if defined(__x86_64__)
__attribute__((target("popcnt"))) static uint64_t count_words_popcnt(const uint64_t *words,
                                                                     size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += (uint64_t)__builtin_popcountll(words[i]);
    }
    return total;
}
#endif

uint64_t lahar_docset_count(const struct lahar_docset *set)
{
    const size_t count = word_count(set);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return count_words_popcnt(set->words, count);
    }
#endif
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += count_bits(set->words[i]);
    }
    return total;
}

uint32_t lahar_docset_next(const struct lahar_docset *set, uint32_t from)
{
    if (from >= set->universe) {
        return set->universe;
    }
    const size_t count = word_count(set);
    size_t i = from / 64;
    uint64_t word = set->words[i] & mask_from(from);
    while (word == 0) {
        if (++i == count) {
            return set->universe;
        }
        word = set->words[i];
    }
    return (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
}

uint32_t lahar_docset_previous(const struct lahar_docset *set, uint32_t from)
{
    if (set->universe == 0) {
        return UINT32_MAX;
    }
    if (from >= set->universe) {
        from = set->universe - 1;
    }
    size_t i = from / 64;
    uint64_t word = set->words[i] & (UINT64_MAX >> (63 - from % 64));
    while (word == 0) {
        if (i-- == 0) {
            return UINT32_MAX;
        }
        word = set->words[i];
    }
    return (uint32_t)(i * 64) + 63 - (uint32_t)__builtin_clzll(word);
}

uint64_t lahar_docset_count_both(const struct lahar_docset *set, const struct lahar_docset *other)
{
    const size_t word_count = ((size_t)set->universe + 63) / 64;
    uint64_t count = 0;
    LAHAR_ASSERT(set->universe == other->universe);
    for (size_t i = 0; i < word_count; i++) {
        count += (unsigned)__builtin_popcountll(set->words[i] & other->words[i]);
    }
    return count;
}
