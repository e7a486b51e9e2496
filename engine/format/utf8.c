/* UTF-8 sequences; see utf8.h. */
#include "engine/format/utf8.h"

#include <stdbool.h>

/* How many bytes a sequence with this first byte has, 0 when none begins so, and
 * the range of its second byte, which alone differs between first bytes. */
static size_t lead_info(uint8_t lead, uint8_t *low, uint8_t *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    if (lead < 0xe0) {
        return 2;
    }
    if (lead < 0xf0) {
        *low = lead == 0xe0 ? 0xa0 : 0x80;
        *high = lead == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    *low = lead == 0xf0 ? 0x90 : 0x80;
    *high = lead == 0xf4 ? 0x8f : 0xbf;
    return 4;
}

/* Bytes at p that begin a sequence; *is_whole_out: all of it is there. */
static size_t sequence_prefix(const uint8_t *p, const uint8_t *end, bool *is_whole_out)
{
    uint8_t low;
    uint8_t high;
    const size_t size = lead_info(*p, &low, &high);
    *is_whole_out = false;
    if (size == 0) {
        return 1;
    }
    for (size_t i = 1; i < size; i++) {
        if (p + i >= end || p[i] < low || p[i] > high) {
            return i;
        }
        low = 0x80;
        high = 0xbf;
    }
    *is_whole_out = true;
    return size;
}

size_t lahar_utf8_sequence(const uint8_t *p, const uint8_t *end)
{
    bool is_whole;
    const size_t size = sequence_prefix(p, end, &is_whole);
    return is_whole ? size : 0;
}

size_t lahar_utf8_bad_size(const uint8_t *p, const uint8_t *end)
{
    bool is_whole;
    return sequence_prefix(p, end, &is_whole);
}

size_t lahar_utf8_encode(uint32_t code_point, uint8_t *out)
{
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (uint8_t)(0xc0 | (code_point >> 6));
        out[1] = (uint8_t)(0x80 | (code_point & 0x3f));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (uint8_t)(0xe0 | (code_point >> 12));
        out[1] = (uint8_t)(0x80 | ((code_point >> 6) & 0x3f));
        out[2] = (uint8_t)(0x80 | (code_point & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | (code_point >> 18));
    out[1] = (uint8_t)(0x80 | ((code_point >> 12) & 0x3f));
    out[2] = (uint8_t)(0x80 | ((code_point >> 6) & 0x3f));
    out[3] = (uint8_t)(0x80 | (code_point & 0x3f));
    return 4;
}
