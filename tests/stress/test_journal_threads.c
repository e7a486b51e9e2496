/* Producers, readers and a roller on journals with real threads.
 *
 * Every producer appends batches whose rows carry its number and a counter. Meanwhile one
 * thread takes views and checks that they are without holes and that their rows are whole, and one
 * forgets what is durable, as rollover does. Afterwards, or after an abandoned set, the
 * files are recovered: ids are a prefix without holes, and what was acknowledged under COMMIT
 * is there. Plain system calls, so that ThreadSanitizer sees every access. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/journal/journal.h"
#include "scratch.h"

enum {
    THREADS_MAX = 1024,
    ROW_SIZE = 200
};

struct plan {
    const char *name;
    uint32_t threads;
    uint32_t batches; /* a thread */
    lahar_durability durability;
    uint64_t memory_bytes;
    bool closes_early;
    bool forgets;
    uint32_t commit_every; /* of one producer's batches, such as commit all the same; 0: none */
};

struct run {
    const struct plan *plan;
    struct lahar_journals *journals;
    _Atomic bool must_end;
    _Atomic uint64_t acknowledged_id; /* largest under COMMIT */
    _Atomic uint64_t callbacks;
    _Atomic uint64_t notifications; /* asked for */
    _Atomic bool has_failed;
};

struct producer {
    struct run *run;
    uint32_t number;
    pthread_t thread;
};

static void fail(struct run *run, const char *what)
{
    fprintf(stderr, "%s: %s\n", run->plan->name, what);
    atomic_store(&run->has_failed, true);
}

static void fill(uint8_t *row, uint32_t producer, uint32_t counter)
{
    memset(row, (int)(producer + counter) & 0x7f, ROW_SIZE);
    memcpy(row, &producer, 4);
    memcpy(row + 4, &counter, 4);
}

static bool is_whole(const uint8_t *row)
{
    uint32_t producer;
    uint32_t counter;
    memcpy(&producer, row, 4);
    memcpy(&counter, row + 4, 4);
    for (size_t i = 8; i < ROW_SIZE; i++) {
        if (row[i] != ((producer + counter) & 0x7f)) {
            return false;
        }
    }
    return true;
}

static void count_callback(void *context, uint64_t id, lahar_status status)
{
    struct run *run = context;
    (void)id;
    (void)status;
    (void)atomic_fetch_add(&run->callbacks, 1);
}

static void raise_to(_Atomic uint64_t *value, uint64_t to)
{
    uint64_t now = atomic_load(value);
    while (now < to && !atomic_compare_exchange_weak(value, &now, to)) {
    }
}

static void *produce(void *argument)
{
    struct producer *producer = argument;
    struct run *run = producer->run;
    uint8_t rows[3 * ROW_SIZE];
    uint64_t last_id = 0;
    for (uint32_t i = 0; i < run->plan->batches; i++) {
        const uint32_t count = 1 + (producer->number + i) % 3;
        for (uint32_t k = 0; k < count; k++) {
            fill(rows + k * ROW_SIZE, producer->number, i);
        }
        uint64_t id = 0;
        lahar_error error = {0};
        const bool commits = run->plan->commit_every != 0 && i % run->plan->commit_every == 0;
        const lahar_durability durability =
            commits ? LAHAR_DURABILITY_COMMIT : run->plan->durability;
        const lahar_status status =
            lahar_journals_append(run->journals, producer->number, rows, count * ROW_SIZE, count,
                                  NULL, 0, durability, LAHAR_WAIT_FOREVER, &id, &error);
        if (status == LAHAR_CLOSED && run->plan->closes_early) {
            break;
        }
        if (status != LAHAR_OK) {
            fail(run, error.message);
            break;
        }
        if (id <= last_id) {
            fail(run, "ids did not rise");
        }
        last_id = id + count - 1;
        if (durability == LAHAR_DURABILITY_COMMIT) {
            if (lahar_journals_durable_id(run->journals) <= last_id) {
                fail(run, "acknowledged before it was durable");
            }
            raise_to(&run->acknowledged_id, last_id);
        } else if (i % 64 == 0 && !run->plan->closes_early) {
            (void)atomic_fetch_add(&run->notifications, 1);
            if (lahar_journals_notify(run->journals, last_id, count_callback, run, NULL) !=
                LAHAR_OK) {
                fail(run, "notify");
            }
        }
    }
    return NULL;
}

