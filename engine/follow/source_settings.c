/* Settings by name, and definitions as bytes:
 *
 *   u8 version 2, u8 flags (1 paused), varint source
 *   path, root, stream, dead letter, time field: varint size + 1 and bytes, 0 for NULL
 *   u8 format
 *   varint count, then that many settings as varints in the order of the table below
 *   varint size, bytes: the settings of the format, names and values in turn, each with its NUL;
 *   not in version 1
 *
 * The table only grows at its end: what an older definition does not have is at its default. */
#include "engine/follow/source_settings.h"

#include <stddef.h>
#include <string.h>

#include "engine/format/format_kind.h"
#include "engine/format/format_settings.h"
#include "io/base/error.h"
#include "io/io.h"
#include "io/source_file.h"

enum {
    FORM_VERSION = 2, /* 1 had no settings of the format */
    FLAG_PAUSED = 1,
    STRING_COUNT = 5,
    /* Joined lines are a record once a line begins the next one, or none has come for so long. */
    JOINED_TIMEOUT_MS = 5000
};

enum setting_kind {
    SETTING_NUMBER,
    SETTING_SWITCH,
    SETTING_ERROR_MODE,
    SETTING_LONG_LINE
};

struct setting {
    const char *name;
    size_t place; /* in lahar_source_spec */
    enum setting_kind kind;
    bool refuses_zero; /* as FileLog: not set is the default, 0 is a mistake */
    uint64_t minimum;  /* of what is not 0 */
    uint64_t maximum;
    uint64_t initial;
    uint64_t zero_means; /* resolved */
};

#define DAY_MS UINT64_C(86400000)
#define NUMBER(field, refuses, minimum, maximum, initial, zero)                                    \
    {                                                                                              \
#field, offsetof(lahar_source_spec, field), SETTING_NUMBER, refuses, minimum, maximum,     \
            initial, zero                                                                          \
    }
#define SWITCH(field)                                                                              \
    {                                                                                              \
#field, offsetof(lahar_source_spec, field), SETTING_SWITCH, false, 0, 1, 0, 0              \
    }

/* 65,409 and 1,048,449 are what FileLog takes from its session when a size is not set. */
static const struct setting settings[] = {
    NUMBER(poll_timeout_ms, false, 1, DAY_MS, 0, 500),
    NUMBER(poll_max_batch_size, true, 1, UINT64_C(1) << 32, 0, 65409),
    NUMBER(max_block_size, false, 1, UINT64_C(1) << 32, 0, 1048449),
    NUMBER(max_threads, false, 1, 4096, 0, 0),
    NUMBER(poll_directory_watch_events_backoff_init, true, 1, DAY_MS, 500, 500),
    NUMBER(poll_directory_watch_events_backoff_max, true, 1, DAY_MS, 32000, 32000),
    NUMBER(poll_directory_watch_events_backoff_factor, true, 1, 1000, 2, 2),
    {"handle_error_mode", offsetof(lahar_source_spec, handle_error_mode), SETTING_ERROR_MODE, false,
     0, LAHAR_ERROR_MODE_STOP, 0, 0},
    NUMBER(line_size_max, true, 16, UINT64_C(16) << 20, UINT64_C(1) << 20, UINT64_C(1) << 20),
    {"long_line", offsetof(lahar_source_spec, long_line), SETTING_LONG_LINE, false, 0,
     LAHAR_LONG_LINE_ERROR, 0, 0},
    SWITCH(multiline),
    SWITCH(start_at_end),
    SWITCH(copies_rotated),
    SWITCH(decompress),
    SWITCH(on_shrink_continue),
    NUMBER(rotate_wait_ms, false, 1, 365 * DAY_MS, 5000, 0),
    NUMBER(partial_timeout_ms, false, 1, 365 * DAY_MS, 0, 0),
    NUMBER(remove_after_ms, false, 1, 365 * DAY_MS, 0, 0),
    NUMBER(forget_after_ms, false, 1, 36500 * DAY_MS, 30 * DAY_MS, 30 * DAY_MS),
    NUMBER(held_size_max, false, 1, UINT64_MAX, UINT64_C(16) << 30, UINT64_C(16) << 30),
    NUMBER(open_files_max, true, 1, 1000000, 256, 256),
};

enum {
    SETTING_COUNT = sizeof settings / sizeof settings[0]
};

static uint64_t get(const lahar_source_spec *spec, const struct setting *setting)
{
    const void *place = (const uint8_t *)spec + setting->place;
    switch (setting->kind) {
    case SETTING_NUMBER:
        return *(const uint64_t *)place;
    case SETTING_SWITCH:
        return *(const bool *)place;
    case SETTING_ERROR_MODE:
        return (uint64_t) * (const lahar_error_mode *)place;
    default:
        return (uint64_t) * (const lahar_long_line *)place;
    }
}

