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

lahar_status lahar_docset_init(struct lahar_docset *set, uint32_t universe,
                               const lahar_allocator *allocator, lahar_error *error)
{
    *set = (struct lahar_docset){.universe = universe, .end = universe, .allocator = allocator};
    const size_t count = word_count(set);
    set->words = lahar_allocate(allocator, (count == 0 ? 1 : count) * sizeof *set->words);
    if (set->words == NULL) {
        set->universe = 0;
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a set of %u documents", universe);
    }
    return LAHAR_OK;
}

lahar_status lahar_docset_init_like(struct lahar_docset *set, const struct lahar_docset *other,
                                    lahar_error *error)
{
    LAHAR_TRY(lahar_docset_init(set, other->universe, other->allocator, error));
    set->first = other->first;
    set->end = other->end;
    return LAHAR_OK;
}

void lahar_docset_deinit(struct lahar_docset *set)
{
    if (set->words != NULL) {
        lahar_release(set->allocator, set->words);
    }
    *set = (struct lahar_docset){.allocator = set->allocator};
}

static void touch_words(struct lahar_docset *set, uint32_t first, uint32_t end)
{
    uint64_t *words = set->words;
    if (first >= end) {
        return;
    }
    if (set->low_word == set->high_word) {
        set->low_word = first;
        set->high_word = first;
    }
    if (first < set->low_word) {
        memset(words + first, 0, (set->low_word - first) * sizeof *words);
        set->low_word = first;
    }
    if (end > set->high_word) {
        memset(words + set->high_word, 0, (end - set->high_word) * sizeof *words);
        set->high_word = end;
    }
}

void lahar_docset_touch(struct lahar_docset *set, uint32_t first, uint32_t end)
{
    LAHAR_ASSERT(end <= set->universe);
    if (first < end) {
        touch_words(set, first / 64, (end - 1) / 64 + 1);
    }
}

void lahar_docset_narrow(struct lahar_docset *set, uint32_t first, uint32_t end)
{
    LAHAR_ASSERT(set->low_word == set->high_word);
    first = first / 64 * 64;
    end = end < set->universe ? (uint32_t)(((uint64_t)end + 63) / 64 * 64) : set->universe;
    end = end < set->universe ? end : set->universe;
    set->first = first > set->first ? first : set->first;
    set->end = end < set->end ? end : set->end;
    set->first = set->first < set->end ? set->first : set->end / 64 * 64;
    set->end = set->first < set->end ? set->end : set->first;
}

void lahar_docset_clip(struct lahar_docset *set, uint32_t first, uint32_t end)
{
    const uint32_t low = first / 64;
    const uint32_t high = end == 0 ? 0 : (end - 1) / 64 + 1;
    if (first >= end || high <= set->low_word || low >= set->high_word) {
        set->high_word = set->low_word;
        return;
    }
    set->low_word = low > set->low_word ? low : set->low_word;
    set->high_word = high < set->high_word ? high : set->high_word;
    if (set->low_word == low) {
        set->words[low] &= mask_from(first);
    }
    if (set->high_word == high && end % 64 != 0) {
        set->words[high - 1] &= mask_below(end);
    }
}

void lahar_docset_add(struct lahar_docset *set, uint32_t document)
{
    LAHAR_ASSERT(document < set->universe);
    lahar_docset_put(set, document);
}

