#include "engine/segment/scope_writer.h"

#include <string.h>
#include <xxhash.h>

#include "engine/segment/bytes_equal.h"
#include "io/base/error.h"

enum {
    /* Keys remembered from block to block; with more the memory starts afresh. */
    ELEMENT_COUNT_MAX = LAHAR_BLOCK_KEY_COUNT_MAX + 1,
    TABLE_SIZE = 4096, /* at least twice the elements */
    CAPACITY_MIN = 16
};

/* --- elements -------------------------------------------------------------------- */

static void destroy_map(struct lahar_map_scope *map, const lahar_allocator *allocator);

static void destroy_element(struct lahar_element *element, const lahar_allocator *allocator)
{
    if (element == NULL) {
        return;
    }
    lahar_column_deinit(&element->column);
    if (element->has_second) {
        lahar_column_deinit(&element->second);
    }
    destroy_map(element->map, allocator);
    if (element->split != NULL) {
        lahar_text_split_deinit(element->split);
        lahar_release(allocator, element->split);
    }
    lahar_release(allocator, element->key);
    lahar_release(allocator, element);
}

static enum lahar_column_kind kind_of(lahar_type type)
{
    switch (type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return LAHAR_COLUMN_BYTES;
    case LAHAR_UUID:
        return LAHAR_COLUMN_UUID;
    default:
        return LAHAR_COLUMN_INT;
    }
}

static struct lahar_element *create_element(lahar_type type, const lahar_allocator *allocator)
{
    struct lahar_element *element = lahar_allocate_zeroed(allocator, 1, sizeof *element);
    if (element == NULL) {
        return NULL;
    }
    element->type = type;
    lahar_column_init(&element->column, kind_of(type), allocator);
    element->column.is_mapped_allowed = true;
    if (type == LAHAR_LIST_UUID || type == LAHAR_LIST_KEYWORD) {
        element->has_second = true;
        lahar_column_init(&element->second,
                          type == LAHAR_LIST_UUID ? LAHAR_COLUMN_UUID : LAHAR_COLUMN_BYTES,
                          allocator);
    }
    if (type == LAHAR_TEXT) {
        element->split = lahar_allocate(allocator, sizeof *element->split);
        if (element->split == NULL) {
            destroy_element(element, allocator);
            return NULL;
        }
        lahar_text_split_init(element->split, allocator);
    }
    return element;
}

static void clear_element(struct lahar_element *element)
{
    element->is_used = false;
    element->last_row = 0;
    lahar_column_clear(&element->column);
    if (element->split != NULL) {
        element->is_split = false;
        lahar_text_split_clear(element->split);
    }
    if (element->has_second) {
        lahar_column_clear(&element->second);
    }
}

/* --- maps ---------------------------------------------------------------------------- */

static void release_elements(struct lahar_map_scope *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        destroy_element(map->elements[i], map->allocator);
    }
    map->count = 0;
}

static void destroy_map(struct lahar_map_scope *map, const lahar_allocator *allocator)
{
    if (map == NULL) {
        return;
    }
    release_elements(map);
    lahar_release(allocator, map->elements);
    lahar_release(allocator, map->table);
    lahar_shapes_deinit(&map->shapes);
    lahar_release(allocator, map);
}

static struct lahar_element *append_element(struct lahar_map_scope *map)
{
    if (map->count == map->capacity) {
        const uint32_t capacity = map->capacity == 0 ? CAPACITY_MIN : map->capacity * 2;
        struct lahar_element **elements =
            lahar_reallocate(map->allocator, map->elements, capacity * sizeof elements[0]);
        if (elements == NULL) {
            return NULL;
        }
        map->elements = elements;
        map->capacity = capacity;
    }
    struct lahar_element *element = create_element(LAHAR_KEYWORD, map->allocator);
    if (element != NULL) {
        map->elements[map->count++] = element;
    }
    return element;
}

/* Element 0: keys and values side by side. */
static bool append_unnamed(struct lahar_map_scope *map)
{
    struct lahar_element *element = append_element(map);
    if (element == NULL) {
        return false;
    }
    element->has_second = true;
    lahar_column_init(&element->second, LAHAR_COLUMN_BYTES, map->allocator);
    element->second.is_mapped_allowed = true;
    return true;
}

static struct lahar_map_scope *create_map(const lahar_allocator *allocator)
{
    struct lahar_map_scope *map = lahar_allocate_zeroed(allocator, 1, sizeof *map);
    if (map == NULL) {
        return NULL;
    }
    map->allocator = allocator;
    lahar_shapes_init(&map->shapes, allocator);
    map->table = lahar_allocate_zeroed(allocator, TABLE_SIZE, sizeof map->table[0]);
    map->table_size = TABLE_SIZE;
    if (map->table == NULL || !append_unnamed(map) || !lahar_shapes_clear(&map->shapes)) {
        destroy_map(map, allocator);
        return NULL;
    }
    return map;
}

