/* Opening a shard, and the answers that need no more than its directory. */
#include "index/shard_reader.h"

#include <string.h>

#include "index/bitpack.h"
#include "index/shard_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

static lahar_status fetch(const struct lahar_shard_source *source, uint64_t offset, void *data,
                          size_t size, lahar_error *error)
{
    if (source->memory != NULL) {
        memcpy(data, source->memory + offset, size);
        return LAHAR_OK;
    }
    return source->fetch(source->context, offset, data, size, error);
}

/* The end of a shard, as opening reads it. */
struct tail {
    uint8_t *data; /* owned */
    size_t size;
};

static lahar_status fetch_tail(const struct lahar_shard_source *source,
                               const lahar_allocator *allocator, struct tail *tail,
                               struct lahar_shard_trailer *trailer, lahar_error *error)
{
    if (source->size < LAHAR_SHARD_HEADER_SIZE + LAHAR_SHARD_TRAILER_SIZE) {
        return lahar_fail(error, LAHAR_CORRUPT, "an index shard of %llu bytes is too small",
                          (unsigned long long)source->size);
    }
    tail->size =
        source->size < LAHAR_SHARD_OPEN_SIZE ? (size_t)source->size : (size_t)LAHAR_SHARD_OPEN_SIZE;
    tail->data = lahar_allocate(allocator, tail->size);
    if (tail->data == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to open an index shard");
    }
    LAHAR_TRY(fetch(source, source->size - tail->size, tail->data, tail->size, error));
    return lahar_trailer_read(tail->data + tail->size - LAHAR_SHARD_TRAILER_SIZE, source->size,
                              trailer, error);
}

/* Puts the directory into shard->directory_bytes: from the tail where it is small. */
static lahar_status fetch_directory(struct lahar_shard *shard,
                                    const struct lahar_shard_source *source,
                                    const struct tail *tail,
                                    const struct lahar_shard_trailer *trailer, lahar_error *error)
{
    const size_t size = (size_t)trailer->directory_size;
    shard->directory_bytes = lahar_allocate(shard->allocator, size + LAHAR_BITPACK_SLACK);
    if (shard->directory_bytes == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for the directory of a shard");
    }
    memset(shard->directory_bytes + size, 0, LAHAR_BITPACK_SLACK);
    shard->directory_size = size;
    if (size + LAHAR_SHARD_TRAILER_SIZE <= tail->size) {
        memcpy(shard->directory_bytes, tail->data + (tail->size - LAHAR_SHARD_TRAILER_SIZE - size),
               size);
    } else {
        LAHAR_TRY(fetch(source, trailer->directory_offset, shard->directory_bytes, size, error));
    }
    return lahar_crc32c(0, shard->directory_bytes, size) == trailer->directory_checksum
               ? LAHAR_OK
               : lahar_fail(error, LAHAR_CORRUPT,
                            "the directory of an index shard fails its checksum");
}

