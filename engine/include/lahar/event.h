/* The event model: typed values, events as given to append and as read back.
 *
 * Strings are pointer and size, not terminated; values are bytes and are
 * never normalised. Null, empty and absent are three different things: an
 * absent field has no lahar_value, a null one has is_null set, an empty one
 * has size or count 0. */
#ifndef LAHAR_EVENT_H
#define LAHAR_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lahar/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An event with its values, as encoded, is at most this many bytes (design
 * limit: it must fit a jumbo block of its own). */
enum {
    LAHAR_EVENT_SIZE_MAX = 64 * 1024 * 1024
};
enum {
    LAHAR_NAME_SIZE_MAX = 255
}; /* bytes of a field or stream name */
enum {
    LAHAR_FIELD_COUNT_MAX = 65535
}; /* distinct declared field names in a store */
enum {
    LAHAR_STREAM_COUNT_MAX = 4096
};

/* Values are pinned: they are written to disk. */
typedef enum lahar_type {
    LAHAR_KEYWORD = 1, /* bytes compared whole */
    LAHAR_TEXT = 2,    /* bytes searched by token */
    LAHAR_UUID = 3,    /* 16 bytes */
    LAHAR_I64 = 4,
    LAHAR_U64 = 5,
    LAHAR_F64 = 6,
    LAHAR_BOOL = 7,
    LAHAR_TIME = 8,  /* int64, nanoseconds since 1970-01-01T00:00:00Z */
    LAHAR_BYTES = 9, /* opaque: stored, not searched by token */
    LAHAR_LIST_UUID = 10,
    LAHAR_LIST_KEYWORD = 11,
    LAHAR_MAP = 12 /* keyword -> keyword or null; a key may repeat (an array) */
} lahar_type;

typedef struct lahar_bytes {
    const void *data; /* may be NULL when size is 0 */
    size_t size;      /* bytes */
} lahar_bytes;

typedef struct lahar_uuid {
    uint8_t bytes[16]; /* in the order in which they are printed */
} lahar_uuid;

typedef struct lahar_pair {
    lahar_bytes key;
    lahar_bytes value;
    bool is_null; /* null = "removed": value is ignored */
} lahar_pair;

typedef struct lahar_value {
    uint32_t field; /* id of the field's name, from lahar_field_id */
    lahar_type type;
    bool is_null;
    union {
        lahar_bytes bytes; /* KEYWORD, TEXT, BYTES */
        lahar_uuid uuid;
        int64_t i64;
        uint64_t u64;
        double f64;
        bool boolean;
        int64_t time_ns;
        struct {
            const lahar_uuid *items;
            size_t count;
        } uuids;
        struct {
            const lahar_bytes *items;
            size_t count;
        } keywords;
        struct {
            const lahar_pair *items;
            size_t count;
        } map;
    } as;
} lahar_value;

/* Passed as time_ns to take the event's time from its arrival. */
#define LAHAR_TIME_OF_ARRIVAL INT64_MIN

/* One event. For append: the caller owns everything it points to, which is
 * read during the call only; id, arrival_ns and is_durable are ignored. From
 * a cursor: the cursor owns it, valid until its next call or its close.
 * At most one value a field. */
typedef struct lahar_event {
    uint64_t id;
    int64_t time_ns;    /* event time, ns since the epoch, UTC */
    int64_t arrival_ns; /* when the store took it; never falls as ids rise */
    uint32_t stream;
    bool is_durable;
    const lahar_value *values;
    size_t value_count;
} lahar_event;

/* Fields present in every store under a fixed id. Names beginning with '_'
 * are filled by ingest; the last two hold what a line or document needs to be
 * given back exactly and are neither shown nor searched. */
typedef enum lahar_field {
    LAHAR_FIELD_MESSAGE = 0,    /* "message" TEXT */
    LAHAR_FIELD_LEVEL = 1,      /* "level" KEYWORD */
    LAHAR_FIELD_ATTRIBUTES = 2, /* "attributes" MAP: undeclared names */
    LAHAR_FIELD_FILENAME = 3,   /* "_filename" KEYWORD: base name of the source file */
    LAHAR_FIELD_OFFSET = 4,     /* "_offset" U64: byte at which the record starts */
    LAHAR_FIELD_RAW_RECORD = 5, /* "_raw_record" TEXT: the record's own bytes */
    LAHAR_FIELD_ERROR = 6,      /* "_error" TEXT: why the record could not be parsed */
    LAHAR_FIELD_FRAMING = 7,    /* "_framing" BYTES: what was stripped around a line */
    LAHAR_FIELD_SHAPE = 8,      /* "_shape" KEYWORD: document skeleton or header record */
    LAHAR_FIELD_PREVIOUS = 9    /* "previous_attributes" MAP, searched as prev.X */
} lahar_field;

#ifdef __cplusplus
}
#endif
#endif
