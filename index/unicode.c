/* Characters: UTF-8 decoding, classes, case folding, escape sequences.
 *
 * Categories and folding come from utf8proc, whose Unicode version is part of what
 * LAHAR_TOKENIZER_VERSION stands for. No state. */
#include "index/unicode.h"

#include <stdbool.h>
#include <utf8proc.h>

const uint8_t lahar_ascii_word[256] = {
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   48,  49,  50,  51,  52,  53,  54,  55,  56,
    57,  0,   0,   0,   0,   0,   0,   0,   97,  98,  99,  100, 101, 102, 103, 104, 105, 106, 107,
    108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 0,   0,   0,   0,
    95,  0,   97,  98,  99,  100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113,
    114, 115, 116, 117, 118, 119, 120, 121, 122, 0,   0,   0,   0,   0,
};

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t lahar_character_decode(const uint8_t *p, size_t left, uint32_t *character_out)
{
    const uint8_t lead = p[0];
    if (lead < 0x80) {
        *character_out = lead;
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4 || left < 2 || !is_continuation(p[1])) {
        return 0;
    }
    if (lead < 0xe0) {
        *character_out = ((lead & 0x1fU) << 6) | (p[1] & 0x3fU);
        return 2;
    }
    if (left < 3 || !is_continuation(p[2])) {
        return 0;
    }
    if (lead < 0xf0) {
        const uint32_t c = ((lead & 0x0fU) << 12) | ((p[1] & 0x3fU) << 6) | (p[2] & 0x3fU);
        if (c < 0x800 || (c >= 0xd800 && c <= 0xdfff)) {
            return 0;
        }
        *character_out = c;
        return 3;
    }
    if (left < 4 || !is_continuation(p[3])) {
        return 0;
    }
    const uint32_t c =
        ((lead & 0x07U) << 18) | ((p[1] & 0x3fU) << 12) | ((p[2] & 0x3fU) << 6) | (p[3] & 0x3fU);
    if (c < 0x10000 || c > 0x10ffff) {
        return 0;
    }
    *character_out = c;
    return 4;
}

size_t lahar_character_before(const uint8_t *begin, const uint8_t *end, uint32_t *character_out)
{
    for (size_t size = 1; size <= LAHAR_CHARACTER_SIZE_MAX && size <= (size_t)(end - begin);
         size++) {
        if (!is_continuation(end[-(ptrdiff_t)size])) {
            return lahar_character_decode(end - size, size, character_out) == size ? size : 0;
        }
    }
    return 0;
}

size_t lahar_character_encode(uint32_t character, uint8_t *p)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)character, p);
}

/* Characters of property Ideographic, as closed ranges. */
static bool is_ideograph(uint32_t c)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
        {0x3006, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303a},   {0x3400, 0x4dbf},
        {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x16fe4, 0x16fe4}, {0x17000, 0x18cd5},
        {0x18d00, 0x18d08}, {0x1b170, 0x1b2fb}, {0x20000, 0x2fa1f}, {0x30000, 0x3134f},
    };
    if (c < ranges[0].first) {
        return false;
    }
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (c <= ranges[i].last) {
            return c >= ranges[i].first;
        }
    }
    return false;
}

enum lahar_char_class lahar_char_class_of(uint32_t character)
{
    if (character < 0x80) {
        return lahar_ascii_word[character] != 0 ? LAHAR_CHAR_ASCII : LAHAR_CHAR_SEPARATOR;
    }
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)character);
    /* Letters, marks and numbers are neighbours in utf8proc's numbering. */
    if (category < UTF8PROC_CATEGORY_LU || category > UTF8PROC_CATEGORY_NO) {
        return LAHAR_CHAR_SEPARATOR;
    }
    return is_ideograph(character) ? LAHAR_CHAR_IDEOGRAPH : LAHAR_CHAR_OTHER;
}

_Static_assert(UTF8PROC_CATEGORY_NO - UTF8PROC_CATEGORY_LU == 10,
               "letters, marks and numbers are the categories LU .. NO");

uint32_t lahar_fold_character(uint32_t character)
{
    utf8proc_int32_t folded[4];
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)character, folded, 4,
                                                           UTF8PROC_CASEFOLD, &boundary);
    /* A folding to several characters is of status F; where a simple one exists beside it
     * (status S), it is the lower-case mapping. */
    const uint32_t simple =
        count == 1 ? (uint32_t)folded[0] : (uint32_t)utf8proc_tolower((utf8proc_int32_t)character);
    return simple < 0x80 ? character : simple;
}

/* ESC [ parameters intermediates final. */
static size_t control_sequence_size(const uint8_t *p, size_t left)
{
    size_t i = 2;
    while (i < left && p[i] >= 0x30 && p[i] <= 0x3f) {
        i++;
    }
    while (i < left && p[i] >= 0x20 && p[i] <= 0x2f) {
        i++;
    }
    return i < left && p[i] >= 0x40 && p[i] <= 0x7e ? i + 1 : i;
}

/* ESC ] text BEL, or ESC ] text ESC \. Without an end on this line the
 * introducer stands alone, so that a stray one hides no text. */
static size_t control_string_size(const uint8_t *p, size_t left)
{
    for (size_t i = 2; i < left; i++) {
        if (p[i] == 0x07) {
            return i + 1;
        }
        if (p[i] == 0x1b) {
            return i + 1 < left && p[i + 1] == '\\' ? i + 2 : 2;
        }
        if (p[i] < 0x20) {
            return 2;
        }
    }
    return 2;
}

size_t lahar_escape_size(const uint8_t *p, size_t left)
{
    if (left < 2) {
        return 1;
    }
    switch (p[1]) {
    case '[':
        return control_sequence_size(p, left);
    case ']':
    case '^':
    case '_':
        return control_string_size(p, left);
    default:
        break;
    }
    size_t i = 1;
    while (i < left && p[i] >= 0x20 && p[i] <= 0x2f) {
        i++;
    }
    return i < left && p[i] >= 0x30 && p[i] <= 0x7e ? i + 1 : i;
}
