/* Runs one scenario on one simulated disk: see crash_run.h. */
#include "crash_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/store/store_internal.h"
#include "io/base/allocator.h"
#include "io/base/bytes.h"
#include "io/sim_disk.h"

enum {
    DIRECTORY_STREAMS = HISTORY_STREAMS,
    INNER_POINTS = 24,
    NAME_SIZE = 128,
    ROT_FRAMES_MAX = 64,
    /* docs/format/journal.md */
    JOURNAL_HEADER_SIZE = 4096,
    FRAME_HEADER_SIZE = 56,
    FRAME_KIND = 45, /* offset of the kind */
    FRAME_BATCH = 1,
    FRAME_COUNTS = 32, /* offset of the event count and two sizes */
    FRAME_COUNTS_SIZE = 12
};
static const char store_directory[] = "store";

/* A store in use, and the disk under it. */
struct live {
    struct crash_run *run;
    struct lahar_sim_disk *disk;
    struct lahar_io *io;
    lahar_store *store;
    lahar_batch *batch;
    uint32_t streams[DIRECTORY_STREAMS];
    uint32_t extra_streams;
    bool needs_repair; /* the manifest has been taken away */
    uint64_t random;
    struct history history;
};

/* splitmix64 */
static uint64_t draw(struct live *live, uint64_t below)
{
    uint64_t z = (live->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static bool fail(struct live *live, const char *what, const lahar_error *error)
{
    if (live->run->reason[0] == '\0') {
        (void)snprintf(live->run->reason, sizeof live->run->reason, "%s: %.400s", what,
                       error == NULL ? live->history.reason : error->message);
    }
    return false;
}

static lahar_status open_store(struct live *live, bool read_only, lahar_error *error)
{
    const uint32_t join_file_count = live->run->scenario->join_file_count;
    struct lahar_store_config config = {.io = live->io,
                                        .planted_bugs = live->run->planted,
                                        .join_file_count =
                                            join_file_count == 0 ? UINT32_MAX : join_file_count};
    lahar_options options;
    lahar_options_init(&options);
    options.repair = live->needs_repair;
    options.read_only = read_only;
    options.durability = live->run->scenario->durability;
    options.group_event_count = live->run->scenario->group_event_count;
    options.journal_count = live->run->scenario->journal_count;
    options.memory_limit_bytes = 64u << 20;
    return lahar_store_open_config(store_directory, &options, &config, LAHAR_NO_WAIT, &live->store,
                                   error);
}

static lahar_status find_or_create_stream(struct live *live, const char *name, uint32_t *stream_out,
                                          lahar_error *error)
{
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = name, .schema = LAHAR_SCHEMA_LOG};
    const lahar_status status = lahar_stream_create(live->store, &spec, stream_out, error);
    if (status == LAHAR_EXISTS) {
        *error = (lahar_error){0};
        return LAHAR_OK;
    }
    return status;
}

static lahar_status open_live(struct live *live, lahar_error *error)
{
    lahar_status status = lahar_sim_disk_io(live->disk, &live->io, error);
    if (status == LAHAR_OK) {
        status = open_store(live, false, error);
    }
    if (status == LAHAR_OK) {
        status = find_or_create_stream(live, "even", &live->streams[0], error);
    }
    if (status == LAHAR_OK) {
        status = find_or_create_stream(live, "odd", &live->streams[1], error);
    }
    if (status == LAHAR_OK) {
        status = lahar_batch_create(live->store, &live->batch, error);
    }
    return status;
}

/* Leaves the store as a dying process would. */
static void drop_live(struct live *live)
{
    lahar_batch_destroy(live->batch);
    live->batch = NULL;
    lahar_store_abandon(live->store);
    live->store = NULL;
    if (live->io != NULL) {
        live->io->ops->destroy(live->io);
        live->io = NULL;
    }
}

static lahar_status close_live(struct live *live, lahar_error *error)
{
    lahar_batch_destroy(live->batch);
    live->batch = NULL;
    const lahar_status status = lahar_store_close(live->store, LAHAR_WAIT_FOREVER, error);
    live->store = NULL;
    live->io->ops->destroy(live->io);
    live->io = NULL;
    return status;
}

static lahar_status append(struct live *live, const struct crash_action *action, lahar_error *error)
{
    struct history *history = &live->history;
    const uint32_t number = history->batch_count;
    struct history_batch *batch = &history->batches[number];
    const lahar_append_options options = {.struct_size = sizeof options,
                                          .durability = action->durability,
                                          .deadline_ns = LAHAR_WAIT_FOREVER};
    *batch = (struct history_batch){.event_count = action->events,
                                    .message_size = action->message_size,
                                    .session = history->session,
                                    .appended_ns = live->io->ops->monotonic_ns(live->io),
                                    .has_offset =
                                        action->has_offset || action->kind == CRASH_OFFSET_ONLY};
    history->batch_count++;
    lahar_status status = history_build(history, number, live->streams, live->batch, error);
    if (status == LAHAR_OK) {
        status = lahar_batch_commit(live->batch, &options, &batch->first_id, error);
    }
    batch->is_gone = batch->first_id == 0;
    if (batch->first_id != 0 && batch->first_id < history->id_ceiling) {
        (void)snprintf(error->message, sizeof error->message, "id %llu was handed out twice",
                       (unsigned long long)batch->first_id);
        return error->status = LAHAR_INTERNAL;
    }
    if (batch->first_id != 0) {
        history->id_ceiling = batch->first_id + (batch->event_count == 0 ? 1 : batch->event_count);
    }
    batch->is_durable = status == LAHAR_OK && action->durability == LAHAR_DURABILITY_COMMIT;
    return status;
}

static lahar_status no_space(struct live *live, const struct crash_action *action,
                             lahar_error *error)
{
    lahar_sim_disk_capacity(live->disk, 0);
    lahar_status status = append(live, action, error);
    for (unsigned i = 0; i < 40; i++) {
        (void)lahar_store_step(live->store, (uint32_t)draw(live, LAHAR_WORK_COUNT));
    }
    lahar_sim_disk_capacity(live->disk, UINT64_MAX);
    lahar_sim_disk_advance(live->disk, UINT64_C(2000000000));
    if (status == LAHAR_NO_SPACE) {
        *error = (lahar_error){0};
        status = LAHAR_OK;
    }
    return status;
}

/* The journals fail in the midst of an append and of what follows it. Whatever the store says of
 * it, it must not have acknowledged what is not there when it is opened again. */
static lahar_status io_error(struct live *live, const struct crash_action *action,
                             lahar_error *error)
{
    const enum lahar_sim_fault fault =
        draw(live, 2) == 0 ? LAHAR_SIM_FAULT_EIO : LAHAR_SIM_FAULT_SYNC_LOST;
    lahar_sim_disk_fault(live->disk, fault, lahar_sim_disk_operations(live->disk) + draw(live, 4),
                         1, "journal");
    lahar_status status = append(live, action, error);
    for (unsigned i = 0; i < 10; i++) {
        (void)lahar_store_step(live->store, (uint32_t)draw(live, LAHAR_WORK_COUNT));
    }
    lahar_sim_disk_fault(live->disk, LAHAR_SIM_FAULT_NONE, 0, 0, NULL);
    if (status == LAHAR_POISONED && !lahar_sim_disk_has_crashed(live->disk)) {
        *error = (lahar_error){0};
        status = LAHAR_OK;
    }
    return status;
}

static uint64_t now_ns(struct live *live)
{
    return live->io->ops->monotonic_ns(live->io);
}

static lahar_status set_limits(struct live *live, uint32_t stream, uint64_t max_bytes,
                               uint64_t max_age_ns, lahar_error *error)
{
    const lahar_retention limits = {sizeof limits, max_bytes, max_age_ns};
    return lahar_retention_set(live->store, stream, &limits, error);
}

/* After a crash the limits may still be set. */
static lahar_status lift_limits(struct live *live, lahar_error *error)
{
    lahar_status status = set_limits(live, LAHAR_ANY_STREAM, 0, 0, error);
    if (status == LAHAR_OK) {
        status = set_limits(live, live->streams[0], 0, 0, error);
    }
    return status;
}

static lahar_status roll_over(struct live *live, lahar_error *error)
{
    const lahar_status status = lahar_rollover(live->store, LAHAR_WAIT_FOREVER, error);
    if (status == LAHAR_OK) {
        history_note_rolled(&live->history, now_ns(live));
    }
    return status;
}

/* What is noted before the limit is set may go from then on; what is noted after it was enforced
 * is gone for good. */
static lahar_status retain(struct live *live, const struct crash_action *action, lahar_error *error)
{
    struct history *history = &live->history;
    uint64_t must_go_below = history->id_ceiling;
    lahar_status status = LAHAR_OK;
    const uint32_t streams = action->kind == CRASH_RETAIN_STREAM ? 1 : HISTORY_STREAMS;
    if (action->kind == CRASH_RETAIN_AGE) {
        const uint64_t max_age_ns = action->events * UINT64_C(1000000000);
        must_go_below = history_note_age_limit(history, max_age_ns, now_ns(live));
        status = set_limits(live, LAHAR_ANY_STREAM, 0, max_age_ns, error);
    } else {
        status = roll_over(live, error);
        for (uint32_t i = 0; status == LAHAR_OK && i < streams; i++) {
            history->may_go_below[i] = must_go_below;
        }
        if (status == LAHAR_OK) {
            status =
                set_limits(live, streams == 1 ? live->streams[0] : LAHAR_ANY_STREAM, 1, 0, error);
        }
    }
    while (status == LAHAR_OK && lahar_store_step(live->store, LAHAR_WORK_RETENTION)) {
    }
    if (status == LAHAR_OK) {
        status = lift_limits(live, error);
    }
    for (uint32_t i = 0; status == LAHAR_OK && i < streams; i++) {
        history->must_go_below[i] =
            must_go_below > history->must_go_below[i] ? must_go_below : history->must_go_below[i];
    }
    return status;
}

static lahar_status remove_manifest(void *context, const char *name, bool is_directory)
{
    struct live *live = context;
    char path[NAME_SIZE];
    if (is_directory || strncmp(name, "manifest-", 9) != 0) {
        return LAHAR_OK;
    }
    (void)snprintf(path, sizeof path, "%s/%.100s", store_directory, name);
    return live->io->ops->unlink(live->io, path, NULL);
}

static lahar_status lose_manifest(struct live *live, lahar_error *error)
{
    history_note_durable(&live->history, lahar_durable_id(live->store));
    drop_live(live);
    lahar_sim_disk_restart(live->disk, live->random, false);
    live->needs_repair = true;
    lahar_status status = lahar_sim_disk_io(live->disk, &live->io, error);
    if (status == LAHAR_OK) {
        status = live->io->ops->list(live->io, store_directory, remove_manifest, live, error);
        live->io->ops->destroy(live->io);
        live->io = NULL;
    }
    if (status == LAHAR_OK) {
        status = open_live(live, error);
    }
    if (status == LAHAR_OK) {
        history_settle(&live->history, live->store);
    }
    return status;
}

/* Kills the process, or cuts the power too, and opens again. */
static lahar_status stop_hard(struct live *live, bool keeps_power, lahar_error *error)
{
    history_note_durable(&live->history, lahar_durable_id(live->store));
    drop_live(live);
    lahar_sim_disk_restart(live->disk, live->random, !keeps_power);
    const lahar_status status = open_live(live, error);
    if (status == LAHAR_OK) {
        history_settle(&live->history, live->store);
    }
    return status;
}

static lahar_status act(struct live *live, const struct crash_action *action, lahar_error *error)
{
    char name[16];
    uint32_t stream = 0;
    lahar_status status = LAHAR_OK;
    switch (action->kind) {
    case CRASH_APPEND:
    case CRASH_OFFSET_ONLY:
        return append(live, action, error);
    case CRASH_STEPS:
        (void)lahar_store_step(live->store, (uint32_t)draw(live, LAHAR_WORK_COUNT));
        return LAHAR_OK;
    case CRASH_SYNC:
        return lahar_sync(live->store, LAHAR_WAIT_FOREVER, error);
    case CRASH_ROLLOVER:
        return roll_over(live, error);
    case CRASH_RETAIN_NOTHING:
    case CRASH_RETAIN_STREAM:
    case CRASH_RETAIN_AGE:
        return retain(live, action, error);
    case CRASH_LOSE_MANIFEST:
        return lose_manifest(live, error);
    case CRASH_ADVANCE:
        lahar_sim_disk_advance(live->disk, UINT64_C(1000000000));
        return LAHAR_OK;
    case CRASH_NO_SPACE:
        return no_space(live, action, error);
    case CRASH_STREAM:
        (void)snprintf(name, sizeof name, "extra%u", live->extra_streams++);
        return find_or_create_stream(live, name, &stream, error);
    case CRASH_REOPEN:
        status = close_live(live, error);
        for (uint32_t i = 0; status == LAHAR_OK && i < live->history.batch_count; i++) {
            live->history.batches[i].is_durable = !live->history.batches[i].is_gone;
        }
        live->history.session++;
        return status == LAHAR_OK ? open_live(live, error) : status;
    case CRASH_IO_ERROR:
        status = io_error(live, action, error);
        return status == LAHAR_OK ? stop_hard(live, false, error) : status;
    case CRASH_KILL:
    case CRASH_POWER_LOSS:
        return stop_hard(live, action->kind == CRASH_KILL, error);
    }
    return LAHAR_INTERNAL;
}

/* Runs the script until it ends or the disk crashes; false at a failure that no
 * crash explains. */
static bool play(struct live *live)
{
    const struct crash_scenario *scenario = live->run->scenario;
    lahar_error error = {0};
    lahar_status status = open_live(live, &error);
    for (size_t i = 0; status == LAHAR_OK && i < scenario->action_count; i++) {
        for (uint32_t n = 0; status == LAHAR_OK && n < scenario->actions[i].count; n++) {
            status = act(live, &scenario->actions[i], &error);
            if (live->store != NULL) {
                history_note_durable(&live->history, lahar_durable_id(live->store));
            }
        }
    }
    return status == LAHAR_OK || lahar_sim_disk_has_crashed(live->disk)
               ? true
               : fail(live, "scenario", &error);
}

static bool start(struct live *live, struct crash_run *run)
{
    lahar_error error = {0};
    memset(live, 0, sizeof *live);
    live->run = run;
    live->random = run->seed * 0x2545f4914f6cdd1du + 1;
    run->reason[0] = '\0';
    if (lahar_sim_disk_create(&lahar_allocator_libc, run->seed, &live->disk, &error) != LAHAR_OK) {
        return fail(live, "disk", &error);
    }
    return true;
}

static void finish(struct live *live)
{
    if (live->store != NULL || live->io != NULL) {
        drop_live(live);
    }
    lahar_sim_disk_destroy(live->disk);
}

static void note_finding(void *context, const lahar_finding *finding)
{
    struct live *live = context;
    lahar_error error = {0};
    (void)snprintf(error.message, sizeof error.message, "%s at %llu: %s", finding->file,
                   (unsigned long long)finding->offset, finding->message);
    (void)fail(live, "verify", &error);
}

static bool verify(struct live *live)
{
    lahar_error error = {0};
    lahar_verify_result result = {.struct_size = sizeof result};
    const lahar_verify_options options = {
        .struct_size = sizeof options, .full = true, .on_finding = note_finding, .context = live};
    if (lahar_verify(live->store, &options, &result, &error) != LAHAR_OK) {
        return fail(live, "verify", &error);
    }
    return result.finding_count == 0;
}

/* Judges what is there now; *found_out: events. */
static bool judge(struct live *live, const char *when, uint64_t *found_out)
{
    return history_check(&live->history, live->store, found_out) ? true : fail(live, when, NULL);
}

/* Two more commits, then a clean close or, what a recovery that synced too little does not
 * survive, a power loss; a reopening: all as if nothing had happened. */
static bool go_on(struct live *live, bool ends_in_power_loss)
{
    const struct crash_action more = {CRASH_APPEND, 1, 2, 40, LAHAR_DURABILITY_COMMIT, true};
    lahar_error error = {0};
    uint64_t found = 0;
    uint64_t again = 0;
    history_settle(&live->history, live->store);
    if (lift_limits(live, &error) != LAHAR_OK) {
        return fail(live, "lifting limits after recovery", &error);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (append(live, &more, &error) != LAHAR_OK) {
            return fail(live, "append after recovery", &error);
        }
    }
    if (!judge(live, "after recovery and appends", &found)) {
        return false;
    }
    if (ends_in_power_loss) {
        drop_live(live);
        lahar_sim_disk_restart(live->disk, live->random, true);
    } else if (close_live(live, &error) != LAHAR_OK) {
        return fail(live, "close after recovery", &error);
    }
    live->history.session++;
    if (open_live(live, &error) != LAHAR_OK) {
        return fail(live, "second reopening", &error);
    }
    if (!judge(live, "after the second reopening", &again)) {
        return false;
    }
    if (found != again) {
        (void)snprintf(error.message, sizeof error.message, "%llu events became %llu",
                       (unsigned long long)found, (unsigned long long)again);
        return fail(live, "second reopening", &error);
    }
    return true;
}

/* A reader opens the crashed directory before any writer: it must see a valid
 * state and touch nothing. */
static bool read_only_look(struct live *live)
{
    lahar_error error = {0};
    uint64_t found = 0;
    const uint64_t before = lahar_sim_disk_operations(live->disk);
    if (lahar_sim_disk_io(live->disk, &live->io, &error) != LAHAR_OK) {
        return fail(live, "disk", &error);
    }
    const lahar_status status = open_store(live, true, &error);
    bool ok = true;
    if (status == LAHAR_OK) {
        ok = judge(live, "read-only", &found);
    } else {
        for (uint32_t i = 0; i < live->history.batch_count; i++) {
            if (live->history.batches[i].is_durable) {
                ok = fail(live, "read-only opening", &error);
                break;
            }
        }
    }
    drop_live(live);
    if (ok && lahar_sim_disk_operations(live->disk) != before) {
        (void)snprintf(error.message, sizeof error.message, "a reader wrote");
        ok = fail(live, "read-only", &error);
    }
    return ok;
}

static lahar_status note_newest(void *context, const char *name, bool is_directory)
{
    char *newest = context;
    if (!is_directory && strcmp(name, newest) > 0) {
        (void)snprintf(newest, NAME_SIZE, "%s", name);
    }
    return LAHAR_OK;
}

/* A random bit of a random batch frame's header, the last one's as often as all others'
 * together, and of its counts as often as of the rest: there an unchecked bit does most harm.
 * Frames follow one another, each with its size in its first four bytes. */
static uint64_t choose_bit(struct live *live, const char *path)
{
    static uint8_t content[64 * 1024];
    uint64_t starts[ROT_FRAMES_MAX] = {JOURNAL_HEADER_SIZE};
    size_t count = 0;
    size_t size = 0;
    struct lahar_io_file *file = NULL;
    if (live->io->ops->open(live->io, path, LAHAR_IO_READ, &file, NULL) == LAHAR_OK) {
        if (live->io->ops->read(live->io, file, 0, content, sizeof content, &size, NULL) !=
            LAHAR_OK) {
            size = 0;
        }
        live->io->ops->close(live->io, file);
    }
    for (uint64_t at = JOURNAL_HEADER_SIZE;
         at + FRAME_HEADER_SIZE <= size && count < ROT_FRAMES_MAX;) {
        const uint32_t frame_size = lahar_load_u32(content + at);
        if (frame_size == 0 || frame_size > size - at) {
            break;
        }
        if (content[at + FRAME_KIND] == FRAME_BATCH) {
            starts[count++] = at;
        }
        at += frame_size;
    }
    const size_t frame = count == 0 ? 0 : draw(live, 2) == 0 ? count - 1 : draw(live, count);
    const uint64_t byte = draw(live, 2) == 0 ? FRAME_COUNTS + draw(live, FRAME_COUNTS_SIZE)
                                             : draw(live, FRAME_HEADER_SIZE);
    return (starts[frame] + byte) * 8 + draw(live, 8);
}

static bool rot_a_bit(struct live *live)
{
    char newest[NAME_SIZE] = "";
    char path[NAME_SIZE + 32];
    lahar_error error = {0};
    if (lahar_sim_disk_io(live->disk, &live->io, &error) != LAHAR_OK) {
        return fail(live, "disk", &error);
    }
    lahar_status status =
        live->io->ops->list(live->io, "store/journal", note_newest, newest, &error);
    if (status == LAHAR_OK && newest[0] != '\0') {
        (void)snprintf(path, sizeof path, "store/journal/%s", newest);
        status = lahar_sim_disk_flip_bit(live->disk, path, choose_bit(live, path), &error);
    }
    live->io->ops->destroy(live->io);
    live->io = NULL;
    /* A file of no length has no such bit, a disk without a store no such directory. */
    return status == LAHAR_OK || status == LAHAR_NOT_FOUND || error.sys_errno == EINVAL
               ? true
               : fail(live, "rot", &error);
}

/* The power fails once more within the next opening. */
static bool crash_inside_recovery(struct live *live, uint64_t at, uint64_t *inner_crashes)
{
    lahar_error error = {0};
    const uint64_t inner = lahar_sim_disk_operations(live->disk) + at % INNER_POINTS;
    lahar_sim_disk_crash_at(live->disk, inner);
    const lahar_status status = open_live(live, &error);
    if (status != LAHAR_OK && !lahar_sim_disk_has_crashed(live->disk) &&
        !(status == LAHAR_CORRUPT && live->history.is_damaged)) {
        return fail(live, "recovery", &error);
    }
    *inner_crashes += lahar_sim_disk_has_crashed(live->disk) ? 1 : 0;
    drop_live(live);
    lahar_sim_disk_crash_at(live->disk, UINT64_MAX);
    lahar_sim_disk_restart(live->disk, live->run->seed * 37 + at, true);
    return true;
}

static void note_lost(void *context, const lahar_finding *finding)
{
    struct live *live = context;
    if (strcmp(finding->file, "journal") != 0 ||
        !history_note_lost(&live->history, finding->first_id, finding->last_id)) {
        note_finding(context, finding);
    }
}

/* After rot the newest events may be gone as if torn, and others lost if the store says so; it
 * must not show what was never appended, nor lose more later. */
static bool recover_rotten(struct live *live, uint64_t at, uint64_t *inner_crashes)
{
    lahar_error error = {0};
    if (!rot_a_bit(live)) {
        return false;
    }
    live->history.is_damaged = true;
    if (at % 2 == 0 && !crash_inside_recovery(live, at, inner_crashes)) {
        return false;
    }
    lahar_status status = open_live(live, &error);
    if (status == LAHAR_CORRUPT) {
        /* Files of an unfinished rollover may be the only copy: repair takes them. */
        drop_live(live);
        error = (lahar_error){0};
        live->needs_repair = true;
        status = open_live(live, &error);
    }
    if (status != LAHAR_OK) {
        return fail(live, "opening after rot", &error);
    }
    live->history.is_repaired = live->needs_repair;
    live->needs_repair = false;
    for (uint32_t i = 0; i < live->history.batch_count; i++) {
        live->history.batches[i].is_durable = false;
    }
    lahar_verify_result result = {.struct_size = sizeof result};
    const lahar_verify_options options = {
        .struct_size = sizeof options, .full = true, .on_finding = note_lost, .context = live};
    if (lahar_verify(live->store, &options, &result, &error) != LAHAR_OK) {
        return fail(live, "verify after rot", &error);
    }
    uint64_t found = 0;
    return live->run->reason[0] == '\0' && judge(live, "after rot", &found) &&
           go_on(live, at % 4 < 2);
}

static bool recover(struct live *live, uint64_t at, unsigned variant, uint64_t *inner_crashes)
{
    lahar_error error = {0};
    uint64_t found = 0;
    /* The script is over: from here on every point draws its own numbers. */
    live->random += at * 0xd6e8feb86659fd93u;
    lahar_sim_disk_crash_at(live->disk, UINT64_MAX);
    lahar_sim_disk_restart(live->disk, live->run->seed * 31 + at * 7 + variant, variant != 2);
    if (variant == 4) {
        return recover_rotten(live, at, inner_crashes);
    }
    if (variant == 1 && !live->needs_repair && !read_only_look(live)) {
        return false;
    }
    if (variant == 3 && !crash_inside_recovery(live, at, inner_crashes)) {
        return false;
    }
    if (open_live(live, &error) != LAHAR_OK) {
        return fail(live, "recovery", &error);
    }
    return judge(live, "after recovery", &found) && verify(live) && go_on(live, variant % 2 == 0) &&
           verify(live);
}

bool crash_run_count(struct crash_run *run, uint64_t *operations_out)
{
    struct live live;
    uint64_t found = 0;
    *operations_out = 0;
    bool ok = start(&live, run) && play(&live) && judge(&live, "at the end", &found);
    if (ok) {
        *operations_out = lahar_sim_disk_operations(live.disk);
        ok = verify(&live) && go_on(&live, false) && verify(&live);
    }
    finish(&live);
    return ok;
}

bool crash_run_point(struct crash_run *run, uint64_t at, unsigned variant, uint64_t *inner_crashes)
{
    struct live live;
    bool ok = start(&live, run);
    if (ok) {
        lahar_sim_disk_crash_at(live.disk, at);
        ok = play(&live);
    }
    if (ok) {
        if (live.store != NULL) {
            history_note_durable(&live.history, lahar_durable_id(live.store));
        }
        drop_live(&live);
        ok = recover(&live, at, variant, inner_crashes);
    }
    finish(&live);
    return ok;
}
