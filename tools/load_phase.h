/* One phase of a load: starts the producers, watches while they append, then waits until what they
 * appended is durable and, unless told not to, in event files and index shards. */
#ifndef LAHAR_TOOLS_LOAD_PHASE_H
#define LAHAR_TOOLS_LOAD_PHASE_H

#include "tools/load_process.h"
#include "tools/load_producer.h"

enum {
    LOAD_QUANTILE_COUNT = 5
};

/* The quantiles that are reported. */
extern const struct load_quantile {
    const char *name;
    double share;
} LOAD_QUANTILES[LOAD_QUANTILE_COUNT];

/* What is left of an interval once it has been taken from the producers. */
struct load_interval {
    uint64_t start_ns; /* after the start of the phase */
    uint64_t duration_ns;
    uint64_t events;
    uint64_t quantiles_ns[LOAD_QUANTILE_COUNT]; /* of latency */
    uint64_t max_ns;
    uint64_t anonymous_bytes;
    uint64_t resident_bytes; /* of events, as the store says */
    uint64_t rollovers;      /* that ended in it */
    bool has_rollover;       /* one was under way */
};

struct load_result {
    struct load_record all;           /* measured part only, as all down to the intervals */
    struct load_record with_rollover; /* intervals with a rollover under way */
    struct load_record without_rollover;
    uint64_t intervals_with;
    uint64_t intervals_without;
    struct load_interval *intervals;
    size_t interval_count;
    size_t interval_capacity;
    uint64_t measured_ns;  /* until the last event was acknowledged */
    uint64_t total_events; /* warm-up included, as everything below */
    uint64_t total_bytes;  /* encoded */
    uint64_t digest;
    uint64_t acknowledged_ns; /* from the start of the phase until ... */
    uint64_t durable_ns;
    uint64_t finished_ns; /* 0: nobody waited for it */
    uint64_t cpu_ns;
    uint64_t producer_cpu_ns;
    uint64_t append_cpu_ns;
    uint64_t anonymous_peak_bytes;
    uint64_t anonymous_start_bytes; /* before the first event */
    uint64_t resident_peak_bytes;
    struct load_roles roles; /* of threads that are alive at the end; cpu_ns in this phase */
    lahar_stat before;
    lahar_stat after;
    bool is_interrupted;
    lahar_error error; /* of the first producer that failed, or of waiting; status OK: none */
};

/* result is all zeros. false: out of memory, or a thread could not be started; said so. */
bool load_phase_run(const struct load_phase *phase, lahar_store *store, uint32_t stream,
                    uint64_t first_index, bool is_verified, struct load_result *result);

void load_result_free(struct load_result *result);

#endif
