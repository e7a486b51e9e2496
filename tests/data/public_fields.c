/* Every query of queries.tsv, those over fields and times included: on the open group, after
 * rollover, after reopening, while other threads append, and after small files were joined and
 * their shards merged.
 *
 * fieldspecs.tsv says how fields and times of each file are found. Files of JSON are ingested as
 * such; the others as Regexp, with one expression made of those of the fields. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "public_data.h"
#include "scratch.h"

enum {
    FILES_MAX = 128,
    PATTERN_SIZE = 8192
};

struct input {
    char path[PUBLIC_PATH_SIZE]; /* relative to the data directory */
    char stream[32];
    struct json_object *fields; /* name to how it is found */
    char time_field[128];
    char time_format[64];
    uint32_t year;
    bool is_json;
    char pattern[PATTERN_SIZE]; /* else */
};

struct inputs {
    struct input items[FILES_MAX];
    size_t count;
};

static void append(char *out, size_t capacity, const char *text)
{
    const size_t used = strlen(out);
    (void)snprintf(out + used, capacity - used, "%s", text);
}

/* The way to a value in JSON, as a name: ["a","b"] is a.b. */
static void put_json_name(const char *way, char *out, size_t capacity)
{
    struct json_object *steps = json_tokener_parse(way);
    for (size_t i = 0; i < json_object_array_length(steps); i++) {
        append(out, capacity, i == 0 ? "" : ".");
        append(out, capacity, json_object_get_string(json_object_array_get_idx(steps, i)));
    }
    json_object_put(steps);
}

static void put_field(const void *context, const char *field, char *out)
{
    const struct input *input = context;
    char name[256] = "";
    const char *how = json_object_get_string(json_object_object_get(input->fields, field));
    if (how != NULL && strncmp(how, "json:", 5) == 0) {
        put_json_name(how + 5, name, sizeof name);
    } else {
        append(name, sizeof name, field);
    }
    public_put_quoted(out, name);
}

/* Appends a look-ahead that finds the expression, its first group named, or goes on without. */
static void put_expression(char *pattern, const char *expression, const char *name)
{
    const char *p = expression;
    bool is_in_class = false;
    for (; *p != '\0'; p++) {
        if (*p == '\\') {
            p++;
        } else if (*p == '[' || *p == ']') {
            is_in_class = *p == '[';
        } else if (*p == '(' && p[1] != '?' && !is_in_class) {
            break;
        }
    }
    char before[PATTERN_SIZE];
    (void)snprintf(before, sizeof before, "%.*s", (int)(p - expression), expression);
    append(pattern, PATTERN_SIZE, "(?=(?:.*?");
    append(pattern, PATTERN_SIZE, before);
    append(pattern, PATTERN_SIZE, "(?<");
    append(pattern, PATTERN_SIZE, name);
    append(pattern, PATTERN_SIZE, ">");
    append(pattern, PATTERN_SIZE, *p == '\0' ? ")" : p + 1);
    append(pattern, PATTERN_SIZE, ")?)");
}

static void put_column(char *pattern, const char *number, const char *name)
{
    char expression[128];
    (void)snprintf(expression, sizeof expression, "^(?!#)(?:[^\\t]*\\t){%ld}([^\\t]*)",
                   strtol(number, NULL, 10) - 1);
    put_expression(pattern, expression, name);
}

/* "how||format||year"; how itself may hold '|'. */
static void take_time(struct input *input, char *spec)
{
    char *format = strstr(spec, "||");
    for (char *next = format; next != NULL; next = strstr(next + 2, "||")) {
        if (strchr(next, '(') == NULL) {
            format = next;
            break;
        }
    }
    *format = '\0';
    char *year = strstr(format + 2, "||");
    if (year != NULL) {
        *year = '\0';
        input->year = (uint32_t)strtoul(year + 2, NULL, 10);
    }
    (void)snprintf(input->time_format, sizeof input->time_format, "%s", format + 2);
    if (strncmp(spec, "json:", 5) == 0) {
        put_json_name(spec + 5, input->time_field, sizeof input->time_field);
        input->is_json = true;
    } else {
        (void)snprintf(input->time_field, sizeof input->time_field, "line_time");
        put_expression(input->pattern, spec + 3, input->time_field);
    }
}

