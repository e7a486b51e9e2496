/* A month of few events, on real files and under a clock of its own: how many files and
 * descriptors a store comes to hold, and how much memory.
 *
 * usage: test_store_month [EVENTS_A_SECOND]   (default 1, of five streams in turn)
 *
 * Background work runs as steps, since no real time passes. Memory is that of the process: that of
 * day 30 may be 5 % more than that of day 1, and what the open shards hold of the ids of streams
 * that take turns, 14 bytes for 128 events, which at one event a second is lost in the rest. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/store/store_internal.h"
#include "io/io.h"
#include "lahar/lahar.h"
#include "scratch.h"

#define NS_PER_SECOND UINT64_C(1000000000)

enum {
    STREAMS = 5,
    DAYS = 30,
    SECONDS_A_DAY = 86400,
    FILES_MAX = 300,
    DESCRIPTORS_MAX = 100,
    ID_BLOCK_BYTES = 14 /* of a directory, for 128 events */
};

static uint64_t clock_ns = NS_PER_SECOND;

static uint64_t read_monotonic(struct lahar_io *io)
{
    (void)io;
    return clock_ns;
}

static int64_t read_realtime(struct lahar_io *io)
{
    (void)io;
    return INT64_C(1750000000) * (int64_t)NS_PER_SECOND + (int64_t)clock_ns;
}

static unsigned passed;
static unsigned failed;

static void check(bool is_true, const char *what)
{
    passed += is_true;
    failed += !is_true;
    if (!is_true) {
        (void)printf("FAIL %s\n", what);
    }
}

static void require(lahar_status status, const lahar_error *error)
{
    if (status != LAHAR_OK) {
        (void)printf("FAIL %s: %s\n0 passed, 1 failed, 0 skipped\n", lahar_status_name(status),
                     error->message);
        exit(1);
    }
}

static unsigned count_entries(const char *path)
{
    unsigned count = 0;
    DIR *directory = opendir(path);
    const struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return count;
}

static unsigned count_files(const char *root)
{
    char path[SCRATCH_PATH_SIZE + 64];
    unsigned count = count_entries(root);
    (void)snprintf(path, sizeof path, "%s/events", root);
    count += count_entries(path);
    (void)snprintf(path, sizeof path, "%s/journal", root);
    return count + count_entries(path);
}

static uint64_t resident_bytes(void)
{
    unsigned long total = 0;
    unsigned long resident = 0;
    /* What the allocator keeps of what was freed is not the store's. */
    (void)malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &total, &resident) != 2) {
        resident = 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct month {
    lahar_store *store;
    lahar_batch *batch;
    uint32_t streams[STREAMS];
    unsigned events_a_second;
    uint64_t number; /* events appended */
};

static void append_second(struct month *month)
{
    lahar_error error = {0};
    for (unsigned i = 0; i < month->events_a_second; i++) {
        char message[80];
        const uint64_t number = month->number++;
        const int size = snprintf(message, sizeof message, "sensor %u says %llu and is well",
                                  (unsigned)(number % 97), (unsigned long long)(number * 7919));
        const lahar_value value = {
            .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {message, (size_t)size}};
        const lahar_event event = {.stream = month->streams[number % STREAMS],
                                   .time_ns = (int64_t)clock_ns,
                                   .values = &value,
                                   .value_count = 1};
        require(lahar_batch_add(month->batch, &event, &error), &error);
    }
    uint64_t first_id = 0;
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = LAHAR_DURABILITY_INTERVAL,
                                          .deadline_ns = LAHAR_WAIT_FOREVER};
    require(lahar_batch_commit(month->batch, &options, &first_id, &error), &error);
    clock_ns += NS_PER_SECOND;
}

static void work(struct month *month)
{
    for (unsigned idle = 0; idle < 4;) {
        bool has_worked = false;
        for (uint32_t step = 0; step < LAHAR_WORK_COUNT; step++) {
            has_worked = lahar_store_step(month->store, step) || has_worked;
        }
        idle = has_worked ? 0 : idle + 1;
    }
}

