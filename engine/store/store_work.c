/* Background work: the threads that loop over non-blocking steps, the id ceiling, and
 * running the same steps by hand where there are no threads.
 *
 * "lahar-resident" indexes what is in memory; "lahar-retention" drops what is beyond the limits;
 * "lahar-join" joins small files; "lahar-rollover" may be busy for as long as a rollover takes;
 * "lahar-ceiling" does nothing but keep reserved ids ahead of the appends, so that these never wait
 * for it. All block every signal: signals are the host's. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "engine/rollover/join.h"
#include "engine/rollover/resident_index.h"
#include "engine/rollover/retention.h"
#include "engine/rollover/rollover.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

enum {
    POLL_MS = 50,            /* of the threads while nobody wakes them */
    RETENTION_POLL_MS = 500, /* of the one that has no hurry */
    /* Rounds without any work done after which a store without threads is at rest: a queued
     * operation may take a few to complete. */
    IDLE_ROUNDS_MAX = 64
};

#define NS_PER_SECOND UINT64_C(1000000000)

void lahar_store_log(const lahar_store *store, lahar_log_level level, const char *format, ...)
{
    if (store->options.log == NULL) {
        return;
    }
    char message[LAHAR_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (written >= 0) {
        store->options.log(store->options.log_context, level, message);
    }
}

/* --- steps by hand ------------------------------------------------------------------ */

bool lahar_store_step(lahar_store *store, uint32_t work)
{
    if (store->journals == NULL) {
        return false;
    }
    if (work < LAHAR_WORK_ROLLOVER) {
        return lahar_journals_step(store->journals, work);
    }
    if (work == LAHAR_WORK_ROLLOVER) {
        return lahar_rollover_step(store->rollover);
    }
    if (work == LAHAR_WORK_CEILING) {
        return lahar_store_raise_ceiling(store);
    }
    if (work == LAHAR_WORK_RETENTION) {
        return lahar_retention_step(store);
    }
    return work == LAHAR_WORK_JOIN && lahar_join_step(store);
}

bool lahar_store_drive(lahar_store *store, bool (*is_done)(void *context), void *context)
{
    for (uint32_t idle_rounds = 0; idle_rounds < IDLE_ROUNDS_MAX;) {
        if (is_done(context)) {
            return true;
        }
        bool has_worked = false;
        for (uint32_t work = 0; work < LAHAR_WORK_COUNT; work++) {
            has_worked = lahar_store_step(store, work) || has_worked;
        }
        idle_rounds = has_worked ? 0 : idle_rounds + 1;
    }
    return is_done(context);
}

/* --- threads ------------------------------------------------------------------------ */

bool lahar_store_is_stopping(lahar_store *store)
{
    (void)pthread_mutex_lock(&store->thread_lock);
    const bool is_stopping = store->is_stopping;
    (void)pthread_mutex_unlock(&store->thread_lock);
    return is_stopping;
}

/* Sleeps until woken, stopped, or so long. */
static void rest(lahar_store *store, uint64_t poll_ms)
{
    const uint64_t until_ns = store->io->ops->monotonic_ns(store->io) + poll_ms * UINT64_C(1000000);
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SECOND),
                                   .tv_nsec = (long)(until_ns % NS_PER_SECOND)};
    (void)pthread_mutex_lock(&store->thread_lock);
    if (!store->is_stopping) {
        (void)pthread_cond_timedwait(&store->thread_wake, &store->thread_lock, &until);
    }
    (void)pthread_mutex_unlock(&store->thread_lock);
}

static void *loop_rollover(void *context)
{
    lahar_store *store = context;
    while (!lahar_store_is_stopping(store)) {
        if (!lahar_rollover_step(store->rollover)) {
            rest(store, POLL_MS);
        }
    }
    return NULL;
}

static void *loop_ceiling(void *context)
{
    lahar_store *store = context;
    while (!lahar_store_is_stopping(store)) {
        if (!lahar_store_raise_ceiling(store)) {
            rest(store, POLL_MS);
        }
    }
    return NULL;
}

static void *loop_resident(void *context)
{
    lahar_store *store = context;
    while (!lahar_store_is_stopping(store)) {
        const bool has_built = lahar_resident_index_step(store->resident_index);
        const uint64_t rest_ms = lahar_resident_index_rest_ns(store->resident_index) / 1000000;
        if (!has_built || rest_ms != 0) {
            rest(store, has_built ? rest_ms : POLL_MS);
        }
    }
    return NULL;
}

static void *loop_retention(void *context)
{
    lahar_store *store = context;
    while (!lahar_store_is_stopping(store)) {
        lahar_query_registry_sweep(&store->queries, store->io);
        if (!lahar_retention_step(store)) {
            rest(store, RETENTION_POLL_MS);
        }
    }
    return NULL;
}

static void *loop_join(void *context)
{
    lahar_store *store = context;
    while (!lahar_store_is_stopping(store)) {
        if (!lahar_join_step(store)) {
            rest(store, RETENTION_POLL_MS);
        }
    }
    return NULL;
}

static lahar_status start_thread(lahar_store *store, struct lahar_store_thread *thread,
                                 const char *name, void *(*loop)(void *context), lahar_error *error)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(&thread->thread, NULL, loop, store);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) {
        return lahar_fail_errno(error, result, "starting thread %s", name);
    }
    thread->is_running = true;
    (void)pthread_setname_np(thread->thread, name);
    return LAHAR_OK;
}

lahar_status lahar_store_start_threads(lahar_store *store, lahar_error *error)
{
    (void)pthread_mutex_lock(&store->thread_lock);
    store->is_stopping = false;
    (void)pthread_mutex_unlock(&store->thread_lock);
    lahar_status status = LAHAR_OK;
    if (store->config.start_threads && store->journals != NULL) {
        status =
            start_thread(store, &store->rollover_thread, "lahar-rollover", loop_rollover, error);
        if (status == LAHAR_OK) {
            status =
                start_thread(store, &store->ceiling_thread, "lahar-ceiling", loop_ceiling, error);
        }
        if (status == LAHAR_OK) {
            status = start_thread(store, &store->retention_thread, "lahar-retention",
                                  loop_retention, error);
        }
        if (status == LAHAR_OK) {
            status = start_thread(store, &store->join_thread, "lahar-join", loop_join, error);
        }
        if (status == LAHAR_OK) {
            status = start_thread(store, &store->resident_thread, "lahar-resident", loop_resident,
                                  error);
        }
        if (status != LAHAR_OK) {
            lahar_store_stop_threads(store);
        }
    }
    return status;
}

void lahar_store_wake_threads(lahar_store *store)
{
    (void)pthread_mutex_lock(&store->thread_lock);
    (void)pthread_cond_broadcast(&store->thread_wake);
    (void)pthread_mutex_unlock(&store->thread_lock);
}

void lahar_store_stop_threads(lahar_store *store)
{
    (void)pthread_mutex_lock(&store->thread_lock);
    store->is_stopping = true;
    (void)pthread_cond_broadcast(&store->thread_wake);
    (void)pthread_mutex_unlock(&store->thread_lock);
    struct lahar_store_thread *const threads[] = {&store->rollover_thread, &store->ceiling_thread,
                                                  &store->retention_thread, &store->join_thread,
                                                  &store->resident_thread};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        if (threads[i]->is_running) {
            (void)pthread_join(threads[i]->thread, NULL);
            threads[i]->is_running = false;
        }
    }
    lahar_rollover_stop(store->rollover);
}
