/* Queries: opening, the public calls.
 *
 * A query holds a snapshot, so that what it sees does not change, and works through units
 * (plan_units.c). Each public call that works claims the query for its time, so that one that is
 * not used can be let go by another thread (query_registry.h). */
#include "lahar/query.h"

#include <string.h>
#include <xxhash.h>

#include "engine/format/time_zone.h"
#include "engine/query/query_open.h"
#include "engine/query/query_registry.h"
#include "engine/query/query_state.h"
#include "engine/store/lost_events.h"
#include "io/base/error.h"
#include "io/io.h"

void lahar_query_options_init(lahar_query_options *options)
{
    *options = (lahar_query_options){.struct_size = sizeof *options,
                                     .stream = LAHAR_ANY_STREAM,
                                     .from_ns = INT64_MIN,
                                     .to_ns = INT64_MAX,
                                     .deadline_ns = LAHAR_WAIT_FOREVER,
                                     .expire_ns = LAHAR_WAIT_FOREVER};
}

lahar_status lahar_query_check(const struct lahar_query *query, lahar_error *error)
{
    if (atomic_load_explicit(&query->is_cancelled, memory_order_relaxed)) {
        return lahar_fail(error, LAHAR_CANCELLED, "the query was cancelled");
    }
    if (query->deadline_ns != UINT64_MAX &&
        query->io->ops->monotonic_ns(query->io) >= query->deadline_ns) {
        return lahar_fail(error, LAHAR_TIMEOUT, "the query's deadline passed");
    }
    return LAHAR_OK;
}

lahar_status lahar_query_tell(struct lahar_query *query, lahar_status status, lahar_error *error)
{
    if (status != LAHAR_NO_MEMORY) {
        return status;
    }
    switch (atomic_load_explicit(&query->memory.refusal, memory_order_relaxed)) {
    case LAHAR_QUERY_REFUSED_ITS_OWN:
        lahar_error_clear(error);
        return lahar_fail(error, status, "the query needs more than its %llu bytes of memory",
                          (unsigned long long)query->memory.limit_bytes);
    case LAHAR_QUERY_REFUSED_ALL_OTHERS:
        lahar_error_clear(error);
        return lahar_fail(error, status,
                          "the open queries need more than their %llu bytes of memory",
                          (unsigned long long)query->memory.budget->limit_bytes);
    default:
        return status;
    }
}

static bool is_by_time(lahar_order order)
{
    return order == LAHAR_ORDER_LATEST_TIME || order == LAHAR_ORDER_EARLIEST_TIME;
}

bool lahar_query_is_behind(const struct lahar_query *query, int64_t time_ns, uint64_t id)
{
    const struct lahar_query_position *position = &query->position;
    if (!position->is_set) {
        return true;
    }
    if (is_by_time(query->options.order) && time_ns != position->time_ns) {
        return query->options.order == LAHAR_ORDER_LATEST_TIME ? time_ns < position->time_ns
                                                               : time_ns > position->time_ns;
    }
    const bool is_descending = query->options.order == LAHAR_ORDER_NEWEST ||
                               query->options.order == LAHAR_ORDER_LATEST_TIME;
    return is_descending ? id < position->id : id > position->id;
}

/* --- the filter --------------------------------------------------------------------- */

static lahar_status no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a query");
}

/* A test that the options add to what the expression says. */
static lahar_status add_test(struct lahar_query *query, const struct lahar_test *test,
                             const struct lahar_query_node *pattern, lahar_error *error)
{
    struct lahar_query_node *node = lahar_arena_allocate(&query->tree, sizeof *node);
    struct lahar_test *copy = lahar_arena_allocate(&query->tree, sizeof *copy);
    struct lahar_query_node *both = lahar_arena_allocate(&query->tree, sizeof *both);
    /* The expression's root may be shared with explain and keeps its own siblings. */
    struct lahar_query_node *old = lahar_arena_allocate(&query->tree, sizeof *old);
    if (node == NULL || copy == NULL || both == NULL || old == NULL) {
        return no_memory(error);
    }
    *copy = *test;
    *node = *pattern;
    node->kind = LAHAR_NODE_TEST;
    node->test = copy;
    copy->node = node;
    *old = *query->context.filter;
    old->next = node;
    *both = (struct lahar_query_node){.kind = LAHAR_NODE_AND, .child = old};
    query->context.filter = both;
    return LAHAR_OK;
}

