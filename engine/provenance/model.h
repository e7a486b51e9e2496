/* Between events as the store keeps them and events as NiFi thinks of them. */
#ifndef LAHAR_PROVENANCE_MODEL_H
#define LAHAR_PROVENANCE_MODEL_H

#include <string.h>

#include "engine/provenance/fields.h"
#include "io/base/arena.h"
#include "lahar/provenance.h"

/* Values of an event, with room for some more behind them. */
struct lahar_prov_values {
    lahar_value items[LAHAR_PROV_FIELD_COUNT + 4];
    size_t count;
};

/* Turns an event into values that point into it and into the arena. */
lahar_status lahar_prov_encode(const struct lahar_prov_fields *fields,
                               const lahar_prov_event *event, struct lahar_arena *arena,
                               struct lahar_prov_values *values_out, lahar_error *error);

/* The other way; what is decoded points into event and arena. */
lahar_status lahar_prov_decode(const struct lahar_prov_fields *fields, const lahar_event *event,
                               struct lahar_arena *arena, lahar_prov_event *event_out,
                               lahar_error *error);

/* The attributes as they took effect: previous ones overlaid by the updated, null removes. In
 * the order of the previous ones, then that of the new ones. Points into the pairs given. */
lahar_status lahar_prov_overlay(const lahar_pair *previous, size_t previous_count,
                                const lahar_pair *updated, size_t updated_count,
                                struct lahar_arena *arena, const lahar_pair **pairs_out,
                                size_t *count_out, lahar_error *error);

/* Names of FlowFiles as 16 bytes, in the arena. *is_canonical_out: none needs its text. */
lahar_status lahar_prov_identify_all(const lahar_bytes *names, size_t count,
                                     struct lahar_arena *arena, const lahar_uuid **uuids_out,
                                     bool *is_canonical_out, lahar_error *error);

static inline bool lahar_bytes_equal(lahar_bytes a, lahar_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

#endif
