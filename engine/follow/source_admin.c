/* Creating, listing, pausing, resetting and dropping sources. Each change is one durable
 * commit under the exclusive source lock, and raises the epoch for running followers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/follow/file_cursor.h"
#include "engine/follow/file_place.h"
#include "engine/follow/follow_internal.h"
#include "engine/follow/source_registry.h"
#include "engine/format/text_reader.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

enum {
    DROP_SIZE_MAX = 1 << 20 /* bytes of offsets forgotten in one batch */
};

static lahar_bytes text(const char *string)
{
    return (lahar_bytes){string, strlen(string)};
}

/* Commits durably and lets followers know. With the exclusive lock. */
static lahar_status commit_change(lahar_store *store, lahar_batch *batch, lahar_error *error)
{
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = LAHAR_DURABILITY_COMMIT,
                                          .deadline_ns = LAHAR_WAIT_FOREVER};
    const lahar_status status = lahar_batch_commit(batch, &options, NULL, error);
    atomic_fetch_add_explicit(&store->source_epoch, 1, memory_order_release);
    return status;
}

static lahar_status put_definition(lahar_store *store, lahar_batch *batch,
                                   const struct lahar_source_definition *definition,
                                   lahar_error *error)
{
    struct lahar_buffer value;
    lahar_buffer_init(&value, lahar_store_allocator(store));
    lahar_source_definition_encode(definition, &value);
    const lahar_status status =
        value.has_failed
            ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a source")
            : lahar_batch_add_offset(batch, text(LAHAR_SOURCES_KEY), text(definition->spec.name),
                                     (lahar_bytes){value.data, value.size}, error);
    lahar_buffer_deinit(&value);
    return status;
}

/* --- create ------------------------------------------------------------------------------ */

/* The number of the next source. */
static lahar_status visit_number(void *context, lahar_bytes key, lahar_bytes value)
{
    uint64_t *number = context;
    if (key.size == 0) {
        struct lahar_reader reader = lahar_reader_of(value.data, value.size);
        *number = lahar_read_varint(&reader);
        return reader.failed ? LAHAR_CORRUPT : LAHAR_OK;
    }
    return LAHAR_OK;
}

static lahar_status create_stream(lahar_store *store, const char *name, lahar_schema schema,
                                  const lahar_field_spec *fields, size_t count, lahar_error *error)
{
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = name,
                                    .schema = schema,
                                    .fields = fields,
                                    .field_count = count};
    lahar_error refused = {0};
    const lahar_status status = lahar_stream_create(store, &spec, NULL, &refused);
    return status == LAHAR_OK || status == LAHAR_EXISTS
               ? LAHAR_OK
               : lahar_fail(error, status, "%s", refused.message);
}

static bool is_compressed(const char *path)
{
    const size_t size = strlen(path);
    return size > 3 && strcmp(path + size - 3, ".gz") == 0;
}

/* The path, or the directory that a pattern begins in, must be there and inside the root. */
static lahar_status check_path(const lahar_source_spec *spec, lahar_error *error)
{
    struct lahar_source_root root;
    struct lahar_source_stat stat;
    char path[LAHAR_SOURCE_PATH_SIZE];
    int descriptor = -1;
    LAHAR_TRY(lahar_source_root_open(spec->root == NULL ? "/" : spec->root, &root, error));
    lahar_error cause = {0};
    lahar_status status = lahar_source_path_resolve(&root, spec->path, path, error);
    if (status == LAHAR_OK) {
        status = lahar_source_open(&root, path, &descriptor, &stat, &cause);
        lahar_source_close(descriptor);
        if (status == LAHAR_OK && stat.kind == LAHAR_SOURCE_REGULAR && !spec->decompress &&
            is_compressed(path)) {
            status =
                lahar_fail(&cause, LAHAR_INVALID, "%s is compressed, and decompress is off", path);
        }
        if (status == LAHAR_NOT_FOUND && lahar_glob_is_pattern(path, strlen(path))) {
            char *part = path + 1;
            while (!lahar_glob_is_pattern(part, strcspn(part, "/"))) {
                part += strcspn(part, "/") + 1;
            }
            part[part == path + 1 ? 0 : -1] = '\0';
            cause = (lahar_error){0};
            status = lahar_source_open(&root, path, &descriptor, &stat, &cause);
            lahar_source_close(descriptor);
        }
        if (status != LAHAR_OK) {
            (void)lahar_fail(error, status, "%s", cause.message);
        }
    }
    lahar_source_root_close(&root);
    return status;
}

