/* Sizes and numbers of the manifest file; docs/format/manifest.md is the specification. */
#ifndef LAHAR_STORE_MANIFEST_FORMAT_H
#define LAHAR_STORE_MANIFEST_FORMAT_H

#include <stdint.h>

/* File header, 48 bytes:
 *   0  8  magic
 *   8  2  version
 *  10  2  header size
 *  12  4  required features: a reader that does not know a bit refuses the file
 *  16  8  store id
 *  24  8  manifest number, as in the file's name
 *  32  8  snapshot size: bytes behind the header that were complete when the file
 *         got its name
 *  40  4  reserved, 0
 *  44  4  CRC-32C of bytes 0 .. 43 */
#define LAHAR_MANIFEST_MAGIC "LAHARMAN"
enum {
    LAHAR_MANIFEST_VERSION = 1,
    LAHAR_MANIFEST_HEADER_SIZE = 48,
    LAHAR_MANIFEST_KNOWN_FEATURES = 0,
};

/* A change: the records that take effect together. 16 bytes, then the records:
 *   0  4  CRC-32C of bytes 4 .. end, begun with the CRC-32C of header bytes 16 .. 31
 *   4  4  size of the records
 *   8  8  sequence number, rising by one */
enum {
    LAHAR_MANIFEST_CHANGE_HEADER_SIZE = 16,
    LAHAR_MANIFEST_CHANGE_SIZE_MAX = 1 << 30,
};

/* A record: 1 byte type, 4 bytes size of the payload, payload. A reader passes over
 * an unknown type with bit 7 set and refuses the file at any other. */
enum {
    LAHAR_MANIFEST_RECORD_HEADER_SIZE = 5,
    LAHAR_MANIFEST_IGNORABLE = 0x80,
};

enum lahar_manifest_record_type {
    LAHAR_MANIFEST_FIELD = 1,         /* u32 field id, name */
    LAHAR_MANIFEST_STREAM = 2,        /* u32 stream id, u32 schema, sized name, fields */
    LAHAR_MANIFEST_SESSION_BEGIN = 3, /* u64 session, u64 first id */
    LAHAR_MANIFEST_SESSION_END = 4,   /* u64 session, u64 end id */
    LAHAR_MANIFEST_CEILING = 5,       /* u64 id: ids at or above were never handed out */
    LAHAR_MANIFEST_FILE = 6,          /* one event file with its shard */
    LAHAR_MANIFEST_ROLLED = 7,        /* u64 id: events below are in the event files */
    LAHAR_MANIFEST_FILE_NUMBER = 8,   /* u64: file numbers below may have been used */
    LAHAR_MANIFEST_OFFSETS = 9,       /* offset records */
    LAHAR_MANIFEST_LIMITS = 10,       /* u32 stream, u64 bytes, u64 age in ns: retention */
    LAHAR_MANIFEST_REMOVE = 11,       /* u64 file number: the file is no longer part of the store */
    LAHAR_MANIFEST_DROPPED = 12,      /* what retention has dropped of a stream so far */
    LAHAR_MANIFEST_CLOCK = 13,        /* the age clock: engine/store/age_clock.h */
    LAHAR_MANIFEST_REPLACE = 14,      /* other event files, or shards, for the same events */
    LAHAR_MANIFEST_DIRECTORY = 15,    /* u32 number, sized name, path: event files may be there */
    LAHAR_MANIFEST_LOST = 16,         /* u64 first id, u64 end id: durable once, gone */
};

enum {
    LAHAR_MANIFEST_FIELD_NOT_INDEXED = 1, /* flag of a stream's field */
    LAHAR_MANIFEST_FILE_HAS_SHARD = 1,    /* flag of a file */
    LAHAR_MANIFEST_FILE_SIZE = 148,       /* bytes of a FILE payload */
};

#endif
