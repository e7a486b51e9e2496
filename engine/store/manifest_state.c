/* What the changes of a manifest add up to. Records come from disk: every one is
 * checked against the state before it changes it, and ids and counters only rise. */
#include <string.h>

#include "engine/store/manifest.h"
#include "engine/store/manifest_files.h"
#include "engine/store/manifest_format.h"
#include "io/base/error.h"

void lahar_manifest_state_init(struct lahar_manifest_state *state, const lahar_allocator *allocator)
{
    *state = (struct lahar_manifest_state){
        .allocator = allocator, .ceiling = 1, .rolled_id = 1, .next_file_number = 1};
    lahar_arena_init(&state->names, allocator, 16 * 1024);
    lahar_offset_table_init(&state->offsets, false, allocator);
}

void lahar_manifest_state_deinit(struct lahar_manifest_state *state)
{
    lahar_release(state->allocator, state->fields);
    lahar_release(state->allocator, state->streams);
    lahar_release(state->allocator, state->sessions);
    lahar_release(state->allocator, state->files);
    lahar_release(state->allocator, state->directories);
    lahar_lost_list_deinit(&state->lost, state->allocator);
    lahar_offset_table_deinit(&state->offsets);
    lahar_arena_deinit(&state->names);
}

/* Room for one more item of item_size in a growing array. */
static lahar_status grow(const lahar_allocator *allocator, void **items, size_t count,
                         size_t *capacity, size_t item_size, lahar_error *error)
{
    if (count < *capacity) {
        return LAHAR_OK;
    }
    const size_t wanted = *capacity == 0 ? 16 : 2 * *capacity;
    void *larger = lahar_reallocate(allocator, *items, wanted * item_size);
    if (larger == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %zu entries of the manifest",
                          wanted);
    }
    *items = larger;
    *capacity = wanted;
    return LAHAR_OK;
}

/* A terminated copy of a name in the arena. */
static lahar_status copy_name(struct lahar_manifest_state *state, const uint8_t *name,
                              uint64_t size, const char **copy_out, lahar_error *error)
{
    if (name == NULL || size == 0 || size > LAHAR_NAME_SIZE_MAX ||
        memchr(name, '\0', (size_t)size) != NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "a name of %llu bytes", (unsigned long long)size);
    }
    char *copy = lahar_arena_allocate(&state->names, (size_t)size + 1);
    if (copy == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a name");
    }
    memcpy(copy, name, (size_t)size);
    copy[size] = '\0';
    *copy_out = copy;
    return LAHAR_OK;
}

static lahar_status apply_field(struct lahar_manifest_state *state, struct lahar_reader *payload,
                                lahar_error *error)
{
    const uint32_t field = lahar_read_u32(payload);
    const size_t size = lahar_reader_left(payload);
    const uint8_t *name = lahar_read_bytes(payload, size);
    if (payload->failed || field != state->field_count || field >= LAHAR_FIELD_COUNT_MAX) {
        return lahar_fail(error, LAHAR_CORRUPT, "field %u where field %zu was expected", field,
                          state->field_count);
    }
    void *fields = state->fields;
    LAHAR_TRY(grow(state->allocator, &fields, state->field_count, &state->field_capacity,
                   sizeof *state->fields, error));
    state->fields = fields;
    LAHAR_TRY(copy_name(state, name, size, &state->fields[field], error));
    state->field_count++;
    return LAHAR_OK;
}

static lahar_status read_stream_fields(struct lahar_manifest_state *state,
                                       struct lahar_reader *payload, lahar_field_spec *fields,
                                       uint32_t field_count, lahar_error *error)
{
    for (uint32_t i = 0; i < field_count; i++) {
        const uint64_t size = lahar_read_varint(payload);
        LAHAR_TRY(copy_name(state, lahar_read_bytes(payload, size), size, &fields[i].name, error));
        fields[i].type = (lahar_type)lahar_read_u8(payload);
        fields[i].not_indexed = (lahar_read_u8(payload) & LAHAR_MANIFEST_FIELD_NOT_INDEXED) != 0;
    }
    return LAHAR_OK;
}

