/* Sessions: beginning, ending, and the ids reserved for them.
 *
 * The change that begins a session needs room in the manifest. On a full disk the store opens all
 * the same: it can be read, and appends say LAHAR_NO_SPACE, because no id may be handed out before
 * the session is in the manifest. The step that reserves ids tries again until there is room. */
#include "engine/rollover/retention.h"
#include "engine/store/lost_events.h"
#include "engine/store/manifest_copy.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

#define ID_RESERVE_MAX (UINT64_C(1) << 26)
#define NS_PER_SECOND  UINT64_C(1000000000)
#define RETRY_NS       (NS_PER_SECOND / 2) /* between tries on a full disk */

/* Where the session that was never ended ends: behind what was found of it. */
static uint64_t find_end(const struct lahar_journal_session *session, uint64_t rolled_id,
                         uint64_t recovered_end_id)
{
    uint64_t end_id = session->first_id;
    end_id = rolled_id > end_id ? rolled_id : end_id;
    return recovered_end_id > end_id ? recovered_end_id : end_id;
}

/* What is lost must be known after a repair too. */
static void copy_manifest(lahar_store *store)
{
    lahar_error error = {0};
    (void)pthread_mutex_lock(&store->manifest_lock);
    const lahar_status status =
        lahar_manifest_copy_write(store->manifest, store->events_directory, &error);
    (void)pthread_mutex_unlock(&store->manifest_lock);
    if (status != LAHAR_OK) {
        lahar_store_log(store, LAHAR_LOG_WARNING, "copy of the names: %s", error.message);
    }
}

/* Puts the session into the manifest, with what journals lost before it, and reserves its first
 * ids. */
static lahar_status begin(lahar_store *store, lahar_error *error)
{
    const uint64_t ceiling = store->session_first_id + store->id_reserve;
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    (void)pthread_mutex_lock(&store->manifest_lock);
    if (store->last_session != 0) {
        lahar_manifest_put_session_end(&records, store->last_session, store->last_session_end_id);
    }
    const size_t lost_count = lahar_lost_events_put_new(store, &records);
    lahar_manifest_put_session_begin(&records, store->session, store->session_first_id);
    lahar_manifest_put_ceiling(&records, ceiling);
    lahar_retention_put_clock(store, &records);
    const lahar_status status = lahar_store_commit_locked(store, &records, error);
    (void)pthread_mutex_unlock(&store->manifest_lock);
    lahar_buffer_deinit(&records);
    if (status == LAHAR_OK) {
        atomic_store_explicit(&store->ceiling, ceiling, memory_order_relaxed);
        store->ceiling_raised_ns = store->io->ops->monotonic_ns(store->io);
    }
    if (status == LAHAR_OK && lost_count != 0) {
        copy_manifest(store);
    }
    return status;
}

lahar_status lahar_store_prepare_session(lahar_store *store, lahar_error *error)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    const struct lahar_journal_session *last =
        state->session_count == 0 ? NULL : &state->sessions[state->session_count - 1];
    if (last != NULL && last->end_id == 0) {
        store->last_session = last->session;
        store->last_session_end_id = find_end(last, state->rolled_id, store->recovery.end_id);
    }
    store->session = last == NULL ? 1 : last->session + 1;
    store->session_first_id = state->ceiling;
    store->id_reserve =
        store->config.id_reserve == 0 ? LAHAR_ID_RESERVE_DEFAULT : store->config.id_reserve;
    lahar_age_clock_start(&store->retention.clock, state->has_clock ? &state->clock : NULL,
                          store->recovery.end_id, store->session_first_id,
                          store->io->ops->monotonic_ns(store->io),
                          store->io->ops->realtime_ns(store->io));
    lahar_error cause = {0};
    const lahar_status status = begin(store, &cause);
    if (status == LAHAR_NO_SPACE) {
        lahar_store_log(store, LAHAR_LOG_WARNING,
                        "no space to begin a session, open for reading meanwhile: %s",
                        cause.message);
        atomic_store_explicit(&store->ceiling, store->session_first_id, memory_order_relaxed);
        atomic_store_explicit(&store->is_session_pending, true, memory_order_relaxed);
        return LAHAR_OK;
    }
    if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
        *error = cause;
    }
    return status;
}

/* How many ids to reserve: twice as many as before when the last reserve was used up
 * within a second. */
static uint64_t next_reserve(lahar_store *store)
{
    const uint64_t now_ns = store->io->ops->monotonic_ns(store->io);
    uint64_t reserve = store->id_reserve;
    if (store->config.id_reserve == 0 && now_ns - store->ceiling_raised_ns < NS_PER_SECOND &&
        reserve < ID_RESERVE_MAX) {
        reserve *= 2;
    }
    store->ceiling_raised_ns = now_ns;
    return reserve;
}

