/* lahar-load gen: a workload as text. */
#include <stdio.h>
#include <strings.h>

#include "bench/load_event.h"
#include "bench/w1_json.h"
#include "bench/workload_w1.h"
#include "bench/workload_w2.h"
#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/load.h"

static const char USAGE[] =
    "usage: lahar-load gen --workload W1|W2 -n N [OPTION]...\n\n"
    "Writes N events of a workload to standard output.\n\n"
    "  --workload NAME  W1: provenance as JSONEachRow; W2: log lines\n"
    "  -n, --count N    how many events\n"
    "  --seed S         another seed, another workload; default 42\n"
    "  --from I         begin with event I; default 0\n"
    "  --format NAME    JSONEachRow, or LineAsString for W2; default as above\n\n"
    "  lahar-load gen --workload W1 -n 100000 | lahar ingest STORE \\\n"
    "      --stream provenance --format JSONEachRow --time-field time -\n";

enum {
    OPTION_WORKLOAD = OPTION_FIRST,
    OPTION_SEED,
    OPTION_FROM,
    OPTION_FORMAT
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"count", 'n', true},
    {"workload", OPTION_WORKLOAD, true},
    {"seed", OPTION_SEED, true},
    {"from", OPTION_FROM, true},
    {"format", OPTION_FORMAT, true},
    {NULL, 0, false},
};

enum {
    SEED_DEFAULT = 42,
    CHECK_EVENTS = 4096 /* between looks at the interrupt */
};

struct gen_request {
    enum load_workload workload;
    bool workload_given;
    uint64_t count; /* UINT64_MAX: not given */
    uint64_t seed;
    uint64_t from;
    bool json;
    bool format_given;
};

static bool goes_on(uint64_t index)
{
    return index % CHECK_EVENTS != 0 || (!interrupt_seen() && ferror(stdout) == 0);
}

static enum exit_status write_w1(const struct gen_request *request)
{
    char line[W1_JSON_SIZE_MAX];
    struct workload_w1_event event;
    struct workload_w1 *workload = workload_w1_create(request->seed);
    if (workload == NULL) {
        complain("out of memory");
        return EXIT_STATUS_IO;
    }
    for (uint64_t i = 0; i < request->count && goes_on(i); i++) {
        workload_w1_event(workload, request->from + i, &event);
        (void)fwrite(line, 1, w1_json(&event, line), stdout);
    }
    workload_w1_destroy(workload);
    return interrupt_seen() ? EXIT_STATUS_INTERRUPTED : EXIT_STATUS_DONE;
}

static enum exit_status write_w2(const struct gen_request *request)
{
    char text[WORKLOAD_W2_LINE_SIZE_MAX];
    struct workload_w2 workload;
    struct workload_w2_line line;
    workload_w2_init(&workload, request->seed);
    for (uint64_t i = 0; i < request->count && goes_on(i); i++) {
        workload_w2_line(&workload, request->from + i, &line);
        const size_t size =
            request->json ? workload_w2_json(&line, text) : workload_w2_text(&line, text);
        (void)fwrite(text, 1, size, stdout);
    }
    return interrupt_seen() ? EXIT_STATUS_INTERRUPTED : EXIT_STATUS_DONE;
}

static bool take_option(struct gen_request *request, int option, const char *value)
{
    switch (option) {
    case 'n':
        return parse_number("-n", value, &request->count);
    case OPTION_SEED:
        return parse_number("--seed", value, &request->seed);
    case OPTION_FROM:
        return parse_number("--from", value, &request->from);
    case OPTION_WORKLOAD:
        request->workload_given = load_workload_find(value, &request->workload);
        return request->workload_given;
    case OPTION_FORMAT:
        request->format_given = true;
        request->json = strcasecmp(value, "JSONEachRow") == 0;
        return request->json || strcasecmp(value, "LineAsString") == 0;
    default:
        return false;
    }
}

enum exit_status load_gen(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct gen_request request = {.seed = SEED_DEFAULT, .count = UINT64_MAX};
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_WRONG || !take_option(&request, option, arguments.value)) {
            return complain_of_usage("gen", option == ARGUMENT_WRONG ? NULL : "wrong argument");
        }
    }
    if (!request.workload_given || request.count == UINT64_MAX) {
        return complain_of_usage("gen", "expected --workload W1|W2 and -n N");
    }
    if (request.workload == LOAD_W2) {
        return write_w2(&request);
    }
    if (request.format_given && !request.json) {
        return complain_of_usage("gen", "W1 is written as JSONEachRow only");
    }
    return write_w1(&request);
}
