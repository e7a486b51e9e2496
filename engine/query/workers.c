/* Threads for a query; see workers.h.
 *
 * The caller works too, and starts the others only once it has worked for a while or met work that
 * is worth splitting, so that a look-up in a few shards pays for no thread; a number of threads
 * that the caller asks for is started at once. A thread that cannot be started is done without.
 *
 * Splits that have pieces left are in a list under the run's mutex; pieces are handed out by an
 * atomic counter. A split lives on the stack of the thread that offers it, which leaves only when
 * nobody else is in it. */
#include "engine/query/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "engine/query/query_registry.h"
#include "io/base/error.h"
#include "io/io.h"

enum {
    THREADS_MAX = 64
};

/* Work of the caller alone before others are started. */
static const uint64_t alone_ns = 300000;

struct thread {
    struct lahar_query_worker worker;
    pthread_t handle;
    bool is_started;
    lahar_status status;
    uint32_t failed_at; /* number of the unit */
    lahar_error error;
};

/* A split that is being worked on. Under the run's mutex but for next and is_over. */
struct offer {
    const struct lahar_query_split *split;
    _Atomic uint32_t next; /* piece to be handed out */
    atomic_bool is_over;   /* a piece has failed */
    uint32_t helpers;      /* threads in it besides the one that offers it */
    struct offer *other;   /* the next of the list */
    lahar_status status;
    uint32_t failed_at; /* piece */
    lahar_error error;
};

struct lahar_query_run {
    struct lahar_query *query;
    const struct lahar_query_job *job; /* NULL: a split alone */
    _Atomic uint32_t next;             /* position in job->units to be handed out */
    atomic_bool is_over;               /* a unit has failed */
    uint32_t worker_count;
    struct thread *threads;
    uint32_t started_count; /* threads that there are, the caller's included; the caller's alone */

    pthread_mutex_t mutex;
    pthread_cond_t has_changed;
    /* Under the mutex: */
    struct offer *offers; /* with pieces left, or so it seemed */
    uint32_t busy_count;  /* threads that may still offer something */
};

uint32_t lahar_query_worker_count(const struct lahar_query *query)
{
    if (query->options.authorize != NULL) {
        return 1; /* the host's callback need not be safe for several */
    }
    const uint32_t count =
        query->options.threads != 0 ? query->options.threads : query->registry->processor_count;
    return count < THREADS_MAX ? count : (uint32_t)THREADS_MAX;
}

/* --- threads --------------------------------------------------------------------------- */

static void init_thread(struct lahar_query_run *run, uint32_t index)
{
    struct lahar_query *query = run->query;
    struct lahar_query_worker *worker = &run->threads[index].worker;
    worker->query = query;
    worker->run = run;
    worker->index = index;
    worker->context = query->context;
    worker->context.worker = worker;
    worker->context.matcher = &worker->matcher;
    worker->context.scanned_events = 0;
    worker->context.scanned_bytes = 0;
    worker->context.shards_failed = 0;
    worker->context.is_partial = false;
    lahar_matcher_init(&worker->matcher, query->catalog, query->allocator);
    lahar_arena_init(&worker->context.arena, query->allocator, 4096);
    if (run->job != NULL && run->job->shares != NULL) {
        worker->share = (uint8_t *)run->job->shares + index * run->job->share_size;
    }
}

/* Takes the worker's findings into the query. */
static void deinit_thread(struct thread *thread)
{
    struct lahar_unit_context *total = &thread->worker.query->context;
    struct lahar_unit_context *context = &thread->worker.context;
    total->scanned_events += context->scanned_events;
    total->scanned_bytes += context->scanned_bytes;
    total->shards_failed += context->shards_failed;
    total->is_partial = total->is_partial || context->is_partial;
    lahar_matcher_deinit(&thread->worker.matcher);
    lahar_arena_deinit(&context->arena);
}

static void *loop(void *argument);

