/* Types of events, and the rules that NiFi's builder enforces for each. */
#include <string.h>

#include "io/base/error.h"
#include "lahar/provenance.h"

static const char *const type_names[] = {
    [LAHAR_PROV_CREATE] = "CREATE",
    [LAHAR_PROV_RECEIVE] = "RECEIVE",
    [LAHAR_PROV_FETCH] = "FETCH",
    [LAHAR_PROV_SEND] = "SEND",
    [LAHAR_PROV_UPLOAD] = "UPLOAD",
    [LAHAR_PROV_REMOTE_INVOCATION] = "REMOTE_INVOCATION",
    [LAHAR_PROV_DOWNLOAD] = "DOWNLOAD",
    [LAHAR_PROV_DROP] = "DROP",
    [LAHAR_PROV_EXPIRE] = "EXPIRE",
    [LAHAR_PROV_FORK] = "FORK",
    [LAHAR_PROV_JOIN] = "JOIN",
    [LAHAR_PROV_CLONE] = "CLONE",
    [LAHAR_PROV_CONTENT_MODIFIED] = "CONTENT_MODIFIED",
    [LAHAR_PROV_ATTRIBUTES_MODIFIED] = "ATTRIBUTES_MODIFIED",
    [LAHAR_PROV_ROUTE] = "ROUTE",
    [LAHAR_PROV_ADDINFO] = "ADDINFO",
    [LAHAR_PROV_REPLAY] = "REPLAY",
    [LAHAR_PROV_UNKNOWN] = "UNKNOWN",
};

const char *lahar_prov_type_name(lahar_prov_type type)
{
    const size_t index = (size_t)type;
    return index < sizeof type_names / sizeof *type_names ? type_names[index] : "UNKNOWN";
}

lahar_prov_type lahar_prov_type_find(lahar_bytes name)
{
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++) {
        if (strlen(type_names[i]) == name.size &&
            memcmp(type_names[i], name.data, name.size) == 0) {
            return (lahar_prov_type)i;
        }
    }
    return LAHAR_PROV_UNKNOWN;
}

void lahar_prov_event_init(lahar_prov_event *event)
{
    *event = (lahar_prov_event){.time_ns = LAHAR_TIME_OF_ARRIVAL,
                                .type = LAHAR_PROV_UNKNOWN,
                                .entry_ns = LAHAR_PROV_NO_TIME,
                                .lineage_start_ns = LAHAR_PROV_NO_TIME};
}

/* What an event of its type must have besides. NULL: nothing is missing. */
static const char *missing_of_type(const lahar_prov_event *event)
{
    switch (event->type) {
    case LAHAR_PROV_ADDINFO:
        return event->alternate_id.data == NULL ? "an alternate identifier" : NULL;
    case LAHAR_PROV_RECEIVE:
    case LAHAR_PROV_FETCH:
    case LAHAR_PROV_SEND:
    case LAHAR_PROV_UPLOAD:
        return event->transit_uri.data == NULL ? "a transit URI" : NULL;
    case LAHAR_PROV_ROUTE:
        return event->relationship.data == NULL ? "a relationship" : NULL;
    case LAHAR_PROV_CLONE:
    case LAHAR_PROV_FORK:
    case LAHAR_PROV_JOIN:
        return event->parent_count + event->child_count == 0 ? "a parent or a child" : NULL;
    default:
        return NULL;
    }
}

lahar_status lahar_prov_check(const lahar_prov_event *event, lahar_error *error)
{
    const char *missing = NULL;
    if ((unsigned)event->type > LAHAR_PROV_UNKNOWN) {
        return lahar_fail(error, LAHAR_INVALID, "there is no event type %d", (int)event->type);
    }
    if (event->component.data == NULL) {
        missing = "a component";
    } else if (event->component_type.data == NULL) {
        missing = "a component type";
    } else if (event->uuid.data == NULL || event->uuid.size == 0) {
        missing = "a FlowFile uuid";
    } else if (!event->has_size) {
        missing = "a size";
    } else {
        missing = missing_of_type(event);
    }
    return missing == NULL ? LAHAR_OK
                           : lahar_fail(error, LAHAR_INVALID, "an event of type %s needs %s",
                                        lahar_prov_type_name(event->type), missing);
}
