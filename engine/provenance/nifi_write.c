/* From fields to NiFi's JSON. */
#include <stdio.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/format/time_text.h"
#include "engine/provenance/identity.h"
#include "engine/provenance/model.h"
#include "engine/provenance/nifi_json.h"
#include "io/base/error.h"

#define NANOSECONDS INT64_C(1000000) /* in a millisecond */

struct writing {
    const struct lahar_prov_fields *fields;
    const lahar_event *event;
    struct lahar_buffer *out;
    const lahar_value *strings; /* NULL: nothing was kept */
    const lahar_value *others;
    bool is_first;
};

static void put(struct lahar_buffer *out, const char *text)
{
    lahar_buffer_put(out, text, strlen(text));
}

static void put_i64(struct lahar_buffer *out, int64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)number);
    put(out, digits);
}

static void put_u64(struct lahar_buffer *out, uint64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    put(out, digits);
}

static void put_key(struct writing *writing, lahar_bytes key)
{
    lahar_buffer_put_u8(writing->out, writing->is_first ? '{' : ',');
    writing->is_first = false;
    lahar_json_put_string(writing->out, key, true);
    lahar_buffer_put_u8(writing->out, ':');
}

/* Rounds towards the past, as a clock of milliseconds would have read. */
static int64_t milliseconds_of(int64_t ns)
{
    const int64_t whole = ns / NANOSECONDS;
    return ns % NANOSECONDS < 0 ? whole - 1 : whole;
}

static bool was_kept(const lahar_value *map, const char *name)
{
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        const lahar_bytes key = map->as.map.items[i].key;
        if (key.size == strlen(name) && memcmp(key.data, name, key.size) == 0) {
            return true;
        }
    }
    return false;
}

/* --- values ------------------------------------------------------------------------------------
 */

static void put_attributes(struct lahar_buffer *out, const lahar_value *map)
{
    put(out, "{");
    for (size_t i = 0; i < map->as.map.count; i++) {
        const lahar_pair *pair = &map->as.map.items[i];
        put(out, i == 0 ? "" : ",");
        lahar_json_put_string(out, pair->key, true);
        put(out, ":");
        if (pair->is_null) {
            put(out, "null");
        } else {
            lahar_json_put_string(out, pair->value, true);
        }
    }
    put(out, "}");
}

static void put_uuid(struct lahar_buffer *out, const lahar_uuid *uuid)
{
    char text[LAHAR_PROV_UUID_TEXT_SIZE];
    lahar_prov_uuid_format(uuid, text);
    lahar_buffer_put_u8(out, '"');
    lahar_buffer_put(out, text, sizeof text);
    lahar_buffer_put_u8(out, '"');
}

static void put_flowfiles(const struct writing *writing, const struct lahar_nifi_key *key,
                          const lahar_value *uuids)
{
    struct lahar_buffer *out = writing->out;
    const lahar_value *names = lahar_prov_value(writing->fields, writing->event, key->field + 1);
    const size_t count = names != NULL ? names->as.keywords.count : uuids->as.uuids.count;
    put(out, "[");
    for (size_t i = 0; i < count; i++) {
        put(out, i == 0 ? "" : ",");
        if (names != NULL) {
            lahar_json_put_string(out, names->as.keywords.items[i], true);
        } else {
            put_uuid(out, &uuids->as.uuids.items[i]);
        }
    }
    put(out, "]");
}

static void put_value(const struct writing *writing, const struct lahar_nifi_key *key,
                      const lahar_value *value)
{
    struct lahar_buffer *out = writing->out;
    const lahar_value *name = NULL;
    if (value->is_null) {
        put(out, "null");
        return;
    }
    switch (key->kind) {
    case LAHAR_NIFI_STRING:
        lahar_json_put_string(out, value->as.bytes, true);
        break;
    case LAHAR_NIFI_FLOWFILE:
        name = lahar_prov_value(writing->fields, writing->event, LAHAR_PROV_FIELD_ENTITY_ID);
        if (name != NULL) {
            lahar_json_put_string(out, name->as.bytes, true);
        } else {
            put_uuid(out, &value->as.uuid);
        }
        break;
    case LAHAR_NIFI_FLOWFILES:
        put_flowfiles(writing, key, value);
        break;
    case LAHAR_NIFI_NUMBER:
        put_u64(out, value->as.u64);
        break;
    case LAHAR_NIFI_MILLISECONDS:
        put_i64(out,
                milliseconds_of(value->type == LAHAR_TIME ? value->as.time_ns : value->as.i64));
        break;
    default:
        put_attributes(out, value);
        break;
    }
}

