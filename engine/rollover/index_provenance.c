/* What an index holds of provenance events besides their fields: attributes inherited from before
 * the event, keys that were removed, FlowFiles named in identifiers of other systems.
 *
 * Which previous attributes are still in effect depends on the keys of two maps of one row. The
 * keys of a row are known from its shape, of which a block has few, so they are compared once a
 * pair of shapes in the common case that none is in effect. Keys without columns of their own
 * are read from their slots, row by row. */
#include <string.h>

#include "engine/event/flowfile.h"
#include "engine/rollover/index_feed.h"
#include "io/base/error.h"

/* An attribute of the previous map under its name as an attribute. */
struct inherited_element {
    uint32_t start; /* of its values in the feed's */
    uint32_t field; /* of the shard, once is_known */
    bool is_known;
};

/* The keys of a map, row by row. */
struct map_walk {
    const struct lahar_element *element; /* NULL: the map has no value in this block */
    struct lahar_buffer *pairs;
    struct lahar_buffer *nodes;
    uint32_t slot;         /* the next of the map's */
    uint32_t unnamed_slot; /* the next of its unnamed keys' */
    uint32_t node;         /* whose keys are in pairs */
    bool has_unnamed;
    bool has_null;
    lahar_value value; /* the map of the row: keys and nulls, no values */
};

void lahar_provenance_feed_init(struct lahar_provenance_feed *provenance,
                                const lahar_allocator *allocator)
{
    lahar_buffer_init(&provenance->previous_pairs, allocator);
    lahar_buffer_init(&provenance->updated_pairs, allocator);
    lahar_buffer_init(&provenance->previous_nodes, allocator);
    lahar_buffer_init(&provenance->updated_nodes, allocator);
    lahar_buffer_init(&provenance->overridden, allocator);
    lahar_buffer_init(&provenance->inherited, allocator);
    lahar_buffer_init(&provenance->values, allocator);
}

void lahar_provenance_feed_deinit(struct lahar_provenance_feed *provenance)
{
    lahar_buffer_deinit(&provenance->previous_pairs);
    lahar_buffer_deinit(&provenance->updated_pairs);
    lahar_buffer_deinit(&provenance->previous_nodes);
    lahar_buffer_deinit(&provenance->updated_nodes);
    lahar_buffer_deinit(&provenance->overridden);
    lahar_buffer_deinit(&provenance->inherited);
    lahar_buffer_deinit(&provenance->values);
}

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index attributes");
}

static const struct lahar_element *find_element(const struct lahar_index_feed *feed,
                                                const struct lahar_block_columns *block,
                                                uint32_t field, lahar_type type)
{
    const uint32_t ordinal = lahar_stream_ordinal(feed->stream, field);
    const struct lahar_element *element =
        ordinal == LAHAR_ORDINAL_NONE ? NULL : block->scope->elements[ordinal];
    return element != NULL && element->is_used && element->type == type &&
                   element->column.slot_count != 0
               ? element
               : NULL;
}

/* Fills the walk's pairs with the keys on the path to node. */
static bool fill_pairs(struct map_walk *walk, uint32_t node)
{
    const struct lahar_map_scope *map = walk->element->map;
    uint32_t count = 0;
    for (uint32_t n = node; n != 0; n = lahar_shapes_node(&map->shapes, n)->parent) {
        count++;
    }
    lahar_buffer_clear(walk->pairs);
    if (!lahar_buffer_reserve(walk->pairs, ((size_t)count + 1) * sizeof(lahar_pair))) {
        return false;
    }
    uint32_t *nodes = lahar_index_reserve_values(walk->nodes, count + 1);
    if (nodes == NULL) {
        return false;
    }
    lahar_pair *pairs = (lahar_pair *)(void *)walk->pairs->data;
    walk->has_unnamed = false;
    walk->has_null = false;
    uint32_t at = count;
    for (uint32_t n = node; n != 0;) {
        const struct lahar_shape_node *item = lahar_shapes_node(&map->shapes, n);
        const struct lahar_element *element = map->elements[item->label / 2];
        at--;
        pairs[at] = (lahar_pair){.key = {element->key, element->key_size},
                                 .is_null = (item->label & 1) != 0};
        nodes[at] = n;
        walk->has_null = walk->has_null || pairs[at].is_null;
        if (item->label / 2 == 0) {
            const struct lahar_column *keys = &element->column;
            pairs[at].key = lahar_column_entry(
                keys, lahar_column_codes(keys)[walk->unnamed_slot + item->occurrence]);
            walk->has_unnamed = true;
        }
        n = item->parent;
    }
    walk->node = node;
    walk->value.as.map.items = pairs;
    walk->value.as.map.count = count;
    return true;
}