static void take_fields(struct input *input)
{
    json_object_object_foreach(input->fields, name, how)
    {
        const char *text = json_object_get_string(how);
        if (strncmp(text, "re:", 3) == 0) {
            put_expression(input->pattern, text + 3, name);
        } else if (strncmp(text, "tsv:", 4) == 0) {
            put_column(input->pattern, text + 4, name);
        }
    }
}

static void read_specs(const char *root, struct inputs *inputs)
{
    char path[PUBLIC_PATH_SIZE * 2];
    size_t size = 0;
    (void)snprintf(path, sizeof path, "%s/fieldspecs.tsv", root);
    char *table = public_read(path, &size);
    char *rest = table;
    for (char *line; table != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        const char *file = strsep(&line, "\t");
        const char *fields = strsep(&line, "\t");
        char *time = strsep(&line, "\t");
        if (time == NULL || strcmp(file, "file") == 0 || inputs->count == FILES_MAX) {
            continue;
        }
        struct input *input = &inputs->items[inputs->count];
        (void)snprintf(input->path, sizeof input->path, "%s", file);
        (void)snprintf(input->stream, sizeof input->stream, "fields%zu", inputs->count++);
        input->fields = json_tokener_parse(fields);
        append(input->pattern, PATTERN_SIZE, "(?s)^");
        take_time(input, time);
        take_fields(input);
    }
    free(table);
}

static void say(void *context, uint64_t line, uint64_t offset, const char *message)
{
    const struct input *input = context;
    (void)offset;
    printf("%s:%llu: %s\n", input->path, (unsigned long long)line, message);
}

/* An input on its way into the store. */
struct ingestion {
    lahar_ingest *ingest;
    char *data;
    size_t size;
    size_t at;
};

static bool begin(struct ingestion *ingestion, lahar_store *store, const char *root,
                  struct input *input, const char *stream, lahar_error *error)
{
    char path[PUBLIC_PATH_SIZE * 2];
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = stream, .schema = LAHAR_SCHEMA_LOG};
    lahar_ingest_options options;
    *ingestion = (struct ingestion){.ingest = NULL};
    lahar_ingest_options_init(&options);
    options.format = input->is_json ? LAHAR_FORMAT_JSON : LAHAR_FORMAT_REGEXP;
    options.keep_raw = input->is_json;
    options.regexp = input->pattern;
    options.filename = input->path;
    options.time_field = input->time_field;
    options.time_format = input->time_format;
    options.year = input->year;
    options.on_error = say;
    options.on_error_context = input;
    (void)snprintf(path, sizeof path, "%s/%s", root, input->path);
    ingestion->data = public_read(path, &ingestion->size);
    if (ingestion->data == NULL) {
        return false;
    }
    lahar_status status = lahar_stream_find(store, stream, &options.stream, error);
    if (status == LAHAR_NOT_FOUND) {
        status = lahar_stream_create(store, &spec, &options.stream, error);
    }
    return status == LAHAR_OK &&
           lahar_ingest_open(store, &options, &ingestion->ingest, error) == LAHAR_OK;
}

/* Writes up to size bytes more, in odd pieces. */
static bool write_some(struct ingestion *ingestion, size_t size, lahar_error *error)
{
    const size_t left = ingestion->size - ingestion->at;
    const size_t end = ingestion->at + (size < left ? size : left);
    bool ok = true;
    while (ok && ingestion->at < end) {
        const size_t piece = end - ingestion->at < 64007 ? end - ingestion->at : 64007;
        ok = lahar_ingest_write(ingestion->ingest, ingestion->data + ingestion->at, piece, error) ==
             LAHAR_OK;
        ingestion->at += piece;
    }
    return ok;
}

static bool end(struct ingestion *ingestion, bool ok, lahar_error *error)
{
    lahar_ingest_result result = {.struct_size = sizeof result};
    ok = ok && lahar_ingest_finish(ingestion->ingest, &result, error) == LAHAR_OK &&
         result.error_count == 0;
    lahar_ingest_close(ingestion->ingest);
    free(ingestion->data);
    return ok;
}

static bool ingest_one(lahar_store *store, const char *root, struct input *input,
                       const char *stream, lahar_error *error)
{
    struct ingestion ingestion;
    const bool ok = begin(&ingestion, store, root, input, stream, error) &&
                    write_some(&ingestion, SIZE_MAX, error);
    return end(&ingestion, ok, error);
}

