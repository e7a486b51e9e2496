/* The tokenizer; see json.h. Each step of the loop consumes white space and one
 * token. A token that the input cuts off is begun again at the next call, except
 * that the search for the end of a string goes on where it stopped. */
#include "engine/format/json.h"

#include <string.h>

#include "engine/format/scan.h"
#include "io/base/error.h"

/* What may come next. */
enum {
    EXPECT_VALUE,
    EXPECT_FIRST_ELEMENT, /* a value or ']' */
    EXPECT_FIRST_KEY,     /* a key or '}' */
    EXPECT_KEY,
    EXPECT_COLON,
    EXPECT_COMMA_OR_BRACE,
    EXPECT_COMMA_OR_BRACKET,
    EXPECT_NOTHING
};

void lahar_json_parser_init(struct lahar_json_parser *parser, const lahar_allocator *allocator)
{
    memset(parser, 0, sizeof *parser);
    parser->allocator = allocator;
}

void lahar_json_parser_deinit(struct lahar_json_parser *parser)
{
    lahar_release(parser->allocator, parser->tokens);
    parser->tokens = NULL;
    parser->token_capacity = 0;
}

void lahar_json_parser_reset(struct lahar_json_parser *parser)
{
    parser->token_count = 0;
    parser->position = 0;
    parser->failure = NULL;
    parser->string_scan = 0;
    parser->depth = 0;
    parser->state = EXPECT_VALUE;
    parser->string_flags = 0;
}

static bool grow_tokens(struct lahar_json_parser *parser)
{
    const size_t capacity = parser->token_capacity == 0 ? 256 : parser->token_capacity * 2;
    struct lahar_json_token *tokens =
        lahar_reallocate(parser->allocator, parser->tokens, capacity * sizeof *tokens);
    if (tokens == NULL) {
        return false;
    }
    parser->tokens = tokens;
    parser->token_capacity = capacity;
    return true;
}

/* The caller has made room. */
static inline void put_token(struct lahar_json_parser *parser, enum lahar_json_kind kind,
                             size_t offset, size_t size, uint8_t flags)
{
    const size_t index = parser->token_count++;
    parser->tokens[index] = (struct lahar_json_token){
        .offset = (uint32_t)offset,
        .size = (uint32_t)size,
        .end = (uint32_t)index + 1,
        .kind = (uint8_t)kind,
        .flags = flags,
    };
}

static enum lahar_json_result fail(struct lahar_json_parser *parser, size_t position,
                                   const char *failure)
{
    parser->position = position;
    parser->failure = failure;
    return LAHAR_JSON_BAD;
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

int lahar_json_escape_size(const uint8_t *p, const uint8_t *end)
{
    if (end - p < 2) {
        return -1;
    }
    if (p[1] != 'u') {
        return memchr("\"\\/bfnrt", p[1], 8) == NULL ? 0 : 2;
    }
    for (int i = 2; i < 6; i++) {
        if (p + i >= end) {
            return -1;
        }
        if (!is_hex(p[i])) {
            return 0;
        }
    }
    return 6;
}

/* The string whose opening quote is at start, as a token of the given kind. */
static enum lahar_json_result take_string(struct lahar_json_parser *parser,
                                          enum lahar_json_kind kind, const uint8_t *data,
                                          size_t size, size_t start)
{
    const uint8_t *end = data + size;
    const uint8_t *p = data + (parser->string_scan == 0 ? start + 1 : parser->string_scan);
    for (;;) {
        p = lahar_scan_json_string(p, end);
        if (p == end) {
            break;
        }
        if (*p == '"') {
            put_token(parser, kind, start + 1, (size_t)(p - data) - start - 1,
                      parser->string_flags);
            parser->string_scan = 0;
            parser->string_flags = 0;
            parser->position = (size_t)(p - data) + 1;
            return LAHAR_JSON_DONE;
        }
        if (*p != '\\') {
            return fail(parser, (size_t)(p - data), "control character inside a string");
        }
        const int escape = lahar_json_escape_size(p, end);
        if (escape == 0) {
            return fail(parser, (size_t)(p - data), "unknown escape inside a string");
        }
        if (escape < 0) {
            break;
        }
        parser->string_flags = LAHAR_JSON_ESCAPED;
        p += escape;
    }
    parser->position = start;
    parser->string_scan = (size_t)(p - data);
    return LAHAR_JSON_MORE;
}

static const uint8_t *skip_digits(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (uint8_t)(*p - '0') <= 9) {
        p++;
    }
    return p;
}

