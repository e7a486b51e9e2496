/* Filters: trees of a query made by calls.
 *
 * Clauses are nodes in the filter's arena and never change once they are made, so that one may
 * stand in several others: what joins them copies their nodes and shares their children. A
 * query gets a copy of its own of the whole tree, since binding writes into it. */
#include "lahar/filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/query/ast.h"
#include "engine/query/query_open.h"
#include "engine/store/snapshot.h"
#include "io/base/error.h"

enum {
    NODES_MAX = 262144 /* of the tree of one query */
};

struct lahar_clause {
    struct lahar_query_node node;
};

struct lahar_filter {
    lahar_store *store;
    const lahar_allocator *allocator;
    struct lahar_arena arena;
    struct lahar_buffer text;
    lahar_error failure; /* the first; status LAHAR_OK: none */
};

lahar_status lahar_filter_create(lahar_store *store, lahar_filter **filter_out, lahar_error *error)
{
    const lahar_allocator *allocator = lahar_store_allocator(store);
    *filter_out = NULL;
    lahar_error_clear(error);
    lahar_filter *filter = lahar_allocate_zeroed(allocator, 1, sizeof *filter);
    if (filter == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a filter");
    }
    filter->store = store;
    filter->allocator = allocator;
    lahar_arena_init(&filter->arena, allocator, 4096);
    lahar_buffer_init(&filter->text, allocator);
    *filter_out = filter;
    return LAHAR_OK;
}

void lahar_filter_destroy(lahar_filter *filter)
{
    if (filter != NULL) {
        lahar_buffer_deinit(&filter->text);
        lahar_arena_deinit(&filter->arena);
        lahar_release(filter->allocator, filter);
    }
}

/* --- clauses ------------------------------------------------------------------------ */

static const lahar_clause *refuse(lahar_filter *filter, lahar_status status, const char *why)
{
    if (filter->failure.status == LAHAR_OK) {
        (void)lahar_fail(&filter->failure, status, "%s", why);
    }
    return NULL;
}

static lahar_clause *make(lahar_filter *filter, enum lahar_node_kind kind)
{
    lahar_clause *clause = lahar_arena_allocate(&filter->arena, sizeof *clause);
    if (clause == NULL) {
        (void)refuse(filter, LAHAR_NO_MEMORY, "no memory for a clause");
        return NULL;
    }
    *clause = (lahar_clause){.node.kind = kind};
    return clause;
}

static bool copy_bytes(lahar_filter *filter, const void *data, size_t size, lahar_bytes *bytes_out)
{
    if (size > LAHAR_QUERY_SIZE_MAX) {
        (void)refuse(filter, LAHAR_TOO_BIG, "a value of a query is above 1 MiB");
        return false;
    }
    *bytes_out = (lahar_bytes){lahar_arena_copy(&filter->arena, data, size), size};
    if (bytes_out->data == NULL) {
        (void)refuse(filter, LAHAR_NO_MEMORY, "no memory for a clause");
    }
    return bytes_out->data != NULL;
}

static lahar_clause *make_test(lahar_filter *filter, const char *name, enum lahar_test_op op)
{
    lahar_clause *clause = make(filter, LAHAR_NODE_TEST);
    if (clause == NULL ||
        (name != NULL && !copy_bytes(filter, name, strlen(name), &clause->node.name))) {
        return NULL;
    }
    clause->node.has_name = name != NULL;
    clause->node.op = op;
    return clause;
}

const lahar_clause *lahar_filter_test(lahar_filter *filter, const char *name, lahar_filter_op op,
                                      const void *value, size_t value_size)
{
    static const enum lahar_test_op ops[] = {
        [LAHAR_FILTER_MATCH] = LAHAR_TEST_MATCH,
        [LAHAR_FILTER_EQUAL] = LAHAR_TEST_EQUAL,
        [LAHAR_FILTER_NOT_EQUAL] = LAHAR_TEST_NOT_EQUAL,
        [LAHAR_FILTER_CONTAINS] = LAHAR_TEST_CONTAINS,
        [LAHAR_FILTER_CONTAINS_EXACT] = LAHAR_TEST_CONTAINS_EXACT,
        [LAHAR_FILTER_LIKE] = LAHAR_TEST_MATCH,
        [LAHAR_FILTER_LIKE_EXACT] = LAHAR_TEST_EQUAL,
        [LAHAR_FILTER_REGEX] = LAHAR_TEST_REGEX,
        [LAHAR_FILTER_REGEX_ANY_CASE] = LAHAR_TEST_REGEX,
    };
    if ((unsigned)op >= sizeof ops / sizeof ops[0]) {
        return refuse(filter, LAHAR_INVALID, "unknown operator of a filter");
    }
    const bool is_like = op == LAHAR_FILTER_LIKE || op == LAHAR_FILTER_LIKE_EXACT;
    if (name == NULL && (ops[op] == LAHAR_TEST_EQUAL || ops[op] == LAHAR_TEST_NOT_EQUAL)) {
        return refuse(filter, LAHAR_INVALID, "this operator needs the name of a field");
    }
    if (is_like && value_size == 1 && *(const char *)value == '*') {
        return name == NULL ? lahar_filter_all(filter) : lahar_filter_present(filter, name);
    }
    lahar_clause *clause = make_test(filter, name, ops[op]);
    if (clause == NULL || !copy_bytes(filter, value, value_size, &clause->node.value)) {
        return NULL;
    }
    clause->node.ignores_case = op == LAHAR_FILTER_REGEX_ANY_CASE;
    clause->node.is_pattern =
        is_like && value_size != 0 &&
        (memchr(value, '*', value_size) != NULL || memchr(value, '?', value_size) != NULL);
    return clause;
}

