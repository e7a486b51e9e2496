/* What a run of a crash scenario did to a store, and what a recovered store may
 * therefore hold: the oracle of the crash tests.
 *
 * Every event carries its own identity (the number of its batch, its place in
 * it, the batch's size) in its message, so a recovered store is judged from its events alone. */
#ifndef LAHAR_TESTS_HISTORY_H
#define LAHAR_TESTS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lahar/lahar.h"

enum {
    HISTORY_BATCHES_MAX = 512,
    HISTORY_SESSIONS_MAX = 16,
    HISTORY_REASON_SIZE = 512,
    HISTORY_STREAMS = 2
};

struct history_batch {
    uint64_t first_id; /* 0: the append failed before it had ids */
    uint32_t event_count;
    uint32_t message_size; /* bytes of padding in each event */
    uint32_t session;      /* opening in which it was appended, from 0 */
    bool is_durable;       /* the store said so */
    bool has_offset;       /* it moved the offset of source "s", key "k" to its number */
    bool is_gone;          /* a recovery did not find it: it must never come back */
    uint64_t appended_ns;  /* monotonic, just before */
    uint64_t rolled_ns;    /* monotonic, once it is known to be in event files; 0: not known */
};

struct history {
    struct history_batch batches[HISTORY_BATCHES_MAX];
    uint32_t batch_count;
    uint32_t session;    /* the current one */
    uint64_t id_ceiling; /* one above the largest id ever handed out */
    /* Of each stream: retention may have dropped events below the first id, and has dropped
     * those below the second, which must never come back. */
    uint64_t may_go_below[HISTORY_STREAMS];
    uint64_t must_go_below[HISTORY_STREAMS];
    bool is_damaged;  /* a journal was: the store may say of batches that they are lost */
    bool is_repaired; /* the newest offsets of sources may have gone with the manifest */
    char reason[HISTORY_REASON_SIZE]; /* of the first violation */
};

/* Builds batch number into batch: events alternate between the streams and are a
 * pure function of (number, place). */
lahar_status history_build(const struct history *history, uint32_t number,
                           const uint32_t streams[HISTORY_STREAMS], lahar_batch *batch,
                           lahar_error *error);

/* Notes that every batch whose last id is below durable_id is durable. */
void history_note_durable(struct history *history, uint64_t durable_id);

/* Notes that everything appended so far is in event files. */
void history_note_rolled(struct history *history, uint64_t now_ns);

/* An age limit of the whole store begins to be enforced: notes what may be dropped, and returns
 * the id below which everything must have been dropped when that is done. */
uint64_t history_note_age_limit(struct history *history, uint64_t max_age_ns, uint64_t now_ns);

/* Reads the whole store and compares. True when it is a state that may follow
 * from the history: all that was durable, an exact prefix of each session,
 * no batch in part except for what retention may have taken of it, nothing that it has taken, no
 * event that was never appended, ids as handed out, and the offset of the last batch that is there.
 * *found_out: events found. */
bool history_check(struct history *history, lahar_store *store, uint64_t *found_out);

/* A journal has been damaged, and the store says that the events of these ids are lost with it:
 * their batches are gone, whole. False when no batch is among them. */
bool history_note_lost(struct history *history, uint64_t first_id, uint64_t last_id);

/* After a check: forgets the batches that did not survive and starts a new session. */
void history_settle(struct history *history, lahar_store *store);

#endif
