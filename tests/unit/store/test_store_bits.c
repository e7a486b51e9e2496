/* Rotten bits: whatever bit of a store is flipped, get, scan, query and export answer as if it were
 * not, or say which events are concerned and answer for the rest.
 *
 * usage: test_store_bits [small|large [COUNT]]
 *
 * small: every COUNT-th bit in use of a store of a few KiB (1: all of them); large: COUNT random
 * bits of one of several blocks. Without arguments a sample of either. Where opening is refused, a
 * repair on a copy of the disk must bring back an answer of that kind; only the identity file
 * cannot be repaired. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/store/store_internal.h"
#include "io/base/allocator.h"
#include "io/sim_disk.h"
#include "lahar/lahar.h"

enum {
    PATHS_MAX = 64,
    EVENTS_MAX = 40000,
    TEXT_SIZE = 400
};

struct file {
    char path[160];
    uint64_t used_bytes;
};

static struct lahar_sim_disk *disk;
static struct file files[PATHS_MAX];
static size_t file_count;
static uint64_t ids[EVENTS_MAX]; /* event n has id ids[n] */
static size_t event_count;
static unsigned long flips;
static unsigned long refusals;
static unsigned long reports;
static unsigned long failures;

static void die(const char *what, const lahar_error *error)
{
    (void)printf("FAIL %s: %s\n0 passed, 1 failed, 0 skipped\n", what, error->message);
    exit(1);
}

static size_t text_of(size_t number, char text_out[TEXT_SIZE])
{
    const size_t size = number % 50 == 7 ? 300 : 20;
    const int begin = snprintf(text_out, TEXT_SIZE, "event %zu of %s ", number,
                               number % 3 == 0 ? "apples" : "pears");
    for (size_t i = (size_t)begin; i < (size_t)begin + size; i++) {
        text_out[i] = (char)('a' + (number * 7 + i * i) % 26);
    }
    return (size_t)begin + size;
}

static lahar_status open_store(struct lahar_io *io, bool read_only, bool repair,
                               lahar_store **store_out, lahar_error *error)
{
    lahar_options options;
    lahar_options_init(&options);
    options.read_only = read_only;
    options.repair = repair;
    options.memory_limit_bytes = 64 << 20;
    options.journal_count = 1;
    const struct lahar_store_config config = {.io = io, .join_file_count = UINT32_MAX};
    return lahar_store_open_config("store", &options, &config, LAHAR_NO_WAIT, store_out, error);
}

static void append(lahar_store *store, uint32_t stream, size_t count)
{
    lahar_error error = {0};
    lahar_batch *batch = NULL;
    uint64_t first_id = 0;
    const size_t start = event_count;
    if (lahar_batch_create(store, &batch, &error) != LAHAR_OK) {
        die("batch", &error);
    }
    for (size_t i = 0; i < count; i++) {
        char text[TEXT_SIZE];
        const lahar_value value = {.field = LAHAR_FIELD_MESSAGE,
                                   .type = LAHAR_TEXT,
                                   .as.bytes = {text, text_of(event_count++, text)}};
        const lahar_event event = {
            .stream = stream, .time_ns = 1000, .values = &value, .value_count = 1};
        if (lahar_batch_add(batch, &event, &error) != LAHAR_OK) {
            die("add", &error);
        }
    }
    if (lahar_batch_commit(batch, NULL, &first_id, &error) != LAHAR_OK) {
        die("commit", &error);
    }
    for (size_t i = start; i < event_count; i++) {
        ids[i] = first_id + (i - start);
    }
    lahar_batch_destroy(batch);
}

static void make_store(struct lahar_io *io, size_t group_events)
{
    lahar_error error = {0};
    lahar_store *store = NULL;
    uint32_t stream = 0;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = "s", .schema = LAHAR_SCHEMA_LOG};
    if (open_store(io, false, false, &store, &error) != LAHAR_OK ||
        lahar_stream_create(store, &spec, &stream, &error) != LAHAR_OK) {
        die("opening", &error);
    }
    for (unsigned i = 0; i < 2; i++) {
        append(store, stream, group_events);
        if (lahar_rollover(store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
            die("rollover", &error);
        }
    }
    append(store, stream, 3);
    if (lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        die("closing", &error);
    }
}

