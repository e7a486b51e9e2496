/* Real log files in, their bytes out again, and the expected number of hits for every
 * word, substring and boolean query of queries.tsv: on the open group, after
 * rollover, after reopening, and after kill -9 and reopening.
 *
 * Every file is ingested as lines into a stream of its own. The files are
 * used in place: "public" of $LAHAR_TEST_DATA, else the directory given at build time. */
#include <dirent.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lahar/lahar.h"
#include "public_data.h"
#include "scratch.h"

enum {
    FILES_MAX = 512,
    PATH_SIZE = PUBLIC_PATH_SIZE,
    EXPRESSION_SIZE = PUBLIC_EXPRESSION_SIZE
};

struct input {
    char path[PATH_SIZE]; /* relative to the data directory */
    char stream[64];
    uint64_t line_count;
};

struct inputs {
    struct input items[FILES_MAX];
    size_t count;
};

static void collect(const char *root, const char *relative, struct inputs *inputs)
{
    char path[PATH_SIZE * 2];
    (void)snprintf(path, sizeof path, "%s/%s", root, relative);
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char child[PATH_SIZE];
        struct stat status;
        if (entry->d_name[0] == '.') {
            continue;
        }
        const int length = snprintf(child, sizeof child, "%s/%s", relative, entry->d_name);
        (void)snprintf(path, sizeof path, "%s/%s", root, child);
        if (length < 0 || length >= PATH_SIZE || stat(path, &status) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            collect(root, child, inputs);
        } else if (inputs->count < FILES_MAX) {
            struct input *input = &inputs->items[inputs->count];
            memcpy(input->path, child, sizeof child);
            (void)snprintf(input->stream, sizeof input->stream, "file%zu", inputs->count);
            inputs->count++;
        }
    }
    (void)closedir(directory);
}

static uint64_t count_lines(const char *data, size_t size)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n' ? 1 : 0;
    }
    return lines + (size != 0 && data[size - 1] != '\n' ? 1 : 0);
}

static bool ingest_one(lahar_store *store, const char *root, struct input *input,
                       lahar_error *error)
{
    char path[PATH_SIZE * 2];
    size_t size = 0;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec, .name = input->stream, .schema = LAHAR_SCHEMA_LOG};
    lahar_ingest_options options;
    lahar_ingest *ingest = NULL;
    lahar_ingest_result result = {.struct_size = sizeof result};
    lahar_ingest_options_init(&options);
    options.format = LAHAR_FORMAT_LINE;
    options.filename = input->path;
    (void)snprintf(path, sizeof path, "%s/%s", root, input->path);
    char *data = public_read(path, &size);
    if (data == NULL) {
        return false;
    }
    input->line_count = count_lines(data, size);
    bool ok = lahar_stream_create(store, &spec, &options.stream, error) == LAHAR_OK &&
              lahar_ingest_open(store, &options, &ingest, error) == LAHAR_OK;
    /* Odd pieces, so that lines are cut at every kind of place. */
    for (size_t at = 0; ok && at < size; at += 64007) {
        const size_t piece = size - at < 64007 ? size - at : 64007;
        ok = lahar_ingest_write(ingest, data + at, piece, error) == LAHAR_OK;
    }
    ok = ok && lahar_ingest_finish(ingest, &result, error) == LAHAR_OK &&
         result.event_count == input->line_count && result.error_count == 0;
    lahar_ingest_close(ingest);
    free(data);
    return ok;
}

static bool ingest_all(lahar_store *store, const char *root, struct inputs *inputs)
{
    lahar_error error = {0};
    bool ok = true;
    for (size_t i = 0; i < inputs->count; i++) {
        ok = ingest_one(store, root, &inputs->items[i], &error) && ok;
        if (!ok) {
            printf("FAIL ingest %s: %s\n", inputs->items[i].path, error.message);
        }
    }
    return ok;
}

static bool same_bytes(lahar_store *store, const char *root, const struct input *input)
{
    char path[PATH_SIZE * 2];
    size_t size = 0;
    size_t at = 0;
    lahar_scan_options options;
    lahar_cursor *cursor = NULL;
    lahar_export *export_ = NULL;
    lahar_scan_options_init(&options);
    (void)snprintf(path, sizeof path, "%s/%s", root, input->path);
    char *data = public_read(path, &size);
    bool ok = data != NULL &&
              lahar_stream_find(store, input->stream, &options.stream, NULL) == LAHAR_OK &&
              lahar_scan(store, &options, &cursor, NULL) == LAHAR_OK &&
              lahar_export_open(store, &export_, NULL) == LAHAR_OK;
    while (ok) {
        const lahar_event *event = NULL;
        lahar_bytes bytes = {NULL, 0};
        const lahar_status status = lahar_cursor_next(cursor, &event, NULL);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        ok = status == LAHAR_OK && lahar_export_raw(export_, event, &bytes, NULL) == LAHAR_OK &&
             bytes.size <= size - at && memcmp(data + at, bytes.data, bytes.size) == 0;
        at += bytes.size;
    }
    lahar_export_close(export_);
    lahar_cursor_close(cursor);
    free(data);
    return ok && at == size;
}

