/* The parser: every form of the grammar against its canonical spelling written by hand,
 * places of errors, canonical text as a fixed point, arbitrary bytes. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/query/ast.h"
#include "io/base/error.h"

static lahar_status parse(const char *text, size_t size, struct lahar_buffer *out,
                          lahar_error *error)
{
    struct lahar_arena arena;
    struct lahar_query_node *root = NULL;
    lahar_arena_init(&arena, &lahar_allocator_libc, 0);
    lahar_error_clear(error);
    const lahar_status status = lahar_query_parse(text, size, &arena, &root, error);
    if (status == LAHAR_OK) {
        lahar_buffer_clear(out);
        lahar_query_print(root, out);
    }
    lahar_arena_deinit(&arena);
    return status;
}

static void expect(const char *text, const char *canonical)
{
    struct lahar_buffer out;
    lahar_error error;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    const lahar_status status = parse(text, strlen(text), &out, &error);
    cr_assert_eq(status, LAHAR_OK, "%s: %s at %llu", text, error.message,
                 (unsigned long long)error.offset);
    lahar_buffer_put_u8(&out, '\0');
    cr_expect_str_eq((const char *)out.data, canonical, "%s gave %s, not %s", text,
                     (const char *)out.data, canonical);
    lahar_buffer_deinit(&out);
}

static void expect_error(const char *text, uint64_t offset)
{
    struct lahar_buffer out;
    lahar_error error;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    const lahar_status status = parse(text, strlen(text), &out, &error);
    cr_expect_eq(status, LAHAR_INVALID, "%s was accepted", text);
    cr_expect_eq(error.offset, offset, "%s: \"%s\" at %llu, not %llu", text, error.message,
                 (unsigned long long)error.offset, (unsigned long long)offset);
    cr_expect_null(strchr(error.message, '\n'));
    lahar_buffer_deinit(&out);
}

Test(parse, takes_terms_without_a_field)
{
    expect("", "*");
    expect("   ", "*");
    expect("*", "*");
    expect("error", "\"error\"");
    expect("\"connection timeout\"", "\"connection timeout\"");
    expect("~\"sub\"", "~\"sub\"");
    expect("~sub", "~\"sub\"");
    expect("~=\"Sub\"", "~=\"Sub\"");
    expect("err*", "err*");
    expect("*abc*", "*abc*");
    expect("\"err*\"", "\"err*\"");
    expect("caf\xc3\xa9", "\"caf\xc3\xa9\"");
}

Test(parse, keeps_unknown_names_in_bare_terms)
{
    expect("12:30", "\"12:30\"");
    expect("http://x.y/z?q=1", "http://x.y/z?q=1");
    expect("https://x.y/z", "\"https://x.y/z\"");
    expect("std::string", "\"std::string\"");
    expect("/var/log/x.log", "\"/var/log/x.log\"");
    expect("1/2", "\"1/2\"");
    expect("app/name:x", "\"app/name:x\"");
    expect("user@host:22", "\"user@host:22\"");
    expect("it's", "\"it's\"");
    expect("a.b-c", "\"a.b-c\"");
    expect("a - b", "\"a\" AND \"-\" AND \"b\"");
}

Test(parse, takes_every_operator_of_a_field)
{
    expect("level:ERROR", "level:ERROR");
    expect("level:\"a b\"", "level:\"a b\"");
    expect("level=ERROR", "level=ERROR");
    expect("level!=ERROR", "level!=ERROR");
    expect("msg~\"after 77\"", "msg~\"after 77\"");
    expect("msg~=After", "msg~=After");
    expect("msg~a*b", "msg~\"a*b\"");
    expect("size>10", "size>10");
    expect("size>=20KiB", "size>=20KiB");
    expect("size<1.5", "size<1.5");
    expect("size<=-3", "size<=-3");
    expect("size:>5", "size>5");
    expect("size:[1..5]", "size:[1..5]");
    expect("size=[ 1 .. 5 )", "size:[1..5)");
    expect("size:[1.5..2.5]", "size:[1.5..2.5]");
    expect("size:[1..]", "size>=1");
    expect("size:[..5)", "size<5");
    expect("size:[*..5]", "size<=5");
    expect("time:[\"2015-01-06 10:00\"..now)", "time:[\"2015-01-06 10:00\"..now)");
    expect("type:*", "type:*");
    expect("type=*", "type:*");
    expect("filename:*abc*", "filename:*abc*");
    expect("filename=VIEW*", "filename=VIEW*");
    expect("filename:\"*abc*\"", "filename:\"*abc*\"");
    expect("attr.mime.type=\"\"", "attr.mime.type=\"\"");
    expect("\"my attr\":x", "\"my attr\":x");
    expect("url:http://x:80/a=b", "url:\"http://x:80/a=b\"");
    expect("path:/var/log", "path:\"/var/log\"");
    expect("time:2015-01-06T10:00:05Z", "time:2015-01-06T10:00:05Z");
    expect("time:@1420538400s", "time:@1420538400s");
}

Test(parse, writes_last_as_a_range_of_time)
{
    expect("last:15m", "time:[now-15m..now)");
    expect("\"last\":15m", "\"last\":15m");
    expect("last=x", "\"last\"=x");
}

Test(parse, writes_lists_as_alternatives)
{
    expect("type:(SEND DROP)", "type:SEND OR type:DROP");
    expect("type:(SEND, DROP) x", "(type:SEND OR type:DROP) AND \"x\"");
    expect("type:(SEND OR DROP)", "type:SEND OR type:DROP");
    expect("type:(\"a b\" c*)", "type:\"a b\" OR type:c*");
    expect("type=(A)", "type=A");
}

Test(parse, resolves_escapes)
{
    expect("\"a\\\"b\\\\c\\n\\t\\x41\\xff\"", "\"a\\\"b\\\\c\\n\\tA\xff\"");
    expect("f:\"\\x00\"", "f:\"\\x00\"");
}

Test(parse, binds_not_before_and_before_or)
{
    expect("a b", "\"a\" AND \"b\"");
    expect("a AND b", "\"a\" AND \"b\"");
    expect("a and b", "\"a\" AND \"b\"");
    expect("a && b", "\"a\" AND \"b\"");
    expect("a&&b||c", "\"a\" AND \"b\" OR \"c\"");
    expect("a OR b c", "\"a\" OR \"b\" AND \"c\"");
    expect("a or b", "\"a\" OR \"b\"");
    expect("(a OR b) c", "(\"a\" OR \"b\") AND \"c\"");
    expect("NOT a b", "NOT \"a\" AND \"b\"");
    expect("not a", "NOT \"a\"");
    expect("!a", "NOT \"a\"");
    expect("-a", "NOT \"a\"");
    expect("-(a b)", "NOT (\"a\" AND \"b\")");
    expect("-(a OR b)", "NOT (\"a\" OR \"b\")");
    expect("NOT NOT a", "NOT NOT \"a\"");
    expect("a -level:DEBUG", "\"a\" AND NOT level:DEBUG");
    expect("((a))", "\"a\"");
    expect("a (b (c d))", "\"a\" AND \"b\" AND \"c\" AND \"d\"");
    expect("NOT(a)b", "NOT \"a\" AND \"b\"");
}

Test(parse, takes_words_only_as_a_whole_and_in_one_case)
{
    expect("And", "\"And\"");
    expect("android", "\"android\"");
    expect("ORDER", "\"ORDER\"");
    expect("nothing", "\"nothing\"");
    expect("\"AND\"", "\"AND\"");
    expect("or:1", "or:1");
}

Test(parse, names_the_byte_at_fault)
{
    expect_error("(a", 0);
    expect_error("a)", 1);
    expect_error("()", 1);
    expect_error("a AND", 5);
    expect_error("a OR ", 5);
    expect_error("AND a", 0);
    expect_error("a OR OR b", 5);
    expect_error("NOT", 3);
    expect_error("\"abc", 0);
    expect_error("x \"a\\qb\"", 4);
    expect_error("\"\\x4\"", 1);
    expect_error("\"\"", 0);
    expect_error("~\"\"", 1);
    expect_error("level:", 6);
    expect_error("level: x", 6);
    expect_error("level=", 6);
    expect_error("size>", 5);
    expect_error("size:[1 2]", 8);
    expect_error("size:[..]", 5);
    expect_error("size:[1..2", 10);
    expect_error("size:[1..2]x", 11);
    expect_error("type:()", 5);
    expect_error("type:(a", 5);
    expect_error("type:(>1)", 6);
    expect_error("\"\":1", 0);
}

Test(parse, bounds_nesting_with_an_error)
{
    char text[1024];
    struct lahar_buffer out;
    lahar_error error;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    memset(text, '(', 200);
    text[200] = 'a';
    memset(text + 201, ')', 200);
    cr_expect_eq(parse(text, 401, &out, &error), LAHAR_OK);
    memset(text, '(', 201);
    cr_expect_eq(parse(text, 201, &out, &error), LAHAR_INVALID);
    cr_expect_eq(error.offset, 200);
    memset(text, '!', 1000);
    cr_expect_eq(parse(text, 1000, &out, &error), LAHAR_INVALID);
    cr_expect_eq(error.offset, 200);
    lahar_buffer_deinit(&out);
}

Test(parse, takes_a_hundred_thousand_terms)
{
    struct lahar_buffer text;
    struct lahar_buffer out;
    lahar_error error;
    lahar_buffer_init(&text, &lahar_allocator_libc);
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_buffer_put(&text, "f:(", 3);
    for (int i = 0; i < 100000; i++) {
        lahar_buffer_put(&text, "abc ", 4);
    }
    lahar_buffer_put(&text, ")", 1);
    cr_expect_eq(parse((const char *)text.data, text.size, &out, &error), LAHAR_OK);
    cr_expect_eq(out.size, 100000 * 5 + 99999 * 4);
    lahar_buffer_deinit(&out);
    lahar_buffer_deinit(&text);
}

/* --- random queries ----------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void put(struct lahar_buffer *out, const char *text)
{
    lahar_buffer_put(out, text, strlen(text));
}

/* Writes a query with needless parentheses and spellings. */
static void generate(struct lahar_buffer *out, uint64_t *state, int depth)
{
    static const char *const leaves[] = {
        "a",
        "\"b c\"",
        "level:ERROR",
        "f=x",
        "f!=\"y z\"",
        "f~sub",
        "f~=\"Sub\"",
        "size>=20KiB",
        "size:[1..5]",
        "size:[1..5)",
        "time:[..now)",
        "f:*",
        "f:a*b?",
        "type:(A B \"C\")",
        "last:5m",
        "\"my x\":1",
        "~\"s s\"",
        "12:30",
        "attr.q=\"\"",
        "x*",
        "\"\\x01\\xfe\\\"\"",
        "f:\"[a\"",
        "*",
        "f<=@5ms",
        "f=(1 2*)",
        "f!=*",
        "f!=[a*",
        "-",
    };
    const uint64_t choice = next_random(state) % 10;
    if (depth == 0 || choice < 4) {
        put(out, leaves[next_random(state) % (sizeof leaves / sizeof leaves[0])]);
        put(out, " ");
        return;
    }
    static const char *const joints[] = {" ", " AND ", " OR ", " || ", " && "};
    if (choice < 6) {
        static const char *const negations[] = {"NOT ", "!", "-", "not "};
        put(out, negations[next_random(state) % 4]);
        put(out, "(");
        generate(out, state, depth - 1);
        put(out, ")");
        return;
    }
    const bool is_group = choice < 8;
    put(out, is_group ? "(" : "");
    const uint64_t count = 1 + next_random(state) % 3;
    for (uint64_t i = 0; i < count; i++) {
        put(out, i == 0 ? "" : joints[next_random(state) % 5]);
        generate(out, state, depth - 1);
    }
    put(out, is_group ? ")" : "");
}

