/* Texts that their block has split into templates and variables: the tokens of each template and of
 * each value of a variable are looked up once, and a text has those of its parts.
 *
 * That is so since a variable takes all letters, digits and '_' around its digits: no token
 * reaches from one part into another. Escape sequences, which hold letters of no token, could be
 * cut in two; blocks that have them are indexed text by text. */
#include <string.h>

#include "engine/rollover/index_feed.h"
#include "io/base/error.h"

#define ESCAPE 0x1b

/* The numbers that the builder gave to entries: of the templates, then of each variable. */
struct text_values {
    uint32_t *values;
    uint32_t *starts; /* by variable: where its values begin */
    uint32_t *next;   /* by variable: its next slot */
};

bool lahar_index_can_add_split(const struct lahar_element *element)
{
    const struct lahar_column *texts = &element->column;
    return element->is_split && texts->entry_count == texts->slot_count && texts->is_in_order &&
           memchr(texts->data.data, ESCAPE, texts->data.size) == NULL;
}

static lahar_status look_up(struct lahar_index_feed *feed, uint32_t field,
                            const struct lahar_column *column, uint32_t *values, lahar_error *error)
{
    const struct lahar_shard_entries entries = lahar_index_entries(column);
    return lahar_shard_builder_values(feed->builder, field, &entries, values, error);
}

static lahar_status look_up_all(struct lahar_index_feed *feed, uint32_t field,
                                const struct lahar_text_split *split, struct text_values *values,
                                lahar_error *error)
{
    const uint32_t count = split->variable_count;
    uint64_t entry_count = split->templates.entry_count;
    for (uint32_t i = 0; i < count; i++) {
        entry_count += split->variables[i]->column.entry_count;
    }
    /* A block's texts have fewer parts than bytes. */
    values->values =
        lahar_index_reserve_values(&feed->values, (uint32_t)entry_count + 2 * count + 1);
    if (values->values == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index texts");
    }
    values->starts = values->values + entry_count;
    values->next = values->starts + count;
    memset(values->next, 0, count * sizeof values->next[0]);
    LAHAR_TRY(look_up(feed, field, &split->templates, values->values, error));
    uint32_t start = split->templates.entry_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct lahar_column *column = &split->variables[i]->column;
        values->starts[i] = start;
        LAHAR_TRY(look_up(feed, field, column, values->values + start, error));
        start += column->entry_count;
    }
    return LAHAR_OK;
}

/* Lists the parts of all texts: row and value of each. */
static uint32_t list_parts(const struct lahar_column *texts, const struct lahar_text_split *split,
                           struct text_values *values, uint32_t *rows, uint32_t *parts)
{
    const uint32_t *text_rows = lahar_column_rows(texts);
    const uint32_t *templates = lahar_column_codes(&split->templates);
    const uint32_t *starts = (const uint32_t *)(const void *)split->starts.data;
    const uint32_t *gaps = (const uint32_t *)(const void *)split->gaps.data;
    const uint32_t gap_count = (uint32_t)(split->gaps.size / sizeof gaps[0]);
    uint32_t count = 0;
    for (uint32_t text = 0; text < texts->entry_count; text++) {
        const uint32_t number = templates[text];
        const uint32_t end =
            number + 1 < split->templates.entry_count ? starts[number + 1] : gap_count;
        rows[count] = text_rows[text];
        parts[count++] = values->values[number];
        for (uint32_t gap = starts[number]; gap < end; gap++) {
            const uint32_t variable = gaps[gap];
            const uint32_t *codes = lahar_column_codes(&split->variables[variable]->column);
            const uint32_t code = codes[values->next[variable]++];
            rows[count] = text_rows[text];
            parts[count++] = values->values[values->starts[variable] + code];
        }
    }
    return count;
}

lahar_status lahar_index_add_split(struct lahar_index_feed *feed, uint32_t field,
                                   const struct lahar_element *element, lahar_error *error)
{
    const struct lahar_column *texts = &element->column;
    const struct lahar_text_split *split = element->split;
    struct text_values values = {0};
    LAHAR_TRY(look_up_all(feed, field, split, &values, error));
    uint64_t part_count = texts->entry_count;
    for (uint32_t i = 0; i < split->variable_count; i++) {
        part_count += split->variables[i]->column.slot_count;
    }
    uint32_t *rows = lahar_index_reserve_values(&feed->numbers, (uint32_t)part_count * 3);
    if (rows == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to index texts");
    }
    uint32_t *parts = rows + part_count;
    uint32_t *codes = parts + part_count;
    for (uint32_t i = 0; i < part_count; i++) {
        codes[i] = i;
    }
    const struct lahar_shard_column column = {.first_document = feed->first_document,
                                              .slot_count =
                                                  list_parts(texts, split, &values, rows, parts),
                                              .rows = rows,
                                              .codes = codes};
    return lahar_shard_builder_post_column(feed->builder, field, &column, parts, false, error);
}
