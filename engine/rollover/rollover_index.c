/* From events to index entries. Field numbers of the shard are looked up once per
 * declared field; attribute keys, which are open-ended, are remembered by their place
 * in the map, because the events of a stream mostly carry the same attributes in the
 * same order. */
#include "engine/rollover/rollover_index.h"

#include <string.h>

#include "engine/event/flowfile.h"
#include "engine/event/row.h"
#include "io/base/error.h"

enum {
    HINT_COUNT = 64,   /* attributes of an event that are remembered by place */
    HINT_KEY_SIZE = 52 /* longer keys are looked up each time */
};

struct attribute_hint {
    uint32_t field; /* of the shard */
    uint8_t key_size;
    uint8_t key[HINT_KEY_SIZE];
};

/* A declared field and its place in the shard. */
struct feed_field {
    uint32_t field; /* of the shard, once is_known */
    bool is_known;
    struct attribute_hint *hints; /* of a map; HINT_COUNT of them, a key size of 0 is unused */
};

/* What is indexed of a provenance stream besides its fields. */
struct provenance_feed {
    bool is_used;
    uint32_t source_system;      /* field of the event */
    struct feed_field removed;   /* keys of attributes that were removed */
    struct feed_field source;    /* uuids in identifiers of source systems */
    struct feed_field inherited; /* previous attributes still in effect, as attributes */
};

struct lahar_index_feed {
    const struct lahar_schema_catalog *catalog;
    const struct lahar_stream *stream;
    struct lahar_shard_builder *builder;
    struct feed_field *fields; /* as many as the stream has, in their order */
    struct provenance_feed provenance;
    struct lahar_buffer name; /* scratch for "attr.<key>" */
    const lahar_allocator *allocator;
};

lahar_status lahar_index_feed_create(const struct lahar_schema_catalog *catalog, uint32_t stream,
                                     const lahar_allocator *allocator,
                                     struct lahar_index_feed **feed_out, lahar_error *error)
{
    *feed_out = NULL;
    const struct lahar_stream *found = lahar_schema_stream(catalog, stream);
    if (found == NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "events of an unknown stream %u", stream);
    }
    struct lahar_index_feed *feed = lahar_allocate_zeroed(allocator, 1, sizeof *feed);
    if (feed == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index stream \"%s\"", found->name);
    }
    feed->catalog = catalog;
    feed->stream = found;
    feed->allocator = allocator;
    feed->provenance.is_used =
        found->schema == LAHAR_SCHEMA_PROVENANCE &&
        lahar_schema_find_field(catalog, "source_system", 13, &feed->provenance.source_system);
    lahar_buffer_init(&feed->name, allocator);
    feed->fields = lahar_allocate_zeroed(allocator, found->field_count, sizeof *feed->fields);
    lahar_status status = LAHAR_OK;
    if (feed->fields == NULL) {
        status =
            lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index stream \"%s\"", found->name);
    } else {
        status = lahar_shard_builder_create(allocator, &feed->builder, error);
    }
    if (status != LAHAR_OK) {
        lahar_index_feed_destroy(feed);
        return status;
    }
    *feed_out = feed;
    return LAHAR_OK;
}

void lahar_index_feed_destroy(struct lahar_index_feed *feed)
{
    if (feed == NULL) {
        return;
    }
    for (uint32_t i = 0; feed->fields != NULL && i < feed->stream->field_count; i++) {
        lahar_release(feed->allocator, feed->fields[i].hints);
    }
    lahar_release(feed->allocator, feed->fields);
    lahar_release(feed->allocator, feed->provenance.inherited.hints);
    if (feed->builder != NULL) {
        lahar_shard_builder_destroy(feed->builder);
    }
    lahar_buffer_deinit(&feed->name);
    lahar_release(feed->allocator, feed);
}

static enum lahar_field_class class_of(lahar_type type)
{
    switch (type) {
    case LAHAR_TEXT:
        return LAHAR_CLASS_TEXT;
    case LAHAR_UUID:
    case LAHAR_LIST_UUID:
        return LAHAR_CLASS_UUID;
    case LAHAR_I64:
    case LAHAR_U64:
    case LAHAR_F64:
    case LAHAR_BOOL:
    case LAHAR_TIME:
        return LAHAR_CLASS_NUMBER;
    case LAHAR_KEYWORD:
    case LAHAR_LIST_KEYWORD:
    case LAHAR_MAP:
    case LAHAR_BYTES:
        break;
    }
    return LAHAR_CLASS_KEYWORD;
}

