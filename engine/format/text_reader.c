/* The frame of the text reader; see text_reader.h. What a consumer leaves of a piece
 * is carried over and grows line by line, so that a long piece behind it is not
 * copied. Positions inside an unfinished record are offsets, so carrying keeps them. */
#include "engine/format/text_reader.h"

#include <string.h>

#include "engine/format/columns.h"
#include "engine/format/scan.h"
#include "engine/format/text_reader_internal.h"
#include "engine/format/time_zone.h"
#include "io/base/error.h"

enum {
    /* Bytes given to a consumer at a time; with what is carried below 4 GiB. */
    SLICE_SIZE_MAX = 64 * 1024 * 1024,
    RECORD_SIZE_MAX = 1024 * 1024 * 1024
};

lahar_status lahar_text_reader_no_memory(lahar_error *error)
{
    return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to parse a record");
}

/* Lines and values that are no objects need a message; every format the bookkeeping. */
static lahar_status check_stream(const struct lahar_text_reader_options *options,
                                 const struct lahar_stream *stream, lahar_error *error)
{
    if (stream == NULL) {
        return lahar_fail(error, LAHAR_INVALID, "there is no stream %u", options->stream);
    }
    const enum lahar_format_kind kind = lahar_format_kind_of(options->format);
    if ((kind == LAHAR_KIND_LINES || kind == LAHAR_KIND_BLOB ||
         options->format == LAHAR_FORMAT_JSON_AS_STRING) &&
        lahar_stream_find_field(stream, LAHAR_FIELD_MESSAGE) == NULL) {
        return lahar_fail(error, LAHAR_INVALID,
                          "stream \"%s\" has no field \"message\" to take lines", stream->name);
    }
    if (!lahar_format_is_valid(options->format)) {
        return lahar_fail(error, LAHAR_INVALID, "there is no format %d", (int)options->format);
    }
    if (options->record_size_max == 0 || options->record_size_max > RECORD_SIZE_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "record_size_max is %zu, not 1 .. %d",
                          options->record_size_max, (int)RECORD_SIZE_MAX);
    }
    return LAHAR_OK;
}

static lahar_bytes base_name(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    return (lahar_bytes){name, name == NULL ? 0 : strlen(name)};
}

/* The state of the kind's consumer; destroy is right for it also after a failure. */
static lahar_status init_kind(struct lahar_text_reader *reader, lahar_error *error)
{
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        lahar_json_parser_init(&reader->of.json.parser, reader->options.allocator);
        lahar_json_plans_init(reader);
        reader->document = lahar_allocate(reader->options.allocator, sizeof *reader->document);
        return reader->document == NULL ? lahar_text_reader_no_memory(error) : LAHAR_OK;
    case LAHAR_KIND_TABLE:
        return lahar_table_rows_init(reader, error);
    case LAHAR_KIND_CELLS:
        return lahar_cell_rows_init(reader, error);
    default:
        return lahar_line_rows_init(reader, error);
    }
}

static void deinit_kind(struct lahar_text_reader *reader)
{
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        lahar_json_parser_deinit(&reader->of.json.parser);
        lahar_json_plans_deinit(reader);
        lahar_release(reader->options.allocator, reader->document);
        break;
    case LAHAR_KIND_TABLE:
        lahar_table_rows_deinit(reader);
        break;
    case LAHAR_KIND_CELLS:
        lahar_cell_rows_deinit(reader);
        break;
    default:
        lahar_line_rows_deinit(reader);
        break;
    }
}

static void destroy_frame(struct lahar_text_reader *reader)
{
    lahar_field_map_deinit(&reader->fields);
    lahar_record_deinit(&reader->record);
    lahar_buffer_deinit(&reader->carry);
    lahar_buffer_deinit(&reader->framing);
    lahar_time_zone_destroy(reader->zone);
    lahar_release(reader->options.allocator, reader);
}

