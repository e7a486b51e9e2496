/* What the parts of following share: sources as they are being followed, their files, and
 * the memory of one worker.
 *
 * One thread, the coordinator, looks at directories, adds and removes files and decides
 * which content a file has. Workers read, parse and commit. follow->lock guards every
 * field of sources and files; a file that is busy belongs to the worker that took
 * it, except for its links in the tables. No lock is held while records are parsed or
 * committed. */
#ifndef LAHAR_FOLLOW_FOLLOW_INTERNAL_H
#define LAHAR_FOLLOW_FOLLOW_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/follow/file_cursor.h"
#include "engine/follow/glob.h"
#include "engine/follow/gzip_stream.h"
#include "engine/follow/record_sink.h"
#include "engine/follow/source_settings.h"
#include "engine/format/columns.h"
#include "engine/format/text_reader.h"
#include "io/base/arena.h"
#include "io/source_file.h"
#include "io/watch.h"
#include "lahar/follow.h"

enum {
    LAHAR_ROUND_FILES_MAX = 64, /* files of one commit */
    LAHAR_GENERATION_BITS =
        40, /* of a generation's number within its source; above: the source's */
    LAHAR_READ_QUANTUM = 1 << 20
};

/* Why a file's content is not the one that was followed. */
enum lahar_content_change {
    LAHAR_CONTENT_SAME = 0,
    LAHAR_CONTENT_TRUNCATED, /* shorter than what was consumed */
    LAHAR_CONTENT_REPLACED   /* other bytes in front of the offset */
};

/* One content (generation) of one file. Everything in it is written with the follower's lock, but
 * while it is busy the worker that has it reads without the lock: then nobody else writes the
 * cursor, the path, the offsets or what is to be staged, and only that worker writes the decoder
 * and is_checked, which nobody else reads. */
struct lahar_followed_file {
    struct lahar_file_cursor cursor; /* as last committed, or as it will be first */
    char *path;                      /* owned; absolute, as last known */
    int descriptor;                  /* -1: not open */
    struct lahar_gzip_stream *gzip;  /* owned; decoder of an open gzip file */
    struct lahar_followed_file *next_by_inode;
    struct lahar_followed_file *next_by_path;
    struct lahar_followed_file *next_ready;
    struct lahar_followed_file *successor; /* waits until this one is drained */
    struct lahar_followed_file *waits_for; /* the other end of that */
    struct lahar_followed_file *retires;   /* older content of the same file: closed in the commit
                                              that first records this one */
    uint64_t size;                         /* bytes, as last seen; of gzip the compressed size */
    uint64_t partial_end;                  /* no line ends between the offset and here */
    uint64_t grown_ns;                     /* monotonic: when it was last seen to change */
    uint64_t vanished_ns;                  /* monotonic: when its name was missed; 0: it is there */
    uint64_t drained_ns; /* monotonic: when it was first read to its end; 0: it is not */
    uint64_t blocked_until_ns;
    uint64_t blocked_ns;       /* length of the next pause */
    uint32_t turns;            /* that it had before others, one after the other */
    uint64_t commit_id;        /* a batch with this id holds its newest offset */
    uint64_t committed_offset; /* that one */
    uint64_t scan;             /* number of the look that found it last */
    uint64_t gap_from;         /* with gap_to > gap_from: to be reported in the next commit */
    uint64_t gap_to;
    uint64_t gap_generation;          /* whose bytes those are */
    const char *gap_reason;           /* static text */
    size_t index;                     /* in the source's list */
    enum lahar_content_change change; /* found by a worker, dealt with by the coordinator */
    bool is_busy;
    bool is_ready;    /* in the queue */
    bool is_recorded; /* its cursor is in the store */
    bool must_commit; /* its cursor has changed without new records */
    bool must_forget; /* its cursor is to be removed from the store */
    bool is_checked;  /* the head was compared since it was opened */
    bool is_drained;  /* nothing but a partial line is left */
    bool is_unlinked;
    bool is_foreign_name; /* its name does not match: rotated */
    bool looks_again;     /* something happened while it was busy */
    bool is_blocked;
    lahar_error error; /* why it is blocked */
};

