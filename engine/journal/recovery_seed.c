#include "engine/journal/recovery_seed.h"

#include <string.h>

#include "io/base/bytes.h"

enum {
    CANDIDATES_MAX = 8,        /* what looks like a frame is tried this often */
    GENERATIONS_MAX = 1 << 16, /* of a session; one is used a file, of up to 16 MiB */
    SUMMED_MAX = 256 << 20     /* bytes of checksums, all tries together */
};

/* Something that looks like a frame. */
struct candidate {
    const uint8_t *data;
    uint64_t available;
    uint64_t position; /* in the file */
    uint32_t size;
};

static size_t list_candidates(const uint8_t *body, uint64_t body_size,
                              struct candidate candidates[CANDIDATES_MAX])
{
    size_t count = 0;
    uint64_t at = 0;
    while (count < CANDIDATES_MAX && body_size - at >= LAHAR_FRAME_HEADER_SIZE) {
        struct lahar_frame frame = {0};
        if (lahar_load_u32(body + at) == 0 ||
            !lahar_frame_is_plausible(body + at, body_size - at, &frame)) {
            at += LAHAR_FRAME_ALIGNMENT;
            continue;
        }
        candidates[count++] = (struct candidate){body + at, body_size - at,
                                                 LAHAR_JOURNAL_HEADER_SIZE + at, frame.size};
        at += frame.size;
    }
    return count;
}

static bool passes(const struct candidate *candidate, uint64_t store_id,
                   const struct lahar_journal_header *use)
{
    struct lahar_frame frame;
    return lahar_frame_check(candidate->data, candidate->available,
                             lahar_frame_seed(store_id, use->session, use->generation),
                             candidate->position, &frame);
}

/* Tries the generations of the sessions that the store knows, the newest session first. */
static bool try_known(const struct lahar_recovery_scan *scan, const struct candidate *candidate,
                      uint64_t *summed, struct lahar_journal_header *use)
{
    for (size_t i = scan->session_count; i-- > 0;) {
        use->session = scan->sessions[i].session;
        for (use->generation = 1; use->generation <= GENERATIONS_MAX; use->generation++) {
            if (*summed >= SUMMED_MAX) {
                return false;
            }
            *summed += candidate->size;
            if (passes(candidate, scan->store_id, use)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_zero(const uint8_t *data, uint64_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, (size_t)size - 1) == 0);
}

/* Whether the block can be a header that a crash kept from being written whole: its fields lie in
 * one sector and are of the old or of the new use. */
static bool may_be_torn(const struct lahar_recovery_scan *scan, const uint8_t *block,
                        const struct lahar_journal_header *stated)
{
    const uint64_t newest =
        scan->session_count == 0 ? 0 : scan->sessions[scan->session_count - 1].session;
    return lahar_journal_header_has_magic(block) && stated->store_id == scan->store_id &&
           (stated->session == newest + 1 ||
            lahar_recovery_find_session(scan, stated->session) != scan->session_count);
}

enum lahar_seed_finding lahar_recovery_find_seed(const struct lahar_recovery_scan *scan,
                                                 const uint8_t *header, const uint8_t *body,
                                                 uint64_t body_size,
                                                 struct lahar_journal_header *found_out)
{
    struct candidate candidates[CANDIDATES_MAX];
    struct lahar_journal_header stated;
    const size_t count = list_candidates(body, body_size, candidates);
    lahar_journal_header_peek(header, &stated);
    *found_out = stated;
    for (size_t i = 0; i < count; i++) {
        if (passes(&candidates[i], scan->store_id, found_out)) {
            return LAHAR_SEED_FOUND;
        }
    }
    uint64_t summed = 0;
    for (size_t i = 0; i < count; i++) {
        if (try_known(scan, &candidates[i], &summed, found_out)) {
            return LAHAR_SEED_FOUND;
        }
    }
    return may_be_torn(scan, header, &stated) || is_zero(body, body_size) ? LAHAR_SEED_EMPTY
                                                                          : LAHAR_SEED_UNKNOWN;
}
