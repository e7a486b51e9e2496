/* Reading schemas and records; see nifi_record.h. */
#include "engine/provenance/nifi_record.h"

#include <string.h>

#include "io/base/error.h"

enum {
    DEPTH_MAX = 8,        /* of fields in fields; NiFi's own have three */
    FIELD_SIZE_MIN = 24,  /* of a field in a schema, which bounds their number */
    FIELD_PART_COUNT = 4, /* name, type, repetition, fields */
    SCHEMA_FIELDS_MAX = 4096
};

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read an event file of NiFi");
}

static uint32_t read_count(struct lahar_reader *reader)
{
    return __builtin_bswap32(lahar_read_u32(reader));
}

/* --- strings -------------------------------------------------------------------------------- */

/* The second half of a pair of surrogates, three bytes each; 0: it is none. */
static uint32_t pair_at(const uint8_t *bytes, size_t left)
{
    if (left < 6 || bytes[0] != 0xed || (bytes[1] & 0xf0) != 0xa0 || bytes[3] != 0xed ||
        (bytes[4] & 0xf0) != 0xb0) {
        return 0;
    }
    const uint32_t high = (uint32_t)(bytes[1] & 0x0f) << 6 | (bytes[2] & 0x3f);
    const uint32_t low = (uint32_t)(bytes[4] & 0x0f) << 6 | (bytes[5] & 0x3f);
    return 0x10000 + (high << 10 | low);
}

/* Java writes NUL as two bytes and characters beyond 16 bits as two of three bytes each. What is
 * neither stays as it is. */
static size_t make_plain(uint8_t *to, const uint8_t *from, size_t size)
{
    size_t done = 0;
    for (size_t i = 0; i < size;) {
        const uint32_t character = pair_at(from + i, size - i);
        if (from[i] == 0xc0 && size - i >= 2 && from[i + 1] == 0x80) {
            to[done++] = 0;
            i += 2;
        } else if (character != 0) {
            to[done++] = (uint8_t)(0xf0 | character >> 18);
            to[done++] = (uint8_t)(0x80 | (character >> 12 & 0x3f));
            to[done++] = (uint8_t)(0x80 | (character >> 6 & 0x3f));
            to[done++] = (uint8_t)(0x80 | (character & 0x3f));
            i += 6;
        } else {
            to[done++] = from[i++];
        }
    }
    return done;
}

lahar_bytes lahar_nifi_read_string(struct lahar_reader *reader, struct lahar_arena *arena)
{
    const uint16_t size = __builtin_bswap16(lahar_read_u16(reader));
    const uint8_t *bytes = lahar_read_bytes(reader, size);
    if (reader->failed) {
        return (lahar_bytes){NULL, 0};
    }
    if (size == 0) {
        return (lahar_bytes){"", 0};
    }
    if (memchr(bytes, 0xc0, size) == NULL && memchr(bytes, 0xed, size) == NULL) {
        return (lahar_bytes){bytes, size};
    }
    uint8_t *plain = lahar_arena_allocate(arena, size);
    return plain == NULL ? (lahar_bytes){NULL, 0}
                         : (lahar_bytes){plain, make_plain(plain, bytes, size)};
}

static bool is_text(lahar_bytes bytes, const char *text)
{
    const size_t size = strlen(text);
    return bytes.data != NULL && bytes.size == size && memcmp(bytes.data, text, size) == 0;
}

bool lahar_nifi_is_named(const struct lahar_nifi_field *field, const char *name)
{
    return is_text(field->name, name);
}

/* --- schemas -------------------------------------------------------------------------------- */

struct schema_reading {
    struct lahar_reader *reader;
    struct lahar_arena *arena;
    uint32_t field_count; /* so far */
    lahar_error *error;
};

static lahar_status bad_schema(const struct schema_reading *reading)
{
    return lahar_fail(reading->error, LAHAR_CORRUPT, "the schema in the file is malformed");
}

static bool find_name(lahar_bytes name, const char *const *names, size_t count, unsigned *index_out)
{
    for (size_t i = 0; i < count; i++) {
        if (is_text(name, names[i])) {
            *index_out = (unsigned)i;
            return true;
        }
    }
    return false;
}