static void *look(void *argument)
{
    struct run *run = argument;
    const struct timespec pause = {0, 2000000};
    while (!atomic_load(&run->must_end)) {
        struct lahar_resident_view view;
        lahar_error error = {0};
        const uint64_t next_id = lahar_journals_next_id(run->journals);
        const lahar_status status =
            lahar_journals_view(run->journals, UINT64_C(60000000000), &view, &error);
        if (status != LAHAR_OK) {
            fail(run, error.message);
            break;
        }
        if (view.end_id < next_id) {
            fail(run, "a view ends below the next id");
        }
        uint64_t expected = view.batch_count == 0 ? 0 : view.batches[0].first_id;
        for (size_t i = 0; i < view.batch_count; i++) {
            const struct lahar_resident_batch *batch = &view.batches[i];
            if (batch->first_id != expected || !is_whole(batch->rows)) {
                fail(run, "a view has a hole or a torn row");
                break;
            }
            expected += batch->event_count;
        }
        (void)nanosleep(&pause, NULL);
        lahar_journals_unview(run->journals, &view);
    }
    return NULL;
}

static void *roll(void *argument)
{
    struct run *run = argument;
    const struct timespec pause = {0, 1000000};
    while (!atomic_load(&run->must_end)) {
        (void)nanosleep(&pause, NULL);
        if (run->plan->forgets) {
            lahar_journals_forget(run->journals, lahar_journals_durable_id(run->journals));
        }
    }
    return NULL;
}

static void check_files(struct run *run, struct lahar_io *io, const char *directory,
                        uint64_t next_id)
{
    const struct lahar_journal_session session = {1, 1, 0};
    struct lahar_journal_recovery recovery = {0};
    lahar_error error = {0};
    const uint64_t rolled_id = run->plan->forgets ? lahar_journals_durable_id(run->journals) : 1;
    if (lahar_journal_recover(io, directory, 7, &session, 1, rolled_id, false,
                              &lahar_allocator_libc, &recovery, &error) != LAHAR_OK) {
        fail(run, error.message);
    } else if (!run->plan->forgets && recovery.end_id != next_id) {
        fail(run, "not everything was recovered");
    }
    uint64_t expected = rolled_id;
    for (size_t i = 0; i < recovery.batch_count; i++) {
        if (recovery.batches[i].first_id != expected || !is_whole(recovery.batches[i].rows)) {
            fail(run, "recovery has a hole or a torn row");
            break;
        }
        expected += recovery.batches[i].event_count;
    }
    if (!run->plan->forgets && expected <= atomic_load(&run->acknowledged_id)) {
        fail(run, "an acknowledged batch is missing");
    }
    lahar_journal_recovery_deinit(&recovery, &lahar_allocator_libc);
}

