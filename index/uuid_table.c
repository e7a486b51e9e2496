/* Tables of uuids.
 *
 * Random uuids differ in their first bits, those made of time or of counters only further back:
 * the directory is addressed by the bits behind those that all have in common. A
 * directory that fits badly costs a longer binary search, never a wrong answer. Keys are aligned
 * and so never cross a page. */
#include "index/uuid_table.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/postings.h"
#include "index/shard_format.h"
#include "io/base/error.h"

enum {
    DIRECTORY_BITS_MAX = 28,
    /* log2 of the uuids that a directory entry stands for. */
    BUCKET_BITS = 4,
    REFERENCE_WIDTH_MAX = 56
};

/* Bits [skip, skip + bits) of a uuid. */
static uint32_t directory_index(const uint8_t *uuid, unsigned skip, unsigned bits)
{
    if (bits == 0) {
        return 0;
    }
    uint64_t high = 0;
    uint64_t low = 0;
    memcpy(&high, uuid, 8);
    memcpy(&low, uuid + 8, 8);
    high = __builtin_bswap64(high);
    low = __builtin_bswap64(low);
    uint64_t v = 0;
    if (skip >= 64) {
        v = low << (skip - 64);
    } else {
        v = high << skip | (skip == 0 ? 0 : low >> (64 - skip));
    }
    return (uint32_t)(v >> (64 - bits));
}

/* Leading bits that two uuids share; 127 at most. */
static unsigned common_bits(const uint8_t *a, const uint8_t *b)
{
    for (unsigned i = 0; i < LAHAR_SHARD_UUID_SIZE; i++) {
        if (a[i] != b[i]) {
            return i * 8 + (unsigned)__builtin_clz((unsigned)(a[i] ^ b[i])) - 24;
        }
    }
    return 127;
}

static void pad_to(struct lahar_buffer *out, size_t base, size_t alignment)
{
    while (!out->has_failed && (out->size - base) % alignment != 0) {
        lahar_buffer_put_u8(out, 0);
    }
}

static void put_directory(struct lahar_buffer *out, const uint8_t *keys, uint64_t count,
                          const struct lahar_uuid_table *table)
{
    uint64_t next = 0;
    for (uint64_t i = 0; i <= UINT64_C(1) << table->directory_bits; i++) {
        while (next < count && directory_index(keys + next * LAHAR_SHARD_UUID_SIZE,
                                               table->skipped_bits, table->directory_bits) < i) {
            next++;
        }
        lahar_buffer_put_u32(out, (uint32_t)next);
    }
}

/* The offset of what was put into out from start on. */
static uint64_t share(struct lahar_list_writer *writer, size_t start, uint64_t alignment)
{
    return writer->blobs == NULL
               ? (uint64_t)(size_t)(start - writer->base)
               : lahar_blob_intern(writer->blobs, writer->out, writer->base, start, alignment);
}

void lahar_uuid_table_write(struct lahar_list_writer *writer, const uint8_t *keys,
                            const uint64_t *references, uint64_t count,
                            struct lahar_uuid_table *table_out)
{
    struct lahar_buffer *out = writer->out;
    struct lahar_uuid_table table = {.count = count};
    uint64_t all = 0;
    for (uint64_t i = 0; i < count; i++) {
        all |= references[i];
    }
    table.reference_width = lahar_bit_width(all);
    LAHAR_ASSERT(table.reference_width <= REFERENCE_WIDTH_MAX);
    if (count > 1) {
        table.skipped_bits = common_bits(keys, keys + (count - 1) * LAHAR_SHARD_UUID_SIZE);
        const unsigned bits = lahar_bit_width(count);
        table.directory_bits = bits > BUCKET_BITS ? bits - BUCKET_BITS : 0;
        if (table.directory_bits > 128 - table.skipped_bits) {
            table.directory_bits = 128 - table.skipped_bits;
        }
    }
    /* Two fields may hold the same uuids, as an attribute that repeats the entity's does. */
    pad_to(out, writer->base, LAHAR_SHARD_UUID_SIZE);
    size_t start = out->size;
    lahar_buffer_put(out, keys, (size_t)count * LAHAR_SHARD_UUID_SIZE);
    table.keys = share(writer, start, LAHAR_SHARD_UUID_SIZE);
    start = out->size;
    put_directory(out, keys, count, &table);
    table.directory = share(writer, start, 1);
    start = out->size;
    struct lahar_bit_writer bits = {.out = out};
    for (uint64_t i = 0; i < count; i++) {
        lahar_bit_write(&bits, references[i], table.reference_width);
    }
    lahar_bit_finish(&bits);
    table.references = share(writer, start, 1);
    *table_out = table;
}

static lahar_status corrupt(lahar_error *error)
{
    return lahar_fail(error, LAHAR_CORRUPT, "a uuid table of an index shard is malformed");
}

static lahar_status reference_at(struct lahar_shard_pages *pages,
                                 const struct lahar_uuid_table *table, uint64_t index,
                                 uint64_t *reference_out, lahar_error *error)
{
    const uint64_t bit = index * table->reference_width;
    const uint64_t size = (bit % 8 + table->reference_width + 7) / 8;
    uint8_t bytes[8 + LAHAR_BITPACK_SLACK] = {0};
    LAHAR_TRY(
        lahar_shard_pages_copy(pages, table->references + bit / 8, bytes, (size_t)size, error));
    *reference_out = lahar_load_u64(bytes) >> (bit % 8) & lahar_width_mask(table->reference_width);
    return LAHAR_OK;
}

