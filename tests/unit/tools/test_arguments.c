/* Options, expressions that look like options, and the end of options. */
#include <stdio.h>

#include <criterion/criterion.h>

#include "tools/arguments.h"

static const struct option_spec SPECS[] = {
    {"limit", 'n', true}, {"json", OPTION_FIRST, false},       {"from", OPTION_FIRST + 1, true},
    {"help", 'h', false}, {"from-id", OPTION_FIRST + 2, true}, {NULL, 0, false},
};

/* Reads all of a line of words and writes what was understood: "n=5 json =STORE ...". */
static void understand(const char *const *words, int count, char *out, size_t out_size)
{
    char *items[16];
    items[0] = (char[]){"verb"};
    for (int i = 0; i < count; i++) {
        items[i + 1] = (char *)(uintptr_t)words[i];
    }
    struct arguments arguments = {.count = count + 1, .items = items, .specs = SPECS};
    size_t size = 0;
    int option = 0;
    out[0] = '\0';
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        const char *name = "?";
        for (const struct option_spec *spec = SPECS; spec->name != NULL; spec++) {
            if (spec->id == option) {
                name = spec->name;
            }
        }
        if (option == ARGUMENT_WRONG) {
            (void)snprintf(out + size, out_size - size, "wrong");
            return;
        }
        const char *value = arguments.value == NULL ? "" : arguments.value;
        size += (size_t)snprintf(out + size, out_size - size, "%s%s=%s", size == 0 ? "" : " ",
                                 option == ARGUMENT_POSITIONAL ? "" : name, value);
    }
}

#define EXPECT(expected, ...)                                                                      \
    do {                                                                                           \
        const char *const words[] = {__VA_ARGS__};                                                 \
        char out[256];                                                                             \
        understand(words, (int)(sizeof words / sizeof words[0]), out, sizeof out);                 \
        cr_assert_str_eq(out, expected, "understood: %s", out);                                    \
    } while (0)

Test(arguments, reads_options_in_every_form)
{
    EXPECT("limit=5 limit=6 limit=7 limit=8 json=", "-n", "5", "-n6", "--limit", "7", "--limit=8",
           "--json");
}

Test(arguments, takes_an_expression_that_begins_with_a_dash)
{
    EXPECT("=STORE =-level:DEBUG json=", "STORE", "-level:DEBUG", "--json");
    EXPECT("=STORE =-nothing limit=3", "STORE", "-nothing", "-n3");
    EXPECT("=-", "-");
}

Test(arguments, ends_options_at_two_dashes)
{
    EXPECT("=STORE =-n =5 =--json", "STORE", "--", "-n", "5", "--json");
}

Test(arguments, takes_a_value_that_begins_with_a_dash)
{
    EXPECT("limit=-5 =STORE", "--limit", "-5", "STORE");
}

Test(arguments, completes_a_name_only_when_it_is_the_only_one)
{
    EXPECT("limit=1", "--lim", "1");
    EXPECT("from=1", "--from", "1");
    EXPECT("wrong", "--fro", "1");
}

Test(arguments, refuses_what_it_does_not_know)
{
    EXPECT("wrong", "--colour");
    EXPECT("wrong", "--limit");
    EXPECT("wrong", "--json=yes");
}

Test(arguments, numbers_are_whole_and_fit)
{
    uint64_t number = 0;
    cr_assert(parse_number("-n", "18446744073709551615", &number));
    cr_assert_eq(number, UINT64_MAX);
    cr_assert_not(parse_number("-n", "18446744073709551616", &number));
    cr_assert_not(parse_number("-n", "-1", &number));
    cr_assert_not(parse_number("-n", " 1", &number));
    cr_assert_not(parse_number("-n", "1x", &number));
    cr_assert_not(parse_number("-n", "", &number));
}
