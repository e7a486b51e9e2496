/* Fields that tests look at; follows match.c and facet_values.c in where they look. */
#include "engine/query/needed_fields.h"

static void add(struct lahar_needed_fields *needed, uint32_t field)
{
    for (uint32_t i = 0; i < needed->count; i++) {
        if (needed->items[i] == field) {
            return;
        }
    }
    if (needed->count == LAHAR_NEEDED_FIELDS_MAX) {
        needed->is_all = true;
        return;
    }
    needed->items[needed->count++] = field;
}

/* Attributes in effect are told from both maps. */
static void add_map(struct lahar_needed_fields *needed, uint32_t map_field)
{
    add(needed, map_field);
    if (map_field == LAHAR_FIELD_ATTRIBUTES) {
        add(needed, LAHAR_FIELD_PREVIOUS);
    }
}

static void add_test(struct lahar_needed_fields *needed, const struct lahar_test *test,
                     const struct lahar_stream *stream)
{
    switch (test->target) {
    case LAHAR_TARGET_ANYWHERE:
        needed->is_all = true;
        return;
    case LAHAR_TARGET_ID:
    case LAHAR_TARGET_TIME:
    case LAHAR_TARGET_ARRIVAL:
    case LAHAR_TARGET_STREAM:
        return;
    case LAHAR_TARGET_ATTRIBUTE:
        add_map(needed, test->field);
        return;
    case LAHAR_TARGET_CHANGED:
        add_map(needed, LAHAR_FIELD_ATTRIBUTES);
        return;
    case LAHAR_TARGET_FIELD:
        break;
    }
    if (test->has_field) {
        add(needed, test->field);
    }
    if (!test->has_field || stream == NULL ||
        lahar_stream_find_field(stream, test->field) == NULL) {
        add_map(needed, LAHAR_FIELD_ATTRIBUTES);
    }
    if (test->has_map) {
        add_map(needed, test->map_field);
    }
    if (test->has_relatives) {
        add(needed, test->parents_field);
        add(needed, test->children_field);
        add(needed, test->source_system_field);
    }
}

static void add_node(struct lahar_needed_fields *needed, const struct lahar_query_node *node,
                     const struct lahar_stream *stream)
{
    if (node->kind == LAHAR_NODE_TEST) {
        add_test(needed, node->test, stream);
    }
    for (const struct lahar_query_node *child = node->child; child != NULL && !needed->is_all;
         child = child->next) {
        add_node(needed, child, stream);
    }
}

void lahar_needed_fields_of(const struct lahar_query_node *node, const struct lahar_stream *stream,
                            struct lahar_needed_fields *needed_out)
{
    *needed_out = (struct lahar_needed_fields){.is_all = false};
    add_node(needed_out, node, stream);
}

void lahar_needed_fields_of_test(const struct lahar_test *test, const struct lahar_stream *stream,
                                 struct lahar_needed_fields *needed_out)
{
    *needed_out = (struct lahar_needed_fields){.is_all = false};
    add_test(needed_out, test, stream);
}
