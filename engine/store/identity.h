/* The identity file LAHAR: marks a directory as a store, says which format it has and
 * which store it is. Written once, when the store is complete; docs/format/manifest.md. */
#ifndef LAHAR_STORE_IDENTITY_H
#define LAHAR_STORE_IDENTITY_H

#include <stdint.h>

#include "io/io.h"

/* 64 bytes:
 *   0  8  magic "LAHAR\r\n\x1a"
 *   8  2  version
 *  10  2  size of the structure, 64
 *  12  4  required features: a library that does not know a bit refuses the store
 *  16  4  optional features: an unknown bit is passed over
 *  20  16 uuid of the store
 *  36  8  time of creation, ns since the epoch
 *  44  16 reserved, 0
 *  60  4  CRC-32C of bytes 0 .. 59 */
#define LAHAR_IDENTITY_MAGIC "LAHAR\r\n\x1a"
#define LAHAR_IDENTITY_NAME  "LAHAR"
enum {
    LAHAR_IDENTITY_VERSION = 1,
    LAHAR_IDENTITY_SIZE = 64,
    LAHAR_IDENTITY_KNOWN_FEATURES = 0
};

struct lahar_identity {
    uint8_t uuid[16];
    uint64_t store_id; /* the first eight bytes of the uuid, little-endian */
    int64_t created_ns;
};

/* LAHAR_NOT_FOUND: no such file; LAHAR_UNSUPPORTED; LAHAR_CORRUPT. */
lahar_status lahar_identity_read(struct lahar_io *io, const char *directory,
                                 struct lahar_identity *identity_out, lahar_error *error);
/* Writes the file so that it is either there whole and durable, or not at all. */
lahar_status lahar_identity_write(struct lahar_io *io, const char *directory,
                                  const struct lahar_identity *identity, lahar_error *error);
/* A new identity. is_random false derives it from the clock alone. */
lahar_status lahar_identity_make(struct lahar_io *io, bool is_random,
                                 struct lahar_identity *identity_out, lahar_error *error);

#endif