const lahar_clause *lahar_filter_present(lahar_filter *filter, const char *name)
{
    return name == NULL ? refuse(filter, LAHAR_INVALID, "this operator needs the name of a field")
                        : make_test(filter, name, LAHAR_TEST_PRESENT);
}

static bool set_end(lahar_filter *filter, struct lahar_query_end *end, const char *text,
                    bool is_exclusive)
{
    end->is_given = text != NULL;
    end->is_inclusive = !is_exclusive;
    return text == NULL || copy_bytes(filter, text, strlen(text), &end->text);
}

const lahar_clause *lahar_filter_between(lahar_filter *filter, const char *name,
                                         const lahar_filter_range *range)
{
    if (name == NULL || (range->low == NULL && range->high == NULL)) {
        return refuse(filter, LAHAR_INVALID, "a range needs the name of a field and an end");
    }
    if (range->low != NULL && range->high != NULL && range->low_is_exclusive) {
        /* Written as two tests, as in an expression. */
        const lahar_filter_range low = {.low = range->low, .low_is_exclusive = true};
        const lahar_filter_range high = {.high = range->high,
                                         .high_is_exclusive = range->high_is_exclusive};
        const lahar_clause *both[] = {lahar_filter_between(filter, name, &low),
                                      lahar_filter_between(filter, name, &high)};
        return lahar_filter_and(filter, both, 2);
    }
    lahar_clause *clause = make_test(filter, name, LAHAR_TEST_RANGE);
    return clause != NULL &&
                   set_end(filter, &clause->node.low, range->low, range->low_is_exclusive) &&
                   set_end(filter, &clause->node.high, range->high, range->high_is_exclusive)
               ? clause
               : NULL;
}

const lahar_clause *lahar_filter_times(lahar_filter *filter, const char *name, int64_t from_ns,
                                       int64_t to_ns)
{
    char from[32];
    char to[32];
    (void)snprintf(from, sizeof from, "@%" PRId64 "ns", from_ns);
    (void)snprintf(to, sizeof to, "@%" PRId64 "ns", to_ns);
    const lahar_filter_range range = {.low = from_ns == INT64_MIN ? NULL : from,
                                      .high = to_ns == INT64_MAX ? NULL : to,
                                      .high_is_exclusive = true};
    return range.low == NULL && range.high == NULL ? lahar_filter_present(filter, name)
                                                   : lahar_filter_between(filter, name, &range);
}

const lahar_clause *lahar_filter_all(lahar_filter *filter)
{
    return make(filter, LAHAR_NODE_ALL);
}

/* Puts a copy of the node at the link and returns the link behind it; its children are shared. */
static struct lahar_query_node **append(lahar_filter *filter, struct lahar_query_node **link,
                                        const struct lahar_query_node *node)
{
    lahar_clause *copy = make(filter, node->kind);
    if (copy == NULL) {
        return NULL;
    }
    copy->node = *node;
    copy->node.next = NULL;
    *link = &copy->node;
    return &copy->node.next;
}

static const lahar_clause *join(lahar_filter *filter, enum lahar_node_kind kind,
                                const lahar_clause *const *clauses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (clauses[i] == NULL) {
            return refuse(filter, LAHAR_INVALID, "a clause of a filter is missing");
        }
    }
    if (count == 1) {
        return clauses[0];
    }
    if (count == 0) {
        const lahar_clause *all = lahar_filter_all(filter);
        return kind == LAHAR_NODE_AND ? all : lahar_filter_not(filter, all);
    }
    lahar_clause *joined = make(filter, kind);
    struct lahar_query_node **link = joined == NULL ? NULL : &joined->node.child;
    for (size_t i = 0; i < count && link != NULL; i++) {
        const struct lahar_query_node *node = &clauses[i]->node;
        if (node->kind != kind) {
            link = append(filter, link, node);
            continue;
        }
        /* (a AND b) AND c is a AND b AND c. */
        for (node = node->child; node != NULL && link != NULL; node = node->next) {
            link = append(filter, link, node);
        }
    }
    return link == NULL ? NULL : joined;
}

