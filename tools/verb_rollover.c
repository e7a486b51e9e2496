/* lahar rollover: the open group into event files and index shards, now. */
#include <stdio.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar rollover STORE\n\n"
    "Turns what is in the journals into event files and index shards, and waits for\n"
    "it. A store does this by itself; now is useful before copying its files.\n";

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {NULL, 0, false},
};

enum exit_status verb_rollover(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    const char *directory = NULL;
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option != ARGUMENT_POSITIONAL || directory != NULL) {
            return complain_of_usage("rollover", directory == NULL ? NULL : "too many arguments");
        }
        directory = arguments.value;
    }
    if (directory == NULL) {
        return complain_of_usage("rollover", "expected STORE");
    }
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    enum exit_status status = store_access_open(directory, STORE_WRITE, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (lahar_rollover(store, LAHAR_WAIT_FOREVER, &error) != LAHAR_OK) {
        status = complain_of(&error);
    }
    return store_access_close(store, status);
}
