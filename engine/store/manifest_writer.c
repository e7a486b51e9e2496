/* Writing a manifest: creating it, committing changes, replacing a log that has
 * outgrown its content.
 *
 * A change is one write behind the valid content and one sync. When the write or the
 * sync fails, the file is cut back to its valid size and synced: after that it is known that
 * the change is not on disk, whatever had become of it. Where this fails too, or the
 * device failed (not merely ran full), what is on disk is unknown, and the manifest is poisoned.
 * A sync that failed is never repeated for the same data. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/store/manifest.h"
#include "engine/store/manifest_format.h"
#include "io/base/crc32c.h"
#include "io/base/error.h"

/* Puts the header that closes a whole file of snapshot_size bytes of changes. */
static void fill_header(uint8_t header[LAHAR_MANIFEST_HEADER_SIZE], uint64_t store_id,
                        uint64_t number, uint64_t snapshot_size)
{
    memset(header, 0, LAHAR_MANIFEST_HEADER_SIZE);
    memcpy(header, LAHAR_MANIFEST_MAGIC, 8);
    lahar_store_u16(header + 8, LAHAR_MANIFEST_VERSION);
    lahar_store_u16(header + 10, LAHAR_MANIFEST_HEADER_SIZE);
    lahar_store_u64(header + 16, store_id);
    lahar_store_u64(header + 24, number);
    lahar_store_u64(header + 32, snapshot_size);
    lahar_store_u32(header + 44, lahar_crc32c(0, header, 44));
}

/* Fills the 16 bytes before records of records_size bytes. */
static void fill_change_header(uint8_t *change, uint32_t records_size, uint32_t seed,
                               uint64_t sequence)
{
    lahar_store_u32(change + 4, records_size);
    lahar_store_u64(change + 8, sequence);
    lahar_store_u32(change,
                    lahar_crc32c(seed, change + 4,
                                 LAHAR_MANIFEST_CHANGE_HEADER_SIZE - 4 + (size_t)records_size));
}

static lahar_status check_change_size(size_t size, lahar_error *error)
{
    if (size > LAHAR_MANIFEST_CHANGE_SIZE_MAX) {
        return lahar_fail(error, LAHAR_TOO_BIG, "a change of the manifest of %zu bytes", size);
    }
    return LAHAR_OK;
}

lahar_status lahar_manifest_build_image(struct lahar_buffer *image, uint64_t store_id,
                                        uint64_t number, const struct lahar_manifest_state *state,
                                        lahar_error *error)
{
    const size_t ahead = LAHAR_MANIFEST_HEADER_SIZE + LAHAR_MANIFEST_CHANGE_HEADER_SIZE;
    if (!lahar_buffer_reserve(image, ahead)) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a snapshot of the manifest");
    }
    image->size = ahead;
    lahar_manifest_put_state(image, state);
    if (image->has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a snapshot of the manifest");
    }
    const size_t records_size = image->size - ahead;
    LAHAR_TRY(check_change_size(records_size, error));
    fill_change_header(image->data + LAHAR_MANIFEST_HEADER_SIZE, (uint32_t)records_size,
                       lahar_manifest_seed(store_id, number), 1);
    fill_header(image->data, store_id, number, image->size - LAHAR_MANIFEST_HEADER_SIZE);
    return LAHAR_OK;
}

/* Writes a whole manifest under a temporary name, syncs it, gives it its name. Only
 * the directory is left to sync. */
