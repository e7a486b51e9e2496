/* A round: the ready files of one source are read in turn into one block, which is committed
 * with their cursors as one batch, or thrown away as a whole.
 *
 * Nothing moves in memory before the commit has succeeded, so that every failure of the store
 * leaves the files as they were and the same records are read again. */
#include <string.h>

#include "engine/follow/file_poll.h"
#include "engine/follow/source_registry.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

enum {
    BLOCK_SIZE_MAX = 1 << 20, /* bytes of a block; more are of no use to the store */
    TURNS_MAX = 64 /* rounds of a file one after the other while others wait to be opened */
};
#define NS_PER_MS        UINT64_C(1000000)
#define BLOCKED_FIRST_NS (500 * NS_PER_MS)
#define BLOCKED_MAX_NS   (32000 * NS_PER_MS)
#define ERROR_LOG_NS     (1000 * NS_PER_MS)

/* --- workers ------------------------------------------------------------------------- */

lahar_status lahar_follow_worker_create(struct lahar_follow *follow,
                                        struct lahar_follow_worker **worker_out, lahar_error *error)
{
    struct lahar_follow_worker *worker =
        lahar_allocate_zeroed(follow->allocator, 1, sizeof *worker);
    *worker_out = NULL;
    if (worker == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a follower");
    }
    worker->follow = follow;
    worker->sink.allocator = follow->allocator;
    worker->sink.kind = LAHAR_SINK_APPEND;
    lahar_buffer_init(&worker->data, follow->allocator);
    lahar_buffer_init(&worker->text, follow->allocator);
    lahar_buffer_init(&worker->value, follow->allocator);
    worker->polls =
        lahar_allocate_zeroed(follow->allocator, LAHAR_ROUND_FILES_MAX, sizeof *worker->polls);
    lahar_status status = worker->polls == NULL
                              ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a follower")
                              : LAHAR_OK;
    if (status == LAHAR_OK && !follow->is_dry) {
        status = lahar_batch_create(follow->store, &worker->batch, error);
    }
    if (status != LAHAR_OK) {
        lahar_follow_worker_destroy(worker);
        return status;
    }
    *worker_out = worker;
    return LAHAR_OK;
}

void lahar_follow_worker_destroy(struct lahar_follow_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    lahar_batch_destroy(worker->batch);
    lahar_text_reader_destroy(worker->reader);
    lahar_columns_deinit(&worker->columns);
    lahar_record_sink_deinit(&worker->sink);
    lahar_buffer_deinit(&worker->data);
    lahar_buffer_deinit(&worker->text);
    lahar_buffer_deinit(&worker->value);
    lahar_release(worker->follow->allocator, worker->polls);
    lahar_release(worker->follow->allocator, worker);
}

/* --- taking files ------------------------------------------------------------------------ */

/* With the lock. */
static struct lahar_followed_file *take_ready(struct lahar_follow_source *source)
{
    struct lahar_followed_file *file = source->ready_first;
    if (file != NULL) {
        source->ready_first = file->next_ready;
        if (source->ready_first == NULL) {
            source->ready_last = NULL;
        }
        file->is_ready = false;
        file->is_busy = true;
        file->looks_again = false;
    }
    return file;
}

/* The next source, in turn, that has ready files and room for a round. With the lock. */
static struct lahar_follow_source *find_source(const struct lahar_follow *follow, uint64_t now_ns)
{
    if (follow->must_reload || follow->failure.status != LAHAR_OK) {
        return NULL;
    }
    for (size_t i = 0; i < follow->source_count; i++) {
        struct lahar_follow_source *source =
            follow->sources[(follow->next_source + i) % follow->source_count];
        if (source->ready_first != NULL && !source->definition.is_paused &&
            source->round_count < source->spec.max_threads && now_ns >= source->blocked_until_ns) {
            return source;
        }
    }
    return NULL;
}

bool lahar_follow_has_round(const struct lahar_follow *follow, uint64_t now_ns)
{
    return find_source(follow, now_ns) != NULL;
}

static struct lahar_follow_source *take_source(struct lahar_follow *follow, uint64_t now_ns)
{
    struct lahar_follow_source *source = find_source(follow, now_ns);
    if (source != NULL) {
        while (follow->sources[follow->next_source] != source) {
            follow->next_source = (follow->next_source + 1) % follow->source_count;
        }
        follow->next_source = (follow->next_source + 1) % follow->source_count;
        source->round_count++;
    }
    return source;
}

