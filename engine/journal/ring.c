/* Claiming, copying and publishing.
 *
 * Which atomic pairs with which:
 *   claim       the installer of a chunk (compare-and-swap) with every later claimant
 *               (fetch_add): the chunk and its slot are seen
 *   prepared    stored by the writer behind the slot; read by the installer
 *   size word   exchanged last by the producer; the writer reads it before the frame
 *   attention   stored by the writer before it looks at the size words a last time; read by
 *               the producer behind its size word. All four are sequentially consistent:
 *               either the writer sees the frame or the producer sees that it must wake it
 *   link slot   see link_buffer.h; stored before the size word, so that a writer that has
 *               drained a frame also walks over it
 *   reserved_id, next_id   counters: every id claimed was reserved before */
#include "engine/journal/ring.h"

#include "engine/journal/journal.h"
#include "io/base/error.h"

void lahar_ring_set_init(struct lahar_ring_set *set, uint64_t next_id, uint64_t ceiling)
{
    atomic_init(&set->reserved_id, next_id);
    atomic_init(&set->next_id, next_id);
    atomic_init(&set->ceiling, ceiling);
    for (uint32_t j = 0; j < LAHAR_JOURNAL_COUNT; j++) {
        struct lahar_ring *ring = &set->rings[j];
        /* Chunk 0 does not exist and is closed: the first claimant installs chunk 1. */
        atomic_init(&ring->claim, lahar_ring_word(0, set->chunk_size / LAHAR_FRAME_ALIGNMENT + 1));
        atomic_init(&ring->prepared, 0);
        atomic_init(&ring->attention, LAHAR_ATTENTION_NONE);
        atomic_init(&ring->durable, 0);
        for (uint32_t i = 0; i < LAHAR_RING_SLOTS; i++) {
            atomic_init(&ring->slots[i], NULL);
        }
    }
}

uint64_t lahar_ring_position(const struct lahar_ring_set *set, const struct lahar_ring *ring)
{
    const uint64_t word = atomic_load_explicit(&ring->claim, memory_order_acquire);
    const uint32_t number = lahar_ring_number(word);
    return number == 0 ? 0
                       : (uint64_t)(number - 1) * set->chunk_size + lahar_ring_claimed(set, word);
}

bool lahar_ring_reserve(struct lahar_ring_set *set, uint64_t id_count)
{
    const uint64_t start =
        atomic_fetch_add_explicit(&set->reserved_id, id_count, memory_order_seq_cst);
    /* Pairs with the walker: the slots up to the window above this have been read. */
    const uint64_t walked = atomic_load_explicit(set->walked_id, memory_order_acquire);
    if (start + id_count <= walked + 2 * set->half_window &&
        start + id_count <= atomic_load_explicit(&set->ceiling, memory_order_acquire)) {
        return true;
    }
    lahar_ring_release(set, id_count);
    return false;
}

void lahar_ring_release(struct lahar_ring_set *set, uint64_t id_count)
{
    (void)atomic_fetch_sub_explicit(&set->reserved_id, id_count, memory_order_seq_cst);
}

uint64_t lahar_ring_reserve_alone(struct lahar_ring_set *set, uint64_t id_count)
{
    return atomic_fetch_add_explicit(&set->reserved_id, id_count, memory_order_seq_cst);
}

void lahar_ring_call(struct lahar_ring_set *set, uint32_t journal, enum lahar_attention least)
{
    struct lahar_ring *ring = &set->rings[journal];
    if (atomic_load_explicit(&ring->attention, memory_order_seq_cst) >= (uint32_t)least &&
        atomic_exchange_explicit(&ring->attention, LAHAR_ATTENTION_NONE, memory_order_seq_cst) !=
            LAHAR_ATTENTION_NONE) {
        set->wake(set->context, journal);
    }
}

static void encode(const struct lahar_ring_set *set, const struct lahar_ring_place *place,
                   const struct lahar_frame *frame)
{
    struct lahar_chunk *chunk = place->chunk;
    uint8_t *to = chunk->image + place->offset;
    const uint64_t position = chunk->file_offset + place->offset;
#ifdef LAHAR_PLANTED_BUGS
    lahar_frame_encode_planted(to, frame, chunk->seed, position, set->planted_bugs);
#else
    (void)set;
    lahar_frame_encode(to, frame, chunk->seed, position);
#endif
}

