/* Columns of a stream that expressions fill: DEFAULT where a record has no value of its own,
 * MATERIALIZED always, both when the record is read; ALIAS when the event is shown.
 *
 * What a stream has of them is one offset record, committed like events: under the name
 * lahar.columns and the stream's as key
 *
 *   u8 version 1, varint count, and of each u8 kind, u8 type, varint size and the name, varint size
 *   and the expression */
#ifndef LAHAR_FORMAT_COLUMNS_H
#define LAHAR_FORMAT_COLUMNS_H

#include "engine/event/schema.h"
#include "engine/format/expression.h"
#include "engine/format/record.h"
#include "io/base/buffer.h"
#include "lahar/columns.h"

#define LAHAR_COLUMNS_KEY "lahar.columns"

enum {
    LAHAR_COLUMNS_MAX = 256
};

struct lahar_column {
    lahar_column_kind kind;
    lahar_type type;
    uint32_t field; /* UINT32_MAX: an ALIAS */
    bool is_time;   /* the event's time is taken from it */
    lahar_bytes name;
    struct lahar_expression *expression; /* owned */
};

struct lahar_columns {
    struct lahar_column *columns; /* owned */
    size_t count;
    struct lahar_buffer text; /* names lie in it */
    const lahar_allocator *allocator;
};

/* Compiles definitions as they are stored. LAHAR_CORRUPT. The set starts zeroed. */
lahar_status lahar_columns_load(struct lahar_columns *columns, lahar_bytes stored,
                                const struct lahar_schema_catalog *catalog, uint32_t stream,
                                const char *time_field, const lahar_allocator *allocator,
                                lahar_error *error);
/* The same, from the store; none when the stream has none. */
lahar_status lahar_columns_find(struct lahar_columns *columns, lahar_store *store, uint32_t stream,
                                const char *time_field, lahar_error *error);
void lahar_columns_deinit(struct lahar_columns *columns);

/* Whether a name is that of a MATERIALIZED column, which no record fills itself. */
bool lahar_columns_materialize(const struct lahar_columns *columns, uint32_t field);

bool lahar_columns_have_default(const struct lahar_columns *columns, uint32_t field);

/* Adds to the record what is computed when it is read. False when memory is refused. */
bool lahar_columns_fill(struct lahar_columns *columns, const struct lahar_schema_catalog *catalog,
                        struct lahar_record *record);

/* The value of a column for an event that is shown. NULL type (0): it has none. False when memory
 * is refused. */
bool lahar_column_show(struct lahar_column *column, const struct lahar_schema_catalog *catalog,
                       const lahar_event *event, struct lahar_arena *arena, lahar_value *value_out);

#endif
