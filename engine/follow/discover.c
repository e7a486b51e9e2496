/* The coordinator's work: which files there are, under which names, and which content each of
 * them has.
 *
 * Inodes tie names to the contents that are known; whether a content still is what it was is
 * found out by whoever reads it. A name only ever says where to open. */
#include <string.h>

#include "engine/follow/file_place.h"
#include "engine/follow/follow_internal.h"
#include "engine/follow/generation.h"
#include "engine/follow/walk_source.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"

#define NS_PER_MS UINT64_C(1000000)

/* --- files that were found --------------------------------------------------------------- */

static bool has_same_birth(const struct lahar_followed_file *file,
                           const struct lahar_source_stat *stat)
{
    return file->cursor.birth_ns == 0 || stat->birth_ns == 0 ||
           file->cursor.birth_ns == stat->birth_ns;
}

/* The same file under another device number, as after a reboot; its content is compared when it
 * is read. */
static struct lahar_followed_file *find_moved_device(struct lahar_follow_source *source,
                                                     const struct lahar_source_stat *stat)
{
    struct lahar_followed_file *file = lahar_file_table_by_number(&source->files, stat->inode);
    if (file == NULL || file->is_busy || file->scan == source->scan || file->descriptor >= 0 ||
        file->cursor.offset == 0 || stat->size < file->cursor.offset ||
        !has_same_birth(file, stat)) {
        return NULL;
    }
    file->cursor.device = stat->device;
    file->must_commit = true;
    return file;
}

/* A file that is known, under the name that it has. */
static void see_known(struct lahar_follow_source *source, struct lahar_followed_file *file,
                      const struct lahar_found_file *found, uint64_t now_ns)
{
    const bool has_changed = found->stat.size != file->size || file->scan == 0 ||
                             found->stat.mtime_ns != file->cursor.mtime_ns;
    const bool was_missed = file->vanished_ns != 0;
    file->scan = source->scan;
    file->vanished_ns = 0;
    file->is_unlinked = false;
    if (!file->is_busy) {
        file->is_foreign_name = false;
    }
    if (has_changed || was_missed) {
        file->grown_ns = now_ns;
        file->size = found->stat.size;
        if (!file->is_busy) {
            file->cursor.mtime_ns = found->stat.mtime_ns;
        }
        lahar_follow_enqueue(source, file);
    }
}

static void rename_known(struct lahar_follow_source *source, struct lahar_followed_file *file,
                         const char *path)
{
    if (file->is_busy) {
        source->must_scan = true;
    } else if (lahar_file_table_rename(&source->files, file, path)) {
        file->must_commit = true;
        lahar_follow_enqueue(source, file);
    }
}

/* --- files that were not found ------------------------------------------------------------- */

static const struct lahar_found_stray *find_stray(const struct lahar_source_look *look,
                                                  uint64_t inode)
{
    for (size_t i = 0; i < look->stray_count; i++) {
        if (look->strays[i].inode == inode) {
            return &look->strays[i];
        }
    }
    return NULL;
}

/* The file has lost its name: through its descriptor it is read on, whatever it is called. */
static void follow_descriptor(struct lahar_follow_source *source, struct lahar_followed_file *file,
                              uint64_t now_ns)
{
    struct lahar_source_stat stat;
    char path[LAHAR_SOURCE_PATH_SIZE];
    if (lahar_source_describe(file->descriptor, &stat, NULL) != LAHAR_OK) {
        return;
    }
    file->is_unlinked = stat.links == 0;
    file->is_foreign_name = true;
    if (stat.size != file->size || stat.mtime_ns != file->cursor.mtime_ns || !file->is_drained) {
        file->grown_ns = stat.size != file->size ? now_ns : file->grown_ns;
        file->size = stat.size;
        lahar_follow_enqueue(source, file);
    }
    if (!file->is_unlinked && lahar_source_current_path(file->descriptor, path) &&
        strcmp(path, file->path) != 0) {
        rename_known(source, file, path);
    }
}

static void see_missing(struct lahar_follow_source *source, struct lahar_followed_file *file,
                        const struct lahar_source_look *look, uint64_t now_ns)
{
    if (file->is_busy) {
        source->must_scan = true;
        return;
    }
    if (file->vanished_ns == 0) {
        file->vanished_ns = now_ns == 0 ? 1 : now_ns;
        file->grown_ns = now_ns;
    }
    if (file->descriptor >= 0) {
        follow_descriptor(source, file, now_ns);
        return;
    }
    const struct lahar_found_stray *stray = find_stray(look, file->cursor.inode);
    if (stray != NULL && strcmp(stray->path, file->path) != 0) {
        file->is_foreign_name = true;
        rename_known(source, file, stray->path);
    } else if (stray != NULL) {
        /* Rotated before, and looked at from time to time. */
        struct lahar_source_stat stat;
        int descriptor = -1;
        file->is_foreign_name = true;
        if (lahar_source_open(&source->root, file->path, &descriptor, &stat, NULL) == LAHAR_OK) {
            if (stat.size != file->size || !file->is_drained) {
                file->size = stat.size;
                lahar_follow_enqueue(source, file);
            }
            lahar_source_close(descriptor);
        }
    }
}

