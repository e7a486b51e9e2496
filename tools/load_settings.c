#include "tools/load_settings.h"

#include <string.h>

#include "tools/complain.h"
#include "tools/json_line.h"
#include "tools/time_text.h"

enum {
    OPTION_JSON = OPTION_FIRST,
    OPTION_SERIES,
    OPTION_VERIFY,
    OPTION_STORE, /* from here on: of the store */
    OPTION_MEMORY,
    OPTION_GROUP,
    OPTION_SYNC_INTERVAL,
    OPTION_LEVEL,
    OPTION_JOURNALS,
    OPTION_BACKEND,
    OPTION_NAME, /* from here on: of a phase */
    OPTION_WORKLOAD,
    OPTION_SEED,
    OPTION_FROM,
    OPTION_DURATION,
    OPTION_WARMUP,
    OPTION_RATE,
    OPTION_ARRIVAL,
    OPTION_PRODUCERS,
    OPTION_BATCH,
    OPTION_PREPARED,
    OPTION_INTERVAL,
    OPTION_DURABILITY,
    OPTION_NO_ROLLOVER
};

const struct option_spec LOAD_OPTIONS[] = {
    {"help", 'h', false},
    {"count", 'n', true},
    {"json", OPTION_JSON, false},
    {"series", OPTION_SERIES, false},
    {"verify", OPTION_VERIFY, false},
    {"store", OPTION_STORE, true},
    {"memory", OPTION_MEMORY, true},
    {"group", OPTION_GROUP, true},
    {"sync-interval", OPTION_SYNC_INTERVAL, true},
    {"level", OPTION_LEVEL, true},
    {"journals", OPTION_JOURNALS, true},
    {"backend", OPTION_BACKEND, true},
    {"name", OPTION_NAME, true},
    {"workload", OPTION_WORKLOAD, true},
    {"seed", OPTION_SEED, true},
    {"from", OPTION_FROM, true},
    {"duration", OPTION_DURATION, true},
    {"warmup", OPTION_WARMUP, true},
    {"rate", OPTION_RATE, true},
    {"arrival", OPTION_ARRIVAL, true},
    {"producers", OPTION_PRODUCERS, true},
    {"batch", OPTION_BATCH, true},
    {"prepared", OPTION_PREPARED, true},
    {"interval", OPTION_INTERVAL, true},
    {"durability", OPTION_DURABILITY, true},
    {"no-rollover", OPTION_NO_ROLLOVER, false},
    {NULL, 0, false},
};

enum {
    SEED_DEFAULT = 42,
    BATCH_DEFAULT = 1000,
    MIB_SHIFT = 20
};
static const uint64_t SECOND_NS = UINT64_C(1000000000);
static const uint64_t DURATION_MAX_NS = UINT64_C(7) * 86400 * UINT64_C(1000000000);

void load_job_init(struct load_job *job)
{
    *job = (struct load_job){.phase_count = 1};
    lahar_options_init(&job->options);
    job->phases[0] = (struct load_phase){
        .name = "run",
        .seed = SEED_DEFAULT,
        .first_index = UINT64_MAX,
        .producers = 1,
        .batch_events = BATCH_DEFAULT,
        .interval_ns = SECOND_NS,
    };
}

static bool parse_bounded(const char *name, const char *value, uint64_t most, uint64_t *number_out)
{
    if (!parse_number(name, value, number_out)) {
        return false;
    }
    if (*number_out > most) {
        complain("%s: %s is above %llu", name, value, (unsigned long long)most);
        return false;
    }
    return true;
}

/* "30s", "2m", or a plain number of seconds. */
static bool parse_span(const char *name, const char *value, uint64_t *span_ns_out)
{
    if (value[0] != '\0' && value[strspn(value, "0123456789")] == '\0') {
        uint64_t seconds = 0;
        const bool is_right = parse_bounded(name, value, DURATION_MAX_NS / SECOND_NS, &seconds);
        *span_ns_out = seconds * SECOND_NS;
        return is_right;
    }
    if (!time_text_parse_duration(value, span_ns_out) || *span_ns_out > DURATION_MAX_NS) {
        complain("%s: '%s' is not a duration of at most a week; try 30s, 500ms or 10m", name,
                 value);
        return false;
    }
    return true;
}

/* Events a second, or "70%" of what the first phase finished a second. */
static bool parse_rate(const char *value, struct load_phase *phase)
{
    const size_t digits = strspn(value, "0123456789");
    char number[24];
    phase->rate = 0;
    phase->rate_percent = 0;
    if (digits > 0 && digits < sizeof number && strcmp(value + digits, "%") == 0) {
        memcpy(number, value, digits);
        number[digits] = '\0';
        return parse_bounded("--rate", number, 10000, &phase->rate_percent);
    }
    return parse_bounded("--rate", value, UINT64_C(1000000000), &phase->rate);
}

static bool parse_choice(const char *name, const char *value, const char *const *choices,
                         uint32_t *choice_out)
{
    for (uint32_t i = 0; choices[i] != NULL; i++) {
        if (strcmp(value, choices[i]) == 0) {
            *choice_out = i;
            return true;
        }
    }
    complain("%s: '%s' is not one of its words", name, value);
    return false;
}

