/* One turn of a file: open it, make sure that it still is what was followed, read a piece,
 * take its records.
 *
 * Every piece is read from a window before the offset on, and the window is compared with
 * what was there when the offset was committed: other bytes, or a file that is shorter, and
 * nothing of the piece is used. Sizes and times only say when to look. What is taken was in the
 * same read as the window. */
#include "engine/follow/file_poll.h"

#include <string.h>

#include "engine/follow/transcode.h"
#include "io/base/error.h"

enum {
    MARK_SIZE_MAX = 4,
    HOLE_SIZE_MIN = 512, /* NUL bytes at a line's start that are passed over as a hole */
    HOLE_BYTES_A_TURN = 64 << 20,
    PASSED_SIZE = 64 << 20,     /* of a line that is too long, between two commits */
    PARTIAL_SIZE_MIN = 64 << 10 /* from here on an incomplete line is not read again and again */
};

lahar_status lahar_file_poll_read(struct lahar_file_poll *poll, uint64_t offset, void *data,
                                  size_t size, size_t *read_out, lahar_error *error)
{
    struct lahar_followed_file *file = poll->file;
    if (file->gzip != NULL) {
        return lahar_gzip_stream_read(file->gzip, file->descriptor, offset, data, size, read_out,
                                      error);
    }
    return lahar_source_read(file->descriptor, offset, data, size, read_out, error);
}

static enum lahar_poll_result block(struct lahar_file_poll *poll)
{
    return poll->error.status == LAHAR_NOT_FOUND ? LAHAR_POLL_MISSING : LAHAR_POLL_BLOCKED;
}

/* --- the file -------------------------------------------------------------------------- */

static bool is_same_file(const struct lahar_file_cursor *cursor,
                         const struct lahar_source_stat *stat)
{
    return stat->inode == cursor->inode && stat->device == cursor->device &&
           (stat->birth_ns == 0 || cursor->birth_ns == 0 || stat->birth_ns == cursor->birth_ns);
}

/* Opens the file by its last known name; false with poll->result set when it is not there. */
static bool open_file(struct lahar_follow *follow, struct lahar_follow_source *source,
                      struct lahar_file_poll *poll)
{
    struct lahar_followed_file *file = poll->file;
    if (file->descriptor < 0) {
        int descriptor = -1;
        if (lahar_source_open(&source->root, file->path, &descriptor, &poll->stat, &poll->error) !=
            LAHAR_OK) {
            poll->result = block(poll);
            return false;
        }
        if (!is_same_file(&file->cursor, &poll->stat) || poll->stat.kind != LAHAR_SOURCE_REGULAR) {
            lahar_source_close(descriptor);
            poll->result = LAHAR_POLL_MISSING;
            return false;
        }
        file->is_checked = false;
        (void)pthread_mutex_lock(&follow->lock);
        file->descriptor = descriptor;
        source->open_count++;
        (void)pthread_mutex_unlock(&follow->lock);
    }
    if (lahar_source_describe(file->descriptor, &poll->stat, &poll->error) != LAHAR_OK) {
        poll->result = LAHAR_POLL_BLOCKED;
        return false;
    }
    return true;
}

/* A gzip file is decoded from its first bytes on. */
static bool open_gzip(struct lahar_follow *follow, const struct lahar_follow_source *source,
                      struct lahar_file_poll *poll)
{
    struct lahar_followed_file *file = poll->file;
    uint8_t magic[2];
    size_t got = 0;
    if (!source->spec.decompress || file->gzip != NULL) {
        return true;
    }
    if (lahar_source_read(file->descriptor, 0, magic, sizeof magic, &got, &poll->error) !=
        LAHAR_OK) {
        poll->result = LAHAR_POLL_BLOCKED;
        return false;
    }
    const bool was_gzip = (poll->next.flags & LAHAR_CURSOR_GZIP) != 0;
    if (!lahar_is_gzip(magic, got)) {
        if (was_gzip) {
            poll->result = LAHAR_POLL_CHANGED;
            poll->change = LAHAR_CONTENT_REPLACED;
        }
        return !was_gzip;
    }
    if (!was_gzip && poll->next.offset != 0) {
        poll->result = LAHAR_POLL_CHANGED;
        poll->change = LAHAR_CONTENT_REPLACED;
        return false;
    }
    if (lahar_gzip_stream_create(follow->allocator, &file->gzip, &poll->error) != LAHAR_OK) {
        poll->result = LAHAR_POLL_BLOCKED;
        return false;
    }
    if (!was_gzip) {
        poll->next.flags |= LAHAR_CURSOR_GZIP;
        poll->has_changed = true;
    }
    return true;
}