/* Whether no more will come, so that what is left is the last line. With the lock. */
static bool is_final(const struct lahar_follow_source *source,
                     const struct lahar_followed_file *file, uint64_t now_ns)
{
    const lahar_source_spec *spec = &source->spec;
    const uint64_t quiet_ns = now_ns > file->grown_ns ? now_ns - file->grown_ns : 0;
    const bool has_lost_name = file->is_unlinked || file->is_foreign_name;
    const bool is_complete = file->gzip != NULL && lahar_gzip_stream_is_complete(file->gzip);
    return file->is_drained &&
           (((has_lost_name || is_complete) && quiet_ns >= spec->rotate_wait_ms * NS_PER_MS) ||
            (spec->partial_timeout_ms != 0 && quiet_ns >= spec->partial_timeout_ms * NS_PER_MS));
}

/* --- staging ------------------------------------------------------------------------------- */

static lahar_status put_cursor(struct lahar_follow_worker *worker,
                               const struct lahar_follow_source *source,
                               const struct lahar_file_cursor *cursor, const char *path,
                               bool forget, lahar_error *error)
{
    uint8_t key[LAHAR_CURSOR_KEY_SIZE];
    struct lahar_buffer *value = &worker->value;
    lahar_cursor_key(cursor->generation, key);
    lahar_buffer_clear(value);
    if (!forget) {
        lahar_file_cursor_encode(cursor, path, value);
        if (value->has_failed) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an offset");
        }
    }
    return lahar_batch_add_offset(worker->batch, (lahar_bytes){source->key, strlen(source->key)},
                                  (lahar_bytes){key, sizeof key},
                                  (lahar_bytes){value->data, value->size}, error);
}

static bool keeps_closed(const struct lahar_follow_source *source)
{
    return source->spec.copies_rotated || source->spec.decompress;
}

/* Loss that was found, and an older content that ends with this commit. */
static lahar_status stage_past(struct lahar_follow_worker *worker,
                               const struct lahar_follow_source *source,
                               struct lahar_file_poll *poll, lahar_error *error)
{
    struct lahar_followed_file *file = poll->file;
    if (file->gap_to > file->gap_from) {
        poll->next.gap_size += file->gap_to - file->gap_from;
        LAHAR_TRY(lahar_gap_report(&source->target, worker->batch, source->spec.name, file->path,
                                   file->gap_generation, file->gap_from, file->gap_to,
                                   file->gap_reason, error));
    }
    if (poll->cut_to > poll->cut_from) {
        poll->next.gap_size += poll->cut_to - poll->cut_from;
        LAHAR_TRY(lahar_gap_report(&source->target, worker->batch, source->spec.name, file->path,
                                   poll->next.generation, poll->cut_from, poll->cut_to,
                                   "the end of the file was cut off", error));
    }
    if (file->retires != NULL) {
        struct lahar_file_cursor closed = file->retires->cursor;
        closed.flags |= LAHAR_CURSOR_CLOSED;
        LAHAR_TRY(
            put_cursor(worker, source, &closed, file->retires->path, !keeps_closed(source), error));
    }
    return LAHAR_OK;
}

static bool has_to_be_staged(const struct lahar_file_poll *poll)
{
    const struct lahar_followed_file *file = poll->file;
    return poll->has_changed || file->must_commit || !file->is_recorded || file->must_forget ||
           file->gap_to > file->gap_from || file->retires != NULL;
}

/* The cursor as it will be, into the batch. */
static lahar_status stage(struct lahar_follow_worker *worker,
                          const struct lahar_follow_source *source, struct lahar_file_poll *poll,
                          lahar_error *error)
{
    struct lahar_follow *follow = worker->follow;
    struct lahar_io *io = lahar_store_io(follow->store);
    struct lahar_file_cursor *next = &poll->next;
    struct lahar_record_sink *sink = &worker->sink;
    const uint32_t stuck = poll->result == LAHAR_POLL_STUCK ? LAHAR_CURSOR_STUCK : 0;
    next->record_count += sink->record_count;
    next->error_count += sink->error_count;
    if (sink->error_count != 0 || (stuck != 0 && (next->flags & LAHAR_CURSOR_STUCK) == 0)) {
        memcpy(next->last_error, sink->last_error, sizeof next->last_error);
        next->last_error_ns = io->ops->realtime_ns(io);
        poll->has_changed = true;
    }
    poll->has_changed = poll->has_changed || (next->flags & LAHAR_CURSOR_STUCK) != stuck;
    next->flags = (next->flags & ~(uint32_t)LAHAR_CURSOR_STUCK) | stuck;
    if (poll->stat.inode == next->inode) {
        next->mtime_ns = poll->stat.mtime_ns;
        next->size_seen = poll->stat.size > next->size_seen ? poll->stat.size : next->size_seen;
    }
    memcpy(next->boot_id, follow->boot_id, sizeof next->boot_id);
    if (worker->batch == NULL || !has_to_be_staged(poll)) {
        return LAHAR_OK;
    }
    next->changed_ns = io->ops->realtime_ns(io);
    LAHAR_TRY(stage_past(worker, source, poll, error));
    return put_cursor(worker, source, next, poll->file->path, poll->file->must_forget, error);
}