static bool is_same_tree(const struct lahar_query_node *a, const struct lahar_query_node *b)
{
    for (; a != NULL && b != NULL; a = a->next, b = b->next) {
        const bool is_same_value =
            a->value.size == b->value.size &&
            (a->value.size == 0 || memcmp(a->value.data, b->value.data, a->value.size) == 0);
        if (a->kind != b->kind || a->op != b->op || a->has_name != b->has_name ||
            a->is_pattern != b->is_pattern || !is_same_value || a->name.size != b->name.size ||
            a->low.is_given != b->low.is_given || a->high.is_given != b->high.is_given ||
            !is_same_tree(a->child, b->child)) {
            return false;
        }
    }
    return a == NULL && b == NULL;
}

Test(parse, gives_the_same_tree_from_its_canonical_form)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    struct lahar_buffer text;
    struct lahar_buffer first;
    struct lahar_buffer second;
    lahar_buffer_init(&text, &lahar_allocator_libc);
    lahar_buffer_init(&first, &lahar_allocator_libc);
    lahar_buffer_init(&second, &lahar_allocator_libc);
    for (int i = 0; i < 5000; i++) {
        struct lahar_arena arena;
        struct lahar_query_node *tree = NULL;
        struct lahar_query_node *again = NULL;
        lahar_error error = {0};
        lahar_arena_init(&arena, &lahar_allocator_libc, 0);
        lahar_buffer_clear(&text);
        lahar_buffer_clear(&first);
        lahar_buffer_clear(&second);
        generate(&text, &state, 5);
        cr_assert_eq(lahar_query_parse((const char *)text.data, text.size, &arena, &tree, &error),
                     LAHAR_OK, "%.*s: %s", (int)text.size, (const char *)text.data, error.message);
        lahar_query_print(tree, &first);
        cr_assert_eq(
            lahar_query_parse((const char *)first.data, first.size, &arena, &again, &error),
            LAHAR_OK, "%.*s: %s", (int)first.size, (const char *)first.data, error.message);
        lahar_query_print(again, &second);
        cr_assert(is_same_tree(tree, again), "%.*s", (int)first.size, (const char *)first.data);
        cr_assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        lahar_arena_deinit(&arena);
    }
    lahar_buffer_deinit(&second);
    lahar_buffer_deinit(&first);
    lahar_buffer_deinit(&text);
}