/* Moves to a row, which rise; *has_map_out: whether the map has a value there. */
static bool walk_to(struct map_walk *walk, uint32_t row, bool *has_map_out)
{
    *has_map_out = false;
    if (walk->element == NULL) {
        return true;
    }
    const struct lahar_column *shape = &walk->element->column;
    const uint32_t *rows = lahar_column_rows(shape);
    while (walk->slot < shape->slot_count && rows[walk->slot] < row) {
        walk->slot++;
    }
    if (walk->slot == shape->slot_count || rows[walk->slot] != row) {
        return true;
    }
    *has_map_out = true;
    const struct lahar_column *unnamed = &walk->element->map->elements[0]->column;
    const uint32_t *unnamed_rows = lahar_column_rows(unnamed);
    while (walk->unnamed_slot < unnamed->slot_count && unnamed_rows[walk->unnamed_slot] < row) {
        walk->unnamed_slot++;
    }
    const uint64_t *nodes = (const uint64_t *)(const void *)shape->data.data;
    const uint32_t node = (uint32_t)nodes[lahar_column_codes(shape)[walk->slot]];
    return (node == walk->node && !walk->has_unnamed) || fill_pairs(walk, node);
}

static lahar_status add_removed(struct lahar_index_feed *feed, uint32_t row,
                                const lahar_value *updated, lahar_error *error)
{
    struct lahar_feed_field *place = &feed->provenance.removed;
    for (size_t i = 0; i < updated->as.map.count; i++) {
        const lahar_pair *pair = &updated->as.map.items[i];
        if (pair->is_null) {
            LAHAR_TRY(lahar_index_find_place(feed, place, "_removed", LAHAR_CLASS_KEYWORD, error));
            LAHAR_TRY(lahar_index_post(feed, place->field, row, pair->key, error));
        }
    }
    return LAHAR_OK;
}

/* Readies what is remembered of the previous map's attributes during a block. */
static bool start_inherited(struct lahar_index_feed *feed, const struct lahar_element *previous)
{
    struct lahar_provenance_feed *provenance = &feed->provenance;
    const struct lahar_map_scope *map = previous->map;
    const size_t size = (size_t)map->count * sizeof(struct inherited_element);
    lahar_buffer_clear(&provenance->inherited);
    if (!lahar_buffer_reserve(&provenance->inherited, size)) {
        return false;
    }
    struct inherited_element *elements = (void *)provenance->inherited.data;
    uint32_t start = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        elements[i] = (struct inherited_element){.start = start};
        start += map->elements[i]->column.entry_count;
    }
    uint32_t *values = lahar_index_reserve_values(&provenance->values, start + 1);
    uint32_t *overridden =
        lahar_index_reserve_values(&provenance->overridden, map->shapes.node_count);
    if (values == NULL || overridden == NULL) {
        return false;
    }
    memset(values, 0xff, (size_t)start * sizeof values[0]);
    memset(overridden, 0, (size_t)map->shapes.node_count * sizeof overridden[0]);
    return true;
}

