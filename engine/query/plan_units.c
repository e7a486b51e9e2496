/* What a query works through: one unit for each event file that may hold results, and runs of
 * resident batches, in the order in which their results come. */
#include <stdlib.h>
#include <string.h>

#include "engine/query/query_state.h"
#include "engine/rollover/resident_index.h"
#include "io/base/error.h"

enum {
    RESIDENT_UNIT_EVENTS = 65536, /* rows of one resident unit: 1 MiB of row places */
    ANNOUNCED_UNITS_MAX = 64,     /* those that are visited first */
    ANNOUNCED_UUIDS_MAX = 4
};

/* --- pruning ------------------------------------------------------------------------- */

/* Narrows the prune by what each result must meet. */
static void prune_by(struct lahar_query_prune *prune, const struct lahar_query_node *node)
{
    if (node->kind == LAHAR_NODE_AND) {
        for (const struct lahar_query_node *child = node->child; child != NULL;
             child = child->next) {
            prune_by(prune, child);
        }
        return;
    }
    if (node->kind != LAHAR_NODE_TEST || node->op == LAHAR_TEST_NOT_EQUAL ||
        node->op == LAHAR_TEST_PRESENT) {
        return;
    }
    const struct lahar_test *test = node->test;
    if (test->target == LAHAR_TARGET_TIME && test->is_time) {
        if (test->time.first_ns > prune->time.first_ns) {
            prune->time.first_ns = test->time.first_ns;
        }
        if (test->time.last_ns < prune->time.last_ns) {
            prune->time.last_ns = test->time.last_ns;
        }
    } else if (test->target == LAHAR_TARGET_ID && test->is_number) {
        uint64_t first = 0;
        uint64_t last = 0;
        if (!lahar_column_span(LAHAR_COLUMN_U64, &test->range, &first, &last)) {
            prune->end_id = 0;
            return;
        }
        prune->first_id = first > prune->first_id ? first : prune->first_id;
        if (last < prune->end_id) {
            prune->end_id = last + 1 < prune->end_id ? last + 1 : prune->end_id;
        }
    }
}

/* Whether each result must meet a test of the stream that this one does not. */
static bool stream_is_excluded(struct lahar_query *query, const struct lahar_query_node *node,
                               const struct lahar_stream *stream)
{
    if (node->kind == LAHAR_NODE_AND) {
        for (const struct lahar_query_node *child = node->child; child != NULL;
             child = child->next) {
            if (stream_is_excluded(query, child, stream)) {
                return true;
            }
        }
        return false;
    }
    return node->kind == LAHAR_NODE_TEST && node->test->target == LAHAR_TARGET_STREAM &&
           node->op != LAHAR_TEST_NOT_EQUAL && stream != NULL &&
           !lahar_match_keyword(&query->matcher, node->test, stream->name, strlen(stream->name));
}

bool lahar_query_excludes(struct lahar_query *query, const struct lahar_segment_info *info)
{
    const struct lahar_query_prune *prune = &query->context.prune;
    return info->event_count == 0 || info->last_id < prune->first_id ||
           info->first_id >= prune->end_id || info->time_max_ns < prune->time.first_ns ||
           info->time_min_ns > prune->time.last_ns || prune->time.first_ns > prune->time.last_ns ||
           stream_is_excluded(query, query->context.filter,
                              lahar_schema_stream(query->catalog, info->stream));
}

/* A shard tells the times of its bad clocks apart, so that one of them does not stretch the range
 * of all: the file's description cannot. A limit at the end of time would be one too far for `to`.
 */
static bool shard_excludes(const struct lahar_query_prune *prune, const struct lahar_shard *shard)
{
    return shard != NULL && prune->time.last_ns < INT64_MAX &&
           !lahar_shard_may_hold_time(shard, prune->time.first_ns, prune->time.last_ns + 1);
}

/* --- units --------------------------------------------------------------------------- */

static void add_segments(struct lahar_query *query)
{
    const size_t count = lahar_snapshot_segment_count(query->snapshot);
    for (size_t i = 0; i < count; i++) {
        const struct lahar_snapshot_segment *segment = lahar_snapshot_segment(query->snapshot, i);
        const struct lahar_segment_info *info = lahar_segment_describe(segment->segment);
        query->shards_total++;
        if (lahar_query_excludes(query, info) ||
            shard_excludes(&query->context.prune, segment->shard)) {
            query->shards_pruned++;
            continue;
        }
        query->context.shards_failed += segment->shard == NULL;
        query->units[query->unit_count++] =
            (struct lahar_unit){.segment = segment->segment,
                                .shard = segment->shard,
                                .stream = info->stream,
                                .first_id = info->first_id,
                                .last_id = info->last_id,
                                .time_min_ns = info->time_min_ns,
                                .time_max_ns = info->time_max_ns,
                                .event_count = (uint32_t)info->event_count};
    }
}

