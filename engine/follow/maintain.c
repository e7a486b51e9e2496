/* What has to be done with files at its time: changes that workers found, files that could
 * not be read, last lines without an end, files that are gone. */
#include <stdio.h>

#include "engine/follow/follow_internal.h"
#include "engine/follow/generation.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

#define NS_PER_MS UINT64_C(1000000)

/* The time for something has come, or is noted as the next to wait for. */
static bool is_due(struct lahar_follow_source *source, uint64_t due_ns, uint64_t now_ns)
{
    if (now_ns >= due_ns) {
        return true;
    }
    if (due_ns < source->next_due_ns) {
        source->next_due_ns = due_ns;
    }
    return false;
}

static bool is_read_out(const struct lahar_followed_file *file)
{
    return file->is_drained &&
           ((file->cursor.flags & LAHAR_CURSOR_GZIP) != 0 ? file->partial_end <= file->cursor.offset
                                                          : file->cursor.offset >= file->size);
}

static bool settle_change(struct lahar_follow *follow, struct lahar_follow_source *source,
                          struct lahar_followed_file *file, uint64_t now_ns)
{
    struct lahar_source_stat stat;
    const enum lahar_content_change change = file->change;
    if (file->descriptor < 0) {
        file->change = LAHAR_CONTENT_SAME;
        source->must_scan = true;
        return true;
    }
    if (lahar_source_describe(file->descriptor, &stat, NULL) != LAHAR_OK) {
        return false;
    }
    file->change = LAHAR_CONTENT_SAME;
    lahar_generation_replace(follow, source, file, &stat, NULL, change, now_ns);
    return true;
}

static void forget(struct lahar_follow_source *source, struct lahar_followed_file *file)
{
    file->must_forget = true;
    file->is_drained = true;
    file->waits_for = NULL;
    lahar_follow_enqueue(source, file);
}

static void note_gap(struct lahar_followed_file *file, uint64_t to, const char *reason)
{
    if (to > file->cursor.offset && file->gap_to <= file->gap_from) {
        file->gap_from = file->cursor.offset;
        file->gap_to = to;
        file->gap_generation = file->cursor.generation;
        file->gap_reason = reason;
    }
}

/* A file without a name, open: read to its end, kept a while, let go. */
static void settle_unlinked(struct lahar_follow_source *source, struct lahar_followed_file *file,
                            uint64_t now_ns)
{
    const lahar_source_spec *spec = &source->spec;
    const bool keeps = spec->copies_rotated || spec->decompress;
    if (source->held_size > spec->held_size_max && !is_read_out(file)) {
        note_gap(file, file->size, "the file was removed and more was held than is allowed");
        forget(source, file);
        return;
    }
    if (!file->is_drained ||
        !is_due(source, file->grown_ns + spec->rotate_wait_ms * NS_PER_MS, now_ns)) {
        return;
    }
    if (!is_read_out(file)) {
        /* The last line has no end: taken now, as the file is final. */
        lahar_follow_enqueue(source, file);
    } else if (keeps) {
        lahar_followed_file_close(source, file);
    } else {
        forget(source, file);
    }
}

/* A file that is not found, and not open. Its cursor waits for it to come back. */
static void settle_gone(struct lahar_follow *follow, struct lahar_follow_source *source,
                        struct lahar_followed_file *file, uint64_t now_ns)
{
    struct lahar_io *io = lahar_store_io(follow->store);
    const lahar_source_spec *spec = &source->spec;
    if (!is_due(source, file->vanished_ns + spec->rotate_wait_ms * NS_PER_MS, now_ns)) {
        return;
    }
    if ((file->cursor.flags & LAHAR_CURSOR_GZIP) == 0 &&
        file->cursor.size_seen > file->cursor.offset) {
        note_gap(file, file->cursor.size_seen, "the file was removed before they were read");
        file->cursor.size_seen = file->cursor.offset;
        file->size = file->cursor.offset;
        file->must_commit = true;
        lahar_follow_enqueue(source, file);
        return;
    }
    const int64_t age_ns = io->ops->realtime_ns(io) - file->cursor.changed_ns;
    if (age_ns > 0 && (uint64_t)age_ns / NS_PER_MS > spec->forget_after_ms && file->is_recorded) {
        forget(source, file);
    }
}

