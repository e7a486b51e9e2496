/* Moving offsets by hand, and showing where they stand. */
#include <stdio.h>
#include <string.h>

#include "engine/follow/file_place.h"
#include "engine/follow/follow_internal.h"
#include "engine/follow/source_registry.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

/* Every cursor of one source, loaded as for following. */
static lahar_status load_files(lahar_store *store, const char *name, lahar_follow **follow_out,
                               lahar_error *error)
{
    const lahar_follow_options options = {
        .struct_size = sizeof options, .sources = &name, .source_count = 1};
    return lahar_follow_open_dry(store, &options, follow_out, error);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_closed(const struct lahar_followed_file *file)
{
    return (file->cursor.flags & LAHAR_CURSOR_CLOSED) != 0;
}

/* The file as it is now under its path, if it is the one of the cursor. */
static bool open_current(const struct lahar_follow_source *source,
                         const struct lahar_followed_file *file, int *descriptor_out,
                         struct lahar_source_stat *stat_out)
{
    if (is_closed(file) ||
        lahar_source_open(&source->root, file->path, descriptor_out, stat_out, NULL) != LAHAR_OK) {
        return false;
    }
    if (stat_out->inode != file->cursor.inode || stat_out->device != file->cursor.device ||
        (stat_out->birth_ns != 0 && file->cursor.birth_ns != 0 &&
         stat_out->birth_ns != file->cursor.birth_ns)) {
        lahar_source_close(*descriptor_out);
        *descriptor_out = -1;
        return false;
    }
    return true;
}

/* --- show -------------------------------------------------------------------------------- */

static lahar_file_state state_of(const struct lahar_followed_file *file, bool is_there,
                                 const struct lahar_source_file *shown)
{
    if (is_closed(file)) {
        return LAHAR_FILE_CLOSED;
    }
    if ((file->cursor.flags & LAHAR_CURSOR_STUCK) != 0) {
        return LAHAR_FILE_STUCK;
    }
    if (!is_there) {
        return LAHAR_FILE_GONE;
    }
    return shown->lag == 0 ? LAHAR_FILE_IDLE : LAHAR_FILE_READING;
}

static lahar_status show_file(const struct lahar_follow_source *source,
                              const struct lahar_followed_file *file, bool is_durable,
                              lahar_source_file_visitor visit, void *context)
{
    const struct lahar_file_cursor *cursor = &file->cursor;
    struct lahar_source_stat stat = {0};
    int descriptor = -1;
    const bool is_there = open_current(source, file, &descriptor, &stat);
    const bool counts = is_there && (cursor->flags & LAHAR_CURSOR_GZIP) == 0;
    lahar_source_close(descriptor);
    struct lahar_source_file shown = {
        .path = file->path,
        .device = cursor->device,
        .inode = cursor->inode,
        .generation = cursor->generation,
        .offset = cursor->offset,
        .durable_offset = is_durable ? cursor->offset : 0,
        .has_size = is_there,
        .size = stat.size,
        .lag = counts && stat.size > cursor->offset ? stat.size - cursor->offset : 0,
        .record_count = cursor->record_count,
        .error_count = cursor->error_count,
        .gap_size = cursor->gap_size,
        .last_error = cursor->last_error,
        .last_error_ns = cursor->last_error_ns,
    };
    shown.state = state_of(file, is_there, &shown);
    return visit(context, &shown);
}

lahar_status lahar_source_show(lahar_store *store, const char *name,
                               lahar_source_file_visitor visit, void *context, lahar_error *error)
{
    lahar_follow *follow = NULL;
    LAHAR_TRY(load_files(store, name, &follow, error));
    const struct lahar_follow_source *source = follow->sources[0];
    const uint64_t next_id = store->journals == NULL ? 0 : lahar_journals_next_id(store->journals);
    const bool is_durable = lahar_durable_id(store) >= next_id;
    lahar_status status = LAHAR_OK;
    for (size_t i = 0; i < source->files.count && status == LAHAR_OK; i++) {
        status = show_file(source, source->files.files[i], is_durable, visit, context);
    }
    lahar_follow_close(follow);
    return status;
}

/* --- reset --------------------------------------------------------------------------------- */

struct reset {
    lahar_store *store;
    lahar_batch *batch;
    const struct lahar_follow_source *source;
    lahar_reset_to to;
    uint64_t offset;
    uint64_t next_generation; /* lower bits of the one used last */
};

static lahar_status put_cursor(struct reset *reset, const struct lahar_file_cursor *cursor,
                               const char *path, bool forget, lahar_error *error)
{
    uint8_t key[LAHAR_CURSOR_KEY_SIZE];
    struct lahar_buffer value;
    lahar_buffer_init(&value, lahar_store_allocator(reset->store));
    lahar_cursor_key(cursor->generation, key);
    if (!forget) {
        lahar_file_cursor_encode(cursor, path, &value);
    }
    const lahar_status status =
        value.has_failed
            ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an offset")
            : lahar_batch_add_offset(
                  reset->batch, (lahar_bytes){reset->source->key, strlen(reset->source->key)},
                  (lahar_bytes){key, sizeof key}, (lahar_bytes){value.data, value.size}, error);
    lahar_buffer_deinit(&value);
    return status;
}

/* Another generation, so that what is read again has another identity. */
static lahar_status put_next(struct reset *reset, const struct lahar_followed_file *file,
                             struct lahar_file_cursor *cursor, lahar_error *error)
{
    const struct lahar_file_cursor *old = &file->cursor;
    cursor->generation =
        reset->source->definition.source << LAHAR_GENERATION_BITS | ++reset->next_generation;
    cursor->predecessor = old->generation;
    cursor->device = old->device;
    cursor->inode = old->inode;
    cursor->birth_ns = old->birth_ns;
    cursor->changed_ns = old->changed_ns;
    memcpy(cursor->boot_id, old->boot_id, sizeof cursor->boot_id);
    LAHAR_TRY(put_cursor(reset, old, file->path, true, error));
    return put_cursor(reset, cursor, file->path, false, error);
}

static lahar_status reset_file(struct reset *reset, const struct lahar_followed_file *file,
                               lahar_error *error)
{
    struct lahar_file_cursor cursor = {.line = 1, .first_line = 1};
    struct lahar_source_stat stat;
    int descriptor = -1;
    if (reset->to == LAHAR_RESET_TO_START ||
        (reset->to == LAHAR_RESET_TO_OFFSET && reset->offset == 0)) {
        return put_next(reset, file, &cursor, error);
    }
    if (!open_current(reset->source, file, &descriptor, &stat)) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "%s is not there to look at", file->path);
    }
    lahar_status status = LAHAR_OK;
    if ((file->cursor.flags & LAHAR_CURSOR_GZIP) != 0) {
        status = lahar_fail(error, LAHAR_UNSUPPORTED,
                            "%s is compressed: it can only be reset to its start", file->path);
    } else if (reset->to == LAHAR_RESET_TO_OFFSET && reset->offset > stat.size) {
        status = lahar_fail(error, LAHAR_INVALID, "offset %llu is beyond the end of %s, %llu",
                            (unsigned long long)reset->offset, file->path,
                            (unsigned long long)stat.size);
    } else {
        const bool to_end = reset->to == LAHAR_RESET_TO_END;
        status = lahar_file_place(descriptor, to_end ? stat.size : reset->offset, to_end,
                                  lahar_store_allocator(reset->store), &cursor, error);
    }
    lahar_source_close(descriptor);
    cursor.size_seen = cursor.offset;
    return status == LAHAR_OK ? put_next(reset, file, &cursor, error) : status;
}