static lahar_status apply_stream(struct lahar_manifest_state *state, struct lahar_reader *payload,
                                 lahar_error *error)
{
    const uint32_t id = lahar_read_u32(payload);
    struct lahar_manifest_stream stream = {.schema = (lahar_schema)lahar_read_u32(payload)};
    const uint64_t name_size = lahar_read_varint(payload);
    const uint8_t *name = lahar_read_bytes(payload, name_size);
    const uint64_t field_count = lahar_read_varint(payload);
    /* A field takes at least four bytes. */
    if (payload->failed || id != state->stream_count || id >= LAHAR_STREAM_COUNT_MAX ||
        field_count > lahar_reader_left(payload) / 4) {
        return lahar_fail(error, LAHAR_CORRUPT, "stream %u where stream %zu was expected", id,
                          state->stream_count);
    }
    LAHAR_TRY(copy_name(state, name, name_size, &stream.name, error));
    lahar_field_spec *fields =
        lahar_arena_allocate(&state->names, (size_t)field_count * sizeof *fields + 1);
    if (fields == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the fields of a stream");
    }
    LAHAR_TRY(read_stream_fields(state, payload, fields, (uint32_t)field_count, error));
    stream.fields = fields;
    stream.field_count = (uint32_t)field_count;
    void *streams = state->streams;
    LAHAR_TRY(grow(state->allocator, &streams, state->stream_count, &state->stream_capacity,
                   sizeof *state->streams, error));
    state->streams = streams;
    state->streams[state->stream_count++] = stream;
    return LAHAR_OK;
}

static struct lahar_journal_session *last_session(struct lahar_manifest_state *state)
{
    return state->session_count == 0 ? NULL : &state->sessions[state->session_count - 1];
}

static lahar_status apply_session_begin(struct lahar_manifest_state *state,
                                        struct lahar_reader *payload, lahar_error *error)
{
    struct lahar_journal_session session = {.session = lahar_read_u64(payload)};
    session.first_id = lahar_read_u64(payload);
    const struct lahar_journal_session *last = last_session(state);
    if (payload->failed || session.first_id == 0 ||
        (last != NULL && (last->end_id == 0 || last->session >= session.session ||
                          last->end_id > session.first_id))) {
        return lahar_fail(error, LAHAR_CORRUPT, "session %llu does not follow the one before",
                          (unsigned long long)session.session);
    }
    void *sessions = state->sessions;
    LAHAR_TRY(grow(state->allocator, &sessions, state->session_count, &state->session_capacity,
                   sizeof *state->sessions, error));
    state->sessions = sessions;
    state->sessions[state->session_count++] = session;
    return LAHAR_OK;
}

static lahar_status apply_session_end(struct lahar_manifest_state *state,
                                      struct lahar_reader *payload, lahar_error *error)
{
    const uint64_t number = lahar_read_u64(payload);
    const uint64_t end_id = lahar_read_u64(payload);
    struct lahar_journal_session *last = last_session(state);
    if (payload->failed || last == NULL || last->session != number || last->end_id != 0 ||
        end_id < last->first_id) {
        return lahar_fail(error, LAHAR_CORRUPT, "session %llu ends without having begun",
                          (unsigned long long)number);
    }
    last->end_id = end_id;
    return LAHAR_OK;
}

static lahar_status apply_directory(struct lahar_manifest_state *state,
                                    struct lahar_reader *payload, lahar_error *error)
{
    const uint32_t number = lahar_read_u32(payload);
    const uint64_t name_size = lahar_read_varint(payload);
    const uint8_t *name = lahar_read_bytes(payload, name_size);
    const size_t path_size = lahar_reader_left(payload);
    const uint8_t *path = lahar_read_bytes(payload, path_size);
    if (payload->failed || number == 0 || number > state->directory_count + 1 || path_size == 0 ||
        path_size >= LAHAR_MANIFEST_PATH_SIZE || memchr(path, '\0', path_size) != NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "directory %u where %zu are known", number,
                          state->directory_count);
    }
    struct lahar_manifest_directory directory = {NULL, NULL};
    LAHAR_TRY(copy_name(state, name, name_size, &directory.name, error));
    char *copy = lahar_arena_allocate(&state->names, path_size + 1);
    if (copy == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a directory");
    }
    memcpy(copy, path, path_size);
    copy[path_size] = '\0';
    directory.path = copy;
    void *directories = state->directories;
    LAHAR_TRY(grow(state->allocator, &directories, state->directory_count,
                   &state->directory_capacity, sizeof *state->directories, error));
    state->directories = directories;
    state->directories[number - 1] = directory;
    state->directory_count += number > state->directory_count;
    return LAHAR_OK;
}

