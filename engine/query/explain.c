/* What a query does, in words: the canonical form, how each test is answered, what is looked
 * at. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/query/query_registry.h"
#include "engine/query/query_state.h"

static void put(struct lahar_buffer *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct lahar_buffer *out, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size > 0) {
        lahar_buffer_put(out, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
    }
}

static const char *describe_key(const struct lahar_query_node *node)
{
    const bool is_point = node->op == LAHAR_TEST_MATCH || node->op == LAHAR_TEST_EQUAL ||
                          node->op == LAHAR_TEST_PRESENT;
    return is_point && !node->is_pattern ? "index (attribute)"
                                         : "index (values of the attribute compared one by one)";
}

static const char *describe_text(const struct lahar_test *test)
{
    const struct lahar_query_node *node = test->node;
    switch (node->op) {
    case LAHAR_TEST_PRESENT:
        return "index (presence)";
    case LAHAR_TEST_MATCH:
        if (node->is_pattern) {
            return test->is_token_pattern ? "index (tokens compared one by one)"
                                          : "scan (the pattern spans tokens)";
        }
        return test->token_count == 0   ? "scan (no token in the value)"
               : test->token_count == 1 ? "index (token)"
                                        : "index (tokens), then verify the phrase";
    case LAHAR_TEST_CONTAINS:
    case LAHAR_TEST_CONTAINS_EXACT:
        return test->token_count == 0 ? "scan (no token in the value)"
                                      : "index (parts of tokens), then verify";
    case LAHAR_TEST_REGEX:
        return test->required == NULL || test->required->token_count == 0
                   ? "scan (the expression needs no token)"
                   : "index (a part that the expression needs), then verify";
    case LAHAR_TEST_EQUAL:
        return test->token_count == 0 || node->is_pattern ? "scan" : "index (tokens), then verify";
    default:
        return "scan";
    }
}

static const char *describe_declared(const struct lahar_test *test,
                                     const struct lahar_stream_field *field)
{
    const struct lahar_query_node *node = test->node;
    const bool is_point =
        (node->op == LAHAR_TEST_MATCH || node->op == LAHAR_TEST_EQUAL) && !node->is_pattern;
    if (!field->is_indexed) {
        return "scan (the field is not indexed)";
    }
    switch (field->type) {
    case LAHAR_TEXT:
        return describe_text(test);
    case LAHAR_KEYWORD:
    case LAHAR_LIST_KEYWORD:
        return is_point || node->op == LAHAR_TEST_PRESENT ? "index (keyword)"
                                                          : "index (values compared one by one)";
    case LAHAR_UUID:
    case LAHAR_LIST_UUID:
        return is_point           ? "index (uuid)"
               : node->is_pattern ? "index (uuid) if the pattern is a beginning, else verify"
               : node->op == LAHAR_TEST_PRESENT ? "index (presence)"
                                                : "index (presence), then verify";
    case LAHAR_BYTES:
    case LAHAR_MAP:
        return "scan";
    default:
        return "index (number column)";
    }
}

static bool is_exact_key(const struct lahar_query_node *node)
{
    return (node->op == LAHAR_TEST_MATCH || node->op == LAHAR_TEST_EQUAL) && !node->is_pattern;
}

/* How the test is answered; streams that declare its field may differ, the first decides. */
static const char *describe(const struct lahar_query *query, const struct lahar_test *test)
{
    switch (test->target) {
    case LAHAR_TARGET_ANYWHERE:
        return test->node->op != LAHAR_TEST_MATCH || test->token_count != 1 ||
                       test->node->is_pattern
                   ? "index (every text and keyword field), then verify"
                   : "index (every text and keyword field)";
    case LAHAR_TARGET_ID:
        return "header (ids)";
    case LAHAR_TARGET_TIME:
        return "header (time column)";
    case LAHAR_TARGET_ARRIVAL:
        return "header (arrival by block), then verify";
    case LAHAR_TARGET_STREAM:
        return "header (stream)";
    case LAHAR_TARGET_ATTRIBUTE:
        return describe_key(test->node);
    case LAHAR_TARGET_CHANGED:
        return is_exact_key(test->node) ? "index (attribute), then verify" : "scan";
    case LAHAR_TARGET_FIELD:
        break;
    }
    for (uint32_t i = 0; test->has_field && i < lahar_schema_stream_count(query->catalog); i++) {
        const struct lahar_stream_field *field =
            lahar_stream_find_field(lahar_schema_stream(query->catalog, i), test->field);
        if (field != NULL) {
            return describe_declared(test, field);
        }
    }
    return describe_key(test->node);
}

