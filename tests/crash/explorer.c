/* The crash explorer: runs a seeded scenario against a store on the simulated
 * disk, lets the power fail (or the process die) before every single disk operation
 * in turn, recovers, also with a second crash inside the recovery, and holds the
 * result against the history of what was appended and acknowledged.
 *
 * usage: test_crash_explorer [--scenario NAME[,NAME]...] [--seeds N] [--stride N] [--at N]
 *                            [--least N] [--planted BITS] [--verbose]
 * With --least a run of fewer crash states fails. With --planted the run succeeds when a violation
 * is found: the explorer proves that it can see that bug. */
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash_run.h"

struct settings {
    const char *scenario;
    uint64_t seeds;
    uint64_t stride;
    uint64_t at;    /* UINT64_MAX: every point */
    uint64_t least; /* states that must have been explored */
    unsigned planted;
    bool is_verbose;
};

struct tally {
    uint64_t states;
    uint64_t violations;
    uint64_t inner_crashes;
};

/* Crash points of one scenario and seed. Returns false at the first violation. */
static bool explore(const struct crash_scenario *scenario, uint64_t seed,
                    const struct settings *settings, struct tally *tally)
{
    struct crash_run run = {.scenario = scenario, .seed = seed, .planted = settings->planted};
    uint64_t operations = 0;
    if (!crash_run_count(&run, &operations)) {
        printf("FAIL %s seed %llu without a crash: %s\n", scenario->name, (unsigned long long)seed,
               run.reason);
        tally->violations++;
        return false;
    }
    const uint64_t first = settings->at == UINT64_MAX ? seed % settings->stride : settings->at;
    for (uint64_t at = first; at <= operations; at += settings->stride) {
        for (unsigned variant = 0; variant < CRASH_VARIANTS; variant++) {
            tally->states++;
            if (!crash_run_point(&run, at, variant, &tally->inner_crashes)) {
                printf("FAIL %s seed %llu at %llu variant %u: %s\n", scenario->name,
                       (unsigned long long)seed, (unsigned long long)at, variant, run.reason);
                tally->violations++;
                return false;
            }
        }
        if (settings->at != UINT64_MAX) {
            break;
        }
    }
    if (settings->is_verbose) {
        printf("%s seed %llu: %llu operations\n", scenario->name, (unsigned long long)seed,
               (unsigned long long)operations);
    }
    return true;
}

static bool parse(int argc, char **argv, struct settings *settings)
{
    static const struct option names[] = {
        {"scenario", required_argument, NULL, 's'}, {"seeds", required_argument, NULL, 'n'},
        {"stride", required_argument, NULL, 'd'},   {"at", required_argument, NULL, 'a'},
        {"least", required_argument, NULL, 'l'},    {"planted", required_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},        {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 's':
            settings->scenario = optarg;
            break;
        case 'n':
            settings->seeds = strtoull(optarg, NULL, 10);
            break;
        case 'd':
            settings->stride = strtoull(optarg, NULL, 10);
            break;
        case 'a':
            settings->at = strtoull(optarg, NULL, 10);
            break;
        case 'l':
            settings->least = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            settings->planted = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'v':
            settings->is_verbose = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc && settings->stride != 0;
}

/* names: separated by commas; NULL: all. */
static bool is_wanted(const char *names, const char *name)
{
    const size_t size = strlen(name);
    const char *at = names;
    while (at != NULL) {
        if (strncmp(at, name, size) == 0 && (at[size] == '\0' || at[size] == ',')) {
            return true;
        }
        at = strchr(at, ',');
        if (at != NULL) {
            at++;
        }
    }
    return names == NULL;
}

int main(int argc, char **argv)
{
    struct settings settings = {.seeds = 1, .stride = 1, .at = UINT64_MAX};
    struct tally tally = {0};
    uint64_t passed = 0;
    uint64_t failed = 0;
    if (!parse(argc, argv, &settings)) {
        (void)fprintf(stderr,
                      "usage: %s [--scenario NAME[,NAME]...] [--seeds N] [--stride N] [--at N] "
                      "[--least N] [--planted BITS] [--verbose]\n",
                      argv[0]);
        return 2;
    }
    for (size_t i = 0; i < crash_scenario_count; i++) {
        const struct crash_scenario *scenario = &crash_scenarios[i];
        if (!is_wanted(settings.scenario, scenario->name)) {
            continue;
        }
        bool ok = true;
        for (uint64_t seed = 1; seed <= settings.seeds && ok; seed++) {
            ok = explore(scenario, seed, &settings, &tally);
        }
        passed += ok ? 1 : 0;
        failed += ok ? 0 : 1;
    }
    printf("%llu crash states, %llu of them with a second crash inside recovery\n",
           (unsigned long long)tally.states, (unsigned long long)tally.inner_crashes);
    if (settings.planted != 0) {
        const bool is_caught = tally.violations != 0;
        printf("planted bug %#x: %s\n", settings.planted, is_caught ? "caught" : "NOT caught");
        printf("%d passed, %d failed, 0 skipped\n", is_caught ? 1 : 0, is_caught ? 0 : 1);
        return is_caught ? 0 : 1;
    }
    if (tally.states < settings.least) {
        printf("FAIL fewer than %llu crash states\n", (unsigned long long)settings.least);
        failed++;
    }
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)passed,
           (unsigned long long)failed);
    return failed == 0 && passed != 0 ? 0 : 1;
}
