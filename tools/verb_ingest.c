/* lahar ingest: files, or standard input, into a stream. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/progress.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar ingest STORE [OPTION]... FILE...\n"
    "       COMMAND | lahar ingest STORE [OPTION]... -\n\n"
    "Appends the records of the files, one event each, in order.\n\n"
    "  --stream NAME      the stream, created when there is none; default log,\n"
    "                     for nifi-json provenance\n"
    "  --format NAME      LineAsString, JSONEachRow, JSONCompactEachRow,\n"
    "                     JSONStringsEachRow, JSONAsString, JSONAsObject, CSV, TSV,\n"
    "                     CSVWithNames, TSVWithNames, TSKV, Values, CustomSeparated,\n"
    "                     Template, Regexp, RawBLOB, logfmt, access-log (common,\n"
    "                     combined), syslog-3164, syslog-5424, nifi-log or nifi-json;\n"
    "                     default by the file's name: .json .jsonl .ndjson, .csv and\n"
    "                     .tsv (with names), and LineAsString for all others\n"
    "  --set NAME=VALUE   a setting of the format, as format_csv_delimiter=;\n"
    "                     all are in lahar-ingest(1)\n"
    "  --regexp PATTERN   of Regexp, which it implies: named groups (?<name>...) of\n"
    "                     each line become fields\n"
    "  --skip-unmatched   lines that do not match PATTERN are no errors\n"
    "  --time-field NAME  the field that holds the event's time; dots for nesting\n"
    "  --time-format F    how it is written: any (default), rfc3339, clf, syslog,\n"
    "                     epoch_s, epoch_ms, epoch_us, epoch_ns, or directives as\n"
    "                     %d/%b/%Y:%H:%M:%S %z\n"
    "  --tz ZONE          of times that name none: UTC (default), +02:00,\n"
    "                     Europe/Berlin\n"
    "  --year N           of times that name none; default the last not in the future\n"
    "  --keep-raw         keep each record's bytes, for byte-exact export\n"
    "  --durability MODE  none, interval or commit; default as the store\n"
    "  --space-wait S     seconds to wait for space on a full disk; default 30\n"
    "  --no-create        create neither the store nor the stream\n"
    "  --json             end with {\"events\":N,\"bytes\":N,\"errors\":N,...}\n\n"
    "Records that cannot be parsed are reported by file and line, and passed over.\n"
    "exit status: 0 done, 1 some records were malformed, 3 some file could not be\n"
    "read (the others are taken) or the store not written\n";

enum {
    OPTION_STREAM = OPTION_FIRST,
    OPTION_FORMAT,
    OPTION_SET,
    OPTION_REGEXP,
    OPTION_SKIP_UNMATCHED,
    OPTION_TIME_FIELD,
    OPTION_TIME_FORMAT,
    OPTION_TZ,
    OPTION_YEAR,
    OPTION_KEEP_RAW,
    OPTION_DURABILITY,
    OPTION_SPACE_WAIT,
    OPTION_NO_CREATE,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"stream", OPTION_STREAM, true},
    {"format", OPTION_FORMAT, true},
    {"set", OPTION_SET, true},
    {"regexp", OPTION_REGEXP, true},
    {"skip-unmatched", OPTION_SKIP_UNMATCHED, false},
    {"time-field", OPTION_TIME_FIELD, true},
    {"time-format", OPTION_TIME_FORMAT, true},
    {"tz", OPTION_TZ, true},
    {"year", OPTION_YEAR, true},
    {"keep-raw", OPTION_KEEP_RAW, false},
    {"durability", OPTION_DURABILITY, true},
    {"space-wait", OPTION_SPACE_WAIT, true},
    {"no-create", OPTION_NO_CREATE, false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

enum {
    READ_SIZE = 1024 * 1024,
    REPORTED_ERRORS_MAX = 20,
    SPACE_WAIT_SECONDS = 30, /* for space on a full disk */
    SPACE_WAIT_SECONDS_MAX = 86400
};

struct ingest_run {
    const char *directory;
    const char *stream_name;
    const char *format_name; /* NULL: by the file's name */
    lahar_ingest_options options;
    bool no_create;
    bool json;
    lahar_store *store;
    struct progress progress;
    const char *file;   /* the one being read, as given */
    uint64_t file_size; /* 0: not known */
    lahar_ingest_result total;
    uint64_t reported_errors;
    char buffer[READ_SIZE];
};

