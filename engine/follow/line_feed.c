/* From bytes of a file to records: lines to the parser.
 *
 * A line is given to the parser as a whole file of its own, as FileLog does, so that a line
 * that cannot be parsed never swallows its neighbours; with multiline the parser
 * itself says where a record ends. Plain lines of ordinary size go there many at a time. The offset
 * moves with what the parser has consumed, also when the sink is full in the middle of a line. */
#include <stdio.h>
#include <string.h>

#include "engine/follow/file_poll.h"
#include "engine/follow/transcode.h"
#include "engine/format/format_kind.h"
#include "engine/store/snapshot.h"
#include "io/base/error.h"
#include "io/io.h"

enum {
    RECORD_SIZE_MAX = 64 * 1024 * 1024 /* of the parser, above any line */
};

/* Whether the parser says where a record ends, and not the line. */
static bool spans_lines(const struct lahar_follow_source *source)
{
    return source->joins_lines ||
           (source->spec.multiline && source->spec.format != LAHAR_FORMAT_LINE);
}

/* Whether lines cannot disturb each other, so that many can be given to the parser at once. */
static bool has_independent_lines(const struct lahar_follow_source *source)
{
    const enum lahar_format_kind kind = lahar_format_kind_of(source->spec.format);
    return kind == LAHAR_KIND_LINES || kind == LAHAR_KIND_FIELDS || kind == LAHAR_KIND_BLOB;
}

/* --- the parser ------------------------------------------------------------------------ */

static lahar_status make_reader(struct lahar_follow_worker *worker,
                                const struct lahar_follow_source *source, lahar_error *error)
{
    const struct lahar_text_reader_options options = {
        .allocator = worker->follow->allocator,
        .catalog = lahar_store_catalog(worker->follow->store),
        .stream = source->target.stream,
        /* A line is the blob, as for FileLog. */
        .format =
            source->spec.format == LAHAR_FORMAT_RAW_BLOB ? LAHAR_FORMAT_LINE : source->spec.format,
        .settings = &source->spec.format_settings,
        .columns = &worker->columns,
        .io = lahar_store_io(worker->follow->store),
        .time_field = source->spec.time_field,
        .errors_as_events = true,
        .ignores_error_limit = true,
        .record_size_max =
            spans_lines(source) ? (size_t)source->spec.line_size_max : RECORD_SIZE_MAX,
        .emit = lahar_record_sink_take,
        .emit_context = &worker->sink,
    };
    if (worker->reader != NULL && worker->reader_source == source) {
        return LAHAR_OK;
    }
    lahar_text_reader_destroy(worker->reader);
    lahar_columns_deinit(&worker->columns);
    worker->reader = NULL;
    worker->header_generation = 0;
    LAHAR_TRY(lahar_columns_find(&worker->columns, worker->follow->store, source->target.stream,
                                 source->spec.time_field, error));
    LAHAR_TRY(lahar_text_reader_create(&options, &worker->reader, error));
    worker->reader_source = source;
    return LAHAR_OK;
}

/* The parser of a table has to know the header record, which is at the file's start. Nothing is
 * delivered: the piece ends with the header's line, or the parser takes no more than it. */
static lahar_status read_header(struct lahar_follow_worker *worker,
                                const struct lahar_follow_source *source,
                                struct lahar_file_poll *poll, lahar_error *error)
{
    const enum lahar_text_encoding encoding = poll->next.encoding;
    const uint64_t mark_size = lahar_encoding_unit(encoding) == 1   ? 0
                               : lahar_encoding_unit(encoding) == 2 ? 2
                                                                    : 4;
    const struct lahar_text_position start = {.line = 1};
    uint64_t at = mark_size;
    lahar_text_reader_seek(worker->reader, &start);
    while (at < poll->next.offset && !lahar_text_reader_has_header(worker->reader)) {
        size_t size = (size_t)(poll->next.offset - at);
        size =
            size < source->spec.line_size_max + 8 ? size : (size_t)source->spec.line_size_max + 8;
        lahar_buffer_clear(&worker->text);
        if (!lahar_buffer_reserve(&worker->text, size)) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a header");
        }
        size_t got = 0;
        LAHAR_TRY(lahar_file_poll_read(poll, at, worker->text.data, size, &got, error));
        size_t line = lahar_encoding_line_size(encoding, worker->text.data, got);
        line = line == 0 ? got : line;
        if (line == 0) {
            break;
        }
        if (lahar_encoding_unit(encoding) != 1) {
            const size_t before = line;
            worker->text.size = line;
            lahar_encoding_put_utf8(encoding, worker->text.data, before, &worker->value);
            LAHAR_TRY(lahar_text_reader_write(worker->reader, worker->value.data,
                                              worker->value.size, error));
            lahar_buffer_clear(&worker->value);
        } else {
            LAHAR_TRY(lahar_text_reader_write(worker->reader, worker->text.data, line, error));
        }
        at += line;
    }
    return LAHAR_OK;
}

