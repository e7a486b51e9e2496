/* Threads of idle priority; see crew.h. */
#include "engine/rollover/crew.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "io/io.h"

/* How often a run that goes on at idle priority is looked at. */
#define LOOK_NS INT64_C(20000000)
/* For how long a member that is spared rests before it looks again. */
#define SPARE_NS INT64_C(5000000)

/* The kernel's, which C libraries do not declare. */
enum {
    IOPRIO_WHO_PROCESS = 1,
    IOPRIO_DEFAULT = 0,
    IOPRIO_IDLE = 3 << 13
};

/* --- priority ------------------------------------------------------------------------- */

static bool set_policy(const struct lahar_crew_member *member, bool is_low)
{
    const struct sched_param none = {0};
    if (sched_setscheduler(member->tid, is_low ? SCHED_IDLE : member->policy, &none) != 0) {
        return false;
    }
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, member->tid,
                  is_low ? IOPRIO_IDLE : IOPRIO_DEFAULT);
    return true;
}

/* With the lock held. A host that chose a policy of its own for its threads keeps it. */
static void learn_rights(struct lahar_crew_member *member)
{
    struct lahar_crew *crew = member->crew;
    if (member->policy != SCHED_OTHER && member->policy != SCHED_BATCH) {
        return;
    }
    if (!member->is_ordinary && set_policy(member, true)) {
        member->is_low = !set_policy(member, false);
        crew->right = member->is_low ? LAHAR_CREW_CANNOT_RAISE : LAHAR_CREW_CAN_RAISE;
    }
}

/* --- members -------------------------------------------------------------------------- */

static void sleep_on(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t ns)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(condition, lock, &until);
}

/* With the lock held: whether a member takes pieces now. */
static bool may_work(const struct lahar_crew_member *member)
{
    const struct lahar_crew *crew = member->crew;
    const bool others_relieve = crew->is_urgent && crew->right == LAHAR_CREW_CANNOT_RAISE &&
                                crew->member_count > crew->low_count;
    return crew->is_open && member->is_ordinary == others_relieve;
}

static bool is_spared(const struct lahar_crew_member *member)
{
    const struct lahar_crew *crew = member->crew;
    return crew->size > 1 && member->number == crew->size - 1 &&
           crew->hooks.may_spare(crew->hooks.context);
}

/* With the lock held, which is let go of during a piece. */
static void take_pieces(struct lahar_crew_member *member)
{
    struct lahar_crew *crew = member->crew;
    if (!member->is_ordinary && crew->right == LAHAR_CREW_CAN_RAISE &&
        member->is_low == crew->is_urgent && set_policy(member, !crew->is_urgent)) {
        member->is_low = !crew->is_urgent;
    }
    crew->at_work++;
    while (may_work(member) && !is_spared(member)) {
        bool (*const piece)(void *context) = crew->piece;
        void *const context = crew->context;
        (void)pthread_mutex_unlock(&crew->lock);
        const bool has_more = piece(context);
        (void)pthread_mutex_lock(&crew->lock);
        crew->is_open = crew->is_open && has_more;
    }
    if (--crew->at_work == 0) {
        (void)pthread_cond_signal(&crew->done);
    }
}

