/* Texts from templates and variables.
 *
 * Nothing is trusted: each gap takes the next slot of its variable's column, which must be there,
 * all slots must be used up, and all texts together cannot be longer than the rows of
 * the block were. */
#include <string.h>

#include "engine/segment/block_reader.h"
#include "engine/segment/text_plan.h"
#include "io/base/bytes.h"
#include "io/base/error.h"

struct join {
    struct lahar_block *block;
    const struct lahar_block_column *texts;
    const struct lahar_block_column *template_column;
    const struct lahar_text_plan *plan;
    uint32_t *next_slots; /* by variable */
    uint8_t *bytes;       /* the texts */
    uint64_t room;        /* bytes that they can have at most */
    uint32_t *ends;
};

static lahar_status fail_texts(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "templates and variables disagree");
}

static lahar_status fail_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to put texts together");
}

/* An entry of a column that is inflated. */
static lahar_bytes entry_of(const struct lahar_block_column *column, uint32_t entry)
{
    if (column->ends == NULL) {
        return (lahar_bytes){column->bytes + (size_t)entry * column->fixed_size,
                             column->fixed_size};
    }
    const uint32_t start = entry == 0 ? 0 : column->ends[entry - 1];
    return (lahar_bytes){column->bytes + start, column->ends[entry] - start};
}

/* Decodes a column and inflates all of its text. */
static lahar_status need_all(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    LAHAR_TRY(lahar_block_decode_column(block, number, NULL, error));
    const struct lahar_block_column *column = &block->columns[number];
    return column->is_text_lazy ? lahar_block_inflate(block, column->text_range, error) : LAHAR_OK;
}

static lahar_status make_plan(struct join *join, lahar_error *error)
{
    struct lahar_block *block = join->block;
    const uint32_t count = join->template_column->entry_count;
    join->next_slots = lahar_arena_allocate(
        &block->arena, (size_t)join->texts->variable_count * sizeof(uint32_t) + 1);
    lahar_bytes *texts = lahar_arena_allocate(&block->arena, count * sizeof texts[0] + 1);
    if (join->next_slots == NULL || texts == NULL) {
        return fail_memory(error);
    }
    memset(join->next_slots, 0, (size_t)join->texts->variable_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = entry_of(join->template_column, i);
    }
    return lahar_text_plan_make(block, join->texts, texts, &join->plan, error);
}

static const struct lahar_block_column *variable_column(const struct join *join, uint32_t variable)
{
    return &join->block->columns[join->texts->templates + 1 + variable];
}

/* Bytes of all slots of a variable. */
static uint64_t measure_variable(const struct lahar_block_column *column)
{
    if (column->ends == NULL) {
        return (uint64_t)column->slot_count * column->fixed_size;
    }
    uint64_t size = 0;
    for (uint32_t slot = 0; slot < column->slot_count; slot++) {
        size += entry_of(column, lahar_block_code(column, slot)).size;
    }
    return size;
}

/* Bytes that all texts have at most: when templates and variables agree, only gaps are counted that
 * have no bytes of their own. */
static uint64_t measure(const struct join *join)
{
    uint64_t size = 0;
    for (uint32_t entry = 0; entry < join->texts->entry_count; entry++) {
        size += join->plan->templates[lahar_block_code(join->template_column, entry)].size;
    }
    for (uint32_t i = 0; i < join->texts->variable_count; i++) {
        size += measure_variable(variable_column(join, i));
    }
    return size;
}

/* Puts one text at to, which has room bytes; its size, or UINT64_MAX when it does not fit or a
 * variable is missing. */
