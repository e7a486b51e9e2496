/* Regexp: every line is matched, and what its named groups take fills the fields of those names.
 *
 * The line itself is the message, so that its bytes come back and are searched; where a group is
 * named message, or the stream has no message, the line is kept in _raw_record. */
#include <stdio.h>
#include <string.h>

#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

static bool names_message(const struct lahar_regex *regex)
{
    for (uint32_t group = 1; group <= lahar_regex_group_count(regex); group++) {
        const lahar_bytes name = lahar_regex_group_name(regex, group);
        if (name.size == 7 && memcmp(name.data, "message", 7) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_named_group(const struct lahar_regex *regex)
{
    for (uint32_t group = 1; group <= lahar_regex_group_count(regex); group++) {
        if (lahar_regex_group_name(regex, group).size != 0) {
            return true;
        }
    }
    return false;
}

lahar_status lahar_regexp_rows_init(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_regexp_rows *rows = &reader->of.regexp;
    const char *expression = reader->options.regexp;
    if (expression == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "the format Regexp needs an expression");
    }
    LAHAR_TRY(lahar_regex_compile((lahar_bytes){expression, strlen(expression)}, LAHAR_REGEX_BYTES,
                                  reader->options.allocator, &rows->regex, error));
    if (!has_named_group(rows->regex)) {
        return lahar_fail(error, LAHAR_INVALID,
                          "the expression has no group with a name: (?<name>...)");
    }
    rows->keeps_line = names_message(rows->regex) ||
                       lahar_stream_find_field(reader->fields.stream, LAHAR_FIELD_MESSAGE) == NULL;
    return LAHAR_OK;
}

/* LAHAR_INVALID: the text is not of the field's type. */
static lahar_status put_group(struct lahar_text_reader *reader, lahar_bytes name, lahar_bytes text)
{
    struct lahar_record *record = &reader->record;
    const struct lahar_field_entry *entry =
        lahar_field_map_find(&reader->fields, name.data, name.size);
    if (entry != NULL && entry->is_time) {
        lahar_record_take_time(record, text);
    }
    if (entry == NULL || !entry->is_declared || entry->type == LAHAR_MAP ||
        lahar_record_has(record, entry->field)) {
        return lahar_record_add_pair(record, 0, name, text, false) ? LAHAR_OK : LAHAR_NO_MEMORY;
    }
    switch (lahar_record_put_text(record, entry, text)) {
    case LAHAR_PUT_EXACT:
    case LAHAR_PUT_INEXACT:
        return LAHAR_OK;
    case LAHAR_PUT_REFUSED:
        return LAHAR_INVALID;
    case LAHAR_PUT_NO_MEMORY:
        break;
    }
    return LAHAR_NO_MEMORY;
}

static lahar_status report(struct lahar_text_reader *reader, const struct lahar_line *line,
                           const char *message, lahar_error *error)
{
    return lahar_text_reader_report(reader, reader->line, reader->offset,
                                    (lahar_bytes){line->text, line->size}, message, error);
}

static lahar_status put_groups(struct lahar_text_reader *reader, const struct lahar_line *line,
                               lahar_bytes *refused_out)
{
    const struct lahar_regexp_rows *rows = &reader->of.regexp;
    for (uint32_t group = 1; group <= lahar_regex_group_count(rows->regex); group++) {
        const lahar_bytes name = lahar_regex_group_name(rows->regex, group);
        lahar_bytes text;
        if (name.size == 0 || !lahar_regex_group(&rows->scratch, line->text, group, &text)) {
            continue;
        }
        const lahar_status status = put_group(reader, name, text);
        if (status != LAHAR_OK) {
            *refused_out = name;
            return status;
        }
    }
    return LAHAR_OK;
}

static lahar_status deliver_match(struct lahar_text_reader *reader, const struct lahar_line *line,
                                  lahar_error *error)
{
    struct lahar_framing framing = lahar_line_framing(reader, line);
    const uint32_t line_field =
        reader->of.regexp.keeps_line ? LAHAR_FIELD_RAW_RECORD : LAHAR_FIELD_MESSAGE;
    lahar_bytes refused = {0};
    lahar_record_reset(&reader->record);
    if (!lahar_record_add_bytes(&reader->record, line_field, LAHAR_TEXT,
                                (lahar_bytes){line->text, line->size})) {
        return lahar_text_reader_no_memory(error);
    }
    const lahar_status status = put_groups(reader, line, &refused);
    if (status == LAHAR_INVALID) {
        char message[128];
        (void)snprintf(message, sizeof message, "group \"%.*s\" is not of the type of its field",
                       (int)refused.size, (const char *)refused.data);
        return report(reader, line, message, error);
    }
    if (status != LAHAR_OK) {
        return lahar_text_reader_no_memory(error);
    }
    return lahar_text_reader_deliver(reader, &framing, reader->offset, error);
}

static lahar_status deliver_line(struct lahar_text_reader *reader, const struct lahar_line *line,
                                 lahar_error *error)
{
    struct lahar_regexp_rows *rows = &reader->of.regexp;
    switch (lahar_regex_match(rows->regex, &rows->scratch, line->text, line->size)) {
    case LAHAR_REGEX_MATCH:
        return deliver_match(reader, line, error);
    case LAHAR_REGEX_NO_MATCH:
        return reader->options.skip_unmatched
                   ? LAHAR_OK
                   : report(reader, line, "the line does not match the expression", error);
    case LAHAR_REGEX_TOO_COSTLY:
        return report(reader, line, "matching the line takes too many steps", error);
    case LAHAR_REGEX_NO_MEMORY:
        break;
    }
    return lahar_text_reader_no_memory(error);
}

lahar_status lahar_regexp_rows_consume(struct lahar_text_reader *reader, const uint8_t *data,
                                       size_t size, bool is_last, size_t *consumed_out,
                                       lahar_error *error)
{
    return lahar_lines_each(reader, &reader->of.regexp.lines, deliver_line, data, size, is_last,
                            consumed_out, error);
}
