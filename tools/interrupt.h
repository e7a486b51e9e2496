/* SIGINT and SIGTERM as a flag and a callback, so that a verb ends in order.
 *
 * The signals are blocked in every thread, the library's included, and taken by
 * one thread of ours; nothing runs in a signal handler. A second signal ends the
 * process at once. */
#ifndef LAHAR_TOOLS_INTERRUPT_H
#define LAHAR_TOOLS_INTERRUPT_H

#include <stdbool.h>

/* Before the first other thread is started. Also makes a closed pipe an error of
 * the write instead of a signal. */
void interrupt_begin(void);

bool interrupt_seen(void);

/* Called from the signal's thread when it comes, or at once when it has come;
 * NULL, NULL withdraws it: afterwards it is not running and will not run. */
void interrupt_set_callback(void (*callback)(void *context), void *context);

#endif
