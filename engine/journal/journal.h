/* The write path up to stable storage: claim, copy, publish, write, sync.
 *
 * Producers copy staged batches into the memory image of one of 16 journals;
 * writers put the image into the journal's files as it is, so an event is copied
 * once. The same image is what reads see until rollover. Batches are
 * ordered by id across journals by a link buffer; two prefixes of it are known:
 * published (every batch below is complete in memory) and durable (every batch
 * below is on stable storage). Layout: docs/format/journal.md; protocol:
 * docs/architecture.md. */
#ifndef LAHAR_JOURNAL_JOURNAL_H
#define LAHAR_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/journal/alarm.h"
#include "engine/store/snapshot.h"
#include "io/io.h"
#include "lahar/append.h"
#include "lahar/store.h"

enum {
    LAHAR_JOURNAL_COUNT = 16
};

struct lahar_journals; /* the journal set of an open store */

struct lahar_journals_options {
    struct lahar_io *io;
    const char *directory; /* copied; exists */
    const lahar_allocator *allocator;
    lahar_log_callback log;
    void *log_context;
    uint64_t store_id;      /* seeds checksums: another store's journal never passes */
    uint64_t session;       /* seeds checksums; rises with every opening for writing */
    uint64_t next_id;       /* first id of this session */
    uint32_t journal_count; /* 1 .. 16 */
    uint64_t memory_bytes;  /* image memory, all journals together */
    lahar_durability durability;
    uint32_t sync_interval_ms;
    bool start_threads;       /* false: the caller drives lahar_journals_step */
    int64_t arrival_floor_ns; /* arrival times never fall below: that of the newest rolled event */
#ifdef LAHAR_PLANTED_BUGS
    unsigned planted_bugs; /* enum lahar_journal_bug, or-ed */
#endif
};

#ifdef LAHAR_PLANTED_BUGS
/* Mistakes that the crash explorer must find, one at a time. */
enum lahar_journal_bug {
    LAHAR_JOURNAL_BUG_ACK_BEFORE_SYNC = 1,      /* written counts as durable */
    LAHAR_JOURNAL_BUG_CHECKSUM_SKIPS_SIZES = 2, /* the frame's sizes and counts are not summed */
    LAHAR_JOURNAL_BUG_STALE_ACCEPTED = 4,       /* sums are not bound to file, session and place */
    LAHAR_JOURNAL_BUG_OFFSETS_WITHOUT_DATA = 8, /* recovery keeps the offsets of cut batches */
    LAHAR_JOURNAL_BUG_NO_DIRECTORY_SYNC = 16    /* a new file's name may be lost */
};
#endif

/* --- recovery ------------------------------------------------------------------ */

/* Ids [first_id, end_id) that were on stable storage and are gone. */
struct lahar_lost_range {
    uint64_t first_id;
    uint64_t end_id;
};

/* Batches found in the journal files at opening, in id order, inside a session without
 * holes but for the lost ranges; memory and pieces are owned by the recovery. */
struct lahar_journal_recovery {
    struct lahar_resident_batch *batches;
    size_t batch_count;
    uint64_t event_count;
    uint64_t bytes;
    uint64_t end_id; /* one above the last event, recovered or lost; 0 when there is none */
    /* Valid batches behind the first hole of their session that nobody was promised. */
    uint64_t damaged_files; /* without a header, holding something unknown: renamed *.damaged */
    uint64_t dropped_batches;
    const struct lahar_lost_range *lost; /* in id order, each within a session */
    size_t lost_count;
    /* (source, key, value) records of the batches, in id order */
    const struct lahar_journal_offset *offsets;
    size_t offset_count;
    void *memory; /* what the above point into, and the files that were found */
#ifdef LAHAR_PLANTED_BUGS
    unsigned planted_bugs; /* in: set before lahar_journal_recover */
#endif
};

struct lahar_journal_offset {
    uint64_t id; /* of the batch */
    lahar_bytes source;
    lahar_bytes key;
    lahar_bytes value;
};

/* A session as the manifest knows it: ids [first_id, end_id); end_id 0: the last one,
 * which was not closed by a later opening. */
struct lahar_journal_session {
    uint64_t session;
    uint64_t first_id;
    uint64_t end_id;
};

