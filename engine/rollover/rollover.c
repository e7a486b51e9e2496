/* When to roll over, and waiting for it.
 *
 * A step is one of: deciding (by size, count, age or request), waiting until all below
 * the cut is durable (an event file must never hold what a crash could take from the
 * journals), rolling one group. After a failure the next attempt waits, longer each
 * time; meanwhile the journals fill up and appends feel it. */
#include "engine/rollover/rollover.h"

#include <pthread.h>
#include <time.h>

#include "engine/rollover/crew.h"
#include "engine/rollover/feed_keeper.h"
#include "engine/rollover/retention.h"
#include "engine/rollover/rollover_group.h"
#include "engine/store/store_state.h"
#include "io/base/error.h"

#define NS_PER_MS             UINT64_C(1000000)
#define NS_PER_SECOND         UINT64_C(1000000000)
#define AGED_GROUP_SIZE_BYTES (UINT64_C(16) << 20) /* from which on group_age_ms counts */
#define RETRY_NS_MIN          (100 * NS_PER_MS)
#define RETRY_NS_MAX          (5 * NS_PER_SECOND)
#define DURABLE_WAIT_NS       (50 * NS_PER_MS)
#define BLOCKED_WAIT_NS       (50 * NS_PER_MS) /* while a cut waits for what wakes nobody */

enum {
    /* Of compression, where none is asked for: the second makes files smaller by a tenth and takes
     * two to three times as long. */
    LEVEL_BEHIND = 1,
    LEVEL_IDLE = 6
};

struct lahar_rollover {
    lahar_store *store;

    /* Of the one who takes the steps. */
    uint64_t cut_id;           /* 0: nothing is being rolled */
    uint64_t group_seen_ns;    /* monotonic, when the group's first event was seen; 0: empty */
    uint64_t retry_at_ns;      /* monotonic; after a failure */
    uint64_t retry_wait_ns;    /* of the next failure */
    uint64_t attempt_requests; /* requests when the present attempt began */
    struct lahar_feed_keeper feeds;
    struct lahar_crew crew;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t requested_id;    /* everything below is to be rolled */
    uint64_t request_count;   /* requests made */
    uint64_t rolled_id;       /* everything below is in event files */
    uint64_t failed_requests; /* requests made before the last attempt that failed began */
    lahar_error failure;      /* of that attempt */
    uint64_t rollovers;
    uint64_t failures;
};

static bool is_requested(struct lahar_rollover *rollover)
{
    (void)pthread_mutex_lock(&rollover->lock);
    const bool is_waited_for = rollover->requested_id > rollover->rolled_id;
    (void)pthread_mutex_unlock(&rollover->lock);
    return is_waited_for;
}

/* Whether others wait for the rollover, or soon will. */
static bool is_urgent(void *context)
{
    struct lahar_rollover *rollover = context;
    struct lahar_journals_stat stat;
    lahar_journals_stat_get(rollover->store->journals, &stat);
    return stat.is_memory_short || stat.memory_used > stat.memory_bytes / 4 * 3 ||
           is_requested(rollover) || lahar_store_is_stopping(rollover->store);
}

static bool may_spare(void *context)
{
    const struct lahar_rollover *rollover = context;
    return lahar_journals_expects_commits(rollover->store->journals);
}

lahar_status lahar_rollover_create(lahar_store *store, struct lahar_rollover **rollover_out,
                                   lahar_error *error)
{
    *rollover_out = NULL;
    struct lahar_rollover *rollover = lahar_allocate_zeroed(&store->allocator, 1, sizeof *rollover);
    if (rollover == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the rollover");
    }
    rollover->store = store;
    rollover->retry_wait_ns = RETRY_NS_MIN;
    rollover->rolled_id = store->set->rolled_id;
    (void)pthread_mutex_init(&rollover->lock, NULL);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&rollover->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    const struct lahar_crew_hooks hooks = {is_urgent, may_spare, rollover};
    lahar_crew_init(&rollover->crew, &hooks, store->config.start_threads);
    *rollover_out = rollover;
    return LAHAR_OK;
}

