/* The shapes of a scope: which elements its rows have, in which order, which are null.
 *
 * A shape is a path in a tree from the root, one node an element; a row keeps the
 * number of the node where its path ends. Rows of the same shape share the whole
 * path, and most rows follow the path of the row before, so that finding it takes one
 * comparison an element. One thread. */
#ifndef LAHAR_SEGMENT_SHAPE_WRITER_H
#define LAHAR_SEGMENT_SHAPE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/buffer.h"

struct lahar_shape_node {
    uint32_t parent;     /* below its own number; the root is node 0 */
    uint32_t label;      /* element * 2 + is_null */
    uint32_t occurrence; /* non-null places of the same element above it */
    uint32_t last_child; /* the child taken last, 0: none */
    uint32_t memo;       /* the caller's, 0 at first */
};

struct lahar_shapes {
    struct lahar_buffer nodes; /* struct lahar_shape_node each */
    uint32_t node_count;       /* with the root */
    uint32_t *table;           /* node by (parent, label), 0 when free */
    uint32_t table_size;       /* a power of two, at least twice node_count; 0: no table */
    const lahar_allocator *allocator;
};

void lahar_shapes_init(struct lahar_shapes *shapes, const lahar_allocator *allocator);
void lahar_shapes_deinit(struct lahar_shapes *shapes);
/* Leaves the root alone; false when memory is refused. Call before the first use. */
bool lahar_shapes_clear(struct lahar_shapes *shapes);

static inline struct lahar_shape_node *lahar_shapes_node(const struct lahar_shapes *shapes,
                                                         uint32_t node)
{
    return (struct lahar_shape_node *)(void *)shapes->nodes.data + node;
}

/* The child of node with this label, made when new; 0 when memory is refused. */
uint32_t lahar_shapes_step_slow(struct lahar_shapes *shapes, uint32_t node, uint32_t label,
                                uint32_t occurrence);

static inline uint32_t lahar_shapes_step(struct lahar_shapes *shapes, uint32_t node, uint32_t label,
                                         uint32_t occurrence)
{
    const uint32_t child = lahar_shapes_node(shapes, node)->last_child;
    return child != 0 && lahar_shapes_node(shapes, child)->label == label
               ? child
               : lahar_shapes_step_slow(shapes, node, label, occurrence);
}

#endif
