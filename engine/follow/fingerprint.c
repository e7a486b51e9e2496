/* Hashing heads and windows; see fingerprint.h. */
#include "engine/follow/fingerprint.h"

#include <xxhash.h>

static void update_head(struct lahar_fingerprint *print, const uint8_t *head, uint32_t size)
{
    print->head_size = size;
    print->head_hash = XXH3_64bits(head, size);
    for (uint32_t i = 0; i < LAHAR_HEAD_STEPS && UINT32_C(16) << i <= size; i++) {
        print->step_hashes[i] = XXH3_64bits(head, UINT32_C(16) << i);
    }
}

/* The older half is thinned out, so that points lie closer together near the end. */
static void add_point(struct lahar_fingerprint *print, uint64_t offset, uint64_t hash)
{
    if (print->ladder_count != 0 && print->ladder[print->ladder_count - 1].offset >= offset) {
        return;
    }
    if (print->ladder_count == LAHAR_LADDER_SIZE) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < LAHAR_LADDER_SIZE; i++) {
            if (i % 2 == 1 || i >= LAHAR_LADDER_SIZE - 2) {
                print->ladder[kept++] = print->ladder[i];
            }
        }
        print->ladder_count = kept;
    }
    print->ladder[print->ladder_count++] = (struct lahar_ladder_point){offset, hash};
}

void lahar_fingerprint_update(struct lahar_fingerprint *print, const uint8_t *data,
                              uint64_t data_offset, uint64_t offset)
{
    if (data_offset == 0 && print->head_size < LAHAR_HEAD_SIZE) {
        update_head(print, data,
                    offset < LAHAR_HEAD_SIZE ? (uint32_t)offset : (uint32_t)LAHAR_HEAD_SIZE);
    }
    print->tail_size = (uint32_t)lahar_tail_size(offset);
    print->tail_hash =
        XXH3_64bits(data + (offset - data_offset) - print->tail_size, print->tail_size);
    add_point(print, offset, print->tail_hash);
}

bool lahar_fingerprint_head_matches(const struct lahar_fingerprint *print, const uint8_t *data,
                                    size_t size)
{
    if (size >= print->head_size) {
        return XXH3_64bits(data, print->head_size) == print->head_hash || print->head_size == 0;
    }
    for (uint32_t i = LAHAR_HEAD_STEPS; i-- > 0;) {
        if (UINT32_C(16) << i <= size) {
            return XXH3_64bits(data, UINT32_C(16) << i) == print->step_hashes[i];
        }
    }
    return false;
}

bool lahar_fingerprint_tail_matches(const struct lahar_fingerprint *print, const uint8_t *window)
{
    return print->tail_size == 0 || XXH3_64bits(window, print->tail_size) == print->tail_hash;
}

bool lahar_fingerprint_point_matches(const struct lahar_ladder_point *point, const uint8_t *window)
{
    return XXH3_64bits(window, lahar_tail_size(point->offset)) == point->hash;
}

const struct lahar_ladder_point *
lahar_fingerprint_point_below(const struct lahar_fingerprint *print, uint64_t size)
{
    for (uint32_t i = print->ladder_count; i-- > 0;) {
        if (print->ladder[i].offset <= size) {
            return &print->ladder[i];
        }
    }
    return NULL;
}

void lahar_fingerprint_cut(struct lahar_fingerprint *print, uint64_t offset)
{
    while (print->ladder_count != 0 && print->ladder[print->ladder_count - 1].offset > offset) {
        print->ladder_count--;
    }
    if (print->head_size > offset) {
        print->head_size = 0;
    }
}
