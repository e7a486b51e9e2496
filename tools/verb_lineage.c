/* lahar lineage: where a FlowFile came from and what became of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/event_output.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/text_json.h"
#include "tools/time_text.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar lineage STORE UUID|ID [--depth N|all] [--ancestors] [--descendants]\n"
    "                     [--parents|--children|--sent] [--from T] [--to T] [-n N]\n"
    "                     [--stream NAME] [--format tree|json|dot|mermaid|prov-json]\n\n"
    "Shows the events of a FlowFile (by its uuid) or of an event's FlowFile (by the\n"
    "event's id) as a graph, as NiFi draws it.\n\n"
    "  --depth N        follow N generations to parents and to children; all: as far\n"
    "                   as events go; default 0, the FlowFile alone\n"
    "  --ancestors      follow parents only, all generations unless --depth says less\n"
    "  --descendants    the same with children\n"
    "  --parents        of event ID: the events of its parents alone\n"
    "  --children       the same with its children\n"
    "  --sent           when, to where and as what UUID was sent, or that it never\n"
    "                   was, as far back as events are held\n"
    "  --from T, --to T only events of this time, half open\n"
    "  -n, --limit N    at most N events; default 1,000,000\n"
    "  --stream NAME    the stream; default provenance\n"
    "  --format F       tree (default), json, dot, mermaid or prov-json\n"
    "  --json           as --format json\n\n"
    "exit status: 0 done, 1 nothing found, 2 usage, 3 I/O, 4 damage cost some events\n";

enum {
    OPTION_DEPTH = OPTION_FIRST,
    OPTION_ANCESTORS,
    OPTION_DESCENDANTS,
    OPTION_PARENTS,
    OPTION_CHILDREN,
    OPTION_SENT,
    OPTION_FROM,
    OPTION_TO,
    OPTION_STREAM,
    OPTION_FORMAT,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"limit", 'n', true},
    {"depth", OPTION_DEPTH, true},
    {"ancestors", OPTION_ANCESTORS, false},
    {"descendants", OPTION_DESCENDANTS, false},
    {"parents", OPTION_PARENTS, false},
    {"children", OPTION_CHILDREN, false},
    {"sent", OPTION_SENT, false},
    {"from", OPTION_FROM, true},
    {"to", OPTION_TO, true},
    {"stream", OPTION_STREAM, true},
    {"format", OPTION_FORMAT, true},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

struct lineage_request {
    const char *directory;
    const char *start;
    const char *stream_name;
    lahar_lineage_options options;
    lahar_lineage_format format;
    uint64_t depth;
    bool has_depth;
    bool ancestors;
    bool descendants;
    bool sent;
};

static void cancel(void *lineage)
{
    lahar_lineage_cancel(lineage);
}

static enum exit_status print_graph(const struct lineage_request *request, lahar_lineage *lineage,
                                    enum exit_status status)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_bytes text = {.data = NULL, .size = 0};
    lahar_lineage_graph graph = {.struct_size = sizeof graph};
    lahar_lineage_graph_get(lineage, &graph);
    if (lahar_lineage_format_text(lineage, request->format, &text, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    (void)fwrite(text.data, 1, text.size, stdout);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (graph.problem != NULL) {
        complain("%s", graph.problem);
    }
    return graph.event_count == 0 ? EXIT_STATUS_NOTHING : EXIT_STATUS_DONE;
}

static enum exit_status draw(const struct lineage_request *request, lahar_provenance *provenance)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_lineage *lineage = NULL;
    if (lahar_lineage_start(provenance, &request->options, &lineage, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    interrupt_set_callback(cancel, lineage);
    const lahar_status waited = lahar_lineage_wait(lineage, LAHAR_WAIT_FOREVER, &error);
    interrupt_set_callback(NULL, NULL);
    enum exit_status status = EXIT_STATUS_DONE;
    if (waited == LAHAR_CORRUPT) {
        status = print_graph(request, lineage, complain_of(&error));
    } else if (waited != LAHAR_OK) {
        status = complain_of(&error);
    } else {
        status = print_graph(request, lineage, EXIT_STATUS_DONE);
    }
    lahar_lineage_close(lineage);
    return status;
}

/* --- what was sent -------------------------------------------------------------------------- */

