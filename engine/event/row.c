#include "engine/event/row.h"

#include <stdlib.h>
#include <string.h>

#include "io/base/error.h"

enum {
    VALUE_HEAD_SIZE = 3,       /* field and type */
    ORDINAL_WORD_COUNT = 1024, /* of 64 bits: one bit for every field a stream can have */
    INSERTION_SORT_MAX = 64,
    SMALL_MAP_SIZE = 64 * 1024, /* bytes that are reserved at once */
    ROOM_SLACK = 64 /* what the bounds given to make_room exceed the bytes by, at most */
};

/* --- encoding -------------------------------------------------------------------- */

static inline uint8_t *put_size(uint8_t *to, size_t size)
{
    if (size < 0x80) {
        *to = (uint8_t)size;
        return to + 1;
    }
    return lahar_put_varint(to, size);
}

static inline uint8_t *put_sized(uint8_t *to, const lahar_bytes *bytes)
{
    to = put_size(to, bytes->size);
    return lahar_copy_short(to, bytes->data, bytes->size);
}

/* A row being written at the end of a buffer. */
struct row_writer {
    struct lahar_buffer *buffer;
    size_t start; /* of the row in the buffer */
    bool is_too_big;
};

/* Makes room for size bytes at to, which keeps its place in the buffer. NULL when
 * memory is refused or the row would be too big; size may be an upper bound, the
 * exact limit is checked at the end. */
static inline uint8_t *make_room(struct row_writer *writer, uint8_t *to, size_t size)
{
    struct lahar_buffer *buffer = writer->buffer;
    buffer->size = (size_t)(to - buffer->data);
    if (size > LAHAR_EVENT_SIZE_MAX + ROOM_SLACK - (buffer->size - writer->start)) {
        writer->is_too_big = true;
        return NULL;
    }
    return lahar_buffer_reserve(buffer, size) ? buffer->data + buffer->size : NULL;
}

/* An upper bound of the bytes of a value that is not a map or a list of keywords. */
static inline size_t flat_size_max(const lahar_value *value)
{
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return value->as.bytes.size;
    case LAHAR_LIST_UUID:
        return value->as.uuids.count > LAHAR_EVENT_SIZE_MAX / sizeof(lahar_uuid)
                   ? SIZE_MAX
                   : value->as.uuids.count * sizeof(lahar_uuid);
    default:
        return sizeof(lahar_uuid);
    }
}

static uint8_t *put_keywords(struct row_writer *writer, uint8_t *to, const lahar_value *value)
{
    to = lahar_put_varint(to, value->as.keywords.count);
    for (size_t i = 0; i < value->as.keywords.count; i++) {
        const lahar_bytes *item = &value->as.keywords.items[i];
        if (item->size > LAHAR_EVENT_SIZE_MAX) {
            writer->is_too_big = true;
            return NULL;
        }
        to = make_room(writer, to, item->size + LAHAR_VARINT_SIZE_MAX);
        if (to == NULL) {
            return NULL;
        }
        to = put_sized(to, item);
    }
    return to;
}

static inline uint8_t *put_pair(uint8_t *to, const lahar_pair *pair)
{
    to = put_sized(to, &pair->key);
    if (pair->is_null) {
        *to = 0;
        return to + 1;
    }
    to = put_size(to, pair->value.size + 1);
    return lahar_copy_short(to, pair->value.data, pair->value.size);
}

/* Pairs that may be too much for an event: room is made for each by itself. */
static uint8_t *put_large_map(struct row_writer *writer, uint8_t *to, const lahar_value *value)
{
    for (size_t i = 0; i < value->as.map.count; i++) {
        const lahar_pair *pair = &value->as.map.items[i];
        const size_t value_size = pair->is_null ? 0 : pair->value.size;
        if (pair->key.size > LAHAR_EVENT_SIZE_MAX || value_size > LAHAR_EVENT_SIZE_MAX) {
            writer->is_too_big = true;
            return NULL;
        }
        to = make_room(writer, to, pair->key.size + value_size + 2 * LAHAR_VARINT_SIZE_MAX);
        if (to == NULL) {
            return NULL;
        }
        to = put_pair(to, pair);
    }
    return to;
}

