/* Rebuilding the manifest.
 *
 * The footers say which files belonged to one rollover. A rollover of which all files are there
 * is taken as committed. The last one, if some of its files are missing and the journals hold its
 * events, was being written: it is left out and rolled again. Any other one with missing
 * files has lost them, or retention dropped them, and what is left of it is taken.
 * Joined files stand for their parts, which may still be there, and show that the rollovers in
 * their range were committed. Of rollovers whose ids overlap, attempts of which at most one was
 * committed, a complete one wins. The rolled id is where the files end; journals count from there
 * on.
 *
 * Nothing is removed here: what the new manifest does not name is left to the opening that
 * follows, and event files that cannot be read are renamed out of its way. */
#include "engine/store/manifest_rebuild.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/journal/recovery_survey.h"
#include "engine/segment/segment_format.h"
#include "engine/store/manifest_copy.h"
#include "io/base/error.h"
#include "io/whole_file.h"

/* Ids that may have been handed out beyond all that is left to see: twice the largest reserve. */
#define UNSEEN_IDS (UINT64_C(1) << 27)

struct rebuild {
    lahar_store *store;
    struct lahar_manifest_state state;
    uint64_t manifest_number;          /* the highest there is */
    bool is_salvaged_whole;            /* the state is all that the manifest said */
    struct lahar_manifest_file *known; /* files that the salvaged manifest named */
    size_t known_count;
    struct lahar_manifest_file *files;
    bool *is_part; /* by file: a joined one stands for it */
    size_t file_count;
    size_t file_capacity;
    size_t joined_count; /* the last ones of files, once rollovers have been chosen */
    uint64_t number_max;
    lahar_error *error;
};

/* --- what the manifest and its copy still say ------------------------------------------------ */

static lahar_status note_manifest(void *context, const char *name, bool is_directory)
{
    struct rebuild *rebuild = context;
    uint64_t number = 0;
    if (!is_directory && lahar_manifest_parse_name(name, &number) &&
        number > rebuild->manifest_number) {
        rebuild->manifest_number = number;
    }
    return LAHAR_OK;
}

/* Applies what is valid of the manifest's beginning. */
static void salvage(struct rebuild *rebuild, struct lahar_manifest_state *state)
{
    lahar_store *store = rebuild->store;
    char name[LAHAR_MANIFEST_NAME_SIZE];
    uint8_t *data = NULL;
    size_t size = 0;
    struct lahar_manifest_scan scan;
    lahar_manifest_name(rebuild->manifest_number, name);
    if (rebuild->manifest_number == 0 ||
        lahar_manifest_read_file(store->io, store->directory, name, &store->allocator, &data, &size,
                                 NULL) != LAHAR_OK) {
        return;
    }
    rebuild->is_salvaged_whole =
        lahar_manifest_scan(data, size, store->identity.store_id, rebuild->manifest_number, state,
                            &scan, NULL) == LAHAR_OK;
    lahar_release(&store->allocator, data);
}

/* Of the directories, too, whatever either knows. */
static lahar_status take_directories(struct rebuild *rebuild,
                                     const struct lahar_manifest_state *other)
{
    struct lahar_manifest_state *state = &rebuild->state;
    struct lahar_buffer records;
    lahar_buffer_init(&records, &rebuild->store->allocator);
    for (size_t i = state->directory_count; i < other->directory_count; i++) {
        lahar_manifest_put_directory(&records, (uint32_t)i + 1, other->directories[i].name,
                                     other->directories[i].path);
    }
    lahar_status status = LAHAR_OK;
    if (records.has_failed) {
        status = lahar_fail(rebuild->error, LAHAR_NO_MEMORY, "no memory for volumes");
    } else if (records.size != 0) {
        status = lahar_manifest_state_apply(state, records.data, records.size, rebuild->error);
    }
    lahar_buffer_deinit(&records);
    return status;
}

