/* How far one content of one file is consumed, and what that content looked like: the
 * value of an offset record, committed with the records that it covers. */
#ifndef LAHAR_FOLLOW_FILE_CURSOR_H
#define LAHAR_FOLLOW_FILE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/follow/fingerprint.h"
#include "io/base/buffer.h"
#include "lahar/event.h"
#include "lahar/status.h"

enum {
    LAHAR_CURSOR_KEY_SIZE = 8,
    LAHAR_CURSOR_ERROR_SIZE = 160 /* bytes of the last error's text */
};

enum lahar_text_encoding {
    LAHAR_ENCODING_UNKNOWN = 0, /* the first bytes have not been seen */
    LAHAR_ENCODING_BYTES = 1,   /* UTF-8 or whatever else: lines end with the byte LF */
    LAHAR_ENCODING_UTF16LE = 2,
    LAHAR_ENCODING_UTF16BE = 3,
    LAHAR_ENCODING_UTF32LE = 4,
    LAHAR_ENCODING_UTF32BE = 5
};

enum lahar_cursor_flag {
    LAHAR_CURSOR_CLOSED = 1,    /* no more will be read of it */
    LAHAR_CURSOR_LONG_LINE = 2, /* inside a line above the limit, which began at long_start */
    LAHAR_CURSOR_GZIP = 4,      /* offsets count decoded bytes */
    LAHAR_CURSOR_COPY = 8,      /* a copy of predecessor, not begun before that has ended */
    LAHAR_CURSOR_STUCK = 16     /* STOP: in front of a record that cannot be parsed */
};

struct lahar_file_cursor {
    uint64_t generation;  /* never used again in this store */
    uint64_t predecessor; /* generation that this one follows; 0: none */
    uint64_t device;
    uint64_t inode;
    int64_t birth_ns;      /* 0: not known */
    uint8_t boot_id[16];   /* at the last commit */
    uint64_t offset;       /* bytes: everything before it is consumed */
    uint64_t line;         /* number, from 1, of the line at offset */
    uint64_t first_offset; /* where reading of this content began */
    uint64_t first_line;
    uint64_t long_start;   /* byte; with LONG_LINE */
    uint64_t record_count; /* delivered */
    uint64_t error_count;  /* could not be parsed, or were passed over */
    uint64_t gap_size;     /* bytes that may have been lost in front of this content */
    uint64_t size_seen;    /* bytes: the largest size of this content */
    int64_t mtime_ns;      /* as last seen */
    int64_t changed_ns;    /* realtime of the last commit */
    uint32_t flags;        /* enum lahar_cursor_flag */
    uint8_t encoding;      /* enum lahar_text_encoding */
    uint8_t text_flags;    /* of the parser's position */
    int64_t last_error_ns; /* realtime */
    char last_error[LAHAR_CURSOR_ERROR_SIZE]; /* terminated */
    struct lahar_fingerprint print;
};

/* Big-endian, so that newer generations sort behind older ones. */
void lahar_cursor_key(uint64_t generation, uint8_t key_out[LAHAR_CURSOR_KEY_SIZE]);

void lahar_file_cursor_encode(const struct lahar_file_cursor *cursor, const char *path,
                              struct lahar_buffer *buffer);
/* Any bytes are safe: LAHAR_CORRUPT, LAHAR_UNSUPPORTED. *path_out points into value and is not
 * terminated. */
lahar_status lahar_file_cursor_decode(lahar_bytes key, lahar_bytes value,
                                      struct lahar_file_cursor *cursor_out, lahar_bytes *path_out,
                                      lahar_error *error);

#endif
