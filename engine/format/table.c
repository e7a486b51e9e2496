/* The tokenizer of CSV and TSV; see table.h. */
#include "engine/format/table.h"

#include <string.h>

#include "engine/format/scan.h"
#include "io/base/error.h"

void lahar_table_parser_init(struct lahar_table_parser *parser, const lahar_allocator *allocator,
                             bool is_tsv)
{
    *parser = (struct lahar_table_parser){.allocator = allocator, .is_tsv = is_tsv};
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
        const uint8_t *quote = at == size ? NULL : memchr(data + at, '"', size - at);
        if (quote == NULL) {
            parser->scanned = size;
            return INPUT_ENDS;
        }
        const size_t close = (size_t)(quote - data);
        size_t next = close + 1;
        if (next < size && data[next] == '"') {
            parser->has_escapes = true;
            at = next + 1;
            continue;
        }
        parser->scanned = close;
        if (next < size && data[next] == ',') {
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
    const uint8_t delimiter = parser->is_tsv ? '\t' : ',';
    const uint8_t escape = parser->is_tsv ? '\\' : delimiter;
    const uint8_t *end = data + size;
    const uint8_t *p = data + parser->scanned;
    for (;;) {
        p = lahar_scan_any(p, end, delimiter, '\n', escape);
        if (p == end || *p != '\\' || !parser->is_tsv) {
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

enum lahar_table_result lahar_table_parse(struct lahar_table_parser *parser, const uint8_t *data,
                                          size_t size, bool is_last)
{
    LAHAR_ASSERT(size <= UINT32_MAX);
    for (;;) {
        if (parser->field_count == parser->field_capacity && !grow_fields(parser)) {
            return LAHAR_TABLE_NO_MEMORY;
        }
        if (!parser->is_tsv && !parser->is_quoted && parser->scanned == parser->position &&
            parser->position < size && data[parser->position] == '"') {
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
                       struct lahar_arena *arena, lahar_bytes *value_out, bool *is_null_out)
{
    const struct lahar_table_field *field = &parser->fields[index];
    const uint8_t *text = data + field->offset;
    *value_out = (lahar_bytes){text, field->size};
    *is_null_out = parser->is_tsv && field->size == 2 && text[0] == '\\' && text[1] == 'N';
    if (!field->has_escapes || *is_null_out) {
        return true;
    }
    uint8_t *value = lahar_arena_allocate(arena, field->size);
    if (value == NULL) {
        return false;
    }
    size_t size = 0;
    for (size_t i = 0; i < field->size; i++) {
        if (parser->is_tsv && text[i] == '\\' && i + 1 < field->size) {
            value[size++] = tsv_escape(text[++i]);
            continue;
        }
        /* Of doubled quotes the second is passed over. */
        i += !parser->is_tsv && text[i] == '"';
        value[size++] = i < field->size ? text[i] : '"';
    }
    *value_out = (lahar_bytes){value, size};
    return true;
}

static void put_tsv(struct lahar_buffer *buffer, lahar_bytes value)
{
    const uint8_t *p = value.data;
    for (size_t i = 0; i < value.size; i++) {
        const uint8_t c = p[i];
        if (c == '\t' || c == '\n' || c == '\r' || c == '\\' || c == 0) {
            lahar_buffer_put_u8(buffer, '\\');
            lahar_buffer_put_u8(buffer, c == '\t'   ? 't'
                                        : c == '\n' ? 'n'
                                        : c == '\r' ? 'r'
                                        : c == 0    ? '0'
                                                    : '\\');
        } else {
            lahar_buffer_put_u8(buffer, c);
        }
    }
}

static void put_csv(struct lahar_buffer *buffer, lahar_bytes value)
{
    const uint8_t *p = value.data;
    const uint8_t *end = value.size == 0 ? p : p + value.size;
    const bool needs_quotes = lahar_scan_any(p, end, ',', '\n', '"') != end ||
                              (value.size != 0 && memchr(p, '\r', value.size) != NULL);
    if (!needs_quotes) {
        lahar_buffer_put(buffer, value.data, value.size);
        return;
    }
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

void lahar_table_put_value(struct lahar_buffer *buffer, bool is_tsv, lahar_bytes value)
{
    if (is_tsv) {
        put_tsv(buffer, value);
    } else {
        put_csv(buffer, value);
    }
}
