#include "engine/segment/shape_writer.h"

#include <string.h>

enum {
    TABLE_SIZE_MIN = 32,
    TABLE_KEPT_MAX = 256 * 1024,     /* entries kept from block to block */
    NODES_KEPT_MAX = 2 * 1024 * 1024 /* bytes */
};

void lahar_shapes_init(struct lahar_shapes *shapes, const lahar_allocator *allocator)
{
    *shapes = (struct lahar_shapes){.allocator = allocator};
    lahar_buffer_init(&shapes->nodes, allocator);
}

void lahar_shapes_deinit(struct lahar_shapes *shapes)
{
    lahar_buffer_deinit(&shapes->nodes);
    lahar_release(shapes->allocator, shapes->table);
    shapes->table = NULL;
}

static bool put_node(struct lahar_shapes *shapes, const struct lahar_shape_node *node)
{
    lahar_buffer_put(&shapes->nodes, node, sizeof *node);
    if (shapes->nodes.has_failed) {
        return false;
    }
    shapes->node_count++;
    return true;
}

bool lahar_shapes_clear(struct lahar_shapes *shapes)
{
    if (shapes->nodes.capacity > NODES_KEPT_MAX) {
        lahar_buffer_deinit(&shapes->nodes);
        lahar_buffer_init(&shapes->nodes, shapes->allocator);
    }
    if (shapes->table_size > TABLE_KEPT_MAX) {
        lahar_release(shapes->allocator, shapes->table);
        shapes->table = NULL;
        shapes->table_size = 0;
    } else if (shapes->table_size != 0) {
        memset(shapes->table, 0, shapes->table_size * sizeof shapes->table[0]);
    }
    lahar_buffer_clear(&shapes->nodes);
    shapes->node_count = 0;
    const struct lahar_shape_node root = {0};
    return put_node(shapes, &root);
}

static inline uint32_t place_of(uint32_t parent, uint32_t label, uint32_t table_size)
{
    const uint64_t key = (uint64_t)parent << 32 | label;
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (table_size - 1);
}

static void put_in_table(struct lahar_shapes *shapes, uint32_t node)
{
    const struct lahar_shape_node *item = lahar_shapes_node(shapes, node);
    uint32_t at = place_of(item->parent, item->label, shapes->table_size);
    while (shapes->table[at] != 0) {
        at = (at + 1) & (shapes->table_size - 1);
    }
    shapes->table[at] = node;
}

static bool grow_table(struct lahar_shapes *shapes)
{
    if (shapes->node_count + 1 <= shapes->table_size / 2) {
        return true;
    }
    const uint32_t size = shapes->table_size == 0 ? TABLE_SIZE_MIN : shapes->table_size * 2;
    uint32_t *table = lahar_allocate_zeroed(shapes->allocator, size, sizeof table[0]);
    if (table == NULL) {
        return false;
    }
    lahar_release(shapes->allocator, shapes->table);
    shapes->table = table;
    shapes->table_size = size;
    for (uint32_t node = 1; node < shapes->node_count; node++) {
        put_in_table(shapes, node);
    }
    return true;
}

uint32_t lahar_shapes_step_slow(struct lahar_shapes *shapes, uint32_t node, uint32_t label,
                                uint32_t occurrence)
{
    if (shapes->table_size != 0) {
        for (uint32_t at = place_of(node, label, shapes->table_size); shapes->table[at] != 0;
             at = (at + 1) & (shapes->table_size - 1)) {
            const uint32_t child = shapes->table[at];
            const struct lahar_shape_node *item = lahar_shapes_node(shapes, child);
            if (item->parent == node && item->label == label) {
                lahar_shapes_node(shapes, node)->last_child = child;
                return child;
            }
        }
    }
    const struct lahar_shape_node item = {.parent = node, .label = label, .occurrence = occurrence};
    if (!grow_table(shapes) || !put_node(shapes, &item)) {
        return 0;
    }
    const uint32_t child = shapes->node_count - 1;
    put_in_table(shapes, child);
    lahar_shapes_node(shapes, node)->last_child = child;
    return child;
}
