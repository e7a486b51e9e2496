/* Events out of the records of NiFi's event files. */
#ifndef LAHAR_PROVENANCE_NIFI_EVENT_H
#define LAHAR_PROVENANCE_NIFI_EVENT_H

#include "engine/provenance/nifi_record.h"
#include "lahar/provenance.h"

/* What the head of a file says for all of its records. */
struct lahar_nifi_head {
    int64_t first_id;
    int64_t base_ms; /* that times count from */
    /* Names that records give by number; NULL where the head has none. */
    const struct lahar_nifi_value *components;
    const struct lahar_nifi_value *component_types;
    const struct lahar_nifi_value *queues;
    const struct lahar_nifi_value *event_types;
};

/* LAHAR_CORRUPT: it lacks its numbers. The record stays in use. */
lahar_status lahar_nifi_head_of(const struct lahar_nifi_value *record,
                                struct lahar_nifi_head *head_out, lahar_error *error);

/* Strings of the event are those of the record, arrays are in arena. LAHAR_CORRUPT,
 * LAHAR_NO_MEMORY. */
lahar_status lahar_nifi_event_of(const struct lahar_nifi_value *record,
                                 const struct lahar_nifi_head *head, struct lahar_arena *arena,
                                 lahar_prov_event *event_out, lahar_error *error);

#endif