static lahar_status write_whole(struct lahar_manifest *manifest, uint64_t number,
                                const struct lahar_buffer *image, struct lahar_io_file **file_out,
                                lahar_error *error)
{
    struct lahar_io *io = manifest->io;
    char name[LAHAR_MANIFEST_NAME_SIZE];
    char temporary_name[LAHAR_MANIFEST_NAME_SIZE + 4];
    char path[LAHAR_MANIFEST_PATH_SIZE];
    char temporary_path[LAHAR_MANIFEST_PATH_SIZE];
    lahar_manifest_name(number, name);
    (void)snprintf(temporary_name, sizeof temporary_name, "%s.tmp", name);
    LAHAR_TRY(lahar_manifest_path(manifest, name, path, error));
    LAHAR_TRY(lahar_manifest_path(manifest, temporary_name, temporary_path, error));
    /* A leftover of an earlier attempt; when there is none, this fails and may. */
    (void)io->ops->unlink(io, temporary_path, NULL);
    struct lahar_io_file *file = NULL;
    LAHAR_TRY(io->ops->open(io, temporary_path,
                            LAHAR_IO_READ | LAHAR_IO_WRITE | LAHAR_IO_CREATE | LAHAR_IO_EXCLUSIVE,
                            &file, error));
    lahar_status status = io->ops->write(io, file, 0, image->data, image->size, error);
    if (status == LAHAR_OK) {
        status = io->ops->sync(io, file, error);
    }
    if (status == LAHAR_OK) {
        status = io->ops->rename(io, temporary_path, path, error);
    }
    if (status != LAHAR_OK) {
        io->ops->close(io, file);
        (void)io->ops->unlink(io, temporary_path, NULL);
        return status;
    }
    *file_out = file;
    return LAHAR_OK;
}

lahar_status lahar_manifest_create_from(struct lahar_io *io, const char *directory,
                                        uint64_t store_id, uint64_t number,
                                        const struct lahar_manifest_state *state,
                                        const lahar_allocator *allocator, lahar_error *error)
{
    struct lahar_manifest manifest = {
        .io = io, .allocator = allocator, .directory = directory, .store_id = store_id};
    struct lahar_buffer image;
    lahar_buffer_init(&image, allocator);
    struct lahar_io_file *file = NULL;
    lahar_status status = lahar_manifest_build_image(&image, store_id, number, state, error);
    if (status == LAHAR_OK) {
        status = write_whole(&manifest, number, &image, &file, error);
    }
    if (status == LAHAR_OK) {
        status = io->ops->sync_directory(io, directory, error);
    }
    io->ops->close(io, file);
    lahar_buffer_deinit(&image);
    return status;
}

lahar_status lahar_manifest_create(struct lahar_io *io, const char *directory, uint64_t store_id,
                                   const lahar_allocator *allocator, lahar_error *error)
{
    struct lahar_manifest_state state;
    lahar_manifest_state_init(&state, allocator);
    const lahar_status status =
        lahar_manifest_create_from(io, directory, store_id, 1, &state, allocator, error);
    lahar_manifest_state_deinit(&state);
    return status;
}

static lahar_status poison(struct lahar_manifest *manifest, lahar_status status,
                           const lahar_error *cause)
{
    if (manifest->poison.status == LAHAR_OK) {
        manifest->poison = *cause;
        if (manifest->poison.status == LAHAR_OK) {
            manifest->poison.status = status;
        }
    }
    return LAHAR_POISONED;
}

static lahar_status refuse(const struct lahar_manifest *manifest, lahar_error *error)
{
    if (error != NULL && error->status == LAHAR_OK) {
        *error = manifest->poison;
        error->status = LAHAR_POISONED;
    }
    return LAHAR_POISONED;
}

/* Takes over the state in a new file. Until the new name exists a failure leaves everything as it
 * was. Once it exists, either file might be the one that a crash leaves, so the change of
 * the directory must become durable before anything is written to the new file. */
static lahar_status replace_file(struct lahar_manifest *manifest, lahar_error *error)
{
    struct lahar_io *io = manifest->io;
    struct lahar_buffer image;
    lahar_buffer_init(&image, manifest->allocator);
    struct lahar_io_file *file = NULL;
    lahar_status status = lahar_manifest_build_image(&image, manifest->store_id,
                                                     manifest->number + 1, &manifest->state, error);
    if (status == LAHAR_OK) {
        status = write_whole(manifest, manifest->number + 1, &image, &file, error);
    }
    if (status != LAHAR_OK) {
        goto cleanup;
    }
    lahar_error cause = {0};
    status = io->ops->sync_directory(io, manifest->directory, &cause);
    if (status != LAHAR_OK) {
        io->ops->close(io, file);
        (void)poison(manifest, status, &cause);
        status = refuse(manifest, error);
        goto cleanup;
    }
    char name[LAHAR_MANIFEST_NAME_SIZE];
    char path[LAHAR_MANIFEST_PATH_SIZE];
    lahar_manifest_name(manifest->number, name);
    io->ops->close(io, manifest->file);
    manifest->file = file;
    manifest->number++;
    manifest->size_bytes = image.size;
    manifest->snapshot_bytes = image.size;
    manifest->sequence = 2;
    manifest->snapshot_retry_size = 0;
    /* A survivor is superseded by its number and removed by the next opening. */
    if (lahar_manifest_path(manifest, name, path, NULL) == LAHAR_OK) {
        (void)io->ops->unlink(io, path, NULL);
    }
cleanup:
    lahar_buffer_deinit(&image);
    return status;
}