/* --- after the commit ----------------------------------------------------------------------------
 */

static void release_successor(struct lahar_follow_source *source, struct lahar_followed_file *file)
{
    struct lahar_followed_file *successor = file->successor;
    if (successor != NULL) {
        successor->waits_for = NULL;
        file->successor = NULL;
        lahar_follow_enqueue(source, successor);
    }
}

static void pause_file(struct lahar_follow *follow, struct lahar_follow_source *source,
                       const struct lahar_file_poll *poll, uint64_t now_ns)
{
    struct lahar_followed_file *file = poll->file;
    if (!file->is_blocked && poll->result == LAHAR_POLL_BLOCKED) {
        lahar_store_log(follow->store, LAHAR_LOG_WARNING, "source %s: %s", source->spec.name,
                        poll->error.message);
    }
    file->is_blocked = true;
    file->error = poll->error;
    file->blocked_ns = file->blocked_ns == 0 ? BLOCKED_FIRST_NS : 2 * file->blocked_ns;
    file->blocked_ns = file->blocked_ns > BLOCKED_MAX_NS ? BLOCKED_MAX_NS : file->blocked_ns;
    file->blocked_until_ns = now_ns + file->blocked_ns;
    release_successor(source, file);
}

static void log_errors(struct lahar_follow *follow, struct lahar_follow_source *source,
                       const struct lahar_file_poll *poll, uint64_t error_count, uint64_t now_ns)
{
    if (error_count == 0 || source->spec.handle_error_mode != LAHAR_ERROR_MODE_DEFAULT ||
        (source->error_log_ns != 0 && now_ns - source->error_log_ns < ERROR_LOG_NS)) {
        return;
    }
    source->error_log_ns = now_ns == 0 ? 1 : now_ns;
    lahar_store_log(follow->store, LAHAR_LOG_WARNING, "source %s: %s: %s (%llu passed over so far)",
                    source->spec.name, poll->file->path, poll->next.last_error,
                    (unsigned long long)poll->next.error_count);
}

static bool is_one_too_many(const struct lahar_follow_source *source,
                            const struct lahar_followed_file *file)
{
    /* A file without its name could not be opened again. */
    return source->open_count > source->spec.open_files_max && !file->is_unlinked &&
           !file->is_foreign_name;
}

/* The file has more. Where more files have than may be open, those that are open are read to their
 * end before others are opened, and one that has no end gives way after some turns: descriptors
 * and decoders stay few, however many files there are. */
static void go_on(struct lahar_follow_source *source, struct lahar_followed_file *file)
{
    if (!is_one_too_many(source, file)) {
        file->turns = 0;
        lahar_follow_enqueue(source, file);
    } else if (file->turns < TURNS_MAX) {
        file->turns++;
        lahar_follow_enqueue_first(source, file);
    } else {
        file->turns = 0;
        lahar_followed_file_close(source, file);
        lahar_follow_enqueue(source, file);
    }
}

/* What the poll found makes the file ready again, or not. With the lock. */
static void follow_result(struct lahar_follow *follow, struct lahar_follow_source *source,
                          const struct lahar_file_poll *poll, uint64_t now_ns)
{
    struct lahar_followed_file *file = poll->file;
    if (poll->result != LAHAR_POLL_BLOCKED && poll->result != LAHAR_POLL_STUCK) {
        file->is_blocked = false;
        file->blocked_ns = 0;
    }
    switch (poll->result) {
    case LAHAR_POLL_MORE:
        file->is_drained = false;
        go_on(source, file);
        break;
    case LAHAR_POLL_DRAINED:
        file->drained_ns = file->is_drained ? file->drained_ns : now_ns;
        file->is_drained = true;
        file->turns = 0;
        release_successor(source, file);
        if (is_one_too_many(source, file)) {
            lahar_followed_file_close(source, file);
        }
        break;
    case LAHAR_POLL_CHANGED:
        file->change = poll->change;
        source->must_scan = true;
        break;
    case LAHAR_POLL_MISSING:
        lahar_followed_file_close(source, file);
        file->is_drained = true;
        source->must_scan = true;
        release_successor(source, file);
        break;
    case LAHAR_POLL_BLOCKED:
    case LAHAR_POLL_STUCK:
        pause_file(follow, source, poll, now_ns);
        break;
    }
}

