/* kill -9 at random moments of a commit load, on the real disk.
 *
 * A child appends from four threads, three of them under COMMIT, with groups so
 * small that rollovers run all the time; it reports every acknowledged batch
 * through a pipe. The parent kills it, opens the store and checks: what
 * was acknowledged is there, every batch is whole, the ids of the
 * session have no hole, and verify finds nothing.
 *
 * usage: test_kill9 [ROUNDS [SEED]] */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    THREADS = 4,
    ROUNDS_PER_STORE = 10,
    ACKNOWLEDGED_MAX = 1 << 20,
    BATCH_EVENTS_MAX = 5
};

struct acknowledged {
    uint64_t first_id;
    uint32_t event_count;
    uint32_t round;
};

struct producer {
    lahar_store *store;
    uint32_t stream;
    uint32_t thread;
    uint32_t round;
    uint64_t seed;
    int pipe;
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static lahar_status open_store(const char *path, lahar_store **store_out, lahar_error *error)
{
    lahar_options options;
    lahar_options_init(&options);
    options.group_event_count = 3000;
    options.memory_limit_bytes = 128u << 20;
    return lahar_store_open(path, &options, UINT64_C(10000000000), store_out, error);
}

/* Appends until the process is killed. */
static void *produce(void *argument)
{
    struct producer *producer = argument;
    const lahar_append_options options = {
        .struct_size = sizeof options,
        .durability = producer->thread == 0 ? LAHAR_DURABILITY_NONE : LAHAR_DURABILITY_COMMIT,
        .deadline_ns = LAHAR_WAIT_FOREVER};
    lahar_batch *batch = NULL;
    if (lahar_batch_create(producer->store, &batch, NULL) != LAHAR_OK) {
        return NULL;
    }
    for (uint32_t number = 0;; number++) {
        char message[800];
        const uint32_t count = 1 + (uint32_t)(next_random(&producer->seed) % BATCH_EVENTS_MAX);
        for (uint32_t place = 0; place < count; place++) {
            const int head = snprintf(message, sizeof message, "%u %u %u %u %u.", producer->round,
                                      producer->thread, number, place, count);
            const size_t size = (size_t)head + next_random(&producer->seed) % 700;
            memset(message + head, 'x', size - (size_t)head);
            const lahar_value value = {
                .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {message, size}};
            const lahar_event event = {.stream = producer->stream,
                                       .time_ns = LAHAR_TIME_OF_ARRIVAL,
                                       .values = &value,
                                       .value_count = 1};
            if (lahar_batch_add(batch, &event, NULL) != LAHAR_OK) {
                return NULL;
            }
        }
        struct acknowledged note = {.event_count = count, .round = producer->round};
        if (lahar_batch_commit(batch, &options, &note.first_id, NULL) != LAHAR_OK) {
            return NULL;
        }
        if (producer->thread != 0 &&
            write(producer->pipe, &note, sizeof note) != (ssize_t)sizeof note) {
            return NULL;
        }
    }
}

static void child(const char *path, uint32_t round, uint64_t seed, int pipe)
{
    lahar_error error = {0};
    lahar_store *store = NULL;
    uint32_t stream = 0;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    if (open_store(path, &store, &error) != LAHAR_OK) {
        (void)fprintf(stderr, "child: %s\n", error.message);
        _exit(3);
    }
    const lahar_status status = lahar_stream_create(store, &spec, &stream, &error);
    if (status != LAHAR_OK && status != LAHAR_EXISTS) {
        (void)fprintf(stderr, "child: %s\n", error.message);
        _exit(3);
    }
    struct producer producers[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        producers[i] = (struct producer){store, stream, i, round, seed * 31 + i, pipe};
        if (pthread_create(&threads[i], NULL, produce, &producers[i]) != 0) {
            _exit(3);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    _exit(4);
}

/* Starts a child, lets it run for a random while, kills it, collects its notes. */
static bool run_child(const char *path, uint32_t round, uint64_t *random,
                      struct acknowledged *notes, size_t *note_count)
{
    int ends[2];
    if (pipe(ends) != 0) {
        perror("pipe");
        return false;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        child(path, round, *random, ends[1]);
    }
    (void)close(ends[1]);
    (void)fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
    const uint64_t wait_us = 20000 + next_random(random) % 150000;
    const struct timespec wait = {0, (long)wait_us * 1000};
    (void)nanosleep(&wait, NULL);
    (void)kill(pid, SIGKILL);
    for (;;) {
        const ssize_t size = read(ends[0], &notes[*note_count], sizeof notes[0]);
        if (size != (ssize_t)sizeof notes[0] || *note_count + 1 == ACKNOWLEDGED_MAX) {
            break;
        }
        (*note_count)++;
    }
    (void)close(ends[0]);
    int status = 0;
    (void)waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        printf("FAIL round %u: the child ended by itself (%d)\n", round, status);
        return false;
    }
    return true;
}

struct found {
    uint64_t id;
    uint32_t round;
    uint32_t thread;
    uint32_t number;
    uint32_t place;
    uint32_t count;
};

static bool read_all(lahar_store *store, struct found **found_out, size_t *count_out)
{
    lahar_error error = {0};
    lahar_cursor *cursor = NULL;
    struct found *found = NULL;
    size_t count = 0;
    size_t capacity = 0;
    if (lahar_scan(store, NULL, &cursor, &error) != LAHAR_OK) {
        printf("FAIL scan: %s\n", error.message);
        return false;
    }
    for (;;) {
        const lahar_event *event = NULL;
        const lahar_status status = lahar_cursor_next(cursor, &event, &error);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        if (status != LAHAR_OK || event->value_count == 0) {
            printf("FAIL next: %s\n", error.message);
            lahar_cursor_close(cursor);
            free(found);
            return false;
        }
        if (count == capacity) {
            capacity = capacity == 0 ? 4096 : capacity * 2;
            found = realloc(found, capacity * sizeof *found);
        }
        char head[80] = {0};
        const lahar_bytes message = event->values[0].as.bytes;
        memcpy(head, message.data, message.size < 79 ? message.size : 79);
        struct found *one = &found[count++];
        one->id = event->id;
        if (sscanf(head, "%u %u %u %u %u.", &one->round, &one->thread, &one->number, &one->place,
                   &one->count) != 5) {
            printf("FAIL event %llu reads %.40s\n", (unsigned long long)event->id, head);
            lahar_cursor_close(cursor);
            free(found);
            return false;
        }
    }
    lahar_cursor_close(cursor);
    *found_out = found;
    *count_out = count;
    return true;
}

/* Batches whole, ids of a session (a round) without a hole, threads in order. */
static bool check_order(const struct found *found, size_t count)
{
    int64_t last_number[THREADS];
    uint32_t round = UINT32_MAX;
    for (size_t i = 0; i < count;) {
        const struct found *first = &found[i];
        if (first->thread >= THREADS || first->place != 0 || first->count > BATCH_EVENTS_MAX) {
            printf("FAIL batch does not begin at id %llu\n", (unsigned long long)first->id);
            return false;
        }
        if (first->round != round) {
            round = first->round;
            memset(last_number, 0xff, sizeof last_number);
        } else if (first->id != found[i - 1].id + 1) {
            printf("FAIL hole in round %u between ids %llu and %llu\n", round,
                   (unsigned long long)found[i - 1].id, (unsigned long long)first->id);
            return false;
        }
        for (uint32_t place = 0; place < first->count; place++) {
            const struct found *one = &found[i + place];
            if (i + place >= count || one->id != first->id + place ||
                one->thread != first->thread || one->number != first->number ||
                one->place != place) {
                printf("FAIL batch at id %llu is there in part\n", (unsigned long long)first->id);
                return false;
            }
        }
        if ((int64_t)first->number != last_number[first->thread] + 1) {
            printf("FAIL round %u thread %u: batch %u follows %lld\n", round, first->thread,
                   first->number, (long long)last_number[first->thread]);
            return false;
        }
        last_number[first->thread] = first->number;
        i += first->count;
    }
    return true;
}

static bool has_id(const struct found *found, size_t count, uint64_t id)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (found[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && found[low].id == id;
}

static void print_finding(void *context, const lahar_finding *finding)
{
    (void)context;
    printf("verify: %s at %llu: %s\n", finding->file, (unsigned long long)finding->offset,
           finding->message);
}

static bool check(const char *path, const struct acknowledged *notes, size_t note_count,
                  size_t *events_out)
{
    lahar_error error = {0};
    lahar_store *store = NULL;
    struct found *found = NULL;
    size_t count = 0;
    if (open_store(path, &store, &error) != LAHAR_OK) {
        printf("FAIL open: %s\n", error.message);
        return false;
    }
    bool ok = read_all(store, &found, &count) && check_order(found, count);
    for (size_t i = 0; ok && i < note_count; i++) {
        const uint64_t last = notes[i].first_id + notes[i].event_count - 1;
        if (!has_id(found, count, notes[i].first_id) || !has_id(found, count, last)) {
            printf("FAIL acknowledged batch at id %llu is gone\n",
                   (unsigned long long)notes[i].first_id);
            ok = false;
        }
    }
    const lahar_verify_options options = {
        .struct_size = sizeof options, .full = true, .on_finding = print_finding};
    lahar_verify_result result = {.struct_size = sizeof result};
    if (ok &&
        (lahar_verify(store, &options, &result, &error) != LAHAR_OK || result.finding_count != 0)) {
        printf("FAIL verify: %llu findings %s\n", (unsigned long long)result.finding_count,
               error.message);
        ok = false;
    }
    if (lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        printf("FAIL close: %s\n", error.message);
        ok = false;
    }
    free(found);
    *events_out = count;
    return ok;
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
    uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    struct acknowledged *notes = malloc(sizeof *notes * ACKNOWLEDGED_MAX);
    char path[SCRATCH_PATH_SIZE];
    size_t note_count = 0;
    size_t events = 0;
    uint64_t total = 0;
    unsigned passed = 0;
    bool ok = notes != NULL;
    printf("seed %llu\n", (unsigned long long)random);
    for (unsigned round = 0; ok && round < rounds; round++) {
        if (round % ROUNDS_PER_STORE == 0) {
            scratch_create(path);
            note_count = 0;
        }
        ok = run_child(path, round, &random, notes, &note_count) &&
             check(path, notes, note_count, &events);
        passed += ok ? 1 : 0;
        if (!ok) {
            printf("FAIL round %u, store kept in %s\n", round, path);
        } else if (round % ROUNDS_PER_STORE == ROUNDS_PER_STORE - 1 || round + 1 == rounds) {
            total += events;
            scratch_remove(path);
        }
    }
    free(notes);
    printf("%u kills, %llu events recovered\n", passed, (unsigned long long)total);
    printf("%u passed, %u failed, 0 skipped\n", passed, ok ? 0 : 1);
    return ok && passed == rounds ? 0 : 1;
}
