/* The oracle of the crash tests: see history.h. */
#include "history.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_SIZE_MAX = 256 * 1024,
    HEAD_SIZE = 64
};

static bool violate(struct history *history, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool violate(struct history *history, const char *format, ...)
{
    if (history->reason[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(history->reason, sizeof history->reason, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* "<batch> <place> <count>." and padding that depends on both numbers. */
static size_t message_of(uint32_t number, uint32_t place, const struct history_batch *batch,
                         char *out)
{
    const int head = snprintf(out, HEAD_SIZE, "%u %u %u.", number, place, batch->event_count);
    for (uint32_t i = 0; i < batch->message_size; i++) {
        out[(uint32_t)head + i] = (char)('a' + (number * 7 + place * 3 + i / 5) % 26);
    }
    return (size_t)head + batch->message_size;
}

static uint32_t stream_of(uint32_t number, uint32_t place)
{
    return (number + place) % HISTORY_STREAMS;
}

lahar_status history_build(const struct history *history, uint32_t number,
                           const uint32_t streams[HISTORY_STREAMS], lahar_batch *batch,
                           lahar_error *error)
{
    const struct history_batch *plan = &history->batches[number];
    lahar_status status = LAHAR_OK;
    char *message = malloc(HEAD_SIZE + MESSAGE_SIZE_MAX);
    if (message == NULL) {
        return LAHAR_NO_MEMORY;
    }
    lahar_batch_clear(batch);
    for (uint32_t place = 0; place < plan->event_count && status == LAHAR_OK; place++) {
        const size_t size = message_of(number, place, plan, message);
        const lahar_value value = {
            .field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {message, size}};
        const lahar_event event = {.stream = streams[stream_of(number, place)],
                                   .time_ns = LAHAR_TIME_OF_ARRIVAL,
                                   .values = &value,
                                   .value_count = 1};
        status = lahar_batch_add(batch, &event, error);
    }
    if (status == LAHAR_OK && plan->has_offset) {
        const int size = snprintf(message, HEAD_SIZE, "%u", number);
        status = lahar_batch_add_offset(batch, (lahar_bytes){"s", 1}, (lahar_bytes){"k", 1},
                                        (lahar_bytes){message, (size_t)size}, error);
    }
    free(message);
    return status;
}

void history_note_durable(struct history *history, uint64_t durable_id)
{
    for (uint32_t i = 0; i < history->batch_count; i++) {
        struct history_batch *batch = &history->batches[i];
        /* A batch of offsets alone takes an id too. */
        const uint64_t id_count = batch->event_count == 0 ? 1 : batch->event_count;
        if (batch->first_id != 0 && batch->session == history->session &&
            batch->first_id + id_count <= durable_id) {
            batch->is_durable = true;
        }
    }
}

void history_note_rolled(struct history *history, uint64_t now_ns)
{
    for (uint32_t i = 0; i < history->batch_count; i++) {
        struct history_batch *batch = &history->batches[i];
        if (batch->first_id != 0 && !batch->is_gone && batch->rolled_ns == 0) {
            batch->rolled_ns = now_ns;
        }
    }
}

uint64_t history_note_age_limit(struct history *history, uint64_t max_age_ns, uint64_t now_ns)
{
    uint64_t must_go_below = 0;
    for (uint32_t i = 0; i < history->batch_count; i++) {
        const struct history_batch *batch = &history->batches[i];
        const uint64_t end_id = batch->first_id + batch->event_count;
        for (uint32_t k = 0; k < HISTORY_STREAMS && batch->first_id != 0; k++) {
            if (now_ns - batch->appended_ns > max_age_ns && end_id > history->may_go_below[k]) {
                history->may_go_below[k] = end_id;
            }
        }
        if (batch->rolled_ns != 0 && now_ns - batch->rolled_ns > max_age_ns) {
            must_go_below = end_id;
        }
    }
    return must_go_below;
}

bool history_note_lost(struct history *history, uint64_t first_id, uint64_t last_id)
{
    bool has_any = false;
    for (uint32_t i = 0; i < history->batch_count; i++) {
        struct history_batch *batch = &history->batches[i];
        if (batch->first_id != 0 && batch->first_id >= first_id && batch->first_id <= last_id) {
            batch->is_gone = true;
            has_any = true;
        }
    }
    return has_any;
}

/* The places of a batch that retention cannot have taken. */
static uint64_t required_places(const struct history *history, uint32_t number)
{
    const struct history_batch *batch = &history->batches[number];
    uint64_t places = 0;
    for (uint32_t place = 0; place < batch->event_count; place++) {
        if (batch->first_id + place >= history->may_go_below[stream_of(number, place)]) {
            places |= UINT64_C(1) << place;
        }
    }
    return places;
}

/* Compares one event with the plan of the batch that it says it belongs to. */
static bool check_event(struct history *history, const lahar_event *event, char *scratch,
                        uint64_t seen[HISTORY_BATCHES_MAX])
{
    const lahar_value *message = NULL;
    for (size_t i = 0; i < event->value_count; i++) {
        if (event->values[i].field == LAHAR_FIELD_MESSAGE) {
            message = &event->values[i];
        }
    }
    if (message == NULL || message->is_null || message->as.bytes.size == 0) {
        return violate(history, "event %llu has no message", (unsigned long long)event->id);
    }
    char head[HEAD_SIZE] = {0};
    const size_t head_size =
        message->as.bytes.size < HEAD_SIZE - 1 ? message->as.bytes.size : HEAD_SIZE - 1;
    memcpy(head, message->as.bytes.data, head_size);
    uint32_t number = 0;
    uint32_t place = 0;
    uint32_t count = 0;
    if (sscanf(head, "%u %u %u.", &number, &place, &count) != 3 || number >= history->batch_count ||
        history->batches[number].is_gone || history->batches[number].first_id == 0 ||
        place >= history->batches[number].event_count) {
        return violate(history, "event %llu was never appended", (unsigned long long)event->id);
    }
    const struct history_batch *batch = &history->batches[number];
    const size_t size = message_of(number, place, batch, scratch);
    if (size != message->as.bytes.size || memcmp(scratch, message->as.bytes.data, size) != 0) {
        return violate(history, "event %llu of batch %u has other bytes than were appended",
                       (unsigned long long)event->id, number);
    }
    if (event->id != batch->first_id + place) {
        return violate(history, "event %u of batch %u has id %llu, was given %llu", place, number,
                       (unsigned long long)event->id,
                       (unsigned long long)(batch->first_id + place));
    }
    if (event->id < history->must_go_below[stream_of(number, place)]) {
        return violate(history, "event %llu of batch %u had been dropped and is back",
                       (unsigned long long)event->id, number);
    }
    if ((seen[number] >> place & 1) != 0) {
        return violate(history, "batch %u: event %u is there twice", number, place);
    }
    seen[number] |= UINT64_C(1) << place;
    return true;
}

struct offset_found {
    bool is_present;
    uint32_t number;
};

static lahar_status note_offset(void *context, lahar_bytes key, lahar_bytes value)
{
    struct offset_found *found = context;
    char text[16] = {0};
    if (key.size == 1 && value.size < sizeof text) {
        memcpy(text, value.data, value.size);
        found->is_present = true;
        found->number = (uint32_t)strtoul(text, NULL, 10);
    }
    return LAHAR_OK;
}

static bool check_batch(struct history *history, uint32_t number, uint64_t seen, bool *hole)
{
    const struct history_batch *batch = &history->batches[number];
    const uint64_t required = required_places(history, number);
    if (batch->is_gone || batch->event_count == 0 || required == 0) {
        return true;
    }
    seen &= required;
    if (seen != 0 && seen != required) {
        return violate(history, "batch %u is there in part: events %#llx of %#llx", number,
                       (unsigned long long)seen, (unsigned long long)required);
    }
    if (batch->is_durable && seen == 0) {
        return violate(history, "batch %u was durable and is gone", number);
    }
    if (seen != 0 && *hole) {
        return violate(history, "batch %u survived behind one that did not", number);
    }
    *hole = *hole || seen == 0;
    return true;
}

static bool check_offset(struct history *history, const uint64_t seen[HISTORY_BATCHES_MAX],
                         const struct offset_found *offset)
{
    uint32_t least = UINT32_MAX; /* newest batch whose offset must be there */
    for (uint32_t i = 0; i < history->batch_count; i++) {
        const struct history_batch *batch = &history->batches[i];
        const bool is_there = required_places(history, i) == 0 ? batch->is_durable : seen[i] != 0;
        if (batch->has_offset && !batch->is_gone && is_there) {
            least = i;
        }
    }
    if (least != UINT32_MAX && (!offset->is_present || offset->number < least)) {
        return violate(history, "the offset of batch %u was lost", least);
    }
    if (!offset->is_present) {
        return true;
    }
    if (offset->number >= history->batch_count || !history->batches[offset->number].has_offset) {
        return violate(history, "offset %u was never recorded", offset->number);
    }
    const struct history_batch *batch = &history->batches[offset->number];
    if (batch->is_gone ||
        (required_places(history, offset->number) != 0 && seen[offset->number] == 0)) {
        return violate(history, "the offset of batch %u is kept without its events",
                       offset->number);
    }
    return true;
}

static bool check_batches(struct history *history, const uint64_t seen[HISTORY_BATCHES_MAX],
                          const struct offset_found *offset)
{
    bool hole[HISTORY_SESSIONS_MAX] = {false};
    for (uint32_t i = 0; i < history->batch_count; i++) {
        if (!check_batch(history, i, seen[i], &hole[history->batches[i].session])) {
            return false;
        }
    }
    return history->is_repaired || check_offset(history, seen, offset);
}

bool history_check(struct history *history, lahar_store *store, uint64_t *found_out)
{
    uint64_t seen[HISTORY_BATCHES_MAX] = {0};
    struct offset_found offset = {false, 0};
    lahar_error error = {0};
    lahar_cursor *cursor = NULL;
    bool ok = true;
    uint64_t previous_id = 0;
    *found_out = 0;
    char *scratch = malloc(HEAD_SIZE + MESSAGE_SIZE_MAX);
    if (scratch == NULL || lahar_scan(store, NULL, &cursor, &error) != LAHAR_OK) {
        free(scratch);
        return violate(history, "scan: %s", error.message);
    }
    while (ok) {
        const lahar_event *event = NULL;
        const lahar_status status = lahar_cursor_next(cursor, &event, &error);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        if (status == LAHAR_CORRUPT && history->is_damaged) {
            continue;
        }
        if (status != LAHAR_OK) {
            ok = violate(history, "next: %s", error.message);
        } else if (event->id <= previous_id && *found_out != 0) {
            ok = violate(history, "id %llu follows %llu", (unsigned long long)event->id,
                         (unsigned long long)previous_id);
        } else {
            previous_id = event->id;
            (*found_out)++;
            ok = check_event(history, event, scratch, seen);
        }
    }
    lahar_cursor_close(cursor);
    free(scratch);
    if (ok && lahar_offset_visit(store, (lahar_bytes){"s", 1}, note_offset, &offset, &error) !=
                  LAHAR_OK) {
        ok = violate(history, "offsets: %s", error.message);
    }
    return ok && check_batches(history, seen, &offset);
}

/* Marks a batch found by its first event. */
static void keep_found(struct history *history, const lahar_event *event, bool kept[])
{
    for (uint32_t i = 0; i < history->batch_count; i++) {
        const struct history_batch *batch = &history->batches[i];
        if (batch->first_id != 0 && event->id >= batch->first_id &&
            event->id < batch->first_id + batch->event_count) {
            kept[i] = true;
        }
    }
}

void history_settle(struct history *history, lahar_store *store)
{
    bool kept[HISTORY_BATCHES_MAX] = {false};
    struct offset_found offset = {false, 0};
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    if (lahar_scan(store, NULL, &cursor, NULL) == LAHAR_OK) {
        lahar_status status = LAHAR_OK;
        while (status == LAHAR_OK || (status == LAHAR_CORRUPT && history->is_damaged)) {
            status = lahar_cursor_next(cursor, &event, NULL);
            if (status == LAHAR_OK) {
                keep_found(history, event, kept);
            }
        }
        lahar_cursor_close(cursor);
    }
    if (lahar_offset_visit(store, (lahar_bytes){"s", 1}, note_offset, &offset, NULL) != LAHAR_OK) {
        offset.is_present = false;
    }
    for (uint32_t i = 0; i < history->batch_count; i++) {
        struct history_batch *batch = &history->batches[i];
        if (batch->event_count == 0) {
            /* Offsets alone show only as the newest offset. */
            kept[i] = batch->is_durable || (offset.is_present && offset.number >= i);
        } else if (required_places(history, i) == 0) {
            /* Retention may have taken it, and may still do so. */
            kept[i] = kept[i] || batch->is_durable;
        }
        /* What recovery showed once is durable from then on. */
        batch->is_durable = kept[i];
        batch->is_gone = batch->is_gone || !kept[i];
    }
    history->session++;
}
