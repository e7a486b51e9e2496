/* Job files, and whether a job makes sense. */
#include <string.h>

#include "tools/complain.h"
#include "tools/load_settings.h"

static const uint64_t INTERVAL_MIN_NS = UINT64_C(10000000);

void load_job_deinit(struct load_job *job)
{
    (void)json_object_put(job->file);
    job->file = NULL;
}

/* The option that a key names; '_' is as good as '-'. */
static const struct option_spec *find_setting(const char *key)
{
    for (const struct option_spec *spec = LOAD_OPTIONS; spec->name != NULL; spec++) {
        size_t at = 0;
        while (spec->name[at] != '\0' &&
               (spec->name[at] == key[at] || (spec->name[at] == '-' && key[at] == '_'))) {
            at++;
        }
        if (spec->name[at] == '\0' && key[at] == '\0' && spec->id != 'h') {
            return spec;
        }
    }
    return NULL;
}

/* One key of the job (phase NULL: of its outermost object) and its value. */
static bool take_key(struct load_job *job, struct load_phase *phase, const char *path,
                     const char *key, struct json_object *value)
{
    const struct option_spec *spec = find_setting(key);
    const enum json_type type = json_object_get_type(value);
    if (spec == NULL) {
        complain("%s: unknown setting '%s'", path, key);
        return false;
    }
    const bool is_flag = !spec->takes_value;
    if (phase != NULL && load_setting_scope(spec->id) != LOAD_OF_PHASE) {
        complain("%s: '%s' is for the whole job, not for a phase", path, key);
        return false;
    }
    if (is_flag ? type != json_type_boolean : (type != json_type_string && type != json_type_int)) {
        complain("%s: '%s' takes %s", path, key, is_flag ? "true or false" : "a string or number");
        return false;
    }
    /* A flag that is false is as good as left out: no default is true. */
    return (is_flag && !json_object_get_boolean(value)) ||
           load_setting_take(job, phase == NULL ? &job->phases[0] : phase, spec->id,
                             json_object_get_string(value));
}

static bool take_keys(struct load_job *job, struct load_phase *phase, const char *path,
                      struct json_object *object)
{
    json_object_object_foreach(object, key, value)
    {
        if (phase == NULL && strcmp(key, "phases") == 0) {
            continue;
        }
        if (!take_key(job, phase, path, key, value)) {
            return false;
        }
    }
    return true;
}

static bool take_phases(struct load_job *job, const char *path, struct json_object *phases)
{
    const struct load_phase defaults = job->phases[0];
    const size_t count =
        json_object_is_type(phases, json_type_array) ? json_object_array_length(phases) : 0;
    if (count == 0 || count > LOAD_PHASES_MAX) {
        complain("%s: 'phases' is to be an array of 1 to %d objects", path, LOAD_PHASES_MAX);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *object = json_object_array_get_idx(phases, i);
        job->phases[i] = defaults;
        if (!json_object_is_type(object, json_type_object)) {
            complain("%s: phase %zu is not an object", path, i + 1);
            return false;
        }
        if (!take_keys(job, &job->phases[i], path, object)) {
            return false;
        }
    }
    job->phase_count = (uint32_t)count;
    return true;
}

bool load_job_read(struct load_job *job, const char *path)
{
    struct json_object *phases = NULL;
    job->file = json_object_from_file(path);
    if (job->file == NULL) {
        complain("%s: %s", path, json_util_get_last_err());
        return false;
    }
    if (!json_object_is_type(job->file, json_type_object)) {
        complain("%s: a job is a JSON object", path);
        return false;
    }
    return take_keys(job, NULL, path, job->file) &&
           (!json_object_object_get_ex(job->file, "phases", &phases) ||
            take_phases(job, path, phases));
}

static const char *what_is_wrong(const struct load_phase *phase, bool is_first)
{
    if (!phase->workload_given) {
        return "which workload: W1 or W2?";
    }
    if (phase->count == 0 && phase->duration_ns == 0) {
        return "how much: a count or a duration?";
    }
    if (phase->producers == 0 || phase->batch_events == 0) {
        return "1 to 1024 producers, and batches of 1 event or more";
    }
    if (phase->interval_ns < INTERVAL_MIN_NS) {
        return "intervals of 10 ms or more";
    }
    if (phase->rate_percent != 0 && is_first) {
        return "a rate in percent is one of the first phase's";
    }
    return NULL;
}

bool load_job_check(const struct load_job *job)
{
    if (job->directory == NULL) {
        (void)complain_of_usage("run", "which STORE?");
        return false;
    }
    for (uint32_t i = 0; i < job->phase_count; i++) {
        const char *wrong = what_is_wrong(&job->phases[i], i == 0);
        if (wrong != NULL) {
            (void)complain_of_usage("run", wrong);
            return false;
        }
    }
    return true;
}
