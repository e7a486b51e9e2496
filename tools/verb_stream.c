/* lahar stream create, list, show. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/arguments.h"
#include "tools/complain.h"
#include "tools/json_line.h"
#include "tools/store_access.h"
#include "tools/verb.h"

static const char USAGE[] =
    "usage: lahar stream create STORE NAME [--field SPEC]...\n"
    "                    [--schema log|provenance] [--if-not-exists] [--no-create]\n"
    "       lahar stream list STORE [--json]\n"
    "       lahar stream show STORE NAME [--json]\n\n"
    "A stream is a named kind of event with declared fields. Names that are not\n"
    "declared are kept as attributes.\n\n"
    "  --field SPEC      'NAME TYPE [not-indexed] [DEFAULT|MATERIALIZED|ALIAS EXPR]':\n"
    "                    a field in addition to those of the schema; TYPE is one of\n"
    "                    keyword text uuid i64 u64 f64 bool time bytes list<uuid>\n"
    "                    list<keyword> map; not-indexed: found only by scanning;\n"
    "                    EXPR gives the value of what is ingested or followed: where\n"
    "                    it has none, always, or only where it is shown as JSON\n"
    "  --schema NAME     the fields to start with; log, or provenance for a stream\n"
    "                    of that name\n"
    "  --if-not-exists   do nothing when there is a stream of that name\n"
    "  --no-create       do not create the store\n"
    "  --json            one JSON object a line\n";

enum {
    FIELDS_MAX = 256,
    OPTION_FIELD = OPTION_FIRST,
    OPTION_SCHEMA,
    OPTION_IF_NOT_EXISTS,
    OPTION_NO_CREATE,
    OPTION_JSON
};

static const struct option_spec OPTIONS[] = {
    {"help", 'h', false},
    {"field", OPTION_FIELD, true},
    {"schema", OPTION_SCHEMA, true},
    {"if-not-exists", OPTION_IF_NOT_EXISTS, false},
    {"no-create", OPTION_NO_CREATE, false},
    {"json", OPTION_JSON, false},
    {NULL, 0, false},
};

/* In the order of enum lahar_type, which begins at 1. */
static const char *const TYPE_NAMES[] = {"keyword", "text",       "uuid",          "i64",
                                         "u64",     "f64",        "bool",          "time",
                                         "bytes",   "list<uuid>", "list<keyword>", "map"};

enum {
    TYPE_COUNT = sizeof TYPE_NAMES / sizeof TYPE_NAMES[0]
};

struct stream_request {
    const char *action; /* "create", ... */
    const char *directory;
    const char *name;
    lahar_field_spec fields[FIELDS_MAX]; /* names point into the arguments */
    size_t field_count;
    lahar_column_spec columns[FIELDS_MAX]; /* the same */
    size_t column_count;
    lahar_schema schema; /* 0: by the stream's name */
    bool if_not_exists;
    bool no_create;
    bool json;
};

static const char *type_name(lahar_type type)
{
    return type >= 1 && (int)type <= TYPE_COUNT ? TYPE_NAMES[(int)type - 1] : "?";
}

static const char *schema_name(lahar_schema schema)
{
    return schema == LAHAR_SCHEMA_PROVENANCE ? "provenance" : "log";
}

