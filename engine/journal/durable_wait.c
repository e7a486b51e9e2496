/* Gates for threads, a heap for callbacks. */
#include "engine/journal/durable_wait.h"

#include <limits.h>

#include "io/base/error.h"

enum {
    WOKEN_AT_ONCE = 4, /* ids, with a system call */
    /* A few threads are woken as quickly by one alone; of many there are always some that keep
     * every processor busy. */
    HELPED_MIN = 4,
    HELPED_MAX = 64
};

void lahar_durable_wait_init(struct lahar_durable_wait *wait, const lahar_allocator *allocator)
{
    wait->allocator = allocator;
    for (size_t i = 0; i < LAHAR_DURABLE_GATES; i++) {
        lahar_gate_init(&wait->gates[i].gate);
        atomic_init(&wait->gates[i].due, 0);
    }
    lahar_gate_init(&wait->changed);
    atomic_init(&wait->request_count, 0);
    (void)pthread_mutex_init(&wait->mutex, NULL);
    wait->requests = NULL;
    wait->capacity = 0;
}

void lahar_durable_wait_deinit(struct lahar_durable_wait *wait)
{
    lahar_release(wait->allocator, wait->requests);
    (void)pthread_mutex_destroy(&wait->mutex);
}

struct lahar_durable_gate *lahar_durable_wait_gate(struct lahar_durable_wait *wait, uint64_t id)
{
    return &wait->gates[id / LAHAR_DURABLE_RUN % LAHAR_DURABLE_GATES];
}

uint32_t lahar_durable_wait_bit(uint64_t id)
{
    return UINT32_C(1) << (id % LAHAR_DURABLE_RUN);
}

void lahar_durable_wait_help(struct lahar_durable_gate *gate)
{
    uint32_t due = atomic_load_explicit(&gate->due, memory_order_seq_cst);
    while (due != 0) {
        /* The lowest few of them. */
        uint32_t taken = 0;
        for (int i = 0; i < WOKEN_AT_ONCE && taken != due; i++) {
            taken |= (due & ~taken) & (~(due & ~taken) + 1);
        }
        if (atomic_compare_exchange_weak_explicit(&gate->due, &due, due & ~taken,
                                                  memory_order_seq_cst, memory_order_seq_cst)) {
            lahar_gate_wake(&gate->gate, taken, INT_MAX);
            due = atomic_load_explicit(&gate->due, memory_order_seq_cst);
        }
    }
}

/* Wakes all that wait for the bits. The first one to be woken sees what is due and helps, if it
 * runs before this thread has done it all. */
static void wake_with_help(struct lahar_durable_gate *gate, uint32_t bits)
{
    (void)atomic_fetch_or_explicit(&gate->due, bits, memory_order_seq_cst);
    (void)atomic_fetch_add_explicit(&gate->gate.sequence, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&gate->gate.waiters, memory_order_seq_cst) == 0) {
        /* Who comes from here on sees that it need not sleep. */
        (void)atomic_fetch_and_explicit(&gate->due, ~bits, memory_order_seq_cst);
        return;
    }
    lahar_gate_wake(&gate->gate, bits, 1);
    lahar_durable_wait_help(gate);
}

void lahar_durable_wait_rose(struct lahar_durable_wait *wait, uint64_t from_id, uint64_t to_id,
                             uint32_t waiters)
{
    const uint64_t first = from_id / LAHAR_DURABLE_RUN;
    const uint64_t last = (to_id - 1) / LAHAR_DURABLE_RUN;
    const uint32_t from_bits = UINT32_MAX << (from_id % LAHAR_DURABLE_RUN);
    const uint32_t to_bits =
        UINT32_MAX >> (LAHAR_DURABLE_RUN - 1 - (to_id - 1) % LAHAR_DURABLE_RUN);
    if (last - first >= LAHAR_DURABLE_GATES) {
        for (size_t i = 0; i < LAHAR_DURABLE_GATES; i++) {
            lahar_gate_signal(&wait->gates[i].gate);
        }
    } else {
        for (uint64_t run = first; run <= last; run++) {
            struct lahar_durable_gate *gate = &wait->gates[run % LAHAR_DURABLE_GATES];
            const uint32_t bits =
                (run == first ? from_bits : UINT32_MAX) & (run == last ? to_bits : UINT32_MAX);
            if (waiters < HELPED_MIN || waiters > HELPED_MAX) {
                lahar_gate_signal_for(&gate->gate, bits);
            } else {
                wake_with_help(gate, bits);
            }
        }
    }
    if (atomic_load_explicit(&wait->request_count, memory_order_seq_cst) != 0) {
        lahar_gate_signal(&wait->changed);
    }
}

