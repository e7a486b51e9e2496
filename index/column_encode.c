/* Writing columns. Block data that equals other block data is shared: content size and
 * file size, entry and lineage start are mostly the same numbers. */
#include "index/column_block.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/column.h"
#include "index/vector.h"
#include "io/base/error.h"

enum {
    BITMAP_SIZE = LAHAR_SHARD_COLUMN_BLOCK / 8
};

bool lahar_column_values_reserve(struct lahar_column_values *values, size_t count,
                                 const lahar_allocator *allocator)
{
    if (values->documents_capacity - values->count < count) {
        uint32_t *grown =
            lahar_vector_grow(allocator, values->documents, &values->documents_capacity,
                              values->count + count, sizeof *values->documents);
        if (grown == NULL) {
            return false;
        }
        values->documents = grown;
    }
    if (values->values_capacity - values->count < count) {
        uint64_t *grown = lahar_vector_grow(allocator, values->values, &values->values_capacity,
                                            values->count + count, sizeof *values->values);
        if (grown == NULL) {
            return false;
        }
        values->values = grown;
    }
    return true;
}

void lahar_column_values_deinit(struct lahar_column_values *values,
                                const lahar_allocator *allocator)
{
    lahar_release(allocator, values->documents);
    lahar_release(allocator, values->values);
    *values = (struct lahar_column_values){.count = 0};
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The largest number that divides the distance of every value from the minimum. */
static uint64_t common_divisor(const struct lahar_column_slice *block)
{
    uint64_t divisor = 0;
    for (size_t i = 0; i < block->count && divisor != 1; i++) {
        const uint64_t distance = block->values[i] - block->min;
        if (divisor == 0 || distance % divisor != 0) {
            divisor = greatest_common_divisor(distance, divisor);
        }
    }
    return divisor == 0 ? 1 : divisor;
}

static void put_positions(struct lahar_buffer *out, const struct lahar_column_slice *block)
{
    if (block->count * sizeof block->positions[0] < BITMAP_SIZE) {
        lahar_buffer_put(out, block->positions, block->count * sizeof block->positions[0]);
        return;
    }
    uint8_t bitmap[BITMAP_SIZE] = {0};
    for (size_t i = 0; i < block->count; i++) {
        bitmap[block->positions[i] / 8] |= (uint8_t)(1U << (block->positions[i] % 8));
    }
    lahar_buffer_put(out, bitmap, sizeof bitmap);
}

static void put_values(struct lahar_buffer *out, const struct lahar_column_slice *block,
                       uint64_t divisor, unsigned width)
{
    if (width == 0) {
        return;
    }
    struct lahar_bit_writer bits = {.out = out};
    for (size_t i = 0; i < block->count; i++) {
        const uint64_t distance = block->values[i] - block->min;
        lahar_bit_write(&bits, divisor == 1 ? distance : distance / divisor, width);
    }
    lahar_bit_finish(&bits);
}

void lahar_column_slice_begin(struct lahar_column_slice *slice)
{
    slice->count = 0;
    slice->min = UINT64_MAX;
    slice->max = 0;
}

void lahar_column_slice_add(struct lahar_column_slice *slice, uint16_t position, uint64_t value)
{
    slice->values[slice->count] = value;
    slice->positions[slice->count] = position;
    slice->count++;
    slice->min = value < slice->min ? value : slice->min;
    slice->max = value > slice->max ? value : slice->max;
}

void lahar_column_slice_encode(const struct lahar_column_slice *slice, size_t document_count,
                               struct lahar_buffer *out)
{
    const uint64_t divisor = common_divisor(slice);
    const unsigned width = lahar_bit_width((slice->max - slice->min) / divisor);
    enum lahar_column_kind kind = LAHAR_COLUMN_FULL;
    if (slice->count != document_count) {
        kind = slice->count * sizeof slice->positions[0] < BITMAP_SIZE ? LAHAR_COLUMN_POSITIONS
                                                                       : LAHAR_COLUMN_BITMAP;
    }
    lahar_buffer_put_u8(out, (uint8_t)kind);
    lahar_buffer_put_u8(out, (uint8_t)width);
    lahar_buffer_put_u16(out, (uint16_t)slice->count);
    lahar_buffer_put_varint(out, divisor);
    if (kind != LAHAR_COLUMN_FULL) {
        put_positions(out, slice);
    }
    put_values(out, slice, divisor, width);
}

void lahar_column_zone_put(struct lahar_buffer *zones, const struct lahar_column_slice *slice,
                           uint64_t offset, uint64_t size)
{
    const bool is_empty = slice->count == 0;
    lahar_buffer_put_u64(zones, is_empty ? 0 : slice->min);
    lahar_buffer_put_u64(zones, is_empty ? 0 : slice->max);
    lahar_buffer_put_u64(zones, is_empty ? 0 : offset << 16 | size);
}

/* Appends the block's data, if it has any, and its zone. */
static void put_block(struct lahar_list_writer *writer, const struct lahar_column_slice *slice,
                      size_t document_count, struct lahar_buffer *zones)
{
    struct lahar_buffer *out = writer->out;
    const size_t start = out->size;
    uint64_t offset = 0;
    uint64_t size = 0;
    if (slice->count != 0) {
        lahar_column_slice_encode(slice, document_count, out);
        size = out->size - start;
        offset = lahar_blob_intern(writer->blobs, out, writer->base, start, 1);
    }
    lahar_column_zone_put(zones, slice, offset, size);
}

/* Values by group, when all documents of a group have the same one or none of them has any;
 * false when that is not so, or memory is refused. */
static bool group_values(const struct lahar_list_writer *writer,
                         const struct lahar_column_values *values,
                         struct lahar_column_values *grouped)
{
    const struct lahar_group_map *map = writer->groups;
    const lahar_allocator *allocator = writer->out->allocator;
    /* Per group: its place in grouped + 1, and how many of its documents were met. */
    uint32_t *places = lahar_allocate_zeroed(allocator, map->group_count, sizeof *places);
    uint32_t *met = lahar_allocate_zeroed(allocator, map->group_count, sizeof *met);
    bool is_grouped = places != NULL && met != NULL;
    for (size_t i = 0; i < values->count && is_grouped; i++) {
        const uint32_t group = map->group_of[values->documents[i]];
        if (i > 0 && values->documents[i] == values->documents[i - 1]) {
            is_grouped = false;
        } else if (places[group] == 0) {
            is_grouped = lahar_column_values_add(grouped, group, values->values[i], allocator);
            places[group] = (uint32_t)grouped->count;
        } else {
            is_grouped = grouped->values[places[group] - 1] == values->values[i];
        }
        met[group]++;
    }
    for (uint32_t group = 0; group < map->group_count && is_grouped; group++) {
        is_grouped = met[group] == 0 || met[group] == map->sizes[group];
    }
    lahar_release(allocator, places);
    lahar_release(allocator, met);
    return is_grouped;
}

/* The blocks of a column of count documents (or groups), and the extras. */
static void put_column(struct lahar_list_writer *writer, const struct lahar_column_values *values,
                       uint64_t count, uint64_t low, uint64_t high, struct lahar_column *column_out)
{
    struct lahar_buffer *out = writer->out;
    struct lahar_buffer zones;
    struct lahar_buffer extras;
    lahar_buffer_init(&zones, out->allocator);
    lahar_buffer_init(&extras, out->allocator);
    struct lahar_column_slice block;
    size_t next = 0;
    for (uint64_t first = 0; first < count; first += LAHAR_SHARD_COLUMN_BLOCK) {
        const uint64_t left = count - first;
        const uint64_t size = left < LAHAR_SHARD_COLUMN_BLOCK ? left : LAHAR_SHARD_COLUMN_BLOCK;
        lahar_column_slice_begin(&block);
        uint32_t previous = UINT32_MAX;
        for (; next < values->count && values->documents[next] < first + size; next++) {
            const uint32_t document = values->documents[next];
            const uint64_t value = values->values[next];
            if (document == previous || value < low || value > high) {
                lahar_buffer_put_u32(&extras, document);
                lahar_buffer_put_u64(&extras, value);
                continue;
            }
            previous = document;
            lahar_column_slice_add(&block, (uint16_t)(document - first), value);
        }
        put_block(writer, &block, (size_t)size, &zones);
    }
    column_out->zones = out->size - writer->base;
    lahar_buffer_put(out, zones.data, zones.size);
    column_out->extras = out->size - writer->base;
    column_out->extra_count = extras.size / LAHAR_SHARD_EXTRA_SIZE;
    lahar_buffer_put(out, extras.data, extras.size);
    out->has_failed = out->has_failed || zones.has_failed || extras.has_failed;
    lahar_buffer_deinit(&zones);
    lahar_buffer_deinit(&extras);
}

void lahar_column_write(struct lahar_list_writer *writer, const struct lahar_column_values *values,
                        uint64_t low, uint64_t high, bool may_group,
                        struct lahar_column *column_out)
{
    struct lahar_column_values grouped = {.count = 0};
    column_out->is_grouped = may_group && writer->groups != NULL && values->count > 0 &&
                             group_values(writer, values, &grouped);
    if (column_out->is_grouped) {
        put_column(writer, &grouped, writer->groups->group_count, 0, UINT64_MAX, column_out);
    } else {
        put_column(writer, values, writer->document_count, low, high, column_out);
    }
    lahar_column_values_deinit(&grouped, writer->out->allocator);
}
