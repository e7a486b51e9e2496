/* The fields of the provenance schema by their numbers in one store. */
#ifndef LAHAR_PROVENANCE_FIELDS_H
#define LAHAR_PROVENANCE_FIELDS_H

#include "engine/event/schema.h"

enum lahar_prov_field {
    LAHAR_PROV_FIELD_TYPE,
    LAHAR_PROV_FIELD_LINEAGE_START,
    LAHAR_PROV_FIELD_ENTRY_TIME,
    LAHAR_PROV_FIELD_DURATION,
    LAHAR_PROV_FIELD_DETAILS,
    LAHAR_PROV_FIELD_COMPONENT,
    LAHAR_PROV_FIELD_COMPONENT_TYPE,
    LAHAR_PROV_FIELD_COMPONENT_NAME,
    LAHAR_PROV_FIELD_PROCESS_GROUP,
    LAHAR_PROV_FIELD_UUID,
    LAHAR_PROV_FIELD_ENTITY_ID,
    LAHAR_PROV_FIELD_ENTITY_TYPE,
    LAHAR_PROV_FIELD_SIZE,
    LAHAR_PROV_FIELD_PREVIOUS_SIZE,
    LAHAR_PROV_FIELD_PARENTS,
    LAHAR_PROV_FIELD_PARENT_IDS,
    LAHAR_PROV_FIELD_CHILDREN,
    LAHAR_PROV_FIELD_CHILD_IDS,
    LAHAR_PROV_FIELD_TRANSIT_URI,
    LAHAR_PROV_FIELD_SOURCE_SYSTEM,
    LAHAR_PROV_FIELD_ALTERNATE_ID,
    LAHAR_PROV_FIELD_RELATIONSHIP,
    LAHAR_PROV_FIELD_SOURCE_QUEUE,
    LAHAR_PROV_FIELD_CLAIM_CONTAINER, /* the parts of a claim stand in this order */
    LAHAR_PROV_FIELD_CLAIM_SECTION,
    LAHAR_PROV_FIELD_CLAIM_ID,
    LAHAR_PROV_FIELD_CLAIM_OFFSET,
    LAHAR_PROV_FIELD_CLAIM_SIZE,
    LAHAR_PROV_FIELD_PREVIOUS_CLAIM_CONTAINER,
    LAHAR_PROV_FIELD_PREVIOUS_CLAIM_SECTION,
    LAHAR_PROV_FIELD_PREVIOUS_CLAIM_ID,
    LAHAR_PROV_FIELD_PREVIOUS_CLAIM_OFFSET,
    LAHAR_PROV_FIELD_PREVIOUS_CLAIM_SIZE,
    LAHAR_PROV_FIELD_NIFI,
    LAHAR_PROV_FIELD_NIFI_JSON,
    LAHAR_PROV_FIELD_COUNT
};

struct lahar_prov_fields {
    uint32_t ids[LAHAR_PROV_FIELD_COUNT];
};

const char *lahar_prov_field_name(enum lahar_prov_field field);
lahar_type lahar_prov_field_type(enum lahar_prov_field field);

/* LAHAR_INVALID when the store has no stream of the provenance schema, or one of before some
 * field was added. */
lahar_status lahar_prov_fields_find(const struct lahar_schema_catalog *catalog, uint32_t stream,
                                    struct lahar_prov_fields *fields_out, lahar_error *error);

/* The value of a field, NULL when absent or null. */
const lahar_value *lahar_prov_value(const struct lahar_prov_fields *fields,
                                    const lahar_event *event, enum lahar_prov_field field);

#endif
