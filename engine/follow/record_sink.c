/* Delivery of records; see record_sink.h. */
#include "engine/follow/record_sink.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "engine/event/row.h"
#include "engine/format/text_reader.h"
#include "io/base/allocator.h"
#include "io/base/error.h"
#include "lahar/read.h"

const lahar_field_spec lahar_follow_columns[LAHAR_FOLLOW_COLUMN_COUNT] = {
    {"_path", LAHAR_KEYWORD, false},
    {"_line", LAHAR_U64, false},
    {"_generation", LAHAR_U64, false},
    {"_truncated", LAHAR_U64, false},
};

const lahar_field_spec lahar_gap_columns[LAHAR_GAP_COLUMN_COUNT] = {
    {"source", LAHAR_KEYWORD, false},  {"_path", LAHAR_KEYWORD, false},
    {"_generation", LAHAR_U64, false}, {"gap_from", LAHAR_U64, false},
    {"gap_to", LAHAR_U64, false},      {"reason", LAHAR_KEYWORD, false},
};

void lahar_record_sink_deinit(struct lahar_record_sink *sink)
{
    lahar_release(sink->allocator, sink->values);
    sink->values = NULL;
    sink->value_capacity = 0;
}

void lahar_record_sink_count_error(struct lahar_record_sink *sink, const char *message)
{
    sink->error_count++;
    (void)snprintf(sink->last_error, sizeof sink->last_error, "line %llu: %.120s",
                   (unsigned long long)sink->line, message);
}

/* --- columns ------------------------------------------------------------------------- */

static bool reserve(struct lahar_record_sink *sink, size_t count)
{
    if (count <= sink->value_capacity) {
        return true;
    }
    lahar_value *values = lahar_reallocate(sink->allocator, sink->values, count * sizeof *values);
    if (values == NULL) {
        return false;
    }
    sink->values = values;
    sink->value_capacity = count;
    return true;
}

static void put_number(struct lahar_record_sink *sink, size_t *count,
                       enum lahar_follow_column column, uint64_t number)
{
    const uint32_t field = sink->target->columns[column];
    if (field != UINT32_MAX) {
        sink->values[(*count)++] =
            (lahar_value){.field = field, .type = LAHAR_U64, .as.u64 = number};
    }
}

/* The event with its columns, in the sink's memory. */
static bool add_columns(struct lahar_record_sink *sink, const lahar_event *event,
                        lahar_event *event_out)
{
    size_t count = event->value_count;
    if (!reserve(sink, count + LAHAR_FOLLOW_COLUMN_COUNT)) {
        return false;
    }
    memcpy(sink->values, event->values, count * sizeof *sink->values);
    for (size_t i = 0; i < count; i++) {
        if (sink->values[i].field == LAHAR_FIELD_OFFSET) {
            sink->values[i].as.u64 += sink->base_offset;
        }
    }
    const uint32_t path_field = sink->target->columns[LAHAR_COLUMN_PATH];
    if (path_field != UINT32_MAX) {
        sink->values[count++] = (lahar_value){.field = path_field,
                                              .type = LAHAR_KEYWORD,
                                              .as.bytes = {sink->path, strlen(sink->path)}};
    }
    put_number(sink, &count, LAHAR_COLUMN_LINE, sink->line);
    put_number(sink, &count, LAHAR_COLUMN_GENERATION, sink->generation);
    if (sink->cut_size != 0) {
        put_number(sink, &count, LAHAR_COLUMN_TRUNCATED, sink->cut_size);
    }
    *event_out = *event;
    event_out->values = sink->values;
    event_out->value_count = count;
    return true;
}

/* --- delivery --------------------------------------------------------------------------- */

static lahar_status append(struct lahar_record_sink *sink, const lahar_event *event,
                           lahar_error *error)
{
    lahar_error refused = {0};
    const lahar_status status = lahar_batch_add(sink->batch, event, &refused);
    if (status == LAHAR_TOO_BIG && lahar_batch_event_count(sink->batch) != 0) {
        sink->is_full = true;
        return LAHAR_BUSY;
    }
    if (status == LAHAR_TOO_BIG || status == LAHAR_INVALID) {
        lahar_record_sink_count_error(sink, refused.message);
        return LAHAR_OK;
    }
    if (status != LAHAR_OK) {
        return lahar_fail(error, status, "%s", refused.message);
    }
    sink->record_count++;
    return LAHAR_OK;
}

