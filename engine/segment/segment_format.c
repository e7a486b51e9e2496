#include "engine/segment/segment_format.h"

#include <stdio.h>
#include <string.h>

#include "io/base/bytes.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    EVENTS_MAGIC = 0x5645484c, /* "LHEV" */
    FOOTER_MAGIC = 0x4645484c, /* "LHEF" */
    TOC_MAGIC = 0x4354484c,    /* "LHTC" */
    FORMAT_VERSION = 1,
    INFO_OFFSET = 16,
    HEADER_CHECKSUM_OFFSET = LAHAR_EVENTS_HEADER_SIZE - 4,
    INFO_CHECKSUM_OFFSET = LAHAR_EVENTS_FOOTER_SIZE - 4
};

_Static_assert((int)LAHAR_EVENTS_FOOTER_SIZE == (int)LAHAR_TOC_HEADER_SIZE, "one layout");

void lahar_segment_file_name(const struct lahar_segment_info *info, const char *suffix,
                             char name_out[LAHAR_FILE_NAME_SIZE])
{
    (void)snprintf(name_out, LAHAR_FILE_NAME_SIZE, "%020llu-%020llu.%08llu%s",
                   (unsigned long long)info->first_id, (unsigned long long)info->last_id,
                   (unsigned long long)info->number, suffix);
}

/* Magic, version, size, and required features, of which there are none yet. */
static void put_start(uint8_t *to, uint32_t magic, uint16_t size)
{
    lahar_store_u32(to, magic);
    lahar_store_u16(to + 4, FORMAT_VERSION);
    lahar_store_u16(to + 6, size);
}

/* A newer version may have its checksum elsewhere, so the version comes first. */
static lahar_status check_start(const uint8_t *from, uint32_t magic, uint16_t size,
                                const char *what, lahar_error *error)
{
    if (lahar_load_u32(from) != magic) {
        return lahar_fail(error, LAHAR_CORRUPT, "%s has no magic number", what);
    }
    if (lahar_load_u16(from + 4) != FORMAT_VERSION || lahar_load_u16(from + 6) != size) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "%s has format version %u", what,
                          lahar_load_u16(from + 4));
    }
    if (lahar_crc32c(0, from, size - 4u) != lahar_load_u32(from + size - 4)) {
        return lahar_fail(error, LAHAR_CORRUPT, "%s fails its checksum", what);
    }
    if (lahar_load_u32(from + 8) != 0) {
        return lahar_fail(error, LAHAR_UNSUPPORTED, "%s needs the features 0x%x", what,
                          lahar_load_u32(from + 8));
    }
    return LAHAR_OK;
}

void lahar_events_header_write(uint8_t to[LAHAR_EVENTS_HEADER_SIZE],
                               const struct lahar_segment_info *info)
{
    memset(to, 0, LAHAR_EVENTS_HEADER_SIZE);
    put_start(to, EVENTS_MAGIC, LAHAR_EVENTS_HEADER_SIZE);
    lahar_store_u64(to + 16, info->number);
    lahar_store_u32(to + 24, info->stream);
    lahar_store_u32(to + HEADER_CHECKSUM_OFFSET, lahar_crc32c(0, to, HEADER_CHECKSUM_OFFSET));
}

lahar_status lahar_events_header_check(const uint8_t from[LAHAR_EVENTS_HEADER_SIZE],
                                       const struct lahar_segment_info *info, lahar_error *error)
{
    LAHAR_TRY(check_start(from, EVENTS_MAGIC, LAHAR_EVENTS_HEADER_SIZE,
                          "the header of an event file", error));
    if (lahar_load_u64(from + 16) != info->number || lahar_load_u32(from + 24) != info->stream) {
        return lahar_fail(error, LAHAR_CORRUPT,
                          "an event file has another number or stream inside");
    }
    return LAHAR_OK;
}

