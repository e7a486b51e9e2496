/* The threads of the journals: writers, the one that prepares files, the one that calls
 * back. All of them block every signal; signals are the host's. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/journal/journals.h"
#include "io/base/error.h"

enum {
    REAP_MAX = 64,
    READY_MAX = 4, /* files made ahead, for all journals together */
    QUEUE_OPS_PER_JOURNAL = LAHAR_JOURNAL_WRITES + 2
};

/* The number of active journals is looked at this often, and halved while each of them takes
 * less than this in that time. */
static const uint64_t shrink_interval_ns = 1000000000;
static const uint64_t shrink_bytes = UINT64_C(4) << 20;
static const uint64_t file_retry_ns = 100000000;
static const uint64_t slice_ns = 100000; /* the shortest that the kernel grants */

bool lahar_writer_reap(struct lahar_writer *writer, uint64_t wait_ns)
{
    struct lahar_io *io = writer->journals->io;
    struct lahar_io_op *done[REAP_MAX];
    const uint32_t count = io->ops->queue_reap(io, writer->queue, done, REAP_MAX, wait_ns);
    if (count != 0) {
        const uint64_t now_ns = io->ops->monotonic_ns(io);
        writer->in_flight -= count;
        for (uint32_t i = 0; i < count; i++) {
            lahar_journal_complete(done[i]->context, now_ns);
        }
    }
    return count != 0;
}

/* One step of every journal of the writer that no producer has. */
static bool step_all(struct lahar_writer *writer, uint64_t now_ns)
{
    struct lahar_journals *journals = writer->journals;
    bool has_done = false;
    for (uint32_t j = writer->number; j < journals->journal_count; j += journals->writer_count) {
        struct lahar_journal *journal = &journals->journals[j];
        if (lahar_journal_own(journal)) {
            has_done |= lahar_journal_step(journal, now_ns);
            lahar_journal_disown(journal);
        }
    }
    return has_done;
}

/* Tells producers what to wake the writer for and steps once more, journal by journal. Returns
 * whether anything was done; next_ns_out: when there will be something to do by itself. */
static bool prepare_to_sleep(struct lahar_writer *writer, uint64_t now_ns, uint64_t *next_ns_out)
{
    struct lahar_journals *journals = writer->journals;
    bool has_done = false;
    *next_ns_out = UINT64_MAX;
    for (uint32_t j = writer->number; j < journals->journal_count; j += journals->writer_count) {
        struct lahar_journal *journal = &journals->journals[j];
        if (!lahar_journal_own(journal)) {
            continue; /* who has it wakes this writer */
        }
        /* Pairs with lahar_ring_call: either the step below finds what was published, or the
         * producer finds this and wakes the writer. */
        (void)atomic_exchange_explicit(&journals->rings[j].attention,
                                       (uint32_t)lahar_journal_attention(journal),
                                       memory_order_seq_cst);
        has_done |= lahar_journal_step(journal, now_ns);
        const uint64_t journal_ns = lahar_journal_next_ns(journal);
        *next_ns_out = journal_ns < *next_ns_out ? journal_ns : *next_ns_out;
        lahar_journal_disown(journal);
    }
    return has_done;
}

static uint64_t time_to_wait(const struct lahar_writer *writer, uint64_t now_ns, uint64_t next_ns)
{
    const struct lahar_journals *journals = writer->journals;
    if (writer->number == 0 && atomic_load_explicit(&journals->active, memory_order_relaxed) > 1 &&
        next_ns > now_ns + shrink_interval_ns) {
        next_ns = now_ns + shrink_interval_ns;
    }
    return next_ns == UINT64_MAX ? UINT64_MAX : next_ns > now_ns ? next_ns - now_ns : 1;
}