/* Finds the uuid among those of index low .. high; *index_out is high when it is not there. */
static lahar_status search(struct lahar_shard_pages *pages, const struct lahar_uuid_table *table,
                           const lahar_uuid *uuid, uint64_t low, uint64_t high, uint64_t *index_out,
                           lahar_error *error)
{
    enum {
        KEYS_A_PAGE = LAHAR_SHARD_PAGE_SIZE / LAHAR_SHARD_UUID_SIZE
    };
    *index_out = high;
    const uint64_t none = high;
    while (low < high) {
        /* All the probes that stay in the page of the middle use one view of it. */
        const uint64_t first_key = table->keys / LAHAR_SHARD_UUID_SIZE;
        const uint64_t middle = low + (high - low) / 2;
        const uint64_t page = (first_key + middle) / KEYS_A_PAGE * KEYS_A_PAGE;
        const uint64_t begin = page > first_key + low ? page - first_key : low;
        const uint64_t page_end = page + KEYS_A_PAGE - first_key;
        const uint64_t end = page_end < high ? page_end : high;
        struct lahar_page_view view;
        LAHAR_TRY(lahar_page_view_open(pages, table->keys + begin * LAHAR_SHARD_UUID_SIZE,
                                       (end - begin) * LAHAR_SHARD_UUID_SIZE, &view, error));
        uint64_t at = begin;
        uint64_t behind = end;
        while (at < behind) {
            const uint64_t probe = at + (behind - at) / 2;
            const int order = memcmp(view.data + (probe - begin) * LAHAR_SHARD_UUID_SIZE,
                                     uuid->bytes, LAHAR_SHARD_UUID_SIZE);
            if (order == 0) {
                lahar_page_view_close(pages, &view);
                *index_out = probe;
                return LAHAR_OK;
            }
            if (order < 0) {
                at = probe + 1;
            } else {
                behind = probe;
            }
        }
        lahar_page_view_close(pages, &view);
        if (at == begin && begin > low) {
            high = begin;
        } else if (at == end && end < high) {
            low = end;
        } else {
            break;
        }
    }
    *index_out = none;
    return LAHAR_OK;
}

static uint64_t bounds_place(const struct lahar_uuid_table *table, const lahar_uuid *uuid)
{
    return table->directory +
           (uint64_t)directory_index(uuid->bytes, table->skipped_bits, table->directory_bits) * 4;
}

void lahar_uuid_table_announce(struct lahar_shard_pages *pages,
                               const struct lahar_uuid_table *table, const lahar_uuid *uuid)
{
    if (table->count != 0) {
        lahar_shard_pages_announce(pages, bounds_place(table, uuid));
    }
}

lahar_status lahar_uuid_table_find(const struct lahar_list_reader *reader,
                                   const struct lahar_uuid_table *table, const lahar_uuid *uuid,
                                   struct lahar_docset *set, lahar_error *error)
{
    struct lahar_shard_pages *pages = reader->pages;
    if (table->count == 0) {
        return LAHAR_OK;
    }
    uint8_t bounds[8];
    LAHAR_TRY(
        lahar_shard_pages_copy(pages, bounds_place(table, uuid), bounds, sizeof bounds, error));
    const uint64_t low = lahar_load_u32(bounds);
    const uint64_t high = lahar_load_u32(bounds + 4);
    if (low > high || high > table->count) {
        return corrupt(error);
    }
    uint64_t index = high;
    LAHAR_TRY(search(pages, table, uuid, low, high, &index, error));
    if (index == high) {
        return LAHAR_OK;
    }
    uint64_t reference = 0;
    LAHAR_TRY(reference_at(pages, table, index, &reference, error));
    return lahar_list_read(reader, reference, set, error);
}

lahar_status lahar_uuid_table_at(struct lahar_shard_pages *pages,
                                 const struct lahar_uuid_table *table, uint64_t index,
                                 lahar_uuid *uuid_out, uint64_t *reference_out, lahar_error *error)
{
    LAHAR_ASSERT(index < table->count);
    LAHAR_TRY(lahar_shard_pages_copy(pages, table->keys + index * LAHAR_SHARD_UUID_SIZE,
                                     uuid_out->bytes, LAHAR_SHARD_UUID_SIZE, error));
    return reference_at(pages, table, index, reference_out, error);
}

/* The first uuid that is not below the one given. */
static lahar_status lower_bound(struct lahar_shard_pages *pages,
                                const struct lahar_uuid_table *table, const lahar_uuid *uuid,
                                uint64_t *index_out, lahar_error *error)
{
    uint64_t low = 0;
    uint64_t high = table->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        lahar_uuid key;
        LAHAR_TRY(lahar_shard_pages_copy(pages, table->keys + middle * LAHAR_SHARD_UUID_SIZE,
                                         key.bytes, LAHAR_SHARD_UUID_SIZE, error));
        if (memcmp(key.bytes, uuid->bytes, sizeof key.bytes) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *index_out = low;
    return LAHAR_OK;
}

lahar_status lahar_uuid_table_range(const struct lahar_list_reader *reader,
                                    const struct lahar_uuid_table *table, const lahar_uuid *low,
                                    const lahar_uuid *high, struct lahar_docset *set,
                                    lahar_error *error)
{
    uint64_t index = 0;
    LAHAR_TRY(lower_bound(reader->pages, table, low, &index, error));
    for (; index < table->count; index++) {
        lahar_uuid key;
        uint64_t reference = 0;
        LAHAR_TRY(lahar_uuid_table_at(reader->pages, table, index, &key, &reference, error));
        if (memcmp(key.bytes, high->bytes, sizeof key.bytes) > 0) {
            break;
        }
        LAHAR_TRY(lahar_list_read(reader, reference, set, error));
    }
    return LAHAR_OK;
}
