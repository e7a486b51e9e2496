/* lineage_bench: how long the lineage of one FlowFile takes among many events.
 *
 *   lineage_bench DIRECTORY [EVENTS [keep]]
 *
 * Builds a store of W1 events (1,000,000 unless told) with lineages planted in it: a family of four
 * FlowFiles (received, forked, joined, sent, dropped) every 100,000 events, and one FlowFile with
 * 10,000 events, one among 20. DIRECTORY must not exist; it is removed afterwards, unless `keep` is
 * given: then a store that is there is measured again. All is rolled over but for 20,000 events,
 * which stay in memory until the cold questions.
 *
 * Measured: ordinary FlowFiles of W1 (six events among some thousands), families with all
 * generations in both directions, the newest FlowFile, which is in memory, and the one with 10,000
 * events. Warm: asked before. Cold: after reopening with the files dropped from the page cache, to
 * read only, so that files which the load has left to be joined are not joined meanwhile;
 * the bound counts the blocks of events that were read, those in memory by their size. A line
 * for each target; exit status 1 when one is not met. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/text.h"
#include "bench/workload_w1.h"
#include "lahar/lahar.h"

enum {
    SEED = 7,
    BATCH = 1000, /* events of W1 */
    TAIL_EVENTS = 20000,
    FAMILY_EVERY = 100000,
    FAMILY_FLOWFILES = 4,
    FAMILY_EVENTS = 8,
    BUSY_EVENTS = 10000,
    BUSY_EVERY = 20,
    UUID_SIZE = 36,
    WARM_ASKED = 200,
    COLD_ASKED = 40,
    NS_PER_MS = 1000000
};

struct bench {
    const char *directory;
    lahar_store *store;
    lahar_provenance *provenance;
    struct workload_w1 *workload;
    uint64_t event_count; /* of W1 */
    bool has_failed;
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of all threads: what the machine does besides does not count. */
static double processor_ms(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

static _Noreturn void die(const char *what, const lahar_error *error)
{
    (void)fprintf(stderr, "lineage_bench: %s: %s\n", what, error == NULL ? "" : error->message);
    exit(3);
}

static void check(lahar_status status, const char *what, const lahar_error *error)
{
    if (status != LAHAR_OK) {
        die(what, error);
    }
}

/* --- the store ---------------------------------------------------------------------------------
 */

static void open_store(struct bench *bench, bool is_read_only)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_options options;
    lahar_options_init(&options);
    options.read_only = is_read_only;
    check(lahar_store_open(bench->directory, &options, LAHAR_WAIT_FOREVER, &bench->store, &error),
          "open", &error);
    check(lahar_provenance_open(bench->store, NULL, &bench->provenance, &error), "open", &error);
}

static void close_store(struct bench *bench)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_provenance_close(bench->provenance);
    check(lahar_store_close(bench->store, LAHAR_WAIT_FOREVER, &error), "close", &error);
}

/* Calls visit for every file of a directory and those below it. */
static void each_file(const char *path, void (*visit)(const char *path, bool is_directory))
{
    DIR *directory = opendir(path);
    struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char name[4096];
        struct stat stat;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name) >= (int)sizeof name ||
            lstat(name, &stat) != 0) {
            continue;
        }
        if (S_ISDIR(stat.st_mode)) {
            each_file(name, visit);
        }
        visit(name, S_ISDIR(stat.st_mode));
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
}

static void drop_from_cache(const char *path, bool is_directory)
{
    const int file = is_directory ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        (void)fdatasync(file);
        (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(file);
    }
}

static void remove_file(const char *path, bool is_directory)
{
    (void)(is_directory ? rmdir(path) : unlink(path));
}

/* --- events ------------------------------------------------------------------------------------
 */

/* FlowFiles that the bench plants: member of a family, or the busy one (family UINT32_MAX). */
static void name_flowfile(uint32_t family, uint32_t member, char name_out[UUID_SIZE + 1])
{
    (void)snprintf(name_out, UUID_SIZE + 1, "fa417000-0000-4000-8000-%08" PRIx32 "%04" PRIx32,
                   family, member);
}

static lahar_prov_event planted_event(lahar_prov_type type, const char *name, int64_t time_ns)
{
    lahar_prov_event event;
    lahar_prov_event_init(&event);
    event.type = type;
    event.time_ns = time_ns;
    event.uuid = (lahar_bytes){name, UUID_SIZE};
    event.component = (lahar_bytes){"planted", 7};
    event.component_type = (lahar_bytes){"LineageBench", 12};
    event.transit_uri = (lahar_bytes){"https://peer.example.net/in", 27};
    event.has_size = true;
    event.size = 1000;
    return event;
}

