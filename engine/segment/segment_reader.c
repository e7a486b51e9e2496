/* Reads event files: the table of contents, or what the blocks say in its place, and
 * blocks through the cache. An open file is immutable but for its reference count. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/segment/block_cache.h"
#include "engine/segment/block_reader.h"
#include "engine/segment/segment.h"
#include "engine/segment/segment_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

enum {
    PATH_SIZE_MAX = 4096,
    PROBED_BLOCKS_MIN = 1 << 16 /* that a toc may list however little is left of its event file */
};

struct lahar_segment {
    _Atomic uint32_t reference_count;
    struct lahar_io *io;
    struct lahar_pooled_file *file;
    const lahar_allocator *allocator;
    const struct lahar_stream *stream; /* NULL when the catalog does not know it */
    struct lahar_block_cache *cache;   /* NULL: every load reads */
    struct lahar_segment_info info;
    struct lahar_block_info *blocks; /* info.block_count */
    bool lacks_toc;
    char file_name[LAHAR_FILE_NAME_SIZE];
};

/* --- reading files ------------------------------------------------------------------ */

static lahar_status open_file(struct lahar_io *io, const char *directory, const char *name,
                              struct lahar_io_file **file_out, lahar_error *error)
{
    char path[PATH_SIZE_MAX];
    const int size = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (size < 0 || size >= PATH_SIZE_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "the path of an event file is too long");
    }
    return io->ops->open(io, path, LAHAR_IO_READ, file_out, error);
}

/* LAHAR_CORRUPT when the file ends before. */
static lahar_status read_exactly(struct lahar_io *io, struct lahar_io_file *file, uint64_t offset,
                                 void *data, size_t size, lahar_error *error)
{
    size_t read_size = 0;
    LAHAR_TRY(io->ops->read(io, file, offset, data, size, &read_size, error));
    if (read_size != size) {
        return lahar_fail(error, LAHAR_CORRUPT, "the file ends at byte %llu, %llu are needed",
                          (unsigned long long)(offset + read_size),
                          (unsigned long long)(offset + size));
    }
    return LAHAR_OK;
}

/* The same of a segment's file. */
static lahar_status read_segment(const struct lahar_segment *segment, uint64_t offset, void *data,
                                 size_t size, lahar_error *error)
{
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(lahar_pooled_file_use(segment->file, &file, error));
    const lahar_status status = read_exactly(segment->io, file, offset, data, size, error);
    lahar_pooled_file_leave(segment->file);
    return status;
}

/* The whole of a toc whose size is within the limits, which come from elsewhere: its own size is
 * believed only then. *data_out is released by the caller. */
static lahar_status read_toc_file(struct lahar_io *io, const char *directory, const char *name,
                                  uint64_t size_min, uint64_t size_max,
                                  const lahar_allocator *allocator, uint8_t **data_out,
                                  size_t *size_out, lahar_error *error)
{
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(open_file(io, directory, name, &file, error));
    uint64_t size = 0;
    uint8_t *data = NULL;
    lahar_status status = io->ops->size(io, file, &size, error);
    if (status == LAHAR_OK && (size < size_min || size > size_max)) {
        status =
            lahar_fail(error, LAHAR_CORRUPT, "%s has %llu bytes", name, (unsigned long long)size);
    }
    if (status == LAHAR_OK) {
        data = lahar_allocate(allocator, (size_t)size + 1);
        status = data == NULL ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for %s", name)
                              : read_exactly(io, file, 0, data, (size_t)size, error);
    }
    io->ops->close(io, file);
    if (status != LAHAR_OK) {
        lahar_release(allocator, data);
        return status;
    }
    *data_out = data;
    *size_out = (size_t)size;
    return LAHAR_OK;
}

/* --- the table of contents --------------------------------------------------------- */

static lahar_status read_toc(struct lahar_segment *segment, const char *directory,
                             lahar_error *error)
{
    char name[LAHAR_FILE_NAME_SIZE];
    lahar_segment_file_name(&segment->info, LAHAR_TOC_SUFFIX, name);
    uint8_t *data = NULL;
    size_t size = 0;
    const uint64_t expected = lahar_toc_size(segment->info.block_count);
    LAHAR_TRY(read_toc_file(segment->io, directory, name, expected, expected, segment->allocator,
                            &data, &size, error));
    struct lahar_segment_info info;
    lahar_status status = lahar_toc_read(data, size, &info, NULL, error);
    if (status == LAHAR_OK &&
        (info.number != segment->info.number || info.stream != segment->info.stream ||
         info.block_count != segment->info.block_count)) {
        status = lahar_fail(error, LAHAR_CORRUPT, "%s is of another file", name);
    }
    if (status == LAHAR_OK) {
        status = lahar_toc_read(data, size, &info, segment->blocks, error);
    }
    lahar_release(segment->allocator, data);
    return status;
}

