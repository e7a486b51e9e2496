/* UTF-8 as the Unicode standard defines it: no surrogates, no overlong forms,
 * nothing above U+10FFFF. */
#ifndef LAHAR_FORMAT_UTF8_H
#define LAHAR_FORMAT_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed sequence at p, 0 when there is none. p < end. */
size_t lahar_utf8_sequence(const uint8_t *p, const uint8_t *end);

/* Bytes at p that one U+FFFD stands for: the longest beginning of a sequence, at
 * least 1 (Unicode 15, section 3.9, "maximal subpart"). */
size_t lahar_utf8_bad_size(const uint8_t *p, const uint8_t *end);

/* Writes the 1 .. 4 bytes of code_point (below 0x110000) and returns their count. */
size_t lahar_utf8_encode(uint32_t code_point, uint8_t *out);

#endif