/* --- keys ---------------------------------------------------------------------------------------
 */

static const lahar_value *find(const struct writing *writing, const struct lahar_nifi_key *key)
{
    const uint32_t field = key->kind == LAHAR_NIFI_UPDATED    ? LAHAR_FIELD_ATTRIBUTES
                           : key->kind == LAHAR_NIFI_PREVIOUS ? LAHAR_FIELD_PREVIOUS
                                                              : writing->fields->ids[key->field];
    const lahar_type type = key->kind == LAHAR_NIFI_UPDATED || key->kind == LAHAR_NIFI_PREVIOUS
                                ? LAHAR_MAP
                                : lahar_prov_field_type(key->field);
    const lahar_value *value = lahar_event_find(writing->event, field);
    return value != NULL && value->type == type ? value : NULL;
}

/* What every event has and no field holds. */
static void put_derived(struct writing *writing, const char *name)
{
    struct lahar_buffer *out = writing->out;
    const lahar_event *event = writing->event;
    char time[LAHAR_TIME_TEXT_SIZE_MAX];
    lahar_uuid uuid;
    if (strcmp(name, "eventOrdinal") == 0) {
        put_u64(out, event->id);
    } else if (strcmp(name, "timestamp") == 0) {
        lahar_buffer_put_u8(out, '"');
        lahar_buffer_put(out, time, lahar_time_format(event->time_ns, 3, time));
        lahar_buffer_put_u8(out, '"');
    } else {
        const struct {
            uint64_t id;
            int64_t arrival_ns;
        } seed = {event->id, event->arrival_ns};
        lahar_prov_derive_uuid(&seed, sizeof seed, &uuid);
        put_uuid(out, &uuid);
    }
}

static void put_known(struct writing *writing, const struct lahar_nifi_key *key)
{
    const lahar_bytes name = {key->name, strlen(key->name)};
    if (was_kept(writing->strings, key->name) || was_kept(writing->others, key->name)) {
        return;
    }
    if (key->kind == LAHAR_NIFI_DERIVED) {
        put_key(writing, name);
        put_derived(writing, key->name);
        return;
    }
    if (key->kind == LAHAR_NIFI_TIME) {
        put_key(writing, name);
        put_i64(writing->out, milliseconds_of(writing->event->time_ns));
        return;
    }
    const lahar_value *value = find(writing, key);
    if (value != NULL) {
        put_key(writing, name);
        put_value(writing, key, value);
    }
}

static void put_kept(struct writing *writing, const lahar_value *map, bool is_json)
{
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        const lahar_pair *pair = &map->as.map.items[i];
        put_key(writing, pair->key);
        if (pair->is_null) {
            put(writing->out, "null");
        } else if (is_json) {
            lahar_buffer_put(writing->out, pair->value.data, pair->value.size);
        } else {
            lahar_json_put_string(writing->out, pair->value, true);
        }
    }
}

lahar_status lahar_nifi_put(const struct lahar_prov_fields *fields, const lahar_event *event,
                            struct lahar_buffer *out, lahar_error *error)
{
    struct writing writing = {
        .fields = fields,
        .event = event,
        .out = out,
        .strings = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_NIFI),
        .others = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_NIFI_JSON),
        .is_first = true,
    };
    for (size_t i = 0; i < lahar_nifi_key_count; i++) {
        put_known(&writing, &lahar_nifi_keys[i]);
    }
    put_kept(&writing, writing.strings, false);
    put_kept(&writing, writing.others, true);
    lahar_buffer_put_u8(out, '}');
    return out->has_failed ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory to write event %llu",
                                        (unsigned long long)event->id)
                           : LAHAR_OK;
}
