/* The threads that rollover computes with: idle priority, and what happens when the work becomes
 * urgent, with the right to raise threads and without; then a store whose appends wait for memory
 * while other programs keep every processor busy, and whose joins give way. */
#include <dirent.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/rollover/crew.h"
#include "lahar/lahar.h"
#include "scratch.h"

enum {
    SPINNERS_PER_PROCESSOR = 3,
    BATCH_EVENTS = 500,
    BATCHES = 120,
    MESSAGE_SIZE = 700
};

static unsigned passed;
static unsigned failed;
static unsigned skipped;

static void check(bool is_right, const char *what)
{
    passed += is_right;
    failed += !is_right;
    if (!is_right) {
        (void)printf("FAIL %s\n", what);
    }
}

static void nap(long ns)
{
    const struct timespec pause = {0, ns};
    (void)nanosleep(&pause, NULL);
}

/* Takes the right to raise threads away from this process. */
static bool give_up_right(void)
{
    const struct rlimit none = {0, 0};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    memset(data, 0, sizeof data);
    if (setrlimit(RLIMIT_NICE, &none) != 0 || syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    data[0].effective &= ~(1U << CAP_SYS_NICE);
    data[0].permitted &= ~(1U << CAP_SYS_NICE);
    data[0].inheritable &= ~(1U << CAP_SYS_NICE);
    return syscall(SYS_capset, &header, data) == 0;
}

/* --- a crew by itself ---------------------------------------------------------------- */

struct job {
    atomic_uint taken;
    atomic_uint low;             /* pieces done at idle priority */
    atomic_uint low_when_urgent; /* of these, begun well after the work had become urgent */
    atomic_uint in_caller;
    unsigned count;
    unsigned urgent_from; /* pieces taken until the work becomes urgent */
    pid_t caller;
    bool may_spare;
};

static bool is_urgent(void *context)
{
    const struct job *job = context;
    return atomic_load(&job->taken) >= job->urgent_from;
}

static bool may_spare(void *context)
{
    return ((const struct job *)context)->may_spare;
}

static bool do_piece(void *context)
{
    struct job *job = context;
    const unsigned number = atomic_fetch_add(&job->taken, 1);
    if (number >= job->count) {
        return false;
    }
    nap(2000000);
    const bool is_low = sched_getscheduler(0) == SCHED_IDLE;
    (void)atomic_fetch_add(&job->low, is_low);
    (void)atomic_fetch_add(&job->in_caller, gettid() == job->caller);
    /* A crew looks every 20 ms, which is ten pieces of a thread. */
    (void)atomic_fetch_add(&job->low_when_urgent,
                           is_low && number >= job->urgent_from + 20 * LAHAR_CREW_SIZE_MAX);
    return true;
}

static void do_work(void *context)
{
    (void)do_piece(context);
}

static void run_job(struct lahar_crew *crew, struct job *job)
{
    job->caller = gettid();
    crew->hooks.context = job;
    lahar_crew_run(crew, do_piece, job);
    check(atomic_load(&job->taken) >= job->count, "every piece is done");
}

static void test_crew(bool can_raise)
{
    const struct lahar_crew_hooks hooks = {is_urgent, may_spare, NULL};
    struct lahar_crew crew;
    struct lahar_crew_stat stat;
    lahar_crew_init(&crew, &hooks, true);
    struct job calm = {.count = 100, .urgent_from = UINT32_MAX};
    run_job(&crew, &calm);
    if (crew.right == LAHAR_CREW_UNKNOWN || (crew.right == LAHAR_CREW_CAN_RAISE) != can_raise) {
        skipped++;
        lahar_crew_stop(&crew);
        lahar_crew_deinit(&crew);
        return;
    }
    check(atomic_load(&calm.low) == 100, "work without hurry has idle priority");
    struct job hurried = {.count = 30 * LAHAR_CREW_SIZE_MAX, .urgent_from = 5};
    run_job(&crew, &hurried);
    check(atomic_load(&hurried.low_when_urgent) == 0, "urgent work has ordinary priority");
    lahar_crew_stat_get(&crew, &stat);
    check(stat.raised == 1 && stat.relieved == !can_raise, "it was raised once");
    struct job later = {.count = 50, .urgent_from = UINT32_MAX, .may_spare = true};
    run_job(&crew, &later);
    check(atomic_load(&later.low) == 50, "what follows has idle priority again");
    struct job whole = {.count = 1, .urgent_from = UINT32_MAX, .caller = gettid()};
    crew.hooks.context = &whole;
    lahar_crew_run_whole(&crew, do_work, &whole);
    check(atomic_load(&whole.in_caller) == !can_raise && atomic_load(&whole.low) == can_raise,
          "what cannot be cut has idle priority only where that can be taken back");
    lahar_crew_stop(&crew);
    lahar_crew_deinit(&crew);
}

static void test_crew_without_threads(void)
{
    const struct lahar_crew_hooks hooks = {is_urgent, may_spare, NULL};
    struct lahar_crew crew;
    lahar_crew_init(&crew, &hooks, false);
    struct job job = {.count = 5, .urgent_from = UINT32_MAX};
    run_job(&crew, &job);
    check(atomic_load(&job.in_caller) == 5, "without threads the caller does it all");
    lahar_crew_stop(&crew);
    lahar_crew_deinit(&crew);
}

/* --- a store on busy processors --------------------------------------------------------- */

static unsigned start_spinners(pid_t *pids, unsigned count_max)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = 0;
    for (; count < SPINNERS_PER_PROCESSOR * (unsigned)processors && count < count_max; count++) {
        pids[count] = fork();
        if (pids[count] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (volatile unsigned turns = 0;; turns++) {
            }
        }
    }
    return count;
}

