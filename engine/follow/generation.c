/* Beginning and ending generations; see generation.h. */
#include "engine/follow/generation.h"

#include <string.h>

#include "engine/follow/file_place.h"
#include "engine/store/store_state.h"

/* Takes a file out of the queue. */
static void dequeue(struct lahar_follow_source *source, struct lahar_followed_file *file)
{
    struct lahar_followed_file *before = NULL;
    struct lahar_followed_file *at = source->ready_first;
    if (!file->is_ready) {
        return;
    }
    while (at != file) {
        before = at;
        at = at->next_ready;
    }
    if (before == NULL) {
        source->ready_first = file->next_ready;
    } else {
        before->next_ready = file->next_ready;
    }
    if (source->ready_last == file) {
        source->ready_last = before;
    }
    file->is_ready = false;
}

static struct lahar_file_cursor first_cursor(uint64_t generation,
                                             const struct lahar_source_stat *stat)
{
    return (struct lahar_file_cursor){.generation = generation,
                                      .device = stat->device,
                                      .inode = stat->inode,
                                      .birth_ns = stat->birth_ns,
                                      .mtime_ns = stat->mtime_ns,
                                      .line = 1,
                                      .first_line = 1};
}

/* --- copies ------------------------------------------------------------------------------- */

/* Whether the file at descriptor has, up to the other's offset, the other's content. */
static bool has_content_of(struct lahar_follow *follow, int descriptor,
                           const struct lahar_file_cursor *other)
{
    uint8_t head[LAHAR_HEAD_SIZE];
    uint8_t window[LAHAR_TAIL_SIZE];
    const struct lahar_fingerprint *print = &other->print;
    struct lahar_gzip_stream *gzip = NULL;
    size_t got = 0;
    bool is_same = false;
    lahar_status status = lahar_source_read(descriptor, 0, head, 2, &got, NULL);
    const bool is_gzip = status == LAHAR_OK && lahar_is_gzip(head, got);
    if (is_gzip) {
        status = lahar_gzip_stream_create(follow->allocator, &gzip, NULL);
    }
    if (status != LAHAR_OK || other->offset == 0) {
        goto cleanup;
    }
    status = is_gzip
                 ? lahar_gzip_stream_read(gzip, descriptor, 0, head, print->head_size, &got, NULL)
                 : lahar_source_read(descriptor, 0, head, print->head_size, &got, NULL);
    if (status != LAHAR_OK || got != print->head_size ||
        !lahar_fingerprint_head_matches(print, head, got)) {
        goto cleanup;
    }
    const uint64_t start = other->offset - print->tail_size;
    status = is_gzip ? lahar_gzip_stream_read(gzip, descriptor, start, window, print->tail_size,
                                              &got, NULL)
                     : lahar_source_read(descriptor, start, window, print->tail_size, &got, NULL);
    is_same = status == LAHAR_OK && got == print->tail_size &&
              lahar_fingerprint_tail_matches(print, window);
cleanup:
    lahar_gzip_stream_destroy(gzip);
    return is_same;
}

/* The known file, or an earlier content of it, of which the file at path may be a copy: the one
 * whose name its own begins with ("f" of "f.1" and "f-20240101.gz"). */
static struct lahar_followed_file *find_original(struct lahar_follow *follow,
                                                 const struct lahar_follow_source *source,
                                                 const char *path, int descriptor)
{
    char name[LAHAR_SOURCE_PATH_SIZE];
    size_t size = strlen(path);
    const size_t base = (size_t)(strrchr(path, '/') - path) + 1;
    memcpy(name, path, size + 1);
    while (--size > base) {
        if (strchr(".-_", name[size]) == NULL) {
            continue;
        }
        name[size] = '\0';
        struct lahar_followed_file *file = lahar_file_table_by_path(&source->files, name);
        for (int earlier = 0; file != NULL && earlier < 8; earlier++) {
            if (has_content_of(follow, descriptor, &file->cursor)) {
                return file;
            }
            file = file->cursor.predecessor == 0
                       ? NULL
                       : lahar_file_table_by_generation(&source->files, file->cursor.predecessor);
        }
    }
    return NULL;
}

