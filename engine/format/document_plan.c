/* Learning and matching; see document_plan.h. */
#include "engine/format/document_plan.h"

#include <string.h>

#include "engine/format/scan.h"

void lahar_document_plan_init(struct lahar_document_plan *plan, const lahar_allocator *allocator)
{
    *plan = (struct lahar_document_plan){0};
    lahar_buffer_init(&plan->text, allocator);
    lahar_buffer_init(&plan->shape, allocator);
    lahar_buffer_init(&plan->names, allocator);
}

void lahar_document_plan_deinit(struct lahar_document_plan *plan)
{
    lahar_release(plan->text.allocator, plan->slots);
    plan->slots = NULL;
    lahar_buffer_deinit(&plan->text);
    lahar_buffer_deinit(&plan->shape);
    lahar_buffer_deinit(&plan->names);
}

/* --- learning ---------------------------------------------------------------------------- */

void lahar_document_plan_begin(struct lahar_document_plan *plan)
{
    plan->version = 0;
    plan->slot_count = 0;
    plan->text_end = 0;
    plan->shape_end = 0;
    plan->is_learnable = true;
    plan->has_failed = false;
    lahar_buffer_clear(&plan->text);
    lahar_buffer_clear(&plan->shape);
    lahar_buffer_clear(&plan->names);
}

static bool grow_slots(struct lahar_document_plan *plan)
{
    const size_t capacity = plan->slot_capacity == 0 ? 32 : plan->slot_capacity * 2;
    struct lahar_plan_slot *slots =
        lahar_reallocate(plan->text.allocator, plan->slots, capacity * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    plan->slots = slots;
    plan->slot_capacity = capacity;
    return true;
}

/* The quotes of a string are not between values. */
static size_t start_of(const struct lahar_json_token *token)
{
    return token->offset - (size_t)(token->kind == LAHAR_JSON_STRING);
}

static size_t end_of(const struct lahar_json_token *token)
{
    return (size_t)token->offset + token->size + (size_t)(token->kind == LAHAR_JSON_STRING);
}

void lahar_document_plan_before(struct lahar_document_plan *plan, const uint8_t *text,
                                const struct lahar_json_token *token,
                                const struct lahar_document_place *place,
                                const struct lahar_buffer *shape)
{
    const size_t text_size = start_of(token) - plan->text_end;
    const size_t shape_size = shape->size - plan->shape_end;
    if (!plan->is_learnable || plan->slot_count == LAHAR_PLAN_SLOT_COUNT_MAX ||
        plan->text.size + text_size > LAHAR_PLAN_TEXT_SIZE_MAX) {
        plan->is_learnable = false;
        return;
    }
    if (plan->slot_count == plan->slot_capacity && !grow_slots(plan)) {
        plan->is_learnable = false;
        plan->has_failed = true;
        return;
    }
    struct lahar_plan_slot *slot = &plan->slots[plan->slot_count++];
    *slot = (struct lahar_plan_slot){
        .place = *place, .text_size = (uint32_t)text_size, .shape_size = (uint32_t)shape_size};
    lahar_buffer_put(&plan->text, text + plan->text_end, text_size);
    lahar_buffer_put(&plan->shape, shape->data + plan->shape_end, shape_size);
    lahar_buffer_put(&plan->names, place->name.data, place->name.size);
}

void lahar_document_plan_behind(struct lahar_document_plan *plan,
                                const struct lahar_json_token *token,
                                const struct lahar_buffer *shape)
{
    plan->text_end = end_of(token);
    plan->shape_end = shape->size;
}

bool lahar_document_plan_end(struct lahar_document_plan *plan, const uint8_t *text, size_t size,
                             const struct lahar_buffer *shape, uint32_t version)
{
    plan->tail_size = size - plan->text_end;
    plan->tail_shape_size = shape->size - plan->shape_end;
    plan->is_learnable = plan->is_learnable && plan->slot_count != 0 &&
                         plan->text.size + plan->tail_size <= LAHAR_PLAN_TEXT_SIZE_MAX;
    if (plan->is_learnable) {
        lahar_buffer_put(&plan->text, text + plan->text_end, plan->tail_size);
        lahar_buffer_put(&plan->shape, shape->data + plan->shape_end, plan->tail_shape_size);
    }
    if (plan->has_failed || plan->text.has_failed || plan->shape.has_failed ||
        plan->names.has_failed) {
        return false;
    }
    if (!plan->is_learnable) {
        return true;
    }
    size_t at = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct lahar_document_place *place = &plan->slots[i].place;
        place->name.data = plan->names.data == NULL ? "" : (const char *)plan->names.data + at;
        at += place->name.size;
        place->is_first = true;
        for (size_t j = 0; j < i && place->is_first; j++) {
            place->is_first = plan->slots[j].place.entry != place->entry;
        }
    }
    plan->newline_count = lahar_count_newlines(plan->text.data, plan->text.size);
    plan->version = version;
    return true;
}

