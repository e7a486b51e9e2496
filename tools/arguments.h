/* Reading a verb's arguments.
 *
 * getopt would take an EXPR such as "-level:DEBUG" for options. Here an argument
 * is an option when it begins with "--", or is '-' and a letter that the verb
 * knows, alone or with a number behind it; everything else is positional, and
 * "--" ends the options. Options may stand before and behind positionals. */
#ifndef LAHAR_TOOLS_ARGUMENTS_H
#define LAHAR_TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lahar/lahar.h"
#include "tools/exit_status.h"

struct option_spec {
    const char *name; /* without the dashes; NULL ends a table */
    int id;           /* a letter is also the short form */
    bool takes_value;
};

/* Ids of options without a short form begin here. */
enum {
    OPTION_FIRST = 256
};

/* Besides ids, arguments_next returns these. */
enum {
    ARGUMENT_END = -1,
    ARGUMENT_POSITIONAL = -2,
    ARGUMENT_WRONG = -3 /* said so on standard error */
};

struct arguments {
    int count;
    char **items; /* items[0] is the verb */
    const struct option_spec *specs;
    int next;
    bool options_ended;
    const char *value; /* of the option, or the positional argument, last returned */
};

int arguments_next(struct arguments *arguments);

/* Each prints what is wrong with text, given to option, and returns false. */
bool parse_number(const char *option, const char *text, uint64_t *number_out);
bool parse_durability(const char *text, lahar_durability *durability_out);

#endif
