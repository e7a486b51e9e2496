/* follow_bench: what following files costs.
 *
 *   follow_bench DIRECTORY parse [MIB]            read, split and parse, with and without the store
 *   follow_bench DIRECTORY idle FILES [SECONDS]   processor time while nothing is written
 *   follow_bench DIRECTORY latency [FILES [LINES_A_SECOND [SECONDS]]]
 *
 * DIRECTORY is created and must not exist. Rates are of processor time, all threads together, so
 * that they hold beside other programs. parse reads lines of W2 as LineAsString, JSONEachRow and
 * CSVWithNames: by a peek, which hands each event over and appends none, and by a follower.
 * latency writes lines that say when they were written, and looks for them by scanning. One JSON
 * line a figure. The directory is left behind. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/histogram.h"
#include "bench/workload_w2.h"
#include "lahar/lahar.h"

enum {
    PATH_SIZE = 4096,
    FILES_MAX = 100000,
    PEEKS = 15
};

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t processor_ns(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return 1000 * (1000000 * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
}

/* Of the calling thread alone: a peek has no other, and the store's have work of their own. */
static uint64_t thread_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static void sleep_ms(uint64_t ms)
{
    const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}

static bool complain(const lahar_error *error)
{
    fprintf(stderr, "follow_bench: %s\n", error->message);
    return false;
}

struct bench {
    char directory[PATH_SIZE / 2];
    char files[PATH_SIZE]; /* the directory that is followed */
    lahar_store *store;
    lahar_follow *follow;
    pthread_t thread;
};

static bool open_store(struct bench *bench)
{
    char path[PATH_SIZE];
    lahar_error error = {0};
    lahar_options options;
    lahar_options_init(&options);
    (void)snprintf(path, sizeof path, "%s/store", bench->directory);
    return lahar_store_open(path, &options, LAHAR_WAIT_FOREVER, &bench->store, &error) ==
               LAHAR_OK ||
           complain(&error);
}

static bool create_source(struct bench *bench, const char *name, const char *path,
                          lahar_format format)
{
    lahar_error error = {0};
    lahar_source_spec spec;
    lahar_source_spec_init(&spec);
    spec.name = name;
    spec.path = path;
    spec.format = format;
    return lahar_source_create(bench->store, &spec, &error) == LAHAR_OK || complain(&error);
}

/* --- parse ------------------------------------------------------------------------------ */

static bool write_lines(const char *path, lahar_format format, uint64_t size)
{
    struct workload_w2 workload;
    char text[WORKLOAD_W2_LINE_SIZE_MAX];
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "follow_bench: %s: %s\n", path, strerror(errno));
        return false;
    }
    workload_w2_init(&workload, 1);
    uint64_t written = 0;
    if (format == LAHAR_FORMAT_CSV) {
        written = (uint64_t)fprintf(file, "%s", WORKLOAD_W2_CSV_HEADER);
    }
    for (uint64_t i = 0; written < size; i++) {
        struct workload_w2_line line;
        workload_w2_line(&workload, i, &line);
        const size_t count = format == LAHAR_FORMAT_CSV    ? workload_w2_csv(&line, text)
                             : format == LAHAR_FORMAT_JSON ? workload_w2_json(&line, text)
                                                           : workload_w2_text(&line, text);
        (void)fwrite(text, 1, count, file);
        written += count;
    }
    return fclose(file) == 0;
}

static lahar_status count_event(void *context, const lahar_event *event)
{
    uint64_t *count = context;
    (*count)++;
    return event->value_count == 0 ? LAHAR_CORRUPT : LAHAR_OK;
}

