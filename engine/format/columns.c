/* Columns that expressions fill; see columns.h. */
#include "engine/format/columns.h"

#include <string.h>

#include "engine/event/row.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "lahar/append.h"

enum {
    FORM_VERSION = 1
};

/* --- loading ----------------------------------------------------------------------------- */

static lahar_status damaged(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "the columns of a stream are damaged");
}

static bool is_of_expressions(lahar_type type)
{
    return type >= LAHAR_KEYWORD && type <= LAHAR_BYTES;
}

/* The field that a stored column fills. */
static lahar_status find_field(struct lahar_column *column,
                               const struct lahar_schema_catalog *catalog, uint32_t stream,
                               lahar_error *error)
{
    const struct lahar_stream *schema = lahar_schema_stream(catalog, stream);
    const struct lahar_stream_field *declared = NULL;
    column->field = UINT32_MAX;
    if (column->kind != LAHAR_COLUMN_ALIAS) {
        uint32_t field;
        if (lahar_schema_find_field(catalog, column->name.data, column->name.size, &field)) {
            declared = lahar_stream_find_field(schema, field);
        }
        if (declared == NULL || declared->is_hidden) {
            return lahar_fail(error, LAHAR_INVALID, "stream %s declares no field \"%.*s\"",
                              schema->name, (int)column->name.size,
                              (const char *)column->name.data);
        }
        column->field = declared->field;
        column->type = declared->type;
    }
    return is_of_expressions(column->type)
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_INVALID,
                            "column \"%.*s\" is of a type that no expression gives",
                            (int)column->name.size, (const char *)column->name.data);
}

static bool is_name(lahar_bytes name, const char *word)
{
    return word != NULL && strlen(word) == name.size &&
           (name.size == 0 || memcmp(word, name.data, name.size) == 0);
}

lahar_status lahar_columns_load(struct lahar_columns *columns, lahar_bytes stored,
                                const struct lahar_schema_catalog *catalog, uint32_t stream,
                                const char *time_field, const lahar_allocator *allocator,
                                lahar_error *error)
{
    columns->allocator = allocator;
    lahar_buffer_init(&columns->text, allocator);
    lahar_buffer_put(&columns->text, stored.data, stored.size);
    if (columns->text.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for columns");
    }
    struct lahar_reader reader = lahar_reader_of(columns->text.data, columns->text.size);
    const uint8_t version = lahar_read_u8(&reader);
    const uint64_t count = lahar_read_varint(&reader);
    if (version > FORM_VERSION) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "columns have version %u", version);
    }
    if (reader.failed || version == 0 || count > LAHAR_COLUMNS_MAX) {
        return damaged(error);
    }
    columns->columns =
        lahar_allocate_zeroed(allocator, (size_t)count + 1, sizeof *columns->columns);
    if (columns->columns == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for columns");
    }
    for (uint64_t i = 0; i < count; i++) {
        struct lahar_column *column = &columns->columns[columns->count];
        column->kind = (lahar_column_kind)lahar_read_u8(&reader);
        column->type = (lahar_type)lahar_read_u8(&reader);
        column->name.size = (size_t)lahar_read_varint(&reader);
        column->name.data = lahar_read_bytes(&reader, column->name.size);
        lahar_bytes text;
        text.size = (size_t)lahar_read_varint(&reader);
        text.data = lahar_read_bytes(&reader, text.size);
        if (reader.failed || column->kind < LAHAR_COLUMN_DEFAULT ||
            column->kind > LAHAR_COLUMN_ALIAS || column->name.size == 0) {
            return damaged(error);
        }
        LAHAR_TRY(find_field(column, catalog, stream, error));
        LAHAR_TRY(lahar_expression_create(text, allocator, &column->expression, error));
        column->is_time = is_name(column->name, time_field);
        columns->count++;
    }
    return LAHAR_OK;
}

void lahar_columns_deinit(struct lahar_columns *columns)
{
    if (columns->allocator == NULL) {
        return;
    }
    for (size_t i = 0; i < columns->count; i++) {
        lahar_expression_destroy(columns->columns[i].expression);
    }
    lahar_release(columns->allocator, columns->columns);
    lahar_buffer_deinit(&columns->text);
    *columns = (struct lahar_columns){0};
}

