/* Threads for a query; see workers.h.
 *
 * The caller works too, and starts the others only once it has worked for a while, so that a
 * look-up in a few shards pays for no thread; a number of threads that the caller asks for is
 * started at once. A thread that cannot be started is done without. */
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

struct run {
    struct lahar_query *query;
    const struct lahar_query_job *job;
    _Atomic uint32_t next; /* position in job->units to be handed out */
    atomic_bool is_over;   /* a unit has failed */
    uint32_t worker_count;
    struct thread *threads;
};

struct thread {
    struct lahar_query_worker worker;
    struct run *run;
    pthread_t handle;
    bool is_started;
    lahar_status status;
    uint32_t failed_at; /* number of the unit */
    lahar_error error;
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

static void init_thread(struct thread *thread, struct run *run, uint32_t index)
{
    struct lahar_query *query = run->query;
    struct lahar_query_worker *worker = &thread->worker;
    thread->run = run;
    worker->query = query;
    worker->context = query->context;
    worker->context.matcher = &worker->matcher;
    worker->context.scanned_events = 0;
    worker->context.scanned_bytes = 0;
    worker->context.shards_failed = 0;
    worker->context.is_partial = false;
    lahar_matcher_init(&worker->matcher, query->catalog, query->allocator);
    lahar_arena_init(&worker->context.arena, query->allocator, 4096);
    if (run->job->shares != NULL) {
        worker->share = (uint8_t *)run->job->shares + index * run->job->share_size;
    }
}

/* Takes the worker's findings into the query. */
static void deinit_thread(struct thread *thread)
{
    struct lahar_unit_context *total = &thread->run->query->context;
    struct lahar_unit_context *context = &thread->worker.context;
    total->scanned_events += context->scanned_events;
    total->scanned_bytes += context->scanned_bytes;
    total->shards_failed += context->shards_failed;
    total->is_partial = total->is_partial || context->is_partial;
    lahar_matcher_deinit(&thread->worker.matcher);
    lahar_arena_deinit(&context->arena);
}

static void *loop(void *argument);

static void start_others(struct run *run)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 1; i < run->worker_count; i++) {
        struct thread *thread = &run->threads[i];
        init_thread(thread, run, i);
        thread->is_started = pthread_create(&thread->handle, NULL, loop, thread) == 0;
        if (!thread->is_started) {
            deinit_thread(thread);
            break;
        }
        (void)pthread_setname_np(thread->handle, "lahar-query");
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool take_unit(struct run *run, uint32_t *position_out)
{
    if (atomic_load_explicit(&run->is_over, memory_order_relaxed) ||
        (run->job->goes_on != NULL && !run->job->goes_on(run->query))) {
        return false;
    }
    *position_out = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
    return *position_out < run->job->unit_count;
}

/* Works until there is no unit left; the caller's thread starts the others. */
static void work(struct thread *thread, bool starts_others)
{
    struct run *run = thread->run;
    struct lahar_io *io = run->query->io;
    const uint64_t begin_ns = starts_others ? io->ops->monotonic_ns(io) : 0;
    const uint64_t wait_ns = run->query->options.threads == 0 ? alone_ns : 0;
    uint32_t position = 0;
    while (take_unit(run, &position)) {
        if (starts_others && io->ops->monotonic_ns(io) - begin_ns >= wait_ns) {
            starts_others = false;
            start_others(run);
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
    work(argument, false);
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

lahar_status lahar_query_run_job(struct lahar_query *query, const struct lahar_query_job *job,
                                 lahar_error *error)
{
    struct run run = {.query = query, .job = job, .worker_count = lahar_query_worker_count(query)};
    if (run.worker_count > job->unit_count) {
        run.worker_count = job->unit_count;
    }
    if (run.worker_count == 0) {
        return LAHAR_OK;
    }
    run.threads = lahar_allocate_zeroed(query->allocator, run.worker_count, sizeof *run.threads);
    if (run.threads == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the threads of a query");
    }
    init_thread(&run.threads[0], &run, 0);
    work(&run.threads[0], run.worker_count > 1);
    const struct thread *failed = NULL;
    for (uint32_t i = 0; i < run.worker_count; i++) {
        struct thread *thread = &run.threads[i];
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
    lahar_release(query->allocator, run.threads);
    return status;
}
