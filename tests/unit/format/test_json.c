/* The JSON tokenizer against hand-made cases and, in pieces, against itself whole. */
#include "engine/format/json.h"
#include "engine/format/utf8.h"
#include "text_fixture.h"

static enum lahar_json_result check(const char *text, size_t size)
{
    struct lahar_json_parser parser;
    lahar_json_parser_init(&parser, &lahar_allocator_libc);
    /* A copy of exact size, so that a read beyond the end is seen. */
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, text, size);
    copy = realloc(copy, size == 0 ? 1 : size);
    const enum lahar_json_result result = lahar_json_check(&parser, copy, size);
    free(copy);
    lahar_json_parser_deinit(&parser);
    return result;
}

Test(json, accepts_what_the_grammar_allows)
{
    static const char *const good[] = {"0",
                                       "-0",
                                       "-0.0e+10",
                                       "1E5",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       " [ 1 , {\"a\" : null } ]\r\n",
                                       "\"\\u0000\\ud800\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                       "true",
                                       "false",
                                       "null",
                                       "\"\x7f\xff\"",
                                       "{\"a\":1,\"a\":2}",
                                       "12345678901234567890123"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert_eq(check(good[i], strlen(good[i])), LAHAR_JSON_DONE, "%s", good[i]);
    }
}

Test(json, refuses_everything_else)
{
    static const char *const bad[] = {"",          " ",          "-",
                                      "01",        "+1",         "1.",
                                      ".5",        "1e",         "1e+",
                                      "0x1",       "NaN",        "tru",
                                      "truee",     "nul",        "\"",
                                      "\"\\\"",    "\"\\x\"",    "\"\\u12g4\"",
                                      "\"\\u12\"", "\"a\nb\"",   "[1,]",
                                      "[,1]",      "[1 2]",      "{\"a\"}",
                                      "{\"a\":}",  "{\"a\":1,}", "{a:1}",
                                      "{1:1}",     "[",          "{",
                                      "]",         "}",          "[}",
                                      "{]",        "{\"a\":1]",  "1 2",
                                      "{}{}",      "'a'",        "\xef\xbb\xbf{}",
                                      "[1]x",      "\"\x1f\""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(check(bad[i], strlen(bad[i])), LAHAR_JSON_BAD, "%s", bad[i]);
    }
    cr_assert_eq(check("[\0]", 3), LAHAR_JSON_BAD);
}

Test(json, nests_512_levels_and_no_more)
{
    char text[2 * 513];
    memset(text, '[', 513);
    memset(text + 513, ']', 513);
    cr_assert_eq(check(text + 1, 1024), LAHAR_JSON_DONE);
    cr_assert_eq(check(text, 1026), LAHAR_JSON_BAD);
}

Test(json, gives_the_same_tokens_whatever_the_pieces)
{
    static const char text[] = "{\"k\\u0041\":[1.5e3,true,null,\"a long string that crosses the "
                               "sixteen byte steps \\\\ \\\" end\"],\"o\":{\"x\":-12}}";
    const size_t size = sizeof text - 1;
    struct lahar_json_parser whole;
    struct lahar_json_parser parts;
    lahar_json_parser_init(&whole, &lahar_allocator_libc);
    lahar_json_parser_init(&parts, &lahar_allocator_libc);
    cr_assert_eq(lahar_json_parse(&whole, (const uint8_t *)text, size, true), LAHAR_JSON_DONE);
    for (size_t first = 1; first < size; first++) {
        for (size_t second = first; second < size; second++) {
            const size_t ends[] = {first, second, size};
            enum lahar_json_result result = LAHAR_JSON_MORE;
            lahar_json_parser_reset(&parts);
            for (size_t i = 0; i < 3; i++) {
                /* Each piece at another address. */
                uint8_t *copy = malloc(ends[i]);
                memcpy(copy, text, ends[i]);
                cr_assert_eq(result, LAHAR_JSON_MORE);
                result = lahar_json_parse(&parts, copy, ends[i], i == 2);
                free(copy);
            }
            cr_assert_eq(result, LAHAR_JSON_DONE);
            cr_assert_eq(parts.token_count, whole.token_count);
            for (size_t i = 0; i < whole.token_count; i++) {
                const struct lahar_json_token *a = &whole.tokens[i];
                const struct lahar_json_token *b = &parts.tokens[i];
                cr_assert(a->offset == b->offset && a->size == b->size && a->end == b->end &&
                          a->kind == b->kind && a->flags == b->flags);
            }
        }
    }
    lahar_json_parser_deinit(&whole);
    lahar_json_parser_deinit(&parts);
}

