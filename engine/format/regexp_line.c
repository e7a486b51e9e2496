/* Regexp: every line is matched, and what its named groups take fills the fields of those names. */
#include <stdio.h>
#include <string.h>

#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

static bool has_named_group(const struct lahar_regex *regex)
{
    for (uint32_t group = 1; group <= lahar_regex_group_count(regex); group++) {
        if (lahar_regex_group_name(regex, group).size != 0) {
            return true;
        }
    }
    return false;
}

lahar_status lahar_regexp_init(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_line_rows *rows = &reader->of.lines;
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
    return LAHAR_OK;
}

static lahar_status put_groups(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    const struct lahar_line_rows *rows = &reader->of.lines;
    const enum lahar_escaping escaping = reader->format.regexp_escaping;
    for (uint32_t group = 1; group <= lahar_regex_group_count(rows->regex); group++) {
        const lahar_bytes name = lahar_regex_group_name(rows->regex, group);
        lahar_bytes text;
        bool is_null;
        if (name.size == 0 || !lahar_regex_group(&rows->scratch, line.data, group, &text)) {
            continue;
        }
        if (!lahar_cell_value(escaping, text, reader->format.tsv_null, &reader->record.arena, &text,
                              &is_null)) {
            return LAHAR_NO_MEMORY;
        }
        LAHAR_TRY(lahar_text_reader_put_or_say(reader, name, text, is_null, message));
    }
    return LAHAR_OK;
}

lahar_status lahar_regexp_map(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    struct lahar_line_rows *rows = &reader->of.lines;
    switch (lahar_regex_match(rows->regex, &rows->scratch, line.data, line.size)) {
    case LAHAR_REGEX_MATCH:
        return put_groups(reader, line, message);
    case LAHAR_REGEX_NO_MATCH:
        (void)snprintf(message, LAHAR_LINE_MESSAGE_SIZE, "the line does not match the expression");
        return reader->options.skip_unmatched ? LAHAR_EXISTS : LAHAR_INVALID;
    case LAHAR_REGEX_TOO_COSTLY:
        (void)snprintf(message, LAHAR_LINE_MESSAGE_SIZE, "matching the line takes too many steps");
        return LAHAR_INVALID;
    default:
        return LAHAR_NO_MEMORY;
    }
}
