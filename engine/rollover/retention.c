/* Dropping what is beyond the limits.
 *
 * What is due is decided and committed under the manifest lock, so that a limit that was just
 * raised is never enforced as it was before. The age of a file is the age clock's reading less
 * the file's stamp, which was taken when the last of its events had come; event and
 * arrival times, which come from clocks that may be wrong, play no part. */
#include "engine/rollover/retention.h"

#include <inttypes.h>

#include "engine/rollover/rollover_files.h"
#include "engine/store/manifest_copy.h"
#include "io/base/error.h"

enum {
    DROP_MAX = 32 /* files of one step, so that readers and rollover never wait long */
};
#define RETRY_NS         UINT64_C(1000000000)
#define NOTE_NS          UINT64_C(600000000000) /* the clock goes to the manifest this often */
#define LOOK_NS          UINT64_C(500000000)    /* at what changes without a word to anybody */
#define REST_NS_MIN      UINT64_C(50000000)
#define GROUP_AGE_PART   20
#define GROUP_AGE_NS_MIN UINT64_C(1000000000)

enum drop_reason {
    DROP_NOT = 0,
    DROP_STREAM_BYTES,
    DROP_STORE_BYTES,
    DROP_AGE,
    DROP_SPACE
};

/* One file that is due. */
struct drop {
    struct lahar_manifest_file file;
    enum drop_reason reason;
};

/* What one step does. */
struct plan {
    struct drop drops[DROP_MAX];
    size_t count;
};

/* Of a stream while files are chosen. */
struct stream_sum {
    uint64_t bytes;
    bool is_closed; /* a file of it stays, and so do all later ones */
};

static uint64_t size_of(const struct lahar_manifest_file *file)
{
    return file->info.file_bytes + file->info.toc_bytes + file->shard_bytes;
}

/* The lesser of two limits of which 0 is none. */
static uint64_t stricter(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static struct lahar_age_reading read_clock(lahar_store *store)
{
    struct lahar_io *io = store->io;
    return lahar_age_clock_read(&store->retention.clock, io->ops->monotonic_ns(io),
                                io->ops->realtime_ns(io));
}

uint64_t lahar_retention_stamp(lahar_store *store, uint64_t last_id)
{
    const struct lahar_age_reading now = read_clock(store);
    return last_id < now.held_id ? now.held_ns : now.age_ns;
}

void lahar_retention_put_clock(lahar_store *store, struct lahar_buffer *records)
{
    const struct lahar_age_reading reading = read_clock(store);
    store->retention.noted_ns = store->io->ops->monotonic_ns(store->io);
    lahar_manifest_put_clock(records, &reading);
}

void lahar_retention_note_limits(lahar_store *store)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    uint64_t least_ns = state->retention.max_age_ns;
    for (size_t i = 0; i < state->stream_count; i++) {
        least_ns = stricter(least_ns, state->streams[i].retention.max_age_ns);
    }
    atomic_store_explicit(&store->retention.age_limit_ns, least_ns == 0 ? UINT64_MAX : least_ns,
                          memory_order_relaxed);
}

uint64_t lahar_retention_group_age_ns(lahar_store *store)
{
    const uint64_t limit_ns =
        atomic_load_explicit(&store->retention.age_limit_ns, memory_order_relaxed);
    if (limit_ns == UINT64_MAX) {
        return UINT64_MAX;
    }
    const uint64_t part_ns = limit_ns / GROUP_AGE_PART;
    return part_ns < GROUP_AGE_NS_MIN ? GROUP_AGE_NS_MIN : part_ns;
}

/* --- deciding ------------------------------------------------------------------------- */

static bool has_limit(const struct lahar_manifest_state *state)
{
    if (state->retention.max_bytes != 0 || state->retention.max_age_ns != 0) {
        return true;
    }
    for (size_t i = 0; i < state->stream_count; i++) {
        const struct lahar_manifest_retention *retention = &state->streams[i].retention;
        if (retention->max_bytes != 0 || retention->max_age_ns != 0) {
            return true;
        }
    }
    return false;
}