/* The slot of a column in a row, of which it has one at least. */
static uint32_t find_slot(const struct lahar_column *column, uint32_t row)
{
    const uint32_t *rows = lahar_column_rows(column);
    uint32_t low = 0;
    uint32_t high = column->slot_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rows[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Posts the value of a previous attribute under its name as an attribute. */
static lahar_status add_inherited_pair(struct lahar_index_feed *feed, const struct map_walk *walk,
                                       uint32_t row, size_t pair, lahar_error *error)
{
    const struct lahar_map_scope *map = walk->element->map;
    const uint32_t node = ((const uint32_t *)(void *)walk->nodes->data)[pair];
    const struct lahar_shape_node *item = lahar_shapes_node(&map->shapes, node);
    const uint32_t number = item->label / 2;
    const struct lahar_element *element = map->elements[number];
    const lahar_bytes key = walk->value.as.map.items[pair].key;
    const struct lahar_column *column = number == 0 ? &element->second : &element->column;
    const uint32_t slot =
        (number == 0 ? walk->unnamed_slot : find_slot(column, row)) + item->occurrence;
    const uint32_t code = lahar_column_codes(column)[slot];
    const lahar_bytes bytes = lahar_column_entry(column, code);
    if (number == 0) {
        uint32_t field = 0;
        LAHAR_TRY(lahar_index_attribute_field(feed, "attr.", key, &field, error));
        return lahar_index_post(feed, field, row, bytes, error);
    }
    struct inherited_element *inherited =
        (struct inherited_element *)(void *)feed->provenance.inherited.data + number;
    uint32_t *value = (uint32_t *)(void *)feed->provenance.values.data + inherited->start + code;
    if (!inherited->is_known) {
        LAHAR_TRY(lahar_index_attribute_field(feed, "attr.", key, &inherited->field, error));
        inherited->is_known = true;
    }
    if (*value == LAHAR_SHARD_NO_VALUE) {
        LAHAR_TRY(lahar_shard_builder_value(feed->builder, inherited->field, bytes.data, bytes.size,
                                            value, error));
    }
    static const uint32_t first_code = 0;
    const struct lahar_shard_column one = {feed->first_document, 1, &row, &first_code};
    return lahar_shard_builder_post_column(feed->builder, inherited->field, &one, value, false,
                                           error);
}

static lahar_status add_inherited(struct lahar_index_feed *feed, struct map_walk *previous,
                                  const struct map_walk *updated, bool has_updated, uint32_t row,
                                  lahar_error *error)
{
    /* By node of the previous map: 2 + the node of an updated map, or 1 for no such map, beside
     * which none of its keys is in effect; 0: not known. */
    uint32_t *overridden = (uint32_t *)(void *)feed->provenance.overridden.data + previous->node;
    const bool is_named = !previous->has_unnamed && !(has_updated && updated->has_unnamed);
    const uint32_t beside = has_updated ? updated->node + 2 : 1;
    if (is_named && *overridden == beside) {
        return LAHAR_OK;
    }
    bool is_any_effective = false;
    for (size_t i = 0; i < previous->value.as.map.count; i++) {
        if (lahar_previous_is_effective(&previous->value, i,
                                        has_updated ? &updated->value : NULL)) {
            is_any_effective = true;
            LAHAR_TRY(add_inherited_pair(feed, previous, row, i, error));
        }
    }
    if (is_named && !is_any_effective) {
        *overridden = beside;
    }
    return LAHAR_OK;
}

static lahar_status add_maps(struct lahar_index_feed *feed, struct map_walk *updated,
                             struct map_walk *previous, uint32_t row_count, lahar_error *error)
{
    if (previous->element != NULL && !start_inherited(feed, previous->element)) {
        return no_memory(error);
    }
    for (uint32_t row = 0; row < row_count; row++) {
        bool has_updated = false;
        bool has_previous = false;
        if (!walk_to(updated, row, &has_updated) || !walk_to(previous, row, &has_previous)) {
            return no_memory(error);
        }
        if (has_updated && updated->has_null) {
            LAHAR_TRY(add_removed(feed, row, &updated->value, error));
        }
        if (has_previous) {
            LAHAR_TRY(add_inherited(feed, previous, updated, has_updated, row, error));
        }
    }
    return LAHAR_OK;
}

/* The uuids in identifiers of source systems. */
static lahar_status add_sources(struct lahar_index_feed *feed, const struct lahar_column *column,
                                lahar_error *error)
{
    struct lahar_feed_field *place = &feed->provenance.source;
    uint32_t *values = lahar_index_reserve_values(&feed->values, column->entry_count);
    if (values == NULL) {
        return no_memory(error);
    }
    for (uint32_t entry = 0; entry < column->entry_count; entry++) {
        lahar_uuid uuid;
        values[entry] = LAHAR_SHARD_NO_VALUE;
        if (lahar_source_system_uuid(lahar_column_entry(column, entry), &uuid)) {
            LAHAR_TRY(
                lahar_index_find_place(feed, place, "source_system", LAHAR_CLASS_UUID, error));
            LAHAR_TRY(lahar_shard_builder_value(feed->builder, place->field, uuid.bytes,
                                                sizeof uuid.bytes, &values[entry], error));
        }
    }
    if (!place->is_known) {
        return LAHAR_OK;
    }
    const struct lahar_shard_column slots = lahar_index_column(feed, column);
    return lahar_shard_builder_post_column(feed->builder, place->field, &slots, values, false,
                                           error);
}

lahar_status lahar_index_add_provenance(struct lahar_index_feed *feed,
                                        const struct lahar_block_columns *block, lahar_error *error)
{
    struct lahar_provenance_feed *provenance = &feed->provenance;
    struct map_walk updated = {.element =
                                   find_element(feed, block, LAHAR_FIELD_ATTRIBUTES, LAHAR_MAP),
                               .pairs = &provenance->updated_pairs,
                               .nodes = &provenance->updated_nodes};
    struct map_walk previous = {.element =
                                    find_element(feed, block, LAHAR_FIELD_PREVIOUS, LAHAR_MAP),
                                .pairs = &provenance->previous_pairs,
                                .nodes = &provenance->previous_nodes};
    if (updated.element != NULL || previous.element != NULL) {
        LAHAR_TRY(add_maps(feed, &updated, &previous, block->row_count, error));
    }
    const struct lahar_element *source =
        find_element(feed, block, provenance->source_system, LAHAR_KEYWORD);
    return source == NULL ? LAHAR_OK : add_sources(feed, &source->column, error);
}
