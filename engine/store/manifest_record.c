/* Encoding of the manifest's records (docs/format/manifest.md). Decoding is in
 * manifest_state.c. */
#include <string.h>

#include "engine/store/lost_events.h"
#include "engine/store/manifest.h"
#include "engine/store/manifest_format.h"
#include "io/base/error.h"

/* Starts a record and returns where its size is to be put. */
static size_t begin_record(struct lahar_buffer *records, enum lahar_manifest_record_type type)
{
    lahar_buffer_put_u8(records, (uint8_t)type);
    lahar_buffer_put_u32(records, 0);
    return records->size - sizeof(uint32_t);
}

static void end_record(struct lahar_buffer *records, size_t size_at)
{
    if (!records->has_failed) {
        lahar_store_u32(records->data + size_at,
                        (uint32_t)(records->size - size_at - sizeof(uint32_t)));
    }
}

static void put_u64_record(struct lahar_buffer *records, enum lahar_manifest_record_type type,
                           uint64_t value)
{
    const size_t at = begin_record(records, type);
    lahar_buffer_put_u64(records, value);
    end_record(records, at);
}

static void put_u64_pair_record(struct lahar_buffer *records, enum lahar_manifest_record_type type,
                                uint64_t first, uint64_t second)
{
    const size_t at = begin_record(records, type);
    lahar_buffer_put_u64(records, first);
    lahar_buffer_put_u64(records, second);
    end_record(records, at);
}

void lahar_manifest_put_field(struct lahar_buffer *records, uint32_t field, const char *name)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_FIELD);
    lahar_buffer_put_u32(records, field);
    lahar_buffer_put(records, name, strlen(name));
    end_record(records, at);
}

void lahar_manifest_put_stream(struct lahar_buffer *records, uint32_t stream,
                               const struct lahar_manifest_stream *spec)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_STREAM);
    lahar_buffer_put_u32(records, stream);
    lahar_buffer_put_u32(records, (uint32_t)spec->schema);
    lahar_buffer_put_sized(records, spec->name, strlen(spec->name));
    lahar_buffer_put_varint(records, spec->field_count);
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const lahar_field_spec *field = &spec->fields[i];
        lahar_buffer_put_sized(records, field->name, strlen(field->name));
        lahar_buffer_put_u8(records, (uint8_t)field->type);
        lahar_buffer_put_u8(records, field->not_indexed ? LAHAR_MANIFEST_FIELD_NOT_INDEXED : 0);
    }
    end_record(records, at);
}

void lahar_manifest_put_session_begin(struct lahar_buffer *records, uint64_t session,
                                      uint64_t first_id)
{
    put_u64_pair_record(records, LAHAR_MANIFEST_SESSION_BEGIN, session, first_id);
}

void lahar_manifest_put_session_end(struct lahar_buffer *records, uint64_t session, uint64_t end_id)
{
    put_u64_pair_record(records, LAHAR_MANIFEST_SESSION_END, session, end_id);
}

void lahar_manifest_put_ceiling(struct lahar_buffer *records, uint64_t ceiling)
{
    put_u64_record(records, LAHAR_MANIFEST_CEILING, ceiling);
}

void lahar_manifest_put_lost(struct lahar_buffer *records, struct lahar_lost_range range)
{
    put_u64_pair_record(records, LAHAR_MANIFEST_LOST, range.first_id, range.end_id);
}

void lahar_manifest_put_directory(struct lahar_buffer *records, uint32_t directory,
                                  const char *name, const char *path)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_DIRECTORY);
    lahar_buffer_put_u32(records, directory);
    lahar_buffer_put_sized(records, name, strlen(name));
    lahar_buffer_put(records, path, strlen(path));
    end_record(records, at);
}

void lahar_manifest_put_rolled(struct lahar_buffer *records, uint64_t rolled_id)
{
    put_u64_record(records, LAHAR_MANIFEST_ROLLED, rolled_id);
}

void lahar_manifest_put_file_number(struct lahar_buffer *records, uint64_t number)
{
    put_u64_record(records, LAHAR_MANIFEST_FILE_NUMBER, number);
}

static void put_file(struct lahar_buffer *records, const struct lahar_manifest_file *file)
{
    const struct lahar_segment_info *info = &file->info;
    const size_t start = records->size;
    lahar_buffer_put_u64(records, info->first_id);
    lahar_buffer_put_u64(records, info->last_id);
    lahar_buffer_put_u64(records, info->number);
    lahar_buffer_put_u32(records, info->stream);
    lahar_buffer_put_u32(records, info->block_count);
    lahar_buffer_put_u64(records, info->event_count);
    lahar_buffer_put_u64(records, (uint64_t)info->time_min_ns);
    lahar_buffer_put_u64(records, (uint64_t)info->time_max_ns);
    lahar_buffer_put_u64(records, (uint64_t)info->arrival_min_ns);
    lahar_buffer_put_u64(records, (uint64_t)info->arrival_max_ns);
    lahar_buffer_put_u64(records, info->raw_bytes);
    lahar_buffer_put_u64(records, info->file_bytes);
    lahar_buffer_put_u64(records, info->toc_bytes);
    lahar_buffer_put_u64(records, info->group_first_id);
    lahar_buffer_put_u64(records, info->group_end_id);
    lahar_buffer_put_u32(records, info->group_file_count);
    lahar_buffer_put_u32(records, file->has_shard ? LAHAR_MANIFEST_FILE_HAS_SHARD : 0);
    lahar_buffer_put_u64(records, file->shard_bytes);
    lahar_buffer_put_u32(records, file->shard_checksum);
    lahar_buffer_put_u32(records, file->toc_checksum);
    lahar_buffer_put_u64(records, file->age_stamp_ns);
    lahar_buffer_put_u32(records, file->directory);
    LAHAR_ASSERT(records->has_failed || records->size - start == LAHAR_MANIFEST_FILE_SIZE);
}

