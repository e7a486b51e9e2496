/* Encoding and checking of frames. No state; any thread. */
#include "engine/journal/frame.h"

#include <string.h>

#include "engine/journal/journal.h"
#include "io/base/bytes.h"
#include "io/base/crc32c.h"

/* Offsets of the header's fields. */
enum {
    AT_SIZE = 0,
    AT_CHECKSUM = 4,
    AT_FIRST_ID = 8,
    AT_DURABLE_ID = 16,
    AT_ARRIVAL = 24,
    AT_EVENT_COUNT = 32,
    AT_ROWS_SIZE = 36,
    AT_OFFSETS_SIZE = 40,
    AT_VERSION = 44,
    AT_KIND = 45,
    AT_FEATURES = 46, /* u16, zero: a reader refuses what it does not know */
    AT_KEY_ID = 48,
    AT_RESERVED = 52 /* u32, written as zero, not checked */
};
_Static_assert(AT_RESERVED + 4 == LAHAR_FRAME_HEADER_SIZE, "the header has no hole");

enum {
    COPY_PIECE_SIZE = 12 * 1024 /* stays in the first cache; whole strides of the checksum */
};

uint32_t lahar_frame_seed(uint64_t store_id, uint64_t session, uint64_t generation)
{
    uint8_t identity[24];
    lahar_store_u64(identity, store_id);
    lahar_store_u64(identity + 8, session);
    lahar_store_u64(identity + 16, generation);
    return lahar_crc32c(0, identity, sizeof identity);
}

/* Of what comes before the content. header: with its size and a checksum of zero. */
static uint32_t begin_checksum(uint32_t seed, uint64_t position, const uint8_t *header,
                               unsigned bugs)
{
    uint8_t head[8 + LAHAR_FRAME_HEADER_SIZE];
    lahar_store_u64(head, position);
    memcpy(head + 8, header, LAHAR_FRAME_HEADER_SIZE);
#ifdef LAHAR_PLANTED_BUGS
    if (bugs & LAHAR_JOURNAL_BUG_CHECKSUM_SKIPS_SIZES) {
        memset(head + 8 + AT_SIZE, 0, 4);
        memset(head + 8 + AT_EVENT_COUNT, 0, 12);
    }
    if (bugs & LAHAR_JOURNAL_BUG_STALE_ACCEPTED) {
        seed = 0;
        memset(head, 0, 8);
    }
#else
    (void)bugs;
#endif
    return lahar_crc32c(seed, head, sizeof head);
}

/* Copies and sums piece by piece: a large batch comes through the caches once. */
static uint32_t copy_summed(uint8_t *to, const uint8_t *from, size_t size, uint32_t crc)
{
    while (size != 0) {
        const size_t piece = size < COPY_PIECE_SIZE ? size : COPY_PIECE_SIZE;
        memcpy(to, from, piece);
        crc = lahar_crc32c(crc, from, piece);
        to += piece;
        from += piece;
        size -= piece;
    }
    return crc;
}

static inline void encode(uint8_t *to, const struct lahar_frame *frame, uint32_t seed,
                          uint64_t position, unsigned bugs)
{
    uint8_t header[LAHAR_FRAME_HEADER_SIZE] = {0};
    lahar_store_u32(header + AT_SIZE, frame->size);
    lahar_store_u64(header + AT_FIRST_ID, frame->first_id);
    lahar_store_u64(header + AT_DURABLE_ID, frame->durable_id);
    lahar_store_u64(header + AT_ARRIVAL, (uint64_t)frame->arrival_ns);
    lahar_store_u32(header + AT_EVENT_COUNT, frame->event_count);
    lahar_store_u32(header + AT_ROWS_SIZE, frame->rows_size);
    lahar_store_u32(header + AT_OFFSETS_SIZE, frame->offsets_size);
    header[AT_VERSION] = LAHAR_FRAME_VERSION;
    header[AT_KIND] = (uint8_t)frame->kind;
    lahar_store_u32(header + AT_KEY_ID, frame->key_id);
    uint32_t crc = begin_checksum(seed, position, header, bugs);
    uint8_t *content = to + LAHAR_FRAME_HEADER_SIZE;
    crc = copy_summed(content, frame->offsets, frame->offsets_size, crc);
    crc = copy_summed(content + frame->offsets_size, frame->rows, frame->rows_size, crc);
    lahar_store_u32(header + AT_CHECKSUM, crc);
    memcpy(to + AT_CHECKSUM, header + AT_CHECKSUM, LAHAR_FRAME_HEADER_SIZE - AT_CHECKSUM);
}

