/* What appends cost besides the copy, counted while a store takes a load.
 *
 *   - A million appends: allocations and locks of those that find memory, counted by the store's
 *     allocator and a wrapper of the lock function; wakes of writers against their sleeps.
 *   - Under load: bytes a write, and system calls of the writers a write or sync.
 *   - A commit beside that load waits for little of it.
 *
 * The bounds of time are loose: this runs on machines that do other things too. */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    THREADS = 2,
    APPENDS = 500000, /* a thread */
    BESIDE_COMMITS = 100
};

static bool is_build_fast; /* told by the argument "fast": no sanitizer, so loads are heavy */
static _Thread_local bool is_appending;
static _Thread_local uint64_t allocations_now; /* of the append that is going on */
static _Thread_local uint64_t locks_now;
static _Atomic uint64_t allocations; /* of the appends that found memory */
static _Atomic uint64_t locks;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*_Atomic next)(pthread_mutex_t *);
    if (atomic_load(&next) == NULL) {
        int (*found)(pthread_mutex_t *) = NULL;
        *(void **)&found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        atomic_store(&next, found);
    }
    locks_now += is_appending;
    return atomic_load(&next)(mutex);
}

static void *allocate(void *context, size_t size)
{
    (void)context;
    allocations_now += is_appending;
    return malloc(size);
}

static void *reallocate(void *context, void *memory, size_t size)
{
    (void)context;
    allocations_now += is_appending;
    return realloc(memory, size);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

struct loader {
    lahar_store *store;
    uint32_t stream;
    pthread_t thread;
    bool has_failed;
    _Atomic bool *must_end; /* NULL: APPENDS appends */
    uint64_t waited;        /* appends that found no memory at once */
};

static bool append(lahar_batch *batch, uint32_t stream, lahar_durability durability,
                   uint64_t deadline_ns, bool *had_to_wait)
{
    static const char text[100] = "a line of a hundred bytes";
    const lahar_value value = {
        .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {text, sizeof text}};
    const lahar_event event = {.time_ns = 1, .stream = stream, .values = &value, .value_count = 1};
    const lahar_append_options options = {sizeof options, durability, deadline_ns};
    const lahar_append_options patient = {sizeof options, durability, LAHAR_WAIT_FOREVER};
    is_appending = durability != LAHAR_DURABILITY_COMMIT;
    allocations_now = 0;
    locks_now = 0;
    lahar_status status = lahar_append(batch, &event, &options, NULL, NULL);
    is_appending = false;
    *had_to_wait = status == LAHAR_BUSY;
    if (!*had_to_wait) {
        (void)atomic_fetch_add(&allocations, allocations_now);
        (void)atomic_fetch_add(&locks, locks_now);
    }
    if (status == LAHAR_BUSY) {
        status = lahar_batch_commit(batch, &patient, NULL, NULL);
    }
    return status == LAHAR_OK;
}

static void *load(void *argument)
{
    struct loader *loader = argument;
    lahar_batch *batch = NULL;
    bool is_good = lahar_batch_create(loader->store, &batch, NULL) == LAHAR_OK;
    bool had_to_wait = false;
    is_good = is_good && append(batch, loader->stream, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER,
                                &had_to_wait); /* warm */
    for (uint32_t i = 0;
         is_good && (loader->must_end == NULL ? i < APPENDS : !atomic_load(loader->must_end));
         i++) {
        is_good = append(batch, loader->stream, LAHAR_DURABILITY_NONE, LAHAR_NO_WAIT, &had_to_wait);
        loader->waited += had_to_wait;
    }
    loader->has_failed = !is_good;
    lahar_batch_destroy(batch);
    return NULL;
}

static lahar_stat stat_of(lahar_store *store)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    if (lahar_stat_get(store, &stat, NULL) != LAHAR_OK) {
        stat.struct_size = 0;
    }
    return stat;
}

static bool start(struct loader *loaders, lahar_store *store, uint32_t stream,
                  _Atomic bool *must_end)
{
    bool is_good = true;
    for (int i = 0; i < THREADS; i++) {
        loaders[i] = (struct loader){.store = store, .stream = stream, .must_end = must_end};
        is_good &= pthread_create(&loaders[i].thread, NULL, load, &loaders[i]) == 0;
    }
    return is_good;
}

static bool join(struct loader *loaders, uint64_t *waited_out)
{
    bool is_good = true;
    *waited_out = 0;
    for (int i = 0; i < THREADS; i++) {
        is_good &= pthread_join(loaders[i].thread, NULL) == 0 && !loaders[i].has_failed;
        *waited_out += loaders[i].waited;
    }
    return is_good;
}

