/* From the columns of a block to index entries. Each entry of a column is looked up once, then
 * posted by its code; attributes are the elements of their maps. Field numbers of the shard
 * are looked up once per declared field, and once a block for each attribute. */
#include "engine/rollover/rollover_index.h"

#include <string.h>

#include "engine/rollover/index_feed.h"
#include "io/base/error.h"

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
    feed->object_ordinal = UINT32_MAX;
    feed->provenance.is_used =
        found->schema == LAHAR_SCHEMA_PROVENANCE &&
        lahar_schema_find_field(catalog, "source_system", 13, &feed->provenance.source_system);
    lahar_buffer_init(&feed->name, allocator);
    lahar_buffer_init(&feed->values, allocator);
    lahar_buffer_init(&feed->numbers, allocator);
    lahar_buffer_init(&feed->flags, allocator);
    lahar_provenance_feed_init(&feed->provenance, allocator);
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
    lahar_release(feed->allocator, feed->fields);
    if (feed->builder != NULL) {
        lahar_shard_builder_destroy(feed->builder);
    }
    lahar_buffer_deinit(&feed->name);
    lahar_buffer_deinit(&feed->values);
    lahar_buffer_deinit(&feed->numbers);
    lahar_buffer_deinit(&feed->flags);
    lahar_provenance_feed_deinit(&feed->provenance);
    lahar_release(feed->allocator, feed);
}

const struct lahar_stream *lahar_index_feed_stream(const struct lahar_index_feed *feed)
{
    return feed->stream;
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

static uint64_t number_of(lahar_type type, uint64_t bits)
{
    switch (type) {
    case LAHAR_I64:
    case LAHAR_TIME:
        return lahar_number_from_i64((int64_t)bits);
    case LAHAR_F64: {
        double value = 0;
        memcpy(&value, &bits, sizeof value);
        return lahar_number_from_f64(value);
    }
    default:
        return lahar_number_from_u64(bits);
    }
}

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index events");
}

lahar_status lahar_index_attribute_field(struct lahar_index_feed *feed, const char *prefix,
                                         lahar_bytes key, uint32_t *field_out, lahar_error *error)
{
    lahar_buffer_clear(&feed->name);
    lahar_buffer_put(&feed->name, prefix, strlen(prefix));
    lahar_buffer_put(&feed->name, key.data, key.size);
    if (feed->name.has_failed) {
        return no_memory(error);
    }
    return lahar_shard_builder_field(feed->builder, feed->name.data, feed->name.size,
                                     LAHAR_CLASS_KEYWORD, field_out, error);
}

lahar_bytes lahar_column_entry(const struct lahar_column *column, uint32_t entry)
{
    if (column->kind == LAHAR_COLUMN_UUID) {
        return (lahar_bytes){column->data.data + (size_t)entry * sizeof(lahar_uuid),
                             sizeof(lahar_uuid)};
    }
    const uint32_t *ends = lahar_column_ends(column);
    const uint32_t start = entry == 0 ? 0 : ends[entry - 1];
    const uint32_t size = ends[entry] - start;
    return size == 0 ? (lahar_bytes){"", 0} : (lahar_bytes){column->data.data + start, size};
}

uint32_t *lahar_index_reserve_values(struct lahar_buffer *buffer, uint32_t count)
{
    lahar_buffer_clear(buffer);
    return lahar_buffer_reserve(buffer, (size_t)count * sizeof(uint32_t))
               ? (uint32_t *)(void *)buffer->data
               : NULL;
}

struct lahar_shard_column lahar_index_column(const struct lahar_index_feed *feed,
                                             const struct lahar_column *column)
{
    return (struct lahar_shard_column){.first_document = feed->first_document,
                                       .slot_count = column->slot_count,
                                       .rows = lahar_column_rows(column),
                                       .codes = lahar_column_codes(column)};
}

struct lahar_shard_entries lahar_index_entries(const struct lahar_column *column)
{
    return (struct lahar_shard_entries){
        .data = column->data.data,
        .ends = column->kind == LAHAR_COLUMN_UUID ? NULL : lahar_column_ends(column),
        .count = column->entry_count};
}