static uint64_t join_text(struct join *join, const struct lahar_text_template *template,
                          uint8_t *to, uint64_t room)
{
    uint64_t size = 0;
    uint32_t gap = template->first_gap;
    const uint8_t *next = template->text;
    const uint8_t *end = next + template->size;
    while (next < end) {
        const uint8_t *found = memchr(next, LAHAR_TEMPLATE_GAP, (size_t)(end - next));
        const size_t literal_size = (size_t)((found == NULL ? end : found) - next);
        if (literal_size > room - size) {
            return UINT64_MAX;
        }
        (void)lahar_copy_short(to + size, next, literal_size);
        size += literal_size;
        next += literal_size;
        if (found == NULL) {
            break;
        }
        next++;
        const uint32_t variable = join->plan->variables[gap++];
        const struct lahar_block_column *column = variable_column(join, variable);
        const uint32_t slot = join->next_slots[variable]++;
        if (slot >= column->slot_count) {
            return UINT64_MAX;
        }
        const lahar_bytes value = entry_of(column, lahar_block_code(column, slot));
        if (value.size == 0 || value.size > room - size) {
            return UINT64_MAX;
        }
        (void)lahar_copy_short(to + size, value.data, value.size);
        size += value.size;
    }
    return size;
}

static lahar_status join_all(struct join *join, struct lahar_block_column *texts,
                             lahar_error *error)
{
    uint64_t at = 0;
    for (uint32_t entry = 0; entry < texts->entry_count; entry++) {
        const uint32_t number = lahar_block_code(join->template_column, entry);
        const uint64_t size =
            join_text(join, &join->plan->templates[number], join->bytes + at, join->room - at);
        if (size == UINT64_MAX) {
            return fail_texts(error);
        }
        at += size;
        join->ends[entry] = (uint32_t)at;
    }
    for (uint32_t i = 0; i < texts->variable_count; i++) {
        if (join->next_slots[i] != variable_column(join, i)->slot_count) {
            return fail_texts(error);
        }
    }
    texts->bytes = join->bytes;
    texts->ends = join->ends;
    return LAHAR_OK;
}

/* Forgets what was decoded of the parts, whose memory goes. */
static void forget_parts(struct lahar_block *block, const struct lahar_block_column *texts)
{
    for (uint32_t i = 0; i <= texts->variable_count; i++) {
        struct lahar_block_column *part = &block->columns[texts->templates + i];
        part->codes = NULL;
        part->bytes = NULL;
        part->ends = NULL;
        part->numbers = NULL;
        part->is_text_lazy = false;
        atomic_store_explicit(&part->is_ready, false, memory_order_relaxed);
    }
}

/* Decodes the parts and joins them; the texts go to kept, an arena of the block. */
static lahar_status join_parts(struct join *join, struct lahar_block_column *texts,
                               struct lahar_arena *kept, lahar_error *error)
{
    for (uint32_t i = 0; i <= texts->variable_count; i++) {
        LAHAR_TRY(need_all(join->block, texts->templates + i, error));
    }
    LAHAR_TRY(make_plan(join, error));
    const uint64_t room = measure(join);
    join->room = room < join->block->header.raw_size ? room : join->block->header.raw_size;
    join->bytes = lahar_arena_allocate(kept, (size_t)join->room + 1);
    join->ends = lahar_arena_allocate(kept, (size_t)texts->entry_count * sizeof(uint32_t));
    if (join->bytes == NULL || join->ends == NULL) {
        return fail_memory(error);
    }
    return join_all(join, texts, error);
}

lahar_status lahar_block_join_texts(struct lahar_block *block, uint32_t number, lahar_error *error)
{
    struct lahar_block_column *texts = &block->columns[number];
    struct join join = {
        .block = block, .texts = texts, .template_column = &block->columns[texts->templates]};
    /* What is decoded of the parts is several times the texts and of no use afterwards. */
    struct lahar_arena kept = block->arena;
    lahar_arena_init(&block->arena, block->allocator, 0);
    const lahar_status status = join_parts(&join, texts, &kept, error);
    forget_parts(block, texts);
    lahar_arena_deinit(&block->arena);
    block->arena = kept;
    return status;
}