/* A setting by name counts before the option that says the same. */
static lahar_status take_settings(struct lahar_text_reader *reader, lahar_error *error)
{
    struct lahar_text_reader_options *options = &reader->options;
    const struct lahar_format_options *format = &reader->format;
    const bool is_tsv = lahar_format_is_tsv(options->format);
    if (options->settings != NULL) {
        reader->settings.size = options->settings->size;
        memcpy(reader->settings.text, options->settings->text,
               options->settings->size <= sizeof reader->settings.text ? options->settings->size
                                                                       : 0);
    }
    options->settings = NULL;
    LAHAR_TRY(lahar_format_options_read(&reader->settings, &reader->format, error));
    options->regexp = format->regexp.data != NULL ? format->regexp.data : options->regexp;
    options->time_format =
        format->time_format.data != NULL ? format->time_format.data : options->time_format;
    options->time_zone =
        format->time_zone.data != NULL ? format->time_zone.data : options->time_zone;
    options->year = format->year != 0 ? (uint32_t)format->year : options->year;
    options->skip_unmatched |= format->skip_unmatched;
    /* Records of cells have no other way back. */
    options->keep_raw |= format->keep_raw || reader->kind == LAHAR_KIND_CELLS;
    options->allow_ragged |= reader->kind == LAHAR_KIND_CELLS ? format->allow_ragged_custom
                             : is_tsv                         ? format->allow_ragged_tsv
                                                              : format->allow_ragged_csv;
    if (options->format == LAHAR_FORMAT_CUSTOM) {
        reader->skip_lines = format->custom_skip_lines;
    } else if (reader->kind == LAHAR_KIND_TABLE) {
        reader->skip_lines = is_tsv ? format->tsv_skip_lines : format->csv_skip_lines;
    }
    return LAHAR_OK;
}

/* Of formats whose lines begin with a time it is written in one way. */
static const char *time_format_of(const struct lahar_text_reader_options *options)
{
    if (options->time_format != NULL || options->time_field != NULL) {
        return options->time_format;
    }
    return options->format == LAHAR_FORMAT_SYSLOG_3164   ? "syslog"
           : options->format == LAHAR_FORMAT_ACCESS_LOG  ? "clf"
           : options->format == LAHAR_FORMAT_SYSLOG_5424 ? "rfc3339"
                                                         : NULL;
}

static lahar_status init_parts(struct lahar_text_reader *reader, const struct lahar_stream *stream,
                               lahar_error *error)
{
    const struct lahar_text_reader_options *options = &reader->options;
    LAHAR_TRY(lahar_field_map_build(
        &reader->fields, options->allocator, options->catalog, stream, options->columns,
        options->format == LAHAR_FORMAT_JSON_AS_OBJECT, options->time_field, error));
    const char *zone = options->time_zone;
    if (zone != NULL && options->io != NULL && !lahar_time_pattern_is_fixed_zone(zone)) {
        LAHAR_TRY(
            lahar_time_zone_open(options->io, zone, options->allocator, &reader->zone, error));
        zone = NULL;
    }
    LAHAR_TRY(lahar_time_pattern_init(&reader->record.time, time_format_of(options), zone,
                                      options->year, options->reference_ns, error));
    reader->record.time.zone = reader->zone;
    return options->format == LAHAR_FORMAT_NIFI_JSON
               ? lahar_prov_fields_find(options->catalog, options->stream, &reader->provenance,
                                        error)
               : LAHAR_OK;
}

lahar_status lahar_text_reader_create(const struct lahar_text_reader_options *options,
                                      struct lahar_text_reader **reader_out, lahar_error *error)
{
    const struct lahar_stream *stream = lahar_schema_stream(options->catalog, options->stream);
    LAHAR_TRY(check_stream(options, stream, error));
    struct lahar_text_reader *reader = lahar_allocate_zeroed(options->allocator, 1, sizeof *reader);
    if (reader == NULL) {
        return lahar_text_reader_no_memory(error);
    }
    reader->options = *options;
    reader->kind = lahar_format_kind_of(options->format);
    reader->filename = base_name(options->filename);
    reader->line = 1;
    lahar_record_init(&reader->record, options->allocator);
    lahar_buffer_init(&reader->carry, options->allocator);
    lahar_buffer_init(&reader->framing, options->allocator);
    lahar_status status = take_settings(reader, error);
    if (status == LAHAR_OK) {
        status = init_parts(reader, stream, error);
    }
    if (status == LAHAR_OK) {
        status = init_kind(reader, error);
        if (status != LAHAR_OK) {
            deinit_kind(reader);
        }
    }
    if (status != LAHAR_OK) {
        destroy_frame(reader);
        return status;
    }
    *reader_out = reader;
    return LAHAR_OK;
}