/* Makes a complete frame visible to the writer. */
static void show(struct lahar_ring_set *set, const struct lahar_ring_place *place, uint32_t size,
                 enum lahar_attention least)
{
    (void)atomic_exchange_explicit(lahar_ring_size_word(place->chunk, place->offset), size,
                                   memory_order_seq_cst);
    lahar_ring_call(set, place->journal, least);
}

/* Closes a chunk behind its last frame. The chunk stays where it is: the writer cannot
 * pass the unpublished rest of it. */
static void pad(struct lahar_ring_set *set, uint32_t journal, uint32_t number, uint32_t offset)
{
    if (set->chunk_size - offset < LAHAR_FRAME_HEADER_SIZE) {
        return; /* the writer takes so short a rest for the end by itself */
    }
    const struct lahar_ring_place place = {
        .chunk = atomic_load_explicit(&set->rings[journal].slots[number % LAHAR_RING_SLOTS],
                                      memory_order_acquire),
        .offset = offset,
        .journal = journal,
    };
    const struct lahar_frame frame = {
        .kind = LAHAR_FRAME_PAD,
        .size = set->chunk_size - offset,
        .durable_id = atomic_load_explicit(set->durable_id, memory_order_acquire),
    };
    encode(set, &place, &frame);
    show(set, &place, frame.size, LAHAR_ATTENTION_SPACE);
}

bool lahar_ring_claim(struct lahar_ring_set *set, uint32_t journal, uint32_t size,
                      struct lahar_ring_place *place_out)
{
    struct lahar_ring *ring = &set->rings[journal];
    const uint64_t units = size / LAHAR_FRAME_ALIGNMENT;
    const uint64_t chunk_units = set->chunk_size / LAHAR_FRAME_ALIGNMENT;
    LAHAR_ASSERT(units > 0 && units <= chunk_units);
    uint32_t number;
    uint64_t start;
    for (;;) {
        uint64_t word = atomic_load_explicit(&ring->claim, memory_order_acquire);
        if ((word & UINT32_MAX) <= chunk_units) {
            /* Open. The addition may still find it closed, or the next chunk installed. */
            word = atomic_fetch_add_explicit(&ring->claim, units, memory_order_acq_rel);
            number = lahar_ring_number(word);
            start = word & UINT32_MAX;
            if (start + units <= chunk_units) {
                break;
            }
            if (start <= chunk_units) {
                pad(set, journal, number, (uint32_t)(start * LAHAR_FRAME_ALIGNMENT));
            }
            continue;
        }
        number = lahar_ring_number(word) + 1;
        start = 0;
        /* Pairs with the writer's store: the slot of the next chunk is filled. */
        if (atomic_load_explicit(&ring->prepared, memory_order_acquire) < number) {
            return false;
        }
        if (atomic_compare_exchange_strong_explicit(&ring->claim, &word,
                                                    lahar_ring_word(number, units),
                                                    memory_order_acq_rel, memory_order_relaxed)) {
            break;
        }
    }
    place_out->chunk =
        atomic_load_explicit(&ring->slots[number % LAHAR_RING_SLOTS], memory_order_acquire);
    place_out->offset = (uint32_t)(start * LAHAR_FRAME_ALIGNMENT);
    place_out->journal = journal;
    return true;
}

uint64_t lahar_ring_publish(struct lahar_ring_set *set, const struct lahar_ring_place *place,
                            struct lahar_frame *frame, enum lahar_attention least)
{
    const uint64_t id_count = lahar_frame_id_count(frame->event_count);
    frame->durable_id = atomic_load_explicit(set->durable_id, memory_order_acquire);
    frame->arrival_ns = set->io->ops->realtime_ns(set->io);
    frame->first_id = atomic_fetch_add_explicit(&set->next_id, id_count, memory_order_seq_cst);
    encode(set, place, frame);
    lahar_link_publish(set->links, frame->first_id, frame->first_id + id_count, place->chunk,
                       place->offset);
    show(set, place, frame->size, least);
    return frame->first_id;
}

void lahar_ring_publish_mark(struct lahar_ring_set *set, const struct lahar_ring_place *place)
{
    const struct lahar_frame frame = {
        .kind = LAHAR_FRAME_MARK,
        .size = LAHAR_FRAME_HEADER_SIZE,
        .durable_id = atomic_load_explicit(set->durable_id, memory_order_acquire),
    };
    encode(set, place, &frame);
    show(set, place, frame.size, LAHAR_ATTENTION_ANY);
}