/* a forks into b and c, which are joined into d. */
static void put_family(struct bench *bench, uint32_t family, int64_t time_ns)
{
    static const struct {
        lahar_prov_type type;
        uint32_t member;
    } plan[FAMILY_EVENTS] = {{LAHAR_PROV_RECEIVE, 0},
                             {LAHAR_PROV_FORK, 0},
                             {LAHAR_PROV_DROP, 0},
                             {LAHAR_PROV_ATTRIBUTES_MODIFIED, 1},
                             {LAHAR_PROV_CONTENT_MODIFIED, 2},
                             {LAHAR_PROV_JOIN, 3},
                             {LAHAR_PROV_SEND, 3},
                             {LAHAR_PROV_DROP, 3}};
    char names[FAMILY_FLOWFILES][UUID_SIZE + 1];
    lahar_bytes uuids[FAMILY_FLOWFILES];
    lahar_prov_event events[FAMILY_EVENTS];
    lahar_error error = {.status = LAHAR_OK};
    for (uint32_t i = 0; i < FAMILY_FLOWFILES; i++) {
        name_flowfile(family, i, names[i]);
        uuids[i] = (lahar_bytes){names[i], UUID_SIZE};
    }
    for (int i = 0; i < FAMILY_EVENTS; i++) {
        events[i] = planted_event(plan[i].type, names[plan[i].member], time_ns + i);
        if (plan[i].type == LAHAR_PROV_FORK) {
            events[i].parents = uuids;
            events[i].parent_count = 1;
            events[i].children = uuids + 1;
            events[i].child_count = 2;
        } else if (plan[i].type == LAHAR_PROV_JOIN) {
            events[i].parents = uuids + 1;
            events[i].parent_count = 2;
            events[i].children = uuids + 3;
            events[i].child_count = 1;
        }
    }
    check(lahar_prov_append(bench->provenance, events, FAMILY_EVENTS, NULL, NULL, &error), "append",
          &error);
}

/* Memory for the strings of a batch. */
struct strings {
    char component[UUID_SIZE];
    char uuid[UUID_SIZE];
    char text[2048]; /* the rest, which the generator overwrites */
    size_t used;
    lahar_pair pairs[WORKLOAD_W1_UPDATED + WORKLOAD_W1_PREVIOUS_MAX];
};

static lahar_bytes keep(struct strings *strings, lahar_bytes bytes)
{
    char *to = strings->text + strings->used;
    if (bytes.size > sizeof strings->text - strings->used) {
        die("an event of W1 is longer than its memory", NULL);
    }
    memcpy(to, bytes.data, bytes.size);
    strings->used += bytes.size;
    return (lahar_bytes){to, bytes.size};
}

static const lahar_pair *keep_pairs(struct strings *strings, lahar_pair *to,
                                    const lahar_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = pairs[i];
        to[i].key = keep(strings, pairs[i].key);
        to[i].value = keep(strings, pairs[i].value);
    }
    return to;
}

static lahar_prov_event w1_event(struct bench *bench, uint64_t index, struct strings *strings)
{
    struct workload_w1_event from;
    lahar_prov_event event;
    workload_w1_event(bench->workload, index, &from);
    (void)text_uuid(strings->component, from.component.bytes);
    (void)text_uuid(strings->uuid, from.uuid.bytes);
    strings->used = 0;
    event = planted_event(lahar_prov_type_find(from.type), strings->uuid, from.time_ms * NS_PER_MS);
    event.component = (lahar_bytes){strings->component, UUID_SIZE};
    event.component_type = keep(strings, from.component_type);
    /* Every type as if it needed no more than its own FlowFile. */
    if (event.type == LAHAR_PROV_ROUTE) {
        event.relationship = (lahar_bytes){"success", 7};
    } else if (event.type == LAHAR_PROV_ADDINFO) {
        event.alternate_id = (lahar_bytes){"ns:1", 4};
    } else if (event.type == LAHAR_PROV_FORK || event.type == LAHAR_PROV_JOIN ||
               event.type == LAHAR_PROV_CLONE || event.type == LAHAR_PROV_REPLAY) {
        event.type = LAHAR_PROV_DOWNLOAD;
    }
    if (from.transit_uri.size != 0) {
        event.transit_uri = keep(strings, from.transit_uri);
    }
    event.size = from.size;
    event.lineage_start_ns = from.lineage_start_ms * NS_PER_MS;
    event.claim = (lahar_claim){.container = keep(strings, from.claim_container),
                                .section = keep(strings, from.claim_section),
                                .id = keep(strings, from.claim_id),
                                .has_offset = true,
                                .has_size = true,
                                .offset = from.claim_offset,
                                .size = from.size};
    event.updated = keep_pairs(strings, strings->pairs, from.updated, WORKLOAD_W1_UPDATED);
    event.updated_count = WORKLOAD_W1_UPDATED;
    event.previous = keep_pairs(strings, strings->pairs + WORKLOAD_W1_UPDATED, from.previous,
                                from.previous_count);
    event.previous_count = from.previous_count;
    return event;
}

