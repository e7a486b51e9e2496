/* One text from its template and variables, without those of other rows.
 *
 * Which slots of the variables belong to a text follows from the templates of all texts before it:
 * they are counted, and each gap of a template takes as many slots as there are texts of that
 * template. Only the groups are inflated that the template's variables lie in. */
#include <string.h>

#include "engine/segment/column_point.h"
#include "engine/segment/text_plan.h"
#include "io/base/bytes.h"
#include "io/base/error.h"

enum {
    /* Texts of a block that are read singly before all are put together: one in so many, and
     * these. A single one costs about a fiftieth of all. */
    SINGLE_DIVISOR = 64,
    SINGLE_MIN = 8
};

static lahar_status fail_texts(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "templates and variables disagree");
}

static lahar_status fail_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to put a text together");
}

/* --- the plan ------------------------------------------------------------------------- */

lahar_status lahar_text_plan_make(struct lahar_block *block, const struct lahar_block_column *texts,
                                  const lahar_bytes *template_texts,
                                  const struct lahar_text_plan **plan_out, lahar_error *error)
{
    const uint32_t count = block->columns[texts->templates].entry_count;
    const struct lahar_byte_range range = texts->entries_range;
    struct lahar_text_plan *plan = lahar_arena_allocate(&block->arena, sizeof *plan);
    struct lahar_text_template *templates =
        lahar_arena_allocate(&block->arena, count * sizeof templates[0] + 1);
    /* A gap takes a byte of the section at least. */
    uint32_t *variables =
        lahar_arena_allocate(&block->arena, (size_t)range.size * sizeof(uint32_t) + 1);
    if (plan == NULL || templates == NULL || variables == NULL) {
        return fail_memory(error);
    }
    struct lahar_reader reader = lahar_reader_of(block->image + range.offset, range.size);
    uint32_t gap_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *bytes = template_texts[i].data;
        templates[i] =
            (struct lahar_text_template){bytes, (uint32_t)template_texts[i].size, gap_count};
        for (size_t at = 0; at < template_texts[i].size; at++) {
            if (bytes[at] != LAHAR_TEMPLATE_GAP) {
                continue;
            }
            const uint64_t variable = lahar_read_varint(&reader);
            if (reader.failed || variable >= texts->variable_count) {
                return fail_texts(error);
            }
            variables[gap_count++] = (uint32_t)variable;
        }
    }
    if (lahar_reader_left(&reader) != 0) {
        return fail_texts(error);
    }
    *plan = (struct lahar_text_plan){templates, count, variables, gap_count};
    *plan_out = plan;
    return LAHAR_OK;
}

uint64_t lahar_text_plan_charge(const struct lahar_block *block,
                                const struct lahar_block_column *texts)
{
    const uint64_t count = block->columns[texts->templates].entry_count;
    return sizeof(struct lahar_text_plan) + count * sizeof(struct lahar_text_template) +
           (uint64_t)texts->entries_range.size * sizeof(uint32_t);
}

/* With the mutex held. The templates stay in the image; scratch holds no more than this call. */
static lahar_status make_plan(struct lahar_block *block, const struct lahar_block_column *texts,
                              struct lahar_arena *scratch, const struct lahar_text_plan **plan_out,
                              lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[texts->templates];
    lahar_bytes *found =
        lahar_arena_allocate(scratch, (size_t)column->entry_count * sizeof found[0] + 1);
    if (found == NULL) {
        return fail_memory(error);
    }
    LAHAR_TRY(lahar_block_inflate(block, texts->entries_range, error));
    LAHAR_TRY(lahar_block_inflate(block, column->entries_range, error));
    LAHAR_TRY(lahar_block_inflate(block, column->text_range, error));
    struct lahar_reader reader =
        lahar_reader_of(block->image + column->entries_range.offset, column->entries_range.size);
    const uint8_t *text = block->image + column->text_range.offset;
    const bool is_same = lahar_read_u8(&reader) == 1;
    uint64_t size = is_same ? lahar_read_varint(&reader) : 0;
    uint64_t start = 0;
    for (uint32_t i = 0; i < column->entry_count; i++) {
        size = is_same ? size : lahar_read_varint(&reader);
        if (size > column->text_range.size - start) {
            return fail_texts(error);
        }
        found[i] = (lahar_bytes){text + start, (size_t)size};
        start += size;
    }
    if (reader.failed || lahar_reader_left(&reader) != 0 || start != column->text_range.size) {
        return fail_texts(error);
    }
    return lahar_text_plan_make(block, texts, found, plan_out, error);
}

