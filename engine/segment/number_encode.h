/* A run of 64-bit numbers as bytes: deltas as varints, or fixed width in byte planes,
 * whichever is shorter, after a common power of ten has been divided out. */
#ifndef LAHAR_SEGMENT_NUMBER_ENCODE_H
#define LAHAR_SEGMENT_NUMBER_ENCODE_H

#include <stdint.h>

#include "io/base/buffer.h"

/* Appends: u8 width (0: deltas), u8 scale (exponent of 1000), u64 base as a zigzag
 * varint, then deltas (zigzag varints of (value - value before) / 1000^scale, the
 * first against base) or width planes of count bytes of (value - base) / 1000^scale, lowest
 * bytes first. Arithmetic is modulo 2^64. */
void lahar_numbers_encode(struct lahar_buffer *buffer, const uint64_t *values, uint32_t count);

/* Reads exactly size bytes into count values; false when they are damaged. */
bool lahar_numbers_decode(const uint8_t *data, size_t size, uint64_t *values, uint32_t count);
/* The same of one of them, index below count. */
bool lahar_numbers_at(const uint8_t *data, size_t size, uint32_t count, uint32_t index,
                      uint64_t *value_out);

#endif
