/* Building the table of names; see field_map.h. At most a quarter of the slots is
 * taken, so that the names of attributes, which are not in it, miss at once. */
#include "engine/format/field_map.h"

#include "engine/format/columns.h"
#include "io/base/error.h"

static bool is_filled_by_name(const struct lahar_stream *stream,
                              const struct lahar_stream_field *field)
{
    if (field->is_hidden) {
        return false;
    }
    switch (field->field) {
    case LAHAR_FIELD_FILENAME:
    case LAHAR_FIELD_OFFSET:
    case LAHAR_FIELD_RAW_RECORD:
    case LAHAR_FIELD_ERROR:
    case LAHAR_FIELD_FRAMING:
    case LAHAR_FIELD_SHAPE:
        return false;
    case LAHAR_FIELD_ATTRIBUTES:
        return stream->schema != LAHAR_SCHEMA_LOG;
    default:
        return true;
    }
}

static void insert(struct lahar_field_map *map, struct lahar_field_entry entry)
{
    entry.hash = lahar_name_hash(entry.name, entry.name_size);
    map->has_dotted = map->has_dotted || memchr(entry.name, '.', entry.name_size) != NULL;
    uint32_t slot = entry.hash & map->slot_mask;
    while (map->slots[slot] != 0) {
        slot = (slot + 1) & map->slot_mask;
    }
    map->entries[map->entry_count++] = entry;
    map->slots[slot] = (uint16_t)map->entry_count;
}

static lahar_status make_room(struct lahar_field_map *map, size_t entry_count, lahar_error *error)
{
    size_t slot_count = 16;
    while (slot_count < entry_count * 4) {
        slot_count *= 2;
    }
    map->entries = lahar_allocate_zeroed(map->allocator, entry_count, sizeof *map->entries);
    map->slots = lahar_allocate_zeroed(map->allocator, slot_count, sizeof *map->slots);
    map->slot_mask = (uint32_t)slot_count - 1;
    if (map->entries == NULL || map->slots == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the names of %zu fields",
                          entry_count);
    }
    return LAHAR_OK;
}

lahar_status lahar_field_map_build(struct lahar_field_map *map, const lahar_allocator *allocator,
                                   const struct lahar_schema_catalog *catalog,
                                   const struct lahar_stream *stream,
                                   const struct lahar_columns *columns, bool is_bare,
                                   const char *time_field, lahar_error *error)
{
    const uint32_t version = map->version + 1;
    if (map->allocator != NULL) {
        lahar_field_map_deinit(map);
    }
    *map = (struct lahar_field_map){.allocator = allocator, .version = version};
    LAHAR_TRY(make_room(map, (size_t)stream->field_count + 1, error));
    bool has_time_field = time_field == NULL;
    for (uint32_t i = 0; i < stream->field_count; i++) {
        const struct lahar_stream_field *field = &stream->fields[i];
        if (is_bare || !is_filled_by_name(stream, field) ||
            lahar_columns_materialize(columns, field->field)) {
            continue;
        }
        const char *name = lahar_schema_field_name(catalog, field->field);
        const bool is_time = time_field != NULL && strcmp(name, time_field) == 0;
        has_time_field = has_time_field || is_time;
        insert(map, (struct lahar_field_entry){.name = name,
                                               .name_size = (uint32_t)strlen(name),
                                               .field = field->field,
                                               .type = field->type,
                                               .is_declared = true,
                                               .is_time = is_time});
    }
    if (!has_time_field) {
        insert(map, (struct lahar_field_entry){.name = time_field,
                                               .name_size = (uint32_t)strlen(time_field),
                                               .is_time = true});
    }
    map->stream = stream;
    return LAHAR_OK;
}

void lahar_field_map_deinit(struct lahar_field_map *map)
{
    if (map->allocator == NULL) {
        return;
    }
    lahar_release(map->allocator, map->entries);
    lahar_release(map->allocator, map->slots);
    *map = (struct lahar_field_map){0};
}
