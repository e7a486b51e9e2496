/* The frame: one batch as it stands in a journal's image and file.
 *
 * A frame is a header, the batch's offset records and its rows, padded with zeros to
 * 8 bytes. The first word, the frame's size, is stored last: a size of zero means
 * that nothing has been published at this place. The checksum starts from the
 * store, the session and the generation of the file and covers the frame's
 * place in the file, its header and its content, so that bytes of an earlier use of the
 * file, of another file or from another place never pass. docs/format/journal.md. */
#ifndef LAHAR_JOURNAL_FRAME_H
#define LAHAR_JOURNAL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAHAR_FRAME_HEADER_SIZE = 56,
    LAHAR_FRAME_ALIGNMENT = 8,
    LAHAR_FRAME_VERSION = 1
};

/* Values are stored. */
enum lahar_frame_kind {
    LAHAR_FRAME_BATCH = 1,
    LAHAR_FRAME_PAD = 2, /* the rest of the region is not used */
    LAHAR_FRAME_MARK = 3 /* nothing but its durable_id; written when a store is closed */
};

struct lahar_frame {
    enum lahar_frame_kind kind;
    uint32_t size; /* bytes, header and padding included */
    uint32_t event_count;
    uint32_t rows_size;    /* bytes */
    uint32_t offsets_size; /* bytes */
    uint32_t key_id;       /* 0: not encrypted */
    uint64_t first_id;
    uint64_t durable_id; /* every id below was on stable storage before this frame was written */
    int64_t arrival_ns;
    const uint8_t *offsets;
    const uint8_t *rows;
};

/* Bytes of a frame with this content. */
static inline uint64_t lahar_frame_size(uint64_t rows_size, uint64_t offsets_size)
{
    return (LAHAR_FRAME_HEADER_SIZE + rows_size + offsets_size + LAHAR_FRAME_ALIGNMENT - 1) &
           ~(uint64_t)(LAHAR_FRAME_ALIGNMENT - 1);
}

/* Ids a batch takes: one an event, and one for offsets without events. */
static inline uint64_t lahar_frame_id_count(uint32_t event_count)
{
    return event_count == 0 ? 1 : event_count;
}

/* What the checksums of one file start from. */
uint32_t lahar_frame_seed(uint64_t store_id, uint64_t session, uint64_t generation);

/* Writes all of frame but its size word to the memory at to, which is zero. position: the
 * offset in the file where the frame will stand. */
void lahar_frame_encode(uint8_t *to, const struct lahar_frame *frame, uint32_t seed,
                        uint64_t position);

/* Reads the header and the places of the content, assuming that it is sound. */
void lahar_frame_load(const uint8_t *from, struct lahar_frame *frame_out);

/* Whether the header at from describes a frame that fits into the available bytes, at least
 * LAHAR_FRAME_HEADER_SIZE, before anything of it is summed; false leaves frame->size alone. */
bool lahar_frame_is_plausible(const uint8_t *from, uint64_t available, struct lahar_frame *frame);

/* The same as load from bytes that are not trusted: whether a whole and unharmed frame begins
 * at from, of which available bytes may be read. */
bool lahar_frame_check(const uint8_t *from, uint64_t available, uint32_t seed, uint64_t position,
                       struct lahar_frame *frame_out);

/* The arrival time of a batch whose frame says arrival_ns, behind one of before_ns: later than any
 * before it, so that it tells the events of one batch from those of the next in event files too,
 * which know no batches. */
static inline int64_t lahar_arrival_after(int64_t before_ns, int64_t arrival_ns)
{
    if (arrival_ns > before_ns) {
        return arrival_ns;
    }
    return before_ns < INT64_MAX ? before_ns + 1 : before_ns;
}

#ifdef LAHAR_PLANTED_BUGS
/* Encoding and checking with the mistakes of bugs (enum lahar_journal_bug). */
void lahar_frame_encode_planted(uint8_t *to, const struct lahar_frame *frame, uint32_t seed,
                                uint64_t position, unsigned bugs);
bool lahar_frame_check_planted(const uint8_t *from, uint64_t available, uint32_t seed,
                               uint64_t position, unsigned bugs, struct lahar_frame *frame_out);
#endif

#endif
