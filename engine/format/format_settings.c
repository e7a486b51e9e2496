/* Settings by name; see format_settings.h. What is stored is the text as it was given, escapes
 * of delimiters resolved, so that a setting can be added without another form on disk. */
#include "engine/format/format_settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/base/error.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_DELIMITER, /* text with escapes */
    SETTING_BYTE,      /* one byte, also as an escape */
    SETTING_NUMBER,
    SETTING_RATIO,
    SETTING_SWITCH,
    SETTING_ESCAPING
};

struct setting {
    const char *name;
    size_t place; /* in lahar_format_options */
    enum setting_kind kind;
    uint64_t maximum; /* of numbers */
};

#define PLACE(member) offsetof(struct lahar_format_options, member)
static const struct setting settings_table[] = {
    {"time_format", PLACE(time_format), SETTING_TEXT, 0},
    {"time_zone", PLACE(time_zone), SETTING_TEXT, 0},
    {"year", PLACE(year), SETTING_NUMBER, 9999},
    {"keep_raw", PLACE(keep_raw), SETTING_SWITCH, 0},
    {"multiline_start", PLACE(multiline_start), SETTING_TEXT, 0},
    {"multiline_lines_max", PLACE(multiline_lines_max), SETTING_NUMBER, 1000000},
    {"column_names_for_schema_inference", PLACE(columns), SETTING_TEXT, 0},
    {"columns", PLACE(columns), SETTING_TEXT, 0},
    {"input_format_allow_errors_num", PLACE(errors_allowed), SETTING_NUMBER, UINT64_MAX},
    {"input_format_allow_errors_ratio", PLACE(error_ratio_allowed), SETTING_RATIO, 0},
    {"format_csv_delimiter", PLACE(csv_delimiter), SETTING_BYTE, 0},
    {"format_csv_null_representation", PLACE(csv_null), SETTING_TEXT, 0},
    {"format_csv_allow_single_quotes", PLACE(csv_single_quotes), SETTING_SWITCH, 0},
    {"format_csv_allow_double_quotes", PLACE(csv_double_quotes), SETTING_SWITCH, 0},
    {"input_format_csv_trim_whitespaces", PLACE(csv_trim), SETTING_SWITCH, 0},
    {"input_format_csv_empty_as_default", PLACE(csv_empty_as_default), SETTING_SWITCH, 0},
    {"input_format_csv_skip_first_lines", PLACE(csv_skip_lines), SETTING_NUMBER, 1000000000},
    {"input_format_csv_allow_variable_number_of_columns", PLACE(allow_ragged_csv), SETTING_SWITCH,
     0},
    {"format_tsv_null_representation", PLACE(tsv_null), SETTING_TEXT, 0},
    {"input_format_tsv_empty_as_default", PLACE(tsv_empty_as_default), SETTING_SWITCH, 0},
    {"input_format_tsv_skip_first_lines", PLACE(tsv_skip_lines), SETTING_NUMBER, 1000000000},
    {"input_format_tsv_allow_variable_number_of_columns", PLACE(allow_ragged_tsv), SETTING_SWITCH,
     0},
    {"format_custom_escaping_rule", PLACE(custom_escaping), SETTING_ESCAPING, 0},
    {"format_custom_field_delimiter", PLACE(custom_field_delimiter), SETTING_DELIMITER, 0},
    {"format_custom_row_before_delimiter", PLACE(custom_row_before), SETTING_DELIMITER, 0},
    {"format_custom_row_after_delimiter", PLACE(custom_row_after), SETTING_DELIMITER, 0},
    {"format_custom_row_between_delimiter", PLACE(custom_row_between), SETTING_DELIMITER, 0},
    {"format_custom_result_before_delimiter", PLACE(custom_result_before), SETTING_DELIMITER, 0},
    {"format_custom_result_after_delimiter", PLACE(custom_result_after), SETTING_DELIMITER, 0},
    {"input_format_custom_skip_first_lines", PLACE(custom_skip_lines), SETTING_NUMBER, 1000000000},
    {"input_format_custom_allow_variable_number_of_columns", PLACE(allow_ragged_custom),
     SETTING_SWITCH, 0},
    {"format_template_row", PLACE(template_row), SETTING_DELIMITER, 0},
    {"format_template_row_format", PLACE(template_row), SETTING_DELIMITER, 0},
    {"format_template_rows_between_delimiter", PLACE(template_between), SETTING_DELIMITER, 0},
    {"format_regexp", PLACE(regexp), SETTING_TEXT, 0},
    {"format_regexp_escaping_rule", PLACE(regexp_escaping), SETTING_ESCAPING, 0},
    {"format_regexp_skip_unmatched", PLACE(skip_unmatched), SETTING_SWITCH, 0},
};

static const struct setting *find(const char *name)
{
    for (size_t i = 0; i < sizeof settings_table / sizeof settings_table[0]; i++) {
        if (strcmp(settings_table[i].name, name) == 0) {
            return &settings_table[i];
        }
    }
    return NULL;
}

bool lahar_escaping_find(lahar_bytes name, enum lahar_escaping *escaping_out)
{
    static const char *const names[] = {"None", "Escaped", "Quoted", "CSV", "JSON", "XML", "Raw"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == name.size &&
            (name.size == 0 || strncasecmp(name.data, names[i], name.size) == 0)) {
            *escaping_out = (enum lahar_escaping)i;
            return true;
        }
    }
    return false;
}

static bool parse_number(const char *text, uint64_t maximum, uint64_t *number_out)
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
    return number <= maximum;
}

