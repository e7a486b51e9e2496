#include "bench/load_event.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/text.h"

#define NS_PER_MS INT64_C(1000000)

/* The fields of W1, in the order in which values are filled. */
enum {
    W1_TYPE,
    W1_LINEAGE_START,
    W1_COMPONENT,
    W1_COMPONENT_TYPE,
    W1_UUID,
    W1_SIZE,
    W1_CLAIM_CONTAINER,
    W1_CLAIM_SECTION,
    W1_CLAIM_ID,
    W1_CLAIM_OFFSET,
    W1_CLAIM_SIZE,
    W1_ATTRIBUTES,
    W1_TRANSIT_URI, /* these two only on some events, so they come last */
    W1_PREVIOUS,
    W1_FIELD_COUNT
};

static const struct {
    const char *name;
    lahar_type type;
} W1_FIELDS[W1_FIELD_COUNT] = {
    [W1_TYPE] = {"type", LAHAR_KEYWORD},
    [W1_LINEAGE_START] = {"lineage_start", LAHAR_TIME},
    [W1_COMPONENT] = {"component", LAHAR_KEYWORD},
    [W1_COMPONENT_TYPE] = {"component_type", LAHAR_KEYWORD},
    [W1_UUID] = {"uuid", LAHAR_UUID},
    [W1_SIZE] = {"size", LAHAR_U64},
    [W1_CLAIM_CONTAINER] = {"claim.container", LAHAR_KEYWORD},
    [W1_CLAIM_SECTION] = {"claim.section", LAHAR_KEYWORD},
    [W1_CLAIM_ID] = {"claim.id", LAHAR_KEYWORD},
    [W1_CLAIM_OFFSET] = {"claim.offset", LAHAR_U64},
    [W1_CLAIM_SIZE] = {"claim.size", LAHAR_U64},
    [W1_ATTRIBUTES] = {"attributes", LAHAR_MAP},
    [W1_TRANSIT_URI] = {"transit_uri", LAHAR_KEYWORD},
    [W1_PREVIOUS] = {"previous_attributes", LAHAR_MAP},
};

_Static_assert((int)W1_FIELD_COUNT <= (int)LOAD_VALUES_MAX, "a W1 event has room");

bool load_workload_find(const char *name, enum load_workload *workload_out)
{
    if (strcasecmp(name, "W1") == 0) {
        *workload_out = LOAD_W1;
        return true;
    }
    *workload_out = LOAD_W2;
    return strcasecmp(name, "W2") == 0;
}

lahar_status load_event_maker_init(struct load_event_maker *maker, enum load_workload workload,
                                   uint64_t seed, lahar_store *store, uint32_t stream,
                                   lahar_error *error)
{
    *maker = (struct load_event_maker){.workload = workload, .stream = stream};
    if (workload == LOAD_W2) {
        workload_w2_init(&maker->w2, seed);
        return LAHAR_OK;
    }
    for (int i = 0; i < W1_FIELD_COUNT; i++) {
        const lahar_status status =
            lahar_field_id(store, W1_FIELDS[i].name, &maker->fields[i], error);
        if (status != LAHAR_OK) {
            return status;
        }
    }
    maker->w1 = workload_w1_create(seed);
    if (maker->w1 == NULL) {
        *error = (lahar_error){.status = LAHAR_NO_MEMORY, .message = "no memory for W1"};
        return LAHAR_NO_MEMORY;
    }
    return LAHAR_OK;
}

void load_event_maker_deinit(struct load_event_maker *maker)
{
    workload_w1_destroy(maker->w1);
    maker->w1 = NULL;
}

static lahar_value *set_field(struct load_event_maker *maker, size_t place, int field)
{
    lahar_value *value = &maker->values[place];
    value->field = maker->fields[field];
    value->type = W1_FIELDS[field].type;
    value->is_null = false;
    return value;
}

static void set_bytes(struct load_event_maker *maker, int field, lahar_bytes bytes)
{
    set_field(maker, (size_t)field, field)->as.bytes = bytes;
}

static size_t make_w1(struct load_event_maker *maker, uint64_t index)
{
    struct workload_w1_event *event = &maker->w1_event;
    workload_w1_event(maker->w1, index, event);
    (void)text_uuid(maker->text, event->component.bytes);
    set_bytes(maker, W1_TYPE, event->type);
    set_field(maker, W1_LINEAGE_START, W1_LINEAGE_START)->as.time_ns =
        event->lineage_start_ms * NS_PER_MS;
    set_bytes(maker, W1_COMPONENT, (lahar_bytes){.data = maker->text, .size = 36});
    set_bytes(maker, W1_COMPONENT_TYPE, event->component_type);
    set_field(maker, W1_UUID, W1_UUID)->as.uuid = event->uuid;
    set_field(maker, W1_SIZE, W1_SIZE)->as.u64 = event->size;
    set_bytes(maker, W1_CLAIM_CONTAINER, event->claim_container);
    set_bytes(maker, W1_CLAIM_SECTION, event->claim_section);
    set_bytes(maker, W1_CLAIM_ID, event->claim_id);
    set_field(maker, W1_CLAIM_OFFSET, W1_CLAIM_OFFSET)->as.u64 = event->claim_offset;
    set_field(maker, W1_CLAIM_SIZE, W1_CLAIM_SIZE)->as.u64 = event->size;
    lahar_value *attributes = set_field(maker, W1_ATTRIBUTES, W1_ATTRIBUTES);
    attributes->as.map.items = event->updated;
    attributes->as.map.count = WORKLOAD_W1_UPDATED;
    size_t count = W1_TRANSIT_URI;
    if (event->transit_uri.size > 0) {
        set_field(maker, count++, W1_TRANSIT_URI)->as.bytes = event->transit_uri;
    }
    if (event->previous_count > 0) {
        lahar_value *previous = set_field(maker, count++, W1_PREVIOUS);
        previous->as.map.items = event->previous;
        previous->as.map.count = event->previous_count;
    }
    return count;
}

static void make_w2(struct load_event_maker *maker, uint64_t index, lahar_event *event_out)
{
    struct workload_w2_line line;
    workload_w2_line(&maker->w2, index, &line);
    const size_t size = workload_w2_text(&line, maker->text) - 1; /* without the newline */
    maker->values[0] = (lahar_value){
        .field = LAHAR_FIELD_MESSAGE,
        .type = LAHAR_TEXT,
        .as.bytes = {.data = maker->text, .size = size},
    };
    event_out->time_ns = line.time_ms * NS_PER_MS;
    event_out->value_count = 1;
}

void load_event_make(struct load_event_maker *maker, uint64_t index, lahar_event *event_out)
{
    *event_out = (lahar_event){.stream = maker->stream, .values = maker->values};
    if (maker->workload == LOAD_W2) {
        make_w2(maker, index, event_out);
        return;
    }
    event_out->value_count = make_w1(maker, index);
    event_out->time_ns = maker->w1_event.time_ms * NS_PER_MS;
}
