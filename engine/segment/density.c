#include "engine/segment/density.h"

enum {
    SECTION_SIZE_MIN = 256, /* smaller ones cost little, and are compressed better among others */
    JUDGED_SIZE_MAX = 16 * 1024,
    SAVED_SHARE = 16,
    REPEAT_SHARE = 32, /* sequences of four bytes that may come again, one in so many */
    SEQUENCE_SIZE = 4,
    SEQUENCE_TABLE_SIZE = 2048
};

void lahar_density_forget(struct lahar_placed_column *columns, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        columns[i].column->dense = (struct lahar_column_density){false, false, false};
    }
}

/* 256 times the logarithm of a number from 1 on to base 2, digit by digit: squaring doubles it. */
static uint64_t log2_256(uint32_t number)
{
    const uint32_t whole = 31 - (uint32_t)__builtin_clz(number);
    uint64_t mantissa = (uint64_t)number << (31 - whole); /* 1.0 is 2^31 */
    uint64_t digits = whole;
    for (uint32_t i = 0; i < 8; i++) {
        mantissa = mantissa * mantissa >> 31;
        const uint64_t digit = mantissa >> 32;
        mantissa >>= digit;
        digits = digits << 1 | digit;
    }
    return digits;
}

/* Bytes that an ideal code for each byte by itself would take. Few bytes never look as random as
 * what they were drawn from is; G. A. Miller's correction (1955) makes up for it. */
static size_t entropy_size(const uint8_t *data, size_t size)
{
    static const uint64_t half_bit_256 = 185; /* 256 / (2 ln 2) */
    uint32_t counts[256] = {0};
    for (size_t i = 0; i < size; i++) {
        counts[data[i]]++;
    }
    const uint64_t whole = log2_256((uint32_t)size);
    uint64_t bits_256 = 0;
    for (uint32_t i = 0; i < 256; i++) {
        bits_256 += counts[i] == 0 ? 0 : counts[i] * (whole - log2_256(counts[i])) + half_bit_256;
    }
    return (size_t)(bits_256 / 256 / 8);
}

/* Places at which a sequence begins that was met before, as far as a small table remembers. */
static size_t count_repeats(const uint8_t *data, size_t size)
{
    uint32_t known[SEQUENCE_TABLE_SIZE] = {0};
    size_t count = 0;
    for (size_t i = 0; i + SEQUENCE_SIZE <= size; i++) {
        const uint32_t sequence = lahar_load_u32(data + i);
        uint32_t *place = &known[sequence * UINT32_C(0x9e3779b1) >> 21];
        count += *place == sequence;
        *place = sequence;
    }
    return count;
}

bool lahar_density_is_dense(const uint8_t *data, size_t size)
{
    return size >= SECTION_SIZE_MIN && entropy_size(data, size) >= size - size / SAVED_SHARE &&
           count_repeats(data, size) < size / REPEAT_SHARE;
}

static bool is_section_dense(const struct lahar_column_encoder *encoder,
                             const struct lahar_section *section)
{
    if (section->size == 0 || section->group == LAHAR_GROUP_HEAD ||
        section->group == LAHAR_GROUP_DENSE) {
        return false;
    }
    const bool is_long = section->group >= LAHAR_GROUP_COUNT;
    const uint8_t *data =
        is_long
            ? lahar_column_encoder_long_text(encoder, section->group - LAHAR_GROUP_COUNT)->data.data
            : encoder->groups[section->group].data + section->offset;
    return lahar_density_is_dense(data, section->size < JUDGED_SIZE_MAX ? section->size
                                                                        : JUDGED_SIZE_MAX);
}

void lahar_density_learn(const struct lahar_column_encoder *encoder,
                         struct lahar_placed_column *columns, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        columns[i].column->dense = (struct lahar_column_density){
            .are_codes = is_section_dense(encoder, &columns[i].codes),
            .are_entries = is_section_dense(encoder, &columns[i].entries),
            .is_text = is_section_dense(encoder, &columns[i].text),
        };
    }
}