static void report_rate(const char *what, const char *format, uint64_t size, uint64_t count,
                        uint64_t busy_ns)
{
    (void)printf("{\"bench\":\"follow\",\"what\":\"%s\",\"format\":\"%s\",\"bytes\":%" PRIu64
                 ",\"records\":%" PRIu64 ",\"processor_s\":%.3f,\"mb_a_second_a_core\":%.1f}\n",
                 what, format, size, count, (double)busy_ns / 1e9,
                 (double)size * 1e3 / (double)busy_ns);
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* Peeks again and again: where the other half of the processor's core belongs to somebody else, his
 * work takes up to four tenths of a core for some tenths of a second. The median is reported. */
static bool measure_peeks(struct bench *bench, const char *name, uint64_t size)
{
    uint64_t took_ns[PEEKS];
    lahar_error error = {0};
    uint64_t count = 0;
    for (int i = 0; i < PEEKS; i++) {
        const uint64_t before_ns = thread_ns();
        count = 0;
        if (lahar_source_peek(bench->store, name, 0, false, count_event, &count, &error) !=
            LAHAR_OK) {
            return complain(&error);
        }
        took_ns[i] = thread_ns() - before_ns;
    }
    qsort(took_ns, PEEKS, sizeof took_ns[0], compare_times);
    report_rate("parse, slowest", name, size, count, took_ns[PEEKS - 1]);
    report_rate("parse, fastest", name, size, count, took_ns[0]);
    report_rate("parse", name, size, count, took_ns[PEEKS / 2]);
    return true;
}

static bool measure_format(struct bench *bench, lahar_format format, uint64_t size)
{
    char path[PATH_SIZE + 64];
    lahar_error error = {0};
    const char *name = lahar_format_name(format);
    (void)snprintf(path, sizeof path, "%s/%s.log", bench->files, name);
    if (!write_lines(path, format, size) || !create_source(bench, name, path, format)) {
        return false;
    }
    struct stat info;
    (void)stat(path, &info);
    if (!measure_peeks(bench, name, (uint64_t)info.st_size)) {
        return false;
    }
    lahar_follow_options options;
    lahar_follow_options_init(&options);
    options.sources = &name;
    options.source_count = 1;
    options.once = true;
    lahar_follow_stat stat = {.struct_size = sizeof stat};
    const uint64_t before_ns = processor_ns();
    if (lahar_follow_open(bench->store, &options, &bench->follow, &error) != LAHAR_OK ||
        lahar_follow_run(bench->follow, &error) != LAHAR_OK) {
        return complain(&error);
    }
    lahar_follow_stat_get(bench->follow, &stat);
    lahar_follow_close(bench->follow);
    report_rate("follow", name, (uint64_t)info.st_size, stat.record_count,
                processor_ns() - before_ns);
    return true;
}

static bool measure_parsing(struct bench *bench, uint64_t mib)
{
    const lahar_format formats[] = {LAHAR_FORMAT_LINE, LAHAR_FORMAT_JSON, LAHAR_FORMAT_CSV};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!measure_format(bench, formats[i], mib << 20)) {
            return false;
        }
    }
    return true;
}

/* --- following in the background ----------------------------------------------------------- */

static void *run_follow(void *context)
{
    struct bench *bench = context;
    lahar_error error = {0};
    if (lahar_follow_run(bench->follow, &error) != LAHAR_OK) {
        (void)complain(&error);
    }
    return NULL;
}

static bool start_follow(struct bench *bench)
{
    lahar_error error = {0};
    lahar_follow_options options;
    lahar_follow_options_init(&options);
    if (lahar_follow_open(bench->store, &options, &bench->follow, &error) != LAHAR_OK) {
        return complain(&error);
    }
    return pthread_create(&bench->thread, NULL, run_follow, bench) == 0;
}

static void stop_follow(struct bench *bench)
{
    lahar_follow_stop(bench->follow);
    (void)pthread_join(bench->thread, NULL);
    lahar_follow_close(bench->follow);
}