/* Takes the manifest's own beginning or the copy, whichever knows more names. */
static lahar_status gather_names(struct rebuild *rebuild)
{
    lahar_store *store = rebuild->store;
    LAHAR_TRY(
        store->io->ops->list(store->io, store->directory, note_manifest, rebuild, rebuild->error));
    struct lahar_manifest_state *state = &rebuild->state;
    struct lahar_manifest_state copy;
    lahar_manifest_state_init(&copy, &store->allocator);
    salvage(rebuild, state);
    (void)lahar_manifest_copy_read(store->io, store->events_directory, store->identity.store_id,
                                   &store->allocator, &copy, NULL);
    if (copy.stream_count > state->stream_count) {
        const struct lahar_manifest_state other = *state;
        const uint64_t rolled_id = state->rolled_id;
        const uint64_t ceiling = state->ceiling;
        *state = copy;
        copy = other;
        state->rolled_id = rolled_id > state->rolled_id ? rolled_id : state->rolled_id;
        state->ceiling = ceiling > state->ceiling ? ceiling : state->ceiling;
    }
    lahar_status status = take_directories(rebuild, &copy);
    for (size_t i = 0; status == LAHAR_OK && i < copy.lost.count; i++) {
        status = lahar_lost_list_add(&state->lost, copy.lost.ranges[i], &store->allocator,
                                     rebuild->error);
    }
    lahar_manifest_state_deinit(&copy);
    LAHAR_TRY(status);
    rebuild->known = state->files;
    rebuild->known_count = state->file_count;
    state->files = NULL;
    state->file_count = 0;
    state->file_capacity = 0;
    state->session_count = 0;
    return LAHAR_OK;
}

/* --- the files ----------------------------------------------------------------------------- */

static lahar_status add_file(struct rebuild *rebuild, const struct lahar_manifest_file *file)
{
    if (rebuild->file_count == rebuild->file_capacity) {
        const size_t capacity = rebuild->file_capacity == 0 ? 64 : 2 * rebuild->file_capacity;
        struct lahar_manifest_file *larger =
            lahar_reallocate(&rebuild->store->allocator, rebuild->files, capacity * sizeof *larger);
        if (larger == NULL) {
            return lahar_fail(rebuild->error, LAHAR_NO_MEMORY, "no memory for %zu event files",
                              capacity);
        }
        rebuild->files = larger;
        rebuild->file_capacity = capacity;
    }
    rebuild->files[rebuild->file_count++] = *file;
    return LAHAR_OK;
}

/* Size and checksum of a file that belongs to an event file; false when it cannot be read. */
static bool sum_file(const struct rebuild *rebuild, const struct lahar_manifest_file *file,
                     const char *suffix, uint64_t *size_out, uint32_t *checksum_out)
{
    lahar_store *store = rebuild->store;
    char name[LAHAR_FILE_NAME_SIZE];
    const uint64_t size_max =
        strcmp(suffix, LAHAR_TOC_SUFFIX) == 0 ? lahar_toc_size(file->info.block_count) : UINT64_MAX;
    lahar_segment_file_name(&file->info, suffix, name);
    return lahar_io_sum_named(store->io, lahar_volume_path(store, file->directory), name, size_max,
                              &store->allocator, size_out, checksum_out, NULL) == LAHAR_OK;
}

static void set_aside(lahar_store *store, const char *directory, const char *name)
{
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char aside[LAHAR_MANIFEST_PATH_SIZE];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    const int aside_length = snprintf(aside, sizeof aside, "%s.damaged", path);
    if (length > 0 && aside_length > 0 && (size_t)aside_length < sizeof aside) {
        (void)store->io->ops->rename(store->io, path, aside, NULL);
    }
    lahar_store_log(store, LAHAR_LOG_ERROR, "%s cannot be read: renamed to %s.damaged", name, name);
}

