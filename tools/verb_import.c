/* lahar import: the event files of another system's repository. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar import nifi STORE [OPTION]... DIRECTORY|FILE...\n\n"
    "Appends the events of NiFi's write-ahead provenance repository: of the files\n"
    "FIRSTID.prov and FIRSTID.prov.gz in the directories, in order of id.\n\n"
    "  --stream NAME  the stream, created when there is none; default provenance\n"
    "  --no-create    create neither the store nor the stream\n"
    "  --json         end with {\"events\":N,\"files\":N,\"errors\":N,...}\n\n"
    "Records that cannot be read are reported by file and offset, and passed over.\n"
    "exit status: 0 done, 1 some records or files were damaged, 2 usage, 3 a file\n"
    "could not be read (the others are taken) or the store not written\n";

enum {
    OPTION_STREAM = OPTION_FIRST,
    OPTION_NO_CREATE,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"stream", OPTION_STREAM, true},
    {"no-create", OPTION_NO_CREATE, false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

enum {
    PATH_BYTES = 4096,
    REPORTED_ERRORS_MAX = 20
};

/* An event file of a directory. */
struct found_file {
    uint64_t first_id;
    bool is_compressed;
    char *path; /* owned */
};

struct found_files {
    struct found_file *items;
    size_t count;
    size_t capacity;
};

struct import_run {
    const char *stream_name;
    bool no_create;
    bool json;
    lahar_store *store;
    lahar_provenance *provenance;
    const char *file; /* the one being read */
    uint64_t reported_errors;
    uint64_t file_count;
    lahar_prov_import_result total;
};

/* --- which files ---------------------------------------------------------------------------- */

/* Whether a name is digits and one of the two endings. */
static bool parse_name(const char *name, struct found_file *file_out)
{
    char *end = NULL;
    if (name[0] < '0' || name[0] > '9') {
        return false;
    }
    errno = 0;
    file_out->first_id = strtoull(name, &end, 10);
    file_out->is_compressed = strcmp(end, ".prov.gz") == 0;
    return errno == 0 && (file_out->is_compressed || strcmp(end, ".prov") == 0);
}

static bool add_file(struct found_files *files, const struct found_file *file, const char *path)
{
    if (files->count == files->capacity) {
        const size_t capacity = files->capacity == 0 ? 64 : files->capacity * 2;
        struct found_file *grown = realloc(files->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        files->items = grown;
        files->capacity = capacity;
    }
    files->items[files->count] = *file;
    files->items[files->count].path = realpath(path, NULL);
    if (files->items[files->count].path == NULL) {
        return false;
    }
    files->count++;
    return true;
}

static enum exit_status complain_of_path(const char *path)
{
    complain("%s: %s", path, strerror(errno));
    return EXIT_STATUS_IO;
}

static int compare_files(const void *a, const void *b)
{
    const struct found_file *x = a;
    const struct found_file *y = b;
    return x->first_id != y->first_id ? (x->first_id > y->first_id) - (x->first_id < y->first_id)
                                      : (int)x->is_compressed - (int)y->is_compressed;
}

/* The event files of a directory in order. While NiFi compresses a file both forms are there, the
 * compressed one not yet whole. */
static enum exit_status list_directory(struct found_files *files, const char *directory)
{
    const size_t first = files->count;
    DIR *entries = opendir(directory);
    enum exit_status status = entries == NULL ? complain_of_path(directory) : EXIT_STATUS_DONE;
    for (const struct dirent *entry = NULL;
         status == EXIT_STATUS_DONE && (entry = readdir(entries)) != NULL;) {
        char path[PATH_BYTES];
        struct found_file file;
        if (!parse_name(entry->d_name, &file)) {
            continue;
        }
        if (snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) >= (int)sizeof path ||
            !add_file(files, &file, path)) {
            status = complain_of_path(directory);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    if (files->count == first) {
        return status;
    }
    qsort(files->items + first, files->count - first, sizeof *files->items, compare_files);
    size_t kept = first + 1;
    for (size_t i = first + 1; i < files->count; i++) {
        if (files->items[i].first_id == files->items[kept - 1].first_id) {
            free(files->items[i].path);
        } else {
            files->items[kept++] = files->items[i];
        }
    }
    files->count = kept;
    return status;
}

static enum exit_status list_path(struct found_files *files, const char *path)
{
    static const struct found_file named = {.first_id = 0};
    struct stat info;
    if (stat(path, &info) != 0) {
        return complain_of_path(path);
    }
    if (S_ISDIR(info.st_mode)) {
        return list_directory(files, path);
    }
    return add_file(files, &named, path) ? EXIT_STATUS_DONE : complain_of_path(path);
}

static void release_files(struct found_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
    }
    free(files->items);
}

/* --- taking them ---------------------------------------------------------------------------- */

static void report_record(void *context, uint64_t offset, const char *message)
{
    struct import_run *run = context;
    if (run->reported_errors++ < REPORTED_ERRORS_MAX) {
        complain("%s: at byte %" PRIu64 ": %s", run->file, offset, message);
    }
}

static bool is_interrupted(void *context)
{
    (void)context;
    return interrupt_seen();
}

static void add_result(struct import_run *run, const lahar_prov_import_result *result)
{
    run->total.event_count += result->event_count;
    run->total.error_count += result->error_count;
    if (result->event_count != 0) {
        run->total.first_id = run->total.first_id == 0 ? result->first_id : run->total.first_id;
        run->total.last_id = result->last_id;
    }
}

/* A file that is no event file, or whose head is gone, is an error like a damaged record. */
static enum exit_status take_file(struct import_run *run, const char *path)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_prov_import_options options;
    lahar_prov_import_result result = {.struct_size = sizeof result};
    lahar_prov_import_options_init(&options);
    options.on_error = report_record;
    options.is_cancelled = is_interrupted;
    options.context = run;
    run->file = path;
    const lahar_status status =
        lahar_prov_import_file(run->provenance, path, &options, &result, &error);
    run->file_count++;
    add_result(run, &result);
    if (status == LAHAR_CORRUPT || status == LAHAR_UNSUPPORTED) {
        run->total.error_count++;
        complain("%s: %s", path, error.message);
        return EXIT_STATUS_DONE;
    }
    return status == LAHAR_OK || status == LAHAR_CANCELLED ? EXIT_STATUS_DONE : complain_of(&error);
}