Test(parse, survives_arbitrary_bytes)
{
    static const char alphabet[] = "ab1 \"\\()[]:=!~<>*?/.,-&|xNOTANDOR@\n\xc3\xff";
    uint64_t state = 88172645463325252;
    struct lahar_buffer out;
    struct lahar_buffer again;
    lahar_error error;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_buffer_init(&again, &lahar_allocator_libc);
    for (int i = 0; i < 200000; i++) {
        /* Of exact size, so that a read beyond the end is seen. */
        const size_t size = next_random(&state) % 24;
        char *text = malloc(size + 1);
        for (size_t j = 0; j < size; j++) {
            text[j] = alphabet[next_random(&state) % (sizeof alphabet - 1)];
        }
        char *exact = size == 0 ? NULL : malloc(size);
        if (size != 0) {
            memcpy(exact, text, size);
        }
        const lahar_status status = parse(exact, size, &out, &error);
        if (status == LAHAR_OK) {
            cr_assert_eq(parse((const char *)out.data, out.size, &again, &error), LAHAR_OK,
                         "%.*s: canonical form %.*s: %s", (int)size, text, (int)out.size,
                         (const char *)out.data, error.message);
            cr_assert(again.size == out.size && memcmp(again.data, out.data, out.size) == 0, "%.*s",
                      (int)size, text);
        } else {
            cr_assert_eq(status, LAHAR_INVALID);
            cr_assert_leq(error.offset, size);
        }
        free(exact);
        free(text);
    }
    lahar_buffer_deinit(&again);
    lahar_buffer_deinit(&out);
}

