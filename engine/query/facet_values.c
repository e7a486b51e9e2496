/* Values of one name in an event; see facet_values.h. Follows match.c in where it looks. */
#include "engine/query/facet_values.h"

#include <string.h>

#include "engine/event/flowfile.h"
#include "engine/event/row.h"
#include "engine/format/value_text.h"
#include "io/base/error.h"

bool lahar_facet_is_possible(const struct lahar_test *test)
{
    return test->target == LAHAR_TARGET_STREAM || test->target == LAHAR_TARGET_FIELD ||
           test->target == LAHAR_TARGET_ATTRIBUTE;
}

/* A scalar that is no text. */
static lahar_status take_scalar(const struct lahar_facet_sink *sink, const lahar_value *value,
                                lahar_error *error)
{
    lahar_buffer_clear(sink->scratch);
    lahar_value_put_text(sink->scratch, value);
    if (sink->scratch->has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the text of a value");
    }
    return sink->take(sink->context, (lahar_bytes){sink->scratch->data, sink->scratch->size},
                      error);
}

static lahar_status take_value(const struct lahar_facet_sink *sink, const lahar_value *value,
                               lahar_error *error)
{
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return sink->take(sink->context, value->as.bytes, error);
    case LAHAR_LIST_KEYWORD:
        for (size_t i = 0; i < value->as.keywords.count; i++) {
            LAHAR_TRY(sink->take(sink->context, value->as.keywords.items[i], error));
        }
        return LAHAR_OK;
    case LAHAR_LIST_UUID:
        for (size_t i = 0; i < value->as.uuids.count; i++) {
            const lahar_value item = {.type = LAHAR_UUID, .as.uuid = value->as.uuids.items[i]};
            LAHAR_TRY(take_scalar(sink, &item, error));
        }
        return LAHAR_OK;
    case LAHAR_MAP:
        return LAHAR_OK;
    default:
        return take_scalar(sink, value, error);
    }
}

static const lahar_value *find_map(const lahar_event *event, uint32_t field)
{
    const lahar_value *map = lahar_event_find(event, field);
    return map != NULL && !map->is_null && map->type == LAHAR_MAP ? map : NULL;
}

/* updated: the map is of previous attributes, of which only those still in effect count. */
static lahar_status take_pairs(const struct lahar_facet_sink *sink, const lahar_value *map,
                               lahar_bytes key, bool is_inherited, const lahar_value *updated,
                               lahar_error *error)
{
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        const lahar_pair *pair = &map->as.map.items[i];
        if (pair->is_null || pair->key.size != key.size ||
            (key.size != 0 && memcmp(pair->key.data, key.data, key.size) != 0) ||
            (is_inherited && !lahar_previous_is_effective(map, i, updated))) {
            continue;
        }
        LAHAR_TRY(sink->take(sink->context, pair->value, error));
    }
    return LAHAR_OK;
}

static lahar_status take_key(const struct lahar_facet_sink *sink, const lahar_event *event,
                             uint32_t map_field, lahar_bytes key, lahar_error *error)
{
    const lahar_value *map = find_map(event, map_field);
    LAHAR_TRY(take_pairs(sink, map, key, false, NULL, error));
    if (map_field != LAHAR_FIELD_ATTRIBUTES) {
        return LAHAR_OK;
    }
    return take_pairs(sink, find_map(event, LAHAR_FIELD_PREVIOUS), key, true, map, error);
}

static lahar_status take_field(const struct lahar_test *test, const lahar_event *event,
                               const struct lahar_facet_sink *sink, lahar_error *error)
{
    const lahar_value *value = test->has_field ? lahar_event_find(event, test->field) : NULL;
    if (value != NULL && !value->is_null) {
        LAHAR_TRY(take_value(sink, value, error));
    }
    if (test->has_map) {
        LAHAR_TRY(take_key(sink, event, test->map_field, test->map_key, error));
    }
    const struct lahar_stream *stream = lahar_schema_stream(sink->catalog, event->stream);
    const bool is_declared =
        test->has_field && stream != NULL && lahar_stream_find_field(stream, test->field) != NULL;
    return value != NULL || is_declared
               ? LAHAR_OK
               : take_key(sink, event, LAHAR_FIELD_ATTRIBUTES, test->key, error);
}

lahar_status lahar_facet_values(const struct lahar_test *test, const lahar_event *event,
                                const struct lahar_facet_sink *sink, lahar_error *error)
{
    switch (test->target) {
    case LAHAR_TARGET_STREAM: {
        const struct lahar_stream *stream = lahar_schema_stream(sink->catalog, event->stream);
        const char *name = stream == NULL ? "" : stream->name;
        return sink->take(sink->context, (lahar_bytes){name, strlen(name)}, error);
    }
    case LAHAR_TARGET_ATTRIBUTE:
        return take_key(sink, event, test->field, test->key, error);
    case LAHAR_TARGET_FIELD:
        return take_field(test, event, sink, error);
    default:
        return LAHAR_OK;
    }
}