static void put_info(uint8_t *to, const struct lahar_segment_info *info)
{
    lahar_store_u64(to, info->first_id);
    lahar_store_u64(to + 8, info->last_id);
    lahar_store_u64(to + 16, info->number);
    lahar_store_u32(to + 24, info->stream);
    lahar_store_u32(to + 28, info->block_count);
    lahar_store_u64(to + 32, info->event_count);
    lahar_store_u64(to + 40, (uint64_t)info->time_min_ns);
    lahar_store_u64(to + 48, (uint64_t)info->time_max_ns);
    lahar_store_u64(to + 56, (uint64_t)info->arrival_min_ns);
    lahar_store_u64(to + 64, (uint64_t)info->arrival_max_ns);
    lahar_store_u64(to + 72, info->raw_bytes);
    lahar_store_u64(to + 80, info->file_bytes);
    lahar_store_u64(to + 88, info->toc_bytes);
    lahar_store_u64(to + 96, info->group_first_id);
    lahar_store_u64(to + 104, info->group_end_id);
    lahar_store_u32(to + 112, info->group_file_count);
}

static void get_info(const uint8_t *from, struct lahar_segment_info *info_out)
{
    *info_out = (struct lahar_segment_info){
        .first_id = lahar_load_u64(from),
        .last_id = lahar_load_u64(from + 8),
        .number = lahar_load_u64(from + 16),
        .stream = lahar_load_u32(from + 24),
        .block_count = lahar_load_u32(from + 28),
        .event_count = lahar_load_u64(from + 32),
        .time_min_ns = (int64_t)lahar_load_u64(from + 40),
        .time_max_ns = (int64_t)lahar_load_u64(from + 48),
        .arrival_min_ns = (int64_t)lahar_load_u64(from + 56),
        .arrival_max_ns = (int64_t)lahar_load_u64(from + 64),
        .raw_bytes = lahar_load_u64(from + 72),
        .file_bytes = lahar_load_u64(from + 80),
        .toc_bytes = lahar_load_u64(from + 88),
        .group_first_id = lahar_load_u64(from + 96),
        .group_end_id = lahar_load_u64(from + 104),
        .group_file_count = lahar_load_u32(from + 112),
    };
}

static void put_info_record(uint8_t *to, uint32_t magic, const struct lahar_segment_info *info)
{
    memset(to, 0, LAHAR_EVENTS_FOOTER_SIZE);
    put_start(to, magic, LAHAR_EVENTS_FOOTER_SIZE);
    put_info(to + INFO_OFFSET, info);
    lahar_store_u32(to + INFO_CHECKSUM_OFFSET, lahar_crc32c(0, to, INFO_CHECKSUM_OFFSET));
}

void lahar_events_footer_write(uint8_t to[LAHAR_EVENTS_FOOTER_SIZE],
                               const struct lahar_segment_info *info)
{
    put_info_record(to, FOOTER_MAGIC, info);
}

lahar_status lahar_events_footer_read(const uint8_t from[LAHAR_EVENTS_FOOTER_SIZE],
                                      struct lahar_segment_info *info_out, lahar_error *error)
{
    LAHAR_TRY(check_start(from, FOOTER_MAGIC, LAHAR_EVENTS_FOOTER_SIZE,
                          "the footer of an event file", error));
    get_info(from + INFO_OFFSET, info_out);
    return LAHAR_OK;
}

static void put_entry(uint8_t *to, const struct lahar_block_info *block)
{
    lahar_store_u64(to, block->first_id);
    lahar_store_u64(to + 8, block->last_id);
    lahar_store_u64(to + 16, block->offset);
    lahar_store_u32(to + 24, block->size);
    lahar_store_u32(to + 28, block->row_count);
    lahar_store_u32(to + 32, block->first_ordinal);
    lahar_store_u32(to + 36, block->checksum);
    lahar_store_u64(to + 40, (uint64_t)block->time_min_ns);
    lahar_store_u64(to + 48, (uint64_t)block->time_max_ns);
    lahar_store_u64(to + 56, (uint64_t)block->arrival_min_ns);
    lahar_store_u64(to + 64, (uint64_t)block->arrival_max_ns);
}

