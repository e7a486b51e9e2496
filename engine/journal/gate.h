/* A place to wait for a change of atomically shared state, without a lock.
 *
 * The state itself lies elsewhere. A waiter enters, looks at the state once more, and
 * sleeps on the ticket it was given; whoever changes the state signals afterwards.
 * Either the waiter's look comes later in the single order of the sequence and sees the
 * change, or the signaller finds the waiter counted and wakes it. Signalling
 * a gate where nobody waits costs one read-modify-write and no system call. */
#ifndef LAHAR_JOURNAL_GATE_H
#define LAHAR_JOURNAL_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lahar_gate {
    _Atomic uint32_t sequence; /* futex word: rises with every signal */
    _Atomic uint32_t waiters;
};

void lahar_gate_init(struct lahar_gate *gate);
/* Returns the ticket to sleep on. Every enter is followed by one leave. */
uint32_t lahar_gate_enter(struct lahar_gate *gate);
/* Returns when the gate was signalled after the ticket was drawn, when wait_ns are over, or
 * for no reason. */
void lahar_gate_sleep(struct lahar_gate *gate, uint32_t ticket, uint64_t wait_ns);
/* The same until a point in time of the monotonic clock (UINT64_MAX: for ever) and, of the signals
 * for some, only by those that share a bit. Returns whether that time has come. */
bool lahar_gate_sleep_for(struct lahar_gate *gate, uint32_t ticket, uint32_t bits, uint64_t end_ns);
void lahar_gate_leave(struct lahar_gate *gate);
/* Wakes every waiter. Any thread. */
void lahar_gate_signal(struct lahar_gate *gate);
/* Wakes those that sleep for one of the bits, with one system call. Any thread. */
void lahar_gate_signal_for(struct lahar_gate *gate, uint32_t bits);
/* Only the system call: wakes at most count of those that sleep for one of the bits. Any thread. */
void lahar_gate_wake(struct lahar_gate *gate, uint32_t bits, int count);

#endif
