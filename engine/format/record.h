/* The event of one record while it is put together: values, pairs of its maps, and the memory that
 * they point to, reused from record to record. */
#ifndef LAHAR_FORMAT_RECORD_H
#define LAHAR_FORMAT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/field_map.h"
#include "engine/format/time_pattern.h"
#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

/* Big enough for an item of either list type. */
union lahar_record_item {
    lahar_uuid uuid;
    lahar_bytes keyword;
};

/* The pairs of one map field. */
struct lahar_record_map {
    lahar_pair *pairs; /* owned */
    size_t pair_count;
    size_t pair_capacity;
    uint32_t field;
};

struct lahar_record {
    struct lahar_arena arena;
    struct lahar_buffer shape;
    lahar_value *values; /* owned */
    size_t value_count;
    size_t value_capacity;
    struct lahar_record_map *maps; /* owned; [0] is attributes */
    size_t map_count;
    int64_t time_ns;                /* LAHAR_TIME_OF_ARRIVAL unless the record has one */
    struct lahar_time_pattern time; /* how it is written */
    const lahar_allocator *allocator;
};

/* What became of a value given to the record. */
enum lahar_record_put {
    LAHAR_PUT_EXACT,   /* its canonical text is the text given */
    LAHAR_PUT_INEXACT, /* stored, but written differently */
    LAHAR_PUT_PAIR,    /* it became an attribute */
    LAHAR_PUT_REFUSED, /* the text is not of the field's type */
    LAHAR_PUT_NO_MEMORY
};

void lahar_record_init(struct lahar_record *record, const lahar_allocator *allocator);
void lahar_record_deinit(struct lahar_record *record);
void lahar_record_reset(struct lahar_record *record);

bool lahar_record_grow_values(struct lahar_record *record);
/* Room for one more value, all zero; NULL when memory is refused. */
static inline lahar_value *lahar_record_add(struct lahar_record *record, uint32_t field,
                                            lahar_type type)
{
    if (record->value_count == record->value_capacity && !lahar_record_grow_values(record)) {
        return NULL;
    }
    lahar_value *value = &record->values[record->value_count++];
    *value = (lahar_value){.field = field, .type = type};
    return value;
}

bool lahar_record_has(const struct lahar_record *record, uint32_t field);
bool lahar_record_add_bytes(struct lahar_record *record, uint32_t field, lahar_type type,
                            lahar_bytes bytes);

/* Index in maps of a map field, which is added when it is new; SIZE_MAX when
 * memory is refused. attributes is always 0. */
size_t lahar_record_map_index(struct lahar_record *record, uint32_t field);
/* Makes room for one more pair of a map, and for attributes if need be. */
bool lahar_record_grow_pairs(struct lahar_record *record, size_t map_index);

static inline bool lahar_record_add_pair(struct lahar_record *record, size_t map_index,
                                         lahar_bytes key, lahar_bytes value, bool is_null)
{
    if ((record->map_count == 0 ||
         record->maps[map_index].pair_count == record->maps[map_index].pair_capacity) &&
        !lahar_record_grow_pairs(record, map_index)) {
        return false;
    }
    struct lahar_record_map *map = &record->maps[map_index];
    map->pairs[map->pair_count++] = (lahar_pair){key, value, is_null};
    return true;
}

/* A scalar for a declared field that has none yet; a list field takes it as its
 * only item. text must outlive the record's use. */
enum lahar_record_put lahar_record_put_text(struct lahar_record *record,
                                            const struct lahar_field_entry *entry,
                                            lahar_bytes text);
/* The text of the time field; the first that is a time counts. */
void lahar_record_take_time(struct lahar_record *record, lahar_bytes text);
bool lahar_record_put_null(struct lahar_record *record, const struct lahar_field_entry *entry);

/* Adds the maps and the shape as values and fills the event. False when memory is
 * refused. The event points into the record. */
bool lahar_record_finish(struct lahar_record *record, uint32_t stream, lahar_event *event_out);

#endif
