/* lahar replay: the content before an event once more, and a REPLAY event. */
#include <inttypes.h>
#include <string.h>

#include "tools/complain.h"
#include "tools/content_access.h"
#include "tools/event_output.h"
#include "tools/json_line.h"
#include "tools/text_json.h"
#include "tools/time_text.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar replay STORE ID --content NAME=DIR... --out FILE [--queue QUEUE]\n"
    "                    [--stream NAME] [--json]\n\n"
    "Writes the content before a provenance event to a new file, records a REPLAY\n"
    "event, and shows the FlowFile to be put into the queue.\n\n"
    "  --content NAME=DIR  the directory of a content repository's container, in\n"
    "                      which content lies as SECTION/ID; any number of times\n"
    "  --out FILE          the file; - is standard output, the FlowFile then goes to\n"
    "                      standard error\n"
    "  --queue QUEUE       instead of the queue that the event names\n"
    "  --stream NAME       the stream; default provenance\n"
    "  --json              one JSON object\n\n"
    "exit status: 0 done, 1 no such event or it cannot be replayed, 2 usage, 3 I/O,\n"
    "5 another process writes the store\n";

enum {
    OPTION_QUEUE = CONTENT_OPTION_NEXT,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"content", CONTENT_OPTION_CONTENT, true},
    {"stream", CONTENT_OPTION_STREAM, true},
    {"out", CONTENT_OPTION_OUT, true},
    {"queue", OPTION_QUEUE, true},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

struct replay_request {
    struct content_access access; /* first: callbacks get a pointer to it */
    const char *queue;            /* NULL: the event's own */
    bool json;
};

static void print_json(FILE *file, const lahar_flowfile *flowfile, uint64_t event_id)
{
    char time[TIME_TEXT_SIZE];
    struct json_object *line = json_object_new_object();
    json_line_number(line, "event", event_id);
    (void)json_object_object_add(line, "uuid", text_json(flowfile->uuid));
    (void)json_object_object_add(line, "queue", text_json(flowfile->queue));
    json_line_number(line, "size", flowfile->size);
    time_text_exact(flowfile->entry_ns, time);
    json_line_string(line, "entry", time);
    if (flowfile->lineage_start_ns != LAHAR_PROV_NO_TIME) {
        time_text_exact(flowfile->lineage_start_ns, time);
        json_line_string(line, "lineage_start", time);
    }
    (void)json_object_object_add(line, "attributes",
                                 text_json_pairs(flowfile->attributes, flowfile->attribute_count));
    (void)fputs(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE),
                file);
    (void)fputc('\n', file);
    (void)json_object_put(line);
}

static void print_flowfile(const struct replay_request *request, const lahar_replay *replay)
{
    const lahar_flowfile *flowfile = lahar_replay_flowfile(replay);
    FILE *file = request->access.file == stdout ? stderr : stdout;
    if (request->json) {
        print_json(file, flowfile, lahar_replay_event_id(replay));
        return;
    }
    (void)fprintf(file,
                  "FlowFile %.*s, %" PRIu64 " bytes, for queue %.*s; REPLAY event %" PRIu64 "\n",
                  (int)flowfile->uuid.size, (const char *)flowfile->uuid.data, flowfile->size,
                  (int)flowfile->queue.size, (const char *)flowfile->queue.data,
                  lahar_replay_event_id(replay));
}

static enum exit_status replay_to_file(struct content_access *access, lahar_provenance *provenance)
{
    const struct replay_request *request = (const struct replay_request *)access;
    const lahar_bytes queue = {request->queue, request->queue == NULL ? 0 : strlen(request->queue)};
    lahar_error error = {.status = LAHAR_OK};
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_replay *replay = NULL;
    if (lahar_replay_run(provenance, access->id, queue, content_access_write, access, &replay,
                         &refusal, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    print_flowfile(request, replay);
    lahar_replay_close(replay);
    return EXIT_STATUS_DONE;
}

static bool take_option(struct content_access *access, int option, const char *value)
{
    struct replay_request *request = (struct replay_request *)access;
    switch (option) {
    case OPTION_QUEUE:
        request->queue = value;
        return true;
    case OPTION_JSON:
        request->json = true;
        return true;
    default:
        return false;
    }
}

static bool is_complete(const struct content_access *access)
{
    return access->out != NULL;
}

enum exit_status verb_replay(int argument_count, char **items)
{
    static const struct content_verb verb = {.name = "replay",
                                             .usage = USAGE,
                                             .expected = "expected STORE ID --out FILE",
                                             .specs = OPTIONS,
                                             .store = STORE_WRITE,
                                             .take_option = take_option,
                                             .is_complete = is_complete,
                                             .work = replay_to_file};
    struct replay_request request = {.access.stream_name = "provenance"};
    return content_access_run(&verb, &request.access, argument_count, items);
}