static bool clear_map(struct lahar_map_scope *map)
{
    if (map->count >= ELEMENT_COUNT_MAX) {
        release_elements(map);
        memset(map->table, 0, map->table_size * sizeof map->table[0]);
        if (!append_unnamed(map)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < map->count; i++) {
        clear_element(map->elements[i]);
    }
    return lahar_shapes_clear(&map->shapes);
}

static inline bool key_equals(const struct lahar_element *element, const lahar_bytes *key)
{
    return element->key_size == key->size && lahar_bytes_equal(element->key, key->data, key->size);
}

/* The element of a key, made when there is room for it, else 0. CODE false when memory is
 * refused. */
static bool find_key(struct lahar_map_scope *map, const lahar_bytes *key, uint32_t *element_out)
{
    const uint32_t hash = (uint32_t)XXH3_64bits(key->data, key->size);
    uint32_t at = hash & (map->table_size - 1);
    for (; map->table[at] != 0; at = (at + 1) & (map->table_size - 1)) {
        const struct lahar_element *element = map->elements[map->table[at]];
        if (element->key_hash == hash && key_equals(element, key)) {
            *element_out = map->table[at];
            return true;
        }
    }
    *element_out = 0;
    if (map->count >= ELEMENT_COUNT_MAX) {
        return true;
    }
    struct lahar_element *element = append_element(map);
    if (element == NULL) {
        return false;
    }
    element->key = lahar_allocate(map->allocator, key->size + 1);
    if (element->key == NULL) {
        return false;
    }
    if (key->size != 0) {
        memcpy(element->key, key->data, key->size);
    }
    element->key_size = (uint32_t)key->size;
    element->key_hash = hash;
    map->table[at] = map->count - 1;
    *element_out = map->count - 1;
    return true;
}

/* The element of a key that follows node: most often the one that followed it last. */
static inline bool predict_key(struct lahar_map_scope *map, uint32_t node, const lahar_bytes *key,
                               uint32_t *element_out)
{
    const uint32_t child = lahar_shapes_node(&map->shapes, node)->last_child;
    const uint32_t element = child == 0 ? 0 : lahar_shapes_node(&map->shapes, child)->label / 2;
    if (element != 0 && key_equals(map->elements[element], key)) {
        *element_out = element;
        return true;
    }
    return find_key(map, key, element_out);
}

/* Counts a slot of the element in the row and says how many were there before. */
static inline uint32_t count_occurrence(struct lahar_element *element, uint32_t row)
{
    if (element->last_row != row + 1) {
        element->last_row = row + 1;
        element->occurrences = 0;
    }
    return element->occurrences++;
}

static bool add_pair(struct lahar_map_scope *map, uint32_t row, const lahar_pair *pair,
                     uint32_t *node)
{
    uint32_t number = 0;
    if (!predict_key(map, *node, &pair->key, &number)) {
        return false;
    }
    struct lahar_element *element = map->elements[number];
    const bool has_slot = number == 0 || !pair->is_null;
    const uint32_t occurrence = has_slot ? count_occurrence(element, row) : 0;
    element->is_used = true;
    *node = lahar_shapes_step(&map->shapes, *node, number * 2 + pair->is_null, occurrence);
    if (*node == 0) {
        return false;
    }
    if (number == 0) {
        /* A null value has a slot too, so that keys and values stay side by side. */
        return lahar_column_add_bytes(&element->column, row, pair->key.data, pair->key.size) &&
               lahar_column_add_bytes(&element->second, row, pair->value.data,
                                      pair->is_null ? 0 : pair->value.size);
    }
    return pair->is_null ||
           lahar_column_add_bytes(&element->column, row, pair->value.data, pair->value.size);
}

static bool add_map(struct lahar_element *element, uint32_t row, const lahar_value *value,
                    const lahar_allocator *allocator)
{
    if (element->map == NULL) {
        element->map = create_map(allocator);
        if (element->map == NULL) {
            return false;
        }
    }
    uint32_t node = 0;
    for (size_t i = 0; i < value->as.map.count; i++) {
        if (!add_pair(element->map, row, &value->as.map.items[i], &node)) {
            return false;
        }
    }
    return lahar_column_add_int(&element->column, row, node);
}

/* --- fields -------------------------------------------------------------------------- */

static bool add_list(struct lahar_element *element, uint32_t row, const lahar_value *value)
{
    bool is_added = true;
    if (value->type == LAHAR_LIST_UUID) {
        for (size_t i = 0; is_added && i < value->as.uuids.count; i++) {
            is_added = lahar_column_add_uuid(&element->second, row, &value->as.uuids.items[i]);
        }
        return is_added && lahar_column_add_int(&element->column, row, value->as.uuids.count);
    }
    for (size_t i = 0; is_added && i < value->as.keywords.count; i++) {
        const lahar_bytes *item = &value->as.keywords.items[i];
        is_added = lahar_column_add_bytes(&element->second, row, item->data, item->size);
    }
    return is_added && lahar_column_add_int(&element->column, row, value->as.keywords.count);
}

/* Maps have columns of their own and are added by add_maps. */
static bool add_value(struct lahar_element *element, uint32_t row, const lahar_value *value)
{
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return lahar_column_add_bytes(&element->column, row, value->as.bytes.data,
                                      value->as.bytes.size);
    case LAHAR_UUID:
        return lahar_column_add_uuid(&element->column, row, &value->as.uuid);
    case LAHAR_I64:
    case LAHAR_U64:
    case LAHAR_F64:
    case LAHAR_TIME:
        return lahar_column_add_int(&element->column, row, value->as.u64);
    case LAHAR_BOOL:
        return lahar_column_add_int(&element->column, row, value->as.boolean);
    case LAHAR_LIST_UUID:
    case LAHAR_LIST_KEYWORD:
        return add_list(element, row, value);
    case LAHAR_MAP:
        break;
    }
    return false;
}