void lahar_text_reader_destroy(struct lahar_text_reader *reader)
{
    if (reader != NULL) {
        deinit_kind(reader);
        destroy_frame(reader);
    }
}

void lahar_text_reader_advance(struct lahar_text_reader *reader, const uint8_t *data, size_t size)
{
    reader->offset += size;
    reader->line += lahar_count_newlines(data, size);
}

static lahar_status deliver(struct lahar_text_reader *reader, const struct lahar_framing *framing,
                            uint64_t offset, bool is_error, lahar_error *error)
{
    struct lahar_record *record = &reader->record;
    lahar_buffer_clear(&reader->framing);
    lahar_framing_encode(framing, &reader->framing);
    const lahar_bytes framing_bytes = {reader->framing.data, reader->framing.size};
    lahar_value *offset_value = lahar_record_add(record, LAHAR_FIELD_OFFSET, LAHAR_U64);
    if (offset_value == NULL || reader->framing.has_failed) {
        return lahar_text_reader_no_memory(error);
    }
    offset_value->as.u64 = offset;
    if ((reader->filename.size != 0 &&
         !lahar_record_add_bytes(record, LAHAR_FIELD_FILENAME, LAHAR_KEYWORD, reader->filename)) ||
        (framing_bytes.size != 0 &&
         !lahar_record_add_bytes(record, LAHAR_FIELD_FRAMING, LAHAR_BYTES, framing_bytes))) {
        return lahar_text_reader_no_memory(error);
    }
    lahar_event event;
    if (!is_error &&
        !lahar_columns_fill(reader->options.columns, reader->options.catalog, record)) {
        return lahar_text_reader_no_memory(error);
    }
    if (!lahar_record_finish(record, reader->options.stream, &event)) {
        return lahar_text_reader_no_memory(error);
    }
    reader->record_count++;
    return reader->options.emit(reader->options.emit_context, &event, offset, error);
}

lahar_status lahar_text_reader_deliver(struct lahar_text_reader *reader,
                                       struct lahar_framing *framing, uint64_t offset,
                                       lahar_error *error)
{
    return deliver(reader, framing, offset, false, error);
}

/* Both limits must be exceeded, as in ClickHouse. */
static lahar_status check_error_limit(const struct lahar_text_reader *reader, uint64_t line,
                                      const char *message, lahar_error *error)
{
    const struct lahar_format_options *format = &reader->format;
    const double total = (double)(reader->record_count + reader->error_count);
    if (!format->limits_errors || reader->options.ignores_error_limit ||
        reader->error_count <= format->errors_allowed ||
        (double)reader->error_count <= format->error_ratio_allowed * total) {
        return LAHAR_OK;
    }
    return lahar_fail(error, LAHAR_INVALID,
                      "%llu records cannot be parsed, more than input_format_allow_errors_num or "
                      "_ratio allow; line %llu: %s",
                      (unsigned long long)reader->error_count, (unsigned long long)line, message);
}

lahar_status lahar_text_reader_report(struct lahar_text_reader *reader, uint64_t line,
                                      uint64_t offset, lahar_bytes bytes, const char *message,
                                      lahar_error *error)
{
    reader->error_count++;
    if (reader->options.on_error != NULL) {
        reader->options.on_error(reader->options.on_error_context, line, offset, message);
    }
    LAHAR_TRY(check_error_limit(reader, line, message, error));
    if (!reader->options.errors_as_events) {
        return LAHAR_OK;
    }
    reader->record_count--;
    struct lahar_record *record = &reader->record;
    lahar_record_reset(record);
    const lahar_bytes text = {message, strlen(message)};
    if (!lahar_record_add_bytes(record, LAHAR_FIELD_RAW_RECORD, LAHAR_TEXT, bytes) ||
        !lahar_record_add_bytes(record, LAHAR_FIELD_ERROR, LAHAR_TEXT, text)) {
        return lahar_text_reader_no_memory(error);
    }
    return deliver(reader, &(struct lahar_framing){0}, offset, true, error);
}

static lahar_status consume(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                            bool is_last, size_t *consumed_out, lahar_error *error)
{
    switch (reader->kind) {
    case LAHAR_KIND_LINES:
    case LAHAR_KIND_FIELDS:
        return lahar_lines_consume(reader, data, size, is_last, consumed_out, error);
    case LAHAR_KIND_BLOB:
        return lahar_blob_consume(reader, data, size, is_last, consumed_out, error);
    default:
        return lahar_rows_consume(reader, data, size, is_last, consumed_out, error);
    }
}

