/* A gzip file as the bytes that it holds: read at any offset of the decoded content.
 *
 * Offsets behind the last one are reached by decoding on; those up to 32 KiB before it come from
 * the window, those behind the kept offset from a checkpoint; earlier ones by decoding from the
 * start again. A file that is still being written ends where its data end, and goes on from there
 * when there are more, be it within a member or with another one. Any bytes are safe. */
#ifndef LAHAR_FOLLOW_GZIP_STREAM_H
#define LAHAR_FOLLOW_GZIP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/status.h"

struct lahar_gzip_stream;

lahar_status lahar_gzip_stream_create(const lahar_allocator *allocator,
                                      struct lahar_gzip_stream **stream_out, lahar_error *error);
void lahar_gzip_stream_destroy(struct lahar_gzip_stream *stream); /* NULL is allowed */

/* Whether the first two bytes of a file are gzip's. */
static inline bool lahar_is_gzip(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

/* *read_out is smaller than size where the data end for now. LAHAR_CORRUPT: what follows
 * cannot be decoded; *read_out bytes before it are good. */
lahar_status lahar_gzip_stream_read(struct lahar_gzip_stream *stream, int descriptor,
                                    uint64_t offset, void *data, size_t size, size_t *read_out,
                                    lahar_error *error);
/* No offset of the content below this one is going to be read but by chance. */
void lahar_gzip_stream_keep(struct lahar_gzip_stream *stream, uint64_t offset);
/* Whether the last read has met the end of a complete member. */
bool lahar_gzip_stream_is_complete(const struct lahar_gzip_stream *stream);
/* Compressed bytes that were read since the stream was made: what all reads together have cost. */
uint64_t lahar_gzip_stream_pulled(const struct lahar_gzip_stream *stream);
size_t lahar_gzip_stream_memory(const struct lahar_gzip_stream *stream);

#endif