static enum drop_reason judge(const lahar_store *store, const struct lahar_manifest_file *file,
                              uint64_t now_ns, uint64_t stream_bytes, uint64_t store_bytes)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    const struct lahar_manifest_retention *own = &state->streams[file->info.stream].retention;
    const struct lahar_manifest_retention *common = &state->retention;
    if (own->max_bytes != 0 && stream_bytes > own->max_bytes) {
        return DROP_STREAM_BYTES;
    }
    if (common->max_bytes != 0 && store_bytes > common->max_bytes) {
        return DROP_STORE_BYTES;
    }
    /* A file from before there were stamps counts from the last opening on. */
    const uint64_t stamp_ns =
        file->age_stamp_ns == 0 ? store->retention.clock.held_ns : file->age_stamp_ns;
    const uint64_t max_age_ns = stricter(own->max_age_ns, common->max_age_ns);
    return max_age_ns != 0 && now_ns > stamp_ns && now_ns - stamp_ns > max_age_ns ? DROP_AGE
                                                                                  : DROP_NOT;
}

/* With the manifest lock held: the files that are due, oldest first, a prefix of each stream. */
static lahar_status choose(lahar_store *store, struct plan *plan, lahar_error *error)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    plan->count = 0;
    if (!has_limit(state) || state->file_count == 0) {
        return LAHAR_OK;
    }
    struct stream_sum *sums =
        lahar_allocate_zeroed(&store->allocator, state->stream_count, sizeof *sums);
    if (sums == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to apply retention");
    }
    uint64_t store_bytes = 0;
    for (size_t i = 0; i < state->file_count; i++) {
        const uint64_t size = size_of(&state->files[i]);
        sums[state->files[i].info.stream].bytes += size;
        store_bytes += size;
    }
    const uint64_t now_ns = read_clock(store).age_ns;
    /* One file at a time, since how much room it leaves is seen only afterwards. */
    bool is_space_short = !lahar_volume_has_space(store);
    for (size_t i = 0; i < state->file_count && plan->count < DROP_MAX; i++) {
        const struct lahar_manifest_file *file = &state->files[i];
        struct stream_sum *sum = &sums[file->info.stream];
        enum drop_reason reason =
            sum->is_closed ? DROP_NOT : judge(store, file, now_ns, sum->bytes, store_bytes);
#ifdef LAHAR_PLANTED_BUGS
        if ((store->config.planted_bugs & LAHAR_PLANTED_RETENTION_DROPS_TOO_MUCH) != 0 &&
            plan->count == 1) {
            reason = DROP_AGE;
        }
#endif
        if (reason == DROP_NOT && is_space_short && !sum->is_closed) {
            reason = DROP_SPACE;
            is_space_short = false;
        }
        if (reason == DROP_NOT) {
            sum->is_closed = true;
            continue;
        }
        plan->drops[plan->count++] = (struct drop){*file, reason};
        sum->bytes -= size_of(file);
        store_bytes -= size_of(file);
    }
    lahar_release(&store->allocator, sums);
    return LAHAR_OK;
}

bool lahar_retention_is_over(lahar_store *store)
{
    struct plan plan;
    bool is_over = false;
    if (atomic_load_explicit(&store->retention.has_failed, memory_order_relaxed)) {
        return false;
    }
    (void)pthread_mutex_lock(&store->manifest_lock);
    if (choose(store, &plan, NULL) == LAHAR_OK) {
        for (size_t i = 0; i < plan.count; i++) {
            is_over = is_over || plan.drops[i].reason == DROP_STREAM_BYTES ||
                      plan.drops[i].reason == DROP_STORE_BYTES;
        }
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    return is_over;
}

/* --- dropping ------------------------------------------------------------------------- */

/* With the manifest lock held: the change that the plan makes. */
static void put_change(lahar_store *store, const struct plan *plan, struct lahar_buffer *records)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    for (size_t i = 0; i < plan->count; i++) {
        lahar_manifest_put_remove(records, plan->drops[i].file.info.number);
    }
    for (uint32_t stream = 0; stream < state->stream_count; stream++) {
        struct lahar_manifest_retention retention = state->streams[stream].retention;
        bool is_changed = false;
        for (size_t i = 0; i < plan->count; i++) {
            const struct lahar_manifest_file *file = &plan->drops[i].file;
            if (file->info.stream != stream) {
                continue;
            }
            retention.low_id = file->info.last_id + 1;
            retention.dropped_events += file->info.event_count;
            retention.dropped_bytes += size_of(file);
            retention.dropped_files++;
            is_changed = true;
        }
        if (is_changed) {
            lahar_manifest_put_dropped(records, stream, &retention);
        }
    }
    lahar_retention_put_clock(store, records);
}

