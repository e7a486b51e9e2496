/* The producers' side of the journals: no lock, no allocation, no system call but the
 * wake of a sleeping writer.
 *
 * An append goes through five stages. What can be refused is refused in the first two,
 * when nothing has been claimed that others would have to wait for:
 *
 *   1 reserve   counts the batch's ids against the link window and the ceiling
 *   2 claim     one fetch_add on {chunk number, offset} takes space in the image; whoever
 *               crosses the end of a chunk closes it with a pad frame and goes on with the
 *               chunk that the writer has prepared
 *   3 number    one fetch_add on next_id; from here on nothing waits and nothing fails
 *   4 copy      header and content, with the checksum; the size word stays zero
 *   5 publish   the link slot, then the size word
 *
 * A thread that dies between two appends leaves nothing behind. */
#ifndef LAHAR_JOURNAL_RING_H
#define LAHAR_JOURNAL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/journal/chunk.h"
#include "engine/journal/frame.h"
#include "engine/journal/link_buffer.h"
#include "io/io.h"

enum {
    LAHAR_RING_SLOTS = 8,  /* chunks of one journal that producers may still be filling */
    LAHAR_CACHE_LINE = 128 /* two lines: the neighbour is fetched along */
};

/* What the writer wants to be woken for. */
enum lahar_attention {
    LAHAR_ATTENTION_NONE = 0,  /* it is awake */
    LAHAR_ATTENTION_SPACE = 1, /* a chunk is full or needed; what is in flight wakes it anyway */
    LAHAR_ATTENTION_WAIT = 2,  /* ... or somebody waits for stable storage */
    LAHAR_ATTENTION_ANY = 3,   /* ... or any batch */
    LAHAR_ATTENTION_NEVER = 4  /* of a call: whoever publishes will see to the batch itself */
};

/* One journal as producers see it. */
struct lahar_ring {
    /* Number of the open chunk in the high half; in the low half how much of it is claimed,
     * in units of LAHAR_FRAME_ALIGNMENT. Beyond the chunk's size: closed. */
    _Alignas(LAHAR_CACHE_LINE) _Atomic uint64_t claim;
    _Alignas(LAHAR_CACHE_LINE) _Atomic uint32_t prepared; /* chunks up to this number exist */
    _Atomic uint32_t attention;                           /* enum lahar_attention */
    struct lahar_chunk *_Atomic slots[LAHAR_RING_SLOTS];  /* by number */
    /* All of the chain below is on stable storage. By the writer. */
    _Alignas(LAHAR_CACHE_LINE) _Atomic uint64_t durable;
};

/* What all journals share. */
struct lahar_ring_set {
    struct lahar_io *io; /* the clock */
    struct lahar_link_buffer *links;
    uint32_t chunk_size;
    uint64_t half_window;               /* ids; a batch of more goes through the window alone */
    const _Atomic uint64_t *walked_id;  /* link slots below are free */
    const _Atomic uint64_t *durable_id; /* for the frames */
    void (*wake)(void *context, uint32_t journal);
    void *context;
#ifdef LAHAR_PLANTED_BUGS
    unsigned planted_bugs;
#endif
    _Alignas(LAHAR_CACHE_LINE) _Atomic uint64_t reserved_id; /* >= next_id */
    _Alignas(LAHAR_CACHE_LINE) _Atomic uint64_t next_id;
    _Alignas(LAHAR_CACHE_LINE) _Atomic uint64_t ceiling;
    struct lahar_ring *rings; /* LAHAR_JOURNAL_COUNT */
};

/* A claimed place. */
struct lahar_ring_place {
    struct lahar_chunk *chunk;
    uint32_t offset;
    uint32_t journal;
};

static inline uint64_t lahar_ring_word(uint32_t number, uint64_t units)
{
    return (uint64_t)number << 32 | units;
}

static inline uint32_t lahar_ring_number(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

/* Bytes claimed in the open chunk, at most the chunk's size. */
static inline uint64_t lahar_ring_claimed(const struct lahar_ring_set *set, uint64_t word)
{
    const uint64_t bytes = (word & UINT32_MAX) * LAHAR_FRAME_ALIGNMENT;
    return bytes < set->chunk_size ? bytes : set->chunk_size;
}

/* How much of the journal's chain has been claimed, comparable with ring.durable. */
uint64_t lahar_ring_position(const struct lahar_ring_set *set, const struct lahar_ring *ring);

void lahar_ring_set_init(struct lahar_ring_set *set, uint64_t next_id, uint64_t ceiling);

/* Stage 1. False: the window or the ceiling leaves no room now. */
bool lahar_ring_reserve(struct lahar_ring_set *set, uint64_t id_count);
void lahar_ring_release(struct lahar_ring_set *set, uint64_t id_count);
/* For a batch above half the window: takes the reservation in any case and reports
 * where it starts; it may be used when all ids below are walked. */
uint64_t lahar_ring_reserve_alone(struct lahar_ring_set *set, uint64_t id_count);

/* Stage 2. False: no chunk is prepared; the writer has to be woken and waited for. */
bool lahar_ring_claim(struct lahar_ring_set *set, uint32_t journal, uint32_t size,
                      struct lahar_ring_place *place_out);

/* Stages 3 to 5. frame: all but first_id, durable_id and arrival_ns. Returns the first id. least:
 * ANY, or NEVER if the caller goes on to wait for stable storage. */
uint64_t lahar_ring_publish(struct lahar_ring_set *set, const struct lahar_ring_place *place,
                            struct lahar_frame *frame, enum lahar_attention least);
/* Publishes a mark frame at a claimed place. */
void lahar_ring_publish_mark(struct lahar_ring_set *set, const struct lahar_ring_place *place);

/* Wakes the journal's writer if it sleeps and wants to know of this. */
void lahar_ring_call(struct lahar_ring_set *set, uint32_t journal, enum lahar_attention least);

static inline _Atomic uint32_t *lahar_ring_size_word(const struct lahar_chunk *chunk,
                                                     uint32_t offset)
{
    return (_Atomic uint32_t *)(void *)(chunk->image + offset);
}

#endif