static void report_record(void *context, uint64_t line, uint64_t offset, const char *message)
{
    struct ingest_run *run = context;
    (void)offset;
    if (run->reported_errors++ < REPORTED_ERRORS_MAX) {
        progress_clear(&run->progress);
        complain("%s:%" PRIu64 ": %s", run->file, line, message);
    }
}

static lahar_format format_of_name(const char *path)
{
    static const struct {
        const char *ending;
        lahar_format format;
    } ENDINGS[] = {
        {".json", LAHAR_FORMAT_JSON}, {".jsonl", LAHAR_FORMAT_JSON}, {".ndjson", LAHAR_FORMAT_JSON},
        {".csv", LAHAR_FORMAT_CSV},   {".tsv", LAHAR_FORMAT_TSV},
    };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof ENDINGS / sizeof ENDINGS[0]; i++) {
        if (strcasecmp(dot, ENDINGS[i].ending) == 0) {
            return ENDINGS[i].format;
        }
    }
    return LAHAR_FORMAT_LINE;
}

/* Whether the other end of a pipe or a terminal is silent for now; a regular file never is. */
static bool is_idle(int descriptor)
{
    struct pollfd input = {.fd = descriptor, .events = POLLIN};
    return poll(&input, 1, 0) == 0;
}

/* RFC 1952: the magic number, and deflate, the only method there is. */
static bool is_gzip(const char *data, size_t size)
{
    return size >= 3 && memcmp(data, "\x1f\x8b\x08", 3) == 0;
}

/* Everything up to the last newline goes to the library as it comes; what is behind
 * it waits, so that an interrupt or an error of the file never cuts a record. */
static enum exit_status copy(struct ingest_run *run, int descriptor, lahar_ingest *ingest)
{
    enum exit_status status = EXIT_STATUS_DONE;
    lahar_error error = {.status = LAHAR_OK};
    size_t held = 0;
    uint64_t done = 0;
    while (!interrupt_seen()) {
        const ssize_t got = read(descriptor, run->buffer + held, READ_SIZE - held);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            progress_clear(&run->progress);
            complain("%s: %s", run->file, strerror(errno));
            status = EXIT_STATUS_IO;
            break;
        }
        if (done == 0 && is_gzip(run->buffer, held + (size_t)got)) {
            complain("%s: compressed; decompress it first: zcat FILE | lahar ingest STORE -",
                     run->file);
            status = EXIT_STATUS_IO;
            break;
        }
        size_t ready = held + (size_t)got;
        if (got > 0) {
            const char *newline = memrchr(run->buffer + held, '\n', (size_t)got);
            const bool is_full = ready == READ_SIZE;
            ready = newline == NULL ? (is_full ? ready : 0) : (size_t)(newline + 1 - run->buffer);
        }
        const size_t end = held + (size_t)got;
        if (ready > 0 && lahar_ingest_write(ingest, run->buffer, ready, &error) != LAHAR_OK) {
            progress_clear(&run->progress);
            return complain_of(&error);
        }
        if (got == 0) {
            break;
        }
        if (end < READ_SIZE && is_idle(descriptor) &&
            lahar_ingest_flush(ingest, &error) != LAHAR_OK) {
            progress_clear(&run->progress);
            return complain_of(&error);
        }
        held = end - ready;
        memmove(run->buffer, run->buffer + ready, held);
        done += (uint64_t)got;
        progress_bytes(&run->progress, run->file, done, run->file_size);
    }
    return status;
}

static void add_result(struct ingest_run *run, const lahar_ingest_result *result)
{
    lahar_ingest_result *total = &run->total;
    total->event_count += result->event_count;
    total->byte_count += result->byte_count;
    total->error_count += result->error_count;
    if (total->first_id == 0) {
        total->first_id = result->first_id;
    }
    if (result->last_id != 0) {
        total->last_id = result->last_id;
    }
}

