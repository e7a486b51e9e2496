/* lahar-load run: a workload straight into a store, as a program that links the
 * library would append it.
 *
 * Producers take the next range of the workload, stage it as a batch and commit it,
 * as fast as the store lets them: a closed loop, so that latencies are those of
 * a store at its limit. Three moments are reported: all appended (acknowledged), all
 * durable, all rolled into event files and index shards (finished). */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/histogram.h"
#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/load.h"
#include "tools/load_event.h"
#include "tools/memory_report.h"
#include "tools/progress.h"
#include "tools/store_access.h"

static const char USAGE[] =
    "usage: lahar-load run --workload W1|W2 -n N STORE [OPTION]...\n\n"
    "Appends N events of a workload to STORE, which it creates, and reports rates,\n"
    "latencies of commits, and sizes. Producers wait for no clock (closed loop).\n\n"
    "  --workload NAME    W1 into the stream provenance, W2 into the stream log\n"
    "  -n, --count N      how many events\n"
    "  --seed S           default 42\n"
    "  --producers N      threads that append; default 1\n"
    "  --batch N          events a batch; default 1000\n"
    "  --durability MODE  none, interval (default) or commit\n"
    "  --memory MIB       the store's memory limit; default the library's\n"
    "  --no-rollover      stop when all is durable\n"
    "  --json             the report as one JSON object\n";