void lahar_manifest_put_file(struct lahar_buffer *records, const struct lahar_manifest_file *file)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_FILE);
    put_file(records, file);
    end_record(records, at);
}

void lahar_manifest_put_replace(struct lahar_buffer *records, const uint64_t *removed,
                                uint32_t removed_count, const struct lahar_manifest_file *added,
                                uint32_t added_count)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_REPLACE);
    lahar_buffer_put_u32(records, removed_count);
    for (uint32_t i = 0; i < removed_count; i++) {
        lahar_buffer_put_u64(records, removed[i]);
    }
    lahar_buffer_put_u32(records, added_count);
    for (uint32_t i = 0; i < added_count; i++) {
        lahar_buffer_put_u32(records, LAHAR_MANIFEST_FILE_SIZE);
        put_file(records, &added[i]);
    }
    end_record(records, at);
}

void lahar_manifest_put_limits(struct lahar_buffer *records, uint32_t stream, uint64_t max_bytes,
                               uint64_t max_age_ns)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_LIMITS);
    lahar_buffer_put_u32(records, stream);
    lahar_buffer_put_u64(records, max_bytes);
    lahar_buffer_put_u64(records, max_age_ns);
    end_record(records, at);
}

void lahar_manifest_put_remove(struct lahar_buffer *records, uint64_t file_number)
{
    put_u64_record(records, LAHAR_MANIFEST_REMOVE, file_number);
}

void lahar_manifest_put_dropped(struct lahar_buffer *records, uint32_t stream,
                                const struct lahar_manifest_retention *retention)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_DROPPED);
    lahar_buffer_put_u32(records, stream);
    lahar_buffer_put_u64(records, retention->low_id);
    lahar_buffer_put_u64(records, retention->dropped_events);
    lahar_buffer_put_u64(records, retention->dropped_bytes);
    lahar_buffer_put_u64(records, retention->dropped_files);
    end_record(records, at);
}

void lahar_manifest_put_clock(struct lahar_buffer *records, const struct lahar_age_reading *reading)
{
    const size_t at = begin_record(records, LAHAR_MANIFEST_CLOCK);
    lahar_buffer_put_u64(records, reading->age_ns);
    lahar_buffer_put_u64(records, (uint64_t)reading->wall_ns);
    lahar_buffer_put_u64(records, reading->held_id);
    lahar_buffer_put_u64(records, reading->held_ns);
    end_record(records, at);
}

void lahar_manifest_put_offsets(struct lahar_buffer *records,
                                const struct lahar_offset_table *offsets)
{
    if (offsets->count == 0) {
        return;
    }
    const size_t at = begin_record(records, LAHAR_MANIFEST_OFFSETS);
    for (size_t i = 0; i < offsets->count; i++) {
        lahar_offset_record_put(records, &offsets->records[i]);
    }
    end_record(records, at);
}

static void put_retention(struct lahar_buffer *records, uint32_t stream,
                          const struct lahar_manifest_retention *retention)
{
    if (retention->max_bytes != 0 || retention->max_age_ns != 0) {
        lahar_manifest_put_limits(records, stream, retention->max_bytes, retention->max_age_ns);
    }
    if (retention->low_id != 0) {
        lahar_manifest_put_dropped(records, stream, retention);
    }
}

void lahar_manifest_put_state(struct lahar_buffer *records,
                              const struct lahar_manifest_state *state)
{
    for (size_t i = 0; i < state->field_count; i++) {
        lahar_manifest_put_field(records, (uint32_t)i, state->fields[i]);
    }
    for (size_t i = 0; i < state->stream_count; i++) {
        lahar_manifest_put_stream(records, (uint32_t)i, &state->streams[i]);
    }
    for (size_t i = 0; i < state->session_count; i++) {
        const struct lahar_journal_session *session = &state->sessions[i];
        /* Of a session whose events are all in event files, journals hold nothing. */
        if (session->end_id != 0 && session->end_id <= state->rolled_id &&
            i + 1 < state->session_count) {
            continue;
        }
        lahar_manifest_put_session_begin(records, session->session, session->first_id);
        if (session->end_id != 0) {
            lahar_manifest_put_session_end(records, session->session, session->end_id);
        }
    }
    for (size_t i = 0; i < state->directory_count; i++) {
        lahar_manifest_put_directory(records, (uint32_t)i + 1, state->directories[i].name,
                                     state->directories[i].path);
    }
    for (size_t i = 0; i < state->file_count; i++) {
        lahar_manifest_put_file(records, &state->files[i]);
    }
    for (size_t i = 0; i < state->lost.count; i++) {
        if (!lahar_lost_events_is_dropped(state, state->lost.ranges[i].end_id)) {
            lahar_manifest_put_lost(records, state->lost.ranges[i]);
        }
    }
    for (size_t i = 0; i < state->stream_count; i++) {
        put_retention(records, (uint32_t)i, &state->streams[i].retention);
    }
    put_retention(records, LAHAR_ANY_STREAM, &state->retention);
    if (state->has_clock) {
        lahar_manifest_put_clock(records, &state->clock);
    }
    lahar_manifest_put_rolled(records, state->rolled_id);
    lahar_manifest_put_file_number(records, state->next_file_number);
    lahar_manifest_put_offsets(records, &state->offsets);
    lahar_manifest_put_ceiling(records, state->ceiling);
}
