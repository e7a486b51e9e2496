/* lahar-load run: a workload straight into a store, as a program that links the library would
 * append it, in one or more phases. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/load.h"
#include "tools/load_phase.h"
#include "tools/load_report.h"
#include "tools/load_settings.h"
#include "tools/store_access.h"

static const char USAGE[] =
    "usage: lahar-load run --workload W1|W2 STORE [OPTION]...\n"
    "       lahar-load run JOB [STORE] [OPTION]...\n\n"
    "Appends a workload to STORE, which it creates, and reports rates, latencies,\n"
    "processor time, memory and sizes. JOB is a JSON file of settings and phases.\n\n"
    "How much, when:\n"
    "  -n, --count N      events\n"
    "  --duration TIME    instead: 30s, 500ms, 10m\n"
    "  --warmup TIME      before measuring\n"
    "  --rate R           events/s, started by a clock (open loop: latency counts\n"
    "                     from the intended start); in a job also N%, of what its\n"
    "                     first phase finished a second. Without: as fast as the\n"
    "                     store takes them (closed loop)\n"
    "  --arrival A        const (default) or poisson\n"
    "  --producers N      threads that append; default 1\n"
    "  --batch N          events a batch; default 1000\n"
    "  --durability MODE  none, interval (default) or commit\n"
    "  --no-rollover      stop when all is durable\n\n"
    "What:\n"
    "  --workload NAME    W1 into the stream provenance, W2 into the stream log\n"
    "  --seed S           default 42\n"
    "  --from I           begin with event I; default 0, or behind the last phase\n"
    "  --prepared N       make N events a producer beforehand and use them in turn\n\n"
    "Store (kept by no store: give them each time):\n"
    "  --memory MIB       limit; default the library's\n"
    "  --group MIB        roll over at this many bytes of events\n"
    "  --sync-interval T  under interval durability\n"
    "  --level N          of compression\n"
    "  --journals N       at most\n"
    "  --backend B        auto, uring or pwrite\n\n"
    "Report:\n"
    "  --json             one JSON object a phase\n"
    "  --interval TIME    of the series; default 1s\n"
    "  --series           report every interval\n"
    "  --verify           read all events back and compare them with those appended\n"
    "  --name NAME        of the run in its report\n";

/* What the store has to hold when everything is done. */
struct expectation {
    uint64_t first_id; /* events below it were there before */
    uint64_t count;
    uint64_t digest;
};

static enum exit_status create_stream(lahar_store *store, enum load_workload workload,
                                      uint32_t *stream_out)
{
    lahar_error error = {.status = LAHAR_OK};
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec,
        .name = workload == LOAD_W1 ? "provenance" : "log",
        .schema = workload == LOAD_W1 ? LAHAR_SCHEMA_PROVENANCE : LAHAR_SCHEMA_LOG,
    };
    const lahar_status created = lahar_stream_create(store, &spec, stream_out, &error);
    return created == LAHAR_OK || created == LAHAR_EXISTS ? EXIT_STATUS_DONE : complain_of(&error);
}

/* Runs one phase and reports it. */
static enum exit_status run_phase(const struct load_job *job, const struct load_phase *phase,
                                  lahar_store *store, struct expectation *expectation,
                                  uint64_t *next_index, uint64_t *finished_rate)
{
    uint32_t stream = 0;
    struct load_phase chosen = *phase;
    struct load_result *result = calloc(1, sizeof *result);
    enum exit_status status = create_stream(store, phase->workload, &stream);
    if (status != EXIT_STATUS_DONE || result == NULL) {
        free(result);
        return status == EXIT_STATUS_DONE ? EXIT_STATUS_IO : status;
    }
    if (chosen.first_index == UINT64_MAX) {
        chosen.first_index = *next_index;
    }
    if (chosen.rate_percent != 0) {
        chosen.rate = (*finished_rate * chosen.rate_percent + 99) / 100;
        chosen.rate = chosen.rate == 0 ? 1 : chosen.rate;
    }
    const bool is_run =
        load_phase_run(&chosen, store, stream, chosen.first_index, job->is_verified, result);
    expectation->count += result->total_events;
    expectation->digest += result->digest;
    *next_index = chosen.first_index + result->total_events;
    const uint64_t span_ns =
        result->finished_ns != 0 ? result->finished_ns : result->acknowledged_ns;
    if (*finished_rate == 0 && span_ns != 0) {
        *finished_rate = (uint64_t)((double)result->total_events * 1e9 / (double)span_ns);
    }
    if (result->total_events > 0 && job->is_json) {
        load_report_json(job, &chosen, result);
    } else if (result->total_events > 0) {
        load_report_text(job, &chosen, result);
    }
    (void)fflush(stdout);
    if (result->error.status != LAHAR_OK) {
        status = complain_of(&result->error);
    } else if (result->is_interrupted) {
        status = EXIT_STATUS_INTERRUPTED;
    } else if (!is_run) {
        status = EXIT_STATUS_IO;
    }
    load_result_free(result);
    free(result);
    return status;
}

