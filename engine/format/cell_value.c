/* From the text of a cell to its value, by escaping rule. */
#include <string.h>
#include <strings.h>

#include "engine/format/cells.h"

static bool is_text(lahar_bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

static uint8_t escaped_byte(uint8_t c)
{
    static const char letters[] = "bfnrt0av";
    static const char bytes[] = "\b\f\n\r\t\0\a\v";
    const char *letter = memchr(letters, c, sizeof letters - 1);
    return letter == NULL ? c : (uint8_t)bytes[letter - letters];
}

/* Resolves backslashes and, where quote is not 0, doubled quotes. */
static bool unescape(lahar_bytes text, uint8_t quote, bool has_escapes, struct lahar_arena *arena,
                     lahar_bytes *value_out)
{
    const uint8_t *p = text.data;
    *value_out = text;
    if (text.size == 0 || ((!has_escapes || memchr(p, '\\', text.size) == NULL) &&
                           (quote == 0 || memchr(p, quote, text.size) == NULL))) {
        return true;
    }
    uint8_t *value = lahar_arena_allocate(arena, text.size);
    if (value == NULL) {
        return false;
    }
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (has_escapes && p[i] == '\\' && i + 1 < text.size) {
            value[size++] = escaped_byte(p[++i]);
        } else {
            value[size++] = p[i];
            i += quote != 0 && p[i] == quote && i + 1 < text.size && p[i + 1] == quote;
        }
    }
    *value_out = (lahar_bytes){value, size};
    return true;
}

static bool unescape_xml(lahar_bytes text, struct lahar_arena *arena, lahar_bytes *value_out)
{
    static const struct {
        const char *name;
        char byte;
    } entities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    const char *p = text.data;
    *value_out = text;
    if (text.size == 0 || memchr(p, '&', text.size) == NULL) {
        return true;
    }
    char *value = lahar_arena_allocate(arena, text.size);
    if (value == NULL) {
        return false;
    }
    size_t size = 0;
    for (size_t i = 0; i < text.size;) {
        size_t taken = 0;
        for (size_t k = 0; k < sizeof entities / sizeof entities[0] && p[i] == '&'; k++) {
            const size_t name_size = strlen(entities[k].name);
            if (text.size - i >= name_size && memcmp(p + i, entities[k].name, name_size) == 0) {
                value[size++] = entities[k].byte;
                taken = name_size;
                break;
            }
        }
        if (taken == 0) {
            value[size++] = p[i];
            taken = 1;
        }
        i += taken;
    }
    *value_out = (lahar_bytes){value, size};
    return true;
}

static lahar_bytes without_quotes(lahar_bytes text)
{
    return (lahar_bytes){(const uint8_t *)text.data + 1, text.size - 2};
}

static bool json_value(lahar_bytes text, struct lahar_arena *arena, lahar_bytes *value_out,
                       bool *is_null_out)
{
    const uint8_t *p = text.data;
    *value_out = text;
    if (is_text(text, "null")) {
        *is_null_out = true;
        return true;
    }
    if (text.size < 2 || p[0] != '"') {
        return true;
    }
    const lahar_bytes inside = without_quotes(text);
    *value_out = inside;
    if (inside.size == 0 || memchr(inside.data, '\\', inside.size) == NULL) {
        return true;
    }
    bool is_lossy;
    uint8_t *value = lahar_arena_allocate(arena, inside.size);
    if (value == NULL) {
        return false;
    }
    value_out->data = value;
    value_out->size = lahar_json_unescape(inside.data, inside.size, value, &is_lossy);
    return true;
}

static lahar_bytes trim(lahar_bytes text)
{
    const uint8_t *p = text.data;
    size_t size = text.size;
    while (size != 0 && lahar_json_is_space(p[size - 1])) {
        size--;
    }
    while (size != 0 && lahar_json_is_space(*p)) {
        p++;
        size--;
    }
    return (lahar_bytes){p, size};
}

bool lahar_cell_value(enum lahar_escaping escaping, lahar_bytes text, lahar_bytes null_text,
                      struct lahar_arena *arena, lahar_bytes *value_out, bool *is_null_out)
{
    const uint8_t *p = text.data;
    const uint8_t first = text.size == 0 ? 0 : *p;
    *is_null_out = false;
    *value_out = text;
    switch (escaping) {
    case LAHAR_ESCAPING_JSON:
        return json_value(trim(text), arena, value_out, is_null_out);
    case LAHAR_ESCAPING_QUOTED:
        if (first == '\'' && text.size >= 2) {
            return unescape(without_quotes(text), '\'', true, arena, value_out);
        }
        *value_out = trim(text);
        *is_null_out = is_text(*value_out, "NULL");
        return true;
    case LAHAR_ESCAPING_CSV:
        if (first == '"' && text.size >= 2) {
            return unescape(without_quotes(text), '"', false, arena, value_out);
        }
        break;
    case LAHAR_ESCAPING_XML:
        return unescape_xml(text, arena, value_out);
    case LAHAR_ESCAPING_RAW:
    case LAHAR_ESCAPING_NONE:
        return true;
    default:
        break;
    }
    if (text.size == null_text.size &&
        (text.size == 0 || memcmp(p, null_text.data, text.size) == 0)) {
        *is_null_out = true;
        return true;
    }
    return unescape(text, 0, escaping == LAHAR_ESCAPING_ESCAPED, arena, value_out);
}
