/* lahar source: what is followed, and how far. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/event_output.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/time_text.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar source create STORE NAME PATH [OPTION]...\n"
    "       lahar source list   STORE [--json]\n"
    "       lahar source show   STORE NAME [--json]\n"
    "       lahar source peek   STORE NAME [-n N] [--consume] [--json]\n"
    "       lahar source pause|resume|drop STORE NAME\n"
    "       lahar source reset  STORE NAME [--file F] --to-start|--to-end|--offset N\n"
    "       lahar source verify STORE NAME [--json]\n\n"
    "A source is a file, a directory or a pattern (* ? [] ** {a,b} {1..9}) whose\n"
    "records 'lahar follow' takes into a stream, each once.\n\n"
    "create:\n"
    "  --format NAME         LineAsString (default) or another of lahar-ingest(1)\n"
    "  --stream NAME         the stream, created when there is none; default NAME\n"
    "  --dead-letter NAME    the stream of handle_error_mode dead_letter_queue\n"
    "  --regexp PATTERN      of the format Regexp, which it implies\n"
    "  --time-field NAME     the field that holds the event's time\n"
    "  --time-format F, --tz ZONE, --year N   how it is written; see lahar-ingest(1)\n"
    "  --root DIR            open nothing outside; relative paths begin here\n"
    "  --set SETTING=VALUE   a setting; also as --SETTING VALUE; lahar-source(1)\n"
    "  --if-not-exists       do nothing when there is a source of that name\n"
    "  --no-create           do not create the store\n"
    "peek shows the next records and takes none; with --consume they are passed over,\n"
    "all together, once they are written. reset moves the offset of one file, by path\n"
    "or name, or of all. verify reads the files again and compares.\n\n"
    "exit status: 0 done, 1 no such source, nothing to show, or files differ,\n"
    "2 usage, 3 I/O, 4 corrupt, 5 busy or locked\n";

enum {
    OPTION_FORMAT = OPTION_FIRST,
    OPTION_STREAM,
    OPTION_DEAD_LETTER,
    OPTION_TIME_FIELD,
    OPTION_REGEXP,
    OPTION_TIME_FORMAT,
    OPTION_TZ,
    OPTION_YEAR,
    OPTION_ROOT,
    OPTION_SET,
    OPTION_IF_NOT_EXISTS,
    OPTION_NO_CREATE,
    OPTION_JSON,
    OPTION_CONSUME,
    OPTION_FILE,
    OPTION_TO_START,
    OPTION_TO_END,
    OPTION_OFFSET,
    OPTION_SETTING /* the first; they go on in the order of SETTINGS */
};

#define SETTING_OPTION(index, name)                                                                \
    {                                                                                              \
        name, OPTION_SETTING + (index), true                                                       \
    }

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"limit", 'n', true},
    {"format", OPTION_FORMAT, true},
    {"stream", OPTION_STREAM, true},
    {"dead-letter", OPTION_DEAD_LETTER, true},
    {"time-field", OPTION_TIME_FIELD, true},
    {"regexp", OPTION_REGEXP, true},
    {"time-format", OPTION_TIME_FORMAT, true},
    {"tz", OPTION_TZ, true},
    {"year", OPTION_YEAR, true},
    {"root", OPTION_ROOT, true},
    {"set", OPTION_SET, true},
    {"if-not-exists", OPTION_IF_NOT_EXISTS, false},
    {"no-create", OPTION_NO_CREATE, false},
    {"json", OPTION_JSON, false},
    {"consume", OPTION_CONSUME, false},
    {"file", OPTION_FILE, true},
    {"to-start", OPTION_TO_START, false},
    {"to-end", OPTION_TO_END, false},
    {"offset", OPTION_OFFSET, true},
    SETTING_OPTION(0, "poll_timeout_ms"),
    SETTING_OPTION(1, "poll_max_batch_size"),
    SETTING_OPTION(2, "max_block_size"),
    SETTING_OPTION(3, "max_threads"),
    SETTING_OPTION(4, "poll_directory_watch_events_backoff_init"),
    SETTING_OPTION(5, "poll_directory_watch_events_backoff_max"),
    SETTING_OPTION(6, "poll_directory_watch_events_backoff_factor"),
    SETTING_OPTION(7, "handle_error_mode"),
    {NULL, 0, false},
};

/* In the order of their options. */
static const char *const SETTINGS[] = {
    "poll_timeout_ms",
    "poll_max_batch_size",
    "max_block_size",
    "max_threads",
    "poll_directory_watch_events_backoff_init",
    "poll_directory_watch_events_backoff_max",
    "poll_directory_watch_events_backoff_factor",
    "handle_error_mode",
};

