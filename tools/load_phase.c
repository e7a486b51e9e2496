#include "tools/load_phase.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/progress.h"

enum {
    SAMPLE_NS = 20000000, /* between looks at the memory */
    /* The work of a rollover of anything worth the name; waking up to find nothing takes less. */
    ROLLOVER_CPU_MIN_NS = 500000,
    /* Reading the times of so many threads would disturb what is measured. */
    WATCHED_THREADS_MAX = 64
};

const struct load_quantile LOAD_QUANTILES[LOAD_QUANTILE_COUNT] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};

/* The thread that watches: samples memory, closes intervals. */
struct watch {
    const struct load_phase *phase;
    struct load_shared *shared;
    struct load_producer *producers;
    struct load_result *result;
    struct load_record record; /* of the interval that is being taken */
    uint64_t interval_start_ns;
    uint64_t rollover_cpu_ns; /* of the rollover's threads, at the start of the interval */
    uint64_t rollovers;       /* the same */
};

/* What follows the last acknowledgement, in a thread of its own so that watching goes on. */
struct finish {
    struct watch *watch;
    pthread_t thread;
    atomic_bool is_done;
};

static uint64_t rollover_cpu_ns(const struct watch *watch)
{
    struct load_roles roles;
    if (watch->phase->producers > WATCHED_THREADS_MAX) {
        return 0;
    }
    load_roles_read(&roles);
    return load_roles_cpu_ns(&roles, "lahar-roll");
}

static bool keep_interval(struct load_result *result, const struct load_interval *interval)
{
    if (result->interval_count == result->interval_capacity) {
        const size_t capacity = 64 + 2 * result->interval_capacity;
        struct load_interval *intervals = realloc(result->intervals, capacity * sizeof *intervals);
        if (intervals == NULL) {
            return false;
        }
        result->intervals = intervals;
        result->interval_capacity = capacity;
    }
    result->intervals[result->interval_count++] = *interval;
    return true;
}

static void take_all(struct watch *watch)
{
    for (uint64_t i = 0; i < watch->phase->producers; i++) {
        load_producer_take(&watch->producers[i], &watch->record);
    }
}

/* Everything appended since the last call becomes an interval that ends now. */
static void close_interval(struct watch *watch, uint64_t now_ns, uint64_t anonymous_bytes)
{
    struct load_result *result = watch->result;
    struct load_record *record = &watch->record;
    lahar_stat stat = {.struct_size = sizeof stat};
    lahar_error error = {.status = LAHAR_OK};
    if (lahar_stat_get(watch->shared->store, &stat, &error) != LAHAR_OK) {
        stat.rollovers = watch->rollovers;
    }
    take_all(watch);
    const uint64_t cpu_ns = rollover_cpu_ns(watch);
    struct load_interval interval = {
        .start_ns = watch->interval_start_ns - watch->shared->start_ns,
        .duration_ns = now_ns - watch->interval_start_ns,
        .events = record->events,
        .max_ns = record->latency.max,
        .anonymous_bytes = anonymous_bytes,
        .resident_bytes = stat.resident_bytes,
        .rollovers = stat.rollovers - watch->rollovers,
        .has_rollover = stat.rollovers != watch->rollovers ||
                        cpu_ns > watch->rollover_cpu_ns + ROLLOVER_CPU_MIN_NS,
    };
    for (size_t i = 0; i < LOAD_QUANTILE_COUNT; i++) {
        interval.quantiles_ns[i] = histogram_quantile(&record->latency, LOAD_QUANTILES[i].share);
    }
    watch->interval_start_ns = now_ns;
    watch->rollover_cpu_ns = cpu_ns;
    watch->rollovers = stat.rollovers;
    if (!keep_interval(result, &interval) && result->error.status == LAHAR_OK) {
        result->error = (lahar_error){.status = LAHAR_NO_MEMORY, .message = "no memory for times"};
    }
    result->intervals_with += interval.has_rollover;
    result->intervals_without += !interval.has_rollover;
    histogram_add(&result->all.latency, &record->latency);
    histogram_add(&result->all.service, &record->service);
    histogram_add(&result->all.lag, &record->lag);
    result->all.events += record->events;
    load_record_move(interval.has_rollover ? &result->with_rollover : &result->without_rollover,
                     record);
}

