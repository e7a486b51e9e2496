/* Opening and closing a store, its streams, durability and statistics. */
#ifndef LAHAR_STORE_H
#define LAHAR_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lahar/event.h"
#include "lahar/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lahar_store lahar_store;

/* A deadline is a duration in nanoseconds counted from the call; these two
 * are its ends. */
#define LAHAR_NO_WAIT      UINT64_C(0)
#define LAHAR_WAIT_FOREVER UINT64_MAX

/* When an appended event is safe against power loss. */
typedef enum lahar_durability {
    LAHAR_DURABILITY_STORE = 0,    /* in an append: as the store is set */
    LAHAR_DURABILITY_NONE = 1,     /* written at once, synced within a second, never waited for */
    LAHAR_DURABILITY_INTERVAL = 2, /* synced at most every sync_interval_ms */
    LAHAR_DURABILITY_COMMIT = 3 /* append returns once it and all below it is on stable storage */
} lahar_durability;

typedef enum lahar_backend {
    LAHAR_BACKEND_AUTO = 0,  /* io_uring where the kernel grants it, else pwrite */
    LAHAR_BACKEND_URING = 1, /* refuse to open without io_uring */
    LAHAR_BACKEND_PWRITE = 2
} lahar_backend;

typedef enum lahar_log_level {
    LAHAR_LOG_ERROR = 0,
    LAHAR_LOG_WARNING = 1,
    LAHAR_LOG_INFO = 2,
    LAHAR_LOG_DEBUG = 3
} lahar_log_level;

/* Called from any thread of the library, never with a lock of the library
 * held; must not call back into the store. message is one line, valid during
 * the call. */
typedef void (*lahar_log_callback)(void *context, lahar_log_level level, const char *message);

/* Replaces malloc for the library's own memory. All three are required;
 * called from any thread. Memory is aligned as by malloc. */
typedef struct lahar_allocator {
    void *(*allocate)(void *context, size_t size);
    void *(*resize)(void *context, void *memory, size_t size); /* memory may be NULL */
    void (*release)(void *context, void *memory);              /* memory may be NULL */
    void *context;
} lahar_allocator;

/* A volume: a further directory for event files, on a disk of its own perhaps. */
typedef struct lahar_volume_spec {
    const char *name; /* by which it is known whatever its path: 1 .. LAHAR_NAME_SIZE_MAX bytes */
    const char *path; /* made if it is not there; its parent must be */
} lahar_volume_spec;

/* Fill with lahar_options_init, then change single fields. 0 means the
 * default in every size, count and time. */
typedef struct lahar_options {
    size_t struct_size; /* sizeof(lahar_options) as the caller was compiled */
    bool read_only;     /* never writes; sees the files as they stand at opening */
    bool must_exist;    /* do not create a store in an absent or empty directory */
    lahar_backend backend;
    lahar_durability durability; /* default INTERVAL */
    uint32_t sync_interval_ms;   /* default 100; 1 .. 60,000 */
    uint64_t memory_limit_bytes; /* default 1 GiB, at most 3/4 of the cgroup's limit; >= 32 MiB */
    uint64_t group_size_bytes;   /* roll over at this many bytes of events; default 64 MiB */
    uint64_t group_event_count;  /* ... or events; default 2,000,000 */
    uint32_t group_age_ms;       /* ... or age once it holds 16 MiB; default 30,000 */
    uint32_t group_age_max_ms;   /* ... or this age with anything in it; default 3,600,000 */
    uint32_t compression_level;  /* 1 .. 12 of libdeflate; default: 1 while behind, else 6 */
    bool no_compression;         /* store blocks as they are */
    uint32_t journal_count;      /* most journals in use, 1 .. 16; default 16 */
    lahar_log_callback log;      /* NULL: silent */
    void *log_context;
    const lahar_allocator *allocator; /* NULL: malloc; copied at opening */
    bool repair;              /* where the manifest is lost or damaged, makes do with what is there
                                 (docs/recovery.md) and reports it through log, instead of LAHAR_CORRUPT */
    uint32_t query_count_max; /* queries open at a time; default 1,000 */
    uint32_t open_file_max; /* event files and shards that hold a descriptor at a time; default 64.
                               With read_only every one does */
    /* Added to those that the store has, or the new paths of some of them; names and
     * paths are remembered. New event files go where most space is free. */
    const lahar_volume_spec *volumes;
    size_t volume_count;
    uint64_t free_space_min; /* bytes that are to stay free: when no directory has more, the oldest
                                event files go early if there is a limit of retention, and rollover
                                waits, so that appends do; 0: all may be used */
} lahar_options;

