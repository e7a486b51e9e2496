/* Parsing records of cells; see cells.h. */
#include "engine/format/cells.h"

#include <string.h>

enum take {
    TAKEN,
    TAKE_MORE,
    TAKE_BAD,
    TAKE_NO_MEMORY
};

/* A record being parsed. */
struct walk {
    const struct lahar_cell_grammar *grammar;
    struct lahar_json_parser *json;
    struct lahar_cell_list *list;
    const uint8_t *data;
    size_t size;
    size_t at;
    size_t row_end; /* CUSTOM: the next end of a row from where it was last looked for */
    bool has_row_end;
    bool is_last;
};

static enum take fail(struct walk *walk, const char *failure)
{
    walk->list->failure = failure;
    walk->list->failure_at = walk->at;
    return TAKE_BAD;
}

/* The input ends where more is needed. */
static enum take need_more(struct walk *walk)
{
    return walk->is_last ? fail(walk, "the record is cut off") : TAKE_MORE;
}

static enum take take_literal(struct walk *walk, lahar_bytes literal, const char *failure)
{
    const size_t left = walk->size - walk->at;
    const size_t compared = left < literal.size ? left : literal.size;
    if (compared != 0 && memcmp(walk->data + walk->at, literal.data, compared) != 0) {
        return fail(walk, failure);
    }
    if (compared < literal.size) {
        return need_more(walk);
    }
    walk->at += literal.size;
    return TAKEN;
}

static void skip_space(struct walk *walk)
{
    while (walk->at < walk->size && lahar_json_is_space(walk->data[walk->at])) {
        walk->at++;
    }
}

static enum take add_cell(struct walk *walk, size_t start, size_t end, size_t column,
                          enum lahar_escaping escaping)
{
    struct lahar_cell_list *list = walk->list;
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 32 : list->capacity * 2;
        struct lahar_cell *cells =
            lahar_reallocate(list->allocator, list->cells, capacity * sizeof *cells);
        if (cells == NULL) {
            return TAKE_NO_MEMORY;
        }
        list->cells = cells;
        list->capacity = capacity;
    }
    list->cells[list->count++] =
        (struct lahar_cell){(uint32_t)start, (uint32_t)(end - start), (uint32_t)column, escaping};
    return TAKEN;
}

/* --- extents ------------------------------------------------------------------------- */

/* Up to the next end, which is not consumed; with escapes a backslash takes the byte behind
 * it along. An end of no bytes is the input's. */
static enum take take_until(struct walk *walk, lahar_bytes end, bool has_escapes)
{
    const uint8_t *p = end.data;
    size_t at = walk->at;
    while (at < walk->size) {
        const uint8_t c = walk->data[at];
        if (has_escapes && c == '\\') {
            at += 2;
            continue;
        }
        if (end.size != 0 && c == p[0]) {
            const size_t left = walk->size - at;
            const size_t compared = left < end.size ? left : end.size;
            if (memcmp(walk->data + at, p, compared) == 0) {
                if (compared < end.size && !walk->is_last) {
                    return TAKE_MORE;
                }
                if (compared == end.size) {
                    walk->at = at;
                    return TAKEN;
                }
            }
        }
        at++;
    }
    if (!walk->is_last) {
        return TAKE_MORE;
    }
    walk->at = walk->size;
    return TAKEN;
}

/* From a quote to behind its partner. With escapes a backslash takes the byte behind it along;
 * a doubled quote is one in the text. */
static enum take take_quoted(struct walk *walk, uint8_t quote, bool has_escapes)
{
    size_t at = walk->at + 1;
    while (at < walk->size) {
        const uint8_t c = walk->data[at];
        if (has_escapes && c == '\\') {
            at += 2;
        } else if (c != quote) {
            at++;
        } else if (at + 1 == walk->size && !walk->is_last) {
            return TAKE_MORE;
        } else if (at + 1 < walk->size && walk->data[at + 1] == quote) {
            at += 2;
        } else {
            walk->at = at + 1;
            return TAKEN;
        }
    }
    return walk->is_last ? fail(walk, "a quoted value is not closed") : TAKE_MORE;
}

