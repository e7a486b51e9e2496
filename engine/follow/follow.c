/* Following: opening, the coordinator's loop, the workers' loops.
 *
 * The thread that runs lahar_follow_run is the coordinator. It waits for inotify, or for the
 * time of the next look, and wakes the workers when files are ready. Without threads, a step
 * does one turn of each. */
#include "lahar/follow.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/follow/follow_internal.h"
#include "engine/follow/source_registry.h"
#include "engine/store/snapshot.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"
#include "io/io.h"

enum {
    WAIT_MAX_MS = 60000,
    MAINTAIN_PAUSE_MS = 100
};
#define NS_PER_MS UINT64_C(1000000)

void lahar_follow_options_init(lahar_follow_options *options)
{
    *options = (lahar_follow_options){.struct_size = sizeof *options};
}

/* --- sources ---------------------------------------------------------------------------- */

struct source_load {
    struct lahar_follow *follow;
    lahar_error *error;
};

static bool is_wanted(const struct lahar_follow *follow, lahar_bytes name)
{
    for (size_t i = 0; i < follow->options.source_count; i++) {
        if (strlen(follow->names[i]) == name.size &&
            memcmp(follow->names[i], name.data, name.size) == 0) {
            return true;
        }
    }
    return follow->options.source_count == 0;
}

static lahar_status load_source(void *context, lahar_bytes key, lahar_bytes value)
{
    const struct source_load *load = context;
    struct lahar_follow *follow = load->follow;
    struct lahar_follow_source *source = NULL;
    lahar_error error = {0};
    if (key.size == 0 || !is_wanted(follow, key)) {
        return LAHAR_OK;
    }
    struct lahar_follow_source **sources = lahar_reallocate(
        follow->allocator, follow->sources, (follow->source_count + 1) * sizeof(void *));
    if (sources == NULL) {
        return lahar_fail(load->error, LAHAR_NO_MEMORY, "no memory for a source");
    }
    follow->sources = sources;
    const lahar_status status = lahar_follow_source_open(follow, key, value, &source, &error);
    if (status == LAHAR_OK) {
        sources[follow->source_count++] = source;
        return LAHAR_OK;
    }
    if (follow->options.source_count != 0 || status == LAHAR_NO_MEMORY) {
        return lahar_fail(load->error, status, "%s", error.message);
    }
    /* One source of all that cannot be followed does not stop the others. */
    lahar_store_log(follow->store, LAHAR_LOG_ERROR, "%s", error.message);
    return LAHAR_OK;
}

static void close_sources(struct lahar_follow *follow)
{
    for (size_t i = 0; i < follow->worker_count; i++) {
        follow->workers[i]->reader_source = NULL;
        follow->workers[i]->header_generation = 0;
    }
    for (size_t i = 0; i < follow->source_count; i++) {
        lahar_follow_source_close(follow, follow->sources[i]);
    }
    lahar_release(follow->allocator, follow->sources);
    follow->sources = NULL;
    follow->source_count = 0;
}

static lahar_status load_sources(struct lahar_follow *follow, lahar_error *error)
{
    struct source_load load = {follow, error};
    close_sources(follow);
    follow->must_reload = false;
    follow->epoch = atomic_load_explicit(&follow->store->source_epoch, memory_order_acquire);
    LAHAR_TRY(lahar_offset_visit(follow->store,
                                 (lahar_bytes){LAHAR_SOURCES_KEY, strlen(LAHAR_SOURCES_KEY)},
                                 load_source, &load, error));
    if (follow->source_count < follow->options.source_count) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "there is no source \"%s\"%s", follow->names[0],
                          follow->options.source_count > 1 ? ", or another one" : "");
    }
    return LAHAR_OK;
}

/* --- opening ------------------------------------------------------------------------------- */

