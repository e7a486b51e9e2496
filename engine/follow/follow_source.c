/* A source while it is being followed: opened by its definition, with the cursors that the
 * store has of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/follow/follow_internal.h"
#include "engine/follow/source_registry.h"
#include "engine/format/format_settings.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "lahar/read.h"

enum {
    GENERATIONS_RESERVED = 4096
};

/* --- what records go to --------------------------------------------------------------- */

static void find_columns(const struct lahar_schema_catalog *catalog,
                         const struct lahar_stream *stream, const lahar_field_spec *columns,
                         size_t count, uint32_t *fields_out)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t field;
        const bool is_declared =
            stream != NULL &&
            lahar_schema_find_field(catalog, columns[i].name, strlen(columns[i].name), &field) &&
            lahar_stream_find_field(stream, field) != NULL &&
            lahar_stream_find_field(stream, field)->type == columns[i].type;
        fields_out[i] = is_declared ? field : UINT32_MAX;
    }
}

static uint32_t stream_id(const struct lahar_stream *stream)
{
    return stream == NULL ? LAHAR_ANY_STREAM : stream->id;
}

static lahar_status find_target(struct lahar_follow *follow, struct lahar_follow_source *source,
                                lahar_error *error)
{
    const struct lahar_schema_catalog *catalog = lahar_store_catalog(follow->store);
    const lahar_source_spec *spec = &source->spec;
    struct lahar_sink_target *target = &source->target;
    const struct lahar_stream *stream =
        lahar_schema_find_stream(catalog, spec->stream, strlen(spec->stream));
    const struct lahar_stream *gaps =
        lahar_schema_find_stream(catalog, LAHAR_GAP_STREAM, strlen(LAHAR_GAP_STREAM));
    const struct lahar_stream *dead_letter =
        spec->dead_letter == NULL
            ? NULL
            : lahar_schema_find_stream(catalog, spec->dead_letter, strlen(spec->dead_letter));
    if (stream == NULL) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "source %s: there is no stream %s", spec->name,
                          spec->stream);
    }
    if (spec->handle_error_mode == LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE && dead_letter == NULL) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "source %s: there is no stream %s", spec->name,
                          spec->dead_letter == NULL ? "for dead letters" : spec->dead_letter);
    }
    struct lahar_format_options options;
    LAHAR_TRY(lahar_format_options_read(&spec->format_settings, &options, error));
    *target = (struct lahar_sink_target){.catalog = catalog,
                                         .stream = stream->id,
                                         .dead_letter = stream_id(dead_letter),
                                         .gaps = stream_id(gaps),
                                         .mode = spec->handle_error_mode,
                                         .fails_by_default = follow->is_dry,
                                         .errors_allowed = options.errors_allowed,
                                         .error_ratio_allowed = options.error_ratio_allowed};
    source->joins_lines = lahar_source_joins_lines(spec);
    find_columns(catalog, stream, lahar_follow_columns, LAHAR_FOLLOW_COLUMN_COUNT, target->columns);
    find_columns(catalog, gaps, lahar_gap_columns, LAHAR_GAP_COLUMN_COUNT, target->gap_columns);
    for (size_t i = 0; i < LAHAR_GAP_COLUMN_COUNT; i++) {
        if (target->gap_columns[i] == UINT32_MAX) {
            target->gaps = LAHAR_ANY_STREAM;
        }
    }
    return LAHAR_OK;
}

/* --- where files are ---------------------------------------------------------------------- */

/* A name that exists is taken literally, whatever letters it has. */
static lahar_status find_shape(struct lahar_follow *follow, struct lahar_follow_source *source,
                               lahar_error *error)
{
    struct lahar_source_stat stat;
    int descriptor = -1;
    LAHAR_TRY(lahar_source_root_open(source->spec.root, &source->root, error));
    LAHAR_TRY(lahar_source_path_resolve(&source->root, source->spec.path, source->path, error));
    source->shape = LAHAR_SHAPE_FILE;
    if (lahar_source_open(&source->root, source->path, &descriptor, &stat, NULL) == LAHAR_OK) {
        if (stat.kind == LAHAR_SOURCE_DIRECTORY) {
            source->shape = LAHAR_SHAPE_DIRECTORY;
        }
        lahar_source_close(descriptor);
    } else if (lahar_glob_is_pattern(source->path, strlen(source->path))) {
        source->shape = LAHAR_SHAPE_PATTERN;
    }
    return lahar_glob_create(&source->glob, follow->allocator,
                             source->shape == LAHAR_SHAPE_PATTERN ? source->path : "", error);
}

/* --- cursors ---------------------------------------------------------------------------------- */

struct cursor_load {
    struct lahar_follow_source *source;
    lahar_error *error;
};

static lahar_status load_cursor(void *context, lahar_bytes key, lahar_bytes value)
{
    const struct cursor_load *load = context;
    struct lahar_follow_source *source = load->source;
    struct lahar_file_cursor cursor;
    lahar_bytes path;
    if (key.size != LAHAR_CURSOR_KEY_SIZE) {
        struct lahar_reader reader = lahar_reader_of(value.data, value.size);
        source->reserved_generation = lahar_read_varint(&reader);
        return reader.failed ? lahar_fail(load->error, LAHAR_CORRUPT,
                                          "the state of source %s is damaged", source->spec.name)
                             : LAHAR_OK;
    }
    LAHAR_TRY(lahar_file_cursor_decode(key, value, &cursor, &path, load->error));
    struct lahar_followed_file *file =
        lahar_file_table_add(&source->files, &cursor, path.data, path.size);
    if (file == NULL) {
        return lahar_fail(load->error, LAHAR_NO_MEMORY, "no memory for the files of source %s",
                          source->spec.name);
    }
    file->is_recorded = true;
    file->size = cursor.size_seen;
    return LAHAR_OK;
}