static enum exit_status take_descriptor(struct ingest_run *run, int descriptor, const char *path)
{
    lahar_ingest *ingest = NULL;
    lahar_error error = {.status = LAHAR_OK};
    lahar_ingest_result result = {.struct_size = sizeof result};
    lahar_ingest_options options = run->options;
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    options.filename = slash == NULL ? path : slash + 1;
    options.on_error = report_record;
    options.on_error_context = run;
    if (run->format_name == NULL) {
        options.format = path == NULL ? LAHAR_FORMAT_LINE : format_of_name(path);
    }
    if (lahar_ingest_open(run->store, &options, &ingest, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    enum exit_status status = copy(run, descriptor, ingest);
    progress_clear(&run->progress);
    /* Also after an error: what came before it is kept. */
    const lahar_status finished = lahar_ingest_finish(ingest, &result, &error);
    add_result(run, &result);
    if (finished != LAHAR_OK && status == EXIT_STATUS_DONE) {
        status = complain_of(&error);
    }
    lahar_ingest_close(ingest);
    return status;
}

static enum exit_status take_file(struct ingest_run *run, const char *path)
{
    struct stat info;
    run->file_size = 0;
    if (strcmp(path, "-") == 0) {
        run->file = "standard input";
        return take_descriptor(run, STDIN_FILENO, NULL);
    }
    run->file = path;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &info) != 0) {
        complain("%s: %s", path, strerror(errno));
        if (descriptor >= 0) {
            (void)close(descriptor);
        }
        return EXIT_STATUS_IO;
    }
    enum exit_status status = EXIT_STATUS_IO;
    if (S_ISDIR(info.st_mode)) {
        complain("%s: is a directory; name the files in it", path);
    } else {
        run->file_size = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
        status = take_descriptor(run, descriptor, path);
    }
    (void)close(descriptor);
    return status;
}

static enum exit_status find_or_create_stream(struct ingest_run *run)
{
    lahar_error error = {.status = LAHAR_OK};
    if (run->no_create) {
        return store_access_stream(run->store, run->stream_name, &run->options.stream);
    }
    const bool is_provenance = run->options.format == LAHAR_FORMAT_NIFI_JSON ||
                               strcmp(run->stream_name, "provenance") == 0;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec,
        .name = run->stream_name,
        .schema = is_provenance ? LAHAR_SCHEMA_PROVENANCE : LAHAR_SCHEMA_LOG,
    };
    lahar_status status =
        lahar_stream_find(run->store, run->stream_name, &run->options.stream, &error);
    if (status == LAHAR_NOT_FOUND) {
        error = (lahar_error){.status = LAHAR_OK};
        status = lahar_stream_create(run->store, &spec, &run->options.stream, &error);
    }
    return status == LAHAR_OK ? EXIT_STATUS_DONE : complain_of(&error);
}