struct lahar_file_table {
    struct lahar_followed_file **files; /* owned, and what they point to */
    size_t count;
    size_t capacity;
    struct lahar_followed_file **by_inode; /* chains; contents that are not closed */
    struct lahar_followed_file **by_path;
    size_t bucket_count; /* a power of two */
    const lahar_allocator *allocator;
};

/* A directory that is watched. */
struct lahar_watched_directory {
    int watch;  /* number of inotify */
    char *path; /* owned */
};

enum lahar_source_shape {
    LAHAR_SHAPE_FILE,
    LAHAR_SHAPE_DIRECTORY,
    LAHAR_SHAPE_PATTERN
};

enum {
    LAHAR_SOURCE_KEY_SIZE = 32
};

struct lahar_follow_source {
    struct lahar_source_definition definition;
    lahar_source_spec spec; /* resolved */
    struct lahar_arena arena;
    struct lahar_source_root root;
    enum lahar_source_shape shape;
    char path[LAHAR_SOURCE_PATH_SIZE]; /* resolved */
    struct lahar_glob glob;            /* PATTERN */
    struct lahar_sink_target target;
    char key[LAHAR_SOURCE_KEY_SIZE]; /* source name of its offset records, terminated */
    struct lahar_file_table files;
    struct lahar_followed_file *ready_first;
    struct lahar_followed_file *ready_last;
    uint32_t round_count;                        /* running */
    struct lahar_watched_directory *directories; /* owned */
    size_t directory_count;
    size_t directory_capacity;
    uint64_t scan;          /* number of the last look */
    uint64_t next_scan_ns;  /* monotonic */
    uint64_t next_due_ns;   /* monotonic: when a file wants something next */
    uint64_t maintained_ns; /* monotonic */
    uint64_t backoff_ms;
    uint64_t next_generation;     /* lower 40 bits */
    uint64_t reserved_generation; /* those below may be used: the store knows */
    uint64_t held_size;           /* bytes of unlinked files that are open */
    uint64_t blocked_until_ns;    /* the store refused the last commit */
    size_t open_count;
    uint64_t error_log_ns; /* when an error was last logged */
    bool has_scanned;
    bool must_scan;
    bool must_maintain; /* a file wants more than to be read on */
    bool is_polling;    /* not every directory could be watched */
    bool joins_lines;   /* a pattern says where a record begins */
};

struct lahar_file_poll;

/* The memory of one worker. */
struct lahar_follow_worker {
    struct lahar_follow *follow;
    lahar_batch *batch; /* NULL: nothing is appended */
    struct lahar_text_reader *reader;
    struct lahar_columns columns;                    /* those of the reader's stream */
    const struct lahar_follow_source *reader_source; /* for which reader was made */
    uint64_t header_generation;                      /* whose header record reader has */
    struct lahar_record_sink sink;
    struct lahar_file_poll *polls; /* owned; LAHAR_ROUND_FILES_MAX of one block */
    uint64_t end_offset;           /* nothing behind is read; 0: all is */
    struct lahar_buffer data;      /* a piece of a file */
    struct lahar_buffer text;      /* one line, decoded or cut */
    struct lahar_buffer value;     /* an encoded cursor */
    pthread_t thread;
    bool is_running;
};

struct lahar_follow {
    lahar_store *store;
    const lahar_allocator *allocator;
    lahar_follow_options options;
    char **names;   /* owned; options.sources */
    uint64_t epoch; /* of the store's sources when they were loaded */
    uint8_t boot_id[16];
    int64_t booted_ns;
    bool must_reload;
    struct lahar_watch *watch;            /* NULL: no inotify */
    struct lahar_follow_source **sources; /* owned */
    size_t source_count;
    size_t next_source;                   /* the workers take turns */
    struct lahar_follow_worker **workers; /* owned; [0] steps without threads */
    size_t worker_count;
    pthread_mutex_t lock;
    pthread_cond_t ready; /* a file is ready, or the end */
    bool is_stopping;
    bool wants_turn;     /* a worker has found something for the coordinator */
    bool is_dry;         /* nothing is appended: peek */
    lahar_error failure; /* of the store, ends following */
    atomic_uint_least64_t record_count;
    atomic_uint_least64_t byte_count;
    atomic_uint_least64_t error_count;
    atomic_uint_least64_t gap_size;
};