static bool take_of_phase(struct load_phase *phase, int option, const char *value)
{
    static const char *const ARRIVALS[] = {"const", "poisson", NULL};
    uint32_t choice = 0;
    switch (option) {
    case 'n':
        return parse_number("-n", value, &phase->count);
    case OPTION_NAME:
        phase->name = value;
        return true;
    case OPTION_WORKLOAD:
        phase->workload_given = load_workload_find(value, &phase->workload);
        if (!phase->workload_given) {
            complain("--workload: '%s' is neither W1 nor W2", value);
        }
        return phase->workload_given;
    case OPTION_SEED:
        return parse_number("--seed", value, &phase->seed);
    case OPTION_FROM:
        return parse_number("--from", value, &phase->first_index);
    case OPTION_DURATION:
        return parse_span("--duration", value, &phase->duration_ns);
    case OPTION_WARMUP:
        return parse_span("--warmup", value, &phase->warmup_ns);
    case OPTION_RATE:
        return parse_rate(value, phase);
    case OPTION_ARRIVAL:
        if (!parse_choice("--arrival", value, ARRIVALS, &choice)) {
            return false;
        }
        phase->arrival = (enum load_arrival)choice;
        return true;
    case OPTION_PRODUCERS:
        return parse_bounded("--producers", value, LOAD_PRODUCERS_MAX, &phase->producers);
    case OPTION_BATCH:
        return parse_bounded("--batch", value, 1 << 20, &phase->batch_events);
    case OPTION_PREPARED:
        return parse_bounded("--prepared", value, 1 << 22, &phase->prepared_events);
    case OPTION_INTERVAL:
        return parse_span("--interval", value, &phase->interval_ns);
    case OPTION_DURABILITY:
        return parse_durability(value, &phase->durability);
    case OPTION_NO_ROLLOVER:
        phase->no_rollover = true;
        return true;
    default:
        return false;
    }
}

static bool take_of_store(struct load_job *job, int option, const char *value)
{
    static const char *const BACKENDS[] = {"auto", "uring", "pwrite", NULL};
    uint64_t number = 0;
    uint32_t choice = 0;
    switch (option) {
    case OPTION_STORE:
        job->directory = value;
        return true;
    case OPTION_BACKEND:
        if (!parse_choice("--backend", value, BACKENDS, &choice)) {
            return false;
        }
        job->options.backend = (lahar_backend)choice;
        return true;
    case OPTION_SYNC_INTERVAL:
        if (!parse_span("--sync-interval", value, &number)) {
            return false;
        }
        job->options.sync_interval_ms = (uint32_t)(number / 1000000);
        return true;
    default:
        break;
    }
    if (!parse_bounded("a setting of the store", value, UINT32_MAX, &number)) {
        return false;
    }
    switch (option) {
    case OPTION_MEMORY:
        job->options.memory_limit_bytes = number << MIB_SHIFT;
        return true;
    case OPTION_GROUP:
        job->options.group_size_bytes = number << MIB_SHIFT;
        return true;
    case OPTION_LEVEL:
        job->options.compression_level = (uint32_t)number;
        return true;
    case OPTION_JOURNALS:
        job->options.journal_count = (uint32_t)number;
        return true;
    default:
        return false;
    }
}

enum load_scope load_setting_scope(int option)
{
    if (option == 'n' || option >= OPTION_NAME) {
        return LOAD_OF_PHASE;
    }
    return option >= OPTION_STORE ? LOAD_OF_STORE : LOAD_OF_REPORT;
}

bool load_setting_take(struct load_job *job, struct load_phase *phase, int option,
                       const char *value)
{
    switch (option) {
    case OPTION_JSON:
        job->is_json = true;
        return true;
    case OPTION_SERIES:
        job->is_series = true;
        return true;
    case OPTION_VERIFY:
        job->is_verified = true;
        return true;
    default:
        return load_setting_scope(option) == LOAD_OF_STORE ? take_of_store(job, option, value)
                                                           : take_of_phase(phase, option, value);
    }
}

struct json_object *load_settings_json(const struct load_job *job, const struct load_phase *phase)
{
    static const char *const DURABILITIES[] = {"store", "none", "interval", "commit"};
    struct json_object *json = json_object_new_object();
    json_line_string(json, "store", job->directory);
    json_line_number(json, "memory_bytes", job->options.memory_limit_bytes);
    json_line_number(json, "group_bytes", job->options.group_size_bytes);
    json_line_number(json, "sync_interval_ms", job->options.sync_interval_ms);
    json_line_number(json, "level", job->options.compression_level);
    json_line_number(json, "journals", job->options.journal_count);
    json_line_string(json, "workload", phase->workload == LOAD_W1 ? "W1" : "W2");
    json_line_number(json, "seed", phase->seed);
    json_line_number(json, "first_index", phase->first_index);
    json_line_number(json, "count", phase->count);
    json_line_number(json, "duration_ns", phase->duration_ns);
    json_line_number(json, "warmup_ns", phase->warmup_ns);
    json_line_string(json, "loop", phase->rate == 0 ? "closed" : "open");
    json_line_number(json, "rate", phase->rate);
    json_line_string(json, "arrival", phase->arrival == LOAD_POISSON ? "poisson" : "const");
    json_line_number(json, "producers", phase->producers);
    json_line_number(json, "batch_events", phase->batch_events);
    json_line_number(json, "prepared_events", phase->prepared_events);
    json_line_number(json, "interval_ns", phase->interval_ns);
    json_line_string(json, "durability", DURABILITIES[phase->durability]);
    (void)json_object_object_add(json, "rollover", json_object_new_boolean(!phase->no_rollover));
    return json;
}
