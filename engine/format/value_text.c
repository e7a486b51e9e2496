/* Conversions between text and typed values; see value_text.h. */
#include "engine/format/value_text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/time_text.h"

enum {
    /* Longer number texts are refused: no double needs more digits than this. */
    NUMBER_TEXT_SIZE_MAX = 1100
};

static bool parse_u64(const uint8_t *p, const uint8_t *end, uint64_t *value_out)
{
    /* So many digits cannot overflow. */
    const uint8_t *sure_end = end - p > 19 ? p + 19 : end;
    uint64_t value = 0;
    if (p == end) {
        return false;
    }
    for (; p < sure_end; p++) {
        const uint8_t digit = (uint8_t)(*p - '0');
        if (digit > 9) {
            return false;
        }
        value = value * 10 + digit;
    }
    for (; p < end; p++) {
        const uint8_t digit = (uint8_t)(*p - '0');
        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    *value_out = value;
    return true;
}

/* Digits behind an optional sign. */
static bool parse_integer(lahar_bytes text, bool *is_negative_out, uint64_t *magnitude_out,
                          bool *is_canonical_out)
{
    const uint8_t *p = text.data;
    const uint8_t *end = text.size == 0 ? p : p + text.size;
    if (p == end) {
        return false;
    }
    *is_negative_out = *p == '-';
    const bool has_plus = *p == '+';
    p += *is_negative_out || has_plus;
    if (!parse_u64(p, end, magnitude_out)) {
        return false;
    }
    const bool has_leading_zero = *p == '0' && end - p > 1;
    *is_canonical_out =
        !has_plus && !has_leading_zero && !(*is_negative_out && *magnitude_out == 0);
    return true;
}

static bool parse_i64(lahar_bytes text, int64_t *value_out, bool *is_canonical_out)
{
    bool is_negative;
    uint64_t magnitude;
    if (!parse_integer(text, &is_negative, &magnitude, is_canonical_out) ||
        magnitude > (uint64_t)INT64_MAX + is_negative) {
        return false;
    }
    *value_out = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    return true;
}

/* A decimal of at most 15 significant digits without exponent, as most are. Sets
 * *is_canonical_out when the text is known to be the shortest for its value. */
static bool parse_short_decimal(lahar_bytes text, double *value_out, bool *is_canonical_out)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const uint8_t *p = text.data;
    const uint8_t *end = p + text.size;
    const bool is_negative = *p == '-';
    p += is_negative;
    uint64_t digits = 0;
    int integer_count = 0;
    int fraction_count = 0;
    const uint8_t first = p < end ? *p : 0;
    for (; p < end && (uint8_t)(*p - '0') <= 9 && integer_count <= 15; p++, integer_count++) {
        digits = digits * 10 + (uint64_t)(*p - '0');
    }
    bool ends_in_zero = false;
    if (p < end && *p == '.') {
        for (p++; p < end && (uint8_t)(*p - '0') <= 9 && fraction_count <= 15;
             p++, fraction_count++) {
            digits = digits * 10 + (uint64_t)(*p - '0');
            ends_in_zero = *p == '0';
        }
        if (fraction_count == 0) {
            return false;
        }
    }
    if (p != end || integer_count == 0 || integer_count + fraction_count > 15) {
        return false;
    }
    /* Both operands are exact, so the quotient is the nearest double. */
    const double value = (double)digits / powers[fraction_count];
    *value_out = is_negative ? -value : value;
    *is_canonical_out = digits != 0 && !ends_in_zero && (first != '0' || integer_count == 1) &&
                        (first != '0' || (digits >= 1 && fraction_count <= 6));
    return true;
}

static bool is_decimal_text(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    const size_t integer = strspn(p, "0123456789");
    p += integer;
    size_t fraction = 0;
    if (*p == '.') {
        fraction = strspn(++p, "0123456789");
        p += fraction;
    }
    if (integer + fraction == 0) {
        return false;
    }
    if ((*p | 0x20) == 'e') {
        p++;
        p += *p == '-' || *p == '+';
        const size_t exponent = strspn(p, "0123456789");
        if (exponent == 0) {
            return false;
        }
        p += exponent;
    }
    return *p == 0;
}

/* strtod under the C locale, whatever the host has set. */
static bool read_double(const char *text, double *value_out)
{
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return false;
    }
    char *end;
    *value_out = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    return *end == 0;
}

