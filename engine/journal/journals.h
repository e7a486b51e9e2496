/* The journal set: what its parts share. Private to engine/journal.
 *
 * Threads: producers (ring.h), W writers with a queue each, one that prepares files,
 * one that runs callbacks. A journal is stepped by its writer or, for one write, by a
 * producer that waits for stable storage (journal_owner.c). Lock order: none is taken while another
 * is held, except that the catalog's mutex may be held when the pool's is taken. */
#ifndef LAHAR_JOURNAL_JOURNALS_H
#define LAHAR_JOURNAL_JOURNALS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/journal/catalog.h"
#include "engine/journal/chunk.h"
#include "engine/journal/durable_wait.h"
#include "engine/journal/gate.h"
#include "engine/journal/journal.h"
#include "engine/journal/ring.h"
#include "engine/journal/segment_file.h"

enum {
    LAHAR_JOURNAL_WRITES = 2,              /* in flight a journal, never on the same page */
    LAHAR_JOURNAL_BOUNCE_SIZE = 64 * 1024, /* bytes; smaller writes are copied */
};

enum lahar_journals_state {
    LAHAR_JOURNALS_RUN = 0,
    LAHAR_JOURNALS_CLOSING = 1, /* appends are refused, what is published is written */
    LAHAR_JOURNALS_POISONED = 2,
    LAHAR_JOURNALS_STOPPED = 3
};

struct lahar_journal;

enum lahar_write_role {
    LAHAR_WRITE_CHAIN = 1,
    LAHAR_WRITE_SYNC = 2,
    LAHAR_WRITE_JUMBO = 3
};

/* An operation of a journal, in flight or waiting for another try. */
struct lahar_write {
    struct lahar_io_op op;
    struct lahar_journal *journal;
    enum lahar_write_role role;
    struct lahar_chunk *chunk;
    uint32_t page_start; /* first byte in the image, a multiple of the page */
    uint32_t page_end;
    uint32_t end;      /* of the image's bytes that it brings to the file */
    bool is_in_use;    /* in flight or held */
    bool is_in_flight; /* the queue has it */
    bool is_done;      /* completed, but an earlier one has not */
    bool is_driven;    /* carried out by a waiting producer, not by the queue */
    uint32_t attempts; /* without progress */
    uint8_t *bounce;   /* LAHAR_JOURNAL_BOUNCE_SIZE bytes, aligned; CHAIN only */
    void *bounce_allocation;
};

/* Who may step a journal, and who asked the owner for something. */
enum lahar_journal_owner {
    LAHAR_OWNER_WRITER = 1,   /* from its first operation in flight to its last one */
    LAHAR_OWNER_PRODUCER = 2, /* for one write */
    LAHAR_OWNER_CALLED = 4,   /* producer, look again before letting go: something was published */
    LAHAR_OWNER_WANTED = 8    /* the writer could not have it: wake it when letting go */
};

/* One journal as its writer sees it. */
struct lahar_journal {
    struct lahar_journals *journals;
    struct lahar_writer *writer;
    struct lahar_ring *ring;
    uint32_t number;

    _Atomic uint32_t owner; /* enum lahar_journal_owner, or-ed; 0: nobody */

    /* --- its owner --- */
    struct lahar_chunk *oldest;      /* the chain: not sealed yet */
    struct lahar_chunk *newest;      /* prepared last */
    struct lahar_chunk *scanning;    /* holds the next unpublished byte */
    struct lahar_segment_file *file; /* regions to hand out; NULL: a file is needed */
    struct lahar_write writes[LAHAR_JOURNAL_WRITES];
    uint32_t first_write; /* oldest in use */
    uint32_t write_count;
    struct lahar_write sync;
    struct lahar_write jumbo;
    uint64_t pending_since_ns; /* when bytes were first seen to wait; 0: none wait */
    uint64_t retry_ns;         /* held operations are tried again at this time */
    bool is_out_of_space;
    bool wants_file; /* counted in journals.files_wanted */

    pthread_mutex_t mutex;      /* jumbos */
    struct lahar_chunk *jumbos; /* in the order they came; the first one is being written */
};

/* Commits that go into one write together; see commit_wait.c. */
struct lahar_commit_group {
    /* Number of the group in the high half; in the low half how many threads have begun to wait
     * since it began, which the last one before it ended. */
    _Atomic uint64_t word;
    _Atomic uint32_t target;   /* the arrival that makes the group complete leads */
    _Atomic uint64_t write_ns; /* how long a led write takes, smoothed */
};