/* --- one look --------------------------------------------------------------------------------- */

static void see_files(struct lahar_follow *follow, struct lahar_follow_source *source,
                      const struct lahar_source_look *look, uint64_t now_ns)
{
    /* First those whose name is as it was, so that a hard link does not take over. */
    for (size_t i = 0; i < look->file_count; i++) {
        const struct lahar_found_file *found = &look->files[i];
        struct lahar_followed_file *file =
            lahar_file_table_by_inode(&source->files, found->stat.device, found->stat.inode);
        if (file != NULL && has_same_birth(file, &found->stat) &&
            strcmp(file->path, found->path) == 0) {
            see_known(source, file, found, now_ns);
        }
    }
    for (size_t i = 0; i < look->file_count; i++) {
        const struct lahar_found_file *found = &look->files[i];
        struct lahar_followed_file *file =
            lahar_file_table_by_inode(&source->files, found->stat.device, found->stat.inode);
        if (file == NULL) {
            file = find_moved_device(source, &found->stat);
        }
        if (file == NULL) {
            lahar_generation_begin(follow, source, found->path, &found->stat, now_ns);
        } else if (!has_same_birth(file, &found->stat)) {
            lahar_generation_replace(follow, source, file, &found->stat, found->path,
                                     LAHAR_CONTENT_REPLACED, now_ns);
        } else if (file->scan != source->scan) {
            see_known(source, file, found, now_ns);
            if (strcmp(file->path, found->path) != 0) {
                rename_known(source, file, found->path);
            }
        }
    }
}

static void take_directories(struct lahar_follow *follow, struct lahar_follow_source *source,
                             struct lahar_source_look *look)
{
    for (size_t i = 0; i < source->directory_count; i++) {
        lahar_release(follow->allocator, source->directories[i].path);
    }
    lahar_release(follow->allocator, source->directories);
    source->directories = look->directories;
    source->directory_count = look->directory_count;
    source->directory_capacity = look->directory_capacity;
    look->directories = NULL;
    look->directory_count = 0;
}

static void plan_next(struct lahar_follow_source *source, bool was_eventful, uint64_t now_ns)
{
    const lahar_source_spec *spec = &source->spec;
    if (was_eventful) {
        source->backoff_ms = spec->poll_directory_watch_events_backoff_init;
    } else {
        source->backoff_ms *= spec->poll_directory_watch_events_backoff_factor;
    }
    if (source->backoff_ms > spec->poll_directory_watch_events_backoff_max) {
        source->backoff_ms = spec->poll_directory_watch_events_backoff_max;
    }
    source->next_scan_ns = now_ns + source->backoff_ms * NS_PER_MS;
}

void lahar_follow_scan(struct lahar_follow *follow, struct lahar_follow_source *source,
                       uint64_t now_ns)
{
    struct lahar_source_look look;
    const struct lahar_followed_file *ready_before = source->ready_first;
    source->must_scan = false;
    source->must_maintain = true;
    /* Only this thread adds sources and files, and a walk needs neither. */
    (void)pthread_mutex_unlock(&follow->lock);
    lahar_source_walk(follow, source, &look);
    (void)pthread_mutex_lock(&follow->lock);
    if (look.is_unwatched && !source->is_polling) {
        lahar_store_log(follow->store, LAHAR_LOG_WARNING,
                        "source %s: directories are polled, they cannot be watched: %s",
                        source->spec.name, look.error.message);
    }
    source->is_polling = look.is_unwatched;
    source->scan++;
    see_files(follow, source, &look, now_ns);
    for (size_t i = 0; i < source->files.count && !look.is_incomplete; i++) {
        struct lahar_followed_file *file = source->files.files[i];
        if (file->scan != source->scan && (file->cursor.flags & LAHAR_CURSOR_CLOSED) == 0) {
            see_missing(source, file, &look, now_ns);
        }
    }
    take_directories(follow, source, &look);
    source->has_scanned = source->has_scanned || !look.is_incomplete;
    lahar_source_look_deinit(&look, follow->allocator);
    plan_next(source, source->ready_first != ready_before, now_ns);
}
