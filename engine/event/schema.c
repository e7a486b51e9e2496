#include "engine/event/schema.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/builtin.h"
#include "engine/event/name_table.h"
#include "io/base/error.h"

struct lahar_schema_catalog {
    lahar_allocator allocator;
    struct lahar_name_table fields;
    struct lahar_name_table streams;
    _Atomic uint32_t stream_count;
    _Atomic(struct lahar_stream *) stream_of[LAHAR_STREAM_COUNT_MAX]; /* owned */
};

/* --- names ------------------------------------------------------------------- */

/* Size of the UTF-8 sequence at p, 0 when it is malformed (overlong, surrogate, above
 * U+10FFFF, cut short). */
static size_t utf8_sequence_size(const uint8_t *p, size_t left)
{
    if (p[0] < 0x80) {
        return 1;
    }
    const size_t size = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || size > left) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool is_bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
                        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    return is_bad ? 0 : size;
}

static lahar_status check_size(const char *what, size_t name_size, lahar_error *error)
{
    if (name_size == 0) {
        return lahar_fail(error, LAHAR_INVALID, "a %s name is empty", what);
    }
    if (name_size > LAHAR_NAME_SIZE_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "a %s name has %zu bytes, the limit is %d", what,
                          name_size, LAHAR_NAME_SIZE_MAX);
    }
    return LAHAR_OK;
}

static lahar_status check_field_name(const char *name, size_t name_size, lahar_error *error)
{
    LAHAR_TRY(check_size("field", name_size, error));
    const uint8_t *bytes = (const uint8_t *)name;
    for (size_t i = 0; i < name_size;) {
        const size_t size = utf8_sequence_size(bytes + i, name_size - i);
        if (size == 0) {
            return lahar_fail(error, LAHAR_INVALID, "a field name is not UTF-8 at byte %zu", i);
        }
        if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
            return lahar_fail(error, LAHAR_INVALID,
                              "a field name has a control character at byte %zu", i);
        }
        i += size;
    }
    return LAHAR_OK;
}

/* Names with a meaning of their own in queries would make a declared field
 * unreachable there. */
static lahar_status check_declared_name(const char *name, lahar_error *error)
{
    static const char *const header_names[] = {"id", "time", "arrival", "stream"};
    for (size_t i = 0; i < sizeof header_names / sizeof header_names[0]; i++) {
        if (strcmp(name, header_names[i]) == 0) {
            return lahar_fail(error, LAHAR_INVALID,
                              "field \"%s\": every event has this in its header already", name);
        }
    }
    if (strncmp(name, "attr.", 5) == 0 || strncmp(name, "prev.", 5) == 0) {
        return lahar_fail(error, LAHAR_INVALID,
                          "field \"%s\": names beginning with \"%.5s\" are attributes", name, name);
    }
    return LAHAR_OK;
}

