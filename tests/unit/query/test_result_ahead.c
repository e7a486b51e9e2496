/* Results whose blocks are read ahead by several threads: the answer is the same, each block is
 * read once, no more of them than the results that are wanted lie in, and damage is reported as
 * ever. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    EVENTS = 24,
    TEXT_SIZE = 300000 /* three of them fill a block of 1 MiB */
};

static char directory[SCRATCH_PATH_SIZE];
static uint64_t ids[EVENTS];

static void append(lahar_store *store)
{
    static char text[TEXT_SIZE];
    static const lahar_field_spec fields[] = {{.name = "key", .type = LAHAR_KEYWORD}};
    const lahar_stream_spec spec = {.struct_size = sizeof spec,
                                    .name = "log",
                                    .schema = LAHAR_SCHEMA_LOG,
                                    .fields = fields,
                                    .field_count = 1};
    uint32_t stream = 0;
    uint32_t key = 0;
    uint32_t message = 0;
    uint64_t random = 88172645463325252U;
    lahar_batch *batch = NULL;
    cr_assert_eq(lahar_stream_create(store, &spec, &stream, NULL), LAHAR_OK);
    cr_assert_eq(lahar_field_id(store, "key", &key, NULL), LAHAR_OK);
    cr_assert_eq(lahar_field_id(store, "message", &message, NULL), LAHAR_OK);
    cr_assert_eq(lahar_batch_create(store, &batch, NULL), LAHAR_OK);
    for (int i = 0; i < EVENTS; i++) {
        for (size_t k = 0; k < TEXT_SIZE; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            text[k] = (char)('a' + random % 26);
        }
        const lahar_value values[] = {
            {.field = key,
             .type = LAHAR_KEYWORD,
             .as.bytes = {i % 8 == 7 ? "rare" : "often", i % 8 == 7 ? 4 : 5}},
            {.field = message, .type = LAHAR_TEXT, .as.bytes = {text, TEXT_SIZE}}};
        const lahar_event event = {.stream = stream,
                                   .time_ns = i * INT64_C(1000000000),
                                   .values = values,
                                   .value_count = 2};
        cr_assert_eq(lahar_batch_add(batch, &event, NULL), LAHAR_OK);
        cr_assert_eq(lahar_batch_commit(batch, NULL, &ids[i], NULL), LAHAR_OK);
    }
    lahar_batch_destroy(batch);
    cr_assert_eq(lahar_rollover(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
}

static lahar_store *open_store(bool is_read_only)
{
    lahar_store *store = NULL;
    lahar_options options;
    lahar_options_init(&options);
    options.read_only = is_read_only;
    cr_assert_eq(lahar_store_open(directory, &options, LAHAR_WAIT_FOREVER, &store, NULL), LAHAR_OK);
    return store;
}

static void close_store(lahar_store *store)
{
    cr_assert_eq(lahar_store_close(store, LAHAR_WAIT_FOREVER, NULL), LAHAR_OK);
}

static void set_up(void)
{
    scratch_create(directory);
    lahar_store *store = open_store(false);
    append(store);
    close_store(store);
}

static void tear_down(void)
{
    scratch_remove(directory);
}

TestSuite(result_ahead, .init = set_up, .fini = tear_down);

struct answer {
    uint64_t ids[EVENTS];
    unsigned count;
    unsigned corrupt;
    uint64_t blocks_read;
};

/* The answer of a store that is opened for it. */
static struct answer ask(const char *text, lahar_order order, uint32_t threads, uint64_t limit)
{
    struct answer answer = {.count = 0};
    lahar_store *store = open_store(true);
    lahar_query *query = NULL;
    lahar_query_options options;
    const lahar_event *event = NULL;
    lahar_stat before = {.struct_size = sizeof before};
    lahar_stat after = {.struct_size = sizeof after};
    lahar_status status = LAHAR_OK;
    cr_assert_eq(lahar_stat_get(store, &before, NULL), LAHAR_OK);
    lahar_query_options_init(&options);
    options.order = order;
    options.threads = threads;
    options.limit = limit;
    options.count = LAHAR_COUNT_NONE;
    cr_assert_eq(lahar_query_open(store, text, strlen(text), &options, &query, NULL), LAHAR_OK);
    while ((status = lahar_query_next(query, &event, NULL)) != LAHAR_NOT_FOUND) {
        if (status == LAHAR_OK) {
            cr_assert_lt(answer.count, EVENTS);
            cr_assert_eq(event->value_count, 2);
            answer.ids[answer.count++] = event->id;
        } else {
            cr_assert_eq(status, LAHAR_CORRUPT);
            cr_assert_lt(answer.corrupt, EVENTS);
            answer.corrupt++;
        }
    }
    lahar_query_close(query);
    cr_assert_eq(lahar_stat_get(store, &after, NULL), LAHAR_OK);
    answer.blocks_read = after.cache_misses - before.cache_misses;
    close_store(store);
    return answer;
}

Test(result_ahead, gives_the_same_results_and_reads_each_block_once)
{
    for (int order = 0; order < 2; order++) {
        for (int is_rare = 0; is_rare < 2; is_rare++) {
            const char *text = is_rare ? "key:rare" : "key:often";
            const struct answer one = ask(text, (lahar_order)order, 1, 0);
            cr_assert_eq(one.count, is_rare ? EVENTS / 8 : EVENTS - EVENTS / 8);
            cr_assert_geq(one.blocks_read, EVENTS / 8);
            for (unsigned i = 0, k = 0; i < EVENTS; i++) {
                const unsigned at = order == LAHAR_ORDER_NEWEST ? EVENTS - 1 - i : i;
                if ((at % 8 == 7) == (is_rare != 0)) {
                    cr_assert_eq(one.ids[k++], ids[at]);
                }
            }
            for (uint32_t threads = 2; threads <= 5; threads++) {
                const struct answer many = ask(text, (lahar_order)order, threads, 0);
                cr_assert_eq(many.count, one.count);
                cr_assert_arr_eq(many.ids, one.ids, sizeof one.ids);
                cr_assert_eq(many.blocks_read, one.blocks_read, "%u threads", threads);
            }
        }
    }
}

Test(result_ahead, reads_no_block_that_no_wanted_result_lies_in)
{
    for (uint64_t limit = 1; limit <= 3; limit++) {
        const struct answer answer = ask("key:rare", LAHAR_ORDER_NEWEST, 4, limit);
        cr_assert_eq(answer.count, limit);
        cr_assert_eq(answer.blocks_read, limit);
    }
}

/* Flips a byte in the middle of every event file of the folder; returns how many there are. */
static unsigned damage(const char *path)
{
    unsigned count = 0;
    DIR *entries = opendir(path);
    cr_assert_not_null(entries);
    for (const struct dirent *entry = NULL; (entry = readdir(entries)) != NULL;) {
        char name[1024];
        struct stat info;
        uint8_t byte = 0;
        if (strstr(entry->d_name, ".events") == NULL) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        const int file = open(name, O_RDWR | O_CLOEXEC);
        cr_assert_eq(fstat(file, &info), 0);
        cr_assert_eq(pread(file, &byte, 1, info.st_size / 2), 1);
        byte ^= 1;
        cr_assert_eq(pwrite(file, &byte, 1, info.st_size / 2), 1);
        (void)close(file);
        count++;
    }
    (void)closedir(entries);
    return count;
}

Test(result_ahead, reports_a_damaged_block_once_and_gives_the_others)
{
    char path[SCRATCH_PATH_SIZE + 16];
    (void)snprintf(path, sizeof path, "%s/events", directory);
    const unsigned damaged = damage(path);
    const struct answer one = ask("*", LAHAR_ORDER_OLDEST, 1, 0);
    cr_assert_eq(one.corrupt, damaged);
    cr_assert_lt(one.count, EVENTS);
    cr_assert_gt(one.count, EVENTS / 2);
    const struct answer many = ask("*", LAHAR_ORDER_OLDEST, 4, 0);
    cr_assert_eq(many.corrupt, damaged);
    cr_assert_eq(many.count, one.count);
    cr_assert_arr_eq(many.ids, one.ids, sizeof one.ids);
}
