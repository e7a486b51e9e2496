/* What the parts of the text reader share: the frame that cuts pieces into records,
 * and one consumer a family of formats. */
#ifndef LAHAR_FORMAT_TEXT_READER_INTERNAL_H
#define LAHAR_FORMAT_TEXT_READER_INTERNAL_H

#include "engine/format/cells.h"
#include "engine/format/document.h"
#include "engine/format/field_map.h"
#include "engine/format/format_kind.h"
#include "engine/format/format_settings.h"
#include "engine/format/framing.h"
#include "engine/format/json.h"
#include "engine/format/lines.h"
#include "engine/format/marks.h"
#include "engine/format/record.h"
#include "engine/format/table.h"
#include "engine/format/text_reader.h"
#include "engine/provenance/fields.h"
#include "engine/regex/regex.h"

/* Where a reader of records stands. Offsets count from the first byte that is not
 * consumed. */
enum lahar_rows_state {
    LAHAR_ROWS_BETWEEN,  /* in what separates records, up to start */
    LAHAR_ROWS_RECORD,   /* inside the record at start */
    LAHAR_ROWS_LINE,     /* the record at start is its line alone: it has failed, or is not an
                            object; end: looked at so far */
    LAHAR_ROWS_COMPLETE, /* keep_raw: the record is start .. end, and what separates it from the
                            next one belongs to it, up to gap */
    LAHAR_ROWS_SKIP      /* in the rest of a line that could not be parsed */
};

struct lahar_rows {
    enum lahar_rows_state state;
    size_t start;
    size_t end;
    size_t gap;
    const char *failure; /* LINE: why the record failed, static text, or NULL */
    size_t failure_at;   /* byte of the record */
};

enum {
    LAHAR_JSON_PLAN_COUNT = 4
};

struct lahar_json_rows {
    struct lahar_json_parser parser;
    struct lahar_document_plan plans[LAHAR_JSON_PLAN_COUNT];
    uint32_t miss_count; /* documents that were like no plan, less those that were */
    uint32_t rest_count; /* documents that are not to be tried */
    uint32_t rest_size;  /* the next rest */
    uint8_t recent;      /* the plan that matched last */
    uint8_t oldest;      /* the one that learnt last */
    bool has_plans;      /* the format can have them */
    bool is_in_array;    /* inside an enclosing array */
    bool allows_comma;   /* a record has ended and no comma has come */
    bool is_value;       /* COMPLETE: the record is not an object */
};

/* What a column of the header stands for. */
struct lahar_table_column {
    lahar_bytes name;
    const struct lahar_field_entry *entry; /* NULL: an attribute */
    bool is_filled;                        /* the field takes a cell */
    bool is_repeated;                      /* unless an earlier column has filled it */
    bool has_default;
    bool lacks_empty;   /* an empty cell is null: the type has no empty value */
    bool is_plain_pair; /* becomes an attribute, and nothing else */
};

enum {
    LAHAR_TABLE_MESSAGE_SIZE = 200
};

struct lahar_table_rows {
    struct lahar_table_parser parser;
    struct lahar_table_parser header_parser; /* holds the fields of the header */
    struct lahar_buffer header;              /* the header record as it stands in the file, or as
                                                it would for a format without one */
    struct lahar_table_column *columns;      /* owned; of the header's fields */
    struct lahar_buffer shape_head;          /* what the shape of each row begins with */
    struct lahar_buffer exceptions;          /* of the row: the end of its shape */
    uint32_t mapped_version;                 /* of the field map that columns point to, or 0 */
    struct lahar_arena arena;                /* names of columns */
    lahar_bytes null_text;
    size_t header_start; /* of the parsed text in header */
    bool has_header;
    bool is_plain;      /* the shape has no more to say than the header */
    bool trims;         /* white space around cells is not theirs */
    bool empty_is_null; /* an empty cell is null for a type that has no empty value */
};

/* Values, JSONCompactEachRow, CustomSeparated and Template. */
struct lahar_cell_rows {
    struct lahar_cell_grammar grammar;
    struct lahar_cell_list cells;  /* of the record that is whole */
    struct lahar_json_parser json; /* scratch */
    struct lahar_buffer names;     /* of the columns, one behind the other */
    lahar_bytes *columns;          /* owned; in names */
    size_t column_count;
    size_t retry_at; /* an unfinished record is not looked at again below this size */
    bool has_begun;  /* a record, or what stands before the first, has been seen */
};

/* Lines, and formats of which each record is a line or begins with one. */
struct lahar_line_rows {
    struct lahar_line_splitter splitter;
    struct lahar_regex *regex; /* Regexp: owned */
    struct lahar_regex *start; /* a record begins with a line that matches; owned, or NULL */
    struct lahar_regex_scratch scratch;
    struct lahar_regex_scratch start_scratch;
    size_t joined;       /* bytes of whole lines that belong to the record */
    uint64_t line_count; /* lines of them */
    bool joins;
};