static uint8_t *put_map(struct row_writer *writer, uint8_t *to, const lahar_value *value)
{
    const size_t count = value->as.map.count;
    to = put_size(to, count);
    size_t size_max = 0;
    for (size_t i = 0; i < count && size_max <= SMALL_MAP_SIZE; i++) {
        const lahar_pair *pair = &value->as.map.items[i];
        const size_t value_size = pair->is_null ? 0 : pair->value.size;
        if (pair->key.size > SMALL_MAP_SIZE || value_size > SMALL_MAP_SIZE) {
            return put_large_map(writer, to, value);
        }
        size_max += pair->key.size + value_size + 2 * LAHAR_VARINT_SIZE_MAX;
    }
    const size_t used = (size_t)(to - writer->buffer->data) - writer->start;
    if (size_max > SMALL_MAP_SIZE || used + size_max > LAHAR_EVENT_SIZE_MAX) {
        return put_large_map(writer, to, value);
    }
    to = make_room(writer, to, size_max);
    for (size_t i = 0; i < count && to != NULL; i++) {
        to = put_pair(to, &value->as.map.items[i]);
    }
    return to;
}

static inline uint8_t *put_value(struct row_writer *writer, uint8_t *to, const lahar_value *value)
{
    const size_t size_max = value->is_null ? 0 : flat_size_max(value);
    if (size_max > LAHAR_EVENT_SIZE_MAX) {
        writer->is_too_big = true;
        return NULL;
    }
    to = make_room(writer, to, size_max + VALUE_HEAD_SIZE + LAHAR_VARINT_SIZE_MAX);
    if (to == NULL) {
        return NULL;
    }
    lahar_store_u16(to, (uint16_t)value->field);
    to[2] = (uint8_t)(value->type | (value->is_null ? LAHAR_ROW_NULL_BIT : 0));
    to += VALUE_HEAD_SIZE;
    if (value->is_null) {
        return to;
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return put_sized(to, &value->as.bytes);
    case LAHAR_UUID:
        memcpy(to, &value->as.uuid, sizeof value->as.uuid);
        return to + sizeof value->as.uuid;
    case LAHAR_I64:
    case LAHAR_U64:
    case LAHAR_F64:
    case LAHAR_TIME:
        memcpy(to, &value->as, 8);
        return to + 8;
    case LAHAR_BOOL:
        *to = value->as.boolean;
        return to + 1;
    case LAHAR_LIST_UUID:
        to = lahar_put_varint(to, value->as.uuids.count);
        return lahar_copy_short(to, value->as.uuids.items,
                                value->as.uuids.count * sizeof(lahar_uuid));
    case LAHAR_LIST_KEYWORD:
        return put_keywords(writer, to, value);
    case LAHAR_MAP:
        return put_map(writer, to, value);
    }
    return NULL;
}

static lahar_status refuse_field(const struct lahar_schema_catalog *catalog,
                                 const struct lahar_stream *stream, const lahar_value *value,
                                 lahar_error *error)
{
    const char *name = lahar_schema_field_name(catalog, value->field);
    const struct lahar_stream_field *field = lahar_stream_find_field(stream, value->field);
    if (name == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "stream \"%s\": field %u is unknown", stream->name,
                          value->field);
    }
    if (field == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "stream \"%s\" does not declare field \"%s\"",
                          stream->name, name);
    }
    if (field->type != value->type) {
        return lahar_fail(error, LAHAR_INVALID,
                          "stream \"%s\": field \"%s\" has type %d, the value type %d",
                          stream->name, name, (int)field->type, (int)value->type);
    }
    return lahar_fail(error, LAHAR_INVALID, "stream \"%s\": field \"%s\" is given twice",
                      stream->name, name);
}

/* True when every value is of a declared field, of its type, and no field comes twice. */
static bool check_values(const struct lahar_stream *stream, const lahar_event *event,
                         size_t *bad_out)
{
    uint64_t seen[ORDINAL_WORD_COUNT];
    memset(seen, 0, (stream->field_count + 63) / 64 * sizeof seen[0]);
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        const uint32_t ordinal = lahar_stream_ordinal(stream, value->field);
        if (ordinal == LAHAR_ORDINAL_NONE || stream->fields[ordinal].type != value->type ||
            (seen[ordinal / 64] >> (ordinal % 64) & 1) != 0) {
            *bad_out = i;
            return false;
        }
        seen[ordinal / 64] |= UINT64_C(1) << (ordinal % 64);
    }
    return true;
}

