/* The resident catalog: every batch in memory, in id order, and the two prefixes.
 *
 * A walker follows the link buffer from the published prefix and appends what it finds;
 * behind it the durable prefix follows as the journals report their durable
 * positions. Both prefixes only rise. Any thread may walk; one does at a time,
 * and a thread that finds another one walking leaves it the work.
 *
 * Views pin the array of batches and, by epoch, the chunks: a chunk whose batches are
 * all forgotten waits in limbo until every view taken before that is gone.
 *
 * The mutex guards everything but the atomics. It is not taken by appends. */
#ifndef LAHAR_JOURNAL_CATALOG_H
#define LAHAR_JOURNAL_CATALOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/journal/alarm.h"
#include "engine/journal/chunk.h"
#include "engine/journal/journal.h"
#include "engine/journal/link_buffer.h"
#include "engine/journal/segment_file.h"

/* What the catalog knows of a batch besides what views see. */
struct lahar_catalog_entry {
    const _Atomic uint64_t *durable; /* the batch is durable once this reaches end */
    uint64_t end;
    const uint8_t *offsets;
    uint32_t offsets_size;
};

struct lahar_catalog_array {
    size_t capacity;
    size_t references; /* the catalog's own, and one a view */
    uint64_t bytes;    /* charged to the pool */
    struct lahar_resident_batch *batches;
    struct lahar_catalog_entry *entries;
};

struct lahar_catalog_view; /* a pin */

struct lahar_catalog {
    /* --- set at opening --- */
    const lahar_allocator *allocator;
    struct lahar_chunk_pool *chunks;
    struct lahar_segment_pool *files;
    const _Atomic uint64_t *journal_durable[LAHAR_JOURNAL_COUNT]; /* durable position of each */
    /* Called without the mutex when the durable prefix has risen. */
    void (*durable_rose)(void *context, uint64_t from_id, uint64_t to_id);
    void (*walked)(void *context); /* ... when the published prefix has risen */
    void *context;

    /* --- any thread --- */
    _Atomic uint64_t published_id; /* every batch below is in the array */
    _Atomic uint64_t durable_id;   /* every batch below is on stable storage */
    _Atomic uint32_t is_wanted;    /* somebody asked for a walk since the last one began */
    _Atomic bool is_starved;       /* the array could not grow: walks stop short */
    _Atomic bool is_called;        /* the next walk rings all alarms */

    pthread_mutex_t mutex;
    struct lahar_link_buffer links;
    struct lahar_catalog_array *array;
    size_t first;         /* index of the oldest batch not forgotten */
    size_t count;         /* batches in the array, forgotten ones included */
    size_t durable_count; /* batches below are durable */
    int64_t arrival_ns;   /* of the newest batch */
    uint64_t resident_bytes;
    uint64_t resident_events;
    uint64_t appended_bytes; /* rows and offsets walked since the opening */
    uint64_t epoch;          /* of the latest forgetting */
    struct lahar_catalog_view *views;
    struct lahar_chunk *sealed; /* full, on stable storage, not forgotten */
    struct lahar_chunk *limbo;  /* forgotten, perhaps seen by a view */
    _Atomic uint64_t always;    /* the durable position of recovered batches */
    void *recovered;            /* memory of the recovered batches */
    uint64_t recovered_bytes;
    uint64_t recovered_end_id;
    uint64_t recovered_epoch; /* 0: not forgotten */
    struct lahar_alarm *alarms;
};

/* window: slots of the link buffer, a power of two. LAHAR_NO_MEMORY. */
lahar_status lahar_catalog_init(struct lahar_catalog *catalog, const lahar_allocator *allocator,
                                struct lahar_chunk_pool *chunks, struct lahar_segment_pool *files,
                                uint64_t next_id, uint64_t window, int64_t arrival_floor_ns,
                                lahar_error *error);
void lahar_catalog_deinit(struct lahar_catalog *catalog);
/* Takes over what recovery found; before anything is appended. */
lahar_status lahar_catalog_adopt(struct lahar_catalog *catalog,
                                 struct lahar_journal_recovery *recovery, lahar_error *error);

/* Brings both prefixes up to what is published and durable by now, or leaves that to
 * the thread that is at it. */
void lahar_catalog_walk(struct lahar_catalog *catalog);
/* Hands over a chunk whose bytes are all on stable storage. */
void lahar_catalog_seal(struct lahar_catalog *catalog, struct lahar_chunk *chunk);

lahar_status lahar_catalog_view(struct lahar_catalog *catalog, struct lahar_resident_view *view_out,
                                lahar_error *error);
/* Whether memory came free that was held for the view. */
bool lahar_catalog_unview(struct lahar_catalog *catalog, struct lahar_resident_view *view);
void lahar_catalog_forget(struct lahar_catalog *catalog, uint64_t rolled_id);
/* Those of the view's batches in [from_id, to_id). */
lahar_status lahar_catalog_offsets(
    const struct lahar_resident_view *view, uint64_t from_id, uint64_t to_id,
    lahar_status (*visit)(void *context, const struct lahar_journal_offset *offset), void *context);
void lahar_catalog_stat(struct lahar_catalog *catalog, struct lahar_journals_stat *stat);

/* From here to removing it the alarm is rung when its marks are reached. */
void lahar_catalog_add_alarm(struct lahar_catalog *catalog, struct lahar_alarm *alarm);
void lahar_catalog_remove_alarm(struct lahar_catalog *catalog, struct lahar_alarm *alarm);
/* Sets the marks; false when one of them is reached already. */
bool lahar_catalog_set_alarm(struct lahar_catalog *catalog, struct lahar_alarm *alarm,
                             const struct lahar_rest *marks);
/* Lets the next walk, which the caller is to make, ring all, whatever their marks. */
void lahar_catalog_ring(struct lahar_catalog *catalog);

#endif
