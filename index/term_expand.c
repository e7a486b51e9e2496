/* Expansion of front-coded terms; see term_expand.h.
 *
 * A scan for part of a term spends its time here, so that short pieces are copied eight bytes at a
 * time, hexadecimal digits are unpacked sixteen at a time, and references are stepped over. What is
 * read comes from disk: every size is checked before it is used. */
#include "index/term_expand.h"

#include <string.h>

#include "index/dictionary_entry.h"
#include "io/base/bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Sixteen bytes. */
__extension__ typedef unsigned __int128 head;

static inline head load_head(const uint8_t *p)
{
    return (head)lahar_load_u64(p + 8) << 64 | lahar_load_u64(p);
}

static inline void store_head(uint8_t *p, head term)
{
    lahar_store_u64(p, (uint64_t)term);
    lahar_store_u64(p + 8, (uint64_t)(term >> 64));
}

/* Digits of packed bytes, the lower half of a byte first; an odd size writes one more. */
static inline void unpack_digits(uint8_t *to, const uint8_t *packed, size_t size)
{
    static const uint8_t alphabet[16] = "0123456789abcdef";
    for (size_t i = 0; i < size; i += 2) {
        to[i] = alphabet[packed[i / 2] & 15];
        to[i + 1] = alphabet[packed[i / 2] >> 4];
    }
}

/* Sixteen of them. */
static inline head unpack_head(const uint8_t *packed)
{
#if defined(__SSE2__)
    const __m128i nibble = _mm_set1_epi8(15);
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)packed);
    const __m128i values = _mm_unpacklo_epi8(_mm_and_si128(bytes, nibble),
                                             _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble));
    const __m128i is_letter = _mm_cmpgt_epi8(values, _mm_set1_epi8(9));
    const __m128i digits = _mm_add_epi8(_mm_add_epi8(values, _mm_set1_epi8('0')),
                                        _mm_and_si128(is_letter, _mm_set1_epi8('a' - '0' - 10)));
    return (head)(uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(digits, digits)) << 64 |
           (uint64_t)_mm_cvtsi128_si64(digits);
#else
    uint8_t digits[16];
    unpack_digits(digits, packed, sizeof digits);
    return load_head(digits);
#endif
}

/* The byte behind a varint; NULL when it does not end. */
static inline const uint8_t *skip_varint(const uint8_t *p, const uint8_t *end)
{
    if (end - p >= 8) {
        const uint64_t last = ~lahar_load_u64(p) & UINT64_C(0x8080808080808080);
        if (last != 0) {
            return p + __builtin_ctzll(last) / 8 + 1;
        }
    }
    while (p < end) {
        if ((*p++ & 0x80) == 0) {
            return p;
        }
    }
    return NULL;
}

/* Steps over reference, flags and exact form of a term. NULL: malformed. */
static inline const uint8_t *skip_reference(const uint8_t *p, const uint8_t *end, size_t term_size,
                                            bool *is_cut)
{
    if (p == end) {
        return NULL;
    }
    const unsigned flags = (*p & 0x7fU) >> 2;
    if ((*p & 3) != 3 || (*p & 0x80) != 0 || flags < LAHAR_SPECIAL_FLAGGED) {
        return skip_varint(p, end);
    }
    p++;
    const unsigned known = flags - LAHAR_SPECIAL_FLAGGED;
    *is_cut = *is_cut || (known & (LAHAR_TERM_FOLDED_CUT | LAHAR_TERM_EXACT_CUT)) != 0;
    size_t exact_size = 0;
    if ((known & LAHAR_TERM_EXACT_CASE) != 0) {
        exact_size = (term_size + 7) / 8;
    } else if ((known & LAHAR_TERM_EXACT_FULL) != 0) {
        exact_size = p < end ? (size_t)*p + 1 : 1;
    }
    return exact_size > (size_t)(end - p) ? NULL : skip_varint(p + exact_size, end);
}

/* A size that is not in the header. */
static inline const uint8_t *read_size(const uint8_t *p, const uint8_t *end, size_t *size_out,
                                       bool *is_hex_out)
{
    if (p < end && *p < 0x80) {
        *is_hex_out = (*p & 1) != 0;
        *size_out = *p >> 1;
        return p + 1;
    }
    struct lahar_reader reader = lahar_reader_of(p, (size_t)(end - p));
    const uint64_t v = lahar_read_varint(&reader);
    *is_hex_out = (v & 1) != 0;
    *size_out = v >> 1 > LAHAR_SHARD_TERM_SIZE_MAX ? (size_t)LAHAR_SHARD_TERM_SIZE_MAX + 1
                                                   : (size_t)(v >> 1);
    return reader.failed ? NULL : reader.next;
}