lahar_status lahar_line_feed_reader(struct lahar_follow_worker *worker,
                                    const struct lahar_follow_source *source,
                                    struct lahar_file_poll *poll,
                                    struct lahar_text_reader **reader_out, lahar_error *error)
{
    const struct lahar_file_cursor *next = &poll->next;
    struct lahar_io *io = lahar_store_io(worker->follow->store);
    LAHAR_TRY(make_reader(worker, source, error));
    lahar_text_reader_rename(worker->reader, poll->file->path);
    lahar_text_reader_set_now(worker->reader, io->ops->realtime_ns(io));
    if (lahar_format_has_header(source->spec.format) &&
        worker->header_generation != next->generation) {
        worker->header_generation = 0;
        worker->sink.is_muted = true;
        const lahar_status status = read_header(worker, source, poll, error);
        worker->sink.is_muted = false;
        LAHAR_TRY(status);
        worker->header_generation = next->generation;
    }
    *reader_out = worker->reader;
    return LAHAR_OK;
}

/* --- one line ------------------------------------------------------------------------------- */

/* What a line is in the file and for the parser. */
struct line {
    const uint8_t *text; /* for the parser, with its LF */
    size_t text_size;
    uint64_t file_size; /* bytes in the file */
    uint64_t full_size; /* whole size, of a line that was cut; else 0 */
    bool has_lf;
};

/* Gives the line to the parser and moves the poll's cursor. *stopped_out: the sink takes no
 * more, the cursor is in front of what it refused. */
static lahar_status take_line(struct lahar_follow_worker *worker, struct lahar_file_poll *poll,
                              const struct line *line, bool *stopped_out, lahar_error *error)
{
    struct lahar_file_cursor *next = &poll->next;
    struct lahar_text_position position = {next->offset, next->line, next->text_flags};
    if (lahar_encoding_unit(next->encoding) != 1 && position.offset <= 4) {
        /* The mark is consumed; the parser is not to look for another. */
        position.offset = 4;
    }
    lahar_text_reader_seek(worker->reader, &position);
    worker->sink.base_offset = next->offset - position.offset;
    worker->sink.line = next->line;
    worker->sink.cut_size = line->full_size;
    lahar_status status =
        lahar_text_reader_write(worker->reader, line->text, line->text_size, error);
    if (status == LAHAR_OK) {
        status = lahar_text_reader_finish(worker->reader, error);
    }
    worker->sink.cut_size = 0;
    if (status == LAHAR_BUSY && (worker->sink.is_full || worker->sink.is_stopped)) {
        *stopped_out = true;
        const struct lahar_text_position stop = lahar_text_reader_position(worker->reader);
        if (lahar_encoding_unit(next->encoding) == 1 && line->full_size == 0) {
            next->offset = stop.offset;
            next->text_flags = stop.flags;
        }
        return LAHAR_OK;
    }
    if (status == LAHAR_OK) {
        next->offset += line->file_size;
        next->line += line->has_lf;
        next->text_flags = 0;
    }
    return status;
}

