/* The tokenizer of CSV and TSV over marks, for a record that lies whole in the input; see table.h.
 * It takes what the resumable one takes, and leaves to it whatever else comes: what is cut off or
 * bad, and records above a window. */
#include "engine/format/table.h"

#include "io/base/error.h"

struct lahar_mark_set lahar_table_marks(const struct lahar_table_style *style)
{
    const uint8_t delimiter = style->delimiter;
    if (style->is_tsv) {
        return (struct lahar_mark_set){{delimiter, '\n', '\\', '\\'}, 0};
    }
    return (struct lahar_mark_set){{delimiter, '\n', style->has_double_quotes ? '"' : '\n',
                                    style->has_single_quotes ? '\'' : '\n'},
                                   0};
}

/* Where a field ends: its text at text_end, and its delimiter or LF at stop. NULL as stop: not in
 * the window, or badly. */
struct field_end {
    const uint8_t *text_end;
    const uint8_t *stop;
    bool has_escapes;
    bool has_cr; /* between text and LF */
};

/* The opening quote has been taken. */
static inline struct field_end find_quoted_end(struct lahar_mark_cursor *cursor, uint8_t delimiter,
                                               uint8_t quote, bool *has_lf)
{
    struct field_end found = {0};
    const uint8_t *p = lahar_mark_take(cursor);
    const uint8_t *next = NULL; /* behind a quote that may be the closing one */
    for (; p != NULL; p = lahar_mark_take(cursor)) {
        if (*p != quote) {
            *has_lf = *has_lf || *p == '\n';
            continue;
        }
        next = lahar_mark_take(cursor);
        if (next != p + 1 || *next != quote) {
            break;
        }
        found.has_escapes = true;
    }
    if (p == NULL || next == NULL) {
        return found;
    }
    found.text_end = p;
    found.has_cr = next == p + 2 && p[1] == '\r' && p[1] != delimiter && *next == '\n';
    found.stop =
        next == p + 1 + found.has_cr && (*next == delimiter || *next == '\n') ? next : NULL;
    return found;
}

static inline struct field_end find_plain_end(struct lahar_mark_cursor *cursor,
                                              const struct lahar_table_style *style,
                                              const uint8_t *start)
{
    const uint8_t delimiter = style->delimiter;
    struct field_end found = {0};
    const uint8_t *p = lahar_mark_take(cursor);
    while (p != NULL && *p != delimiter && *p != '\n') {
        const uint8_t *next = lahar_mark_take(cursor);
        if (style->is_tsv) {
            /* A backslash; what it escapes is no mark. */
            found.has_escapes = true;
            next = next == p + 1 ? lahar_mark_take(cursor) : next;
        }
        p = next;
    }
    if (p == NULL) {
        return found;
    }
    found.stop = p;
    found.has_cr = *p != delimiter && p > start && p[-1] == '\r';
    found.text_end = p - found.has_cr;
    return found;
}

/* The record at data, within the window. */
static bool scan_record(struct lahar_table_parser *parser, const struct lahar_marks *marks,
                        const uint8_t *data)
{
    const struct lahar_table_style style = parser->style;
    struct lahar_mark_cursor cursor = lahar_marks_from(marks, data);
    const uint8_t *field = data;
    size_t count = 0;
    bool has_lf = false;
    for (;;) {
        const uint8_t c = field < marks->end ? *field : 0;
        const bool is_quoted =
            (c == '"' && style.has_double_quotes) || (c == '\'' && style.has_single_quotes);
        const uint8_t *text = is_quoted ? lahar_mark_take(&cursor) + 1 : field;
        const struct field_end end = is_quoted
                                         ? find_quoted_end(&cursor, style.delimiter, c, &has_lf)
                                         : find_plain_end(&cursor, &style, field);
        if (end.stop == NULL || count == parser->field_capacity) {
            return false;
        }
        parser->fields[count++] = (struct lahar_table_field){
            .offset = (uint32_t)(text - data),
            .size = (uint32_t)(end.text_end - text),
            .quote = is_quoted ? c : 0,
            .is_quoted = is_quoted,
            .has_escapes = end.has_escapes,
        };
        field = end.stop + 1;
        if (*end.stop != style.delimiter || end.has_cr) {
            parser->field_count = count;
            parser->position = (size_t)(field - data);
            parser->has_cr = end.has_cr;
            parser->has_lf = true;
            parser->has_inner_lf = has_lf;
            return true;
        }
    }
}

bool lahar_table_scan(struct lahar_table_parser *parser, struct lahar_marks *marks,
                      const uint8_t *data, const uint8_t *end)
{
    LAHAR_ASSERT(data < end);
    lahar_marks_cover(marks, data, end);
    if (scan_record(parser, marks, data)) {
        return true;
    }
    if (marks->start == data || marks->end == end) {
        return false;
    }
    lahar_marks_look(marks, data, end);
    return scan_record(parser, marks, data);
}
