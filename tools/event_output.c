#include "tools/event_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "tools/complain.h"
#include "tools/interrupt.h"
#include "tools/text_json.h"
#include "tools/time_text.h"

static const char DIM[] = "\033[2m";
static const char RED[] = "\033[31m";
static const char PLAIN[] = "\033[0m";

enum exit_status event_output_open(struct event_output *output, lahar_store *store,
                                   enum event_output_form form)
{
    lahar_error error = {.status = LAHAR_OK};
    const char *no_colour = getenv("NO_COLOR");
    *output = (struct event_output){
        .store = store,
        .form = form,
        .is_coloured = isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0'),
    };
    if (form == EVENT_OUTPUT_JSON &&
        lahar_export_open(store, &output->export_, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    return EXIT_STATUS_DONE;
}

void event_output_close(struct event_output *output)
{
    lahar_export_close(output->export_);
    output->export_ = NULL;
    attribute_cut_free(&output->cut);
}

/* --- for people ----------------------------------------------------------- */

/* quote: '"' is escaped as well, as inside a quoted value. */
static void put_escaped(lahar_bytes bytes, bool quote)
{
    const unsigned char *at = bytes.data;
    for (size_t i = 0; i < bytes.size; i++) {
        if (at[i] == '\n') {
            (void)fputs("\\n", stdout);
        } else if ((at[i] < 0x20 && at[i] != '\t') || at[i] == 0x7f) {
            (void)printf("\\x%02X", at[i]);
        } else if (quote && (at[i] == '"' || at[i] == '\\')) {
            (void)putchar('\\');
            (void)putchar(at[i]);
        } else {
            (void)putchar(at[i]);
        }
    }
}

void event_output_text(lahar_bytes bytes)
{
    put_escaped(bytes, false);
}

static void put_colour(const struct event_output *output, const char *colour)
{
    if (output->is_coloured) {
        (void)fputs(colour, stdout);
    }
}

/* Quoted when its end, or what is in it, could be mistaken. */
static void put_value_text(lahar_bytes bytes)
{
    const char *at = bytes.data;
    bool is_plain = bytes.size > 0;
    for (size_t i = 0; i < bytes.size && is_plain; i++) {
        is_plain = (unsigned char)at[i] > ' ' && at[i] != '"' && at[i] != '=';
    }
    if (is_plain) {
        put_escaped(bytes, false);
        return;
    }
    (void)putchar('"');
    put_escaped(bytes, true);
    (void)putchar('"');
}

static void put_uuid(const lahar_uuid *uuid)
{
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        (void)printf(i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid->bytes[i]);
    }
}

static void put_scalar(const lahar_value *value)
{
    char time[TIME_TEXT_SIZE];
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
        put_value_text(value->as.bytes);
        break;
    case LAHAR_BYTES:
        (void)fputs("0x", stdout);
        for (size_t i = 0; i < value->as.bytes.size; i++) {
            (void)printf("%02x", ((const unsigned char *)value->as.bytes.data)[i]);
        }
        break;
    case LAHAR_UUID:
        put_uuid(&value->as.uuid);
        break;
    case LAHAR_I64:
        (void)printf("%" PRId64, value->as.i64);
        break;
    case LAHAR_U64:
        (void)printf("%" PRIu64, value->as.u64);
        break;
    case LAHAR_F64:
        (void)printf("%.17g", value->as.f64);
        break;
    case LAHAR_BOOL:
        (void)fputs(value->as.boolean ? "true" : "false", stdout);
        break;
    case LAHAR_TIME:
        time_text_short(value->as.time_ns, time);
        (void)fputs(time, stdout);
        break;
    case LAHAR_LIST_UUID:
        for (size_t i = 0; i < value->as.uuids.count; i++) {
            (void)fputs(i == 0 ? "" : ",", stdout);
            put_uuid(&value->as.uuids.items[i]);
        }
        break;
    case LAHAR_LIST_KEYWORD:
        for (size_t i = 0; i < value->as.keywords.count; i++) {
            (void)fputs(i == 0 ? "" : ",", stdout);
            put_value_text(value->as.keywords.items[i]);
        }
        break;
    case LAHAR_MAP:
    default:
        break;
    }
}

/* What stands in front of a map's keys: attributes need no name, as in queries. */
static const char *map_prefix(const char *field)
{
    if (strcmp(field, "attributes") == 0) {
        return "";
    }
    return strcmp(field, "previous_attributes") == 0 ? "prev." : field;
}