static lahar_status read_fields(struct schema_reading *reading, unsigned depth,
                                struct lahar_nifi_field *owner);

/* One of the four parts of a field: its name, the type of its value, the value. */
static lahar_status read_part(struct schema_reading *reading, unsigned depth,
                              struct lahar_nifi_field *field)
{
    static const char *const types[] = {"INT",         "LONG", "BOOLEAN", "BYTE_ARRAY", "STRING",
                                        "LONG_STRING", "MAP",  "COMPLEX", "UNION"};
    static const char *const repetitions[] = {"EXACTLY_ONE", "ZERO_OR_ONE", "ZERO_OR_MORE"};
    const lahar_bytes part = lahar_nifi_read_string(reading->reader, reading->arena);
    const lahar_bytes kind = lahar_nifi_read_string(reading->reader, reading->arena);
    unsigned index = 0;
    if (is_text(kind, "SubFieldList")) {
        return read_fields(reading, depth + 1, field);
    }
    const lahar_bytes value = lahar_nifi_read_string(reading->reader, reading->arena);
    if (!is_text(kind, "String") || value.data == NULL) {
        return bad_schema(reading);
    }
    if (is_text(part, "Field Name")) {
        field->name = value;
        return LAHAR_OK;
    }
    if (is_text(part, "Field Type") &&
        find_name(value, types, sizeof types / sizeof types[0], &index)) {
        field->type = (enum lahar_nifi_type)index;
        return LAHAR_OK;
    }
    if (is_text(part, "Repetition") &&
        find_name(value, repetitions, sizeof repetitions / sizeof repetitions[0], &index)) {
        field->repetition = (enum lahar_nifi_repetition)index;
        return LAHAR_OK;
    }
    return lahar_fail(reading->error, LAHAR_UNSUPPORTED,
                      "the schema in the file has a %.*s \"%.*s\", which is not known",
                      (int)(part.size < 64 ? part.size : 64), (const char *)part.data,
                      (int)(value.size < 64 ? value.size : 64), (const char *)value.data);
}

/* So that every value takes a byte at least, which bounds what a record can make of its bytes. */
static bool is_sound(const struct lahar_nifi_field *field)
{
    switch (field->type) {
    case LAHAR_NIFI_MAP:
        return field->field_count == 2;
    case LAHAR_NIFI_COMPLEX:
    case LAHAR_NIFI_UNION:
        return field->field_count != 0;
    default:
        return field->field_count == 0;
    }
}

static lahar_status read_fields(struct schema_reading *reading, unsigned depth,
                                struct lahar_nifi_field *owner)
{
    const uint32_t count = read_count(reading->reader);
    reading->field_count += count < SCHEMA_FIELDS_MAX ? count : (uint32_t)SCHEMA_FIELDS_MAX;
    if (reading->reader->failed || depth > DEPTH_MAX ||
        count > lahar_reader_left(reading->reader) / FIELD_SIZE_MIN ||
        reading->field_count > SCHEMA_FIELDS_MAX) {
        return bad_schema(reading);
    }
    struct lahar_nifi_field *fields =
        lahar_arena_allocate(reading->arena, count * sizeof *fields + 1);
    if (fields == NULL) {
        return no_memory(reading->error);
    }
    for (uint32_t i = 0; i < count; i++) {
        fields[i] = (struct lahar_nifi_field){.field_count = 0};
        if (read_count(reading->reader) != FIELD_PART_COUNT) {
            return bad_schema(reading);
        }
        for (int part = 0; part < FIELD_PART_COUNT; part++) {
            LAHAR_TRY(read_part(reading, depth, &fields[i]));
        }
        if (fields[i].name.data == NULL || !is_sound(&fields[i])) {
            return bad_schema(reading);
        }
    }
    owner->fields = fields;
    owner->field_count = count;
    return LAHAR_OK;
}

