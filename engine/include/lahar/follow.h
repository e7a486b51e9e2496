/* Following files: sources and what consumes them.
 *
 * A source is a file, a directory or a pattern of names, with the stream that its
 * records go to. Every record of every file becomes an event exactly once: how far a
 * file is consumed is committed in the batch that holds its records. docs/filelog.md
 * has the rules, and what stands for each feature of ClickHouse's FileLog. */
#ifndef LAHAR_FOLLOW_H
#define LAHAR_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lahar/event.h"
#include "lahar/ingest.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of a record that cannot be parsed. Values are pinned. */
typedef enum lahar_error_mode {
    LAHAR_ERROR_MODE_DEFAULT = 0, /* following: passed over, counted, logged; peek: fails */
    LAHAR_ERROR_MODE_STREAM = 1,  /* an event with _raw_record and _error */
    LAHAR_ERROR_MODE_DEAD_LETTER_QUEUE = 2, /* the same, in a stream of its own */
    LAHAR_ERROR_MODE_SKIP = 3,              /* passed over and counted */
    LAHAR_ERROR_MODE_STOP = 4               /* the file stops in front of it */
} lahar_error_mode;

/* What becomes of a line above line_size_max. Never is its rest a record of its own. */
typedef enum lahar_long_line {
    LAHAR_LONG_LINE_TRUNCATE = 0, /* its first bytes; its whole size in _truncated */
    LAHAR_LONG_LINE_SKIP = 1,     /* passed over and counted */
    LAHAR_LONG_LINE_ERROR = 2     /* a record that cannot be parsed */
} lahar_long_line;

/* Fill with lahar_source_spec_init, then change single fields, or by name with
 * lahar_source_spec_set. Strings are read during the call. */
typedef struct lahar_source_spec {
    size_t struct_size;
    const char *name;        /* as of a stream */
    const char *path;        /* a file, a directory, or a pattern: * ? [..] ** {a,b} {N..M} */
    const char *root;        /* nothing outside is opened; NULL: "/". Relative paths begin here */
    const char *stream;      /* created when there is none; NULL: the source's name */
    const char *dead_letter; /* stream of DEAD_LETTER_QUEUE; NULL: "<stream>.dead_letter" */
    const char *time_field;  /* as in lahar_ingest_options; may be NULL */
    lahar_format format;

    /* FileLog's, under its names; docs/filelog.md */
    uint64_t poll_timeout_ms;     /* longest collection of one block; 0: 500 */
    uint64_t poll_max_batch_size; /* most records taken of a file at a time; default 65,409 */
    uint64_t max_block_size;      /* most records committed at a time; 0: 1,048,449 */
    uint64_t max_threads;         /* 0: a quarter of the processors, at least 1 */
    uint64_t poll_directory_watch_events_backoff_init;   /* ms; default 500 */
    uint64_t poll_directory_watch_events_backoff_max;    /* ms; default 32,000 */
    uint64_t poll_directory_watch_events_backoff_factor; /* default 2 */
    lahar_error_mode handle_error_mode;

    /* Lahar's own */
    uint64_t line_size_max; /* bytes; default 1 MiB; 16 .. 16 MiB */
    lahar_long_line long_line;
    bool multiline;          /* records may span lines: objects over several, quoted line ends */
    bool start_at_end;       /* of the files found by the first look, only what is added later */
    bool copies_rotated;     /* "f.1" with the content of a followed "f" continues it */
    bool decompress;         /* gzip files are decoded; otherwise such names are passed over */
    bool on_shrink_continue; /* a file cut at its end keeps its history */
    uint64_t rotate_wait_ms; /* a file that lost its name may still grow so long; default 5,000 */
    uint64_t partial_timeout_ms; /* a last line without its end is taken then; 0: never */
    uint64_t remove_after_ms;    /* a file is removed so long after its last record is durable;
                                    0: never */
    uint64_t forget_after_ms;    /* the offset of a file that is gone is kept so long; default
                                    30 days */
    uint64_t held_size_max;      /* bytes of removed files kept open to be read; default 16 GiB */
    uint64_t open_files_max;     /* default 256 */
    lahar_format_settings format_settings; /* by name, also with lahar_source_spec_set */
} lahar_source_spec;

LAHAR_API void lahar_source_spec_init(lahar_source_spec *spec);
/* Sets a number, switch or mode by its field's name from text, as "handle_error_mode",
 * "stream". LAHAR_INVALID: no such setting, or not a value for it; also an explicit 0
 * where FileLog refuses one. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_spec_set(lahar_source_spec *spec,
                                                             const char *setting, const char *value,
                                                             lahar_error *error);

/* Creates the source, its streams where missing, and makes it durable. The path, or the
 * directory that a pattern begins in, must exist. LAHAR_EXISTS: the name is taken, nothing
 * is changed. LAHAR_INVALID, LAHAR_NOT_FOUND, and as lahar_stream_create. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_create(lahar_store *store,
                                                           const lahar_source_spec *spec,
                                                           lahar_error *error);

typedef struct lahar_source_info {
    lahar_source_spec spec; /* resolved; strings are valid during the call */
    uint64_t source;        /* its number, never used again */
    bool is_paused;
} lahar_source_info;

/* A status other than LAHAR_OK ends the walk and is returned. */
typedef lahar_status (*lahar_source_visitor)(void *context, const lahar_source_info *info);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_list(lahar_store *store,
                                                         lahar_source_visitor visit, void *context,
                                                         lahar_error *error);