static void print_summary(const struct ingest_run *run)
{
    const lahar_ingest_result *total = &run->total;
    if (run->reported_errors > REPORTED_ERRORS_MAX) {
        complain("%" PRIu64 " more malformed records", run->reported_errors - REPORTED_ERRORS_MAX);
    }
    if (run->json) {
        struct json_object *line = json_object_new_object();
        json_line_number(line, "events", total->event_count);
        json_line_number(line, "bytes", total->byte_count);
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
    (void)printf(", %" PRIu64 " bytes, %" PRIu64 " malformed\n", total->byte_count,
                 total->error_count);
}

/* Only an error of the store ends the run; one of a file lets the others go on. */
static enum exit_status take_files(struct ingest_run *run, char *const *files, size_t file_count)
{
    enum exit_status status = EXIT_STATUS_DONE;
    lahar_stat stat = {.struct_size = sizeof stat};
    for (size_t i = 0; i < file_count && !interrupt_seen(); i++) {
        const enum exit_status taken = take_file(run, files[i]);
        if (taken == EXIT_STATUS_DONE) {
            continue;
        }
        status = taken;
        if (taken != EXIT_STATUS_IO ||
            (lahar_stat_get(run->store, &stat, NULL) == LAHAR_OK && stat.poisoned != LAHAR_OK)) {
            break;
        }
    }
    print_summary(run);
    if (interrupt_seen()) {
        return EXIT_STATUS_INTERRUPTED;
    }
    return status == EXIT_STATUS_DONE && run->total.error_count > 0 ? EXIT_STATUS_NOTHING : status;
}

static bool parse_year(const char *text, uint32_t *year_out)
{
    uint64_t year = 0;
    if (!parse_number("--year", text, &year)) {
        return false;
    }
    if (year == 0 || year > 9999) {
        complain("--year takes a year from 1 to 9999, not \"%s\"", text);
        return false;
    }
    *year_out = (uint32_t)year;
    return true;
}

static bool parse_space_wait(const char *text, uint64_t *wait_ns_out)
{
    uint64_t seconds = 0;
    if (!parse_number("--space-wait", text, &seconds)) {
        return false;
    }
    if (seconds > SPACE_WAIT_SECONDS_MAX) {
        complain("--space-wait takes at most %d seconds, not \"%s\"", SPACE_WAIT_SECONDS_MAX, text);
        return false;
    }
    *wait_ns_out = seconds * UINT64_C(1000000000);
    return true;
}

static bool set_pair(struct ingest_run *run, const char *pair)
{
    char name[64];
    lahar_error error = {.status = LAHAR_OK};
    const size_t size = strcspn(pair, "=");
    if (pair[size] != '=' || size >= sizeof name) {
        complain("--set takes NAME=VALUE, not '%s'", pair);
        return false;
    }
    memcpy(name, pair, size);
    name[size] = '\0';
    if (lahar_format_set(&run->options.format_settings, name, pair + size + 1, &error) !=
        LAHAR_OK) {
        (void)complain_of(&error);
        return false;
    }
    return true;
}

static bool take_option(struct ingest_run *run, int option, const char *value)
{
    lahar_error error = {.status = LAHAR_OK};
    switch (option) {
    case OPTION_STREAM:
        run->stream_name = value;
        return true;
    case OPTION_FORMAT:
        run->format_name = value;
        if (lahar_format_find(value, &run->options.format, &error) != LAHAR_OK) {
            (void)complain_of(&error);
            return false;
        }
        return true;
    case OPTION_SET:
        return set_pair(run, value);
    case OPTION_REGEXP:
        run->options.regexp = value;
        if (run->format_name == NULL) {
            run->format_name = "Regexp";
            run->options.format = LAHAR_FORMAT_REGEXP;
        }
        return true;
    case OPTION_SKIP_UNMATCHED:
        run->options.skip_unmatched = true;
        return true;
    case OPTION_TIME_FIELD:
        run->options.time_field = value;
        return true;
    case OPTION_TIME_FORMAT:
        run->options.time_format = value;
        return true;
    case OPTION_TZ:
        run->options.time_zone = value;
        return true;
    case OPTION_YEAR:
        return parse_year(value, &run->options.year);
    case OPTION_KEEP_RAW:
        run->options.keep_raw = true;
        return true;
    case OPTION_DURABILITY:
        return parse_durability(value, &run->options.durability);
    case OPTION_SPACE_WAIT:
        return parse_space_wait(value, &run->options.space_wait_ns);
    case OPTION_NO_CREATE:
        run->no_create = true;
        return true;
    case OPTION_JSON:
        run->json = true;
        return true;
    default:
        return false;
    }
}

static enum exit_status ingest(struct ingest_run *run, int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    size_t file_count = 0;
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && run->directory == NULL) {
            run->directory = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL) {
            /* Files move to the front of the list, over what has been read. */
            items[file_count++] = items[arguments.next - 1];
        } else if (option == ARGUMENT_WRONG || !take_option(run, option, arguments.value)) {
            return complain_of_usage("ingest", NULL);
        }
    }
    if (run->stream_name == NULL) {
        const bool is_nifi =
            run->format_name != NULL && run->options.format == LAHAR_FORMAT_NIFI_JSON;
        run->stream_name = is_nifi ? "provenance" : "log";
    }
    if (file_count == 0) {
        return complain_of_usage("ingest", "expected STORE and FILE...; - is standard input");
    }
    enum exit_status status = store_access_open(
        run->directory, run->no_create ? STORE_WRITE : STORE_WRITE_OR_CREATE, &run->store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    status = find_or_create_stream(run);
    if (status == EXIT_STATUS_DONE) {
        progress_begin(&run->progress);
        status = take_files(run, items, file_count);
    }
    return store_access_close(run->store, status);
}

enum exit_status verb_ingest(int argument_count, char **items)
{
    struct ingest_run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        complain("out of memory");
        return EXIT_STATUS_IO;
    }
    lahar_ingest_options_init(&run->options);
    run->options.space_wait_ns = SPACE_WAIT_SECONDS * UINT64_C(1000000000);
    const enum exit_status status = ingest(run, argument_count, items);
    free(run);
    return status;
}