static lahar_status add_options(struct lahar_query *query, lahar_error *error)
{
    const lahar_query_options *options = &query->options;
    query->context.filter = query->root;
    if (options->from_ns != INT64_MIN || options->to_ns != INT64_MAX) {
        const bool is_empty = options->to_ns == INT64_MIN || options->from_ns >= options->to_ns;
        const struct lahar_test test = {
            .target = LAHAR_TARGET_TIME,
            .is_time = true,
            .time = {is_empty ? INT64_MAX : options->from_ns, is_empty ? INT64_MIN
                                                              : options->to_ns == INT64_MAX
                                                                  ? INT64_MAX
                                                                  : options->to_ns - 1}};
        LAHAR_TRY(
            add_test(query, &test, &(struct lahar_query_node){.op = LAHAR_TEST_RANGE}, error));
    }
    if (options->stream != LAHAR_ANY_STREAM) {
        const struct lahar_stream *stream = lahar_schema_stream(query->catalog, options->stream);
        if (stream == NULL) {
            return lahar_fail(error, LAHAR_INVALID, "there is no stream %u", options->stream);
        }
        const struct lahar_query_node pattern = {.op = LAHAR_TEST_EQUAL,
                                                 .value = {stream->name, strlen(stream->name)}};
        const struct lahar_test test = {.target = LAHAR_TARGET_STREAM};
        LAHAR_TRY(add_test(query, &test, &pattern, error));
    }
    return LAHAR_OK;
}

/* --- opening --------------------------------------------------------------------------- */

/* Everything of a query that its pages must share. */
static lahar_status hash_query(struct lahar_query *query, lahar_error *error)
{
    struct lahar_buffer text;
    lahar_buffer_init(&text, query->allocator);
    lahar_query_print(query->root, &text);
    query->text_size = text.size < sizeof query->text - 1 ? text.size : sizeof query->text - 1;
    if (query->text_size != 0) {
        memcpy(query->text, text.data, query->text_size);
    }
    lahar_buffer_put_u32(&text, query->options.stream);
    lahar_buffer_put_u64(&text, (uint64_t)query->options.from_ns);
    lahar_buffer_put_u64(&text, (uint64_t)query->options.to_ns);
    lahar_buffer_put_u32(&text, (uint32_t)query->options.order);
    if (query->options.time_zone != NULL) {
        lahar_buffer_put(&text, query->options.time_zone, strlen(query->options.time_zone));
    }
    query->hash = XXH3_64bits(text.data, text.size);
    const bool has_failed = text.has_failed;
    lahar_buffer_deinit(&text);
    return has_failed ? no_memory(error) : LAHAR_OK;
}

static lahar_status take_options(struct lahar_query *query, const lahar_query_options *options,
                                 lahar_error *error)
{
    lahar_query_options_init(&query->options);
    if (options != NULL) {
        if (options->struct_size < sizeof(size_t)) {
            return lahar_fail(error, LAHAR_INVALID,
                              "query options must be set up by lahar_query_options_init");
        }
        memcpy(&query->options, options,
               options->struct_size < sizeof query->options ? options->struct_size
                                                            : sizeof query->options);
    }
    if (query->options.order > LAHAR_ORDER_EARLIEST_TIME ||
        query->options.count > LAHAR_COUNT_ONLY) {
        return lahar_fail(error, LAHAR_INVALID, "unknown order or count mode");
    }
    if (query->options.memory_limit_bytes != 0) {
        query->memory.limit_bytes = query->options.memory_limit_bytes;
    }
    if (query->options.deadline_ns != LAHAR_WAIT_FOREVER) {
        const uint64_t now = query->io->ops->monotonic_ns(query->io);
        query->deadline_ns = query->options.deadline_ns < UINT64_MAX - now
                                 ? now + query->options.deadline_ns
                                 : UINT64_MAX;
    }
    return LAHAR_OK;
}

