/* lahar content: the content that an event saw. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/content_option.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar content STORE ID --which input|output --content NAME=DIR...\n"
    "                     [--stream NAME] [--out FILE]\n\n"
    "Writes the content before (input) or after (output) a provenance event, byte for\n"
    "byte, to standard output. Records nothing.\n\n"
    "  --which WHICH       input or output\n"
    "  --content NAME=DIR  the directory of a content repository's container, in\n"
    "                      which content lies as SECTION/ID; any number of times\n"
    "  --stream NAME       the stream; default provenance\n"
    "  --out FILE          to a new file; - is standard output\n\n"
    "exit status: 0 done, 1 no such event or its content cannot be given, 2 usage,\n"
    "3 I/O\n";

enum {
    OPTION_WHICH = OPTION_FIRST,
    OPTION_CONTENT,
    OPTION_STREAM,
    OPTION_OUT
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"which", OPTION_WHICH, true},
    {"content", OPTION_CONTENT, true},
    {"stream", OPTION_STREAM, true},
    {"out", OPTION_OUT, true},
    {NULL, 0, false},
};

struct content_request {
    const char *directory;
    const char *stream_name;
    const char *out;
    uint64_t id;
    bool has_id;
    bool has_which;
    bool is_input;
    struct content_option content;
};

static lahar_status write_some(void *context, const void *data, size_t size)
{
    return fwrite(data, 1, size, context) == size ? LAHAR_OK : LAHAR_IO;
}

static enum exit_status stream(const struct content_request *request, lahar_provenance *provenance)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    const bool is_file = request->out != NULL && strcmp(request->out, "-") != 0;
    FILE *file = is_file ? fopen(request->out, "wxe") : stdout;
    if (file == NULL) {
        complain("%s: %s", request->out, strerror(errno));
        return EXIT_STATUS_IO;
    }
    enum exit_status status = EXIT_STATUS_DONE;
    if (lahar_content_stream(provenance, request->id, request->is_input, write_some, file, &refusal,
                             &error) != LAHAR_OK) {
        status = complain_of(&error);
    }
    if (is_file && fclose(file) != 0 && status == EXIT_STATUS_DONE) {
        complain("%s: %s", request->out, strerror(errno));
        status = EXIT_STATUS_IO;
    }
    if (is_file && status != EXIT_STATUS_DONE) {
        (void)remove(request->out);
    }
    return status;
}

static enum exit_status run(const struct content_request *request)
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
    options.containers = request->content.containers;
    options.container_count = request->content.count;
    status = lahar_provenance_open(store, &options, &provenance, &error) == LAHAR_OK
                 ? stream(request, provenance)
                 : complain_of(&error);
    lahar_provenance_close(provenance);
    return store_access_close(store, status);
}

static bool take_option(struct content_request *request, int option, const char *value)
{
    switch (option) {
    case OPTION_WHICH:
        request->is_input = strcmp(value, "input") == 0;
        request->has_which = request->is_input || strcmp(value, "output") == 0;
        if (!request->has_which) {
            complain("--which: '%s' is neither input nor output", value);
        }
        return request->has_which;
    case OPTION_CONTENT:
        return content_option_take(&request->content, value);
    case OPTION_STREAM:
        request->stream_name = value;
        return true;
    case OPTION_OUT:
        request->out = value;
        return true;
    default:
        return false;
    }
}

enum exit_status verb_content(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct content_request request = {.stream_name = "provenance"};
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
            status = request.has_id ? status : complain_of_usage("content", NULL);
        } else if (option == ARGUMENT_WRONG || option == ARGUMENT_POSITIONAL ||
                   !take_option(&request, option, arguments.value)) {
            status = complain_of_usage("content", NULL);
        }
    }
    if (status == EXIT_STATUS_DONE) {
        status = request.has_id && request.has_which
                     ? run(&request)
                     : complain_of_usage("content", "expected STORE ID --which input|output");
    }
    content_option_free(&request.content);
    return status;
}
