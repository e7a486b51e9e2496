/* Typed values as text, in both directions.
 *
 * Every type has one canonical text; a value whose source is written otherwise
 * ("007", "1.50", a uuid in capitals) is marked, so that its text is kept apart and
 * the record can be given back exactly. Independent of the process's locale. */
#ifndef LAHAR_FORMAT_VALUE_TEXT_H
#define LAHAR_FORMAT_VALUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/buffer.h"
#include "lahar/event.h"

/* Converts text into a scalar of value_out->type; strings point to text. False when the text is
 * not of that type. *is_canonical_out: lahar_value_put_text gives the same text. */
bool lahar_value_parse(lahar_bytes text, lahar_value *value_out, bool *is_canonical_out);

/* Appends the canonical text of a scalar; nothing for null, lists and maps. */
void lahar_value_put_text(struct lahar_buffer *buffer, const lahar_value *value);

bool lahar_uuid_parse(lahar_bytes text, lahar_uuid *uuid_out, bool *is_canonical_out);
void lahar_uuid_put_text(struct lahar_buffer *buffer, const lahar_uuid *uuid);

/* Digits of the shortest fraction in steps of three that holds the time. */
unsigned lahar_time_fraction_digits(int64_t time_ns);

/* The shortest text that reads back as the same double, "nan", "inf" or "-inf". */
void lahar_f64_put_text(struct lahar_buffer *buffer, double value);

void lahar_base64_put(struct lahar_buffer *buffer, lahar_bytes bytes);

#endif
