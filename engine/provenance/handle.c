#include "engine/provenance/handle.h"

#include <string.h>

#include "engine/format/utf8.h"
#include "engine/store/snapshot.h"
#include "io/base/error.h"

enum {
    ATTRIBUTE_LENGTH_DEFAULT = 65536,
    ATTRIBUTE_LENGTH_LEAST = 36 /* a uuid is always shown whole */
};

void lahar_provenance_options_init(lahar_provenance_options *options)
{
    *options = (lahar_provenance_options){.struct_size = sizeof *options,
                                          .stream = "provenance",
                                          .attribute_length_max = ATTRIBUTE_LENGTH_DEFAULT};
}

static lahar_status find_stream(lahar_store *store, const char *name, uint32_t *stream_out,
                                lahar_error *error)
{
    lahar_error reason = {.status = LAHAR_OK};
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = name, .schema = LAHAR_SCHEMA_PROVENANCE};
    if (lahar_stream_find(store, name, stream_out, &reason) == LAHAR_OK) {
        return LAHAR_OK;
    }
    const lahar_status status = lahar_stream_create(store, &spec, stream_out, error);
    if (status == LAHAR_READ_ONLY) {
        lahar_error_clear(error);
        return lahar_fail(error, LAHAR_NOT_FOUND, "there is no stream \"%s\"", name);
    }
    return status == LAHAR_EXISTS ? LAHAR_OK : status;
}

static lahar_status copy_containers(struct lahar_provenance *provenance,
                                    const lahar_provenance_options *options, lahar_error *error)
{
    const size_t count = options->container_count;
    provenance->containers =
        lahar_allocate_zeroed(provenance->allocator, count + 1, sizeof *provenance->containers);
    if (provenance->containers == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for containers");
    }
    for (size_t i = 0; i < count; i++) {
        const lahar_container *from = &options->containers[i];
        const size_t name_size = strlen(from->name) + 1;
        const size_t directory_size = strlen(from->directory) + 1;
        char *copy = lahar_allocate(provenance->allocator, name_size + directory_size);
        if (copy == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for containers");
        }
        memcpy(copy, from->name, name_size);
        memcpy(copy + name_size, from->directory, directory_size);
        provenance->containers[i] = (struct lahar_container_entry){copy, copy + name_size};
        provenance->container_count++;
    }
    return LAHAR_OK;
}

static lahar_status take_options(struct lahar_provenance *provenance,
                                 const lahar_provenance_options *options, lahar_error *error)
{
    lahar_provenance_options *own = &provenance->options;
    lahar_provenance_options_init(own);
    if (options != NULL) {
        if (options->struct_size < sizeof(size_t)) {
            return lahar_fail(error, LAHAR_INVALID,
                              "options must be set up by lahar_provenance_options_init");
        }
        memcpy(own, options,
               options->struct_size < sizeof *own ? options->struct_size : sizeof *own);
    }
    if (own->attribute_length_max == 0) {
        own->attribute_length_max = ATTRIBUTE_LENGTH_DEFAULT;
    } else if (own->attribute_length_max < ATTRIBUTE_LENGTH_LEAST) {
        own->attribute_length_max = ATTRIBUTE_LENGTH_LEAST;
    }
    if (own->content != NULL) {
        provenance->content = *own->content;
        provenance->has_content_store = true;
    }
    LAHAR_TRY(copy_containers(provenance, own, error));
    LAHAR_TRY(find_stream(provenance->store, own->stream == NULL ? "provenance" : own->stream,
                          &provenance->stream, error));
    return lahar_prov_fields_find(provenance->catalog, provenance->stream, &provenance->fields,
                                  error);
}

lahar_status lahar_provenance_open(lahar_store *store, const lahar_provenance_options *options,
                                   lahar_provenance **provenance_out, lahar_error *error)
{
    const lahar_allocator *allocator = lahar_store_allocator(store);
    *provenance_out = NULL;
    struct lahar_provenance *provenance = lahar_allocate_zeroed(allocator, 1, sizeof *provenance);
    if (provenance == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a provenance handle");
    }
    provenance->store = store;
    provenance->allocator = allocator;
    provenance->catalog = lahar_store_catalog(store);
    provenance->io = lahar_store_io(store);
    LAHAR_ASSERT(pthread_mutex_init(&provenance->latest_lock, NULL) == 0);
    lahar_resident_names_init(&provenance->names);
    const lahar_status status = take_options(provenance, options, error);
    if (status != LAHAR_OK) {
        lahar_provenance_close(provenance);
        return status;
    }
    *provenance_out = provenance;
    return LAHAR_OK;
}