static lahar_status copy_names(struct lahar_follow *follow, const lahar_follow_options *options,
                               lahar_error *error)
{
    if (options->sources == NULL || options->source_count == 0) {
        follow->options.source_count = 0;
        return LAHAR_OK;
    }
    follow->options.source_count = 0;
    follow->names = lahar_allocate_zeroed(follow->allocator, options->source_count, sizeof(char *));
    for (size_t i = 0; follow->names != NULL && i < options->source_count; i++) {
        const size_t size = strlen(options->sources[i]) + 1;
        follow->names[i] = lahar_allocate(follow->allocator, size);
        if (follow->names[i] == NULL) {
            break;
        }
        memcpy(follow->names[i], options->sources[i], size);
        follow->options.source_count++;
    }
    return follow->options.source_count == options->source_count
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a follower");
}

static lahar_status add_worker(struct lahar_follow *follow, lahar_error *error)
{
    struct lahar_follow_worker *worker = NULL;
    struct lahar_follow_worker **workers = lahar_reallocate(
        follow->allocator, follow->workers, (follow->worker_count + 1) * sizeof(void *));
    if (workers == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a follower");
    }
    follow->workers = workers;
    LAHAR_TRY(lahar_follow_worker_create(follow, &worker, error));
    workers[follow->worker_count++] = worker;
    return LAHAR_OK;
}

static lahar_status open_follow(lahar_store *store, const lahar_follow_options *options,
                                bool is_dry, lahar_follow **follow_out, lahar_error *error)
{
    const lahar_allocator *allocator = lahar_store_allocator(store);
    lahar_follow_options initial;
    *follow_out = NULL;
    lahar_follow_options_init(&initial);
    if (options != NULL && options->struct_size < sizeof *options) {
        return lahar_fail(error, LAHAR_INVALID, "follow options: struct_size is %zu",
                          options->struct_size);
    }
    struct lahar_follow *follow = lahar_allocate_zeroed(allocator, 1, sizeof *follow);
    if (follow == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a follower");
    }
    follow->store = store;
    follow->allocator = allocator;
    follow->options = options == NULL ? initial : *options;
    follow->is_dry = is_dry;
    (void)pthread_mutex_init(&follow->lock, NULL);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&follow->ready, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    lahar_source_boot(follow->boot_id, &follow->booted_ns);
    const lahar_follow_options asked = follow->options;
    lahar_status status = copy_names(follow, &asked, error);
    if (status == LAHAR_OK && lahar_watch_create(allocator, &follow->watch, NULL) != LAHAR_OK) {
        follow->watch = NULL;
    }
    if (status == LAHAR_OK) {
        status = add_worker(follow, error);
    }
    if (status == LAHAR_OK) {
        status = load_sources(follow, error);
    }
    if (status != LAHAR_OK) {
        lahar_follow_close(follow);
        return status;
    }
    *follow_out = follow;
    return LAHAR_OK;
}

lahar_status lahar_follow_open(lahar_store *store, const lahar_follow_options *options,
                               lahar_follow **follow_out, lahar_error *error)
{
    return open_follow(store, options, false, follow_out, error);
}

lahar_status lahar_follow_open_dry(lahar_store *store, const lahar_follow_options *options,
                                   lahar_follow **follow_out, lahar_error *error)
{
    return open_follow(store, options, true, follow_out, error);
}

void lahar_follow_close(lahar_follow *follow)
{
    if (follow == NULL) {
        return;
    }
    close_sources(follow);
    for (size_t i = 0; i < follow->worker_count; i++) {
        lahar_follow_worker_destroy(follow->workers[i]);
    }
    lahar_release(follow->allocator, follow->workers);
    for (size_t i = 0; i < follow->options.source_count; i++) {
        lahar_release(follow->allocator, follow->names[i]);
    }
    lahar_release(follow->allocator, follow->names);
    lahar_watch_destroy(follow->watch);
    (void)pthread_cond_destroy(&follow->ready);
    (void)pthread_mutex_destroy(&follow->lock);
    lahar_release(follow->allocator, follow);
}

/* --- events of inotify -------------------------------------------------------------------------
 */

