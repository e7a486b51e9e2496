/* Writing and asking filters of uuids. Uuids are anything but random, so all of their bits are
 * mixed into a hash first; each layer mixes that again. */
#include "index/uuid_filter.h"

#include <string.h>

#include "index/shard_format.h"
#include "io/base/bytes.h"
#include "io/base/error.h"

enum {
    UUIDS_MIN = 16,      /* the tables of fewer are a page or two */
    BITS_A_UUID = 12,    /* 5 of 1,000 absent uuids pass then */
    NEAR_BITS_LEAST = 8, /* a uuid, of a near layer that stands alone; 25 of 1,000 pass */
    PROBES_MAX = 7,
    BLOCK_BITS = LAHAR_FILTER_BLOCK_SIZE * 8,
    PLACE_BITS = 9, /* of a bit in its block */
    /* Whole pages that the opening read holds beside a directory of usual size. */
    NEAR_SIZE_MAX = 3 * LAHAR_SHARD_PAGE_SIZE,
    /* A larger near layer begins with a page, or pages might be needed that hold other things
     * and reach beyond the opening read. */
    UNALIGNED_SIZE_MAX = 2 * LAHAR_SHARD_PAGE_SIZE,
    BLOCKS_MAX = 1 << 28 /* what the trailer has room for */
};

static const uint64_t FACTOR_A = UINT64_C(0x9e3779b97f4a7c15);
static const uint64_t FACTOR_B = UINT64_C(0xbf58476d1ce4e5b9);
static const uint64_t FACTOR_C = UINT64_C(0x94d049bb133111eb);

static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 32) * FACTOR_B;
    v = (v ^ v >> 29) * FACTOR_C;
    return v ^ v >> 32;
}

static uint64_t hash_uuid(const uint8_t *uuid)
{
    return mix(lahar_load_u64(uuid) * FACTOR_A + lahar_load_u64(uuid + 8));
}

/* Where a uuid is in a layer: its block, and the places of its bits in there. */
struct spot {
    uint64_t block;
    uint64_t places; /* PLACE_BITS each, from bit 1 on */
};

static struct spot spot_of(uint64_t layer_hash, uint32_t block_count)
{
    return (struct spot){.block = (layer_hash >> 32) * block_count >> 32,
                         .places = layer_hash * FACTOR_B >> 1};
}

static uint64_t far_hash(uint64_t hash)
{
    return mix(hash + FACTOR_A);
}

/* --- writing ------------------------------------------------------------------------------- */

void lahar_filter_writer_init(struct lahar_filter_writer *writer, const lahar_allocator *allocator)
{
    lahar_buffer_init(&writer->hashes, allocator);
    lahar_buffer_init(&writer->fields, allocator);
}

void lahar_filter_writer_deinit(struct lahar_filter_writer *writer)
{
    lahar_buffer_deinit(&writer->hashes);
    lahar_buffer_deinit(&writer->fields);
}

/* Whether the hashes from start on are those of a field before. */
static bool are_there(const struct lahar_filter_writer *writer, size_t start)
{
    const size_t size = writer->hashes.size - start;
    uint64_t begin = 0;
    for (size_t i = 0; i < writer->fields.size; i += sizeof(uint64_t)) {
        const uint64_t end = lahar_load_u64(writer->fields.data + i);
        if (end - begin == size &&
            memcmp(writer->hashes.data + begin, writer->hashes.data + start, size) == 0) {
            return true;
        }
        begin = end;
    }
    return false;
}

void lahar_filter_writer_add(struct lahar_filter_writer *writer, const uint8_t *keys,
                             uint64_t count)
{
    const size_t start = writer->hashes.size;
    if (count == 0 || !lahar_buffer_reserve(&writer->hashes, (size_t)count * sizeof(uint64_t))) {
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        lahar_buffer_put_u64(&writer->hashes, hash_uuid(keys + i * LAHAR_SHARD_UUID_SIZE));
    }
    /* Two fields may hold the same uuids, as an attribute that repeats the entity's does. */
    if (are_there(writer, start)) {
        writer->hashes.size = start;
        return;
    }
    lahar_buffer_put_u64(&writer->fields, writer->hashes.size);
}

