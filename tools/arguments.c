#include "tools/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/complain.h"

/* The spec of "--name", "--name=value" or an unambiguous beginning of a name. */
static const struct option_spec *find_long(const struct option_spec *specs, const char *name)
{
    const size_t size = strcspn(name, "=");
    const struct option_spec *found = NULL;
    for (const struct option_spec *spec = specs; spec->name != NULL; spec++) {
        if (strncmp(spec->name, name, size) != 0) {
            continue;
        }
        if (spec->name[size] == '\0') {
            return spec;
        }
        if (found != NULL) {
            return NULL;
        }
        found = spec;
    }
    return size == 0 ? NULL : found;
}

/* The spec when text is '-' and a known letter, alone or with digits for its value. */
static const struct option_spec *find_short(const struct option_spec *specs, const char *text)
{
    for (const struct option_spec *spec = specs; spec->name != NULL; spec++) {
        if (spec->id != text[1] || text[1] == '\0') {
            continue;
        }
        const char *rest = text + 2;
        if (*rest == '\0' || (spec->takes_value && rest[strspn(rest, "0123456789")] == '\0')) {
            return spec;
        }
    }
    return NULL;
}

/* value: what is attached to the option itself, or NULL. */
static int take_option(struct arguments *arguments, const struct option_spec *spec,
                       const char *value)
{
    arguments->value = value;
    if (!spec->takes_value) {
        if (value != NULL) {
            complain("%s: --%s takes no value", arguments->items[0], spec->name);
            return ARGUMENT_WRONG;
        }
        return spec->id;
    }
    if (value == NULL) {
        if (arguments->next == arguments->count) {
            complain("%s: --%s needs a value", arguments->items[0], spec->name);
            return ARGUMENT_WRONG;
        }
        arguments->value = arguments->items[arguments->next++];
    }
    return spec->id;
}

int arguments_next(struct arguments *arguments)
{
    if (arguments->next == 0) {
        arguments->next = 1;
    }
    if (arguments->next == arguments->count) {
        return ARGUMENT_END;
    }
    char *text = arguments->items[arguments->next++];
    arguments->value = text;
    if (arguments->options_ended || text[0] != '-') {
        return ARGUMENT_POSITIONAL;
    }
    if (text[1] == '-') {
        if (text[2] == '\0') {
            arguments->options_ended = true;
            return arguments_next(arguments);
        }
        const struct option_spec *spec = find_long(arguments->specs, text + 2);
        if (spec == NULL) {
            complain("%s: unknown option %s", arguments->items[0], text);
            return ARGUMENT_WRONG;
        }
        const char *equals = strchr(text, '=');
        return take_option(arguments, spec, equals == NULL ? NULL : equals + 1);
    }
    const struct option_spec *spec = find_short(arguments->specs, text);
    if (spec == NULL) {
        return ARGUMENT_POSITIONAL;
    }
    return take_option(arguments, spec, text[2] == '\0' ? NULL : text + 2);
}

bool parse_number(const char *option, const char *text, uint64_t *number_out)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        complain("%s: '%s' is not a number", option, text);
        return false;
    }
    *number_out = number;
    return true;
}

bool parse_durability(const char *text, lahar_durability *durability_out)
{
    static const char *const NAMES[] = {"none", "interval", "commit"};
    static const lahar_durability VALUES[] = {LAHAR_DURABILITY_NONE, LAHAR_DURABILITY_INTERVAL,
                                              LAHAR_DURABILITY_COMMIT};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(text, NAMES[i]) == 0) {
            *durability_out = VALUES[i];
            return true;
        }
    }
    complain("--durability: '%s' is none of none, interval, commit", text);
    return false;
}
