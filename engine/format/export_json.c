/* The fields of an event as a JSON object: declared ones under their names with
 * the JSON type that holds them exactly, attributes under "attributes". No key is
 * given twice: pairs of one key become an array, in place of the first. */
#include <math.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/format/export.h"
#include "engine/format/json.h"
#include "engine/format/time_text.h"
#include "engine/format/value_text.h"
#include "io/base/error.h"

#include <xxhash.h>

static void put_string(struct lahar_buffer *out, lahar_bytes value)
{
    lahar_json_put_string(out, value, true);
}

static void put_quoted_text(struct lahar_buffer *out, const lahar_value *value)
{
    lahar_buffer_put_u8(out, '"');
    lahar_value_put_text(out, value);
    lahar_buffer_put_u8(out, '"');
}

static void put_time(struct lahar_buffer *out, int64_t time_ns)
{
    char text[LAHAR_TIME_TEXT_SIZE_MAX];
    lahar_buffer_put_u8(out, '"');
    lahar_buffer_put(out, text, lahar_time_format(time_ns, 9, text));
    lahar_buffer_put_u8(out, '"');
}

static void put_list(struct lahar_buffer *out, const lahar_value *value)
{
    const bool is_uuid = value->type == LAHAR_LIST_UUID;
    const size_t count = is_uuid ? value->as.uuids.count : value->as.keywords.count;
    lahar_buffer_put_u8(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i != 0) {
            lahar_buffer_put_u8(out, ',');
        }
        if (is_uuid) {
            lahar_buffer_put_u8(out, '"');
            lahar_uuid_put_text(out, &value->as.uuids.items[i]);
            lahar_buffer_put_u8(out, '"');
        } else {
            put_string(out, value->as.keywords.items[i]);
        }
    }
    lahar_buffer_put_u8(out, ']');
}

static bool has_same_key(const lahar_pair *a, const lahar_pair *b)
{
    return a->key.size == b->key.size &&
           (a->key.size == 0 || memcmp(a->key.data, b->key.data, a->key.size) == 0);
}

static void put_pair_value(struct lahar_buffer *out, const lahar_pair *pair)
{
    if (pair->is_null) {
        lahar_buffer_put(out, "null", 4);
    } else {
        put_string(out, pair->value);
    }
}

/* For every pair the index of the next pair of the same key, or count; first[i] is
 * whether no earlier pair has it. Both arrays are in the arena. */
static bool link_pairs(const lahar_pair *pairs, size_t count, struct lahar_arena *arena,
                       size_t **next_out, bool **first_out)
{
    size_t slot_count = 16;
    while (slot_count < count * 2) {
        slot_count *= 2;
    }
    size_t *slots = lahar_arena_allocate(arena, slot_count * sizeof *slots); /* last + 1 */
    size_t *next = lahar_arena_allocate(arena, count * sizeof *next);
    bool *first = lahar_arena_allocate(arena, count * sizeof *first);
    if (slots == NULL || next == NULL || first == NULL) {
        return false;
    }
    memset(slots, 0, slot_count * sizeof *slots);
    for (size_t i = 0; i < count; i++) {
        size_t slot = (size_t)XXH3_64bits(pairs[i].key.data, pairs[i].key.size) & (slot_count - 1);
        while (slots[slot] != 0 && !has_same_key(&pairs[slots[slot] - 1], &pairs[i])) {
            slot = (slot + 1) & (slot_count - 1);
        }
        first[i] = slots[slot] == 0;
        next[i] = count;
        if (!first[i]) {
            next[slots[slot] - 1] = i;
        }
        slots[slot] = i + 1;
    }
    *next_out = next;
    *first_out = first;
    return true;
}

static bool put_map(struct lahar_export *export_, const lahar_value *value)
{
    struct lahar_buffer *out = &export_->out;
    const lahar_pair *pairs = value->as.map.items;
    const size_t count = value->as.map.count;
    size_t *next = NULL;
    bool *first = NULL;
    if (!link_pairs(pairs, count, &export_->arena, &next, &first)) {
        return false;
    }
    lahar_buffer_put_u8(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (!first[i]) {
            continue;
        }
        if (i != 0) {
            lahar_buffer_put_u8(out, ',');
        }
        put_string(out, pairs[i].key);
        lahar_buffer_put_u8(out, ':');
        if (next[i] == count) {
            put_pair_value(out, &pairs[i]);
            continue;
        }
        for (size_t j = i; j < count; j = next[j]) {
            lahar_buffer_put_u8(out, j == i ? '[' : ',');
            put_pair_value(out, &pairs[j]);
        }
        lahar_buffer_put_u8(out, ']');
    }
    lahar_buffer_put_u8(out, '}');
    return true;
}

