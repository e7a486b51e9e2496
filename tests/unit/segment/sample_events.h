/* Seeded random events over a stream that has a field of every type, and an exact
 * comparison: the oracle is the event as it was made, kept apart from any encoding. */
#ifndef LAHAR_TESTS_SAMPLE_EVENTS_H
#define LAHAR_TESTS_SAMPLE_EVENTS_H

#include "engine/event/schema.h"
#include "io/base/arena.h"
#include "lahar/event.h"

struct samples {
    struct lahar_schema_catalog *catalog;
    uint32_t stream;
    uint64_t state; /* of the random numbers */
    uint64_t next_id;
    int64_t now_ns;
    struct lahar_arena arena; /* everything that made events point to */
};

void samples_create(struct samples *samples, uint64_t seed);
void samples_destroy(struct samples *samples);
uint64_t samples_random(struct samples *samples, uint64_t below);
/* The id of a declared field: keyword text uuid i64 u64 f64 bool time bytes uuids keywords
 * map, or a built-in name. */
uint32_t samples_field(const struct samples *samples, const char *name);
/* A random event with the next id. detail: 0 few odd values, 1 many. */
lahar_event samples_next(struct samples *samples, unsigned detail);
/* An event of these values with the next id; the values are copied and sorted. */
lahar_event samples_event(struct samples *samples, const lahar_value *values, size_t count);
/* Bytes of the row that the event makes. */
uint32_t samples_row_size(const struct samples *samples, const lahar_event *event);

lahar_bytes samples_bytes(const char *text);

/* NULL when both are the same, else what differs. */
const char *samples_difference(const lahar_event *left, const lahar_event *right);

#endif
