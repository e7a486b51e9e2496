/* The open store: what it owns and which lock guards what.
 *
 * Lock order: layout_lock, manifest_lock, set_lock; none is held while calling back into
 * the host. Rollover has a lock of its own (engine/rollover/rollover.h), which is
 * innermost. */
#ifndef LAHAR_STORE_STORE_STATE_H
#define LAHAR_STORE_STORE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "engine/journal/journal.h"
#include "engine/query/query_registry.h"
#include "engine/rollover/join_choose.h"
#include "engine/store/age_clock.h"
#include "engine/store/identity.h"
#include "engine/store/manifest.h"
#include "engine/store/segment_set.h"
#include "engine/store/store_internal.h"
#include "engine/store/volumes.h"
#include "index/shard_cache.h"

struct lahar_rollover;
struct lahar_resident_index;

#define LAHAR_ID_RESERVE_DEFAULT (UINT64_C(1) << 20)

/* What retention remembers; the limits are in the manifest. */
struct lahar_retention_state {
    struct lahar_age_clock clock; /* guarded by manifest_lock */
    uint64_t noted_ns;            /* monotonic, when the clock was last put into the manifest */
    uint64_t retry_at_ns;         /* monotonic; the step's own, after a failure */
    atomic_bool has_failed;       /* the last step that had something to drop */
    atomic_uint_least64_t age_limit_ns; /* the least limit of age; UINT64_MAX: none */
};

/* What joining remembers; of the one who takes its steps. */
struct lahar_join_state {
    uint64_t retry_at_ns;                     /* monotonic; after a failure */
    uint64_t put_off_ns;                      /* since when a join waits for questions; 0: none */
    uint64_t refused[LAHAR_JOIN_REFUSED_MAX]; /* numbers of files that cannot be joined, a ring */
    size_t refused_count;                     /* since opening */
};

/* The background threads. */
enum lahar_store_thread_kind {
    LAHAR_THREAD_ROLLOVER,
    LAHAR_THREAD_CEILING,
    LAHAR_THREAD_RETENTION,
    LAHAR_THREAD_JOIN,
    LAHAR_THREAD_RESIDENT,
    LAHAR_THREAD_COUNT
};

struct lahar_store_thread {
    lahar_store *store;
    enum lahar_store_thread_kind kind;
    pthread_t thread;
    bool is_running;
    struct lahar_alarm alarm; /* on which it sleeps */
};

struct lahar_store {
    /* Fixed at opening. */
    lahar_allocator allocator;
    lahar_options options; /* resolved; allocator points to the copy above */
    struct lahar_store_config config;
    char *directory;
    char *journal_directory;
    char *events_directory;
    struct lahar_io *io;
    bool owns_io;
    pid_t owner; /* a forked child may only free */
    struct lahar_identity identity;
    uint64_t session;
    uint64_t session_first_id;
    uint64_t last_session; /* the one that opening found not ended; 0: none */
    uint64_t last_session_end_id;
    atomic_bool is_session_pending; /* not in the manifest yet, for want of space */
    uint64_t write_memory_bytes;
    uint64_t group_size_bytes; /* as set, at most a quarter of the write memory */
    size_t batch_size_max;     /* bytes */
    uint64_t recovered_events;
    struct lahar_lost_list lost; /* by damage of journals, the manifest's and those just found */
    struct lahar_segment_info *lost_infos; /* the same, as snapshots list them */
    struct lahar_io_file *lock_file;
    struct lahar_schema_catalog *catalog; /* changed under manifest_lock, read by anyone */
    uint64_t block_cache_bytes;           /* at most */
    struct lahar_block_cache *cache;
    struct lahar_shard_cache shard_cache;
    struct lahar_volume *volumes; /* 0: the store's own */
    uint32_t volume_count;
    struct lahar_file_pool *pool;           /* of event files and shards */
    struct lahar_journals *journals;        /* NULL in a store opened for reading */
    struct lahar_journal_recovery recovery; /* what a store opened for reading sees */

