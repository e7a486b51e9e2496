/* UTF-16 and UTF-32 to UTF-8, line by line. */
#ifndef LAHAR_FOLLOW_TRANSCODE_H
#define LAHAR_FOLLOW_TRANSCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/follow/file_cursor.h"
#include "io/base/buffer.h"

/* Bytes of one unit: 1, 2 or 4. */
size_t lahar_encoding_unit(enum lahar_text_encoding encoding);

/* By the byte order mark at the start of a file; *mark_size_out: bytes of a mark that is not
 * UTF-8's. UNKNOWN: more bytes are needed, unless is_last. */
enum lahar_text_encoding lahar_encoding_detect(const uint8_t *data, size_t size, bool is_last,
                                               size_t *mark_size_out);

/* Bytes up to and with the first line end, a whole number of units; 0 when there is none. */
size_t lahar_encoding_line_size(enum lahar_text_encoding encoding, const uint8_t *data,
                                size_t size);

/* Appends data as UTF-8; what is not a character becomes U+FFFD, also an incomplete end. */
void lahar_encoding_put_utf8(enum lahar_text_encoding encoding, const uint8_t *data, size_t size,
                             struct lahar_buffer *out);

#endif
