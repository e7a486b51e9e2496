/* A growable byte buffer. Growth failure is remembered, so that a run of puts
 * needs one check: after has_failed the contents are not to be used. */
#ifndef LAHAR_BASE_BUFFER_H
#define LAHAR_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "io/base/allocator.h"
#include "io/base/bytes.h"

struct lahar_buffer {
    uint8_t *data;
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated */
    bool has_failed; /* an allocation was refused */
    const lahar_allocator *allocator;
};

void lahar_buffer_init(struct lahar_buffer *buffer, const lahar_allocator *allocator);
void lahar_buffer_deinit(struct lahar_buffer *buffer);
void lahar_buffer_clear(struct lahar_buffer *buffer); /* keeps the memory, forgets a failure */

/* Makes room for size more bytes; false when memory is refused. */
bool lahar_buffer_reserve_slow(struct lahar_buffer *buffer, size_t size);

static inline bool lahar_buffer_reserve(struct lahar_buffer *buffer, size_t size)
{
    return buffer->capacity - buffer->size >= size || lahar_buffer_reserve_slow(buffer, size);
}

static inline void lahar_buffer_put(struct lahar_buffer *buffer, const void *data, size_t size)
{
    if (size != 0 && lahar_buffer_reserve(buffer, size)) {
        memcpy(buffer->data + buffer->size, data, size);
        buffer->size += size;
    }
}

static inline void lahar_buffer_put_u8(struct lahar_buffer *buffer, uint8_t v)
{
    lahar_buffer_put(buffer, &v, 1);
}

static inline void lahar_buffer_put_u16(struct lahar_buffer *buffer, uint16_t v)
{
    lahar_buffer_put(buffer, &v, 2);
}

static inline void lahar_buffer_put_u32(struct lahar_buffer *buffer, uint32_t v)
{
    lahar_buffer_put(buffer, &v, 4);
}

static inline void lahar_buffer_put_u64(struct lahar_buffer *buffer, uint64_t v)
{
    lahar_buffer_put(buffer, &v, 8);
}

static inline void lahar_buffer_put_varint(struct lahar_buffer *buffer, uint64_t v)
{
    if (lahar_buffer_reserve(buffer, LAHAR_VARINT_SIZE_MAX)) {
        buffer->size = (size_t)(lahar_put_varint(buffer->data + buffer->size, v) - buffer->data);
    }
}

/* A varint length and the bytes. */
static inline void lahar_buffer_put_sized(struct lahar_buffer *buffer, const void *data,
                                          size_t size)
{
    lahar_buffer_put_varint(buffer, size);
    lahar_buffer_put(buffer, data, size);
}

#endif