/* Reads every journal file; keeps batches with ids >= rolled_id that belong to a known session,
 * sorts them by id and cuts each session at its first hole (or at its end_id).
 * Unless read_only, syncs the files first, so that what is shown is durable.
 * A hole among ids that a frame found elsewhere knew to be durable, or that a closed session
 * holds, is damage: it is passed over and becomes a lost range. read_only beside a living writer:
 * a file may have been recycled meanwhile; the caller reads the manifest again, and what was found
 * counts only if rolled_id has not changed. LAHAR_CORRUPT: two batches claim the same id. */
lahar_status lahar_journal_recover(struct lahar_io *io, const char *directory, uint64_t store_id,
                                   const struct lahar_journal_session *sessions,
                                   size_t session_count, uint64_t rolled_id, bool read_only,
                                   const lahar_allocator *allocator,
                                   struct lahar_journal_recovery *recovery_out, lahar_error *error);
void lahar_journal_recovery_deinit(struct lahar_journal_recovery *recovery,
                                   const lahar_allocator *allocator);

/* --- life ------------------------------------------------------------------------ */

/* Takes over the recovered batches (recovery is emptied, its memory owned by the
 * journals from here on): they are resident and durable. Existing journal files
 * are kept until lahar_journals_forget passes them, those without a recovered batch are
 * reused at once: the manifest names the new session by now. recovery NULL: a store
 * without journals. With start_threads false every call must come from this thread. */
lahar_status lahar_journals_open(const struct lahar_journals_options *options,
                                 struct lahar_journal_recovery *recovery,
                                 struct lahar_journals **journals_out, lahar_error *error);
/* Refuses further appends with LAHAR_CLOSED, writes and syncs everything published,
 * then stops. After a poisoning: stops and returns LAHAR_POISONED. On LAHAR_TIMEOUT and
 * LAHAR_NO_SPACE nothing has stopped and appends are accepted again. */
lahar_status lahar_journals_stop(struct lahar_journals *journals, uint64_t deadline_ns,
                                 lahar_error *error);
/* Frees everything; without a stop before it, nothing more is written. NULL is allowed. */
void lahar_journals_destroy(struct lahar_journals *journals);

/* One non-blocking step of the writer of journal number journal: drains, submits, reaps.
 * Returns whether it did anything. Only with start_threads false. */
bool lahar_journals_step(struct lahar_journals *journals, uint32_t journal);

/* --- appending --------------------------------------------------------------------- */

/* producer: a number that spreads producers over the active journals, the same for every
 * batch of one lahar_batch. rows: event_count rows; offsets: the encoded offset records
 * (engine/store/offset_record.h). A batch with offsets and no events takes one id.
 * Claims ids, copies, publishes; waits for memory up to deadline_ns and, under COMMIT, for
 * stable storage. No lock and no allocation but for a batch above the size of an image
 * chunk (at most 1 MiB), which gets memory and a file of its own.
 * Ids at or above the ceiling are not handed out; the caller raises it in time.
 * *first_id_out (may be NULL) is 0 unless the batch was appended: LAHAR_TIMEOUT and
 * LAHAR_NO_SPACE with an id mean appended and not yet durable, LAHAR_POISONED with an id that it
 * will not become durable. Also LAHAR_CLOSED, LAHAR_TOO_BIG, LAHAR_NO_MEMORY, LAHAR_INVALID.
 * LAHAR_BUSY: no memory, and LAHAR_NO_WAIT. With start_threads false a wait runs the
 * steps and ends when they cannot help; with LAHAR_NO_WAIT nothing is stepped. */
lahar_status lahar_journals_append(struct lahar_journals *journals, uint32_t producer,
                                   const void *rows, size_t rows_size, uint32_t event_count,
                                   const void *offsets, size_t offsets_size,
                                   lahar_durability durability, uint64_t deadline_ns,
                                   uint64_t *first_id_out, lahar_error *error);