/* The first bytes of a line that is too long, in place of it. */
static lahar_status take_long_line(struct lahar_follow_worker *worker,
                                   const struct lahar_follow_source *source,
                                   struct lahar_file_poll *poll, uint64_t start, uint64_t full_size,
                                   uint64_t left_size, bool has_lf, bool *stopped_out,
                                   lahar_error *error)
{
    char message[120];
    (void)snprintf(message, sizeof message, "a line of %llu bytes, the limit is %llu",
                   (unsigned long long)full_size, (unsigned long long)source->spec.line_size_max);
    worker->sink.line = poll->next.line;
    if (source->spec.long_line == LAHAR_LONG_LINE_SKIP) {
        lahar_record_sink_count_error(&worker->sink, message);
        poll->next.offset += left_size;
        poll->next.line += has_lf;
        return LAHAR_OK;
    }
    struct lahar_buffer *text = &worker->text;
    const enum lahar_text_encoding encoding = poll->next.encoding;
    const size_t unit = lahar_encoding_unit(encoding);
    const size_t kept = (size_t)source->spec.line_size_max / unit * unit;
    size_t got = 0;
    lahar_buffer_clear(text);
    lahar_buffer_clear(&worker->value);
    if (!lahar_buffer_reserve(&worker->value, kept)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a line");
    }
    LAHAR_TRY(lahar_file_poll_read(poll, start, worker->value.data, kept, &got, error));
    if (unit == 1) {
        lahar_buffer_put(text, worker->value.data, got);
    } else {
        lahar_encoding_put_utf8(encoding, worker->value.data, got, text);
    }
    lahar_buffer_put_u8(text, '\n');
    if (text->has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a line");
    }
    const struct line line = {text->data, text->size, left_size, full_size, has_lf};
    if (source->spec.long_line == LAHAR_LONG_LINE_TRUNCATE) {
        const uint64_t offset = poll->next.offset;
        poll->next.offset = start;
        const lahar_status status = take_line(worker, poll, &line, stopped_out, error);
        poll->next.offset += offset - start;
        return status;
    }
    /* ERROR: an event of the error mode with the first bytes. */
    const lahar_value values[] = {
        {.field = LAHAR_FIELD_RAW_RECORD,
         .type = LAHAR_TEXT,
         .as.bytes = {text->data, text->size - 1}},
        {.field = LAHAR_FIELD_ERROR, .type = LAHAR_TEXT, .as.bytes = {message, strlen(message)}},
        {.field = LAHAR_FIELD_OFFSET, .type = LAHAR_U64, .as.u64 = start},
    };
    const lahar_event event = {.time_ns = LAHAR_TIME_OF_ARRIVAL,
                               .stream = source->target.stream,
                               .values = values,
                               .value_count = 3};
    worker->sink.base_offset = 0;
    worker->sink.cut_size = full_size;
    const lahar_status status = lahar_record_sink_take(&worker->sink, &event, start, error);
    worker->sink.cut_size = 0;
    *stopped_out = status == LAHAR_BUSY;
    if (status == LAHAR_OK) {
        poll->next.offset += left_size;
        poll->next.line += has_lf;
    }
    return status == LAHAR_BUSY ? LAHAR_OK : status;
}

/* --- feeds --------------------------------------------------------------------------------------
 */

static void advance(struct lahar_line_feed *feed, uint64_t before, uint64_t after)
{
    feed->data += after - before;
    feed->size -= (size_t)(after - before);
}

/* Inside a line that is too long: looks for its end and keeps nothing. */
static lahar_status pass_long_line(struct lahar_follow_worker *worker,
                                   const struct lahar_follow_source *source,
                                   struct lahar_file_poll *poll, struct lahar_line_feed *feed,
                                   bool *stopped_out, lahar_error *error)
{
    struct lahar_file_cursor *next = &poll->next;
    const size_t end = lahar_encoding_line_size(next->encoding, feed->data, feed->size);
    const bool has_lf = end != 0;
    const size_t unit = lahar_encoding_unit(next->encoding);
    const uint64_t before = next->offset;
    lahar_status status = LAHAR_OK;
    if (has_lf || feed->is_last) {
        const uint64_t left = has_lf ? end : feed->size;
        const uint64_t full_size = next->offset - next->long_start + left - (has_lf ? unit : 0);
        status = take_long_line(worker, source, poll, next->long_start, full_size, left, has_lf,
                                stopped_out, error);
        if (status == LAHAR_OK && !*stopped_out) {
            next->flags &= ~(uint32_t)LAHAR_CURSOR_LONG_LINE;
            next->long_start = 0;
        }
    } else {
        next->offset += feed->size / unit * unit;
    }
    advance(feed, before, next->offset);
    return status;
}

/* The next line as single line; false when there is none yet. */
static bool next_line(struct lahar_follow_worker *worker, const struct lahar_file_cursor *next,
                      const struct lahar_line_feed *feed, struct line *line_out)
{
    const size_t end = lahar_encoding_line_size(next->encoding, feed->data, feed->size);
    const size_t size = end != 0 ? end : feed->size;
    if (end == 0 && (!feed->is_last || feed->size == 0)) {
        return false;
    }
    *line_out = (struct line){feed->data, size, size, 0, end != 0};
    if (lahar_encoding_unit(next->encoding) != 1) {
        lahar_buffer_clear(&worker->text);
        lahar_encoding_put_utf8(next->encoding, feed->data, size, &worker->text);
        line_out->text = worker->text.data;
        line_out->text_size = worker->text.size;
    }
    return true;
}