const uint8_t *lahar_json_number_end(const uint8_t *start, const uint8_t *end)
{
    const uint8_t *p = start + (*start == '-');
    const uint8_t *digits = p;
    p = skip_digits(p, end);
    if (p == digits) {
        return p == end ? end : NULL;
    }
    if (*digits == '0' && p - digits > 1) {
        return NULL;
    }
    if (p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits) {
            return p == end ? end : NULL;
        }
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        digits = p;
        p = skip_digits(p, end);
        if (p == digits) {
            return p == end ? end : NULL;
        }
    }
    return p;
}

static bool is_of_number(uint8_t c)
{
    return (uint8_t)(c - '0') <= 9 || c == '.' || c == '-' || c == '+' || (c | 0x20) == 'e';
}

/* A number that the input cuts off is looked at again once its end has come, so that one of a
 * gigabyte costs as much as one of many pieces. */
static enum lahar_json_result take_number(struct lahar_json_parser *parser, const uint8_t *data,
                                          size_t size, size_t start, bool is_last)
{
    size_t scanned = parser->string_scan;
    while (scanned != 0 && scanned < size && is_of_number(data[scanned])) {
        scanned++;
    }
    const uint8_t *end = scanned == size && !is_last
                             ? data + size
                             : lahar_json_number_end(data + start, data + size);
    if (end == data + size && !is_last) {
        parser->position = start;
        parser->string_scan = size;
        return LAHAR_JSON_MORE;
    }
    parser->string_scan = 0;
    if (end == NULL || (uint8_t)(end[-1] - '0') > 9) {
        return fail(parser, start, "not a number");
    }
    put_token(parser, LAHAR_JSON_NUMBER, start, (size_t)(end - data) - start, 0);
    parser->position = (size_t)(end - data);
    return LAHAR_JSON_DONE;
}

static enum lahar_json_result take_word(struct lahar_json_parser *parser, const uint8_t *data,
                                        size_t size, size_t start, bool is_last)
{
    static const struct {
        const char *text;
        size_t size;
        enum lahar_json_kind kind;
    } words[] = {
        {"true", 4, LAHAR_JSON_TRUE}, {"false", 5, LAHAR_JSON_FALSE}, {"null", 4, LAHAR_JSON_NULL}};
    const size_t left = size - start;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t common = left < words[i].size ? left : words[i].size;
        if (memcmp(data + start, words[i].text, common) != 0) {
            continue;
        }
        if (common < words[i].size) {
            if (is_last) {
                break;
            }
            parser->position = start;
            return LAHAR_JSON_MORE;
        }
        put_token(parser, words[i].kind, start, words[i].size, 0);
        parser->position = start + words[i].size;
        return LAHAR_JSON_DONE;
    }
    return fail(parser, start, "not a JSON value");
}

/* What comes after a value, by the container that is open. */
static void after_value(struct lahar_json_parser *parser)
{
    if (parser->depth == 0) {
        parser->state = EXPECT_NOTHING;
        return;
    }
    const uint32_t container = parser->stack[parser->depth - 1];
    parser->state = parser->tokens[container].kind == LAHAR_JSON_OBJECT ? EXPECT_COMMA_OR_BRACE
                                                                        : EXPECT_COMMA_OR_BRACKET;
}

static enum lahar_json_result open_container(struct lahar_json_parser *parser,
                                             enum lahar_json_kind kind, size_t position)
{
    if (parser->depth == LAHAR_JSON_DEPTH_MAX) {
        return fail(parser, position, "nested deeper than 512 levels");
    }
    parser->stack[parser->depth++] = (uint32_t)parser->token_count;
    put_token(parser, kind, position, 0, 0);
    parser->position = position + 1;
    parser->state = kind == LAHAR_JSON_OBJECT ? EXPECT_FIRST_KEY : EXPECT_FIRST_ELEMENT;
    return LAHAR_JSON_DONE;
}

static void close_container(struct lahar_json_parser *parser, size_t position)
{
    const uint32_t container = parser->stack[--parser->depth];
    parser->tokens[container].end = (uint32_t)parser->token_count;
    parser->position = position + 1;
    after_value(parser);
}

