/* The scenarios that the crash explorer runs. Small ones first: most crash
 * bugs need two or three operations (CrashMonkey, OSDI'18). */
#include "crash_run.h"

static const struct crash_action first_commit[] = {
    {CRASH_APPEND, 2, 1, 10, LAHAR_DURABILITY_COMMIT, true},
};

static const struct crash_action commits[] = {
    {CRASH_APPEND, 2, 3, 100, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_APPEND, 3, 1, 5000, LAHAR_DURABILITY_NONE, true},
    {CRASH_STEPS, 6, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_OFFSET_ONLY, 1, 0, 0, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_APPEND, 2, 2, 600, LAHAR_DURABILITY_COMMIT, true},
};

static const struct crash_action interval[] = {
    {CRASH_APPEND, 4, 5, 300, LAHAR_DURABILITY_INTERVAL, true},
    {CRASH_STEPS, 10, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_ADVANCE, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_STEPS, 10, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 3, 2, 2000, LAHAR_DURABILITY_NONE, false},
    {CRASH_SYNC, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 1, 10, LAHAR_DURABILITY_INTERVAL, true},
};

static const struct crash_action rollover[] = {
    {CRASH_APPEND, 3, 4, 200, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 2, 2, 100, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_APPEND, 2, 2, 100, LAHAR_DURABILITY_NONE, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 1, 100, LAHAR_DURABILITY_COMMIT, true},
};

static const struct crash_action reopen[] = {
    {CRASH_APPEND, 2, 2, 100, LAHAR_DURABILITY_NONE, true},
    {CRASH_REOPEN, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 2, 2, 100, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_KILL, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 2, 1, 3000, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_REOPEN, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 1, 10, LAHAR_DURABILITY_COMMIT, true},
};

/* Journal files are recycled: the second and third group are written over the first. */
static const struct crash_action recycle[] = {
    {CRASH_APPEND, 8, 2, 60000, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 8, 2, 60000, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 8, 2, 60000, LAHAR_DURABILITY_NONE, true},
    {CRASH_STEPS, 12, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_KILL, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 2, 1, 100, LAHAR_DURABILITY_COMMIT, true},
};

static const struct crash_action streams[] = {
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, false},
    {CRASH_STREAM, 2, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_STREAM, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_REOPEN, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
};

static const struct crash_action no_space[] = {
    {CRASH_APPEND, 2, 2, 400, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_NO_SPACE, 1, 2, 4000, LAHAR_DURABILITY_NONE, true},
    {CRASH_APPEND, 2, 2, 400, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_NO_SPACE, 1, 2, 4000, LAHAR_DURABILITY_NONE, true},
    {CRASH_APPEND, 2, 2, 400, LAHAR_DURABILITY_COMMIT, true},
};

/* Large batches in flight, so that a crash leaves frames whose parts are of different age. */
static const struct crash_action torn[] = {
    {CRASH_APPEND, 3, 6, 9000, LAHAR_DURABILITY_NONE, true},
    {CRASH_STEPS, 4, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 3, 1, 700, LAHAR_DURABILITY_NONE, true},
    {CRASH_STEPS, 20, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 2, 3, 6000, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 4, 2, 4000, LAHAR_DURABILITY_NONE, true},
    {CRASH_STEPS, 20, 0, 0, LAHAR_DURABILITY_STORE, false},
};

/* What a power loss cut off stays on disk under the batches that follow. */
static const struct crash_action leftover[] = {
    {CRASH_APPEND, 12, 1, 300, LAHAR_DURABILITY_NONE, true},
    {CRASH_STEPS, 30, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_POWER_LOSS, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 3, 1, 10, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_POWER_LOSS, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 12, 1, 10, LAHAR_DURABILITY_NONE, true},
    {CRASH_STEPS, 30, 0, 0, LAHAR_DURABILITY_STORE, false},
};

/* Many small frames, so that a rotten bit often falls into a header. */
static const struct crash_action small_frames[] = {
    {CRASH_APPEND, 12, 2, 0, LAHAR_DURABILITY_COMMIT, true},
};

/* Files are dropped, whole groups and one stream of a group, in between of all else. */
static const struct crash_action retention[] = {
    {CRASH_APPEND, 2, 4, 200, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 2, 3, 100, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_RETAIN_STREAM, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 100, LAHAR_DURABILITY_NONE, true},
    {CRASH_KILL, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 100, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_RETAIN_NOTHING, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_POWER_LOSS, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 3, 100, LAHAR_DURABILITY_COMMIT, true},
};

