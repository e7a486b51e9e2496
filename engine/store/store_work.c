/* Background work: the threads that loop over non-blocking steps, the id ceiling, and
 * running the same steps by hand where there are no threads.
 *
 * "lahar-resident" indexes what is in memory; "lahar-retention" drops what is beyond the limits;
 * "lahar-join" joins small files; "lahar-rollover" may be busy for as long as a rollover takes;
 * "lahar-ceiling" does nothing but keep reserved ids ahead of the appends, so that these never wait
 * for it. All block every signal: signals are the host's.
 *
 * No thread looks from time to time. Each says after a step what the next one has to wait for: a
 * mark of the journals (so much appended, so many ids published), a point in time (the age of the
 * open group, of the oldest file, of a query), or what others do, who then wake all: a rollover or
 * a retention that has ended, a request, a limit that was set. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/rollover/join.h"
#include "engine/rollover/resident_index.h"
#include "engine/rollover/retention.h"
#include "engine/rollover/rollover.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

enum {
    /* Rounds without any work done after which a store without threads is at rest: a queued
     * operation may take a few to complete. */
    IDLE_ROUNDS_MAX = 64
};

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

/* One step of each thread, and what ends its rest after one that left nothing to do at once. */

static bool step_rollover(lahar_store *store, struct lahar_rest *rest_out)
{
    const bool has_worked = lahar_rollover_step(store->rollover);
    if (!has_worked) {
        lahar_rollover_rest(store->rollover, rest_out);
    }
    return has_worked;
}

static bool step_ceiling(lahar_store *store, struct lahar_rest *rest_out)
{
    const bool has_worked = lahar_store_raise_ceiling(store);
    lahar_store_ceiling_rest(store, rest_out);
    return has_worked;
}

/* Never says that it goes on at once: its rest may be shorter than nothing, or let others run. */
static bool step_resident(lahar_store *store, struct lahar_rest *rest_out)
{
    (void)lahar_resident_index_step(store->resident_index, rest_out);
    return false;
}

static bool step_retention(lahar_store *store, struct lahar_rest *rest_out)
{
    const uint64_t sweep_ns = lahar_query_registry_sweep(&store->queries, store->io);
    const bool has_worked = lahar_retention_step(store);
    lahar_retention_rest(store, rest_out);
    rest_out->until_ns = sweep_ns < rest_out->until_ns ? sweep_ns : rest_out->until_ns;
    return has_worked;
}

static bool step_join(lahar_store *store, struct lahar_rest *rest_out)
{
    const bool has_worked = lahar_join_step(store);
    lahar_join_rest(store, rest_out);
    return has_worked;
}

static const struct {
    const char *name;
    bool (*step)(lahar_store *store, struct lahar_rest *rest_out);
    bool gives_way;
} thread_kinds[LAHAR_THREAD_COUNT] = {
    [LAHAR_THREAD_ROLLOVER] = {"lahar-rollover", step_rollover, false},
    [LAHAR_THREAD_CEILING] = {"lahar-ceiling", step_ceiling, false},
    [LAHAR_THREAD_RETENTION] = {"lahar-retention", step_retention, false},
    [LAHAR_THREAD_JOIN] = {"lahar-join", step_join, true},
    [LAHAR_THREAD_RESIDENT] = {"lahar-resident", step_resident, false},
};

/* What the calling thread does can wait for everything else. It keeps some of the time when others
 * want all of it (a thirtieth of an ordinary thread's), since it holds locks for short, and a store
 * that closes waits for it. */
static void give_way(void)
{
    enum {
        NICE_STEPS = 15,
        NICE_MAX = 19
    };
    const id_t own = (id_t)syscall(SYS_gettid);
    const int before = getpriority(PRIO_PROCESS, own);
    (void)setpriority(PRIO_PROCESS, own,
                      before + NICE_STEPS < NICE_MAX ? before + NICE_STEPS : (int)NICE_MAX);
}

static void *loop(void *context)
{
    struct lahar_store_thread *thread = context;
    lahar_store *store = thread->store;
    bool goes_on = true;
    if (thread_kinds[thread->kind].gives_way) {
        give_way();
    }
    while (goes_on) {
        /* Before the look at whether to stop, and for work: what changes behind it ends the sleep.
         */
        const uint32_t ticket = lahar_gate_enter(&thread->alarm.gate);
        goes_on = !lahar_store_is_stopping(store);
        struct lahar_rest rest = LAHAR_REST_FOREVER;
        if (goes_on && !thread_kinds[thread->kind].step(store, &rest)) {
            lahar_journals_sleep(store->journals, &thread->alarm, ticket, &rest);
        }
        lahar_gate_leave(&thread->alarm.gate);
    }
    return NULL;
}

static lahar_status start_thread(lahar_store *store, enum lahar_store_thread_kind kind,
                                 lahar_error *error)
{
    struct lahar_store_thread *thread = &store->threads[kind];
    const char *name = thread_kinds[kind].name;
    thread->store = store;
    thread->kind = kind;
    lahar_journals_add_alarm(store->journals, &thread->alarm);
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(&thread->thread, NULL, loop, thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) {
        lahar_journals_remove_alarm(store->journals, &thread->alarm);
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
    lahar_store_note_question(store); /* who opens a store is about to use it */
    if (store->config.start_threads && store->journals != NULL) {
        lahar_query_registry_set_sweeper(&store->queries,
                                         &store->threads[LAHAR_THREAD_RETENTION].alarm.gate);
        for (int kind = 0; kind < LAHAR_THREAD_COUNT && status == LAHAR_OK; kind++) {
            status = start_thread(store, (enum lahar_store_thread_kind)kind, error);
        }
        if (status != LAHAR_OK) {
            lahar_store_stop_threads(store);
        }
    }
    return status;
}

void lahar_store_wake_threads(lahar_store *store)
{
    for (int kind = 0; kind < LAHAR_THREAD_COUNT; kind++) {
        lahar_gate_signal(&store->threads[kind].alarm.gate);
    }
}

void lahar_store_stop_threads(lahar_store *store)
{
    (void)pthread_mutex_lock(&store->thread_lock);
    store->is_stopping = true;
    (void)pthread_mutex_unlock(&store->thread_lock);
    lahar_store_wake_threads(store);
    for (int kind = 0; kind < LAHAR_THREAD_COUNT; kind++) {
        struct lahar_store_thread *thread = &store->threads[kind];
        if (thread->is_running) {
            (void)pthread_join(thread->thread, NULL);
            thread->is_running = false;
            lahar_journals_remove_alarm(store->journals, &thread->alarm);
        }
    }
    lahar_rollover_stop(store->rollover);
}
