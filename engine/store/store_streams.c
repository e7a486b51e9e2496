/* Streams and field names: the catalog as readers see it, changed through the manifest.
 *
 * A new stream is first tried on a catalog of its own, which says what would be
 * interned; that is made durable; only then does the store's catalog take it, so that
 * no batch can name a stream that a crash could forget. */
#include <string.h>

#include "engine/event/row.h"
#include "engine/store/manifest_copy.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

/* Puts the records of what trial has and the manifest has not. */
static void put_new_names(struct lahar_buffer *records, const struct lahar_manifest_state *state,
                          const struct lahar_schema_catalog *trial, const lahar_stream_spec *spec)
{
    const uint32_t field_count = lahar_schema_field_count(trial);
    for (uint32_t field = (uint32_t)state->field_count; field < field_count; field++) {
        lahar_manifest_put_field(records, field, lahar_schema_field_name(trial, field));
    }
    const struct lahar_manifest_stream stream = {.name = spec->name,
                                                 .schema = spec->schema,
                                                 .fields = spec->fields,
                                                 .field_count = (uint32_t)spec->field_count};
    lahar_manifest_put_stream(records, (uint32_t)state->stream_count, &stream);
}

/* With the manifest's lock held. */
static lahar_status create_locked(lahar_store *store, const lahar_stream_spec *spec,
                                  uint32_t *stream_out, lahar_error *error)
{
    struct lahar_manifest *manifest = store->manifest;
    struct lahar_schema_catalog *trial = NULL;
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    lahar_status status = lahar_schema_catalog_create(&store->allocator, &trial, error);
    if (status == LAHAR_OK) {
        status = lahar_manifest_state_catalog(&manifest->state, trial, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_schema_add_stream(trial, spec, stream_out, error);
    }
    if (status == LAHAR_OK) {
        put_new_names(&records, &manifest->state, trial, spec);
        status = lahar_store_commit_locked(store, &records, error);
    }
    if (status == LAHAR_OK || status == LAHAR_EXISTS) {
        /* Also after EXISTS: memory may have been refused here the last time. */
        const lahar_status known =
            lahar_manifest_state_catalog(&manifest->state, store->catalog, error);
        status = known == LAHAR_OK ? status : known;
    }
    lahar_buffer_deinit(&records);
    lahar_schema_catalog_destroy(trial);
    return status;
}

lahar_status lahar_stream_create(lahar_store *store, const lahar_stream_spec *spec,
                                 uint32_t *stream_out, lahar_error *error)
{
    uint32_t stream = 0;
    if (stream_out != NULL) {
        *stream_out = 0;
    }
    LAHAR_TRY(lahar_store_check_writable(store, error));
    if (spec == NULL || spec->struct_size < sizeof *spec || spec->name == NULL ||
        (spec->field_count != 0 && spec->fields == NULL)) {
        return lahar_fail(error, LAHAR_INVALID, "the stream's specification is incomplete");
    }
    (void)pthread_mutex_lock(&store->manifest_lock);
    const lahar_status status = create_locked(store, spec, &stream, error);
    lahar_error copying = {0};
    if (status == LAHAR_OK) {
        (void)lahar_manifest_copy_write(store->manifest, store->events_directory, &copying);
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    if (copying.status != LAHAR_OK) {
        lahar_store_log(store, LAHAR_LOG_WARNING, "copy of the names: %s", copying.message);
    }
    if (stream_out != NULL) {
        *stream_out = stream;
    }
    return status;
}

lahar_status lahar_stream_find(lahar_store *store, const char *name, uint32_t *stream_out,
                               lahar_error *error)
{
    *stream_out = 0;
    const struct lahar_stream *stream =
        lahar_schema_find_stream(store->catalog, name, strlen(name));
    if (stream == NULL) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "there is no stream \"%s\"", name);
    }
    *stream_out = stream->id;
    return LAHAR_OK;
}