struct lahar_writer {
    struct lahar_journals *journals;
    uint32_t number;
    struct lahar_io_queue *queue;
    pthread_t thread;
    bool has_thread;
    uint32_t in_flight;
};

struct lahar_journals {
    struct lahar_io *io;
    const lahar_allocator *allocator;
    char *directory;
    lahar_log_callback log;
    void *log_context;
    lahar_durability durability;
    uint64_t interval_ns;
    bool has_threads;
    uint32_t journal_count; /* most that may be active */
    uint32_t writer_count;
    uint64_t batch_limit_bytes;
#ifdef LAHAR_PLANTED_BUGS
    unsigned planted_bugs;
#endif

    struct lahar_ring_set ring_set;
    struct lahar_ring rings[LAHAR_JOURNAL_COUNT];
    struct lahar_chunk_pool chunks;
    struct lahar_segment_pool files;
    struct lahar_catalog catalog;
    struct lahar_durable_wait durable_wait;
    struct lahar_commit_group group;
    struct lahar_journal journals[LAHAR_JOURNAL_COUNT];
    struct lahar_writer writers[LAHAR_JOURNAL_COUNT];

    _Atomic uint32_t state; /* enum lahar_journals_state */
    _Atomic bool must_exit; /* for the threads */
    _Atomic uint32_t active;
    _Atomic uint64_t wanted_id;     /* somebody waits for all below to be durable */
    _Atomic bool is_interval_used;  /* an append asked for INTERVAL */
    _Atomic bool lacks_dsync;       /* durable writes are refused, or slower (calibrate.c) */
    char sync_reason[96];           /* set at opening */
    _Atomic uint32_t journals_full; /* journals whose writes found no space */
    _Atomic bool is_file_short;     /* a file could not be made, for want of space or descriptors */
    _Atomic bool is_held;           /* no id may be handed out, for want of disk space */
    _Atomic uint32_t durable_waiters; /* threads that wait for stable storage */
    _Atomic uint32_t commits_recent;  /* not 0: some thread has waited in the last seconds */
    _Atomic uint32_t memory_waiters;  /* appends that wait for a chunk */
    _Atomic uint64_t asked_id;        /* an append wants all ids below */
    _Atomic uint32_t files_wanted;
    _Atomic uint64_t active_changed_ns;
    struct lahar_gate space;     /* a chunk was prepared, ids were walked, the state changed */
    struct lahar_gate file_gate; /* files are wanted; for the thread that prepares them */
    pthread_mutex_t alone;       /* one batch above half the link window at a time */
    pthread_t file_thread;
    bool has_file_thread;
    pthread_t notify_thread;
    bool has_notify_thread;
    pthread_mutex_t mutex; /* error, start_status */
    lahar_error error;     /* what poisoned */
    struct lahar_gate started;
    _Atomic uint32_t started_count;
    lahar_error start_error;

    /* statistics */
    _Atomic uint64_t writes;
    _Atomic uint64_t write_bytes;
    _Atomic uint64_t recent_bytes; /* since the number of active journals was looked at */
    _Atomic uint64_t syncs;
    _Atomic uint64_t sleeps; /* waits of writers */
    uint64_t first_id;
};

/* What became of a producer's attempt to write for itself and all who wait. */
enum lahar_lead {
    LAHAR_LEAD_WROTE = 1,
    LAHAR_LEAD_NOTHING = 2, /* nothing new is published below the first hole */
    LAHAR_LEAD_HELD = 3,    /* another producer has the journal */
    LAHAR_LEAD_REFUSED = 4  /* the writer has it, or has to: lahar_journal_call_owner is needed */
};
/* --- journal_writer.c: one journal ------------------------------------------------------ */

lahar_status lahar_journal_init(struct lahar_journals *journals, uint32_t number,
                                lahar_error *error);
void lahar_journal_deinit(struct lahar_journal *journal);
/* Whatever can be done now without waiting. */
bool lahar_journal_step(struct lahar_journal *journal, uint64_t now_ns);
/* Finds what is published; the owner. */
bool lahar_journal_scan(struct lahar_journal *journal);
/* Writes what is published, durably and in the calling thread, if that is one small write and
 * nothing else has to be done first: WROTE, NOTHING or REFUSED. */
