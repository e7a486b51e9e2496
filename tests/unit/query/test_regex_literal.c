/* The literal that a regular expression needs, by hand and against PCRE2. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/query/regex_literal.h"
#include "engine/regex/regex.h"

static void expect(const char *expression, bool ignores_case, const char *literal)
{
    struct lahar_buffer out;
    lahar_buffer_init(&out, &lahar_allocator_libc);
    lahar_regex_required((lahar_bytes){expression, strlen(expression)}, ignores_case, &out);
    lahar_buffer_put_u8(&out, '\0');
    cr_expect_str_eq((const char *)out.data, literal, "%s gave %s, not %s", expression,
                     (const char *)out.data, literal);
    lahar_buffer_deinit(&out);
}

Test(regex_literal, is_the_longest_run_that_every_match_holds)
{
    expect("abc", false, "abc");
    expect("took \\d+ ms", false, "took ");
    expect("^GET /index\\.html$", false, "GET /index.html");
    expect("ab*cde", false, "cde");
    expect("abc+d", false, "abc");
    expect("ab{2,3}x", false, "a");
    expect("abc?", false, "ab");
    expect("ab{,x", false, "ab");
    expect("(foo|bar)baz", false, "baz");
    expect("(?:x)?yes", false, "yes");
    expect("(?<n>[)(]+)after", false, "after");
    expect("[]abc]d", false, "d");
    expect("[^]abc]d", false, "d");
    expect("[[:alpha:]]zz", false, "zz");
    expect("a.b..cd", false, "cd");
    expect("x+?yy*+zz", false, "zz");
    expect("caf\xc3\xa9?s", false, "caf");
    expect("caf\xc3\xa9s", false, "caf\xc3\xa9s");
    expect("caf\xc3\xa9s", true, "caf");
    expect("\\[abc\\]\\\\", false, "[abc]\\");
}

Test(regex_literal, is_empty_when_the_expression_is_not_plain)
{
    expect("", false, "");
    expect("abc|d", false, "");
    expect("(?i)abc", false, "");
    expect("(?x) a b c", false, "");
    expect("(*ANYCRLF)abc", false, "");
    expect("\\x41bc", false, "");
    expect("abc\\x41|d", false, "");
    expect("\\Qa|b\\E", false, "");
    expect("(a)\\1bc", false, "");
    expect("a(?#(|)bc", false, "");
    expect("\\d+", false, "");
    expect("abc\\Kd", false, "");
}

static uint32_t pick(uint64_t *state, uint32_t count)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 33) % count;
}

/* Random expressions over few letters, and random texts: what matches holds the literal. */
Test(regex_literal, is_in_every_text_that_matches)
{
    static const char *const pieces[] = {"a",     "b",     "ab",  "c",    ".",      "a*",    "b+",
                                         "(a|c)", "[bc]",  "\\b", "a?",   "c{0,2}", "(?:b)", "|",
                                         "\\.",   "[^a]",  "(",   ")",    "^",      "$",     "{",
                                         "\\d",   "(?=b)", "b??", "\\x61"};
    uint64_t state = 42;
    unsigned checked = 0;
    for (unsigned i = 0; i < 40000; i++) {
        char expression[64] = "";
        char text[16];
        struct lahar_regex *regex = NULL;
        struct lahar_regex_scratch scratch = {0};
        struct lahar_buffer literal;
        for (uint32_t n = 1 + pick(&state, 6); n > 0; n--) {
            strcat(expression, pieces[pick(&state, sizeof pieces / sizeof pieces[0])]);
        }
        const lahar_bytes bytes = {expression, strlen(expression)};
        if (lahar_regex_compile(bytes, 0, &lahar_allocator_libc, &regex, NULL) != LAHAR_OK) {
            continue;
        }
        lahar_buffer_init(&literal, &lahar_allocator_libc);
        lahar_regex_required(bytes, false, &literal);
        for (unsigned j = 0; j < 20; j++) {
            const size_t size = pick(&state, sizeof text);
            for (size_t k = 0; k < size; k++) {
                text[k] = "abc.{1"[pick(&state, 6)];
            }
            if (lahar_regex_match(regex, &scratch, text, size) == LAHAR_REGEX_MATCH &&
                literal.size != 0) {
                checked++;
                cr_assert_not_null(memmem(text, size, literal.data, literal.size), "%s in %.*s",
                                   expression, (int)size, text);
            }
        }
        lahar_buffer_deinit(&literal);
        lahar_regex_scratch_deinit(&scratch);
        lahar_regex_destroy(regex);
    }
    cr_assert_gt(checked, 10000);
}