void lahar_rollover_destroy(struct lahar_rollover *rollover)
{
    if (rollover == NULL) {
        return;
    }
    lahar_feed_keeper_deinit(&rollover->feeds);
    lahar_crew_deinit(&rollover->crew);
    (void)pthread_cond_destroy(&rollover->changed);
    (void)pthread_mutex_destroy(&rollover->lock);
    lahar_release(&rollover->store->allocator, rollover);
}

void lahar_rollover_stop(struct lahar_rollover *rollover)
{
    if (rollover != NULL) {
        lahar_crew_stop(&rollover->crew);
    }
}

struct lahar_crew *lahar_rollover_crew(struct lahar_rollover *rollover)
{
    return &rollover->crew;
}

struct lahar_feed_keeper *lahar_rollover_feeds(struct lahar_rollover *rollover)
{
    return &rollover->feeds;
}

uint32_t lahar_rollover_level(struct lahar_rollover *rollover, uint64_t group_bytes)
{
    const lahar_store *store = rollover->store;
    if (store->options.no_compression || store->options.compression_level != 0) {
        return store->options.no_compression ? 0 : store->options.compression_level;
    }
    struct lahar_journals_stat stat;
    lahar_journals_stat_get(store->journals, &stat);
    const uint64_t waiting_bytes =
        stat.resident_bytes > group_bytes ? stat.resident_bytes - group_bytes : 0;
    const bool is_behind = is_requested(rollover) || stat.is_memory_short ||
                           waiting_bytes > store->group_size_bytes / 4;
    return is_behind ? LEVEL_BEHIND : LEVEL_IDLE;
}

static uint64_t now_ns(const struct lahar_rollover *rollover)
{
    struct lahar_io *io = rollover->store->io;
    return io->ops->monotonic_ns(io);
}

/* How much, how many or how old the open group may yet become, and what it has been asked for. */
struct group_limits {
    struct lahar_journals_stat stat;
    uint64_t bytes;  /* resident, from which on it is due */
    uint64_t age_ns; /* the same */
    uint64_t now_ns;
    uint64_t seen_ns; /* when its first event was seen; 0: there is none */
};

static struct group_limits read_limits(struct lahar_rollover *rollover)
{
    lahar_store *store = rollover->store;
    const uint64_t age_max_ns = store->options.group_age_max_ms * NS_PER_MS;
    const uint64_t kept_ns = lahar_retention_group_age_ns(store);
    struct group_limits limits = {.bytes = store->group_size_bytes, .now_ns = now_ns(rollover)};
    lahar_journals_stat_get(store->journals, &limits.stat);
    if (limits.stat.resident_events == 0 && limits.stat.resident_bytes == 0) {
        rollover->group_seen_ns = 0;
        return limits;
    }
    if (rollover->group_seen_ns == 0) {
        rollover->group_seen_ns = limits.now_ns;
    }
    limits.seen_ns = rollover->group_seen_ns;
    limits.age_ns = age_max_ns < kept_ns ? age_max_ns : kept_ns;
    if (limits.stat.resident_bytes >= AGED_GROUP_SIZE_BYTES &&
        store->options.group_age_ms * NS_PER_MS < limits.age_ns) {
        limits.age_ns = store->options.group_age_ms * NS_PER_MS;
    }
    return limits;
}

/* Whether the open group has reached one of its limits. */
static bool is_due(const struct lahar_rollover *rollover, const struct group_limits *limits)
{
    return limits->seen_ns != 0 &&
           (limits->stat.is_memory_short || limits->stat.resident_bytes >= limits->bytes ||
            limits->stat.resident_events >= rollover->store->options.group_event_count ||
            limits->now_ns - limits->seen_ns >= limits->age_ns);
}

/* Begins an attempt when there is reason to. */
static bool decide(struct lahar_rollover *rollover)
{
    const struct group_limits limits = read_limits(rollover);
    const bool is_group_due = is_due(rollover, &limits);
    (void)pthread_mutex_lock(&rollover->lock);
    const bool is_waited_for = rollover->requested_id > rollover->rolled_id;
    const uint64_t rolled_id = rollover->rolled_id;
    rollover->attempt_requests = rollover->request_count;
    (void)pthread_mutex_unlock(&rollover->lock);
    /* A request does not wait for the pause after a failure. */
    if (!is_waited_for && (!is_group_due || limits.now_ns < rollover->retry_at_ns)) {
        return false;
    }
    const uint64_t next_id = lahar_journals_next_id(rollover->store->journals);
    if (next_id <= rolled_id) {
        return false;
    }
    rollover->cut_id = next_id;
    return true;
}