lahar_status lahar_row_encode(struct lahar_buffer *buffer,
                              const struct lahar_schema_catalog *catalog, const lahar_event *event,
                              lahar_error *error)
{
    const struct lahar_stream *stream = lahar_schema_stream(catalog, event->stream);
    if (stream == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "stream %u is unknown", event->stream);
    }
    size_t bad = 0;
    if (!check_values(stream, event, &bad)) {
        return refuse_field(catalog, stream, &event->values[bad], error);
    }
    struct row_writer writer = {buffer, buffer->size, false};
    const size_t start = buffer->size;
    uint8_t *to = NULL;
    if (lahar_buffer_reserve(buffer, LAHAR_ROW_HEADER_SIZE)) {
        to = buffer->data + start + LAHAR_ROW_HEADER_SIZE;
    }
    for (size_t i = 0; to != NULL && i < event->value_count; i++) {
        to = put_value(&writer, to, &event->values[i]);
    }
    if (to != NULL && (size_t)(to - buffer->data) - start > LAHAR_EVENT_SIZE_MAX) {
        writer.is_too_big = true;
        to = NULL;
    }
    if (to == NULL) {
        buffer->size = start;
        buffer->has_failed = false;
        return writer.is_too_big
                   ? lahar_fail(error, LAHAR_TOO_BIG, "an event is above %d bytes",
                                LAHAR_EVENT_SIZE_MAX)
                   : lahar_fail(error, LAHAR_NO_MEMORY, "no memory to encode an event");
    }
    uint8_t *row = buffer->data + start;
    buffer->size = (size_t)(to - buffer->data);
    lahar_store_u32(row, (uint32_t)(buffer->size - start));
    lahar_store_u32(row + 4, event->stream);
    lahar_store_u64(row + 8, (uint64_t)event->time_ns);
    lahar_store_u16(row + 16, (uint16_t)event->value_count);
    return LAHAR_OK;
}

/* --- decoding ---------------------------------------------------------------------- */

/* An array for count items of which each has at least item_bytes in the row, so that
 * a count that was made up asks for no more than a multiple of the row. */
static void *allocate_items(struct lahar_reader *reader, struct lahar_arena *arena, uint64_t count,
                            size_t item_bytes, size_t item_size, bool *out_of_memory)
{
    if (reader->failed || count > lahar_reader_left(reader) / item_bytes) {
        reader->failed = true;
        return NULL;
    }
    void *items = lahar_arena_allocate(arena, (size_t)count * item_size);
    if (items == NULL) {
        *out_of_memory = true;
        reader->failed = true;
    }
    return items;
}

static void read_uuids(struct lahar_reader *reader, struct lahar_arena *arena, lahar_value *value,
                       bool *out_of_memory)
{
    const uint64_t count = lahar_row_read_size(reader);
    lahar_uuid *items =
        allocate_items(reader, arena, count, sizeof(lahar_uuid), sizeof(lahar_uuid), out_of_memory);
    if (items == NULL) {
        return;
    }
    const size_t size = (size_t)count * sizeof(lahar_uuid);
    const uint8_t *data = lahar_read_bytes(reader, size);
    if (data != NULL && size != 0) {
        memcpy(items, data, size);
    }
    value->as.uuids.items = items;
    value->as.uuids.count = (size_t)count;
}

static void read_keywords(struct lahar_reader *reader, struct lahar_arena *arena,
                          lahar_value *value, bool *out_of_memory)
{
    const uint64_t count = lahar_row_read_size(reader);
    lahar_bytes *items =
        allocate_items(reader, arena, count, 1, sizeof(lahar_bytes), out_of_memory);
    for (size_t i = 0; items != NULL && i < count; i++) {
        items[i] = lahar_row_read_sized(reader);
    }
    value->as.keywords.items = items;
    value->as.keywords.count = (size_t)count;
}

/* A pair that is not null and whose sizes have one byte each, as nearly all do; false, with nothing
 * read, for any other. */
static inline bool read_short_pair(struct lahar_reader *reader, lahar_pair *pair)
{
    const uint8_t *next = reader->next;
    const size_t left = lahar_reader_left(reader);
    const size_t key_size = left == 0 ? 0x80 : *next;
    if (key_size >= 0x80 || left < key_size + 2) {
        return false;
    }
    const uint8_t *value = next + 1 + key_size; /* its size + 1, then its bytes */
    if (*value >= 0x80 || *value == 0 || left - 1 - key_size < *value) {
        return false;
    }
    pair->key = (lahar_bytes){next + 1, key_size};
    pair->value = (lahar_bytes){value + 1, (size_t)*value - 1};
    pair->is_null = false;
    reader->next = value + *value;
    return true;
}

