/* One event as a row of bytes: the form in which events are staged, travel
 * through the journals and stay in memory until rollover. "Raw size" in limits and
 * ratios means bytes of rows. The layout is specified in docs/format/row.md:
 *
 *   u32 size            of the whole row
 *   u32 stream
 *   i64 time_ns         LAHAR_TIME_OF_ARRIVAL is resolved by the reader
 *   u16 value count
 *   values              u16 field, u8 type (bit 7: null), then by type:
 *     keyword text bytes  varint size, bytes
 *     uuid                16 bytes
 *     i64 u64 f64 time    8 bytes
 *     bool                1 byte
 *     list<uuid>          varint count, 16 bytes each
 *     list<keyword>       varint count, (varint size, bytes) each
 *     map                 varint count, (varint size, key, varint n, value) each:
 *                         n = 0 null, else value size + 1
 *   A null value has no bytes behind its type. Values stand in the order in which
 *   they were given; decoded events have them sorted by field. */
#ifndef LAHAR_EVENT_ROW_H
#define LAHAR_EVENT_ROW_H

#include "engine/event/schema.h"
#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

enum {
    LAHAR_ROW_HEADER_SIZE = 18,
    LAHAR_ROW_NULL_BIT = 0x80 /* in the type of a value */
};

/* An event in the form of a row, and what its place in a journal tells of it. */
struct lahar_row_event {
    uint64_t id;
    int64_t arrival_ns;
    const uint8_t *row;
    uint32_t size;
};

/* Appends the event's row to buffer, which is unchanged on failure. Checks the
 * event against its stream: LAHAR_INVALID for an unknown stream, a field it does
 * not declare, a type that is not the field's, a field given twice;
 * LAHAR_TOO_BIG above LAHAR_EVENT_SIZE_MAX. */
lahar_status lahar_row_encode(struct lahar_buffer *buffer,
                              const struct lahar_schema_catalog *catalog, const lahar_event *event,
                              lahar_error *error);

/* Size of the row at data, 0 when it is cut short or smaller than its header. */
static inline uint32_t lahar_row_size(const uint8_t *data, size_t size)
{
    if (size < LAHAR_ROW_HEADER_SIZE) {
        return 0;
    }
    const uint32_t row_size = lahar_load_u32(data);
    return row_size < LAHAR_ROW_HEADER_SIZE || row_size > size ? 0 : row_size;
}

/* The time and the stream in a row's header. */
static inline int64_t lahar_row_time(const uint8_t *row)
{
    return (int64_t)lahar_load_u64(row + 8);
}

static inline uint32_t lahar_row_stream(const uint8_t *row)
{
    return lahar_load_u32(row + 4);
}

/* Reads a count or a size, of which nearly all have one byte. */
static inline uint64_t lahar_row_read_size(struct lahar_reader *reader)
{
    if (reader->next < reader->end && *reader->next < 0x80) {
        return *reader->next++;
    }
    return lahar_read_varint(reader);
}

/* Reads a size and as many bytes; no bytes once the reader has failed. */
static inline lahar_bytes lahar_row_read_sized(struct lahar_reader *reader)
{
    const uint64_t size = lahar_row_read_size(reader);
    const uint8_t *data = lahar_read_bytes(reader, size);
    return data == NULL ? (lahar_bytes){NULL, 0} : (lahar_bytes){data, (size_t)size};
}

/* Reads a pair of a map; its value has no bytes when it is null. */
static inline void lahar_row_read_pair(struct lahar_reader *reader, lahar_pair *pair)
{
    pair->key = lahar_row_read_sized(reader);
    const uint64_t n = lahar_row_read_size(reader);
    pair->is_null = n == 0;
    pair->value = (lahar_bytes){NULL, 0};
    if (n != 0) {
        const uint8_t *data = lahar_read_bytes(reader, n - 1);
        pair->value = (lahar_bytes){data, data == NULL ? 0 : (size_t)(n - 1)};
    }
}

/* Fills event->stream, time_ns, values and value_count; strings point into the
 * row, arrays are in the arena. Any bytes are safe: LAHAR_CORRUPT. The caller sets id,
 * arrival_ns, is_durable, and resolves LAHAR_TIME_OF_ARRIVAL. */
lahar_status lahar_row_decode(const uint8_t *row, size_t row_size, struct lahar_arena *arena,
                              lahar_event *event_out, lahar_error *error);

/* NULL when absent. */
const lahar_value *lahar_event_find(const lahar_event *event, uint32_t field);

#endif