static void append_batch(lahar_batch *batch, unsigned number)
{
    lahar_error error = {0};
    for (unsigned i = 0; i < BATCH_EVENTS; i++) {
        char message[MESSAGE_SIZE];
        for (size_t k = 0; k < sizeof message; k++) {
            message[k] = (char)('a' + (number * 7 + i + k * k) % 26);
        }
        const lahar_value value = {.field = LAHAR_FIELD_MESSAGE,
                                   .type = LAHAR_TEXT,
                                   .as.bytes = {message, sizeof message}};
        const lahar_event event = {
            .stream = 0, .time_ns = LAHAR_TIME_OF_ARRIVAL, .values = &value, .value_count = 1};
        check(lahar_batch_add(batch, &event, &error) == LAHAR_OK, error.message);
        passed--; /* one check a batch is enough */
    }
    const lahar_append_options options = {sizeof options, LAHAR_DURABILITY_INTERVAL,
                                          UINT64_C(60000000000)};
    check(lahar_batch_commit(batch, &options, NULL, &error) == LAHAR_OK, error.message);
}

/* Twice as much as the journals may hold: appends end up waiting for the rollover. */
/* Of the thread with that name, once it has set it; INT_MIN: there is none. */
static int niceness_of(const char *wanted)
{
    int niceness = INT_MIN;
    nap(100000000);
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task = NULL;
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[64 + sizeof task->d_name];
        char name[32] = "";
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file == NULL) {
            continue;
        }
        if (fscanf(file, "%31s", name) == 1 && strcmp(name, wanted) == 0) {
            niceness = getpriority(PRIO_PROCESS, (id_t)strtoul(task->d_name, NULL, 10));
        }
        (void)fclose(file);
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    return niceness;
}

static void test_store(void)
{
    char directory[SCRATCH_PATH_SIZE];
    pid_t spinners[256];
    lahar_options options;
    lahar_error error = {0};
    lahar_store *store = NULL;
    lahar_batch *batch = NULL;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "s", .schema = LAHAR_SCHEMA_LOG};
    uint32_t stream = 0;
    scratch_create(directory);
    lahar_options_init(&options);
    options.memory_limit_bytes = UINT64_C(64) << 20;
    check(lahar_store_open(directory, &options, LAHAR_WAIT_FOREVER, &store, &error) == LAHAR_OK,
          error.message);
    check(lahar_stream_create(store, &spec, &stream, &error) == LAHAR_OK, error.message);
    check(lahar_batch_create(store, &batch, &error) == LAHAR_OK, error.message);
    check(niceness_of("lahar-rollover") == getpriority(PRIO_PROCESS, 0),
          "a rollover is of ordinary priority");
    check(niceness_of("lahar-join") > getpriority(PRIO_PROCESS, 0), "joins give way");
    const unsigned spinner_count = start_spinners(spinners, 256);
    for (unsigned i = 0; i < BATCHES && failed == 0; i++) {
        append_batch(batch, i);
    }
    for (unsigned i = 0; i < spinner_count; i++) {
        (void)kill(spinners[i], SIGKILL);
        (void)waitpid(spinners[i], NULL, 0);
    }
    lahar_stat stat = {.struct_size = sizeof stat};
    check(lahar_stat_get(store, &stat, &error) == LAHAR_OK, error.message);
    check(stat.rollovers > 0, "appends have waited for a rollover");
    lahar_batch_destroy(batch);
    check(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK, error.message);
    scratch_remove(directory);
}

int main(void)
{
    test_crew_without_threads();
    test_crew(true);
    /* From here on as any program that is not root. */
    if (give_up_right()) {
        test_crew(false);
        test_store();
    } else {
        skipped += 2;
    }
    (void)printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed == 0 ? 0 : 1;
}
