/* A thread that appends: it takes the next range of the workload, stages it as a batch, waits for
 * the moment at which the batch is to start, and commits it.
 *
 * In a closed loop that moment is as soon as possible. In an open loop it comes from a schedule
 * that does not know how the store fares, and latency counts from it: what had to wait because an
 * earlier batch was slow has waited. Staging is done ahead of the moment where there is time.
 *
 * The thread that watches takes what a producer recorded at the end of every interval, under the
 * producer's mutex; the producer holds it for as long as it takes to count one batch. */
#ifndef LAHAR_TOOLS_LOAD_PRODUCER_H
#define LAHAR_TOOLS_LOAD_PRODUCER_H

#include <pthread.h>
#include <stdatomic.h>

#include "bench/histogram.h"
#include "bench/random.h"
#include "tools/load_pack.h"
#include "tools/load_settings.h"

/* What batches did in some time; latencies in ns. */
struct load_record {
    uint64_t events;
    struct histogram latency; /* from the intended start to the end */
    struct histogram service; /* from the actual start */
    struct histogram lag;     /* from the intended to the actual start; open loops */
};

/* Adds other to record and empties it. */
void load_record_move(struct load_record *record, struct load_record *other);

/* What all producers of a phase share. */
struct load_shared {
    const struct load_phase *phase;
    lahar_store *store;
    uint32_t stream;
    bool is_verified;
    uint64_t start_ns; /* of the phase, CLOCK_MONOTONIC, as all times here */
    uint64_t measure_ns;
    uint64_t end_ns;                 /* UINT64_MAX: none */
    atomic_uint_fast64_t next_index; /* of the workload, of the next batch */
    uint64_t end_index;              /* UINT64_MAX: none */
    atomic_uint_fast32_t running;    /* producers */
    atomic_bool must_stop;
};

struct load_producer {
    pthread_t thread;
    struct load_shared *shared;
    uint32_t number;
    struct load_event_maker maker;
    struct load_pack *pack; /* NULL: events are made as they are needed */
    lahar_batch *batch;
    struct random_source random; /* of Poisson arrivals */
    double next_start_ns;        /* after the start of the phase */
    pthread_mutex_t mutex;       /* guards record */
    struct load_record *record;
    uint64_t total_events;  /* warm-up included, as everything from here on */
    uint64_t digest;        /* of the events appended; 0 unless they are to be verified */
    uint64_t append_cpu_ns; /* of adding to batches and committing them; with a pack */
    uint64_t cpu_ns;        /* of the thread */
    lahar_error error;      /* status OK: none */
};

/* Adds up to 0 in any order: a store that gives back other events gives another sum. */
uint64_t load_event_digest(const lahar_event *event);

lahar_status load_producer_init(struct load_producer *producer, struct load_shared *shared,
                                uint32_t number, lahar_error *error);
void load_producer_deinit(struct load_producer *producer);

/* The thread's function; argument is the producer. */
void *load_producer_run(void *argument);

/* Adds what was recorded since the last call to record and forgets it. Any thread. */
void load_producer_take(struct load_producer *producer, struct load_record *record);

#endif
