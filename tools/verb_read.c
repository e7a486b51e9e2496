/* lahar get and lahar scan: events by id. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/event_output.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char GET_USAGE[] =
    "usage: lahar get STORE ID... [--attribute-length N] [--json]\n\n"
    "Shows the events of these ids, one field a line, in the order given.\n\n"
    "  --attribute-length N  the first N characters of each attribute; default all\n"
    "  --json                one JSON object an event\n\n"
    "exit status: 0 all found, 1 some not found, 3 I/O, 4 damaged\n";

static const char SCAN_USAGE[] =
    "usage: lahar scan STORE [--from-id N] [--to-id N] [-n N] [--stream NAME]\n"
    "                  [--newest-first] [--json]\n\n"
    "Shows events in id order.\n\n"
    "  --from-id N      the first id; default the oldest\n"
    "  --to-id N        the id behind the last one; default all there are\n"
    "  -n, --limit N    at most N events; default no limit\n"
    "  --stream NAME    only this stream\n"
    "  --newest-first   downwards from the last id\n"
    "  --json           one JSON object an event\n\n"
    "exit status: 0 done, 1 no events, 3 I/O, 4 damage cost some events\n";

enum {
    OPTION_FROM_ID = OPTION_FIRST,
    OPTION_TO_ID,
    OPTION_STREAM,
    OPTION_NEWEST_FIRST,
    OPTION_ATTRIBUTE_LENGTH,
    OPTION_JSON
};

static const struct option_spec GET_OPTIONS[] = {
    {"help", 'h', false},
    {"attribute-length", OPTION_ATTRIBUTE_LENGTH, true},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

static const struct option_spec SCAN_OPTIONS[] = {
    {"help", 'h', false},
    {"limit", 'n', true},
    {"from-id", OPTION_FROM_ID, true},
    {"to-id", OPTION_TO_ID, true},
    {"stream", OPTION_STREAM, true},
    {"newest-first", OPTION_NEWEST_FIRST, false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

struct scan_request {
    const char *directory;
    const char *stream_name; /* NULL: all */
    lahar_scan_options options;
    uint64_t limit; /* 0: none */
    bool json;
};

static lahar_status next_event(void *cursor, const lahar_event **event_out, lahar_error *error)
{
    return lahar_cursor_next(cursor, event_out, error);
}

/* Writes the events of a cursor that was opened, or says why it was not. */
static enum exit_status write_cursor(lahar_store *store, lahar_cursor *cursor,
                                     enum event_output_form form, uint64_t limit,
                                     uint64_t attribute_length_max, uint64_t *written_count_out)
{
    struct event_output output;
    enum exit_status status = event_output_open(&output, store, form);
    *written_count_out = 0;
    if (status == EXIT_STATUS_DONE) {
        output.cut.length_max = attribute_length_max;
        status = event_output_write_all(&output, next_event, cursor, limit);
        *written_count_out = output.written_count;
        event_output_close(&output);
    }
    lahar_cursor_close(cursor);
    return status;
}

static enum exit_status get(const char *directory, const uint64_t *ids, size_t id_count,
                            uint64_t attribute_length_max, bool json)
{
    lahar_store *store = NULL;
    lahar_cursor *cursor = NULL;
    lahar_error error = {.status = LAHAR_OK};
    uint64_t written_count = 0;
    enum exit_status status = store_access_open(directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (lahar_get(store, ids, id_count, &cursor, &error) != LAHAR_OK) {
        status = complain_of(&error);
    } else {
        status = write_cursor(store, cursor, json ? EVENT_OUTPUT_JSON : EVENT_OUTPUT_FIELDS, 0,
                              attribute_length_max, &written_count);
    }
    if (status == EXIT_STATUS_DONE && written_count < id_count) {
        complain("%zu of %zu events not found", id_count - (size_t)written_count, id_count);
        status = EXIT_STATUS_NOTHING;
    }
    return store_access_close(store, status);
}

enum exit_status verb_get(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = GET_OPTIONS};
    const char *directory = NULL;
    uint64_t attribute_length_max = 0;
    bool json = false;
    size_t id_count = 0;
    int option = 0;
    uint64_t *ids = calloc((size_t)argument_count, sizeof *ids);
    if (ids == NULL) {
        complain("out of memory");
        return EXIT_STATUS_IO;
    }
    enum exit_status status = EXIT_STATUS_DONE;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(GET_USAGE, stdout);
            goto cleanup;
        }
        if (option == OPTION_JSON) {
            json = true;
        } else if (option == ARGUMENT_POSITIONAL && directory == NULL) {
            directory = arguments.value;
        } else if (option == OPTION_ATTRIBUTE_LENGTH) {
            if (!parse_number("--attribute-length", arguments.value, &attribute_length_max)) {
                status = complain_of_usage("get", NULL);
                goto cleanup;
            }
        } else if (option == ARGUMENT_WRONG ||
                   !parse_number("ID", arguments.value, &ids[id_count++])) {
            status = complain_of_usage("get", NULL);
            goto cleanup;
        }
    }
    status = id_count == 0 ? complain_of_usage("get", "expected STORE ID...")
                           : get(directory, ids, id_count, attribute_length_max, json);
cleanup:
    free(ids);
    return status;
}

static enum exit_status scan(struct scan_request *request)
{
    lahar_store *store = NULL;
    lahar_cursor *cursor = NULL;
    lahar_error error = {.status = LAHAR_OK};
    uint64_t written_count = 0;
    enum exit_status status = store_access_open(request->directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    status = store_access_stream(store, request->stream_name, &request->options.stream);
    if (status == EXIT_STATUS_DONE) {
        if (lahar_scan(store, &request->options, &cursor, &error) != LAHAR_OK) {
            status = complain_of(&error);
        } else {
            status =
                write_cursor(store, cursor, request->json ? EVENT_OUTPUT_JSON : EVENT_OUTPUT_LINES,
                             request->limit, 0, &written_count);
            if (status == EXIT_STATUS_DONE && written_count == 0) {
                status = EXIT_STATUS_NOTHING;
            }
        }
    }
    return store_access_close(store, status);
}

static bool take_scan_option(struct scan_request *request, int option, const char *value)
{
    switch (option) {
    case 'n':
        return parse_number("-n", value, &request->limit);
    case OPTION_FROM_ID:
        return parse_number("--from-id", value, &request->options.from_id);
    case OPTION_TO_ID:
        return parse_number("--to-id", value, &request->options.to_id);
    case OPTION_STREAM:
        request->stream_name = value;
        return true;
    case OPTION_NEWEST_FIRST:
        request->options.newest_first = true;
        return true;
    case OPTION_JSON:
        request->json = true;
        return true;
    default:
        return false;
    }
}

enum exit_status verb_scan(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = SCAN_OPTIONS};
    struct scan_request request = {.directory = NULL};
    int option = 0;
    lahar_scan_options_init(&request.options);
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(SCAN_USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && request.directory == NULL) {
            request.directory = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL) {
            return complain_of_usage("scan", "too many arguments");
        } else if (option == ARGUMENT_WRONG ||
                   !take_scan_option(&request, option, arguments.value)) {
            return complain_of_usage("scan", NULL);
        }
    }
    return request.directory == NULL ? complain_of_usage("scan", "expected STORE") : scan(&request);
}