static void drop_carried(struct lahar_buffer *carry, size_t count)
{
    if (count != 0) {
        memmove(carry->data, carry->data + count, carry->size - count);
        carry->size -= count;
    }
}

/* What a file can begin with that is no text of bytes: the whole file is passed over. Two bytes
 * of a mark are enough where no text can begin with them. */
static const struct foreign {
    const char *bytes;
    uint8_t size;
    const char *what; /* static text */
} foreign_starts[] = {
    {"\xff\xfe", 2, "not UTF-8: UTF-16 byte order mark, the file is passed over"},
    {"\xfe\xff", 2, "not UTF-8: UTF-16 byte order mark, the file is passed over"},
    {"\0\0\xfe\xff", 4, "not UTF-8: UTF-32 byte order mark, the file is passed over"},
    {"\x1f\x8b\x08", 3, "compressed by gzip: the file is passed over"},
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd: the file is passed over"},
    {"\xfd\x37zXZ\0", 6, "compressed by xz: the file is passed over"},
    {"BZh91AY&SY", 10, "compressed by bzip2: the file is passed over"},
};

static const uint8_t utf8_mark[3] = {0xef, 0xbb, 0xbf};

/* bzip2 says how large its blocks are in the fourth byte, 1 to 9. */
static bool begins_like(const struct foreign *start, const uint8_t *p, size_t size)
{
    for (size_t i = 0; i < size && i < start->size; i++) {
        const bool is_level = start->size == 10 && i == 3 && p[i] >= '1' && p[i] <= '9';
        if (p[i] != (uint8_t)start->bytes[i] && !is_level) {
            return false;
        }
    }
    return true;
}

static lahar_status refuse_file(struct lahar_text_reader *reader, const char *message,
                                lahar_error *error)
{
    reader->is_started = true;
    reader->is_refused = true;
    reader->offset = reader->carry.size;
    lahar_buffer_clear(&reader->carry);
    return lahar_text_reader_report(reader, 1, 0, (lahar_bytes){0}, message, error);
}

/* Looks at the start of the carry, which is the file's. */
static lahar_status start(struct lahar_text_reader *reader, bool is_last, lahar_error *error)
{
    const uint8_t *p = reader->carry.data;
    const size_t size = reader->carry.size;
    bool is_open = size < sizeof utf8_mark && memcmp(p, utf8_mark, size) == 0;
    for (size_t i = 0; i < sizeof foreign_starts / sizeof foreign_starts[0]; i++) {
        const struct foreign *foreign = &foreign_starts[i];
        if (reader->kind == LAHAR_KIND_BLOB || !begins_like(foreign, p, size)) {
            continue;
        }
        if (size >= foreign->size) {
            return refuse_file(reader, foreign->what, error);
        }
        is_open = true;
    }
    if (!is_last && (size == 0 || is_open)) {
        return LAHAR_OK;
    }
    reader->is_started = true;
    if (size >= sizeof utf8_mark && memcmp(p, utf8_mark, sizeof utf8_mark) == 0) {
        reader->has_bom = true;
        drop_carried(&reader->carry, sizeof utf8_mark);
        /* The mark is part of the first line, but stands before any other record. */
        reader->offset += lahar_format_is_of_lines(reader->options.format) ? 0 : 3;
    }
    return LAHAR_OK;
}

static lahar_status consume_carried(struct lahar_text_reader *reader, bool is_last,
                                    lahar_error *error)
{
    /* Offsets are added to the address, which an empty buffer does not have. */
    static const uint8_t nothing[1] = {0};
    const uint8_t *carried = reader->carry.size == 0 ? nothing : reader->carry.data;
    size_t consumed = 0;
    if (reader->carry.has_failed) {
        return lahar_text_reader_no_memory(error);
    }
    lahar_marks_forget(&reader->marks);
    LAHAR_TRY(consume(reader, carried, reader->carry.size, is_last, &consumed, error));
    drop_carried(&reader->carry, consumed);
    return LAHAR_OK;
}

