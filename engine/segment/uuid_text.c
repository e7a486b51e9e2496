#include "engine/segment/uuid_text.h"

/* Where the digits of each byte stand in the text. */
static const uint8_t places[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};

/* Value of a lower-case hexadecimal digit, 16 for anything else. */
static const uint8_t digit_values[256] = {
#define X4  16, 16, 16, 16
#define X16 X4, X4, X4, X4
    X16, X16, X16, 0,  1,  2,  3,  4,  5,  6,   7,   8,   9,   16,  16,  X4,  X16, X16, 16,
    10,  11,  12,  13, 14, 15, 16, X4, X4, X16, X16, X16, X16, X16, X16, X16, X16, X16
#undef X16
#undef X4
};

bool lahar_uuid_text_parse(const uint8_t text[LAHAR_UUID_TEXT_SIZE], uint8_t uuid_out[16])
{
    if (text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-') {
        return false;
    }
    uint8_t all = 0;
    for (uint32_t i = 0; i < 16; i++) {
        const uint8_t high = digit_values[text[places[i]]];
        const uint8_t low = digit_values[text[places[i] + 1]];
        all |= high | low;
        uuid_out[i] = (uint8_t)(high << 4 | low);
    }
    return all < 16;
}

void lahar_uuid_text_print(const uint8_t uuid[16], uint8_t text_out[LAHAR_UUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    text_out[8] = text_out[13] = text_out[18] = text_out[23] = '-';
    for (uint32_t i = 0; i < 16; i++) {
        text_out[places[i]] = (uint8_t)digits[uuid[i] >> 4];
        text_out[places[i] + 1] = (uint8_t)digits[uuid[i] & 15];
    }
}