struct lahar_text_reader {
    struct lahar_text_reader_options options;
    lahar_format_settings settings;
    struct lahar_format_options format; /* texts are those of settings */
    enum lahar_format_kind kind;
    struct lahar_field_map fields;
    struct lahar_prov_fields provenance; /* of NIFI_JSON */
    struct lahar_record record;
    struct lahar_buffer carry;   /* the incomplete end of what was written */
    struct lahar_buffer framing; /* encoded, of the record being delivered */
    lahar_bytes filename;        /* base name */
    uint64_t offset;             /* in the file, of the first byte not consumed */
    uint64_t line;               /* number of the line it lies in, from 1 */
    uint64_t error_count;
    uint64_t record_count;  /* delivered, without those of errors */
    uint64_t skip_lines;    /* the first lines of a file are passed over */
    struct lahar_rows rows; /* of JSON, TABLE and CELLS */
    bool is_started;        /* the byte order mark has been looked for */
    bool has_bom;           /* a UTF-8 mark that no record has taken yet */
    bool is_refused;        /* not UTF-8: the rest is passed over */
    union {
        struct lahar_line_rows lines;
        struct lahar_json_rows json;
        struct lahar_table_rows table;
        struct lahar_cell_rows cells;
    } of;
    struct lahar_document *document; /* JSON; owned */
    struct lahar_time_zone *zone;    /* of times that name none, or NULL; owned */
    struct lahar_marks marks;        /* of TABLE and JSON; of the bytes that are being consumed */
};

/* Consume what they can of data and store how much. The bytes not consumed come again, with
 * more behind them. With is_last everything is consumed. */
lahar_status lahar_lines_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                 bool is_last, size_t *consumed_out, lahar_error *error);
lahar_status lahar_blob_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                bool is_last, size_t *consumed_out, lahar_error *error);
lahar_status lahar_rows_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                bool is_last, size_t *consumed_out, lahar_error *error);

/* Delivers records that are plain to see, from the start of data on, between records; see
 * lahar_table_run. */
lahar_status lahar_rows_run(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                            bool by_lines, size_t *consumed_out, lahar_error *error);

/* Set up and take down what their kinds need; destroying is right after any failure. */
lahar_status lahar_line_rows_init(struct lahar_text_reader *reader, lahar_error *error);
void lahar_line_rows_deinit(struct lahar_text_reader *reader);
lahar_status lahar_table_rows_init(struct lahar_text_reader *reader, lahar_error *error);
void lahar_table_rows_deinit(struct lahar_text_reader *reader);
lahar_status lahar_cell_rows_init(struct lahar_text_reader *reader, lahar_error *error);
void lahar_cell_rows_deinit(struct lahar_text_reader *reader);

/* Names of the columns of a format without a header, in order, into names; *columns_out, to be
 * released, points there. What the setting columns says, else the fields that the stream declares
 * beside those of its schema. */
lahar_status lahar_column_list(const struct lahar_text_reader *reader, struct lahar_buffer *names,
                               lahar_bytes **columns_out, size_t *count_out, lahar_error *error);

/* Compiles the expression of a reader of Regexp. LAHAR_INVALID: it is none, or has no group with
 * a name. */
lahar_status lahar_regexp_init(struct lahar_text_reader *reader, lahar_error *error);

/* What a line holds beside its text. Each puts fields into the record, which is empty.
 * LAHAR_INVALID: the line is none of the format, message says why; LAHAR_EXISTS: it is passed over
 * in silence. */
enum {
    LAHAR_LINE_MESSAGE_SIZE = 160
};
lahar_status lahar_regexp_map(struct lahar_text_reader *reader, lahar_bytes line, char *message);
lahar_status lahar_tskv_map(struct lahar_text_reader *reader, lahar_bytes line, char *message);
lahar_status lahar_logfmt_map(struct lahar_text_reader *reader, lahar_bytes line, char *message);
lahar_status lahar_access_map(struct lahar_text_reader *reader, lahar_bytes line, char *message);
lahar_status lahar_syslog_map(struct lahar_text_reader *reader, lahar_bytes line, char *message);
lahar_status lahar_nifi_log_map(struct lahar_text_reader *reader, lahar_bytes line, char *message);
/* Whether a line begins a record of NiFi's log. */
bool lahar_nifi_log_is_start(const uint8_t *text, size_t size);

/* A value under a name: into the declared field, or as an attribute. PAIR: the latter. is_filled:
 * the entry is of a field that can take a scalar and has none yet. */
enum lahar_record_put lahar_text_reader_put_where(struct lahar_text_reader *reader,
                                                  const struct lahar_field_entry *entry,
                                                  bool is_filled, lahar_bytes name,
                                                  lahar_bytes value, bool is_null);
enum lahar_record_put lahar_text_reader_put_entry(struct lahar_text_reader *reader,
                                                  const struct lahar_field_entry *entry,
                                                  lahar_bytes name, lahar_bytes value,
                                                  bool is_null);
enum lahar_record_put lahar_text_reader_put(struct lahar_text_reader *reader, lahar_bytes name,
                                            lahar_bytes value, bool is_null);
