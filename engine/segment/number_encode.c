#include "engine/segment/number_encode.h"

enum {
    SCALE_MAX = 3,
    SAMPLE_COUNT = 64 /* differences that tell whether to go on measuring */
};

static const uint64_t scales[SCALE_MAX + 1] = {1, 1000, 1000000, 1000000000};

/* Dividing by a number that the compiler knows takes a multiplication. Signed, towards zero; the
 * result is exact where scale was found to divide. */
static inline int64_t divide(int64_t v, uint8_t scale)
{
    switch (scale) {
    case 0:
        return v;
    case 1:
        return v / 1000;
    case 2:
        return v / 1000000;
    default:
        return v / 1000000000;
    }
}

/* The largest scale that divides every difference to base. */
static uint8_t find_scale(const uint64_t *values, uint32_t count, uint64_t base)
{
    uint8_t scale = SCALE_MAX;
    for (uint32_t i = 0; i < count && scale > 0; i++) {
        const int64_t difference = (int64_t)(values[i] - base);
        while (scale > 0 && divide(difference, scale) * (int64_t)scales[scale] != difference) {
            scale--;
        }
    }
    return scale;
}

/* Byte planes of the scaled differences to base. */
static void put_planes(struct lahar_buffer *buffer, const uint64_t *values, uint32_t count,
                       uint64_t base, uint8_t scale, uint32_t width)
{
    const size_t size = (size_t)width * count;
    if (!lahar_buffer_reserve(buffer, size)) {
        return;
    }
    uint8_t *to = buffer->data + buffer->size;
    if (scale == 0) {
        for (uint32_t plane = 0; plane < width; plane++, to += count) {
            for (uint32_t i = 0; i < count; i++) {
                to[i] = (uint8_t)((values[i] - base) >> (8 * plane));
            }
        }
    } else {
        for (uint32_t i = 0; i < count; i++) {
            uint64_t v = (uint64_t)divide((int64_t)(values[i] - base), scale);
            for (uint32_t plane = 0; plane < width; plane++) {
                to[(size_t)plane * count + i] = (uint8_t)v;
                v >>= 8;
            }
        }
    }
    buffer->size += size;
}

/* Writes values from first to end as differences to the one before, as long as to is below limit;
 * NULL when it is not. Up to LAHAR_VARINT_SIZE_MAX bytes behind the limit are overwritten. */
static inline __attribute__((always_inline)) uint8_t *
write_deltas(uint8_t *to, const uint8_t *limit, const uint64_t *values, uint32_t first,
             uint32_t end, uint8_t scale)
{
    uint64_t before = values[first == 0 ? 0 : first - 1];
    for (uint32_t i = first; i < end; i++) {
        const uint64_t delta = lahar_zigzag(divide((int64_t)(values[i] - before), scale));
        before = values[i];
        if (to >= limit) {
            return NULL;
        }
        if (delta < 0x80) {
            *to++ = (uint8_t)delta;
        } else {
            to = lahar_put_varint(to, delta);
        }
    }
    return to;
}

/* Appends the values as differences; false, with nothing appended, when they take as many bytes as
 * planes of a width do, or the first of them so many that the others will hardly take fewer. */
static bool put_deltas(struct lahar_buffer *buffer, const uint64_t *values, uint32_t count,
                       uint8_t scale, uint32_t width)
{
    if (!lahar_buffer_reserve(buffer, (size_t)width * count + LAHAR_VARINT_SIZE_MAX)) {
        return true;
    }
    const uint32_t sampled = count < SAMPLE_COUNT ? count : (uint32_t)SAMPLE_COUNT;
    uint8_t *start = buffer->data + buffer->size;
    const uint8_t *limit = start + (size_t)width * count;
    const uint8_t *sample_limit = start + (size_t)width * sampled * 9 / 8;
    sample_limit = sample_limit < limit ? sample_limit : limit;
    uint8_t *to = NULL;
    if (scale == 0) {
        to = write_deltas(start, sample_limit, values, 0, sampled, 0);
        to = to == NULL ? NULL : write_deltas(to, limit, values, sampled, count, 0);
    } else {
        to = write_deltas(start, sample_limit, values, 0, sampled, scale);
        to = to == NULL ? NULL : write_deltas(to, limit, values, sampled, count, scale);
    }
    if (to == NULL || to >= limit) {
        return false;
    }
    buffer->size += (size_t)(to - start);
    return true;
}

static uint32_t width_of(uint64_t v)
{
    uint32_t width = 1;
    while (width < 8 && v >> (8 * width) != 0) {
        width++;
    }
    return width;
}

/* width: of the planes, 0 for differences. */
static void put_head(struct lahar_buffer *buffer, uint8_t width, uint8_t scale, uint64_t base)
{
    lahar_buffer_put_u8(buffer, width);
    lahar_buffer_put_u8(buffer, scale);
    lahar_buffer_put_varint(buffer, lahar_zigzag((int64_t)base));
}

