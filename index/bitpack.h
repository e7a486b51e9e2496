/* Numbers of one width side by side: a little-endian bit stream, lowest bit first. */
#ifndef LAHAR_INDEX_BITPACK_H
#define LAHAR_INDEX_BITPACK_H

#include <stddef.h>
#include <stdint.h>

#include "io/base/buffer.h"
#include "io/base/bytes.h"

enum {
    /* Readable bytes that unpacking needs behind the last packed byte. */
    LAHAR_BITPACK_SLACK = 9
};

static inline unsigned lahar_bit_width(uint64_t v)
{
    return v == 0 ? 0 : 64 - (unsigned)__builtin_clzll(v);
}

static inline size_t lahar_packed_size(uint64_t count, unsigned width)
{
    return (size_t)((count * width + 7) / 8);
}

static inline uint64_t lahar_width_mask(unsigned width)
{
    return width == 0 ? 0 : UINT64_MAX >> (64 - width);
}

/* The index-th number. p must be followed by LAHAR_BITPACK_SLACK readable bytes. */
static inline uint64_t lahar_unpack(const uint8_t *p, uint64_t index, unsigned width)
{
    const uint64_t bit = index * width;
    const unsigned shift = (unsigned)(bit % 8);
    p += bit / 8;
    uint64_t v = lahar_load_u64(p) >> shift;
    if (width + shift > 64) {
        v |= (uint64_t)p[8] << (64 - shift);
    }
    return v & lahar_width_mask(width);
}

/* The same for width <= 56, without the test for a ninth byte. */
static inline uint64_t lahar_unpack_narrow(const uint8_t *p, uint64_t index, unsigned width,
                                           uint64_t mask)
{
    const uint64_t bit = index * width;
    return (lahar_load_u64(p + bit / 8) >> (bit % 8)) & mask;
}

/* Writes packed numbers to a buffer; finish pads the last byte with zeros. */
struct lahar_bit_writer {
    struct lahar_buffer *out;
    uint64_t pending;
    unsigned pending_bits; /* < 8 between calls */
};

/* v < 2^width */
static inline void lahar_bit_write(struct lahar_bit_writer *writer, uint64_t v, unsigned width)
{
    if (!lahar_buffer_reserve(writer->out, 9)) {
        return;
    }
    uint8_t *to = writer->out->data + writer->out->size;
    const unsigned used = writer->pending_bits;
    const unsigned total = used + width;
    lahar_store_u64(to, writer->pending | (v << used));
    const unsigned bytes = total / 8;
    writer->out->size += bytes;
    if (total <= 64) {
        writer->pending = bytes == 8 ? 0 : lahar_load_u64(to) >> (bytes * 8);
    } else {
        writer->pending = v >> (64 - used);
    }
    writer->pending_bits = total % 8;
}

static inline void lahar_bit_finish(struct lahar_bit_writer *writer)
{
    if (writer->pending_bits != 0) {
        lahar_buffer_put_u8(writer->out, (uint8_t)writer->pending);
    }
    writer->pending = 0;
    writer->pending_bits = 0;
}

#endif
