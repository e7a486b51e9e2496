/* Counting without sets: where one term is all that a query asks of a file, the index knows how
 * many documents hold it. */
#include <string.h>

#include "engine/query/shard_query.h"
#include "index/shard_format.h"
#include "io/base/error.h"

typedef const struct lahar_shard_query shard_query;

/* What a test says about every document of the file. */
enum verdict {
    VERDICT_ALL,
    VERDICT_NONE,
    VERDICT_SOME /* or not known */
};

static enum verdict verdict_of(shard_query *query, const struct lahar_query_node *node)
{
    const struct lahar_segment_info *info = lahar_segment_describe(query->segment);
    const struct lahar_test *test = node->test;
    if (node->kind == LAHAR_NODE_ALL) {
        return VERDICT_ALL;
    }
    if (node->kind != LAHAR_NODE_TEST || node->op == LAHAR_TEST_NOT_EQUAL) {
        return VERDICT_SOME;
    }
    if (test->target == LAHAR_TARGET_STREAM && node->op != LAHAR_TEST_PRESENT) {
        const char *name = query->stream->name;
        return lahar_match_keyword(query->matcher, test, name, strlen(name)) ? VERDICT_ALL
                                                                             : VERDICT_NONE;
    }
    if (test->target == LAHAR_TARGET_TIME && test->is_time && node->op != LAHAR_TEST_PRESENT &&
        test->time.first_ns <= info->time_min_ns && test->time.last_ns >= info->time_max_ns) {
        return VERDICT_ALL;
    }
    return VERDICT_SOME;
}

/* The one test that decides, or NULL: then the verdict says it. False when there are several. */
static bool find_decider(shard_query *query, const struct lahar_query_node *node,
                         const struct lahar_query_node **decider_out, enum verdict *verdict_out)
{
    const struct lahar_query_node *first = node->kind == LAHAR_NODE_AND ? node->child : node;
    *decider_out = NULL;
    *verdict_out = VERDICT_ALL;
    for (const struct lahar_query_node *child = first; child != NULL; child = child->next) {
        const enum verdict verdict = verdict_of(query, child);
        if (verdict == VERDICT_NONE) {
            *decider_out = NULL;
            *verdict_out = VERDICT_NONE;
            return true;
        }
        if (verdict == VERDICT_SOME) {
            if (*decider_out != NULL || child->kind != LAHAR_NODE_TEST) {
                return false;
            }
            *decider_out = child;
        }
        if (node->kind != LAHAR_NODE_AND) {
            break;
        }
    }
    return true;
}

/* Finds the only field of the shard that the test looks into. LAHAR_NOT_FOUND: the shard has no
 * value of it; LAHAR_UNSUPPORTED: there may be several, or it is of another kind. */
static lahar_status find_field(shard_query *query, const struct lahar_test *test,
                               enum lahar_field_class *class_out, uint32_t *field_out)
{
    const struct lahar_stream_field *declared =
        test->target == LAHAR_TARGET_FIELD && test->has_field
            ? lahar_stream_find_field(query->stream, test->field)
            : NULL;
    if (declared != NULL) {
        const char *name = lahar_schema_field_name(query->matcher->catalog, test->field);
        const bool is_words = declared->type == LAHAR_KEYWORD || declared->type == LAHAR_TEXT;
        if (!is_words || !declared->is_indexed || declared->is_hidden || name == NULL) {
            return LAHAR_UNSUPPORTED;
        }
        *class_out = declared->type == LAHAR_KEYWORD ? LAHAR_CLASS_KEYWORD : LAHAR_CLASS_TEXT;
        return lahar_shard_find_field(query->shard, name, strlen(name), *class_out, field_out)
                   ? LAHAR_OK
                   : LAHAR_NOT_FOUND;
    }
    char name[300];
    const uint32_t map_field =
        test->target == LAHAR_TARGET_FIELD ? (uint32_t)LAHAR_FIELD_ATTRIBUTES : test->field;
    const struct lahar_stream_field *map = lahar_stream_find_field(query->stream, map_field);
    if (map == NULL || map->type != LAHAR_MAP || !map->is_indexed ||
        test->key.size > sizeof name - 5 ||
        (map_field != LAHAR_FIELD_PREVIOUS && lahar_keys_are_mixed(query->stream))) {
        return LAHAR_UNSUPPORTED;
    }
    memcpy(name, map_field == LAHAR_FIELD_PREVIOUS ? "prev." : "attr.", 5);
    if (test->key.size != 0) {
        memcpy(name + 5, test->key.data, test->key.size);
    }
    *class_out = LAHAR_CLASS_KEYWORD;
    return lahar_shard_find_field(query->shard, name, test->key.size + 5, *class_out, field_out)
               ? LAHAR_OK
               : LAHAR_NOT_FOUND;
}

static lahar_status count_test(shard_query *query, const struct lahar_query_node *node,
                               uint64_t *count_out, lahar_error *error)
{
    const struct lahar_test *test = node->test;
    enum lahar_field_class field_class = LAHAR_CLASS_KEYWORD;
    uint32_t field = 0;
    bool is_exact = true;
    if ((test->target != LAHAR_TARGET_FIELD && test->target != LAHAR_TARGET_ATTRIBUTE) ||
        (node->op != LAHAR_TEST_MATCH && node->op != LAHAR_TEST_EQUAL) || node->is_pattern ||
        test->has_relatives || test->has_map) {
        return LAHAR_UNSUPPORTED;
    }
    lahar_status status = find_field(query, test, &field_class, &field);
    if (status != LAHAR_OK) {
        *count_out = 0;
        return status == LAHAR_NOT_FOUND ? LAHAR_OK : status;
    }
    if (field_class == LAHAR_CLASS_KEYWORD) {
        status =
            lahar_shard_keyword_count(query->shard, field, node->value.data, node->value.size,
                                      node->op == LAHAR_TEST_MATCH, count_out, &is_exact, error);
        return status == LAHAR_OK && !is_exact ? LAHAR_UNSUPPORTED : status;
    }
    if (node->op != LAHAR_TEST_MATCH || test->token_count != 1 ||
        test->tokens[0].term.size > LAHAR_SHARD_TERM_SIZE_MAX) {
        return LAHAR_UNSUPPORTED;
    }
    return lahar_shard_token_count(query->shard, field, test->tokens[0].term.data,
                                   test->tokens[0].term.size, count_out, error);
}

lahar_status lahar_shard_query_count(const struct lahar_shard_query *query,
                                     const struct lahar_query_node *node, uint64_t *count_out,
                                     lahar_error *error)
{
    const struct lahar_query_node *decider = NULL;
    enum verdict verdict = VERDICT_SOME;
    *count_out = 0;
    if (query->segment == NULL || !find_decider(query, node, &decider, &verdict)) {
        return LAHAR_UNSUPPORTED;
    }
    if (decider != NULL) {
        return count_test(query, decider, count_out, error);
    }
    *count_out = verdict == VERDICT_ALL ? lahar_shard_document_count(query->shard) : 0;
    return LAHAR_OK;
}