static enum lahar_json_result take_value(struct lahar_json_parser *parser, const uint8_t *data,
                                         size_t size, size_t start, bool is_last)
{
    const uint8_t c = data[start];
    enum lahar_json_result result;
    if (c == '"') {
        result = take_string(parser, LAHAR_JSON_STRING, data, size, start);
    } else if (c == '{') {
        return open_container(parser, LAHAR_JSON_OBJECT, start);
    } else if (c == '[') {
        return open_container(parser, LAHAR_JSON_ARRAY, start);
    } else if (c == '-' || (uint8_t)(c - '0') <= 9) {
        result = take_number(parser, data, size, start, is_last);
    } else {
        result = take_word(parser, data, size, start, is_last);
    }
    if (result == LAHAR_JSON_DONE) {
        after_value(parser);
        /* Most members are followed by their comma at once. */
        if (parser->state == EXPECT_COMMA_OR_BRACE && parser->position < size &&
            data[parser->position] == ',') {
            parser->position++;
            parser->state = EXPECT_KEY;
        }
    }
    return result;
}

static enum lahar_json_result take_key(struct lahar_json_parser *parser, const uint8_t *data,
                                       size_t size, size_t start)
{
    if (data[start] != '"') {
        return fail(parser, start, "expected a key in double quotes");
    }
    const enum lahar_json_result result = take_string(parser, LAHAR_JSON_KEY, data, size, start);
    if (result == LAHAR_JSON_DONE) {
        parser->state = EXPECT_COLON;
        /* Most keys are followed by their colon at once. */
        if (parser->position < size && data[parser->position] == ':') {
            parser->position++;
            parser->state = EXPECT_VALUE;
        }
    }
    return result;
}

/* One token, or one punctuation mark, that begins at position. */
static enum lahar_json_result take_next(struct lahar_json_parser *parser, const uint8_t *data,
                                        size_t size, size_t position, bool is_last)
{
    const uint8_t c = data[position];
    switch (parser->state) {
    case EXPECT_COMMA_OR_BRACE:
        if (c == ',') {
            parser->position = position + 1;
            parser->state = EXPECT_KEY;
        } else if (c == '}') {
            close_container(parser, position);
        } else {
            return fail(parser, position, "expected ',' or '}'");
        }
        return LAHAR_JSON_DONE;
    case EXPECT_COMMA_OR_BRACKET:
        if (c == ',') {
            parser->position = position + 1;
            parser->state = EXPECT_VALUE;
        } else if (c == ']') {
            close_container(parser, position);
        } else {
            return fail(parser, position, "expected ',' or ']'");
        }
        return LAHAR_JSON_DONE;
    case EXPECT_COLON:
        if (c != ':') {
            return fail(parser, position, "expected ':' behind the key");
        }
        parser->position = position + 1;
        parser->state = EXPECT_VALUE;
        return LAHAR_JSON_DONE;
    case EXPECT_FIRST_KEY:
    case EXPECT_KEY:
        if (c == '}' && parser->state == EXPECT_FIRST_KEY) {
            close_container(parser, position);
            return LAHAR_JSON_DONE;
        }
        return take_key(parser, data, size, position);
    default:
        if (c == ']' && parser->state == EXPECT_FIRST_ELEMENT) {
            close_container(parser, position);
            return LAHAR_JSON_DONE;
        }
        return take_value(parser, data, size, position, is_last);
    }
}

enum lahar_json_result lahar_json_parse(struct lahar_json_parser *parser, const uint8_t *data,
                                        size_t size, bool is_last)
{
    LAHAR_ASSERT(size <= UINT32_MAX);
    for (;;) {
        size_t position = parser->position;
        while (position < size && lahar_json_is_space(data[position])) {
            position++;
        }
        if (position == size) {
            parser->position = position;
            return is_last ? fail(parser, position, "the value is cut off") : LAHAR_JSON_MORE;
        }
        if (parser->token_count == parser->token_capacity && !grow_tokens(parser)) {
            return LAHAR_JSON_NO_MEMORY;
        }
        const enum lahar_json_result result = take_next(parser, data, size, position, is_last);
        if (result != LAHAR_JSON_DONE) {
            return result == LAHAR_JSON_MORE && is_last ? fail(parser, size, "the value is cut off")
                                                        : result;
        }
        if (parser->state == EXPECT_NOTHING) {
            return LAHAR_JSON_DONE;
        }
    }
}

enum lahar_json_result lahar_json_check(struct lahar_json_parser *parser, const uint8_t *data,
                                        size_t size)
{
    lahar_json_parser_reset(parser);
    const enum lahar_json_result result = lahar_json_parse(parser, data, size, true);
    if (result != LAHAR_JSON_DONE) {
        return result;
    }
    size_t position = parser->position;
    while (position < size && lahar_json_is_space(data[position])) {
        position++;
    }
    return position == size ? LAHAR_JSON_DONE : fail(parser, position, "more than one value");
}