/* Reads everything back: as many events as were acknowledged, under rising ids, the same. */
static enum exit_status verify(const struct load_job *job, lahar_store *store,
                               const struct expectation *expected)
{
    uint64_t count = 0;
    uint64_t digest = 0;
    uint64_t holes = 0;
    uint64_t last_id = expected->first_id - 1;
    bool is_rising = true;
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    const lahar_event *event = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_scan_options_init(&options);
    options.from_id = expected->first_id;
    lahar_status status = lahar_scan(store, &options, &cursor, &error);
    while (status == LAHAR_OK && !interrupt_seen()) {
        status = lahar_cursor_next(cursor, &event, &error);
        if (status == LAHAR_OK) {
            is_rising = is_rising && event->id > last_id;
            holes += event->id - last_id - 1;
            last_id = event->id;
            digest += load_event_digest(event);
            count++;
        }
    }
    lahar_cursor_close(cursor);
    if (interrupt_seen()) {
        return EXIT_STATUS_INTERRUPTED;
    }
    if (status != LAHAR_NOT_FOUND) {
        return complain_of(&error);
    }
    const bool is_right = is_rising && count == expected->count && digest == expected->digest;
    if (job->is_json) {
        struct json_object *json = json_object_new_object();
        json_line_string(json, "phase", "verify");
        json_line_number(json, "events", count);
        json_line_number(json, "expected", expected->count);
        json_line_number(json, "holes", holes);
        (void)json_object_object_add(json, "same", json_object_new_boolean(is_right));
        json_line_print(json);
    } else {
        (void)printf("verify: %" PRIu64 " of %" PRIu64 " events, %" PRIu64
                     " ids unused among them, %s\n",
                     count, expected->count, holes, is_right ? "all the same" : "NOT the same");
    }
    return is_right ? EXIT_STATUS_DONE : EXIT_STATUS_NOTHING;
}

static void print_log(void *context, lahar_log_level level, const char *message)
{
    (void)context;
    if (level <= LAHAR_LOG_WARNING) {
        complain("%s", message);
    }
}

static enum exit_status run_job(struct load_job *job)
{
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_stat stat = {.struct_size = sizeof stat};
    uint64_t next_index = 0;
    uint64_t finished_rate = 0;
    enum exit_status status = EXIT_STATUS_DONE;
    job->options.log = print_log;
    if (lahar_store_open(job->directory, &job->options, LAHAR_NO_WAIT, &store, &error) !=
        LAHAR_OK) {
        return complain_of(&error);
    }
    if (lahar_stat_get(store, &stat, &error) != LAHAR_OK) {
        return store_access_close(store, complain_of(&error));
    }
    struct expectation expectation = {.first_id = stat.next_id};
    for (uint32_t i = 0; i < job->phase_count && status == EXIT_STATUS_DONE; i++) {
        status = run_phase(job, &job->phases[i], store, &expectation, &next_index, &finished_rate);
    }
    if (status == EXIT_STATUS_DONE && job->is_verified) {
        status = verify(job, store, &expectation);
    }
    return store_access_close(store, status);
}

/* Takes the command line. false: it was wrong, said so. */
static bool read_arguments(struct load_job *job, struct arguments *arguments, bool *is_help)
{
    const char *positionals[2] = {NULL, NULL};
    size_t count = 0;
    int option = 0;
    while ((option = arguments_next(arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            *is_help = true;
            return true;
        }
        if (option == ARGUMENT_POSITIONAL && count < 2) {
            positionals[count++] = arguments->value;
        } else if (option == ARGUMENT_POSITIONAL) {
            (void)complain_of_usage("run", "too many arguments");
            return false;
        } else if (option == ARGUMENT_WRONG ||
                   !load_setting_take(job, &job->phases[0], option, arguments->value)) {
            (void)complain_of_usage("run", NULL);
            return false;
        }
    }
    const bool has_job = !job->phases[0].workload_given && count > 0;
    if (count == 2 && !has_job) {
        (void)complain_of_usage("run", "a JOB names its workload itself");
        return false;
    }
    if (has_job && !load_job_read(job, positionals[0])) {
        return false;
    }
    const char *store = has_job ? positionals[1] : positionals[0];
    if (store != NULL) {
        job->directory = store;
    }
    return load_job_check(job);
}

enum exit_status load_run(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = LOAD_OPTIONS};
    struct load_job job;
    bool is_help = false;
    enum exit_status status = EXIT_STATUS_USAGE;
    load_job_init(&job);
    if (read_arguments(&job, &arguments, &is_help)) {
        if (is_help) {
            (void)fputs(USAGE, stdout);
            status = EXIT_STATUS_DONE;
        } else {
            status = run_job(&job);
        }
    }
    load_job_deinit(&job);
    return status;
}
