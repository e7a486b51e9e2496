/* commit_bench: appends of one small event each, for some seconds.
 *
 *   commit_bench DIRECTORY PRODUCERS SECONDS [blocking|callback|beside|append]
 *
 * A closed loop: every producer has one event under way. Blocking producers are threads that
 * commit; callback producers append again from the callback that says that their last event is
 * durable. With `beside` the first producer commits and all others load without waiting; only its
 * commits are reported. With `append` nobody commits. One JSON line: rate, latencies, processor
 * time and what the journals did for a commit. The store is left behind. bench/commit_pairs runs it
 * beside fio. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/histogram.h"
#include "lahar/lahar.h"

enum {
    PRODUCERS_MAX = 4096,
    MESSAGE_SIZE = 200, /* bytes */
    WARM_UP_EVENTS = 5000
};

enum mode {
    MODE_BLOCKING,
    MODE_CALLBACK,
    MODE_BESIDE,
    MODE_APPEND,
    MODE_COUNT
};

struct bench {
    lahar_store *store;
    uint32_t stream;
    uint64_t end_ns;
    _Atomic uint64_t open_count; /* callback producers that have not stopped */
    _Atomic bool has_failed;
};

struct producer {
    struct bench *bench;
    lahar_durability durability;
    pthread_t thread;
    lahar_batch *batch;
    uint64_t before_ns;
    struct histogram latencies_ns;
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t processor_ns(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return 1000 * (1000000 * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
}

static void fail(struct bench *bench, const lahar_error *error)
{
    if (!atomic_exchange(&bench->has_failed, true)) {
        fprintf(stderr, "commit_bench: %s\n", error->message);
    }
}

static bool append(struct producer *producer, lahar_durability durability, uint64_t *id_out)
{
    static const char message[MESSAGE_SIZE] = "a small event";
    lahar_value value = {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT};
    value.as.bytes = (lahar_bytes){message, sizeof message};
    const lahar_event event = {
        .time_ns = LAHAR_TIME_OF_ARRIVAL,
        .stream = producer->bench->stream,
        .values = &value,
        .value_count = 1,
    };
    const lahar_append_options options = {
        .struct_size = sizeof options,
        .durability = durability,
        .deadline_ns = LAHAR_WAIT_FOREVER,
    };
    lahar_error error = {.status = LAHAR_OK};
    producer->before_ns = clock_ns();
    if (lahar_append(producer->batch, &event, &options, id_out, &error) != LAHAR_OK) {
        fail(producer->bench, &error);
        return false;
    }
    return true;
}

static void *commit_until_end(void *argument)
{
    struct producer *producer = argument;
    while (clock_ns() < producer->bench->end_ns) {
        if (!append(producer, producer->durability, NULL)) {
            break;
        }
        histogram_record(&producer->latencies_ns, clock_ns() - producer->before_ns);
    }
    return NULL;
}

static void append_and_ask(struct producer *producer);

static void is_durable(void *context, uint64_t id, lahar_status status)
{
    struct producer *producer = context;
    const uint64_t now_ns = clock_ns();
    (void)id;
    if (status == LAHAR_OK) {
        histogram_record(&producer->latencies_ns, now_ns - producer->before_ns);
    }
    if (status == LAHAR_OK && now_ns < producer->bench->end_ns) {
        append_and_ask(producer);
    } else {
        (void)atomic_fetch_sub(&producer->bench->open_count, 1);
    }
}

static void append_and_ask(struct producer *producer)
{
    uint64_t id = 0;
    lahar_error error = {.status = LAHAR_OK};
    if (!append(producer, LAHAR_DURABILITY_NONE, &id)) {
        (void)atomic_fetch_sub(&producer->bench->open_count, 1);
    } else if (lahar_durable_notify(producer->bench->store, id, is_durable, producer, &error) !=
               LAHAR_OK) {
        fail(producer->bench, &error);
        (void)atomic_fetch_sub(&producer->bench->open_count, 1);
    }
}

static void run_threads(struct producer *producers, unsigned count)
{
    unsigned started = 0;
    while (started < count && pthread_create(&producers[started].thread, NULL, commit_until_end,
                                             &producers[started]) == 0) {
        started++;
    }
    for (unsigned i = 0; i < started; i++) {
        (void)pthread_join(producers[i].thread, NULL);
    }
}

static void run_callbacks(struct bench *bench, struct producer *producers, unsigned count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    atomic_store(&bench->open_count, count);
    for (unsigned i = 0; i < count; i++) {
        append_and_ask(&producers[i]);
    }
    while (atomic_load(&bench->open_count) != 0) {
        (void)nanosleep(&pause, NULL);
    }
}

static lahar_status open_store(struct bench *bench, const char *directory, lahar_error *error)
{
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    const lahar_status status =
        lahar_store_open(directory, NULL, LAHAR_NO_WAIT, &bench->store, error);
    return status == LAHAR_OK ? lahar_stream_create(bench->store, &spec, &bench->stream, error)
                              : status;
}

static void report(const struct bench *bench, const struct producer *producers, unsigned count,
                   uint64_t elapsed_ns, uint64_t used_ns, const lahar_stat *before)
{
    static struct histogram all;
    for (unsigned i = 0; i < count; i++) {
        histogram_add(&all, &producers[i].latencies_ns);
    }
    lahar_stat stat = {.struct_size = sizeof stat};
    lahar_error error = {.status = LAHAR_OK};
    if (lahar_stat_get(bench->store, &stat, &error) != LAHAR_OK) {
        fprintf(stderr, "commit_bench: %s\n", error.message);
    }
    const double commits = all.count == 0 ? 1 : (double)all.count;
    const double writes = stat.journal_writes == before->journal_writes
                              ? 1
                              : (double)(stat.journal_writes - before->journal_writes);
    printf("{\"commits_per_s\": %.0f, \"p50_us\": %.0f, \"p99_us\": %.0f, \"max_us\": %.0f, "
           "\"cpu_us\": %.2f, \"commits_a_write\": %.1f, \"bytes_a_write\": %.0f, "
           "\"submits_a_write\": %.2f, \"wakes_a_commit\": %.3f, \"journals\": %" PRIu32
           ", \"backend\": \"%s\", \"sync_mode\": \"%s\"}\n",
           (double)all.count * 1e9 / (double)elapsed_ns,
           (double)histogram_quantile(&all, 0.5) / 1e3,
           (double)histogram_quantile(&all, 0.99) / 1e3, (double)all.max / 1e3,
           (double)used_ns / 1e3 / commits, commits / writes,
           (double)(stat.journal_write_bytes - before->journal_write_bytes) / writes,
           (double)(stat.io_submits - before->io_submits) / writes,
           (double)(stat.writer_wakes - before->writer_wakes) / commits, stat.journals_active,
           stat.backend, stat.sync_mode);
}

/* Fills and recycles the journals once, so that what is measured writes over old files. */
static lahar_status warm_up(struct bench *bench, struct producer *producer, lahar_error *error)
{
    lahar_status status = LAHAR_OK;
    for (int round = 0; round < 2 && status == LAHAR_OK; round++) {
        for (int i = 0; i < WARM_UP_EVENTS; i++) {
            if (!append(producer, LAHAR_DURABILITY_NONE, NULL)) {
                return LAHAR_INTERNAL;
            }
        }
        status = lahar_rollover(bench->store, LAHAR_WAIT_FOREVER, error);
    }
    return status;
}

static bool parse(int argc, char **argv, unsigned *count_out, double *seconds_out,
                  enum mode *mode_out)
{
    static const char *const names[] = {"blocking", "callback", "beside", "append"};
    if (argc < 4 || argc > 5) {
        return false;
    }
    *count_out = (unsigned)strtoul(argv[2], NULL, 10);
    *seconds_out = strtod(argv[3], NULL);
    *mode_out = MODE_BLOCKING;
    while (argc == 5 && *mode_out < MODE_COUNT && strcmp(argv[4], names[*mode_out]) != 0) {
        ++*mode_out;
    }
    return *count_out != 0 && *count_out <= PRODUCERS_MAX && *seconds_out > 0 &&
           *mode_out < MODE_COUNT;
}

static void measure(struct bench *bench, struct producer *producers, unsigned count, double seconds,
                    enum mode mode)
{
    lahar_stat before = {.struct_size = sizeof before};
    lahar_error error = {.status = LAHAR_OK};
    if (lahar_stat_get(bench->store, &before, &error) != LAHAR_OK) {
        fail(bench, &error);
        return;
    }
    const uint64_t start_ns = clock_ns();
    const uint64_t used_ns = processor_ns();
    bench->end_ns = start_ns + (uint64_t)(seconds * 1e9);
    if (mode == MODE_CALLBACK) {
        run_callbacks(bench, producers, count);
    } else {
        run_threads(producers, count);
    }
    report(bench, producers, mode == MODE_BESIDE ? 1 : count, clock_ns() - start_ns,
           processor_ns() - used_ns, &before);
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    double seconds = 0;
    enum mode mode = MODE_BLOCKING;
    if (!parse(argc, argv, &count, &seconds, &mode)) {
        fprintf(stderr, "usage: commit_bench DIRECTORY PRODUCERS SECONDS "
                        "[blocking|callback|beside|append]\n");
        return 2;
    }
    struct bench bench = {.store = NULL};
    lahar_error error = {.status = LAHAR_OK};
    struct producer *producers = calloc(count, sizeof *producers);
    lahar_status status = producers == NULL ? LAHAR_NO_MEMORY : open_store(&bench, argv[1], &error);
    for (unsigned i = 0; i < count && status == LAHAR_OK; i++) {
        producers[i].bench = &bench;
        producers[i].durability = mode == MODE_APPEND || (mode == MODE_BESIDE && i != 0)
                                      ? LAHAR_DURABILITY_NONE
                                      : LAHAR_DURABILITY_COMMIT;
        status = lahar_batch_create(bench.store, &producers[i].batch, &error);
    }
    if (status == LAHAR_OK) {
        status = warm_up(&bench, &producers[0], &error);
    }
    if (status == LAHAR_OK) {
        measure(&bench, producers, count, seconds, mode);
    } else {
        fprintf(stderr, "commit_bench: %s\n", error.message);
    }
    for (unsigned i = 0; producers != NULL && i < count; i++) {
        lahar_batch_destroy(producers[i].batch);
    }
    free(producers);
    if (bench.store != NULL &&
        lahar_store_close(bench.store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        status = error.status;
    }
    return status == LAHAR_OK && !atomic_load(&bench.has_failed) ? 0 : 1;
}
