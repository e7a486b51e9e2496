/* The canonical form of a query: one spelling for each tree, which parses back into it. */
#include "engine/query/ast.h"

#include <string.h>

static void put(struct lahar_buffer *out, const char *text)
{
    lahar_buffer_put(out, text, strlen(text));
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Whether the value keeps its meaning without quotation marks behind an operator. */
static bool is_plain_value(lahar_bytes value)
{
    const uint8_t *p = value.data;
    for (size_t i = 0; i < value.size; i++) {
        const bool is_inner = i != 0 && (p[i] == '/' || p[i] == ':');
        if (!is_letter(p[i]) && !is_digit(p[i]) && strchr("_.-+@%", p[i]) == NULL && !is_inner) {
            return false;
        }
        if (p[i] == '\0' || (p[i] == '.' && i + 1 < value.size && p[i + 1] == '.')) {
            return false;
        }
    }
    return value.size != 0;
}

/* "last" alone has a meaning of its own before ':'. */
static bool is_plain_name(lahar_bytes name)
{
    const uint8_t *p = name.data;
    if (name.size == 0 || !(is_letter(p[0]) || p[0] == '_') ||
        (name.size == 4 && memcmp(p, "last", 4) == 0)) {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        if (!is_letter(p[i]) && !is_digit(p[i]) && p[i] != '_' && p[i] != '.' && p[i] != '-' &&
            p[i] < 0x80) {
            return false;
        }
    }
    return true;
}

static void put_quoted(struct lahar_buffer *out, lahar_bytes string)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = string.data;
    put(out, "\"");
    for (size_t i = 0; i < string.size; i++) {
        if (p[i] == '"' || p[i] == '\\') {
            lahar_buffer_put_u8(out, '\\');
            lahar_buffer_put_u8(out, p[i]);
        } else if (p[i] == '\n') {
            put(out, "\\n");
        } else if (p[i] == '\t') {
            put(out, "\\t");
        } else if (p[i] < 0x20 || p[i] == 0x7f) {
            put(out, "\\x");
            lahar_buffer_put_u8(out, (uint8_t)digits[p[i] >> 4]);
            lahar_buffer_put_u8(out, (uint8_t)digits[p[i] & 15]);
        } else {
            lahar_buffer_put_u8(out, p[i]);
        }
    }
    put(out, "\"");
}

static void put_value(struct lahar_buffer *out, lahar_bytes value)
{
    if (is_plain_value(value)) {
        lahar_buffer_put(out, value.data, value.size);
    } else {
        put_quoted(out, value);
    }
}

/* A slash in the expression would end it. */
static void put_regex(struct lahar_buffer *out, const struct lahar_query_node *node)
{
    const uint8_t *p = node->value.data;
    put(out, "/");
    for (size_t i = 0; i < node->value.size; i++) {
        if (p[i] == '/') {
            put(out, "\\");
        }
        lahar_buffer_put_u8(out, p[i]);
        if (p[i] == '\\' && i + 1 < node->value.size) {
            lahar_buffer_put_u8(out, p[++i]);
        }
    }
    put(out, node->ignores_case ? "/i" : "/");
}

static void print_range(const struct lahar_query_node *node, struct lahar_buffer *out)
{
    if (node->low.is_given && node->high.is_given) {
        put(out, ":[");
        put_value(out, node->low.text);
        put(out, "..");
        put_value(out, node->high.text);
        put(out, node->high.is_inclusive ? "]" : ")");
        return;
    }
    const struct lahar_query_end *end = node->low.is_given ? &node->low : &node->high;
    put(out, node->low.is_given ? ">" : "<");
    put(out, end->is_inclusive ? "=" : "");
    put_value(out, end->text);
}

static void print_test(const struct lahar_query_node *node, struct lahar_buffer *out)
{
    static const char *const operators[] = {
        [LAHAR_TEST_MATCH] = ":",           [LAHAR_TEST_EQUAL] = "=",
        [LAHAR_TEST_NOT_EQUAL] = "!=",      [LAHAR_TEST_CONTAINS] = "~",
        [LAHAR_TEST_CONTAINS_EXACT] = "~=", [LAHAR_TEST_REGEX] = "~",
    };
    if (node->has_name) {
        if (is_plain_name(node->name)) {
            lahar_buffer_put(out, node->name.data, node->name.size);
        } else {
            put_quoted(out, node->name);
        }
    }
    if (node->op == LAHAR_TEST_RANGE) {
        print_range(node, out);
        return;
    }
    if (node->op == LAHAR_TEST_PRESENT) {
        put(out, ":*");
        return;
    }
    if (node->has_name || node->op != LAHAR_TEST_MATCH) {
        put(out, operators[node->op]);
    }
    if (node->op == LAHAR_TEST_REGEX) {
        put_regex(out, node);
    } else if (node->is_pattern) {
        lahar_buffer_put(out, node->value.data, node->value.size);
    } else if (node->has_name) {
        put_value(out, node->value);
    } else {
        put_quoted(out, node->value);
    }
}

void lahar_query_print(const struct lahar_query_node *node, struct lahar_buffer *out)
{
    switch (node->kind) {
    case LAHAR_NODE_ALL:
        put(out, "*");
        return;
    case LAHAR_NODE_TEST:
        print_test(node, out);
        return;
    case LAHAR_NODE_NOT:
        put(out, "NOT ");
        break;
    case LAHAR_NODE_AND:
    case LAHAR_NODE_OR:
        break;
    }
    for (const struct lahar_query_node *child = node->child; child != NULL; child = child->next) {
        const bool is_group = child->kind == LAHAR_NODE_OR ||
                              (child->kind == LAHAR_NODE_AND && node->kind == LAHAR_NODE_NOT);
        put(out, is_group ? "(" : "");
        lahar_query_print(child, out);
        put(out, is_group ? ")" : "");
        if (child->next != NULL) {
            put(out, node->kind == LAHAR_NODE_AND ? " AND " : " OR ");
        }
    }
}
