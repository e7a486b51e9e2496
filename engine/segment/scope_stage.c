/* From events and rows of bytes to cells: finding, value by value, the column that it belongs to.
 *
 * Most rows have the fields and keys of the row before, in the same order, so that each step
 * along the shapes and each key is found by one comparison with the one taken last. */
#include <stdlib.h>
#include <string.h>

#include "engine/event/row.h"
#include "engine/segment/bytes_equal.h"
#include "engine/segment/scope_writer.h"
#include "io/base/error.h"

enum {
    STAGE_ROW_MAX = 128, /* rows taken in at a time */
    STAGE_SIZE = 192 * 1024,
    VALUE_HEAD_SIZE = 3,
    INSERTION_SORT_MAX = 64
};

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to build a block");
}

static lahar_status damaged(size_t size, lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a row of %zu bytes is damaged", size);
}

/* --- the stage ------------------------------------------------------------------------------ */

/* Room for the bytes of the next row, with slack; NULL when memory is refused. */
static uint8_t *reserve(struct lahar_scope_writer *scope, uint32_t row, size_t size)
{
    struct lahar_row_stage *stage = &scope->stage;
    const size_t needed = size + LAHAR_CELL_SLACK;
    if ((stage->row_count == STAGE_ROW_MAX || stage->capacity - stage->size < needed) &&
        !lahar_scope_writer_fill(scope)) {
        return NULL;
    }
    if (stage->capacity - stage->size < needed) {
        const size_t capacity = needed < STAGE_SIZE ? (size_t)STAGE_SIZE : needed;
        lahar_release(scope->allocator, stage->data);
        stage->data = lahar_allocate(scope->allocator, capacity);
        stage->capacity = stage->data == NULL ? 0 : capacity;
        if (stage->data == NULL) {
            return NULL;
        }
        /* The slack behind the newest row is copied with its values, and never looked at. */
        memset(stage->data, 0, capacity);
    }
    uint8_t *to = stage->data + stage->size;
    stage->size += size;
    stage->row_count++;
    stage->row_end = row + 1;
    return to;
}

/* --- shapes --------------------------------------------------------------------------------- */

static int compare_labels(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a;
    const uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void sort_labels(uint32_t *labels, uint32_t count)
{
    if (count > INSERTION_SORT_MAX) {
        qsort(labels, count, sizeof labels[0], compare_labels);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t label = labels[i];
        uint32_t at = i;
        for (; at > 0 && labels[at - 1] > label; at--) {
            labels[at] = labels[at - 1];
        }
        labels[at] = label;
    }
}

/* The shape of rows whose fields come in an order: the same fields, sorted. */
static lahar_status find_shape(struct lahar_scope_writer *scope, uint32_t order, lahar_error *error)
{
    uint32_t count = 0;
    lahar_buffer_clear(&scope->labels);
    for (uint32_t node = order; node != 0; count++) {
        const struct lahar_shape_node *item = lahar_shapes_node(&scope->orders, node);
        lahar_buffer_put_u32(&scope->labels, item->label);
        node = item->parent;
    }
    if (scope->labels.has_failed) {
        return no_memory(error);
    }
    uint32_t *labels = (uint32_t *)(void *)scope->labels.data;
    sort_labels(labels, count);
    uint32_t node = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && labels[i] / 2 == labels[i - 1] / 2) {
            return lahar_fail(error, LAHAR_CORRUPT, "a row has field %u twice",
                              scope->stream->fields[labels[i] / 2].field);
        }
        node = lahar_shapes_step(&scope->shapes, node, labels[i], 0);
        if (node == 0) {
            return no_memory(error);
        }
    }
    lahar_shapes_node(&scope->orders, order)->memo = node + 1;
    return LAHAR_OK;
}

