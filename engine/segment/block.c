/* A block as its users see it: rows, ids, times, events. */
#include <string.h>

#include "engine/segment/block_reader.h"
#include "engine/segment/column_point.h"
#include "engine/segment/text_plan.h"
#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    ARENA_CHUNK_SIZE = 16 * 1024,
    /* Rows of a block whose values are read singly. Decoding its columns costs as much as some
     * ten of them; whoever reads more than a few reads most. */
    SINGLE_ROWS = 3,
    SINGLE_LIST = 64, /* elements of a list or map that are worth finding one by one */
    ROW_SIZE_MIN = 18
};

/* --- creation ---------------------------------------------------------------------- */

static lahar_status read_groups(struct lahar_block *block, size_t size, lahar_error *error)
{
    const struct lahar_block_header *header = &block->header;
    uint64_t stored_at =
        LAHAR_BLOCK_HEADER_SIZE + (uint64_t)header->group_count * LAHAR_BLOCK_GROUP_SIZE;
    uint64_t raw_at = 0;
    block->groups =
        lahar_arena_allocate(&block->arena, header->group_count * sizeof block->groups[0] + 1);
    if (block->groups == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block");
    }
    bool is_damaged = false;
    for (uint32_t i = 0; i < header->group_count && !is_damaged; i++) {
        const uint8_t *entry =
            block->stored + LAHAR_BLOCK_HEADER_SIZE + (size_t)i * LAHAR_BLOCK_GROUP_SIZE;
        struct lahar_block_group_entry *group = &block->groups[i];
        group->stored_offset = (uint32_t)stored_at;
        group->stored_size = lahar_load_u32(entry);
        group->raw_offset = (uint32_t)raw_at;
        group->raw_size = lahar_load_u32(entry + 4);
        group->codec = lahar_load_u32(entry + 8);
        group->checksum = lahar_load_u32(entry + 12);
        atomic_init(&group->is_ready, false);
        stored_at += group->stored_size;
        raw_at += group->raw_size;
        is_damaged = stored_at > size || raw_at > header->image_size || group->raw_size == 0 ||
                     group->codec > LAHAR_CODEC_DEFLATE ||
                     (group->codec == LAHAR_CODEC_NONE && group->stored_size != group->raw_size);
    }
    if (is_damaged || stored_at != size || raw_at != header->image_size) {
        return lahar_fail(error, LAHAR_CORRUPT, "the groups of a block do not fill it");
    }
    return LAHAR_OK;
}

/* One number a row, from a column that every row has. */
static lahar_status expand_numbers(struct lahar_block *block, uint32_t number,
                                   const uint64_t **numbers_out, lahar_error *error)
{
    LAHAR_TRY(lahar_block_need_column(block, number, NULL, error));
    const struct lahar_block_column *column = &block->columns[number];
    if (column->codes_encoding == LAHAR_CODES_IDENTITY) {
        *numbers_out = column->numbers;
        return LAHAR_OK;
    }
    const uint32_t row_count = block->header.row_count;
    uint64_t *numbers = lahar_arena_allocate(&block->arena, row_count * sizeof numbers[0]);
    if (numbers == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block");
    }
    for (uint32_t row = 0; row < row_count; row++) {
        numbers[row] = column->numbers[lahar_block_code(column, row)];
    }
    *numbers_out = numbers;
    return LAHAR_OK;
}

static lahar_status check_ids(const struct lahar_block *block, lahar_error *error)
{
    const uint32_t row_count = block->header.row_count;
    bool is_rising = block->ids[0] == block->header.first_id &&
                     block->ids[row_count - 1] == block->header.last_id;
    for (uint32_t row = 1; row < row_count && is_rising; row++) {
        is_rising = block->ids[row] > block->ids[row - 1];
    }
    return is_rising ? LAHAR_OK
                     : lahar_fail(error, LAHAR_CORRUPT, "the ids of a block are not in order");
}

