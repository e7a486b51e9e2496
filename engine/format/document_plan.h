/* Documents that are alike: the same keys in the same order, and between the values the same bytes.
 *
 * A plan is learnt from one document while it is mapped. Of the next one each stretch between two
 * values is compared with the plan's, so that no key is parsed, looked up or looked for twice; what
 * does not compare is left to the tokenizer. Any document that matches is one that the
 * tokenizer accepts, and maps to the same fields. */
#ifndef LAHAR_FORMAT_DOCUMENT_PLAN_H
#define LAHAR_FORMAT_DOCUMENT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/field_map.h"
#include "engine/format/json.h"
#include "engine/format/marks.h"
#include "io/base/buffer.h"

enum {
    LAHAR_PLAN_SLOT_COUNT_MAX = 512,
    LAHAR_PLAN_TEXT_SIZE_MAX = 8192
};

/* A value together with the name under which it was met. */
struct lahar_document_place {
    lahar_bytes name;
    const struct lahar_field_entry *entry; /* the declared field of that name, or NULL */
    size_t map_index;                      /* of the record: where pairs go */
    bool is_element;                       /* of an array */
    bool is_first;                         /* no value before it can have filled the field */
    bool is_map;                           /* inside a map field: names are not looked up */
};

/* One scalar value. */
struct lahar_plan_slot {
    struct lahar_document_place place;
    uint32_t text_size;            /* bytes between the value before and this one */
    uint32_t shape_size;           /* bytes of the shape that they stand for */
    struct lahar_json_token value; /* of the document that was matched last */
};

struct lahar_document_plan {
    struct lahar_plan_slot *slots; /* owned */
    size_t slot_count;
    size_t slot_capacity;
    struct lahar_buffer text;  /* the bytes between values, one stretch behind the other */
    struct lahar_buffer shape; /* what they stand for */
    struct lahar_buffer names;
    size_t text_end;  /* while learning: behind the last value */
    size_t shape_end; /* the same of the shape */
    size_t tail_size; /* bytes behind the last value */
    size_t tail_shape_size;
    uint64_t newline_count; /* LF among the bytes between values */
    uint32_t version;       /* of the field map; 0: nothing has been learnt */
    bool is_learnable;
    bool has_failed; /* memory was refused */
};

void lahar_document_plan_init(struct lahar_document_plan *plan, const lahar_allocator *allocator);
void lahar_document_plan_deinit(struct lahar_document_plan *plan);

/* Learning: begin, each scalar value in order with what the shape holds before and behind it, and
 * the end. text and shape are those of the whole document. What cannot be learnt is no failure;
 * false: memory is refused. */
void lahar_document_plan_begin(struct lahar_document_plan *plan);
void lahar_document_plan_before(struct lahar_document_plan *plan, const uint8_t *text,
                                const struct lahar_json_token *token,
                                const struct lahar_document_place *place,
                                const struct lahar_buffer *shape);
void lahar_document_plan_behind(struct lahar_document_plan *plan,
                                const struct lahar_json_token *token,
                                const struct lahar_buffer *shape);
bool lahar_document_plan_end(struct lahar_document_plan *plan, const uint8_t *text, size_t size,
                             const struct lahar_buffer *shape, uint32_t version);

/* Bytes of the document at text, 0 when it is not like the plan's; its values are in the
 * slots. Looks at the window of marks only, which holds text. */
size_t lahar_document_plan_match(struct lahar_document_plan *plan, const struct lahar_marks *marks,
                                 const uint8_t *text);

#endif