/* The same as a status, for the functions above: LAHAR_INVALID with message, LAHAR_NO_MEMORY. */
lahar_status lahar_text_reader_put_or_say(struct lahar_text_reader *reader, lahar_bytes name,
                                          lahar_bytes value, bool is_null, char *message);

/* Moves offset and line over bytes that are done with. */
void lahar_text_reader_advance(struct lahar_text_reader *reader, const uint8_t *data, size_t size);

/* Adds _filename, _offset and what framing says, and delivers the record. */
lahar_status lahar_text_reader_deliver(struct lahar_text_reader *reader,
                                       struct lahar_framing *framing, uint64_t offset,
                                       lahar_error *error);

/* Counts and reports a record that cannot be parsed; bytes: of it, as far as known. */
lahar_status lahar_text_reader_report(struct lahar_text_reader *reader, uint64_t line,
                                      uint64_t offset, lahar_bytes bytes, const char *message,
                                      lahar_error *error);

lahar_status lahar_text_reader_no_memory(lahar_error *error);

/* Common steps of the readers of records. Each takes the unconsumed bytes. */

enum lahar_gap {
    LAHAR_GAP_OPEN,   /* the input ends in it */
    LAHAR_GAP_RECORD, /* a record begins at *at */
    LAHAR_GAP_LINE    /* something else does, of which the line is the record */
};

enum lahar_parsed {
    LAHAR_PARSED_WHOLE, /* rows->end and rows->gap are set, from the start of the data */
    LAHAR_PARSED_MORE,
    LAHAR_PARSED_BAD, /* lahar_rows_fail was called */
    LAHAR_PARSED_NO_MEMORY
};

/* What each kind of record has of its own. gap: passes over what may stand between records, from
 * *at to limit. begin: a record begins at start. parse: goes on with it. take: maps and delivers
 * it, start .. end. */
enum lahar_gap lahar_json_gap(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                              size_t limit, bool is_last, size_t *at);
void lahar_json_begin(struct lahar_text_reader *reader, enum lahar_gap found);
enum lahar_parsed lahar_json_inside(struct lahar_text_reader *reader, const uint8_t *data,
                                    size_t size, bool is_last);
/* A line that does not begin with an object: one JSON value, or a failure. */
enum lahar_parsed lahar_json_line(struct lahar_text_reader *reader, const uint8_t *data,
                                  size_t size, bool is_last);
lahar_status lahar_json_take(struct lahar_text_reader *reader, const uint8_t *data,
                             lahar_error *error);
/* Plans of documents (document_plan.h): set up once the options are final. */
void lahar_json_plans_init(struct lahar_text_reader *reader);
void lahar_json_plans_deinit(struct lahar_text_reader *reader);
/* The plan that the next document that is parsed is to teach; NULL: none. */
struct lahar_document_plan *lahar_json_plan_to_learn(struct lahar_text_reader *reader);
/* As lahar_table_run, of documents that are like a plan and end with their line. */
lahar_status lahar_json_run(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                            bool by_lines, size_t *consumed_out, lahar_error *error);

enum lahar_gap lahar_table_gap(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                               size_t limit, bool is_last, size_t *at);
enum lahar_parsed lahar_table_inside(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, bool is_last);
lahar_status lahar_table_take(struct lahar_text_reader *reader, const uint8_t *data,
                              lahar_error *error);
/* Delivers rows from the start of data on, as many as are plain to see, and stores how many bytes
 * they have. by_lines: no row goes beyond its line. The general steps have to take what comes
 * next. */
lahar_status lahar_table_run(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                             bool by_lines, size_t *consumed_out, lahar_error *error);
/* The row that the parser has found at text, into the record. LAHAR_INVALID: it does not fit,
 * message says why; LAHAR_NO_MEMORY. */
lahar_status lahar_table_map_row(struct lahar_text_reader *reader, const uint8_t *text,
                                 char message[LAHAR_TABLE_MESSAGE_SIZE]);
/* The record that is whole is the header. */
lahar_status lahar_table_take_header(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, lahar_error *error);

enum lahar_gap lahar_cells_gap(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                               size_t limit, bool is_last, size_t *at);
enum lahar_parsed lahar_cells_inside(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, bool is_last);
lahar_status lahar_cells_take(struct lahar_text_reader *reader, const uint8_t *data,
                              lahar_error *error);

/* The record at start has failed at its byte failure_at: waits for the end of its line. */
void lahar_rows_fail(struct lahar_rows *rows, const char *failure, size_t failure_at);
/* Bytes of the line at start without its LF; SIZE_MAX when its end is not there yet and
 * the line is not too long. */
size_t lahar_rows_line_size(struct lahar_rows *rows, const uint8_t *data, size_t size, bool is_last,
                            size_t size_max);
/* Delivers the record start .. end with, under keep_raw, its bytes and what stands before and
 * behind it up to gap. */
lahar_status lahar_rows_deliver(struct lahar_text_reader *reader, const uint8_t *data,
                                lahar_error *error);
/* Reports the whole record start .. end. */
lahar_status lahar_rows_report(struct lahar_text_reader *reader, const uint8_t *data,
                               const char *message, lahar_error *error);

#endif
