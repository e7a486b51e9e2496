/* The hidden field _framing: what stands around a record in its file and is not
 * part of the record's value. docs/formats.md has the layout. */
#ifndef LAHAR_FORMAT_FRAMING_H
#define LAHAR_FORMAT_FRAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/buffer.h"
#include "lahar/event.h"

/* Flags: the first byte of the field. */
enum {
    LAHAR_FRAMING_BOM = 1,   /* a UTF-8 byte order mark before everything */
    LAHAR_FRAMING_CR = 2,    /* CR before the LF */
    LAHAR_FRAMING_NO_LF = 4, /* the record ended with the file */
    LAHAR_FRAMING_NUL = 8,   /* varint: NUL bytes before the text */
    LAHAR_FRAMING_PREFIX = 16 /* varint size, bytes before the record */,
    LAHAR_FRAMING_SUFFIX = 32 /* varint size, bytes behind it in place of the LF */,
    LAHAR_FRAMING_ALL = 63
};

struct lahar_framing {
    uint8_t flags;
    uint64_t nul_count;
    lahar_bytes prefix;
    lahar_bytes suffix;
};

/* Appends the field's value; nothing for a record that ends with a plain LF. */
void lahar_framing_encode(const struct lahar_framing *framing, struct lahar_buffer *buffer);
/* False when the bytes are not a framing. */
bool lahar_framing_decode(lahar_bytes value, struct lahar_framing *framing_out);

/* Appends what stands before and behind the record. False when the NUL bytes
 * are more than an event's file could hold, as only damage makes them. */
bool lahar_framing_put_before(const struct lahar_framing *framing, struct lahar_buffer *buffer);
void lahar_framing_put_behind(const struct lahar_framing *framing, struct lahar_buffer *buffer);

#endif
