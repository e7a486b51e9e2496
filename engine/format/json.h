/* JSON tokenizer: one RFC 8259 value from bytes to a flat array of tokens.
 *
 * Strict in grammar: no comments, no trailing commas, no NaN. Lenient in two
 * points that the RFC leaves open: bytes of a string need not be UTF-8, and \u
 * escapes may be lone surrogates. Numbers stay text. Nesting beyond
 * LAHAR_JSON_DEPTH_MAX is an error; nothing recurses.
 *
 * The parser can stop where the input ends and go on when the same bytes are given
 * again, at any address, with more behind them; positions are offsets. */
#ifndef LAHAR_FORMAT_JSON_H
#define LAHAR_FORMAT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

enum {
    LAHAR_JSON_DEPTH_MAX = 512
};

enum lahar_json_kind {
    LAHAR_JSON_OBJECT,
    LAHAR_JSON_ARRAY,
    LAHAR_JSON_KEY, /* followed by the tokens of its value */
    LAHAR_JSON_STRING,
    LAHAR_JSON_NUMBER,
    LAHAR_JSON_TRUE,
    LAHAR_JSON_FALSE,
    LAHAR_JSON_NULL
};

enum {
    LAHAR_JSON_ESCAPED = 1, /* the string or key holds a backslash */
    LAHAR_JSON_DROPPED = 2  /* a key that is given again later in its object */
};

struct lahar_json_token {
    uint32_t offset; /* of the text; inside the quotes for strings and keys */
    uint32_t size;   /* bytes of text; 0 for containers */
    uint32_t end;    /* containers: index of the token behind the value; keys: a hash */
    uint8_t kind;    /* enum lahar_json_kind */
    uint8_t flags;
};

struct lahar_json_parser {
    struct lahar_json_token *tokens; /* owned */
    size_t token_count;
    size_t token_capacity;
    const lahar_allocator *allocator;
    size_t position;     /* bytes consumed; after a failure, where it is */
    const char *failure; /* after LAHAR_JSON_BAD: what is wrong, static text */
    size_t string_scan;  /* inside a string or number: where to go on looking for its end, or 0 */
    uint32_t depth;
    uint8_t state; /* what may come next */
    uint8_t string_flags;
    uint32_t stack[LAHAR_JSON_DEPTH_MAX]; /* tokens of the open containers */
};

enum lahar_json_result {
    LAHAR_JSON_DONE, /* a whole value: position is behind it */
    LAHAR_JSON_MORE, /* the input ends inside the value */
    LAHAR_JSON_BAD,
    LAHAR_JSON_NO_MEMORY
};

void lahar_json_parser_init(struct lahar_json_parser *parser, const lahar_allocator *allocator);
void lahar_json_parser_deinit(struct lahar_json_parser *parser);
/* Prepares for the next value; keeps the memory. */
void lahar_json_parser_reset(struct lahar_json_parser *parser);

/* Parses the value that begins at data, white space before it allowed; at most
 * 4 GiB. is_last: the input ends with size. What follows the value is not looked at. */
enum lahar_json_result lahar_json_parse(struct lahar_json_parser *parser, const uint8_t *data,
                                        size_t size, bool is_last);

/* Whether data is exactly one value with white space around it. */
enum lahar_json_result lahar_json_check(struct lahar_json_parser *parser, const uint8_t *data,
                                        size_t size);

static inline bool lahar_json_is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Bytes of the escape at p, a backslash below end; 0 when it is not one, -1 when the input ends in
 * it. */
int lahar_json_escape_size(const uint8_t *p, const uint8_t *end);
/* Behind the number at start, which is a digit or a minus below end. NULL when there is none; end
 * when the input ends inside it or right behind it. */
const uint8_t *lahar_json_number_end(const uint8_t *start, const uint8_t *end);

/* Resolves the escapes of a string's text, which the parser has accepted, into
 * out (at least size bytes). Returns the bytes written. A surrogate without its
 * partner becomes U+FFFD and sets *is_lossy_out. */
size_t lahar_json_unescape(const uint8_t *text, size_t size, uint8_t *out, bool *is_lossy_out);

/* Appends value as a JSON string with its quotes. With make_valid, bytes that are
 * not UTF-8 become U+FFFD; otherwise they are copied. */
void lahar_json_put_string(struct lahar_buffer *buffer, lahar_bytes value, bool make_valid);

#endif