static const struct lahar_stream *find_stream(lahar_store *store, uint32_t stream,
                                              lahar_error *error)
{
    const struct lahar_stream *found = lahar_schema_stream(store->catalog, stream);
    if (found == NULL) {
        (void)lahar_fail(error, LAHAR_NOT_FOUND, "there is no stream %u", stream);
    }
    return found;
}

static void count_event(lahar_stream_info *info, uint64_t first_id, uint64_t last_id,
                        uint64_t count)
{
    if (info->event_count == 0 || first_id < info->first_id) {
        info->first_id = first_id;
    }
    if (last_id > info->last_id) {
        info->last_id = last_id;
    }
    info->event_count += count;
}

static void count_batch(lahar_stream_info *info, const struct lahar_resident_batch *batch)
{
    const uint8_t *row = batch->rows;
    size_t left = batch->rows_size;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const uint32_t size = lahar_row_size(row, left);
        if (size == 0) {
            return;
        }
        if (lahar_load_u32(row + 4) == info->stream) {
            count_event(info, batch->first_id + i, batch->first_id + i, 1);
        }
        row += size;
        left -= size;
    }
}

lahar_status lahar_stream_info_get(lahar_store *store, uint32_t stream, lahar_stream_info *info_out,
                                   lahar_error *error)
{
    *info_out = (lahar_stream_info){0};
    const struct lahar_stream *found = find_stream(store, stream, error);
    if (found == NULL) {
        return LAHAR_NOT_FOUND;
    }
    lahar_stream_info info = {.name = found->name,
                              .stream = stream,
                              .schema = found->schema,
                              .field_count = found->field_count};
    struct lahar_snapshot *snapshot = NULL;
    LAHAR_TRY(lahar_snapshot_take(store, &snapshot, error));
    const size_t segment_count = lahar_snapshot_segment_count(snapshot);
    for (size_t i = 0; i < segment_count; i++) {
        const struct lahar_segment_info *segment =
            lahar_segment_describe(lahar_snapshot_segment(snapshot, i)->segment);
        if (segment->stream == stream) {
            count_event(&info, segment->first_id, segment->last_id, segment->event_count);
        }
    }
    const size_t batch_count = lahar_snapshot_batch_count(snapshot);
    for (size_t i = 0; i < batch_count; i++) {
        count_batch(&info, lahar_snapshot_batch(snapshot, i));
    }
    lahar_snapshot_release(snapshot);
    *info_out = info;
    return LAHAR_OK;
}

lahar_status lahar_stream_field(lahar_store *store, uint32_t stream, size_t index,
                                lahar_field_info *info_out, lahar_error *error)
{
    *info_out = (lahar_field_info){0};
    const struct lahar_stream *found = find_stream(store, stream, error);
    if (found == NULL) {
        return LAHAR_NOT_FOUND;
    }
    if (index >= found->field_count) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "stream \"%s\" has %u fields, not %zu",
                          found->name, found->field_count, index + 1);
    }
    const struct lahar_stream_field *field = &found->fields[index];
    *info_out = (lahar_field_info){.name = lahar_schema_field_name(store->catalog, field->field),
                                   .field = field->field,
                                   .type = field->type,
                                   .not_indexed = !field->is_indexed,
                                   .is_hidden = field->is_hidden};
    return LAHAR_OK;
}

lahar_status lahar_field_id(lahar_store *store, const char *name, uint32_t *field_out,
                            lahar_error *error)
{
    *field_out = 0;
    if (!lahar_schema_find_field(store->catalog, name, strlen(name), field_out)) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "no stream declares a field \"%s\"", name);
    }
    return LAHAR_OK;
}

const char *lahar_field_name(lahar_store *store, uint32_t field)
{
    return lahar_schema_field_name(store->catalog, field);
}

const char *lahar_stream_name(lahar_store *store, uint32_t stream)
{
    const struct lahar_stream *found = lahar_schema_stream(store->catalog, stream);
    return found == NULL ? NULL : found->name;
}