static lahar_status need_plan(struct lahar_block *block, struct lahar_block_column *texts,
                              struct lahar_arena *scratch, const struct lahar_text_plan **plan_out,
                              lahar_error *error)
{
    /* Pairs with the release below: the plan is seen as it was made. */
    *plan_out = atomic_load_explicit(&texts->plan, memory_order_acquire);
    if (*plan_out != NULL) {
        return LAHAR_OK;
    }
    lahar_status status = LAHAR_OK;
    pthread_mutex_lock(&block->mutex);
    *plan_out = atomic_load_explicit(&texts->plan, memory_order_relaxed);
    if (*plan_out == NULL && texts->is_damaged) {
        status = fail_texts(error);
    } else if (*plan_out == NULL) {
        status = make_plan(block, texts, scratch, plan_out, error);
        if (status == LAHAR_OK) {
            atomic_store_explicit(&texts->plan, *plan_out, memory_order_release);
        }
        /* A plan that fails again and again would fill the arena. */
        texts->is_damaged = status == LAHAR_CORRUPT;
    }
    pthread_mutex_unlock(&block->mutex);
    return status;
}

/* --- one text --------------------------------------------------------------------------- */

/* How many of the first entries have each template. */
static lahar_status count_templates(struct lahar_block *block, uint32_t number, uint32_t entry,
                                    uint32_t *counts, lahar_error *error)
{
    const struct lahar_block_column *column = &block->columns[number];
    const uint32_t width = lahar_code_width(column->codes_encoding);
    memset(counts, 0, (size_t)column->entry_count * sizeof counts[0]);
    if (width == 0) {
        counts[0] = entry;
        for (uint32_t i = 0; i < entry && column->codes_encoding == LAHAR_CODES_IDENTITY; i++) {
            counts[i] = 1;
        }
        return LAHAR_OK;
    }
    const uint8_t *planes = block->image + column->codes_range.offset;
    for (uint32_t i = 0; i < entry; i++) {
        const uint32_t code = lahar_code_load(planes, column->slot_count, width, i);
        if (code >= column->entry_count) {
            return fail_texts(error);
        }
        counts[code]++;
    }
    return LAHAR_OK;
}

/* What stands in the gaps of a text's template. */
static lahar_status find_values(struct lahar_block *block, const struct lahar_block_column *texts,
                                const struct lahar_text_plan *plan, uint32_t entry,
                                uint32_t template, struct lahar_arena *arena, lahar_bytes *values,
                                lahar_error *error)
{
    uint32_t *counts =
        lahar_arena_allocate(arena, (size_t)plan->template_count * sizeof counts[0] + 1);
    uint64_t *slots =
        lahar_arena_allocate(arena, (size_t)texts->variable_count * sizeof slots[0] + 1);
    if (counts == NULL || slots == NULL) {
        return fail_memory(error);
    }
    LAHAR_TRY(count_templates(block, texts->templates, entry, counts, error));
    memset(slots, 0, (size_t)texts->variable_count * sizeof slots[0]);
    const uint32_t first = plan->templates[template].first_gap;
    uint32_t end = plan->gap_count;
    for (uint32_t t = 0; t < plan->template_count; t++) {
        const bool is_last = t + 1 == plan->template_count;
        const uint32_t gap_end = is_last ? plan->gap_count : plan->templates[t + 1].first_gap;
        end = t == template ? gap_end : end;
        for (uint32_t gap = plan->templates[t].first_gap; gap < gap_end && counts[t] != 0; gap++) {
            slots[plan->variables[gap]] += counts[t];
        }
    }
    for (uint32_t gap = first; gap < end; gap++) {
        const uint32_t number = texts->templates + 1 + plan->variables[gap];
        const uint64_t slot = slots[plan->variables[gap]]++;
        uint32_t value = 0;
        if (slot >= block->columns[number].slot_count) {
            return fail_texts(error);
        }
        LAHAR_TRY(lahar_block_code_at(block, number, (uint32_t)slot, &value, error));
        LAHAR_TRY(lahar_block_entry_at(block, number, value, arena, &values[gap - first], error));
        if (values[gap - first].size == 0) {
            return fail_texts(error);
        }
    }
    return LAHAR_OK;
}

