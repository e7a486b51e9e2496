#include "tools/content_option.h"

#include <stdlib.h>
#include <string.h>

#include "tools/complain.h"

bool content_option_take(struct content_option *option, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        complain("--content: '%s' is not NAME=DIR", text);
        return false;
    }
    char *copy = strdup(text);
    lahar_container *larger =
        realloc(option->containers, (option->count + 1) * sizeof *option->containers);
    if (larger != NULL) {
        option->containers = larger;
    }
    if (copy == NULL || larger == NULL) {
        complain("out of memory");
        free(copy);
        return false;
    }
    copy[equals - text] = '\0';
    larger[option->count++] =
        (lahar_container){.name = copy, .directory = copy + (equals - text) + 1};
    return true;
}

void content_option_free(struct content_option *option)
{
    for (size_t i = 0; i < option->count; i++) {
        /* The name is where the copy begins. */
        free((void *)(uintptr_t)option->containers[i].name);
    }
    free(option->containers);
    *option = (struct content_option){.containers = NULL};
}