lahar_status lahar_nifi_read_schema(struct lahar_reader *reader, struct lahar_arena *arena,
                                    struct lahar_nifi_field *schema_out, lahar_error *error)
{
    struct schema_reading reading = {.reader = reader, .arena = arena, .error = error};
    *schema_out = (struct lahar_nifi_field){.name = {"record", 6}, .type = LAHAR_NIFI_COMPLEX};
    LAHAR_TRY(read_fields(&reading, 0, schema_out));
    return lahar_reader_left(reader) == 0 && schema_out->field_count != 0 ? LAHAR_OK
                                                                          : bad_schema(&reading);
}

/* --- records -------------------------------------------------------------------------------- */

struct record_reading {
    struct lahar_reader *reader;
    struct lahar_arena *arena;
    lahar_error *error;
};

static lahar_status bad_value(const struct record_reading *reading,
                              const struct lahar_nifi_field *field)
{
    return lahar_fail(reading->error, LAHAR_CORRUPT, "its \"%.*s\" is damaged",
                      (int)(field->name.size < 64 ? field->name.size : 64),
                      (const char *)field->name.data);
}

static lahar_status read_value(const struct record_reading *reading,
                               const struct lahar_nifi_field *field,
                               struct lahar_nifi_value *value);

/* Bytes that a value takes at least. */
static uint64_t least_size(const struct lahar_nifi_field *field)
{
    switch (field->type) {
    case LAHAR_NIFI_LONG:
        return 8;
    case LAHAR_NIFI_STRING:
    case LAHAR_NIFI_UNION:
        return 2;
    case LAHAR_NIFI_BOOLEAN:
    case LAHAR_NIFI_COMPLEX:
        return 1;
    default:
        return 4;
    }
}

/* Room for count values, each of which takes a byte at least. */
static lahar_status make_items(const struct record_reading *reading,
                               const struct lahar_nifi_field *field, uint64_t count,
                               struct lahar_nifi_value **items_out, struct lahar_nifi_value *value)
{
    if (reading->reader->failed || count > lahar_reader_left(reading->reader)) {
        return bad_value(reading, field);
    }
    *items_out = lahar_arena_allocate(reading->arena, (size_t)count * sizeof **items_out + 1);
    if (*items_out == NULL) {
        return no_memory(reading->error);
    }
    value->items = *items_out;
    value->count = (uint32_t)count;
    return LAHAR_OK;
}

static lahar_status read_map(const struct record_reading *reading,
                             const struct lahar_nifi_field *field, struct lahar_nifi_value *value)
{
    struct lahar_nifi_value *items = NULL;
    LAHAR_TRY(make_items(reading, field, (uint64_t)read_count(reading->reader) * 2, &items, value));
    for (uint32_t i = 0; i < value->count; i++) {
        LAHAR_TRY(read_value(reading, &field->fields[i % 2], &items[i]));
    }
    return LAHAR_OK;
}

static lahar_status read_complex(const struct record_reading *reading,
                                 const struct lahar_nifi_field *field,
                                 struct lahar_nifi_value *value)
{
    struct lahar_nifi_value *items = NULL;
    LAHAR_TRY(make_items(reading, field, field->field_count, &items, value));
    for (uint32_t i = 0; i < value->count; i++) {
        LAHAR_TRY(read_value(reading, &field->fields[i], &items[i]));
    }
    return LAHAR_OK;
}

static lahar_status read_union(const struct record_reading *reading,
                               const struct lahar_nifi_field *field, struct lahar_nifi_value *value)
{
    const lahar_bytes name = lahar_nifi_read_string(reading->reader, reading->arena);
    for (uint32_t i = 0; i < field->field_count && name.data != NULL; i++) {
        const struct lahar_nifi_field *chosen = &field->fields[i];
        if (chosen->name.size == name.size &&
            memcmp(chosen->name.data, name.data, name.size) == 0) {
            struct lahar_nifi_value *items = NULL;
            LAHAR_TRY(make_items(reading, field, 1, &items, value));
            value->field = chosen;
            return read_value(reading, chosen, items);
        }
    }
    return bad_value(reading, field);
}

static lahar_status read_bytes(const struct record_reading *reading,
                               const struct lahar_nifi_field *field, struct lahar_nifi_value *value)
{
    const uint32_t size = read_count(reading->reader);
    const uint8_t *bytes = lahar_read_bytes(reading->reader, size);
    value->bytes = (lahar_bytes){size == 0 ? (const void *)"" : bytes, size};
    return reading->reader->failed ? bad_value(reading, field) : LAHAR_OK;
}

