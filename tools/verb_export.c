/* lahar export: events back as the bytes they came from. */
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar export STORE [EXPR] [--stream NAME] [--format F]\n\n"
    "Writes events in id order to standard output: all, or those that match EXPR.\n\n"
    "  --stream NAME   only this stream\n"
    "  --format jsonl  one JSON document an event (default): what came as JSON keeps\n"
    "                  its values exactly\n"
    "  --format raw    the records: lines byte for byte, JSON and CSV value for\n"
    "                  value, byte for byte where taken with --keep-raw\n"
    "  --format nifi-json  provenance events as NiFi's site-to-site reporting task\n"
    "                  writes them, one a line\n\n"
    "exit status: 0 done, 1 nothing found, 2 usage, 3 I/O, 4 damage cost some events\n";

enum {
    OPTION_STREAM = OPTION_FIRST,
    OPTION_FORMAT
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"stream", OPTION_STREAM, true},
    {"format", OPTION_FORMAT, true},
    {NULL, 0, false},
};

struct export_request {
    const char *directory;
    const char *expression;
    const char *stream_name; /* NULL: all */
    bool raw;
    bool nifi_json;
};

static enum exit_status write_event(const struct export_request *request, lahar_export *export_,
                                    const lahar_event *event)
{
    lahar_bytes bytes = {.data = NULL, .size = 0};
    lahar_error error = {.status = LAHAR_OK};
    const lahar_status status = request->raw ? lahar_export_raw(export_, event, &bytes, &error)
                                : request->nifi_json
                                    ? lahar_export_nifi_json(export_, event, &bytes, &error)
                                    : lahar_export_json(export_, event, &bytes, &error);
    if (status != LAHAR_OK) {
        return complain_of(&error);
    }
    if (bytes.size > 0) {
        (void)fwrite(bytes.data, 1, bytes.size, stdout);
    }
    if (!request->raw) {
        (void)putchar('\n');
    }
    return ferror(stdout) == 0 ? EXIT_STATUS_DONE : finish_output(EXIT_STATUS_DONE);
}

static enum exit_status write_events(const struct export_request *request, lahar_query *query,
                                     lahar_export *export_)
{
    enum exit_status damage = EXIT_STATUS_DONE;
    bool is_empty = true;
    for (;;) {
        const lahar_event *event = NULL;
        lahar_error error = {.status = LAHAR_OK};
        const lahar_status status = lahar_query_next(query, &event, &error);
        if (status == LAHAR_NOT_FOUND) {
            return is_empty && damage == EXIT_STATUS_DONE ? EXIT_STATUS_NOTHING : damage;
        }
        if (status == LAHAR_CORRUPT) {
            damage = complain_of(&error);
            continue;
        }
        if (status != LAHAR_OK) {
            return complain_of(&error);
        }
        const enum exit_status written = write_event(request, export_, event);
        if (written != EXIT_STATUS_DONE) {
            return written;
        }
        is_empty = false;
    }
}

static void cancel(void *query)
{
    lahar_query_cancel(query);
}

static enum exit_status run(const struct export_request *request)
{
    lahar_store *store = NULL;
    lahar_query *query = NULL;
    lahar_export *export_ = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_query_options options;
    lahar_query_options_init(&options);
    options.order = LAHAR_ORDER_OLDEST;
    options.count = LAHAR_COUNT_NONE;
    options.limit = 0;
    enum exit_status status = store_access_open(request->directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    status = store_access_stream(store, request->stream_name, &options.stream);
    if (status != EXIT_STATUS_DONE) {
        goto cleanup;
    }
    if (lahar_query_open(store, request->expression, strlen(request->expression), &options, &query,
                         &error) != LAHAR_OK ||
        lahar_export_open(store, &export_, &error) != LAHAR_OK) {
        status = complain_of(&error);
        goto cleanup;
    }
    interrupt_set_callback(cancel, query);
    status = write_events(request, query, export_);
    interrupt_set_callback(NULL, NULL);
cleanup:
    lahar_export_close(export_);
    lahar_query_close(query);
    return store_access_close(store, status);
}

static bool take_option(struct export_request *request, int option, const char *value)
{
    if (option == OPTION_STREAM) {
        request->stream_name = value;
        return true;
    }
    if (option != OPTION_FORMAT) {
        return false;
    }
    request->raw = strcmp(value, "raw") == 0;
    request->nifi_json = strcmp(value, "nifi-json") == 0;
    if (!request->raw && !request->nifi_json && strcmp(value, "jsonl") != 0) {
        complain("--format: '%s' is none of jsonl, raw, nifi-json", value);
        return false;
    }
    return true;
}

enum exit_status verb_export(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct export_request request = {.directory = NULL};
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && request.directory == NULL) {
            request.directory = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL && request.expression == NULL) {
            request.expression = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL) {
            return complain_of_usage("export", "more than one EXPR; quote it as one argument");
        } else if (option == ARGUMENT_WRONG || !take_option(&request, option, arguments.value)) {
            return complain_of_usage("export", NULL);
        }
    }
    if (request.directory == NULL) {
        return complain_of_usage("export", "expected STORE [EXPR]");
    }
    if (request.expression == NULL) {
        request.expression = "";
    }
    if (request.nifi_json && request.stream_name == NULL) {
        request.stream_name = "provenance";
    }
    return run(&request);
}
