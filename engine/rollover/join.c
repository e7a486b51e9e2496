/* One run of small files into one: choosing, writing, one change of the manifest.
 *
 * Writing takes no lock: the parts cannot change, and retention may drop them meanwhile, in which
 * case the joined file is thrown away. Whether they are all still there is looked at under the
 * locks under which the manifest is changed. */
#include "engine/rollover/join.h"

#include <inttypes.h>
#include <time.h>

#include "engine/rollover/rollover_files.h"
#include "engine/segment/segment_format.h"
#include "index/shard_merge.h"
#include "io/base/error.h"

enum {
    FILES_MAX_BEHIND = 256, /* from then on a join no longer waits for rollover to begin */
    FILES_MAX_SHORT = 1024, /* ... nor pauses while memory is short */
    PAUSE_NS = 5000000
};
#define QUIET_NS      UINT64_C(1000000000)  /* without a question until a join begins */
#define GAP_NS        UINT64_C(250000000)   /* ... until one that has begun goes on */
#define PUT_OFF_NS    UINT64_C(60000000000) /* a join waits for questions at most so long */
#define PAUSED_MAX_NS UINT64_C(10000000000) /* ... and so long in its midst */
#define RETRY_NS      UINT64_C(10000000000) /* after a failure that may pass */
#define AGAIN_NS      UINT64_C(500000000)   /* after a part was dropped, or space was short */

/* Everything of one attempt. */
struct attempt {
    lahar_store *store;
    struct lahar_join_run run;
    struct lahar_stored_file *parts[LAHAR_JOIN_FILES_MAX]; /* held, and no other file is */
    uint64_t numbers[LAHAR_JOIN_FILES_MAX];
    struct lahar_manifest_file joined;
    struct lahar_stored_file *file; /* joined, open */
    uint64_t paused_ns;             /* for questions */
    bool has_files;
    bool is_part_refused; /* the one that cannot be read is known */
};

/* --- choosing ---------------------------------------------------------------------------- */

static lahar_status choose(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    const struct lahar_join_state *join = &store->join;
    const uint32_t files_min = store->config.join_file_count == 0 ? LAHAR_JOIN_FILES_DEFAULT
                                                                  : store->config.join_file_count;
    const struct lahar_join_limits limits = {
        .files_min = files_min < 2 ? 2 : files_min,
        .event_max = store->config.group_event_max == 0 ? LAHAR_SHARD_DOCUMENTS_MAX
                                                        : store->config.group_event_max,
        .refused = join->refused,
        .refused_count = join->refused_count < LAHAR_JOIN_REFUSED_MAX ? join->refused_count
                                                                      : LAHAR_JOIN_REFUSED_MAX};
    (void)pthread_mutex_lock(&store->manifest_lock);
    const lahar_status status = lahar_join_choose(&store->manifest->state, &limits,
                                                  &store->allocator, &attempt->run, error);
    (void)pthread_mutex_unlock(&store->manifest_lock);
    return status;
}

static void refuse(lahar_store *store, uint64_t number)
{
    struct lahar_join_state *join = &store->join;
    join->refused[join->refused_count % LAHAR_JOIN_REFUSED_MAX] = number;
    join->refused_count++;
}

/* Finds the parts among the open files; false when one is lost or has gone. */
static bool find_parts(struct attempt *attempt)
{
    struct lahar_segment_set *set = lahar_store_acquire_set(attempt->store);
    bool are_there = true;
    for (size_t i = 0; i < attempt->run.count && are_there; i++) {
        const uint64_t number = attempt->run.files[i].info.number;
        attempt->numbers[i] = number;
        for (size_t k = 0; k < set->count && attempt->parts[i] == NULL; k++) {
            if (set->readable[k]->entry.info.number == number) {
                attempt->parts[i] = set->readable[k];
                lahar_stored_file_acquire(attempt->parts[i]);
            }
        }
        are_there = attempt->parts[i] != NULL;
        if (!are_there) {
            refuse(attempt->store, number);
        }
    }
    lahar_segment_set_release(set);
    return are_there;
}

