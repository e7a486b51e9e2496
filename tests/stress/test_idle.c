/* A store at rest costs nothing, and what sleeps wakes in time.
 *
 * Voluntary context switches of the library's threads are counted over two seconds in which nothing
 * happens: a thread that looks from time to time shows in them. Then each kind of deadline: the
 * age of a group and of a file, the expiry of a query, while the wall clock is set to and fro; the
 * marks of the journals; and requests, of which none may be lost between a look and a sleep. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/rollover/resident_index.h"
#include "engine/store/store_internal.h"
#include "engine/store/store_state.h"
#include "io/base/allocator.h"
#include "io/io.h"
#include "lahar/lahar.h"
#include "scratch.h"

enum {
    FILES = 50,
    SWITCHES_MAX = 4, /* of all threads in two seconds; one that looks twice a second makes 4 */
    REQUESTS = 150,
    LATE_MS = 5000 /* nothing takes so long but what was never woken */
};

static unsigned passed;
static unsigned failed;
static atomic_int_least64_t wall_shift_ns; /* read by the store's clock, set by the test */

static void check(bool holds, const char *what)
{
    *(holds ? &passed : &failed) += 1;
    if (!holds) {
        fprintf(stderr, "failed: %s\n", what);
    }
}

static void sleep_ms(unsigned ms)
{
    const struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- a store whose wall clock can be set ------------------------------------------------ */

struct place {
    char root[SCRATCH_PATH_SIZE];
    struct lahar_io *io;
    const struct lahar_io_ops *real_ops;
    struct lahar_io_ops ops;
    lahar_store *store;
    lahar_batch *batch;
    uint32_t stream;
};

static int64_t read_wall(struct lahar_io *io)
{
    (void)io;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + atomic_load(&wall_shift_ns);
}

static void open_place(struct place *place, const lahar_options *options, uint64_t id_reserve)
{
    char path[SCRATCH_PATH_SIZE + 8];
    lahar_error error = {0};
    scratch_create(place->root);
    (void)snprintf(path, sizeof path, "%s/store", place->root);
    const bool has_io =
        lahar_io_pwrite_create(&lahar_allocator_libc, &place->io, &error) == LAHAR_OK;
    if (has_io) {
        place->real_ops = place->io->ops;
        place->ops = *place->real_ops;
        place->ops.realtime_ns = read_wall;
        place->io->ops = &place->ops;
    }
    const struct lahar_store_config config = {
        .io = place->io, .start_threads = true, .id_reserve = id_reserve};
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "log", .schema = LAHAR_SCHEMA_LOG};
    if (!has_io ||
        lahar_store_open_config(path, options, &config, LAHAR_NO_WAIT, &place->store, &error) !=
            LAHAR_OK ||
        lahar_stream_create(place->store, &spec, &place->stream, &error) != LAHAR_OK ||
        lahar_batch_create(place->store, &place->batch, &error) != LAHAR_OK) {
        fprintf(stderr, "opening: %s\n", error.message);
        abort();
    }
}

static void close_place(struct place *place)
{
    lahar_batch_destroy(place->batch);
    check(lahar_store_close(place->store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "closing");
    place->io->ops = place->real_ops;
    place->io->ops->destroy(place->io);
    scratch_remove(place->root);
}

static void append(struct place *place, unsigned count)
{
    const lahar_event event = {.time_ns = LAHAR_TIME_OF_ARRIVAL, .stream = place->stream};
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .deadline_ns = LATE_MS * UINT64_C(1000000)};
    bool is_good = true;
    for (unsigned i = 0; i < count && is_good; i++) {
        is_good = lahar_batch_add(place->batch, &event, NULL) == LAHAR_OK;
    }
    is_good = is_good && lahar_batch_commit(place->batch, &options, NULL, NULL) == LAHAR_OK;
    if (!is_good) {
        check(false, "append");
    }
}

/* Milliseconds until the condition holds; LATE_MS: it did not. */
static uint64_t wait_for(struct place *place, bool (*holds)(struct place *place))
{
    const uint64_t start_ms = now_ms();
    while (!holds(place) && now_ms() - start_ms < LATE_MS) {
        sleep_ms(5);
    }
    const uint64_t took_ms = now_ms() - start_ms;
    return took_ms < LATE_MS ? took_ms : LATE_MS;
}

static lahar_stat read_stat(struct place *place)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    check(lahar_stat_get(place->store, &stat, NULL) == LAHAR_OK, "stat");
    passed--;
    return stat;
}

static bool is_rolled(struct place *place)
{
    return read_stat(place).rollovers != 0;
}

static bool has_dropped(struct place *place)
{
    return read_stat(place).dropped_files != 0;
}

static bool has_expired(struct place *place)
{
    return read_stat(place).expired_queries != 0;
}

