#include "tools/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "tools/exit_status.h"

static atomic_bool is_interrupted;

/* mutex guards the two below it. */
static pthread_mutex_t callback_mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*interrupt_callback)(void *context);
static void *interrupt_context;

static void *wait_for_signals(void *argument)
{
    sigset_t *signals = argument;
    for (;;) {
        int number = 0;
        if (sigwait(signals, &number) != 0) {
            continue;
        }
        if (atomic_exchange(&is_interrupted, true)) {
            _exit(EXIT_STATUS_INTERRUPTED);
        }
        (void)pthread_mutex_lock(&callback_mutex);
        if (interrupt_callback != NULL) {
            interrupt_callback(interrupt_context);
        }
        (void)pthread_mutex_unlock(&callback_mutex);
    }
    return NULL;
}

void interrupt_begin(void)
{
    static sigset_t signals;
    pthread_t thread;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, &signals) != 0) {
        /* Without the thread the signals end the process, as they do by default. */
        (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
        return;
    }
    (void)pthread_detach(thread);
}

bool interrupt_seen(void)
{
    return atomic_load(&is_interrupted);
}

void interrupt_set_callback(void (*callback)(void *context), void *context)
{
    (void)pthread_mutex_lock(&callback_mutex);
    interrupt_callback = callback;
    interrupt_context = context;
    if (callback != NULL && atomic_load(&is_interrupted)) {
        callback(context);
    }
    (void)pthread_mutex_unlock(&callback_mutex);
}
