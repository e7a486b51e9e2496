/* Appending events: a batch is staged in memory of its own, then claimed,
 * copied and published as a whole. */
#ifndef LAHAR_APPEND_H
#define LAHAR_APPEND_H

#include "lahar/event.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Staging memory for one producer, reused from batch to batch: after the
 * largest batch has been seen, appending allocates nothing. One thread at a
 * time; threads that append each have their own. */
typedef struct lahar_batch lahar_batch;

LAHAR_API LAHAR_NODISCARD lahar_status lahar_batch_create(lahar_store *store,
                                                          lahar_batch **batch_out,
                                                          lahar_error *error);
LAHAR_API void lahar_batch_destroy(lahar_batch *batch); /* NULL is allowed */

/* Encodes one event into the batch; it is copied. LAHAR_TOO_BIG: the event is
 * above LAHAR_EVENT_SIZE_MAX or the batch above min(64 MiB, a quarter of the
 * write memory); LAHAR_INVALID: unknown stream or field, or a value whose type
 * is not the field's. The batch is unchanged on failure. No blocking. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_batch_add(lahar_batch *batch, const lahar_event *event,
                                                       lahar_error *error);

/* Records, in the same batch, how far a source is consumed: opaque to the
 * store, kept under (source, key), replaced by later batches, committed with
 * this batch's events or not at all. An empty value forgets the key. A batch may
 * hold offsets and no events. Copied. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_batch_add_offset(lahar_batch *batch,
                                                              lahar_bytes source, lahar_bytes key,
                                                              lahar_bytes value,
                                                              lahar_error *error);

LAHAR_API size_t lahar_batch_event_count(const lahar_batch *batch);
LAHAR_API size_t lahar_batch_size(const lahar_batch *batch); /* encoded bytes */
LAHAR_API void lahar_batch_clear(lahar_batch *batch);

typedef struct lahar_append_options {
    size_t struct_size;
    lahar_durability durability; /* STORE: as the store */
    uint64_t deadline_ns;        /* for memory and, under COMMIT, for stable storage */
} lahar_append_options;

/* Appends the batch's events under consecutive ids, the first of which is
 * stored in *first_id_out (may be NULL), and clears it. The events are visible
 * to every read that starts afterwards, under COMMIT also durable. options NULL:
 * as the store, LAHAR_WAIT_FOREVER. No lock and no allocation; blocks only
 * for memory (back-pressure) and under COMMIT.
 * LAHAR_BUSY (LAHAR_NO_WAIT) or LAHAR_TIMEOUT: no memory in time, nothing was
 * appended, the batch is kept, as after every failure that appended nothing.
 * Under COMMIT, LAHAR_TIMEOUT with *first_id_out != 0: appended and visible, not
 * yet durable. LAHAR_POISONED with *first_id_out != 0: appended, will not become
 * durable. LAHAR_NO_SPACE, LAHAR_READ_ONLY, LAHAR_CLOSED. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_batch_commit(lahar_batch *batch,
                                                          const lahar_append_options *options,
                                                          uint64_t *first_id_out,
                                                          lahar_error *error);

/* One event by itself: the batch must be empty (LAHAR_INVALID); same rules. After a failure with
 * *id_out == 0 the batch holds the event, if it could be encoded: lahar_batch_commit tries
 * again, lahar_batch_clear gives it up. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_append(lahar_batch *batch, const lahar_event *event,
                                                    const lahar_append_options *options,
                                                    uint64_t *id_out, lahar_error *error);

/* Calls visit for every (key, value) recorded under source, in key order, as
 * of the newest batch, all whose append has returned included; bytes are valid
 * during the call. visit returning other than LAHAR_OK ends the walk with that
 * status. LAHAR_BUSY, LAHAR_NO_MEMORY. Any thread. */
typedef lahar_status (*lahar_offset_visitor)(void *context, lahar_bytes key, lahar_bytes value);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_offset_visit(lahar_store *store, lahar_bytes source,
                                                          lahar_offset_visitor visit, void *context,
                                                          lahar_error *error);

#ifdef __cplusplus
}
#endif
#endif