typedef enum lahar_file_state {
    LAHAR_FILE_READING = 1, /* there is more to read, or may be */
    LAHAR_FILE_IDLE = 2,    /* caught up */
    LAHAR_FILE_ROTATED = 3, /* lost its name, or has one outside the pattern; still read */
    LAHAR_FILE_GONE = 4,    /* removed, or not found */
    LAHAR_FILE_BLOCKED = 5, /* cannot be opened or read; tried again */
    LAHAR_FILE_STUCK = 6,   /* STOP: in front of a record that cannot be parsed */
    LAHAR_FILE_CLOSED = 7   /* followed by another generation of the same file */
} lahar_file_state;

typedef struct lahar_source_file {
    const char *path;
    uint64_t device;
    uint64_t inode;
    uint64_t generation; /* number of this content; (generation, _offset) names a record */
    uint64_t offset;     /* bytes consumed */
    uint64_t durable_offset;
    bool has_size; /* false: the name is another file's by now */
    uint64_t size; /* bytes, now */
    uint64_t lag;  /* size - offset */
    uint64_t record_count;
    uint64_t error_count;
    uint64_t gap_size; /* bytes that may have been lost in front of this content */
    lahar_file_state state;
    const char *last_error; /* "" when there was none */
    int64_t last_error_ns;
} lahar_source_file;

typedef lahar_status (*lahar_source_file_visitor)(void *context, const lahar_source_file *file);
/* The files of a source, of which offsets are kept. Looks at each file. durable_offset
 * is known for all that is durable when the call is made, else 0. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_show(lahar_store *store, const char *name,
                                                         lahar_source_file_visitor visit,
                                                         void *context, lahar_error *error);

LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_pause(lahar_store *store, const char *name,
                                                          bool paused, lahar_error *error);

typedef enum lahar_reset_to {
    LAHAR_RESET_TO_START = 0,
    LAHAR_RESET_TO_END = 1,
    LAHAR_RESET_TO_OFFSET = 2
} lahar_reset_to;

/* Moves the offset of one file, by path or base name, or of all (file NULL). To start: a
 * new generation, so that records read again are told apart. An offset inside a line is moved to
 * the next line's start. LAHAR_INVALID: beyond the end of the file; LAHAR_NOT_FOUND. Durable
 * when it returns. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_reset(lahar_store *store, const char *name,
                                                          const char *file, lahar_reset_to to,
                                                          uint64_t offset, lahar_error *error);

/* Forgets the source and its offsets in one commit. Its events stay. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_drop(lahar_store *store, const char *name,
                                                         lahar_error *error);

/* Hands out the next records as events without appending them, at most limit. With consume
 * they are passed over for good, together, once all were handed out; else nothing
 * changes, and the store may be open for reading only. */
typedef lahar_status (*lahar_event_visitor)(void *context, const lahar_event *event);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_source_peek(lahar_store *store, const char *name,
                                                         uint64_t limit, bool consume,
                                                         lahar_event_visitor visit, void *context,
                                                         lahar_error *error);

typedef struct lahar_source_check {
    size_t struct_size;
    uint64_t file_count;    /* compared */
    uint64_t missing_count; /* files that are not there to be compared */
    uint64_t record_count;
    uint64_t difference_count; /* files whose records differ from the store's */
} lahar_source_check;

/* Reads the files again up to their offsets and compares each record with its event.
 * message is one line. LAHAR_OK also with differences. */
LAHAR_API LAHAR_NODISCARD lahar_status
lahar_source_verify(lahar_store *store, const char *name,
                    void (*on_difference)(void *context, const char *path, const char *message),
                    void *context, lahar_source_check *check_out, lahar_error *error);

/* --- following -------------------------------------------------------------------- */

typedef struct lahar_follow lahar_follow;

typedef struct lahar_follow_options {
    size_t struct_size;
    const char *const *sources; /* names; NULL: every source, also those created later */
    size_t source_count;
    bool once; /* lahar_follow_run returns when everything that is there has been read */
    lahar_durability durability;
} lahar_follow_options;

LAHAR_API void lahar_follow_options_init(lahar_follow_options *options);
/* One follower a source at a time: two that follow the same would only undo each other's
 * work. LAHAR_NOT_FOUND: no such source. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_follow_open(lahar_store *store,
                                                         const lahar_follow_options *options,
                                                         lahar_follow **follow_out,
                                                         lahar_error *error);
/* Follows until lahar_follow_stop, with threads of its own beside the caller's. Files that
 * fail are tried again; the status is about the store, and a poisoned store ends it. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_follow_run(lahar_follow *follow, lahar_error *error);
LAHAR_API void lahar_follow_stop(lahar_follow *follow); /* any thread */

typedef struct lahar_follow_stat {
    size_t struct_size;
    uint64_t record_count; /* committed since opening */
    uint64_t byte_count;
    uint64_t error_count;
    uint64_t file_count; /* known */
    uint64_t lag_size;   /* bytes not consumed, as far as seen */
    uint64_t gap_size;
    bool is_polling; /* no inotify: directories are looked at in turns */
} lahar_follow_stat;
LAHAR_API void lahar_follow_stat_get(lahar_follow *follow, lahar_follow_stat *stat_out);
LAHAR_API void lahar_follow_close(lahar_follow *follow); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
