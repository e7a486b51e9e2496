/* Columns that expressions fill. */
#ifndef LAHAR_COLUMNS_H
#define LAHAR_COLUMNS_H

#include "lahar/event.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lahar_column_kind {
    LAHAR_COLUMN_DEFAULT = 1,      /* where a record that is ingested or followed has no value */
    LAHAR_COLUMN_MATERIALIZED = 2, /* always, whatever the record says */
    LAHAR_COLUMN_ALIAS = 3         /* not stored: computed when an event is shown as JSON */
} lahar_column_kind;

typedef struct lahar_column_spec {
    const char *name; /* DEFAULT and MATERIALIZED: a field that the stream declares */
    lahar_type type;  /* of an ALIAS; of a declared field its own */
    lahar_column_kind kind;
    const char *expression; /* docs/formats.md */
} lahar_column_spec;

/* Gives a stream these columns in place of those it had; durable when it returns. They hold for
 * what is ingested and followed from then on, and for every event that is shown from then on.
 * Events that are appended directly are as their author made them. LAHAR_INVALID: an expression
 * that is none, the message says where; a field that is not declared, or of a type that no
 * expression gives (lists and maps). LAHAR_NOT_FOUND: no such stream. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_stream_set_columns(lahar_store *store,
                                                                const char *stream,
                                                                const lahar_column_spec *columns,
                                                                size_t count, lahar_error *error);

/* Whether the column's expression is one, without a stream. LAHAR_INVALID. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_column_check(const lahar_column_spec *column,
                                                          lahar_error *error);

/* A status other than LAHAR_OK ends the walk and is returned. Strings are valid during the call. */
typedef lahar_status (*lahar_column_visitor)(void *context, const lahar_column_spec *column);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_stream_columns(lahar_store *store, const char *stream,
                                                            lahar_column_visitor visit,
                                                            void *context, lahar_error *error);

#ifdef __cplusplus
}
#endif
#endif