/* key=value pairs behind one another, or one a line. */
static void put_pairs(const struct event_output *output, const lahar_value *value, const char *name)
{
    const bool is_line = output->form == EVENT_OUTPUT_LINES;
    const size_t count = value->type == LAHAR_MAP && !value->is_null ? value->as.map.count : 1;
    for (size_t i = 0; i < count; i++) {
        const lahar_pair *pair =
            value->type == LAHAR_MAP && !value->is_null ? &value->as.map.items[i] : NULL;
        put_colour(output, DIM);
        (void)fputs(is_line ? " " : "", stdout);
        if (pair == NULL) {
            (void)fputs(name, stdout);
        } else {
            const char *prefix = map_prefix(name);
            (void)fputs(prefix, stdout);
            (void)fputs(prefix == name ? "." : "", stdout);
            put_escaped(pair->key, false);
        }
        (void)fputs(is_line ? "=" : ": ", stdout);
        put_colour(output, PLAIN);
        if (pair == NULL ? value->is_null : pair->is_null) {
            (void)fputs("null", stdout);
        } else if (pair == NULL) {
            put_scalar(value);
        } else {
            put_value_text(pair->value);
        }
        (void)fputs(is_line ? "" : "\n", stdout);
    }
}

static const lahar_value *find_value(const lahar_event *event, uint32_t field)
{
    for (size_t i = 0; i < event->value_count; i++) {
        if (event->values[i].field == field && !event->values[i].is_null) {
            return &event->values[i];
        }
    }
    return NULL;
}

/* What ingest keeps for exact export is not for reading. */
static bool is_shown(const lahar_value *value)
{
    return value->field != LAHAR_FIELD_FRAMING && value->field != LAHAR_FIELD_SHAPE;
}

/* Declared fields say what happened; maps, which are long, come behind them, and
 * what ingest noted about the source comes last. */
static int display_rank(const lahar_value *value, const char *name)
{
    if (name[0] == '_') {
        return 2;
    }
    return value->type == LAHAR_MAP ? 1 : 0;
}

static void write_values(const struct event_output *output, const lahar_event *event)
{
    for (int rank = 0; rank <= 2; rank++) {
        for (size_t i = 0; i < event->value_count; i++) {
            const lahar_value *value = &event->values[i];
            const char *known = lahar_field_name(output->store, value->field);
            const char *name = known == NULL ? "?" : known;
            if (is_shown(value) && display_rank(value, name) == rank) {
                put_pairs(output, value, name);
            }
        }
    }
}

/* --- attributes as they took effect ------------------------------------------ */

static const lahar_value *find_map(const lahar_event *event, uint32_t field)
{
    const lahar_value *value = find_value(event, field);
    return value != NULL && value->type == LAHAR_MAP ? value : NULL;
}

static bool map_has_key(const lahar_value *map, lahar_bytes key)
{
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        const lahar_pair *pair = &map->as.map.items[i];
        if (pair->key.size == key.size &&
            (key.size == 0 || memcmp(pair->key.data, key.data, key.size) == 0)) {
            return true;
        }
    }
    return false;
}

/* Calls visit for the attributes of an event that has previous ones: those that were neither
 * removed nor given again, then the updated ones. */
static void each_effective(const lahar_event *event,
                           void (*visit)(void *context, const lahar_pair *pair), void *context)
{
    const lahar_value *previous = find_map(event, LAHAR_FIELD_PREVIOUS);
    const lahar_value *updated = find_map(event, LAHAR_FIELD_ATTRIBUTES);
    for (size_t i = 0; previous != NULL && i < previous->as.map.count; i++) {
        const lahar_pair *pair = &previous->as.map.items[i];
        if (!pair->is_null && !map_has_key(updated, pair->key)) {
            visit(context, pair);
        }
    }
    for (size_t i = 0; previous != NULL && updated != NULL && i < updated->as.map.count; i++) {
        if (!updated->as.map.items[i].is_null) {
            visit(context, &updated->as.map.items[i]);
        }
    }
}

static void write_effective(void *context, const lahar_pair *pair)
{
    (void)context;
    (void)fputs("effective.", stdout);
    put_escaped(pair->key, false);
    (void)fputs(": ", stdout);
    put_value_text(pair->value);
    (void)putchar('\n');
}

static bool is_error_level(lahar_bytes level)
{
    return (level.size == 5 && memcmp(level.data, "ERROR", 5) == 0) ||
           (level.size == 5 && memcmp(level.data, "FATAL", 5) == 0);
}

static void write_line(const struct event_output *output, const lahar_event *event)
{
    char time[TIME_TEXT_SIZE];
    const char *stream = lahar_stream_name(output->store, event->stream);
    const lahar_value *message = find_value(event, LAHAR_FIELD_MESSAGE);
    const lahar_value *level = find_value(event, LAHAR_FIELD_LEVEL);
    time_text_short(event->time_ns, time);
    put_colour(output, DIM);
    (void)printf("%s %" PRIu64 " %s", time, event->id, stream == NULL ? "?" : stream);
    put_colour(output, PLAIN);
    if (message == NULL || message->type != LAHAR_TEXT) {
        write_values(output, event);
    } else {
        if (level != NULL && level->type == LAHAR_KEYWORD) {
            (void)putchar(' ');
            put_colour(output, is_error_level(level->as.bytes) ? RED : "");
            put_escaped(level->as.bytes, false);
            put_colour(output, PLAIN);
        }
        (void)putchar(' ');
        put_escaped(message->as.bytes, false);
    }
    (void)putchar('\n');
}