/* With the layout and the manifest lock held. *set_out: what readers are to see. */
static lahar_status commit(lahar_store *store, struct plan *plan,
                           struct lahar_segment_set **set_out, lahar_error *error)
{
    uint64_t numbers[DROP_MAX];
    LAHAR_TRY(choose(store, plan, error));
    if (plan->count == 0) {
        return LAHAR_OK;
    }
    for (size_t i = 0; i < plan->count; i++) {
        numbers[i] = plan->drops[i].file.info.number;
    }
    struct lahar_segment_set *base = lahar_store_acquire_set(store);
    const struct lahar_segment_set_change change = {
        .removed = numbers, .removed_count = plan->count, .rolled_id = base->rolled_id};
    lahar_status status =
        lahar_segment_set_create(base, &change, &store->allocator, set_out, error);
    if (status != LAHAR_OK) {
        lahar_segment_set_release(base);
        return status;
    }
#ifdef LAHAR_PLANTED_BUGS
    if ((store->config.planted_bugs & LAHAR_PLANTED_RETENTION_FORGETS) != 0) {
        plan->count = 0;
        lahar_segment_set_release(base);
        return LAHAR_OK;
    }
    if ((store->config.planted_bugs & LAHAR_PLANTED_RETENTION_REMOVES_FIRST) != 0) {
        for (size_t i = 0; i < plan->count; i++) {
            lahar_rollover_remove_part(store, &plan->drops[i].file);
        }
    }
#endif
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    put_change(store, plan, &records);
    status = lahar_store_commit_locked(store, &records, error);
    lahar_buffer_deinit(&records);
    if (status == LAHAR_OK) {
        lahar_segment_set_discard(base, numbers, plan->count);
    } else {
        lahar_segment_set_release(*set_out);
        *set_out = NULL;
    }
    lahar_segment_set_release(base);
    return status;
}

static void report(const lahar_store *store, const struct drop *drop)
{
    static const char *const reasons[] = {
        [DROP_NOT] = "",
        [DROP_STREAM_BYTES] = "the stream is above its limit of bytes",
        [DROP_STORE_BYTES] = "the store is above its limit of bytes",
        [DROP_AGE] = "older than the limit",
        [DROP_SPACE] = "less space is free than is to stay free",
    };
    const struct lahar_segment_info *info = &drop->file.info;
    const struct lahar_stream *stream = lahar_schema_stream(store->catalog, info->stream);
    lahar_store_log(store, LAHAR_LOG_INFO,
                    "retention dropped %" PRIu64 " events of stream \"%s\", %" PRIu64 " to %" PRIu64
                    ", arrived %" PRId64 " to %" PRId64 ", %" PRIu64 " bytes: %s",
                    info->event_count, stream == NULL ? "?" : stream->name, info->first_id,
                    info->last_id, info->arrival_min_ns, info->arrival_max_ns, size_of(&drop->file),
                    reasons[drop->reason]);
}

/* With the manifest lock held. Where the newest files are dropped, no file tells any more how far
 * rollover had come, so the copy of the names has to. */