LAHAR_API void lahar_options_init(lahar_options *options);

/* Opens the store in directory, creating it (not its parents) unless
 * must_exist or read_only. Recovers what a crash left; returns when appends
 * are accepted and everything found is visible. options may be NULL for the
 * defaults. Waits up to deadline_ns for the lock of an owner that is still
 * going away. Threads: any; two stores in one process are independent. Starts
 * the library's threads. After fork the child may only call lahar_store_close.
 * LAHAR_LOCKED: another writer; LAHAR_NOT_A_STORE; LAHAR_UNSUPPORTED: newer
 * format; LAHAR_CORRUPT: the manifest is damaged in the middle (a damaged journal
 * costs its own events, lahar_stat.lost_ids); LAHAR_BUSY: read_only, and the
 * writer has changed files faster than they could be read;
 * LAHAR_NOT_FOUND: nothing there with must_exist or read_only; LAHAR_IO;
 * LAHAR_NO_SPACE; LAHAR_NO_MEMORY; LAHAR_INVALID. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_store_open(const char *directory,
                                                        const lahar_options *options,
                                                        uint64_t deadline_ns,
                                                        lahar_store **store_out,
                                                        lahar_error *error);

/* Makes everything appended durable, stops the threads and frees the store.
 * The caller must have stopped using the store, its batches and its cursors.
 * NULL is allowed. On LAHAR_TIMEOUT, and on LAHAR_NO_SPACE while a full disk
 * keeps something from becoming durable, the store is still open and the call
 * may be repeated; on any other status it is gone. A store that was poisoned
 * returns LAHAR_POISONED with the first error. Blocks. */
LAHAR_API lahar_status lahar_store_close(lahar_store *store, uint64_t deadline_ns,
                                         lahar_error *error);

/* In place of a stream: all of them. */
#define LAHAR_ANY_STREAM UINT32_MAX

/* --- streams ------------------------------------------------------------ */

typedef struct lahar_field_spec {
    const char *name; /* UTF-8, terminated, 1 .. LAHAR_NAME_SIZE_MAX bytes */
    lahar_type type;
    bool not_indexed; /* stored, found only by scanning */
} lahar_field_spec;

/* Which built-in fields a stream starts with. */
typedef enum lahar_schema {
    LAHAR_SCHEMA_LOG = 1,       /* level, message, attributes, _filename, ... */
    LAHAR_SCHEMA_PROVENANCE = 2 /* NiFi's provenance record */
} lahar_schema;

typedef struct lahar_stream_spec {
    size_t struct_size;
    const char *name; /* letters, digits, '_', '-', '.'; not starting with '.' or '-' */
    lahar_schema schema;
    const lahar_field_spec *fields; /* in addition to the schema's; may be NULL */
    size_t field_count;
} lahar_stream_spec;

/* Creates a stream; durable when it returns. stream_out may be NULL.
 * LAHAR_EXISTS (stream_out is set), LAHAR_INVALID, LAHAR_READ_ONLY,
 * LAHAR_POISONED, LAHAR_IO, LAHAR_NO_SPACE. Threads: any. Blocks on a sync. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_stream_create(lahar_store *store,
                                                           const lahar_stream_spec *spec,
                                                           uint32_t *stream_out,
                                                           lahar_error *error);

/* LAHAR_NOT_FOUND when there is none of that name. Any thread, no blocking. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_stream_find(lahar_store *store, const char *name,
                                                         uint32_t *stream_out, lahar_error *error);

typedef struct lahar_field_info {
    const char *name; /* valid while the store is open */
    uint32_t field;
    lahar_type type;
    bool not_indexed;
    bool is_hidden; /* kept for exact export only */
} lahar_field_info;

