/* Records of NiFi's event files, each of which carries the schema that it was written by.
 *
 * A schema is a tree of fields with a name, a type and a repetition; a record has their values in
 * that order, without names, all numbers big-endian. docs/nifi.md gives the layout. Any bytes are
 * safe: what a value claims to need is compared with the bytes that are left before it is believed.
 */
#ifndef LAHAR_PROVENANCE_NIFI_RECORD_H
#define LAHAR_PROVENANCE_NIFI_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/arena.h"
#include "io/base/bytes.h"
#include "lahar/event.h"

enum lahar_nifi_type {
    LAHAR_NIFI_INT,
    LAHAR_NIFI_LONG,
    LAHAR_NIFI_BOOLEAN,
    LAHAR_NIFI_BYTE_ARRAY,
    LAHAR_NIFI_STRING,      /* u16 size, Java's UTF-8 */
    LAHAR_NIFI_LONG_STRING, /* u32 size, UTF-8 */
    LAHAR_NIFI_MAP,         /* u32 count; its two fields are key and value */
    LAHAR_NIFI_COMPLEX,     /* its fields, one behind the other */
    LAHAR_NIFI_UNION        /* the name of one of its fields, then that */
};

enum lahar_nifi_repetition {
    LAHAR_NIFI_ONCE,
    LAHAR_NIFI_OPTIONAL, /* a byte before it: 0 absent, 1 there */
    LAHAR_NIFI_REPEATED  /* a u32 before them: how many */
};

struct lahar_nifi_field {
    lahar_bytes name;
    enum lahar_nifi_type type;
    enum lahar_nifi_repetition repetition;
    const struct lahar_nifi_field *fields; /* of MAP, COMPLEX and UNION */
    uint32_t field_count;
};

/* A value as it stands in a record. */
struct lahar_nifi_value {
    const struct lahar_nifi_field *field; /* of a union: the one that was chosen */
    bool is_absent;
    int64_t number;    /* INT, LONG, BOOLEAN */
    lahar_bytes bytes; /* BYTE_ARRAY, STRING, LONG_STRING */
    /* REPEATED: each; COMPLEX: one a field; MAP: key, value, key, ...; UNION: the chosen one. */
    const struct lahar_nifi_value *items;
    uint32_t count;
};

/* A string of u16 size in Java's UTF-8, made plain UTF-8; data NULL when it does not fit in. Also
 * of a file's own head. */
lahar_bytes lahar_nifi_read_string(struct lahar_reader *reader, struct lahar_arena *arena);

/* Reads a schema as the one field, a COMPLEX, that it stands for. What it holds is in arena;
 * strings may be in the reader's bytes. LAHAR_CORRUPT, LAHAR_NO_MEMORY. */
lahar_status lahar_nifi_read_schema(struct lahar_reader *reader, struct lahar_arena *arena,
                                    struct lahar_nifi_field *schema_out, lahar_error *error);

/* Reads a record that the reader goes on behind. LAHAR_CORRUPT also when more bytes are needed. */
lahar_status lahar_nifi_read_prefix(struct lahar_reader *reader,
                                    const struct lahar_nifi_field *schema,
                                    struct lahar_arena *arena, struct lahar_nifi_value *record_out,
                                    lahar_error *error);
/* Reads a whole record: it must end where the reader does. */
lahar_status lahar_nifi_read_record(struct lahar_reader *reader,
                                    const struct lahar_nifi_field *schema,
                                    struct lahar_arena *arena, struct lahar_nifi_value *record_out,
                                    lahar_error *error);

/* The field of that name of a COMPLEX; NULL when there is none or it is absent. */
const struct lahar_nifi_value *lahar_nifi_find(const struct lahar_nifi_value *complex,
                                               const char *name);
bool lahar_nifi_is_named(const struct lahar_nifi_field *field, const char *name);

#endif
