#include "tools/load_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/json_line.h"
#include "tools/memory_report.h"
#include "tools/time_text.h"

static double rate(uint64_t count, uint64_t duration_ns)
{
    return duration_ns == 0 ? 0 : (double)count * 1e9 / (double)duration_ns;
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

/* What the threads that have ended by now used, and those of too many roles. */
static uint64_t other_cpu_ns(const struct load_result *result)
{
    uint64_t known_ns = result->producer_cpu_ns;
    for (size_t i = 0; i < result->roles.count; i++) {
        known_ns += result->roles.items[i].cpu_ns;
    }
    return known_ns < result->cpu_ns ? result->cpu_ns - known_ns : 0;
}

/* --- for people ---------------------------------------------------------------------- */

static void print_latency(const char *what, const struct histogram *latency)
{
    if (latency->count == 0) {
        return;
    }
    (void)printf("%-13s", what);
    for (size_t i = 0; i < LOAD_QUANTILE_COUNT; i++) {
        (void)printf("%s %.1f us, ", LOAD_QUANTILES[i].name,
                     (double)histogram_quantile(latency, LOAD_QUANTILES[i].share) / 1e3);
    }
    (void)printf("max %.1f us\n", (double)latency->max / 1e3);
}

static void print_moment(const char *what, uint64_t events, uint64_t moment_ns)
{
    if (moment_ns > 0) {
        (void)printf("%-13s%9.3f s %12.0f events/s\n", what, (double)moment_ns / 1e9,
                     rate(events, moment_ns));
    }
}

static void print_processor(const struct load_result *result)
{
    const double events = result->total_events == 0 ? 1 : (double)result->total_events;
    (void)printf("processor    %.2f us an event: producers %.2f",
                 (double)result->cpu_ns / events / 1e3,
                 (double)result->producer_cpu_ns / events / 1e3);
    for (size_t i = 0; i < result->roles.count; i++) {
        const struct load_role *role = &result->roles.items[i];
        if ((double)role->cpu_ns / events >= 5) {
            (void)printf(", %s %.2f", role->name, (double)role->cpu_ns / events / 1e3);
        }
    }
    (void)printf(", ended threads %.2f\n", (double)other_cpu_ns(result) / events / 1e3);
    if (result->append_cpu_ns > 0) {
        (void)printf("append       %.0f ns of processor time an event, to encode and publish\n",
                     (double)result->append_cpu_ns / events);
    }
}

static void print_store(const struct load_job *job, const struct load_result *result)
{
    const lahar_stat *stat = &result->after;
    const uint64_t writes = stat->journal_writes - result->before.journal_writes;
    (void)printf("memory       %.1f MiB anonymous at most, limit %.1f MiB\n",
                 (double)result->anonymous_peak_bytes / 1048576,
                 (double)stat->memory_limit_bytes / 1048576);
    if (memory_report_resident_bytes() != 0) {
        (void)printf("             %.1f MiB resident, jemalloc %s\n",
                     (double)memory_report_resident_bytes() / 1048576, memory_report_allocator());
    }
    (void)printf(
        "journals     %" PRIu64 " writes of %.1f KiB in the mean, %.2f submits a write,"
        " %" PRIu64 " syncs; %s, %s\n",
        writes,
        ratio(stat->journal_write_bytes - result->before.journal_write_bytes, writes) / 1024,
        ratio(stat->io_submits - result->before.io_submits, writes),
        stat->journal_syncs - result->before.journal_syncs, stat->backend, stat->sync_mode);
    (void)printf("disk         %.1f MB: events %.1f of %.1f raw (1/%.1f), index %.1f, "
                 "journals %.1f\n",
                 (double)load_disk_bytes(job->directory) / 1e6,
                 (double)stat->event_file_bytes / 1e6, (double)stat->event_raw_bytes / 1e6,
                 ratio(stat->event_raw_bytes, stat->event_file_bytes),
                 (double)stat->index_bytes / 1e6, (double)stat->journal_bytes / 1e6);
}

static void print_intervals(const struct load_result *result)
{
    (void)printf("    at s   events/s");
    for (size_t q = 0; q < LOAD_QUANTILE_COUNT; q++) {
        (void)printf(" %9s", LOAD_QUANTILES[q].name);
    }
    (void)printf("       max  anon MiB   (us)\n");
    for (size_t i = 0; i < result->interval_count; i++) {
        const struct load_interval *interval = &result->intervals[i];
        (void)printf("%8.2f %10.0f", (double)interval->start_ns / 1e9,
                     rate(interval->events, interval->duration_ns));
        for (size_t q = 0; q < LOAD_QUANTILE_COUNT; q++) {
            (void)printf(" %9.0f", (double)interval->quantiles_ns[q] / 1e3);
        }
        (void)printf(" %9.0f %9.1f%s\n", (double)interval->max_ns / 1e3,
                     (double)interval->anonymous_bytes / 1048576,
                     interval->has_rollover ? "  rollover" : "");
    }
}

void load_report_text(const struct load_job *job, const struct load_phase *phase,
                      const struct load_result *result)
{
    (void)printf("%s: %" PRIu64 " events, %" PRIu64 " producers, batches of %" PRIu64, phase->name,
                 result->total_events, phase->producers, phase->batch_events);
    if (phase->rate == 0) {
        (void)printf(", closed loop: latencies are those of a store at its limit\n");
    } else {
        (void)printf(", %" PRIu64 " events/s wanted: latencies count from the intended start\n",
                     phase->rate);
    }
    if (job->is_series) {
        print_intervals(result);
    }
    print_moment("acknowledged", result->all.events, result->measured_ns);
    print_moment("durable", result->total_events, result->durable_ns);
    print_moment("finished", result->total_events, result->finished_ns);
    print_latency("latency", &result->all.latency);
    if (phase->rate != 0) {
        print_latency("service", &result->all.service);
        print_latency("lag", &result->all.lag);
    }
    if (result->intervals_with > 0 && result->intervals_without > 0) {
        print_latency("in rollovers", &result->with_rollover.latency);
        print_latency("outside", &result->without_rollover.latency);
    }
    print_processor(result);
    print_store(job, result);
}

/* --- for programs -------------------------------------------------------------------- */

static void add(struct json_object *json, const char *key, struct json_object *value)
{
    (void)json_object_object_add(json, key, value);
}

static void add_double(struct json_object *json, const char *key, double value)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.3f", value);
    add(json, key, json_object_new_double_s(value, text));
}

