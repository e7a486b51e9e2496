/* Putting an event together; see record.h. */
#include "engine/format/record.h"

#include <string.h>

#include "engine/format/value_text.h"
#include "io/base/error.h"

void lahar_record_init(struct lahar_record *record, const lahar_allocator *allocator)
{
    memset(record, 0, sizeof *record);
    record->allocator = allocator;
    record->time_ns = LAHAR_TIME_OF_ARRIVAL;
    lahar_arena_init(&record->arena, allocator, 0);
    lahar_buffer_init(&record->shape, allocator);
}

void lahar_record_deinit(struct lahar_record *record)
{
    for (size_t i = 0; i < record->map_count; i++) {
        lahar_release(record->allocator, record->maps[i].pairs);
    }
    lahar_release(record->allocator, record->maps);
    lahar_release(record->allocator, record->values);
    lahar_buffer_deinit(&record->shape);
    lahar_arena_deinit(&record->arena);
}

void lahar_record_reset(struct lahar_record *record)
{
    lahar_arena_reset(&record->arena);
    lahar_buffer_clear(&record->shape);
    for (size_t i = 0; i < record->map_count; i++) {
        record->maps[i].pair_count = 0;
    }
    record->value_count = 0;
    record->time_ns = LAHAR_TIME_OF_ARRIVAL;
}

bool lahar_record_grow_values(struct lahar_record *record)
{
    const size_t capacity = record->value_capacity == 0 ? 32 : record->value_capacity * 2;
    lahar_value *values =
        lahar_reallocate(record->allocator, record->values, capacity * sizeof *values);
    if (values == NULL) {
        return false;
    }
    record->values = values;
    record->value_capacity = capacity;
    return true;
}

bool lahar_record_has(const struct lahar_record *record, uint32_t field)
{
    for (size_t i = 0; i < record->value_count; i++) {
        if (record->values[i].field == field) {
            return true;
        }
    }
    return false;
}

bool lahar_record_add_bytes(struct lahar_record *record, uint32_t field, lahar_type type,
                            lahar_bytes bytes)
{
    lahar_value *value = lahar_record_add(record, field, type);
    if (value == NULL) {
        return false;
    }
    value->as.bytes = bytes;
    return true;
}

size_t lahar_record_map_index(struct lahar_record *record, uint32_t field)
{
    for (size_t i = 0; i < record->map_count; i++) {
        if (record->maps[i].field == field) {
            return i;
        }
    }
    if (record->map_count == 0 && field != LAHAR_FIELD_ATTRIBUTES &&
        lahar_record_map_index(record, LAHAR_FIELD_ATTRIBUTES) == SIZE_MAX) {
        return SIZE_MAX;
    }
    struct lahar_record_map *maps = lahar_reallocate(
        record->allocator, record->maps, (record->map_count + 1) * sizeof *record->maps);
    if (maps == NULL) {
        return SIZE_MAX;
    }
    record->maps = maps;
    maps[record->map_count] = (struct lahar_record_map){.field = field};
    return record->map_count++;
}

bool lahar_record_grow_pairs(struct lahar_record *record, size_t map_index)
{
    if (record->map_count == 0 &&
        lahar_record_map_index(record, LAHAR_FIELD_ATTRIBUTES) == SIZE_MAX) {
        return false;
    }
    struct lahar_record_map *map = &record->maps[map_index];
    const size_t capacity = map->pair_capacity == 0 ? 32 : map->pair_capacity * 2;
    lahar_pair *pairs = lahar_reallocate(record->allocator, map->pairs, capacity * sizeof *pairs);
    if (pairs == NULL) {
        return false;
    }
    map->pairs = pairs;
    map->pair_capacity = capacity;
    return true;
}

static enum lahar_record_put put_single_item(struct lahar_record *record,
                                             const struct lahar_field_entry *entry,
                                             lahar_bytes text)
{
    const bool is_uuid = entry->type == LAHAR_LIST_UUID;
    bool is_canonical = true;
    void *item = lahar_arena_allocate(&record->arena, sizeof(union lahar_record_item));
    if (item == NULL) {
        return LAHAR_PUT_NO_MEMORY;
    }
    if (is_uuid && !lahar_uuid_parse(text, item, &is_canonical)) {
        return LAHAR_PUT_REFUSED;
    }
    if (!is_uuid) {
        *(lahar_bytes *)item = text;
    }
    lahar_value *value = lahar_record_add(record, entry->field, entry->type);
    if (value == NULL) {
        return LAHAR_PUT_NO_MEMORY;
    }
    if (is_uuid) {
        value->as.uuids.items = item;
        value->as.uuids.count = 1;
    } else {
        value->as.keywords.items = item;
        value->as.keywords.count = 1;
    }
    return is_canonical ? LAHAR_PUT_EXACT : LAHAR_PUT_INEXACT;
}

enum lahar_record_put lahar_record_put_text(struct lahar_record *record,
                                            const struct lahar_field_entry *entry, lahar_bytes text)
{
    if (entry->type == LAHAR_LIST_KEYWORD || entry->type == LAHAR_LIST_UUID) {
        return put_single_item(record, entry, text);
    }
    lahar_value *value = lahar_record_add(record, entry->field, entry->type);
    bool is_canonical;
    if (value == NULL) {
        return LAHAR_PUT_NO_MEMORY;
    }
    if (entry->type == LAHAR_KEYWORD || entry->type == LAHAR_TEXT || entry->type == LAHAR_BYTES) {
        value->as.bytes = text;
        return LAHAR_PUT_EXACT;
    }
    if (!lahar_value_parse(text, value, &is_canonical)) {
        record->value_count--;
        return LAHAR_PUT_REFUSED;
    }
    return is_canonical ? LAHAR_PUT_EXACT : LAHAR_PUT_INEXACT;
}

void lahar_record_take_time(struct lahar_record *record, lahar_bytes text)
{
    int64_t time_ns;
    if (record->time_ns == LAHAR_TIME_OF_ARRIVAL &&
        lahar_time_pattern_parse(&record->time, text, &time_ns)) {
        record->time_ns = time_ns;
    }
}

bool lahar_record_put_null(struct lahar_record *record, const struct lahar_field_entry *entry)
{
    lahar_value *value = lahar_record_add(record, entry->field, entry->type);
    if (value == NULL) {
        return false;
    }
    value->is_null = true;
    return true;
}

bool lahar_record_finish(struct lahar_record *record, uint32_t stream, lahar_event *event_out)
{
    for (size_t i = 0; i < record->map_count; i++) {
        const struct lahar_record_map *map = &record->maps[i];
        if (map->pair_count == 0) {
            continue;
        }
        lahar_value *value = lahar_record_add(record, map->field, LAHAR_MAP);
        if (value == NULL) {
            return false;
        }
        value->as.map.items = map->pairs;
        value->as.map.count = map->pair_count;
    }
    const lahar_bytes shape = {record->shape.data, record->shape.size};
    if (record->shape.has_failed ||
        (shape.size != 0 &&
         !lahar_record_add_bytes(record, LAHAR_FIELD_SHAPE, LAHAR_KEYWORD, shape))) {
        return false;
    }
    *event_out = (lahar_event){.time_ns = record->time_ns,
                               .stream = stream,
                               .values = record->values,
                               .value_count = record->value_count};
    return true;
}