/* The retention that a record is about, NULL when there is no such stream. */
static struct lahar_manifest_retention *find_retention(struct lahar_manifest_state *state,
                                                       uint32_t stream)
{
    if (stream == LAHAR_ANY_STREAM) {
        return &state->retention;
    }
    return stream < state->stream_count ? &state->streams[stream].retention : NULL;
}

static lahar_status apply_limits(struct lahar_manifest_state *state, struct lahar_reader *payload,
                                 lahar_error *error)
{
    const uint32_t stream = lahar_read_u32(payload);
    const uint64_t max_bytes = lahar_read_u64(payload);
    const uint64_t max_age_ns = lahar_read_u64(payload);
    struct lahar_manifest_retention *retention = find_retention(state, stream);
    if (payload->failed || retention == NULL) {
        return lahar_fail(error, LAHAR_CORRUPT, "limits of the unknown stream %u", stream);
    }
    retention->max_bytes = max_bytes;
    retention->max_age_ns = max_age_ns;
    return LAHAR_OK;
}

static lahar_status apply_dropped(struct lahar_manifest_state *state, struct lahar_reader *payload,
                                  lahar_error *error)
{
    const uint32_t stream = lahar_read_u32(payload);
    struct lahar_manifest_retention dropped = {.low_id = lahar_read_u64(payload)};
    dropped.dropped_events = lahar_read_u64(payload);
    dropped.dropped_bytes = lahar_read_u64(payload);
    dropped.dropped_files = lahar_read_u64(payload);
    struct lahar_manifest_retention *retention = find_retention(state, stream);
    if (payload->failed || stream == LAHAR_ANY_STREAM || retention == NULL ||
        dropped.low_id < retention->low_id) {
        return lahar_fail(error, LAHAR_CORRUPT, "stream %u cannot have dropped to %llu", stream,
                          (unsigned long long)dropped.low_id);
    }
    dropped.max_bytes = retention->max_bytes;
    dropped.max_age_ns = retention->max_age_ns;
    *retention = dropped;
    return LAHAR_OK;
}

static lahar_status apply_clock(struct lahar_manifest_state *state, struct lahar_reader *payload,
                                lahar_error *error)
{
    struct lahar_age_reading clock = {.age_ns = lahar_read_u64(payload)};
    clock.wall_ns = (int64_t)lahar_read_u64(payload);
    clock.held_id = lahar_read_u64(payload);
    clock.held_ns = lahar_read_u64(payload);
    if (payload->failed || clock.age_ns < state->clock.age_ns) {
        return lahar_fail(error, LAHAR_CORRUPT, "the age clock falls to %llu",
                          (unsigned long long)clock.age_ns);
    }
    state->clock = clock;
    state->has_clock = true;
    return LAHAR_OK;
}

static lahar_status apply_offsets(struct lahar_manifest_state *state, struct lahar_reader *payload,
                                  lahar_error *error)
{
    struct lahar_offset_record record;
    while (lahar_offset_record_next(payload, &record)) {
        LAHAR_TRY(lahar_offset_table_set(&state->offsets, &record, error));
    }
    return payload->failed ? lahar_fail(error, LAHAR_CORRUPT, "offset records are cut short")
                           : LAHAR_OK;
}

static lahar_status apply_lost(struct lahar_manifest_state *state, struct lahar_reader *payload,
                               lahar_error *error)
{
    const struct lahar_lost_range range = {lahar_read_u64(payload), lahar_read_u64(payload)};
    if (payload->failed || range.first_id == 0 || range.first_id >= range.end_id) {
        return lahar_fail(error, LAHAR_CORRUPT, "lost events %llu to %llu",
                          (unsigned long long)range.first_id, (unsigned long long)range.end_id);
    }
    return lahar_lost_list_add(&state->lost, range, state->allocator, error);
}

/* Takes a counter that may not fall. */
static lahar_status apply_counter(uint64_t *counter, struct lahar_reader *payload, const char *name,
                                  lahar_error *error)
{
    const uint64_t value = lahar_read_u64(payload);
    if (payload->failed || value < *counter) {
        return lahar_fail(error, LAHAR_CORRUPT, "%s falls from %llu to %llu", name,
                          (unsigned long long)*counter, (unsigned long long)value);
    }
    *counter = value;
    return LAHAR_OK;
}