/* How many events the test alone may match, by the index; false when that could not be told, since
 * the query was cancelled or is late or memory was refused. */
static bool count_candidates(struct lahar_query *query, const struct lahar_query_node *node,
                             uint64_t *count_out)
{
    *count_out = 0;
    for (uint32_t i = 0; i < query->unit_count; i++) {
        uint64_t count = 0;
        if (lahar_query_check(query, NULL) != LAHAR_OK ||
            lahar_unit_candidates(&query->units[i], &query->context, node, &count, NULL) !=
                LAHAR_OK) {
            return false;
        }
        *count_out += count;
    }
    return true;
}

static void explain_node(struct lahar_query *query, const struct lahar_query_node *node)
{
    if (node->kind == LAHAR_NODE_TEST) {
        uint64_t count = 0;
        put(&query->explain, "  ");
        lahar_query_print(node, &query->explain);
        put(&query->explain, ": %s", describe(query, node->test));
        if (count_candidates(query, node, &count)) {
            put(&query->explain, ", %llu of %llu events", (unsigned long long)count,
                (unsigned long long)query->event_count);
        }
        put(&query->explain, "\n");
    }
    for (const struct lahar_query_node *child = node->child; child != NULL; child = child->next) {
        explain_node(query, child);
    }
}

/* What the index leaves open in all units together. */
static bool count_open(struct lahar_query *query, uint64_t *events_out, uint64_t *blocks_out)
{
    *events_out = 0;
    *blocks_out = 0;
    for (uint32_t i = 0; i < query->unit_count; i++) {
        struct lahar_unit *unit = &query->units[i];
        const bool was_open = unit->is_open;
        if (lahar_query_check(query, NULL) != LAHAR_OK ||
            lahar_unit_open_rest(unit, &query->context, NULL) != LAHAR_OK) {
            return false;
        }
        uint32_t document =
            unit->has_unverified ? lahar_docset_next(&unit->unverified, 0) : UINT32_MAX;
        *events_out += unit->has_unverified ? lahar_docset_count(&unit->unverified) : 0;
        while (unit->segment != NULL && document < unit->event_count) {
            uint32_t first = 0;
            uint32_t end = 0;
            lahar_unit_block_range(unit, document, &first, &end);
            (*blocks_out)++;
            document = lahar_docset_next(&unit->unverified, end > document ? end : document + 1);
        }
        if (!was_open) {
            lahar_unit_close(unit);
        }
    }
    return true;
}

/* Opening for this only does not count as reading the shards that fail. */
static void explain_reading(struct lahar_query *query)
{
    const uint32_t failed = query->context.shards_failed;
    uint64_t events = 0;
    uint64_t blocks = 0;
    if (count_open(query, &events, &blocks)) {
        put(&query->explain, "to be read: %llu events, those of files in %llu blocks\n",
            (unsigned long long)events, (unsigned long long)blocks);
    }
    query->context.shards_failed = failed;
}

const char *lahar_query_explain(lahar_query *query)
{
    struct lahar_buffer *out = &query->explain;
    uint64_t resident = 0;
    uint64_t compared = 0;
    if (lahar_query_begin(query, NULL) != LAHAR_OK) {
        return "query: it is in use or has expired\n";
    }
    for (uint32_t i = 0; i < query->unit_count; i++) {
        const struct lahar_unit *unit = &query->units[i];
        resident += unit->segment == NULL ? unit->event_count : 0;
        compared += unit->segment == NULL && unit->slice == NULL ? unit->event_count : 0;
    }
    lahar_buffer_clear(out);
    put(out, "query: ");
    lahar_query_print(query->root, out);
    put(out, "\n");
    explain_node(query, query->root);
    put(out, "shards: %u, %u pruned, %u failed\n", query->shards_total, query->shards_pruned,
        query->context.shards_failed);
    put(out, "resident events: %llu, %llu of them compared one by one\n",
        (unsigned long long)resident, (unsigned long long)compared);
    explain_reading(query);
    lahar_buffer_put_u8(out, '\0');
    (void)lahar_query_end(query, LAHAR_OK, NULL);
    return out->has_failed ? "query: no memory to explain it\n" : (const char *)out->data;
}
