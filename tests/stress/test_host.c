/* A host that is hard on its guest: two stores in one process, threads that end between two appends
 * and leave their batches to others, and forks while all of that goes on. The child closes both
 * stores and ends; the parent loses nothing. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    STORES = 2,
    ROUNDS = 6,
    THREADS = 16, /* a round; each ends after APPENDS */
    APPENDS = 20
};

static lahar_store *stores[STORES];
static uint32_t streams[STORES];
static lahar_batch *batches[THREADS];
static _Atomic uint64_t appended[STORES];
static _Atomic bool has_failed;

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        atomic_store(&has_failed, true);
    }
}

static void *append_a_few(void *argument)
{
    const size_t number = (size_t)(uintptr_t)argument;
    const size_t store = number % STORES;
    const lahar_event event = {.time_ns = 1, .stream = streams[store]};
    for (unsigned i = 0; i < APPENDS; i++) {
        const lahar_append_options options = {
            sizeof options, i % 5 == 0 ? LAHAR_DURABILITY_COMMIT : LAHAR_DURABILITY_INTERVAL,
            LAHAR_WAIT_FOREVER};
        check(lahar_append(batches[number], &event, &options, NULL, NULL) == LAHAR_OK, "append");
        (void)atomic_fetch_add(&appended[store], 1);
    }
    return NULL; /* the batch stays where it is */
}

/* ThreadSanitizer does not follow a process with threads through a fork. */
#if defined(__SANITIZE_THREAD__)
#define IS_FOLLOWED_BY_TSAN true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_FOLLOWED_BY_TSAN true
#endif
#endif
#ifndef IS_FOLLOWED_BY_TSAN
#define IS_FOLLOWED_BY_TSAN false
#endif

static void fork_and_close(void)
{
    if (IS_FOLLOWED_BY_TSAN) {
        return;
    }
    const pid_t child = fork();
    if (child == 0) {
        bool is_good = true;
        for (int i = 0; i < STORES; i++) {
            is_good &= lahar_store_close(stores[i], LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK;
        }
        _exit(is_good ? 0 : 1);
    }
    int status = -1;
    check(child > 0 && waitpid(child, &status, 0) == child, "fork");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "closing in the child");
}

static void run_round(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        check(pthread_create(&threads[i], NULL, append_a_few, (void *)(uintptr_t)i) == 0, "thread");
    }
    fork_and_close();
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static uint64_t count(const char *directory)
{
    lahar_store *store = NULL;
    lahar_stat stat = {.struct_size = sizeof stat};
    check(lahar_store_open(directory, NULL, LAHAR_NO_WAIT, &store, NULL) == LAHAR_OK, "reopening");
    if (store != NULL) {
        check(lahar_stat_get(store, &stat, NULL) == LAHAR_OK, "stat");
        check(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "closing again");
    }
    return stat.event_count;
}

int main(void)
{
    static char directories[STORES][SCRATCH_PATH_SIZE];
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    for (int i = 0; i < STORES; i++) {
        scratch_create(directories[i]);
        check(lahar_store_open(directories[i], NULL, LAHAR_NO_WAIT, &stores[i], NULL) == LAHAR_OK &&
                  lahar_stream_create(stores[i], &spec, &streams[i], NULL) == LAHAR_OK,
              "opening");
    }
    for (size_t i = 0; i < THREADS && !atomic_load(&has_failed); i++) {
        check(lahar_batch_create(stores[i % STORES], &batches[i], NULL) == LAHAR_OK, "batch");
    }
    for (int round = 0; round < ROUNDS && !atomic_load(&has_failed); round++) {
        run_round();
    }
    for (size_t i = 0; i < THREADS; i++) {
        lahar_batch_destroy(batches[i]);
    }
    for (int i = 0; i < STORES; i++) {
        check(lahar_store_close(stores[i], LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "closing");
        check(count(directories[i]) == atomic_load(&appended[i]), "events are missing");
        scratch_remove(directories[i]);
    }
    const bool is_good = !atomic_load(&has_failed);
    printf("%d passed, %d failed, 0 skipped\n", is_good, !is_good);
    return is_good ? 0 : 1;
}