static lahar_status check_stream_name(const char *name, lahar_error *error)
{
    const size_t name_size = name == NULL ? 0 : strlen(name);
    LAHAR_TRY(check_size("stream", name_size, error));
    if (name[0] == '.' || name[0] == '-') {
        return lahar_fail(error, LAHAR_INVALID, "stream name \"%s\" begins with '%c'", name,
                          name[0]);
    }
    for (size_t i = 0; i < name_size; i++) {
        const char c = name[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_letter && !is_digit && c != '_' && c != '-' && c != '.') {
            return lahar_fail(error, LAHAR_INVALID,
                              "a stream name has a character at byte %zu that is none of letters, "
                              "digits, '_', '-', '.'",
                              i);
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_schema_intern(struct lahar_schema_catalog *catalog, const char *name,
                                 size_t name_size, uint32_t *field_out, lahar_error *error)
{
    if (lahar_name_table_find(&catalog->fields, name, name_size, field_out)) {
        return LAHAR_OK;
    }
    LAHAR_TRY(check_field_name(name, name_size, error));
    const lahar_status status = lahar_name_table_add(&catalog->fields, name, name_size, field_out);
    if (status == LAHAR_BUSY) {
        return lahar_fail(error, status, "a store has at most %d field names",
                          LAHAR_FIELD_COUNT_MAX);
    }
    if (status != LAHAR_OK) {
        return lahar_fail(error, status, "no memory for a field name");
    }
    return LAHAR_OK;
}

uint32_t lahar_schema_field_count(const struct lahar_schema_catalog *catalog)
{
    return lahar_name_table_count(&catalog->fields);
}

const char *lahar_schema_field_name(const struct lahar_schema_catalog *catalog, uint32_t field)
{
    return lahar_name_table_get(&catalog->fields, field);
}

bool lahar_schema_find_field(const struct lahar_schema_catalog *catalog, const char *name,
                             size_t name_size, uint32_t *field_out)
{
    return lahar_name_table_find(&catalog->fields, name, name_size, field_out);
}

/* --- the catalog --------------------------------------------------------------- */

lahar_status lahar_schema_catalog_create(const lahar_allocator *allocator,
                                         struct lahar_schema_catalog **catalog_out,
                                         lahar_error *error)
{
    struct lahar_schema_catalog *catalog = lahar_allocate(allocator, sizeof *catalog);
    if (catalog == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the catalog of streams");
    }
    catalog->allocator = *allocator;
    lahar_name_table_init(&catalog->fields, &catalog->allocator, LAHAR_FIELD_COUNT_MAX);
    lahar_name_table_init(&catalog->streams, &catalog->allocator, LAHAR_STREAM_COUNT_MAX);
    atomic_init(&catalog->stream_count, 0);
    for (uint32_t i = 0; i < LAHAR_STREAM_COUNT_MAX; i++) {
        atomic_init(&catalog->stream_of[i], NULL);
    }
    for (uint32_t i = 0; i < LAHAR_BUILTIN_FIXED_COUNT; i++) {
        uint32_t field = 0;
        const char *name = lahar_builtin_fixed[i].name;
        const lahar_status status = lahar_schema_intern(catalog, name, strlen(name), &field, error);
        if (status != LAHAR_OK) {
            lahar_schema_catalog_destroy(catalog);
            return status;
        }
        LAHAR_ASSERT(field == i);
    }
    *catalog_out = catalog;
    return LAHAR_OK;
}

void lahar_schema_catalog_destroy(struct lahar_schema_catalog *catalog)
{
    if (catalog == NULL) {
        return;
    }
    for (uint32_t i = 0; i < LAHAR_STREAM_COUNT_MAX; i++) {
        lahar_release(&catalog->allocator,
                      atomic_load_explicit(&catalog->stream_of[i], memory_order_relaxed));
    }
    lahar_name_table_deinit(&catalog->streams);
    lahar_name_table_deinit(&catalog->fields);
    const lahar_allocator allocator = catalog->allocator;
    lahar_release(&allocator, catalog);
}

/* --- streams --------------------------------------------------------------------- */

static int compare_fields(const void *a, const void *b)
{
    const struct lahar_stream_field *left = a;
    const struct lahar_stream_field *right = b;
    return (left->field > right->field) - (left->field < right->field);
}

/* The fields of a stream being put together, in order of declaration. */
struct draft {
    struct lahar_stream_field *fields;
    uint16_t *ordinals; /* place in fields by field id, LAHAR_ORDINAL_NONE where not declared */
    uint32_t count;
    uint32_t builtin_count; /* the first ones, which come from the schema */
};

/* A field of the schema may be declared again to take it out of the index, not to
 * change its type. */
static lahar_status put_field(struct draft *draft, const struct lahar_stream_field *field,
                              const char *name, lahar_error *error)
{
    const uint16_t place = draft->ordinals[field->field];
    if (place == LAHAR_ORDINAL_NONE) {
        draft->ordinals[field->field] = (uint16_t)draft->count;
        draft->fields[draft->count++] = *field;
        return LAHAR_OK;
    }
    if (place >= draft->builtin_count) {
        return lahar_fail(error, LAHAR_INVALID, "field \"%s\" is declared twice", name);
    }
    struct lahar_stream_field *existing = &draft->fields[place];
    if (existing->type != field->type) {
        return lahar_fail(error, LAHAR_INVALID,
                          "field \"%s\" belongs to the schema and has another type there", name);
    }
    existing->is_indexed = existing->is_indexed && field->is_indexed;
    return LAHAR_OK;
}

static lahar_status put_builtin_fields(struct lahar_schema_catalog *catalog, struct draft *draft,
                                       const struct lahar_builtin_field *builtin,
                                       size_t builtin_count, lahar_error *error)
{
    for (size_t i = 0; i < builtin_count; i++) {
        struct lahar_stream_field field = {0, builtin[i].type, builtin[i].is_indexed,
                                           builtin[i].is_hidden};
        LAHAR_TRY(lahar_schema_intern(catalog, builtin[i].name, strlen(builtin[i].name),
                                      &field.field, error));
        LAHAR_TRY(put_field(draft, &field, builtin[i].name, error));
    }
    draft->builtin_count = draft->count;
    return LAHAR_OK;
}

static lahar_status put_declared_field(struct lahar_schema_catalog *catalog, struct draft *draft,
                                       const lahar_field_spec *declared, lahar_error *error)
{
    if (declared->name == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "a declared field has no name");
    }
    LAHAR_TRY(check_field_name(declared->name, strlen(declared->name), error));
    LAHAR_TRY(check_declared_name(declared->name, error));
    if (declared->type < LAHAR_KEYWORD || declared->type > LAHAR_MAP) {
        return lahar_fail(error, LAHAR_INVALID, "field \"%s\" has the unknown type %d",
                          declared->name, (int)declared->type);
    }
    struct lahar_stream_field field = {0, declared->type, !declared->not_indexed, false};
    LAHAR_TRY(
        lahar_schema_intern(catalog, declared->name, strlen(declared->name), &field.field, error));
    if (field.field < LAHAR_BUILTIN_FIXED_COUNT) {
        const struct lahar_builtin_field *fixed = &lahar_builtin_fixed[field.field];
        if (fixed->type != field.type) {
            return lahar_fail(error, LAHAR_INVALID,
                              "field \"%s\" has one type in every stream, and this is another",
                              declared->name);
        }
        field.is_hidden = fixed->is_hidden;
        field.is_indexed = field.is_indexed && fixed->is_indexed;
    }
    return put_field(draft, &field, declared->name, error);
}

/* A stream, its fields and its ordinals are one piece of memory. */
static struct lahar_stream *make_stream(const struct lahar_schema_catalog *catalog,
                                        struct draft *draft)
{
    qsort(draft->fields, draft->count, sizeof draft->fields[0], compare_fields);
    const uint32_t ordinal_count = draft->fields[draft->count - 1].field + 1;
    const size_t fields_size = draft->count * sizeof draft->fields[0];
    struct lahar_stream *stream =
        lahar_allocate(&catalog->allocator,
                       sizeof *stream + fields_size + ordinal_count * sizeof draft->ordinals[0]);
    if (stream == NULL) {
        return NULL;
    }
    struct lahar_stream_field *fields = (struct lahar_stream_field *)(stream + 1);
    uint16_t *ordinals = (uint16_t *)(fields + draft->count);
    memcpy(fields, draft->fields, fields_size);
    memset(ordinals, 0xff, ordinal_count * sizeof ordinals[0]);
    for (uint32_t i = 0; i < draft->count; i++) {
        ordinals[fields[i].field] = (uint16_t)i;
    }
    stream->field_count = draft->count;
    stream->fields = fields;
    stream->ordinal_count = ordinal_count;
    stream->ordinals = ordinals;
    return stream;
}

static lahar_status publish_stream(struct lahar_schema_catalog *catalog,
                                   struct lahar_stream *stream, const lahar_stream_spec *spec,
                                   uint32_t *stream_out, lahar_error *error)
{
    stream->schema = spec->schema;
    stream->id = lahar_name_table_count(&catalog->streams);
    if (stream->id >= LAHAR_STREAM_COUNT_MAX) {
        return lahar_fail(error, LAHAR_BUSY, "a store has at most %d streams",
                          LAHAR_STREAM_COUNT_MAX);
    }
    /* The name lives in the table and so comes first; a reader that meets it before
     * the stream is stored sees no stream yet. */
    uint32_t number = 0;
    if (lahar_name_table_add(&catalog->streams, spec->name, strlen(spec->name), &number) !=
        LAHAR_OK) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for stream \"%s\"", spec->name);
    }
    stream->name = lahar_name_table_get(&catalog->streams, number);
    atomic_store_explicit(&catalog->stream_of[number], stream, memory_order_release);
    atomic_store_explicit(&catalog->stream_count, number + 1, memory_order_release);
    *stream_out = number;
    return LAHAR_OK;
}

