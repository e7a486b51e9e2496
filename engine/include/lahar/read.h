/* Reading by id: get and scan. Search is in lahar/query.h. */
#ifndef LAHAR_READ_H
#define LAHAR_READ_H

#include "lahar/event.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A walk over events as they stood when it was opened: the snapshot keeps
 * files and memory alive until close. One thread at a time. */
typedef struct lahar_cursor lahar_cursor;

/* The events of the given ids, in the order given; ids that do not exist are
 * passed over. ids are copied. LAHAR_BUSY: events were still being published
 * for longer than the bound of 1 s; the call may be repeated. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_get(lahar_store *store, const uint64_t *ids,
                                                 size_t id_count, lahar_cursor **cursor_out,
                                                 lahar_error *error);

/* Whether the caller's user may see an event; what it hides is left out of results and counts
 * as if it were not there. Called from the thread that reads, or one that works for it; must not
 * call back into the store. */
typedef bool (*lahar_authorize)(void *context, const lahar_event *event);

typedef struct lahar_scan_options {
    size_t struct_size;
    uint64_t from_id; /* inclusive */
    uint64_t to_id;   /* exclusive; 0: up to the snapshot */
    uint32_t stream;  /* LAHAR_ANY_STREAM: all; set by lahar_scan_options_init */
    bool newest_first;
    lahar_authorize authorize; /* NULL: everything may be seen */
    void *authorize_context;
} lahar_scan_options;

LAHAR_API void lahar_scan_options_init(lahar_scan_options *options);

/* All events of an id range in id order. options NULL: everything. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_scan(lahar_store *store,
                                                  const lahar_scan_options *options,
                                                  lahar_cursor **cursor_out, lahar_error *error);

/* The next event, owned by the cursor until its next call or close.
 * LAHAR_NOT_FOUND: the end. LAHAR_CORRUPT: one block cannot be read, error names
 * its ids; the next call goes on behind it. May read from disk. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_cursor_next(lahar_cursor *cursor,
                                                         const lahar_event **event_out,
                                                         lahar_error *error);
LAHAR_API void lahar_cursor_close(lahar_cursor *cursor); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
