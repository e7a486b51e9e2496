/* The inside of lahar_export: without a store, for its tests. */
#ifndef LAHAR_FORMAT_EXPORT_H
#define LAHAR_FORMAT_EXPORT_H

#include "engine/event/schema.h"
#include "engine/format/table.h"
#include "engine/provenance/fields.h"
#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/ingest.h"

struct lahar_export {
    const lahar_allocator *allocator;
    const struct lahar_schema_catalog *catalog;
    struct lahar_arena arena;
    struct lahar_buffer out;
    struct lahar_buffer path;
    struct lahar_buffer header; /* of the table that is being written */
    struct lahar_table_parser table;
    struct lahar_prov_fields provenance; /* of the stream below */
    uint32_t provenance_stream;          /* LAHAR_ANY_STREAM: not looked up yet */
};

lahar_status lahar_export_create(const lahar_allocator *allocator,
                                 const struct lahar_schema_catalog *catalog,
                                 struct lahar_export **export_out, lahar_error *error);

/* Appends the event's fields as a JSON object to export_->out. */
lahar_status lahar_export_put_fields(struct lahar_export *export_, const lahar_event *event,
                                     lahar_error *error);

#endif