static void wake_file(struct lahar_follow_source *source, const char *directory, const char *name)
{
    char path[LAHAR_SOURCE_PATH_SIZE];
    const int size =
        snprintf(path, sizeof path, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);
    struct lahar_followed_file *file = size < 0 || (size_t)size >= sizeof path
                                           ? NULL
                                           : lahar_file_table_by_path(&source->files, path);
    if (file == NULL) {
        return;
    }
    if (file->is_blocked) {
        file->blocked_until_ns = 0;
    }
    lahar_follow_enqueue(source, file);
}

/* With the lock. */
static void take_event(void *context, int directory, const char *name,
                       enum lahar_watch_change change)
{
    struct lahar_follow *follow = context;
    for (size_t i = 0; i < follow->source_count; i++) {
        struct lahar_follow_source *source = follow->sources[i];
        for (size_t d = 0; d < source->directory_count; d++) {
            if (directory != -1 && source->directories[d].watch != directory) {
                continue;
            }
            if (change == LAHAR_WATCH_DATA && name != NULL) {
                wake_file(source, source->directories[d].path, name);
            } else {
                source->must_scan = true;
                source->backoff_ms = source->spec.poll_directory_watch_events_backoff_init;
            }
            if (change == LAHAR_WATCH_NAMES && name != NULL) {
                wake_file(source, source->directories[d].path, name);
            }
        }
        source->must_scan = source->must_scan || directory == -1;
    }
}

/* --- the coordinator
 * ------------------------------------------------------------------------------ */

static bool has_rounds(const struct lahar_follow *follow)
{
    for (size_t i = 0; i < follow->source_count; i++) {
        if (follow->sources[i]->round_count != 0) {
            return true;
        }
    }
    return false;
}

/* With the lock. */
static void reload(struct lahar_follow *follow)
{
    lahar_error error = {0};
    const lahar_status status = load_sources(follow, &error);
    if (status != LAHAR_OK && follow->failure.status == LAHAR_OK) {
        follow->failure = error;
    }
}

/* Every file is looked at, which takes a while when there are many: at once where a file wants
 * it, else a few times a second. */
static bool maintain_in_time(struct lahar_follow *follow, struct lahar_follow_source *source,
                             uint64_t now_ns)
{
    const uint64_t next_ns = source->maintained_ns + MAINTAIN_PAUSE_MS * NS_PER_MS;
    if (!source->must_maintain && now_ns < next_ns && source->next_due_ns > now_ns) {
        source->next_due_ns = source->next_due_ns < next_ns ? source->next_due_ns : next_ns;
        return false;
    }
    source->must_maintain = false;
    source->maintained_ns = now_ns;
    return lahar_follow_maintain(follow, source, now_ns);
}

/* Looks and settles what is due. With the lock; returns whether anything came of it. */
static bool coordinate(struct lahar_follow *follow, uint64_t now_ns)
{
    bool has_worked = false;
    if (follow->watch != NULL) {
        lahar_watch_read(follow->watch, take_event, follow);
    }
    if (follow->store->source_epoch != follow->epoch) {
        follow->must_reload = true;
    }
    if (follow->must_reload) {
        if (has_rounds(follow) || follow->failure.status != LAHAR_OK) {
            return false;
        }
        reload(follow);
        has_worked = true;
    }
    for (size_t i = 0; i < follow->source_count && !follow->must_reload; i++) {
        struct lahar_follow_source *source = follow->sources[i];
        if (source->definition.is_paused) {
            continue;
        }
        if (source->must_scan || now_ns >= source->next_scan_ns) {
            has_worked = has_worked || source->must_scan;
            lahar_follow_scan(follow, source, now_ns);
        }
        has_worked = maintain_in_time(follow, source, now_ns) || has_worked;
        has_worked = has_worked || source->ready_first != NULL;
    }
    return has_worked;
}

bool lahar_follow_step(struct lahar_follow *follow, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&follow->lock);
    const bool has_worked = coordinate(follow, now_ns);
    (void)pthread_mutex_unlock(&follow->lock);
    return lahar_follow_round(follow->workers[0], now_ns) || has_worked;
}