/* A relative path begins at the root, or, without one, where the process stands. */
static lahar_status make_absolute(const lahar_source_spec *spec, struct lahar_arena *arena,
                                  lahar_source_spec *absolute_out, lahar_error *error)
{
    struct lahar_source_root root;
    char path[LAHAR_SOURCE_PATH_SIZE];
    const char *base = spec->root != NULL ? spec->root : spec->path[0] == '/' ? "/" : ".";
    *absolute_out = *spec;
    LAHAR_TRY(lahar_source_root_open(base, &root, error));
    lahar_status status = LAHAR_OK;
    if (spec->root == NULL) {
        absolute_out->root = "/";
        if (spec->path[0] != '/') {
            const int size = snprintf(path, sizeof path, "%s/%s", root.path, spec->path);
            absolute_out->path = size > 0 && (size_t)size < sizeof path
                                     ? lahar_arena_copy(arena, path, (size_t)size + 1)
                                     : NULL;
        }
    } else {
        absolute_out->root = lahar_arena_copy(arena, root.path, strlen(root.path) + 1);
    }
    if (absolute_out->path == NULL || absolute_out->root == NULL) {
        status = lahar_fail(error, LAHAR_INVALID, "the path of source %s is too long", spec->name);
    }
    lahar_source_root_close(&root);
    return status;
}

static lahar_status take_nothing(void *context, const lahar_event *event, uint64_t offset,
                                 lahar_error *error)
{
    (void)context;
    (void)event;
    (void)offset;
    (void)error;
    return LAHAR_OK;
}

/* What the parser would refuse is refused now: an expression, a template, a zone. */
static lahar_status check_parser(lahar_store *store, const lahar_source_spec *spec,
                                 lahar_error *error)
{
    const struct lahar_schema_catalog *catalog = lahar_store_catalog(store);
    const struct lahar_stream *stream =
        lahar_schema_find_stream(catalog, spec->stream, strlen(spec->stream));
    struct lahar_text_reader *reader = NULL;
    const struct lahar_text_reader_options options = {
        .allocator = lahar_store_allocator(store),
        .catalog = catalog,
        .stream = stream == NULL ? LAHAR_ANY_STREAM : stream->id,
        .format = spec->format,
        .settings = &spec->format_settings,
        .time_field = spec->time_field,
        .io = lahar_store_io(store),
        .record_size_max = 1,
        .emit = take_nothing,
    };
    LAHAR_TRY(lahar_text_reader_create(&options, &reader, error));
    lahar_text_reader_destroy(reader);
    return LAHAR_OK;
}

static lahar_status create_locked(lahar_store *store, const lahar_source_spec *spec,
                                  struct lahar_arena *arena, lahar_error *error)
{
    struct lahar_source_definition definition = {.spec = *spec};
    uint8_t value[LAHAR_VARINT_SIZE_MAX];
    uint64_t number = 0;
    lahar_batch *batch = NULL;
    const lahar_status found = lahar_source_find(store, spec->name, arena, &definition, NULL);
    if (found != LAHAR_NOT_FOUND) {
        return found == LAHAR_OK
                   ? lahar_fail(error, LAHAR_EXISTS, "there is a source \"%s\"", spec->name)
                   : found;
    }
    LAHAR_TRY(lahar_offset_visit(store, text(LAHAR_SOURCES_KEY), visit_number, &number, error));
    definition = (struct lahar_source_definition){.spec = *spec, .source = number + 1};
    LAHAR_TRY(lahar_batch_create(store, &batch, error));
    const size_t size = (size_t)(lahar_put_varint(value, number + 1) - value);
    lahar_status status = lahar_batch_add_offset(batch, text(LAHAR_SOURCES_KEY), text(""),
                                                 (lahar_bytes){value, size}, error);
    if (status == LAHAR_OK) {
        status = put_definition(store, batch, &definition, error);
    }
    if (status == LAHAR_OK) {
        status = commit_change(store, batch, error);
    }
    lahar_batch_destroy(batch);
    return status;
}

