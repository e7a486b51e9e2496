/* A sorted array of offset records. Sources have few keys (files that are followed),
 * and nearly every change replaces a value in place, so an array is enough. */
#include "engine/store/offset_table.h"

#include <string.h>

#include "io/base/error.h"

void lahar_offset_table_init(struct lahar_offset_table *table, bool keeps_forgotten,
                             const lahar_allocator *allocator)
{
    *table =
        (struct lahar_offset_table){.keeps_forgotten = keeps_forgotten, .allocator = allocator};
}

static void *record_memory(const struct lahar_offset_record *record)
{
    union {
        const void *read;
        void *write;
    } memory = {record->source.data};
    return memory.write;
}

void lahar_offset_table_deinit(struct lahar_offset_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        lahar_release(table->allocator, record_memory(&table->records[i]));
    }
    lahar_release(table->allocator, table->records);
    table->records = NULL;
    table->count = 0;
    table->capacity = 0;
}

int lahar_bytes_compare(lahar_bytes a, lahar_bytes b)
{
    const size_t shorter = a.size < b.size ? a.size : b.size;
    const int order = shorter == 0 ? 0 : memcmp(a.data, b.data, shorter);
    if (order != 0) {
        return order;
    }
    return a.size < b.size ? -1 : a.size > b.size;
}

/* The first record not below (source, key). */
static size_t lower_bound(const struct lahar_offset_table *table, lahar_bytes source,
                          lahar_bytes key)
{
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct lahar_offset_record *record = &table->records[middle];
        int order = lahar_bytes_compare(record->source, source);
        if (order == 0) {
            order = lahar_bytes_compare(record->key, key);
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t lahar_offset_table_find_source(const struct lahar_offset_table *table, lahar_bytes source)
{
    return lower_bound(table, source, (lahar_bytes){NULL, 0});
}

static lahar_status copy_record(const struct lahar_offset_table *table,
                                const struct lahar_offset_record *record,
                                struct lahar_offset_record *copy_out, lahar_error *error)
{
    const size_t size = record->source.size + record->key.size + record->value.size;
    uint8_t *memory = lahar_allocate(table->allocator, size == 0 ? 1 : size);
    if (memory == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "an offset record needs %zu bytes", size);
    }
    const lahar_bytes parts[3] = {record->source, record->key, record->value};
    lahar_bytes copies[3];
    uint8_t *next = memory;
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].size != 0) {
            memcpy(next, parts[i].data, parts[i].size);
        }
        copies[i] = (lahar_bytes){next, parts[i].size};
        next += parts[i].size;
    }
    *copy_out = (struct lahar_offset_record){copies[0], copies[1], copies[2]};
    return LAHAR_OK;
}

static lahar_status grow(struct lahar_offset_table *table, lahar_error *error)
{
    if (table->count < table->capacity) {
        return LAHAR_OK;
    }
    const size_t capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
    struct lahar_offset_record *records = lahar_reallocate(
        table->allocator, table->records, capacity * sizeof(struct lahar_offset_record));
    if (records == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu offset records", capacity);
    }
    table->records = records;
    table->capacity = capacity;
    return LAHAR_OK;
}

lahar_status lahar_offset_table_set(struct lahar_offset_table *table,
                                    const struct lahar_offset_record *record, lahar_error *error)
{
    const size_t at = lower_bound(table, record->source, record->key);
    struct lahar_offset_record *found = NULL;
    if (at < table->count && lahar_bytes_compare(table->records[at].source, record->source) == 0 &&
        lahar_bytes_compare(table->records[at].key, record->key) == 0) {
        found = &table->records[at];
    }
    if (record->value.size == 0 && !table->keeps_forgotten) {
        if (found != NULL) {
            lahar_release(table->allocator, record_memory(found));
            memmove(found, found + 1, (table->count - at - 1) * sizeof *found);
            table->count--;
        }
        return LAHAR_OK;
    }
    struct lahar_offset_record copy;
    LAHAR_TRY(copy_record(table, record, &copy, error));
    if (found != NULL) {
        lahar_release(table->allocator, record_memory(found));
        *found = copy;
        return LAHAR_OK;
    }
    const lahar_status status = grow(table, error);
    if (status != LAHAR_OK) {
        lahar_release(table->allocator, record_memory(&copy));
        return status;
    }
    memmove(&table->records[at + 1], &table->records[at],
            (table->count - at) * sizeof *table->records);
    table->records[at] = copy;
    table->count++;
    return LAHAR_OK;
}
