/* Open query handles; see query_registry.h. */
#include "engine/query/query_registry.h"

#include <string.h>

#include "engine/journal/gate.h"
#include "engine/query/query_state.h"
#include "io/base/error.h"
#include "io/io.h"

/* Between two sweeps, however short the times of expiry are. */
#define SWEEP_NS_MIN UINT64_C(50000000)

void lahar_query_registry_init(struct lahar_query_registry *registry, uint32_t limit)
{
    *registry = (struct lahar_query_registry){.limit = limit,
                                              .processor_count = lahar_io_processor_count(),
                                              .next_id = 1,
                                              .sweep_ns = UINT64_MAX};
    (void)pthread_mutex_init(&registry->mutex, NULL);
}

void lahar_query_registry_deinit(struct lahar_query_registry *registry)
{
    (void)pthread_mutex_destroy(&registry->mutex);
}

void lahar_query_registry_set_sweeper(struct lahar_query_registry *registry,
                                      struct lahar_gate *sweeper)
{
    (void)pthread_mutex_lock(&registry->mutex);
    registry->sweeper = sweeper;
    (void)pthread_mutex_unlock(&registry->mutex);
}

/* --- expiry ---------------------------------------------------------------------- */

static bool is_over(const struct lahar_query *query, uint64_t now_ns)
{
    const uint64_t last_ns = atomic_load_explicit(&query->last_use_ns, memory_order_relaxed);
    return query->options.expire_ns != LAHAR_WAIT_FOREVER && now_ns > last_ns &&
           now_ns - last_ns > query->options.expire_ns;
}

/* With the lock held: no query can be closed meanwhile. */
static void sweep(struct lahar_query_registry *registry, uint64_t now_ns)
{
    for (struct lahar_query *query = registry->first; query != NULL; query = query->next) {
        int expected = LAHAR_QUERY_IDLE;
        if (is_over(query, now_ns) &&
            atomic_compare_exchange_strong_explicit(&query->use, &expected, LAHAR_QUERY_EXPIRED,
                                                    memory_order_acq_rel, memory_order_relaxed)) {
            lahar_query_shed(query);
            registry->open_count--;
            registry->expired_count++;
        }
    }
}

/* When the query may have to be swept. One that is in a call counts from the call's end on, which
 * is not before now. */
static uint64_t sweep_time(const struct lahar_query *query, uint64_t now_ns)
{
    const int use = atomic_load_explicit(&query->use, memory_order_relaxed);
    uint64_t from_ns = atomic_load_explicit(&query->last_use_ns, memory_order_relaxed);
    if (use == LAHAR_QUERY_EXPIRED || query->options.expire_ns >= UINT64_MAX - now_ns) {
        return UINT64_MAX;
    }
    if (use == LAHAR_QUERY_BUSY || from_ns + query->options.expire_ns < now_ns) {
        from_ns = now_ns + SWEEP_NS_MIN;
    }
    return from_ns + query->options.expire_ns + 1;
}

uint64_t lahar_query_registry_sweep(struct lahar_query_registry *registry, struct lahar_io *io)
{
    const uint64_t now_ns = io->ops->monotonic_ns(io);
    (void)pthread_mutex_lock(&registry->mutex);
    sweep(registry, now_ns);
    uint64_t next_ns = UINT64_MAX;
    for (struct lahar_query *query = registry->first; query != NULL; query = query->next) {
        const uint64_t query_ns = sweep_time(query, now_ns);
        next_ns = query_ns < next_ns ? query_ns : next_ns;
    }
    registry->sweep_ns = next_ns;
    (void)pthread_mutex_unlock(&registry->mutex);
    return next_ns;
}

lahar_status lahar_query_begin(struct lahar_query *query, lahar_error *error)
{
    int expected = LAHAR_QUERY_IDLE;
    if (atomic_compare_exchange_strong_explicit(&query->use, &expected, LAHAR_QUERY_BUSY,
                                                memory_order_acq_rel, memory_order_acquire)) {
        return LAHAR_OK;
    }
    return expected == LAHAR_QUERY_BUSY
               ? lahar_fail(error, LAHAR_BUSY, "another thread is in a call on query %llu",
                            (unsigned long long)query->id)
               : lahar_fail(error, LAHAR_CLOSED, "query %llu expired: it was not used for %llu ms",
                            (unsigned long long)query->id,
                            (unsigned long long)(query->options.expire_ns / 1000000));
}

lahar_status lahar_query_end(struct lahar_query *query, lahar_status status, lahar_error *error)
{
    status = lahar_query_tell(query, status, error);
    if (status != LAHAR_OK && status != LAHAR_NOT_FOUND) {
        (void)pthread_mutex_lock(&query->registry->mutex);
        query->last_error = error != NULL ? *error : (lahar_error){.status = status};
        (void)pthread_mutex_unlock(&query->registry->mutex);
    }
    if (query->options.expire_ns != LAHAR_WAIT_FOREVER) {
        atomic_store_explicit(&query->last_use_ns, query->io->ops->monotonic_ns(query->io),
                              memory_order_relaxed);
    }
    atomic_store_explicit(&query->use, LAHAR_QUERY_IDLE, memory_order_release);
    return status;
}

