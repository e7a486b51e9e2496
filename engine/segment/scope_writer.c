#include "engine/segment/scope_writer.h"

#include <string.h>
#include <xxhash.h>

#include "engine/segment/bytes_equal.h"
#include "engine/segment/column_fill.h"
#include "io/base/error.h"

enum {
    /* Keys remembered from block to block; with more the memory starts afresh. */
    ELEMENT_COUNT_MAX = LAHAR_BLOCK_KEY_COUNT_MAX + 1,
    TABLE_SIZE = 4096, /* at least twice the elements */
    CAPACITY_MIN = 16,
    STAGE_KEPT_MAX = 1024 * 1024 /* a jumbo event must not stay in memory */
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

bool lahar_element_make_split(struct lahar_element *element, const lahar_allocator *allocator)
{
    element->split = lahar_allocate(allocator, sizeof *element->split);
    if (element->split == NULL) {
        return false;
    }
    lahar_text_split_init(element->split, element->type == LAHAR_KEYWORD, allocator);
    return true;
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
    element->column.takes_cells =
        type != LAHAR_MAP && type != LAHAR_LIST_UUID && type != LAHAR_LIST_KEYWORD;
    if (type == LAHAR_LIST_UUID || type == LAHAR_LIST_KEYWORD) {
        element->has_second = true;
        lahar_column_init(&element->second,
                          type == LAHAR_LIST_UUID ? LAHAR_COLUMN_UUID : LAHAR_COLUMN_BYTES,
                          allocator);
    }
    if (type == LAHAR_TEXT) {
        if (!lahar_element_make_split(element, allocator)) {
            destroy_element(element, allocator);
            return NULL;
        }
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
    element->column.takes_cells = false;
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

bool lahar_map_find_key(struct lahar_map_scope *map, lahar_bytes key, uint32_t *element_out)
{
    const uint32_t hash = (uint32_t)XXH3_64bits(key.data, key.size);
    uint32_t at = hash & (map->table_size - 1);
    for (; map->table[at] != 0; at = (at + 1) & (map->table_size - 1)) {
        const struct lahar_element *element = map->elements[map->table[at]];
        if (element->key_hash == hash && element->key_size == key.size &&
            lahar_bytes_equal(element->key, key.data, key.size)) {
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
    element->key = lahar_allocate(map->allocator, key.size + 1);
    if (element->key == NULL) {
        return false;
    }
    if (key.size != 0) {
        memcpy(element->key, key.data, key.size);
    }
    element->key_size = (uint32_t)key.size;
    element->key_hash = hash;
    map->table[at] = map->count - 1;
    *element_out = map->count - 1;
    return true;
}

/* --- fields -------------------------------------------------------------------------- */

struct lahar_map_scope *lahar_element_map(struct lahar_element *element,
                                          const lahar_allocator *allocator)
{
    if (element->map == NULL) {
        element->map = create_map(allocator);
    }
    return element->map;
}

struct lahar_element *lahar_scope_element(struct lahar_scope_writer *scope, uint32_t ordinal)
{
    struct lahar_element *element = scope->elements[ordinal];
    if (element == NULL) {
        const struct lahar_stream_field *field = &scope->stream->fields[ordinal];
        element = create_element(field->type, scope->allocator);
        if (element != NULL) {
            element->field = field->field;
            element->column.is_field = true;
            scope->elements[ordinal] = element;
        }
    }
    return element;
}

lahar_status lahar_scope_writer_init(struct lahar_scope_writer *scope,
                                     const struct lahar_stream *stream,
                                     const lahar_allocator *allocator)
{
    scope->stream = stream;
    scope->allocator = allocator;
    lahar_shapes_init(&scope->shapes, allocator);
    lahar_shapes_init(&scope->orders, allocator);
    lahar_buffer_init(&scope->labels, allocator);
    lahar_buffer_init(&scope->scratch, allocator);
    lahar_column_init(&scope->shape, LAHAR_COLUMN_INT, allocator);
    scope->shape.is_mapped_allowed = true;
    scope->elements =
        lahar_allocate_zeroed(allocator, stream->field_count, sizeof scope->elements[0]);
    return scope->elements != NULL && lahar_shapes_clear(&scope->shapes) &&
                   lahar_shapes_clear(&scope->orders)
               ? LAHAR_OK
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
    lahar_shapes_deinit(&scope->orders);
    lahar_buffer_deinit(&scope->labels);
    lahar_buffer_deinit(&scope->scratch);
    lahar_release(scope->allocator, scope->stage.data);
    scope->stage.data = NULL;
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
    struct lahar_row_stage *stage = &scope->stage;
    LAHAR_ASSERT(stage->row_count == 0);
    if (stage->capacity > STAGE_KEPT_MAX) {
        lahar_release(scope->allocator, stage->data);
        stage->data = NULL;
        stage->capacity = 0;
    }
    return lahar_shapes_clear(&scope->shapes) && lahar_shapes_clear(&scope->orders);
}

/* Columns that others follow are filled before these. */
static bool fill_columns(struct lahar_scope_writer *scope, bool are_followers)
{
    const uint32_t row_count = scope->stage.row_end;
    for (uint32_t i = 0; i < scope->stream->field_count; i++) {
        struct lahar_element *element = scope->elements[i];
        if (element == NULL || !element->is_used) {
            continue;
        }
        if ((element->column.followed != NULL) == are_followers &&
            !lahar_column_fill(&element->column, row_count, &scope->scratch)) {
            return false;
        }
        for (uint32_t k = 1; element->map != NULL && are_followers && k < element->map->count;
             k++) {
            if (!lahar_column_fill(&element->map->elements[k]->column, row_count,
                                   &scope->scratch)) {
                return false;
            }
        }
    }
    return true;
}

bool lahar_scope_writer_fill(struct lahar_scope_writer *scope)
{
    struct lahar_row_stage *stage = &scope->stage;
    if (stage->row_count == 0) {
        return true;
    }
    if (!fill_columns(scope, false) || !fill_columns(scope, true)) {
        return false;
    }
    stage->row_count = 0;
    stage->size = 0;
    return true;
}