/* A value of SQL that is not a string: up to a comma or the end of the row outside of brackets. */
static enum take take_bare(struct walk *walk)
{
    size_t depth = 0;
    while (walk->at < walk->size) {
        const uint8_t c = walk->data[walk->at];
        if (c == '\'') {
            const enum take taken = take_quoted(walk, '\'', true);
            if (taken != TAKEN) {
                return taken;
            }
            continue;
        }
        if (depth == 0 && (c == ',' || c == ')' || c == '\n')) {
            return TAKEN;
        }
        depth += c == '(' || c == '[' || c == '{';
        depth -= depth != 0 && (c == ')' || c == ']' || c == '}');
        walk->at++;
    }
    return walk->is_last ? TAKEN : TAKE_MORE;
}

static enum take take_json(struct walk *walk)
{
    lahar_json_parser_reset(walk->json);
    switch (
        lahar_json_parse(walk->json, walk->data + walk->at, walk->size - walk->at, walk->is_last)) {
    case LAHAR_JSON_DONE:
        walk->at += walk->json->position;
        return TAKEN;
    case LAHAR_JSON_MORE:
        return TAKE_MORE;
    case LAHAR_JSON_NO_MEMORY:
        return TAKE_NO_MEMORY;
    default:
        walk->at += walk->json->position;
        return fail(walk, walk->json->failure);
    }
}

/* One cell, which end follows; end is not consumed. */
static enum take take_cell(struct walk *walk, size_t column, enum lahar_escaping escaping,
                           lahar_bytes end)
{
    const size_t start = walk->at;
    const uint8_t first = start < walk->size ? walk->data[start] : 0;
    enum take taken;
    if (start == walk->size && !walk->is_last) {
        return TAKE_MORE;
    }
    switch (escaping) {
    case LAHAR_ESCAPING_QUOTED:
        taken = first == '\'' ? take_quoted(walk, '\'', true) : take_until(walk, end, false);
        break;
    case LAHAR_ESCAPING_CSV:
        taken = first == '"' ? take_quoted(walk, '"', false) : take_until(walk, end, false);
        break;
    case LAHAR_ESCAPING_JSON:
        taken = take_json(walk);
        break;
    default:
        taken = take_until(walk, end, escaping == LAHAR_ESCAPING_ESCAPED);
        break;
    }
    return taken == TAKEN ? add_cell(walk, start, walk->at, column, escaping) : taken;
}

/* --- records --------------------------------------------------------------------------- */

/* Behind a value: a comma, or what closes the record. */
static enum take take_separator(struct walk *walk, uint8_t closing, const char *failure,
                                bool *closed_out)
{
    skip_space(walk);
    if (walk->at == walk->size) {
        return need_more(walk);
    }
    const uint8_t c = walk->data[walk->at];
    if (c != ',' && c != closing) {
        return fail(walk, failure);
    }
    walk->at++;
    *closed_out = c == closing;
    return TAKEN;
}

static enum take take_sql_value(struct walk *walk, size_t column)
{
    const size_t start = walk->at;
    const enum take taken =
        walk->data[start] == '\'' ? take_quoted(walk, '\'', true) : take_bare(walk);
    return taken == TAKEN ? add_cell(walk, start, walk->at, column, LAHAR_ESCAPING_QUOTED) : taken;
}

/* ( value, value ), or [ value, value ], which may be empty. */
static enum take take_list(struct walk *walk, bool is_array)
{
    bool is_closed = false;
    walk->at++;
    for (size_t column = 0; !is_closed; column++) {
        skip_space(walk);
        if (walk->at == walk->size) {
            return need_more(walk);
        }
        if (is_array && column == 0 && walk->data[walk->at] == ']') {
            walk->at++;
            return TAKEN;
        }
        enum take taken = is_array ? take_cell(walk, column, LAHAR_ESCAPING_JSON, (lahar_bytes){0})
                                   : take_sql_value(walk, column);
        if (taken == TAKEN) {
            taken = is_array ? take_separator(walk, ']', "expected ',' or ']'", &is_closed)
                             : take_separator(walk, ')', "expected ',' or ')'", &is_closed);
        }
        if (taken != TAKEN) {
            return taken;
        }
    }
    return TAKEN;
}

/* Whether literal stands at the place; MORE when the input ends in it. */
static enum take is_at(const struct walk *walk, lahar_bytes literal)
{
    const size_t left = walk->size - walk->at;
    const size_t compared = left < literal.size ? left : literal.size;
    if (literal.size == 0 ||
        (compared != 0 && memcmp(walk->data + walk->at, literal.data, compared) != 0)) {
        return TAKE_BAD;
    }
    if (compared < literal.size) {
        return walk->is_last ? TAKE_BAD : TAKE_MORE;
    }
    return TAKEN;
}