static void expect_unescaped(const char *text, const char *expected, bool expected_lossy)
{
    uint8_t out[64];
    bool is_lossy = !expected_lossy;
    const size_t size = lahar_json_unescape((const uint8_t *)text, strlen(text), out, &is_lossy);
    cr_assert_eq(size, strlen(expected), "%s", text);
    cr_assert_arr_eq(out, expected, size);
    cr_assert_eq(is_lossy, expected_lossy, "%s", text);
}

Test(json, resolves_escapes)
{
    expect_unescaped("plain", "plain", false);
    expect_unescaped("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", false);
    expect_unescaped("\\u0041\\u00e9\\u20AC", "A\xc3\xa9\xe2\x82\xac", false);
    expect_unescaped("\\ud83d\\ude00", "\xf0\x9f\x98\x80", false);
    expect_unescaped("\\udbff\\udfff", "\xf4\x8f\xbf\xbf", false);
    expect_unescaped("a\\ud83dz", "a\xef\xbf\xbdz", true);
    expect_unescaped("\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd", true);
    expect_unescaped("\\ud83d\\u0041",
                     "\xef\xbf\xbd"
                     "A",
                     true);
    expect_unescaped("\\ud83d\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80", true);
}

Test(json, writes_strings_that_are_valid_or_exact)
{
    struct lahar_buffer buffer;
    const char *value = "q\" b\\ \x01\n\xc3\xa9 \xff\xe2\x82 \xed\xa0\x80 z";
    lahar_buffer_init(&buffer, &lahar_allocator_libc);
    lahar_json_put_string(&buffer, (lahar_bytes){value, strlen(value)}, true);
    lahar_buffer_put_u8(&buffer, 0);
    /* E2 82 is one replacement, ED A0 80 (a surrogate) is three. */
    cr_assert_str_eq((const char *)buffer.data,
                     "\"q\\\" b\\\\ \\u0001\\n\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd "
                     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd z\"");
    lahar_buffer_clear(&buffer);
    lahar_json_put_string(&buffer, (lahar_bytes){"\xff\x00\x7f", 3}, false);
    cr_assert_eq(buffer.size, 10);
    cr_assert_arr_eq(buffer.data, "\"\xff\\u0000\x7f\"", 10);
    lahar_buffer_deinit(&buffer);
}

Test(utf8, knows_well_formed_sequences)
{
    static const struct {
        const char *bytes;
        size_t size;
        size_t sequence;
        size_t bad;
    } cases[] = {
        {"a", 1, 1, 1},
        {"\xc3\xa9", 2, 2, 2},
        {"\xc0\xaf", 2, 0, 1},
        {"\xe0\x80\x80", 3, 0, 1},
        {"\xed\xa0\x80", 3, 0, 1},
        {"\xef\xbf\xbf", 3, 3, 3},
        {"\xf0\x9f\x98", 3, 0, 3},
        {"\xf4\x90\x80\x80", 4, 0, 1},
        {"\xf4\x8f\xbf\xbf", 4, 4, 4},
        {"\xf5\x80\x80\x80", 4, 0, 1},
        {"\x80", 1, 0, 1},
        {"\xe2\x82\x41", 3, 0, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint8_t *p = (const uint8_t *)cases[i].bytes;
        cr_assert_eq(lahar_utf8_sequence(p, p + cases[i].size), cases[i].sequence, "case %zu", i);
        cr_assert_eq(lahar_utf8_bad_size(p, p + cases[i].size), cases[i].bad, "case %zu", i);
    }
}