static const char *const MODES[] = {"default", "stream", "dead_letter_queue", "skip", "stop"};
static const char *const STATES[] = {"",     "reading", "idle",  "rotated",
                                     "gone", "blocked", "stuck", "closed"};

struct source_request {
    const char *action;
    const char *directory;
    const char *name;
    const char *path;
    lahar_source_spec spec;
    bool if_not_exists;
    bool no_create;
    bool json;
    bool consume;
    uint64_t limit;
    const char *file;
    bool has_place;
    lahar_reset_to to;
    uint64_t offset;
    lahar_store *store;
    uint64_t shown_count;
};

static enum exit_status status_of(const lahar_error *error, lahar_status status)
{
    return status == LAHAR_OK ? EXIT_STATUS_DONE : complain_of(error);
}

/* --- create, list ---------------------------------------------------------------------- */

static enum exit_status create(struct source_request *request)
{
    lahar_error error = {.status = LAHAR_OK};
    enum exit_status status = store_access_open(
        request->directory, request->no_create ? STORE_WRITE : STORE_WRITE_OR_CREATE,
        &request->store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    request->spec.name = request->name;
    request->spec.path = request->path;
    const lahar_status created = lahar_source_create(request->store, &request->spec, &error);
    if (created == LAHAR_EXISTS && request->if_not_exists) {
        return store_access_close(request->store, EXIT_STATUS_DONE);
    }
    return store_access_close(request->store, status_of(&error, created));
}

static lahar_status print_source(void *context, const lahar_source_info *info)
{
    struct source_request *request = context;
    const lahar_source_spec *spec = &info->spec;
    request->shown_count++;
    if (!request->json) {
        (void)printf("%-20s %s  %s -> %s%s\n", spec->name, lahar_format_name(spec->format),
                     spec->path, spec->stream, info->is_paused ? "  (paused)" : "");
        return LAHAR_OK;
    }
    struct json_object *line = json_object_new_object();
    json_line_string(line, "source", spec->name);
    json_line_string(line, "path", spec->path);
    json_line_string(line, "root", spec->root);
    json_line_string(line, "format", lahar_format_name(spec->format));
    json_line_string(line, "stream", spec->stream);
    (void)json_object_object_add(line, "paused", json_object_new_boolean(info->is_paused));
    json_line_number(line, "poll_timeout_ms", spec->poll_timeout_ms);
    json_line_number(line, "poll_max_batch_size", spec->poll_max_batch_size);
    json_line_number(line, "max_block_size", spec->max_block_size);
    json_line_number(line, "max_threads", spec->max_threads);
    json_line_number(line, "poll_directory_watch_events_backoff_init",
                     spec->poll_directory_watch_events_backoff_init);
    json_line_number(line, "poll_directory_watch_events_backoff_max",
                     spec->poll_directory_watch_events_backoff_max);
    json_line_number(line, "poll_directory_watch_events_backoff_factor",
                     spec->poll_directory_watch_events_backoff_factor);
    json_line_string(line, "handle_error_mode", MODES[spec->handle_error_mode]);
    const char *at = spec->format_settings.text;
    const char *end = at + spec->format_settings.size;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        json_line_string(line, at, value);
        at = value + strlen(value) + 1;
    }
    json_line_print(line);
    return LAHAR_OK;
}

static enum exit_status list(struct source_request *request)
{
    lahar_error error = {.status = LAHAR_OK};
    return status_of(&error, lahar_source_list(request->store, print_source, request, &error));
}

/* --- show --------------------------------------------------------------------------------- */

static void print_file_json(const lahar_source_file *file)
{
    struct json_object *line = json_object_new_object();
    json_line_string(line, "path", file->path);
    json_line_number(line, "inode", file->inode);
    json_line_number(line, "generation", file->generation);
    json_line_number(line, "offset", file->offset);
    json_line_number(line, "durable_offset", file->durable_offset);
    if (file->has_size) {
        json_line_number(line, "size", file->size);
    } else {
        (void)json_object_object_add(line, "size", NULL);
    }
    json_line_number(line, "lag_bytes", file->lag);
    json_line_number(line, "records", file->record_count);
    json_line_number(line, "errors", file->error_count);
    json_line_number(line, "gap_bytes", file->gap_size);
    json_line_string(line, "state", STATES[file->state]);
    if (file->last_error[0] != '\0') {
        char time[TIME_TEXT_SIZE];
        time_text_short(file->last_error_ns, time);
        json_line_string(line, "last_error", file->last_error);
        json_line_string(line, "last_error_time", time);
    }
    json_line_print(line);
}