/* Names are those of streams: what a stream could not be called is refused by trying. */
static bool is_name(const char *name)
{
    const size_t size = strlen(name);
    for (size_t i = 0; i < size; i++) {
        const char c = name[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && strchr("_-.", c) == NULL) {
            return false;
        }
    }
    return size != 0 && size <= LAHAR_NAME_SIZE_MAX && name[0] != '.' && name[0] != '-';
}

lahar_status lahar_source_create(lahar_store *store, const lahar_source_spec *spec,
                                 lahar_error *error)
{
    lahar_source_spec absolute;
    struct lahar_arena arena;
    char dead_letter[LAHAR_NAME_SIZE_MAX + 1];
    LAHAR_TRY(lahar_store_check_writable(store, error));
    LAHAR_TRY(lahar_source_spec_check(spec, error));
    if (!is_name(spec->name)) {
        return lahar_fail(error, LAHAR_INVALID, "\"%.60s\" is not a name for a source", spec->name);
    }
    lahar_arena_init(&arena, lahar_store_allocator(store), 4096);
    lahar_status status = make_absolute(spec, &arena, &absolute, error);
    if (status == LAHAR_OK) {
        absolute.stream = spec->stream == NULL ? spec->name : spec->stream;
        status = check_path(&absolute, error);
    }
    if (status == LAHAR_OK &&
        lahar_source_find(store, spec->name, &arena, &(struct lahar_source_definition){0}, NULL) ==
            LAHAR_OK) {
        status = lahar_fail(error, LAHAR_EXISTS, "there is a source \"%s\"", spec->name);
    }
    if (status == LAHAR_OK) {
        const lahar_schema schema =
            spec->format == LAHAR_FORMAT_NIFI_JSON ? LAHAR_SCHEMA_PROVENANCE : LAHAR_SCHEMA_LOG;
        status = create_stream(store, absolute.stream, schema, lahar_follow_columns,
                               LAHAR_FOLLOW_COLUMN_COUNT, error);
    }
    if (status == LAHAR_OK && spec->handle_error_mode == LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE) {
        (void)snprintf(dead_letter, sizeof dead_letter, "%.240s.dead_letter", absolute.stream);
        absolute.dead_letter = spec->dead_letter == NULL ? dead_letter : spec->dead_letter;
        status = create_stream(store, absolute.dead_letter, LAHAR_SCHEMA_LOG, lahar_follow_columns,
                               LAHAR_FOLLOW_COLUMN_COUNT, error);
    }
    if (status == LAHAR_OK) {
        status = create_stream(store, LAHAR_GAP_STREAM, LAHAR_SCHEMA_LOG, lahar_gap_columns,
                               LAHAR_GAP_COLUMN_COUNT, error);
    }
    if (status == LAHAR_OK) {
        status = check_parser(store, &absolute, error);
    }
    if (status == LAHAR_OK) {
        (void)pthread_rwlock_wrlock(&store->source_lock);
        status = create_locked(store, &absolute, &arena, error);
        (void)pthread_rwlock_unlock(&store->source_lock);
    }
    lahar_arena_deinit(&arena);
    return status;
}

/* --- list ------------------------------------------------------------------------------------- */

struct source_walk {
    lahar_source_visitor visit;
    void *context;
    struct lahar_arena arena;
    lahar_error *error;
};

static lahar_status visit_source(void *context, lahar_bytes key, lahar_bytes value)
{
    struct source_walk *walk = context;
    struct lahar_source_definition definition;
    if (key.size == 0) {
        return LAHAR_OK;
    }
    lahar_arena_reset(&walk->arena);
    LAHAR_TRY(lahar_source_definition_decode(key, value, &walk->arena, &definition, walk->error));
    lahar_source_info info = {
        .spec = definition.spec, .source = definition.source, .is_paused = definition.is_paused};
    lahar_source_spec_resolve(&info.spec);
    return walk->visit(walk->context, &info);
}

lahar_status lahar_source_list(lahar_store *store, lahar_source_visitor visit, void *context,
                               lahar_error *error)
{
    struct source_walk walk = {.visit = visit, .context = context, .error = error};
    lahar_arena_init(&walk.arena, lahar_store_allocator(store), 4096);
    const lahar_status status =
        lahar_offset_visit(store, text(LAHAR_SOURCES_KEY), visit_source, &walk, error);
    lahar_arena_deinit(&walk.arena);
    return status;
}

