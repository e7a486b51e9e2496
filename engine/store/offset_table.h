/* The newest value of every (source, key), sorted by source, then key. Not
 * thread-safe: the owner guards it. */
#ifndef LAHAR_STORE_OFFSET_TABLE_H
#define LAHAR_STORE_OFFSET_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/store/offset_record.h"
#include "io/base/allocator.h"
#include "lahar/status.h"

struct lahar_offset_table {
    /* Each record's three parts lie in one allocation that starts at source. */
    struct lahar_offset_record *records;
    size_t count;
    size_t capacity;
    bool keeps_forgotten; /* a list of changes: an empty value stays as a record */
    const lahar_allocator *allocator;
};

void lahar_offset_table_init(struct lahar_offset_table *table, bool keeps_forgotten,
                             const lahar_allocator *allocator);
void lahar_offset_table_deinit(struct lahar_offset_table *table);
/* Copies the record in, replacing an older value. */
lahar_status lahar_offset_table_set(struct lahar_offset_table *table,
                                    const struct lahar_offset_record *record, lahar_error *error);
/* The first record whose source is not below source; count when there is none. */
size_t lahar_offset_table_find_source(const struct lahar_offset_table *table, lahar_bytes source);
/* Orders byte strings as memcmp does, a prefix before what it begins. */
int lahar_bytes_compare(lahar_bytes a, lahar_bytes b);

#endif