static uint64_t batch_end(const struct lahar_resident_batch *batch)
{
    return batch->first_id + batch->event_count;
}

/* Units under construction; units NULL: they are only counted. */
struct unit_list {
    struct lahar_unit *units;
    uint32_t count;
};

static void put_unit(struct unit_list *list, const struct lahar_unit *unit)
{
    if (list->units != NULL) {
        list->units[list->count] = *unit;
    }
    list->count++;
}

/* Cuts batches [first, end) into units of a bounded number of rows. */
static void cut_batches(const struct lahar_query *query, size_t first, size_t end,
                        struct unit_list *list)
{
    /* Times are not known beforehand. */
    struct lahar_unit unit = {
        .stream = LAHAR_ANY_STREAM, .time_min_ns = INT64_MIN, .time_max_ns = INT64_MAX};
    for (size_t i = first; i < end; i++) {
        const struct lahar_resident_batch *batch = lahar_snapshot_batch(query->snapshot, i);
        if (batch->event_count == 0) {
            continue;
        }
        if (unit.event_count == 0) {
            unit.first_batch = i;
            unit.first_id = batch->first_id;
        }
        unit.end_batch = i + 1;
        unit.last_id = batch_end(batch) - 1;
        unit.event_count += batch->event_count;
        if (unit.event_count >= RESIDENT_UNIT_EVENTS) {
            put_unit(list, &unit);
            unit.event_count = 0;
        }
    }
    if (unit.event_count != 0) {
        put_unit(list, &unit);
    }
}

/* A unit for each stream of a slice that may hold results with ids in [first_id, end_id). */
static void add_slice(struct lahar_query *query, const struct lahar_resident_slice *slice,
                      uint64_t first_id, uint64_t end_id, struct unit_list *list)
{
    const struct lahar_query_prune *prune = &query->context.prune;
    for (size_t i = 0; i < slice->shard_count; i++) {
        struct lahar_shard *shard = slice->shards[i].shard;
        struct lahar_unit unit = {.shard = shard,
                                  .slice = shard,
                                  .stream = slice->shards[i].stream,
                                  .first_id =
                                      slice->first_id > first_id ? slice->first_id : first_id,
                                  .last_id = (slice->end_id < end_id ? slice->end_id : end_id) - 1,
                                  .event_count = lahar_shard_document_count(shard)};
        lahar_shard_time_range(shard, &unit.time_min_ns, &unit.time_max_ns);
        if (unit.time_max_ns >= prune->time.first_ns && unit.time_min_ns <= prune->time.last_ns &&
            !stream_is_excluded(query, query->context.filter,
                                lahar_schema_stream(query->catalog, unit.stream))) {
            put_unit(list, &unit);
        }
    }
}

/* Units of the events in memory: those that are indexed, and runs of batches for the others. */
static uint32_t cut_resident(struct lahar_query *query, struct lahar_unit *units)
{
    const struct lahar_query_prune *prune = &query->context.prune;
    const struct lahar_resident_slices *slices = lahar_snapshot_slices(query->snapshot);
    const size_t end = lahar_snapshot_find_batch(query->snapshot, prune->end_id);
    struct unit_list list = {units, 0};
    size_t next = lahar_snapshot_find_batch(query->snapshot, prune->first_id);
    const size_t batch_count = lahar_snapshot_batch_count(query->snapshot);
    /* The batch that holds end_id is looked at too. */
    const size_t stop =
        end < batch_count && lahar_snapshot_batch(query->snapshot, end)->first_id < prune->end_id
            ? end + 1
            : end;
    for (size_t i = 0; slices != NULL && i < slices->count && next < stop; i++) {
        const struct lahar_resident_slice *slice = slices->slices[i];
        const uint64_t next_id = lahar_snapshot_batch(query->snapshot, next)->first_id;
        if (slice->end_id <= next_id) {
            continue;
        }
        if (slice->first_id >= prune->end_id) {
            break;
        }
        const size_t first = lahar_snapshot_find_batch(query->snapshot, slice->first_id);
        if (first > next) {
            cut_batches(query, next, first, &list);
        }
        add_slice(query, slice, first > next ? slice->first_id : next_id, prune->end_id, &list);
        next = lahar_snapshot_find_batch(query->snapshot, slice->end_id);
    }
    if (next < stop) {
        cut_batches(query, next, stop, &list);
    }
    return list.count;
}