static void put_busy(struct bench *bench, const char *name, uint64_t number, int64_t time_ns)
{
    lahar_error error = {.status = LAHAR_OK};
    const lahar_prov_event event =
        planted_event(number == 0 ? LAHAR_PROV_CREATE : LAHAR_PROV_DOWNLOAD, name, time_ns);
    check(lahar_prov_append(bench->provenance, &event, 1, NULL, NULL, &error), "append", &error);
}

static void build(struct bench *bench)
{
    static struct strings strings[BATCH];
    static lahar_prov_event events[BATCH];
    char busy[UUID_SIZE + 1];
    uint64_t busy_count = 0;
    lahar_error error = {.status = LAHAR_OK};
    const uint64_t began_ns = clock_ns();
    name_flowfile(UINT32_MAX, 0, busy);
    for (uint64_t done = 0; done < bench->event_count; done += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++) {
            events[i] = w1_event(bench, done + i, &strings[i]);
        }
        if (done % FAMILY_EVERY == 0) {
            put_family(bench, (uint32_t)(done / FAMILY_EVERY), events[0].time_ns);
        }
        if (done < bench->event_count / 2) {
            check(lahar_prov_append(bench->provenance, events, BATCH, NULL, NULL, &error), "append",
                  &error);
            continue;
        }
        for (uint64_t i = 0; i < BATCH; i += BUSY_EVERY) {
            if (busy_count < BUSY_EVENTS) {
                put_busy(bench, busy, busy_count++, events[i].time_ns);
            }
            check(lahar_prov_append(bench->provenance, &events[i], BUSY_EVERY, NULL, NULL, &error),
                  "append", &error);
        }
    }
    check(lahar_rollover(bench->store, LAHAR_WAIT_FOREVER, &error), "rollover", &error);
    for (uint64_t done = 0; done < TAIL_EVENTS; done += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++) {
            events[i] = w1_event(bench, bench->event_count + done + i, &strings[i]);
        }
        check(lahar_prov_append(bench->provenance, events, BATCH, NULL, NULL, &error), "append",
              &error);
    }
    printf("built %" PRIu64 " events of W1 and %" PRIu64 " others in %.1f s\n", bench->event_count,
           busy_count + FAMILY_EVENTS * (bench->event_count + FAMILY_EVERY - 1) / FAMILY_EVERY,
           (double)(clock_ns() - began_ns) / 1e9);
}

/* --- measuring ---------------------------------------------------------------------------------
 */

/* Time in ms of one lineage, whose event count is told; generations: of all. */
static double ask(struct bench *bench, const char *name, bool generations, size_t *event_count_out)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_lineage_options options;
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage *lineage = NULL;
    lahar_lineage_options_init(&options);
    options.uuid = (lahar_bytes){name, UUID_SIZE};
    options.ancestor_depth = options.descendant_depth = generations ? LAHAR_LINEAGE_ALL : 0;
    const uint64_t began_ns = clock_ns();
    check(lahar_lineage_start(bench->provenance, &options, &lineage, &error), "start", &error);
    check(lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, &error), "lineage", &error);
    const double took_ms = (double)(clock_ns() - began_ns) / NS_PER_MS;
    lahar_lineage_graph_get(lineage, &graph);
    *event_count_out = graph.event_count;
    lahar_lineage_close(lineage);
    return took_ms;
}

/* Blocks of event files that were read since the opening. */
static uint64_t blocks_read(struct bench *bench)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    lahar_error error = {.status = LAHAR_OK};
    check(lahar_stat_get(bench->store, &stat, &error), "stat", &error);
    return stat.cache_misses;
}

