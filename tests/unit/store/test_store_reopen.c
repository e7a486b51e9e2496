/* Opening a store whose process was killed with a full group in its journals: how long until
 * appends are accepted and everything is visible.
 *
 * usage: test_store_reopen [GROUP_MIB]   (default 16; the promise is about 256)
 *
 * The group is of events of about 750 bytes. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    BATCH_EVENTS = 500,
    MESSAGE_SIZE = 720
};
#define MIB            UINT64_C(1048576)
#define REOPEN_NS_MAX  UINT64_C(2000000000)
#define SECONDS_OF(ns) ((double)(ns) / 1e9)

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double processor_seconds(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void require(lahar_status status, const lahar_error *error)
{
    if (status != LAHAR_OK) {
        (void)printf("FAIL %s: %s\n0 passed, 1 failed, 0 skipped\n", lahar_status_name(status),
                     error->message);
        _exit(1);
    }
}

static lahar_store *open_store(const char *directory, uint64_t group_bytes)
{
    lahar_options options;
    lahar_error error = {0};
    lahar_store *store = NULL;
    lahar_options_init(&options);
    /* A group is at most a quarter of what journals may hold, which is half of all memory. */
    options.memory_limit_bytes = 8 * group_bytes < 64 * MIB ? 64 * MIB : 8 * group_bytes;
    options.group_size_bytes = group_bytes;
    options.group_event_count = UINT64_C(1) << 40;
    options.group_age_ms = 3600000;
    options.group_age_max_ms = 3600000;
    require(lahar_store_open(directory, &options, LAHAR_WAIT_FOREVER, &store, &error), &error);
    return store;
}

static uint64_t append(lahar_store *store, uint32_t stream, lahar_batch *batch, uint64_t number,
                       unsigned count, lahar_durability durability)
{
    lahar_error error = {0};
    for (unsigned i = 0; i < count; i++) {
        char message[MESSAGE_SIZE];
        for (size_t k = 0; k < sizeof message; k++) {
            message[k] = (char)('a' + (number + i + k * k) % 26);
        }
        const lahar_value value = {.field = LAHAR_FIELD_MESSAGE,
                                   .type = LAHAR_TEXT,
                                   .as.bytes = {message, sizeof message}};
        const lahar_event event = {
            .stream = stream, .time_ns = LAHAR_TIME_OF_ARRIVAL, .values = &value, .value_count = 1};
        require(lahar_batch_add(batch, &event, &error), &error);
    }
    uint64_t first_id = 0;
    const lahar_append_options options = {sizeof options, durability, LAHAR_WAIT_FOREVER};
    require(lahar_batch_commit(batch, &options, &first_id, &error), &error);
    (void)store;
    return first_id;
}

/* The process that is killed: fills the group to just below its size, says how many events that
 * were, and waits. */
static void fill(const char *directory, uint64_t group_bytes, int out)
{
    lahar_error error = {0};
    lahar_store *store = open_store(directory, group_bytes);
    lahar_batch *batch = NULL;
    uint32_t stream = 0;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "s", .schema = LAHAR_SCHEMA_LOG};
    require(lahar_stream_create(store, &spec, &stream, &error), &error);
    require(lahar_batch_create(store, &batch, &error), &error);
    uint64_t count = 0;
    lahar_stat stat = {.struct_size = sizeof stat};
    do {
        (void)append(store, stream, batch, count, BATCH_EVENTS, LAHAR_DURABILITY_INTERVAL);
        count += BATCH_EVENTS;
        require(lahar_stat_get(store, &stat, &error), &error);
    } while (stat.resident_bytes + 2 * MIB < group_bytes);
    require(lahar_sync(store, LAHAR_WAIT_FOREVER, &error), &error);
    (void)printf("%.1f MiB of events in memory\n", (double)stat.resident_bytes / (double)MIB);
    (void)fflush(stdout);
    if (write(out, &count, sizeof count) == sizeof count) {
        (void)pause();
    }
    _exit(1);
}

int main(int argument_count, char **arguments)
{
    const uint64_t group_mib = argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 16;
    char root[SCRATCH_PATH_SIZE];
    char directory[SCRATCH_PATH_SIZE + 8];
    int ends[2];
    uint64_t count = 0;
    scratch_create(root);
    (void)snprintf(directory, sizeof directory, "%s/store", root);
    if (pipe(ends) != 0) {
        return 1;
    }
    const pid_t child = fork();
    if (child == 0) {
        fill(directory, group_mib * MIB, ends[1]);
    }
    (void)close(ends[1]);
    const bool is_full = read(ends[0], &count, sizeof count) == sizeof count;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    unsigned failed = !is_full;
    if (is_full) {
        lahar_error error = {0};
        lahar_batch *batch = NULL;
        lahar_stat stat = {.struct_size = sizeof stat};
        const uint64_t start_ns = clock_ns();
        lahar_store *store = open_store(directory, group_mib * MIB);
        require(lahar_batch_create(store, &batch, &error), &error);
        (void)append(store, 0, batch, 0, 1, LAHAR_DURABILITY_INTERVAL);
        require(lahar_stat_get(store, &stat, &error), &error);
        const uint64_t spent_ns = clock_ns() - start_ns;
        (void)printf("%llu events, %llu MiB: reopened and appended to after %.2f s, %.2f s of "
                     "processor time\n",
                     (unsigned long long)count, (unsigned long long)group_mib, SECONDS_OF(spent_ns),
                     processor_seconds());
        failed += stat.event_count != count + 1;
        failed += spent_ns > REOPEN_NS_MAX;
        lahar_batch_destroy(batch);
        require(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error), &error);
    }
    scratch_remove(root);
    (void)printf("%u passed, %u failed, 0 skipped\n", 3 - (failed > 3 ? 3 : failed), failed);
    return failed == 0 ? 0 : 1;
}
