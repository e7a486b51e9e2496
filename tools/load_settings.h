/* What a load is to do: a store, and phases that run on it one after another.
 *
 * Every setting has one name, an option of the command line and a key of a job file, and is read
 * by one function. A job file is a JSON object: settings of the store and defaults for the phases,
 * and under "phases" an array of objects that change them. Without "phases" it is one phase. */
#ifndef LAHAR_TOOLS_LOAD_SETTINGS_H
#define LAHAR_TOOLS_LOAD_SETTINGS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/load_event.h"
#include "lahar/lahar.h"
#include "tools/arguments.h"

enum load_arrival {
    LOAD_CONSTANT, /* batches at equal distances */
    LOAD_POISSON   /* at exponential ones: as from many independent senders */
};

struct load_phase {
    const char *name;
    enum load_workload workload;
    bool workload_given;
    uint64_t seed;
    uint64_t first_index;  /* of the workload; UINT64_MAX: go on where the last phase ended */
    uint64_t count;        /* events; 0: until the duration ends */
    uint64_t duration_ns;  /* the warm-up not included; 0: until the count is reached */
    uint64_t warmup_ns;    /* before measuring; its events do not count */
    uint64_t rate;         /* events/s; 0: a closed loop */
    uint64_t rate_percent; /* instead: of what the first phase finished a second */
    enum load_arrival arrival;
    uint64_t producers;
    uint64_t batch_events;
    uint64_t prepared_events; /* a producer, made beforehand and used in turn; 0: none */
    uint64_t interval_ns;     /* of the series */
    lahar_durability durability;
    bool no_rollover;
};

enum {
    LOAD_PHASES_MAX = 32,
    LOAD_PRODUCERS_MAX = 1024
};

struct load_job {
    const char *directory;
    lahar_options options; /* of the store */
    bool is_json;
    bool is_series; /* print intervals */
    bool is_verified;
    struct load_phase phases[LOAD_PHASES_MAX];
    uint32_t phase_count;
    struct json_object *file; /* strings of settings live in it; NULL without one */
};

extern const struct option_spec LOAD_OPTIONS[];

enum load_scope {
    LOAD_OF_REPORT, /* and of the job as a whole */
    LOAD_OF_STORE,
    LOAD_OF_PHASE
};
enum load_scope load_setting_scope(int option);

/* Takes one setting; phase: the one that it is for, if it is for one. false: said why not. */
bool load_setting_take(struct load_job *job, struct load_phase *phase, int option,
                       const char *value);

void load_job_init(struct load_job *job);
void load_job_deinit(struct load_job *job);

/* Reads a job file; options taken before are its defaults. false: said why not. */
bool load_job_read(struct load_job *job, const char *path);

/* Whether everything needed is there and fits together. */
bool load_job_check(const struct load_job *job);

/* The settings that decide what a phase does, for its report. */
struct json_object *load_settings_json(const struct load_job *job, const struct load_phase *phase);

#endif