static const struct input *find_input(const struct inputs *inputs, const char *path)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (strcmp(inputs->items[i].path, path) == 0) {
            return &inputs->items[i];
        }
    }
    return NULL;
}

/* All rows of the table in one state of the store; returns how many were asked. */
static unsigned ask_all(lahar_store *store, const char *root, const struct inputs *inputs,
                        const char *state)
{
    const struct public_names names = {.line = "message"};
    char path[PATH_SIZE * 2];
    size_t size = 0;
    unsigned asked = 0;
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
        char expression[EXPRESSION_SIZE] = "";
        struct json_object *query = json_tokener_parse(columns[3]);
        const struct input *input = find_input(inputs, columns[0]);
        if (query != NULL && input != NULL && public_translate(query, &names, expression)) {
            char what[PATH_SIZE * 2];
            char detail[EXPRESSION_SIZE * 2];
            lahar_error error = {0};
            uint64_t total = 0;
            const bool ok = public_count(store, input->stream, expression, &total, &error);
            (void)snprintf(what, sizeof what, "%s: %s %s", state, columns[0], columns[1]);
            (void)snprintf(detail, sizeof detail, "%s gives %llu, expected %s %s", expression,
                           (unsigned long long)total, columns[4], error.message);
            (void)public_expect(ok && total == strtoull(columns[4], NULL, 10), what, detail);
            asked++;
        }
        json_object_put(query);
    }
    free(table);
    return asked;
}

static void check_state(lahar_store *store, const char *root, const struct inputs *inputs,
                        const char *state)
{
    unsigned exact = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        exact += same_bytes(store, root, &inputs->items[i]) ? 1 : 0;
    }
    char detail[64];
    (void)snprintf(detail, sizeof detail, "%u of %zu files", exact, inputs->count);
    (void)public_expect(exact == inputs->count, state, detail);
    const unsigned asked = ask_all(store, root, inputs, state);
    printf("%s: %u queries, %u files byte-exact\n", state, asked, exact);
    (void)snprintf(detail, sizeof detail, "%u queries were asked", asked);
    (void)public_expect(asked == 192, state, detail);
}

static lahar_store *open_store(const char *path, const char *state)
{
    lahar_store *store = NULL;
    lahar_error error = {0};
    const bool ok = lahar_store_open(path, NULL, UINT64_C(10000000000), &store, &error) == LAHAR_OK;
    return public_expect(ok, state, error.message) ? store : NULL;
}

static void close_store(lahar_store *store)
{
    lahar_error error = {0};
    (void)public_expect(lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK, "close",
                        error.message);
}

/* Ingests everything, makes it durable, and is killed. */
static void ingest_and_die(const char *path, const char *root, struct inputs *inputs)
{
    lahar_store *store = NULL;
    if (lahar_store_open(path, NULL, LAHAR_NO_WAIT, &store, NULL) == LAHAR_OK &&
        ingest_all(store, root, inputs) &&
        lahar_sync(store, LAHAR_WAIT_FOREVER, NULL) == LAHAR_OK) {
        (void)raise(SIGKILL);
    }
    _exit(1);
}

static void run_states(const char *root, struct inputs *inputs)
{
    char path[SCRATCH_PATH_SIZE];
    char store_path[SCRATCH_PATH_SIZE + 16];
    lahar_error error = {0};
    scratch_create(path);
    (void)snprintf(store_path, sizeof store_path, "%s/first", path);
    lahar_store *store = open_store(store_path, "open");
    if (store != NULL && public_expect(ingest_all(store, root, inputs), "ingest", "see above")) {
        check_state(store, root, inputs, "open group");
        (void)public_expect(lahar_rollover(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK,
                            "rollover", error.message);
        check_state(store, root, inputs, "after rollover");
    }
    close_store(store);
    store = open_store(store_path, "reopen");
    if (store != NULL) {
        check_state(store, root, inputs, "after reopening");
    }
    close_store(store);

    (void)snprintf(store_path, sizeof store_path, "%s/second", path);
    const pid_t pid = fork();
    if (pid == 0) {
        ingest_and_die(store_path, root, inputs);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    (void)public_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "kill",
                        "the child failed");
    store = open_store(store_path, "open after kill -9");
    if (store != NULL) {
        check_state(store, root, inputs, "after kill -9");
    }
    close_store(store);
    if (public_failed == 0) {
        scratch_remove(path);
    } else {
        printf("stores kept in %s\n", path);
    }
}

int main(void)
{
    static struct inputs inputs;
    const char *root = public_root();
    collect(root, "logs", &inputs);
    collect(root, "nifi", &inputs);
    collect(root, "lineage", &inputs);
    if (inputs.count == 0) {
        printf("no data under %s\n0 passed, 0 failed, 1 skipped\n", root);
        return 77;
    }
    run_states(root, &inputs);
    printf("%u passed, %u failed, 0 skipped\n", public_passed, public_failed);
    return public_failed == 0 ? 0 : 1;
}
