/* Events of a workload as the store takes them. One maker a producer. */
#ifndef LAHAR_BENCH_LOAD_EVENT_H
#define LAHAR_BENCH_LOAD_EVENT_H

#include <stdint.h>

#include "bench/workload_w1.h"
#include "bench/workload_w2.h"
#include "lahar/lahar.h"

enum load_workload {
    LOAD_W1, /* into a stream of the schema provenance */
    LOAD_W2  /* lines, into a stream of the schema log */
};

enum {
    LOAD_VALUES_MAX = 16
};

struct load_event_maker {
    enum load_workload workload;
    uint32_t stream;
    uint32_t fields[LOAD_VALUES_MAX]; /* ids of the names that W1 fills */
    struct workload_w1 *w1;
    struct workload_w2 w2;
    struct workload_w1_event w1_event;
    char text[WORKLOAD_W2_LINE_SIZE_MAX];
    lahar_value values[LOAD_VALUES_MAX];
};

/* "W1" or "W2", in either case. */
bool load_workload_find(const char *name, enum load_workload *workload_out);

lahar_status load_event_maker_init(struct load_event_maker *maker, enum load_workload workload,
                                   uint64_t seed, lahar_store *store, uint32_t stream,
                                   lahar_error *error);
void load_event_maker_deinit(struct load_event_maker *maker);

/* Event index of the workload, valid until the next call. */
void load_event_make(struct load_event_maker *maker, uint64_t index, lahar_event *event_out);

#endif
