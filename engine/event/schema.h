/* The names of a store: interned field names and streams with their fields.
 *
 * Both only grow. Readers need no lock: an id handed out stays valid, names and
 * types never change (a stream may gain fields). Writers are serialised by the store, which
 * makes each change durable in the manifest before publishing it here. */
#ifndef LAHAR_EVENT_SCHEMA_H
#define LAHAR_EVENT_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"
#include "lahar/event.h"
#include "lahar/store.h"

struct lahar_schema_catalog; /* owned by the store */

struct lahar_stream_field {
    uint32_t field; /* interned name */
    lahar_type type;
    bool is_indexed;
    bool is_hidden;
};

/* Immutable once published, never moved; a change publishes a new one. */
struct lahar_stream {
    uint32_t id;
    lahar_schema schema;
    const char *name;
    uint32_t field_count;
    const struct lahar_stream_field *fields; /* sorted by field id */
    uint32_t ordinal_count;
    const uint16_t *ordinals; /* place in fields by field id; see lahar_stream_ordinal */
};

enum {
    LAHAR_ORDINAL_NONE = 0xffff
};

/* Place of a field among the stream's fields, LAHAR_ORDINAL_NONE when not declared. */
static inline uint32_t lahar_stream_ordinal(const struct lahar_stream *stream, uint32_t field)
{
    return field < stream->ordinal_count ? stream->ordinals[field] : LAHAR_ORDINAL_NONE;
}

lahar_status lahar_schema_catalog_create(const lahar_allocator *allocator,
                                         struct lahar_schema_catalog **catalog_out,
                                         lahar_error *error);
void lahar_schema_catalog_destroy(struct lahar_schema_catalog *catalog);

/* Interns a name: the existing id or the next one. The built-in names of
 * enum lahar_field are there from the start. LAHAR_BUSY beyond LAHAR_FIELD_COUNT_MAX. */
lahar_status lahar_schema_intern(struct lahar_schema_catalog *catalog, const char *name,
                                 size_t name_size, uint32_t *field_out, lahar_error *error);
uint32_t lahar_schema_field_count(const struct lahar_schema_catalog *catalog);
/* NULL when unknown. */
const char *lahar_schema_field_name(const struct lahar_schema_catalog *catalog, uint32_t field);
bool lahar_schema_find_field(const struct lahar_schema_catalog *catalog, const char *name,
                             size_t name_size, uint32_t *field_out);

/* Names of streams: letters, digits, '_', '-', '.', not beginning with '.' or '-'. Names
 * of fields: UTF-8 without control characters; a declared field is not called id,
 * time, arrival or stream, nor begins with "attr." or "prev.". A field of the schema
 * may be declared again with its type, to take it out of the index.
 *
 * Checks a specification, adds the schema's built-in fields, interns the
 * names, and publishes the stream under the next id. LAHAR_EXISTS with
 * *stream_out set. */
lahar_status lahar_schema_add_stream(struct lahar_schema_catalog *catalog,
                                     const lahar_stream_spec *spec, uint32_t *stream_out,
                                     lahar_error *error);
uint32_t lahar_schema_stream_count(const struct lahar_schema_catalog *catalog);
/* NULL when unknown; valid as long as the catalog. */
const struct lahar_stream *lahar_schema_stream(const struct lahar_schema_catalog *catalog,
                                               uint32_t stream);
const struct lahar_stream *lahar_schema_find_stream(const struct lahar_schema_catalog *catalog,
                                                    const char *name, size_t name_size);
/* NULL when the stream does not declare the field. */
const struct lahar_stream_field *lahar_stream_find_field(const struct lahar_stream *stream,
                                                         uint32_t field);

#endif