/* The piece of this turn, and those of later ones, begin with the window before the offset; of a
 * line that is too long the beginning is wanted once its end has come. */
static void keep_readable(const struct lahar_file_poll *poll)
{
    const struct lahar_file_cursor *cursor = &poll->next;
    const uint64_t offset =
        (cursor->flags & LAHAR_CURSOR_LONG_LINE) != 0 ? cursor->long_start : cursor->offset;
    lahar_gzip_stream_keep(poll->file->gzip,
                           offset <= LAHAR_HEAD_SIZE ? 0 : offset - LAHAR_TAIL_SIZE);
}

/* --- the content -------------------------------------------------------------------------- */

/* Compares the head of a file that was just opened, where the piece does not begin with it. */
static bool check_head(struct lahar_file_poll *poll, uint64_t size)
{
    uint8_t head[LAHAR_HEAD_SIZE];
    const struct lahar_fingerprint *print = &poll->next.print;
    size_t got = 0;
    const size_t wanted = size < print->head_size ? (size_t)size : print->head_size;
    if (lahar_file_poll_read(poll, 0, head, wanted, &got, &poll->error) != LAHAR_OK) {
        return false;
    }
    return lahar_fingerprint_head_matches(print, head, got);
}

/* Whether a file that is shorter than its offset is the same content cut at its end: the host
 * went down before the writer's last bytes reached the disk, or an editor took lines away. A
 * matching beginning alone proves nothing: the writer may have started over. */
static bool is_cut(struct lahar_follow_worker *worker, const struct lahar_follow_source *source,
                   struct lahar_file_poll *poll)
{
    const struct lahar_follow *follow = worker->follow;
    const struct lahar_file_cursor *cursor = &poll->next;
    const bool is_rollback =
        memcmp(cursor->boot_id, follow->boot_id, sizeof cursor->boot_id) != 0 &&
        poll->stat.mtime_ns < follow->booted_ns;
    if (poll->stat.size == 0 || (!is_rollback && !source->spec.on_shrink_continue) ||
        poll->file->gzip != NULL || (cursor->flags & LAHAR_CURSOR_LONG_LINE) != 0) {
        return false;
    }
    uint8_t window[LAHAR_TAIL_SIZE];
    size_t got = 0;
    const struct lahar_ladder_point *point =
        lahar_fingerprint_point_below(&cursor->print, poll->stat.size);
    if (!check_head(poll, poll->stat.size)) {
        return false;
    }
    if (point == NULL) {
        return true;
    }
    const size_t size = lahar_tail_size(point->offset);
    return lahar_file_poll_read(poll, point->offset - size, window, size, &got, &poll->error) ==
               LAHAR_OK &&
           got == size && lahar_fingerprint_point_matches(point, window);
}

/* The cursor moves back to the end of a file that was cut. A line that was delivered whole and is
 * cut in its middle is not delivered again; what is written behind it is a record of its own. */