static bool put_value(struct lahar_export *export_, const lahar_value *value)
{
    struct lahar_buffer *out = &export_->out;
    if (value->is_null || (value->type == LAHAR_F64 && !isfinite(value->as.f64))) {
        lahar_buffer_put(out, "null", 4);
        return true;
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
        put_string(out, value->as.bytes);
        return true;
    case LAHAR_BYTES:
        lahar_buffer_put_u8(out, '"');
        lahar_base64_put(out, value->as.bytes);
        lahar_buffer_put_u8(out, '"');
        return true;
    case LAHAR_UUID:
        put_quoted_text(out, value);
        return true;
    case LAHAR_TIME:
        put_time(out, value->as.time_ns);
        return true;
    case LAHAR_LIST_UUID:
    case LAHAR_LIST_KEYWORD:
        put_list(out, value);
        return true;
    case LAHAR_MAP:
        return put_map(export_, value);
    default:
        lahar_value_put_text(out, value);
        return true;
    }
}

lahar_status lahar_export_put_fields(struct lahar_export *export_, const lahar_event *event,
                                     lahar_error *error)
{
    struct lahar_buffer *out = &export_->out;
    const struct lahar_stream *stream = lahar_schema_stream(export_->catalog, event->stream);
    if (stream == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "event %llu: there is no stream %u",
                          (unsigned long long)event->id, event->stream);
    }
    bool has_members = false;
    lahar_buffer_put_u8(out, '{');
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        const struct lahar_stream_field *field = lahar_stream_find_field(stream, value->field);
        const char *name = lahar_schema_field_name(export_->catalog, value->field);
        if (field == NULL || field->is_hidden || name == NULL) {
            continue;
        }
        if (has_members) {
            lahar_buffer_put_u8(out, ',');
        }
        has_members = true;
        put_string(out, (lahar_bytes){name, strlen(name)});
        lahar_buffer_put_u8(out, ':');
        if (!put_value(export_, value)) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write event %llu",
                              (unsigned long long)event->id);
        }
    }
    lahar_buffer_put_u8(out, '}');
    return LAHAR_OK;
}

/* --- columns ------------------------------------------------------------------------- */

static lahar_status find_columns(struct lahar_export *export_, const lahar_event *event,
                                 lahar_error *error)
{
    if (export_->columns_stream == event->stream || export_->store == NULL) {
        return LAHAR_OK;
    }
    lahar_columns_deinit(&export_->columns);
    export_->columns_stream = LAHAR_ANY_STREAM;
    LAHAR_TRY(lahar_columns_find(&export_->columns, export_->store, event->stream, NULL, error));
    export_->columns_stream = event->stream;
    return LAHAR_OK;
}

static bool stands_in_document(const struct lahar_buffer *used, uint32_t field)
{
    struct lahar_reader reader = lahar_reader_of(used->data, used->size);
    while (lahar_reader_left(&reader) != 0) {
        if (lahar_read_u32(&reader) == field) {
            return true;
        }
    }
    return false;
}

static bool put_member(struct lahar_export *export_, lahar_bytes name, const lahar_value *value)
{
    struct lahar_buffer *out = &export_->out;
    if (out->size == 0) {
        return false;
    }
    out->size--;
    if (out->size != 0 && out->data[out->size - 1] != '{') {
        lahar_buffer_put_u8(out, ',');
    }
    put_string(out, name);
    lahar_buffer_put_u8(out, ':');
    const bool is_put = put_value(export_, value);
    lahar_buffer_put_u8(out, '}');
    return is_put;
}

lahar_status lahar_export_put_columns(struct lahar_export *export_, const lahar_event *event,
                                      bool is_document, lahar_error *error)
{
    LAHAR_TRY(find_columns(export_, event, error));
    for (size_t i = 0; i < export_->columns.count; i++) {
        struct lahar_column *column = &export_->columns.columns[i];
        lahar_value computed = {0};
        const lahar_value *value = &computed;
        bool is_done = true;
        if (column->kind == LAHAR_COLUMN_ALIAS) {
            is_done =
                lahar_column_show(column, export_->catalog, event, &export_->arena, &computed);
            value = computed.type == 0 ? NULL : &computed;
        } else {
            value = is_document && !stands_in_document(&export_->used, column->field)
                        ? lahar_event_find(event, column->field)
                        : NULL;
        }
        if (is_done && value != NULL) {
            is_done = put_member(export_, column->name, value);
        }
        if (!is_done) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write event %llu",
                              (unsigned long long)event->id);
        }
    }
    return LAHAR_OK;
}