static void mark_copy(struct lahar_follow *follow, struct lahar_follow_source *source,
                      struct lahar_followed_file *file)
{
    struct lahar_source_stat stat;
    int descriptor = -1;
    const size_t size = strlen(file->path);
    const bool is_gzip = size > 3 && strcmp(file->path + size - 3, ".gz") == 0;
    if (!source->spec.copies_rotated && !(source->spec.decompress && is_gzip)) {
        return;
    }
    if (lahar_source_open(&source->root, file->path, &descriptor, &stat, NULL) != LAHAR_OK) {
        return;
    }
    const struct lahar_followed_file *original =
        find_original(follow, source, file->path, descriptor);
    if (original != NULL && original != file) {
        uint8_t magic[2];
        size_t got = 0;
        if (source->spec.decompress &&
            lahar_source_read(descriptor, 0, magic, sizeof magic, &got, NULL) == LAHAR_OK &&
            lahar_is_gzip(magic, got)) {
            file->cursor.flags |= LAHAR_CURSOR_GZIP;
        }
        file->cursor.flags |= LAHAR_CURSOR_COPY;
        file->cursor.predecessor = original->cursor.generation;
    }
    lahar_source_close(descriptor);
}

/* The copy goes on where its original was left. */
static void begin_copy(struct lahar_follow_source *source, struct lahar_followed_file *file,
                       const struct lahar_file_cursor *original)
{
    struct lahar_file_cursor *cursor = &file->cursor;
    cursor->flags &= ~(uint32_t)LAHAR_CURSOR_COPY;
    cursor->flags |= original->flags & LAHAR_CURSOR_LONG_LINE;
    cursor->offset = original->offset;
    cursor->line = original->line;
    cursor->first_offset = original->offset;
    cursor->first_line = original->line;
    cursor->long_start = original->long_start;
    cursor->encoding = original->encoding;
    cursor->text_flags = original->text_flags;
    cursor->print = original->print;
    file->must_commit = true;
    file->partial_end = 0;
    lahar_follow_enqueue(source, file);
}

void lahar_generation_settle_copy(struct lahar_follow_source *source,
                                  struct lahar_followed_file *file)
{
    const struct lahar_followed_file *original =
        lahar_file_table_by_generation(&source->files, file->cursor.predecessor);
    if (file->is_busy) {
        return;
    }
    if (original == NULL) {
        file->cursor.flags &= ~(uint32_t)LAHAR_CURSOR_COPY;
        file->must_commit = true;
        lahar_follow_enqueue(source, file);
        return;
    }
    const bool has_ended = (original->cursor.flags & LAHAR_CURSOR_CLOSED) != 0 ||
                           (original->vanished_ns != 0 && original->descriptor < 0) ||
                           (original->is_unlinked && original->is_drained);
    const struct lahar_file_cursor *cursor = &original->cursor;
    if (original->is_busy) {
        return;
    }
    if (has_ended) {
        begin_copy(source, file, cursor);
    } else if (original->is_drained && cursor->offset >= file->size && file->descriptor < 0 &&
               (file->cursor.flags & LAHAR_CURSOR_GZIP) == 0) {
        /* A copy beside its living original: all of it is covered. What the original has
         * more is behind the copy's end. */
        struct lahar_source_stat stat;
        int descriptor = -1;
        if (lahar_source_open(&source->root, file->path, &descriptor, &stat, NULL) == LAHAR_OK &&
            lahar_file_place(descriptor, stat.size, true, source->files.allocator, &file->cursor,
                             NULL) == LAHAR_OK) {
            file->cursor.flags &= ~(uint32_t)LAHAR_CURSOR_COPY;
            file->must_commit = true;
            lahar_follow_enqueue(source, file);
        }
        lahar_source_close(descriptor);
    }
}

/* --- generations ---------------------------------------------------------------------------------
 */

/* Of a file that is there when a source begins: only what comes later. */
static void skip_to_end(struct lahar_follow *follow, struct lahar_follow_source *source,
                        struct lahar_followed_file *file)
{
    struct lahar_source_stat stat;
    int descriptor = -1;
    if (lahar_source_open(&source->root, file->path, &descriptor, &stat, NULL) == LAHAR_OK) {
        (void)lahar_file_place(descriptor, stat.size, true, follow->allocator, &file->cursor, NULL);
    }
    lahar_source_close(descriptor);
}