/* Whether retention has dropped the oldest part: it drops no other first. */
static bool is_dropped(const struct attempt *attempt)
{
    struct lahar_segment_set *set = lahar_store_acquire_set(attempt->store);
    bool is_there = false;
    for (size_t i = 0; i < set->count && !is_there; i++) {
        is_there = set->readable[i] == attempt->parts[0];
    }
    lahar_segment_set_release(set);
    return !is_there;
}

static bool has_fewer_files(lahar_store *store, size_t count)
{
    struct lahar_segment_set *set = lahar_store_acquire_set(store);
    const bool are_fewer = set->count < count;
    lahar_segment_set_release(set);
    return are_fewer;
}

/* Whether there are no two files to join, or few enough to let rollover catch up first. */
static bool can_wait(lahar_store *store)
{
    struct lahar_journals_stat stat;
    lahar_journals_stat_get(store->journals, &stat);
    return has_fewer_files(
        store, stat.resident_bytes < store->group_size_bytes ? 2 : (size_t)FILES_MAX_BEHIND);
}

/* Whether somebody has asked within the time. What a join reads and writes, a question that has to
 * go to the disk waits for. */
static bool is_asked(const lahar_store *store, uint64_t within_ns, uint64_t now_ns)
{
    const uint64_t asked_ns = atomic_load_explicit(&store->asked_ns, memory_order_relaxed);
    return store->config.start_threads && now_ns < asked_ns + within_ns;
}

/* Whether a join is put off for questions, which it is not for ever. */
static bool are_questions_first(lahar_store *store, uint64_t now_ns)
{
    struct lahar_join_state *join = &store->join;
    if (!is_asked(store, QUIET_NS, now_ns) || !has_fewer_files(store, FILES_MAX_BEHIND)) {
        join->put_off_ns = 0;
        return false;
    }
    join->put_off_ns = join->put_off_ns == 0 ? now_ns : join->put_off_ns;
    return now_ns - join->put_off_ns < PUT_OFF_NS;
}

static bool is_memory_short(lahar_store *store)
{
    struct lahar_journals_stat stat;
    lahar_journals_stat_get(store->journals, &stat);
    return stat.is_memory_short || stat.memory_used > stat.memory_bytes / 2;
}

/* In the midst of a join, without a lock. Rollover computes at idle priority, below this thread's,
 * until memory is three quarters full and appends are about to wait for it: before that it gets
 * the time. And questions come first. */
static void give_way(struct attempt *attempt)
{
    lahar_store *store = attempt->store;
    struct lahar_io *io = store->io;
    const struct timespec pause = {0, PAUSE_NS};
    while (store->config.start_threads && !lahar_store_is_stopping(store) && !is_dropped(attempt)) {
        const uint64_t now_ns = io->ops->monotonic_ns(io);
        const bool is_short = is_memory_short(store) && has_fewer_files(store, FILES_MAX_SHORT);
        const bool waits = attempt->paused_ns < PAUSED_MAX_NS && is_asked(store, GAP_NS, now_ns) &&
                           has_fewer_files(store, FILES_MAX_BEHIND);
        if (!is_short && !waits) {
            break;
        }
        (void)nanosleep(&pause, NULL);
        attempt->paused_ns += is_short ? 0 : io->ops->monotonic_ns(io) - now_ns;
    }
}

/* Whether to give up, after giving way. */
static bool is_cancelled(void *context)
{
    struct attempt *attempt = context;
    lahar_store *store = attempt->store;
    give_way(attempt);
    return (store->config.start_threads && lahar_store_is_stopping(store)) || is_dropped(attempt);
}

/* --- writing ----------------------------------------------------------------------------- */