/* --- matching ------------------------------------------------------------------------------ */

static inline bool is_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    if (size >= 8 && size <= 16) {
        return lahar_load_u64(a) == lahar_load_u64(b) &&
               lahar_load_u64(a + size - 8) == lahar_load_u64(b + size - 8);
    }
    return memcmp(a, b, size) == 0;
}

/* Behind the string whose opening quote is at start; NULL when it is none, or not in the
 * window. */
static inline const uint8_t *match_string(const struct lahar_marks *marks, const uint8_t *text,
                                          const uint8_t *start, struct lahar_json_token *value)
{
    const uint8_t *end = marks->end;
    const uint8_t *p = start + 1;
    uint8_t flags = 0;
    for (;;) {
        p = lahar_marks_next(marks, p);
        if (p >= end) {
            return NULL;
        }
        if (*p == '"') {
            break;
        }
        const int escape = *p == '\\' ? lahar_json_escape_size(p, end) : 0;
        if (escape <= 0) {
            return NULL;
        }
        flags = LAHAR_JSON_ESCAPED;
        p += escape;
    }
    *value = (struct lahar_json_token){.offset = (uint32_t)(start + 1 - text),
                                       .size = (uint32_t)(p - start - 1),
                                       .kind = LAHAR_JSON_STRING,
                                       .flags = flags};
    return p + 1;
}

/* The same for another scalar. */
static const uint8_t *match_plain(const uint8_t *text, const uint8_t *start, const uint8_t *end,
                                  struct lahar_json_token *value)
{
    static const char *const words[] = {"true", "false", "null"};
    static const uint8_t kinds[] = {LAHAR_JSON_TRUE, LAHAR_JSON_FALSE, LAHAR_JSON_NULL};
    const uint8_t *stop = NULL;
    uint8_t kind = LAHAR_JSON_NUMBER;
    if (*start == '-' || (uint8_t)(*start - '0') <= 9) {
        stop = lahar_json_number_end(start, end);
    } else {
        for (size_t i = 0; i < sizeof kinds && stop == NULL; i++) {
            const size_t size = strlen(words[i]);
            if ((size_t)(end - start) > size && memcmp(start, words[i], size) == 0) {
                kind = kinds[i];
                stop = start + size;
            }
        }
    }
    if (stop == NULL || stop == end) {
        return NULL;
    }
    *value = (struct lahar_json_token){
        .offset = (uint32_t)(start - text), .size = (uint32_t)(stop - start), .kind = kind};
    return stop;
}

size_t lahar_document_plan_match(struct lahar_document_plan *plan, const struct lahar_marks *marks,
                                 const uint8_t *text)
{
    const uint8_t *end = marks->end;
    const uint8_t *p = text;
    const uint8_t *expected = plan->text.data;
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct lahar_plan_slot *slot = &plan->slots[i];
        const size_t size = slot->text_size;
        if ((size_t)(end - p) <= size || !is_equal(p, expected, size)) {
            return 0;
        }
        p += size;
        expected += size;
        p = *p == '"' ? match_string(marks, text, p, &slot->value)
                      : match_plain(text, p, end, &slot->value);
        if (p == NULL) {
            return 0;
        }
    }
    if ((size_t)(end - p) < plan->tail_size || !is_equal(p, expected, plan->tail_size)) {
        return 0;
    }
    return (size_t)(p - text) + plan->tail_size;
}