/* The names of a directory's event files, one behind the other, each with its end. */
static lahar_status note_name(void *context, const char *name, bool is_directory)
{
    const size_t size = strlen(name);
    if (!is_directory && size > 7 && size < LAHAR_FILE_NAME_SIZE &&
        strcmp(name + size - 7, ".events") == 0) {
        lahar_buffer_put(context, name, size + 1);
    }
    return LAHAR_OK;
}

static lahar_status look_at(struct rebuild *rebuild, uint32_t volume, const char *name)
{
    lahar_store *store = rebuild->store;
    struct lahar_manifest_file file = {.age_stamp_ns = rebuild->state.clock.age_ns,
                                       .directory = volume};
    const char *directory = lahar_volume_path(store, volume);
    lahar_error cause = {0};
    const lahar_status status =
        lahar_segment_probe(store->io, directory, name, &store->allocator, &file.info, &cause);
    const struct lahar_segment_info *info = &file.info;
    if (status == LAHAR_NO_MEMORY || status == LAHAR_IO) {
        return lahar_fail(rebuild->error, status, "%s: %s", name, cause.message);
    }
    if (status != LAHAR_OK || info->first_id > info->last_id ||
        info->first_id < info->group_first_id || info->last_id >= info->group_end_id ||
        info->stream >= LAHAR_STREAM_COUNT_MAX) {
        set_aside(store, directory, name);
        return LAHAR_OK;
    }
    rebuild->number_max = info->number > rebuild->number_max ? info->number : rebuild->number_max;
    if (info->stream < rebuild->state.stream_count &&
        info->last_id < rebuild->state.streams[info->stream].retention.low_id) {
        return LAHAR_OK; /* retention had dropped it */
    }
    for (size_t i = 0; i < rebuild->known_count; i++) {
        if (rebuild->known[i].info.number == info->number) {
            file.age_stamp_ns = rebuild->known[i].age_stamp_ns;
        }
    }
    uint64_t toc_bytes = 0;
    (void)sum_file(rebuild, &file, ".toc", &toc_bytes, &file.toc_checksum);
    file.has_shard = sum_file(rebuild, &file, ".shard", &file.shard_bytes, &file.shard_checksum);
    return add_file(rebuild, &file);
}

static lahar_status gather_from(struct rebuild *rebuild, uint32_t volume)
{
    lahar_store *store = rebuild->store;
    struct lahar_buffer names;
    lahar_buffer_init(&names, &store->allocator);
    lahar_status status = store->io->ops->list(store->io, lahar_volume_path(store, volume),
                                               note_name, &names, rebuild->error);
    if (status == LAHAR_OK && names.has_failed) {
        status = lahar_fail(rebuild->error, LAHAR_NO_MEMORY, "no memory to list event files");
    }
    for (size_t at = 0; status == LAHAR_OK && at < names.size;
         at += strlen((const char *)names.data + at) + 1) {
        status = look_at(rebuild, volume, (const char *)names.data + at);
    }
    lahar_buffer_deinit(&names);
    return status;
}

/* Files of a volume that is not there would be lost for good. */
static lahar_status gather_files(struct rebuild *rebuild)
{
    lahar_store *store = rebuild->store;
    LAHAR_TRY(lahar_volumes_open(store, &rebuild->state, rebuild->error));
    for (uint32_t i = 0; i < store->volume_count; i++) {
        const struct lahar_volume *volume = &store->volumes[i];
        if (!volume->is_available) {
            return lahar_fail(rebuild->error, LAHAR_IO,
                              "repairing needs volume \"%s\", which is not available: %s",
                              volume->name, volume->reason.message);
        }
        LAHAR_TRY(gather_from(rebuild, i));
    }
    return LAHAR_OK;
}

/* --- rollovers ------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static bool is_joined(const struct lahar_segment_info *info)
{
    return info->group_file_count == 0;
}

/* Whether the joined file stands for the other one of its stream. Of joined files, which are made
 * of each other, the widest and then the newest counts. */
