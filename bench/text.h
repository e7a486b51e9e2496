/* Text put together without printf: a generator that formats as fast as the
 * store appends would otherwise be what is measured. The caller sees to the
 * room; every function returns where the text ends. */
#ifndef LAHAR_BENCH_TEXT_H
#define LAHAR_BENCH_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline char *text_bytes(char *at, const void *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

static inline char *text_string(char *at, const char *string)
{
    return text_bytes(at, string, strlen(string));
}

static inline char *text_decimal(char *at, uint64_t value)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (count > 0) {
        *at++ = digits[--count];
    }
    return at;
}

/* The last width digits, with zeros in front. */
static inline char *text_padded(char *at, uint64_t value, size_t width)
{
    for (size_t i = width; i > 0; i--) {
        at[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + width;
}

static inline char *text_hex(char *at, uint64_t value, size_t width)
{
    for (size_t i = width; i > 0; i--) {
        at[i - 1] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    return at + width;
}

/* 36 characters. */
static inline char *text_uuid(char *at, const uint8_t bytes[16])
{
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        at = text_hex(at, bytes[i], 2);
    }
    return at;
}

#endif