/* --- threads
 * ------------------------------------------------------------------------------------------ */

static uint64_t now_of(const struct lahar_follow *follow)
{
    struct lahar_io *io = lahar_store_io(follow->store);
    return io->ops->monotonic_ns(io);
}

/* Sleeps until there is a round to take; the coordinator keeps the time of pauses. */
static void *loop_worker(void *context)
{
    struct lahar_follow_worker *worker = context;
    struct lahar_follow *follow = worker->follow;
    bool is_stopping = false;
    while (!is_stopping) {
        if (lahar_follow_round(worker, now_of(follow))) {
            continue;
        }
        (void)pthread_mutex_lock(&follow->lock);
        while (!follow->is_stopping && !lahar_follow_has_round(follow, now_of(follow))) {
            (void)pthread_cond_wait(&follow->ready, &follow->lock);
        }
        is_stopping = follow->is_stopping;
        (void)pthread_mutex_unlock(&follow->lock);
    }
    return NULL;
}

static lahar_status start_workers(struct lahar_follow *follow, lahar_error *error)
{
    size_t wanted = 0;
    for (size_t i = 0; i < follow->source_count; i++) {
        wanted += follow->sources[i]->spec.max_threads;
    }
    const size_t processors = lahar_io_processor_count();
    wanted = wanted > processors ? processors : wanted;
    while (follow->worker_count < wanted) {
        LAHAR_TRY(add_worker(follow, error));
    }
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    lahar_status status = LAHAR_OK;
    for (size_t i = 0; i < follow->worker_count && status == LAHAR_OK; i++) {
        struct lahar_follow_worker *worker = follow->workers[i];
        const int result = pthread_create(&worker->thread, NULL, loop_worker, worker);
        if (result != 0) {
            status = lahar_fail_errno(error, result, "starting thread lahar-follow");
        } else {
            worker->is_running = true;
            (void)pthread_setname_np(worker->thread, "lahar-follow");
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static void stop_workers(struct lahar_follow *follow)
{
    (void)pthread_mutex_lock(&follow->lock);
    follow->is_stopping = true;
    (void)pthread_cond_broadcast(&follow->ready);
    (void)pthread_mutex_unlock(&follow->lock);
    for (size_t i = 0; i < follow->worker_count; i++) {
        if (follow->workers[i]->is_running) {
            (void)pthread_join(follow->workers[i]->thread, NULL);
            follow->workers[i]->is_running = false;
        }
    }
}

void lahar_follow_stop(lahar_follow *follow)
{
    (void)pthread_mutex_lock(&follow->lock);
    follow->is_stopping = true;
    (void)pthread_cond_broadcast(&follow->ready);
    (void)pthread_mutex_unlock(&follow->lock);
    if (follow->watch != NULL) {
        lahar_watch_wake(follow->watch);
    }
}

/* How long nothing is due. With the lock. */
static int wait_ms(const struct lahar_follow *follow, uint64_t now_ns)
{
    uint64_t due_ns = now_ns + WAIT_MAX_MS * NS_PER_MS;
    for (size_t i = 0; i < follow->source_count; i++) {
        const struct lahar_follow_source *source = follow->sources[i];
        if (source->definition.is_paused) {
            continue;
        }
        due_ns = source->next_scan_ns < due_ns ? source->next_scan_ns : due_ns;
        due_ns = source->next_due_ns < due_ns ? source->next_due_ns : due_ns;
        due_ns = source->must_scan ? now_ns : due_ns;
        if (source->ready_first != NULL && source->blocked_until_ns > now_ns &&
            source->blocked_until_ns < due_ns) {
            due_ns = source->blocked_until_ns;
        }
    }
    return due_ns <= now_ns ? 1 : (int)((due_ns - now_ns) / NS_PER_MS) + 1;
}

/* Nothing is ready, running or waited for that the next step could bring. With the lock. */
static bool is_idle(const struct lahar_follow *follow)
{
    for (size_t i = 0; i < follow->source_count; i++) {
        const struct lahar_follow_source *source = follow->sources[i];
        if (!source->definition.is_paused &&
            (source->ready_first != NULL || source->round_count != 0 || source->must_scan ||
             !source->has_scanned)) {
            return false;
        }
    }
    return !follow->must_reload;
}

/* Waits for inotify, for a worker that wants the coordinator, or for the time. */
static void wait_for_turn(struct lahar_follow *follow, int pause_ms)
{
    if (follow->watch != NULL) {
        lahar_watch_wait(follow->watch, pause_ms);
        return;
    }
    const uint64_t until_ns = now_of(follow) + (uint64_t)pause_ms * NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
                                   .tv_nsec = (long)(until_ns % UINT64_C(1000000000))};
    (void)pthread_mutex_lock(&follow->lock);
    if (!follow->is_stopping && !follow->wants_turn) {
        (void)pthread_cond_timedwait(&follow->ready, &follow->lock, &until);
    }
    (void)pthread_mutex_unlock(&follow->lock);
}

/* One turn of the coordinator; false at the end. */
static bool run_turn(struct lahar_follow *follow)
{
    (void)pthread_mutex_lock(&follow->lock);
    const uint64_t now_ns = now_of(follow);
    follow->wants_turn = false;
    const bool has_worked = coordinate(follow, now_ns);
    const bool is_over = follow->is_stopping || follow->failure.status != LAHAR_OK ||
                         (follow->options.once && !has_worked && is_idle(follow));
    const int pause_ms =
        follow->options.once && has_worked && is_idle(follow) ? 1 : wait_ms(follow, now_ns);
    (void)pthread_cond_broadcast(&follow->ready);
    (void)pthread_mutex_unlock(&follow->lock);
    if (!is_over) {
        wait_for_turn(follow, pause_ms);
    }
    return !is_over;
}

lahar_status lahar_follow_run(lahar_follow *follow, lahar_error *error)
{
    lahar_status status = start_workers(follow, error);
    while (status == LAHAR_OK && run_turn(follow)) {
    }
    stop_workers(follow);
    (void)pthread_mutex_lock(&follow->lock);
    follow->is_stopping = false;
    if (status == LAHAR_OK && follow->failure.status != LAHAR_OK) {
        status = lahar_fail(error, follow->failure.status, "%s", follow->failure.message);
    }
    (void)pthread_mutex_unlock(&follow->lock);
    return status;
}

/* --- statistics
 * ------------------------------------------------------------------------------------------ */

void lahar_follow_stat_get(lahar_follow *follow, lahar_follow_stat *stat_out)
{
    lahar_follow_stat stat = {
        .record_count = atomic_load_explicit(&follow->record_count, memory_order_relaxed),
        .byte_count = atomic_load_explicit(&follow->byte_count, memory_order_relaxed),
        .error_count = atomic_load_explicit(&follow->error_count, memory_order_relaxed),
        .gap_size = atomic_load_explicit(&follow->gap_size, memory_order_relaxed),
        .is_polling = follow->watch == NULL,
    };
    (void)pthread_mutex_lock(&follow->lock);
    for (size_t i = 0; i < follow->source_count; i++) {
        const struct lahar_follow_source *source = follow->sources[i];
        stat.is_polling = stat.is_polling || source->is_polling;
        stat.file_count += source->files.count;
        for (size_t n = 0; n < source->files.count; n++) {
            const struct lahar_followed_file *file = source->files.files[n];
            const bool counts = (file->cursor.flags & (LAHAR_CURSOR_CLOSED | LAHAR_CURSOR_GZIP |
                                                       LAHAR_CURSOR_COPY)) == 0;
            stat.lag_size +=
                counts && file->size > file->cursor.offset ? file->size - file->cursor.offset : 0;
        }
    }
    (void)pthread_mutex_unlock(&follow->lock);
    stat.struct_size = stat_out->struct_size < sizeof stat ? stat_out->struct_size : sizeof stat;
    memcpy(stat_out, &stat, stat.struct_size);
}
