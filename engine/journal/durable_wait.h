/* Waiting for the durable prefix: blocked threads and callbacks.
 *
 * Threads sleep on one of many gates, chosen by the id they wait for in runs of
 * neighbouring ids, and there for a bit of their own, so that a rise of the prefix wakes those it
 * concerns, and nobody else. To wake a thread on a processor that is idle takes the waker longer
 * than the woken thread often works: so whoever has been woken helps with what is left to wake.
 * Callbacks stand in a heap by id; whoever runs them does so without a lock held. */
#ifndef LAHAR_JOURNAL_DURABLE_WAIT_H
#define LAHAR_JOURNAL_DURABLE_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/journal/gate.h"
#include "io/base/allocator.h"
#include "lahar/store.h"

enum {
    LAHAR_DURABLE_GATES = 256,
    LAHAR_DURABLE_RUN = 32 /* neighbouring ids that share a gate, each with a bit of its own */
};

struct lahar_durable_request {
    uint64_t id;
    lahar_durable_callback callback;
    void *context;
};

struct lahar_durable_gate {
    struct lahar_gate gate;
    _Atomic uint32_t due; /* bits of ids that are durable and whose threads have to be woken */
};

struct lahar_durable_wait {
    const lahar_allocator *allocator;
    struct lahar_durable_gate gates[LAHAR_DURABLE_GATES];
    struct lahar_gate changed;              /* for the notifier */
    _Atomic uint64_t request_count;         /* stored under the mutex */
    pthread_mutex_t mutex;                  /* all below */
    struct lahar_durable_request *requests; /* a heap, smallest id first */
    size_t capacity;
};

void lahar_durable_wait_init(struct lahar_durable_wait *wait, const lahar_allocator *allocator);
void lahar_durable_wait_deinit(struct lahar_durable_wait *wait);
struct lahar_durable_gate *lahar_durable_wait_gate(struct lahar_durable_wait *wait, uint64_t id);
/* What a thread that waits for id sleeps for at the gate. */
uint32_t lahar_durable_wait_bit(uint64_t id);
/* Wakes those that are due and not woken yet; by every thread that leaves. */
void lahar_durable_wait_help(struct lahar_durable_gate *gate);
/* Wakes the threads that wait for ids in [from_id, to_id), and the notifier. waiters: how many
 * threads wait for anything. */
void lahar_durable_wait_rose(struct lahar_durable_wait *wait, uint64_t from_id, uint64_t to_id,
                             uint32_t waiters);
void lahar_durable_wait_wake_all(struct lahar_durable_wait *wait);
lahar_status lahar_durable_wait_add(struct lahar_durable_wait *wait, uint64_t id,
                                    lahar_durable_callback callback, void *context,
                                    lahar_error *error);
/* Calls back the requests below durable_id with LAHAR_OK and, unless rest is LAHAR_OK, all others
 * with rest. Returns how many were called. */
size_t lahar_durable_wait_run(struct lahar_durable_wait *wait, uint64_t durable_id,
                              lahar_status rest);

#endif