/* Fewer journals when the load has gone; by the first writer. */
static void consider_shrinking(struct lahar_journals *journals, uint64_t now_ns)
{
    uint32_t active = atomic_load_explicit(&journals->active, memory_order_relaxed);
    const uint64_t changed_ns =
        atomic_load_explicit(&journals->active_changed_ns, memory_order_relaxed);
    if (active == 1 || now_ns < changed_ns + shrink_interval_ns) {
        return;
    }
    const uint32_t recent = atomic_load_explicit(&journals->commits_recent, memory_order_relaxed);
    if (recent != 0) {
        atomic_store_explicit(&journals->commits_recent, recent - 1, memory_order_relaxed);
    }
    atomic_store_explicit(&journals->active_changed_ns, now_ns, memory_order_relaxed);
    const uint64_t bytes =
        atomic_exchange_explicit(&journals->recent_bytes, 0, memory_order_relaxed);
    if (bytes < active * shrink_bytes && active > lahar_journals_for_waiters(journals)) {
        (void)atomic_compare_exchange_strong(&journals->active, &active, active / 2);
    }
}

/* Sleeps if there is nothing to do. */
static void sleep_until_called(struct lahar_writer *writer)
{
    struct lahar_journals *journals = writer->journals;
    const uint64_t now_ns = journals->io->ops->monotonic_ns(journals->io);
    uint64_t next_ns;
    if (!prepare_to_sleep(writer, now_ns, &next_ns) &&
        !atomic_load_explicit(&journals->must_exit, memory_order_seq_cst)) {
        (void)atomic_fetch_add_explicit(&journals->sleeps, 1, memory_order_relaxed);
        (void)lahar_writer_reap(writer, time_to_wait(writer, now_ns, next_ns));
    }
    for (uint32_t j = writer->number; j < journals->journal_count; j += journals->writer_count) {
        (void)atomic_exchange_explicit(&journals->rings[j].attention, LAHAR_ATTENTION_NONE,
                                       memory_order_seq_cst);
    }
    lahar_catalog_walk(&journals->catalog);
}

/* As the kernel defines it; older C libraries do not. */
struct scheduling {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns;
    uint64_t deadline_ns;
    uint64_t period_ns;
};

/* Asks for short slices in exchange for prompt ones: on busy processors a writer would otherwise
 * often see the end of its write a tick late. Kernels before 6.12 take no notice. */
static void ask_for_short_slices(void)
{
    struct scheduling scheduling = {.size = sizeof scheduling};
    if (syscall(SYS_sched_getattr, 0, &scheduling, sizeof scheduling, 0) == 0 &&
        scheduling.policy == SCHED_OTHER) {
        scheduling.runtime_ns = slice_ns;
        (void)syscall(SYS_sched_setattr, 0, &scheduling, 0);
    }
}

static void *run_writer(void *argument)
{
    struct lahar_writer *writer = argument;
    struct lahar_journals *journals = writer->journals;
    struct lahar_io *io = journals->io;
    char name[16];
    (void)snprintf(name, sizeof name, "lahar-writer-%u", writer->number % 100);
    (void)pthread_setname_np(pthread_self(), name);
    ask_for_short_slices();
    lahar_error error = {0};
    if (io->ops->queue_create(io, LAHAR_JOURNAL_COUNT * QUEUE_OPS_PER_JOURNAL, &writer->queue,
                              &error) != LAHAR_OK) {
        (void)pthread_mutex_lock(&journals->mutex);
        journals->start_error = error;
        (void)pthread_mutex_unlock(&journals->mutex);
    }
    (void)atomic_fetch_add_explicit(&journals->started_count, 1, memory_order_seq_cst);
    lahar_gate_signal(&journals->started);
    while (writer->queue != NULL &&
           !atomic_load_explicit(&journals->must_exit, memory_order_seq_cst)) {
        bool has_done = lahar_writer_reap(writer, 0);
        const uint64_t now_ns = io->ops->monotonic_ns(io);
        has_done |= step_all(writer, now_ns);
        if (writer->number == 0) {
            consider_shrinking(journals, now_ns);
        }
        if (has_done) {
            lahar_catalog_walk(&journals->catalog);
        } else {
            sleep_until_called(writer);
        }
    }
    /* The queue stays until nobody can call for the writer any more. */
    while (writer->in_flight != 0) {
        (void)lahar_writer_reap(writer, UINT64_MAX);
    }
    return NULL;
}