static struct input *find_input(struct inputs *inputs, const char *path)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (strcmp(inputs->items[i].path, path) == 0) {
            return &inputs->items[i];
        }
    }
    return NULL;
}

static void ask_one(lahar_store *store, const struct input *input, const char *query_text,
                    const char *id, const char *expected, const char *state)
{
    char expression[PUBLIC_EXPRESSION_SIZE] = "";
    char what[PUBLIC_PATH_SIZE * 2];
    char detail[PUBLIC_EXPRESSION_SIZE * 2];
    lahar_error error = {0};
    uint64_t total = 0;
    const struct public_names names = {input->is_json ? "_raw_record" : "message", put_field,
                                       input};
    struct json_object *query = json_tokener_parse(query_text);
    const bool ok = public_translate(query, &names, expression) &&
                    public_count(store, input->stream, expression, &total, &error);
    (void)snprintf(what, sizeof what, "%s: %s %s", state, input->path, id);
    (void)snprintf(detail, sizeof detail, "%s gives %llu, expected %s %s", expression,
                   (unsigned long long)total, expected, error.message);
    (void)public_expect(ok && total == strtoull(expected, NULL, 10), what, detail);
    json_object_put(query);
}

/* Every row of the table whose file has fields. */
static void ask_all(lahar_store *store, const char *root, struct inputs *inputs, const char *state)
{
    char path[PUBLIC_PATH_SIZE * 2];
    size_t size = 0;
    unsigned asked = 0;
    unsigned rows = 0;
    (void)snprintf(path, sizeof path, "%s/queries.tsv", root);
    char *table = public_read(path, &size);
    char *rest = table;
    for (char *line; table != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        char *columns[5] = {NULL};
        for (size_t i = 0; i < 5; i++) {
            columns[i] = strsep(&line, "\t");
        }
        if (columns[4] == NULL || strcmp(columns[0], "file") == 0) {
            continue;
        }
        const struct input *input = find_input(inputs, columns[0]);
        rows++;
        if (input != NULL) {
            ask_one(store, input, columns[3], columns[1], columns[4], state);
            asked++;
        }
    }
    free(table);
    printf("%s: %u of %u queries\n", state, asked, rows);
    (void)public_expect(asked == rows && rows != 0, state, "not every row was asked");
}

/* --- the states ---------------------------------------------------------------------- */

struct noise {
    lahar_store *store;
    const char *root;
    struct input *input;
    char stream[32];
    atomic_bool *is_over;
    bool ok;
};

static void *make_noise(void *argument)
{
    struct noise *noise = argument;
    noise->ok = true;
    while (noise->ok && !atomic_load(noise->is_over)) {
        lahar_error error = {0};
        noise->ok = ingest_one(noise->store, noise->root, noise->input, noise->stream, &error) &&
                    lahar_rollover(noise->store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK;
        if (!noise->ok) {
            printf("FAIL noise: %s\n", error.message);
        }
    }
    return NULL;
}

static void ask_under_ingest(lahar_store *store, const char *root, struct inputs *inputs)
{
    enum {
        THREADS = 2
    };
    struct noise noises[THREADS];
    pthread_t threads[THREADS];
    atomic_bool is_over = false;
    for (size_t i = 0; i < THREADS; i++) {
        noises[i] = (struct noise){
            .store = store, .root = root, .input = &inputs->items[i], .is_over = &is_over};
        (void)snprintf(noises[i].stream, sizeof noises[i].stream, "noise%zu", i);
        if (pthread_create(&threads[i], NULL, make_noise, &noises[i]) != 0) {
            abort();
        }
    }
    ask_all(store, root, inputs, "during ingest");
    atomic_store(&is_over, true);
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        (void)public_expect(noises[i].ok, "noise", "see above");
    }
}

static lahar_store *open_store(const char *path, const char *state)
{
    lahar_store *store = NULL;
    lahar_error error = {0};
    const bool ok = lahar_store_open(path, NULL, UINT64_C(10000000000), &store, &error) == LAHAR_OK;
    return public_expect(ok, state, error.message) ? store : NULL;
}

