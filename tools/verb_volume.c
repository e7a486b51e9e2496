/* lahar volume: the directories that event files are spread over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/verb.h"
#include "tools/volume_output.h"

static const char USAGE[] =
    "usage: lahar volume STORE [NAME=PATH]... [--json]\n\n"
    "Adds directories for event files, on disks of their own perhaps, or says where\n"
    "those of a known name are now; then shows all. New files go where most space is\n"
    "free. Volumes stay part of the store; one that is not there costs its own events\n"
    "alone.\n\n"
    "  --json   one JSON object\n";

enum {
    OPTION_JSON = OPTION_FIRST,
    VOLUMES_MAX = 63,
    NAME_SIZE = 256
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

struct request {
    const char *directory;
    char names[VOLUMES_MAX][NAME_SIZE]; /* cut off in front of their paths */
    lahar_volume_spec volumes[VOLUMES_MAX];
    size_t volume_count;
    bool json;
};

/* Takes NAME=PATH. */
static bool take_volume(struct request *request, const char *argument)
{
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument || equals - argument >= NAME_SIZE ||
        equals[1] == '\0' || request->volume_count == VOLUMES_MAX) {
        return false;
    }
    char *name = request->names[request->volume_count];
    memcpy(name, argument, (size_t)(equals - argument));
    name[equals - argument] = '\0';
    request->volumes[request->volume_count++] =
        (lahar_volume_spec){.name = name, .path = equals + 1};
    return true;
}

static enum exit_status run(const struct request *request)
{
    lahar_store *store = NULL;
    const enum exit_status status = store_access_open_volumes(
        request->directory, request->volume_count == 0 ? STORE_READ : STORE_WRITE_OR_CREATE,
        request->volumes, request->volume_count, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (request->json) {
        struct json_object *line = json_object_new_object();
        json_object_object_add(line, "volumes", volume_output_json(store));
        json_line_print(line);
    } else {
        volume_output_text(store);
    }
    return store_access_close(store, status);
}

enum exit_status verb_volume(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct request request = {.directory = NULL};
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_WRONG) {
            return complain_of_usage("volume", NULL);
        }
        if (option == OPTION_JSON) {
            request.json = true;
        } else if (request.directory == NULL) {
            request.directory = arguments.value;
        } else if (!take_volume(&request, arguments.value)) {
            return complain_of_usage("volume", "expected NAME=PATH");
        }
    }
    if (request.directory == NULL) {
        return complain_of_usage("volume", "expected STORE");
    }
    return run(&request);
}
