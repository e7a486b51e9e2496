/* lahar verify: reads every file of a store and says what is wrong with it. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/progress.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar verify STORE [--full] [--json]\n\n"
    "Reads every file of a store and checks it against its checksums.\n\n"
    "  --full   also decode every event and look it up in the index\n"
    "  --json   one JSON object a finding, then the totals\n\n"
    "exit status: 0 nothing wrong, 1 something found, 3 I/O, 4 too damaged to open\n";

enum {
    OPTION_FULL = OPTION_FIRST,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"full", OPTION_FULL, false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

struct verify_report {
    struct progress progress;
    bool json;
};

static void print_finding(void *context, const lahar_finding *finding)
{
    struct verify_report *report = context;
    progress_clear(&report->progress);
    if (report->json) {
        struct json_object *line = json_object_new_object();
        json_line_string(line, "file", finding->file);
        json_line_number(line, "offset", finding->offset);
        json_line_number(line, "first_id", finding->first_id);
        json_line_number(line, "last_id", finding->last_id);
        json_line_string(line, "message", finding->message);
        json_line_print(line);
        return;
    }
    (void)printf("%s at %" PRIu64 ": %s", finding->file, finding->offset, finding->message);
    if (finding->last_id != 0) {
        (void)printf(" (events %" PRIu64 " to %" PRIu64 ")", finding->first_id, finding->last_id);
    }
    (void)putchar('\n');
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct verify_report *report = context;
    progress_bytes(&report->progress, "verify", done, total);
}

/* A reader has nothing to put in order, and the check nothing to stop it by. */
static void end_at_once(void *context)
{
    (void)context;
    _exit(EXIT_STATUS_INTERRUPTED);
}

static void print_totals(const lahar_verify_result *result, bool json)
{
    if (!json) {
        (void)printf("%" PRIu64 " events in %" PRIu64 " files, %" PRIu64 " bytes read, %" PRIu64
                     " findings\n",
                     result->event_count, result->file_count, result->byte_count,
                     result->finding_count);
        return;
    }
    struct json_object *line = json_object_new_object();
    json_line_number(line, "events", result->event_count);
    json_line_number(line, "files", result->file_count);
    json_line_number(line, "bytes", result->byte_count);
    json_line_number(line, "findings", result->finding_count);
    json_line_print(line);
}

static enum exit_status verify(const char *directory, bool full, bool json)
{
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    struct verify_report report = {.json = json};
    lahar_verify_result result = {.struct_size = sizeof result};
    const lahar_verify_options options = {
        .struct_size = sizeof options,
        .full = full,
        .on_finding = print_finding,
        .on_progress = show_progress,
        .context = &report,
    };
    enum exit_status status = store_access_open(directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    progress_begin(&report.progress);
    interrupt_set_callback(end_at_once, NULL);
    const lahar_status verified = lahar_verify(store, &options, &result, &error);
    interrupt_set_callback(NULL, NULL);
    progress_clear(&report.progress);
    if (verified != LAHAR_OK) {
        status = complain_of(&error);
    } else {
        print_totals(&result, json);
        status = result.finding_count == 0 ? EXIT_STATUS_DONE : EXIT_STATUS_NOTHING;
    }
    return store_access_close(store, status);
}

enum exit_status verb_verify(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    const char *directory = NULL;
    bool full = false;
    bool json = false;
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        switch (option) {
        case 'h':
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        case OPTION_FULL:
            full = true;
            break;
        case OPTION_JSON:
            json = true;
            break;
        case ARGUMENT_POSITIONAL:
            if (directory != NULL) {
                return complain_of_usage("verify", "too many arguments");
            }
            directory = arguments.value;
            break;
        default:
            return complain_of_usage("verify", NULL);
        }
    }
    return directory == NULL ? complain_of_usage("verify", "expected STORE")
                             : verify(directory, full, json);
}