static lahar_status apply_ceiling(struct lahar_manifest_state *state, struct lahar_reader *payload,
                                  lahar_error *error)
{
    const uint64_t ceiling = lahar_read_u64(payload);
    const struct lahar_journal_session *last = last_session(state);
    /* A session that ended by itself gives back what it had reserved and not used. */
    const uint64_t least = last != NULL && last->end_id != 0 ? last->end_id : state->ceiling;
    if (payload->failed || ceiling < least || ceiling == 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "the id ceiling falls to %llu",
                          (unsigned long long)ceiling);
    }
    state->ceiling = ceiling;
    return LAHAR_OK;
}

static lahar_status apply_record(struct lahar_manifest_state *state, uint8_t type,
                                 struct lahar_reader *payload, lahar_error *error)
{
    switch (type) {
    case LAHAR_MANIFEST_FIELD:
        return apply_field(state, payload, error);
    case LAHAR_MANIFEST_STREAM:
        return apply_stream(state, payload, error);
    case LAHAR_MANIFEST_SESSION_BEGIN:
        return apply_session_begin(state, payload, error);
    case LAHAR_MANIFEST_SESSION_END:
        return apply_session_end(state, payload, error);
    case LAHAR_MANIFEST_CEILING:
        return apply_ceiling(state, payload, error);
    case LAHAR_MANIFEST_FILE:
        return lahar_manifest_apply_file(state, payload, error);
    case LAHAR_MANIFEST_ROLLED:
        return apply_counter(&state->rolled_id, payload, "the rolled id", error);
    case LAHAR_MANIFEST_FILE_NUMBER:
        return apply_counter(&state->next_file_number, payload, "the file number", error);
    case LAHAR_MANIFEST_OFFSETS:
        return apply_offsets(state, payload, error);
    case LAHAR_MANIFEST_LIMITS:
        return apply_limits(state, payload, error);
    case LAHAR_MANIFEST_REMOVE:
        return lahar_manifest_apply_remove(state, payload, error);
    case LAHAR_MANIFEST_DROPPED:
        return apply_dropped(state, payload, error);
    case LAHAR_MANIFEST_CLOCK:
        return apply_clock(state, payload, error);
    case LAHAR_MANIFEST_DIRECTORY:
        return apply_directory(state, payload, error);
    case LAHAR_MANIFEST_REPLACE:
        return lahar_manifest_apply_replace(state, payload, error);
    case LAHAR_MANIFEST_LOST:
        return apply_lost(state, payload, error);
    default:
        break;
    }
    if ((type & LAHAR_MANIFEST_IGNORABLE) != 0) {
        return LAHAR_OK;
    }
    return lahar_fail(error, LAHAR_UNSUPPORTED, "record type %u was written by a newer version",
                      type);
}

lahar_status lahar_manifest_state_apply(struct lahar_manifest_state *state, const uint8_t *records,
                                        size_t size, lahar_error *error)
{
    struct lahar_reader reader = lahar_reader_of(records, size);
    while (lahar_reader_left(&reader) != 0) {
        const uint8_t type = lahar_read_u8(&reader);
        const uint32_t payload_size = lahar_read_u32(&reader);
        const uint8_t *data = lahar_read_bytes(&reader, payload_size);
        if (reader.failed) {
            return lahar_fail(error, LAHAR_CORRUPT, "a record is cut short");
        }
        struct lahar_reader payload = lahar_reader_of(data, payload_size);
        LAHAR_TRY(apply_record(state, type, &payload, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_manifest_state_catalog(const struct lahar_manifest_state *state,
                                          struct lahar_schema_catalog *catalog, lahar_error *error)
{
    for (uint32_t i = 0; i < state->field_count; i++) {
        uint32_t field = 0;
        LAHAR_TRY(lahar_schema_intern(catalog, state->fields[i], strlen(state->fields[i]), &field,
                                      error));
        if (field != i) {
            return lahar_fail(error, LAHAR_CORRUPT, "field \"%s\" is number %u, not %u",
                              state->fields[i], field, i);
        }
    }
    for (uint32_t i = lahar_schema_stream_count(catalog); i < state->stream_count; i++) {
        const struct lahar_manifest_stream *stream = &state->streams[i];
        const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                        .name = stream->name,
                                        .schema = stream->schema,
                                        .fields = stream->fields,
                                        .field_count = stream->field_count};
        uint32_t id = 0;
        const lahar_status status = lahar_schema_add_stream(catalog, &spec, &id, error);
        if (status == LAHAR_NO_MEMORY) {
            return status;
        }
        if (status != LAHAR_OK) {
            lahar_error_context(error, "stream %u of the manifest", i);
            return LAHAR_CORRUPT;
        }
    }
    return LAHAR_OK;
}
