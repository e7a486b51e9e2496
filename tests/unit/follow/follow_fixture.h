/* A directory of logs, followed step by step into a store on a simulated disk.
 *
 * The clock is the test's: steps are made at a time that only the test advances, so waiting
 * costs nothing. What was delivered is read from the store and compared with the test's own list.
 */
#ifndef LAHAR_TESTS_FOLLOW_FIXTURE_H
#define LAHAR_TESTS_FOLLOW_FIXTURE_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/event/row.h"
#include "engine/follow/follow_internal.h"
#include "engine/store/store_internal.h"
#include "io/base/allocator.h"
#include "io/sim_disk.h"
#include "lahar/follow.h"
#include "lahar/lahar.h"
#include "scratch.h"

enum {
    FOLLOW_STEPS_MAX = 20000
};

struct follow_fixture {
    char scratch[SCRATCH_PATH_SIZE];
    char logs[SCRATCH_PATH_SIZE + 16]; /* the directory that is followed */
    struct lahar_sim_disk *disk;
    struct lahar_io *io;
    lahar_store *store;
    lahar_follow *follow;
    lahar_options options;
    lahar_source_spec spec;
    uint64_t now_ns;
};

static inline void follow_fixture_open_store(struct follow_fixture *f)
{
    lahar_error error = {0};
    struct lahar_store_config config = {0};
    cr_assert_eq(lahar_sim_disk_io(f->disk, &f->io, &error), LAHAR_OK);
    config.io = f->io;
    cr_assert_eq(
        lahar_store_open_config("store", &f->options, &config, LAHAR_NO_WAIT, &f->store, &error),
        LAHAR_OK, "%s", error.message);
}

static inline void follow_fixture_init(struct follow_fixture *f)
{
    lahar_error error = {0};
    *f = (struct follow_fixture){.now_ns = UINT64_C(1000000000)};
    scratch_create(f->scratch);
    (void)snprintf(f->logs, sizeof f->logs, "%s/logs", f->scratch);
    cr_assert_eq(mkdir(f->logs, 0755), 0);
    cr_assert_eq(lahar_sim_disk_create(&lahar_allocator_libc, 1, &f->disk, &error), LAHAR_OK);
    lahar_options_init(&f->options);
    f->options.memory_limit_bytes = 64 << 20;
    f->options.journal_count = 1;
    f->options.durability = LAHAR_DURABILITY_NONE;
    lahar_source_spec_init(&f->spec);
    f->spec.name = "logs";
    f->spec.path = f->logs;
    follow_fixture_open_store(f);
}

static inline void follow_fixture_create(struct follow_fixture *f)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_source_create(f->store, &f->spec, &error), LAHAR_OK, "%s", error.message);
}

static inline void follow_fixture_start(struct follow_fixture *f)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_follow_open(f->store, NULL, &f->follow, &error), LAHAR_OK, "%s",
                 error.message);
}

static inline void follow_fixture_stop(struct follow_fixture *f)
{
    lahar_follow_close(f->follow);
    f->follow = NULL;
}

static inline void follow_fixture_drop_store(struct follow_fixture *f)
{
    follow_fixture_stop(f);
    lahar_store_abandon(f->store);
    f->store = NULL;
    f->io->ops->destroy(f->io);
    f->io = NULL;
}

/* The process dies: what was appended and not written is lost, with the power also what was
 * not synced. */
static inline void follow_fixture_crash(struct follow_fixture *f, uint64_t seed, bool power_loss)
{
    follow_fixture_drop_store(f);
    lahar_sim_disk_restart(f->disk, seed, power_loss);
    follow_fixture_open_store(f);
}

static inline void follow_fixture_kill(struct follow_fixture *f)
{
    follow_fixture_crash(f, 1, false);
}

static inline void follow_fixture_advance(struct follow_fixture *f, uint64_t ms)
{
    f->now_ns += ms * UINT64_C(1000000);
}

/* Steps until nothing is to be done: everything that is there has been read. */
static inline void follow_fixture_settle(struct follow_fixture *f)
{
    unsigned steps = 0;
    follow_fixture_advance(f, 60000);
    while (lahar_follow_step(f->follow, f->now_ns)) {
        cr_assert_lt(++steps, FOLLOW_STEPS_MAX, "the follower does not come to rest");
    }
    cr_assert_eq(f->follow->failure.status, LAHAR_OK, "%s", f->follow->failure.message);
}

/* The same without time for looks that are only due. */
static inline void follow_fixture_settle_now(struct follow_fixture *f)
{
    unsigned steps = 0;
    follow_fixture_advance(f, 1);
    while (lahar_follow_step(f->follow, f->now_ns)) {
        cr_assert_lt(++steps, FOLLOW_STEPS_MAX, "the follower does not come to rest");
    }
}

/* Creates a source with the fixture's spec and reads what is there. */
static inline void follow_fixture_begin(struct follow_fixture *f)
{
    follow_fixture_create(f);
    follow_fixture_start(f);
    follow_fixture_settle(f);
}

