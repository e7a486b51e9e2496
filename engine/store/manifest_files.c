/* The records of a manifest that are about event files. */
#include "engine/store/manifest_files.h"

#include <string.h>

#include "engine/store/manifest_format.h"
#include "io/base/error.h"

/* Numbers of a record that stand in a row. */
static void read_numbers(struct lahar_reader *payload, uint64_t *const *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *places[i] = lahar_read_u64(payload);
    }
}

static struct lahar_manifest_file read_file(struct lahar_reader *payload)
{
    struct lahar_manifest_file file = {0};
    struct lahar_segment_info *info = &file.info;
    uint64_t *const names[] = {&info->first_id, &info->last_id, &info->number};
    /* A signed number may be written through its unsigned type. */
    uint64_t *const contents[] = {&info->event_count,
                                  (uint64_t *)&info->time_min_ns,
                                  (uint64_t *)&info->time_max_ns,
                                  (uint64_t *)&info->arrival_min_ns,
                                  (uint64_t *)&info->arrival_max_ns,
                                  &info->raw_bytes,
                                  &info->file_bytes,
                                  &info->toc_bytes,
                                  &info->group_first_id,
                                  &info->group_end_id};
    read_numbers(payload, names, sizeof names / sizeof *names);
    info->stream = lahar_read_u32(payload);
    info->block_count = lahar_read_u32(payload);
    read_numbers(payload, contents, sizeof contents / sizeof *contents);
    info->group_file_count = lahar_read_u32(payload);
    file.has_shard = (lahar_read_u32(payload) & LAHAR_MANIFEST_FILE_HAS_SHARD) != 0;
    file.shard_bytes = lahar_read_u64(payload);
    file.shard_checksum = lahar_read_u32(payload);
    file.toc_checksum = lahar_read_u32(payload);
    file.age_stamp_ns = lahar_reader_left(payload) >= 8 ? lahar_read_u64(payload) : 0;
    file.directory = lahar_reader_left(payload) >= 4 ? lahar_read_u32(payload) : 0;
    return file;
}

/* Whether the ids fit in before the file at that place: in themselves, and beside the other files
 * of their stream. */
static bool has_room(const struct lahar_manifest_state *state,
                     const struct lahar_segment_info *info, size_t at)
{
    if (info->first_id > info->last_id || info->first_id < info->group_first_id ||
        info->last_id >= info->group_end_id || info->stream >= state->stream_count) {
        return false;
    }
    for (size_t i = at; i > 0; i--) {
        const struct lahar_segment_info *before = &state->files[i - 1].info;
        if (before->stream == info->stream) {
            if (before->group_end_id > info->group_first_id) {
                return false;
            }
            break;
        }
    }
    for (size_t i = at; i < state->file_count; i++) {
        const struct lahar_segment_info *behind = &state->files[i].info;
        if (behind->stream == info->stream) {
            return behind->group_first_id >= info->group_end_id;
        }
    }
    return true;
}

/* Room for one more. */
static lahar_status reserve_file(struct lahar_manifest_state *state, lahar_error *error)
{
    if (state->file_count < state->file_capacity) {
        return LAHAR_OK;
    }
    const size_t capacity = state->file_capacity == 0 ? 16 : 2 * state->file_capacity;
    struct lahar_manifest_file *files =
        lahar_reallocate(state->allocator, state->files, capacity * sizeof *files);
    if (files == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu event files", capacity);
    }
    state->files = files;
    state->file_capacity = capacity;
    return LAHAR_OK;
}

lahar_status lahar_manifest_apply_file(struct lahar_manifest_state *state,
                                       struct lahar_reader *payload, lahar_error *error)
{
    const struct lahar_manifest_file file = read_file(payload);
    size_t at = state->file_count;
    while (at > 0 && state->files[at - 1].info.group_first_id > file.info.group_first_id) {
        at--;
    }
    if (payload->failed || !has_room(state, &file.info, at) ||
        file.directory > state->directory_count) {
        return lahar_fail(error, LAHAR_CORRUPT, "event file %llu has impossible ids",
                          (unsigned long long)file.info.number);
    }
    LAHAR_TRY(reserve_file(state, error));
    memmove(&state->files[at + 1], &state->files[at],
            (state->file_count - at) * sizeof *state->files);
    state->files[at] = file;
    state->file_count++;
    if (file.info.number >= state->next_file_number) {
        state->next_file_number = file.info.number + 1;
    }
    return LAHAR_OK;
}

