/* Regular expressions: what they find, and what they may cost. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/regex/regex.h"
#include "failing_allocator.h"
#include "io/base/error.h"

static lahar_bytes bytes(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

static enum lahar_regex_result find(const char *expression, unsigned flags, const char *text)
{
    struct lahar_regex *regex = NULL;
    struct lahar_regex_scratch scratch = {0};
    lahar_error error = {0};
    cr_assert_eq(
        lahar_regex_compile(bytes(expression), flags, &lahar_allocator_libc, &regex, &error),
        LAHAR_OK, "%s", error.message);
    const enum lahar_regex_result result = lahar_regex_match(regex, &scratch, text, strlen(text));
    lahar_regex_scratch_deinit(&scratch);
    lahar_regex_destroy(regex);
    return result;
}

Test(regex, finds_its_expression_anywhere)
{
    cr_expect_eq(find("b+", 0, "abbc"), LAHAR_REGEX_MATCH);
    cr_expect_eq(find("^b", 0, "abbc"), LAHAR_REGEX_NO_MATCH);
    cr_expect_eq(find("", 0, ""), LAHAR_REGEX_MATCH);
    cr_expect_eq(find("B", 0, "abbc"), LAHAR_REGEX_NO_MATCH);
    cr_expect_eq(find("B", LAHAR_REGEX_IGNORE_CASE, "abbc"), LAHAR_REGEX_MATCH);
}

Test(regex, reads_text_as_characters_or_as_bytes)
{
    cr_expect_eq(find("^.$", 0, "\xc3\xa9"), LAHAR_REGEX_MATCH);
    cr_expect_eq(find("^.$", LAHAR_REGEX_BYTES, "\xc3\xa9"), LAHAR_REGEX_NO_MATCH);
    cr_expect_eq(find("\xc3\x89", LAHAR_REGEX_IGNORE_CASE, "\xc3\xa9"), LAHAR_REGEX_MATCH);
    cr_expect_eq(find("x", 0, "\xff\xfe x"), LAHAR_REGEX_MATCH, "around what is not UTF-8");
    cr_expect_eq(find("^..x", LAHAR_REGEX_BYTES, "\xff\xfex"), LAHAR_REGEX_MATCH);
}

Test(regex, gives_groups_by_number_and_name)
{
    static const char text[] = "key=value";
    struct lahar_regex *regex = NULL;
    struct lahar_regex_scratch scratch = {0};
    lahar_bytes part;
    cr_assert_eq(lahar_regex_compile(bytes("(?<key>\\w+)=(\\w+)(?<more>;.*)?"), 0,
                                     &lahar_allocator_libc, &regex, NULL),
                 LAHAR_OK);
    cr_expect_eq(lahar_regex_group_count(regex), 3);
    cr_expect_eq(lahar_regex_group_name(regex, 1).size, 3);
    cr_expect_eq(lahar_regex_group_name(regex, 2).size, 0);
    cr_expect_arr_eq(lahar_regex_group_name(regex, 3).data, "more", 4);
    cr_assert_eq(lahar_regex_match(regex, &scratch, text, strlen(text)), LAHAR_REGEX_MATCH);
    cr_expect(lahar_regex_group(&scratch, text, 2, &part));
    cr_expect_eq(part.size, 5);
    cr_expect_eq(part.data, text + 4);
    cr_expect_not(lahar_regex_group(&scratch, text, 3, &part));
    cr_expect_not(lahar_regex_group(&scratch, text, 4, &part));
    lahar_regex_scratch_deinit(&scratch);
    lahar_regex_destroy(regex);
}

Test(regex, names_the_byte_at_fault)
{
    struct lahar_regex *regex = NULL;
    lahar_error error = {0};
    cr_expect_eq(lahar_regex_compile(bytes("ab[c"), 0, &lahar_allocator_libc, &regex, &error),
                 LAHAR_INVALID);
    cr_expect_eq(error.offset, 4);
    cr_expect_neq(strstr(error.message, "missing terminating ]"), NULL);
    cr_expect_eq(lahar_regex_compile(bytes("\xff"), 0, &lahar_allocator_libc, &regex, &error),
                 LAHAR_INVALID);
    cr_expect_eq(lahar_regex_compile(bytes("a\\C"), 0, &lahar_allocator_libc, &regex, &error),
                 LAHAR_INVALID);
    cr_expect_null(regex);
}

Test(regex, refuses_expressions_that_are_too_large)
{
    struct lahar_regex *regex = NULL;
    lahar_error error = {0};
    char *large = calloc(1, LAHAR_REGEX_SIZE_MAX + 2);
    cr_assert_not_null(large);
    memset(large, 'a', LAHAR_REGEX_SIZE_MAX + 1);
    cr_expect_eq(lahar_regex_compile(bytes(large), 0, &lahar_allocator_libc, &regex, &error),
                 LAHAR_INVALID);
    cr_expect_eq(error.offset, LAHAR_REGEX_SIZE_MAX);
    free(large);
    lahar_error_clear(&error);
    cr_expect_eq(lahar_regex_compile(bytes("(((a{1000}){1000}){1000}){1000}"), 0,
                                     &lahar_allocator_libc, &regex, &error),
                 LAHAR_INVALID);
    cr_expect_neq(strstr(error.message, "too large"), NULL, "%s", error.message);
}

Test(regex, gives_up_on_text_that_takes_too_many_steps)
{
    char text[2001];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cr_expect_eq(find("^(a+)+$", 0, text), LAHAR_REGEX_MATCH);
    text[sizeof text - 2] = 'b';
    cr_expect_eq(find("^(a+)+$", 0, text), LAHAR_REGEX_TOO_COSTLY);
    cr_expect_eq(find("^(a|a)*$", 0, text), LAHAR_REGEX_TOO_COSTLY);
}

Test(regex, fails_cleanly_without_memory)
{
    for (uint64_t refused = 0;; refused++) {
        struct failing_allocator failing;
        struct lahar_regex *regex = NULL;
        struct lahar_regex_scratch scratch = {0};
        failing_allocator_init(&failing, refused);
        const lahar_status status =
            lahar_regex_compile(bytes("(a+)(b|c)*"), 0, &failing.allocator, &regex, NULL);
        enum lahar_regex_result result = LAHAR_REGEX_NO_MEMORY;
        if (status == LAHAR_OK) {
            result = lahar_regex_match(regex, &scratch, "xaabc", 5);
            cr_expect(result == LAHAR_REGEX_MATCH || result == LAHAR_REGEX_NO_MEMORY);
        } else {
            cr_expect_eq(status, LAHAR_NO_MEMORY);
        }
        lahar_regex_scratch_deinit(&scratch);
        lahar_regex_destroy(regex);
        cr_assert_eq(failing.live_count, 0);
        if (failing.refused_count == 0) {
            cr_expect_eq(result, LAHAR_REGEX_MATCH);
            cr_expect_gt(refused, 4);
            break;
        }
    }
}