/* Cuts the next word off text, in place; NULL when there is none. */
static char *take_word(char **text)
{
    char *word = *text + strspn(*text, " ");
    if (*word == '\0') {
        return NULL;
    }
    char *end = word + strcspn(word, " ");
    *text = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

static bool parse_type(const char *word, lahar_type *type_out)
{
    for (int type = 0; type < TYPE_COUNT; type++) {
        if (strcmp(word, TYPE_NAMES[type]) == 0) {
            *type_out = (lahar_type)(type + 1);
            return true;
        }
    }
    complain("--field: unknown type '%s'", word);
    return false;
}

static bool parse_kind(const char *word, lahar_column_kind *kind_out)
{
    static const char *const KINDS[] = {"DEFAULT", "MATERIALIZED", "ALIAS"};
    for (int kind = 0; kind < 3; kind++) {
        if (strcasecmp(word, KINDS[kind]) == 0) {
            *kind_out = (lahar_column_kind)(kind + 1);
            return true;
        }
    }
    return false;
}

/* NAME TYPE [not-indexed] [KIND EXPRESSION] */
static bool parse_field(struct stream_request *request, char *text)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_field_spec field = {.name = take_word(&text)};
    char *word = field.name == NULL ? NULL : take_word(&text);
    lahar_column_spec column = {.name = field.name};
    if (word == NULL) {
        complain("--field: expected 'NAME TYPE [not-indexed] [DEFAULT|MATERIALIZED|ALIAS EXPR]'");
        return false;
    }
    if (!parse_type(word, &field.type)) {
        return false;
    }
    word = take_word(&text);
    if (word != NULL && strcmp(word, "not-indexed") == 0) {
        field.not_indexed = true;
        word = take_word(&text);
    }
    if (word != NULL) {
        column.type = field.type;
        column.expression = text;
        if (!parse_kind(word, &column.kind)) {
            complain("--field: '%s' is none of not-indexed, DEFAULT, MATERIALIZED and ALIAS", word);
            return false;
        }
        if (lahar_column_check(&column, &error) != LAHAR_OK) {
            (void)complain_of(&error);
            return false;
        }
        request->columns[request->column_count++] = column;
    }
    if (column.kind != LAHAR_COLUMN_ALIAS) {
        request->fields[request->field_count++] = field;
    }
    return true;
}

static bool parse_schema(const char *text, lahar_schema *schema_out)
{
    if (strcmp(text, "log") == 0) {
        *schema_out = LAHAR_SCHEMA_LOG;
    } else if (strcmp(text, "provenance") == 0) {
        *schema_out = LAHAR_SCHEMA_PROVENANCE;
    } else {
        complain("--schema: '%s' is neither log nor provenance", text);
        return false;
    }
    return true;
}

static bool take_option(struct stream_request *request, int option, char *value)
{
    switch (option) {
    case OPTION_FIELD:
        if (request->field_count == FIELDS_MAX || request->column_count == FIELDS_MAX) {
            complain("--field: at most %d", FIELDS_MAX);
            return false;
        }
        return parse_field(request, value);
    case OPTION_SCHEMA:
        return parse_schema(value, &request->schema);
    case OPTION_IF_NOT_EXISTS:
        request->if_not_exists = true;
        return true;
    case OPTION_NO_CREATE:
        request->no_create = true;
        return true;
    case OPTION_JSON:
        request->json = true;
        return true;
    default:
        return false;
    }
}