/* The instant that "now" stands for: the end asked for, where there is one. */
static int64_t instant_of_now(const struct lahar_query *query)
{
    return query->options.to_ns != INT64_MAX ? query->options.to_ns
                                             : query->io->ops->realtime_ns(query->io);
}

static lahar_status start(struct lahar_query *query, lahar_query_builder build, void *context,
                          const lahar_query_options *options, lahar_error *error)
{
    LAHAR_TRY(take_options(query, options, error));
    LAHAR_TRY(build(context, &query->tree, &query->root, error));
    LAHAR_TRY(hash_query(query, error));
    lahar_store_note_question(query->store);
    LAHAR_TRY(lahar_snapshot_take(query->store, &query->snapshot, error));
    query->end_id = lahar_snapshot_end(query->snapshot);
    query->now_ns = instant_of_now(query);
    if (query->options.resume != NULL) {
        uint64_t hash = 0;
        LAHAR_TRY(lahar_query_read_token(query, query->options.resume, &hash, error));
        if (hash != query->hash) {
            return lahar_fail(error, LAHAR_INVALID, "the resume token is of another query");
        }
        query->options.resume = NULL;
    }
    struct lahar_bind_context bind = {
        .catalog = query->catalog, .arena = &query->tree, .now_ns = query->now_ns};
    struct lahar_time_zone *zone = NULL;
    if (query->options.time_zone != NULL) {
        LAHAR_TRY(lahar_time_zone_open(query->io, query->options.time_zone, query->allocator, &zone,
                                       error));
        query->options.time_zone = NULL;
        bind.zone = zone;
    }
    const lahar_status status = lahar_query_bind(query->root, &bind, error);
    lahar_time_zone_destroy(zone);
    if (status != LAHAR_OK) {
        return status;
    }
    LAHAR_TRY(add_options(query, error));
    query->context.snapshot = query->snapshot;
    query->context.authorize = query->options.authorize;
    query->context.authorize_context = query->options.authorize_context;
    return lahar_query_build_units(query, error);
}

void lahar_query_shed(struct lahar_query *query)
{
    for (uint32_t i = 0; i < query->unit_count; i++) {
        lahar_unit_deinit(&query->units[i], query->allocator);
    }
    query->unit_count = 0;
    query->active_count = 0;
    lahar_release(query->allocator, query->units);
    lahar_release(query->allocator, query->active);
    lahar_release(query->allocator, query->hits);
    lahar_facet_result_destroy(query->facet, query->allocator);
    lahar_release(query->allocator, query->histogram);
    query->units = NULL;
    query->active = NULL;
    query->hits = NULL;
    query->facet = NULL;
    query->histogram = NULL;
    lahar_snapshot_release(query->snapshot);
    query->snapshot = NULL;
    lahar_buffer_deinit(&query->explain);
    lahar_matcher_deinit(&query->matcher);
    lahar_arena_deinit(&query->context.arena);
    lahar_arena_deinit(&query->event_arena);
    lahar_query_unbind(query->root);
    query->root = NULL;
    lahar_arena_deinit(&query->tree);
}

static void destroy(struct lahar_query *query)
{
    if (atomic_load_explicit(&query->use, memory_order_acquire) != LAHAR_QUERY_EXPIRED) {
        lahar_query_shed(query);
    }
    lahar_release(query->memory.outer, query);
}

