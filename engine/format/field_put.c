/* Names and values of text into fields, and the names that columns without a header have. */
#include <stdio.h>
#include <string.h>

#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

enum lahar_record_put lahar_text_reader_put_where(struct lahar_text_reader *reader,
                                                  const struct lahar_field_entry *entry,
                                                  bool is_filled, lahar_bytes name,
                                                  lahar_bytes value, bool is_null)
{
    struct lahar_record *record = &reader->record;
    if (entry != NULL && entry->is_time && !is_null) {
        lahar_record_take_time(record, value);
    }
    if (!is_filled) {
        return lahar_record_add_pair(record, 0, name, value, is_null) ? LAHAR_PUT_PAIR
                                                                      : LAHAR_PUT_NO_MEMORY;
    }
    if (is_null) {
        return lahar_record_put_null(record, entry) ? LAHAR_PUT_EXACT : LAHAR_PUT_NO_MEMORY;
    }
    return lahar_record_put_text(record, entry, value);
}

enum lahar_record_put lahar_text_reader_put_entry(struct lahar_text_reader *reader,
                                                  const struct lahar_field_entry *entry,
                                                  lahar_bytes name, lahar_bytes value, bool is_null)
{
    const bool is_filled = entry != NULL && entry->is_declared && entry->type != LAHAR_MAP &&
                           !lahar_record_has(&reader->record, entry->field);
    return lahar_text_reader_put_where(reader, entry, is_filled, name, value, is_null);
}

enum lahar_record_put lahar_text_reader_put(struct lahar_text_reader *reader, lahar_bytes name,
                                            lahar_bytes value, bool is_null)
{
    return lahar_text_reader_put_entry(
        reader, lahar_field_map_find(&reader->fields, name.data, name.size), name, value, is_null);
}

lahar_status lahar_text_reader_put_or_say(struct lahar_text_reader *reader, lahar_bytes name,
                                          lahar_bytes value, bool is_null, char *message)
{
    switch (lahar_text_reader_put(reader, name, value, is_null)) {
    case LAHAR_PUT_REFUSED: {
        const int name_size = name.size > 60 ? 60 : (int)name.size;
        const int size = value.size > 40 ? 40 : (int)value.size;
        (void)snprintf(message, LAHAR_LINE_MESSAGE_SIZE, "\"%.*s\" does not fit its field: %.*s",
                       name_size, name_size == 0 ? "" : (const char *)name.data, size,
                       size == 0 ? "" : (const char *)value.data);
        return LAHAR_INVALID;
    }
    case LAHAR_PUT_NO_MEMORY:
        return LAHAR_NO_MEMORY;
    default:
        return LAHAR_OK;
    }
}

/* --- columns ------------------------------------------------------------------------- */

/* Appends the columns' names to names, and counts them. */
static size_t put_given(lahar_bytes given, struct lahar_buffer *names)
{
    const char *p = given.data;
    size_t count = 1;
    for (size_t i = 0; i < given.size; i++) {
        count += p[i] == ',';
        lahar_buffer_put_u8(names, p[i] == ',' ? 0 : (uint8_t)p[i]);
    }
    lahar_buffer_put_u8(names, 0);
    return count;
}

/* The built-in fields of a schema are at the start of the names of a store. */
static bool is_of_schema(const struct lahar_text_reader *reader, const char *name)
{
    static const char *const log_fields[] = {"message", "level", "attributes"};
    for (size_t i = 0; i < sizeof log_fields / sizeof log_fields[0]; i++) {
        if (strcmp(name, log_fields[i]) == 0) {
            return reader->fields.stream->schema == LAHAR_SCHEMA_LOG;
        }
    }
    return name[0] == '_';
}

static size_t put_declared(const struct lahar_text_reader *reader, struct lahar_buffer *names)
{
    const struct lahar_stream *stream = reader->fields.stream;
    size_t count = 0;
    for (uint32_t i = 0; i < stream->field_count; i++) {
        const char *name =
            lahar_schema_field_name(reader->options.catalog, stream->fields[i].field);
        if (stream->fields[i].is_hidden || is_of_schema(reader, name)) {
            continue;
        }
        lahar_buffer_put(names, name, strlen(name) + 1);
        count++;
    }
    return count;
}

static lahar_bytes trimmed(const char *name)
{
    while (*name == ' ') {
        name++;
    }
    size_t size = strlen(name);
    while (size != 0 && name[size - 1] == ' ') {
        size--;
    }
    return (lahar_bytes){name, size};
}

lahar_status lahar_column_list(const struct lahar_text_reader *reader, struct lahar_buffer *names,
                               lahar_bytes **columns_out, size_t *count_out, lahar_error *error)
{
    const lahar_bytes given = reader->format.columns;
    const size_t count = given.size != 0 ? put_given(given, names) : put_declared(reader, names);
    lahar_bytes *columns =
        lahar_allocate_zeroed(reader->options.allocator, count + 1, sizeof *columns);
    if (columns == NULL || names->has_failed) {
        lahar_release(reader->options.allocator, columns);
        return lahar_text_reader_no_memory(error);
    }
    const char *at = (const char *)names->data;
    for (size_t i = 0; i < count; i++) {
        columns[i] = trimmed(at);
        at += strlen(at) + 1;
    }
    *columns_out = columns;
    *count_out = count;
    return LAHAR_OK;
}