/* What lies in memory, as blocks of 1 MiB: it is read through once after opening. */
static uint64_t blocks_in_memory(struct bench *bench)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    lahar_error error = {.status = LAHAR_OK};
    check(lahar_stat_get(bench->store, &stat, &error), "stat", &error);
    return stat.resident_bytes >> 20;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void judge(struct bench *bench, const char *target, double bound_ms, double figure_ms)
{
    const bool is_met = figure_ms <= bound_ms;
    printf("target %s <= %.3f ms: figure %.3f ms (%s)\n", target, bound_ms, figure_ms,
           is_met ? "met" : "not met");
    bench->has_failed = bench->has_failed || !is_met;
}

/* An ordinary FlowFile: that of event number index. */
static void name_w1(struct bench *bench, uint64_t index, char name_out[UUID_SIZE + 1])
{
    struct workload_w1_event event;
    workload_w1_event(bench->workload, index, &event);
    (void)text_uuid(name_out, event.uuid.bytes);
    name_out[UUID_SIZE] = '\0';
}

/* Which FlowFile is asked for the n-th time: families, or ordinary ones all over the store. */
static void choose(struct bench *bench, bool is_family, uint64_t n, char name_out[UUID_SIZE + 1])
{
    const uint64_t families = (bench->event_count + FAMILY_EVERY - 1) / FAMILY_EVERY;
    if (is_family) {
        name_flowfile((uint32_t)(n % families), (uint32_t)(n % FAMILY_FLOWFILES), name_out);
    } else {
        name_w1(bench, n * UINT64_C(0x9e3779b97f4a7c15) % bench->event_count, name_out);
    }
}

static void expect_events(bool is_family, const char *name, size_t count)
{
    if (is_family ? count + 1 < FAMILY_EVENTS || count > FAMILY_EVENTS
                  : count == 0 || count > WORKLOAD_W1_STAGES) {
        (void)fprintf(stderr, "lineage_bench: %zu events of FlowFile %s are wrong\n", count, name);
        exit(1);
    }
}

static void measure_warm(struct bench *bench, bool is_family, const char *target)
{
    static double took_ms[WARM_ASKED];
    size_t count = 0;
    const double used_ms = processor_ms();
    for (uint64_t n = 0; n < WARM_ASKED; n++) {
        char name[UUID_SIZE + 1];
        choose(bench, is_family, n, name);
        (void)ask(bench, name, is_family, &count);
        took_ms[n] = ask(bench, name, is_family, &count);
        expect_events(is_family, name, count);
    }
    qsort(took_ms, WARM_ASKED, sizeof took_ms[0], compare);
    printf("%s: median %.3f ms, 99%% %.3f ms, most %.3f ms; %.3f ms of processor time each\n",
           target, took_ms[WARM_ASKED / 2], took_ms[WARM_ASKED * 99 / 100 - 1],
           took_ms[WARM_ASKED - 1], (processor_ms() - used_ms) / WARM_ASKED / 2);
    judge(bench, target, 5, took_ms[WARM_ASKED * 99 / 100 - 1]);
}

/* What is above the bound of the blocks read is shown as if 5 ms were the bound of all. */
static void measure_cold(struct bench *bench, bool is_family, const char *target)
{
    double above_ms[COLD_ASKED];
    for (uint64_t n = 0; n < COLD_ASKED; n++) {
        char name[UUID_SIZE + 1];
        size_t count = 0;
        choose(bench, is_family, n * 7919 + 3, name);
        close_store(bench);
        each_file(bench->directory, drop_from_cache);
        open_store(bench, true);
        const uint64_t before = blocks_read(bench);
        const double used_ms = processor_ms();
        const double took_ms = ask(bench, name, is_family, &count);
        const uint64_t blocks = blocks_read(bench) - before + blocks_in_memory(bench);
        expect_events(is_family, name, count);
        printf("%s: %.3f ms, %.3f ms of processor time, %" PRIu64 " blocks\n", target, took_ms,
               processor_ms() - used_ms, blocks);
        above_ms[n] = took_ms - 0.5 * (double)blocks;
    }
    qsort(above_ms, COLD_ASKED, sizeof above_ms[0], compare);
    printf("%s: median %.3f ms, 95%% %.3f ms, most %.3f ms\n", target, above_ms[COLD_ASKED / 2],
           above_ms[COLD_ASKED * 95 / 100 - 1], above_ms[COLD_ASKED - 1]);
    judge(bench, target, 5, above_ms[COLD_ASKED * 95 / 100 - 1]);
}