static enum exit_status create(const struct stream_request *request)
{
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    enum exit_status status = store_access_open(
        request->directory, request->no_create ? STORE_WRITE : STORE_WRITE_OR_CREATE, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    const bool is_provenance = strcmp(request->name, "provenance") == 0;
    const lahar_schema by_name = is_provenance ? LAHAR_SCHEMA_PROVENANCE : LAHAR_SCHEMA_LOG;
    const lahar_stream_spec spec = {
        .struct_size = sizeof spec,
        .name = request->name,
        .schema = request->schema == 0 ? by_name : request->schema,
        .fields = request->fields,
        .field_count = request->field_count,
    };
    const lahar_status created = lahar_stream_create(store, &spec, NULL, &error);
    if (created != LAHAR_OK && !(created == LAHAR_EXISTS && request->if_not_exists)) {
        status = complain_of(&error);
    }
    if (created == LAHAR_OK && request->column_count != 0 &&
        lahar_stream_set_columns(store, request->name, request->columns, request->column_count,
                                 &error) != LAHAR_OK) {
        status = complain_of(&error);
    }
    return store_access_close(store, status);
}

static void print_stream(const lahar_stream_info *info, bool json)
{
    if (!json) {
        (void)printf("%-24s %-10s %12" PRIu64 " events", info->name, schema_name(info->schema),
                     info->event_count);
        if (info->event_count != 0) {
            (void)printf(", ids %" PRIu64 " to %" PRIu64, info->first_id, info->last_id);
        }
        (void)putchar('\n');
        return;
    }
    struct json_object *line = json_object_new_object();
    json_line_string(line, "name", info->name);
    json_line_string(line, "schema", schema_name(info->schema));
    json_line_number(line, "fields", info->field_count);
    json_line_number(line, "events", info->event_count);
    json_line_number(line, "first_id", info->first_id);
    json_line_number(line, "last_id", info->last_id);
    json_line_print(line);
}

static enum exit_status list(const struct stream_request *request)
{
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    enum exit_status status = store_access_open(request->directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    for (uint32_t stream = 0; status == EXIT_STATUS_DONE; stream++) {
        lahar_stream_info info;
        const lahar_status found = lahar_stream_info_get(store, stream, &info, &error);
        if (found == LAHAR_NOT_FOUND) {
            break;
        }
        if (found != LAHAR_OK) {
            status = complain_of(&error);
        } else {
            print_stream(&info, request->json);
        }
    }
    return store_access_close(store, status);
}

static enum exit_status print_fields(lahar_store *store, const lahar_stream_info *info, bool json)
{
    lahar_error error = {.status = LAHAR_OK};
    for (size_t i = 0; i < info->field_count; i++) {
        lahar_field_info field;
        if (lahar_stream_field(store, info->stream, i, &field, &error) != LAHAR_OK) {
            return complain_of(&error);
        }
        if (field.is_hidden) {
            continue;
        }
        if (json) {
            struct json_object *line = json_object_new_object();
            json_line_string(line, "field", field.name);
            json_line_string(line, "type", type_name(field.type));
            (void)json_object_object_add(line, "indexed",
                                         json_object_new_boolean(!field.not_indexed));
            json_line_print(line);
        } else {
            (void)printf("  %-24s %s%s\n", field.name, type_name(field.type),
                         field.not_indexed ? ", not indexed" : "");
        }
    }
    return EXIT_STATUS_DONE;
}

static lahar_status print_column(void *context, const lahar_column_spec *column)
{
    static const char *const KINDS[] = {"", "DEFAULT", "MATERIALIZED", "ALIAS"};
    const bool *json = context;
    if (*json) {
        struct json_object *line = json_object_new_object();
        json_line_string(line, "column", column->name);
        json_line_string(line, "type", type_name(column->type));
        json_line_string(line, "kind", KINDS[column->kind]);
        json_line_string(line, "expression", column->expression);
        json_line_print(line);
    } else {
        (void)printf("  %-24s %s %s %s\n", column->name, type_name(column->type),
                     KINDS[column->kind], column->expression);
    }
    return LAHAR_OK;
}

static enum exit_status show(const struct stream_request *request)
{
    lahar_store *store = NULL;
    lahar_error error = {.status = LAHAR_OK};
    uint32_t stream = 0;
    lahar_stream_info info;
    enum exit_status status = store_access_open(request->directory, STORE_READ, &store);
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    status = store_access_stream(store, request->name, &stream);
    if (status == EXIT_STATUS_DONE) {
        if (lahar_stream_info_get(store, stream, &info, &error) != LAHAR_OK) {
            status = complain_of(&error);
        } else {
            print_stream(&info, request->json);
            bool json = request->json;
            status = print_fields(store, &info, json);
            if (status == EXIT_STATUS_DONE &&
                lahar_stream_columns(store, request->name, print_column, &json, &error) !=
                    LAHAR_OK) {
                status = complain_of(&error);
            }
        }
    }
    return store_access_close(store, status);
}

enum exit_status verb_stream(int argument_count, char **items)
{
    struct arguments arguments = {.count = argument_count, .items = items, .specs = OPTIONS};
    struct stream_request request = {.action = NULL};
    const char **const places[] = {&request.action, &request.directory, &request.name};
    size_t place = 0;
    int option = 0;
    while ((option = arguments_next(&arguments)) != ARGUMENT_END) {
        if (option == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_STATUS_DONE;
        }
        if (option == ARGUMENT_POSITIONAL && place < 3) {
            *places[place++] = arguments.value;
        } else if (option == ARGUMENT_POSITIONAL) {
            return complain_of_usage("stream", "too many arguments");
        } else if (option == ARGUMENT_WRONG ||
                   !take_option(&request, option, (char *)(uintptr_t)arguments.value)) {
            return complain_of_usage("stream", NULL);
        }
    }
    if (place >= 2 && strcmp(request.action, "list") == 0) {
        return place == 2 ? list(&request) : complain_of_usage("stream", "too many arguments");
    }
    if (place == 3 && strcmp(request.action, "create") == 0) {
        return create(&request);
    }
    if (place == 3 && strcmp(request.action, "show") == 0) {
        return show(&request);
    }
    return complain_of_usage("stream", "expected create STORE NAME, list STORE or show STORE NAME");
}
