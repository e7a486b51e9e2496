/* Inflate; see inflate.h. */
#include "engine/follow/inflate.h"

#include <string.h>

enum {
    END_OF_BLOCK = 256,
    LITERAL_COUNT = 288,
    DISTANCE_COUNT = 30,
    CODE_BITS_MAX = 15
};

static const uint16_t length_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                         15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                         67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_base[DISTANCE_COUNT] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const uint8_t distance_extra[DISTANCE_COUNT] = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                                       4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                                       9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

void lahar_inflate_begin(struct lahar_inflate *inflate)
{
    inflate->is_short = false;
    inflate->state.is_last_block = false;
    inflate->state.is_in_block = false;
    inflate->state.stored_left = 0;
    inflate->state.match_left = 0;
}

/* --- bits ------------------------------------------------------------------------------ */

/* Makes count bits available, at most 32; what is missing at the end reads as zero. */
static void need(struct lahar_inflate *inflate, unsigned count)
{
    while (inflate->bit_count < count) {
        if (inflate->input_next == inflate->input_size) {
            inflate->input_at += inflate->input_size;
            inflate->input_size = inflate->pull(inflate->context, inflate->input_at, inflate->input,
                                                sizeof inflate->input);
            inflate->input_next = 0;
            if (inflate->input_size == 0) {
                return;
            }
        }
        inflate->bits |= (uint64_t)inflate->input[inflate->input_next++] << inflate->bit_count;
        inflate->bit_count += 8;
    }
}

static void consume(struct lahar_inflate *inflate, unsigned count)
{
    if (count > inflate->bit_count) {
        inflate->is_short = true;
        count = inflate->bit_count;
    }
    inflate->bits >>= count;
    inflate->bit_count -= count;
}

static uint32_t take(struct lahar_inflate *inflate, unsigned count)
{
    need(inflate, count);
    const uint32_t value = (uint32_t)(inflate->bits & ((UINT64_C(1) << count) - 1));
    consume(inflate, count);
    return value;
}

int lahar_inflate_byte(struct lahar_inflate *inflate)
{
    consume(inflate, inflate->bit_count % 8);
    need(inflate, 8);
    if (inflate->bit_count < 8) {
        return -1;
    }
    return (int)take(inflate, 8);
}

uint64_t lahar_inflate_bit(const struct lahar_inflate *inflate)
{
    return 8 * (inflate->input_at + inflate->input_next) - inflate->bit_count;
}

void lahar_inflate_seek(struct lahar_inflate *inflate, uint64_t bit)
{
    inflate->input_at = bit / 8;
    inflate->input_size = 0;
    inflate->input_next = 0;
    inflate->bits = 0;
    inflate->bit_count = 0;
    inflate->is_short = false;
    (void)take(inflate, bit % 8);
}

/* --- codes ------------------------------------------------------------------------------- */

static void fill_fast(struct lahar_inflate_code *code, uint32_t bits, unsigned length,
                      unsigned symbol)
{
    uint32_t reversed = 0;
    for (unsigned i = 0; i < length; i++) {
        reversed |= (bits >> i & 1) << (length - 1 - i);
    }
    for (uint32_t at = reversed; at < 1U << LAHAR_INFLATE_FAST_BITS; at += 1U << length) {
        code->fast[at] = (uint16_t)(symbol << 4 | length);
    }
}

/* False for lengths that name more codes than there are. Too few are allowed: a code that is
 * not there is an error when it comes. */
static bool build(struct lahar_inflate_code *code, const uint8_t *lengths, unsigned count)
{
    uint16_t offsets[CODE_BITS_MAX + 2] = {0};
    uint32_t next[CODE_BITS_MAX + 2] = {0};
    int left = 1;
    memset(code, 0, sizeof *code);
    for (unsigned i = 0; i < count; i++) {
        code->counts[lengths[i]]++;
    }
    code->counts[0] = 0;
    for (unsigned length = 1; length <= CODE_BITS_MAX; length++) {
        left = left * 2 - code->counts[length];
        if (left < 0) {
            return false;
        }
        offsets[length + 1] = (uint16_t)(offsets[length] + code->counts[length]);
        next[length + 1] = (next[length] + code->counts[length]) << 1;
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned length = lengths[i];
        if (length != 0) {
            code->symbols[offsets[length]++] = (uint16_t)i;
            if (length <= LAHAR_INFLATE_FAST_BITS) {
                fill_fast(code, next[length], length, i);
            }
            next[length]++;
        }
    }
    return true;
}