static bool ingest_all(lahar_store *store, const char *root, struct inputs *inputs)
{
    bool ok = true;
    for (size_t i = 0; i < inputs->count; i++) {
        lahar_error error = {0};
        struct input *input = &inputs->items[i];
        ok = public_expect(ingest_one(store, root, input, input->stream, &error), input->path,
                           error.message) &&
             ok;
    }
    return ok;
}

/* All inputs side by side, rolled over after every sixth of them, so that each has several small
 * files, which the store joins. */
static bool ingest_by_parts(lahar_store *store, const char *root, struct inputs *inputs)
{
    static struct ingestion ingestions[FILES_MAX];
    lahar_error error = {0};
    bool ok = true;
    for (size_t i = 0; i < inputs->count; i++) {
        struct input *input = &inputs->items[i];
        ok = begin(&ingestions[i], store, root, input, input->stream, &error) && ok;
    }
    for (int part = 0; part < 6; part++) {
        for (size_t i = 0; ok && i < inputs->count; i++) {
            ok = write_some(&ingestions[i], ingestions[i].size / 6 + 1, &error) &&
                 lahar_ingest_flush(ingestions[i].ingest, &error) == LAHAR_OK;
        }
        ok = ok && lahar_rollover(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK;
    }
    for (size_t i = 0; i < inputs->count; i++) {
        ok = end(&ingestions[i], ok, &error) && ok;
    }
    return public_expect(ok, "ingest by parts", error.message);
}

static uint32_t file_count(lahar_store *store)
{
    lahar_stat stat = {.struct_size = sizeof stat};
    return lahar_stat_get(store, &stat, NULL) == LAHAR_OK ? stat.event_file_count : 0;
}

/* Waits until nothing was joined for a while. */
static bool wait_for_joins(lahar_store *store, uint32_t before)
{
    uint32_t last = file_count(store);
    for (int quiet = 0, rounds = 0; quiet < 20 && rounds < 1000; rounds++) {
        (void)usleep(20000);
        const uint32_t now = file_count(store);
        quiet = now == last ? quiet + 1 : 0;
        last = now;
    }
    printf("files were joined: %u are left of %u\n", last, before);
    return last < before;
}

static void run_joined(const char *root, struct inputs *inputs, const char *path)
{
    lahar_error error = {0};
    lahar_store *store = open_store(path, "open for joining");
    if (store != NULL && ingest_by_parts(store, root, inputs)) {
        (void)public_expect(wait_for_joins(store, 6 * (uint32_t)inputs->count), "joining",
                            "no file was joined");
        ask_all(store, root, inputs, "after joining");
    }
    (void)public_expect(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK, "close",
                        error.message);
}

static void run_states(const char *root, struct inputs *inputs)
{
    char path[SCRATCH_PATH_SIZE];
    char store_path[SCRATCH_PATH_SIZE + 16];
    lahar_error error = {0};
    scratch_create(path);
    (void)snprintf(store_path, sizeof store_path, "%s/store", path);
    lahar_store *store = open_store(store_path, "open");
    if (store != NULL && ingest_all(store, root, inputs)) {
        ask_all(store, root, inputs, "open group");
        (void)public_expect(lahar_rollover(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK,
                            "rollover", error.message);
        ask_all(store, root, inputs, "after rollover");
    }
    (void)public_expect(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK, "close",
                        error.message);
    store = open_store(store_path, "reopen");
    if (store != NULL) {
        ask_all(store, root, inputs, "after reopening");
        ask_under_ingest(store, root, inputs);
    }
    (void)public_expect(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK, "close",
                        error.message);
    (void)snprintf(store_path, sizeof store_path, "%s/joined", path);
    run_joined(root, inputs, store_path);
    if (public_failed == 0) {
        scratch_remove(path);
    } else {
        printf("store kept in %s\n", path);
    }
}

int main(void)
{
    static struct inputs inputs;
    const char *root = public_root();
    read_specs(root, &inputs);
    if (inputs.count == 0) {
        printf("no data under %s\n0 passed, 0 failed, 1 skipped\n", root);
        return 77;
    }
    run_states(root, &inputs);
    for (size_t i = 0; i < inputs.count; i++) {
        json_object_put(inputs.items[i].fields);
    }
    printf("%u passed, %u failed, 0 skipped\n", public_passed, public_failed);
    return public_failed == 0 ? 0 : 1;
}
