#include "engine/rollover/repair_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/rollover/rollover_files.h"
#include "engine/segment/segment_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"
#include "io/whole_file.h"

/* Size and checksum of a file beside an event file; false when it cannot be read. */
static bool sum_file(lahar_store *store, const struct lahar_manifest_file *file, const char *suffix,
                     uint64_t *size_out, uint32_t *checksum_out)
{
    char name[LAHAR_FILE_NAME_SIZE];
    const uint64_t size_max =
        strcmp(suffix, LAHAR_TOC_SUFFIX) == 0 ? lahar_toc_size(file->info.block_count) : UINT64_MAX;
    lahar_segment_file_name(&file->info, suffix, name);
    return lahar_io_sum_named(store->io, lahar_volume_path(store, file->directory), name, size_max,
                              &store->allocator, size_out, checksum_out, NULL) == LAHAR_OK;
}

static bool is_toc_sound(lahar_store *store, const struct lahar_stored_file *file)
{
    uint64_t size = 0;
    uint32_t checksum = 0;
    return sum_file(store, &file->entry, LAHAR_TOC_SUFFIX, &size, &checksum) &&
           size == file->entry.info.toc_bytes && checksum == file->entry.toc_checksum &&
           !lahar_segment_lacks_toc(file->segment);
}

static bool is_shard_sound(lahar_store *store, const struct lahar_stored_file *file)
{
    uint64_t size = 0;
    uint32_t checksum = 0;
    return file->shard != NULL &&
           sum_file(store, &file->entry, LAHAR_SHARD_SUFFIX, &size, &checksum) &&
           size == file->entry.shard_bytes && checksum == file->entry.shard_checksum &&
           lahar_shard_verify(file->shard, NULL) == LAHAR_OK;
}

static lahar_status make_toc(lahar_store *store, const struct lahar_stored_file *file,
                             struct lahar_manifest_file *entry, lahar_error *error)
{
    struct lahar_buffer bytes;
    lahar_buffer_init(&bytes, &store->allocator);
    lahar_toc_write(&bytes, &entry->info, lahar_segment_block_info(file->segment, 0));
    lahar_status status =
        bytes.has_failed ? lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a table of contents")
                         : lahar_rollover_write_file(store, entry, LAHAR_TOC_SUFFIX, &bytes, error);
    if (status == LAHAR_OK) {
        entry->toc_checksum = lahar_crc32c(0, bytes.data, bytes.size);
    }
    lahar_buffer_deinit(&bytes);
    return status;
}

/* The file's new entry in the manifest, and the file opened anew for readers. */
static lahar_status publish(lahar_store *store, const struct lahar_manifest_file *entry,
                            lahar_error *error)
{
    struct lahar_buffer records;
    lahar_buffer_init(&records, &store->allocator);
    lahar_manifest_put_replace(&records, &entry->info.number, 1, entry, 1);
    lahar_status status = lahar_store_commit_manifest(store, &records, error);
    lahar_buffer_deinit(&records);
    struct lahar_stored_file *file = NULL;
    struct lahar_segment_set *set = NULL;
    const struct lahar_stored_place place = lahar_store_place(store, entry->directory);
    if (status == LAHAR_OK) {
        status = lahar_stored_file_open(&place, entry, &file, error);
    }
    if (status == LAHAR_OK) {
        const struct lahar_segment_set_change change = {.added = &file,
                                                        .added_count = 1,
                                                        .removed = &entry->info.number,
                                                        .removed_count = 1,
                                                        .rolled_id = store->set->rolled_id};
        status = lahar_segment_set_create(store->set, &change, &store->allocator, &set, error);
    }
    lahar_stored_file_release(file);
    if (status == LAHAR_OK) {
        lahar_store_publish_set(store, set);
    }
    return status;
}

static lahar_status repair_file(lahar_store *store, const struct lahar_stored_file *file,
                                lahar_error *error)
{
    struct lahar_manifest_file entry = file->entry;
    const bool needs_toc = !is_toc_sound(store, file);
    const bool needs_shard = !is_shard_sound(store, file);
    lahar_error cause = {0};
    lahar_status status = LAHAR_OK;
    if (needs_toc) {
        status = make_toc(store, file, &entry, &cause);
    }
    if (status == LAHAR_OK && needs_shard) {
        status = lahar_rollover_rebuild_shard(store, file->segment, &entry, NULL, NULL, &cause);
    }
    if (status == LAHAR_CORRUPT) {
        lahar_store_log(store, LAHAR_LOG_ERROR, "the shard of event file %" PRIu64 ": %s",
                        entry.info.number, cause.message);
        status = LAHAR_OK;
        entry.has_shard = file->entry.has_shard;
    }
    if (status == LAHAR_OK && (needs_toc || (needs_shard && cause.status == LAHAR_OK))) {
        status = store->io->ops->sync_directory(store->io,
                                                lahar_volume_path(store, entry.directory), &cause);
        if (status == LAHAR_OK) {
            status = publish(store, &entry, &cause);
        }
        lahar_store_log(store, LAHAR_LOG_WARNING, "made again of event file %" PRIu64 ":%s%s",
                        entry.info.number, needs_toc ? " table of contents" : "",
                        needs_shard ? " shard" : "");
    }
    return status == LAHAR_OK ? LAHAR_OK : lahar_fail(error, status, "%s", cause.message);
}

lahar_status lahar_repair_parts(lahar_store *store, lahar_error *error)
{
    struct lahar_segment_set *set = lahar_store_acquire_set(store);
    lahar_status status = LAHAR_OK;
    for (size_t i = 0; status == LAHAR_OK && i < set->count; i++) {
        status = repair_file(store, set->readable[i], error);
    }
    lahar_segment_set_release(set);
    return status;
}
