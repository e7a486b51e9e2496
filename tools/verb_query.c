/* lahar query: search. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/event_output.h"
#include "tools/facet_output.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/time_text.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar query STORE [EXPR] [OPTION]...\n\n"
    "Shows the events that match EXPR, all without one, the newest first. EXPR may\n"
    "begin with '-'; '--' ends options. The language: docs/query.md, lahar-query(1).\n\n"
    "  lahar query STORE 'type=RECEIVE filename:*abc* NOT level:DEBUG' --last 24h\n\n"
    "  --stream NAME   only this stream\n"
    "  --last TIME     only the last 90s, 15m, 1h30m, 7d (by event time)\n"
    "  --from TIME     event time from here on: 2024-05-17, 2024-05-17T09:30:00Z,\n"
    "  --to TIME       and before here; now-1h, @1715900000\n"
    "  --tz ZONE       of times that name none: UTC (default), +02:00, Europe/Berlin\n"
    "  -n, --limit N   at most N events; default 100, 0 for no limit\n"
    "  --order ORDER   -id (default), id, -time or time\n"
    "  --count HOW     exact (default), atleast:N, none, or only: the number alone\n"
    "  --facet FIELD[:N]  the N most frequent values of a field, default 10, 0: all;\n"
    "                  may be given several times; no events are shown without -n\n"
    "  --histogram D   how many events each 1h, 10m, ... by event time\n"
    "  --cursor TEXT   go on behind an earlier answer; all else as it was then\n"
    "  --explain       show how the query is answered instead of answering it\n"
    "  --json          one JSON object an event, then total and cursor\n\n"
    "exit status: 0 found (with --count only, always), 1 nothing found, 2 usage,\n"
    "3 I/O, 4 damage may have hidden events, 5 busy\n";

enum {
    OPTION_STREAM = OPTION_FIRST,
    OPTION_LAST,
    OPTION_FROM,
    OPTION_TO,
    OPTION_TZ,
    OPTION_ORDER,
    OPTION_COUNT,
    OPTION_FACET,
    OPTION_HISTOGRAM,
    OPTION_CURSOR,
    OPTION_EXPLAIN,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"limit", 'n', true},
    {"stream", OPTION_STREAM, true},
    {"last", OPTION_LAST, true},
    {"from", OPTION_FROM, true},
    {"to", OPTION_TO, true},
    {"tz", OPTION_TZ, true},
    {"order", OPTION_ORDER, true},
    {"count", OPTION_COUNT, true},
    {"facet", OPTION_FACET, true},
    {"histogram", OPTION_HISTOGRAM, true},
    {"cursor", OPTION_CURSOR, true},
    {"explain", OPTION_EXPLAIN, false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

enum {
    LIMIT_DEFAULT = 100,
    FACETS_MAX = 16,
    FACET_VALUES_DEFAULT = 10
};

struct facet_request {
    char name[256];
    uint64_t limit;
};

struct query_request {
    const char *directory;
    const char *expression;
    const char *stream_name; /* NULL: all */
    lahar_query_options options;
    int64_t now_ns;
    const char *from; /* as given; NULL: open */
    const char *to;
    struct facet_request facets[FACETS_MAX];
    size_t facet_count;
    const char *histogram; /* as given; NULL: none */
    uint64_t histogram_ns;
    bool has_limit; /* -n was given */
    bool explain;
    bool json;
};

static bool parse_order(const char *text, lahar_order *order_out)
{
    static const char *const NAMES[] = {"-id", "id", "-time", "time"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, NAMES[i]) == 0) {
            *order_out = (lahar_order)i;
            return true;
        }
    }
    complain("--order: '%s' is none of -id, id, -time, time", text);
    return false;
}

static bool parse_count(const char *text, lahar_query_options *options)
{
    static const char AT_LEAST[] = "atleast:";
    if (strcmp(text, "exact") == 0) {
        options->count = LAHAR_COUNT_EXACT;
    } else if (strcmp(text, "none") == 0) {
        options->count = LAHAR_COUNT_NONE;
    } else if (strcmp(text, "only") == 0) {
        options->count = LAHAR_COUNT_ONLY;
    } else if (strncmp(text, AT_LEAST, sizeof AT_LEAST - 1) == 0) {
        options->count = LAHAR_COUNT_AT_LEAST;
        return parse_number("--count", text + sizeof AT_LEAST - 1, &options->count_limit);
    } else {
        complain("--count: '%s' is none of exact, atleast:N, none, only", text);
        return false;
    }
    return true;
}

/* In the zone asked for, as the expression's times are. */
static bool parse_time(const struct query_request *request, lahar_store *store, const char *option,
                       const char *text, int64_t *time_ns_out)
{
    int64_t end_ns = 0;
    lahar_error error = {.status = LAHAR_OK};
    if (request->options.time_zone == NULL) {
        if (time_text_parse(text, request->now_ns, time_ns_out)) {
            return true;
        }
    } else if (lahar_query_time(store, text, request->options.time_zone, request->now_ns,
                                time_ns_out, &end_ns, &error) == LAHAR_OK) {
        return true;
    }
    complain("%s: '%s' is not a time; try 2024-05-17, 2024-05-17T09:30:00Z or now-1h%s%s", option,
             text, error.status == LAHAR_OK ? "" : ": ", error.message);
    return false;
}

