/* A text reader that encodes its events as rows, as a store would, and an export
 * that writes them back; what a test needs around one file. */
#ifndef LAHAR_TESTS_TEXT_FIXTURE_H
#define LAHAR_TESTS_TEXT_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/event/schema.h"
#include "engine/format/export.h"
#include "engine/format/text_reader.h"

enum {
    FIXTURE_ERRORS_MAX = 64
};

struct fixture {
    struct lahar_schema_catalog *catalog;
    struct lahar_text_reader_options options;
    struct lahar_buffer rows;
    struct lahar_buffer out;
    struct lahar_arena arena;
    size_t event_count;
    size_t error_count;
    uint64_t error_lines[FIXTURE_ERRORS_MAX];
    uint64_t error_offsets[FIXTURE_ERRORS_MAX];
    char error_text[256]; /* of the last one */
};

static inline lahar_status fixture_emit(void *context, const lahar_event *event, uint64_t offset,
                                        lahar_error *error)
{
    struct fixture *f = context;
    (void)offset;
    f->event_count++;
    return lahar_row_encode(&f->rows, f->catalog, event, error);
}

static inline void fixture_on_error(void *context, uint64_t line, uint64_t offset,
                                    const char *message)
{
    struct fixture *f = context;
    if (f->error_count < FIXTURE_ERRORS_MAX) {
        f->error_lines[f->error_count] = line;
        f->error_offsets[f->error_count] = offset;
    }
    f->error_count++;
    (void)snprintf(f->error_text, sizeof f->error_text, "%s", message);
}

static inline void fixture_init_fields(struct fixture *f, lahar_format format, lahar_schema schema,
                                       const lahar_field_spec *fields, size_t field_count)
{
    lahar_error error = {0};
    uint32_t stream = 0;
    memset(f, 0, sizeof *f);
    cr_assert_eq(lahar_schema_catalog_create(&lahar_allocator_libc, &f->catalog, &error), LAHAR_OK);
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "s",
                                    .schema = schema,
                                    .fields = fields,
                                    .field_count = field_count};
    cr_assert_eq(lahar_schema_add_stream(f->catalog, &spec, &stream, &error), LAHAR_OK, "%s",
                 error.message);
    lahar_buffer_init(&f->rows, &lahar_allocator_libc);
    lahar_buffer_init(&f->out, &lahar_allocator_libc);
    lahar_arena_init(&f->arena, &lahar_allocator_libc, 0);
    f->options = (struct lahar_text_reader_options){
        .allocator = &lahar_allocator_libc,
        .catalog = f->catalog,
        .stream = stream,
        .format = format,
        .record_size_max = 16 * 1024 * 1024,
        .emit = fixture_emit,
        .emit_context = f,
        .on_error = fixture_on_error,
        .on_error_context = f,
    };
}

static inline void fixture_init(struct fixture *f, lahar_format format)
{
    fixture_init_fields(f, format, LAHAR_SCHEMA_LOG, NULL, 0);
}

static inline void fixture_deinit(struct fixture *f)
{
    lahar_buffer_deinit(&f->rows);
    lahar_buffer_deinit(&f->out);
    lahar_arena_deinit(&f->arena);
    lahar_schema_catalog_destroy(f->catalog);
}

static inline void fixture_clear(struct fixture *f)
{
    lahar_buffer_clear(&f->rows);
    f->event_count = 0;
    f->error_count = 0;
}

/* Reads the bytes as one file in pieces; 0: in one. */
static inline void fixture_read_bytes(struct fixture *f, const void *data, size_t size,
                                      size_t piece)
{
    struct lahar_text_reader *reader = NULL;
    lahar_error error = {0};
    const uint8_t *p = data;
    cr_assert_eq(lahar_text_reader_create(&f->options, &reader, &error), LAHAR_OK, "%s",
                 error.message);
    const size_t step = piece == 0 ? size : piece;
    for (size_t at = 0; at < size; at += step) {
        const size_t left = size - at;
        cr_assert_eq(lahar_text_reader_write(reader, p + at, left < step ? left : step, &error),
                     LAHAR_OK, "%s", error.message);
    }
    cr_assert_eq(lahar_text_reader_finish(reader, &error), LAHAR_OK, "%s", error.message);
    cr_assert_eq(lahar_text_reader_error_count(reader), f->error_count);
    cr_assert_eq(lahar_text_reader_offset(reader), size);
    lahar_text_reader_destroy(reader);
}

