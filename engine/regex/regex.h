/* Regular expressions, with bounds on what they may cost. PCRE2 does the work; nothing else
 * includes it.
 *
 * A compiled expression is immutable and may be used by several threads, each with a scratch of
 * its own. */
#ifndef LAHAR_REGEX_REGEX_H
#define LAHAR_REGEX_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/event.h"
#include "lahar/status.h"

enum {
    LAHAR_REGEX_SIZE_MAX = 16 * 1024 /* bytes of an expression */
};

enum lahar_regex_flags {
    LAHAR_REGEX_IGNORE_CASE = 1,
    /* Text is bytes: '.' is one byte, and case is that of ASCII. Else it is UTF-8, in which what
     * is not valid never matches. */
    LAHAR_REGEX_BYTES = 2,
};

struct lahar_regex;

/* LAHAR_INVALID: error->offset is the byte of the expression at fault. */
lahar_status lahar_regex_compile(lahar_bytes expression, unsigned flags,
                                 const lahar_allocator *allocator, struct lahar_regex **regex_out,
                                 lahar_error *error);
void lahar_regex_destroy(struct lahar_regex *regex); /* NULL is allowed */

/* Groups are numbered from 1 in order of their opening parentheses. */
uint32_t lahar_regex_group_count(const struct lahar_regex *regex);
/* Of a group, or size 0 when it has no name. Lives as long as the expression. */
lahar_bytes lahar_regex_group_name(const struct lahar_regex *regex, uint32_t group);

/* What one thread needs to match. All zero is ready for use. */
struct lahar_regex_scratch {
    struct lahar_regex_state *state; /* owned */
};

void lahar_regex_scratch_deinit(struct lahar_regex_scratch *scratch);

enum lahar_regex_result {
    LAHAR_REGEX_NO_MATCH,
    LAHAR_REGEX_MATCH,
    LAHAR_REGEX_TOO_COSTLY, /* a limit was reached: whether the text matches is not known */
    LAHAR_REGEX_NO_MEMORY
};

/* Looks for the expression anywhere in the text. */
enum lahar_regex_result lahar_regex_match(const struct lahar_regex *regex,
                                          struct lahar_regex_scratch *scratch, const void *text,
                                          size_t size);

/* What a group took in the last match, as a part of its text; false when it took no part. */
bool lahar_regex_group(const struct lahar_regex_scratch *scratch, const void *text, uint32_t group,
                       lahar_bytes *part_out);

#endif
