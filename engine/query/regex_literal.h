/* What a regular expression cannot match without. */
#ifndef LAHAR_QUERY_REGEX_LITERAL_H
#define LAHAR_QUERY_REGEX_LITERAL_H

#include <stdbool.h>

#include "io/base/buffer.h"
#include "lahar/event.h"

/* Replaces out by the longest run of bytes that every match of the expression is sure to hold,
 * case ignored where the expression ignores it; empty when none is known. The expression
 * compiles. */
void lahar_regex_required(lahar_bytes expression, bool ignores_case, struct lahar_buffer *out);

#endif
