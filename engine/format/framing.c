/* Encoding and decoding of _framing; see framing.h. Decoding takes any bytes. */
#include "engine/format/framing.h"

#include <string.h>

/* A hole of a copied-and-truncated file is as long as the file was; beyond this
 * the export would not fit in memory. */
static const uint64_t nul_count_max = UINT64_C(1) << 32;

static const uint8_t byte_order_mark[3] = {0xef, 0xbb, 0xbf};

void lahar_framing_encode(const struct lahar_framing *framing, struct lahar_buffer *buffer)
{
    if (framing->flags == 0) {
        return;
    }
    lahar_buffer_put_u8(buffer, framing->flags);
    if ((framing->flags & LAHAR_FRAMING_NUL) != 0) {
        lahar_buffer_put_varint(buffer, framing->nul_count);
    }
    if ((framing->flags & LAHAR_FRAMING_PREFIX) != 0) {
        lahar_buffer_put_sized(buffer, framing->prefix.data, framing->prefix.size);
    }
    if ((framing->flags & LAHAR_FRAMING_SUFFIX) != 0) {
        lahar_buffer_put_sized(buffer, framing->suffix.data, framing->suffix.size);
    }
}

static lahar_bytes read_sized(struct lahar_reader *reader)
{
    const uint64_t size = lahar_read_varint(reader);
    const uint8_t *data = lahar_read_bytes(reader, size);
    return (lahar_bytes){data, data == NULL ? 0 : (size_t)size};
}

bool lahar_framing_decode(lahar_bytes value, struct lahar_framing *framing_out)
{
    struct lahar_framing framing = {0};
    if (value.size != 0) {
        struct lahar_reader reader = lahar_reader_of(value.data, value.size);
        framing.flags = lahar_read_u8(&reader);
        if ((framing.flags & LAHAR_FRAMING_NUL) != 0) {
            framing.nul_count = lahar_read_varint(&reader);
        }
        if ((framing.flags & LAHAR_FRAMING_PREFIX) != 0) {
            framing.prefix = read_sized(&reader);
        }
        if ((framing.flags & LAHAR_FRAMING_SUFFIX) != 0) {
            framing.suffix = read_sized(&reader);
        }
        if (reader.failed || lahar_reader_left(&reader) != 0 ||
            (framing.flags & ~LAHAR_FRAMING_ALL) != 0) {
            return false;
        }
    }
    *framing_out = framing;
    return true;
}

bool lahar_framing_put_before(const struct lahar_framing *framing, struct lahar_buffer *buffer)
{
    if (framing->nul_count > nul_count_max) {
        return false;
    }
    if ((framing->flags & LAHAR_FRAMING_BOM) != 0) {
        lahar_buffer_put(buffer, byte_order_mark, sizeof byte_order_mark);
    }
    lahar_buffer_put(buffer, framing->prefix.data, framing->prefix.size);
    const size_t nul_count = (size_t)framing->nul_count;
    if (nul_count != 0 && lahar_buffer_reserve(buffer, nul_count)) {
        memset(buffer->data + buffer->size, 0, nul_count);
        buffer->size += nul_count;
    }
    return true;
}

void lahar_framing_put_behind(const struct lahar_framing *framing, struct lahar_buffer *buffer)
{
    if ((framing->flags & LAHAR_FRAMING_SUFFIX) != 0) {
        lahar_buffer_put(buffer, framing->suffix.data, framing->suffix.size);
        return;
    }
    if ((framing->flags & LAHAR_FRAMING_CR) != 0) {
        lahar_buffer_put_u8(buffer, '\r');
    }
    if ((framing->flags & LAHAR_FRAMING_NO_LF) == 0) {
        lahar_buffer_put_u8(buffer, '\n');
    }
}
