/* lahar: the command line. Finds the verb; each verb does the rest. */
#include <stdio.h>
#include <string.h>

#include "lahar/lahar.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/verb.h"
#include "tools/version.h"

struct verb {
    const char *name;
    enum exit_status (*run)(int argument_count, char **arguments);
    const char *summary;
};

static const struct verb VERBS[] = {
    {"stream", verb_stream, "create, list and show streams"},
    {"ingest", verb_ingest, "take the records of files"},
    {"import", verb_import, "take the events of NiFi's own repository"},
    {"source", verb_source, "say which files are followed, and how far they are"},
    {"follow", verb_follow, "take the records of files as they are written"},
    {"query", verb_query, "search"},
    {"get", verb_get, "show events by id"},
    {"scan", verb_scan, "show events in id order"},
    {"export", verb_export, "give events back as they came"},
    {"lineage", verb_lineage, "show where a FlowFile came from and went"},
    {"content", verb_content, "give the content that an event saw"},
    {"replay", verb_replay, "give the content before an event once more"},
    {"stat", verb_stat, "show what a store holds and does"},
    {"verify", verb_verify, "check every file of a store"},
    {"repair", verb_repair, "rebuild a lost or damaged manifest"},
    {"volume", verb_volume, "spread event files over several directories"},
    {"retain", verb_retain, "set how much is kept, by bytes and age"},
    {"rollover", verb_rollover, "turn the journals into event files now"},
};

enum {
    VERB_COUNT = sizeof VERBS / sizeof VERBS[0]
};

static void print_usage(FILE *file)
{
    (void)fputs("usage: lahar VERB STORE [ARGUMENT...]\n\n"
                "An embedded event store: append, search, give back.\n"
                "STORE is the directory that holds one.\n\nverbs:\n",
                file);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        (void)fprintf(file, "  %-10s %s\n", VERBS[i].name, VERBS[i].summary);
    }
    (void)fputs("\n'lahar VERB --help' explains a verb, 'lahar --version' what is linked.\n"
                "exit status: 0 done, 1 nothing found or a check failed, 2 usage, 3 I/O,\n"
                "4 corrupt, 5 busy or locked\n",
                file);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2) {
        print_usage(stderr);
        return EXIT_STATUS_USAGE;
    }
    const char *name = arguments[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return (int)finish_output(EXIT_STATUS_DONE);
    }
    if (strcmp(name, "--version") == 0) {
        version_print("lahar");
        return (int)finish_output(EXIT_STATUS_DONE);
    }
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(name, VERBS[i].name) == 0) {
            interrupt_begin();
            return (int)finish_output(VERBS[i].run(argument_count - 1, arguments + 1));
        }
    }
    complain("unknown verb '%s'", name);
    (void)fputs("Try 'lahar --help'.\n", stderr);
    return EXIT_STATUS_USAGE;
}
