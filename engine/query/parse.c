/* The parser of the query language: recursive descent over bytes, one token of look-ahead.
 *
 *   or      = and { ("OR" | "||") and }
 *   and     = unary { ["AND" | "&&"] unary }
 *   unary   = ("NOT" | "!" | "-") unary | "(" or ")" | "*" | test
 *   test    = [name] operator value | term
 *
 * Names are not looked up here: what a name and a value mean is decided by bind.c.
 * Recursion is bounded by LAHAR_QUERY_DEPTH_MAX. Every failure names a byte. */
#include "engine/query/ast.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/query/word_end.h"
#include "io/base/error.h"

struct parser {
    const char *text;
    size_t size;
    size_t at;
    unsigned depth;
    struct lahar_arena *arena;
    struct lahar_buffer scratch; /* a quoted string while its escapes are resolved */
    lahar_error *error;
};

lahar_status lahar_query_fail(lahar_error *error, uint64_t offset, const char *format, ...)
{
    char message[LAHAR_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const lahar_status status = lahar_fail(error, LAHAR_INVALID, "%s", message);
    if (error != NULL) {
        error->offset = offset;
    }
    return status;
}

static lahar_status no_memory(struct parser *parser)
{
    return lahar_fail(parser->error, LAHAR_NO_MEMORY, "no memory to parse a query of %zu bytes",
                      parser->size);
}

/* --- characters ------------------------------------------------------------- */

static bool starts_with(const struct parser *parser, size_t at, const char *word)
{
    const size_t size = strlen(word);
    return parser->size - at >= size && memcmp(parser->text + at, word, size) == 0;
}

/* Whether an unquoted word or value ends at this byte. */
static bool is_end(const struct parser *parser, size_t at)
{
    return lahar_query_ends_word(parser->text, parser->size, at);
}

static void skip_space(struct parser *parser)
{
    while (parser->at < parser->size && lahar_query_is_space(parser->text[parser->at])) {
        parser->at++;
    }
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_byte(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           (unsigned char)c >= 0x80;
}

/* Takes the upper- or lower-case word if it stands here as a whole. */
static bool take_word(struct parser *parser, const char *upper, const char *lower)
{
    const size_t size = strlen(upper);
    if ((starts_with(parser, parser->at, upper) || starts_with(parser, parser->at, lower)) &&
        is_end(parser, parser->at + size)) {
        parser->at += size;
        return true;
    }
    return false;
}

static bool take(struct parser *parser, const char *symbol)
{
    if (!starts_with(parser, parser->at, symbol)) {
        return false;
    }
    parser->at += strlen(symbol);
    return true;
}

/* --- nodes ------------------------------------------------------------------ */

static struct lahar_query_node *new_node(struct parser *parser, enum lahar_node_kind kind,
                                         size_t offset)
{
    struct lahar_query_node *node = lahar_arena_allocate(parser->arena, sizeof *node);
    if (node != NULL) {
        *node = (struct lahar_query_node){.kind = kind, .offset = (uint32_t)offset};
    }
    return node;
}

/* A chain that is being built: appending is constant time however long the query. */
struct chain {
    enum lahar_node_kind kind;
    struct lahar_query_node *first;
    struct lahar_query_node *last;
};

static void chain_add(struct chain *chain, struct lahar_query_node *node)
{
    LAHAR_ASSERT(node != NULL);
    struct lahar_query_node *first = node->kind == chain->kind ? node->child : node;
    LAHAR_ASSERT(first != NULL);
    if (chain->last == NULL) {
        chain->first = first;
    } else {
        chain->last->next = first;
    }
    chain->last = first;
    while (chain->last->next != NULL) {
        chain->last = chain->last->next;
    }
}

static lahar_status chain_end(struct parser *parser, const struct chain *chain, size_t offset,
                              struct lahar_query_node **node_out)
{
    if (chain->first == chain->last) {
        *node_out = chain->first;
        return LAHAR_OK;
    }
    *node_out = new_node(parser, chain->kind, offset);
    if (*node_out == NULL) {
        return no_memory(parser);
    }
    (*node_out)->child = chain->first;
    return LAHAR_OK;
}

/* --- strings ---------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static lahar_status parse_escape(struct parser *parser)
{
    const size_t offset = parser->at;
    const char c = offset + 1 < parser->size ? parser->text[offset + 1] : '\0';
    uint8_t byte = 0;
    parser->at += 2;
    if (c == '"' || c == '\\') {
        byte = (uint8_t)c;
    } else if (c == 'n') {
        byte = '\n';
    } else if (c == 't') {
        byte = '\t';
    } else if (c == 'x') {
        const int high = offset + 3 < parser->size ? hex_digit(parser->text[offset + 2]) : -1;
        const int low = high >= 0 ? hex_digit(parser->text[offset + 3]) : -1;
        if (low < 0) {
            return lahar_query_fail(parser->error, offset,
                                    "two hexadecimal digits must follow \\x");
        }
        byte = (uint8_t)(high * 16 + low);
        parser->at += 2;
    } else {
        return lahar_query_fail(parser->error, offset,
                                "unknown escape; known are \\\" \\\\ \\n \\t \\xHH");
    }
    lahar_buffer_put_u8(&parser->scratch, byte);
    return LAHAR_OK;
}

static lahar_status parse_quoted(struct parser *parser, lahar_bytes *string_out)
{
    const size_t offset = parser->at++;
    lahar_buffer_clear(&parser->scratch);
    for (;;) {
        if (parser->at >= parser->size) {
            return lahar_query_fail(parser->error, offset, "this quotation mark is never closed");
        }
        const char c = parser->text[parser->at];
        if (c == '"') {
            parser->at++;
            break;
        }
        if (c == '\\') {
            LAHAR_TRY(parse_escape(parser));
        } else {
            lahar_buffer_put_u8(&parser->scratch, (uint8_t)c);
            parser->at++;
        }
    }
    void *copy = lahar_arena_copy(parser->arena, parser->scratch.data, parser->scratch.size);
    if (parser->scratch.has_failed || (copy == NULL && parser->scratch.size != 0)) {
        return no_memory(parser);
    }
    *string_out = (lahar_bytes){copy, parser->scratch.size};
    return LAHAR_OK;
}

/* An unquoted value from here to its end; in_list: a comma ends it too. */
static lahar_status parse_bare(struct parser *parser, bool in_list, lahar_bytes *string_out,
                               bool *is_pattern_out)
{
    const size_t start = parser->at;
    *is_pattern_out = false;
    while (!is_end(parser, parser->at) && !(in_list && parser->text[parser->at] == ',')) {
        const char c = parser->text[parser->at++];
        *is_pattern_out = *is_pattern_out || c == '*' || c == '?';
    }
    if (parser->at == start) {
        return lahar_query_fail(parser->error, start,
                                "a value is missing here; quote a text that holds ':' or '='");
    }
    void *copy = lahar_arena_copy(parser->arena, parser->text + start, parser->at - start);
    if (copy == NULL) {
        return no_memory(parser);
    }
    *string_out = (lahar_bytes){copy, parser->at - start};
    return LAHAR_OK;
}

static bool at_quote(const struct parser *parser)
{
    return parser->at < parser->size && parser->text[parser->at] == '"';
}

/* value = bare | quoted. is_pattern_out NULL: wildcards are plain characters. */
static lahar_status parse_value(struct parser *parser, bool in_list, lahar_bytes *string_out,
                                bool *is_pattern_out)
{
    bool is_pattern = false;
    if (at_quote(parser)) {
        LAHAR_TRY(parse_quoted(parser, string_out));
    } else {
        LAHAR_TRY(parse_bare(parser, in_list, string_out, &is_pattern));
    }
    if (is_pattern_out != NULL) {
        *is_pattern_out = is_pattern;
    }
    return LAHAR_OK;
}

/* --- tests ------------------------------------------------------------------ */

static struct lahar_query_node *new_test(struct parser *parser, size_t offset,
                                         const lahar_bytes *name, enum lahar_test_op op)
{
    struct lahar_query_node *node = new_node(parser, LAHAR_NODE_TEST, offset);
    if (node != NULL) {
        node->op = op;
        node->value_offset = (uint32_t)parser->at;
        if (name != NULL) {
            node->has_name = true;
            node->name = *name;
        }
    }
    return node;
}

static lahar_status parse_comparison(struct parser *parser, size_t offset, const lahar_bytes *name,
                                     struct lahar_query_node **node_out)
{
    const bool is_low = parser->text[parser->at++] == '>';
    const bool is_inclusive = take(parser, "=");
    struct lahar_query_node *node = new_test(parser, offset, name, LAHAR_TEST_RANGE);
    if (node == NULL) {
        return no_memory(parser);
    }
    struct lahar_query_end *end = is_low ? &node->low : &node->high;
    *end = (struct lahar_query_end){
        .offset = (uint32_t)parser->at, .is_given = true, .is_inclusive = is_inclusive};
    LAHAR_TRY(parse_value(parser, false, &end->text, NULL));
    *node_out = node;
    return LAHAR_OK;
}

/* One end of a range: quoted, or bytes up to "..", a bracket or a space. Nothing, or '*', is open.
 */
static lahar_status parse_end(struct parser *parser, struct lahar_query_end *end)
{
    skip_space(parser);
    *end = (struct lahar_query_end){.offset = (uint32_t)parser->at, .is_inclusive = true};
    if (at_quote(parser)) {
        LAHAR_TRY(parse_quoted(parser, &end->text));
        end->is_given = true;
        skip_space(parser);
        return LAHAR_OK;
    }
    const size_t start = parser->at;
    while (parser->at < parser->size && !starts_with(parser, parser->at, "..")) {
        const char c = parser->text[parser->at];
        if (lahar_query_is_space(c) || c == ']' || c == ')' || c == '(' || c == '"') {
            break;
        }
        parser->at++;
    }
    const size_t size = parser->at - start;
    if (size != 0 && !(size == 1 && parser->text[start] == '*')) {
        void *copy = lahar_arena_copy(parser->arena, parser->text + start, size);
        if (copy == NULL) {
            return no_memory(parser);
        }
        end->text = (lahar_bytes){copy, size};
        end->is_given = true;
    }
    skip_space(parser);
    return LAHAR_OK;
}

static lahar_status parse_range(struct parser *parser, size_t offset, const lahar_bytes *name,
                                struct lahar_query_node **node_out)
{
    const size_t bracket = parser->at++;
    struct lahar_query_node *node = new_test(parser, offset, name, LAHAR_TEST_RANGE);
    if (node == NULL) {
        return no_memory(parser);
    }
    LAHAR_TRY(parse_end(parser, &node->low));
    if (!take(parser, "..")) {
        return lahar_query_fail(parser->error, parser->at,
                                "'..' must stand between the ends of a range: [a..b]");
    }
    LAHAR_TRY(parse_end(parser, &node->high));
    if (take(parser, ")")) {
        node->high.is_inclusive = false;
    } else if (!take(parser, "]")) {
        return lahar_query_fail(parser->error, parser->at,
                                "a range ends with ']' (end included) or ')' (excluded)");
    }
    if (!node->low.is_given && !node->high.is_given) {
        return lahar_query_fail(parser->error, bracket,
                                "a range needs one end at least; write name:* for any value");
    }
    if (!is_end(parser, parser->at)) {
        return lahar_query_fail(parser->error, parser->at, "a space is missing behind the range");
    }
    *node_out = node;
    return LAHAR_OK;
}

/* "/" expression "/" ["i"], of which the closing slash is known. "\/" stands for a slash. */
static lahar_status parse_regex(struct parser *parser, size_t offset, const lahar_bytes *name,
                                size_t end, struct lahar_query_node **node_out)
{
    struct lahar_query_node *node = new_test(parser, offset, name, LAHAR_TEST_REGEX);
    if (node == NULL) {
        return no_memory(parser);
    }
    lahar_buffer_clear(&parser->scratch);
    for (size_t i = parser->at + 1; i < end; i++) {
        const char c = parser->text[i];
        if (c == '\\' && i + 1 < end) {
            i++;
            if (parser->text[i] != '/') {
                lahar_buffer_put_u8(&parser->scratch, '\\');
            }
        }
        lahar_buffer_put_u8(&parser->scratch, (uint8_t)parser->text[i]);
    }
    void *copy = lahar_arena_copy(parser->arena, parser->scratch.data, parser->scratch.size);
    if (parser->scratch.has_failed || copy == NULL) {
        return no_memory(parser);
    }
    node->value = (lahar_bytes){copy, parser->scratch.size};
    parser->at = end + 1;
    node->ignores_case = take(parser, "i");
    *node_out = node;
    return LAHAR_OK;
}

/* A value after ':' or '='; '*' alone asks for presence. */
static lahar_status parse_single(struct parser *parser, size_t offset, const lahar_bytes *name,
                                 enum lahar_test_op op, bool in_list,
                                 struct lahar_query_node **node_out)
{
    const size_t regex_end =
        op == LAHAR_TEST_MATCH && name != NULL
            ? lahar_query_regex_end(parser->text, parser->size, parser->at, in_list)
            : 0;
    if (regex_end != 0) {
        return parse_regex(parser, offset, name, regex_end, node_out);
    }
    struct lahar_query_node *node = new_test(parser, offset, name, op);
    if (node == NULL) {
        return no_memory(parser);
    }
    if (in_list && parser->at < parser->size && strchr("<>[", parser->text[parser->at]) != NULL) {
        return lahar_query_fail(parser->error, parser->at,
                                "a list takes values only; join ranges by OR");
    }
    LAHAR_TRY(parse_value(parser, in_list, &node->value, &node->is_pattern));
    if (node->is_pattern && node->value.size == 1 && *(const char *)node->value.data == '*' &&
        op != LAHAR_TEST_NOT_EQUAL) {
        node->op = LAHAR_TEST_PRESENT;
        node->is_pattern = false;
        node->value = (lahar_bytes){NULL, 0};
    }
    *node_out = node;
    return LAHAR_OK;
}

/* "(" value { [","] value } ")": any of them. */
static lahar_status parse_list(struct parser *parser, size_t offset, const lahar_bytes *name,
                               enum lahar_test_op op, struct lahar_query_node **node_out)
{
    const size_t parenthesis = parser->at++;
    struct chain list = {.kind = LAHAR_NODE_OR};
    for (;;) {
        skip_space(parser);
        while (take(parser, ",") || (list.first != NULL && take_word(parser, "OR", "or"))) {
            skip_space(parser);
        }
        if (parser->at >= parser->size) {
            return lahar_query_fail(parser->error, parenthesis, "this list is never closed");
        }
        if (take(parser, ")")) {
            break;
        }
        struct lahar_query_node *node = NULL;
        LAHAR_TRY(
            parse_single(parser, list.first == NULL ? offset : parser->at, name, op, true, &node));
        chain_add(&list, node);
    }
    if (list.first == NULL) {
        return lahar_query_fail(parser->error, parenthesis, "a list needs a value at least");
    }
    return chain_end(parser, &list, offset, node_out);
}

static lahar_status parse_contains(struct parser *parser, size_t offset, const lahar_bytes *name,
                                   struct lahar_query_node **node_out)
{
    const bool is_exact = take(parser, "~=");
    if (!is_exact) {
        (void)take(parser, "~");
        const size_t regex_end =
            lahar_query_regex_end(parser->text, parser->size, parser->at, false);
        if (regex_end != 0) {
            return parse_regex(parser, offset, name, regex_end, node_out);
        }
    }
    struct lahar_query_node *node =
        new_test(parser, offset, name, is_exact ? LAHAR_TEST_CONTAINS_EXACT : LAHAR_TEST_CONTAINS);
    if (node == NULL) {
        return no_memory(parser);
    }
    LAHAR_TRY(parse_value(parser, false, &node->value, NULL));
    if (node->value.size == 0 && name == NULL) {
        return lahar_query_fail(parser->error, node->value_offset, "an empty text is everywhere");
    }
    *node_out = node;
    return LAHAR_OK;
}

/* Behind a field's name, at its operator. */
static lahar_status parse_match(struct parser *parser, size_t offset, const lahar_bytes *name,
                                struct lahar_query_node **node_out)
{
    if (starts_with(parser, parser->at, "~")) {
        return parse_contains(parser, offset, name, node_out);
    }
    if (take(parser, "!=")) {
        return parse_single(parser, offset, name, LAHAR_TEST_NOT_EQUAL, false, node_out);
    }
    enum lahar_test_op op = LAHAR_TEST_MATCH;
    if (take(parser, "=")) {
        op = LAHAR_TEST_EQUAL;
    } else {
        (void)take(parser, ":");
    }
    const char next = parser->at < parser->size ? parser->text[parser->at] : '\0';
    if (next == '[') {
        return parse_range(parser, offset, name, node_out);
    }
    if (next == '(') {
        return parse_list(parser, offset, name, op, node_out);
    }
    if (op == LAHAR_TEST_MATCH && (next == '<' || next == '>')) {
        return parse_comparison(parser, offset, name, node_out);
    }
    return parse_single(parser, offset, name, op, false, node_out);
}

/* last:15m is time:[now-15m..now). */
static lahar_status parse_last(struct parser *parser, size_t offset,
                               struct lahar_query_node **node_out)
{
    static const char name[] = "time";
    static const char now[] = "now";
    parser->at++;
    struct lahar_query_node *node =
        new_test(parser, offset, &(lahar_bytes){name, sizeof name - 1}, LAHAR_TEST_RANGE);
    lahar_bytes age;
    const size_t value_offset = parser->at;
    LAHAR_TRY(parse_value(parser, false, &age, NULL));
    char *low = lahar_arena_allocate(parser->arena, age.size + 4);
    if (node == NULL || low == NULL) {
        return no_memory(parser);
    }
    memcpy(low, "now-", 4);
    if (age.size != 0) {
        memcpy(low + 4, age.data, age.size);
    }
    node->low = (struct lahar_query_end){{low, age.size + 4}, (uint32_t)value_offset, true, true};
    node->high =
        (struct lahar_query_end){{now, sizeof now - 1}, (uint32_t)value_offset, true, false};
    *node_out = node;
    return LAHAR_OK;
}

/* Whether a match operator stands here. "://" and "::" belong to URLs and qualified names. */
static bool at_operator(const struct parser *parser)
{
    if (parser->at >= parser->size) {
        return false;
    }
    switch (parser->text[parser->at]) {
    case ':':
        return !starts_with(parser, parser->at, "://") && !starts_with(parser, parser->at, "::");
    case '=':
    case '~':
    case '<':
    case '>':
        return true;
    default:
        return starts_with(parser, parser->at, "!=");
    }
}

static lahar_status parse_named(struct parser *parser, size_t offset, const lahar_bytes *name,
                                bool is_quoted, struct lahar_query_node **node_out)
{
    const char c = parser->text[parser->at];
    if (name->size == 0) {
        return lahar_query_fail(parser->error, offset, "the name of a field is empty");
    }
    if (!is_quoted && c == ':' && name->size == 4 && memcmp(name->data, "last", 4) == 0) {
        return parse_last(parser, offset, node_out);
    }
    if (c == '<' || c == '>') {
        return parse_comparison(parser, offset, name, node_out);
    }
    return parse_match(parser, offset, name, node_out);
}

/* A term without a field, or a test of a field. */
static lahar_status parse_test(struct parser *parser, struct lahar_query_node **node_out)
{
    const size_t offset = parser->at;
    lahar_bytes string = {NULL, 0};
    if (starts_with(parser, offset, "~")) {
        return parse_contains(parser, offset, NULL, node_out);
    }
    if (at_quote(parser)) {
        LAHAR_TRY(parse_quoted(parser, &string));
        if (at_operator(parser)) {
            return parse_named(parser, offset, &string, true, node_out);
        }
        if (string.size == 0) {
            return lahar_query_fail(parser->error, offset,
                                    "an empty text is everywhere; name=\"\" finds empty values");
        }
        struct lahar_query_node *node = new_test(parser, offset, NULL, LAHAR_TEST_MATCH);
        if (node == NULL) {
            return no_memory(parser);
        }
        node->value = string;
        node->value_offset = (uint32_t)offset;
        *node_out = node;
        return LAHAR_OK;
    }
    if (is_name_start(parser->text[offset])) {
        while (parser->at < parser->size && is_name_byte(parser->text[parser->at])) {
            parser->at++;
        }
        if (at_operator(parser)) {
            string.size = parser->at - offset;
            string.data = lahar_arena_copy(parser->arena, parser->text + offset, string.size);
            return string.data == NULL ? no_memory(parser)
                                       : parse_named(parser, offset, &string, false, node_out);
        }
        parser->at = offset;
    }
    return parse_single(parser, offset, NULL, LAHAR_TEST_MATCH, false, node_out);
}

/* --- boolean structure ------------------------------------------------------ */

static lahar_status parse_or(struct parser *parser, struct lahar_query_node **node_out);

static lahar_status enter(struct parser *parser, size_t offset)
{
    if (++parser->depth > LAHAR_QUERY_DEPTH_MAX) {
        return lahar_query_fail(parser->error, offset, "the query is nested deeper than %d levels",
                                LAHAR_QUERY_DEPTH_MAX);
    }
    return LAHAR_OK;
}

static bool take_not(struct parser *parser)
{
    if (take_word(parser, "NOT", "not") || take(parser, "!")) {
        return true;
    }
    if (starts_with(parser, parser->at, "-") && parser->at + 1 < parser->size &&
        !lahar_query_is_space(parser->text[parser->at + 1]) &&
        parser->text[parser->at + 1] != ')') {
        parser->at++;
        return true;
    }
    return false;
}

static lahar_status parse_group(struct parser *parser, struct lahar_query_node **node_out)
{
    const size_t offset = parser->at++;
    LAHAR_TRY(enter(parser, offset));
    LAHAR_TRY(parse_or(parser, node_out));
    skip_space(parser);
    if (!take(parser, ")")) {
        return lahar_query_fail(parser->error, offset, "this parenthesis is never closed");
    }
    parser->depth--;
    return LAHAR_OK;
}

static lahar_status parse_unary(struct parser *parser, struct lahar_query_node **node_out)
{
    skip_space(parser);
    const size_t offset = parser->at;
    if (offset >= parser->size || parser->text[offset] == ')') {
        return lahar_query_fail(parser->error, offset, "a test is missing here");
    }
    if (take_word(parser, "AND", "and") || take_word(parser, "OR", "or") || take(parser, "&&") ||
        take(parser, "||")) {
        return lahar_query_fail(parser->error, offset,
                                "a test is missing before this word; quote it to look for it");
    }
    if (take_not(parser)) {
        LAHAR_TRY(enter(parser, offset));
        struct lahar_query_node *node = new_node(parser, LAHAR_NODE_NOT, offset);
        if (node == NULL) {
            return no_memory(parser);
        }
        LAHAR_TRY(parse_unary(parser, &node->child));
        parser->depth--;
        *node_out = node;
        return LAHAR_OK;
    }
    if (parser->text[offset] == '(') {
        return parse_group(parser, node_out);
    }
    if (parser->text[offset] == '*' && is_end(parser, offset + 1)) {
        parser->at++;
        *node_out = new_node(parser, LAHAR_NODE_ALL, offset);
        return *node_out == NULL ? no_memory(parser) : LAHAR_OK;
    }
    return parse_test(parser, node_out);
}

static bool at_or(struct parser *parser)
{
    return take_word(parser, "OR", "or") || take(parser, "||");
}

static lahar_status parse_and(struct parser *parser, struct lahar_query_node **node_out)
{
    struct chain chain = {.kind = LAHAR_NODE_AND};
    skip_space(parser);
    const size_t offset = parser->at;
    bool is_required = true;
    for (;;) {
        skip_space(parser);
        const size_t before = parser->at;
        if (!is_required) {
            if (before >= parser->size || parser->text[before] == ')') {
                break;
            }
            if (at_or(parser)) {
                parser->at = before;
                break;
            }
            if (take_word(parser, "AND", "and") || take(parser, "&&")) {
                is_required = true;
                continue;
            }
        }
        struct lahar_query_node *node = NULL;
        LAHAR_TRY(parse_unary(parser, &node));
        chain_add(&chain, node);
        is_required = false;
    }
    return chain_end(parser, &chain, offset, node_out);
}

static lahar_status parse_or(struct parser *parser, struct lahar_query_node **node_out)
{
    struct chain chain = {.kind = LAHAR_NODE_OR};
    skip_space(parser);
    const size_t offset = parser->at;
    do {
        struct lahar_query_node *node = NULL;
        LAHAR_TRY(parse_and(parser, &node));
        chain_add(&chain, node);
        skip_space(parser);
    } while (at_or(parser));
    return chain_end(parser, &chain, offset, node_out);
}

lahar_status lahar_query_parse(const char *expression, size_t size, struct lahar_arena *arena,
                               struct lahar_query_node **root_out, lahar_error *error)
{
    *root_out = NULL;
    if (size > LAHAR_QUERY_SIZE_MAX) {
        return lahar_query_fail(error, LAHAR_QUERY_SIZE_MAX,
                                "the query has %zu bytes, more than %d", size,
                                LAHAR_QUERY_SIZE_MAX);
    }
    struct parser parser = {.text = expression, .size = size, .arena = arena, .error = error};
    lahar_buffer_init(&parser.scratch, arena->allocator);
    lahar_status status = LAHAR_OK;
    skip_space(&parser);
    if (parser.at == size) {
        *root_out = new_node(&parser, LAHAR_NODE_ALL, 0);
        status = *root_out == NULL ? no_memory(&parser) : LAHAR_OK;
        goto cleanup;
    }
    status = parse_or(&parser, root_out);
    if (status == LAHAR_OK && parser.at < size) {
        status = lahar_query_fail(error, parser.at, "this parenthesis was never opened");
    }
cleanup:
    lahar_buffer_deinit(&parser.scratch);
    if (status != LAHAR_OK) {
        *root_out = NULL;
    }
    return status;
}