static bool move_back(struct lahar_file_poll *poll)
{
    struct lahar_file_cursor *next = &poll->next;
    uint8_t window[LAHAR_HEAD_SIZE];
    size_t got = 0;
    const uint64_t size = poll->stat.size;
    const uint64_t start = size < LAHAR_HEAD_SIZE ? 0 : size - LAHAR_TAIL_SIZE;
    if (lahar_file_poll_read(poll, start, window, (size_t)(size - start), &got, &poll->error) !=
            LAHAR_OK ||
        got != size - start) {
        return false;
    }
    poll->cut_from = size;
    poll->cut_to = next->size_seen > next->offset ? next->size_seen : next->offset;
    lahar_fingerprint_cut(&next->print, size);
    next->offset = size;
    next->size_seen = size;
    lahar_fingerprint_update(&next->print, window, start, size);
    poll->has_changed = true;
    return true;
}

/* Whether the piece, which begins at start, continues what was consumed. */
static bool is_continuation(struct lahar_file_poll *poll, const uint8_t *data, uint64_t start,
                            size_t size)
{
    const struct lahar_file_cursor *next = &poll->next;
    if (size < next->offset - start) {
        return false;
    }
    if (start == 0 && !lahar_fingerprint_head_matches(&next->print, data, size)) {
        return false;
    }
    if (start != 0 && !poll->file->is_checked && !check_head(poll, UINT64_MAX)) {
        return false;
    }
    poll->file->is_checked = true;
    return lahar_fingerprint_tail_matches(&next->print,
                                          data + (next->offset - start) - next->print.tail_size);
}

static enum lahar_poll_result changed(struct lahar_file_poll *poll,
                                      enum lahar_content_change change)
{
    poll->change = change;
    return poll->error.status != LAHAR_OK ? block(poll) : LAHAR_POLL_CHANGED;
}

/* --- holes ---------------------------------------------------------------------------------- */

/* NUL bytes where a line begins, and more of them than a line has by chance, are the hole that a
 * writer leaves that goes on at its old place after a truncation. It is passed over, but only once
 * something follows: space that was reserved will be written yet. */
static bool pass_hole(struct lahar_follow_worker *worker, struct lahar_file_poll *poll,
                      const uint8_t *data, size_t size)
{
    struct lahar_followed_file *file = poll->file;
    struct lahar_file_cursor *next = &poll->next;
    size_t run = 0;
    while (run < size && data[run] == 0) {
        run++;
    }
    if (run < HOLE_SIZE_MIN && run < size) {
        return false;
    }
    uint64_t at = next->offset + run;
    uint64_t scanned = 0;
    at = file->partial_end > at ? file->partial_end : at;
    while (run == size && scanned < HOLE_BYTES_A_TURN) {
        uint64_t there = at;
        if (file->gzip == NULL && lahar_source_next_data(file->descriptor, at, &there)) {
            at = there;
        }
        size_t got = 0;
        if (lahar_file_poll_read(poll, at, worker->data.data, LAHAR_READ_QUANTUM, &got,
                                 &poll->error) != LAHAR_OK ||
            got == 0) {
            break;
        }
        size_t zeros = 0;
        while (zeros < got && worker->data.data[zeros] == 0) {
            zeros++;
        }
        at += zeros;
        scanned += got;
        if (zeros < got) {
            run = 0;
        }
    }
    if (run == size) {
        poll->partial_end = at;
        poll->result = scanned >= HOLE_BYTES_A_TURN ? LAHAR_POLL_MORE : LAHAR_POLL_DRAINED;
        return true;
    }
    uint8_t window[LAHAR_TAIL_SIZE];
    size_t got = 0;
    if (lahar_file_poll_read(poll, at - LAHAR_TAIL_SIZE, window, sizeof window, &got,
                             &poll->error) == LAHAR_OK &&
        got == sizeof window) {
        next->offset = at;
        lahar_fingerprint_update(&next->print, window, at - LAHAR_TAIL_SIZE, at);
        poll->has_changed = true;
    }
    poll->result = LAHAR_POLL_MORE;
    return true;
}

/* --- a turn ------------------------------------------------------------------------------------
 */

/* Where a line that is not complete ends now, found without reading its beginning again. False
 * when no line end has come. */