/* Reads what stays in memory: the directory, and of the filter of uuids what the tail has. */
static lahar_status read_directory(struct lahar_shard *shard,
                                   const struct lahar_shard_source *source, lahar_error *error)
{
    struct tail tail = {.data = NULL};
    struct lahar_shard_trailer trailer;
    lahar_status status = fetch_tail(source, shard->allocator, &tail, &trailer, error);
    if (status == LAHAR_OK) {
        status = fetch_directory(shard, source, &tail, &trailer, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_directory_read(shard->directory_bytes, &trailer, shard->allocator,
                                      &shard->directory, error);
    }
    if (status == LAHAR_OK) {
        status = lahar_shard_pages_init(&shard->pages, source, trailer.directory_offset,
                                        shard->directory.checksums, shard->allocator, error);
    }
    const uint64_t near_size =
        (uint64_t)shard->directory.filter.near.block_count * LAHAR_FILTER_BLOCK_SIZE;
    if (status == LAHAR_OK && source->memory == NULL && near_size != 0) {
        status = lahar_shard_pages_offer(&shard->pages, trailer.directory_offset - near_size,
                                         tail.data, tail.size, error);
    }
    lahar_release(shard->allocator, tail.data);
    return status;
}

lahar_status lahar_shard_open(const struct lahar_shard_source *source,
                              const lahar_allocator *allocator, struct lahar_shard **shard_out,
                              lahar_error *error)
{
    *shard_out = NULL;
    struct lahar_shard *shard = lahar_allocate_zeroed(allocator, 1, sizeof *shard);
    if (shard == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory to open an index shard");
    }
    shard->allocator = allocator;
    const lahar_status status = read_directory(shard, source, error);
    if (status != LAHAR_OK) {
        lahar_shard_close(shard);
        return status;
    }
    shard->lists =
        (struct lahar_list_reader){.pages = &shard->pages, .groups = shard->directory.groups};
    *shard_out = shard;
    return LAHAR_OK;
}

void lahar_shard_close(struct lahar_shard *shard)
{
    if (shard == NULL) {
        return;
    }
    lahar_shard_pages_deinit(&shard->pages);
    lahar_release(shard->allocator, shard->directory.fields);
    lahar_release(shard->allocator, shard->directory_bytes);
    lahar_release(shard->allocator, shard);
}

uint64_t lahar_shard_memory(struct lahar_shard *shard)
{
    return sizeof *shard + shard->directory_size +
           shard->directory.field_count * sizeof *shard->directory.fields +
           lahar_shard_pages_memory(&shard->pages);
}

uint32_t lahar_shard_document_count(const struct lahar_shard *shard)
{
    return shard->directory.document_count;
}

uint64_t lahar_shard_id(const struct lahar_shard *shard, uint32_t ordinal)
{
    return lahar_id_table_id(&shard->directory.ids, ordinal);
}

uint32_t lahar_shard_ordinal(const struct lahar_shard *shard, uint64_t id)
{
    return lahar_id_table_ordinal(&shard->directory.ids, id);
}

static int64_t time_of_number(uint64_t v)
{
    return (int64_t)(v ^ UINT64_C(0x8000000000000000));
}

void lahar_shard_time_range(const struct lahar_shard *shard, int64_t *min_ns, int64_t *max_ns)
{
    *min_ns = time_of_number(shard->directory.times.min);
    *max_ns = time_of_number(shard->directory.times.max);
}

bool lahar_shard_may_hold_time(const struct lahar_shard *shard, int64_t from_ns, int64_t to_ns)
{
    if (from_ns >= to_ns) {
        return false;
    }
    const struct lahar_time_bounds *times = &shard->directory.times;
    const uint64_t low = lahar_number_from_i64(from_ns);
    const uint64_t high = lahar_number_from_i64(to_ns) - 1;
    return (low <= times->main_max && high >= times->main_min) ||
           (low <= times->early_max && high >= times->min) ||
           (low <= times->max && high >= times->late_min);
}

uint32_t lahar_shard_field_count(const struct lahar_shard *shard)
{
    return (uint32_t)shard->directory.field_count;
}

lahar_bytes lahar_shard_field(const struct lahar_shard *shard, uint32_t field,
                              enum lahar_field_class *class_out)
{
    LAHAR_ASSERT(field < shard->directory.field_count);
    const struct lahar_directory_field *entry = &shard->directory.fields[field];
    *class_out = entry->field_class;
    return (lahar_bytes){entry->name, entry->name_size};
}

bool lahar_shard_find_field(const struct lahar_shard *shard, const void *name, size_t name_size,
                            enum lahar_field_class field_class, uint32_t *field_out)
{
    *field_out = 0;
    size_t low = 0;
    size_t high = shard->directory.field_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct lahar_directory_field *field = &shard->directory.fields[middle];
        const int order = lahar_directory_compare(field->name, field->name_size, field->field_class,
                                                  name, name_size, field_class);
        if (order == 0) {
            *field_out = (uint32_t)middle;
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}