static const struct crash_action retention_age[] = {
    {CRASH_APPEND, 2, 4, 200, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_ADVANCE, 3, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 3, 100, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_RETAIN_AGE, 1, 5, 0, LAHAR_DURABILITY_STORE, false}, /* nothing is so old */
    {CRASH_ADVANCE, 3, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_RETAIN_AGE, 1, 5, 0, LAHAR_DURABILITY_STORE, false}, /* the first group is */
    {CRASH_APPEND, 2, 2, 100, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_REOPEN, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_ADVANCE, 3, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_RETAIN_AGE, 1, 5, 0, LAHAR_DURABILITY_STORE, false}, /* and the second */
    {CRASH_APPEND, 1, 2, 100, LAHAR_DURABILITY_COMMIT, true},
};

/* Every second file of a stream is joined, again and again, in between of all else. */
static const struct crash_action join[] = {
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_STEPS, 60, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_POWER_LOSS, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_STEPS, 60, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_RETAIN_STREAM, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
};

/* Repairs, the last ones of a store with joined files and with events in its journals. */
static const struct crash_action repair[] = {
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_LOSE_MANIFEST, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_LOSE_MANIFEST, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_ROLLOVER, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_LOSE_MANIFEST, 1, 0, 0, LAHAR_DURABILITY_STORE, false},
    {CRASH_APPEND, 1, 2, 50, LAHAR_DURABILITY_COMMIT, true},
};

/* A device that fails under commits, and under what is synced by and by. */
static const struct crash_action io_errors[] = {
    {CRASH_APPEND, 2, 2, 400, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_IO_ERROR, 1, 2, 300, LAHAR_DURABILITY_COMMIT, true},
    {CRASH_APPEND, 2, 1, 5000, LAHAR_DURABILITY_INTERVAL, true},
    {CRASH_IO_ERROR, 2, 3, 4000, LAHAR_DURABILITY_INTERVAL, true},
    {CRASH_APPEND, 1, 2, 100, LAHAR_DURABILITY_COMMIT, true},
};

#define ACTIONS(array) (array), sizeof(array) / sizeof((array)[0])

const struct crash_scenario crash_scenarios[] = {
    {"first_commit", LAHAR_DURABILITY_COMMIT, 0, 1, ACTIONS(first_commit), 0},
    {"commits", LAHAR_DURABILITY_COMMIT, 0, 16, ACTIONS(commits), 0},
    {"interval", LAHAR_DURABILITY_INTERVAL, 0, 4, ACTIONS(interval), 0},
    {"rollover", LAHAR_DURABILITY_COMMIT, 0, 4, ACTIONS(rollover), 0},
    {"small_groups", LAHAR_DURABILITY_COMMIT, 5, 2, ACTIONS(commits), 0},
    {"reopen", LAHAR_DURABILITY_INTERVAL, 0, 2, ACTIONS(reopen), 0},
    {"recycle", LAHAR_DURABILITY_COMMIT, 0, 2, ACTIONS(recycle), 0},
    {"streams", LAHAR_DURABILITY_COMMIT, 0, 1, ACTIONS(streams), 0},
    {"no_space", LAHAR_DURABILITY_COMMIT, 0, 2, ACTIONS(no_space), 0},
    {"io_errors", LAHAR_DURABILITY_COMMIT, 0, 2, ACTIONS(io_errors), 0},
    {"leftover", LAHAR_DURABILITY_INTERVAL, 0, 2, ACTIONS(leftover), 0},
    {"small_frames", LAHAR_DURABILITY_COMMIT, 0, 1, ACTIONS(small_frames), 0},
    {"retention", LAHAR_DURABILITY_COMMIT, 0, 2, ACTIONS(retention), 0},
    {"retention_age", LAHAR_DURABILITY_COMMIT, 0, 1, ACTIONS(retention_age), 0},
    {"torn", LAHAR_DURABILITY_INTERVAL, 0, 3, ACTIONS(torn), 0},
    {"join", LAHAR_DURABILITY_COMMIT, 0, 1, ACTIONS(join), 2},
    {"repair", LAHAR_DURABILITY_COMMIT, 0, 1, ACTIONS(repair), 2},
};
const size_t crash_scenario_count = sizeof crash_scenarios / sizeof crash_scenarios[0];
