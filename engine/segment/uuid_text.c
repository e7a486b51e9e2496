#include "engine/segment/uuid_text.h"

#include "engine/segment/hex_digits.h"

/* The digits are taken eight at a time; where the four hyphens lie among them, as twice four. */
enum {
    SECOND = 9,
    THIRD = 14,
    FOURTH = 19,
    FIFTH = 24,
    LAST = 28
};

static uint64_t two_fours(const uint8_t *text, uint32_t first, uint32_t second)
{
    return lahar_load_u32(text + first) | (uint64_t)lahar_load_u32(text + second) << 32;
}

bool lahar_uuid_text_parse(const uint8_t text[LAHAR_UUID_TEXT_SIZE], uint8_t uuid_out[16])
{
    uint64_t first = 0;
    uint64_t second = 0;
    const bool is_first_hex =
        lahar_hex_parse_sixteen(lahar_load_u64(text), two_fours(text, SECOND, THIRD), &first);
    const bool is_second_hex = lahar_hex_parse_sixteen(two_fours(text, FOURTH, FIFTH),
                                                       lahar_load_u64(text + LAST), &second);
    lahar_store_u64(uuid_out, first);
    lahar_store_u64(uuid_out + sizeof first, second);
    return is_first_hex && is_second_hex && text[SECOND - 1] == '-' && text[THIRD - 1] == '-' &&
           text[FOURTH - 1] == '-' && text[FIFTH - 1] == '-';
}

void lahar_uuid_text_print(const uint8_t uuid[16], uint8_t text_out[LAHAR_UUID_TEXT_SIZE])
{
    const uint64_t second = lahar_hex_print_eight(lahar_load_u32(uuid + 4));
    const uint64_t third = lahar_hex_print_eight(lahar_load_u32(uuid + 8));
    lahar_store_u64(text_out, lahar_hex_print_eight(lahar_load_u32(uuid)));
    lahar_store_u32(text_out + SECOND, (uint32_t)second);
    lahar_store_u32(text_out + THIRD, (uint32_t)(second >> 32));
    lahar_store_u32(text_out + FOURTH, (uint32_t)third);
    lahar_store_u32(text_out + FIFTH, (uint32_t)(third >> 32));
    lahar_store_u64(text_out + LAST, lahar_hex_print_eight(lahar_load_u32(uuid + 12)));
    text_out[SECOND - 1] = text_out[THIRD - 1] = text_out[FOURTH - 1] = text_out[FIFTH - 1] = '-';
}
