/* The query handles that are open in a store: how many there may be, which they are, and what
 * becomes of those that nobody uses.
 *
 * A call that works on a query claims it (begin, end); a query with a time of expiry that was
 * unclaimed for so long is emptied by whoever sweeps: the snapshot it pins would hold back files
 * and memory. Its handle stays until it is closed, and refuses. Any thread; the lock is innermost
 * but for what the release of a snapshot takes. */
#ifndef LAHAR_QUERY_QUERY_REGISTRY_H
#define LAHAR_QUERY_QUERY_REGISTRY_H

#include <pthread.h>
#include <stdint.h>

#include "engine/query/query_memory.h"
#include "lahar/query.h"

struct lahar_gate; /* engine/journal/gate.h */
struct lahar_io;

struct lahar_query_registry {
    pthread_mutex_t mutex;
    struct lahar_query *first; /* the oldest */
    struct lahar_query *last;
    uint32_t open_count; /* not expired, those being opened included */
    uint32_t limit;
    uint32_t processor_count; /* asked for once: the answer costs as much as a whole look-up */
    struct lahar_query_budget budget; /* of all together; not guarded by the mutex */
    uint64_t next_id;
    uint64_t sweep_ns;          /* monotonic: when somebody is going to sweep; UINT64_MAX: never */
    struct lahar_gate *sweeper; /* signalled when that has to be sooner; NULL: nobody sweeps */
    uint64_t refused_count;
    uint64_t expired_count;
};

/* At most limit queries are open at a time. The budget is to be set before the first one. */
void lahar_query_registry_init(struct lahar_query_registry *registry, uint32_t limit);
void lahar_query_registry_deinit(struct lahar_query_registry *registry);

/* Who sweeps from now on, sleeping on the gate in between. */
void lahar_query_registry_set_sweeper(struct lahar_query_registry *registry,
                                      struct lahar_gate *sweeper);

/* Makes room for a query that is to be opened. LAHAR_BUSY: there are as many as there may be. */
lahar_status lahar_query_registry_reserve(struct lahar_query_registry *registry,
                                          struct lahar_io *io, lahar_error *error);
/* Gives the room back ... */
void lahar_query_registry_cancel(struct lahar_query_registry *registry);
/* ... or puts the query there, which gets its id. */
void lahar_query_registry_add(struct lahar_query_registry *registry, struct lahar_query *query);
void lahar_query_registry_remove(struct lahar_query_registry *registry, struct lahar_query *query);

/* Empties what has expired; returns when the next sweep is due, which may turn out to be too
 * soon, but not too late: a query that expires before signals the sweeper when it is added. */
uint64_t lahar_query_registry_sweep(struct lahar_query_registry *registry, struct lahar_io *io);

/* Claims the query. LAHAR_CLOSED: it has expired; LAHAR_BUSY: another thread is in a call. */
lahar_status lahar_query_begin(struct lahar_query *query, lahar_error *error);
/* Ends the claim, remembers a failure and passes it on. */
lahar_status lahar_query_end(struct lahar_query *query, lahar_status status, lahar_error *error);

#endif