/* -1: no such code, or the input ends. */
static int decode(struct lahar_inflate *inflate, const struct lahar_inflate_code *code)
{
    need(inflate, CODE_BITS_MAX);
    const uint16_t fast = code->fast[inflate->bits & ((1U << LAHAR_INFLATE_FAST_BITS) - 1)];
    if (fast != 0) {
        consume(inflate, fast & 15);
        return fast >> 4;
    }
    uint32_t bits = 0;
    uint32_t first = 0;
    uint32_t index = 0;
    for (unsigned length = 1; length <= CODE_BITS_MAX; length++) {
        bits = bits << 1 | (uint32_t)(inflate->bits >> (length - 1) & 1);
        const uint32_t count = code->counts[length];
        if (bits < first + count && bits >= first) {
            consume(inflate, length);
            return code->symbols[index + bits - first];
        }
        index += count;
        first = (first + count) << 1;
    }
    inflate->is_short = inflate->is_short || inflate->bit_count < CODE_BITS_MAX;
    return -1;
}

static bool build_fixed(struct lahar_inflate *inflate)
{
    uint8_t lengths[LITERAL_COUNT];
    for (unsigned i = 0; i < LITERAL_COUNT; i++) {
        lengths[i] = (uint8_t)(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    }
    const bool is_good = build(&inflate->state.literals, lengths, LITERAL_COUNT);
    memset(lengths, 5, DISTANCE_COUNT);
    return is_good && build(&inflate->state.distances, lengths, DISTANCE_COUNT);
}

static bool build_dynamic(struct lahar_inflate *inflate)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERAL_COUNT + 32] = {0};
    const unsigned literal_count = take(inflate, 5) + 257;
    const unsigned distance_count = take(inflate, 5) + 1;
    const unsigned code_count = take(inflate, 4) + 4;
    if (literal_count > 286 || distance_count > DISTANCE_COUNT) {
        return false;
    }
    for (unsigned i = 0; i < code_count; i++) {
        lengths[order[i]] = (uint8_t)take(inflate, 3);
    }
    if (!build(&inflate->state.literals, lengths, 19)) {
        return false;
    }
    memset(lengths, 0, sizeof lengths);
    for (unsigned i = 0; i < literal_count + distance_count;) {
        const int symbol = decode(inflate, &inflate->state.literals);
        uint8_t repeated = 0;
        unsigned repeats = 1;
        if (symbol < 0 || inflate->is_short) {
            return false;
        }
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16) {
            if (i == 0) {
                return false;
            }
            repeated = lengths[i - 1];
            repeats = 3 + take(inflate, 2);
        } else {
            repeats = symbol == 17 ? 3 + take(inflate, 3) : 11 + take(inflate, 7);
        }
        if (i + repeats > literal_count + distance_count) {
            return false;
        }
        memset(lengths + i, repeated, repeats);
        i += repeats;
    }
    return lengths[END_OF_BLOCK] != 0 && build(&inflate->state.literals, lengths, literal_count) &&
           build(&inflate->state.distances, lengths + literal_count, distance_count);
}

/* --- blocks --------------------------------------------------------------------------------- */

