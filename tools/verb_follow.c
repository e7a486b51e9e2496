/* lahar follow: takes the records of files as they are written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar follow STORE [OPTION]...\n\n"
    "Follows the files of the store's sources until it is interrupted: every record\n"
    "becomes one event, once, whatever happens to the files or to this program.\n\n"
    "  --source NAME      only this source; may be given again\n"
    "  --once             read what is there, then end\n"
    "  --durability MODE  none, interval or commit; default as the store\n"
    "  --json             end with {\"records\":N,\"bytes\":N,\"errors\":N,...}\n\n"
    "Sources are made by 'lahar source create'.\n"
    "exit status: 0 done, 1 no such source, 2 usage, 3 I/O, 5 busy or locked\n";

enum {
    OPTION_SOURCE = OPTION_FIRST,
    OPTION_ONCE,
    OPTION_DURABILITY,
    OPTION_JSON,
    SOURCES_MAX = 256
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},         {"source", OPTION_SOURCE, true},
    {"once", OPTION_ONCE, false}, {"durability", OPTION_DURABILITY, true},
    {"json", OPTION_JSON, false}, {NULL, 0, false},
};

struct follow_run {
    const char *directory;
    const char *sources[SOURCES_MAX];
    lahar_follow_options options;
    bool json;
};

static void stop(void *context)
{
    lahar_follow_stop(context);
}

static void print_summary(lahar_follow *follow, bool json)
{
    lahar_follow_stat stat = {.struct_size = sizeof stat};
    lahar_follow_stat_get(follow, &stat);
    if (!json) {
        (void)printf("%" PRIu64 " records, %" PRIu64 " bytes of %" PRIu64 " files, %" PRIu64
                     " malformed\n",
                     stat.record_count, stat.byte_count, stat.file_count, stat.error_count);
        if (stat.gap_size != 0) {
            (void)printf("%" PRIu64 " bytes may have been lost: see the stream gaps\n",
                         stat.gap_size);
        }
        return;
    }
    struct json_object *line = json_object_new_object();
    json_line_number(line, "records", stat.record_count);
    json_line_number(line, "bytes", stat.byte_count);
    json_line_number(line, "errors", stat.error_count);
    json_line_number(line, "files", stat.file_count);
    json_line_number(line, "lag_bytes", stat.lag_size);
    json_line_number(line, "gap_bytes", stat.gap_size);
    json_line_print(line);
}

static enum exit_status follow(struct follow_run *run)
{
    lahar_store *store = NULL;
    lahar_follow *follow = NULL;
    lahar_error error = {.status = LAHAR_OK};
    enum exit_status status = store_access_open(run->directory, STORE_WRITE, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (lahar_follow_open(store, &run->options, &follow, &error) != LAHAR_OK) {
        return store_access_close(store, complain_of(&error));
    }
    interrupt_set_callback(stop, follow);
    if (lahar_follow_run(follow, &error) != LAHAR_OK) {
        status = complain_of(&error);
    }
    interrupt_set_callback(NULL, NULL);
    print_summary(follow, run->json);
    lahar_follow_close(follow);
    return store_access_close(store, status);
}

static bool take_option(struct follow_run *run, int option, const char *value)
{
    switch (option) {
    case OPTION_SOURCE:
        if (run->options.source_count == SOURCES_MAX) {
            complain("at most %d sources can be named", (int)SOURCES_MAX);
            return false;
        }
        run->sources[run->options.source_count++] = value;
        run->options.sources = run->sources;
        return true;
    case OPTION_ONCE:
        run->options.once = true;
        return true;
    case OPTION_DURABILITY:
        return parse_durability(value, &run->options.durability);
    case OPTION_JSON:
        run->json = true;
        return true;
    default:
        return false;
    }
}

enum exit_status verb_follow(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct follow_run run = {.directory = NULL};
    int option = 0;
    lahar_follow_options_init(&run.options);
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && run.directory == NULL) {
            run.directory = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL) {
            return complain_of_usage("follow", "too many arguments");
        } else if (option == ARGUMENT_WRONG || !take_option(&run, option, arguments.value)) {
            return complain_of_usage("follow", NULL);
        }
    }
    return run.directory == NULL ? complain_of_usage("follow", "expected STORE") : follow(&run);
}
