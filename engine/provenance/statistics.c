/* Counting events by type, component and hour, and what was sent of a FlowFile. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/format/time_text.h"
#include "engine/provenance/handle.h"
#include "engine/provenance/identity.h"
#include "io/base/error.h"

#define HOUR_NS INT64_C(3600000000000)

struct count {
    lahar_prov_group group;
    lahar_bytes key; /* in the arena */
    uint64_t event_count;
    uint64_t size_sum;
};

/* Counts by group and key: open addressing over a list. */
struct counts {
    struct lahar_arena arena;
    struct count *items; /* owned */
    size_t count;
    size_t capacity;
    uint32_t *slots; /* owned: item number + 1; twice capacity */
    const lahar_allocator *allocator;
};

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to count events");
}

static size_t find_slot(const struct counts *counts, lahar_prov_group group, lahar_bytes key)
{
    const size_t slot_count = counts->capacity * 2;
    size_t slot = XXH3_64bits_withSeed(key.data, key.size, (uint64_t)group) % slot_count;
    while (counts->slots[slot] != 0) {
        const struct count *item = &counts->items[counts->slots[slot] - 1];
        if (item->group == group && lahar_bytes_equal(item->key, key)) {
            break;
        }
        slot = (slot + 1) % slot_count;
    }
    return slot;
}

static bool grow(struct counts *counts)
{
    const size_t capacity = counts->capacity == 0 ? 64 : counts->capacity * 2;
    struct count *items =
        lahar_reallocate(counts->allocator, counts->items, capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    counts->items = items;
    uint32_t *slots = lahar_allocate_zeroed(counts->allocator, capacity * 2, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    lahar_release(counts->allocator, counts->slots);
    counts->slots = slots;
    counts->capacity = capacity;
    for (size_t i = 0; i < counts->count; i++) {
        slots[find_slot(counts, items[i].group, items[i].key)] = (uint32_t)i + 1;
    }
    return true;
}

static lahar_status add(struct counts *counts, lahar_prov_group group, lahar_bytes key,
                        uint64_t size, lahar_error *error)
{
    if (counts->count == counts->capacity && !grow(counts)) {
        return no_memory(error);
    }
    const size_t slot = find_slot(counts, group, key);
    if (counts->slots[slot] == 0) {
        void *copy = lahar_arena_copy(&counts->arena, key.data, key.size);
        if (copy == NULL && key.size != 0) {
            return no_memory(error);
        }
        counts->items[counts->count] = (struct count){.group = group, .key = {copy, key.size}};
        counts->slots[slot] = (uint32_t)++counts->count;
    }
    struct count *item = &counts->items[counts->slots[slot] - 1];
    item->event_count++;
    item->size_sum += size;
    return LAHAR_OK;
}

static int64_t hour_of(int64_t time_ns)
{
    const int64_t rest = time_ns % HOUR_NS;
    return rest < 0 && time_ns - rest < INT64_MIN + HOUR_NS ? time_ns
           : rest < 0                                       ? time_ns - rest - HOUR_NS
                                                            : time_ns - rest;
}

static lahar_status add_event(struct counts *counts, const struct lahar_provenance *provenance,
                              const lahar_event *event, lahar_error *error)
{
    const struct lahar_prov_fields *fields = &provenance->fields;
    const lahar_value *type = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_TYPE);
    const lahar_value *component = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_COMPONENT);
    const lahar_value *size = lahar_prov_value(fields, event, LAHAR_PROV_FIELD_SIZE);
    const uint64_t bytes = size == NULL ? 0 : size->as.u64;
    char hour[LAHAR_TIME_TEXT_SIZE_MAX];
    if (type != NULL) {
        LAHAR_TRY(add(counts, LAHAR_PROV_BY_TYPE, type->as.bytes, bytes, error));
    }
    if (component != NULL) {
        LAHAR_TRY(add(counts, LAHAR_PROV_BY_COMPONENT, component->as.bytes, bytes, error));
    }
    const size_t hour_size = lahar_time_format(hour_of(event->time_ns), 0, hour);
    return add(counts, LAHAR_PROV_BY_HOUR, (lahar_bytes){hour, hour_size}, bytes, error);
}

static int compare_counts(const void *a, const void *b)
{
    const struct count *left = a;
    const struct count *right = b;
    if (left->group != right->group) {
        return left->group < right->group ? -1 : 1;
    }
    const size_t size = left->key.size < right->key.size ? left->key.size : right->key.size;
    const int order = size == 0 ? 0 : memcmp(left->key.data, right->key.data, size);
    return order != 0 ? order
                      : (left->key.size > right->key.size) - (left->key.size < right->key.size);
}