enum {
    OPTION_WORKLOAD = OPTION_FIRST,
    OPTION_SEED,
    OPTION_PRODUCERS,
    OPTION_BATCH,
    OPTION_DURABILITY,
    OPTION_MEMORY,
    OPTION_NO_ROLLOVER,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"count", 'n', true},
    {"workload", OPTION_WORKLOAD, true},
    {"seed", OPTION_SEED, true},
    {"producers", OPTION_PRODUCERS, true},
    {"batch", OPTION_BATCH, true},
    {"durability", OPTION_DURABILITY, true},
    {"memory", OPTION_MEMORY, true},
    {"no-rollover", OPTION_NO_ROLLOVER, false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

enum {
    PRODUCERS_MAX = 1024,
    SEED_DEFAULT = 42,
    BATCH_DEFAULT = 1000
};

struct load_run {
    const char *directory;
    enum load_workload workload;
    bool workload_given;
    uint64_t count;
    uint64_t seed;
    uint64_t producer_count;
    uint64_t batch_events;
    uint64_t memory_mib; /* 0: the library's default */
    lahar_durability durability;
    bool no_rollover;
    bool json;
    lahar_store *store;
    uint32_t stream;
    atomic_uint_fast64_t next_index; /* of the workload, of the next batch */
    atomic_bool has_failed;
    uint64_t appended_count;
    uint64_t appended_ns; /* from the start until ... */
    uint64_t durable_ns;
    uint64_t finished_ns;
    lahar_stat stat;
};

struct producer {
    pthread_t thread;
    struct load_run *run;
    struct load_event_maker maker;
    lahar_batch *batch;
    uint64_t appended_count;
    lahar_error error;             /* status OK: none */
    struct histogram latencies_ns; /* of commits */
};

static lahar_status append_range(struct producer *producer, uint64_t first, uint64_t end)
{
    struct load_run *run = producer->run;
    const lahar_append_options options = {
        .struct_size = sizeof options,
        .durability = run->durability,
        .deadline_ns = LAHAR_WAIT_FOREVER,
    };
    for (uint64_t index = first; index < end; index++) {
        lahar_event event;
        load_event_make(&producer->maker, index, &event);
        const lahar_status status = lahar_batch_add(producer->batch, &event, &producer->error);
        if (status != LAHAR_OK) {
            return status;
        }
    }
    const uint64_t before_ns = progress_clock_ns();
    const lahar_status status =
        lahar_batch_commit(producer->batch, &options, NULL, &producer->error);
    histogram_record(&producer->latencies_ns, progress_clock_ns() - before_ns);
    if (status == LAHAR_OK) {
        producer->appended_count += end - first;
    }
    return status;
}

static void *produce(void *argument)
{
    struct producer *producer = argument;
    struct load_run *run = producer->run;
    while (!interrupt_seen() && !atomic_load(&run->has_failed)) {
        const uint64_t first = atomic_fetch_add(&run->next_index, run->batch_events);
        if (first >= run->count) {
            break;
        }
        const uint64_t left = run->count - first;
        const uint64_t size = left < run->batch_events ? left : run->batch_events;
        if (append_range(producer, first, first + size) != LAHAR_OK) {
            atomic_store(&run->has_failed, true);
            break;
        }
    }
    return NULL;
}

/* Starts the producers, waits for them, and adds up what they did. */
static enum exit_status produce_all(struct load_run *run, struct producer *producers,
                                    struct histogram *latencies_ns)
{
    enum exit_status status = EXIT_STATUS_DONE;
    uint64_t started = 0;
    for (; started < run->producer_count; started++) {
        if (pthread_create(&producers[started].thread, NULL, produce, &producers[started]) != 0) {
            complain("producer %" PRIu64 " could not be started", started);
            atomic_store(&run->has_failed, true);
            status = EXIT_STATUS_IO;
            break;
        }
    }
    for (uint64_t i = 0; i < started; i++) {
        (void)pthread_join(producers[i].thread, NULL);
        run->appended_count += producers[i].appended_count;
        histogram_add(latencies_ns, &producers[i].latencies_ns);
        if (producers[i].error.status != LAHAR_OK && status == EXIT_STATUS_DONE) {
            status = complain_of(&producers[i].error);
        }
    }
    return interrupt_seen() ? EXIT_STATUS_INTERRUPTED : status;
}

static enum exit_status measure(struct load_run *run, struct producer *producers,
                                struct histogram *latencies_ns)
{
    lahar_error error = {.status = LAHAR_OK};
    const uint64_t start_ns = progress_clock_ns();
    const enum exit_status status = produce_all(run, producers, latencies_ns);
    run->appended_ns = progress_clock_ns() - start_ns;
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (lahar_sync(run->store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    run->durable_ns = progress_clock_ns() - start_ns;
    if (!run->no_rollover && lahar_rollover(run->store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    run->finished_ns = progress_clock_ns() - start_ns;
    run->stat.struct_size = sizeof run->stat;
    return lahar_stat_get(run->store, &run->stat, &error) == LAHAR_OK ? EXIT_STATUS_DONE
                                                                      : complain_of(&error);
}

static double rate(uint64_t count, uint64_t duration_ns)
{
    return duration_ns == 0 ? 0 : (double)count * 1e9 / (double)duration_ns;
}

static void report_text(const struct load_run *run, const struct histogram *latencies_ns)
{
    static const double SHARES[] = {0.5, 0.9, 0.99, 0.999};
    (void)printf("%" PRIu64 " events, %" PRIu64 " producers, batches of %" PRIu64 ", closed loop\n",
                 run->appended_count, run->producer_count, run->batch_events);
    (void)printf("acknowledged %9.3f s %12.0f events/s\n", (double)run->appended_ns / 1e9,
                 rate(run->appended_count, run->appended_ns));
    (void)printf("durable      %9.3f s %12.0f events/s\n", (double)run->durable_ns / 1e9,
                 rate(run->appended_count, run->durable_ns));
    if (!run->no_rollover) {
        (void)printf("finished     %9.3f s %12.0f events/s\n", (double)run->finished_ns / 1e9,
                     rate(run->appended_count, run->finished_ns));
    }
    (void)printf("commit       ");
    for (size_t i = 0; i < sizeof SHARES / sizeof SHARES[0]; i++) {
        (void)printf(" p%g %.1f us,", SHARES[i] * 100,
                     (double)histogram_quantile(latencies_ns, SHARES[i]) / 1e3);
    }
    (void)printf(" max %.1f us\n", (double)latencies_ns->max / 1e3);
    const lahar_stat *stat = &run->stat;
    (void)printf("events       %" PRIu64 " bytes raw, %" PRIu64 " in files, %" PRIu64 " of index\n",
                 stat->event_raw_bytes, stat->event_file_bytes, stat->index_bytes);
    (void)printf("journals     %" PRIu64 " bytes in %" PRIu64 " writes, %" PRIu64 " syncs; %s\n",
                 stat->journal_write_bytes, stat->journal_writes, stat->journal_syncs,
                 stat->backend);
    if (memory_report_resident_bytes() != 0) {
        (void)printf("memory       %" PRIu64 " bytes resident, jemalloc %s\n",
                     memory_report_resident_bytes(), memory_report_allocator());
    }
}

static void report_json(const struct load_run *run, const struct histogram *latencies_ns)
{
    const lahar_stat *stat = &run->stat;
    struct json_object *line = json_object_new_object();
    json_line_number(line, "schema", 1);
    json_line_string(line, "workload", run->workload == LOAD_W1 ? "W1" : "W2");
    json_line_number(line, "seed", run->seed);
    json_line_number(line, "events", run->appended_count);
    json_line_number(line, "producers", run->producer_count);
    json_line_number(line, "batch_events", run->batch_events);
    json_line_number(line, "acknowledged_ns", run->appended_ns);
    json_line_number(line, "durable_ns", run->durable_ns);
    json_line_number(line, "finished_ns", run->no_rollover ? 0 : run->finished_ns);
    json_line_number(line, "commit_p50_ns", histogram_quantile(latencies_ns, 0.5));
    json_line_number(line, "commit_p99_ns", histogram_quantile(latencies_ns, 0.99));
    json_line_number(line, "commit_p999_ns", histogram_quantile(latencies_ns, 0.999));
    json_line_number(line, "commit_max_ns", latencies_ns->max);
    json_line_number(line, "event_raw_bytes", stat->event_raw_bytes);
    json_line_number(line, "event_file_bytes", stat->event_file_bytes);
    json_line_number(line, "index_bytes", stat->index_bytes);
    json_line_number(line, "journal_write_bytes", stat->journal_write_bytes);
    json_line_number(line, "journal_writes", stat->journal_writes);
    json_line_number(line, "journal_syncs", stat->journal_syncs);
    json_line_number(line, "resident_bytes", memory_report_resident_bytes());
    json_line_string(line, "backend", stat->backend);
    json_line_string(line, "sync_mode", stat->sync_mode);
    json_line_string(line, "version", lahar_version());
    json_line_print(line);
}

static enum exit_status prepare(struct load_run *run, struct producer *producers)
{
    lahar_error error = {.status = LAHAR_OK};
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec,
        .name = run->workload == LOAD_W1 ? "provenance" : "log",
        .schema = run->workload == LOAD_W1 ? LAHAR_SCHEMA_PROVENANCE : LAHAR_SCHEMA_LOG,
    };
    const lahar_status created = lahar_stream_create(run->store, &spec, &run->stream, &error);
    if (created != LAHAR_OK && created != LAHAR_EXISTS) {
        return complain_of(&error);
    }
    for (uint64_t i = 0; i < run->producer_count; i++) {
        producers[i].run = run;
        producers[i].error = (lahar_error){.status = LAHAR_OK};
        if (load_event_maker_init(&producers[i].maker, run->workload, run->seed, run->store,
                                  run->stream, &error) != LAHAR_OK ||
            lahar_batch_create(run->store, &producers[i].batch, &error) != LAHAR_OK) {
            return complain_of(&error);
        }
    }
    return EXIT_STATUS_DONE;
}

static enum exit_status open_and_run(struct load_run *run)
{
    lahar_options options;
    lahar_error error = {.status = LAHAR_OK};
    struct histogram *latencies_ns = calloc(1, sizeof *latencies_ns);
    struct producer *producers = calloc(run->producer_count, sizeof *producers);
    enum exit_status status = EXIT_STATUS_IO;
    if (latencies_ns == NULL || producers == NULL) {
        complain("out of memory");
        goto cleanup;
    }
    lahar_options_init(&options);
    options.memory_limit_bytes = run->memory_mib << 20;
    if (lahar_store_open(run->directory, &options, LAHAR_NO_WAIT, &run->store, &error) !=
        LAHAR_OK) {
        status = complain_of(&error);
        goto cleanup;
    }
    status = prepare(run, producers);
    if (status == EXIT_STATUS_DONE) {
        status = measure(run, producers, latencies_ns);
    }
    if (status == EXIT_STATUS_DONE) {
        if (run->json) {
            report_json(run, latencies_ns);
        } else {
            report_text(run, latencies_ns);
        }
    }
    for (uint64_t i = 0; i < run->producer_count; i++) {
        lahar_batch_destroy(producers[i].batch);
        load_event_maker_deinit(&producers[i].maker);
    }
    status = store_access_close(run->store, status);
cleanup:
    free(producers);
    free(latencies_ns);
    return status;
}

static bool take_option(struct load_run *run, int option, const char *value)
{
    switch (option) {
    case 'n':
        return parse_number("-n", value, &run->count);
    case OPTION_WORKLOAD:
        run->workload_given = load_workload_find(value, &run->workload);
        if (!run->workload_given) {
            complain("--workload: '%s' is neither W1 nor W2", value);
        }
        return run->workload_given;
    case OPTION_SEED:
        return parse_number("--seed", value, &run->seed);
    case OPTION_PRODUCERS:
        return parse_number("--producers", value, &run->producer_count);
    case OPTION_BATCH:
        return parse_number("--batch", value, &run->batch_events);
    case OPTION_DURABILITY:
        return parse_durability(value, &run->durability);
    case OPTION_MEMORY:
        return parse_number("--memory", value, &run->memory_mib);
    case OPTION_NO_ROLLOVER:
        run->no_rollover = true;
        return true;
    case OPTION_JSON:
        run->json = true;
        return true;
    default:
        return false;
    }
}

enum exit_status load_run(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct load_run run = {
        .seed = SEED_DEFAULT,
        .producer_count = 1,
        .batch_events = BATCH_DEFAULT,
    };
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && run.directory == NULL) {
            run.directory = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL) {
            return complain_of_usage("run", "too many arguments");
        } else if (option == ARGUMENT_WRONG || !take_option(&run, option, arguments.value)) {
            return complain_of_usage("run", NULL);
        }
    }
    if (run.directory == NULL || !run.workload_given || run.count == 0) {
        return complain_of_usage("run", "expected --workload W1|W2, -n N and STORE");
    }
    if (run.producer_count == 0 || run.producer_count > PRODUCERS_MAX || run.batch_events == 0) {
        return complain_of_usage("run", "1 to 1024 producers, and batches of 1 event or more");
    }
    return open_and_run(&run);
}