bool lahar_journals_prepare_file(struct lahar_journals *journals)
{
    lahar_error error = {0};
    const bool is_for_commits =
        journals->durability == LAHAR_DURABILITY_COMMIT || lahar_journals_expects_commits(journals);
    const lahar_status status =
        lahar_segment_pool_prepare(&journals->files, is_for_commits, &error);
    const bool is_short =
        status == LAHAR_NO_SPACE || status == LAHAR_NO_MEMORY || status == LAHAR_BUSY;
    const bool was_short =
        atomic_exchange_explicit(&journals->is_file_short, is_short, memory_order_seq_cst);
    if (status == LAHAR_OK) {
        lahar_journals_call_all(journals, LAHAR_ATTENTION_SPACE);
        return true;
    }
    if (is_short) {
        if (!was_short) {
            lahar_journals_log(journals, LAHAR_LOG_WARNING, "no journal file: %s", error.message);
        }
        lahar_gate_signal(&journals->space);
        return false;
    }
    lahar_journals_poison(journals, &error);
    return false;
}

static void *run_files(void *argument)
{
    struct lahar_journals *journals = argument;
    (void)pthread_setname_np(pthread_self(), "lahar-files");
    while (!atomic_load_explicit(&journals->must_exit, memory_order_seq_cst)) {
        const uint32_t ticket = lahar_gate_enter(&journals->file_gate);
        const uint32_t wanted = atomic_load_explicit(&journals->files_wanted, memory_order_seq_cst);
        const bool is_wanted = atomic_load_explicit(&journals->state, memory_order_seq_cst) <
                                   LAHAR_JOURNALS_POISONED &&
                               lahar_segment_pool_ready_count(&journals->files) <
                                   (wanted < READY_MAX ? wanted : READY_MAX);
        const bool has_failed = is_wanted && !lahar_journals_prepare_file(journals);
        if (!atomic_load_explicit(&journals->must_exit, memory_order_seq_cst) &&
            (!is_wanted || has_failed)) {
            lahar_gate_sleep(&journals->file_gate, ticket, has_failed ? file_retry_ns : UINT64_MAX);
        }
        lahar_gate_leave(&journals->file_gate);
    }
    return NULL;
}

static void *run_callbacks(void *argument)
{
    struct lahar_journals *journals = argument;
    struct lahar_durable_wait *wait = &journals->durable_wait;
    (void)pthread_setname_np(pthread_self(), "lahar-notify");
    bool must_exit = false;
    while (!must_exit) {
        const uint32_t ticket = lahar_gate_enter(&wait->changed);
        must_exit = atomic_load_explicit(&journals->must_exit, memory_order_seq_cst);
        const uint32_t state = atomic_load_explicit(&journals->state, memory_order_seq_cst);
        const lahar_status rest = state == LAHAR_JOURNALS_POISONED ? LAHAR_POISONED
                                  : must_exit                      ? LAHAR_CLOSED
                                                                   : LAHAR_OK;
        const size_t count = lahar_durable_wait_run(
            wait, atomic_load_explicit(&journals->catalog.durable_id, memory_order_seq_cst), rest);
        if (count == 0 && !must_exit) {
            lahar_gate_sleep(&wait->changed, ticket, UINT64_MAX);
        }
        lahar_gate_leave(&wait->changed);
    }
    return NULL;
}