static int open_file(const struct bench *bench, uint64_t number)
{
    char path[PATH_SIZE + 64];
    (void)snprintf(path, sizeof path, "%s/file%06" PRIu64 ".log", bench->files, number);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static bool write_file(const struct bench *bench, uint64_t number)
{
    const int descriptor = open_file(bench, number);
    if (descriptor < 0 || write(descriptor, "a line\n", 7) != 7) {
        perror("follow_bench");
        return false;
    }
    return close(descriptor) == 0;
}

/* Processor time of all threads while the caller sleeps. */
static double percent_busy(uint64_t seconds)
{
    const uint64_t before_ns = processor_ns();
    const uint64_t start_ns = clock_ns();
    sleep_ms(seconds * 1000);
    return 100.0 * (double)(processor_ns() - before_ns) / (double)(clock_ns() - start_ns);
}

/* Once everything is read and nothing is written; then of the store alone, without a follower. */
static bool measure_idle(struct bench *bench, uint64_t file_count, uint64_t seconds)
{
    for (uint64_t i = 0; i < file_count; i++) {
        if (!write_file(bench, i)) {
            return false;
        }
    }
    if (!create_source(bench, "idle", bench->files, LAHAR_FORMAT_LINE) || !start_follow(bench)) {
        return false;
    }
    lahar_follow_stat stat = {.struct_size = sizeof stat};
    while (stat.record_count < file_count) {
        sleep_ms(100);
        lahar_follow_stat_get(bench->follow, &stat);
    }
    sleep_ms(3000);
    const double percent = percent_busy(seconds);
    stop_follow(bench);
    (void)printf("{\"bench\":\"follow\",\"what\":\"idle\",\"files\":%" PRIu64
                 ",\"seconds\":%" PRIu64 ",\"percent_of_a_core\":%.4f,\"of_it_the_store\":%.4f}\n",
                 file_count, seconds, percent, percent_busy(seconds));
    return true;
}

/* --- latency --------------------------------------------------------------------------------- */

struct latency {
    struct bench *bench;
    uint64_t file_count;
    uint64_t lines_a_second; /* of each file */
    uint64_t seconds;
    _Atomic bool is_done;
    uint64_t written_count;
};

/* Every file in turn gets a line, evenly over each second. */
static void *write_evenly(void *context)
{
    struct latency *latency = context;
    int *descriptors = calloc(latency->file_count, sizeof *descriptors);
    const uint64_t total = latency->file_count * latency->lines_a_second * latency->seconds;
    const uint64_t step_ns = 1000000000 / (latency->file_count * latency->lines_a_second);
    const uint64_t start_ns = clock_ns();
    for (uint64_t i = 0; i < latency->file_count; i++) {
        descriptors[i] = open_file(latency->bench, i);
    }
    for (uint64_t i = 0; i < total; i++) {
        char line[64];
        while (clock_ns() < start_ns + i * step_ns) {
            sleep_ms(1);
        }
        const int size = snprintf(line, sizeof line, "written %" PRIu64 "\n", clock_ns());
        latency->written_count +=
            write(descriptors[i % latency->file_count], line, (size_t)size) == size;
    }
    for (uint64_t i = 0; i < latency->file_count; i++) {
        (void)close(descriptors[i]);
    }
    free(descriptors);
    atomic_store(&latency->is_done, true);
    return NULL;
}

/* Takes what has come since the last look; returns where the next look begins. */
static uint64_t look(struct bench *bench, uint64_t from_id, struct histogram *histogram,
                     uint64_t *seen_count)
{
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_scan_options_init(&options);
    options.from_id = from_id;
    if (lahar_scan(bench->store, &options, &cursor, NULL) != LAHAR_OK) {
        return from_id;
    }
    while (lahar_cursor_next(cursor, &event, NULL) == LAHAR_OK) {
        from_id = event->id + 1;
        for (size_t i = 0; i < event->value_count; i++) {
            const lahar_value *value = &event->values[i];
            if (value->field == LAHAR_FIELD_MESSAGE && value->as.bytes.size > 8) {
                char text[32] = {0};
                const size_t size = value->as.bytes.size - 8;
                memcpy(text, (const char *)value->as.bytes.data + 8,
                       size < sizeof text - 1 ? size : sizeof text - 1);
                histogram_record(histogram, clock_ns() - strtoull(text, NULL, 10));
                (*seen_count)++;
            }
        }
    }
    lahar_cursor_close(cursor);
    return from_id;
}

static bool measure_latency(struct bench *bench, uint64_t file_count, uint64_t lines_a_second,
                            uint64_t seconds)
{
    struct histogram *histogram = calloc(1, sizeof *histogram);
    struct latency latency = {.bench = bench,
                              .file_count = file_count,
                              .lines_a_second = lines_a_second,
                              .seconds = seconds};
    pthread_t writer;
    uint64_t seen_count = 0;
    uint64_t next_id = 1;
    if (histogram == NULL || !create_source(bench, "latency", bench->files, LAHAR_FORMAT_LINE) ||
        !start_follow(bench) || pthread_create(&writer, NULL, write_evenly, &latency) != 0) {
        free(histogram);
        return false;
    }
    uint64_t quiet = 0;
    while (quiet < 2000 &&
           !(atomic_load(&latency.is_done) && seen_count == latency.written_count)) {
        const uint64_t before = seen_count;
        next_id = look(bench, next_id, histogram, &seen_count);
        quiet = atomic_load(&latency.is_done) && before == seen_count ? quiet + 1 : 0;
        sleep_ms(1);
    }
    (void)pthread_join(writer, NULL);
    stop_follow(bench);
    (void)printf("{\"bench\":\"follow\",\"what\":\"latency\",\"files\":%" PRIu64
                 ",\"lines_a_second_a_file\":%" PRIu64 ",\"written\":%" PRIu64 ",\"seen\":%" PRIu64
                 ",\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"p999_ms\":%.3f,\"max_ms\":%.3f}\n",
                 file_count, lines_a_second, latency.written_count, seen_count,
                 (double)histogram_quantile(histogram, 0.5) / 1e6,
                 (double)histogram_quantile(histogram, 0.99) / 1e6,
                 (double)histogram_quantile(histogram, 0.999) / 1e6,
                 (double)histogram_quantile(histogram, 1) / 1e6);
    free(histogram);
    return seen_count == latency.written_count;
}

/* --- the program -------------------------------------------------------------------------------
 */

static uint64_t number(char **arguments, int count, int place, uint64_t otherwise)
{
    return place < count ? strtoull(arguments[place], NULL, 10) : otherwise;
}

static bool measure(struct bench *bench, char **arguments, int count)
{
    const char *what = arguments[2];
    if (strcmp(what, "parse") == 0) {
        return measure_parsing(bench, number(arguments, count, 3, 64));
    }
    if (strcmp(what, "idle") == 0) {
        const uint64_t files = number(arguments, count, 3, 10000);
        return measure_idle(bench, files < FILES_MAX ? files : FILES_MAX,
                            number(arguments, count, 4, 20));
    }
    if (strcmp(what, "latency") == 0) {
        return measure_latency(bench, number(arguments, count, 3, 100),
                               number(arguments, count, 4, 100), number(arguments, count, 5, 10));
    }
    fprintf(stderr, "follow_bench: parse, idle or latency, not %s\n", what);
    return false;
}

int main(int count, char **arguments)
{
    struct bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL || count < 3) {
        fprintf(stderr, "usage: follow_bench DIRECTORY parse|idle|latency [NUMBER]...\n");
        free(bench);
        return 2;
    }
    (void)snprintf(bench->directory, sizeof bench->directory, "%s", arguments[1]);
    (void)snprintf(bench->files, sizeof bench->files, "%s/files", bench->directory);
    bool is_done = mkdir(bench->directory, 0777) == 0 && mkdir(bench->files, 0777) == 0;
    if (!is_done) {
        perror(bench->directory);
    }
    is_done = is_done && open_store(bench) && measure(bench, arguments, count);
    lahar_error error = {0};
    if (bench->store != NULL &&
        lahar_store_close(bench->store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        is_done = complain(&error);
    }
    free(bench);
    return is_done ? 0 : 1;
}
