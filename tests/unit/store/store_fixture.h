/* A store on a simulated disk, driven by steps, and the list of events that it should
 * hold. */
#ifndef LAHAR_TESTS_STORE_FIXTURE_H
#define LAHAR_TESTS_STORE_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/store/store_internal.h"
#include "io/base/allocator.h"
#include "io/sim_disk.h"
#include "lahar/lahar.h"

/* One event as it was appended. Its message is made from its number, so that a value
 * read back can be checked without the library. */
struct expected_event {
    uint64_t id;
    uint32_t stream;
    uint32_t number;
    int64_t time_ns;
};

struct store_fixture {
    struct lahar_sim_disk *disk;
    struct lahar_io *io;
    lahar_store *store;
    lahar_options options;
    struct lahar_store_config config;
    struct expected_event *events;
    size_t event_count;
    size_t event_capacity;
    uint32_t next_number;
};

static inline void store_fixture_init(struct store_fixture *fixture, uint64_t seed)
{
    *fixture = (struct store_fixture){0};
    cr_assert_eq(lahar_sim_disk_create(&lahar_allocator_libc, seed, &fixture->disk, NULL),
                 LAHAR_OK);
    cr_assert_eq(lahar_sim_disk_io(fixture->disk, &fixture->io, NULL), LAHAR_OK);
    lahar_options_init(&fixture->options);
    fixture->options.memory_limit_bytes = 64 << 20;
    fixture->options.journal_count = 2;
    /* Most tests count on one event file a rollover and stream. */
    fixture->config.join_file_count = UINT32_MAX;
}

static inline lahar_status store_fixture_try_open(struct store_fixture *fixture, lahar_error *error)
{
    fixture->config.io = fixture->io;
    return lahar_store_open_config("store", &fixture->options, &fixture->config, LAHAR_NO_WAIT,
                                   &fixture->store, error);
}

static inline void store_fixture_open(struct store_fixture *fixture)
{
    lahar_error error = {0};
    cr_assert_eq(store_fixture_try_open(fixture, &error), LAHAR_OK, "%s", error.message);
}

static inline void store_fixture_close(struct store_fixture *fixture)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_store_close(fixture->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
    fixture->store = NULL;
}

/* The process ends without another word. With power_loss what was not synced may be lost. */
static inline void store_fixture_crash(struct store_fixture *fixture, uint64_t seed,
                                       bool power_loss)
{
    lahar_store_abandon(fixture->store);
    fixture->store = NULL;
    fixture->io->ops->destroy(fixture->io);
    lahar_sim_disk_restart(fixture->disk, seed, power_loss);
    cr_assert_eq(lahar_sim_disk_io(fixture->disk, &fixture->io, NULL), LAHAR_OK);
}

static inline void store_fixture_deinit(struct store_fixture *fixture)
{
    lahar_store_abandon(fixture->store);
    fixture->io->ops->destroy(fixture->io);
    lahar_sim_disk_destroy(fixture->disk);
    free(fixture->events);
}

/* Stream number n is called "s<n>". */
static inline uint32_t store_fixture_stream(struct store_fixture *fixture, unsigned n)
{
    char name[16];
    (void)snprintf(name, sizeof name, "s%u", n);
    uint32_t stream = 0;
    lahar_stream_spec spec = {.struct_size = sizeof spec, .name = name, .schema = LAHAR_SCHEMA_LOG};
    lahar_error error = {0};
    const lahar_status status = lahar_stream_create(fixture->store, &spec, &stream, &error);
    cr_assert(status == LAHAR_OK || status == LAHAR_EXISTS, "%s", error.message);
    return stream;
}

static inline int expected_message(uint32_t number, char message_out[64])
{
    return snprintf(message_out, 64, "event number %u of the test", number);
}

/* Appends count events of the streams in turn as one batch. Returns the status; what was
 * appended joins the list. */