static lahar_status hand_over(struct lahar_record_sink *sink, const lahar_event *event,
                              lahar_error *error)
{
    lahar_status status = LAHAR_OK;
    switch (sink->kind) {
    case LAHAR_SINK_APPEND:
        return append(sink, event, error);
    case LAHAR_SINK_VISIT: {
        lahar_event shown = *event;
        if (shown.time_ns == LAHAR_TIME_OF_ARRIVAL) {
            shown.time_ns = sink->visit_time_ns;
        }
        status = sink->visit(sink->visit_context, &shown);
        break;
    }
    case LAHAR_SINK_CHECK:
        sink->check_count++;
        sink->check_sum += lahar_record_hash(sink->target, event);
        break;
    }
    sink->record_count += status == LAHAR_OK;
    return status == LAHAR_OK ? LAHAR_OK : lahar_fail(error, status, "the visitor ended the walk");
}

static bool is_batch_full(const struct lahar_record_sink *sink)
{
    return sink->records_left == 0 ||
           (sink->batch != NULL && (lahar_batch_event_count(sink->batch) >= sink->event_max ||
                                    lahar_batch_size(sink->batch) >= sink->size_max));
}

/* Whether one more record that cannot be parsed is too many. */
static bool exceeds_limit(const struct lahar_record_sink *sink)
{
    const struct lahar_sink_target *target = sink->target;
    const double count = (double)sink->error_total + 1;
    return sink->error_total >= target->errors_allowed &&
           count > target->error_ratio_allowed * ((double)sink->record_total + count);
}

/* A record that could not be parsed: where it goes; false when it goes nowhere. */
static bool route_error(struct lahar_record_sink *sink, const lahar_event *event,
                        const lahar_value *failure, lahar_event *routed)
{
    char message[120];
    const size_t size =
        failure->as.bytes.size < sizeof message - 1 ? failure->as.bytes.size : sizeof message - 1;
    memcpy(message, failure->as.bytes.data, size);
    message[size] = '\0';
    *routed = *event;
    switch (sink->target->mode) {
    case LAHAR_ERROR_MODE_STREAM:
        break;
    case LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE:
        routed->stream = sink->target->dead_letter;
        break;
    case LAHAR_ERROR_MODE_STOP:
        sink->is_stopped = true;
        break;
    case LAHAR_ERROR_MODE_DEFAULT:
        sink->is_stopped = sink->target->fails_by_default && exceeds_limit(sink);
        sink->error_total++;
        break;
    case LAHAR_ERROR_MODE_SKIP:
        break;
    }
    if (!sink->is_stopped) {
        lahar_record_sink_count_error(sink, message);
    } else {
        (void)snprintf(sink->last_error, sizeof sink->last_error, "line %llu: %s",
                       (unsigned long long)sink->line, message);
    }
    return sink->target->mode == LAHAR_ERROR_MODE_STREAM ||
           sink->target->mode == LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE;
}

lahar_status lahar_record_sink_take(void *context, const lahar_event *event, uint64_t offset,
                                    lahar_error *error)
{
    struct lahar_record_sink *sink = context;
    lahar_event taken = *event;
    const lahar_value *failure = lahar_event_find(event, LAHAR_FIELD_ERROR);
    (void)offset;
    if (sink->is_muted) {
        return LAHAR_OK;
    }
    if (sink->line_of != NULL) {
        sink->line = lahar_text_reader_line(sink->line_of);
    }
    if (is_batch_full(sink)) {
        sink->is_full = true;
        return LAHAR_BUSY;
    }
    if (failure != NULL && !route_error(sink, event, failure, &taken)) {
        return sink->is_stopped ? LAHAR_BUSY : LAHAR_OK;
    }
    const lahar_event routed = taken;
    if (!add_columns(sink, &routed, &taken)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a record");
    }
    const lahar_status status = hand_over(sink, &taken, error);
    if (status == LAHAR_OK) {
        sink->records_left--;
        sink->record_total++;
    } else if (status == LAHAR_BUSY && failure != NULL) {
        sink->error_count--;
    }
    return status;
}