/* Of 0.69 times the bits a uuid has the fewest pass. */
static struct lahar_filter_layer layer_of(uint64_t block_count, uint64_t uuid_count)
{
    const uint64_t bits = block_count * BLOCK_BITS;
    const uint64_t probes = (bits * 69 + uuid_count * 50) / (uuid_count * 100);
    struct lahar_filter_layer layer = {.block_count = (uint32_t)block_count, .probe_count = 1};
    if (probes > 1) {
        layer.probe_count = probes < PROBES_MAX ? (uint32_t)probes : (uint32_t)PROBES_MAX;
    }
    return layer;
}

static struct lahar_uuid_filter filter_of(uint64_t uuid_count)
{
    const uint64_t near_max = NEAR_SIZE_MAX / LAHAR_FILTER_BLOCK_SIZE;
    uint64_t blocks = (uuid_count * BITS_A_UUID + BLOCK_BITS - 1) / BLOCK_BITS;
    struct lahar_uuid_filter filter = {.near = {.block_count = 0}};
    blocks = blocks < BLOCKS_MAX ? blocks : (uint64_t)BLOCKS_MAX;
    filter.near = layer_of(blocks < near_max ? blocks : near_max, uuid_count);
    if (near_max * BLOCK_BITS < uuid_count * NEAR_BITS_LEAST) {
        filter.far = layer_of(blocks - near_max, uuid_count);
    }
    return filter;
}

static void set_bits(uint8_t *layer, const struct lahar_filter_layer *shape, uint64_t layer_hash)
{
    struct spot spot = spot_of(layer_hash, shape->block_count);
    uint8_t *block = layer + spot.block * LAHAR_FILTER_BLOCK_SIZE;
    for (uint32_t i = 0; i < shape->probe_count; i++) {
        const unsigned bit = (unsigned)(spot.places & (BLOCK_BITS - 1));
        block[bit / 8] |= (uint8_t)(1U << bit % 8);
        spot.places >>= PLACE_BITS;
    }
}

/* Bytes before the filter, so that no block crosses a page and a large near layer begins one. */
static uint64_t padding_before(const struct lahar_uuid_filter *filter, uint64_t place)
{
    const uint64_t near_size = (uint64_t)filter->near.block_count * LAHAR_FILTER_BLOCK_SIZE;
    const uint64_t far_size = (uint64_t)filter->far.block_count * LAHAR_FILTER_BLOCK_SIZE;
    const uint64_t unit = near_size > UNALIGNED_SIZE_MAX ? (uint64_t)LAHAR_SHARD_PAGE_SIZE
                                                         : (uint64_t)LAHAR_FILTER_BLOCK_SIZE;
    const uint64_t behind = (place + far_size) % unit;
    return behind == 0 ? 0 : unit - behind;
}

bool lahar_filter_writer_write(struct lahar_filter_writer *writer, struct lahar_buffer *out,
                               uint64_t place, struct lahar_uuid_filter *filter_out)
{
    const uint64_t count = writer->hashes.size / sizeof(uint64_t);
    *filter_out = (struct lahar_uuid_filter){.near = {.block_count = 0}};
    if (writer->hashes.has_failed || writer->fields.has_failed) {
        return false;
    }
    if (count < UUIDS_MIN) {
        return true;
    }
    const struct lahar_uuid_filter filter = filter_of(count);
    const size_t padding = (size_t)padding_before(&filter, place);
    const size_t size = padding + (size_t)lahar_uuid_filter_size(&filter);
    if (!lahar_buffer_reserve(out, size)) {
        return false;
    }
    memset(out->data + out->size, 0, size);
    uint8_t *far = out->data + out->size + padding;
    uint8_t *near = far + (size_t)filter.far.block_count * LAHAR_FILTER_BLOCK_SIZE;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t hash = lahar_load_u64(writer->hashes.data + i * sizeof hash);
        set_bits(near, &filter.near, hash);
        if (filter.far.block_count != 0) {
            set_bits(far, &filter.far, far_hash(hash));
        }
    }
    out->size += size;
    *filter_out = filter;
    return true;
}