/* After a failed write or sync: makes certain that the change is not on disk. */
static lahar_status withdraw(struct lahar_manifest *manifest, lahar_status status,
                             const lahar_error *cause, lahar_error *error)
{
    struct lahar_io *io = manifest->io;
    if (status == LAHAR_NO_SPACE &&
        io->ops->truncate(io, manifest->file, manifest->size_bytes, NULL) == LAHAR_OK &&
        io->ops->sync(io, manifest->file, NULL) == LAHAR_OK) {
        if (error != NULL && error->status == LAHAR_OK) {
            *error = *cause;
        }
        return status;
    }
    (void)poison(manifest, status, cause);
    return refuse(manifest, error);
}

static lahar_status append(struct lahar_manifest *manifest, const struct lahar_buffer *records,
                           lahar_error *error)
{
    struct lahar_io *io = manifest->io;
    const size_t size = LAHAR_MANIFEST_CHANGE_HEADER_SIZE + records->size;
    uint8_t *change = lahar_allocate(manifest->allocator, size);
    if (change == NULL) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "a change of the manifest needs %zu bytes", size);
    }
    memcpy(change + LAHAR_MANIFEST_CHANGE_HEADER_SIZE, records->data, records->size);
    fill_change_header(change, (uint32_t)records->size,
                       lahar_manifest_seed(manifest->store_id, manifest->number),
                       manifest->sequence);
    lahar_error cause = {0};
    lahar_status status =
        io->ops->write(io, manifest->file, manifest->size_bytes, change, size, &cause);
    if (status == LAHAR_OK) {
        status = io->ops->sync(io, manifest->file, &cause);
    }
    lahar_release(manifest->allocator, change);
    if (status != LAHAR_OK) {
        return withdraw(manifest, status, &cause, error);
    }
    manifest->size_bytes += size;
    manifest->sequence++;
    return LAHAR_OK;
}

/* Replaces the log when it is due. A failure before the switch costs nothing but
 * the size of the log, and the next try waits until it has grown further. */
static lahar_status replace_when_due(struct lahar_manifest *manifest, lahar_error *error)
{
    const uint64_t log_bytes = manifest->size_bytes - manifest->snapshot_bytes;
    if (log_bytes < manifest->growth_bytes || log_bytes < manifest->snapshot_bytes ||
        manifest->size_bytes < manifest->snapshot_retry_size) {
        return LAHAR_OK;
    }
    const lahar_status status = replace_file(manifest, NULL);
    if (status == LAHAR_POISONED) {
        return refuse(manifest, error);
    }
    if (status != LAHAR_OK) {
        manifest->snapshot_retry_size = manifest->size_bytes + manifest->growth_bytes;
    }
    return LAHAR_OK;
}

lahar_status lahar_manifest_commit(struct lahar_manifest *manifest,
                                   const struct lahar_buffer *records, lahar_error *error)
{
    if (manifest->poison.status != LAHAR_OK) {
        return refuse(manifest, error);
    }
    if (records->has_failed) {
        return lahar_fail(error, LAHAR_NO_MEMORY, "no memory for a change of the manifest");
    }
    LAHAR_ASSERT(records->size != 0);
    LAHAR_TRY(check_change_size(records->size, error));
    LAHAR_TRY(replace_when_due(manifest, error));
    LAHAR_TRY(append(manifest, records, error));
    lahar_error cause = {0};
    const lahar_status status =
        lahar_manifest_state_apply(&manifest->state, records->data, records->size, &cause);
    if (status != LAHAR_OK) {
        /* The change is on disk and not, or half, in memory, whatever the reason. */
        (void)poison(manifest, status, &cause);
        return refuse(manifest, error);
    }
    return LAHAR_OK;
}
