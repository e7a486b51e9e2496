/* Provenance events in the JSON of NiFi's site-to-site reporting task, with the keys of its REST
 * interface for what that leaves out (claims, relationship, source queue).
 *
 * A value that a field holds exactly becomes that field; any other (an unknown key, a number
 * written as 1.0, a list that holds a number) is kept as it is written, under its key, in the
 * maps _nifi and _nifi_json, and wins on the way out. */
#ifndef LAHAR_PROVENANCE_NIFI_JSON_H
#define LAHAR_PROVENANCE_NIFI_JSON_H

#include "engine/format/json.h"
#include "engine/format/record.h"
#include "engine/provenance/fields.h"

enum lahar_nifi_kind {
    LAHAR_NIFI_STRING,
    LAHAR_NIFI_FLOWFILE, /* a FlowFile's name */
    LAHAR_NIFI_FLOWFILES,
    LAHAR_NIFI_NUMBER,
    LAHAR_NIFI_TIME,         /* of the event, milliseconds */
    LAHAR_NIFI_MILLISECONDS, /* a time or a duration */
    LAHAR_NIFI_UPDATED,
    LAHAR_NIFI_PREVIOUS,
    LAHAR_NIFI_DERIVED /* made on the way out */
};

struct lahar_nifi_key {
    const char *name;
    enum lahar_nifi_kind kind;
    enum lahar_prov_field field;
};

/* In the order in which they are written. */
extern const struct lahar_nifi_key lahar_nifi_keys[];
extern const size_t lahar_nifi_key_count;

/* Maps the object that the parser has read from text into the record, which points into text and
 * into its own arena afterwards. LAHAR_INVALID: no event type; LAHAR_NO_MEMORY. */
lahar_status lahar_nifi_map(const struct lahar_prov_fields *fields, const uint8_t *text,
                            const struct lahar_json_parser *parser, struct lahar_record *record);

/* Appends an event as one object. */
lahar_status lahar_nifi_put(const struct lahar_prov_fields *fields, const lahar_event *event,
                            struct lahar_buffer *out, lahar_error *error);

#endif
