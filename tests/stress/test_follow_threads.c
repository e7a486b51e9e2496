/* Two followers' workers beside writers of their files and beside what changes and shows sources:
 * every line is one event, and nothing is read that another thread writes. Lines come one by one
 * and the directories are looked at all the time, so that looks meet files that are being read;
 * and files are rotated, so that looks meet new files beside old ones that are being read. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "scratch.h"

enum {
    SOURCES = 3,
    FILES = 8, /* of a source */
    ROUNDS = 40,
    LINES = 20,         /* of a file in a round */
    ROTATED_ROUNDS = 5, /* each is in a file of its own */
    TOTAL = SOURCES * FILES * ROUNDS * LINES
};

struct shared {
    char directory[SCRATCH_PATH_SIZE];
    lahar_store *store;
    lahar_follow *follow;
    atomic_bool is_over;
    _Atomic unsigned passed;
    _Atomic unsigned failed;
};

static void expect(struct shared *shared, bool condition, const char *what)
{
    (void)atomic_fetch_add(condition ? &shared->passed : &shared->failed, 1);
    if (!condition) {
        printf("FAIL %s\n", what);
    }
}

static void name_of(unsigned source, char name[16])
{
    (void)snprintf(name, 16, "source%u", source);
}

/* Formats that are read line by line, line by line in pieces, and by joined lines. */
static bool create_source(struct shared *shared, unsigned number)
{
    static const lahar_format formats[SOURCES] = {LAHAR_FORMAT_LINE, LAHAR_FORMAT_JSON,
                                                  LAHAR_FORMAT_LOGFMT};
    char name[16];
    char path[SCRATCH_PATH_SIZE + 32];
    lahar_source_spec spec;
    name_of(number, name);
    (void)snprintf(path, sizeof path, "%s/%s", shared->directory, name);
    lahar_source_spec_init(&spec);
    spec.name = name;
    spec.path = path;
    spec.format = formats[number];
    spec.max_threads = 2;
    spec.poll_directory_watch_events_backoff_init = 1;
    spec.poll_directory_watch_events_backoff_max = 2;
    return mkdir(path, 0777) == 0 && lahar_source_create(shared->store, &spec, NULL) == LAHAR_OK;
}

/* The lines of one round, each written when it is there. */
static bool write_round(const char *path, unsigned source)
{
    FILE *out = fopen(path, "a");
    bool ok = out != NULL;
    for (unsigned k = 0; ok && k < LINES; k++) {
        ok = fprintf(out, source == 1 ? "{\"line\":\"%u\"}\n" : "line=%u\n", k) > 0 &&
             fflush(out) == 0 && usleep(100) == 0;
    }
    return ok && fclose(out) == 0;
}

static void *write_files(void *context)
{
    struct shared *shared = context;
    for (unsigned i = 0; i < ROUNDS * SOURCES * FILES; i++) {
        const unsigned source = i % SOURCES;
        const unsigned file = i / SOURCES % FILES;
        const unsigned round = i / SOURCES / FILES;
        char path[SCRATCH_PATH_SIZE + 64];
        char rotated[SCRATCH_PATH_SIZE + 96];
        (void)snprintf(path, sizeof path, "%s/source%u/file%u.log", shared->directory, source,
                       file);
        (void)snprintf(rotated, sizeof rotated, "%s.%u", path, round / ROTATED_ROUNDS);
        expect(shared, write_round(path, source), "write");
        if (round % ROTATED_ROUNDS == ROTATED_ROUNDS - 1) {
            expect(shared, rename(path, rotated) == 0, "rotate");
        }
    }
    return NULL;
}

static lahar_status count_file(void *context, const lahar_source_file *file)
{
    unsigned *count = context;
    *count += file->offset <= 1u << 30;
    return LAHAR_OK;
}

/* Looks, pauses and goes on. */
static void *disturb(void *context)
{
    struct shared *shared = context;
    for (unsigned i = 0; !atomic_load(&shared->is_over); i++) {
        char name[16];
        unsigned count = 0;
        lahar_follow_stat stat = {.struct_size = sizeof stat};
        name_of(i % SOURCES, name);
        lahar_follow_stat_get(shared->follow, &stat);
        expect(shared,
               lahar_source_show(shared->store, name, count_file, &count, NULL) == LAHAR_OK &&
                   count <= FILES * (ROUNDS / ROTATED_ROUNDS + 1),
               "show");
        if (i % 8 == 0) {
            expect(shared, lahar_source_pause(shared->store, name, true, NULL) == LAHAR_OK,
                   "pause");
            expect(shared, lahar_source_pause(shared->store, name, false, NULL) == LAHAR_OK,
                   "resume");
        }
        (void)usleep(5000);
    }
    return NULL;
}

static void *run_follow(void *context)
{
    struct shared *shared = context;
    expect(shared, lahar_follow_run(shared->follow, NULL) == LAHAR_OK, "run");
    return NULL;
}

static uint64_t event_count(struct shared *shared)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < SOURCES; i++) {
        char name[16];
        uint32_t stream;
        lahar_stream_info info;
        name_of(i, name);
        if (lahar_stream_find(shared->store, name, &stream, NULL) == LAHAR_OK &&
            lahar_stream_info_get(shared->store, stream, &info, NULL) == LAHAR_OK) {
            count += info.event_count;
        }
    }
    return count;
}

static bool prepare(struct shared *shared)
{
    char path[SCRATCH_PATH_SIZE + 16];
    lahar_options options;
    lahar_follow_options follow_options;
    lahar_options_init(&options);
    lahar_follow_options_init(&follow_options);
    (void)snprintf(path, sizeof path, "%s/store", shared->directory);
    bool ok =
        lahar_store_open(path, &options, LAHAR_WAIT_FOREVER, &shared->store, NULL) == LAHAR_OK;
    for (unsigned i = 0; i < SOURCES && ok; i++) {
        ok = create_source(shared, i);
    }
    return ok &&
           lahar_follow_open(shared->store, &follow_options, &shared->follow, NULL) == LAHAR_OK;
}

int main(void)
{
    struct shared shared = {0};
    pthread_t follower;
    pthread_t writer;
    pthread_t disturber;
    scratch_create(shared.directory);
    if (!prepare(&shared)) {
        printf("0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    if (pthread_create(&follower, NULL, run_follow, &shared) != 0 ||
        pthread_create(&writer, NULL, write_files, &shared) != 0 ||
        pthread_create(&disturber, NULL, disturb, &shared) != 0) {
        abort();
    }
    (void)pthread_join(writer, NULL);
    atomic_store(&shared.is_over, true);
    (void)pthread_join(disturber, NULL);
    for (unsigned i = 0; i < 1200 && event_count(&shared) < TOTAL; i++) {
        (void)usleep(50000);
    }
    lahar_follow_stop(shared.follow);
    (void)pthread_join(follower, NULL);
    lahar_follow_close(shared.follow);
    expect(&shared, event_count(&shared) == TOTAL, "every line is one event");
    expect(&shared, lahar_store_close(shared.store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK, "close");
    scratch_remove(shared.directory);
    printf("%u passed, %u failed, 0 skipped\n", atomic_load(&shared.passed),
           atomic_load(&shared.failed));
    return atomic_load(&shared.failed) == 0 ? 0 : 1;
}
