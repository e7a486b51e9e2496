/* Ranges of ids that were durable in a journal and are gone: sorted, disjoint, not adjacent. */
#ifndef LAHAR_STORE_LOST_LIST_H
#define LAHAR_STORE_LOST_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/journal/journal.h"
#include "io/base/allocator.h"

struct lahar_lost_list {
    struct lahar_lost_range *ranges;
    size_t count;
    size_t capacity;
};

/* Adds a range, which may overlap others. LAHAR_NO_MEMORY. */
lahar_status lahar_lost_list_add(struct lahar_lost_list *list, struct lahar_lost_range range,
                                 const lahar_allocator *allocator, lahar_error *error);
bool lahar_lost_list_covers(const struct lahar_lost_list *list, struct lahar_lost_range range);
void lahar_lost_list_deinit(struct lahar_lost_list *list, const lahar_allocator *allocator);

#endif
