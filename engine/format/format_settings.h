/* Settings of the text formats, under ClickHouse's names where it has them. */
#ifndef LAHAR_FORMAT_FORMAT_SETTINGS_H
#define LAHAR_FORMAT_FORMAT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "lahar/event.h"
#include "lahar/ingest.h"

/* How a cell is written. */
enum lahar_escaping {
    LAHAR_ESCAPING_NONE, /* the cell has no value: what it takes is passed over */
    LAHAR_ESCAPING_ESCAPED,
    LAHAR_ESCAPING_QUOTED,
    LAHAR_ESCAPING_CSV,
    LAHAR_ESCAPING_JSON,
    LAHAR_ESCAPING_XML,
    LAHAR_ESCAPING_RAW
};

/* Settings resolved. Texts are those of the lahar_format_settings; data is NULL where
 * a setting was not given. */
struct lahar_format_options {
    lahar_bytes columns; /* names of formats without a header, between commas */
    lahar_bytes regexp;
    lahar_bytes multiline_start;
    lahar_bytes time_format;
    lahar_bytes time_zone;
    lahar_bytes csv_null;
    lahar_bytes tsv_null;
    lahar_bytes custom_field_delimiter;
    lahar_bytes custom_row_before;
    lahar_bytes custom_row_after;
    lahar_bytes custom_row_between;
    lahar_bytes custom_result_before;
    lahar_bytes custom_result_after;
    lahar_bytes template_row;
    lahar_bytes template_between;
    uint64_t errors_allowed;      /* records that cannot be parsed, before reading fails */
    double error_ratio_allowed;   /* the same, of all records; both must be exceeded */
    uint64_t year;                /* 0: not given */
    uint64_t csv_skip_lines;      /* at the start of a file */
    uint64_t tsv_skip_lines;      /* the same */
    uint64_t custom_skip_lines;   /* the same */
    uint64_t multiline_lines_max; /* of one record */
    uint8_t csv_delimiter;
    bool limits_errors;
    bool skip_unmatched;
    bool allow_ragged_csv;
    bool allow_ragged_tsv;
    bool allow_ragged_custom;
    bool csv_single_quotes;
    bool csv_double_quotes;
    bool csv_trim;
    bool csv_empty_as_default;
    bool tsv_empty_as_default;
    bool keep_raw;
    enum lahar_escaping custom_escaping;
    enum lahar_escaping regexp_escaping;
};

/* LAHAR_INVALID: the text is none that lahar_format_set has made. */
lahar_status lahar_format_options_read(const lahar_format_settings *settings,
                                       struct lahar_format_options *options_out,
                                       lahar_error *error);

/* By the name of an escaping rule, without regard to case. */
bool lahar_escaping_find(lahar_bytes name, enum lahar_escaping *escaping_out);

/* Settings as they are stored: their text. LAHAR_INVALID when it is not one of settings. */
lahar_status lahar_format_settings_load(lahar_format_settings *settings, lahar_bytes text,
                                        lahar_error *error);

#endif
