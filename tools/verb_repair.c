/* lahar repair: makes a store usable again whose manifest or journals are damaged. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar repair STORE\n\n"
    "Rebuilds a lost or damaged manifest from event files and journals, and takes\n"
    "from damaged journals what is whole. A store that is sound stays as it is. What\n"
    "was done and what is lost is said on standard error; 'lahar verify' tells what\n"
    "is left damaged.\n";

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {NULL, 0, false},
};

enum exit_status verb_repair(int argument_count, char **items)
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
            return complain_of_usage("repair", directory == NULL ? NULL : "too many arguments");
        }
        directory = arguments.value;
    }
    if (directory == NULL) {
        return complain_of_usage("repair", "expected STORE");
    }
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_stat stat = {.struct_size = sizeof stat};
    enum exit_status status = store_access_open(directory, STORE_REPAIR, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (lahar_stat_get(store, &stat, &error) != LAHAR_OK) {
        status = complain_of(&error);
    } else {
        (void)printf("%" PRIu64 " events in %" PRIu32 " event files and the journals\n",
                     stat.event_count, stat.event_file_count);
    }
    return store_access_close(store, status);
}
