/* Inflate (RFC 1951) that can stop and go on anywhere in its output.
 *
 * Input is pulled as it is needed; output goes into a buffer that keeps the last 32 KiB for
 * references. Where the input ends in the middle of something, decoding goes on from in front of
 * that once there is more. Any bytes are safe. libdeflate, which is faster, needs the whole of both
 * at once; a log file has no bound. */
#ifndef LAHAR_FOLLOW_INFLATE_H
#define LAHAR_FOLLOW_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAHAR_INFLATE_WINDOW = 32768,
    LAHAR_INFLATE_OUTPUT = 65536, /* produced at a time */
    LAHAR_INFLATE_BUFFER = LAHAR_INFLATE_WINDOW + LAHAR_INFLATE_OUTPUT,
    LAHAR_INFLATE_FAST_BITS = 10
};

enum lahar_inflate_result {
    LAHAR_INFLATE_FULL,  /* the buffer is full: take what is there */
    LAHAR_INFLATE_DONE,  /* the last block has ended */
    LAHAR_INFLATE_SHORT, /* the input ends too early */
    LAHAR_INFLATE_BAD
};

/* A canonical Huffman code: codes of up to FAST_BITS are looked up, longer ones counted out. */
struct lahar_inflate_code {
    uint16_t fast[1 << LAHAR_INFLATE_FAST_BITS]; /* symbol << 4 | length; 0: longer, or none */
    uint16_t counts[16];                         /* codes by length */
    uint16_t symbols[288];                       /* in order of their codes */
};

/* All that decoding goes on from, besides the place in the input and the window. */
struct lahar_inflate_state {
    bool is_last_block;
    bool is_in_block;
    bool is_stored;
    uint32_t stored_left; /* bytes */
    uint32_t match_left;  /* bytes of a reference that did not fit */
    uint32_t match_distance;
    struct lahar_inflate_code literals;
    struct lahar_inflate_code distances;
};

struct lahar_inflate {
    /* Puts bytes from offset on at data and returns how many; 0 at the end. */
    size_t (*pull)(void *context, uint64_t offset, uint8_t *data, size_t size);
    void *context;
    uint8_t input[16384];
    uint64_t input_at; /* offset of input[0] */
    size_t input_size;
    size_t input_next;
    uint64_t bits;      /* not consumed, the lowest first */
    unsigned bit_count; /* of them */
    bool is_short;
    uint64_t mark_bit; /* where what is being decoded begins */
    struct lahar_inflate_state state;
    uint8_t buffer[LAHAR_INFLATE_BUFFER];
    size_t buffer_size;
    size_t history; /* bytes of the buffer that were handed out before */
};

/* Begins a stream, or a member of one, at the present place of the input. */
void lahar_inflate_begin(struct lahar_inflate *inflate);
/* Goes on until the buffer is full; the caller looks at what lies behind history, then calls
 * lahar_inflate_slide. After SHORT the state is as it was at mark_bit: seek there to go on. */
enum lahar_inflate_result lahar_inflate_run(struct lahar_inflate *inflate);
/* Keeps the window and makes room. */
void lahar_inflate_slide(struct lahar_inflate *inflate);
/* The next whole byte of the input, behind the bits that were read; -1 at the end. */
int lahar_inflate_byte(struct lahar_inflate *inflate);
/* The place in the input, in bits from its start. */
uint64_t lahar_inflate_bit(const struct lahar_inflate *inflate);
void lahar_inflate_seek(struct lahar_inflate *inflate, uint64_t bit);

#endif
