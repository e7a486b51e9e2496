/* Lines of pairs: logfmt, and TSKV of ClickHouse. */
#include <stdio.h>
#include <string.h>

#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_key(lahar_bytes key, const char *word)
{
    return key.size == strlen(word) && memcmp(key.data, word, key.size) == 0;
}

/* --- TSKV ------------------------------------------------------------------------------ */

/* tskv, key=value, ... between tabs; a key or value may hold escapes. */
lahar_status lahar_tskv_map(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    const char *p = line.data;
    const char *end = p + line.size;
    for (bool is_first = true; p < end; is_first = false) {
        const char *at = p;
        const char *equals = NULL;
        while (at < end && *at != '\t') {
            equals = equals == NULL && *at == '=' ? at : equals;
            at += *at == '\\' && at + 1 < end ? 2 : 1;
        }
        const lahar_bytes item = {p, (size_t)(at - p)};
        p = at < end ? at + 1 : end;
        if (item.size == 0 || (is_first && equals == NULL && is_key(item, "tskv"))) {
            continue;
        }
        lahar_bytes key = {item.data,
                           equals == NULL ? item.size : (size_t)(equals - (const char *)item.data)};
        if (equals == NULL || key.size == 0) {
            (void)snprintf(message, LAHAR_LINE_MESSAGE_SIZE, "expected key=value at byte %zu",
                           (size_t)((const char *)item.data - (const char *)line.data));
            return LAHAR_INVALID;
        }
        lahar_bytes value = {equals + 1, item.size - key.size - 1};
        struct lahar_arena *arena = &reader->record.arena;
        bool is_null;
        if (!lahar_cell_value(LAHAR_ESCAPING_ESCAPED, key, (lahar_bytes){"", 0}, arena, &key,
                              &is_null) ||
            !lahar_cell_value(LAHAR_ESCAPING_ESCAPED, value, reader->format.tsv_null, arena, &value,
                              &is_null)) {
            return LAHAR_NO_MEMORY;
        }
        LAHAR_TRY(lahar_text_reader_put_or_say(reader, key, value, is_null, message));
    }
    return LAHAR_OK;
}

/* --- logfmt ------------------------------------------------------------------------------ */

/* The value of a key in quotes: *at is at the quote and moves behind its partner, or to the end. */
static bool take_quoted(struct lahar_text_reader *reader, const char **at, const char *end,
                        lahar_bytes *value_out)
{
    const char *start = *at + 1;
    const char *p = start;
    bool has_escapes = false;
    while (p < end && *p != '"') {
        has_escapes |= *p == '\\';
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    }
    *value_out = (lahar_bytes){start, (size_t)(p - start)};
    *at = p < end ? p + 1 : end;
    if (!has_escapes) {
        return true;
    }
    bool is_null;
    return lahar_cell_value(LAHAR_ESCAPING_ESCAPED, *value_out, (lahar_bytes){"", 0},
                            &reader->record.arena, value_out, &is_null);
}

static bool names_time(lahar_bytes key)
{
    return is_key(key, "time") || is_key(key, "ts") || is_key(key, "timestamp") || is_key(key, "t");
}

/* Every line is one: a word without '=' is a key that is true, a quote that is not closed ends
 * with the line. */
lahar_status lahar_logfmt_map(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    const char *p = line.data;
    const char *end = p + line.size;
    while (p < end) {
        if (is_space(*p)) {
            p++;
            continue;
        }
        const char *start = p;
        while (p < end && *p != '=' && !is_space(*p)) {
            p++;
        }
        const lahar_bytes key = {start, (size_t)(p - start)};
        lahar_bytes value = {"true", 4};
        if (p < end && *p == '=') {
            p++;
            const char *value_start = p;
            if (p < end && *p == '"') {
                if (!take_quoted(reader, &p, end, &value)) {
                    return LAHAR_NO_MEMORY;
                }
            } else {
                while (p < end && !is_space(*p)) {
                    p++;
                }
                value = (lahar_bytes){value_start, (size_t)(p - value_start)};
            }
        }
        if (key.size == 0) {
            continue;
        }
        if (reader->options.time_field == NULL && names_time(key)) {
            lahar_record_take_time(&reader->record, value);
        }
        LAHAR_TRY(lahar_text_reader_put_or_say(reader, key, value, false, message));
    }
    return LAHAR_OK;
}