/* Ends a row whose fields came in an order. */
static lahar_status end_row(struct lahar_scope_writer *scope, uint32_t row, uint32_t order,
                            lahar_error *error)
{
    if (lahar_shapes_node(&scope->orders, order)->memo == 0) {
        LAHAR_TRY(find_shape(scope, order, error));
    }
    const uint32_t node = lahar_shapes_node(&scope->orders, order)->memo - 1;
    return lahar_column_add_known(&scope->shape, row, node,
                                  &lahar_shapes_node(&scope->shapes, node)->memo)
               ? LAHAR_OK
               : no_memory(error);
}

/* --- maps ----------------------------------------------------------------------------------- */

/* The element of a key that follows node: most often the one that followed it last. */
static inline bool predict_key(struct lahar_map_scope *map, uint32_t node, lahar_bytes key,
                               uint32_t *element_out)
{
    const uint32_t child = lahar_shapes_node(&map->shapes, node)->last_child;
    const uint32_t number = child == 0 ? 0 : lahar_shapes_node(&map->shapes, child)->label / 2;
    const struct lahar_element *element = map->elements[number];
    if (number != 0 && element->key_size == key.size &&
        lahar_bytes_equal(element->key, key.data, key.size)) {
        *element_out = number;
        return true;
    }
    return lahar_map_find_key(map, key, element_out);
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

/* Takes a pair, whose value's bytes are in the stage. */
static inline bool add_pair(struct lahar_map_scope *map, uint32_t row, const lahar_pair *pair,
                            uint32_t *node)
{
    uint32_t number = 0;
    if (!predict_key(map, *node, pair->key, &number)) {
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
           lahar_column_put_cell(&element->column, row, pair->value.data, pair->value.size);
}

static bool end_map(struct lahar_element *element, uint32_t row, uint32_t node)
{
    return lahar_column_add_known(&element->column, row, node,
                                  &lahar_shapes_node(&element->map->shapes, node)->memo);
}

/* --- rows ----------------------------------------------------------------------------------- */

static bool read_uuids(struct lahar_reader *reader, struct lahar_element *element, uint32_t row)
{
    const uint64_t count = lahar_row_read_size(reader);
    if (count > lahar_reader_left(reader) / sizeof(lahar_uuid)) {
        reader->failed = true;
        return true;
    }
    const uint8_t *items = lahar_read_bytes(reader, count * sizeof(lahar_uuid));
    bool is_added = true;
    for (uint64_t i = 0; items != NULL && i < count && is_added; i++) {
        lahar_uuid uuid;
        memcpy(&uuid, items + i * sizeof uuid, sizeof uuid);
        is_added = lahar_column_add_uuid(&element->second, row, &uuid);
    }
    return is_added && lahar_column_add_int(&element->column, row, count);
}

static bool read_keywords(struct lahar_reader *reader, struct lahar_element *element, uint32_t row)
{
    const uint64_t count = lahar_row_read_size(reader);
    bool is_added = true;
    for (uint64_t i = 0; i < count && is_added && !reader->failed; i++) {
        const lahar_bytes item = lahar_row_read_sized(reader);
        is_added =
            reader->failed || lahar_column_add_bytes(&element->second, row, item.data, item.size);
    }
    return is_added && lahar_column_add_int(&element->column, row, count);
}

/* The rest of a row, in registers where a reader would be in memory. */
struct span {
    const uint8_t *next;
    const uint8_t *end;
};

/* Takes a pair with a key that is expected here and a value that is not null, whose sizes have one
 * byte each: nearly all are so. False, with nothing taken, for any other; *is_refused_out: for want
 * of memory. */
static inline bool take_expected_pair(struct lahar_map_scope *map, uint32_t row, struct span *span,
                                      uint32_t *node, bool *is_refused_out)
{
    const size_t left = (size_t)(span->end - span->next);
    const uint32_t child = lahar_shapes_node(&map->shapes, *node)->last_child;
    const uint32_t label = lahar_shapes_node(&map->shapes, child)->label;
    struct lahar_element *element = map->elements[label / 2];
    const size_t key_size = element->key_size;
    /* Element 0 has no key; the root's label leads there. */
    if (label < 2 || (label & 1) != 0 || key_size >= 0x80 || left < key_size + 2 ||
        *span->next != key_size || !lahar_bytes_equal(element->key, span->next + 1, key_size)) {
        return false;
    }
    const uint8_t *value = span->next + 1 + key_size; /* its size + 1, then its bytes */
    const size_t value_size = (size_t)*value - 1;
    if (value_size >= 0x7f || left - key_size - 2 < value_size ||
        !lahar_column_put_cell(&element->column, row, value + 1, value_size)) {
        *is_refused_out = value_size < 0x7f && left - key_size - 2 >= value_size;
        return false;
    }
    (void)count_occurrence(element, row);
    *node = child;
    span->next = value + 1 + value_size;
    return true;
}

/* Takes any pair, as add_pair does; damage shows in the reader. */
static bool read_pair(struct lahar_reader *reader, struct lahar_map_scope *map, uint32_t row,
                      struct span *span, uint32_t *node)
{
    lahar_pair pair;
    reader->next = span->next;
    lahar_row_read_pair(reader, &pair);
    span->next = reader->next;
    return reader->failed || add_pair(map, row, &pair, node);
}

static bool read_map(struct lahar_reader *reader, struct lahar_element *element, uint32_t row,
                     const lahar_allocator *allocator)
{
    struct lahar_map_scope *map = lahar_element_map(element, allocator);
    const uint64_t count = lahar_row_read_size(reader);
    if (map == NULL) {
        return false;
    }
    struct span span = {reader->next, reader->end};
    uint32_t node = 0;
    bool is_refused = false;
    for (uint64_t i = 0; i < count; i++) {
        if (take_expected_pair(map, row, &span, &node, &is_refused)) {
            continue;
        }
        if (is_refused || !read_pair(reader, map, row, &span, &node)) {
            return false;
        }
        if (reader->failed) {
            break;
        }
    }
    reader->next = span.next;
    return end_map(element, row, node);
}

/* The bytes of a boolean as a number. */
static const uint8_t *boolean_bytes(bool is_true)
{
    static const uint8_t numbers[2][sizeof(uint64_t) + LAHAR_CELL_SLACK] = {{0}, {1}};
    return numbers[is_true];
}

/* Reads a value that is not one run of bytes. False when memory is refused; damage shows in the
 * reader. */
static bool read_other(struct lahar_reader *reader, struct lahar_element *element, uint32_t row,
                       const lahar_allocator *allocator)
{
    switch (element->type) {
    case LAHAR_BOOL: {
        const uint8_t boolean = lahar_read_u8(reader);
        reader->failed = reader->failed || boolean > 1;
        return lahar_column_put_cell(&element->column, row, boolean_bytes(boolean == 1),
                                     sizeof(uint64_t));
    }
    case LAHAR_LIST_UUID:
        return read_uuids(reader, element, row);
    case LAHAR_LIST_KEYWORD:
        return read_keywords(reader, element, row);
    case LAHAR_MAP:
        return read_map(reader, element, row, allocator);
    default:
        return true;
    }
}

/* Reads a value; as above. */
static inline bool read_value(struct lahar_reader *reader, struct lahar_element *element,
                              uint32_t row, const lahar_allocator *allocator)
{
    uint64_t size = sizeof(uint64_t);
    switch (element->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        size = lahar_row_read_size(reader);
        break;
    case LAHAR_UUID:
        size = sizeof(lahar_uuid);
        break;
    case LAHAR_I64:
    case LAHAR_U64:
    case LAHAR_F64:
    case LAHAR_TIME:
        break;
    default: {
        struct lahar_reader other = *reader; /* the caller's stays in registers */
        const bool is_added = read_other(&other, element, row, allocator);
        *reader = other;
        return is_added;
    }
    }
    const uint8_t *data = lahar_read_bytes(reader, size);
    return data == NULL || lahar_column_put_cell(&element->column, row, data, (size_t)size);
}

/* The element that followed *order last, if head is that of a value of it; *order moves on. NULL
 * for any other, null ones too. */
static inline struct lahar_element *expect_element(struct lahar_scope_writer *scope,
                                                   const uint8_t *head, uint32_t *order)
{
    const uint32_t child = lahar_shapes_node(&scope->orders, *order)->last_child;
    const uint32_t label = lahar_shapes_node(&scope->orders, child)->label;
    struct lahar_element *element = scope->elements[label / 2];
    if (child == 0 || (label & 1) != 0 || lahar_load_u16(head) != element->field ||
        head[2] != element->type) {
        return NULL;
    }
    *order = child;
    return element;
}

/* The element that a value's head names; *order moves on. */
static lahar_status find_element(struct lahar_scope_writer *scope, const uint8_t *head,
                                 uint32_t *order, struct lahar_element **element_out,
                                 lahar_error *error)
{
    const struct lahar_stream *stream = scope->stream;
    const uint32_t ordinal = lahar_stream_ordinal(stream, lahar_load_u16(head));
    const lahar_type type = (lahar_type)(head[2] & ~LAHAR_ROW_NULL_BIT);
    const uint32_t is_null = head[2] / LAHAR_ROW_NULL_BIT;
    if (ordinal == LAHAR_ORDINAL_NONE || stream->fields[ordinal].type != type) {
        return lahar_fail(error, LAHAR_INVALID, "a value of a row does not fit stream \"%s\"",
                          stream->name);
    }
    struct lahar_element *element = lahar_scope_element(scope, ordinal);
    if (element == NULL) {
        return no_memory(error);
    }
    element->is_used = true;
    *order = lahar_shapes_step(&scope->orders, *order, ordinal * 2 + is_null, 0);
    if (*order == 0) {
        return no_memory(error);
    }
    *element_out = element;
    return LAHAR_OK;
}

/* Copies the values of a row to the stage; NULL when memory is refused. */
static const uint8_t *stage_row(struct lahar_scope_writer *scope, uint32_t row, const uint8_t *data,
                                size_t size)
{
    uint8_t *values = reserve(scope, row, size);
    if (values != NULL) {
        memcpy(values, data, size);
    }
    return values;
}

lahar_status lahar_scope_writer_add_row(struct lahar_scope_writer *scope, uint32_t row,
                                        const uint8_t *data, size_t size, lahar_error *error)
{
    if (size < LAHAR_ROW_HEADER_SIZE || lahar_row_size(data, size) != size) {
        return lahar_fail(error, LAHAR_CORRUPT, "a row of %zu bytes has another size inside", size);
    }
    const uint32_t count = lahar_load_u16(data + LAHAR_ROW_HEADER_SIZE - 2);
    const uint8_t *values =
        stage_row(scope, row, data + LAHAR_ROW_HEADER_SIZE, size - LAHAR_ROW_HEADER_SIZE);
    if (values == NULL) {
        return no_memory(error);
    }
    struct lahar_reader reader = lahar_reader_of(values, size - LAHAR_ROW_HEADER_SIZE);
    uint32_t order = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *head = lahar_read_bytes(&reader, VALUE_HEAD_SIZE);
        if (head == NULL) {
            return damaged(size, error);
        }
        struct lahar_element *element = expect_element(scope, head, &order);
        const bool is_null = element == NULL && (head[2] & LAHAR_ROW_NULL_BIT) != 0;
        if (element == NULL) {
            LAHAR_TRY(find_element(scope, head, &order, &element, error));
        }
        if (!is_null && !read_value(&reader, element, row, scope->allocator)) {
            return no_memory(error);
        }
        if (reader.failed) {
            return damaged(size, error);
        }
    }
    return lahar_reader_left(&reader) != 0 ? damaged(size, error)
                                           : end_row(scope, row, order, error);
}

/* --- events --------------------------------------------------------------------------------- */

/* Bytes that a value needs in the stage. */
static size_t staged_size(const lahar_value *value)
{
    if (value->is_null) {
        return 0;
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return value->as.bytes.size;
    case LAHAR_MAP: {
        size_t size = 0;
        for (size_t i = 0; i < value->as.map.count; i++) {
            const lahar_pair *pair = &value->as.map.items[i];
            size += pair->is_null ? 0 : pair->value.size;
        }
        return size;
    }
    default:
        return sizeof value->as;
    }
}

/* Copies bytes to *at and moves it behind them. */
static const uint8_t *copy(uint8_t **at, const void *data, size_t size)
{
    const uint8_t *to = *at;
    if (size != 0) {
        memcpy(*at, data, size);
        *at += size;
    }
    return to;
}

static bool add_lists(struct lahar_element *element, uint32_t row, const lahar_value *value)
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

static bool add_map(struct lahar_element *element, uint32_t row, const lahar_value *value,
                    uint8_t **at, const lahar_allocator *allocator)
{
    struct lahar_map_scope *map = lahar_element_map(element, allocator);
    uint32_t node = 0;
    bool is_added = map != NULL;
    for (size_t i = 0; i < value->as.map.count && is_added; i++) {
        lahar_pair pair = value->as.map.items[i];
        if (!pair.is_null) {
            pair.value.data = copy(at, pair.value.data, pair.value.size);
        }
        is_added = add_pair(map, row, &pair, &node);
    }
    return is_added && end_map(element, row, node);
}

static bool add_value(struct lahar_element *element, uint32_t row, const lahar_value *value,
                      uint8_t **at, const lahar_allocator *allocator)
{
    struct lahar_column *column = &element->column;
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return lahar_column_put_cell(column, row,
                                     copy(at, value->as.bytes.data, value->as.bytes.size),
                                     value->as.bytes.size);
    case LAHAR_UUID:
        return lahar_column_put_cell(
            column, row, copy(at, value->as.uuid.bytes, sizeof(lahar_uuid)), sizeof(lahar_uuid));
    case LAHAR_I64:
    case LAHAR_U64:
    case LAHAR_F64:
    case LAHAR_TIME:
        return lahar_column_put_cell(column, row, copy(at, &value->as.u64, sizeof(uint64_t)),
                                     sizeof(uint64_t));
    case LAHAR_BOOL:
        return lahar_column_put_cell(column, row, boolean_bytes(value->as.boolean),
                                     sizeof(uint64_t));
    case LAHAR_LIST_UUID:
    case LAHAR_LIST_KEYWORD:
        return add_lists(element, row, value);
    case LAHAR_MAP:
        return add_map(element, row, value, at, allocator);
    }
    return true;
}

lahar_status lahar_scope_writer_add(struct lahar_scope_writer *scope, uint32_t row,
                                    const lahar_event *event, lahar_error *error)
{
    size_t size = 0;
    for (size_t i = 0; i < event->value_count; i++) {
        size += staged_size(&event->values[i]);
    }
    uint8_t *at = reserve(scope, row, size);
    if (at == NULL) {
        return no_memory(error);
    }
    uint32_t order = 0;
    uint32_t ordinal_end = 0;
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
        struct lahar_element *element = lahar_scope_element(scope, ordinal);
        if (element == NULL) {
            return no_memory(error);
        }
        element->is_used = true;
        order = lahar_shapes_step(&scope->orders, order, ordinal * 2 + value->is_null, 0);
        if (order == 0 ||
            (!value->is_null && !add_value(element, row, value, &at, scope->allocator))) {
            return no_memory(error);
        }
    }
    return end_row(scope, row, order, error);
}