static void put(lahar_source_spec *spec, const struct setting *setting, uint64_t value)
{
    void *place = (uint8_t *)spec + setting->place;
    switch (setting->kind) {
    case SETTING_NUMBER:
        *(uint64_t *)place = value;
        break;
    case SETTING_SWITCH:
        *(bool *)place = value != 0;
        break;
    case SETTING_ERROR_MODE:
        *(lahar_error_mode *)place = (lahar_error_mode)value;
        break;
    case SETTING_LONG_LINE:
        *(lahar_long_line *)place = (lahar_long_line)value;
        break;
    }
}

void lahar_source_spec_init(lahar_source_spec *spec)
{
    *spec = (lahar_source_spec){.struct_size = sizeof *spec, .format = LAHAR_FORMAT_LINE};
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        put(spec, &settings[i], settings[i].initial);
    }
}

/* --- by name ------------------------------------------------------------------------ */

static bool parse_name(const char *value, const char *const *names, size_t count,
                       uint64_t *number_out)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value, names[i]) == 0) {
            *number_out = i;
            return true;
        }
    }
    return false;
}

static bool parse_number(const char *text, uint64_t *number_out)
{
    uint64_t number = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        const unsigned digit = (unsigned)(*text - '0');
        if (*text < '0' || digit > 9 || number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *number_out = number;
    return true;
}

static bool parse_value(const struct setting *setting, const char *value, uint64_t *number_out)
{
    static const char *const modes[] = {"default", "stream", "dead_letter_queue", "skip", "stop"};
    static const char *const long_lines[] = {"truncate", "skip", "error"};
    static const char *const switches[] = {"false", "true"};
    switch (setting->kind) {
    case SETTING_ERROR_MODE:
        return parse_name(value, modes, sizeof modes / sizeof *modes, number_out);
    case SETTING_LONG_LINE:
        return parse_name(value, long_lines, sizeof long_lines / sizeof *long_lines, number_out);
    case SETTING_SWITCH:
        return parse_name(value, switches, 2, number_out) || parse_number(value, number_out);
    default:
        return parse_number(value, number_out);
    }
}

/* 0 stands for "the default" where it is not refused. */
static bool is_in_range(const struct setting *setting, uint64_t value)
{
    return value <= setting->maximum && (value == 0 || value >= setting->minimum);
}

lahar_status lahar_source_spec_set(lahar_source_spec *spec, const char *name, const char *value,
                                   lahar_error *error)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        uint64_t number;
        if (strcmp(settings[i].name, name) != 0) {
            continue;
        }
        if (!parse_value(&settings[i], value, &number) || !is_in_range(&settings[i], number) ||
            (number == 0 && settings[i].refuses_zero)) {
            return lahar_fail(error, LAHAR_INVALID, "\"%.60s\" is not a value of setting %s", value,
                              name);
        }
        put(spec, &settings[i], number);
        return LAHAR_OK;
    }
    const lahar_status status = lahar_format_set(&spec->format_settings, name, value, error);
    return status == LAHAR_NOT_FOUND
               ? lahar_fail(error, LAHAR_INVALID, "there is no setting \"%.60s\"", name)
               : status;
}

/* --- checks --------------------------------------------------------------------------- */

lahar_status lahar_source_spec_check(const lahar_source_spec *spec, lahar_error *error)
{
    if (spec == NULL || spec->struct_size < sizeof *spec || spec->name == NULL ||
        spec->path == NULL || spec->path[0] == '\0') {
        return lahar_fail(error, LAHAR_INVALID, "a source needs a name and a path");
    }
    if (strlen(spec->path) >= LAHAR_SOURCE_PATH_SIZE / 2) {
        return lahar_fail(error, LAHAR_INVALID, "the path of source %s is too long", spec->name);
    }
    if (!lahar_format_is_valid(spec->format)) {
        return lahar_fail(error, LAHAR_INVALID, "there is no format %d", (int)spec->format);
    }
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const uint64_t value = get(spec, &settings[i]);
        if (!is_in_range(&settings[i], value)) {
            return lahar_fail(error, LAHAR_INVALID, "setting %s cannot be %llu", settings[i].name,
                              (unsigned long long)value);
        }
    }
    lahar_source_spec resolved = *spec;
    lahar_source_spec_resolve(&resolved);
    if (resolved.poll_directory_watch_events_backoff_init >
        resolved.poll_directory_watch_events_backoff_max) {
        return lahar_fail(error, LAHAR_INVALID,
                          "poll_directory_watch_events_backoff_init is above ..._max");
    }
    const uint32_t processors = lahar_io_processor_count();
    if (spec->max_threads > processors) {
        return lahar_fail(error, LAHAR_INVALID, "max_threads is %llu, there are %u processors",
                          (unsigned long long)spec->max_threads, processors);
    }
    return LAHAR_OK;
}

void lahar_source_spec_resolve(lahar_source_spec *spec)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (get(spec, &settings[i]) == 0) {
            put(spec, &settings[i], settings[i].zero_means);
        }
    }
    if (spec->max_threads == 0) {
        const uint32_t quarter = lahar_io_processor_count() / 4;
        spec->max_threads = quarter == 0 ? 1 : quarter;
    }
    if (spec->max_block_size < spec->poll_max_batch_size) {
        spec->poll_max_batch_size = spec->max_block_size;
    }
    if (spec->root == NULL) {
        spec->root = "/";
    }
    if (spec->partial_timeout_ms == 0 && lahar_source_joins_lines(spec)) {
        spec->partial_timeout_ms = JOINED_TIMEOUT_MS;
    }
}