/* Of text without quotes the delimiter and the end of the row may both come first. */
static enum take take_custom_cell(struct walk *walk, size_t column)
{
    const struct lahar_cell_grammar *grammar = walk->grammar;
    const enum lahar_escaping escaping = grammar->escaping;
    const size_t start = walk->at;
    const bool is_bare =
        escaping != LAHAR_ESCAPING_JSON &&
        !(start < walk->size && ((escaping == LAHAR_ESCAPING_CSV && walk->data[start] == '"') ||
                                 (escaping == LAHAR_ESCAPING_QUOTED && walk->data[start] == '\'')));
    if (!is_bare) {
        return take_cell(walk, column, escaping, grammar->field_delimiter);
    }
    if (!walk->has_row_end || walk->row_end < start) {
        const enum take taken =
            take_until(walk, grammar->row_after, escaping == LAHAR_ESCAPING_ESCAPED);
        if (taken != TAKEN) {
            return taken;
        }
        walk->row_end = walk->at;
        walk->has_row_end = true;
    }
    struct walk cell = *walk;
    cell.size = walk->row_end;
    cell.at = start;
    cell.is_last = true;
    (void)take_until(&cell, grammar->field_delimiter, escaping == LAHAR_ESCAPING_ESCAPED);
    walk->at = cell.at;
    return add_cell(walk, start, walk->at, column, escaping);
}

static enum take take_custom(struct walk *walk)
{
    const struct lahar_cell_grammar *grammar = walk->grammar;
    enum take taken = take_literal(walk, grammar->row_before, "expected the start of a row");
    for (size_t column = 0; taken == TAKEN; column++) {
        taken = take_custom_cell(walk, column);
        if (taken != TAKEN) {
            break;
        }
        taken = is_at(walk, grammar->row_after);
        if (taken == TAKEN) {
            walk->at += grammar->row_after.size;
            return TAKEN;
        }
        if (taken == TAKE_MORE) {
            break;
        }
        if (walk->at == walk->size && walk->is_last) {
            /* The last row may lack its end. */
            return TAKEN;
        }
        taken = take_literal(walk, grammar->field_delimiter, "expected a delimiter");
    }
    return taken;
}

static enum take take_template(struct walk *walk)
{
    const struct lahar_cell_grammar *grammar = walk->grammar;
    for (size_t i = 0; i < grammar->part_count; i++) {
        enum take taken =
            take_literal(walk, grammar->parts[i].before, "the text between two columns differs");
        if (taken != TAKEN) {
            return taken;
        }
        const bool is_last_part = i + 1 == grammar->part_count;
        lahar_bytes end = is_last_part ? grammar->row_after : grammar->parts[i + 1].before;
        end = end.size == 0 && is_last_part ? grammar->row_between : end;
        taken = take_cell(walk, i, grammar->parts[i].escaping, end);
        if (taken != TAKEN) {
            return taken;
        }
    }
    return take_literal(walk, grammar->row_after, "the text behind the last column differs");
}

enum lahar_cells_result lahar_cells_parse(const struct lahar_cell_grammar *grammar,
                                          struct lahar_json_parser *json,
                                          struct lahar_cell_list *list, const uint8_t *data,
                                          size_t size, bool is_last)
{
    struct walk walk = {.grammar = grammar,
                        .json = json,
                        .list = list,
                        .data = data,
                        .size = size,
                        .is_last = is_last};
    enum take taken;
    list->count = 0;
    switch (grammar->format) {
    case LAHAR_FORMAT_VALUES:
        taken = take_list(&walk, false);
        break;
    case LAHAR_FORMAT_JSON_COMPACT:
        taken = take_list(&walk, true);
        break;
    case LAHAR_FORMAT_CUSTOM:
        taken = take_custom(&walk);
        break;
    default:
        taken = take_template(&walk);
        break;
    }
    list->size = walk.at;
    switch (taken) {
    case TAKEN:
        return LAHAR_CELLS_WHOLE;
    case TAKE_MORE:
        return LAHAR_CELLS_MORE;
    case TAKE_BAD:
        return LAHAR_CELLS_BAD;
    default:
        return LAHAR_CELLS_NO_MEMORY;
    }
}
