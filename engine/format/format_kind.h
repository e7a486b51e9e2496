/* What kind of reader a text format has. */
#ifndef LAHAR_FORMAT_FORMAT_KIND_H
#define LAHAR_FORMAT_FORMAT_KIND_H

#include <stdbool.h>

#include "lahar/ingest.h"

enum lahar_format_kind {
    LAHAR_KIND_LINES,  /* the line is the message */
    LAHAR_KIND_FIELDS, /* the same, and parts of it fill fields */
    LAHAR_KIND_JSON,   /* objects */
    LAHAR_KIND_TABLE,  /* CSV and TSV */
    LAHAR_KIND_CELLS,  /* records of cells between delimiters of their own */
    LAHAR_KIND_BLOB    /* the file is the message */
};

static inline enum lahar_format_kind lahar_format_kind_of(lahar_format format)
{
    switch (format) {
    case LAHAR_FORMAT_LINE:
        return LAHAR_KIND_LINES;
    case LAHAR_FORMAT_REGEXP:
    case LAHAR_FORMAT_TSKV:
    case LAHAR_FORMAT_LOGFMT:
    case LAHAR_FORMAT_ACCESS_LOG:
    case LAHAR_FORMAT_SYSLOG_3164:
    case LAHAR_FORMAT_SYSLOG_5424:
    case LAHAR_FORMAT_NIFI_LOG:
        return LAHAR_KIND_FIELDS;
    case LAHAR_FORMAT_CSV:
    case LAHAR_FORMAT_TSV:
    case LAHAR_FORMAT_CSV_BARE:
    case LAHAR_FORMAT_TSV_BARE:
        return LAHAR_KIND_TABLE;
    case LAHAR_FORMAT_JSON_COMPACT:
    case LAHAR_FORMAT_VALUES:
    case LAHAR_FORMAT_CUSTOM:
    case LAHAR_FORMAT_TEMPLATE:
        return LAHAR_KIND_CELLS;
    case LAHAR_FORMAT_RAW_BLOB:
        return LAHAR_KIND_BLOB;
    default:
        return LAHAR_KIND_JSON;
    }
}

static inline bool lahar_format_is_valid(lahar_format format)
{
    return format >= LAHAR_FORMAT_LINE && format <= LAHAR_FORMAT_NIFI_LOG;
}

/* Records are lines, or begin with one: a byte order mark is part of the first. */
static inline bool lahar_format_is_of_lines(lahar_format format)
{
    const enum lahar_format_kind kind = lahar_format_kind_of(format);
    return kind == LAHAR_KIND_LINES || kind == LAHAR_KIND_FIELDS || kind == LAHAR_KIND_BLOB;
}

/* The first record of a file names its columns. */
static inline bool lahar_format_has_header(lahar_format format)
{
    return format == LAHAR_FORMAT_CSV || format == LAHAR_FORMAT_TSV;
}

static inline bool lahar_format_is_tsv(lahar_format format)
{
    return format == LAHAR_FORMAT_TSV || format == LAHAR_FORMAT_TSV_BARE;
}

#endif