/* --- asking -------------------------------------------------------------------------------- */

uint64_t lahar_uuid_filter_size(const struct lahar_uuid_filter *filter)
{
    return ((uint64_t)filter->near.block_count + filter->far.block_count) * LAHAR_FILTER_BLOCK_SIZE;
}

static bool layer_is_valid(const struct lahar_filter_layer *layer)
{
    return layer->block_count == 0 ? layer->probe_count == 0
                                   : layer->probe_count >= 1 && layer->probe_count <= PROBES_MAX;
}

bool lahar_uuid_filter_is_valid(const struct lahar_uuid_filter *filter, uint64_t body_size)
{
    if (!layer_is_valid(&filter->near) || !layer_is_valid(&filter->far)) {
        return false;
    }
    if (filter->near.block_count == 0) {
        return filter->far.block_count == 0;
    }
    return body_size % LAHAR_FILTER_BLOCK_SIZE == 0 &&
           lahar_uuid_filter_size(filter) + LAHAR_SHARD_HEADER_SIZE <= body_size;
}

/* Where a block is in the shard; the layer ends at end. */
static uint64_t block_place(const struct lahar_filter_layer *layer, uint64_t end, uint64_t block)
{
    return end - (layer->block_count - block) * LAHAR_FILTER_BLOCK_SIZE;
}

/* The layer ends at end of the shard. */
static lahar_status ask_layer(struct lahar_shard_pages *pages,
                              const struct lahar_filter_layer *layer, uint64_t end,
                              uint64_t layer_hash, bool *may_out, lahar_error *error)
{
    struct spot spot = spot_of(layer_hash, layer->block_count);
    struct lahar_page_view view;
    LAHAR_TRY(lahar_page_view_open(pages, block_place(layer, end, spot.block),
                                   LAHAR_FILTER_BLOCK_SIZE, &view, error));
    uint8_t all = 1;
    for (uint32_t i = 0; i < layer->probe_count; i++) {
        const unsigned bit = (unsigned)(spot.places & (BLOCK_BITS - 1));
        all &= (uint8_t)(view.data[bit / 8] >> bit % 8);
        spot.places >>= PLACE_BITS;
    }
    lahar_page_view_close(pages, &view);
    *may_out = all != 0;
    return LAHAR_OK;
}

/* Where the far layer ends. */
static uint64_t far_end(const struct lahar_shard_pages *pages,
                        const struct lahar_uuid_filter *filter)
{
    return pages->body_size - (uint64_t)filter->near.block_count * LAHAR_FILTER_BLOCK_SIZE;
}

void lahar_uuid_filter_announce(struct lahar_shard_pages *pages,
                                const struct lahar_uuid_filter *filter, const lahar_uuid *uuid)
{
    const uint64_t hash = hash_uuid(uuid->bytes);
    bool may_hold = false;
    if (filter->far.block_count != 0 &&
        ask_layer(pages, &filter->near, pages->body_size, hash, &may_hold, NULL) == LAHAR_OK &&
        may_hold) {
        const struct spot spot = spot_of(far_hash(hash), filter->far.block_count);
        lahar_shard_pages_announce(pages,
                                   block_place(&filter->far, far_end(pages, filter), spot.block));
    }
}

lahar_status lahar_uuid_filter_ask(struct lahar_shard_pages *pages,
                                   const struct lahar_uuid_filter *filter, const lahar_uuid *uuid,
                                   bool *may_out, lahar_error *error)
{
    *may_out = true;
    if (filter->near.block_count == 0) {
        return LAHAR_OK;
    }
    const uint64_t hash = hash_uuid(uuid->bytes);
    LAHAR_TRY(ask_layer(pages, &filter->near, pages->body_size, hash, may_out, error));
    if (!*may_out || filter->far.block_count == 0) {
        return LAHAR_OK;
    }
    return ask_layer(pages, &filter->far, far_end(pages, filter), far_hash(hash), may_out, error);
}