/* What the block will hold once all of it is decoded. */
static uint64_t estimate_charge(const struct lahar_block *block, size_t size)
{
    uint64_t charge = sizeof *block + size + block->header.image_size + block->arena.used_bytes;
    bool has_joined = false; /* texts put together, which are no larger than the rows */
    for (uint32_t i = 0; i < block->column_count; i++) {
        const struct lahar_block_column *column = &block->columns[i];
        if (column->is_part) {
            continue; /* decoded for a moment only */
        }
        charge += (uint64_t)column->slot_count * 8 + (uint64_t)column->entry_count * 8;
        if (column->entries_encoding == LAHAR_ENTRIES_TEMPLATES) {
            charge += lahar_text_plan_charge(block, column);
            charge += has_joined ? 0 : block->header.raw_size;
            has_joined = true;
        } else if (column->entries_encoding != LAHAR_ENTRIES_RAW) {
            charge += (uint64_t)column->entry_count * 32;
        }
    }
    return charge;
}

static lahar_status load(struct lahar_block *block, size_t size, const struct lahar_stream *stream,
                         lahar_error *error)
{
    struct lahar_block_header *header = &block->header;
    LAHAR_TRY(lahar_block_header_read(block->stored, size, header, error));
    if (header->size != size) {
        return lahar_fail(error, LAHAR_CORRUPT, "a block has %u bytes where %zu were expected",
                          header->size, size);
    }
    LAHAR_TRY(lahar_block_header_check(block->stored, header, error));
    if (stream != NULL && header->stream != stream->id) {
        return lahar_fail(error, LAHAR_CORRUPT, "a block is of another stream");
    }
    if (header->raw_size / ROW_SIZE_MIN < header->row_count ||
        header->raw_size > (uint64_t)LAHAR_EVENT_SIZE_MAX) {
        return lahar_fail(error, LAHAR_CORRUPT, "a block's header contradicts itself");
    }
    LAHAR_TRY(read_groups(block, size, error));
    block->image = lahar_allocate(block->allocator, (size_t)header->image_size + 1);
    if (block->image == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block");
    }
    LAHAR_TRY(lahar_block_parse(block, stream, error));
    LAHAR_TRY(expand_numbers(block, 0, &block->ids, error));
    LAHAR_TRY(expand_numbers(block, 1, &block->times, error));
    LAHAR_TRY(expand_numbers(block, 2, &block->arrivals, error));
    return check_ids(block, error);
}

lahar_status lahar_block_create(uint8_t *stored, size_t size, const struct lahar_stream *stream,
                                const lahar_allocator *allocator, struct lahar_block **block_out,
                                lahar_error *error)
{
    struct lahar_block *block = lahar_allocate_zeroed(allocator, 1, sizeof *block);
    if (block == NULL || pthread_mutex_init(&block->mutex, NULL) != 0) {
        lahar_release(allocator, block);
        lahar_release(allocator, stored);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block");
    }
    atomic_init(&block->reference_count, 1);
    block->allocator = allocator;
    block->self = block;
    block->stored = stored;
    lahar_arena_init(&block->arena, allocator, ARENA_CHUNK_SIZE);
    const lahar_status status = load(block, size, stream, error);
    if (status != LAHAR_OK) {
        lahar_block_destroy(block);
        return status;
    }
    block->charge = estimate_charge(block, size);
    *block_out = block;
    return LAHAR_OK;
}

void lahar_block_destroy(struct lahar_block *block)
{
    lahar_arena_deinit(&block->arena);
    lahar_release(block->allocator, block->image);
    lahar_release(block->allocator, block->stored);
    (void)pthread_mutex_destroy(&block->mutex);
    lahar_release(block->allocator, block);
}

void lahar_block_release(struct lahar_block *block)
{
    if (block != NULL &&
        atomic_fetch_sub_explicit(&block->reference_count, 1, memory_order_acq_rel) == 1) {
        lahar_block_destroy(block);
    }
}

