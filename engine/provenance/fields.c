#include "engine/provenance/fields.h"

#include <string.h>

#include "engine/event/row.h"
#include "io/base/error.h"

static const struct {
    const char *name;
    lahar_type type;
} known[LAHAR_PROV_FIELD_COUNT] = {
    [LAHAR_PROV_FIELD_TYPE] = {"type", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_LINEAGE_START] = {"lineage_start", LAHAR_TIME},
    [LAHAR_PROV_FIELD_ENTRY_TIME] = {"entry_time", LAHAR_TIME},
    [LAHAR_PROV_FIELD_DURATION] = {"duration", LAHAR_I64},
    [LAHAR_PROV_FIELD_DETAILS] = {"details", LAHAR_TEXT},
    [LAHAR_PROV_FIELD_COMPONENT] = {"component", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_COMPONENT_TYPE] = {"component_type", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_COMPONENT_NAME] = {"component_name", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_PROCESS_GROUP] = {"process_group", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_UUID] = {"uuid", LAHAR_UUID},
    [LAHAR_PROV_FIELD_ENTITY_ID] = {"entity_id", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_ENTITY_TYPE] = {"entity_type", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_SIZE] = {"size", LAHAR_U64},
    [LAHAR_PROV_FIELD_PREVIOUS_SIZE] = {"previous_size", LAHAR_U64},
    [LAHAR_PROV_FIELD_PARENTS] = {"parents", LAHAR_LIST_UUID},
    [LAHAR_PROV_FIELD_PARENT_IDS] = {"parent_ids", LAHAR_LIST_KEYWORD},
    [LAHAR_PROV_FIELD_CHILDREN] = {"children", LAHAR_LIST_UUID},
    [LAHAR_PROV_FIELD_CHILD_IDS] = {"child_ids", LAHAR_LIST_KEYWORD},
    [LAHAR_PROV_FIELD_TRANSIT_URI] = {"transit_uri", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_SOURCE_SYSTEM] = {"source_system", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_ALTERNATE_ID] = {"alternate_id", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_RELATIONSHIP] = {"relationship", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_SOURCE_QUEUE] = {"source_queue", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_CLAIM_CONTAINER] = {"claim.container", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_CLAIM_SECTION] = {"claim.section", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_CLAIM_ID] = {"claim.id", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_CLAIM_OFFSET] = {"claim.offset", LAHAR_U64},
    [LAHAR_PROV_FIELD_CLAIM_SIZE] = {"claim.size", LAHAR_U64},
    [LAHAR_PROV_FIELD_PREVIOUS_CLAIM_CONTAINER] = {"prev_claim.container", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_PREVIOUS_CLAIM_SECTION] = {"prev_claim.section", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_PREVIOUS_CLAIM_ID] = {"prev_claim.id", LAHAR_KEYWORD},
    [LAHAR_PROV_FIELD_PREVIOUS_CLAIM_OFFSET] = {"prev_claim.offset", LAHAR_U64},
    [LAHAR_PROV_FIELD_PREVIOUS_CLAIM_SIZE] = {"prev_claim.size", LAHAR_U64},
    [LAHAR_PROV_FIELD_NIFI] = {"_nifi", LAHAR_MAP},
    [LAHAR_PROV_FIELD_NIFI_JSON] = {"_nifi_json", LAHAR_MAP},
};

const char *lahar_prov_field_name(enum lahar_prov_field field)
{
    return known[field].name;
}

lahar_type lahar_prov_field_type(enum lahar_prov_field field)
{
    return known[field].type;
}

lahar_status lahar_prov_fields_find(const struct lahar_schema_catalog *catalog, uint32_t stream,
                                    struct lahar_prov_fields *fields_out, lahar_error *error)
{
    const struct lahar_stream *found = lahar_schema_stream(catalog, stream);
    if (found == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "there is no stream %u", stream);
    }
    for (size_t i = 0; i < LAHAR_PROV_FIELD_COUNT; i++) {
        const struct lahar_stream_field *field = NULL;
        if (lahar_schema_find_field(catalog, known[i].name, strlen(known[i].name),
                                    &fields_out->ids[i])) {
            field = lahar_stream_find_field(found, fields_out->ids[i]);
        }
        if (field == NULL || field->type != known[i].type) {
            return lahar_fail(error, LAHAR_INVALID,
                              "stream \"%s\" is not of the provenance schema: no field \"%s\"",
                              found->name, known[i].name);
        }
    }
    return LAHAR_OK;
}

const lahar_value *lahar_prov_value(const struct lahar_prov_fields *fields,
                                    const lahar_event *event, enum lahar_prov_field field)
{
    const lahar_value *value = lahar_event_find(event, fields->ids[field]);
    return value != NULL && !value->is_null && value->type == known[field].type ? value : NULL;
}
