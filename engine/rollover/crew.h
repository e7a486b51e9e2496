/* The threads that rollover computes with, "lahar-roll-N".
 *
 * One a processor, started when they are first needed. They run at idle priority (SCHED_IDLE, idle
 * input and output), so that appends, commits and queries have the processors first, and while
 * threads wait for commits there is one fewer of them. That holds until the work is urgent:
 * memory is nearly full, somebody waits for the rollover, the store is closing. Then others wait
 * for it, and must not wait behind all else that the machine does, so the threads are raised at
 * once, in the midst of what they do. A process without the right to raise threads (CAP_SYS_NICE
 * or RLIMIT_NICE) gets as many others of ordinary priority, which take all further pieces; what
 * they may have to wait for is the one piece that each of the idle threads is at. Hence a piece
 * is a few milliseconds of work, and what cannot be cut is done at idle priority only where
 * threads can be raised. While they compute the threads hold no lock of the store. */
#ifndef LAHAR_ROLLOVER_CREW_H
#define LAHAR_ROLLOVER_CREW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    LAHAR_CREW_SIZE_MAX = 16
};

/* Called by the crew's members (may_spare) and by whoever runs it (is_urgent). */
struct lahar_crew_hooks {
    bool (*is_urgent)(void *context);
    bool (*may_spare)(void *context); /* one fewer is to work */
    void *context;
};

enum lahar_crew_right {
    LAHAR_CREW_UNKNOWN = 0,
    LAHAR_CREW_CAN_RAISE = 1,
    LAHAR_CREW_CANNOT_RAISE = 2 /* or cannot lower: then nothing is raised either */
};

struct lahar_crew;

struct lahar_crew_member {
    struct lahar_crew *crew;
    pthread_t thread;
    uint32_t number; /* among those of its kind */
    pid_t tid;       /* 0: has not begun */
    int policy;      /* of the scheduler, that the thread was started with */
    bool is_ordinary;
    bool is_low; /* at idle priority now */
};

struct lahar_crew_stat {
    uint64_t raised;   /* times that the work under way became urgent */
    uint64_t relieved; /* of these, those for which others took over */
};

struct lahar_crew {
    struct lahar_crew_hooks hooks;
    uint32_t size; /* threads of a kind; 0: everything is done in the caller's thread */

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of members */
    pthread_cond_t done; /* of the caller */
    struct lahar_crew_member members[2 * LAHAR_CREW_SIZE_MAX];
    uint32_t member_count;
    uint32_t low_count; /* the first of them, which may go to idle priority */
    enum lahar_crew_right right;
    bool (*piece)(void *context);
    void *context;
    bool is_open;   /* pieces are left */
    bool is_urgent; /* they are to be done at ordinary priority */
    bool is_stopping;
    uint32_t at_work;
    struct lahar_crew_stat stat;
};

/* has_threads false: everything is done by the caller. */
void lahar_crew_init(struct lahar_crew *crew, const struct lahar_crew_hooks *hooks,
                     bool has_threads);
void lahar_crew_deinit(struct lahar_crew *crew); /* its threads are stopped */
/* Ends and joins the threads; nothing is run meanwhile or afterwards. */
void lahar_crew_stop(struct lahar_crew *crew);

/* Calls piece, from any number of threads at once, until a call has returned false, and returns
 * when all calls have. One thread at a time runs a crew. */
void lahar_crew_run(struct lahar_crew *crew, bool (*piece)(void *context), void *context);
/* Calls work once, which may take long. */
void lahar_crew_run_whole(struct lahar_crew *crew, void (*work)(void *context), void *context);

void lahar_crew_stat_get(struct lahar_crew *crew, struct lahar_crew_stat *stat_out);

#endif