static bool parse_bounds(struct query_request *request, lahar_store *store)
{
    return (request->from == NULL ||
            parse_time(request, store, "--from", request->from, &request->options.from_ns)) &&
           (request->to == NULL ||
            parse_time(request, store, "--to", request->to, &request->options.to_ns));
}

static bool parse_last(struct query_request *request, const char *text)
{
    uint64_t duration_ns = 0;
    if (!time_text_parse_duration(text, &duration_ns) || duration_ns > INT64_MAX) {
        complain("--last: '%s' is not a duration; try 90s, 15m, 1h30m or 7d", text);
        return false;
    }
    if (__builtin_sub_overflow(request->now_ns, (int64_t)duration_ns, &request->options.from_ns)) {
        request->options.from_ns = INT64_MIN;
    }
    return true;
}

/* FIELD, or FIELD:N. */
static bool parse_facet(struct query_request *request, const char *text)
{
    struct facet_request *facet = &request->facets[request->facet_count];
    const char *colon = strrchr(text, ':');
    const bool has_limit =
        colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1);
    const size_t size = has_limit ? (size_t)(colon - text) : strlen(text);
    if (request->facet_count == FACETS_MAX || size == 0 || size >= sizeof facet->name) {
        complain("--facet: '%s' is %s", text,
                 request->facet_count == FACETS_MAX ? "one too many" : "not a field");
        return false;
    }
    memcpy(facet->name, text, size);
    facet->name[size] = '\0';
    facet->limit = FACET_VALUES_DEFAULT;
    request->facet_count++;
    return !has_limit || parse_number("--facet", colon + 1, &facet->limit);
}

static bool parse_histogram(struct query_request *request, const char *text)
{
    request->histogram = text;
    if (!time_text_parse_duration(text, &request->histogram_ns) || request->histogram_ns == 0 ||
        request->histogram_ns > INT64_MAX) {
        complain("--histogram: '%s' is not a duration; try 10s, 15m, 1h or 1d", text);
        return false;
    }
    return true;
}

static bool take_option(struct query_request *request, int option, const char *value)
{
    switch (option) {
    case 'n':
        request->has_limit = true;
        return parse_number("-n", value, &request->options.limit);
    case OPTION_STREAM:
        request->stream_name = value;
        return true;
    case OPTION_LAST:
        return parse_last(request, value);
    case OPTION_FROM:
        request->from = value;
        return true;
    case OPTION_TO:
        request->to = value;
        return true;
    case OPTION_TZ:
        request->options.time_zone = value;
        return true;
    case OPTION_ORDER:
        return parse_order(value, &request->options.order);
    case OPTION_COUNT:
        return parse_count(value, &request->options);
    case OPTION_FACET:
        return parse_facet(request, value);
    case OPTION_HISTOGRAM:
        return parse_histogram(request, value);
    case OPTION_CURSOR:
        request->options.resume = value;
        return true;
    case OPTION_EXPLAIN:
        request->explain = true;
        return true;
    case OPTION_JSON:
        request->json = true;
        return true;
    default:
        return false;
    }
}

/* A caret under the byte at fault, when the message is about the expression. */
static enum exit_status complain_of_expression(const struct query_request *request,
                                               const lahar_error *error)
{
    const enum exit_status status = complain_of(error);
    if (error->status == LAHAR_INVALID && error->offset <= strlen(request->expression) &&
        request->expression[0] != '\0' && strpbrk(request->expression, "\n\r\t\033") == NULL) {
        (void)fprintf(stderr, "  %s\n  %*s^\n", request->expression, (int)error->offset, "");
    }
    return status;
}

static void print_total(const struct query_request *request, lahar_query *query,
                        const lahar_query_result *result, uint64_t written_count)
{
    static const char *const RELATIONS[] = {"=", ">=", "?"};
    const int relation = (int)result->relation;
    const char *relation_text = relation >= 0 && relation <= 2 ? RELATIONS[relation] : "?";
    if (request->json) {
        struct json_object *line = json_object_new_object();
        const char *token = lahar_query_resume_token(query);
        json_line_number(line, "total", result->total);
        json_line_string(line, "relation", relation_text);
        json_line_string(line, "cursor", token == NULL ? "" : token);
        if (result->is_partial) {
            (void)json_object_object_add(line, "partial", json_object_new_boolean(true));
        }
        json_line_print(line);
    } else if (result->relation != LAHAR_RELATION_UNKNOWN && written_count < result->total) {
        complain("%" PRIu64 " of %s%" PRIu64 " events; -n shows more", written_count,
                 result->relation == LAHAR_RELATION_EXACT ? "" : "at least ", result->total);
    }
}