static bool expect(bool holds, const char *what)
{
    printf("%-60s %s\n", what, holds ? "ok" : "FAILED");
    return holds;
}

static int count_costs(lahar_store *store, uint32_t stream)
{
    struct loader loaders[THREADS];
    uint64_t waited = 0;
    const lahar_stat before = stat_of(store);
    const bool is_good = start(loaders, store, stream, NULL) && join(loaders, &waited);
    const lahar_stat after = stat_of(store);
    const uint64_t writes = after.journal_writes - before.journal_writes;
    const uint64_t syncs = after.journal_syncs - before.journal_syncs;
    const uint64_t bytes = after.journal_write_bytes - before.journal_write_bytes;
    const uint64_t enters = after.io_submits - before.io_submits;
    const uint64_t wakes = after.writer_wakes - before.writer_wakes;
    const uint64_t sleeps = after.writer_sleeps - before.writer_sleeps;
    printf("%d appends: %" PRIu64 " allocations, %" PRIu64 " locks, %" PRIu64 " waited for memory; "
           "%" PRIu64 " writes of %.0f bytes, %" PRIu64 " syncs, %" PRIu64 " system calls, %" PRIu64
           " wakes of %" PRIu64 " sleeps\n",
           THREADS * APPENDS, allocations, locks, waited, writes,
           (double)bytes / (double)(writes == 0 ? 1 : writes), syncs, enters, wakes, sleeps);
    return !expect(is_good, "all is appended") + !expect(allocations == 0, "no allocation") +
           !expect(locks == 0, "no lock") +
           !expect(wakes <= sleeps + 1, "at most one wake a sleep of a writer") +
           !expect(!is_build_fast || bytes >= writes * 64 * 1024, "writes of 64 KiB and more") +
           !expect(enters <= writes + syncs, "at most one system call a batch");
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int commit_beside(lahar_store *store, uint32_t stream)
{
    static uint64_t took_ns[BESIDE_COMMITS];
    struct loader loaders[THREADS];
    _Atomic bool must_end = false;
    uint64_t waited = 0;
    bool had_to_wait = false;
    lahar_batch *batch = NULL;
    bool is_good = start(loaders, store, stream, &must_end) &&
                   lahar_batch_create(store, &batch, NULL) == LAHAR_OK;
    for (int i = 0; i < BESIDE_COMMITS && is_good; i++) {
        const struct timespec pause = {0, 5000000};
        const uint64_t start_ns = now_ns();
        is_good = append(batch, stream, LAHAR_DURABILITY_COMMIT, LAHAR_WAIT_FOREVER, &had_to_wait);
        took_ns[i] = now_ns() - start_ns;
        (void)nanosleep(&pause, NULL);
    }
    atomic_store(&must_end, true);
    is_good &= join(loaders, &waited);
    lahar_batch_destroy(batch);
    qsort(took_ns, BESIDE_COMMITS, sizeof *took_ns, compare);
    printf("commits beside the load: median %.1f ms, 99 %% within %.1f ms\n",
           (double)took_ns[BESIDE_COMMITS / 2] / 1e6, (double)took_ns[BESIDE_COMMITS - 2] / 1e6);
    return !expect(is_good, "commits beside a load succeed") +
           !expect(took_ns[BESIDE_COMMITS / 2] <= UINT64_C(200000000), "and wait for little of it");
}

int main(int argument_count, char **arguments)
{
    is_build_fast = argument_count > 1 && strcmp(arguments[1], "fast") == 0;
    char directory[SCRATCH_PATH_SIZE];
    scratch_create(directory);
    const lahar_allocator allocator = {allocate, reallocate, release, NULL};
    lahar_options options = {.struct_size = sizeof options};
    options.allocator = &allocator;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    lahar_store *store = NULL;
    lahar_error error = {0};
    uint32_t stream = 0;
    int failed = 0;
    if (lahar_store_open(directory, &options, LAHAR_NO_WAIT, &store, &error) != LAHAR_OK ||
        lahar_stream_create(store, &spec, &stream, &error) != LAHAR_OK) {
        fprintf(stderr, "%s\n", error.message);
        failed = 1;
    } else {
        failed += count_costs(store, stream);
        failed += commit_beside(store, stream);
    }
    if (lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        fprintf(stderr, "%s\n", error.message);
        failed++;
    }
    scratch_remove(directory);
    printf("%d passed, %d failed, 0 skipped\n", 8 - (failed > 8 ? 8 : failed), failed);
    return failed == 0 ? 0 : 1;
}