static lahar_status remove_file(struct lahar_manifest_state *state, uint64_t number,
                                struct lahar_manifest_file *removed_out, lahar_error *error)
{
    size_t at = 0;
    while (at < state->file_count && state->files[at].info.number != number) {
        at++;
    }
    if (at == state->file_count) {
        return lahar_fail(error, LAHAR_CORRUPT, "event file %llu is removed and was not there",
                          (unsigned long long)number);
    }
    *removed_out = state->files[at];
    memmove(&state->files[at], &state->files[at + 1],
            (state->file_count - at - 1) * sizeof *state->files);
    state->file_count--;
    return LAHAR_OK;
}

lahar_status lahar_manifest_apply_remove(struct lahar_manifest_state *state,
                                         struct lahar_reader *payload, lahar_error *error)
{
    struct lahar_manifest_file removed;
    const uint64_t number = lahar_read_u64(payload);
    if (payload->failed) {
        return lahar_fail(error, LAHAR_CORRUPT, "a removal is cut short");
    }
    return remove_file(state, number, &removed, error);
}

/* What the files on one side of a replacement hold. */
struct file_sum {
    uint32_t count;
    uint32_t stream;
    uint64_t event_count;
    uint64_t raw_bytes;
    uint64_t first_id;
    uint64_t last_id;
    bool is_mixed; /* of several streams */
};

static void add_to_sum(struct file_sum *sum, const struct lahar_segment_info *info)
{
    const bool is_first = sum->count++ == 0;
    sum->is_mixed = sum->is_mixed || (!is_first && sum->stream != info->stream);
    sum->stream = info->stream;
    sum->event_count += info->event_count;
    sum->raw_bytes += info->raw_bytes;
    sum->first_id = is_first || info->first_id < sum->first_id ? info->first_id : sum->first_id;
    sum->last_id = is_first || info->last_id > sum->last_id ? info->last_id : sum->last_id;
}

/* Other files for the same events: what goes and what comes must hold as much. */
lahar_status lahar_manifest_apply_replace(struct lahar_manifest_state *state,
                                          struct lahar_reader *payload, lahar_error *error)
{
    struct file_sum removed = {0};
    struct file_sum added = {0};
    const uint32_t removed_count = lahar_read_u32(payload);
    for (uint32_t i = 0; i < removed_count; i++) {
        const uint64_t number = lahar_read_u64(payload);
        if (payload->failed) {
            return lahar_fail(error, LAHAR_CORRUPT, "a replacement is cut short");
        }
        struct lahar_manifest_file file;
        LAHAR_TRY(remove_file(state, number, &file, error));
        add_to_sum(&removed, &file.info);
    }
    const uint32_t added_count = lahar_read_u32(payload);
    for (uint32_t i = 0; i < added_count; i++) {
        const uint32_t size = lahar_read_u32(payload);
        const uint8_t *data = lahar_read_bytes(payload, size);
        if (payload->failed) {
            return lahar_fail(error, LAHAR_CORRUPT, "a replacement is cut short");
        }
        struct lahar_reader entry = lahar_reader_of(data, size);
        const struct lahar_manifest_file file = read_file(&entry);
        entry = lahar_reader_of(data, size);
        LAHAR_TRY(lahar_manifest_apply_file(state, &entry, error));
        add_to_sum(&added, &file.info);
    }
    if (payload->failed || removed.count == 0 || added.count == 0 || removed.is_mixed ||
        added.is_mixed || removed.stream != added.stream ||
        removed.event_count != added.event_count || removed.raw_bytes != added.raw_bytes ||
        removed.first_id != added.first_id || removed.last_id != added.last_id) {
        return lahar_fail(error, LAHAR_CORRUPT,
                          "files are replaced by others that hold something else");
    }
    return LAHAR_OK;
}
