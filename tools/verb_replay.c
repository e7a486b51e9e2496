/* lahar replay: the content before an event once more, and a REPLAY event. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/content_option.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
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
    OPTION_CONTENT = OPTION_FIRST,
    OPTION_OUT,
    OPTION_QUEUE,
    OPTION_STREAM,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"content", OPTION_CONTENT, true},
    {"out", OPTION_OUT, true},
    {"queue", OPTION_QUEUE, true},
    {"stream", OPTION_STREAM, true},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

struct replay_request {
    const char *directory;
    const char *stream_name;
    const char *out;
    const char *queue; /* NULL: the event's own */
    uint64_t id;
    bool has_id;
    bool json;
    struct content_option content;
    FILE *file;
};

static lahar_status write_some(void *context, const void *data, size_t size)
{
    return fwrite(data, 1, size, context) == size ? LAHAR_OK : LAHAR_IO;
}

static struct json_object *text_of(lahar_bytes bytes)
{
    return bytes.data == NULL ? NULL : json_object_new_string_len(bytes.data, (int)bytes.size);
}

static void print_json(FILE *file, const lahar_flowfile *flowfile, uint64_t event_id)
{
    char time[TIME_TEXT_SIZE];
    struct json_object *line = json_object_new_object();
    struct json_object *attributes = json_object_new_object();
    json_line_number(line, "event", event_id);
    (void)json_object_object_add(line, "uuid", text_of(flowfile->uuid));
    (void)json_object_object_add(line, "queue", text_of(flowfile->queue));
    json_line_number(line, "size", flowfile->size);
    time_text_exact(flowfile->entry_ns, time);
    json_line_string(line, "entry", time);
    if (flowfile->lineage_start_ns != LAHAR_PROV_NO_TIME) {
        time_text_exact(flowfile->lineage_start_ns, time);
        json_line_string(line, "lineage_start", time);
    }
    for (size_t i = 0; i < flowfile->attribute_count; i++) {
        const lahar_pair *pair = &flowfile->attributes[i];
        char key[LAHAR_NAME_SIZE_MAX + 1];
        const size_t size = pair->key.size < sizeof key ? pair->key.size : sizeof key - 1;
        memcpy(key, pair->key.data, size);
        key[size] = '\0';
        (void)json_object_object_add(attributes, key, text_of(pair->value));
    }
    (void)json_object_object_add(line, "attributes", attributes);
    (void)fputs(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE),
                file);
    (void)fputc('\n', file);
    (void)json_object_put(line);
}

static void print_flowfile(const struct replay_request *request, const lahar_replay *replay)
{
    const lahar_flowfile *flowfile = lahar_replay_flowfile(replay);
    FILE *file = request->file == stdout ? stderr : stdout;
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

static enum exit_status replay_to_file(struct replay_request *request, lahar_provenance *provenance)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    lahar_replay *replay = NULL;
    const lahar_bytes queue = {request->queue, request->queue == NULL ? 0 : strlen(request->queue)};
    const bool is_file = strcmp(request->out, "-") != 0;
    request->file = is_file ? fopen(request->out, "wxe") : stdout;
    if (request->file == NULL) {
        complain("%s: %s", request->out, strerror(errno));
        return EXIT_STATUS_IO;
    }
    enum exit_status status = EXIT_STATUS_DONE;
    if (lahar_replay_run(provenance, request->id, queue, write_some, request->file, &replay,
                         &refusal, &error) != LAHAR_OK) {
        status = complain_of(&error);
    }
    if (is_file && fclose(request->file) != 0 && status == EXIT_STATUS_DONE) {
        complain("%s: %s; the REPLAY event %" PRIu64 " is recorded", request->out, strerror(errno),
                 lahar_replay_event_id(replay));
        status = EXIT_STATUS_IO;
    }
    if (status == EXIT_STATUS_DONE) {
        print_flowfile(request, replay);
    } else if (is_file) {
        (void)remove(request->out);
    }
    lahar_replay_close(replay);
    return status;
}

static enum exit_status run(struct replay_request *request)
{
    lahar_store *store = NULL;
    lahar_provenance *provenance = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_provenance_options options;
    uint32_t stream = 0;
    enum exit_status status = store_access_open(request->directory, STORE_WRITE, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    lahar_provenance_options_init(&options);
    options.stream = request->stream_name;
    options.containers = request->content.containers;
    options.container_count = request->content.count;
    status = store_access_stream(store, request->stream_name, &stream);
    if (status == EXIT_STATUS_DONE) {
        status = lahar_provenance_open(store, &options, &provenance, &error) == LAHAR_OK
                     ? replay_to_file(request, provenance)
                     : complain_of(&error);
    }
    lahar_provenance_close(provenance);
    return store_access_close(store, status);
}

static bool take_option(struct replay_request *request, int option, const char *value)
{
    switch (option) {
    case OPTION_CONTENT:
        return content_option_take(&request->content, value);
    case OPTION_OUT:
        request->out = value;
        return true;
    case OPTION_QUEUE:
        request->queue = value;
        return true;
    case OPTION_STREAM:
        request->stream_name = value;
        return true;
    case OPTION_JSON:
        request->json = true;
        return true;
    default:
        return false;
    }
}

enum exit_status verb_replay(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct replay_request request = {.stream_name = "provenance"};
    enum exit_status status = EXIT_STATUS_DONE;
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END && status == EXIT_STATUS_DONE) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            content_option_free(&request.content);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && request.directory == NULL) {
            request.directory = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL && !request.has_id) {
            request.has_id = parse_number("ID", arguments.value, &request.id);
            status = request.has_id ? status : complain_of_usage("replay", NULL);
        } else if (option == ARGUMENT_WRONG || option == ARGUMENT_POSITIONAL ||
                   !take_option(&request, option, arguments.value)) {
            status = complain_of_usage("replay", NULL);
        }
    }
    if (status == EXIT_STATUS_DONE) {
        status = request.has_id && request.out != NULL
                     ? run(&request)
                     : complain_of_usage("replay", "expected STORE ID --out FILE");
    }
    content_option_free(&request.content);
    return status;
}