static lahar_status print_file(void *context, const lahar_source_file *file)
{
    struct source_request *request = context;
    request->shown_count++;
    if (request->json) {
        print_file_json(file);
        return LAHAR_OK;
    }
    (void)printf("%s\n  %s, generation %" PRIu64 ", inode %" PRIu64 "\n  offset %" PRIu64
                 ", durable %" PRIu64,
                 file->path, STATES[file->state], file->generation, file->inode, file->offset,
                 file->durable_offset);
    if (file->has_size) {
        (void)printf(", size %" PRIu64 ", lag %" PRIu64, file->size, file->lag);
    }
    (void)printf("\n  %" PRIu64 " records, %" PRIu64 " malformed, %" PRIu64
                 " bytes may have been lost\n",
                 file->record_count, file->error_count, file->gap_size);
    if (file->last_error[0] != '\0') {
        char time[TIME_TEXT_SIZE];
        time_text_short(file->last_error_ns, time);
        (void)printf("  %s %s\n", time, file->last_error);
    }
    return LAHAR_OK;
}

static enum exit_status show(struct source_request *request)
{
    lahar_error error = {.status = LAHAR_OK};
    return status_of(&error,
                     lahar_source_show(request->store, request->name, print_file, request, &error));
}

/* --- peek ------------------------------------------------------------------------------------ */

static lahar_status print_event(void *context, const lahar_event *event)
{
    return event_output_write(context, event) == EXIT_STATUS_DONE ? LAHAR_OK : LAHAR_CANCELLED;
}

static enum exit_status peek(struct source_request *request)
{
    struct event_output output;
    lahar_error error = {.status = LAHAR_OK};
    enum exit_status status = event_output_open(
        &output, request->store, request->json ? EVENT_OUTPUT_JSON : EVENT_OUTPUT_LINES);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    status = status_of(&error, lahar_source_peek(request->store, request->name, request->limit,
                                                 request->consume, print_event, &output, &error));
    if (status == EXIT_STATUS_DONE && output.written_count == 0) {
        status = EXIT_STATUS_NOTHING;
    }
    event_output_close(&output);
    return status;
}

/* --- the others --------------------------------------------------------------------------------
 */

static void print_difference(void *context, const char *path, const char *message)
{
    const struct source_request *request = context;
    if (!request->json) {
        (void)printf("%s: %s\n", path, message);
        return;
    }
    struct json_object *line = json_object_new_object();
    json_line_string(line, "path", path);
    json_line_string(line, "message", message);
    json_line_print(line);
}

static enum exit_status verify(struct source_request *request)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_source_check check = {.struct_size = sizeof check};
    const lahar_status verified = lahar_source_verify(request->store, request->name,
                                                      print_difference, request, &check, &error);
    if (verified != LAHAR_OK) {
        return complain_of(&error);
    }
    if (request->json) {
        struct json_object *line = json_object_new_object();
        json_line_number(line, "files", check.file_count);
        json_line_number(line, "missing", check.missing_count);
        json_line_number(line, "records", check.record_count);
        json_line_number(line, "differences", check.difference_count);
        json_line_print(line);
    } else {
        (void)printf("%" PRIu64 " files with %" PRIu64 " records compared, %" PRIu64
                     " not there, %" PRIu64 " differ\n",
                     check.file_count, check.record_count, check.missing_count,
                     check.difference_count);
    }
    return check.difference_count == 0 ? EXIT_STATUS_DONE : EXIT_STATUS_NOTHING;
}

static enum exit_status pause_source(struct source_request *request)
{
    lahar_error error = {.status = LAHAR_OK};
    const bool paused = strcmp(request->action, "pause") == 0;
    return status_of(&error, lahar_source_pause(request->store, request->name, paused, &error));
}

static enum exit_status drop(struct source_request *request)
{
    lahar_error error = {.status = LAHAR_OK};
    return status_of(&error, lahar_source_drop(request->store, request->name, &error));
}

static enum exit_status reset(struct source_request *request)
{
    lahar_error error = {.status = LAHAR_OK};
    return status_of(&error, lahar_source_reset(request->store, request->name, request->file,
                                                request->to, request->offset, &error));
}

/* --- arguments -----------------------------------------------------------------------------------
 */

static bool set_setting(struct source_request *request, const char *name, const char *value)
{
    lahar_error error = {.status = LAHAR_OK};
    if (lahar_source_spec_set(&request->spec, name, value, &error) == LAHAR_OK) {
        return true;
    }
    (void)complain_of(&error);
    return false;
}

static bool set_pair(struct source_request *request, const char *pair)
{
    char name[64];
    const size_t size = strcspn(pair, "=");
    if (pair[size] != '=' || size >= sizeof name) {
        complain("--set takes SETTING=VALUE, not '%s'", pair);
        return false;
    }
    memcpy(name, pair, size);
    name[size] = '\0';
    return set_setting(request, name, pair + size + 1);
}