static lahar_status parse(void *context, struct lahar_arena *arena,
                          struct lahar_query_node **root_out, lahar_error *error)
{
    const lahar_bytes *expression = context;
    return lahar_query_parse(expression->data, expression->size, arena, root_out, error);
}

lahar_status lahar_query_open(lahar_store *store, const char *expression, size_t expression_size,
                              const lahar_query_options *options, lahar_query **query_out,
                              lahar_error *error)
{
    lahar_bytes bytes = {expression, expression_size};
    return lahar_query_open_built(store, parse, &bytes, options, query_out, error);
}

lahar_status lahar_query_open_built(lahar_store *store, lahar_query_builder build, void *context,
                                    const lahar_query_options *options, lahar_query **query_out,
                                    lahar_error *error)
{
    const lahar_allocator *outer = lahar_store_allocator(store);
    struct lahar_query_registry *registry = lahar_store_queries(store);
    *query_out = NULL;
    lahar_error_clear(error);
    LAHAR_TRY(lahar_query_registry_reserve(registry, lahar_store_io(store), error));
    struct lahar_query *query = lahar_allocate_zeroed(outer, 1, sizeof *query);
    if (query == NULL) {
        lahar_query_registry_cancel(registry);
        return no_memory(error);
    }
    query->store = store;
    query->registry = registry;
    lahar_query_memory_init(&query->memory, outer, &registry->budget);
    query->allocator = &query->memory.allocator;
    query->io = lahar_store_io(store);
    query->catalog = lahar_store_catalog(store);
    query->first_part_size = lahar_store_query_part_size(store);
    query->deadline_ns = UINT64_MAX;
    query->context = (struct lahar_unit_context){.query = query,
                                                 .catalog = query->catalog,
                                                 .allocator = query->allocator,
                                                 .matcher = &query->matcher};
    lahar_arena_init(&query->tree, query->allocator, 4096);
    lahar_arena_init(&query->event_arena, query->allocator, 4096);
    lahar_arena_init(&query->context.arena, query->allocator, 4096);
    lahar_matcher_init(&query->matcher, query->catalog, query->allocator);
    lahar_buffer_init(&query->explain, query->allocator);
    const lahar_status status =
        lahar_query_tell(query, start(query, build, context, options, error), error);
    if (status != LAHAR_OK) {
        lahar_query_registry_cancel(registry);
        destroy(query);
        return status;
    }
    lahar_query_registry_add(registry, query);
    *query_out = query;
    return LAHAR_OK;
}

void lahar_query_cancel(lahar_query *query)
{
    atomic_store_explicit(&query->is_cancelled, true, memory_order_relaxed);
}

unsigned lahar_query_progress(lahar_query *query)
{
    const uint64_t settled = atomic_load_explicit(&query->settled_count, memory_order_relaxed);
    return query->event_count == 0 ? 100 : (unsigned)(settled * 100 / query->event_count);
}

void lahar_query_close(lahar_query *query)
{
    if (query != NULL) {
        lahar_query_registry_remove(query->registry, query);
        destroy(query);
    }
}

/* --- results ----------------------------------------------------------------------------- */

lahar_status lahar_query_read_event(struct lahar_query *query, struct lahar_unit *unit,
                                    uint32_t document, lahar_error *error)
{
    struct lahar_unit_context *context = &query->context;
    lahar_event *event = &query->event;
    lahar_arena_reset(&query->event_arena);
    if (!query->options.ids_only) {
        return lahar_unit_read(unit, context, document, &query->event_arena, event, error);
    }
    *event = (lahar_event){.stream = unit->stream};
    if (unit->stream == LAHAR_ANY_STREAM) {
        lahar_event whole;
        LAHAR_TRY(lahar_unit_read(unit, context, document, &query->event_arena, &whole, error));
        event->stream = whole.stream;
    }
    LAHAR_TRY(lahar_unit_id(unit, context, document, &event->id, error));
    event->is_durable = event->id < lahar_snapshot_durable(query->snapshot);
    return LAHAR_OK;
}

