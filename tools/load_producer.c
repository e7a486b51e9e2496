#include "tools/load_producer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "tools/interrupt.h"
#include "tools/load_process.h"
#include "tools/progress.h"

/* How long anything blocks before it looks for an interrupt. */
static const uint64_t SLICE_NS = UINT64_C(200000000);

enum {
    DOMAIN_ARRIVAL = 1000 /* of random numbers; apart from those of the workloads */
};

/* --- digests ------------------------------------------------------------------------- */

static uint64_t digest_bytes(uint64_t seed, lahar_bytes bytes)
{
    const uint8_t *at = bytes.data;
    uint64_t digest = random_mix(seed + bytes.size);
    for (size_t left = bytes.size; left > 0;) {
        const size_t size = left < sizeof digest ? left : sizeof digest;
        uint64_t word = 0;
        memcpy(&word, at, size);
        digest = random_mix(digest ^ word) + size;
        at += size;
        left -= size;
    }
    return digest;
}

/* Pairs and values are summed, since their order is the store's affair. */
static uint64_t digest_value(const lahar_value *value)
{
    uint64_t digest = random_mix(value->field + UINT64_C(0x100000) * (uint64_t)value->type);
    switch (value->type) {
    case LAHAR_MAP:
        for (size_t i = 0; i < value->as.map.count; i++) {
            const lahar_pair *pair = &value->as.map.items[i];
            digest += random_mix(digest_bytes(digest_bytes(value->field, pair->key), pair->value));
        }
        return digest;
    case LAHAR_UUID:
        return digest_bytes(digest, (lahar_bytes){.data = value->as.uuid.bytes,
                                                  .size = sizeof value->as.uuid.bytes});
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return digest_bytes(digest, value->as.bytes);
    default:
        return random_mix(digest ^ value->as.u64);
    }
}

uint64_t load_event_digest(const lahar_event *event)
{
    uint64_t digest = (uint64_t)event->time_ns;
    for (size_t i = 0; i < event->value_count; i++) {
        digest += digest_value(&event->values[i]);
    }
    return random_mix(digest);
}

/* --- staging ------------------------------------------------------------------------- */

static lahar_status stage_made(struct load_producer *producer, uint64_t first, uint64_t count,
                               uint64_t *digest)
{
    for (uint64_t i = 0; i < count; i++) {
        lahar_event event;
        load_event_make(&producer->maker, first + i, &event);
        if (producer->shared->is_verified) {
            *digest += load_event_digest(&event);
        }
        const lahar_status status = lahar_batch_add(producer->batch, &event, &producer->error);
        if (status != LAHAR_OK) {
            return status;
        }
    }
    return LAHAR_OK;
}

static lahar_status stage_prepared(struct load_producer *producer, uint64_t count, uint64_t *digest)
{
    const uint64_t place = load_pack_turn(producer->pack, count);
    if (producer->shared->is_verified) {
        for (uint64_t i = 0; i < count; i++) {
            *digest += load_event_digest(load_pack_event(producer->pack, place + i));
        }
    }
    const uint64_t before_ns = load_thread_cpu_ns();
    for (uint64_t i = 0; i < count; i++) {
        const lahar_status status = lahar_batch_add(
            producer->batch, load_pack_event(producer->pack, place + i), &producer->error);
        if (status != LAHAR_OK) {
            return status;
        }
    }
    producer->append_cpu_ns += load_thread_cpu_ns() - before_ns;
    return LAHAR_OK;
}

/* --- the schedule -------------------------------------------------------------------- */

static bool must_stop(const struct load_producer *producer)
{
    return interrupt_seen() || atomic_load(&producer->shared->must_stop);
}

/* The moment at which the next batch is to start; counts it. */
static uint64_t next_start_ns(struct load_producer *producer, uint64_t events)
{
    const struct load_phase *phase = producer->shared->phase;
    const uint64_t start_ns = producer->shared->start_ns + (uint64_t)producer->next_start_ns;
    const double mean_ns = (double)events * (double)phase->producers * 1e9 / (double)phase->rate;
    double step_ns = mean_ns;
    if (phase->arrival == LOAD_POISSON) {
        /* In (0, 1]: its logarithm exists. */
        const double share = ((double)(random_next(&producer->random) >> 11) + 1) * 0x1p-53;
        step_ns = -log(share) * mean_ns;
    }
    producer->next_start_ns += step_ns;
    return start_ns;
}

/* false: interrupted. */
static bool wait_until(const struct load_producer *producer, uint64_t moment_ns)
{
    for (uint64_t now_ns = progress_clock_ns(); now_ns < moment_ns;) {
        if (must_stop(producer)) {
            return false;
        }
        const uint64_t slice_ns = now_ns + SLICE_NS;
        const uint64_t until_ns = moment_ns < slice_ns ? moment_ns : slice_ns;
        const struct timespec until = {
            .tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
            .tv_nsec = (long)(until_ns % UINT64_C(1000000000)),
        };
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        now_ns = progress_clock_ns();
    }
    return true;
}

/* --- appending ----------------------------------------------------------------------- */

/* Blocks for as long as the store does, in slices. LAHAR_CLOSED: interrupted before the batch was
 * appended. */
static lahar_status commit(struct load_producer *producer)
{
    const lahar_append_options options = {
        .struct_size = sizeof options,
        .durability = producer->shared->phase->durability,
        .deadline_ns = SLICE_NS,
    };
    const size_t count = lahar_batch_event_count(producer->batch);
    uint64_t first_id = 0;
    for (;;) {
        lahar_status status =
            lahar_batch_commit(producer->batch, &options, &first_id, &producer->error);
        while (status == LAHAR_TIMEOUT && first_id != 0) {
            status = lahar_durable_wait(producer->shared->store, first_id + count - 1, SLICE_NS,
                                        &producer->error);
        }
        if (status != LAHAR_TIMEOUT && status != LAHAR_BUSY) {
            return status;
        }
        producer->error = (lahar_error){.status = LAHAR_OK};
        if (must_stop(producer)) {
            return LAHAR_CLOSED;
        }
    }
}

