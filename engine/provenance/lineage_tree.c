/* The graph as indented text. Only branches indent, so that a long chain stays a list; a node that
 * several edges lead to is told once and referred to afterwards. */
#include <stdio.h>
#include <string.h>

#include "engine/format/time_text.h"
#include "engine/provenance/lineage.h"

enum {
    INDENT_MAX = 60 /* deeper branches stand below one another */
};

/* Edges by the node that they leave. */
struct adjacency {
    uint32_t *first; /* per node, node_count + 1 of them: its edges begin at this place of order */
    uint32_t *order; /* edge numbers */
    uint32_t *incoming;
    bool *is_told;
};

struct step {
    uint32_t node;
    uint32_t indent;
};

static void put(struct lahar_buffer *text, const char *string)
{
    lahar_buffer_put(text, string, strlen(string));
}

static void put_plain(struct lahar_buffer *text, lahar_bytes value)
{
    const uint8_t *p = value.data;
    for (size_t i = 0; i < value.size; i++) {
        lahar_buffer_put_u8(text, p[i] < ' ' || p[i] == 0x7f ? '?' : p[i]);
    }
}

static void put_node(struct lahar_buffer *text, const lahar_lineage_node *node)
{
    char line[96];
    char time[LAHAR_TIME_TEXT_SIZE_MAX];
    if (!node->is_event) {
        put(text, "FlowFile ");
        put_plain(text, node->uuid);
        put(text, node->has_no_origin ? " (no event tells its origin)" : "");
        return;
    }
    put_plain(text, node->type);
    const size_t time_size = lahar_time_format(node->time_ns, 3, time);
    (void)snprintf(line, sizeof line, " %llu %.*s", (unsigned long long)node->id, (int)time_size,
                   time);
    put(text, line);
    const lahar_bytes component =
        node->component_name.data != NULL ? node->component_name : node->component;
    if (component.data != NULL) {
        put(text, " ");
        put_plain(text, component);
    }
    if (node->transit_uri.data != NULL) {
        put(text, " ");
        put_plain(text, node->transit_uri);
    }
    if (node->relationship.data != NULL) {
        put(text, " -> ");
        put_plain(text, node->relationship);
    }
}

static bool adjacency_init(struct adjacency *adjacency, const struct lahar_lineage *lineage)
{
    const lahar_allocator *allocator = lineage->provenance->allocator;
    const size_t nodes = lineage->node_count;
    adjacency->first = lahar_allocate_zeroed(allocator, nodes + 2, sizeof(uint32_t));
    adjacency->order = lahar_allocate_zeroed(allocator, lineage->edge_count + 1, sizeof(uint32_t));
    adjacency->incoming = lahar_allocate_zeroed(allocator, nodes + 1, sizeof(uint32_t));
    adjacency->is_told = lahar_allocate_zeroed(allocator, nodes + 1, sizeof(bool));
    if (adjacency->first == NULL || adjacency->order == NULL || adjacency->incoming == NULL ||
        adjacency->is_told == NULL) {
        return false;
    }
    /* Counts one place further on, so that filling moves each beginning into its place. */
    for (size_t i = 0; i < lineage->edge_count; i++) {
        adjacency->first[lineage->edges[i].from + 2]++;
        adjacency->incoming[lineage->edges[i].to]++;
    }
    for (size_t i = 2; i < nodes + 2; i++) {
        adjacency->first[i] += adjacency->first[i - 1];
    }
    for (size_t i = 0; i < lineage->edge_count; i++) {
        adjacency->order[adjacency->first[lineage->edges[i].from + 1]++] = (uint32_t)i;
    }
    return true;
}

static void adjacency_deinit(struct adjacency *adjacency, const lahar_allocator *allocator)
{
    lahar_release(allocator, adjacency->first);
    lahar_release(allocator, adjacency->order);
    lahar_release(allocator, adjacency->incoming);
    lahar_release(allocator, adjacency->is_told);
}

/* Tells a node and what follows from it. stack has room for a step an edge, and one. */
static void put_from(const struct lahar_lineage *lineage, struct adjacency *adjacency,
                     uint32_t root, struct step *stack, struct lahar_buffer *text)
{
    size_t depth = 0;
    stack[depth++] = (struct step){root, 0};
    while (depth != 0) {
        const struct step step = stack[--depth];
        for (uint32_t i = 0; i < step.indent && i < INDENT_MAX; i++) {
            put(text, "  ");
        }
        put_node(text, &lineage->nodes[step.node]);
        if (adjacency->is_told[step.node]) {
            put(text, " (see above)\n");
            continue;
        }
        adjacency->is_told[step.node] = true;
        put(text, "\n");
        const uint32_t begin = adjacency->first[step.node];
        const uint32_t end = adjacency->first[step.node + 1];
        const uint32_t indent = step.indent + (end - begin > 1 || step.node == root);
        for (uint32_t i = end; i > begin; i--) {
            stack[depth++] = (struct step){lineage->edges[adjacency->order[i - 1]].to, indent};
        }
    }
}

void lahar_lineage_put_tree(const struct lahar_lineage *lineage, struct lahar_buffer *text)
{
    const lahar_allocator *allocator = lineage->provenance->allocator;
    struct adjacency adjacency = {.first = NULL};
    struct step *stack = lahar_allocate(allocator, (lineage->edge_count + 1) * sizeof *stack);
    if (!adjacency_init(&adjacency, lineage) || stack == NULL) {
        text->has_failed = true;
    } else {
        for (uint32_t i = 0; i < lineage->node_count; i++) {
            if (adjacency.incoming[i] == 0) {
                put_from(lineage, &adjacency, i, stack, text);
            }
        }
        /* What lies on a cycle alone has no beginning: any will do. */
        for (uint32_t i = 0; i < lineage->node_count; i++) {
            if (!adjacency.is_told[i]) {
                put_from(lineage, &adjacency, i, stack, text);
            }
        }
        if (lineage->is_truncated) {
            put(text, "(more was left out)\n");
        }
        if (lineage->problem[0] != '\0') {
            put(text, lineage->problem);
            put(text, "\n");
        }
    }
    lahar_release(allocator, stack);
    adjacency_deinit(&adjacency, allocator);
}
