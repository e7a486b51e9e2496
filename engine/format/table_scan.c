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

/* p: behind the opening quote. */
static inline struct field_end find_quoted_end(const struct lahar_marks *marks, uint8_t delimiter,
                                               uint8_t quote, const uint8_t *p, bool *has_lf)
{
    const uint8_t *end = marks->end;
    struct field_end found = {0};
    for (;;) {
        p = lahar_marks_next(marks, p);
        if (end - p < 2) {
            return found;
        }
        if (*p != quote) {
            *has_lf = *has_lf || *p == '\n';
            p++;
        } else if (p[1] == quote) {
            found.has_escapes = true;
            p += 2;
        } else {
            break;
        }
    }
    found.text_end = p++;
    if (*p != delimiter && *p == '\r') {
        if (++p == end || *p != '\n') {
            return found;
        }
        found.has_cr = true;
    }
    found.stop = *p == delimiter || *p == '\n' ? p : NULL;
    return found;
}

static inline struct field_end find_plain_end(const struct lahar_marks *marks,
                                              const struct lahar_table_style *style,
                                              const uint8_t *start)
{
    const uint8_t delimiter = style->delimiter;
    const uint8_t *end = marks->end;
    const uint8_t *p = start;
    struct field_end found = {0};
    for (;;) {
        p = lahar_marks_next(marks, p);
        if (p == end) {
            return found;
        }
        if (*p == delimiter || *p == '\n') {
            break;
        }
        if (style->is_tsv) {
            if (end - p < 2) {
                return found;
            }
            found.has_escapes = true;
            p++;
        }
        p++;
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
    const uint8_t *field = data;
    size_t count = 0;
    bool has_lf = false;
    for (;;) {
        const uint8_t c = field < marks->end ? *field : 0;
        const bool is_quoted =
            (c == '"' && style.has_double_quotes) || (c == '\'' && style.has_single_quotes);
        const struct field_end end =
            is_quoted ? find_quoted_end(marks, style.delimiter, c, field + 1, &has_lf)
                      : find_plain_end(marks, &style, field);
        if (end.stop == NULL || count == parser->field_capacity) {
            return false;
        }
        const uint8_t *text = field + is_quoted;
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
