/* The growing part of lahar_buffer: capacity at least doubles, so that n bytes
 * put one by one cost O(n). */
#include "io/base/buffer.h"

enum {
    FIRST_CAPACITY = 64
};

void lahar_buffer_init(struct lahar_buffer *buffer, const lahar_allocator *allocator)
{
    *buffer = (struct lahar_buffer){.allocator = allocator};
}

void lahar_buffer_deinit(struct lahar_buffer *buffer)
{
    lahar_release(buffer->allocator, buffer->data);
    *buffer = (struct lahar_buffer){.allocator = buffer->allocator};
}

void lahar_buffer_clear(struct lahar_buffer *buffer)
{
    buffer->size = 0;
    buffer->has_failed = false;
}

bool lahar_buffer_reserve_slow(struct lahar_buffer *buffer, size_t size)
{
    size_t needed = 0;
    if (__builtin_add_overflow(buffer->size, size, &needed)) {
        buffer->has_failed = true;
        return false;
    }
    size_t capacity = buffer->capacity <= SIZE_MAX / 2 ? buffer->capacity * 2 : needed;
    if (capacity < FIRST_CAPACITY) {
        capacity = FIRST_CAPACITY;
    }
    if (capacity < needed) {
        capacity = needed;
    }
    uint8_t *data = lahar_reallocate(buffer->allocator, buffer->data, capacity);
    if (data == NULL) {
        buffer->has_failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}