/* A part that cannot be read stays as it is: reads of it say which events are lost. */
static lahar_status copy_parts(struct attempt *attempt, struct lahar_segment_writer *writer,
                               lahar_error *error)
{
    lahar_store *store = attempt->store;
    for (size_t i = 0; i < attempt->run.count; i++) {
        if (is_cancelled(attempt)) {
            return lahar_fail(error, LAHAR_CANCELLED, "the store closes, or a part was dropped");
        }
        const lahar_status status =
            lahar_segment_writer_copy(writer, attempt->parts[i]->segment, error);
        if (status == LAHAR_CORRUPT) {
            attempt->is_part_refused = true;
            refuse(store, attempt->numbers[i]);
        }
        LAHAR_TRY(status);
    }
    return LAHAR_OK;
}

static lahar_status write_events(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    attempt->joined.directory = lahar_volume_choose(store);
    const struct lahar_segment_info *first = &attempt->run.files[0].info;
    const struct lahar_segment_info *last = &attempt->run.files[attempt->run.count - 1].info;
    const struct lahar_segment_writer_options options = {
        .number = atomic_fetch_add_explicit(&store->next_file_number, 1, memory_order_relaxed),
        .stream = first->stream,
        .group_first_id = first->group_first_id,
        .group_end_id = last->group_end_id,
        .group_file_count = 0};
    struct lahar_segment_writer *writer = NULL;
    LAHAR_TRY(
        lahar_segment_writer_create(store->io, lahar_volume_path(store, attempt->joined.directory),
                                    store->catalog, &options, &store->allocator, &writer, error));
    lahar_status status = copy_parts(attempt, writer, error);
    if (status == LAHAR_OK) {
        status = lahar_segment_writer_finish(writer, &attempt->joined.info, error);
    }
    lahar_segment_writer_destroy(writer);
    attempt->has_files = status == LAHAR_OK;
    return status;
}

/* LAHAR_CORRUPT when a part has no shard that can be read. */
static lahar_status merge_into(struct attempt *attempt, struct lahar_file_writing *writing,
                               lahar_error *error)
{
    struct lahar_shard *inputs[LAHAR_JOIN_FILES_MAX];
    for (size_t i = 0; i < attempt->run.count; i++) {
        inputs[i] = attempt->parts[i]->shard;
        if (inputs[i] == NULL) {
            return lahar_fail(error, LAHAR_CORRUPT, "event file %" PRIu64 " has no shard",
                              attempt->numbers[i]);
        }
    }
    const struct lahar_shard_merge merge = {.inputs = inputs,
                                            .input_count = attempt->run.count,
                                            .sink = {lahar_rollover_put_shard, writing},
                                            .is_cancelled = is_cancelled,
                                            .cancel_context = attempt,
                                            .allocator = &attempt->store->allocator};
    return lahar_shard_merge(&merge, error);
}

/* Writes the shard while it is made, so that no memory holds it. *do_not_serve_out: for the sake of
 * the parts' shards it cannot be made from them. */
static lahar_status merge_shards(struct attempt *attempt, bool *do_not_serve_out,
                                 lahar_error *error)
{
    struct lahar_file_writing writing;
    *do_not_serve_out = false;
    LAHAR_TRY(lahar_file_writing_begin(&writing, attempt->store, &attempt->joined,
                                       LAHAR_SHARD_SUFFIX, error));
    const lahar_status status = merge_into(attempt, &writing, error);
    if (status != LAHAR_OK) {
        *do_not_serve_out =
            writing.status == LAHAR_OK &&
            (status == LAHAR_CORRUPT || status == LAHAR_IO || status == LAHAR_UNSUPPORTED);
        lahar_file_writing_drop(&writing);
        return status;
    }
    LAHAR_TRY(lahar_file_writing_finish(&writing, error));
    lahar_rollover_note_shard(&attempt->joined, &writing);
    return LAHAR_OK;
}

