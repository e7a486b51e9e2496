/* Uuids as people write them. */
#include "engine/query/literal.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_dash_place(size_t place)
{
    return place == 8 || place == 13 || place == 18 || place == 23;
}

bool lahar_query_uuid_parse(const void *text, size_t size, lahar_uuid *uuid_out)
{
    const char *p = text;
    if (size >= 2 && p[0] == '{' && p[size - 1] == '}') {
        p++;
        size -= 2;
    }
    const bool has_dashes = size == LAHAR_UUID_TEXT_SIZE;
    if (!has_dashes && size != 32) {
        return false;
    }
    size_t nibble = 0;
    for (size_t i = 0; i < size; i++) {
        if (has_dashes && is_dash_place(i)) {
            if (p[i] != '-') {
                return false;
            }
            continue;
        }
        const int digit = hex_digit(p[i]);
        if (digit < 0) {
            return false;
        }
        const uint8_t high = nibble % 2 == 0 ? 0 : uuid_out->bytes[nibble / 2];
        uuid_out->bytes[nibble / 2] = (uint8_t)(nibble % 2 == 0 ? digit << 4 : high | digit);
        nibble++;
    }
    return true;
}

void lahar_query_uuid_format(const lahar_uuid *uuid, char text_out[LAHAR_UUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    size_t nibble = 0;
    for (size_t i = 0; i < LAHAR_UUID_TEXT_SIZE; i++) {
        if (is_dash_place(i)) {
            text_out[i] = '-';
            continue;
        }
        const uint8_t byte = uuid->bytes[nibble / 2];
        text_out[i] = digits[nibble % 2 == 0 ? byte >> 4 : byte & 15];
        nibble++;
    }
}
