/* Events back into the bytes of their file; the kind of record decides:
 * kept bytes, a document, a row, a line, and for an event that came from no text its
 * fields as a JSON line. */
#include "engine/format/export.h"

#include "engine/event/row.h"
#include "engine/format/document.h"
#include "engine/format/framing.h"
#include "engine/format/shape.h"
#include "engine/format/table_shape.h"
#include "engine/provenance/nifi_json.h"
#include "io/base/error.h"
#include "lahar/read.h"

lahar_status lahar_export_create(const lahar_allocator *allocator,
                                 const struct lahar_schema_catalog *catalog,
                                 struct lahar_export **export_out, lahar_error *error)
{
    struct lahar_export *export_ = lahar_allocate_zeroed(allocator, 1, sizeof *export_);
    if (export_ == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an export");
    }
    export_->allocator = allocator;
    export_->catalog = catalog;
    export_->provenance_stream = LAHAR_ANY_STREAM;
    lahar_arena_init(&export_->arena, allocator, 0);
    lahar_buffer_init(&export_->out, allocator);
    lahar_buffer_init(&export_->path, allocator);
    lahar_buffer_init(&export_->header, allocator);
    lahar_buffer_init(&export_->used, allocator);
    export_->columns_stream = LAHAR_ANY_STREAM;
    const struct lahar_table_style style = lahar_table_style_of(false);
    lahar_table_parser_init(&export_->table, allocator, &style);
    *export_out = export_;
    return LAHAR_OK;
}

void lahar_export_close(lahar_export *export_)
{
    if (export_ == NULL) {
        return;
    }
    lahar_arena_deinit(&export_->arena);
    lahar_buffer_deinit(&export_->out);
    lahar_buffer_deinit(&export_->path);
    lahar_buffer_deinit(&export_->header);
    lahar_buffer_deinit(&export_->used);
    lahar_columns_deinit(&export_->columns);
    lahar_table_parser_deinit(&export_->table);
    lahar_release(export_->allocator, export_);
}

static lahar_bytes bytes_of(const lahar_event *event, uint32_t field)
{
    const lahar_value *value = lahar_event_find(event, field);
    const bool has_bytes =
        value != NULL && !value->is_null &&
        (value->type == LAHAR_KEYWORD || value->type == LAHAR_TEXT || value->type == LAHAR_BYTES);
    return has_bytes ? value->as.bytes : (lahar_bytes){0};
}

static bool has_text(const lahar_event *event, uint32_t field)
{
    const lahar_value *value = lahar_event_find(event, field);
    return value != NULL && !value->is_null;
}

static uint8_t shape_kind(lahar_bytes shape)
{
    return shape.size == 0 ? 0 : *(const uint8_t *)shape.data;
}

/* The header record where a table begins: in front of a row whose header is another one
 * than the last row's. */
static void put_header(struct lahar_export *export_, lahar_bytes shape)
{
    struct lahar_buffer *current = &export_->header;
    lahar_bytes header;
    if (!lahar_table_shape_header(shape, &header) || header.size == 0 ||
        (current->size == header.size && header.size != 0 &&
         memcmp(current->data, header.data, header.size) == 0)) {
        return;
    }
    lahar_buffer_clear(current);
    lahar_buffer_put(current, header.data, header.size);
    lahar_buffer_put(&export_->out, header.data, header.size);
}

/* The record as it was kept or, without its own bytes, a line. */
static lahar_status put_framed(struct lahar_export *export_, const lahar_event *event,
                               lahar_bytes text, lahar_error *error)
{
    struct lahar_framing framing;
    if (!lahar_framing_decode(bytes_of(event, LAHAR_FIELD_FRAMING), &framing) ||
        !lahar_framing_put_before(&framing, &export_->out)) {
        return lahar_fail(error, LAHAR_CORRUPT, "event %llu: _framing is damaged",
                          (unsigned long long)event->id);
    }
    lahar_buffer_put(&export_->out, text.data, text.size);
    lahar_framing_put_behind(&framing, &export_->out);
    return LAHAR_OK;
}

