/* Text formats: bytes of files into events, and events back into bytes. */
#ifndef LAHAR_INGEST_H
#define LAHAR_INGEST_H

#include "lahar/append.h"
#include "lahar/event.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values are pinned: definitions of sources hold them. docs/formats.md says what each makes of its
 * input. */
typedef enum lahar_format {
    LAHAR_FORMAT_LINE = 1,            /* LineAsString: the line into message */
    LAHAR_FORMAT_JSON = 2,            /* JSONEachRow */
    LAHAR_FORMAT_CSV = 3,             /* CSVWithNames */
    LAHAR_FORMAT_TSV = 4,             /* TSVWithNames */
    LAHAR_FORMAT_REGEXP = 5,          /* named groups of an expression fill fields */
    LAHAR_FORMAT_NIFI_JSON = 6,       /* NiFi's reporting task, into a provenance stream */
    LAHAR_FORMAT_JSON_COMPACT = 7,    /* JSONCompactEachRow: arrays, by the order of columns */
    LAHAR_FORMAT_JSON_STRINGS = 8,    /* JSONStringsEachRow */
    LAHAR_FORMAT_JSON_AS_STRING = 9,  /* the text of a value into message */
    LAHAR_FORMAT_JSON_AS_OBJECT = 10, /* all members into attributes */
    LAHAR_FORMAT_CSV_BARE = 11,       /* CSV: without a header */
    LAHAR_FORMAT_TSV_BARE = 12,       /* TSV: the same */
    LAHAR_FORMAT_TSKV = 13,
    LAHAR_FORMAT_VALUES = 14,
    LAHAR_FORMAT_CUSTOM = 15, /* CustomSeparated */
    LAHAR_FORMAT_TEMPLATE = 16,
    LAHAR_FORMAT_RAW_BLOB = 17, /* the whole file is one record */
    LAHAR_FORMAT_LOGFMT = 18,
    LAHAR_FORMAT_ACCESS_LOG = 19,  /* common and combined log format of web servers */
    LAHAR_FORMAT_SYSLOG_3164 = 20, /* RFC 3164 */
    LAHAR_FORMAT_SYSLOG_5424 = 21, /* RFC 5424 */
    LAHAR_FORMAT_NIFI_LOG = 22     /* NiFi's logback pattern, stack traces included */
} lahar_format;

/* By the format's name as ClickHouse spells it ("JSONEachRow"), case
 * ignored. LAHAR_UNSUPPORTED for names of formats that cannot be ingested. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_format_find(const char *name, lahar_format *format_out,
                                                         lahar_error *error);
LAHAR_API const char *lahar_format_name(lahar_format format);

enum {
    LAHAR_FORMAT_SETTINGS_SIZE = 4096
};

/* Settings of a format, as they are given by name. All zero: every one at its default. */
typedef struct lahar_format_settings {
    uint32_t size;                         /* bytes of text that are used */
    char text[LAHAR_FORMAT_SETTINGS_SIZE]; /* names and values in turn, each with its NUL */
} lahar_format_settings;