/* Reads the block at offset whole and fills its entry of the toc. */
static lahar_status scan_block(const struct lahar_segment *segment, uint64_t offset,
                               struct lahar_block_info *block_out, lahar_error *error)
{
    uint8_t start[LAHAR_BLOCK_HEADER_SIZE];
    struct lahar_block_header header;
    LAHAR_TRY(read_segment(segment, offset, start, sizeof start, error));
    LAHAR_TRY(lahar_block_header_read(start, sizeof start, &header, error));
    if (header.size > segment->info.file_bytes) {
        return lahar_fail(error, LAHAR_CORRUPT, "a block is larger than its file");
    }
    uint8_t *data = lahar_allocate(segment->allocator, header.size);
    if (data == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block");
    }
    lahar_status status = read_segment(segment, offset, data, header.size, error);
    if (status == LAHAR_OK) {
        status = lahar_block_header_check(data, &header, error);
    }
    *block_out = (struct lahar_block_info){
        .first_id = header.first_id,
        .last_id = header.last_id,
        .offset = offset,
        .size = header.size,
        .row_count = header.row_count,
        .checksum = status == LAHAR_OK ? lahar_crc32c(0, data, header.size) : 0,
        .time_min_ns = header.time_min_ns,
        .time_max_ns = header.time_max_ns,
        .arrival_min_ns = header.arrival_min_ns,
        .arrival_max_ns = header.arrival_max_ns,
    };
    lahar_release(segment->allocator, data);
    return status;
}

/* Walks the blocks from the first to the last; each header gives the place of the next. */
static lahar_status rebuild_toc(struct lahar_segment *segment, lahar_error *error)
{
    uint64_t offset = LAHAR_EVENTS_HEADER_SIZE;
    uint64_t ordinal = 0;
    for (uint32_t i = 0; i < segment->info.block_count; i++) {
        struct lahar_block_info *block = &segment->blocks[i];
        LAHAR_TRY(scan_block(segment, offset, block, error));
        block->first_ordinal = (uint32_t)ordinal;
        if (i > 0 && block->first_id <= segment->blocks[i - 1].last_id) {
            return lahar_fail(error, LAHAR_CORRUPT, "blocks are not in the order of their ids");
        }
        offset += block->size;
        ordinal += block->row_count;
    }
    if (ordinal != segment->info.event_count || ordinal > UINT32_MAX) {
        return lahar_fail(error, LAHAR_CORRUPT, "%llu events where %llu were expected",
                          (unsigned long long)ordinal,
                          (unsigned long long)segment->info.event_count);
    }
    return LAHAR_OK;
}

/* --- opening ------------------------------------------------------------------------ */

static void destroy(struct lahar_segment *segment)
{
    if (segment->cache != NULL) {
        lahar_block_cache_drop(segment->cache, segment->info.number, segment->info.block_count);
    }
    lahar_pooled_file_close(segment->file);
    lahar_release(segment->allocator, segment->blocks);
    lahar_release(segment->allocator, segment);
}

static lahar_status load_toc(struct lahar_segment *segment, const char *directory,
                             lahar_error *error)
{
    lahar_error toc_error;
    memset(&toc_error, 0, sizeof toc_error);
    const lahar_status status = read_toc(segment, directory, &toc_error);
    if (status == LAHAR_OK) {
        return LAHAR_OK;
    }
    if (status != LAHAR_CORRUPT && status != LAHAR_NOT_FOUND && status != LAHAR_IO &&
        status != LAHAR_UNSUPPORTED) {
        return lahar_fail(error, status, "%s", toc_error.message);
    }
    segment->lacks_toc = true;
    return rebuild_toc(segment, error);
}