static void open_month(struct month *month, const char *root, struct lahar_io *io)
{
    lahar_error error = {0};
    lahar_options options;
    lahar_options_init(&options);
    const struct lahar_store_config config = {.io = io};
    require(lahar_store_open_config(root, &options, &config, LAHAR_NO_WAIT, &month->store, &error),
            &error);
    for (unsigned i = 0; i < STREAMS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "s%u", i);
        const lahar_stream_spec spec = {
            .struct_size = sizeof spec, .name = name, .schema = LAHAR_SCHEMA_LOG};
        require(lahar_stream_create(month->store, &spec, &month->streams[i], &error), &error);
    }
    require(lahar_batch_create(month->store, &month->batch, &error), &error);
}

static void run(struct month *month, const char *root)
{
    uint64_t first_bytes = 0;
    uint64_t first_number = 0;
    unsigned most_files = 0;
    unsigned most_descriptors = 0;
    for (unsigned day = 1; day <= DAYS; day++) {
        for (unsigned second = 0; second < SECONDS_A_DAY; second++) {
            append_second(month);
            if (second % 60 == 59) {
                work(month);
            }
        }
        const unsigned files = count_files(root);
        const unsigned descriptors = count_entries("/proc/self/fd");
        const uint64_t bytes = resident_bytes();
        first_bytes = day == 1 ? bytes : first_bytes;
        first_number = day == 1 ? month->number : first_number;
        most_files = files > most_files ? files : most_files;
        most_descriptors = descriptors > most_descriptors ? descriptors : most_descriptors;
        if (day == 1 || day % 10 == 0) {
            (void)printf("day %u: %u files, %u descriptors, %.1f MiB resident\n", day, files,
                         descriptors, (double)bytes / 1048576);
        }
        if (day == DAYS) {
            (void)printf("memory of day %d: %+.1f %% of day 1\n", DAYS,
                         100.0 * ((double)bytes / (double)first_bytes - 1));
            const uint64_t id_bytes = (month->number - first_number) / 128 * ID_BLOCK_BYTES;
            check(bytes <= first_bytes + first_bytes / 20 + id_bytes,
                  "memory grew by more than 5 % and the ids");
        }
    }
    (void)printf("at most %u files and %u descriptors\n", most_files, most_descriptors);
    check(most_files <= FILES_MAX, "files");
    check(most_descriptors <= DESCRIPTORS_MAX, "descriptors");
}

int main(int argument_count, char **arguments)
{
    struct month month = {.events_a_second = 1};
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    char root[SCRATCH_PATH_SIZE];
    char store_path[SCRATCH_PATH_SIZE + 8];
    lahar_error error = {0};
    struct lahar_io *io = NULL;
    if (argument_count > 1) {
        month.events_a_second = (unsigned)strtoul(arguments[1], NULL, 10);
    }
    /* A month of syncs takes a real disk many minutes. */
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0) {
        (void)setenv("TMPDIR", "/dev/shm", 1);
    }
    scratch_create(root);
    (void)snprintf(store_path, sizeof store_path, "%s/store", root);
    require(lahar_io_pwrite_create(&lahar_allocator_libc, &io, &error), &error);
    const struct lahar_io_ops *ops = io->ops;
    struct lahar_io_ops clocked = *ops;
    clocked.monotonic_ns = read_monotonic;
    clocked.realtime_ns = read_realtime;
    io->ops = &clocked;
    open_month(&month, store_path, io);
    run(&month, store_path);
    lahar_stat stat = {.struct_size = sizeof stat};
    require(lahar_stat_get(month.store, &stat, &error), &error);
    check(stat.event_count == month.number, "events are missing");
    lahar_batch_destroy(month.batch);
    require(lahar_store_close(month.store, LAHAR_WAIT_FOREVER, &error), &error);
    io->ops = ops;
    io->ops->destroy(io);
    scratch_remove(root);
    (void)printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
