/* --content NAME=DIR, which content and replay take any number of times. */
#ifndef LAHAR_TOOLS_CONTENT_OPTION_H
#define LAHAR_TOOLS_CONTENT_OPTION_H

#include "lahar/lahar.h"
#include "tools/exit_status.h"

struct content_option {
    lahar_container *containers; /* owned, with their strings */
    size_t count;
};

/* Prints what is wrong with text. */
bool content_option_take(struct content_option *option, const char *text);
void content_option_free(struct content_option *option);

#endif
