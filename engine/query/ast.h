/* The query as a tree. Nodes and their strings live in the arena that was handed to the
 * parser; the tree is immutable once bound and may be read by several threads. */
#ifndef LAHAR_QUERY_AST_H
#define LAHAR_QUERY_AST_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

enum {
    LAHAR_QUERY_DEPTH_MAX = 200,        /* parentheses and negations inside one another */
    LAHAR_QUERY_SIZE_MAX = 1024 * 1024, /* bytes of an expression */
};

enum lahar_node_kind {
    LAHAR_NODE_ALL, /* every event */
    LAHAR_NODE_AND,
    LAHAR_NODE_OR,
    LAHAR_NODE_NOT,
    LAHAR_NODE_TEST
};

enum lahar_test_op {
    LAHAR_TEST_MATCH,          /* ':' whole keyword, token or phrase; without a field: a term */
    LAHAR_TEST_EQUAL,          /* '=' whole value, byte-exact */
    LAHAR_TEST_NOT_EQUAL,      /* '!=' present and not equal */
    LAHAR_TEST_CONTAINS,       /* '~' substring, case ignored */
    LAHAR_TEST_CONTAINS_EXACT, /* '~=' substring */
    LAHAR_TEST_REGEX,          /* ':/x/' '~/x/' holds a match of the regular expression */
    LAHAR_TEST_RANGE,          /* comparisons and [a..b] */
    LAHAR_TEST_PRESENT         /* ':*' */
};

/* One end of a range, as written. */
struct lahar_query_end {
    lahar_bytes text;
    uint32_t offset; /* byte of the expression */
    bool is_given;   /* false: open */
    bool is_inclusive;
};

struct lahar_test; /* engine/query/bind.h */

struct lahar_query_node {
    enum lahar_node_kind kind;
    uint32_t offset;                /* byte of the expression at which it starts */
    struct lahar_query_node *child; /* AND, OR: at least two, chained by next; NOT: one */
    struct lahar_query_node *next;

    /* TEST */
    enum lahar_test_op op;
    bool has_name;
    bool is_pattern;   /* '*' and '?' in value are wildcards */
    bool ignores_case; /* REGEX */
    lahar_bytes name;
    lahar_bytes value;
    uint32_t value_offset;
    struct lahar_query_end low;
    struct lahar_query_end high;
    const struct lahar_test *test; /* set by lahar_query_bind */
};

/* LAHAR_INVALID with error->offset at the byte at fault. Any bytes are safe. */
lahar_status lahar_query_parse(const char *expression, size_t size, struct lahar_arena *arena,
                               struct lahar_query_node **root_out, lahar_error *error);

/* Appends the canonical form, which parses into an equal tree. */
void lahar_query_print(const struct lahar_query_node *node, struct lahar_buffer *out);

/* Fails at a byte of the expression. */
lahar_status lahar_query_fail(lahar_error *error, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