static bool has_slice(struct place *place)
{
    struct lahar_resident_slices *slices =
        lahar_resident_index_acquire(place->store->resident_index);
    const bool has_one = slices->count != 0;
    lahar_resident_slices_release(slices);
    return has_one;
}

/* --- at rest ------------------------------------------------------------------------------ */

static uint64_t switches_of(const char *task, char name_out[32])
{
    char path[300];
    char line[128];
    uint64_t count = 0;
    name_out[0] = '\0';
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "Name: %31s", name_out);
        (void)sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &count);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

/* Of the library's threads, each named in the output if is_shown. */
static uint64_t count_switches(unsigned *threads_out, bool is_shown)
{
    DIR *tasks = opendir("/proc/self/task");
    uint64_t sum = 0;
    *threads_out = 0;
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) {
        char name[32];
        const uint64_t count = entry->d_name[0] == '.' ? 0 : switches_of(entry->d_name, name);
        if (entry->d_name[0] == '.' || strncmp(name, "lahar-", 6) != 0) {
            continue;
        }
        sum += count;
        (*threads_out)++;
        if (is_shown) {
            (void)printf("%s: %" PRIu64 "\n", name, count);
        }
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    return sum;
}

static void *run_follow(void *context)
{
    (void)pthread_setname_np(pthread_self(), "lahar-run");
    check(lahar_follow_run(context, NULL) == LAHAR_OK, "following");
    return NULL;
}

static void write_files(const char *directory)
{
    char path[SCRATCH_PATH_SIZE + 40];
    (void)mkdir(directory, 0777);
    for (unsigned i = 0; i < FILES; i++) {
        (void)snprintf(path, sizeof path, "%s/%u.log", directory, i);
        const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        check(descriptor >= 0 && write(descriptor, "a line\n", 7) == 7, "writing");
        (void)close(descriptor);
    }
}

/* Everything that could make a thread look: files followed, events in memory and in files,
 * limits of age far away, an open query that expires some day. */