static lahar_status start(pthread_t *thread, void *(*run)(void *), void *argument, bool *has_out,
                          lahar_error *error)
{
    sigset_t all;
    sigset_t old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    const int failure = pthread_create(thread, NULL, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    *has_out = failure == 0;
    return failure == 0 ? LAHAR_OK : lahar_fail_errno(error, failure, "start a journal thread");
}

/* Waits until at least so many writers have their queues, or have failed to make them. */
static void wait_until_started(struct lahar_journals *journals, uint32_t count)
{
    bool is_ready = false;
    while (!is_ready) {
        const uint32_t ticket = lahar_gate_enter(&journals->started);
        is_ready = atomic_load_explicit(&journals->started_count, memory_order_seq_cst) >= count;
        if (!is_ready) {
            lahar_gate_sleep(&journals->started, ticket, UINT64_MAX);
        }
        lahar_gate_leave(&journals->started);
    }
}

/* Ends their sleep, whatever they sleep for: a writer without a journal has nothing that would be
 * called for. */
static void wake_writers(struct lahar_journals *journals)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < journals->writer_count; w++) {
        count += journals->writers[w].has_thread;
    }
    wait_until_started(journals, count);
    for (uint32_t w = 0; w < journals->writer_count; w++) {
        if (journals->writers[w].has_thread && journals->writers[w].queue != NULL) {
            journals->io->ops->queue_wake(journals->io, journals->writers[w].queue);
        }
    }
}

lahar_status lahar_writers_start(struct lahar_journals *journals, lahar_error *error)
{
    struct lahar_io *io = journals->io;
    if (!journals->has_threads) {
        return io->ops->queue_create(io, LAHAR_JOURNAL_COUNT * QUEUE_OPS_PER_JOURNAL,
                                     &journals->writers[0].queue, error);
    }
    for (uint32_t w = 0; w < journals->writer_count; w++) {
        struct lahar_writer *writer = &journals->writers[w];
        LAHAR_TRY(start(&writer->thread, run_writer, writer, &writer->has_thread, error));
    }
    wait_until_started(journals, journals->writer_count);
    (void)pthread_mutex_lock(&journals->mutex);
    const lahar_error start_error = journals->start_error;
    (void)pthread_mutex_unlock(&journals->mutex);
    if (start_error.status != LAHAR_OK) {
        if (error != NULL) {
            *error = start_error;
        }
        return start_error.status;
    }
    LAHAR_TRY(
        start(&journals->file_thread, run_files, journals, &journals->has_file_thread, error));
    return start(&journals->notify_thread, run_callbacks, journals, &journals->has_notify_thread,
                 error);
}

void lahar_writers_join(struct lahar_journals *journals)
{
    atomic_store_explicit(&journals->must_exit, true, memory_order_seq_cst);
    if (!journals->has_threads) {
        struct lahar_writer *writer = &journals->writers[0];
        while (writer->queue != NULL && writer->in_flight != 0) {
            (void)lahar_writer_reap(writer, UINT64_MAX);
        }
        (void)lahar_durable_wait_run(
            &journals->durable_wait,
            atomic_load_explicit(&journals->catalog.durable_id, memory_order_relaxed),
            atomic_load(&journals->state) == LAHAR_JOURNALS_POISONED ? LAHAR_POISONED
                                                                     : LAHAR_CLOSED);
        return;
    }
    wake_writers(journals);
    lahar_gate_signal(&journals->file_gate);
    for (uint32_t w = 0; w < journals->writer_count; w++) {
        if (journals->writers[w].has_thread) {
            (void)pthread_join(journals->writers[w].thread, NULL);
            journals->writers[w].has_thread = false;
        }
    }
    if (journals->has_file_thread) {
        (void)pthread_join(journals->file_thread, NULL);
        journals->has_file_thread = false;
    }
    lahar_gate_signal(&journals->durable_wait.changed);
    if (journals->has_notify_thread) {
        (void)pthread_join(journals->notify_thread, NULL);
        journals->has_notify_thread = false;
    }
}

bool lahar_journals_run(struct lahar_journals *journals)
{
    struct lahar_writer *writer = &journals->writers[0];
    bool has_done = false;
    for (uint32_t j = 0; j < journals->journal_count; j++) {
        has_done |= lahar_journals_step(journals, j);
    }
    if (!has_done && writer->in_flight != 0) {
        const uint64_t patience_ns = 1000000;
        (void)lahar_writer_reap(writer, patience_ns);
        lahar_catalog_walk(&journals->catalog);
        has_done = true;
    }
    return has_done;
}