enum lahar_lead lahar_journal_drive(struct lahar_journal *journal);
/* Whether there is something that the writer has to do. */
bool lahar_journal_needs_writer(const struct lahar_journal *journal);
/* What its writer has to be woken for while it sleeps. */
enum lahar_attention lahar_journal_attention(const struct lahar_journal *journal);
/* When there will be something to do even if nothing happens. UINT64_MAX: never. */
uint64_t lahar_journal_next_ns(const struct lahar_journal *journal);

/* --- journal_owner.c: who steps it --------------------------------------------------------- */

/* For the writer. False: a producer has it, and will wake the writer. */
bool lahar_journal_own(struct lahar_journal *journal);
/* Lets go if nothing is in flight. */
void lahar_journal_disown(struct lahar_journal *journal);
/* For a producer that waits for stable storage: one write in its own thread. */
enum lahar_lead lahar_journal_lead(struct lahar_journal *journal);
bool lahar_journal_is_held(const struct lahar_journal *journal);
/* Sees to it that what was published in the journal is looked at. */
void lahar_journal_call_owner(struct lahar_journal *journal);

/* --- commit_wait.c: waiting for stable storage ---------------------------------------------- */

/* By the thread that leads, before it looks at what is published. */
void lahar_commit_group_end(struct lahar_journals *journals);
/* Before waiters are woken: they are expected back. */
void lahar_commit_group_expect(struct lahar_journals *journals);
/* Whether threads wait for one another; the first of them sees to it that one of them leads. */
bool lahar_commit_group_is_forming(const struct lahar_journals *journals);
/* The journal that alone has something to write; NULL: there are several or none. */
struct lahar_journal *lahar_journals_find_sole(struct lahar_journals *journals);

/* --- journal_completion.c: what came back ------------------------------------------------ */

/* Hands an operation to the queue; on refusal it is held for another try. */
void lahar_journal_submit(struct lahar_write *write);
void lahar_journal_complete(struct lahar_write *write, uint64_t now_ns);
/* Publishes how far the chain is durable and seals the chunks that are finished; returns
 * whether there were any. */
bool lahar_journal_advance(struct lahar_journal *journal);

/* --- calibrate.c -------------------------------------------------------------------------- */

/* Chooses between durable writes and fdatasync, before the threads start. */
void lahar_journals_calibrate(struct lahar_journals *journals);

/* --- writer.c: threads -------------------------------------------------------------------- */

/* Reaps what has completed, waiting at most wait_ns for the first. */
bool lahar_writer_reap(struct lahar_writer *writer, uint64_t wait_ns);
lahar_status lahar_writers_start(struct lahar_journals *journals, lahar_error *error);
void lahar_writers_join(struct lahar_journals *journals);
/* With start_threads false: one step of everything. Returns whether anything was done or
 * is in flight. */
bool lahar_journals_run(struct lahar_journals *journals);

/* --- shared ------------------------------------------------------------------------------ */

/* The point in time that a wait from now ends at. */
uint64_t lahar_journals_end_of(const struct lahar_journals *journals, uint64_t wait_ns);
bool lahar_journals_is_urgent(const struct lahar_journals *journals);
/* How many journals may be used now: few while commits are, since all that a load wrote before a
 * commit must be durable before it is. */
uint32_t lahar_journals_usable(const struct lahar_journals *journals);
/* How many journals the threads that wait for stable storage can make use of. */
uint32_t lahar_journals_for_waiters(const struct lahar_journals *journals);
/* Whether a write of what is claimed has found no space. */
bool lahar_journals_is_write_full(const struct lahar_journals *journals);
/* The same, or there is no space for what a later append needs. */
bool lahar_journals_is_full(const struct lahar_journals *journals);
/* Somebody waits for all below id: whatever is written now is written durably. */
void lahar_journals_raise_wanted(struct lahar_journals *journals, uint64_t id);
/* The same, and makes the writers hurry. */
void lahar_journals_want(struct lahar_journals *journals, uint64_t id);
/* Whether something of the journal is claimed and not durable yet. */
bool lahar_journal_is_behind(const struct lahar_journal *journal);
/* Tells every writer that memory may have come free. */
void lahar_journals_call_all(struct lahar_journals *journals, enum lahar_attention least);
void lahar_journals_log(struct lahar_journals *journals, lahar_log_level level, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));
/* One file made ready, or a failure noted; the thread's or a step's work. */
bool lahar_journals_prepare_file(struct lahar_journals *journals);

#endif