/* From the events, where the shards of the parts do not serve. */
static lahar_status build_shard(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    struct lahar_segment *segment = NULL;
    LAHAR_TRY(lahar_segment_open(store->pool, lahar_volume_path(store, attempt->joined.directory),
                                 &attempt->joined.info, store->catalog, NULL, &store->allocator,
                                 &segment, error));
    const lahar_status status = lahar_rollover_rebuild_shard(store, segment, &attempt->joined,
                                                             is_cancelled, attempt, error);
    lahar_segment_release(segment);
    return status;
}

static lahar_status write_shard(struct attempt *attempt, lahar_error *error)
{
    bool do_not_serve = false;
    const lahar_status status = merge_shards(attempt, &do_not_serve, error);
    return do_not_serve ? build_shard(attempt, error) : status;
}

static lahar_status write_files(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    LAHAR_TRY(write_events(attempt, error));
    LAHAR_TRY(lahar_rollover_sum_toc(store, &attempt->joined, error));
    LAHAR_TRY(write_shard(attempt, error));
    const struct lahar_stored_place place = lahar_store_place(store, attempt->joined.directory);
    LAHAR_TRY(lahar_stored_file_open(&place, &attempt->joined, &attempt->file, error));
    if (attempt->file->segment == NULL || attempt->file->shard == NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "joined event file %" PRIu64 " cannot be read back",
                          attempt->joined.info.number);
    }
#ifdef LAHAR_PLANTED_BUGS
    if ((store->config.planted_bugs & LAHAR_PLANTED_JOIN_NO_DIRECTORY_SYNC) != 0) {
        return LAHAR_OK;
    }
#endif
    return store->io->ops->sync_directory(
        store->io, lahar_volume_path(store, attempt->joined.directory), error);
}

/* --- replacing --------------------------------------------------------------------------- */

static const struct lahar_manifest_file *find_entry(const struct lahar_manifest_state *state,
                                                    uint64_t number)
{
    for (size_t i = 0; i < state->file_count; i++) {
        if (state->files[i].info.number == number) {
            return &state->files[i];
        }
    }
    return NULL;
}

/* With the layout and the manifest lock held. LAHAR_CANCELLED when a part has gone. */
static lahar_status commit(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    for (size_t i = 0; i < attempt->run.count; i++) {
        const struct lahar_manifest_file *part =
            find_entry(&store->manifest->state, attempt->numbers[i]);
        if (part == NULL) {
            return lahar_fail(error, LAHAR_CANCELLED, "event file %" PRIu64 " was dropped",
                              attempt->numbers[i]);
        }
        if (part->age_stamp_ns > attempt->joined.age_stamp_ns) {
            attempt->joined.age_stamp_ns = part->age_stamp_ns;
        }
    }
    attempt->file->entry.age_stamp_ns = attempt->joined.age_stamp_ns;
#ifdef LAHAR_PLANTED_BUGS
    for (size_t i = 0; (store->config.planted_bugs & LAHAR_PLANTED_JOIN_REMOVES_FIRST) != 0 &&
                       i < attempt->run.count;
         i++) {
        lahar_rollover_remove_part(store, &attempt->run.files[i]);
    }
#endif
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    lahar_manifest_put_replace(&records, attempt->numbers, (uint32_t)attempt->run.count,
                               &attempt->joined, 1);
    lahar_manifest_put_file_number(
        &records, atomic_load_explicit(&store->next_file_number, memory_order_relaxed));
    const lahar_status status = lahar_store_commit_locked(store, &records, error);
    lahar_buffer_deinit(&records);
    return status;
}

