/* lahar-load: makes the workloads, as text or straight into a store. */
#include <stdio.h>
#include <string.h>

#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/load.h"
#include "tools/version.h"

static const char USAGE[] =
    "usage: lahar-load gen --workload W1|W2 -n N [--seed S] [--format NAME]\n"
    "       lahar-load run --workload W1|W2 -n N STORE [OPTION]...\n\n"
    "W1 is the provenance of a dataflow (750 bytes an event), W2 a service's log (180\n"
    "bytes a line). Both are the same for the same seed, on every machine.\n\n"
    "verbs:\n"
    "  gen   write a workload as text to standard output\n"
    "  run   append a workload to a store and report rates, latencies and sizes\n\n"
    "'lahar-load VERB --help' explains a verb.\n";

int main(int argument_count, char **arguments)
{
    complain_as("lahar-load");
    const char *verb = argument_count < 2 ? "" : arguments[1];
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0) {
        (void)fputs(USAGE, stdout);
        return (int)finish_output(EXIT_STATUS_DONE);
    }
    if (strcmp(verb, "--version") == 0) {
        version_print("lahar-load");
        return (int)finish_output(EXIT_STATUS_DONE);
    }
    if (strcmp(verb, "gen") == 0) {
        interrupt_begin();
        return (int)finish_output(load_gen(argument_count - 1, arguments + 1));
    }
    if (strcmp(verb, "run") == 0) {
        interrupt_begin();
        return (int)finish_output(load_run(argument_count - 1, arguments + 1));
    }
    if (verb[0] == '\0') {
        (void)fputs(USAGE, stderr);
    } else {
        complain("unknown verb '%s'", verb);
        (void)fputs("Try 'lahar-load --help'.\n", stderr);
    }
    return EXIT_STATUS_USAGE;
}