/* --- gaps ---------------------------------------------------------------------------------- */

lahar_status lahar_gap_report(const struct lahar_sink_target *target, lahar_batch *batch,
                              const char *source, const char *path, uint64_t generation,
                              uint64_t from, uint64_t to, const char *reason, lahar_error *error)
{
    char message[200];
    const int message_size = snprintf(message, sizeof message, "bytes %llu to %llu may be lost: %s",
                                      (unsigned long long)from, (unsigned long long)to, reason);
    if (target->gaps == LAHAR_ANY_STREAM) {
        return LAHAR_OK;
    }
    const uint32_t *fields = target->gap_columns;
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_MESSAGE,
         .type = LAHAR_TEXT,
         .as.bytes = {message, (size_t)message_size}},
        {.field = fields[LAHAR_GAP_SOURCE],
         .type = LAHAR_KEYWORD,
         .as.bytes = {source, strlen(source)}},
        {.field = fields[LAHAR_GAP_PATH], .type = LAHAR_KEYWORD, .as.bytes = {path, strlen(path)}},
        {.field = fields[LAHAR_GAP_GENERATION], .type = LAHAR_U64, .as.u64 = generation},
        {.field = fields[LAHAR_GAP_FROM], .type = LAHAR_U64, .as.u64 = from},
        {.field = fields[LAHAR_GAP_TO], .type = LAHAR_U64, .as.u64 = to},
        {.field = fields[LAHAR_GAP_REASON],
         .type = LAHAR_KEYWORD,
         .as.bytes = {reason, strlen(reason)}},
    };
    const lahar_event event = {.time_ns = LAHAR_TIME_OF_ARRIVAL,
                               .stream = target->gaps,
                               .values = values,
                               .value_count = sizeof values / sizeof *values};
    return lahar_batch_add(batch, &event, error);
}

/* --- comparing -------------------------------------------------------------------------------- */

static uint64_t hash_bytes(lahar_bytes bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes.data == NULL ? "" : bytes.data, bytes.size, seed);
}

static uint64_t hash_value(const lahar_value *value)
{
    const uint64_t seed = (uint64_t)value->field << 8 | (uint64_t)value->type << 1 | value->is_null;
    uint64_t hash = seed;
    if (value->is_null) {
        return XXH3_64bits_withSeed("", 0, seed);
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        return hash_bytes(value->as.bytes, seed);
    case LAHAR_UUID:
        return XXH3_64bits_withSeed(value->as.uuid.bytes, sizeof value->as.uuid.bytes, seed);
    case LAHAR_BOOL:
        return XXH3_64bits_withSeed(value->as.boolean ? "1" : "0", 1, seed);
    case LAHAR_LIST_UUID:
        return XXH3_64bits_withSeed(value->as.uuids.items,
                                    value->as.uuids.count * sizeof(lahar_uuid), seed);
    case LAHAR_LIST_KEYWORD:
        for (size_t i = 0; i < value->as.keywords.count; i++) {
            hash = hash_bytes(value->as.keywords.items[i], hash);
        }
        return hash;
    case LAHAR_MAP:
        for (size_t i = 0; i < value->as.map.count; i++) {
            const lahar_pair *pair = &value->as.map.items[i];
            hash = hash_bytes(pair->key, hash + pair->is_null);
            hash = pair->is_null ? hash : hash_bytes(pair->value, hash);
        }
        return hash;
    default:
        return XXH3_64bits_withSeed(&value->as.u64, sizeof value->as.u64, seed);
    }
}

/* _filename and _path change when a file is renamed; every other value is the record's. */
uint64_t lahar_record_hash(const struct lahar_sink_target *target, const lahar_event *event)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < event->value_count; i++) {
        const lahar_value *value = &event->values[i];
        if (value->field != LAHAR_FIELD_FILENAME &&
            value->field != target->columns[LAHAR_COLUMN_PATH]) {
            sum += hash_value(value);
        }
    }
    return XXH3_64bits(&sum, sizeof sum);
}