static void print_summary(const struct import_run *run)
{
    const lahar_prov_import_result *total = &run->total;
    if (run->reported_errors > REPORTED_ERRORS_MAX) {
        complain("%" PRIu64 " more records could not be read",
                 run->reported_errors - REPORTED_ERRORS_MAX);
    }
    if (run->json) {
        struct json_object *line = json_object_new_object();
        json_line_number(line, "events", total->event_count);
        json_line_number(line, "files", run->file_count);
        json_line_number(line, "errors", total->error_count);
        json_line_number(line, "first_id", total->first_id);
        json_line_number(line, "last_id", total->last_id);
        json_line_print(line);
        return;
    }
    (void)printf("%" PRIu64 " events", total->event_count);
    if (total->event_count != 0) {
        (void)printf(", ids %" PRIu64 " to %" PRIu64, total->first_id, total->last_id);
    }
    (void)printf(", %" PRIu64 " files, %" PRIu64 " damaged\n", run->file_count, total->error_count);
}

static enum exit_status take_files(struct import_run *run, const struct found_files *files)
{
    enum exit_status status = EXIT_STATUS_DONE;
    for (size_t i = 0; i < files->count && !interrupt_seen(); i++) {
        const enum exit_status taken = take_file(run, files->items[i].path);
        if (taken != EXIT_STATUS_DONE) {
            status = taken;
        }
        if (taken != EXIT_STATUS_DONE && taken != EXIT_STATUS_IO) {
            break;
        }
    }
    print_summary(run);
    if (interrupt_seen()) {
        return EXIT_STATUS_INTERRUPTED;
    }
    return status == EXIT_STATUS_DONE && run->total.error_count > 0 ? EXIT_STATUS_NOTHING : status;
}

static enum exit_status open_provenance(struct import_run *run)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_provenance_options options;
    uint32_t stream = 0;
    if (run->no_create) {
        const enum exit_status status = store_access_stream(run->store, run->stream_name, &stream);
        if (status != EXIT_STATUS_DONE) {
            return status;
        }
    }
    lahar_provenance_options_init(&options);
    options.stream = run->stream_name;
    return lahar_provenance_open(run->store, &options, &run->provenance, &error) == LAHAR_OK
               ? EXIT_STATUS_DONE
               : complain_of(&error);
}

static enum exit_status import_files(struct import_run *run, const char *directory,
                                     const struct found_files *files)
{
    enum exit_status status = store_access_open(
        directory, run->no_create ? STORE_WRITE : STORE_WRITE_OR_CREATE, &run->store);
    if (status == EXIT_STATUS_DONE) {
        status = open_provenance(run);
    }
    if (status == EXIT_STATUS_DONE) {
        status = take_files(run, files);
    }
    lahar_provenance_close(run->provenance);
    return finish_output(store_access_close(run->store, status));
}

static enum exit_status run_import(struct import_run *run, char *const *paths, size_t path_count)
{
    struct found_files files = {.count = 0};
    enum exit_status status = EXIT_STATUS_DONE;
    for (size_t i = 1; i < path_count; i++) {
        const enum exit_status listed = list_path(&files, paths[i]);
        status = listed == EXIT_STATUS_DONE ? status : listed;
    }
    if (files.count == 0 && status == EXIT_STATUS_DONE) {
        complain("no event files of NiFi there");
        status = EXIT_STATUS_NOTHING;
    } else if (files.count != 0) {
        const enum exit_status taken = import_files(run, paths[0], &files);
        status = taken == EXIT_STATUS_DONE ? status : taken;
    }
    release_files(&files);
    return status;
}

enum exit_status verb_import(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct import_run run = {.stream_name = "provenance"};
    char **positionals = items; /* moved to the front as they are met */
    size_t count = 0;
    int option;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        switch (option) {
        case 'h':
            (void)fputs(USAGE, stdout);
            return finish_output(EXIT_STATUS_DONE);
        case OPTION_STREAM:
            run.stream_name = arguments.value;
            break;
        case OPTION_NO_CREATE:
            run.no_create = true;
            break;
        case OPTION_JSON:
            run.json = true;
            break;
        case ARGUMENT_POSITIONAL:
            positionals[count++] = (char *)(uintptr_t)arguments.value;
            break;
        default:
            return complain_of_usage("import", NULL);
        }
    }
    if (count < 3 || strcmp(positionals[0], "nifi") != 0) {
        return complain_of_usage("import", "expected nifi STORE DIRECTORY...");
    }
    return run_import(&run, positionals + 1, count - 1);
}