typedef struct lahar_stream_info {
    const char *name; /* valid while the store is open */
    uint32_t stream;
    lahar_schema schema;
    size_t field_count;
    uint64_t event_count; /* visible events */
    uint64_t first_id;    /* of the oldest event held; 0 when there is none */
    uint64_t last_id;
} lahar_stream_info;

/* Streams are numbered from 0 in order of creation. LAHAR_NOT_FOUND beyond the
 * last. Any thread; stream_info may wait for a lock held for microseconds. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_stream_info_get(lahar_store *store, uint32_t stream,
                                                             lahar_stream_info *info_out,
                                                             lahar_error *error);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_stream_field(lahar_store *store, uint32_t stream,
                                                          size_t index, lahar_field_info *info_out,
                                                          lahar_error *error);

/* The id of a declared field's name; field names are shared by all streams.
 * LAHAR_NOT_FOUND when no stream declares it. Any thread, no blocking. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_field_id(lahar_store *store, const char *name,
                                                      uint32_t *field_out, lahar_error *error);
/* NULL when field is unknown; valid while the store is open. */
LAHAR_API const char *lahar_field_name(lahar_store *store, uint32_t field);
LAHAR_API const char *lahar_stream_name(lahar_store *store, uint32_t stream);

/* --- durability ---------------------------------------------------------- */

/* Every event with an id below this is on stable storage. Any thread. */
LAHAR_API uint64_t lahar_durable_id(lahar_store *store);

/* Waits until lahar_durable_id(store) > id. LAHAR_TIMEOUT, LAHAR_POISONED,
 * LAHAR_NO_SPACE (the event may still become durable), LAHAR_CLOSED,
 * LAHAR_INVALID: UINT64_MAX is the id of no event. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_durable_wait(lahar_store *store, uint64_t id,
                                                          uint64_t deadline_ns, lahar_error *error);

/* Called once from a thread of the library, when every event up to id is
 * durable (LAHAR_OK) or can no longer become so (LAHAR_POISONED, LAHAR_CLOSED).
 * Must not block; may append without waiting. */
typedef void (*lahar_durable_callback)(void *context, uint64_t id, lahar_status status);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_durable_notify(lahar_store *store, uint64_t id,
                                                            lahar_durable_callback callback,
                                                            void *context, lahar_error *error);

/* Makes all that was appended before the call durable. Blocks. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_sync(lahar_store *store, uint64_t deadline_ns,
                                                  lahar_error *error);

/* Turns the open group into event files and index shards now and waits for
 * it. Blocks; not needed in normal use. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_rollover(lahar_store *store, uint64_t deadline_ns,
                                                      lahar_error *error);

/* --- retention ------------------------------------------------------------ */

/* How much is kept. Beyond a limit the oldest event files are dropped whole, in the
 * background: soon after a rollover brought the bytes above max_bytes, or once
 * the newest event of a file is older than max_age_ns. Age is time that has passed for the
 * store since the event arrived; no time in the data, and no jump of the clock while
 * the store is open, makes an event older or younger. */
typedef struct lahar_retention {
    size_t struct_size;
    uint64_t max_bytes;  /* of event files, their tables and shards; 0: no limit */
    uint64_t max_age_ns; /* 0: no limit */
} lahar_retention;

