/* Decoding by units; see transcode.h. */
#include "engine/follow/transcode.h"

#include <string.h>

static const uint32_t replacement = 0xfffd;

size_t lahar_encoding_unit(enum lahar_text_encoding encoding)
{
    switch (encoding) {
    case LAHAR_ENCODING_UTF16LE:
    case LAHAR_ENCODING_UTF16BE:
        return 2;
    case LAHAR_ENCODING_UTF32LE:
    case LAHAR_ENCODING_UTF32BE:
        return 4;
    default:
        return 1;
    }
}

enum lahar_text_encoding lahar_encoding_detect(const uint8_t *data, size_t size, bool is_last,
                                               size_t *mark_size_out)
{
    static const struct {
        uint8_t mark[4];
        uint8_t size;
        uint8_t encoding;
    } marks[] = {
        {{0xff, 0xfe, 0, 0}, 4, LAHAR_ENCODING_UTF32LE},
        {{0, 0, 0xfe, 0xff}, 4, LAHAR_ENCODING_UTF32BE},
        {{0xff, 0xfe}, 2, LAHAR_ENCODING_UTF16LE},
        {{0xfe, 0xff}, 2, LAHAR_ENCODING_UTF16BE},
    };
    bool may_be_mark = size == 0;
    *mark_size_out = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t shorter = size < marks[i].size ? size : marks[i].size;
        if (memcmp(data, marks[i].mark, shorter) != 0) {
            continue;
        }
        if (size >= marks[i].size && !may_be_mark) {
            *mark_size_out = marks[i].size;
            return (enum lahar_text_encoding)marks[i].encoding;
        }
        /* A longer mark that begins alike comes first in the table. */
        may_be_mark = may_be_mark || !is_last;
    }
    return may_be_mark ? LAHAR_ENCODING_UNKNOWN : LAHAR_ENCODING_BYTES;
}

static uint32_t unit_at(enum lahar_text_encoding encoding, const uint8_t *p)
{
    switch (encoding) {
    case LAHAR_ENCODING_UTF16LE:
        return (uint32_t)p[0] | (uint32_t)p[1] << 8;
    case LAHAR_ENCODING_UTF16BE:
        return (uint32_t)p[1] | (uint32_t)p[0] << 8;
    case LAHAR_ENCODING_UTF32LE:
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    case LAHAR_ENCODING_UTF32BE:
        return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
    default:
        return p[0];
    }
}

size_t lahar_encoding_line_size(enum lahar_text_encoding encoding, const uint8_t *data, size_t size)
{
    const size_t unit = lahar_encoding_unit(encoding);
    if (unit == 1) {
        const uint8_t *end = size == 0 ? NULL : memchr(data, '\n', size);
        return end == NULL ? 0 : (size_t)(end - data) + 1;
    }
    for (size_t at = 0; at + unit <= size; at += unit) {
        if (unit_at(encoding, data + at) == '\n') {
            return at + unit;
        }
    }
    return 0;
}

static void put_character(struct lahar_buffer *out, uint32_t c)
{
    uint8_t bytes[4];
    size_t size;
    if (c < 0x80) {
        bytes[0] = (uint8_t)c;
        size = 1;
    } else if (c < 0x800) {
        bytes[0] = (uint8_t)(0xc0 | c >> 6);
        size = 2;
    } else if (c < 0x10000) {
        bytes[0] = (uint8_t)(0xe0 | c >> 12);
        size = 3;
    } else {
        bytes[0] = (uint8_t)(0xf0 | c >> 18);
        size = 4;
    }
    for (size_t i = 1; i < size; i++) {
        bytes[i] = (uint8_t)(0x80 | (c >> (6 * (size - 1 - i)) & 0x3f));
    }
    lahar_buffer_put(out, bytes, size);
}

void lahar_encoding_put_utf8(enum lahar_text_encoding encoding, const uint8_t *data, size_t size,
                             struct lahar_buffer *out)
{
    const size_t unit = lahar_encoding_unit(encoding);
    size_t at = 0;
    for (; at + unit <= size; at += unit) {
        uint32_t c = unit_at(encoding, data + at);
        if (unit == 2 && c >= 0xd800 && c < 0xdc00 && at + 4 <= size) {
            const uint32_t low = unit_at(encoding, data + at + 2);
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                at += 2;
            }
        }
        put_character(out, (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? replacement : c);
    }
    if (at != size) {
        put_character(out, replacement);
    }
}