static void sample_memory(struct watch *watch, struct load_memory *memory)
{
    load_memory_read(memory);
    if (memory->anonymous_bytes > watch->result->anonymous_peak_bytes) {
        watch->result->anonymous_peak_bytes = memory->anonymous_bytes;
    }
    watch->result->resident_peak_bytes = memory->resident_peak_bytes;
}

/* Sleeps for a sample's time, looks, and closes the interval when it is over. */
static void watch_once(struct watch *watch, bool has_intervals)
{
    const uint64_t interval_ns = watch->phase->interval_ns;
    const struct timespec pause = {.tv_nsec =
                                       interval_ns < SAMPLE_NS ? (long)interval_ns : SAMPLE_NS};
    struct load_memory memory;
    (void)nanosleep(&pause, NULL);
    sample_memory(watch, &memory);
    const uint64_t now_ns = progress_clock_ns();
    if (has_intervals && now_ns >= watch->shared->measure_ns &&
        now_ns >= watch->interval_start_ns + interval_ns) {
        close_interval(watch, now_ns, memory.anonymous_bytes);
    }
}

static void *finish(void *argument)
{
    struct finish *finish = argument;
    struct load_result *result = finish->watch->result;
    struct load_shared *shared = finish->watch->shared;
    lahar_error error = {.status = LAHAR_OK};
    lahar_status status = lahar_sync(shared->store, LAHAR_WAIT_FOREVER, &error);
    result->durable_ns = progress_clock_ns() - shared->start_ns;
    if (status == LAHAR_OK && !shared->phase->no_rollover && !interrupt_seen()) {
        status = lahar_rollover(shared->store, LAHAR_WAIT_FOREVER, &error);
        result->finished_ns = progress_clock_ns() - shared->start_ns;
    }
    if (status != LAHAR_OK && result->error.status == LAHAR_OK) {
        result->error = error;
    }
    atomic_store(&finish->is_done, true);
    return NULL;
}

/* The times of the phase alone: threads that were there before had theirs already. */
static void subtract_roles(struct load_roles *roles, const struct load_roles *before)
{
    for (size_t i = 0; i < roles->count; i++) {
        const uint64_t used_ns = load_roles_cpu_ns(before, roles->items[i].name);
        roles->items[i].cpu_ns -= used_ns < roles->items[i].cpu_ns ? used_ns : 0;
    }
}

static void join_producers(struct watch *watch, uint64_t started)
{
    struct load_result *result = watch->result;
    for (uint64_t i = 0; i < started; i++) {
        struct load_producer *producer = &watch->producers[i];
        (void)pthread_join(producer->thread, NULL);
        result->total_events += producer->total_events;
        result->digest += producer->digest;
        result->producer_cpu_ns += producer->cpu_ns;
        result->append_cpu_ns += producer->append_cpu_ns;
        if (producer->error.status != LAHAR_OK && result->error.status == LAHAR_OK) {
            result->error = producer->error;
        }
    }
}

static bool start_producers(struct watch *watch, uint64_t *started_out)
{
    struct load_shared *shared = watch->shared;
    const struct load_phase *phase = watch->phase;
    shared->start_ns = progress_clock_ns();
    shared->measure_ns = shared->start_ns + phase->warmup_ns;
    shared->end_ns = phase->duration_ns == 0 ? UINT64_MAX : shared->measure_ns + phase->duration_ns;
    watch->interval_start_ns = shared->measure_ns;
    for (*started_out = 0; *started_out < phase->producers; ++*started_out) {
        struct load_producer *producer = &watch->producers[*started_out];
        (void)atomic_fetch_add(&shared->running, 1);
        if (pthread_create(&producer->thread, NULL, load_producer_run, producer) != 0) {
            (void)atomic_fetch_sub(&shared->running, 1);
            complain("producer %" PRIu64 " could not be started", *started_out);
            atomic_store(&shared->must_stop, true);
            return false;
        }
    }
    return true;
}