/* --- memory -------------------------------------------------------------------- */

struct failing {
    int left;
};

static void *failing_resize(void *context, void *memory, size_t size)
{
    struct failing *failing = context;
    return failing->left-- <= 0 ? NULL : realloc(memory, size);
}

static void *failing_allocate(void *context, size_t size)
{
    return failing_resize(context, NULL, size);
}

static void failing_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

Test(parse, reports_each_refused_allocation)
{
    static const char text[] = "\"a\\n\" (f:(x y) OR NOT g:[1..\"2\"]) last:5m ~\"z\"";
    lahar_status status = LAHAR_NO_MEMORY;
    for (int count = 0; status == LAHAR_NO_MEMORY; count++) {
        struct failing failing = {count};
        const lahar_allocator allocator = {failing_allocate, failing_resize, failing_release,
                                           &failing};
        struct lahar_arena arena;
        struct lahar_query_node *root = NULL;
        lahar_error error = {0};
        lahar_arena_init(&arena, &allocator, 64);
        status = lahar_query_parse(text, sizeof text - 1, &arena, &root, &error);
        cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY);
        cr_assert_eq(status == LAHAR_OK, root != NULL);
        lahar_arena_deinit(&arena);
    }
}

Test(parse, takes_regular_expressions)
{
    expect("f:/a.b/", "f~/a.b/");
    expect("f~/a.b/i", "f~/a.b/i");
    expect("~/a|b/", "~/a|b/");
    expect("f:/x y (z|w)/", "f~/x y (z|w)/");
    expect("(f:/a(b)c/)", "f~/a(b)c/");
    expect("f:/a\\/b/", "f~/a\\/b/");
    expect("f:/a/b/", "f~/a\\/b/");
    expect("f:/\\\\\\d/i x", "f~/\\\\\\d/i AND \"x\"");
    expect("f:/\"q\"/", "f~/\"q\"/");
    expect("f:(/a/ /b c/i d)", "f~/a/ OR f~/b c/i OR f:d");
    expect("f:(/a,b/,c)", "f~/a,b/ OR f:c");
    expect("NOT f:/a/", "NOT f~/a/");
}

Test(parse, leaves_paths_alone)
{
    expect("path:/var/log", "path:\"/var/log\"");
    expect("path:/var/log AND x:/a/b", "path:\"/var/log\" AND x:\"/a/b\"");
    expect("path~/var/log/x", "path~\"/var/log/x\"");
    expect("path:\"/var/log/\"", "path:\"/var/log/\"");
    expect("path=/var/log/", "path=\"/var/log/\"");
    expect("path~=/var/", "path~=\"/var/\"");
    expect("/var/log/", "\"/var/log/\"");
}