static bool has_line_end(struct lahar_follow_worker *worker, struct lahar_file_poll *poll,
                         uint64_t size)
{
    const uint64_t from = poll->file->partial_end;
    size_t got = 0;
    if (poll->is_final || from < poll->next.offset + PARTIAL_SIZE_MIN || from > size ||
        poll->file->gzip != NULL || lahar_encoding_unit(poll->next.encoding) != 1) {
        return true;
    }
    if (lahar_file_poll_read(poll, from, worker->data.data, LAHAR_READ_QUANTUM, &got,
                             &poll->error) != LAHAR_OK ||
        memchr(worker->data.data, '\n', got) != NULL || got == LAHAR_READ_QUANTUM) {
        return true;
    }
    poll->partial_end = from + got;
    return false;
}

static bool find_encoding(struct lahar_file_poll *poll, struct lahar_line_feed *feed)
{
    struct lahar_file_cursor *next = &poll->next;
    size_t mark_size = 0;
    if (next->encoding != LAHAR_ENCODING_UNKNOWN) {
        return true;
    }
    next->encoding =
        (uint8_t)lahar_encoding_detect(feed->data, feed->size, feed->is_last, &mark_size);
    next->offset += mark_size;
    feed->data += mark_size;
    feed->size -= mark_size;
    poll->has_changed = poll->has_changed || mark_size != 0;
    return next->encoding != LAHAR_ENCODING_UNKNOWN;
}

/* Inside a line that is too long nothing is delivered, and the line may grow by a little for ever:
 * how far it was looked at is committed once in a while, so that the store does not grow with it.
 * Whoever starts again from there looks at the rest again. */
static bool is_worth_a_commit(const struct lahar_file_poll *poll)
{
    const struct lahar_followed_file *file = poll->file;
    const struct lahar_file_cursor *next = &poll->next;
    const bool is_inside = (next->flags & file->cursor.flags & LAHAR_CURSOR_LONG_LINE) != 0 &&
                           next->long_start == file->cursor.long_start;
    return !is_inside || next->offset - file->committed_offset >= PASSED_SIZE;
}

/* The records of a piece, of which the bytes from start on are in the worker's buffer. */
static lahar_status take_records(struct lahar_follow_worker *worker,
                                 struct lahar_follow_source *source, struct lahar_file_poll *poll,
                                 uint64_t start, bool is_whole, lahar_error *error)
{
    struct lahar_file_cursor *next = &poll->next;
    const uint64_t before = next->offset;
    struct lahar_line_feed feed = {worker->data.data + (before - start),
                                   worker->data.size - (size_t)(before - start),
                                   poll->is_final && is_whole};
    poll->result = LAHAR_POLL_DRAINED;
    if (worker->end_offset != 0 && before + feed.size >= worker->end_offset) {
        feed.size = (size_t)(worker->end_offset - before);
        feed.is_last = true;
    }
    if (feed.size == 0 || !find_encoding(poll, &feed)) {
        return LAHAR_OK;
    }
    if (lahar_encoding_unit(next->encoding) == 1 && feed.size != 0 && feed.data[0] == 0 &&
        next->text_flags == 0 && (next->flags & LAHAR_CURSOR_LONG_LINE) == 0 &&
        pass_hole(worker, poll, feed.data, feed.size)) {
        return LAHAR_OK;
    }
    const lahar_status status = lahar_line_feed_take(worker, source, poll, &feed, error);
    const struct lahar_record_sink *sink = &worker->sink;
    if (next->offset != before) {
        lahar_fingerprint_update(&next->print, worker->data.data, start, next->offset);
        poll->has_changed = poll->has_changed || is_worth_a_commit(poll);
    }
    if (sink->is_stopped) {
        poll->result = LAHAR_POLL_STUCK;
    } else if (sink->is_full || !is_whole) {
        poll->result = LAHAR_POLL_MORE;
    } else {
        poll->partial_end = next->offset + feed.size;
    }
    return status;
}