static struct json_object *latency_json(const struct histogram *latency)
{
    struct json_object *json = json_object_new_object();
    json_line_number(json, "count", latency->count);
    for (size_t i = 0; i < LOAD_QUANTILE_COUNT; i++) {
        json_line_number(json, LOAD_QUANTILES[i].name,
                         histogram_quantile(latency, LOAD_QUANTILES[i].share));
    }
    json_line_number(json, "max", latency->max);
    return json;
}

static struct json_object *processor_json(const struct load_result *result)
{
    const double events = result->total_events == 0 ? 1 : (double)result->total_events;
    struct json_object *json = json_object_new_object();
    struct json_object *roles = json_object_new_object();
    json_line_number(json, "total_ns", result->cpu_ns);
    add_double(json, "event_ns", (double)result->cpu_ns / events);
    add_double(json, "append_event_ns", (double)result->append_cpu_ns / events);
    json_line_number(roles, "producers", result->producer_cpu_ns);
    for (size_t i = 0; i < result->roles.count; i++) {
        json_line_number(roles, result->roles.items[i].name, result->roles.items[i].cpu_ns);
    }
    json_line_number(roles, "ended", other_cpu_ns(result));
    add(json, "roles_ns", roles);
    return json;
}

static struct json_object *memory_json(const struct load_result *result)
{
    struct json_object *json = json_object_new_object();
    json_line_number(json, "anonymous_start_bytes", result->anonymous_start_bytes);
    json_line_number(json, "anonymous_peak_bytes", result->anonymous_peak_bytes);
    json_line_number(json, "resident_peak_bytes", result->resident_peak_bytes);
    json_line_number(json, "limit_bytes", result->after.memory_limit_bytes);
    json_line_number(json, "allocator_resident_bytes", memory_report_resident_bytes());
    return json;
}