bool lahar_source_joins_lines(const lahar_source_spec *spec)
{
    struct lahar_format_options options;
    return spec->format == LAHAR_FORMAT_NIFI_LOG ||
           (lahar_format_options_read(&spec->format_settings, &options, NULL) == LAHAR_OK &&
            options.multiline_start.size != 0);
}

/* --- on disk -------------------------------------------------------------------------------- */

static void put_string(struct lahar_buffer *buffer, const char *string)
{
    const size_t size = string == NULL ? 0 : strlen(string);
    lahar_buffer_put_varint(buffer, string == NULL ? 0 : (uint64_t)size + 1);
    lahar_buffer_put(buffer, string, size);
}

void lahar_source_definition_encode(const struct lahar_source_definition *definition,
                                    struct lahar_buffer *buffer)
{
    const lahar_source_spec *spec = &definition->spec;
    lahar_buffer_put_u8(buffer, FORM_VERSION);
    lahar_buffer_put_u8(buffer, definition->is_paused ? FLAG_PAUSED : 0);
    lahar_buffer_put_varint(buffer, definition->source);
    put_string(buffer, spec->path);
    put_string(buffer, spec->root);
    put_string(buffer, spec->stream);
    put_string(buffer, spec->dead_letter);
    put_string(buffer, spec->time_field);
    lahar_buffer_put_u8(buffer, (uint8_t)spec->format);
    lahar_buffer_put_varint(buffer, SETTING_COUNT);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        lahar_buffer_put_varint(buffer, get(spec, &settings[i]));
    }
    lahar_buffer_put_sized(buffer, spec->format_settings.text, spec->format_settings.size);
}

static const char *copy_string(struct lahar_arena *arena, const uint8_t *data, size_t size)
{
    char *copy = lahar_arena_allocate(arena, size + 1);
    if (copy != NULL) {
        memcpy(copy, data, size);
        copy[size] = '\0';
    }
    return copy;
}

static lahar_status damaged(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "the definition of a source is damaged");
}

static lahar_status read_strings(struct lahar_reader *reader, struct lahar_arena *arena,
                                 const char **const places[STRING_COUNT], lahar_error *error)
{
    for (size_t i = 0; i < STRING_COUNT; i++) {
        const uint64_t size = lahar_read_varint(reader);
        const uint8_t *data = size == 0 ? NULL : lahar_read_bytes(reader, size - 1);
        if (size == 0) {
            continue;
        }
        if (data == NULL) {
            return damaged(error);
        }
        *places[i] = copy_string(arena, data, (size_t)size - 1);
        if (*places[i] == NULL) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a source");
        }
    }
    return LAHAR_OK;
}

lahar_status lahar_source_definition_decode(lahar_bytes name, lahar_bytes value,
                                            struct lahar_arena *arena,
                                            struct lahar_source_definition *definition_out,
                                            lahar_error *error)
{
    struct lahar_reader reader = lahar_reader_of(value.data, value.size);
    lahar_source_spec *spec = &definition_out->spec;
    const char **const places[STRING_COUNT] = {&spec->path, &spec->root, &spec->stream,
                                               &spec->dead_letter, &spec->time_field};
    *definition_out = (struct lahar_source_definition){0};
    lahar_source_spec_init(spec);
    const uint8_t version = lahar_read_u8(&reader);
    if (version > FORM_VERSION) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "a source's definition has version %u",
                          version);
    }
    definition_out->is_paused = (lahar_read_u8(&reader) & FLAG_PAUSED) != 0;
    definition_out->source = lahar_read_varint(&reader);
    LAHAR_TRY(read_strings(&reader, arena, places, error));
    spec->format = (lahar_format)lahar_read_u8(&reader);
    const uint64_t count = lahar_read_varint(&reader);
    for (uint64_t i = 0; i < count && !reader.failed; i++) {
        const uint64_t number = lahar_read_varint(&reader);
        if (i < SETTING_COUNT && is_in_range(&settings[i], number)) {
            put(spec, &settings[i], number);
        }
    }
    if (version >= 2 && !reader.failed) {
        const uint64_t size = lahar_read_varint(&reader);
        const uint8_t *text = lahar_read_bytes(&reader, size);
        if (text == NULL ||
            lahar_format_settings_load(&spec->format_settings, (lahar_bytes){text, (size_t)size},
                                       error) != LAHAR_OK) {
            return damaged(error);
        }
    }
    spec->name = copy_string(arena, name.data, name.size);
    if (spec->name == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a source");
    }
    if (reader.failed || spec->path == NULL || spec->stream == NULL || spec->root == NULL ||
        !lahar_format_is_valid(spec->format)) {
        return damaged(error);
    }
    return LAHAR_OK;
}