static uint64_t number_of(const lahar_value *value)
{
    switch (value->type) {
    case LAHAR_I64:
        return lahar_number_from_i64(value->as.i64);
    case LAHAR_F64:
        return lahar_number_from_f64(value->as.f64);
    case LAHAR_BOOL:
        return lahar_number_from_u64(value->as.boolean ? 1 : 0);
    case LAHAR_TIME:
        return lahar_number_from_i64(value->as.time_ns);
    default:
        return lahar_number_from_u64(value->as.u64);
    }
}

/* The shard's field for an attribute's key. */
static lahar_status attribute_field(struct lahar_index_feed *feed, const char *prefix,
                                    lahar_bytes key, uint32_t *field_out, lahar_error *error)
{
    lahar_buffer_clear(&feed->name);
    lahar_buffer_put(&feed->name, prefix, strlen(prefix));
    lahar_buffer_put(&feed->name, key.data, key.size);
    if (feed->name.has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an attribute's name");
    }
    return lahar_shard_builder_field(feed->builder, feed->name.data, feed->name.size,
                                     LAHAR_CLASS_KEYWORD, field_out, error);
}

/* is_inherited: previous attributes as far as they are still in effect, under the names of
 * attributes; updated may be NULL. */
static lahar_status add_pairs(struct lahar_index_feed *feed, struct feed_field *place,
                              const lahar_value *value, bool is_inherited,
                              const lahar_value *updated, lahar_error *error)
{
    const char *prefix = value->field == LAHAR_FIELD_PREVIOUS && !is_inherited ? "prev." : "attr.";
    if (place->hints == NULL) {
        place->hints = lahar_allocate_zeroed(feed->allocator, HINT_COUNT, sizeof *place->hints);
        if (place->hints == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index attributes");
        }
    }
    for (size_t i = 0; i < value->as.map.count; i++) {
        const lahar_pair *pair = &value->as.map.items[i];
        if (pair->is_null || (is_inherited && !lahar_previous_is_effective(value, i, updated))) {
            continue;
        }
        struct attribute_hint *hint = &place->hints[i % HINT_COUNT];
        uint32_t field = hint->field;
        const bool is_short = pair->key.size != 0 && pair->key.size <= HINT_KEY_SIZE;
        if (!is_short || hint->key_size != pair->key.size ||
            memcmp(hint->key, pair->key.data, pair->key.size) != 0) {
            LAHAR_TRY(attribute_field(feed, prefix, pair->key, &field, error));
            if (is_short) {
                hint->field = field;
                hint->key_size = (uint8_t)pair->key.size;
                memcpy(hint->key, pair->key.data, pair->key.size);
            }
        }
        LAHAR_TRY(lahar_shard_builder_keyword(feed->builder, field, pair->value.data,
                                              pair->value.size, error));
    }
    return LAHAR_OK;
}

static lahar_status add_map(struct lahar_index_feed *feed, struct feed_field *place,
                            const lahar_value *value, lahar_error *error)
{
    return add_pairs(feed, place, value, false, NULL, error);
}

/* The field of that name and class, looked up once. */
static lahar_status find_place(struct lahar_index_feed *feed, struct feed_field *place,
                               const char *name, enum lahar_field_class field_class,
                               lahar_error *error)
{
    if (!place->is_known) {
        LAHAR_TRY(lahar_shard_builder_field(feed->builder, name, strlen(name), field_class,
                                            &place->field, error));
        place->is_known = true;
    }
    return LAHAR_OK;
}

static lahar_status add_removed(struct lahar_index_feed *feed, const lahar_value *updated,
                                lahar_error *error)
{
    struct feed_field *place = &feed->provenance.removed;
    for (size_t i = 0; i < updated->as.map.count; i++) {
        const lahar_pair *pair = &updated->as.map.items[i];
        if (pair->is_null) {
            LAHAR_TRY(find_place(feed, place, "_removed", LAHAR_CLASS_KEYWORD, error));
            LAHAR_TRY(lahar_shard_builder_keyword(feed->builder, place->field, pair->key.data,
                                                  pair->key.size, error));
        }
    }
    return LAHAR_OK;
}

static const lahar_value *find_value(const lahar_event *event, uint32_t field, lahar_type type)
{
    const lahar_value *value = lahar_event_find(event, field);
    return value != NULL && !value->is_null && value->type == type ? value : NULL;
}