static lahar_bytes find_attribute(const lahar_prov_record *record, const char *name)
{
    size_t count = 0;
    const lahar_pair *pairs = lahar_prov_record_effective(record, &count);
    for (size_t i = 0; i < count; i++) {
        if (pairs[i].key.size == strlen(name) &&
            memcmp(pairs[i].key.data, name, pairs[i].key.size) == 0) {
            return pairs[i].value;
        }
    }
    return (lahar_bytes){NULL, 0};
}

static void print_sent_json(const lahar_prov_record *record)
{
    const lahar_prov_event *event = lahar_prov_record_event(record);
    size_t count = 0;
    const lahar_pair *pairs = lahar_prov_record_effective(record, &count);
    char time[TIME_TEXT_SIZE];
    struct json_object *line = json_object_new_object();
    time_text_exact(event->time_ns, time);
    json_line_number(line, "event", event->id);
    json_line_string(line, "time", time);
    (void)json_object_object_add(line, "type", text_json(event->type_name));
    (void)json_object_object_add(line, "transit_uri", text_json(event->transit_uri));
    (void)json_object_object_add(line, "filename", text_json(find_attribute(record, "filename")));
    (void)json_object_object_add(line, "attributes", text_json_pairs(pairs, count));
    json_line_print(line);
}

static lahar_status print_sent(void *context, const lahar_prov_record *record)
{
    const struct lineage_request *request = context;
    const lahar_prov_event *event = lahar_prov_record_event(record);
    char time[TIME_TEXT_SIZE];
    if (request->format == LAHAR_LINEAGE_JSON) {
        print_sent_json(record);
        return LAHAR_OK;
    }
    size_t count = 0;
    const lahar_pair *pairs = lahar_prov_record_effective(record, &count);
    const lahar_bytes filename = find_attribute(record, "filename");
    time_text_short(event->time_ns, time);
    (void)printf("%s event %" PRIu64 " ", time, event->id);
    event_output_text(event->type_name);
    (void)fputs(" to ", stdout);
    event_output_text(event->transit_uri);
    (void)fputs(" as ", stdout);
    event_output_text(filename.data == NULL ? (lahar_bytes){"(no filename)", 13} : filename);
    (void)fputc('\n', stdout);
    for (size_t i = 0; i < count; i++) {
        (void)fputs("  ", stdout);
        event_output_text(pairs[i].key);
        (void)fputs("=", stdout);
        event_output_text(pairs[i].value);
        (void)fputc('\n', stdout);
    }
    return LAHAR_OK;
}

static void print_never(const struct lineage_request *request, const lahar_prov_sent *sent)
{
    char time[TIME_TEXT_SIZE];
    if (sent->has_events) {
        time_text_short(sent->earliest_time_ns, time);
    }
    if (request->format == LAHAR_LINEAGE_JSON) {
        struct json_object *line = json_object_new_object();
        json_line_number(line, "sent", sent->sent_count);
        (void)json_object_object_add(line, "exact", json_object_new_boolean(!sent->is_partial));
        if (sent->has_events) {
            json_line_number(line, "earliest_event", sent->earliest_id);
            json_line_string(line, "earliest_time", time);
        }
        json_line_print(line);
    } else if (sent->sent_count == 0 && !sent->has_events) {
        (void)printf("never sent: no event is held at all\n");
    } else if (sent->sent_count == 0) {
        (void)printf("%s, as far as events are held: the earliest is event %" PRIu64 " of %s\n",
                     sent->is_partial ? "not seen sent (some events cannot be read)" : "never sent",
                     sent->earliest_id, time);
    }
}