static lahar_status feed(struct lahar_text_reader *reader, const uint8_t *data, size_t size,
                         lahar_error *error)
{
    while (size != 0) {
        const size_t slice = size < SLICE_SIZE_MAX ? size : SLICE_SIZE_MAX;
        if (reader->carry.size == 0) {
            size_t consumed = 0;
            lahar_marks_forget(&reader->marks);
            LAHAR_TRY(consume(reader, data, slice, false, &consumed, error));
            lahar_buffer_put(&reader->carry, data + consumed, slice - consumed);
            data += slice;
            size -= slice;
            continue;
        }
        const uint8_t *newline = memchr(data, '\n', slice);
        const size_t count = newline == NULL ? slice : (size_t)(newline - data) + 1;
        lahar_buffer_put(&reader->carry, data, count);
        data += count;
        size -= count;
        LAHAR_TRY(consume_carried(reader, false, error));
    }
    return reader->carry.has_failed ? lahar_text_reader_no_memory(error) : LAHAR_OK;
}

/* A stream that has gained fields is another object. */
static lahar_status follow_schema(struct lahar_text_reader *reader, lahar_error *error)
{
    const struct lahar_text_reader_options *options = &reader->options;
    const struct lahar_stream *stream = lahar_schema_stream(options->catalog, options->stream);
    if (stream == reader->fields.stream) {
        return LAHAR_OK;
    }
    return lahar_field_map_build(&reader->fields, options->allocator, options->catalog, stream,
                                 options->columns, options->format == LAHAR_FORMAT_JSON_AS_OBJECT,
                                 options->time_field, error);
}

/* The first lines of a file that are to be passed over. */
static void skip_lines(struct lahar_text_reader *reader, const uint8_t **data, size_t *size)
{
    while (reader->line <= reader->skip_lines && *size != 0) {
        const uint8_t *newline = memchr(*data, '\n', *size);
        const size_t count = newline == NULL ? *size : (size_t)(newline - *data) + 1;
        reader->offset += count;
        reader->line += newline != NULL;
        *data += count;
        *size -= count;
    }
}

lahar_status lahar_text_reader_write(struct lahar_text_reader *reader, const void *data,
                                     size_t size, lahar_error *error)
{
    const uint8_t *p = data;
    LAHAR_TRY(follow_schema(reader, error));
    while (!reader->is_started && size != 0) {
        lahar_buffer_put_u8(&reader->carry, *p++);
        size--;
        if (reader->carry.has_failed) {
            return lahar_text_reader_no_memory(error);
        }
        LAHAR_TRY(start(reader, false, error));
    }
    if (reader->is_refused) {
        reader->offset += size;
        return LAHAR_OK;
    }
    if (reader->line <= reader->skip_lines) {
        /* What the look for a mark has carried is at the start of the first line. */
        const uint8_t *carried = reader->carry.data;
        size_t carried_size = reader->carry.size;
        if (carried_size != 0) {
            skip_lines(reader, &carried, &carried_size);
            drop_carried(&reader->carry, reader->carry.size - carried_size);
        }
        if (size != 0) {
            skip_lines(reader, &p, &size);
        }
    }
    return feed(reader, p, size, error);
}

lahar_status lahar_text_reader_finish(struct lahar_text_reader *reader, lahar_error *error)
{
    if (!reader->is_started && reader->carry.size != 0) {
        LAHAR_TRY(start(reader, true, error));
    }
    if (reader->is_refused) {
        return LAHAR_OK;
    }
    LAHAR_TRY(consume_carried(reader, true, error));
    /* A mark that no line has followed. */
    reader->offset += lahar_format_is_of_lines(reader->options.format) && reader->has_bom ? 3 : 0;
    return LAHAR_OK;
}

/* Behind a line nothing is remembered of it. */
static void end_line(struct lahar_text_reader *reader)
{
    reader->rows = (struct lahar_rows){.state = LAHAR_ROWS_BETWEEN};
    if (reader->kind == LAHAR_KIND_JSON) {
        reader->of.json.is_in_array = false;
        reader->of.json.allows_comma = false;
    }
}

/* One line, as a file of its own. */
static lahar_status write_line(struct lahar_text_reader *reader, const uint8_t *line, size_t size,
                               lahar_error *error)
{
    size_t consumed = 0;
    if (!reader->is_started || reader->line <= reader->skip_lines) {
        LAHAR_TRY(lahar_text_reader_write(reader, line, size, error));
        LAHAR_TRY(lahar_text_reader_finish(reader, error));
    } else {
        LAHAR_TRY(consume(reader, line, size, true, &consumed, error));
    }
    end_line(reader);
    return LAHAR_OK;
}

