/* What the tests on real files share; see public_data.h. */
#include "public_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOT_SIZE = 4096
};

unsigned public_passed;
unsigned public_failed;

const char *public_root(void)
{
    static char root[ROOT_SIZE];
    const char *given = getenv("LAHAR_TEST_DATA");
    const int size =
        snprintf(root, sizeof root, "%s/public", given == NULL ? LAHAR_TEST_DATA : given);
    return size < (int)sizeof root ? root : LAHAR_TEST_DATA;
}

bool public_expect(bool condition, const char *what, const char *detail)
{
    public_passed += condition ? 1 : 0;
    public_failed += condition ? 0 : 1;
    if (!condition) {
        printf("FAIL %s: %s\n", what, detail);
    }
    return condition;
}

char *public_read(const char *path, size_t *size_out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    (void)fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    (void)fseek(file, 0, SEEK_SET);
    char *data = malloc((size_t)size + 1);
    if (data != NULL && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    (void)fclose(file);
    if (data != NULL) {
        data[size] = '\0';
        *size_out = (size_t)size;
    }
    return data;
}

void public_put(char *out, const char *text)
{
    const size_t used = strlen(out);
    (void)snprintf(out + used, PUBLIC_EXPRESSION_SIZE - used, "%s", text);
}

/* A quoted string of the query language. */
void public_put_quoted(char *out, const char *text)
{
    public_put(out, "\"");
    for (const char *c = text; *c != '\0'; c++) {
        const char escaped[3] = {'\\', *c, '\0'};
        public_put(out, *c == '"' || *c == '\\' ? escaped : escaped + 1);
    }
    public_put(out, "\"");
}

static void put_text_test(struct json_object *query, const char *op,
                          const struct public_names *names, char *out)
{
    public_put(out, names->line);
    public_put(out, strcmp(op, "word") == 0 ? ":" : strcmp(op, "substr") == 0 ? "~=" : "~");
    public_put_quoted(out, json_object_get_string(json_object_object_get(query, "t")));
}

static void put_time_test(struct json_object *query, char *out)
{
    char text[128];
    (void)snprintf(text, sizeof text, "time:[@%sns..@%sns)",
                   json_object_get_string(json_object_object_get(query, "from_ns")),
                   json_object_get_string(json_object_object_get(query, "to_ns")));
    public_put(out, text);
}

static void put_field_test(struct json_object *query, const char *op,
                           const struct public_names *names, char *out)
{
    const char *field = json_object_get_string(json_object_object_get(query, "f"));
    names->put_field(names->context, field, out);
    public_put(out, strcmp(op, "field") == 0 ? "=" : ">=");
    public_put_quoted(out, json_object_get_string(json_object_object_get(query, "v")));
}

bool public_translate(struct json_object *query, const struct public_names *names, char *out)
{
    const char *op = json_object_get_string(json_object_object_get(query, "op"));
    struct json_object *arguments = json_object_object_get(query, "a");
    if (strcmp(op, "word") == 0 || strcmp(op, "substr") == 0 || strcmp(op, "substr_ci") == 0) {
        put_text_test(query, op, names, out);
        return true;
    }
    if (strcmp(op, "not") == 0) {
        public_put(out, "NOT (");
        const bool ok = public_translate(arguments, names, out);
        public_put(out, ")");
        return ok;
    }
    if (strcmp(op, "and") == 0 || strcmp(op, "or") == 0) {
        for (size_t i = 0; i < json_object_array_length(arguments); i++) {
            public_put(out, i == 0 ? "(" : strcmp(op, "and") == 0 ? ") AND (" : ") OR (");
            if (!public_translate(json_object_array_get_idx(arguments, i), names, out)) {
                return false;
            }
        }
        public_put(out, ")");
        return true;
    }
    if (names->put_field == NULL) {
        return false;
    }
    if (strcmp(op, "time") == 0) {
        put_time_test(query, out);
        return true;
    }
    if (strcmp(op, "field") == 0 || strcmp(op, "field_ge") == 0) {
        put_field_test(query, op, names, out);
        return true;
    }
    return false;
}

bool public_count(lahar_store *store, const char *stream, const char *expression,
                  uint64_t *total_out, lahar_error *error)
{
    lahar_query_options options;
    lahar_query *query = NULL;
    lahar_query_result result = {.struct_size = sizeof result};
    uint64_t streamed = 0;
    lahar_query_options_init(&options);
    if (lahar_stream_find(store, stream, &options.stream, error) != LAHAR_OK) {
        return false;
    }
    options.limit = 0;
    bool ok = lahar_query_open(store, expression, strlen(expression), &options, &query, error) ==
              LAHAR_OK;
    while (ok) {
        const lahar_event *event = NULL;
        const lahar_status status = lahar_query_next(query, &event, error);
        if (status == LAHAR_NOT_FOUND) {
            break;
        }
        ok = status == LAHAR_OK;
        streamed += ok ? 1 : 0;
    }
    ok = ok && lahar_query_result_get(query, &result, error) == LAHAR_OK;
    lahar_query_close(query);
    *total_out = result.total;
    if (ok && (result.total != streamed || result.relation != LAHAR_RELATION_EXACT)) {
        (void)snprintf(error->message, sizeof error->message, "total %llu but %llu events",
                       (unsigned long long)result.total, (unsigned long long)streamed);
        return false;
    }
    return ok;
}