/* With the lock. */
static void settle(struct lahar_follow_worker *worker, struct lahar_follow_source *source,
                   struct lahar_file_poll *poll, uint64_t batch_end_id, uint64_t now_ns)
{
    struct lahar_follow *follow = worker->follow;
    struct lahar_followed_file *file = poll->file;
    const struct lahar_file_cursor before = file->cursor;
    file->is_busy = false;
    if (file->must_forget && worker->batch != NULL) {
        release_successor(source, file);
        if (file->retires != NULL && !keeps_closed(source)) {
            lahar_file_table_remove(&source->files, file->retires);
        }
        lahar_followed_file_close(source, file);
        lahar_file_table_remove(&source->files, file);
        return;
    }
    atomic_fetch_add_explicit(&follow->record_count, poll->next.record_count - before.record_count,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&follow->error_count, poll->next.error_count - before.error_count,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&follow->gap_size, poll->next.gap_size - before.gap_size,
                              memory_order_relaxed);
    if (poll->next.offset > before.offset) {
        atomic_fetch_add_explicit(&follow->byte_count, poll->next.offset - before.offset,
                                  memory_order_relaxed);
    }
    log_errors(follow, source, poll, poll->next.error_count - before.error_count, now_ns);
    if (has_to_be_staged(poll) && worker->batch != NULL) {
        file->is_recorded = true;
        file->commit_id = batch_end_id;
        file->committed_offset = poll->next.offset;
        if (file->retires != NULL && !keeps_closed(source)) {
            lahar_file_table_remove(&source->files, file->retires);
        }
        file->retires = NULL;
        file->must_commit = false;
        file->gap_from = 0;
        file->gap_to = 0;
    }
    file->cursor = poll->next;
    file->partial_end = poll->partial_end;
    if (poll->stat.inode == file->cursor.inode) {
        file->grown_ns =
            poll->stat.size != file->size || file->grown_ns == 0 ? now_ns : file->grown_ns;
        file->size = poll->stat.size;
    }
    follow_result(follow, source, poll, now_ns);
    if ((poll->result != LAHAR_POLL_MORE && poll->result != LAHAR_POLL_DRAINED) ||
        file->is_unlinked || file->is_foreign_name || file->cursor.offset < file->size ||
        keeps_closed(source)) {
        source->must_maintain = true;
    }
    if (file->looks_again) {
        lahar_follow_enqueue(source, file);
    }
}

/* The block was thrown away. With the lock. */
static void take_back(struct lahar_follow_source *source, struct lahar_file_poll *poll)
{
    poll->file->is_busy = false;
    lahar_follow_enqueue(source, poll->file);
}

static void note_failure(struct lahar_follow *follow, struct lahar_follow_source *source,
                         const lahar_error *error, lahar_status status, uint64_t now_ns)
{
    switch (status) {
    case LAHAR_CANCELLED:
        follow->must_reload = true;
        break;
    case LAHAR_BUSY:
    case LAHAR_TIMEOUT:
    case LAHAR_NO_SPACE:
    case LAHAR_NO_MEMORY:
        source->blocked_until_ns = now_ns + BLOCKED_FIRST_NS;
        lahar_store_log(follow->store, LAHAR_LOG_WARNING, "source %s waits: %s", source->spec.name,
                        error->message);
        break;
    default:
        if (follow->failure.status == LAHAR_OK) {
            follow->failure = *error;
            follow->failure.status = status;
        }
        break;
    }
}

/* --- the round
 * ------------------------------------------------------------------------------------ */

static void begin_poll(struct lahar_follow_worker *worker, const struct lahar_follow_source *source,
                       struct lahar_file_poll *poll, struct lahar_followed_file *file, bool is_last)
{
    struct lahar_record_sink *sink = &worker->sink;
    *poll = (struct lahar_file_poll){.file = file, .is_final = is_last};
    sink->target = &source->target;
    sink->batch = worker->batch;
    sink->path = file->path;
    sink->generation = file->cursor.generation;
    sink->records_left =
        source->spec.poll_max_batch_size < sink->visit_left && worker->batch == NULL
            ? source->spec.poll_max_batch_size
        : worker->batch == NULL ? sink->visit_left
                                : source->spec.poll_max_batch_size;
    sink->event_max = source->spec.max_block_size;
    sink->size_max = BLOCK_SIZE_MAX;
    sink->record_count = 0;
    sink->error_count = 0;
    sink->is_full = false;
    sink->is_stopped = false;
}