void lahar_docset_add_range(struct lahar_docset *set, uint32_t first, uint32_t end)
{
    LAHAR_ASSERT(end <= set->universe);
    if (first >= end) {
        return;
    }
    lahar_docset_touch(set, first, end);
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

static bool is_touched(const struct lahar_docset *set, size_t word)
{
    return word >= set->low_word && word < set->high_word;
}

bool lahar_docset_has(const struct lahar_docset *set, uint32_t document)
{
    return document < set->universe && is_touched(set, document / 64) &&
           ((set->words[document / 64] >> (document % 64)) & 1) != 0;
}

void lahar_docset_fill(struct lahar_docset *set)
{
    lahar_docset_add_range(set, set->first, set->end);
}

void lahar_docset_clear(struct lahar_docset *set)
{
    set->low_word = 0;
    set->high_word = 0;
}

/* The words that both have; first == end when there are none. */
static void common_words(const struct lahar_docset *set, const struct lahar_docset *other,
                         uint32_t *first_out, uint32_t *end_out)
{
    LAHAR_ASSERT(set->universe == other->universe);
    *first_out = set->low_word > other->low_word ? set->low_word : other->low_word;
    *end_out = set->high_word < other->high_word ? set->high_word : other->high_word;
    if (*first_out > *end_out) {
        *first_out = *end_out;
    }
}

void lahar_docset_and(struct lahar_docset *set, const struct lahar_docset *other)
{
    common_words(set, other, &set->low_word, &set->high_word);
    for (size_t i = set->low_word; i < set->high_word; i++) {
        set->words[i] &= other->words[i];
    }
}

void lahar_docset_or(struct lahar_docset *set, const struct lahar_docset *other)
{
    LAHAR_ASSERT(set->universe == other->universe);
    touch_words(set, other->low_word, other->high_word);
    for (size_t i = other->low_word; i < other->high_word; i++) {
        set->words[i] |= other->words[i];
    }
}

void lahar_docset_and_not(struct lahar_docset *set, const struct lahar_docset *other)
{
    uint32_t first = 0;
    uint32_t end = 0;
    common_words(set, other, &first, &end);
    for (size_t i = first; i < end; i++) {
        set->words[i] &= ~other->words[i];
    }
}

void lahar_docset_invert(struct lahar_docset *set)
{
    lahar_docset_touch(set, set->first, set->end);
    for (size_t i = set->first / 64; i < ((size_t)set->end + 63) / 64; i++) {
        set->words[i] = ~set->words[i];
    }
    if (set->end % 64 != 0) {
        set->words[set->end / 64] &= mask_below(set->end);
    }
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
    const size_t count = set->high_word - set->low_word;
    const uint64_t *words = set->words == NULL ? NULL : set->words + set->low_word;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return count_words_popcnt(words, count);
    }
#endif
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += count_bits(words[i]);
    }
    return total;
}

uint32_t lahar_docset_next(const struct lahar_docset *set, uint32_t from)
{
    if (from / 64 >= set->high_word || set->low_word == set->high_word) {
        return set->universe;
    }
    if (from / 64 < set->low_word) {
        from = set->low_word * 64;
    }
    size_t i = from / 64;
    uint64_t word = set->words[i] & mask_from(from);
    while (word == 0) {
        if (++i == set->high_word) {
            return set->universe;
        }
        word = set->words[i];
    }
    return (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
}

uint32_t lahar_docset_previous(const struct lahar_docset *set, uint32_t from)
{
    if (from / 64 < set->low_word || set->low_word == set->high_word) {
        return UINT32_MAX;
    }
    if (from / 64 >= set->high_word) {
        from = set->high_word * 64 - 1;
    }
    size_t i = from / 64;
    uint64_t word = set->words[i] & (UINT64_MAX >> (63 - from % 64));
    while (word == 0) {
        if (i-- == set->low_word) {
            return UINT32_MAX;
        }
        word = set->words[i];
    }
    return (uint32_t)(i * 64) + 63 - (uint32_t)__builtin_clzll(word);
}

uint64_t lahar_docset_count_both(const struct lahar_docset *set, const struct lahar_docset *other)
{
    uint32_t first = 0;
    uint32_t end = 0;
    uint64_t count = 0;
    common_words(set, other, &first, &end);
    for (size_t i = first; i < end; i++) {
        count += (unsigned)__builtin_popcountll(set->words[i] & other->words[i]);
    }
    return count;
}