static bool begin_block(struct lahar_inflate *inflate)
{
    inflate->state.is_last_block = take(inflate, 1) != 0;
    const uint32_t kind = take(inflate, 2);
    inflate->state.is_in_block = true;
    inflate->state.is_stored = kind == 0;
    switch (kind) {
    case 0: {
        consume(inflate, inflate->bit_count % 8);
        const uint32_t size = take(inflate, 16);
        const uint32_t check = take(inflate, 16);
        inflate->state.stored_left = size;
        return inflate->is_short || size == (check ^ 0xffff);
    }
    case 1:
        return build_fixed(inflate);
    case 2:
        return build_dynamic(inflate);
    default:
        return false;
    }
}

static bool copy_match(struct lahar_inflate *inflate)
{
    if (inflate->state.match_distance > inflate->buffer_size) {
        return false;
    }
    while (inflate->state.match_left != 0 && inflate->buffer_size < LAHAR_INFLATE_BUFFER) {
        inflate->buffer[inflate->buffer_size] =
            inflate->buffer[inflate->buffer_size - inflate->state.match_distance];
        inflate->buffer_size++;
        inflate->state.match_left--;
    }
    return true;
}

static void copy_stored(struct lahar_inflate *inflate)
{
    while (inflate->state.stored_left != 0 && inflate->buffer_size < LAHAR_INFLATE_BUFFER) {
        inflate->mark_bit = lahar_inflate_bit(inflate);
        const int byte = lahar_inflate_byte(inflate);
        if (byte < 0) {
            inflate->is_short = true;
            return;
        }
        inflate->buffer[inflate->buffer_size++] = (uint8_t)byte;
        inflate->state.stored_left--;
    }
    inflate->state.is_in_block = inflate->state.stored_left != 0;
}

/* One symbol of a compressed block; false when it is not valid. */
static bool take_symbol(struct lahar_inflate *inflate)
{
    const int symbol = decode(inflate, &inflate->state.literals);
    if (symbol < 0 || symbol > 285) {
        return false;
    }
    if (inflate->is_short) {
        return true;
    }
    if (symbol < END_OF_BLOCK) {
        inflate->buffer[inflate->buffer_size++] = (uint8_t)symbol;
        return true;
    }
    if (symbol == END_OF_BLOCK) {
        inflate->state.is_in_block = false;
        return true;
    }
    const uint32_t length = length_base[symbol - 257] + take(inflate, length_extra[symbol - 257]);
    const int distance = decode(inflate, &inflate->state.distances);
    if (distance < 0 || distance >= DISTANCE_COUNT) {
        return false;
    }
    const uint32_t far = distance_base[distance] + take(inflate, distance_extra[distance]);
    if (inflate->is_short) {
        return true;
    }
    inflate->state.match_left = length;
    inflate->state.match_distance = far;
    return copy_match(inflate);
}

enum lahar_inflate_result lahar_inflate_run(struct lahar_inflate *inflate)
{
    struct lahar_inflate_state *state = &inflate->state;
    bool is_good = state->match_left == 0 || copy_match(inflate);
    while (is_good && !inflate->is_short) {
        if (inflate->buffer_size == LAHAR_INFLATE_BUFFER) {
            return LAHAR_INFLATE_FULL;
        }
        inflate->mark_bit = lahar_inflate_bit(inflate);
        if (!state->is_in_block) {
            if (state->is_last_block) {
                return LAHAR_INFLATE_DONE;
            }
            is_good = begin_block(inflate);
            if (inflate->is_short) {
                state->is_in_block = false;
                state->is_last_block = false;
            }
        } else if (state->is_stored) {
            copy_stored(inflate);
        } else {
            is_good = take_symbol(inflate);
        }
    }
    return inflate->is_short ? LAHAR_INFLATE_SHORT : LAHAR_INFLATE_BAD;
}

void lahar_inflate_slide(struct lahar_inflate *inflate)
{
    if (inflate->buffer_size > LAHAR_INFLATE_WINDOW) {
        memmove(inflate->buffer, inflate->buffer + inflate->buffer_size - LAHAR_INFLATE_WINDOW,
                LAHAR_INFLATE_WINDOW);
        inflate->buffer_size = LAHAR_INFLATE_WINDOW;
    }
    inflate->history = inflate->buffer_size;
}
