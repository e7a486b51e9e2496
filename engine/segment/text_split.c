#include "engine/segment/text_split.h"

#include <string.h>

#include "engine/segment/column_fill.h"
#include "engine/segment/text_runs.h"

enum {
    TEXT_COUNT_MIN = 32,      /* fewer are not worth the columns */
    VARIABLE_COUNT_MAX = 128, /* columns of a block */
    GAP_COUNT_MAX = 64,       /* of a text; what follows stays in the template */
    FILL_COUNT = 128,         /* texts between filling the columns of variables */
    EARLY_COUNT = 256,        /* texts after which a hopeless column is given up */
    PAUSE_BLOCK_COUNT = 15,   /* blocks before it is tried again */
    TEMPLATE_SHARE = 4,       /* templates take at most one part in so many */
    PLACE_SIZE = 8            /* bytes before a gap that tell its place */
};

struct span {
    uint32_t literal_start; /* end of the variable before */
    uint32_t start;
    uint32_t size;
};

void lahar_text_split_init(struct lahar_text_split *split, bool is_of_keywords,
                           const lahar_allocator *allocator)
{
    *split = (struct lahar_text_split){.is_of_keywords = is_of_keywords, .allocator = allocator};
    lahar_column_init(&split->templates, LAHAR_COLUMN_BYTES, allocator);
    lahar_buffer_init(&split->starts, allocator);
    lahar_buffer_init(&split->gaps, allocator);
    lahar_buffer_init(&split->text, allocator);
    lahar_buffer_init(&split->spans, allocator);
    lahar_buffer_init(&split->bits, allocator);
    lahar_buffer_init(&split->scratch, allocator);
}

static void release_variables(struct lahar_text_split *split)
{
    for (uint32_t i = 0; i < split->variable_count; i++) {
        lahar_column_deinit(&split->variables[i]->column);
        lahar_release(split->allocator, split->variables[i]);
    }
    split->variable_count = 0;
}

void lahar_text_split_deinit(struct lahar_text_split *split)
{
    release_variables(split);
    lahar_release(split->allocator, split->variables);
    split->variables = NULL;
    lahar_column_deinit(&split->templates);
    lahar_buffer_deinit(&split->starts);
    lahar_buffer_deinit(&split->gaps);
    lahar_buffer_deinit(&split->text);
    lahar_buffer_deinit(&split->spans);
    lahar_buffer_deinit(&split->bits);
    lahar_buffer_deinit(&split->scratch);
}

void lahar_text_split_clear(struct lahar_text_split *split)
{
    lahar_column_clear(&split->templates);
    if (split->variable_count == VARIABLE_COUNT_MAX) {
        release_variables(split);
    }
    for (uint32_t i = 0; i < split->variable_count; i++) {
        lahar_column_clear(&split->variables[i]->column);
    }
    lahar_buffer_clear(&split->starts);
    lahar_buffer_clear(&split->gaps);
    memset(split->recent, 0, sizeof split->recent);
}