/* Calls take for every result. Damage is passed over and noted. */
static lahar_status
each_result(struct lahar_provenance *provenance, const char *expression, lahar_order order,
            lahar_status (*take)(void *context, const lahar_event *event, lahar_error *error),
            void *context, bool *is_partial_out, lahar_error *error)
{
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_options_init(&options);
    options.stream = provenance->stream;
    options.order = order;
    options.authorize = provenance->options.authorize;
    options.authorize_context = provenance->options.authorize_context;
    LAHAR_TRY(lahar_query_open(provenance->store, expression, strlen(expression), &options, &query,
                               error));
    lahar_status status = LAHAR_OK;
    while (status == LAHAR_OK) {
        const lahar_event *event = NULL;
        lahar_error reason = {.status = LAHAR_OK};
        status = lahar_query_next(query, &event, &reason);
        if (status == LAHAR_CORRUPT) {
            *is_partial_out = true;
            status = LAHAR_OK;
        } else if (status == LAHAR_OK) {
            status = take(context, event, error);
        } else if (status != LAHAR_NOT_FOUND) {
            status = lahar_fail(error, status, "%s", reason.message);
        }
    }
    lahar_query_close(query);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

struct counting {
    struct lahar_provenance *provenance;
    struct counts counts;
};

static lahar_status count_event(void *context, const lahar_event *event, lahar_error *error)
{
    struct counting *counting = context;
    return add_event(&counting->counts, counting->provenance, event, error);
}

lahar_status lahar_prov_statistics(lahar_provenance *provenance, const char *expression,
                                   lahar_prov_count_visitor visit, void *context,
                                   lahar_error *error)
{
    struct counting counting = {.provenance = provenance};
    struct counts *counts = &counting.counts;
    bool is_partial = false;
    counts->allocator = provenance->allocator;
    lahar_arena_init(&counts->arena, provenance->allocator, 4096);
    lahar_status status = each_result(provenance, expression, LAHAR_ORDER_NEWEST, count_event,
                                      &counting, &is_partial, error);
    if (status == LAHAR_OK && counts->count != 0) {
        qsort(counts->items, counts->count, sizeof *counts->items, compare_counts);
    }
    for (size_t i = 0; i < counts->count && status == LAHAR_OK; i++) {
        const struct count *item = &counts->items[i];
        status = visit(context, item->group, item->key, item->event_count, item->size_sum);
    }
    if (status == LAHAR_OK && is_partial) {
        status = lahar_fail(error, LAHAR_CORRUPT, "some events could not be read and counted");
    }
    lahar_release(counts->allocator, counts->items);
    lahar_release(counts->allocator, counts->slots);
    lahar_arena_deinit(&counts->arena);
    return status;
}

/* --- what was sent -------------------------------------------------------------------------------
 */

struct sending {
    struct lahar_provenance *provenance;
    lahar_prov_visitor visit;
    void *context;
    uint64_t sent_count;
};

static lahar_status visit_sent(void *context, const lahar_event *event, lahar_error *error)
{
    struct sending *sending = context;
    lahar_prov_record *record = NULL;
    LAHAR_TRY(lahar_prov_record_of(sending->provenance, event, &record, error));
    sending->sent_count++;
    const lahar_status status =
        sending->visit == NULL ? LAHAR_OK : sending->visit(sending->context, record);
    lahar_prov_record_close(record);
    return status;
}

/* The earliest event that is held: an answer of "never" reaches back to it. */
static lahar_status find_earliest(struct lahar_provenance *provenance, lahar_prov_sent *sent,
                                  lahar_error *error)
{
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    lahar_scan_options_init(&options);
    options.stream = provenance->stream;
    options.authorize = provenance->options.authorize;
    options.authorize_context = provenance->options.authorize_context;
    LAHAR_TRY(lahar_scan(provenance->store, &options, &cursor, error));
    lahar_status status = LAHAR_CORRUPT;
    while (status == LAHAR_CORRUPT) {
        const lahar_event *event = NULL;
        lahar_error reason = {.status = LAHAR_OK};
        status = lahar_cursor_next(cursor, &event, &reason);
        if (status == LAHAR_OK) {
            sent->has_events = true;
            sent->earliest_id = event->id;
            sent->earliest_time_ns = event->time_ns;
        } else if (status == LAHAR_CORRUPT) {
            sent->is_partial = true;
        } else if (status != LAHAR_NOT_FOUND) {
            status = lahar_fail(error, status, "%s", reason.message);
        }
    }
    lahar_cursor_close(cursor);
    return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
}

lahar_status lahar_prov_sent_of(lahar_provenance *provenance, lahar_bytes uuid,
                                lahar_prov_visitor visit, void *context, lahar_prov_sent *sent_out,
                                lahar_error *error)
{
    static const char prefix[] = "(type=SEND OR type=UPLOAD) uuid=";
    char expression[sizeof prefix + LAHAR_PROV_UUID_TEXT_SIZE];
    struct sending sending = {.provenance = provenance, .visit = visit, .context = context};
    lahar_prov_sent sent = {.struct_size = sent_out->struct_size};
    lahar_uuid identity;
    (void)lahar_prov_identify(uuid, &identity);
    memcpy(expression, prefix, sizeof prefix - 1);
    lahar_prov_uuid_format(&identity, expression + sizeof prefix - 1);
    expression[sizeof expression - 1] = '\0';
    lahar_status status = each_result(provenance, expression, LAHAR_ORDER_EARLIEST_TIME, visit_sent,
                                      &sending, &sent.is_partial, error);
    sent.sent_count = sending.sent_count;
    if (status == LAHAR_OK) {
        status = find_earliest(provenance, &sent, error);
    }
    memcpy(sent_out, &sent, sent.struct_size < sizeof sent ? sent.struct_size : sizeof sent);
    return status;
}