static lahar_status add_provenance(struct lahar_index_feed *feed, const lahar_event *event,
                                   lahar_error *error)
{
    struct provenance_feed *provenance = &feed->provenance;
    const lahar_value *updated = find_value(event, LAHAR_FIELD_ATTRIBUTES, LAHAR_MAP);
    const lahar_value *previous = find_value(event, LAHAR_FIELD_PREVIOUS, LAHAR_MAP);
    const lahar_value *source = find_value(event, provenance->source_system, LAHAR_KEYWORD);
    lahar_uuid uuid;
    if (updated != NULL) {
        LAHAR_TRY(add_removed(feed, updated, error));
    }
    if (previous != NULL) {
        LAHAR_TRY(add_pairs(feed, &provenance->inherited, previous, true, updated, error));
    }
    if (source != NULL && lahar_source_system_uuid(source->as.bytes, &uuid)) {
        LAHAR_TRY(find_place(feed, &provenance->source, "source_system", LAHAR_CLASS_UUID, error));
        LAHAR_TRY(lahar_shard_builder_uuid(feed->builder, provenance->source.field, &uuid, error));
    }
    return LAHAR_OK;
}

static lahar_status add_list(struct lahar_index_feed *feed, uint32_t field,
                             const lahar_value *value, lahar_error *error)
{
    LAHAR_TRY(lahar_shard_builder_present(feed->builder, field, error));
    if (value->type == LAHAR_LIST_UUID) {
        for (size_t i = 0; i < value->as.uuids.count; i++) {
            LAHAR_TRY(
                lahar_shard_builder_uuid(feed->builder, field, &value->as.uuids.items[i], error));
        }
        return LAHAR_OK;
    }
    for (size_t i = 0; i < value->as.keywords.count; i++) {
        const lahar_bytes *item = &value->as.keywords.items[i];
        LAHAR_TRY(lahar_shard_builder_keyword(feed->builder, field, item->data, item->size, error));
    }
    return LAHAR_OK;
}

static lahar_status add_value(struct lahar_index_feed *feed, struct feed_field *place,
                              const lahar_value *value, lahar_error *error)
{
    if (value->type == LAHAR_MAP) {
        return add_map(feed, place, value, error);
    }
    if (!place->is_known) {
        const char *name = lahar_schema_field_name(feed->catalog, value->field);
        LAHAR_TRY(lahar_shard_builder_field(feed->builder, name, strlen(name),
                                            class_of(value->type), &place->field, error));
        place->is_known = true;
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
        return lahar_shard_builder_keyword(feed->builder, place->field, value->as.bytes.data,
                                           value->as.bytes.size, error);
    case LAHAR_TEXT:
        LAHAR_TRY(lahar_shard_builder_present(feed->builder, place->field, error));
        return lahar_shard_builder_text(feed->builder, place->field, value->as.bytes.data,
                                        value->as.bytes.size, error);
    case LAHAR_UUID:
        return lahar_shard_builder_uuid(feed->builder, place->field, &value->as.uuid, error);
    case LAHAR_LIST_UUID:
    case LAHAR_LIST_KEYWORD:
        return add_list(feed, place->field, value, error);
    default:
        return lahar_shard_builder_number(feed->builder, place->field, number_of(value), error);
    }
}

lahar_status lahar_index_feed_add(struct lahar_index_feed *feed, const lahar_event *event,
                                  lahar_error *error)
{
    LAHAR_TRY(lahar_shard_builder_document(feed->builder, event->id, event->time_ns, error));
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        const uint32_t ordinal = lahar_stream_ordinal(feed->stream, value->field);
        if (ordinal == LAHAR_ORDINAL_NONE || value->is_null || value->type == LAHAR_BYTES) {
            continue;
        }
        const struct lahar_stream_field *field = &feed->stream->fields[ordinal];
        if (!field->is_indexed || field->is_hidden) {
            continue;
        }
        LAHAR_TRY(add_value(feed, &feed->fields[ordinal], value, error));
    }
    return feed->provenance.is_used ? add_provenance(feed, event, error) : LAHAR_OK;
}

lahar_status lahar_index_feed_finish(struct lahar_index_feed *feed, struct lahar_buffer *out,
                                     lahar_error *error)
{
    return lahar_shard_builder_finish(feed->builder, out, error);
}
