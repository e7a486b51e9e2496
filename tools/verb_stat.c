/* lahar stat: what a store holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/json_line.h"
#include "tools/memory_report.h"
#include "tools/store_access.h"
#include "tools/verb.h"
#include "tools/volume_output.h"

static const char USAGE[] =
    "usage: lahar stat STORE [--json]\n\n"
    "Shows what a store holds: events, files, bytes, the state of its writer.\n\n"
    "  --json   one JSON object\n";

enum {
    OPTION_JSON = OPTION_FIRST
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

static void print_json(lahar_store *store, const lahar_stat *stat)
{
    const struct {
        const char *key;
        uint64_t number;
    } NUMBERS[] = {
        {"events", stat->event_count},
        {"streams", stat->stream_count},
        {"next_id", stat->next_id},
        {"durable_id", stat->durable_id},
        {"rolled_id", stat->rolled_id},
        {"event_files", stat->event_file_count},
        {"event_raw_bytes", stat->event_raw_bytes},
        {"event_file_bytes", stat->event_file_bytes},
        {"index_bytes", stat->index_bytes},
        {"journal_bytes", stat->journal_bytes},
        {"memory_limit_bytes", stat->memory_limit_bytes},
        {"resident_event_bytes", stat->resident_bytes},
        {"recovered_events", stat->recovered_events},
        {"block_cache_bytes", stat->block_cache_bytes},
        {"index_cache_bytes", stat->index_cache_bytes},
        {"query_bytes", stat->query_bytes},
        {"corrupt_blocks", stat->corrupt_blocks},
        {"lost_ids", stat->lost_ids},
        {"lost_ranges", stat->lost_ranges},
        {"dropped_events", stat->dropped_events},
        {"dropped_bytes", stat->dropped_bytes},
        {"dropped_files", stat->dropped_files},
        {"process_resident_bytes", memory_report_resident_bytes()},
    };
    struct json_object *line = json_object_new_object();
    for (size_t i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
        json_line_number(line, NUMBERS[i].key, NUMBERS[i].number);
    }
    json_object_object_add(line, "volumes", volume_output_json(store));
    json_line_string(line, "backend", stat->backend);
    json_line_string(line, "backend_reason", stat->backend_reason);
    json_line_string(line, "sync_mode", stat->sync_mode);
    json_line_string(line, "sync_reason", stat->sync_reason);
    json_line_string(line, "poisoned",
                     stat->poisoned == LAHAR_OK ? "" : lahar_status_name(stat->poisoned));
    json_line_print(line);
}

static void print_bytes(const char *name, uint64_t bytes)
{
    (void)printf("%-18s %14" PRIu64 " bytes\n", name, bytes);
}

static void print_text(lahar_store *store, const lahar_stat *stat)
{
    (void)printf("%-18s %14" PRIu64 " in %u streams\n", "events", stat->event_count,
                 stat->stream_count);
    (void)printf("%-18s %14" PRIu64 "\n", "next id", stat->next_id);
    (void)printf("%-18s %14" PRIu64 "\n", "durable below", stat->durable_id);
    (void)printf("%-18s %14" PRIu64 "\n", "in files below", stat->rolled_id);
    (void)printf("%-18s %14u\n", "event files", stat->event_file_count);
    print_bytes("events, raw", stat->event_raw_bytes);
    print_bytes("event files", stat->event_file_bytes);
    print_bytes("index", stat->index_bytes);
    print_bytes("journals", stat->journal_bytes);
    const uint64_t stored = stat->event_file_bytes + stat->index_bytes;
    if (stored != 0) {
        (void)printf("%-18s %14.2f of events and index together\n", "ratio",
                     (double)stat->event_raw_bytes / (double)stored);
    }
    lahar_volume_info second = {.struct_size = sizeof second};
    lahar_error none = {.status = LAHAR_OK};
    if (lahar_volume_info_get(store, 1, &second, &none) == LAHAR_OK) {
        volume_output_text(store);
    }
    print_bytes("memory limit", stat->memory_limit_bytes);
    print_bytes("events in memory", stat->resident_bytes);
    if (memory_report_resident_bytes() != 0) {
        print_bytes("process resident", memory_report_resident_bytes());
    }
    if (stat->dropped_events != 0) {
        (void)printf("%-18s %14" PRIu64 " events, %" PRIu64 " bytes, by retention\n", "dropped",
                     stat->dropped_events, stat->dropped_bytes);
    }
    if (stat->lost_ids != 0) {
        (void)printf("%-18s %14" PRIu64 " ids in %" PRIu32 " ranges, by damage of journals\n",
                     "lost", stat->lost_ids, stat->lost_ranges);
    }
    if (stat->corrupt_blocks != 0) {
        (void)printf("%-18s %14" PRIu64 "\n", "corrupt blocks", stat->corrupt_blocks);
    }
    (void)printf("%-18s %14s%s%s\n", "backend", stat->backend,
                 stat->backend_reason[0] == '\0' ? "" : "  ", stat->backend_reason);
    if (stat->sync_mode[0] != '\0') {
        (void)printf("%-18s %14s  %s\n", "sync", stat->sync_mode, stat->sync_reason);
    }
    if (stat->poisoned != LAHAR_OK) {
        (void)printf("%-18s %14s\n", "writes refused", lahar_status_name(stat->poisoned));
    }
}

enum exit_status verb_stat(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    const char *directory = NULL;
    bool json = false;
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_WRONG || (option == ARGUMENT_POSITIONAL && directory != NULL)) {
            return complain_of_usage("stat",
                                     option == ARGUMENT_WRONG ? NULL : "too many arguments");
        }
        if (option == OPTION_JSON) {
            json = true;
        } else {
            directory = arguments.value;
        }
    }
    if (directory == NULL) {
        return complain_of_usage("stat", "expected STORE");
    }
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_stat stat = {.struct_size = sizeof stat};
    enum exit_status status = store_access_open(directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (lahar_stat_get(store, &stat, &error) != LAHAR_OK) {
        status = complain_of(&error);
    } else if (json) {
        print_json(store, &stat);
    } else {
        print_text(store, &stat);
    }
    return store_access_close(store, status);
}
