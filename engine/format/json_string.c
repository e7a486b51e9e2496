/* Strings of JSON in both directions: resolving escapes, and writing. */
#include <string.h>

#include "engine/format/json.h"
#include "engine/format/scan.h"
#include "engine/format/utf8.h"

static const uint32_t replacement_character = 0xfffd;

static uint32_t hex_digit(uint8_t c)
{
    return c <= '9' ? (uint32_t)(c - '0') : (uint32_t)((c | 0x20) - 'a' + 10);
}

/* The four digits behind "\u"; the parser has checked them. */
static uint32_t hex_unit(const uint8_t *p)
{
    return hex_digit(p[0]) << 12 | hex_digit(p[1]) << 8 | hex_digit(p[2]) << 4 | hex_digit(p[3]);
}

/* The code point of the \u escape at *p, moved behind it and its partner. */
static uint32_t take_unit(const uint8_t **p, const uint8_t *end, bool *is_lossy_out)
{
    const uint32_t unit = hex_unit(*p + 2);
    *p += 6;
    if (unit < 0xd800 || unit > 0xdfff) {
        return unit;
    }
    if (unit < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        const uint32_t low = hex_unit(*p + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *p += 6;
            return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    *is_lossy_out = true;
    return replacement_character;
}

static uint8_t single_escape(uint8_t c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c; /* quote, backslash, slash */
    }
}

size_t lahar_json_unescape(const uint8_t *text, size_t size, uint8_t *out, bool *is_lossy_out)
{
    const uint8_t *p = text;
    const uint8_t *end = size == 0 ? text : text + size;
    uint8_t *q = out;
    *is_lossy_out = false;
    while (p < end) {
        const uint8_t *backslash = memchr(p, '\\', (size_t)(end - p));
        const size_t plain = (size_t)((backslash == NULL ? end : backslash) - p);
        memcpy(q, p, plain);
        q += plain;
        p += plain;
        if (p == end) {
            break;
        }
        if (p[1] == 'u') {
            q += lahar_utf8_encode(take_unit(&p, end, is_lossy_out), q);
        } else {
            *q++ = single_escape(p[1]);
            p += 2;
        }
    }
    return (size_t)(q - out);
}

/* The escape of a quote, backslash or control character. */
static void put_escape(struct lahar_buffer *buffer, uint8_t c)
{
    static const char digits[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    size_t size = 2;
    switch (c) {
    case '"':
    case '\\':
        escape[1] = (char)c;
        break;
    case '\b':
        escape[1] = 'b';
        break;
    case '\f':
        escape[1] = 'f';
        break;
    case '\n':
        escape[1] = 'n';
        break;
    case '\r':
        escape[1] = 'r';
        break;
    case '\t':
        escape[1] = 't';
        break;
    default:
        size = 6;
        break;
    }
    lahar_buffer_put(buffer, escape, size);
}

void lahar_json_put_string(struct lahar_buffer *buffer, lahar_bytes value, bool make_valid)
{
    const uint8_t *p = value.data;
    const uint8_t *end = value.size == 0 ? p : p + value.size;
    lahar_buffer_put_u8(buffer, '"');
    while (p < end) {
        const uint8_t *stop =
            make_valid ? lahar_scan_json_ascii(p, end) : lahar_scan_json_string(p, end);
        lahar_buffer_put(buffer, p, (size_t)(stop - p));
        p = stop;
        if (p == end) {
            break;
        }
        if (*p < 0x80) {
            put_escape(buffer, *p++);
            continue;
        }
        const size_t size = lahar_utf8_sequence(p, end);
        if (size != 0) {
            lahar_buffer_put(buffer, p, size);
            p += size;
        } else {
            uint8_t replacement[4];
            lahar_buffer_put(buffer, replacement,
                             lahar_utf8_encode(replacement_character, replacement));
            p += lahar_utf8_bad_size(p, end);
        }
    }
    lahar_buffer_put_u8(buffer, '"');
}