static bool replaces(const struct lahar_segment_info *joined,
                     const struct lahar_segment_info *other)
{
    if (joined->stream != other->stream || joined->number == other->number ||
        joined->group_first_id > other->group_first_id ||
        joined->group_end_id < other->group_end_id) {
        return false;
    }
    const bool is_as_wide = is_joined(other) && joined->group_first_id == other->group_first_id &&
                            joined->group_end_id == other->group_end_id;
    return !is_as_wide || joined->number > other->number;
}

/* Takes out what joined files stand for. */
static void drop_parts(struct rebuild *rebuild)
{
    struct lahar_manifest_file *files = rebuild->files;
    size_t kept = 0;
    for (size_t i = 0; i < rebuild->file_count; i++) {
        bool is_replaced = false;
        for (size_t k = 0; k < rebuild->file_count && !is_replaced; k++) {
            is_replaced = is_joined(&files[k].info) && replaces(&files[k].info, &files[i].info);
        }
        rebuild->is_part[i] = is_replaced;
    }
    for (size_t i = 0; i < rebuild->file_count; i++) {
        if (!rebuild->is_part[i]) {
            files[kept++] = files[i];
        }
    }
    rebuild->file_count = kept;
}

/* Joined files last; by rollover, in it by stream, of each stream the newest attempt first. */
static int compare_files(const void *a, const void *b)
{
    const struct lahar_segment_info *left = &((const struct lahar_manifest_file *)a)->info;
    const struct lahar_segment_info *right = &((const struct lahar_manifest_file *)b)->info;
    int order = is_joined(left) - is_joined(right);
    order = order != 0 ? order : compare(left->group_first_id, right->group_first_id);
    order = order != 0 ? order : compare(left->group_end_id, right->group_end_id);
    order = order != 0 ? order : compare(left->stream, right->stream);
    return order != 0 ? order : compare(right->number, left->number);
}

/* The rollovers taken so far: the files before kept, of which the last one's begin at start. */
struct taken {
    size_t kept;
    size_t start;
    bool is_complete;
    uint64_t end_id;
    uint64_t joined_end_id; /* rollovers below were committed: files of theirs have been joined */
};

/* Takes the files from begin to end, of one rollover, or not. */
static void take_group(struct rebuild *rebuild, struct taken *taken, size_t begin, size_t end)
{
    struct lahar_manifest_file *files = rebuild->files;
    const struct lahar_segment_info info = files[begin].info;
    uint32_t streams = 0;
    for (size_t i = begin; i < end; i++) {
        streams += i == begin || files[i].info.stream != files[i - 1].info.stream;
    }
    const bool is_complete =
        streams == info.group_file_count || info.group_end_id <= taken->joined_end_id;
    if (taken->kept != 0 && info.group_first_id < taken->end_id) {
        if (taken->is_complete || !is_complete) {
            return;
        }
        taken->kept = taken->start;
    }
    taken->start = taken->kept;
    taken->is_complete = is_complete;
    taken->end_id = info.group_end_id;
    uint32_t stream = UINT32_MAX;
    for (size_t i = begin; i < end; i++) {
        if (files[i].info.stream != stream) {
            stream = files[i].info.stream;
            files[taken->kept++] = files[i];
        }
    }
}

/* What of the files is taken stands at their beginning then, joined ones behind it. */
static lahar_status choose_files(struct rebuild *rebuild, struct taken *taken)
{
    *taken = (struct taken){0};
    if (rebuild->file_count == 0) {
        return LAHAR_OK;
    }
    rebuild->is_part = lahar_allocate_zeroed(&rebuild->store->allocator, rebuild->file_count,
                                             sizeof *rebuild->is_part);
    if (rebuild->is_part == NULL) {
        return lahar_fail(rebuild->error, LAHAR_NO_MEMORY, "no memory to sort event files");
    }
    drop_parts(rebuild);
    struct lahar_manifest_file *files = rebuild->files;
    qsort(files, rebuild->file_count, sizeof *files, compare_files);
    size_t plain = rebuild->file_count;
    for (; plain > 0 && is_joined(&files[plain - 1].info); plain--) {
        const uint64_t end_id = files[plain - 1].info.group_end_id;
        taken->joined_end_id = end_id > taken->joined_end_id ? end_id : taken->joined_end_id;
    }
    for (size_t begin = 0; begin < plain;) {
        size_t end = begin + 1;
        while (end < plain && files[end].info.group_first_id == files[begin].info.group_first_id &&
               files[end].info.group_end_id == files[begin].info.group_end_id) {
            end++;
        }
        take_group(rebuild, taken, begin, end);
        begin = end;
    }
    rebuild->joined_count = rebuild->file_count - plain;
    memmove(&files[taken->kept], &files[plain], rebuild->joined_count * sizeof *files);
    rebuild->file_count = taken->kept + rebuild->joined_count;
    return LAHAR_OK;
}

