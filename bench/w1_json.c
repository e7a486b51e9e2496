#include "bench/w1_json.h"

#include <time.h>

#include "bench/text.h"

static char *put_quoted(char *at, lahar_bytes bytes)
{
    *at++ = '"';
    at = text_bytes(at, bytes.data, bytes.size);
    *at++ = '"';
    return at;
}

/* "2024-05-17T00:00:00.000Z", in quotes. */
static char *put_time(char *at, int64_t time_ms)
{
    struct tm parts;
    const time_t seconds = (time_t)(time_ms / 1000);
    (void)gmtime_r(&seconds, &parts);
    *at++ = '"';
    at = text_padded(at, (uint64_t)parts.tm_year + 1900, 4);
    *at++ = '-';
    at = text_padded(at, (uint64_t)parts.tm_mon + 1, 2);
    *at++ = '-';
    at = text_padded(at, (uint64_t)parts.tm_mday, 2);
    *at++ = 'T';
    at = text_padded(at, (uint64_t)parts.tm_hour, 2);
    *at++ = ':';
    at = text_padded(at, (uint64_t)parts.tm_min, 2);
    *at++ = ':';
    at = text_padded(at, (uint64_t)parts.tm_sec, 2);
    *at++ = '.';
    at = text_padded(at, (uint64_t)(time_ms % 1000), 3);
    return text_string(at, "Z\"");
}

static char *put_map(char *at, const lahar_pair *pairs, size_t count)
{
    *at++ = '{';
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *at++ = ',';
        }
        at = put_quoted(at, pairs[i].key);
        *at++ = ':';
        at = put_quoted(at, pairs[i].value);
    }
    *at++ = '}';
    return at;
}

static char *put_claim(char *at, const struct workload_w1_event *event)
{
    at = text_string(at, ",\"claim\":{\"container\":");
    at = put_quoted(at, event->claim_container);
    at = text_string(at, ",\"section\":");
    at = put_quoted(at, event->claim_section);
    at = text_string(at, ",\"id\":");
    at = put_quoted(at, event->claim_id);
    at = text_string(at, ",\"offset\":");
    at = text_decimal(at, event->claim_offset);
    at = text_string(at, ",\"size\":");
    at = text_decimal(at, event->size);
    *at++ = '}';
    return at;
}

size_t w1_json(const struct workload_w1_event *event, char *out)
{
    char *at = text_string(out, "{\"time\":");
    at = put_time(at, event->time_ms);
    at = text_string(at, ",\"type\":");
    at = put_quoted(at, event->type);
    at = text_string(at, ",\"lineage_start\":");
    at = put_time(at, event->lineage_start_ms);
    at = text_string(at, ",\"component\":\"");
    at = text_uuid(at, event->component.bytes);
    at = text_string(at, "\",\"component_type\":");
    at = put_quoted(at, event->component_type);
    at = text_string(at, ",\"uuid\":\"");
    at = text_uuid(at, event->uuid.bytes);
    at = text_string(at, "\",\"size\":");
    at = text_decimal(at, event->size);
    if (event->transit_uri.size > 0) {
        at = text_string(at, ",\"transit_uri\":");
        at = put_quoted(at, event->transit_uri);
    }
    at = put_claim(at, event);
    at = text_string(at, ",\"attributes\":");
    at = put_map(at, event->updated, WORKLOAD_W1_UPDATED);
    if (event->previous_count > 0) {
        at = text_string(at, ",\"previous_attributes\":");
        at = put_map(at, event->previous, event->previous_count);
    }
    at = text_string(at, "}\n");
    return (size_t)(at - out);
}
