/* The graph as JSON, Graphviz DOT, Mermaid and PROV-JSON. */
#include <stdio.h>
#include <string.h>

#include "engine/format/json.h"
#include "engine/format/time_text.h"
#include "engine/provenance/lineage.h"

static void put(struct lahar_buffer *text, const char *string)
{
    lahar_buffer_put(text, string, strlen(string));
}

static void put_number(struct lahar_buffer *text, uint64_t number)
{
    char digits[24];
    const int size = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    lahar_buffer_put(text, digits, (size_t)size);
}

static void put_time(struct lahar_buffer *text, int64_t time_ns)
{
    char time[LAHAR_TIME_TEXT_SIZE_MAX];
    lahar_buffer_put(text, time, lahar_time_format(time_ns, 9, time));
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_member(struct lahar_buffer *text, const char *name, lahar_bytes value)
{
    if (value.data != NULL) {
        put(text, ",\"");
        put(text, name);
        put(text, "\":");
        lahar_json_put_string(text, value, true);
    }
}

static void put_json_node(struct lahar_buffer *text, const lahar_lineage_node *node)
{
    if (!node->is_event) {
        put(text, "{\"ff\":");
        lahar_json_put_string(text, node->uuid, true);
        if (node->generation != 0) {
            put(text, ",\"generation\":");
            if (node->generation < 0) {
                put(text, "-");
            }
            put_number(text, (uint64_t)(node->generation < 0 ? -(int64_t)node->generation
                                                             : node->generation));
        }
        put(text, node->has_no_origin ? ",\"origin\":false}" : "}");
        return;
    }
    put(text, "{\"ev\":");
    put_number(text, node->id);
    put_member(text, "type", node->type);
    put(text, ",\"time\":\"");
    put_time(text, node->time_ns);
    put(text, "\"");
    put_member(text, "uuid", node->uuid);
    put_member(text, "component", node->component);
    put_member(text, "component_type", node->component_type);
    put_member(text, "component_name", node->component_name);
    put_member(text, "transit_uri", node->transit_uri);
    put_member(text, "relationship", node->relationship);
    put(text, node->is_hidden ? ",\"hidden\":true}" : "}");
}

/* How edges name a node. */
static void put_json_name(struct lahar_buffer *text, const lahar_lineage_node *node)
{
    if (node->is_event) {
        put(text, "\"ev");
        put_number(text, node->id);
        put(text, "\"");
    } else {
        lahar_json_put_string(text, node->uuid, true);
    }
}

void lahar_lineage_put_json(const struct lahar_lineage *lineage, struct lahar_buffer *text)
{
    put(text, "{\"nodes\":[");
    for (size_t i = 0; i < lineage->node_count; i++) {
        put(text, i == 0 ? "" : ",");
        put_json_node(text, &lineage->nodes[i]);
    }
    put(text, "],\"edges\":[");
    for (size_t i = 0; i < lineage->edge_count; i++) {
        const lahar_lineage_edge *edge = &lineage->edges[i];
        put(text, i == 0 ? "{\"from\":" : ",{\"from\":");
        put_json_name(text, &lineage->nodes[edge->from]);
        put(text, ",\"to\":");
        put_json_name(text, &lineage->nodes[edge->to]);
        put_member(text, "uuid", edge->uuid);
        put(text, "}");
    }
    put(text, "],\"percent\":100,\"truncated\":");
    put(text, lineage->is_truncated ? "true" : "false");
    put(text, ",\"error\":");
    const char *problem = lineage->status != LAHAR_OK   ? lineage->error.message
                          : lineage->problem[0] != '\0' ? lineage->problem
                                                        : NULL;
    if (problem == NULL) {
        put(text, "null");
    } else {
        lahar_json_put_string(text, (lahar_bytes){problem, strlen(problem)}, true);
    }
    put(text, "}\n");
}

/* --- DOT and Mermaid -------------------------------------------------------------------------- */

static void put_id(struct lahar_buffer *text, const struct lahar_lineage *lineage, uint32_t node)
{
    const lahar_lineage_node *named = &lineage->nodes[node];
    put(text, named->is_event ? "ev" : "ff");
    put_number(text, named->is_event ? named->id : node - lineage->event_count);
}

/* Inside quotation marks. */
static void put_dot_text(struct lahar_buffer *text, lahar_bytes value)
{
    const uint8_t *p = value.data;
    for (size_t i = 0; i < value.size; i++) {
        if (p[i] == '"' || p[i] == '\\') {
            lahar_buffer_put_u8(text, '\\');
        }
        lahar_buffer_put_u8(text, p[i] < ' ' ? ' ' : p[i]);
    }
}

static void put_mermaid_text(struct lahar_buffer *text, lahar_bytes value)
{
    static const char special[] = "\"#<>&;`";
    const uint8_t *p = value.data;
    for (size_t i = 0; i < value.size; i++) {
        if (p[i] != 0 && strchr(special, p[i]) != NULL) {
            put(text, "#");
            put_number(text, p[i]);
            put(text, ";");
        } else {
            lahar_buffer_put_u8(text, p[i] < ' ' ? ' ' : p[i]);
        }
    }
}

/* What a node says of itself, lines parted by separator. */
static void put_label(struct lahar_buffer *text, const lahar_lineage_node *node,
                      void (*put_text)(struct lahar_buffer *, lahar_bytes), const char *separator)
{
    if (!node->is_event) {
        put_text(text, node->uuid);
        return;
    }
    put_text(text, node->type);
    put(text, " ");
    put_number(text, node->id);
    put(text, separator);
    put_time(text, node->time_ns);
    const lahar_bytes component =
        node->component_name.data != NULL ? node->component_name : node->component;
    if (component.data != NULL) {
        put(text, separator);
        put_text(text, component);
    }
}

void lahar_lineage_put_dot(const struct lahar_lineage *lineage, struct lahar_buffer *text)
{
    put(text, "digraph lineage {\n");
    for (uint32_t i = 0; i < lineage->node_count; i++) {
        put(text, "  ");
        put_id(text, lineage, i);
        put(text, lineage->nodes[i].is_event ? " [shape=box,label=\"" : " [shape=ellipse,label=\"");
        put_label(text, &lineage->nodes[i], put_dot_text, "\\n");
        put(text, "\"];\n");
    }
    for (size_t i = 0; i < lineage->edge_count; i++) {
        put(text, "  ");
        put_id(text, lineage, lineage->edges[i].from);
        put(text, " -> ");
        put_id(text, lineage, lineage->edges[i].to);
        put(text, " [tooltip=\"");
        put_dot_text(text, lineage->edges[i].uuid);
        put(text, "\"];\n");
    }
    put(text, "}\n");
}

void lahar_lineage_put_mermaid(const struct lahar_lineage *lineage, struct lahar_buffer *text)
{
    put(text, "flowchart TD\n");
    for (uint32_t i = 0; i < lineage->node_count; i++) {
        const bool is_event = lineage->nodes[i].is_event;
        put(text, "  ");
        put_id(text, lineage, i);
        put(text, is_event ? "[\"" : "([\"");
        put_label(text, &lineage->nodes[i], put_mermaid_text, "<br>");
        put(text, is_event ? "\"]\n" : "\"])\n");
    }
    for (size_t i = 0; i < lineage->edge_count; i++) {
        put(text, "  ");
        put_id(text, lineage, lineage->edges[i].from);
        put(text, " --> ");
        put_id(text, lineage, lineage->edges[i].to);
        put(text, "\n");
    }
}

/* --- PROV-JSON ----------------------------------------------------------------------------------
 */

static void put_qualified(struct lahar_buffer *text, const struct lahar_lineage *lineage,
                          uint32_t node)
{
    put(text, "\"lahar:");
    put_id(text, lineage, node);
    put(text, "\"");
}

/* FlowFiles are entities, events activities. */
static void put_prov_nodes(const struct lahar_lineage *lineage, struct lahar_buffer *text,
                           bool is_event)
{
    bool is_first = true;
    for (uint32_t i = 0; i < lineage->node_count; i++) {
        const lahar_lineage_node *node = &lineage->nodes[i];
        if (node->is_event != is_event) {
            continue;
        }
        put(text, is_first ? "" : ",");
        is_first = false;
        put_qualified(text, lineage, i);
        if (!is_event) {
            put(text, ":{\"lahar:uuid\":");
            lahar_json_put_string(text, node->uuid, true);
            put(text, "}");
            continue;
        }
        put(text, ":{\"prov:startTime\":\"");
        put_time(text, node->time_ns);
        put(text, "\",\"prov:endTime\":\"");
        put_time(text, node->time_ns);
        put(text, "\"");
        put_member(text, "prov:type", node->type);
        put_member(text, "lahar:component", node->component);
        put_member(text, "lahar:transit_uri", node->transit_uri);
        put(text, "}");
    }
}

enum relation {
    USED,      /* FlowFile -> event */
    GENERATED, /* event -> FlowFile */
    INFORMED   /* event -> event */
};

static enum relation relation_of(const struct lahar_lineage *lineage,
                                 const lahar_lineage_edge *edge)
{
    if (!lineage->nodes[edge->from].is_event) {
        return USED;
    }
    return lineage->nodes[edge->to].is_event ? INFORMED : GENERATED;
}

static void put_relations(const struct lahar_lineage *lineage, struct lahar_buffer *text,
                          enum relation relation)
{
    static const struct {
        const char *name;
        const char *from;
        const char *to;
    } names[] = {[USED] = {"used", "prov:entity", "prov:activity"},
                 [GENERATED] = {"wasGeneratedBy", "prov:activity", "prov:entity"},
                 [INFORMED] = {"wasInformedBy", "prov:informant", "prov:informed"}};
    bool is_first = true;
    put(text, ",\"");
    put(text, names[relation].name);
    put(text, "\":{");
    for (size_t i = 0; i < lineage->edge_count; i++) {
        const lahar_lineage_edge *edge = &lineage->edges[i];
        if (relation_of(lineage, edge) != relation) {
            continue;
        }
        put(text, is_first ? "\"_:e" : ",\"_:e");
        is_first = false;
        put_number(text, i);
        put(text, "\":{\"");
        put(text, names[relation].from);
        put(text, "\":");
        put_qualified(text, lineage, edge->from);
        put(text, ",\"");
        put(text, names[relation].to);
        put(text, "\":");
        put_qualified(text, lineage, edge->to);
        put(text, "}");
    }
    put(text, "}");
}

void lahar_lineage_put_prov_json(const struct lahar_lineage *lineage, struct lahar_buffer *text)
{
    put(text, "{\"prefix\":{\"lahar\":\"urn:lahar:\"},\"entity\":{");
    put_prov_nodes(lineage, text, false);
    put(text, "},\"activity\":{");
    put_prov_nodes(lineage, text, true);
    put(text, "}");
    put_relations(lineage, text, USED);
    put_relations(lineage, text, GENERATED);
    put_relations(lineage, text, INFORMED);
    put(text, "}\n");
}