lahar_status lahar_segment_open(struct lahar_file_pool *pool, const char *directory,
                                const struct lahar_segment_info *info,
                                const struct lahar_schema_catalog *catalog,
                                struct lahar_block_cache *cache, const lahar_allocator *allocator,
                                struct lahar_segment **segment_out, lahar_error *error)
{
    if (info->block_count == 0 || info->block_count > info->file_bytes / LAHAR_BLOCK_HEADER_SIZE) {
        return lahar_fail(error, LAHAR_CORRUPT, "an event file of %u blocks in %llu bytes",
                          info->block_count, (unsigned long long)info->file_bytes);
    }
    struct lahar_segment *segment = lahar_allocate_zeroed(allocator, 1, sizeof *segment);
    struct lahar_block_info *blocks =
        lahar_allocate(allocator, info->block_count * sizeof blocks[0]);
    if (segment == NULL || blocks == NULL) {
        lahar_release(allocator, segment);
        lahar_release(allocator, blocks);
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for an event file of %u blocks",
                          info->block_count);
    }
    atomic_init(&segment->reference_count, 1);
    segment->io = lahar_file_pool_io(pool);
    segment->allocator = allocator;
    segment->blocks = blocks;
    segment->info = *info;
    segment->stream = catalog == NULL ? NULL : lahar_schema_stream(catalog, info->stream);
    lahar_segment_file_name(info, LAHAR_EVENTS_SUFFIX, segment->file_name);
    lahar_status status =
        lahar_pooled_file_open(pool, directory, segment->file_name, &segment->file, error);
    if (status == LAHAR_OK) {
        status = load_toc(segment, directory, error);
    }
    if (status != LAHAR_OK) {
        lahar_error_context(error, "%s", segment->file_name);
        destroy(segment);
        return status;
    }
    segment->cache = cache;
    *segment_out = segment;
    return LAHAR_OK;
}

bool lahar_segment_lacks_toc(const struct lahar_segment *segment)
{
    return segment->lacks_toc;
}

void lahar_segment_acquire(struct lahar_segment *segment)
{
    (void)atomic_fetch_add_explicit(&segment->reference_count, 1, memory_order_relaxed);
}

void lahar_segment_release(struct lahar_segment *segment)
{
    if (segment != NULL &&
        atomic_fetch_sub_explicit(&segment->reference_count, 1, memory_order_acq_rel) == 1) {
        destroy(segment);
    }
}

const struct lahar_segment_info *lahar_segment_describe(const struct lahar_segment *segment)
{
    return &segment->info;
}

const struct lahar_block_info *lahar_segment_block_info(const struct lahar_segment *segment,
                                                        uint32_t block)
{
    LAHAR_ASSERT(block < segment->info.block_count);
    return &segment->blocks[block];
}