static inline void follow_fixture_restart(struct follow_fixture *f)
{
    follow_fixture_stop(f);
    follow_fixture_start(f);
    follow_fixture_settle(f);
}

static inline void follow_fixture_deinit(struct follow_fixture *f)
{
    follow_fixture_drop_store(f);
    lahar_sim_disk_destroy(f->disk);
    scratch_remove(f->scratch);
}

/* --- files ------------------------------------------------------------------------------ */

static inline const char *log_path(struct follow_fixture *f, const char *name)
{
    static char paths[8][SCRATCH_PATH_SIZE * 2];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", f->logs, name);
    return path;
}

static inline void write_file(struct follow_fixture *f, const char *name, int flags,
                              const void *data, size_t size)
{
    const int descriptor = open(log_path(f, name), O_WRONLY | O_CREAT | flags, 0644);
    cr_assert_geq(descriptor, 0, "%s", name);
    cr_assert_eq(write(descriptor, data, size), (ssize_t)size);
    cr_assert_eq(close(descriptor), 0);
}

static inline void add(struct follow_fixture *f, const char *name, const char *text)
{
    write_file(f, name, O_APPEND, text, strlen(text));
}

/* Lines "PREFIX FROM" .. "PREFIX TO-1". */
static inline void add_lines(struct follow_fixture *f, const char *name, const char *prefix,
                             unsigned from, unsigned to)
{
    FILE *file = fopen(log_path(f, name), "a");
    cr_assert_not_null(file);
    for (unsigned i = from; i < to; i++) {
        (void)fprintf(file, "%s %u\n", prefix, i);
    }
    cr_assert_eq(fclose(file), 0);
}

static inline void move(struct follow_fixture *f, const char *from, const char *to)
{
    cr_assert_eq(rename(log_path(f, from), log_path(f, to)), 0, "%s", from);
}

static inline void drop(struct follow_fixture *f, const char *name)
{
    cr_assert_eq(unlink(log_path(f, name)), 0, "%s", name);
}

static inline void cut(struct follow_fixture *f, const char *name, off_t size)
{
    cr_assert_eq(truncate(log_path(f, name), size), 0, "%s", name);
}

static inline void copy(struct follow_fixture *f, const char *from, const char *to)
{
    char command[SCRATCH_PATH_SIZE * 5];
    (void)snprintf(command, sizeof command, "cp '%s' '%s'", log_path(f, from), log_path(f, to));
    cr_assert_eq(system(command), 0);
}

/* --- what is in the store -------------------------------------------------------------------- */

static inline lahar_bytes text_of(const lahar_event *event, uint32_t field)
{
    const lahar_value *value = lahar_event_find(event, field);
    return value == NULL ? (lahar_bytes){"", 0} : value->as.bytes;
}

/* Every message of a stream in order of id, a newline behind each; released by the caller. */
static inline char *messages_of(struct follow_fixture *f, const char *stream, uint32_t field)
{
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    lahar_scan_options_init(&options);
    cr_assert_eq(lahar_stream_find(f->store, stream, &options.stream, NULL), LAHAR_OK, "%s",
                 stream);
    cr_assert_eq(lahar_scan(f->store, &options, &cursor, NULL), LAHAR_OK);
    while (lahar_cursor_next(cursor, &event, NULL) == LAHAR_OK) {
        const lahar_bytes message = text_of(event, field);
        (void)fwrite(message.data, 1, message.size, out);
        (void)fputc('\n', out);
    }
    lahar_cursor_close(cursor);
    (void)fclose(out);
    return text;
}

static inline void expect_messages(struct follow_fixture *f, const char *expected)
{
    char *text = messages_of(f, "logs", LAHAR_FIELD_MESSAGE);
    cr_assert_str_eq(text, expected);
    free(text);
}

static inline size_t count_messages(struct follow_fixture *f, const char *stream)
{
    lahar_stream_info info;
    uint32_t id = 0;
    cr_assert_eq(lahar_stream_find(f->store, stream, &id, NULL), LAHAR_OK);
    cr_assert_eq(lahar_stream_info_get(f->store, id, &info, NULL), LAHAR_OK);
    return (size_t)info.event_count;
}

/* The number that an event of the stream has in a column, by the event's place. */
static inline uint64_t number_of(struct follow_fixture *f, const char *stream, size_t place,
                                 const char *column)
{
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    uint32_t field = 0;
    lahar_scan_options_init(&options);
    cr_assert_eq(lahar_stream_find(f->store, stream, &options.stream, NULL), LAHAR_OK);
    cr_assert_eq(lahar_field_id(f->store, column, &field, NULL), LAHAR_OK);
    cr_assert_eq(lahar_scan(f->store, &options, &cursor, NULL), LAHAR_OK);
    for (size_t i = 0; i <= place; i++) {
        cr_assert_eq(lahar_cursor_next(cursor, &event, NULL), LAHAR_OK);
    }
    const lahar_value *value = lahar_event_find(event, field);
    cr_assert_not_null(value, "%s", column);
    const uint64_t number = value->as.u64;
    lahar_cursor_close(cursor);
    return number;
}

#endif