/* --- rows --------------------------------------------------------------------------- */

uint32_t lahar_block_row_count(const struct lahar_block *block)
{
    return block->header.row_count;
}

uint64_t lahar_block_id(const struct lahar_block *block, uint32_t row)
{
    return block->ids[row];
}

int64_t lahar_block_time(const struct lahar_block *block, uint32_t row)
{
    return (int64_t)block->times[row];
}

uint32_t lahar_block_find(const struct lahar_block *block, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = block->header.row_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (block->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* --- events ------------------------------------------------------------------------- */

static lahar_status fail_read(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a row and its columns disagree");
}

/* The slot of the element's occurrence-th place in the row. */
static lahar_status find_slot(const struct lahar_block *block,
                              const struct lahar_block_element *element, uint32_t row,
                              uint32_t occurrence, uint32_t *slot_out, lahar_error *error)
{
    if (element->rows == NULL) {
        *slot_out = row;
        return LAHAR_OK;
    }
    const uint32_t count = block->columns[element->column].slot_count;
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (element->rows[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (occurrence >= count - low || element->rows[low + occurrence] != row) {
        return fail_read(error);
    }
    *slot_out = low + occurrence;
    return LAHAR_OK;
}

static lahar_status get_bytes(struct lahar_block *block, const struct lahar_block_column *column,
                              uint32_t slot, lahar_bytes *bytes_out, lahar_error *error)
{
    const uint32_t entry = lahar_block_code(column, slot);
    uint32_t start = 0;
    uint32_t size = column->fixed_size;
    if (column->ends != NULL) {
        start = entry == 0 ? 0 : column->ends[entry - 1];
        size = column->ends[entry] - start;
    } else {
        start = entry * size;
    }
    if (column->is_text_lazy) {
        const struct lahar_byte_range range = {column->text_range.offset + start, size};
        LAHAR_TRY(lahar_block_need_bytes(block, range, error));
    }
    *bytes_out = (lahar_bytes){column->bytes + start, size};
    return LAHAR_OK;
}

/* Whether a value of the column is to be read without decoding the others. */
static bool is_read_singly(const struct lahar_block *block, const struct lahar_block_column *column)
{
    /* Counts what is worth doing; nothing depends on the order. */
    return atomic_load_explicit(&block->rows_read, memory_order_relaxed) <= SINGLE_ROWS &&
           !atomic_load_explicit(&column->is_ready, memory_order_relaxed) &&
           column->entries_encoding != LAHAR_ENTRIES_TEMPLATES;
}

/* To find one of many values all before it are passed over: a long list decodes its columns. */
static void expect_elements(struct lahar_block *block, uint32_t count)
{
    if (count > SINGLE_LIST) {
        atomic_store_explicit(&block->rows_read, SINGLE_ROWS + 1, memory_order_relaxed);
    }
}

/* The bytes in a slot of a column that may not be decoded. */
static lahar_status find_bytes(struct lahar_block *block, uint32_t number, const uint32_t *rows,
                               uint32_t slot, struct lahar_arena *arena, lahar_bytes *bytes_out,
                               lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    if (column->entries_encoding == LAHAR_ENTRIES_TEMPLATES) {
        bool is_read = false;
        LAHAR_TRY(
            lahar_block_text_at(block, number, rows, slot, arena, bytes_out, &is_read, error));
        if (is_read) {
            return LAHAR_OK;
        }
    }
    if (is_read_singly(block, column)) {
        uint32_t entry = 0;
        LAHAR_TRY(lahar_block_slot_entry(block, number, rows, slot, arena, &entry, error));
        return lahar_block_entry_at(block, number, entry, arena, bytes_out, error);
    }
    LAHAR_TRY(lahar_block_need_column(block, number, rows, error));
    return get_bytes(block, column, slot, bytes_out, error);
}

/* The same of numbers. */
static lahar_status find_number(struct lahar_block *block, uint32_t number, const uint32_t *rows,
                                uint32_t slot, struct lahar_arena *arena, uint64_t *number_out,
                                lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    if (is_read_singly(block, column)) {
        uint32_t entry = 0;
        LAHAR_TRY(lahar_block_slot_entry(block, number, rows, slot, arena, &entry, error));
        return lahar_block_number_at(block, number, entry, number_out, error);
    }
    LAHAR_TRY(lahar_block_need_column(block, number, rows, error));
    *number_out = column->numbers[lahar_block_code(column, slot)];
    return LAHAR_OK;
}

/* The same of uuids. */
static lahar_status find_uuid(struct lahar_block *block, uint32_t number, const uint32_t *rows,
                              uint32_t slot, struct lahar_arena *arena, lahar_uuid *uuid_out,
                              lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    if (is_read_singly(block, column)) {
        uint32_t entry = 0;
        LAHAR_TRY(lahar_block_slot_entry(block, number, rows, slot, arena, &entry, error));
        return lahar_block_uuid_at(block, number, entry, uuid_out, error);
    }
    LAHAR_TRY(lahar_block_need_column(block, number, rows, error));
    memcpy(uuid_out, column->bytes + (size_t)lahar_block_code(column, slot) * sizeof *uuid_out,
           sizeof *uuid_out);
    return LAHAR_OK;
}

static lahar_status get_uuids(struct lahar_block *block, const struct lahar_block_element *element,
                              uint32_t slot, struct lahar_arena *arena, lahar_value *value,
                              lahar_error *error)
{
    const uint32_t start = element->starts[slot];
    const uint32_t count = element->starts[slot + 1] - start;
    expect_elements(block, count);
    lahar_uuid *uuids = lahar_arena_allocate(arena, count * sizeof uuids[0]);
    if (uuids == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read an event");
    }
    for (uint32_t i = 0; i < count; i++) {
        LAHAR_TRY(find_uuid(block, element->second, NULL, start + i, arena, &uuids[i], error));
    }
    value->as.uuids.items = uuids;
    value->as.uuids.count = count;
    return LAHAR_OK;
}

static lahar_status get_keywords(struct lahar_block *block,
                                 const struct lahar_block_element *element, uint32_t slot,
                                 struct lahar_arena *arena, lahar_value *value, lahar_error *error)
{
    const uint32_t start = element->starts[slot];
    const uint32_t count = element->starts[slot + 1] - start;
    expect_elements(block, count);
    lahar_bytes *keywords = lahar_arena_allocate(arena, count * sizeof keywords[0]);
    if (keywords == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read an event");
    }
    for (uint32_t i = 0; i < count; i++) {
        LAHAR_TRY(find_bytes(block, element->second, NULL, start + i, arena, &keywords[i], error));
    }
    value->as.keywords.items = keywords;
    value->as.keywords.count = count;
    return LAHAR_OK;
}

static lahar_status get_pair(struct lahar_block *block, const struct lahar_block_scope *scope,
                             const struct lahar_block_node *node, uint32_t row,
                             struct lahar_arena *arena, lahar_pair *pair, lahar_error *error)
{
    struct lahar_block_element *element = &scope->elements[node->label / 2];
    pair->is_null = (node->label & 1) != 0;
    pair->key = element->key;
    pair->value = (lahar_bytes){NULL, 0};
    if (pair->is_null && !element->is_unnamed) {
        return LAHAR_OK;
    }
    uint32_t slot = 0;
    LAHAR_TRY(find_slot(block, element, row, node->occurrence, &slot, error));
    if (!element->is_unnamed) {
        return find_bytes(block, element->column, element->rows, slot, arena, &pair->value, error);
    }
    LAHAR_TRY(find_bytes(block, element->column, element->rows, slot, arena, &pair->key, error));
    if (pair->is_null) {
        return LAHAR_OK;
    }
    return find_bytes(block, element->second, element->rows, slot, arena, &pair->value, error);
}

static lahar_status get_map(struct lahar_block *block, const struct lahar_block_element *element,
                            uint32_t row, uint32_t slot, struct lahar_arena *arena,
                            lahar_value *value, lahar_error *error)
{
    LAHAR_TRY(lahar_block_need_scope(block, element->map, error));
    const struct lahar_block_scope *scope = &block->scopes[element->map];
    const struct lahar_block_column *shape = &block->columns[element->column];
    uint32_t node = (uint32_t)shape->numbers[lahar_block_code(shape, slot)];
    const uint32_t count = scope->nodes[node].depth;
    expect_elements(block, count);
    lahar_pair *pairs = lahar_arena_allocate(arena, count * sizeof pairs[0]);
    if (pairs == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read an event");
    }
    for (uint32_t i = count; i-- > 0; node = scope->nodes[node].parent) {
        LAHAR_TRY(get_pair(block, scope, &scope->nodes[node], row, arena, &pairs[i], error));
    }
    value->as.map.items = pairs;
    value->as.map.count = count;
    return LAHAR_OK;
}

static lahar_status get_value(struct lahar_block *block, const struct lahar_block_node *node,
                              uint32_t row, struct lahar_arena *arena, lahar_value *value,
                              lahar_error *error)
{
    const struct lahar_block_element *element = &block->scopes[0].elements[node->label / 2];
    memset(value, 0, sizeof *value);
    value->field = element->field;
    value->type = element->type;
    value->is_null = (node->label & 1) != 0;
    if (value->is_null) {
        return LAHAR_OK;
    }
    uint32_t slot = 0;
    LAHAR_TRY(find_slot(block, element, row, 0, &slot, error));
    uint64_t number = 0;
    switch (element->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return find_bytes(block, element->column, element->rows, slot, arena, &value->as.bytes,
                          error);
    case LAHAR_UUID:
        return find_uuid(block, element->column, element->rows, slot, arena, &value->as.uuid,
                         error);
    case LAHAR_LIST_UUID:
        return get_uuids(block, element, slot, arena, value, error);
    case LAHAR_LIST_KEYWORD:
        return get_keywords(block, element, slot, arena, value, error);
    case LAHAR_MAP:
        return get_map(block, element, row, slot, arena, value, error);
    case LAHAR_BOOL:
        LAHAR_TRY(find_number(block, element->column, element->rows, slot, arena, &number, error));
        value->as.boolean = number == 1;
        return number <= 1 ? LAHAR_OK : fail_read(error);
    default:
        return find_number(block, element->column, element->rows, slot, arena, &value->as.u64,
                           error);
    }
}

/* The fields that a reader wants. */
struct wanted_fields {
    const uint32_t *fields; /* NULL: all */
    size_t count;
};

static bool is_wanted(const struct wanted_fields *wanted, uint32_t field)
{
    size_t i = 0;
    while (i < wanted->count && wanted->fields[i] != field) {
        i++;
    }
    return wanted->fields == NULL || i < wanted->count;
}

static lahar_status read_event(struct lahar_block *block, uint32_t row,
                               const struct wanted_fields *wanted, struct lahar_arena *arena,
                               lahar_event *event_out, lahar_error *error)
{
    LAHAR_TRY(lahar_block_need_scope(block, 0, error));
    if (atomic_load_explicit(&block->rows_read, memory_order_relaxed) <= SINGLE_ROWS) {
        (void)atomic_fetch_add_explicit(&block->rows_read, 1, memory_order_relaxed);
    }
    const struct lahar_block_scope *scope = &block->scopes[0];
    const struct lahar_block_column *shape = &block->columns[scope->shape_column];
    uint32_t node = (uint32_t)shape->numbers[lahar_block_code(shape, row)];
    const uint32_t count = scope->nodes[node].depth;
    lahar_value *values = lahar_arena_allocate(arena, count * sizeof values[0]);
    if (values == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to read an event");
    }
    uint32_t first = count; /* of the values, which are found from behind */
    for (; scope->nodes[node].depth != 0; node = scope->nodes[node].parent) {
        const struct lahar_block_node *value = &scope->nodes[node];
        if (is_wanted(wanted, scope->elements[value->label / 2].field)) {
            LAHAR_TRY(get_value(block, value, row, arena, &values[--first], error));
        }
    }
    *event_out = (lahar_event){.id = block->ids[row],
                               .time_ns = (int64_t)block->times[row],
                               .arrival_ns = (int64_t)block->arrivals[row],
                               .stream = block->header.stream,
                               .is_durable = true,
                               .values = values + first,
                               .value_count = count - first};
    return LAHAR_OK;
}

lahar_status lahar_block_read(const struct lahar_block *block, uint32_t row,
                              struct lahar_arena *arena, lahar_event *event_out, lahar_error *error)
{
    return lahar_block_read_fields(block, row, NULL, 0, arena, event_out, error);
}

lahar_status lahar_block_read_fields(const struct lahar_block *block, uint32_t row,
                                     const uint32_t *fields, size_t field_count,
                                     struct lahar_arena *arena, lahar_event *event_out,
                                     lahar_error *error)
{
    LAHAR_ASSERT(row < block->header.row_count);
    /* What is inflated late is not part of the block's value. */
    struct lahar_block *lazy = block->self;
    const struct wanted_fields wanted = {fields, field_count};
    const lahar_status status = read_event(lazy, row, &wanted, arena, event_out, error);
    if (status != LAHAR_OK) {
        lahar_error_context(error, "events %llu..%llu of %s",
                            (unsigned long long)block->header.first_id,
                            (unsigned long long)block->header.last_id, block->file_name);
    }
    return status;
}

lahar_status lahar_block_check_all(struct lahar_block *block, lahar_error *error)
{
    const struct lahar_block_header *header = &block->header;
    for (uint32_t i = 0; i < header->group_count; i++) {
        const struct lahar_byte_range range = {block->groups[i].raw_offset,
                                               block->groups[i].raw_size};
        LAHAR_TRY(lahar_block_need_bytes(block, range, error));
    }
    for (uint32_t i = 0; i < block->column_count; i++) {
        /* Texts that are read singly do not show whether every variable is used up. */
        atomic_store_explicit(&block->columns[i].single_reads, UINT32_MAX / 2,
                              memory_order_relaxed);
    }
    atomic_store_explicit(&block->rows_read, SINGLE_ROWS + 1, memory_order_relaxed);
    const struct wanted_fields everything = {NULL, 0};
    struct lahar_arena arena;
    lahar_arena_init(&arena, block->allocator, 0);
    lahar_status status = LAHAR_OK;
    int64_t time_min = INT64_MAX;
    int64_t time_max = INT64_MIN;
    int64_t arrival_min = INT64_MAX;
    int64_t arrival_max = INT64_MIN;
    for (uint32_t row = 0; row < header->row_count && status == LAHAR_OK; row++) {
        lahar_event event;
        status = read_event(block, row, &everything, &arena, &event, error);
        lahar_arena_reset(&arena);
        const int64_t time = (int64_t)block->times[row];
        const int64_t arrival = (int64_t)block->arrivals[row];
        time_min = time < time_min ? time : time_min;
        time_max = time > time_max ? time : time_max;
        arrival_min = arrival < arrival_min ? arrival : arrival_min;
        arrival_max = arrival > arrival_max ? arrival : arrival_max;
    }
    lahar_arena_deinit(&arena);
    if (status == LAHAR_OK &&
        (time_min != header->time_min_ns || time_max != header->time_max_ns ||
         arrival_min != header->arrival_min_ns || arrival_max != header->arrival_max_ns)) {
        status = lahar_fail(error, LAHAR_CORRUPT, "a block's times are not those of its header");
    }
    return status;
}