static void measure_busy(struct bench *bench)
{
    char name[UUID_SIZE + 1];
    size_t count = 0;
    name_flowfile(UINT32_MAX, 0, name);
    close_store(bench);
    each_file(bench->directory, drop_from_cache);
    open_store(bench, true);
    const uint64_t before = blocks_read(bench);
    double used_ms = processor_ms();
    const double cold_ms = ask(bench, name, false, &count);
    const double cold_used_ms = processor_ms() - used_ms;
    const uint64_t blocks = blocks_read(bench) - before + blocks_in_memory(bench);
    double warm_ms = cold_ms;
    used_ms = processor_ms();
    for (int i = 0; i < 5; i++) {
        const double took_ms = ask(bench, name, false, &count);
        warm_ms = took_ms < warm_ms ? took_ms : warm_ms;
    }
    if (count != BUSY_EVENTS) {
        printf("the busy FlowFile has %zu events: the store is too small for it\n", count);
    }
    printf("busy: %zu events; cold %.3f ms, %.3f ms of processor time, %" PRIu64
           " blocks; warm %.3f ms, %.3f ms of processor time\n",
           count, cold_ms, cold_used_ms, blocks, warm_ms, (processor_ms() - used_ms) / 5);
    judge(bench, "10,000 events, warm", 200, warm_ms);
    judge(bench, "10,000 events, cold", 200 + 0.5 * (double)blocks, cold_ms);
}

/* The newest FlowFile, of the store that has just been opened to be written. */
static void measure_first(struct bench *bench)
{
    char newest[UUID_SIZE + 1];
    size_t found = 0;
    name_w1(bench, bench->event_count + TAIL_EVENTS - 1, newest);
    const uint64_t before = blocks_read(bench);
    const double first_ms = ask(bench, newest, false, &found);
    const uint64_t blocks = blocks_read(bench) - before + blocks_in_memory(bench);
    printf("first question: %.3f ms, %" PRIu64 " blocks\n", first_ms, blocks);
    judge(bench, "first question, less 0.5 ms a block", 5, first_ms - 0.5 * (double)blocks);
}

/* FlowFiles whose events are in memory only. */
static void measure_resident(struct bench *bench)
{
    enum {
        FAMILIES = 200
    };
    double took_ms[FAMILIES];
    for (uint32_t i = 0; i < FAMILIES; i++) {
        char name[UUID_SIZE + 1];
        size_t count = 0;
        put_family(bench, UINT32_MAX - 1 - i, 0);
        name_flowfile(UINT32_MAX - 1 - i, 0, name);
        took_ms[i] = ask(bench, name, true, &count);
    }
    qsort(took_ms, FAMILIES, sizeof took_ms[0], compare);
    printf("just appended, warm: median %.3f ms, 99%% %.3f ms, most %.3f ms\n",
           took_ms[FAMILIES / 2], took_ms[FAMILIES * 99 / 100 - 1], took_ms[FAMILIES - 1]);
    judge(bench, "just appended, warm", 5, took_ms[FAMILIES * 99 / 100 - 1]);
}

int main(int argument_count, char **arguments)
{
    struct bench bench = {.event_count = 1000000};
    lahar_error error = {.status = LAHAR_OK};
    struct stat stat;
    const bool keeps = argument_count > 3 && strcmp(arguments[3], "keep") == 0;
    if (argument_count < 2) {
        (void)fprintf(stderr, "usage: lineage_bench DIRECTORY [EVENTS [keep]]\n");
        return 2;
    }
    bench.directory = arguments[1];
    if (argument_count > 2) {
        bench.event_count = strtoull(arguments[2], NULL, 10) / BATCH * BATCH;
    }
    bench.workload = workload_w1_create(SEED);
    const bool is_there = lstat(bench.directory, &stat) == 0;
    if (bench.workload == NULL || bench.event_count == 0 || (is_there && !keeps)) {
        die(is_there ? "the directory is there already" : "no events", NULL);
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    open_store(&bench, false);
    if (!is_there) {
        build(&bench);
    }
    measure_first(&bench);
    measure_warm(&bench, false, "one FlowFile, warm");
    measure_warm(&bench, true, "a family, warm");
    measure_resident(&bench);
    check(lahar_rollover(bench.store, LAHAR_WAIT_FOREVER, &error), "rollover", &error);
    measure_cold(&bench, false, "one FlowFile, cold, less 0.5 ms a block");
    measure_cold(&bench, true, "a family, cold, less 0.5 ms a block");
    measure_busy(&bench);
    close_store(&bench);
    workload_w1_destroy(bench.workload);
    if (!keeps) {
        each_file(bench.directory, remove_file);
        (void)rmdir(bench.directory);
    }
    return bench.has_failed ? 1 : 0;
}