/* --- the files and what of them is in use --------------------------------------------------- */

struct listing {
    struct lahar_io *io;
    const char *directory;
};

/* Journals are zeroed ahead: in use is what lies before their last byte that is not 0. */
static uint64_t used_bytes(struct lahar_io *io, const char *path)
{
    struct lahar_io_file *file = NULL;
    uint64_t size = 0;
    size_t read = 0;
    if (io->ops->open(io, path, LAHAR_IO_READ, &file, NULL) != LAHAR_OK ||
        io->ops->size(io, file, &size, NULL) != LAHAR_OK) {
        return 0;
    }
    uint8_t *content = malloc(size + 1);
    if (content == NULL || io->ops->read(io, file, 0, content, size, &read, NULL) != LAHAR_OK) {
        read = 0;
    }
    while (read > 0 && content[read - 1] == 0) {
        read--;
    }
    free(content);
    io->ops->close(io, file);
    return read;
}

static lahar_status note_file(void *context, const char *name, bool is_directory)
{
    const struct listing *listing = context;
    if (!is_directory && file_count < PATHS_MAX) {
        struct file *file = &files[file_count];
        (void)snprintf(file->path, sizeof file->path, "%s/%.100s", listing->directory, name);
        file->used_bytes = used_bytes(listing->io, file->path);
        file_count += file->used_bytes != 0;
    }
    return LAHAR_OK;
}

static uint64_t list_files(struct lahar_io *io)
{
    static const char *const directories[] = {"store", "store/events", "store/journal"};
    uint64_t bytes = 0;
    file_count = 0;
    for (size_t i = 0; i < 3; i++) {
        struct listing listing = {io, directories[i]};
        (void)io->ops->list(io, directories[i], note_file, &listing, NULL);
    }
    for (size_t i = 0; i < file_count; i++) {
        bytes += files[i].used_bytes;
    }
    return bytes;
}

/* --- judging --------------------------------------------------------------------------------- */

static const char *where; /* the file whose bit is flipped */
static uint64_t which;    /* the bit */

static bool complain(const char *what, uint64_t id)
{
    if (failures++ < 20) {
        (void)printf("FAIL bit %llu of %s: %s (event %llu)\n", (unsigned long long)which, where,
                     what, (unsigned long long)id);
    }
    return false;
}