lahar_status lahar_text_reader_write_lines(struct lahar_text_reader *reader, const void *data,
                                           size_t size, lahar_error *error)
{
    const uint8_t *p = data;
    LAHAR_TRY(follow_schema(reader, error));
    lahar_marks_forget(&reader->marks);
    while (size != 0) {
        size_t run = 0;
        if (reader->is_started && reader->line > reader->skip_lines) {
            LAHAR_TRY(lahar_rows_run(reader, p, size, true, &run, error));
        }
        p += run;
        size -= run;
        if (size != 0) {
            const uint8_t *newline = memchr(p, '\n', size);
            const size_t line_size = newline == NULL ? size : (size_t)(newline - p) + 1;
            LAHAR_TRY(write_line(reader, p, line_size, error));
            p += line_size;
            size -= line_size;
        }
    }
    return LAHAR_OK;
}

uint64_t lahar_text_reader_offset(const struct lahar_text_reader *reader)
{
    return reader->offset;
}

uint64_t lahar_text_reader_line(const struct lahar_text_reader *reader)
{
    return reader->line;
}

uint64_t lahar_text_reader_error_count(const struct lahar_text_reader *reader)
{
    return reader->error_count;
}

/* --- positions ---------------------------------------------------------------------- */

enum {
    POSITION_IN_ARRAY = 1,
    POSITION_ALLOWS_COMMA = 2,
    POSITION_SKIPS = 4 /* in the rest of a line that could not be parsed */
};

struct lahar_text_position lahar_text_reader_position(const struct lahar_text_reader *reader)
{
    struct lahar_text_position position = {.offset = reader->offset, .line = reader->line};
    if (reader->kind == LAHAR_KIND_JSON) {
        position.flags = (uint8_t)((reader->of.json.is_in_array ? POSITION_IN_ARRAY : 0) |
                                   (reader->of.json.allows_comma ? POSITION_ALLOWS_COMMA : 0));
    }
    position.flags |= reader->rows.state == LAHAR_ROWS_SKIP ? POSITION_SKIPS : 0;
    return position;
}

void lahar_text_reader_seek(struct lahar_text_reader *reader,
                            const struct lahar_text_position *position)
{
    lahar_buffer_clear(&reader->carry);
    reader->offset = position->offset;
    reader->line = position->line;
    reader->is_started = position->offset != 0;
    reader->has_bom = false;
    reader->is_refused = false;
    reader->rows = (struct lahar_rows){
        .state = (position->flags & POSITION_SKIPS) != 0 ? LAHAR_ROWS_SKIP : LAHAR_ROWS_BETWEEN};
    switch (reader->kind) {
    case LAHAR_KIND_JSON:
        reader->of.json.is_in_array = (position->flags & POSITION_IN_ARRAY) != 0;
        reader->of.json.allows_comma = (position->flags & POSITION_ALLOWS_COMMA) != 0;
        lahar_json_parser_reset(&reader->of.json.parser);
        break;
    case LAHAR_KIND_TABLE:
        lahar_table_parser_reset(&reader->of.table.parser);
        if (position->offset == 0 && lahar_format_has_header(reader->options.format)) {
            reader->of.table.has_header = false;
            lahar_buffer_clear(&reader->of.table.header);
        }
        break;
    case LAHAR_KIND_CELLS:
        reader->of.cells.retry_at = 0;
        reader->of.cells.has_begun = position->offset != 0;
        break;
    default:
        reader->of.lines.splitter = (struct lahar_line_splitter){0};
        reader->of.lines.joined = 0;
        reader->of.lines.line_count = 0;
        break;
    }
}

bool lahar_text_reader_has_header(const struct lahar_text_reader *reader)
{
    return lahar_format_has_header(reader->options.format) && reader->of.table.has_header;
}

void lahar_text_reader_set_now(struct lahar_text_reader *reader, int64_t now_ns)
{
    reader->record.time.reference_ns = now_ns;
}

void lahar_text_reader_rename(struct lahar_text_reader *reader, const char *filename)
{
    reader->options.filename = filename;
    reader->filename = base_name(filename);
}
