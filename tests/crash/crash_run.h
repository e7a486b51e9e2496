/* One run of a scenario on a fresh simulated disk, up to a crash, and back. */
#ifndef LAHAR_TESTS_CRASH_RUN_H
#define LAHAR_TESTS_CRASH_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history.h"
#include "lahar/lahar.h"

enum {
    /* What survives at each crash point: two power losses by different seeds, a killed
     * process, a power loss with a second crash inside recovery, and one after which a
     * bit of a journal has rotted. */
    CRASH_VARIANTS = 5
};

/* One thing that a scenario does; repeated count times. */
enum crash_action_kind {
    CRASH_APPEND = 1,
    CRASH_OFFSET_ONLY = 2,
    CRASH_STEPS = 3, /* single background steps in an order drawn from the seed */
    CRASH_SYNC = 4,
    CRASH_ROLLOVER = 5,
    CRASH_REOPEN = 6,      /* clean close and open */
    CRASH_KILL = 7,        /* the process dies and the store is opened again */
    CRASH_ADVANCE = 8,     /* the clock, by a second */
    CRASH_NO_SPACE = 9,    /* the disk is full for the next append, then has room again */
    CRASH_STREAM = 10,     /* another stream is created */
    CRASH_POWER_LOSS = 11, /* the power fails and the store is opened again */
    /* Limits are set, enforced to the end, and lifted again. */
    CRASH_RETAIN_NOTHING = 12, /* of all that is rolled, after a rollover */
    CRASH_RETAIN_STREAM = 13,  /* the same for one of the streams */
    CRASH_RETAIN_AGE = 14,     /* what is older than so many seconds, given as events */
    CRASH_LOSE_MANIFEST = 15,  /* the process dies, the manifest goes, the store is repaired */
    /* The journals fail once, at one of the next operations; then the power does, and the store is
     * opened again. */
    CRASH_IO_ERROR = 16
};

struct crash_action {
    enum crash_action_kind kind;
    uint32_t count;
    uint32_t events;       /* in a batch */
    uint32_t message_size; /* bytes of padding in each event */
    lahar_durability durability;
    bool has_offset;
};

struct crash_scenario {
    const char *name;
    lahar_durability durability;
    uint64_t group_event_count; /* rolls over at this many; 0: the default */
    uint32_t journal_count;
    const struct crash_action *actions;
    size_t action_count;
    uint32_t join_file_count; /* small files that are joined; 0: none ever */
};

extern const struct crash_scenario crash_scenarios[];
extern const size_t crash_scenario_count;

struct crash_run {
    const struct crash_scenario *scenario;
    uint64_t seed;
    unsigned planted; /* bits of the bugs that are switched on */
    char reason[HISTORY_REASON_SIZE];
};

/* Runs without a crash, checks the end state, and counts disk operations. */
bool crash_run_count(struct crash_run *run, uint64_t *operations_out);

/* Crashes before operation number at, recovers, checks, goes on, checks again. */
bool crash_run_point(struct crash_run *run, uint64_t at, unsigned variant, uint64_t *inner_crashes);

#endif
