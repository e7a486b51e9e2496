/* The tokenizer of CSV and TSV; see table.h. */
#include "engine/format/table.h"

#include <string.h>

#include "engine/format/scan.h"
#include "io/base/error.h"

struct lahar_table_style lahar_table_style_of(bool is_tsv)
{
    return (struct lahar_table_style){
        .delimiter = is_tsv ? '\t' : ',', .is_tsv = is_tsv, .has_double_quotes = !is_tsv};
}

void lahar_table_parser_init(struct lahar_table_parser *parser, const lahar_allocator *allocator,
                             const struct lahar_table_style *style)
{
    *parser = (struct lahar_table_parser){.allocator = allocator, .style = *style};
}

void lahar_table_parser_deinit(struct lahar_table_parser *parser)
{
    lahar_release(parser->allocator, parser->fields);
    parser->fields = NULL;
    parser->field_capacity = 0;
}

void lahar_table_parser_reset(struct lahar_table_parser *parser)
{
    parser->field_count = 0;
    parser->failure = NULL;
    parser->position = 0;
    parser->scanned = 0;
    parser->is_quoted = false;
    parser->has_escapes = false;
}

static bool grow_fields(struct lahar_table_parser *parser)
{
    const size_t capacity = parser->field_capacity == 0 ? 64 : parser->field_capacity * 2;
    struct lahar_table_field *fields =
        lahar_reallocate(parser->allocator, parser->fields, capacity * sizeof *fields);
    if (fields == NULL) {
        return false;
    }
    parser->fields = fields;
    parser->field_capacity = capacity;
    return true;
}

static enum lahar_table_result fail(struct lahar_table_parser *parser, const char *failure)
{
    parser->failure = failure;
    return LAHAR_TABLE_BAD;
}

/* Ends the field; text_end is behind its text, next behind its delimiter. */
static void end_field(struct lahar_table_parser *parser, size_t text_end, size_t next)
{
    const size_t start = parser->position + parser->is_quoted;
    parser->fields[parser->field_count++] = (struct lahar_table_field){
        .offset = (uint32_t)start,
        .size = (uint32_t)(text_end - start),
        .quote = parser->is_quoted ? parser->quote : 0,
        .is_quoted = parser->is_quoted,
        .has_escapes = parser->has_escapes,
    };
    parser->position = next;
    parser->scanned = next;
    parser->is_quoted = false;
    parser->has_escapes = false;
}

/* How the text of a field is followed. */
enum field_end {
    FIELD_ENDS,
    RECORD_ENDS,
    INPUT_ENDS,
    FIELD_IS_BAD
};

/* From inside the quotes to behind the delimiter. A closing quote is the first that
 * is not doubled, so the byte behind it must be there. */
static enum field_end take_quoted(struct lahar_table_parser *parser, const uint8_t *data,
                                  size_t size, bool is_last)
{
    size_t at = parser->scanned;
    for (;;) {
        const uint8_t *quote = at == size ? NULL : memchr(data + at, parser->quote, size - at);
        if (quote == NULL) {
            parser->scanned = size;
            return INPUT_ENDS;
        }
        const size_t close = (size_t)(quote - data);
        size_t next = close + 1;
        if (next < size && data[next] == parser->quote) {
            parser->has_escapes = true;
            at = next + 1;
            continue;
        }
        parser->scanned = close;
        if (next < size && data[next] == parser->style.delimiter) {
            end_field(parser, close, next + 1);
            return FIELD_ENDS;
        }
        const bool has_cr = next < size && data[next] == '\r';
        next += has_cr;
        if (next == size) {
            if (!is_last) {
                return INPUT_ENDS;
            }
            if (has_cr) {
                return FIELD_IS_BAD;
            }
        } else if (data[next] != '\n') {
            return FIELD_IS_BAD;
        }
        parser->has_cr = has_cr;
        parser->has_lf = next < size;
        end_field(parser, close, next + parser->has_lf);
        return RECORD_ENDS;
    }
}

static enum field_end take_plain(struct lahar_table_parser *parser, const uint8_t *data,
                                 size_t size, bool is_last)
{
    const uint8_t delimiter = parser->style.delimiter;
    const uint8_t escape = parser->style.is_tsv ? '\\' : delimiter;
    const uint8_t *end = data + size;
    const uint8_t *p = data + parser->scanned;
    for (;;) {
        p = lahar_scan_any(p, end, delimiter, '\n', escape);
        if (p == end || *p != '\\' || !parser->style.is_tsv) {
            break;
        }
        if (end - p < 2) {
            if (is_last) {
                p = end;
            }
            break;
        }
        parser->has_escapes = true;
        p += 2;
    }
    size_t at = (size_t)(p - data);
    if (at < size && *p == delimiter) {
        end_field(parser, at, at + 1);
        return FIELD_ENDS;
    }
    if (at == size || *p == '\\') {
        parser->scanned = at;
        if (!is_last) {
            return INPUT_ENDS;
        }
        parser->has_cr = false;
        parser->has_lf = false;
        end_field(parser, at, at);
        return RECORD_ENDS;
    }
    parser->has_lf = true;
    parser->has_cr = at > parser->position && data[at - 1] == '\r';
    end_field(parser, at - parser->has_cr, at + 1);
    return RECORD_ENDS;
}

