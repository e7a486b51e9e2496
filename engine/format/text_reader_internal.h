/* What the parts of the text reader share: the frame that cuts pieces into records,
 * and one consumer a family of formats. */
#ifndef LAHAR_FORMAT_TEXT_READER_INTERNAL_H
#define LAHAR_FORMAT_TEXT_READER_INTERNAL_H

#include "engine/format/document.h"
#include "engine/format/field_map.h"
#include "engine/format/framing.h"
#include "engine/format/json.h"
#include "engine/format/lines.h"
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

struct lahar_json_rows {
    struct lahar_rows rows;
    struct lahar_json_parser parser;
    bool is_in_array;  /* inside an enclosing array */
    bool allows_comma; /* a record has ended and no comma has come */
    bool is_value;     /* COMPLETE: the record is not an object */
};

struct lahar_table_rows {
    struct lahar_rows rows;
    struct lahar_table_parser parser;
    struct lahar_table_parser header_parser; /* holds the fields of the header */
    struct lahar_buffer header;              /* the header record as it stands in the file */
    size_t header_start;                     /* of the parsed text in header */
    bool has_header;
};

struct lahar_regexp_rows {
    struct lahar_line_splitter lines;
    struct lahar_regex *regex; /* owned */
    struct lahar_regex_scratch scratch;
    bool keeps_line; /* the message is a group's, so the line goes to _raw_record */
};

struct lahar_text_reader {
    struct lahar_text_reader_options options;
    struct lahar_field_map fields;
    struct lahar_prov_fields provenance; /* of NIFI_JSON */
    struct lahar_record record;
    struct lahar_buffer carry;   /* the incomplete end of what was written */
    struct lahar_buffer framing; /* encoded, of the record being delivered */
    lahar_bytes filename;        /* base name */
    uint64_t offset;             /* in the file, of the first byte not consumed */
    uint64_t line;               /* number of the line it lies in, from 1 */
    uint64_t error_count;
    bool is_started; /* the byte order mark has been looked for */
    bool has_bom;    /* a UTF-8 mark that no record has taken yet */
    bool is_refused; /* not UTF-8: the rest is passed over */
    union {
        struct lahar_line_splitter lines;
        struct lahar_json_rows json;
        struct lahar_table_rows table;
        struct lahar_regexp_rows regexp;
    } of;
    struct lahar_document *document; /* JSON; owned */
};

/* Consume what they can of data and store how much. The bytes not consumed come again, with
 * more behind them. With is_last everything is consumed. */
lahar_status lahar_lines_consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                                 bool is_last, size_t *consumed_out, lahar_error *error);
lahar_status lahar_regexp_rows_consume(struct lahar_text_reader *reader, const uint8_t *data,
                                       size_t size, bool is_last, size_t *consumed_out,
                                       lahar_error *error);
lahar_status lahar_json_rows_consume(struct lahar_text_reader *reader, const uint8_t *data,
                                     size_t size, bool is_last, size_t *consumed_out,
                                     lahar_error *error);
lahar_status lahar_table_rows_consume(struct lahar_text_reader *reader, const uint8_t *data,
                                      size_t size, bool is_last, size_t *consumed_out,
                                      lahar_error *error);

/* What the formats of lines do alike. */

/* Framing of a line that begins where the reader stands. */
struct lahar_framing lahar_line_framing(const struct lahar_text_reader *reader,
                                        const struct lahar_line *line);
/* Hands each line to deliver. */
typedef lahar_status (*lahar_line_deliver)(struct lahar_text_reader *reader,
                                           const struct lahar_line *line, lahar_error *error);
lahar_status lahar_lines_each(struct lahar_text_reader *reader,
                              struct lahar_line_splitter *splitter, lahar_line_deliver deliver,
                              const uint8_t *data, size_t size, bool is_last, size_t *consumed_out,
                              lahar_error *error);

/* Compiles the expression of a reader of Regexp. LAHAR_INVALID: it is none, or has no group with
 * a name. */
lahar_status lahar_regexp_rows_init(struct lahar_text_reader *reader, lahar_error *error);

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

/* Under keep_raw what separates records is kept up to record_size_max bytes at a time, wherever
 * the input ends: how far a gap that begins at start may be looked at. */
size_t lahar_rows_gap_limit(const struct lahar_text_reader *reader, size_t start, size_t size);
/* The record at start has failed at its byte failure_at: waits for the end of its line. */
void lahar_rows_fail(struct lahar_rows *rows, const char *failure, size_t failure_at);
/* The state LINE, for a record that has failed: reports it once its line is there, and
 * consumes the line. Stores the bytes consumed, 0 when more are needed. */
lahar_status lahar_rows_fail_line(struct lahar_text_reader *reader, struct lahar_rows *rows,
                                  const uint8_t *data, size_t size, bool is_last,
                                  size_t *consumed_out, lahar_error *error);
/* Bytes of the line at start without its LF; SIZE_MAX when its end is not there yet and
 * the line is not too long. */
size_t lahar_rows_line_size(struct lahar_rows *rows, const uint8_t *data, size_t size, bool is_last,
                            size_t size_max);
/* The state SKIP: bytes up to the next line. */
size_t lahar_rows_skip(struct lahar_rows *rows, const uint8_t *data, size_t size);
/* Delivers the record start .. end with, under keep_raw, its bytes and what stands before and
 * behind it up to gap. */
lahar_status lahar_rows_deliver(struct lahar_text_reader *reader, const struct lahar_rows *rows,
                                const uint8_t *data, lahar_error *error);
/* Reports the whole record start .. end. */
lahar_status lahar_rows_report(struct lahar_text_reader *reader, const struct lahar_rows *rows,
                               const uint8_t *data, const char *message, lahar_error *error);

#endif