static void copy_names(lahar_store *store, const struct plan *plan)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    uint64_t end_id = 0;
    for (size_t i = 0; i < state->file_count; i++) {
        const uint64_t group_end_id = state->files[i].info.group_end_id;
        end_id = group_end_id > end_id ? group_end_id : end_id;
    }
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->drops[i].file.info.group_end_id > end_id) {
            (void)lahar_manifest_copy_write(store->manifest, store->events_directory, NULL);
            return;
        }
    }
}

static lahar_status drop_files(lahar_store *store, struct plan *plan, lahar_error *error)
{
    struct lahar_segment_set *set = NULL;
    (void)pthread_mutex_lock(&store->layout_lock);
    (void)pthread_mutex_lock(&store->manifest_lock);
    const lahar_status status = commit(store, plan, &set, error);
    if (status == LAHAR_OK) {
        copy_names(store, plan);
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    if (set != NULL) {
        lahar_store_publish_set(store, set);
    }
    (void)pthread_mutex_unlock(&store->layout_lock);
    if (status != LAHAR_OK) {
        return status;
    }
    for (size_t i = 0; i < plan->count; i++) {
        report(store, &plan->drops[i]);
    }
    return LAHAR_OK;
}

/* Keeps the clock in the manifest from falling far behind where an age limit needs it. */
static void note_clock(lahar_store *store)
{
    const uint64_t now_ns = store->io->ops->monotonic_ns(store->io);
    if (lahar_retention_group_age_ns(store) == UINT64_MAX) {
        return;
    }
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    (void)pthread_mutex_lock(&store->manifest_lock);
    if (now_ns - store->retention.noted_ns >= NOTE_NS) {
        lahar_retention_put_clock(store, &records);
        /* When this fails, so does what matters more; the next try is ten minutes away. */
        (void)lahar_store_commit_locked(store, &records, NULL);
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    lahar_buffer_deinit(&records);
}

bool lahar_retention_step(lahar_store *store)
{
    struct lahar_retention_state *retention = &store->retention;
    const bool has_failed = atomic_load_explicit(&retention->has_failed, memory_order_relaxed);
    const uint64_t now_ns = store->io->ops->monotonic_ns(store->io);
    if (has_failed && now_ns < retention->retry_at_ns) {
        return false;
    }
    struct plan plan;
    lahar_error error = {0};
    const lahar_status status = drop_files(store, &plan, &error);
    atomic_store_explicit(&retention->has_failed, status != LAHAR_OK, memory_order_relaxed);
    if (status != LAHAR_OK) {
        retention->retry_at_ns = now_ns + RETRY_NS;
        if (!has_failed) {
            lahar_store_log(store, LAHAR_LOG_ERROR, "retention: %s", error.message);
        }
        return false;
    }
    note_clock(store);
    if (plan.count == 0) {
        return false;
    }
    lahar_store_wake_threads(store);
    return true;
}

/* With the manifest lock held: in how long the first file is beyond its age; UINT64_MAX: never.
 * The oldest of a stream goes first, so the others need not be looked at. */
static uint64_t age_left(lahar_store *store)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    const uint64_t now_ns = read_clock(store).age_ns;
    uint64_t least_ns = UINT64_MAX;
    for (size_t i = 0; i < state->file_count; i++) {
        const struct lahar_manifest_file *file = &state->files[i];
        const uint64_t max_age_ns = stricter(state->streams[file->info.stream].retention.max_age_ns,
                                             state->retention.max_age_ns);
        const uint64_t stamp_ns =
            file->age_stamp_ns == 0 ? store->retention.clock.held_ns : file->age_stamp_ns;
        const uint64_t age_ns = now_ns > stamp_ns ? now_ns - stamp_ns : 0;
        if (max_age_ns != 0) {
            const uint64_t left_ns = age_ns < max_age_ns ? max_age_ns - age_ns : 0;
            least_ns = left_ns < least_ns ? left_ns : least_ns;
        }
    }
    return least_ns;
}

void lahar_retention_rest(lahar_store *store, struct lahar_rest *rest_out)
{
    const struct lahar_retention_state *retention = &store->retention;
    const uint64_t now_ns = store->io->ops->monotonic_ns(store->io);
    const bool has_ages = lahar_retention_group_age_ns(store) != UINT64_MAX;
    uint64_t left_ns = UINT64_MAX;
    *rest_out = LAHAR_REST_FOREVER;
    if (atomic_load_explicit(&retention->has_failed, memory_order_relaxed)) {
        rest_out->until_ns = retention->retry_at_ns;
        return;
    }
    (void)pthread_mutex_lock(&store->manifest_lock);
    if (has_ages) {
        const uint64_t note_ns = retention->noted_ns + NOTE_NS;
        const uint64_t note_left_ns = note_ns > now_ns ? note_ns - now_ns : 0;
        left_ns = age_left(store);
        left_ns = note_left_ns < left_ns ? note_left_ns : left_ns;
    }
    /* A wall clock that is wrong may be set right, others may take the space that is to stay
     * free: nobody says when. */
    if ((has_ages && retention->clock.has_gap) ||
        (store->options.free_space_min != 0 && has_limit(&store->manifest->state))) {
        left_ns = left_ns < LOOK_NS ? left_ns : LOOK_NS;
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    if (left_ns != UINT64_MAX) {
        rest_out->until_ns = now_ns + (left_ns < REST_NS_MIN ? REST_NS_MIN : left_ns);
    }
}

/* --- the limits ----------------------------------------------------------------------- */

/* With the manifest lock held; NULL when there is no such stream. */
static const struct lahar_manifest_retention *find(lahar_store *store, uint32_t stream)
{
    const struct lahar_manifest_state *state = &store->manifest->state;
    if (stream == LAHAR_ANY_STREAM) {
        return &state->retention;
    }
    return stream < state->stream_count ? &state->streams[stream].retention : NULL;
}

lahar_status lahar_retention_set(lahar_store *store, uint32_t stream,
                                 const lahar_retention *retention, lahar_error *error)
{
    LAHAR_TRY(lahar_store_check_writable(store, error));
    if (retention == NULL || retention->struct_size < sizeof *retention) {
        return lahar_fail(error, LAHAR_INVALID, "retention: struct_size is too small");
    }
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    lahar_manifest_put_limits(&records, stream, retention->max_bytes, retention->max_age_ns);
    (void)pthread_mutex_lock(&store->manifest_lock);
    lahar_status status = LAHAR_OK;
    if (find(store, stream) == NULL) {
        status = lahar_fail(error, LAHAR_NOT_FOUND, "there is no stream %" PRIu32, stream);
    } else {
        lahar_retention_put_clock(store, &records);
        status = lahar_store_commit_locked(store, &records, error);
        lahar_retention_note_limits(store);
        if (status == LAHAR_OK) {
            (void)lahar_manifest_copy_write(store->manifest, store->events_directory, NULL);
        }
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    lahar_buffer_deinit(&records);
    /* What the new limit asks for is done at once; what fails is left to the next step. */
    struct plan plan = {.count = status == LAHAR_OK};
    while (plan.count != 0 && drop_files(store, &plan, NULL) == LAHAR_OK) {
    }
    lahar_store_wake_threads(store);
    return status;
}

lahar_status lahar_retention_get(lahar_store *store, uint32_t stream,
                                 lahar_retention *retention_out, lahar_error *error)
{
    if (retention_out->struct_size < sizeof *retention_out) {
        return lahar_fail(error, LAHAR_INVALID, "retention: struct_size is too small");
    }
    (void)pthread_mutex_lock(&store->manifest_lock);
    const struct lahar_manifest_retention *found = find(store, stream);
    if (found != NULL) {
        retention_out->max_bytes = found->max_bytes;
        retention_out->max_age_ns = found->max_age_ns;
    }
    (void)pthread_mutex_unlock(&store->manifest_lock);
    return found != NULL
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_NOT_FOUND, "there is no stream %" PRIu32, stream);
}