static bool is_quote(const struct lahar_table_parser *parser, uint8_t c)
{
    return (c == '"' && parser->style.has_double_quotes) ||
           (c == '\'' && parser->style.has_single_quotes);
}

enum lahar_table_result lahar_table_parse(struct lahar_table_parser *parser, const uint8_t *data,
                                          size_t size, bool is_last)
{
    LAHAR_ASSERT(size <= UINT32_MAX);
    for (;;) {
        if (parser->field_count == parser->field_capacity && !grow_fields(parser)) {
            return LAHAR_TABLE_NO_MEMORY;
        }
        if (!parser->style.is_tsv && !parser->is_quoted && parser->scanned == parser->position &&
            parser->position < size && is_quote(parser, data[parser->position])) {
            parser->quote = data[parser->position];
            parser->is_quoted = true;
            parser->scanned = parser->position + 1;
        }
        const enum field_end result = parser->is_quoted ? take_quoted(parser, data, size, is_last)
                                                        : take_plain(parser, data, size, is_last);
        switch (result) {
        case FIELD_ENDS:
            break;
        case RECORD_ENDS:
            return LAHAR_TABLE_DONE;
        case INPUT_ENDS:
            return is_last ? fail(parser, "a quoted field is not closed") : LAHAR_TABLE_MORE;
        case FIELD_IS_BAD:
            return fail(parser, "text behind the closing quote of a field");
        }
    }
}

static uint8_t tsv_escape(uint8_t c)
{
    static const char letters[] = "bfnrt0av";
    static const char bytes[] = "\b\f\n\r\t\0\a\v";
    const char *letter = memchr(letters, c, sizeof letters - 1);
    return letter == NULL ? c : (uint8_t)bytes[letter - letters];
}

bool lahar_table_value(const struct lahar_table_parser *parser, const uint8_t *data, size_t index,
                       struct lahar_arena *arena, lahar_bytes *value_out)
{
    const struct lahar_table_field *field = &parser->fields[index];
    const uint8_t *text = data + field->offset;
    *value_out = (lahar_bytes){text, field->size};
    if (!field->has_escapes) {
        return true;
    }
    uint8_t *value = lahar_arena_allocate(arena, field->size);
    if (value == NULL) {
        return false;
    }
    size_t size = 0;
    for (size_t i = 0; i < field->size; i++) {
        if (parser->style.is_tsv && text[i] == '\\' && i + 1 < field->size) {
            value[size++] = tsv_escape(text[++i]);
            continue;
        }
        /* Of doubled quotes the second is passed over. */
        i += !parser->style.is_tsv && text[i] == field->quote;
        value[size++] = i < field->size ? text[i] : field->quote;
    }
    *value_out = (lahar_bytes){value, size};
    return true;
}

static void put_tsv(struct lahar_buffer *buffer, uint8_t delimiter, lahar_bytes value)
{
    static const char bytes[] = "\t\n\r\\\0";
    static const char letters[] = "tnr\\0";
    const uint8_t *p = value.data;
    for (size_t i = 0; i < value.size; i++) {
        const char *escaped = memchr(bytes, p[i], sizeof bytes - 1);
        if (escaped != NULL) {
            lahar_buffer_put_u8(buffer, '\\');
            lahar_buffer_put_u8(buffer, (uint8_t)letters[escaped - bytes]);
            continue;
        }
        if (p[i] == delimiter) {
            lahar_buffer_put_u8(buffer, '\\');
        }
        lahar_buffer_put_u8(buffer, p[i]);
    }
}

/* Whether a field of CSV has to stand in quotes to be read as its value, and not as null. */
static bool needs_quotes(const struct lahar_table_style *style, lahar_bytes value)
{
    const uint8_t *p = value.data;
    if (value.size == 0) {
        return false;
    }
    const uint8_t *end = p + value.size;
    return lahar_scan_any(p, end, style->delimiter, '\n', '"') != end ||
           memchr(p, '\r', value.size) != NULL || (style->has_single_quotes && *p == '\'') ||
           (value.size == 2 && memcmp(p, "\\N", 2) == 0);
}

static void put_csv(struct lahar_buffer *buffer, const struct lahar_table_style *style,
                    lahar_bytes value)
{
    if (!needs_quotes(style, value)) {
        lahar_buffer_put(buffer, value.data, value.size);
        return;
    }
    const uint8_t *p = value.data;
    const uint8_t *end = p + value.size;
    lahar_buffer_put_u8(buffer, '"');
    while (p < end) {
        const uint8_t *quote = memchr(p, '"', (size_t)(end - p));
        const uint8_t *stop = quote == NULL ? end : quote + 1;
        lahar_buffer_put(buffer, p, (size_t)(stop - p));
        if (quote != NULL) {
            lahar_buffer_put_u8(buffer, '"');
        }
        p = stop;
    }
    lahar_buffer_put_u8(buffer, '"');
}

void lahar_table_put_value(struct lahar_buffer *buffer, const struct lahar_table_style *style,
                           lahar_bytes value)
{
    if (style->is_tsv) {
        put_tsv(buffer, style->delimiter, value);
    } else {
        put_csv(buffer, style, value);
    }
}
