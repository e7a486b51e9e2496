/* Durability: waiting for what was appended to reach stable storage. */
#include "engine/rollover/rollover.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

lahar_status lahar_store_check_writable(const lahar_store *store, lahar_error *error)
{
    if (store->journals == NULL) {
        return lahar_fail(error, LAHAR_READ_ONLY, "%s is open for reading only", store->directory);
    }
    return LAHAR_OK;
}

uint64_t lahar_durable_id(lahar_store *store)
{
    return store->journals == NULL ? store->recovery.end_id
                                   : lahar_journals_durable_id(store->journals);
}

struct durable_goal {
    lahar_store *store;
    uint64_t end_id;
};

/* Asks each time, because asking is what makes a writer sync early. */
static bool is_durable(void *context)
{
    const struct durable_goal *goal = context;
    struct lahar_journals *journals = goal->store->journals;
    return lahar_journals_durable_id(journals) >= goal->end_id ||
           lahar_journals_wait(journals, goal->end_id - 1, LAHAR_NO_WAIT, NULL) != LAHAR_TIMEOUT;
}

lahar_status lahar_store_wait_durable(lahar_store *store, uint64_t end_id, uint64_t deadline_ns,
                                      lahar_error *error)
{
    if (end_id <= 1 || lahar_journals_durable_id(store->journals) >= end_id) {
        return LAHAR_OK;
    }
    if (store->config.start_threads) {
        if (deadline_ns != LAHAR_NO_WAIT) {
            lahar_journals_note_commit(store->journals);
        }
        return lahar_journals_wait(store->journals, end_id - 1, deadline_ns, error);
    }
    struct durable_goal goal = {store, end_id};
    if (deadline_ns != LAHAR_NO_WAIT) {
        (void)lahar_store_drive(store, is_durable, &goal);
    }
    return lahar_journals_wait(store->journals, end_id - 1, LAHAR_NO_WAIT, error);
}

lahar_status lahar_durable_wait(lahar_store *store, uint64_t id, uint64_t deadline_ns,
                                lahar_error *error)
{
    if (lahar_durable_id(store) > id) {
        return LAHAR_OK;
    }
    LAHAR_TRY(lahar_store_check_writable(store, error));
    if (id == UINT64_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "no event has the id %llu", (unsigned long long)id);
    }
    return lahar_store_wait_durable(store, id + 1, deadline_ns, error);
}

lahar_status lahar_durable_notify(lahar_store *store, uint64_t id, lahar_durable_callback callback,
                                  void *context, lahar_error *error)
{
    LAHAR_TRY(lahar_store_check_writable(store, error));
    return lahar_journals_notify(store->journals, id, callback, context, error);
}

lahar_status lahar_sync(lahar_store *store, uint64_t deadline_ns, lahar_error *error)
{
    LAHAR_TRY(lahar_store_check_writable(store, error));
    return lahar_store_wait_durable(store, lahar_journals_next_id(store->journals), deadline_ns,
                                    error);
}

lahar_status lahar_rollover(lahar_store *store, uint64_t deadline_ns, lahar_error *error)
{
    LAHAR_TRY(lahar_store_check_writable(store, error));
    return lahar_rollover_request(store->rollover, deadline_ns, error);
}