    /* Held from reading the set to publishing the next one, by whoever changes which files
     * make up the store. */
    pthread_mutex_t layout_lock;

    pthread_mutex_t manifest_lock;
    struct lahar_manifest *manifest; /* guarded by manifest_lock */

    pthread_mutex_t set_lock;
    struct lahar_segment_set *set; /* guarded by set_lock */

    struct lahar_rollover *rollover;             /* NULL in a store opened for reading */
    struct lahar_resident_index *resident_index; /* the same */
    struct lahar_retention_state retention;
    struct lahar_join_state join;
    /* Monotonic: of the last question, or of opening. Relaxed: what it holds back may come a little
     * sooner or later. */
    atomic_uint_least64_t asked_ns;

    /* The ceiling step's, otherwise read only by opening. */
    uint64_t id_reserve;
    uint64_t ceiling_raised_ns; /* monotonic */
    uint64_t ceiling_retry_ns;  /* monotonic; 0: the last try did not fail */
    atomic_uint_least64_t ceiling;

    /* Followers commit under the shared lock, what changes their sources under the exclusive
     * one, and raises the epoch (engine/follow/source_registry.h). Before every other lock. */
    pthread_rwlock_t source_lock;
    atomic_uint_least64_t source_epoch;

    atomic_uint_least32_t next_producer;
    atomic_uint_least64_t next_file_number;
    atomic_uint_least64_t corrupt_blocks;

    struct lahar_query_registry queries; /* has a lock of its own */

    /* Background threads; is_stopping is guarded by thread_lock. */
    pthread_mutex_t thread_lock;
    bool is_stopping;
    struct lahar_store_thread threads[LAHAR_THREAD_COUNT];
};

/* One line to the host's log callback, if there is one. */
void lahar_store_log(const lahar_store *store, lahar_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Commits records to the manifest under its lock; a failure for good poisons the
 * journals too. */
lahar_status lahar_store_commit_manifest(lahar_store *store, const struct lahar_buffer *records,
                                         lahar_error *error);

/* The same with the manifest lock held. */
lahar_status lahar_store_commit_locked(lahar_store *store, const struct lahar_buffer *records,
                                       lahar_error *error);

/* The current set of event files, referenced. */
struct lahar_segment_set *lahar_store_acquire_set(lahar_store *store);
/* Where event files of that volume are opened. */
struct lahar_stored_place lahar_store_place(lahar_store *store, uint32_t volume);
/* Puts another in its place and takes over the caller's reference to it. */
void lahar_store_publish_set(lahar_store *store, struct lahar_segment_set *set);

/* LAHAR_READ_ONLY for a store without journals. */
lahar_status lahar_store_check_writable(const lahar_store *store, lahar_error *error);

/* --- background work (store_work.c) --------------------------------------------------- */

lahar_status lahar_store_start_threads(lahar_store *store, lahar_error *error);
void lahar_store_stop_threads(lahar_store *store); /* waits for them */
/* Makes the background threads look for work, after something has changed that none of them
 * would learn of. Any thread. */
void lahar_store_wake_threads(lahar_store *store);
bool lahar_store_is_stopping(lahar_store *store);
/* Without threads: runs the steps in order of work number until is_done. False when
 * nothing can be done any more and is_done still says no. */
bool lahar_store_drive(lahar_store *store, bool (*is_done)(void *context), void *context);
/* Begins a session, or leaves that to the ceiling step if there is no space. */
lahar_status lahar_store_prepare_session(lahar_store *store, lahar_error *error);
lahar_status lahar_store_end_session(lahar_store *store, lahar_error *error);
/* One ceiling step, and what makes the next one worth while. */
bool lahar_store_raise_ceiling(lahar_store *store);
void lahar_store_ceiling_rest(lahar_store *store, struct lahar_rest *rest_out);

/* Waits until everything below end_id is durable, with threads or without. */
lahar_status lahar_store_wait_durable(lahar_store *store, uint64_t end_id, uint64_t deadline_ns,
                                      lahar_error *error);

#endif