struct search {
    lahar_bytes stream;
    struct lahar_buffer *stored;
};

static lahar_status visit_stored(void *context, lahar_bytes key, lahar_bytes value)
{
    const struct search *search = context;
    if (key.size == search->stream.size && memcmp(key.data, search->stream.data, key.size) == 0) {
        lahar_buffer_put(search->stored, value.data, value.size);
    }
    return LAHAR_OK;
}

static lahar_bytes text_of(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

static lahar_status read_stored(lahar_store *store, const char *stream, struct lahar_buffer *stored,
                                lahar_error *error)
{
    struct search search = {text_of(stream), stored};
    LAHAR_TRY(lahar_offset_visit(store, text_of(LAHAR_COLUMNS_KEY), visit_stored, &search, error));
    return stored->has_failed ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for columns")
                              : LAHAR_OK;
}

lahar_status lahar_columns_find(struct lahar_columns *columns, lahar_store *store, uint32_t stream,
                                const char *time_field, lahar_error *error)
{
    const struct lahar_schema_catalog *catalog = lahar_store_catalog(store);
    const struct lahar_stream *schema = lahar_schema_stream(catalog, stream);
    struct lahar_buffer stored;
    if (schema == NULL) {
        return LAHAR_OK;
    }
    lahar_buffer_init(&stored, lahar_store_allocator(store));
    lahar_status status = read_stored(store, schema->name, &stored, error);
    if (status == LAHAR_OK && stored.size != 0) {
        status = lahar_columns_load(columns, (lahar_bytes){stored.data, stored.size}, catalog,
                                    stream, time_field, lahar_store_allocator(store), error);
    }
    lahar_buffer_deinit(&stored);
    return status;
}

/* --- evaluating ------------------------------------------------------------------------------ */

static bool has_kind(const struct lahar_columns *columns, uint32_t field, lahar_column_kind kind)
{
    for (size_t i = 0; columns != NULL && i < columns->count; i++) {
        if (columns->columns[i].field == field && columns->columns[i].kind == kind) {
            return true;
        }
    }
    return false;
}

bool lahar_columns_materialize(const struct lahar_columns *columns, uint32_t field)
{
    return has_kind(columns, field, LAHAR_COLUMN_MATERIALIZED);
}

bool lahar_columns_have_default(const struct lahar_columns *columns, uint32_t field)
{
    return has_kind(columns, field, LAHAR_COLUMN_DEFAULT);
}

/* What names stand for: values, and the pairs of the attributes. */
struct scope {
    const struct lahar_schema_catalog *catalog;
    const lahar_value *values;
    size_t value_count;
    const lahar_pair *pairs;
    size_t pair_count;
    int64_t time_ns;
};

static struct lahar_operand look_up(void *context, lahar_bytes name)
{
    const struct scope *scope = context;
    const bool is_attribute = name.size > 5 && memcmp(name.data, "attr.", 5) == 0;
    uint32_t field;
    if (is_name(name, "time") && scope->time_ns != LAHAR_TIME_OF_ARRIVAL) {
        return (struct lahar_operand){.kind = LAHAR_OPERAND_TIME, .as.time_ns = scope->time_ns};
    }
    if (!is_attribute && lahar_schema_find_field(scope->catalog, name.data, name.size, &field)) {
        for (size_t i = 0; i < scope->value_count; i++) {
            if (scope->values[i].field == field) {
                return lahar_operand_of(&scope->values[i]);
            }
        }
    }
    if (is_attribute) {
        name = (lahar_bytes){(const char *)name.data + 5, name.size - 5};
    }
    for (size_t i = 0; i < scope->pair_count; i++) {
        const lahar_pair *pair = &scope->pairs[i];
        if (pair->key.size == name.size && memcmp(pair->key.data, name.data, name.size) == 0) {
            return pair->is_null
                       ? (struct lahar_operand){0}
                       : (struct lahar_operand){.kind = LAHAR_OPERAND_TEXT, .as.text = pair->value};
        }
    }
    return (struct lahar_operand){0};
}

/* The column's value as one of its type; type 0: it has none. */
static bool evaluate(struct lahar_column *column, struct scope *scope, struct lahar_arena *arena,
                     lahar_value *value_out)
{
    struct lahar_operand operand;
    *value_out = (lahar_value){.field = column->field, .type = column->type};
    if (!lahar_expression_evaluate(column->expression, look_up, scope, arena, &operand)) {
        return false;
    }
    if (!lahar_operand_to_value(&operand, arena, value_out)) {
        value_out->type = 0;
    }
    return true;
}

bool lahar_columns_fill(struct lahar_columns *columns, const struct lahar_schema_catalog *catalog,
                        struct lahar_record *record)
{
    for (size_t i = 0; columns != NULL && i < columns->count; i++) {
        struct lahar_column *column = &columns->columns[i];
        lahar_value value;
        if (column->kind == LAHAR_COLUMN_ALIAS || lahar_record_has(record, column->field)) {
            continue;
        }
        struct scope scope = {.catalog = catalog,
                              .values = record->values,
                              .value_count = record->value_count,
                              .time_ns = record->time_ns};
        if (record->map_count != 0) {
            scope.pairs = record->maps[0].pairs;
            scope.pair_count = record->maps[0].pair_count;
        }
        if (!evaluate(column, &scope, &record->arena, &value)) {
            return false;
        }
        if (value.type == 0) {
            continue;
        }
        lahar_value *added = lahar_record_add(record, column->field, column->type);
        if (added == NULL) {
            return false;
        }
        added->as = value.as;
        if (column->is_time && value.type == LAHAR_TIME &&
            record->time_ns == LAHAR_TIME_OF_ARRIVAL) {
            record->time_ns = value.as.time_ns;
        }
    }
    return true;
}

bool lahar_column_show(struct lahar_column *column, const struct lahar_schema_catalog *catalog,
                       const lahar_event *event, struct lahar_arena *arena, lahar_value *value_out)
{
    const lahar_value *attributes = lahar_event_find(event, LAHAR_FIELD_ATTRIBUTES);
    struct scope scope = {.catalog = catalog,
                          .values = event->values,
                          .value_count = event->value_count,
                          .time_ns = event->time_ns};
    if (attributes != NULL && !attributes->is_null && attributes->type == LAHAR_MAP) {
        scope.pairs = attributes->as.map.items;
        scope.pair_count = attributes->as.map.count;
    }
    return evaluate(column, &scope, arena, value_out);
}

/* --- changing and listing -------------------------------------------------------------------- */

static lahar_status encode(const lahar_column_spec *specs, size_t count,
                           struct lahar_buffer *stored, lahar_error *error)
{
    lahar_buffer_put_u8(stored, FORM_VERSION);
    lahar_buffer_put_varint(stored, count);
    for (size_t i = 0; i < count; i++) {
        const lahar_column_spec *spec = &specs[i];
        if (spec->name == NULL || spec->name[0] == '\0' || spec->expression == NULL ||
            spec->kind < LAHAR_COLUMN_DEFAULT || spec->kind > LAHAR_COLUMN_ALIAS ||
            (unsigned)spec->type > UINT8_MAX) {
            return lahar_fail(error, LAHAR_INVALID,
                              "a column needs a name, a kind and an expression");
        }
        lahar_buffer_put_u8(stored, (uint8_t)spec->kind);
        lahar_buffer_put_u8(stored, (uint8_t)spec->type);
        lahar_buffer_put_sized(stored, spec->name, strlen(spec->name));
        lahar_buffer_put_sized(stored, spec->expression, strlen(spec->expression));
    }
    return stored->has_failed ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for columns")
                              : LAHAR_OK;
}

lahar_status lahar_column_check(const lahar_column_spec *column, lahar_error *error)
{
    struct lahar_expression *expression = NULL;
    LAHAR_TRY(lahar_expression_create(text_of(column->expression), &lahar_allocator_libc,
                                      &expression, error));
    lahar_expression_destroy(expression);
    return LAHAR_OK;
}

static lahar_status commit_stored(lahar_store *store, const char *stream, lahar_bytes stored,
                                  lahar_error *error)
{
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = LAHAR_DURABILITY_COMMIT,
                                          .deadline_ns = LAHAR_WAIT_FOREVER};
    lahar_batch *batch = NULL;
    LAHAR_TRY(lahar_batch_create(store, &batch, error));
    lahar_status status =
        lahar_batch_add_offset(batch, text_of(LAHAR_COLUMNS_KEY), text_of(stream), stored, error);
    if (status == LAHAR_OK) {
        /* Followers read the definitions anew. */
        (void)pthread_rwlock_wrlock(&store->source_lock);
        status = lahar_batch_commit(batch, &options, NULL, error);
        atomic_fetch_add_explicit(&store->source_epoch, 1, memory_order_release);
        (void)pthread_rwlock_unlock(&store->source_lock);
    }
    lahar_batch_destroy(batch);
    return status;
}