/* The gap's number and the bytes before it, as far as the gap before. */
static uint64_t place_key(const uint8_t *text, const struct span *span, uint32_t number)
{
    const uint32_t literal_size = span->start - span->literal_start;
    uint64_t key = number;
    for (uint32_t i = literal_size > PLACE_SIZE ? span->start - PLACE_SIZE : span->literal_start;
         i < span->start; i++) {
        key = (key ^ text[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return key;
}

/* Copies bytes that have slack behind them to a place that has. */
static inline uint8_t *copy_literal(uint8_t *to, const uint8_t *from, uint32_t size)
{
    memcpy(to, from, LAHAR_CELL_SLACK);
    for (uint32_t at = LAHAR_CELL_SLACK; at < size; at += LAHAR_CELL_SLACK) {
        memcpy(to + at, from + at, LAHAR_CELL_SLACK);
    }
    return to + size;
}

/* Writes the template of a text and the spans of its variables; returns their number. The
 * buffers have room. */
static uint32_t split_text(struct lahar_text_split *split, const uint8_t *text, uint32_t size)
{
    const struct lahar_text_runs runs = {.digits = (uint64_t *)(void *)split->bits.data,
                                         .runs = (uint64_t *)(void *)split->bits.data +
                                                 lahar_text_runs_words(size)};
    struct span *spans = (struct span *)(void *)split->spans.data;
    uint8_t *to = split->text.data;
    uint32_t count = 0;
    uint32_t literal_start = 0;
    if (split->is_of_keywords) {
        lahar_text_runs_find_numbers(&runs, text, size);
    } else {
        lahar_text_runs_find(&runs, text, size);
    }
    while (count < GAP_COUNT_MAX) {
        const uint32_t digit = lahar_bits_next(runs.digits, size, literal_start);
        if (digit == size) {
            break;
        }
        const uint32_t start = lahar_bits_start(runs.runs, literal_start, digit);
        const uint32_t end = lahar_bits_next_clear(runs.runs, digit);
        to = copy_literal(to, text + literal_start, start - literal_start);
        *to++ = LAHAR_TEMPLATE_GAP;
        spans[count++] = (struct span){literal_start, start, end - start};
        literal_start = end;
    }
    to = copy_literal(to, text + literal_start, size - literal_start);
    split->text.size = (size_t)(to - split->text.data);
    return count;
}

/* The variable of a place; one that is there already when there are too many. */
static bool find_variable(struct lahar_text_split *split, uint64_t key, uint32_t *number_out)
{
    for (uint32_t i = 0; i < split->variable_count; i++) {
        if (split->variables[i]->key == key) {
            *number_out = i;
            return true;
        }
    }
    if (split->variable_count == VARIABLE_COUNT_MAX) {
        *number_out = (uint32_t)(key % VARIABLE_COUNT_MAX);
        return true;
    }
    if (split->variable_count == split->variable_capacity) {
        const uint32_t capacity = split->variable_capacity == 0 ? 16 : split->variable_capacity * 2;
        struct lahar_text_variable **grown =
            lahar_reallocate(split->allocator, split->variables, capacity * sizeof grown[0]);
        if (grown == NULL) {
            return false;
        }
        split->variables = grown;
        split->variable_capacity = capacity;
    }
    struct lahar_text_variable *variable =
        lahar_allocate_zeroed(split->allocator, 1, sizeof *variable);
    if (variable == NULL) {
        return false;
    }
    lahar_column_init(&variable->column, LAHAR_COLUMN_BYTES, split->allocator);
    variable->key = key;
    *number_out = split->variable_count;
    split->variables[split->variable_count++] = variable;
    return true;
}

/* Gives the gaps of a new template their variables. */
static bool add_template(struct lahar_text_split *split, const uint8_t *text, uint32_t gap_count)
{
    const struct span *spans = (const struct span *)(const void *)split->spans.data;
    lahar_buffer_put_u32(&split->starts, (uint32_t)(split->gaps.size / sizeof(uint32_t)));
    for (uint32_t i = 0; i < gap_count; i++) {
        uint32_t number = 0;
        if (!find_variable(split, place_key(text, &spans[i], i), &number)) {
            return false;
        }
        lahar_buffer_put_u32(&split->gaps, number);
    }
    return !split->starts.has_failed && !split->gaps.has_failed;
}

/* Where a template of this size is remembered: its first and last bytes tell most apart. It has
 * slack behind it. */
static inline uint32_t recent_place(const uint8_t *text, size_t size)
{
    const uint32_t last = size < sizeof last ? 0 : lahar_load_u32(text + size - sizeof last);
    const uint32_t mixed = lahar_load_u32(text) * UINT32_C(0x9e3779b1) ^
                           (last + (uint32_t)size) * UINT32_C(0x85ebca77);
    return mixed >> 26;
}

/* Adds the template at hand, which most often is one of those met lately. */
static bool put_template(struct lahar_text_split *split, uint32_t entry)
{
    const uint8_t *text = split->text.data;
    const size_t size = split->text.size;
    uint32_t *recent = &split->recent[recent_place(text, size)];
    if (*recent != 0 && lahar_column_entry_equals(&split->templates, *recent - 1, text, size)) {
        return lahar_column_add_code(&split->templates, entry, *recent - 1);
    }
    if (!lahar_column_add_bytes(&split->templates, entry, text, size)) {
        return false;
    }
    *recent = split->templates.last_code + 1;
    return true;
}

static bool add_text(struct lahar_text_split *split, uint32_t entry, const uint8_t *text,
                     uint32_t size)
{
    const uint32_t known = split->templates.entry_count;
    const uint32_t count = split_text(split, text, size);
    if (!put_template(split, entry)) {
        return false;
    }
    if (split->templates.entry_count != known && !add_template(split, text, count)) {
        return false;
    }
    if (count == 0) {
        return true;
    }
    const uint32_t *gaps =
        (const uint32_t *)(const void *)split->gaps.data +
        ((const uint32_t *)(const void *)split->starts.data)[split->templates.last_code];
    const struct span *spans = (const struct span *)(const void *)split->spans.data;
    for (uint32_t i = 0; i < count; i++) {
        if (!lahar_column_put_cell(&split->variables[gaps[i]]->column, entry, text + spans[i].start,
                                   spans[i].size)) {
            return false;
        }
    }
    return true;
}

/* Whether the codes of a column cost more than its repeats save. size: bytes that an entry
 * takes when it is stored as a number, roughly. */
static bool is_dictionary_dear(const struct lahar_column *column)
{
    const uint64_t size = column->size_max <= 2 ? 1 : (column->size_max + 1) / 2;
    const uint64_t code_size = column->entry_count <= 256 ? 1 : 2;
    return column->entry_count < column->slot_count &&
           code_size * column->slot_count + size * column->entry_count > size * column->slot_count;
}

/* Makes every slot an entry of its own. */
static bool unfold(struct lahar_column *column)
{
    struct lahar_buffer data;
    struct lahar_buffer ends;
    lahar_buffer_init(&data, column->allocator);
    lahar_buffer_init(&ends, column->allocator);
    uint32_t *codes = (uint32_t *)(void *)column->codes.data;
    const uint32_t *old_ends = lahar_column_ends(column);
    for (uint32_t slot = 0; slot < column->slot_count; slot++) {
        const uint32_t start = codes[slot] == 0 ? 0 : old_ends[codes[slot] - 1];
        lahar_buffer_put(&data, column->data.data + start, old_ends[codes[slot]] - start);
        lahar_buffer_put_u32(&ends, (uint32_t)data.size);
    }
    if (data.has_failed || ends.has_failed) {
        lahar_buffer_deinit(&data);
        lahar_buffer_deinit(&ends);
        return false;
    }
    for (uint32_t slot = 0; slot < column->slot_count; slot++) {
        codes[slot] = slot;
    }
    lahar_buffer_deinit(&column->data);
    lahar_buffer_deinit(&column->ends);
    column->data = data;
    column->ends = ends;
    column->entry_count = column->slot_count;
    return true;
}

/* Takes what the variables have waiting, once there is much of it; texts: taken so far. */
static bool fill_variables(struct lahar_text_split *split, uint32_t text_count)
{
    for (uint32_t i = 0; i < split->variable_count; i++) {
        if (!lahar_column_fill(&split->variables[i]->column, text_count, &split->scratch)) {
            return false;
        }
    }
    return true;
}

/* Whether templates are so few and short that the split pays. */
static bool is_worth_it(const struct lahar_text_split *split, const struct lahar_column *texts)
{
    return split->templates.entry_count <= texts->entry_count / TEMPLATE_SHARE &&
           split->templates.data.size <= texts->data.size / TEMPLATE_SHARE;
}

static bool finish_variables(struct lahar_text_split *split)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < split->variable_count; i++) {
        struct lahar_text_variable *variable = split->variables[i];
        if (variable->column.slot_count == 0) {
            continue;
        }
        variable->written = written++;
        if (is_dictionary_dear(&variable->column) && !unfold(&variable->column)) {
            return false;
        }
    }
    return true;
}

static bool reserve_scratch(struct lahar_text_split *split, const struct lahar_column *texts)
{
    /* A gap takes a byte in place of one at least. */
    lahar_buffer_clear(&split->text);
    lahar_buffer_clear(&split->spans);
    lahar_buffer_clear(&split->bits);
    return lahar_buffer_reserve(&split->text, (size_t)texts->size_max + 1 + LAHAR_CELL_SLACK) &&
           lahar_buffer_reserve(&split->bits,
                                2 * lahar_text_runs_words(texts->size_max) * sizeof(uint64_t)) &&
           lahar_buffer_reserve(&split->spans, GAP_COUNT_MAX * sizeof(struct span));
}

bool lahar_text_split_run(struct lahar_text_split *split, struct lahar_column *texts,
                          bool *is_split_out)
{
    *is_split_out = false;
    if (split->pause_blocks > 0) {
        split->pause_blocks--;
        return true;
    }
    if (texts->entry_count < TEXT_COUNT_MIN || texts->data.size < LAHAR_TEXT_SPLIT_SIZE_MIN ||
        memchr(texts->data.data, LAHAR_TEMPLATE_GAP, texts->data.size) != NULL) {
        return true;
    }
    if (!reserve_scratch(split, texts) || !lahar_buffer_reserve(&texts->data, LAHAR_CELL_SLACK)) {
        return false;
    }
    const uint32_t *ends = lahar_column_ends(texts);
    uint32_t start = 0;
    bool is_hopeless = false;
    for (uint32_t entry = 0; entry < texts->entry_count && !is_hopeless; entry++) {
        if (!add_text(split, entry, texts->data.data + start, ends[entry] - start)) {
            return false;
        }
        start = ends[entry];
        if (entry % FILL_COUNT == FILL_COUNT - 1 && !fill_variables(split, entry + 1)) {
            return false;
        }
        is_hopeless = entry + 1 == EARLY_COUNT && split->templates.entry_count > EARLY_COUNT / 2;
    }
    if (!fill_variables(split, texts->entry_count)) {
        return false;
    }
    if (is_hopeless || !is_worth_it(split, texts)) {
        split->pause_blocks = PAUSE_BLOCK_COUNT;
        lahar_text_split_clear(split);
        return true;
    }
    *is_split_out = true;
    return finish_variables(split);
}

void lahar_text_split_put_gaps(const struct lahar_text_split *split, struct lahar_buffer *out)
{
    const uint32_t *gaps = (const uint32_t *)(const void *)split->gaps.data;
    const size_t count = split->gaps.size / sizeof gaps[0];
    for (size_t i = 0; i < count; i++) {
        lahar_buffer_put_varint(out, split->variables[gaps[i]]->written);
    }
}
