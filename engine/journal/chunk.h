/* Image chunks: the memory that batches are copied into, and its limit.
 *
 * A chunk is the image of one region of a journal file, byte for byte. It is handed
 * out zeroed, filled by producers, put into the file by the journal's writer, read by
 * views, and goes back to the pool when all its batches are rolled and no view holds
 * them. The pool's mutex is taken once a chunk, never by an append. */
#ifndef LAHAR_JOURNAL_CHUNK_H
#define LAHAR_JOURNAL_CHUNK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/base/allocator.h"

enum {
    LAHAR_CHUNK_SIZE_MAX = 1024 * 1024,
    LAHAR_CHUNK_SIZE_MIN = 64 * 1024
};

struct lahar_segment_file;

struct lahar_chunk {
    uint8_t *image;    /* capacity bytes, aligned for direct I/O */
    void *allocation;  /* what image lies in */
    uint32_t capacity; /* bytes, a multiple of LAHAR_IO_ALIGNMENT */
    bool is_jumbo;     /* holds one frame and is outside the chain of its journal */

    /* --- set before the chunk is used --- */
    uint32_t journal; /* number */
    uint32_t seed;    /* of the checksums of its frames */
    uint32_t number;  /* in the chain of its journal, from 1 */
    uint64_t base;    /* bytes of the journal's chain below it */
    struct lahar_segment_file *file;
    uint64_t file_offset;
    struct lahar_chunk *next; /* in the journal's chain, or in the list it is in */

    /* --- the writer of its journal; byte offsets in the image --- */
    uint32_t scanned;           /* below: published without a gap; capacity: the chunk is closed */
    uint32_t used;              /* end of what has to be written; below scanned behind a pad */
    uint32_t submitted;         /* below: handed to the queue; this and the next ones up to used */
    uint32_t written;           /* below: written, in order */
    uint32_t synced;            /* below: on stable storage */
    uint32_t synced_ahead;      /* below: on stable storage once what is in flight has succeeded */
    uint32_t sync_target;       /* what a sync in flight will bring synced to */
    uint32_t durable_from;      /* bytes of durable writes that completed above synced: from here */
    uint32_t durable_to;        /* ... to here */
    uint64_t unsynced_since_ns; /* when the oldest byte between synced and written was written */

    /* --- shared --- */
    _Atomic uint32_t scanned_batches; /* by the writer */
    _Atomic uint64_t durable;         /* jumbo: becomes its size when it is on stable storage */

    /* --- the catalog, under its mutex --- */
    uint32_t walked_batches;
    uint64_t end_id;      /* above every batch walked so far */
    uint64_t limbo_epoch; /* views taken before this forgetting may hold it */
};

struct lahar_chunk_pool {
    const lahar_allocator *allocator;
    uint64_t limit_bytes;
    uint32_t chunk_size;         /* of all but jumbo chunks */
    _Atomic uint64_t used_bytes; /* chunks handed out, and what else was charged */
    pthread_mutex_t mutex;       /* free_chunks */
    struct lahar_chunk *free_chunks;
};

/* Derives the chunk size from the limit. */
void lahar_chunk_pool_init(struct lahar_chunk_pool *pool, const lahar_allocator *allocator,
                           uint64_t limit_bytes);
void lahar_chunk_pool_deinit(struct lahar_chunk_pool *pool);
/* A zeroed chunk of chunk_size, if left_count more could be taken, or a jumbo chunk of capacity
 * bytes (a multiple of LAHAR_IO_ALIGNMENT); NULL when the limit or the allocator refuses. */
struct lahar_chunk *lahar_chunk_take(struct lahar_chunk_pool *pool, uint32_t left_count);
struct lahar_chunk *lahar_chunk_take_jumbo(struct lahar_chunk_pool *pool, uint32_t capacity);
void lahar_chunk_put(struct lahar_chunk_pool *pool, struct lahar_chunk *chunk);
/* Whether there is memory for one more chunk. */
bool lahar_chunk_pool_has_room(const struct lahar_chunk_pool *pool);
/* Counts other memory of the journals against the limit. */
void lahar_chunk_pool_charge(struct lahar_chunk_pool *pool, uint64_t bytes);
void lahar_chunk_pool_discharge(struct lahar_chunk_pool *pool, uint64_t bytes);

#endif