uint64_t lahar_journals_next_id(const struct lahar_journals *journals);
uint64_t lahar_journals_durable_id(const struct lahar_journals *journals);
/* An append wants all ids below this, which the ceiling did not allow; never falls. */
uint64_t lahar_journals_asked_id(const struct lahar_journals *journals);
/* Ids below this may be handed out; appends wait when they reach it. */
void lahar_journals_set_ceiling(struct lahar_journals *journals, uint64_t ceiling);
/* While held, appends that find no id to take say LAHAR_NO_SPACE instead of waiting. */
void lahar_journals_hold(struct lahar_journals *journals, bool is_held);
/* Waits until the durable prefix is above id, syncing what that takes. LAHAR_NO_SPACE as soon
 * as a write finds the disk full, although the id may still become durable; LAHAR_TIMEOUT,
 * LAHAR_POISONED.
 * LAHAR_NO_WAIT asks for the sync and looks. */
lahar_status lahar_journals_wait(struct lahar_journals *journals, uint64_t id, uint64_t deadline_ns,
                                 lahar_error *error);
/* Calls back once, from the notifier's thread or a step, when id is durable or cannot become so. */
lahar_status lahar_journals_notify(struct lahar_journals *journals, uint64_t id,
                                   lahar_durable_callback callback, void *context,
                                   lahar_error *error);
/* The first error that made writing impossible; later calls keep the first. */
void lahar_journals_poison(struct lahar_journals *journals, const lahar_error *error);
lahar_status lahar_journals_health(struct lahar_journals *journals, lahar_error *error);

/* --- reading and forgetting ------------------------------------------------------------ */

/* The resident batches with ids below next_id at the call, pinned. Waits up to
 * wait_ns for batches that are being published: LAHAR_BUSY. */
struct lahar_resident_view {
    const struct lahar_resident_batch *batches;
    size_t batch_count;
    uint64_t end_id;
    void *pin;
};
lahar_status lahar_journals_view(struct lahar_journals *journals, uint64_t wait_ns,
                                 struct lahar_resident_view *view_out, lahar_error *error);
void lahar_journals_unview(struct lahar_journals *journals, struct lahar_resident_view *view);

/* Offset records of batches in [from_id, to_id), in id order: of all whose append has returned.
 * LAHAR_BUSY: others are being published and take too long. */
lahar_status lahar_journals_offsets(
    struct lahar_journals *journals, uint64_t from_id, uint64_t to_id,
    lahar_status (*visit)(void *context, const struct lahar_journal_offset *offset), void *context,
    lahar_error *error);

/* Events below rolled_id are in event files and named by the manifest: frees their
 * memory (once unpinned) and recycles journal files that hold nothing newer. */
void lahar_journals_forget(struct lahar_journals *journals, uint64_t rolled_id);

/* A user's thread waits for stable storage: for a while, little may wait to be written. Waits of
 * the store's own are no reason. */
void lahar_journals_note_commit(struct lahar_journals *journals);
/* Whether that was so in the last seconds. */
bool lahar_journals_expects_commits(const struct lahar_journals *journals);

/* --- background threads ---------------------------------------------------------------- */

/* Around the life of a thread that sleeps on the alarm. */
void lahar_journals_add_alarm(struct lahar_journals *journals, struct lahar_alarm *alarm);
void lahar_journals_remove_alarm(struct lahar_journals *journals, struct lahar_alarm *alarm);
/* Sleeps on a ticket of the alarm's gate that was drawn before the look for work. The alarms are
 * also rung when an append begins to wait for memory or for ids. */
void lahar_journals_sleep(struct lahar_journals *journals, struct lahar_alarm *alarm,
                          uint32_t ticket, const struct lahar_rest *rest);

struct lahar_journals_stat {
    uint64_t next_id;
    uint64_t published_id;
    uint64_t durable_id;
    uint64_t resident_bytes;
    uint64_t resident_events;
    uint64_t oldest_arrival_ns; /* of the oldest resident batch; 0: none */
    uint64_t file_bytes;
    uint64_t appended_events;
    uint64_t appended_bytes;
    uint64_t writes;
    uint64_t write_bytes;
    uint64_t syncs;
    uint64_t submits; /* system calls that started writes and syncs */
    uint64_t wakes;
    uint64_t sleeps;
    uint64_t memory_bytes; /* the limit */
    uint64_t memory_used;  /* image chunks, catalog and link buffer; chunks count whole */
    bool is_memory_short;  /* appends are waiting for lahar_journals_forget */
    uint32_t active;
    char sync_mode[32];
    char sync_reason[96];
};
void lahar_journals_stat_get(struct lahar_journals *journals, struct lahar_journals_stat *stat_out);

#endif