static lahar_status take_single_lines(struct lahar_follow_worker *worker,
                                      const struct lahar_follow_source *source,
                                      struct lahar_file_poll *poll, struct lahar_line_feed *feed,
                                      bool *stopped_out, lahar_error *error)
{
    struct lahar_file_cursor *next = &poll->next;
    const size_t unit = lahar_encoding_unit(next->encoding);
    while (!*stopped_out && feed->size != 0) {
        struct line line;
        const uint64_t before = next->offset;
        if (feed->size < unit && !feed->is_last) {
            return LAHAR_OK;
        }
        if ((next->flags & LAHAR_CURSOR_LONG_LINE) != 0) {
            LAHAR_TRY(pass_long_line(worker, source, poll, feed, stopped_out, error));
            continue;
        }
        if (!next_line(worker, next, feed, &line)) {
            if (feed->size <= source->spec.line_size_max + unit) {
                return LAHAR_OK;
            }
            next->flags |= LAHAR_CURSOR_LONG_LINE;
            next->long_start = next->offset;
            continue;
        }
        if (worker->text.has_failed) {
            return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a line");
        }
        const uint64_t text_size = line.file_size - (line.has_lf ? unit : 0);
        if (text_size > source->spec.line_size_max) {
            LAHAR_TRY(take_long_line(worker, source, poll, next->offset, text_size, line.file_size,
                                     line.has_lf, stopped_out, error));
        } else {
            LAHAR_TRY(take_line(worker, poll, &line, stopped_out, error));
        }
        advance(feed, before, next->offset);
    }
    return LAHAR_OK;
}

/* Gives the parser many lines at once; by_lines: each for itself. */
static lahar_status take_piece(struct lahar_follow_worker *worker, struct lahar_file_poll *poll,
                               struct lahar_line_feed *feed, size_t size, bool by_lines,
                               bool *stopped_out, lahar_error *error)
{
    struct lahar_file_cursor *next = &poll->next;
    const struct lahar_text_position position = {next->offset, next->line, next->text_flags};
    const uint64_t before = next->offset;
    lahar_text_reader_seek(worker->reader, &position);
    worker->sink.base_offset = 0;
    worker->sink.line_of = worker->reader;
    lahar_status status =
        by_lines ? lahar_text_reader_write_lines(worker->reader, feed->data, size, error)
                 : lahar_text_reader_write(worker->reader, feed->data, size, error);
    if (status == LAHAR_OK && !by_lines && feed->is_last && size == feed->size) {
        status = lahar_text_reader_finish(worker->reader, error);
    }
    worker->sink.line_of = NULL;
    if (status == LAHAR_BUSY && (worker->sink.is_full || worker->sink.is_stopped)) {
        *stopped_out = true;
        status = LAHAR_OK;
    }
    const struct lahar_text_position reached = lahar_text_reader_position(worker->reader);
    next->offset = reached.offset;
    next->line = reached.line;
    next->text_flags = reached.flags;
    advance(feed, before, next->offset);
    return status;
}

/* Bytes up to and with the last LF of the first size bytes; 0 when there is none. */
static size_t complete_size(const struct lahar_line_feed *feed, size_t size)
{
    const uint8_t *last = size == 0 ? NULL : memrchr(feed->data, '\n', size);
    return last == NULL ? 0 : (size_t)(last - feed->data) + 1;
}

/* Many lines at a time, while together they are no longer than one may be, so that none of them is
 * too long. */
static lahar_status take_ordinary_lines(struct lahar_follow_worker *worker,
                                        const struct lahar_follow_source *source,
                                        struct lahar_file_poll *poll, struct lahar_line_feed *feed,
                                        bool *stopped_out, lahar_error *error)
{
    const bool by_lines = !has_independent_lines(source);
    size_t before = feed->size + 1;
    while (!*stopped_out && feed->size < before) {
        const uint64_t limit = source->spec.line_size_max;
        const size_t window = feed->size < limit ? feed->size : (size_t)limit;
        const size_t complete =
            feed->is_last && window == feed->size ? window : complete_size(feed, window);
        if (complete == 0) {
            return LAHAR_OK;
        }
        before = feed->size;
        LAHAR_TRY(take_piece(worker, poll, feed, complete, by_lines, stopped_out, error));
    }
    return LAHAR_OK;
}

lahar_status lahar_line_feed_take(struct lahar_follow_worker *worker,
                                  const struct lahar_follow_source *source,
                                  struct lahar_file_poll *poll, struct lahar_line_feed *feed,
                                  lahar_error *error)
{
    struct lahar_text_reader *reader = NULL;
    bool is_stopped = false;
    LAHAR_TRY(lahar_line_feed_reader(worker, source, poll, &reader, error));
    const bool is_plain = lahar_encoding_unit(poll->next.encoding) == 1 &&
                          (poll->next.flags & LAHAR_CURSOR_LONG_LINE) == 0;
    if (is_plain && spans_lines(source)) {
        const size_t complete = feed->is_last ? feed->size : complete_size(feed, feed->size);
        return complete == 0 && feed->size <= source->spec.line_size_max
                   ? LAHAR_OK
                   : take_piece(worker, poll, feed, complete == 0 ? feed->size : complete, false,
                                &is_stopped, error);
    }
    if (is_plain) {
        LAHAR_TRY(take_ordinary_lines(worker, source, poll, feed, &is_stopped, error));
    }
    return is_stopped ? LAHAR_OK
                      : take_single_lines(worker, source, poll, feed, &is_stopped, error);
}