uint32_t lahar_segment_find_block(const struct lahar_segment *segment, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = segment->info.block_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (segment->blocks[middle].last_id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t lahar_segment_find_ordinal(const struct lahar_segment *segment, uint32_t ordinal)
{
    uint32_t low = 0;
    uint32_t high = segment->info.block_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct lahar_block_info *block = &segment->blocks[middle];
        if (ordinal - block->first_ordinal >= block->row_count && ordinal >= block->first_ordinal) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* --- probing ------------------------------------------------------------------------- */

static lahar_status probe_footer(struct lahar_io *io, struct lahar_io_file *file,
                                 struct lahar_segment_info *info_out, lahar_error *error)
{
    uint64_t size = 0;
    uint8_t header[LAHAR_EVENTS_HEADER_SIZE];
    uint8_t footer[LAHAR_EVENTS_FOOTER_SIZE];
    LAHAR_TRY(io->ops->size(io, file, &size, error));
    if (size < sizeof header + sizeof footer) {
        return lahar_fail(error, LAHAR_CORRUPT, "the file is cut short");
    }
    LAHAR_TRY(read_exactly(io, file, size - sizeof footer, footer, sizeof footer, error));
    LAHAR_TRY(lahar_events_footer_read(footer, info_out, error));
    LAHAR_TRY(read_exactly(io, file, 0, header, sizeof header, error));
    LAHAR_TRY(lahar_events_header_check(header, info_out, error));
    if (info_out->file_bytes != size) {
        return lahar_fail(error, LAHAR_CORRUPT, "%llu bytes where %llu were expected",
                          (unsigned long long)size, (unsigned long long)info_out->file_bytes);
    }
    return LAHAR_OK;
}

lahar_status lahar_segment_check_ends(struct lahar_segment *segment, lahar_error *error)
{
    struct lahar_segment_info found = {0};
    uint8_t footer[LAHAR_EVENTS_FOOTER_SIZE];
    uint8_t expected[LAHAR_EVENTS_FOOTER_SIZE];
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(lahar_pooled_file_use(segment->file, &file, error));
    const lahar_status status = probe_footer(segment->io, file, &found, error);
    lahar_pooled_file_leave(segment->file);
    LAHAR_TRY(status);
    lahar_events_footer_write(footer, &found);
    lahar_events_footer_write(expected, &segment->info);
    if (memcmp(footer, expected, sizeof footer) != 0) {
        return lahar_fail(error, LAHAR_CORRUPT, "the footer contradicts the manifest");
    }
    return LAHAR_OK;
}

/* The toc says the same as the footer. events_bytes: what there is of the event file, which may
 * have lost its end. */
static lahar_status probe_toc(struct lahar_io *io, const char *directory, const char *events_name,
                              uint64_t events_bytes, const lahar_allocator *allocator,
                              struct lahar_segment_info *info_out)
{
    uint64_t block_count = events_bytes / LAHAR_BLOCK_HEADER_SIZE;
    block_count = block_count < PROBED_BLOCKS_MIN ? PROBED_BLOCKS_MIN
                  : block_count > UINT32_MAX      ? UINT32_MAX
                                                  : block_count;
    char name[LAHAR_FILE_NAME_SIZE];
    const size_t stem_size = strlen(events_name) - strlen(LAHAR_EVENTS_SUFFIX);
    (void)snprintf(name, sizeof name, "%.*s%s", (int)stem_size, events_name, LAHAR_TOC_SUFFIX);
    uint8_t *data = NULL;
    size_t size = 0;
    LAHAR_TRY(read_toc_file(io, directory, name, 0, lahar_toc_size((uint32_t)block_count),
                            allocator, &data, &size, NULL));
    const lahar_status status = lahar_toc_read(data, size, info_out, NULL, NULL);
    lahar_release(allocator, data);
    return status;
}

lahar_status lahar_segment_probe(struct lahar_io *io, const char *directory,
                                 const char *events_file_name, const lahar_allocator *allocator,
                                 struct lahar_segment_info *info_out, lahar_error *error)
{
    const size_t name_size = strlen(events_file_name);
    const size_t suffix_size = strlen(LAHAR_EVENTS_SUFFIX);
    if (name_size <= suffix_size || name_size >= LAHAR_FILE_NAME_SIZE ||
        strcmp(events_file_name + name_size - suffix_size, LAHAR_EVENTS_SUFFIX) != 0) {
        return lahar_fail(error, LAHAR_INVALID, "%s is not the name of an event file",
                          events_file_name);
    }
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(open_file(io, directory, events_file_name, &file, error));
    lahar_error footer_error;
    memset(&footer_error, 0, sizeof footer_error);
    lahar_status status = probe_footer(io, file, info_out, &footer_error);
    uint64_t events_bytes = 0;
    (void)io->ops->size(io, file, &events_bytes, NULL);
    io->ops->close(io, file);
    if ((status == LAHAR_CORRUPT || status == LAHAR_UNSUPPORTED) &&
        probe_toc(io, directory, events_file_name, events_bytes, allocator, info_out) == LAHAR_OK) {
        status = LAHAR_OK;
    }
    char name[LAHAR_FILE_NAME_SIZE];
    if (status == LAHAR_OK) {
        lahar_segment_file_name(info_out, LAHAR_EVENTS_SUFFIX, name);
        if (strcmp(name, events_file_name) != 0) {
            return lahar_fail(error, LAHAR_CORRUPT, "%s says that it is %s", events_file_name,
                              name);
        }
        return LAHAR_OK;
    }
    return lahar_fail(error, status, "%s: %s", events_file_name, footer_error.message);
}

/* --- blocks -------------------------------------------------------------------------- */

/* Reads info->size bytes of a block and compares their checksum. */
static lahar_status read_stored(const struct lahar_segment *segment,
                                const struct lahar_block_info *info, uint8_t *stored,
                                lahar_error *error)
{
    LAHAR_TRY(read_segment(segment, info->offset, stored, info->size, error));
    return lahar_crc32c(0, stored, info->size) == info->checksum
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_CORRUPT, "the block at byte %llu fails its checksum",
                            (unsigned long long)info->offset);
}

static lahar_status read_block(const struct lahar_segment *segment,
                               const struct lahar_block_info *info, struct lahar_block **block_out,
                               lahar_error *error)
{
    if (info->size < LAHAR_BLOCK_HEADER_SIZE || info->size > segment->info.file_bytes) {
        return lahar_fail(error, LAHAR_CORRUPT, "a block has the size %u", info->size);
    }
    uint8_t *stored = lahar_allocate(segment->allocator, info->size);
    if (stored == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a block");
    }
    const lahar_status status = read_stored(segment, info, stored, error);
    if (status != LAHAR_OK) {
        lahar_release(segment->allocator, stored);
        return status;
    }
    struct lahar_block *block = NULL;
    LAHAR_TRY(
        lahar_block_create(stored, info->size, segment->stream, segment->allocator, &block, error));
    memcpy(block->file_name, segment->file_name, sizeof block->file_name);
    const struct lahar_block_header *header = &block->header;
    if (header->first_id != info->first_id || header->last_id != info->last_id ||
        header->row_count != info->row_count) {
        lahar_block_release(block);
        return lahar_fail(error, LAHAR_CORRUPT, "the table of contents and a block disagree");
    }
    *block_out = block;
    return LAHAR_OK;
}

static lahar_status name_events(const struct lahar_segment *segment, uint32_t block,
                                lahar_status status, lahar_error *error)
{
    if (status != LAHAR_OK) {
        lahar_error_context(error, "events %llu..%llu of %s",
                            (unsigned long long)segment->blocks[block].first_id,
                            (unsigned long long)segment->blocks[block].last_id, segment->file_name);
    }
    return status;
}

lahar_status lahar_segment_load(struct lahar_segment *segment, uint32_t block,
                                struct lahar_block **block_out, lahar_error *error)
{
    LAHAR_ASSERT(block < segment->info.block_count);
    if (segment->cache != NULL) {
        *block_out = lahar_block_cache_get(segment->cache, segment->info.number, block);
        if (*block_out != NULL) {
            return LAHAR_OK;
        }
    }
    const lahar_status status = read_block(segment, &segment->blocks[block], block_out, error);
    if (status == LAHAR_OK && segment->cache != NULL) {
        lahar_block_cache_put(segment->cache, segment->info.number, block, *block_out);
    }
    return name_events(segment, block, status, error);
}

void lahar_segment_announce(struct lahar_segment *segment, uint32_t block)
{
    LAHAR_ASSERT(block < segment->info.block_count);
    const struct lahar_block_info *info = &segment->blocks[block];
    if (segment->cache == NULL ||
        lahar_block_cache_lacks(segment->cache, segment->info.number, block, info->size)) {
        lahar_pooled_file_announce(segment->file, info->offset, info->size);
    }
}

bool lahar_segment_would_keep(const struct lahar_segment *segment, uint32_t block)
{
    LAHAR_ASSERT(block < segment->info.block_count);
    return segment->cache != NULL && lahar_block_cache_lacks(segment->cache, segment->info.number,
                                                             block, segment->blocks[block].size);
}

lahar_status lahar_segment_read_stored(struct lahar_segment *segment, uint32_t block,
                                       struct lahar_buffer *out, lahar_error *error)
{
    LAHAR_ASSERT(block < segment->info.block_count);
    const struct lahar_block_info *info = &segment->blocks[block];
    if (info->size < LAHAR_BLOCK_HEADER_SIZE || !lahar_buffer_reserve(out, info->size)) {
        return lahar_fail(error,
                          info->size < LAHAR_BLOCK_HEADER_SIZE ? LAHAR_CORRUPT : LAHAR_NO_MEMORY,
                          "no memory for a block of %u bytes", info->size);
    }
    const lahar_status status = read_stored(segment, info, out->data + out->size, error);
    out->size += status == LAHAR_OK ? info->size : 0;
    return name_events(segment, block, status, error);
}

lahar_status lahar_segment_check(struct lahar_segment *segment, uint32_t block,
                                 struct lahar_block **block_out, lahar_error *error)
{
    LAHAR_ASSERT(block < segment->info.block_count);
    struct lahar_block *checked = NULL;
    lahar_status status = read_block(segment, &segment->blocks[block], &checked, error);
    if (status == LAHAR_OK) {
        status = lahar_block_check_all(checked, error);
    }
    if (status == LAHAR_OK) {
        const struct lahar_block_info *info = &segment->blocks[block];
        const struct lahar_block_header *header = &checked->header;
        if (header->time_min_ns != info->time_min_ns || header->time_max_ns != info->time_max_ns ||
            header->arrival_min_ns != info->arrival_min_ns ||
            header->arrival_max_ns != info->arrival_max_ns) {
            status = lahar_fail(error, LAHAR_CORRUPT,
                                "the table of contents and a block disagree about times");
        }
    }
    if (status != LAHAR_OK) {
        lahar_block_release(checked);
        return name_events(segment, block, status, error);
    }
    *block_out = checked;
    return LAHAR_OK;
}