static bool parse_f64(lahar_bytes text, double *value_out, bool *is_canonical_out)
{
    if (text.size == 0 || text.size >= NUMBER_TEXT_SIZE_MAX) {
        return false;
    }
    if (parse_short_decimal(text, value_out, is_canonical_out) && *is_canonical_out) {
        return true;
    }
    char copy[NUMBER_TEXT_SIZE_MAX];
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    static const char *const specials[] = {"nan", "inf", "-inf"};
    static const double special_values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        if (strcmp(copy, specials[i]) == 0) {
            *value_out = special_values[i];
            *is_canonical_out = true;
            return true;
        }
    }
    if (strlen(copy) != text.size || !is_decimal_text(copy) || !read_double(copy, value_out)) {
        return false;
    }
    uint8_t storage[64]; /* no double's text is longer than 27 bytes */
    struct lahar_buffer canonical = {.data = storage, .capacity = sizeof storage};
    lahar_f64_put_text(&canonical, *value_out);
    *is_canonical_out = canonical.size == text.size && memcmp(canonical.data, copy, text.size) == 0;
    return true;
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const uint8_t lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool lahar_uuid_parse(lahar_bytes text, lahar_uuid *uuid_out, bool *is_canonical_out)
{
    const uint8_t *p = text.data;
    if (text.size != 36) {
        return false;
    }
    *is_canonical_out = true;
    size_t at = 0;
    for (size_t i = 0; i < 36;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (p[i++] != '-') {
                return false;
            }
            continue;
        }
        const int high = hex_value(p[i]);
        const int low = hex_value(p[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        *is_canonical_out =
            *is_canonical_out && (p[i] < 'A' || p[i] > 'F') && (p[i + 1] < 'A' || p[i + 1] > 'F');
        uuid_out->bytes[at++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return true;
}

static bool parse_bool(lahar_bytes text, bool *value_out, bool *is_canonical_out)
{
    const char *p = text.data;
    *is_canonical_out = text.size > 1;
    if ((text.size == 4 && memcmp(p, "true", 4) == 0) || (text.size == 1 && *p == '1')) {
        *value_out = true;
        return true;
    }
    if ((text.size == 5 && memcmp(p, "false", 5) == 0) || (text.size == 1 && *p == '0')) {
        *value_out = false;
        return true;
    }
    return false;
}

unsigned lahar_time_fraction_digits(int64_t time_ns)
{
    if (time_ns % 1000 != 0) {
        return 9;
    }
    if (time_ns % 1000000 != 0) {
        return 6;
    }
    return time_ns % 1000000000 != 0 ? 3 : 0;
}

static bool parse_time(lahar_bytes text, int64_t *time_ns_out, bool *is_canonical_out)
{
    if (!lahar_time_parse(text, time_ns_out)) {
        return false;
    }
    unsigned fraction_digits;
    *is_canonical_out = lahar_time_is_canonical(text, *time_ns_out, &fraction_digits) &&
                        fraction_digits == lahar_time_fraction_digits(*time_ns_out);
    return true;
}

bool lahar_value_parse(lahar_bytes text, lahar_value *value_out, bool *is_canonical_out)
{
    bool is_negative;
    value_out->is_null = false;
    *is_canonical_out = true;
    switch (value_out->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        value_out->as.bytes = text;
        return true;
    case LAHAR_UUID:
        return lahar_uuid_parse(text, &value_out->as.uuid, is_canonical_out);
    case LAHAR_I64:
        return parse_i64(text, &value_out->as.i64, is_canonical_out);
    case LAHAR_U64:
        return parse_integer(text, &is_negative, &value_out->as.u64, is_canonical_out) &&
               !(is_negative && value_out->as.u64 != 0);
    case LAHAR_F64:
        return parse_f64(text, &value_out->as.f64, is_canonical_out);
    case LAHAR_BOOL:
        return parse_bool(text, &value_out->as.boolean, is_canonical_out);
    case LAHAR_TIME:
        return parse_time(text, &value_out->as.time_ns, is_canonical_out);
    default:
        return false;
    }
}

/* The decimal point of the host's locale, one or more bytes, becomes a dot. */
static void fix_decimal_point(char *number)
{
    char *point = number + 1;
    char *fraction = point + strcspn(point, "0123456789e");
    if (fraction > point) {
        *point = '.';
        memmove(point + 1, fraction, strlen(fraction) + 1);
    }
}

/* The fewest digits that read back as the same finite double, without trailing zeros:
 * d.ddd * 10^exponent. Returns their count. 15 digits always survive in a normal number, 17 always
 * suffice. */
static int shortest_digits(double magnitude, char digits_out[24], int *exponent_out)
{
    char text[48] = "";
    for (int precision = magnitude < 2.3e-308 ? 1 : 15; precision <= 17; precision++) {
        double again;
        (void)snprintf(text, sizeof text, "%.*e", precision - 1, magnitude);
        fix_decimal_point(text);
        if (read_double(text, &again) && again == magnitude) {
            break;
        }
    }
    const size_t mantissa_size = strcspn(text, "e");
    *exponent_out = (int)strtol(text + mantissa_size + 1, NULL, 10);
    int count = 0;
    for (size_t i = 0; i < mantissa_size; i++) {
        if (text[i] != '.') {
            digits_out[count++] = text[i];
        }
    }
    while (count > 1 && digits_out[count - 1] == '0') {
        count--;
    }
    return count;
}

void lahar_f64_put_text(struct lahar_buffer *buffer, double value)
{
    if (isnan(value)) {
        lahar_buffer_put(buffer, "nan", 3);
        return;
    }
    if (signbit(value)) {
        lahar_buffer_put_u8(buffer, '-');
    }
    if (isinf(value)) {
        lahar_buffer_put(buffer, "inf", 3);
        return;
    }
    char digits[24];
    int exponent;
    const int count = shortest_digits(fabs(value), digits, &exponent);
    /* Plain notation where that is short, as JavaScript does. */
    if (exponent >= 0 && exponent < 21) {
        for (int i = 0; i <= exponent || i < count; i++) {
            if (i == exponent + 1) {
                lahar_buffer_put_u8(buffer, '.');
            }
            lahar_buffer_put_u8(buffer, i < count ? (uint8_t)digits[i] : '0');
        }
    } else if (exponent < 0 && exponent >= -7) {
        lahar_buffer_put(buffer, "0.000000", (size_t)(1 - exponent));
        lahar_buffer_put(buffer, digits, (size_t)count);
    } else {
        lahar_buffer_put(buffer, digits, 1);
        if (count > 1) {
            lahar_buffer_put_u8(buffer, '.');
            lahar_buffer_put(buffer, digits + 1, (size_t)count - 1);
        }
        char suffix[8];
        const int suffix_size = snprintf(suffix, sizeof suffix, "e%+d", exponent);
        lahar_buffer_put(buffer, suffix, (size_t)suffix_size);
    }
}

void lahar_uuid_put_text(struct lahar_buffer *buffer, const lahar_uuid *uuid)
{
    static const char digits[] = "0123456789abcdef";
    char text[36];
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            text[at++] = '-';
        }
        text[at++] = digits[uuid->bytes[i] >> 4];
        text[at++] = digits[uuid->bytes[i] & 15];
    }
    lahar_buffer_put(buffer, text, sizeof text);
}

static void put_u64(struct lahar_buffer *buffer, uint64_t value, bool is_negative)
{
    char text[21];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    if (is_negative) {
        text[--at] = '-';
    }
    lahar_buffer_put(buffer, text + at, sizeof text - at);
}

void lahar_value_put_text(struct lahar_buffer *buffer, const lahar_value *value)
{
    char time[LAHAR_TIME_TEXT_SIZE_MAX];
    if (value->is_null) {
        return;
    }
    switch (value->type) {
    case LAHAR_KEYWORD:
    case LAHAR_TEXT:
    case LAHAR_BYTES:
        lahar_buffer_put(buffer, value->as.bytes.data, value->as.bytes.size);
        break;
    case LAHAR_UUID:
        lahar_uuid_put_text(buffer, &value->as.uuid);
        break;
    case LAHAR_I64:
        put_u64(buffer, value->as.i64 < 0 ? 0 - (uint64_t)value->as.i64 : (uint64_t)value->as.i64,
                value->as.i64 < 0);
        break;
    case LAHAR_U64:
        put_u64(buffer, value->as.u64, false);
        break;
    case LAHAR_F64:
        lahar_f64_put_text(buffer, value->as.f64);
        break;
    case LAHAR_BOOL:
        lahar_buffer_put(buffer, value->as.boolean ? "true" : "false", value->as.boolean ? 4 : 5);
        break;
    case LAHAR_TIME:
        lahar_buffer_put(buffer, time,
                         lahar_time_format(value->as.time_ns,
                                           lahar_time_fraction_digits(value->as.time_ns), time));
        break;
    default:
        break;
    }
}

void lahar_base64_put(struct lahar_buffer *buffer, lahar_bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = bytes.data;
    for (size_t i = 0; i < bytes.size; i += 3) {
        const size_t left = bytes.size - i;
        const uint32_t group = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                               (left > 2 ? p[i + 2] : 0);
        const char text[4] = {digits[group >> 18], digits[group >> 12 & 63],
                              left > 1 ? digits[group >> 6 & 63] : '=',
                              left > 2 ? digits[group & 63] : '='};
        lahar_buffer_put(buffer, text, sizeof text);
    }
}