static void settle_idle(struct lahar_follow *follow, struct lahar_follow_source *source,
                        struct lahar_followed_file *file, uint64_t now_ns)
{
    const lahar_source_spec *spec = &source->spec;
    const bool is_open_gzip = file->gzip != NULL && lahar_gzip_stream_is_complete(file->gzip);
    if (!file->is_drained) {
        return;
    }
    if (!is_read_out(file) && spec->partial_timeout_ms != 0 &&
        is_due(source, file->grown_ns + spec->partial_timeout_ms * NS_PER_MS, now_ns)) {
        lahar_follow_enqueue(source, file);
        return;
    }
    if (!is_read_out(file) && (file->is_foreign_name || is_open_gzip) &&
        is_due(source, file->grown_ns + spec->rotate_wait_ms * NS_PER_MS, now_ns)) {
        lahar_follow_enqueue(source, file);
        return;
    }
    if (spec->remove_after_ms == 0 || !is_read_out(file) || !file->is_recorded ||
        file->commit_id >= lahar_durable_id(follow->store) ||
        !is_due(source, file->grown_ns + spec->remove_after_ms * NS_PER_MS, now_ns)) {
        return;
    }
    const struct lahar_source_stat expected = {
        .device = file->cursor.device, .inode = file->cursor.inode, .size = file->size};
    lahar_error error = {0};
    if (lahar_source_remove(&source->root, file->path, &expected, &error) != LAHAR_OK) {
        lahar_store_log(follow->store, LAHAR_LOG_WARNING, "source %s: %s", source->spec.name,
                        error.message);
        file->grown_ns = now_ns;
    }
    source->must_scan = true;
}

static bool settle_file(struct lahar_follow *follow, struct lahar_follow_source *source,
                        struct lahar_followed_file *file, uint64_t now_ns)
{
    if (file->is_busy || file->must_forget) {
        return false;
    }
    if ((file->cursor.flags & LAHAR_CURSOR_CLOSED) != 0) {
        return false;
    }
    if (file->change != LAHAR_CONTENT_SAME) {
        return settle_change(follow, source, file, now_ns);
    }
    if ((file->cursor.flags & LAHAR_CURSOR_COPY) != 0) {
        lahar_generation_settle_copy(source, file);
        return false;
    }
    if (file->is_blocked) {
        if (is_due(source, file->blocked_until_ns, now_ns)) {
            lahar_follow_enqueue(source, file);
        }
        return false;
    }
    if (file->is_unlinked && file->descriptor >= 0) {
        settle_unlinked(source, file, now_ns);
    } else if (file->vanished_ns != 0 && file->descriptor < 0 && !file->is_foreign_name) {
        settle_gone(follow, source, file, now_ns);
    } else {
        settle_idle(follow, source, file, now_ns);
    }
    return false;
}

/* Copies and closed contents age out like files that are gone. */
static void forget_closed(struct lahar_follow *follow, struct lahar_follow_source *source,
                          struct lahar_followed_file *file)
{
    struct lahar_io *io = lahar_store_io(follow->store);
    const int64_t age_ns = io->ops->realtime_ns(io) - file->cursor.changed_ns;
    if ((file->cursor.flags & LAHAR_CURSOR_CLOSED) != 0 && !file->must_forget && age_ns > 0 &&
        file->is_recorded && (uint64_t)age_ns / NS_PER_MS > source->spec.forget_after_ms) {
        forget(source, file);
    }
}

bool lahar_follow_maintain(struct lahar_follow *follow, struct lahar_follow_source *source,
                           uint64_t now_ns)
{
    const struct lahar_followed_file *ready_before = source->ready_first;
    bool has_changed = false;
    source->next_due_ns = UINT64_MAX;
    source->held_size = 0;
    for (size_t i = 0; i < source->files.count; i++) {
        const struct lahar_followed_file *file = source->files.files[i];
        source->held_size += file->is_unlinked && file->descriptor >= 0 ? file->size : 0;
    }
    for (size_t i = 0; i < source->files.count; i++) {
        struct lahar_followed_file *file = source->files.files[i];
        forget_closed(follow, source, file);
        has_changed = settle_file(follow, source, file, now_ns) || has_changed;
    }
    return has_changed || source->ready_first != ready_before;
}
