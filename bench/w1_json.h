/* A W1 event as a line of JSON with the names of the provenance schema. */
#ifndef LAHAR_BENCH_W1_JSON_H
#define LAHAR_BENCH_W1_JSON_H

#include <stddef.h>

#include "bench/workload_w1.h"

enum {
    W1_JSON_SIZE_MAX = 4096
};

/* Writes at most W1_JSON_SIZE_MAX bytes, the newline included; returns how many.
 * No string of the workload needs escaping. */
size_t w1_json(const struct workload_w1_event *event, char *out);

#endif
