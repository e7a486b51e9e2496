#include "engine/segment/block_format.h"

#include <string.h>

#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    OFFSET_MAGIC = 0,
    OFFSET_VERSION = 4,
    OFFSET_HEADER_SIZE = 6,
    OFFSET_FLAGS = 8,
    OFFSET_SIZE = 12,
    OFFSET_CODEC = 16,
    OFFSET_CIPHER = 17,
    OFFSET_KEY_ID = 20,
    OFFSET_ROW_COUNT = 24,
    OFFSET_STREAM = 28,
    OFFSET_FIRST_ID = 32,
    OFFSET_LAST_ID = 40,
    OFFSET_RAW_SIZE = 48,
    OFFSET_TIME_MIN = 56,
    OFFSET_TIME_MAX = 64,
    OFFSET_ARRIVAL_MIN = 72,
    OFFSET_ARRIVAL_MAX = 80,
    OFFSET_GROUP_COUNT = 88,
    OFFSET_IMAGE_SIZE = 92,
    OFFSET_STRUCTURE_SIZE = 96,
    OFFSET_CHECKSUM = 124
};

static uint32_t header_checksum(const uint8_t *header, const uint8_t *table, size_t table_size)
{
    return lahar_crc32c(lahar_crc32c(0, header, OFFSET_CHECKSUM), table, table_size);
}

void lahar_block_header_write(uint8_t to[LAHAR_BLOCK_HEADER_SIZE],
                              const struct lahar_block_header *header, const uint8_t *table)
{
    memset(to, 0, LAHAR_BLOCK_HEADER_SIZE);
    lahar_store_u32(to + OFFSET_MAGIC, LAHAR_BLOCK_MAGIC);
    lahar_store_u16(to + OFFSET_VERSION, LAHAR_BLOCK_VERSION);
    lahar_store_u16(to + OFFSET_HEADER_SIZE, LAHAR_BLOCK_HEADER_SIZE);
    lahar_store_u32(to + OFFSET_FLAGS, header->flags);
    lahar_store_u32(to + OFFSET_SIZE, header->size);
    to[OFFSET_CODEC] = header->codec;
    to[OFFSET_CIPHER] = header->cipher;
    lahar_store_u32(to + OFFSET_KEY_ID, header->key_id);
    lahar_store_u32(to + OFFSET_ROW_COUNT, header->row_count);
    lahar_store_u32(to + OFFSET_STREAM, header->stream);
    lahar_store_u64(to + OFFSET_FIRST_ID, header->first_id);
    lahar_store_u64(to + OFFSET_LAST_ID, header->last_id);
    lahar_store_u64(to + OFFSET_RAW_SIZE, header->raw_size);
    lahar_store_u64(to + OFFSET_TIME_MIN, (uint64_t)header->time_min_ns);
    lahar_store_u64(to + OFFSET_TIME_MAX, (uint64_t)header->time_max_ns);
    lahar_store_u64(to + OFFSET_ARRIVAL_MIN, (uint64_t)header->arrival_min_ns);
    lahar_store_u64(to + OFFSET_ARRIVAL_MAX, (uint64_t)header->arrival_max_ns);
    lahar_store_u32(to + OFFSET_GROUP_COUNT, header->group_count);
    lahar_store_u32(to + OFFSET_IMAGE_SIZE, header->image_size);
    lahar_store_u32(to + OFFSET_STRUCTURE_SIZE, header->structure_size);
    lahar_store_u32(
        to + OFFSET_CHECKSUM,
        header_checksum(to, table, (size_t)header->group_count * LAHAR_BLOCK_GROUP_SIZE));
}

lahar_status lahar_block_header_read(const uint8_t *data, size_t size,
                                     struct lahar_block_header *header_out, lahar_error *error)
{
    if (size < LAHAR_BLOCK_HEADER_SIZE ||
        lahar_load_u32(data + OFFSET_MAGIC) != LAHAR_BLOCK_MAGIC) {
        return lahar_fail(error, LAHAR_CORRUPT, "no block begins here");
    }
    const uint16_t version = lahar_load_u16(data + OFFSET_VERSION);
    if (version != LAHAR_BLOCK_VERSION ||
        lahar_load_u16(data + OFFSET_HEADER_SIZE) != LAHAR_BLOCK_HEADER_SIZE) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "a block has format version %u", version);
    }
    *header_out = (struct lahar_block_header){
        .flags = lahar_load_u32(data + OFFSET_FLAGS),
        .size = lahar_load_u32(data + OFFSET_SIZE),
        .codec = data[OFFSET_CODEC],
        .cipher = data[OFFSET_CIPHER],
        .key_id = lahar_load_u32(data + OFFSET_KEY_ID),
        .row_count = lahar_load_u32(data + OFFSET_ROW_COUNT),
        .stream = lahar_load_u32(data + OFFSET_STREAM),
        .first_id = lahar_load_u64(data + OFFSET_FIRST_ID),
        .last_id = lahar_load_u64(data + OFFSET_LAST_ID),
        .raw_size = lahar_load_u64(data + OFFSET_RAW_SIZE),
        .time_min_ns = (int64_t)lahar_load_u64(data + OFFSET_TIME_MIN),
        .time_max_ns = (int64_t)lahar_load_u64(data + OFFSET_TIME_MAX),
        .arrival_min_ns = (int64_t)lahar_load_u64(data + OFFSET_ARRIVAL_MIN),
        .arrival_max_ns = (int64_t)lahar_load_u64(data + OFFSET_ARRIVAL_MAX),
        .group_count = lahar_load_u32(data + OFFSET_GROUP_COUNT),
        .image_size = lahar_load_u32(data + OFFSET_IMAGE_SIZE),
        .structure_size = lahar_load_u32(data + OFFSET_STRUCTURE_SIZE),
    };
    if ((header_out->flags & ~(uint32_t)LAHAR_BLOCK_FEATURES) != 0 ||
        header_out->codec > LAHAR_CODEC_DEFLATE || header_out->cipher != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED,
                          "a block uses codec %u, cipher %u, features 0x%x", header_out->codec,
                          header_out->cipher, header_out->flags);
    }
    const uint64_t table_end =
        LAHAR_BLOCK_HEADER_SIZE + (uint64_t)header_out->group_count * LAHAR_BLOCK_GROUP_SIZE;
    if (header_out->group_count > LAHAR_BLOCK_GROUP_COUNT_MAX || header_out->size < table_end ||
        header_out->row_count == 0 || header_out->first_id > header_out->last_id ||
        header_out->last_id - header_out->first_id < header_out->row_count - 1 ||
        header_out->structure_size > header_out->image_size ||
        header_out->image_size / LAHAR_BLOCK_EXPANSION_MAX > header_out->size) {
        return lahar_fail(error, LAHAR_CORRUPT, "a block's header contradicts itself");
    }
    return LAHAR_OK;
}

lahar_status lahar_block_header_check(const uint8_t *data, const struct lahar_block_header *header,
                                      lahar_error *error)
{
    const uint32_t found = header_checksum(data, data + LAHAR_BLOCK_HEADER_SIZE,
                                           (size_t)header->group_count * LAHAR_BLOCK_GROUP_SIZE);
    if (found != lahar_load_u32(data + OFFSET_CHECKSUM)) {
        return lahar_fail(error, LAHAR_CORRUPT, "a block's header fails its checksum");
    }
    return LAHAR_OK;
}