static void *run_member(void *context)
{
    struct lahar_crew_member *member = context;
    struct lahar_crew *crew = member->crew;
    (void)pthread_mutex_lock(&crew->lock);
    member->tid = gettid();
    member->policy = sched_getscheduler(0);
    learn_rights(member);
    (void)pthread_cond_signal(&crew->done);
    while (!crew->is_stopping) {
        if (!may_work(member)) {
            (void)pthread_cond_wait(&crew->wake, &crew->lock);
        } else if (is_spared(member)) {
            sleep_on(&crew->wake, &crew->lock, SPARE_NS);
        } else {
            take_pieces(member);
        }
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* With the lock held: starts as many of a kind as there are to be, and waits until they run. Those
 * that cannot be had are done without. */
static void start_members(struct lahar_crew *crew, bool is_ordinary)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 0; i < crew->size; i++) {
        struct lahar_crew_member *member = &crew->members[crew->member_count];
        *member = (struct lahar_crew_member){.crew = crew, .number = i, .is_ordinary = is_ordinary};
        if (pthread_create(&member->thread, NULL, run_member, member) != 0) {
            break;
        }
        char name[16];
        (void)snprintf(name, sizeof name, "lahar-roll-%u", crew->member_count % 100);
        (void)pthread_setname_np(member->thread, name);
        crew->member_count++;
        crew->low_count += !is_ordinary;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (uint32_t i = 0; i < crew->member_count; i++) {
        while (crew->members[i].tid == 0) {
            (void)pthread_cond_wait(&crew->done, &crew->lock);
        }
    }
}

/* --- running -------------------------------------------------------------------------- */

/* With the lock held. */
static void raise_members(struct lahar_crew *crew)
{
    crew->is_urgent = true;
    if (crew->right == LAHAR_CREW_CANNOT_RAISE) {
        if (crew->member_count == crew->low_count) {
            start_members(crew, true);
        }
        (void)pthread_cond_broadcast(&crew->wake);
        return;
    }
    for (uint32_t i = 0; i < crew->low_count; i++) {
        struct lahar_crew_member *member = &crew->members[i];
        if (member->is_low && set_policy(member, false)) {
            member->is_low = false;
        }
    }
}

/* Makes the crew ready for a run; false when the caller has to do it alone. */
static bool prepare(struct lahar_crew *crew)
{
    const bool is_urgent = crew->hooks.is_urgent(crew->hooks.context);
    (void)pthread_mutex_lock(&crew->lock);
    if (crew->member_count == 0) {
        start_members(crew, false);
    }
    crew->is_urgent = false;
    if (is_urgent) {
        raise_members(crew);
    }
    return crew->member_count != 0;
}

static void run(struct lahar_crew *crew, bool (*piece)(void *context), void *context)
{
    crew->piece = piece;
    crew->context = context;
    crew->is_open = true;
    (void)pthread_cond_broadcast(&crew->wake);
    while (crew->is_open || crew->at_work != 0) {
        if (crew->is_urgent) {
            (void)pthread_cond_wait(&crew->done, &crew->lock);
            continue;
        }
        sleep_on(&crew->done, &crew->lock, LOOK_NS);
        (void)pthread_mutex_unlock(&crew->lock);
        const bool is_urgent = crew->hooks.is_urgent(crew->hooks.context);
        (void)pthread_mutex_lock(&crew->lock);
        if (is_urgent && (crew->is_open || crew->at_work != 0)) {
            crew->stat.raised++;
            crew->stat.relieved += crew->right == LAHAR_CREW_CANNOT_RAISE;
            raise_members(crew);
        }
    }
}

void lahar_crew_run(struct lahar_crew *crew, bool (*piece)(void *context), void *context)
{
    if (crew->size != 0) {
        const bool has_members = prepare(crew);
        if (has_members) {
            run(crew, piece, context);
        }
        (void)pthread_mutex_unlock(&crew->lock);
        if (has_members) {
            return;
        }
    }
    while (piece(context)) {
    }
}

/* A piece of work that only the first call does. */
struct whole {
    void (*work)(void *context);
    void *context;
    atomic_flag is_taken;
};

static bool do_whole(void *context)
{
    struct whole *whole = context;
    /* Nothing is handed over by it: relaxed would do. */
    if (!atomic_flag_test_and_set(&whole->is_taken)) {
        whole->work(whole->context);
    }
    return false;
}

void lahar_crew_run_whole(struct lahar_crew *crew, void (*work)(void *context), void *context)
{
    (void)pthread_mutex_lock(&crew->lock);
    const bool can_raise = crew->right == LAHAR_CREW_CAN_RAISE;
    (void)pthread_mutex_unlock(&crew->lock);
    if (can_raise) {
        struct whole whole = {.work = work, .context = context, .is_taken = ATOMIC_FLAG_INIT};
        lahar_crew_run(crew, do_whole, &whole);
    } else {
        work(context);
    }
}

/* --- life ------------------------------------------------------------------------------ */

static uint32_t choose_size(void)
{
    const uint32_t processors = lahar_io_processor_count();
    return processors < LAHAR_CREW_SIZE_MAX ? processors : (uint32_t)LAHAR_CREW_SIZE_MAX;
}

void lahar_crew_init(struct lahar_crew *crew, const struct lahar_crew_hooks *hooks,
                     bool has_threads)
{
    memset(crew, 0, sizeof *crew);
    crew->hooks = *hooks;
    crew->size = has_threads ? choose_size() : 0;
    (void)pthread_mutex_init(&crew->lock, NULL);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&crew->wake, &attributes);
    (void)pthread_cond_init(&crew->done, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

void lahar_crew_deinit(struct lahar_crew *crew)
{
    (void)pthread_cond_destroy(&crew->done);
    (void)pthread_cond_destroy(&crew->wake);
    (void)pthread_mutex_destroy(&crew->lock);
}

void lahar_crew_stop(struct lahar_crew *crew)
{
    (void)pthread_mutex_lock(&crew->lock);
    crew->is_urgent = true;
    crew->is_stopping = true;
    for (uint32_t i = 0; i < crew->low_count; i++) {
        if (crew->members[i].is_low && crew->right == LAHAR_CREW_CAN_RAISE) {
            (void)set_policy(&crew->members[i], false);
        }
    }
    (void)pthread_cond_broadcast(&crew->wake);
    (void)pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->member_count; i++) {
        (void)pthread_join(crew->members[i].thread, NULL);
    }
    crew->member_count = 0;
    crew->low_count = 0;
    crew->is_stopping = false;
}

void lahar_crew_stat_get(struct lahar_crew *crew, struct lahar_crew_stat *stat_out)
{
    (void)pthread_mutex_lock(&crew->lock);
    *stat_out = crew->stat;
    (void)pthread_mutex_unlock(&crew->lock);
}