static lahar_status find_stream(lahar_store *store, const char *name,
                                const struct lahar_stream **stream_out, lahar_error *error)
{
    *stream_out = name == NULL
                      ? NULL
                      : lahar_schema_find_stream(lahar_store_catalog(store), name, strlen(name));
    return *stream_out == NULL ? lahar_fail(error, LAHAR_NOT_FOUND, "there is no stream \"%s\"",
                                            name == NULL ? "" : name)
                               : LAHAR_OK;
}

lahar_status lahar_stream_set_columns(lahar_store *store, const char *stream,
                                      const lahar_column_spec *columns, size_t count,
                                      lahar_error *error)
{
    const struct lahar_stream *schema;
    struct lahar_columns compiled = {0};
    struct lahar_buffer stored;
    LAHAR_TRY(lahar_store_check_writable(store, error));
    LAHAR_TRY(find_stream(store, stream, &schema, error));
    if (count > LAHAR_COLUMNS_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "more than %d columns", (int)LAHAR_COLUMNS_MAX);
    }
    lahar_buffer_init(&stored, lahar_store_allocator(store));
    lahar_status status = encode(columns, count, &stored, error);
    if (status == LAHAR_OK) {
        status = lahar_columns_load(&compiled, (lahar_bytes){stored.data, stored.size},
                                    lahar_store_catalog(store), schema->id, NULL,
                                    lahar_store_allocator(store), error);
    }
    if (status == LAHAR_OK) {
        status = commit_stored(
            store, stream, count == 0 ? (lahar_bytes){0} : (lahar_bytes){stored.data, stored.size},
            error);
    }
    lahar_columns_deinit(&compiled);
    lahar_buffer_deinit(&stored);
    return status;
}