static void get_entry(const uint8_t *from, struct lahar_block_info *block_out)
{
    *block_out = (struct lahar_block_info){
        .first_id = lahar_load_u64(from),
        .last_id = lahar_load_u64(from + 8),
        .offset = lahar_load_u64(from + 16),
        .size = lahar_load_u32(from + 24),
        .row_count = lahar_load_u32(from + 28),
        .first_ordinal = lahar_load_u32(from + 32),
        .checksum = lahar_load_u32(from + 36),
        .time_min_ns = (int64_t)lahar_load_u64(from + 40),
        .time_max_ns = (int64_t)lahar_load_u64(from + 48),
        .arrival_min_ns = (int64_t)lahar_load_u64(from + 56),
        .arrival_max_ns = (int64_t)lahar_load_u64(from + 64),
    };
}

void lahar_toc_write(struct lahar_buffer *to, const struct lahar_segment_info *info,
                     const struct lahar_block_info *blocks)
{
    const size_t start = to->size;
    uint8_t header[LAHAR_TOC_HEADER_SIZE];
    put_info_record(header, TOC_MAGIC, info);
    lahar_buffer_put(to, header, sizeof header);
    for (uint32_t i = 0; i < info->block_count; i++) {
        uint8_t entry[LAHAR_TOC_ENTRY_SIZE];
        put_entry(entry, &blocks[i]);
        lahar_buffer_put(to, entry, sizeof entry);
    }
    if (!to->has_failed) {
        lahar_buffer_put_u32(to, lahar_crc32c(0, to->data + start, to->size - start));
    }
}

/* Blocks fill the file from header to footer and hold rising ids. */
static bool are_blocks_contiguous(const struct lahar_segment_info *info,
                                  const struct lahar_block_info *blocks)
{
    uint64_t offset = LAHAR_EVENTS_HEADER_SIZE;
    uint64_t ordinal = 0;
    for (uint32_t i = 0; i < info->block_count; i++) {
        if (blocks[i].offset != offset || blocks[i].first_ordinal != ordinal ||
            blocks[i].first_id > blocks[i].last_id ||
            (i > 0 && blocks[i].first_id <= blocks[i - 1].last_id)) {
            return false;
        }
        offset += blocks[i].size;
        ordinal += blocks[i].row_count;
    }
    return info->block_count > 0 && blocks[0].first_id == info->first_id &&
           blocks[info->block_count - 1].last_id == info->last_id && ordinal == info->event_count &&
           offset + LAHAR_EVENTS_FOOTER_SIZE == info->file_bytes;
}

lahar_status lahar_toc_read(const uint8_t *data, size_t size, struct lahar_segment_info *info_out,
                            struct lahar_block_info *blocks, lahar_error *error)
{
    if (size < LAHAR_TOC_HEADER_SIZE) {
        return lahar_fail(error, LAHAR_CORRUPT, "a table of contents is cut short");
    }
    LAHAR_TRY(check_start(data, TOC_MAGIC, LAHAR_TOC_HEADER_SIZE, "a table of contents", error));
    get_info(data + INFO_OFFSET, info_out);
    if (lahar_toc_size(info_out->block_count) != size ||
        lahar_crc32c(0, data, size - LAHAR_TOC_TRAILER_SIZE) !=
            lahar_load_u32(data + size - LAHAR_TOC_TRAILER_SIZE)) {
        return lahar_fail(error, LAHAR_CORRUPT, "a table of contents fails its checksum");
    }
    if (blocks == NULL) {
        return LAHAR_OK;
    }
    for (uint32_t i = 0; i < info_out->block_count; i++) {
        get_entry(data + LAHAR_TOC_HEADER_SIZE + (size_t)i * LAHAR_TOC_ENTRY_SIZE, &blocks[i]);
    }
    return are_blocks_contiguous(info_out, blocks)
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_CORRUPT, "a table of contents contradicts itself");
}
