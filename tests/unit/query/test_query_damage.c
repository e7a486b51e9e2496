/* Queries over a store that has lost something, and without memory. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lahar/query.h"
#include "random_store.h"
#include "scratch.h"

/* --- memory ---------------------------------------------------------------------- */

/* Refuses in the thread of the test only, once left falls to zero; < 0: never. */
static _Thread_local long left = -1;

static void *failing_resize(void *context, void *memory, size_t size)
{
    (void)context;
    if (left == 0) {
        return NULL;
    }
    left -= left > 0;
    return realloc(memory, size);
}

static void *failing_allocate(void *context, size_t size)
{
    return failing_resize(context, NULL, size);
}

static void failing_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const lahar_allocator failing_allocator = {failing_allocate, failing_resize, failing_release,
                                                  NULL};

static void roll(struct random_store *random)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_rollover(random->store, LAHAR_WAIT_FOREVER, &error), LAHAR_OK, "%s",
                 error.message);
}

/* Runs the query to its end; the first failure ends it. */
static lahar_status run(lahar_store *store, const char *text, lahar_order order,
                        uint64_t *count_out, uint64_t *total_out)
{
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.order = order;
    *count_out = *total_out = 0;
    lahar_status status = lahar_query_open(store, text, strlen(text), &options, &query, &error);
    if (status != LAHAR_OK) {
        cr_assert_null(query);
        return status;
    }
    while ((status = lahar_query_next(query, &event, &error)) == LAHAR_OK) {
        ++*count_out;
    }
    if (status == LAHAR_NOT_FOUND) {
        lahar_query_result result = {.struct_size = sizeof result};
        status = lahar_query_result_get(query, &result, &error);
        *total_out = result.total;
    }
    lahar_query_close(query);
    return status;
}

Test(query_damage, reports_each_refused_allocation)
{
    static const char text[] = "(message:\"error\" OR caf* OR attr.status>100 OR uuid:8f3a0*) "
                               "NOT message~isk level!=WARN OR message:\"connection timeout\"";
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    scratch_create(directory);
    random_store_open_with(&random, directory, 3, &failing_allocator);
    random_store_append(&random, 60);
    roll(&random);
    random_store_append(&random, 30);
    for (int order = 0; order < 4; order += 2) {
        uint64_t expected = 0;
        uint64_t count = 0;
        uint64_t total = 0;
        cr_assert_eq(run(random.store, text, (lahar_order)order, &expected, &total), LAHAR_OK);
        cr_assert_gt(expected, 0);
        cr_assert_eq(total, expected);
        lahar_status status = LAHAR_NO_MEMORY;
        for (long i = 0; status != LAHAR_OK; i++) {
            left = i;
            status = run(random.store, text, (lahar_order)order, &count, &total);
            left = -1;
            cr_assert(status == LAHAR_OK || status == LAHAR_NO_MEMORY, "allocation %ld: %d", i,
                      (int)status);
        }
        cr_assert_eq(count, expected);
        cr_assert_eq(total, expected);
    }
    random_store_close(&random);
    scratch_remove(directory);
}

/* An event with an odd id is hidden. */
static bool is_even(void *context, const lahar_event *event)
{
    (void)context;
    return event->id % 2 == 0;
}

/* Asks on behind each failure: what is hidden stays hidden, and what is counted is what was shown.
 */
static void ask_with_refused_allocation(lahar_store *store, lahar_order order, long refused,
                                        uint64_t *count_out, bool *has_failed_out)
{
    static const char text[] = "NOT level!=WARN";
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.order = order;
    options.authorize = is_even;
    cr_assert_eq(lahar_query_open(store, text, strlen(text), &options, &query, &error), LAHAR_OK);
    *count_out = 0;
    *has_failed_out = false;
    left = refused;
    for (;;) {
        const lahar_status status = lahar_query_next(query, &event, &error);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        if (status != LAHAR_OK) {
            cr_assert_eq(status, LAHAR_NO_MEMORY);
            *has_failed_out = true;
            left = -1;
            continue;
        }
        cr_assert_eq(event->id % 2, 0, "event %llu is hidden", (unsigned long long)event->id);
        ++*count_out;
    }
    left = -1;
    lahar_query_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK);
    cr_assert_eq(result.total, *count_out);
    lahar_query_close(query);
}