static void note_failure(struct lahar_rollover *rollover, const lahar_error *failure)
{
    rollover->cut_id = 0;
    rollover->retry_at_ns = now_ns(rollover) + rollover->retry_wait_ns;
    rollover->retry_wait_ns =
        rollover->retry_wait_ns > RETRY_NS_MAX / 2 ? RETRY_NS_MAX : 2 * rollover->retry_wait_ns;
    (void)pthread_mutex_lock(&rollover->lock);
    rollover->failures += failure->status != LAHAR_CANCELLED;
    rollover->failure = *failure;
    rollover->failed_requests = rollover->attempt_requests;
    /* Those who asked after the attempt had begun get one of their own. */
    if (rollover->request_count == rollover->attempt_requests) {
        rollover->requested_id = 0;
    }
    (void)pthread_cond_broadcast(&rollover->changed);
    (void)pthread_mutex_unlock(&rollover->lock);
    if (failure->status != LAHAR_CANCELLED) {
        lahar_store_log(rollover->store, LAHAR_LOG_ERROR, "rollover: %s", failure->message);
    }
}

static void note_success(struct lahar_rollover *rollover, uint64_t rolled_id)
{
    lahar_store_wake_threads(rollover->store);
    rollover->retry_wait_ns = RETRY_NS_MIN;
    rollover->retry_at_ns = 0;
    rollover->group_seen_ns = 0;
    (void)pthread_mutex_lock(&rollover->lock);
    rollover->rollovers++;
    rollover->rolled_id = rolled_id;
    (void)pthread_cond_broadcast(&rollover->changed);
    (void)pthread_mutex_unlock(&rollover->lock);
    if (rolled_id >= rollover->cut_id) {
        rollover->cut_id = 0;
    }
}

/* Whether all below the cut is durable; asks the writers to hurry when it is not. */
static lahar_status await_durable(struct lahar_rollover *rollover, lahar_error *error)
{
    const lahar_store *store = rollover->store;
    if (lahar_journals_durable_id(store->journals) >= rollover->cut_id) {
        return LAHAR_OK;
    }
    return lahar_journals_wait(store->journals, rollover->cut_id - 1,
                               store->config.start_threads ? DURABLE_WAIT_NS : LAHAR_NO_WAIT,
                               error);
}

bool lahar_rollover_step(struct lahar_rollover *rollover)
{
    if (rollover->cut_id == 0) {
        lahar_feed_keeper_trim(&rollover->feeds, now_ns(rollover));
        return decide(rollover);
    }
    lahar_error failure = {0};
    lahar_status status = await_durable(rollover, &failure);
    if (status == LAHAR_TIMEOUT || status == LAHAR_BUSY) {
        return false;
    }
    if (lahar_retention_is_over(rollover->store) || !lahar_volume_has_space(rollover->store)) {
        lahar_store_wake_threads(rollover->store);
        return false;
    }
    uint64_t rolled_id = 0;
    if (status == LAHAR_OK) {
        status = lahar_rollover_group(rollover->store, rollover->cut_id, &rolled_id, &failure);
    }
    if (status == LAHAR_OK) {
        note_success(rollover, rolled_id);
    } else {
        failure.status = status;
        note_failure(rollover, &failure);
    }
    return true;
}