static void write_fields(const struct event_output *output, const lahar_event *event)
{
    char time[TIME_TEXT_SIZE];
    char arrival[TIME_TEXT_SIZE];
    const char *stream = lahar_stream_name(output->store, event->stream);
    time_text_exact(event->time_ns, time);
    time_text_exact(event->arrival_ns, arrival);
    (void)fputs(output->written_count == 0 ? "" : "\n", stdout);
    (void)printf("id: %" PRIu64 "\ntime: %s\narrival: %s\nstream: %s\ndurable: %s\n", event->id,
                 time, arrival, stream == NULL ? "?" : stream,
                 event->is_durable ? "true" : "false");
    write_values(output, event);
    each_effective(event, write_effective, NULL);
}

/* --- JSON ----------------------------------------------------------------- */

/* Puts the library's own text for the fields in place: parsing it and printing it
 * again could change how a number is written. */
static int print_verbatim(struct json_object *object, struct printbuf *out, int level, int flags)
{
    const lahar_bytes *text = json_object_get_userdata(object);
    (void)level;
    (void)flags;
    return printbuf_memappend(out, text->data, (int)text->size);
}

static struct json_object *verbatim_object(lahar_bytes *text)
{
    struct json_object *object = json_object_new_object();
    json_object_set_serializer(object, print_verbatim, text, NULL);
    return object;
}

static void add_effective(void *context, const lahar_pair *pair)
{
    text_json_add_pair(context, pair);
}

static enum exit_status write_json(struct event_output *output, const lahar_event *event)
{
    lahar_error error = {.status = LAHAR_OK};
    lahar_bytes fields = {.data = NULL, .size = 0};
    char time[TIME_TEXT_SIZE];
    char arrival[TIME_TEXT_SIZE];
    if (lahar_export_json(output->export_, event, &fields, &error) != LAHAR_OK) {
        return complain_of(&error);
    }
    time_text_exact(event->time_ns, time);
    time_text_exact(event->arrival_ns, arrival);
    const char *stream = lahar_stream_name(output->store, event->stream);
    struct json_object *line = json_object_new_object();
    json_object_object_add(line, "id", json_object_new_uint64(event->id));
    json_object_object_add(line, "time", json_object_new_string(time));
    json_object_object_add(line, "arrival", json_object_new_string(arrival));
    json_object_object_add(line, "stream", json_object_new_string(stream == NULL ? "?" : stream));
    json_object_object_add(line, "durable", json_object_new_boolean(event->is_durable));
    json_object_object_add(line, "fields", verbatim_object(&fields));
    if (find_map(event, LAHAR_FIELD_PREVIOUS) != NULL) {
        struct json_object *effective = json_object_new_object();
        each_effective(event, add_effective, effective);
        json_object_object_add(line, "effective", effective);
    }
    const char *text = json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN |
                                                                JSON_C_TO_STRING_NOSLASHESCAPE);
    if (text != NULL) {
        (void)fputs(text, stdout);
        (void)putchar('\n');
    } else {
        complain("event %" PRIu64 ": out of memory", event->id);
    }
    (void)json_object_put(line);
    return text == NULL ? EXIT_STATUS_IO : EXIT_STATUS_DONE;
}

enum exit_status event_output_write(struct event_output *output, const lahar_event *event)
{
    enum exit_status status = EXIT_STATUS_DONE;
    event = attribute_cut_apply(&output->cut, event);
    if (event == NULL) {
        complain("out of memory");
        return EXIT_STATUS_IO;
    }
    switch (output->form) {
    case EVENT_OUTPUT_LINES:
        write_line(output, event);
        break;
    case EVENT_OUTPUT_FIELDS:
        write_fields(output, event);
        break;
    case EVENT_OUTPUT_JSON:
    default:
        status = write_json(output, event);
        break;
    }
    output->written_count++;
    return ferror(stdout) == 0 ? status : finish_output(status);
}

enum exit_status event_output_write_all(struct event_output *output, event_output_next next,
                                        void *context, uint64_t limit)
{
    enum exit_status status = EXIT_STATUS_DONE;
    while ((limit == 0 || output->written_count < limit) && !interrupt_seen()) {
        const lahar_event *event = NULL;
        lahar_error error = {.status = LAHAR_OK};
        const lahar_status got = next(context, &event, &error);
        if (got == LAHAR_NOT_FOUND) {
            return status;
        }
        if (got == LAHAR_CORRUPT) {
            status = complain_of(&error);
            continue;
        }
        if (got != LAHAR_OK) {
            return complain_of(&error);
        }
        const enum exit_status written = event_output_write(output, event);
        if (written != EXIT_STATUS_DONE) {
            return written;
        }
    }
    return interrupt_seen() ? EXIT_STATUS_INTERRUPTED : status;
}