/* The template with the values in its gaps. */
static lahar_status fill_template(const struct lahar_block *block,
                                  const struct lahar_text_template *template,
                                  const lahar_bytes *values, struct lahar_arena *arena,
                                  lahar_bytes *text_out, lahar_error *error)
{
    const uint8_t *text = template->text;
    uint64_t size = template->size;
    size_t gap = 0;
    for (uint32_t i = 0; i < template->size; i++) {
        if (text[i] == LAHAR_TEMPLATE_GAP) {
            size += values[gap++].size - 1;
        }
    }
    if (size > block->header.raw_size) {
        return fail_texts(error);
    }
    uint8_t *to = lahar_arena_allocate(arena, (size_t)size + 1);
    if (to == NULL) {
        return fail_memory(error);
    }
    *text_out = (lahar_bytes){to, (size_t)size};
    gap = 0;
    for (uint32_t i = 0; i < template->size; i++) {
        if (text[i] == LAHAR_TEMPLATE_GAP) {
            memcpy(to, values[gap].data, values[gap].size);
            to += values[gap++].size;
        } else {
            *to++ = text[i];
        }
    }
    return LAHAR_OK;
}

static lahar_status read_text(struct lahar_block *block, struct lahar_block_column *texts,
                              uint32_t entry, struct lahar_arena *arena, lahar_bytes *text_out,
                              lahar_error *error)
{
    const struct lahar_text_plan *plan = NULL;
    uint32_t template = 0;
    LAHAR_TRY(need_plan(block, texts, arena, &plan, error));
    LAHAR_TRY(lahar_block_code_at(block, texts->templates, entry, &template, error));
    lahar_bytes *values =
        lahar_arena_allocate(arena, (size_t)plan->templates[template].size * sizeof values[0] + 1);
    if (values == NULL) {
        return fail_memory(error);
    }
    LAHAR_TRY(find_values(block, texts, plan, entry, template, arena, values, error));
    return fill_template(block, &plan->templates[template], values, arena, text_out, error);
}

lahar_status lahar_block_text_at(struct lahar_block *block, uint32_t column, const uint32_t *rows,
                                 uint32_t slot, struct lahar_arena *arena, lahar_bytes *text_out,
                                 bool *is_read_out, lahar_error *error)
{
    struct lahar_block_column *texts = &block->columns[column];
    *is_read_out = false;
    if (block->columns[texts->templates].entries_encoding != LAHAR_ENTRIES_RAW ||
        atomic_load_explicit(&texts->is_ready, memory_order_relaxed) ||
        atomic_fetch_add_explicit(&texts->single_reads, 1, memory_order_relaxed) >=
            SINGLE_MIN + texts->entry_count / SINGLE_DIVISOR) {
        return LAHAR_OK;
    }
    uint32_t entry = 0;
    *is_read_out = true;
    LAHAR_TRY(lahar_block_slot_entry(block, column, rows, slot, arena, &entry, error));
    return read_text(block, texts, entry, arena, text_out, error);
}