static lahar_status publish(struct attempt *attempt, lahar_error *error)
{
    lahar_store *store = attempt->store;
    struct lahar_segment_set *set = NULL;
    (void)pthread_mutex_lock(&store->layout_lock);
    struct lahar_segment_set *base = lahar_store_acquire_set(store);
    const struct lahar_segment_set_change change = {.added = &attempt->file,
                                                    .added_count = 1,
                                                    .removed = attempt->numbers,
                                                    .removed_count = attempt->run.count,
                                                    .rolled_id = base->rolled_id};
    lahar_status status = lahar_segment_set_create(base, &change, &store->allocator, &set, error);
    if (status == LAHAR_OK) {
        (void)pthread_mutex_lock(&store->manifest_lock);
        status = commit(attempt, error);
        (void)pthread_mutex_unlock(&store->manifest_lock);
    }
    if (status == LAHAR_OK) {
        lahar_store_publish_set(store, set);
        lahar_segment_set_discard(base, attempt->numbers, attempt->run.count);
    } else {
        lahar_segment_set_release(set);
    }
    (void)pthread_mutex_unlock(&store->layout_lock);
    lahar_segment_set_release(base);
    return status;
}

bool lahar_join_step(lahar_store *store)
{
    const uint64_t now_ns = store->io->ops->monotonic_ns(store->io);
    if (now_ns < store->join.retry_at_ns || store->config.join_file_count == UINT32_MAX ||
        can_wait(store) || are_questions_first(store, now_ns) || !lahar_volume_has_space(store)) {
        return false;
    }
    lahar_error error = {0};
    struct attempt *attempt = lahar_allocate_zeroed(&store->allocator, 1, sizeof *attempt);
    if (attempt == NULL) {
        store->join.retry_at_ns = now_ns + RETRY_NS;
        return false;
    }
    attempt->store = store;
    lahar_status status = choose(attempt, &error);
    const bool has_run = attempt->run.count != 0;
    if (status == LAHAR_OK && has_run) {
        status = find_parts(attempt) ? write_files(attempt, &error)
                                     : lahar_fail(&error, LAHAR_CANCELLED, "a part has gone");
    }
    if (status == LAHAR_OK && has_run) {
        status = publish(attempt, &error);
    }
    if (has_run && status != LAHAR_OK) {
        lahar_volume_note_failure(store, attempt->joined.directory, status);
    }
    store->join.put_off_ns = has_run ? 0 : store->join.put_off_ns;
    if (status == LAHAR_CANCELLED) {
        store->join.retry_at_ns = now_ns + AGAIN_NS;
    } else if (status != LAHAR_OK) {
        if (status == LAHAR_CORRUPT && !attempt->is_part_refused) {
            refuse(store, attempt->numbers[0]);
        }
        store->join.retry_at_ns = now_ns + RETRY_NS;
        lahar_store_log(store, LAHAR_LOG_WARNING, "joining event files: %s", error.message);
    }
    /* After a failure for good it is not known whether the manifest names the file. */
    if (status != LAHAR_OK && status != LAHAR_POISONED && attempt->has_files) {
        lahar_rollover_remove_part(store, &attempt->joined);
    }
    lahar_stored_file_release(attempt->file);
    for (size_t i = 0; i < attempt->run.count; i++) {
        lahar_stored_file_release(attempt->parts[i]);
    }
    lahar_release(&store->allocator, attempt);
    return status == LAHAR_OK && has_run;
}

void lahar_join_rest(lahar_store *store, struct lahar_rest *rest_out)
{
    const uint64_t now_ns = store->io->ops->monotonic_ns(store->io);
    *rest_out = LAHAR_REST_FOREVER;
    if (store->config.join_file_count == UINT32_MAX) {
        return;
    }
    const uint64_t asked_ns = atomic_load_explicit(&store->asked_ns, memory_order_relaxed);
    if (store->join.retry_at_ns > now_ns) {
        rest_out->until_ns = store->join.retry_at_ns;
    } else if (store->join.put_off_ns != 0 && !can_wait(store)) {
        rest_out->until_ns = asked_ns + QUIET_NS;
    } else if (!can_wait(store) && !lahar_volume_has_space(store)) {
        rest_out->until_ns = now_ns + AGAIN_NS;
    }
}
