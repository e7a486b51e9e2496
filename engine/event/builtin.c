#include "engine/event/builtin.h"

#define VISIBLE(name, type)                                                                        \
    {                                                                                              \
        name, type, true, false                                                                    \
    }
#define STORED(name, type)                                                                         \
    {                                                                                              \
        name, type, false, false                                                                   \
    }
#define HIDDEN(name, type)                                                                         \
    {                                                                                              \
        name, type, false, true                                                                    \
    }

#define MESSAGE    VISIBLE("message", LAHAR_TEXT)
#define LEVEL      VISIBLE("level", LAHAR_KEYWORD)
#define ATTRIBUTES VISIBLE("attributes", LAHAR_MAP)
#define FILENAME   VISIBLE("_filename", LAHAR_KEYWORD)
#define OFFSET     VISIBLE("_offset", LAHAR_U64)
#define RAW_RECORD VISIBLE("_raw_record", LAHAR_TEXT)
#define ERROR_TEXT VISIBLE("_error", LAHAR_TEXT)
#define FRAMING    HIDDEN("_framing", LAHAR_BYTES)
#define SHAPE      HIDDEN("_shape", LAHAR_KEYWORD)
#define PREVIOUS   VISIBLE("previous_attributes", LAHAR_MAP)

const struct lahar_builtin_field lahar_builtin_fixed[LAHAR_BUILTIN_FIXED_COUNT] = {
    MESSAGE, LEVEL, ATTRIBUTES, FILENAME, OFFSET, RAW_RECORD, ERROR_TEXT, FRAMING, SHAPE, PREVIOUS};

static const struct lahar_builtin_field log_fields[] = {
    MESSAGE, LEVEL, ATTRIBUTES, FILENAME, OFFSET, RAW_RECORD, ERROR_TEXT, FRAMING, SHAPE};

/* One claim names a range of bytes in the content repository. */
#define CLAIM(prefix)                                                                              \
    VISIBLE(prefix ".container", LAHAR_KEYWORD), VISIBLE(prefix ".section", LAHAR_KEYWORD),        \
        VISIBLE(prefix ".id", LAHAR_KEYWORD), VISIBLE(prefix ".offset", LAHAR_U64),                \
        VISIBLE(prefix ".size", LAHAR_U64)

static const struct lahar_builtin_field provenance_fields[] = {
    VISIBLE("type", LAHAR_KEYWORD),
    VISIBLE("lineage_start", LAHAR_TIME),
    VISIBLE("duration", LAHAR_I64), /* nanoseconds */
    VISIBLE("details", LAHAR_TEXT),
    VISIBLE("component", LAHAR_KEYWORD), /* an opaque id, usually but not always a uuid */
    VISIBLE("component_type", LAHAR_KEYWORD),
    VISIBLE("component_name", LAHAR_KEYWORD),
    VISIBLE("process_group", LAHAR_KEYWORD),
    VISIBLE("uuid", LAHAR_UUID),
    VISIBLE("entity_type", LAHAR_KEYWORD),
    VISIBLE("size", LAHAR_U64),
    VISIBLE("previous_size", LAHAR_U64),
    VISIBLE("parents", LAHAR_LIST_UUID),
    VISIBLE("children", LAHAR_LIST_UUID),
    VISIBLE("transit_uri", LAHAR_KEYWORD),
    VISIBLE("source_system", LAHAR_KEYWORD),
    VISIBLE("alternate_id", LAHAR_KEYWORD),
    VISIBLE("relationship", LAHAR_KEYWORD),
    VISIBLE("source_queue", LAHAR_KEYWORD),
    VISIBLE("entry_time", LAHAR_TIME),         /* when the FlowFile entered the flow */
    VISIBLE("entity_id", LAHAR_KEYWORD),       /* uuid as written, where it is written otherwise */
    VISIBLE("parent_ids", LAHAR_LIST_KEYWORD), /* the same of parents and children, all of them */
    VISIBLE("child_ids", LAHAR_LIST_KEYWORD),
    CLAIM("claim"),
    CLAIM("prev_claim"),
    ATTRIBUTES,
    PREVIOUS,
    STORED("_nifi", LAHAR_MAP),      /* of an imported document: strings and nulls that have no */
    STORED("_nifi_json", LAHAR_MAP), /* field here, and the text of its other values */
    FILENAME,
    OFFSET,
    RAW_RECORD,
    ERROR_TEXT,
    FRAMING,
    SHAPE,
};

const struct lahar_builtin_field *lahar_builtin_fields(lahar_schema schema, size_t *count_out)
{
    switch (schema) {
    case LAHAR_SCHEMA_LOG:
        *count_out = sizeof log_fields / sizeof log_fields[0];
        return log_fields;
    case LAHAR_SCHEMA_PROVENANCE:
        *count_out = sizeof provenance_fields / sizeof provenance_fields[0];
        return provenance_fields;
    default:
        *count_out = 0;
        return NULL;
    }
}
