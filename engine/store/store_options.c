/* Options: defaults, limits, the memory that the host grants. */
#include "engine/store/store_options.h"

#include <stddef.h>
#include <string.h>

#include "engine/journal/journal.h"
#include "io/base/allocator.h"
#include "io/base/error.h"

#define DEFAULT_MEMORY_BYTES      (UINT64_C(1) << 30)
#define DEFAULT_GROUP_SIZE_BYTES  (UINT64_C(64) << 20)
#define DEFAULT_GROUP_EVENT_COUNT UINT64_C(2000000)
enum {
    DEFAULT_SYNC_INTERVAL_MS = 100,
    SYNC_INTERVAL_MS_MAX = 60000,
    DEFAULT_GROUP_AGE_MS = 30000,
    DEFAULT_GROUP_AGE_MAX_MS = 3600000,
    COMPRESSION_LEVEL_MAX = 12,
    DEFAULT_QUERY_COUNT_MAX = 1000,
    DEFAULT_OPEN_FILE_MAX = 64
};

void lahar_options_init(lahar_options *options)
{
    *options = (lahar_options){
        .struct_size = sizeof *options,
        .durability = LAHAR_DURABILITY_INTERVAL,
        .sync_interval_ms = DEFAULT_SYNC_INTERVAL_MS,
        .group_size_bytes = DEFAULT_GROUP_SIZE_BYTES,
        .group_event_count = DEFAULT_GROUP_EVENT_COUNT,
        .group_age_ms = DEFAULT_GROUP_AGE_MS,
        .group_age_max_ms = DEFAULT_GROUP_AGE_MAX_MS,
        .journal_count = LAHAR_JOURNAL_COUNT,
        .query_count_max = DEFAULT_QUERY_COUNT_MAX,
        .open_file_max = DEFAULT_OPEN_FILE_MAX,
    };
}

/* Takes what a caller compiled against another version has passed: fields that it
 * does not know keep their defaults, fields that this library does not know must not be set. */
static lahar_status take(const lahar_options *options, lahar_options *resolved, lahar_error *error)
{
    const size_t size = options->struct_size;
    if (size < offsetof(lahar_options, backend) || size > 4096) {
        return lahar_fail(error, LAHAR_INVALID, "options: struct_size is %zu", size);
    }
    const uint8_t *bytes = (const uint8_t *)options;
    for (size_t i = sizeof *resolved; i < size; i++) {
        if (bytes[i] != 0) {
            return lahar_fail(error, LAHAR_INVALID, "options: set by a newer version's field");
        }
    }
    memcpy(resolved, options, size < sizeof *resolved ? size : sizeof *resolved);
    resolved->struct_size = sizeof *resolved;
    return LAHAR_OK;
}

static void fill_zeroes(lahar_options *options)
{
    lahar_options defaults;
    lahar_options_init(&defaults);
    if (options->durability == LAHAR_DURABILITY_STORE) {
        options->durability = defaults.durability;
    }
    if (options->sync_interval_ms == 0) {
        options->sync_interval_ms = defaults.sync_interval_ms;
    }
    if (options->group_size_bytes == 0) {
        options->group_size_bytes = defaults.group_size_bytes;
    }
    if (options->group_event_count == 0) {
        options->group_event_count = defaults.group_event_count;
    }
    if (options->group_age_ms == 0) {
        options->group_age_ms = defaults.group_age_ms;
    }
    if (options->group_age_max_ms == 0) {
        options->group_age_max_ms = defaults.group_age_max_ms;
    }
    if (options->journal_count == 0) {
        options->journal_count = defaults.journal_count;
    }
    if (options->query_count_max == 0) {
        options->query_count_max = defaults.query_count_max;
    }
    if (options->open_file_max == 0) {
        options->open_file_max = defaults.open_file_max;
    }
}

static lahar_status check(const lahar_options *options, lahar_error *error)
{
    if ((unsigned)options->backend > LAHAR_BACKEND_PWRITE) {
        return lahar_fail(error, LAHAR_INVALID, "options: unknown backend %d",
                          (int)options->backend);
    }
    if ((unsigned)options->durability > LAHAR_DURABILITY_COMMIT) {
        return lahar_fail(error, LAHAR_INVALID, "options: unknown durability %d",
                          (int)options->durability);
    }
    if (options->sync_interval_ms > SYNC_INTERVAL_MS_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "options: sync_interval_ms %u is above %d",
                          options->sync_interval_ms, SYNC_INTERVAL_MS_MAX);
    }
    if (options->memory_limit_bytes != 0 && options->memory_limit_bytes < LAHAR_MEMORY_LIMIT_MIN) {
        return lahar_fail(error, LAHAR_INVALID, "options: memory_limit_bytes is below 32 MiB");
    }
    if (options->compression_level > COMPRESSION_LEVEL_MAX) {
        return lahar_fail(error, LAHAR_INVALID, "options: compression_level %u is above %d",
                          options->compression_level, COMPRESSION_LEVEL_MAX);
    }
    if (options->journal_count > LAHAR_JOURNAL_COUNT) {
        return lahar_fail(error, LAHAR_INVALID, "options: journal_count %u is above %d",
                          options->journal_count, LAHAR_JOURNAL_COUNT);
    }
    const lahar_allocator *allocator = options->allocator;
    if (allocator != NULL &&
        (allocator->allocate == NULL || allocator->resize == NULL || allocator->release == NULL)) {
        return lahar_fail(error, LAHAR_INVALID, "options: the allocator lacks a function");
    }
    return LAHAR_OK;
}

lahar_status lahar_options_resolve(const lahar_options *options, lahar_options *resolved_out,
                                   lahar_error *error)
{
    lahar_options_init(resolved_out);
    if (options != NULL) {
        LAHAR_TRY(take(options, resolved_out, error));
    }
    fill_zeroes(resolved_out);
    return check(resolved_out, error);
}

uint64_t lahar_options_default_memory(struct lahar_io *io)
{
    /* Version 2 and version 1 of the cgroup hierarchy; the innermost limit that a
     * container sees is mounted here. */
    static const char *const paths[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    uint64_t memory = DEFAULT_MEMORY_BYTES;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct lahar_io_file *file = NULL;
        char text[32];
        size_t size = 0;
        if (io->ops->open(io, paths[i], LAHAR_IO_READ, &file, NULL) != LAHAR_OK) {
            continue;
        }
        if (io->ops->read(io, file, 0, text, sizeof text, &size, NULL) == LAHAR_OK) {
            uint64_t limit = 0;
            for (size_t k = 0; k < size && text[k] >= '0' && text[k] <= '9'; k++) {
                limit = limit > UINT64_MAX / 16 ? limit : limit * 10 + (uint64_t)(text[k] - '0');
            }
            if (limit != 0 && limit / 4 * 3 < memory) {
                memory = limit / 4 * 3;
            }
        }
        io->ops->close(io, file);
    }
    return memory < LAHAR_MEMORY_LIMIT_MIN ? LAHAR_MEMORY_LIMIT_MIN : memory;
}
