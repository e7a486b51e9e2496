/* What a file's content looked like around the places that matter: enough to tell later
 * whether the file at hand still is that content, whatever its name and inode.
 *
 * Only consumed bytes are looked at. The head is the first bytes of the file, up to
 * LAHAR_HEAD_SIZE, hashed at each power of two and at its whole size, so that a file that
 * was cut can still be compared; the tail is the window before the offset. */
#ifndef LAHAR_FOLLOW_FINGERPRINT_H
#define LAHAR_FOLLOW_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAHAR_HEAD_SIZE = 1024,
    LAHAR_HEAD_STEPS = 7, /* 16, 32 .. 1024 */
    LAHAR_TAIL_SIZE = 256,
    LAHAR_LADDER_SIZE = 8
};

/* The window before an older offset. */
struct lahar_ladder_point {
    uint64_t offset;
    uint64_t hash; /* of its min(offset, LAHAR_TAIL_SIZE) bytes */
};

struct lahar_fingerprint {
    uint32_t head_size;                     /* bytes hashed, at most LAHAR_HEAD_SIZE */
    uint64_t head_hash;                     /* of all head_size bytes */
    uint64_t step_hashes[LAHAR_HEAD_STEPS]; /* of the first 16 << i, where head_size has so many */
    uint32_t tail_size;
    uint64_t tail_hash;
    struct lahar_ladder_point ladder[LAHAR_LADDER_SIZE]; /* rising */
    uint32_t ladder_count;
};

/* How many bytes the window before offset has. */
static inline size_t lahar_tail_size(uint64_t offset)
{
    return offset < LAHAR_TAIL_SIZE ? (size_t)offset : LAHAR_TAIL_SIZE;
}

/* data holds the file's bytes from data_offset on, at least the window before offset, and
 * the whole head when data_offset is 0. */
void lahar_fingerprint_update(struct lahar_fingerprint *print, const uint8_t *data,
                              uint64_t data_offset, uint64_t offset);

/* Against the first size bytes of a file. A head that is longer than the file matches when
 * its longest step that fits does. */
bool lahar_fingerprint_head_matches(const struct lahar_fingerprint *print, const uint8_t *data,
                                    size_t size);
/* Against the window of tail_size bytes before the offset. */
bool lahar_fingerprint_tail_matches(const struct lahar_fingerprint *print, const uint8_t *window);
/* Whether window, before the ladder point's offset, is as it was. */
bool lahar_fingerprint_point_matches(const struct lahar_ladder_point *point, const uint8_t *window);
/* The highest point whose offset is at most size; NULL when there is none. */
const struct lahar_ladder_point *
lahar_fingerprint_point_below(const struct lahar_fingerprint *print, uint64_t size);
/* Forgets what lies behind offset, where a file was cut. */
void lahar_fingerprint_cut(struct lahar_fingerprint *print, uint64_t offset);

#endif