const lahar_clause *lahar_filter_and(lahar_filter *filter, const lahar_clause *const *clauses,
                                     size_t count)
{
    return join(filter, LAHAR_NODE_AND, clauses, count);
}

const lahar_clause *lahar_filter_or(lahar_filter *filter, const lahar_clause *const *clauses,
                                    size_t count)
{
    return join(filter, LAHAR_NODE_OR, clauses, count);
}

const lahar_clause *lahar_filter_not(lahar_filter *filter, const lahar_clause *clause)
{
    if (clause == NULL) {
        return refuse(filter, LAHAR_INVALID, "a clause of a filter is missing");
    }
    lahar_clause *negation = make(filter, LAHAR_NODE_NOT);
    return negation != NULL && append(filter, &negation->node.child, &clause->node) != NULL
               ? negation
               : NULL;
}

/* --- queries ------------------------------------------------------------------------- */

struct copying {
    struct lahar_arena *arena;
    uint32_t count;
    lahar_error *error;
};

static lahar_status copy_tree(struct copying *copying, const struct lahar_query_node *node,
                              unsigned depth, struct lahar_query_node **copy_out)
{
    if (depth > LAHAR_QUERY_DEPTH_MAX) {
        return lahar_fail(copying->error, LAHAR_INVALID, "clauses nest more than %d deep",
                          LAHAR_QUERY_DEPTH_MAX);
    }
    if (++copying->count > NODES_MAX) {
        return lahar_fail(copying->error, LAHAR_TOO_BIG, "a query of more than %d clauses",
                          NODES_MAX);
    }
    struct lahar_query_node *copy = lahar_arena_allocate(copying->arena, sizeof *copy);
    if (copy == NULL) {
        return lahar_fail(copying->error, LAHAR_NO_MEMORY, "no memory for a query");
    }
    *copy = *node;
    copy->next = NULL;
    copy->child = NULL;
    lahar_bytes *const parts[] = {&copy->name, &copy->value, &copy->low.text, &copy->high.text};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i]->data != NULL) {
            parts[i]->data = lahar_arena_copy(copying->arena, parts[i]->data, parts[i]->size);
            if (parts[i]->data == NULL) {
                return lahar_fail(copying->error, LAHAR_NO_MEMORY, "no memory for a query");
            }
        }
    }
    struct lahar_query_node **link = &copy->child;
    for (const struct lahar_query_node *child = node->child; child != NULL; child = child->next) {
        LAHAR_TRY(copy_tree(copying, child, depth + 1, link));
        link = &(*link)->next;
    }
    *copy_out = copy;
    return LAHAR_OK;
}

static lahar_status build(void *context, struct lahar_arena *arena,
                          struct lahar_query_node **root_out, lahar_error *error)
{
    const lahar_clause *clause = context;
    struct copying copying = {.arena = arena, .error = error};
    return copy_tree(&copying, &clause->node, 0, root_out);
}

lahar_status lahar_filter_open(lahar_filter *filter, const lahar_clause *clause,
                               const lahar_query_options *options, lahar_query **query_out,
                               lahar_error *error)
{
    *query_out = NULL;
    lahar_error_clear(error);
    if (filter->failure.status != LAHAR_OK) {
        return lahar_fail(error, filter->failure.status, "%s", filter->failure.message);
    }
    if (clause == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "there is no clause to look for");
    }
    return lahar_query_open_built(filter->store, build, (void *)(uintptr_t)clause, options,
                                  query_out, error);
}

const char *lahar_filter_text(lahar_filter *filter, const lahar_clause *clause)
{
    struct lahar_arena arena;
    struct lahar_query_node *copy = NULL;
    const char *text = NULL;
    if (clause == NULL) {
        return NULL;
    }
    /* The copy bounds the depth. */
    lahar_arena_init(&arena, filter->allocator, 4096);
    if (build((void *)(uintptr_t)clause, &arena, &copy, NULL) == LAHAR_OK) {
        lahar_buffer_clear(&filter->text);
        lahar_query_print(copy, &filter->text);
        lahar_buffer_put_u8(&filter->text, '\0');
        text = filter->text.has_failed ? NULL : (const char *)filter->text.data;
    }
    lahar_arena_deinit(&arena);
    return text;
}