/* One stored column as its author gave it; strings in the arena. */
static bool read_spec(struct lahar_reader *reader, struct lahar_arena *arena,
                      lahar_column_spec *spec_out)
{
    const char *strings[2] = {NULL, NULL};
    spec_out->kind = (lahar_column_kind)lahar_read_u8(reader);
    spec_out->type = (lahar_type)lahar_read_u8(reader);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t size = lahar_read_varint(reader);
        const uint8_t *data = lahar_read_bytes(reader, size);
        char *copy = data == NULL ? NULL : lahar_arena_allocate(arena, (size_t)size + 1);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, data, (size_t)size);
        copy[size] = '\0';
        strings[i] = copy;
    }
    spec_out->name = strings[0];
    spec_out->expression = strings[1];
    return true;
}

lahar_status lahar_stream_columns(lahar_store *store, const char *stream,
                                  lahar_column_visitor visit, void *context, lahar_error *error)
{
    const struct lahar_stream *schema;
    struct lahar_buffer stored;
    struct lahar_arena arena;
    LAHAR_TRY(find_stream(store, stream, &schema, error));
    lahar_buffer_init(&stored, lahar_store_allocator(store));
    lahar_arena_init(&arena, lahar_store_allocator(store), 0);
    lahar_status status = read_stored(store, stream, &stored, error);
    if (status == LAHAR_OK && stored.size != 0) {
        struct lahar_reader reader = lahar_reader_of(stored.data, stored.size);
        const uint8_t version = lahar_read_u8(&reader);
        const uint64_t count = lahar_read_varint(&reader);
        status = version == FORM_VERSION && !reader.failed ? LAHAR_OK : damaged(error);
        for (uint64_t i = 0; i < count && status == LAHAR_OK; i++) {
            lahar_column_spec spec;
            status = read_spec(&reader, &arena, &spec) ? visit(context, &spec) : damaged(error);
        }
    }
    lahar_arena_deinit(&arena);
    lahar_buffer_deinit(&stored);
    return status;
}