static void record_batch(struct load_producer *producer, uint64_t events, uint64_t intended_ns,
                         uint64_t start_ns, uint64_t end_ns)
{
    struct load_record *record = producer->record;
    (void)pthread_mutex_lock(&producer->mutex);
    record->events += events;
    histogram_record(&record->latency, end_ns - intended_ns);
    histogram_record(&record->service, end_ns - start_ns);
    if (start_ns != intended_ns || producer->shared->phase->rate != 0) {
        histogram_record(&record->lag, start_ns - intended_ns);
    }
    (void)pthread_mutex_unlock(&producer->mutex);
}

/* One batch; false: this was the last. */
static bool append_batch(struct load_producer *producer, uint64_t first, uint64_t count)
{
    struct load_shared *shared = producer->shared;
    uint64_t digest = 0;
    const uint64_t intended_ns = shared->phase->rate == 0 ? 0 : next_start_ns(producer, count);
    if (intended_ns >= shared->end_ns) {
        return false;
    }
    lahar_status status = producer->pack == NULL ? stage_made(producer, first, count, &digest)
                                                 : stage_prepared(producer, count, &digest);
    if (status == LAHAR_OK && !wait_until(producer, intended_ns)) {
        return false;
    }
    const uint64_t start_ns = progress_clock_ns();
    const uint64_t before_ns = producer->pack == NULL ? 0 : load_thread_cpu_ns();
    if (status == LAHAR_OK) {
        status = commit(producer);
    }
    if (status != LAHAR_OK) {
        return false;
    }
    const uint64_t end_ns = progress_clock_ns();
    if (producer->pack != NULL) {
        producer->append_cpu_ns += load_thread_cpu_ns() - before_ns;
    }
    producer->total_events += count;
    producer->digest += digest;
    if (start_ns >= shared->measure_ns) {
        record_batch(producer, count, shared->phase->rate == 0 ? start_ns : intended_ns, start_ns,
                     end_ns);
    }
    return end_ns < shared->end_ns;
}

void *load_producer_run(void *argument)
{
    struct load_producer *producer = argument;
    struct load_shared *shared = producer->shared;
    const uint64_t batch = shared->phase->batch_events;
    /* A sleep is to end when it says, not up to 50 us later. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    while (!must_stop(producer)) {
        const uint64_t first = atomic_fetch_add(&shared->next_index, batch);
        if (first >= shared->end_index) {
            break;
        }
        const uint64_t left = shared->end_index - first;
        if (!append_batch(producer, first, left < batch ? left : batch)) {
            break;
        }
    }
    if (producer->error.status != LAHAR_OK) {
        atomic_store(&shared->must_stop, true);
    }
    lahar_batch_clear(producer->batch);
    producer->cpu_ns = load_thread_cpu_ns();
    (void)atomic_fetch_sub(&shared->running, 1);
    return NULL;
}

void load_record_move(struct load_record *record, struct load_record *other)
{
    record->events += other->events;
    other->events = 0;
    histogram_move(&record->latency, &other->latency);
    histogram_move(&record->service, &other->service);
    histogram_move(&record->lag, &other->lag);
}

void load_producer_take(struct load_producer *producer, struct load_record *record)
{
    (void)pthread_mutex_lock(&producer->mutex);
    load_record_move(record, producer->record);
    (void)pthread_mutex_unlock(&producer->mutex);
}

lahar_status load_producer_init(struct load_producer *producer, struct load_shared *shared,
                                uint32_t number, lahar_error *error)
{
    const struct load_phase *phase = shared->phase;
    producer->shared = shared;
    producer->number = number;
    producer->random = random_source_at(phase->seed, DOMAIN_ARRIVAL, number);
    if (phase->rate != 0) {
        /* Producers take turns instead of starting together. */
        producer->next_start_ns = (double)phase->batch_events * number * 1e9 / (double)phase->rate;
    }
    (void)pthread_mutex_init(&producer->mutex, NULL);
    producer->record = calloc(1, sizeof *producer->record);
    if (producer->record == NULL) {
        *error = (lahar_error){.status = LAHAR_NO_MEMORY, .message = "no memory for a producer"};
        return LAHAR_NO_MEMORY;
    }
    lahar_status status = load_event_maker_init(&producer->maker, phase->workload, phase->seed,
                                                shared->store, shared->stream, error);
    if (status == LAHAR_OK) {
        status = lahar_batch_create(shared->store, &producer->batch, error);
    }
    if (status == LAHAR_OK && phase->prepared_events > 0) {
        const uint64_t count = phase->prepared_events > phase->batch_events ? phase->prepared_events
                                                                            : phase->batch_events;
        producer->pack = load_pack_create(&producer->maker,
                                          atomic_load(&shared->next_index) + number * count, count);
        if (producer->pack == NULL) {
            *error = (lahar_error){.status = LAHAR_NO_MEMORY, .message = "no memory for events"};
            return LAHAR_NO_MEMORY;
        }
    }
    return status;
}

void load_producer_deinit(struct load_producer *producer)
{
    if (producer->record == NULL) {
        return;
    }
    lahar_batch_destroy(producer->batch);
    load_pack_destroy(producer->pack);
    load_event_maker_deinit(&producer->maker);
    free(producer->record);
    (void)pthread_mutex_destroy(&producer->mutex);
}