lahar_status lahar_schema_add_stream(struct lahar_schema_catalog *catalog,
                                     const lahar_stream_spec *spec, uint32_t *stream_out,
                                     lahar_error *error)
{
    LAHAR_TRY(check_stream_name(spec->name, error));
    if (lahar_name_table_find(&catalog->streams, spec->name, strlen(spec->name), stream_out)) {
        return lahar_fail(error, LAHAR_EXISTS, "there is a stream \"%s\" already", spec->name);
    }
    size_t builtin_count = 0;
    const struct lahar_builtin_field *builtin = lahar_builtin_fields(spec->schema, &builtin_count);
    if (builtin == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "stream \"%s\": unknown schema %d", spec->name,
                          (int)spec->schema);
    }
    if (spec->field_count > LAHAR_FIELD_COUNT_MAX) {
        return lahar_fail(error, LAHAR_INVALID,
                          "stream \"%s\" declares %zu fields, the limit is %d", spec->name,
                          spec->field_count, LAHAR_FIELD_COUNT_MAX);
    }
    const size_t ordinals_size = LAHAR_FIELD_COUNT_MAX * sizeof(uint16_t);
    struct draft draft = {0};
    struct lahar_stream *stream = NULL;
    lahar_status status = LAHAR_OK;
    draft.fields = lahar_allocate(&catalog->allocator,
                                  (builtin_count + spec->field_count) * sizeof draft.fields[0]);
    draft.ordinals = lahar_allocate(&catalog->allocator, ordinals_size);
    if (draft.fields == NULL || draft.ordinals == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for stream \"%s\"", spec->name);
        goto cleanup;
    }
    memset(draft.ordinals, 0xff, ordinals_size);
    status = put_builtin_fields(catalog, &draft, builtin, builtin_count, error);
    for (size_t i = 0; status == LAHAR_OK && i < spec->field_count; i++) {
        status = put_declared_field(catalog, &draft, &spec->fields[i], error);
    }
    if (status != LAHAR_OK) {
        goto cleanup;
    }
    stream = make_stream(catalog, &draft);
    if (stream == NULL) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for stream \"%s\"", spec->name);
        goto cleanup;
    }
    status = publish_stream(catalog, stream, spec, stream_out, error);
    if (status == LAHAR_OK) {
        stream = NULL;
    }
