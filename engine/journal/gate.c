/* Waiting by futex: the kernel compares the sequence with the ticket before it lets
 * the thread sleep, so that a signal between the two is not lost. */
#include "engine/journal/gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void lahar_gate_init(struct lahar_gate *gate)
{
    atomic_init(&gate->sequence, 0);
    atomic_init(&gate->waiters, 0);
}

uint32_t lahar_gate_enter(struct lahar_gate *gate)
{
    /* Pairs with lahar_gate_signal: of this addition and its reading of waiters, and of its
     * addition and this reading of sequence, one must see the other. */
    (void)atomic_fetch_add_explicit(&gate->waiters, 1, memory_order_seq_cst);
    return atomic_load_explicit(&gate->sequence, memory_order_seq_cst);
}

void lahar_gate_sleep(struct lahar_gate *gate, uint32_t ticket, uint64_t wait_ns)
{
    const uint64_t second_ns = 1000000000;
    struct timespec timeout = {(time_t)(wait_ns / second_ns), (long)(wait_ns % second_ns)};
    (void)syscall(SYS_futex, &gate->sequence, FUTEX_WAIT_PRIVATE, ticket,
                  wait_ns == UINT64_MAX ? NULL : &timeout, NULL, 0);
}

bool lahar_gate_sleep_for(struct lahar_gate *gate, uint32_t ticket, uint32_t bits, uint64_t end_ns)
{
    const uint64_t second_ns = 1000000000;
    const struct timespec end = {(time_t)(end_ns / second_ns), (long)(end_ns % second_ns)};
    /* This call takes the point in time itself, of the monotonic clock. */
    return syscall(SYS_futex, &gate->sequence, FUTEX_WAIT_BITSET_PRIVATE, ticket,
                   end_ns == UINT64_MAX ? NULL : &end, NULL, bits) != 0 &&
           errno == ETIMEDOUT;
}

void lahar_gate_leave(struct lahar_gate *gate)
{
    (void)atomic_fetch_sub_explicit(&gate->waiters, 1, memory_order_release);
}

void lahar_gate_signal(struct lahar_gate *gate)
{
    lahar_gate_signal_for(gate, FUTEX_BITSET_MATCH_ANY);
}

void lahar_gate_signal_for(struct lahar_gate *gate, uint32_t bits)
{
    (void)atomic_fetch_add_explicit(&gate->sequence, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&gate->waiters, memory_order_seq_cst) != 0) {
        lahar_gate_wake(gate, bits, INT_MAX);
    }
}

void lahar_gate_wake(struct lahar_gate *gate, uint32_t bits, int count)
{
    (void)syscall(SYS_futex, &gate->sequence, FUTEX_WAKE_BITSET_PRIVATE, count, NULL, NULL, bits);
}