void lahar_generation_begin(struct lahar_follow *follow, struct lahar_follow_source *source,
                            const char *path, const struct lahar_source_stat *stat, uint64_t now_ns)
{
    const uint64_t generation = lahar_follow_next_generation(follow, source);
    if (generation == 0) {
        source->must_scan = true;
        return;
    }
    struct lahar_followed_file *before = lahar_file_table_by_path(&source->files, path);
    const struct lahar_file_cursor cursor = first_cursor(generation, stat);
    struct lahar_followed_file *file =
        lahar_file_table_add(&source->files, &cursor, path, strlen(path));
    if (file == NULL) {
        source->must_scan = true;
        return;
    }
    file->scan = source->scan;
    file->size = stat->size;
    file->grown_ns = now_ns;
    if (!source->has_scanned && source->spec.start_at_end) {
        skip_to_end(follow, source, file);
    }
    mark_copy(follow, source, file);
    if (before != NULL && before->successor == NULL && before->descriptor >= 0) {
        /* Old before new: what the name stood for before is read to its end first. */
        before->successor = file;
        file->waits_for = before;
        before->is_drained = false;
        lahar_follow_enqueue(source, before);
    }
    if ((file->cursor.flags & LAHAR_CURSOR_COPY) == 0) {
        lahar_follow_enqueue(source, file);
    }
}

static const char *reason_of(enum lahar_content_change change)
{
    return change == LAHAR_CONTENT_TRUNCATED ? "the file was truncated before they were read"
                                             : "the file was replaced before they were read";
}

/* What was seen of the old content and not read goes into the new one's account. */
static void hand_over_gap(struct lahar_followed_file *file, struct lahar_followed_file *next,
                          enum lahar_content_change change)
{
    const struct lahar_file_cursor *cursor = &file->cursor;
    const uint64_t seen = cursor->size_seen;
    if ((cursor->flags & LAHAR_CURSOR_GZIP) == 0 && seen > cursor->offset) {
        next->gap_from = cursor->offset;
        next->gap_to = seen;
        next->gap_generation = cursor->generation;
        next->gap_reason = reason_of(change);
    } else {
        next->gap_from = file->gap_from;
        next->gap_to = file->gap_to;
        next->gap_generation = file->gap_generation;
        next->gap_reason = file->gap_reason;
    }
}

void lahar_generation_replace(struct lahar_follow *follow, struct lahar_follow_source *source,
                              struct lahar_followed_file *file,
                              const struct lahar_source_stat *stat, const char *path,
                              enum lahar_content_change change, uint64_t now_ns)
{
    const uint64_t generation = file->is_busy ? 0 : lahar_follow_next_generation(follow, source);
    if (generation == 0) {
        source->must_scan = true;
        return;
    }
    struct lahar_file_cursor cursor = first_cursor(generation, stat);
    cursor.predecessor = file->is_recorded ? file->cursor.generation : file->cursor.predecessor;
    const char *name = path == NULL ? file->path : path;
    struct lahar_followed_file *next =
        lahar_file_table_add(&source->files, &cursor, name, strlen(name));
    if (next == NULL) {
        source->must_scan = true;
        return;
    }
    hand_over_gap(file, next, change);
    next->scan = file->scan == source->scan || path != NULL ? source->scan : 0;
    next->size = stat->size;
    next->grown_ns = now_ns;
    if (change == LAHAR_CONTENT_REPLACED && path != NULL) {
        lahar_followed_file_close(source, file);
    }
    next->descriptor = file->descriptor;
    if (path == NULL) {
        next->is_unlinked = file->is_unlinked;
        next->is_foreign_name = file->is_foreign_name;
        next->vanished_ns = file->vanished_ns;
    }
    file->descriptor = -1;
    lahar_gzip_stream_destroy(file->gzip);
    file->gzip = NULL;
    dequeue(source, file);
    if (file->successor != NULL) {
        struct lahar_followed_file *waiting = file->successor;
        waiting->waits_for = NULL;
        file->successor = NULL;
        lahar_follow_enqueue(source, waiting);
    }
    lahar_file_table_retire(&source->files, file);
    if (file->is_recorded) {
        next->retires = file;
    } else {
        next->retires = file->retires;
        file->retires = NULL;
        lahar_file_table_remove(&source->files, file);
    }
    lahar_follow_enqueue(source, next);
}