static lahar_status poll_file(struct lahar_follow_worker *worker,
                              struct lahar_follow_source *source, struct lahar_file_poll *poll,
                              lahar_error *error)
{
    struct lahar_followed_file *file = poll->file;
    lahar_status status = LAHAR_OK;
    if (file->must_forget) {
        poll->next = file->cursor;
        poll->result = LAHAR_POLL_DRAINED;
    } else {
        status = lahar_file_poll(worker, source, poll, error);
    }
    if (status == LAHAR_OK) {
        status = stage(worker, source, poll, error);
    }
    if (worker->batch == NULL) {
        worker->sink.visit_left -= worker->sink.record_count < worker->sink.visit_left
                                       ? worker->sink.record_count
                                       : worker->sink.visit_left;
    }
    return status;
}

/* Fills the block; returns the number of files in it. */
static size_t collect(struct lahar_follow_worker *worker, struct lahar_follow_source *source,
                      uint64_t now_ns, lahar_status *status_out, lahar_error *error)
{
    struct lahar_follow *follow = worker->follow;
    struct lahar_io *io = lahar_store_io(follow->store);
    const uint64_t start_ns = io->ops->monotonic_ns(io);
    size_t count = 0;
    bool is_full = false;
    while (count < LAHAR_ROUND_FILES_MAX && !is_full && *status_out == LAHAR_OK) {
        (void)pthread_mutex_lock(&follow->lock);
        struct lahar_followed_file *file = take_ready(source);
        const bool is_last = file != NULL && is_final(source, file, now_ns);
        (void)pthread_mutex_unlock(&follow->lock);
        if (file == NULL) {
            break;
        }
        struct lahar_file_poll *poll = &worker->polls[count++];
        begin_poll(worker, source, poll, file, is_last);
        *status_out = poll_file(worker, source, poll, error);
        is_full =
            io->ops->monotonic_ns(io) - start_ns >= source->spec.poll_timeout_ms * NS_PER_MS ||
            (worker->batch != NULL &&
             (lahar_batch_event_count(worker->batch) >= worker->sink.event_max ||
              lahar_batch_size(worker->batch) >= worker->sink.size_max)) ||
            (worker->batch == NULL && worker->sink.visit_left == 0);
    }
    return count;
}

bool lahar_follow_round(struct lahar_follow_worker *worker, uint64_t now_ns)
{
    struct lahar_follow *follow = worker->follow;
    lahar_error error = {0};
    lahar_status status = LAHAR_OK;
    uint64_t first_id = 0;
    (void)pthread_mutex_lock(&follow->lock);
    struct lahar_follow_source *source = take_source(follow, now_ns);
    (void)pthread_mutex_unlock(&follow->lock);
    if (source == NULL) {
        return false;
    }
    const size_t count = collect(worker, source, now_ns, &status, &error);
    uint64_t end_id = 0;
    if (status == LAHAR_OK && worker->batch != NULL) {
        const uint64_t events = lahar_batch_event_count(worker->batch);
        status = lahar_source_commit_at(follow->store, worker->batch, follow->options.durability,
                                        follow->epoch, &first_id, &error);
        end_id = first_id == 0 ? 0 : first_id + (events == 0 ? 0 : events - 1);
    }
    (void)pthread_mutex_lock(&follow->lock);
    for (size_t i = 0; i < count; i++) {
        if (status == LAHAR_OK) {
            settle(worker, source, &worker->polls[i], end_id, now_ns);
        } else {
            take_back(source, &worker->polls[i]);
        }
    }
    if (status != LAHAR_OK) {
        if (worker->batch != NULL) {
            lahar_batch_clear(worker->batch);
        }
        note_failure(follow, source, &error, status, now_ns);
    }
    source->round_count--;
    if (source->must_scan || source->must_maintain || source->ready_first == NULL ||
        status != LAHAR_OK) {
        follow->wants_turn = true;
        if (follow->watch != NULL) {
            lahar_watch_wake(follow->watch);
        }
    }
    (void)pthread_cond_broadcast(&follow->ready);
    (void)pthread_mutex_unlock(&follow->lock);
    return true;
}