void lahar_frame_encode(uint8_t *to, const struct lahar_frame *frame, uint32_t seed,
                        uint64_t position)
{
    encode(to, frame, seed, position, 0);
}

void lahar_frame_load(const uint8_t *from, struct lahar_frame *frame_out)
{
    frame_out->kind = (enum lahar_frame_kind)from[AT_KIND];
    frame_out->first_id = lahar_load_u64(from + AT_FIRST_ID);
    frame_out->durable_id = lahar_load_u64(from + AT_DURABLE_ID);
    frame_out->arrival_ns = (int64_t)lahar_load_u64(from + AT_ARRIVAL);
    frame_out->event_count = lahar_load_u32(from + AT_EVENT_COUNT);
    frame_out->rows_size = lahar_load_u32(from + AT_ROWS_SIZE);
    frame_out->offsets_size = lahar_load_u32(from + AT_OFFSETS_SIZE);
    frame_out->key_id = lahar_load_u32(from + AT_KEY_ID);
    frame_out->size =
        frame_out->kind == LAHAR_FRAME_PAD
            ? 0
            : (uint32_t)lahar_frame_size(frame_out->rows_size, frame_out->offsets_size);
    frame_out->offsets = from + LAHAR_FRAME_HEADER_SIZE;
    frame_out->rows = frame_out->offsets + frame_out->offsets_size;
}

static bool has_sound_sizes(const struct lahar_frame *frame)
{
    const uint64_t content = (uint64_t)frame->rows_size + frame->offsets_size;
    switch (frame->kind) {
    case LAHAR_FRAME_BATCH:
        return content != 0 &&
               lahar_frame_size(frame->rows_size, frame->offsets_size) == frame->size &&
               (frame->event_count == 0) == (frame->rows_size == 0) &&
               frame->event_count <= frame->rows_size &&
               frame->first_id <= UINT64_MAX - lahar_frame_id_count(frame->event_count);
    case LAHAR_FRAME_PAD:
        return content == 0 && frame->event_count == 0;
    case LAHAR_FRAME_MARK:
        return content == 0 && frame->event_count == 0 && frame->size == LAHAR_FRAME_HEADER_SIZE;
    default:
        return false;
    }
}

bool lahar_frame_is_plausible(const uint8_t *from, uint64_t available, struct lahar_frame *frame)
{
    const uint32_t size = lahar_load_u32(from + AT_SIZE);
    if (size < LAHAR_FRAME_HEADER_SIZE || size % LAHAR_FRAME_ALIGNMENT != 0 || size > available ||
        from[AT_VERSION] != LAHAR_FRAME_VERSION || lahar_load_u16(from + AT_FEATURES) != 0 ||
        lahar_load_u32(from + AT_KEY_ID) != 0) {
        return false;
    }
    struct lahar_frame loaded;
    lahar_frame_load(from, &loaded);
    loaded.size = size;
    if (!has_sound_sizes(&loaded)) {
        return false;
    }
    *frame = loaded;
    return true;
}

static inline bool check(const uint8_t *from, uint64_t available, uint32_t seed, uint64_t position,
                         unsigned bugs, struct lahar_frame *frame_out)
{
    if (available < LAHAR_FRAME_HEADER_SIZE ||
        !lahar_frame_is_plausible(from, available, frame_out)) {
        return false;
    }
    uint8_t header[LAHAR_FRAME_HEADER_SIZE];
    memcpy(header, from, sizeof header);
    memset(header + AT_CHECKSUM, 0, 4);
    uint32_t crc = begin_checksum(seed, position, header, bugs);
    crc = lahar_crc32c(crc, frame_out->offsets, frame_out->offsets_size);
    crc = lahar_crc32c(crc, frame_out->rows, frame_out->rows_size);
    return crc == lahar_load_u32(from + AT_CHECKSUM);
}

bool lahar_frame_check(const uint8_t *from, uint64_t available, uint32_t seed, uint64_t position,
                       struct lahar_frame *frame_out)
{
    return check(from, available, seed, position, 0, frame_out);
}

#ifdef LAHAR_PLANTED_BUGS
void lahar_frame_encode_planted(uint8_t *to, const struct lahar_frame *frame, uint32_t seed,
                                uint64_t position, unsigned bugs)
{
    encode(to, frame, seed, position, bugs);
}

bool lahar_frame_check_planted(const uint8_t *from, uint64_t available, uint32_t seed,
                               uint64_t position, unsigned bugs, struct lahar_frame *frame_out)
{
    return check(from, available, seed, position, bugs, frame_out);
}
#endif
