/* Bytes of one file into events: the format's tokenizer over a stream of pieces,
 * and the mapping of its records to a stream's fields. Knows no store: events go to
 * a callback. One thread at a time.
 *
 * What comes out does not depend on how the bytes were cut into pieces. Records that
 * lie in one piece are not copied; the incomplete end of a piece is kept, at most
 * record_size_max and a piece of it. */
#ifndef LAHAR_FORMAT_TEXT_READER_H
#define LAHAR_FORMAT_TEXT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/event/schema.h"
#include "engine/format/marks.h"
#include "io/base/allocator.h"
#include "lahar/event.h"
#include "lahar/ingest.h"

struct lahar_columns;
struct lahar_io;

/* Takes one event, valid during the call. offset: of its record's first byte. A
 * status other than LAHAR_OK ends the reading and is returned. */
typedef lahar_status (*lahar_text_emit)(void *context, const lahar_event *event, uint64_t offset,
                                        lahar_error *error);

struct lahar_text_reader_options {
    const lahar_allocator *allocator;
    const struct lahar_schema_catalog *catalog;
    uint32_t stream;
    lahar_format format;
    const char *filename;    /* its base name goes into _filename; may be NULL */
    const char *time_field;  /* may be NULL; all of these must outlive the reader */
    const char *time_format; /* these four as in lahar_ingest_options */
    const char *time_zone;
    struct lahar_io *io; /* where time_zone is found when it is a name of the database; NULL:
                            it is UTC or an offset */
    uint32_t year;
    const char *regexp;
    const lahar_format_settings *settings; /* copied; NULL: all at their defaults */
    struct lahar_columns *columns;         /* filled by expressions; borrowed, may be NULL */
    bool skip_unmatched;  /* Regexp: lines that do not match are passed over in silence */
    int64_t reference_ns; /* now, to guess the year of times without one; 0: they are no times */
    bool keep_raw;
    bool errors_as_events;    /* a record that cannot be parsed becomes an event with _raw_record
                                 and _error */
    bool allow_ragged;        /* CSV and TSV: rows may have fewer or more fields than the header */
    bool ignores_error_limit; /* input_format_allow_errors_num is the caller's to apply */
    size_t record_size_max;   /* bytes; not 0, below 1 GiB */
    enum lahar_simd simd;     /* for tests; 0: what the machine has */
    lahar_text_emit emit;
    void *emit_context;
    /* May be NULL. line counts from 1, offset is the record's first byte. */
    void (*on_error)(void *context, uint64_t line, uint64_t offset, const char *message);
    void *on_error_context;
};

struct lahar_text_reader;

/* LAHAR_INVALID: no such stream, or one that has no field for the format's records. */
lahar_status lahar_text_reader_create(const struct lahar_text_reader_options *options,
                                      struct lahar_text_reader **reader_out, lahar_error *error);
void lahar_text_reader_destroy(struct lahar_text_reader *reader); /* NULL is allowed */

/* After a failure the reader can only be destroyed. */
lahar_status lahar_text_reader_write(struct lahar_text_reader *reader, const void *data,
                                     size_t size, lahar_error *error);
/* The same for whole lines (the last may lack its end), each of which is read as a file of its own:
 * no record goes beyond its line. */
lahar_status lahar_text_reader_write_lines(struct lahar_text_reader *reader, const void *data,
                                           size_t size, lahar_error *error);
/* The end of the file. */
lahar_status lahar_text_reader_finish(struct lahar_text_reader *reader, lahar_error *error);

/* Where reading stands between two records, so that it can go on there later, in this reader or
 * in another one. */
struct lahar_text_position {
    uint64_t offset; /* as lahar_text_reader_offset */
    uint64_t line;   /* as lahar_text_reader_line */
    uint8_t flags;   /* what else the format has to know; 0 at the start of a line */
};

struct lahar_text_position lahar_text_reader_position(const struct lahar_text_reader *reader);
/* The next bytes written are those at position. What was carried over is dropped, also what a
 * failure has left. The header record of a table stays unless the position is the start of the
 * file. */
void lahar_text_reader_seek(struct lahar_text_reader *reader,
                            const struct lahar_text_position *position);
/* Whether the header record of a table has been read. */
bool lahar_text_reader_has_header(const struct lahar_text_reader *reader);
/* What time it is, of which times without a year are the past. */
void lahar_text_reader_set_now(struct lahar_text_reader *reader, int64_t now_ns);
/* Another file's name for _filename; it must outlive its use. */
void lahar_text_reader_rename(struct lahar_text_reader *reader, const char *filename);

/* Every record that begins before this byte has been delivered or reported. */
uint64_t lahar_text_reader_offset(const struct lahar_text_reader *reader);
/* The number, from 1, of the line in which that byte lies. */
uint64_t lahar_text_reader_line(const struct lahar_text_reader *reader);
uint64_t lahar_text_reader_error_count(const struct lahar_text_reader *reader);

#endif