/* Whether the column has one value in each row of the block. */
static bool is_full(const struct lahar_index_feed *feed, const struct lahar_column *column)
{
    return column->slot_count == feed->row_count && !column->has_repeat_in_row;
}

/* Whether the column has the same value in all rows of an object. */
static bool is_of_objects(const struct lahar_index_feed *feed, const struct lahar_column *column)
{
    const struct lahar_column *objects = feed->objects;
    return objects != NULL && column != objects && is_full(feed, column) &&
           (column->source == objects || column->entry_count == 1 ||
            objects->entry_count == objects->slot_count);
}

static lahar_status add_object_values(struct lahar_index_feed *feed, uint32_t field,
                                      const struct lahar_column *column, lahar_error *error)
{
    const struct lahar_shard_entries entries = lahar_index_entries(column);
    return lahar_shard_builder_object_column(feed->builder, field, &entries,
                                             lahar_column_codes(column), error);
}

/* Keywords, texts or uuids. */
static lahar_status add_values(struct lahar_index_feed *feed, uint32_t field,
                               const struct lahar_column *column, bool is_presence_known,
                               lahar_error *error)
{
    uint32_t *values = lahar_index_reserve_values(&feed->values, column->entry_count + 1);
    if (values == NULL) {
        return no_memory(error);
    }
    const struct lahar_shard_entries entries = lahar_index_entries(column);
    LAHAR_TRY(lahar_shard_builder_values(feed->builder, field, &entries, values, error));
    const struct lahar_shard_column slots = lahar_index_column(feed, column);
    return lahar_shard_builder_post_column(feed->builder, field, &slots, values, is_presence_known,
                                           error);
}

static lahar_status add_numbers(struct lahar_index_feed *feed, uint32_t field, lahar_type type,
                                const struct lahar_column *column, lahar_error *error)
{
    lahar_buffer_clear(&feed->numbers);
    if (!lahar_buffer_reserve(&feed->numbers, ((size_t)column->entry_count + 1) * 8)) {
        return no_memory(error);
    }
    uint64_t *numbers = (uint64_t *)(void *)feed->numbers.data;
    const uint64_t *entries = (const uint64_t *)(const void *)column->data.data;
    for (uint32_t entry = 0; entry < column->entry_count; entry++) {
        numbers[entry] = number_of(type, entries[entry]);
    }
    const struct lahar_shard_column slots = lahar_index_column(feed, column);
    return lahar_shard_builder_number_column(feed->builder, field, &slots, numbers, error);
}

/* Which slots of a map's unnamed keys hold null: only the shapes tell. One byte a slot; NULL when
 * memory is refused. */
static const uint8_t *find_unnamed_nulls(struct lahar_index_feed *feed,
                                         const struct lahar_element *element)
{
    const struct lahar_map_scope *map = element->map;
    const struct lahar_column *unnamed = &map->elements[0]->column;
    const uint32_t *rows = lahar_column_rows(unnamed);
    const uint32_t *shape_rows = lahar_column_rows(&element->column);
    const uint32_t *shape_codes = lahar_column_codes(&element->column);
    const uint64_t *nodes = (const uint64_t *)(const void *)element->column.data.data;
    lahar_buffer_clear(&feed->flags);
    if (!lahar_buffer_reserve(&feed->flags, (size_t)unnamed->slot_count + 1)) {
        return NULL;
    }
    uint8_t *is_null = feed->flags.data;
    memset(is_null, 0, unnamed->slot_count);
    uint32_t slot = 0;
    for (uint32_t i = 0; i < element->column.slot_count && slot < unnamed->slot_count; i++) {
        const uint32_t first = slot;
        while (slot < unnamed->slot_count && rows[slot] == shape_rows[i]) {
            slot++;
        }
        if (slot == first) {
            continue;
        }
        for (uint32_t node = (uint32_t)nodes[shape_codes[i]]; node != 0;) {
            const struct lahar_shape_node *item = lahar_shapes_node(&map->shapes, node);
            if (item->label / 2 == 0) {
                is_null[first + item->occurrence] = item->label & 1;
            }
            node = item->parent;
        }
    }
    return is_null;
}

