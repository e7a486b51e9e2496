/* Front-coding of sorted terms. The header byte of an entry holds in three bits how much more
 * or less of the previous term is shared than before, and in five the size of the suffix and
 * whether it is packed as hexadecimal digits, which most machine-made names end in. */
#include "index/dictionary.h"

#include <string.h>

#include "index/dictionary_entry.h"
#include "io/base/error.h"

enum {
    /* Header, shared size, size, suffix, flags, exact form, reference. */
    ENTRY_SIZE_MAX = 2 + 3 * LAHAR_VARINT_SIZE_MAX + 2 * (LAHAR_SHARD_TERM_SIZE_MAX + 1)
};

uint64_t lahar_dictionary_prefix(const uint8_t *term, size_t size, size_t depth)
{
    uint64_t prefix = 0;
    if (size >= depth + 8) {
        prefix = lahar_load_u64(term + depth);
    } else if (size > depth) {
        memcpy(&prefix, term + depth, size - depth);
    }
    return __builtin_bswap64(prefix);
}

void lahar_dictionary_writer_init(struct lahar_dictionary_writer *writer,
                                  struct lahar_buffer *blocks, struct lahar_buffer *top,
                                  size_t common)
{
    *writer = (struct lahar_dictionary_writer){.blocks = blocks, .top = top, .common = common};
}

static size_t shared_size(const struct lahar_term_item *a, const struct lahar_term_item *b)
{
    const size_t limit = a->folded_size < b->folded_size ? a->folded_size : b->folded_size;
    size_t shared = 0;
    for (; shared + 8 <= limit; shared += 8) {
        const uint64_t differing =
            lahar_load_u64(a->folded + shared) ^ lahar_load_u64(b->folded + shared);
        if (differing != 0) {
            return shared + (size_t)__builtin_ctzll(differing) / 8;
        }
    }
    while (shared < limit && a->folded[shared] == b->folded[shared]) {
        shared++;
    }
    return shared;
}

/* The value of a digit 0-9a-f plus one; 0: not a digit. */
static const uint8_t hex_values[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16};

static bool is_hex(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (hex_values[bytes[i]] == 0) {
            return false;
        }
    }
    return true;
}

static uint8_t *put_hex(uint8_t *to, const uint8_t *digits, size_t size)
{
    size_t i = 0;
    for (; i + 1 < size; i += 2) {
        *to++ = (uint8_t)((hex_values[digits[i]] - 1) | (hex_values[digits[i + 1]] - 1) << 4);
    }
    if (i < size) {
        *to++ = (uint8_t)(hex_values[digits[i]] - 1);
    }
    return to;
}

/* Header, shared size and suffix go to to; returns what is behind them. */
static uint8_t *put_suffix(struct lahar_dictionary_writer *writer,
                           const struct lahar_term_item *item, size_t shared, uint8_t *to)
{
    const uint8_t *suffix = item->folded + shared;
    const size_t size = item->folded_size - shared;
    const bool packs = size > 1 && is_hex(suffix, size);
    const size_t step = shared + LAHAR_ENTRY_SHARED_BIAS - writer->previous_shared;
    const size_t shared_code =
        step < LAHAR_ENTRY_SHARED_EXPLICIT ? step : (size_t)LAHAR_ENTRY_SHARED_EXPLICIT;
    size_t size_code = LAHAR_ENTRY_SUFFIX_EXPLICIT;
    if (packs && size <= LAHAR_ENTRY_HEX_MAX) {
        size_code = LAHAR_ENTRY_PLAIN_MAX + size;
    } else if (!packs && size <= LAHAR_ENTRY_PLAIN_MAX) {
        size_code = size;
    }
    *to++ = (uint8_t)(shared_code << LAHAR_ENTRY_SUFFIX_BITS | size_code);
    if (shared_code == LAHAR_ENTRY_SHARED_EXPLICIT) {
        *to++ = (uint8_t)shared;
    }
    if (size_code == LAHAR_ENTRY_SUFFIX_EXPLICIT) {
        to = lahar_put_varint(to, size << 1 | (packs ? 1 : 0));
    }
    writer->previous_shared = shared;
    if (packs) {
        return put_hex(to, suffix, size);
    }
    if (size != 0) {
        memcpy(to, suffix, size);
    }
    return to + size;
}

/* Whether exact differs from folded in nothing but the case of ASCII letters. */
static bool differs_in_case_only(const struct lahar_term_item *item)
{
    if (item->exact_size != item->folded_size) {
        return false;
    }
    for (size_t i = 0; i < item->exact_size; i++) {
        const uint8_t exact = item->exact[i];
        const bool is_upper = exact >= 'A' && exact <= 'Z';
        if ((is_upper ? exact | 0x20 : exact) != item->folded[i]) {
            return false;
        }
    }
    return true;
}

static uint8_t *put_case_bits(uint8_t *to, const struct lahar_term_item *item)
{
    for (size_t i = 0; i < item->exact_size; i += 8) {
        uint8_t bits = 0;
        for (size_t k = i; k < i + 8 && k < item->exact_size; k++) {
            if (item->exact[k] != item->folded[k]) {
                bits |= (uint8_t)(1U << (k - i));
            }
        }
        *to++ = bits;
    }
    return to;
}

/* Flags and exact form of a term that is not its own folded form or was cut. */
static uint8_t *put_flags(uint8_t *to, const struct lahar_term_item *item)
{
    const bool is_same =
        item->exact == item->folded || (item->exact_size == item->folded_size &&
                                        memcmp(item->exact, item->folded, item->exact_size) == 0);
    uint8_t flags = item->flags;
    if (!is_same) {
        flags |= differs_in_case_only(item) ? LAHAR_TERM_EXACT_CASE : LAHAR_TERM_EXACT_FULL;
    }
    if (flags == 0) {
        return to;
    }
    to = lahar_put_varint(to, (uint64_t)(LAHAR_SPECIAL_FLAGGED + flags) << 2 | 3);
    if ((flags & LAHAR_TERM_EXACT_CASE) != 0) {
        return put_case_bits(to, item);
    }
    if ((flags & LAHAR_TERM_EXACT_FULL) != 0) {
        *to++ = (uint8_t)item->exact_size;
        if (item->exact_size != 0) {
            memcpy(to, item->exact, item->exact_size);
        }
        to += item->exact_size;
    }
    return to;
}

void lahar_dictionary_put(struct lahar_dictionary_writer *writer,
                          const struct lahar_term_item *item, uint64_t reference)
{
    LAHAR_ASSERT(item->folded_size <= LAHAR_SHARD_TERM_SIZE_MAX);
    LAHAR_ASSERT(item->exact_size <= LAHAR_SHARD_TERM_SIZE_MAX);
    size_t shared = 0;
    struct lahar_buffer *blocks = writer->blocks;
    if (!lahar_buffer_reserve(blocks, ENTRY_SIZE_MAX)) {
        return;
    }
    if (writer->term_count % LAHAR_SHARD_BLOCK_TERMS == 0) {
        writer->previous_shared = 0;
        lahar_buffer_put_u64(
            writer->top, lahar_dictionary_prefix(item->folded, item->folded_size, writer->common));
        lahar_buffer_put_u64(writer->top, blocks->size);
    } else {
        shared = shared_size(&writer->previous, item);
    }
    uint8_t *to = put_suffix(writer, item, shared, blocks->data + blocks->size);
    to = lahar_put_varint(put_flags(to, item), reference);
    blocks->size = (size_t)(to - blocks->data);
    writer->previous = *item;
    writer->term_count++;
}
