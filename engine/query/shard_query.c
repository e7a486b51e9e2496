/* From a bound query to bounds over the documents of a shard: which sections a test looks into,
 * and how the tests are joined. Anything a test may find must be within its bounds: an event that
 * is missed here is never looked at. */
#include "engine/query/shard_query.h"

#include <string.h>

#include "engine/query/shard_value.h"
#include "io/base/error.h"

typedef const struct lahar_shard_query shard_query;

lahar_status lahar_shard_query_set(shard_query *query, struct lahar_docset *set_out,
                                   lahar_error *error)
{
    LAHAR_TRY(lahar_docset_init(set_out, lahar_shard_document_count(query->shard), query->allocator,
                                error));
    lahar_docset_narrow(set_out, query->first, query->end);
    return LAHAR_OK;
}

/* --- fields ----------------------------------------------------------------------- */

bool lahar_keys_are_mixed(const struct lahar_stream *stream)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stream->field_count; i++) {
        const struct lahar_stream_field *field = &stream->fields[i];
        count +=
            field->type == LAHAR_MAP && field->is_indexed && field->field != LAHAR_FIELD_PREVIOUS;
    }
    return count > 1;
}

/* The key of a map that the stream has, or has not. */
static lahar_status key_bounds(shard_query *query, uint32_t map_field, lahar_bytes key,
                               const struct lahar_test *test, enum lahar_test_op op,
                               struct lahar_bounds *bounds_out, lahar_error *error)
{
    const struct lahar_stream_field *map = lahar_stream_find_field(query->stream, map_field);
    const bool is_previous = map_field == LAHAR_FIELD_PREVIOUS;
    if (map == NULL || map->type != LAHAR_MAP) {
        return LAHAR_OK;
    }
    if (!map->is_indexed) {
        lahar_bounds_set(bounds_out, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    uint8_t *name = lahar_allocate(query->allocator, key.size + 5);
    if (name == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the name of an attribute");
    }
    memcpy(name, is_previous ? "prev." : "attr.", 5);
    if (key.size != 0) {
        memcpy(name + 5, key.data, key.size);
    }
    uint32_t field = 0;
    const bool is_there =
        lahar_shard_find_field(query->shard, name, key.size + 5, LAHAR_CLASS_KEYWORD, &field);
    lahar_release(query->allocator, name);
    if (!is_there) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_shard_keyword_bounds(query, field, test, op, bounds_out, error));
    if (!is_previous && lahar_keys_are_mixed(query->stream)) {
        lahar_bounds_loosen(bounds_out);
    }
    return LAHAR_OK;
}

static lahar_status declared_bounds(shard_query *query, const struct lahar_stream_field *declared,
                                    const char *name, const struct lahar_test *test,
                                    enum lahar_test_op op, struct lahar_bounds *bounds_out,
                                    lahar_error *error)
{
    static const enum lahar_field_class classes[] = {
        [LAHAR_KEYWORD] = LAHAR_CLASS_KEYWORD, [LAHAR_TEXT] = LAHAR_CLASS_TEXT,
        [LAHAR_UUID] = LAHAR_CLASS_UUID,       [LAHAR_I64] = LAHAR_CLASS_NUMBER,
        [LAHAR_U64] = LAHAR_CLASS_NUMBER,      [LAHAR_F64] = LAHAR_CLASS_NUMBER,
        [LAHAR_BOOL] = LAHAR_CLASS_NUMBER,     [LAHAR_TIME] = LAHAR_CLASS_NUMBER,
        [LAHAR_LIST_UUID] = LAHAR_CLASS_UUID,  [LAHAR_LIST_KEYWORD] = LAHAR_CLASS_KEYWORD};
    uint32_t field = 0;
    if (!declared->is_indexed || declared->is_hidden || declared->type == LAHAR_BYTES ||
        declared->type == LAHAR_MAP) {
        lahar_bounds_set(bounds_out, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    const enum lahar_field_class field_class = classes[declared->type];
    if (!lahar_shard_find_field(query->shard, name, strlen(name), field_class, &field)) {
        return LAHAR_OK;
    }
    switch (field_class) {
    case LAHAR_CLASS_KEYWORD:
        return lahar_shard_keyword_bounds(query, field, test, op, bounds_out, error);
    case LAHAR_CLASS_TEXT:
        return lahar_shard_text_bounds(query, field, test, op, bounds_out, error);
    case LAHAR_CLASS_UUID:
        return lahar_shard_uuid_bounds(query, field, test, op, bounds_out, error);
    case LAHAR_CLASS_NUMBER:
        return lahar_shard_number_bounds(query, field, declared->type, test, op, bounds_out, error);
    }
    return LAHAR_OK;
}

/* ORs what the field of that number says, if the stream declares it. */
static lahar_status or_declared(shard_query *query, uint32_t field, const struct lahar_test *test,
                                enum lahar_test_op op, struct lahar_bounds *bounds,
                                lahar_error *error)
{
    const struct lahar_stream_field *declared = lahar_stream_find_field(query->stream, field);
    const char *name = lahar_schema_field_name(query->matcher->catalog, field);
    struct lahar_bounds found = {.shape = LAHAR_BOUNDS_NONE};
    if (declared == NULL || name == NULL) {
        return LAHAR_OK;
    }
    LAHAR_TRY(declared_bounds(query, declared, name, test, op, &found, error));
    return lahar_bounds_or(bounds, &found, error);
}

static lahar_status or_key(shard_query *query, uint32_t map_field, lahar_bytes key,
                           const struct lahar_test *test, enum lahar_test_op op,
                           struct lahar_bounds *bounds, lahar_error *error)
{
    struct lahar_bounds found = {.shape = LAHAR_BOUNDS_NONE};
    LAHAR_TRY(key_bounds(query, map_field, key, test, op, &found, error));
    return lahar_bounds_or(bounds, &found, error);
}

/* Uuids in identifiers of source systems are indexed beside the identifiers. */
static lahar_status or_source_system(shard_query *query, const struct lahar_test *test,
                                     enum lahar_test_op op, struct lahar_bounds *bounds,
                                     lahar_error *error)
{
    const struct lahar_stream_field *declared =
        lahar_stream_find_field(query->stream, test->source_system_field);
    struct lahar_bounds found = {.shape = LAHAR_BOUNDS_NONE};
    uint32_t field = 0;
    if (declared == NULL) {
        return LAHAR_OK;
    }
    if (!declared->is_indexed) {
        lahar_bounds_set(&found, LAHAR_BOUNDS_UNKNOWN);
    } else if (lahar_shard_find_field(query->shard, "source_system", 13, LAHAR_CLASS_UUID,
                                      &field)) {
        LAHAR_TRY(lahar_shard_uuid_bounds(query, field, test, op, &found, error));
    }
    return lahar_bounds_or(bounds, &found, error);
}

static lahar_status field_bounds(shard_query *query, const struct lahar_test *test,
                                 enum lahar_test_op op, struct lahar_bounds *bounds,
                                 lahar_error *error)
{
    const bool is_declared =
        test->has_field && lahar_stream_find_field(query->stream, test->field) != NULL;
    if (is_declared) {
        LAHAR_TRY(or_declared(query, test->field, test, op, bounds, error));
    } else {
        LAHAR_TRY(or_key(query, LAHAR_FIELD_ATTRIBUTES, test->key, test, op, bounds, error));
    }
    if (test->has_relatives) {
        LAHAR_TRY(or_declared(query, test->parents_field, test, op, bounds, error));
        LAHAR_TRY(or_declared(query, test->children_field, test, op, bounds, error));
        LAHAR_TRY(or_source_system(query, test, op, bounds, error));
    }
    if (test->has_map) {
        LAHAR_TRY(or_key(query, test->map_field, test->map_key, test, op, bounds, error));
    }
    return LAHAR_OK;
}

/* An attribute that differs is one that the event has, or one that it has removed. */
static lahar_status changed_bounds(shard_query *query, const struct lahar_test *test,
                                   enum lahar_test_op op, struct lahar_bounds *bounds,
                                   lahar_error *error)
{
    const struct lahar_query_node *node = test->node;
    struct lahar_bounds removed = {.shape = LAHAR_BOUNDS_NONE};
    uint32_t field = 0;
    if (node->is_pattern || (op != LAHAR_TEST_MATCH && op != LAHAR_TEST_EQUAL)) {
        lahar_bounds_set(bounds, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    LAHAR_TRY(key_bounds(query, LAHAR_FIELD_ATTRIBUTES, node->value, test, LAHAR_TEST_PRESENT,
                         bounds, error));
    if (lahar_shard_find_field(query->shard, "_removed", 8, LAHAR_CLASS_KEYWORD, &field)) {
        LAHAR_TRY(
            lahar_shard_keyword_bounds(query, field, test, LAHAR_TEST_EQUAL, &removed, error));
    }
    LAHAR_TRY(lahar_bounds_or(bounds, &removed, error));
    lahar_bounds_loosen(bounds);
    return LAHAR_OK;
}

/* --- terms without a field ---------------------------------------------------------- */

/* Whether some field that such terms look into can only be scanned. */
static bool has_unindexed_words(shard_query *query)
{
    for (uint32_t i = 0; i < query->stream->field_count; i++) {
        const struct lahar_stream_field *field = &query->stream->fields[i];
        const bool is_words = field->type == LAHAR_KEYWORD || field->type == LAHAR_TEXT ||
                              field->type == LAHAR_LIST_KEYWORD || field->type == LAHAR_MAP;
        const char *name = lahar_schema_field_name(query->matcher->catalog, field->field);
        if (is_words && !field->is_indexed && field->field != LAHAR_FIELD_PREVIOUS &&
            name != NULL && lahar_is_searched_anywhere(name, strlen(name))) {
            return true;
        }
    }
    return false;
}

static lahar_status anywhere_bounds(shard_query *query, const struct lahar_test *test,
                                    struct lahar_bounds *bounds, lahar_error *error)
{
    const uint32_t count = lahar_shard_field_count(query->shard);
    if (has_unindexed_words(query)) {
        lahar_bounds_set(bounds, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    for (uint32_t field = 0; field < count; field++) {
        enum lahar_field_class field_class = LAHAR_CLASS_NUMBER;
        const lahar_bytes name = lahar_shard_field(query->shard, field, &field_class);
        struct lahar_bounds found = {.shape = LAHAR_BOUNDS_NONE};
        const bool is_previous = name.size >= 5 && memcmp(name.data, "prev.", 5) == 0;
        const bool is_attribute = name.size >= 5 && memcmp(name.data, "attr.", 5) == 0;
        if (is_previous || !lahar_is_searched_anywhere(name.data, name.size)) {
            continue;
        }
        if (field_class == LAHAR_CLASS_KEYWORD) {
            LAHAR_TRY(lahar_shard_words_bounds(query, field, test, &found, error));
            if (is_attribute && lahar_keys_are_mixed(query->stream)) {
                lahar_bounds_loosen(&found);
            }
        } else if (field_class == LAHAR_CLASS_TEXT) {
            LAHAR_TRY(lahar_shard_text_bounds(query, field, test, test->node->op, &found, error));
        }
        LAHAR_TRY(lahar_bounds_or(bounds, &found, error));
    }
    return LAHAR_OK;
}

/* --- header fields -------------------------------------------------------------------- */

static lahar_status id_bounds(shard_query *query, const struct lahar_test *test,
                              struct lahar_bounds *bounds_out, lahar_error *error)
{
    uint64_t first = 0;
    uint64_t last = 0;
    if (!test->is_number || !lahar_column_span(LAHAR_COLUMN_U64, &test->range, &first, &last)) {
        return LAHAR_OK;
    }
    const uint32_t end = last == UINT64_MAX ? lahar_shard_document_count(query->shard)
                                            : lahar_shard_ordinal(query->shard, last + 1);
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    const uint32_t begin = lahar_shard_ordinal(query->shard, first);
    if (begin < end) {
        lahar_docset_add_range(&lookup.set, begin, end);
    }
    return lahar_shard_lookup_end(&lookup, LAHAR_OK, bounds_out);
}

static lahar_status time_bounds(shard_query *query, const struct lahar_test *test,
                                struct lahar_bounds *bounds_out, lahar_error *error)
{
    const struct lahar_interval time = test->time;
    int64_t min_ns = 0;
    int64_t max_ns = 0;
    lahar_shard_time_range(query->shard, &min_ns, &max_ns);
    if (!test->is_time || time.first_ns > max_ns || time.last_ns < min_ns ||
        time.first_ns > time.last_ns) {
        return LAHAR_OK;
    }
    if (time.first_ns <= min_ns && time.last_ns >= max_ns) {
        lahar_bounds_set(bounds_out, LAHAR_BOUNDS_EVERY);
        return LAHAR_OK;
    }
    struct lahar_shard_lookup lookup;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    lahar_status status = LAHAR_OK;
    if (time.last_ns == INT64_MAX) {
        /* No exclusive end lies above the last time there is: ask for the others. */
        status = lahar_shard_time(query->shard, INT64_MIN, time.first_ns, &lookup.set, error);
        lahar_docset_invert(&lookup.set);
    } else {
        status =
            lahar_shard_time(query->shard, time.first_ns, time.last_ns + 1, &lookup.set, error);
    }
    return lahar_shard_lookup_end(&lookup, status, bounds_out);
}

/* Arrival is known by block. */
static lahar_status arrival_bounds(shard_query *query, const struct lahar_test *test,
                                   struct lahar_bounds *bounds_out, lahar_error *error)
{
    if (!test->is_time) {
        return LAHAR_OK;
    }
    if (query->segment == NULL) {
        lahar_bounds_set(bounds_out, LAHAR_BOUNDS_UNKNOWN);
        return LAHAR_OK;
    }
    const struct lahar_segment_info *info = lahar_segment_describe(query->segment);
    struct lahar_shard_lookup lookup;
    struct lahar_docset must;
    LAHAR_TRY(lahar_shard_lookup_begin(query, &lookup, error));
    const lahar_status status = lahar_docset_init_like(&must, &lookup.set, error);
    if (status != LAHAR_OK) {
        return lahar_shard_lookup_end(&lookup, status, bounds_out);
    }
    for (uint32_t i = 0; i < info->block_count; i++) {
        const struct lahar_block_info *block = lahar_segment_block_info(query->segment, i);
        const uint32_t end = block->first_ordinal + block->row_count;
        if (end > lookup.set.universe || test->time.first_ns > block->arrival_max_ns ||
            test->time.last_ns < block->arrival_min_ns) {
            continue;
        }
        lahar_docset_add_range(&lookup.set, block->first_ordinal, end);
        if (test->time.first_ns <= block->arrival_min_ns &&
            test->time.last_ns >= block->arrival_max_ns) {
            lahar_docset_add_range(&must, block->first_ordinal, end);
        }
    }
    *bounds_out = (struct lahar_bounds){
        .shape = LAHAR_BOUNDS_SOME, .has_must = true, .may = lookup.set, .must = must};
    return LAHAR_OK;
}

/* --- tests and nodes -------------------------------------------------------------------- */

static lahar_status target_bounds(shard_query *query, const struct lahar_test *test,
                                  enum lahar_test_op op, struct lahar_bounds *bounds,
                                  lahar_error *error)
{
    const bool is_header = test->target == LAHAR_TARGET_ID || test->target == LAHAR_TARGET_TIME ||
                           test->target == LAHAR_TARGET_ARRIVAL ||
                           test->target == LAHAR_TARGET_STREAM;
    if (op == LAHAR_TEST_PRESENT && is_header) {
        lahar_bounds_set(bounds, LAHAR_BOUNDS_EVERY);
        return LAHAR_OK;
    }
    switch (test->target) {
    case LAHAR_TARGET_ANYWHERE:
        return anywhere_bounds(query, test, bounds, error);
    case LAHAR_TARGET_ID:
        return id_bounds(query, test, bounds, error);
    case LAHAR_TARGET_TIME:
        return time_bounds(query, test, bounds, error);
    case LAHAR_TARGET_ARRIVAL:
        return arrival_bounds(query, test, bounds, error);
    case LAHAR_TARGET_STREAM:
        if (lahar_match_keyword(query->matcher, test, query->stream->name,
                                strlen(query->stream->name))) {
            lahar_bounds_set(bounds, LAHAR_BOUNDS_EVERY);
        }
        return LAHAR_OK;
    case LAHAR_TARGET_ATTRIBUTE:
        return key_bounds(query, test->field, test->key, test, op, bounds, error);
    case LAHAR_TARGET_CHANGED:
        return changed_bounds(query, test, op, bounds, error);
    case LAHAR_TARGET_FIELD:
        return field_bounds(query, test, op, bounds, error);
    }
    return LAHAR_OK;
}

static lahar_status test_bounds(shard_query *query, const struct lahar_test *test,
                                struct lahar_bounds *bounds, lahar_error *error)
{
    if (test->node->op != LAHAR_TEST_NOT_EQUAL) {
        return target_bounds(query, test, test->node->op, bounds, error);
    }
    struct lahar_bounds equal = {.shape = LAHAR_BOUNDS_NONE};
    LAHAR_TRY(target_bounds(query, test, LAHAR_TEST_PRESENT, bounds, error));
    lahar_status status = target_bounds(query, test, LAHAR_TEST_EQUAL, &equal, error);
    if (status == LAHAR_OK) {
        status = lahar_bounds_not(&equal, error);
    }
    if (status == LAHAR_OK) {
        return lahar_bounds_and(bounds, &equal, error);
    }
    lahar_bounds_deinit(&equal);
    return status;
}

/* Rough order of cost: 0 answered from headers, 1 by a term, 2 by reading columns or the
 * dictionary. */
enum {
    COST_COUNT = 3
};

static unsigned cost(const struct lahar_query_node *node)
{
    if (node->kind != LAHAR_NODE_TEST) {
        unsigned highest = 0;
        for (const struct lahar_query_node *child = node->child; child != NULL;
             child = child->next) {
            const unsigned one = cost(child);
            highest = one > highest ? one : highest;
        }
        return highest;
    }
    switch (node->test->target) {
    case LAHAR_TARGET_ID:
    case LAHAR_TARGET_STREAM:
    case LAHAR_TARGET_TIME:
    case LAHAR_TARGET_ARRIVAL:
        return 0;
    case LAHAR_TARGET_ANYWHERE:
        return 2;
    default:
        return (node->op == LAHAR_TEST_MATCH || node->op == LAHAR_TEST_EQUAL) && !node->is_pattern
                   ? 1
                   : 2;
    }
}

static bool is_settled(enum lahar_node_kind kind, const struct lahar_bounds *bounds)
{
    if (kind == LAHAR_NODE_OR) {
        return bounds->shape == LAHAR_BOUNDS_EVERY;
    }
    return bounds->shape == LAHAR_BOUNDS_NONE ||
           (bounds->shape == LAHAR_BOUNDS_SOME &&
            lahar_docset_next(&bounds->may, 0) == bounds->may.universe);
}

static lahar_status node_bounds(shard_query *query, const struct lahar_query_node *node,
                                struct lahar_bounds *bounds, lahar_error *error);

/* Of what an AND asks next, only documents that may still match matter. */
static void narrow(struct lahar_shard_query *query, const struct lahar_bounds *bounds)
{
    if (bounds->shape == LAHAR_BOUNDS_SOME) {
        const uint32_t last = lahar_docset_previous(&bounds->may, bounds->may.universe - 1);
        query->first = lahar_docset_next(&bounds->may, query->first);
        query->end = last < query->end ? last + 1 : query->end;
    }
}

/* The cheap children first: an AND that is empty already, and an OR that is full, need no more. */
static lahar_status join_bounds(shard_query *query, const struct lahar_query_node *node,
                                struct lahar_bounds *bounds, lahar_error *error)
{
    lahar_bounds_set(bounds, node->kind == LAHAR_NODE_AND ? LAHAR_BOUNDS_EVERY : LAHAR_BOUNDS_NONE);
    for (unsigned level = 0; level < COST_COUNT; level++) {
        for (const struct lahar_query_node *child = node->child; child != NULL;
             child = child->next) {
            if (cost(child) != level) {
                continue;
            }
            if (is_settled(node->kind, bounds)) {
                return LAHAR_OK;
            }
            struct lahar_bounds one = {.shape = LAHAR_BOUNDS_NONE};
            struct lahar_shard_query narrowed = *query;
            if (node->kind == LAHAR_NODE_AND) {
                narrow(&narrowed, bounds);
            }
            LAHAR_TRY(node_bounds(&narrowed, child, &one, error));
            LAHAR_TRY(node->kind == LAHAR_NODE_AND ? lahar_bounds_and(bounds, &one, error)
                                                   : lahar_bounds_or(bounds, &one, error));
        }
    }
    return LAHAR_OK;
}

/* On failure bounds is empty. */
static lahar_status node_bounds(shard_query *query, const struct lahar_query_node *node,
                                struct lahar_bounds *bounds, lahar_error *error)
{
    lahar_status status = LAHAR_OK;
    lahar_bounds_set(bounds, LAHAR_BOUNDS_NONE);
    switch (node->kind) {
    case LAHAR_NODE_ALL:
        lahar_bounds_set(bounds, LAHAR_BOUNDS_EVERY);
        break;
    case LAHAR_NODE_TEST:
        status = test_bounds(query, node->test, bounds, error);
        break;
    case LAHAR_NODE_NOT:
        status = node_bounds(query, node->child, bounds, error);
        if (status == LAHAR_OK) {
            status = lahar_bounds_not(bounds, error);
        }
        break;
    case LAHAR_NODE_AND:
    case LAHAR_NODE_OR:
        status = join_bounds(query, node, bounds, error);
        break;
    }
    if (status != LAHAR_OK) {
        lahar_bounds_deinit(bounds);
    }
    return status;
}

lahar_status lahar_shard_query_run(const struct lahar_shard_query *query,
                                   const struct lahar_query_node *node,
                                   struct lahar_bounds *bounds_out, lahar_error *error)
{
    return node_bounds(query, node, bounds_out, error);
}