static inline void fixture_read(struct fixture *f, const char *text)
{
    fixture_read_bytes(f, text, strlen(text), 0);
}

/* Event number index, valid until the next call. */
static inline lahar_event fixture_event(struct fixture *f, size_t index)
{
    lahar_event event = {0};
    lahar_error error = {0};
    size_t at = 0;
    cr_assert_lt(index, f->event_count);
    for (size_t i = 0; i < index; i++) {
        at += lahar_row_size(f->rows.data + at, f->rows.size - at);
    }
    lahar_arena_reset(&f->arena);
    const uint32_t size = lahar_row_size(f->rows.data + at, f->rows.size - at);
    cr_assert_eq(lahar_row_decode(f->rows.data + at, size, &f->arena, &event, &error), LAHAR_OK,
                 "%s", error.message);
    return event;
}

/* All events in turn through one export; as raw bytes, or as JSON lines. Terminated. */
static inline const char *fixture_export(struct fixture *f, bool as_json, size_t *size_out)
{
    struct lahar_export *export_ = NULL;
    lahar_error error = {0};
    lahar_buffer_clear(&f->out);
    cr_assert_eq(lahar_export_create(&lahar_allocator_libc, f->catalog, &export_, &error),
                 LAHAR_OK);
    size_t at = 0;
    for (size_t i = 0; i < f->event_count; i++) {
        lahar_event event = {0};
        lahar_bytes bytes = {0};
        const uint32_t size = lahar_row_size(f->rows.data + at, f->rows.size - at);
        lahar_arena_reset(&f->arena);
        cr_assert_eq(lahar_row_decode(f->rows.data + at, size, &f->arena, &event, &error),
                     LAHAR_OK);
        at += size;
        const lahar_status status = as_json ? lahar_export_json(export_, &event, &bytes, &error)
                                            : lahar_export_raw(export_, &event, &bytes, &error);
        cr_assert_eq(status, LAHAR_OK, "%s", error.message);
        lahar_buffer_put(&f->out, bytes.data, bytes.size);
        if (as_json) {
            lahar_buffer_put_u8(&f->out, '\n');
        }
    }
    lahar_export_close(export_);
    lahar_buffer_put_u8(&f->out, 0);
    cr_assert_not(f->out.has_failed);
    if (size_out != NULL) {
        *size_out = f->out.size - 1;
    }
    return (const char *)f->out.data;
}

static inline const char *fixture_raw(struct fixture *f)
{
    return fixture_export(f, false, NULL);
}

static inline const char *fixture_json(struct fixture *f)
{
    return fixture_export(f, true, NULL);
}

/* Whether value holds exactly these bytes. */
static inline bool bytes_equal(lahar_bytes value, const char *text)
{
    return value.size == strlen(text) && memcmp(value.data, text, value.size) == 0;
}

static inline lahar_bytes field_bytes(const lahar_event *event, uint32_t field)
{
    const lahar_value *value = lahar_event_find(event, field);
    return value == NULL ? (lahar_bytes){0} : value->as.bytes;
}

/* The nth pair of that key; NULL when there is none. */
static inline const lahar_pair *find_attribute(const lahar_event *event, const char *key,
                                               size_t number)
{
    const lahar_value *map = lahar_event_find(event, LAHAR_FIELD_ATTRIBUTES);
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        if (bytes_equal(map->as.map.items[i].key, key) && number-- == 0) {
            return &map->as.map.items[i];
        }
    }
    return NULL;
}

static inline bool has_attribute(const lahar_event *event, const char *key, const char *value)
{
    const lahar_pair *pair = find_attribute(event, key, 0);
    return pair != NULL && !pair->is_null && bytes_equal(pair->value, value);
}

#endif
