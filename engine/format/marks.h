/* The bytes of a stretch that matter to a tokenizer, found many at a time: one bit a byte, so that
 * going from one mark to the next costs a few instructions however close they stand.
 *
 * A window of at most LAHAR_MARKS_WINDOW_SIZE bytes is looked at in one go, 64 bytes a step, by
 * AVX2, SSE2 or plain C, as the machine has it; all find the same. Nothing is read outside the
 * window. One thread at a time. */
#ifndef LAHAR_FORMAT_MARKS_H
#define LAHAR_FORMAT_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAHAR_MARKS_WINDOW_SIZE = 8192,
    LAHAR_MARKS_BLOCK_SIZE = 64
};

/* How the window is looked at; the tests compare them. */
enum lahar_simd {
    LAHAR_SIMD_BEST, /* what the machine has */
    LAHAR_SIMD_PORTABLE,
    LAHAR_SIMD_SSE2,
    LAHAR_SIMD_AVX2,
    LAHAR_SIMD_OFF /* readers use no marks: what they give without is what they give with them */
};

/* What is marked: four bytes, which may be equal, and all that are below a limit. */
struct lahar_mark_set {
    uint8_t bytes[4];
    uint8_t below;
};

typedef void lahar_mark_function(const uint8_t *data, size_t block_count,
                                 const struct lahar_mark_set *set, uint64_t *bits_out);

struct lahar_marks {
    const uint8_t *start; /* of the window; NULL: nothing has been looked at */
    const uint8_t *end;   /* behind it */
    lahar_mark_function *mark;
    struct lahar_mark_set set;
    /* A bit of a block is a byte of the window. Behind the last block one without marks. */
    uint64_t bits[LAHAR_MARKS_WINDOW_SIZE / LAHAR_MARKS_BLOCK_SIZE + 1];
};

/* A level that the machine does not have is the next lower one. */
void lahar_marks_init(struct lahar_marks *marks, const struct lahar_mark_set *set,
                      enum lahar_simd level);

/* The bytes may have changed: nothing is known of them. */
static inline void lahar_marks_forget(struct lahar_marks *marks)
{
    marks->start = NULL;
    marks->end = NULL;
}

/* Looks at the bytes from data to end, as far as the window goes. */
void lahar_marks_look(struct lahar_marks *marks, const uint8_t *data, const uint8_t *end);

/* Makes the window hold data, which is below end, and nothing behind end; what it holds already is
 * kept. */
static inline void lahar_marks_cover(struct lahar_marks *marks, const uint8_t *data,
                                     const uint8_t *end)
{
    if (marks->start == NULL || data < marks->start || data >= marks->end || marks->end > end) {
        lahar_marks_look(marks, data, end);
    }
}

/* The first mark at or behind p, which lies in the window or at its end; the window's end when
 * there is none. */
static inline const uint8_t *lahar_marks_next(const struct lahar_marks *marks, const uint8_t *p)
{
    const size_t at = (size_t)(p - marks->start);
    const size_t block_count =
        ((size_t)(marks->end - marks->start) + LAHAR_MARKS_BLOCK_SIZE - 1) / LAHAR_MARKS_BLOCK_SIZE;
    size_t block = at / LAHAR_MARKS_BLOCK_SIZE;
    uint64_t bits = marks->bits[block] >> (at % LAHAR_MARKS_BLOCK_SIZE);
    if (bits != 0) {
        return p + __builtin_ctzll(bits);
    }
    while (++block < block_count) {
        bits = marks->bits[block];
        if (bits != 0) {
            return marks->start + block * LAHAR_MARKS_BLOCK_SIZE + __builtin_ctzll(bits);
        }
    }
    return marks->end;
}

/* Goes through the marks of a window in their order; what comes next is kept in registers. */
struct lahar_mark_cursor {
    const uint64_t *block; /* of the window's bits; the next marks are there or behind */
    const uint64_t *last;
    const uint8_t *base; /* the block's first byte */
    uint64_t bits;       /* of the block, those that have not been taken */
};

/* From p on, which lies in the window. */
static inline struct lahar_mark_cursor lahar_marks_from(const struct lahar_marks *marks,
                                                        const uint8_t *p)
{
    const size_t at = (size_t)(p - marks->start);
    const size_t block = at / LAHAR_MARKS_BLOCK_SIZE;
    const size_t window_size = (size_t)(marks->end - marks->start);
    return (struct lahar_mark_cursor){
        .block = marks->bits + block,
        .last = marks->bits + (window_size - 1) / LAHAR_MARKS_BLOCK_SIZE,
        .base = marks->start + block * LAHAR_MARKS_BLOCK_SIZE,
        .bits = marks->bits[block] & UINT64_MAX << at % LAHAR_MARKS_BLOCK_SIZE};
}

/* Takes the next mark; NULL when the window has no more. */
static inline const uint8_t *lahar_mark_take(struct lahar_mark_cursor *cursor)
{
    while (cursor->bits == 0) {
        if (cursor->block == cursor->last) {
            return NULL;
        }
        cursor->bits = *++cursor->block;
        cursor->base += LAHAR_MARKS_BLOCK_SIZE;
    }
    const uint8_t *mark = cursor->base + __builtin_ctzll(cursor->bits);
    cursor->bits &= cursor->bits - 1;
    return mark;
}

#endif
