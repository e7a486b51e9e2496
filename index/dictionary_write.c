/* Front-coding of sorted terms. The header byte of an entry holds in three bits how much more
 * or less of the previous term is shared than before, and in five the size of the suffix and
 * whether it is packed as hexadecimal digits, which most machine-made names end in. */
#include "index/dictionary.h"

#include <string.h>

#include "index/dictionary_entry.h"
#include "io/base/error.h"

uint64_t lahar_dictionary_prefix(const uint8_t *term, size_t size, size_t depth)
{
    uint64_t prefix = 0;
    if (size > depth) {
        memcpy(&prefix, term + depth, size - depth < 8 ? size - depth : 8);
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
    while (shared < limit && a->folded[shared] == b->folded[shared]) {
        shared++;
    }
    return shared;
}

/* The value of a digit 0-9a-f, else 16. */
static uint8_t hex_value(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') {
        return (uint8_t)(byte - '0');
    }
    return byte >= 'a' && byte <= 'f' ? (uint8_t)(byte - 'a' + 10) : 16;
}

static bool is_hex(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (hex_value(bytes[i]) > 15) {
            return false;
        }
    }
    return true;
}

static void put_hex(struct lahar_buffer *out, const uint8_t *digits, size_t size)
{
    for (size_t i = 0; i < size; i += 2) {
        const unsigned high = i + 1 < size ? hex_value(digits[i + 1]) : 0U;
        lahar_buffer_put_u8(out, (uint8_t)(hex_value(digits[i]) | high << 4));
    }
}

static void put_suffix(struct lahar_dictionary_writer *writer, const struct lahar_term_item *item,
                       size_t shared)
{
    struct lahar_buffer *out = writer->blocks;
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
    lahar_buffer_put_u8(out, (uint8_t)(shared_code << LAHAR_ENTRY_SUFFIX_BITS | size_code));
    if (shared_code == LAHAR_ENTRY_SHARED_EXPLICIT) {
        lahar_buffer_put_u8(out, (uint8_t)shared);
    }
    if (size_code == LAHAR_ENTRY_SUFFIX_EXPLICIT) {
        lahar_buffer_put_varint(out, size << 1 | (packs ? 1 : 0));
    }
    if (packs) {
        put_hex(out, suffix, size);
    } else {
        lahar_buffer_put(out, suffix, size);
    }
    writer->previous_shared = shared;
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

static void put_case_bits(struct lahar_buffer *out, const struct lahar_term_item *item)
{
    for (size_t i = 0; i < item->exact_size; i += 8) {
        uint8_t bits = 0;
        for (size_t k = i; k < i + 8 && k < item->exact_size; k++) {
            if (item->exact[k] != item->folded[k]) {
                bits |= (uint8_t)(1U << (k - i));
            }
        }
        lahar_buffer_put_u8(out, bits);
    }
}

/* Flags and exact form of a term that is not its own folded form or was cut. */
static void put_flags(struct lahar_buffer *out, const struct lahar_term_item *item)
{
    const bool is_same = item->exact_size == item->folded_size &&
                         memcmp(item->exact, item->folded, item->exact_size) == 0;
    uint8_t flags = item->flags;
    if (!is_same) {
        flags |= differs_in_case_only(item) ? LAHAR_TERM_EXACT_CASE : LAHAR_TERM_EXACT_FULL;
    }
    if (flags == 0) {
        return;
    }
    lahar_buffer_put_varint(out, (uint64_t)(LAHAR_SPECIAL_FLAGGED + flags) << 2 | 3);
    if ((flags & LAHAR_TERM_EXACT_CASE) != 0) {
        put_case_bits(out, item);
    } else if ((flags & LAHAR_TERM_EXACT_FULL) != 0) {
        lahar_buffer_put_u8(out, (uint8_t)item->exact_size);
        lahar_buffer_put(out, item->exact, item->exact_size);
    }
}

void lahar_dictionary_put(struct lahar_dictionary_writer *writer,
                          const struct lahar_term_item *item, uint64_t reference)
{
    LAHAR_ASSERT(item->folded_size <= LAHAR_SHARD_TERM_SIZE_MAX);
    LAHAR_ASSERT(item->exact_size <= LAHAR_SHARD_TERM_SIZE_MAX);
    size_t shared = 0;
    if (writer->term_count % LAHAR_SHARD_BLOCK_TERMS == 0) {
        writer->previous_shared = 0;
        lahar_buffer_put_u64(
            writer->top, lahar_dictionary_prefix(item->folded, item->folded_size, writer->common));
        lahar_buffer_put_u64(writer->top, writer->blocks->size);
    } else {
        shared = shared_size(&writer->previous, item);
    }
    put_suffix(writer, item, shared);
    put_flags(writer->blocks, item);
    lahar_buffer_put_varint(writer->blocks, reference);
    writer->previous = *item;
    writer->term_count++;
}