/* --- file_table.c ------------------------------------------------------------------- */

void lahar_file_table_init(struct lahar_file_table *table, const lahar_allocator *allocator);
void lahar_file_table_deinit(struct lahar_file_table *table);
/* A new file with the cursor; NULL when memory is refused. */
struct lahar_followed_file *lahar_file_table_add(struct lahar_file_table *table,
                                                 const struct lahar_file_cursor *cursor,
                                                 const char *path, size_t path_size);
/* Closes and frees it. */
void lahar_file_table_remove(struct lahar_file_table *table, struct lahar_followed_file *file);
/* False when memory is refused. */
bool lahar_file_table_rename(struct lahar_file_table *table, struct lahar_followed_file *file,
                             const char *path);
/* Takes a content that is closed out of the look-ups. */
void lahar_file_table_retire(struct lahar_file_table *table, struct lahar_followed_file *file);
struct lahar_followed_file *lahar_file_table_by_inode(const struct lahar_file_table *table,
                                                      uint64_t device, uint64_t inode);
/* The same inode on whatever device. */
struct lahar_followed_file *lahar_file_table_by_number(const struct lahar_file_table *table,
                                                       uint64_t inode);
struct lahar_followed_file *lahar_file_table_by_path(const struct lahar_file_table *table,
                                                     const char *path);
struct lahar_followed_file *lahar_file_table_by_generation(const struct lahar_file_table *table,
                                                           uint64_t generation);

/* --- follow_source.c ------------------------------------------------------------------ */

/* Opens a source by its definition and loads its cursors. */
lahar_status lahar_follow_source_open(struct lahar_follow *follow, lahar_bytes name,
                                      lahar_bytes value, struct lahar_follow_source **source_out,
                                      lahar_error *error);
void lahar_follow_source_close(struct lahar_follow *follow, struct lahar_follow_source *source);
/* With the lock: puts a file into the queue, unless it waits for another: behind all others, or
 * before them. */
void lahar_follow_enqueue(struct lahar_follow_source *source, struct lahar_followed_file *file);
void lahar_follow_enqueue_first(struct lahar_follow_source *source,
                                struct lahar_followed_file *file);
/* The next number of a generation; 0 when the store refuses to reserve more. */
uint64_t lahar_follow_next_generation(struct lahar_follow *follow,
                                      struct lahar_follow_source *source);
/* Closes the file's descriptor. */
void lahar_followed_file_close(struct lahar_follow_source *source,
                               struct lahar_followed_file *file);

/* --- discover.c, maintain.c
 * ------------------------------------------------------------------------- */

/* Looks at the directories and files of a source. With the lock. */
void lahar_follow_scan(struct lahar_follow *follow, struct lahar_follow_source *source,
                       uint64_t now_ns);
/* What a worker found out about contents; what has to be done at its time. Returns whether
 * anything was done. With the lock. */
bool lahar_follow_maintain(struct lahar_follow *follow, struct lahar_follow_source *source,
                           uint64_t now_ns);

/* --- round.c ---------------------------------------------------------------------------- */

lahar_status lahar_follow_worker_create(struct lahar_follow *follow,
                                        struct lahar_follow_worker **worker_out,
                                        lahar_error *error);
void lahar_follow_worker_destroy(struct lahar_follow_worker *worker);
/* Reads, parses and commits a block of one source; false when no file was ready. Without the
 * lock. */
bool lahar_follow_round(struct lahar_follow_worker *worker, uint64_t now_ns);
/* Whether a file is ready for a round. With the lock. */
bool lahar_follow_has_round(const struct lahar_follow *follow, uint64_t now_ns);

/* --- follow.c ---------------------------------------------------------------------------- */

/* One step of the coordinator and one round, as of now_ns; false when nothing was to be
 * done. For callers that drive following by hand. */
bool lahar_follow_step(struct lahar_follow *follow, uint64_t now_ns);
/* The same as lahar_follow_open, without appending. */
lahar_status lahar_follow_open_dry(lahar_store *store, const lahar_follow_options *options,
                                   lahar_follow **follow_out, lahar_error *error);

#endif