Test(query_damage, hides_what_the_host_hides_behind_refused_allocations)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    scratch_create(directory);
    random_store_open_with(&random, directory, 4, &failing_allocator);
    random_store_append(&random, 60);
    roll(&random);
    random_store_append(&random, 30);
    for (int order = 0; order < 4; order++) {
        uint64_t expected = 0;
        uint64_t count = 0;
        bool has_failed = false;
        ask_with_refused_allocation(random.store, (lahar_order)order, -1, &expected, &has_failed);
        cr_assert_gt(expected, 0);
        cr_assert_not(has_failed);
        long refused = 0;
        do {
            ask_with_refused_allocation(random.store, (lahar_order)order, refused++, &count,
                                        &has_failed);
            cr_assert_eq(count, expected, "order %d, allocation %ld", order, refused - 1);
        } while (has_failed);
        cr_assert_gt(refused, 1);
    }
    random_store_close(&random);
    scratch_remove(directory);
}

/* --- files ------------------------------------------------------------------------ */

/* Calls change for every file of the store that ends in suffix; returns how many there are. */
static int each_file(const char *directory, const char *suffix, void (*change)(const char *path))
{
    char path[1024];
    int count = 0;
    DIR *open_directory = opendir(directory);
    cr_assert_not_null(open_directory);
    const struct dirent *entry = NULL;
    while ((entry = readdir(open_directory)) != NULL) {
        const size_t size = strlen(entry->d_name);
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        struct stat info;
        if (entry->d_name[0] != '.' && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            count += each_file(path, suffix, change);
        } else if (size > strlen(suffix) &&
                   strcmp(entry->d_name + size - strlen(suffix), suffix) == 0) {
            count++;
            change(path);
        }
    }
    (void)closedir(open_directory);
    return count;
}

static void delete_file(const char *path)
{
    cr_assert_eq(unlink(path), 0);
}

/* Flips bits in the middle, behind headers and before the end's tables. */
static void damage_middle(const char *path)
{
    const int file = open(path, O_RDWR);
    struct stat info;
    uint8_t bytes[16];
    cr_assert_geq(file, 0);
    cr_assert_eq(fstat(file, &info), 0);
    cr_assert_eq(pread(file, bytes, sizeof bytes, info.st_size / 2), (ssize_t)sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 0x55;
    }
    cr_assert_eq(pwrite(file, bytes, sizeof bytes, info.st_size / 2), (ssize_t)sizeof bytes);
    (void)close(file);
}

Test(query_damage, answers_from_the_file_when_the_shard_is_gone)
{
    static const char text[] = "message:error OR type:send";
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    uint64_t expected = 0;
    uint64_t count = 0;
    uint64_t total = 0;
    scratch_create(directory);
    random_store_open(&random, directory, 3);
    random_store_append(&random, 200);
    roll(&random);
    cr_assert_eq(run(random.store, text, LAHAR_ORDER_NEWEST, &expected, &total), LAHAR_OK);
    random_store_close(&random);
    cr_assert_eq(each_file(directory, ".shard", delete_file), 2);
    random_store_open(&random, directory, 3);
    for (int order = 0; order < 4; order++) {
        cr_assert_eq(run(random.store, text, (lahar_order)order, &count, &total), LAHAR_OK);
        cr_expect_eq(count, expected);
        cr_expect_eq(total, expected);
    }
    random_store_close(&random);
    scratch_remove(directory);
}

/* Expects the 50 events that are not in files. Returns how often damage was reported. */
static int ask_for_all_but_a_phrase(lahar_store *store, lahar_order order, bool may_end_early)
{
    /* A phrase, so that every candidate has to be read. */
    static const char text[] = "NOT message:\"no such phrase\"";
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.order = order;
    if (may_end_early) {
        options.count = LAHAR_COUNT_NONE;
        options.limit = 1000;
    }
    cr_assert_eq(lahar_query_open(store, text, sizeof text - 1, &options, &query, &error),
                 LAHAR_OK);
    int count = 0;
    int corrupt = 0;
    lahar_status status = LAHAR_OK;
    while ((status = lahar_query_next(query, &event, &error)) != LAHAR_NOT_FOUND) {
        cr_assert(status == LAHAR_OK || status == LAHAR_CORRUPT, "%s", error.message);
        count += status == LAHAR_OK;
        corrupt += status == LAHAR_CORRUPT;
        cr_assert_lt(corrupt, 10);
    }
    cr_expect_eq(count, 50, "order %d: %d events", (int)order, count);
    lahar_query_result result = {.struct_size = sizeof result};
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK);
    cr_expect(result.is_partial);
    lahar_query_close(query);
    return corrupt;
}

