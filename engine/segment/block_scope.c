/* Which rows the slots of a block's elements belong to, found out from the shapes when a row is
 * first read. */
#include <string.h>

#include "engine/segment/block_reader.h"
#include "io/base/error.h"

static lahar_status fail_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to inflate a block");
}

static lahar_status fail_column(lahar_error *error, uint32_t column)
{
    return lahar_fail(error, LAHAR_CORRUPT, "column %u is damaged", column);
}

/* The node where the path of a slot of the scope ends. */
static uint32_t node_of(const struct lahar_block_column *shape, uint32_t slot)
{
    return (uint32_t)shape->numbers[lahar_block_code(shape, slot)];
}

static bool are_shapes_valid(const struct lahar_block_column *shape,
                             const struct lahar_block_scope *scope, uint64_t raw_size)
{
    for (uint32_t i = 0; i < shape->entry_count; i++) {
        if (shape->numbers[i] >= scope->node_count) {
            return false;
        }
    }
    /* Every element of a row takes bytes of it, which bounds the walks over all rows. */
    uint64_t depth = 0;
    for (uint32_t slot = 0; slot < shape->slot_count; slot++) {
        depth += scope->nodes[node_of(shape, slot)].depth;
    }
    return depth <= raw_size;
}

/* Counts the slots of every element: those that end at a node, and at nodes below. */
static lahar_status count_slots(struct lahar_block *block, struct lahar_block_scope *scope,
                                const struct lahar_block_column *shape, lahar_error *error)
{
    uint32_t *counts = lahar_allocate_zeroed(block->allocator, scope->node_count, sizeof counts[0]);
    if (counts == NULL) {
        return fail_memory(error);
    }
    for (uint32_t slot = 0; slot < shape->slot_count; slot++) {
        counts[node_of(shape, slot)]++;
    }
    for (uint32_t i = 0; i < scope->element_count; i++) {
        scope->elements[i].filled = 0;
    }
    for (uint32_t i = scope->node_count - 1; i > 0; i--) {
        const struct lahar_block_node *node = &scope->nodes[i];
        struct lahar_block_element *element = &scope->elements[node->label / 2];
        if ((node->label & 1) == 0 || element->is_unnamed) {
            element->filled += counts[i];
        }
        counts[node->parent] += counts[i];
    }
    lahar_release(block->allocator, counts);
    return LAHAR_OK;
}

/* Compares with what the columns have and makes room for rows where they are needed. */
static lahar_status prepare_rows(struct lahar_block *block, struct lahar_block_scope *scope,
                                 bool *has_rows_out, lahar_error *error)
{
    for (uint32_t i = 0; i < scope->element_count; i++) {
        struct lahar_block_element *element = &scope->elements[i];
        const uint32_t count = element->filled;
        if (count != block->columns[element->column].slot_count ||
            (element->is_unnamed && count != block->columns[element->second].slot_count)) {
            return lahar_fail(error, LAHAR_CORRUPT, "columns and shapes of a block disagree");
        }
        element->filled = 0;
        if (count == block->header.row_count && !element->has_occurrences) {
            continue;
        }
        element->rows = lahar_arena_allocate(&block->arena, (size_t)count * sizeof(uint32_t) + 1);
        if (element->rows == NULL) {
            return fail_memory(error);
        }
        *has_rows_out = true;
    }
    return LAHAR_OK;
}

/* So that going over all rows passes over the elements that every row has. */
static void link_counted(struct lahar_block_scope *scope)
{
    for (uint32_t i = 1; i < scope->node_count; i++) {
        struct lahar_block_node *node = &scope->nodes[i];
        const struct lahar_block_element *element = &scope->elements[node->label / 2];
        const bool has_slot = (node->label & 1) == 0 || element->is_unnamed;
        node->counted = element->rows != NULL && has_slot ? i : scope->nodes[node->parent].counted;
    }
}