/* Whether the last rollover's files from taken->start on are of one that was being written. */
static bool is_unfinished(const struct rebuild *rebuild, const struct taken *taken,
                          const struct lahar_journal_survey *survey)
{
    uint64_t first_id = UINT64_MAX;
    uint64_t last_id = 0;
    for (size_t i = taken->start; i < taken->kept; i++) {
        const struct lahar_segment_info *info = &rebuild->files[i].info;
        first_id = info->first_id < first_id ? info->first_id : first_id;
        last_id = info->last_id > last_id ? info->last_id : last_id;
    }
    for (size_t i = 0; i < survey->session_count; i++) {
        const struct lahar_journal_session *session = &survey->sessions[i];
        if (session->end_id > last_id && session->first_id <= first_id) {
            return true;
        }
    }
    return false;
}

/* Finds the rolled id and what the journals hold above it. */
static lahar_status choose_rolled(struct rebuild *rebuild, struct lahar_journal_survey *survey)
{
    lahar_store *store = rebuild->store;
    struct lahar_manifest_state *state = &rebuild->state;
    struct taken taken;
    LAHAR_TRY(choose_files(rebuild, &taken));
    if (taken.kept != 0 && !taken.is_complete &&
        rebuild->files[taken.start].info.group_first_id >= state->rolled_id) {
        const uint64_t first_id = rebuild->files[taken.start].info.group_first_id;
        LAHAR_TRY(lahar_journal_survey(store->io, store->journal_directory,
                                       store->identity.store_id, first_id, &store->allocator,
                                       survey, rebuild->error));
        /* A manifest that can be read knows every rollover that was finished. */
        if (rebuild->is_salvaged_whole || is_unfinished(rebuild, &taken, survey)) {
            memmove(&rebuild->files[taken.start], &rebuild->files[taken.kept],
                    rebuild->joined_count * sizeof *rebuild->files);
            rebuild->file_count = taken.start + rebuild->joined_count;
            state->rolled_id = first_id;
            return LAHAR_OK;
        }
        lahar_journal_survey_deinit(survey, &store->allocator);
    }
    const uint64_t end_id = taken.end_id > taken.joined_end_id ? taken.end_id : taken.joined_end_id;
    state->rolled_id = end_id > state->rolled_id ? end_id : state->rolled_id;
    return lahar_journal_survey(store->io, store->journal_directory, store->identity.store_id,
                                state->rolled_id, &store->allocator, survey, rebuild->error);
}

/* --- the new manifest ------------------------------------------------------------------------ */

/* Streams of which only the number is left get a name made from it. */
static void put_lost_streams(const struct rebuild *rebuild, struct lahar_buffer *records)
{
    uint32_t end = (uint32_t)rebuild->state.stream_count;
    for (size_t i = 0; i < rebuild->file_count; i++) {
        end = rebuild->files[i].info.stream >= end ? rebuild->files[i].info.stream + 1 : end;
    }
    for (uint32_t stream = (uint32_t)rebuild->state.stream_count; stream < end; stream++) {
        char name[32];
        (void)snprintf(name, sizeof name, "stream-%" PRIu32, stream);
        lahar_manifest_put_stream(
            records, stream,
            &(struct lahar_manifest_stream){.name = name, .schema = LAHAR_SCHEMA_LOG});
        lahar_store_log(rebuild->store, LAHAR_LOG_ERROR,
                        "the name of stream %" PRIu32 " is lost: it is called \"%s\"", stream,
                        name);
    }
}