static bool run_plan(const struct plan *plan)
{
    struct run run = {.plan = plan};
    struct lahar_io *io = NULL;
    lahar_error error = {0};
    char directory[SCRATCH_PATH_SIZE];
    scratch_create(directory);
    if (lahar_io_pwrite_create(&lahar_allocator_libc, &io, &error) != LAHAR_OK) {
        fail(&run, error.message);
        return false;
    }
    const struct lahar_journals_options options = {
        .io = io,
        .directory = directory,
        .allocator = &lahar_allocator_libc,
        .store_id = 7,
        .session = 1,
        .next_id = 1,
        .journal_count = 16,
        .memory_bytes = plan->memory_bytes,
        .durability = plan->durability,
        .sync_interval_ms = 20,
        .start_threads = true,
    };
    if (lahar_journals_open(&options, NULL, &run.journals, &error) != LAHAR_OK) {
        fail(&run, error.message);
        return false;
    }
    static struct producer producers[THREADS_MAX];
    pthread_t looker;
    pthread_t roller;
    bool has_started = pthread_create(&looker, NULL, look, &run) == 0 &&
                       pthread_create(&roller, NULL, roll, &run) == 0;
    for (uint32_t i = 0; i < plan->threads && has_started; i++) {
        producers[i] = (struct producer){.run = &run, .number = i};
        has_started = pthread_create(&producers[i].thread, NULL, produce, &producers[i]) == 0;
    }
    if (!has_started) {
        fail(&run, "could not start the threads");
        return false;
    }
    if (plan->closes_early) {
        const struct timespec pause = {0, 1000000};
        while (lahar_journals_next_id(run.journals) < 500 && !atomic_load(&run.has_failed)) {
            (void)nanosleep(&pause, NULL);
        }
    } else {
        for (uint32_t i = 0; i < plan->threads; i++) {
            (void)pthread_join(producers[i].thread, NULL);
        }
    }
    if (lahar_journals_stop(run.journals, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        fail(&run, error.message);
    }
    if (plan->closes_early) {
        for (uint32_t i = 0; i < plan->threads; i++) {
            (void)pthread_join(producers[i].thread, NULL);
        }
    }
    atomic_store(&run.must_end, true);
    (void)pthread_join(looker, NULL);
    (void)pthread_join(roller, NULL);
    const uint64_t next_id = lahar_journals_next_id(run.journals);
    if (lahar_journals_durable_id(run.journals) != next_id) {
        fail(&run, "stopped before everything was durable");
    }
    if (atomic_load(&run.callbacks) != atomic_load(&run.notifications)) {
        fail(&run, "a callback is missing");
    }
    check_files(&run, io, directory, next_id);
    lahar_journals_destroy(run.journals);
    io->ops->destroy(io);
    if (!atomic_load(&run.has_failed)) {
        scratch_remove(directory);
    }
    return !atomic_load(&run.has_failed);
}

int main(void)
{
    const uint64_t mib = UINT64_C(1) << 20;
    static const lahar_durability none = LAHAR_DURABILITY_NONE;
    static const lahar_durability interval = LAHAR_DURABILITY_INTERVAL;
    static const lahar_durability commit = LAHAR_DURABILITY_COMMIT;
    const struct plan plans[] = {
        {"one producer, none", 1, 20000, none, 64 * mib, false, false, 0},
        {"two producers, interval", 2, 20000, interval, 64 * mib, false, false, 0},
        {"sixteen producers, interval", 16, 2000, interval, 128 * mib, false, false, 0},
        {"sixteen producers, little memory", 16, 2000, none, 2 * mib, false, true, 0},
        {"two producers, very little memory", 2, 20000, interval, 1 * mib, false, true, 0},
        {"one producer, commit", 1, 300, commit, 4 * mib, false, true, 0},
        {"one producer, mixed", 1, 20000, interval, 8 * mib, false, true, 50},
        {"three producers, mixed", 3, 10000, interval, 8 * mib, false, true, 50},
        {"four producers, commit", 4, 100, commit, 16 * mib, false, false, 0},
        {"sixteen producers, commit, rolled", 16, 50, commit, 16 * mib, false, true, 0},
        {"a thousand producers, commit", 1000, 3, commit, 64 * mib, false, false, 0},
        {"closed under load, none", 4, 1000000, none, 256 * mib, true, false, 0},
        {"closed under load, commit", 16, 1000000, commit, 64 * mib, true, false, 0},
    };
    const int count = (int)(sizeof plans / sizeof *plans);
    int passed = 0;
    for (int i = 0; i < count; i++) {
        struct timespec start;
        struct timespec end;
        (void)clock_gettime(CLOCK_MONOTONIC, &start);
        const bool is_good = run_plan(&plans[i]);
        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        passed += is_good;
        printf("%-36s %s %.1f s\n", plans[i].name, is_good ? "ok" : "FAILED",
               (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9);
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, count - passed);
    return passed == count ? 0 : 1;
}