/* --- the list ---------------------------------------------------------------------- */

lahar_status lahar_query_registry_reserve(struct lahar_query_registry *registry,
                                          struct lahar_io *io, lahar_error *error)
{
    (void)pthread_mutex_lock(&registry->mutex);
    if (registry->open_count >= registry->limit) {
        sweep(registry, io->ops->monotonic_ns(io));
    }
    const bool is_full = registry->open_count >= registry->limit;
    registry->open_count += !is_full;
    registry->refused_count += is_full;
    (void)pthread_mutex_unlock(&registry->mutex);
    return is_full ? lahar_fail(error, LAHAR_BUSY, "%u queries are open, which is the limit",
                                registry->limit)
                   : LAHAR_OK;
}

void lahar_query_registry_cancel(struct lahar_query_registry *registry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    registry->open_count--;
    (void)pthread_mutex_unlock(&registry->mutex);
}

void lahar_query_registry_add(struct lahar_query_registry *registry, struct lahar_query *query)
{
    struct lahar_io *io = query->io;
    query->submitted_ns = io->ops->realtime_ns(io);
    atomic_init(&query->last_use_ns, io->ops->monotonic_ns(io));
    (void)pthread_mutex_lock(&registry->mutex);
    query->id = registry->next_id++;
    query->previous = registry->last;
    *(registry->last == NULL ? &registry->first : &registry->last->next) = query;
    registry->last = query;
    const bool is_sooner = registry->sweeper != NULL &&
                           sweep_time(query, io->ops->monotonic_ns(io)) < registry->sweep_ns;
    (void)pthread_mutex_unlock(&registry->mutex);
    if (is_sooner) {
        lahar_gate_signal(registry->sweeper);
    }
}

void lahar_query_registry_remove(struct lahar_query_registry *registry, struct lahar_query *query)
{
    (void)pthread_mutex_lock(&registry->mutex);
    *(query->previous == NULL ? &registry->first : &query->previous->next) = query->next;
    *(query->next == NULL ? &registry->last : &query->next->previous) = query->previous;
    registry->open_count -=
        atomic_load_explicit(&query->use, memory_order_relaxed) != LAHAR_QUERY_EXPIRED;
    (void)pthread_mutex_unlock(&registry->mutex);
}

/* --- looking at it ------------------------------------------------------------------ */

static void describe(struct lahar_query *query, uint64_t now_ns, lahar_query_info *info)
{
    const uint64_t last_ns = atomic_load_explicit(&query->last_use_ns, memory_order_relaxed);
    const int use = atomic_load_explicit(&query->use, memory_order_relaxed);
    *info = (lahar_query_info){
        .id = query->id,
        .submitted_ns = query->submitted_ns,
        .percent = lahar_query_progress(query),
        .is_busy = use == LAHAR_QUERY_BUSY,
        .is_expired = use == LAHAR_QUERY_EXPIRED,
        .expires_in_ns = LAHAR_WAIT_FOREVER,
        .memory_bytes = atomic_load_explicit(&query->memory.used_bytes, memory_order_relaxed),
        .error = query->last_error};
    if (query->options.expire_ns != LAHAR_WAIT_FOREVER) {
        const uint64_t unused_ns = now_ns > last_ns ? now_ns - last_ns : 0;
        info->expires_in_ns =
            unused_ns < query->options.expire_ns ? query->options.expire_ns - unused_ns : 0;
    }
    memcpy(info->expression, query->text, query->text_size);
    info->expression[query->text_size] = '\0';
}

size_t lahar_query_list(lahar_store *store, lahar_query_info *infos, size_t capacity)
{
    struct lahar_query_registry *registry = lahar_store_queries(store);
    struct lahar_io *io = lahar_store_io(store);
    const uint64_t now_ns = io->ops->monotonic_ns(io);
    size_t count = 0;
    (void)pthread_mutex_lock(&registry->mutex);
    sweep(registry, now_ns);
    for (struct lahar_query *query = registry->first; query != NULL; query = query->next) {
        if (count < capacity) {
            describe(query, now_ns, &infos[count]);
        }
        count++;
    }
    (void)pthread_mutex_unlock(&registry->mutex);
    return count;
}

lahar_status lahar_query_cancel_id(lahar_store *store, uint64_t id)
{
    struct lahar_query_registry *registry = lahar_store_queries(store);
    (void)pthread_mutex_lock(&registry->mutex);
    struct lahar_query *query = registry->first;
    while (query != NULL && query->id != id) {
        query = query->next;
    }
    if (query != NULL) {
        lahar_query_cancel(query);
    }
    (void)pthread_mutex_unlock(&registry->mutex);
    return query == NULL ? LAHAR_NOT_FOUND : LAHAR_OK;
}

uint64_t lahar_query_id(const lahar_query *query)
{
    return query->id;
}
