/* A list that is short, or the store has more to worry about: adding is linear. */
#include "engine/store/lost_list.h"

#include <string.h>

#include "io/base/error.h"

lahar_status lahar_lost_list_add(struct lahar_lost_list *list, struct lahar_lost_range range,
                                 const lahar_allocator *allocator, lahar_error *error)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
        struct lahar_lost_range *larger =
            lahar_reallocate(allocator, list->ranges, capacity * sizeof *larger);
        if (larger == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu lost ranges", capacity);
        }
        list->ranges = larger;
        list->capacity = capacity;
    }
    /* Those from begin to end touch the range and become one with it. */
    size_t begin = 0;
    while (begin < list->count && list->ranges[begin].end_id < range.first_id) {
        begin++;
    }
    size_t end = begin;
    for (; end < list->count && list->ranges[end].first_id <= range.end_id; end++) {
        const struct lahar_lost_range *other = &list->ranges[end];
        range.first_id = other->first_id < range.first_id ? other->first_id : range.first_id;
        range.end_id = other->end_id > range.end_id ? other->end_id : range.end_id;
    }
    memmove(&list->ranges[begin + 1], &list->ranges[end],
            (list->count - end) * sizeof *list->ranges);
    list->ranges[begin] = range;
    list->count = list->count - (end - begin) + 1;
    return LAHAR_OK;
}

bool lahar_lost_list_covers(const struct lahar_lost_list *list, struct lahar_lost_range range)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->ranges[i].first_id <= range.first_id && list->ranges[i].end_id >= range.end_id) {
            return true;
        }
    }
    return false;
}

void lahar_lost_list_deinit(struct lahar_lost_list *list, const lahar_allocator *allocator)
{
    lahar_release(allocator, list->ranges);
    *list = (struct lahar_lost_list){0};
}