/* --- pause ---------------------------------------------------------------------------------------
 */

lahar_status lahar_source_pause(lahar_store *store, const char *name, bool paused,
                                lahar_error *error)
{
    struct lahar_source_definition definition;
    struct lahar_arena arena;
    lahar_batch *batch = NULL;
    LAHAR_TRY(lahar_batch_create(store, &batch, error));
    lahar_arena_init(&arena, lahar_store_allocator(store), 4096);
    (void)pthread_rwlock_wrlock(&store->source_lock);
    lahar_status status = lahar_source_find(store, name, &arena, &definition, error);
    if (status == LAHAR_OK) {
        definition.is_paused = paused;
        status = put_definition(store, batch, &definition, error);
    }
    if (status == LAHAR_OK) {
        status = commit_change(store, batch, error);
    }
    (void)pthread_rwlock_unlock(&store->source_lock);
    lahar_arena_deinit(&arena);
    lahar_batch_destroy(batch);
    return status;
}

/* --- drop
 * ------------------------------------------------------------------------------------------ */

/* The keys of a source's offset records, one after another with their sizes. */
struct key_list {
    struct lahar_buffer keys; /* u32 size and bytes each */
};

static lahar_status visit_key(void *context, lahar_bytes key, lahar_bytes value)
{
    struct key_list *list = context;
    (void)value;
    lahar_buffer_put(&list->keys, key.data, key.size);
    lahar_buffer_put_u32(&list->keys, (uint32_t)key.size);
    return LAHAR_OK;
}

/* Forgets keys from the last one on, which is cheapest for the store, until the batch has its
 * size. */
static lahar_status forget_keys(lahar_batch *batch, const char *source, struct key_list *list,
                                lahar_error *error)
{
    struct lahar_buffer *keys = &list->keys;
    while (keys->size != 0 && lahar_batch_size(batch) < DROP_SIZE_MAX) {
        const uint32_t size = lahar_load_u32(keys->data + keys->size - sizeof size);
        keys->size -= sizeof size + size;
        LAHAR_TRY(lahar_batch_add_offset(batch, text(source),
                                         (lahar_bytes){keys->data + keys->size, size},
                                         (lahar_bytes){0}, error));
    }
    return LAHAR_OK;
}

static lahar_status drop_locked(lahar_store *store, const char *name, lahar_batch *batch,
                                struct key_list *list, struct lahar_arena *arena,
                                lahar_error *error)
{
    struct lahar_source_definition definition;
    char key[LAHAR_SOURCE_KEY_SIZE];
    LAHAR_TRY(lahar_source_find(store, name, arena, &definition, error));
    lahar_source_cursors_key(definition.source, key);
    LAHAR_TRY(lahar_offset_visit(store, text(key), visit_key, list, error));
    if (list->keys.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to drop a source");
    }
    LAHAR_TRY(lahar_batch_add_offset(batch, text(LAHAR_SOURCES_KEY), text(name), (lahar_bytes){0},
                                     error));
    /* The definition goes in the first batch, so from there on nothing reads the cursors: its
     * number is never used again. More than fit are taken in later batches. */
    do {
        LAHAR_TRY(forget_keys(batch, key, list, error));
        LAHAR_TRY(commit_change(store, batch, error));
    } while (list->keys.size != 0);
    return LAHAR_OK;
}

lahar_status lahar_source_drop(lahar_store *store, const char *name, lahar_error *error)
{
    struct lahar_arena arena;
    struct key_list list;
    lahar_batch *batch = NULL;
    LAHAR_TRY(lahar_batch_create(store, &batch, error));
    lahar_arena_init(&arena, lahar_store_allocator(store), 4096);
    lahar_buffer_init(&list.keys, lahar_store_allocator(store));
    (void)pthread_rwlock_wrlock(&store->source_lock);
    const lahar_status status = drop_locked(store, name, batch, &list, &arena, error);
    (void)pthread_rwlock_unlock(&store->source_lock);
    lahar_buffer_deinit(&list.keys);
    lahar_arena_deinit(&arena);
    lahar_batch_destroy(batch);
    return status;
}