/* The pairs whose keys have no columns of their own, one by one. */
static lahar_status add_unnamed(struct lahar_index_feed *feed, const char *prefix,
                                const struct lahar_element *element, lahar_error *error)
{
    const struct lahar_element *unnamed = element->map->elements[0];
    if (unnamed->column.slot_count == 0) {
        return LAHAR_OK;
    }
    const uint8_t *is_null = find_unnamed_nulls(feed, element);
    if (is_null == NULL) {
        return no_memory(error);
    }
    for (uint32_t slot = 0; slot < unnamed->column.slot_count; slot++) {
        if (is_null[slot] != 0) {
            continue;
        }
        const lahar_bytes key =
            lahar_column_entry(&unnamed->column, lahar_column_codes(&unnamed->column)[slot]);
        const lahar_bytes bytes =
            lahar_column_entry(&unnamed->second, lahar_column_codes(&unnamed->second)[slot]);
        uint32_t field = 0;
        LAHAR_TRY(lahar_index_attribute_field(feed, prefix, key, &field, error));
        LAHAR_TRY(
            lahar_index_post(feed, field, lahar_column_rows(&unnamed->column)[slot], bytes, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_index_post(struct lahar_index_feed *feed, uint32_t field, uint32_t row,
                              lahar_bytes bytes, lahar_error *error)
{
    static const uint32_t code = 0;
    const struct lahar_shard_column slot = {feed->first_document, 1, &row, &code};
    uint32_t value = 0;
    LAHAR_TRY(
        lahar_shard_builder_value(feed->builder, field, bytes.data, bytes.size, &value, error));
    return lahar_shard_builder_post_column(feed->builder, field, &slot, &value, false, error);
}

static lahar_status add_map(struct lahar_index_feed *feed, const struct lahar_element *element,
                            lahar_error *error)
{
    const char *prefix = element->field == LAHAR_FIELD_PREVIOUS ? "prev." : "attr.";
    const struct lahar_map_scope *map = element->map;
    if (map == NULL) {
        return LAHAR_OK; /* there was no value but null */
    }
    for (uint32_t i = 1; i < map->count; i++) {
        const struct lahar_element *attribute = map->elements[i];
        if (attribute->column.slot_count == 0) {
            continue;
        }
        uint32_t field = 0;
        LAHAR_TRY(lahar_index_attribute_field(
            feed, prefix, (lahar_bytes){attribute->key, attribute->key_size}, &field, error));
        LAHAR_TRY(is_of_objects(feed, &attribute->column)
                      ? add_object_values(feed, field, &attribute->column, error)
                      : add_values(feed, field, &attribute->column, false, error));
    }
    return add_unnamed(feed, prefix, element, error);
}

lahar_status lahar_index_find_place(struct lahar_index_feed *feed, struct lahar_feed_field *place,
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

static lahar_status add_element(struct lahar_index_feed *feed, struct lahar_feed_field *place,
                                const struct lahar_element *element, lahar_error *error)
{
    if (element->type == LAHAR_MAP) {
        return add_map(feed, element, error);
    }
    if (element->column.slot_count == 0) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_index_find_place(feed, place,
                                     lahar_schema_field_name(feed->catalog, element->field),
                                     class_of(element->type), error));
    switch (element->type) {
    case LAHAR_TEXT:
        if (lahar_index_can_add_split(element)) {
            return lahar_index_add_split(feed, place->field, element, error);
        }
        return add_values(feed, place->field, &element->column, false, error);
    case LAHAR_KEYWORD:
    case LAHAR_UUID:
        if (is_of_objects(feed, &element->column)) {
            return add_object_values(feed, place->field, &element->column, error);
        }
        return &element->column == feed->objects
                   ? LAHAR_OK
                   : add_values(feed, place->field, &element->column, false, error);
    case LAHAR_LIST_UUID:
    case LAHAR_LIST_KEYWORD: {
        /* An empty list is a value too. */
        const struct lahar_shard_column lists = lahar_index_column(feed, &element->column);
        LAHAR_TRY(lahar_shard_builder_present_column(feed->builder, place->field, &lists, error));
        return add_values(feed, place->field, &element->second, true, error);
    }
    default:
        return add_numbers(feed, place->field, element->type, &element->column, error);
    }
}

/* Looks for the field of uuids that tells objects apart: of those in every row the one with most
 * different ones of which some repeat. */
static void choose_objects(struct lahar_index_feed *feed, const struct lahar_block_columns *block)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < feed->stream->field_count; i++) {
        const struct lahar_stream_field *field = &feed->stream->fields[i];
        const struct lahar_element *element = block->scope->elements[i];
        if (field->type != LAHAR_UUID || !field->is_indexed || field->is_hidden ||
            element == NULL) {
            continue;
        }
        const struct lahar_column *column = &element->column;
        if (is_full(feed, column) && column->entry_count > most &&
            column->entry_count <= column->slot_count - column->slot_count / 8) {
            most = column->entry_count;
            feed->object_ordinal = i;
        }
    }
}

/* Adds the column that tells objects apart, if there is one. */
static lahar_status add_objects(struct lahar_index_feed *feed,
                                const struct lahar_block_columns *block, lahar_error *error)
{
    feed->objects = NULL;
    if (feed->first_document == 0) {
        choose_objects(feed, block);
    }
    if (feed->object_ordinal == UINT32_MAX) {
        return LAHAR_OK;
    }
    const struct lahar_element *element = block->scope->elements[feed->object_ordinal];
    if (element == NULL || !is_full(feed, &element->column)) {
        return LAHAR_OK;
    }
    const struct lahar_column *column = &element->column;
    struct lahar_feed_field *place = &feed->fields[feed->object_ordinal];
    uint32_t *values = lahar_index_reserve_values(&feed->values, column->entry_count);
    if (values == NULL) {
        return no_memory(error);
    }
    LAHAR_TRY(lahar_index_find_place(feed, place,
                                     lahar_schema_field_name(feed->catalog, element->field),
                                     LAHAR_CLASS_UUID, error));
    const struct lahar_shard_entries entries = lahar_index_entries(column);
    LAHAR_TRY(lahar_shard_builder_values(feed->builder, place->field, &entries, values, error));
    const struct lahar_shard_column slots = lahar_index_column(feed, column);
    bool is_taken = false;
    LAHAR_TRY(lahar_shard_builder_objects(feed->builder, place->field, &slots, values,
                                          column->entry_count, &is_taken, error));
    if (is_taken) {
        feed->objects = column;
    }
    return LAHAR_OK;
}

lahar_status lahar_index_feed_add(struct lahar_index_feed *feed,
                                  const struct lahar_block_columns *block, lahar_error *error)
{
    feed->first_document = lahar_shard_builder_document_count(feed->builder);
    feed->row_count = block->row_count;
    LAHAR_TRY(lahar_shard_builder_documents(feed->builder, block->ids, block->times,
                                            block->row_count, error));
    LAHAR_TRY(add_objects(feed, block, error));
    for (uint32_t i = 0; i < feed->stream->field_count; i++) {
        const struct lahar_stream_field *field = &feed->stream->fields[i];
        const struct lahar_element *element = block->scope->elements[i];
        if (element != NULL && element->is_used && field->is_indexed && !field->is_hidden &&
            field->type != LAHAR_BYTES) {
            LAHAR_TRY(add_element(feed, &feed->fields[i], element, error));
        }
    }
    return feed->provenance.is_used ? lahar_index_add_provenance(feed, block, error) : LAHAR_OK;
}

lahar_status lahar_index_feed_finish(struct lahar_index_feed *feed, struct lahar_buffer *out,
                                     lahar_error *error)
{
    const lahar_status status = lahar_shard_builder_finish(feed->builder, out, error);
    /* The builder has forgotten its fields. */
    memset(feed->fields, 0, feed->stream->field_count * sizeof feed->fields[0]);
    feed->provenance.removed.is_known = false;
    feed->provenance.source.is_known = false;
    feed->object_ordinal = UINT32_MAX;
    feed->objects = NULL;
    return status;
}
