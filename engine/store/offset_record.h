/* Offset records: how far a source is consumed, opaque to the store.
 *
 * One encoding serves a staged batch, a journal and the manifest: records follow
 * one another, each
 *
 *   varint size, source
 *   varint size, key
 *   varint size, value      size 0 forgets the key
 */
#ifndef LAHAR_STORE_OFFSET_RECORD_H
#define LAHAR_STORE_OFFSET_RECORD_H

#include "io/base/buffer.h"
#include "io/base/bytes.h"
#include "lahar/event.h"

struct lahar_offset_record {
    lahar_bytes source;
    lahar_bytes key;
    lahar_bytes value;
};

static inline void lahar_offset_record_put(struct lahar_buffer *buffer,
                                           const struct lahar_offset_record *record)
{
    lahar_buffer_put_sized(buffer, record->source.data, record->source.size);
    lahar_buffer_put_sized(buffer, record->key.data, record->key.size);
    lahar_buffer_put_sized(buffer, record->value.data, record->value.size);
}

static inline lahar_bytes lahar_offset_record_part(struct lahar_reader *reader)
{
    const uint64_t size = lahar_read_varint(reader);
    const uint8_t *data = lahar_read_bytes(reader, size);
    return (lahar_bytes){data, data == NULL ? 0 : (size_t)size};
}

/* The next record; the parts point into the bytes read. False at the end, and at
 * damage, which sets reader->failed. */
static inline bool lahar_offset_record_next(struct lahar_reader *reader,
                                            struct lahar_offset_record *record_out)
{
    if (reader->failed || lahar_reader_left(reader) == 0) {
        return false;
    }
    record_out->source = lahar_offset_record_part(reader);
    record_out->key = lahar_offset_record_part(reader);
    record_out->value = lahar_offset_record_part(reader);
    return !reader->failed;
}

#endif
