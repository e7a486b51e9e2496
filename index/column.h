/* Columns of 64-bit numbers by document: event times and NUMBER fields.
 *
 * A column is cut into blocks of 1024 documents. Each has a zone (minimum, maximum, place of
 * its data); the data holds which documents have a value and the values less the
 * minimum, divided by their common divisor, packed. Where every event of a group has the same value
 * (see groups.h), the column is one of groups. What does not fit this form (a second value of a
 * document, an outlier that would widen its whole block) is listed apart, as extras. */
#ifndef LAHAR_INDEX_COLUMN_H
#define LAHAR_INDEX_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#include "index/postings.h"

/* Values under construction, in order of document. */
struct lahar_column_values {
    uint32_t *documents;
    uint64_t *values;
    size_t count;
    size_t documents_capacity;
    size_t values_capacity;
};

/* Makes room for count values more; false when memory is refused. */
bool lahar_column_values_reserve(struct lahar_column_values *values, size_t count,
                                 const lahar_allocator *allocator);
void lahar_column_values_deinit(struct lahar_column_values *values,
                                const lahar_allocator *allocator);

/* False when memory is refused. */
static inline bool lahar_column_values_add(struct lahar_column_values *values, uint32_t document,
                                           uint64_t value, const lahar_allocator *allocator)
{
    if ((values->count == values->documents_capacity || values->count == values->values_capacity) &&
        !lahar_column_values_reserve(values, 1, allocator)) {
        return false;
    }
    values->documents[values->count] = document;
    values->values[values->count++] = value;
    return true;
}

/* Where a column is in its shard. */
struct lahar_column {
    uint64_t zones;  /* offset of a zone a block */
    uint64_t extras; /* offset of the extras, sorted by document */
    uint64_t extra_count;
    bool is_grouped; /* documents in it are groups, and there are no extras */
};

/* Values inside [low, high] go to the blocks, others to the extras. may_group: the column may
 * become one of groups, and then low and high are not looked at. Failure is left in
 * writer->out->has_failed. */
void lahar_column_write(struct lahar_list_writer *writer, const struct lahar_column_values *values,
                        uint64_t low, uint64_t high, bool may_group,
                        struct lahar_column *column_out);

/* Adds the documents with a value in [low, high], both inclusive. */
lahar_status lahar_column_range(const struct lahar_list_reader *reader,
                                const struct lahar_column *column, uint64_t low, uint64_t high,
                                struct lahar_docset *set, lahar_error *error);

/* Passes each document of within that has a value, with the value, to visit, in no order.
 * LAHAR_UNSUPPORTED when the column is one of groups. */
typedef void (*lahar_number_visit)(void *context, uint32_t document, uint64_t value);
lahar_status lahar_column_visit(const struct lahar_list_reader *reader,
                                const struct lahar_column *column,
                                const struct lahar_docset *within, lahar_number_visit visit,
                                void *context, lahar_error *error);

/* The same as values and how many of the documents in within have them; a value may come several
 * times. Also of columns of groups. */
typedef lahar_status (*lahar_number_count_visit)(void *context, uint64_t value, uint64_t count,
                                                 lahar_error *error);
lahar_status lahar_column_counts(const struct lahar_list_reader *reader,
                                 const struct lahar_column *column,
                                 const struct lahar_docset *within, lahar_number_count_visit visit,
                                 void *context, lahar_error *error);

#endif