void lahar_durable_wait_wake_all(struct lahar_durable_wait *wait)
{
    for (size_t i = 0; i < LAHAR_DURABLE_GATES; i++) {
        lahar_gate_signal(&wait->gates[i].gate);
    }
    lahar_gate_signal(&wait->changed);
}

/* Must be called with the mutex held. */
static bool grow(struct lahar_durable_wait *wait)
{
    const size_t capacity = wait->capacity == 0 ? 64 : 2 * wait->capacity;
    if (capacity > SIZE_MAX / sizeof *wait->requests) {
        return false;
    }
    struct lahar_durable_request *requests =
        lahar_reallocate(wait->allocator, wait->requests, capacity * sizeof *requests);
    if (requests == NULL) {
        return false;
    }
    wait->requests = requests;
    wait->capacity = capacity;
    return true;
}

lahar_status lahar_durable_wait_add(struct lahar_durable_wait *wait, uint64_t id,
                                    lahar_durable_callback callback, void *context,
                                    lahar_error *error)
{
    (void)pthread_mutex_lock(&wait->mutex);
    size_t i = (size_t)atomic_load_explicit(&wait->request_count, memory_order_relaxed);
    if (i == wait->capacity && !grow(wait)) {
        (void)pthread_mutex_unlock(&wait->mutex);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a callback on id %llu",
                          (unsigned long long)id);
    }
    for (; i > 0 && wait->requests[(i - 1) / 2].id > id; i = (i - 1) / 2) {
        wait->requests[i] = wait->requests[(i - 1) / 2];
    }
    wait->requests[i] = (struct lahar_durable_request){id, callback, context};
    (void)atomic_fetch_add_explicit(&wait->request_count, 1, memory_order_seq_cst);
    (void)pthread_mutex_unlock(&wait->mutex);
    return LAHAR_OK;
}

/* Takes the request of the smallest id if it is below limit_id. */
static bool take(struct lahar_durable_wait *wait, uint64_t limit_id,
                 struct lahar_durable_request *request_out)
{
    (void)pthread_mutex_lock(&wait->mutex);
    const size_t count = (size_t)atomic_load_explicit(&wait->request_count, memory_order_relaxed);
    const bool is_due = count != 0 && wait->requests[0].id < limit_id;
    if (is_due) {
        *request_out = wait->requests[0];
        const struct lahar_durable_request last = wait->requests[count - 1];
        size_t i = 0;
        for (size_t child = 1; child < count - 1; child = 2 * i + 1) {
            if (child + 1 < count - 1 && wait->requests[child + 1].id < wait->requests[child].id) {
                child++;
            }
            if (wait->requests[child].id >= last.id) {
                break;
            }
            wait->requests[i] = wait->requests[child];
            i = child;
        }
        wait->requests[i] = last;
        (void)atomic_fetch_sub_explicit(&wait->request_count, 1, memory_order_seq_cst);
    }
    (void)pthread_mutex_unlock(&wait->mutex);
    return is_due;
}

size_t lahar_durable_wait_run(struct lahar_durable_wait *wait, uint64_t durable_id,
                              lahar_status rest)
{
    size_t count = 0;
    struct lahar_durable_request request;
    while (atomic_load_explicit(&wait->request_count, memory_order_seq_cst) != 0 &&
           take(wait, rest == LAHAR_OK ? durable_id : UINT64_MAX, &request)) {
        request.callback(request.context, request.id, request.id < durable_id ? LAHAR_OK : rest);
        count++;
    }
    return count;
}