cleanup:
    lahar_release(&catalog->allocator, stream);
    lahar_release(&catalog->allocator, draft.ordinals);
    lahar_release(&catalog->allocator, draft.fields);
    return status;
}

uint32_t lahar_schema_stream_count(const struct lahar_schema_catalog *catalog)
{
    return atomic_load_explicit(&catalog->stream_count, memory_order_acquire);
}

const struct lahar_stream *lahar_schema_stream(const struct lahar_schema_catalog *catalog,
                                               uint32_t stream)
{
    return stream < LAHAR_STREAM_COUNT_MAX
               ? atomic_load_explicit(&catalog->stream_of[stream], memory_order_acquire)
               : NULL;
}

const struct lahar_stream *lahar_schema_find_stream(const struct lahar_schema_catalog *catalog,
                                                    const char *name, size_t name_size)
{
    uint32_t stream = 0;
    return lahar_name_table_find(&catalog->streams, name, name_size, &stream)
               ? lahar_schema_stream(catalog, stream)
               : NULL;
}

const struct lahar_stream_field *lahar_stream_find_field(const struct lahar_stream *stream,
                                                         uint32_t field)
{
    const uint32_t ordinal = lahar_stream_ordinal(stream, field);
    return ordinal == LAHAR_ORDINAL_NONE ? NULL : &stream->fields[ordinal];
}