static lahar_status next_event(void *query, const lahar_event **event_out, lahar_error *error)
{
    return lahar_query_next(query, event_out, error);
}

static enum exit_status write_groups(const struct query_request *request, lahar_query *query)
{
    lahar_error error = {.status = LAHAR_OK};
    for (size_t i = 0; i < request->facet_count; i++) {
        const struct facet_request *wanted = &request->facets[i];
        lahar_facet facet = {.struct_size = sizeof facet};
        if (lahar_query_facet(query, wanted->name, wanted->limit, &facet, &error) != LAHAR_OK) {
            return complain_of(&error);
        }
        facet_output_values(wanted->name, &facet, request->json);
    }
    if (request->histogram != NULL) {
        const lahar_histogram_bucket *buckets = NULL;
        size_t count = 0;
        if (lahar_query_histogram(query, (int64_t)request->histogram_ns, &buckets, &count,
                                  &error) != LAHAR_OK) {
            return complain_of(&error);
        }
        facet_output_histogram(request->histogram, (int64_t)request->histogram_ns, buckets, count,
                               request->json);
    }
    return EXIT_STATUS_DONE;
}

static enum exit_status answer(const struct query_request *request, lahar_store *store,
                               lahar_query *query)
{
    struct event_output output;
    lahar_error error = {.status = LAHAR_OK};
    lahar_query_result result = {.struct_size = sizeof result};
    enum exit_status status =
        event_output_open(&output, store, request->json ? EVENT_OUTPUT_JSON : EVENT_OUTPUT_LINES);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    const bool has_groups = request->facet_count != 0 || request->histogram != NULL;
    /* Where only a count is asked for, what is lost still is told here. */
    if (!has_groups || request->has_limit) {
        status = event_output_write_all(&output, next_event, query, 0);
    }
    if (status == EXIT_STATUS_DONE || status == EXIT_STATUS_CORRUPT) {
        const enum exit_status grouped = write_groups(request, query);
        status = grouped == EXIT_STATUS_DONE ? status : grouped;
    }
    if (status == EXIT_STATUS_DONE || status == EXIT_STATUS_CORRUPT) {
        if (lahar_query_result_get(query, &result, &error) != LAHAR_OK) {
            status = complain_of(&error);
        } else if (request->options.count == LAHAR_COUNT_ONLY) {
            (void)printf("%" PRIu64 "\n", result.total);
        } else if (request->json || !has_groups || request->has_limit) {
            print_total(request, query, &result, output.written_count);
        }
        if (status == EXIT_STATUS_DONE && result.is_partial) {
            complain("the answer is partial: %u index shards could not be read",
                     result.shards_failed);
            status = EXIT_STATUS_CORRUPT;
        }
    }
    const bool shows_events = !has_groups || request->has_limit;
    if (status == EXIT_STATUS_DONE &&
        (shows_events ? output.written_count == 0 : result.total == 0) &&
        request->options.count != LAHAR_COUNT_ONLY) {
        status = EXIT_STATUS_NOTHING;
    }
    event_output_close(&output);
    return status;
}

static enum exit_status explain(const struct query_request *request, lahar_query *query)
{
    const char *text = lahar_query_explain(query);
    if (request->json) {
        struct json_object *line = json_object_new_object();
        json_line_string(line, "explain", text == NULL ? "" : text);
        json_line_print(line);
    } else {
        (void)fputs(text == NULL ? "" : text, stdout);
    }
    return EXIT_STATUS_DONE;
}

static void cancel(void *query)
{
    lahar_query_cancel(query);
}

static enum exit_status run(struct query_request *request)
{
    lahar_store *store = NULL;
    lahar_query *query = NULL;
    lahar_error error = {.status = LAHAR_OK};
    enum exit_status status = store_access_open(request->directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    status = parse_bounds(request, store)
                 ? store_access_stream(store, request->stream_name, &request->options.stream)
                 : complain_of_usage("query", NULL);
    if (status == EXIT_STATUS_DONE &&
        lahar_query_open(store, request->expression, strlen(request->expression), &request->options,
                         &query, &error) != LAHAR_OK) {
        status = complain_of_expression(request, &error);
    }
    if (query != NULL) {
        interrupt_set_callback(cancel, query);
        status = request->explain ? explain(request, query) : answer(request, store, query);
        interrupt_set_callback(NULL, NULL);
        lahar_query_close(query);
    }
    return store_access_close(store, status);
}

enum exit_status verb_query(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct query_request request = {.now_ns = time_text_now_ns()};
    int option = 0;
    lahar_query_options_init(&request.options);
    request.options.limit = LIMIT_DEFAULT;
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
            return complain_of_usage("query", "more than one EXPR; quote it as one argument");
        } else if (option == ARGUMENT_WRONG || !take_option(&request, option, arguments.value)) {
            return complain_of_usage("query", NULL);
        }
    }
    if (request.directory == NULL) {
        return complain_of_usage("query", "expected STORE [EXPR]");
    }
    if (request.expression == NULL) {
        request.expression = "";
    }
    return run(&request);
}