/* Maps come last, when the fields that their keys may follow have been added. */
static bool add_maps(struct lahar_scope_writer *scope, uint32_t row, const lahar_event *event)
{
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        if (value->type == LAHAR_MAP && !value->is_null) {
            const uint32_t ordinal = lahar_stream_ordinal(scope->stream, value->field);
            if (!add_map(scope->elements[ordinal], row, value, scope->allocator)) {
                return false;
            }
        }
    }
    return true;
}

lahar_status lahar_scope_writer_init(struct lahar_scope_writer *scope,
                                     const struct lahar_stream *stream,
                                     const lahar_allocator *allocator)
{
    scope->stream = stream;
    scope->allocator = allocator;
    lahar_shapes_init(&scope->shapes, allocator);
    lahar_column_init(&scope->shape, LAHAR_COLUMN_INT, allocator);
    scope->shape.is_mapped_allowed = true;
    scope->elements =
        lahar_allocate_zeroed(allocator, stream->field_count, sizeof scope->elements[0]);
    return scope->elements != NULL && lahar_shapes_clear(&scope->shapes) ? LAHAR_OK
                                                                         : LAHAR_NO_MEMORY;
}

void lahar_scope_writer_deinit(struct lahar_scope_writer *scope)
{
    for (uint32_t i = 0; scope->elements != NULL && i < scope->stream->field_count; i++) {
        destroy_element(scope->elements[i], scope->allocator);
    }
    lahar_release(scope->allocator, scope->elements);
    scope->elements = NULL;
    lahar_column_deinit(&scope->shape);
    lahar_shapes_deinit(&scope->shapes);
}

bool lahar_scope_writer_clear(struct lahar_scope_writer *scope)
{
    lahar_column_clear(&scope->shape);
    for (uint32_t i = 0; i < scope->stream->field_count; i++) {
        struct lahar_element *element = scope->elements[i];
        if (element == NULL) {
            continue;
        }
        clear_element(element);
        if (element->map != NULL && !clear_map(element->map)) {
            return false;
        }
    }
    return lahar_shapes_clear(&scope->shapes);
}

lahar_status lahar_scope_writer_add(struct lahar_scope_writer *scope, uint32_t row,
                                    const lahar_event *event, lahar_error *error)
{
    uint32_t node = 0;
    uint32_t ordinal_end = 0;
    bool has_map = false;
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        const uint32_t ordinal = lahar_stream_ordinal(scope->stream, value->field);
        if (ordinal == LAHAR_ORDINAL_NONE || ordinal < ordinal_end ||
            scope->stream->fields[ordinal].type != value->type) {
            return lahar_fail(error, LAHAR_INVALID,
                              "event %llu: value %zu does not fit stream \"%s\"",
                              (unsigned long long)event->id, i, scope->stream->name);
        }
        ordinal_end = ordinal + 1;
        struct lahar_element *element = scope->elements[ordinal];
        if (element == NULL) {
            element = create_element(value->type, scope->allocator);
            if (element == NULL) {
                goto no_memory;
            }
            element->field = value->field;
            element->column.is_field = true;
            scope->elements[ordinal] = element;
        }
        element->is_used = true;
        has_map = has_map || value->type == LAHAR_MAP;
        node = lahar_shapes_step(&scope->shapes, node, ordinal * 2 + value->is_null, 0);
        if (node == 0 ||
            (!value->is_null && value->type != LAHAR_MAP && !add_value(element, row, value))) {
            goto no_memory;
        }
    }
    if (has_map && !add_maps(scope, row, event)) {
        goto no_memory;
    }
    if (lahar_column_add_int(&scope->shape, row, node)) {
        return LAHAR_OK;
    }
no_memory:
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to build a block");
}