/* Starts threads until there are so many; the caller's alone. */
static void start_threads(struct lahar_query_run *run, uint32_t wanted)
{
    sigset_t all;
    sigset_t before;
    if (wanted > run->worker_count) {
        wanted = run->worker_count;
    }
    if (run->started_count >= wanted) {
        return;
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; run->started_count < wanted; run->started_count++) {
        struct thread *thread = &run->threads[run->started_count];
        init_thread(run, run->started_count);
        pthread_mutex_lock(&run->mutex);
        run->busy_count++;
        pthread_mutex_unlock(&run->mutex);
        thread->is_started = pthread_create(&thread->handle, NULL, loop, thread) == 0;
        if (!thread->is_started) {
            pthread_mutex_lock(&run->mutex);
            run->busy_count--;
            pthread_mutex_unlock(&run->mutex);
            deinit_thread(thread);
            run->worker_count = run->started_count; /* there will be no more */
            break;
        }
        (void)pthread_setname_np(thread->handle, "lahar-query");
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- pieces ------------------------------------------------------------------------------ */

static void note_failure(struct lahar_query_run *run, struct offer *offer, lahar_status status,
                         uint32_t piece, const lahar_error *error)
{
    atomic_store_explicit(&offer->is_over, true, memory_order_relaxed);
    pthread_mutex_lock(&run->mutex);
    if (offer->status == LAHAR_OK || piece < offer->failed_at) {
        offer->status = status;
        offer->failed_at = piece;
        offer->error = *error;
    }
    pthread_mutex_unlock(&run->mutex);
}

/* Works until no piece is left to be handed out. */
static void work_pieces(struct lahar_query_worker *worker, struct offer *offer)
{
    while (!atomic_load_explicit(&offer->is_over, memory_order_relaxed)) {
        const uint32_t piece = atomic_fetch_add_explicit(&offer->next, 1, memory_order_relaxed);
        if (piece >= offer->split->count) {
            return;
        }
        lahar_error error = {.status = LAHAR_OK};
        const lahar_status status =
            offer->split->work(worker, offer->split->context, piece, &error);
        if (status != LAHAR_OK) {
            note_failure(worker->run, offer, status, piece, &error);
        }
    }
}

static bool has_pieces(const struct offer *offer)
{
    return !atomic_load_explicit(&offer->is_over, memory_order_relaxed) &&
           atomic_load_explicit(&offer->next, memory_order_relaxed) < offer->split->count;
}

/* Takes pieces of what others offer until nobody can offer any more. */
static void help(struct lahar_query_worker *worker)
{
    struct lahar_query_run *run = worker->run;
    pthread_mutex_lock(&run->mutex);
    run->busy_count--;
    pthread_cond_broadcast(&run->has_changed);
    for (;;) {
        struct offer *offer = run->offers;
        while (offer != NULL && !has_pieces(offer)) {
            offer = offer->other;
        }
        if (offer != NULL) {
            offer->helpers++;
            pthread_mutex_unlock(&run->mutex);
            work_pieces(worker, offer);
            pthread_mutex_lock(&run->mutex);
            if (--offer->helpers == 0) {
                pthread_cond_broadcast(&run->has_changed);
            }
        } else if (run->busy_count == 0) {
            break;
        } else {
            pthread_cond_wait(&run->has_changed, &run->mutex);
        }
    }
    pthread_mutex_unlock(&run->mutex);
}

static void offer_pieces(struct lahar_query_worker *worker, struct offer *offer)
{
    struct lahar_query_run *run = worker->run;
    pthread_mutex_lock(&run->mutex);
    offer->other = run->offers;
    run->offers = offer;
    pthread_cond_broadcast(&run->has_changed);
    pthread_mutex_unlock(&run->mutex);
    work_pieces(worker, offer);
    pthread_mutex_lock(&run->mutex);
    struct offer **link = &run->offers;
    while (*link != offer) {
        link = &(*link)->other;
    }
    *link = offer->other;
    while (offer->helpers != 0) {
        pthread_cond_wait(&run->has_changed, &run->mutex);
    }
    pthread_mutex_unlock(&run->mutex);
}

/* --- units ------------------------------------------------------------------------------- */

static bool take_unit(struct lahar_query_run *run, uint32_t *position_out)
{
    if (run->job == NULL || atomic_load_explicit(&run->is_over, memory_order_relaxed) ||
        (run->job->goes_on != NULL && !run->job->goes_on(run->query))) {
        return false;
    }
    *position_out = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
    return *position_out < run->job->unit_count;
}

/* Works until there is no unit left; the caller's thread starts the others. */
static void work_units(struct thread *thread)
{
    struct lahar_query_run *run = thread->worker.run;
    struct lahar_io *io = run->query->io;
    const bool is_caller = thread->worker.index == 0;
    bool may_start = is_caller && run->worker_count > 1 && run->job->unit_count > 1;
    const uint64_t begin_ns = may_start ? io->ops->monotonic_ns(io) : 0;
    const uint64_t wait_ns = run->query->options.threads == 0 ? alone_ns : 0;
    uint32_t position = 0;
    while (take_unit(run, &position)) {
        if (may_start && io->ops->monotonic_ns(io) - begin_ns >= wait_ns) {
            start_threads(run, run->job->unit_count - position);
            may_start = false;
        }
        struct lahar_unit *unit = &run->query->units[run->job->units[position]];
        thread->status = run->job->work(&thread->worker, unit, &thread->error);
        if (thread->status != LAHAR_OK) {
            thread->failed_at = run->job->units[position];
            atomic_store_explicit(&run->is_over, true, memory_order_relaxed);
            return;
        }
    }
}

static void *loop(void *argument)
{
    struct thread *thread = argument;
    work_units(thread);
    help(&thread->worker);
    return NULL;
}

static int compare_sizes(const void *a, const void *b, void *context)
{
    const struct lahar_query *query = context;
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    const uint32_t size_of_x = query->units[x].event_count;
    const uint32_t size_of_y = query->units[y].event_count;
    return size_of_x != size_of_y ? (size_of_x < size_of_y ? 1 : -1) : (x > y) - (x < y);
}

void lahar_query_order_by_size(struct lahar_query *query, uint32_t *units, uint32_t count)
{
    if (count > 1) {
        qsort_r(units, count, sizeof *units, compare_sizes, query);
    }
}

/* --- runs -------------------------------------------------------------------------------- */

static lahar_status init_run(struct lahar_query_run *run, struct lahar_query *query,
                             const struct lahar_query_job *job, lahar_error *error)
{
    *run = (struct lahar_query_run){
        .query = query, .job = job, .worker_count = lahar_query_worker_count(query)};
    run->started_count = 1;
    run->busy_count = 1;
    run->threads = lahar_allocate_zeroed(query->allocator, run->worker_count, sizeof *run->threads);
    if (run->threads == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the threads of a query");
    }
    if (pthread_mutex_init(&run->mutex, NULL) != 0) {
        lahar_release(query->allocator, run->threads);
        return lahar_fail(error, LAHAR_NO_MEMORY, "cannot create a mutex for a query");
    }
    if (pthread_cond_init(&run->has_changed, NULL) != 0) {
        pthread_mutex_destroy(&run->mutex);
        lahar_release(query->allocator, run->threads);
        return lahar_fail(error, LAHAR_NO_MEMORY, "cannot create a condition for a query");
    }
    init_thread(run, 0);
    return LAHAR_OK;
}

/* Waits for the threads and adds up what they found. */
static lahar_status end_run(struct lahar_query_run *run, lahar_error *error)
{
    const struct thread *failed = NULL;
    for (uint32_t i = 0; i < run->worker_count; i++) {
        struct thread *thread = &run->threads[i];
        if (thread->is_started) {
            (void)pthread_join(thread->handle, NULL);
        }
        if (i == 0 || thread->is_started) {
            deinit_thread(thread);
        }
        if (thread->status != LAHAR_OK &&
            (failed == NULL || thread->failed_at < failed->failed_at)) {
            failed = thread;
        }
    }
    const lahar_status status = failed == NULL ? LAHAR_OK : failed->status;
    if (failed != NULL && error != NULL) {
        *error = failed->error;
    }
    pthread_cond_destroy(&run->has_changed);
    pthread_mutex_destroy(&run->mutex);
    lahar_release(run->query->allocator, run->threads);
    return status;
}

lahar_status lahar_query_run_job(struct lahar_query *query, const struct lahar_query_job *job,
                                 lahar_error *error)
{
    struct lahar_query_run run;
    if (job->unit_count == 0) {
        return LAHAR_OK;
    }
    LAHAR_TRY(init_run(&run, query, job, error));
    work_units(&run.threads[0]);
    help(&run.threads[0].worker);
    return end_run(&run, error);
}

static lahar_status run_split(struct lahar_query_worker *worker,
                              const struct lahar_query_split *split, lahar_error *error)
{
    struct offer offer = {.split = split};
    if (worker->index == 0) {
        start_threads(worker->run, split->count);
    }
    offer_pieces(worker, &offer);
    if (offer.status != LAHAR_OK && error != NULL) {
        *error = offer.error;
    }
    return offer.status;
}

lahar_status lahar_query_run_split(struct lahar_query *query, struct lahar_query_worker *worker,
                                   const struct lahar_query_split *split, lahar_error *error)
{
    if (worker != NULL) {
        return run_split(worker, split, error);
    }
    struct lahar_query_run run;
    LAHAR_TRY(init_run(&run, query, NULL, error));
    struct thread *own = &run.threads[0];
    own->status = run_split(&own->worker, split, &own->error);
    help(&own->worker);
    return end_run(&run, error);
}