/* 0.x, without the process's locale. */
static bool parse_ratio(const char *text, double *ratio_out)
{
    double ratio = 0;
    double weight = 1;
    bool is_behind_point = false;
    bool has_digit = false;
    for (; *text != '\0'; text++) {
        if (*text == '.' && !is_behind_point) {
            is_behind_point = true;
            continue;
        }
        if (*text < '0' || *text > '9') {
            return false;
        }
        has_digit = true;
        if (is_behind_point) {
            weight /= 10;
            ratio += weight * (*text - '0');
        } else {
            ratio = ratio * 10 + (*text - '0');
        }
    }
    *ratio_out = ratio;
    return has_digit && ratio <= 1;
}

static bool parse_switch(const char *text, bool *on_out)
{
    *on_out = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
    return *on_out || strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
}

static bool apply(struct lahar_format_options *options, const struct setting *setting,
                  const char *value)
{
    void *place = (uint8_t *)options + setting->place;
    const lahar_bytes text = {value, strlen(value)};
    switch (setting->kind) {
    case SETTING_TEXT:
    case SETTING_DELIMITER:
        *(lahar_bytes *)place = text;
        return true;
    case SETTING_BYTE:
        *(uint8_t *)place = (uint8_t)value[0];
        return text.size == 1 && value[0] != '\n' && value[0] != '\r' && value[0] != '"';
    case SETTING_NUMBER:
        options->limits_errors |= place == (void *)&options->errors_allowed;
        return parse_number(value, setting->maximum, place);
    case SETTING_RATIO:
        options->limits_errors = true;
        return parse_ratio(value, place);
    case SETTING_SWITCH:
        return parse_switch(value, place);
    case SETTING_ESCAPING:
        return lahar_escaping_find(text, place);
    }
    return false;
}

/* Resolves the escapes of a delimiter into out, which is as large as value. */
static void resolve_escapes(const char *value, char *out)
{
    for (; *value != '\0'; value++) {
        if (*value == '\\' && value[1] != '\0') {
            value++;
            *out++ = *value == 'n' ? '\n' : *value == 't' ? '\t' : *value == 'r' ? '\r' : *value;
        } else {
            *out++ = *value;
        }
    }
    *out = '\0';
}

lahar_status lahar_format_set(lahar_format_settings *settings, const char *name, const char *value,
                              lahar_error *error)
{
    char resolved[LAHAR_FORMAT_SETTINGS_SIZE];
    struct lahar_format_options options = {0};
    const struct setting *setting = find(name);
    if (setting == NULL) {
        return lahar_fail(error, LAHAR_NOT_FOUND, "there is no setting \"%.60s\"", name);
    }
    if (strlen(value) >= sizeof resolved) {
        return lahar_fail(error, LAHAR_TOO_BIG, "the value of setting %s is too long", name);
    }
    if (setting->kind == SETTING_DELIMITER || setting->kind == SETTING_BYTE) {
        resolve_escapes(value, resolved);
    } else {
        memcpy(resolved, value, strlen(value) + 1);
    }
    if (!apply(&options, setting, resolved)) {
        return lahar_fail(error, LAHAR_INVALID, "\"%.60s\" is not a value of setting %s", value,
                          name);
    }
    const size_t name_size = strlen(setting->name) + 1;
    const size_t value_size = strlen(resolved) + 1;
    if (settings->size > sizeof settings->text ||
        name_size + value_size > sizeof settings->text - settings->size) {
        return lahar_fail(error, LAHAR_TOO_BIG,
                          "the settings of the format take more than %d bytes",
                          (int)LAHAR_FORMAT_SETTINGS_SIZE);
    }
    memcpy(settings->text + settings->size, setting->name, name_size);
    memcpy(settings->text + settings->size + name_size, resolved, value_size);
    settings->size += (uint32_t)(name_size + value_size);
    return LAHAR_OK;
}

static lahar_bytes bytes_of(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

static void set_defaults(struct lahar_format_options *options)
{
    *options = (struct lahar_format_options){
        .csv_null = bytes_of("\\N"),
        .tsv_null = bytes_of("\\N"),
        .custom_field_delimiter = bytes_of("\t"),
        .custom_row_after = bytes_of("\n"),
        .template_between = bytes_of("\n"),
        .multiline_lines_max = 500,
        .csv_delimiter = ',',
        .csv_double_quotes = true,
        .csv_empty_as_default = true,
        .custom_escaping = LAHAR_ESCAPING_ESCAPED,
        .regexp_escaping = LAHAR_ESCAPING_RAW,
    };
}

static lahar_status damaged(lahar_error *error)
{
    return lahar_fail(error, LAHAR_INVALID, "the settings of a format are damaged");
}

lahar_status lahar_format_options_read(const lahar_format_settings *settings,
                                       struct lahar_format_options *options_out, lahar_error *error)
{
    set_defaults(options_out);
    if (settings->size > sizeof settings->text) {
        return damaged(error);
    }
    const char *at = settings->text;
    const char *end = at + settings->size;
    while (at < end) {
        const char *name_end = memchr(at, '\0', (size_t)(end - at));
        const char *value = name_end == NULL ? end : name_end + 1;
        const char *value_end = value == end ? NULL : memchr(value, '\0', (size_t)(end - value));
        const struct setting *setting = value_end == NULL ? NULL : find(at);
        if (setting == NULL || !apply(options_out, setting, value)) {
            return damaged(error);
        }
        at = value_end + 1;
    }
    return LAHAR_OK;
}

lahar_status lahar_format_settings_load(lahar_format_settings *settings, lahar_bytes text,
                                        lahar_error *error)
{
    struct lahar_format_options options;
    if (text.size > sizeof settings->text) {
        return damaged(error);
    }
    settings->size = (uint32_t)text.size;
    if (text.size != 0) {
        memcpy(settings->text, text.data, text.size);
    }
    return lahar_format_options_read(settings, &options, error);
}