static void read_map(struct lahar_reader *reader, struct lahar_arena *arena, lahar_value *value,
                     bool *out_of_memory)
{
    const uint64_t count = lahar_row_read_size(reader);
    lahar_pair *items = allocate_items(reader, arena, count, 2, sizeof(lahar_pair), out_of_memory);
    /* A local copy stays in registers while the pairs are written. */
    struct lahar_reader local = *reader;
    for (size_t i = 0; items != NULL && i < count && !local.failed; i++) {
        if (!read_short_pair(&local, &items[i])) {
            lahar_row_read_pair(&local, &items[i]);
        }
    }
    *reader = local;
    value->as.map.items = items;
    value->as.map.count = (size_t)count;
}

static void read_value(struct lahar_reader *reader, struct lahar_arena *arena, lahar_value *value,
                       bool *out_of_memory)
{
    memset(value, 0, sizeof *value);
    value->field = lahar_read_u16(reader);
    const uint8_t type = lahar_read_u8(reader);
    value->type = (lahar_type)(type & ~LAHAR_ROW_NULL_BIT);
    value->is_null = (type & LAHAR_ROW_NULL_BIT) != 0;
    if (value->type < LAHAR_KEYWORD || value->type > LAHAR_MAP) {
        reader->failed = true;
    }
    if (value->is_null || reader->failed) {
        return;
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        value->as.bytes = lahar_row_read_sized(reader);
        return;
    case LAHAR_UUID: {
        const uint8_t *data = lahar_read_bytes(reader, sizeof value->as.uuid);
        if (data != NULL) {
            memcpy(&value->as.uuid, data, sizeof value->as.uuid);
        }
        return;
    }
    case LAHAR_I64:
    case LAHAR_U64:
    case LAHAR_F64:
    case LAHAR_TIME:
        value->as.u64 = lahar_read_u64(reader);
        return;
    case LAHAR_BOOL: {
        const uint8_t boolean = lahar_read_u8(reader);
        reader->failed = reader->failed || boolean > 1;
        value->as.boolean = boolean == 1;
        return;
    }
    case LAHAR_LIST_UUID:
        read_uuids(reader, arena, value, out_of_memory);
        return;
    case LAHAR_LIST_KEYWORD:
        read_keywords(reader, arena, value, out_of_memory);
        return;
    case LAHAR_MAP:
        read_map(reader, arena, value, out_of_memory);
        return;
    }
}

static int compare_values(const void *a, const void *b)
{
    const lahar_value *left = a;
    const lahar_value *right = b;
    return (left->field > right->field) - (left->field < right->field);
}

static void sort_values(lahar_value *values, size_t count)
{
    if (count > INSERTION_SORT_MAX) {
        qsort(values, count, sizeof values[0], compare_values);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const lahar_value value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1].field > value.field; at--) {
            values[at] = values[at - 1];
        }
        values[at] = value;
    }
}

lahar_status lahar_row_decode(const uint8_t *row, size_t row_size, struct lahar_arena *arena,
                              lahar_event *event_out, lahar_error *error)
{
    if (row_size < LAHAR_ROW_HEADER_SIZE || lahar_row_size(row, row_size) != row_size) {
        return lahar_fail(error, LAHAR_CORRUPT, "a row of %zu bytes has another size inside",
                          row_size);
    }
    struct lahar_reader reader = lahar_reader_of(row + 4, row_size - 4);
    event_out->stream = lahar_read_u32(&reader);
    event_out->time_ns = (int64_t)lahar_read_u64(&reader);
    const uint16_t count = lahar_read_u16(&reader);
    bool out_of_memory = false;
    lahar_value *values =
        allocate_items(&reader, arena, count, VALUE_HEAD_SIZE, sizeof *values, &out_of_memory);
    bool is_sorted = true;
    for (size_t i = 0; !reader.failed && i < count; i++) {
        read_value(&reader, arena, &values[i], &out_of_memory);
        is_sorted = is_sorted && (i == 0 || values[i - 1].field < values[i].field);
    }
    if (out_of_memory) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to decode an event");
    }
    if (reader.failed || lahar_reader_left(&reader) != 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "a row of %zu bytes is damaged", row_size);
    }
    if (!is_sorted) {
        sort_values(values, count);
        for (size_t i = 1; i < count; i++) {
            if (values[i - 1].field == values[i].field) {
                return lahar_fail(error, LAHAR_CORRUPT, "a row has field %u twice",
                                  values[i].field);
            }
        }
    }
    event_out->values = values;
    event_out->value_count = count;
    return LAHAR_OK;
}

const lahar_value *lahar_event_find(const lahar_event *event, uint32_t field)
{
    for (size_t i = 0; i < event->value_count; i++) {
        if (event->values[i].field == field) {
            return &event->values[i];
        }
    }
    return NULL;
}