static lahar_status put_document(struct lahar_export *export_, const lahar_event *event,
                                 lahar_bytes shape, bool make_valid, lahar_error *error)
{
    const lahar_bytes skeleton = {(const uint8_t *)shape.data + 1, shape.size - 1};
    lahar_buffer_clear(&export_->used);
    return lahar_shape_write(event, skeleton, make_valid, &export_->arena, &export_->path,
                             &export_->used, &export_->out, error);
}

static lahar_status put_raw(struct lahar_export *export_, const lahar_event *event,
                            lahar_error *error)
{
    const lahar_bytes shape = bytes_of(event, LAHAR_FIELD_SHAPE);
    const uint8_t kind = shape_kind(shape);
    if (lahar_table_shape_is(kind)) {
        put_header(export_, shape);
    }
    if (has_text(event, LAHAR_FIELD_RAW_RECORD)) {
        return put_framed(export_, event, bytes_of(event, LAHAR_FIELD_RAW_RECORD), error);
    }
    switch (kind) {
    case LAHAR_SHAPE_CSV:
    case LAHAR_SHAPE_TSV:
    case LAHAR_SHAPE_TABLE:
        return lahar_table_shape_write(event, shape, &export_->table, &export_->arena,
                                       &export_->out, error);
    case LAHAR_SHAPE_JSON:
        LAHAR_TRY(put_document(export_, event, shape, false, error));
        break;
    default:
        if (has_text(event, LAHAR_FIELD_MESSAGE)) {
            return put_framed(export_, event, bytes_of(event, LAHAR_FIELD_MESSAGE), error);
        }
        LAHAR_TRY(lahar_export_put_fields(export_, event, error));
        break;
    }
    lahar_buffer_put_u8(&export_->out, '\n');
    return LAHAR_OK;
}

static lahar_status put_json(struct lahar_export *export_, const lahar_event *event,
                             lahar_error *error)
{
    const lahar_bytes shape = bytes_of(event, LAHAR_FIELD_SHAPE);
    const bool is_document = shape_kind(shape) == LAHAR_SHAPE_JSON;
    if (is_document) {
        LAHAR_TRY(put_document(export_, event, shape, true, error));
    } else {
        LAHAR_TRY(lahar_export_put_fields(export_, event, error));
    }
    return lahar_export_put_columns(export_, event, is_document, error);
}

typedef lahar_status (*put_function)(struct lahar_export *export_, const lahar_event *event,
                                     lahar_error *error);

static lahar_status export_event(struct lahar_export *export_, const lahar_event *event,
                                 put_function put, lahar_bytes *bytes_out, lahar_error *error)
{
    lahar_buffer_clear(&export_->out);
    lahar_arena_reset(&export_->arena);
    LAHAR_TRY(put(export_, event, error));
    if (export_->out.has_failed || export_->header.has_failed || export_->used.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write event %llu",
                          (unsigned long long)event->id);
    }
    *bytes_out = (lahar_bytes){export_->out.data, export_->out.size};
    return LAHAR_OK;
}

lahar_status lahar_export_raw(lahar_export *export_, const lahar_event *event,
                              lahar_bytes *bytes_out, lahar_error *error)
{
    return export_event(export_, event, put_raw, bytes_out, error);
}

lahar_status lahar_export_json(lahar_export *export_, const lahar_event *event,
                               lahar_bytes *bytes_out, lahar_error *error)
{
    return export_event(export_, event, put_json, bytes_out, error);
}

static lahar_status put_nifi_json(struct lahar_export *export_, const lahar_event *event,
                                  lahar_error *error)
{
    if (export_->provenance_stream != event->stream) {
        export_->provenance_stream = LAHAR_ANY_STREAM;
        LAHAR_TRY(
            lahar_prov_fields_find(export_->catalog, event->stream, &export_->provenance, error));
        export_->provenance_stream = event->stream;
    }
    return lahar_nifi_put(&export_->provenance, event, &export_->out, error);
}

lahar_status lahar_export_nifi_json(lahar_export *export_, const lahar_event *event,
                                    lahar_bytes *bytes_out, lahar_error *error)
{
    return export_event(export_, event, put_nifi_json, bytes_out, error);
}
