/* The inside of lahar_export: without a store, for its tests. */
#ifndef LAHAR_FORMAT_EXPORT_H
#define LAHAR_FORMAT_EXPORT_H

#include "engine/event/schema.h"
#include "engine/format/columns.h"
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
    lahar_store *store;                  /* knows the columns of streams; NULL: there are none */
    struct lahar_columns columns;        /* of the stream below */
    uint32_t columns_stream;             /* LAHAR_ANY_STREAM: not looked up yet */
    struct lahar_buffer used;            /* fields of the document that is written */
    struct lahar_prov_fields provenance; /* of the stream below */
    uint32_t provenance_stream;          /* LAHAR_ANY_STREAM: not looked up yet */
};

lahar_status lahar_export_create(const lahar_allocator *allocator,
                                 const struct lahar_schema_catalog *catalog,
                                 struct lahar_export **export_out, lahar_error *error);

/* Appends the values of columns to the JSON object that export_->out ends with: of a document those
 * that it does not have itself, and what is computed as it is shown. */
lahar_status lahar_export_put_columns(struct lahar_export *export_, const lahar_event *event,
                                      bool is_document, lahar_error *error);

/* Appends the event's fields as a JSON object to export_->out. */
lahar_status lahar_export_put_fields(struct lahar_export *export_, const lahar_event *event,
                                     lahar_error *error);

#endif