/* One value, whatever the repetition. */
static lahar_status read_one(const struct record_reading *reading,
                             const struct lahar_nifi_field *field, struct lahar_nifi_value *value)
{
    struct lahar_reader *reader = reading->reader;
    *value = (struct lahar_nifi_value){.field = field};
    switch (field->type) {
    case LAHAR_NIFI_INT:
        value->number = (int32_t)read_count(reader);
        break;
    case LAHAR_NIFI_LONG:
        value->number = (int64_t)__builtin_bswap64(lahar_read_u64(reader));
        break;
    case LAHAR_NIFI_BOOLEAN:
        value->number = lahar_read_u8(reader);
        break;
    case LAHAR_NIFI_STRING:
        value->bytes = lahar_nifi_read_string(reader, reading->arena);
        if (value->bytes.data == NULL && !reader->failed) {
            return no_memory(reading->error);
        }
        break;
    case LAHAR_NIFI_BYTE_ARRAY:
    case LAHAR_NIFI_LONG_STRING:
        return read_bytes(reading, field, value);
    case LAHAR_NIFI_MAP:
        return read_map(reading, field, value);
    case LAHAR_NIFI_COMPLEX:
        return read_complex(reading, field, value);
    case LAHAR_NIFI_UNION:
        return read_union(reading, field, value);
    }
    return reader->failed ? bad_value(reading, field) : LAHAR_OK;
}

/* Recurses as deep as the schema is. */
static lahar_status read_value(const struct record_reading *reading,
                               const struct lahar_nifi_field *field, struct lahar_nifi_value *value)
{
    if (field->repetition == LAHAR_NIFI_OPTIONAL) {
        const uint8_t is_there = lahar_read_u8(reading->reader);
        if (reading->reader->failed || is_there > 1) {
            return bad_value(reading, field);
        }
        if (is_there == 0) {
            *value = (struct lahar_nifi_value){.field = field, .is_absent = true};
            return LAHAR_OK;
        }
    }
    if (field->repetition != LAHAR_NIFI_REPEATED) {
        return read_one(reading, field, value);
    }
    struct lahar_nifi_value *items = NULL;
    *value = (struct lahar_nifi_value){.field = field};
    const uint32_t count = read_count(reading->reader);
    if (count > lahar_reader_left(reading->reader) / least_size(field)) {
        return bad_value(reading, field);
    }
    LAHAR_TRY(make_items(reading, field, count, &items, value));
    for (uint32_t i = 0; i < value->count; i++) {
        LAHAR_TRY(read_one(reading, field, &items[i]));
    }
    return LAHAR_OK;
}

lahar_status lahar_nifi_read_prefix(struct lahar_reader *reader,
                                    const struct lahar_nifi_field *schema,
                                    struct lahar_arena *arena, struct lahar_nifi_value *record_out,
                                    lahar_error *error)
{
    const struct record_reading reading = {.reader = reader, .arena = arena, .error = error};
    if (lahar_read_u8(reader) != 1 || reader->failed) {
        return lahar_fail(error, LAHAR_CORRUPT, "it does not begin as a record does");
    }
    return read_value(&reading, schema, record_out);
}

lahar_status lahar_nifi_read_record(struct lahar_reader *reader,
                                    const struct lahar_nifi_field *schema,
                                    struct lahar_arena *arena, struct lahar_nifi_value *record_out,
                                    lahar_error *error)
{
    LAHAR_TRY(lahar_nifi_read_prefix(reader, schema, arena, record_out, error));
    return lahar_reader_left(reader) == 0
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_CORRUPT, "%zu bytes follow its values",
                            lahar_reader_left(reader));
}

const struct lahar_nifi_value *lahar_nifi_find(const struct lahar_nifi_value *complex,
                                               const char *name)
{
    for (uint32_t i = 0; i < complex->count; i++) {
        const struct lahar_nifi_value *item = &complex->items[i];
        if (!item->is_absent && lahar_nifi_is_named(&complex->field->fields[i], name)) {
            return item;
        }
    }
    return NULL;
}