void lahar_provenance_close(lahar_provenance *provenance)
{
    if (provenance == NULL) {
        return;
    }
    for (size_t i = 0; i < provenance->container_count; i++) {
        lahar_release(provenance->allocator, provenance->containers[i].name);
    }
    lahar_release(provenance->allocator, provenance->containers);
    lahar_latest_deinit(&provenance->latest, provenance->allocator);
    (void)pthread_mutex_destroy(&provenance->latest_lock);
    lahar_resident_names_deinit(&provenance->names, provenance->allocator);
    lahar_release(provenance->allocator, provenance);
}

uint32_t lahar_provenance_stream(const lahar_provenance *provenance)
{
    return provenance->stream;
}

/* --- appending --------------------------------------------------------------------------- */

lahar_status lahar_prov_stage(struct lahar_provenance *provenance, lahar_batch *batch,
                              const lahar_prov_event *event, struct lahar_arena *arena,
                              lahar_error *error)
{
    struct lahar_prov_values values;
    LAHAR_TRY(lahar_prov_encode(&provenance->fields, event, arena, &values, error));
    const lahar_event raw = {.time_ns = event->time_ns,
                             .stream = provenance->stream,
                             .values = values.items,
                             .value_count = values.count};
    return lahar_batch_add(batch, &raw, error);
}

lahar_status lahar_prov_append(lahar_provenance *provenance, const lahar_prov_event *events,
                               size_t event_count, const lahar_append_options *options,
                               uint64_t *first_id_out, lahar_error *error)
{
    lahar_batch *batch = NULL;
    struct lahar_arena arena;
    uint64_t first_id = 0;
    if (first_id_out != NULL) {
        *first_id_out = 0;
    }
    LAHAR_TRY(lahar_batch_create(provenance->store, &batch, error));
    lahar_arena_init(&arena, provenance->allocator, 4096);
    lahar_status status = LAHAR_OK;
    for (size_t i = 0; i < event_count && status == LAHAR_OK; i++) {
        status = lahar_prov_check(&events[i], error);
        if (status == LAHAR_OK) {
            status = lahar_prov_stage(provenance, batch, &events[i], &arena, error);
        }
        lahar_arena_reset(&arena);
        if (status != LAHAR_OK) {
            lahar_error_context(error, "event %zu of %zu", i + 1, event_count);
        }
    }
    if (status == LAHAR_OK) {
        status = lahar_batch_commit(batch, options, &first_id, error);
    }
    if (first_id_out != NULL) {
        *first_id_out = first_id;
    }
    lahar_arena_deinit(&arena);
    lahar_batch_destroy(batch);
    return status;
}

/* --- reading ------------------------------------------------------------------------------ */

lahar_status lahar_prov_find(struct lahar_provenance *provenance, uint64_t id,
                             lahar_cursor **cursor_out, const lahar_event **event_out,
                             lahar_error *error)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error reason = {.status = LAHAR_OK};
    *cursor_out = NULL;
    LAHAR_TRY(lahar_get(provenance->store, &id, 1, &cursor, error));
    lahar_status status = lahar_cursor_next(cursor, &event, &reason);
    if (status == LAHAR_NOT_FOUND || (status == LAHAR_OK && event->stream != provenance->stream)) {
        status = lahar_fail(error, LAHAR_NOT_FOUND, "there is no provenance event %llu",
                            (unsigned long long)id);
    } else if (status != LAHAR_OK) {
        status = lahar_fail(error, status, "%s", reason.message);
    } else if (!lahar_prov_may_see(provenance, event)) {
        status = lahar_fail(error, LAHAR_DENIED, "provenance event %llu may not be seen",
                            (unsigned long long)id);
    }
    if (status != LAHAR_OK) {
        lahar_cursor_close(cursor);
        return status;
    }
    *cursor_out = cursor;
    *event_out = event;
    return LAHAR_OK;
}

static lahar_status copy_bytes(struct lahar_arena *arena, lahar_bytes *bytes)
{
    if (bytes->data == NULL) {
        return LAHAR_OK;
    }
    void *copy = lahar_arena_allocate(arena, bytes->size + 1);
    if (copy == NULL) {
        return LAHAR_NO_MEMORY;
    }
    if (bytes->size != 0) {
        memcpy(copy, bytes->data, bytes->size);
    }
    bytes->data = copy;
    return LAHAR_OK;
}

/* Bytes of the first length characters. What is not UTF-8 counts byte by byte. */
static size_t cut(lahar_bytes text, uint32_t length)
{
    const uint8_t *p = text.data;
    const uint8_t *end = p + text.size;
    if (text.size <= length) {
        return text.size;
    }
    while (p < end && length-- != 0) {
        const size_t size = lahar_utf8_sequence(p, end);
        p += size == 0 ? 1 : size;
    }
    return (size_t)(p - (const uint8_t *)text.data);
}