static inline lahar_status store_fixture_append(struct store_fixture *fixture, lahar_batch *batch,
                                                const uint32_t *streams, size_t stream_count,
                                                size_t count, lahar_durability durability)
{
    struct expected_event *added = malloc((count + 1) * sizeof *added);
    lahar_error error = {0};
    for (size_t i = 0; i < count; i++) {
        const uint32_t number = fixture->next_number++;
        char message[64];
        const int size = expected_message(number, message);
        const lahar_value values[] = {
            {.field = LAHAR_FIELD_MESSAGE, .type = LAHAR_TEXT, .as.bytes = {message, (size_t)size}},
            {.field = LAHAR_FIELD_LEVEL,
             .type = LAHAR_KEYWORD,
             .as.bytes = {number % 3 == 0 ? "ERROR" : "INFO", number % 3 == 0 ? 5 : 4}}};
        added[i] = (struct expected_event){.stream = streams[number % stream_count],
                                           .number = number,
                                           .time_ns = 1000000000 + (int64_t)number * 7};
        const lahar_event event = {.stream = added[i].stream,
                                   .time_ns = added[i].time_ns,
                                   .values = values,
                                   .value_count = 2};
        cr_assert_eq(lahar_batch_add(batch, &event, &error), LAHAR_OK, "%s", error.message);
    }
    uint64_t first_id = 0;
    const lahar_append_options options = {sizeof options, durability, LAHAR_WAIT_FOREVER};
    const lahar_status status = lahar_batch_commit(batch, &options, &first_id, &error);
    if (first_id != 0) {
        if (fixture->event_count + count > fixture->event_capacity) {
            fixture->event_capacity = 2 * (fixture->event_count + count);
            fixture->events =
                realloc(fixture->events, fixture->event_capacity * sizeof *fixture->events);
        }
        for (size_t i = 0; i < count; i++) {
            added[i].id = first_id + i;
            fixture->events[fixture->event_count++] = added[i];
        }
    } else {
        lahar_batch_clear(batch);
    }
    free(added);
    return status;
}

/* The same with a batch of its own, and it must succeed. */
static inline void store_fixture_add(struct store_fixture *fixture, const uint32_t *streams,
                                     size_t stream_count, size_t count)
{
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_batch_create(fixture->store, &batch, NULL), LAHAR_OK);
    cr_assert_eq(store_fixture_append(fixture, batch, streams, stream_count, count,
                                      LAHAR_DURABILITY_INTERVAL),
                 LAHAR_OK);
    lahar_batch_destroy(batch);
}

static inline void check_event(const lahar_event *event, const struct expected_event *expected)
{
    char message[64];
    const int size = expected_message(expected->number, message);
    cr_assert_eq(event->id, expected->id, "id %lu, not %lu", (unsigned long)event->id,
                 (unsigned long)expected->id);
    cr_assert_eq(event->stream, expected->stream);
    cr_assert_eq(event->time_ns, expected->time_ns);
    cr_assert_eq(event->value_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const lahar_value *value = &event->values[i];
        cr_assert_not(value->is_null);
        if (value->field == LAHAR_FIELD_MESSAGE) {
            cr_assert_eq(value->as.bytes.size, (size_t)size);
            cr_assert_arr_eq(value->as.bytes.data, message, (size_t)size);
        } else {
            cr_assert_eq(value->field, LAHAR_FIELD_LEVEL);
            cr_assert_eq(value->as.bytes.size, expected->number % 3 == 0 ? 5 : 4);
        }
    }
}

/* A scan must give exactly the first count events of the list that its options want. */
static inline void check_scan_of(struct store_fixture *fixture, const lahar_scan_options *options,
                                 size_t count)
{
    lahar_cursor *cursor = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_scan(fixture->store, options, &cursor, &error), LAHAR_OK, "%s",
                 error.message);
    for (size_t i = 0; i < count; i++) {
        const struct expected_event *expected =
            &fixture->events[options->newest_first ? count - 1 - i : i];
        if ((options->stream != LAHAR_ANY_STREAM && options->stream != expected->stream) ||
            expected->id < options->from_id ||
            (options->to_id != 0 && expected->id >= options->to_id)) {
            continue;
        }
        const lahar_event *event = NULL;
        cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_OK, "event %zu: %s", i,
                     error.message);
        check_event(event, expected);
    }
    const lahar_event *event = NULL;
    cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_NOT_FOUND);
    cr_assert_null(event);
    lahar_cursor_close(cursor);
}

static inline void check_scan(struct store_fixture *fixture)
{
    lahar_scan_options options;
    lahar_scan_options_init(&options);
    check_scan_of(fixture, &options, fixture->event_count);
}

static inline void check_get(struct store_fixture *fixture)
{
    uint64_t *ids = malloc((fixture->event_count + 1) * sizeof *ids);
    for (size_t i = 0; i < fixture->event_count; i++) {
        ids[i] = fixture->events[i].id;
    }
    lahar_cursor *cursor = NULL;
    lahar_error error = {0};
    cr_assert_eq(lahar_get(fixture->store, ids, fixture->event_count, &cursor, &error), LAHAR_OK);
    for (size_t i = 0; i < fixture->event_count; i++) {
        const lahar_event *event = NULL;
        cr_assert_eq(lahar_cursor_next(cursor, &event, &error), LAHAR_OK, "event %zu: %s", i,
                     error.message);
        check_event(event, &fixture->events[i]);
    }
    lahar_cursor_close(cursor);
    free(ids);
}

#endif