lahar_status lahar_follow_source_open(struct lahar_follow *follow, lahar_bytes name,
                                      lahar_bytes value, struct lahar_follow_source **source_out,
                                      lahar_error *error)
{
    struct lahar_follow_source *source =
        lahar_allocate_zeroed(follow->allocator, 1, sizeof *source);
    if (source == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a source");
    }
    source->root.descriptor = -1;
    source->glob.allocator = follow->allocator;
    lahar_arena_init(&source->arena, follow->allocator, 4096);
    lahar_file_table_init(&source->files, follow->allocator);
    lahar_status status =
        lahar_source_definition_decode(name, value, &source->arena, &source->definition, error);
    if (status == LAHAR_OK) {
        source->spec = source->definition.spec;
        lahar_source_spec_resolve(&source->spec);
        lahar_source_cursors_key(source->definition.source, source->key);
        status = find_target(follow, source, error);
    }
    if (status == LAHAR_OK) {
        status = find_shape(follow, source, error);
    }
    if (status == LAHAR_OK) {
        struct cursor_load load = {source, error};
        status = lahar_offset_visit(follow->store, (lahar_bytes){source->key, strlen(source->key)},
                                    load_cursor, &load, error);
    }
    if (status != LAHAR_OK) {
        lahar_follow_source_close(follow, source);
        return status;
    }
    source->next_generation = source->reserved_generation;
    source->backoff_ms = source->spec.poll_directory_watch_events_backoff_init;
    source->has_scanned = source->files.count != 0 || source->reserved_generation != 0;
    source->must_scan = true;
    *source_out = source;
    return LAHAR_OK;
}

void lahar_follow_source_close(struct lahar_follow *follow, struct lahar_follow_source *source)
{
    if (source == NULL) {
        return;
    }
    for (size_t i = 0; i < source->directory_count; i++) {
        lahar_release(follow->allocator, source->directories[i].path);
    }
    lahar_release(follow->allocator, source->directories);
    lahar_file_table_deinit(&source->files);
    lahar_glob_destroy(&source->glob);
    lahar_source_root_close(&source->root);
    lahar_arena_deinit(&source->arena);
    lahar_release(follow->allocator, source);
}

/* --- generations --------------------------------------------------------------------------------
 */

static lahar_status reserve_generations(struct lahar_follow *follow,
                                        struct lahar_follow_source *source, uint64_t reserved)
{
    uint8_t value[LAHAR_VARINT_SIZE_MAX];
    const lahar_bytes key = {source->key, strlen(source->key)};
    const lahar_bytes bytes = {value, (size_t)(lahar_put_varint(value, reserved) - value)};
    lahar_batch *batch = NULL;
    LAHAR_TRY(lahar_batch_create(follow->store, &batch, NULL));
    lahar_status status = lahar_batch_add_offset(
        batch, key, (lahar_bytes){LAHAR_SOURCE_STATE_KEY, strlen(LAHAR_SOURCE_STATE_KEY)}, bytes,
        NULL);
    if (status == LAHAR_OK) {
        status =
            lahar_source_commit(follow->store, batch, follow->options.durability, follow->epoch);
    }
    lahar_batch_destroy(batch);
    return status;
}

uint64_t lahar_follow_next_generation(struct lahar_follow *follow,
                                      struct lahar_follow_source *source)
{
    if (source->next_generation >= source->reserved_generation && !follow->is_dry) {
        const uint64_t reserved = source->next_generation + GENERATIONS_RESERVED;
        if (reserve_generations(follow, source, reserved) != LAHAR_OK) {
            return 0;
        }
        source->reserved_generation = reserved;
    }
    return source->definition.source << LAHAR_GENERATION_BITS | ++source->next_generation;
}

/* --- the queue --------------------------------------------------------------------- */

static bool has_to_wait(struct lahar_followed_file *file)
{
    const struct lahar_followed_file *before = file->waits_for;
    return before != NULL && !before->is_drained;
}

/* Whether it is to be put into the queue now. */
static bool gets_ready(struct lahar_followed_file *file)
{
    if (file->is_busy) {
        file->looks_again = true;
        return false;
    }
    const uint32_t resting = LAHAR_CURSOR_CLOSED | LAHAR_CURSOR_COPY;
    if (file->is_ready || has_to_wait(file) ||
        ((file->cursor.flags & resting) != 0 && !file->must_forget)) {
        return false;
    }
    file->is_ready = true;
    return true;
}

void lahar_follow_enqueue_first(struct lahar_follow_source *source,
                                struct lahar_followed_file *file)
{
    if (!gets_ready(file)) {
        return;
    }
    file->next_ready = source->ready_first;
    source->ready_first = file;
    if (source->ready_last == NULL) {
        source->ready_last = file;
    }
}

void lahar_follow_enqueue(struct lahar_follow_source *source, struct lahar_followed_file *file)
{
    if (!gets_ready(file)) {
        return;
    }
    file->next_ready = NULL;
    if (source->ready_last == NULL) {
        source->ready_first = file;
    } else {
        source->ready_last->next_ready = file;
    }
    source->ready_last = file;
}

void lahar_followed_file_close(struct lahar_follow_source *source, struct lahar_followed_file *file)
{
    if (file->descriptor < 0) {
        return;
    }
    lahar_source_close(file->descriptor);
    lahar_gzip_stream_destroy(file->gzip);
    file->gzip = NULL;
    file->descriptor = -1;
    file->is_checked = false;
    source->open_count--;
}