static bool set_place(struct source_request *request, lahar_reset_to to)
{
    if (request->has_place) {
        complain("one of --to-start, --to-end and --offset");
        return false;
    }
    request->has_place = true;
    request->to = to;
    return true;
}

static bool take_create_option(struct source_request *request, int option, const char *value)
{
    lahar_error error = {.status = LAHAR_OK};
    switch (option) {
    case OPTION_FORMAT:
        if (lahar_format_find(value, &request->spec.format, &error) != LAHAR_OK) {
            (void)complain_of(&error);
            return false;
        }
        return true;
    case OPTION_STREAM:
        request->spec.stream = value;
        return true;
    case OPTION_DEAD_LETTER:
        request->spec.dead_letter = value;
        return true;
    case OPTION_TIME_FIELD:
        request->spec.time_field = value;
        return true;
    case OPTION_REGEXP:
        request->spec.format = LAHAR_FORMAT_REGEXP;
        return set_setting(request, "format_regexp", value);
    case OPTION_TIME_FORMAT:
        return set_setting(request, "time_format", value);
    case OPTION_TZ:
        return set_setting(request, "time_zone", value);
    case OPTION_YEAR:
        return set_setting(request, "year", value);
    case OPTION_ROOT:
        request->spec.root = value;
        return true;
    case OPTION_SET:
        return set_pair(request, value);
    case OPTION_IF_NOT_EXISTS:
        request->if_not_exists = true;
        return true;
    case OPTION_NO_CREATE:
        request->no_create = true;
        return true;
    default:
        return option >= OPTION_SETTING &&
               set_setting(request, SETTINGS[option - OPTION_SETTING], value);
    }
}

static bool take_option(struct source_request *request, int option, const char *value)
{
    switch (option) {
    case 'n':
        return parse_number("limit", value, &request->limit);
    case OPTION_JSON:
        request->json = true;
        return true;
    case OPTION_CONSUME:
        request->consume = true;
        return true;
    case OPTION_FILE:
        request->file = value;
        return true;
    case OPTION_TO_START:
        return set_place(request, LAHAR_RESET_TO_START);
    case OPTION_TO_END:
        return set_place(request, LAHAR_RESET_TO_END);
    case OPTION_OFFSET:
        return set_place(request, LAHAR_RESET_TO_OFFSET) &&
               parse_number("offset", value, &request->offset);
    default:
        return take_create_option(request, option, value);
    }
}

struct action {
    const char *name;
    size_t argument_count;
    enum store_access access;
    enum exit_status (*run)(struct source_request *request);
};

static const struct action ACTIONS[] = {
    {"list", 2, STORE_READ, list},           {"show", 3, STORE_READ, show},
    {"peek", 3, STORE_READ, peek},           {"verify", 3, STORE_READ, verify},
    {"pause", 3, STORE_WRITE, pause_source}, {"resume", 3, STORE_WRITE, pause_source},
    {"reset", 3, STORE_WRITE, reset},        {"drop", 3, STORE_WRITE, drop},
};

static enum exit_status act(struct source_request *request, size_t argument_count)
{
    for (size_t i = 0; i < sizeof ACTIONS / sizeof ACTIONS[0]; i++) {
        const struct action *action = &ACTIONS[i];
        if (strcmp(request->action, action->name) != 0) {
            continue;
        }
        if (argument_count != action->argument_count) {
            break;
        }
        if (action->run == reset && !request->has_place) {
            return complain_of_usage("source", "reset needs --to-start, --to-end or --offset N");
        }
        const enum exit_status status = store_access_open(
            request->directory, request->consume ? STORE_WRITE : action->access, &request->store);
        return status != EXIT_STATUS_DONE
                   ? status
                   : store_access_close(request->store, action->run(request));
    }
    return complain_of_usage("source", "expected an action, STORE and what it needs");
}

enum exit_status verb_source(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct source_request request = {.limit = 100};
    const char **const places[] = {&request.action, &request.directory, &request.name,
                                   &request.path};
    size_t place = 0;
    int option = 0;
    lahar_source_spec_init(&request.spec);
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && place < 4) {
            *places[place++] = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL) {
            return complain_of_usage("source", "too many arguments");
        } else if (option == ARGUMENT_WRONG || !take_option(&request, option, arguments.value)) {
            return complain_of_usage("source", NULL);
        }
    }
    if (place == 0) {
        return complain_of_usage("source", "expected an action");
    }
    if (strcmp(request.action, "create") == 0) {
        return place == 4 ? create(&request)
                          : complain_of_usage("source", "expected create STORE NAME PATH");
    }
    return act(&request, place);
}