/* From the first event until everything is finished. */
static bool run_and_watch(struct watch *watch)
{
    struct load_result *result = watch->result;
    struct load_shared *shared = watch->shared;
    struct finish finishing = {.watch = watch};
    struct load_memory memory;
    uint64_t started = 0;
    sample_memory(watch, &memory);
    result->anonymous_start_bytes = memory.anonymous_bytes;
    watch->rollover_cpu_ns = rollover_cpu_ns(watch);
    watch->rollovers = result->before.rollovers;
    const bool has_started = start_producers(watch, &started);
    while (atomic_load(&shared->running) > 0) {
        watch_once(watch, true);
    }
    join_producers(watch, started);
    const uint64_t now_ns = progress_clock_ns();
    result->acknowledged_ns = now_ns - shared->start_ns;
    result->measured_ns = now_ns > shared->measure_ns ? now_ns - shared->measure_ns : 0;
    close_interval(watch, now_ns, memory.anonymous_bytes);
    result->is_interrupted = interrupt_seen();
    if (!has_started || result->error.status != LAHAR_OK) {
        return has_started;
    }
    if (pthread_create(&finishing.thread, NULL, finish, &finishing) != 0) {
        complain("a thread could not be started");
        return false;
    }
    while (!atomic_load(&finishing.is_done)) {
        watch_once(watch, false);
    }
    (void)pthread_join(finishing.thread, NULL);
    return true;
}

bool load_phase_run(const struct load_phase *phase, lahar_store *store, uint32_t stream,
                    uint64_t first_index, bool is_verified, struct load_result *result)
{
    struct load_shared shared = {
        .phase = phase,
        .store = store,
        .stream = stream,
        .is_verified = is_verified,
        .end_index = phase->count == 0 ? UINT64_MAX : first_index + phase->count,
    };
    bool is_right = false;
    struct load_roles roles_before;
    struct watch *watch = calloc(1, sizeof *watch);
    struct load_producer *producers = calloc(phase->producers, sizeof *producers);
    if (watch == NULL || producers == NULL) {
        complain("out of memory");
        goto cleanup;
    }
    atomic_store(&shared.next_index, first_index);
    watch->phase = phase;
    watch->shared = &shared;
    watch->producers = producers;
    watch->result = result;
    for (uint64_t i = 0; i < phase->producers; i++) {
        if (load_producer_init(&producers[i], &shared, (uint32_t)i, &result->error) != LAHAR_OK) {
            is_right = true;
            goto cleanup;
        }
    }
    result->before.struct_size = sizeof result->before;
    result->after.struct_size = sizeof result->after;
    if (lahar_stat_get(store, &result->before, &result->error) != LAHAR_OK) {
        is_right = true;
        goto cleanup;
    }
    load_roles_read(&roles_before);
    const uint64_t cpu_before_ns = load_process_cpu_ns();
    is_right = run_and_watch(watch);
    result->cpu_ns = load_process_cpu_ns() - cpu_before_ns;
    load_roles_read(&result->roles);
    subtract_roles(&result->roles, &roles_before);
    lahar_error error = {.status = LAHAR_OK};
    if (lahar_stat_get(store, &result->after, &error) != LAHAR_OK &&
        result->error.status == LAHAR_OK) {
        result->error = error;
    }
    result->total_bytes = result->after.appended_bytes - result->before.appended_bytes;
cleanup:
    for (uint64_t i = 0; producers != NULL && i < phase->producers; i++) {
        load_producer_deinit(&producers[i]);
    }
    free(producers);
    free(watch);
    return is_right;
}

void load_result_free(struct load_result *result)
{
    free(result->intervals);
    result->intervals = NULL;
}