static enum exit_status tell_sent(struct lineage_request *request, lahar_provenance *provenance)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_prov_sent sent = {.struct_size = sizeof sent};
    const lahar_bytes uuid = {request->start, strlen(request->start)};
    if (lahar_prov_sent_of(provenance, uuid, print_sent, request, &sent, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    print_never(request, &sent);
    return sent.is_partial        ? EXIT_STATUS_CORRUPT
           : sent.sent_count == 0 ? EXIT_STATUS_NOTHING
                                  : EXIT_STATUS_DONE;
}

/* --- arguments -------------------------------------------------------------------------------- */

static enum exit_status run(struct lineage_request *request)
{
    lahar_store *store = NULL;
    lahar_provenance *provenance = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_provenance_options options;
    enum exit_status status = store_access_open(request->directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    lahar_provenance_options_init(&options);
    options.stream = request->stream_name;
    if (lahar_provenance_open(store, &options, &provenance, &error) != LAHAR_OK) {
        status = complain_of(&error);
    } else {
        status = request->sent ? tell_sent(request, provenance) : draw(request, provenance);
    }
    lahar_provenance_close(provenance);
    return store_access_close(store, status);
}

static bool parse_format(const char *text, lahar_lineage_format *format_out)
{
    static const char *const NAMES[] = {"tree", "json", "dot", "mermaid", "prov-json"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(text, NAMES[i]) == 0) {
            *format_out = (lahar_lineage_format)i;
            return true;
        }
    }
    complain("--format: '%s' is none of tree, json, dot, mermaid, prov-json", text);
    return false;
}

static bool parse_time(const char *option, const char *text, int64_t *time_ns_out)
{
    if (time_text_parse(text, time_text_now_ns(), time_ns_out)) {
        return true;
    }
    complain("%s: '%s' is not a time; try 2024-05-17, 2024-05-17T09:30:00Z or now-1h", option,
             text);
    return false;
}

static bool parse_depth(struct lineage_request *request, const char *text)
{
    request->has_depth = true;
    if (strcmp(text, "all") == 0) {
        request->depth = LAHAR_LINEAGE_ALL;
        return true;
    }
    return parse_number("--depth", text, &request->depth);
}

static bool take_option(struct lineage_request *request, int option, const char *value)
{
    switch (option) {
    case 'n':
        return parse_number("-n", value, &request->options.event_max);
    case OPTION_DEPTH:
        return parse_depth(request, value);
    case OPTION_ANCESTORS:
        request->ancestors = true;
        return true;
    case OPTION_DESCENDANTS:
        request->descendants = true;
        return true;
    case OPTION_PARENTS:
        request->options.kind = LAHAR_LINEAGE_EXPAND_PARENTS;
        return true;
    case OPTION_CHILDREN:
        request->options.kind = LAHAR_LINEAGE_EXPAND_CHILDREN;
        return true;
    case OPTION_SENT:
        request->sent = true;
        return true;
    case OPTION_FROM:
        return parse_time("--from", value, &request->options.from_ns);
    case OPTION_TO:
        return parse_time("--to", value, &request->options.to_ns);
    case OPTION_STREAM:
        request->stream_name = value;
        return true;
    case OPTION_FORMAT:
        return parse_format(value, &request->format);
    case OPTION_JSON:
        request->format = LAHAR_LINEAGE_JSON;
        return true;
    default:
        return false;
    }
}

/* Digits alone are an event's id, anything else names a FlowFile. */
static bool settle(struct lineage_request *request)
{
    lahar_lineage_options *options = &request->options;
    const bool is_id = strspn(request->start, "0123456789") == strlen(request->start) &&
                       strlen(request->start) <= 20;
    uint32_t depth =
        request->depth > LAHAR_LINEAGE_ALL ? LAHAR_LINEAGE_ALL : (uint32_t)request->depth;
    const bool is_directed = request->ancestors || request->descendants;
    if (is_directed && !request->has_depth) {
        depth = LAHAR_LINEAGE_ALL;
    }
    options->ancestor_depth = !is_directed || request->ancestors ? depth : 0;
    options->descendant_depth = !is_directed || request->descendants ? depth : 0;
    if (is_id && !request->sent) {
        options->kind =
            options->kind == LAHAR_LINEAGE_FLOWFILE ? LAHAR_LINEAGE_EVENT : options->kind;
        return parse_number("ID", request->start, &options->id);
    }
    if (options->kind != LAHAR_LINEAGE_FLOWFILE) {
        complain("--parents and --children need an event's ID");
        return false;
    }
    options->uuid = (lahar_bytes){request->start, strlen(request->start)};
    return true;
}

enum exit_status verb_lineage(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct lineage_request request = {.stream_name = "provenance"};
    int option = 0;
    lahar_lineage_options_init(&request.options);
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && request.directory == NULL) {
            request.directory = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL && request.start == NULL) {
            request.start = arguments.value;
        } else if (option == ARGUMENT_WRONG || option == ARGUMENT_POSITIONAL ||
                   !take_option(&request, option, arguments.value)) {
            return complain_of_usage("lineage", NULL);
        }
    }
    if (request.start == NULL || request.start[0] == '\0') {
        return complain_of_usage("lineage", "expected STORE UUID|ID");
    }
    return settle(&request) ? run(&request) : complain_of_usage("lineage", NULL);
}