/* Counters are of the phase; sizes and counts of files as they stand at its end. */
static struct json_object *store_json(const struct load_job *job, const struct load_result *result)
{
    const lahar_stat *before = &result->before;
    const lahar_stat *stat = &result->after;
    const uint64_t writes = stat->journal_writes - before->journal_writes;
    const uint64_t write_bytes = stat->journal_write_bytes - before->journal_write_bytes;
    struct json_object *json = json_object_new_object();
    json_line_string(json, "backend", stat->backend);
    json_line_string(json, "backend_reason", stat->backend_reason);
    json_line_string(json, "sync_mode", stat->sync_mode);
    json_line_number(json, "events", stat->event_count);
    json_line_number(json, "event_raw_bytes", stat->event_raw_bytes);
    json_line_number(json, "event_file_bytes", stat->event_file_bytes);
    json_line_number(json, "index_bytes", stat->index_bytes);
    json_line_number(json, "journal_bytes", stat->journal_bytes);
    json_line_number(json, "disk_bytes", load_disk_bytes(job->directory));
    json_line_number(json, "event_files", stat->event_file_count);
    json_line_number(json, "resident_bytes", stat->resident_bytes);
    json_line_number(json, "journals_active", stat->journals_active);
    json_line_number(json, "journal_writes", writes);
    json_line_number(json, "journal_write_bytes", write_bytes);
    add_double(json, "mean_write_bytes", ratio(write_bytes, writes));
    json_line_number(json, "io_submits", stat->io_submits - before->io_submits);
    add_double(json, "submits_a_write", ratio(stat->io_submits - before->io_submits, writes));
    json_line_number(json, "journal_syncs", stat->journal_syncs - before->journal_syncs);
    json_line_number(json, "writer_wakes", stat->writer_wakes - before->writer_wakes);
    json_line_number(json, "writer_sleeps", stat->writer_sleeps - before->writer_sleeps);
    json_line_number(json, "rollovers", stat->rollovers - before->rollovers);
    json_line_number(json, "rollover_failures",
                     stat->rollover_failures - before->rollover_failures);
    json_line_number(json, "corrupt_blocks", stat->corrupt_blocks - before->corrupt_blocks);
    return json;
}

static struct json_object *environment_json(const struct load_job *job)
{
    struct utsname kernel;
    char text[TIME_TEXT_SIZE];
    struct json_object *json = json_object_new_object();
    time_text_short(time_text_now_ns(), text);
    json_line_string(json, "time", text);
    json_line_string(json, "version", lahar_version());
    json_line_string(json, "compiler", __VERSION__);
    if (uname(&kernel) == 0) {
        json_line_string(json, "kernel", kernel.release);
        json_line_string(json, "machine", kernel.machine);
    }
    load_file_system(job->directory, text, sizeof text);
    json_line_string(json, "file_system", text);
    json_line_number(json, "processors", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    return json;
}

static struct json_object *intervals_json(const struct load_result *result)
{
    struct json_object *array = json_object_new_array();
    for (size_t i = 0; i < result->interval_count; i++) {
        const struct load_interval *interval = &result->intervals[i];
        struct json_object *json = json_object_new_object();
        json_line_number(json, "start_ns", interval->start_ns);
        json_line_number(json, "duration_ns", interval->duration_ns);
        json_line_number(json, "events", interval->events);
        for (size_t q = 0; q < LOAD_QUANTILE_COUNT; q++) {
            json_line_number(json, LOAD_QUANTILES[q].name, interval->quantiles_ns[q]);
        }
        json_line_number(json, "max", interval->max_ns);
        json_line_number(json, "anonymous_bytes", interval->anonymous_bytes);
        json_line_number(json, "resident_bytes", interval->resident_bytes);
        json_line_number(json, "rollovers", interval->rollovers);
        add(json, "has_rollover", json_object_new_boolean(interval->has_rollover));
        (void)json_object_array_add(array, json);
    }
    return array;
}

void load_report_json(const struct load_job *job, const struct load_phase *phase,
                      const struct load_result *result)
{
    struct json_object *json = json_object_new_object();
    json_line_number(json, "schema", 2);
    json_line_string(json, "phase", phase->name);
    add(json, "interrupted", json_object_new_boolean(result->is_interrupted));
    json_line_number(json, "events", result->total_events);
    json_line_number(json, "bytes", result->total_bytes);
    json_line_number(json, "measured_events", result->all.events);
    json_line_number(json, "measured_ns", result->measured_ns);
    json_line_number(json, "acknowledged_ns", result->acknowledged_ns);
    json_line_number(json, "durable_ns", result->durable_ns);
    json_line_number(json, "finished_ns", result->finished_ns);
    add_double(json, "acknowledged_rate", rate(result->all.events, result->measured_ns));
    add_double(json, "durable_rate", rate(result->total_events, result->durable_ns));
    add_double(json, "finished_rate", rate(result->total_events, result->finished_ns));
    add(json, "latency_ns", latency_json(&result->all.latency));
    add(json, "service_ns", latency_json(&result->all.service));
    add(json, "lag_ns", latency_json(&result->all.lag));
    add(json, "latency_with_rollover_ns", latency_json(&result->with_rollover.latency));
    add(json, "latency_without_rollover_ns", latency_json(&result->without_rollover.latency));
    json_line_number(json, "intervals_with_rollover", result->intervals_with);
    json_line_number(json, "intervals_without_rollover", result->intervals_without);
    add(json, "processor", processor_json(result));
    add(json, "memory", memory_json(result));
    add(json, "stat", store_json(job, result));
    add(json, "settings", load_settings_json(job, phase));
    add(json, "environment", environment_json(job));
    if (job->is_series) {
        add(json, "intervals", intervals_json(result));
    }
    json_line_print(json);
}
