/* What the templates of a column of texts say: their bytes, and which variable stands in which
 * gap. */
#ifndef LAHAR_SEGMENT_TEXT_PLAN_H
#define LAHAR_SEGMENT_TEXT_PLAN_H

#include "engine/segment/block_reader.h"

struct lahar_text_template {
    const uint8_t *text; /* with gaps */
    uint32_t size;
    uint32_t first_gap; /* of its gaps' variables in the plan */
};

struct lahar_text_plan {
    struct lahar_text_template *templates; /* by entry of the template column */
    uint32_t template_count;
    uint32_t *variables; /* by gap of all templates in turn */
    uint32_t gap_count;
};

/* From the bytes of each template, which the plan keeps pointers to; it lies in the block's arena.
 * With the mutex held, the section of entries inflated. */
lahar_status lahar_text_plan_make(struct lahar_block *block, const struct lahar_block_column *texts,
                                  const lahar_bytes *template_texts,
                                  const struct lahar_text_plan **plan_out, lahar_error *error);
/* What a plan takes in the arena at most. */
uint64_t lahar_text_plan_charge(const struct lahar_block *block,
                                const struct lahar_block_column *texts);

/* One text of a column whose texts are not all put together yet, in the block or in the arena.
 * rows: of the element that the column belongs to. *is_read_out: false when the column must be
 * decoded whole, because it holds what cannot be read singly or because so many were read singly
 * that it is cheaper. Any thread. */
lahar_status lahar_block_text_at(struct lahar_block *block, uint32_t column, const uint32_t *rows,
                                 uint32_t slot, struct lahar_arena *arena, lahar_bytes *text_out,
                                 bool *is_read_out, lahar_error *error);

#endif