/* Sets the limits of a stream, or with LAHAR_ANY_STREAM those of all streams together, which
 * hold in addition. Durable when it returns; what is beyond them has been dropped. LAHAR_NOT_FOUND,
 * LAHAR_INVALID, LAHAR_READ_ONLY, LAHAR_POISONED, LAHAR_IO, LAHAR_NO_SPACE.
 * Threads: any. Blocks on a sync. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_retention_set(lahar_store *store, uint32_t stream,
                                                           const lahar_retention *retention,
                                                           lahar_error *error);
/* struct_size is set by the caller. LAHAR_NOT_FOUND, LAHAR_INVALID. Any thread. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_retention_get(lahar_store *store, uint32_t stream,
                                                           lahar_retention *retention_out,
                                                           lahar_error *error);

/* --- volumes -----------------------------------------------------------------------------*/

typedef struct lahar_volume_info {
    size_t struct_size; /* set by the caller */
    const char *name;   /* "" for the store's own; valid while the store is open */
    const char *path;
    bool is_available; /* false: not there, or another store's; its events cannot be read */
    uint64_t capacity_bytes;
    uint64_t free_bytes;
    uint64_t file_bytes; /* of event files, tables and shards */
    uint32_t file_count; /* event files */
} lahar_volume_info;

/* Volume 0 is the store's own directory. LAHAR_NOT_FOUND beyond the last, LAHAR_INVALID. Any
 * thread. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_volume_info_get(lahar_store *store, uint32_t volume,
                                                             lahar_volume_info *info_out,
                                                             lahar_error *error);

/* --- statistics ---------------------------------------------------------- */

typedef struct lahar_stat {
    size_t struct_size; /* set by the caller */
    uint64_t next_id;
    uint64_t durable_id;
    uint64_t rolled_id;       /* every event below it is in an event file */
    uint64_t event_count;     /* visible */
    uint64_t appended_events; /* since opening */
    uint64_t appended_bytes;  /* encoded, since opening */
    uint64_t resident_bytes;  /* events held in memory before rollover */
    uint64_t memory_limit_bytes;
    uint64_t journal_bytes; /* on disk, preallocated space included */
    uint64_t event_file_bytes;
    uint64_t event_raw_bytes; /* encoded size of what the event files hold */
    uint64_t index_bytes;
    uint32_t event_file_count;
    uint32_t stream_count;
    uint32_t journals_active;
    uint64_t journal_writes;
    uint64_t journal_write_bytes;
    uint64_t journal_syncs;
    uint64_t io_submits; /* io_uring_enter and pwrite calls that started writes and syncs */
    uint64_t writer_wakes;
    uint64_t rollovers;
    uint64_t rollover_failures;
    uint64_t cache_hits;
    uint64_t cache_misses;
    uint64_t recovered_events;  /* found in journals at opening */
    uint64_t corrupt_blocks;    /* met since opening */
    char backend[32];           /* "io_uring", "pwrite", ... */
    char backend_reason[128];   /* flags in use, or why a better backend is not */
    char sync_mode[32];         /* "dsync", "fdatasync" */
    lahar_status poisoned;      /* LAHAR_OK, or why writes are refused */
    uint64_t dropped_events;    /* by retention, since the store was created */
    uint64_t dropped_bytes;     /* of their files */
    uint32_t dropped_files;     /* event files */
    uint32_t open_queries;      /* of this handle; lahar_query_list tells which */
    uint64_t refused_queries;   /* since opening: as many were open as may be */
    uint64_t expired_queries;   /* since opening */
    uint64_t writer_sleeps;     /* since opening; at most one of writer_wakes ends each */
    char sync_reason[96];       /* why sync_mode: what opening measured of both */
    uint64_t lost_ids;          /* of events that were durable in a journal and are gone with it */
    uint32_t lost_ranges;       /* in so many ranges */
    uint64_t block_cache_bytes; /* held for reading; parts of memory_limit_bytes, as are the next */
    uint64_t index_cache_bytes; /* pages of index shards */
    uint64_t query_bytes;       /* of all open queries */
} lahar_stat;

/* A consistent enough picture for people; single numbers are exact. Any thread. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_stat_get(lahar_store *store, lahar_stat *stat_out,
                                                      lahar_error *error);

#ifdef __cplusplus
}
#endif
#endif
