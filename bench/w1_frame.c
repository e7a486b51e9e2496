#include "bench/w1_frame.h"

#include <string.h>

#include "bench/text.h"

enum {
    SCALARS_SIZE = 7 * 8 + 1,
    STRINGS = 7
};

static char *put_u64(char *at, uint64_t value)
{
    return text_bytes(at, &value, sizeof value);
}

static char *put_string(char *at, lahar_bytes string)
{
    const uint16_t size = (uint16_t)string.size;
    at = text_bytes(at, &size, sizeof size);
    return size == 0 ? at : text_bytes(at, string.data, size);
}

static char *put_pairs(char *at, const lahar_pair *pairs, size_t count)
{
    *at++ = (char)count;
    for (size_t i = 0; i < count; i++) {
        at = put_string(at, pairs[i].key);
        at = put_string(at, pairs[i].value);
    }
    return at;
}

size_t w1_frame(const struct workload_w1_event *event, void *out)
{
    char component[36];
    char flowfile[36];
    (void)text_uuid(component, event->component.bytes);
    (void)text_uuid(flowfile, event->uuid.bytes);
    char *const begin = (char *)out + sizeof(uint32_t);
    char *at = put_u64(begin, event->index);
    at = put_u64(at, (uint64_t)event->time_ms);
    at = put_u64(at, (uint64_t)event->lineage_start_ms);
    at = put_u64(at, (uint64_t)event->lineage_start_ms);
    at = put_u64(at, event->size);
    at = put_u64(at, event->claim_offset);
    at = put_u64(at, event->size);
    *at++ = (char)event->type_rank;
    at = put_string(at, (lahar_bytes){.data = component, .size = sizeof component});
    at = put_string(at, event->component_type);
    at = put_string(at, (lahar_bytes){.data = flowfile, .size = sizeof flowfile});
    at = put_string(at, event->transit_uri);
    at = put_string(at, event->claim_container);
    at = put_string(at, event->claim_section);
    at = put_string(at, event->claim_id);
    at = put_pairs(at, event->previous, event->previous_count);
    at = put_pairs(at, event->updated, WORKLOAD_W1_UPDATED);
    const uint32_t size = (uint32_t)(at - begin);
    memcpy(out, &size, sizeof size);
    return sizeof size + size;
}

/* What is left of a payload; at is NULL once it ended too early. */
struct rest {
    const uint8_t *at;
    size_t size;
};

static lahar_bytes take(struct rest *rest, size_t size)
{
    if (rest->at == NULL || rest->size < size) {
        rest->at = NULL;
        return (lahar_bytes){.data = NULL, .size = 0};
    }
    const lahar_bytes taken = {.data = rest->at, .size = size};
    rest->at += size;
    rest->size -= size;
    return taken;
}

static lahar_bytes take_string(struct rest *rest)
{
    uint16_t size = 0;
    const lahar_bytes prefix = take(rest, sizeof size);
    if (rest->at != NULL) {
        memcpy(&size, prefix.data, sizeof size);
    }
    return take(rest, size);
}

/* Returns the value of `filename`, if it is among them. */
static lahar_bytes take_pairs(struct rest *rest)
{
    static const char KEY[] = "filename";
    lahar_bytes filename = {.data = NULL, .size = 0};
    const lahar_bytes prefix = take(rest, 1);
    const size_t count = rest->at == NULL ? 0 : *(const uint8_t *)prefix.data;
    for (size_t i = 0; i < count && rest->at != NULL; i++) {
        const lahar_bytes key = take_string(rest);
        const lahar_bytes value = take_string(rest);
        if (rest->at != NULL && key.size == sizeof KEY - 1 &&
            memcmp(key.data, KEY, sizeof KEY - 1) == 0) {
            filename = value;
        }
    }
    return filename;
}

bool w1_frame_read(const void *payload, size_t size, struct w1_frame_keys *keys_out)
{
    struct rest rest = {.at = payload, .size = size};
    const lahar_bytes scalars = take(&rest, SCALARS_SIZE);
    lahar_bytes strings[STRINGS];
    if (rest.at == NULL) {
        return false;
    }
    for (size_t i = 0; i < STRINGS; i++) {
        strings[i] = take_string(&rest);
    }
    (void)take_pairs(&rest);
    const lahar_bytes filename = take_pairs(&rest);
    if (rest.at == NULL || rest.size != 0) {
        return false;
    }
    const uint8_t *scalar = scalars.data;
    memcpy(&keys_out->id, scalar, sizeof keys_out->id);
    memcpy(&keys_out->time_ms, scalar + sizeof keys_out->id, sizeof keys_out->time_ms);
    keys_out->type = scalar[SCALARS_SIZE - 1];
    keys_out->component = strings[0];
    keys_out->flowfile = strings[2];
    keys_out->filename = filename;
    return true;
}
