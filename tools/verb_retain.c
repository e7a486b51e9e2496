/* lahar retain: how much of a store or a stream is kept. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/time_text.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar retain STORE [--stream S] [--max-bytes N] [--max-age AGE] [--json]\n\n"
    "Sets how much is kept, of a stream or of all streams together; the oldest event\n"
    "files beyond it are dropped by whoever has the store open for writing. Without a\n"
    "limit to set, shows those in force.\n\n"
    "  --stream S      of this stream alone\n"
    "  --max-bytes N   on disk, index included: a number, or with K, M, G or T\n"
    "                  behind it times 1024, 1024^2, ...; 0 lifts the limit\n"
    "  --max-age AGE   since an event arrived: 30d, 12h, 1d12h; 0s lifts the limit\n"
    "  --json          show as one JSON object a line\n";

enum {
    OPTION_STREAM = OPTION_FIRST,
    OPTION_MAX_BYTES,
    OPTION_MAX_AGE,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"stream", OPTION_STREAM, true},
    {"max-bytes", OPTION_MAX_BYTES, true},
    {"max-age", OPTION_MAX_AGE, true},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

/* What the command line asks for. */
struct wish {
    const char *directory;
    const char *stream;
    bool json;
    bool has_bytes;
    bool has_age;
    uint64_t max_bytes;
    uint64_t max_age_ns;
};

/* A number of bytes with an optional unit. */
static bool parse_bytes(const char *text, uint64_t *bytes_out)
{
    static const char units[] = "KMGT";
    uint64_t bytes = 0;
    const char *at = text;
    while (*at >= '0' && *at <= '9') {
        if (__builtin_mul_overflow(bytes, 10, &bytes) ||
            __builtin_add_overflow(bytes, (uint64_t)(*at - '0'), &bytes)) {
            return false;
        }
        at++;
    }
    if (at == text) {
        return false;
    }
    const char *unit = *at == '\0' ? NULL : strchr(units, *at);
    if (unit != NULL) {
        for (const char *u = units; u <= unit; u++) {
            if (__builtin_mul_overflow(bytes, 1024, &bytes)) {
                return false;
            }
        }
        at++;
    }
    *bytes_out = bytes;
    return *at == '\0';
}

static enum exit_status take_option(struct wish *wish, int option, const char *value)
{
    switch (option) {
    case OPTION_STREAM:
        wish->stream = value;
        return EXIT_STATUS_DONE;
    case OPTION_MAX_BYTES:
        wish->has_bytes = true;
        return parse_bytes(value, &wish->max_bytes)
                   ? EXIT_STATUS_DONE
                   : complain_of_usage("retain", "--max-bytes takes a number, as 500M or 20G");
    case OPTION_MAX_AGE:
        wish->has_age = true;
        return time_text_parse_duration(value, &wish->max_age_ns)
                   ? EXIT_STATUS_DONE
                   : complain_of_usage("retain", "--max-age takes a duration, as 30d or 12h");
    case OPTION_JSON:
        wish->json = true;
        return EXIT_STATUS_DONE;
    case ARGUMENT_POSITIONAL:
        if (wish->directory == NULL) {
            wish->directory = value;
            return EXIT_STATUS_DONE;
        }
        return complain_of_usage("retain", "too many arguments");
    default:
        return complain_of_usage("retain", NULL);
    }
}

static void show(const lahar_retention *limits, const char *stream, bool json)
{
    if (json) {
        struct json_object *line = json_object_new_object();
        json_line_string(line, "stream", stream == NULL ? "" : stream);
        json_line_number(line, "max_bytes", limits->max_bytes);
        json_line_number(line, "max_age_ns", limits->max_age_ns);
        json_line_print(line);
        return;
    }
    (void)printf("%s", stream == NULL ? "all streams together" : stream);
    if (limits->max_bytes != 0) {
        (void)printf("  at most %" PRIu64 " bytes", limits->max_bytes);
    }
    if (limits->max_age_ns != 0) {
        (void)printf("  no older than %" PRIu64 " s", limits->max_age_ns / 1000000000);
    }
    (void)printf("%s\n", limits->max_bytes == 0 && limits->max_age_ns == 0 ? "  no limit" : "");
}

/* Every stream and the whole store, or the one asked for. */
static lahar_status show_all(lahar_store *store, const struct wish *wish, uint32_t stream,
                             lahar_error *error)
{
    lahar_retention limits = {.struct_size = sizeof limits};
    lahar_status status = lahar_retention_get(store, stream, &limits, error);
    if (status == LAHAR_OK) {
        show(&limits, wish->stream, wish->json);
    }
    lahar_stream_info info;
    for (uint32_t i = 0; status == LAHAR_OK && wish->stream == NULL &&
                         lahar_stream_info_get(store, i, &info, NULL) == LAHAR_OK;
         i++) {
        status = lahar_retention_get(store, i, &limits, error);
        if (status == LAHAR_OK) {
            show(&limits, info.name, wish->json);
        }
    }
    return status;
}

static lahar_status set(lahar_store *store, const struct wish *wish, uint32_t stream,
                        lahar_error *error)
{
    lahar_retention limits = {.struct_size = sizeof limits};
    lahar_status status = lahar_retention_get(store, stream, &limits, error);
    if (status != LAHAR_OK) {
        return status;
    }
    limits.max_bytes = wish->has_bytes ? wish->max_bytes : limits.max_bytes;
    limits.max_age_ns = wish->has_age ? wish->max_age_ns : limits.max_age_ns;
    return lahar_retention_set(store, stream, &limits, error);
}

enum exit_status verb_retain(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct wish wish = {0};
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        const enum exit_status taken = take_option(&wish, option, arguments.value);
        if (taken != EXIT_STATUS_DONE) {
            return taken;
        }
    }
    if (wish.directory == NULL) {
        return complain_of_usage("retain", "expected STORE");
    }
    const bool sets = wish.has_bytes || wish.has_age;
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    uint32_t stream = LAHAR_ANY_STREAM;
    enum exit_status status =
        store_access_open(wish.directory, sets ? STORE_WRITE : STORE_READ, &store);
    if (status == EXIT_STATUS_DONE) {
        status = store_access_stream(store, wish.stream, &stream);
    }
    if (status == EXIT_STATUS_DONE) {
        const lahar_status done =
            sets ? set(store, &wish, stream, &error) : show_all(store, &wish, stream, &error);
        status = done == LAHAR_OK ? EXIT_STATUS_DONE : complain_of(&error);
    }
    return store_access_close(store, status);
}