/* Sets one by its name, as "format_csv_delimiter", ";". In delimiters \n, \t, \r and \\ are
 * escapes. LAHAR_NOT_FOUND: no such setting; LAHAR_INVALID: not a value for it; LAHAR_TOO_BIG:
 * together they take more than LAHAR_FORMAT_SETTINGS_SIZE bytes. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_format_set(lahar_format_settings *settings,
                                                        const char *name, const char *value,
                                                        lahar_error *error);

typedef struct lahar_ingest_options {
    size_t struct_size;
    uint32_t stream;
    lahar_format format;
    const char *filename;   /* for _filename and messages; may be NULL */
    const char *time_field; /* the field (dots for nesting) that holds the event's time, or NULL */
    bool keep_raw;          /* keep the record's bytes in _raw_record */
    lahar_durability durability;
    size_t batch_event_count; /* default 1,000 */
    size_t batch_size_bytes;  /* default 1 MiB */
    size_t record_size_max;   /* a longer record is an error; default 64 MiB */
    /* Called for each record that cannot be parsed; message is one line. */
    void (*on_error)(void *context, uint64_t line, uint64_t offset, const char *message);
    void *on_error_context;
    bool errors_as_events; /* such a record becomes an event with _raw_record and _error */
    bool allow_ragged;     /* CSV and TSV: rows may be shorter or longer than the header */
    /* How time_field is written: any (or NULL), rfc3339, clf, syslog, epoch_s, epoch_ms, epoch_us,
     * epoch_ns, or directives of strptime; docs/formats.md. Strings are borrowed until close. */
    const char *time_format;
    const char *time_zone; /* of times that name none: UTC (or NULL), +02:00 or Europe/Berlin */
    uint32_t year;         /* of times that name none; 0: the last that is not in the future */
    const char *regexp;    /* Regexp: the expression, of PCRE2 */
    bool skip_unmatched;   /* Regexp: a line that does not match is no error */
    /* By name, lahar_format_set; each counts before the member above that says the same. */
    lahar_format_settings format_settings;
    uint64_t
        space_wait_ns; /* how long to wait for space on a full disk; 0: LAHAR_NO_SPACE at once */
} lahar_ingest_options;

LAHAR_API void lahar_ingest_options_init(lahar_ingest_options *options);

/* Feeds one file (or stream of bytes) into a store. One thread at a time. */
typedef struct lahar_ingest lahar_ingest;

LAHAR_API LAHAR_NODISCARD lahar_status lahar_ingest_open(lahar_store *store,
                                                         const lahar_ingest_options *options,
                                                         lahar_ingest **ingest_out,
                                                         lahar_error *error);

/* Takes the next bytes; records may span calls. Appends full batches, so it
 * blocks as lahar_batch_commit does. Records that cannot be parsed are reported,
 * counted and passed over; the status is about the store. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_ingest_write(lahar_ingest *ingest, const void *data,
                                                          size_t size, lahar_error *error);

/* Appends the events of the records that have come whole. For input that trickles, so that
 * they are found without waiting for the rest of a batch. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_ingest_flush(lahar_ingest *ingest, lahar_error *error);

typedef struct lahar_ingest_result {
    size_t struct_size;
    uint64_t event_count;
    uint64_t byte_count;
    uint64_t error_count;
    uint64_t first_id; /* 0 when there was no event */
    uint64_t last_id;
} lahar_ingest_result;

/* The end of the file: an unterminated last record is taken, what is staged is
 * appended. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_ingest_finish(lahar_ingest *ingest,
                                                           lahar_ingest_result *result_out,
                                                           lahar_error *error);
LAHAR_API void lahar_ingest_close(lahar_ingest *ingest); /* NULL is allowed */

/* --- back to bytes -------------------------------------------------------- */

/* Turns events back into the file they came from: lines byte-exact, JSON and
 * CSV value-exact, byte-exact where the record was kept. One thread at a time. */
typedef struct lahar_export lahar_export;

LAHAR_API LAHAR_NODISCARD lahar_status lahar_export_open(lahar_store *store,
                                                         lahar_export **export_out,
                                                         lahar_error *error);

/* The bytes of one event, a header record before it where a table begins;
 * valid until the next call. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_export_raw(lahar_export *export_,
                                                        const lahar_event *event,
                                                        lahar_bytes *bytes_out, lahar_error *error);

/* The event's fields as one JSON object in valid UTF-8 (bytes that are not
 * become U+FFFD): the document it came from, or its declared fields with
 * undeclared ones in "attributes". Valid until the next call. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_export_json(lahar_export *export_,
                                                         const lahar_event *event,
                                                         lahar_bytes *bytes_out,
                                                         lahar_error *error);

/* A provenance event as NiFi's site-to-site reporting task writes it: what came so is equal to what
 * it was, but for eventId, eventOrdinal and timestamp where it had none. LAHAR_INVALID: the event's
 * stream is not of the provenance schema. Valid until the next call. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_export_nifi_json(lahar_export *export_,
                                                              const lahar_event *event,
                                                              lahar_bytes *bytes_out,
                                                              lahar_error *error);
LAHAR_API void lahar_export_close(lahar_export *export_); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