static void put_sessions(const struct lahar_journal_survey *survey, struct lahar_buffer *records)
{
    uint64_t end_id = 1;
    for (size_t i = 0; i < survey->session_count; i++) {
        const struct lahar_journal_session *session = &survey->sessions[i];
        const bool is_empty = session->end_id == 0;
        const uint64_t first_id = is_empty ? end_id : session->first_id;
        end_id = is_empty ? end_id : session->end_id;
        lahar_manifest_put_session_begin(records, session->session, first_id);
        lahar_manifest_put_session_end(records, session->session, end_id);
    }
}

static uint64_t find_ceiling(const struct rebuild *rebuild,
                             const struct lahar_journal_survey *survey)
{
    uint64_t ceiling = rebuild->state.ceiling;
    ceiling = rebuild->state.rolled_id > ceiling ? rebuild->state.rolled_id : ceiling;
    ceiling = survey->end_id > ceiling ? survey->end_id : ceiling;
    return rebuild->is_salvaged_whole ? ceiling : ceiling + UNSEEN_IDS;
}

static lahar_status write_manifest(struct rebuild *rebuild,
                                   const struct lahar_journal_survey *survey)
{
    lahar_store *store = rebuild->store;
    struct lahar_manifest_state *state = &rebuild->state;
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    put_lost_streams(rebuild, &records);
    (void)lahar_volumes_put_new(store, &records);
    put_sessions(survey, &records);
    for (size_t i = 0; i < rebuild->file_count; i++) {
        lahar_manifest_put_file(&records, &rebuild->files[i]);
    }
    const uint64_t number = rebuild->number_max + 1;
    lahar_manifest_put_file_number(
        &records, number > state->next_file_number ? number : state->next_file_number);
    lahar_manifest_put_ceiling(&records, find_ceiling(rebuild, survey));
    lahar_status status =
        records.has_failed
            ? lahar_fail(rebuild->error, LAHAR_NO_MEMORY, "no memory to rebuild the manifest")
            : lahar_manifest_state_apply(state, records.data, records.size, rebuild->error);
    lahar_buffer_deinit(&records);
    if (status == LAHAR_OK) {
        status = lahar_manifest_create_from(store->io, store->directory, store->identity.store_id,
                                            rebuild->manifest_number + 1, state, &store->allocator,
                                            rebuild->error);
    }
    if (status == LAHAR_OK) {
        lahar_store_log(store, LAHAR_LOG_WARNING,
                        "the manifest was rebuilt: %zu event files, events below %" PRIu64
                        ", %" PRIu64 " batches behind a hole in the journals are lost",
                        rebuild->file_count, state->rolled_id, survey->dropped_batches);
    }
    return status;
}

lahar_status lahar_manifest_rebuild(lahar_store *store, lahar_error *error)
{
    struct rebuild rebuild = {.store = store, .error = error};
    struct lahar_journal_survey survey = {0};
    lahar_manifest_state_init(&rebuild.state, &store->allocator);
    lahar_status status = gather_names(&rebuild);
    if (status == LAHAR_OK) {
        status = gather_files(&rebuild);
    }
    if (status == LAHAR_OK) {
        status = choose_rolled(&rebuild, &survey);
    }
    if (status == LAHAR_OK) {
        status = write_manifest(&rebuild, &survey);
    }
    lahar_journal_survey_deinit(&survey, &store->allocator);
    lahar_release(&store->allocator, rebuild.known);
    lahar_release(&store->allocator, rebuild.files);
    lahar_release(&store->allocator, rebuild.is_part);
    lahar_manifest_state_deinit(&rebuild.state);
    return status;
}