/* Reads the piece that begins with the window before the offset. */
static bool read_piece(struct lahar_follow_worker *worker, const struct lahar_follow_source *source,
                       struct lahar_file_poll *poll, uint64_t *start_out, bool *is_whole_out)
{
    struct lahar_file_cursor *next = &poll->next;
    const uint64_t start = next->offset <= LAHAR_HEAD_SIZE ? 0 : next->offset - LAHAR_TAIL_SIZE;
    const uint64_t line_max = source->spec.line_size_max;
    size_t wanted = line_max + (LAHAR_READ_QUANTUM / 2) > LAHAR_READ_QUANTUM
                        ? (size_t)line_max + LAHAR_READ_QUANTUM / 2
                        : LAHAR_READ_QUANTUM;
    wanted += LAHAR_HEAD_SIZE + MARK_SIZE_MAX;
    if (poll->file->gzip == NULL && poll->stat.size - start < wanted) {
        /* A small file needs a small buffer. */
        wanted = (size_t)(poll->stat.size - start) + 4096;
    }
    lahar_buffer_clear(&worker->data);
    if (!lahar_buffer_reserve(&worker->data,
                              wanted < LAHAR_READ_QUANTUM ? LAHAR_READ_QUANTUM : wanted)) {
        (void)lahar_fail(&poll->error, LAHAR_NO_MEMORY, "no memory to read %s", poll->file->path);
        return false;
    }
    size_t got = 0;
    const lahar_status status =
        lahar_file_poll_read(poll, start, worker->data.data, wanted, &got, &poll->error);
    worker->data.size = got;
    *start_out = start;
    *is_whole_out = got < wanted;
    /* Damage ends what can be read, behind good bytes. */
    return status == LAHAR_OK || (status == LAHAR_CORRUPT && got > next->offset - start);
}

lahar_status lahar_file_poll(struct lahar_follow_worker *worker, struct lahar_follow_source *source,
                             struct lahar_file_poll *poll, lahar_error *error)
{
    struct lahar_follow *follow = worker->follow;
    struct lahar_file_cursor *next = &poll->next;
    uint64_t start;
    bool is_whole;
    poll->next = poll->file->cursor;
    poll->partial_end = poll->file->partial_end;
    if (!open_file(follow, source, poll) || !open_gzip(follow, source, poll)) {
        return LAHAR_OK;
    }
    if (poll->file->gzip != NULL) {
        keep_readable(poll);
    }
    if (poll->file->gzip == NULL && poll->stat.size < next->offset &&
        (!is_cut(worker, source, poll) || !move_back(poll))) {
        poll->result = changed(poll, LAHAR_CONTENT_TRUNCATED);
        return LAHAR_OK;
    }
    lahar_buffer_clear(&worker->data);
    if (!lahar_buffer_reserve(&worker->data, LAHAR_READ_QUANTUM)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read files");
    }
    if (!has_line_end(worker, poll, poll->stat.size)) {
        poll->result = LAHAR_POLL_DRAINED;
        return LAHAR_OK;
    }
    if (!read_piece(worker, source, poll, &start, &is_whole)) {
        poll->result = block(poll);
        return LAHAR_OK;
    }
    if (!is_continuation(poll, worker->data.data, start, worker->data.size)) {
        poll->result = changed(poll, LAHAR_CONTENT_REPLACED);
        return LAHAR_OK;
    }
    if (next->size_seen > poll->stat.size && poll->file->gzip == NULL &&
        poll->cut_to <= poll->cut_from) {
        poll->cut_from = poll->stat.size;
        poll->cut_to = next->size_seen;
        next->size_seen = poll->stat.size;
        poll->has_changed = true;
    }
    const lahar_status status = take_records(worker, source, poll, start, is_whole, error);
    if (poll->error.status != LAHAR_OK && poll->result == LAHAR_POLL_DRAINED) {
        poll->result = LAHAR_POLL_BLOCKED;
    }
    return status;
}