Test(query_damage, reports_a_bad_block_once_and_gives_the_rest)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    scratch_create(directory);
    random_store_open(&random, directory, 3);
    random_store_append(&random, 200);
    roll(&random);
    random_store_close(&random);
    cr_assert_eq(each_file(directory, ".events", damage_middle), 2);
    random_store_open(&random, directory, 3);
    random_store_append(&random, 50);
    for (int order = 0; order < 4; order++) {
        const int corrupt = ask_for_all_but_a_phrase(random.store, (lahar_order)order, false);
        cr_expect(corrupt >= 1, "order %d: no damage was reported", order);
        /* A walk that may end early opens files in parts, over which the blocks reach. */
        cr_expect_eq(ask_for_all_but_a_phrase(random.store, (lahar_order)order, true), corrupt);
    }
    random_store_close(&random);
    scratch_remove(directory);
}

/* The ids of the files that are gone. */
struct lost_file {
    char range[64]; /* "17 to 204" */
};

static unsigned lost_count;
static struct lost_file lost_files[8];

static void lose_file(const char *path)
{
    unsigned long long first = 0;
    unsigned long long last = 0;
    const char *name = strrchr(path, '/');
    cr_assert_eq(sscanf(name, "/%llu-%llu.", &first, &last), 2, "%s", path);
    (void)snprintf(lost_files[lost_count++].range, sizeof lost_files[0].range, "%llu to %llu",
                   first, last);
    delete_file(path);
}

/* Runs the query to its end; every lost file must be named once. Returns the number of events. */
static unsigned expect_every_loss(lahar_store *store, const char *text,
                                  const lahar_query_options *options)
{
    lahar_query *query = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {0};
    lahar_query_result result = {.struct_size = sizeof result};
    unsigned event_count = 0;
    unsigned named = 0;
    lahar_status status = LAHAR_OK;
    cr_assert_eq(lahar_query_open(store, text, strlen(text), options, &query, &error), LAHAR_OK);
    while ((status = lahar_query_next(query, &event, &error)) != LAHAR_NOT_FOUND) {
        if (status == LAHAR_OK) {
            event_count++;
            continue;
        }
        cr_assert_eq(status, LAHAR_CORRUPT, "%s", error.message);
        cr_assert_lt(named, lost_count);
        cr_expect_not_null(strstr(error.message, lost_files[named].range), "%s does not name %s",
                           error.message, lost_files[named].range);
        named++;
    }
    cr_expect_eq(named, lost_count, "%u of %u lost files are named", named, lost_count);
    cr_assert_eq(lahar_query_result_get(query, &result, &error), LAHAR_OK);
    cr_expect(result.is_partial);
    cr_expect_eq(result.shards_failed, lost_count);
    lahar_query_close(query);
    return event_count;
}

static int compare_lost(const void *a, const void *b)
{
    return (int)(strtoul(((const struct lost_file *)a)->range, NULL, 10) -
                 strtoul(((const struct lost_file *)b)->range, NULL, 10));
}

Test(query_damage, names_the_ids_of_a_file_that_is_gone)
{
    char directory[SCRATCH_PATH_SIZE];
    struct random_store random;
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    lahar_facet facet = {.struct_size = sizeof facet};
    scratch_create(directory);
    random_store_open(&random, directory, 4);
    random_store_append(&random, 100);
    roll(&random);
    random_store_close(&random);
    lost_count = 0;
    cr_assert_eq(each_file(directory, ".events", lose_file), 2);
    qsort(lost_files, lost_count, sizeof *lost_files, compare_lost);
    random_store_open(&random, directory, 4);
    random_store_append(&random, 50);
    roll(&random);
    random_store_append(&random, 25);
    lahar_query_options_init(&options);
    for (int order = 0; order < 4; order++) {
        options.order = (lahar_order)order;
        cr_expect_eq(expect_every_loss(random.store, "*", &options), 75);
        cr_expect_eq(expect_every_loss(random.store, "NOT message:\"no such phrase\"", &options),
                     75);
    }
    options.count = LAHAR_COUNT_ONLY;
    cr_expect_eq(expect_every_loss(random.store, "*", &options), 0);
    /* Nor do groups pass it over. */
    cr_assert_eq(lahar_query_open(random.store, "*", 1, NULL, &query, NULL), LAHAR_OK);
    cr_assert_eq(lahar_query_facet(query, "stream", 0, &facet, NULL), LAHAR_OK);
    cr_expect_eq(facet.event_count, 75);
    cr_assert_eq(lahar_query_result_get(query, &result, NULL), LAHAR_OK);
    cr_expect(result.is_partial);
    lahar_query_close(query);
    /* A query that cannot have found anything there is whole. */
    cr_assert_eq(lahar_query_open(random.store, "id>110", 6, NULL, &query, NULL), LAHAR_OK);
    cr_assert_eq(lahar_query_result_get(query, &result, NULL), LAHAR_OK);
    cr_expect_not(result.is_partial);
    lahar_query_close(query);
    random_store_close(&random);
    scratch_remove(directory);
}
