/* Records of delimiter-separated files: bytes into fields.
 *
 * CSV is RFC 4180, with another delimiter or other quotes where the style says so: fields in quotes
 * may hold commas, line ends and doubled quotes; a quote inside a field that does not begin with
 * one is data, text behind a closing quote is an error. TSV is ClickHouse's: a backslash escapes,
 * \N is null. A record ends with LF or CR LF; a CR elsewhere is data.
 *
 * The tokenizer can stop where the input ends and go on when the same bytes are given again with
 * more behind them; positions are offsets from the record's start. */
#ifndef LAHAR_FORMAT_TABLE_H
#define LAHAR_FORMAT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/marks.h"
#include "io/base/allocator.h"
#include "io/base/arena.h"
#include "io/base/buffer.h"
#include "lahar/event.h"

struct lahar_table_field {
    uint32_t offset; /* of the text, without quotes */
    uint32_t size;
    uint8_t quote; /* around it, or 0 */
    bool is_quoted;
    bool has_escapes; /* doubled quotes or backslashes */
};

struct lahar_table_style {
    uint8_t delimiter;
    bool is_tsv;
    bool has_single_quotes; /* CSV: what may stand around a field */
    bool has_double_quotes; /* the same */
};

struct lahar_table_style lahar_table_style_of(bool is_tsv);

struct lahar_table_parser {
    struct lahar_table_field *fields; /* owned */
    size_t field_count;
    size_t field_capacity;
    const lahar_allocator *allocator;
    const char *failure; /* after LAHAR_TABLE_BAD, static text */
    size_t position;     /* start of the field that is being read; behind the record when done */
    size_t scanned;      /* inside the field: where to go on */
    struct lahar_table_style style;
    uint8_t quote;    /* inside a quoted field: its quote */
    bool is_quoted;   /* inside the field: it began with a quote */
    bool has_escapes; /* inside the field */
    bool has_lf;      /* of the record that is done */
    bool has_cr;
    bool has_inner_lf; /* lahar_table_scan: some quoted field of the record holds an LF */
};

enum lahar_table_result {
    LAHAR_TABLE_DONE,
    LAHAR_TABLE_MORE,
    LAHAR_TABLE_BAD,
    LAHAR_TABLE_NO_MEMORY
};

void lahar_table_parser_init(struct lahar_table_parser *parser, const lahar_allocator *allocator,
                             const struct lahar_table_style *style);
void lahar_table_parser_deinit(struct lahar_table_parser *parser);
void lahar_table_parser_reset(struct lahar_table_parser *parser);

/* Parses the record at data, which is at most 4 GiB and not empty when is_last. */
enum lahar_table_result lahar_table_parse(struct lahar_table_parser *parser, const uint8_t *data,
                                          size_t size, bool is_last);

/* What lahar_table_scan has to have marked. */
struct lahar_mark_set lahar_table_marks(const struct lahar_table_style *style);

/* The record at data, below end, when it is plain to see: whole, with its LF, without a fault, no
 * longer than a window. False: lahar_table_parse has to say what it is; the parser is to be reset
 * for it. marks are of lahar_table_marks. */
bool lahar_table_scan(struct lahar_table_parser *parser, struct lahar_marks *marks,
                      const uint8_t *data, const uint8_t *end);

/* The field's value, in data or in the arena. Whether the field stands for null is the caller's to
 * see. False when memory is refused. */
bool lahar_table_value(const struct lahar_table_parser *parser, const uint8_t *data, size_t index,
                       struct lahar_arena *arena, lahar_bytes *value_out);

/* Appends a value as the format writes it, in quotes or escaped where it must be. */
void lahar_table_put_value(struct lahar_buffer *buffer, const struct lahar_table_style *style,
                           lahar_bytes value);

#endif