void lahar_numbers_encode(struct lahar_buffer *buffer, const uint64_t *values, uint32_t count)
{
    int64_t min = (int64_t)values[0];
    int64_t max = min;
    for (uint32_t i = 1; i < count; i++) {
        const int64_t v = (int64_t)values[i];
        min = v < min ? v : min;
        max = v > max ? v : max;
    }
    const uint64_t range = (uint64_t)max - (uint64_t)min;
    /* Beyond half the number range a difference has no sign of its own. */
    const bool is_wide = range > INT64_MAX;
    const uint8_t scale_code = is_wide ? 0 : find_scale(values, count, (uint64_t)min);
    const uint64_t scale = scales[scale_code];
    const uint32_t width = width_of(range / scale);
    const size_t start = buffer->size;
    put_head(buffer, 0, scale_code, values[0]);
    if (!put_deltas(buffer, values, count, scale_code, width)) {
        buffer->size = start;
        put_head(buffer, (uint8_t)width, scale_code, (uint64_t)min);
        put_planes(buffer, values, count, (uint64_t)min, scale_code, width);
    }
}

/* What stands in front of the numbers. */
struct run {
    struct lahar_reader reader; /* behind it */
    uint8_t width;
    uint64_t base;
    uint64_t scale;
};

static bool read_run(const uint8_t *data, size_t size, struct run *run)
{
    run->reader = lahar_reader_of(data, size);
    run->width = lahar_read_u8(&run->reader);
    const uint8_t scale_code = lahar_read_u8(&run->reader);
    run->base = (uint64_t)lahar_unzigzag(lahar_read_varint(&run->reader));
    if (run->reader.failed || run->width > 8 || scale_code > SCALE_MAX) {
        return false;
    }
    run->scale = scales[scale_code];
    return true;
}

/* Whether the next eight deltas are a byte each. */
static bool has_byte_deltas(const struct lahar_reader *reader)
{
    return lahar_reader_left(reader) >= 8 &&
           (lahar_load_u64(reader->next) & UINT64_C(0x8080808080808080)) == 0;
}

static int64_t byte_delta(uint8_t byte)
{
    return (byte >> 1) ^ -(byte & 1);
}

/* The sum of so many deltas. */
static uint64_t sum_deltas(struct lahar_reader *reader, uint64_t count)
{
    uint64_t sum = 0;
    while (count > 0) {
        if (count < 8 || !has_byte_deltas(reader)) {
            sum += (uint64_t)lahar_unzigzag(lahar_read_varint(reader));
            count--;
            continue;
        }
        int64_t part = 0;
        for (uint32_t i = 0; i < 8; i++) {
            part += byte_delta(reader->next[i]);
        }
        sum += (uint64_t)part;
        reader->next += 8;
        count -= 8;
    }
    return sum;
}

/* Deltas into numbers. */
static void add_deltas(struct lahar_reader *reader, uint64_t base, uint64_t scale, uint64_t *values,
                       uint32_t count)
{
    uint64_t value = base;
    uint32_t i = 0;
    while (i < count) {
        if (count - i < 8 || !has_byte_deltas(reader)) {
            value += (uint64_t)lahar_unzigzag(lahar_read_varint(reader)) * scale;
            values[i++] = value;
            continue;
        }
        for (uint32_t k = 0; k < 8; k++) {
            value += (uint64_t)byte_delta(reader->next[k]) * scale;
            values[i++] = value;
        }
        reader->next += 8;
    }
}

bool lahar_numbers_at(const uint8_t *data, size_t size, uint32_t count, uint32_t index,
                      uint64_t *value_out)
{
    struct run run;
    if (!read_run(data, size, &run)) {
        return false;
    }
    if (run.width == 0) {
        *value_out = run.base + sum_deltas(&run.reader, (uint64_t)index + 1) * run.scale;
        return !run.reader.failed;
    }
    const uint8_t *planes = lahar_read_bytes(&run.reader, (uint64_t)run.width * count);
    uint64_t v = 0;
    for (uint32_t plane = 0; planes != NULL && plane < run.width; plane++) {
        v |= (uint64_t)planes[(size_t)plane * count + index] << (8 * plane);
    }
    *value_out = run.base + v * run.scale;
    return planes != NULL && lahar_reader_left(&run.reader) == 0;
}

bool lahar_numbers_decode(const uint8_t *data, size_t size, uint64_t *values, uint32_t count)
{
    struct run run;
    if (!read_run(data, size, &run)) {
        return false;
    }
    const uint32_t width = run.width;
    const uint64_t base = run.base;
    const uint64_t scale = run.scale;
    if (width == 0) {
        add_deltas(&run.reader, base, scale, values, count);
    } else {
        const uint8_t *planes = lahar_read_bytes(&run.reader, (uint64_t)width * count);
        if (planes == NULL) {
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            uint64_t v = 0;
            for (uint32_t plane = 0; plane < width; plane++) {
                v |= (uint64_t)planes[(size_t)plane * count + i] << (8 * plane);
            }
            values[i] = base + v * scale;
        }
    }
    return !run.reader.failed && lahar_reader_left(&run.reader) == 0;
}
