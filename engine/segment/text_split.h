/* Splits the texts of a column into templates and variables, as log lines are made: what a line
 * has in common with others, and what stands in its gaps.
 *
 * A variable is a run of ASCII letters, digits, '_' and inner hyphens that has a digit, so that
 * no token of the index reaches across its ends; a template is the text with LAHAR_TEMPLATE_GAP in
 * place of each. Variables that stand at the same place behind the same words share a column. How a
 * text is split is the writer's choice; readers only put it together. One thread. */
#ifndef LAHAR_SEGMENT_TEXT_SPLIT_H
#define LAHAR_SEGMENT_TEXT_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/segment/column_writer.h"

enum {
    LAHAR_TEXT_SPLIT_SIZE_MIN = 8 * 1024, /* bytes of the texts of a column that is worth it */
    LAHAR_TEXT_SPLIT_RECENT = 64
};

struct lahar_text_variable {
    struct lahar_column column; /* a slot for each text that has it */
    uint64_t key;               /* of the place */
    uint32_t written;           /* its number in this block */
};

struct lahar_text_split {
    struct lahar_column templates; /* a slot for each text */
    struct lahar_text_variable **variables;
    uint32_t variable_count;
    uint32_t variable_capacity;
    struct lahar_buffer starts;  /* u32 a template: its first gap in gaps */
    struct lahar_buffer gaps;    /* u32: the variable that stands there */
    struct lahar_buffer text;    /* template of the text at hand */
    struct lahar_buffer spans;   /* its variables */
    struct lahar_buffer bits;    /* u64: of struct lahar_text_runs */
    struct lahar_buffer scratch; /* of filling columns */
    bool is_of_keywords;         /* variables are numbers and hashes */
    uint32_t pause_blocks;       /* still to be stored as they are */
    /* Codes of templates met lately + 1, by a few of their bytes. A guess only. */
    uint32_t recent[LAHAR_TEXT_SPLIT_RECENT];
    const lahar_allocator *allocator;
};

void lahar_text_split_init(struct lahar_text_split *split, bool is_of_keywords,
                           const lahar_allocator *allocator);
void lahar_text_split_deinit(struct lahar_text_split *split);
/* Readies for the next block. */
void lahar_text_split_clear(struct lahar_text_split *split);
/* Splits the entries of a column, to whose bytes slack is added. *is_split_out: whether that is
 * worth it. False when memory is refused. */
bool lahar_text_split_run(struct lahar_text_split *split, struct lahar_column *texts,
                          bool *is_split_out);
/* Appends the variables of all gaps of all templates, a varint each. */
void lahar_text_split_put_gaps(const struct lahar_text_split *split, struct lahar_buffer *out);

#endif