static void test_rest(void)
{
    struct place place;
    char directory[SCRATCH_PATH_SIZE + 8];
    pthread_t thread;
    lahar_follow *follow = NULL;
    lahar_query *query = NULL;
    lahar_query_options options;
    lahar_source_spec spec;
    open_place(&place, NULL, 0);
    (void)snprintf(directory, sizeof directory, "%s/files", place.root);
    write_files(directory);
    lahar_source_spec_init(&spec);
    spec.name = "files";
    spec.path = directory;
    const lahar_retention retention = {.struct_size = sizeof retention,
                                       .max_age_ns = UINT64_C(3600000000000)};
    check(lahar_source_create(place.store, &spec, NULL) == LAHAR_OK, "source");
    check(lahar_retention_set(place.store, LAHAR_ANY_STREAM, &retention, NULL) == LAHAR_OK,
          "retention");
    append(&place, 1000);
    check(lahar_rollover(place.store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "rollover");
    append(&place, 1000);
    check(lahar_follow_open(place.store, NULL, &follow, NULL) == LAHAR_OK, "follower");
    check(pthread_create(&thread, NULL, run_follow, follow) == 0, "thread");
    lahar_query_options_init(&options);
    options.expire_ns = UINT64_C(600000000000);
    check(lahar_query_open(place.store, "line", 4, &options, &query, NULL) == LAHAR_OK, "query");
    lahar_follow_stat stat = {.struct_size = sizeof stat};
    for (unsigned i = 0; i < 500 && stat.record_count < FILES; i++) {
        sleep_ms(20);
        lahar_follow_stat_get(follow, &stat);
    }
    check(stat.record_count == FILES, "every file is read");
    /* The last sync, the number of journals and the memory of rollover take some seconds. */
    sleep_ms(6500);
    unsigned threads = 0;
    const uint64_t before = count_switches(&threads, false);
    sleep_ms(2000);
    const uint64_t after = count_switches(&threads, false);
    if (after - before > SWITCHES_MAX) {
        (void)count_switches(&threads, true);
    }
    (void)printf("at rest: %" PRIu64 " switches of %u threads in 2 s\n", after - before, threads);
    check(threads >= 9, "the threads are found");
    check(after - before <= SWITCHES_MAX, "no thread ticks");
    lahar_query_close(query);
    lahar_follow_stop(follow);
    (void)pthread_join(thread, NULL);
    lahar_follow_close(follow);
    close_place(&place);
}

/* --- in time -------------------------------------------------------------------------------- */

static void test_group_age(void)
{
    struct place place;
    lahar_options options;
    lahar_options_init(&options);
    options.group_age_max_ms = 700;
    open_place(&place, &options, 0);
    sleep_ms(300);
    append(&place, 1);
    atomic_store(&wall_shift_ns, INT64_C(-86400000000000));
    sleep_ms(200);
    check(!is_rolled(&place), "a group is not rolled too soon");
    atomic_store(&wall_shift_ns, INT64_C(864000000000000));
    const uint64_t took_ms = 200 + wait_for(&place, is_rolled);
    (void)printf("a group of 700 ms: rolled after %" PRIu64 " ms\n", took_ms);
    check(took_ms >= 600 && took_ms < 3000, "a group is rolled at its age");
    atomic_store(&wall_shift_ns, 0);
    close_place(&place);
}

static void test_file_age(void)
{
    struct place place;
    open_place(&place, NULL, 0);
    append(&place, 10);
    check(lahar_rollover(place.store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "rollover");
    sleep_ms(300);
    const lahar_retention retention = {.struct_size = sizeof retention,
                                       .max_age_ns = UINT64_C(1500000000)};
    check(lahar_retention_set(place.store, LAHAR_ANY_STREAM, &retention, NULL) == LAHAR_OK,
          "retention");
    check(!has_dropped(&place), "a file is not dropped too soon");
    const uint64_t took_ms = 300 + wait_for(&place, has_dropped);
    (void)printf("a file of 1,500 ms: dropped after %" PRIu64 " ms\n", took_ms);
    check(took_ms >= 1400 && took_ms < 4000, "a file is dropped at its age");
    close_place(&place);
}

static void test_expiry(void)
{
    struct place place;
    lahar_query *late = NULL;
    lahar_query *early = NULL;
    lahar_query_options options;
    open_place(&place, NULL, 0);
    lahar_query_options_init(&options);
    options.expire_ns = UINT64_C(60000000000);
    check(lahar_query_open(place.store, "a", 1, &options, &late, NULL) == LAHAR_OK, "query");
    sleep_ms(200);
    options.expire_ns = UINT64_C(400000000);
    check(lahar_query_open(place.store, "a", 1, &options, &early, NULL) == LAHAR_OK, "query");
    const uint64_t took_ms = wait_for(&place, has_expired);
    (void)printf("a query of 400 ms: expired after %" PRIu64 " ms\n", took_ms);
    check(took_ms >= 350 && took_ms < 3000, "a query expires in time behind one that is later");
    check(read_stat(&place).expired_queries == 1, "the other one does not");
    lahar_query_close(early);
    lahar_query_close(late);
    close_place(&place);
}

/* --- marks and requests ------------------------------------------------------------------------
 */

static void test_marks(void)
{
    struct place place;
    lahar_options options;
    lahar_options_init(&options);
    options.group_event_count = 30000;
    open_place(&place, &options, 64);
    sleep_ms(200);
    const uint64_t start_ms = now_ms();
    append(&place, 5000);
    check(now_ms() - start_ms < LATE_MS, "a batch of more ids than are reserved ahead");
    append(&place, 15000);
    check(wait_for(&place, has_slice) < LATE_MS, "a slice is built when there is enough for it");
    check(!is_rolled(&place), "a group is not rolled with fewer events");
    append(&place, 10000);
    check(wait_for(&place, is_rolled) < LATE_MS, "a group is rolled when it has its events");
    close_place(&place);
}

struct requests {
    struct place *place;
    uint64_t worst_ms;
    bool is_good;
};

static void *request(void *context)
{
    struct requests *requests = context;
    struct place *place = requests->place;
    lahar_batch *batch = NULL;
    const lahar_event event = {.time_ns = LAHAR_TIME_OF_ARRIVAL, .stream = place->stream};
    requests->is_good = lahar_batch_create(place->store, &batch, NULL) == LAHAR_OK;
    for (unsigned i = 0; i < REQUESTS && requests->is_good; i++) {
        const uint64_t start_ms = now_ms();
        requests->is_good = lahar_append(batch, &event, NULL, NULL, NULL) == LAHAR_OK &&
                            lahar_rollover(place->store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK;
        const uint64_t took_ms = now_ms() - start_ms;
        requests->worst_ms = took_ms > requests->worst_ms ? took_ms : requests->worst_ms;
    }
    lahar_batch_destroy(batch);
    return NULL;
}

static void test_requests(void)
{
    struct place place;
    pthread_t threads[2];
    struct requests requests[2];
    open_place(&place, NULL, 0);
    for (int i = 0; i < 2; i++) {
        requests[i] = (struct requests){.place = &place};
        check(pthread_create(&threads[i], NULL, request, &requests[i]) == 0, "thread");
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
        (void)printf("requests: the slowest took %" PRIu64 " ms\n", requests[i].worst_ms);
        check(requests[i].is_good && requests[i].worst_ms < LATE_MS, "requests are answered");
    }
    close_place(&place);
}

int main(void)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    test_rest();
    test_group_age();
    test_file_age();
    test_expiry();
    test_marks();
    test_requests();
    (void)printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