/* Reports each lost file or range that could have held results, once. */
static lahar_status report_lost(struct lahar_query *query, lahar_error *error)
{
    while (query->next_lost < lahar_snapshot_lost_count(query->snapshot)) {
        const struct lahar_segment_info *info =
            lahar_snapshot_lost(query->snapshot, query->next_lost++);
        if (!lahar_query_excludes(query, info)) {
            query->context.is_partial = true;
            query->context.shards_failed++;
            return lahar_lost_events_fail(info, error);
        }
    }
    return LAHAR_OK;
}

static lahar_status next(struct lahar_query *query, const lahar_event **event_out,
                         lahar_error *error)
{
    LAHAR_TRY(lahar_query_check(query, error));
    LAHAR_TRY(report_lost(query, error));
    if (query->options.count == LAHAR_COUNT_ONLY ||
        (query->options.limit != 0 && query->returned >= query->options.limit)) {
        return LAHAR_NOT_FOUND;
    }
    const lahar_status status = is_by_time(query->options.order)
                                    ? lahar_query_take_hit(query, event_out, error)
                                    : lahar_query_walk(query, event_out, error);
    if (status == LAHAR_OK) {
        query->returned++;
        query->position =
            (struct lahar_query_position){true, (*event_out)->time_ns, (*event_out)->id};
    }
    return status;
}

lahar_status lahar_query_next(lahar_query *query, const lahar_event **event_out, lahar_error *error)
{
    *event_out = NULL;
    lahar_error_clear(error);
    LAHAR_TRY(lahar_query_begin(query, error));
    return lahar_query_end(query, next(query, event_out, error), error);
}

lahar_status lahar_query_result_get(lahar_query *query, lahar_query_result *result_out,
                                    lahar_error *error)
{
    lahar_query_result result = {.struct_size = result_out->struct_size};
    lahar_error_clear(error);
    LAHAR_TRY(lahar_query_begin(query, error));
    while (report_lost(query, NULL) != LAHAR_OK) {
    }
    const lahar_status status = lahar_query_count(query, &result.total, &result.relation, error);
    result.snapshot_id = query->end_id;
    result.scanned_events = query->context.scanned_events;
    result.scanned_bytes = query->context.scanned_bytes;
    result.shards_total = query->shards_total;
    result.shards_pruned = query->shards_pruned;
    result.shards_failed = query->context.shards_failed;
    result.is_partial = query->context.is_partial;
    result.memory_peak_bytes =
        atomic_load_explicit(&query->memory.peak_bytes, memory_order_relaxed);
    const size_t size = result_out->struct_size;
    memcpy(result_out, &result, size != 0 && size < sizeof result ? size : sizeof result);
    return lahar_query_end(query, status, error);
}

const char *lahar_query_resume_token(lahar_query *query)
{
    lahar_query_write_token(query);
    return query->token;
}

lahar_status lahar_query_time(lahar_store *store, const char *text, const char *time_zone,
                              int64_t now_ns, int64_t *first_ns_out, int64_t *end_ns_out,
                              lahar_error *error)
{
    struct lahar_time_zone *zone = NULL;
    struct lahar_interval interval = {0, 0};
    const char *reason = NULL;
    *first_ns_out = *end_ns_out = 0;
    lahar_error_clear(error);
    if (time_zone != NULL) {
        LAHAR_TRY(lahar_time_zone_open(lahar_store_io(store), time_zone,
                                       lahar_store_allocator(store), &zone, error));
    }
    const bool is_time =
        lahar_query_time_parse(text, strlen(text), now_ns, zone, &interval, &reason);
    lahar_time_zone_destroy(zone);
    if (!is_time) {
        return lahar_fail(error, LAHAR_INVALID, "%s", reason);
    }
    *first_ns_out = interval.first_ns;
    *end_ns_out = interval.last_ns == INT64_MAX ? INT64_MAX : interval.last_ns + 1;
    return LAHAR_OK;
}