static lahar_status copy_pairs(struct lahar_arena *arena, const lahar_pair **pairs, size_t count,
                               uint32_t length_max)
{
    lahar_pair *copies = lahar_arena_allocate(arena, count * sizeof *copies + 1);
    if (copies == NULL) {
        return LAHAR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        copies[i] = (*pairs)[i];
        copies[i].value.size = copies[i].is_null ? 0 : cut(copies[i].value, length_max);
        LAHAR_TRY(copy_bytes(arena, &copies[i].key));
        LAHAR_TRY(copy_bytes(arena, &copies[i].value));
    }
    *pairs = copies;
    return LAHAR_OK;
}

static lahar_status copy_names(struct lahar_arena *arena, const lahar_bytes **names, size_t count)
{
    lahar_bytes *copies = lahar_arena_allocate(arena, count * sizeof *copies + 1);
    if (copies == NULL) {
        return LAHAR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        copies[i] = (*names)[i];
        LAHAR_TRY(copy_bytes(arena, &copies[i]));
    }
    *names = copies;
    return LAHAR_OK;
}

/* Makes the record own all that its event points to. */
static lahar_status own_all(struct lahar_prov_record *record, uint32_t length_max)
{
    struct lahar_arena *arena = &record->arena;
    lahar_prov_event *event = &record->event;
    lahar_bytes *const strings[] = {&event->type_name,
                                    &event->component,
                                    &event->component_type,
                                    &event->component_name,
                                    &event->process_group,
                                    &event->uuid,
                                    &event->entity_type,
                                    &event->claim.container,
                                    &event->claim.section,
                                    &event->claim.id,
                                    &event->previous_claim.container,
                                    &event->previous_claim.section,
                                    &event->previous_claim.id,
                                    &event->source_queue,
                                    &event->transit_uri,
                                    &event->source_system,
                                    &event->alternate_id,
                                    &event->relationship,
                                    &event->details};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        LAHAR_TRY(copy_bytes(arena, strings[i]));
    }
    LAHAR_TRY(copy_pairs(arena, &event->previous, event->previous_count, length_max));
    LAHAR_TRY(copy_pairs(arena, &event->updated, event->updated_count, length_max));
    LAHAR_TRY(copy_names(arena, &event->parents, event->parent_count));
    return copy_names(arena, &event->children, event->child_count);
}

lahar_status lahar_prov_record_of(lahar_provenance *provenance, const lahar_event *event,
                                  lahar_prov_record **record_out, lahar_error *error)
{
    *record_out = NULL;
    if (event->stream != provenance->stream) {
        return lahar_fail(error, LAHAR_INVALID, "event %llu is of another stream",
                          (unsigned long long)event->id);
    }
    struct lahar_prov_record *record =
        lahar_allocate_zeroed(provenance->allocator, 1, sizeof *record);
    if (record == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a record");
    }
    record->allocator = provenance->allocator;
    lahar_arena_init(&record->arena, provenance->allocator, 4096);
    lahar_status status =
        lahar_prov_decode(&provenance->fields, event, &record->arena, &record->event, error);
    if (status == LAHAR_OK &&
        own_all(record, provenance->options.attribute_length_max) != LAHAR_OK) {
        status = lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a record");
    }
    if (status == LAHAR_OK) {
        status =
            lahar_prov_overlay(record->event.previous, record->event.previous_count,
                               record->event.updated, record->event.updated_count, &record->arena,
                               &record->effective, &record->effective_count, error);
    }
    if (status != LAHAR_OK) {
        lahar_prov_record_close(record);
        return status;
    }
    *record_out = record;
    return LAHAR_OK;
}

lahar_status lahar_prov_get(lahar_provenance *provenance, uint64_t id,
                            lahar_prov_record **record_out, lahar_error *error)
{
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    *record_out = NULL;
    LAHAR_TRY(lahar_prov_find(provenance, id, &cursor, &event, error));
    const lahar_status status = lahar_prov_record_of(provenance, event, record_out, error);
    lahar_cursor_close(cursor);
    return status;
}

const lahar_prov_event *lahar_prov_record_event(const lahar_prov_record *record)
{
    return &record->event;
}

const lahar_pair *lahar_prov_record_effective(const lahar_prov_record *record, size_t *count_out)
{
    *count_out = record->effective_count;
    return record->effective;
}

void lahar_prov_record_close(lahar_prov_record *record)
{
    if (record == NULL) {
        return;
    }
    const lahar_allocator *allocator = record->allocator;
    lahar_arena_deinit(&record->arena);
    lahar_release(allocator, record);
}
