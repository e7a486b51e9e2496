/* One turn of reading a file: from its cursor on, at most a quantum of bytes and records. */
#ifndef LAHAR_FOLLOW_FILE_POLL_H
#define LAHAR_FOLLOW_FILE_POLL_H

#include "engine/follow/follow_internal.h"

enum lahar_poll_result {
    LAHAR_POLL_DRAINED, /* what is left is at most the beginning of a line */
    LAHAR_POLL_MORE,    /* there is more, or may be */
    LAHAR_POLL_CHANGED, /* the file holds another content: poll->change */
    LAHAR_POLL_MISSING, /* no file, or another one, under its name */
    LAHAR_POLL_BLOCKED, /* it cannot be read, poll->error says why */
    LAHAR_POLL_STUCK    /* in front of a record that stops it */
};

struct lahar_file_poll {
    struct lahar_followed_file *file;
    struct lahar_file_cursor next; /* the cursor after what was taken */
    enum lahar_poll_result result;
    enum lahar_content_change change;
    struct lahar_source_stat stat;
    uint64_t partial_end; /* no line ends between next.offset and here */
    uint64_t cut_from;    /* cut_to > cut_from: bytes that were seen and are gone, the content
                             being the same */
    uint64_t cut_to;
    bool is_final;    /* an incomplete last line is taken too */
    bool has_changed; /* next differs from the file's cursor */
    lahar_error error;
};

/* Records go to the worker's sink, which is set up for the block. A failure that is not the
 * file's own (memory, the visitor) is returned; what was taken before it counts. */
lahar_status lahar_file_poll(struct lahar_follow_worker *worker, struct lahar_follow_source *source,
                             struct lahar_file_poll *poll, lahar_error *error);

/* --- line_feed.c ----------------------------------------------------------------------- */

/* Bytes of the file from the poll's offset on. */
struct lahar_line_feed {
    const uint8_t *data;
    size_t size;
    bool is_last; /* of a file that is final: what is left is taken as the last line */
};

/* Takes records from the front of the feed and moves poll->next behind them. Stops where
 * complete lines end, or where the sink is full or stopped. */
lahar_status lahar_line_feed_take(struct lahar_follow_worker *worker,
                                  const struct lahar_follow_source *source,
                                  struct lahar_file_poll *poll, struct lahar_line_feed *feed,
                                  lahar_error *error);

/* Reads decoded bytes of the poll's file at any offset. */
lahar_status lahar_file_poll_read(struct lahar_file_poll *poll, uint64_t offset, void *data,
                                  size_t size, size_t *read_out, lahar_error *error);

/* The parser for the poll's file, at its position. */
lahar_status lahar_line_feed_reader(struct lahar_follow_worker *worker,
                                    const struct lahar_follow_source *source,
                                    struct lahar_file_poll *poll,
                                    struct lahar_text_reader **reader_out, lahar_error *error);

#endif