static bool is_right(const lahar_event *event, size_t number)
{
    char text[TEXT_SIZE];
    const size_t size = text_of(number, text);
    return event->id == ids[number] && event->time_ns == 1000 && event->value_count == 1 &&
           event->values[0].field == LAHAR_FIELD_MESSAGE &&
           event->values[0].as.bytes.size == size &&
           memcmp(event->values[0].as.bytes.data, text, size) == 0;
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The number of the event with an id, event_count when there is none. */
static size_t number_of(uint64_t id)
{
    const uint64_t *found = bsearch(&id, ids, event_count, sizeof ids[0], compare_ids);
    return found == NULL ? event_count : (size_t)(found - ids);
}

/* The ids that a report names: the first two numbers in it, "A..B", "A to B", or "event A". */
static bool read_range(const char *message, uint64_t *first_out, uint64_t *last_out)
{
    unsigned long long first = 0;
    unsigned long long last = 0;
    const char *at = strstr(message, "event");
    if (at == NULL) {
        return false;
    }
    if (sscanf(at, "events %llu..%llu", &first, &last) == 2 ||
        sscanf(at, "events %llu to %llu", &first, &last) == 2) {
        *first_out = first;
        *last_out = last;
        return true;
    }
    if (sscanf(at, "event %llu", &first) == 1) {
        *first_out = first;
        *last_out = first;
        return true;
    }
    return false;
}

/* Scan and export: every event, or a report that covers it. */
static bool judge_scan(lahar_store *store, bool newest_first, bool is_repaired)
{
    static bool is_covered[EVENTS_MAX];
    static bool is_seen[EVENTS_MAX];
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    lahar_error error = {0};
    lahar_scan_options_init(&options);
    options.newest_first = newest_first;
    memset(is_covered, 0, sizeof is_covered);
    memset(is_seen, 0, sizeof is_seen);
    if (lahar_scan(store, &options, &cursor, &error) != LAHAR_OK) {
        return complain("the scan does not begin", 0);
    }
    bool is_good = true;
    for (size_t steps = 0; is_good; steps++) {
        const lahar_event *event = NULL;
        error = (lahar_error){0};
        const lahar_status status = lahar_cursor_next(cursor, &event, &error);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        if (status != LAHAR_OK) {
            uint64_t first = 0;
            uint64_t last = 0;
            reports++;
            is_good = status == LAHAR_CORRUPT && steps < 3 * EVENTS_MAX &&
                      read_range(error.message, &first, &last);
            if (!is_good) {
                (void)complain(error.message, 0);
            }
            for (size_t i = 0; i < event_count; i++) {
                is_covered[i] = is_covered[i] || (ids[i] >= first && ids[i] <= last);
            }
            continue;
        }
        const size_t number = number_of(event->id);
        is_good = number < event_count && !is_seen[number] && is_right(event, number);
        if (!is_good) {
            return complain("a wrong event", event->id);
        }
        is_seen[number] = true;
    }
    lahar_cursor_close(cursor);
    for (size_t i = 0; is_good && !is_repaired && i < event_count; i++) {
        if (!is_seen[i] && !is_covered[i]) {
            return complain("an event is missing without a report", ids[i]);
        }
    }
    return is_good;
}

static bool judge_get(lahar_store *store, size_t step, bool is_repaired)
{
    for (size_t i = which % step; i < event_count; i += step) {
        lahar_cursor *cursor = NULL;
        const lahar_event *event = NULL;
        lahar_error error = {0};
        lahar_status status = lahar_get(store, &ids[i], 1, &cursor, &error);
        if (status == LAHAR_OK) {
            status = lahar_cursor_next(cursor, &event, &error);
        }
        const bool is_good = status == LAHAR_OK ? is_right(event, i)
                                                : status == LAHAR_CORRUPT ||
                                                      (is_repaired && status == LAHAR_NOT_FOUND);
        lahar_cursor_close(cursor);
        if (!is_good) {
            return complain("get", ids[i]);
        }
    }
    return true;
}

static bool judge_query(lahar_store *store, bool is_repaired)
{
    lahar_query *query = NULL;
    lahar_query_options options;
    lahar_error error = {0};
    lahar_query_options_init(&options);
    options.limit = EVENTS_MAX;
    uint64_t wanted = 0;
    uint64_t found = 0;
    bool has_report = false;
    for (size_t i = 0; i < event_count; i++) {
        wanted += i % 3 == 0;
    }
    if (lahar_query_open(store, "apples", 6, &options, &query, &error) != LAHAR_OK) {
        return complain(error.message, 0);
    }
    for (size_t steps = 0; steps < 3 * EVENTS_MAX; steps++) {
        const lahar_event *event = NULL;
        error = (lahar_error){0};
        const lahar_status status = lahar_query_next(query, &event, &error);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        has_report = has_report || status == LAHAR_CORRUPT;
        found += status == LAHAR_OK;
        if (status != LAHAR_OK && status != LAHAR_CORRUPT) {
            lahar_query_close(query);
            return complain(error.message, 0);
        }
    }
    lahar_query_result result = {.struct_size = sizeof result};
    error = (lahar_error){0};
    const lahar_status status = lahar_query_result_get(query, &result, &error);
    has_report = has_report || status == LAHAR_CORRUPT || result.is_partial;
    lahar_query_close(query);
    if ((found != wanted || result.total != wanted) && !has_report && !is_repaired) {
        return complain("a query finds less without saying so", result.total);
    }
    return found <= wanted;
}

static void judge_all(lahar_store *store, size_t get_step, bool is_repaired)
{
    (void)(judge_scan(store, false, is_repaired) && judge_scan(store, true, is_repaired) &&
           judge_get(store, get_step, is_repaired) && judge_query(store, is_repaired));
}

/* The store refuses to open: that is a report; what a repair makes of a copy must be right. */
static void judge_refusal(lahar_status status, const lahar_error *error, size_t get_step)
{
    refusals++;
    if (status != LAHAR_CORRUPT && status != LAHAR_UNSUPPORTED && status != LAHAR_NOT_A_STORE &&
        status != LAHAR_NOT_FOUND) {
        (void)complain(error->message, 0);
        return;
    }
    if (strcmp(where, "store/LAHAR") == 0 || status == LAHAR_UNSUPPORTED) {
        return;
    }
    struct lahar_sim_disk *copy = NULL;
    struct lahar_io *io = NULL;
    lahar_store *store = NULL;
    lahar_error cause = {0};
    if (lahar_sim_disk_clone(disk, &copy, NULL) != LAHAR_OK ||
        lahar_sim_disk_io(copy, &io, NULL) != LAHAR_OK) {
        (void)complain("no memory", 0);
        return;
    }
    if (open_store(io, false, true, &store, &cause) != LAHAR_OK) {
        (void)complain(cause.message, 0);
    } else {
        judge_all(store, get_step, true);
    }
    lahar_store_abandon(store);
    io->ops->destroy(io);
    lahar_sim_disk_destroy(copy);
}

static void flip(struct lahar_io *io, const struct file *file, uint64_t bit, size_t get_step)
{
    lahar_store *store = NULL;
    lahar_error error = {0};
    where = file->path;
    which = bit;
    flips++;
    (void)lahar_sim_disk_flip_bit(disk, file->path, bit, NULL);
    const lahar_status status = open_store(io, true, false, &store, &error);
    if (status == LAHAR_OK) {
        judge_all(store, get_step, false);
        (void)lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL);
    } else {
        judge_refusal(status, &error, get_step);
    }
    (void)lahar_sim_disk_flip_bit(disk, file->path, bit, NULL);
}