static lahar_status reset_files(struct reset *reset, const char *file_name, lahar_error *error)
{
    const struct lahar_follow_source *source = reset->source;
    size_t count = 0;
    for (size_t i = 0; i < source->files.count; i++) {
        const struct lahar_followed_file *file = source->files.files[i];
        const bool is_named = file_name == NULL || strcmp(file->path, file_name) == 0 ||
                              strcmp(base_name(file->path), file_name) == 0;
        struct lahar_source_stat stat;
        int descriptor = -1;
        const bool is_there = open_current(source, file, &descriptor, &stat);
        lahar_source_close(descriptor);
        if (is_closed(file) || !is_named || (!is_there && file_name == NULL)) {
            continue;
        }
        LAHAR_TRY(reset_file(reset, file, error));
        count++;
    }
    if (count == 0 && file_name != NULL) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "source %s has no offset of a file %s",
                          source->spec.name, file_name);
    }
    return LAHAR_OK;
}

static lahar_status reset_locked(lahar_store *store, const char *name, const char *file,
                                 lahar_reset_to to, uint64_t offset, lahar_error *error)
{
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = LAHAR_DURABILITY_COMMIT,
                                          .deadline_ns = LAHAR_WAIT_FOREVER};
    lahar_follow *follow = NULL;
    uint8_t value[LAHAR_VARINT_SIZE_MAX];
    struct reset reset = {.store = store, .to = to, .offset = offset};
    LAHAR_TRY(load_files(store, name, &follow, error));
    reset.source = follow->sources[0];
    reset.next_generation = reset.source->next_generation;
    lahar_status status = lahar_batch_create(store, &reset.batch, error);
    if (status == LAHAR_OK) {
        status = reset_files(&reset, file, error);
    }
    if (status == LAHAR_OK) {
        const size_t size = (size_t)(lahar_put_varint(value, reset.next_generation) - value);
        status = lahar_batch_add_offset(
            reset.batch, (lahar_bytes){reset.source->key, strlen(reset.source->key)},
            (lahar_bytes){LAHAR_SOURCE_STATE_KEY, strlen(LAHAR_SOURCE_STATE_KEY)},
            (lahar_bytes){value, size}, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_batch_commit(reset.batch, &options, NULL, error);
        atomic_fetch_add_explicit(&store->source_epoch, 1, memory_order_release);
    }
    lahar_batch_destroy(reset.batch);
    lahar_follow_close(follow);
    return status;
}

lahar_status lahar_source_reset(lahar_store *store, const char *name, const char *file,
                                lahar_reset_to to, uint64_t offset, lahar_error *error)
{
    LAHAR_TRY(lahar_store_check_writable(store, error));
    (void)pthread_rwlock_wrlock(&store->source_lock);
    const lahar_status status = reset_locked(store, name, file, to, offset, error);
    (void)pthread_rwlock_unlock(&store->source_lock);
    return status;
}
