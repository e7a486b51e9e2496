/* lahar rollover: the open group into event files and index shards, now. */
#include <stdio.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/store_access.h"
#include "tools/verb.h"

#define WAIT_NS UINT64_C(100000000) /* between two looks for an interrupt */

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
    lahar_status result = LAHAR_TIMEOUT;
    while (result == LAHAR_TIMEOUT && !interrupt_seen()) {
        error = (lahar_error){.status = LAHAR_OK};
        result = lahar_rollover(store, WAIT_NS, &error);
    }
    if (result == LAHAR_TIMEOUT) {
        status = EXIT_STATUS_INTERRUPTED; /* closing cancels it; the journals keep the events */
    } else if (result != LAHAR_OK) {
        status = complain_of(&error);
    }
    return store_access_close(store, status);
}