/* The sum, or UINT64_MAX where there is none. */
static uint64_t later(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void lahar_rollover_rest(struct lahar_rollover *rollover, struct lahar_rest *rest_out)
{
    *rest_out = LAHAR_REST_FOREVER;
    if (rollover->cut_id != 0) {
        rest_out->until_ns = now_ns(rollover) + BLOCKED_WAIT_NS;
        return;
    }
    const struct group_limits limits = read_limits(rollover);
    const struct lahar_journals_stat *stat = &limits.stat;
    if (limits.seen_ns == 0) {
        rest_out->published_id = later(stat->published_id, 1);
    } else if (is_due(rollover, &limits)) {
        rest_out->until_ns =
            limits.now_ns > rollover->retry_at_ns ? limits.now_ns : rollover->retry_at_ns;
    } else {
        /* From so much on a lesser age counts. */
        const uint64_t bytes =
            stat->resident_bytes < AGED_GROUP_SIZE_BYTES && AGED_GROUP_SIZE_BYTES < limits.bytes
                ? AGED_GROUP_SIZE_BYTES
                : limits.bytes;
        rest_out->until_ns = later(limits.seen_ns, limits.age_ns);
        rest_out->appended_bytes = later(stat->appended_bytes, bytes - stat->resident_bytes);
        rest_out->published_id = later(
            stat->published_id, rollover->store->options.group_event_count - stat->resident_events);
    }
    const uint64_t trim_ns = lahar_feed_keeper_trim_ns(&rollover->feeds);
    rest_out->until_ns = trim_ns < rest_out->until_ns ? trim_ns : rest_out->until_ns;
}

/* --- requests --------------------------------------------------------------------------- */

/* One caller's wish. */
struct request {
    struct lahar_rollover *rollover;
    uint64_t target_id;
    uint64_t number;
};

/* With the lock held: whether the request has its answer, which goes to *status_out. */
static bool is_answered(const struct request *request, lahar_status *status_out)
{
    const struct lahar_rollover *rollover = request->rollover;
    if (rollover->rolled_id >= request->target_id) {
        *status_out = LAHAR_OK;
        return true;
    }
    if (rollover->failed_requests >= request->number) {
        *status_out = rollover->failure.status;
        return true;
    }
    return false;
}

static bool is_answered_unlocked(void *context)
{
    lahar_status status = LAHAR_OK;
    return is_answered(context, &status);
}

/* With the lock held. */
static lahar_status wait_for_answer(const struct request *request, uint64_t deadline_ns)
{
    struct lahar_rollover *rollover = request->rollover;
    const uint64_t start_ns = now_ns(rollover);
    const uint64_t end_ns =
        deadline_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + deadline_ns;
    lahar_status status = LAHAR_OK;
    while (!is_answered(request, &status)) {
        const uint64_t now = now_ns(rollover);
        if (now >= end_ns) {
            return LAHAR_TIMEOUT;
        }
        const uint64_t until_ns = end_ns - now > NS_PER_SECOND ? now + NS_PER_SECOND : end_ns;
        const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SECOND),
                                       .tv_nsec = (long)(until_ns % NS_PER_SECOND)};
        (void)pthread_cond_timedwait(&rollover->changed, &rollover->lock, &until);
    }
    return status;
}

lahar_status lahar_rollover_request(struct lahar_rollover *rollover, uint64_t deadline_ns,
                                    lahar_error *error)
{
    lahar_store *store = rollover->store;
    struct request request = {rollover, lahar_journals_next_id(store->journals), 0};
    (void)pthread_mutex_lock(&rollover->lock);
    if (request.target_id > rollover->requested_id) {
        rollover->requested_id = request.target_id;
    }
    request.number = ++rollover->request_count;
    lahar_status status = LAHAR_TIMEOUT;
    if (store->config.start_threads) {
        (void)pthread_mutex_unlock(&rollover->lock);
        lahar_store_wake_threads(store);
        (void)pthread_mutex_lock(&rollover->lock);
        status = wait_for_answer(&request, deadline_ns);
    } else {
        (void)pthread_mutex_unlock(&rollover->lock);
        (void)lahar_store_drive(store, is_answered_unlocked, &request);
        (void)pthread_mutex_lock(&rollover->lock);
        (void)is_answered(&request, &status);
    }
    lahar_error failure = rollover->failure;
    (void)pthread_mutex_unlock(&rollover->lock);
    if (status == LAHAR_TIMEOUT) {
        return lahar_fail(error, status, "the rollover is not finished in time");
    }
    if (status != LAHAR_OK && error != NULL && error->status == LAHAR_OK) {
        *error = failure;
    }
    return status;
}

void lahar_rollover_stat_get(struct lahar_rollover *rollover, struct lahar_rollover_stat *stat_out)
{
    (void)pthread_mutex_lock(&rollover->lock);
    *stat_out =
        (struct lahar_rollover_stat){rollover->rolled_id, rollover->rollovers, rollover->failures};
    (void)pthread_mutex_unlock(&rollover->lock);
}