bool lahar_terms_expand(struct lahar_expanded_terms *terms, const uint8_t *block, size_t size,
                        uint32_t count, size_t context)
{
    uint8_t *term = terms->term;
    const uint8_t *p = block;
    const uint8_t *end = block + size;
    uint8_t *to = terms->text;
    size_t term_size = 0;
    size_t shared = 0;
    terms->has_cut = false;
    for (uint32_t i = 0; i < count; i++) {
        if (end - p < 2) {
            return false;
        }
        const unsigned header = *p++;
        const unsigned shared_code = header >> LAHAR_ENTRY_SUFFIX_BITS;
        const unsigned size_code = header & LAHAR_ENTRY_SUFFIX_MASK;
        shared = shared_code == LAHAR_ENTRY_SHARED_EXPLICIT
                     ? *p++
                     : shared + shared_code - LAHAR_ENTRY_SHARED_BIAS;
        bool is_hex = size_code > LAHAR_ENTRY_PLAIN_MAX;
        size_t suffix_size = is_hex ? size_code - LAHAR_ENTRY_PLAIN_MAX : size_code;
        if (size_code == LAHAR_ENTRY_SUFFIX_EXPLICIT) {
            p = read_size(p, end, &suffix_size, &is_hex);
        }
        const size_t stored = is_hex ? (suffix_size + 1) / 2 : suffix_size;
        if (p == NULL || shared > term_size || shared + suffix_size > LAHAR_SHARD_TERM_SIZE_MAX ||
            stored > (size_t)(end - p)) {
            return false;
        }
        const size_t kept = context < shared ? context : shared;
        const uint8_t *from = term + (shared - kept);
        uint8_t *suffix = term + shared;
        if (kept > 16 || suffix_size > 32 || end - p < 32 || (is_hex && suffix_size > 16)) {
            memcpy(to, from, kept);
            if (is_hex) {
                unpack_digits(suffix, p, suffix_size);
            } else if (stored != 0) {
                memcpy(suffix, p, stored);
            }
            memcpy(to + kept, suffix, suffix_size);
        } else {
            const head front = load_head(from);
            const head back = is_hex ? unpack_head(p) : load_head(p);
            store_head(to, front);
            store_head(to + kept, back);
            store_head(suffix, back);
            if (suffix_size > 16) {
                const head rest = load_head(p + 16);
                store_head(to + kept + 16, rest);
                store_head(suffix + 16, rest);
            }
        }
        term_size = shared + suffix_size;
        to += kept + suffix_size;
        *to++ = 0;
        p = skip_reference(p + stored, end, term_size, &terms->has_cut);
        if (p == NULL) {
            return false;
        }
    }
    terms->size = (size_t)(to - terms->text);
    return true;
}

#if defined(__SSE2__)
/* Sixteen places at a time, by the first two bytes and the last. */
bool lahar_terms_hold(const struct lahar_expanded_terms *terms, lahar_bytes needle)
{
    const uint8_t *wanted = needle.data;
    const uint8_t *text = terms->text;
    if (needle.size > terms->size) {
        return false;
    }
    if (needle.size == 1) {
        return memchr(text, wanted[0], terms->size) != NULL;
    }
    const size_t places = terms->size - needle.size + 1;
    const __m128i first = _mm_set1_epi8((char)wanted[0]);
    const __m128i second = _mm_set1_epi8((char)wanted[1]);
    const __m128i last = _mm_set1_epi8((char)wanted[needle.size - 1]);
    /* The last step looks at up to 15 places beyond, in the slack of the text. */
    for (size_t at = 0; at < places; at += 16) {
        const uint8_t *p = text + at;
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
        const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(p + needle.size - 1));
        const __m128i equal =
            _mm_and_si128(_mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, second)),
                          _mm_cmpeq_epi8(c, last));
        unsigned found = (unsigned)_mm_movemask_epi8(equal);
        for (; found != 0; found &= found - 1) {
            const size_t place = at + (size_t)__builtin_ctz(found);
            if (place < places && memcmp(text + place, wanted, needle.size) == 0) {
                return true;
            }
        }
    }
    return false;
}
#else
bool lahar_terms_hold(const struct lahar_expanded_terms *terms, lahar_bytes needle)
{
    return memmem(terms->text, terms->size, needle.data, needle.size) != NULL;
}
#endif