/* --- the two stores ----------------------------------------------------------------------------
 */

static struct lahar_io *begin(size_t group_events)
{
    struct lahar_io *io = NULL;
    event_count = 0;
    if (lahar_sim_disk_create(&lahar_allocator_libc, 1, &disk, NULL) != LAHAR_OK ||
        lahar_sim_disk_io(disk, &io, NULL) != LAHAR_OK) {
        exit(1);
    }
    make_store(io, group_events);
    const uint64_t used = list_files(io);
    (void)printf("%zu events, %llu bytes in use in %zu files\n", event_count,
                 (unsigned long long)used, file_count);
    return io;
}

static void end(struct lahar_io *io)
{
    io->ops->destroy(io);
    lahar_sim_disk_destroy(disk);
}

static void run_small(uint64_t step)
{
    struct lahar_io *io = begin(2);
    uint64_t at = 0;
    for (size_t i = 0; i < file_count; i++) {
        for (; at < 8 * files[i].used_bytes; at += step) {
            flip(io, &files[i], at, 1);
        }
        at -= 8 * files[i].used_bytes;
    }
    end(io);
}

static void run_large(uint64_t count)
{
    struct lahar_io *io = begin(8000);
    uint64_t random = 88172645463325252u;
    for (uint64_t n = 0; n < count; n++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        /* Every file as often as any other, so that small ones are not passed by. */
        const struct file *file = &files[random % file_count];
        flip(io, file, (random >> 16) % (8 * file->used_bytes), 997);
    }
    end(io);
}

int main(int argument_count, char **arguments)
{
    const bool is_small = argument_count > 1 && strcmp(arguments[1], "small") == 0;
    const bool is_large = argument_count > 1 && strcmp(arguments[1], "large") == 0;
    const uint64_t count = argument_count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    if (!is_large) {
        run_small(count == 0 ? 127 : count);
    }
    if (!is_small) {
        run_large(count == 0 ? 16 : count);
    }
    (void)printf("%lu bits, %lu openings refused, %lu reports by scans\n", flips, refusals,
                 reports);
    (void)printf("%lu passed, %lu failed, 0 skipped\n",
                 flips - (failures < flips ? failures : flips), failures);
    return failures == 0 ? 0 : 1;
}