static void fill_rows(struct lahar_block_scope *scope, const struct lahar_block_column *shape)
{
    const uint32_t *owner_rows = scope->owner == NULL ? NULL : scope->owner->rows;
    for (uint32_t slot = 0; slot < shape->slot_count; slot++) {
        const uint32_t row = owner_rows == NULL ? slot : owner_rows[slot];
        for (uint32_t i = scope->nodes[node_of(shape, slot)].counted; i != 0;
             i = scope->nodes[scope->nodes[i].parent].counted) {
            struct lahar_block_element *element = &scope->elements[scope->nodes[i].label / 2];
            element->rows[element->filled++] = row;
        }
    }
}

/* Where the items of each list begin. */
static lahar_status find_starts(struct lahar_block *block, struct lahar_block_element *element,
                                lahar_error *error)
{
    LAHAR_TRY(lahar_block_decode_column(block, element->column, element->rows, error));
    const struct lahar_block_column *counts = &block->columns[element->column];
    const uint32_t item_count = block->columns[element->second].slot_count;
    element->starts =
        lahar_arena_allocate(&block->arena, ((size_t)counts->slot_count + 1) * sizeof(uint32_t));
    if (element->starts == NULL) {
        return fail_memory(error);
    }
    uint64_t start = 0;
    for (uint32_t slot = 0; slot < counts->slot_count; slot++) {
        element->starts[slot] = (uint32_t)start;
        const uint64_t count = counts->numbers[lahar_block_code(counts, slot)];
        if (count > item_count - start) {
            return fail_column(error, element->column);
        }
        start += count;
    }
    element->starts[counts->slot_count] = (uint32_t)start;
    return start == item_count ? LAHAR_OK : fail_column(error, element->column);
}

static lahar_status decode_scope(struct lahar_block *block, uint32_t number, lahar_error *error);

static lahar_status find_rows(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_scope *scope = &block->scopes[number];
    if (number != 0) {
        LAHAR_TRY(decode_scope(block, 0, error));
    }
    const uint32_t *rows = scope->owner == NULL ? NULL : scope->owner->rows;
    LAHAR_TRY(lahar_block_decode_column(block, scope->shape_column, rows, error));
    const struct lahar_block_column *shape = &block->columns[scope->shape_column];
    if (!are_shapes_valid(shape, scope, block->header.raw_size)) {
        return lahar_fail(error, LAHAR_CORRUPT, "the shapes of a block are damaged");
    }
    bool has_rows = false;
    LAHAR_TRY(count_slots(block, scope, shape, error));
    LAHAR_TRY(prepare_rows(block, scope, &has_rows, error));
    if (has_rows) {
        link_counted(scope);
        fill_rows(scope, shape);
    }
    for (uint32_t i = 0; number == 0 && i < scope->element_count; i++) {
        struct lahar_block_element *element = &scope->elements[i];
        if (element->type == LAHAR_LIST_UUID || element->type == LAHAR_LIST_KEYWORD) {
            LAHAR_TRY(find_starts(block, element, error));
        }
    }
    return LAHAR_OK;
}

/* With the mutex held. The scope of a map rests on scope 0. */
static lahar_status decode_scope(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_scope *scope = &block->scopes[number];
    if (atomic_load_explicit(&scope->is_ready, memory_order_relaxed)) {
        return LAHAR_OK;
    }
    if (scope->is_damaged) {
        return lahar_fail(error, LAHAR_CORRUPT, "the shapes of a block are damaged");
    }
    const lahar_status status = find_rows(block, number, error);
    if (status == LAHAR_OK) {
        atomic_store_explicit(&scope->is_ready, true, memory_order_release);
    }
    scope->is_damaged = status == LAHAR_CORRUPT;
    return status;
}

lahar_status lahar_block_need_scope(struct lahar_block *block, uint32_t scope, lahar_error *error)
{
    if (atomic_load_explicit(&block->scopes[scope].is_ready, memory_order_acquire)) {
        return LAHAR_OK;
    }
    pthread_mutex_lock(&block->mutex);
    const lahar_status status = decode_scope(block, scope, error);
    pthread_mutex_unlock(&block->mutex);
    return status;
}