/* Which of two units may hold the earlier results; > 0: b. */
static int compare_units(lahar_order order, const struct lahar_unit *a, const struct lahar_unit *b)
{
    switch (order) {
    case LAHAR_ORDER_NEWEST:
        return a->last_id > b->last_id ? -1 : a->last_id < b->last_id;
    case LAHAR_ORDER_OLDEST:
        return a->first_id < b->first_id ? -1 : a->first_id > b->first_id;
    case LAHAR_ORDER_LATEST_TIME:
        return a->time_max_ns > b->time_max_ns ? -1 : a->time_max_ns < b->time_max_ns;
    case LAHAR_ORDER_EARLIEST_TIME:
        return a->time_min_ns < b->time_min_ns ? -1 : a->time_min_ns > b->time_min_ns;
    }
    return 0;
}

static int compare_for_qsort(const void *a, const void *b, void *order)
{
    return compare_units(*(const lahar_order *)order, a, b);
}

/* --- what is going to be read -------------------------------------------------------- */

struct asked_uuid {
    const struct lahar_test *test;
    const char *field; /* NULL: that of an attribute, or none */
};

/* Lists the tests of whole uuids; false when they are many. */
static bool list_uuids(const struct lahar_query *query, const struct lahar_query_node *node,
                       struct asked_uuid *asked, size_t *count)
{
    for (const struct lahar_query_node *child = node->child; child != NULL; child = child->next) {
        if (!list_uuids(query, child, asked, count)) {
            return false;
        }
    }
    if (node->kind != LAHAR_NODE_TEST || !node->test->is_uuid || node->is_pattern ||
        (node->op != LAHAR_TEST_MATCH && node->op != LAHAR_TEST_EQUAL) ||
        node->test->target != LAHAR_TARGET_FIELD || !node->test->has_field) {
        return true;
    }
    if (*count == ANNOUNCED_UUIDS_MAX) {
        return false;
    }
    asked[(*count)++] =
        (struct asked_uuid){node->test, lahar_schema_field_name(query->catalog, node->test->field)};
    return true;
}

/* A uuid is in few shards, and each is asked where: its filter, then its table, a page each. They
 * are announced for all shards together, so that the query waits for the disk twice and not twice
 * a shard. */
static void announce_uuids(struct lahar_query *query)
{
    struct asked_uuid asked[ANNOUNCED_UUIDS_MAX];
    size_t count = 0;
    const uint32_t units =
        query->unit_count < ANNOUNCED_UNITS_MAX ? query->unit_count : (uint32_t)ANNOUNCED_UNITS_MAX;
    if (!list_uuids(query, query->context.filter, asked, &count)) {
        return;
    }
    for (uint32_t i = 0; i < units; i++) {
        for (size_t k = 0; k < count && query->units[i].shard != NULL; k++) {
            lahar_shard_announce_may_hold(query->units[i].shard, &asked[k].test->uuid);
        }
    }
    for (uint32_t i = 0; i < units; i++) {
        struct lahar_shard *shard = query->units[i].shard;
        for (size_t k = 0; k < count && shard != NULL; k++) {
            bool may_hold = false;
            uint32_t field = 0;
            if (asked[k].field != NULL &&
                lahar_shard_may_hold_uuid(shard, &asked[k].test->uuid, &may_hold, NULL) ==
                    LAHAR_OK &&
                may_hold &&
                lahar_shard_find_field(shard, asked[k].field, strlen(asked[k].field),
                                       LAHAR_CLASS_UUID, &field)) {
                lahar_shard_announce_uuid(shard, field, &asked[k].test->uuid);
            }
        }
    }
}

lahar_status lahar_query_build_units(struct lahar_query *query, lahar_error *error)
{
    query->context.prune = (struct lahar_query_prune){{INT64_MIN, INT64_MAX}, 0, query->end_id};
    prune_by(&query->context.prune, query->context.filter);
    const uint32_t resident_count = cut_resident(query, NULL);
    const size_t capacity = lahar_snapshot_segment_count(query->snapshot) + resident_count;
    query->units = lahar_allocate_zeroed(query->allocator, capacity + 1, sizeof *query->units);
    query->active = lahar_allocate_zeroed(query->allocator, capacity + 1, sizeof *query->active);
    if (query->units == NULL || query->active == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a query");
    }
    add_segments(query);
    query->unit_count += cut_resident(query, query->units + query->unit_count);
    for (uint32_t i = 0; i < query->unit_count; i++) {
        query->event_count += query->units[i].event_count;
    }
    qsort_r(query->units, query->unit_count, sizeof *query->units, compare_for_qsort,
            &query->options.order);
    announce_uuids(query);
    return LAHAR_OK;
}