/* Puts the next try off. Returns whether it was the first failure of a row. */
static bool put_off(lahar_store *store)
{
    const bool is_first = store->ceiling_retry_ns == 0;
    store->ceiling_retry_ns = store->io->ops->monotonic_ns(store->io) + RETRY_NS;
    return is_first;
}

/* Tries once more to begin the session. */
static bool begin_late(lahar_store *store)
{
    if (begin(store, NULL) != LAHAR_OK) {
        (void)put_off(store);
        return false;
    }
    store->ceiling_retry_ns = 0;
    lahar_store_log(store, LAHAR_LOG_INFO, "space has returned: the session has begun");
    atomic_store_explicit(&store->is_session_pending, false, memory_order_release);
    lahar_journals_hold(store->journals, false);
    lahar_journals_set_ceiling(store->journals,
                               atomic_load_explicit(&store->ceiling, memory_order_relaxed));
    return true;
}

/* Half of what is reserved ahead has been used, or more is wanted than that. */
static bool needs_ids(const lahar_store *store, uint64_t next_id, uint64_t ceiling)
{
    return ceiling <= next_id || ceiling - next_id <= store->id_reserve / 2 ||
           lahar_journals_asked_id(store->journals) > ceiling;
}

bool lahar_store_raise_ceiling(lahar_store *store)
{
    if (store->ceiling_retry_ns != 0 &&
        store->io->ops->monotonic_ns(store->io) < store->ceiling_retry_ns) {
        return false;
    }
    if (atomic_load_explicit(&store->is_session_pending, memory_order_relaxed)) {
        return begin_late(store);
    }
    const uint64_t next_id = lahar_journals_next_id(store->journals);
    const uint64_t ceiling = atomic_load_explicit(&store->ceiling, memory_order_relaxed);
    if (!needs_ids(store, next_id, ceiling)) {
        return false;
    }
    const uint64_t reserve = next_reserve(store);
    const uint64_t asked_id = lahar_journals_asked_id(store->journals);
    const uint64_t used_id = next_id > asked_id ? next_id : asked_id;
    const uint64_t raised = (used_id > ceiling ? used_id : ceiling) + reserve;
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    lahar_manifest_put_ceiling(&records, raised);
    lahar_error error = {0};
    const lahar_status status = lahar_store_commit_manifest(store, &records, &error);
    lahar_buffer_deinit(&records);
    if (status != LAHAR_OK) {
        if (put_off(store) && status != LAHAR_POISONED) {
            lahar_store_log(store, LAHAR_LOG_WARNING, "reserving ids: %s", error.message);
        }
        return false;
    }
    if (store->ceiling_retry_ns != 0) {
        store->ceiling_retry_ns = 0;
        lahar_store_log(store, LAHAR_LOG_INFO, "ids are reserved again");
    }
    store->id_reserve = reserve;
    atomic_store_explicit(&store->ceiling, raised, memory_order_relaxed);
    lahar_journals_set_ceiling(store->journals, raised);
    return true;
}

void lahar_store_ceiling_rest(lahar_store *store, struct lahar_rest *rest_out)
{
    const bool is_pending = atomic_load_explicit(&store->is_session_pending, memory_order_relaxed);
    const uint64_t next_id = lahar_journals_next_id(store->journals);
    const uint64_t ceiling = atomic_load_explicit(&store->ceiling, memory_order_relaxed);
    *rest_out = LAHAR_REST_FOREVER;
    if (lahar_journals_health(store->journals, NULL) == LAHAR_POISONED) {
        return;
    }
    if (is_pending || needs_ids(store, next_id, ceiling)) {
        rest_out->until_ns = store->ceiling_retry_ns; /* 0, in the past: at once */
    } else {
        rest_out->published_id = ceiling - store->id_reserve / 2;
    }
}

/* Ids that were reserved and not used go back. When this fails, the next opening finds the end
 * by recovery. */
lahar_status lahar_store_end_session(lahar_store *store, lahar_error *error)
{
    if (atomic_load_explicit(&store->is_session_pending, memory_order_acquire)) {
        return LAHAR_OK;
    }
    const uint64_t end_id = lahar_journals_next_id(store->journals);
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    (void)pthread_mutex_lock(&store->manifest_lock);
    lahar_manifest_put_session_end(&records, store->session, end_id);
    lahar_manifest_put_ceiling(&records, end_id);
    lahar_retention_put_clock(store, &records);
    const lahar_status status = lahar_store_commit_locked(store, &records, error);
    (void)pthread_mutex_unlock(&store->manifest_lock);
    lahar_buffer_deinit(&records);
    return status;
}
