/* Workload W1: the provenance events of a busy dataflow.
 *
 * 1,024 FlowFiles are in flight; each is seen six times, at six stages, then a
 * new one takes its place. Of the 18 event types and the 200 components some are far
 * more frequent than others (Zipf). Twelve attributes an event, eleven of them the
 * FlowFile's own, and the earlier values of up to two. About 750 bytes an event.
 *
 * Event i is a pure function of (seed, i): threads can make ranges of one
 * workload, and a check can make any event again. One generator a thread. */
#ifndef LAHAR_BENCH_WORKLOAD_W1_H
#define LAHAR_BENCH_WORKLOAD_W1_H

#include <stdint.h>

#include "lahar/event.h"

enum {
    WORKLOAD_W1_TYPES = 18,
    WORKLOAD_W1_COMPONENTS = 200,
    WORKLOAD_W1_FLOWFILES = 1024, /* in flight */
    WORKLOAD_W1_STAGES = 6,
    WORKLOAD_W1_UPDATED = 12,
    WORKLOAD_W1_PREVIOUS_MAX = 2
};

/* Everything it points to belongs to the generator, valid until its next call. */
struct workload_w1_event {
    uint64_t index;
    int64_t time_ms;          /* since the epoch */
    int64_t lineage_start_ms; /* when the FlowFile was born */
    uint32_t type_rank;       /* 0: the most frequent */
    lahar_bytes type;         /* as NiFi spells it: "RECEIVE" */
    lahar_uuid component;
    lahar_bytes component_type;
    lahar_uuid uuid; /* of the FlowFile */
    uint64_t size;   /* bytes of content */
    uint64_t claim_offset;
    lahar_bytes claim_container;
    lahar_bytes claim_section;
    lahar_bytes claim_id;
    lahar_bytes transit_uri; /* on one event in five, else empty */
    lahar_pair updated[WORKLOAD_W1_UPDATED];
    lahar_pair previous[WORKLOAD_W1_PREVIOUS_MAX];
    uint32_t previous_count;
};

/* By rank. */
const char *workload_w1_type(uint32_t rank);

struct workload_w1;

/* NULL when there is no memory. */
struct workload_w1 *workload_w1_create(uint64_t seed);
void workload_w1_destroy(struct workload_w1 *workload);
void workload_w1_event(struct workload_w1 *workload, uint64_t index,
                       struct workload_w1_event *event_out);

#endif
