/* Little-endian integers, LEB128 varints and bounds-checked reading. */
#ifndef LAHAR_BASE_BYTES_H
#define LAHAR_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t lahar_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t lahar_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t lahar_load_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void lahar_store_u16(void *p, uint16_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void lahar_store_u32(void *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void lahar_store_u64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Copies without a call for the sizes that most values have: a library memcpy of unknown size costs
 * as much as what else is done with a value. Returns the byte behind. */
static inline uint8_t *lahar_copy_short(uint8_t *to, const void *from, size_t size)
{
    const uint8_t *source = (const uint8_t *)from;
    if (size > 64) {
        memcpy(to, source, size);
    } else if (size > 32) {
        memcpy(to, source, 32);
        memcpy(to + size - 32, source + size - 32, 32);
    } else if (size >= 16) {
        memcpy(to, source, 16);
        memcpy(to + size - 16, source + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, source, 8);
        memcpy(to + size - 8, source + size - 8, 8);
    } else if (size >= 4) {
        memcpy(to, source, 4);
        memcpy(to + size - 4, source + size - 4, 4);
    } else if (size != 0) {
        to[0] = source[0];
        to[size / 2] = source[size / 2];
        to[size - 1] = source[size - 1];
    }
    return to + size;
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the stored formats are little-endian; this host needs byte swaps in bytes.h"
#endif

enum {
    LAHAR_VARINT_SIZE_MAX = 10
};

/* Writes 1..10 bytes at p and returns the byte behind them. */
static inline uint8_t *lahar_put_varint(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static inline size_t lahar_varint_size(uint64_t v)
{
    size_t size = 1;
    while (v >= 0x80) {
        v >>= 7;
        size++;
    }
    return size;
}

static inline uint64_t lahar_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t lahar_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A reader over bytes that are not trusted: the first read beyond the end sets
 * failed, and from then on every read returns zero. Check failed once at the end,
 * and before a value that was read is used as a count or an index. */
struct lahar_reader {
    const uint8_t *next;
    const uint8_t *end;
    bool failed;
};

static inline struct lahar_reader lahar_reader_of(const void *data, size_t size)
{
    /* No bytes may come as NULL, to which C allows no offset, not even 0. */
    static const uint8_t nothing[1] = {0};
    const uint8_t *p = size == 0 ? nothing : data;
    return (struct lahar_reader){p, p + size, false};
}

static inline size_t lahar_reader_left(const struct lahar_reader *reader)
{
    return (size_t)(reader->end - reader->next);
}

static inline const uint8_t *lahar_read_bytes(struct lahar_reader *reader, uint64_t size)
{
    if (reader->failed || size > lahar_reader_left(reader)) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *p = reader->next;
    reader->next += size;
    return p;
}

static inline uint8_t lahar_read_u8(struct lahar_reader *reader)
{
    const uint8_t *p = lahar_read_bytes(reader, 1);
    return p == NULL ? 0 : *p;
}

static inline uint16_t lahar_read_u16(struct lahar_reader *reader)
{
    const uint8_t *p = lahar_read_bytes(reader, 2);
    return p == NULL ? 0 : lahar_load_u16(p);
}

static inline uint32_t lahar_read_u32(struct lahar_reader *reader)
{
    const uint8_t *p = lahar_read_bytes(reader, 4);
    return p == NULL ? 0 : lahar_load_u32(p);
}

static inline uint64_t lahar_read_u64(struct lahar_reader *reader)
{
    const uint8_t *p = lahar_read_bytes(reader, 8);
    return p == NULL ? 0 : lahar_load_u64(p);
}

/* Refuses more than ten bytes and bits beyond the 64th. */
static inline uint64_t lahar_read_varint(struct lahar_reader *reader)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        const uint8_t *p = lahar_read_bytes(reader, 1);
        if (p == NULL) {
            return 0;
        }
        if (shift == 63 && *p > 1) {
            break;
        }
        v |= (uint64_t)(*p & 0x7f) << shift;
        if (*p < 0x80) {
            return v;
        }
    }
    reader->failed = true;
    return 0;
}

#endif
