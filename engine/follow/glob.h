/* Patterns of paths.
 *
 *   *        any letters but '/'          ?        one of them
 *   [a-c!]   one of these; [!..] or [^..] one of the others
 *   **       as a whole part: any number of directories, none included
 *   {a,b}    one of these texts, which may be patterns, nested
 *   {3..12}  one of these numbers; {03..12} with leading zeros
 *   \x       the letter x itself
 *
 * Names that begin with '.' are only matched by a pattern part that begins with '.'.
 * Alternatives are written out when the pattern is made, at most LAHAR_GLOB_COUNT_MAX. */
#ifndef LAHAR_FOLLOW_GLOB_H
#define LAHAR_FOLLOW_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "io/base/allocator.h"
#include "lahar/status.h"

enum {
    LAHAR_GLOB_COUNT_MAX = 1000
};

/* Without alternatives: each is a terminated path pattern. */
struct lahar_glob {
    char **patterns; /* owned */
    size_t count;
    const lahar_allocator *allocator;
};

lahar_status lahar_glob_create(struct lahar_glob *glob, const lahar_allocator *allocator,
                               const char *text, lahar_error *error);
void lahar_glob_destroy(struct lahar_glob *glob);

/* Whether text has a letter that makes it a pattern. */
bool lahar_glob_is_pattern(const char *text, size_t size);
/* One part (no '/') against one name. */
bool lahar_glob_match_part(const char *part, size_t part_size, const char *name);
/* A whole path. */
bool lahar_glob_match_path(const char *pattern, const char *path);

#endif
