/* lahar content: the content that an event saw. */
#include <string.h>

#include "tools/complain.h"
#include "tools/content_access.h"
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
    OPTION_WHICH = CONTENT_OPTION_NEXT
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"content", CONTENT_OPTION_CONTENT, true},
    {"stream", CONTENT_OPTION_STREAM, true},
    {"out", CONTENT_OPTION_OUT, true},
    {"which", OPTION_WHICH, true},
    {NULL, 0, false},
};

struct content_request {
    struct content_access access; /* first: callbacks get a pointer to it */
    bool has_which;
    bool is_input;
};

static enum exit_status stream(struct content_access *access, lahar_provenance *provenance)
{
    const struct content_request *request = (const struct content_request *)access;
    lahar_error error = {.status = LAHAR_OK};
    lahar_refusal refusal = LAHAR_REFUSAL_NONE;
    return lahar_content_stream(provenance, access->id, request->is_input, content_access_write,
                                access, &refusal, &error) == LAHAR_OK
               ? EXIT_STATUS_DONE
               : complain_of(&error);
}

static bool take_option(struct content_access *access, int option, const char *value)
{
    struct content_request *request = (struct content_request *)access;
    if (option != OPTION_WHICH) {
        return false;
    }
    request->is_input = strcmp(value, "input") == 0;
    request->has_which = request->is_input || strcmp(value, "output") == 0;
    if (!request->has_which) {
        complain("--which: '%s' is neither input nor output", value);
    }
    return request->has_which;
}

static bool is_complete(const struct content_access *access)
{
    return ((const struct content_request *)access)->has_which;
}

enum exit_status verb_content(int argument_count, char **items)
{
    static const struct content_verb verb = {.name = "content",
                                             .usage = USAGE,
                                             .expected = "expected STORE ID --which input|output",
                                             .specs = OPTIONS,
                                             .store = STORE_READ,
                                             .take_option = take_option,
                                             .is_complete = is_complete,
                                             .work = stream};
    struct content_request request = {.access.stream_name = "provenance"};
    return content_access_run(&verb, &request.access, argument_count, items);
}
